"""What is released of a statistic: noise in every coordinate, and honest rates for choices."""

from collections import Counter
from fractions import Fraction

import pytest

from fpinq.model.clamps import Clamp
from fpinq.model.errors import KernelViolation
from fpinq.model.expressions import Column
from fpinq.model.queries import Choice, Count, Frequencies, Moments, Rank, Ranks, Sum, Tree
from fpinq.runtime import mechanisms
from fpinq.runtime.mechanisms import draw

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
        (Frequencies(Clamp(X, 0, 4)), 5, 1),
    ],
)
def test_every_coordinate_gets_noise_of_sensitivity_over_epsilon(
    query: Count | Sum | Moments | Frequencies, length: int, scale: int, monkeypatch: pytest.MonkeyPatch
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
    original = mechanisms.PermuteAndFlip

    def watched(epsilon: Fraction, sensitivity: int, monotone: bool) -> object:
        made.append((epsilon, sensitivity, monotone))
        return original(epsilon, sensitivity, monotone)

    monkeypatch.setattr(mechanisms, "PermuteAndFlip", watched)
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
