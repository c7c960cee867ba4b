"""Quantiles say how far they are off: in ranks, or, if asked to, in value. Coverage is computed exactly."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import ceil
from random import Random
from typing import Any

import numpy as np
import pytest

import fpinq as fp
from client.small_data import PLENTY, SURE
from fpinq import _
from fpinq.client.choices import brackets
from fpinq.client.planning import epsilon_for
from fpinq.engines.columns import Counts
from fpinq.model.choices import with_more
from fpinq.model.clamps import Clamp
from fpinq.model.conversion import epsilon_of_range
from fpinq.model.epsilon import Epsilon, epsilon
from fpinq.model.expressions import Column
from fpinq.model.notions import Rho
from fpinq.model.queries import Brackets
from fpinq.noise import ExponentialMechanism, PermuteAndFlip, Run
from fpinq.runtime.mechanisms import draw

TOP = 12
CLAMP = Clamp(Column("v"), 0, TOP)


def distributions(n: int) -> dict[str, list[int]]:
    """Ten ways to lie between 0 and 12, with ties and gaps."""
    random = Random(4)
    normal = [min(max(round(random.gauss(6, 2)), 0), TOP) for _i in range(n)]
    return {
        "uniform": [i % (TOP + 1) for i in range(n)],
        "normal": normal,
        "skewed": [min(int(random.expovariate(0.7)), TOP) for _i in range(n)],
        "all the same": [4] * n,
        "nearly all the same": [4] * (n - 1) + [9],
        "at both ends": [0, TOP] * (n // 2) + [0] * (n % 2),
        "two values": [5, 6] * (n // 2) + [5] * (n % 2),
        "a gap in the middle": [1, 2, 10, 11] * (n // 4) + [1] * (n % 4),
        "at the lower end": [0] * n,
        "one by one, then many": [*range(min(n, TOP)), *([11] * (n - min(n, TOP)))],
    }


def misses(query: Brackets, numbers: list[int], at: Fraction | Rho) -> tuple[Fraction, Fraction]:
    """How likely each end is on the wrong side of the quantile, at the most: from the exact masses."""
    measured, kind = Counter(numbers), ExponentialMechanism if isinstance(at, Rho) else PermuteAndFlip
    share = epsilon_of_range(at.amount / query.passes) if isinstance(at, Rho) else at / query.passes
    (fraction,), ordered = query.fractions, sorted(numbers)
    first = ordered[max(ceil(fraction * len(numbers)) - 1, 0)]
    last = ordered[min(int(fraction * len(numbers)), len(numbers) - 1)]
    ends = []
    for (rank, point, more), wrong in zip(
        [*query.beside()][::2], (lambda x: x > first, lambda x: x < last), strict=True
    ):
        runs = rank.scores(with_more(measured, point, more))
        mechanism = kind(share, rank.sensitivity, monotone=True)
        masses = mechanism.mass([Run(score, end - start + 1) for start, end, score in runs], 12)
        chosen = zip(runs, masses, strict=True)
        ends.append(
            sum(
                (high * sum(map(wrong, range(start, end + 1))) / (end - start + 1))
                for (start, end, _), (_, high) in chosen
            )
        )
    return ends[0], ends[1]


@pytest.mark.parametrize("at", [epsilon("1/2"), Rho(Fraction(1, 10))])
@pytest.mark.parametrize("n", [1, 2, 7, 40, 400])
@pytest.mark.parametrize(
    ("fraction", "confidence"), [(Fraction(1, 2), "0.95"), (Fraction(1, 2), "0.5"), (Fraction(4, 5), "0.9")]
)
def test_an_interval_covers_the_quantile_as_often_as_it_says_or_oftener(
    n: int, fraction: Fraction, confidence: str, at: Any
) -> None:
    query = brackets(CLAMP, [fraction], at, Fraction(confidence)).primitive
    for name, numbers in distributions(n).items():
        below, above = misses(query, numbers, at)
        assert below + above <= 1 - Fraction(confidence) + Fraction(1, 1_000), name


@pytest.mark.parametrize("at", [epsilon("1/2"), Rho(Fraction(1, 10))])
def test_with_a_third_of_the_records_beside_it_would_not_cover(at: Any) -> None:
    half = Fraction(1, 2)
    query = brackets(CLAMP, [half], at, Fraction(95, 100)).primitive
    fewer = Brackets(CLAMP, (half,), (query.below[0] // 3,), (query.above[0] // 3,))
    numbers = [1] * 200 + [11] * 200
    assert sum(misses(query, numbers, at)) <= Fraction(5, 100)
    assert sum(misses(fewer, numbers, at)) > Fraction(5, 100)


def test_at_rho_more_records_are_beside_than_permute_and_flip_needs() -> None:
    """It chooses only what comes before a best point, half of it; the exponential mechanism any."""
    clamp, half, at = Clamp(Column("v"), 0, 1), Fraction(1, 2), Rho(Fraction(1, 10))
    confidence = Fraction(1, 10)
    found = brackets(clamp, [half], at, confidence)
    assert (
        found.primitive.below > brackets(clamp, [half], Epsilon(3 * found.share), confidence).primitive.below
    )
    for numbers in ([0] * low + [1] * high for low in range(9) for high in range(9) if low + high):
        assert sum(misses(found.primitive, numbers, at)) <= 1 - confidence


def test_an_interval_is_narrow_where_there_are_many_records() -> None:
    data = fp.protect([{"v": i % 101} for i in range(20_000)], budget=PLENTY)
    answer = data.noisy_median(1, _.v, bounds=(0, 100), interval=0.95)
    low, high = answer.interval()  # type: ignore[misc]
    assert 40 <= low <= 50 <= high <= 60
    assert answer.split == (("the value", Fraction(1, 3)), ("its interval", Fraction(2, 3)))
    assert answer.charged == answer.epsilon == 1
    assert str(answer) == f"{answer.value}, {low} to {high} at 95 %"


def test_of_few_records_the_bounds_are_the_interval_and_of_the_least_and_the_largest_one_end_is() -> None:
    data = fp.protect([{"v": 5}] * 3, budget=PLENTY)
    assert data.noisy_median("1/100", _.v, bounds=(0, 100), interval=0.95).interval() == (0, 100)
    assert data.noisy_median("1/1000000000000", _.v, bounds=(0, 100), interval=0.95).interval() == (0, 100)
    (low, _high) = data.noisy_quantile(SURE, 1, _.v, bounds=(0, 100), interval=0.95).interval()  # type: ignore[misc]
    (_low, high) = data.noisy_quantile(SURE, 0, _.v, bounds=(0, 100), interval=0.95).interval()  # type: ignore[misc]
    assert (low, high) == (0, 100)
    assert data.noisy_median(1, _.v, bounds=(7, 7), interval=0.95).interval() == (7, 7)


def test_several_quantiles_have_an_interval_each_and_share_epsilon() -> None:
    data = fp.protect([{"v": i % 101} for i in range(5_050)], budget=PLENTY)
    found = data.noisy_quantile(SURE, [0.75, 0.25, 0.5], _.v, bounds=(0, 100), interval=0.9)
    assert list(found) == [0.75, 0.25, 0.5]
    assert [found[q].value for q in (0.25, 0.5, 0.75)] == [25, 50, 75]
    for answer in found.values():
        low, high = answer.interval(0.9)
        assert answer.value - 2 <= low <= answer.value <= high <= answer.value + 2
    assert sum(answer.epsilon for answer in found.values()) == SURE
    assert found.charged == SURE
    median = fp.median(_.v, bounds=(0, 100), interval=0.9)
    by_key = data.query(SURE, median, by=_.v > 50, keys=[True, False])
    assert by_key[False].interval(0.9)[1] < 50 < by_key[True].interval(0.9)[0]


@pytest.mark.parametrize("confidence", [0, 1, 1.5, "much", -0.1])
def test_a_confidence_that_is_none_is_refused_and_nothing_is_charged(confidence: object) -> None:
    data = fp.protect([{"v": 5}], budget=1)
    with pytest.raises(fp.BadQuery, match="confidence"):
        data.noisy_median(1, _.v, bounds=(0, 9), interval=confidence)
    assert data.remaining == 1


# ── in ranks ─────────────────────────────────────────────────────────────────────────


def test_a_quantile_prints_its_error_in_ranks() -> None:
    data = fp.protect([{"age": 29}] * 10, budget=PLENTY, columns={"age": fp.Column(bounds=(0, 110))})
    median = data.noisy_median(0.2, "age")
    assert str(median) == f"{median.value}, ± 39 ranks at 95 %"
    assert (median.ranks(), median.ranks(0.5)) == (39, 28)
    assert median.interval() is None
    assert data.noisy_count(1).ranks() is None
    assert data.expected_error(fp.median("age"), 0.2).half_width(0.95) == pytest.approx(38.53, abs=0.01)
    assert epsilon_for(fp.median("age", bounds=(0, 110)), error=39, confidence=0.95) < Fraction(1, 5)


@pytest.mark.parametrize("fraction", [Fraction(1, 2), Fraction(4, 5)])
def test_a_choice_is_off_by_more_ranks_no_oftener_than_it_says(fraction: Fraction) -> None:
    at = epsilon("1/4")
    bracketed = brackets(CLAMP, [fraction], at, Fraction(1, 2))
    (rank,) = bracketed.primitive.each()
    for name, numbers in distributions(90).items():
        runs = rank.scores(Counter(numbers))
        mechanism = PermuteAndFlip(at, rank.sensitivity, monotone=True)
        masses = mechanism.mass([Run(score, end - start + 1) for start, end, score in runs], 12)
        from fpinq.client.choices import _loss
        from fpinq.client.uncertainty import ChosenPoint

        most = ChosenPoint(_loss(rank, at)).ranks(Fraction(9, 10))
        far = sum(
            high for (start, end, _score), (_low, high) in zip(runs, masses, strict=True)
            if ranks_off(start, numbers, fraction) > most
        )  # fmt: skip
        assert far <= Fraction(1, 10) + Fraction(1, 1_000), name


def ranks_off(point: int, numbers: list[int], fraction: Fraction) -> Any:
    below, above = sum(x < point for x in numbers), sum(x > point for x in numbers)
    return max(below - fraction * len(numbers), above - (1 - fraction) * len(numbers), 0)


# ── in arrays ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(5))
def test_more_records_in_arrays_are_more_records(seed: int) -> None:
    random = np.random.default_rng(seed)
    points = random.choice(5_000, 300, replace=False)
    counts = Counts(points, random.integers(1, 9, 300))
    for point in (0, int(counts.points[0]), int(counts.points[-1]), 4_999):
        padded = counts.with_more(point, 17)
        assert dict(padded) == with_more(dict(counts), point, 17)
        assert all(a < b for a, b in pairwise(padded.points.tolist()))
    assert counts.with_more(3, 0) is counts


def test_among_many_grid_points_ends_are_chosen_alike() -> None:
    points = np.arange(0, 4_000, 4)
    counts = Counts(points, np.full(1_000, 3))
    query = Brackets(Clamp(Column("v"), 0, 5_000), (Fraction(1, 2),), (300,), (300,))
    for measured in (counts, dict(counts)):
        assert draw(query, measured, epsilon(10**6)) == pytest.approx((1_798, 1_998, 2_198), abs=4)


def test_the_interval_that_is_printed_has_the_value_in_it() -> None:
    table = fp.protect([{"v": i % 13} for i in range(40)], budget=10**6, schema={"v": "int64"})
    for _i in range(60):  # at this ε values are often beyond the ends that were chosen
        for answer in table.noisy_quantile("1/2", [0.1, 0.9], "v", (0, 12), interval=0.5).values():
            low, high = answer.interval()
            assert low <= answer.value <= high
            assert str(answer) == f"{answer.value}, {low} to {high} at 50 %"


@pytest.mark.parametrize("confidence", [Fraction(1, 10**5), Fraction(19, 20), 1 - Fraction(1, 10**400)])
@pytest.mark.parametrize("tiny", [Fraction(5e-324), Fraction(1, 10**400)])
def test_a_fraction_beyond_any_float_is_refused_with_an_interval_as_without(
    tiny: Fraction, confidence: Fraction
) -> None:
    """What was needed beside the others was a float, which overflowed: a server's mistake (500)."""
    people = fp.protect([{"age": 30}] * 5, budget=1, schema={"age": "int64"}, engine="reference")
    for fraction in (tiny, 1 - tiny):
        for interval in (None, confidence):
            with pytest.raises(fp.BadQuery, match="in steps of"):
                people.query("1/4", fp.quantile(fraction, "age", (0, 110), interval=interval))
    assert people.remaining == 1
