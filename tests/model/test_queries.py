"""Primitive queries: statistics and their sensitivity, by exhaustive search."""

from collections.abc import Iterator
from fractions import Fraction
from inspect import isabstract
from itertools import combinations_with_replacement, product
from math import prod
from typing import cast

import pytest

from fpinq.engines.reference import Relation, measure
from fpinq.model import queries
from fpinq.model.actions import Query
from fpinq.model.clamps import Clamp, quantise
from fpinq.model.domains import IntegerDomain
from fpinq.model.errors import BadQuery, UnknownColumn
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.kinds import Choices, Chosen, Noisy, Primitive
from fpinq.model.notation import show_action
from fpinq.model.plans import RootTable
from fpinq.model.queries import (
    MAX_BINS,
    MAX_SHARE,
    Balance,
    Brackets,
    Choice,
    Count,
    CrossMoments,
    Depth,
    Discovery,
    Frequencies,
    Lagrange,
    Moments,
    Offset,
    PrimitiveQuery,
    Rank,
    Ranks,
    Several,
    SimpleQuery,
    Sparse,
    Stable,
    Sum,
    Summary,
    Tally,
    Tree,
    shares,
    simple,
)
from fpinq.model.statistics import (
    Bernstein,
    Integers,
    Monomials,
    Points,
    Records,
    Statistic,
    Totals,
    dense,
    size,
)
from fpinq.model.work import TableSize, work_of

S = Schema.of({"x": Type.INT64, "f": Type.FLOAT64})
X, F = Column("x"), Column("f")
NUMBERS = [-9, -1, 0, 1, 2, 9, None]
BAGS = [
    Relation(S, tuple((x, None) for x in bag))
    for n in range(4)
    for bag in combinations_with_replacement(NUMBERS, n)
]

ADDED: list[SimpleQuery] = [
    Count(),
    Sum(Clamp(X, -2, 1)),
    Sum(Clamp(X, 3, 5)),
    Sum(Clamp(X, 0, 0)),
    Moments(Clamp(X, -1, 2), 1),
    Moments(Clamp(X, -1, 2), 2),
    Moments(Clamp(X, 1, 1), 1),
    Summary(Clamp(X, -1, 2), 1),
    Summary(Clamp(X, -1, 2), 2),
    Summary(Clamp(X, 1, 1), 1),
    Frequencies(Clamp(X, -1, 2)),
    Tally(X, (Literal.of(-9), Literal.of(2))),
]


@pytest.mark.parametrize("query", ADDED, ids=repr)
def test_one_record_adds_at_most_the_sensitivity_in_l1(query: SimpleQuery) -> None:
    worst = 0
    for bag in BAGS:
        for number in NUMBERS:
            larger = Relation(S, (*bag.rows, (number, None)))
            before, after = (
                measure(bag, None, [query.statistic])[0],
                measure(larger, None, [query.statistic])[0],
            )
            keys = before.keys() | after.keys()
            worst = max(worst, sum(abs(after.get(j, 0) - before.get(j, 0)) for j in keys))
    assert worst == query.sensitivity


LAGRANGE = [Lagrange(Clamp(X, lower, 2)) for lower in range(-6, 3)]


def added(query: Noisy) -> Iterator[list[int]]:
    """What one more record adds to the integers that get noise."""
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        before, after = (query.exact(measure(table, None, [query.statistic])[0]) for table in (bag, larger))
        yield [a - b for a, b in zip(after, before, strict=True)]


def test_the_totals_of_the_lagrange_basis_give_the_number_the_sum_and_the_squares() -> None:
    for query in LAGRANGE:
        w = query.of.width
        for point in range(query.of.lower, 3):
            table = Relation(S, ((point, None),))
            t, (a, b, c) = point - query.of.lower, query.exact(measure(table, None, [query.statistic])[0])
            assert (a + b + c, 2 * c + b, 4 * c + b) == (w * w, 2 * t * w, 4 * t * t)


