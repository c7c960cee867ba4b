"""Verify: the chain recomputed, and every step taken again by the kernel.

What it trusts is the kernel and SHA-256. The entries must follow from each
other, every recorded rule and charge must be what `step` gives, each answer must
answer a charged query, once; and the totals in every entry and the accounts in
the database must be what the entries add up to. A copy from before is whole too: only a head that was written
down elsewhere tells it from the ledger.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any
from zlib import crc32

from fpinq.ledger.entries import (
    EVERY,
    OWNER,
    START,
    Began,
    Froze,
    Head,
    Line,
    Registered,
    Unfroze,
    body_from,
    check_line,
    parsed,
)
from fpinq.ledger.errors import BadWire, LedgerCorrupt
from fpinq.ledger.opening import check_format
from fpinq.ledger.programs import Budgets, Session, opened
from fpinq.ledger.spending import amount, units
from fpinq.ledger.store import Pages, Store
from fpinq.ledger.totals import Account, Amounts, Totals
from fpinq.ledger.wire import from_json
from fpinq.model.accounts import certify
from fpinq.model.actions import Action, Query
from fpinq.model.closed import check_closed
from fpinq.model.errors import BadAction, ProgramError
from fpinq.model.semantics import Configuration, step_closed

# Fewer entries are verified sooner than processes are started.
WORTH_SHARING = 50_000
# What entries say; the same in each of a kind.
_ACTION = EVERY | {"session", "analyst", "request", "action", "rule", "charged"}
_ANSWER = EVERY | {"answers", "released"}
ZERO = Fraction(0)
Progress = Callable[[int, int], None]
# Programs ask the same things again: an action is decoded once.
MAX_DECODED = 20_000


@dataclass
class Replay:
    """The fold of the kernel over entries: the budgets, and every session's configuration.

    Sessions meet only in what they spend, so they can be shared out: replay
    number `number` of `shares` takes the steps of its own sessions, and of the
    others believes the charges, which another replay checks.
    """

    number: int = 0
    shares: int = 1
    budgets: Budgets = field(default_factory=Budgets)
    totals: Totals = field(default_factory=Totals)
    sessions: dict[str, Session] = field(default_factory=dict)
    head: Head = START
    # Charged queries without an answer (the process died, or is at it), and how many answers each awaits.
    unanswered: dict[int, int] = field(default_factory=dict)
    _others: dict[str, dict[str, Fraction | int]] = field(default_factory=dict)
    _decoded: dict[str, Action] = field(default_factory=dict)

    def configurations(self) -> dict[str, Configuration]:
        """⟨E, C⟩ of every session."""
        return {name: session.configuration for name, session in self.sessions.items()}

    def take(self, stored: Line) -> None:
        """One more entry; LedgerCorrupt if it does not follow."""
        if self.shares > 1 and not self._is_own(stored):
            self._believe(stored)
        else:
            fields = check_line(stored, self.head)
            kind = fields["kind"]
            if kind == "action":
                self._step(stored, fields)
            elif kind == "answer":
                awaited = self._record(stored.seq, stored.answers)
                if fields.keys() != _ANSWER or not _is_released(fields["released"], awaited):
                    raise LedgerCorrupt(stored.seq, "does not release what was asked for")
            else:
                self._owner(stored.seq, fields)
            if fields.get("totals") != self.totals.text:
                raise LedgerCorrupt(stored.seq, "its totals are not what the entries add up to")
        self.head = Head(stored.seq, stored.hash)

    def _is_own(self, stored: Line) -> bool:
        session = stored.session
        if session is None:
            return stored.seq % self.shares == self.number
        if session in self.sessions or session == OWNER:
            return True
        return session not in self._others and crc32(session.encode()) % self.shares == self.number

    def _believe(self, stored: Line) -> None:
        """Another replay's entry: only what it charged."""
        if stored.seq != self.head.seq + 1:
            raise LedgerCorrupt(self.head.seq + 1, f"missing: entry {stored.seq} comes next")
        if stored.session is None:
            self._record(stored.seq, stored.answers)
            return
        charges = self._others.setdefault(stored.session, {})
        if '"rule":"Query"' in stored.text:
            fields = parsed(stored)
            more: dict[str, int] = {}
            try:
                self.unanswered[stored.seq] = len(fields["action"]["queries"])
                for root, cost in fields["charged"].items():
                    charges[root], more[root] = _added(charges.get(root, 0), cost)
                self.totals.take(self.budgets.add(fields["analyst"], more))
            except (KeyError, AttributeError, TypeError, BadWire) as error:
                raise LedgerCorrupt(stored.seq, f"cannot be read: {error}") from None

    def _step(self, stored: Line, fields: dict[str, Any]) -> None:
        seq = stored.seq
        try:
            session, analyst, rule = fields["session"], fields["analyst"], fields["rule"]
            action, charged = self._action(stored.text, fields["action"]), fields["charged"]
            if fields.keys() != _ACTION:
                raise BadWire("it says more than an action does")
        except (KeyError, BadWire, BadAction) as error:
            raise LedgerCorrupt(seq, f"cannot be read: {error}") from None
        program = self.sessions.get(session) or opened(analyst)
        if program.analyst != analyst:
            raise LedgerCorrupt(seq, "another analyst's session")
        try:
            decision = self.budgets.decide(program, action, step_closed)
        except ProgramError as error:
            raise LedgerCorrupt(seq, f"the kernel refuses the action: {error}") from None
        if decision.transition.rule != rule:
            raise LedgerCorrupt(seq, f"the rule is {decision.transition.rule}, not {rule}")
        if {root: str(cost) for root, cost in decision.charged.items()} != charged:
            raise LedgerCorrupt(seq, "the charge is not what the kernel charges")
        if rule == "Query":
            self.totals.take(self.budgets.add(analyst, decision.units))
            assert isinstance(action, Query)
            self.unanswered[seq] = len(action.queries)
        self.sessions[session] = decision.session

    def _action(self, text: str, data: Any) -> Action:
        # Keys are sorted and written once, so a text begins with its one action, up to what comes next;
        # nothing within an action is called so, and within a string the quotes would be escaped.
        if text.rfind('"action":') != 1:
            raise BadWire("its action is not where it belongs")
        key = text[: text.find(',"analyst":')]
        found = self._decoded.get(key)
        if found is None:
            if len(self._decoded) >= MAX_DECODED:
                self._decoded.clear()
            found = from_json(data, Action)
            check_closed(found, Action)
            self._decoded[key] = found
        return found

    def _record(self, seq: int, answers: int | None) -> int:
        """A query is answered; how many answers it awaited."""
        awaited = self.unanswered.pop(answers, None)  # type: ignore[arg-type]
        if awaited is None:
            raise LedgerCorrupt(seq, "answers what was not asked, or was answered before")
        return awaited

    def _owner(self, seq: int, fields: dict[str, Any]) -> None:
        body = body_from(seq, fields)
        if isinstance(body, Began) != (seq == 0):
            raise LedgerCorrupt(seq, "a ledger begins once")
        match body:
            case Registered(name=name):
                if name in self.budgets.roots:
                    raise LedgerCorrupt(seq, f"{name!r} has a second budget")
                try:
                    self.budgets.known(body)
                except ProgramError as error:
                    raise LedgerCorrupt(seq, str(error)) from None
                self.totals.take(self.budgets.register(body, seq))
            case Froze(name=name):
                self.budgets.frozen.add(name)
            case Unfroze(name=name):
                self.budgets.frozen.discard(name)


