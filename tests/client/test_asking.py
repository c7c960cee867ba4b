"""Queries: alone, on a part and in parallel; post-processed from integers."""

import math
import statistics
from fractions import Fraction
from itertools import pairwise

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY, SURE
from fpinq import _
from fpinq.client.bounds import clamp, grid_step
from fpinq.client.histograms import rising
from fpinq.client.rows import Call, Cell
from fpinq.model.expressions import Column, Type

AGES = [row["age"] for row in PEOPLE]


def numbers(engine: str, values: list[float | None], type_: str = "float64") -> fp.Table:
    table: fp.Table = fp.protect(
        [{"v": v} for v in values], budget=PLENTY, schema={"v": type_}, engine=engine
    )
    return table


def test_the_parallel_query_asks_each_part_its_own(people: fp.Table) -> None:
    before = people.remaining
    answers = people.query(
        SURE,
        {
            "Ulm": fp.count(),
            "Bonn": fp.sum(lambda x: x.age, bounds=(0, 110)),
            "Rom": fp.average(_.age, bounds=(0, 110)),
            None: fp.median(_.age, bounds=(0, 110)),
        },
        by=lambda x: x.city,
    )
    assert (answers["Ulm"].value, answers["Bonn"].value) == (2, 70)
    assert 0 <= answers["Rom"].value <= 110
    assert answers[None].value == 60
    assert before - people.remaining == SURE  # type: ignore[operator]
    assert answers.charged == SURE


def test_one_query_for_all_keys(people: fp.Table) -> None:
    answers = people.query(SURE, fp.count(), by=_.gender, keys=[0, 1, 2])
    assert {key: answer.value for key, answer in answers.items()} == {0: 3, 1: 3, 2: 0}
    assert list(people.query(SURE, fp.count(), by=_.income > 1000, keys=[True, False])) == [True, False]


def test_a_query_without_by_is_of_the_whole_table(people: fp.Table) -> None:
    assert people.query(SURE, fp.count()).value == 6


def test_integer_answers_are_integers(people: fp.Table) -> None:
    assert type(people.noisy_count(1).value) is int
    assert type(people.noisy_sum(1, _.age, bounds=(0, 110)).value) is int
    assert type(people.noisy_median(1, _.age, bounds=(0, 110)).value) is int


def test_variance_and_standard_deviation(people: fp.Table) -> None:
    expected = statistics.pvariance(AGES)
    assert people.noisy_variance(SURE, _.age, bounds=(0, 110)).value == pytest.approx(expected, rel=1e-4)
    deviation = people.noisy_standard_deviation(SURE, _.age, bounds=(0, 110))
    assert deviation.value == pytest.approx(math.sqrt(expected), rel=1e-4)


def test_a_variance_over_bounds_too_wide_to_square_goes_through_floats(people: fp.Table) -> None:
    answer = people.noisy_variance(SURE, _.age, bounds=(-(2**40), 2**40))
    assert 0 <= answer.value <= 2**80


def test_an_average_without_records_is_the_middle(engine: str) -> None:
    for _i in range(20):
        value = numbers(engine, []).noisy_average("0.001", _.v, bounds=(10, 20)).value
        assert 10 <= value <= 20


def test_bounds_of_width_zero(engine: str) -> None:
    table = numbers(engine, [1.0, 2.0, None])
    assert table.noisy_average(1, _.v, bounds=(1.5, 1.5)).value == 1.5
    assert table.noisy_variance(1, _.v, bounds=(1.5, 1.5)).value == 0
    assert table.noisy_median(1, _.v, bounds=(1.5, 1.5)).value == 1.5
    assert table.noisy_sum(1, _.v, bounds=(0, 0)).value == 0
    assert table.noisy_sum(1, _.v, bounds=(0, 0)).standard_error == 0


def test_values_beyond_the_bounds_are_clamped_and_nulls_and_nan_count_for_nothing(engine: str) -> None:
    table = numbers(engine, [-5.0, 0.5, 99.0, math.inf, -math.inf, math.nan, None])
    assert table.noisy_sum(SURE, _.v, bounds=(0, 1)).value == pytest.approx(2.5, abs=1e-6)
    assert table.noisy_average(SURE, _.v, bounds=(0, 1)).value == pytest.approx(0.5, abs=1e-6)


def test_large_integers_sum_exactly(engine: str) -> None:
    table = numbers(engine, [2**62] * 8, "int64")
    answer = table.noisy_sum(10**15, _.v, bounds=(0, 2**62))
    assert abs(answer.value - 2**65) < 10**6


def test_a_condition_can_be_summed_and_averaged(people: fp.Table) -> None:
    assert people.noisy_sum(SURE, _.age > 25).value == 4
    assert people.noisy_average(SURE, _.age > 25).value == pytest.approx(4 / 6, abs=1e-6)


def test_quantiles_of_a_list_share_the_epsilon(people: fp.Table) -> None:
    before = people.remaining
    answers = people.noisy_quantile(SURE, [0, 0.5, 1], _.age, bounds=(0, 110))
    assert list(answers) == [0, 0.5, 1]
    assert before - people.remaining == SURE  # type: ignore[operator]
    poor = people.with_budget(fp.Budget(1))
    with pytest.raises(fp.BudgetExceeded):
        poor.noisy_quantile(2, [0.25, 0.75], _.age, bounds=(0, 110))
    assert poor.remaining == 1


def test_median_of_many_ties(engine: str) -> None:
    table = numbers(engine, [5] * 200 + [6] * 3, "int64")
    assert table.noisy_median(1, _.v, bounds=(0, 100)).value == 5


