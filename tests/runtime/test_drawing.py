"""What is released of a statistic: noise in every coordinate, and honest rates for choices."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fpinq import noise
from fpinq.engines.columns import Columns, column
from fpinq.model.clamps import Clamp
from fpinq.model.errors import KernelViolation
from fpinq.model.expressions import Column, Literal
from fpinq.model.kinds import Noisy
from fpinq.model.queries import (
    Balance,
    Choice,
    Count,
    CrossMoments,
    Depth,
    Frequencies,
    Moments,
    Rank,
    Ranks,
    Sum,
    Tally,
    Tree,
)
from fpinq.model.statistics import Integers, size
from fpinq.noise import DiscreteLaplace, Quotient, quotient
from fpinq.runtime import deadline, mechanisms
from fpinq.runtime.mechanisms import draw, draw_alike, draw_each
from noise.goodness import are_of

SURE = Fraction(10**9)
X = Column("x")


def test_zeros_get_noise_too() -> None:
    frequencies = Frequencies(Clamp(X, -2, 20))
    exact = draw(frequencies, {3: 7}, SURE)
    assert exact == tuple(7 if i == 3 else 0 for i in range(-2, 21))
    noisy = draw(frequencies, {}, Fraction(1, 10))
    assert isinstance(noisy, tuple)
    assert len(noisy) == 23
    assert sum(v != 0 for v in noisy) > 10


@pytest.mark.parametrize(
    ("query", "length", "scale"),
    [
        (Count(), 1, 1),
        (Sum(Clamp(X, -3, 10)), 1, 10),
        (Moments(Clamp(X, 5, 15), 1), 2, 10),
        (Moments(Clamp(X, 5, 15), 2), 3, 100),
        (CrossMoments((Clamp(X, 5, 15), Clamp(X, 0, 2)), (2, 1), 3, (0, 1)), 7, 604),
        (Tally(X, (Literal.of(1), Literal.of(2))), 2, 1),
        (Frequencies(Clamp(X, 0, 4)), 5, 1),
    ],
)
def test_every_coordinate_gets_noise_of_sensitivity_over_epsilon(
    query: Noisy, length: int, scale: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales: list[Fraction] = []

    def sample(asked: Fraction) -> int:
        scales.append(asked)
        return 0

    monkeypatch.setattr(mechanisms, "sample", sample)
    assert draw(query, {}, Fraction(1, 3)) == (0,) * length
    assert scales == [Fraction(3 * scale)] * length
    assert query.integers == length


def test_a_constant_statistic_needs_no_noise() -> None:
    assert draw(Sum(Clamp(X, 0, 0)), {}, Fraction(1, 100)) == (0,)
    assert draw(Moments(Clamp(X, 3, 3), 1), {}, Fraction(1, 100)) == (0, 0)


def test_what_no_record_can_change_is_released_without_looking_at_what_was_measured() -> None:
    assert draw(Sum(Clamp(X, 0, 0)), {0: 5}, Fraction(1, 100)) == (0,)
    assert draw(Moments(Clamp(X, 3, 3), 1), {0: 5, 1: -5}, Fraction(1, 100)) == (0, 0)


def test_a_rank_is_a_grid_point() -> None:
    rank = Rank(Clamp(X, 0, 100), Fraction(1, 2))
    assert draw(rank, {10: 5, 50: 1, 90: 5}, SURE) == 50
    assert len({draw(rank, {}, Fraction(1)) for _i in range(200)}) > 20


def test_several_ranks_are_grid_points_at_a_share_of_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks(Clamp(X, 0, 100), (Fraction(0), Fraction(1, 2), Fraction(1)))
    assert draw(ranks, {10: 1, 50: 9, 90: 1}, SURE)[1] == 50  # type: ignore[index]
    shares: list[Fraction] = []
    monkeypatch.setattr(mechanisms, "_choice", lambda choices, monotone, share: shares.append(share) or 0)
    assert draw(ranks, {}, Fraction(1)) == (0, 0, 0)
    assert shares == [Fraction(1, 3)] * 3


def test_every_node_of_a_tree_gets_noise_of_height_over_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(Clamp(X, 0, 4), 2, 3)
    assert draw(tree, {4: 7, 0: 1}, SURE) == (1, 0, 0, 0, 7, 1, 0, 7, 1, 7)
    scales: list[Fraction] = []
    monkeypatch.setattr(mechanisms, "sample", lambda scale: scales.append(scale) or 0)
    draw(tree, {}, Fraction(1, 5))
    assert scales == [Fraction(15)] * 10


def test_a_choice_is_a_candidate() -> None:
    choice = Choice((Clamp(X, 0, 1), Clamp(X, 0, 1)))
    assert draw(choice, {1: 3}, SURE) == 1
    assert draw(Choice((Clamp(X, 0, 0),)), {}, Fraction(1)) == 0


def test_scores_are_monotone_if_they_have_one_sign() -> None:
    assert Choice((Clamp(X, 0, 1), Clamp(X, 2, 3))).monotone
    assert Choice((Clamp(X, -1, 0), Clamp(X, -3, -2))).monotone
    assert not Choice((Clamp(X, -1, 1),)).monotone
    assert not Choice((Clamp(X, -1, 0), Clamp(X, 0, 1))).monotone


@pytest.mark.parametrize(("bounds", "monotone"), [((0, 2), True), ((-2, 2), False)])
def test_the_rate_of_a_choice(
    bounds: tuple[int, int], monotone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[object, ...]] = []
    original = noise.PermuteAndFlip

    def watched(epsilon: Fraction, sensitivity: int, monotone: bool) -> object:
        made.append((epsilon, sensitivity, monotone))
        return original(epsilon, sensitivity, monotone)

    monkeypatch.setattr(noise, "PermuteAndFlip", watched)
    draw(Choice((Clamp(X, *bounds), Clamp(X, *bounds))), {0: 5}, Fraction(1, 3))
    assert made == [(Fraction(1, 3), 2, monotone)]


def test_a_choice_at_a_small_epsilon_is_nearly_even() -> None:
    choice = Choice((Clamp(X, 0, 1), Clamp(X, 0, 1)))
    found = Counter(draw(choice, {0: 1}, Fraction(1, 1000)) for _i in range(400))
    assert 140 <= found[0] <= 260


def test_a_query_that_releases_more_than_it_says_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Count, "exact", lambda self, measured: [0, 0])
    with pytest.raises(KernelViolation, match="releases 1 integers, not 2"):
        draw(Count(), {}, Fraction(1))


# ── many parts ───────────────────────────────────────────────────────────────────────

NOISY = [
    Count(),
    Sum(Clamp(X, -3, 10)),
    Moments(Clamp(X, 5, 15), 1),
    Moments(Clamp(X, 5, 15), 2),
    CrossMoments((Clamp(X, 5, 15), Clamp(X, 0, 2)), (2, 1), 3, (0, 1)),
    Tally(X, (Literal.of(1), Literal.of(2))),
    Frequencies(Clamp(X, 0, 4)),
    Tree(Clamp(X, 0, 7), 2, 3),
]


@pytest.mark.parametrize("query", NOISY, ids=repr)
def test_many_parts_are_drawn_for_as_each_of_them_is(
    query: Noisy,
) -> None:
    measured = [{j: 10 * i + j for j in range(3)} for i in range(50)]
    alike = draw_alike(query, measured, SURE)
    assert alike == tuple(draw(query, each, SURE) for each in measured)
    assert {type(n) for released in alike for n in released} == {int}  # type: ignore[union-attr]
    if not isinstance(query, Frequencies | Tree):
        columns = Columns(
            [column([each.get(j, 0) for each in measured], narrow=True) for j in range(size(query.statistic))]
        )
        assert draw_alike(query, columns, SURE) == alike


@pytest.mark.parametrize("query", NOISY, ids=repr)
def test_every_integer_of_every_part_gets_noise_of_its_own_drawn_at_once(
    query: Noisy, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[Fraction, int]] = []

    def sample_many(scale: Fraction, n: int) -> Any:
        first = sum(number for _, number in drawn)
        drawn.append((scale, n))
        return np.arange(first, first + n) + 1

    monkeypatch.setattr(mechanisms, "sample_many", sample_many)
    released = draw_alike(query, [{}] * 40, Fraction(1, 3))
    assert {scale for scale, _ in drawn} == {Fraction(3 * query.sensitivity)}
    assert len(drawn) == 1
    noise = [n for each in released for n in each]  # type: ignore[union-attr]
    assert sorted(noise) == list(range(1, 40 * query.integers + 1)), "none is used twice"


def test_noise_of_many_parts_beyond_64_bits_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    total = Sum(Clamp(X, -(2**63), 2**63 - 1))
    columns = Columns([column([10**30 + i for i in range(30)], narrow=True)])
    monkeypatch.setattr(mechanisms, "sample_many", lambda scale, n: np.array([10**40] * n, dtype=object))
    assert draw_alike(total, columns, Fraction(1)) == tuple((10**40 + 10**30 + i,) for i in range(30))
    near = Columns([column([2**62 - 1] * 30, narrow=True)])
    monkeypatch.setattr(mechanisms, "sample_many", lambda scale, n: np.full(n, 2**62))
    assert draw_alike(total, near, Fraction(1)) == ((2**63 - 1,),) * 30


def test_a_query_that_makes_integers_of_its_own_is_not_drawn_for_as_it_was_measured() -> None:
    class Twice(Count):
        def exact(self, measured: Integers) -> list[int]:  # type: ignore[override]
            return [2 * measured.get(0, 0)]

    columns = Columns([column(list(range(30)), narrow=True)])
    assert draw_alike(Twice(), columns, SURE) == tuple((2 * i,) for i in range(30))


def test_many_parts_stop_when_their_time_is_over() -> None:
    with deadline.within(0), pytest.raises(TimeoutError):
        draw_alike(Count(), Columns([column([0] * 100, narrow=True)]), SURE)


def test_the_noise_of_many_parts_has_the_scale_it_says() -> None:
    columns = Columns([column([100] * 20_000, narrow=True)])
    noise = np.array(draw_alike(Count(), columns, Fraction(1, 5)))[:, 0] - 100
    assert are_of(noise, DiscreteLaplace(Fraction(5)))
    assert not are_of(noise, DiscreteLaplace(Fraction(13, 2)))
    assert not are_of(noise, DiscreteLaplace(Fraction(7, 2)))


# ── many parts, each with a query of its own ─────────────────────────────────────────

OF = Clamp(X, 0, 10)
BALANCES = [Balance(OF, 2**12, 400, 0), Balance(OF, 2**12, 0, 200), Balance(OF, 2**16, 100, 100)]
WIDE = Balance(OF, 2**40, 100, 100)
HALVES = Moments(OF, 1)


def in_columns(parts: list[tuple[int, ...]], *, narrow: bool = True) -> Columns:
    return Columns([column(list(each), narrow=narrow) for each in zip(*parts, strict=True)])


@pytest.fixture
def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotient, "sample", lambda scale, source: 0)
    monkeypatch.setattr(
        quotient, "sample_each", lambda scales, numbers, source: np.zeros(len(numbers), dtype=np.int64)
    )


@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize(
    "asked", [BALANCES, BALANCES[:1], [WIDE], [*BALANCES, WIDE, HALVES], [HALVES, BALANCES[1]]]
)
def test_parts_with_queries_of_their_own_are_drawn_for_as_each_of_them_is(
    asked: list[Any], narrow: bool
) -> None:
    queries = [asked[i * i % len(asked)] for i in range(60)]
    parts = [(7 * i * i, 900 - 3 * i if i % 7 else 0) for i in range(60)]
    measured = in_columns(parts, narrow=narrow)
    each = tuple(draw(query, of_part, SURE) for query, of_part in zip(queries, measured, strict=True))
    assert draw_each(queries, measured, SURE) == each
    assert draw_each(queries, list(measured), SURE) == each
    for query in asked:
        assert draw_each((query,), measured, SURE) == tuple(
            draw(query, of_part, SURE) for of_part in measured
        )
    assert {type(one) for one in each} <= {int, tuple}


@pytest.mark.usefixtures("without_noise")
def test_parts_with_squares_of_their_own_are_drawn_for_one_by_one() -> None:
    queries = [Balance(OF, 2**12, 100, 100, Fraction(i, 8)) for i in range(40)]
    measured = in_columns([(400 + i, 300, 500) for i in range(40)])
    each = tuple(draw(query, of_part, SURE) for query, of_part in zip(queries, measured, strict=True))
    assert draw_each(queries, measured, SURE) == each


@pytest.mark.parametrize("alone", [True, False])
def test_the_noise_of_each_part_is_that_of_its_own_query(alone: bool) -> None:
    """Of a difference of 0 that is divided by 10,000: ⌊−V/10,000⌋ of a V of the query's own scale."""
    asked, at = [Balance(OF, 2**12, 400, 400), Balance(OF, 2**20, 5_000, 5_000)], Fraction(1, 2)
    queries = [asked[i % 2] for i in range(40_000)]
    found = draw_each(queries, in_columns([(10_000, 10_000)] * len(queries)), at)
    for number, query in enumerate(asked):
        drawn = found[number::2]
        if alone:
            drawn = draw_each((query,), in_columns([(10_000, 10_000)] * 20_000), at)
        own = Quotient(at, query.largest, query.fineness, query.least_above, query.least_below)
        spread = float(own.noise.scale) / 10_000  # in outcomes
        assert 0.96 * spread < np.abs(np.array(drawn) + 0.5).mean() < 1.04 * spread


