"""POST /sql: statements from who has no Python. The same actions, charges and refusals as everybody's."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.model.notions import Rho
from server.live import Live, Reply, people, serve

LISTED = ", ".join(map(str, range(101)))
COLUMNS = {"age": {"bounds": [0, 110]}, "gender": {"keys": [0, 1]}}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, people(10**7, columns=COLUMNS, caps={"carol": Fraction(1, 4)})) as found:
        yield found


def ask(live: Live, token: str, statement: Any, **more: Any) -> Reply:
    return live.send("POST", "/sql", {"statement": statement, "epsilon": "1000000", **more}, token)


def test_a_statement_is_answered_and_charged(live: Live) -> None:
    reply = ask(live, live.token(), "SELECT gender, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY gender")
    assert reply.status == 200
    told = reply.json
    assert told["columns"] == ["gender", "n", "a"]
    assert [(row[0], row[1]["value"]) for row in told["rows"]] == [(0, 50), (1, 50)]
    assert told["rows"][0][1]["low"] <= 50 <= told["rows"][0][1]["high"]
    assert told["charged"] == {"people": "1000000"}
    assert told["remaining"] == {"people": "9000000"}
    assert live.left() == 9 * 10**6


def test_an_explanation_is_free_and_a_mistake_says_where(live: Live) -> None:
    token = live.token()
    told = ask(live, token, "EXPLAIN SELECT AVG(age) AS a, SUM(CLAMP(age, 0, 9)) AS s FROM people").json
    assert "a: average of age" in told["explanation"]
    assert told["missing"] == []
    wrong = ask(live, token, "SELECT\n  nobody FROM people")
    assert wrong.code == "bad_sql"
    assert wrong.json["error"]["fields"] == {"line": 2, "column": 3}
    for statement in (
        "SELECT age FROM people",
        "DROP TABLE people",
        "SELECT 1; SELECT 2",
        "(" * 70_000,
        "SELECT COUNT(*) + 1e5.2 FROM people",
        "",
        3,
    ):
        assert ask(live, token, statement).status == 400
    assert (
        live.send("POST", "/sql", {"statement": "SELECT COUNT(*) FROM people", "more": 1}, token).status
        == 400
    )
    assert (
        live.send("POST", "/sql", {"statement": "SELECT COUNT(*) FROM people"}, token).code == "bad_epsilon"
    )
    assert live.send("POST", "/sql", {"statement": "SELECT COUNT(*) FROM people"}).status == 401
    assert live.left() == 10**7


def test_a_statement_that_is_sent_again_is_answered_as_it_was(live: Live) -> None:
    token, statement = live.token(), "SELECT COUNT(*) AS n, COUNT(DISTINCT name) AS d FROM people"
    first = ask(live, token, statement, epsilon="1/10", request_id="once")
    assert first.status == 200
    assert ask(live, token, statement, epsilon="1/10", request_id="once").body == first.body
    assert ask(live, token, statement, epsilon="1/5", request_id="once").code == "request_reused"
    assert live.left() == 10**7 - Fraction(1, 10)


def test_a_budget_too_small_and_a_frozen_data_set_refuse_before_anything_is_written(live: Live) -> None:
    statement = "SELECT COUNT(*) AS n FROM people"
    assert ask(live, live.token(), statement, epsilon="10000001").code == "budget_exceeded"
    assert ask(live, live.token("carol"), statement, epsilon="1/2").code == "budget_exceeded"
    assert live.left() == 10**7


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        # The second query has less of ε than a query may have here.
        ("SELECT /*+ weight(d, 1/100000000000) */ COUNT(*) AS n, COUNT(DISTINCT name) AS d FROM people",
         "bad_epsilon"),
        # The second level has too many parts.
        (f"SELECT COUNT(*) FROM people WHERE age IN ({LISTED}) AND LENGTH(name) IN ({LISTED}) "
         "GROUP BY GROUPING SETS ((age), (age, LENGTH(name)))", "too_large"),
    ],
)  # fmt: skip
def test_what_is_refused_in_a_later_query_is_refused_before_the_first(
    live: Live, statement: str, code: str
) -> None:
    """The first was charged, and then the second was refused: nothing was answered."""
    head = live.house.ledger.head()
    assert ask(live, live.token(), statement, epsilon="1").code == code
    assert live.left() == 10**7
    assert live.house.ledger.head() == head


def test_different_values_by_many_keys_are_many_queries_and_refused(live: Live) -> None:
    """Each waits for the quantum: ten thousand held a thread. Questions had a limit."""
    by_age = f"SELECT age, COUNT(DISTINCT name) FROM people WHERE age IN ({LISTED}) GROUP BY age"
    head = live.house.ledger.head()
    assert ask(live, live.token(), by_age).code == "too_large"
    assert live.house.ledger.head() == head


def test_a_request_id_with_half_of_a_character_is_no_mistake_of_the_server(live: Live) -> None:
    reply = ask(live, live.token(), "SELECT COUNT(*) FROM people", request_id="a\ud800")
    assert (reply.status, live.left()) == (400, 10**7)


def test_a_question_and_a_statement_of_like_names_are_charged_each(live: Live) -> None:
    """The question "sql/q" was in the session of the statement "q": it was told the answer of that one."""
    token = live.token()
    assert ask(live, token, "SELECT COUNT(*) AS n FROM people", request_id="q").status == 200
    left = live.left()
    body = {"table": "people", "kind": "count", "epsilon": "1000000", "request_id": "sql/q"}
    assert live.send("POST", "/questions", body, token).status == 200
    assert live.left() == left - 10**6


def test_rows_are_told_as_csv(live: Live) -> None:
    body = {"statement": "SELECT gender, COUNT(*) AS n FROM people GROUP BY gender", "epsilon": "1000000"}
    reply = live.send("POST", "/sql?format=csv", body, live.token())
    assert reply.body.decode().splitlines() == ["gender,n", "0,50", "1,50"]


def test_a_name_that_a_spreadsheet_would_compute_stays_a_text(live: Live) -> None:
    """A key that begins with a minus, and the names of columns, did not."""
    statement = (
        "SELECT name AS \"=1+1\", COUNT(*) AS n FROM people WHERE name IN ('-1+1', '-11') GROUP BY name"
    )
    told = live.send("POST", "/sql?format=csv", {"statement": statement, "epsilon": "1000000"}, live.token())
    assert told.body == b"'=1+1,n\r\n'-1+1,0\r\n-11,0\r\n"


def test_the_address_is_described(live: Live) -> None:
    described = live.send("GET", "/openapi.json", token=live.token()).json
    assert "requestBody" in described["paths"]["/sql"]["post"]


def test_a_statement_is_asked_at_rho_and_told_in_rho(tmp_path: Path) -> None:
    with serve(tmp_path, people(Rho(Fraction(10)), columns=COLUMNS)) as live:
        token = live.token()
        text = "SELECT gender, COUNT(*) AS n, MAX(age) AS most FROM people GROUP BY gender"
        body = {"statement": text, "rho": "2", "request_id": "once"}
        told = live.send("POST", "/sql", body, token).json
        assert (told["epsilon"], told["rho"], told["charged"]) == (None, "2", {"people": "2"})
        assert told["remaining"] == {"people": "8"}
        assert live.send("POST", "/sql", body, token).json == told
        assert live.send("POST", "/sql", {**body, "rho": "1"}, token).code == "request_reused"
        other = {"statement": text, "epsilon": "2", "request_id": "once"}
        assert live.send("POST", "/sql", other, token).code == "request_reused"
        free = live.send("POST", "/sql", {"statement": f"EXPLAIN {text}", "rho": "2"}, token).json
        assert "ρ = 2 costs 2" in free["explanation"]
        for wrong in ("0", -1, "x", "nan", True, [1], "1/0", "11"):
            assert live.send("POST", "/sql", {"statement": text, "rho": wrong}, token).status in (400, 402)
        assert live.send("POST", "/sql", {**body, "epsilon": 1}, token).status == 400
        assert live.left() == 8


def test_a_statement_at_rho_of_a_pure_budget_charges_nothing(live: Live) -> None:
    before = live.left()
    asked = {"statement": "SELECT COUNT(*) AS n FROM people", "rho": "1/1000"}
    assert live.send("POST", "/sql", asked, live.token()).code == "not_concentrated"
    assert live.left() == before


def test_a_sub_query_that_is_a_value_and_rows_put_together_are_answered_over_http(live: Live) -> None:
    value = "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT COUNT(*) FROM people)"
    both = (
        "SELECT 'a' AS k, COUNT(*) AS n FROM people UNION ALL SELECT 'b', 3 + COUNT(*) FROM people ORDER BY k"
    )
    for number, statement in enumerate((value, both), 1):
        found = ask(live, live.token(), statement, epsilon="1/2", request_id=f"nested {number}")
        assert found.status == 200
        assert list(found.json["charged"].values()) == ["1/2"]
        again = ask(live, live.token(), statement, epsilon="1/2", request_id=f"nested {number}")
        assert again.body == found.body
        assert live.left() == 10**7 - Fraction(number, 2)
    assert [row[0] for row in found.json["rows"]] == ["a", "b"]


def test_a_sub_query_or_a_union_that_is_refused_writes_nothing(live: Live) -> None:
    head = live.house.ledger.head()
    for statement, code in (
        ("SELECT /*+ weight(m, 1/100000000000) */ COUNT(*) FROM people WHERE age > (SELECT COUNT(*) AS m "
         "FROM people)", "bad_epsilon"),
        ("SELECT COUNT(*) FROM people UNION ALL SELECT name FROM people", "bad_sql"),
        ("SELECT COUNT(*) FROM people WHERE age > (SELECT age FROM people)", "bad_sql"),
    ):  # fmt: skip
        assert ask(live, live.token(), statement, epsilon="1").code == code
    too_much = "SELECT (SELECT COUNT(*) FROM people) + (SELECT COUNT(*) FROM people WHERE age > 3) AS n"
    assert ask(live, live.token(), too_much, epsilon="10000001").code == "budget_exceeded"
    assert live.left() == 10**7
    assert live.house.ledger.head() == head


def test_what_is_tried_is_charged_once_on_paper(live: Live) -> None:
    """What fits is not refused: the price was spent before the queries were tried."""
    both = "SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM people WHERE age > 3"
    assert ask(live, live.token(), f"EXPLAIN {both}", epsilon="10000000").status == 200
    assert ask(live, live.token(), both, epsilon="10000000").status == 200
    assert live.left() == 0


def test_over_a_connection_sub_queries_and_unions_are_actions_like_any_other(live: Live) -> None:
    catalog = fp.connect(live.url, token=live.token())
    value = (
        "SELECT COUNT(*) AS n FROM people WHERE age >= (SELECT MIN(a) FROM (VALUES (0)) v(a)) "
        "AND age < (SELECT 10 * COUNT(*) FROM people)"
    )
    found = catalog.sql(value, epsilon="1000000")
    assert found.charged == 1_000_000
    assert found.value > 0
    put_together = "SELECT COUNT(*) AS n FROM people UNION ALL SELECT AVG(age) FROM people"
    both = catalog.sql(put_together, epsilon="1000000")
    assert both[0]["n"].value == 100
    assert live.left() == 8 * 10**6
    with pytest.raises(fp.BudgetExceeded):
        catalog.sql(put_together, epsilon="9000000")
    assert live.left() == 8 * 10**6
