"""The ledger: the kernel's step inside a database's transaction.

An action is a step in a transaction: lock the head, catch up with what other
processes wrote, step, write the entry, charge, commit. What the step read is what
it charges, whoever else is there; and when `act` returns a measurement, its
charge is on disk. Only then may it be measured, and only what `answer` returns may
be released. Steps that wait at the same time are one transaction (`together`).
"""

import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from itertools import islice
from typing import Any, TypeVar

from fpinq.ledger.acted import Acted, Check
from fpinq.ledger.alike import ColumnHashes, is_alike
from fpinq.ledger.alike import sealed as sealed_columns
from fpinq.ledger.anchor import Anchor, Mark, lost
from fpinq.ledger.asked import Asked, check_label, check_name, exactly, rehearse
from fpinq.ledger.entries import OWNER, START, Head, Line, action_text, body_of
from fpinq.ledger.errors import NoLedger, RequestReused, SessionTooLarge
from fpinq.ledger.keeping import Keeping
from fpinq.ledger.kept import MAX_BYTES, Kept, Program
from fpinq.ledger.memory import OF_A_SESSION, UNKNOWN, Memory, Past, continued
from fpinq.ledger.process import IN_THE_MIDDLE, Alone, this_process
from fpinq.ledger.store import HEAD, PAGE, Pages, Sought, Store, head_of
from fpinq.ledger.together import Behind, Large, Step, Together, alone
from fpinq.ledger.writing import Writing
from fpinq.model.actions import Action, Asking, Query, Silent
from fpinq.model.books import FOR_KEYS
from fpinq.model.environments import Numbered, TableVariable
from fpinq.model.errors import LedgerError, OthersSession, SameData, UnknownTable
from fpinq.model.events import Began, Froze, Recorded, Registered, Took, Unfroze
from fpinq.model.expressions import Schema
from fpinq.model.frozen import dataclass
from fpinq.model.plans import Shape
from fpinq.model.semantics import BOTTOM, TAU, Configuration, Measure, Rule, measure
from fpinq.model.sessions import (
    Budgets,
    changed,
    check_owner,
    check_queries,
    check_thawed,
    configuration,
    decide,
    known,
    opened,
    owned,
    seeing,
)
from fpinq.model.traces import Released
from fpinq.model.units import amount

T = TypeVar("T")


