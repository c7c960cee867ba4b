"""Tables of many blocks: what adds up over records is measured some blocks at a time.

A database plans a statement over n tables in more than n steps. Statistics add up over
records, and steps that look at one row at a time do not mind which others there are: such a
table is asked in several statements, and their integers are added.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

from fpinq.model.plans import Plan, Term
from fpinq.model.statistics import Integers
from fpinq.model.transformations import (
    Concat,
    ConcatAll,
    Explode,
    Identity,
    PartOf,
    Select,
    SelectMany,
    Where,
)

_ROW_BY_ROW = (Identity, Where, Select, SelectMany, Explode, PartOf)


def is_concat(plan: Plan) -> TypeGuard[Term]:
    """Whether a plan puts tables together."""
    return isinstance(plan, Term) and isinstance(plan.transformation, Concat | ConcatAll)


def in_chunks(plan: Plan, at_most: int) -> Iterator[Plan]:
    """Plans over at most so many tables each, whose rows together are the plan's; itself, if it has no more.

    It depends on the plan alone.
    """
    steps, below = [], plan
    while isinstance(below, Term) and isinstance(below.transformation, _ROW_BY_ROW):
        steps.append(below.transformation)
        (below,) = below.arguments
    tables = list(_together(below))
    if len(tables) <= at_most:
        yield plan
        return
    for first in range(0, len(tables), at_most):
        chunk = _concat(tables[first : first + at_most])
        for step in reversed(steps):
            chunk = Term(step, (chunk,))
        yield chunk


def added(measured: Iterable[Sequence[Integers]]) -> Sequence[Integers]:
    """The sum of the statistics of several tables, each in its place."""
    first, *others = measured
    if not others:
        return first
    totals = [dict(integers) for integers in first]
    for found in others:
        for total, integers in zip(totals, found, strict=True):
            _add(total, integers)
    return totals


def _add(total: dict[int, int], integers: Mapping[int, int]) -> None:
    for coordinate, number in integers.items():
        found = total.pop(coordinate, 0) + number
        if found:  # a total of 0 is left out
            total[coordinate] = found


def _concat(tables: Sequence[Plan]) -> Plan:
    return tables[0] if len(tables) == 1 else Term(ConcatAll(len(tables)), tuple(tables))


def _together(plan: Plan) -> Iterator[Plan]:
    """The tables that a plan puts together; itself, if it is no concat."""
    waiting = [plan]
    while waiting:
        table = waiting.pop()
        if is_concat(table):
            waiting += reversed(table.arguments)
        else:
            yield table
