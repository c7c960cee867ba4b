"""Queries: what to ask of a table or of each part, and how noisy integers become an answer.

`table.noisy_average(ε, f, bounds=…)` is `table.query(ε, fp.average(f, bounds=…))`:
there is one implementation of each query, alone, on a part and in parallel.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, islice, pairwise
from typing import Any

from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.bounds import RANK_WIDTH_BITS, Column, clamp, exact_bounds
from fpinq.client.rows import BOOL, FLOAT64, INT64, Cell, Row, Scope, Symbolic, constant, plain
from fpinq.client.shorthand import if_else
from fpinq.client.spelling import spell
from fpinq.client.tracing import checked_cell, trace
from fpinq.client.uncertainty import (
    ChosenCandidate,
    ChosenPoint,
    LaplaceCombination,
    LaplaceNoise,
    Normal,
)
from fpinq.model import expressions
from fpinq.model import queries as primitives
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Schema
from fpinq.model.queries import PrimitiveQuery
from fpinq.runtime import Released

MAX_CANDIDATES = 10_000
NOTHING = Column()


@dataclass(frozen=True)
class Subject:
    """What a query is asked of, as far as it is public: the columns and what is known of them."""

    schema: Schema
    columns: Mapping[str, Column] = field(default_factory=dict)

    def cell(self, f: Any, what: str) -> Cell:
        """The expression f gives; without f, the table's only column."""
        if f is None:
            if len(self.schema.columns) != 1:
                raise BadQuery(f"{what} needs a function that says of what, such as lambda x: x.age")
            f = self.schema.names()[0]
        if isinstance(f, Cell):
            return f  # traced already
        scope = Scope()
        return checked_cell(trace(f, Row(self.schema, scope)), scope, what)

    def bounds(self, cell: Cell, bounds: object) -> object:
        """The bounds given, or those that are known of a plain column."""
        return self.known(cell).bounds if bounds is None else bounds

    def known(self, cell: Cell) -> Column:
        """What is known of an expression: nothing, unless it is a plain column."""
        tree = cell._tree
        return self.columns.get(tree.name, NOTHING) if isinstance(tree, expressions.Column) else NOTHING


Reader = Callable[[Released, Fraction, Charged], Any]


@dataclass(frozen=True)
class Prepared:
    """A primitive query, and how to read what it releases."""

    primitive: PrimitiveQuery
    read: Reader


class Query(ABC):
    """A question that can be asked of a table or of each part of a partition."""

    @abstractmethod
    def prepare(self, subject: Subject) -> Prepared:
        """The primitive query this is on a table, and how to read it."""


def _noise(primitive: PrimitiveQuery, epsilon: Fraction) -> Fraction | None:
    """The scale of the noise in every coordinate."""
    return primitive.sensitivity / epsilon if primitive.sensitivity else None


# ── counts and sums ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Count(Query):
    """How many records."""

    def prepare(self, subject: Subject) -> Prepared:
        primitive = primitives.Count()

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answer:
            return Answer(released[0], epsilon, charged, LaplaceNoise(_noise(primitive, epsilon)))

        return Prepared(primitive, read)


@dataclass(frozen=True)
class Sum(Query):
    """The sum of a bounded expression. Missing values add nothing."""

    of: Any = None
    bounds: object = None

    def prepare(self, subject: Subject) -> Prepared:
        cell = subject.cell(self.of, "sum")
        clamped = clamp(cell, subject.bounds(cell, self.bounds))
        primitive = primitives.Sum(clamped)

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answer:
            value = _on_grid(released[0], clamped)
            noise = LaplaceNoise(_noise(primitive, epsilon), clamped.step)
            return Answer(value, epsilon, charged, noise)

        return Prepared(primitive, read)


def _on_grid(steps: int, clamped: Clamp) -> int | float:
    """A number of steps as a value: an integer for integers."""
    return steps if clamped.step == 1 else float(steps * clamped.step)


