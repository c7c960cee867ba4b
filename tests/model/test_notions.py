"""Programs and sessions under budgets of every notion."""

from dataclasses import replace
from fractions import Fraction

import pytest

from fpinq.model import books
from fpinq.model.accounts import Root
from fpinq.model.actions import AskBudget, AskPrice, AskScale, Assign, Partition, Query
from fpinq.model.clamps import Clamp
from fpinq.model.conversion import rho_of
from fpinq.model.epsilon import epsilon
from fpinq.model.errors import BadEpsilon, BadQuery, NotAsRecorded, NotConcentrated
from fpinq.model.events import Began, Registered, Took
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.notions import Rho, Total, approximate
from fpinq.model.queries import Balance, Count, Several
from fpinq.model.semantics import Configuration, Rule, Told, Transition, initial, step
from fpinq.model.sessions import (
    NOTHING,
    State,
    after,
    changed,
    configuration,
    decide,
    entered,
    followed,
    opened,
    seeing,
    take,
)
from fpinq.model.transformations import Concat, Partitioning
from fpinq.model.units import units

SCHEMA = Schema((("k", Type.INT64),))
BY_K = Partitioning(Column("k"), (0, 1))
ONE = Fraction(1)
SMALL = Fraction(1, 10**9)


def rho(number: str) -> Rho:
    return Rho(Fraction(number))


def count(table: str, at: Fraction | Rho) -> Query:
    return Query(table, at, (Count(),))


def run(c: Configuration, *actions: object) -> Configuration:
    for action in actions:
        c = step(c, action).configuration  # type: ignore[arg-type]
    return c


def told(c: Configuration, action: object) -> object:
    label = step(c, action).label  # type: ignore[arg-type]
    assert isinstance(label, Told)
    return label.fact


def test_a_program_at_rho_pays_the_square_of_the_scale() -> None:
    c = initial({"A": (SCHEMA, rho("1/10"))})
    c = run(c, Assign("two", Concat(), ("A", "A")), Partition(("p", "q"), "two", BY_K))
    assert told(c, AskScale("p")) == 2
    assert told(c, AskPrice("p", rho("1/100"))) == {"A": Fraction(4, 100)}
    c = run(c, count("p", rho("1/100")), count("q", rho("1/100")))
    assert told(c, AskBudget()) == {"A": Fraction(6, 100)}
    refused = step(c, count("A", rho("7/100")))
    assert refused.rule is Rule.QUERY_BOTTOM
    assert refused.configuration == c
    assert told(run(c, count("A", rho("6/100"))), AskBudget()) == {"A": 0}


def test_a_query_at_rho_of_a_pure_root_is_a_mistake_and_nothing_changes() -> None:
    c = run(initial({"A": (SCHEMA, ONE), "B": (SCHEMA, rho("1"))}), Assign("both", Concat(), ("A", "B")))
    for action in (count("both", rho("1/100")), AskPrice("both", rho("1/100"))):
        with pytest.raises(NotConcentrated):
            step(c, action)
    assert told(run(c, count("B", rho("1/100"))), AskBudget()) == {"A": 1, "B": Fraction(99, 100)}


def test_a_balance_has_no_mechanism_at_rho_alone_or_among_several() -> None:
    c = initial({"A": (SCHEMA, rho("1"))})
    balance = Balance(Clamp(Column("k"), 0, 4), 8, 1, 1)
    for query in (balance, Several((Count(), balance), (1, 1))):
        with pytest.raises(BadQuery, match="asked at an ε"):
            step(c, Query("A", rho("1/100"), (query,)))
        step(c, Query("A", Fraction(1, 100), (query,)))


# ── sessions ─────────────────────────────────────────────────────────────────────────


def registered(budget: Total, name: str = "A", **facts: object) -> State:
    return take(take(NOTHING, Began("0" * 32)), Registered.of(name, SCHEMA, budget, **facts))  # type: ignore[arg-type]


def acted(state: State, name: str, action: Query, analyst: str | None = None) -> State:
    session = state.sessions.get(name) or opened(analyst)
    decision = decide(state.budgets, session, action)
    taken = take(state, Took(name, analyst, None, action, decision.transition.rule, decision.charged))
    assert entered(state, name, decision).budgets == taken.budgets
    return taken


def test_sessions_share_what_a_root_has_in_rho() -> None:
    state = acted(
        acted(registered(rho("1/10")), "x", count("A", rho("6/100"))), "y", count("A", rho("5/100"))
    )
    assert state.budgets.spent == {("A", ""): units(Fraction(6, 100))}  # the second did not fit
    left = configuration(state.budgets, opened(None)).accounts
    assert left.budgets[Root("A")] == Fraction(4, 100)
    state = acted(state, "y", count("A", Fraction(1, 10)))
    assert state.budgets.spent["A", ""] == units(Fraction(6, 100) + state.sessions["y"].spent("A"))


