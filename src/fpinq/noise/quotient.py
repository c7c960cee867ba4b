"""A noisy number divided by an exact one: which share of a total is above.

A record is a number q between 0 and Q; above = Σq, below = Σ(Q − q). Let F be
the fineness, V a discrete Laplace of scale F·Q/ε′ and

    d = F·(above − below) − V,   j = ⌊d / above⌋ if d ≥ 0, else ⌊d / below⌋,

cut to −F … F. So j/F is about (above − below)/larger, and its noise is V
divided by the *exact* larger part: that is what a size that is known would
give. A size that is noisy, and a noisy sum over it, cost more.

*Claim.* Where each part that is divided by is at least L (it is taken to be L
if it is less), releasing j is (ε′ + Q/L)-differentially private.

*Proof.* j ≥ i exactly if V ≤ Gᵢ, where Gᵢ = (F − i)·above − F·below for i ≥ 0 and
F·above − (F + i)·below for i < 0. One more record adds between 0 and q to
above and between 0 and Q − q to below (less than all of it where a part was
less than L), so it moves every Gᵢ, |i| ≤ F, by at most F·max(q, Q − q) ≤ F·Q.

The outcomes at both ends are V ≤ G and V > G for one G: of a discrete Laplace
of scale F·Q/ε′, either is at most e^ε′ times as likely after G moved by F·Q.

Any other j is Gⱼ₊₁ < V ≤ Gⱼ: as many values as the part it is divided by, ℓ
before and ℓ′ after, with ℓ ≤ ℓ′·(1 + Q/L). Take every value of V before ℓ′
times and every one after ℓ times, in order, and pair them: the k-th of one
lies at Gⱼ₊₁ + 1 + ⌊k/ℓ′⌋, of the other at G′ⱼ₊₁ + 1 + ⌊k/ℓ⌋. Their distance
lies between those of the two ends, rounded, so it is at most F·Q, and each is at most
e^ε′ times as likely as its partner. Added up, ℓ′·P[j] ≤ e^ε′·ℓ·P′[j], that is
P[j] ≤ e^ε′·(1 + Q/L)·P′[j] ≤ e^(ε′ + Q/L)·P′[j]. ∎ (`proof/Quotient.v`)

*Time.* One draw of the Laplace and one division, whatever the data.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from fpinq.model.enclosure import ceil_div
from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.model.frozen import dataclass
from fpinq.noise.laplace import DiscreteLaplace, sample, sample_each
from fpinq.noise.uniform import SYSTEM, RandomBytes

if TYPE_CHECKING:
    from fpinq.noise.symmetric import Integers

# Of what it costs that a divisor is exact, ε has this many times as much, or a divisor is taken to be larger.
SPARE = 8


@dataclass(frozen=True)
class Quotient:
    """ε, Q, the fineness, and what each part is at the least: 0 for a side of which nothing else is told."""

    epsilon: Fraction
    largest: int
    fineness: int
    least_above: int
    least_below: int

    def __post_init__(self) -> None:
        if type(self.epsilon) not in (int, Fraction) or self.epsilon <= 0:
            raise BadEpsilon("ε must be an exact positive number: an int or a Fraction")
        if min(self.largest, self.fineness, self.least_above + self.least_below) < 1:
            raise BadQuery("a quotient needs a largest number, a fineness and a least part, all positive")

    @cached_property
    def floors(self) -> tuple[int, int]:
        """What each part is taken to be at the least: no less than SPARE·Q/ε, or 0."""
        enough = ceil_div(SPARE * self.largest * self.epsilon.denominator, self.epsilon.numerator)
        above, below = (max(least, enough) if least else 0 for least in (self.least_above, self.least_below))
        return above, below

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """V: at what of ε is left beside Q/L."""
        rest = self.epsilon - Fraction(self.largest, min(floor for floor in self.floors if floor))
        return DiscreteLaplace(self.fineness * self.largest / rest)

    @cached_property
    def outcomes(self) -> range:
        """What can be released."""
        above, below = self.floors
        return range(-self.fineness if below else 0, (self.fineness if above else 0) + 1)

    def choose(self, above: int, below: int, source: RandomBytes = SYSTEM) -> int:
        """j, drawn afresh."""
        above, below = self._taken(above, below)
        d = self.fineness * (above - below) - sample(self.noise.scale, source)
        first, last = self.outcomes[0], self.outcomes[-1]
        if d >= 0:
            return min(d // above, last) if last else 0
        return max(d // below, first) if first else 0

    def boundary(self, outcome: int, above: int, below: int) -> int:
        """G: at least this outcome is released exactly if V ≤ G."""
        above, below = self._taken(above, below)
        return (
            min(self.fineness, self.fineness - outcome) * above
            - min(self.fineness, self.fineness + outcome) * below
        )

    def mass(self, outcome: int, above: int, below: int, bits: int = 64) -> tuple[Fraction, Fraction]:
        """Bounds on P[outcome], at most 2^(1 − bits) apart."""
        noise, first, last = self.noise, self.outcomes[0], self.outcomes[-1]
        low = high = Fraction(1)
        if outcome > first:
            low, high = noise.cdf(self.boundary(outcome, above, below), bits)
        if outcome < last:
            next_low, next_high = noise.cdf(self.boundary(outcome + 1, above, below), bits)
            low, high = low - next_high, high - next_low
        return low, high

    def _taken(self, above: int, below: int) -> tuple[int, int]:
        """The parts, neither less than its floor."""
        floors = self.floors
        return max(above, floors[0]), max(below, floors[1])


def choose_each(
    quotients: Sequence[Quotient],
    numbers: Sequence[int],
    above: "Integers",
    below: "Integers",
    source: RandomBytes = SYSTEM,
) -> "Integers":
    """j of each of many pairs of parts, drawn afresh: by the quotient whose number is the pair's.

    The parts are Python integers, unless their fineness times as much, or their floor, is less than 2^62.
    """
    import numpy as np

    facts = [(each.fineness, *each.floors, each.outcomes[0], each.outcomes[-1]) for each in quotients]
    of_each = np.array(facts, dtype=above.dtype)[np.asarray(numbers)]
    fineness, least_above, least_below, first, last = of_each.T
    above, below = np.maximum(above, least_above), np.maximum(below, least_below)
    d = fineness * (above - below) - sample_each([each.noise.scale for each in quotients], numbers, source)
    # Of a side that is not told apart all is 0, and so may be the part: any divisor will do.
    divisor = np.maximum(np.where(d >= 0, above, below), 1)
    chosen: Integers = np.minimum(np.maximum(d // divisor, first), last)
    return chosen
