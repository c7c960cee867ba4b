"""POST /sessions/{session}/actions: the one way to data. Plain ASGI, for speed.

    token → rate → a free place → body → JSON → action → limits → kernel, charge, measure, record → reply

Whatever comes before the kernel charges nothing. The reply, an answer or a
refusal, leaves at the next multiple of the quantum after the request arrived,
and the request keeps its place until then: how many requests are under way
tells no more than the times of the replies do.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

from fpinq.ledger import wire
from fpinq.ledger.errors import BadWire
from fpinq.model.actions import Action, Query
from fpinq.runtime.refusals import TooLarge, TooManyRequests
from fpinq.server import bodies, replies
from fpinq.server.house import House
from fpinq.server.quantum import Scope, Send, until_release
from fpinq.server.tokens import Bearer

BODY_SECONDS = 30
REQUEST_ID_CHARACTERS = 100


class Actions:
    """The ASGI application for actions."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._quantum = float(house.config.quantum_seconds)
        self._under_way = 0
        # A long measurement must not keep a question about the budget waiting.
        self._short = ThreadPoolExecutor(2, "fpinq-short")
        # As many as may be under way: whether a query waits for another must not show when it is charged.
        self._long = ThreadPoolExecutor(house.limits.concurrent_requests, "fpinq-query")

    async def __call__(self, scope: Scope, receive: bodies.Receive, send: Send) -> None:
        """Answer one request."""
        arrived = monotonic()  # not the loop's time, which stands still within a turn
        places = 0  # whoever may not come in takes none
        try:
            try:
                headers = dict(scope["headers"])
                bearer = self._house.admit_analyst(headers.get(b"authorization"))
                places = 1
                self._under_way += places
                status, body = await self._answer(scope, headers, bearer, receive)
            except bodies.Disconnected:
                return
            except Exception as error:
                self._house.failed(error)
                status, body = replies.refusal(error)
            if self._quantum:
                await asyncio.sleep(until_release(monotonic() - arrived, self._quantum))
        finally:
            self._under_way -= places
        sent = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        if status == 413:  # what is still to come of the request is not read
            sent.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": sent})
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, scope: Scope, headers: dict[bytes, bytes], bearer: Bearer, receive: bodies.Receive
    ) -> replies.Reply:
        house = self._house
        if self._under_way > house.limits.concurrent_requests:
            raise TooManyRequests(f"at most {house.limits.concurrent_requests} requests at a time")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                raw = await bodies.read(receive, headers.get(b"content-length"), house.limits)
        except TimeoutError:
            raise TooManyRequests(f"the request took longer than {BODY_SECONDS} s to arrive") from None
        body = bodies.parse(raw, house.limits)
        try:
            request_id, action = self._read(body, headers.get(b"idempotency-key"))
        except RecursionError:
            raise TooLarge("nested too deeply") from None
        house.metrics.asked(action.op)
        session = scope["path_params"]["session"]
        house.sessions.check(session, bearer.name)
        pool = self._long if isinstance(action, Query) else self._short
        return await asyncio.get_running_loop().run_in_executor(
            pool, self._act, bearer, session, action, request_id
        )

    def _read(self, body: dict[str, Any], header: bytes | None) -> tuple[str, Action]:
        if unknown := body.keys() - {"request_id", "action"}:
            raise BadWire(f"unknown key {min(unknown)[:40]!r}")
        if "request_id" not in body and header is not None:
            body["request_id"] = header.decode("latin-1")
        for key in ("request_id", "action"):
            if key not in body:
                raise BadWire(f'{key!r} is missing: send {{"request_id": …, "action": …}}')
        request_id = bodies.text(body, "request_id", REQUEST_ID_CHARACTERS)
        action: Action = wire.from_json(body["action"], Action)
        self._house.limits.check_action(action)
        return request_id, action

    def _act(self, bearer: Bearer, session: str, action: Action, request_id: str) -> replies.Reply:
        house, analyst = self._house, bearer.name
        house.room.check(session, action, analyst)
        observation = house.system.act(action, session=session, request_id=request_id, analyst=analyst)
        return 200, b'{"observation":' + wire.encode(observation).encode() + b"}"
