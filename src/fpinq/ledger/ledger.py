"""The ledger: the kernel's step inside a database's transaction.

An action is a step in a transaction: lock the head, catch up with what other
processes wrote, step, write the entry, charge, commit. What the step read is what
it charges, whoever else is there; and when `act` returns a measurement, its
charge is on disk. Only then may it be measured, and only what `answer` returns may
be released. Steps that wait at the same time are one transaction (`together`).
"""

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from fpinq.ledger.acted import Acted, Check
from fpinq.ledger.alike import ColumnHashes, is_alike
from fpinq.ledger.alike import sealed as sealed_columns
from fpinq.ledger.anchor import Anchor, Mark, check_held, lost
from fpinq.ledger.entries import OWNER, START, Head, Line, action_text, body_of, check_line, parsed
from fpinq.ledger.errors import LedgerCorrupt, LedgerRolledBack, NoLedger, RequestReused, SessionTooLarge
from fpinq.ledger.kept import MAX_BYTES, Kept, Program
from fpinq.ledger.opening import RECENT, look, read_accounts, take_owners
from fpinq.ledger.process import IN_THE_MIDDLE, Alone, this_process
from fpinq.ledger.store import HEAD, MAX_SEQ, PAGE, Pages, Sought, Store, head_of
from fpinq.ledger.together import Behind, Large, Step, Together, alone
from fpinq.ledger.totals import NONE
from fpinq.ledger.writing import Writing
from fpinq.model.actions import Action, Asking, AskPrice, Query, Silent
from fpinq.model.environments import Numbered, TableVariable
from fpinq.model.errors import (
    KernelViolation,
    LedgerError,
    NotAsRecorded,
    OthersSession,
    ProgramError,
    SameData,
    UnknownTable,
)
from fpinq.model.events import Began, Froze, Recorded, Registered, Took, Unfroze
from fpinq.model.expressions import Schema
from fpinq.model.frozen import dataclass
from fpinq.model.notions import asked_at
from fpinq.model.plans import Shape
from fpinq.model.queries import Several
from fpinq.model.semantics import BOTTOM, TAU, Configuration, Label, Measure, Rule, measure
from fpinq.model.sessions import (
    Budgets,
    changed,
    check_owner,
    check_queries,
    check_thawed,
    configuration,
    decide,
    followed,
    known,
    opened,
    owned,
    seeing,
)
from fpinq.model.traces import Released
from fpinq.model.units import amount

MAX_NAME = 200

# What no ledger has as its head: read everything.
UNKNOWN = Head(-2, "")

# How many entries of a session, and of how many characters, are followed while everybody waits; and how many
# are read at a time otherwise.
FEW = 50
SHORT = 100_000
OF_A_SESSION = 100
# A query of more characters, with those of its tables, as often as it looks at them, is computed while others
# act, before it is taken.
LARGE = 100_000
# How many queries without an answer are remembered.
MAX_ASKED = 10_000

T = TypeVar("T")


class Past(NamedTuple):
    """A session as it was after an entry, in a ledger that was loaded so often.

    `rehearsed`: what was asked of it was checked already, while others acted; that is not done again.
    """

    loads: int
    program: Program | None = None
    seq: int = START.seq
    rehearsed: Label | None = None


@dataclass(frozen=True)
class RootState:
    """A data set as the ledger knows it."""

    registered: Registered
    spent: Fraction
    frozen: bool

    @property
    def remaining(self) -> Fraction:
        """What is left of the budget, for all sessions together."""
        return self.registered.amount - self.spent


