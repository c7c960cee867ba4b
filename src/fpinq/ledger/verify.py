"""Verify: the chain recomputed, and every event taken again by the fold that runs.

What it trusts is the kernel and SHA-256. For each entry, in order:

    its text has its hash, it names the hash of the entry before, and is filed
    under what it says; it has the one text that is written of what it says
                                                             `reading.Reader`
    it is an event that can have happened there: the recorded rule and charge are
    what the kernel gives, an answer answers a charged query, once
                                                             `model.sessions.take`
    its totals are what the entries so far add up to         `totals`

In the end the head is the last entry, and the accounts in the database are what
the entries add up to. A copy from before is whole too: only a head that was
written down elsewhere tells it from the ledger.

`sharing` does the same with several processes, and finds the same.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from fractions import Fraction

from fpinq.ledger.entries import START, Head, Line
from fpinq.ledger.errors import LedgerCorrupt
from fpinq.ledger.format_1 import check_kept
from fpinq.ledger.opening import check_format
from fpinq.ledger.reading import Reader
from fpinq.ledger.store import Pages, Store
from fpinq.ledger.totals import NONE, Totals
from fpinq.model.books import certify
from fpinq.model.errors import NotAsRecorded
from fpinq.model.frozen import dataclass
from fpinq.model.sessions import NOTHING, Account, Amounts, Budgets, State, amounts, changed, take_closed

# Fewer entries are verified sooner than processes are started.
WORTH_SHARING = 50_000
ZERO = Fraction(0)
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Report:
    """What verify found: nothing wrong."""

    entries: int
    head: Head
    sessions: int
    unanswered: int
    # root ↦ budget, what is spent of it
    roots: dict[str, tuple[Fraction, Fraction]]


@dataclass
class Replay:
    """The fold over entries: the state that their events make, the head and the totals."""

    state: State = NOTHING
    head: Head = START
    totals: Totals = NONE
    reader: Reader = field(default_factory=Reader)

    def take(self, stored: Line) -> None:
        """One more entry; LedgerCorrupt if it does not follow."""
        event, totals = self.reader.event(stored, self.head)
        try:
            # The reader has asked of every action whether it is closed data.
            self.state = take_closed(self.state, event)
        except NotAsRecorded as error:
            raise LedgerCorrupt(stored.seq, str(error)) from None
        self.totals = self.totals.after(changed(self.state.budgets, event))
        if totals != self.totals.text:
            raise LedgerCorrupt(stored.seq, "its totals are not what the entries add up to")
        self.head = Head(stored.seq, stored.hash)


def replay(entries: Iterable[Line]) -> Replay:
    """The state after entries, oldest first, through the kernel.

    Raises LedgerCorrupt at the first entry that does not follow from those
    before; nothing after it can be trusted.
    """
    replayed = Replay()
    for stored in entries:
        replayed.take(stored)
    return replayed


def verify(
    store: Store,
    expect_head: str | None = None,
    progress: Progress = lambda done, total: None,
    jobs: int = 1,
) -> Report:
    """Verify a ledger; LedgerCorrupt, with the first bad entry, if it is not what was written.

    expect_head is a hash that was written down: it must be that of an entry,
    so that no older copy was put back. A long ledger is shared out over as
    many processes as there are jobs.
    """
    beside = read_beside(store)
    if beside.last >= WORTH_SHARING:
        from fpinq.ledger.sharing import shared_out

        found = shared_out(store, beside.last, expect_head, progress, jobs)
    else:
        found = [replayed(store, beside.last, expect_head, progress)]
    progress(beside.last + 1, beside.last + 1)
    return with_older(concluded(found, beside), store)


# ── before, on the way, and in the end ───────────────────────────────────────────────


@dataclass(frozen=True)
class Beside:
    """What the database says beside the entries: the head and the accounts; and its last entry."""

    head: Head
    accounts: dict[Account, Amounts]
    last: int


@dataclass(frozen=True)
class Found:
    """What replaying found: where it ended, whether an entry has the expected hash, what was spent."""

    head: Head
    expected: bool
    sessions: int
    unanswered: int
    budgets: Budgets
    spent: dict[str, Fraction]


def read_beside(store: Store) -> Beside:
    """What is beside the entries."""
    try:
        with store.reading() as statements:
            pages = Pages(statements)
            check_format(pages)
            pages.secret()
            return Beside(pages.head(), pages.accounts(), pages.last())
    except LedgerCorrupt as error:
        raise LedgerCorrupt(max(error.seq, 0), error.what) from None


def replayed(store: Store, last: int, expect_head: str | None, progress: Progress) -> Found:
    """The entries up to the last one, replayed. What is written meanwhile is left for the next time."""
    whole = Replay()
    expected = through(store, last, expect_head, progress, whole.take)
    return found_by(whole.head, whole.state, expected)


def through(
    store: Store, last: int, expect_head: str | None, progress: Progress, take: Callable[[Line], None]
) -> bool:
    """Take the entries up to the last one, in order. Whether one has the expected hash."""
    expected, at = expect_head is None, START.seq
    try:
        with store.reading() as statements:
            for stored in Pages(statements).after(START.seq, last):
                take(stored)
                at, expected = stored.seq, expected or stored.hash == expect_head
                if at % 1000 == 0:
                    progress(at, last + 1)
    except LedgerCorrupt as error:
        # The database itself may not know where.
        raise error if error.seq >= 0 else LedgerCorrupt(at + 1, error.what) from None
    return expected


def found_by(head: Head, state: State, expected: bool) -> Found:
    """What a replay found, with the certificate of every session's accounts."""
    sessions = [state.sessions[name] for name in state.sessions]
    for session in sessions:
        certify(session.configuration.accounts)
    spent = {name: sum((each.spent(name) for each in sessions), ZERO) for name in state.budgets.listed}
    return Found(head, expected, len(sessions), len(state.awaited), state.budgets, spent)


def concluded(found: Sequence[Found], beside: Beside) -> Report:
    """The report, if the entries end where the head says and add up to the accounts."""
    first, head = found[0], beside.head
    if first.head.seq < head.seq:
        raise LedgerCorrupt(first.head.seq + 1, "is missing: the head says that it was written")
    if first.head != head:
        raise LedgerCorrupt(min(head.seq + 1, first.head.seq), "the head does not know it")
    if not first.expected:
        raise LedgerCorrupt(
            head.seq + 1, "is missing: no entry has the expected head; an older copy was put back"
        )
    for each in found:
        check_accounts(amounts(each.budgets, each.budgets.spent), beside.accounts, head)
    roots = {
        name: (root.amount, sum((each.spent[name] for each in found), ZERO))
        for name, root in first.budgets.listed.items()
    }
    return Report(head.seq + 1, head, sum(each.sessions for each in found), first.unanswered, roots)


def with_older(report: Report, store: Store) -> Report:
    """The report of a ledger that may have been upgraded: what it brought along is what is kept of it."""
    with store.reading() as statements:
        brought = check_kept(Pages(statements))
    roots = {name: (total, spent + brought.get(name, ZERO)) for name, (total, spent) in report.roots.items()}
    return replace(report, roots=roots)


def check_accounts(owed: dict[Account, Amounts], accounts: dict[Account, Amounts], head: Head) -> None:
    """The accounts in the database are what the entries add up to."""
    if owed != accounts:
        wrong = min(key for key in owed.keys() | accounts.keys() if owed.get(key) != accounts.get(key))
        raise LedgerCorrupt(head.seq, f"the account of {wrong[0]!r} is not what the entries add up to")
