"""The bound on work against what the reference engine really does, counted."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engines.counting import lengths_of, measured_units, without
from engines.generators import Example, plan_examples
from fpinq.engines import reference
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.duckdb.dialect import SQL
from fpinq.engines.sql.expressions import Bindings, Code, Parameters
from fpinq.model.clamps import Clamp
from fpinq.model.errors import UnboundedStability
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.operators import OPERATORS
from fpinq.model.plans import OPERATOR_LEVELS, Flatten, Persons, RootTable, Term
from fpinq.model.queries import Choice, Count, PrimitiveQuery
from fpinq.model.statistics import Records
from fpinq.model.transformations import (
    Aggregate,
    All,
    Explode,
    First,
    GroupBy,
    Join,
    LiteralTable,
    Select,
    SelectMany,
    Where,
)
from fpinq.model.work import RootSize, TableSize, Work, work_of

# How much more a bound may say than is done: a row that is hashed is one step here, and 250 units there.
LOOSE = 300


def sizes_of(database: reference.Database) -> Mapping[str, RootSize]:
    """Sizes that hold, and no larger: the rows and the longest texts that are there."""
    sizes: dict[str, RootSize] = {}
    for name, table in database.items():
        if isinstance(table, reference.Relation):
            sizes[name] = {"": TableSize(len(table.rows), lengths_of([table]))}
            continue
        sizes[name] = {}
        for t, schema in table.shape.tables:
            rows = [person[t] for person in table.persons] or [reference.Relation(schema, ())]
            number = sum(len(relation.rows) for relation in rows)
            sizes[name] = {**sizes[name], t: TableSize(number, lengths_of(rows))}
    return sizes


def bound_of(example: Example, database: reference.Database) -> Work:
    try:
        return work_of(example.plan, example.by, example.queries, sizes_of(database))
    except UnboundedStability:
        assume(False)
        raise


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan_examples(), st.data())
def test_one_record_more_does_no_more_work_than_the_bound(example: Example, data: Any) -> None:
    database = example.database()
    bound = bound_of(example, database)
    units = measured_units(example.plan, database, example.by, example.queries)
    assert units <= bound.query
    for root, table in database.items():
        records = table.rows if isinstance(table, reference.Relation) else table.persons
        if records:
            number = data.draw(st.integers(0, len(records) - 1))
            fewer = measured_units(example.plan, without(database, root, number), example.by, example.queries)
            assert abs(units - fewer) <= bound.record


# ── not much more, either ────────────────────────────────────────────────────────────

TEXT = "é" * 1_000
S, N = Column("s"), Column("n")
SCHEMA = Schema.of({"id": Type.INT64, "s": Type.STRING, "n": Type.INT64})
ROWS = tuple((i, TEXT, i % 7) for i in range(4))
ROOT = RootTable("r")
PEOPLE = Persons("id", (("p", SCHEMA),))
PUBLIC = Term(LiteralTable(Schema.of({"k": Type.INT64}), tuple((i % 7,) for i in range(20))), ())
COUNTED = (("n", Aggregate("count")),)
CROSS = Join((Literal.of(1),), (Literal.of(1),), All(), All(), (("k", Column("l.k")),))


def nested(times: int) -> Any:
    text: Any = S
    for _ in range(times):
        text = Apply("upper", (text,))
    return text


TYPICAL: dict[str, tuple[Any, PrimitiveQuery]] = {
    "a filter": (Term(Where(Apply("equal", (N, Literal.of(3)))), (ROOT,)), Count()),
    "text": (Term(Select((("s", nested(10)),)), (ROOT,)), Count()),
    "long text": (Term(Where(Apply("equal", (Apply("concat", (S, S)), Literal.of("x")))), (ROOT,)), Count()),
    "groups": (Term(GroupBy((("s", S),), COUNTED), (ROOT,)), Count()),
    "many records": (
        Term(SelectMany(tuple((("n", Apply("add", (N, Literal.of(i)))),) for i in range(500)), 500), (ROOT,)),
        Count(),
    ),
    "pieces": (Term(Explode(Apply("split", (S, Literal.of("é"))), "word", 1_000), (ROOT,)), Count()),
    "a public join": (
        Term(Join((N,), (Column("k"),), All(), First(10), (("k", Column("r.k")),)), (ROOT, PUBLIC)),
        Count(),
    ),
    "a choice": (
        ROOT,
        Choice(tuple(Clamp(N, 0, i) for i in range(300))),
    ),
    "a cross join inside a person": (
        Term(
            Flatten(Term(GroupBy((), COUNTED), (Term(CROSS, (Term(CROSS, (PUBLIC, PUBLIC)), PUBLIC)),))),
            (RootTable("people"),),
        ),
        Count(),
    ),
}


@pytest.mark.parametrize("name", TYPICAL)
def test_the_bound_is_not_much_more_than_what_a_record_does(name: str) -> None:
    plan, query = TYPICAL[name]
    database = {
        "r": reference.Relation(SCHEMA, ROWS),
        "people": reference.PersonBag(
            PEOPLE, tuple({"p": reference.Relation(SCHEMA, (row,))} for row in ROWS)
        ),
    }
    root = "people" if "person" in name else "r"
    bound = work_of(plan, None, (query,), sizes_of(database))
    whole = measured_units(plan, database, None, (query,))
    one = whole - measured_units(plan, without(database, root, 3), None, (query,))
    assert one <= bound.record <= LOOSE * one
    assert whole <= bound.query <= LOOSE * whole


# ── what DuckDB makes of it ──────────────────────────────────────────────────────────


def test_what_reads_a_text_is_not_copied_into_every_comparison_of_it() -> None:
    """The optimiser copied `upper` into sixteen comparisons above it, at sixteen times the work."""
    engine = DuckDB()
    try:
        engine.add_root("r", [{"id": 1, "s": "a", "n": 1}])
        made = Term(Select((("s", nested(1)),)), (ROOT,))
        tests: Any = Apply("equal", (S, Literal.of("a")))
        for number in range(15):
            tests = Apply("or", (tests, Apply("equal", (S, Literal.of(str(number))))))
        sql, plan = engine.explain(Term(Where(tests), (made,)), None, [Records()])
    finally:
        engine.close()
    assert "OFFSET 0" in sql
    assert plan.count("translate") <= 3


TYPES = {
    Type.BOOL: "b", Type.INT64: "n", Type.FLOAT64: "f", Type.STRING: "s", Type.DATE: "d", Type.TIMESTAMP: "t",
}  # fmt: skip


def test_no_operator_nests_deeper_in_sql_than_plans_count_for_it() -> None:
    schema = Schema(tuple((name, type_) for type_, name in TYPES.items()))
    for name, operator in OPERATORS.items():
        for takes, gives in operator.signatures:
            if operator.literal or operator.variadic:
                continue
            for position in [i for i, type_ in enumerate(takes) if type_ is gives]:
                deep: Any = Column(TYPES[gives])
                for _ in range(20):
                    others = [Column(TYPES[type_]) for type_ in takes]
                    deep = Apply(name, (*others[:position], deep, *others[position + 1 :]))
                columns = {c: Code(c, type_, atom=True) for c, type_ in schema.columns}
                level = Bindings(columns, schema, Parameters(SQL)).lower(deep).level
                assert level <= OPERATOR_LEVELS * 20, name
