"""Sessions: programs under one set of budgets, as a fold of what is written down.

A session is one client program: its environment and its accounts are what
`step` makes of its own actions, from nothing. Partitions are a session's own,
so what several sessions charge at a root adds up, and

    C(session) ≤ B − (what the others were charged)

is C ≤ B for all of them together. So each session steps with the budgets that
the others leave it; an analyst's cap is a second such bound.

`decide` is the one place where a session steps, and `take` the one fold of
events. A record in memory, a ledger, its verification and the checker run these:
what a session may do is decided here and nowhere else.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from fractions import Fraction
from itertools import takewhile
from typing import NamedTuple

from fpinq.model.accounts import Accounts, Root, charged, paid
from fpinq.model.actions import Action, AskBudget, Query
from fpinq.model.books import FOR_KEYS, charged_for_keys, paid_for_keys
from fpinq.model.books import opened as opened_books
from fpinq.model.closed import check_closed
from fpinq.model.environments import Numbered, TableVariable, bind, unbind
from fpinq.model.errors import (
    BadAction,
    BadData,
    DataChanged,
    Frozen,
    NotAsRecorded,
    OthersSession,
    ProgramError,
    RegisteredDifferently,
    SameData,
    TooManyQueries,
    UnknownTable,
)
from fpinq.model.events import Began, Event, Froze, Recorded, Registered, Took, Unfroze, Upgraded
from fpinq.model.frozen import dataclass
from fpinq.model.maps import put, updated, without
from fpinq.model.notions import holds
from fpinq.model.plans import RootTable, roots_of
from fpinq.model.semantics import Configuration, Label, Measure, Rule, Table, Transition, step_closed
from fpinq.model.units import amount, less, units

ZERO = Fraction(0)
# The rules of the others do not depend on what is left.
LOOK_AT_BUDGETS = (Query, AskBudget)

# Where a program is that has done nothing yet.
NOWHERE = Configuration({}, Accounts({}))

# A root's name and an analyst's, or "" for the root itself: where a charge goes. What a root has for keys is
# an account of its own, under a name that no other root has then.
Account = tuple[str, str]
# What is spent and the total, in units.
Amounts = tuple[int, int]


class Session(NamedTuple):
    """One client program: whose it is, its configuration, what it has taken of each root, its queries."""

    analyst: str | None
    configuration: Configuration
    taken: Mapping[str, int]  # in units
    queries: int = 0  # those that were charged

    def spent(self, root: str) -> Fraction:
        """What this session was charged at a root, exactly."""
        return paid(self.configuration.accounts, Root(root))

    def without(self, variables: Iterable[TableVariable | Numbered]) -> "Session":
        """The session, with these variables forgotten."""
        kept = self.configuration.environment
        for variable in variables:
            kept = unbind(kept, variable)
        return self._replace(configuration=Configuration(kept, self.configuration.accounts))


@dataclass(frozen=True)
class Budgets:
    """What was promised, and what is gone of it: all that sessions share.

    since is the number of the event with which a root arrived, names are the
    roots by the order in which they did, contents those that hold some data.
    spent is in units: (root, analyst) ↦ units for analysts with a cap of their
    own, (root, "") ↦ units of all sessions together.
    """

    roots: Mapping[str, Registered] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    spent: Mapping[Account, int] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()
    names: Mapping[int, str] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)

    @property
    def listed(self) -> dict[str, Registered]:
        """The roots, in the order in which they arrived."""
        return {(name := self.names[number]): self.roots[name] for number in range(len(self.names))}

    def promised(self, account: Account) -> Fraction | None:
        """What was promised: a root's budget, or an analyst's cap; None if there is no such account."""
        name, analyst = account
        root = self.roots.get(name)
        if root is not None:
            return root.cap_of(analyst) if analyst else root.amount
        root = self.roots.get(name.removesuffix(FOR_KEYS))
        if root is None or not root.keys_delta:
            return None
        return root.keys_cap_of(analyst) if analyst else root.keys_delta


class Decision(NamedTuple):
    """What a step of a session does: the session and the budgets after it, and the charge at each root."""

    session: Session
    budgets: Budgets
    transition: Transition
    charged: Mapping[str, Fraction]


class State(NamedTuple):
    """All that events make.

    awaited are the charged queries without an answer yet: the number of the
    event ↦ how many answers it awaits.
    """

    budgets: Budgets
    sessions: Mapping[str, Session]
    awaited: Mapping[int, int]
    events: int


# Before the first event.
NOTHING = State(Budgets(), {}, {}, 0)


# ── the fold ─────────────────────────────────────────────────────────────────────────


def take(state: State, event: Event) -> State:
    """The state after one more event; NotAsRecorded if that cannot have happened there."""
    if isinstance(event, Took):
        check_event(event)
    return take_closed(state, event)


def take_closed(state: State, event: Event) -> State:
    """The same, of an event whose action `check_closed` has let pass."""
    if (type(event) is Began) != (state.events == 0):
        raise NotAsRecorded("a ledger begins once")
    match event:
        case Took():
            return took(state, event)
        case Recorded():
            return recorded(state, event)
        case _:
            return state._replace(budgets=owned(state.budgets, event, state.events), events=state.events + 1)


def took(state: State, event: Took) -> State:
    """A step, as it was decided then: by the same rule, at the same charge.

    S(s) = σ    decide(B, σ, a) = σ′, B′ by rule at charge
    ──────────────────────────────────────────────────────
    ⟨B, S⟩ ── took(s, a, rule, charge) ──▸ ⟨B′, S[s ↦ σ′]⟩
    """
    session = state.sessions.get(event.session) or opened(event.analyst)
    return entered(state, event.session, decided(state.budgets, session, event))


def recorded(state: State, event: Recorded) -> State:
    """An answer, to a query that was charged and not yet answered."""
    check_answer(state.awaited.get(event.answers), event)
    return State(state.budgets, state.sessions, without(state.awaited, event.answers), state.events + 1)


def check_answer(awaited: int | None, event: Recorded) -> None:
    """NotAsRecorded unless it is as many answers as were awaited; None is none at all."""
    if awaited is None:
        raise NotAsRecorded("answers what was not asked, or was answered before")
    if len(event.released) != awaited:
        raise NotAsRecorded("does not release what was asked for")


def owned(budgets: Budgets, event: Event, number: int) -> Budgets:
    """The budgets after an event of the owner's."""
    match event:
        case Registered():
            return registered(budgets, event, number)
        case Froze(name=name):
            return replace(budgets, frozen=budgets.frozen | {name})
        case Unfroze(name=name):
            return replace(budgets, frozen=budgets.frozen - {name})
        case Upgraded(spent=spent):
            return upgraded(budgets, spent)
        case _:
            return budgets


