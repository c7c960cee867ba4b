"""Known attacks on the wire, by name. Each tries something; a safe system gives nothing and charges right."""

import json
import pickle
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.ledger.errors import SameData
from fpinq.model.actions import Assign
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.transformations import LiteralTable, Select
from fpinq.server import DataSet, TableConfig
from fpinq.server.tokens import Tokens
from server.live import COUNT, LIFTED, Live, people, serve

SURE = 10**9
PLENTY = 10**16
ROWS = [{"age": 20 + i, "name": f"zebra{i}"} for i in range(50)]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, people(PLENTY, ROWS)) as found:
        yield found


# ── bounds ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bounds", [(2**63, 2**63), (2**63 - 1, 2**63), (-(2**63) - 1, -(2**63) - 1)])
def test_bounds_that_no_engine_has_a_number_for_told_the_exact_count(
    live: Live, bounds: tuple[int, int]
) -> None:
    lower, upper = bounds
    clamp = {"op": "clamp", "value": {"op": "column", "name": "age"}, "lower": lower, "upper": upper}
    queries = [{"op": "moments", "of": clamp, "degree": 1}]
    token = live.token()
    asked = {"op": "query", "table": "people", "epsilon": "1/10000", "queries": queries}
    reply = live.act(live.session(token), token, asked)
    assert (reply.status, reply.code) == (400, "bad_query")
    assert live.left() == PLENTY


# ── error text ───────────────────────────────────────────────────────────────────────


def told_nothing(*bodies: bytes) -> None:
    """No engine's words, no file's name, no value of a row."""
    for body in bodies:
        for word in (
            b"duckdb",
            b"Error:",
            b"SELECT",
            b"CAST",
            b"Traceback",
            b".csv",
            b"/tmp",
            b"zebra",
            b"File",
        ):
            assert word not in body, body


@pytest.mark.parametrize(
    "expression",
    ["x.name.cast('int64')", "x.name.cast('date').year()", "x.age * 2**62", "1 // (x.age - 37)", "x.age % 0"],
)
def test_error_text_no_expression_makes_the_engine_speak(live: Live, expression: str) -> None:
    table = live.connect()["people"].select(eval(f"lambda x: {expression}"))
    assert isinstance(table.noisy_sum(1, "value", bounds=(-(2**40), 2**40)).value, int)


