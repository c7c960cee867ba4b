"""Once: what one step needs, it finds once, and what nobody asks for, it does not do."""

import inspect
import sys
from fractions import Fraction
from typing import Any

import pytest

from fpinq.checker.scope import SCHEMA, UNARY
from fpinq.model.accounts import Accounts, Part, Root, charge, minus, partition, plus
from fpinq.model.actions import Action, Assign
from fpinq.model.closed import check_closed
from fpinq.model.epsilon import epsilon, per
from fpinq.model.events import Began, Registered
from fpinq.model.plans import MAX_DEPTH, Plan, RootTable, Term
from fpinq.model.sessions import NOTHING, decide, opened, take

FILTER: Any = next(iter(UNARY.values()))
A, B = Root("a"), Root("b")


def test_a_charge_says_which_roots_it_raised_and_no_others() -> None:
    made, (first, second) = partition(Accounts({A: Fraction(9), B: Fraction(9)}), {A: 1}, 2)
    once = charge(made, {first: 1}, Fraction(2))
    assert (made.raised, once.raised) == ((), (A,))
    # The other part catches up: its maximum does not grow, so nothing is forwarded to the root.
    assert charge(once, {second: 1}, Fraction(1)).raised == ()
    assert set(charge(once, {second: 2, B: 1}, Fraction(2)).raised) == {A, B}
    assert Part(0, 0) == first


def test_binding_a_table_hashes_nothing_of_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    state = take(take(NOTHING, Began("id")), Registered("r", SCHEMA, Fraction(1), ("r",)))

    def asked(self: object) -> int:
        raise AssertionError("hashed")

    monkeypatch.setattr(type(FILTER), "__hash__", asked)
    decide(state.budgets, opened(None), Assign("t", FILTER, ("r",)))


def test_equal_plans_have_the_same_hash_however_deep_they_are_and_wherever_it_is_asked_for() -> None:
    one, other, limit = deep(MAX_DEPTH), deep(MAX_DEPTH), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 50)
    try:
        assert hash(one) == hash(other) == hash(one)
    finally:
        sys.setrecursionlimit(limit)
    assert hash(one) != hash(deep(MAX_DEPTH - 1))


def deep(depth: int) -> Plan:
    plan: Plan = RootTable("r")
    for _ in range(depth):
        plan = Term(FILTER, (plan,))
    return plan


def test_to_check_closed_data_no_type_is_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    action = Assign("t", FILTER, ("r",))
    check_closed(action, Action)  # which finds how

    def asked(kind: object) -> Any:
        raise AssertionError(f"looked for {kind}")

    monkeypatch.setattr("fpinq.model.closed._check_of", asked)
    check_closed(action, Action)


@pytest.mark.parametrize(
    "a", [Fraction(0), Fraction(7), Fraction(7, 20), Fraction(1, 3), Fraction(10**40, 7)]
)
@pytest.mark.parametrize("b", [Fraction(0), Fraction(1, 20), Fraction(5, 3), Fraction(1, 10**30)])
def test_sums_differences_and_quotients_are_python_s_own(a: Fraction, b: Fraction) -> None:
    assert (plus(a, b), minus(a, b)) == (a + b, a - b)
    if 0 < a < 10**18:
        assert per(6, epsilon(a)) == 6 / a
