"""Queries about where values lie: histograms, ranges, cumulative distributions, bounds.

All of them are one partition into bins: a record is in one bin.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

from fpinq.client.answers import Answer, Answers, Charged, Made
from fpinq.client.bounds import clamp, exact_bounds
from fpinq.client.queries import Inquiry, Prepared, column_of, integers, laplace_noise
from fpinq.client.rows import FLOAT64, INT64, Cell, constant, plain
from fpinq.client.shorthand import if_else
from fpinq.client.spelling import spell
from fpinq.client.subjects import Subject
from fpinq.client.trees import CountTree, best_tree, mean_variance
from fpinq.client.uncertainty import (
    ChosenCandidate,
    Expected,
    GaussianNoise,
    LaplaceNoise,
    Normal,
    RangeNoise,
)
from fpinq.model import queries as primitives
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import BadQuery
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho
from fpinq.noise import DiscreteLaplace
from fpinq.runtime import Released

# What a bin is called: an integer, or the edges it lies between.
Label = int | tuple[int | float, int | float]


class BinAnswers(Answers):
    """How many records each bin has, and each range of bins."""

    is_one_key = True

    def __init__(
        self,
        answers: Mapping[Any, Answer],
        epsilon: Fraction | Rho,
        charged: Charged,
        tree: CountTree,
        scale: Fraction | GaussianNoise,
        of: str = "",
    ) -> None:
        super().__init__(answers, epsilon, charged, ("bin_lower", "bin_upper"))
        self._of = of
        self._tree = tree
        self._scale = scale

    def keyed(self, key: Any) -> dict[str, Any]:
        """Where a bin begins and ends; an integer is from itself to itself."""
        lower, upper = key if isinstance(key, tuple) else (key, key)
        return {"bin_lower": lower, "bin_upper": upper}

    def shown_columns(self) -> tuple[str, ...]:
        return (self._of or "bin",)

    def shown_key(self, key: Any) -> tuple[str, ...]:
        return (f"{key[0]} to {key[1]}" if isinstance(key, tuple) else str(key),)

    def range(self, lower: object = None, upper: object = None) -> Answer:
        """How many records lie from lower to upper, one end or both left open with None.

        Where the bins are integers, lower and upper are both counted in. Between
        edges, they are edges, and upper itself belongs to the next range.
        """
        labels = list(self)
        if isinstance(labels[0], tuple):
            edges = [labels[0][0], *(end for _, end in labels)]
            first = 0 if lower is None else _position(edges, lower)
            last = len(labels) if upper is None else _position(edges, upper)
        else:
            first = 0 if lower is None else _position(labels, lower)
            last = len(labels) if upper is None else _position(labels, upper) + 1
        if first >= last:
            raise BadQuery("an empty range: lower must be below upper")
        values = [answer.value for answer in list(self.values())[first:last]]
        total = sum(values) if all(type(value) is int for value in values) else math.fsum(values)
        noise = RangeNoise(self._tree, first, last, self._scale)
        return Answer(total, self.epsilon, self.charged, noise)


class Distribution(Answers):
    """How many records, or what share of them, are at most each point: it never falls."""


@dataclass(frozen=True)
class Histogram(Inquiry[Answers]):
    """How many records are in each bin; noise as for one count, since a record is in one bin.

    bins is a number of bins of equal width between the bounds (values beyond
    them are counted at the ends), or a list of edges (values beyond them are
    not counted). Without bins, every integer within the bounds is a bin.
    """

    of: object = None
    bounds: object = None
    bins: int | Sequence[object] | None = None

    def column(self) -> str:
        return "n"

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answers]:
        bins = binned(subject, self, "histogram")
        primitive = primitives.Frequencies(bins.index)
        noise = laplace_noise(primitive, epsilon)
        flat = CountTree(len(bins.labels), max(len(bins.labels), 2), 1)

        def read(released: Released, charged: Charged) -> Answers:
            counts = integers(released)
            made = Made(bins.labels, lambda i: Answer(counts[i], epsilon, charged, noise))
            return BinAnswers(made, epsilon, charged, flat, noise.scale or Fraction(0), column_of(self.of))

        return Prepared(primitive, read, lambda size: Expected(noise, note="for each bin"))


@dataclass(frozen=True)
class Ranges(Inquiry[BinAnswers]):
    """Counts of any range of bins: `answers.range(lower, upper)`; bins are those of a histogram.

    Where there are many bins, groups of them are counted too: single bins are then
    less exact than in a histogram, and ranges of many are far more so. Which groups
    depends on the number of bins and on ε alone.
    """

    of: object = None
    bounds: object = None
    bins: int | Sequence[object] | None = None

    def column(self) -> str:
        return "n"

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[BinAnswers]:
        bins = binned(subject, self, "ranges")
        tree = best_tree(len(bins.labels), epsilon)
        primitive = primitives.Tree(bins.index, tree.branching, tree.height)
        scale = tree.height / epsilon

        def read(released: Released, charged: Charged) -> BinAnswers:
            nodes = integers(released)
            counts = nodes if tree.height == 1 else tree.estimates(nodes).tolist()

            def make(i: int) -> Answer:
                return Answer(counts[i], epsilon, charged, RangeNoise(tree, i, i + 1, scale))

            return BinAnswers(Made(bins.labels, make), epsilon, charged, tree, scale, column_of(self.of))

        def expect(size: int | None) -> Expected:
            return Expected(Normal(_deviation(tree, scale)), note="on average over all ranges")

        return Prepared(primitive, read, expect)


def _position(marks: Sequence[object], mark: object) -> int:
    mark = plain(mark)
    if type(mark) not in (int, float) or mark not in marks:
        near = ", ".join(str(m) for m in (*marks[:3], "…", *marks[-2:])) if len(marks) > 5 else marks
        raise BadQuery(f"a range ends where bins do: {near}")
    return marks.index(mark)


def _deviation(tree: CountTree, scale: Fraction, *, points: bool = False) -> float:
    return DiscreteLaplace(scale).standard_deviation * math.sqrt(mean_variance(tree, points=points))


@dataclass(frozen=True)
class Cdf(Inquiry[Answers]):
    """The fraction of records at most each point: never falling, from one histogram.

    Points are every integer within the bounds, or the upper edges of bins. With
    counts=True it gives numbers of records instead of fractions. Groups of bins are
    counted too, where that lowers the error.
    """

    of: object = None
    bounds: object = None
    bins: int | Sequence[object] | None = None
    counts: bool = False

    def column(self) -> str:
        return "n" if self.counts else "fraction"

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answers]:
        bins = binned(subject, self, "cdf")
        points = [label[1] if isinstance(label, tuple) else label for label in bins.labels]
        tree = best_tree(len(points), epsilon, points=True)
        primitive = primitives.Tree(bins.index, tree.branching, tree.height)
        scale = tree.height / epsilon

        def read(released: Released, charged: Charged) -> Answers:
            below = rising(list(accumulate(tree.estimates(integers(released)).tolist())))
            total = max(below[-1], 0.0)

            def make(i: int) -> Answer:
                if self.counts:
                    noise = RangeNoise(tree, 0, i + 1, scale, 1.0, 0.0)
                    return Answer(max(below[i], 0.0), epsilon, charged, noise)
                fraction = min(max(below[i] / total, 0.0), 1.0) if total else (i + 1) / len(points)
                noise = RangeNoise(tree, 0, i + 1, scale, 1 / max(total, 1.0), 0.0, 1.0)
                return Answer(fraction, epsilon, charged, noise)

            return Distribution(Made(points, make), epsilon, charged, (column_of(self.of) or "point",))

        def expect(size: int | None) -> Expected:
            deviation = _deviation(tree, scale, points=True)
            if self.counts:
                return Expected(Normal(deviation), note="on average over the points")
            if size is None:
                return Expected(None, note=f"about {deviation:,.4g} divided by the number of records")
            note = f"on average over the points, if {size:,} records have a value"
            return Expected(Normal(deviation / size), note=note)

        return Prepared(primitive, read, expect)


@dataclass(frozen=True)
class Bins:
    """Which bin a record is in, as a clamped integer, and what the bins are called."""

    index: Clamp
    labels: tuple[Label, ...]


def binned(subject: Subject, query: Histogram | Ranges | Cdf, what: str) -> Bins:
    """The bins of a numeric expression."""
    cell = subject.cell(query.of, what)
    bounds, bins = subject.bounds(cell, query.bounds), query.bins
    if cell.type not in (INT64, FLOAT64):
        raise BadQuery(
            f"bins need a number, and {spell(cell.tree)} is {cell.type.value}; "
            "count the values of a column with keys=[…]"
        )
    if isinstance(bins, Sequence) and not isinstance(bins, str):
        return _between_edges(cell, bins)
    if bounds is None:
        raise BadQuery("a histogram needs bounds=(lower, upper), a list of edges or keys=[…]")
    lower, upper = exact_bounds(bounds)
    if bins is None:
        if cell.type is not INT64:
            raise BadQuery("say how many bins: bins=20")
        whole = clamp(cell, bounds)
        if whole.width >= primitives.MAX_BINS:
            raise BadQuery(f"at most {primitives.MAX_BINS} bins in one query: say how many, such as bins=100")
        return Bins(whole, tuple(range(whole.lower, whole.upper + 1)))
    if type(bins) is not int or not 1 <= bins <= primitives.MAX_BINS or lower == upper:
        raise BadQuery("bins is a number of bins, 1 or more, between bounds that differ; or a list of edges")
    return _equal_bins(cell, lower, upper, bins)


def _equal_bins(cell: Cell, lower: Fraction, upper: Fraction, bins: int) -> Bins:
    edges = [lower + (upper - lower) * i / bins for i in range(bins + 1)]
    if cell.type is INT64 and lower.denominator == upper.denominator == 1:
        within = cell.clip(int(lower), int(upper))
        index = (within - int(lower)) * bins // int(upper - lower)
    else:
        index = (
            ((cell - float(lower)) * (bins / float(upper - lower))).floor().clip(0, bins - 1).cast("int64")
        )
    numbers = [int(edge) if edge.denominator == 1 else float(edge) for edge in edges]
    return Bins(Clamp(index.tree, 0, bins - 1), tuple(pairwise(numbers)))


def _between_edges(cell: Cell, edges: Sequence[object]) -> Bins:
    numbers = [n for n in map(plain, edges) if (type(n) is int or type(n) is float) and math.isfinite(n)]
    if len(numbers) < max(2, len(edges)):
        raise BadQuery("edges must be two or more finite numbers")
    if any(a >= b for a, b in pairwise(numbers)):
        raise BadQuery("edges must be in rising order")
    first, *inner, last = numbers
    index = constant(0)
    if inner:
        index = total_of([(cell >= edge).cast("int64") for edge in inner])
    index = if_else((cell >= first) & (cell <= last), index, None)
    return Bins(Clamp(index.tree, 0, len(inner)), tuple(pairwise(numbers)))


def total_of(cells: Sequence[Cell]) -> Cell:
    """The sum of cells as a shallow tree."""
    if len(cells) == 1:
        return cells[0]
    middle = len(cells) // 2
    return total_of(cells[:middle]) + total_of(cells[middle:])


def rising(numbers: Sequence[float]) -> list[float]:
    """The nearest sequence (in squares) that never falls: pool adjacent violators.

    Means are compared as they are returned: by products, a rounding could leave a step down.
    """
    pools: list[tuple[float, float, int]] = []
    for number in numbers:
        mean = total = float(number)
        size = 1
        while pools and pools[-1][0] > mean:
            _, before, members = pools.pop()
            total, size = total + before, size + members
            mean = total / size
        pools.append((mean, total, size))
    return [mean for mean, _, size in pools for _ in range(size)]


# ── bounds ───────────────────────────────────────────────────────────────────────────

POWERS = 62


@dataclass(frozen=True)
class FindBounds(Inquiry[Answer]):
    """Bounds (lower, upper) for an expression, each 0 or ± a power of two, that leave few records out.

    From one noisy histogram over powers of two: the outermost bins that are
    above the noise. About 8/ε records in one bin may go unnoticed.
    """

    of: object = None

    @property
    def what(self) -> str:
        return "bounds"

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        primitive = self.primitive(subject)
        return self.seen(primitive, laplace_noise(primitive, epsilon), epsilon)

    def primitive(self, subject: Subject) -> primitives.Frequencies:
        """How many records are between powers of two."""
        cell = subject.cell(self.of, "bounds")
        if cell.type not in (INT64, FLOAT64):
            raise BadQuery(f"bounds need a number, and {spell(cell.tree)} is {cell.type.value}")
        powers = [2**k for k in range(POWERS)]
        above = total_of([(cell > power // 2).cast("int64") for power in powers])
        below = total_of([(cell < -(power // 2)).cast("int64") for power in powers])
        return primitives.Frequencies(Clamp((above - below).tree, -POWERS, POWERS))

    def seen(
        self, primitive: primitives.Frequencies, noise: LaplaceNoise | GaussianNoise, at: Amount
    ) -> Prepared[Answer]:
        """What is above this noise."""
        # With probability 0.95 no empty bin gets here.
        threshold = noise.interval(0, _FEW_FALSE)[1]

        def read(released: Released, charged: Charged) -> Answer:
            seen = [i - POWERS for i, n in enumerate(integers(released)) if n > threshold]
            lower, upper = min([*seen, 0]), max([*seen, 0])
            value = (-(2 ** (-lower - 1)) if lower else 0, 2 ** (upper - 1) if upper else 0)
            return Answer(value if seen else (0, 1), at, charged, ChosenCandidate())

        note = f"between two powers of two, about {float(threshold):,.4g} records may go unnoticed"
        return Prepared(primitive, read, lambda size: Expected(None, note=note))


_FEW_FALSE = 1 - Fraction(1, 10 * (2 * POWERS + 1))
