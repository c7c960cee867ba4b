"""Bodies: bytes to JSON values, strictly, within the limits. Nothing here makes anything but plain values."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fpinq.ledger import wire
from fpinq.ledger.errors import BadWire
from fpinq.runtime.refusals import TooLarge, TooManyRequests
from fpinq.server.limits import Limits

BODY_SECONDS = 30

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Disconnected(Exception):
    """The client went away before its request was complete."""


async def arrived(receive: Receive, declared: bytes | None, limits: Limits) -> bytes:
    """The body of a request, in time."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await read(receive, declared, limits)
    except TimeoutError:
        raise TooManyRequests(f"the request took longer than {BODY_SECONDS} s to arrive") from None


async def read(receive: Receive, declared: bytes | None, limits: Limits) -> bytes:
    """The body of a request; TooLarge as soon as it is known to be, whatever is still to come."""
    most = limits.body_bytes
    if declared is not None and (not declared.isdigit() or int(declared[:20]) > most):
        raise _too_large(limits)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > most:
            raise _too_large(limits)
        chunks.append(chunk)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def parse(body: bytes, limits: Limits) -> dict[str, Any]:
    """The JSON object in a body: each key once, finite numbers, not too deep."""
    value = wire.parse(body)
    if type(value) is not dict:
        raise BadWire("the body is a JSON object")
    # Each level opens a bracket, and each value but the first follows a bracket, a comma or a colon.
    opened = body.count(b"[") + body.count(b"{")
    if opened > limits.depth or opened + body.count(b",") + body.count(b":") >= limits.nodes:
        _check_size(value, limits)
    return value


def identify(body: dict[str, Any], header: str | None) -> None:
    """The request id of a body that has none is its `Idempotency-Key`, uncut: part of it may be another's."""
    if header and body.get("request_id") is None:
        body["request_id"] = header


def text(body: dict[str, Any], key: str, most: int) -> str:
    """A text of the body, of bounded length."""
    value = body.get(key)
    if type(value) is not str or not value:
        raise BadWire(f"{key!r} is a text")
    if len(value) > most:
        raise TooLarge(f"{key!r} has at most {most} characters")
    return value


def _check_size(value: Any, limits: Limits) -> None:
    nodes, level, depth = 0, [value], 0
    while level:
        nodes += len(level)
        depth += 1
        if depth > limits.depth:
            raise TooLarge(f"JSON at most {limits.depth} levels deep")
        if nodes > limits.nodes:
            raise TooLarge(f"JSON of at most {limits.nodes} values")
        below: list[Any] = []
        for item in level:
            if type(item) is dict:
                below += item.values()
            elif type(item) is list:
                below += item
        level = below


def _too_large(limits: Limits) -> TooLarge:
    return TooLarge(f"a request has at most {limits.body_bytes} bytes")
