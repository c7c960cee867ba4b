"""Planning: the error before paying, and the ε that a wanted error needs. Free: no data is looked at."""

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from fpinq.client.amounts import Amount
from fpinq.client.answers import Answer, Answers, show_number
from fpinq.client.bounds import exact_bounds
from fpinq.client.named import Split
from fpinq.client.queries import Inquiry, Prepared
from fpinq.client.rows import FLOAT64, INT64, Call, Cell, plain
from fpinq.client.several import Several
from fpinq.client.shown import text_table, visibly
from fpinq.client.spelling import show_at
from fpinq.client.subjects import Subject
from fpinq.client.uncertainty import Expected, Number, exact_confidence
from fpinq.model.epsilon import DIGITS, Epsilon
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Column, Schema
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount as Asked
from fpinq.model.notions import Rho

SIGNIFICANT = 4


@visibly
@dataclass(frozen=True)
class ExpectedError:
    """How far an answer at ε will be off. Prints as `± 30`, the half-width of its 95 % interval."""

    epsilon: Fraction | Rho
    expected: Expected

    @property
    def standard_error(self) -> float | None:
        """The standard deviation of the noise; None where there is none, or where it needs a size."""
        found = self.expected.uncertainty
        return None if found is None else found.standard_error()

    def half_width(self, confidence: float | Fraction = 0.95) -> Number | None:
        """How far off the answer will be at most, with this confidence; None where that needs a size."""
        exactly = exact_confidence(confidence)
        found = self.expected.uncertainty
        interval = None if found is None else found.interval(0, exactly)
        return None if interval is None else interval[1]

    @property
    def approximate(self) -> bool:
        """Whether this is an approximation. For counts and sums it is exact."""
        found = self.expected.uncertainty
        return found is None or found.approximate

    @property
    def note(self) -> str:
        """What the error is measured in, what it depends on, and what was assumed."""
        return ", ".join(text for text in (self.expected.unit, self.expected.note) if text)

    def __str__(self) -> str:
        if self.expected.uncertainty is None:
            return self.note
        half = self.half_width(0.95)
        return " ".join(text for text in (f"± {show_number(half, half)}", self.note) if text)

    def __repr__(self) -> str:
        return f"<{self}, {show_at(self.epsilon)}>"


@visibly
class ExpectedErrors(Mapping[str, ExpectedError]):
    """How far the answers of several queries will be off, by name."""

    def __init__(self, errors: Mapping[str, ExpectedError], split: Split) -> None:
        self._errors = dict(errors)
        self.split = split

    def __getitem__(self, name: str) -> ExpectedError:
        return self._errors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._errors)

    def __len__(self) -> int:
        return len(self._errors)

    def __repr__(self) -> str:
        each = text_table([(name, str(error)) for name, error in self.items()])
        return f"{each}\n{self.split}"


def expected_errors(query: Several, subject: Subject, at: Asked, size: object) -> ExpectedErrors:
    """The error of each of several queries that share ε or ρ."""
    assumed = checked_size(size)
    expected = query.expected(subject, at)
    errors = {name: ExpectedError(share, expect(assumed)) for name, (share, expect) in expected.items()}
    return ExpectedErrors(errors, query.split(subject, at))


def least_epsilon_for_each(
    query: Several, subject: Subject, errors: object, confidence: object, size: object
) -> Fraction:
    """The least ε at which each of several queries that share it is as exact as is wanted of it."""
    each = _wanted(query, errors)
    return max(least_epsilon(_of(query, subject, name), each[name], confidence, size) for name in each)


def least_rho_for_each(
    query: Several, subject: Subject, errors: object, confidence: object, size: object
) -> Rho:
    """The least ρ at which each of several queries that share it is as exact as is wanted of it."""
    each = _wanted(query, errors)
    found = [least_rho(_of(query, subject, name), each[name], confidence, size) for name in each]
    return max(found, key=lambda at: at.amount)


def _wanted(query: Several, errors: object) -> Mapping[str, object]:
    if not isinstance(errors, Mapping) or not errors or any(name not in query.queries for name in errors):
        named = ", ".join(query.queries)
        raise BadQuery(f"say the error by name, error={{{next(iter(query.queries))!r}: …}}, of {named}")
    return errors


def _of(query: Several, subject: Subject, name: str) -> "Callable[[Asked], Expecting]":
    return lambda at: Expecting(query.expected(subject, at)[name][1])


class Expecting(NamedTuple):
    """What is asked at an ε, as far as planning goes."""

    expect: Callable[[int | None], Expected]


def expected_error(
    prepared: Prepared[Answer | Answers] | Expecting, epsilon: Asked, size: object
) -> ExpectedError:
    """The error of a query at ε, for an assumed number of records."""
    return ExpectedError(epsilon, prepared.expect(checked_size(size)))


