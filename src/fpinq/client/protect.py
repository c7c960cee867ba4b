"""protect and public: how tables come into being."""

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import PurePath
from typing import Any

from fpinq.client.bounds import Column, clamp
from fpinq.client.budgets import Budget
from fpinq.client.derivation import Made
from fpinq.client.handle import Within
from fpinq.client.parts import partitioning
from fpinq.client.queries import Subject
from fpinq.client.rows import Cell, Scope, column_type
from fpinq.client.systems import DataEngine, fresh_root, fresh_variable, system_for
from fpinq.client.table import Table
from fpinq.model import epsilon as exact
from fpinq.model import expressions
from fpinq.model.actions import Assign
from fpinq.model.errors import ProgramError, suggest
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import Flatten, Persons, PersonTable
from fpinq.model.transformations import LiteralTable
from fpinq.runtime import ProtectedSystem
from fpinq.runtime.in_memory import relation


def protect(
    data: Any,
    *,
    budget: Any,
    name: str | None = None,
    unit: str | None = None,
    rows_per_unit: int | Mapping[str, int] | None = None,
    columns: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    ledger: Any = None,
    engine: Any = "duckdb",
) -> Any:
    """A protected table: whoever asks, and whatever they ask, no record costs more than the budget.

    data is a parquet or csv path (or glob), a pandas, polars or pyarrow table,
    or a list of dicts. With unit= a person rather than a record is protected;
    a dict of tables about the same people, with rows_per_unit= for each, gives
    a dict of tables that share the budget.
    """
    if ledger is not None:
        raise ProgramError("ledger=… is not there yet: the budget lives as long as this process does")
    root = _Root(system_for(engine), _named(data, name), budget)
    if unit is None:
        if rows_per_unit is not None:
            raise ProgramError("rows_per_unit needs unit=…: the column that says whose row it is")
        if isinstance(data, Mapping):
            raise ProgramError(
                "several tables must be about the same people: say unit=… and rows_per_unit={…}"
            )
        return root.of_rows(data, schema, columns)
    if not isinstance(data, Mapping):
        one = root.label
        return root.of_persons({one: data}, unit, {one: rows_per_unit}, {one: schema}, {one: columns})[one]
    if not data:
        raise ProgramError("no tables to protect")
    most = rows_per_unit if isinstance(rows_per_unit, Mapping) else dict.fromkeys(data, rows_per_unit)
    known = columns or {}
    if all(isinstance(column, Column) for column in known.values()):
        known = {table: dict(known) for table in data}
    return root.of_persons(data, unit, most, schema or {}, known)


def public(rows: Any, schema: Mapping[str, Any] | None = None) -> Table:
    """A literal table: public, with scaling factor 0. A list of dicts or a data frame."""
    table = relation(rows, _types(schema))
    literal = LiteralTable(table.schema, table.rows)
    literal.shape()
    return Table(table.schema, Made(f"public, {len(table.rows)} rows"), transformation=literal)


class _Root:
    """A root in the making: its system, its names and its budget."""

    def __init__(self, system: ProtectedSystem, label: str, budget: Any) -> None:
        self.system = system
        self.label = label
        self.shared = frozenset({budget}) if isinstance(budget, Budget) else frozenset()
        self.budget = budget.remaining if isinstance(budget, Budget) else exact.budget(budget)
        self.name = fresh_root(system, label)

    def of_rows(self, data: Any, schema: Any, columns: Any) -> Table:
        """The table of a root whose records are rows."""
        found = self._engine().add_root(self.name, data, _types(schema))
        known = _known(columns, found)
        self.system.protect(self.name, found, self.budget)
        return Table(
            found,
            Made(self.label),
            system=self.system,
            variable=self.name,
            roots={self.name: self.label},
            columns=known,
            budgets=self.shared,
        )

    def of_persons(
        self,
        data: Mapping[str, Any],
        unit: str,
        most: Mapping[str, Any],
        schemas: Mapping[str, Any],
        columns: Mapping[str, Any],
    ) -> dict[str, Table]:
        """The tables of a root whose records are persons."""
        for table in data:
            if type(most.get(table)) is not int or most[table] < 1:
                raise ProgramError(
                    f"how many rows of {table!r} may one {unit} have? Say rows_per_unit, a whole number ≥ 1: "
                    "further rows are left out, and the scaling factor is that number"
                )
        for mapping in (most, schemas, columns):
            if unknown := [table for table in mapping if table not in data]:
                raise ProgramError(f"unknown table {unknown[0]!r}{suggest(unknown[0], data)}")
        given = {t: found for t, s in schemas.items() if (found := _types(s)) is not None}
        persons = self._engine().add_persons(self.name, data, unit=unit, schemas=given or None)
        known = {t: _known(columns.get(t), persons.table(t)) for t in data}
        self.system.protect(self.name, persons, self.budget)
        return {t: self._of_person(t, persons, unit, most[t], known[t]) for t in data}

    def _of_person(
        self, table: str, persons: Persons, unit: str, most: int, known: Mapping[str, Column]
    ) -> Table:
        body, variable = PersonTable(table, most), fresh_variable()
        self.system.act(Assign(variable, Flatten(body), (self.name,)))
        return Table(
            persons.table(table),
            Made(f"{table}, at most {most} per {unit}", rows_per_unit=most),
            system=self.system,
            variable=variable,
            roots={self.name: self.label},
            columns=known,
            budgets=self.shared,
            within=Within(self.name, body, frozenset({unit})),
        )

    def _engine(self) -> DataEngine:
        return self.system.engine  # type: ignore[return-value]


def _named(data: Any, name: str | None) -> str:
    """The root's name: the one given, a file's, or `data`."""
    if name is None:
        if isinstance(data, str | PathLike):
            return PurePath(fspath(data)).name.partition(".")[0].strip("*?[]") or "data"
        return "data"
    if type(name) is not str or not name:
        raise ProgramError("name is a text")
    return name


def _types(schema: Mapping[str, Any] | None) -> dict[str, Type] | None:
    """The schema that the owner states."""
    if schema is None:
        return None
    if not isinstance(schema, Mapping) or not schema:
        raise ProgramError('schema is a dict from column names to types, such as {"age": "int64"}')
    return {name: column_type(type_) for name, type_ in schema.items()}


def _known(columns: Mapping[str, Column] | None, schema: Schema) -> dict[str, Column]:
    """Public metadata, if it fits the columns."""
    for name, known in (columns or {}).items():
        if not isinstance(known, Column):
            raise ProgramError(
                f"columns={{{name!r}: fp.Column(bounds=…, keys=…)}}, not {type(known).__name__}"
            )
        cell = Cell(expressions.Column(name), schema.type_of(name), Scope())
        if known.bounds is not None:
            clamp(cell, known.bounds)
        if known.keys is not None:
            partitioning(Subject(schema), cell, known.keys)
    return dict(columns or {})
