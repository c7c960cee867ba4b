"""The error before paying: the same as the answer's, the ε for it, and nothing charged."""

import math
from fractions import Fraction
from typing import Any

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY
from fpinq import _

AGES = (0, 110)


@pytest.fixture
def data(engine: str) -> fp.Table:
    table: fp.Table = fp.protect(
        PEOPLE, budget=1, engine=engine, columns={"age": fp.Column(bounds=AGES)}, name="people"
    )
    return table


@pytest.mark.parametrize(
    "query",
    [fp.count(), fp.sum(_.age), fp.sum(_.income, bounds=(0, 5000)), fp.distinct_count(_.city)],
    ids=repr,
)
def test_the_error_of_counts_and_sums_is_known_exactly(data: fp.Table, query: fp.Query) -> None:
    expected = data.expected_error(query, 0.1)
    assert data.remaining == 1
    answer = data.query(0.1, query)
    assert expected.standard_error == answer.standard_error
    low, high = answer.interval(0.9)
    assert expected.half_width(0.9) == pytest.approx((high - low) / 2)
    assert not expected.approximate


def test_an_error_prints(data: fp.Table) -> None:
    assert str(data.expected_error(fp.count(), 0.1)) == "± 30"
    assert repr(data.expected_error(fp.count(), 0.1)) == "<± 30, ε = 0.1>"
    assert str(data.expected_error(fp.histogram(_.age), 0.1)) == "± 30 for each bin"
    average = str(data.expected_error(fp.average(_.age), 0.1))
    assert average == "at most 1,640 divided by the number of records"
    once = str(data.expected_error(fp.average(_.age, once=True), 0.1))
    assert once == "at most 1,556 divided by the number of records"
    assert "if 1,000 records" in str(data.expected_error(fp.average(_.age), 0.1, size=1000))
    assert "ranks" in str(data.expected_error(fp.median(_.age), 0.1))
    assert "score" in str(data.expected_error(fp.mode(_.city, ["Ulm", "Bonn"]), 0.1))
    assert "unnoticed" in str(data.expected_error(fp.bounds(_.age), 0.1))
    assert "divided by" in str(data.expected_error(fp.standard_deviation(_.age), 0.1))
    assert "divided by" in str(data.expected_error(fp.cdf(_.age), 0.1))


def test_an_error_by_parts_that_would_be_refused_is_refused_before_asking(data: fp.Table) -> None:
    with pytest.raises(fp.UnknownColumn):
        data.expected_error(fp.count(), 0.1, by="nosuch")
    with pytest.raises(fp.BadPartition, match="in a shell --keys"):
        data.expected_error(fp.count(), 0.1, by=_.age)
    with pytest.raises(fp.BadQuery, match="say by what"):
        data.expected_error(fp.count(), 0.1, keys=[1, 2])
    assert str(data.expected_error(fp.count(), 0.1, by=_.age, keys=[20, 30])) == "± 30"
    assert data.remaining == 1


@pytest.mark.parametrize("query", [fp.average(_.v, (0, 100)), fp.variance(_.v, (0, 100))], ids=repr)
@pytest.mark.parametrize("value", [0, 50, 100])
def test_the_error_planned_for_a_size_is_the_most_that_it_is(
    engine: str, query: fp.Query, value: int
) -> None:
    table = fp.protect([{"v": value}] * 1000, budget=PLENTY, engine=engine)
    expected = table.expected_error(query, 1, size=1000)
    assert expected.approximate
    answer = table.query(1, query)
    # How many records there are is a noisy number, too.
    assert answer.standard_error <= expected.standard_error * 1.1
    if value != 50:
        assert answer.standard_error >= expected.standard_error * 0.9


def test_the_error_of_a_standard_deviation_is_largest_at_zero(engine: str) -> None:
    table = fp.protect([{"v": 7}] * 1000, budget=PLENTY, engine=engine)
    query = fp.standard_deviation(_.v, (0, 100))
    worst = math.sqrt(table.expected_error(fp.variance(_.v, (0, 100)), 1, size=1000).standard_error or 0)
    assert table.expected_error(query, 1, size=1000).standard_error == pytest.approx(worst)
    assert table.expected_error(query, 1, size=1000).half_width(0.95) > worst


def test_a_median_is_within_the_ranks_that_were_planned(engine: str) -> None:
    ages = [i % 100 for i in range(1000)]
    table = fp.protect([{"v": age} for age in ages], budget=PLENTY, engine=engine)
    for fraction in (Fraction(1, 2), Fraction(1, 10)):
        query = fp.quantile(fraction, _.v, (0, 99))
        ranks = table.expected_error(query, 0.5).half_width(0.9)
        hits = 0
        for _i in range(100):
            found = table.query(0.5, query).value
            below, upto = sum(a < found for a in ages), sum(a <= found for a in ages)
            hits += below - ranks <= fraction * 1000 <= upto + ranks
        assert hits >= 80


