"""Where a question acts: on the ledger, as any client's program does; or on paper, where nothing is written.

Between a measurement and the next action of the same question the server waits
for the quantum, as a client would have to: else the time of the second charge,
which others can see, would tell how long the first measurement took.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from time import monotonic, sleep
from typing import Any

from fpinq.client.names import Names
from fpinq.client.paper import Paper
from fpinq.model.accounts import Root
from fpinq.model.actions import Action, AskBudget, Asking, Query
from fpinq.model.environments import Numbered, TableVariable
from fpinq.model.errors import Frozen
from fpinq.model.queries import simple
from fpinq.model.semantics import Table, Told
from fpinq.model.transformations import parts_of
from fpinq.runtime import Observation
from fpinq.runtime.deadline import within
from fpinq.runtime.refusals import TooLarge
from fpinq.server.house import House
from fpinq.server.limits import Limits
from fpinq.server.quantum import until_release
from fpinq.server.turns import Turns, acting

# A session in which nobody ever acts: what a program finds that has just begun.
NOBODYS = "quotes"


def check_released(action: Action, limits: Limits) -> None:
    """TooLarge if a question would be answered by more than one wants to read."""
    if isinstance(action, Query):
        each = max(1, parts_of(action.by) // len(action.queries))
        released = each * sum(one.integers for query in action.queries for one in simple(query))
        if released > limits.integers_per_question:
            raise TooLarge(f"a question is answered by at most {limits.integers_per_question:,} integers")


class OnLedger:
    """A program of one question, in a session of its own.

    Its names and its requests are numbered, so a question that is sent again does what it did.
    """

    def __init__(
        self, house: House, analyst: str, session: str, working: "Working", *, resumed: bool = False
    ) -> None:
        self._house, self._analyst, self._session, self._working = house, analyst, session, working
        self.resumed = resumed
        self._names = Names()
        self._requests = 0
        self.queried = False
        self._measured = False  # since the last quantum

    def act(self, action: Action) -> Observation:
        """What the program is told of its action."""
        house, limits = self._house, self._house.limits
        if self._measured:  # before anything that others can see: a refusal and what is counted, too
            with self._working.aside():
                self._working.until_quantum()
            self._working.still()
            self._measured = False  # what comes until the next query takes as long as it takes
        if self.resumed and isinstance(action, AskBudget):
            # What it was charged before is charged once: whether the rest fits, the kernel says.
            return Told({name: root.registered.amount for name, root in house.ledger.roots().items()})
        sent, fresh = self._names.translate(action)
        limits.check_action(sent)
        check_released(sent, limits)
        house.metrics.asked(sent.op)
        house.room.check(self._session, sent, self._analyst)
        if not isinstance(action, Asking):  # what asks for facts is not written down
            self._requests += 1
        with self._working.aside():
            self._measured = isinstance(action, Query)
            self.queried = self.queried or self._measured
            with acting(self._analyst, self._working.began), within(limits.query_seconds):
                told = house.system.act(
                    sent, session=self._session, request_id=str(self._requests), analyst=self._analyst
                )
        self._names.bind(fresh)
        return told

    def describe(self, variable: TableVariable) -> Table:
        """The public facts of a table."""
        return self._house.system.describe(
            self._names.of(variable), session=self._session, analyst=self._analyst
        )

    def drop(self, variable: TableVariable | Numbered) -> None:
        """Names stay as they are: a question is over soon, and has the same ones if it is sent again."""

    def data_sets(self) -> Sequence[Mapping[str, Any]]:
        """What is public about every data set."""
        return self._house.catalog()


class OnPaper(Paper):
    """The same program on paper, within the server's limits."""

    def __init__(self, house: House, analyst: str) -> None:
        super().__init__(house.record.configuration(NOBODYS, analyst), house.system.check)
        self._house = house

    def act(self, action: Action) -> Observation:
        """What the kernel says of the action; at a query, Quoted."""
        self._house.limits.check_action(action)
        check_released(action, self._house.limits)
        return super().act(action)

    def data_sets(self) -> Sequence[Mapping[str, Any]]:
        """What is public about every data set."""
        return self._house.catalog()

    def check_thawed(self, roots: set[str]) -> None:
        """Frozen if a data set is."""
        states = self._house.ledger.roots()
        for name in sorted(roots):
            if states[name].frozen:
                raise Frozen(name)

    def left(self) -> dict[str, Fraction]:
        """What an analyst may still spend of each root: the accounts that the kernel steps with."""
        accounts = self.configuration.accounts
        return {root.name: accounts.budgets[root] for root in accounts.budgets if isinstance(root, Root)}


class Working:
    """The time that a question takes of everybody's interpreter: one of an analyst's at a time.

    Not while it waits for the ledger, an engine or the quantum, where others' requests wait by themselves.
    """

    def __init__(
        self, turns: Turns, analyst: str, quantum: float, still: Callable[[], None] = lambda: None
    ) -> None:
        self._turns, self._analyst, self._quantum = turns, analyst, quantum
        self.still = still  # raises if whoever asked may no longer
        self.began = monotonic()
        self._leave: Callable[[], None] = lambda: None

    def __enter__(self) -> "Working":
        turn = self._turns.of(self._analyst)
        turn.__enter__()
        self._leave = lambda: _end(turn)
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Others' turn, until this is over."""
        self._leave()
        self._leave = lambda: None
        try:
            yield
        finally:
            self.__enter__()

    def release(self) -> float:
        """How long until a reply may leave, if everything is done now."""
        return until_release(monotonic() - self.began, self._quantum) if self._quantum else 0.0

    def until_quantum(self) -> None:
        """Wait until a reply might have left, and another request come in its place."""
        sleep(self.release())


def _end(turn: AbstractContextManager[None]) -> None:
    turn.__exit__(None, None, None)