@pytest.mark.parametrize("query", LAGRANGE, ids=repr)
def test_one_record_adds_at_most_the_sensitivity_to_the_lagrange_basis(query: Lagrange) -> None:
    points = (Relation(S, ((point, None),)) for point in range(query.of.lower, 3))
    exact = [query.exact(measure(table, None, [query.statistic])[0]) for table in points]
    assert max(sum(map(abs, each)) for each in exact) == query.sensitivity
    assert max(sum(n * n for n in each) for each in exact) == query.squared


def test_one_record_adds_at_most_the_sensitivity_in_l2() -> None:
    noisy = [query for query in ASKED if isinstance(query, Noisy)]
    assert {type(query) for query in noisy} == {c for c in SimpleQuery.__args__ if issubclass(c, Noisy)}
    for query in noisy:
        assert max(sum(n * n for n in each) for each in added(query)) == query.squared, query


@pytest.mark.parametrize("query", [Tree(Clamp(X, -9, 2), 2, 3), Tree(Clamp(X, 0, 6), 3, 1)], ids=repr)
def test_one_record_adds_one_to_a_node_of_every_level(query: Tree) -> None:
    worst = 0
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        before, after = (query.exact(measure(table, None, [query.statistic])[0]) for table in (bag, larger))
        assert len(before) == len(after) == sum(query.sizes())
        worst = max(worst, sum(abs(a - b) for a, b in zip(after, before, strict=True)))
    assert worst == query.sensitivity == query.height


@pytest.mark.parametrize("query", [Offset(Clamp(X, -1, 2)), Offset(Clamp(X, -8, -3))], ids=repr)
def test_one_record_moves_an_offset_and_what_is_missing_by_the_width(query: Offset) -> None:
    worst = 0
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        before, after = (query.exact(measure(table, None, [query.statistic])[0]) for table in (bag, larger))
        worst = max(worst, sum(abs(a - b) for a, b in zip(after, before, strict=True)))
    assert worst == query.sensitivity == query.of.width


def test_a_summary_has_the_moments_and_what_is_missing() -> None:
    clamp = Clamp(X, -1, 2)
    for bag, degree in product(BAGS, (1, 2)):
        moments, summary = Moments(clamp, degree), Summary(clamp, degree)
        exact = [query.exact(measure(bag, None, [query.statistic])[0]) for query in (moments, summary)]
        missing = sum(x is None for x, _ in bag.rows)
        assert exact[1] == [*exact[0], missing * clamp.width**degree]
        assert sum(exact[1]) == len(bag.rows) * clamp.width**degree


SEVERAL = [
    Several((Count(),), (1,)),
    Several((Count(), Sum(Clamp(X, -2, 1))), (1, 1)),
    Several((Count(), Offset(Clamp(X, -2, 1)), Moments(Clamp(X, 0, 9), 2)), (3, 1, 2)),
    Several((Summary(Clamp(X, -2, 1), 1), Frequencies(Clamp(X, 0, 3))), (1, MAX_SHARE)),
]


@pytest.mark.parametrize("query", SEVERAL, ids=repr)
def test_one_record_changes_several_by_one_in_units_of_what_each_allows_at_its_share(query: Several) -> None:
    """So that noise of scale Δ/(share·ε) on each is ε-private."""
    query.check(S)
    assert sum(query.shares) == 1
    worst = Fraction(0)
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        loss = Fraction(0)
        for one, share in zip(simple(query), shares(query), strict=True):
            assert isinstance(one, Noisy)
            before, after = (one.exact(measure(t, None, [one.statistic])[0]) for t in (bag, larger))
            moved = sum(abs(a - b) for a, b in zip(after, before, strict=True))
            loss += share * moved / one.sensitivity
        worst = max(worst, loss)
    assert worst <= 1
    assert worst == 1 or len(query.of) > 1


def test_several_are_written_with_their_weights_and_are_a_scan_each() -> None:
    several = Several((Count(), Sum(Clamp(X, 0, 9))), (3, 1))
    assert show_action(Query("t", Fraction(1), (several,))) == "query(t, 3×count and 1×sum[x in 0…9], 1)"
    sizes = {"A": {"A": TableSize.of(S, 10, {})}}
    one, two = (work_of(RootTable("A"), None, (query,), sizes) for query in (several.of[1], several))
    assert one.query < two.query < 2 * one.query + 1


