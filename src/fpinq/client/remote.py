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
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from weakref import finalize

from fpinq.client.bounds import Known
from fpinq.client.edge import edge
from fpinq.client.facts import Bound, Facts, Made, Within
from fpinq.client.shown import html_table
from fpinq.client.spelling import show_down
from fpinq.client.systems import fresh_variable
from fpinq.client.table import Table
from fpinq.ledger import wire
from fpinq.ledger.process import this_process
from fpinq.model import actions, semantics
from fpinq.model.accounts import Part, Root, Source
from fpinq.model.actions import Action, AskPrice, AskScale, Assign, Partition
from fpinq.model.environments import Numbered, TableVariable
from fpinq.model.errors import FpinqError, LedgerError, ProgramError, suggest
from fpinq.model.expressions import Schema, Type, Value
from fpinq.model.plans import Flatten, Persons, PersonTable, RootTable, Shape
from fpinq.runtime import Observation
from fpinq.runtime.refusals import (
    NotAuthenticated,
    OtherVersion,
    TooManyRequests,
    Unavailable,
    UnknownDataSet,
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
        tables = self._tables(self._data_sets[name])
        for block in self._data_sets.values():
            if block["block_of"] == name:
                grown = self._tables(block)
                if len(tables) == len(grown) == 1:  # one table is called what its data set is called
                    grown = dict(zip(tables, grown.values(), strict=True))
                tables = {table: old.concat(grown[table]) for table, old in tables.items()}
        return tables[name] if list(tables) == [name] else tables

    def _tables(self, found: Mapping[str, Any]) -> dict[str, Table]:
        """The tables of one root, without the blocks that it grew by."""
        if found["unit"] is None:
            return {found["name"]: self._of_rows(found["name"], found["tables"][0])}
        return {table["name"]: self._of_persons(found, table) for table in found["tables"]}

    def __iter__(self) -> Iterator[str]:
        return iter(self._data_sets)

    def __len__(self) -> int:
        return len(self._data_sets)

    def __repr__(self) -> str:
        return f"<{len(self)} data set{'s' * (len(self) != 1)}: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        lines = [
            (
                name,
                found["unit"] or "a record",
                _in_words(found["tables"]),
                show_down(Fraction(found["budget"])),
            )
            for name, found in self._data_sets.items()
        ]
        return html_table(["data set", "unit", "columns", "budget"], lines)

    def _of_rows(self, name: str, table: Mapping[str, Any]) -> Table:
        bound = Bound(self._system, name)
        return Table(Facts(_schema(table), Made(name), bound, roots={name: name}, columns=_columns(table)))

    def _of_persons(self, found: Mapping[str, Any], table: Mapping[str, Any]) -> Table:
        root, unit, most = found["name"], found["unit"], table["rows_per_unit"]
        body, variable = PersonTable(table["name"], most), fresh_variable()
        self._system.act(Assign(variable, Flatten(body), (root,)))
        facts = Facts(
            _schema(table),
            Made(f"{table['name']}, at most {most} per {unit}", rows_per_unit=most),
            Bound(self._system, variable),
            roots={root: root},
            columns=_columns(table),
            within=Within(root, body, frozenset({unit})),
        )
        return Table(facts)


def _in_words(tables: Sequence[Mapping[str, Any]]) -> str:
    """The columns of tables; of several, each under its name."""
    columns = [", ".join(f"{name} {type_}" for name, type_ in table["schema"]) for table in tables]
    if len(tables) == 1:
        return columns[0]
    return "; ".join(f"{table['name']}: {listed}" for table, listed in zip(tables, columns, strict=True))


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


class Names:
    """A program's table variables and their names on the server.

    A session's variables live on the server, where each costs memory. Names of
    tables that the program has forgotten are used again, so a session has as
    many as the program holds at a time.
    """

    def __init__(self) -> None:
        self._names: dict[TableVariable, str] = {}
        self._free: list[str] = []
        # A finalizer may come at any time, so it only notes.
        self._dropped: deque[TableVariable | Numbered] = deque()
        self._numbers = count(1)

    def of(self, variable: TableVariable) -> str:
        """Its name on the server: a data set's is its own."""
        return self._names.get(variable, variable)

    def drop(self, variable: TableVariable | Numbered) -> None:
        """The program has forgotten a variable, or several."""
        self._dropped.append(variable)

    def translate(self, action: Action) -> tuple[Action, dict[TableVariable, str]]:
        """The action in the server's names, and the names that it binds."""
        while self._dropped:
            gone = self._dropped.popleft()
            for variable in [gone] if isinstance(gone, str) else gone:
                if (name := self._names.pop(variable, None)) is not None:
                    self._free.append(name)
        match action:
            case Assign(target=target, arguments=arguments):
                fresh = {target: self._fresh(target)}
                named = replace(
                    action, target=fresh[target], arguments=tuple(self.of(variable) for variable in arguments)
                )
                return named, fresh
            case Partition(targets=targets, table=table):
                fresh = {target: self._fresh(target) for target in targets}
                names = tuple(fresh[target] for target in targets)
                return replace(action, targets=names, table=self.of(table)), fresh
            case actions.Query() | AskScale() | AskPrice():
                return replace(action, table=self.of(action.table)), {}
        return action, {}

    def bind(self, fresh: Mapping[TableVariable, str]) -> None:
        """The server has bound them."""
        self._names.update(fresh)

    def _fresh(self, variable: TableVariable) -> str:
        if not variable or variable in self._names:
            return self.of(variable)
        return self._free.pop() if self._free else f"${next(self._numbers)}"


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


def _schema(table: Mapping[str, Any]) -> Schema:
    return Schema(tuple((name, Type(type_)) for name, type_ in table["schema"]))


def _columns(table: Mapping[str, Any]) -> dict[str, Known]:
    names = {name for name, _ in table["schema"]}
    known = {name: known for name, known in table["columns"].items() if name in names}
    return {name: Known(**_metadata(metadata)) for name, metadata in known.items()}


def _metadata(known: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        what: values if what == "max_length" else wire.from_json(values, tuple[Value, ...])
        for what, values in known.items()
    }
    if "bounds" in found:
        found["bounds"] = tuple(Fraction(b) if isinstance(b, str) else b for b in found["bounds"])
    return found
