"""Questions by keys that nobody listed: quoted, asked, refused and capped, as any others are."""

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.ledger import open_store
from fpinq.ledger.verify import verify
from fpinq.model.notions import Rho
from fpinq.server import DataSet, TableConfig
from server.asked import ask, check
from server.live import Live, Reply, serve

ROWS = [{"id": i // 2, "city": "Oslo" if i % 3 else "Łódź", "age": 20 + i % 50} for i in range(900)]
COLUMNS = {"age": {"bounds": [0, 110]}}
SMALL = Fraction(1, 10**10)
KEYS = Fraction(1, 10**9)
FOUND: dict[str, Any] = {"kind": "count", "by": "city", "discover": {"delta": "1e-10"}}
WITHIN: dict[str, Any] = {
    "kind": "count",
    "by": "city",
    # So few keys of nobody that none is shown here: by default one test in a thousand would see one.
    "discover": {"within": {"op": "strings", "max_bytes": 16}, "expected": "1e-9"},
}
AVERAGES: dict[str, Any] = {
    "kind": "average", "of": "age", "by": "city", "discover": {"delta": "1e-10", "epsilon": "1/2"},
}  # fmt: skip


def data(budget: Any = None, **settings: Any) -> dict[str, DataSet]:
    table = TableConfig(ROWS, columns=COLUMNS)
    people = DataSet("people", budget or fp.approximate(10, "1e-9", KEYS), {"people": table}, **settings)
    return {"people": people}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, data(caps={"bob": 1}, keys_caps={"bob": SMALL, "carol": Fraction(0)})) as it:
        yield it


def send(live: Live, path: str = "/questions", who: str = "ann", **question: Any) -> Reply:
    return ask(live, live.token(who), path, table="people", **{"epsilon": "1/2", **question})


def left(live: Live, who: str = "ann") -> tuple[Fraction, Fraction]:
    mine = live.send("GET", "/me", token=live.token(who)).json["datasets"]["people"]
    return Fraction(mine["left"]), Fraction(mine["delta"]["left"])


def test_a_quote_says_what_keys_cost_and_which_are_shown_and_the_answer_costs_that(live: Live) -> None:
    described = live.send("GET", "/openapi.json").json
    for question, delta in ((FOUND, SMALL), (WITHIN, 0), (AVERAGES, SMALL)):
        before = left(live)
        quote, told = send(live, "/quotes", **question).json, send(live, **question)
        check(described, "/quotes", quote)
        check(described, "/questions", told.json)
        check(described, "/questions", {"table": "people", "epsilon": "1/2", **question}, request=True)
        assert (quote["mistake"], quote["refused"]) == (None, None)
        (price,) = quote["prices"]
        assert Fraction(price["price"]) == Fraction(told.json["charged"]["people"])
        assert (price["delta"] is None) == (delta == 0)
        if delta:
            assert (
                Fraction(price["delta"]["price"]) == delta == Fraction(told.json["charged_delta"]["people"])
            )
            assert Fraction(price["delta"]["left_after"]) == before[1] - delta
            assert Fraction(told.json["remaining_delta"]["people"]) == before[1] - delta
            assert quote["likelihood_ratio"] is None
        assert left(live) == (before[0] - Fraction(price["price"]), before[1] - delta)
        assert told.json["discovery"] == quote["discovery"]
        shown = quote["discovery"]
        assert shown["threshold"] <= shown["shown_from"] < 300
        assert Fraction(shown["expected_false"]) == (0 if delta else KEYS)
        assert told.json["key_columns"] == ["city"]
        assert [each["key"] for each in told.json["answers"]] == [["Oslo"], ["Łódź"]]


def test_the_price_of_keys_is_told_exactly_where_no_decimal_is(live: Live) -> None:
    third = {**FOUND, "epsilon": "1/3", "discover": {"delta": "1/30000000000"}}
    (price,) = send(live, "/quotes", **third).json["prices"]
    assert (price["price"], price["delta"]["price"]) == ("1/3", "1/30000000000")
    (price,) = send(live, **third).json["prices"]
    assert (price["price"], price["delta"]["price"]) == ("1/3", "1/30000000000")


def test_a_quote_is_written_nowhere(live: Live) -> None:
    before, head = left(live), live.house.ledger.head()
    for question in (FOUND, WITHIN, AVERAGES):
        assert send(live, "/quotes", **question).json["mistake"] is None
    assert (left(live), live.house.ledger.head()) == (before, head)


@pytest.mark.parametrize(
    ("field", "code", "question"),
    [
        ("discover", "bad_wire", {**FOUND, "discover": "1e-10"}),
        ("discover", "bad_wire", {**FOUND, "discover": {"deltas": "1e-10"}}),
        ("discover", "bad_wire", {**FOUND, "discover": {"delta": [1]}}),
        ("discover", "bad_wire", {**FOUND, "discover": {"delta": "1e-10", "at_most": 0}}),
        ("discover", "bad_wire", {**FOUND, "discover": {"delta": "1e-10", "per_person": "2"}}),
        ("discover", "bad_wire", {**FOUND, "discover": {"delta": "1e-10", "epsilon": 1, "rho": 1}}),
        ("discover", "bad_wire", {**FOUND, "discover": {"within": {"op": "strings"}}}),
        ("discover", "bad_wire", {**FOUND, "discover": {"within": {"op": "all"}}}),
        ("discover", "bad_wire", {**FOUND, "discover": {"within": {"op": "integers", "low": 9, "high": 0}}}),
        ("discover", "bad_wire", {**FOUND, "discover": {"within": {"op": "strings", "max_bytes": 10**9}}}),
        ("discover", "bad_partition", {**FOUND, "discover": {}}),
        ("discover", "bad_partition", {**FOUND, "keys": ["Oslo"]}),
        ("discover", "bad_partition", {"kind": "count", "discover": {"delta": "1e-10"}}),
        ("discover", "bad_partition", {**AVERAGES, "discover": {"delta": "1e-10"}}),
        *(("discover", "bad_epsilon", {**FOUND, "discover": {"delta": bad}})
          for bad in (0, 1, 2, -1e-9, "0", "1", "-1/9", "many", "1e-400", "1/0")),
        ("discover", "bad_epsilon", {**AVERAGES, "discover": {"delta": "1e-10", "epsilon": "0"}}),
        ("discover", "bad_query", {**WITHIN, "discover": {**WITHIN["discover"], "expected": 0}}),
        ("by", "bad_query", {**FOUND, "discover": {"within": {"op": "integers", "low": 0, "high": 9}}}),
        ("by", "bad_query", {**FOUND, "discover": {"delta": "1e-10", "per_person": 2}}),
        ("discover", "too_large", {**FOUND, "discover": {"delta": "1e-10", "at_most": 60_000}}),
        ("discover", "too_large", {**AVERAGES, "discover": {**AVERAGES["discover"], "at_most": 20_000}}),
        ("discover", "too_large", {**AVERAGES, "kind": "distinct_count"}),
        ("of", "bad_query", {**AVERAGES, "of": "city"}),
    ],
)  # fmt: skip
def test_a_mistake_is_said_of_its_field_and_nothing_is_charged(
    live: Live, field: str, code: str, question: dict[str, Any]
) -> None:
    before, head = left(live), live.house.ledger.head()
    mistake = send(live, "/quotes", **question).json["mistake"]
    assert (mistake["field"], mistake["code"]) == (field, code), mistake
    refused = send(live, **question)
    assert refused.status >= 400
    assert refused.json["error"]["code"] == code
    assert (left(live), live.house.ledger.head()) == (before, head)


def test_what_is_left_of_delta_is_not_exceeded_and_a_cap_of_it_is_one_s_own(live: Live) -> None:
    quote = send(live, "/quotes", **{**FOUND, "discover": {"delta": "2e-9"}}).json
    assert quote["refused"]["fields"]["refused_by"] == "delta"
    assert send(live, **{**FOUND, "discover": {"delta": "2e-9"}}).status == 402
    assert left(live, "bob") == (1, SMALL)
    assert send(live, who="bob", **FOUND).status == 200
    assert left(live, "bob") == (Fraction(1, 2), 0)
    refused = send(live, who="bob", **{**FOUND, "epsilon": "1/10"})
    assert (refused.status, refused.json["error"]["fields"]["refused_by"]) == (402, "delta")
    assert send(live, who="carol", **FOUND).status == 402
    assert send(live, who="carol", **WITHIN).status == 200
    assert left(live) == (9, KEYS - SMALL)
    table = fp.connect(live.url, live.token("carol")).table("people")
    with pytest.raises(fp.BudgetExceeded, match="δ for keys"):
        table.noisy_histogram("1/10", "city", keys=fp.discover(delta="1e-12"))


def test_a_root_without_a_delta_finds_no_keys_at_one_and_says_so(tmp_path: Path) -> None:
    for number, budget in enumerate((Fraction(10), Rho(Fraction(1)))):
        folder = tmp_path / str(number)
        folder.mkdir()
        with serve(folder, data(budget)) as live:
            mistake = send(live, "/quotes", **FOUND).json["mistake"]
            assert (mistake["field"], mistake["code"]) == ("discover", "no_delta")
            assert send(live, **FOUND).json["error"]["code"] == "no_delta"
            assert live.left("people") == (10 if number == 0 else 1)
            assert live.send("GET", "/me", token=live.token()).json["datasets"]["people"]["delta"] is None


def test_what_a_data_set_has_left_of_its_delta_is_public(live: Live) -> None:
    send(live, **FOUND)
    (found,) = live.send("GET", "/datasets", token=live.token()).json["datasets"]
    assert (found["keys_delta"], Fraction(found["remaining_delta"])) == (str(KEYS), KEYS - SMALL)


def test_a_question_that_is_sent_again_is_charged_once(live: Live) -> None:
    first = send(live, request_id="once", **AVERAGES)
    before = left(live)
    again = send(live, request_id="once", **AVERAGES)
    assert (again.json, left(live)) == (first.json, before)


def test_a_ledger_of_such_questions_and_caps_verifies(live: Live, tmp_path: Path) -> None:
    for question in (FOUND, WITHIN, AVERAGES):
        assert send(live, who="bob" if question is FOUND else "ann", **question).status == 200
    live.house.close()
    with closing(open_store(tmp_path / "ledger", create=False)) as store:
        verify(store)


def test_where_no_key_is_found_the_answer_has_none_and_says_of_which_columns(live: Live) -> None:
    told = send(live, **{**FOUND, "where": "age > 200"}).json
    assert (told["answers"], told["key_columns"]) == ([], ["city"])
    told = send(live, **{**AVERAGES, "where": "age > 200"}).json
    assert (told["answers"], told["key_columns"], told["charged"]) == ([], ["city"], {"people": "1/2"})
