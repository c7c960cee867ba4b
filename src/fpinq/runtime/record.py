"""Where the trace is kept: what the protected system asks of a ledger, and the one that forgets.

A ledger makes the budget survive the process. Without one the same rules run on
the same budgets, in memory.
"""

from collections.abc import Iterable
from typing import Any, Protocol, get_args

from fpinq.ledger.acted import Acted, Check
from fpinq.ledger.process import Alone, this_process
from fpinq.model.actions import Action, Asking, Silent
from fpinq.model.environments import Numbered, TableVariable
from fpinq.model.errors import LedgerError
from fpinq.model.events import Began, Recorded, Registered
from fpinq.model.expressions import Schema
from fpinq.model.plans import Shape
from fpinq.model.semantics import Configuration
from fpinq.model.sessions import (
    NOTHING,
    Session,
    check_owner,
    check_queries,
    configuration,
    decide,
    entered,
    forgotten,
    known,
    opened,
    take,
)
from fpinq.model.traces import Released

_LEAVE_NOTHING = (Silent, *get_args(Asking))


class Recorder(Protocol):
    """Sessions and budgets, and what became of them. `fpinq.ledger.Ledger` is the durable one."""

    def act(
        self,
        session: str,
        action: Action,
        request_id: str | None = None,
        analyst: str | None = None,
        check: Check = lambda label: None,
        queries_at_most: int | None = None,
    ) -> Acted:
        """One step, kept before this returns. Raises LedgerError if it cannot be; then it does not happen."""

    def answer(self, seq: int, released: tuple[Released, ...]) -> tuple[Released, ...]:
        """Keep what is to be released, before it is; what was kept first is what may be released."""

    def register(self, name: str, shape: Shape, budget: object, **facts: Any) -> Registered:
        """A data set with a budget of its own; one that is known goes on with what is left."""

    def check(self, name: str, budget: object, **facts: Any) -> None:
        """Raise what register would, as far as that can be told without the data's columns."""

    def configuration(self, session: str, analyst: str | None = None) -> Configuration:
        """⟨E, C⟩ of a session."""

    def drop(self, session: str, variables: Iterable[TableVariable | Numbered]) -> None:
        """The program will not use these variables again."""


class InMemory:
    """The fold of what happens, kept nowhere: the budget lives as long as the process."""

    def __init__(self) -> None:
        self._state = take(NOTHING, Began("in memory"))
        self._alone = Alone()
        self._process = this_process()

    def act(
        self,
        session: str,
        action: Action,
        request_id: str | None = None,
        analyst: str | None = None,
        check: Check = lambda label: None,
        queries_at_most: int | None = None,
    ) -> Acted:
        """One step. Requests are not remembered, so an id says nothing here.

        LedgerError in a forked process: it would spend a copy of the budget.
        """
        if this_process() != self._process:
            raise LedgerError(
                "this process was forked, and its budget is a copy: "
                "ask in the parent, or protect again in the child, with ledger=…"
            )
        with self._alone.stepping():
            number = self._state.events
            decision = decide(self._state.budgets, self._session(session, analyst), action)
            transition = decision.transition
            check_queries(decision.session, queries_at_most)
            check(transition.label)
            if isinstance(action, _LEAVE_NOTHING):
                return Acted(transition.label, transition.rule, {})
            self._state = entered(self._state, session, decision)
        return Acted(transition.label, transition.rule, decision.charged, number)

    def answer(self, seq: int, released: tuple[Released, ...]) -> tuple[Released, ...]:
        """What is released for a query, once."""
        with self._alone.stepping():
            self._state = take(self._state, Recorded(seq, released))
        return released

    def register(self, name: str, shape: Shape, budget: object, **facts: Any) -> Registered:
        """A data set with a budget of its own."""
        root = Registered.of(name, shape, budget, **facts)
        with self._alone.stepping():
            if (found := known(self._state.budgets, root)) is not None:
                return found
            self._state = take(self._state, root)
        return root

    def check(self, name: str, budget: object, **facts: Any) -> None:
        """Raise what register would."""
        known(self._state.budgets, Registered.of(name, Schema(()), budget, **facts), but_shape=True)

    def configuration(self, session: str, analyst: str | None = None) -> Configuration:
        """⟨E, C⟩ of a session, with the budgets that the others leave it."""
        with self._alone.held():
            return configuration(self._state.budgets, self._session(session, analyst))

    def drop(self, session: str, variables: Iterable[TableVariable | Numbered]) -> None:
        """Forget table variables."""
        with self._alone.stepping():
            self._state = forgotten(self._state, session, variables)

    def _session(self, name: str, analyst: str | None) -> Session:
        session = self._state.sessions.get(name) or opened(analyst)
        check_owner(session, name, analyst)
        return session
