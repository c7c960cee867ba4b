"""Queries at ρ, as a program asks them: their noise, their intervals, their prices and what is refused."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from statistics import correlation, covariance, pvariance
from typing import Any

import pytest

import fpinq as fp
from fpinq.client.concentrated import best_tree_at_rho, prepares_at_rho
from fpinq.client.histograms import BinAnswers
from fpinq.client.trees import best_tree, mean_variance
from fpinq.client.uncertainty import NormalWithin, RangeNoise
from fpinq.model.conversion import epsilon_of_range

ROWS = [{"a": i % 10, "f": (i % 7) / 2, "c": "xyz"[i % 3]} for i in range(1_000)]
SCHEMA = {"a": "int64", "f": "float64", "c": "string"}
R = fp.rho("1/200")  # σ = 10 of a count


def protected(budget: object = fp.rho(1000)) -> fp.Table:
    return fp.protect(ROWS, budget=budget, schema=SCHEMA)


@pytest.fixture
def table() -> fp.Table:
    return protected()


A, F = [i % 10 for i in range(1_000)], [(i % 7) / 2 for i in range(1_000)]
BOTH = [a + f for a, f in zip(A, F, strict=True)]
VARIANCE, COVARIANCE = pvariance(A), covariance(A, F) * 999 / 1_000
CORRELATION = correlation(A, BOTH)


def regression(t: fp.Table, at: object) -> Any:
    return t.noisy_regression(at, lambda x: x.a + x.f, "a", bounds={"a": (0, 9), "a + f": (0, 12)})


EXACT: dict[str, tuple[Callable[[fp.Table], Any], float]] = {
    "count": (lambda t: t.noisy_count(R), 1000),
    "distinct count": (lambda t: t.noisy_distinct_count(R, "a"), 10),
    "sum": (lambda t: t.noisy_sum(R, "a", bounds=(0, 9)), 4500),
    "sum of floats": (lambda t: t.noisy_sum(R, "f", bounds=(0, 3)), sum((i % 7) / 2 for i in range(1000))),
    "average": (lambda t: t.noisy_average(R, "a", bounds=(0, 9)), 4.5),
    "variance": (lambda t: t.noisy_variance(R, "a", bounds=(0, 9)), 8.25),
    "deviation": (lambda t: t.noisy_standard_deviation(R, "a", bounds=(0, 9)), math.sqrt(8.25)),
    "a bin": (lambda t: t.noisy_histogram(R, "a", bounds=(0, 9))[3], 100),
    "bins": (lambda t: t.noisy_histogram(R, "a", bounds=(0, 9)).range(2, 5), 400),  # type: ignore[attr-defined]
    "a range": (lambda t: t.noisy_ranges(R, "a", bounds=(0, 9)).range(2, 5), 400),
    "a point": (lambda t: t.noisy_cdf(R, "a", bounds=(0, 9))[4], 0.5),
    "points": (lambda t: t.noisy_cdf(R, "a", bounds=(0, 9), counts=True)[4], 500),
    "a part": (lambda t: t.query(R, fp.count(), by="c", keys=["x", "y"])["x"], 334),
    "a part of a histogram": (lambda t: t.noisy_histogram(R, "c", keys=["x", "y"])["y"], 333),
    "proportion": (lambda t: t.noisy_proportion(R, lambda x: x.a > 2), 0.7),
    "a small proportion": (lambda t: t.noisy_proportion(R, lambda x: (x.a > 8) & (x.c == "x")), 0.033),
    "a part's proportion": (
        lambda t: t.query(R, fp.proportion(lambda x: x.f > 1), by="c", keys=["x"])["x"],
        sum((i % 7) / 2 > 1 for i in range(0, 1_000, 3)) / 334,
    ),
    "the top's count": (lambda t: t.noisy_top(R, 1, "a", candidates=[3]).counts[3], 100),
    "covariance": (lambda t: t.noisy_covariance(R, "a", "f", bounds=((0, 9), (0, 3))), COVARIANCE),
    "correlation": (
        lambda t: t.noisy_correlation(R, "a", lambda x: x.a + x.f, bounds=((0, 9), (0, 12))),
        CORRELATION,
    ),
    "slope": (lambda t: regression(t, R).coefficients["a"], 1 + COVARIANCE / VARIANCE),
}


@pytest.mark.parametrize("name", EXACT)
def test_intervals_cover_as_often_as_they_say_and_errors_are_as_large(name: str, table: fp.Table) -> None:
    ask, exact = EXACT[name]
    answers = [ask(table) for _ in range(200)]
    covered = sum(low <= exact <= high for low, high in (answer.interval(0.9) for answer in answers))
    assert 155 <= covered <= 199
    said = sum(answer.standard_error for answer in answers) / 200
    found = math.sqrt(sum((answer.value - exact) ** 2 for answer in answers) / 200)
    assert 0.75 * said < found < 1.3 * said
    assert answers[0].epsilon == R
    assert answers[0].charged == R.amount


def test_counts_have_exact_intervals_and_say_so(table: fp.Table) -> None:
    answer = table.noisy_count(R)
    assert not answer.approximate
    low, high = answer.interval(0.95)  # type: ignore[misc]
    assert (high - low) // 2 == 20  # P[|N| ≤ 19] is less than 0.95 at σ = 10
    assert repr(answer).endswith("ρ = 0.005>")
    assert answer.to_dict()["rho"] == Fraction(1, 200)
    assert '"rho": "1/200"' in str(answer.to_json())
    assert "ρ" in answer._repr_html_()
    assert table.noisy_average(R, "a", bounds=(0, 9)).approximate


CHOSEN: dict[str, Callable[[fp.Table, object], Any]] = {
    "median": lambda t, at: t.noisy_median(at, "a", bounds=(0, 9)),
    "order statistic": lambda t, at: t.noisy_order_statistic(at, 0.5, "a", bounds=(0, 9)),
    "mode": lambda t, at: t.noisy_mode(at, "c", candidates=["x", "y", "z"]),
    "median with an interval": lambda t, at: t.noisy_median(at, "a", bounds=(0, 9), interval=0.9),
    "choice": lambda t, at: t.exponential_mechanism(at, [1, 2], lambda x, k: x.a >= k),
    "minimum": lambda t, at: t.noisy_min(at, "a", bounds=(0, 9)),
    "maximum": lambda t, at: t.noisy_max(at, "a", bounds=(0, 9)),
    "top": lambda t, at: t.noisy_top(at, 2, "c", ["x", "y", "z"]),
    "top by score": lambda t, at: t.noisy_top(at, 2, lambda x, k: x.a >= k, [1, 5, 9]),
    "bounds": lambda t, at: t.noisy_bounds(at, "a"),
}


@pytest.mark.parametrize("name", ["median", "median with an interval", "order statistic", "mode"])
def test_a_choice_at_rho_is_of_what_there_is_to_choose(name: str, table: fp.Table) -> None:
    answer = CHOSEN[name](table, fp.rho(2))
    assert answer.epsilon == fp.rho(2)
    assert answer.value in ("x", "y", "z") or 3 <= answer.value <= 6


def test_quantiles_share_rho_and_say_how_many_ranks_they_are_off(table: fp.Table) -> None:
    both = table.noisy_quantile(R, [0.25, 0.75], "a", bounds=(0, 9))
    assert both.epsilon == R
    assert {answer.epsilon for answer in both.values()} == {fp.rho("1/400")}
    own = epsilon_of_range(Fraction(1, 400))
    ranks = (math.log(10) + math.log(20)) / float(own / 3)
    assert both[0.25].ranks() == math.ceil(ranks)


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_chosen_at_rho_is_charged_rho_times_the_factor_squared(name: str, table: fp.Table) -> None:
    before = table.remaining
    assert CHOSEN[name](table, R).charged == R.amount == before - table.remaining  # type: ignore[operator]
    twice = table.concat(table)
    assert CHOSEN[name](twice, R).charged == 4 * R.amount


def test_outer_quantiles_at_rho_are_as_deep_as_their_own_epsilon_needs(table: fp.Table) -> None:
    at = fp.rho("1/8")  # chosen at ε = 1
    own, pure = (table.expected_error(fp.minimum("a", bounds=(0, 9)), each) for each in (at, 1))
    assert own.note == pure.note
    assert own.half_width() == pure.half_width()
    lows = [table.noisy_min(fp.rho(2), "a", bounds=(0, 9)) for _ in range(40)]
    assert {answer.value for answer in lows} <= {0, 1}
    assert lows[0].interval() == (0, lows[0].value)
    assert table.noisy_max(fp.rho(2), "a", bounds=(0, 9)).interval()[1] == 9  # type: ignore[index]


def test_the_top_at_rho_is_counted_or_chosen_one_after_the_other(table: fp.Table) -> None:
    top = table.noisy_top(fp.rho(100), 2, lambda x: x.a % 4, [0, 1, 3])
    assert sorted(top.value) == [0, 1]  # 300, 300, 200
    assert {each.interval() for each in top.counts.values()} == {(300, 300)}
    by_score = table.noisy_top(fp.rho(100), 2, lambda x, k: x.a >= k, [1, 5, 9])
    assert by_score.value == [1, 5]
    assert by_score.note == "chosen one after the other, each at ρ/2"
    assert by_score.epsilon == fp.rho(100)
    by_key = table.query(fp.rho(100), fp.top(1, "a", [1, 2]), by="c", keys=["x", "z"])
    assert by_key["x"].value in ([1], [2])
    lost = table.expected_error(fp.top(2, "a", list(range(10))), R)
    assert lost.half_width() == 2 * next(t for t in range(99) if erfc(t + 0.5) <= 0.005)
    assert lost.standard_error is None
    assert table.expected_error(fp.top(1, "a", [1]), R).half_width() == 0


def erfc(t: float) -> float:
    """P[|N| > t] of the noise of a count at R, to three digits."""
    return math.erfc(t / 10 / math.sqrt(2))


def test_bounds_at_rho_are_those_of_the_records(table: fp.Table) -> None:
    assert table.noisy_bounds(fp.rho(2), "a").value == (0, 16)
    assert table.noisy_bounds(fp.rho(2), lambda x: -x.f).value == (-4, 0)
    assert "about 34 records may go unnoticed" in table.expected_error(fp.bounds("a"), R).note


def test_an_interval_at_rho_says_what_it_and_its_value_were_asked_at(table: fp.Table) -> None:
    answer = table.noisy_median(fp.rho(3), "a", bounds=(0, 9), interval=0.9)
    assert answer.epsilon == fp.rho(3)
    assert answer.split == (("the value", 1), ("its interval", 2))
    low, high = answer.interval()  # type: ignore[misc]
    assert low <= 4 <= 5 <= high
    several = table.noisy_quantile(fp.rho(3), [0.25, 0.5], "a", bounds=(0, 9), interval=0.9)
    assert [each.epsilon for each in several.values()] == [fp.rho("3/2")] * 2
    assert several.epsilon == fp.rho(3)


def test_a_regression_that_noise_hides_asks_for_a_larger_rho(table: fp.Table) -> None:
    found = table.noisy_regression(fp.rho("1/1000000"), "f", ["a"], bounds={"a": (0, 9), "f": (0, 3)})
    assert found.intercept.note == "noise hides how much it varies: use a larger ρ"
    assert found.epsilon == fp.rho("1/1000000")


def test_a_regression_on_many_columns_at_rho_finds_the_slopes() -> None:
    rows = [{f"x{j}": (i >> j) % 2 for j in range(5)} | {"y": bin(i % 32).count("1")} for i in range(3_200)]
    table = fp.protect(rows, budget=fp.rho(1000), schema=dict.fromkeys(rows[0], "int64"))
    names = [f"x{j}" for j in range(5)]
    bounds = {"y": (0, 5), **dict.fromkeys(names, (0, 1))}
    found = table.noisy_regression(fp.rho(100), "y", names, bounds=bounds)
    assert [each.value for each in found.coefficients.values()] == pytest.approx([1] * 5, abs=0.05)
    assert found.intercept.value == pytest.approx(0, abs=0.1)
    thirds = [(float(i % 8), float(i % 3), float(i % 5)) for i in range(3_600)]
    squares = [{"x": x, "y": y, "z": z, "s": x + y + z} for x, y, z in thirds]
    wide = fp.protect(squares, budget=fp.rho(1000), schema=dict.fromkeys("xyzs", "float64"))
    found = wide.noisy_regression(
        fp.rho(100), "s", ["x", "y", "z"], bounds={"x": (0, 8), "y": (0, 4), "z": (0, 5), "s": (0, 16)}
    )
    assert [each.value for each in found.coefficients.values()] == pytest.approx([1] * 3, abs=0.1)


# ── planned, and compared ────────────────────────────────────────────────────────────


EVERY: dict[str, Any] = {
    "count": fp.count(),
    "distinct count": fp.distinct_count("a"),
    "sum": fp.sum("a", bounds=(0, 9)),
    "average": fp.average("a", bounds=(0, 9)),
    "variance": fp.variance("a", bounds=(0, 9)),
    "deviation": fp.standard_deviation("a", bounds=(0, 9)),
    "median": fp.median("a", bounds=(0, 9)),
    "median with an interval": fp.median("a", bounds=(0, 9), interval=0.9),
    "quantile": fp.quantile(0.9, "a", bounds=(0, 9)),
    "quantiles": fp.quantiles([0.1, 0.9], "a", bounds=(0, 9)),
    "choice": fp.exponential_mechanism([1, 2], lambda x, k: x.a >= k),
    "mode": fp.mode("c", ["x", "y"]),
    "top": fp.top(1, "c", ["x", "y"]),
    "proportion": fp.proportion(lambda x: x.a > 3),
    "minimum": fp.minimum("a", bounds=(0, 9)),
    "maximum": fp.maximum("a", bounds=(0, 9)),
    "covariance": fp.covariance("a", "f", bounds=((0, 9), (0, 3))),
    "correlation": fp.correlation("a", "f", bounds=((0, 9), (0, 3))),
    "regression": fp.regression("a", ["f"], bounds={"a": (0, 9), "f": (0, 3)}),
    "histogram": fp.histogram("a", bounds=(0, 9)),
    "ranges": fp.ranges("a", bounds=(0, 9)),
    "cdf": fp.cdf("a", bounds=(0, 9)),
    "marginal": fp.marginal("c", keys=[["x", "y"]]),
    "workload": fp.workload([fp.count(), fp.sum("a", bounds=(0, 9))]),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_query_is_planned_at_rho_and_compared(name: str, table: fp.Table) -> None:
    query, before = EVERY[name], table.remaining
    error = table.expected_error(query, R, size=1_000)
    wanted = error.half_width(0.9)
    planned = table.rho_for(query, error=wanted, confidence=0.9, size=1_000)
    assert planned.amount <= R.amount * Fraction(1001, 1000)
    less = fp.rho(planned.amount * Fraction(9, 10))
    assert table.expected_error(query, planned, size=1_000).half_width(0.9) <= wanted  # type: ignore[operator]
    assert table.expected_error(query, less, size=1_000).half_width(0.9) >= wanted * 0.99  # type: ignore[operator]
    once, often = (fp.compare(query, table=table, size=10**6, times=times) for times in (1, 10_000))
    assert once.better == "ε"
    assert often.better == "ρ"
    assert "ρ is better" in repr(often)
    assert table.remaining == before


def test_the_errors_of_several_at_rho_are_by_name_and_so_is_what_is_better(table: fp.Table) -> None:
    asked = fp.several(n=fp.count(), middle=fp.median("a", bounds=(0, 9)), weights={"n": 3})
    errors = table.expected_error(asked, fp.rho("4/600"))
    assert errors["n"].half_width() == 20
    assert errors["middle"].epsilon == fp.rho("1/600")
    assert str(errors.split) == "ρ = 1/150 (about 0.006667): 0.005 for n, 0.001666… for middle"
    assert table.rho_for(asked, error={"n": 10}) == fp.rho("0.006667")
    with pytest.raises(fp.BadQuery, match="by name"):
        table.rho_for(asked, error=10)
    each = fp.compare(asked, table=table, times=1_000)
    assert {name: one.better for name, one in each.items()} == {"n": "ρ", "middle": "ρ"}
    assert len(each) == 2
    assert repr(each).startswith("n: ")
    mixed = fp.compare(fp.workload([fp.count(), fp.median("a", bounds=(0, 9))]), table=table)
    assert {number: one.better for number, one in mixed.items()} == {0: "ε", 1: "ε"}


def test_what_depends_on_columns_is_compared_for_a_table() -> None:
    for query in (fp.top(1, "c", ["x"]), fp.several(n=fp.count()), fp.workload([fp.count()])):
        with pytest.raises(fp.BadQuery, match="table="):
            fp.compare(query)
    with pytest.raises(fp.BadEpsilon):
        fp.compare(fp.count(), epsilon="1e-17", delta="1e-300")
    with pytest.raises(fp.BadQuery, match="unnoticed"):
        _ = fp.compare(fp.bounds("a"), table=protected()).ratio


@pytest.mark.parametrize(
    "name", [name for name in EVERY if name not in ("distinct count", "workload", "marginal")]
)
def test_every_query_is_asked_at_rho_alone_in_several_in_a_workload_and_of_parts(
    name: str, table: fp.Table
) -> None:
    query, before = EVERY[name], table.remaining
    assert table.query(R, query).charged == R.amount
    both = table.query(R, fp.several(n=fp.count(), it=query, weights={"it": 4}))
    assert both.split.of("it") == fp.rho("1/250")
    many = table.query(R, fp.workload([fp.count(), query]))
    assert many[1].epsilon == fp.rho("1/400")
    parts = table.query(R, query, by="c", keys=["x", "y"])
    assert {each.epsilon for each in parts.values()} == {R}
    assert before - table.remaining == 4 * R.amount  # type: ignore[operator]


def test_prices_are_in_rho_and_an_epsilon_costs_about_half_its_square(
    table: fp.Table,
) -> None:
    assert table.price(R) == Fraction(1, 200)
    assert 0.0049 < table.price(0.1) < 0.00501  # type: ignore[operator]
    twice = table.concat(table)
    assert twice.price(R) == Fraction(4, 200)
    before = table.remaining
    table.noisy_count(0.1)
    assert before - table.remaining == table.price(0.1)  # type: ignore[operator]


def test_errors_are_known_before_paying_and_planned_for(table: fp.Table) -> None:
    assert table.expected_error(fp.count(), R).half_width() == 20
    assert repr(table.expected_error(fp.count(), R)) == "<± 20, ρ = 0.005>"
    assert fp.rho_for(fp.count(), error=10) == fp.rho("1/200")
    assert table.rho_for(fp.sum("a", bounds=(0, 9)), error=90) == fp.rho("1/200")
    of_average = table.expected_error(fp.average("a", bounds=(0, 9)), R)
    assert of_average.half_width() is None
    assert "divided by the number of records" in of_average.note
    planned = fp.rho_for(fp.variance("a", bounds=(0, 9)), error=0.5, size=1000)
    assert table.expected_error(fp.variance("a", bounds=(0, 9)), planned, size=1000).standard_error <= 0.5  # type: ignore[operator]
    for query in (fp.ranges("a", bounds=(0, 9)), fp.cdf("a", bounds=(0, 9), counts=True)):
        assert table.expected_error(query, R).standard_error is not None
    assert "divided by" in table.expected_error(fp.cdf("a", bounds=(0, 9)), R).note
    assert table.expected_error(fp.cdf("a", bounds=(0, 9)), R, size=10).standard_error is not None
    assert table.expected_error(fp.standard_deviation("a", bounds=(0, 9)), R, size=10).standard_error
    for wrong in ("count", fp.exponential_mechanism([1], lambda x, k: x.a)):
        with pytest.raises(fp.BadQuery):
            fp.rho_for(wrong, error=1)  # type: ignore[arg-type]


def test_trees_at_rho_have_more_levels_than_at_epsilon() -> None:
    """A level more costs a root of noise, not a whole."""
    at_epsilon, at_rho = best_tree(1000, Fraction(1)), best_tree_at_rho(1000)
    assert at_rho.height > at_epsilon.height

    def error(height: int) -> float:
        return min(
            tree.height * mean_variance(tree) for tree in [at_epsilon, at_rho] if tree.height == height
        )

    assert error(at_rho.height) < error(at_epsilon.height)


def test_a_range_of_one_draw_is_exact_and_others_are_within_their_bounds(table: fp.Table) -> None:
    bins = table.noisy_histogram(R, "a", bounds=(0, 9))
    assert isinstance(bins, BinAnswers)
    assert not bins.range(3, 3).approximate
    assert bins.range(3, 3).interval(0.95) == bins[3].interval(0.95)
    assert bins.range(2, 3).approximate
    assert NormalWithin(5.0, 0.0, 2.0).standard_error() == 1.0
    assert isinstance(table.noisy_ranges(R, "a", bounds=(0, 9))[3]._uncertainty, RangeNoise)


# ── refused ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "wrong", [0, -1, "x", "nan", float("inf"), None, True, [1], 1 + 0j, Decimal("1e-40"), "1/0", 10**30]
)
def test_a_rho_is_refused_wherever_an_epsilon_would_be(wrong: object) -> None:
    with pytest.raises(fp.BadEpsilon):
        fp.rho(wrong)


@pytest.mark.parametrize("exact", [1, 0.1, "0.1", "1/3", Decimal("0.1"), Fraction(1, 3), fp.rho("1/3")])
def test_a_rho_is_as_exact_as_an_epsilon(exact: Any) -> None:
    assert fp.rho(exact) == fp.rho(fp.rho(exact))
    assert fp.rho(fp.rho(exact).amount) == fp.rho(exact)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: fp.approximate(1, 0),
        lambda: fp.approximate(1, 1),
        lambda: fp.approximate(1, -1),
        lambda: fp.approximate(0, "1e-9"),
        lambda: fp.approximate(1, "1e-9", "2e-9"),
        lambda: fp.approximate(fp.rho(1), "1e-9"),
        lambda: fp.approximate(fp.approximate(1, "1e-9"), "1e-9"),
    ],
)
def test_an_epsilon_and_delta_that_are_none_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(fp.BadEpsilon):
        wrong()


def test_a_query_that_nobody_thought_about_at_rho_says_so_and_costs_nothing(
    table: fp.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(prepares_at_rho, type(fp.count()))
    before = table.remaining
    for query in (fp.count(), fp.several(n=fp.count(), mean=fp.average("a", bounds=(0, 9)))):
        with pytest.raises(fp.BadQuery, match="at an ε"):
            table.query(R, query)
    assert table.remaining == before


def test_a_pure_root_is_not_asked_at_rho_and_keeps_its_budget() -> None:
    table = protected(1)
    for ask in (*(ask for ask, _ in EXACT.values()), lambda t: t.price(R)):
        with pytest.raises(fp.NotConcentrated):
            ask(table)
    for chosen in CHOSEN.values():
        with pytest.raises(fp.NotConcentrated):
            chosen(table, R)
    assert table.remaining == 1


@pytest.mark.parametrize("at", [fp.rho("1/100"), 0.5])
def test_a_query_that_costs_too_much_says_what_would_fit_and_it_does(at: object) -> None:
    table = protected(fp.approximate(1, "1e-9"))
    table.noisy_count(fp.rho("1/100"))
    with pytest.raises(fp.BudgetExceeded, match="would fit") as refused:
        table.noisy_count(at)
    said, _, text = str(refused.value).rpartition(" ≤ ")
    fitting = Fraction(text.split()[0])
    table.noisy_count(fp.rho(fitting) if said.endswith("ρ") else fitting)
    assert table.remaining < Fraction(1, 1000)


def test_a_budget_is_of_one_notion_in_a_ledger_too(tmp_path: Any) -> None:
    ledger, stated = tmp_path / "people.ledger", fp.approximate(1, "1e-9")
    table = fp.protect(ROWS, budget=stated, schema=SCHEMA, name="people", ledger=ledger)
    table.noisy_count(R)
    with pytest.raises(fp.RegisteredDifferently, match="ρ = "):
        fp.protect(ROWS, budget=1, schema=SCHEMA, name="people", ledger=ledger)
    again = fp.protect(ROWS, budget=stated, schema=SCHEMA, name="people", ledger=ledger)
    assert again.remaining == stated.amount.amount - R.amount  # type: ignore[union-attr]


def test_a_table_says_in_which_notion_its_budget_is() -> None:
    shown = str(protected(fp.rho("1/50")).concat(protected(fp.rho("1/50"))))
    assert "ρ = 0.02 of data" in shown
    assert "ρ = 1 costs     ρ = 1 + ρ = 1" in shown
    twice = protected(fp.rho("1/50"))
    assert "ρ = 1 costs     ρ = 4" in str(twice.concat(twice))
    assert "ρ" not in str(protected(1))
    assert "ρ" not in str(protected(1).concat(protected(fp.rho(1))))


def test_what_an_epsilon_left_of_a_sub_budget_in_rho_could_not_be_split() -> None:
    table = fp.protect([{"a": 1}], budget=fp.rho(1), schema={"a": "int64"})
    whole = fp.Budget("1/2")
    table.with_budget(whole).noisy_count(0.3)
    left = whole.remaining
    assert left == Fraction(1, 2) - table.price(0.3)
    halves = whole.split(2)
    assert [half.amount for half in halves] == [left / 2] * 2
    assert whole.remaining == 0
    with pytest.raises(fp.BudgetExceeded):
        table.with_budget(halves[0]).noisy_count(fp.rho("1/4"))
    table.with_budget(halves[0]).noisy_count(fp.rho("1/5"))


# ── bad input: typed errors, and nothing is charged ──────────────────────────────────


NOT_RHOS = [
    0,
    -1,
    "x",
    "",
    "nan",
    "inf",
    None,
    True,
    [1],
    {},
    1 + 0j,
    Decimal("1e-40"),
    "1/0",
    10**30,
    b"1",
    object,
]


@pytest.mark.parametrize("wrong", NOT_RHOS, ids=repr)
@pytest.mark.parametrize("name", ["count", "top", "regression"])
def test_a_rho_that_the_kernel_would_not_take_is_refused_wherever_it_comes_from(
    name: str, wrong: Any, table: fp.Table
) -> None:
    """Made by fp.rho, or put together by hand, which nothing forbids."""
    before = table.remaining
    for make in (lambda: fp.rho(wrong), lambda: type(R)(wrong)):
        for use in (
            lambda at: table.query(at, EVERY[name]),
            lambda at: table.price(at),
            lambda at: table.expected_error(EVERY[name], at),
            lambda at: fp.protect(ROWS, budget=at, schema=SCHEMA).noisy_count(R),
        ):
            with pytest.raises((fp.BadEpsilon, fp.BudgetExceeded)):
                use(make())
    assert table.remaining == before


@pytest.mark.parametrize("wrong", [0, 1, -1, 2, "x", None, True, "nan", float("inf"), [1], Decimal("-1e-9")])
def test_a_delta_outside_of_0_to_1_is_refused(wrong: Any) -> None:
    with pytest.raises(fp.BadEpsilon):
        fp.approximate(epsilon=1, delta=wrong)
    with pytest.raises(fp.BadEpsilon):
        fp.compare(fp.count(), delta=wrong)


def test_a_budget_is_converted_once(table: fp.Table) -> None:
    stated, before = fp.approximate(1, "1e-9"), table.remaining
    for twice in (
        lambda: fp.approximate(stated, "1e-9"),
        lambda: fp.approximate(stated.amount, "1e-9"),
        lambda: fp.rho(stated),
        lambda: table.noisy_count(stated),
        lambda: table.price(stated),
        lambda: fp.protect(ROWS, budget=replace(stated, amount=fp.rho(1)), schema=SCHEMA),
        lambda: fp.protect(ROWS, budget=replace(stated, epsilon=Fraction(1, 2)), schema=SCHEMA),
    ):
        with pytest.raises(fp.BadEpsilon):
            twice()
    assert table.remaining == before


@pytest.mark.parametrize("mixed", [(1, fp.rho(1)), (fp.rho(1), 1), (fp.rho(1), fp.approximate(1, "1e-9"))])
def test_a_root_has_one_notion(mixed: tuple[Any, Any], tmp_path: Any) -> None:
    """Neither a list of budgets, nor the same data again with another."""
    with pytest.raises(fp.BadEpsilon):
        fp.protect(ROWS, budget=mixed, schema=SCHEMA)
    ledger = tmp_path / "one.ledger"
    first = fp.protect(ROWS, budget=mixed[0], schema=SCHEMA, name="one", ledger=ledger)
    with pytest.raises(fp.RegisteredDifferently):
        fp.protect(ROWS, budget=mixed[1], schema=SCHEMA, name="one", ledger=ledger)
    assert first.remaining == 1


@pytest.mark.parametrize("name", EVERY)
def test_no_query_at_rho_is_asked_of_a_pure_root(name: str) -> None:
    pure = protected(1)
    both = pure.concat(protected(fp.rho(1)))
    for table in (pure, both):
        with pytest.raises(fp.NotConcentrated):
            table.query(R, EVERY[name])
    assert pure.remaining == 1
    assert set(both.remaining.values()) == {1}  # type: ignore[union-attr]
