"""Joins: what `on`, the truncations of each side and the record mean, and the joins themselves."""

from collections.abc import Mapping
from functools import lru_cache

from fpinq.client.algebra import derive, same_persons, spelled
from fpinq.client.bounds import Known
from fpinq.client.facts import Facts, Within
from fpinq.client.rows import Cell, Row, cells
from fpinq.client.shorthand import Deferred
from fpinq.client.tracing import row, trace
from fpinq.model.errors import BadTransformation
from fpinq.model.expressions import Column, Expression, Schema
from fpinq.model.transformations import All, Fields, First, Join, SemiJoin, Truncation, Unique


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


def key_cells(f: object, schema: Schema, what: str) -> tuple[dict[str, Cell], bool]:
    """The key expressions that f gives, by name, and whether it gave just one.

    f is a column's name, a list of names, or a function that gives an
    expression, a dict or a list of expressions, or the row.
    """
    traced = trace(f, what, row(schema))
    given = traced.result
    if isinstance(given, Row):
        given = cells(given)
    if isinstance(given, list | tuple):
        given = {_name(cell, i): cell for i, cell in enumerate(given)}
    if isinstance(given, Mapping):
        if not given:
            raise BadTransformation(f"{what} needs a key")
        return {_text(name, what): traced.cell_of(cell) for name, cell in given.items()}, False
    return {"key": traced.cell()}, True


def _name(cell: object, position: int) -> str:
    tree = cell.tree if isinstance(cell, Cell) else None
    return tree.name if isinstance(tree, Column) else f"key{position + 1}"


def _text(name: object, what: str) -> str:
    if isinstance(name, str) and name:
        return name
    raise BadTransformation(f"{what} needs keys with names that are texts")


def join_keys(on: object, left: Schema, right: Schema) -> tuple[dict[str, Cell], dict[str, Cell], bool]:
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
        if a.type is not b.type:
            raise BadTransformation(
                f"join keys must have the same type: {name} is {a.type.value} on the left and "
                f"{b.type.value} on the right; cast one of them"
            )
    return lefts, rights, single


def every_pair(left: Schema, right: Schema) -> Fields:
    """All columns of both; a right name that the left has too gets `_right`."""
    record: dict[str, Expression] = {name: _column(f"l.{name}") for name in left.names()}
    for name in right.names():
        shown = name
        while shown in record:
            shown += "_right"
        record[shown] = _column(f"r.{name}")
    return tuple(record.items())


@lru_cache(4096)
def _column(name: str) -> Column:
    """A column: the same one for the same name, as every join of a table names all of them."""
    return Column(name)


def trees(cells_: Mapping[str, Cell]) -> tuple[Expression, ...]:
    """The expressions of cells."""
    return tuple(cell.tree for cell in cells_.values())


# ── joining ──────────────────────────────────────────────────────────────────────────


def join(
    left: Facts,
    right: Facts,
    on: object,
    of_left: object,
    of_right: object,
    select: object,
    outer: bool,
) -> Facts:
    """Pairs of records with equal keys, after each side is truncated per key."""
    lefts, rights, _ = join_keys(on, left.schema, right.schema)
    inside = joined_inside(left, right, lefts, rights)
    every = inside is not None
    first = truncation(of_left, All() if every or not right.roots else Unique())
    second = truncation(of_right, All() if every or not left.roots else Unique())
    record = every_pair(left.schema, right.schema)
    if select is not None:
        record = trace(select, "join", row(left.schema, "l."), row(right.schema, "r.")).record()
    transformation = Join(trees(lefts), trees(rights), first, second, record, outer)
    within = None if inside is None else _pairs_inside(transformation, *inside)
    keys = spelled(trees(lefts))
    label = f"{'outer ' if outer else ''}join on {keys}" + (
        "" if within else f", {_truncated(first)} with {_truncated(second)}"
    )
    columns = _joined_columns(record, left.columns, right.columns)
    return derive(transformation, left, right, label=label, columns=columns, within=within)


def semi_join(left: Facts, right: Facts, on: object, *, keep: bool) -> Facts:
    """The records whose key occurs in a public table, or does not."""
    lefts, rights, _ = join_keys(on, left.schema, right.schema)
    transformation = SemiJoin(trees(lefts), trees(rights), keep)
    label = f"{'semi' if keep else 'anti'}_join on {spelled(trees(lefts))}"
    return derive(transformation, left, right, label=label, columns=left.columns)


def joined_inside(
    left: Facts, right: Facts, lefts: Mapping[str, Cell], rights: Mapping[str, Cell]
) -> tuple[Within, Within] | None:
    """How both are made inside each person, if equal keys mean the same person."""
    inside = same_persons(left, right)
    if inside is None:
        return None
    pairs = zip(trees(lefts), trees(rights), strict=True)
    return inside if any(inside[0].is_unit(a) and inside[1].is_unit(b) for a, b in pairs) else None


def _pairs_inside(join: Join, left: Within, right: Within) -> Within:
    """A join inside each person."""
    units = {f"l.{name}" for name in left.units}
    if not join.outer:  # the unit on the right may be null then, and null is nobody
        units |= {f"r.{name}" for name in right.units}
    own = [name for name, value in join.record if isinstance(value, Column) and value.name in units]
    return left.then(join, right, units=own)


def _truncated(side: Truncation) -> str:
    return f"first {side.at_most}" if side.op == "first" else side.op


def _joined_columns(
    record: Fields, left: Mapping[str, Known], right: Mapping[str, Known]
) -> dict[str, Known]:
    known = {f"l.{name}": c for name, c in left.items()} | {f"r.{name}": c for name, c in right.items()}
    columns = [(name, value.name) for name, value in record if isinstance(value, Column)]
    return {name: known[of] for name, of in columns if of in known}
