"""The discrete Laplace as a sum of independent digits.

Let a = e^(−1/s), and let G count the heads before the first tail of a coin
with head probability a: P[G = g] = (1 − a)·a^g. Written in base b = 8 as
G = Σ gᵢ·bⁱ, that probability factors into one factor per digit, since
a^g = Π (a^(bⁱ))^gᵢ. So the digits are independent, each a geometric cut to
0 … b − 1 with ratio xᵢ = e^(−bⁱ/s), and ⌊G/b^m⌋ is again a geometric, with
ratio e^(−b^m/s), independent of the digits below.

The discrete Laplace is V = G − G′ for two such G. Subtract digit by digit:

    V = D₀ + D₁·b + … + D₍m−1₎·b^(m−1) + H·b^m

where Dᵢ is the difference of two cut geometrics of ratio xᵢ, and H (the tail)
a discrete Laplace of scale s/b^m. All are independent and symmetric, so each
is a uniform sign times an independent magnitude, and a zero of either sign is
the same zero: it is counted once and nothing is ever redrawn.

A magnitude is #{k ≥ 1 : U < P[|D| ≥ k]} for one uniform U. One 64-bit word
gives the sign (1 bit) and the start of U (63 bits), which is compared with
⌊2^63·P[|D| ≥ k]⌋ for all k. Only where it *equals* one of those (a tie) are
more bits of both sides needed. The probabilities are irrational (non-constant
rational functions of e^(−r), r ≠ 0 rational, which is transcendental), so
some number of bits decides. The result is exact: no truncation and no float.

m is such that P[H ≠ 0] < 2^−63. Hence H ≠ 0 is possible only after a tie, and
all draws without a tie do the same work.
"""

from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol

from fpinq.model.enclosure import Enclosure, ceil_shift, exp_negative, quotient
from fpinq.model.frozen import dataclass
from fpinq.noise.uniform import RandomBytes, Uniform, less

DIGIT_BITS = 3
BASE = 1 << DIGIT_BITS
WORD_BYTES = 8
MAGNITUDE_BITS = 63

TAIL_EXPONENT = 45
"""2·e^−45 < 2^−63."""

# The number of pairs of digits (g, h) with g + h = total and |g − h| ≥ k.
PAIRS = tuple(
    tuple(
        sum(1 for g in range(BASE) if 0 <= total - g < BASE and abs(2 * g - total) >= k)
        for total in range(2 * BASE - 1)
    )
    for k in range(BASE)
)


@dataclass(frozen=True)
class Digit:
    """The difference of two independent digits with P[g] proportional to x^g, x = e^−exponent."""

    exponent: Fraction

    def survivals(self, bits: int) -> tuple[Enclosure, ...]:
        """P[|D| ≥ k] for k = 1 … b − 1, to bits.

            P[|D| ≥ k] = Σ_{|g − h| ≥ k} x^(g + h)  /  Σ_{g, h} x^(g + h)

        All terms are positive, so no precision is lost by cancellation.
        """
        work = bits + 16
        low, high = exp_negative(self.exponent, work)
        lows, highs = [1 << work], [1 << work]
        for _ in range(2 * BASE - 2):
            lows.append(lows[-1] * low >> work)
            highs.append(ceil_shift(highs[-1] * high, work))
        sums = [(sum(map(int.__mul__, pairs, lows)), sum(map(int.__mul__, pairs, highs))) for pairs in PAIRS]
        return tuple(quotient(sums[k], sums[0], bits) for k in range(1, BASE))

    def survival(self, k: int, bits: int) -> Enclosure:
        """P[|D| ≥ k] for k ≥ 1, to bits."""
        return self.survivals(bits)[k - 1] if k < BASE else (0, 0)


@dataclass(frozen=True)
class Tail:
    """The discrete Laplace H with P[H = h] proportional to y^|h|, y = e^−exponent."""

    exponent: Fraction

    def survival(self, k: int, bits: int) -> Enclosure:
        """P[|H| ≥ k] = 2·y^k / (1 + y) for k ≥ 1, to bits."""
        work = bits + 8
        one = 1 << work
        low, high = exp_negative(self.exponent, work)
        power_low, power_high = exp_negative(k * self.exponent, work)
        return quotient((2 * power_low, 2 * power_high), (one + low, one + high), bits)


class Part(Protocol):
    """A non-negative integer that is known by its survival: a digit, a tail, the head of a Gaussian."""

    def survival(self, k: int, bits: int) -> Enclosure:
        """P[|part| ≥ k] for k ≥ 1, to bits."""


@dataclass(frozen=True)
class Step:
    """One word of a draw: the part it decides and ⌊2^63·P[|part| ≥ k]⌋ for k = 1, 2, …, non-increasing."""

    part: Part
    thresholds: tuple[int, ...]


def steps(scale: Fraction, digits: int = 0) -> tuple[Step, ...]:
    """The words of a draw at scale, from the tail to the lowest digit: of so many digits, or as it needs."""
    return _steps(*scale.as_integer_ratio(), digits)


@lru_cache(maxsize=512)
def _steps(above: int, below: int, least: int) -> tuple[Step, ...]:
    """The same; two integers are found sooner than a fraction."""
    digits: list[Step] = []
    exponent = Fraction(below, above)
    while exponent < TAIL_EXPONENT or len(digits) < least:
        digits.append(digit_step(Digit(exponent)))
        exponent *= BASE
    return (Step(Tail(exponent), (0,)), *reversed(digits))


def digit_step(digit: Digit) -> Step:
    """The thresholds of a digit. One series serves them all, unless one of them needs more bits."""
    spare = 64
    while True:
        enclosures = digit.survivals(MAGNITUDE_BITS + spare)
        if all(low >> spare == high >> spare for low, high in enclosures):
            return Step(digit, tuple(low >> spare for low, _ in enclosures))
        spare *= 2


def magnitude(part: Part, u: Uniform, source: RandomBytes, known: int = 0) -> int:
    """#{k ≥ 1 : U < P[|part| ≥ k]}, which is known or more, reading as much of U as that takes."""
    k = known
    while True:
        is_less, u = less(u, partial(part.survival, k + 1), source)
        if not is_less:
            return k
        k += 1