# ── averages and variances ───────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Average(Query):
    """The average of a bounded expression, at the full ε.

    Σ(x − lower) and Σ(upper − x) each get noise of the whole ε; a record adds
    the same to their total whatever its value. Where they say that there are no
    records, the answer is the middle of the bounds. Missing values count for
    nothing.
    """

    of: Any = None
    bounds: object = None

    def prepare(self, subject: Subject) -> Prepared:
        cell = subject.cell(self.of, "average")
        clamped = clamp(cell, subject.bounds(cell, self.bounds))
        primitive = primitives.Moments(clamped, 1)
        lower, upper = (float(bound * clamped.step) for bound in (clamped.lower, clamped.upper))

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answer:
            below, above = released  # Σ(upper − x), Σ(x − lower)
            total = above + below
            share = Fraction(min(max(above, 0), total), total) if total > 0 else Fraction(1, 2)
            value = float((clamped.lower + clamped.width * share) * clamped.step)
            # d share = ((1 − share)·d above − share·d below) / total
            scale = float(primitive.sensitivity / epsilon) / max(total, 1)
            weights = tuple((upper - lower) * scale * w for w in (1 - float(share), float(share)))
            return Answer(value, epsilon, charged, LaplaceCombination(weights, lower, upper))

        return Prepared(primitive, read)


@dataclass(frozen=True)
class Variance(Query):
    """The variance (of the records, divided by their number) of a bounded expression, at the full ε.

    From the degree-2 Bernstein sums. Where they say that there are no records,
    it is the middle of what is possible, W²/8.
    """

    of: Any = None
    bounds: object = None

    def prepare(self, subject: Subject) -> Prepared:
        cell = subject.cell(self.of, "variance")
        clamped = clamp(cell, subject.bounds(cell, self.bounds), squared=True)
        primitive = primitives.Moments(clamped, 2)
        most = float((clamped.width * clamped.step) ** 2) / 4

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answer:
            value, weights = _variance(released, clamped, float(primitive.sensitivity / epsilon))
            return Answer(value, epsilon, charged, LaplaceCombination(weights, 0.0, most))

        return Prepared(primitive, read)


@dataclass(frozen=True)
class StandardDeviation(Query):
    """The square root of the variance."""

    of: Any = None
    bounds: object = None

    def prepare(self, subject: Subject) -> Prepared:
        prepared = Variance(self.of, self.bounds).prepare(subject)

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answer:
            squared = prepared.read(released, epsilon, charged)
            return Answer(math.sqrt(squared.value), epsilon, charged, _RootOf(squared))

        return Prepared(prepared.primitive, read)


@dataclass(frozen=True)
class _RootOf:
    """The error of the square root of an answer."""

    squared: Answer
    approximate = True

    def standard_error(self) -> float:
        error, value = self.squared.standard_error or 0.0, self.squared.value
        return min(error / (2 * math.sqrt(value)), math.sqrt(error)) if value else math.sqrt(error)

    def interval(self, value: Any, confidence: Fraction) -> tuple[float, float]:
        low, high = self.squared.interval(confidence)  # type: ignore[misc]
        return math.sqrt(low), math.sqrt(high)


def _variance(released: Sequence[int], clamped: Clamp, scale: float) -> tuple[float, tuple[float, ...]]:
    """The variance from noisy Bernstein sums, and what noise of scale 1 in each amounts to."""
    square = (clamped.width * clamped.step) ** 2
    total = sum(released)
    if total <= 0 or not square:
        return float(square / 8), (math.inf if square else 0.0,)
    mean, mean_square = Fraction(released[1] + 2 * released[2], 2 * total), Fraction(released[2], total)
    share = min(max(mean_square - mean * mean, Fraction(0)), Fraction(1, 4))
    u, v = float(mean), float(mean_square)
    slopes = ((-v + 2 * u * u), (-v - 2 * u * (0.5 - u)), (1 - v - 2 * u * (1 - u)))
    return float(square * share), tuple(float(square) * slope * scale / total for slope in slopes)