def registered(budgets: Budgets, root: Registered, number: int) -> Budgets:
    """One more data set, of which nothing is spent; it has one budget, whatever it is called."""
    if root.name in budgets.roots:
        raise NotAsRecorded(f"{root.name!r} has a second budget")
    if not holds(root.budget):
        raise NotAsRecorded(f"the budget of {root.name!r} does not imply what it was stated as")
    try:
        known(budgets, root)
    except ProgramError as error:
        raise NotAsRecorded(str(error)) from None
    return Budgets(
        put(budgets.roots, root.name, root),
        put(budgets.since, root.name, number),
        updated(budgets.spent, dict.fromkeys(accounts_opened(root), 0)),
        budgets.frozen,
        put(budgets.names, len(budgets.names), root.name),
        updated(budgets.contents, dict.fromkeys(root.contents, root.name)),
    )


def accounts_opened(root: Registered) -> list[Account]:
    """The accounts that a root has: its own, and if it has a δ for keys, that."""
    return [(root.name, ""), (root.name + FOR_KEYS, "")] if root.keys_delta else [(root.name, "")]


def upgraded(budgets: Budgets, spent: Mapping[str, Mapping[str, Fraction]]) -> Budgets:
    """What was spent before, by sessions that are no more. It is within what is promised, and comes first."""
    if any(budgets.spent.values()):
        raise NotAsRecorded("is upgraded after something was spent")
    brought = {(root, who): cost for root, each in spent.items() for who, cost in each.items()}
    for account, cost in brought.items():
        promised = budgets.promised(account)
        if promised is None or not 0 <= cost <= amount(units(promised)) or amount(units(cost)) != cost:
            raise NotAsRecorded(f"brings along what {account[0]!r} was not promised")
    return replace(budgets, spent={**budgets.spent, **{a: units(cost) for a, cost in brought.items()}})


def entered(state: State, name: str, decision: Decision) -> State:
    """The state after a decision about a session."""
    label, awaited = decision.transition.label, state.awaited
    if isinstance(label, Measure):
        awaited = put(awaited, state.events, label.parts)
    return State(decision.budgets, put(state.sessions, name, decision.session), awaited, state.events + 1)


