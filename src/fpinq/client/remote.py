"""connect: the same tables over HTTP, with the standard library only.

The remote system takes the very actions that an embedded one takes. Each has a
request id, chosen here: whenever a reply is lost, the action is sent again
under its id and the server tells what it told before, for free.
"""

import json
import os
import random
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from weakref import finalize

from fpinq.client.catalog import Catalog
from fpinq.client.edge import edge
from fpinq.client.names import Names
from fpinq.ledger import wire
from fpinq.ledger.process import this_process
from fpinq.model import actions, semantics
from fpinq.model.accounts import Part, Root, Source
from fpinq.model.actions import Action
from fpinq.model.environments import Numbered, TableVariable
from fpinq.model.errors import FpinqError, LedgerError, ProgramError
from fpinq.model.expressions import Schema
from fpinq.model.plans import Persons, RootTable, Shape
from fpinq.runtime import Observation
from fpinq.runtime.refusals import (
    NotAuthenticated,
    OtherVersion,
    TooManyRequests,
    Unavailable,
    error_of,
)

if TYPE_CHECKING:
    from http.client import HTTPConnection

# One attempt to read a reply. A query that takes longer is asked for again under its id.
ATTEMPT_SECONDS = 60.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 5.0
SHOW_PROGRESS_AFTER_SECONDS = 1.0
MAX_REPLY_BYTES = 2**30
# What a proxy replies in place of a server that is not there: worth another attempt.
FROM_A_PROXY = (502, 503, 504)


@edge
def connect(
    url: str,
    token: str | None = None,
    *,
    timeout: float = 600.0,
    retries: int = 5,
    progress: bool | None = None,
) -> Catalog:
    """The data sets of a server: connect(url, token=…)["people"] is a table like any other.

    The token is FPINQ_TOKEN's if none is given. A request that gets no reply is
    sent again, `retries` times and for `timeout` seconds at the most; it is
    charged once. `progress` shows how long a query has been taking, by default
    where somebody is looking.
    """
    token = token if token is not None else os.environ.get("FPINQ_TOKEN")
    if not token:
        raise NotAuthenticated(
            "no token: say token=… (in a shell --token), or set FPINQ_TOKEN; "
            "the data's owner creates one with fpinq token create"
        )
    return Catalog(RemoteSystem(Http(url, token, timeout, retries), progress))


class RemoteSystem:
    """A protected system on the other side of a connection: a session, opened when first needed."""

    def __init__(self, http: "Http", progress: bool | None = None) -> None:
        self._http = http
        self._progress = progress
        self._session: str | None = None
        self._opening = threading.RLock()  # both: a handler of a signal may ask, too
        self._names = Names()
        self._naming = threading.RLock()

    def act(self, action: Action) -> Observation:
        """What the client is told of its action: the same observations, and the same errors, as embedded."""
        session = self._opened()
        with self._naming:
            sent, fresh = self._names.translate(action)
        body = {"request_id": secrets.token_hex(16), "action": wire.to_json(sent)}
        with waiting(isinstance(action, actions.Query) and self._shows_progress()):
            told = self._http.send("POST", f"/sessions/{session}/actions", body)
        with self._naming:
            self._names.bind(fresh)
        observation: Observation = wire.from_json(told["observation"], Observation)
        return observation

    def describe(self, variable: TableVariable) -> semantics.Table:
        """The public facts of a table; its plan is known to the server only."""
        name = quote(self._names.of(variable), safe="")
        facts = self._http.send("GET", f"/sessions/{self._opened()}/tables/{name}")
        sensitivity: dict[Source, int] = {
            Root(source) if isinstance(source, str) else Part(*source): s
            for source, s in facts["sensitivity"]
        }
        shape = wire.from_json(facts["shape"], Shape)
        assert isinstance(shape, Schema | Persons)
        return semantics.Table(RootTable(variable), shape, sensitivity)

    def drop(self, variable: TableVariable | Numbered) -> None:
        """Its name on the server will be used for another table; or the names of these."""
        self._names.drop(variable)

    def data_sets(self) -> list[dict[str, Any]]:
        """What is public about every data set."""
        found: list[dict[str, Any]] = self._http.send("GET", "/datasets")["datasets"]
        return found

    def _opened(self) -> str:
        if self._session is None:
            with self._opening:
                if self._session is None:
                    opened = self._http.send("POST", "/sessions")["session"]
                    self._session = self._session or opened
        assert self._session is not None
        return self._session

    def _shows_progress(self) -> bool:
        return sys.stderr.isatty() if self._progress is None else self._progress


