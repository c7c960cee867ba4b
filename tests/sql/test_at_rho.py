"""Statements at ρ: the same columns as at ε, at shares of ρ that add up, and nothing charged by a mistake."""

from fractions import Fraction
from typing import Any

import pytest

import fpinq as fp

ROWS = [{"a": i % 10, "b": float(i % 7), "k": i % 2} for i in range(1_000)]
SCHEMA = {"a": "int64", "b": "float64", "k": "int64"}
COLUMNS = {
    "a": fp.Column(bounds=(0, 9)),
    "b": fp.Column(bounds=(0, 6)),
    "k": fp.Column(keys=[0, 1], bounds=(0, 1)),
}
AGGREGATES = {
    "COUNT(*)": 500,
    "COUNT(DISTINCT a)": 5,
    "SUM(a)": {0: 2000, 1: 2500},
    "AVG(a)": {0: 4, 1: 5},
    "VAR_POP(a)": 8,
    "STDDEV(a)": 8**0.5,
    "MEDIAN(a)": {0: 4, 1: 5},
    "QUANTILE_DISC(a, 0.9)": {0: 8, 1: 9},
    "MIN(a)": {0: 0, 1: 1},
    "MAX(a)": {0: 8, 1: 9},
    "MODE(k)": {0: 0, 1: 1},
    "COVAR_POP(a, a)": 8,
    "CORR(a, a + b)": None,
    "REGR_SLOPE(a, b)": None,
    "REGR_INTERCEPT(a, b)": None,
}


PLENTY = fp.rho(10**6)


def protected(budget: Any = PLENTY) -> fp.Table:
    return fp.protect(ROWS, budget=budget, schema=SCHEMA, columns=COLUMNS, name="t")


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_every_aggregate_is_asked_at_rho_and_costs_it(aggregate: str) -> None:
    table = protected()
    found = fp.sql(f"SELECT k, {aggregate} AS it FROM t GROUP BY k", epsilon=fp.rho(1000), t=table)
    assert found.charged == 1000
    assert table.remaining == 10**6 - 1000
    wanted = AGGREGATES[aggregate]
    for key in (0, 1):
        assert found[key]["it"].epsilon == fp.rho(1000)
        if wanted is not None:
            exact = wanted[key] if isinstance(wanted, dict) else wanted
            assert found[key]["it"].value == pytest.approx(exact, abs=0.2 if aggregate[:2] != "MI" else 1)


def test_aggregates_share_rho_by_weight_and_each_says_its_own() -> None:
    table = protected()
    text = "SELECT /*+ weight(n, 3) */ COUNT(*) AS n, MAX(a) AS most, CORR(a, b) AS r FROM t"
    found = fp.sql(text, epsilon=fp.rho(5), t=table)
    assert [found[name].epsilon for name in ("n", "most", "r")] == [fp.rho(3), fp.rho(1), fp.rho(1)]
    assert found.charged == 5 == 10**6 - table.remaining  # type: ignore[operator]


def test_what_is_joined_at_rho_costs_its_factor_squared() -> None:
    table = protected()
    text = "SELECT COUNT(*) AS n FROM (SELECT a FROM t UNION ALL SELECT a FROM t) AS u"
    assert fp.sql(text, epsilon=fp.rho("1/4"), t=table).charged == 1
    assert table.remaining == 10**6 - 1


def test_explain_at_rho_is_free_and_speaks_of_rho() -> None:
    table = protected(fp.rho(1))
    told = str(fp.sql("EXPLAIN SELECT MIN(a) AS low, CORR(a, b) AS r FROM t", epsilon=fp.rho("1/4"), t=table))
    assert "ρ = 0.25 costs 0.25" in told
    assert table.remaining == 1


@pytest.mark.parametrize(
    "statement", ["SELECT COUNT(*) AS n FROM t", "SELECT MIN(a) AS l, MAX(a) AS h FROM t"]
)
def test_a_mistake_at_rho_charges_nothing(statement: str) -> None:
    pure, table = protected(1), protected(fp.rho("1/100"))
    with pytest.raises(fp.NotConcentrated):
        fp.sql(statement, epsilon=fp.rho("1/1000"), t=pure)
    with pytest.raises(fp.BudgetExceeded):
        fp.sql(statement, epsilon=fp.rho("2/100"), t=table)
    for wrong in (0, "x", fp.approximate(1, "1e-9"), "rho 0"):
        with pytest.raises(fp.BadEpsilon):
            fp.sql(statement, epsilon=wrong, t=table)
    assert (pure.remaining, table.remaining) == (1, Fraction(1, 100))


def test_roots_of_two_notions_in_one_statement_pay_each_in_its_own() -> None:
    concentrated = protected(fp.rho(10))
    pure = fp.protect(ROWS, budget=10, schema=SCHEMA, columns=COLUMNS, name="p")
    text = "SELECT COUNT(*) AS n FROM (SELECT a FROM t UNION ALL SELECT a FROM p) AS u"
    with pytest.raises(fp.NotConcentrated):
        fp.sql(text, epsilon=fp.rho(1), t=concentrated, p=pure)
    found = fp.sql(text, epsilon=1, t=concentrated, p=pure)
    assert sorted(found.charged.values()) == sorted([Fraction(1), concentrated.price(1)])
    assert pure.remaining == 9
    assert concentrated.remaining == 10 - concentrated.price(1)  # type: ignore[operator]
