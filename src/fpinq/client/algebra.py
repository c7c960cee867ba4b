"""PINQ's algebra over facts: every transformation binds a new variable and gives new facts.

What stays inside each person is made there too, as long as it can be (`Within`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from fpinq.client.bounds import Known
from fpinq.client.facts import Bound, Facts, Made, Unbound, Within, held
from fpinq.client.spelling import spell
from fpinq.client.systems import System, fresh_variable
from fpinq.client.tracing import refuse_inside_a_lambda
from fpinq.model.actions import Assign
from fpinq.model.errors import BadTransformation
from fpinq.model.expressions import Column, Expression, Schema
from fpinq.model.maps import Folded
from fpinq.model.plans import Flatten, Transformation, apply, bounded_stability, rows_at_most
from fpinq.model.transformations import (
    Concat,
    ConcatAll,
    Distinct,
    Fields,
    LimitPerKey,
    Select,
    UniqueBy,
    Where,
)


def derive(
    transformation: Transformation,
    *parents: Facts,
    label: str,
    columns: Mapping[str, Known] | None = None,
    within: Within | None = None,
) -> Facts:
    """F(parents…) under a fresh variable; inside each person, if that is how it is made."""
    refuse_inside_a_lambda()
    schema = apply(transformation, [parent.schema for parent in parents])
    system = common_system(parents)
    made, binding = (
        _at_large(transformation, parents, label, system)
        if within is None or system is None
        else _inside(within, parents, label, system)
    )
    return Facts(
        schema,
        made,
        binding,
        roots=_roots(parents),
        columns=columns or {},
        budgets=frozenset(budget for parent in parents for budget in parent.budgets),
        within=within,
    )


def _roots(parents: Sequence[Facts]) -> Mapping[str, str]:
    """The roots of several tables: a table of many blocks is made of few tables."""
    return parents[0].roots if len(parents) == 1 else Folded([each.roots for each in parents], _together)


def _together(roots: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {name: label for each in roots for name, label in each.items()}


def _inside(within: Within, parents: tuple[Facts, ...], label: str, system: System) -> tuple[Made, Bound]:
    """Bound to what is made inside each person."""
    made = Made(label, parents, rows_per_unit=rows_at_most(within.body))
    return made, _assigned(system, Flatten(within.body), (within.root,))


def _at_large(
    transformation: Transformation, parents: tuple[Facts, ...], label: str, system: System | None
) -> tuple[Made, Bound | Unbound]:
    """Bound to F of the parents, by the general laws; not yet, if they are public and in no system."""
    private = [bool(parent.roots) for parent in parents]
    stability = bounded_stability(transformation, private, [parent.schema for parent in parents])
    made = Made(label, parents, stability)
    if system is None:
        return made, Unbound(transformation, tuple(parent.binding for parent in parents))
    arguments = tuple(parent.binding.variable_in(system) for parent in parents)
    return made, _assigned(system, transformation, arguments)


def _assigned(system: System, transformation: Transformation, arguments: tuple[str, ...]) -> Bound:
    variable = fresh_variable()
    system.act(Assign(variable, transformation, arguments))
    return held(system, variable)


def common_system(tables: Iterable[Facts]) -> System | None:
    """The one system of several tables; None if all of them are public."""
    systems = {id(table.system): table.system for table in tables if table.system is not None}
    if len(systems) > 1:
        raise BadTransformation(
            "these tables are in different systems: protect them with the same engine (and ledger) "
            "to use them together"
        )
    return next(iter(systems.values()), None)


# ── row by row ───────────────────────────────────────────────────────────────────────


def where(table: Facts, predicate: Expression) -> Facts:
    """The records that satisfy a condition."""
    units = table.within.units if table.within else ()
    return rowwise(table, Where(predicate), f"where {spell(predicate)}", table.columns, units)


def select(table: Facts, record: Fields, label: str | None = None) -> Facts:
    """One record made of each."""
    kept = {name: value.name for name, value in record if isinstance(value, Column)}
    columns = {name: table.columns[old] for name, old in kept.items() if old in table.columns}
    units = [name for name, value in record if table.within and table.within.is_unit(value)]
    shown = ", ".join(n if Column(n) == v else f"{n} = {spell(v)}" for n, v in record)
    return rowwise(table, Select(record), label or f"select {shown}", columns, units)


def rowwise(
    table: Facts,
    transformation: Transformation,
    label: str,
    columns: Mapping[str, Known],
    units: Iterable[str],
) -> Facts:
    """What is made of each record on its own."""
    within = table.within.then(transformation, units=units) if table.within else None
    return derive(transformation, table, label=label, columns=columns, within=within)


# ── the table as a whole ─────────────────────────────────────────────────────────────


def distinct(table: Facts) -> Facts:
    """Each record once."""
    within = None
    if table.within and table.within.units:  # equal records are the same person's
        within = table.within.then(Distinct(), units=table.within.units)
    return derive(Distinct(), table, label="distinct", columns=table.columns, within=within)


def limit_per_key(table: Facts, k: int, keys: tuple[Expression, ...]) -> Facts:
    """The first k records of each key."""
    return derive(
        LimitPerKey(k, keys),
        table,
        label=f"limit_per_key {k}, by {spelled(keys)}",
        columns=table.columns,
        within=_per_person(table.within, keys, lambda rest: LimitPerKey(k, rest)),
    )


def unique_by(table: Facts, keys: tuple[Expression, ...]) -> Facts:
    """The records whose key no other record has."""
    return derive(
        UniqueBy(keys),
        table,
        label=f"unique_by {spelled(keys)}",
        columns=table.columns,
        within=_per_person(table.within, keys, UniqueBy),
    )


def _per_person(
    within: Within | None,
    keys: tuple[Expression, ...],
    step: Callable[[tuple[Expression, ...]], Transformation],
) -> Within | None:
    """The step inside each person, if the unit is among the keys; there it says nothing more."""
    if within is None or not any(within.is_unit(key) for key in keys):
        return None
    rest = tuple(key for key in keys if not within.is_unit(key))
    return within.then(step(rest), units=within.units)


# ── tables of the same columns ───────────────────────────────────────────────────────


def concat(table: Facts, *others: Facts) -> Facts:
    """The records of all of them."""
    tables = (table, *(_in_order_of(table.schema, other) for other in others))
    transformation = Concat() if len(tables) == 2 else ConcatAll(len(tables))
    columns = reduce(_alike, (each.columns for each in tables))
    within = None
    if all(same_persons(table, each) for each in tables):
        inside = [each.within for each in tables if each.within is not None]
        units = frozenset.intersection(*(each.units for each in inside))
        within = inside[0].then(transformation, *inside[1:], units=units)
    made = derive(transformation, *tables, label="concat", columns=columns, within=within)
    whole = within is None and all(each.made.whole for each in tables)
    return replace(made, made=replace(made.made, whole=whole))


def of_two(transformation: Transformation, left: Facts, other: Facts) -> Facts:
    """union, intersect or except_ of two tables."""
    right = _in_order_of(left.schema, other)
    columns = _alike(left.columns, right.columns)
    return derive(transformation, left, right, label=transformation.op, columns=columns)


def _alike(left: Mapping[str, Known], right: Mapping[str, Known]) -> Mapping[str, Known]:
    """What is known of the columns on both sides."""
    return {name: known for name, known in left.items() if right.get(name) == known}


def _in_order_of(schema: Schema, table: Facts) -> Facts:
    """A table with its columns in the order of a schema that has the same ones."""
    if table.schema != schema and dict(table.schema.columns) == dict(schema.columns):
        return select(table, tuple((name, Column(name)) for name in schema.names()))
    return table


def same_persons(left: Facts, right: Facts) -> tuple[Within, Within] | None:
    """How both are made inside each person of one root, if they are."""
    a, b = left.within, right.within
    if a is None or b is None or left.system is not right.system or a.root != b.root:
        return None
    return a, b


def spelled(keys: Iterable[Expression]) -> str:
    """Keys as the program wrote them."""
    return ", ".join(spell(key) for key in keys)
