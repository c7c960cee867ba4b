"""Replies at public times: the next multiple of the quantum after the last byte of a request arrived."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from math import ceil
from time import monotonic
from typing import Any

from fpinq.server.places import VISIT, Places

AsgiScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

# Where a request's reply is found in its ASGI scope.
REPLY = "fpinq.reply"
# An answer is written down so long before its reply leaves; half of the quantum, where that is less.
RECORDING_SECONDS = 0.25
# A reply with more bytes has been read, all but this, before its request gives back its place.
UNREAD_BYTES = 2**16


def until_release(elapsed: float, quantum: float) -> float:
    """How long to wait until the next multiple of the quantum."""
    return max(1, ceil(elapsed / quantum)) * quantum - elapsed


def until_recording(elapsed: float, quantum: float) -> float:
    """How long to wait until an answer is written down: to where a reply that leaves next is being made.

    What is written down can be read at once, and where it stands among others' entries for ever: if that were
    when a measurement ends, whoever reads the trace would know how long it took.
    """
    before = min(quantum / 2, RECORDING_SECONDS)
    return until_release(elapsed + before, quantum)


class AtQuanta:
    """An application whose every reply begins at a multiple of the quantum, whatever is asked and where.

    It is around everything, errors included: no address and no method has a way past it. A request's
    place is its own until the reply has left. A quantum of 0 is at once.
    """

    def __init__(self, app: App, quantum: float, places: Places) -> None:
        self._app = app
        self._quantum = quantum
        self._places = places

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        reply = scope[REPLY] = Reply(send, self._quantum)
        with self._places.visit() as scope[VISIT]:
            try:
                await self._app(scope, reply.arriving(receive), reply.send)
            except Exception:
                await reply.begin()  # the server under this application will say something
                raise
            await reply.begin()


class Reply:
    """What is sent for one request: nothing before the quantum.

    The quantum begins where the request ends. If it began with the first byte, a client that sends the last
    one late would choose how long before a multiple the work starts, and so read its time off the reply.
    """

    def __init__(self, send: Send, quantum: float) -> None:
        self.arrived = monotonic()  # not the loop's time, which stands still within a turn
        self._send = send
        self._quantum = quantum
        self._begun = False

    def arriving(self, receive: Receive) -> Receive:
        """What is still to come of the request."""

        async def more() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                self.arrived = monotonic()
            return message

        return more

    async def begin(self) -> None:
        """Wait until a reply may begin, unless it has."""
        if self._quantum and not self._begun:
            now = monotonic()
            due = now + until_release(now - self.arrived, self._quantum)
            while (left := due - monotonic()) > 0:  # a loop that counts in milliseconds ends a wait too soon
                await asyncio.sleep(left)
        self._begun = True

    async def send(self, message: Message) -> None:
        """Send a part of the reply; of a long one, wait until it is read."""
        await self.begin()
        if len(message.get("body", b"")) > UNREAD_BYTES and not message.get("more_body"):
            await self._send({**message, "more_body": True})
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)
