"""Equal bytes on neighbouring data, and replies at public times: what a reply is made of is public."""

import json
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.client.remote import Catalog, Http, RemoteSystem
from fpinq.model.expressions import Type
from fpinq.model.queries import Choice, PrimitiveQuery, Rank
from fpinq.model.statistics import Integers
from fpinq.runtime.mechanisms import Released
from fpinq.server.quantum import until_release
from server.live import COUNT, LIFTED, Live, people, serve

ROWS = [{"age": age, "name": name} for age, name in [(30, "a"), (40, "b b"), (50, ""), (60, "7")]]
# One person more, for whom every expression below has no value or an extreme one.
ONE_MORE = [*ROWS, {"age": 37, "name": "9" * 5000}]


def same_whatever(query: PrimitiveQuery, measured: Integers, epsilon: Fraction) -> Released:
    """A mechanism whose answer is the same on any data: what else is in a reply then shows."""
    if isinstance(query, Rank | Choice):
        return 0
    return (7,) * query.integers


class Recording(Http):
    """Notes every action that a program sends."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.sent: list[bytes] = []

    def _once(self, method: str, path: str, data: bytes | None, seconds: float) -> Any:
        if path.endswith("/actions"):
            assert data is not None
            self.sent.append(data)
        return super()._once(method, path, data, seconds)


def hostile_program(data: fp.Table) -> None:
    """Fails, overflows, is empty or refused only for the person who is in one data set and not the other."""
    for f in (
        lambda x: 1 / (x.age - 37),
        lambda x: 1 // (x.age - 37),
        lambda x: 1 % (x.age - 37),
        lambda x: (x.age - 37).log(),
        lambda x: (x.age * 10.0).exp(),
        lambda x: x.age * (2**62),
        lambda x: x.name.cast("int64"),
        lambda x: x.name.cast("date").year(),
    ):
        bounds = (-(2**50), 2**50)
        table = data.select(lambda x, f=f: {"v": f(x)})  # type: ignore[misc]
        table.noisy_sum("1/100", "v", bounds=bounds)
        table.noisy_average("1/100", "v", bounds=bounds)
        table.noisy_median("1/100", "v", bounds=bounds)
    parts = data.partition(lambda x: x.age, keys=[30, 37, 99])
    for part in parts.values():
        part.noisy_count("1/50")
    data.query("1/50", fp.count(), by=lambda x: x.age, keys=[30, 37])
    data.where(lambda x: x.age == 37).group_by(lambda x: x.name).select(lambda g: g.count()).noisy_count(
        "1/100"
    )
    data.join(data, on="age", left=fp.unique(), right=fp.first(2)).noisy_count("1/100")
    data.noisy_histogram("1/100", lambda x: x.age, bounds=(0, 100), bins=5)
    data.exponential_mechanism("1/100", ["a", "9"], lambda x, c: x.name.starts_with(c))
    for refused in (
        lambda: data.noisy_count(100),
        lambda: data.where(lambda x: x.agee > 1),
        lambda: data.partition(lambda x: x.age, keys=[1, 1]),
    ):
        with pytest.raises(fp.FpinqError):
            refused()
    data.remaining  # noqa: B018 - an action like any other
    data.price(1)
    data.scaling_factor  # noqa: B018


def raw_replies(live: Live, bodies: list[bytes]) -> list[bytes]:
    """Every byte that comes back for each body, over one connection."""
    token = live.token()
    path = f"/sessions/{live.session(token)}/actions"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    replies = []
    with socket.create_connection(("127.0.0.1", live.port), timeout=30) as connection:
        reader = connection.makefile("rb")
        for body in bodies:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            lines = []
            while (line := reader.readline()) != b"\r\n":
                lines.append(line)
            length = next(int(x.split(b":")[1]) for x in lines if x.lower().startswith(b"content-length"))
            replies.append(b"".join(lines) + reader.read(length))
        reader.close()
    return replies


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_all_bytes_of_all_replies_are_equal_on_neighbouring_data(tmp_path: Path, engine: str) -> None:
    replies = []
    sent: list[bytes] = []
    schema = {"age": Type.INT64, "name": Type.STRING}
    for number, rows in enumerate((ROWS, ONE_MORE)):
        folder = tmp_path / str(number)
        folder.mkdir()
        data_sets = people(5, rows, engine=engine, schema=schema)
        with serve(folder, data_sets, mechanism=same_whatever) as live:
            if not sent:
                recording = Recording(live.url, live.token(), 30, 0)
                hostile_program(Catalog(RemoteSystem(recording))["people"])
                sent = recording.sent
                assert len(sent) > 50
        folder = tmp_path / f"{number}-again"
        folder.mkdir()
        with serve(folder, data_sets, mechanism=same_whatever) as live:
            metrics_before = live.send("GET", "/metrics").body
            replies.append([*raw_replies(live, sent), metrics_before, live.send("GET", "/metrics").body])
    assert replies[0] == replies[1]
    codes = {json.loads(r.split(b"\r\n")[-1]).get("error", {}).get("code") for r in replies[0][:-2]}
    assert codes == {None}


def test_the_release_is_the_next_multiple_of_the_quantum() -> None:
    assert until_release(0.001, 0.25) == pytest.approx(0.249)
    assert until_release(0.25, 0.25) == 0
    assert until_release(0, 0.25) == 0.25
    assert until_release(0.26, 0.25) == pytest.approx(0.24)
    assert until_release(7.3, 0.25) == pytest.approx(0.2)


def test_answers_and_refusals_leave_at_multiples_of_the_quantum(tmp_path: Path) -> None:
    quantum = Fraction(3, 10)

    def takes_its_time(query: PrimitiveQuery, measured: Integers, epsilon: Fraction) -> Released:
        if epsilon < Fraction(1, 100):
            time.sleep(0.35)
        return (7,)

    with serve(tmp_path, people(1), mechanism=takes_its_time, quantum_seconds=quantum) as live:
        token = live.token()
        session = live.session(token)
        path = f"/sessions/{session}/actions"
        for body, wrong, quanta in [
            ({"request_id": "1", "action": COUNT}, None, 1),
            ({"request_id": "2", "action": {"op": "ask_budget"}}, None, 1),
            ({"request_id": "3", "action": {"op": "nonsense"}}, None, 1),
            ({"request_id": "4", "action": {**COUNT, "epsilon": "5"}}, None, 1),
            (b"x" * 2_000_000, None, 1),
            ({"request_id": "5", "action": COUNT}, "fpq_0_0", 1),
            ({"request_id": "6", "action": {**COUNT, "epsilon": "1/1000"}}, None, 2),
        ]:
            began = time.monotonic()
            try:
                live.send("POST", path, body, wrong or token)
            except OSError:
                continue  # the connection was closed while the body was sent
            elapsed = time.monotonic() - began
            assert elapsed >= quanta * quantum - 0.01  # a busy machine is late, never early


def test_what_is_told_of_data_sets_leaves_at_multiples_of_the_quantum_too(tmp_path: Path) -> None:
    """What is left falls when a query is charged: a fast look would tell when that was."""
    with serve(tmp_path, people(1), quantum_seconds=Fraction(3, 10)) as live:
        token = live.token()
        for path in ("/datasets", "/datasets/people", "/metrics", "/healthz", "/nowhere"):
            began = time.monotonic()
            live.send("GET", path, token=token)
            assert time.monotonic() - began >= 0.29


def test_more_work_for_one_record_than_allowed_is_refused_before_the_charge(tmp_path: Path) -> None:
    """A table of 10¹² rows if one person is there, and of none if not: running out of time told which."""
    with serve(tmp_path, people(1), limits={**LIFTED, "rows_per_record": 10_000}) as live:
        table = live.connect()["people"].where(lambda x: x.age == 37)
        for _ in range(2):
            table = table.select_many(lambda x: [x.age] * 100, at_most=100).select(lambda x: {"age": x.value})
        table.noisy_count(Fraction(1, 10**9))
        left = live.left()
        with pytest.raises(fp.FpinqError, match="at most 10000 rows") as refused:
            table.concat(table).noisy_count(Fraction(1, 10**9))
        assert type(refused.value).__name__ == "TooLarge"
        assert live.left() == left


def test_every_query_that_may_be_under_way_has_a_thread(tmp_path: Path) -> None:
    """A query that waited for others was charged late, and what is left showed how long they took."""
    started, go = threading.Semaphore(0), threading.Event()

    def slow(query: PrimitiveQuery, measured: Integers, epsilon: Fraction) -> Released:
        started.release()
        go.wait(30)
        return (7,)

    with serve(tmp_path, people(1), mechanism=slow, limits={"concurrent_requests": 40}) as live:
        token = live.token()
        session = live.session(token)
        with ThreadPoolExecutor(40) as pool:
            asked = [pool.submit(live.act, session, token, {**COUNT, "epsilon": "1/100"}) for _ in range(40)]
            try:
                assert all(started.acquire(timeout=20) for _ in range(40))
                assert live.left() == Fraction(6, 10)
            finally:
                go.set()
            assert {each.result().status for each in asked} == {200}


def test_whoever_has_no_token_takes_no_place(tmp_path: Path) -> None:
    limits = {"concurrent_requests": 4}
    with serve(tmp_path, people(1), limits=limits, quantum_seconds=Fraction(1)) as live:
        token = live.token()
        session = live.session(token)
        with ThreadPoolExecutor(16) as pool:
            strangers = [pool.submit(live.act, session, "fpq_0_0", COUNT) for _ in range(16)]
            time.sleep(0.3)
            assert live.act(session, token, COUNT).status == 200
            assert {each.result().status for each in strangers} == {401}


def test_no_name_keeps_auditors_from_reading_the_trace(tmp_path: Path) -> None:
    with serve(tmp_path, people(1)) as live:
        token, auditor = live.token(), live.token("ann", "auditor")
        session = live.session(token)
        target = {
            "op": "assign", "target": "x\ud800", "arguments": ["people"], "transformation": {"op": "distinct"}
        }  # fmt: skip
        assert live.act(session, token, target).status == 400
        assert live.act(session, token, {**target, "target": "\x1b[31m\n"}).status == 200
        assert live.send("GET", "/trace", token=auditor).status == 200


def test_public_tables_that_grow_without_end_are_stopped(tmp_path: Path) -> None:
    with serve(tmp_path, people(1), limits={**LIFTED, "query_seconds": 1, "literal_rows": 9000}) as live:
        live.connect()  # a session of its own
        token = live.token()
        session = live.session(token)
        schema = {"op": "schema", "columns": [["a", "int64"]]}
        rows = [[i] for i in range(9000)]
        literal = {"op": "literal_table", "schema": schema, "rows": rows}
        made = live.act(
            session, token, {"op": "assign", "target": "t", "arguments": [], "transformation": literal}
        )
        assert made.status == 200, made.body
        one = {"op": "literal", "value": 1, "type": "int64"}
        join = {
            "op": "join", "left_keys": [one], "right_keys": [one], "left": {"op": "all"},
            "right": {"op": "all"}, "record": [["a", {"op": "column", "name": "l.a"}]],
        }  # fmt: skip
        for target, arguments in (("u", ["t", "t"]), ("v", ["u", "t"])):
            made = live.act(
                session,
                token,
                {"op": "assign", "target": target, "arguments": arguments, "transformation": join},
            )
            assert made.status == 200, made.body
        began = time.monotonic()
        told = live.act(session, token, {**COUNT, "table": "v"})
        assert told.code == "engine_error"
        assert time.monotonic() - began < 20
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        time.sleep(1)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 0.9  # and nothing runs on