def test_an_analyst_has_a_cap_in_the_unit_of_the_budget() -> None:
    state = registered(rho("1"), caps={"ann": rho("1/10")}, cap=rho("1/5"))
    state = acted(state, "x", count("A", rho("9/100")), "ann")
    assert decide(state.budgets, opened("ann"), count("A", rho("2/100"))).transition.rule is Rule.QUERY_BOTTOM
    assert decide(state.budgets, opened("bob"), count("A", rho("2/10"))).transition.rule is Rule.QUERY
    for budget, cap in ((rho("1"), ONE), (ONE, rho("1"))):
        with pytest.raises(BadEpsilon, match="one notion"):
            Registered.of("A", SCHEMA, budget, cap=cap)


def test_roots_of_other_notions_arrive_and_a_session_sees_them() -> None:
    state = acted(registered(ONE), "x", count("A", Fraction(1, 2)))
    state = take(state, Registered.of("B", SCHEMA, rho("1/2")))
    state = take(state, Registered.of("C", SCHEMA, ONE))
    state = acted(state, "x", count("B", rho("1/4")))
    session = state.sessions["x"]
    assert {name: session.spent(name) for name in "ABC"} == {"A": Fraction(1, 2), "B": Fraction(1, 4), "C": 0}


def test_a_session_is_followed_in_its_books() -> None:
    took = Took("x", None, None, count("A", rho("1/4")), Rule.QUERY, {"A": Fraction(1, 4)})
    state = take(registered(rho("1/2")), took)
    again = followed(state.budgets, followed(state.budgets, opened(None), took, 2), took, 3)
    assert again.spent("A") == Fraction(1, 2)
    with pytest.raises(NotAsRecorded, match="the charge is not"):
        take(state, Took("x", None, None, count("A", rho("1/4")), Rule.QUERY, {"A": Fraction(1, 8)}))


def test_a_root_with_a_delta_has_an_account_of_it_under_a_name_of_its_own() -> None:
    budget = approximate(1, 2 * SMALL, SMALL)
    state = registered(budget)
    event = Registered.of("A", SCHEMA, budget)
    assert changed(state.budgets, event) == {
        ("A", ""): (0, units(rho_of(ONE, SMALL))),
        ("A δ", ""): (0, units(SMALL)),
    }
    assert [state.budgets.promised(a) for a in (("A δ", ""), ("A δ", "ann"), ("B δ", ""))] == [
        SMALL,
        None,
        None,
    ]
    left = configuration(state.budgets, opened(None)).accounts.books
    assert left is not None
    assert dict(left.keys) == {Root("A"): SMALL}
    assert len(left.keys) == 1
    with pytest.raises(KeyError):
        left.keys[Root("B")]


def test_no_root_is_called_what_another_ones_delta_is() -> None:
    keyed = approximate(1, SMALL, SMALL)
    for first, second in (((keyed, "A"), (ONE, "A δ")), ((ONE, "A δ"), (keyed, "A"))):
        state = registered(*first)
        with pytest.raises(NotAsRecorded, match="too like"):
            take(state, Registered.of(second[1], SCHEMA, second[0]))
    state = take(registered(ONE), Registered.of("A δ", SCHEMA, ONE))  # there is no δ to mistake it for
    assert list(state.budgets.listed) == ["A", "A δ"]


def test_what_keys_cost_of_a_delta_is_shared_by_the_sessions() -> None:
    """The rest of a step is as of any query."""
    state = registered(approximate(1, 3 * SMALL, 3 * SMALL), cap=ONE)
    session = seeing(state.budgets, opened("ann"))
    c = configuration(state.budgets, session)
    charged = books.charge(c.accounts, {Root("A"): 2}, epsilon(Fraction(1, 4)), SMALL)
    label = step(c, count("A", Fraction(1, 4))).label
    first = after(
        state.budgets, session, Transition(Rule.QUERY, label, Configuration(c.environment, charged))
    )
    assert first.charged == {"A": Fraction(1, 2), "A δ": 2 * SMALL}
    assert first.budgets.spent == {
        ("A", ""): units(Fraction(1, 2)),
        ("A", "ann"): units(Fraction(1, 2)),
        ("A δ", ""): units(2 * SMALL),
    }
    own, others = (
        configuration(first.budgets, each).accounts.books for each in (first.session, opened("bob"))
    )
    assert own is not None
    assert others is not None
    assert (own.keys[Root("A")], others.keys[Root("A")]) == (3 * SMALL, SMALL)


def test_a_budget_that_was_written_down_implies_what_it_was_stated_as() -> None:
    """Less than that, too: a conversion may get better, and what was promised stays."""
    whole = approximate(1, SMALL)
    assert isinstance(whole.amount, Rho)
    less = replace(whole, amount=Rho(whole.amount.amount / 2))
    for budget in (whole, less, approximate(1, SMALL, SMALL), rho("1/50"), ONE):
        take(take(NOTHING, Began("0" * 32)), Registered("A", SCHEMA, budget))
    for wrong in (
        Rho(Fraction(-1)),
        Fraction(-1),
        replace(whole, amount=Rho(2 * whole.amount.amount)),
        replace(whole, amount=Rho(Fraction(-1))),
        replace(whole, amount=ONE),
        replace(whole, delta=ONE),
    ):
        with pytest.raises(NotAsRecorded, match="does not imply"):
            take(take(NOTHING, Began("0" * 32)), Registered("A", SCHEMA, wrong))
