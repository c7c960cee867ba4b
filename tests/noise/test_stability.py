"""Keys nobody knew: the threshold is the least that is enough, and wrong ones are refuted."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from fpinq.model.conversion import delta_of
from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.noise import DiscreteGaussian, DiscreteLaplace, StabilityHistogram
from fpinq.noise.symmetric import Symmetric
from noise.goodness import fits
from noise.sources import seeded

NOISES = [DiscreteLaplace(Fraction(1)), DiscreteLaplace(Fraction(7, 2)), DiscreteGaussian(Fraction(9))]
DELTAS = [Fraction(1, 5), Fraction(1, 100), Fraction(1, 10**9)]
DISTANCES = [1, 2, 3, 5]


def shares(distance: int) -> list[tuple[int, ...]]:
    """All ways in which at most so many records are shared by keys."""
    return [
        share
        for keys in range(1, distance + 1)
        for share in itertools.combinations_with_replacement(range(1, distance + 1), keys)
        if sum(share) <= distance
    ]


def shown(noise: Symmetric, threshold: int, share: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Bounds on the probability that a key is shown which only one of the tables has."""
    tails = [noise.tail(threshold - a, 128) for a in share]
    return 1 - math.prod(1 - low for low, _ in tails), 1 - math.prod(1 - high for _, high in tails)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("distance", DISTANCES)
def test_what_only_one_table_has_is_shown_as_seldom_as_is_said(noise, delta, distance):
    """Exactly, for all shares at all distances; and one less is not enough."""
    threshold = StabilityHistogram(noise, delta, distance).threshold
    assert threshold > distance
    assert all(shown(noise, threshold, share)[1] <= sum(share) * delta for share in shares(distance))
    if threshold - 1 > distance:
        assert any(shown(noise, threshold - 1, share)[0] > sum(share) * delta for share in shares(distance))


def one_key_only(noise: Symmetric, delta: Fraction, distance: int) -> int:
    """Wrong: P[V ≥ τ − 1] ≤ δ for all S at once."""
    return StabilityHistogram(noise, delta * distance).threshold


def several_keys_only(noise: Symmetric, delta: Fraction, distance: int) -> int:
    """Wrong: as if all that changes were keys with one record."""
    return StabilityHistogram(noise, delta).threshold


def one_large_key_only(noise: Symmetric, delta: Fraction, distance: int) -> int:
    """Wrong: as if all that changes were one key."""
    return distance + noise.first_tail_at_most(distance * delta)


def one_less(noise: Symmetric, delta: Fraction, distance: int) -> int:
    """Wrong: > τ − 1 taken for ≥ τ − 1."""
    return StabilityHistogram(noise, delta, distance).threshold - 1


@pytest.mark.parametrize("wrong", [one_key_only, several_keys_only, one_large_key_only, one_less])
def test_wrong_thresholds_are_refuted(wrong):
    refuted = [
        (noise, delta, distance, share)
        for noise in NOISES
        for delta in DELTAS[1:]
        for distance in DISTANCES
        for share in shares(distance)
        if shown(noise, wrong(noise, delta, distance), share)[0] > sum(share) * delta
    ]
    assert refuted


def law(noise: Symmetric, count: int, threshold: int, top: int) -> list[float]:
    """Of one key: absent, each value up to top, and beyond it."""
    if count == 0:
        return [1.0] + [0.0] * (top - threshold + 1)
    values = [float(noise.pmf(v - count)[0]) for v in range(threshold, top)]
    return [float(noise.cdf(threshold - 1 - count)[0]), *values, float(noise.tail(top - count)[0])]


def hockey_stick(left: list[list[float]], right: list[list[float]], epsilon: float) -> float:
    """The least δ for this ε, of independent keys."""
    return math.fsum(
        max(math.prod(p) - math.exp(epsilon) * math.prod(q), 0)
        for p, q in zip(itertools.product(*left), itertools.product(*right), strict=True)
    )


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(1)), DiscreteGaussian(Fraction(2))])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 50)])
def test_neighbours_are_as_close_as_is_claimed(noise, delta):
    """The exact hockey-stick divergence of all counts of two keys at distance 1 and 2, in both directions."""
    histogram = StabilityHistogram(noise, delta, 2)
    threshold = histogram.threshold
    laws = {count: law(noise, count, threshold, threshold + 14) for count in range(4)}
    reached = 0.0
    for left in itertools.product(range(4), repeat=2):
        for right in itertools.product(range(4), repeat=2):
            distance = sum(abs(a - b) for a, b in zip(left, right, strict=True))
            if not 0 < distance <= 2:
                continue
            bound = float(distance * delta)
            if isinstance(noise, DiscreteLaplace):
                epsilon = float(noise.epsilon(distance))
            else:
                epsilon = 1.0
                bound += (1 - bound) * float(delta_of(noise.rho(distance**2), Fraction(1)))
            found = hockey_stick([laws[a] for a in left], [laws[b] for b in right], epsilon)
            assert found <= bound + 1e-12
            reached = max(reached, found / bound)
    assert reached > 0.2


@pytest.mark.parametrize(("keys", "tau"), [(1, 22), (2, 43), (5, 110), (10, 225)])
def test_thresholds_of_a_laplace_in_numbers(keys, tau):
    noise = DiscreteLaplace(Fraction(keys))
    assert StabilityHistogram(noise, Fraction(1, keys * 10**9), keys).threshold == tau
    assert StabilityHistogram(noise, Fraction(1, keys * 10**9)).threshold == tau


@pytest.mark.parametrize(("keys", "tau"), [(1, 37), (2, 52), (5, 83), (10, 118)])
def test_thresholds_of_a_gaussian_in_numbers(keys, tau):
    noise = DiscreteGaussian.calibrated(keys, Fraction(1497, 100_000))
    assert StabilityHistogram(noise, Fraction(1, keys * 10**9)).threshold == tau


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(12))])
def test_a_release_has_the_law_of_its_keys(noise):
    histogram = StabilityHistogram(noise, Fraction(1, 20))
    threshold, n, source = histogram.threshold, 10_000, seeded(7)
    counts = {"a": 3, "b": threshold, "none": 0, "less": -4}
    seen = [histogram.release(counts, source) for _ in range(n)]
    assert all(set(shown) <= {"a", "b"} and list(shown) == sorted(shown) for shown in seen)
    for key in ("a", "b"):
        found = Counter(min(shown.get(key, 0), threshold + 3) for shown in seen)
        masses = law(noise, counts[key], threshold, threshold + 3)
        assert fits([found[0], *(found[threshold + i] for i in range(4))], masses)
    both = sum(len(shown) == 2 for shown in seen) / n
    expected = math.prod(float(noise.tail(threshold - counts[key])[0]) for key in "ab")
    assert abs(both - expected) < 6 * math.sqrt(expected / n)


def test_a_table_without_records_releases_nothing():
    assert StabilityHistogram(DiscreteLaplace(Fraction(3)), Fraction(1, 20)).release({}) == {}


@pytest.mark.parametrize("delta", [0, 1, Fraction(-1, 9), Fraction(9, 8), 1e-9, "1/9", None])
def test_a_delta_outside_0_to_1_is_refused(delta):
    with pytest.raises(BadEpsilon):
        StabilityHistogram(DiscreteLaplace(Fraction(1)), delta)


@pytest.mark.parametrize("distance", [0, -1, 1.0, True, None])
def test_a_distance_that_is_none_is_refused(distance):
    with pytest.raises(BadQuery):
        StabilityHistogram(DiscreteLaplace(Fraction(1)), Fraction(1, 10**9), distance)
