"""Sums of e^(−x²/(2σ²)): the two ways to bound them agree, and hold what is known of them."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpinq.noise import theta

variances = st.fractions(min_value=600, max_value=20_000, max_denominator=1000)


def by_terms(variance: Fraction, t: int, bits: int) -> tuple[int, int]:
    listed = theta.suffix_sums(1 / (2 * variance), bits)
    return listed[t] if t < len(listed) else (0, listed[-1][1])


@settings(deadline=None, max_examples=60)  # a busy machine is no failure
@given(variances, st.integers(0, 1200), st.integers(20, 250))
def test_added_up_and_by_euler_and_maclaurin_it_is_the_same(variance, t, bits):
    low, high = by_terms(variance, t, bits)
    other_low, other_high = theta.summed(variance, t, bits)
    assert max(low, other_low) <= min(high, other_high)
    assert high - low <= 2
    assert other_high - other_low <= 2


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(1), Fraction(50), Fraction(700)])
def test_terms_add_up_to_what_the_decimal_module_says(variance):
    with localcontext() as context:
        context.prec = 90
        rate = Decimal(variance.denominator) / Decimal(2 * variance.numerator)
        terms = [(-rate * x * x).exp() for x in range(800)]
        for t in (0, 1, 2, 7, 60):
            low, high = theta.sums(variance, t, 200)
            assert low <= sum(terms[t:]) * (1 << 200) + Decimal("1e-20")
            assert sum(terms[t:]) * (1 << 200) <= high + Decimal("1e-20")
            assert high - low <= 2


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(9), Fraction(4000), Fraction(10**40)])
@pytest.mark.parametrize("bits", [8, 64, 1000])
def test_a_tail_is_narrow_at_any_precision(variance, bits):
    deviation = math.isqrt(int(variance)) + 1
    for t in (1, deviation, 3 * deviation, 100 * deviation):
        low, high = theta.tail(variance, t, bits)
        assert 0 <= low <= high <= low + 2


def test_a_large_sum_is_that_of_the_normal_distribution():
    """Σ over all integers is σ·√(2π) but for e^(−2π²σ²) of it."""
    deviation = 10**20
    low, high = theta.sums(Fraction(deviation**2), 0, 200)
    with localcontext() as context:
        context.prec = 80
        pi = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164")
        half = deviation * (pi / 2).sqrt() + Decimal("0.5")
        assert low - 2**80 <= half * (1 << 200) <= high + 2**80
    for deviations in (1, 4, 9):
        tail = theta.tail(Fraction(deviation**2), deviations * deviation, 100)[0] / 2**100
        assert tail == pytest.approx(math.erfc(deviations / math.sqrt(2)) / 2, rel=1e-9)


def test_many_bits_of_a_small_sigma_are_added_up(monkeypatch):
    """By Euler and Maclaurin there is an end to the precision."""
    monkeypatch.setattr(theta, "FEW", 4)
    assert theta.sums(Fraction(9), 50, 700) == by_terms(Fraction(9), 50, 700)
    assert theta.sums(Fraction(9), 5, 60) == theta.summed(Fraction(9), 5, 60)


@given(st.integers(1, 30))
def test_bernoulli_numbers(j):
    """By von Staudt and Clausen, B₂ⱼ + Σ 1/p over the primes p for which p − 1 divides 2j is an integer."""
    primes = [p for p in range(2, 2 * j + 2) if all(p % d for d in range(2, p)) and 2 * j % (p - 1) == 0]
    assert (theta.bernoulli(2 * j) + sum(Fraction(1, p) for p in primes)).denominator == 1
