"""The embedded engine: roots in, exact integers out.

The list of files of a locked DuckDB cannot grow, so a root with new files gets
a new DuckDB, and what is in memory moves there.
"""

import contextlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NoReturn

import duckdb

from fpinq.engines import reference
from fpinq.engines.duckdb import lines, parquet, sources, trial
from fpinq.engines.duckdb.database import Database, Looking
from fpinq.engines.duckdb.dialect import SQL
from fpinq.engines.files import Files, Pin, is_files, resolve
from fpinq.engines.owner import in_our_words, unreadable
from fpinq.engines.persons import persons_of
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.relations import Stored, StoredPersons
from fpinq.engines.sql.sources import Converted, as_relation, within_lengths
from fpinq.engines.sql.statistics import lower
from fpinq.engines.stopping import stopped_after
from fpinq.engines.text import Dialect
from fpinq.model.errors import BadData, DataChanged, EngineError, KernelViolation
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import Persons, Plan, roots_of
from fpinq.model.statistics import Integers, Statistic
from fpinq.model.transformations import Partitioning


class DuckDB:
    """Turns plans into exact integers with DuckDB. Safe to use from several threads."""

    # Whether the same steps are taken whatever the data is. A look at it may choose the faster of two ways,
    # but then one record can tip it for all rows, and whoever has a clock sees that.
    steady = False

    def __init__(self, *, steady: bool = False) -> None:
        self.steady = steady or self.steady
        self._lock = threading.RLock()
        self._folder = tempfile.mkdtemp(prefix="fpinq-")
        self._clean_up = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._spill = os.path.join(self._folder, "spill")
        self._links = parquet.Links(os.path.join(self._folder, "files"))
        self._tables: list[str] = []
        self._stored = 0  # how many there ever were
        self._roots: dict[str, Stored | StoredPersons] = {}
        self._pins: dict[str, tuple[Pin, ...]] = {}
        self._opened: Database | None = None
        _try(duckdb.__version__)

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
            sources = found.tables.values() if isinstance(found, StoredPersons) else [found]
            self._drop({source.relation for source in sources}.intersection(self._tables))

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """No copy stays of what is refused, in part or after it was read."""
        before = set(self._tables)
        try:
            yield
        except BaseException:
            self._drop(set(self._tables) - before)
            raise

    def _drop(self, relations: Iterable[str]) -> None:
        for relation in relations:
            self._database.connection.execute(f"DROP TABLE {relation}")
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
        linked, connection = self._links.to(files), self._database.connection
        found = parquet.columns_of(connection, linked)
        columns = sources.convert([(n, t, sources.identifier(n)) for n, t in found], schema)
        columns = within_lengths(columns, lengths, SQL)
        number = parquet.row_number(linked, dict(found))
        select, shape, raw = as_relation(columns, parquet.scan(linked), SQL, lazy=True, row=number)
        parquet.check(connection, linked, select, len(columns))
        source = Stored(f"({select})", shape, raw, "i")
        if number is None:  # the data owns the name of the row's number
            source = self._store(columns, parquet.scan(linked))
        if not files.hold():
            raise BadData("a file was changed while it was read: protect it again")
        return source

    def _add_frame(
        self, source: Any, schema: Mapping[str, Type] | None, lengths: Mapping[str, int]
    ) -> Stored:
        frame, columns = sources.in_memory(source, schema, self._describe)
        with self._database.incoming(frame):
            return self._store(within_lengths(columns, lengths, SQL), "incoming")

    def _describe(self, frame: object) -> Mapping[str, str]:
        with self._database.incoming(frame):
            return dict(self._database.describe("incoming"))

    def _store(self, columns: Sequence[Converted], scan: str) -> Stored:
        """A copy, in a table of ours."""
        relation = f"r{self._stored}"
        select, shape, _ = as_relation(columns, scan, SQL, lazy=False)
        self._database.connection.execute(f"CREATE TABLE {relation} AS {select}")
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
    ) -> list[Integers]:
        """Each statistic, exactly: of the table, or of the part with the same number.

        Raises DataChanged if a file is not the one that was protected, before it
        is read or once it was; EngineError, with a reference into the owner's log
        and nothing else, if DuckDB fails or is interrupted after these seconds.
        """
        self.check_unchanged(plan)
        database = self._database
        with database.cursor() as cursor, stopped_after(seconds, cursor.interrupt):
            lowering = Lowering(SQL, self._roots, Looking(database, cursor, self.steady))
            measurement = lower(lowering, lowering.plan(plan), by, statistics)
            cursor.execute(measurement.sql, measurement.parameters)
            if measurement.is_histogram:
                columns = cursor.fetchnumpy()
                found = measurement.read_columns([columns[name].tolist() for name in measurement.names])
            else:
                found = measurement.read(cursor.fetchall())
        self.check_unchanged(plan)
        return found

    @in_our_words(EngineError)
    def rows(self, plan: Plan) -> reference.Relation:
        """The rows of a plan: the door for tests. Nothing that an analyst can reach calls it."""
        self.check_unchanged(plan)
        database = self._database
        with database.cursor() as cursor:
            lowering = Lowering(SQL, self._roots, Looking(database, cursor, self.steady))
            table = lowering.plan(plan)
            cursor.execute(lowering.rows(table), lowering.parameters.given())
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
            if not all(pin.holds() for pin in self._pins[root]):
                raise DataChanged(root)

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
        """Opened when first needed: often that is a root with files."""
        with self._lock:
            if self._opened is None:
                self._opened = Database(spill=self._spill, steady=self.steady)
            return self._opened

    def _allow(self, files: Sequence[Pin]) -> None:
        """Make files readable: a new DuckDB, for a locked one cannot be told of them."""
        before = self._opened
        known = before.files if before is not None else frozenset()
        paths = known.union(pin.path for pin in files)
        if paths == known:
            return
        database = Database(paths, self._spill, steady=self.steady)
        if before is not None:
            for relation in self._tables:
                database.take_over(before, relation)
        # Measurements under way keep the old one until they end.
        self._opened = database


_trying = threading.RLock()
_tried: set[str] = set()


def _try(version: str) -> None:
    """Put this DuckDB to the trial, once in a process; UnfitEngine if it fails."""
    with _trying:
        if version in _tried:
            return
        _tried.add(version)  # the one that is tried passes here
        engine = DuckDB()
        try:
            trial.check(engine, version)
        except BaseException:
            _tried.discard(version)
            raise
        finally:
            engine.close()
