"""Levels of GROUPING SETS: asked one by one, then made consistent where they count or add up.

Each level is a noisy sight of the same cells. Least squares over all of them gives cells whose sums
are the levels, and no level is further off than it was (Gauss and Markov); the equations are solved
by conjugate gradients, whose steps are sums along the axes.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from fpinq.client.answers import Answer
from fpinq.client.rows import Cell, Row, apply, constant
from fpinq.client.table import Table
from fpinq.model.expressions import Expression
from fpinq.sql.expressions import chained
from fpinq.sql.relations import cells_of

STEPS = 200
PRECISION = 1e-12

Found = dict[tuple[Any, ...], dict[str, Answer]]


def listed(table: Table, by: Mapping[str, Expression], keys: Sequence[tuple[Any, ...]]) -> Table:
    """The records whose keys are all listed: others would be in some levels and not in others."""

    def test(row: Row) -> Cell:
        tests = []
        for place, cell in enumerate(cells_of(row, by).values()):
            values = list(dict.fromkeys(key[place] for key in keys))
            constants = [constant(value, cell.type) for value in values if value is not None]
            tests.append(apply("is_in", cell, *constants))
        return chained("and", tests)

    return table.where(test)


def consistent(levels: Sequence[Sequence[int]], found: Sequence[Found], names: Sequence[str]) -> None:
    """Answers of every level, such that they add up; in place."""
    axes = sorted({axis for level in levels for axis in level})
    values = {axis: _values(axis, levels, found) for axis in axes}
    shape = tuple(len(values[axis]) for axis in axes)
    if np.prod(shape, dtype=float) > 10_000_000:
        return
    summed = [tuple(i for i, axis in enumerate(axes) if axis not in level) for level in levels]
    places = [
        {key: tuple(values[axis].index(v) for axis, v in zip(level, key, strict=True)) for key in some}
        for level, some in zip(levels, found, strict=True)
    ]
    for name in names:
        seen = []
        for level, some, place in zip(levels, found, places, strict=True):
            sight = np.zeros(tuple(len(values[axis]) for axis in level))
            for key, answers in some.items():
                sight[place[key]] = float(answers[name].value)
            seen.append(sight)
        cells = least_squares(seen, summed, shape)
        for some, place, over in zip(found, places, summed, strict=True):
            made = cells.sum(axis=over)
            for key, answers in some.items():
                answers[name] = _moved(answers[name], float(made[place[key]]))


def _values(axis: int, levels: Sequence[Sequence[int]], found: Sequence[Found]) -> list[Any]:
    """The values of one key."""
    pairs = [(level.index(axis), some) for level, some in zip(levels, found, strict=True) if axis in level]
    return list(dict.fromkeys(key[place] for place, some in pairs for key in some))


def _moved(answer: Answer, value: float) -> Answer:
    moved = copy(answer)
    moved.value = value
    return moved


def least_squares(
    seen: Sequence["np.ndarray[Any, Any]"], summed: Sequence[tuple[int, ...]], shape: tuple[int, ...]
) -> "np.ndarray[Any, Any]":
    """The cells whose sums over axes are nearest to what was seen, of those the smallest."""

    def sums(cells: "np.ndarray[Any, Any]") -> list["np.ndarray[Any, Any]"]:
        return [np.asarray(cells.sum(axis=over)) for over in summed]

    def spread(sights: Sequence["np.ndarray[Any, Any]"]) -> "np.ndarray[Any, Any]":
        whole = np.zeros(shape)
        for sight, over in zip(sights, summed, strict=True):
            whole += np.expand_dims(sight, over)
        return whole

    cells = np.zeros(shape)
    rest = spread(seen)
    direction, size = rest, float(np.vdot(rest, rest))
    first = size
    for _ in range(STEPS):
        if size <= first * PRECISION**2:
            break
        moved = spread(sums(direction))
        step = size / float(np.vdot(direction, moved))
        cells = cells + step * direction
        rest = rest - step * moved
        before, size = size, float(np.vdot(rest, rest))
        direction = rest + size / before * direction
    return cells
