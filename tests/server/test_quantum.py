"""Every reply at the quantum: whatever is asked, at whatever address, by whomever, and however it fails."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest
from starlette.routing import Route

from fpinq.server import Config, create_app
from fpinq.server.dashboard import load
from fpinq.server.house import House
from fpinq.server.limits import Limits
from fpinq.server.places import Places
from fpinq.server.quantum import AtQuanta
from server.live import COUNT, people

QUANTUM = 0.1
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "FETCH"]
LIMITS = Limits(requests_per_second=10**6, concurrent_requests=400, concurrent_requests_in_all=500)
# How many requests are under way at a time.
TOGETHER = 200


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    token: str | None
    body: bytes = b""

    def scope(self) -> dict[str, Any]:
        headers = [] if self.token is None else [(b"authorization", f"Bearer {self.token}".encode())]
        path, _, query = self.path.partition("?")
        return {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": self.method,
            "scheme": "http", "path": unquote(path), "raw_path": path.encode(), "root_path": "",
            "query_string": query.encode(), "headers": headers, "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80), "state": {},
        }  # fmt: skip


class Told(NamedTuple):
    """What came back, and after how many seconds it began."""

    status: int
    after: float


async def ask(app: Any, asked: Asked) -> Told:
    """Give a request to the application."""
    began = time.monotonic()
    told: list[Told] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": asked.body, "more_body": False}

    async def send(message: Any) -> None:
        told.append(Told(message.get("status", 0), time.monotonic() - began))

    with suppress(RuntimeError):  # a handler that failed: the server under the application is told, too
        await app(asked.scope(), receive, send)
    return told[0]


def test_a_reply_does_not_begin_before_its_time_where_a_wait_ends_too_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loop that counts in milliseconds rounds: replies began up to one before a multiple."""
    slept = asyncio.sleep

    async def shorter(seconds: float) -> None:
        await slept(seconds / 2)

    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": []})

    monkeypatch.setattr("fpinq.server.quantum.asyncio.sleep", shorter)
    told = asyncio.run(ask(AtQuanta(refuse, QUANTUM, Places(LIMITS)), Asked("GET", "/", None)))
    assert told.after >= QUANTUM


def ask_all(app: Any, requests: list[Asked]) -> list[Told]:
    """Many requests, some at a time."""

    async def in_turns() -> list[Told]:
        told: list[Told] = []
        for first in range(0, len(requests), TOGETHER):
            told += await asyncio.gather(*(ask(app, asked) for asked in requests[first:][:TOGETHER]))
        return told

    return asyncio.run(in_turns())


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Any]:
    config = Config(
        people(1),
        tmp_path / "tokens",
        str(tmp_path / "ledger"),
        quantum_seconds=Fraction(QUANTUM).limit_denominator(),
        limits=LIMITS,
    )
    app = create_app(config)
    yield app
    app.state.house.close()


def tokens_of(house: House) -> list[str | None]:
    held = [house.tokens.create(role, role) for role in ("analyst", "auditor", "owner")]
    return [None, "fpq_0_0", held[0][:-1] + "x", *held]


def addresses(app: Any, house: House, random: Random) -> list[str]:
    """Every route there is, filled in, and addresses near them that are none."""
    session = house.sessions.open("analyst")
    words = [session, "people", "actions", "x/actions", "a%2Fb", "%ff", "..", "", "x" * 3000]
    known = [
        route.path.replace("{session}", session).replace("{variable:path}", word).replace("{name}", word)
        for route in app.routes
        if isinstance(route, Route)
        for word in ("people", "actions", "x/actions")
    ]
    near = [
        path + end for path in known for end in ("/", "/actions", "//actions", "?x=/actions", "%2Factions")
    ]
    wild = ["/" + "/".join(random.choices(words, k=random.randint(1, 4))) for _ in range(60)]
    return [*dict.fromkeys(known), *random.sample(near, 60), *wild, "/actions", "/x/actions", "//", ""]


