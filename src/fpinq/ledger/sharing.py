"""Sharing out: `verify` with several processes, for long ledgers.

Sessions meet only in what they spend, so they can be shared out. Each process
reads all entries: it takes those of its own sessions, and all of the owner's, as
`verify` does; of the others it believes the charges, which another process
checks. So every entry is checked by one of them, as it would be alone, and what
the first bad entry is, and what is wrong with it, is found as it would be alone.
"""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Any
from zlib import crc32

from fpinq.ledger.entries import OWNER, START, Head, Line, check_next, parsed
from fpinq.ledger.errors import BadWire, LedgerCorrupt
from fpinq.ledger.reading import MAX_DECODED, NAMES, WRITTEN, Reader
from fpinq.ledger.store import Store
from fpinq.ledger.totals import NONE, Totals
from fpinq.ledger.verify import Found, Progress, found_by, through
from fpinq.ledger.wire import from_json
from fpinq.model.errors import NotAsRecorded
from fpinq.model.events import Event, Recorded, Took
from fpinq.model.keys import Product
from fpinq.model.semantics import Measure, Rule
from fpinq.model.sessions import (
    Account,
    Budgets,
    Session,
    State,
    accounts_of,
    amounts,
    changed,
    check_answer,
    decided,
    opened,
    spent_more,
    take_closed,
)
from fpinq.model.units import amount, units

# An amount: in units if it is a whole number of them, which is the usual case and a fast one; else exactly.
Exact = Fraction | int


_CHARGED = WRITTEN[Rule.QUERY]


class Unbelievable(LedgerCorrupt):
    """Another's entry that cannot be believed. Whoever it belongs to finds what is wrong with it."""


@dataclass
class Share:
    """Number `number` of `shares`: what `verify.Replay` is, in tables that are changed in place."""

    number: int
    shares: int
    head: Head = START
    budgets: Budgets = field(default_factory=Budgets)
    totals: Totals = NONE
    sessions: dict[str, Session] = field(default_factory=dict)
    awaited: dict[int, int] = field(default_factory=dict)
    reader: Reader = field(default_factory=Reader)
    _own: dict[str, bool] = field(default_factory=dict)
    # What sessions of others were charged at each root.
    _others: dict[str, dict[str, Exact]] = field(default_factory=dict)
    # What they took of accounts, in units, since the last entry of its own.
    _believed: dict[Account, int] = field(default_factory=dict)

    @property
    def state(self) -> State:
        """What the entries so far made, as far as it is this share's."""
        self._settle()
        return State(self.budgets, self.sessions, self.awaited, self.head.seq + 1)

    def take(self, stored: Line) -> None:
        """One more entry; LedgerCorrupt if it does not follow."""
        if self._is_own(stored):
            self._check(stored)
        else:
            self._believe(stored)
        self.head = Head(stored.seq, stored.hash)

    def _is_own(self, stored: Line) -> bool:
        session = stored.session
        if session is None:
            return stored.seq % self.shares == self.number
        own = self._own.get(session)
        if own is None:
            own = session == OWNER or crc32(str(session).encode()) % self.shares == self.number
            self._own[session] = own
        return own

    # ── its own ──────────────────────────────────────────────────────────────────────

    def _check(self, stored: Line) -> None:
        """As `Replay.take`, but for where the state is."""
        event, totals = self.reader.event(stored, self.head)
        if self._believed:
            self._settle()
        try:
            if type(event) is Took and stored.seq:
                self._step(stored.seq, event)
            elif type(event) is Recorded and stored.seq:
                check_answer(self.awaited.pop(event.answers, None), event)
            else:
                self._owned(stored.seq, event)
        except NotAsRecorded as error:
            raise LedgerCorrupt(stored.seq, str(error)) from None
        if totals != self.totals.text:
            raise LedgerCorrupt(stored.seq, "its totals are not what the entries add up to")

    def _owned(self, seq: int, event: Event) -> None:
        self.budgets = take_closed(State(self.budgets, {}, {}, seq), event).budgets
        self.totals = self.totals.after(changed(self.budgets, event))

    def _step(self, seq: int, event: Took) -> None:
        decision = decided(self.budgets, self.sessions.get(event.session) or opened(event.analyst), event)
        self.sessions[event.session] = decision.session
        label = decision.transition.label
        if isinstance(label, Measure):
            self.awaited[seq] = label.parts
            self.budgets = decision.budgets
            self.totals = self.totals.after(changed(self.budgets, event))

    # ── another's ────────────────────────────────────────────────────────────────────

    def _believe(self, stored: Line) -> None:
        """Only what it charged, or that it is an answer."""
        if stored.seq != self.head.seq + 1:
            check_next(stored, self.head)
        try:
            if stored.session is None:
                del self.awaited[stored.answers]  # type: ignore[arg-type]
            elif _CHARGED in stored.text:
                self._believe_charge(stored.seq, stored.session, parsed(stored))
        except (KeyError, AttributeError, TypeError, BadWire) as error:
            raise Unbelievable(stored.seq, f"cannot be read: {error}") from None

    def _believe_charge(self, seq: int, session: str, fields: dict[str, Any]) -> None:
        if fields["rule"] != Rule.QUERY:
            return
        if type(fields["analyst"]) not in NAMES:
            raise BadWire("its analyst is no name")
        more, charges = {}, self._others.setdefault(session, {})
        for root, cost in fields["charged"].items():
            if self.budgets.promised((root, "")) is None:
                raise BadWire("a charge of no data set")
            charges[root], more[root] = _added(charges.get(root, 0), cost)
        for account in accounts_of(self.budgets, fields["analyst"], more):
            self._believed[account] = self._believed.get(account, 0) + more[account[0]]
        self.awaited[seq] = _parts(fields["action"])

    def _settle(self) -> None:
        """What was believed since the last entry of its own counts from now on."""
        self.budgets = spent_more(self.budgets, self._believed)
        self.totals = self.totals.after(amounts(self.budgets, self._believed))
        self._believed.clear()