def forgotten(state: State, name: str, variables: Iterable[TableVariable | Numbered]) -> State:
    """The state, with variables forgotten that a session will not use again: no event, and no charge."""
    session = state.sessions.get(name)
    if session is None:
        return state
    return state._replace(sessions=put(state.sessions, name, session.without(variables)))


# ── one step ─────────────────────────────────────────────────────────────────────────


def decide(budgets: Budgets, session: Session, action: Action) -> Decision:
    """The one step that a session's action takes now; raises ProgramError, and nothing happens."""
    check_closed(action, Action)
    return decide_closed(budgets, session, action)


def decide_closed(budgets: Budgets, session: Session, action: Action, before: int | None = None) -> Decision:
    """The same, of an action that `check_closed` has let pass; or the step it took before an event."""
    session = seeing(budgets, session, before)
    c = session.configuration
    if type(action) in LOOK_AT_BUDGETS:
        c = with_budgets(c, left_to(budgets, session))
    transition = step_closed(c, action)
    check_thawed(budgets, transition.label)
    return after(budgets, session, transition)


def after(budgets: Budgets, session: Session, transition: Transition) -> Decision:
    """What a step leaves. A charge is in units for the others; it counts at once, for all of them."""
    if transition.rule is not Rule.QUERY:
        then = Session(session.analyst, transition.configuration, session.taken, session.queries)
        return Decision(then, budgets, transition, {})
    accounts = transition.configuration.accounts
    cost = charged(session.configuration.accounts, accounts)
    taken: dict[str, int] = {}
    more: dict[str, int] = {}
    for name in cost:
        taken[name] = units(paid(accounts, Root(name)))
        more[name] = taken[name] - session.taken.get(name, 0)
    if accounts.books is not None:
        for root, delta in charged_for_keys(session.configuration.accounts, accounts).items():
            name = root + FOR_KEYS
            cost[name], taken[name] = delta, units(paid_for_keys(accounts, Root(root)))
            more[name] = taken[name] - session.taken.get(name, 0)
    all_taken = updated(session.taken, taken) if taken else session.taken
    then = Session(session.analyst, transition.configuration, all_taken, session.queries + 1)
    return Decision(then, spend(budgets, session.analyst, more), transition, cost)


class Left(Mapping[Root, Fraction]):
    """The budgets that a session steps with: what the others leave it, of the roots that it sees.

    B − (Σ spent − own), and no more than cap − (the analyst's − own)

    Each is reckoned when it is asked for: a query asks for those that it raises.
    """

    __slots__ = ("_analyst", "_budgets", "_seen", "_taken")

    def __init__(self, budgets: Budgets, session: Session, seen: int) -> None:
        # Not the session: its configuration would hold the budgets before, and so on forever.
        self._budgets, self._seen, self._analyst, self._taken = budgets, seen, session.analyst, session.taken

    def __getitem__(self, root: Root) -> Fraction:
        if root not in self:
            raise KeyError(root)
        budgets, promised = self._budgets, self._budgets.roots[root.name]
        limit = less(promised.amount, by_others(budgets, (root.name, ""), self._taken))
        cap = promised.cap_of(self._analyst)
        if cap is None:
            return limit
        return min(limit, less(cap, by_others(budgets, (root.name, self._analyst or ""), self._taken)))

    def for_keys(self, root: Root) -> Fraction:
        """What the others leave it of a root's δ, and of its analyst's cap of that."""
        budgets, promised, name = self._budgets, self._budgets.roots[root.name], root.name + FOR_KEYS
        limit = less(promised.keys_delta, by_others(budgets, (name, ""), self._taken))
        cap = promised.keys_cap_of(self._analyst)
        if cap is None:
            return limit
        return min(limit, less(cap, by_others(budgets, (name, self._analyst or ""), self._taken)))

    def __contains__(self, root: object) -> bool:
        since, names = self._budgets.since, self._budgets.names
        if not isinstance(root, Root) or root.name not in since:
            return False
        return self._seen == len(names) or since[root.name] < since[names[self._seen]]

    def __iter__(self) -> Iterator[Root]:
        return (Root(self._budgets.names[number]) for number in range(self._seen))

    def __len__(self) -> int:
        return self._seen

    def __repr__(self) -> str:
        return repr(dict(self))


class ForKeys(Mapping[Root, Fraction]):
    """The δ that the others leave a session, of the roots that have one."""

    __slots__ = ("_left", "_roots")

    def __init__(self, left: Left, roots: Mapping[Root, object]) -> None:
        self._left, self._roots = left, roots

    def __getitem__(self, root: Root) -> Fraction:
        if root not in self._roots:
            raise KeyError(root)
        return self._left.for_keys(root)

    def __iter__(self) -> Iterator[Root]:
        return iter(self._roots)

    def __len__(self) -> int:
        return len(self._roots)


