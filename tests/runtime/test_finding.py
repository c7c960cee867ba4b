"""Finding keys: the mechanism that runs is the one that was claimed, at its δ and no larger one."""

import math
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from fpinq.model.domains import IntegerDomain, StringDomain
from fpinq.model.errors import KernelViolation
from fpinq.model.expressions import Column
from fpinq.model.notions import Amount, Rho
from fpinq.model.plans import PersonTable
from fpinq.model.queries import Discovery, Sparse, Spread, Stable
from fpinq.noise import DiscreteGaussian, DiscreteLaplace
from fpinq.runtime import deadline
from fpinq.runtime.finding import find, largest, mechanism_of
from fpinq.runtime.mechanisms import draw, draw_alike
from noise.goodness import fits

K, DOMAIN = Column("k"), IntegerDomain(0, 9)
STABLE = Stable(K, DOMAIN, Fraction(1, 100), 1, 10)
SPARSE = Sparse(K, DOMAIN, Fraction(1, 2), 10)
AMOUNTS: list[Amount] = [Fraction(1), Fraction(1, 3), Rho(Fraction(1, 2)), Rho(Fraction(1, 9))]


def spread(query: Any, keys: int) -> Any:
    return replace(query, spread=Spread(PersonTable("visits", 9), keys))


def splits(distance: int, keys: int) -> list[tuple[int, ...]]:
    """How a change of so many persons (of at most so many keys each) can fall on keys only one table has."""
    each = product(range(distance + 1), repeat=min(distance * keys, 4))
    return [split for split in each if 0 < sum(split) <= distance * keys]


def seen(noise: Any, threshold: int, split: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """P[a key that only one table has is released]: bounds on 1 − Π P[aₖ + V < τ]."""
    low = high = Fraction(1)
    for a in split:
        if a:
            below = noise.cdf(threshold - 1 - a, 128)
            low, high = low * below[0], high * below[1]
    return 1 - high, 1 - low


@pytest.mark.parametrize("at", AMOUNTS)
@pytest.mark.parametrize("keys", [1, 2, 3])
@pytest.mark.parametrize("distance", [1, 2, 3])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**9)])
def test_what_only_one_table_has_is_seen_with_delta_for_each_unit_of_distance(
    at: Amount, keys: int, distance: int, delta: Fraction
) -> None:
    """For every split of a change, whichever distance up to the largest: exactly, and not for less."""
    query = replace(STABLE, delta=delta, distance=distance)
    query = spread(query, keys) if keys > 1 else query
    mechanism = mechanism_of(query, at)
    assert mechanism.threshold > distance
    for d in range(1, distance + 1):
        for split in splits(d, keys):
            assert seen(mechanism.noise, mechanism.threshold, split)[1] <= d * delta
    # One less would be too little for one key, of 1 or of all, by what is reckoned with.
    less, each = mechanism.threshold - 1, delta / keys
    tails = {a: mechanism.noise.tail(less - a, 128)[0] for a in (1, distance)}
    assert less <= distance or any(tail > a * each for a, tail in tails.items())


def law_of(noise: Any, count: int, threshold: int) -> dict[int, float]:
    """What becomes of one key: not shown (0), or its noisy count."""
    if not count:
        return {0: 1.0}
    shown = {v: float(noise.pmf(v - count, 96)[0]) for v in range(threshold, threshold + 60)}
    return {0: float(noise.cdf(threshold - 1 - count, 96)[0]), **shown}


def hockey_stick(
    noise: Any, threshold: int, left: tuple[int, ...], right: tuple[int, ...], e: float
) -> float:
    """max over events of P − e^ε·Q, of histograms over two keys."""
    p, q = ([law_of(noise, count, threshold) for count in counts] for counts in (left, right))
    total = 0.0
    for outcome in product(*({*a, *b} for a, b in zip(p, q, strict=True))):
        more, less = (
            math.prod(law.get(o, 0.0) for law, o in zip(each, outcome, strict=True)) for each in (p, q)
        )
        total += max(more - math.exp(e) * less, 0.0)
    return total


HISTOGRAMS = list(product(range(4), repeat=2))


