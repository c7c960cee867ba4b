"""Plans to exact integers on Apache Spark.

One SQL text per measurement, whatever the number of parts. What comes back is
the statistic; the records stay on the workers. Spark runs nothing of ours but
its own operators: no UDFs, no Python on the workers.

We work in sessions of our own (two of them, with and without adaptive
execution), so whatever the owner's session is set to, the same SQL means the
same; its settings are not touched.
"""

import contextlib
import io
import logging
import re
import secrets
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

from fpinq.engines import reference
from fpinq.engines.interface import Asked, Fingerprint
from fpinq.engines.owner import in_our_words, unreadable
from fpinq.engines.persons import persons_of
from fpinq.engines.spark import progress, sources, trial
from fpinq.engines.spark.dialect import SQL
from fpinq.engines.spark.java import find_java
from fpinq.engines.spark.keeping import Keeping, is_row_by_row
from fpinq.engines.spark.meaning import settle
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.relations import Stored, StoredPersons
from fpinq.engines.sql.sources import Converted, as_relation, within_lengths
from fpinq.engines.sql.statistics import Measurement, lower
from fpinq.engines.stopping import abandoned_after
from fpinq.engines.text import Dialect
from fpinq.model.costs import Costs
from fpinq.model.errors import BadData, DataChanged, EngineError, ProgramError
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import Persons, Plan, RootTable, roots_of
from fpinq.model.statistics import Integers, Statistic
from fpinq.model.transformations import Partitioning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Of sessions that we start ourselves; the owner's conf comes after.
_OURS = {
    "spark.app.name": "fpinq",
    # Expressions may be a hundred levels deep, and Spark's planner is recursive. Without memory the
    # thread that serves a result dies, and whoever waits for it would wait for ever.
    "spark.driver.extraJavaOptions": "-Xss32m -XX:+ExitOnOutOfMemoryError",
    # Nobody looks at what was done long ago; plans may be large.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# What a thread says of the jobs that it starts; the owner's threads say other things.
_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

# Whether the files of a table still are what they were.
Hold = Callable[[], bool]

_starting = threading.Lock()
_users = 0  # of the SparkContext that we started


class Spark:
    """Turns plans into exact integers with Spark. Safe to use from several threads.

    Spark(master="spark://…", conf={…}) starts a session when it is first
    needed, or works beside the one that this process has; Spark(session=…)
    works beside a session that is there already; Spark(remote="sc://…") uses
    Spark Connect. Without any of them it is this machine, all cores. Steady, as
    on a server, no record decides how the others are worked on.
    """

    def __init__(
        self,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        *,
        session: "SparkSession | None" = None,
        remote: str | None = None,
        steady: bool = False,
    ) -> None:
        if session is not None and remote is not None:
            raise ProgramError("Spark takes a session or a remote url, not both")
        self._master, self._conf, self._given, self._remote = master, dict(conf or {}), session, remote
        self._steady = steady
        self._lock = threading.RLock()
        self._started: tuple[SparkSession, SparkSession] | None = None
        self._counted = False
        self._token = f"fpinq_{secrets.token_hex(8)}"
        self._views: list[str] = []
        self._numbers = count()
        self._roots: dict[str, Stored | StoredPersons] = {}
        self._holds: dict[str, tuple[Hold, ...]] = {}
        self._hashed: dict[tuple[str, ...], Hold] = {}  # urls as they were then, until they are added
        self._running: dict[int, Callable[[], object]] = {}  # by thread, what cancels it

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

        source: a path, directory or glob of parquet or csv (or a list of them;
        urls of any file system that the cluster reads), "table:name" for a
        table of the catalog, a Spark, pandas or polars DataFrame, a pyarrow
        Table, a list of dicts. Files and tables are read where they are at each
        measurement, by the workers. A schema says which columns there are and
        of which types; it is needed if the data does not tell. BadData if the
        data is not as it says.
        """
        with self._lock, self._all_or_nothing():
            self._check_new(name)
            relation, hold = self._add(source, schema, dialect, lengths)
            self._roots[name] = relation
            self._holds[name] = (hold,)
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
            added = {
                table: self._add(
                    data,
                    (schemas or {}).get(table),
                    (dialects or {}).get(table),
                    (lengths or {}).get(table),
                )
                for table, data in tables.items()
            }
            stored = {table: relation for table, (relation, _) in added.items()}
            shape = persons_of(unit, {table: relation.schema for table, relation in stored.items()})
            self._roots[name] = StoredPersons(shape, stored)
            self._holds[name] = tuple(hold for _, hold in added.values())
            return shape

    def costs(self) -> Costs:
        """What operators and steps take in Spark."""
        return SQL.costs

    def owns(self, source: object) -> bool:
        """A url, a table of the catalog, a Spark DataFrame."""
        return sources.is_elsewhere(source)

    @in_our_words(unreadable)
    def fingerprint(self, source: object) -> Fingerprint:
        """What is in a table that is not on this machine. All of it that can be read is read. Of text the
        records are its lines, whatever its dialect.
        """
        session = self._sessions[0]
        if urls := sources.urls_of(source):
            self._hashed[urls] = sources.hold_of(session, source)
        if (lines := sources.lines_elsewhere(session, source)) is not None:
            shape, columns = Schema.of({"line": Type.STRING}), 1
            relation = f"(SELECT hex(CAST(value AS BINARY)) AS c0 FROM {self._view(lines)})"
        else:
            frame = sources.incoming(session, self._view, source, None, None).frame
            stored = self._stored(frame, sources.readable(frame.schema), {})
            lowering = Lowering(SQL, {"t": stored})
            table = lowering.closed(lowering.plan(RootTable("t")))
            shape, columns, relation = stored.schema, len(table.columns), str(table.source)
        found = session.sql(sources.fingerprint(relation, columns)).collect()
        records, *limbs = found[0]
        total = sum(int(limb or 0) << 32 * place for place, limb in enumerate(reversed(limbs)))
        return Fingerprint(shape, records, total % 2**256)

    def forget(self, name: str) -> None:
        """Give up a root that was refused after all: its name is free again, and its views are gone."""
        with self._lock:
            found = self._roots.pop(name)
            del self._holds[name]
            sources = found.tables.values() if isinstance(found, StoredPersons) else [found]
            named = {word for source in sources for word in re.findall(r"\w+", str(source.relation))}
            self._drop(named.intersection(self._views))

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """No view stays of what is refused, in part or after it was read."""
        before = set(self._views)
        try:
            yield
        except BaseException:
            self._drop(set(self._views) - before)
            raise

    def _drop(self, views: Iterable[str]) -> None:
        for view in views:
            self._sessions[0].catalog.dropGlobalTempView(view)
            self._views.remove(view)

    def _check_new(self, name: str) -> None:
        if name in self._roots:
            raise BadData(f"there is a root {name!r} already")

    def _add(
        self,
        source: object,
        schema: Mapping[str, Type] | None,
        dialect: Dialect | None,
        lengths: Mapping[str, int] | None = None,
    ) -> tuple[Stored, Hold]:
        session = self._sessions[0]
        data = sources.incoming(session, self._view, source, schema, dialect)
        stored = self._stored(data.frame, sources.convert(data.frame.schema, schema), lengths or {})
        if not data.checked:
            sources.check_values(session, str(stored.relation), stored.schema, data.records)
        if not self._hashed.pop(sources.urls_of(source), _always)():
            raise BadData("a file was changed while it was protected: protect it again")
        return stored, data.hold or _always

    def _stored(self, frame: "DataFrame", columns: Iterable[Converted], lengths: Mapping[str, int]) -> Stored:
        within = within_lengths(columns, lengths, SQL)
        return Stored(*as_relation(within, self._view(frame), SQL, lazy=True))

    def _view(self, frame: "DataFrame") -> str:
        """A frame by a name that both of our sessions know."""
        name = f"{self._token}_{next(self._numbers)}"
        frame.createGlobalTempView(name)
        self._views.append(name)
        return f"global_temp.{name}"

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
        and nothing else, if Spark fails or is cancelled after these seconds.
        """
        return abandoned_after(seconds, lambda: self._measured(plan, by, statistics), self.cancel)

    def _measured(
        self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]
    ) -> Sequence[Integers]:
        self.check_unchanged(plan)
        kept = Keeping(plan, self._token, steady=self._steady)
        measurement = self._lower(kept, plan, by, statistics)
        with self._frame(plan, kept, measurement.sql, measurement.parameters) as frame:
            found = frame.toArrow()
        self.check_unchanged(plan)
        return measurement.read_columns([found.column(name).to_pylist() for name in measurement.names])

    def _lower(
        self, kept: Keeping, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]
    ) -> Measurement:
        lowering = Lowering(SQL, self._roots, kept)
        measurement = lower(lowering, lowering.plan(plan), by, statistics)
        # What is kept before it is a text of its own, and binds what this one may not mention.
        return replace(measurement, parameters=lowering.parameters.given())

    @in_our_words(EngineError)
    def rows(self, plan: Plan) -> reference.Relation:
        """The rows of a plan: the door for tests. Nothing that an analyst can reach calls it."""
        self.check_unchanged(plan)
        kept = Keeping(plan, self._token, steady=self._steady)
        lowering = Lowering(SQL, self._roots, kept)
        table = lowering.plan(plan)
        with self._frame(plan, kept, lowering.rows(table), lowering.parameters.given()) as frame:
            return reference.Relation(table.schema, tuple(tuple(row) for row in frame.collect()))

    def explain(
        self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]
    ) -> tuple[str, str]:
        """The SQL text of a measurement and Spark's plan for it: for owners and tests."""
        kept = Keeping(plan, self._token, steady=self._steady)
        measurement = self._lower(kept, plan, by, statistics)
        with self._frame(plan, kept, measurement.sql, measurement.parameters) as frame:
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                frame.explain()
        return measurement.sql, shown.getvalue()

    @in_our_words(unreadable)
    def rows_in(self, root: str) -> dict[str, int]:
        """How many rows each table of a root has: for its owner, who promised a number."""
        found = self._roots[root]
        tables = found.tables if isinstance(found, StoredPersons) else {root: found}
        session, _ = self._sessions
        return {
            table: int(session.sql(f"SELECT count(*) FROM {source.relation}").collect()[0][0])
            for table, source in tables.items()
        }

    def check_unchanged(self, plan: Plan) -> None:
        """DataChanged if a file of this machine that the plan reads is not the one that was protected."""
        for root in roots_of(plan):
            if not all(hold() for hold in self._holds[root]):
                raise DataChanged(root)

    def check_asked(self, asked: Iterable[Asked]) -> None:
        """Everything can be asked."""

    def cancel(self, thread: int) -> None:
        """Stop what a thread measures, if it measures: there it is an EngineError."""
        running = self._running.get(thread)
        if running is not None:
            running()

    def close(self) -> None:
        """Forget all data; stop Spark if we started it and nobody else here uses it."""
        with self._lock:
            self._roots.clear()
            if self._started is not None:
                with contextlib.suppress(Exception):  # a Spark that is gone has forgotten already
                    for view in self._views:
                        self._started[0].catalog.dropGlobalTempView(view)
                self._stop(self._started)
            self._views.clear()
            self._started = None

    @contextlib.contextmanager
    def _frame(
        self, plan: Plan, keeping: Keeping, sql: str, parameters: Mapping[str, Any]
    ) -> Iterator["DataFrame"]:
        """The frame of a SQL text, asked for its rows inside: progress is shown, an interrupt cancels."""
        adaptive, plain = self._sessions
        # One shuffle at the end needs no second thoughts, and is then one job.
        session = plain if is_row_by_row(plan) else adaptive
        given = dict(parameters)
        kept: list[str] = []
        try:
            with self._watching(session, f"fpinq-{secrets.token_hex(4)}"):
                for name, shared in keeping.kept:
                    # A checkpoint is a leaf to the planner. If a worker dies with it, the measurement fails.
                    # Concatenations add up partitions: no more of them than a shuffle would make.
                    most = int(str(session.conf.get("spark.sql.shuffle.partitions")))
                    frame = session.sql(shared, args=given).coalesce(most)
                    frame.localCheckpoint().createOrReplaceTempView(name)
                    kept.append(name)
                yield session.sql(sql, args=given)
        finally:
            with contextlib.suppress(Exception):
                for name in kept:
                    session.catalog.dropTempView(name)

    @contextlib.contextmanager
    def _watching(self, session: "SparkSession", group: str) -> Iterator[None]:
        """What runs inside can be cancelled, and shows how far it is."""
        watch = _tagged if _is_remote(session) else _grouped
        with watch(session, group) as cancel:
            self._running[threading.get_ident()] = cancel
            try:
                yield
            except KeyboardInterrupt:
                cancel()
                raise
            finally:
                del self._running[threading.get_ident()]

    # ── Spark ────────────────────────────────────────────────────────────────────────

    @property
    def _sessions(self) -> "tuple[SparkSession, SparkSession]":
        """Our sessions, with and without adaptive execution."""
        with self._lock:
            if self._started is None:
                adaptive, plain = self._start()
                for session in (adaptive, plain):
                    settle(session, self._conf, steady=self._steady)
                plain.conf.set("spark.sql.adaptive.enabled", "false")
                if not _is_remote(plain) and "spark.sql.shuffle.partitions" not in self._conf:
                    partitions = str(max(plain.sparkContext.defaultParallelism, 1))
                    plain.conf.set("spark.sql.shuffle.partitions", partitions)
                trial.check(adaptive, plain)
                self._started = (adaptive, plain)
            return self._started

    def _start(self) -> "tuple[SparkSession, SparkSession]":
        """Two new sessions, which nobody else uses."""
        global _users
        with warnings.catch_warnings():
            # pyspark warns of versions of pandas, of which we use nothing.
            warnings.simplefilter("ignore")
            try:
                from pyspark.sql import SparkSession
            except ImportError:
                raise ProgramError(
                    "the Spark engine needs pyspark: pip install 'pyspark>=4.0.5,<4.4' pyarrow"
                ) from None
            # Its words may quote data, and would go to the analyst's terminal.
            logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
            if self._given is not None:
                return self._given.newSession(), self._given.newSession()
            if self._remote is not None:
                one, other = (_connect(SparkSession.builder, self._remote) for _ in range(2))
                return one, other
            from pyspark import SparkContext

            with _starting:
                context = SparkContext._active_spark_context
                running = context is not None
                if context is not None and self._master not in (None, context.master):
                    raise ProgramError(
                        f"this process has a Spark already, {context.master}, and can have one: "
                        "use that, Spark(session=…), or stop it first"
                    )
                if not running:
                    find_java()
                # One that runs already is the owner's: its session is not told our settings.
                builder: Any = SparkSession.builder
                settings = {} if running else _settings(self._master or "local[*]", self._conf)
                session: SparkSession = builder.config(map=settings).getOrCreate()
                if not running or _users:
                    _users += 1
                    self._counted = True
                if not running:
                    session.sparkContext.setLogLevel("OFF")
                return session.newSession(), session.newSession()

    def _stop(self, sessions: "tuple[SparkSession, SparkSession]") -> None:
        global _users
        if self._remote is not None:
            for session in sessions:
                session.stop()
        if self._counted:
            with _starting:
                self._counted = False
                _users -= 1
                if not _users:
                    sessions[0].sparkContext.stop()


