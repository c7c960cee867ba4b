"""Equal bytes on neighbouring data, and replies at public times: what a reply is made of is public."""

import json
import socket
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.client.remote import Catalog, Http, RemoteSystem
from fpinq.model.expressions import Type
from fpinq.model.queries import Choice, PrimitiveQuery, Rank, Statistic
from fpinq.runtime.mechanisms import Released, coordinates
from fpinq.server.actions import until_release
from server.live import COUNT, Live, people, serve

ROWS = [{"age": age, "name": name} for age, name in [(30, "a"), (40, "b b"), (50, ""), (60, "7")]]
# One person more, for whom every expression below has no value or an extreme one.
ONE_MORE = [*ROWS, {"age": 37, "name": "9" * 5000}]


def same_whatever(query: PrimitiveQuery, statistic: Statistic, epsilon: Fraction) -> Released:
    """A mechanism whose answer is the same on any data: what else is in a reply then shows."""
    if isinstance(query, Rank | Choice):
        return 0
    return (7,) * len(coordinates(query))


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

    def takes_its_time(query: PrimitiveQuery, statistic: Statistic, epsilon: Fraction) -> Released:
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
            assert elapsed >= quanta * quantum - 0.01
            assert elapsed < quanta * quantum + 0.25  # a busy machine is late, never early
