"""Primitive queries: what is measured, how much one record can change it, and what is released.

What everybody must know of a query is in `kinds`. Here are those that get
noise, and the closed set of all; those that choose by scores are in `choices`,
those that find keys in `discovery`.

The *sensitivity* is the most that one record can change the integers: in L1
where discrete Laplace noise is added to every one of them (in L2 where it is
Gaussian), in L∞ where they are scores to choose by. Nothing else touches data: what becomes of what is
released is post-processing.
"""

from dataclasses import field
from fractions import Fraction
from typing import Literal as Tag
from typing import NamedTuple

from fpinq.model.choices import Brackets as Brackets
from fpinq.model.choices import Choice as Choice
from fpinq.model.choices import Depth as Depth
from fpinq.model.choices import Rank as Rank
from fpinq.model.choices import Ranks as Ranks
from fpinq.model.clamps import Clamp, check_clamp
from fpinq.model.crossing import MAX_DEGREE as MAX_DEGREE
from fpinq.model.crossing import CrossMoments as CrossMoments
from fpinq.model.discovery import MAX_BITS_AT_RHO as MAX_BITS_AT_RHO
from fpinq.model.discovery import Discovery as Discovery
from fpinq.model.discovery import Sparse as Sparse
from fpinq.model.discovery import Spread as Spread
from fpinq.model.discovery import Stable as Stable
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Apply, Expression, Literal, Schema
from fpinq.model.frozen import dataclass
from fpinq.model.kinds import Noisy, Primitive, all_of_it, of_one_sign
from fpinq.model.operators import type_of
from fpinq.model.statistics import (
    Bernstein,
    Integers,
    Points,
    Records,
    Totals,
    dense,
)

MAX_BINS = 2**24

# How many queries are asked at once, and how much more of ε one may get than another.
MAX_SEVERAL = 100
MAX_SHARE = 10**9

# Squares of grid points, added over any table there is, stay within 127 bits.
MAX_SQUARED_WIDTH = 2**31

MAX_VALUES = 10_000

# In how many steps a quotient is released, and in how many a centre may divide a grid step.
MAX_FINENESS = 2**48
MAX_DIVISION = 2**20


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
        if self.about is None:
            return Parts(measured.get(1, 0), measured.get(0, 0))
        sums = dense(self.statistic, measured)
        width, r, start = self.of.width, self.about.denominator, self._offset(self.of.lower)
        records, total = sum(sums) // width**2, (sums[1] + 2 * sums[2]) // (2 * width)  # n, Σ(x − lower)
        above = r * r * sums[2] + 2 * r * start * total + start * start * records
        return Parts(above, records * self.largest - above)

    def _offset(self, point: int) -> int:
        """A grid point's distance from the centre, in parts of a step."""
        assert self.about is not None
        return point * self.about.denominator - self.about.numerator


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
    | Sparse
    | Stable
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
            if isinstance(query, Discovery):
                raise BadQuery("keys are found by a query alone: how many integers it releases is not fixed")


PrimitiveQuery = SimpleQuery | Several
# Those that find keys.
FINDING = frozenset({Sparse, Stable})


def simple(query: PrimitiveQuery) -> tuple[SimpleQuery, ...]:
    """What a query is made of: itself, unless it is several."""
    return query.of if isinstance(query, Several) else (query,)


def shares(query: PrimitiveQuery) -> tuple[Fraction, ...]:
    """At which part of ε each of them is asked."""
    return query.shares if isinstance(query, Several) else (Fraction(1),)
