"""The reference engine behind the engines' interface: for documentation, tests and small tables."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, NoReturn

from fpinq.engines import frames, reference, rows, text
from fpinq.engines.files import Files, is_files, resolve
from fpinq.engines.interface import Asked
from fpinq.engines.owner import in_our_words, unreadable
from fpinq.engines.persons import persons_of
from fpinq.engines.reference import PersonBag, Relation
from fpinq.engines.stopping import abandoned_after
from fpinq.engines.text import Dialect
from fpinq.model.costs import Costs, Times
from fpinq.model.errors import BadData, DataChanged, EngineError, KernelViolation
from fpinq.model.expressions import Schema, Type, Value
from fpinq.model.operators import MAX_STRING, OPERATORS
from fpinq.model.plans import Persons, Plan, roots_of
from fpinq.model.statistics import Integers, Statistic
from fpinq.model.transformations import Partitioning

# What Python takes, in units: about the same for everything, by bench/work.py (docs/decisions/0118).
COSTS = Costs(
    "Python",
    dict.fromkeys(OPERATORS, Times(250, 6)),
    column=Times(100, 0),
    passed=250,
    compared=Times(100, 1),
    keyed=Times(50, 1),
    ordered=Times(20, 1),
    clamped=150,
)


class ReferenceEngine:
    """Plain Python bags. Reads rows that are in memory, and text as it is defined."""

    def __init__(self) -> None:
        self._database: dict[str, Relation | PersonBag] = {}
        self._files: dict[str, list[Files]] = {}

    @in_our_words(unreadable)
    def add_root(
        self,
        name: str,
        source: object,
        schema: Mapping[str, Type] | None = None,
        *,
        dialect: Dialect | None = None,
        lengths: Mapping[str, int] | None = None,
    ) -> Schema:
        """Take a copy of the rows as a root's table."""
        table, files = _read(source, schema, dialect, lengths)
        self._database[name], self._files[name] = table, files
        return table.schema

    @in_our_words(unreadable)
    def add_persons(
        self,
        name: str,
        tables: Mapping[str, object],
        unit: str,
        schemas: Mapping[str, Mapping[str, Type]] | None = None,
        *,
        dialects: Mapping[str, Dialect] | None = None,
        lengths: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Persons:
        """Take a copy of several tables as a root of persons. Rows whose unit is null belong to nobody."""
        found = {
            t: _read(source, (schemas or {}).get(t), (dialects or {}).get(t), (lengths or {}).get(t))
            for t, source in tables.items()
        }
        relations = {t: table for t, (table, _) in found.items()}
        shape = persons_of(unit, {t: table.schema for t, table in relations.items()})
        empty = {t: Relation(table.schema, ()) for t, table in relations.items()}
        rows: dict[Value, dict[str, list[tuple[Value, ...]]]] = {}
        for t, table in relations.items():
            position = table.schema.names().index(unit)
            for record in table.rows:
                if record[position] is not None:
                    rows.setdefault(record[position], {}).setdefault(t, []).append(record)
        persons = tuple(
            {**empty, **{t: Relation(relations[t].schema, tuple(records)) for t, records in own.items()}}
            for own in rows.values()
        )
        self._database[name] = PersonBag(shape, persons)
        self._files[name] = [one for _, files in found.values() for one in files]
        return shape

    @in_our_words(EngineError)
    def measure(
        self,
        plan: Plan,
        by: Partitioning | None,
        statistics: Sequence[Statistic],
        seconds: float = inf,
    ) -> Sequence[Integers]:
        """Each statistic, exactly: of the table, or of the part of its number; a single one of all."""
        return abandoned_after(
            seconds, lambda: reference.measure(reference.compute(plan, self._database), by, statistics)
        )

    def costs(self) -> Costs:
        """What operators and steps take in Python."""
        return COSTS

    def owns(self, source: object) -> bool:
        """Nothing: others can read what it reads."""
        return False

    def fingerprint(self, source: object) -> NoReturn:
        """There is no source of its own."""
        raise KernelViolation("a fingerprint of data that others can read")

    def rows(self, plan: Plan) -> Relation:
        """The rows of a plan: the door for tests. Nothing that an analyst can reach calls it."""
        return reference.compute(plan, self._database)

    def check_unchanged(self, plan: Plan) -> None:
        """DataChanged if a file that the plan is about is not the one that was protected."""
        for root in roots_of(plan):
            if not all(files.hold() for files in self._files.get(root, ())):
                raise DataChanged(root)

    def check_asked(self, asked: Iterable[Asked]) -> None:
        """Everything can be asked."""

    def rows_in(self, root: str) -> dict[str, int]:
        """How many rows each table of a root has: for its owner, who promised a number."""
        found = self._database[root]
        if isinstance(found, Relation):
            return {root: len(found.rows)}
        tables = [table for table, _ in found.shape.tables]
        return {table: sum(len(person[table].rows) for person in found.persons) for table in tables}

    def forget(self, name: str) -> None:
        """Give up a root that was refused after all."""
        del self._database[name], self._files[name]

    def close(self) -> None:
        """Forget the data."""
        self._database.clear()
        self._files.clear()


def _read(
    source: object,
    schema: Mapping[str, Type] | None,
    dialect: Dialect | None,
    lengths: Mapping[str, int] | None,
) -> tuple[Relation, list[Files]]:
    """The rows of a source, and the files they are in."""
    files = resolve(source) if is_files(source) else None
    found = relation(source, schema) if files is None else of_text(files, schema, dialect)
    return within_lengths(found, lengths or {}), [] if files is None else [files]


def relation(source: object, types: Mapping[str, Type] | None = None) -> Relation:
    """What is in memory as a relation; types that nobody states are read off the values."""
    typed = frames.is_frame(source)
    columns = frames.of_frame(source, types) if typed else rows.of_rows(_rows(source), types)
    schema = Schema(tuple((name, type_) for name, (type_, _) in columns.items()))
    return Relation(schema, tuple(zip(*(values for _, values in columns.values()), strict=True)))


def of_text(files: Files, types: Mapping[str, Type] | None, dialect: Dialect | None) -> Relation:
    """Files of text as a relation."""
    if files.format == "parquet":
        raise BadData("the reference engine reads no parquet: use engine='duckdb'")
    found, rows = text.read({path: _bytes(path) for path in files.paths}, types, dialect)
    if not files.hold():
        raise BadData("a file was changed while it was read: protect it again")
    return Relation(Schema.of(found), tuple(rows))


def _bytes(path: str) -> bytes:
    with text.opened(path) as file:
        return file.read()


def within_lengths(table: Relation, lengths: Mapping[str, int]) -> Relation:
    """The relation with null in place of every text that is longer than its column's public length."""
    most = [lengths.get(name, MAX_STRING) for name in table.schema.names()]
    rows = (tuple(map(_within, record, most)) for record in table.rows)
    return Relation(table.schema, tuple(rows))


def _within(value: Value, most: int) -> Value:
    return None if isinstance(value, str) and len(value) > most else value


def _rows(source: object) -> Sequence[Mapping[str, Any]]:
    if not isinstance(source, list | tuple):
        raise BadData(
            "the reference engine takes a list of dicts, a data frame or csv files; else use engine='duckdb'"
        )
    if not rows.is_rows(source):
        raise BadData("rows must be dicts from column names to values, such as {'age': 37}")
    return source
