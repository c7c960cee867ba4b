"""Units: rounded up, by less than one; exact for all usual fractions."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from fpinq.model.units import GRAIN, amount, less, units

AMOUNTS = st.fractions(0, 10**6)


@given(AMOUNTS)
def test_rounding_never_favours_who_spends_and_is_less_than_a_unit(spent: Fraction) -> None:
    assert 0 <= amount(units(spent)) - spent < Fraction(1, GRAIN)


@given(AMOUNTS, AMOUNTS)
def test_what_is_taken_in_two_steps_is_what_is_taken_in_one(first: Fraction, more: Fraction) -> None:
    """A session's units are those of all it was charged: rounding does not add up."""
    assert units(first) + (units(first + more) - units(first)) == units(first + more)
    assert 0 <= units(first) + units(more) - units(first + more) <= 1


@given(st.integers(0, 10**18), st.integers(1, 40))
def test_decimals_of_18_digits_and_usual_fractions_are_whole_numbers_of_units(n: int, d: int) -> None:
    for exact in (Fraction(n, 10**18), Fraction(n, d)):
        assert amount(units(exact)) == exact


@given(AMOUNTS | st.integers(1, 5).map(lambda n: Fraction(1, n * GRAIN)), st.integers(0, 10**50))
def test_less_is_exact(total: Fraction, number: int) -> None:
    assert less(total, number) == total - Fraction(number, GRAIN)
