"""Keys nobody knew: a histogram of the keys that there are, of which small counts are not shown.

Released is, for every key with a count of 1 or more, count + V if that is at least τ, and nothing else.

*Claim.* Let the plain noisy histogram be h(D)-close on tables at distance D (ε·D of max-divergence for a
Laplace of scale 1/ε, ρ·D² for a Gaussian of σ² = 1/(2ρ)), and let τ > S with

    P[V ≥ τ − 1] ≤ δ₀   and   P[V ≥ τ − S] ≤ S·δ₀.

Then for D ≤ S the release is (D·δ₀, h(D))-close: but for a part of probability D·δ₀, it is h(D)-close.

*Proof.* Let aₖ be the counts of those keys that one of the tables has and the other has not; Σ aₖ ≤ D. If
none of them is released, the release is that of the keys that both have, which is a function of the noisy
histogram over these: h(D)-close. One of them is released with probability Σₖ P[V ≥ τ − aₖ] at the most. As
a function of a ≤ S, P[V ≥ τ − a] is convex, since P[V = m] falls for m ≥ 0: it lies below the line a·δ₀
between 1 and S, as it does at both. So the sum is at most Σ aₖ·δ₀ ≤ D·δ₀. ∎

P[V ≥ τ − 1] ≤ δ alone is right for S = 1 only: one record more in a table may be S records more here, of
one key or of S. Where it is known that each key changes by 1 (S keys of one person, say), it is S = 1 with
δ₀ = δ/S.

*Time.* It grows with the number of keys, which is private: as of a group by.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeVar

from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.model.frozen import dataclass
from fpinq.noise.symmetric import Symmetric, is_exact
from fpinq.noise.uniform import SYSTEM, RandomBytes

K = TypeVar("K")


@dataclass(frozen=True)
class StabilityHistogram:
    """The noise, δ₀ for each unit of distance, and S, the largest distance that is protected."""

    noise: Symmetric
    delta: Fraction
    distance: int = 1

    def __post_init__(self) -> None:
        if not is_exact(self.delta) or not 0 < self.delta < 1:
            raise BadEpsilon("δ must be an exact number between 0 and 1, and neither: '1e-9', for example")
        if type(self.distance) is not int or self.distance < 1:
            raise BadQuery("the distance of neighbours must be an integer, 1 or more")

    @property
    def threshold(self) -> int:
        """τ: the least integer beyond S for which both tails are small enough."""
        one = self.noise.first_tail_at_most(Fraction(self.delta))
        all_at_once = self.noise.first_tail_at_most(Fraction(self.distance * self.delta))
        return max(1 + one, self.distance + all_at_once)

    def release(self, counts: Mapping[K, int], source: RandomBytes = SYSTEM) -> dict[K, int]:
        """The keys whose noisy counts reach τ, with these.

        In the order of counts, which is released with them: sort them.
        """
        present = {key: count for key, count in counts.items() if count >= 1}
        noisy = zip(present, present.values(), self.noise.draw(len(present), source).tolist(), strict=True)
        threshold = self.threshold
        return {key: count + v for key, count, v in noisy if count + v >= threshold}
