"""Amounts of ε: exact in all they do, and decimals where they are printed."""

import copy
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpinq as fp
from client.small_data import PEOPLE
from fpinq.client.amounts import Amount, plain_amount


def test_what_is_left_prints_as_a_decimal_and_is_exact(engine: str) -> None:
    data = fp.protect(PEOPLE, budget=10, engine=engine)
    data.noisy_count("2.3352")
    assert str(data.remaining) == repr(data.remaining) == f"{data.remaining}" == "7.6648"
    assert data.remaining == Fraction(76648, 10_000)
    data.noisy_count(data.remaining / 3)
    assert str(data.remaining) == "5.109866…"
    assert data.remaining == Fraction(76648, 10_000) * 2 / 3
    assert f"{data.remaining:.2f}" == "5.11"


def test_prices_charges_and_plans_print_as_decimals_too(engine: str) -> None:
    data = fp.protect(PEOPLE, budget=10, engine=engine, name="a")
    assert str(data.price("0.25")) == "0.25"
    assert str(data.noisy_count("1/8").charged) == "0.125"
    both = data.concat(fp.protect(PEOPLE, budget=1, engine=engine, name="b"))
    assert str(dict(both.price("1/3"))) == "{'a': 0.333333…, 'b': 0.333333…}"
    assert "…" not in str(data.epsilon_for(fp.count(), error=3))
    assert repr(fp.Budget("0.5")) == "Budget(0.5, 0.5 left)"


def test_what_is_left_can_be_asked_with_split_and_promised(engine: str) -> None:
    data = fp.protect(PEOPLE, budget="2/3", engine=engine)
    share = fp.Budget(data.remaining)
    assert share.split(share.remaining)[0].amount == Fraction(2, 3)
    assert fp.protect(PEOPLE, budget=data.remaining, engine=engine).remaining == Fraction(2, 3)
    assert data.price(data.remaining) == Fraction(2, 3)
    assert data.noisy_count(data.epsilon_for(fp.count(), error=3)).charged > 0
    assert data.noisy_count(data.remaining).value is not None
    assert (data.remaining, str(data.remaining)) == (0, "0")
    with pytest.raises(fp.BadEpsilon):
        data.noisy_count(data.remaining)


@pytest.mark.parametrize(
    ("exact", "shown"),
    [
        ("1e-6", "0.000001"),
        ("1e-7", "1e-07"),
        ("8e-10", "8e-10"),
        ("9.98e-7", "9.98e-07"),
        ("-1e-13", "-1e-13"),
        ("1/30000000000", "3.33333…e-11"),
        ("9999999/10000000000000", "9.999999e-07"),
        ("1e-400", "1e-400"),
    ],
)
def test_a_delta_is_not_shown_as_zeros(exact: str, shown: str) -> None:
    assert str(Amount(exact)) == shown


@given(st.fractions(-1, 1), st.integers(0, 400))
def test_an_amount_of_any_size_shows_its_first_digits(a: Fraction, power: int) -> None:
    small = a / 10**power
    shown = str(Amount(small))
    if "…" in shown:
        told, least = Fraction(shown.replace("…", "")), Fraction(99999, 100_000)
        assert abs(small) * (least if abs(small) < Fraction(1, 10**6) else 0) <= abs(told) <= abs(small)
    else:
        assert Fraction(shown) == small


@given(st.fractions(), st.fractions())
def test_an_amount_is_the_fraction_it_is(a: Fraction, b: Fraction) -> None:
    amount = Amount(a)
    assert amount == a
    assert hash(amount) == hash(a)
    assert (amount + b, amount - b, amount * b, -amount) == (a + b, a - b, a * b, -a)
    assert type(amount + b) is type(plain_amount(amount)) is Fraction
    assert plain_amount(amount) == a
    assert copy.deepcopy(amount) == pickle.loads(pickle.dumps(amount)) == a
    shown = str(amount)
    if "…" in shown:
        shown = shown.replace("…", "")
        assert abs(Fraction(shown)) <= abs(a) < abs(Fraction(shown)) + Fraction(1, 10**6)
    else:
        assert Fraction(shown) == a
