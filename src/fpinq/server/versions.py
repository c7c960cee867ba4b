"""Versions: a client says which wire it speaks, a reply in which it is written.

A request without the header is of version 1, which had none. Whoever cannot be
understood is told before anything is read or charged.
"""

from fpinq.ledger.errors import BadWire
from fpinq.ledger.wire import HEADER, VERSION
from fpinq.model.errors import FpinqError
from fpinq.runtime.refusals import OtherVersion
from fpinq.server import replies
from fpinq.server.house import House
from fpinq.server.quantum import App, AsgiScope, Message, Receive, Send

_NAME = HEADER.lower().encode()
_SAID = (_NAME, str(VERSION).encode())


class Versioned:
    """An application that replies in a version of the wire, to those who can read it."""

    def __init__(self, app: App, house: House) -> None:
        self._app = app
        self._house = house

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def say(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), _SAID]
            await send(message)

        try:
            check_spoken(dict(scope.get("headers", ())).get(_NAME, b"1"))
        except FpinqError as error:
            self._house.failed(error)
            await _refuse(error, say)
        else:
            await self._app(scope, receive, say)


def check_spoken(given: bytes) -> None:
    """OtherVersion if a client speaks a wire that is newer than ours."""
    if not given.isdigit() or len(given) > 9:
        raise BadWire(f"{HEADER} is the version of the wire, a number such as {VERSION}")
    if int(given) > VERSION:
        raise OtherVersion.of_client(int(given), VERSION)


async def _refuse(error: FpinqError, send: Send) -> None:
    status, body = replies.refusal(error)
    # The body of the request is not read.
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
