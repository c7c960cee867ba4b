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

*Far runs.* Where e^(λ·gap) ≥ 2^k·m, a run of m members of whose first k bits not
all are 0 has X/p ≥ (2^−k/m)·e^(λ·gap) ≥ 1 and loses to the best. So of runs that
lie so far behind, a byte tells of most that they lose; and which of very many
begin with 32 bits or more that are all 0 is drawn from one word, and nearly
always none does (`zero_words`).
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fpinq.model.enclosure import Enclosure, ceil_div, ceil_shift, exp_negative, ln_of, ln_two, power
from fpinq.model.frozen import dataclass
from fpinq.noise.selection import Choice, Lag, Selection, lags
from fpinq.noise.uniform import REFINEMENT_BYTES, SYSTEM, RandomBytes, Uniform, below, refine

if TYPE_CHECKING:
    from fpinq.noise.symmetric import Integers

WORD_BITS = 64
HEAD_BITS = 8
ROUGH_BITS = 24
"""To so many, bounds nearly always decide already."""
NEGATIVE_INFINITY = float("-inf")
"""The one float here: the lower bound of ln 0, compared and never computed with."""


Look: TypeAlias = "Callable[[range | Integers], tuple[Integers, Integers]]"
"""The scores and the sizes of runs of some numbers."""


# Of how many words at a time it is decided whether one is 0: so few that this is seldom so, one in 2 to this.
SELDOM_BITS = 4


class Stretch(NamedTuple):
    """Runs of some numbers, the `reach` of `bits` or more behind the best: to win, as many bits must be 0.

    A run of no members, or of more than `largest`, is not of it.
    """

    numbers: "range | Integers"
    bits: int = 0
    largest: int = 2**63 - 1


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """Chooses the first head of coins e^(−λ·gap) flipped in random order."""

    def choose(self, runs: Iterable[tuple[int, int]], source: RandomBytes = SYSTEM) -> Choice:
        """A candidate, with exactly its probability.

        After one pass over all runs, a handful can still win; only those are
        looked at closer.
        """
        lagging = lags(runs)
        return self._decide(lagging, words_of(len(lagging), WORD_BITS, source), WORD_BITS, source)

    def choose_of(
        self, scores: "Integers", sizes: "Integers", source: RandomBytes = SYSTEM, bits: int = WORD_BITS
    ) -> Choice:
        """As `choose`, of runs in arrays; of no members there is no run."""
        import numpy as np

        there = np.flatnonzero(sizes)
        words = np.frombuffer(source(8 * len(there)), dtype="<u8") >> np.uint64(64 - bits)
        run, member = self._race(scores[there], sizes[there], words, bits, source)
        return Choice(int(there[run]), member)

    def choose_among(
        self, stretches: Iterable[Stretch], look: Look, source: RandomBytes = SYSTEM, bits: int = WORD_BITS
    ) -> Choice:
        """As `choose`, of numbered runs, whose scores and sizes are looked up where they can matter.

        Words are drawn as far as they decide: a byte of each, and the rest of those that can still win.
        """
        import numpy as np

        drawn = [first_bytes(stretch, look, source) for stretch in stretches]
        longer = self._most_bits(drawn)
        numbers, scores, sizes, heads, known = map(
            np.concatenate, zip(*(each.short(longer) for each in drawn), strict=True)
        )
        kept = possible(scores.max() - scores, sizes, heads, self.rate, HEAD_BITS)
        rest = np.frombuffer(source(8 * len(kept)), dtype="<u8") >> (64 + known[kept] - np.uint64(bits))
        words = (heads[kept] << np.uint64(bits - HEAD_BITS)) | rest
        run, member = self._race(scores[kept], sizes[kept], words, bits, source)
        return Choice(int(numbers[kept[run]]), member)

    def _most_bits(self, drawn: "Sequence[FirstBytes]") -> int | None:
        """By how many bits the first byte of a run may be longer than its size, to win; None if any.

        In powers of two, a run whose byte is 0 has a key of at most 1 and what it lies behind; and no key is
        less than its byte's length, less that of its size and 1.
        """
        scores = [each.scores for each in drawn if len(each.scores)]
        zeros = [each.scores[each.members(each.heads == 0)] for each in drawn]
        least = [int(found.max()) for found in zeros if len(found)]
        if not least:
            return None
        gap, (two_low, _) = max(int(found.max()) for found in scores) - max(least), ln_two(WORD_BITS)
        return ceil_div(gap * self.rate.numerator << WORD_BITS, self.rate.denominator * two_low) + 2

    def _race(
        self, scores: "Integers", sizes: "Integers", words: "Integers", bits: int, source: RandomBytes
    ) -> Choice:
        """The run that wins by its word, and as many more bits as it takes."""
        kept = possible(scores.max() - scores, sizes, words, self.rate, bits)
        lagging = lags(zip(scores[kept].tolist(), sizes[kept].tolist(), strict=True))
        run, member = self._decide(lagging, words[kept].tolist(), bits, source)
        return Choice(int(kept[run]), member)

    def reach(self, largest: int, bits: int = WORD_BITS) -> int:
        """A gap at which a run of at most so many members is far: e^(λ·gap) ≥ 2^bits·largest."""
        _, two = ln_two(WORD_BITS)
        doublings = bits + largest.bit_length()
        return ceil_div(doublings * two * self.rate.denominator, self.rate.numerator << WORD_BITS)

    def _decide(self, lagging: list[Lag], words: list[int], bits: int, source: RandomBytes) -> Choice:
        known = {i: Uniform(words[i], bits) for i in contenders(lagging, words, self.rate, bits)}
        if len(known) > 1:
            known = self._least(lagging, known, min(bits, ROUGH_BITS))
        while len(known) > 1:
            known = self._least(lagging, known, bits)
            if len(known) > 1:
                known, bits = {i: refine(u, source) for i, u in known.items()}, bits + 8 * REFINEMENT_BYTES
        (run,) = known
        largest = max(lag.multiplicity for lag in lagging)
        return Choice(run, below(lagging[run].multiplicity, largest, source))

    def _least(self, lagging: list[Lag], known: dict[int, Uniform], bits: int) -> dict[int, Uniform]:
        """The runs that may have the least key, as far as bounds to so many bits tell."""
        keys = {i: key(lagging[i], u, self.rate, bits) for i, u in known.items()}
        least = min(high for _, high in keys.values())
        return {i: u for i, u in known.items() if keys[i][0] <= least}

    def mass(self, runs: Iterable[tuple[int, int]], bits: int = 20) -> list[tuple[Fraction, Fraction]]:
        """Bounds on the probability of each run (all its members together), at most 2^−bits apart.

        Takes time proportional to 2^(bits/2) and to the square of the number of runs.
        """
        lagging = lags(runs)
        return [run_mass(lagging, i, self.rate, bits) for i in range(len(lagging))]


