"""The ledger's sessions are those of proof/Sessions.v: what each may spend, and what all of them spend.

Random interleavings of several sessions of two analysts, with caps, partitions
and a data set that arrives on the way. Beside them runs one program that has
all their variables under names of its own: where nobody is stopped by a cap it
must take the same steps.
"""

from collections.abc import Iterable
from fractions import Fraction
from random import Random

import pytest

from fpinq.checker.scope import BINARY, SCHEMA, UNARY
from fpinq.model import sessions
from fpinq.model.accounts import Root
from fpinq.model.actions import Action, Assign, Partition, Query
from fpinq.model.errors import ProgramError
from fpinq.model.events import Registered
from fpinq.model.expressions import Column
from fpinq.model.queries import Count
from fpinq.model.semantics import Configuration, initial, step, with_root
from fpinq.model.sessions import Budgets, Session, decide, left_to, opened, registered, seeing
from fpinq.model.transformations import Partitioning
from fpinq.model.units import amount, units

ANALYSTS = {"x": "ann", "y": "ann", "z": "bob"}
LATE = "C"


class Interleaving:
    """Sessions x, y and z under one set of budgets, and the one program that does what they do."""

    def __init__(self, seed: int, capped: bool) -> None:
        self.random = Random(seed)
        self.budgets = Budgets()
        self.one: Configuration = initial({})
        self.sessions: dict[str, Session] = {name: opened(who) for name, who in ANALYSTS.items()}
        self.variables: dict[str, list[str]] = {name: [] for name in self.sessions}
        self.capped = capped
        self.rules: list[str] = []
        self.arrive("A")
        self.arrive("B")

    def arrive(self, name: str) -> None:
        total = Fraction(self.random.randint(1, 30), self.random.choice([1, 2, 3, 41]))
        caps = {"ann": total * Fraction(2, 3)} if self.capped else None
        root = Registered.of(name, SCHEMA, total, contents=(name,), caps=caps)
        self.budgets = registered(self.budgets, root, len(self.budgets.roots))
        self.one = with_root(self.one, name, SCHEMA, total)
        for variables in self.variables.values():
            variables.append(name)

    def act(self, number: int) -> None:
        name = self.random.choice(list(self.sessions))
        action, same = self.action(name, number)
        before = self.sessions[name]
        assert left_to(self.budgets, seeing(self.budgets, before)) == self.allowed(name)
        try:
            decision = decide(self.budgets, before, action)
        except ProgramError as error:
            self.rules.append(type(error).__name__)
        else:
            self.budgets = decision.budgets
            self.sessions[name] = decision.session
            self.rules.append(decision.transition.rule)
            self.variables[name] = list(decision.session.configuration.environment)
        if not self.capped:
            assert self.rules[-1] == self.in_one(same)

    def in_one(self, action: Action) -> str:
        try:
            transition = step(self.one, action)
        except ProgramError as error:
            return type(error).__name__
        self.one = transition.configuration
        return transition.rule

    def action(self, name: str, number: int) -> tuple[Action, Action]:
        """What the session does, and the same with the session's name before its variables."""

        def known(variable: str) -> str:
            return variable if variable in self.budgets.roots else f"{name} {variable}"

        tables = self.variables[name]
        target = f"t{self.random.randint(0, number)}"
        match self.random.randint(0, 7):
            case 0 | 1:
                unary, table = self.random.choice(list(UNARY.values())), self.random.choice(tables)
                return Assign(target, unary, (table,)), Assign(known(target), unary, (known(table),))
            case 2:
                binary, of = self.random.choice(list(BINARY.values())), self.random.choices(tables, k=2)
                return Assign(target, binary, tuple(of)), Assign(known(target), binary, tuple(map(known, of)))
            case 3 | 4:
                by = Partitioning(Column("k"), tuple(range(self.random.randint(1, 4))))
                parts, table = [f"{target}.{i}" for i in by.keys], self.random.choice(tables)
                return Partition(tuple(parts), table, by), Partition(
                    tuple(map(known, parts)), known(table), by
                )
            case _:
                epsilon = Fraction(self.random.randint(1, 6), self.random.choice([1, 2, 3, 7, 43]))
                table = self.random.choice(tables)
                return Query(table, epsilon, (Count(),)), Query(known(table), epsilon, (Count(),))

    def allowed(self, name: str) -> dict[Root, Fraction]:
        """left_to of proof/Sessions.v: what the others, rounded up, leave of the budget and of the cap."""
        others = [other for other in self.sessions if other != name]
        own = [other for other in others if ANALYSTS[other] == ANALYSTS[name]]
        left = {}
        for root in self.budgets.roots.values():
            limits = [root.budget - self.taken(others, root.name)]
            cap = root.cap_of(ANALYSTS[name])
            if cap is not None:
                limits.append(cap - self.taken(own, root.name))
            left[Root(root.name)] = min(limits)
        return left

    def taken(self, names: Iterable[str], root: str) -> Fraction:
        return sum((amount(units(self.sessions[name].spent(root))) for name in names), Fraction(0))

    def spent(self, names: Iterable[str], root: str) -> Fraction:
        return sum((self.sessions[name].spent(root) for name in names), Fraction(0))


def run(seed: int, *, capped: bool) -> Interleaving:
    it = Interleaving(seed, capped)
    for number in range(it.random.randint(5, 25)):
        if number == 8:
            it.arrive(LATE)
        it.act(number)
        for root in it.budgets.roots.values():
            total = it.spent(it.sessions, root.name)
            assert total <= root.budget
            if capped:
                cap = root.cap_of("ann")
                assert cap is not None
                assert it.spent([name for name, who in ANALYSTS.items() if who == "ann"], root.name) <= cap
            else:
                assert total == it.one.accounts.counters.get(Root(root.name), Fraction(0))
    return it


@pytest.mark.parametrize("capped", [False, True])
def test_sessions_spend_what_the_proof_says(capped: bool) -> None:
    rules = [rule for seed in range(150) for rule in run(seed, capped=capped).rules]
    for rule in ("Assign", "Partition", "Query", "Query⊥", "UnboundedStability"):
        assert rules.count(rule) > 20, rule


def _budgets_alone(budgets: Budgets, session: Session) -> dict[Root, Fraction]:
    return {Root(name): root.budget for name, root in budgets.roots.items()}


def test_a_session_that_forgets_the_others_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "left_to", _budgets_alone)
    with pytest.raises(AssertionError):
        test_sessions_spend_what_the_proof_says(capped=False)
