"""The discrete Gaussian: exact noise for counts and sums under ρ.

*Claim.* For an integer vector q(D) whose squared L2 distance between neighbouring D is at most Δ₂², releasing
q(D) + V with independent V of σ² = Δ₂²/(2ρ) on each coordinate is ρ-zCDP.

*Proof.* P[V = v] = e^(−v²/(2σ²))/Z. For P around q and Q around q′, in one coordinate and for any order α,

    α·(x − q)² + (1 − α)·(x − q′)² = (x − c)² − α·(α − 1)·(q − q′)²,   c = αq + (1 − α)q′,

so Σ P^α·Q^(1−α) = e^(α(α−1)(q−q′)²/(2σ²)) · Σ_x e^(−(x−c)²/(2σ²))/Z. Where α is an integer, so is c, and the
last sum is 1; else it is less, as its Fourier series has positive coefficients (Canonne, Kamath, Steinke
2020). Coordinates are independent, so exponents add:

    D_α = ln(Σ P^α·Q^(1−α))/(α − 1) ≤ α·‖q − q′‖²/(2σ²) ≤ αρ. ∎

*The sampler.* Let b = 2^m be the block: 1 if σ < 32, else such that 16b ≤ σ < 32b. If b = 1, |V| is
#{k ≥ 1 : U < P[|V| ≥ k]} for one uniform U, as for the digits of a Laplace (`digits`), and the sign is a fair
bit: a zero of either sign is the same zero. Else |V| = bH + L is proposed, and accepted or drawn anew:

    H ≥ 0 with P[h] proportional to e^(−b²h²/(2σ²)), by its survival;   L uniform in 0 … b − 1;   a fair sign;
    accepted with probability e^(−r), r = (2bhL + L²)/(2σ²), and −0 never.

Times what they were proposed with, that is e^(−(bh + L)²/(2σ²)) for each value, so accepted ones have exactly
the law. As r is at most about |V|/σ·L/b/16, more than 97 % are accepted. The coin has 32 bits, and
1 − r ≤ e^(−r) ≤ 1 − r + r²/2 in 64-bit integers decides all but one in 10³; those, and words that equal a
threshold, are decided by enclosures as narrow as needed. A comparison that stays open is refined, whether the
probability is irrational or not, and the last threshold is 0: no truncation and no float.

*Time.* What is drawn anew, and how often, depends on σ² and on the noise alone, never on the data; whether a
draw was proposed twice is independent of its value. Below σ = 32 every draw reads one word.
"""

import math
from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from fpinq.model.enclosure import Enclosure, ceil_div, exp_negative, fractions, quotient
from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.model.frozen import dataclass
from fpinq.noise import theta
from fpinq.noise.digits import MAGNITUDE_BITS, WORD_BYTES, magnitude
from fpinq.noise.symmetric import Symmetric, first, is_exact, number_of_draws
from fpinq.noise.uniform import SYSTEM, RandomBytes, Uniform, less

if TYPE_CHECKING:
    from fpinq.noise.symmetric import Integers

LARGEST_VARIANCE = 1 << 2048
CHUNK = 1 << 14
COIN_BITS = 32
MACHINE_SHIFT = 50
"""Blocks for which bH + L has room to spare in 64 bits."""


