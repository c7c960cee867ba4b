"""Budgets, shares of them, and what a refusal says."""

from fractions import Fraction

import pytest

import fpinq as fp
from client.small_data import PEOPLE
from fpinq import _


@pytest.fixture
def data(engine: str) -> fp.Table:
    table: fp.Table = fp.protect(PEOPLE, budget=1, engine=engine, name="people")
    return table


def test_a_refusal_says_the_price_what_is_left_and_what_would_fit(data: fp.Table) -> None:
    with pytest.raises(fp.BudgetExceeded) as refused:
        data.group_by(_.city).select(_.count()).noisy_count(0.75)
    assert (refused.value.price, refused.value.remaining) == (Fraction(3, 2), 1)
    message = str(refused.value)
    assert all(text in message for text in ("1.5", "'people'", "1 left", "Nothing was charged", "ε ≤ 0.5"))
    assert data.remaining == 1


def test_the_most_that_a_refusal_offers_fits(data: fp.Table) -> None:
    with pytest.raises(fp.BudgetExceeded):
        data.take(3).noisy_count(1)
    data.take(3).noisy_count(0.5)
    assert data.remaining == 0


def test_shares_are_spent_one_by_one(data: fp.Table) -> None:
    shares = fp.Budget(1).split(a=0.3, b="0.7")
    a, b = data.with_budget(shares["a"]), data.with_budget(shares["b"])
    a.where(_.age > 3).noisy_count(0.3)
    with pytest.raises(fp.BudgetExceeded):
        a.noisy_count(0.01)
    b.noisy_count(0.7)
    assert (shares["a"].remaining, shares["b"].remaining, data.remaining) == (0, 0, 0)


def test_equal_shares_are_exact(data: fp.Table) -> None:
    thirds = fp.Budget(1).split(3)
    assert [share.amount for share in thirds] == [Fraction(1, 3)] * 3
    assert fp.Budget(1).split(0.25, 0.75)[1].amount == Fraction(3, 4)


def test_a_share_is_gone_from_what_it_was_split_from(data: fp.Table) -> None:
    whole = fp.Budget(1)
    table = data.with_budget(whole)
    (share,) = whole.split(
        "0.6",
    )  # type: ignore[misc]
    assert whole.remaining == Fraction(2, 5)
    with pytest.raises(fp.BudgetExceeded):
        table.noisy_count(0.5)
    table.with_budget(share).noisy_count(0.5)
    assert (whole.remaining, share.remaining) == (Fraction(2, 5), Fraction(1, 10))


def test_shares_of_shares(data: fp.Table) -> None:
    inner = fp.Budget(1).split(2)[0].split(2)[0]
    assert inner.amount == Fraction(1, 4)
    with pytest.raises(fp.BudgetExceeded):
        data.with_budget(inner).noisy_count(0.3)


def test_parts_and_joins_inherit_the_share(data: fp.Table) -> None:
    share = fp.Budget("0.5")
    parts = data.with_budget(share).partition(_.gender, keys=[0, 1])
    parts[0].noisy_count(0.5)
    parts[1].noisy_count(0.5)
    assert share.remaining == 0
    with pytest.raises(fp.BudgetExceeded):
        parts[1].concat(data).noisy_count(0.1)
    assert data.remaining == Fraction(1, 2)


def test_a_budget_object_is_a_root_s_budget(engine: str) -> None:
    budget = fp.Budget(1)
    data = fp.protect(PEOPLE, budget=budget, engine=engine)
    data.noisy_count(0.25)
    assert (budget.remaining, data.remaining) == (Fraction(3, 4), Fraction(3, 4))


@pytest.mark.parametrize("wrong", [(0,), (-1,), (0.6, 0.6), (), ("x",), (float("nan"), 1)])
def test_shares_must_fit(wrong: tuple[object, ...]) -> None:
    whole = fp.Budget(1)
    with pytest.raises(fp.BadEpsilon):
        whole.split(*wrong)
    assert whole.remaining == 1


@pytest.mark.parametrize("wrong", [-1, "x", None, float("inf"), True, 10**30])
def test_a_budget_is_an_exact_amount(engine: str, wrong: object) -> None:
    with pytest.raises(fp.BadEpsilon):
        fp.protect(PEOPLE, budget=wrong, engine=engine)


def test_roots_have_their_own_budgets_and_names(engine: str) -> None:
    a = fp.protect(PEOPLE, budget=1, engine=engine, name="a")
    b = fp.protect(PEOPLE, budget=2, engine=engine, name="b")
    both = a.concat(b)
    assert both.remaining == {"a": 1, "b": 2}
    assert both.price(0.5) == {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    assert both.noisy_count(0.5).charged == {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    with pytest.raises(fp.BudgetExceeded, match="'a'"):
        both.noisy_count(1)
    assert both.remaining == {"a": Fraction(1, 2), "b": Fraction(3, 2)}


def test_two_roots_of_the_same_name_are_told_apart(engine: str) -> None:
    a, b = (fp.protect(PEOPLE, budget=n, engine=engine, name="twin") for n in (1, 2))
    assert (a.remaining, b.remaining) == (1, 2)
    assert sorted(a.concat(b).remaining.values()) == [1, 2]


def test_what_would_fit_counts_what_a_sibling_part_has_paid_for(data: fp.Table) -> None:
    parts = data.partition(lambda x: x.age > 30, keys=[True, False])
    parts[True].noisy_count(1)
    assert data.remaining == 0
    with pytest.raises(fp.BudgetExceeded, match="ε ≤ 1 would fit"):
        parts[False].noisy_count("3/2")
    parts[False].noisy_count(1)
    with pytest.raises(fp.BudgetExceeded, match="Nothing is left"):
        parts[False].noisy_count("1/10")
