"""The ledger: the kernel's step inside a database's transaction.

An action is one transaction: lock the head, catch up with what other processes
wrote, step, write the entry, charge, commit. What the step read is what it
charges, whoever else is there; and when `act` returns a measurement, its charge
is on disk. Only then may it be measured, and only what `answer` returns may be
released.
"""

import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import islice
from threading import Lock
from typing import Any

from fpinq.ledger.alike import ColumnHashes, is_alike
from fpinq.ledger.alike import sealed as sealed_columns
from fpinq.ledger.anchor import Anchor, Mark, check_held, lost
from fpinq.ledger.entries import OWNER, START, Head, Line, body_of, check_line, line, parsed
from fpinq.ledger.errors import LedgerCorrupt, LedgerRolledBack, NoLedger, RequestReused
from fpinq.ledger.kept import Kept
from fpinq.ledger.opening import look, read_accounts, take_owners
from fpinq.ledger.process import Alone, this_process
from fpinq.ledger.store import PAGE, Pages, Store
from fpinq.ledger.totals import Totals
from fpinq.ledger.wire import encode
from fpinq.model.actions import Action, Asking, AskPrice, Query, Silent, TableVariable
from fpinq.model.epsilon import epsilon as exact_epsilon
from fpinq.model.errors import (
    KernelViolation,
    LedgerError,
    NotAsRecorded,
    OthersSession,
    ProgramError,
    SameData,
    UnknownTable,
)
from fpinq.model.events import Began, Event, Froze, Recorded, Registered, Took, Unfroze
from fpinq.model.expressions import Schema
from fpinq.model.plans import Shape
from fpinq.model.semantics import BOTTOM, TAU, Configuration, Label, Rule, measure
from fpinq.model.sessions import (
    Account,
    Amounts,
    Budgets,
    Session,
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

Check = Callable[[Label], None]


@dataclass(frozen=True)
class Acted:
    """What became of an action. A Measure is charged for: measure it, then `answer`.

    `released` is there if this request was answered before: then that is the
    answer, and nothing is left to measure. `seq` is the entry; asking for public facts leaves none.
    """

    label: Label
    rule: Rule
    charged: Mapping[str, Fraction]
    seq: int | None = None
    released: tuple[Released, ...] | None = None


@dataclass(frozen=True)
class RootState:
    """A data set as the ledger knows it."""

    registered: Registered
    spent: Fraction
    frozen: bool

    @property
    def remaining(self) -> Fraction:
        """What is left of the budget, for all sessions together."""
        return self.registered.budget - self.spent


class Ledger:
    """Sessions, budgets and the chain, in a store. Safe to use from several threads and processes."""

    def __init__(
        self,
        store: Store,
        *,
        anchor: Anchor | None = None,
        create: bool = True,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._clock = clock
        self._alone = Alone()
        self._process = this_process()
        self._head = self._durable = START
        self._budgets, self._totals = Budgets(), Totals()
        self._sessions = Kept()
        self._anchor: Anchor | None = None
        self._held: Mark | None = None
        self._anchoring = Lock()
        with self._writing(durable=True, opening=True) as pages:
            if pages.is_blank():
                if not create:
                    raise NoLedger("there is a place for a ledger, but none has begun")
                if anchor is not None and (held := anchor.hold(None)) is not None:
                    raise lost(held, anchor.place)
                pages.keep_secret(secrets.token_bytes(32))
                self._append(pages, Began(secrets.token_hex(16)))
            self._load(pages)
            self._key = pages.secret()
        if anchor is not None:
            self.keep_at(anchor)

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
        text = encode(action)  # before the transaction: what cannot be written is refused
        if request_id is not None:
            _check_name(request_id, "a request id")
        acted = self._step(session, action, text, request_id, analyst, check, queries_at_most)
        if isinstance(action, Query):
            self._keep()
        return acted

    def _step(
        self,
        session: str,
        action: Action,
        text: str,
        request_id: str | None,
        analyst: str | None,
        check: Check,
        queries_at_most: int | None,
    ) -> Acted:
        durable = isinstance(action, Query)
        with self._alone.held():
            with self._writing(durable=durable) as pages:
                if request_id is not None and (known := pages.request(session, request_id)) is not None:
                    return self._again(pages, known, request_id, text, analyst, check)
                program = self._session(pages, session, analyst)
                decision = decide(self._budgets, program, action)
                transition = decision.transition
                check_queries(decision.session, queries_at_most)
                check(transition.label)
                took = Took(session, analyst, request_id, action, transition.rule, decision.charged)
                charged = changed(decision.budgets, took)
                head = self._append(pages, took, charged)
                for account, amounts in charged.items():
                    self._charge(pages, account, amounts)
            # Committed. If it was not, nothing here has changed, and the next one reads what is there.
            with self._advancing(head, durable=durable):
                self._budgets = decision.budgets
                self._totals.take(charged)
                self._sessions.keep(session, decision.session)
        return Acted(transition.label, transition.rule, decision.charged, head.seq)

    def answer(self, seq: int, released: tuple[Released, ...]) -> tuple[Released, ...]:
        """Record what is to be released for the query in an entry; what was recorded first is returned."""
        first = self._answer(seq, released)
        self._keep()
        return first

    def _answer(self, seq: int, released: tuple[Released, ...]) -> tuple[Released, ...]:
        with self._alone.held():
            with self._writing(durable=True) as pages:
                if (known := pages.answer_to(seq)) is not None:
                    self._on_disk(known)
                    return _released(known)
                asked = pages.line(seq)
                took = body_of(asked) if asked is not None else None
                if asked is None or not isinstance(took, Took) or took.rule is not Rule.QUERY:
                    raise KernelViolation(f"entry {seq} is no query that was charged")
                # The time of the question: how long an answer took tells about the data.
                head = self._append(pages, Recorded(seq, released), at=parsed(asked)["at"])
            with self._advancing(head, durable=True):
                pass
        return released

    def configuration(self, session: str, analyst: str | None = None) -> Configuration:
        """⟨E, C⟩ of a session, with the budgets that the others leave it."""
        with self._reading() as pages:
            return configuration(self._budgets, self._session(pages, session, analyst))

    def drop(self, session: str, variables: Iterable[TableVariable]) -> None:
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
        with self._alone.held():
            with self._writing(durable=True) as pages:
                if (found := known(self._budgets, root)) is not None:
                    return found
                self._check_alike(root.name, tables)
                budgets = owned(self._budgets, root, self._head.seq + 1)
                opening = changed(budgets, root)
                head = self._append(pages, root, opening)
                for (name, who), (_, total) in opening.items():
                    pages.open_account(name, who, total)
            with self._advancing(head, durable=True):
                self._budgets = budgets
                self._totals.take(opening)
        return root

    def check(self, name: str, budget: object, **facts: Any) -> None:
        """Raise what register would, as far as that can be told without the data's columns."""
        _check_name(name, "a data set")
        root = self._registered(name, Schema(()), budget, **facts)
        with self._reading():
            if known(self._budgets, root, but_shape=True) is None:
                self._check_alike(name, facts.get("columns", ()))

    def _check_alike(self, name: str, tables: tuple[ColumnHashes, ...]) -> None:
        """SameData if a table in memory is one of another data set's, with other columns or types."""
        for other in self._budgets.roots.values():
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
        with self._alone.held():
            with self._writing(durable=True) as pages:
                if name not in self._budgets.roots:
                    raise UnknownTable(name, self._budgets.roots)
                if (name in self._budgets.frozen) == frozen:
                    return
                event = Froze(name) if frozen else Unfroze(name)
                head = self._append(pages, event)
            with self._advancing(head, durable=True):
                self._budgets = owned(self._budgets, event, head.seq)

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
                    root, min(amount(budgets.spent[name, ""]), root.budget), name in budgets.frozen
                )
                for name, root in budgets.roots.items()
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

    def _ask(self, session: str, action: Action, analyst: str | None) -> Acted:
        """A public fact: a function of what is written, so nothing more is."""
        with self._reading() as pages:
            transition = decide(self._budgets, self._session(pages, session, analyst), action).transition
            return Acted(transition.label, transition.rule, {})

    def _again(
        self, pages: Pages, known: Line, request_id: str, text: str, analyst: str | None, check: Check
    ) -> Acted:
        """A request that was acted on before: the same, or refused."""
        took = body_of(known)
        assert isinstance(took, Took)
        if took.analyst != analyst:
            raise OthersSession(took.session)
        if encode(took.action) != text:
            raise RequestReused(request_id)
        if not isinstance(took.action, Query):
            return Acted(TAU, took.rule, took.charged, known.seq)
        self._on_disk(known)
        if took.rule is Rule.QUERY_BOTTOM:
            return Acted(BOTTOM, took.rule, took.charged, known.seq)
        if (answer := pages.answer_to(known.seq)) is not None:
            self._on_disk(answer)
            return Acted(TAU, took.rule, took.charged, known.seq, _released(answer))
        program = self._session(pages, took.session, analyst, before=known.seq)
        then = seeing(self._budgets, program, known.seq).configuration
        label = measure(then.table(took.action.table), took.action)
        # Charged, but whoever was to measure it did not come back: the charge stands, and this is its answer.
        check_thawed(self._budgets, label)
        check(label)
        return Acted(label, took.rule, took.charged, known.seq)

    def _append(
        self,
        pages: Pages,
        event: Event,
        changed: Mapping[Account, Amounts] | None = None,
        at: str | None = None,
    ) -> Head:
        """Write the next entry; the head that it is. changed are the accounts that are others after it."""
        now = at or self._clock().isoformat(timespec="milliseconds")
        written = line(self._head, event, now, self._totals.after(changed or {}))
        pages.append(written, self._head)
        return Head(written.seq, written.hash)

    def _charge(self, pages: Pages, account: Account, amounts: Amounts) -> None:
        (root, who), (spent, total) = account, amounts
        before = self._budgets.spent.get(account)
        if before is None:  # an analyst's first charge
            pages.open_account(root, who, total)
            before = 0
        pages.charge(root, who, before, spent)

    def _session(self, pages: Pages, name: str, analyst: str | None, before: int | None = None) -> Session:
        """A session as it is now, or was before an entry; replayed from its entries if it is not at hand."""
        program = self._sessions.get(name) if before is None else None
        if program is None:
            found = self._followed(
                None, pages.of_session(name, self._head.seq + 1 if before is None else before)
            )
            if found is not None and before is None:  # a session is whose it is once it has acted
                self._sessions.keep(name, found)
            program = found or opened(analyst)
        check_owner(program, name, analyst)
        return program

    def _followed(self, session: Session | None, own: Iterable[Line]) -> Session | None:
        """A session after more entries of its own; None if there are none at all."""
        for stored in own:
            took = body_of(stored)
            assert isinstance(took, Took)
            try:
                session = followed(self._budgets, session or opened(took.analyst), took, stored.seq)
            except NotAsRecorded as error:
                raise LedgerCorrupt(stored.seq, str(error)) from None
        return session

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

    def _on_disk(self, stored: Line) -> None:
        """An entry that is synced when it is written: a query or an answer that can be seen is on disk."""
        self._durable = max(self._durable, Head(stored.seq, stored.hash))

    # ── staying up to date ───────────────────────────────────────────────────────────

    @contextmanager
    def _writing(self, *, durable: bool, opening: bool = False) -> Iterator[Pages]:
        with self._alone.stepping():
            self._check_process()
            with self._store.writing(durable=durable) as statements:
                pages = Pages(statements)
                if not opening:
                    self._catch_up(pages)
                yield pages

    @contextmanager
    def _reading(self) -> Iterator[Pages]:
        with self._alone.stepping():
            self._check_process()
            with self._store.reading() as statements:
                pages = Pages(statements)
                self._catch_up(pages)
                yield pages

    def _check_process(self) -> None:
        if this_process() != self._process:
            raise LedgerError(
                "this process was forked: open the ledger again in the child, and protect again"
            )

    @contextmanager
    def _advancing(self, head: Head, *, durable: bool) -> Iterator[None]:
        """Change what is kept in memory. If that is cut short, everything is read again the next time."""
        self._head = UNKNOWN
        yield
        self._head = head
        if durable:
            self._durable = head

    def _catch_up(self, pages: Pages) -> None:
        """Take over what other processes wrote since."""
        now = pages.head()
        if now == self._head:
            return
        if self._head == UNKNOWN or now.seq <= self._head.seq or not self._follow(pages, now):
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
        with self._advancing(now, durable=False):
            fields: Mapping[str, Any] = {}
            for stored in pages.after(head.seq):
                fields = check_line(stored, head)
                head = Head(stored.seq, stored.hash)
                if stored.session == OWNER:
                    self._budgets = take_owners(self._budgets, stored)
                elif stored.session in self._sessions:
                    self._follow_session(stored)
            if head != now:
                raise LedgerCorrupt(now.seq, "the head is not the last entry")
            self._budgets, self._totals = read_accounts(pages, self._budgets, head, fields.get("totals"))
        return True

    def _follow_session(self, stored: Line) -> None:
        name = str(stored.session)
        program = self._sessions.get(name)
        self._sessions.forget(name)
        # If it used a variable that was dropped here, the session is replayed when it acts again.
        with suppress(LedgerCorrupt):
            then = self._followed(program, [stored])
            assert then is not None
            self._sessions.keep(name, then)

    def _load(self, pages: Pages) -> None:
        """Everything that is not a session's own, as it is now. Sessions are replayed when they act."""
        found = look(pages)
        if self._anchor is not None and self._held is not None:
            check_held(pages, found.id, self._held, self._anchor.place)
        self.id = found.id
        self._sessions.clear()
        self._budgets, self._totals = found.budgets, found.totals
        self._head, self._durable = found.head, found.durable


def _exactly(action: Action) -> Action:
    """The action with its ε as the kernel takes it: an exact rational."""
    if isinstance(action, Query | AskPrice):
        return replace(action, epsilon=exact_epsilon(action.epsilon))
    return action


def _check_name(name: object, what: str) -> None:
    if type(name) is not str or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise ProgramError(f"{what} has a name of 1 to {MAX_NAME} printable characters")


def _released(stored: Line) -> tuple[Released, ...]:
    recorded = body_of(stored)
    assert isinstance(recorded, Recorded)
    return recorded.released
