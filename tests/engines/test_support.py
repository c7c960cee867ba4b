"""Keys that nobody listed: every engine has the reference's counts of them."""

from datetime import date
from typing import Any

import pytest

from fpinq.engines import reference
from fpinq.model.domains import DateDomain, IntegerDomain, ProductDomain, StringDomain, TruthDomain
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import RootTable, Term
from fpinq.model.statistics import Support
from fpinq.model.transformations import Partitioning, Where

SCHEMA = Schema.of({"k": Type.INT64, "s": Type.STRING, "d": Type.DATE, "b": Type.BOOL, "f": Type.FLOAT64})
K, S, D, B, F = (Column(name) for name in SCHEMA.names())
TEXTS = ["a", "A", "a ", "", "é", "e\u0301", "\U0001f600", "aé" * 9, None, "a", "a"]
ROWS = [
    (
        [5, -5, 2**62, None, 5, 0][i % 6],
        TEXTS[i % 11],
        [date(2024, 2, 29), date(1, 1, 1), None][i % 3],
        [True, False, None][i % 3],
        [0.0, -0.0, 1.5, None, float("inf")][i % 5],
    )
    for i in range(97)
]
ALL = IntegerDomain(-(2**63), 2**63 - 1)
ASKED = {
    "integers": Support((K,), ALL),
    "integers of a few": Support((K,), IntegerDomain(0, 9)),
    "computed integers": Support((Apply("add", (K, K)),), ALL),
    "integers of floats": Support((Apply("to_int64", (F,)),), ALL),
    "texts": Support((S,), StringDomain(64)),
    "short texts": Support((S,), StringDomain(2)),
    "dates": Support((D,), DateDomain(date.min, date.max)),
    "truths": Support((B,), TruthDomain()),
    "conditions": Support((Apply("less", (K, Literal.of(1))),), TruthDomain()),
    "products": Support((S, K, B), ProductDomain((StringDomain(8), IntegerDomain(-9, 9), TruthDomain()))),
    "a column twice": Support((K, K), ProductDomain((ALL, IntegerDomain(0, 9)))),
}


@pytest.fixture(scope="module")
def told(engine: Any) -> Any:
    rows = [dict(zip(SCHEMA.names(), row, strict=True)) for row in ROWS]
    engine.add_root("supported", rows, dict(SCHEMA.columns))
    return engine


def expected(by: Any, support: Support, plan: Any) -> Any:
    table = reference.compute(plan, {"supported": reference.Relation(SCHEMA, tuple(ROWS))})
    return reference.measure(table, by, [support])


@pytest.mark.parametrize("name", ASKED)
def test_keys_that_are_found_have_the_counts_of_their_records(told: Any, name: str) -> None:
    plan = RootTable("supported")
    assert [dict(of) for of in told.measure(plan, None, [ASKED[name]])] == expected(None, ASKED[name], plan)


@pytest.mark.parametrize(
    "by",
    [
        Partitioning(B, (True, False, None)),
        Partitioning(K, range(-10, 10)),
        Partitioning(S, tuple("aAbcdefg")),
    ],
    ids=["truths", "a range", "texts"],
)
def test_keys_are_found_in_every_part(told: Any, by: Partitioning) -> None:
    plan = Term(Where(Apply("not", (Apply("is_null", (D,)),))), (RootTable("supported"),))
    for support in (ASKED["texts"], ASKED["products"]):
        assert [dict(of) for of in told.measure(plan, by, [support])] == expected(by, support, plan)


def test_no_records_have_no_keys(told: Any) -> None:
    nothing = Term(Where(Apply("less", (K, K))), (RootTable("supported"),))
    assert [dict(of) for of in told.measure(nothing, None, [ASKED["texts"]])] == [{}]
