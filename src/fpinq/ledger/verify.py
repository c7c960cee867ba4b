"""Verify: the chain recomputed, and every step taken again by the kernel.

What it trusts is the kernel and SHA-256. The entries must follow from each
other, every recorded rule and charge must be what `step` gives, each answer must
answer a charged query, once; and the accounts in the database must be what the
entries add up to. A copy from before is whole too: only a head that was written
down elsewhere tells it from the ledger.
"""

import marshal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from fpinq.ledger.entries import (
    START,
    Began,
    Froze,
    Head,
    Line,
    Recorded,
    Registered,
    Took,
    Unfroze,
    body_from,
    check_line,
)
from fpinq.ledger.errors import BadWire, LedgerCorrupt
from fpinq.ledger.programs import Budgets, Session, opened
from fpinq.ledger.spending import units
from fpinq.ledger.store import Pages, Store
from fpinq.ledger.wire import from_json
from fpinq.model.actions import Action
from fpinq.model.errors import ProgramError
from fpinq.model.semantics import Configuration
from fpinq.model.sources import certify

# Programs ask the same things again: an action is decoded once.
MAX_DECODED = 20_000


@dataclass
class Replay:
    """The fold of the kernel over entries: the budgets, and every session's configuration."""

    budgets: Budgets = field(default_factory=Budgets)
    sessions: dict[str, Session] = field(default_factory=dict)
    head: Head = START
    # Charged queries without an answer: the process died, or is at it.
    unanswered: set[int] = field(default_factory=set)
    _decoded: dict[bytes, Action] = field(default_factory=dict)

    def configurations(self) -> dict[str, Configuration]:
        """⟨E, C⟩ of every session."""
        return {name: session.configuration for name, session in self.sessions.items()}

    def take(self, stored: Line) -> None:
        """One more entry; LedgerCorrupt if it does not follow."""
        fields = check_line(stored, self.head)
        match fields["kind"]:
            case Took.kind:
                self._step(stored.seq, fields)
            case Recorded.kind:
                self._record(stored.seq, fields)
            case _:
                self._owner(stored.seq, fields)
        self.head = Head(stored.seq, stored.hash)

    def _step(self, seq: int, fields: dict[str, Any]) -> None:
        try:
            session, analyst, rule = fields["session"], fields["analyst"], fields["rule"]
            action, charged = self._action(fields["action"]), fields["charged"]
        except (KeyError, BadWire) as error:
            raise LedgerCorrupt(seq, f"cannot be read: {error}") from None
        program = self.sessions.get(session) or opened(analyst)
        if program.analyst != analyst:
            raise LedgerCorrupt(seq, "another analyst's session")
        try:
            decision = self.budgets.decide(program, action)
        except ProgramError as error:
            raise LedgerCorrupt(seq, f"the kernel refuses the action: {error}") from None
        if decision.transition.rule != rule:
            raise LedgerCorrupt(seq, f"the rule is {decision.transition.rule}, not {rule}")
        if {root: str(cost) for root, cost in decision.charged.items()} != charged:
            raise LedgerCorrupt(seq, "the charge is not what the kernel charges")
        if rule == "Query":
            self.budgets.take(decision)
            self.unanswered.add(seq)
        self.sessions[session] = decision.session

    def _action(self, data: Any) -> Action:
        key = marshal.dumps(data, 2)
        found = self._decoded.get(key)
        if found is None:
            if len(self._decoded) >= MAX_DECODED:
                self._decoded.clear()
            found = self._decoded[key] = from_json(data, Action)
        return found

    def _record(self, seq: int, fields: dict[str, Any]) -> None:
        if fields["answers"] not in self.unanswered:
            raise LedgerCorrupt(seq, "answers what was not asked, or was answered before")
        self.unanswered.discard(fields["answers"])
        released = fields.get("released")
        if type(released) is not list:
            raise LedgerCorrupt(seq, "releases nothing")

    def _owner(self, seq: int, fields: dict[str, Any]) -> None:
        body = body_from(seq, fields)
        if isinstance(body, Began) != (seq == 0):
            raise LedgerCorrupt(seq, "a ledger begins once")
        match body:
            case Registered(name=name):
                if name in self.budgets.roots:
                    raise LedgerCorrupt(seq, f"{name!r} has a second budget")
                self.budgets.register(body, seq)
            case Froze(name=name):
                self.budgets.frozen.add(name)
            case Unfroze(name=name):
                self.budgets.frozen.discard(name)


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


def verify(
    store: Store,
    expect_head: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Verify a ledger; LedgerCorrupt, with the first bad entry, if it is not what was written.

    expect_head is a hash that was written down: it must be that of an entry,
    so that no older copy was put back.
    """
    replayed, expected = Replay(), expect_head is None
    try:
        with store.reading() as statements:
            pages = Pages(statements)
            head = pages.head()
            accounts = pages.accounts()
            for stored in pages.after(START.seq):
                replayed.take(stored)
                expected = expected or stored.hash == expect_head
                if stored.seq % 1000 == 0:
                    progress(stored.seq, head.seq + 1)
    except LedgerCorrupt as error:
        if error.seq < 0:  # the database itself does not know where
            raise LedgerCorrupt(replayed.head.seq + 1, error.what) from None
        raise
    progress(head.seq + 1, head.seq + 1)
    if replayed.head != head:
        raise LedgerCorrupt(replayed.head.seq + 1, "is missing: the head says that it was written")
    if not expected:
        raise LedgerCorrupt(
            head.seq + 1, "is missing: no entry has the expected head; an older copy was put back"
        )
    _check_accounts(replayed, accounts)
    for session in replayed.sessions.values():
        certify(session.configuration.accounts)
    roots = {
        name: (root.budget, sum((s.spent(name) for s in replayed.sessions.values()), Fraction(0)))
        for name, root in replayed.budgets.roots.items()
    }
    return Report(head.seq + 1, head, len(replayed.sessions), len(replayed.unanswered), roots)


def _check_accounts(replayed: Replay, accounts: dict[tuple[str, str], tuple[int, int]]) -> None:
    """The accounts in the database are what the entries add up to."""
    budgets = replayed.budgets
    owed = {}
    for (name, who), spent in budgets.spent.items():
        total = budgets.roots[name].cap_of(who) if who else budgets.roots[name].budget
        assert total is not None
        owed[name, who] = (spent, units(total))
    if owed != accounts:
        wrong = min(key for key in owed.keys() | accounts.keys() if owed.get(key) != accounts.get(key))
        raise LedgerCorrupt(
            replayed.head.seq, f"the account of {wrong[0]!r} is not what the entries add up to"
        )
