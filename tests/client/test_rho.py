"""Queries at ρ, as a program asks them: their noise, their intervals, their prices and what is refused."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import fpinq as fp
from fpinq.client.concentrated import best_tree_at_rho
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
    "choice": lambda t, at: t.exponential_mechanism(at, [1, 2], lambda x, k: x.a >= k),
}


@pytest.mark.parametrize("name", [name for name in CHOSEN if name != "choice"])
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
        lambda: fp.approximate(1, "2e-9", keys_delta="1e-9"),
        lambda: fp.approximate(fp.rho(1), "1e-9"),
        lambda: fp.approximate(fp.approximate(1, "1e-9"), "1e-9"),
    ],
)
def test_an_epsilon_and_delta_that_are_none_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(fp.BadEpsilon):
        wrong()


UNASKED: dict[str, Callable[[fp.Table, object], object]] = {
    "several": lambda t, at: t.query(at, fp.several(n=fp.count(), top=fp.top(1, "c", ["x"]))),
    "proportion": lambda t, at: t.noisy_proportion(at, lambda x: x.a > 3),
    "top": lambda t, at: t.noisy_top(at, 1, "c", ["x", "y"]),
    "top by score": lambda t, at: t.noisy_top(at, 1, lambda x, k: x.a == k, [1, 2], bounds=(0, 1)),
    "minimum": lambda t, at: t.noisy_min(at, "a", bounds=(0, 9)),
    "covariance": lambda t, at: t.noisy_covariance(at, "a", "f", bounds={"a": (0, 9), "f": (0, 3)}),
    "bounds": lambda t, at: t.noisy_bounds(at, "a"),
    "an interval": lambda t, at: t.noisy_median(at, "a", bounds=(0, 9), interval=0.9),
    "by parts": lambda t, at: t.query(at, fp.proportion(lambda x: x.a > 3), by="c", keys=["x"]),
}


@pytest.mark.parametrize("name", UNASKED)
def test_what_has_no_mechanism_at_rho_says_so_and_costs_nothing(name: str, table: fp.Table) -> None:
    before = table.remaining
    with pytest.raises(fp.BadQuery, match="at an ε"):
        UNASKED[name](table, R)
    assert table.remaining == before


def test_a_pure_root_is_not_asked_at_rho_and_keeps_its_budget() -> None:
    table = protected(1)
    for ask in (*(ask for ask, _ in EXACT.values()), lambda t: t.price(R)):
        with pytest.raises(fp.NotConcentrated):
            ask(table)
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
