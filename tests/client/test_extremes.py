"""Minimum and maximum as outer quantiles: how many records lie beyond, and that they say so."""

import math

import numpy as np
import pytest

import fpinq as fp
from client.small_data import PLENTY, SURE
from fpinq import _

TIMES = 200


@pytest.fixture(scope="module")
def ages() -> fp.Table:
    rng = np.random.default_rng(4)
    rows = [{"age": int(age)} for age in rng.integers(17, 91, 20_000)]
    table: fp.Table = fp.protect(rows, schema={"age": "int64"}, budget=PLENTY)
    return table


def test_they_say_how_many_records_lie_beyond() -> None:
    data = fp.protect([{"age": 30}], schema={"age": "int64"}, budget=PLENTY, engine="reference")
    for answer, side in (
        (data.noisy_min(1, _.age, bounds=(0, 110)), "from below"),
        (data.noisy_max(1, _.age, bounds=(0, 110)), "from above"),
    ):
        number = math.ceil(2 * (math.log(111) - math.log(0.05)))
        assert f"(about record {number} {side})" in str(answer)
        assert "outer quantile" in repr(answer)
        assert answer.standard_error is None


def test_ties_at_the_end_are_found_and_nothing_beyond_them(ages: fp.Table) -> None:
    epsilon, beyond = 0.5, 2 * (math.log(111) + math.log(20)) / 0.5
    lowest = [ages.noisy_min(epsilon, _.age, bounds=(0, 110)) for _i in range(TIMES)]
    highest = [ages.noisy_max(epsilon, _.age, bounds=(0, 110)) for _i in range(TIMES)]
    # An age has about 270 records: so few of them are within the first, however many tie.
    assert beyond < 40
    assert sum(answer.value == 17 for answer in lowest) >= 0.95 * TIMES
    assert sum(answer.value == 90 for answer in highest) >= 0.95 * TIMES


def test_the_interval_is_from_the_bound_to_the_answer_where_that_is_sure(ages: fp.Table) -> None:
    lowest, highest = (ask(0.5, _.age, bounds=(0, 110)) for ask in (ages.noisy_min, ages.noisy_max))
    assert lowest.interval(0.95) == (0, lowest.value)
    assert highest.interval(0.95) == (highest.value, 110)
    assert lowest.interval(0.999) == highest.interval(0.999) == (0, 110)


def test_beyond_says_how_many(ages: fp.Table) -> None:
    assert ages.noisy_min(SURE, _.age, bounds=(0, 110), beyond=1).value == 17
    assert ages.noisy_max(SURE, _.age, bounds=(0, 110), beyond=1).value == 90
    assert 50 <= ages.noisy_min(SURE, _.age, bounds=(0, 110), beyond=10_000).value <= 57


def test_floats_and_conditions_have_extremes(engine: str) -> None:
    rows = [{"f": value, "b": value > 0} for value in (-1.5, 0.25, 0.5, 3.0)]
    data = fp.protect(rows, schema={"f": "float64", "b": "bool"}, budget=PLENTY, engine=engine)
    assert -1.5 <= data.noisy_min(SURE, _.f, bounds=(-4, 4), beyond=1).value <= 0.25
    assert 0.5 <= data.noisy_max(SURE, _.f, bounds=(-4, 4), beyond=1).value <= 3
    assert data.noisy_max(SURE, _.b, beyond=3).value in (0, 1)


def test_how_many_ranks_they_are_off_is_known_before(ages: fp.Table) -> None:
    expected = ages.expected_error(fp.minimum(_.age, (0, 110)), 1)
    assert expected.half_width(0.95) == pytest.approx(2 * (math.log(111) + math.log(20)))
    assert "from below" in str(expected)