def _always() -> bool:
    """Of data that is not in files of ours to look at: in memory, in a catalog, in a frame."""
    return True


def _connect(builder: Any, url: str) -> "SparkSession":
    try:
        return builder.remote(url).create()
    except ImportError:
        raise ProgramError('Spark Connect needs more of pyspark: pip install "pyspark[connect]"') from None


def _settings(master: str, conf: Mapping[str, str]) -> dict[str, Any]:
    """What a Spark of ours is started with."""
    settings = {"spark.master": master, **_OURS}
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {**settings, **conf}


def _is_remote(session: "SparkSession") -> bool:
    return ".connect." in type(session).__module__


@contextlib.contextmanager
def _tagged(session: "SparkSession", tag: str) -> Iterator[Callable[[], object]]:
    """Spark Connect: jobs are cancelled by a tag, and show their own progress."""
    session.addTag(tag)
    try:
        yield lambda: session.interruptTag(tag)
    finally:
        session.removeTag(tag)


@contextlib.contextmanager
def _grouped(session: "SparkSession", group: str) -> Iterator[Callable[[], object]]:
    """A job group, which jobs are cancelled and watched by; the thread's own one comes back afterwards."""
    context = session.sparkContext
    tracker = context.statusTracker()
    before = {name: context.getLocalProperty(name) for name in _GROUP}
    context.setJobGroup(group, "fpinq measurement", interruptOnCancel=True)
    try:
        with progress.Progress(lambda: progress.stages_of(tracker, group), progress.shown_where()):
            # Also those that it has not begun yet. pyspark has no name for it.
            yield lambda: context._jsc.sc().cancelJobGroupAndFutureJobs(group)
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)  # type: ignore[arg-type]
