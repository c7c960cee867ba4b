"""Format 1, to be read only: entries without totals, charged by the constants of then.

A ledger of format 1 that was upgraded keeps its entries in a table of their own.
What it brought along, and nothing else of them, is in the new chain: its last
hash, and what was spent (`model.events.Upgraded`). So all of it can be told again
from what is kept, and `verify` does.

The rules are those of then: the chain, one account for each charge, an answer for
a charged query, once. Constants have become smaller since (decision 84), so of
the charges of a session it is asked that they are not less than what the kernel
charges today: what was charged stays charged.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from fpinq.ledger.entries import START, Head, Line, body_from, body_of, check_line
from fpinq.ledger.errors import LedgerCorrupt
from fpinq.ledger.store import Pages
from fpinq.model.actions import Query
from fpinq.model.errors import NotAsRecorded, ProgramError
from fpinq.model.events import Began, Event, Recorded, Registered, Took, Upgraded
from fpinq.model.semantics import Rule
from fpinq.model.sessions import (
    Budgets,
    Session,
    accounts_of,
    alone,
    decide,
    opened,
    owned,
    seeing,
    spend,
)
from fpinq.model.units import amount, units

FORMAT = 1
ZERO = Fraction(0)


class Older(NamedTuple):
    """What a ledger of format 1 comes to."""

    id: str
    head: Head
    budgets: Budgets
    sessions: int

    def upgraded(self) -> Upgraded:
        """What is brought along of it."""
        spent: dict[str, dict[str, Fraction]] = {}
        for (root, analyst), number in self.budgets.spent.items():
            spent.setdefault(root, {})[analyst] = amount(number)
        return Upgraded(FORMAT, self.head.seq + 1, self.head.hash, spent)


def read(entries: Iterable[Line]) -> Older:
    """The entries of a ledger of format 1, oldest first; LedgerCorrupt at the first that does not follow."""
    reading = _Reading()
    for stored in entries:
        try:
            reading.take(stored.seq, reading.event(stored))
        except NotAsRecorded as error:
            raise LedgerCorrupt(stored.seq, str(error)) from None
        reading.head = Head(stored.seq, stored.hash)
    if reading.head == START:
        raise LedgerCorrupt(0, "is not there")
    return Older(reading.id, reading.head, reading.budgets, len(reading.sessions))


def check_kept(pages: Pages) -> dict[str, Fraction]:
    """What an upgraded ledger brought along of each root; LedgerCorrupt unless the older entries say so."""
    events = [(stored.seq, body_of(stored)) for stored in pages.of_owner()]
    for seq, event in events:
        if isinstance(event, Upgraded):
            older = read(pages.of_format(FORMAT))
            roots = [e for s, e in events if s < seq and isinstance(e, Registered)]
            if event != older.upgraded() or not _are_same(roots, older.budgets):
                raise LedgerCorrupt(seq, "brings along what the older entries do not say")
            return {root: spent[""] for root, spent in event.spent.items()}
    return {}


def _are_same(roots: list[Registered], budgets: Budgets) -> bool:
    """Whether the roots are those of then. How contents are sealed is the ledger's own affair."""
    then = budgets.listed.values()
    return [_promise(root) for root in roots] == [_promise(root) for root in then]


def _promise(root: Registered) -> tuple[object, ...]:
    return root.name, root.shape, root.budget, root.unit, root.caps, root.cap, root.block_of


@dataclass
class _Reading:
    """The fold of then, over what was recorded."""

    id: str = ""
    head: Head = START
    budgets: Budgets = field(default_factory=Budgets)
    sessions: dict[str, Session] = field(default_factory=dict)
    # What a session was charged at a root, as recorded.
    charged: dict[tuple[str, str], Fraction] = field(default_factory=dict)
    awaited: dict[int, int] = field(default_factory=dict)

    def event(self, stored: Line) -> Event:
        """What the next entry says."""
        fields = check_line(stored, self.head)
        event = body_from(stored.seq, fields)
        if isinstance(event, Upgraded) or "totals" in fields:
            raise NotAsRecorded("is no entry of format 1")
        return event

    def take(self, seq: int, event: Event) -> None:
        """One more event."""
        if isinstance(event, Began) != (seq == 0):
            raise NotAsRecorded("a ledger begins once")
        match event:
            case Began(id=name, format=written):
                if written != FORMAT:
                    raise NotAsRecorded(f"is of format {written}")
                self.id = name
            case Took():
                self._took(seq, event)
            case Recorded():
                self._recorded(event)
            case _:
                self.budgets = owned(self.budgets, event, seq)

    def _took(self, seq: int, event: Took) -> None:
        session = self.sessions.get(event.session) or opened(event.analyst)
        if session.analyst != event.analyst:
            raise NotAsRecorded("another analyst's session")
        if event.charged and event.rule is not Rule.QUERY:
            raise NotAsRecorded("charges without a measurement")
        if event.rule is not Rule.QUERY_BOTTOM:  # a refusal by the constants of then changed nothing
            session = self._stepped(seeing(self.budgets, session), event)
        self.sessions[event.session] = session
        if event.rule is Rule.QUERY:
            assert isinstance(event.action, Query)
            self.awaited[seq] = event.action.parts

    def _stepped(self, session: Session, event: Took) -> Session:
        """The session after a step; its charge is the recorded one, which is not less than the kernel's."""
        try:
            decision = decide(alone(self.budgets, session, session.taken), session, event.action)
        except ProgramError as error:
            raise NotAsRecorded(f"the kernel refuses the action: {error}") from None
        if decision.transition.rule is not event.rule:
            raise NotAsRecorded(f"the rule is {decision.transition.rule}, not {event.rule}")
        self._charge(event)
        for root in decision.charged:
            if decision.session.spent(root) > self.charged.get((event.session, root), ZERO):
                raise NotAsRecorded(f"was charged less at {root!r} than the kernel charges")
        return decision.session

    def _charge(self, event: Took) -> None:
        more: dict[str, int] = {}
        for root, cost in event.charged.items():
            if root not in self.budgets.roots or cost <= 0:
                raise NotAsRecorded("charges what there is not")
            before = self.charged.get((event.session, root), ZERO)
            self.charged[event.session, root] = before + cost
            more[root] = units(before + cost) - units(before)
        self.budgets = spend(self.budgets, event.analyst, more)
        for account in accounts_of(self.budgets, event.analyst, more):
            promised = self.budgets.promised(account)
            if promised is None or self.budgets.spent[account] > units(promised):
                raise NotAsRecorded("charges more than was promised")

    def _recorded(self, event: Recorded) -> None:
        awaited = self.awaited.pop(event.answers, None)
        if awaited is None or awaited != len(event.released):
            raise NotAsRecorded("answers what was not asked, or was answered before")
