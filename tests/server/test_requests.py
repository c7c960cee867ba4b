"""Request ids: a retry is told what was told before; limits and mistakes come before the charge."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.sql.plans import Lowering
from fpinq.model.actions import Assign
from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.queries import PrimitiveQuery
from fpinq.model.statistics import Integers, Records
from fpinq.model.transformations import Distinct, First, GroupBy, Join
from fpinq.runtime.refusals import TooLarge
from fpinq.server import Config
from fpinq.server.house import House
from fpinq.server.limits import Limits
from fpinq.server.sessions import Room
from server.live import COUNT, LIFTED, Live, people, serve


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    limits = {"body_bytes": 20_000, "parts": 10, "literal_rows": 20, "plan_depth": 8, "plan_nodes": 20}
    with serve(tmp_path, people(1), limits={**limits, "tables_per_session": 30}) as found:
        yield found


@pytest.fixture
def token(live: Live) -> str:
    return live.token()


@pytest.fixture
def session(live: Live, token: str) -> str:
    return live.session(token)


def test_the_same_request_gets_the_same_bytes_and_costs_nothing(live: Live, token: str, session: str) -> None:
    first = live.act(session, token, COUNT, "r1")
    assert first.status == 200
    assert [live.act(session, token, COUNT, "r1") for _ in range(5)] == [first] * 5
    assert live.left() == Fraction(9, 10)


def test_another_action_under_a_used_id_is_refused(live: Live, token: str, session: str) -> None:
    live.act(session, token, COUNT, "r1")
    reply = live.act(session, token, {**COUNT, "epsilon": "1/5"}, "r1")
    assert (reply.status, reply.code) == (409, "request_reused")
    assert live.left() == Fraction(9, 10)


def test_an_idempotency_key_is_a_request_id(live: Live, token: str, session: str) -> None:
    path = f"/sessions/{session}/actions"
    first = live.send("POST", path, {"action": COUNT}, token, Idempotency_Key="k")
    assert live.send("POST", path, {"action": COUNT}, token, Idempotency_Key="k") == first
    assert live.send("POST", path, {"action": COUNT}, token).code == "bad_wire"
    assert live.left() == Fraction(9, 10)


def test_an_idempotency_key_that_is_too_long_is_refused_and_not_cut(
    live: Live, token: str, session: str
) -> None:
    """Two that begin alike were one id to questions and statements."""
    for path, body in (
        (f"/sessions/{session}/actions", {"action": COUNT}),
        ("/questions", {"table": "people", "kind": "count", "epsilon": "1/10"}),
        ("/sql", {"statement": "SELECT COUNT(*) FROM people", "epsilon": "1/10"}),
    ):
        refused = live.send("POST", path, body, token, Idempotency_Key="k" * 101)
        assert refused.status in (400, 413), path
        assert live.send("POST", path, body, token, Idempotency_Key=path.ljust(100, "k")).status == 200
    assert live.left() == Fraction(7, 10)


def test_a_refusal_is_remembered_too(live: Live, token: str, session: str) -> None:
    dear = {**COUNT, "epsilon": "2"}
    assert live.act(session, token, dear, "r").json == {"observation": {"op": "bottom"}}
    assert live.act(session, token, dear, "r").json == {"observation": {"op": "bottom"}}
    assert live.left() == 1


def test_the_same_id_in_two_sessions_is_two_requests(live: Live, token: str) -> None:
    for _ in range(2):
        live.act(live.session(token), token, COUNT, "r")
    assert live.left() == Fraction(8, 10)


def test_many_at_once_under_one_id_are_charged_once_and_told_the_same(
    live: Live, token: str, session: str
) -> None:
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: live.act(session, token, COUNT, "r"), range(16)))
    assert len({reply.body for reply in replies}) == 1
    assert live.left() == Fraction(9, 10)


def test_the_answer_survives_the_server(tmp_path: Path) -> None:
    with serve(tmp_path, people(1)) as live:
        token = live.token()
        session = live.session(token)
        first = live.act(session, token, COUNT, "r")
    with serve(tmp_path, people(1)) as live:
        assert live.act(session, token, COUNT, "r") == first
        assert live.left() == Fraction(9, 10)


WHERE = {"op": "where", "predicate": {"op": "literal", "value": True, "type": "bool"}}


def _assign(
    transformation: Any, target: str = "t", arguments: tuple[str, ...] = ("people",)
) -> dict[str, Any]:
    return {"op": "assign", "target": target, "arguments": list(arguments), "transformation": transformation}


def _deep(levels: int) -> Any:
    tree: Any = {"op": "column", "name": "age"}
    for _ in range(levels):
        tree = {"op": "apply", "operator": "negate", "arguments": [tree]}
    return tree


def _query(**changed: Any) -> bytes:
    return json.dumps({"request_id": "r", "action": {**COUNT, **changed}}).encode()


MISTAKES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "bad_wire"),
    "not JSON": (b"{", "bad_wire"),
    "not UTF-8": (b'{"request_id":"\xff"}', "bad_wire"),
    "not an object": (b"[]", "bad_wire"),
    "a key twice": (b'{"request_id":"r","request_id":"r","action":{"op":"ask_budget"}}', "bad_wire"),
    "a key twice, deep": (_query()[:-2] + b',"epsilon":"1/2"}}', "bad_wire"),
    "NaN": (_query(epsilon=float("nan")), "bad_wire"),
    "Infinity": (_query(epsilon=float("inf")), "bad_wire"),
    "an endless number": (b'{"request_id":"r","action":' + b"9" * 10_000 + b"}", "bad_wire"),
    "no action": (b'{"request_id":"r"}', "bad_wire"),
    "no request id": (b'{"action":{"op":"ask_budget"}}', "bad_wire"),
    "a number for a request id": (b'{"request_id":1,"action":{"op":"ask_budget"}}', "bad_wire"),
    "an empty request id": (b'{"request_id":"","action":{"op":"ask_budget"}}', "bad_wire"),
    "a long request id": (b'{"request_id":"' + b"r" * 101 + b'","action":{"op":"ask_budget"}}', "too_large"),
    "an unknown key": (b'{"request_id":"r","action":{"op":"ask_budget"},"sudo":true}', "bad_wire"),
    "an unknown op": (_query(op="drop_table"), "bad_wire"),
    "no op": (b'{"request_id":"r","action":{}}', "bad_wire"),
    "a number for ε": (_query(epsilon=0.1), "bad_wire"),
    "ε of zero": (_query(epsilon="0"), "bad_epsilon"),
    "a negative ε": (_query(epsilon="-1/10"), "bad_epsilon"),
    "a tiny ε": (_query(epsilon="1/" + "9" * 30), "bad_epsilon"),
    "ε over zero": (_query(epsilon="1/0"), "bad_wire"),
    "ε with an exponent": (_query(epsilon="1e999999999"), "bad_wire"),
    "true for ε": (_query(epsilon=True), "bad_wire"),
    "an unknown table": (_query(table="nobody"), "unknown_table"),
    "no queries": (_query(queries=[]), "bad_query"),
    "two queries of one part": (_query(queries=[{"op": "count"}] * 2), "bad_query"),
    "an unknown field": (_query(refund=True), "bad_wire"),
    "a depth bomb": (b'{"request_id":"r","action":' + b"[" * 9000 + b"]" * 9000 + b"}", "bad_wire"),
    "a body above the limit": (b'{"request_id":"r","action":"' + b"x" * 20_000 + b'"}', "too_large"),
    "an expression too deep": (
        json.dumps({"request_id": "r", "action": _assign({"op": "where", "predicate": _deep(120)})}).encode(),
        "bad_wire",
    ),
    "too many parts": (
        _query(
            queries=[{"op": "count"}] * 11,
            by={"op": "partitioning", "key": {"op": "column", "name": "age"}, "keys": list(range(11))},
        ),
        "too_large",
    ),
    "too many frequencies": (
        _query(
            queries=[
                {
                    "op": "frequencies",
                    "of": {
                        "op": "clamp",
                        "value": {"op": "column", "name": "age"},
                        "lower": 0,
                        "upper": 2**23,
                    },
                }
            ]
        ),
        "too_large",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_a_fixed_code_and_charges_nothing(
    live: Live, token: str, session: str, mistake: str
) -> None:
    body, code = MISTAKES[mistake]
    before = live.house.ledger.head()
    reply = live.send("POST", f"/sessions/{session}/actions", body, token)
    assert 400 <= reply.status < 500
    assert reply.code == code
    assert reply.json["error"]["message"]
    assert live.house.ledger.head() == before
    assert live.left() == 1
    assert live.act(session, token, COUNT).status == 200  # and the server goes on


def test_a_session_that_holds_all_its_tables_may_still_use_their_names_again(
    live: Live, token: str, session: str
) -> None:
    for i in range(100):
        assert live.act(session, token, _assign(WHERE, f"t{i % 20}")).status == 200
    codes = [live.act(session, token, _assign(WHERE, f"u{i}")).status for i in range(20)]
    assert codes == [200] * 9 + [413] * 11  # 30 tables: the root, 20 that were there, 9 more
    assert live.act(session, token, _assign(WHERE, "t0")).status == 200


@pytest.mark.parametrize("missing", ["request_id", "action"])
def test_what_is_missing_is_said_to_be_missing(live: Live, token: str, session: str, missing: str) -> None:
    body = {"request_id": "1", "action": COUNT}
    del body[missing]
    reply = live.send("POST", f"/sessions/{session}/actions", body, token)
    assert reply.code == "bad_wire"
    assert reply.json["error"]["message"].startswith(f"'{missing}' is missing")


@pytest.mark.parametrize("first_looks", [1, 5])
def test_a_session_s_tables_are_counted_in_all_processes_together(tmp_path: Path, first_looks: int) -> None:
    config = Config(
        people(1), tmp_path / "tokens", str(tmp_path / "ledger"), limits=Limits(tables_per_session=9)
    )
    houses = [House(config), House(config)]
    session = houses[0].sessions.open("alice")

    def bind(house: House, variable: str) -> None:
        action = Assign(variable, Distinct(), ("people",))
        house.room.check(session, action, "alice")
        house.system.act(action, session=session, request_id=variable, analyst="alice")

    for i in range(first_looks):
        bind(houses[0], f"t{i}")
    for i in range(first_looks, 8):  # and the root
        bind(houses[i % 2], f"t{i}")
    for house in (*houses, House(config)):
        with pytest.raises(TooLarge):
            bind(house, "one too many")
        bind(house, "t0")
        house.close()


def test_the_tables_of_one_session_are_not_looked_up_under_everybody_s_lock() -> None:
    looked = []

    def look(session: str, targets: Sequence[str], analyst: str) -> int:
        looked.append(session)
        if session == "long":
            room.check("short", Assign("t", Distinct(), ("people",)), "bob")
        return 1

    room = Room(10, look)
    asked = ("long", Assign("t", Distinct(), ("people",)), "alice")
    asking = threading.Thread(target=room.check, args=asked, daemon=True)
    asking.start()
    asking.join(10)
    assert looked == ["long", "short"]
    assert not asking.is_alive()


def test_a_plan_that_is_too_deep_or_too_wide_is_refused_before_the_charge(
    live: Live, token: str, session: str
) -> None:
    for i in range(9):
        previous = f"deep{i - 1}" if i else "people"
        assert live.act(session, token, _assign(WHERE, f"deep{i}", (previous,))).status == 200
    assert live.act(session, token, {**COUNT, "table": "deep8"}).code == "too_large"
    for i in range(5):
        previous = f"wide{i - 1}" if i else "people"
        live.act(session, token, _assign({"op": "concat"}, f"wide{i}", (previous, previous)))
    assert live.act(session, token, {**COUNT, "table": "wide4", "epsilon": "1/1000"}).code == "too_large"
    assert live.left() == 1


def test_a_body_is_refused_while_it_streams(live: Live, token: str, session: str) -> None:
    """A gigabyte is announced, or sent in chunks without saying: little of it is read."""
    head = f"POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as announced:
        announced.sendall(f"{head}Content-Length: 1000000000\r\n\r\n".encode())
        assert b" 413 " in announced.recv(1000).splitlines()[0]
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as chunked:
        chunked.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        sent, block = 0, b"4000\r\n" + b" " * 0x4000 + b"\r\n"
        try:
            while sent < 50_000_000:
                chunked.sendall(block)
                sent += len(block)
        except OSError:
            pass  # closed on the other side
        assert sent < 50_000_000
    assert live.left() == 1


def test_too_many_a_second_are_refused_and_charged_nothing(tmp_path: Path) -> None:
    with serve(tmp_path, people(1), limits={"requests_per_second": 5}) as live:
        token = live.token()
        session = live.session(token)
        replies = [live.act(session, token, {"op": "ask_budget"}) for _ in range(30)]
        assert {reply.status for reply in replies} == {200, 429}
        assert next(r for r in replies if r.status == 429).code == "too_many_requests"


class Slow:
    """A mechanism that waits until it may go on."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.waiting = threading.Semaphore(0)

    def __call__(self, query: PrimitiveQuery, measured: Integers, epsilon: Fraction) -> tuple[int, ...]:
        self.waiting.release()
        assert self.go.wait(20)
        return (42,)