@dataclass(frozen=True)
class DiscreteGaussian(Symmetric):
    """The distribution P[v] proportional to e^(−v²/(2σ²)) over all integers v."""

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma_squared", checked(self.sigma_squared))

    @classmethod
    def calibrated(cls, squared_sensitivity: Fraction | int, rho: Fraction | int) -> Self:
        """The noise that makes a statistic of this squared L2 sensitivity ρ-zCDP."""
        if not is_exact(rho) or rho <= 0:
            raise BadEpsilon("ρ must be an exact positive number: an int or a Fraction")
        if not is_exact(squared_sensitivity) or squared_sensitivity <= 0:
            raise BadQuery("the squared sensitivity must be an exact positive number: an int or a Fraction")
        return cls(Fraction(squared_sensitivity) / (2 * Fraction(rho)))

    def rho(self, squared_sensitivity: Fraction | int) -> Fraction:
        """The ρ for which this noise protects a statistic of this squared L2 sensitivity."""
        return squared_sensitivity / (2 * self.sigma_squared)

    def log_ratio(self, v: int, q: int, q2: int) -> Fraction:
        """ln P[q + noise = v] − ln P[q2 + noise = v], exactly. It has no bound in v."""
        return ((v - q2) ** 2 - (v - q) ** 2) / (2 * self.sigma_squared)

    def pmf(self, v: int, bits: int = 64) -> tuple[Fraction, Fraction]:
        """Bounds on P[v], at most 2^−bits apart."""
        work = bits + 8
        low, high = theta.sums(self.sigma_squared, 0, work)
        one = 1 << work
        mass = exp_negative(v * v / (2 * self.sigma_squared), work)
        return fractions(quotient(mass, (2 * low - one, 2 * high - one), work), work)

    def upper(self, t: int, bits: int) -> Enclosure:
        """P[noise ≥ t] for t ≥ 1, to bits."""
        return theta.tail(self.sigma_squared, t, bits)

    def first_tail_at_most(self, q: Fraction) -> int:
        """The smallest t ≥ 1 with P[noise ≥ t] ≤ q; one more if q is closer to it than 2^−128 of itself."""
        return first_tail_at_most(self.sigma_squared, q)

    def draw(self, n: int, source: RandomBytes = SYSTEM) -> "Integers":
        """n independent draws."""
        return sample_many(self.sigma_squared, n, source)

    @property
    def variance(self) -> float:
        """Σ v²·P[v], rounded: σ² but for a small σ. Infinite where floats end."""
        if self.sigma_squared >= 8:  # off by less than e^(−2π²·8) of it
            return as_float(self.sigma_squared)
        masses = [math.exp(-v * v * as_float(1 / (2 * self.sigma_squared))) for v in range(1, 120)]
        return 2 * sum(v * v * mass for v, mass in enumerate(masses, 1)) / (1 + 2 * sum(masses))

    @property
    def standard_deviation(self) -> float:
        """√variance, rounded. Infinite where floats end."""
        if self.variance < math.inf:
            return math.sqrt(self.variance)
        return as_float(Fraction(math.isqrt(int(self.sigma_squared))))


@lru_cache(maxsize=4096)
def first_tail_at_most(sigma_squared: Fraction, q: Fraction) -> int:
    """The smallest t ≥ 1 with P[noise ≥ t] ≤ q. Floats say where to look, enclosures what is found."""
    bits = 128 + int(1 / q).bit_length()
    near, target = math.isqrt(int(sigma_squared * Fraction(deviations(q)) ** 2)), int(q * (1 << bits))
    noise = DiscreteGaussian(sigma_squared)
    for _ in range(4 if near > 1 << 20 else 0):  # Newton, for more digits than floats have
        mass = max(int(noise.pmf(near, bits)[0] * (1 << bits)), 1)
        near += (noise.upper(near, bits)[0] - target) // mass
    return first(lambda t: noise.upper(t, bits)[1] <= q * (1 << bits), near)


def deviations(q: Fraction) -> float:
    """About the x beyond which a normal distribution has q of its mass, by bisection; 0 for half or more."""
    likely = math.log(q.numerator) - math.log(q.denominator)
    low, high = 0.0, math.sqrt(max(-2 * likely, 1))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_normal_tail(middle) > likely else (low, middle)
    return high if low else 0.0


def log_normal_tail(x: float) -> float:
    """About ln P[N ≥ x] of a normal distribution."""
    if x < 30:
        return math.log(math.erfc(x / math.sqrt(2)) / 2)
    square = x * x
    series = 1 - 1 / square * (1 - 3 / square * (1 - 5 / square * (1 - 7 / square)))
    return -square / 2 - math.log(x * math.sqrt(2 * math.pi)) + math.log(series)