def test_a_query_that_is_not_several_is_one_at_the_whole_ε() -> None:
    assert (simple(Count()), shares(Count())) == ((Count(),), (1,))


SQUARE = Apply("multiply", (X, X))
CROSSED = [
    CrossMoments((Clamp(X, -1, 2), Clamp(SQUARE, 0, 4)), degrees, weight, squares)
    for degrees, weight, squares in [
        ((1, 1), 1, (0, 0)),
        ((2, 1), 1, (0, 0)),
        ((2, 2), 7, (0, 0)),
        ((1, 1), 2, (3, 0)),
        ((1, 2), 1, (1, 5)),
    ]
]


@pytest.mark.parametrize("query", CROSSED, ids=repr)
def test_one_record_adds_at_most_the_sensitivity_to_cross_moments(query: CrossMoments) -> None:
    worst = 0
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        before, after = (query.exact(measure(table, None, [query.statistic])[0]) for table in (bag, larger))
        assert len(before) == query.integers
        added = [b - a for a, b in zip(before, after, strict=True)]
        assert not query.monotone or all(n >= 0 for n in added)
        worst = max(worst, sum(map(abs, added)))
    assert worst == query.sensitivity


@pytest.mark.parametrize("degrees", list(product((1, 2), repeat=3)))
def test_cross_moments_are_products_of_moments(degrees: tuple[int, ...]) -> None:
    clamps = Clamp(X, -1, 2), Clamp(X, 0, 5), Clamp(X, -2, 1)
    query = CrossMoments(clamps, degrees, 3, (0, 2, 0))
    for x in NUMBERS[:-1]:
        (statistic,) = measure(Relation(S, ((x, None),)), None, [query.statistic])
        bases = [
            Bernstein(c, d).contribution({"x": x}).values() for c, d in zip(clamps, degrees, strict=True)
        ]
        t = min(max(cast("int", x), 0), 5)
        expected = [3 * prod(each) for each in product(*bases)]
        assert query.exact(statistic) == [*expected, 2 * (2 * (2 * t - 5) ** 2 - 25)]


def test_a_record_without_one_of_the_values_adds_nothing_to_their_products() -> None:
    query = CrossMoments((Clamp(X, 0, 2), Clamp(F, 0, 2)), (1, 1), 1, (1, 0))
    assert query.statistic.contribution({"x": 1, "f": None}) == {}
    assert query.statistic.contribution({"x": None, "f": 1.0}) == {}
    assert query.statistic.contribution({"x": 1, "f": 2.0}) == {0: 1, 1: 2, 2: 1, 3: 2, 4: 1}


def test_one_record_changes_the_score_of_a_depth_by_at_most_one() -> None:
    query = Depth(Clamp(X, -2, 3), 1)
    worst = 0
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        before, after = (
            {x: score for first, last, score in runs for x in range(first, last + 1)}
            for runs in (
                next(query.choices(measure(t, None, [query.statistic])[0])).runs for t in (bag, larger)
            )
        )
        assert before.keys() == after.keys() == set(range(-2, 4))
        worst = max(worst, *(abs(before[x] - after[x]) for x in before))
    assert worst == query.sensitivity == 1


def test_the_point_where_so_many_records_are_reached_scores_best() -> None:
    (choices,) = Depth(Clamp(X, 0, 9), 2).choices({2: 3, 5: 1, 8: 4})
    assert choices.runs == [(0, 1, -2), (2, 2, 0), (3, 4, -1), (5, 5, -1), (6, 7, -2), (8, 8, -2), (9, 9, -6)]
    (choices,) = Depth(Clamp(X, 0, 2), 2).choices({0: 1, 2: 3})
    assert choices.runs == [(0, 0, -1), (1, 1, -1), (2, 2, 0)]


