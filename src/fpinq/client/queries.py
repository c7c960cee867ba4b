"""Queries: what to ask of a table or of each part, and how noisy integers become an answer.

`table.noisy_average(ε, f, bounds=…)` is `table.query(ε, fp.average(f, bounds=…))`:
there is one implementation of each query, alone, on a part and in parallel.
Here are counts, sums, averages and variances; then read `choices` and `histograms`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from fpinq.client.algebra import distinct, select, where
from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.bounds import clamp
from fpinq.client.facts import Facts
from fpinq.client.subjects import Subject
from fpinq.client.uncertainty import Expected, LaplaceCombination, LaplaceNoise, Number
from fpinq.model import queries as primitives
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import BadQuery
from fpinq.model.queries import PrimitiveQuery
from fpinq.runtime import Released

A = TypeVar("A", bound=Answer | Answers, covariant=True)

# Noise of a larger scale could leave what a float can hold.
LARGEST_FLOAT_NOISE = 2**1000


@dataclass(frozen=True)
class Prepared(Generic[A]):
    """A primitive query at an ε, how to read what it releases, and how far that will be off.

    The error of some answers depends on the number of records, which is private:
    it is expected for an assumed size, or for no size in particular (None).
    """

    primitive: PrimitiveQuery
    read: Callable[[Released, Charged], A]
    expect: Callable[[int | None], Expected]


class Query(ABC, Generic[A]):
    """A question that can be asked of a table or of each part of a partition."""

    @abstractmethod
    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[A]:
        """The primitive query this is on a table, and how to read it."""

    def derive(self, table: Facts) -> Facts:
        """The table that the primitive query is asked of: a transformation of the given one, or itself."""
        return table


def integers(released: Released) -> tuple[int, ...]:
    """What a query of several integers released."""
    assert isinstance(released, tuple)
    return released


def integer(released: Released) -> int:
    """What a query of one choice released."""
    assert isinstance(released, int)
    return released


def laplace_noise(primitive: PrimitiveQuery, epsilon: Epsilon, step: Fraction = Fraction(1)) -> LaplaceNoise:
    """The noise in every coordinate."""
    return LaplaceNoise(primitive.sensitivity / epsilon if primitive.sensitivity else None, step)


# ── counts and sums ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Count(Query[Answer]):
    """How many records."""

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        primitive = primitives.Count()
        noise = laplace_noise(primitive, epsilon)

        def read(released: Released, charged: Charged) -> Answer:
            return Answer(integers(released)[0], epsilon, charged, noise)

        return Prepared(primitive, read, lambda size: Expected(noise))


@dataclass(frozen=True)
class DistinctCount(Query[Answer]):
    """How many different values an expression has; missing ones are not counted.

    A count of the values, each kept once: one record more is at most one value more.
    """

    of: object = None

    def derive(self, table: Facts) -> Facts:
        cell = table.subject.cell(self.of, "distinct count")
        present = where(table, (~cell.is_null()).tree)
        return distinct(select(present, (("value", cell.tree),)))

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        return Count().prepare(subject, epsilon)


@dataclass(frozen=True)
class Sum(Query[Answer]):
    """The sum of a bounded expression. Missing values add nothing."""

    of: object = None
    bounds: object = None

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        cell = subject.cell(self.of, "sum")
        clamped = clamp(cell, subject.bounds(cell, self.bounds))
        primitive = primitives.Sum(clamped)
        noise = laplace_noise(primitive, epsilon, clamped.step)
        if clamped.step != 1 and (noise.scale or 0) * clamped.step > LARGEST_FLOAT_NOISE:
            raise BadQuery("the noise would exceed what a float can hold: use a larger ε or narrower bounds")

        def read(released: Released, charged: Charged) -> Answer:
            return Answer(on_grid(integers(released)[0], clamped), epsilon, charged, noise)

        return Prepared(primitive, read, lambda size: Expected(noise))


def on_grid(steps: int, clamped: Clamp) -> int | float:
    """A number of steps as a value: an integer for integers."""
    return steps if clamped.step == 1 else as_float(steps * clamped.step)


def as_float(number: Fraction) -> float:
    """The nearest float, ±∞ where they end."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


# ── averages and variances ───────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Average(Query[Answer]):
    """The average of a bounded expression, at the full ε.

    Σ(x − lower) and Σ(upper − x) each get noise of the whole ε; a record adds
    the same to their total whatever its value. Where they say that there are no
    records, the answer is the middle of the bounds. Missing values count for
    nothing.
    """

    of: object = None
    bounds: object = None

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        cell = subject.cell(self.of, "average")
        clamped = clamp(cell, subject.bounds(cell, self.bounds))
        primitive = primitives.Moments(clamped, 1)
        lower, upper = (float(bound * clamped.step) for bound in (clamped.lower, clamped.upper))
        width = finite(clamped.width * clamped.step, "an average")

        def read(released: Released, charged: Charged) -> Answer:
            below, above = integers(released)  # Σ(upper − x), Σ(x − lower)
            total = above + below
            share = Fraction(min(max(above, 0), total), total) if total > 0 else Fraction(1, 2)
            value = float((clamped.lower + clamped.width * share) * clamped.step)
            # d share = ((1 − share)·d above − share·d below) / total
            scale = float(primitive.sensitivity / epsilon / max(total, 1))
            weights = tuple(width * (scale * w) for w in (1 - float(share), float(share)))
            return Answer(value, epsilon, charged, LaplaceCombination(weights, lower, upper))

        def expect(size: int | None) -> Expected:
            return divided_by_size(width * float(1 / epsilon), size, width)

        return Prepared(primitive, read, expect)


