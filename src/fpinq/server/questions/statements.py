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
from fpinq.client.columns import needed
from fpinq.ledger.errors import BadWire, RequestReused
from fpinq.model.errors import BudgetExceeded, ProgramError
from fpinq.model.expressions import is_text
from fpinq.runtime.deadline import within
from fpinq.runtime.refusals import TooLarge
from fpinq.server import replies
from fpinq.server.bearers import Analyst
from fpinq.server.house import House
from fpinq.server.questions.answering import CONFIDENCE, allowances, exactly, number, session_of, value
from fpinq.server.questions.kept import Questions
from fpinq.server.questions.question import MOST_ONE_BY_ONE, REQUEST_ID_CHARACTERS
from fpinq.server.questions.routes import CSV, JSON, Asking, cell, wants_csv
from fpinq.server.questions.systems import OnLedger, OnPaper, Quoted
from fpinq.server.tokens import Bearer
from fpinq.server.told import Number, Scalar


class Statement(TypedDict, total=False):
    """A statement: SELECT … or EXPLAIN SELECT …, and its ε."""

    statement: str
    epsilon: str | int | float
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
    epsilon: str
    charged: dict[str, str]
    remaining: dict[str, str]
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
        told = await asking.do(request, bearer, lambda raw: _told(house, asking, kept, bearer, raw, header))
        if wants_csv(request) and "rows" in told:
            return Response(_table(told), media_type=CSV)
        return Response(replies.reply(200, told)[1], media_type=JSON)


def _told(
    house: House, asking: Asking, kept: Questions, bearer: Bearer, raw: bytes, header: str | None
) -> Mapping[str, Any]:
    needed("sqlglot", "SQL")
    from fpinq.sql.asking import ask  # an extra, which a server can do without
    from fpinq.sql.front import planned

    analyst = bearer.name
    with asking.working(bearer) as working:
        statement, epsilon, given = _read(asking.parsed(raw))
        explained = _on_paper(house, analyst, statement, epsilon)
        if explained is not None:
            return explained
        request = given or (header or "")[:REQUEST_ID_CHARACTERS] or secrets.token_hex(16)
        asked = {"statement": statement, "epsilon": str(epsilon)}
        known = kept.find(analyst, request)
        if known is not None and known.question != asked:
            raise RequestReused(request)
        if known is not None and known.answer is not None:
            return {"request_id": request, **known.answer}
        if known is None:
            _check(house, analyst, statement, epsilon)
            known = kept.begin(analyst, request, asked)
        session = session_of(house, analyst, request, "sql")
        system = OnLedger(house, analyst, session, working, resumed=known is not None)
        try:
            plan = planned(statement, Catalog(system))
            result = ask(plan, epsilon)
        except (ProgramError, BudgetExceeded):
            if not system.queried:
                kept.forget(analyst, request)
            raise
        told = _rows(house, analyst, result, list(plan.table.facts.roots))
        kept.answer(analyst, request, told, working.release())  # type: ignore[arg-type]  # kept as JSON
        return {"request_id": request, **told}


def _on_paper(house: House, analyst: str, statement: str, epsilon: Any) -> Explained | None:
    """The explanation of an EXPLAIN; None of a SELECT, of which the mistakes are found."""
    from fpinq.sql.explaining import explain
    from fpinq.sql.front import planned

    with within(house.limits.query_seconds):
        plan = planned(statement, Catalog(OnPaper(house, analyst)))
        if not plan.parsed.explained:
            return None
        found = explain(plan, epsilon)
        return {"explanation": str(found), "missing": list(found.missing)}


def _check(house: House, analyst: str, statement: str, epsilon: Any) -> None:
    """Every query of the statement on paper: its mistakes, ⊥, limits, and data sets that are frozen."""
    from fpinq.sql.asking import each_query, number_of_queries
    from fpinq.sql.front import planned

    paper = OnPaper(house, analyst)
    with within(house.limits.query_seconds):
        plan = planned(statement, Catalog(paper))
        paper.check_thawed(set(plan.table.facts.roots))
        if not plan.missing and number_of_queries(plan, epsilon) > MOST_ONE_BY_ONE:
            raise TooLarge(
                f"this statement is more than {MOST_ONE_BY_ONE} queries, one after the other: "
                "COUNT(DISTINCT …) is one for each key, and so is each grouping set"
            )
        for query in each_query(plan, epsilon):
            try:
                query()
            except Quoted:
                if paper.refused:
                    raise BudgetExceeded("it costs more than is left. Nothing was charged") from None


def _read(body: Mapping[str, Any]) -> tuple[str, Any, str]:
    """The statement, its ε and its request id."""
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
    return statement, body.get("epsilon"), str(request or "")


def _rows(house: House, analyst: str, result: Any, roots: list[str]) -> dict[str, Any]:
    lines = list(result.values()) if result.is_level else [result]
    names = list(lines[0].cells) if lines else []
    left = allowances(house, analyst)
    spent = result.charged
    charged = spent if isinstance(spent, Mapping) else dict.fromkeys(roots, spent)
    return {
        "epsilon": exactly(Fraction(result.epsilon)),
        "charged": {root: exactly(amount) for root, amount in charged.items()},
        "remaining": {root: left[root]["left"] for root in charged if root in left},
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
    import csv
    from io import StringIO

    text = StringIO()
    lines = csv.writer(text, lineterminator="\r\n")
    lines.writerow(map(cell, told["columns"]))
    for row in told["rows"]:
        lines.writerow([cell(each["value"] if isinstance(each, dict) else each) for each in row])
    return text.getvalue()
