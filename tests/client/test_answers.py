"""Answers know their error, and are numbers where that is safe."""

import math
import random
from fractions import Fraction

import pytest

import fpinq as fp
from client.small_data import PLENTY, SURE
from fpinq import _
from fpinq.client.answers import Answer
from fpinq.client.queries import Subject
from fpinq.client.trees import CountTree
from fpinq.client.uncertainty import LaplaceCombination, LaplaceNoise, RangeNoise, combination_quantile
from fpinq.engines import reference
from fpinq.engines.reference import Relation
from fpinq.model.expressions import Schema, Type
from fpinq.runtime.mechanisms import draw


def answer(value: float, scale: Fraction = Fraction(10)) -> Answer:
    return Answer(value, Fraction(1, 10), Fraction(1, 10), LaplaceNoise(scale))


def test_a_count_prints_with_its_95_percent_interval() -> None:
    assert str(answer(1234)) == "1,234 ± 30"
    assert repr(answer(1234)) == "<1,234 ± 30, ε = 0.1>"
    assert f"{answer(1234):.1f}" == "1234.0"
    assert answer(1234).interval(0.95) == (1204, 1264)
    assert answer(1234).standard_error == pytest.approx(math.sqrt(2) * 10, rel=0.01)
    assert not answer(1).approximate


def test_an_answer_is_a_number_where_that_is_safe() -> None:
    ten = answer(10)
    assert (int(ten), float(ten), ten + 1, 1 + ten, ten - 1, 1 - ten) == (10, 10.0, 11, 11, 9, -9)
    assert (ten * 2, 2 * ten, ten / 4, 20 / ten, -ten, abs(-ten), +ten) == (20, 20, 2.5, 2, -10, 10, 10)
    assert ten == 10
    assert ten > 9
    assert ten >= 10
    assert ten < 11
    assert ten <= answer(10)
    assert hash(ten) == hash(10)
    assert sorted([answer(3), answer(1)])[0] == 1
    assert [0, 1, 2][answer(2)] == 2
    assert round(answer(2.6)) == 3
    assert not answer(0)
    with pytest.raises(TypeError, match="round"):
        int(answer(2.5))


def test_a_confidence_is_between_0_and_1() -> None:
    for wrong in (0, 1, 1.5, -0.1, float("nan"), "0.95", True):
        with pytest.raises(fp.BadQuery):
            answer(1).interval(wrong)  # type: ignore[arg-type]


def test_counts_fall_into_their_interval_as_often_as_it_says(people: fp.Table) -> None:
    hits = 0
    for _i in range(400):
        low, high = people.noisy_count(0.5).interval(0.8)  # type: ignore[misc]
        hits += low <= 6 <= high
    assert 280 <= hits <= 360  # 320 expected, or a little more, for the interval is of integers


def test_averages_fall_into_their_interval_about_as_often_as_it_says(engine: str) -> None:
    draw = random.Random(1)
    ages = [draw.randint(0, 100) for _i in range(500)]
    table = fp.protect([{"age": age} for age in ages], budget=PLENTY, engine=engine)
    truth, hits = sum(ages) / 500, 0
    for _i in range(300):
        found = table.noisy_average(0.2, _.age, bounds=(0, 100))
        low, high = found.interval(0.9)  # type: ignore[misc]
        hits += low <= truth <= high
        assert found.approximate
    assert 250 <= hits <= 290


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("query", [fp.average(_.v, (0, 100)), fp.variance(_.v, (0, 100))], ids=repr)
def test_intervals_cover_as_often_as_they_say(query: fp.Query, confidence: float) -> None:
    """Exact statistics and exact noise, read as the client reads them: neither too narrow nor too wide."""
    values = [i * i % 101 for i in range(2000)]
    mean = Fraction(sum(values), 2000)
    variance = sum((value - mean) ** 2 for value in values) / 2000
    truth = mean if isinstance(query, fp.average) else variance
    epsilon, times = Fraction(1, 10), 1500
    schema = Schema.of({"v": Type.INT64})
    prepared = query.prepare(Subject(schema), epsilon)
    table = Relation(schema, tuple((value,) for value in values))
    (exact,) = reference.measure(table, None, [prepared.primitive.statistic])
    hits = 0
    for _i in range(times):
        low, high = prepared.read(draw(prepared.primitive, exact, epsilon), epsilon).interval(confidence)
        hits += low <= truth <= high
    spread = 4.5 * math.sqrt(times * confidence * (1 - confidence))
    assert abs(hits - times * confidence) < spread + 0.01 * times


def test_more_arithmetic() -> None:
    ten = answer(10)
    assert (ten // 3, 31 // ten, ten % 3, 33 % ten, ten**2, 2**ten, divmod(ten, 3)) == (
        3,
        3,
        1,
        3,
        100,
        1024,
        (3, 1),
    )
    assert (math.floor(answer(2.5)), math.ceil(answer(2.5)), math.trunc(answer(2.5))) == (2, 3, 2)
    assert f"{answer(1234567):,}" == "1,234,567"


def test_the_quantile_of_a_combination_is_that_of_its_draws() -> None:
    draw = random.Random(2)

    def laplace() -> float:
        return draw.expovariate(1) - draw.expovariate(1)

    for weights in [(1.0,), (1.0, 0.3), (2.0, 2.0), (1.0, 0.5, 0.25), (3.0, 3.0, 3.0)]:
        t = combination_quantile(weights, 0.9)
        inside = sum(abs(sum(w * laplace() for w in weights)) <= t for _i in range(20_000))
        assert inside / 20_000 == pytest.approx(0.9, abs=0.012)
    assert combination_quantile((0.0,), 0.9) == 0
    assert combination_quantile((math.inf, 1.0), 0.9) == math.inf


def test_errors_stay_within_what_is_possible() -> None:
    assert LaplaceCombination((math.inf,), 0, 10).standard_error() == 5
    assert LaplaceCombination((math.inf,), 0, 10).interval(3.0, Fraction(1, 2)) == (0, 10)
    fraction = RangeNoise(CountTree(2, 2, 1), 0, 2, Fraction(100), 1.0, 0, 1)
    assert fraction.interval(0.5, Fraction(9, 10)) == (0, 1)
    assert fraction.standard_error() == 0.5
    assert LaplaceNoise(None).interval(3, Fraction(1, 2)) == (3, 3)


def test_a_choice_has_no_interval_and_a_median_none_unless_asked(people: fp.Table) -> None:
    choice = people.exponential_mechanism(SURE, ["Ulm"], lambda x, c: x.city == c)
    assert (str(choice), choice.interval(0.95), choice.standard_error) == ("Ulm", None, None)
    median = people.noisy_median(SURE, _.age, bounds=(0, 110))
    assert (median.interval(0.95), median.standard_error) == (None, None)
    asked = people.noisy_median(SURE, _.age, bounds=(0, 110), interval=0.95)
    low, high = asked.interval(0.95)  # type: ignore[misc]
    assert 10 <= low <= 30 <= 40 <= high <= 60
    assert asked.interval(0.5) == (low, high)
    assert asked.interval(0.99) is None


def test_a_standard_deviation_knows_its_error(people: fp.Table) -> None:
    found = people.noisy_standard_deviation(SURE, _.age, bounds=(0, 110))
    low, high = found.interval(0.95)  # type: ignore[misc]
    assert low <= found.value <= high
    assert found.standard_error is not None
