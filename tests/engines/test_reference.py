"""The reference engine: small cases that a reader can check by eye."""

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from fpinq.engines.reference import PersonBag, Relation, compute, distance, measure, transform
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import Flatten, Persons, PersonTable, RootTable, Term, Transformation
from fpinq.model.statistics import Points, Records, Totals
from fpinq.model.transformations import (
    Aggregate,
    All,
    Concat,
    Distinct,
    Except,
    Explode,
    First,
    GroupBy,
    GroupJoin,
    Identity,
    Intersect,
    Join,
    LimitPerKey,
    LiteralTable,
    Partitioning,
    PartOf,
    Select,
    SelectMany,
    SemiJoin,
    Take,
    Union,
    Unique,
    UniqueBy,
    Where,
)

S = Schema.of({"k": Type.INT64, "v": Type.INT64})
K, V = Column("k"), Column("v")
A = Relation(S, ((1, 10), (1, 20), (2, 30), (None, 40), (1, 10)))
B = Relation(S, ((1, 10), (2, 5), (None, 40), (None, 40)))


def join(left: Any, right: Any, outer: bool = False) -> Join:
    return Join((K,), (K,), left, right, (("a", Column("l.v")), ("b", Column("r.v"))), outer)


@pytest.mark.parametrize(
    ("transformation", "tables", "rows"),
    [
        (LiteralTable(S, ((1, 1),)), (), [(1, 1)]),
        (Identity(), (A,), list(A.rows)),
        (Select((("a", Apply("add", (K, V))),)), (B,), [(11,), (7,), (None,), (None,)]),
        (Where(Apply("equal", (K, Literal.of(1)))), (A,), [(1, 10), (1, 20), (1, 10)]),
        (Distinct(), (A,), [(1, 10), (1, 20), (2, 30), (None, 40)]),
        (SelectMany(((("x", K),), (("x", V),)), 1), (B,), [(1,), (2,), (None,), (None,)]),
        (
            SelectMany(((("x", K),), (("x", V),)), 5),
            (B,),
            [(1,), (10,), (2,), (5,), (None,), (40,), (None,), (40,)],
        ),
        (Take(2), (A,), [(None, 40), (1, 10)]),
        (LimitPerKey(2, (K,)), (A,), [(1, 10), (1, 10), (2, 30), (None, 40)]),
        (UniqueBy((K,)), (A,), [(2, 30), (None, 40)]),
        (GroupBy((("k", K),), (("n", Aggregate("count")),)), (A,), [(1, 3), (2, 1), (None, 1)]),
        (Concat(), (B, B), list(B.rows) * 2),
        (Union(), (A, B), [(1, 10), (1, 20), (2, 30), (None, 40), (2, 5)]),
        (Union(bag=True), (A, B), [*A.rows, (2, 5), (None, 40)]),
        (Intersect(), (A, B), [(1, 10), (None, 40)]),
        (Intersect(bag=True), (A, A), list(A.rows)),
        (Except(), (A, B), [(1, 20), (2, 30)]),
        (Except(bag=True), (A, B), [(1, 10), (1, 20), (2, 30)]),
        (SemiJoin((K,), (K,)), (A, B), [(1, 10), (1, 20), (2, 30), (1, 10)]),
        (SemiJoin((K,), (K,), keep=False), (A, B), [(None, 40)]),
        (SemiJoin((K, V), (K, V)), (A, B), [(1, 10), (1, 10)]),
        (join(All(), All()), (A, B), [(10, 10), (20, 10), (10, 10), (30, 5)]),
        (join(First(1), First(1)), (A, B), [(10, 10), (30, 5)]),
        (join(Unique(), All()), (A, B), [(30, 5)]),
        (join(All(), All(), True), (A, B), [(10, 10), (20, 10), (10, 10), (30, 5), (40, None)]),
        (join(All(), First(1), True), (B, A), [(10, 10), (5, 30), (40, None), (40, None)]),
        (join(All(), Unique(), True), (B, A), [(10, None), (5, 30), (40, None), (40, None)]),
        (join(Unique(), Unique(), True), (A, B), [(30, 5), (40, None)]),
        (join(First(1), All(), True), (B, A), [(10, 10), (10, 20), (10, 10), (5, 30), (40, None)]),
        (PartOf(Partitioning(K, (2, None)), 1), (A,), [(None, 40)]),
        (PartOf(Partitioning(K, (2, None)), 0), (A,), [(2, 30)]),
    ],
)
def test_a_transformation_computes(
    transformation: Transformation, tables: tuple[Relation, ...], rows: list[Any]
) -> None:
    assert Counter(transform(transformation, *tables).rows) == Counter(rows)