def as_float(number: Fraction) -> float:
    """number, rounded; infinite where floats end."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Head:
    """H ≥ 0 with P[h] proportional to e^(−rate·h²); of both signs, |V| for a V over all integers."""

    rate: Fraction
    both_signs: bool

    def survival(self, k: int, bits: int) -> Enclosure:
        """P[H ≥ k] for k ≥ 1, to bits."""
        work = bits + 8
        sums = theta.suffix_sums(self.rate, work)
        low, high = sums[0]
        above_low, above_high = sums[k] if k < len(sums) else (0, sums[-1][1])
        if self.both_signs:
            one = 1 << work
            low, high, above_low, above_high = 2 * low - one, 2 * high - one, 2 * above_low, 2 * above_high
        return quotient((above_low, above_high), (low, high), bits)


class Plan(NamedTuple):
    """How to draw for a σ².

    `edges` are the 63-bit words that leave a head open, from 0 on; a word that is at least i of them, and
    none of them, has the head `heads[i]`. `rates` bound 2^36·b²/(2σ²).
    """

    sigma_squared: Fraction
    shift: int
    head: Head
    edges: tuple[int, ...]
    heads: tuple[int, ...]
    rates: tuple[int, int]

    def exponent(self, head: int, offset: int) -> Fraction:
        """r of a proposal."""
        return offset * ((head << self.shift + 1) + offset) / (2 * self.sigma_squared)

    @property
    def rest(self) -> int:
        """The bits of L that the word with the coin has no room for."""
        return max(self.shift - COIN_BITS, 0)

    @property
    def rest_bytes(self) -> int:
        """Of the words that they are the first bits of."""
        return ceil_div(self.rest, 8 * WORD_BYTES) * WORD_BYTES


@lru_cache(maxsize=256)
def planned(sigma_squared: Fraction) -> Plan:
    """The block, and the thresholds of its head."""
    shift = max((math.isqrt(int(sigma_squared)) >> 4).bit_length() - 1, 0)
    rate = Fraction(1 << 2 * shift) / (2 * sigma_squared)
    head = Head(rate, both_signs=not shift)
    spare, thresholds = 64, list[Enclosure]()
    while not thresholds or thresholds[-1][0]:
        low, high = head.survival(len(thresholds) + 1, MAGNITUDE_BITS + spare)
        thresholds.append((low >> spare, high >> spare))
    edges = sorted({word for low, high in thresholds for word in range(low, high + 1)})
    lows = sorted(low for low, _ in thresholds)
    heads = [len(lows), *(len(lows) - bisect_right(lows, edge) for edge in edges)]
    rates = (rate.numerator << 36) // rate.denominator, ceil_div(rate.numerator << 36, rate.denominator)
    return Plan(sigma_squared, shift, head, tuple(edges), tuple(heads), rates)


def sample(sigma_squared: Fraction, source: RandomBytes = SYSTEM) -> int:
    """One draw of the discrete Gaussian of this σ², exactly."""
    plan = planned(checked(sigma_squared))
    while True:
        word = int.from_bytes(source(WORD_BYTES), "little")
        head = find_head(plan, word >> 1, source)
        sign = 1 - 2 * (word & 1)
        if not plan.shift:
            return sign * head
        word = int.from_bytes(source(WORD_BYTES), "little")
        offset = word >> (8 * WORD_BYTES - plan.shift + plan.rest) << plan.rest
        if plan.rest:
            more = int.from_bytes(source(plan.rest_bytes), "little")
            offset += more >> (8 * plan.rest_bytes - plan.rest)
        accepted = accept(plan, head, offset, word & ((1 << COIN_BITS) - 1), source)
        value = (head << plan.shift) + offset
        if accepted and (value or sign > 0):
            return sign * value


def find_head(plan: Plan, word: int, source: RandomBytes) -> int:
    """The head that U has, of which word is the first 63 bits."""
    at = bisect_right(plan.edges, word)
    head = plan.heads[at]
    tied = plan.edges[at - 1] == word
    return magnitude(plan.head, Uniform(word, MAGNITUDE_BITS), source, head) if tied else head


def accept(plan: Plan, head: int, offset: int, coin: int, source: RandomBytes) -> bool:
    """Whether a coin of which these are the first bits shows heads, with probability e^−r."""
    exponent = partial(exp_negative, plan.exponent(head, offset))
    return less(Uniform(coin, COIN_BITS), exponent, source)[0]


def sample_many(sigma_squared: Fraction, n: int, source: RandomBytes = SYSTEM) -> "Integers":
    """n independent draws of `sample`.

    64-bit integers up to a σ of about 2^57, Python integers beyond, and wherever a draw needs them: no value
    is ever wrapped or clipped.
    """
    import numpy as np

    plan = planned(checked(sigma_squared))
    starts = range(0, number_of_draws(n), CHUNK)
    chunks = [draw_chunk(plan, min(CHUNK, n - start), source) for start in starts]
    return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)


def draw_chunk(plan: Plan, n: int, source: RandomBytes) -> "Integers":
    """n draws at once; what is not accepted is drawn anew in its place."""
    import numpy as np

    values, accepted = propose(plan, n, source)
    pending = np.flatnonzero(~accepted)
    while pending.size:
        again, accepted = propose(plan, pending.size, source)
        if again.dtype == object:
            values = values.astype(object)
        values[pending] = again
        pending = pending[~accepted]
    return values


def propose(plan: Plan, n: int, source: RandomBytes) -> "tuple[Integers, Integers]":
    """n proposals, and which of them are accepted."""
    import numpy as np

    words = np.frombuffer(source(WORD_BYTES * n), dtype="<u8")
    heads = draw_heads(plan, words >> np.uint64(1), source)
    negative = (words & np.uint64(1)).astype(bool)
    if not plan.shift:
        return np.where(negative, -heads, heads), np.ones(n, dtype=bool)
    words = np.frombuffer(source(WORD_BYTES * n), dtype="<u8")
    top = (words >> np.uint64(8 * WORD_BYTES - plan.shift + plan.rest)).astype(np.int64)
    coins = (words & np.uint64((1 << COIN_BITS) - 1)).astype(np.int64)
    offsets = extended(plan, top, source) if plan.rest else top
    accepted, undecided = squeeze(plan, heads, top, coins)
    for i in np.flatnonzero(undecided).tolist():
        accepted[i] = accept(plan, int(heads[i]), int(offsets[i]), int(coins[i]), source)
    if heads.dtype == object or plan.shift > MACHINE_SHIFT:
        heads, offsets = heads.astype(object), offsets.astype(object)
    values = (heads << plan.shift) + offsets
    accepted &= (values != 0) | ~negative
    return np.where(negative, -values, values), accepted


def draw_heads(plan: Plan, words: "Integers", source: RandomBytes) -> "Integers":
    """The heads of 63-bit words: machine integers, unless one is found to be large."""
    edges, heads = tables(plan)
    at = edges.searchsorted(words, side="right")
    found: Integers = heads[at]
    tied = edges[at - 1] == words
    for i in tied.nonzero()[0].tolist() if tied.any() else ():
        head = find_head(plan, int(words[i]), source)
        if head > plan.heads[0]:
            found = found.astype(object)
        found[i] = head
    return found


@lru_cache(maxsize=256)
def tables(plan: Plan) -> "tuple[Integers, Integers]":
    """The edges and the heads of a plan as arrays."""
    import numpy as np

    return np.array(plan.edges, dtype=np.uint64), np.array(plan.heads, dtype=np.int64)


def extended(plan: Plan, top: "Integers", source: RandomBytes) -> "Integers":
    """L from its first 32 bits and from words of their own."""
    import numpy as np

    size = plan.rest_bytes
    read = source(size * len(top))
    if plan.shift <= MACHINE_SHIFT:
        more = np.frombuffer(read, dtype="<u8") >> np.uint64(8 * WORD_BYTES - plan.rest)
        return (top << plan.rest) + more.astype(np.int64)
    rows = [int.from_bytes(read[i : i + size], "little") for i in range(0, len(read), size)]
    return (top.astype(object) << plan.rest) + (np.array(rows, dtype=object) >> (8 * size - plan.rest))


def squeeze(plan: Plan, heads: "Integers", top: "Integers", coins: "Integers") -> "tuple[Integers, Integers]":
    """Which coins show heads, and which are undecided: 1 − r ≤ e^(−r) ≤ 1 − r + r²/2, in units of 2^−32.

    l = L/b is known to 24 bits. The rate is at most 2^−9, so r < 0.6 for every head of the table, whose
    rate·h² is less than 45, and all products are less than 2^63. Larger heads are undecided.
    """
    import numpy as np

    large: Any = False
    if heads.dtype == object:
        large = heads > plan.heads[0]
        heads = np.where(large, 0, heads).astype(np.int64)
    known = min(plan.shift, COIN_BITS)
    low = top << (24 - known) if known <= 24 else top >> (known - 24)
    twice, high = heads << 25, low + 1
    r_low = (low * (twice + low) >> 24) * plan.rates[0] >> 28
    r_high = (((high * (twice + high) >> 24) + 1) * plan.rates[1] >> 28) + 1
    one = 1 << COIN_BITS
    accepted = (coins < one - r_high) & ~np.asarray(large, dtype=bool)
    rejected = coins > one - r_low + (r_low * r_low >> 33)
    return accepted, ~(accepted | rejected) | large


def checked(sigma_squared: Fraction | int) -> Fraction:
    """σ² as a Fraction, if it is one that noise can have."""
    if not is_exact(sigma_squared):
        raise BadQuery("σ² must be exact: a Fraction or an int")
    exact = sigma_squared if isinstance(sigma_squared, Fraction) else Fraction(sigma_squared)
    if not 0 < exact.numerator <= LARGEST_VARIANCE * exact.denominator:
        raise BadQuery("σ² must be positive and at most 2^2048: use a larger ρ")
    return exact