# ── choices ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Quantile(Query):
    """The value below which a fraction of the records lies: an order statistic.

    Chosen among the grid points within the bounds, by permute-and-flip at the
    full ε. Off by few ranks, whatever the values; ties are no problem.
    """

    fraction: object
    of: Any = None
    bounds: object = None

    def prepare(self, subject: Subject) -> Prepared:
        fraction = exact_fraction(self.fraction)
        cell = subject.cell(self.of, "quantile")
        clamped = clamp(cell, subject.bounds(cell, self.bounds), width_bits=RANK_WIDTH_BITS)
        ends = _on_grid(clamped.lower, clamped), _on_grid(clamped.upper, clamped)

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answer:
            return Answer(_on_grid(released, clamped), epsilon, charged, ChosenPoint(*ends))

        return Prepared(primitives.Rank(clamped, fraction), read)


class OrderStatistic(Quantile):
    """PINQ's name for a quantile."""


def Median(of: Any = None, bounds: object = None) -> Quantile:  # noqa: N802  a query like the others
    """The value in the middle."""
    return Quantile(Fraction(1, 2), of, bounds)


def exact_fraction(fraction: object) -> Fraction:
    """A fraction of the records, between 0 and 1; a float through its shortest repr."""
    fraction = plain(fraction)
    exact: Fraction | None = None
    if type(fraction) is float and 0 <= fraction <= 1:
        exact = Fraction(repr(fraction))
    elif type(fraction) is int or type(fraction) is Fraction or type(fraction) is Decimal:
        exact = Fraction(fraction) if 0 <= fraction <= 1 else None
    if exact is None:
        raise BadQuery("a quantile is a fraction of the records: a number between 0 and 1, such as 0.5")
    return exact


@dataclass(frozen=True)
class ExponentialMechanism(Query):
    """The candidate with the largest total score, chosen privately.

    score(x, candidate) is what a record adds to the candidate's score, clamped
    to bounds; PINQ's −1 to 1 if none are given, 0 to 1 for a condition. Chosen
    by permute-and-flip, which is never worse than the exponential mechanism. If no
    record can lower a score (bounds ≥ 0), or none can raise one (bounds ≤ 0), the
    whole ε counts, else half of it.
    """

    candidates: Sequence[Any]
    score: Callable[[Any, Any], Any]
    bounds: object = None

    def prepare(self, subject: Subject) -> Prepared:
        candidates = checked_candidates(self.candidates)
        scope = Scope()
        row = Row(subject.schema, scope)
        cells = [self._score(row, candidate, scope) for candidate in candidates]
        is_float = any(cell._type is FLOAT64 for cell in cells)
        bounds = self.bounds
        if bounds is None:
            bounds = (0, 1) if all(cell._type is BOOL for cell in cells) else (-1, 1)
        numbers = [cell.cast("int64") if cell._type is BOOL else cell for cell in cells]
        clamps = [clamp(cell.cast("float64") if is_float else cell, bounds) for cell in numbers]

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answer:
            return Answer(candidates[released], epsilon, charged, ChosenCandidate())

        return Prepared(primitives.Choice(tuple(clamps)), read)

    def _score(self, row: Row, candidate: Any, scope: Scope) -> Cell:
        score = plain(trace(lambda x: self.score(x, candidate), row))
        # A score may be the same for every record of some candidates.
        return constant(score) if type(score) in (int, float) else checked_cell(score, scope, "score")


@dataclass(frozen=True)
class Mode(Query):
    """The most common of public candidates; of a column with known keys, of those."""

    of: Any = None
    candidates: Sequence[Any] | None = None

    def prepare(self, subject: Subject) -> Prepared:
        cell = subject.cell(self.of, "mode")
        candidates = self.candidates if self.candidates is not None else subject.known(cell).keys
        if candidates is None:
            raise BadQuery("mode needs candidates=[…]: what it may be must not depend on the data")
        listed = checked_candidates(candidates)
        clamps = tuple(Clamp((cell == c).cast("int64")._tree, 0, 1) for c in listed)

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answer:
            return Answer(listed[released], epsilon, charged, ChosenCandidate())

        return Prepared(primitives.Choice(clamps), read)


