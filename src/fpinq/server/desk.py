"""Where client programs act: charge, measure, draw, record, release, for many programs at a time.

The ledger steps and charges, durably, in one transaction; then the engine
measures; then the answer is recorded; and what the ledger says was recorded is
what is told. A request that comes again finds what was recorded.
"""

from collections.abc import Mapping
from fractions import Fraction
from itertools import islice
from threading import Lock
from typing import Any

from fpinq.ledger import Answered, Ledger, Observation
from fpinq.ledger.entries import parsed
from fpinq.model.actions import Action, Assign, Partition, TableVariable
from fpinq.model.errors import KernelViolation
from fpinq.model.semantics import Label, Measure, Table
from fpinq.runtime.refusals import TooLarge
from fpinq.runtime.statistics import Statistics
from fpinq.runtime.system import Mechanism
from fpinq.server.engines import Engines, size_of
from fpinq.server.limits import Limits

# Sessions whose tables are counted.
MAX_SESSIONS = 10_000


class Desk:
    """The protected system of a server: a ledger, engines and a mechanism."""

    def __init__(self, ledger: Ledger, engines: Engines, mechanism: Mechanism, limits: Limits) -> None:
        self.ledger = ledger
        self._engines = engines
        self._mechanism = mechanism
        self._limits = limits
        self._statistics = Statistics(engines)
        self._bound: dict[str, int] = {}  # a session ↦ at least as many tables as it has
        self._lock = Lock()

    def act(self, session: str, action: Action, request_id: str, analyst: str) -> Observation:
        """What the client is told. The same request id is told the same; it is refused for another action."""
        if isinstance(action, Assign | Partition):
            self._check_room(session, len(action.targets) if isinstance(action, Partition) else 1, analyst)
        acted = self.ledger.act(session, action, request_id, analyst, self._check)
        label, released = acted.label, acted.released
        if not isinstance(label, Measure):
            return label
        if acted.seq is None:
            raise KernelViolation("a query was not recorded")
        if released is None:
            statistics = self._statistics.measure(label.plan, label.by, label.queries)
            drawn = zip(label.queries, statistics, strict=True)
            released = self.ledger.answer(
                acted.seq,
                tuple(self._mechanism(query, statistic, label.epsilon) for query, statistic in drawn),
            )
        return Answered(released, acted.charged)

    def describe(self, session: str, variable: TableVariable, analyst: str) -> Table:
        """The public facts of a table."""
        return self.ledger.configuration(session, analyst).table(variable)

    def remaining(self) -> Mapping[str, Fraction]:
        """What is left of every data set, for all analysts together."""
        return {name: state.remaining for name, state in self.ledger.roots().items()}

    def frozen(self) -> set[str]:
        """The data sets that may not be asked now."""
        return {name for name, state in self.ledger.roots().items() if state.frozen}

    def trace(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Entries of the ledger after one, oldest first, each with its hash."""
        return [{**parsed(line), "hash": line.hash} for line in islice(self.ledger.entries(after), limit)]

    def _check(self, label: Label) -> None:
        """Refuse a query before it is charged."""
        if not isinstance(label, Measure):
            return
        depth, nodes = size_of(label.plan)
        if depth > self._limits.plan_depth:
            raise TooLarge(f"a table is made in at most {self._limits.plan_depth} steps")
        if nodes > self._limits.plan_nodes:
            raise TooLarge(
                f"a table is made of at most {self._limits.plan_nodes} tables, each counted as often as used"
            )
        # Whether a file was replaced says nothing about its records, so it may be found before the charge.
        self._engines.check_unchanged(label.plan)

    def _check_room(self, session: str, tables: int, analyst: str) -> None:
        """TooLarge if a session would have too many tables; how many it has is looked up now and then."""
        with self._lock:
            bound = self._bound.pop(session, 0) + tables
            if bound > self._limits.tables_per_session:
                bound = len(self.ledger.configuration(session, analyst).environment) + tables
            self._bound[session] = bound
            if len(self._bound) > MAX_SESSIONS:
                self._bound.pop(next(iter(self._bound)))
        if bound > self._limits.tables_per_session:
            raise TooLarge(f"a session has at most {self._limits.tables_per_session} tables: use names again")
