"""Primitive queries: a statistic of a bag, with its sensitivity.

A statistic is a vector of exact integers that adds up over records: record r
adds φ(r). Its *sensitivity* is the most that one record can add, in L1 where
discrete Laplace noise is added to every coordinate, in L∞ where the
coordinates are scores to choose by. Nothing else touches data: what becomes of
the noisy integers is post-processing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import Literal as Tag

from fpinq.model.clamps import Clamp, check_clamp, quantise
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Row, Schema

MAX_DEGREE = 2

MAX_BINS = 2**24
MAX_RANKS = 10**18

MAX_FRACTIONS = 1_000

# Squares of grid points, added over any table there is, stay within 127 bits.
MAX_SQUARED_WIDTH = 2**31


@dataclass(frozen=True)
class Count:
    """How many records: φ(r) = 1."""

    op: Tag["count"] = field(default="count", repr=False)

    mechanism = "laplace"
    sensitivity = 1

    def check(self, schema: Schema) -> None:
        """Every table can be counted."""

    def contribution(self, row: Row) -> dict[int, int]:
        return {0: 1}


@dataclass(frozen=True)
class Sum:
    """φ(r) = x, a clamped grid point: one record adds at most max(|lower|, |upper|)."""

    of: Clamp
    op: Tag["sum"] = field(default="sum", repr=False)

    mechanism = "laplace"

    @property
    def sensitivity(self) -> int:
        return self.of.magnitude

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)

    def contribution(self, row: Row) -> dict[int, int]:
        return {0: quantise(self.of, row) or 0}


@dataclass(frozen=True)
class Moments:
    """The Bernstein basis of a degree: φ(r)ⱼ = C(d, j)·tʲ·(W − t)ᵈ⁻ʲ with t = x − lower.

    One record adds exactly Wᵈ in L1, spread over d + 1 coordinates, so each gets
    noise of the whole ε. Degree 1 is the two-halves average (Σ(x − lower),
    Σ(upper − x)), degree 2 gives mean and variance.
    """

    of: Clamp
    degree: int
    op: Tag["moments"] = field(default="moments", repr=False)

    mechanism = "laplace"

    @property
    def sensitivity(self) -> int:
        width: int = self.of.width
        return width if self.degree == 1 else width * width

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)
        if not 1 <= self.degree <= MAX_DEGREE:
            raise BadQuery(f"moments have degree 1 to {MAX_DEGREE}")
        if self.degree == MAX_DEGREE and self.of.width > MAX_SQUARED_WIDTH:
            raise BadQuery(f"bounds too wide for a variance: at most {MAX_SQUARED_WIDTH} steps apart")

    def contribution(self, row: Row) -> dict[int, int]:
        x = quantise(self.of, row)
        if x is None:
            return {}
        t, w, d = x - self.of.lower, self.of.width, self.degree
        return {j: comb(d, j) * t**j * (w - t) ** (d - j) for j in range(d + 1)}


@dataclass(frozen=True)
class Frequencies:
    """How many records have each grid point: φ(r) is 1 at x and 0 elsewhere. Sparse: zeros are left out."""

    of: Clamp
    op: Tag["frequencies"] = field(default="frequencies", repr=False)

    mechanism = "laplace"
    sensitivity = 1

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)
        if self.of.width >= MAX_BINS:
            raise BadQuery(f"at most {MAX_BINS} frequencies in one query: take a coarser step")

    def contribution(self, row: Row) -> dict[int, int]:
        x = quantise(self.of, row)
        return {} if x is None else {x: 1}


@dataclass(frozen=True)
class Tree:
    """How many records have each grid point, and are in each group of b, b², … of them, b the branching.

    From the frequencies. The groups of one level are disjoint, so a record adds 1
    to one node of every level: its L1 sensitivity is the number of levels, the
    height. In return a range of many points is a few nodes.
    """

    of: Clamp
    branching: int
    height: int
    op: Tag["tree"] = field(default="tree", repr=False)

    mechanism = "laplace"

    @property
    def sensitivity(self) -> int:
        return self.height

    def check(self, schema: Schema) -> None:
        Frequencies(self.of).check(schema)
        if not (2 <= self.branching <= MAX_BINS and 1 <= self.height <= MAX_BINS.bit_length()):
            raise BadQuery("a tree branches into 2 or more and has 1 to 25 levels")

    def contribution(self, row: Row) -> dict[int, int]:
        return Frequencies(self.of).contribution(row)

    def sizes(self) -> tuple[int, ...]:
        """How many nodes each level has, from the grid points up. A last group may be smaller."""
        points = self.of.width + 1
        return tuple(-(-points // self.branching**level) for level in range(self.height))

    def nodes(self, frequencies: Mapping[int, int]) -> list[int]:
        """How many records every node has, level after level from the grid points up."""
        nodes: list[int] = []
        for level, size in enumerate(self.sizes()):
            group = [0] * size
            for point, number in frequencies.items():
                group[(point - self.of.lower) // self.branching**level] += number
            nodes += group
        return nodes


@dataclass(frozen=True)
class Rank:
    """Choose the grid point nearest to a fraction of the records: order statistics and quantiles.

    From the frequencies, with fraction a/b, point x scores
    −max((b − a)·#below, a·#above). One more record lowers each score by at most
    max(a, b − a) and raises none: the scores are monotone.
    """

    of: Clamp
    fraction: Fraction
    op: Tag["rank"] = field(default="rank", repr=False)

    mechanism = "choice"

    @property
    def sensitivity(self) -> int:
        a, b = self.fraction.numerator, self.fraction.denominator
        return max(a, b - a)

    def check(self, schema: Schema) -> None:
        check_clamp(self.of, schema)
        if not 0 <= self.fraction <= 1 or self.fraction.denominator > MAX_RANKS:
            raise BadQuery(f"a fraction of the records is between 0 and 1, in steps of 1/{MAX_RANKS}")

    def contribution(self, row: Row) -> dict[int, int]:
        return Frequencies(self.of).contribution(row)

    def scores(self, frequencies: Mapping[int, int]) -> list[tuple[int, int, int]]:
        """Every grid point with its score, as runs (first, last, score) of equal scores."""
        a, b = self.fraction.numerator, self.fraction.denominator
        below, above = 0, sum(frequencies.values())
        runs: list[tuple[int, int, int]] = []
        free = self.of.lower
        for point in sorted(frequencies):
            if free < point:
                runs.append((free, point - 1, -max((b - a) * below, a * above)))
            above -= frequencies[point]
            runs.append((point, point, -max((b - a) * below, a * above)))
            below += frequencies[point]
            free = point + 1
        if free <= self.of.upper:
            runs.append((free, self.of.upper, -max((b - a) * below, a * above)))
        return runs


@dataclass(frozen=True)
class Ranks:
    """Choose a grid point for each of several fractions, as Rank does, each at an equal share of ε.

    Every choice has scores and a sensitivity of its own; the largest is stated.
    """

    of: Clamp
    fractions: tuple[Fraction, ...]
    op: Tag["ranks"] = field(default="ranks", repr=False)

    mechanism = "choice"

    @property
    def sensitivity(self) -> int:
        return max(rank.sensitivity for rank in self.each())

    def each(self) -> tuple[Rank, ...]:
        """The choices one by one."""
        return tuple(Rank(self.of, fraction) for fraction in self.fractions)

    def check(self, schema: Schema) -> None:
        if not 1 <= len(self.fractions) <= MAX_FRACTIONS:
            raise BadQuery(f"1 to {MAX_FRACTIONS} fractions in one query")
        for rank in self.each():
            rank.check(schema)

    def contribution(self, row: Row) -> dict[int, int]:
        return Frequencies(self.of).contribution(row)


@dataclass(frozen=True)
class Choice:
    """Choose the candidate with the largest total score: PINQ's exponential mechanism.

    Candidate c scores Σ φ(r)_c, a clamped integer per record.
    """

    of: tuple[Clamp, ...]
    op: Tag["choice"] = field(default="choice", repr=False)

    mechanism = "choice"

    @property
    def sensitivity(self) -> int:
        return max(clamp.magnitude for clamp in self.of)

    def check(self, schema: Schema) -> None:
        if not self.of:
            raise BadQuery("a choice needs one or more candidates")
        for clamp in self.of:
            check_clamp(clamp, schema)

    def contribution(self, row: Row) -> dict[int, int]:
        return {j: quantise(clamp, row) or 0 for j, clamp in enumerate(self.of)}


# The exact statistic of a bag: coordinate ↦ total. Coordinates that are not there are 0.
Statistic = Mapping[int, int]
PrimitiveQuery = Count | Sum | Moments | Frequencies | Tree | Rank | Ranks | Choice


def measured(query: PrimitiveQuery) -> PrimitiveQuery:
    """The query whose statistic this one is made of: all that an engine needs to know of it."""
    return Frequencies(query.of) if isinstance(query, Tree | Rank | Ranks) else query
