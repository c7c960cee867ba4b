"""Permute-and-flip over integer scores, exactly.

The mechanism (McKenna and Sheldon, 2020): go through the candidates in random
order; at candidate r flip a coin with head probability p_r = e^(−λ·gap_r);
choose the first head. The best candidate's coin always shows heads. At the
same ε the expected score is never below the exponential mechanism's.

*As a race.* Give each candidate an independent uniform U_r and choose the
least U_r/p_r. Call r heads if U_r < p_r: then it is heads with probability
p_r, and given heads U_r/p_r is uniform on (0, 1), for every r the same. So the
heads are ordered at random; tails have U_r/p_r ≥ 1 and lose to the best
candidate, which is heads. That is permute-and-flip. In logarithms it is the
largest λ·q_r + E_r with E_r = −ln U_r exponential: report noisy max.

*Claim.* Releasing the chosen candidate is ε-differentially private, for
scores of sensitivity Δ, and for λ as `selection` says.

*Proof.* r wins if E_r > c, where c = max over s ≠ r of (λq_s + E_s) − λq_r
(equality has probability 0). Fix the other E_s. From D to a neighbour, c
becomes some c′ ≤ c + 2λΔ, or c′ ≤ c + λΔ if all scores move one way; so
c′ ≤ c + ε. As P[E_r > c] = min(1, e^−c), it is at most e^ε·P[E_r > c′]. Now
average over the other E_s. ∎

*Runs.* The least of m uniforms is X = 1 − (1 − V)^(1/m) for a uniform V, since
P[X > t] = (1 − t)^m. So a run of any length enters the race with one V, and
the run with the least X/p wins; which of its members held the least is
uniform. Every V is known by its first 64 bits. Bounds on ln X + λ·gap decide;
while they leave several runs in the race, those get more bits.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from fpinq.noise.enclosure import Enclosure, ceil_div, ceil_shift, exp_negative, ln, ln_two, power
from fpinq.noise.selection import Choice, Lag, Selection, lags
from fpinq.noise.uniform import SYSTEM, RandomBytes, Uniform, below, refine

WORD_BITS = 64
NEGATIVE_INFINITY = float("-inf")
"""The one float here: the lower bound of ln 0, compared and never computed with."""


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """Chooses the first head of coins e^(−λ·gap) flipped in random order."""

    def choose(self, runs: Iterable[tuple[int, int]], source: RandomBytes = SYSTEM) -> Choice:
        """A candidate, with exactly its probability.

        After one pass over all runs, a handful can still win; only those are
        looked at closer.
        """
        lagging = lags(runs)
        block = source(8 * len(lagging))
        words = [int.from_bytes(block[i : i + 8], "little") for i in range(0, len(block), 8)]
        known = {i: Uniform(words[i], WORD_BITS) for i in contenders(lagging, words, self.rate)}
        while len(known) > 1:
            keys = {i: key(lagging[i], u, self.rate) for i, u in known.items()}
            least = min(high for _, high in keys.values())
            known = {i: u for i, u in known.items() if keys[i][0] <= least}
            if len(known) > 1:
                known = {i: refine(u, source) for i, u in known.items()}
        (run,) = known
        largest = max(lag.multiplicity for lag in lagging)
        return Choice(run, below(lagging[run].multiplicity, largest, source))

    def mass(self, runs: Iterable[tuple[int, int]], bits: int = 20) -> list[tuple[Fraction, Fraction]]:
        """Bounds on the probability of each run (all its members together), at most 2^−bits apart.

        Takes time proportional to 2^(bits/2) and to the square of the number of runs.
        """
        lagging = lags(runs)
        return [run_mass(lagging, i, self.rate, bits) for i in range(len(lagging))]


def contenders(lagging: list[Lag], words: list[int], rate: Fraction) -> list[int]:
    """The runs that may have the least X·e^(λ·gap), judged by the size of their first word.

    V/m ≤ X ≤ V/(m·(1 − V)) and X ≤ V. In powers of two: λ·gap is λ·gap/ln 2
    of them, taken as an integer multiple of 2^−shift; the rest needs bit
    lengths only.
    """
    two_low, two_high = ln_two(WORD_BITS)
    shift = WORD_BITS + rate.denominator.bit_length()
    cost_low = (rate.numerator << (shift + WORD_BITS)) // (rate.denominator * two_high)
    cost_high = ceil_div(rate.numerator << (shift + WORD_BITS), rate.denominator * two_low)
    lows: list[float] = []
    highs: list[int] = []
    for (gap, m), v in zip(lagging, words, strict=True):
        low = ((v.bit_length() - 1 - m.bit_length()) << shift) + gap * cost_low
        lows.append(low if v else NEGATIVE_INFINITY)
        size = (v + 1).bit_length()
        if size < WORD_BITS:  # V < 1/2, so X < 2V/m
            size = min(size, size + 2 - m.bit_length())
        highs.append((size << shift) + gap * cost_high)
    least = min(highs)
    return [i for i, low in enumerate(lows) if low <= least]


def key(lag: Lag, u: Uniform, rate: Fraction) -> tuple[Fraction | float, Fraction]:
    """Bounds on ln X + λ·gap for V as far as u tells."""
    work = u.bits + lag.multiplicity.bit_length() + 16
    one = 1 << work
    behind = rate * lag.gap
    low, _ = least_of(lag.multiplicity, Fraction(u.prefix, 1 << u.bits), work)
    _, high = least_of(lag.multiplicity, Fraction(u.prefix + 1, 1 << u.bits), work)
    return (
        behind + Fraction(ln(Fraction(low, one), u.bits)[0], 1 << u.bits) if low > 0 else NEGATIVE_INFINITY,
        behind + Fraction(ln(Fraction(high, one), u.bits)[1], 1 << u.bits),
    )


def least_of(m: int, v: Fraction, bits: int) -> Enclosure:
    """1 − (1 − v)^(1/m) for 0 ≤ v ≤ 1, to bits: the least of m uniforms at its quantile v."""
    if m == 1 or v == 1:
        return (v.numerator << bits) // v.denominator, ceil_div(v.numerator << bits, v.denominator)
    one = 1 << bits
    log_low, log_high = ln(1 - v, bits)
    root_low, _ = exp_negative(Fraction(-log_low, m * one), bits)
    _, root_high = exp_negative(Fraction(max(-log_high, 0), m * one), bits)
    return one - root_high, one - root_low


def run_mass(lagging: list[Lag], chosen: int, rate: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds on P[the chosen run wins], at most 2^−bits apart.

    A member wins at t = U/p if it is heads and no other candidate s has
    U_s/p_s < t. So for a run of m members,

        P = ∫₀¹ f,   f(t) = m·p·(1 − p·t)^(m−1) · Π_{other runs} (1 − p_s·t)^(m_s).

    f is a product of falling, non-negative affine functions, hence convex:
    on each panel the chord bounds the integral from above, the value in the
    middle from below. The worst panel is halved until the bounds are close.
    """
    work = bits + 2 * sum(lag.multiplicity for lag in lagging).bit_length() + 32
    coins = [exp_negative(rate * lag.gap, work) for lag in lagging]
    own = lagging[chosen].multiplicity

    def density(n: int, k: int) -> Enclosure:
        """f(n/2^k), to work bits."""
        low, high = own * coins[chosen][0], own * coins[chosen][1]
        for i, (coin, lag) in enumerate(zip(coins, lagging, strict=True)):
            stays = max((1 << work) - ceil_shift(coin[1] * n, k), 0), (1 << work) - (coin[0] * n >> k)
            factor = power(stays, lag.multiplicity - (i == chosen), work)
            low, high = low * factor[0] >> work, ceil_shift(high * factor[1], work)
        return low, high

    def panel(n: int, k: int, left: int, right: int) -> Panel:
        middle_low, middle_high = density(2 * n + 1, k + 1)
        low, high = Fraction(middle_low, 1 << (work + k)), Fraction(left + right, 1 << (work + k + 1))
        return Panel(low - high, n, k, left, middle_high, right, low, high)

    panels = [panel(0, 0, density(0, 0)[1], density(1, 0)[1])]
    low, high = panels[0].low, panels[0].high
    while high - low > Fraction(1, 1 << bits):
        worst = heapq.heappop(panels)
        halves = (
            panel(2 * worst.n, worst.k + 1, worst.left, worst.middle),
            panel(2 * worst.n + 1, worst.k + 1, worst.middle, worst.right),
        )
        for half in halves:
            heapq.heappush(panels, half)
        low += sum(half.low for half in halves) - worst.low
        high += sum(half.high for half in halves) - worst.high
    return low, high


class Panel(NamedTuple):
    """The panel [n, n + 1]·2^−k of an integral, with bounds on its share; the worst sorts first."""

    slack: Fraction
    n: int
    k: int
    left: int
    middle: int
    right: int
    low: Fraction
    high: Fraction
