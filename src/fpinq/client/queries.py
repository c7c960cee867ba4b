"""Queries: what to ask of a table or of each part, and how noisy integers become an answer.

`table.noisy_average(ε, f, bounds=…)` is `table.query(ε, fp.average(f, bounds=…))`:
there is one implementation of each query, alone, on a part and in parallel.
Here are counts, sums, averages and variances; then read `choices` and `histograms`.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import ClassVar, Generic, TypeVar

from fpinq.client import looks, moments
from fpinq.client.algebra import distinct, select, where
from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.bounds import clamp
from fpinq.client.facts import Facts
from fpinq.client.looks import Composed, Seconds
from fpinq.client.rows import Cell
from fpinq.client.spelling import spell
from fpinq.client.subjects import Subject
from fpinq.client.uncertainty import Expected, LaplaceCombination, LaplaceNoise, Number
from fpinq.model import queries as primitives
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import Epsilon, per
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Column
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho
from fpinq.model.queries import PrimitiveQuery, SimpleQuery
from fpinq.runtime import Released

A = TypeVar("A", bound=Answer | Answers, covariant=True)

# Noise of a larger scale could leave what a float can hold.
LARGEST_FLOAT_NOISE = 2**1000
# The same of every table, and measured so.
COUNT = primitives.Count()
# So many letters of an expression are said.
MOST_WORDS = 40


@dataclass(frozen=True)
class Prepared(Generic[A]):
    """A primitive query at an ε, how to read what it releases, and how far that will be off.

    The error of some answers depends on the number of records, which is private:
    it is expected for an assumed size, or for no size in particular (None).
    """

    primitive: PrimitiveQuery
    read: Callable[[Released, Charged], A]
    expect: Callable[[int | None], Expected]


class Inquiry(ABC, Generic[A]):
    """A question that can be asked of a table or of each part of a partition."""

    # Whether its error depends on more than its bounds: on which columns a table has, and of what types.
    of_columns: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[A]:
        """The primitive query this is on a table, and how to read it."""

    @property
    def what(self) -> str:
        """What is asked, in a word or two."""
        return _spelt(type(self).__name__)

    def words(self) -> str:
        """What is asked, of which column: average of age."""
        of = getattr(self, "of", None)
        return self.what if of is None else f"{self.what} of {described(of)}"

    def column(self) -> str:
        """What a column of its answers is called: average_age."""
        of = column_of(getattr(self, "of", None))
        return "_".join(filter(None, (self.what.replace(" ", "_"), of)))

    def traced(self, subject: Subject) -> "Inquiry[A]":
        """The same, with its function called: once, whatever it is then used for."""
        of = getattr(self, "of", self)
        if of is self or (of is None and len(subject.schema.columns) != 1):
            return self
        return replace(self, of=subject.cell(of, self.what))  # type: ignore[type-var]

    def composed(self, subject: Subject, epsilon: Epsilon) -> Composed[A] | None:
        """The two queries that this is better asked as, one after the other; None if there are none."""
        return None

    def expect(self, subject: Subject, epsilon: Amount, size: int | None) -> Expected:
        """How far the answer will be off, as it is asked."""
        if isinstance(epsilon, Rho):
            from fpinq.client.concentrated import prepare_at_rho  # which reads these queries at ρ

            return prepare_at_rho(self, subject, epsilon).expect(size)
        composed = self.composed(subject, epsilon)
        return (self.prepare(subject, epsilon) if composed is None else composed).expect(size)

    def derive(self, table: Facts) -> Facts:
        """The table that the primitive query is asked of: a transformation of the given one, or itself."""
        return table


def column_of(expression: object) -> str:
    """The column that an expression is; "" if it is something else."""
    if isinstance(expression, Cell) and isinstance(expression.tree, Column):
        return expression.tree.name
    return expression if isinstance(expression, str) else ""


def described(expression: object) -> str:
    """An expression in words: the column, or what is computed of several, if that is short."""
    if (column := column_of(expression)) or not isinstance(expression, Cell):
        return column or "an expression"
    text = spell(expression.tree)
    return text if len(text) <= MOST_WORDS else f"{text[:MOST_WORDS]}…"


@cache
def _spelt(name: str) -> str:
    """The words of a name: distinct count."""
    return re.sub("(?<=.)(?=[A-Z])", " ", name).lower()


def integers(released: Released) -> tuple[int, ...]:
    """What a query of several integers released."""
    assert isinstance(released, tuple)
    return released


def integer(released: Released) -> int:
    """What a query of one choice released."""
    assert isinstance(released, int)
    return released


def laplace_noise(primitive: SimpleQuery, epsilon: Epsilon, step: Fraction = Fraction(1)) -> LaplaceNoise:
    """The noise in every coordinate."""
    return LaplaceNoise(per(primitive.sensitivity, epsilon) if primitive.sensitivity else None, step)


# ── counts and sums ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Count(Inquiry[Answer]):
    """How many records."""

    def column(self) -> str:
        return "n"

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        primitive = COUNT
        noise = laplace_noise(primitive, epsilon)

        def read(released: Released, charged: Charged) -> Answer:
            return Answer(integers(released)[0], epsilon, charged, noise)

        return Prepared(primitive, read, lambda size: Expected(noise))


@dataclass(frozen=True)
class DistinctCount(Inquiry[Answer]):
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
class Sum(Inquiry[Answer]):
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
class Average(Inquiry[Answer]):
    """The average of a bounded expression. Missing values count for nothing.

    Two queries: a first look, and then the balance of what is above and below
    (`looks`). once=True makes it one, of Σ(x − lower) and Σ(upper − x), each with
    noise of the whole ε: a record adds the same to their total whatever its value.
    Where they say that there are no records, the answer is the middle of the bounds.
    """

    of: object = None
    bounds: object = None
    once: bool = False

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        clamped = self.clamped(subject)
        primitive = primitives.Moments(clamped, 1)
        width = finite(clamped.width * clamped.step, "an average")

        def read(released: Released, charged: Charged) -> Answer:
            sums = moments.measured(integers(released), primitive.sensitivity / epsilon)
            return moments.average(sums, clamped).answer(epsilon, charged)

        def expect(size: int | None) -> Expected:
            return divided_by_size(width * float(1 / epsilon), size, width)

        return Prepared(primitive, read, expect)

    def composed(self, subject: Subject, epsilon: Epsilon) -> Composed[Answer] | None:
        clamped = self.clamped(subject)
        width = finite(clamped.width * clamped.step, "an average")

        def expect(size: int | None) -> Expected:
            return divided_by_size(width * float(1 / (epsilon * looks.AVERAGE_REST)), size, width)

        return None if self.once else looks.average(clamped, epsilon, expect)

    def clamped(self, subject: Subject) -> Clamp:
        """What is averaged, on its grid."""
        cell = subject.cell(self.of, "average")
        return clamp(cell, subject.bounds(cell, self.bounds))


@dataclass(frozen=True)
class Variance(Inquiry[Answer]):
    """The variance (of the records, divided by their number) of a bounded expression.

    Two queries: a first look, and then the balance of squares about the average
    that it gives (`looks`). once=True makes it one, of the degree-2 Bernstein sums
    at the full ε. Where they say that there are no records, it is the middle of
    what is possible, W²/8.
    """

    of: object = None
    bounds: object = None
    once: bool = False

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        clamped = self.clamped(subject)
        primitive = primitives.Moments(clamped, 2)
        square = finite((clamped.width * clamped.step) ** 2, "a variance")

        def read(released: Released, charged: Charged) -> Answer:
            sums = moments.measured(integers(released), primitive.sensitivity / epsilon)
            return moments.variance(sums, clamped).answer(epsilon, charged)

        def expect(size: int | None) -> Expected:
            # The slopes of `moments.variance` are 1, 0, 0 at worst: where all values are at one bound.
            return divided_by_size(square * float(1 / epsilon), size, square / 4)

        return Prepared(primitive, read, expect)

    def composed(self, subject: Subject, epsilon: Epsilon) -> Composed[Answer] | None:
        clamped = self.clamped(subject)
        square = finite((clamped.width * clamped.step) ** 2, "a variance")

        def expect(size: int | None) -> Expected:
            # Asked again, or the balance of squares, at most W² apart: at worst as above, at the rest.
            return divided_by_size(square * float(1 / (epsilon * looks.VARIANCE_REST)), size, square / 4)

        return None if self.once else looks.variance(clamped, epsilon, expect)

    def clamped(self, subject: Subject) -> Clamp:
        """What varies, on its grid."""
        cell = subject.cell(self.of, "variance")
        return clamp(cell, subject.bounds(cell, self.bounds), squared=True)


@dataclass(frozen=True)
class StandardDeviation(Inquiry[Answer]):
    """The square root of the variance."""

    of: object = None
    bounds: object = None
    once: bool = False

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        prepared = self._squared.prepare(subject, epsilon)
        return Prepared(prepared.primitive, root_of(prepared.read), root_expected(prepared.expect, epsilon))

    def composed(self, subject: Subject, epsilon: Epsilon) -> Composed[Answer] | None:
        squared = self._squared.composed(subject, epsilon)
        if squared is None:
            return None

        def then(seen: Sequence[Released]) -> Seconds[Answer]:
            seconds = squared.then(seen)
            return Seconds(
                seconds.primitives,
                lambda number, released, charged: root_of(partial(seconds.read, number))(released, charged),
            )

        return Composed(squared.first, squared.epsilons, then, root_expected(squared.expect, epsilon))

    @property
    def _squared(self) -> Variance:
        return Variance(self.of, self.bounds, self.once)


def root_of(read: Callable[[Released, Charged], Answer]) -> Callable[[Released, Charged], Answer]:
    """How to read the square root of an answer."""

    def read_root(released: Released, charged: Charged) -> Answer:
        squared = read(released, charged)
        return Answer(math.sqrt(squared.value), squared.epsilon, charged, _RootOf(squared))

    return read_root


def root_expected(
    expect: Callable[[int | None], Expected], epsilon: Amount
) -> Callable[[int | None], Expected]:
    """How far off the square root of an answer will be."""

    def expect_root(size: int | None) -> Expected:
        squared = expect(size)
        if squared.uncertainty is None:
            return Expected(None, note=f"the square root of a variance whose error is {squared.note}")
        # Worst where the deviation is 0; elsewhere it is the variance's error over twice the deviation.
        root = _RootOf(Answer(0.0, epsilon, Fraction(0), squared.uncertainty))
        return Expected(root, note=squared.note)

    return expect_root


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
