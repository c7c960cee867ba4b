"""Crossing: several columns measured together, and what their noisy cross moments say.

Every column is scaled to u between −1 and 1. A cross moment, Σ uᵢ·uⱼ, is a sum of
the products of bases that `CrossMoments` releases, each with noise of the same
scale; so is what is computed of them known to be noisy, and how much. Wherever
an answer is no sum of them, its interval is found by computing it again and
again with other noise of the same law taken off: what was released is all that
is looked at.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, inf, sqrt
from typing import TYPE_CHECKING, Any

from fpinq.client.bounds import WIDTH_BITS, clamp
from fpinq.client.rows import FLOAT64, Cell
from fpinq.client.uncertainty import Number
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadQuery
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho
from fpinq.model.queries import CrossMoments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

# What one record adds to a product of all columns is below 2⁶²: so many bits are shared by their grids.
PRODUCT_BITS = 60
FEWEST_BITS = 6
# Up to so many columns have squares among the products, and then each has noise of the whole ε; of more, the
# products would be too many, and the squares stand beside them with this share of what a record may add.
MOST_SQUARED = 2
BESIDE = Fraction(2, 7)
# Weights are whole numbers: fine enough not to matter.
FINE = 64

# How often an answer is computed again: so that this many are beyond an interval, on each side.
DRAWS, MOST_DRAWS, BEYOND = 4_000, 400_000, 20

# An expression and its bounds.
Bounded = tuple[Cell, tuple[Fraction, Fraction]]

# 1, u and u² as sums of a basis of degree 1 or 2.
_ONE = {1: (1.0, 1.0), 2: (1.0, 1.0, 1.0)}
_VALUE = {1: (-1.0, 1.0), 2: (-1.0, 0.0, 1.0)}
_SQUARE = (1.0, -1.0, 1.0)


@dataclass(frozen=True)
class Crossed:
    """Columns that are measured together at ε or ρ; squares are known of some of them."""

    query: CrossMoments
    at: Amount

    @property
    def halves(self) -> list[float]:
        """Half the width of each column's bounds."""
        return [float(clamp.width * clamp.step / 2) for clamp in self.query.of]

    @property
    def middles(self) -> list[float]:
        """The middle of each column's bounds."""
        return [float((clamp.lower + clamp.upper) * clamp.step / 2) for clamp in self.query.of]

    @cached_property
    def _units(self) -> list[int]:
        """What one record adds to each integer that is released, at the most."""
        query = self.query
        products = query.integers - len(query.squared_clamps)
        squares = [query.squares[i] * query.of[i].width ** 2 for i in query.squared_clamps]
        return [query.weight * query.reach] * products + squares

    @cached_property
    def scales(self) -> "Array":
        """The scale of the noise in each integer that is released, in its units: at ρ, its deviation."""
        import numpy as np

        if isinstance(self.at, Rho):
            variance = self.query.squared / (2 * self.at.amount)
            return np.array([sqrt(variance / unit**2) for unit in self._units])
        scale = self.query.sensitivity / self.at
        return np.array([float(scale / unit) for unit in self._units])

    @cached_property
    def rows(self) -> "Array":
        """Σ zᵢ·zⱼ, z = (1, u₁, u₂, …), as a sum of what is released in its units: [i, j, which of them].

        Not a number where a square is not known.
        """
        import numpy as np

        number = len(self.query.of) + 1
        rows = np.full((number, number, self.query.integers), np.nan)
        for i in range(number):
            for j in range(i + 1):
                if i != j or not i:
                    rows[i, j] = rows[j, i] = self._product({i, j} - {0})
                else:
                    rows[i, i] = self._square(i)
        return rows

    def _product(self, columns: set[int]) -> "Array":
        import numpy as np

        found: Array = np.ones(1)
        for i, degree in enumerate(self.query.degrees, 1):
            found = np.kron(found, (_VALUE if i in columns else _ONE)[degree])
        return np.concatenate([found, np.zeros(len(self.query.squared_clamps))])

    def _square(self, column: int) -> "Array":
        import numpy as np

        query, i = self.query, column - 1
        if query.of[i].width == 1:
            return self._product(set())  # u is −1 or 1
        if query.degrees[i] == 2:
            found: Array = np.ones(1)
            for j, degree in enumerate(query.degrees):
                found = np.kron(found, _SQUARE if j == i else _ONE[degree])
            return np.concatenate([found, np.zeros(len(query.squared_clamps))])
        if i not in query.squared_clamps:
            return np.full(query.integers, np.nan)
        beside = np.zeros(query.integers)  # Σ 2u² − 1
        beside[query.integers - len(query.squared_clamps) + query.squared_clamps.index(i)] = 0.5
        return beside + self._product(set()) / 2

    def measured(self, released: Sequence[int]) -> "Array":
        """What was released, in its units."""
        import numpy as np

        return np.array([float(Fraction(n, unit)) for n, unit in zip(released, self._units, strict=True)])

    def moments(self, measured: "Array") -> "Array":
        """The averages of zᵢ·zⱼ and, at [0, 0], the number of records: of one measurement, or of many."""
        import numpy as np

        totals = np.einsum("...k,ijk->...ij", measured, self.rows)
        number = totals[..., 0, 0].copy()
        with np.errstate(all="ignore"):
            found: Array = totals / number[..., None, None]
        found[..., 0, 0] = number
        return found

    def covariances(self, moments: "Array") -> "Array":
        """The covariances of the columns, scaled."""
        means = moments[..., 0, 1:]
        found: Array = moments[..., 1:, 1:] - means[..., :, None] * means[..., None, :]
        return found

    def deviation(self, weights: "Array") -> float:
        """The standard deviation of a sum of what is released, with weights."""
        import numpy as np

        variance = 1 if isinstance(self.at, Rho) else 2  # of a draw of scale 1
        return float(np.sqrt(variance * np.sum((weights * self.scales) ** 2)))

    def again(self, measured: "Array", times: int) -> "Array":
        """What was measured, with other noise of the same law taken off: as it may be without any.

        Drawn from a seed, so that an answer's interval is always the same. It protects
        nothing: what was released is public.
        """
        import numpy as np

        seeded = np.random.default_rng(1)
        law = seeded.standard_normal if isinstance(self.at, Rho) else seeded.laplace
        noise = law(size=(times, len(self.scales)))
        found: Array = measured - noise * self.scales
        return found


