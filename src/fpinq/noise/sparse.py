"""The noisy histogram over every key of a domain of any size, of which small counts are not shown.

Released is {i : xᵢ + Vᵢ ≥ t} with these values, over *all* keys i of the domain, of which nearly all have
xᵢ = 0. A key is its number in the domain, 0 … N − 1 (`model.domains`).

*Claim.* It is as private as the noisy histogram over all keys that it is a function of: ε of a Laplace of
scale 1/ε, ρ of a Gaussian of σ² = 1/(2ρ). There is no δ, whatever t is and whichever keys the data has.

*Proof.* The noise of each key is independent, and so are three groups of keys, drawn one after the other:

1. Keys without records that reach t: each key of the domain by itself with p = P[V ≥ t]. From one such key
to the next    there are G others with P[G ≥ g] = (1 − p)^g, so that G = ⌊ln U / ln(1 − p)⌋ for a uniform U:
as many draws as there    are such keys, and one. Those of them that have records are left out. 2. Their
values: V given V ≥ t. 3. Keys with records: xᵢ + Vᵢ, which is shown if it is t or more.

Every key of the domain is in one of the groups, with its own law. ∎ (Cormode, Procopiuc, Srivastava and
Tran 2012 filter in this way; here it is exact.)

t is the least integer ≥ 1 with N·P[V ≥ t] ≤ f, for N keys: f is how many keys without records are expected
to be shown. It is a matter of accuracy, not of privacy: a key that is shown may be one that nobody has.

*Time.* It grows with the number of keys that have records, which is private, as that of a group by does,
and with the number of those that are shown. It does not depend on the size of the domain, but for the
digits of its numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache

from fpinq.model.discovery import MOST_EXPECTED
from fpinq.model.domains import KeyDomain
from fpinq.model.enclosure import fractions, ln
from fpinq.model.errors import BadQuery
from fpinq.model.frozen import dataclass
from fpinq.model.keys import Key
from fpinq.noise.symmetric import Symmetric, is_exact
from fpinq.noise.uniform import REFINEMENT_BYTES, SYSTEM, RandomBytes, refine, uniform

EXPECTED = Fraction(1, 1000)


@dataclass(frozen=True)
class SparseHistogram:
    """The noise of each key, the domain, and how many keys without records are expected to be shown."""

    noise: Symmetric
    domain: KeyDomain
    expected: Fraction = EXPECTED

    def __post_init__(self) -> None:
        if not is_exact(self.expected) or not 0 < self.expected <= MOST_EXPECTED:
            raise BadQuery(
                "how many keys without records are expected must be an exact number above 0, "
                f"{MOST_EXPECTED:,} at the most: Fraction(1, 1000), for example"
            )

    @property
    def threshold(self) -> int:
        """t: a public function of the noise, the size of the domain and what is expected."""
        return self.noise.first_tail_at_most(self.expected / self.domain.size)

    def release(self, counts: Mapping[Key, int], source: RandomBytes = SYSTEM) -> dict[Key, int]:
        """The keys whose noisy counts reach t, in order. Keys that are not in the domain are left out."""
        ranked = ((self.domain.rank(key), count) for key, count in counts.items())
        numbered = {number: count for number, count in ranked if number is not None}
        return {
            self.domain.unrank(number): noisy
            for number, noisy in self.release_numbers(numbered, source).items()
        }

    def release_numbers(
        self,
        counts: Mapping[int, int],
        source: RandomBytes = SYSTEM,
        each: Callable[[Iterable[int]], Iterable[int]] = iter,
    ) -> dict[int, int]:
        """The same of keys that are given, and told, as their numbers.

        Whoever has only so much time passes the keys that nobody has on by `each`, one after the other.
        """
        threshold = self.threshold
        present = [(key, count) for key, count in counts.items() if count]
        shown = dict[int, int]()
        for number in each(passing(self.noise, threshold, self.domain.size, source)):
            shown[number] = threshold + self.noise.excess(threshold, source)
        for (key, count), v in zip(present, self.noise.draw(len(present), source).tolist(), strict=True):
            if count + v >= threshold:
                shown[key] = count + v
            else:
                shown.pop(key, None)
        return dict(sorted(shown.items()))


def passing(noise: Symmetric, threshold: int, size: int, source: RandomBytes = SYSTEM) -> Iterator[int]:
    """The numbers below size whose noise alone reaches the threshold, each by itself."""
    at = 0
    while (gap := draw_gap(noise, threshold, size - at, source)) is not None:
        yield at + gap
        at += gap + 1


def draw_gap(noise: Symmetric, threshold: int, most: int, source: RandomBytes) -> int | None:
    """⌊ln U / ln(1 − P[noise ≥ threshold])⌋ for a uniform U; None if that is most or more."""
    u = uniform(64, source)
    while most:
        work = u.bits + 32
        beyond = -fractions(ln(Fraction(u.prefix + 1, 1 << u.bits), work), work)[1]
        if beyond >= most * rate_at_most(noise, threshold, most.bit_length() + u.bits):
            return None
        rate_low, rate_high = rates(noise, threshold, u.bits)
        least = beyond // rate_high
        if least >= most:
            return None
        if u.prefix and least == -fractions(ln(Fraction(u.prefix, 1 << u.bits), work), work)[0] // rate_low:
            return max(least, 0)
        # A gap of so many digits needs as many of U: among texts of 1,024 bytes that is 7,000 bits, at once.
        u = refine(u, source, REFINEMENT_BYTES + max(0, least.bit_length() - u.bits) // 8)
    return None


@lru_cache(maxsize=256)
def rate_at_most(noise: Symmetric, threshold: int, bits: int) -> Fraction:
    """No less than −ln(1 − p), p = P[noise ≥ threshold] < ½: 2p, of which so many digits are known.

    That is enough to tell that no key is shown, nearly always. At a large ε, p has more zeros behind its
    point than a machine has room for.
    """
    return 2 * fractions(noise.upper(threshold, bits), bits)[1]


@lru_cache(maxsize=256)
def rates(noise: Symmetric, threshold: int, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds on −ln(1 − P[noise ≥ threshold]), at most 2^−bits of it apart."""
    work = bits
    while (tail := noise.upper(threshold, work))[0] >> bits + 8 == 0:
        work *= 2
    low, high = fractions(tail, work)
    return (
        -fractions(ln(1 - low, work + 8), work + 8)[1],
        -fractions(ln(1 - high, work + 8), work + 8)[0],
    )
