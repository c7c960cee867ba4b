"""The protected system: charge, measure, draw, record, release. In that order, always.

It holds the engine, the mechanisms and the configuration; a client holds
nothing but names of tables. What a client program learns, it learns from `act`.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Lock
from typing import Protocol

from fpinq.engines.interface import Engine
from fpinq.model.actions import Action, TableVariable
from fpinq.model.errors import BadTransformation
from fpinq.model.plans import Shape
from fpinq.model.queries import PrimitiveQuery, Statistic
from fpinq.model.semantics import (
    Bottom,
    Configuration,
    Measure,
    Table,
    Tau,
    Told,
    Transition,
    initial,
    step,
    with_root,
)
from fpinq.model.sources import Accounts, Root, remaining
from fpinq.runtime.mechanisms import Released, draw
from fpinq.runtime.statistics import Statistics


@dataclass(frozen=True)
class Answered:
    """What a query released, one for each part, and what it was charged at every root it touched."""

    released: tuple[Released, ...]
    charged: Mapping[str, Fraction]


Observation = Tau | Bottom | Told | Answered
Mechanism = Callable[[PrimitiveQuery, Statistic, Fraction], Released]


class Record(Protocol):
    """Where the trace is kept. A durable one makes the budget survive the process."""

    def charge(self, action: Action, transition: Transition) -> None:
        """Keep the transition. Raises LedgerError if it cannot; then it does not happen."""

    def release(self, action: Action, observation: Observation) -> None:
        """Keep what an action is told, before it is told."""


class InMemory:
    """No record beyond the configuration itself: the budget lives as long as the process."""

    def charge(self, action: Action, transition: Transition) -> None:
        """The configuration is the record."""

    def release(self, action: Action, observation: Observation) -> None:
        """Nothing is kept."""


class ProtectedSystem:
    """Runs the kernel's rules over an engine. Any number of clients may act at the same time."""

    def __init__(self, engine: Engine, *, record: Record | None = None, mechanism: Mechanism = draw) -> None:
        self.engine = engine
        self._record = record or InMemory()
        self._mechanism = mechanism
        self._statistics = Statistics(engine)
        self._configuration = initial({})
        self._lock = Lock()
        self._dropped: deque[TableVariable] = deque()

    def act(self, action: Action) -> Observation:
        """What the client is told of its action; BOTTOM if the budget does not allow it.

        A ProgramError, DataChanged or LedgerError is raised before anything is
        charged. An EngineError comes after the charge, and the charge stands: a refund
        would tell about the data.
        """
        with self._lock:
            before = self._configuration = self._without_dropped()
            transition = step(before, action)
            self._check_unchanged(transition)
            self._record.charge(action, transition)
            self._configuration = transition.configuration
        observation = self._observe(transition, before)
        self._record.release(action, observation)
        return observation

    def _observe(self, transition: Transition, before: Configuration) -> Observation:
        label = transition.label
        if not isinstance(label, Measure):
            return label
        statistics = self._statistics.measure(label.plan, label.by, label.queries)
        released = tuple(
            self._mechanism(query, statistic, label.epsilon)
            for query, statistic in zip(label.queries, statistics, strict=True)
        )
        return Answered(released, charges(before.accounts, transition.configuration.accounts))

    def _check_unchanged(self, transition: Transition) -> None:
        # Whether a file was replaced says nothing about its records, so it may be found before the charge.
        check = getattr(self.engine, "check_unchanged", None)
        if check is not None and isinstance(transition.label, Measure):
            check(transition.label.plan)

    # ── the owner's side ─────────────────────────────────────────────────────────────

    def protect(self, name: str, shape: Shape, budget: Fraction) -> None:
        """Add a root: a data set that the engine knows by this name, with a budget of its own."""
        with self._lock:
            if Root(name) in self._configuration.accounts.budgets:
                raise BadTransformation(f"{name!r} is protected already: choose another name")
            self._configuration = with_root(self._configuration, name, shape, budget)

    # ── public state ─────────────────────────────────────────────────────────────────

    def describe(self, variable: TableVariable) -> Table:
        """E(t): a table's plan, shape and sensitivity. None of it is data."""
        return self._configuration.table(variable)

    def budgets(self) -> dict[str, Fraction]:
        """What every root started with."""
        return {root.name: total for root, total in self._configuration.accounts.budgets.items()}

    def drop(self, variable: TableVariable) -> None:
        """The client will not use this variable again. Takes no lock: a finalizer may call it any time."""
        self._dropped.append(variable)

    def _without_dropped(self) -> Configuration:
        gone = {self._dropped.popleft() for _ in range(len(self._dropped))}
        if not gone:
            return self._configuration
        kept = {t: table for t, table in self._configuration.environment.items() if t not in gone}
        return replace(self._configuration, environment=kept)


def charges(before: Accounts, after: Accounts) -> dict[str, Fraction]:
    """What was added to every root."""
    left, now = remaining(before), remaining(after)
    return {root.name: left[root] - now[root] for root in left if left[root] != now[root]}
