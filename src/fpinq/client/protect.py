"""protect and public: how tables come into being."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import PurePath
from typing import Any, cast

from fpinq.client.algebra import concat
from fpinq.client.amounts import plain_amount
from fpinq.client.bounds import Known, clamp
from fpinq.client.budgets import Budget
from fpinq.client.edge import edge
from fpinq.client.facts import Bound, Facts, Made, Unbound, Within
from fpinq.client.keys import keyed
from fpinq.client.rows import Call, Cell, column_type
from fpinq.client.sql import Tables
from fpinq.client.subjects import Subject
from fpinq.client.systems import (
    fresh_root,
    fresh_variable,
    system_for,
)
from fpinq.client.table import Table
from fpinq.engines.in_memory import relation
from fpinq.engines.resources import resources
from fpinq.engines.rows import written
from fpinq.engines.text import Dialect
from fpinq.model import expressions
from fpinq.model.actions import Assign
from fpinq.model.errors import BadTransformation, ProgramError, suggest
from fpinq.model.expressions import Schema, Type
from fpinq.model.notions import Total, total
from fpinq.model.plans import Flatten, Persons, PersonTable, Plan, Shape, Term
from fpinq.model.transformations import LiteralTable
from fpinq.model.visible import visible
from fpinq.runtime import InMemory, ProtectedSystem
from fpinq.runtime.registration import Given, Offer, Taken, register

# What the one table of a root of rows is called where tables have names.
ONE = "the data"
# How many blocks of a size are put together.
FEW_BLOCKS = 8
# Hashing more bytes than this is worth a line on the terminal.
LONG = 10**9


class ReadOffData(UserWarning):
    """A schema that nobody stated: the types of columns were read off their values."""


@edge
def protect(
    data: object,
    *,
    budget: object,
    name: str | None = None,
    unit: str | None = None,
    rows_per_unit: int | Mapping[str, int] | None = None,
    rows_at_most: int | Mapping[str, int] | None = None,
    columns: Mapping[str, Any] | None = None,
    schema: Mapping[str, object] | None = None,
    dialect: object = None,
    ledger: object = None,
    anchor: object = None,
    engine: object = "duckdb",
    memory_limit: object = None,
    threads: object = None,
) -> Any:
    """A protected table: whoever asks, and whatever they ask, no record costs more than the budget.

    data is a parquet or csv path (or glob), a pandas, polars or pyarrow table,
    a list of dicts, or with engine=fp.Postgres(…) the name of a table. With
    unit= a person rather than a record is protected; a dict of tables about the
    same people, with rows_per_unit= for each, gives a dict of tables that share
    the budget.

    rows_at_most= is a public promise of how many rows there are, or of each of
    several tables; data with more rows is BadData.

    schema= states the types of the columns; where csv, dicts or objects come
    without one it is read off the data, with a warning (ReadOffData). dialect=
    (fp.Dialect) states how csv is written, if not with commas and ISO dates.

    With ledger= (a file, or a postgresql:// address) the budget survives the
    process: the same data under the same name goes on with what is left,
    changed data is DataChanged, and the same data under another name SameData.
    With anchor= (a file elsewhere, or a command as a list) an older copy of the
    ledger that is put back is LedgerRolledBack; without, it is not noticed.

    memory_limit= ("2GB", "4 GiB", a number of bytes) and threads= are what DuckDB
    may use: said where data is first protected, for all data with the same
    engine and ledger.
    """
    label = _named(data, name, ledger)
    promised = _promised(rows_at_most, data)
    system = system_for(engine, ledger, anchor, resources(memory_limit, threads))
    if name is None and isinstance(data, str) and ":" not in data and system.engine.owns(data):
        label = data  # a table's name is all of it: clinic.visits
    root = _Root(system, label, budget, recorded=ledger is not None, rows_at_most=promised)
    if unit is None:
        if rows_per_unit is not None:
            raise ProgramError("rows_per_unit needs unit=…: the column that says whose row it is")
        if isinstance(data, Mapping):
            raise ProgramError(
                "several tables must be about the same people: say unit=… and rows_per_unit={…}"
            )
        return root.of_rows(data, schema, columns, _dialects({"": data}, dialect).get(""))
    if not isinstance(data, Mapping):
        one = root.label
        tables, dialects = {one: data}, _dialects({one: data}, dialect)
        most_of, schemas, known_of = {one: rows_per_unit}, {one: schema}, {one: columns}
        return root.of_persons(tables, unit, most_of, schemas, known_of, dialects)[one]
    if not data:
        raise ProgramError("no tables to protect")
    most = rows_per_unit if isinstance(rows_per_unit, Mapping) else dict.fromkeys(data, rows_per_unit)
    known = columns or {}
    if all(isinstance(column, Known) for column in known.values()):
        known = {table: dict(known) for table in data}
    return root.of_persons(data, unit, most, schema or {}, known, _dialects(data, dialect))


@edge
def public(rows: object, schema: Mapping[str, object] | None = None) -> Table:
    """A literal table: public, with scaling factor 0. A list of dicts or a data frame."""
    table = relation(rows, _types(schema))
    literal = LiteralTable(table.schema, table.rows)
    literal.shape()
    return Table(Facts(table.schema, Made(f"public, {len(table.rows)} rows"), Unbound(literal)))


class _Root:
    """A root in the making: its system, its names and its budget."""

    def __init__(
        self,
        system: ProtectedSystem,
        label: str,
        budget: object,
        *,
        recorded: bool = False,
        block_of: str | None = None,
        rows_at_most: Mapping[str, int] | None = None,
    ) -> None:
        self.system = system
        self.label = label
        self.shared = frozenset({budget}) if isinstance(budget, Budget) else frozenset()
        promised = total(plain_amount(budget.remaining if isinstance(budget, Budget) else budget))
        self.budget: Total = promised
        # In a ledger a name is what data is found by again; otherwise one that is taken gets a number.
        self.name = label if recorded else fresh_root(system, label)
        self.recorded = recorded
        self.block_of = block_of
        self.rows_at_most = rows_at_most or {}

    def of_rows(
        self,
        data: object,
        schema: Mapping[str, object] | None,
        columns: Mapping[str, Known] | None,
        dialect: Dialect | None,
    ) -> Table:
        """The table of a root whose records are rows."""
        given = Given(data, _types(schema), dialect, _lengths(columns), self.rows_at_most.get(ONE))
        taken = self._register({ONE: given}, None, lambda shape: _known(columns, cast(Schema, shape)))
        assert isinstance(taken.shape, Schema)
        facts = Facts(
            taken.shape,
            Made(self.label, read_off=bool(taken.read_off), whole=True),
            Bound(self.system, self.name),
            roots={self.name: self.label},
            columns=_known(columns, taken.shape),
            budgets=self.shared,
        )
        return Table(facts)

    def of_persons(
        self,
        data: Mapping[str, object],
        unit: str,
        most: Mapping[str, Any],
        schemas: Mapping[str, Any],
        columns: Mapping[str, Any],
        dialects: Mapping[str, Dialect],
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
        given = {
            table: Given(
                source,
                _types(schemas.get(table)),
                dialects.get(table),
                _lengths(columns.get(table)),
                self.rows_at_most.get(table, self.rows_at_most.get(ONE)),
            )
            for table, source in data.items()
        }
        taken = self._register(
            given, unit, lambda shape: [_known(columns.get(t), cast(Persons, shape).table(t)) for t in data]
        )
        persons = taken.shape
        assert isinstance(persons, Persons)
        known = {t: _known(columns.get(t), persons.table(t)) for t in data}
        read_off = bool(taken.read_off)
        return Tables({t: self._of_person(t, persons, unit, most[t], known[t], read_off) for t in data})

    def _of_person(
        self,
        table: str,
        persons: Persons,
        unit: str,
        most: int,
        known: Mapping[str, Known],
        read_off: bool,
    ) -> Table:
        body, variable = PersonTable(table, most), fresh_variable()
        self.system.act(Assign(variable, Flatten(body), (self.name,)))
        facts = Facts(
            persons.table(table),
            Made(f"{table}, at most {most} per {unit}", rows_per_unit=most, read_off=read_off, whole=True),
            Bound(self.system, variable),
            roots={self.name: self.label},
            columns=known,
            budgets=self.shared,
            within=Within(self.name, body, frozenset({unit})),
        )
        return Table(facts)

    def _register(
        self, tables: Mapping[str, Given], unit: str | None, check: Callable[[Shape], object]
    ) -> Taken:
        is_new = self.system.root(self.name) is None
        taken = register(
            self.system,
            self.system.engine,
            Offer(self.name, self.budget, tables, unit, self.block_of),
            lambda shape, untold: check(shape),
            recorded=self.recorded,
            progress=hashing(self.name),
        )
        if is_new:
            _warn(self.label, taken)
        return taken


def _warn(label: str, taken: Taken) -> None:
    """Show a schema that was read off the data, in the words to state it with."""
    shape, untold = taken.shape, taken.read_off
    if not untold:
        return
    tables = {t: written(schema) for t, schema in shape.tables} if isinstance(shape, Persons) else {}
    listed = "{" + ", ".join(f"{t!r}: {tables[t]}" for t in untold if t in tables) + "}"
    schema = (
        written(shape) if isinstance(shape, Schema) else tables[label] if [*tables] == [label] else listed
    )
    message = (
        f"the schema of {label!r} was read off the data: schema={schema}. "
        "It is public, and from now on a promise of yours: state it, and no record has a say in it"
    )
    # Whose call of protect it was, not ours.
    warnings.warn(message, ReadOffData, stacklevel=6)


def append(
    table: Table, data: object, *, budget: object, name: str | None = None, dialect: Dialect | None = None
) -> Table:
    """A table that has grown by a block: a root of its own, with a budget of its own.

    table is a protected one, as protect or append gave it. A query of the
    result charges every block; one of the block alone, which is protected under
    its name, charges only that.
    """
    facts, system = table.facts, table.facts.system
    if not isinstance(system, ProtectedSystem) or not facts.made.whole:
        raise BadTransformation(
            "append needs a table as protect or append gave it: append first, then transform"
        )
    ((first, owner_s),) = _first_block(facts).roots.items()
    label = name if name is not None else f"{owner_s}/{_named(data, None, None)}"
    recorded = not isinstance(system.record, InMemory)
    if recorded and name is None and not isinstance(data, str | PathLike):
        raise _nameless()
    block = _Root(system, label, budget, recorded=recorded, block_of=first)
    schema = {column: type_.value for column, type_ in facts.schema.columns}
    registered = system.root(first)
    assert registered is not None
    unit = registered.unit
    if unit is None:
        return Table(_grown(facts, block.of_rows(data, schema, facts.columns, dialect).facts))
    plan = _plan(facts, system)
    while not isinstance(plan, Term) or not isinstance(plan.transformation, Flatten):
        plan = plan.arguments[0]  # type: ignore[union-attr]
    body = plan.transformation.body
    assert isinstance(body, PersonTable)
    one = body.table
    tables, dialects = {one: data}, _dialects({one: data}, dialect)
    known, most = {one: facts.columns}, {one: body.at_most}
    added = block.of_persons(tables, unit, most, {one: schema}, known, dialects)[one]
    return Table(_grown(facts, added.facts))


def _first_block(table: Facts) -> Facts:
    """The table of its first root."""
    while table.made.parents:
        table = table.made.parents[0]
    return table


def _grown(table: Facts, block: Facts) -> Facts:
    """The concat of a table's blocks and one more. So many of the same size become one: few at a time are
    put together, few times on top of each other.
    """
    parts = [*(table.made.parents or (table,)), block]
    while len(parts) > FEW_BLOCKS and _are_even(parts[-FEW_BLOCKS:]):
        parts[-FEW_BLOCKS:] = [concat(*parts[-FEW_BLOCKS:])]
    return concat(*parts)


def _are_even(parts: Sequence[Facts]) -> bool:
    return len({len(part.roots) for part in parts}) == 1


def _plan(facts: Facts, system: ProtectedSystem) -> Plan:
    return system.describe(facts.binding.variable_in(system)).plan


def _promised(rows_at_most: int | Mapping[str, int] | None, data: object) -> dict[str, int]:
    """The rows that an owner promises, by table."""
    if rows_at_most is None:
        return {}
    tables = list(data) if isinstance(data, Mapping) else [ONE]
    given = rows_at_most if isinstance(rows_at_most, Mapping) else dict.fromkeys(tables, rows_at_most)
    for table, most in given.items():
        if table not in tables:
            raise ProgramError(f"rows_at_most: unknown table {table!r}{suggest(table, tables)}")
        if type(most) is not int or most < 1:
            raise ProgramError("rows_at_most is a whole number ≥ 1, or one for each table")
    return dict(given)


def hashing(name: str) -> Callable[[int, int], None]:
    """Shows how far a long hashing is, to whoever sits before a terminal."""

    def show(done: int, total: int) -> None:
        if total >= LONG and sys.stderr.isatty():
            end = "\n" if done == total else ""
            print(
                f"\r{visible(name)}: hashing {done / total:4.0%} of {total / 1e9:.1f} GB",
                end=end,
                file=sys.stderr,
            )

    return show


def _nameless() -> ProgramError:
    return ProgramError("a ledger finds data again by its name: say name=… for data in memory")


def _named(data: object, name: str | None, ledger: object) -> str:
    """The root's name: the one given, a file's, or `data`."""
    if name is None:
        if isinstance(data, str | PathLike):
            return PurePath(fspath(data)).name.partition(".")[0].strip("*?[]") or "data"
        if ledger is not None:
            raise _nameless()
        return "data"
    if type(name) is not str or not name:
        raise ProgramError("name is a text")
    return name


def _types(schema: Mapping[str, object] | None) -> dict[str, Type] | None:
    """The schema that the owner states."""
    if schema is None:
        return None
    if not isinstance(schema, Mapping) or not schema:
        raise ProgramError('schema is a dict from column names to types, such as {"age": "int64"}')
    return {name: column_type(type_) for name, type_ in schema.items()}


def _dialects(data: Mapping[str, object], dialect: object) -> dict[str, Dialect]:
    """The dialect of each table: one for all, or one for each."""
    stated = dialect if isinstance(dialect, Mapping) else dict.fromkeys(data, dialect)
    if unknown := [table for table in stated if table not in data]:
        raise ProgramError(f"unknown table {unknown[0]!r}{suggest(unknown[0], data)}")
    if not all(one is None or isinstance(one, Dialect) for one in stated.values()):
        raise ProgramError("dialect is an fp.Dialect, such as fp.Dialect(delimiter=';')")
    return {table: one for table, one in stated.items() if isinstance(one, Dialect)}


def _lengths(columns: Mapping[str, Known] | None) -> dict[str, int]:
    """The public maximal lengths of texts."""
    for name, known in (columns or {}).items():
        if not isinstance(known, Known):
            raise ProgramError(
                f"columns={{{name!r}: fp.Column(bounds=…, keys=…)}}, not {type(known).__name__}"
            )
    return {name: c.max_length for name, c in (columns or {}).items() if c.max_length is not None}


def _known(columns: Mapping[str, Known] | None, schema: Schema) -> dict[str, Known]:
    """Public metadata, if it fits the columns."""
    for name, known in (columns or {}).items():
        cell = Cell(expressions.Column(name), schema.type_of(name), Call())
        if known.bounds is not None:
            clamp(cell, known.bounds)
        if known.keys is not None:
            keyed(Subject(schema), cell, known.keys)
        if known.max_length is not None and cell.type is not Type.STRING:
            raise ProgramError(f"only text has a max_length, and {name!r} is {cell.type.value}")
    return dict(columns or {})
