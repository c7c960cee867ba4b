"""The embedded engine: roots in, exact integers out.

The list of files of a locked DuckDB cannot grow, so a root with new files gets
a new DuckDB, and what is in memory moves there.
"""

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NoReturn

import duckdb

from fpinq.engines import reference
from fpinq.engines.duckdb import arrays, lines, parquet, sources, trial
from fpinq.engines.duckdb.database import MOST_TABLES, Database, Looking
from fpinq.engines.duckdb.dialect import SQL
from fpinq.engines.files import Files, Pin, is_files, resolve
from fpinq.engines.folders import Folder
from fpinq.engines.interface import Asked
from fpinq.engines.owner import in_our_words, unreadable
from fpinq.engines.persons import persons_of
from fpinq.engines.resources import resources
from fpinq.engines.sql.blocks import added, in_chunks
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.relations import Stored, StoredPersons
from fpinq.engines.sql.sources import Converted, as_relation, within_lengths
from fpinq.engines.sql.statistics import Measurement, lower
from fpinq.engines.stopping import stopped_after
from fpinq.engines.text import Dialect
from fpinq.model.costs import Costs
from fpinq.model.errors import BadData, DataChanged, EngineError, KernelViolation
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import Persons, Plan, roots_of
from fpinq.model.statistics import Integers, Statistic
from fpinq.model.transformations import Partitioning

# As many files and tables are taken over by a new database with every file that comes.
FEW_FILES = 16


