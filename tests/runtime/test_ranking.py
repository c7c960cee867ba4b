"""Ranks among many grid points: the same runs, the same choices, in as many looks whatever the points."""

from collections import Counter
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from fpinq.engines.columns import Counts
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Column
from fpinq.model.queries import Rank, Ranks
from fpinq.noise import PermuteAndFlip, Run
from fpinq.runtime import mechanisms, ranking
from fpinq.runtime.mechanisms import draw
from fpinq.runtime.ranking import Ranked, Runs
from noise.goodness import same

X = Column("x")
FRACTIONS = [Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(99, 100), Fraction(1)]


def measured(random: Random, lower: int, upper: int, points: int, most: int = 5) -> dict[int, int]:
    there = random.sample(range(lower, upper + 1), points)
    return {point: random.randint(1, most) for point in there}


def counts_of(integers: dict[int, int]) -> Counts:
    return Counts(np.array(list(integers), dtype=np.int64), np.array(list(integers.values()), dtype=np.int64))


CASES = [(0, 9, 0), (0, 9, 1), (0, 9, 10), (-5, 30, 12), (7, 7, 1), (-(2**40), 2**40, 20), (0, 1000, 300)]


def listed(ranked: Ranked, rank: Rank, numbers: Any) -> list[tuple[int, int, int]]:
    """The runs of some numbers that have members: the first, the last, the score."""
    runs = zip(*(each.tolist() for each in ranked.scored(rank, numbers)), strict=True)
    firsts = [ranked.first(int(number)) for number in numbers]
    return [
        (first, first + size - 1, score) for first, (size, score) in zip(firsts, runs, strict=True) if size
    ]


@pytest.mark.parametrize("fraction", FRACTIONS, ids=str)
@pytest.mark.parametrize(("lower", "upper", "points"), CASES)
def test_the_runs_in_arrays_are_those_of_the_rank(
    lower: int, upper: int, points: int, fraction: Fraction
) -> None:
    random, rank = Random(1), Rank(Clamp(X, lower, upper), fraction)
    for _ in range(20):
        integers = measured(random, lower, upper, points)
        ranked = Ranked(rank.of, counts_of(integers))
        expected = rank.scores(integers)
        found = ranked.scored(rank, range(ranked.runs))
        assert listed(ranked, rank, range(ranked.runs)) == expected
        assert found.sizes.sum() == upper - lower + 1
        cut = 2 * random.randint(0, points)
        for numbers in (range(cut), range(cut, ranked.runs), range(0)):
            in_slices = ranked.scored(rank, numbers)
            one_by_one = ranked.scored(rank, np.arange(numbers.start, numbers.stop))
            assert all(np.array_equal(*each) for each in zip(in_slices, one_by_one, strict=True))


@pytest.mark.parametrize("fraction", FRACTIONS, ids=str)
@pytest.mark.parametrize(("lower", "upper", "points"), CASES)
def test_no_run_that_is_near_is_left_out(lower: int, upper: int, points: int, fraction: Fraction) -> None:
    random, rank = Random(2), Rank(Clamp(X, lower, upper), fraction)
    for _ in range(20):
        integers = measured(random, lower, upper, points, random.choice([1, 5, 1000]))
        ranked, runs = Ranked(rank.of, counts_of(integers)), rank.scores(integers)
        best = max(score for _, _, score in runs)
        for reach in (1, 2, 10, 1000, 10**6, 10**30):
            start, end = ranked.near(rank, reach)
            near = listed(ranked, rank, range(2 * start, min(2 * end, ranked.runs)))
            assert near
            assert set(near) >= {run for run in runs if best - run[2] < reach}
            if reach == 1 and points > 100:
                assert len(near) < len(runs) / 4


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**5), Fraction(1, 100), Fraction(1), Fraction(10**4)])
@pytest.mark.parametrize("fraction", FRACTIONS, ids=str)
@pytest.mark.parametrize(("lower", "upper", "points"), CASES)
def test_every_run_is_in_one_stretch_and_as_far_behind_as_that_says(
    lower: int, upper: int, points: int, fraction: Fraction, epsilon: Fraction
) -> None:
    random, rank = Random(3), Rank(Clamp(X, lower, upper), fraction)
    integers = measured(random, lower, upper, points, random.choice([1, 5, 1000]))
    ranked = Ranked(rank.of, counts_of(integers))
    mechanism = PermuteAndFlip(epsilon, max(rank.sensitivity, 1), monotone=True)
    found = []
    best = max(score for _, _, score in rank.scores(integers))
    for stretch in ranked.stretches(rank, mechanism):
        numbers = np.array(stretch.numbers, dtype=np.int64)
        members = listed(ranked, rank, numbers[ranked.scored(rank, numbers).sizes <= stretch.largest])
        found += members
        for first, last, score in members if stretch.bits else ():
            assert best - score >= mechanism.reach(last - first + 1, stretch.bits)
    assert sorted(found) == rank.scores(integers)


