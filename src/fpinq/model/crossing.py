"""Moments of several columns at once: the totals of products of Bernstein bases."""

from collections.abc import Sequence
from dataclasses import field
from itertools import product
from math import prod
from typing import Literal as Tag

from fpinq.model.clamps import Clamp, check_clamp
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Schema
from fpinq.model.frozen import dataclass
from fpinq.model.kinds import Noisy
from fpinq.model.statistics import Integers, Monomials, dense

MAX_DEGREE = 2
# What one record adds to a product of several clamps is a 64-bit integer everywhere.
MAX_PRODUCT = 2**62
MAX_CROSSED = 1_024
MAX_WEIGHT = 2**128


@dataclass(frozen=True)
class CrossMoments(Noisy):
    """The totals of the products of Bernstein bases, one basis of degree 1 or 2 for each clamp.

    Each basis sums to Wᵈ whatever the value is, so one record adds exactly
    Π Wᵢ^dᵢ in L1, spread over Π (dᵢ + 1) coordinates: each gets noise of the
    whole ε, and every product of powers up to the degrees is a sum of them.
    Where degree 2 in every clamp would spread too far, the centred square
    2(2t − W)² − W², within ± W², of some of them stands beside: all of the
    products times `weight`, the square of clamp i times squaresᵢ.
    """

    of: tuple[Clamp, ...]
    degrees: tuple[int, ...]
    weight: int
    squares: tuple[int, ...]
    op: Tag["cross_moments"] = field(default="cross_moments", repr=False)

    passes = 1

    @property
    def statistic(self) -> Monomials:
        products = product(*(range(degree + 1) for degree in self.degrees))
        beside = (tuple(2 * (j == i) for j in range(len(self.of))) for i in self.squared_clamps)
        return Monomials(self.of, (*products, *beside))

    @property
    def squared_clamps(self) -> tuple[int, ...]:
        """Which clamps have a square beside the products."""
        return tuple(i for i, weight in enumerate(self.squares) if weight)

    @property
    def sensitivity(self) -> int:
        squares = sum(self.squares[i] * self.of[i].width ** 2 for i in self.squared_clamps)
        return self.weight * self.reach + squares

    @property
    def squared(self) -> int:
        squares = sum((self.squares[i] * self.of[i].width ** 2) ** 2 for i in self.squared_clamps)
        return (self.weight * self.reach) ** 2 + squares

    @property
    def reach(self) -> int:
        """What one record adds to the products: Π Wᵢ^dᵢ."""
        return prod(clamp.width**degree for clamp, degree in zip(self.of, self.degrees, strict=True))

    @property
    def monotone(self) -> bool:
        return not self.squared_clamps

    @property
    def integers(self) -> int:
        return prod(degree + 1 for degree in self.degrees) + len(self.squared_clamps)

    def check(self, schema: Schema) -> None:
        if not self.of or not len(self.of) == len(self.degrees) == len(self.squares):
            raise BadQuery("cross moments are of one or more clamps, with a degree and a square each")
        for clamp in self.of:
            check_clamp(clamp, schema)
        if not all(1 <= degree <= MAX_DEGREE for degree in self.degrees):
            raise BadQuery(f"moments have degree 1 to {MAX_DEGREE}")
        if len(self.of) > MAX_CROSSED.bit_length() or self.integers > MAX_CROSSED:
            raise BadQuery(f"too many columns for one query: at most {MAX_CROSSED} products of them")
        if not 1 <= self.weight <= MAX_WEIGHT or not all(0 <= w <= MAX_WEIGHT for w in self.squares):
            raise BadQuery("the weights of cross moments are whole numbers, that of the products 1 or more")
        widths = [max(clamp.width, 1) for clamp in self.of]  # of a width of 0 there is the power 0
        products = prod(map(pow, widths, self.degrees))
        if max(products, *(widths[i] ** 2 for i in self.squared_clamps), 0) > MAX_PRODUCT:
            raise BadQuery(f"bounds too wide for products: at most {MAX_PRODUCT} steps all in all")

    def exact(self, measured: Integers) -> list[int]:
        """The products of bases, in the order of their indices, and then the squares."""
        totals = dense(self.statistic, measured)
        number = self.integers - len(self.squared_clamps)
        axes = [(clamp.width, degree) for clamp, degree in zip(self.of, self.degrees, strict=True)]
        products = [self.weight * total for total in crossed(totals[:number], axes)]
        return products + [
            self._square(i, totals, q) for i, q in zip(self.squared_clamps, totals[number:], strict=True)
        ]

    def _square(self, i: int, totals: list[int], q: int) -> int:
        """Σ 2(2t − W)² − W² from Σ1, Σt and Σt² = q, t that of clamp i."""
        w = self.of[i].width
        first = prod(degree + 1 for degree in self.degrees[i + 1 :])  # where t alone is among the products
        return self.squares[i] * (8 * q - 8 * w * totals[first] + w * w * totals[0])


def crossed(totals: Sequence[int], axes: Sequence[tuple[int, int]]) -> list[int]:
    """Totals of products of Bernstein bases from those of products of powers, one (width, degree) each."""
    if not axes:
        return list(totals)
    (w, degree), *others = axes
    block = len(totals) // (degree + 1)
    powers = [crossed(totals[start : start + block], others) for start in range(0, len(totals), block)]
    if degree == 1:
        return [w * n - t for n, t in zip(*powers, strict=True)] + powers[1]
    both = list(zip(*powers, strict=True))
    below = [w * w * n - 2 * w * t + q for n, t, q in both]
    return below + [2 * (w * t - q) for _, t, q in both] + powers[2]
