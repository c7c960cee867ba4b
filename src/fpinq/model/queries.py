"""Primitive queries: what is measured, how much one record can change it, and what is released.

A query is one place where everybody looks: engines are asked for its
statistic, drawing goes by its sensitivity, its mechanism and whether its scores
are monotone, limits by how many integers it releases and how often it goes over
the statistic. None of these has a default, so a new query cannot be forgotten
anywhere. They are those of a query that passed its check.

The *sensitivity* is the most that one record can change the integers: in L1
where discrete Laplace noise is added to every one of them, in L∞ where they are
scores to choose by. Nothing else touches data: what becomes of what is
released is post-processing.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal as Tag
from typing import NamedTuple

from fpinq.model.clamps import Clamp, check_clamp
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Schema
from fpinq.model.statistics import Bernstein, Integers, Points, Records, Statistic, Totals, dense

MAX_DEGREE = 2

MAX_BINS = 2**24
MAX_RANKS = 10**18

MAX_FRACTIONS = 1_000

# Squares of grid points, added over any table there is, stay within 127 bits.
MAX_SQUARED_WIDTH = 2**31


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
    def mechanism(self) -> Tag["laplace", "choice"]:
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
    """A query that gets discrete Laplace noise of scale Δ/ε on every one of its integers."""

    mechanism = "laplace"

    @abstractmethod
    def exact(self, measured: Integers) -> list[int]:
        """The integers that get noise, from the statistic."""


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
    monotone = True
    integers = 1
    passes = 1

    def check(self, schema: Schema) -> None:
        """Every table can be counted."""

    def exact(self, measured: Integers) -> list[int]:
        return dense(self.statistic, measured)


@dataclass(frozen=True)
class Sum(Noisy):
    """The sum of clamped grid points: one record adds at most max(|lower|, |upper|)."""

    of: Clamp
    op: Tag["sum"] = field(default="sum", repr=False)

    integers = 1
    passes = 1

    @property
    def statistic(self) -> Totals:
        return Totals((self.of,))

    @property
    def sensitivity(self) -> int:
        return self.of.magnitude

    @property
    def monotone(self) -> bool:
        return of_one_sign((self.of,))

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)

    def exact(self, measured: Integers) -> list[int]:
        return dense(self.statistic, measured)


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

    @property
    def statistic(self) -> Bernstein:
        return Bernstein(self.of, self.degree)

    @property
    def sensitivity(self) -> int:
        width: int = self.of.width
        return width if self.degree == 1 else width * width

    @property
    def integers(self) -> int:
        return self.degree + 1

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)
        if not 1 <= self.degree <= MAX_DEGREE:
            raise BadQuery(f"moments have degree 1 to {MAX_DEGREE}")
        if self.degree == MAX_DEGREE and self.of.width > MAX_SQUARED_WIDTH:
            raise BadQuery(f"bounds too wide for a variance: at most {MAX_SQUARED_WIDTH} steps apart")

    def exact(self, measured: Integers) -> list[int]:
        return dense(self.statistic, measured)


@dataclass(frozen=True)
class Frequencies(Noisy):
    """How many records have each grid point: one record adds 1 to one of them."""

    of: Clamp
    op: Tag["frequencies"] = field(default="frequencies", repr=False)

    sensitivity = 1
    monotone = True
    passes = 1

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

    def exact(self, measured: Integers) -> list[int]:
        return dense(self.statistic, measured)


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
        if not 0 <= self.fraction <= 1 or self.fraction.denominator > MAX_RANKS:
            raise BadQuery(f"a fraction of the records is between 0 and 1, in steps of 1/{MAX_RANKS}")

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
        for rank in self.each():
            rank.check(schema)

    def choices(self, measured: Integers) -> Iterator[Choices]:
        for rank in self.each():
            yield from rank.choices(measured)


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


def of_one_sign(clamps: tuple[Clamp, ...]) -> bool:
    """Whether no record can add a negative integer, or none a positive one."""
    return all(clamp.lower >= 0 for clamp in clamps) or all(clamp.upper <= 0 for clamp in clamps)


PrimitiveQuery = Count | Sum | Moments | Frequencies | Tree | Rank | Ranks | Choice