def test_mode_distinct_count_and_bounds(people: fp.Table) -> None:
    assert people.where(_.city != "Bonn").noisy_mode(SURE, _.city, ["Kiel", "Bonn", "Ulm"]).value == "Ulm"
    assert people.noisy_distinct_count(SURE, _.city).value == 3
    assert people.noisy_bounds(SURE, _.age).value == (0, 64)
    assert people.noisy_bounds(SURE, _.income - 1000).value == (-1024, 4096)
    assert people.noisy_average(SURE, _.age, bounds=people.noisy_bounds(SURE, _.age)).value == pytest.approx(
        35
    )


def test_histograms(people: fp.Table) -> None:
    by_ten = people.noisy_histogram(SURE, _.age, bounds=(0, 60), bins=3)
    assert {key: answer.value for key, answer in by_ten.items()} == {(0, 20): 1, (20, 40): 2, (40, 60): 3}
    edges = people.noisy_histogram(SURE, _.income, bins=[0, 1000, 2000.5, 3000])
    assert [answer.value for answer in edges.values()] == [2, 1, 1]
    whole = people.noisy_histogram(SURE, _.age // 10, bounds=(0, 4))
    assert {key: answer.value for key, answer in whole.items()} == {0: 0, 1: 1, 2: 1, 3: 1, 4: 3}
    cities = people.noisy_histogram(SURE, _.city, keys=["Ulm", "Rom"])
    assert {key: answer.value for key, answer in cities.items()} == {"Ulm": 2, "Rom": 0}
    by_gender = people.query(SURE, fp.histogram(_.age, (0, 60), 3), by=_.gender, keys=[0, 1])
    assert [answer.value for answer in by_gender[0].values()] == [1, 1, 1]


def test_a_cdf_never_falls_and_ends_at_one(people: fp.Table) -> None:
    for epsilon in (SURE, "0.01"):
        values = [answer.value for answer in people.noisy_cdf(epsilon, _.age, bounds=(0, 110)).values()]
        assert all(a <= b for a, b in pairwise(values))
        assert all(0 <= value <= 1 for value in values)
    cdf = people.noisy_cdf(SURE, _.age, bounds=(0, 110))
    assert (cdf[9].value, cdf[30].value, cdf[110].value) == (0, 0.5, 1)
    assert people.noisy_cdf(SURE, _.age, bounds=(0, 110), counts=True)[30].value == 3


def test_pooling_gives_the_nearest_rising_sequence() -> None:
    assert rising([1, 3, 2, 2, 5]) == [1, 7 / 3, 7 / 3, 7 / 3, 5]
    assert rising([3, 2, 1]) == [2, 2, 2]


def test_scores_of_both_signs(people: fp.Table) -> None:
    best = people.exponential_mechanism(SURE, [25, 35, 58], lambda x, c: -abs(x.age - c), bounds=(-110, 0))
    assert best.value == 35
    signed = people.exponential_mechanism(SURE, [0, 1], lambda x, c: fp.if_else(x.gender == c, 0.5, -1))
    assert signed.value in (0, 1)
    constant = people.exponential_mechanism(SURE, [0, 1], lambda x, c: x.age if c else 0, bounds=(0, 110))
    assert constant.value == 1


def test_public_tables_cost_nothing() -> None:
    public = fp.public([{"a": 1}, {"a": 2}])
    assert (public.scaling_factor, public.price(5), dict(public.remaining)) == (0, 0, {})  # type: ignore[arg-type]
    assert public.where(_.a > 1).noisy_count(SURE).value == 1
    parts = public.partition(_.a, keys=[1, 2, 3])
    assert [part.noisy_count(SURE).value for part in parts.values()] == [1, 1, 0]
    assert public.noisy_count(SURE).charged == 0


def test_metadata_stands_in_for_bounds_and_keys(engine: str) -> None:
    data = fp.protect(
        PEOPLE,
        budget=PLENTY,
        engine=engine,
        columns={"age": fp.Column(bounds=(0, 110)), "gender": fp.Column(keys=[0, 1])},
    )
    adults = data.where(_.age > 17).rename(age="years")
    assert adults.noisy_sum(SURE, _.years).value == 200
    assert list(adults.partition(_.gender)) == [0, 1]
    assert list(adults.query(SURE, fp.average(_.years), by=_.gender)) == [0, 1]
    assert adults.group_by(_.gender).select(lambda g: {"s": g.sum(_.years)}).scaling_factor == 2
    # Bounds belong to the column, not to its name.
    with pytest.raises(fp.BadQuery):
        adults.with_columns(lambda x: {"years": x.years * 1000}).noisy_sum(SURE, _.years)
    with pytest.raises(fp.BadQuery):
        adults.noisy_sum(SURE, _.years + 1)


@pytest.mark.parametrize(
    ("lower", "upper"), [(0.0, 1.0), (-3.5, 1e9), (1e9, 1e9 + 1), (0.0, 1e-320), (1e300, 1.5e300), (0.1, 0.3)]
)
def test_the_grid_of_floats_is_fine_and_contains_the_bounds(lower: float, upper: float) -> None:
    clamped = clamp(Cell(Column("v"), Type.FLOAT64, Call()), (lower, upper))
    low, high = clamped.lower * clamped.step, clamped.upper * clamped.step
    assert low <= Fraction(repr(lower))
    assert Fraction(repr(upper)) <= high
    assert clamped.magnitude <= 2**53
    assert clamped.width <= 2**31
    width = Fraction(repr(upper)) - Fraction(repr(lower))
    assert clamped.step <= max(width / 2**20, Fraction(repr(upper)) / 2**51, Fraction(1, 2**900))
    assert grid_step(Fraction(0), Fraction(0)) == 1
