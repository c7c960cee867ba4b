"""POST /sql: a statement of SQL from who has no Python: read here, and then the same actions as everybody's.

The statement is planned on paper first, so that its mistakes, and a budget too small, are found before
anything is written; then the same program runs on the ledger, in a session of its own. A statement
that is sent again under its request id is answered as it was.
"""

import secrets
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypedDict

from fastapi import FastAPI, Request, Response

from fpinq.client.answers import Answer
from fpinq.client.catalog import Catalog
from fpinq.client.columns import csv_text, needed
from fpinq.ledger.errors import BadWire
from fpinq.model import epsilon as exact
from fpinq.model.errors import BudgetExceeded, ProgramError
from fpinq.model.expressions import is_text
from fpinq.model.notions import Rho
from fpinq.runtime.deadline import within
from fpinq.runtime.refusals import TooLarge
from fpinq.server import bodies
from fpinq.server.bearers import Analyst
from fpinq.server.house import House
from fpinq.server.questions.answering import (
    CONFIDENCE,
    allowances,
    exactly,
    number,
    remaining,
    remaining_delta,
    session_of,
    value,
)
from fpinq.server.questions.kept import Questions
from fpinq.server.questions.question import MOST_ONE_BY_ONE, REQUEST_ID_CHARACTERS
from fpinq.server.questions.routes import CSV, Asking, as_json, wants_csv
from fpinq.server.questions.systems import OnLedger, OnPaper
from fpinq.server.tokens import Bearer
from fpinq.server.told import Number, Scalar


class Statement(TypedDict, total=False):
    """A statement: SELECT … or EXPLAIN SELECT …, and its ε; or, of budgets in ρ, its ρ.

    With a δ, keys of GROUP BY that are not public are found.
    """

    statement: str
    epsilon: str | int | float
    rho: str | int | float
    delta: str | int | float
    request_id: str


class Released(TypedDict):
    """A value that was released, and between what it is with the confidence that is told."""

    value: Scalar
    low: Number | None
    high: Number | None
    standard_error: Number | None


class Rows(TypedDict):
    """The rows of a statement: released values, and keys as they are."""

    request_id: str
    epsilon: str | None
    rho: str | None
    delta: str | None
    charged: dict[str, str]
    remaining: dict[str, str]
    charged_delta: dict[str, str]
    remaining_delta: dict[str, str]
    confidence: float
    columns: list[str]
    rows: list[list[Released | Scalar]]


class Explained(TypedDict):
    """What a statement would ask: free, and written nowhere."""

    explanation: str
    missing: list[str]


TOLD: dict[tuple[str, str], tuple[Any, Any]] = {("post", "/sql"): (Statement, Rows | Explained)}


def add_statements(app: FastAPI, house: House, asking: Asking) -> None:
    """The address of statements."""
    kept = Questions(f"{house.config.questions_path}.sql", house.ledger.id)

    @app.post(
        "/sql", response_model=None, tags=["questions"], summary="A SELECT, charged; or an EXPLAIN, free"
    )
    async def ask(request: Request, bearer: Analyst) -> Response:
        header = request.headers.get("idempotency-key")

        def act(raw: bytes) -> Response:
            told = _told(house, asking, kept, bearer, raw, header)
            return asking.reply(bearer, lambda: _shown(request, told))

        return await asking.do(request, bearer, act)


def _shown(request: Request, told: Mapping[str, Any]) -> Response:
    """What a statement is told: rows as CSV, where that is wanted, or JSON."""
    if wants_csv(request) and "rows" in told:
        return Response(_table(told), media_type=CSV)
    return as_json(told)


def _told(
    house: House, asking: Asking, kept: Questions, bearer: Bearer, raw: bytes, header: str | None
) -> Mapping[str, Any]:
    needed("sqlglot", "SQL")
    from fpinq.sql.asking import ask  # an extra, which a server can do without
    from fpinq.sql.front import planned

    analyst = bearer.name
    with asking.working(bearer) as working:
        body = asking.parsed(raw)
        bodies.identify(body, header)
        statement, at, delta, given = _read(body)
        explained = _on_paper(house, analyst, statement, at, delta)
        if explained is not None:
            return explained
        request = given or secrets.token_hex(16)
        asked = {"statement": statement, **_asked_at(at), **({} if delta is None else {"delta": str(delta)})}
        known = kept.asked(analyst, request, asked)
        if known is not None and known.answer is not None:
            return {"request_id": request, **known.answer}
        if known is None:
            _check(house, analyst, statement, at, delta)
            known = kept.begin(analyst, request, asked)
        session = session_of(house, analyst, request, "sql")
        system = OnLedger(house, analyst, session, working, resumed=known is not None)
        try:
            plan = planned(statement, Catalog(system), delta=delta)
            before = allowances(house, analyst)
            result = ask(plan, at)
        except (ProgramError, BudgetExceeded):
            if not system.queried:
                kept.forget(analyst, request)
            raise
        told = _rows(result, list(plan.roots), delta)
        told["remaining"] = remaining(before, told["charged"], system)
        told["remaining_delta"] = remaining_delta(before, told["charged_delta"], system)
        kept.answer(analyst, request, told, working.release())  # type: ignore[arg-type]  # kept as JSON
        return {"request_id": request, **told}


