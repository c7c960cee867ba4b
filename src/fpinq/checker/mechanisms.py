"""Mechanisms whose probabilities are exact, so that the theorem can be compared, not estimated."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product

from fpinq.engines.reference import Database, Relation, compute, distance, transform
from fpinq.model.expressions import Apply, Expression, Literal, Value
from fpinq.model.notions import pure
from fpinq.model.semantics import Measure
from fpinq.model.traces import Distribution
from fpinq.model.transformations import Partitioning, Where


def base2(away: int, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """The probabilities of the answers 0 and 1 on a table `away` records from a public reference bag.

    Answer 0 has probability aⁿ / (1 + a), a = 2^−ε: between tables at distance
    n the ratio reaches exactly 2^(ε·n) when the reference is one of them. ε is
    whole, so the probabilities are rational.
    """
    a = Fraction(1, 2 ** int(epsilon))
    zero = a**away / (1 + a)
    return zero, 1 - zero


def base2_answers(database: Database, reference: Database) -> Distribution:
    """The answers on a database, each part asked how far it is from the same part of the reference."""

    def distribution(measure: Measure) -> Mapping[tuple[int, ...], Fraction]:
        here, there = parts(measure, database), parts(measure, reference)
        each = [base2(distance(t, u), pure(measure.epsilon)) for t, u in zip(here, there, strict=True)]
        return {answers: _product(each, answers) for answers in product((0, 1), repeat=len(each))}

    return distribution


def parts(measure: Measure, database: Database) -> list[Relation]:
    """The table that a measurement is about, or its parts."""
    table = compute(measure.plan, database)
    if measure.by is None:
        return [table]
    return [transform(part, table) for part in parts_of(measure.by)]


def parts_of(by: Partitioning) -> list[Where]:
    """Each part as a filter: what a wrong rule lets pass must be measured all the same."""
    return [Where(_are(by.expressions, key if isinstance(key, tuple) else (key,))) for key in by.keys]


def _are(values: Sequence[Expression], key: Sequence[Value]) -> Expression:
    return reduce(lambda a, b: Apply("and", (a, b)), map(_is, values, key))


def _is(value: Expression, key: Value) -> Expression:
    return Apply("is_null", (value,)) if key is None else Apply("equal", (value, Literal.of(key)))


def laplace_loss(left: Sequence[int], right: Sequence[int]) -> int:
    """The largest log-ratio of discrete Laplace answers between two vectors of integers, in units of ε/Δ.

    At answer v a coordinate's log-ratio is |v − q′| − |v − q|. Outside the
    window that q and q′ span it is constant, so one step beyond covers all.
    """
    return sum(
        max(abs(v - there) - abs(v - here) for v in range(min(here, there) - 1, max(here, there) + 2))
        for here, there in zip(left, right, strict=True)
    )


def _product(each: list[tuple[Fraction, Fraction]], answers: tuple[int, ...]) -> Fraction:
    probability = Fraction(1)
    for of_part, answer in zip(each, answers, strict=True):
        probability *= of_part[answer]
    return probability