def test_the_loss_of_a_choice_is_within_what_was_planned(engine: str) -> None:
    table = fp.protect([{"v": i % 7} for i in range(700)], budget=PLENTY, engine=engine)
    query = fp.mode(_.v, [1, 2, 50])
    assert table.expected_error(query, 1).half_width(0.95) == pytest.approx(math.log(3 / 0.05))
    assert table.expected_error(fp.mode(_.v, [1]), 1).half_width(0.95) == 0
    signed = fp.exponential_mechanism([1, 2], lambda x, c: x.v - c, bounds=(-3, 3))
    assert table.expected_error(signed, 1).half_width(0.5) == pytest.approx(6 * math.log(4))


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (fp.count(), {"error": 30, "confidence": 0.95}),
        (fp.count(), {"error": 10}),
        (fp.count(), {"error": Fraction(1, 2), "confidence": 0.99}),
        (fp.sum(_.age, AGES), {"error": 1000, "confidence": 0.95}),
        (fp.sum(_.income, (0.5, 5000.25)), {"error": 1000.5}),
        (fp.average(_.age, AGES), {"error": 1, "confidence": 0.95, "size": 1000}),
        (fp.variance(_.age, AGES), {"error": 100, "size": 10**6}),
        (fp.standard_deviation(_.age, AGES), {"error": 1, "size": 10**6}),
        (fp.median(_.age, AGES), {"error": 10, "confidence": 0.95}),
        (fp.quantiles([0.1, 0.5], _.age, AGES), {"error": 10, "confidence": 0.95}),
        (fp.histogram(_.age, AGES), {"error": 30, "confidence": 0.95}),
        (fp.ranges(_.age, AGES), {"error": 30}),
        (fp.cdf(_.age, AGES), {"error": 0.01, "size": 1000}),
        (fp.cdf(_.age, AGES, counts=True), {"error": 10}),
        (fp.mode(_.age, [1, 2, 3]), {"error": 5, "confidence": 0.9}),
        (fp.distinct_count(_.age), {"error": 5}),
    ],
    ids=repr,
)
def test_the_epsilon_for_an_error_is_the_least_of_four_digits(
    data: fp.Table, query: fp.Query, options: dict[str, Any]
) -> None:
    epsilon = data.epsilon_for(query, **options)
    assert data.remaining == 1
    assert fp.epsilon_for(query, **options) == epsilon
    size, confidence = options.get("size"), options.get("confidence")

    def error(at: Fraction) -> float:
        expected = data.expected_error(query, at, size=size)
        found = expected.standard_error if confidence is None else expected.half_width(confidence)
        assert found is not None
        return float(found)

    assert error(epsilon) <= options["error"]
    digits = Fraction(10) ** (math.floor(math.log10(epsilon)) - 3)
    assert error(epsilon - digits) > options["error"]


def test_epsilon_in_numbers(data: fp.Table) -> None:
    assert fp.epsilon_for(fp.count(), error=30, confidence=0.95) == Fraction("0.09819")
    assert data.epsilon_for(fp.sum(_.age), error=110 * 30, confidence=0.95) == Fraction("0.09985")
    assert fp.epsilon_for(fp.count(), error=10**30) == Fraction(1, 10**18)


def test_what_was_planned_is_what_it_costs(data: fp.Table) -> None:
    epsilon = data.epsilon_for(fp.count(), error=30, confidence=0.95)
    assert data.price(epsilon) == epsilon
    answer = data.noisy_count(epsilon)
    assert answer.charged == epsilon
    low, high = answer.interval(0.95)  # type: ignore[misc]
    assert high - low <= 60


@pytest.mark.parametrize(
    ("query", "options", "why"),
    [
        (fp.average(_.age), {"error": 1}, "size="),
        (fp.cdf(_.age), {"error": 0.1}, "size="),
        (fp.standard_deviation(_.age), {"error": 0.1}, "size="),
        (fp.median(_.age), {"error": 10}, "confidence="),
        (fp.bounds(_.age), {"error": 10, "size": 5}, "unnoticed"),
        (fp.count(), {"error": 0}, "positive"),
        (fp.count(), {"error": -1}, "positive"),
        (fp.count(), {"error": math.nan}, "positive"),
        (fp.count(), {"error": math.inf}, "positive"),
        (fp.count(), {"error": True}, "positive"),
        (fp.count(), {"error": "30"}, "positive"),
        (fp.count(), {"error": 1, "confidence": 1}, "confidence"),
        (fp.count(), {"error": 1, "confidence": 95}, "confidence"),
        (fp.count(), {"error": 1, "size": 0}, "size"),
        (fp.count(), {"error": 1, "size": 1.5}, "size"),
        (fp.sum(_.city), {"error": 1}, "number"),
        ("count", {"error": 1}, "fp query"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(
    data: fp.Table, query: Any, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(fp.BadQuery, match=why):
        data.epsilon_for(query, **options)
    assert data.remaining == 1


def test_bad_plans_without_a_table() -> None:
    with pytest.raises(fp.BadQuery, match="fp query"):
        fp.epsilon_for("count", error=1)  # type: ignore[arg-type]
    with pytest.raises(fp.BadQuery, match=r"table\.epsilon_for"):
        fp.epsilon_for(fp.exponential_mechanism([1], lambda x, c: x.a), error=1)
    with pytest.raises(fp.BadQuery, match="bounds"):
        fp.epsilon_for(fp.sum(_.age), error=1)
    with pytest.raises(fp.BadQuery, match="no ε"):
        fp.epsilon_for(fp.sum(_.age, (0, 2**60)), error=1e-9, confidence=1 - Fraction(1, 10**9))


def test_the_error_of_a_bad_epsilon_is_refused(data: fp.Table) -> None:
    with pytest.raises(fp.BadEpsilon):
        data.expected_error(fp.count(), 0)
    with pytest.raises(fp.BadQuery):
        data.expected_error("count", 1)  # type: ignore[arg-type]
    with pytest.raises(fp.BadQuery):
        data.expected_error(fp.count(), 1).half_width(95)