def test_the_nodes_of_a_tree_are_sums_of_its_points() -> None:
    tree = Tree(Clamp(X, -1, 5), 3, 2)
    assert tree.sizes() == (7, 3)
    assert tree.exact({-1: 4, 1: 1, 2: 2, 5: 8}) == [4, 0, 1, 2, 0, 0, 8, 5, 2, 8]


def test_a_tree_and_ranks_are_made_of_how_many_records_are_at_each_point() -> None:
    clamp = Clamp(X, 0, 3)
    for query in (
        Frequencies(clamp),
        Tree(clamp, 2, 2),
        Rank(clamp, Fraction(1)),
        Ranks(clamp, (Fraction(0),)),
    ):
        assert query.statistic == Points(clamp)
        assert query.statistic.contribution({"x": 9}) == {3: 1}
        assert query.statistic.contribution({"x": None}) == {}


def test_several_ranks_are_ranks_one_by_one() -> None:
    ranks = Ranks(Clamp(X, 0, 3), (Fraction(1, 4), Fraction(1, 2)))
    assert ranks.each() == (Rank(ranks.of, Fraction(1, 4)), Rank(ranks.of, Fraction(1, 2)))
    assert ranks.sensitivity == 3


@pytest.mark.parametrize(
    "fraction", [Fraction(0), Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(1)]
)
def test_one_record_lowers_rank_scores_by_at_most_the_sensitivity_and_raises_none(fraction: Fraction) -> None:
    query = Rank(Clamp(X, -2, 3), fraction)
    worst = 0
    for bag in BAGS:
        for number in NUMBERS:
            larger = Relation(S, (*bag.rows, (number, None)))
            before, after = (points(query, table) for table in (bag, larger))
            assert before.keys() == after.keys() == set(range(-2, 4))
            assert all(after[x] <= before[x] for x in before)
            worst = max(worst, *(before[x] - after[x] for x in before))
    assert worst == query.sensitivity


def points(query: Rank, table: Relation) -> dict[int, int]:
    return {
        x: score
        for first, last, score in query.scores(measure(table, None, [query.statistic])[0])
        for x in range(first, last + 1)
    }


def test_the_median_scores_best() -> None:
    table = Relation(S, tuple((x, None) for x in (0, 0, 1, 2, 2)))
    scores = points(Rank(Clamp(X, -2, 3), Fraction(1, 2)), table)
    assert max(scores, key=lambda x: scores[x]) == 1
    assert scores == {-2: -5, -1: -5, 0: -3, 1: -2, 2: -3, 3: -5}


def test_one_record_changes_each_candidate_by_at_most_the_sensitivity() -> None:
    query = Choice((Clamp(X, -2, 1), Clamp(X, 0, 3)))
    worst = 0
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        before, after = measure(bag, None, [query.statistic])[0], measure(larger, None, [query.statistic])[0]
        worst = max(worst, *(abs(after.get(j, 0) - before.get(j, 0)) for j in (0, 1)))
    assert worst == query.sensitivity == 3


def test_the_halves_of_an_average_add_up_to_the_width_times_the_size() -> None:
    table = Relation(S, ((5, None), (200, None), (None, None)))
    halves = measure(table, None, [Bernstein(Clamp(X, 0, 10), 1)])[0]
    assert halves == {0: 5, 1: 5 + 10}
    squares = measure(table, None, [Bernstein(Clamp(X, 0, 10), 2)])[0]
    assert squares == {0: 25, 1: 50, 2: 25 + 100}


