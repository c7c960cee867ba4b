"""OpenAPI: what FastAPI cannot find out by itself, with examples."""

from typing import Any

from fastapi import FastAPI

from fpinq.model.actions import Action
from fpinq.model.traces import Observation
from fpinq.runtime.refusals import FAILURES
from fpinq.server import told
from fpinq.server.limits import Limits
from fpinq.server.schemas import Schemas

DESCRIPTION = """\
Analysts open a session and send *actions*: closed data, never code. Each is told a public fact, an
answer with noise, or ⊥ if the budget does not allow it. All requests but the public ones need
`Authorization: Bearer …`.

Every action carries a request id. Sent again, it gets the recorded answer and costs nothing; with
another action it is refused. Errors have fixed codes.

Whoever has no fpinq client asks *questions*: `POST /questions` with a table, a filter as text, a kind and
ε gives estimates with their intervals, and `POST /quotes` with the same body says before, for free, what
that costs and how exact it will be. A question becomes the same actions.
"""

_EXAMPLES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "budget": (
        "What is left?",
        {"op": "ask_budget"},
        {"observation": {"op": "told", "fact": {"people": "1"}}},
    ),
    "where": (
        "adults := people where age > 17",
        {
            "op": "assign",
            "target": "adults",
            "arguments": ["people"],
            "transformation": {
                "op": "where",
                "predicate": {
                    "op": "apply",
                    "operator": "greater",
                    "arguments": [
                        {"op": "column", "name": "age"},
                        {"op": "literal", "value": 17, "type": "int64"},
                    ],
                },
            },
        },
        {"observation": {"op": "tau"}},
    ),
    "count": (
        "How many adults, at ε = 1/2",
        {"op": "query", "table": "adults", "epsilon": "1/2", "queries": [{"op": "count"}]},
        {"observation": {"op": "answered", "released": [[1042]], "charged": {"people": "1/2"}}},
    ),
    "parts": (
        "How many of each gender, for the price of one count",
        {
            "op": "query",
            "table": "adults",
            "epsilon": "1/2",
            "queries": [{"op": "count"}, {"op": "count"}],
            "by": {"op": "partitioning", "key": {"op": "column", "name": "gender"}, "keys": [0, 1]},
        },
        {"observation": {"op": "answered", "released": [[530], [511]], "charged": {"people": "1/2"}}},
    ),
}


# What a request's body is, and what a reply is: by address.
Bodies = dict[tuple[str, str], tuple[Any, Any]]

TOLD: Bodies = {
    ("get", "/datasets"): (None, told.DataSetsTold),
    ("get", "/datasets/{name}"): (None, told.DataSetTold),
    ("post", "/sessions"): (None, told.SessionTold),
    ("get", "/sessions/{session}/tables/{variable}"): (None, told.Described),
    ("get", "/trace"): (None, told.TraceTold),
    ("get", "/spending"): (None, told.SpendingTold),
    ("post", "/ledger/verify"): (None, told.Verified | told.Corrupt),
    ("post", "/datasets/{name}/freeze"): (None, told.FrozenTold),
    ("post", "/datasets/{name}/unfreeze"): (None, told.FrozenTold),
}


def describe(app: FastAPI, limits: Limits, more: Bodies) -> None:
    """Add the actions, the security scheme, the errors and what bodies are to the application's OpenAPI."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            found, schemas = generate(), Schemas()
            found["paths"]["/sessions/{session}/actions"] = {"post": _action(limits, schemas)}
            for (method, path), bodies in {**TOLD, **more}.items():
                _describe(found["paths"][path][method], *bodies, schemas)
            components = found.setdefault("components", {})
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            components["schemas"] = {**schemas.named, "Error": _ERROR}
            for path, operations in found["paths"].items():
                for operation in operations.values():
                    if path not in ("/healthz", "/limits", "/metrics"):
                        operation["security"] = [{"token": []}]
                    operation["responses"].pop("422", None)
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _describe(operation: dict[str, Any], asked: Any, replied: Any, schemas: Schemas) -> None:
    """What a request and a reply are, of one address."""
    if asked is not None:
        schema = schemas.of(asked)
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    succeeded = next(iter(operation["responses"].values()))
    succeeded["content"] = {"application/json": {"schema": schemas.of(replied)}}
    error = {"schema": {"$ref": "#/components/schemas/Error"}}
    operation["responses"]["default"] = {
        "description": "A refusal, with a fixed code.",
        "content": {"application/json": error},
    }


def _action(limits: Limits, schemas: Schemas) -> dict[str, Any]:
    asked = {
        name: {"summary": title, "value": {"request_id": f"example-{name}", "action": action}}
        for name, (title, action, _) in _EXAMPLES.items()
    }
    answered = {name: {"summary": title, "value": reply} for name, (title, _, reply) in _EXAMPLES.items()}
    observed = {
        "type": "object",
        "required": ["observation"],
        "properties": {"observation": schemas.of(Observation)},
    }
    by_status: dict[int, list[str]] = {}
    for failure in FAILURES.values():
        by_status.setdefault(failure.status, []).append(failure.code)
    refusals = {
        str(status): {
            "description": " · ".join(sorted(codes)),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status, codes in sorted(by_status.items())
        if status != 402
    }
    return {
        "tags": ["sessions"],
        "summary": "One action of a client program",
        "description": "Each op is a rule of the kernel.",
        "parameters": [
            {"name": "session", "in": "path", "required": True, "schema": {"type": "string"}},
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "schema": {"type": "string"},
                "description": "The request id, where the body has none.",
            },
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["request_id", "action"],
                        "additionalProperties": False,
                        "properties": {
                            "request_id": {"type": "string", "maxLength": 100},
                            "action": schemas.of(Action),
                        },
                    },
                    "examples": asked,
                }
            },
            "description": f"At most {limits.body_bytes} bytes.",
        },
        "responses": {
            "200": {
                "description": "What the program is told.",
                "content": {"application/json": {"schema": observed, "examples": answered}},
            },
            **refusals,
        },
    }


_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "fields"],
            "properties": {
                "code": {"type": "string", "enum": sorted({f.code for f in FAILURES.values()})},
                "message": {"type": "string"},
                "fields": {"type": "object"},
            },
        }
    },
    "example": {
        "error": {
            "code": "unknown_column",
            "fields": {"column": "agee", "known": ["age", "gender"]},
            "message": "unknown column 'agee'; did you mean 'age'? The columns are: age, gender",
        }
    },
}