def crossed(columns: Sequence[Bounded], squared: Sequence[bool], at: Amount) -> Crossed:
    """Columns measured together, with the squares of those that need them."""
    needed = [need and _bits(*column) > 1 for need, column in zip(squared, columns, strict=True)]
    among = sum(needed) <= MOST_SQUARED
    degrees = tuple(2 if need and among else 1 for need in needed)
    clamps = _clamps(columns, degrees)
    if among:
        return Crossed(CrossMoments(clamps, degrees, 1, (0,) * len(clamps)), at)
    weight, squares = _weights(clamps, needed)
    return Crossed(CrossMoments(clamps, degrees, weight, squares), at)


def _clamps(columns: Sequence[Bounded], degrees: Sequence[int]) -> tuple[Clamp, ...]:
    """The columns on grids that share the bits of a product: those that need few leave more to others."""
    found: dict[int, Clamp] = {}
    bits, shared = PRODUCT_BITS, sum(degrees)
    needs = [_bits(*column) for column in columns]
    for i in sorted(range(len(columns)), key=lambda i: needs[i]):
        (cell, bounds), most = columns[i], min(bits // shared, WIDTH_BITS)
        if most < min(FEWEST_BITS, needs[i]):
            raise BadQuery("too many columns to be measured together: leave some out")
        if needs[i] > most:
            cell = cell.cast("float64")
        found[i] = clamp(cell, bounds, width_bits=most)
        bits, shared = bits - degrees[i] * min(most, needs[i]), shared - degrees[i]
    return tuple(found[i] for i in range(len(columns)))


def _bits(cell: Cell, bounds: tuple[Fraction, Fraction]) -> int:
    """How many bits the grid points of an expression take, where it is not rounded."""
    if cell.type is FLOAT64:
        return WIDTH_BITS
    lower, upper = bounds
    return (ceil(upper) - floor(lower)).bit_length()


def _weights(clamps: Sequence[Clamp], needed: Sequence[bool]) -> tuple[int, tuple[int, ...]]:
    """Whole weights, so that the squares have their share of what a record may add, each as much."""
    reach = 1
    for each in clamps:
        reach *= each.width
    squares = [each.width**2 if need else 0 for each, need in zip(clamps, needed, strict=True)]
    weight = ceil(Fraction(FINE * max(squares) * sum(needed), reach))
    ratio = BESIDE / (1 - BESIDE) / sum(needed) * weight * reach
    return weight, tuple(max(round(ratio / square), 1) if square else 0 for square in squares)


class Again:
    """An answer computed of noisy moments, again and again; shared by answers of one measurement."""

    def __init__(
        self, crossed: Crossed, measured: "Array", compute: "Callable[[Array], tuple[Array, Array]]"
    ) -> None:
        self._crossed = crossed
        self._measured = measured
        self._compute = compute
        self._found: dict[int, tuple[Array, Array]] = {}

    def ordered(self, which: int, times: int) -> tuple["Array", int]:
        """Values that an answer may have without noise, in order; and how often it had none."""
        import numpy as np

        if times not in self._found:
            self._found[times] = self._compute(self._crossed.again(self._measured, times))
        values, exist = self._found[times]
        return np.sort(values[exist, which]), int(times - exist.sum())


@dataclass(frozen=True, eq=False)
class Computed:
    """The error of an answer that is computed of noisy moments: as far as it moves when that is done again.

    Where the noise hides whether there is such a number at all, it may be any
    within bounds: the interval says so.
    """

    again: Again
    which: int
    scale: float = 1.0
    lower: float = -inf
    upper: float = inf
    approximate = True

    def standard_error(self) -> float:
        """Half of what two thirds of the values lie within, as for a normal one."""
        low, high = self._between(Fraction(6827, 10_000))
        return min((high - low) / 2, (self.upper - self.lower) / 2)

    def interval(self, value: Number, confidence: Fraction) -> tuple[float, float]:
        """Between these are as many of the values as the confidence says; the value is among them."""
        low, high = self._between(confidence)
        return max(self.lower, min(low, float(value))), min(self.upper, max(high, float(value)))

    def _between(self, confidence: Fraction) -> tuple[float, float]:
        beyond = (1 - confidence) / 2
        times = DRAWS
        while times < MOST_DRAWS and times * beyond < BEYOND:
            times *= 10
        values, without = self.again.ordered(self.which, times)
        left_out = floor(times * beyond) - without  # those without a value may be on either side
        if left_out < 1 or times * beyond < 1:
            return self.lower, self.upper
        return float(values[left_out - 1]) * self.scale, float(values[-left_out]) * self.scale