class FirstBytes(NamedTuple):
    """Runs of a stretch that may win: numbers, scores, sizes, first bytes, and how many bits are known."""

    numbers: "range | Integers"
    scores: "Integers"
    sizes: "Integers"
    heads: "Integers"
    bits: int
    largest: int

    def members(self, there: "Integers") -> "Integers":
        """Which of these runs are of the stretch."""
        import numpy as np

        return np.flatnonzero(there & (self.sizes > 0) & (self.sizes <= self.largest))

    def short(self, longer: int | None) -> "tuple[Integers, ...]":
        """Those whose first byte is by no more bits longer than their size, as arrays of their own."""
        import numpy as np

        there = np.ones(len(self.sizes), dtype=bool)
        if longer is not None and longer <= HEAD_BITS:  # by more, none is
            there = self.heads < np.minimum(self.sizes, 1 << HEAD_BITS) << (longer + 1)
        of = self.members(there)
        numbers = self.numbers.start + of if isinstance(self.numbers, range) else self.numbers[of]
        known = np.full(len(of), max(self.bits, HEAD_BITS), dtype=np.uint64)
        return numbers, self.scores[of], self.sizes[of], self.heads[of].astype(np.uint64), known


def first_bytes(stretch: Stretch, look: Look, source: RandomBytes) -> FirstBytes:
    """A first byte of each run of a stretch; of one that lies behind, only of those that may win."""
    import numpy as np

    numbers, bits = stretch.numbers, stretch.bits
    if bits > HEAD_BITS:
        there = np.array(zero_words(len(numbers), bits, source), dtype=np.int64)
        heads = np.zeros(len(there), dtype=np.uint8)
    else:
        heads = np.frombuffer(source(len(numbers)), dtype=np.uint8)
        if not bits:
            return FirstBytes(numbers, *look(numbers), heads, bits, stretch.largest)
        there = np.flatnonzero(heads < 1 << (HEAD_BITS - bits))
        heads = heads[there]
    numbers = numbers.start + there if isinstance(numbers, range) else numbers[there]
    return FirstBytes(numbers, *look(numbers), heads, bits, stretch.largest)


def words_of(number: int, bits: int, source: RandomBytes) -> list[int]:
    """So many words of some bits, in whole bytes."""
    size = bits // 8
    block = source(size * number)
    return [int.from_bytes(block[i : i + size], "little") for i in range(0, len(block), size)]


