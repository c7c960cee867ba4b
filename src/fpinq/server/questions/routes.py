"""POST /questions and /quotes, GET /questions and /me.

token → rate → a place → body → JSON → question → quote → the same actions as everybody's → reply
"""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi import Query as Parameter

from fpinq.client.columns import csv_text
from fpinq.ledger.store import MAX_SEQ
from fpinq.model.errors import BudgetExceeded, ProgramError
from fpinq.runtime.deadline import within
from fpinq.runtime.refusals import TooLarge
from fpinq.server import bodies, replies
from fpinq.server.bearers import Analyst, AnyBearer
from fpinq.server.house import House
from fpinq.server.questions.answering import (
    allowances,
    answered,
    mistaken,
    quote_reply,
    quoted,
    session_of,
)
from fpinq.server.questions.kept import Kept, Questions
from fpinq.server.questions.question import Mistake, Question, question_of
from fpinq.server.questions.systems import OnLedger, Working
from fpinq.server.tokens import Bearer
from fpinq.server.told import AnswerTold, KeptQuestion, KeptQuestions, Me, QuoteTold, Told, Wrong
from fpinq.server.turns import LATE, Turns

JSON = "application/json"
CSV = "text/csv; charset=utf-8"


# What requests and replies are, by address.
TOLD: dict[tuple[str, str], tuple[Any, Any]] = {
    ("post", "/questions"): (Question, Told),
    ("post", "/quotes"): (Question, QuoteTold | Wrong),
    ("get", "/questions"): (None, KeptQuestions),
    ("get", "/questions/{request_id}"): (None, KeptQuestion),
    ("get", "/me"): (None, Me),
}


def add_questions(app: FastAPI, house: House) -> "Asking":
    """The addresses of questions; and how they are asked, for others who ask."""
    asking = Asking(house)

    @app.post("/questions", response_model=None, tags=["questions"], summary="Ask a question; it is charged")
    async def ask(request: Request, bearer: Analyst) -> Response:
        header = request.headers.get("idempotency-key")

        def act(raw: bytes) -> Response:
            told = asking.ask(bearer, raw, header)
            return asking.reply(bearer, lambda: shown(request, told))

        return await asking.do(request, bearer, act)

    @app.post(
        "/quotes",
        response_model=None,
        tags=["questions"],
        summary="What a question would cost; free, and written nowhere",
    )
    async def quote(request: Request, bearer: Analyst) -> Response:
        def act(raw: bytes) -> Response:
            told = asking.quote(bearer, raw)
            return asking.reply(bearer, lambda: as_json(told))

        return await asking.do(request, bearer, act)

    @app.get(
        "/questions",
        response_model=None,
        tags=["questions"],
        summary="Your own questions and their answers, newest first",
    )
    def questions(
        bearer: Analyst,
        before: Annotated[int | None, Parameter(ge=0, le=MAX_SEQ)] = None,
        limit: Annotated[int, Parameter(ge=1, le=100)] = 20,
    ) -> Response:
        def look() -> Response:
            found, more = asking.kept.listed(bearer.name, before, limit)
            told: KeptQuestions = {"questions": list(map(listed, found)), "more": more}
            return as_json(told)

        return asking.reply(bearer, look)

    @app.get(
        "/questions/{request_id}",
        response_model=None,
        tags=["questions"],
        summary="One of your own questions",
    )
    def question(request_id: str, request: Request, bearer: Analyst) -> Response:
        def look() -> Response:
            kept = asking.kept.find(bearer.name, request_id)
            if kept is None:
                raise NoSuchQuestion
            return as_json(listed(kept)) if kept.answer is None else shown(request, kept.answer, listed(kept))

        return asking.reply(bearer, look)

    @app.get("/me", response_model=None, tags=["data sets"], summary="Who you are, and what is left for you")
    def me(bearer: AnyBearer) -> Response:
        until = bearer.expires_at
        told: Me = {
            "name": bearer.name,
            "role": bearer.role,
            "expires_at": None if until is None else time_text(until),
            "datasets": allowances(house, bearer.name),
        }
        return as_json(told)

    return asking


class NoSuchQuestion(HTTPException):
    """The address is one, and nothing is kept there for whoever asks."""

    def __init__(self) -> None:
        super().__init__(404, "none of your questions has this request id: see GET /questions")