def test_a_part_that_is_larger_than_64_bits_times_its_fineness_is_divided_exactly(
    without_noise: None,
) -> None:
    parts = [(3 * 2**60 - i, 2**61 + i) for i in range(30)]
    (first, *_), query = parts, BALANCES[2]
    found = draw_each((query,), in_columns(parts), Fraction(1))
    below, above = first
    assert found[0] == 2**16 * (above - below) // below
    assert found == tuple(draw(query, {0: below, 1: above}, Fraction(1)) for below, above in parts)


@pytest.mark.parametrize("least", [3 * 2**37, 2**63, 2**70])
@pytest.mark.parametrize("alone", [True, False])
def test_a_part_that_is_taken_to_be_far_larger_than_it_is_is_divided_exactly(least: int, alone: bool) -> None:
    """It was 0 where 64 bits were too few for what it is taken to be, and a failure after the charge."""
    parts, fineness = 20, 2**25
    query = Balance(Clamp(X, 0, 1), fineness, least, 0)
    queries = [query] if alone else [query, *[Balance(Clamp(X, 0, 1), 1, 1, 0)] * (parts - 1)]
    measured = Columns([np.full(parts, 3), np.full(parts, 4)])
    drawn = draw_each(queries, measured, Fraction(1, 10))
    assert all(fineness - 2 <= each <= fineness for each in drawn[: parts if alone else 1])  # type: ignore[operator]


def test_a_depth_is_a_grid_point_where_so_many_records_are_reached() -> None:
    measured = {10: 3, 50: 1, 90: 5}
    chosen = [{draw(Depth(Clamp(X, 0, 100), k), measured, SURE) for _ in range(30)} for k in (2, 3, 5, 9)]
    assert chosen[0] == {10}
    assert all(10 <= point <= 50 for point in chosen[1])
    assert chosen[2] == {90}
    assert all(90 <= point <= 100 for point in chosen[3])
