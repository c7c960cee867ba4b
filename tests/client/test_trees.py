"""Trees of counts: the estimates are the least squares, their error is known, and the choice is the best."""

import math
import runpy
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import fpinq as fp
from fpinq.client import trees
from fpinq.client.trees import CountTree, Spread, best_tree, mean_variance
from fpinq.client.uncertainty import RangeNoise, sum_quantile
from fpinq.noise import DiscreteLaplace, sample_many

TREES = [(8, 2, 3), (9, 3, 2), (10, 3, 3), (7, 2, 3), (5, 5, 1), (64, 4, 3), (13, 4, 2), (1, 2, 1), (3, 2, 4)]
FULL = [(8, 2, 3), (9, 3, 2), (5, 5, 1), (64, 4, 3), (16, 2, 4)]


def counting(tree: CountTree) -> NDArray[np.float64]:
    """Which bins each node counts."""
    rows = []
    for level in range(tree.height):
        group = tree.branching**level
        for start in range(0, tree.bins, group):
            rows.append([start <= i < start + group for i in range(tree.bins)])
    return np.array(rows, dtype=float)


@pytest.mark.parametrize("shape", TREES)
def test_estimates_are_the_least_squares_of_all_nodes(shape: tuple[int, int, int]) -> None:
    tree = CountTree(*shape)
    nodes = counting(tree)
    noisy = np.random.default_rng(1).integers(-50, 50, len(nodes))
    best, *_ = np.linalg.lstsq(nodes, noisy.astype(float))
    assert np.allclose(tree.estimates(noisy.tolist()), best)


@pytest.mark.parametrize("shape", TREES)
def test_the_weights_of_a_range_are_those_of_its_estimate(shape: tuple[int, int, int]) -> None:
    tree = CountTree(*shape)
    nodes = counting(tree)
    estimate = np.linalg.pinv(nodes)
    for first, last in combinations(range(tree.bins + 1), 2):
        assert np.allclose(tree.weights(first, last), estimate[first:last].sum(axis=0))