class Asking:
    """How questions are asked here: in whose turn, and what is kept of them."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._turns = Turns(LATE)
        self.kept = Questions(house.config.questions_path, house.ledger.id)

    async def do(self, request: Request, bearer: Bearer, act: Callable[[bytes], Response]) -> Response:
        """Read a body and act on it, in a thread of its own."""
        limits = self._house.limits
        declared = request.headers.get("content-length")
        try:
            raw = await bodies.arrived(
                request.receive, None if declared is None else declared.encode(), limits
            )
        except bodies.Disconnected:
            raise HTTPException(400) from None  # nobody reads it
        self._house.tokens.check(bearer)
        # Whoever has a place has a thread: what is begun is ended, even if nobody waits for it any more.
        return await run_sync(act, raw)

    def quote(self, bearer: Bearer, raw: bytes) -> QuoteTold | Wrong:
        """What a question would cost, or its first mistake."""
        with within(self._house.limits.query_seconds), self.working(bearer):
            try:
                return quote_reply(self._house, bearer.name, question_of(self.parsed(raw)))
            except ProgramError as error:
                return {"mistake": mistaken(error)}

    def ask(self, bearer: Bearer, raw: bytes, header: str | None) -> Told:
        """The answer of a question; the one it got before, if it was asked before."""
        house, analyst = self._house, bearer.name
        with self.working(bearer) as working:
            try:
                body = self.parsed(raw)
                bodies.identify(body, header)
                question = question_of(body)
                request = question.request_id or secrets.token_hex(16)
                asked = {name: given for name, given in body.items() if name not in ("request_id", "size")}
                known = self.kept.asked(analyst, request, asked)
                if known is not None and known.answer is not None:
                    return {"request_id": request, **known.answer}
                quote = quoted(house, analyst, question)
                if known is None:
                    quote.check()
                    known = self.kept.begin(analyst, request, asked)
                session = session_of(house, analyst, request)
                system = OnLedger(house, analyst, session, working, resumed=known is not None)
                try:
                    answer = answered(house, analyst, question, quote, system)
                except (ProgramError, BudgetExceeded):
                    if not system.queried:
                        self.kept.forget(analyst, request)
                    raise
            except Mistake as mistake:
                raise mistake.error from None
            self.kept.answer(analyst, request, answer, working.release())
            return {"request_id": request, **answer}

    def reply(self, bearer: Bearer, make: Callable[[], Response]) -> Response:
        """A reply, read and written down in its analyst's turn: a long one keeps the interpreter a while."""
        with self.working(bearer):
            return make()

    def working(self, bearer: Bearer) -> Working:
        """An analyst's turn."""
        still = partial(self._house.tokens.check, bearer)
        return Working(self._turns, bearer.name, float(self._house.config.quantum_seconds), still)

    def parsed(self, raw: bytes) -> dict[str, Any]:
        """The JSON that a body is."""
        try:
            return bodies.parse(raw, self._house.limits)
        except RecursionError:
            raise TooLarge("nested too deeply") from None


# ── replies ──────────────────────────────────────────────────────────────────────────


def listed(kept: Kept) -> KeptQuestion:
    """A question that was asked, as it is told."""
    return {
        "number": kept.number,
        "request_id": kept.request_id,
        "question": kept.question,
        "asked_at": time_text(kept.asked_at),
        "answer": kept.answer,
    }


def time_text(seconds: float) -> str:
    """A time, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def wants_csv(request: Request) -> bool:
    """Whether a reply is to be a table that spreadsheets read."""
    return request.query_params.get("format") == "csv" or "text/csv" in request.headers.get("accept", "")


def shown(request: Request, answer: AnswerTold, told: object = None) -> Response:
    """An answer as CSV; or as JSON, with what else is told of it."""
    if wants_csv(request):
        return Response(table_of(answer), media_type=CSV)
    return as_json(told or answer)


def as_json(told: object) -> Response:
    """What is told, as JSON."""
    return Response(replies.reply(200, told)[1], media_type=JSON)


def table_of(answer: AnswerTold) -> str:
    """An answer as CSV: a column for each key, the value by its name, low, high and standard_error."""
    header = (*answer["key_columns"], answer["name"], "low", "high", "standard_error")
    each = (
        (*one["key"], one["value"], one["low"], one["high"], one["standard_error"])
        for one in answer["answers"]
    )
    return csv_text([header, *each], "\r\n")