def test_a_group_join_has_the_keys_of_either_side_and_no_null() -> None:
    count = Aggregate("count")
    joined = transform(
        GroupJoin(("k",), (K,), (K,), (("a", count),), (("b", count),)), A, Relation(S, ((3, 1), (1, 1)))
    )
    assert Counter(joined.rows) == Counter([(1, 3, 1), (2, 1, 0), (3, 0, 1)])


def test_explode_takes_the_first_pieces_and_nothing_of_null() -> None:
    words = Relation(Schema.of({"s": Type.STRING}), (("a b c",), (None,), ("",)))
    exploded = transform(Explode(Apply("split", (Column("s"), Literal.of(" "))), "w", 2), words)
    assert Counter(exploded.rows) == Counter([("a",), ("b",), ("",)])


MIXED = Relation(
    Schema.of({"x": Type.INT64, "f": Type.FLOAT64}),
    ((2**62, 0.25), (2**62, 0.75), (2**62, None), (None, float("inf"))),
)


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [
        (Aggregate("count"), 4),
        (Aggregate("sum", Clamp(Column("x"), 0, 10)), 30),
        (Aggregate("sum", Clamp(Column("x"), 0, 2**63 - 1)), None),
        (Aggregate("average", Clamp(Column("x"), 0, 10)), 10.0),
        (Aggregate("average", Clamp(Column("x"), 0, 2**63 - 1)), None),
        (Aggregate("sum", Clamp(Column("f"), 0, 8, Fraction(1, 4))), 3.0),
        (Aggregate("sum", Clamp(Column("f"), 2**53, 2**53)), None),
        (Aggregate("average", Clamp(Column("f"), 0, 8, Fraction(1, 4))), 1.0),
        (Aggregate("min", Column("f")), 0.25),
        (Aggregate("max", Column("x")), 2**62),
    ],
)
def test_an_aggregate_has_its_value(aggregate: Aggregate, value: Any) -> None:
    (row,) = transform(GroupBy((), (("a", aggregate),)), MIXED).rows
    assert row == (value,)
    assert type(row[0]) is type(value)


def test_aggregates_of_nothing_but_nulls() -> None:
    nulls = Relation(MIXED.schema, ((None, None),))
    aggregates = (
        ("s", Aggregate("sum", Clamp(Column("f"), 1, 2))),
        ("a", Aggregate("average", Clamp(Column("f"), 1, 2))),
        ("m", Aggregate("min", Column("x"))),
    )
    assert transform(GroupBy((), aggregates), nulls).rows == ((0.0, None, None),)


def test_grouping_an_empty_table_without_keys_gives_nothing() -> None:
    assert transform(GroupBy((), (("n", Aggregate("count")),)), Relation(S, ())).rows == ()


def test_persons_are_flattened_one_by_one() -> None:
    shape = Persons("id", (("people", S), ("visits", S)))
    visits = tuple((1, v) for v in range(4))
    persons = PersonBag(
        shape, ({"people": A, "visits": Relation(S, visits)}, {"people": A, "visits": Relation(S, ())})
    )
    plan = Term(Flatten(PersonTable("visits", 3)), (RootTable("P"),))
    assert Counter(compute(plan, {"P": persons}).rows) == Counter(visits[:3])
    grouped = Term(GroupBy((), (("n", Aggregate("count")),)), (PersonTable("visits", 3),))
    assert compute(Term(Flatten(grouped), (RootTable("P"),)), {"P": persons}).rows == ((3,),)


def test_a_plan_is_computed_from_its_roots() -> None:
    plan = Term(Concat(), (RootTable("A"), Term(Distinct(), (RootTable("B"),))))
    assert len(compute(plan, {"A": A, "B": B}).rows) == 8


def test_a_statistic_is_measured_part_by_part() -> None:
    by = Partitioning(K, (1, 7))
    assert measure(A, by, [Records(), Records()]) == [{0: 3}, {}]
    assert measure(A, None, [Totals((Clamp(V, 0, 15),))]) == [{0: 65}]
    assert measure(A, None, [Points(Clamp(V, 10, 20))]) == [{10: 2, 20: 3}]


def test_distance_is_the_symmetric_difference_of_bags() -> None:
    assert distance(A, A) == 0
    assert distance(A, B) == 5
    assert distance(Relation(S, ((1, 1), (1, 1))), Relation(S, ((1, 1),))) == 1