def epsilon_for(
    query: Inquiry[Answer | Answers], *, error: object, confidence: object = None, size: int | None = None
) -> Fraction:
    """The least ε (to four digits) for which a query's error is at most this, with this confidence.

    Without a confidence, error is the standard error. No table is needed: the
    bounds say it all. A table's own epsilon_for also knows its columns.
    """
    if not isinstance(query, Inquiry):
        raise BadQuery("epsilon_for needs an fp query, such as fp.count() or fp.average(f, bounds=…)")
    if query.of_columns:
        raise BadQuery("this depends on the table's columns: ask table.epsilon_for(…)")
    subject = Anything.bounded_by(getattr(query, "bounds", None))
    return least_epsilon(
        lambda epsilon: Expecting(partial(query.expect, subject, epsilon)), error, confidence, size
    )


def rho_for(
    query: Inquiry[Answer | Answers], *, error: object, confidence: object = None, size: int | None = None
) -> Rho:
    """The least ρ (to four digits) for which a query's error is at most this, as `epsilon_for` says of ε."""
    if not isinstance(query, Inquiry):
        raise BadQuery("rho_for needs an fp query, such as fp.count() or fp.average(f, bounds=…)")
    if query.of_columns:
        raise BadQuery("this depends on the table's columns: ask table.rho_for(…)")
    subject = Anything.bounded_by(getattr(query, "bounds", None))
    return least_rho(lambda at: Expecting(partial(query.expect, subject, at)), error, confidence, size)


class Anything(Subject):
    """No table in particular: every expression is a number, whole if its bounds are."""

    @classmethod
    def bounded_by(cls, bounds: object) -> "Anything":
        """Bounds that are whole numbers are those of integers."""
        whole = bounds is None or all(bound.denominator == 1 for bound in exact_bounds(bounds))
        return cls(Schema.of({"value": INT64 if whole else FLOAT64}))

    def cell(self, f: object, what: str) -> Cell:
        """A number, whatever f says."""
        return Cell(Column("value"), self.schema.types()[0], Call())


def least_epsilon(
    prepare: Callable[[Epsilon], Prepared[Answer | Answers] | Expecting],
    error: object,
    confidence: object,
    size: object,
) -> Fraction:
    """The least ε of four digits whose error is small enough; the error falls as ε grows."""
    return _least(lambda amount: (Epsilon(amount), prepare(Epsilon(amount))), error, confidence, size)


def least_rho(
    prepare: Callable[[Rho], Prepared[Answer | Answers] | Expecting],
    error: object,
    confidence: object,
    size: object,
) -> Rho:
    """The least ρ of four digits whose error is small enough."""
    least = _least(lambda amount: (Rho(amount), prepare(Rho(amount))), error, confidence, size)
    return Rho(Fraction(least.numerator, least.denominator))


def _least(
    prepare: Callable[[Fraction], tuple[Fraction | Rho, Prepared[Answer | Answers] | Expecting]],
    error: object,
    confidence: object,
    size: object,
) -> Fraction:
    wanted = checked_error(error)
    exactly = None if confidence is None else exact_confidence(confidence)
    assumed = checked_size(size)

    def reached(amount: Fraction) -> bool:
        at, prepared = prepare(amount)
        expected = ExpectedError(at, prepared.expect(assumed))
        found = expected.standard_error if exactly is None else expected.half_width(exactly)
        if found is None:
            raise BadQuery(f"this error cannot be planned: {_missing(expected, exactly, assumed)}")
        return bool(found <= wanted)

    return least_amount(reached)


def least_amount(reached: Callable[[Fraction], bool]) -> Fraction:
    """The least number of four digits from which on something is reached."""
    exponent = next((e for e in range(-DIGITS, DIGITS) if reached(Fraction(10) ** e)), None)
    if exponent is None:
        raise BadQuery("no ε, and no ρ, makes the error that small")
    if exponent == -DIGITS:
        return Amount(Fraction(10) ** exponent)
    unit: Fraction = Fraction(10) ** (exponent - SIGNIFICANT)
    low, high = 10 ** (SIGNIFICANT - 1), 10**SIGNIFICANT
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle * unit) else (middle, high)
    return Amount(high * unit)


def _missing(expected: ExpectedError, confidence: Fraction | None, size: int | None) -> str:
    if expected.expected.uncertainty is not None and confidence is None:
        return "a choice has no standard error; say the confidence: confidence=0.95"
    return f"it is {expected.note}; give size=…" if size is None else expected.note


def checked_size(size: object) -> int | None:
    """An assumed number of records, or none."""
    size = plain(size)
    if size is None or (type(size) is int and size > 0):
        return size
    raise BadQuery("size is an assumed number of records: a whole number, 1 or more")


def checked_error(error: object) -> float | int | Fraction:
    """A wanted error: a positive number."""
    error = plain(error)
    if isinstance(error, int | float | Fraction) and type(error) is not bool and 0 < error < math.inf:
        return error
    raise BadQuery("the wanted error is a positive number, in the units of the answer")
