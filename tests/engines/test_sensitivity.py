"""Every statistic on every engine: what one record more can change, by exhaustive search; and huge sums."""

from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest

from fpinq.model.clamps import Clamp
from fpinq.model.domains import IntegerDomain
from fpinq.model.expressions import Apply, Column, Literal, Type
from fpinq.model.kinds import Noisy
from fpinq.model.plans import RootTable
from fpinq.model.queries import (
    Choice,
    Count,
    CrossMoments,
    Depth,
    Frequencies,
    Moments,
    PrimitiveQuery,
    Rank,
    Sparse,
    Stable,
    Sum,
    Tally,
    Tree,
)
from fpinq.model.statistics import Integers
from fpinq.model.transformations import Partitioning

X, F = Column("x"), Column("f")
SQUARE = Apply("multiply", (X, X))
NUMBERS: list[int | None] = [-9, -1, 0, 1, 2, 9, None]
FLOATS: list[float | None] = [-1e300, -0.26, 0.0, 0.125, 0.5, float("inf"), float("nan"), None]
QUARTER = Fraction(1, 4)


def bags(values: list[Any]) -> list[tuple[Any, ...]]:
    return [bag for n in range(4) for bag in combinations_with_replacement(range(len(values)), n)]


def statistics(engine: Any, name: str, values: list[Any], type_: Type, query: PrimitiveQuery) -> Any:
    """The statistic of every bag of up to three values and of each with one record more, in one scan."""
    listed = [*bags(values), *((*bag, i) for bag in bags(values) for i in range(len(values)))]
    tables = {tuple(sorted(bag)): None for bag in listed}
    numbered = {bag: number for number, bag in enumerate(tables)}
    rows = [{"bag": number, name: values[i]} for bag, number in numbered.items() for i in bag]
    root = f"sensitivity {name} {query!r}"
    engine.add_root(root, rows, schema={"bag": Type.INT64, name: type_})
    by = Partitioning(Column("bag"), tuple(numbered.values()))
    found = engine.measure(RootTable(root), by, [query.statistic] * len(numbered))
    return {bag: found[number] for bag, number in numbered.items()}


def largest(engine: Any, name: str, values: list[Any], type_: Type, query: PrimitiveQuery) -> int:
    """The most that one record more changes, over all bags of up to three."""
    found = statistics(engine, name, values, type_, query)
    return max(
        away(query, found[bag], found[tuple(sorted((*bag, i)))])
        for bag in bags(values)
        for i in range(len(values))
    )


def away(query: PrimitiveQuery, before: Integers, after: Integers) -> int:
    match query:
        case Rank():
            left, right = (
                {point: score for first, last, score in query.scores(q) for point in range(first, last + 1)}
                for q in (before, after)
            )
            assert all(right[p] <= left[p] for p in left), "one more record raises no score"
            return max(left[p] - right[p] for p in left)
        case Choice():
            return max(abs(after.get(j, 0) - before.get(j, 0)) for j in range(len(query.of)))
        case Depth():
            left, right = (
                {p: score for a, b, score in next(query.choices(q)).runs for p in range(a, b + 1)}
                for q in (before, after)
            )
            return max(abs(left[p] - right[p]) for p in left)
        case Tree() | CrossMoments():
            return sum(abs(a - b) for a, b in zip(query.exact(after), query.exact(before), strict=True))
        case _:
            return sum(abs(after.get(j, 0) - before.get(j, 0)) for j in before.keys() | after.keys())


INTEGERS: list[PrimitiveQuery] = [
    Count(),
    Sum(Clamp(X, -2, 1)),
    Sum(Clamp(X, 3, 5)),
    Sum(Clamp(X, 0, 0)),
    Moments(Clamp(X, -1, 2), 1),
    Moments(Clamp(X, -1, 2), 2),
    Moments(Clamp(X, 1, 1), 1),
    Frequencies(Clamp(X, -1, 2)),
    Tree(Clamp(X, -9, 9), 3, 3),
    Rank(Clamp(X, -2, 3), Fraction(1, 2)),
    Rank(Clamp(X, -2, 3), Fraction(9, 10)),
    Rank(Clamp(X, -2, 3), Fraction(0)),
    Depth(Clamp(X, -2, 3), 1),
    CrossMoments((Clamp(X, -1, 2), Clamp(SQUARE, 0, 4)), (1, 1), 1, (0, 0)),
    CrossMoments((Clamp(X, -1, 2), Clamp(SQUARE, 0, 4)), (2, 1), 3, (0, 0)),
    CrossMoments((Clamp(X, -1, 2), Clamp(SQUARE, 0, 4)), (1, 1), 2, (3, 1)),
    CrossMoments((Clamp(X, -1, 2), Clamp(SQUARE, 4, 4)), (2, 1), 3, (1, 0)),
    Tally(X, (Literal.of(-9), Literal.of(1), Literal.of(5))),
    Choice((Clamp(X, -2, 1), Clamp(X, 0, 3))),
    Sparse(X, IntegerDomain(-1, 9), Fraction(1), 11),
    Stable(SQUARE, IntegerDomain(0, 4), Fraction(1, 100), 1, 5),
]