class DuckDB:
    """Turns plans into exact integers with DuckDB. Safe to use from several threads."""

    # Whether the same steps are taken whatever the data is. A look at it may choose the faster of two ways,
    # but then one record can tip it for all rows, and whoever has a clock sees that.
    steady = False

    def __init__(self, *, steady: bool = False, memory_limit: object = None, threads: object = None) -> None:
        self.steady = steady or self.steady
        self.resources = resources(memory_limit, threads)
        self._lock = threading.RLock()
        folder = Folder()
        self._clean_up = weakref.finalize(self, folder.remove)
        self._spill = os.path.join(folder.path, "spill")
        self._links = parquet.Links(os.path.join(folder.path, "files"))
        self._tables: list[str] = []
        self._stored = 0  # how many there ever were
        self._roots: dict[str, Stored | StoredPersons] = {}
        self._pins: dict[str, tuple[Pin, ...]] = {}
        self._opened: Database | None = None
        # A file that every database of ours may read, and all that may be read.
        self._trial = os.path.join(folder.path, "trial.parquet")
        self._files = {self._trial}

    # ── roots ────────────────────────────────────────────────────────────────────────

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
        """Protect a table of rows under a name; its public schema.

        source: a path or glob of parquet or csv (or a list of them), a pandas
        or polars DataFrame, a pyarrow Table, a list of dicts. Parquet is read
        where it is at each measurement, everything else is copied now. A
        schema says which columns there are and of which types; it is needed if
        the data does not tell. The dialect says how text is written. BadData if
        the data is not as it says.
        """
        with self._lock, self._all_or_nothing():
            self._check_new(name)
            pins, relation = self._add(source, schema, dialect, lengths or {})
            self._roots[name] = relation
            self._pins[name] = pins
            return relation.schema

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
        """Protect several tables about the same persons; the shape of the root.

        A person is all rows of all tables with the same value in the unit
        column. Rows where it is null belong to nobody and are left out.
        """
        with self._lock, self._all_or_nothing():
            self._check_new(name)
            files = [resolve(data) for data in tables.values() if is_files(data)]
            self._allow([pin for found in files if found.format == "parquet" for pin in found.pins])
            added = {
                table: self._add(
                    data,
                    (schemas or {}).get(table),
                    (dialects or {}).get(table),
                    (lengths or {}).get(table, {}),
                )
                for table, data in tables.items()
            }
            stored = {table: relation for table, (_, relation) in added.items()}
            shape = persons_of(unit, {table: relation.schema for table, relation in stored.items()})
            self._roots[name] = StoredPersons(shape, stored)
            self._pins[name] = tuple(pin for pins, _ in added.values() for pin in pins)
            return shape

    def costs(self) -> Costs:
        """What operators and steps take in DuckDB."""
        return SQL.costs

    def owns(self, source: object) -> bool:
        """Nothing: others can read what it reads."""
        return False

    def fingerprint(self, source: object) -> NoReturn:
        """There is no source of its own."""
        raise KernelViolation("a fingerprint of data that others can read")

    def forget(self, name: str) -> None:
        """Give up a root that was refused after all: its name is free again, and no copy stays."""
        with self._lock:
            found = self._roots.pop(name)
            del self._pins[name]
            self._database.lowerings.forget()
            sources = found.tables.values() if isinstance(found, StoredPersons) else [found]
            self._drop({str(source.relation) for source in sources}.intersection(self._tables))

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """No copy stays of what is refused, in part or after it was read."""
        before = len(self._tables)
        try:
            yield
        except BaseException:
            self._drop(self._tables[before:])
            raise

    def _drop(self, relations: Iterable[str]) -> None:
        for relation in relations:
            self._open_one.connection.execute(f"DROP TABLE {relation}")
            self._tables.remove(relation)

    def _check_new(self, name: str) -> None:
        if name in self._roots:
            raise BadData(f"there is a root {name!r} already")

    def _add(
        self,
        source: object,
        schema: Mapping[str, Type] | None,
        dialect: Dialect | None,
        lengths: Mapping[str, int],
    ) -> tuple[tuple[Pin, ...], Stored]:
        if not is_files(source):
            return (), self._add_frame(source, schema, lengths)
        files = resolve(source)
        if files.format == "parquet":
            return files.pins, self._add_parquet(files, schema, lengths)
        return files.pins, self._add_text(files, schema, dialect, lengths)

    def _add_text(
        self,
        files: Files,
        schema: Mapping[str, Type] | None,
        dialect: Dialect | None,
        lengths: Mapping[str, int],
    ) -> Stored:
        _once("rows", trial.check_rows, self)
        relation = f"r{self._stored}"
        shape = lines.store(self._database, relation, files, schema, dialect, lengths)
        self._tables.append(relation)
        self._stored += 1
        return Stored(relation, shape, row="rowid")

    def _add_parquet(
        self, files: Files, schema: Mapping[str, Type] | None, lengths: Mapping[str, int]
    ) -> Stored:
        """Files to be read where they are, once checked to the end."""
        self._allow(files.pins)
        _once("file", trial.check_file, self, self._trial)
        linked = self._links.to(files)
        with self._reading(files.pins) as connection:
            found = parquet.columns_of(connection, linked)
            columns = sources.convert([(n, t, sources.identifier(n)) for n, t in found], schema)
            columns = within_lengths(columns, lengths, SQL)
            number = parquet.row_number(linked, dict(found))
            scan, shape, raw = as_relation(columns, parquet.scan(linked), SQL, lazy=True, row=number)
            parquet.check(connection, linked, scan.select, len(columns))
        source = Stored(scan, shape, raw, "i")
        if number is None:  # the data owns the name of the row's number
            source = self._store(self._database, columns, parquet.scan(linked))
        if not files.hold():
            raise BadData("a file was changed while it was read: protect it again")
        return source

    def _add_frame(
        self, source: Any, schema: Mapping[str, Type] | None, lengths: Mapping[str, int]
    ) -> Stored:
        _once("rows", trial.check_rows, self)
        frame, columns = sources.in_memory(source, schema, self._describe)
        with self._open_one.incoming(frame):
            return self._store(self._open_one, within_lengths(columns, lengths, SQL), "incoming")

    def _describe(self, frame: object) -> Mapping[str, str]:
        with self._open_one.incoming(frame):
            return dict(self._open_one.describe("incoming"))

    def _store(self, database: Database, columns: Sequence[Converted], scan: str) -> Stored:
        """A copy, in a table of ours."""
        relation = f"r{self._stored}"
        found, shape, _ = as_relation(columns, scan, SQL, lazy=False)
        database.connection.execute(f"CREATE TABLE {relation} AS {found.select}")
        self._tables.append(relation)
        self._stored += 1
        return Stored(relation, shape, row="rowid")

    # ── measuring ────────────────────────────────────────────────────────────────────

    @in_our_words(EngineError)
    def measure(
        self,
        plan: Plan,
        by: Partitioning | None,
        statistics: Sequence[Statistic],
        seconds: float = inf,
    ) -> Sequence[Integers]:
        """Each statistic, exactly: of the table, or of the part of its number; a single one of all.

        Raises DataChanged if a file is not the one that was protected, before it
        is read or once it was; EngineError, with a reference into the owner's log
        and nothing else, if DuckDB fails or is interrupted after these seconds.
        """
        self.check_unchanged(plan)
        database = self._database
        with database.cursor() as cursor, stopped_after(seconds, cursor.interrupt):
            looking = Looking(database, cursor, self.steady)
            chunks = in_chunks(plan, MOST_TABLES)
            found = added(self._found(looking, chunk, by, statistics) for chunk in chunks)
        self.check_unchanged(plan)
        return found

    def _found(
        self, looking: Looking, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]
    ) -> Sequence[Integers]:
        begun = looking.database.lowerings.of(plan, lambda: Lowering(SQL, self._roots, looking))
        return _read(looking.cursor, lower(*begun, by, statistics))

    @in_our_words(EngineError)
    def rows(self, plan: Plan) -> reference.Relation:
        """The rows of a plan: the door for tests. Nothing that an analyst can reach calls it."""
        self.check_unchanged(plan)
        database = self._database
        with database.cursor() as cursor:
            lowering = Lowering(SQL, self._roots, Looking(database, cursor, self.steady))
            table = lowering.plan(plan)
            sql = lowering.rows(table)
            cursor.execute(sql, lowering.parameters.of(sql))
            return reference.Relation(table.schema, tuple(cursor.fetchall()))

    def explain(
        self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]
    ) -> tuple[str, str]:
        """The SQL text of a measurement and DuckDB's plan for it: for owners and tests."""
        database = self._database
        with database.cursor() as cursor:
            lowering = Lowering(SQL, self._roots, Looking(database, cursor, self.steady))
            measurement = lower(lowering, lowering.plan(plan), by, statistics)
            cursor.execute(f"EXPLAIN {measurement.sql}", measurement.parameters)
            return measurement.sql, "\n".join(str(row[1]) for row in cursor.fetchall())

    @in_our_words(unreadable)
    def rows_in(self, root: str) -> dict[str, int]:
        """How many rows each table of a root has: for its owner, who promised a number."""
        found = self._roots[root]
        tables = found.tables if isinstance(found, StoredPersons) else {root: found}
        with self._database.cursor() as cursor:
            return {
                table: int(cursor.execute(f"SELECT count(*) FROM {source.relation}").fetchall()[0][0])
                for table, source in tables.items()
            }

    def check_unchanged(self, plan: Plan) -> None:
        """DataChanged if a file that the plan reads is not the one that was protected."""
        for root in roots_of(plan):
            for pin in self._pins[root]:
                if not pin.holds():
                    raise DataChanged(root)

    def check_asked(self, asked: Iterable[Asked]) -> None:
        """Everything can be asked."""

    def close(self) -> None:
        """Forget all data."""
        with self._lock:
            if self._opened is not None:
                self._opened.connection.close()
            self._roots.clear()
            self._clean_up()

    # ── the database of now ──────────────────────────────────────────────────────────

    @property
    def _database(self) -> Database:
        """One that may read all files, opened when first needed.

        A locked one cannot be told of more, so there is a new one then, which takes over the tables.
        Measurements under way keep the old one until they end.
        """
        with self._lock:
            before = self._opened
            if before is not None and len(before.files) == len(self._files):
                return before
            database = self._open(self._files)
            if before is not None:
                for relation in self._tables:
                    database.take_over(before, relation)
            self._opened = database
            return database

    @property
    def _open_one(self) -> Database:
        """The one that is open: tables are made there, whatever files wait to be read."""
        return self._opened or self._database

    @contextlib.contextmanager
    def _reading(self, files: Sequence[Pin]) -> Iterator[duckdb.DuckDBPyConnection]:
        """One to look at files with. Where much is here already, for the moment: the next that measures
        takes over for all files that came meanwhile.
        """
        if len(self._files) + len(self._tables) <= FEW_FILES:
            yield self._database.connection
            return
        own = self._open([self._trial, *(pin.path for pin in files)])
        try:
            yield own.connection
        finally:
            own.connection.close()

    def _open(self, files: Iterable[str]) -> Database:
        return Database(
            files,
            self._spill,
            of_tables=frozenset(files) == {self._trial},
            steady=self.steady,
            resources=self.resources,
        )

    def _allow(self, files: Sequence[Pin]) -> None:
        """These may be read, from the next database on."""
        self._files.update(pin.path for pin in files)


def _read(cursor: duckdb.DuckDBPyConnection, measurement: Measurement) -> Sequence[Integers]:
    if arrays.is_in_arrays(measurement):
        return arrays.fetch(cursor, measurement)
    # No parameters are none: an empty dict takes DuckDB a tenth of a millisecond.
    cursor.execute(measurement.sql, measurement.parameters or None)
    if measurement.is_histogram:
        return [arrays.counts(cursor)]
    return measurement.read(cursor.fetchall())


_trying = threading.RLock()
_tried: set[tuple[str, str]] = set()


def _once(kind: str, check: Callable[..., None], engine: DuckDB, *given: str) -> None:
    """Put this DuckDB to a trial, once in a process; UnfitEngine if it fails."""
    tried = (duckdb.__version__, kind)
    with _trying:
        if tried in _tried:
            return
        _tried.add(tried)  # the one that is tried passes here
        try:
            check(engine, duckdb.__version__, *given)
        except BaseException:
            _tried.discard(tried)
            raise
