"""What integer noise that is as likely to be v as −v has in common: it is known by its tail."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from fpinq.model.enclosure import Enclosure, fractions, quotient
from fpinq.model.errors import BadQuery
from fpinq.noise.uniform import SYSTEM, RandomBytes, less, uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers: TypeAlias = NDArray[Any]
    """Signed 64-bit integers, or Python integers (dtype object) where those are too small."""


class Symmetric(ABC):
    """A distribution over the integers with P[v] = P[−v].

    Probabilities are irrational: they are given as rational bounds, as
    narrow as asked for. Comparisons with them are exact.
    """

    @abstractmethod
    def upper(self, t: int, bits: int) -> Enclosure:
        """P[noise ≥ t] for t ≥ 1, to bits."""

    @abstractmethod
    def first_tail_at_most(self, q: Fraction) -> int:
        """The smallest t ≥ 1 with P[noise ≥ t] ≤ q."""

    @abstractmethod
    def draw(self, n: int, source: RandomBytes = SYSTEM) -> "Integers":
        """n independent draws."""

    def beyond(self, t: int, k: int, bits: int) -> Enclosure:
        """P[noise ≥ t + k given that it is t or more], for t ≥ 1 and k ≥ 0, to bits."""
        work = bits
        while (most := self.upper(t, work))[0] >> bits + 8 == 0:
            work *= 2  # t may be far out
        return quotient(self.upper(t + k, work), most, bits)

    def excess(self, t: int, source: RandomBytes = SYSTEM) -> int:
        """noise − t, drawn given that it is 0 or more, for t ≥ 1: #{k ≥ 1 : U < beyond(t, k)}."""
        u = uniform(64, source)

        def is_beyond(k: int) -> bool:
            nonlocal u
            is_less, u = less(u, partial(self.beyond, t, k), source)
            return is_less

        return first(lambda k: not is_beyond(k), 1) - 1

    def tail(self, t: int, bits: int = 64) -> tuple[Fraction, Fraction]:
        """Bounds on P[noise ≥ t], at most 2^−bits apart."""
        if t >= 1:
            return fractions(self.upper(t, bits + 4), bits + 4)
        low, high = self.tail(1 - t, bits)
        return 1 - high, 1 - low

    def cdf(self, v: int, bits: int = 64) -> tuple[Fraction, Fraction]:
        """Bounds on P[noise ≤ v], at most 2^−bits apart."""
        return self.tail(-v, bits)

    def quantile(self, p: Fraction | float) -> int:
        """The smallest v with P[noise ≤ v] ≥ p."""
        exact = probability(p)
        t = self.first_tail_at_most(exact)
        return 1 - t if t > 1 else self.first_tail_at_most(1 - exact) - 1

    def interval(self, confidence: Fraction | float) -> int:
        """The smallest t with P[|noise| ≤ t] ≥ confidence."""
        return self.first_tail_at_most((1 - probability(confidence)) / 2) - 1


def first(holds: Callable[[int], bool], near: int) -> int:
    """The smallest integer t ≥ 1 from which on holds(t), found in steps that grow away from near."""
    low, high, step = max(near, 1) - 1, max(near, 1), 1
    while not holds(high):
        low, high, step = high, high + step, 2 * step
    while low > 0 and holds(low):
        low, high, step = max(low - step, 0), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def is_exact(number: object) -> bool:
    """Whether number is a plain rational; subclasses may lie about comparison."""
    return type(number) in (int, Fraction)


def probability(p: Fraction | float) -> Fraction:
    """p as an exact number between 0 and 1; a float through its shortest repr, so 0.95 is 19/20."""
    try:
        exact = Fraction(float.__repr__(p)) if isinstance(p, float) else Fraction(p if is_exact(p) else 0)
    except ValueError:  # nan, inf
        exact = Fraction(0)
    if not 0 < exact < 1:
        raise BadQuery("a probability or confidence must lie strictly between 0 and 1, for example 0.95")
    return exact


def number_of_draws(n: int) -> int:
    """n, if it is a number of draws."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise BadQuery("the number of draws must be an integer, 0 or more")
    return n