def _is_released(released: Any, awaited: int) -> bool:
    """Whether it is what so many queries release: numbers, or lists of them."""
    return (
        type(released) is list
        and len(released) == awaited
        and all(
            type(each) is int or (type(each) is list and all(type(number) is int for number in each))
            for each in released
        )
    )


def _added(before: Fraction | int, cost: str) -> tuple[Fraction | int, int]:
    """What a session was charged after one charge more, and the units that this takes.

    As a number of units as long as it is a whole one, which is the usual case and a fast one.
    """
    exact = _exactly(cost)
    if type(before) is int and type(exact) is int:
        return before + exact, exact
    was = amount(before) if isinstance(before, int) else before
    now = was + (amount(exact) if isinstance(exact, int) else exact)
    return now, units(now) - units(was)


@lru_cache(MAX_DECODED)
def _exactly(cost: str) -> Fraction | int:
    """A charge in units if it is a whole number of them, else exactly."""
    exact: Fraction = from_json(cost, Fraction)
    return units(exact) if amount(units(exact)) == exact else exact


def replay(entries: Iterable[Line]) -> Replay:
    """The sessions and budgets after entries, oldest first, through the kernel.

    Raises LedgerCorrupt at the first entry that does not follow from those
    before; nothing after it can be trusted.
    """
    replayed = Replay()
    for stored in entries:
        replayed.take(stored)
    return replayed


@dataclass(frozen=True)
class Report:
    """What verify found: nothing wrong."""

    entries: int
    head: Head
    sessions: int
    unanswered: int
    # root ↦ budget, what is spent of it
    roots: dict[str, tuple[Fraction, Fraction]]


