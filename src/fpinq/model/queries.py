"""Primitive queries: what is measured, how much one record can change it, and what is released.

A query is one place where everybody looks: engines are asked for its
statistic, drawing goes by its sensitivity, its mechanism and whether its scores
are monotone, limits by how many integers it releases and how often it goes over
the statistic. None of these has a default, so a new query cannot be forgotten
anywhere. They are those of a query that passed its check.

The *sensitivity* is the most that one record can change the integers: in L1
where discrete Laplace noise is added to every one of them (in L2 where it is
Gaussian), in L∞ where they are scores to choose by. Nothing else touches data: what becomes of what is
released is post-processing.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import product
from math import prod
from typing import Literal as Tag
from typing import NamedTuple

from fpinq.model.clamps import Clamp, check_clamp
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Apply, Expression, Literal, Schema
from fpinq.model.frozen import dataclass
from fpinq.model.operators import type_of
from fpinq.model.statistics import (
    Bernstein,
    Integers,
    Monomials,
    Points,
    Records,
    Statistic,
    Totals,
    dense,
)

MAX_DEGREE = 2

MAX_BINS = 2**24
MAX_RANKS = 10**18

MAX_FRACTIONS = 1_000
# More records than anybody has.
MAX_BESIDE = 2**40

# How many queries are asked at once, and how much more of ε one may get than another.
MAX_SEVERAL = 100
MAX_SHARE = 10**9

# Squares of grid points, added over any table there is, stay within 127 bits.
MAX_SQUARED_WIDTH = 2**31
# What one record adds to a product of several clamps is a 64-bit integer everywhere.
MAX_PRODUCT = 2**62
MAX_CROSSED = 1_024
MAX_WEIGHT = 2**128

MAX_VALUES = 10_000

# In how many steps a quotient is released, and in how many a centre may divide a grid step.
MAX_FINENESS = 2**48
MAX_DIVISION = 2**20


class Primitive(ABC):
    """What everybody must know of a query, and nobody may assume."""

    @property
    @abstractmethod
    def statistic(self) -> Statistic:
        """What is measured of the data."""

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """Δ: the most that one record can change, in L1 or, of scores, in L∞."""

    @property
    @abstractmethod
    def mechanism(self) -> Tag["laplace", "choice", "quotient"]:
        """How what is released is drawn."""

    @property
    @abstractmethod
    def monotone(self) -> bool:
        """Whether one more record moves all integers, or scores, in one direction."""

    @property
    @abstractmethod
    def integers(self) -> int:
        """How many integers are released."""

    @property
    @abstractmethod
    def passes(self) -> int:
        """How often drawing goes over the statistic."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """BadQuery unless it makes sense for records of this schema."""


class Noisy(Primitive):
    """A query that gets noise on every one of its integers.

    At ε it is discrete Laplace noise of scale Δ/ε. At ρ it is discrete Gaussian
    noise of σ² = Δ₂²/(2ρ): Δ₂ is the most that one record can change in L2.
    """

    mechanism = "laplace"

    @property
    @abstractmethod
    def squared(self) -> int:
        """Δ₂²: the most that one record can change, in L2 and squared."""

    @abstractmethod
    def exact(self, measured: Integers) -> list[int]:
        """The integers that get noise, from the statistic."""


def all_of_it(query: Noisy, measured: Integers) -> list[int]:
    """The statistic itself gets noise, zeros included: many parts can be drawn for as they are measured."""
    return dense(query.statistic, measured)


class Choices(NamedTuple):
    """What one is chosen of: runs (first, last, score) of equal scores, and their sensitivity."""

    runs: list[tuple[int, int, int]]
    sensitivity: int


class Chosen(Primitive):
    """A query that chooses by scores, once in every pass, each at an equal share of ε."""

    mechanism = "choice"

    @property
    @abstractmethod
    def alone(self) -> bool:
        """Whether what is chosen is released by itself, not as a tuple."""

    @abstractmethod
    def choices(self, measured: Integers) -> Iterator[Choices]:
        """What is chosen of, pass by pass, from the statistic."""


@dataclass(frozen=True)
class Count(Noisy):
    """How many records."""

    op: Tag["count"] = field(default="count", repr=False)

    statistic = Records()
    sensitivity = 1
    squared = 1
    monotone = True
    integers = 1
    passes = 1
    exact = all_of_it

    def check(self, schema: Schema) -> None:
        """Every table can be counted."""


@dataclass(frozen=True)
class Sum(Noisy):
    """The sum of clamped grid points: one record adds at most max(|lower|, |upper|)."""

    of: Clamp
    op: Tag["sum"] = field(default="sum", repr=False)

    integers = 1
    passes = 1
    exact = all_of_it

    @property
    def statistic(self) -> Totals:
        return Totals((self.of,))

    @property
    def sensitivity(self) -> int:
        return self.of.magnitude

    @property
    def squared(self) -> int:
        return self.sensitivity**2

    @property
    def monotone(self) -> bool:
        return of_one_sign((self.of,))

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)


@dataclass(frozen=True)
class Moments(Noisy):
    """The totals of the Bernstein basis of a degree d.

    One record adds exactly Wᵈ in L1, spread over d + 1 coordinates, so each gets
    noise of the whole ε. Degree 1 is the two-halves average (Σ(x − lower),
    Σ(upper − x)), degree 2 gives mean and variance.
    """

    of: Clamp
    degree: int
    op: Tag["moments"] = field(default="moments", repr=False)

    monotone = True
    passes = 1
    exact = all_of_it

    @property
    def statistic(self) -> Bernstein:
        return Bernstein(self.of, self.degree)

    @property
    def sensitivity(self) -> int:
        width: int = self.of.width
        return width if self.degree == 1 else width * width

    @property
    def squared(self) -> int:
        return self.sensitivity**2

    @property
    def integers(self) -> int:
        return self.degree + 1

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)
        if not 1 <= self.degree <= MAX_DEGREE:
            raise BadQuery(f"moments have degree 1 to {MAX_DEGREE}")
        if self.degree == MAX_DEGREE and self.of.width > MAX_SQUARED_WIDTH:
            raise BadQuery(f"bounds too wide for a variance: at most {MAX_SQUARED_WIDTH} steps apart")


@dataclass(frozen=True)
class Summary(Noisy):
    """Moments, and what the records without a value would add to them, Wᵈ each, as one coordinate more.

    A record adds exactly Wᵈ in L1, whether it has a value or not: the number of
    all records, of those with a value, their sum, average and, of degree 2,
    variance come from one measurement at the whole ε.
    """

    of: Clamp
    degree: int
    op: Tag["summary"] = field(default="summary", repr=False)

    monotone = True
    passes = 1
    exact = all_of_it

    @property
    def statistic(self) -> Bernstein:
        return Bernstein(self.of, self.degree, missing=True)

    @property
    def sensitivity(self) -> int:
        return Moments(self.of, self.degree).sensitivity

    @property
    def squared(self) -> int:
        return self.sensitivity**2

    @property
    def integers(self) -> int:
        return self.degree + 2

    def check(self, schema: Schema) -> None:
        Moments(self.of, self.degree).check(schema)


@dataclass(frozen=True)
class Lagrange(Noisy):
    """The totals of the Lagrange basis of degree 2 at both bounds and their middle: for a variance at ρ.

    With t = x − lower a record adds (W − t)(W − 2t), 4t(W − t), t(2t − W). Together they are
    W², and in L2 never more: W⁴·(1 − 6y + 24y²) with y = t(W − t)/W² ≤ ¼. Less noise comes
    of them into a variance than of `Moments` where the average is central, up to half.
    """

    of: Clamp
    op: Tag["lagrange"] = field(default="lagrange", repr=False)

    integers = 3
    passes = 1

    @property
    def statistic(self) -> Bernstein:
        return Bernstein(self.of, 2)

    @property
    def sensitivity(self) -> int:
        """In L1 a record adds W² + 2t(W − 2t) up to the middle, the most about W/4."""
        w: int = self.of.width
        return max(w * w + 2 * t * (w - 2 * t) for t in (w // 4, w // 4 + 1))

    @property
    def monotone(self) -> bool:
        return bool(self.of.width <= 1)

    @property
    def squared(self) -> int:
        fourth: int = self.of.width**4
        return fourth

    def check(self, schema: Schema) -> None:
        Moments(self.of, 2).check(schema)

    def exact(self, measured: Integers) -> list[int]:
        """From the Bernstein basis, whose middle coordinate is even."""
        below, twice, above = dense(self.statistic, measured)
        return [below - twice // 2, 2 * twice, above - twice // 2]


@dataclass(frozen=True)
class Offset(Noisy):
    """Σ(2x − lower − upper), which is within ± W for a record, and W for each record without a value.

    One or the other, so W in L1: beside a count of all records it gives their
    average at half the noise of Σ(x − lower) or Σ(upper − x).
    """

    of: Clamp
    op: Tag["offset"] = field(default="offset", repr=False)

    integers = 2
    passes = 1

    @property
    def statistic(self) -> Bernstein:
        return Bernstein(self.of, 1, missing=True)

    @property
    def sensitivity(self) -> int:
        width: int = self.of.width
        return width

    @property
    def squared(self) -> int:
        return self.sensitivity**2

    @property
    def monotone(self) -> bool:
        return not self.of.width

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)

    def exact(self, measured: Integers) -> list[int]:
        """Above less below, and what is missing."""
        below, above, missing = dense(self.statistic, measured)
        return [above - below, missing]


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


@dataclass(frozen=True)
class Tally(Noisy):
    """How many records have each of several values: these differ, so one record adds 1 to one of them."""

    value: Expression
    values: tuple[Literal, ...]
    op: Tag["tally"] = field(default="tally", repr=False)

    sensitivity = 1
    squared = 1
    monotone = True
    passes = 1
    exact = all_of_it

    @property
    def statistic(self) -> Totals:
        same = (Apply("equal", (self.value, value)) for value in self.values)
        return Totals(tuple(Clamp(Apply("to_int64", (each,)), 0, 1) for each in same))

    @property
    def integers(self) -> int:
        return len(self.values)

    def check(self, schema: Schema) -> None:
        type_ = type_of(self.value, schema)
        if not 1 <= len(self.values) <= MAX_VALUES:
            raise BadQuery(f"1 to {MAX_VALUES} values are counted in one query")
        if any(value.type is not type_ or value.value is None for value in self.values):
            raise BadQuery(f"the values that are counted must be {type_.value}, as what is counted is")
        if len({value.value for value in self.values}) < len(self.values):
            raise BadQuery("the values that are counted must be different from one another")
        check_clamp(self.statistic.of[0], schema)


@dataclass(frozen=True)
class Frequencies(Noisy):
    """How many records have each grid point: one record adds 1 to one of them."""

    of: Clamp
    op: Tag["frequencies"] = field(default="frequencies", repr=False)

    sensitivity = 1
    squared = 1
    monotone = True
    passes = 1
    exact = all_of_it

    @property
    def statistic(self) -> Points:
        return Points(self.of)

    @property
    def integers(self) -> int:
        return self.of.width + 1

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)
        if self.of.width >= MAX_BINS:
            raise BadQuery(f"at most {MAX_BINS} frequencies in one query: take a coarser step")


@dataclass(frozen=True)
class Tree(Noisy):
    """How many records have each grid point, and are in each group of b, b², … of them, b the branching.

    The groups of one level are disjoint, so a record adds 1 to one node of every
    level: its L1 sensitivity is the number of levels, the height. In return a
    range of many points is a few nodes.
    """

    of: Clamp
    branching: int
    height: int
    op: Tag["tree"] = field(default="tree", repr=False)

    monotone = True

    @property
    def statistic(self) -> Points:
        return Points(self.of)

    @property
    def sensitivity(self) -> int:
        return self.height

    @property
    def squared(self) -> int:
        return self.height

    @property
    def integers(self) -> int:
        return sum(self.sizes())

    @property
    def passes(self) -> int:
        return self.height

    def check(self, schema: Schema) -> None:
        Frequencies(self.of).check(schema)
        if not (2 <= self.branching <= MAX_BINS and 1 <= self.height <= MAX_BINS.bit_length()):
            raise BadQuery("a tree branches into 2 or more and has 1 to 25 levels")

    def sizes(self) -> tuple[int, ...]:
        """How many nodes each level has, from the grid points up. A last group may be smaller."""
        points = self.of.width + 1
        return tuple(-(-points // self.branching**level) for level in range(self.height))

    def exact(self, measured: Integers) -> list[int]:
        """How many records every node has, level after level from the grid points up."""
        nodes: list[int] = []
        for level, size in enumerate(self.sizes()):
            group = [0] * size
            for point, number in measured.items():
                group[(point - self.of.lower) // self.branching**level] += number
            nodes += group
        return nodes


@dataclass(frozen=True)
class Rank(Chosen):
    """Choose the grid point nearest to a fraction of the records: order statistics and quantiles.

    With fraction a/b, point x scores −max((b − a)·#below, a·#above). One more
    record lowers each score by at most max(a, b − a) and raises none: the scores
    are monotone.
    """

    of: Clamp
    fraction: Fraction
    op: Tag["rank"] = field(default="rank", repr=False)

    monotone = True
    integers = 1
    passes = 1
    alone = True

    @property
    def statistic(self) -> Points:
        return Points(self.of)

    @property
    def sensitivity(self) -> int:
        a, b = self.fraction.numerator, self.fraction.denominator
        return max(a, b - a)

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)
        check_fraction(self.fraction)

    def each(self) -> tuple["Rank", ...]:
        """The one choice there is."""
        return (self,)

    def choices(self, measured: Integers) -> Iterator[Choices]:
        yield Choices(self.scores(measured), self.sensitivity)

    def scores(self, measured: Integers) -> list[tuple[int, int, int]]:
        """Every grid point with its score, as runs (first, last, score) of equal scores."""
        a, b = self.fraction.numerator, self.fraction.denominator
        below, above = 0, sum(measured.values())
        runs: list[tuple[int, int, int]] = []
        free = self.of.lower
        for point in sorted(measured):
            if free < point:
                runs.append((free, point - 1, -max((b - a) * below, a * above)))
            above -= measured[point]
            runs.append((point, point, -max((b - a) * below, a * above)))
            below += measured[point]
            free = point + 1
        if free <= self.of.upper:
            runs.append((free, self.of.upper, -max((b - a) * below, a * above)))
        return runs


def check_fraction(fraction: Fraction) -> None:
    """BadQuery unless it is one of the records."""
    if not 0 <= fraction <= 1 or fraction.denominator > MAX_RANKS:
        raise BadQuery(f"a fraction of the records is between 0 and 1, in steps of 1/{MAX_RANKS}")


@dataclass(frozen=True)
class Ranks(Chosen):
    """Choose a grid point for each of several fractions, as Rank does, each at an equal share of ε.

    Every choice has scores and a sensitivity of its own; the largest is stated.
    """

    of: Clamp
    fractions: tuple[Fraction, ...]
    op: Tag["ranks"] = field(default="ranks", repr=False)

    monotone = True
    alone = False

    @property
    def statistic(self) -> Points:
        return Points(self.of)

    @property
    def sensitivity(self) -> int:
        return max(rank.sensitivity for rank in self.each())

    @property
    def integers(self) -> int:
        return len(self.fractions)

    @property
    def passes(self) -> int:
        return len(self.fractions)

    def each(self) -> tuple[Rank, ...]:
        """The choices one by one."""
        return tuple(Rank(self.of, fraction) for fraction in self.fractions)

    def check(self, schema: Schema) -> None:
        if not 1 <= len(self.fractions) <= MAX_FRACTIONS:
            raise BadQuery(f"1 to {MAX_FRACTIONS} fractions in one query")
        check_clamp(self.of, schema)
        for fraction in self.fractions:
            check_fraction(fraction)

    def choices(self, measured: Integers) -> Iterator[Choices]:
        for rank in self.each():
            yield from rank.choices(measured)


@dataclass(frozen=True)
class Brackets(Chosen):
    """Choose a grid point for each of several fractions, as Rank does, and one on either side of it.

    The lower one is chosen as if so many more records were at the lower bound, the
    upper one as if they were at the upper bound. Those are public and always
    there, so that one more record moves the scores as it moves Rank's. All choices
    are made at an equal share of ε: lower, middle, upper, fraction by fraction.
    """

    of: Clamp
    fractions: tuple[Fraction, ...]
    below: tuple[int, ...]
    above: tuple[int, ...]
    op: Tag["brackets"] = field(default="brackets", repr=False)

    monotone = True
    alone = False

    @property
    def statistic(self) -> Points:
        return Points(self.of)

    @property
    def sensitivity(self) -> int:
        return max(rank.sensitivity for rank in self.each())

    @property
    def integers(self) -> int:
        return 3 * len(self.fractions)

    @property
    def passes(self) -> int:
        return 3 * len(self.fractions)

    def each(self) -> tuple[Rank, ...]:
        """The fractions one by one."""
        return Ranks(self.of, self.fractions).each()

    def beside(self) -> Iterator[tuple[Rank, int, int]]:
        """The choices one by one: a rank, where more records are, and how many."""
        for rank, below, above in zip(self.each(), self.below, self.above, strict=True):
            yield from ((rank, self.of.lower, below), (rank, self.of.lower, 0), (rank, self.of.upper, above))

    def check(self, schema: Schema) -> None:
        Ranks(self.of, self.fractions).check(schema)
        if not len(self.below) == len(self.above) == len(self.fractions):
            raise BadQuery("a bracket needs a number of records below and one above for each fraction")
        if not all(0 <= number <= MAX_BESIDE for number in (*self.below, *self.above)):
            raise BadQuery(f"beside the records there are 0 to {MAX_BESIDE} more")

    def choices(self, measured: Integers) -> Iterator[Choices]:
        for rank, point, number in self.beside():
            yield from rank.choices(with_more(measured, point, number))


def with_more(measured: Integers, point: int, number: int) -> Integers:
    """What was measured, if there were more records at a point."""
    return {**measured, point: measured.get(point, 0) + number} if number else measured


@dataclass(frozen=True)
class Depth(Chosen):
    """Choose the grid point where a number of records, counted from below, is reached: an outer quantile.

    Point x scores 0 where the number lies between how many are below x and how
    many are up to it, x included, and else minus what is missing:
    −max(0, #below − number, number − #upto). One more record changes each score
    by at most 1, up or down.
    """

    of: Clamp
    records: int
    op: Tag["depth"] = field(default="depth", repr=False)

    sensitivity = 1
    monotone = False
    integers = 1
    passes = 1
    alone = True

    @property
    def statistic(self) -> Points:
        return Points(self.of)

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)
        if not 0 <= self.records <= MAX_RANKS:
            raise BadQuery(f"a number of records is a whole number, 0 to {MAX_RANKS}")

    def choices(self, measured: Integers) -> Iterator[Choices]:
        below, free = 0, self.of.lower
        runs: list[tuple[int, int, int]] = []
        for point in sorted(measured):
            if free < point:
                runs.append((free, point - 1, -abs(below - self.records)))
            upto = below + measured[point]
            runs.append((point, point, -max(0, below - self.records, self.records - upto)))
            below, free = upto, point + 1
        if free <= self.of.upper:
            runs.append((free, self.of.upper, -abs(below - self.records)))
        yield Choices(runs, self.sensitivity)


@dataclass(frozen=True)
class Choice(Chosen):
    """Choose the candidate with the largest total score: PINQ's exponential mechanism.

    A record adds a clamped integer to every candidate's score. The scores are
    monotone if no record can add a negative one, or none a positive one.
    """

    of: tuple[Clamp, ...]
    op: Tag["choice"] = field(default="choice", repr=False)

    integers = 1
    passes = 1
    alone = True

    @property
    def statistic(self) -> Totals:
        return Totals(self.of)

    @property
    def sensitivity(self) -> int:
        return max(clamp.magnitude for clamp in self.of)

    @property
    def monotone(self) -> bool:
        return of_one_sign(self.of)

    def check(self, schema: Schema) -> None:
        if not self.of:
            raise BadQuery("a choice needs one or more candidates")
        for clamp in self.of:
            check_clamp(clamp, schema)

    def choices(self, measured: Integers) -> Iterator[Choices]:
        scores = enumerate(dense(self.statistic, measured))
        yield Choices([(candidate, candidate, score) for candidate, score in scores], self.sensitivity)


class Parts(NamedTuple):
    """What is there of a total and what is missing: of one record, together always the same."""

    above: int
    below: int


@dataclass(frozen=True)
class Balance(Primitive):
    """(above − below)/the larger of the two, in steps of 1/fineness: which share of a total is above.

    A record is a number q from 0 to the largest it can be, Q; it adds q above and
    Q − q below. What is divided gets noise, what it is divided by is exact
    (`noise/quotient.py` says why that is private). Either part is taken to be at
    least so large; of a side with 0, nothing is told but that it is that side.

    q is x − lower, for an average; or the square of x − about, for a variance.
    """

    of: Clamp
    fineness: int
    least_above: int
    least_below: int
    about: Fraction | None = None
    op: Tag["balance"] = field(default="balance", repr=False)

    mechanism = "quotient"
    monotone = False
    integers = 1
    passes = 1

    @property
    def statistic(self) -> Bernstein:
        return Bernstein(self.of, 1 if self.about is None else 2)

    @property
    def largest(self) -> int:
        """Q: what a record adds to both parts together."""
        if self.about is None:
            width: int = self.of.width
            return width
        return max(self._offset(self.of.lower) ** 2, self._offset(self.of.upper) ** 2)

    @property
    def sensitivity(self) -> int:
        return self.fineness * self.largest

    def check(self, schema: Schema) -> None:
        Moments(self.of, self.statistic.degree).check(schema)
        if not self.of.width:
            raise BadQuery("a balance needs bounds that are apart")
        if not 1 <= self.fineness <= MAX_FINENESS:
            raise BadQuery(f"a balance is released in 1 to {MAX_FINENESS} steps")
        if min(self.least_above, self.least_below) < 0 or not self.least_above + self.least_below:
            raise BadQuery("a balance needs to know how large its parts are at the least, 0 for one at most")
        if self.about is not None and (
            self.about.denominator > MAX_DIVISION or not self.of.lower <= self.about <= self.of.upper
        ):
            raise BadQuery(f"squares are about a point within the bounds, in steps of 1/{MAX_DIVISION}")

    def parts(self, measured: Integers) -> Parts:
        """Σq and Σ(Q − q), exactly, from the statistic."""
        sums = dense(self.statistic, measured)
        if self.about is None:
            return Parts(sums[1], sums[0])
        width, r, start = self.of.width, self.about.denominator, self._offset(self.of.lower)
        records, total = sum(sums) // width**2, (sums[1] + 2 * sums[2]) // (2 * width)  # n, Σ(x − lower)
        above = r * r * sums[2] + 2 * r * start * total + start * start * records
        return Parts(above, records * self.largest - above)

    def _offset(self, point: int) -> int:
        """A grid point's distance from the centre, in parts of a step."""
        assert self.about is not None
        return point * self.about.denominator - self.about.numerator


def of_one_sign(clamps: tuple[Clamp, ...]) -> bool:
    """Whether no record can add a negative integer, or none a positive one."""
    return all(clamp.lower >= 0 for clamp in clamps) or all(clamp.upper <= 0 for clamp in clamps)


SimpleQuery = (
    Count
    | Sum
    | Moments
    | Summary
    | Lagrange
    | Offset
    | CrossMoments
    | Tally
    | Frequencies
    | Tree
    | Rank
    | Ranks
    | Brackets
    | Depth
    | Choice
    | Balance
)


@dataclass(frozen=True)
class Several:
    """Several queries of the same records, each at its share of ε: its weight among all of them.

    The shares add up to 1, so the whole is ε-private as each is at its share. What
    is released are the integers of one after the other.
    """

    of: tuple[SimpleQuery, ...]
    weights: tuple[int, ...]
    op: Tag["several"] = field(default="several", repr=False)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """Which part of ε each is asked at."""
        return tuple(Fraction(weight, sum(self.weights)) for weight in self.weights)

    def check(self, schema: Schema) -> None:
        """BadQuery unless all of them make sense, and have a share each."""
        if not 1 <= len(self.of) <= MAX_SEVERAL or len(self.weights) != len(self.of):
            raise BadQuery(f"1 to {MAX_SEVERAL} queries are asked at once, with a weight each")
        if not all(1 <= weight <= MAX_SHARE for weight in self.weights):
            raise BadQuery(f"the weight of a query is a whole number, 1 to {MAX_SHARE}")
        for query in self.of:
            query.check(schema)


PrimitiveQuery = SimpleQuery | Several


def simple(query: PrimitiveQuery) -> tuple[SimpleQuery, ...]:
    """What a query is made of: itself, unless it is several."""
    return query.of if isinstance(query, Several) else (query,)


def shares(query: PrimitiveQuery) -> tuple[Fraction, ...]:
    """At which part of ε each of them is asked."""
    return query.shares if isinstance(query, Several) else (Fraction(1),)