@pytest.mark.parametrize(
    ("number", "point"),
    [
        (0.26, 1),
        (0.125, 0),
        (0.375, 2),
        (-0.3, -1),
        (float("inf"), 8),
        (float("-inf"), -8),
        (1e300, 8),
        (None, None),
    ],
)
def test_a_float_becomes_the_nearest_grid_point_ties_to_even(number: float | None, point: int | None) -> None:
    assert quantise(Clamp(F, -8, 8, Fraction(1, 4)), {"f": number}) == point


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (Sum(Clamp(X, 3, 2)), "lower ≤ upper"),
        (Moments(Clamp(X, 0, 1), 0), "degree"),
        (Lagrange(Clamp(X, 0, 2**31 + 1)), "too wide for a variance"),
        (Moments(Clamp(X, 0, 1), 3), "degree"),
        (Moments(Clamp(X, 0, 2**31 + 1), 2), "too wide for a variance"),
        (Frequencies(Clamp(X, 0, MAX_BINS)), "coarser"),
        (Rank(Clamp(X, 0, 1), Fraction(3, 2)), "between 0 and 1"),
        (Rank(Clamp(X, 0, 1), Fraction(1, 10**18 + 1)), "steps of"),
        (Ranks(Clamp(X, 0, 1), ()), "1 to 1000 fractions"),
        (Ranks(Clamp(X, 0, 1), (Fraction(1, 2), Fraction(-1))), "between 0 and 1"),
        (Tree(Clamp(X, 0, MAX_BINS), 2, 2), "coarser"),
        (Tree(Clamp(X, 0, 1), 1, 1), "branches"),
        (Tree(Clamp(X, 0, 1), 2, 26), "levels"),
        (Depth(Clamp(X, 0, 1), -1), "whole number"),
        (Depth(Clamp(X, 1, 0), 1), "lower ≤ upper"),
        (CrossMoments((), (), 1, ()), "one or more"),
        (CrossMoments((Clamp(X, 0, 1),), (1, 1), 1, (0,)), "a degree and a square each"),
        (CrossMoments((Clamp(X, 0, 1),), (1,), 1, ()), "a degree and a square each"),
        (CrossMoments((Clamp(X, 1, 0),), (1,), 1, (0,)), "lower ≤ upper"),
        (CrossMoments((Clamp(X, 0, 1),), (3,), 1, (0,)), "degree"),
        (CrossMoments((Clamp(X, 0, 1),), (0,), 1, (0,)), "degree"),
        (CrossMoments((Clamp(X, 0, 1),) * 11, (1,) * 11, 1, (0,) * 11), "too many columns"),
        (CrossMoments((Clamp(X, 0, 1),) * 500, (2,) * 500, 1, (0,) * 500), "too many columns"),
        (CrossMoments((Clamp(X, 0, 1),), (1,), 0, (0,)), "weights"),
        (CrossMoments((Clamp(X, 0, 1),), (1,), 1, (-1,)), "weights"),
        (CrossMoments((Clamp(X, 0, 1),), (1,), 2**128 + 1, (0,)), "weights"),
        (CrossMoments((Clamp(X, 0, 2**31),) * 2, (1, 2), 1, (0, 0)), "too wide for products"),
        (CrossMoments((Clamp(X, 0, 2**32), Clamp(X, 0, 0)), (2, 1), 1, (0, 0)), "too wide for products"),
        (CrossMoments((Clamp(X, 0, 2**32),), (1,), 1, (1,)), "too wide for products"),
        (Tally(X, ()), "values are counted"),
        (Tally(X, tuple(map(Literal.of, range(10_001)))), "values are counted"),
        (Tally(X, (Literal.of(1.0),)), "must be int64"),
        (Tally(X, (Literal(None, Type.INT64),)), "must be int64"),
        (Tally(F, (Literal.of(0.0), Literal.of(-0.0))), "different"),
        (Summary(Clamp(X, 0, 1), 3), "degree"),
        (Offset(Clamp(X, 1, 0)), "lower ≤ upper"),
        (Several((), ()), "1 to 100 queries"),
        (Several((Count(),) * 101, (1,) * 101), "1 to 100 queries"),
        (Several((Count(),), (1, 1)), "a weight each"),
        (Several((Count(), Count()), (1,)), "a weight each"),
        (Several((Count(), Count()), (1, 0)), "weight of a query"),
        (Several((Count(), Count()), (1, -1)), "weight of a query"),
        (Several((Count(), Count()), (1, MAX_SHARE + 1)), "weight of a query"),
        (Several((Count(), Choice(())), (1, 1)), "candidates"),
        (Choice(()), "candidates"),
        (Choice((Clamp(X, 1, 0),)), "lower ≤ upper"),
    ],
)
def test_a_senseless_query_is_refused(query: PrimitiveQuery, why: str) -> None:
    with pytest.raises(BadQuery, match=why):
        query.check(S)