class Http:
    """JSON to and fro. Connections are kept open; what gets no reply is sent again."""

    def __init__(self, url: str, token: str, timeout_seconds: float, retries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ProgramError("the address of a server looks like https://data.example.org")
        if any(c.isspace() for c in token) or not token.isascii():
            raise NotAuthenticated("a token looks like fpq_…, in one piece")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            wire.HEADER: str(wire.VERSION),
        }
        self._timeout_seconds, self._retries = timeout_seconds, retries
        self._idle: list[HTTPConnection] = []
        self._process = this_process()
        finalize(self, _close, self._idle)

    def send(self, method: str, path: str, body: object = None) -> Any:
        """The reply to a request; the typed error that it stands for, if it does."""
        from http.client import (
            HTTPException,
        )  # here, for it is a good part of what importing fpinq would take

        data = None if body is None else wire.canonical(body).encode()
        give_up_at = time.monotonic() + self._timeout_seconds
        failures, unanswered = 0, False
        while True:
            left = give_up_at - time.monotonic()
            try:
                return self._once(method, path, data, max(0.001, min(left, ATTEMPT_SECONDS)))
            except TimeoutError:
                unanswered = True
                if time.monotonic() >= give_up_at:
                    raise self._unavailable("it took too long", unanswered) from None
            except (OSError, HTTPException) as error:
                failures, unanswered = failures + 1, unanswered or not isinstance(error, _NEVER_SENT)
                if failures > self._retries or time.monotonic() >= give_up_at:
                    raise self._unavailable(str(error) or type(error).__name__, unanswered) from None
            except FpinqError as error:
                failures += 1
                passing = isinstance(error, TooManyRequests | LedgerError)
                if not passing or failures > self._retries or time.monotonic() >= give_up_at:
                    if unanswered:
                        error.may_be_charged = True  # type: ignore[attr-defined]
                    raise
            if failures > 1:  # the first failure may be a connection that was kept open too long
                pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**failures)
                time.sleep(max(0.0, min(pause * random.uniform(0.5, 1), give_up_at - time.monotonic())))

    def _once(self, method: str, path: str, data: bytes | None, seconds: float) -> Any:
        connection = self._connection(seconds)
        try:
            try:
                connection.request(method, self._prefix + path, data, self._headers)
            except (BrokenPipeError, ConnectionResetError):
                if connection.sock is None:
                    raise
                # A server that refuses a body before its end has replied already.
            response = connection.getresponse()
            raw = response.read(MAX_REPLY_BYTES)
        except BaseException:
            connection.close()  # a reply may still come: it must not be taken for another's
            raise
        self._idle.append(connection)
        check_spoken(response.getheader(wire.HEADER))
        try:
            reply = json.loads(raw)
            if response.status < 400:
                return reply
            error = reply["error"]
            raise error_of(error["code"], error["message"], error["fields"])
        except (ValueError, KeyError, TypeError):
            if response.status in FROM_A_PROXY:
                raise ConnectionError(f"status {response.status}") from None
            raise self._unavailable(f"not fpinq's reply, status {response.status}", sent=True) from None

    def _connection(self, seconds: float) -> "HTTPConnection":
        if self._process != this_process():  # a fork must not share connections
            self._idle, self._process = [], this_process()
        try:
            connection = self._idle.pop()
        except IndexError:
            from http.client import HTTPConnection, HTTPSConnection

            kind = HTTPSConnection if self._secure else HTTPConnection
            connection = kind(self._host, self._port)
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        return connection

    def _unavailable(self, why: str, sent: bool) -> Unavailable:
        where = self._host if self._port is None else f"{self._host}:{self._port}"
        charged = (
            "A query may have been charged, once at the most"
            if sent
            else "Nothing was sent, and nothing charged: is the server running, and is this its address?"
        )
        return Unavailable(f"no reply from {where}: {why}. {charged}")


# What happens before a request has left.
_NEVER_SENT = (ConnectionRefusedError, socket.gaierror)


def check_spoken(by_server: str | None) -> None:
    """OtherVersion if a reply is of a wire that is newer than ours; one without a version is of the first."""
    if by_server is not None and re.fullmatch("[0-9]{1,9}", by_server) and int(by_server) > wire.VERSION:
        raise OtherVersion.of_server(wire.VERSION, int(by_server))


def _close(connections: "list[HTTPConnection]") -> None:
    for connection in connections:
        connection.close()


@contextmanager
def waiting(show: bool) -> Iterator[None]:
    """Show how long a query has been taking. Nothing else is known here, and nothing else may be."""
    if not show:
        yield
        return
    done = threading.Event()

    def draw() -> None:
        began = time.monotonic()
        if done.wait(SHOW_PROGRESS_AFTER_SECONDS):
            return
        while not done.wait(0.5):
            seconds = time.monotonic() - began
            print(f"\r\033[Kwaiting for the answer  {seconds:.0f} s", end="", file=sys.stderr, flush=True)
        print("\r\033[K", end="", file=sys.stderr, flush=True)

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield
    finally:
        done.set()
        drawing.join()