def worst(query: Stable, epsilon: Fraction, threshold: int) -> float:
    """The largest δ of neighbours at every distance up to the largest, in units of what is charged."""
    noise, found = mechanism_of(query, epsilon).noise, 0.0
    for left, right in product(HISTOGRAMS, HISTOGRAMS):
        d = sum(abs(a - b) for a, b in zip(left, right, strict=True))
        if 0 < d <= query.distance:
            found = max(
                found, hockey_stick(noise, threshold, left, right, float(epsilon) * d) / (d * query.delta)
            )
    return found


@pytest.mark.parametrize("distance", [1, 2])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 50)])
def test_the_release_is_private_but_for_delta_and_not_for_a_threshold_of_one_less(
    distance: int, delta: Fraction
) -> None:
    query = replace(STABLE, delta=delta, distance=distance)
    threshold = mechanism_of(query, Fraction(1)).threshold
    assert worst(query, Fraction(1), threshold) <= 1 + 1e-9
    assert worst(query, Fraction(1), threshold - 1) > 1


def test_a_threshold_for_a_distance_of_one_is_refuted_where_it_is_three() -> None:
    """tail(τ − 1) ≤ δ alone, S ignored: one key of three records is seen too often."""
    query = replace(STABLE, delta=Fraction(1, 50), distance=3)
    ignored = mechanism_of(replace(query, distance=1), Fraction(1)).threshold
    noise = mechanism_of(query, Fraction(1)).noise
    assert seen(noise, ignored, (3,))[0] > 3 * query.delta


def test_a_person_of_many_keys_has_the_noise_of_all_of_them() -> None:
    for query in (SPARSE, STABLE):
        assert mechanism_of(spread(query, 4), Fraction(1, 2)).noise == DiscreteLaplace(Fraction(8))
        assert mechanism_of(spread(query, 4), Rho(Fraction(1, 2))).noise == DiscreteGaussian(Fraction(4))
        assert mechanism_of(query, Fraction(1, 2)).noise == DiscreteLaplace(Fraction(2))


@pytest.mark.parametrize("query", [SPARSE, STABLE])
def test_what_is_found_has_the_law_of_the_mechanism_and_no_other(query: Discovery) -> None:
    n, at = 3000, Fraction(1)
    mechanism = mechanism_of(query, at)
    threshold, count = mechanism.threshold, mechanism.threshold
    found = Counter(min(dict(_pairs(find(query, {3: count}, at))).get(3, 0), threshold + 2) for _ in range(n))
    law = law_of(mechanism.noise, count, threshold)
    masses = [law[0], law[threshold], law[threshold + 1]]
    counted = [found[value] for value in (0, threshold, threshold + 1, threshold + 2)]
    assert fits(counted, [*masses, 1 - sum(masses)])
    other = law_of(mechanism.noise, count + 1, threshold)
    masses = [other[0], other[threshold], other[threshold + 1]]
    assert not fits(counted, [*masses, 1 - sum(masses)])


def _pairs(released: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(zip(released[::2], released[1::2], strict=True))


def test_keys_are_released_in_their_order_whatever_the_order_of_the_data() -> None:
    counts = {7: 900, 1: 800, 4: 700}
    released = draw(STABLE, counts, Fraction(1))
    assert isinstance(released, tuple)
    assert released[::2] == (1, 4, 7)
    each = draw_alike(STABLE, [counts, {}, dict(reversed(counts.items()))], Fraction(1))
    assert [one[::2] for one in each if isinstance(one, tuple)] == [(1, 4, 7), (), (1, 4, 7)]


def test_of_more_keys_than_are_shown_the_largest_are() -> None:
    assert largest({1: 5, 2: 9, 3: 5, 4: 7}, 3) == {1: 5, 2: 9, 4: 7}
    released = find(replace(STABLE, at_most=2), {7: 900, 1: 100, 4: 700}, Fraction(1))
    assert released[::2] == (4, 7)


def test_a_number_outside_the_domain_stops_everything() -> None:
    with pytest.raises(KernelViolation):
        find(STABLE, {10: 900}, Fraction(1))


def test_keys_that_nobody_has_are_not_drawn_for_longer_than_there_is_time() -> None:
    """Ten thousand of 1,024 bytes are an hour: the clock is looked at between them."""
    endless = Sparse(K, StringDomain(1_024), Fraction(10_000), 1)
    mechanism_of(endless, Fraction(1)).threshold  # noqa: B018 - computed once, whatever the time
    began = time.monotonic()
    with pytest.raises(TimeoutError), deadline.within(0.5):
        find(endless, {}, Fraction(1))
    assert time.monotonic() - began < 30