class Ledger:
    """Sessions, budgets and the chain, in a store. Safe to use from several threads and processes."""

    def __init__(
        self,
        store: Store,
        *,
        anchor: Anchor | None = None,
        create: bool = True,
        kept_bytes: int = MAX_BYTES,
        session_bytes: int | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._clock = clock
        self._alone = Alone()
        self._process = this_process()
        self._head = self._durable = self._seen = START
        self._budgets, self._totals = Budgets(), NONE
        self._sessions, self._session_bytes = Kept(kept_bytes), session_bytes
        self._asked: OrderedDict[int, str] = OrderedDict()
        self._loads = 0
        self._together = Together(self._commit)
        self._anchor: Anchor | None = None
        self._held: Mark | None = None
        self._anchoring = Lock()
        self._open(create, anchor)
        if anchor is not None:
            self.keep_at(anchor)

    def _open(self, create: bool, anchor: Anchor | None) -> None:
        with self._alone.stepping(), self._store.writing(durable=True) as statements:
            pages = Pages(statements)
            if pages.is_blank():
                if not create:
                    raise NoLedger("there is a place for a ledger, but none has begun")
                if anchor is not None and (held := anchor.hold(None)) is not None:
                    raise lost(held, anchor.place)
                pages.keep_secret(secrets.token_bytes(32))
                writing = Writing(pages, START)
                writing.append(Began(secrets.token_hex(16)), self._now(), self._totals.text)
                writing.write()
            self._load(pages)
            self._key = pages.secret()

    # ── programs ─────────────────────────────────────────────────────────────────────

    def act(
        self,
        session: str,
        action: Action,
        request_id: str | None = None,
        analyst: str | None = None,
        check: Check = lambda label: None,
        queries_at_most: int | None = None,
    ) -> Acted:
        """One step of a session's program, durably.

        check sees the label before anything is written, and may raise to
        prevent it; TooManyQueries if it would be one query more than a session
        may ask. A request id that is known stands for its first action: the
        same action gets what that got, another is RequestReused.
        """
        _check_name(session, "a session")
        action = _exactly(action)
        if isinstance(action, Silent):
            return Acted(TAU, Rule.SILENT, {})
        if isinstance(action, Asking):
            return self._ask(session, action, analyst)
        text = action_text(action)  # before the transaction: what cannot be written is refused
        if request_id is not None:
            _check_name(request_id, "a request id")
        asked = _Asked(session, analyst, request_id, action, text, check, queries_at_most)
        acted = self._whatever_is_past(lambda past: self._take(self._step(asked, past)))
        if isinstance(action, Query):
            self._keep()
        return acted

    def _step(self, asked: "_Asked", past: Past | None) -> Step[Acted]:
        def decided(writing: Writing, known: Line | None) -> Acted:
            if known is not None:
                return self._again(writing.pages, known, asked, past)
            return self._act(writing, asked, past)

        session, request = asked.session, asked.request
        sought = None if request is None else Sought(session, request)
        return Step(session, decided, durable=isinstance(asked.action, Query), sought=sought)

    def _act(self, writing: Writing, asked: "_Asked", past: Past | None) -> Acted:
        session, analyst, request, action, text, check, queries_at_most = asked
        program = self._session(writing.pages, session, analyst, past)
        budgets = self._budgets
        if isinstance(action, Query):
            _rehearse(program, past, lambda: _told(budgets, program, action).label, asked)
        with alone():
            decision = decide(budgets, program.session, action)
            transition = decision.transition
            check_queries(decision.session, queries_at_most)
            _check(transition.label, past, check)
        after = program.after(decision.session, action, len(text))
        self._check_room(program, after)
        took = Took(session, analyst, request, action, transition.rule, decision.charged)
        now, charged = self._now(), changed(decision.budgets, took)
        totals = self._totals.after(charged)
        seq = writing.append(took, now, totals.text, text)
        writing.charge(budgets.spent, charged)
        self._budgets, self._totals = decision.budgets, totals
        self._sessions.keep(session, after)
        if isinstance(transition.label, Measure):
            self._await(seq, now)
        return Acted(transition.label, transition.rule, decision.charged, seq)

    def _check_room(self, before: Program, after: Program) -> None:
        """SessionTooLarge if a step would make a session larger than one may be."""
        most = self._session_bytes
        if most is not None and before.bytes < after.bytes > most:
            raise SessionTooLarge(most)

    def _await(self, seq: int, at: str) -> None:
        """Remember when a query was asked, until its answer is recorded."""
        self._asked[seq] = at
        if len(self._asked) > MAX_ASKED:
            self._asked.popitem(last=False)

    def answer(self, seq: int, released: tuple[Released, ...]) -> tuple[Released, ...]:
        """Record what is to be released for the query in an entry; what was recorded first is returned."""

        def recorded(writing: Writing, known: Line | None) -> tuple[Released, ...]:
            if known is not None:
                self._see(known)
                return _released(known)
            # The time of the question: how long an answer took tells about the data.
            at = self._asked.pop(seq, None) or _asked_at(writing.pages, seq)
            writing.append(Recorded(seq, released), at, self._totals.text)
            return released

        first = self._take(Step(seq, recorded, sought=Sought(answers=seq)))
        self._keep()
        return first

    def configuration(self, session: str, analyst: str | None = None) -> Configuration:
        """⟨E, C⟩ of a session, with the budgets that the others leave it."""

        def looked(past: Past | None) -> Configuration:
            with self._reading() as pages:
                return configuration(self._budgets, self._session(pages, session, analyst, past).session)

        return self._whatever_is_past(looked)

    def drop(self, session: str, variables: Iterable[TableVariable | Numbered]) -> None:
        """Forget table variables that the program will not use again; the entries stay."""
        with self._alone.stepping():
            program = self._sessions.get(session)
            if program is not None:
                self._sessions.keep(session, program.without(variables))

    # ── the owner's side ─────────────────────────────────────────────────────────────

    def register(self, name: str, shape: Shape, budget: object, **facts: Any) -> Registered:
        """A data set with a budget; one that is known goes on with what is left of it.

        facts are those of `Registered.of`: contents, unit, caps, cap, block_of.
        DataChanged if the name stands for other data, SameData if the data has
        another name, RegisteredDifferently if budget, unit, columns or caps are
        not what was promised.
        """
        _check_name(name, "a data set")
        root = self._registered(name, shape, budget, **facts)
        found = self._register(root, facts.get("columns", ()))
        self._keep()
        return found

    def _register(self, root: Registered, tables: tuple[ColumnHashes, ...]) -> Registered:
        def registered(writing: Writing, _: None) -> Registered:
            if (found := known(self._budgets, root)) is not None:
                return found
            self._check_alike(root.name, tables)
            budgets = owned(self._budgets, root, writing.head.seq + 1)
            opening = changed(budgets, root)
            totals = self._totals.after(opening)
            writing.append(root, self._now(), totals.text)
            writing.charge({}, opening)
            self._budgets, self._totals = budgets, totals
            return root

        return self._take(Step(OWNER, registered))

    def check(self, name: str, budget: object, **facts: Any) -> None:
        """Raise what register would, as far as that can be told without the data's columns."""
        _check_name(name, "a data set")
        root = self._registered(name, Schema(()), budget, **facts)
        with self._reading():
            if known(self._budgets, root, but_shape=True) is None:
                self._check_alike(name, facts.get("columns", ()))

    def _check_alike(self, name: str, tables: tuple[ColumnHashes, ...]) -> None:
        """SameData if a table in memory is one of another data set's, with other columns or types."""
        for other in self._budgets.listed.values():
            if is_alike(self._key, other, tables):
                raise SameData(name, other.name, alike=True)

    def _registered(self, name: str, shape: Shape, budget: object, **facts: Any) -> Registered:
        """A root, with its contents sealed: whoever reads the entries cannot try what the data is."""
        sealed = [
            hmac.new(self._key, found.encode(), "sha256").hexdigest() for found in facts.get("contents", ())
        ]
        columns = sealed_columns(self._key, name, facts.get("columns", ()))
        return Registered.of(name, shape, budget, **{**facts, "contents": sealed, "columns": columns})

    def freeze(self, name: str) -> None:
        """From now on no query of this data set is answered."""
        self._set_frozen(name, True)
        self._keep()

    def unfreeze(self, name: str) -> None:
        """The data set may be asked again."""
        self._set_frozen(name, False)
        self._keep()

    def _set_frozen(self, name: str, frozen: bool) -> None:
        def set_frozen(writing: Writing, _: None) -> None:
            if name not in self._budgets.roots:
                raise UnknownTable(name, self._budgets.roots)
            if (name in self._budgets.frozen) != frozen:
                event = Froze(name) if frozen else Unfroze(name)
                seq = writing.append(event, self._now(), self._totals.text)
                self._budgets = owned(self._budgets, event, seq)

        self._take(Step(OWNER, set_frozen))

    # ── what anyone may know ─────────────────────────────────────────────────────────

    def head(self) -> Head:
        """The last entry: write it down, and an older copy put back will be noticed."""
        with self._reading() as pages:
            return pages.head()

    def roots(self) -> dict[str, RootState]:
        """Every data set, with what is spent of it."""
        with self._reading():
            budgets = self._budgets
            return {
                name: RootState(
                    root, min(amount(budgets.spent[name, ""]), root.amount), name in budgets.frozen
                )
                for name, root in budgets.listed.items()
            }

    def spent_by(self, analyst: str) -> dict[str, Fraction]:
        """What an analyst with a cap has spent of each data set."""
        with self._reading():
            spent = self._budgets.spent
            return {root: amount(number) for (root, who), number in spent.items() if who == analyst}

    def entries(self, after: int = -1) -> Iterator[Line]:
        """The chain, oldest first. Nothing is locked between pages: what was written stays as it is."""
        while True:
            with self._reading() as pages:
                page = list(islice(pages.after(after), PAGE))
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].seq

    def close(self) -> None:
        """Give the database back."""
        with self._alone.held():
            if this_process() == self._process:  # a forked child's copy is not its own to close
                self._store.close()

    # ── one step ─────────────────────────────────────────────────────────────────────

    def _take(self, step: Step[T]) -> T:
        """What becomes of a step that is written with those of other threads."""
        self._check_process()
        if self._alone.is_here:
            raise LedgerError(IN_THE_MIDDLE)
        return self._together.take(step)

    def _commit(self, steps: list[Step[Any]]) -> None:
        """Take steps, one after the other, in one transaction.

        From the first of them on, what is kept in memory is ahead of what is
        written. If the transaction fails, or is cut short anywhere, everything
        is read again the next time.
        """
        durable = any(step.durable for step in steps)
        with self._alone.stepping():
            self._check_process()
            with self._store.writing(durable=durable) as statements:
                pages = Pages(statements)
                now, found = pages.look_up([step.sought for step in steps if step.sought is not None])
                self._catch_up(pages, now)
                self._seen = self._durable
                writing, self._head = Writing(pages, self._head), UNKNOWN
                for step in steps:
                    step.decide(writing, None if step.sought is None else found.get(step.sought))
                writing.write()
            self._head = writing.head
            self._durable = max(self._seen, writing.head) if durable and writing.appended else self._seen

    def _ask(self, session: str, action: Action, analyst: str | None) -> Acted:
        """A public fact: a function of what is written, so nothing more is."""

        def asked(past: Past | None) -> Acted:
            if (at_hand := self._told_at_once(session, action, analyst)) is not None:
                return at_hand
            with self._reading() as pages:
                return _told(self._budgets, self._session(pages, session, analyst, past), action)

        return self._whatever_is_past(asked)

    def _told_at_once(self, session: str, action: Action, analyst: str | None) -> Acted | None:
        """The same, if nothing was written since and the session is at hand: then one look is enough."""
        with self._alone.stepping():
            self._check_process()
            fresh = self._sessions.is_fresh(session)
            program = Program(opened(analyst)) if fresh else self._sessions.get(session)
            if program is None or head_of(self._store.rows(HEAD)) != self._head:
                return None
            check_owner(program.session, session, analyst)
            return _told(self._budgets, program, action)

    def _again(self, pages: Pages, known: Line, asked: "_Asked", past: Past | None) -> Acted:
        """A request that was acted on before: the same, or refused."""
        took = body_of(known)
        assert isinstance(took, Took)
        if took.analyst != asked.analyst:
            raise OthersSession(took.session)
        if action_text(took.action) != asked.text:
            raise RequestReused(str(asked.request))
        if not isinstance(took.action, Query):
            return Acted(TAU, took.rule, took.charged, known.seq)
        self._see(known)
        if took.rule is Rule.QUERY_BOTTOM:
            return Acted(BOTTOM, took.rule, took.charged, known.seq)
        if (answer := pages.answer_to(known.seq)) is not None:
            self._see(answer)
            return Acted(TAU, took.rule, took.charged, known.seq, _released(answer))
        program = self._session(pages, took.session, asked.analyst, past, before=known.seq)
        with alone():
            then = seeing(self._budgets, program.session, known.seq).configuration
            label = measure(then.table(took.action.table), took.action)
            # Charged, but whoever was to measure it did not come back: the charge stands; this is its answer.
            check_thawed(self._budgets, label)
            _rehearse(program, past, lambda: label, asked)
            _check(label, past, asked.check)
        return Acted(label, took.rule, took.charged, known.seq)

    def _now(self) -> str:
        return self._clock().isoformat(timespec="milliseconds")

    # ── sessions ─────────────────────────────────────────────────────────────────────

    def _session(
        self, pages: Pages, name: str, analyst: str | None, past: Past | None, before: int | None = None
    ) -> Program:
        """A session as it is now, or was before an entry; Behind if it has a long past that is not known."""
        program = self._sessions.get(name) if before is None else None
        if program is None:
            found = self._replayed(pages, name, past, MAX_SEQ if before is None else before)
            if before is None:
                self._keep_session(name, found)
            program = found or Program(opened(analyst))
        check_owner(program.session, name, analyst)
        return program

    def _keep_session(self, name: str, found: Program | None) -> None:
        if found is None:  # a session is whose it is once it has acted
            self._sessions.keep_fresh(name)
        else:
            self._sessions.keep(name, found)

    def _replayed(self, pages: Pages, name: str, past: Past | None, before: int) -> Program | None:
        """A session after its entries before one; None if there are none."""
        if past is None or past.loads != self._loads or past.seq >= before:
            past = Past(self._loads)
        own = pages.of_session(name, past.seq, before, FEW + 1)
        if len(own) > FEW or sum(len(each.text) for each in own) > SHORT:
            raise Behind(name, before)
        return _followed(self._budgets, past.program, own)

    def _whatever_is_past(self, do: Callable[[Past | None], T]) -> T:
        """Do something with a session. What takes long of it is done first, while others act."""
        past: Past | None = None
        while True:
            try:
                return do(past)
            except Behind as behind:
                past = self._replay(behind.name, behind.before)
            except Large as large:
                past = (past or Past(self._loads))._replace(rehearsed=large.rehearse())

    def _replay(self, name: str, before: int) -> Past:
        """A session after its entries before one. Others act meanwhile: they wait while a page is read."""
        past = Past(self._loads)
        while True:
            with self._reading() as pages:
                if past.loads != self._loads:  # what was followed may not be there any more
                    past = Past(self._loads)
                budgets = self._budgets
                own = pages.of_session(name, past.seq, before, OF_A_SESSION)
            if not own:
                return past
            past = Past(past.loads, _followed(budgets, past.program, own), own[-1].seq)

    # ── the anchor ───────────────────────────────────────────────────────────────────

    def keep_at(self, anchor: Anchor) -> None:
        """From now on an anchor elsewhere holds what is on disk; LedgerRolledBack if it knows of more."""
        if self._anchor is not None and self._anchor.place != anchor.place:
            raise ProgramError(
                f"this ledger is open already, with the anchor {self._anchor.place}: say the same"
            )
        held = anchor.hold(None)
        self._check_held(held, anchor)
        self._anchor, self._held = anchor, held
        self._keep()

    def _keep(self) -> None:
        """Move the anchor to what is on disk. Whoever is told of an entry is told after this.

        One that waits for another finds that its entry was kept with it.
        """
        if self._anchor is None:
            return
        with self._anchoring:
            mark = Mark(self.id, *self._durable)
            if self._held is not None and self._held.seq >= mark.seq:
                return
            before = self._anchor.hold(mark)
            if before != self._held:  # another process was here; of the same ledger, or of a copy?
                self._check_held(before, self._anchor)
            self._held = mark if before is None else max(before, mark, key=lambda each: each.seq)

    def _check_held(self, mark: Mark | None, anchor: Anchor) -> None:
        if mark is not None:
            with self._reading() as pages:
                check_held(pages, self.id, mark, anchor.place)

    def _see(self, stored: Line) -> None:
        """An entry that is synced when it is written: a query or an answer that was there is on disk."""
        self._seen = max(self._seen, Head(stored.seq, stored.hash))

    # ── staying up to date ───────────────────────────────────────────────────────────

    @contextmanager
    def _reading(self) -> Iterator[Pages]:
        with self._alone.stepping():
            self._check_process()
            with self._store.reading() as statements:
                pages = Pages(statements)
                self._catch_up(pages, pages.head())
                yield pages

    def _check_process(self) -> None:
        if this_process() != self._process:
            raise LedgerError(
                "this process was forked: open the ledger again in the child, and protect again"
            )

    def _catch_up(self, pages: Pages, now: Head) -> None:
        """Take over what other processes wrote since."""
        if now == self._head:
            return
        # Of many entries the last ones are looked at, as when it is opened.
        near = self._head != UNKNOWN and self._head.seq < now.seq <= self._head.seq + RECENT
        if not near or not self._follow(pages, now):
            # Entries that were not durable may be lost with the database's power; one that was may not.
            kept = pages.line(self._durable.seq)
            if kept is None or kept.hash != self._durable.hash:
                raise LedgerRolledBack(self._durable.seq, "is not there any more: an older copy was put back")
            self._load(pages)

    def _follow(self, pages: Pages, now: Head) -> bool:
        """Take over the entries after our head; False if they do not follow from it."""
        head = self._head
        first = pages.line(head.seq + 1)
        if first is None or parsed(first).get("previous") != head.hash:
            return False
        self._head = UNKNOWN  # until all of it is taken over
        fields: Mapping[str, Any] = {}
        for stored in pages.after(head.seq):
            fields = check_line(stored, head)
            head = Head(stored.seq, stored.hash)
            if stored.session == OWNER:
                self._budgets = take_owners(self._budgets, stored)
            elif stored.session is not None:
                self._follow_session(stored.session, stored)
        if head != now:
            raise LedgerCorrupt(now.seq, "the head is not the last entry")
        self._budgets, self._totals = read_accounts(pages, self._budgets, head, fields.get("totals"))
        self._head = now
        return True

    def _follow_session(self, name: str, stored: Line) -> None:
        program = self._sessions.get(name)
        self._sessions.forget(name)
        if program is not None:
            # If it used a variable that was dropped here, the session is replayed when it acts again.
            with suppress(LedgerCorrupt):
                self._keep_session(name, _followed(self._budgets, program, [stored]))

    def _load(self, pages: Pages) -> None:
        """Everything that is not a session's own, as it is now. Sessions are replayed when they act."""
        found = look(pages)
        if self._anchor is not None and self._held is not None:
            check_held(pages, found.id, self._held, self._anchor.place)
        self.id = found.id
        self._loads += 1
        self._sessions.clear()
        self._asked.clear()
        self._budgets, self._totals = found.budgets, found.totals
        self._head, self._durable = found.head, found.durable


