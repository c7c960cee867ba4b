"""GROUP BY of keys that nobody listed: at a δ beside the ε, through every door."""

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.ledger import open_store
from fpinq.ledger.verify import verify
from fpinq.server import DataSet, TableConfig
from server.live import Live, Reply, serve

ROWS = [{"city": "Oslo" if i % 3 else "Łódź", "sex": i % 2, "age": 20 + i % 50} for i in range(900)]
ROWS += [{"city": f"village {i}", "sex": 0, "age": 30} for i in range(20)]
SCHEMA = {"city": "string", "sex": "int64", "age": "int64"}
KEYS = Fraction(1, 10**6)
DELTA = "1e-9"
BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
AVERAGES = (
    "SELECT city, sex, AVG(age) AS a FROM people GROUP BY city, sex HAVING AVG(age) > 1 ORDER BY city, sex"
)


def people(**how: Any) -> Any:
    columns = {"age": fp.Column(bounds=(0, 110)), "sex": fp.Column(keys=[0, 1])}
    budget = fp.approximate(10, KEYS, KEYS)
    return fp.protect(ROWS, budget=budget, schema=SCHEMA, columns=columns, name="people", **how)


def test_keys_are_found_and_their_counts_are_what_found_them() -> None:
    table = people()
    result = table.sql(BY_CITY, epsilon=1, delta=DELTA)
    assert list(result) == ["Oslo", "Łódź"]
    assert abs(result["Oslo"]["n"].value - 600) < 60
    assert (result.charged, result.charged_delta) == (1, Fraction(DELTA))
    assert (table.remaining, table.remaining_delta) == (9, KEYS - Fraction(DELTA))


def test_other_aggregates_are_asked_of_the_keys_that_counts_found() -> None:
    table = people()
    result = table.sql(AVERAGES, epsilon=4, delta=DELTA)
    assert list(result) == [("Oslo", 0), ("Oslo", 1), ("Łódź", 0), ("Łódź", 1)]
    assert all(abs(line["a"].value - 44) < 15 for line in result.values())
    assert (result.charged, table.remaining) == (4, 6)
    assert "2 for keys, 2 for a" in str(result)


def test_an_explanation_says_the_threshold_and_the_delta_and_costs_nothing() -> None:
    table = people()
    explained = table.sql(f"EXPLAIN {BY_CITY}", epsilon=1, delta=DELTA)
    assert (explained.price, explained.price_delta) == (1, Fraction(DELTA))
    assert "found at δ = 1e-09 at ε = 1: keys whose noisy counts reach 22" in str(explained)
    assert "ε = 1 costs 1, and δ = 1e-09" in str(explained)
    assert "found at δ = 1e-09" in str(table.sql(f"EXPLAIN {BY_CITY}", delta=DELTA))
    assert (table.remaining, table.remaining_delta) == (10, KEYS)


def test_several_selects_share_the_delta() -> None:
    table = people()
    both = f"{BY_CITY} UNION ALL SELECT city, COUNT(*) FROM people WHERE age > 30 GROUP BY city"
    result = table.sql(both, epsilon=2, delta=DELTA)
    assert len(result) == 4
    assert result.charged_delta == Fraction(DELTA)
    most = "SELECT city FROM people GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1"
    line = table.sql(f"SELECT COUNT(*), ({most}) AS most FROM people", epsilon=2, delta=DELTA)
    assert (line["most"], line.charged_delta) == ("Oslo", Fraction(DELTA))
    assert table.remaining_delta == KEYS - 2 * Fraction(DELTA)


def test_a_statement_whose_keys_are_public_costs_no_delta() -> None:
    table = people()
    assert (
        table.sql("SELECT sex, COUNT(*) FROM people GROUP BY sex", epsilon=1, delta=DELTA).charged_delta == 0
    )
    assert table.remaining_delta == KEYS


