"""Primitive queries: statistics and their sensitivity, by exhaustive search."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

from fpinq.engines.reference import Relation, measure
from fpinq.model.clamps import Clamp, quantise
from fpinq.model.errors import BadQuery, UnknownColumn
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.queries import (
    MAX_BINS,
    Choice,
    Count,
    Frequencies,
    Moments,
    PrimitiveQuery,
    Rank,
    Ranks,
    Sum,
    Tree,
    measured,
)

S = Schema.of({"x": Type.INT64, "f": Type.FLOAT64})
X, F = Column("x"), Column("f")
NUMBERS = [-9, -1, 0, 1, 2, 9, None]
BAGS = [
    Relation(S, tuple((x, None) for x in bag))
    for n in range(4)
    for bag in combinations_with_replacement(NUMBERS, n)
]

ADDED: list[PrimitiveQuery] = [
    Count(),
    Sum(Clamp(X, -2, 1)),
    Sum(Clamp(X, 3, 5)),
    Sum(Clamp(X, 0, 0)),
    Moments(Clamp(X, -1, 2), 1),
    Moments(Clamp(X, -1, 2), 2),
    Moments(Clamp(X, 1, 1), 1),
    Frequencies(Clamp(X, -1, 2)),
]


@pytest.mark.parametrize("query", ADDED, ids=repr)
def test_one_record_adds_at_most_the_sensitivity_in_l1(query: PrimitiveQuery) -> None:
    worst = 0
    for bag in BAGS:
        for number in NUMBERS:
            larger = Relation(S, (*bag.rows, (number, None)))
            before, after = measure(bag, None, [query])[0], measure(larger, None, [query])[0]
            keys = before.keys() | after.keys()
            worst = max(worst, sum(abs(after.get(j, 0) - before.get(j, 0)) for j in keys))
    assert worst == query.sensitivity


@pytest.mark.parametrize("query", [Tree(Clamp(X, -9, 2), 2, 3), Tree(Clamp(X, 0, 6), 3, 1)], ids=repr)
def test_one_record_adds_one_to_a_node_of_every_level(query: Tree) -> None:
    worst = 0
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        before, after = (query.nodes(measure(table, None, [query])[0]) for table in (bag, larger))
        assert len(before) == len(after) == sum(query.sizes())
        worst = max(worst, sum(abs(a - b) for a, b in zip(after, before, strict=True)))
    assert worst == query.sensitivity == query.height


def test_the_nodes_of_a_tree_are_sums_of_its_points() -> None:
    tree = Tree(Clamp(X, -1, 5), 3, 2)
    assert tree.sizes() == (7, 3)
    assert tree.nodes({-1: 4, 1: 1, 2: 2, 5: 8}) == [4, 0, 1, 2, 0, 0, 8, 5, 2, 8]


def test_a_tree_and_ranks_are_made_of_frequencies() -> None:
    clamp = Clamp(X, 0, 3)
    for query in (Tree(clamp, 2, 2), Rank(clamp, Fraction(1)), Ranks(clamp, (Fraction(0),))):
        assert measured(query) == Frequencies(clamp)
        assert query.contribution({"x": 9}) == {3: 1}
        assert query.contribution({"x": None}) == {}
    assert measured(Count()) == Count()


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
        for first, last, score in query.scores(measure(table, None, [query])[0])
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
        before, after = measure(bag, None, [query])[0], measure(larger, None, [query])[0]
        worst = max(worst, *(abs(after.get(j, 0) - before.get(j, 0)) for j in (0, 1)))
    assert worst == query.sensitivity == 3


def test_the_halves_of_an_average_add_up_to_the_width_times_the_size() -> None:
    table = Relation(S, ((5, None), (200, None), (None, None)))
    halves = measure(table, None, [Moments(Clamp(X, 0, 10), 1)])[0]
    assert halves == {0: 5, 1: 5 + 10}
    squares = measure(table, None, [Moments(Clamp(X, 0, 10), 2)])[0]
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
        Rank(Clamp(F, 0, 1), Fraction(1, 2)),
        Ranks(Clamp(F, 0, 1), (Fraction(1, 2),)),
        Tree(Clamp(X, 0, 9), 2, 3),
        Choice((Clamp(X, 0, 1),)),
    ],
)
def test_a_sound_query_passes(query: PrimitiveQuery) -> None:
    query.check(S)
    assert query.mechanism in ("laplace", "choice")
