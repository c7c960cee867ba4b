"""One analyst cannot shut out others: not with slow bodies, slow drawing, long sessions or many requests."""

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.ledger import wire
from fpinq.model.actions import Query
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Column, Type
from fpinq.model.queries import Choice, Ranks
from fpinq.runtime.deadline import within
from fpinq.runtime.mechanisms import draw
from fpinq.runtime.refusals import TooManyRequests
from fpinq.server import actions, bodies, limits
from fpinq.server.limits import Limits, Rate
from fpinq.server.places import VISIT, Places
from fpinq.server.quantum import AtQuanta
from fpinq.server.tokens import Bearer
from fpinq.server.turns import InTurn, Turns
from server.live import Live, people, serve

VALUES = 5_000
ROWS = [{"age": i} for i in range(VALUES)]


def asking(query: Any) -> dict[str, Any]:
    action: dict[str, Any] = wire.to_json(Query("people", Fraction(1, 100), (query,)))
    return action


def quantiles(number: int, values: int = VALUES) -> Ranks:
    return Ranks(Clamp(Column("age"), 0, values), tuple(Fraction(i, number) for i in range(number)))


def dribbling(live: Live, token: str, session: str) -> socket.socket:
    """A request whose body does not come to its end."""
    connection = socket.create_connection(("127.0.0.1", live.port), timeout=30)
    head = f"POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    return connection


def test_whoever_takes_all_their_places_leaves_others_theirs(tmp_path: Path) -> None:
    quantum = Fraction(1)
    limits = {"concurrent_requests": 6, "query_seconds": 1}
    values = 18 * VALUES  # in arrays, drawing for a thousand quantiles of fewer is done in time
    data_sets = people(1, [{"age": i} for i in range(values)], schema={"age": Type.INT64})
    with serve(tmp_path, data_sets, limits=limits, quantum_seconds=quantum) as live, ExitStack() as held:
        greedy, other = live.token("greedy"), live.token("other")
        sessions = {token: live.session(token) for token in (greedy, other)}
        for _ in range(3):
            held.enter_context(dribbling(live, greedy, sessions[greedy]))
        pool = held.enter_context(ThreadPoolExecutor(3))
        slow = [
            pool.submit(live.act, sessions[greedy], greedy, asking(quantiles(1000, values))) for _ in range(3)
        ]
        time.sleep(0.7)
        assert live.act(sessions[greedy], greedy, {"op": "ask_budget"}).code == "too_many_requests"
        began = time.monotonic()
        asked = live.act(sessions[other], other, {"op": "ask_budget"})
        took = time.monotonic() - began
        assert asked.status == 200
        assert took < 2 * quantum  # it left at the first multiple
        # And time ran out for the drawing, too: after the charge, which stands.
        assert {each.result().code for each in slow} == {"engine_error"}
        assert live.left() == 1 - 3 * Fraction(1, 100)


def test_others_are_answered_while_long_bodies_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them were read where everybody's requests arrive: one analyst's forty took 16 s."""
    go, parse = threading.Event(), bodies.parse
    inside: list[int] = []

    def slowly(raw: bytes, limits: Any) -> Any:
        if len(raw) > actions.SHORT:
            inside.append(len(inside))
            assert go.wait(30)
        return parse(raw, limits)

    monkeypatch.setattr(bodies, "parse", slowly)
    with serve(tmp_path, people(1)) as live, ThreadPoolExecutor(3) as pool:
        greedy, other = live.token("greedy"), live.token("other")
        session = live.session(greedy)
        long = {"op": "ask_budget", "unknown": "x" * actions.SHORT}
        asked = [pool.submit(live.act, session, greedy, long) for _ in range(3)]
        while not inside:
            time.sleep(0.01)
        assert live.act(live.session(other), other, {"op": "ask_budget"}).status == 200
        assert live.act(session, greedy, {"op": "ask_budget"}).status == 200  # a short one of their own, too
        assert (len(inside), any(each.done() for each in asked)) == (1, False)
        go.set()
        assert {each.result().code for each in asked} == {"bad_wire"}
        assert len(inside) == 3


def test_drawing_stops_when_its_time_is_over() -> None:
    began = time.monotonic()
    with within(0.2), pytest.raises(TimeoutError):
        draw(quantiles(1000), dict.fromkeys(range(VALUES), 1), Fraction(1))
    assert time.monotonic() - began < 5


def test_an_analyst_s_requests_stand_in_line_for_the_ledger_behind_each_other() -> None:
    """A session of many actions is replayed under the ledger's lock, once for each that waits."""
    inside: list[str] = []
    entered, go = threading.Semaphore(0), threading.Event()

    class Slow:
        answer = register = check = drop = None

        def act(self, session: str, action: object, request_id: object, analyst: str, *more: object) -> None:
            inside.append(analyst)
            entered.release()
            assert go.wait(20)

    record: Any = InTurn(Slow())  # type: ignore[arg-type]
    with ThreadPoolExecutor(5) as pool:
        for analyst in ("greedy", "greedy", "greedy", "other"):
            pool.submit(record.act, "s", None, None, analyst)
        assert entered.acquire(timeout=10)
        assert entered.acquire(timeout=10)
        time.sleep(0.2)
        assert sorted(inside) == ["greedy", "other"]
        go.set()
    assert len(inside) == 4


