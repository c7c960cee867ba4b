"""The HTTP application: who may ask what, and where."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from math import inf
from typing import Annotated

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import FastAPI, Request, Response
from fastapi import Query as Parameter
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route

from fpinq.ledger import wire
from fpinq.ledger.errors import BadWire
from fpinq.ledger.store import MAX_SEQ
from fpinq.model.accounts import Root
from fpinq.model.errors import FpinqError, KernelViolation
from fpinq.runtime.mechanisms import draw
from fpinq.runtime.system import Mechanism
from fpinq.server import openapi, replies, watching
from fpinq.server.actions import Actions
from fpinq.server.bearers import Analyst, AnyBearer, Auditor, Owner
from fpinq.server.config import Config
from fpinq.server.dashboard import Page
from fpinq.server.house import House
from fpinq.server.metrics import Shared
from fpinq.server.quantum import App, AsgiScope, AtQuanta, Receive, Send
from fpinq.server.questions import statements
from fpinq.server.questions.routes import TOLD, NoSuchQuestion, add_questions
from fpinq.server.questions.statements import add_statements
from fpinq.server.told import (
    Corrupt,
    DataSetsTold,
    Described,
    FrozenTold,
    SessionTold,
    SpendingTold,
    TraceTold,
    Verified,
)
from fpinq.server.versions import Versioned


def create_app(config: Config, *, mechanism: Mechanism = draw) -> FastAPI:
    """The application of a configuration. Loads the data; the mechanism is for tests."""
    house = House(config, mechanism)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Who has a place has a thread: nobody waits for another's.
        current_default_thread_limiter().total_tokens = inf
        yield
        house.close()

    app = Application(
        title="fpinq",
        version=version("fpinq"),
        summary="Private queries over sensitive tables",
        description=openapi.DESCRIPTION,
        docs_url=None,  # the page has one, of our own files
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.house = house
    actions = Actions(house)
    app.router.routes.insert(0, Route("/sessions/{session}/actions", actions, methods=["POST"]))
    app.begin_with(actions)
    _handle_errors(app, house)
    _add_public_facts(app, house)
    _add_sessions(app, house)
    add_statements(app, house, add_questions(app, house))
    _add_oversight(app, house)
    openapi.describe(app, config.limits, TOLD | statements.TOLD)
    return app


class Application(FastAPI):
    """FastAPI, inside what decides when a reply may begin: its own pages and its errors too.

    Nearly all requests are actions, and what a framework does for each would be most of their cost: they
    are told from the others by their address, and the framework is asked for the others only.
    """

    def begin_with(self, actions: Actions) -> None:
        """The whole application, around everything that replies."""
        house: House = self.state.house
        app = Versioned(AddressedTo(actions, super().__call__), house)
        whole: App = AtQuanta(app, float(house.config.quantum_seconds), house.places)
        self._whole = Page(whole) if house.config.page else whole

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._whole(scope, receive, send)


_ACTIONS = re.compile("/sessions/([^/]+)/actions")


class AddressedTo:
    """Actions, for what is addressed to them exactly as their route says; and another application."""

    def __init__(self, actions: Actions, others: App) -> None:
        self._actions = actions
        self._others = others

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        session = session_of(scope)
        if session is None:
            await self._others(scope, receive, send)
        else:
            scope["path_params"] = {"session": session}
            await self._actions(scope, receive, send)


def session_of(scope: AsgiScope) -> str | None:
    """The session that an action is addressed to; None if the request is something else."""
    if scope["type"] != "http" or scope["method"] != "POST" or scope.get("root_path"):
        return None
    found = _ACTIONS.fullmatch(scope["path"])
    return None if found is None else found[1]


_NO_SUCH = {
    404: ("not_found", "no such address"),
    405: ("method_not_allowed", "this address has no such method"),
}


def _handle_errors(app: FastAPI, house: House) -> None:
    async def refuse(_: Request, error: Exception) -> Response:
        house.failed(error)
        return _response(*replies.refusal(error))

    async def refuse_parameters(request: Request, _: Exception) -> Response:
        return await refuse(request, BadWire("a parameter is missing or of the wrong type: see /docs"))

    async def refuse_path(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code, what = _NO_SUCH.get(error.status_code, ("error", "this cannot be asked"))
        text = error.detail if isinstance(error, NoSuchQuestion) else f"{what}: see /openapi.json"
        told = replies.told(code, text, {})
        response = _response(*replies.reply(error.status_code, told))
        response.headers.update(error.headers or {})
        return response

    app.add_exception_handler(FpinqError, refuse)
    app.add_exception_handler(KernelViolation, refuse)
    app.add_exception_handler(Exception, refuse)
    app.add_exception_handler(RequestValidationError, refuse_parameters)
    app.add_exception_handler(HTTPException, refuse_path)


def _add_public_facts(app: FastAPI, house: House) -> None:
    looking = Shared(house.ledger.roots)

    @app.get("/healthz", tags=["public"], summary="Whether the server answers")
    async def health() -> Response:
        return _response(200 if house.healthy else 503, b'{"ok":true}' if house.healthy else b'{"ok":false}')

    @app.get("/limits", tags=["public"], summary="What one request may be")
    async def limits() -> Response:
        return _told({**house.limits.shown(), "quantum_seconds": str(house.config.quantum_seconds)})

    @app.get("/metrics", tags=["public"], summary="Prometheus metrics; none depends on data")
    async def metrics() -> Response:
        text = house.metrics.text(await looking.look())
        return Response(text, media_type="text/plain; version=0.0.4")

    @app.get(
        "/datasets",
        response_model=None,
        tags=["data sets"],
        summary="The data sets, with their public metadata",
    )
    def data_sets(_: AnyBearer) -> Response:
        told: DataSetsTold = {"datasets": house.catalog()}
        return _told(told)

    @app.get("/datasets/{name}", response_model=None, tags=["data sets"], summary="One data set")
    def data_set(name: str, _: AnyBearer) -> Response:
        return _told(house.data_set(name))


def _add_sessions(app: FastAPI, house: House) -> None:
    @app.post(
        "/sessions",
        response_model=None,
        tags=["sessions"],
        status_code=201,
        summary="Open a session: a client program",
    )
    def open_session(bearer: Analyst) -> Response:
        told: SessionTold = {"session": house.sessions.open(bearer.name)}
        return _told(told, 201)

    @app.get(
        "/sessions/{session}/tables/{variable:path}",
        response_model=None,
        tags=["sessions"],
        summary="A table's schema and sensitivity",
    )
    def describe(session: str, variable: str, bearer: Analyst) -> Response:
        house.sessions.check(session, bearer.name)
        table = house.system.describe(variable, session=session, analyst=bearer.name)
        sensitivity = [
            [source.name if isinstance(source, Root) else list(source), s]
            for source, s in table.sensitivity.items()
        ]
        told: Described = {"shape": wire.to_json(table.shape), "sensitivity": sensitivity}
        return _told(told)


def _add_oversight(app: FastAPI, house: House) -> None:
    spending = watching.Spending(house.ledger)
    replaying = watching.Replaying(house.config.ledger)

    @app.get(
        "/trace",
        response_model=None,
        tags=["oversight"],
        summary="The trace: every action, charge and answer",
    )
    async def trace(
        bearer: Auditor,
        after: Annotated[int, Parameter(ge=-1, le=MAX_SEQ)] = -1,
        before: Annotated[int | None, Parameter(ge=0, le=MAX_SEQ)] = None,
        limit: Annotated[int, Parameter(ge=1, le=1000)] = 100,
        newest: bool = False,
        wait: Annotated[float, Parameter(ge=0, le=60)] = 0,
        dataset: str | None = None,
        analyst: str | None = None,
        kind: str | None = None,
        word: str | None = None,
    ) -> Response:
        """Oldest first after an entry; or newest first, before one. `wait`: so many seconds for news."""
        sieve = watching.Sieve(dataset, analyst, kind, word)
        if wait:
            await watching.news(house.ledger, after, wait)
            house.tokens.check(bearer)

        def look() -> Response:
            head = house.ledger.head()
            if newest or before is not None:
                end = head.seq + 1 if before is None else min(before, head.seq + 1)
                entries, seen = watching.before(house.ledger, end, limit, sieve)
            else:
                entries, seen = watching.after(house.ledger, after, limit, sieve)
            told: TraceTold = {"entries": entries, "looked_at": seen, "head": watching.head_of(head)}
            return _told(told)

        return await run_sync(look)

    @app.get(
        "/spending", response_model=None, tags=["oversight"], summary="What was spent: by whom, and over time"
    )
    def spent(_: Auditor) -> Response:
        told: SpendingTold = {"datasets": spending.told(house)}
        return _told(told)

    @app.post(
        "/ledger/verify",
        response_model=None,
        tags=["oversight"],
        summary="Replay the ledger through the kernel",
    )
    def verified(_: Auditor) -> Response:
        told: Verified | Corrupt = replaying.verified()
        return _told(told)

    @app.post(
        "/datasets/{name}/freeze",
        response_model=None,
        tags=["oversight"],
        summary="Refuse all queries of a data set, at once",
    )
    def freeze(name: str, _: Owner) -> Response:
        house.check_known(name)
        house.ledger.freeze(name)
        told: FrozenTold = {"name": name, "frozen": True}
        return _told(told)

    @app.post(
        "/datasets/{name}/unfreeze",
        response_model=None,
        tags=["oversight"],
        summary="Let a data set be asked again",
    )
    def unfreeze(name: str, _: Owner) -> Response:
        house.check_known(name)
        house.ledger.unfreeze(name)
        told: FrozenTold = {"name": name, "frozen": False}
        return _told(told)


def _told(value: object, status: int = 200) -> Response:
    """What an address tells, as bytes: made where the address acts.

    What is left to the framework, it writes down where everybody's requests arrive.
    """
    return _response(*replies.reply(status, value))


def _response(status: int, body: bytes) -> Response:
    headers = replies.headers(status)
    if status == 413:  # what is still to come of the request is not read
        headers["connection"] = "close"
    return Response(body, status, headers, media_type="application/json")
