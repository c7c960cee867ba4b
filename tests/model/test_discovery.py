"""Queries that find keys: what is refused, what is measured, and what is charged."""

from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest

from fpinq.engines.reference import PersonBag, Relation, compute, measure
from fpinq.model import books
from fpinq.model.accounts import Root, paid
from fpinq.model.actions import AskBudget, AskPrice, Assign, Query
from fpinq.model.domains import DateDomain, IntegerDomain, ProductDomain, StringDomain, TruthDomain
from fpinq.model.errors import (
    BadAction,
    BadEpsilon,
    BadPartition,
    BadQuery,
    BadTransformation,
    NoDelta,
    NotConcentrated,
    ProgramError,
)
from fpinq.model.expressions import Apply, Column, Schema, Type
from fpinq.model.notions import Rho, approximate
from fpinq.model.plans import Persons, PersonTable, RootTable, Term
from fpinq.model.queries import Count, Several, Sparse, Spread, Stable
from fpinq.model.semantics import BOTTOM, Measure, initial, step
from fpinq.model.statistics import Support
from fpinq.model.transformations import Concat, Partitioning, SelectMany, Where
from fpinq.model.work import TableSize, work_of

S = Schema.of({"k": Type.INT64, "s": Type.STRING, "d": Type.DATE, "b": Type.BOOL, "f": Type.FLOAT64})
K, T = Column("k"), Column("s")
PEOPLE = Persons("id", (("visits", Schema.of({"id": Type.INT64, "k": Type.INT64})),))
TEN, DELTA, ONE = IntegerDomain(0, 9), Fraction(1, 10**12), Fraction(1)
SPARSE, STABLE = Sparse(K, TEN, Fraction(1, 1000), 10), Stable(K, TEN, DELTA, 1, 10)
VISITS = PersonTable("visits", 5)


def opened() -> Any:
    return initial(
        {
            "pure": (S, Fraction(5)),
            "keys": (S, approximate(1, "1e-10", "1e-10")),
            "both": (S, approximate(1, "1e-9", "1e-10")),
            "people": (PEOPLE, approximate(1, "1e-9", "1e-10")),
        }
    )


def ask(c: Any, table: str, query: Any, at: Any = ONE, by: Any = None) -> Any:
    return step(c, Query(table, at, query if isinstance(query, tuple) else (query,), by))


# ── what is refused, before anything changes ─────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (replace(SPARSE, key=T), "int64, and what is counted is string"),
        (replace(SPARSE, key=Column("f")), "float64"),
        (replace(SPARSE, key=(K, T)), "product of domains"),
        (replace(SPARSE, domain=ProductDomain((TEN, TEN))), "product of domains"),
        (replace(SPARSE, key=(K,), domain=ProductDomain((TEN,))), "2 or more"),
        (replace(SPARSE, at_most=0), "keys are released"),
        (replace(SPARSE, at_most=2**20 + 1), "keys are released"),
        (replace(SPARSE, expected=Fraction(0)), "expected"),
        (replace(SPARSE, expected=Fraction(10_001)), "expected"),
        (replace(SPARSE, expected=Fraction(1, 10**19)), "expected"),
        (replace(STABLE, delta=Fraction(0)), "δ"),
        (replace(STABLE, delta=Fraction(1)), "δ"),
        (replace(STABLE, distance=0), "distance"),
        (replace(STABLE, distance=10**19), "distance"),
        (replace(SPARSE, spread=Spread(VISITS, 0)), "whole number"),
        (replace(SPARSE, spread=Spread(VISITS, 10**19)), "at most"),
    ],
)
def test_what_makes_no_sense_is_refused(query: Any, problem: str) -> None:
    with pytest.raises((BadQuery, BadEpsilon, BadTransformation), match=problem):
        query.check(S)


def test_a_domain_that_was_tampered_with_is_refused() -> None:
    tampered = IntegerDomain(0, 9)
    object.__setattr__(tampered, "high", -1)
    with pytest.raises(BadPartition):
        replace(SPARSE, domain=tampered).check(S)


