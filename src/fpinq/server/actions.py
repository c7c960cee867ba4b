"""POST /sessions/{session}/actions: the one way to data. Plain ASGI, for speed.

    token → rate → a place → body → JSON → action → limits → kernel, charge, measure, record → reply

Whatever comes before the kernel charges nothing.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from fpinq.ledger import wire
from fpinq.ledger.errors import BadWire
from fpinq.model.actions import Action
from fpinq.runtime.deadline import within
from fpinq.runtime.refusals import TooLarge
from fpinq.server import bodies, replies
from fpinq.server.house import House
from fpinq.server.quantum import REPLY, AsgiScope, Reply, Send
from fpinq.server.tokens import Bearer
from fpinq.server.turns import LATE, Turns, acting

T = TypeVar("T")

# A body of so many bytes is read where it arrives.
SHORT = 10_000
REQUEST_ID_CHARACTERS = 100


class Actions:
    """The ASGI application for actions."""

    def __init__(self, house: House) -> None:
        self._house = house
        # Every request that has a place has a thread too: none waits for another's, and whether a query
        # waits for others must not show when it is charged.
        self._threads = ThreadPoolExecutor(house.limits.concurrent_requests_in_all, "fpinq-action")
        self._reading = Turns(LATE)

    async def __call__(self, scope: AsgiScope, receive: bodies.Receive, send: Send) -> None:
        """Answer one request."""
        try:
            status, body = await self._answer(scope, receive)
        except bodies.Disconnected:
            return
        except Exception as error:
            self._house.failed(error)
            status, body = replies.refusal(error)
        sent = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        if status == 401:
            sent += [(name.encode(), value.encode()) for name, value in replies.headers(status).items()]
        if status == 413:  # what is still to come of the request is not read
            sent.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": sent})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: AsgiScope, receive: bodies.Receive) -> replies.Reply:
        house, headers = self._house, dict(scope["headers"])
        bearer = house.admit(scope, "analyst")
        raw = await bodies.arrived(receive, headers.get(b"content-length"), house.limits)
        house.tokens.check(bearer)
        header = headers.get(b"idempotency-key")
        if len(raw) > SHORT:
            request_id, action = await self._in_a_thread(self._read_in_turn, bearer.name, raw, header)
        else:
            request_id, action = self._read(raw, header)
        house.metrics.asked(action.op)
        session = scope["path_params"]["session"]
        house.sessions.check(session, bearer.name)
        reply: Reply = scope[REPLY]
        return await self._in_a_thread(self._act, bearer, session, action, request_id, reply.arrived)

    async def _in_a_thread(self, do: Callable[..., T], *given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, do, *given)

    def _read_in_turn(self, analyst: str, raw: bytes, header: bytes | None) -> tuple[str, Action]:
        """A long body takes a while to read: one of an analyst's at a time, while others' are answered."""
        with within(self._house.limits.query_seconds), self._reading.of(analyst):
            return self._read(raw, header)

    def _read(self, raw: bytes, header: bytes | None) -> tuple[str, Action]:
        try:
            return self._read_action(bodies.parse(raw, self._house.limits), header)
        except RecursionError:
            raise TooLarge("nested too deeply") from None

    def _read_action(self, body: dict[str, Any], header: bytes | None) -> tuple[str, Action]:
        if unknown := body.keys() - {"request_id", "action"}:
            raise BadWire(f"unknown key {min(unknown)[:40]!r}")
        bodies.identify(body, header.decode("latin-1") if header else None)
        for key in ("request_id", "action"):
            if key not in body:
                raise BadWire(f'{key!r} is missing: send {{"request_id": …, "action": …}}')
        request_id = bodies.text(body, "request_id", REQUEST_ID_CHARACTERS)
        action: Action = wire.from_json(body["action"], Action)
        self._house.limits.check_action(action)
        return request_id, action

    def _act(
        self, bearer: Bearer, session: str, action: Action, request_id: str, arrived: float
    ) -> replies.Reply:
        house, analyst = self._house, bearer.name
        house.room.check(session, action, analyst)
        with acting(analyst, arrived), within(house.limits.query_seconds):
            observation = house.system.act(action, session=session, request_id=request_id, analyst=analyst)
        return 200, b'{"observation":' + wire.encode(observation).encode() + b"}"
