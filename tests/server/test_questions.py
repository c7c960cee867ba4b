"""Questions over HTTP: a client's program that the server runs for its analyst."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fpinq as fp
from fpinq.ledger.errors import RequestReused
from fpinq.model.epsilon import Epsilon
from fpinq.model.expressions import Type
from fpinq.model.queries import SimpleQuery
from fpinq.runtime.mechanisms import draw
from fpinq.server.questions.kept import Questions
from fpinq.server.questions.question import KINDS, Question
from server.asked import CHOICES, COLUMNS, QUESTIONS, ask, check, town, words
from server.live import PEOPLE, Live, people, serve


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, town()) as found:
        yield found


def no_noise(query: SimpleQuery, measured: Any, epsilon: Fraction) -> Any:
    """What is drawn at so large an ε that there is no noise."""
    return draw(query, measured, Epsilon(Fraction(10**30)))


def test_every_kind_is_asked_here() -> None:
    assert {question["kind"] for question in QUESTIONS} == KINDS.keys()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, str, dict[str, Any]]]:
    with serve(tmp_path_factory.mktemp("shared"), town(1000)) as found:
        yield found, found.token(), found.send("GET", "/openapi.json").json


@pytest.mark.parametrize("question", QUESTIONS, ids=words)
def test_a_quote_is_what_is_charged_and_both_are_what_is_described(
    shared: tuple[Live, str, dict[str, Any]], question: dict[str, Any]
) -> None:
    live, token, described = shared
    for table in (
        ("people", "clinic.visits") if question["kind"] == "count" and len(question) == 1 else ("people",)
    ):
        before, head = live.left(table.partition(".")[0]), live.house.ledger.head()
        quote = ask(live, token, "/quotes", table=table, **question)
        assert quote.json["mistake"] is None, quote.body
        assert live.house.ledger.head() == head, "a quote is written nowhere"
        reply = ask(live, token, table=table, **question)
        assert reply.status == 200, reply.body
        (price,) = quote.json["prices"]
        charged = before - live.left(price["dataset"])
        assert Fraction(price["price"]) == charged == Fraction(reply.json["charged"][price["dataset"]])
        assert charged == Fraction(1, 10) * quote.json["scaling_factor"]
        assert Fraction(price["left_after"]) == live.left(price["dataset"])
        check(described, "/quotes", quote.json)
        check(described, "/questions", reply.json)
        check(described, "/questions", {"table": table, "epsilon": "1/10", **question}, request=True)
    assert reply.json["answers"]
    assert all(len(each["key"]) == len(reply.json["key_columns"]) for each in reply.json["answers"])


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q["kind"] not in CHOICES], ids=words)
def test_an_answer_is_what_a_client_computes(tmp_path: Path, question: dict[str, Any]) -> None:
    with serve(tmp_path, town(), mechanism=no_noise) as live:
        told = ask(live, live.token(), table="people", **question).json
        table = live.connect("bob")["people"]
        by: Any = question.get("by")
        made = {
            "count": lambda: fp.count(),
            "distinct_count": lambda: fp.distinct_count("age"),
            "proportion": lambda: fp.proportion(lambda x: x.age > 30),
            "sum": lambda: (
                fp.sum("age") if question["of"] == "age" else fp.sum(lambda x: x.age * 2, (0, 220))
            ),
            "average": lambda: fp.average("age"),
            "variance": lambda: fp.variance("age", (0, 100)),
            "standard_deviation": lambda: fp.standard_deviation("age"),
            "histogram": lambda: fp.histogram("age", bins=question["bins"]),
            "cdf": lambda: fp.cdf("age", bins=4),
            "top": lambda: fp.top(
                question["first"],
                (lambda x: x.age / 10) if "/" in question["of"] else question["of"],
                question.get("candidates"),
            ),
            "covariance": lambda: fp.covariance("age", "gender", bounds=(None, (0, 1))),
            "correlation": lambda: (
                fp.correlation("age", lambda x: x.gender == 1)
                if by
                else fp.correlation("age", lambda x: x.age * x.age, bounds=((0, 100), (0, 10**4)))
            ),
            "regression": lambda: (
                fp.regression("age", "gender", bounds={"gender": (0, 1)})
                if len(question["of"]) == 2
                else fp.regression(
                    "age",
                    {"x": lambda x: x.gender == 1, "z": lambda x: x.age / 3},
                    bounds={"age": (0, 99), "z": (0, 40)},
                )
            ),
        }[question["kind"]]()
        where = question.get("where")
        asked = table if where is None else table.where(lambda x: x.age > int(where.split()[-1]))
        if by == ["gender", "age > 40"]:
            keys = [(0, False), (1, True)] if isinstance(question["keys"], list) else [(0, True), (1, True)]
            found = asked.query("1/10", made, by=lambda x: [x.gender, x.age > 40], keys=keys)
        else:
            found = asked.query("1/10", made) if by is None else asked.query("1/10", made, by=by)
        name = told["name"]
        for each, row in zip(told["answers"], found.rows(), strict=True):
            if question["kind"] != "regression":  # whose terms are called as they were given
                assert each["key"] == [row[column] for column in told["key_columns"]]
            for of in ("value", "low", "high", "standard_error"):
                told_as = float(each[of]) if isinstance(each[of], str) else each[of]  # "-inf"
                assert told_as == pytest.approx(row[name if of == "value" else of], rel=1e-12), of


def test_a_question_with_a_request_id_is_charged_once_whatever_happens(tmp_path: Path) -> None:
    question = {"table": "people", "kind": "average", "of": "age", "epsilon": "3/4", "request_id": "once"}
    with serve(tmp_path, people(1, columns=COLUMNS)) as live:
        token = live.token()
        first = live.send("POST", "/questions", question, token)
        assert first.status == 200, first.body
        assert live.send("POST", "/questions", question, token).body == first.body
        assert live.send("POST", "/questions", {**question, "epsilon": "1/5"}, token).code == "request_reused"
        listed = live.send("GET", "/questions", token=token).json["questions"]
        assert [each["request_id"] for each in listed] == ["once"]
        assert {"request_id": "once", **listed[0]["answer"]} == first.json
        other = live.token("bob")
        assert live.send("GET", "/questions", token=other).json["questions"] == []
        assert live.send("GET", "/questions/once", token=other).status == 404
        assert live.send("POST", "/questions", question, other).code == "budget_exceeded"
        assert live.left() == Fraction(1, 4)
    with serve(tmp_path, people(1, columns=COLUMNS)) as live:  # a page left open over a restart
        assert live.send("POST", "/questions", question, token).body == first.body
        assert live.send("GET", "/questions/once", token=token).json["answer"] == listed[0]["answer"]
        assert live.left() == Fraction(1, 4)


def test_a_question_that_was_cut_short_is_finished_for_what_it_was_charged(tmp_path: Path) -> None:
    """The first of its two queries was answered, and then the engine fails: budget for once is enough."""
    question = {"table": "people", "kind": "average", "of": "age", "epsilon": "3/4", "request_id": "cut"}
    draws: list[int] = []

    def fails_once(query: SimpleQuery, measured: Any, epsilon: Fraction) -> Any:
        draws.append(1)
        if len(draws) == 2:
            raise RuntimeError("the machine is gone")
        return no_noise(query, measured, epsilon)

    with serve(tmp_path, people(1, columns=COLUMNS), mechanism=fails_once) as live:
        token = live.token()
        failed = live.send("POST", "/questions", question, token)
        assert failed.code == "engine_error"
        assert live.left() == Fraction(1, 4)
        (kept,) = live.send("GET", "/questions", token=token).json["questions"]
        assert kept["answer"] is None
        again = live.send("POST", "/questions", question, token)
        assert again.status == 200, again.body
        assert live.left() == Fraction(1, 4), "the charge stands, once"
        true = sum(row["age"] for row in PEOPLE) / len(PEOPLE)
        assert again.json["answers"][0]["value"] == pytest.approx(true, abs=1)


def test_what_is_refused_says_of_what_there_is_too_little(live: Live) -> None:
    too_much = {"table": "people", "kind": "count", "epsilon": 5}
    refused = live.send("POST", "/questions", too_much, live.token())
    assert (refused.status, refused.code) == (402, "budget_exceeded")
    fields = {"dataset": "people", "price": "5", "remaining": "4", "refused_by": "budget"}
    assert refused.json["error"]["fields"] == fields
    carol = live.token("carol")
    capped = live.send("POST", "/questions", {**too_much, "epsilon": "1/2"}, carol).json["error"]["fields"]
    assert capped == {"dataset": "people", "price": "1/2", "remaining": "1/4", "refused_by": "cap"}
    quote = live.send("POST", "/quotes", {**too_much, "epsilon": "1/2"}, carol).json
    assert quote["refused"]["fields"] == capped
    assert quote["prices"][0]["cap"] == "1/4"
    assert live.left() == 4
    assert live.send("GET", "/questions", token=carol).json["questions"] == []


def test_a_frozen_data_set_is_neither_quoted_nor_asked(live: Live) -> None:
    token, owner = live.token(), live.token("olga", "owner")
    live.send("POST", "/datasets/people/freeze", token=owner)
    assert ask(live, token, table="people", kind="count").code == "frozen"
    assert ask(live, token, "/quotes", table="people", kind="count").json["mistake"]["code"] == "frozen"
    live.send("POST", "/datasets/people/unfreeze", token=owner)
    assert ask(live, token, table="people", kind="count").status == 200


@pytest.mark.parametrize(
    ("question", "field", "says"),
    [
        ({"kind": "count"}, "table", "'table' is missing"),
        ({"table": "poeple", "kind": "count"}, "table", "did you mean 'people'"),
        ({"table": "clinic", "kind": "count"}, "table", "say clinic.visits or clinic.bills"),
        ({"table": "people.x", "kind": "count"}, "table", "is one table"),
        ({"table": "people", "kind": "cuont"}, "kind", "did you mean 'count'"),
        ({"table": "people", "kind": "count", "of": "age"}, "of", "a count has no of"),
        ({"table": "people", "kind": "sum"}, "of", "of what?"),
        ({"table": "people", "kind": "quantile", "of": "age"}, "fraction", "'fraction'"),
        ({"table": "people", "kind": "sum", "of": "name"}, "of", "bounds need a number"),
        ({"table": "people", "kind": "sum", "of": "agee"}, "of", "did you mean 'age'"),
        ({"table": "people", "kind": "count", "where": "age >"}, "where", "ends too early"),
        ({"table": "people", "kind": "count", "where": "age"}, "where", "needs a condition"),
        ({"table": "people", "kind": "count", "by": "name"}, "keys", "needs keys"),
        ({"table": "people", "kind": "count", "keys": [1]}, "keys", "by what"),
        ({"table": "people", "kind": "count", "by": "gender", "keys": ["a"]}, "keys", "all keys must be"),
        ({"table": "people", "kind": "count", "epsilon": 0}, "epsilon", "> 0"),
        ({"table": "people", "kind": "count", "epsilon": "a"}, "epsilon", "is not a number"),
        ({"table": "people", "kind": "count", "epsilon": "1/0"}, "epsilon", "is not a number"),
        ({"table": "people", "kind": "count", "epsilon": [1]}, "epsilon", "is a number"),
        ({"table": "people", "kind": "sum", "of": "age", "bounds": [5, 1]}, "of", "reversed"),
        ({"table": "people", "kind": "sum", "of": "age", "bounds": 5}, "bounds", "two numbers"),
        ({"table": "people", "kind": "histogram", "of": "age", "bins": 10**9}, "bins", "at most 10,000"),
        ({"table": "people", "kind": "count", "rho": "1/100"}, "rho", "not both"),
        ({"table": "people", "kind": "count", "epsilon": None}, "epsilon", "is missing"),
        ({"table": "people", "kind": "count", "epsilon": None, "rho": "0"}, "rho", "> 0"),
        ({"table": "people", "kind": "count", "epsilon": None, "rho": "1/100"}, "rho", "is an ε"),
        ({"table": "people", "kind": "mode", "of": "name"}, "of", "candidates"),
        ({"table": "people", "kind": "mode", "of": "age", "candidates": 3}, "candidates", "is a list"),
        ({"table": "people", "kind": "top", "of": "gender"}, "first", "'first'"),
        ({"table": "people", "kind": "top", "of": "gender", "first": 3}, "of", "not so many"),
        ({"table": "people", "kind": "average", "of": ["age", "gender"]}, "of", "is of one"),
        ({"table": "people", "kind": "sum", "of": "age", "bounds": [[0, 1]]}, "bounds", "two numbers"),
        ({"table": "people", "kind": "correlation", "of": "age"}, "of", "is of two, in a list"),
        ({"table": "people", "kind": "correlation", "of": ["age"] * 3}, "of", "is of two, in a list"),
        ({"table": "people", "kind": "correlation", "of": ["age", "name"]}, "of", "needs a number"),
        (
            {"table": "people", "kind": "covariance", "of": ["age", "gender"], "bounds": [0, 1]},
            "bounds",
            "one for each",
        ),
        ({"table": "people", "kind": "regression", "of": ["age", "age"]}, "of", "no predictor of itself"),
        ({"table": "people", "kind": "regression", "of": ["age"] * 13}, "of", "two to 12"),
        ({"table": "people", "kind": "count", "size": 0}, "size", "1 or more"),
        ({"table": "people", "kind": "count", "request_id": "x" * 101}, "request_id", "at most 100"),
        ({"table": "people", "kind": "count", "tabel": "x"}, "tabel", "did you mean 'table'"),
    ],
)
def test_the_first_mistake_is_said_with_its_field(
    shared: tuple[Live, str, dict[str, Any]], question: dict[str, Any], field: str, says: str
) -> None:
    live, token, described = shared
    quote = ask(live, token, "/quotes", **question)
    assert quote.status == 200
    check(described, "/quotes", quote.json)
    assert quote.json["mistake"]["field"] == field, quote.body
    assert says in quote.json["mistake"]["message"]
    head = live.house.ledger.head()
    refused = ask(live, token, **question)
    assert refused.status in (400, 404, 413), refused.body
    assert refused.json["error"]["code"] == quote.json["mistake"]["code"]
    assert live.house.ledger.head() == head


ODD: list[Any] = [True, -1, 10**4200, 1e308, "", "\0", "\ud800", "9" * 999, [], [[]], [0, 10**30], ["\ud800"]]
ODD += ["1e999999999", "-1e-999999999", ["0", "1e999999999"]]  # 10**999999999 stopped everything
ODD += [{}, {"age": ["\ud800"]}, {"\ud800": [1]}]


@pytest.mark.parametrize("path", ["/questions", "/quotes"])
def test_an_odd_value_of_any_field_is_no_mistake_of_the_server(live: Live, path: str) -> None:
    """A kind that is a list, and a request id with half of a character, were."""
    token = live.token()
    for field in fields(Question):
        for odd in ODD:
            asked = {"table": "people", "kind": "average", "of": "age", "epsilon": "1/10000", field.name: odd}
            assert live.send("POST", path, asked, token).status < 500, (field.name, odd)


def test_bodies_that_are_no_question_are_refused(live: Live) -> None:
    token = live.token()
    for body in (b"", b"[]", b"{", b'{"table":1,"table":2}', b"\xff", b"[" * 5000):
        assert live.send("POST", "/questions", body, token).status in (400, 413)
        assert live.send("POST", "/quotes", body, token).status in (200, 400, 413)
    assert live.send("POST", "/questions", b" " * 1_000_001, token).status == 413
    unsigned = live.send("POST", "/questions", {"table": "people"})
    assert (unsigned.status, unsigned.headers["www-authenticate"]) == (401, 'Bearer realm="fpinq"')
    assert live.send("POST", "/sessions/x/actions", {}).headers["www-authenticate"].startswith("Bearer")
    for role in ("auditor", "owner"):
        other = live.token(role, role)
        assert ask(live, other, table="people", kind="count").code == "not_allowed"
        assert ask(live, other, "/quotes", table="people", kind="count").code == "not_allowed"


def test_a_question_has_no_more_integers_than_one_reads(tmp_path: Path) -> None:
    with serve(tmp_path, town(), limits={"integers_per_question": 20}) as live:
        token = live.token()
        wide = {"table": "people", "kind": "histogram", "of": "age", "bins": 21}
        assert ask(live, token, "/quotes", **wide).json["mistake"]["code"] == "too_large"
        assert ask(live, token, **wide).code == "too_large"
        assert live.left() == 4
        assert ask(live, token, **{**wide, "bins": 20}).status == 200


def test_parts_that_are_asked_one_by_one_are_few_whoever_listed_them(tmp_path: Path) -> None:
    """A quote of 5,000 different counts took five seconds, and promised what was then refused."""
    many = {"age": {"keys": list(range(101)), "bounds": [0, 110]}, "gender": {"keys": [0, 1]}}
    with serve(tmp_path, people(1, columns=many)) as live:
        token = live.token()
        for more in ({"by": "age"}, {"by": ["age", "gender"]}, {"by": "age", "keys": list(range(101))}):
            question = {"table": "people", "kind": "distinct_count", "of": "name", **more}
            quote = ask(live, token, "/quotes", **question)
            assert (quote.json["mistake"]["code"], quote.json["mistake"]["field"]) == ("too_large", "keys")
            assert ask(live, token, **question).code == "too_large"
        assert live.left() == 1
        few = {"table": "people", "kind": "distinct_count", "of": "name", "by": "age", "keys": [30, 31]}
        assert ask(live, token, **few).status == 200


def test_what_is_computed_of_products_is_of_few_columns_and_keys(tmp_path: Path) -> None:
    """An interval is computed thousands of times: the work of a question is public, and bounded."""
    many = {"age": {"keys": list(range(101)), "bounds": [0, 110]}}
    with serve(tmp_path, people(1, columns=many)) as live:
        token = live.token()
        for count in (6, 7):
            of = ["age", *(f"age > {k}" for k in range(count - 1))]
            question = {"table": "people", "kind": "regression", "of": of, "by": "age", "keys": [*range(100)]}
            quote = ask(live, token, "/quotes", **question).json
            assert (quote["mistake"] is None) == (count == 6)
        assert (quote["mistake"]["code"], quote["mistake"]["field"]) == ("too_large", "keys")
        assert ask(live, token, **question).code == "too_large"
        assert live.left() == 1


def test_integers_that_doubles_round_are_text(tmp_path: Path) -> None:
    rows = [{"n": 2**61}] * 3
    with serve(tmp_path, people(1, rows, columns={"n": {"bounds": [0, 2**61]}}), mechanism=no_noise) as live:
        (each,) = ask(live, live.token(), table="people", kind="sum", of="n").json["answers"]
    assert each["value"] == str(3 * 2**61)


def test_an_answer_can_be_a_table_for_a_spreadsheet(live: Live) -> None:
    token = live.token()
    question = {"table": "people", "kind": "count", "by": "gender", "epsilon": 0.1, "request_id": "csv"}
    reply = live.send("POST", "/questions", question, token, Accept="text/csv")
    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    lines = reply.body.decode().splitlines()
    assert lines[0] == "gender,n,low,high,standard_error"
    assert [line.split(",")[0] for line in lines[1:]] == ["0", "1"]
    assert live.send("GET", "/questions/csv?format=csv", token=token).body == reply.body
    assert live.left() == 4 - Fraction(1, 10)


def test_a_key_that_a_spreadsheet_would_compute_stays_a_text(tmp_path: Path) -> None:
    names = {"name": {"keys": ["=1+1", "n1"], "max_length": 9}}
    with serve(tmp_path, people(1, columns=names)) as live:
        question = {"table": "people", "kind": "count", "by": "name", "epsilon": 0.1}
        lines = live.send("POST", "/questions?format=csv", question, live.token()).body.decode().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["'=1+1", "n1"]


def test_me_says_who_and_what_is_left(live: Live) -> None:
    found = live.send("GET", "/me", token=live.token("carol")).json
    assert (found["name"], found["role"], found["expires_at"]) == ("carol", "analyst", None)
    left = {
        "notion": "epsilon",
        "budget": "4",
        "remaining": "4",
        "cap": "1/4",
        "cap_remaining": "1/4",
        "left": "1/4",
        "delta": None,
    }
    assert found["datasets"]["people"] == left
    token = live.house.tokens.create("eve", "analyst", seconds=3600)
    assert datetime.fromisoformat(live.send("GET", "/me", token=token).json["expires_at"])
    assert live.send("GET", "/me", token=live.token("olga", "owner")).json["role"] == "owner"


def test_a_data_set_is_described_by_its_owner_and_a_client_does_not_mind(live: Live) -> None:
    first, second = live.send("GET", "/datasets", token=live.token()).json["datasets"]
    assert first["tables"][0]["descriptions"] == {"age": "in years"}
    assert second["description"] == "Visits to a clinic"
    assert live.connect()["people"].noisy_average(0.1, "age").value >= 0


def test_truncation_is_said_before_and_after(live: Live) -> None:
    question = {"table": "clinic.visits", "kind": "count", "by": "month"}
    said = [{"table": "visits", "unit": "person_id", "rows_per_unit": 2}]
    assert ask(live, live.token(), "/quotes", **question).json["truncation"] == said
    assert ask(live, live.token(), **question).json["truncation"] == said


# ── time ─────────────────────────────────────────────────────────────────────────────


def test_the_second_charge_of_a_question_waits_for_the_quantum(tmp_path: Path) -> None:
    """Else whoever watches the budget would see how long the first measurement took."""
    quantum = 0.4

    def slow(query: SimpleQuery, measured: Any, epsilon: Fraction) -> Any:
        time.sleep(0.05)
        return no_noise(query, measured, epsilon)

    with serve(tmp_path, town(), mechanism=slow, quantum_seconds=Fraction(4, 10)) as live:
        token, began = live.token(), time.time()
        assert ask(live, token, table="people", kind="average", of="age").status == 200
        assert time.time() - began >= 2 * quantum
        charges = [json.loads(line.text) for line in live.house.ledger.entries()]
        _first, second = (datetime.fromisoformat(each["at"]) for each in charges if each.get("charged"))
    assert second.timestamp() - began >= quantum


def test_an_answer_is_listed_when_its_reply_leaves_and_not_before(tmp_path: Path) -> None:
    with serve(tmp_path, town(), quantum_seconds=Fraction(1, 2)) as live:
        token = live.token()
        question = {"table": "people", "kind": "count", "epsilon": "1/10", "request_id": "soon"}

        asking = threading.Thread(target=live.send, args=("POST", "/questions", question, token))
        kept = Questions(live.house.config.questions_path, live.house.ledger.id)
        began = time.monotonic()
        asking.start()
        while time.monotonic() < began + 10:
            found = kept.find("alice", "soon")
            if found is not None and found.answer is not None:
                break
            time.sleep(0.01)
        shown = time.monotonic()
        asking.join()
        assert live.left() == 4 - Fraction(1, 10)
        assert shown - began >= 0.4, "a count takes milliseconds, and is told at the quantum"
        assert live.send("GET", "/questions/soon", token=token).json["answer"] is not None


def test_of_two_questions_at_once_under_one_request_id_one_is_refused(tmp_path: Path) -> None:
    """Both look, and neither is there: the second could undo the note of the first."""
    kept = Questions(tmp_path / "questions", "ledger")
    one, other = {"kind": "count"}, {"kind": "median"}
    assert kept.asked("ann", "r", one) is None
    assert kept.asked("ann", "r", other) is None
    assert kept.begin("ann", "r", one) is None
    with pytest.raises(RequestReused):
        kept.begin("ann", "r", other)
    again = kept.begin("ann", "r", one)
    assert again is not None
    assert again.question == one


# ── neighbours ───────────────────────────────────────────────────────────────────────


def test_all_that_is_told_is_the_same_on_neighbouring_data_but_for_the_answers(tmp_path: Path) -> None:
    """With mechanisms that draw the same whatever was measured, every byte is."""
    without = [row for row in PEOPLE if row is not PEOPLE[7]]
    told = [
        _told(tmp_path / name, rows)
        for name, rows in (("with", PEOPLE), ("without", without), ("empty", PEOPLE[:1]))
    ]
    assert all(status == 200 for status, _ in told[0][: 3 * len(QUESTIONS)])
    assert told[0] == told[1] == told[2]


def the_same(query: SimpleQuery, measured: Any, epsilon: Fraction) -> Any:
    """What is drawn whatever was measured, in the form that the query has."""
    return 0 if query.mechanism == "choice" and query.alone else (7,) * query.integers


def _told(folder: Path, rows: Any) -> list[tuple[int, bytes]]:
    folder.mkdir()
    schema = {"age": Type.INT64, "gender": Type.INT64, "name": Type.STRING}
    with serve(folder, people(1000, rows, columns=COLUMNS, schema=schema), mechanism=the_same) as live:
        token = live.token()
        wrong = [
            {"kind": "sum", "of": "name"},
            {"kind": "count", "epsilon": 5000},
            {"kind": "sum", "of": "1 / 0"},
        ]
        found: list[tuple[int, bytes]] = []
        for number, question in enumerate([*QUESTIONS, *wrong]):
            body = {"table": "people", "epsilon": "1/10", "request_id": f"q{number}", **question}
            for path in ("/quotes", "/questions", "/questions?format=csv"):
                reply = live.send("POST", path, body, token)
                found.append((reply.status, reply.body))
        found.append((0, live.send("GET", "/me", token=token).body))
        return found


# ── anything ─────────────────────────────────────────────────────────────────────────

_SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=12)
_VALUES = st.recursive(
    _SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=5), v, max_size=3)
)
_LIKELY: dict[str, Any] = {
    "table": st.sampled_from(["people", "clinic.visits", "clinic", "people.people", "nobody"]),
    "kind": st.sampled_from([*KINDS, "modus"]),
    "epsilon": st.sampled_from(["0.1", "1/3", 0.1, 5, "1e-9", -1, 0, "9" * 99]),
    "where": st.sampled_from(["age > 17", "age >", "month in (1, 2)", "not not not true", "'a' = 'a'"]),
    "rho": st.sampled_from(["1/100", 0, 5]),
    "of": st.sampled_from(
        [
            "age",
            "cost",
            "age > 3",
            "name",
            "1",
            ["age", "gender"],
            ["age", "age"],
            ["cost", "1"],
            ["age"] * 99,
        ]
    ),
    "candidates": st.sampled_from(
        [["n1", "n2"], [1, 2], [0], [None], [0, 0], [True], [1.5], list(range(999))]
    ),
    "first": st.sampled_from([1, 2, 3, 0, 10**18]),
    "bounds": st.sampled_from(
        [
            [0, 100],
            [[0, 1], None],
            [None],
            [[0, 1], [5, 5]],
            [5, 5],
            [10, 0],
            ["1/3", "1e300"],
            [-(2**70), 2**70],
        ]
    ),
    "by": st.sampled_from(["gender", ["gender", "gender"], [], ["gender", "age > 3"], "name", "1", "month"]),
    "keys": st.sampled_from([[0, 1], [0, 0], [], [[0, True]], {"gender": [0]}, {"x": [1]}, ["a"], [None]]),
    "fraction": st.sampled_from([0.5, "1/2", 0, 1, 2, "x"]),
    "interval": st.sampled_from([0.95, "0.5", 0, 1, 2]),
    "bins": st.sampled_from([1, 20, [0, 50, 100], [1], [3, 2], [0, "1/3"], 10_000]),
    "size": st.sampled_from([1, 1000, 10**18]),
    "request_id": st.text(min_size=1, max_size=8),
}
_BODIES = st.fixed_dictionaries(
    {name: _LIKELY[name] for name in ("table", "kind", "epsilon")},
    optional={n: likely | _VALUES for n, likely in _LIKELY.items() if n not in ("table", "kind", "epsilon")},
) | st.dictionaries(st.sampled_from([*_LIKELY, "x"]), _VALUES, max_size=6)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=_BODIES)
def test_whatever_is_asked_is_answered_or_refused_and_a_quote_says_which(
    shared: tuple[Live, str, dict[str, Any]], body: dict[str, Any]
) -> None:
    live, token, _ = shared
    raw = json.dumps({**body, "request_id": None}).encode()
    quote = live.send("POST", "/quotes", raw, token)
    assert quote.status in (200, 400, 413), quote.body
    reply = live.send("POST", "/questions", raw, token)
    assert reply.status < 500, (body, reply.body)
    if quote.status == 200:
        fine = quote.json["mistake"] is None and quote.json["refused"] is None
        assert (reply.status == 200) == fine, (body, quote.body, reply.body)
