"""No record decides how much work is done on the others: DuckDB as a server runs it.

What DuckDB did is read off its own profile, row counts of operators, not off a clock.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given

from engines.generators import Example, plan_examples
from engines.test_conformance import EXAMPLES, compare, load, thorough
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.duckdb.database import Database, Looking
from fpinq.engines.duckdb.dialect import SQL
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.statistics import lower
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import Flatten, Persons, PersonTable, Plan, RootTable, Term, apply
from fpinq.model.statistics import Records
from fpinq.model.transformations import (
    All,
    Concat,
    Except,
    First,
    GroupBy,
    GroupJoin,
    Intersect,
    Join,
    LiteralTable,
    Select,
    SemiJoin,
    Unique,
    Where,
)

ROWS = 5_000
SEVEN = 7
ID, NAME = Column("id"), Column("name")
SCHEMA = Schema((("id", Type.INT64), ("name", Type.STRING)))
T = RootTable("t")
SLOW = Term(Select((("id", ID), ("name", Apply("upper", (NAME,))))), (T,))
ONE = Term(Where(Apply("equal", (ID, Literal.of(SEVEN)))), (T,))
PUBLIC = Term(LiteralTable(SCHEMA, tuple((i, "x") for i in range(2_000))), ())
PAIR = (("id", Column("l.id")), ("name", Column("r.name")))


def join(left: Any, right: Any, *, outer: bool = False) -> Join:
    return Join((ID,), (ID,), left, right, PAIR, outer)


PLANS: dict[str, Plan] = {
    "join": Term(join(First(1), First(1)), (SLOW, ONE)),
    "join, the other way round": Term(join(First(1), First(1)), (ONE, SLOW)),
    "outer join": Term(join(Unique(), Unique(), outer=True), (SLOW, ONE)),
    "join with a public table": Term(join(All(), Unique()), (ONE, PUBLIC)),
    "outer join with a public table": Term(join(All(), Unique(), outer=True), (ONE, PUBLIC)),
    "semi-join": Term(SemiJoin((ID,), (ID,)), (ONE, PUBLIC)),
    "anti-join": Term(SemiJoin((ID,), (ID,), keep=False), (ONE, PUBLIC)),
    "semi-join of a public table": Term(SemiJoin((ID,), (ID,)), (PUBLIC, ONE)),
    "intersect": Term(Intersect(), (SLOW, ONE)),
    "intersect of bags": Term(Intersect(bag=True), (SLOW, ONE)),
    "intersect, the other way round": Term(Intersect(), (ONE, SLOW)),
    "except": Term(Except(), (SLOW, ONE)),
    "except of bags": Term(Except(bag=True), (SLOW, ONE)),
    "except, the other way round": Term(Except(), (ONE, SLOW)),
    "a test at the least value": Term(Where(Apply("less", (ID, Literal.of(0)))), (SLOW,)),
    "group join": Term(GroupJoin(("id",), (ID,), (ID,), (), ()), (SLOW, ONE)),
    "groups of a join": Term(GroupBy((("id", ID),), ()), (Term(join(First(1), First(1)), (SLOW, ONE)),)),
}


class Steady(DuckDB):
    steady = True


class BesideAFile(DuckDB):
    """Neither steady nor with the statistics of tables of its own."""

    def _open(self, files: Iterable[str]) -> Database:
        return Database(files, self._spill)


@pytest.fixture(scope="module")
def steady() -> Iterator[DuckDB]:
    engine = Steady()
    yield engine
    engine.close()


@thorough(EXAMPLES // 5)
@given(example=plan_examples())
def test_a_plan_has_the_reference_rows_and_statistics_here_too(steady: DuckDB, example: Example) -> None:
    compare(steady, example, load(steady, example))


def rows(*, present: bool, number: int = ROWS) -> list[dict[str, Any]]:
    return [{"id": i if present or i != SEVEN else -1, "name": f"né{i}"} for i in range(number)]


def worked(engine: DuckDB, plan: Plan) -> Counter[tuple[str, int]]:
    """The operators that handled many rows, each with how many; of how a plan was carried out."""
    database = engine._database
    with database.cursor() as cursor:
        lowering = Lowering(SQL, engine._roots, Looking(database, cursor, engine.steady))
        measurement = lower(lowering, lowering.plan(plan), None, [Records()])
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {measurement.sql}", measurement.parameters)
        profile = json.loads(cursor.fetchall()[0][1])
    found = operators(profile.get("operator", [profile]))
    # Near enough: the record itself is in one of them or not.
    return Counter((name, round(number, -2)) for name, number in found if number > 100)


def operators(nodes: list[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        name = node.get("type") or node.get("operator_type") or ""
        yield name, node.get("intermediate_rows") or node.get("operator_cardinality") or 0
        yield from operators(node.get("children", []))


def on_neighbours(kind: type[DuckDB], plan: Plan) -> list[Counter[tuple[str, int]]]:
    found = []
    for present in (True, False):
        engine = kind()
        engine.add_root("t", rows(present=present), {"id": Type.INT64, "name": Type.STRING})
        found.append(worked(engine, plan))
        engine.close()
    return found


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_record_that_is_not_there_saves_no_work_on_the_others(plan: Plan) -> None:
    present, absent = on_neighbours(Steady, plan)
    assert present
    assert present == absent
    assert "CROSS_PRODUCT" not in {name for name, _ in present}


@pytest.mark.parametrize("kind", [DuckDB, BesideAFile])
def test_otherwise_it_saves_all_of_it(kind: type[DuckDB]) -> None:
    saved = [name for name, plan in PLANS.items() if len(set(map(str, on_neighbours(kind, plan)))) > 1]
    assert ("join" if kind is BesideAFile else "a test at the least value") in saved, saved


def test_nor_does_a_person() -> None:
    shape = Persons("id", (("t", SCHEMA),))
    mine = PersonTable("t", 1)
    slow = Term(SLOW.transformation, (mine,))
    one = Term(ONE.transformation, (mine,))
    body = Term(join(All(), All()), (slow, one))
    apply(Flatten(body), [shape])
    found = []
    for present in (True, False):
        engine = Steady()
        data = {"t": rows(present=present)}
        engine.add_persons("t", data, unit="id", schemas={"t": {"id": Type.INT64, "name": Type.STRING}})
        found.append(worked(engine, Term(Flatten(body), (T,))))
    assert found[0]
    assert found[0] == found[1]


def test_nothing_is_computed_for_a_public_row_once_instead_of_for_each_person() -> None:
    public = Term(LiteralTable(SCHEMA, tuple((i, "é") for i in range(20))), ())
    body = Term(Concat(), (public, PersonTable("t", 1)))
    engine = Steady()
    schemas = {"t": {"id": Type.INT64, "name": Type.STRING}}
    engine.add_persons("t", {"t": rows(present=True, number=30)}, unit="id", schemas=schemas)
    _, explained = engine.explain(Term(Flatten(body), (T,)), None, [Records()])
    assert "cross product" not in explained.lower().replace("_", " ")


def kinds(engine: DuckDB, plan: Plan) -> str:
    _, explained = engine.explain(plan, None, [Records()])
    return "".join(c for c in explained if not c.isdigit() and c not in " .,~│")


@pytest.mark.parametrize(("steady", "plans"), [(True, 1), (False, 2)])
def test_the_number_of_rows_does_not_choose_the_plan(steady: bool, plans: int) -> None:
    plan = Term(SemiJoin((ID,), (ID,), keep=False), (T, RootTable("u")))
    types = {"id": Type.INT64, "name": Type.STRING}
    found = set()
    for number in (10, 20, 59, 60, 61, 299, 300, 301, 1_000, 1_499, 1_500, 1_501, 5_000):
        engine = Steady() if steady else DuckDB()
        engine.add_root("t", rows(present=True, number=number), types)
        engine.add_root("u", rows(present=True, number=300), types)
        found.add(kinds(engine, plan))
        engine.close()
    assert (len(found) == 1) if plans == 1 else (len(found) > 1)
