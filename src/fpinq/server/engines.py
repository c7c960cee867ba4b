"""The engines of a server behind one: each plan goes to the engine that holds its roots, with a time limit.

Time runs out after the charge, so the charge stands and the analyst is told
what any other failure of an engine tells: a reference.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event, Lock, Thread, get_ident
from typing import Any

import duckdb

from fpinq.engines.duckdb import DuckDB
from fpinq.engines.duckdb.database import Database
from fpinq.engines.interface import Engine
from fpinq.engines.owner import in_our_words
from fpinq.engines.spark import Spark
from fpinq.model.errors import BadTransformation, EngineError
from fpinq.model.plans import Plan, roots_of
from fpinq.model.statistics import Integers, Statistic
from fpinq.model.transformations import Partitioning
from fpinq.runtime import ReferenceEngine
from fpinq.server.limits import Limits

# How often a measurement that ran out of time is interrupted.
AGAIN_SECONDS = 0.05


class Engines:
    """Routes a plan to the engine of its roots. A plan over two engines is refused before the charge."""

    def __init__(self, limits: Limits, spark: Mapping[str, Any] | None = None) -> None:
        self._limits = limits
        self._spark = spark or {}
        self._engines: dict[str, Any] = {}
        self._engine_of: dict[str, str] = {}
        # Tables without a root: small, but what is made of them may not be, and DuckDB can be stopped.
        self._public = Interruptible()

    def of(self, root: str, kind: str) -> Any:
        """The engine that will hold a root; made when first needed."""
        if kind not in self._engines:
            self._engines[kind] = self._make(kind)
        self._engine_of[root] = kind
        return self._engines[kind]

    def forget(self, root: str) -> None:
        """Give up a root that was refused after all."""
        self._engines[self._engine_of.pop(root)].forget(root)

    def check_unchanged(self, plan: Plan) -> None:
        """DataChanged if a file was replaced, BadTransformation if the roots are in two engines."""
        check = getattr(self._engine(plan), "check_unchanged", None)
        if check is not None:
            check(plan)

    @in_our_words(EngineError)
    def measure(self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]) -> list[Integers]:
        """Each statistic, exactly; EngineError, and only a reference in it, whatever goes wrong."""
        engine = self._engine(plan)
        if isinstance(engine, Interruptible):
            with engine.interrupted_after(self._limits.query_seconds):
                return engine.measure(plan, by, statistics)
        return _abandoned_after(self._limits.query_seconds, engine, plan, by, statistics)

    def close(self) -> None:
        """Forget all data."""
        for engine in (*self._engines.values(), self._public):
            engine.close()

    def _make(self, kind: str) -> Any:
        match kind:
            case "duckdb":
                return Interruptible()
            case "reference":
                return ReferenceEngine()
        return Spark(**self._spark)

    def _engine(self, plan: Plan) -> Engine:
        kinds = {self._engine_of[root] for root in roots_of(plan)}
        if len(kinds) > 1:
            raise BadTransformation("these tables are in different engines: they cannot be used together")
        return self._engines[kinds.pop()] if kinds else self._public


class Interruptible(DuckDB):
    """DuckDB, whose running measurement can be stopped from outside, and whose ways no record chooses."""

    steady = True

    def __init__(self) -> None:
        self._running: dict[int, duckdb.DuckDBPyConnection] = {}
        super().__init__()

    @contextmanager
    def interrupted_after(self, seconds: float) -> Iterator[None]:
        """Stop what this thread measures if it takes longer.

        An interrupt between two statements is lost, so it is repeated until the measurement is left.
        """
        thread, left, one_at_a_time = get_ident(), Event(), Lock()

        def watch() -> None:
            wait = seconds
            while not left.wait(wait):
                wait = AGAIN_SECONDS
                with one_at_a_time:
                    running = self._running.get(thread)
                    if running is not None and not left.is_set():
                        running.interrupt()

        Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            with one_at_a_time:
                left.set()

    @contextmanager
    def _cursor(self, database: Database) -> Iterator[duckdb.DuckDBPyConnection]:
        with super()._cursor(database) as cursor:
            self._running[get_ident()] = cursor
            try:
                yield cursor
            finally:
                del self._running[get_ident()]


def _abandoned_after(
    seconds: float,
    engine: Engine,
    plan: Plan,
    by: Partitioning | None,
    statistics: Sequence[Statistic],
) -> list[Integers]:
    """What an engine measures, or a TimeoutError; then it is cancelled if it can be, and left to itself."""
    result: Future[list[Integers]] = Future()

    def measure() -> None:
        try:
            result.set_result(engine.measure(plan, by, statistics))
        except BaseException as error:
            result.set_exception(error)

    thread = Thread(target=measure, daemon=True)
    thread.start()
    try:
        return result.result(timeout=seconds)
    except TimeoutError:
        if isinstance(engine, Spark) and thread.ident is not None:
            engine.cancel(thread.ident)
        raise
