"""Every query: alone, on a part, in parallel with others; on nothing, on nulls, on one row, at its bounds."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fpinq as fp
from client.small_data import PLENTY, SURE
from fpinq import _
from fpinq.client.histograms import rising
from fpinq.client.queries import as_float

AGES = (0, 110)
EDGES = [0, 25, 45, 110]

# The query, its name on a table with the arguments after ε, and what Ulm, Bonn and all six people give.
QUERIES: dict[str, tuple[fp.Query, str, tuple[Any, ...], tuple[Any, Any, Any]]] = {
    "count": (fp.count(), "noisy_count", (), (2, 2, 6)),
    "sum": (fp.sum(_.age, AGES), "noisy_sum", (_.age, AGES), (30, 70, 210)),
    "average": (fp.average(_.age, AGES), "noisy_average", (_.age, AGES), (15, 35, 35)),
    "variance": (fp.variance(_.age, AGES), "noisy_variance", (_.age, AGES), (25, 25, 875 / 3)),
    "deviation": (
        fp.standard_deviation(_.age, AGES),
        "noisy_standard_deviation",
        (_.age, AGES),
        (5, 5, math.sqrt(875 / 3)),
    ),
    "median": (fp.median(_.age, (10, 20)), "noisy_median", (_.age, (20, 20)), (None, None, 20)),
    "quantile": (fp.quantile(1, _.age, (0, 60)), "noisy_quantile", (1, _.age, (0, 60)), (None, None, 60)),
    "order statistic": (
        fp.order_statistic(0, _.age, (10, 60)),
        "noisy_order_statistic",
        (0, _.age, (10, 60)),
        (10, None, 10),
    ),
    "exponential mechanism": (
        fp.exponential_mechanism([1, 15, 35], lambda x, c: -abs(x.age - c), (-110, 0)),
        "exponential_mechanism",
        ([1, 15, 35], lambda x, c: -abs(x.age - c), (-110, 0)),
        (15, 35, 35),
    ),
    "mode": (fp.mode(_.city, ["Rom", "Ulm"]), "noisy_mode", (_.city, ["Rom", "Ulm"]), ("Ulm", None, "Ulm")),
    "top": (
        fp.top(2, _.city, ["Rom", "Ulm", "Bonn"]),
        "noisy_top",
        (2, _.city, ["Rom", "Ulm", "Bonn"]),
        (("Ulm", "Rom"), ("Bonn", "Rom"), ("Ulm", "Bonn")),
    ),
    "proportion": (fp.proportion(_.age > 15), "noisy_proportion", (_.age > 15,), (0.5, 1, 5 / 6)),
    "minimum": (fp.minimum(_.age, (10, 20), 1), "noisy_min", (_.age, (11, 11), 1), (None, None, None)),
    "maximum": (fp.maximum(_.age, AGES), "noisy_max", (_.age, AGES), (None, None, None)),
    "covariance": (
        fp.covariance(_.id, _.age, ((0, 10), AGES)),
        "noisy_covariance",
        (_.id, _.age, ((0, 10), AGES)),
        (2.5, 2.5, 175 / 6),
    ),
    "correlation": (
        fp.correlation(_.id, _.age, ((0, 10), AGES)),
        "noisy_correlation",
        (_.id, _.age, ((0, 10), AGES)),
        (1, 1, 1),
    ),
    "regression": (
        fp.regression(_.age, [_.id - 1], {"age": AGES, "id - 1": (0, 10)}),
        "noisy_regression",
        (_.age, {"before": _.id - 1}, {"age": AGES, "before": (0, 10)}),
        ([10, 10], [10, 10], [10, 10]),
    ),
    "distinct count": (fp.distinct_count(_.city), "noisy_distinct_count", (_.city,), (1, 1, 3)),
    "bounds": (fp.bounds(_.age), "noisy_bounds", (_.age,), ((0, 32), (0, 64), (0, 64))),
    "quantiles": (
        fp.quantiles([0, 1], _.age, (10, 60)),
        "noisy_quantile",
        ([0, 1], _.age, (10, 60)),
        (None, None, {0: 10, 1: 60}),
    ),
    "histogram": (
        fp.histogram(_.age, bins=EDGES),
        "noisy_histogram",
        (_.age, None, EDGES),
        ([2, 0, 0], [0, 2, 0], [2, 2, 2]),
    ),
    "ranges": (
        fp.ranges(_.age, bins=EDGES),
        "noisy_ranges",
        (_.age, None, EDGES),
        ([2, 0, 0], [0, 2, 0], [2, 2, 2]),
    ),
    "cdf": (
        fp.cdf(_.age, bins=EDGES),
        "noisy_cdf",
        (_.age, None, EDGES),
        ([1, 1, 1], [0, 1, 1], [1 / 3, 2 / 3, 1]),
    ),
}


def same(answer: fp.Answer | fp.Answers, expected: Any) -> bool:
    value: Any = answer.values_only if isinstance(answer, fp.Answers) else answer.value
    if isinstance(value, list):
        return value == list(expected)
    if isinstance(expected, list):
        return list(value.values()) == pytest.approx(expected)
    return expected is None or value == (
        expected if isinstance(expected, str | tuple) else pytest.approx(expected)
    )


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_alone_on_a_part_and_in_parallel(people: fp.Table, name: str) -> None:
    query, method, arguments, (ulm, bonn, everybody) = QUERIES[name]
    before: Any = people.remaining
    alone = people.query(SURE, query)
    assert before - people.remaining == SURE == alone.charged
    assert same(getattr(people, method)(SURE, *arguments), everybody)
    if "median" not in name:
        assert same(alone, everybody)
    parts = people.partition(_.city, keys=["Ulm", "Bonn"])
    assert same(parts["Ulm"].query(SURE, query), ulm)
    before = people.remaining
    together = people.query(SURE, {"Ulm": query, "Bonn": query, "Kiel": fp.count()}, by=_.city)
    assert before - people.remaining == SURE == together.charged
    assert same(together["Ulm"], ulm)
    assert same(together["Bonn"], bonn)
    assert together["Kiel"].value == 1
    assert together["Ulm"].charged == SURE


def test_all_queries_in_one_parallel_query(people: fp.Table) -> None:
    names = list(QUERIES)
    asked = {i: QUERIES[name][0] for i, name in enumerate(names)}
    before: Any = people.remaining
    answers = people.query(SURE, asked, by=_.id * 0)
    assert before - people.remaining == SURE
    assert same(answers[0], 6)
    assert len(answers) == len(names)


def test_a_parallel_query_with_a_distinct_count_that_does_not_fit_costs_nothing(engine: str) -> None:
    data = fp.protect([{"a": 1, "k": 0}], budget=1, engine=engine)
    with pytest.raises(fp.BudgetExceeded):
        data.query(2, {0: fp.distinct_count(_.a), 1: fp.count()}, by=_.k)
    with pytest.raises(fp.BadQuery):
        data.query(1, {0: fp.distinct_count(_.a), 1: fp.sum(_.a)}, by=_.k)
    assert data.remaining == 1
    answers = data.query(1, {0: fp.distinct_count(_.a), 1: fp.count()}, by=_.k)
    assert data.remaining == 0
    assert answers.charged == 1


def test_integer_answers_are_ints(people: fp.Table) -> None:
    for name in ("count", "sum", "median", "quantile", "order statistic", "distinct count"):
        assert type(people.query(1, QUERIES[name][0]).value) is int
    for name in ("histogram", "quantiles"):
        assert all(type(answer.value) is int for answer in people.query(1, QUERIES[name][0]).values())


def test_quantiles_rise_and_keep_the_order_asked_for(people: fp.Table) -> None:
    for _i in range(50):
        found = people.noisy_quantile("0.1", [0.9, 0.1, 0.5, 0.1], _.age, bounds=AGES)
        assert list(found) == [0.9, 0.1, 0.5]
        assert found[0.1].value <= found[0.5].value <= found[0.9].value
        assert (found.epsilon, found[0.1].epsilon) == (Fraction(1, 10), Fraction(1, 30))


# ── edges ────────────────────────────────────────────────────────────────────────────


def table(engine: str, values: list[Any], type_: str = "int64") -> fp.Table:
    rows = [{"v": value} for value in values]
    protected: fp.Table = fp.protect(rows, budget=PLENTY, schema={"v": type_}, engine=engine)
    return protected


@pytest.mark.parametrize("type_", ["int64", "float64"])
@pytest.mark.parametrize("values", [[], [None, None, None]], ids=["empty", "all null"])
def test_a_table_without_values_has_answers(engine: str, type_: str, values: list[None]) -> None:
    data = table(engine, values, type_)
    assert data.noisy_count(SURE).value == len(values)
    assert data.noisy_sum(SURE, _.v, bounds=(3, 5)).value == pytest.approx(0, abs=1e-6)
    assert 3 <= data.noisy_average(SURE, _.v, bounds=(3, 5)).value <= 5
    assert 0 <= data.noisy_variance(SURE, _.v, bounds=(3, 5)).value <= 1
    assert 3 <= data.noisy_median(SURE, _.v, bounds=(3, 5)).value <= 5
    assert data.noisy_distinct_count(SURE, _.v).value == 0
    assert data.noisy_bounds(SURE, _.v).value == (0, 1)
    assert data.noisy_mode(SURE, _.v, [1, 2]).value in (1, 2)
    assert data.noisy_histogram(SURE, _.v, bounds=(0, 4), bins=2).values_only == {(0, 2): 0, (2, 4): 0}
    assert data.noisy_ranges(SURE, _.v, bounds=(0, 4), bins=2).range().value == 0
    assert list(data.noisy_cdf(SURE, _.v, bounds=(0, 4), bins=2).values_only.values()) == [0.5, 1]
    average = data.noisy_average(1, _.v, bounds=(3, 5))
    low, high = average.interval(0.95)  # type: ignore[misc]
    assert 3 <= low <= high <= 5


def test_one_row(engine: str) -> None:
    data = table(engine, [7])
    assert data.noisy_sum(SURE, _.v, bounds=(0, 10)).value == 7
    assert data.noisy_average(SURE, _.v, bounds=(0, 10)).value == pytest.approx(7)
    assert data.noisy_variance(SURE, _.v, bounds=(0, 10)).value == pytest.approx(0, abs=1e-3)
    assert data.noisy_median(SURE, _.v, bounds=(0, 10)).value == 7
    assert data.noisy_distinct_count(SURE, _.v).value == 1


def test_bounds_one_grid_step_apart(engine: str) -> None:
    data = table(engine, [4, 5, 5, 6, None])
    assert data.noisy_sum(SURE, _.v, bounds=(4, 5)).value == 19
    assert data.noisy_average(SURE, _.v, bounds=(4, 5)).value == 4.75
    assert data.noisy_variance(SURE, _.v, bounds=(4, 5)).value == 0.1875
    assert data.noisy_median(SURE, _.v, bounds=(4, 5)).value == 5
    assert data.noisy_histogram(SURE, _.v, bounds=(4, 5)).values_only == {4: 1, 5: 3}


def test_bounds_of_width_zero_leave_nothing_to_protect(engine: str) -> None:
    data = table(engine, [4, 5, 6])
    average = data.noisy_average("0.001", _.v, bounds=(5, 5))
    assert (average.value, average.standard_error, average.interval(0.95)) == (5, 0, (5, 5))
    assert data.noisy_variance("0.001", _.v, bounds=(5, 5)).interval(0.95) == (0, 0)
    assert data.noisy_median("0.001", _.v, bounds=(5, 5)).value == 5
    assert data.noisy_histogram(SURE, _.v, bounds=(5, 5)).values_only == {5: 3}
    assert data.noisy_sum(SURE, _.v, bounds=(5, 5)).value == 15


@pytest.mark.parametrize("type_", ["int64", "float64"])
def test_values_at_and_beyond_the_bounds_count_as_the_bounds(engine: str, type_: str) -> None:
    data = table(engine, [-100, 0, 10, 1000], type_)
    assert data.noisy_sum(SURE, _.v, bounds=(0, 10)).value == pytest.approx(20, abs=1e-6)
    assert data.noisy_average(SURE, _.v, bounds=(0, 10)).value == pytest.approx(5, abs=1e-6)
    assert data.noisy_variance(SURE, _.v, bounds=(0, 10)).value == pytest.approx(25, abs=1e-6)
    assert data.noisy_histogram(SURE, _.v, bounds=(0, 10), bins=2).values_only == {(0, 5): 2, (5, 10): 2}
    edges = data.noisy_histogram(SURE, _.v, bins=[0, 5, 10])
    assert edges.values_only == {(0, 5): 1, (5, 10): 1}


# ── noise as large as it gets ────────────────────────────────────────────────────────

SMALLEST = "1e-18"


def test_the_smallest_epsilon_and_the_widest_bounds_are_drawn_exactly(engine: str) -> None:
    data = table(engine, [1, 2, 3])
    widest = (-(2**63), 2**63 - 1)
    for answer in (data.noisy_count(SMALLEST), data.noisy_sum(SMALLEST, _.v, bounds=widest)):
        assert type(answer.value) is int
        low, high = answer.interval(0.99)  # type: ignore[misc]
        assert low < answer.value < high
    assert widest[0] <= data.noisy_average(SMALLEST, _.v, bounds=widest).value <= 2**63  # as a float
    assert widest[0] <= data.noisy_median(SMALLEST, _.v, bounds=widest).value <= widest[1]
    assert 0 <= data.noisy_variance(SMALLEST, _.v, bounds=(0, 2**31)).value <= 2**60
    assert len(data.noisy_cdf(SMALLEST, _.v, bounds=(0, 200))) == 201


def test_noise_beyond_what_floats_hold_is_refused_before_the_charge(engine: str) -> None:
    data = table(engine, [1.0, 2.0], "float64")
    before = data.remaining
    with pytest.raises(fp.BadQuery, match="larger ε"):
        data.noisy_sum(SMALLEST, _.v, bounds=(0, 1e300))
    with pytest.raises(fp.BadQuery, match="too wide for a variance"):
        data.noisy_variance(1, _.v, bounds=(0, 1e200))
    with pytest.raises(fp.BadQuery, match="too wide"):
        data.noisy_average(1, _.v, bounds=(-1.7e308, 1.7e308))
    assert data.remaining == before


def test_a_sum_beyond_floats_is_infinite() -> None:
    assert as_float(Fraction(10) ** 400) == math.inf
    assert as_float(Fraction(-10) ** 401) == -math.inf
    assert as_float(Fraction(1, 3)) == 1 / 3


# ── ranges ───────────────────────────────────────────────────────────────────────────


def test_ranges_of_integers_include_both_ends(people: fp.Table) -> None:
    for found in (
        people.noisy_histogram(SURE, _.age, bounds=AGES),
        people.noisy_ranges(SURE, _.age, bounds=AGES),
    ):
        assert isinstance(found, fp.BinAnswers)
        assert found.range(10, 30).value == 3
        assert found.range(11, 29).value == 1
        assert found.range(60).value == 1
        assert found.range(upper=10).value == 1
        assert found.range().value == 6
        assert type(found.range(10, 30).value) is int


def test_ranges_between_edges_end_before_the_upper(people: fp.Table) -> None:
    found = people.noisy_ranges(SURE, _.age, bins=[0, 20, 40, 60])
    assert (found.range(0, 20).value, found.range(20, 60).value, found.range(40).value) == (1, 5, 3)


def test_a_range_that_is_none_is_refused(people: fp.Table) -> None:
    found = people.noisy_ranges(SURE, _.age, bounds=(0, 9))
    for lower, upper in [(3, 2), (0, 10), (-1, 3), (0.5, 3), ("0", 3), (True, 3)]:
        with pytest.raises(fp.BadQuery):
            found.range(lower, upper)
    edges = people.noisy_ranges(SURE, _.age, bins=[0, 20, 40])
    with pytest.raises(fp.BadQuery, match="where bins do"):
        edges.range(10, 40)
    with pytest.raises(fp.BadQuery, match="empty"):
        edges.range(20, 20)


def test_a_wide_range_is_more_exact_from_ranges_than_from_a_histogram(engine: str) -> None:
    data = table(engine, list(range(1000)))
    ranges = data.noisy_ranges(1, _.v, bounds=(0, 999))
    histogram = data.noisy_histogram(1, _.v, bounds=(0, 999))
    wide = ranges.range(100, 899)
    assert wide.standard_error < histogram.range(100, 899).standard_error / 2  # type: ignore[operator]
    assert ranges.range(500, 500).standard_error > histogram.range(500, 500).standard_error  # type: ignore[operator]
    assert histogram.range(500, 500).interval(0.95) == histogram[500].interval(0.95)
    assert not histogram.range(500, 500).approximate
    assert wide.approximate
    assert abs(wide.value - 800) < 8 * wide.standard_error  # type: ignore[operator]


@given(
    st.lists(
        st.sampled_from([0.1, 0.2, 0.3, 1 / 3, 0.7, 2 / 3, 0.9, 1.1]) | st.floats(-1e6, 1e6), max_size=40
    )
)
@example([0.7, 0.8999999999999999, 0.8999999999999999, 0.30000000000000004])
def test_the_rounding_of_a_mean_left_a_step_down_in_a_cdf(numbers: list[float]) -> None:
    risen = rising(numbers)
    assert all(a <= b for a, b in pairwise(risen))
    assert rising(risen) == risen
    assert math.fsum(risen) == pytest.approx(math.fsum(numbers), abs=1e-6)


def test_a_cdf_over_many_points_rises_and_knows_its_error(engine: str) -> None:
    data = table(engine, [i % 500 for i in range(2000)])
    cdf = data.noisy_cdf(1, _.v, bounds=(0, 499))
    values = [answer.value for answer in cdf.values()]
    assert all(a <= b for a, b in pairwise(values))
    assert 0 <= values[0] <= values[-1] == 1
    middle = cdf[249]
    low, high = middle.interval(0.99999)  # type: ignore[misc]
    assert low <= 0.5 <= high
    counts = data.noisy_cdf(1, _.v, bounds=(0, 499), counts=True)[249]
    assert abs(counts.value - 1000) < 12 * counts.standard_error  # type: ignore[operator]
    flat = data.noisy_histogram(1, _.v, bounds=(0, 499)).range(0, 249)
    assert counts.standard_error < flat.standard_error  # type: ignore[operator]