def test_too_many_at_a_time_are_refused_and_charged_nothing(tmp_path: Path) -> None:
    slow = Slow()
    with serve(tmp_path, people(1), limits={"concurrent_requests": 2}, mechanism=slow) as live:
        token = live.token()
        sessions = [live.session(token) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            first = [pool.submit(live.act, s, token, COUNT) for s in sessions[:2]]
            for _ in first:
                assert slow.waiting.acquire(timeout=10)
            refused = live.act(sessions[2], token, COUNT)
            slow.go.set()
            assert [f.result().status for f in first] == [200, 200]
        assert refused.code == "too_many_requests"
        assert live.left() == Fraction(8, 10)


def test_a_retry_while_the_first_is_under_way_is_told_the_same(tmp_path: Path) -> None:
    slow = Slow()
    with serve(tmp_path, people(1), mechanism=slow) as live:
        token = live.token()
        session = live.session(token)
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(live.act, session, token, COUNT, "r") for _ in range(2)]
            assert slow.waiting.acquire(timeout=10)
            slow.go.set()
            assert both[0].result() == both[1].result()
        assert live.left() == Fraction(9, 10)


def test_a_query_out_of_time_stays_charged_and_tells_a_reference_only(tmp_path: Path) -> None:
    rows = [{"a": i} for i in range(3000)]
    with serve(tmp_path, people(1, rows), limits={**LIFTED, "query_seconds": 1}) as live:
        table = live.connect(retries=0)["people"]
        # A self-join of everything with everything: 9 · 10⁶ pairs, then groups of them.
        one = table.with_columns(lambda x: {"k": x.a * 0})
        pairs = one.join(
            one, on="k", left=fp.first(3000), right=fp.first(3000), select=lambda p, q: p.a * 3000 + q.a
        )
        slow = pairs.group_by("value").select(lambda g: g.count()).distinct()
        began = time.monotonic()
        with pytest.raises(fp.EngineError) as failed:
            slow.noisy_count(Fraction(1, 10**9))
        assert len(failed.value.reference) == 8
        assert live.left() == 1 - slow.price(Fraction(1, 10**9))  # type: ignore[operator]
        assert time.monotonic() - began < 20