@dataclass(frozen=True)
class Variance(Query[Answer]):
    """The variance (of the records, divided by their number) of a bounded expression, at the full ε.

    From the degree-2 Bernstein sums. Where they say that there are no records,
    it is the middle of what is possible, W²/8.
    """

    of: object = None
    bounds: object = None

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        cell = subject.cell(self.of, "variance")
        clamped = clamp(cell, subject.bounds(cell, self.bounds), squared=True)
        primitive = primitives.Moments(clamped, 2)
        square = finite((clamped.width * clamped.step) ** 2, "a variance")

        def read(released: Released, charged: Charged) -> Answer:
            value, weights = _variance(integers(released), clamped, primitive.sensitivity / epsilon)
            return Answer(value, epsilon, charged, LaplaceCombination(weights, 0.0, square / 4))

        def expect(size: int | None) -> Expected:
            # The slopes of `_variance` are 1, 0, 0 at worst: where all values are at one bound.
            return divided_by_size(square * float(1 / epsilon), size, square / 4)

        return Prepared(primitive, read, expect)


@dataclass(frozen=True)
class StandardDeviation(Query[Answer]):
    """The square root of the variance."""

    of: object = None
    bounds: object = None

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        prepared = Variance(self.of, self.bounds).prepare(subject, epsilon)

        def read(released: Released, charged: Charged) -> Answer:
            squared = prepared.read(released, charged)
            return Answer(math.sqrt(squared.value), epsilon, charged, _RootOf(squared))

        def expect(size: int | None) -> Expected:
            squared = prepared.expect(size)
            if squared.uncertainty is None:
                return Expected(None, note=f"the square root of a variance whose error is {squared.note}")
            # Worst where the deviation is 0; elsewhere it is the variance's error over twice the deviation.
            root = _RootOf(Answer(0.0, epsilon, Fraction(0), squared.uncertainty))
            return Expected(root, note=squared.note)

        return Prepared(prepared.primitive, read, expect)


@dataclass(frozen=True)
class _RootOf:
    """The error of the square root of an answer."""

    squared: Answer
    approximate = True

    def standard_error(self) -> float:
        error, value = self.squared.standard_error or 0.0, self.squared.value
        return min(error / (2 * math.sqrt(value)), math.sqrt(error)) if value else math.sqrt(error)

    def interval(self, value: Number, confidence: Fraction) -> tuple[float, float]:
        low, high = self.squared.interval(confidence)  # type: ignore[misc]
        return math.sqrt(max(low, 0)), math.sqrt(high)


def divided_by_size(weight: float, size: int | None, most: float) -> Expected:
    """An error of weight/size times a Laplace draw at worst, and never above most."""
    if size is None:
        worst = LaplaceCombination((weight,), -math.inf, math.inf).standard_error()
        return Expected(None, note=f"at most {worst:,.4g} divided by the number of records")
    note = f"at most, if {size:,} records have a value"
    return Expected(LaplaceCombination((weight / size,), -most, most), note=note)


def finite(number: Fraction, what: str) -> float:
    """number as a float; BadQuery if it is too large for one."""
    if math.isinf(as_float(number)):
        raise BadQuery(f"bounds too wide for {what}: the result could exceed what a float can hold")
    return float(number)


def _variance(released: Sequence[int], clamped: Clamp, scale: Fraction) -> tuple[float, tuple[float, ...]]:
    """The variance from noisy Bernstein sums, and what noise of scale 1 in each amounts to."""
    square = (clamped.width * clamped.step) ** 2
    total = sum(released)
    if total <= 0 or not square:
        return float(square / 8), (math.inf if square else 0.0,)
    mean, mean_square = Fraction(released[1] + 2 * released[2], 2 * total), Fraction(released[2], total)
    share = min(max(mean_square - mean * mean, Fraction(0)), Fraction(1, 4))
    # Noise may put the moments where no data can be; slopes are taken at the nearest that can.
    u = min(max(float(mean), 0.0), 1.0)
    v = min(max(float(mean_square), u * u), u)
    slopes = ((-v + 2 * u * u), (-v - 2 * u * (0.5 - u)), (1 - v - 2 * u * (1 - u)))
    return float(square * share), tuple(float(square) * (slope * float(scale / total)) for slope in slopes)