def _parts(action: dict[str, Any]) -> int:
    """How many parts a query asks, as it is written."""
    keys = action["by"]["keys"] if action["by"] is not None else (None,)
    if type(keys) is not dict:
        return len(keys)
    written: range | Product = from_json(keys, range | Product)
    each = written.of if isinstance(written, Product) else (written,)
    return prod(keys.stop - keys.start if isinstance(keys, range) else len(keys) for keys in each)


def _added(before: Exact, cost: str) -> tuple[Exact, int]:
    """What a session was charged after one charge more, and the units that this takes."""
    exact = _exactly(cost)
    if type(before) is int and type(exact) is int:
        return before + exact, exact
    was = amount(before) if isinstance(before, int) else before
    now = was + (amount(exact) if isinstance(exact, int) else exact)
    return now, units(now) - units(was)


@lru_cache(MAX_DECODED)
def _exactly(cost: str) -> Exact:
    exact: Fraction = from_json(cost, Fraction)
    return units(exact) if amount(units(exact)) == exact else exact


# ── in several processes ─────────────────────────────────────────────────────────────


def shared_out(
    store: Store, last: int, expect_head: str | None, progress: Progress, jobs: int
) -> list[Found]:
    """What each share found; LedgerCorrupt, with the first bad entry of all of them."""
    if jobs == 1:
        return together([share_of(store, last, expect_head, progress, 0, 1)])
    with ProcessPoolExecutor(jobs - 1) as pool:
        others = [
            pool.submit(_of_address, store.address, last, expect_head, number, jobs)
            for number in range(1, jobs)
        ]
        own = share_of(store, last, expect_head, progress, 0, jobs)
        return together([own, *(other.result() for other in others)])


def together(found: Sequence[Found | LedgerCorrupt]) -> list[Found]:
    """What all shares found; LedgerCorrupt, as one process would find it, if one of them found that."""
    if corrupt := [each for each in found if isinstance(each, LedgerCorrupt)]:
        raise min(corrupt, key=lambda error: (error.seq, isinstance(error, Unbelievable)))
    return [each for each in found if isinstance(each, Found)]


def _of_address(
    address: str, last: int, expect_head: str | None, number: int, shares: int
) -> Found | LedgerCorrupt:
    """One share, in a process of its own."""
    from fpinq.ledger import open_store

    with closing(open_store(address, create=False)) as store:
        return share_of(store, last, expect_head, lambda done, total: None, number, shares)


def share_of(
    store: Store, last: int, expect_head: str | None, progress: Progress, number: int, shares: int
) -> Found | LedgerCorrupt:
    """What one share finds."""
    share = Share(number, shares)
    try:
        expected = through(store, last, expect_head, progress, share.take)
    except LedgerCorrupt as error:
        return error
    return found_by(share.head, share.state, expected)
