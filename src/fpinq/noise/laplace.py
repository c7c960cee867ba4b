"""The discrete Laplace: exact noise for counts and sums.

*Claim.* For an integer vector q(D) whose L1 distance between neighbouring D
is at most Δ, releasing q(D) + V with independent V of scale Δ/ε on each
coordinate is ε-differentially private.

*Proof.* P[V = v] = (1 − a)/(1 + a)·a^|v| with a = e^(−1/s). So a release r has

    ln P[q + V = r] − ln P[q′ + V = r] = Σᵢ (|rᵢ − q′ᵢ| − |rᵢ − qᵢ|)/s ≤ ‖q − q′‖₁/s ≤ Δ/s = ε,

by the triangle inequality. The sampler has exactly this distribution (see
`digits`), so the bound is exact too. ∎

*Time.* A draw reads one word per step of its scale, compares it with every
threshold of the step and adds; which words, thresholds and operations these
are depends on the scale alone, which is public. Only a tie does more. A word
ties with probability below 2^−60, so a draw with probability below
2^−60·(number of words): 2^−56 at scale 10⁶. That is the whole dependence of
the work on the value; the time the processor and the interpreter take for the
same operations on other integers is theirs (Python integers of more digits,
drawn above a scale of about 2^54, take longer to add).
"""

import math
from fractions import Fraction
from struct import iter_unpack
from typing import TYPE_CHECKING, Self

from fpinq.model.enclosure import Enclosure, exp_negative, fractions, ln, quotient
from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.model.frozen import dataclass
from fpinq.noise.digits import BASE, DIGIT_BITS, MAGNITUDE_BITS, WORD_BYTES, Step, magnitude, steps
from fpinq.noise.symmetric import Symmetric, is_exact, number_of_draws
from fpinq.noise.uniform import SYSTEM, RandomBytes, Uniform

if TYPE_CHECKING:
    from fpinq.noise.symmetric import Integers

LARGEST_SCALE = 1 << 1024
CHUNK = 1 << 14
MACHINE_DIGITS = 20
"""Digits that machine integers hold with room to spare: 8^20 = 2^60."""


@dataclass(frozen=True)
class DiscreteLaplace(Symmetric):
    """The distribution P[v] = (1 − a)/(1 + a)·a^|v|, a = e^(−1/scale), over all integers v."""

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked(self.scale))

    @classmethod
    def calibrated(cls, sensitivity: Fraction | int, epsilon: Fraction | int) -> Self:
        """The noise that makes a statistic of this L1 sensitivity ε-differentially private."""
        if not is_exact(epsilon) or epsilon <= 0:
            raise BadEpsilon("ε must be an exact positive number: an int or a Fraction")
        if not is_exact(sensitivity) or sensitivity <= 0:
            raise BadQuery("the sensitivity must be an exact positive number: an int or a Fraction")
        return cls(Fraction(sensitivity) / Fraction(epsilon))

    def epsilon(self, sensitivity: Fraction | int) -> Fraction:
        """The ε for which this noise protects a statistic of this L1 sensitivity."""
        return sensitivity / self.scale

    def log_ratio(self, v: int, q: int, q2: int) -> Fraction:
        """ln P[q + noise = v] − ln P[q2 + noise = v], exactly. Constant for v outside q … q2."""
        return (abs(v - q2) - abs(v - q)) / self.scale

    def pmf(self, v: int, bits: int = 64) -> tuple[Fraction, Fraction]:
        """Bounds on P[v], at most 2^−bits·P[0] apart."""
        work = bits + int(self.scale).bit_length() + 8
        one = 1 << work
        low, high = exp_negative(1 / self.scale, work)
        power_low, power_high = exp_negative(abs(v) / self.scale, work)
        head_low, head_high = quotient((one - high, one - low), (one + low, one + high), work)
        return fractions((head_low * power_low, head_high * power_high), 2 * work)

    def draw(self, n: int, source: RandomBytes = SYSTEM) -> "Integers":
        """n independent draws."""
        return sample_many(self.scale, n, source)

    @property
    def standard_deviation(self) -> float:
        """√(2a)/(1 − a), rounded. Infinite where floats end."""
        try:
            h = float(1 / (2 * self.scale))
        except OverflowError:
            return 0.0
        return math.sqrt(2) * math.exp(-h) / -math.expm1(-2 * h) if h else math.inf

    @property
    def variance(self) -> float:
        """2a/(1 − a)², rounded. Infinite where floats end."""
        return self.standard_deviation * self.standard_deviation

    def upper(self, t: int, bits: int) -> Enclosure:
        """P[noise ≥ t] = a^t/(1 + a) for t ≥ 1, to bits."""
        work = bits + 4
        one = 1 << work
        low, high = exp_negative(1 / self.scale, work)
        return quotient(exp_negative(t / self.scale, work), (one + low, one + high), bits)

    def beyond(self, t: int, k: int, bits: int) -> Enclosure:
        """P[noise ≥ t + k given that it is t or more] = a^k for t ≥ 1: it does not remember t."""
        return exp_negative(k / self.scale, bits)

    def first_tail_at_most(self, q: Fraction) -> int:
        """The smallest t ≥ 1 with P[noise ≥ t] ≤ q.

        That is t ≥ −s·ln(q·(1 + a)). The right side is no integer, since a is
        transcendental, so some precision decides its ceiling.
        """
        bits = 64 + int(self.scale).bit_length()
        while True:
            low, high = fractions(exp_negative(1 / self.scale, bits), bits)
            first = math.ceil(-self.scale * ln(q * (1 + high), bits)[1] / (1 << bits))
            last = math.ceil(-self.scale * ln(q * (1 + low), bits)[0] / (1 << bits))
            if first == last or last <= 1:
                return max(last, 1)
            bits *= 2


