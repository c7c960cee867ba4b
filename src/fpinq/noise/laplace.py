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
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
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
CHUNK = 1 << 12
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
        u, size = word >> 1, 0
        for threshold in step.thresholds:
            size += u < threshold
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

    words, starts = steps(checked(scale)), range(0, number_of_draws(n), CHUNK)
    table = _thresholds(*scale.as_integer_ratio(), 0)[:, :, None]
    chunks = [draw_chunk(table, [words], min(CHUNK, n - start), source) for start in starts]
    return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)


def sample_each(
    scales: Sequence[Fraction], numbers: Sequence[int], source: RandomBytes = SYSTEM
) -> "Integers":
    """Independent draws of `sample`, one for each number: at the scale that has it.

    All have as many words as the largest scale needs: digits that are 0, but for a tie, come first.
    """
    import numpy as np

    words, table = _words(tuple([checked(scale).as_integer_ratio() for scale in scales]))
    chunks = [numbers[start : start + CHUNK] for start in range(0, len(numbers), CHUNK)]
    return np.concatenate(
        [draw_chunk(table[:, :, chunk], [words[i] for i in chunk], len(chunk), source) for chunk in chunks]
    )


def draw_chunk(
    table: "Integers", words: Sequence[tuple[Step, ...]], n: int, source: RandomBytes
) -> "Integers":
    """n draws at once, all of the same words or each of its own: all tails come first, lowest digits last."""
    import numpy as np

    length = table.shape[1]
    read = np.frombuffer(source(WORD_BYTES * length * n), dtype="<u8").reshape(length, n)
    u = read >> np.uint64(1)
    size: Integers = np.add.reduce((u < table).view(np.int8), axis=0, dtype=np.int8)
    tied, beyond = u == table, dict[int, int]()
    for word, i in np.argwhere(tied.any(axis=0)).tolist() if tied.any() else ():
        part = words[i % len(words)][word].part
        refined = magnitude(part, Uniform(int(u[word, i]), MAGNITUDE_BITS), source)
        if word:
            size[word, i] = refined
        else:
            beyond[i] = refined  # a tail is 0 unless it tied
    size *= 1 - 2 * (read & np.uint64(1)).astype(np.int8)
    value: Integers = np.zeros(n, dtype=np.int64 if length <= MACHINE_DIGITS + 1 else object)
    for digit in size[1:]:
        value <<= DIGIT_BITS
        value += digit
    if any(beyond.values()):
        value = value.astype(object)
        for i, tail in beyond.items():
            value[i] += tail * (1 - 2 * int(read[0, i] & 1)) * BASE ** (length - 1)
    return value


@lru_cache(maxsize=64)
def _words(scales: tuple[tuple[int, int], ...]) -> tuple[list[tuple[Step, ...]], "Integers"]:
    """The words of a draw at each scale, as many of each, and their thresholds."""
    import numpy as np

    digits = max(len(steps(Fraction(*scale))) for scale in scales) - 1
    words = [steps(Fraction(*scale), digits) for scale in scales]
    return words, np.stack([_thresholds(*scale, digits) for scale in scales], axis=2)


@lru_cache(maxsize=512)
def _thresholds(above: int, below: int, digits: int) -> "Integers":
    """Those of every word of a draw at a scale, by number; 0, which nothing is below, after the last."""
    import numpy as np

    words = steps(Fraction(above, below), digits)
    found = np.zeros((BASE - 1, len(words)), dtype=np.uint64)
    for word, step in enumerate(words):
        found[: len(step.thresholds), word] = step.thresholds
    return found


def checked(scale: Fraction | int) -> Fraction:
    """scale as a Fraction, if it is one that noise can have."""
    if not is_exact(scale):
        raise BadQuery("the scale of noise must be exact: a Fraction or an int")
    exact = scale if isinstance(scale, Fraction) else Fraction(scale)
    if not 0 < exact.numerator <= LARGEST_SCALE * exact.denominator:
        raise BadQuery("the scale of noise must be positive and at most 2^1024: use a larger ε")
    return exact