class _Asked(NamedTuple):
    """What `act` was asked; text is the action's."""

    session: str
    analyst: str | None
    request: str | None
    action: Action
    text: str
    check: Check
    queries_at_most: int | None


def _rehearse(program: Program, past: Past | None, label: Callable[[], Label], asked: _Asked) -> None:
    """Large, unless a session's tables and what is asked of them are small, or it was rehearsed.

    Of several queries, each is looked at by itself, and the tables with it.
    """

    def rehearse() -> Label:
        with alone():
            found = label()
            asked.check(found)
        return found

    queries = asked.action.queries if isinstance(asked.action, Query) else ()
    times = max((len(query.of) for query in queries if isinstance(query, Several)), default=1)
    if (program.length + len(asked.text)) * times > LARGE and (past is None or past.rehearsed is None):
        raise Large(rehearse)


def _check(label: Label, past: Past | None, check: Check) -> None:
    """Check a label, unless it is the one that was rehearsed."""
    if past is None or past.rehearsed is None or label != past.rehearsed:
        check(label)


def _told(budgets: Budgets, program: Program, action: Action) -> Acted:
    transition = decide(budgets, program.session, action).transition
    return Acted(transition.label, transition.rule, {})


def _followed(budgets: Budgets, program: Program | None, own: Iterable[Line]) -> Program | None:
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


def _asked_at(pages: Pages, seq: int) -> str:
    """When the query in an entry was asked; KernelViolation if that is none."""
    asked = pages.line(seq)
    took = body_of(asked) if asked is not None else None
    if asked is None or not isinstance(took, Took) or took.rule is not Rule.QUERY:
        raise KernelViolation(f"entry {seq} is no query that was charged")
    at: str = parsed(asked)["at"]
    return at


def _exactly(action: Action) -> Action:
    """The action with its ε or ρ as the kernel takes it: an exact rational."""
    if isinstance(action, Query | AskPrice):
        exact = asked_at(action.epsilon)
        if exact is not action.epsilon:  # what is equal may be of another class: ρ = 0.5 has no form
            return replace(action, epsilon=exact)
    return action


def _check_name(name: object, what: str) -> None:
    if type(name) is not str or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise ProgramError(f"{what} has a name of 1 to {MAX_NAME} printable characters")


def _released(stored: Line) -> tuple[Released, ...]:
    recorded = body_of(stored)
    assert isinstance(recorded, Recorded)
    return recorded.released