def test_a_query_of_an_unknown_column_is_refused() -> None:
    with pytest.raises(UnknownColumn):
        Sum(Clamp(Column("y"), 0, 1)).check(S)


@pytest.mark.parametrize(
    "query",
    [
        *ADDED,
        *CROSSED,
        Depth(Clamp(F, 0, 1), 7),
        Rank(Clamp(F, 0, 1), Fraction(1, 2)),
        Ranks(Clamp(F, 0, 1), (Fraction(1, 2),)),
        Brackets(Clamp(F, 0, 1), (Fraction(1, 2),), (0,), (2**40,)),
        Tree(Clamp(X, 0, 9), 2, 3),
        Choice((Clamp(X, 0, 1),)),
        Balance(Clamp(F, 0, 1), 2**48, 0, 1, Fraction(1, 2**20)),
    ],
)
def test_a_sound_query_passes(query: SimpleQuery) -> None:
    query.check(S)
    assert query.mechanism in ("laplace", "choice", "quotient")


# ── what everybody must know of a query ──────────────────────────────────────────────

ASKED: list[SimpleQuery] = [
    *ADDED,
    *CROSSED,
    Lagrange(Clamp(X, -2, 2)),
    Lagrange(Clamp(X, 1, 2)),
    Lagrange(Clamp(X, 2, 2)),
    Depth(Clamp(X, -2, 3), 1),
    Offset(Clamp(X, -2, 3)),
    Offset(Clamp(X, 3, 3)),
    Tree(Clamp(X, -9, 2), 2, 3),
    Rank(Clamp(X, -2, 3), Fraction(1, 3)),
    Ranks(Clamp(X, -2, 3), (Fraction(1, 2), Fraction(9, 10))),
    Choice((Clamp(X, -2, 1), Clamp(X, 0, 3))),
    Choice((Clamp(X, 0, 1), Clamp(X, 2, 3))),
    Choice((Clamp(X, -1, 0), Clamp(X, -3, -2))),
    Brackets(Clamp(X, -2, 3), (Fraction(1, 2), Fraction(9, 10)), (2, 5), (0, 3)),
    Balance(Clamp(X, -2, 1), 3, 1, 1),
    Balance(Clamp(X, 0, 2), 2, 0, 1, Fraction(1, 2)),
    Sparse(X, IntegerDomain(-2, 3), Fraction(1), 6),
    Stable(X, IntegerDomain(-2, 3), Fraction(1, 10), 1, 6),
]


class Whole(Noisy):
    """A query that says everything."""

    statistic = Records()
    sensitivity = 1
    squared = 1
    monotone = True
    integers = 1
    passes = 1

    def check(self, schema: Schema) -> None: ...

    def exact(self, measured: Integers) -> list[int]:
        return [measured.get(0, 0)]


class WholeChoice(Chosen):
    """A choice that says everything."""

    statistic = Totals(())
    sensitivity = 1
    monotone = True
    integers = 1
    passes = 1
    alone = True

    def check(self, schema: Schema) -> None: ...

    def choices(self, measured: Integers) -> Iterator[Choices]:
        yield Choices([(0, 0, 0)], 1)


FACTS = ["statistic", "sensitivity", "monotone", "integers", "passes", "check"]
LEFT_OUT = [(Whole, fact) for fact in [*FACTS, "exact"]] + [
    (WholeChoice, fact) for fact in [*FACTS, "choices", "alone"]
]


@pytest.mark.parametrize(("whole", "fact"), LEFT_OUT, ids=lambda value: getattr(value, "__name__", value))
def test_a_query_that_leaves_a_fact_out_cannot_be_asked(whole: type[Primitive], fact: str) -> None:
    whole()
    said = {
        name: value for name, value in vars(whole).items() if name not in ("__dict__", "__weakref__", fact)
    }
    forgetful = type(whole)("Forgetful", whole.__bases__, said)
    with pytest.raises(TypeError, match=fact):
        forgetful()


