"""From ρ to (ε, δ) and back, each rounded to its safe side.

*Claim.* What is ρ-zCDP is (ε, δ)-differentially private for every integer α ≥ 2 with

    ln δ = (α − 1)·(αρ − ε) + (α − 1)·ln(α − 1) − α·ln α.

*Proof.* Let P and Q be the releases of neighbours, ln Σ P^α·Q^(1−α) ≤ (α − 1)·αρ. By Bernoulli
y^α ≥ 1 + α·(y − 1); with y = (α − 1)/α·P/(e^ε·Q) this says, times e^ε·Q/(α − 1), that

    P − e^ε·Q ≤ c·P^α·Q^(1−α),   c = (α − 1)^(α−1)/α^α·e^(−(α−1)ε),

at every outcome. Summed over the outcomes of any event, P − e^ε·Q ≤ c·e^((α−1)αρ) = δ. ∎
(Canonne, Kamath, Steinke 2020, section 2.3.)

Solved for each of the three, with λ(α) = ln(1/(δα))/(α − 1) − ln(α/(α − 1)):

    ε = αρ + λ(α),   ρ = (ε − λ(α))/α.

Every order gives a valid number, so which one is taken decides nothing but how good it is. For a given ρ
the exponent of δ is convex in α, so all three are best between two integers that bisection finds. (Orders
between integers would give at most 0.6 % more ρ for ε up to 16.)
"""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import TypeAlias

from fpinq.model.enclosure import ceil_div, exp_negative, fractions, ln
from fpinq.model.epsilon import DIGITS, LIMIT, is_fraction
from fpinq.model.errors import BadEpsilon

Bounds: TypeAlias = tuple[Fraction, Fraction]

SIGNIFICANT = 9
"""Digits of what is converted: less than 10^−8 of it is given away."""

DELTA_PLACES = 108
"""Decimal places of a δ: 10^−108 is the smallest that is told."""


def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A ρ that implies (ε, δ): the largest by an integer order, rounded down.

    It has at most 18 decimal places, as budgets do: 0 where it is less than these can tell.
    """
    _check(epsilon, delta=delta)

    def is_rising(order: int) -> bool:
        """Whether a larger order gives a larger ρ: (α − 1)²·(ε − ln((α − 1)/α)) < (2α − 1)·ln(1/(δα))."""
        ratio, rest = _logarithms(order, delta)
        return (order - 1) ** 2 * (epsilon + ratio[0]) < (2 * order - 1) * rest[0]

    def bound(order: int) -> Fraction:
        ratio, rest = _logarithms(order, delta)
        return (epsilon + ratio[0] - rest[1] / (order - 1)) / order

    return rounded(max(map(bound, _orders(is_rising))), up=False)


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """An ε for which ρ implies (ε, δ): the least by an integer order, rounded up."""
    _check(rho, delta=delta)
    if rho == 0:
        return Fraction(0)

    def is_falling(order: int) -> bool:
        """Whether a larger order gives a smaller ε: ρ·(α − 1)² < ln(1/(δα))."""
        return rho * (order - 1) ** 2 < _logarithms(order, delta)[1][0]

    def bound(order: int) -> Fraction:
        ratio, rest = _logarithms(order, delta)
        return order * rho - ratio[0] + rest[1] / (order - 1)

    return max(rounded(min(map(bound, _orders(is_falling))), up=True), Fraction(0))


def delta_of(rho: Fraction, epsilon: Fraction) -> Fraction:
    """A δ for which ρ implies (ε, δ): the least by an integer order, rounded up, and 1 at the most."""
    _check(rho, epsilon)
    if rho == 0:
        return Fraction(0)

    def is_falling(order: int) -> bool:
        """Whether a larger order gives a smaller δ: (2α − 1)·ρ − ε < ln(α/(α − 1))."""
        return (2 * order - 1) * rho - epsilon < _logarithms(order)[0][0]

    def bound(order: int) -> Fraction:
        ratio, rest = _logarithms(order)
        return (order - 1) * (order * rho - epsilon - ratio[0]) + rest[1]

    exponent, bits = min(map(bound, _orders(is_falling))), 4 * DELTA_PLACES
    if exponent >= 0:
        return Fraction(1)
    return rounded(Fraction(exp_negative(-exponent, bits)[1], 1 << bits), up=True, places=DELTA_PLACES)


def epsilon_of_range(rho: Fraction) -> Fraction:
    """The ε at which the exponential mechanism is ρ-zCDP, √(8ρ), rounded down to 18 decimal places.

    Its log-ratio has a range of ε (`noise.exponential`), which implies ε²/8.
    """
    _check(rho)
    return Fraction(isqrt(8 * rho.numerator * LIMIT**2 // rho.denominator), LIMIT)


def rounded(number: Fraction, *, up: bool, places: int = DIGITS) -> Fraction:
    """number ≥ 0 to 9 significant digits, and at most so many decimal places."""
    whole = len(str(int(number)))  # digits before the point
    while whole <= 1 and number * 10 ** (1 - whole) < 1 and SIGNIFICANT - whole < places:
        whole -= 1  # zeros after the point
    unit = Fraction(10) ** (SIGNIFICANT - whole)
    return Fraction(ceil_div(*(number * unit).as_integer_ratio()) if up else number * unit // 1) / unit


def _orders(is_better: Callable[[int], bool]) -> tuple[int, int]:
    """Two integers, 2 or more, between which going further stops to be better."""
    low, high = 2, 3
    while is_better(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_better(middle) else (low, middle)
    return low, high


def _logarithms(order: int, delta: Fraction = Fraction(1)) -> tuple[Bounds, Bounds]:
    """Bounds on ln(α/(α − 1)) and on ln(1/(δα)), for an order of 2 or more."""
    bits = 128 + 4 * order.bit_length()
    return (
        fractions(ln(Fraction(order, order - 1), bits), bits),
        fractions(ln(1 / (delta * order), bits), bits),
    )


def _check(*numbers: Fraction, delta: Fraction = Fraction(1, 2)) -> None:
    if not all(is_fraction(number) and number >= 0 for number in numbers):
        raise BadEpsilon("what is converted must be an exact number, 0 or more: a Fraction")
    if not is_fraction(delta) or not 0 < delta < 1:
        raise BadEpsilon("δ must be an exact number between 0 and 1, and neither: '1e-9', for example")
