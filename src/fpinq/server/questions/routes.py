"""POST /questions and /quotes, GET /questions and /me.

token → rate → a place → body → JSON → question → quote → the same actions as everybody's → reply
"""

import csv
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi import Query as Parameter

from fpinq.ledger.errors import RequestReused
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
from fpinq.server.questions.question import REQUEST_ID_CHARACTERS, Mistake, Question, question_of
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
        told = await asking.do(request, bearer, lambda raw: asking.ask(bearer, raw, header))
        return shown(request, told)

    @app.post(
        "/quotes",
        response_model=None,
        tags=["questions"],
        summary="What a question would cost; free, and written nowhere",
    )
    async def quote(request: Request, bearer: Analyst) -> Response:
        told = await asking.do(request, bearer, lambda raw: asking.quote(bearer, raw))
        return Response(replies.reply(200, told)[1], media_type=JSON)

    @app.get(
        "/questions",
        response_model=None,
        tags=["questions"],
        summary="Your own questions and their answers, newest first",
    )
    def questions(
        bearer: Analyst,
        before: Annotated[int | None, Parameter(ge=0)] = None,
        limit: Annotated[int, Parameter(ge=1, le=100)] = 20,
    ) -> KeptQuestions:
        return {"questions": [listed(kept) for kept in asking.kept.listed(bearer.name, before, limit)]}

    @app.get(
        "/questions/{request_id}",
        response_model=None,
        tags=["questions"],
        summary="One of your own questions",
    )
    def question(request_id: str, request: Request, bearer: Analyst) -> Response:
        kept = asking.kept.find(bearer.name, request_id)
        if kept is None:
            raise HTTPException(404)
        if wants_csv(request) and kept.answer is not None:
            return shown(request, kept.answer)
        return Response(replies.reply(200, listed(kept))[1], media_type=JSON)

    @app.get("/me", response_model=None, tags=["data sets"], summary="Who you are, and what is left for you")
    def me(bearer: AnyBearer) -> Me:
        until = bearer.expires_at
        return {
            "name": bearer.name,
            "role": bearer.role,
            "expires_at": None if until is None else time_text(until),
            "datasets": allowances(house, bearer.name),
        }

    return asking


class Asking:
    """How questions are asked here: in whose turn, and what is kept of them."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._turns = Turns(LATE)
        self.kept = Questions(house.config.questions_path, house.ledger.id)

    async def do(self, request: Request, bearer: Bearer, act: Callable[[bytes], Any]) -> Any:
        """Read a body and act on it, in a thread of its own."""
        limits = self._house.limits
        declared = request.headers.get("content-length")
        try:
            raw = await bodies.arrived(
                request.receive, None if declared is None else declared.encode(), limits
            )
        except bodies.Disconnected:
            raise HTTPException(400) from None  # nobody reads it
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
                question = question_of(body)
                request = (
                    question.request_id or (header or "")[:REQUEST_ID_CHARACTERS] or secrets.token_hex(16)
                )
                asked = {name: given for name, given in body.items() if name not in ("request_id", "size")}
                known = self.kept.find(analyst, request)
                if known is not None and known.question != asked:
                    raise RequestReused(request)
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

    def working(self, bearer: Bearer) -> Working:
        """An analyst's turn."""
        return Working(self._turns, bearer.name, float(self._house.config.quantum_seconds))

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


def shown(request: Request, answer: AnswerTold) -> Response:
    """An answer, as JSON or as CSV."""
    if wants_csv(request):
        return Response(table_of(answer), media_type=CSV)
    return Response(replies.reply(200, answer)[1], media_type=JSON)


def table_of(answer: AnswerTold) -> str:
    """An answer as CSV: a column for each key, the value by its name, low, high and standard_error."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\r\n")
    ends = ("low", "high", "standard_error")
    lines.writerow(map(cell, [*answer["key_columns"], answer["name"], *ends]))
    for each in answer["answers"]:
        lines.writerow(
            [
                cell(one)
                for one in (*each["key"], each["value"], each["low"], each["high"], each["standard_error"])
            ]
        )
    return text.getvalue()


def cell(value: Any) -> Any:
    """A value in a spreadsheet: a text that it would take for a formula stays a text."""
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def _is_formula(text: str) -> bool:
    if text[:1] != "-":
        return text[:1] in ("=", "+", "@", "\t", "\r")
    return not (text[1:].isdecimal() or text == "-inf")  # integers that doubles would round are texts