def test_the_only_facts_with_a_value_for_all_are_the_names_of_the_mechanisms() -> None:
    facts = {name for name in vars(Primitive) if not name.startswith("_")}
    assert facts == {"mechanism", *FACTS}
    assert Primitive.__abstractmethods__ == facts
    assert Noisy.__abstractmethods__ == {*FACTS, "exact", "squared"}
    assert Chosen.__abstractmethods__ == {*FACTS, "choices", "alone"}
    assert not any(isabstract(query) for query in SimpleQuery.__args__)


def test_every_query_of_the_language_is_tried_here() -> None:
    assert {type(query) for query in ASKED} == set(SimpleQuery.__args__)
    defined = {value for value in vars(queries).values() if isinstance(value, type)}
    assert {c for c in defined if issubclass(c, Primitive) and not isabstract(c)} == set(SimpleQuery.__args__)


def drawn_on(query: SimpleQuery, measured: Integers) -> list[int]:
    """The integers that noise is added to, or the score of every candidate."""
    if isinstance(query, Chosen):
        runs = [run for choices in query.choices(measured) for run in choices.runs]
        return [score for first, last, score in runs for _ in range(first, last + 1)]
    if isinstance(query, Balance):
        above, below = query.parts(measured)
        steps = range(-query.fineness, query.fineness + 1)
        return [
            min(query.fineness, query.fineness - i) * above - min(query.fineness, query.fineness + i) * below
            for i in steps
        ]
    if isinstance(query, Discovery):
        return dense(query.statistic, measured)
    return query.exact(measured)


@pytest.mark.parametrize("query", ASKED, ids=repr)
def test_scores_are_monotone_exactly_if_no_two_records_move_any_of_them_in_two_directions(
    query: SimpleQuery,
) -> None:
    moved = {0}
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        before, after = (drawn_on(query, measure(t, None, [query.statistic])[0]) for t in (bag, larger))
        moved |= {a - b for a, b in zip(after, before, strict=True)}
    assert query.monotone is not (min(moved) < 0 < max(moved))


@pytest.mark.parametrize("query", ASKED, ids=repr)
def test_a_query_releases_and_passes_over_as_much_as_it_says(query: SimpleQuery) -> None:
    if isinstance(query, Chosen):
        assert query.integers == query.passes == len(list(query.choices({})))
        assert max(choices.sensitivity for choices in query.choices({})) == query.sensitivity
    elif isinstance(query, Balance):
        assert query.integers == query.passes == 1
    elif isinstance(query, Discovery):
        assert query.integers == 2 * query.at_most == 2 * query.domain.size
    else:
        assert len(query.exact({})) == query.integers


def test_brackets_choose_as_if_more_records_were_at_the_bounds() -> None:
    clamp, half = Clamp(X, -2, 3), Fraction(1, 2)
    query = Brackets(clamp, (half, Fraction(1, 3)), (4, 1), (0, 7))
    for bag in BAGS[::3]:
        tables = [
            Relation(S, (*bag.rows, *(((point, None),) * number)))
            for point, number in ((-2, 4), (-2, 0), (3, 0), (-2, 1), (-2, 0), (3, 7))
        ]
        ranks = [Rank(clamp, fraction) for fraction in (half, half, half, *(Fraction(1, 3),) * 3)]
        (measured,) = measure(bag, None, [query.statistic])
        for rank, table, choices in zip(ranks, tables, query.choices(measured), strict=True):
            (exact,) = measure(table, None, [rank.statistic])
            assert choices.runs == rank.scores(exact)