@pytest.mark.parametrize("query", INTEGERS, ids=repr)
def test_one_integer_more_changes_a_statistic_by_its_sensitivity(engine: Any, query: PrimitiveQuery) -> None:
    assert largest(engine, "x", NUMBERS, Type.INT64, query) == query.sensitivity


@pytest.mark.parametrize(
    "query",
    [
        Sum(Clamp(F, -3, 2, QUARTER)),
        Moments(Clamp(F, -3, 2, QUARTER), 1),
        Moments(Clamp(F, -3, 2, QUARTER), 2),
        Frequencies(Clamp(F, -1, 2, QUARTER)),
        Tree(Clamp(F, -1, 2, QUARTER), 2, 2),
        Rank(Clamp(F, -1, 2, QUARTER), Fraction(1, 3)),
        Depth(Clamp(F, -1, 2, QUARTER), 2),
        CrossMoments((Clamp(F, -3, 2, QUARTER),) * 2, (2, 1), 1, (0, 2)),
        Tally(F, (Literal.of(0.0), Literal.of(float("inf")))),
        Choice((Clamp(F, -2, 1, QUARTER), Clamp(F, 0, 3, QUARTER))),
    ],
    ids=repr,
)
def test_one_float_more_changes_a_statistic_by_its_sensitivity(engine: Any, query: PrimitiveQuery) -> None:
    assert largest(engine, "f", FLOATS, Type.FLOAT64, query) == query.sensitivity


def test_a_sum_of_ten_million_huge_integers_is_exact(engine: Any) -> None:
    import pyarrow as pa

    rows, huge = 10**7, 2**52
    column = pa.repeat(pa.scalar(huge, pa.int64()), rows)
    name = f"huge {id(column)}"
    engine.add_root(name, pa.table({"x": column}))
    queries = [Sum(Clamp(X, 0, huge)), Sum(Clamp(X, -huge, huge - 1)), Moments(Clamp(X, -huge, huge), 1)]
    found = [engine.measure(RootTable(name), None, [query.statistic])[0] for query in queries]
    assert found == [{0: rows * huge}, {0: rows * (huge - 1)}, {1: 2 * rows * huge}]
    square = Moments(Clamp(X, huge - 2**31, huge), 2)
    assert engine.measure(RootTable(name), None, [square.statistic])[0] == {2: rows * 2**62}


def test_parts_with_products_of_other_columns_do_not_meet_in_one_product(engine: Any) -> None:
    """What one part multiplies is within its own bounds; with another's it could leave 64 bits."""
    wide, narrow = Clamp(X, -(2**62), 0), Clamp(F, 0, 2**30)
    queries: list[Noisy] = [
        CrossMoments((wide,), (1,), 1, (0,)),
        CrossMoments((narrow, narrow), (1, 1), 1, (0, 0)),
        Sum(Clamp(X, -(2**63), 2**63 - 1)),
        CrossMoments((narrow,), (2,), 1, (1,)),
    ]
    rows = [{"bag": bag, "x": x, "f": f} for bag in range(4) for x, f in ((0, 1e300), (-(2**63), None))]
    schema = {"bag": Type.INT64, "x": Type.INT64, "f": Type.FLOAT64}
    engine.add_root("products", rows, schema=schema)
    by = Partitioning(Column("bag"), tuple(range(4)))
    found = engine.measure(RootTable("products"), by, [query.statistic for query in queries])
    exact = [
        query.exact(part) for query, part in zip(queries, found, strict=True) if isinstance(query, Noisy)
    ]
    assert exact == [[2**62, 2**62], [0, 0, 0, 2**60], [-(2**63)], [0, 0, 2**60, 2**60]]
