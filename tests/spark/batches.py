"""Many statements as one Spark job.

A job costs Spark a good part of a second however small its data is. So the
statements of many cases become the branches of one UNION ALL: each row says
whose it is, and puts its values into slots by their types.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from engines.generators import Example
from fpinq.engines.spark.dialect import SQL, SQL_TYPES
from fpinq.engines.sql.expressions import Parameters, render
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.relations import Stored, StoredPersons
from fpinq.engines.sql.statistics import Measurement, lower
from fpinq.model.expressions import Schema, Type, Value
from fpinq.model.operators import type_of
from fpinq.model.plans import Plan
from fpinq.model.statistics import Integers, Statistic
from fpinq.model.transformations import Partitioning

Rows = Sequence[tuple[Value, ...]]


@dataclass
class Statement:
    """One SELECT of a batch: its columns with their types, and what was found."""

    sql: str
    columns: Sequence[tuple[str, Type]]
    found: list[tuple[Any, ...]]


class Batch:
    """Plans and measurements over written-out tables, computed together."""

    def __init__(self) -> None:
        self.parameters = Parameters(SQL)
        self.statements: list[Statement] = []

    def roots(self, example: Example) -> dict[str, Stored | StoredPersons]:
        """The example's tables, written out as they are: with NaN and −0."""
        found: dict[str, Stored | StoredPersons] = {}
        for name, (schema, rows) in example.tables.items():
            found[name] = self._source(schema, rows)
        for name, (shape, tables) in example.persons.items():
            sources = {table: self._source(schema, tables[table]) for table, schema in shape.tables}
            found[name] = StoredPersons(shape, sources)
        return found

    def _source(self, schema: Schema, rows: Rows) -> Stored:
        names = ", ".join(f"c{i}" for i in range(len(schema.columns)))
        types = schema.types()
        written = rows or [tuple(None for _ in types)]
        values = ", ".join(
            "(" + ", ".join(self._written(v, t) for v, t in zip(row, types, strict=True)) + ")"
            for row in written
        )
        empty = "" if rows else " WHERE FALSE"
        raw = frozenset(i for i, type_ in enumerate(types) if type_ is Type.FLOAT64)
        return Stored(f"(SELECT {names} FROM VALUES {values} AS v({names}){empty})", schema, raw)

    def _written(self, value: Value, type_: Type) -> str:
        if isinstance(value, float):
            return "CAST('NaN' AS DOUBLE)" if isnan(value) else SQL.double(value)
        return render(value, type_, self.parameters)

    def rows(self, roots: Mapping[str, Stored | StoredPersons], plan: Plan) -> Statement:
        """A statement for the rows of a plan."""
        lowering = self._lowering(roots)
        table = lowering.closed(lowering.plan(plan))
        columns = [
            (column.sql, type_) for column, type_ in zip(table.columns, table.schema.types(), strict=True)
        ]
        return self._add(lowering.statement(f"SELECT {table.listed} FROM {table.source}"), columns)

    def measurement(
        self,
        roots: Mapping[str, Stored | StoredPersons],
        plan: Plan,
        by: Partitioning | None,
        asked: Sequence[Statistic],
    ) -> tuple[Measurement, Statement]:
        """A statement for the statistics of a plan's parts."""
        lowering = self._lowering(roots)
        table = lowering.plan(plan)
        measurement = lower(lowering, table, by, asked)
        keys = [] if by is None else [type_of(key, table.schema) for key in by.expressions]
        types = keys + [Type.INT64] * (len(measurement.names) - len(keys))
        columns = list(zip(measurement.names, types, strict=True))
        return measurement, self._add(measurement.sql, columns)

    def _lowering(self, roots: Mapping[str, Stored | StoredPersons]) -> Lowering:
        lowering = Lowering(SQL, roots)
        lowering.parameters = self.parameters
        return lowering

    def _add(self, sql: str, columns: Sequence[tuple[str, Type]]) -> Statement:
        statement = Statement(sql, columns, [])
        self.statements.append(statement)
        return statement

    def run(self, session: Any) -> None:
        """Compute every statement, in one job or (adaptively) one per shuffle."""
        used = [_slots(statement.columns) for statement in self.statements]
        slots = sorted({slot: type_ for each in used for slot, (_, type_) in each.items()}.items())
        branches = []
        for number, (statement, each) in enumerate(zip(self.statements, used, strict=True)):
            listed = [
                f"{each[slot][0]} AS {slot}"
                if slot in each
                else f"CAST(NULL AS {SQL_TYPES[type_]}) AS {slot}"
                for slot, type_ in slots
            ]
            branches.append(f"SELECT {number} AS number, {', '.join(listed)} FROM ({statement.sql})")
        found = session.sql(" UNION ALL ".join(branches), args=self.parameters.given()).toArrow()
        columns = {name: found.column(name).to_pylist() for name in found.column_names}
        for row, number in enumerate(columns["number"]):
            statement = self.statements[number]
            statement.found.append(tuple(columns[slot][row] for slot in used[number]))


def _slots(columns: Sequence[tuple[str, Type]]) -> dict[str, tuple[str, Type]]:
    """Each column in a slot of its type, in order."""
    taken: dict[Type, int] = {}
    slots: dict[str, tuple[str, Type]] = {}
    for name, type_ in columns:
        taken[type_] = taken.get(type_, 0) + 1
        slots[f"{type_.value}_{taken[type_]}"] = (name, type_)
    return slots


def statistics_of(measurement: Measurement, statement: Statement) -> list[Integers]:
    """The statistics that a statement found."""
    return measurement.read(statement.found)
