"""One locked, in-memory DuckDB.

Locked means: no files but the ones it was opened with, no extensions, no
Python variables, no way to change that. Analysts never send SQL; this is the
second wall.
"""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import duckdb

from fpinq.engines.duckdb import sampling
from fpinq.engines.duckdb.sources import quote
from fpinq.engines.resources import UNSAID, Resources
from fpinq.engines.sql.expressions import Parameters
from fpinq.engines.sql.lowerings import Lowerings
from fpinq.engines.sql.relations import Stored
from fpinq.model.frozen import dataclass

# What moves work into the reading of a file, or believes its footer's statistics (docs/decisions/0060).
# Without these a file is asked for columns and nothing else, however they are encoded.
INTO_READING = (
    "filter_pushdown",
    "join_filter_pushdown",
    "late_materialization",
    "partial_aggregate_pushdown",
    "row_group_pruner",
    "scalar_fn_pushdown",
    "statistics_propagation",
    "type_pushdown",
)
# What chooses by the number of rows which side of a join is kept in memory, or how the first rows are found:
# one record could tip it (docs/decisions/0062). Filters that are pulled up come down again by these only.
BY_SIZE = ("build_side_probe_side", "filter_pullup", "join_order", "top_n")
# What goes by the least and the greatest values of a table. Of one of our own they are true, and make
# grouping and adding cheaper; but one record can tip it (docs/decisions/0125).
BY_VALUES = ("statistics_propagation",)
# How many bounds per table are kept ready: each takes eight bytes per row at the most.
_MAX_CUTS = 8
# How many tables one statement puts together: 0.15 ms each so far, and twenty times that of 10,000.
MOST_TABLES = 500
# How many samples are remembered.
_MAX_SAMPLES = 1_000


class Database:
    """A DuckDB that can read some files and nothing else. Each thread uses a cursor of its own."""

    def __init__(
        self,
        files: Iterable[str] = (),
        spill: str = "",
        *,
        of_tables: bool = False,
        steady: bool = False,
        resources: Resources = UNSAID,
    ) -> None:
        self.files = frozenset(files)
        self.connection = duckdb.connect(
            ":memory:",
            config={
                "allow_community_extensions": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                # A file is read, never remembered: some versions tell a new one by its second and its size.
                "enable_external_file_cache": "false",
                # A plan of 250 joins, the deepest there is, nests 2,250 times.
                "max_expression_depth": "4000",
                "pandas_analyze_sample": "100000",
                "python_enable_replacements": "false",
                "temp_directory": spill,
                **_settings(resources),
            },
        )
        known = {
            name for (name,) in self.connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
        }
        disabled = ",".join(name for name in _disabled(of_tables, steady) if name in known)
        self.connection.execute(f"SET disabled_optimizers = '{disabled}'")
        allowed = ", ".join(quote(path) for path in sorted(self.files))
        self.connection.execute(f"SET allowed_paths = [{allowed}]")
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")
        # Plans as text, in which tables of this database have their names.
        self.lowerings = Lowerings()
        self._lock, self._cutting = threading.Lock(), threading.Lock()
        self._cuts: dict[tuple[str, int, int], str] = {}
        self._rare: dict[tuple[str, ...], bool] = {}

    @contextlib.contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for one measurement."""
        cursor = self.connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def describe(self, source: str) -> list[tuple[str, str]]:
        """The columns of a relation and their types."""
        rows = self.connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        return [(name, type_) for name, type_, *_ in rows]

    @contextlib.contextmanager
    def incoming(self, frame: object) -> Iterator[None]:
        """A Python object as the relation `incoming`, for a moment."""
        self.connection.register("incoming", frame)
        try:
            yield
        finally:
            self.connection.unregister("incoming")

    def take_over(self, other: "Database", relation: str) -> None:
        """A copy of another DuckDB's table."""
        with other.cursor() as cursor, self.incoming(_Stream(cursor.sql(f"SELECT * FROM {relation}"))):
            self.connection.execute(f"CREATE TABLE {relation} AS SELECT * FROM incoming")

    def cut(self, cursor: duckdb.DuckDBPyConnection, source: Stored, unit: int, at_most: int) -> str | None:
        """The relation of the rows that are not among a person's first at_most, computed once.

        A window over the whole table for every measurement would cost fifty
        times the measurement. None if there is no room for one more bound.
        """
        key = (str(source.relation), unit, at_most)
        with self._cutting:  # others wait for it rather than compute it too
            if key not in self._cuts:
                if source.row is None or sum(key[0] == name for name, *_ in self._cuts) >= _MAX_CUTS:
                    return None
                name = f"e{len(self._cuts)}"
                beyond = sampling.beyond_the_first(source, unit, at_most)
                # Never empty: with nothing to compare with, DuckDB would not compare.
                cursor.execute(f"CREATE TABLE {name} AS ({beyond}) UNION ALL SELECT -1")
                self._cuts[key] = name
            return self._cuts[key]

    def are_rare(self, cursor: duckdb.DuckDBPyConnection, sample: str, parameters: Mapping[str, str]) -> bool:
        """Whether few keys of a sample are undecided by the leading columns; looked at once."""
        key = (sample, *parameters.values())
        with self._lock:
            known = self._rare.get(key)
        if known is None:
            found = cursor.execute(sample, parameters).fetchall()
            ((sampled, undecided),) = found
            known = sampling.are_rare(sampled, undecided)
            with self._lock:
                if len(self._rare) >= _MAX_SAMPLES:
                    self._rare.clear()
                self._rare[key] = known
        return known