@pytest.mark.parametrize(
    ("statement", "delta", "error"),
    [
        (BY_CITY, None, fp.BadSQL),
        *((BY_CITY, bad, fp.BadEpsilon) for bad in (0, 1, -1, "many", float("nan"), fp.rho(1), True)),
        ("SELECT age / 3.5 AS k, COUNT(*) FROM people GROUP BY k", DELTA, fp.BadSQL),
        ("SELECT city, sex, COUNT(*) FROM people GROUP BY CUBE (city, sex)", DELTA, fp.BadSQL),
        (
            "SELECT city, SUM(age * age * age * age * 99999999999) FROM people GROUP BY city",
            DELTA,
            fp.ProgramError,
        ),
        (BY_CITY, "2e-6", fp.BudgetExceeded),
        (f"{BY_CITY} UNION ALL {BY_CITY.replace('*', 'age')}", "11e-7", fp.BudgetExceeded),
        (BY_CITY.replace("COUNT(*)", "COUNT(*), MEDIAN(age)"), "11e-7", fp.BudgetExceeded),
    ],
)
def test_a_mistake_is_typed_and_nothing_is_charged(
    statement: str, delta: Any, error: type[Exception]
) -> None:
    table = people()
    with pytest.raises(error):
        table.sql(statement, epsilon=1, delta=delta)
    assert (table.remaining, table.remaining_delta) == (10, KEYS)


def test_a_root_without_a_delta_says_so_before_anything_is_charged() -> None:
    table = fp.protect(ROWS, budget=5, schema=SCHEMA, columns={"age": fp.Column(bounds=(0, 110))})
    for statement in (BY_CITY, "SELECT city, AVG(age) FROM people GROUP BY city"):
        with pytest.raises(fp.NoDelta):
            table.sql(statement, epsilon=1, delta=DELTA)
    assert table.remaining == 5


def test_missing_keys_are_told_the_way_out() -> None:
    with pytest.raises(fp.BadSQL, match=r"find them: at a δ.*domain\(city, …\)"):
        people().sql(BY_CITY, epsilon=1)


# ── over HTTP ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    known = {"age": {"bounds": [0, 110]}, "sex": {"keys": [0, 1]}}
    table = TableConfig(ROWS, columns=known)
    sets = {"people": DataSet("people", fp.approximate(10, KEYS, KEYS), {"people": table})}
    with serve(tmp_path, sets) as found:
        yield found


def ask(live: Live, statement: Any, **more: Any) -> Reply:
    return live.send("POST", "/sql", {"statement": statement, "epsilon": "1", **more}, live.token())


def test_a_server_finds_keys_for_who_has_no_python_and_its_ledger_verifies(
    live: Live, tmp_path: Path
) -> None:
    assert "found at δ = 1e-09" in ask(live, f"EXPLAIN {BY_CITY}", delta=DELTA).json["explanation"]
    told = ask(live, BY_CITY, delta=DELTA, request_id="once").json
    assert [row[0] for row in told["rows"]] == ["Oslo", "Łódź"]
    assert told["delta"] == "1/1000000000"
    assert told["charged_delta"] == {"people": "1/1000000000"}
    assert Fraction(told["remaining_delta"]["people"]) == KEYS - Fraction(DELTA)
    assert ask(live, BY_CITY, delta=DELTA, request_id="once").json == told
    told = ask(
        live, AVERAGES.replace("SELECT", "SELECT /*+ most_keys(100) */", 1), delta=DELTA, epsilon="4"
    ).json
    assert len(told["rows"]) == 4
    remote = fp.connect(live.url, live.token())
    assert list(remote.sql(BY_CITY, epsilon=1, delta=DELTA)) == ["Oslo", "Łódź"]
    assert remote["people"].remaining_delta == KEYS - 3 * Fraction(DELTA)
    live.house.close()
    with closing(open_store(tmp_path / "ledger", create=False)) as store:
        verify(store)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({}, "bad_sql"),
        *(({"delta": bad}, "bad_epsilon") for bad in (0, 1, "-1e-9", "many", [1], {})),
        ({"delta": "2e-6"}, "budget_exceeded"),
        ({"delta": DELTA, "rho": "1/1000", "epsilon": None}, "not_concentrated"),
    ],
)
def test_a_refused_statement_costs_nothing_there(live: Live, more: dict[str, Any], code: str) -> None:
    head = live.house.ledger.head()
    for statement in (BY_CITY, AVERAGES):
        reply = ask(live, statement, **more)
        assert (reply.status >= 400, reply.json["error"]["code"]) == (True, code)
    assert (live.left("people"), live.house.ledger.head()) == (10, head)


def test_more_than_a_server_s_limit_of_numbers_is_refused_before_the_keys_are_paid_for(live: Live) -> None:
    many = ", ".join(f"AVG(age + {i})" for i in range(12))
    reply = ask(live, f"SELECT city, {many} FROM people GROUP BY city", delta=DELTA)
    assert reply.json["error"]["code"] == "too_large"
    assert live.left("people") == 10
