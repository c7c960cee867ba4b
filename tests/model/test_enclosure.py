"""The bounds on e^−r and ln x, against the decimal module's own."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpinq.model.enclosure import artanh, exp_multiples, exp_negative, ln, ln_two, power, quotient

rationals = st.fractions(min_value=0, max_value=200, max_denominator=10**12)


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def holds(enclosure: tuple[int, int], x: Decimal, bits: int) -> bool:
    """Whether the enclosure holds x up to the error of decimals, and is at most 3 units wide."""
    low, high = enclosure
    slack = Decimal(10) ** -60 * (1 << bits)
    return low - slack <= x * (1 << bits) <= high + slack and high - low <= 3


@settings(deadline=None)  # a busy machine is no failure
@given(rationals, st.integers(1, 150))
def test_exp_negative_encloses_and_is_narrow(r, bits):
    with localcontext() as context:
        context.prec = 110
        assert holds(exp_negative(r, bits), (-decimal(r)).exp(), bits)


@settings(deadline=None)
@given(rationals.filter(bool), st.integers(1, 150))
def test_ln_encloses_and_is_narrow(x, bits):
    with localcontext() as context:
        context.prec = 110
        assert holds(ln(x, bits), decimal(x).ln(), bits)


@settings(deadline=None)
@given(st.fractions(min_value="1/1000", max_value=3, max_denominator=1000), st.integers(0, 5000))
def test_exp_multiples_agrees_with_exp_negative(rate, k):
    low, high = exp_multiples(rate, 5000, 100)(k)
    other_low, other_high = exp_negative(rate * k, 100)
    assert max(low, other_low) <= min(high, other_high)
    assert high - low <= 3


@pytest.mark.parametrize("r", [Fraction(0), Fraction(1, 10**100), Fraction(10**100), Fraction(10**9 + 1, 7)])
@pytest.mark.parametrize("bits", [1, 63, 500])
def test_extremes_stay_enclosed(r, bits):
    low, high = exp_negative(r, bits)
    assert 0 <= low <= high <= 1 << bits
    assert high - low <= 3
    assert high > 0, "e^−r is never 0"
    assert r == 0 or low < 1 << bits, "nor 1"


def test_more_bits_only_narrow_the_bounds():
    for bits in range(8, 200, 7):
        coarse, fine = exp_negative(Fraction(22, 7), bits), exp_negative(Fraction(22, 7), bits + 40)
        assert coarse[0] << 40 <= fine[0]
        assert fine[1] <= coarse[1] << 40


def test_ln_two_is_that_of_ln():
    low, high = ln(Fraction(2), 80)
    two_low, two_high = ln_two(80)
    assert max(low, two_low) <= min(high, two_high)


def test_the_rest_of_a_series_is_counted():
    """artanh(1/3) = ln(2)/2 = 0.34657…: at 4 bits it lies in [5, 6]/16."""
    assert artanh(1, 3, 4) == (5, 6)


@settings(deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 40))
def test_power_encloses(x, n):
    low, high = power((x, x), n, 32)
    assert Fraction(low, 1 << 32) <= Fraction(x, 1 << 32) ** n <= Fraction(high, 1 << 32)


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(1, 1000))
def test_quotient_encloses(n, d):
    low, high = quotient((n, n), (d, d), 20)
    assert Fraction(low, 1 << 20) <= Fraction(n, d) <= Fraction(high, 1 << 20)
    assert high - low <= 1