def checked_candidates(candidates: object) -> list[Any]:
    """Candidates as a list, all different."""
    if isinstance(candidates, str | Symbolic) or not isinstance(candidates, Iterable):
        raise BadQuery("candidates must be a list")
    listed = [plain(candidate) for candidate in islice(candidates, MAX_CANDIDATES + 1)]
    if not listed:
        raise BadQuery("there are no candidates to choose from: give at least one")
    if len(listed) > MAX_CANDIDATES:
        raise BadQuery(f"at most {MAX_CANDIDATES} candidates in one choice")
    if len({(type(c), repr(c)) for c in listed}) != len(listed):
        raise BadQuery("the candidates must be different from one another")
    return listed


# ── histograms ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Histogram(Query):
    """How many records are in each bin; noise as for one count, since a record is in one bin.

    bins is a number of bins of equal width between the bounds (values beyond
    them are counted at the ends), or a list of edges (values beyond them are
    not counted). Without bins, every integer within the bounds is a bin.
    """

    of: Any = None
    bounds: object = None
    bins: int | Sequence[Any] | None = None

    def prepare(self, subject: Subject) -> Prepared:
        cell = subject.cell(self.of, "histogram")
        bins = binned(cell, subject.bounds(cell, self.bounds), self.bins)
        primitive = primitives.Frequencies(bins.index)

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answers:
            noise = LaplaceNoise(_noise(primitive, epsilon))
            answers = {
                label: Answer(n, epsilon, charged, noise)
                for label, n in zip(bins.labels, released, strict=True)
            }
            return Answers(answers, epsilon, charged)

        return Prepared(primitive, read)


@dataclass(frozen=True)
class Cdf(Query):
    """The fraction of records at most each point: never falling, from one histogram.

    Points are every integer within the bounds, or the upper edges of bins. With
    counts=True it gives numbers of records instead of fractions.
    """

    of: Any = None
    bounds: object = None
    bins: int | Sequence[Any] | None = None
    counts: bool = False

    def prepare(self, subject: Subject) -> Prepared:
        cell = subject.cell(self.of, "cdf")
        bins = binned(cell, subject.bounds(cell, self.bounds), self.bins)
        primitive = primitives.Frequencies(bins.index)
        points = [label[1] if isinstance(label, tuple) else label for label in bins.labels]

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answers:
            below = rising(list(accumulate(released)))
            total = below[-1] if below[-1] > 0 else 0.0
            deviation = LaplaceNoise(_noise(primitive, epsilon)).standard_error()
            answers: dict[Any, Answer] = {}
            for n, (point, number) in enumerate(zip(points, below, strict=True), 1):
                spread = deviation * math.sqrt(n)
                if self.counts:
                    normal = Normal(spread, 0.0, math.inf)
                    answers[point] = Answer(max(number, 0.0), epsilon, charged, normal)
                else:
                    fraction = min(max(number / total, 0.0), 1.0) if total else n / len(points)
                    normal = Normal(spread / max(total, 1.0), 0.0, 1.0)
                    answers[point] = Answer(fraction, epsilon, charged, normal)
            return Answers(answers, epsilon, charged)

        return Prepared(primitive, read)


@dataclass(frozen=True)
class Bins:
    """Which bin a record is in, as a clamped integer, and what the bins are called."""

    index: Clamp
    labels: tuple[Any, ...]


def binned(cell: Cell, bounds: object, bins: int | Sequence[Any] | None) -> Bins:
    """The bins of a numeric expression."""
    if cell._type not in (INT64, FLOAT64):
        raise BadQuery(
            f"bins need a number, and {spell(cell._tree)} is {cell._type.value}; "
            "count the values of a column with keys=[…]"
        )
    if isinstance(bins, Sequence) and not isinstance(bins, str):
        return _between_edges(cell, bins)
    if bounds is None:
        raise BadQuery("a histogram needs bounds=(lower, upper), a list of edges or keys=[…]")
    lower, upper = exact_bounds(bounds)
    if bins is None:
        if cell._type is not INT64:
            raise BadQuery("say how many bins: bins=20")
        whole = clamp(cell, bounds)
        return Bins(whole, tuple(range(whole.lower, min(whole.upper, whole.lower + primitives.MAX_BINS) + 1)))
    if type(bins) is not int or bins < 1 or lower == upper:
        raise BadQuery("bins is a number of bins, 1 or more, between bounds that differ; or a list of edges")
    return _equal_bins(cell, lower, upper, bins)