@dataclass(frozen=True)
class RootState:
    """A data set as the ledger knows it."""

    registered: Registered
    spent: Fraction
    frozen: bool
    spent_delta: Fraction = Fraction(0)

    @property
    def remaining(self) -> Fraction:
        """What is left of the budget, for all sessions together."""
        return self.registered.amount - self.spent

    @property
    def remaining_delta(self) -> Fraction:
        """What is left of the δ for keys, for all sessions together."""
        return self.registered.keys_delta - self.spent_delta


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
        self._session_bytes = session_bytes
        self._keeping = Keeping(
            self._alone.stepping, self._reading, lambda: Mark(self.id, *self._memory.durable)
        )
        self._memory = Memory(Kept(kept_bytes), self._keeping.check)
        self._seen = START
        self._together = Together(self._commit)
        self._open(create, anchor)
        if anchor is not None:
            self.keep_at(anchor)

    @property
    def id(self) -> str:
        """Which ledger this is: no two have the same."""
        return self._memory.id

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
                writing.append(Began(secrets.token_hex(16)), self._now(), self._memory.totals.text)
                writing.write()
            self._memory.load(pages)
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
        check_name(session, "a session")
        action = exactly(action)
        if isinstance(action, Silent):
            return Acted(TAU, Rule.SILENT, {})
        if isinstance(action, Asking):
            return self._ask(session, action, analyst)
        text = action_text(action)  # before the transaction: what cannot be written is refused
        if request_id is not None:
            check_name(request_id, "a request id")
        asked = Asked(session, analyst, request_id, action, text, check, queries_at_most)
        acted = self._whatever_is_past(lambda past: self._take(self._step(asked, past)))
        if isinstance(action, Query):
            self._keeping.keep()
        return acted

    def _step(self, asked: Asked, past: Past | None) -> Step[Acted]:
        def decided(writing: Writing, known: Line | None) -> Acted:
            if known is not None:
                return self._again(writing.pages, known, asked, past)
            return self._act(writing, asked, past)

        session, request = asked.session, asked.request
        sought = None if request is None else Sought(session, request)
        return Step(session, decided, durable=isinstance(asked.action, Query), sought=sought)

    def _act(self, writing: Writing, asked: Asked, past: Past | None) -> Acted:
        session, analyst, request, action, text, check, queries_at_most = asked
        program = self._memory.session(writing.pages, session, analyst, past)
        budgets = self._memory.budgets
        if isinstance(action, Query):
            rehearse(program, past, lambda: _told(budgets, program, action).label, asked)
        with alone():
            decision = decide(budgets, program.session, action)
            transition = decision.transition
            check_queries(decision.session, queries_at_most)
            check_label(transition.label, past, check)
        after = program.after(decision.session, action, len(text))
        self._check_room(program, after)
        took = Took(session, analyst, request, action, transition.rule, decision.charged)
        now, charged = self._now(), changed(decision.budgets, took)
        totals = self._memory.totals.after(charged)
        seq = writing.append(took, now, totals.text, text)
        writing.charge(budgets.spent, charged)
        self._memory.budgets, self._memory.totals = decision.budgets, totals
        self._memory.sessions.keep(session, after)
        if isinstance(transition.label, Measure):
            self._memory.await_answer(seq, now)
        return Acted(transition.label, transition.rule, decision.charged, seq)

    def _check_room(self, before: Program, after: Program) -> None:
        """SessionTooLarge if a step would make a session larger than one may be."""
        most = self._session_bytes
        if most is not None and before.bytes < after.bytes > most:
            raise SessionTooLarge(most)

    def answer(self, seq: int, released: tuple[Released, ...]) -> tuple[Released, ...]:
        """Record what is to be released for the query in an entry; what was recorded first is returned."""

        def recorded(writing: Writing, known: Line | None) -> tuple[Released, ...]:
            if known is not None:
                self._see(known)
                return _released(known)
            # The time of the question: how long an answer took tells about the data.
            at = self._memory.asked_at(writing.pages, seq)
            writing.append(Recorded(seq, released), at, self._memory.totals.text)
            return released

        first = self._take(Step(seq, recorded, sought=Sought(answers=seq)))
        self._keeping.keep()
        return first

    def configuration(self, session: str, analyst: str | None = None) -> Configuration:
        """⟨E, C⟩ of a session, with the budgets that the others leave it."""

        def looked(past: Past | None) -> Configuration:
            with self._alone.stepping(), self._reading() as pages:
                return configuration(
                    self._memory.budgets, self._memory.session(pages, session, analyst, past).session
                )

        return self._whatever_is_past(looked)

    def drop(self, session: str, variables: Iterable[TableVariable | Numbered]) -> None:
        """Forget table variables that the program will not use again; the entries stay."""
        with self._alone.stepping():
            program = self._memory.sessions.get(session)
            if program is not None:
                self._memory.sessions.keep(session, program.without(variables))

    # ── the owner's side ─────────────────────────────────────────────────────────────

    def register(self, name: str, shape: Shape, budget: object, **facts: Any) -> Registered:
        """A data set with a budget; one that is known goes on with what is left of it.

        facts are those of `Registered.of`: contents, unit, caps, cap, block_of.
        DataChanged if the name stands for other data, SameData if the data has
        another name, RegisteredDifferently if budget, unit, columns or caps are
        not what was promised.
        """
        check_name(name, "a data set")
        root = self._registered(name, shape, budget, **facts)
        found = self._register(root, facts.get("columns", ()))
        self._keeping.keep()
        return found

    def _register(self, root: Registered, tables: tuple[ColumnHashes, ...]) -> Registered:
        def registered(writing: Writing, _: None) -> Registered:
            if (found := known(self._memory.budgets, root)) is not None:
                return found
            self._check_alike(root.name, tables)
            budgets = owned(self._memory.budgets, root, writing.head.seq + 1)
            opening = changed(budgets, root)
            totals = self._memory.totals.after(opening)
            writing.append(root, self._now(), totals.text)
            writing.charge({}, opening)
            self._memory.budgets, self._memory.totals = budgets, totals
            return root

        return self._take(Step(OWNER, registered))

    def check(self, name: str, budget: object, **facts: Any) -> None:
        """Raise what register would, as far as that can be told without the data's columns."""
        check_name(name, "a data set")
        root = self._registered(name, Schema(()), budget, **facts)
        with self._alone.stepping(), self._reading():
            if known(self._memory.budgets, root, but_shape=True) is None:
                self._check_alike(name, facts.get("columns", ()))

    def _check_alike(self, name: str, tables: tuple[ColumnHashes, ...]) -> None:
        """SameData if a table in memory is one of another data set's, with other columns or types."""
        for other in self._memory.budgets.listed.values():
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
        self._keeping.keep()

    def unfreeze(self, name: str) -> None:
        """The data set may be asked again."""
        self._set_frozen(name, False)
        self._keeping.keep()

    def _set_frozen(self, name: str, frozen: bool) -> None:
        def set_frozen(writing: Writing, _: None) -> None:
            if name not in self._memory.budgets.roots:
                raise UnknownTable(name, self._memory.budgets.roots)
            if (name in self._memory.budgets.frozen) != frozen:
                event = Froze(name) if frozen else Unfroze(name)
                seq = writing.append(event, self._now(), self._memory.totals.text)
                self._memory.budgets = owned(self._memory.budgets, event, seq)

        self._take(Step(OWNER, set_frozen))

    # ── what anyone may know ─────────────────────────────────────────────────────────

    def head(self) -> Head:
        """The last entry: write it down, and an older copy put back will be noticed."""
        with self._alone.stepping(), self._reading() as pages:
            return pages.head()

    def roots(self) -> dict[str, RootState]:
        """Every data set, with what is spent of it."""
        with self._alone.stepping(), self._reading():
            budgets = self._memory.budgets
            return {
                name: RootState(
                    root,
                    min(amount(budgets.spent[name, ""]), root.amount),
                    name in budgets.frozen,
                    min(amount(budgets.spent.get((name + FOR_KEYS, ""), 0)), root.keys_delta),
                )
                for name, root in budgets.listed.items()
            }

    def spent_by(self, analyst: str) -> dict[str, Fraction]:
        """What an analyst with a cap has spent of each data set, and of a δ for keys under its own name."""
        with self._alone.stepping(), self._reading():
            spent = self._memory.budgets.spent
            return {root: amount(number) for (root, who), number in spent.items() if who == analyst}

    def entries(self, after: int = -1) -> Iterator[Line]:
        """The chain, oldest first. Nothing is locked between pages: what was written stays as it is."""
        while True:
            with self._alone.stepping(), self._reading() as pages:
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
                self._memory.catch_up(pages, now)
                self._seen = self._memory.durable
                writing, self._memory.head = Writing(pages, self._memory.head), UNKNOWN
                for step in steps:
                    step.decide(writing, None if step.sought is None else found.get(step.sought))
                writing.write()
            self._memory.head = writing.head
            written = durable and writing.appended
            self._memory.durable = max(self._seen, writing.head) if written else self._seen

    def _ask(self, session: str, action: Action, analyst: str | None) -> Acted:
        """A public fact: a function of what is written, so nothing more is."""

        def asked(past: Past | None) -> Acted:
            if (at_hand := self._told_at_once(session, action, analyst)) is not None:
                return at_hand
            with self._alone.stepping(), self._reading() as pages:
                program = self._memory.session(pages, session, analyst, past)
                return _told(self._memory.budgets, program, action)

        return self._whatever_is_past(asked)

    def _told_at_once(self, session: str, action: Action, analyst: str | None) -> Acted | None:
        """The same, if nothing was written since and the session is at hand: then one look is enough."""
        with self._alone.stepping():
            self._check_process()
            fresh = self._memory.sessions.is_fresh(session)
            program = Program(opened(analyst)) if fresh else self._memory.sessions.get(session)
            if program is None or head_of(self._store.rows(HEAD)) != self._memory.head:
                return None
            check_owner(program.session, session, analyst)
            return _told(self._memory.budgets, program, action)

    def _again(self, pages: Pages, known: Line, asked: Asked, past: Past | None) -> Acted:
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
        program = self._memory.session(pages, took.session, asked.analyst, past, before=known.seq)
        with alone():
            then = seeing(self._memory.budgets, program.session, known.seq).configuration
            label = measure(then.table(took.action.table), took.action)
            # Charged, but whoever was to measure it did not come back: the charge stands; this is its answer.
            check_thawed(self._memory.budgets, label)
            rehearse(program, past, lambda: label, asked)
            check_label(label, past, asked.check)
        return Acted(label, took.rule, took.charged, known.seq)

    def _now(self) -> str:
        return self._clock().isoformat(timespec="milliseconds")

    # ── sessions ─────────────────────────────────────────────────────────────────────

    def _whatever_is_past(self, do: Callable[[Past | None], T]) -> T:
        """Do something with a session. What takes long of it is done first, while others act."""
        past: Past | None = None
        while True:
            try:
                return do(past)
            except Behind as behind:
                past = self._replay(behind.name, behind.before)
            except Large as large:
                past = (past or Past(self._memory.loads))._replace(rehearsed=large.rehearse())

    def _replay(self, name: str, before: int) -> Past:
        """A session after its entries before one. Others act meanwhile: they wait while a page is read."""
        past = Past(self._memory.loads)
        while True:
            with self._alone.stepping(), self._reading() as pages:
                if past.loads != self._memory.loads:  # what was followed may not be there any more
                    past = Past(self._memory.loads)
                budgets = self._memory.budgets
                own = pages.of_session(name, past.seq, before, OF_A_SESSION)
            if not own:
                return past
            past = Past(past.loads, continued(budgets, past.program, own), own[-1].seq)

    # ── the anchor ───────────────────────────────────────────────────────────────────

    def keep_at(self, anchor: Anchor) -> None:
        """From now on an anchor elsewhere holds what is on disk; LedgerRolledBack if it knows of more."""
        self._keeping.begin(anchor)

    def _see(self, stored: Line) -> None:
        """An entry that is synced when it is written: a query or an answer that was there is on disk."""
        self._seen = max(self._seen, Head(stored.seq, stored.hash))

    # ── staying up to date ───────────────────────────────────────────────────────────

    @contextmanager
    def _reading(self) -> Iterator[Pages]:
        """The pages, up to date, for who is alone here: a lock in a generator is held as long as that is."""
        self._check_process()
        with self._store.reading() as statements:
            pages = Pages(statements)
            self._memory.catch_up(pages, pages.head())
            yield pages

    def _check_process(self) -> None:
        if this_process() != self._process:
            raise LedgerError(
                "this process was forked: open the ledger again in the child, and protect again"
            )


def _told(budgets: Budgets, program: Program, action: Action) -> Acted:
    transition = decide(budgets, program.session, action).transition
    return Acted(transition.label, transition.rule, {})


def _released(stored: Line) -> tuple[Released, ...]:
    recorded = body_of(stored)
    assert isinstance(recorded, Recorded)
    return recorded.released