def _disabled(of_tables: bool, steady: bool) -> Sequence[str]:
    """The optimisers to do without: by whether all data is in tables of our own, and steadiness."""
    if steady:
        return INTO_READING + BY_SIZE
    return [name for name in INTO_READING if not of_tables or name not in BY_VALUES]


def _settings(resources: Resources) -> dict[str, str]:
    """What was said of memory and threads, as DuckDB is told."""
    units = {"memory_limit": "B", "threads": ""}
    return {name: f"{amount}{units[name]}" for name, amount in resources.said().items()}


@dataclass(frozen=True)
class Looking:
    """What a lowering may ask of the data, on the connection of its measurement: stopped where that is."""

    database: Database
    cursor: duckdb.DuckDBPyConnection
    steady: bool = False
    gathered: list[str] = field(default_factory=list)

    def cut(self, source: Stored, unit: int, at_most: int) -> str | None:
        """The relation of the row numbers beyond the first rows of each person, if there is one."""
        return self.database.cut(self.cursor, source, unit, at_most)

    def first_per_key(
        self, source: str, keys: Sequence[str], by: Sequence[str], at_most: int, parameters: Parameters
    ) -> str | None:
        """The first rows of each key by a second look, where a sample says that this is faster."""
        if self.steady or len(by) <= sampling.LEADING:
            return None
        sample = sampling.sample(source, keys, by, at_most)
        rare = self.database.are_rare(self.cursor, sample, parameters.of(sample))
        return sampling.in_two(source, keys, by, at_most) if rare else None

    def keep(self, select: str) -> str | None:
        """None: what is used several times is materialised by the statement itself."""
        return None

    def gather(self, selects: Sequence[str], parameters: Parameters) -> str | None:
        """A table that lives as long as the connection of the measurement, filled some SELECTs at a time."""
        if len(selects) <= MOST_TABLES:
            return None
        name, how = f"g{len(self.gathered)}", "CREATE TEMP TABLE {0} AS"
        self.gathered.append(name)
        for first in range(0, len(selects), MOST_TABLES):
            sql = f"{how.format(name)} {' UNION ALL '.join(selects[first : first + MOST_TABLES])}"
            self.cursor.execute(sql, parameters.of(sql))
            how = "INSERT INTO {0}"
        return name


class _Stream:
    """A relation to be read as Arrow batches, without pyarrow."""

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)
