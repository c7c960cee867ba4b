"""The reference engine with a meter: what a measurement really does, in the units of `model.work`.

It knows nothing of the bound. It counts what happens: every application of an
operator at its cost on the values that are there, every row that goes into and
comes out of a step, every character that a step compares or keeps.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from fpinq.engines import reference
from fpinq.model import clamps
from fpinq.model.expressions import Apply, Column, Expression, Literal, Row
from fpinq.model.operators import OPERATORS
from fpinq.model.plans import Plan
from fpinq.model.queries import PrimitiveQuery
from fpinq.model.transformations import Partitioning

# These hash, sort or compare whole records.
TOUCHING = {"distinct", "take", "limit_per_key", "unique_by", "union", "intersect", "except", "join"}


@dataclass
class Meter:
    """Units so far."""

    units: int = 0


def measured_units(
    plan: Plan,
    database: reference.Database,
    by: Partitioning | None = None,
    queries: tuple[PrimitiveQuery, ...] = (),
) -> int:
    """The units of a measurement on the reference engine; each clamp of a row once, whatever the part."""
    with metered() as meter:
        table = reference.compute(plan, database)
        for row in table.read():
            meter.units += 1
            for key in () if by is None else by.expressions:
                reference.evaluate(key, row)
            for query in dict.fromkeys(queries):
                query.statistic.contribution(row)
        return meter.units


@contextmanager
def metered() -> Iterator[Meter]:
    """The reference engine, counting."""
    meter = Meter()
    transform = reference.transform

    def evaluate(expression: Expression, row: Row) -> Any:
        if isinstance(expression, Column):
            meter.units += 1
            return row[expression.name]
        if isinstance(expression, Literal):
            return expression.value
        operator = OPERATORS[expression.operator]
        values = [evaluate(argument, row) for argument in expression.arguments]
        meter.units += operator.cost([len(v) if isinstance(v, str) else 0 for v in values])
        return evaluated(expression, values)

    def counted(transformation: Any, *tables: reference.Relation) -> reference.Relation:
        made = transform(transformation, *tables)
        meter.units += len(made.rows) * len(made.schema.columns)
        for table in tables:
            meter.units += len(table.rows)
            if transformation.op in TOUCHING:
                meter.units += sum(len(v) for row in table.rows for v in row if isinstance(v, str))
        return made

    def key(keys: Sequence[Expression], row: Row) -> reference.Key:
        found = tuple(evaluate(key, row) for key in keys)
        meter.units += sum(len(value) for value in found if isinstance(value, str))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "_key", key)
        patch.setattr(reference, "evaluate", evaluate)
        patch.setattr(clamps, "evaluate", evaluate)
        patch.setattr(reference, "transform", counted)
        yield meter


def evaluated(expression: Apply, values: list[Any]) -> Any:
    """The value of an operator on values."""
    operator = OPERATORS[expression.operator]
    if not operator.takes_null and any(value is None for value in values):
        return None
    return operator.value(*values)


def without(database: reference.Database, root: str, number: int) -> reference.Database:
    """The neighbour that lacks one record."""
    table = database[root]
    if isinstance(table, reference.Relation):
        rows = table.rows[:number] + table.rows[number + 1 :]
        return {**database, root: reference.Relation(table.schema, rows)}
    persons = table.persons[:number] + table.persons[number + 1 :]
    return {**database, root: reference.PersonBag(table.shape, persons)}


def longest(rows: Any, position: int) -> int:
    """How long the longest text of a column is."""
    return max((len(row[position]) for row in rows if isinstance(row[position], str)), default=0)


def lengths_of(relations: list[reference.Relation]) -> Mapping[str, int]:
    """How long the texts of each column are."""
    names = relations[0].schema.names()
    rows = [row for relation in relations for row in relation.rows]
    return {name: longest(rows, i) for i, name in enumerate(names)}
