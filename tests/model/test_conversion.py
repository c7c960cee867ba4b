"""From ρ to (ε, δ) and back: never to the unsafe side, and not far from the best."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpinq.model.conversion import delta_of, epsilon_of, epsilon_of_range, rho_of, rounded
from fpinq.model.epsilon import LIMIT, budget
from fpinq.model.errors import BadEpsilon

GIVEN_AWAY = Fraction(1, 10**8)

epsilons = st.fractions(min_value="1/1000", max_value=50, max_denominator=10**6)
rhos = st.fractions(min_value="1/1000000", max_value=20, max_denominator=10**6).filter(bool)
deltas = st.one_of(
    st.integers(2, 18).map(lambda digits: Fraction(1, 10**digits)),
    st.fractions(min_value="1/1000000", max_value="9/10", max_denominator=10**6),
)


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def log_delta(rho: Fraction, epsilon: Fraction, order: int) -> Decimal:
    """ln δ as the claim writes it, by the decimal module."""
    a = Decimal(order)
    return (a - 1) * (a * decimal(rho) - decimal(epsilon)) + (a - 1) * (a - 1).ln() - a * a.ln()


def best_log_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """The least of it over integer orders, in which it is convex."""
    low, high = 1, 2
    with localcontext() as context:
        context.prec = 60
        while log_delta(rho, epsilon, high + 1) < log_delta(rho, epsilon, high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            falls = log_delta(rho, epsilon, middle + 1) < log_delta(rho, epsilon, middle)
            low, high = (middle, high) if falls else (low, middle)
        return log_delta(rho, epsilon, high)


def is_implied(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether ρ implies (ε, δ) by an integer order, by the decimal module."""
    with localcontext() as context:
        context.prec = 60
        return best_log_delta(rho, epsilon) <= decimal(delta).ln()


# ρ by integer orders, and the largest of any order, from the literature.
TABLE = [
    ("1", 9, "0.014972822", "0.014973058"),
    ("1", 6, "0.024355957", "0.024355971"),
    ("1", 12, "0.010740110", "0.010740117"),
    ("1/2", 9, "0.003953094", "0.003953192"),
    ("2", 9, "0.056123927", "0.056130502"),
    ("4", 9, "0.205861821", "0.206312910"),
    ("8", 9, "0.732670047", "0.732833288"),
    ("1/10", 9, "0.000177138", "0.000177139"),
]


@pytest.mark.parametrize(("epsilon", "digits", "at_least", "at_most"), TABLE)
def test_rho_in_numbers(epsilon, digits, at_least, at_most):
    rho = rho_of(Fraction(epsilon), Fraction(1, 10**digits))
    assert Fraction(at_least) <= rho <= Fraction(at_most)
    assert budget(rho) == rho  # as a program may say it


