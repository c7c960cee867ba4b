"""connect: the same tables over HTTP, with the standard library only.

The remote system takes the very actions that an embedded one takes. Each has a
request id, chosen here: whenever a reply is lost, the action is sent again
under its id and the server tells what it told before, for free.
"""

import json
import os
import random
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from fpinq.client.bounds import Column
from fpinq.client.derivation import Made
from fpinq.client.handle import Within
from fpinq.client.systems import fresh_variable
from fpinq.client.table import Table
from fpinq.ledger import wire
from fpinq.model import semantics
from fpinq.model.actions import Action, Assign, Query, TableVariable
from fpinq.model.errors import LedgerError, ProgramError, suggest
from fpinq.model.expressions import Schema, Type, Value
from fpinq.model.plans import Flatten, Persons, PersonTable, RootTable, Shape
from fpinq.model.sources import Part, Root, Source
from fpinq.runtime import Observation
from fpinq.runtime.refusals import NotAuthenticated, TooManyRequests, Unavailable, UnknownDataSet, error_of

# One attempt to read a reply. A query that takes longer is asked for again under its id.
ATTEMPT_SECONDS = 60.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 5.0
SHOW_PROGRESS_AFTER_SECONDS = 1.0
MAX_REPLY_BYTES = 2**30


def connect(
    url: str,
    token: str | None = None,
    *,
    timeout: float = 600.0,
    retries: int = 5,
    progress: bool | None = None,
) -> "Catalog":
    """The data sets of a server: connect(url, token=…)["people"] is a table like any other.

    The token is FPINQ_TOKEN's if none is given. A request that gets no reply is
    sent again, `retries` times and for `timeout` seconds at the most; it is
    charged once. `progress` shows how long a query has been taking, by default
    where somebody is looking.
    """
    token = token if token is not None else os.environ.get("FPINQ_TOKEN")
    if not token:
        raise NotAuthenticated("say token=…, or set FPINQ_TOKEN: the data's owner creates tokens")
    return Catalog(RemoteSystem(Http(url, token, timeout, retries), progress))


class Catalog(Mapping[str, Any]):
    """The data sets of a server by name: a table each, or a mapping of tables about the same people."""

    def __init__(self, system: "RemoteSystem") -> None:
        self._system = system
        self._data_sets = {found["name"]: found for found in system.data_sets()}

    def __getitem__(self, name: str) -> Any:
        if name not in self._data_sets:
            raise UnknownDataSet(
                f"no data set {name!r}{suggest(str(name), self._data_sets)}; "
                f"there are: {', '.join(self._data_sets) or 'none'}"
            )
        found = self._data_sets[name]
        if found["unit"] is None:
            return self._of_rows(name, found["tables"][0])
        tables = {table["name"]: self._of_persons(found, table) for table in found["tables"]}
        return tables[name] if list(tables) == [name] else tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._data_sets)

    def __len__(self) -> int:
        return len(self._data_sets)

    def __repr__(self) -> str:
        return f"<{len(self)} data sets: {', '.join(self)}>"

    def close(self) -> None:
        """End the session: its tables can be used no more."""
        self._system.close()

    def _of_rows(self, name: str, table: Mapping[str, Any]) -> Table:
        return Table(
            _schema(table),
            Made(name),
            system=self._system,
            variable=name,
            roots={name: name},
            columns=_columns(table),
        )

    def _of_persons(self, found: Mapping[str, Any], table: Mapping[str, Any]) -> Table:
        root, unit, most = found["name"], found["unit"], table["rows_per_unit"]
        body, variable = PersonTable(table["name"], most), fresh_variable()
        self._system.act(Assign(variable, Flatten(body), (root,)))
        return Table(
            _schema(table),
            Made(f"{table['name']}, at most {most} per {unit}", rows_per_unit=most),
            system=self._system,
            variable=variable,
            roots={root: root},
            columns=_columns(table),
            within=Within(root, body, unit),
        )