def left_to(budgets: Budgets, session: Session) -> Mapping[Root, Fraction]:
    """The budgets that a session steps with."""
    return Left(budgets, session, len(session.configuration.accounts.budgets))


def by_others(budgets: Budgets, account: Account, taken: Mapping[str, int]) -> int:
    """What the others have spent of an account: all that is spent, less what a session took itself."""
    return budgets.spent.get(account, 0) - taken.get(account[0], 0)


def spend(budgets: Budgets, analyst: str | None, more: Mapping[str, int]) -> Budgets:
    """The budgets, with so many more units of each root spent by an analyst."""
    if not more:
        return budgets
    return spent_more(budgets, {each: more[each[0]] for each in accounts_of(budgets, analyst, more)})


def spent_more(budgets: Budgets, more: Mapping[Account, int]) -> Budgets:
    """The budgets, with so many more units of accounts spent."""
    spent = {account: budgets.spent.get(account, 0) + number for account, number in more.items()}
    b = budgets
    return Budgets(b.roots, b.since, updated(b.spent, spent), b.frozen, b.names, b.contents)


def accounts_of(budgets: Budgets, analyst: str | None, names: Iterable[str]) -> list[Account]:
    """The accounts that a charge goes to: each root's, and the analyst's where there is a cap."""
    own = [(name, "") for name in names]
    if analyst is None:
        return own
    return own + [(name, analyst) for name, _ in own if budgets.promised((name, analyst)) is not None]


def check_thawed(budgets: Budgets, label: Label) -> None:
    """Frozen if a measurement reads a data set that its owner froze."""
    if budgets.frozen and isinstance(label, Measure) and (cold := roots_of(label.plan) & budgets.frozen):
        raise Frozen(min(cold))


# ── a step that was taken before ─────────────────────────────────────────────────────


def check_event(event: Took) -> None:
    """NotAsRecorded unless an event's action is closed data."""
    try:
        check_closed(event.action, Action)
    except BadAction as error:
        raise NotAsRecorded(f"the kernel refuses the action: {error}") from None


def decided(budgets: Budgets, session: Session, event: Took, before: int | None = None) -> Decision:
    """The decision about an event's action; NotAsRecorded unless it is the recorded one."""
    if session.analyst != event.analyst:
        raise NotAsRecorded("another analyst's session")
    try:
        decision = decide_closed(budgets, session, event.action, before)
    except ProgramError as error:
        raise NotAsRecorded(f"the kernel refuses the action: {error}") from None
    if decision.transition.rule is not event.rule:
        raise NotAsRecorded(f"the rule is {decision.transition.rule}, not {event.rule}")
    if decision.charged != event.charged:
        raise NotAsRecorded("the charge is not what the kernel charges")
    return decision


def followed(budgets: Budgets, session: Session, event: Took, number: int) -> Session:
    """A session after an event of its own, with that number, whatever the others did.

    A refusal changes nothing. A charge was within what the others left, so it
    is within what there is if there are no others.
    """
    if event.rule is Rule.QUERY_BOTTOM and session.analyst == event.analyst:
        return seeing(budgets, session, number)
    return decided(alone(budgets, session, event.charged), session, event, number).session


def alone(budgets: Budgets, session: Session, charged: Iterable[str]) -> Budgets:
    """The budgets as if a session were the only one, of the roots that are charged."""
    accounts = accounts_of(budgets, session.analyst, [name for name in charged if name in session.taken])
    spent = {account: session.taken[account[0]] for account in accounts}
    return Budgets(budgets.roots, budgets.since, spent, names=budgets.names)


# ── what a session sees ──────────────────────────────────────────────────────────────


def opened(analyst: str | None) -> Session:
    """A program that has done nothing yet."""
    return Session(analyst, NOWHERE, {})


def seeing(budgets: Budgets, session: Session, before: int | None = None) -> Session:
    """A session that sees the roots there were before an event, or are now."""
    c, seen = session.configuration, len(session.configuration.accounts.budgets)
    if seen == len(budgets.names):
        return session
    fresh = arrived(budgets, seen, before)
    tables = {name: Table(RootTable(name), budgets.roots[name].shape, {Root(name): 1}) for name in fresh}
    left = Left(budgets, session, seen + len(fresh))
    environment = bind(c.environment, tables)
    books = opened_books(c.accounts.books, {Root(name): budgets.roots[name].budget for name in fresh})
    accounts = c.accounts if books is c.accounts.books else replace(c.accounts, books=books)
    return session._replace(configuration=with_budgets(Configuration(environment, accounts), left))