@pytest.mark.parametrize("shape", [*TREES, (1000, 10, 3), (999, 3, 7), (130, 2, 8)])
def test_the_spread_of_bins_and_of_first_bins_is_that_of_their_weights(shape: tuple[int, int, int]) -> None:
    tree = CountTree(*shape)
    some = range(tree.bins) if tree.bins < 100 else range(0, tree.bins, 37)
    for i in some:
        for first, last in ((i, i + 1), (0, i + 1), (i // 2, i + 1)):
            one_by_one = Spread.of(tree.weights(first, last).tolist())
            assert tree.spread(first, last) == pytest.approx(one_by_one, rel=1e-9)


def test_the_spread_of_very_many_bins_is_found_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = CountTree(20, 3, 3).spread(7, 8)
    monkeypatch.setattr(trees, "MOST_AT_ONCE", 10)
    tree = CountTree(20, 3, 3)
    assert tree.spread(7, 8) == pytest.approx(at_once)
    assert "_of_bins" not in vars(tree)


@pytest.mark.parametrize("ask", ["noisy_ranges", "noisy_cdf"])
def test_the_intervals_of_all_bins_look_at_every_node_a_few_times_not_once_for_each_bin(
    ask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []
    weights = CountTree.weights
    monkeypatch.setattr(
        CountTree, "weights", lambda tree, *range: looked.append(range) or weights(tree, *range)
    )
    data = fp.protect([{"x": 1}], budget=10, name=ask)
    answers = getattr(data, ask)(1, "x", bounds=(0, 2_000))
    assert len(answers.rows()) == 2_001
    repr(answers)
    assert looked == []


@pytest.mark.parametrize("shape", FULL)
def test_the_mean_variance_is_that_over_all_ranges(shape: tuple[int, int, int]) -> None:
    tree = CountTree(*shape)
    n = tree.bins
    ranges = [float(np.sum(tree.weights(a, b) ** 2)) for a, b in combinations(range(n + 1), 2)]
    points = [0.0, *(float(np.sum(tree.weights(0, b) ** 2)) for b in range(1, n + 1))]
    assert mean_variance(tree) == pytest.approx(np.mean(ranges))
    assert mean_variance(tree, points=True) == pytest.approx(np.mean(points))


@pytest.mark.parametrize("epsilon", ["1/100", "1", "3", "10", "1000000000"])
@pytest.mark.parametrize("bins", [1, 2, 10, 60, 100, 1000, 4096])
def test_no_tree_is_chosen_that_is_worse_than_the_bins_alone(bins: int, epsilon: str) -> None:
    for points in (False, True):
        tree = best_tree(bins, Fraction(epsilon), points=points)
        flat = CountTree(bins, max(bins, 2), 1)
        errors = [
            mean_variance(t, points=points) * DiscreteLaplace(t.height / Fraction(epsilon)).variance
            for t in (tree, flat)
        ]
        assert errors[0] <= errors[1]
    assert best_tree(1000, Fraction(1)).height > 1
    assert best_tree(20, Fraction(1)).height == 1
    assert best_tree(1000, Fraction(20)).height == 1


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(30)])
@pytest.mark.parametrize("k", [2, 3, 10, 100])
@pytest.mark.parametrize("confidence", [Fraction(8, 10), Fraction(95, 100), Fraction(99, 100)])
def test_a_sum_of_draws_stays_within_its_quantile_about_as_often_as_said(
    scale: Fraction, k: int, confidence: Fraction
) -> None:
    draws = 20_000
    sums = np.abs(sample_many(scale, k * draws).reshape(k, draws).sum(axis=0))
    t = math.ceil(sum_quantile([1.0] * k, scale, confidence) - 0.5)  # as for a range of integers
    within = float(np.mean(sums <= t))
    slack = float(np.mean(sums == t))  # of integers, a little more are within
    assert float(confidence) - 0.015 <= within <= float(confidence) + 0.035 + slack


def test_no_noise_leaves_no_interval() -> None:
    assert sum_quantile([1.0] * 5, Fraction(1, 10**9), Fraction(19, 20)) == 0
    assert sum_quantile([], Fraction(1), Fraction(19, 20)) == 0
    noise = RangeNoise(CountTree(4, 4, 1), 0, 4, Fraction(1, 10**9))
    assert (noise.standard_error(), noise.interval(7, Fraction(1, 2))) == (0, (7, 7))
    assert noise.interval(7, 1 - Fraction(1, 10**400)) == (7, 7)


def test_intervals_of_tree_ranges_cover() -> None:
    tree = best_tree(500, Fraction(1))
    assert tree.height > 1
    scale = Fraction(tree.height)
    truth = np.arange(500) % 7
    nodes = counting(tree) @ truth
    ranges = [(0, 500), (10, 11), (20, 40), (3, 333), (250, 499)]
    hits = dict.fromkeys(ranges, 0)
    times = 400
    for _i in range(times):
        found = tree.estimates((nodes + sample_many(scale, len(nodes))).tolist())
        for first, last in ranges:
            low, high = RangeNoise(tree, first, last, scale).interval(
                float(found[first:last].sum()), Fraction(9, 10)
            )
            hits[first, last] += low <= truth[first:last].sum() <= high
    for covered in hits.values():
        assert 0.82 * times <= covered <= 0.97 * times


RANGES = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "ranges.py"))
HISTOGRAMS = RANGES["histograms"]()


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_random_ranges_are_nearer_than_with_noise_per_bin(name: str) -> None:
    """On the DPBench histograms where they are at hand, on made-up ones elsewhere."""
    plain, ranges, cdf = RANGES["errors"](HISTOGRAMS[name], Fraction(1, 10), 4)
    assert ranges <= plain
    assert cdf <= plain