def test_a_charged_count_costs_at_most_three_durable_commits(
    live: Live, token: str, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = live.house.ledger._store
    made: list[bool] = []
    original = store.writing

    def counted(*, durable: bool) -> Any:
        made.append(durable)
        return original(durable=durable)

    monkeypatch.setattr(store, "writing", counted)
    live.act(session, token, COUNT)
    assert sum(made) <= 3
    assert made.count(False) == 0
    assert os.path.exists(live.house.config.ledger)


def test_an_interrupt_between_two_statements_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time ran out while a plan was lowered, or waited for a lock: nothing stopped it then."""
    engine = DuckDB(steady=True)
    engine.add_root("t", [{"a": i} for i in range(3000)])
    everything = Join(
        (Literal.of(1),), (Literal.of(1),), First(3000), First(3000),
        (("v", Apply("add", (Column("l.a"), Column("r.a")))),),
    )  # fmt: skip
    plan = Term(GroupBy((("v", Column("v")),), ()), (Term(everything, (RootTable("t"), RootTable("t"))),))
    lowered = Lowering.plan

    def late(self: Lowering, plan: Plan) -> Any:
        time.sleep(0.3)  # nothing runs yet
        return lowered(self, plan)

    monkeypatch.setattr(Lowering, "plan", late)
    began = time.monotonic()
    with pytest.raises(fp.EngineError):
        engine.measure(plan, None, [Records()], 0.1)
    assert time.monotonic() - began < 10
    assert engine.measure(RootTable("t"), None, [Records()], 60) == [{0: 3000}]
    engine.close()


# ── a token that ends while its request is under way ─────────────────────────────────

ON_THE_WAY: list[tuple[str, dict[str, Any]]] = [
    ("/sessions/{session}/actions", {"action": COUNT}),
    ("/questions", {"table": "people", "kind": "count", "epsilon": "1/10"}),
    ("/sql", {"statement": "SELECT COUNT(*) FROM people", "epsilon": "1/10"}),
]


@pytest.mark.parametrize(("path", "body"), ON_THE_WAY)
def test_a_token_that_ends_while_the_body_arrives_spends_nothing(
    tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    """It was asked for once, with the head of the request, and the body could be as late as a body may."""
    with serve(tmp_path, people(1)) as live:
        token = live.token()
        sent = json.dumps({**body, "request_id": "1"}).encode()
        head = (
            f"POST {path.format(session=live.session(token))} HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: {len(sent)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", live.port), timeout=20) as connection:
            connection.sendall(head.encode() + sent[:-1])
            time.sleep(0.3)
            live.house.tokens.revoke("alice")
            connection.sendall(sent[-1:])
            assert connection.recv(100).startswith(b"HTTP/1.1 401")
        assert live.left() == 1


def test_a_token_that_ends_during_a_question_asks_no_second_query(tmp_path: Path) -> None:
    def mechanism(query: Any, *_: Any) -> Any:
        live.house.tokens.revoke("alice")
        return (50,) * query.integers

    with serve(tmp_path, people(1, columns={"age": {"bounds": [0, 110]}}), mechanism=mechanism) as live:
        question = {"table": "people", "kind": "average", "of": "age", "epsilon": "1/10"}
        assert live.send("POST", "/questions", question, live.token()).status == 401
        assert live.left() > Fraction(9, 10)


def test_a_token_that_ends_while_it_waits_for_news_reads_none(tmp_path: Path) -> None:
    with serve(tmp_path, people(1)) as live, ThreadPoolExecutor(1) as aside:
        auditor, alice = live.token("audrey", "auditor"), live.token()
        session = live.session(alice)
        waiting = aside.submit(live.send, "GET", "/trace?wait=20&after=5", token=auditor)
        time.sleep(0.3)
        live.house.tokens.revoke("audrey")
        for _ in range(9):
            live.act(session, alice, {**COUNT, "epsilon": "1/100"})
        assert waiting.result().status == 401