@settings(deadline=None)  # a busy machine is no failure
@given(epsilons, deltas)
def test_rho_implies_its_epsilon_and_delta_and_little_more_does_not(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert rho == 0 or is_implied(rho, epsilon, delta)
    assert not is_implied(rho * (1 + 2 * GIVEN_AWAY) + Fraction(2, LIMIT), epsilon, delta)
    assert epsilon_of(rho, delta) <= epsilon * (1 + GIVEN_AWAY)


@settings(deadline=None)
@given(rhos, deltas)
def test_epsilon_is_implied_and_little_less_is_not(rho, delta):
    epsilon = epsilon_of(rho, delta)
    assert is_implied(rho, epsilon, delta)
    if epsilon > 0:
        assert not is_implied(rho, epsilon * (1 - 2 * GIVEN_AWAY), delta)
        assert rho_of(epsilon, delta) >= rho * (1 - GIVEN_AWAY)


@settings(deadline=None)
@given(rhos, epsilons)
def test_delta_is_implied_and_little_less_is_not(rho, epsilon):
    delta = delta_of(rho, epsilon)
    assert 0 < delta <= 1
    assert delta == 1 or is_implied(rho, epsilon, delta)
    assert delta < Fraction(1, 10**99) or not is_implied(rho, epsilon, delta * (1 - 2 * GIVEN_AWAY))


@settings(deadline=None, max_examples=40)
@given(epsilons, deltas, st.fractions(1, 3, max_denominator=1000))
def test_more_of_one_is_never_less_of_another(epsilon, delta, more):
    rho = rho_of(epsilon, delta)
    assert rho <= rho_of(epsilon * more, delta)
    assert rho <= rho_of(epsilon, min(delta * more, Fraction(19, 20)))
    assert epsilon_of(rho, delta) <= epsilon_of(rho * more, delta)
    assert epsilon_of(rho, delta) >= epsilon_of(rho, min(delta * more, Fraction(19, 20)))
    assert delta_of(rho, epsilon) <= delta_of(rho * more, epsilon)
    assert delta_of(rho, epsilon) >= delta_of(rho, epsilon * more)


@pytest.mark.parametrize("rho", [Fraction(1, 100), Fraction(1, 8), Fraction(1, 2), Fraction(2), Fraction(8)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_the_discrete_gaussian_has_less_than_the_delta_that_is_told(rho, epsilon):
    """Σ max(P − e^ε·Q, 0) of neighbours, the least δ there is; what is told is not far above it."""
    reach = int(40 / math.sqrt(2 * rho)) + 3
    masses = {x: math.exp(-float(rho) * x * x) for x in range(-reach, reach + 1)}
    total = sum(masses.values())
    least = sum(max(p - math.exp(epsilon) * masses.get(x - 1, 0.0), 0) for x, p in masses.items()) / total
    assert least <= delta_of(rho, epsilon)
    if least > 1e-12:
        assert delta_of(rho, epsilon) < 30 * least


def test_the_ends_of_what_can_be_said():
    tiny, huge, delta = Fraction(1, LIMIT), Fraction(LIMIT - 1), Fraction(1, LIMIT)
    assert rho_of(tiny, delta) == 0
    assert huge * Fraction(99, 100) < rho_of(2 * huge, delta) <= huge
    assert 0 < epsilon_of(tiny, delta) < Fraction(1, 10**8)
    assert 2 * huge <= epsilon_of(huge, delta) < 2 * huge * (1 + GIVEN_AWAY)
    assert delta_of(tiny, Fraction(1)) == Fraction(1, 10**108)
    assert delta_of(huge, Fraction(1)) == 1
    assert epsilon_of(Fraction(0), delta) == 0 == delta_of(Fraction(0), Fraction(0))
    assert epsilon_of(Fraction(1, 100), Fraction(99, 100)) == 0


@given(st.fractions(min_value="1/1000000000000", max_value=10**12, max_denominator=10**12))
def test_what_is_rounded_keeps_nine_digits_on_its_side(number):
    down, up = rounded(number, up=False), rounded(number, up=True)
    assert number * (1 - GIVEN_AWAY) - Fraction(1, LIMIT) < down <= number <= up
    assert up < number * (1 + GIVEN_AWAY) + Fraction(1, LIMIT)
    assert all(
        len(str(n.limit_denominator(1) if n >= 10**9 else n * LIMIT).strip("0")) <= 9 for n in (down, up)
    )


@given(rhos)
def test_the_epsilon_of_a_range_is_the_root_rounded_down(rho):
    epsilon = epsilon_of_range(rho)
    assert epsilon**2 / 8 <= rho < (epsilon + Fraction(1, LIMIT)) ** 2 / 8


def test_the_epsilon_of_a_range_in_numbers():
    assert epsilon_of_range(Fraction(1, 50)) == Fraction(2, 5)
    assert epsilon_of_range(Fraction(0)) == 0


@pytest.mark.parametrize(
    "delta", [0, 1, Fraction(0), Fraction(1), Fraction(-1, 9), Fraction(9, 8), 1e-9, None]
)
def test_a_delta_outside_0_to_1_is_refused(delta):
    with pytest.raises(BadEpsilon, match="δ"):
        rho_of(Fraction(1), delta)
    with pytest.raises(BadEpsilon, match="δ"):
        epsilon_of(Fraction(1), delta)


@pytest.mark.parametrize("number", [-1, Fraction(-1, 2), 0.5, "1", None])
def test_what_is_not_exact_is_refused(number):
    for convert in (rho_of, epsilon_of, delta_of):
        with pytest.raises(BadEpsilon):
            convert(number, Fraction(1, 10**9))
    with pytest.raises(BadEpsilon):
        epsilon_of_range(number)