def _on_paper(house: House, analyst: str, statement: str, at: Any, delta: Any) -> Explained | None:
    """The explanation of an EXPLAIN; None of a SELECT, of which the mistakes are found."""
    from fpinq.sql.explaining import explain
    from fpinq.sql.front import planned

    with within(house.limits.query_seconds):
        plan = planned(statement, Catalog(OnPaper(house, analyst)), delta=delta)
        if not plan.parsed.explained:
            return None
        found = explain(plan, at)
        return {"explanation": str(found), "missing": list(found.missing)}


def _check(house: House, analyst: str, statement: str, at: Any, delta: Any) -> None:
    """Every query of the statement on paper: its mistakes, ⊥, limits, and data sets that are frozen."""
    from fpinq.sql.asking import exactly as amount
    from fpinq.sql.asking import number_of_queries, refuse_unless_possible
    from fpinq.sql.front import planned

    paper = OnPaper(house, analyst)
    with within(house.limits.query_seconds):
        plan = planned(statement, Catalog(paper), delta=delta)
        paper.check_thawed(set(plan.roots))
        if not plan.missing and number_of_queries(plan, amount(at)) > MOST_ONE_BY_ONE:
            raise TooLarge(
                f"this statement is more than {MOST_ONE_BY_ONE} queries, one after the other: "
                "COUNT(DISTINCT …) is one for each key, and so is each grouping set"
            )
        refuse_unless_possible(plan, amount(at), even_one=True)


def _read(body: Mapping[str, Any]) -> tuple[str, Any, Fraction | None, str]:
    """The statement, its ε or ρ, its δ for keys and its request id."""
    for name in body:
        if name not in Statement.__annotations__:
            raise BadWire(f"unknown key {name[:40]!r}; there are {', '.join(Statement.__annotations__)}")
    statement, request = body.get("statement"), body.get("request_id")
    if not isinstance(statement, str):
        raise BadWire("'statement' is missing, or is no text")
    if request is not None and (
        not isinstance(request, str) or not 0 < len(request) <= REQUEST_ID_CHARACTERS or not is_text(request)
    ):
        raise BadWire(f"'request_id' is a text of at most {REQUEST_ID_CHARACTERS} characters")
    delta = None if body.get("delta") is None else exact.delta(body["delta"])
    if body.get("rho") is None:
        return statement, body.get("epsilon"), delta, str(request or "")
    if body.get("epsilon") is not None:
        raise BadWire("say 'epsilon' or 'rho', not both: a statement is asked at one")
    return statement, Rho(exact.rho(body["rho"])), delta, str(request or "")


def _asked_at(at: Any) -> dict[str, str]:
    """What a statement is asked at, as a text."""
    return {"rho": str(at.amount)} if isinstance(at, Rho) else {"epsilon": str(at)}


def _rows(result: Any, roots: list[str], delta: Fraction | None) -> dict[str, Any]:
    lines = list(result.values()) if result.is_level else [result]
    names = list(lines[0].cells) if lines else []
    charged, deltas = (
        spent if isinstance(spent, Mapping) else dict.fromkeys(roots, spent)
        for spent in (result.charged, result.charged_delta)
    )
    return {
        "epsilon": None if isinstance(result.epsilon, Rho) else exactly(Fraction(result.epsilon)),
        "rho": exactly(result.epsilon.amount) if isinstance(result.epsilon, Rho) else None,
        "delta": None if delta is None else exactly(delta),
        "charged": {root: exactly(amount) for root, amount in charged.items()},
        "charged_delta": {root: exactly(amount) for root, amount in deltas.items() if amount},
        "confidence": float(CONFIDENCE),
        "columns": names,
        "rows": [[_cell(line.cells[name]) for name in names] for line in lines],
    }


def _cell(found: Any) -> Any:
    if not isinstance(found, Answer):
        return value(found)
    low, high = found.interval(CONFIDENCE) or (None, None)
    return {
        "value": value(found.value),
        "low": number(low),
        "high": number(high),
        "standard_error": number(found.standard_error),
    }


def _table(told: Mapping[str, Any]) -> str:
    """The rows as CSV: of what was released, the value."""
    rows = ([each["value"] if isinstance(each, dict) else each for each in row] for row in told["rows"])
    return csv_text([told["columns"], *rows], "\r\n")