def sample(scale: Fraction, source: RandomBytes = SYSTEM) -> int:
    """One draw of the discrete Laplace of this scale, exactly."""
    value, words = 0, steps(checked(scale))
    read = iter_unpack("<Q", source(WORD_BYTES * len(words)))
    for step, (word,) in zip(words, read, strict=True):
        u = word >> 1
        size = sum([u < threshold for threshold in step.thresholds])
        if u in step.thresholds:
            size = magnitude(step.part, Uniform(u, MAGNITUDE_BITS), source)
        value = (value << DIGIT_BITS) + size * (1 - 2 * (word & 1))
    return value


def sample_many(scale: Fraction, n: int, source: RandomBytes = SYSTEM) -> "Integers":
    """n independent draws of `sample`.

    64-bit integers up to a scale of about 2^54, Python integers beyond. A
    draw with a tail (probability below 2^−63) makes the array one of Python
    integers at any scale: no value is ever wrapped or clipped.
    """
    import numpy as np

    words = steps(checked(scale))
    starts = range(0, number_of_draws(n), CHUNK)
    chunks = [draw_chunk(words, min(CHUNK, n - start), source) for start in starts]
    return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)


def draw_chunk(words: tuple[Step, ...], n: int, source: RandomBytes) -> "Integers":
    """n draws at once. The words come step by step: all tails first, all lowest digits last."""
    import numpy as np

    tail, *digits = words
    beyond = draw_step(tail, n, source)
    value: Integers = np.zeros(n, dtype=np.int64 if len(digits) <= MACHINE_DIGITS else object)
    for step in digits:
        value <<= DIGIT_BITS
        value += draw_step(step, n, source)
    if beyond.any():
        value = value.astype(object) + beyond.astype(object) * BASE ** len(digits)
    return value


def draw_step(step: Step, n: int, source: RandomBytes) -> "Integers":
    """n independent draws of a part: signed bytes, or Python integers after a tie in the tail."""
    import numpy as np

    words = np.frombuffer(source(WORD_BYTES * n), dtype="<u8")
    u = words >> np.uint64(1)
    thresholds = np.array(step.thresholds, dtype=np.uint64)[:, None]
    size: Integers = np.add.reduce((u < thresholds).view(np.int8), axis=0, dtype=np.int8)
    tied = u == thresholds
    ties = np.flatnonzero(tied.any(axis=0)).tolist() if tied.any() else ()
    for i in ties:
        refined = magnitude(step.part, Uniform(int(u[i]), MAGNITUDE_BITS), source)
        if refined >= BASE:
            size = size.astype(object)
        size[i] = refined
    sign = (words & np.uint64(1)).astype(np.int8)
    return size * (1 - 2 * sign)


def checked(scale: Fraction | int) -> Fraction:
    """scale as a Fraction, if it is one that noise can have."""
    if not is_exact(scale):
        raise BadQuery("the scale of noise must be exact: a Fraction or an int")
    exact = scale if isinstance(scale, Fraction) else Fraction(scale)
    if not 0 < exact.numerator <= LARGEST_SCALE * exact.denominator:
        raise BadQuery("the scale of noise must be positive and at most 2^1024: use a larger ε")
    return exact