class RemoteSystem:
    """A protected system on the other side of a connection: a session, opened when first needed."""

    def __init__(self, http: "Http", progress: bool | None = None) -> None:
        self._http = http
        self._progress = progress
        self._session: str | None = None
        self._opening = threading.Lock()
        self._dropped: deque[TableVariable] = deque()

    def act(self, action: Action) -> Observation:
        """What the client is told of its action: the same observations, and the same errors, as embedded."""
        body = {"request_id": secrets.token_hex(16), "action": wire.to_json(action), "drop": self._forget()}
        with waiting(isinstance(action, Query) and self._shows_progress()):
            told = self._http.send("POST", f"/sessions/{self._opened()}/actions", body)
        observation: Observation = wire.from_json(told["observation"], Observation)
        return observation

    def describe(self, variable: TableVariable) -> semantics.Table:
        """The public facts of a table; its plan is known to the server only."""
        facts = self._http.send("GET", f"/sessions/{self._opened()}/tables/{quote(variable, safe='')}")
        sensitivity: dict[Source, int] = {
            Root(source) if isinstance(source, str) else Part(*source): s
            for source, s in facts["sensitivity"]
        }
        shape = wire.from_json(facts["shape"], Shape)
        assert isinstance(shape, Schema | Persons)
        return semantics.Table(RootTable(variable), shape, sensitivity)

    def drop(self, variable: TableVariable) -> None:
        """Told to the server with the next action."""
        self._dropped.append(variable)

    def data_sets(self) -> list[dict[str, Any]]:
        """What is public about every data set."""
        found: list[dict[str, Any]] = self._http.send("GET", "/datasets")["datasets"]
        return found

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._http.send("DELETE", f"/sessions/{self._session}")

    def _opened(self) -> str:
        if self._session is None:
            with self._opening:
                if self._session is None:
                    self._session = self._http.send("POST", "/sessions")["session"]
        assert self._session is not None
        return self._session

    def _forget(self) -> list[TableVariable]:
        return [self._dropped.popleft() for _ in range(len(self._dropped))]

    def _shows_progress(self) -> bool:
        return sys.stderr.isatty() if self._progress is None else self._progress


class Http:
    """JSON to and fro. A connection per thread, kept open; what gets no reply is sent again."""

    def __init__(self, url: str, token: str, timeout_seconds: float, retries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ProgramError("the address of a server looks like https://data.example.org")
        if any(c.isspace() for c in token) or not token.isascii():
            raise NotAuthenticated("a token looks like fpq_…, in one piece")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._timeout_seconds, self._retries = timeout_seconds, retries
        self._local = threading.local()

    def send(self, method: str, path: str, body: object = None) -> Any:
        """The reply to a request; the typed error that it stands for, if it does."""
        data = None if body is None else wire.canonical(body).encode()
        give_up_at = time.monotonic() + self._timeout_seconds
        failures = 0
        while True:
            left = give_up_at - time.monotonic()
            try:
                return self._once(method, path, data, max(0.001, min(left, ATTEMPT_SECONDS)))
            except TimeoutError:
                if time.monotonic() >= give_up_at:
                    raise self._unavailable("it took too long") from None
            except (OSError, HTTPException) as error:
                failures += 1
                if failures > self._retries or time.monotonic() >= give_up_at:
                    raise self._unavailable(type(error).__name__) from None
            except (TooManyRequests, LedgerError):
                failures += 1
                if failures > self._retries or time.monotonic() >= give_up_at:
                    raise
            if failures > 1:  # the first failure may be a connection that was kept open too long
                pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**failures)
                time.sleep(max(0.0, min(pause * random.uniform(0.5, 1), give_up_at - time.monotonic())))

    def _once(self, method: str, path: str, data: bytes | None, seconds: float) -> Any:
        connection = self._connection(seconds)
        try:
            connection.request(method, self._prefix + path, data, self._headers)
            response = connection.getresponse()
            raw = response.read(MAX_REPLY_BYTES)
        except BaseException:
            self._forget_connection()  # a reply may still come: it must not be taken for another's
            raise
        try:
            reply = json.loads(raw)
            if response.status < 400:
                return reply
            error = reply["error"]
            raise error_of(error["code"], error["message"], error["fields"])
        except (ValueError, KeyError, TypeError):
            raise self._unavailable(f"not fpinq's reply, status {response.status}") from None

    def _connection(self, seconds: float) -> HTTPConnection:
        kept = getattr(self._local, "kept", None)
        if kept is None or kept[0] != os.getpid():  # a fork must not share a connection
            kind = HTTPSConnection if self._secure else HTTPConnection
            kept = self._local.kept = (os.getpid(), kind(self._host, self._port))
        connection: HTTPConnection = kept[1]
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        return connection

    def _forget_connection(self) -> None:
        kept = getattr(self._local, "kept", None)
        if kept is not None:
            kept[1].close()
            self._local.kept = None

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(
            f"no reply from {self._host}: {why}. "
            "If a query was charged, its answer is kept under its request id"
        )


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


def _schema(table: Mapping[str, Any]) -> Schema:
    return Schema(tuple((name, Type(type_)) for name, type_ in table["schema"]))


def _columns(table: Mapping[str, Any]) -> dict[str, Column]:
    return {name: Column(**_metadata(known)) for name, known in table["columns"].items()}


def _metadata(known: Mapping[str, Any]) -> dict[str, Any]:
    found = {what: wire.from_json(values, tuple[Value, ...]) for what, values in known.items()}
    if "bounds" in found:
        found["bounds"] = tuple(Fraction(b) if isinstance(b, str) else b for b in found["bounds"])
    return found
