"""A town to ask, and a question of every kind."""

from fractions import Fraction
from typing import Any

import jsonschema

from fpinq.server import DataSet, TableConfig
from server.live import Live, Reply, people

VISITS = [{"person_id": i // 3, "month": 1 + i % 12, "cost": float(i % 7)} for i in range(300)]
COLUMNS = {"age": {"bounds": [0, 110], "description": "in years"}, "gender": {"keys": [0, 1]}}


def town(budget: object = 4) -> dict[str, DataSet]:
    """Rows, and persons of two tables."""
    months = {"month": {"keys": list(range(1, 13))}, "cost": {"bounds": [0, 10]}}
    tables = {
        "visits": TableConfig(VISITS, rows_per_unit=2, columns=months),
        "bills": TableConfig(VISITS, rows_per_unit=1),
    }
    clinic = DataSet("clinic", Fraction(4), tables, unit="person_id", description="Visits to a clinic")
    return {**people(budget, columns=COLUMNS, caps={"carol": Fraction(1, 4)}), "clinic": clinic}


def ask(live: Live, token: str, path: str = "/questions", **question: Any) -> Reply:
    return live.send("POST", path, {"epsilon": "1/10", **question}, token)


QUESTIONS: list[dict[str, Any]] = [
    {"kind": "count"},
    {"kind": "count", "where": "age > 40"},
    {"kind": "count", "by": "gender"},
    {"kind": "count", "by": ["gender", "age > 40"], "keys": [[0, False], [1, True]]},
    {"kind": "count", "by": ["gender", "age > 40"], "keys": {"key2": [True]}},
    {"kind": "distinct_count", "of": "age"},
    {"kind": "distinct_count", "of": "age", "by": "gender"},
    {"kind": "proportion", "of": "age > 30"},
    {"kind": "sum", "of": "age"},
    {"kind": "sum", "of": "age * 2", "bounds": [0, "220"]},
    {"kind": "average", "of": "age", "by": "gender", "where": "age > 17"},
    {"kind": "variance", "of": "age", "bounds": [0, 100]},
    {"kind": "standard_deviation", "of": "age"},
    {"kind": "median", "of": "age"},
    {"kind": "median", "of": "age", "interval": 0.9},
    {"kind": "quantile", "of": "age", "fraction": "9/10"},
    {"kind": "minimum", "of": "age"},
    {"kind": "maximum", "of": "age"},
    {"kind": "mode", "of": "gender"},
    {"kind": "mode", "of": "name", "candidates": ["n1", "n2"], "by": "gender"},
    {"kind": "top", "of": "gender", "first": 1},
    {"kind": "top", "of": "age / 10", "first": 2, "candidates": [2.0, 2.5, 3.0]},
    {"kind": "top", "of": "age", "first": 2, "candidates": [20, 21, 99], "by": "gender"},
    {"kind": "covariance", "of": ["age", "gender"], "bounds": [None, [0, 1]]},
    {"kind": "correlation", "of": ["age", "age * age"], "bounds": [[0, 100], [0, "1e4"]]},
    {"kind": "correlation", "of": ["age", "gender = 1"], "by": "gender"},
    {"kind": "regression", "of": ["age", "gender"], "bounds": [None, [0, 1]]},
    {"kind": "regression", "of": ["age", "gender = 1", "age / 3"], "bounds": [[0, 99], None, [0, 40]]},
    {"kind": "histogram", "of": "age", "bins": 5},
    {"kind": "histogram", "of": "age", "bins": [0, 30, 110], "by": "gender"},
    {"kind": "cdf", "of": "age", "bins": 4},
]


# Among equally good points one is chosen at random, at any ε.
CHOICES = ("median", "quantile", "minimum", "maximum", "mode")


def words(question: dict[str, Any]) -> str:
    return " ".join(str(value) for value in question.values())


def check(described: dict[str, Any], path: str, body: Any, *, request: bool = False) -> None:
    """What OpenAPI says of a body is so."""
    operation = described["paths"][path]["post"]
    content = operation["requestBody"] if request else operation["responses"]["200"]
    schema = content["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator({**schema, "components": described["components"]}).validate(body)