def test_error_text_of_a_failing_engine_is_a_reference(
    live: Live, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("Conversion Error: zebra7 in /tmp/people.csv")

    monkeypatch.setattr(live.house._engines["duckdb"], "measure", fail)
    token = live.token()
    reply = live.act(live.session(token), token, COUNT)
    assert (reply.status, reply.code) == (500, "engine_error")
    told_nothing(reply.body)
    reference = reply.json["error"]["fields"]["reference"]
    assert reference in caplog.text
    assert "zebra7" in caplog.text


def test_error_text_of_a_missing_or_replaced_file(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,name\n" + "".join(f"{i},zebra{i}\n" for i in range(100)))
    schema = {"age": Type.INT64, "name": Type.STRING}
    with serve(tmp_path, people(1, str(path), schema=schema)) as live:
        token = live.token()
        session = live.session(token)
        assert live.act(session, token, COUNT).status == 200
        path.write_text("age,name\n1,zebra\n")
        replaced = live.act(session, token, COUNT)
        path.unlink()
        missing = live.act(session, token, COUNT)
        assert (replaced.code, missing.code) == ("data_changed", "data_changed")
        told_nothing(replaced.body, missing.body)
        assert live.left() == Fraction(9, 10)


def test_error_text_of_a_failing_ledger(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fp.LedgerError("SELECT * FROM entries: disk full at /tmp/people.ledger")

    monkeypatch.setattr(live.house.ledger, "act", fail)
    token = live.token()
    reply = live.act(live.session(token), token, COUNT)
    assert (reply.status, reply.code) == (503, "ledger_error")
    told_nothing(reply.body)


def test_error_text_of_our_own_mistake_stops_the_server(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise fp.KernelViolation("the counter of zebra is wrong")

    token = live.token()
    session = live.session(token)
    with monkeypatch.context() as patched:
        patched.setattr(live.house.system, "act", fail)
        first = live.act(session, token, COUNT)
    assert first.code == "kernel_violation"
    told_nothing(first.body)
    assert live.act(session, token, COUNT).code == "kernel_violation"
    assert live.send("GET", "/healthz").status == 503
    assert live.left() == PLENTY


# ── injection, engine reach ──────────────────────────────────────────────────────────

HOSTILE = [
    'age"; DROP TABLE r0; --',
    "age' OR '1'='1",
    "x) FROM r0; COPY r0 TO '/tmp/stolen.csv'; --",
    "read_csv('/etc/passwd')",
    "'/etc/passwd'",
    "ROWS",
    "tokens",
    "$1",
    "?",
    "c0",
    "\\",
    "\x00",
    "\u202e",
    "🦓" * 10,
    "${jndi:ldap://x}",
    "__class__",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_injection_by_a_column_that_is_not_there(live: Live, text: str) -> None:
    system = live.connect()["people"].facts.system
    assert system is not None
    with pytest.raises(fp.ProgramError):
        system.act(Assign("t", Select((("v", Column(text)),)), ("people",)))


@pytest.mark.parametrize("text", HOSTILE)
def test_injection_by_the_name_of_a_new_column(live: Live, text: str) -> None:
    table = live.connect()["people"].select(lambda x: {text: x.age})
    assert table.noisy_sum(SURE, text, bounds=(0, 100)).value == sum(row["age"] for row in ROWS)  # type: ignore[misc]


@pytest.mark.parametrize("text", HOSTILE)
def test_injection_by_a_literal_or_a_key(live: Live, text: str) -> None:
    data = live.connect()["people"]
    assert data.where(lambda x: x.name == text).noisy_count(SURE).value == 0
    assert data.where(lambda x: x.name != text).noisy_count(SURE).value == 50
    parts = data.query(SURE, fp.count(), by=lambda x: x.name, keys=[text, "zebra1"])
    assert [answer.value for answer in parts.values()] == [0, 1]


@pytest.mark.parametrize("text", HOSTILE)
def test_injection_by_the_name_of_a_table(live: Live, text: str) -> None:
    token = live.token()
    session = live.session(token)
    assign = {"op": "assign", "target": text, "arguments": ["people"], "transformation": {"op": "distinct"}}
    assert live.act(session, token, assign).status == 200
    query = {**COUNT, "table": text, "epsilon": str(SURE)}
    assert live.act(session, token, query).json["observation"]["released"] == [[50]]


@pytest.mark.parametrize("name", ["ROWS", "people", "r0", "duckdb_tables", "sqlite_master", "/etc/passwd"])
def test_engine_reach_only_data_sets_are_tables(live: Live, name: str) -> None:
    token = live.token()
    reply = live.act(live.session(token), token, {**COUNT, "table": name})
    assert reply.status == (200 if name == "people" else 404)


def test_engine_reach_a_public_table_reads_no_file(live: Live) -> None:
    data = live.connect()["people"]
    public = LiteralTable(Schema.of({"name": Type.STRING}), (("/etc/passwd",), ("zebra1",)))
    system = data.facts.system
    assert system is not None
    system.act(Assign("p", public))
    assert (
        data.semi_join(fp.public([{"name": "/etc/passwd"}, {"name": "zebra1"}]), on="name")
        .noisy_count(SURE)
        .value
        == 1
    )


# ── exhaustion ───────────────────────────────────────────────────────────────────────


def test_exhaustion_a_table_above_the_limit_is_told_as_such(live: Live) -> None:
    rows = [{"name": f"{i:0200}"} for i in range(20_000)]
    with pytest.raises(fp.TooLarge):
        live.connect()["people"].semi_join(fp.public(rows), on="name")


def test_exhaustion_a_billion_keys_do_not_fit_the_body(live: Live) -> None:
    token = live.token()
    keys = list(range(300_000))
    query = {"op": "query", "table": "people", "epsilon": "1", "queries": [{"op": "count"}] * 3}
    reply = live.act(live.session(token), token, {**query, "by": {"op": "partitioning", "keys": keys}})
    assert reply.code == "too_large"
    assert live.left() == PLENTY


@pytest.mark.parametrize("depth", [400, 5_000, 200_000])
def test_exhaustion_deep_nesting(live: Live, depth: int) -> None:
    token = live.token()
    session = live.session(token)
    tree = b'{"op":"apply","operator":"not","arguments":[' * depth + b"1" + b"]}" * depth
    body = b'{"request_id":"r","action":' + tree + b"}"
    reply = live.send("POST", f"/sessions/{session}/actions", body[:999_999], token)
    assert reply.code in ("bad_wire", "too_large")
    assert live.send("GET", "/healthz").status == 200


def test_exhaustion_a_table_doubled_many_times_is_refused_before_the_charge(live: Live) -> None:
    with pytest.raises(fp.BadTransformation, match="too large"):
        doubled(live.connect()["people"], 40)
    assert live.left() == PLENTY


def doubled(table: fp.Table, times: int) -> fp.Table:
    for _ in range(times):
        table = table.concat(table)
    return table


def test_exhaustion_a_cross_join_runs_out_of_time_and_others_go_on(tmp_path: Path) -> None:
    rows = [{"a": i} for i in range(4000)]
    with serve(tmp_path, people(PLENTY, rows), limits={**LIFTED, "query_seconds": 1}) as live:
        table = live.connect(retries=0)["people"]
        one = table.with_columns(lambda x: {"k": x.a * 0})
        every = fp.first(4000)
        pairs = one.join(one, on="k", left=every, right=every, select=lambda p, q: p.a * 4000 + q.a)
        slow = pairs.group_by("value").select(lambda g: g.count()).distinct()
        other = live.connect("bob")["people"]
        with ThreadPoolExecutor(1) as pool:
            bombs = [pool.submit(slow.noisy_count, 1)]
            time.sleep(0.1)
            began = time.monotonic()
            assert other.remaining
            assert time.monotonic() - began < 5
            for bomb in bombs:
                with pytest.raises(fp.EngineError):
                    bomb.result(60)


def test_exhaustion_connections_that_say_nothing_keep_nobody_out(live: Live) -> None:
    import socket

    silent = [socket.create_connection(("127.0.0.1", live.port)) for _ in range(100)]
    try:
        for connection in silent[:50]:
            connection.sendall(b"POST /sessions/x/actions HTTP/1.1\r\nContent-Le")
        assert live.connect()["people"].noisy_count(1).charged == 1
    finally:
        for connection in silent:
            connection.close()


@pytest.mark.parametrize("at_most", [2**31, 2**63, 10**30])
def test_exhaustion_an_absurd_bound_is_only_dear(live: Live, at_most: int) -> None:
    data = live.connect()["people"]
    try:
        many = data.select_many(lambda x: [x.age], at_most=at_most)
        assert many.scaling_factor == at_most
        with pytest.raises(fp.BudgetExceeded):
            many.noisy_count(PLENTY)
    except fp.ProgramError:
        pass
    assert live.left() == PLENTY


# ── handles, code loading ────────────────────────────────────────────────────────────


def test_handles_another_s_session_is_refused_like_one_that_never_was(live: Live) -> None:
    alice, mallory = live.token("alice"), live.token("mallory")
    session = live.session(alice)
    live.act(
        session,
        alice,
        {"op": "assign", "target": "t", "arguments": ["people"], "transformation": {"op": "distinct"}},
    )
    guesses = ["0" * 64, "x", session[:-1] + ("0" if session[-1] != "0" else "1"), session.upper() + "0"]
    stolen = live.act(session, mallory, {**COUNT, "table": "t"})
    assert (stolen.status, stolen.code) == (404, "unknown_session")
    for guess in guesses:
        reply = live.act(guess, mallory, {**COUNT, "table": "t"})
        assert (reply.status, reply.json["error"]["message"]) == (404, stolen.json["error"]["message"])
        assert live.send("GET", f"/sessions/{guess}/tables/t", token=mallory).code == "unknown_session"
    assert live.left() == PLENTY


def test_handles_a_variable_of_another_session_is_unknown_and_not_suggested(live: Live) -> None:
    alice, mallory = live.token("alice"), live.token("mallory")
    assign = {
        "op": "assign",
        "target": "secret_plan",
        "arguments": ["people"],
        "transformation": {"op": "distinct"},
    }
    live.act(live.session(alice), alice, assign)
    for token in (mallory, alice):
        reply = live.act(live.session(token), token, {**COUNT, "table": "secret_plam"})
        assert reply.code == "unknown_table"
        assert b"secret_plan" not in reply.body.replace(b"secret_plam", b"")


class Exploit:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (Path.touch, (Path("/tmp/fpinq-was-exploited"),))  # type: ignore[return-value]


@pytest.mark.parametrize(
    "body",
    [
        pickle.dumps({"request_id": "r"}),
        pickle.dumps(Exploit()),
        b"ARROW1\x00\x00" + bytes(64),
        b"PAR1" + bytes(64),
        b"!!python/object/apply:os.system ['true']",
        b"lambda x: x.age > 17",
        json.dumps({"request_id": "r", "action": {"op": "assign", "py/object": "os.system"}}).encode(),
        json.dumps({"request_id": "r", "action": {"op": "query", "__class__": "x"}}).encode(),
        json.dumps({"request_id": "r", "action": "__import__('os')"}).encode(),
    ],
)
@pytest.mark.parametrize(
    "kind", ["application/json", "application/python-pickle", "application/vnd.apache.arrow.stream"]
)
def test_code_loading_json_is_all_that_is_read(live: Live, body: bytes, kind: str) -> None:
    token = live.token()
    path = f"/sessions/{live.session(token)}/actions"
    reply = live.send("POST", path, body, token, Content_Type=kind)
    assert (reply.status, reply.code) == (400, "bad_wire")
    assert not Path("/tmp/fpinq-was-exploited").exists()


# ── collusion ────────────────────────────────────────────────────────────────────────


def test_collusion_all_analysts_together_spend_the_budget_and_no_more(tmp_path: Path) -> None:
    caps = {"*": Fraction(2, 5)}
    with serve(tmp_path, people(1, ROWS, caps=caps)) as live:
        tables = [live.connect(f"analyst{i}")["people"] for i in range(8)]

        def spend(table: fp.Table) -> Fraction:
            spent = Fraction(0)
            for _ in range(20):
                with suppress(fp.BudgetExceeded):
                    spent += table.noisy_count("1/25").charged  # type: ignore[operator]
            return spent

        with ThreadPoolExecutor(8) as pool:
            each = list(pool.map(spend, tables))
        assert sum(each) == 1
        assert max(each) <= Fraction(2, 5)
        assert live.left() == 0


# ── refund on failure ────────────────────────────────────────────────────────────────


def test_refund_on_failure_the_budget_is_the_same_whether_the_engine_failed_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []
    for fails in (False, True):
        folder = tmp_path / str(fails)
        folder.mkdir()
        with serve(folder, people(1, ROWS)) as live:
            token = live.token()
            session = live.session(token)
            if fails:
                engine = live.house._engines["duckdb"]
                monkeypatch.setattr(engine, "measure", lambda *_: 1 / 0)
            live.act(session, token, COUNT, "r")
            left.append(live.act(session, token, {"op": "ask_budget"}).body)
            live.act(session, token, COUNT, "r")  # a retry charges nothing, and refunds nothing
            left.append(live.act(session, token, {"op": "ask_budget"}).body)
    assert len(set(left)) == 1
    assert b'"people":"9/10"' in left[0]


# ── same data, two budgets; data changes underneath ──────────────────────────────────


@pytest.mark.parametrize("how", ["copy", "symlink", "hard link", "same path"])
def test_same_data_two_budgets(tmp_path: Path, how: str) -> None:
    path, other = tmp_path / "people.csv", tmp_path / "other.csv"
    path.write_text("age,name\n" + "".join(f"{i},zebra{i}\n" for i in range(100)))
    match how:
        case "copy":
            shutil.copy(path, other)
        case "symlink":
            other.symlink_to(path)
        case "hard link":
            other.hardlink_to(path)
        case _:
            other = path
    schema = {"age": Type.INT64, "name": Type.STRING}
    again = DataSet("other", Fraction(1), {"other": TableConfig(str(other), schema)})
    with (
        pytest.raises(SameData),
        serve(tmp_path, {**people(1, str(path), schema=schema), "other": again}),
    ):
        pass


def test_data_changes_underneath_and_a_restart_does_not_help(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age\n1\n2\n")
    stated = people(1, str(path), schema={"age": Type.INT64})
    with serve(tmp_path, stated):
        pass
    path.write_text("age\n1\n3\n")
    with pytest.raises(fp.DataChanged), serve(tmp_path, stated):
        pass


# ── clock ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("now", [0.0, 4e9])
def test_clock_set_back_or_forward_changes_no_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: float
) -> None:
    with serve(tmp_path, people(1, ROWS)) as live:
        table = live.connect()["people"]
        table.noisy_count(0.5)
        monkeypatch.setattr(time, "time", lambda: now)
        assert table.remaining == Fraction(1, 2)
        table.noisy_count(0.5)
        with pytest.raises(fp.BudgetExceeded):
            table.noisy_count(0.1)


def test_clock_set_back_revives_no_revoked_token(tmp_path: Path) -> None:
    now = [1000.0]
    tokens = Tokens(tmp_path / "tokens", clock=lambda: now[0])
    token = tokens.create("alice", "analyst")
    tokens.revoke(token.split("_")[1])
    now[0] = 0.0
    with pytest.raises(fp.NotAuthenticated):
        tokens.bearer(f"Bearer {token}")


# ── state in lambdas ─────────────────────────────────────────────────────────────────


def test_lambdas_run_once_in_the_client_s_process_and_not_on_the_server(live: Live) -> None:
    seen: list[Any] = []
    threads: set[int] = set()

    def predicate(x: Any) -> Any:
        seen.append(x)
        threads.add(threading.get_ident())
        return x.age > 30

    live.connect()["people"].where(predicate).noisy_count(1)
    assert len(seen) == 1
    assert threads == {threading.get_ident()}