@dataclass(frozen=True)
class _Share:
    """What one replay found: the head it came to, and what its own sessions spent."""

    head: Head
    expected: bool
    sessions: int
    unanswered: int
    accounts: dict[Account, Amounts]
    budgets: dict[str, Fraction]
    spent: dict[str, Fraction]


def verify(
    store: Store,
    expect_head: str | None = None,
    progress: Progress = lambda done, total: None,
    jobs: int = 1,
) -> Report:
    """Verify a ledger; LedgerCorrupt, with the first bad entry, if it is not what was written.

    expect_head is a hash that was written down: it must be that of an entry,
    so that no older copy was put back. With several jobs a long ledger is
    shared out over that many processes.
    """
    try:
        with store.reading() as statements:
            pages = Pages(statements)
            check_format(pages)
            head, accounts = pages.head(), pages.accounts()
            pages.secret()
    except LedgerCorrupt as error:
        raise LedgerCorrupt(max(error.seq, 0), error.what) from None
    jobs = jobs if head.seq >= WORTH_SHARING else 1
    shares = [(store.address, number, jobs, expect_head) for number in range(jobs)]
    if jobs == 1:
        found = [_share(store, 0, 1, expect_head, head.seq, progress)]
    else:
        with ProcessPoolExecutor(jobs - 1) as pool:
            others = [pool.submit(_share_of, *share, head.seq) for share in shares[1:]]
            results: list[_Share | LedgerCorrupt] = []
            try:
                results.append(_share(store, 0, jobs, expect_head, head.seq, progress))
            except LedgerCorrupt as error:
                results.append(error)
            for other in others:
                results.append(other.result())
        if corrupt := [result for result in results if isinstance(result, LedgerCorrupt)]:
            raise min(corrupt, key=lambda error: error.seq)
        found = [result for result in results if isinstance(result, _Share)]
    progress(head.seq + 1, head.seq + 1)
    first = found[0]
    if first.head.seq < head.seq:
        raise LedgerCorrupt(first.head.seq + 1, "is missing: the head says that it was written")
    if first.head != head:
        raise LedgerCorrupt(min(head.seq + 1, first.head.seq), "the head does not know it")
    if not first.expected:
        raise LedgerCorrupt(
            head.seq + 1, "is missing: no entry has the expected head; an older copy was put back"
        )
    for share in found:
        _check_accounts(share.accounts, accounts, head)
    roots = {
        name: (budget, sum((share.spent[name] for share in found), ZERO))
        for name, budget in first.budgets.items()
    }
    return Report(head.seq + 1, head, sum(share.sessions for share in found), first.unanswered, roots)


def _share_of(
    address: str, number: int, shares: int, expect_head: str | None, last: int
) -> "_Share | LedgerCorrupt":
    """One share, in a process of its own."""
    from fpinq.ledger import open_store

    with closing(open_store(address, create=False)) as store:
        try:
            return _share(store, number, shares, expect_head, last)
        except LedgerCorrupt as error:
            return error


def _share(
    store: Store,
    number: int,
    shares: int,
    expect_head: str | None,
    last: int,
    progress: Progress = lambda done, total: None,
) -> _Share:
    """Replay the entries, taking the steps of one share of the sessions."""
    replayed, expected = Replay(number, shares), expect_head is None
    try:
        with store.reading() as statements:
            for stored in Pages(statements).after(START.seq):
                if shares > 1 and stored.seq > last:  # written since
                    break
                replayed.take(stored)
                expected = expected or stored.hash == expect_head
                if stored.seq % 1000 == 0:
                    progress(stored.seq, max(last, stored.seq) + 1)
    except LedgerCorrupt as error:
        if error.seq < 0:  # the database itself does not know where
            raise LedgerCorrupt(replayed.head.seq + 1, error.what) from None
        raise
    for session in replayed.sessions.values():
        certify(session.configuration.accounts)
    budgets = replayed.budgets
    spent = {n: sum((s.spent(n) for s in replayed.sessions.values()), ZERO) for n in budgets.roots}
    return _Share(
        replayed.head,
        expected,
        len(replayed.sessions),
        len(replayed.unanswered),
        budgets.accounts(),
        {name: root.budget for name, root in budgets.roots.items()},
        spent,
    )


def _check_accounts(owed: dict[Account, Amounts], accounts: dict[Account, Amounts], head: Head) -> None:
    """The accounts in the database are what the entries add up to."""
    if owed != accounts:
        wrong = min(key for key in owed.keys() | accounts.keys() if owed.get(key) != accounts.get(key))
        raise LedgerCorrupt(head.seq, f"the account of {wrong[0]!r} is not what the entries add up to")
