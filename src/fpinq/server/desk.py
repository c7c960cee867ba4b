"""Where client programs act: a session for each, one budget for all.

A session has its own table variables; the accounts are common to all sessions,
which as far as the theorem goes are one client.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from fractions import Fraction
from threading import Lock
from typing import Any, Protocol

from fpinq.engines.interface import Engine
from fpinq.ledger.errors import Frozen, RequestReused
from fpinq.model.actions import Action, TableVariable
from fpinq.model.plans import Shape
from fpinq.model.semantics import BOTTOM, Configuration, Measure, Table, initial, step
from fpinq.model.sources import remaining
from fpinq.runtime import Answered, Observation
from fpinq.runtime.statistics import Statistics
from fpinq.runtime.system import Mechanism, charges, with_root
from fpinq.server.engines import roots_of
from fpinq.server.limits import Limits


class Desk(Protocol):
    """What the server asks of the protected system behind it."""

    def protect(self, name: str, shape: Shape, budget: Fraction, caps: Mapping[str, Fraction]) -> None:
        """Add a data set."""

    def act(self, session: str, action: Action, request_id: str, analyst: str) -> Observation:
        """What the client is told. The same request id is told the same; it is refused for another action."""

    def describe(self, session: str, variable: TableVariable, analyst: str) -> Table:
        """The public facts of a table."""

    def remaining(self) -> Mapping[str, Fraction]:
        """What is left of every data set."""

    def frozen(self) -> set[str]:
        """The data sets that may not be asked now."""

    def freeze(self, name: str, frozen: bool) -> None:
        """Freeze a data set, or let it be asked again. At once."""

    def trace(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Entries of the trace, oldest first."""


@dataclass
class _Session:
    analyst: str
    environment: dict[TableVariable, Table] = field(default_factory=dict)
    requests: dict[str, tuple[Action, Future[Observation]]] = field(default_factory=dict)


class InMemoryDesk:
    """The budget lives as long as the process: for tests and demonstrations."""

    def __init__(self, engine: Engine, mechanism: Mechanism, limits: Limits) -> None:
        self._engine = engine
        self._mechanism = mechanism
        self._limits = limits
        self._statistics = Statistics(engine)
        self._roots = initial({})
        self._caps: dict[str, Mapping[str, Fraction]] = {}
        self._spent: dict[tuple[str, str], Fraction] = {}
        self._frozen: set[str] = set()
        self._sessions: dict[str, _Session] = {}
        self._entries: list[dict[str, Any]] = []
        self._lock = Lock()

    def protect(self, name: str, shape: Shape, budget: Fraction, caps: Mapping[str, Fraction]) -> None:
        self._roots = with_root(self._roots, name, shape, budget)
        self._caps[name] = caps

    def _session(self, session: str, analyst: str) -> _Session:
        return self._sessions.setdefault(session, _Session(analyst))

    def _configuration(self, session: _Session) -> Configuration:
        return replace(self._roots, environment={**session.environment, **self._roots.environment})

    def act(self, session: str, action: Action, request_id: str, analyst: str) -> Observation:
        own = self._session(session, analyst)
        with self._lock:
            if request_id in own.requests:
                asked, told = own.requests[request_id]
                if asked != action:
                    raise RequestReused(request_id)
            else:
                told = Future()
                transition = step(before := self._configuration(own), action)
                label, after = transition.label, transition.configuration
                if isinstance(label, Measure):
                    for root in roots_of(label.plan):
                        if root in self._frozen:
                            raise Frozen(root)
                    self._engine.check_unchanged(label.plan)
                    charged = charges(before.accounts, after.accounts)
                    if not self._within_caps(analyst, charged):
                        label, after = BOTTOM, before
                    else:
                        for root, amount in charged.items():
                            self._spent[root, analyst] = (
                                self._spent.get((root, analyst), Fraction(0)) + amount
                            )
                own.requests[request_id] = (action, told)
                self._roots = replace(self._roots, accounts=after.accounts)
                roots = self._roots.environment
                own.environment = {t: e for t, e in after.environment.items() if t not in roots}
                asked = None  # type: ignore[assignment]
        if asked is not None:
            return told.result()
        try:
            observation: Observation
            if isinstance(label, Measure):
                statistics = self._statistics.measure(label.plan, label.by, label.queries)
                drawn = zip(label.queries, statistics, strict=True)
                released = tuple(self._mechanism(q, s, label.epsilon) for q, s in drawn)
                observation = Answered(released, charged)
            else:
                observation = label
        except BaseException as error:
            told.set_exception(error)
            raise
        told.set_result(observation)
        return observation

    def _within_caps(self, analyst: str, charged: Mapping[str, Fraction]) -> bool:
        for root, amount in charged.items():
            caps = self._caps[root]
            cap = caps.get(analyst, caps.get("*"))
            if cap is not None and self._spent.get((root, analyst), Fraction(0)) + amount > cap:
                return False
        return True

    def describe(self, session: str, variable: TableVariable, analyst: str) -> Table:
        return self._configuration(self._session(session, analyst)).table(variable)

    def remaining(self) -> Mapping[str, Fraction]:
        return {root.name: left for root, left in remaining(self._roots.accounts).items()}

    def frozen(self) -> set[str]:
        return set(self._frozen)

    def freeze(self, name: str, frozen: bool) -> None:
        (self._frozen.add if frozen else self._frozen.discard)(name)

    def trace(self, after: int, limit: int) -> list[dict[str, Any]]:
        return self._entries[after : after + limit]