def test_who_watches_over_analysts_is_not_shut_out_by_them(tmp_path: Path) -> None:
    limits = {"concurrent_requests": 1, "concurrent_requests_in_all": 2}
    with serve(tmp_path, people(1), limits=limits) as live, ExitStack() as held:
        for name in ("a", "b"):
            token = live.token(name)
            held.enter_context(dribbling(live, token, live.session(token)))
        time.sleep(0.3)
        assert live.send("GET", "/datasets", token=live.token("c")).code == "too_many_requests"
        assert live.send("POST", "/datasets/people/freeze", token=live.token("o", "owner")).status == 200
        assert live.send("GET", "/trace", token=live.token("t", "auditor")).status == 200


def test_a_long_reply_that_nobody_reads_keeps_its_place() -> None:
    """A long answer is free to ask for again: who does not read it must not be sent it without end."""
    places = Places(Limits(concurrent_requests=1))
    bearer = Bearer("greedy", "analyst")

    async def answers(scope: Any, receive: Any, send: Any) -> None:
        scope[VISIT].enter(bearer)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"7" * 100_000})

    async def program() -> bytes:
        read, sent = asyncio.Event(), bytearray()

        async def send(message: Any) -> None:  # as uvicorn does it: whoever sends more waits for the reader
            if sent:
                await read.wait()
            sent.extend(message.get("body", b""))

        asked = asyncio.create_task(AtQuanta(answers, 0.0, places)({"type": "http"}, None, send))  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        with pytest.raises(TooManyRequests):
            places.take(bearer)
        read.set()
        await asked
        places.take(bearer)
        return bytes(sent)

    assert asyncio.run(program()) == b"7" * 100_000


CHOICES = {
    "candidates": Choice(tuple(Clamp(Column("age"), 0, i) for i in range(1, 7))),
    "fractions": quantiles(6),
}


@pytest.mark.parametrize("limit", CHOICES)
def test_candidates_and_fractions_are_bounded_before_the_charge(tmp_path: Path, limit: str) -> None:
    asked = asking(CHOICES[limit])
    for most, status in ((5, 413), (6, 200)):
        folder = tmp_path / str(most)
        folder.mkdir()
        with serve(folder, people(1), limits={limit: most}) as live:
            token = live.token()
            assert live.act(live.session(token), token, asked).status == status
            assert live.left() == (1 if status == 413 else Fraction(99, 100))
            assert live.send("GET", "/limits").json[limit] == most


def test_one_analyst_s_places_are_not_all_places() -> None:
    with pytest.raises(fp.ProgramError, match="shut out"):
        Limits(concurrent_requests=10, concurrent_requests_in_all=10)


def test_what_is_kept_of_analysts_who_are_gone_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their turns' locks when nobody holds them; their buckets when these are full, and there are many."""
    monkeypatch.setattr(limits, "BUCKETS", 10)
    now = [0.0]
    rate = Rate(2, clock=lambda: now[0])
    for number in range(10):
        rate.take(f"a{number}")
    rate.take("a0")
    now[0] += 0.5  # the others are full again
    rate.take("more")
    assert set(rate._buckets) == {"a0", "more"}
    rate.take("a0")
    with pytest.raises(TooManyRequests):
        rate.take("a0")
    turns = Turns(TooManyRequests("late"))
    for number in range(100):
        with turns.of(f"a{number}"):
            assert len(turns._locks) == 1
    with turns.of("a"), within(0.01), pytest.raises(TooManyRequests), turns.of("a"):
        pass
    assert len(turns._locks) == 0