@pytest.mark.parametrize(
    ("below", "above", "problem"),
    [((1, 2), (1,), "for each fraction"), ((1,), (-1,), "0 to"), ((2**41,), (0,), "0 to")],
)
def test_brackets_without_sense_are_refused(
    below: tuple[int, ...], above: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(BadQuery, match=problem):
        Brackets(Clamp(X, 0, 1), (Fraction(1, 2),), below, above).check(S)


@pytest.mark.parametrize("about", [None, Fraction(0), Fraction(-3, 2), Fraction(7, 4), Fraction(2)])
def test_the_parts_of_a_balance_are_what_each_record_has_and_lacks(about: Fraction | None) -> None:
    query = Balance(Clamp(X, -2, 2), 4, 1, 1, about)
    query.check(S)

    def had(x: int) -> int:
        clamped = min(max(x, -2), 2)
        if about is None:
            return clamped + 2
        return (clamped * about.denominator - about.numerator) ** 2

    assert query.largest == max(had(x) for x in range(-2, 3))
    assert query.sensitivity == 4 * query.largest
    for bag in BAGS:
        numbers = [row[0] for row in bag.rows if row[0] is not None]
        (measured,) = measure(bag, None, [query.statistic])
        above = sum(map(had, numbers))
        assert query.parts(measured) == (above, len(numbers) * query.largest - above)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (Balance(Clamp(X, 1, 1), 4, 1, 1), "bounds that are apart"),
        (Balance(Clamp(X, 0, 1), 0, 1, 1), "1 to"),
        (Balance(Clamp(X, 0, 1), 2**49, 1, 1), "1 to"),
        (Balance(Clamp(X, 0, 1), 4, 0, 0), "at the least"),
        (Balance(Clamp(X, 0, 1), 4, -1, 3), "at the least"),
        (Balance(Clamp(X, 0, 1), 4, 1, 1, Fraction(3, 2)), "within the bounds"),
        (Balance(Clamp(X, 0, 1), 4, 1, 1, Fraction(-1, 2)), "within the bounds"),
        (Balance(Clamp(X, 0, 1), 4, 1, 1, Fraction(1, 2**21)), "in steps of"),
        (Balance(Clamp(X, 0, 2**31 + 1), 4, 1, 1, Fraction(1)), "too wide"),
    ],
)
def test_a_balance_without_sense_is_refused(query: Balance, problem: str) -> None:
    with pytest.raises(BadQuery, match=problem):
        query.check(S)


@pytest.mark.parametrize(
    ("statistic", "clamps", "coordinates"),
    [
        (Records(), (), [0]),
        (Totals((Clamp(X, 0, 1), Clamp(X, 2, 3))), (Clamp(X, 0, 1), Clamp(X, 2, 3)), [0, 1]),
        (Bernstein(Clamp(X, 0, 9), 2), (Clamp(X, 0, 9),), [0, 1, 2]),
        (Bernstein(Clamp(X, 0, 9), 1, missing=True), (Clamp(X, 0, 9),), [0, 1, 2]),
        (Points(Clamp(X, -1, 1)), (Clamp(X, -1, 1),), [-1, 0, 1]),
        (
            Monomials((Clamp(X, 0, 1), Clamp(X, 0, 3)), ((0, 0), (2, 1), (0, 1))),
            (Clamp(X, 0, 1), Clamp(X, 0, 3)),
            [0, 1, 2],
        ),
    ],
    ids=repr,
)
def test_a_statistic_has_the_coordinates_that_records_add_to(
    statistic: Statistic, clamps: tuple[Clamp, ...], coordinates: list[int]
) -> None:
    assert statistic.clamps == clamps
    assert list(statistic.coordinates) == coordinates
    assert size(statistic) == len(coordinates)
    added = {j for x in NUMBERS for j, t in statistic.contribution({"x": x}).items() if t}
    assert added == set(coordinates)


def test_a_statistic_may_have_more_coordinates_than_a_list() -> None:
    assert size(Points(Clamp(X, -(2**63), 2**63 - 1))) == 2**64


def test_the_reach_of_a_product_is_what_one_record_can_add_to_it() -> None:
    query = CrossMoments((Clamp(Column("a"), 0, 3), Clamp(Column("b"), -2, 3)), (2, 1), 1, (0, 0))
    products = query.statistic
    corners = [{"a": a, "b": b} for a in (0, 3) for b in (-2, 3)]
    most = [max(products.contribution(row)[k] for row in corners) for k in products.coordinates]
    assert [products.reach(powers) for powers in products.exponents] == most