def test_no_address_method_or_token_is_replied_to_before_the_quantum(app: Any) -> None:
    """`/x/actions`, and a table of that name, were answered at once."""
    random, house = Random(11), app.state.house
    body = json.dumps({"request_id": "r", "action": COUNT}).encode()
    tokens = tokens_of(house)
    requests = [
        Asked(method, path, token, random.choice([b"", body, b"{", b"x" * 2_000_000]))
        for path in addresses(app, house, random)
        for method, token in random.sample(list(product(METHODS, tokens)), 8)
    ]
    early = [
        (asked.method, asked.path, told)
        for asked, told in zip(requests, ask_all(app, requests), strict=True)
        if told.after < QUANTUM - 0.001  # a busy machine is late, never early
    ]
    # The page's files are the same for everybody: they are all that is replied to at once.
    files = load()
    assert [(m, p) for m, p, _ in early if m not in ("GET", "HEAD") or p.partition("?")[0] not in files] == []


def test_the_requests_above_are_answered_and_refused_in_every_way(app: Any) -> None:
    """The test above says nothing about a kind of reply that none of its requests gets."""
    random, house = Random(11), app.state.house
    token = house.tokens.create("analyst", "analyst")
    act = f"/sessions/{house.sessions.open('analyst')}/actions"
    requests = [
        Asked(method, path, given, body)
        for method, path, given, body in [
            ("GET", "/datasets", token, b""),
            ("POST", "/sessions", token, b""),
            ("POST", act + "/", token, b""),
            ("POST", act, token, b"{"),
            ("POST", act, None, b""),
            ("GET", "/trace", token, b""),
            ("GET", "/nowhere", None, b""),
            ("GET", act, None, b""),
            ("POST", act, token, b"x" * 2_000_000),
            ("GET", f"/{random.random()}/actions", token, b""),
        ]
    ]
    told = ask_all(app, requests)
    assert [each.status for each in told] == [200, 201, 307, 400, 401, 403, 404, 405, 413, 404]
    assert all(each.after >= QUANTUM - 0.001 for each in told)


def test_a_failure_that_nobody_foresaw_is_told_at_the_quantum_too(
    app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = app.state.house

    def fail(*given: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(house, "catalog", fail)
    monkeypatch.setattr(house.sessions, "check", fail)
    token = house.tokens.create("analyst", "analyst")
    body = json.dumps({"request_id": "r", "action": COUNT}).encode()
    told = ask_all(app, [Asked("GET", "/datasets", token), Asked("POST", "/sessions/x/actions", token, body)])
    assert [each.status for each in told] == [500, 500]
    assert all(each.after >= QUANTUM - 0.001 for each in told)


def test_a_body_that_comes_late_does_not_choose_when_the_quantum_begins(app: Any) -> None:
    """The last byte just before a multiple: whether the work ends before it, too, would be seen."""
    house: House = app.state.house
    token, session = house.tokens.create("analyst", "analyst"), house.sessions.open("analyst")
    body = json.dumps({"request_id": "late", "action": COUNT}).encode()
    asked = Asked("POST", f"/sessions/{session}/actions", token)
    pieces, arrived, told = [body[:-1], body[-1:]], [], []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.7 * QUANTUM)
        arrived.append(time.monotonic())
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        told.append((message, time.monotonic()))

    asyncio.run(app(asked.scope(), receive, send))
    assert told[0][0]["status"] == 200
    assert told[0][1] - arrived[-1] >= QUANTUM


def test_neither_an_unknown_address_nor_a_stranger_waits_for_the_ledger(app: Any) -> None:
    random, house = Random(12), app.state.house
    token = house.tokens.create("analyst", "analyst")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with house.ledger._alone.held():
            held.set()
            done.wait(60)

    holding = threading.Thread(target=hold)
    paths = addresses(app, house, random)
    strangers = [
        Asked(random.choice(["GET", "POST"]), path, None) for path in paths if path[:8] != "/metrics"
    ]
    unknown = [
        Asked("GET", path, token) for path in ("/x/actions", "/actions", "/nowhere", "/datasets/actions")
    ]
    holding.start()
    assert held.wait(10)
    try:
        answering = threading.Thread(target=ask_all, args=(app, strangers + unknown), daemon=True)
        answering.start()
        answering.join(30)
        assert not answering.is_alive()
    finally:
        done.set()
        holding.join()
