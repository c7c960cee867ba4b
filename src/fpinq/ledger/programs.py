"""Programs: sessions under one set of budgets, as folds of the kernel's step.

A session is one client program: its environment and its accounts are what
`step` makes of its own actions, from nothing. Partitions are a session's own,
so what several sessions charge at a root adds up, and

    C(session) ≤ B − (what the others were charged)

is C ≤ B for all of them together. So each session steps with the budgets that
the others leave it; an analyst's cap is a second such bound.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from fpinq.ledger.entries import Registered, Took
from fpinq.ledger.errors import (
    Frozen,
    LedgerCorrupt,
    OthersSession,
    RegisteredDifferently,
    SameData,
    TooManyQueries,
)
from fpinq.ledger.spending import less, units
from fpinq.ledger.totals import Account, Amounts
from fpinq.model.accounts import Accounts, Root
from fpinq.model.actions import Action, AskBudget, Query, TableVariable
from fpinq.model.errors import DataChanged, ProgramError, UnknownTable
from fpinq.model.plans import RootTable, roots_of
from fpinq.model.semantics import Configuration, Label, Measure, Table, Transition, step

Step = Callable[[Configuration, Action], Transition]
ZERO = Fraction(0)
# The rules of the others do not depend on what is left.
LOOK_AT_BUDGETS = (Query, AskBudget)


class Session(NamedTuple):
    """One client program: whose it is, its configuration, what it has taken of each root, its queries."""

    analyst: str | None
    configuration: Configuration
    taken: Mapping[str, int]  # in units
    queries: int = 0  # those that were charged

    def spent(self, root: str) -> Fraction:
        """What this session was charged at a root, exactly."""
        return self.configuration.accounts.counters.get(Root(root), ZERO)

    def without(self, variables: Iterable[TableVariable]) -> "Session":
        """The session, with these variables forgotten."""
        gone, c = set(variables), self.configuration
        kept = {variable: table for variable, table in c.environment.items() if variable not in gone}
        return self._replace(configuration=replace(c, environment=kept))

    def after(self, transition: Transition) -> tuple["Session", dict[str, Fraction], dict[str, int]]:
        """The session after a step, and what that charged at each root: exactly, and in units."""
        asked = transition.rule == "Query"
        after = Session(self.analyst, transition.configuration, self.taken, self.queries + asked)
        if not asked:
            return after, {}, {}
        charged: dict[str, Fraction] = {}
        more: dict[str, int] = {}
        for root in transition.configuration.accounts.budgets:
            was, now = self.spent(root.name), after.spent(root.name)
            if was is not now and was != now:
                charged[root.name] = now - was
                more[root.name] = units(now) - self.taken.get(root.name, 0)
        if more:
            taken = {**self.taken, **{name: self.taken.get(name, 0) + n for name, n in more.items()}}
            after = after._replace(taken=taken)
        return after, charged, more


class Decision(NamedTuple):
    """What a step of a session would do."""

    session: Session
    transition: Transition
    charged: Mapping[str, Fraction]
    units: Mapping[str, int]


@dataclass
class Budgets:
    """What was promised, and what is gone of it: the state that all sessions share.

    spent is in units: (root, analyst) ↦ units for analysts with a cap of their
    own, (root, "") ↦ units of all sessions together.
    """

    roots: dict[str, Registered] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    spent: dict[Account, int] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)

    def known(self, root: Registered, *, but_shape: bool = False) -> Registered | None:
        """What was promised for a data set that is to be registered; None if it is new.

        DataChanged if the name stands for other data, SameData if the data has
        another name, RegisteredDifferently if something else was promised.
        """
        known = self.roots.get(root.name)
        if known is not None:
            check_same(known, root, but_shape=but_shape)
            return known
        for other in self.roots.values():
            if set(other.contents) & set(root.contents):
                raise SameData(root.name, other.name)
        if root.block_of is not None and root.block_of not in self.roots:
            raise UnknownTable(root.block_of, self.roots)
        return None

    def register(self, root: Registered, seq: int) -> dict[Account, Amounts]:
        """One more data set. Its account, as it is now."""
        self.roots[root.name] = root
        self.since[root.name] = seq
        self.spent[root.name, ""] = 0
        return opening(root)

    def left_to(self, session: Session) -> dict[Root, Fraction]:
        """The budgets that a session steps with: what the others leave it."""
        left: dict[Root, Fraction] = {}
        for name, root in self.roots.items():
            own = session.taken.get(name, 0)
            limit = less(root.budget, self.spent[name, ""] - own)
            cap = root.cap_of(session.analyst)
            if cap is not None:
                limit = min(limit, less(cap, self.spent.get((name, session.analyst or ""), 0) - own))
            left[Root(name)] = limit
        return left

    def decide(self, session: Session, action: Action, step: Step = step) -> Decision:
        """The one step that a session's action takes now; raises ProgramError, and nothing happens."""
        session = self.seeing(session)
        bounded = type(action) in LOOK_AT_BUDGETS
        c = session.configuration
        transition = step(with_budgets(c, self.left_to(session)) if bounded else c, action)
        self.check_thawed(transition.label)
        after, charged, more = session.after(transition)
        return Decision(after, transition, charged, more)

    def configuration(self, session: Session) -> Configuration:
        """⟨E, C⟩ of a session, with the budgets that the others leave it."""
        session = self.seeing(session)
        return with_budgets(session.configuration, self.left_to(session))

    def check_thawed(self, label: Label) -> None:
        """Frozen if a measurement reads a data set that its owner froze."""
        if self.frozen and isinstance(label, Measure) and (cold := roots_of(label.plan) & self.frozen):
            raise Frozen(min(cold))

    def accounts_of(self, analyst: str | None, charged: Iterable[str]) -> list[Account]:
        """The accounts that a charge goes to: each root's, and the analyst's where there is a cap."""
        own = [(name, "") for name in charged]
        if analyst is None:
            return own
        return own + [(name, analyst) for name, _ in own if self.roots[name].cap_of(analyst) is not None]

    def charged(self, analyst: str | None, more: Mapping[str, int]) -> dict[Account, Amounts]:
        """The accounts that a charge goes to, as they are after it."""
        spent = self.spent
        return {
            (name, who): (spent.get((name, who), 0) + more[name], self.total(name, who))
            for name, who in self.accounts_of(analyst, more)
        }

    def add(self, analyst: str | None, more: Mapping[str, int]) -> dict[Account, Amounts]:
        """A charge is durable: it counts from now on. The accounts it went to, as they are now."""
        changed = self.charged(analyst, more)
        for account, (spent, _) in changed.items():
            self.spent[account] = spent
        return changed

    def total(self, name: str, who: str) -> int:
        """What was promised: a root's budget, or an analyst's cap, in units."""
        root = self.roots[name]
        total = root.cap_of(who) if who else root.budget
        assert total is not None
        return units(total)

    def promised(self, name: str, who: str, total: int) -> bool:
        """Whether this is the total of an account that there may be."""
        promise = self.roots[name].cap_of(who) if who else self.roots[name].budget
        return promise is not None and units(promise) == total

    def accounts(self) -> dict[Account, Amounts]:
        """What is spent of each account, and its total."""
        return {(name, who): (spent, self.total(name, who)) for (name, who), spent in self.spent.items()}

    def seeing(self, session: Session, at: int | None = None) -> Session:
        """A session that sees the roots there were before an entry, or are now."""
        c = session.configuration
        if len(c.accounts.budgets) == len(self.roots):
            return session
        seen = [name for name in self.roots if at is None or self.since[name] < at]
        fresh = [name for name in seen if Root(name) not in c.accounts.budgets]
        tables = {name: Table(RootTable(name), self.roots[name].shape, {Root(name): 1}) for name in fresh}
        budgets = {Root(name): self.roots[name].budget for name in seen}
        environment = {**c.environment, **tables}
        return session._replace(configuration=with_budgets(replace(c, environment=environment), budgets))


