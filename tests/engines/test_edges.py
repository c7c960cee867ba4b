"""Queries at the edges of the bounds that the kernel admits: one record changes no more than is charged for.

The reference's statistics keep to their sensitivities by their definition. An
engine does only as long as it computes the same, and at a bound that it has no
number for it cannot.
"""

from fractions import Fraction
from itertools import count, product
from typing import Any, get_args

import pytest

from engines.nasty import VALUES
from fpinq.engines import reference
from fpinq.model.clamps import MAX_GRID, Clamp
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Column, Schema, Type, checked_value
from fpinq.model.kinds import Chosen, Noisy
from fpinq.model.plans import RootTable
from fpinq.model.queries import (
    Balance,
    Brackets,
    Choice,
    Count,
    CrossMoments,
    Depth,
    Frequencies,
    Lagrange,
    Moments,
    Offset,
    PrimitiveQuery,
    Rank,
    Ranks,
    SimpleQuery,
    Sparse,
    Stable,
    Sum,
    Summary,
    Tally,
    Tree,
)
from fpinq.model.statistics import Integers, dense
from fpinq.model.transformations import Partitioning

_names = count()

EDGES = {
    Type.INT64: [-(2**63), 2**63, -1, 0, 2**62],
    Type.FLOAT64: [-MAX_GRID, MAX_GRID, 0],
}
# Beside another column: how wide that is, of which degree the first, and what its square counts for.
CROSSED = [(0, 1, 0), (0, 2, 0), (1, 1, 2), (3, 2, 0)]
# An engine without its own idea of a bound just beyond those.
AROUND = (-1, 0, 1)


def bounds(type_: Type) -> list[tuple[int, int]]:
    """Pairs of bounds at and around the edges, those that are too wide among them."""
    ends = sorted({edge + off for edge in EDGES[type_] for off in AROUND})
    return [(lower, upper) for lower, upper in product(ends, repeat=2) if lower <= upper]


def queries(type_: Type) -> list[PrimitiveQuery]:
    """The queries of every kind with such bounds that the kernel admits."""
    schema = Schema.of({"id": Type.INT64, "x": type_})
    steps = [Fraction(1)] if type_ is Type.INT64 else [Fraction(1), Fraction(1, 2**1000), Fraction(2**1000)]
    found: list[PrimitiveQuery] = []
    for (lower, upper), step in product(bounds(type_), steps):
        clamp = Clamp(Column("x"), lower, upper, step)
        kinds: list[PrimitiveQuery] = [
            Sum(clamp),
            Moments(clamp, 1),
            Moments(clamp, 2),
            Frequencies(clamp),
            Choice((clamp, clamp)),
        ]
        kinds += [Tree(clamp, 2, 3), Rank(clamp, Fraction(1, 3)), Depth(clamp, 0)]
        kinds += [
            Summary(clamp, 1),
            Summary(clamp, 2),
            Offset(clamp),
            Ranks(clamp, (Fraction(0), Fraction(1))),
        ]
        kinds += [Lagrange(clamp), Brackets(clamp, (Fraction(1, 3),), (2,), (5,)), Balance(clamp, 7, 1, 0)]
        kinds += [Balance(clamp, 1, 0, 1, Fraction(2 * lower + upper, 3))]
        kinds += [CrossMoments((clamp, Clamp(Column("id"), 0, w)), (d, 1), 3, (s, 0)) for w, d, s in CROSSED]
        found += [query for query in kinds if _admitted(query, schema)]
    return found


def _admitted(query: PrimitiveQuery, schema: Schema) -> bool:
    try:
        query.check(schema)
    except BadQuery:
        return False
    return True


def changes(query: PrimitiveQuery, of_one_record: Integers) -> int:
    """How much a record changes what is drawn from: in L1, or in L∞ where it is scores."""
    if isinstance(query, Noisy):
        return sum(map(abs, query.exact(of_one_record)))
    if isinstance(query, Choice):
        return max(map(abs, dense(query.statistic, of_one_record)))
    if isinstance(query, Balance):
        return query.fineness * sum(map(abs, query.parts(of_one_record)))
    assert isinstance(query, Chosen)
    each = zip(query.choices(of_one_record), query.choices({}), strict=True)
    return max(_apart(after.runs, before.runs) for after, before in each)


def _apart(*both: list[tuple[int, int, int]]) -> int:
    """How far scores are apart at the most, wherever a run of either begins."""
    points = {first for runs in both for first, _, _ in runs}
    scores = [
        [next(score for first, last, score in runs if first <= x <= last) for x in points] for runs in both
    ]
    return max(abs(a - b) for a, b in zip(*scores, strict=True))


def check(engine: Any, type_: Type, asked: list[PrimitiveQuery]) -> None:
    """Every record by itself, of all nasty values and of none."""
    values = [checked_value(value, type_) for value in VALUES[type_]]
    schema, name = Schema.of({"id": Type.INT64, "x": type_}), f"edges{next(_names)}"
    engine.add_root(name, [{"id": i, "x": x} for i, x in enumerate(values)], schema=dict(schema.columns))
    table = reference.Relation(schema, tuple(enumerate(values)))
    by = Partitioning(Column("id"), tuple(range(len(values) + 1)))
    for query in asked:
        statistics = [query.statistic] * len(by.keys)
        measured = engine.measure(RootTable(name), by, statistics)
        assert measured == reference.measure(table, by, statistics), query
        assert max(changes(query, each) for each in measured) <= query.sensitivity, query
        if isinstance(query, Noisy):
            assert max(sum(x * x for x in query.exact(each)) for each in measured) <= query.squared, query


@pytest.mark.parametrize("type_", EDGES)
def test_one_record_changes_no_more_than_is_charged_for_at_any_bounds(loaded: Any, type_: Type) -> None:
    asked = queries(type_)
    assert {type(query) for query in asked} == {*get_args(SimpleQuery)} - {
        Count,
        Tally,
        Sparse,
        Stable,
    }  # they have no bounds
    check(loaded, type_, asked)
