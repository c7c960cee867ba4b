"""What a process holds of a ledger: as it is after an entry, its head. The entries stay in the database.

Whoever reads or writes first takes over what other processes wrote since
(`catch_up`); what does not follow from what is held is looked at as when it
was opened. A session is its own entries: it is replayed when it acts, and kept.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from fpinq.ledger.entries import OWNER, START, Head, Line, body_of, check_line, parsed
from fpinq.ledger.errors import LedgerCorrupt, LedgerRolledBack
from fpinq.ledger.kept import Kept, Program
from fpinq.ledger.opening import RECENT, look, read_accounts, take_owners
from fpinq.ledger.store import MAX_SEQ, Pages
from fpinq.ledger.together import Behind
from fpinq.ledger.totals import NONE
from fpinq.model.errors import KernelViolation, NotAsRecorded
from fpinq.model.events import Took
from fpinq.model.semantics import Label, Rule
from fpinq.model.sessions import Budgets, check_owner, followed, opened

# What no ledger has as its head: read everything.
UNKNOWN = Head(-2, "")

# How many entries of a session, and of how many characters, are followed while everybody waits; and how many
# are read at a time otherwise.
FEW = 50
SHORT = 100_000
OF_A_SESSION = 100
# How many queries without an answer are remembered.
MAX_ASKED = 10_000


class Past(NamedTuple):
    """A session as it was after an entry, in a ledger that was loaded so often.

    `rehearsed`: what was asked of it was checked already, while others acted; that is not done again.
    """

    loads: int
    program: Program | None = None
    seq: int = START.seq
    rehearsed: Label | None = None


class Memory:
    """Budgets, totals and sessions after the entry `head`. Used by one thread at a time.

    `durable` is the last entry that is surely on disk. check is asked whenever everything is read again,
    with the ledger's id.
    """

    def __init__(self, sessions: Kept, check: Callable[[Pages, str], None]) -> None:
        self.id = ""
        self.head = self.durable = START
        self.budgets, self.totals = Budgets(), NONE
        self.sessions, self.loads = sessions, 0
        self._check = check
        self._asked: OrderedDict[int, str] = OrderedDict()

    # ── staying up to date ───────────────────────────────────────────────────────────

    def catch_up(self, pages: Pages, now: Head) -> None:
        """Take over what other processes wrote since."""
        if now == self.head:
            return
        # Of many entries the last ones are looked at, as when it is opened.
        near = self.head != UNKNOWN and self.head.seq < now.seq <= self.head.seq + RECENT
        if not near or not self._follow(pages, now):
            # Entries that were not durable may be lost with the database's power; one that was may not.
            kept = pages.line(self.durable.seq)
            if kept is None or kept.hash != self.durable.hash:
                raise LedgerRolledBack(self.durable.seq, "is not there any more: an older copy was put back")
            self.load(pages)

    def _follow(self, pages: Pages, now: Head) -> bool:
        """Take over the entries after our head; False if they do not follow from it."""
        head = self.head
        first = pages.line(head.seq + 1)
        if first is None or parsed(first).get("previous") != head.hash:
            return False
        self.head = UNKNOWN  # until all of it is taken over
        fields: Mapping[str, Any] = {}
        for stored in pages.after(head.seq):
            fields = check_line(stored, head)
            head = Head(stored.seq, stored.hash)
            if stored.session == OWNER:
                self.budgets = take_owners(self.budgets, stored)
            elif stored.session is not None:
                self._follow_session(stored.session, stored)
        if head != now:
            raise LedgerCorrupt(now.seq, "the head is not the last entry")
        self.budgets, self.totals = read_accounts(pages, self.budgets, head, fields.get("totals"))
        self.head = now
        return True

    def _follow_session(self, name: str, stored: Line) -> None:
        program = self.sessions.get(name)
        self.sessions.forget(name)
        if program is not None:
            # If it used a variable that was dropped here, the session is replayed when it acts again.
            with suppress(LedgerCorrupt):
                self._keep_session(name, continued(self.budgets, program, [stored]))

    def load(self, pages: Pages) -> None:
        """Everything that is not a session's own, as it is now. Sessions are replayed when they act."""
        found = look(pages)
        self._check(pages, found.id)
        self.id = found.id
        self.loads += 1
        self.sessions.clear()
        self._asked.clear()
        self.budgets, self.totals = found.budgets, found.totals
        self.head, self.durable = found.head, found.durable

    # ── sessions ─────────────────────────────────────────────────────────────────────

    def session(
        self, pages: Pages, name: str, analyst: str | None, past: Past | None, before: int | None = None
    ) -> Program:
        """A session as it is now, or was before an entry; Behind if it has a long past that is not known."""
        program = self.sessions.get(name) if before is None else None
        if program is None:
            found = self._replayed(pages, name, past, MAX_SEQ if before is None else before)
            if before is None:
                self._keep_session(name, found)
            program = found or Program(opened(analyst))
        check_owner(program.session, name, analyst)
        return program

    def _keep_session(self, name: str, found: Program | None) -> None:
        if found is None:  # a session is whose it is once it has acted
            self.sessions.keep_fresh(name)
        else:
            self.sessions.keep(name, found)

    def _replayed(self, pages: Pages, name: str, past: Past | None, before: int) -> Program | None:
        """A session after its entries before one; None if there are none."""
        if past is None or past.loads != self.loads or past.seq >= before:
            past = Past(self.loads)
        own = pages.of_session(name, past.seq, before, FEW + 1)
        if len(own) > FEW or sum(len(each.text) for each in own) > SHORT:
            raise Behind(name, before)
        return continued(self.budgets, past.program, own)

    # ── queries without an answer ────────────────────────────────────────────────────

    def await_answer(self, seq: int, at: str) -> None:
        """Remember when a query was asked, until its answer is recorded."""
        self._asked[seq] = at
        if len(self._asked) > MAX_ASKED:
            self._asked.popitem(last=False)

    def asked_at(self, pages: Pages, seq: int) -> str:
        """When the query in an entry was asked; KernelViolation if that is none."""
        return self._asked.pop(seq, None) or _written_at(pages, seq)


def continued(budgets: Budgets, program: Program | None, own: Iterable[Line]) -> Program | None:
    """A session after more entries of its own; None if there are none at all."""
    for stored in own:
        took = body_of(stored)
        assert isinstance(took, Took)
        program = program or Program(opened(took.analyst))
        try:
            session = followed(budgets, program.session, took, stored.seq)
        except NotAsRecorded as error:
            raise LedgerCorrupt(stored.seq, str(error)) from None
        program = program.after(session, took.action, len(stored.text))
    return program


def _written_at(pages: Pages, seq: int) -> str:
    asked = pages.line(seq)
    took = body_of(asked) if asked is not None else None
    if asked is None or not isinstance(took, Took) or took.rule is not Rule.QUERY:
        raise KernelViolation(f"entry {seq} is no query that was charged")
    at: str = parsed(asked)["at"]
    return at