def opening(root: Registered) -> dict[Account, Amounts]:
    """The account that a data set begins with: its budget, of which nothing is spent."""
    return {(root.name, ""): (0, units(root.budget))}


def with_budgets(c: Configuration, budgets: Mapping[Root, Fraction]) -> Configuration:
    """A configuration under other budgets."""
    a = c.accounts
    accounts = Accounts(budgets, a.counters, a.direct, a.partitions, a.maxima, a.mentions)
    return Configuration(c.environment, accounts)


def check_same(known: Registered, root: Registered, *, but_shape: bool = False) -> None:
    """A known data set again: DataChanged or RegisteredDifferently unless it is what was promised."""
    if known.contents != root.contents:
        raise DataChanged(root.name)
    for what, recorded, given in (
        ("budget", known.budget, root.budget),
        ("unit", known.unit, root.unit),
        ("columns", known.shape, known.shape if but_shape else root.shape),
        ("caps", (known.caps or {}, known.cap), (root.caps or {}, root.cap)),
    ):
        if recorded != given:
            shown = "see fpinq ledger show" if what in ("columns", "caps") else str(recorded)
            raise RegisteredDifferently(root.name, what, shown)


def opened(analyst: str | None) -> Session:
    """A program that has done nothing yet."""
    return Session(analyst, Configuration({}, Accounts({})), {})


def followed(budgets: Budgets, session: Session, seq: int, took: Took) -> Session:
    """A session after an entry of its own, as recorded: replayed through the kernel, on its own.

    A refusal changes nothing. A charge was within the budgets when it was made,
    so it is within the roots' own, which are all that this session steps with.
    """
    if session.analyst != took.analyst:
        raise LedgerCorrupt(seq, "another analyst's session")
    session = budgets.seeing(session, seq)
    if took.rule == "Query⊥":
        return session
    c = session.configuration
    own = {root: budgets.roots[root.name].budget for root in c.accounts.budgets}
    return session.after(stepped(with_budgets(c, own), seq, took))[0]


def stepped(c: Configuration, seq: int, took: Took) -> Transition:
    """The recorded step again; LedgerCorrupt if the kernel does not take it."""
    try:
        transition = step(c, took.action)
    except ProgramError as error:
        raise LedgerCorrupt(seq, f"the kernel refuses the action: {error}") from None
    if transition.rule != took.rule:
        raise LedgerCorrupt(seq, f"the rule is {transition.rule}, not {took.rule}")
    return transition


def check_queries(session: Session, at_most: int | None) -> None:
    """TooManyQueries if a session would have asked more than that."""
    if at_most is not None and session.queries > at_most:
        raise TooManyQueries(at_most)


def check_owner(session: Session, name: str, analyst: str | None) -> None:
    """OthersSession unless the session is the analyst's."""
    if session.analyst != analyst:
        raise OthersSession(name)