def _equal_bins(cell: Cell, lower: Fraction, upper: Fraction, bins: int) -> Bins:
    edges = [lower + (upper - lower) * i / bins for i in range(bins + 1)]
    if cell._type is INT64 and lower.denominator == upper.denominator == 1:
        within = cell.clip(int(lower), int(upper))
        index = (within - int(lower)) * bins // int(upper - lower)
    else:
        index = (
            ((cell - float(lower)) * (bins / float(upper - lower))).floor().clip(0, bins - 1).cast("int64")
        )
    numbers = [int(edge) if edge.denominator == 1 else float(edge) for edge in edges]
    return Bins(Clamp(index._tree, 0, bins - 1), tuple(pairwise(numbers)))


def _between_edges(cell: Cell, edges: Sequence[Any]) -> Bins:
    numbers = [plain(edge) for edge in edges]
    if len(numbers) < 2 or any(type(n) not in (int, float) or not math.isfinite(n) for n in numbers):  # type: ignore[arg-type]
        raise BadQuery("edges must be two or more finite numbers")
    if any(a >= b for a, b in pairwise(numbers)):  # type: ignore[operator]
        raise BadQuery("edges must be in rising order")
    first, *inner, last = numbers
    index = constant(0)
    if inner:
        index = _total([(cell >= edge).cast("int64") for edge in inner])
    index = if_else((cell >= first) & (cell <= last), index, None)
    return Bins(Clamp(index._tree, 0, len(inner)), tuple(pairwise(numbers)))


def _total(cells: Sequence[Cell]) -> Cell:
    """The sum of cells as a shallow tree."""
    if len(cells) == 1:
        return cells[0]
    middle = len(cells) // 2
    return _total(cells[:middle]) + _total(cells[middle:])


def rising(numbers: Sequence[float]) -> list[float]:
    """The nearest sequence (in squares) that never falls: pool adjacent violators."""
    pools: list[tuple[float, int]] = []
    for number in numbers:
        total, size = float(number), 1
        while pools and pools[-1][0] * size > total * pools[-1][1]:
            before, members = pools.pop()
            total, size = total + before, size + members
        pools.append((total, size))
    return [total / size for total, size in pools for _ in range(size)]


# ── bounds ───────────────────────────────────────────────────────────────────────────

POWERS = 62


@dataclass(frozen=True)
class FindBounds(Query):
    """Bounds (lower, upper) for an expression, each 0 or ± a power of two, that leave few records out.

    From one noisy histogram over powers of two: the outermost bins that are
    above the noise. About 20/ε records beyond the bounds may go unnoticed.
    """

    of: Any = None

    def prepare(self, subject: Subject) -> Prepared:
        cell = subject.cell(self.of, "bounds")
        if cell._type not in (INT64, FLOAT64):
            raise BadQuery(f"bounds need a number, and {spell(cell._tree)} is {cell._type.value}")
        powers = [2**k for k in range(POWERS)]
        above = _total([(cell > power // 2).cast("int64") for power in powers])
        below = _total([(cell < -(power // 2)).cast("int64") for power in powers])
        primitive = primitives.Frequencies(Clamp((above - below)._tree, -POWERS, POWERS))

        def read(released: Any, epsilon: Fraction, charged: Charged) -> Answer:
            # With probability 0.95 no empty bin gets here.
            threshold = LaplaceNoise(_noise(primitive, epsilon)).interval(0, _FEW_FALSE)[1]
            seen = [i - POWERS for i, n in enumerate(released) if n > threshold]
            lower, upper = min([*seen, 0]), max([*seen, 0])
            value = (-(2 ** (-lower - 1)) if lower else 0, 2 ** (upper - 1) if upper else 0)
            return Answer(value if seen else (0, 1), epsilon, charged, ChosenCandidate())

        return Prepared(primitive, read)


_FEW_FALSE = 1 - Fraction(1, 10 * (2 * POWERS + 1))