def zero_words(number: int, bits: int, source: RandomBytes) -> list[int]:
    """Which of so many words of some bits are 0, exactly as if all were drawn; nearly always from one word.

    Let U be that word, over 0 … B − 1 with B = 2^bits. If it is one of the last n,
    word number J (uniform) is 0, and the others are drawn: together the set Z
    of zeros. It is kept with probability 1/|Z|. A set Z then comes about for
    each J in Z, in all with |Z|·(1/B)·(1/B)^(|Z|−1)·(1 − 1/B)^(n−|Z|)/|Z|,
    which is its probability; what is left is that of no zeros at all.
    """
    most = 1 << (bits - SELDOM_BITS)
    return [
        start + i for start in range(0, number, most) for i in _zeros(min(most, number - start), bits, source)
    ]


def _zeros(number: int, bits: int, source: RandomBytes) -> list[int]:
    (word,) = words_of(1, bits, source)
    one = word - ((1 << bits) - number)
    if one < 0:
        return []
    import numpy as np

    drawn = np.frombuffer(source(bits // 8 * number), dtype=np.uint8).reshape(number, -1)
    zeros = sorted({one, *np.flatnonzero(~drawn.any(axis=1)).tolist()})
    return zeros if below(len(zeros), len(zeros), source) == 0 else []


def possible(gaps: "Integers", sizes: "Integers", words: "Integers", rate: Fraction, bits: int) -> "Integers":
    """The runs that `contenders` would keep, and perhaps more: its bounds in arrays, in coarser units."""
    import numpy as np

    most = int(gaps.max())
    two_low, two_high = ln_two(WORD_BITS)
    farthest = most * rate.numerator * 2 // rate.denominator  # in powers of two, or more
    shift = max(60 - max(farthest, 2 * WORD_BITS).bit_length(), 0)
    cost_low = (rate.numerator << (shift + WORD_BITS)) // (rate.denominator * two_high)
    cost_high = ceil_div(rate.numerator << (shift + WORD_BITS), rate.denominator * two_low)
    if max(most, 1) * cost_high >= 1 << 62:
        return np.arange(len(gaps))
    of_word, of_size = lengths(words), lengths(sizes)
    lows = (of_word - 1 - of_size) * (1 << shift) + gaps * cost_low
    # Of one more, which has a bit more if all bits of the word are 1. (Of all 64, one more is 0 here.)
    after = of_word + ((words & (words + np.uint64(1))) == 0)
    after = np.where(after < bits, np.minimum(after, after + 2 - of_size), after)
    highs = after * (1 << shift) + gaps * cost_high
    return np.flatnonzero((lows <= highs.min()) | (words == 0))


def lengths(numbers: "Integers") -> "Integers":
    """How many bits each of some numbers has; none is negative. In halves, which floats hold exactly."""
    import numpy as np

    if not len(numbers) or numbers.max() < 2**53:  # which floats hold too
        return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)
    upper, lower = (numbers >> 32).astype(np.float64), (numbers & 0xFFFFFFFF).astype(np.float64)
    found: Integers = np.where(upper > 0, np.frexp(upper)[1] + 32, np.frexp(lower)[1]).astype(np.int64)
    return found


def contenders(lagging: list[Lag], words: list[int], rate: Fraction, bits: int = WORD_BITS) -> list[int]:
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
        if size < bits:  # V < 1/2, so X < 2V/m
            size = min(size, size + 2 - m.bit_length())
        highs.append((size << shift) + gap * cost_high)
    least = min(highs)
    return [i for i, low in enumerate(lows) if low <= least]


def key(lag: Lag, u: Uniform, rate: Fraction, bits: int) -> tuple[int | float, int]:
    """Bounds on ln X + λ·gap for V as far as u tells, to so many bits or fewer: times λ's denominator·2^bits.

    So keys of one λ, to the same bits, are compared as integers.
    """
    m, gap, over = lag.multiplicity, rate.numerator * lag.gap << bits, rate.denominator
    work = bits + u.bits - u.prefix.bit_length() + m.bit_length() + 16
    one = 1 << work
    low, _ = least_of(m, u.prefix, u.bits, work)
    _, high = least_of(m, u.prefix + 1, u.bits, work)
    return (
        gap + ln_of(low, one, bits)[0] * over if low > 0 else NEGATIVE_INFINITY,
        gap + ln_of(high, one, bits)[1] * over,
    )


def least_of(m: int, v: int, known: int, bits: int) -> Enclosure:
    """1 − (1 − v/2^known)^(1/m), to bits: the least of m uniforms, at a quantile of so many known bits."""
    whole = 1 << known
    if m == 1 or v == whole:
        return (v << bits) >> known, ceil_shift(v << bits, known)
    one = 1 << bits
    log_low, log_high = ln_of(whole - v, whole, bits)
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
