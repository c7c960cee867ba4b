"""Queries that choose by scores: order statistics, outer quantiles, the exponential mechanism.

The sensitivity is the most that one record can change a score.
"""

from collections.abc import Iterator
from dataclasses import field
from fractions import Fraction
from typing import Literal as Tag

from fpinq.model.clamps import Clamp, check_clamp
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Schema
from fpinq.model.frozen import dataclass
from fpinq.model.kinds import Choices, Chosen, of_one_sign
from fpinq.model.statistics import Integers, Points, Totals, dense

MAX_RANKS = 10**18
MAX_FRACTIONS = 1_000
# More records than anybody has.
MAX_BESIDE = 2**40


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