@pytest.mark.parametrize(
    "query", [Rank(Clamp(X, 0, 40), Fraction(1, 3)), Ranks(Clamp(X, 0, 40), tuple(FRACTIONS))]
)
@pytest.mark.parametrize("few_runs", [0, 2_048])
def test_choices_in_arrays_are_distributed_as_one_by_one(
    query: Rank | Ranks, few_runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    integers, draws = {3: 4, 9: 1, 10: 7, 25: 3, 40: 2}, 3_000 // query.passes + 500

    def drawn(measured: Any) -> list[Counter[int]]:
        found = [draw(query, measured, Fraction(1)) for _ in range(draws)]
        rows = [(each,) if isinstance(each, int) else each for each in found]
        return [Counter(each) for each in zip(*rows, strict=True)]

    monkeypatch.setattr(ranking, "FEW", 0)
    monkeypatch.setattr(ranking, "FEW_RUNS", few_runs)
    looked: list[Rank] = []
    choose = Ranked.choose
    monkeypatch.setattr(
        Ranked, "choose", lambda self, *given: looked.append(given[0]) or choose(self, *given)
    )  # type: ignore[func-returns-value]
    arrays = drawn(counts_of(integers))
    assert len(looked) == draws * query.passes
    for left, right in zip(arrays, drawn(integers), strict=True):
        often = [point for point in range(41) if left[point] + right[point] > 100]
        rest = [sum(each.values()) - sum(each[point] for point in often) for each in (left, right)]
        pair = [
            [*(each[point] for point in often), more + 1]
            for each, more in zip((left, right), rest, strict=True)
        ]
        assert same(*pair)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1, 10)], ids=str)
def test_rings_of_many_runs_leave_every_point_its_probability(
    epsilon: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "FEW_RUNS", 0)
    rank, integers = Rank(Clamp(X, 0, 700), Fraction(1, 3)), {2 * i + i % 3: 1 for i in range(300)}
    ranked, scores = Ranked(rank.of, counts_of(integers)), rank.scores(integers)
    mechanism = PermuteAndFlip(epsilon, rank.sensitivity, monotone=True)
    assert len({stretch.bits for stretch in ranked.stretches(rank, mechanism)}) > 2
    runs = [Run(score, last - first + 1) for first, last, score in scores]
    starts = [first for first, _, _ in scores]  # a point stands for its run
    by_run = [mechanism.choose(runs).run for _ in range(1_500)]
    points = [ranked.choose(rank, epsilon) for _ in range(1_500)]
    in_rings = (np.searchsorted(starts, points, side="right") - 1).tolist()
    ends = np.unique(np.quantile(by_run, np.arange(1, 10) / 10, method="lower"))
    bins = (np.searchsorted(ends, each) for each in (by_run, in_rings))
    assert same(*(np.bincount(each, minlength=len(ends) + 1).tolist() for each in bins))


def test_scores_that_arrays_do_not_hold_are_ranked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "FEW", 0)
    counts = counts_of({1: 2**40 - 1, 5: 2**40})
    fine = Fraction(10**18 // 2, 10**18 - 1)
    for query, many in (
        (Rank(Clamp(X, 0, 9), Fraction(1, 2)), True),
        (Rank(Clamp(X, 0, 9), fine), False),
        (Ranks(Clamp(X, 0, 9), (Fraction(1, 2), fine)), False),
        (Rank(Clamp(X, 0, 2**62), Fraction(1, 2)), False),
        (Rank(Clamp(X, 0, 9), Fraction(1, 2**22)), False),
    ):
        assert ranking.are_many(query, counts) is many
        drawn = draw(query, counts, Fraction(100))
        assert all(1 <= point <= 5 for point in ([drawn] if isinstance(drawn, int) else drawn))


def test_which_way_is_taken_goes_by_what_was_asked_and_not_by_how_many_there_are() -> None:
    few, many = counts_of({}), counts_of(dict.fromkeys(range(2000), 2**20))
    for width in (10, ranking.FEW, ranking.FEW + 1, 10**6):
        for denominator in (2, 10**6, 2**21, 10**9):
            rank = Rank(Clamp(X, 0, width), Fraction(1, denominator))
            assert ranking.are_many(rank, few) is ranking.are_many(rank, many)
    assert not ranking.are_many(Rank(Clamp(X, 0, 10**6), Fraction(1, 2)), counts_of({1: ranking.MANY}))


def test_many_ranks_look_at_the_points_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    ranked = ranking.Ranked
    monkeypatch.setattr(mechanisms.ranking, "Ranked", lambda *given: made.append(given) or ranked(*given))
    counts = Counts(np.arange(5_000), np.full(5_000, 3))
    drawn = draw(
        Ranks(Clamp(X, 0, 5_000), tuple(Fraction(i, 10) for i in range(1, 10))), counts, Fraction(9_000)
    )
    assert len(made) == 1
    assert drawn == pytest.approx([500 * i for i in range(1, 10)], abs=2)


def looked_at(points: int, epsilon: Fraction, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many runs a median among so many points looks at."""
    looked: list[int] = []
    scored = Ranked.scored

    def counted(self: Ranked, rank: Rank, numbers: Any) -> Runs:
        looked.append(len(numbers))
        return scored(self, rank, numbers)

    with monkeypatch.context() as patched:
        patched.setattr(Ranked, "scored", counted)
        counts = Counts(np.arange(points), np.full(points, 3))
        draw(Rank(Clamp(X, 0, points), Fraction(1, 2)), counts, epsilon)
    return sum(looked)


def test_a_choice_among_many_points_looks_at_the_near_ones_only(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (looked_at(points, Fraction(1), monkeypatch) for points in (10_000, 100_000))
    assert many <= 2 * few + 50  # about ten each, which are drawn: all would be ten times as many


def test_at_a_small_epsilon_too(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (looked_at(points, Fraction(1, 500), monkeypatch) for points in (50_000, 500_000))
    assert many <= 1.5 * few
    assert many < 50_000
