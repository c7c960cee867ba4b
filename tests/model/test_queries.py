"""Primitive queries: statistics and their sensitivity, by exhaustive search."""

from collections.abc import Iterator
from fractions import Fraction
from inspect import isabstract
from itertools import combinations_with_replacement, product

import pytest

from fpinq.engines.reference import Relation, measure
from fpinq.model import queries
from fpinq.model.clamps import Clamp, quantise
from fpinq.model.errors import BadQuery, UnknownColumn
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.queries import (
    MAX_BINS,
    Choice,
    Choices,
    Chosen,
    Count,
    Frequencies,
    Moments,
    Noisy,
    Primitive,
    PrimitiveQuery,
    Rank,
    Ranks,
    Sum,
    Tree,
)
from fpinq.model.statistics import Bernstein, Integers, Points, Records, Statistic, Totals, size

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
            before, after = (
                measure(bag, None, [query.statistic])[0],
                measure(larger, None, [query.statistic])[0],
            )
            keys = before.keys() | after.keys()
            worst = max(worst, sum(abs(after.get(j, 0) - before.get(j, 0)) for j in keys))
    assert worst == query.sensitivity


@pytest.mark.parametrize("query", [Tree(Clamp(X, -9, 2), 2, 3), Tree(Clamp(X, 0, 6), 3, 1)], ids=repr)
def test_one_record_adds_one_to_a_node_of_every_level(query: Tree) -> None:
    worst = 0
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        before, after = (query.exact(measure(table, None, [query.statistic])[0]) for table in (bag, larger))
        assert len(before) == len(after) == sum(query.sizes())
        worst = max(worst, sum(abs(a - b) for a, b in zip(after, before, strict=True)))
    assert worst == query.sensitivity == query.height


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


# ── what everybody must know of a query ──────────────────────────────────────────────

ASKED: list[PrimitiveQuery] = [
    *ADDED,
    Tree(Clamp(X, -9, 2), 2, 3),
    Rank(Clamp(X, -2, 3), Fraction(1, 3)),
    Ranks(Clamp(X, -2, 3), (Fraction(1, 2), Fraction(9, 10))),
    Choice((Clamp(X, -2, 1), Clamp(X, 0, 3))),
    Choice((Clamp(X, 0, 1), Clamp(X, 2, 3))),
    Choice((Clamp(X, -1, 0), Clamp(X, -3, -2))),
]


class Whole(Noisy):
    """A query that says everything."""

    statistic = Records()
    sensitivity = 1
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
    assert Noisy.__abstractmethods__ == {*FACTS, "exact"}
    assert Chosen.__abstractmethods__ == {*FACTS, "choices", "alone"}
    assert not any(isabstract(query) for query in PrimitiveQuery.__args__)


def test_every_query_of_the_language_is_tried_here() -> None:
    assert {type(query) for query in ASKED} == set(PrimitiveQuery.__args__)
    defined = {value for value in vars(queries).values() if isinstance(value, type)}
    assert {c for c in defined if issubclass(c, Primitive) and not isabstract(c)} == set(
        PrimitiveQuery.__args__
    )


def drawn_on(query: PrimitiveQuery, measured: Integers) -> list[int]:
    """The integers that noise is added to, or the score of every candidate."""
    if isinstance(query, Chosen):
        runs = [run for choices in query.choices(measured) for run in choices.runs]
        return [score for first, last, score in runs for _ in range(first, last + 1)]
    return query.exact(measured)


@pytest.mark.parametrize("query", ASKED, ids=repr)
def test_scores_are_monotone_exactly_if_no_two_records_move_any_of_them_in_two_directions(
    query: PrimitiveQuery,
) -> None:
    moved = {0}
    for bag, number in product(BAGS, NUMBERS):
        larger = Relation(S, (*bag.rows, (number, None)))
        before, after = (drawn_on(query, measure(t, None, [query.statistic])[0]) for t in (bag, larger))
        moved |= {a - b for a, b in zip(after, before, strict=True)}
    assert query.monotone is not (min(moved) < 0 < max(moved))


@pytest.mark.parametrize("query", ASKED, ids=repr)
def test_a_query_releases_and_passes_over_as_much_as_it_says(query: PrimitiveQuery) -> None:
    if isinstance(query, Chosen):
        assert query.integers == query.passes == len(list(query.choices({})))
        assert max(choices.sensitivity for choices in query.choices({})) == query.sensitivity
    else:
        assert len(query.exact({})) == query.integers


@pytest.mark.parametrize(
    ("statistic", "clamps", "coordinates"),
    [
        (Records(), (), [0]),
        (Totals((Clamp(X, 0, 1), Clamp(X, 2, 3))), (Clamp(X, 0, 1), Clamp(X, 2, 3)), [0, 1]),
        (Bernstein(Clamp(X, 0, 9), 2), (Clamp(X, 0, 9),), [0, 1, 2]),
        (Points(Clamp(X, -1, 1)), (Clamp(X, -1, 1),), [-1, 0, 1]),
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
    assert size(Points(Clamp(X, -(2**63), 2**63))) == 2**64 + 1
