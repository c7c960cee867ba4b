"""Replies at public times: the next multiple of the quantum after a request arrived."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from math import ceil
from time import monotonic
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def until_release(elapsed: float, quantum: float) -> float:
    """How long to wait until the next multiple of the quantum."""
    return max(1, ceil(elapsed / quantum)) * quantum - elapsed


class AtQuanta:
    """An application whose replies begin at multiples of the quantum.

    The route of actions releases its own replies: a request keeps its place until then.
    """

    def __init__(self, app: App, quantum: float) -> None:
        self._app = app
        self._quantum = quantum

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"].endswith("/actions"):
            await self._app(scope, receive, send)
            return
        arrived = monotonic()

        async def released(message: Message) -> None:
            if message["type"] == "http.response.start":
                await asyncio.sleep(until_release(monotonic() - arrived, self._quantum))
            await send(message)

        await self._app(scope, receive, released)
