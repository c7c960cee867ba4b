"""Sessions are one program: random interleavings, against a program that does the same under other names."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from fpinq.checker.scope import BINARY, SCHEMA, UNARY
from fpinq.model import sessions
from fpinq.model.actions import Action, AskPrice, AskScale, Assign, Partition, Query
from fpinq.model.errors import ProgramError
from fpinq.model.events import Began, Registered
from fpinq.model.expressions import Column
from fpinq.model.queries import Count
from fpinq.model.semantics import Rule, Told, initial, step, with_root
from fpinq.model.sessions import NOTHING, decide, entered, opened, take
from fpinq.model.transformations import Partitioning
from fpinq.model.units import amount

NAMES = ("x", "y", "z")
LATE, STEPS = 8, 24


class Interleaving:
    """Three sessions under the budgets of two roots, and of a third that may arrive; and the one program."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        budgets = {
            "A": Fraction(self.random.randint(1, 30)),
            "B": Fraction(self.random.randint(1, 30), self.random.choice([1, 2, 3])),
        }
        self.roots = list(budgets)
        self.state = take(NOTHING, Began("0" * 32))
        for name, total in budgets.items():
            self.state = take(self.state, Registered(name, SCHEMA, total, (name,)))
        self.one = initial({name: (SCHEMA, total) for name, total in budgets.items()})
        self.bound: dict[str, list[str]] = {name: [] for name in NAMES}
        self.seen: Counter[str] = Counter()

    def run(self) -> None:
        for number in range(STEPS):
            if number == LATE and self.random.random() < 0.5:
                self.arrive()
            name = self.random.choice(NAMES)
            self.act(name, self.action(self.roots + self.bound[name], number))

    def arrive(self) -> None:
        self.state = take(self.state, Registered("C", SCHEMA, Fraction(7), ("C",)))
        self.one = with_root(self.one, "C", SCHEMA, Fraction(7))
        self.roots.append("C")

    def action(self, tables: list[str], number: int) -> Action:
        pick = self.random.choice
        epsilon = Fraction(self.random.randint(1, 6), pick([1, 2, 3, 5, 7]))
        parts = self.random.randint(1, 4)
        kinds: list[Callable[[], Action]] = [
            lambda: Assign(f"v{number}", pick(list(UNARY.values())), (pick(tables),)),
            lambda: Assign(f"v{number}", pick(list(BINARY.values())), (pick(tables), pick(tables))),
            lambda: Partition(
                tuple(f"v{number}.{i}" for i in range(parts)),
                pick(tables),
                Partitioning(Column("k"), tuple(range(parts))),
            ),
            lambda: Query(pick(tables), epsilon, (Count(),)),
            lambda: Query(pick(tables), epsilon, (Count(),)),
            lambda: AskScale(pick(tables)),
            lambda: AskPrice(pick(tables), epsilon),
        ]
        return pick(kinds)()

    def act(self, name: str, action: Action) -> None:
        session = self.state.sessions.get(name) or opened(None)
        mine = outcome(lambda: decide(self.state.budgets, session, action))
        ones = outcome(lambda: step(self.one, self.named(action, name)))
        assert rule_of(mine) == rule_of(ones), action
        self.seen[rule_of(mine)] += 1
        if isinstance(mine, type):
            return
        if isinstance(mine.transition.label, Told):
            assert mine.transition.label == ones.label
            return
        self.state, self.one = entered(self.state, name, mine), ones.configuration
        self.bound[name] += targets(action)
        self.check_charges()

    def check_charges(self) -> None:
        every = self.state.sessions
        for root in self.one.accounts.budgets:
            charged = sum((every[name].spent(root.name) for name in every), Fraction(0))
            assert charged == self.one.accounts.counters.get(root, 0)
            assert charged <= amount(self.state.budgets.spent[root.name, ""]) < charged + amount(len(NAMES))

    def named(self, action: Any, name: str) -> Action:
        def of(variable: str) -> str:
            return variable if variable in self.roots else f"{name}{variable}"

        match action:
            case Assign():
                return replace(action, target=of(action.target), arguments=tuple(map(of, action.arguments)))
            case Partition():
                return replace(action, targets=tuple(map(of, action.targets)), table=of(action.table))
        return replace(action, table=of(action.table))  # type: ignore[no-any-return]


def outcome(run: Callable[[], Any]) -> Any:
    """What comes of it, or the class of its refusal."""
    try:
        return run()
    except ProgramError as error:
        return type(error)


def rule_of(outcome: Any) -> str:
    if isinstance(outcome, type):
        return outcome.__name__
    return str(getattr(outcome, "transition", outcome).rule)


def targets(action: Action) -> list[str]:
    match action:
        case Assign(target=target):
            return [target]
        case Partition(targets=parts):
            return list(parts)
    return []


def run_all() -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in range(150):
        it = Interleaving(seed)
        it.run()
        seen += it.seen
    return seen


def test_sessions_are_one_program() -> None:
    seen = run_all()
    assert min(seen[rule] for rule in (Rule.QUERY, Rule.QUERY_BOTTOM, Rule.PARTITION, Rule.ASSIGN)) > 100


def _unseen(*_: object) -> int:
    return 0


def _own_twice(budgets: sessions.Budgets, account: sessions.Account, taken: Mapping[str, int]) -> int:
    return budgets.spent[account] - 2 * taken.get(account[0], 0)


@pytest.mark.parametrize("wrong", [_unseen, _own_twice])
def test_sessions_that_see_other_budgets_are_not(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "by_others", wrong)
    with pytest.raises(AssertionError):
        run_all()