@pytest.mark.parametrize(
    ("table", "query", "at", "by", "error"),
    [
        ("pure", STABLE, ONE, None, NoDelta),
        ("pure", SPARSE, Rho(ONE), None, NotConcentrated),
        ("pure", (SPARSE, Count()), ONE, Partitioning(K, (0, 1)), BadQuery),
        ("pure", (Count(), SPARSE), ONE, Partitioning(K, (0, 1)), BadQuery),
        ("pure", Several((SPARSE, Count()), (1, 1)), ONE, None, BadQuery),
        ("pure", replace(SPARSE, spread=Spread(VISITS, 1)), ONE, None, BadTransformation),
        ("people", SPARSE, ONE, None, BadTransformation),
        ("people", replace(SPARSE, spread=Spread(VISITS, 1)), ONE, Partitioning(K, (0, 1)), BadQuery),
        ("people", replace(SPARSE, spread=Spread(RootTable("pure"), 1)), ONE, None, BadTransformation),
        ("both", replace(SPARSE, key=T, domain=StringDomain(64)), Rho(Fraction(1, 1000)), None, BadQuery),
        ("pure", SPARSE, ONE, Partitioning(T, (0,)), ProgramError),
    ],
)
def test_a_mistake_is_found_before_anything_changes(
    table: str, query: Any, at: Any, by: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ask(opened(), table, query, at, by)


def test_a_threshold_for_less_than_one_record_can_change_is_refused() -> None:
    c = step(opened(), Assign("twice", Concat(), ("both", "both"))).configuration
    with pytest.raises(BadQuery, match="one record may change 2"):
        ask(c, "twice", STABLE, Rho(Fraction(1, 10**4)))
    assert ask(c, "twice", replace(STABLE, distance=2), Rho(Fraction(1, 10**4))).label is not BOTTOM


# ── what is charged ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("times", [1, 2, 3])
def test_the_root_pays_delta_times_the_scaling_factor_in_a_book_of_its_own(times: int) -> None:
    records = ((("k", K),),) * times
    for root, at in (("keys", Fraction(1, 100)), ("both", Rho(Fraction(1, 10**5)))):
        c = step(opened(), Assign("t", SelectMany(records, times), (root,))).configuration
        after = ask(c, "t", replace(STABLE, distance=times), at).configuration.accounts
        assert books.paid_for_keys(after, Root(root)) == times * DELTA
        expected = times * at if root == "keys" else times**2 * at.amount
        assert paid(after, Root(root)) == expected


def test_what_is_beyond_the_delta_is_bottom_and_nothing_changes() -> None:
    c, query = opened(), replace(STABLE, delta=Fraction(6, 10**11))
    first = ask(c, "keys", query, Fraction(1, 100))
    second = ask(first.configuration, "keys", query, Fraction(1, 100))
    assert isinstance(first.label, Measure)
    assert second.label is BOTTOM
    assert second.configuration is first.configuration
    left = step(first.configuration, AskBudget()).label.fact
    assert left["keys δ"] == Fraction(4, 10**11)
    assert "pure δ" not in left


def test_parts_are_charged_once_for_all() -> None:
    after = ask(opened(), "keys", STABLE, Fraction(1, 100), Partitioning(T, ("a", "b"))).configuration
    assert books.paid_for_keys(after.accounts, Root("keys")) == DELTA


def test_a_domain_costs_no_delta_and_any_root_has_it() -> None:
    c = opened()
    after = ask(ask(c, "pure", SPARSE).configuration, "both", SPARSE, Rho(Fraction(1, 1000))).configuration
    assert paid(after.accounts, Root("pure")) == 1
    assert paid(after.accounts, Root("both")) == Fraction(1, 1000)
    assert not books.paid_for_keys(after.accounts, Root("both"))


def test_a_person_is_one_record_however_many_keys() -> None:
    query = replace(STABLE, spread=Spread(VISITS, 3))
    assert query.sensitivity == query.squared == 3
    asked = ask(opened(), "people", query, Rho(Fraction(1, 1000)))
    assert paid(asked.configuration.accounts, Root("people")) == Fraction(1, 1000)
    assert books.paid_for_keys(asked.configuration.accounts, Root("people")) == DELTA


# ── what is measured ─────────────────────────────────────────────────────────────────


def test_a_support_has_the_keys_of_the_domain_that_records_have() -> None:
    day = date(2024, 2, 29)
    rows = ((1, "a", day, True, None), (1, "é", day, False, None), (99, None, None, None, None))
    table = Relation(S, (*rows, (1, "a", day, True, 0.5)))

    def found(of: tuple[str, ...], domain: Any) -> dict[Any, int]:
        (counts,) = measure(table, None, [Support(tuple(map(Column, of)), domain)])
        return {domain.unrank(number): n for number, n in counts.items()}

    assert Support((K,), TEN).clamps == ()
    assert ProductDomain((TEN, TruthDomain())).types == (Type.INT64, Type.BOOL)
    assert found(("k",), TEN) == {1: 3}
    assert found(("s",), StringDomain(1)) == {"a": 2}
    assert found(("s",), StringDomain(2)) == {"a": 2, "é": 1}
    assert found(("d",), DateDomain(day, day)) == {day: 3}
    assert found(("k", "b"), ProductDomain((TEN, TruthDomain()))) == {(1, True): 2, (1, False): 1}


def people(*visits: tuple[int | None, ...]) -> PersonBag:
    schema = PEOPLE.table("visits")
    each = (Relation(schema, tuple((i, k) for k in keys)) for i, keys in enumerate(visits))
    return PersonBag(PEOPLE, tuple({"visits": one} for one in each))


@pytest.mark.parametrize("keys", [1, 2, 3])
def test_one_person_changes_at_most_so_many_keys_each_by_one(keys: int) -> None:
    """Every person of up to four visits, nulls and repetitions among them, beside others."""
    spread = Spread(Term(Where(Apply("less", (K, Apply("abs", (K,))))), (VISITS,)), keys)
    for body in (VISITS, spread.body):
        query = replace(SPARSE, spread=Spread(body, keys))
        asked = ask(opened(), "people", query, Rho(Fraction(1, 1000))).label
        reached = 0
        for n in range(5):
            for visits in combinations_with_replacement((None, 0, 1, 2, 5), n):
                (before,), (after,) = (
                    measure(compute(asked.plan, {"people": bag}), None, [query.statistic])
                    for bag in (people((1, 1, 2)), people((1, 1, 2), visits))
                )
                moved = {k: after.get(k, 0) - before.get(k, 0) for k in {*before, *after}}
                assert set(moved.values()) <= {0, 1}
                assert sum(moved.values()) <= keys == query.sensitivity
                reached = max(reached, sum(moved.values()))
                if body is VISITS:
                    first = sorted({k for k in visits if k is not None})[:keys]
                    assert {k for k, more in moved.items() if more} == set(first)
        assert reached == (keys if body is VISITS else 0)


def test_the_work_of_a_key_grows_with_how_long_its_number_is() -> None:
    size = {"pure": {"pure": TableSize.of(S, 1000, {"s": 10})}}
    works = [
        work_of(RootTable("pure"), None, [replace(SPARSE, key=T, domain=StringDomain(n))], size).record
        for n in (8, 32, 1024)
    ]
    assert works == sorted(works)
    assert works[2] - works[0] == 2000 * (StringDomain(1024).size.bit_length() // 64)


@pytest.mark.parametrize("times", [1, 3])
def test_the_price_of_delta_is_what_the_charge_adds_and_asking_changes_nothing(times: int) -> None:
    records = ((("k", K),),) * times
    for root, at in (("keys", Fraction(1, 100)), ("both", Rho(Fraction(1, 10**5)))):
        c = step(opened(), Assign("t", SelectMany(records, times), (root,))).configuration
        told = step(c, AskPrice("t", at, DELTA))
        assert told.configuration is c
        after = ask(c, "t", replace(STABLE, distance=times), at).configuration.accounts
        assert told.label.fact[f"{root} δ"] == books.paid_for_keys(after, Root(root)) == times * DELTA
        assert told.label.fact[root] == paid(after, Root(root))
        assert f"{root} δ" not in step(c, AskPrice("t", at)).label.fact


@pytest.mark.parametrize(
    ("table", "delta", "error"),
    [
        ("pure", DELTA, NoDelta),
        *(("keys", bad, BadEpsilon) for bad in (Fraction(0), Fraction(1), Fraction(-1, 9))),
        *(("keys", bad, BadAction) for bad in (0.1, "1e-9", 1, True)),
    ],
)
def test_a_price_of_a_delta_that_is_none_is_refused(table: str, delta: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        step(opened(), AskPrice(table, Fraction(1, 100), delta))