def arrived(budgets: Budgets, seen: int, before: int | None) -> list[str]:
    """The roots after the first so many that there were before an event, or are now."""
    late = (budgets.names[number] for number in range(seen, len(budgets.names)))
    return list(late if before is None else takewhile(lambda name: budgets.since[name] < before, late))


def configuration(budgets: Budgets, session: Session) -> Configuration:
    """⟨E, C⟩ of a session, with the budgets that the others leave it."""
    session = seeing(budgets, session)
    return with_budgets(session.configuration, left_to(budgets, session))


def with_budgets(c: Configuration, budgets: Mapping[Root, Fraction]) -> Configuration:
    """A configuration under other budgets."""
    a, books = c.accounts, c.accounts.books
    if books is not None and isinstance(budgets, Left):
        books = books._replace(keys=ForKeys(budgets, books.deltas))
    accounts = Accounts(budgets, a.counters, a.direct, a.partitions, a.maxima, a.received, (), books)
    return Configuration(c.environment, accounts)


def check_queries(session: Session, at_most: int | None) -> None:
    """TooManyQueries if a session would have asked more than that."""
    if at_most is not None and session.queries > at_most:
        raise TooManyQueries(at_most)


def check_owner(session: Session, name: str, analyst: str | None) -> None:
    """OthersSession unless the session is the analyst's."""
    if session.analyst != analyst:
        raise OthersSession(name)


# ── what was promised ────────────────────────────────────────────────────────────────


def known(budgets: Budgets, root: Registered, *, but_shape: bool = False) -> Registered | None:
    """What was promised for a data set that is to be registered; None if it is new.

    DataChanged if the name stands for other data, SameData if the data has
    another name, RegisteredDifferently if something else was promised.
    """
    found = budgets.roots.get(root.name)
    if found is not None:
        check_same(found, root, but_shape=but_shape)
        return found
    check_name(budgets, root)
    for held in root.contents:
        if held in budgets.contents:
            raise SameData(root.name, budgets.contents[held])
    if root.block_of is not None and root.block_of not in budgets.roots:
        raise UnknownTable(root.block_of, budgets.roots)
    return None


def check_name(budgets: Budgets, root: Registered) -> None:
    """BadData if a root is called what another one's δ is called, where amounts are told by name."""
    owner = budgets.roots.get(root.name.removesuffix(FOR_KEYS))
    if (root.keys_delta and root.name + FOR_KEYS in budgets.roots) or (owner and owner.keys_delta):
        raise BadData(
            f"{root.name!r} is too like the name of another data set: the δ of a data set has its name"
        )


def check_same(known: Registered, root: Registered, *, but_shape: bool = False) -> None:
    """A known data set again: DataChanged or RegisteredDifferently unless it is what was promised."""
    if known.contents != root.contents:
        raise DataChanged(root.name)
    for what, recorded, given in (
        ("budget", known.budget, root.budget),
        ("unit", known.unit, root.unit),
        ("columns", known.shape, known.shape if but_shape else root.shape),
        ("caps", _caps(known), _caps(root)),
    ):
        if recorded != given:
            shown = "see fpinq ledger show" if what in ("columns", "caps") else str(recorded)
            raise RegisteredDifferently(root.name, what, shown)


def _caps(root: Registered) -> tuple[object, ...]:
    return root.caps or {}, root.cap, root.keys_caps or {}, root.keys_cap


def changed(budgets: Budgets, event: Event) -> dict[Account, Amounts]:
    """The accounts that an event changed, as they are after it."""
    match event:
        case Took(analyst=analyst, charged=cost):
            return amounts(budgets, accounts_of(budgets, analyst, cost)) if cost else {}
        case Registered():
            return amounts(budgets, accounts_opened(event))
        case Upgraded(spent=spent):
            return amounts(budgets, [(root, who) for root, each in spent.items() for who in each])
        case _:
            return {}


def amounts(budgets: Budgets, accounts: Iterable[Account]) -> dict[Account, Amounts]:
    """What is spent of accounts, and their totals."""
    return {account: (budgets.spent.get(account, 0), _total(budgets, account)) for account in accounts}


def _total(budgets: Budgets, account: Account) -> int:
    promised = budgets.promised(account)
    assert promised is not None
    return units(promised)
