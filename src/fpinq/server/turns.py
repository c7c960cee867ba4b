"""Turns: of what all share (the ledger's lock, the interpreter's), one analyst holds at most one at a time.

An analyst may have many requests under way. If all of them stood in line for
the ledger, or drew from millions of values at once, others would wait behind
all of them; so they wait for each other, and others behind one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from threading import Lock
from time import monotonic, sleep
from typing import Any
from weakref import WeakValueDictionary

from fpinq.ledger import Acted, Released
from fpinq.model.actions import Action
from fpinq.model.notions import Amount
from fpinq.model.queries import SimpleQuery
from fpinq.model.semantics import Configuration
from fpinq.model.statistics import Integers
from fpinq.runtime import deadline
from fpinq.runtime.record import Recorder
from fpinq.runtime.refusals import TooManyRequests
from fpinq.runtime.system import Alike, Mechanism
from fpinq.server.quantum import until_recording

# An analyst's own requests are in the way.
LATE = TooManyRequests("your other requests take too long: send fewer at a time")

_analyst: ContextVar[str | None] = ContextVar("analyst", default=None)
_arrived: ContextVar[float | None] = ContextVar("arrived", default=None)


class Turns:
    """A lock for each analyst, and what is raised where it is not free in time."""

    def __init__(self, late: Exception) -> None:
        self._late = late
        # A lock that nobody holds or waits for is forgotten.
        self._locks: WeakValueDictionary[str | None, Lock] = WeakValueDictionary()
        self._guard = Lock()

    @contextmanager
    def of(self, analyst: str | None) -> Iterator[None]:
        """An analyst's turn."""
        lock = self._lock(analyst)
        longest = deadline.left()
        if not lock.acquire(timeout=-1 if longest == inf else longest):
            raise type(self._late)(*self._late.args)
        try:
            yield
        finally:
            lock.release()

    def _lock(self, analyst: str | None) -> Lock:
        with self._guard:
            found = self._locks.get(analyst)
            if found is None:
                found = self._locks[analyst] = Lock()
            return found


@contextmanager
def acting(analyst: str, arrived: float) -> Iterator[None]:
    """What this thread does in here, it does for an analyst, whose request arrived at this time."""
    before, earlier = _analyst.set(analyst), _arrived.set(arrived)
    try:
        yield
    finally:
        _analyst.reset(before)
        _arrived.reset(earlier)


def drawing(mechanism: Mechanism, alike: Alike) -> tuple[Mechanism, Alike]:
    """Mechanisms, of one part and of all, of which each analyst draws with one at a time."""
    turns = Turns(TimeoutError("the time for a query is over"))

    def draw(query: SimpleQuery, measured: Integers, epsilon: Amount) -> Released:
        with turns.of(_analyst.get()):
            return mechanism(query, measured, epsilon)

    def draw_each(
        queries: Sequence[SimpleQuery], measured: Sequence[Integers], epsilon: Amount
    ) -> tuple[Released, ...]:
        with turns.of(_analyst.get()):
            return alike(queries, measured, epsilon)

    return draw, draw_each


class InTurn:
    """A record that each analyst uses once at a time: what it writes together is of different analysts.

    It takes an answer at a public time, and not when its measurement ends.
    """

    def __init__(self, record: Recorder, quantum: float = 0.0) -> None:
        self._record, self._quantum = record, quantum
        self._turns = Turns(LATE)
        self.register = record.register
        self.check = record.check
        self.drop = record.drop

    def act(
        self,
        session: str,
        action: Action,
        request_id: str | None = None,
        analyst: str | None = None,
        *more: Any,
    ) -> Acted:
        """One step, in the analyst's turn."""
        with self._turns.of(analyst):
            return self._record.act(session, action, request_id, analyst, *more)

    def answer(self, seq: int, released: tuple[Released, ...]) -> tuple[Released, ...]:
        """Record what is to be released, at the time at which that can be seen."""
        arrived = _arrived.get()
        if self._quantum and arrived is not None:
            sleep(until_recording(monotonic() - arrived, self._quantum))
        return self._record.answer(seq, released)

    def configuration(self, session: str, analyst: str | None = None) -> Configuration:
        """⟨E, C⟩ of a session, in the analyst's turn."""
        with self._turns.of(analyst):
            return self._record.configuration(session, analyst)
