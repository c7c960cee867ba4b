"""Sharing out: `verify` with several processes, for long ledgers.

Sessions meet only in what they spend, so they can be shared out. Each process
reads all entries: it takes those of its own sessions, and all of the owner's, as
`verify` does; of the others it believes the charges, which another process
checks. So every entry is checked by one of them, as it would be alone, and what
the first bad entry is, and what is wrong with it, is found as it would be alone.
"""

from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from zlib import crc32

from fpinq.ledger.entries import MAX_DECODED, OWNER, WRITTEN, Head, Line, check_next, parsed
from fpinq.ledger.errors import BadWire, LedgerCorrupt
from fpinq.ledger.store import Store
from fpinq.ledger.verify import Found, Progress, Replay, found_by, through
from fpinq.ledger.wire import from_json
from fpinq.model.semantics import Rule
from fpinq.model.sessions import State, accounts_of, amounts, spend
from fpinq.model.units import amount, units

# An amount: in units if it is a whole number of them, which is the usual case and a fast one; else exactly.
Exact = Fraction | int


class Unbelievable(LedgerCorrupt):
    """Another's entry that cannot be believed. Whoever it belongs to finds what is wrong with it."""


@dataclass
class Share:
    """Number `number` of `shares`."""

    number: int
    shares: int
    replay: Replay = field(default_factory=Replay)
    # What sessions of others were charged at each root.
    _others: dict[str, dict[str, Exact]] = field(default_factory=dict)

    def take(self, stored: Line) -> None:
        """One more entry; LedgerCorrupt if it does not follow."""
        state = self.replay.state
        if self._is_own(stored):
            if state.events != stored.seq:
                self.replay.state = state._replace(events=stored.seq)
            self.replay.take(stored)
            return
        check_next(stored, self.replay.head)
        self._believe(stored)
        self.replay.head = Head(stored.seq, stored.hash)

    def _is_own(self, stored: Line) -> bool:
        session = stored.session
        if session is None:
            return stored.seq % self.shares == self.number
        return session == OWNER or crc32(str(session).encode()) % self.shares == self.number

    def _believe(self, stored: Line) -> None:
        """Another's entry: only what it charged, or that it is an answer."""
        try:
            if stored.session is None:
                self._believe_answer(stored.answers)
            elif WRITTEN[Rule.QUERY] in stored.text:
                self._believe_charge(stored, stored.session)
        except (KeyError, AttributeError, TypeError, BadWire) as error:
            raise Unbelievable(stored.seq, f"cannot be read: {error}") from None

    def _believe_answer(self, answers: int | None) -> None:
        state = self.replay.state
        if answers is None or answers not in state.awaited:
            raise BadWire("no answer to a question")
        self.replay.state = state._replace(awaited=state.awaited.without(answers))

    def _believe_charge(self, stored: Line, session: str) -> None:
        state, fields = self.replay.state, parsed(stored)
        if fields["rule"] != Rule.QUERY:
            return
        more: dict[str, int] = {}
        charges = self._others.setdefault(session, {})
        for root, cost in fields["charged"].items():
            charges[root], more[root] = _added(charges.get(root, 0), cost)
        budgets = spend(state.budgets, fields["analyst"], more)
        self.replay.totals.take(amounts(budgets, accounts_of(budgets, fields["analyst"], more)))
        awaited = state.awaited.put(stored.seq, len(fields["action"]["queries"]))
        self.replay.state = State(budgets, state.sessions, awaited, stored.seq + 1)


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
    with ProcessPoolExecutor(jobs - 1) as pool:
        others = [
            pool.submit(_of_address, store.address, last, expect_head, number, jobs)
            for number in range(1, jobs)
        ]
        found = [_share(store, last, expect_head, progress, 0, jobs), *(other.result() for other in others)]
    if corrupt := [each for each in found if isinstance(each, LedgerCorrupt)]:
        raise min(corrupt, key=lambda error: (error.seq, isinstance(error, Unbelievable)))
    return [each for each in found if isinstance(each, Found)]


def _of_address(
    address: str, last: int, expect_head: str | None, number: int, shares: int
) -> Found | LedgerCorrupt:
    """One share, in a process of its own."""
    from fpinq.ledger import open_store

    with closing(open_store(address, create=False)) as store:
        return _share(store, last, expect_head, lambda done, total: None, number, shares)


def _share(
    store: Store, last: int, expect_head: str | None, progress: Progress, number: int, shares: int
) -> Found | LedgerCorrupt:
    share = Share(number, shares)
    try:
        expected = through(store, last, expect_head, progress, share.take)
    except LedgerCorrupt as error:
        return error
    return found_by(share.replay, expected)
