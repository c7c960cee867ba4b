"""A server on the loopback interface, for as long as a test needs it."""

import json
import secrets
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import uvicorn

import fpinq as fp
from fpinq.client.remote import Catalog
from fpinq.model.notions import Rho
from fpinq.runtime.mechanisms import draw
from fpinq.server import Config, DataSet, TableConfig, create_app
from fpinq.server.connections import Connection
from fpinq.server.house import House
from fpinq.server.limits import Limits

PEOPLE = [{"age": 20 + i % 50, "gender": i % 2, "name": f"n{i}"} for i in range(100)]


def people(budget: object = 1, rows: Any = PEOPLE, **settings: Any) -> dict[str, DataSet]:
    """One data set, `people`."""
    table = TableConfig(rows, schema=settings.pop("schema", None), columns=settings.pop("columns", {}))
    promised = budget if isinstance(budget, Rho) else Fraction(budget)  # type: ignore[arg-type]
    return {"people": DataSet("people", promised, {"people": table}, **settings)}  # type: ignore[arg-type]


@dataclass
class Live:
    """A running server."""

    url: str
    port: int
    house: House

    def token(self, name: str = "alice", role: str = "analyst") -> str:
        return self.house.tokens.create(name, role)

    def send(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> "Reply":
        """A request, as the bytes that go over the wire."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        try:
            with suppress(OSError):  # a body that is refused before its end
                connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def session(self, token: str) -> str:
        opened: str = self.send("POST", "/sessions", token=token).json["session"]
        return opened

    def act(self, session: str, token: str, action: Any, request_id: str | None = None) -> "Reply":
        """One action, as JSON."""
        body = {"request_id": request_id or secrets.token_hex(8), "action": action}
        return self.send("POST", f"/sessions/{session}/actions", body, token)

    def left(self, name: str = "people") -> Fraction:
        """What is left of a data set, from the ledger itself."""
        return self.house.ledger.roots()[name].remaining

    def connect(self, name: str = "alice", **settings: Any) -> Catalog:
        return fp.connect(self.url, self.token(name), **settings)


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        found: str = self.json["error"]["code"]
        return found


# A server whose limits on work and ε are out of the way.
LIFTED = {"work_per_record": 10**30, "work_per_query": 10**30, "epsilon_at_least": "1/1000000000"}

COUNT = {"op": "query", "table": "people", "epsilon": "1/10", "queries": [{"op": "count"}]}


@contextmanager
def serve(
    folder: Path, data_sets: Mapping[str, DataSet], *, mechanism: Any = draw, **settings: Any
) -> Iterator[Live]:
    """A server of these data sets."""
    limits = Limits(**settings.pop("limits", {}))
    config = Config(data_sets, folder / "tokens", str(folder / "ledger"), limits=limits, **settings)
    app = create_app(config, mechanism=mechanism)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    Connection.quantum_seconds = float(config.quantum_seconds)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="critical",
            date_header=False,
            server_header=False,
            lifespan="on",
            http=Connection,
            ws="none",
        )
    )
    running = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    running.start()
    try:
        yield Live(f"http://127.0.0.1:{port}", port, app.state.house)
    finally:
        server.should_exit = True
        running.join(20)
        listening.close()
