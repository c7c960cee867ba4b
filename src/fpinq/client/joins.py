"""What a join's arguments mean: `on`, the truncations of each side, and the record without `select`."""

from collections.abc import Mapping
from typing import Any

from fpinq.client.rows import Cell, Row, Scope, cells
from fpinq.client.shorthand import Deferred
from fpinq.client.tracing import checked_cell, trace
from fpinq.model.errors import BadTransformation
from fpinq.model.expressions import Column, Expression, Schema
from fpinq.model.transformations import All, First, Record, Truncation, Unique


def first(at_most: int) -> First:
    """Keep the first at_most records for each key, in the canonical order."""
    if type(at_most) is not int or at_most < 1:
        raise BadTransformation("first needs a whole number ≥ 1")
    return First(at_most)


def unique() -> Unique:
    """Keep a record only if no other has its key."""
    return Unique()


def all_() -> All:
    """Keep every record: only beside a public table, or on the unit."""
    return All()


def truncation(given: object, default: Truncation) -> Truncation:
    """A side's truncation."""
    if given is None:
        return default
    if isinstance(given, First | Unique | All):
        return given
    raise BadTransformation("left and right are fp.first(n), fp.unique() or fp.all_()")


def key_cells(f: Any, schema: Schema, what: str) -> tuple[dict[str, Cell], bool]:
    """The key expressions that f gives, by name, and whether it gave just one.

    f is a column's name, a list of names, or a function that gives an
    expression, a dict or a list of expressions, or the row.
    """
    scope = Scope()
    result = trace(f, Row(schema, scope))
    if isinstance(result, Row):
        result = cells(result)
    if isinstance(result, list | tuple):
        result = {_name(cell, i): cell for i, cell in enumerate(result)}
    if isinstance(result, Mapping):
        if not result:
            raise BadTransformation(f"{what} needs a key")
        return {_text(name, what): checked_cell(cell, scope, what) for name, cell in result.items()}, False
    return {"key": checked_cell(result, scope, what)}, True


def _name(cell: object, position: int) -> str:
    tree = cell._tree if isinstance(cell, Cell) else None
    return tree.name if isinstance(tree, Column) else f"key{position + 1}"


def _text(name: object, what: str) -> str:
    if isinstance(name, str) and name:
        return name
    raise BadTransformation(f"{what} needs keys with names that are texts")


def join_keys(on: Any, left: Schema, right: Schema) -> tuple[dict[str, Cell], dict[str, Cell], bool]:
    """The key expressions of each side, and whether it is just one."""
    if isinstance(on, tuple):
        if len(on) != 2:
            raise BadTransformation('on is "id", ["a", "b"], a function, or a pair (left, right) of them')
        of_left, of_right = on
    elif isinstance(on, str | list | Deferred) or callable(on):
        of_left = of_right = on
    else:
        raise BadTransformation('join needs on="id", on=["a", "b"], on=f or on=(f, g)')
    lefts, single = key_cells(of_left, left, "join")
    rights, _ = key_cells(of_right, right, "join")
    if len(lefts) != len(rights):
        raise BadTransformation("both sides of a join need the same number of keys")
    for (name, a), (_, b) in zip(lefts.items(), rights.items(), strict=True):
        if a._type is not b._type:
            raise BadTransformation(
                f"join keys must have the same type: {name} is {a._type.value} on the left and "
                f"{b._type.value} on the right; cast one of them"
            )
    return lefts, rights, single


def every_pair(left: Schema, right: Schema) -> Record:
    """All columns of both; a right name that the left has too gets `_right`."""
    record: dict[str, Expression] = {name: Column(f"l.{name}") for name in left.names()}
    for name in right.names():
        shown = name
        while shown in record:
            shown += "_right"
        record[shown] = Column(f"r.{name}")
    return tuple(record.items())


def trees(cells_: Mapping[str, Cell]) -> tuple[Expression, ...]:
    """The expressions of cells."""
    return tuple(cell._tree for cell in cells_.values())
