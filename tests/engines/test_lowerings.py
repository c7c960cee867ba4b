"""A plan is lowered once for all that is asked of it; from what was kept, the same statement is written."""

import gc
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given

import fpinq as fp
from engines.generators import Example, plan_examples
from engines.test_conformance import EXAMPLES, load, renamed, thorough
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.duckdb import database as databases
from fpinq.engines.duckdb.database import Looking
from fpinq.engines.duckdb.dialect import SQL
from fpinq.engines.sql.lowerings import Lowerings
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.statistics import lower
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Bernstein, Points, Records, Statistic, Totals
from fpinq.model.transformations import ConcatAll, Distinct, LiteralTable, Partitioning, Where
from growth.counting import allocated

AGE = Column("age")
T = RootTable("t")
STATISTICS: list[Statistic] = [
    Records(),
    Totals((Clamp(AGE, 0, 10),)),
    Bernstein(Clamp(AGE, 0, 10), 2),
    Points(Clamp(AGE, 0, 10)),
]
BY = Partitioning(Apply("modulo", (AGE, Literal.of(3))), (0, 1, 2, None))


@pytest.fixture
def engine() -> Iterator[DuckDB]:
    engine = DuckDB()
    engine.add_root("t", [{"age": age} for age in range(20)])
    yield engine
    engine.close()


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Every step of a plan that is lowered, as often as it is."""
    steps: list[Plan] = []
    plain = Lowering._lower

    def noting(self: Lowering, plan: Plan, persons: str) -> Any:
        steps.append(plan)
        return plain(self, plan, persons)

    monkeypatch.setattr(Lowering, "_lower", noting)
    return steps


def older(table: Plan, than: int) -> Plan:
    return Term(Where(Apply("greater", (AGE, Literal.of(than)))), (table,))


def chain(steps: int) -> Plan:
    plan: Plan = T
    for number in range(steps):
        plan = older(plan, -number)
    return plan


def test_what_is_asked_of_a_plan_again_does_not_lower_it_again(engine: DuckDB, lowered: list[Plan]) -> None:
    plan = chain(50)
    engine.measure(plan, None, [Records()])
    assert len(lowered) == 51
    for statistic in STATISTICS:
        engine.measure(plan, None, [statistic])
        engine.measure(plan, BY, [statistic])
    assert len(lowered) == 51


def test_nor_do_different_questions_about_one_table(lowered: list[Plan]) -> None:
    people = fp.protect(
        [{"age": age} for age in range(20)], budget=100, name="asked", schema={"age": "int64"}
    )
    table = people.where(lambda row: row.age > 3).where(lambda row: row.age < 15)
    table.noisy_count(1)
    before = len(lowered)
    table.noisy_average(1, lambda row: row.age, bounds=(0, 10))
    table.query(1, fp.count(), by="age", keys=range(10))
    assert len(lowered) == before


@thorough(EXAMPLES // 5)
@given(example=plan_examples())
def test_from_what_was_kept_the_same_statement_is_written(example: Example) -> None:
    engine = DuckDB()
    plan = renamed(example.plan, load(engine, example))
    database, kept = engine._database, Lowerings()
    with database.cursor() as cursor:

        def begun() -> Lowering:
            return Lowering(SQL, engine._roots, Looking(database, cursor))

        for asked in [(example.by, example.statistics), (None, [example.whole.statistic])] * 2:
            fresh = begun()
            once, again = lower(fresh, fresh.plan(plan), *asked), lower(*kept.of(plan, begun), *asked)
            assert (again.sql, again.parameters) == (once.sql, once.parameters)
    engine.close()


def test_what_one_statement_binds_is_not_in_the_next(engine: DuckDB) -> None:
    plan, kept = older(T, 3), Lowerings()
    for number in range(3):
        is_old = Apply("greater", (AGE, Literal.of(number)))
        key = Apply("if_else", (is_old, Literal.of(f"older than {number}"), Literal.of("young")))
        asked = Partitioning(key, (f"older than {number}", "young")), STATISTICS[:1]
        fresh = Lowering(SQL, engine._roots)
        begun = kept.of(plan, lambda: Lowering(SQL, engine._roots))
        assert lower(*begun, *asked) == lower(fresh, fresh.plan(plan), *asked)


def test_a_root_that_was_given_up_is_not_remembered(engine: DuckDB) -> None:
    plan = older(T, 3)
    assert engine.measure(plan, None, [Records()]) == [{0: 16}]
    engine.forget("t")
    engine.add_root("t", [{"age": 7}])
    assert engine.measure(plan, None, [Records()]) == [{0: 1}]


def test_nor_is_a_database_that_another_came_after(engine: DuckDB, tmp_path: Path) -> None:
    plan = older(T, 3)
    engine.measure(plan, None, [Records()])
    path = str(tmp_path / "x.parquet")
    duckdb.execute(f"COPY (SELECT 1 AS x) TO '{path}'")
    before = engine._database
    engine.add_root("file", path)
    assert engine._database is not before
    assert engine.measure(plan, None, [Totals((Clamp(AGE, 0, 4),))]) == [{0: 64}]


def test_what_was_put_together_for_one_measurement_is_not_kept(
    engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "MOST_TABLES", 2)
    plan = Term(Distinct(), (Term(ConcatAll(5), (T, T, T, T, T)),))
    for statistic, expected in ((Records(), {0: 20}), (Totals((Clamp(AGE, 0, 1),)), {0: 19})):
        assert engine.measure(plan, None, [statistic]) == [expected]


# ── how much is kept ─────────────────────────────────────────────────────────────────


def keeping(room: int, plans: list[Plan], rows: int) -> list[int]:
    """Which of some plans were lowered, one after the other, with so much room and so many rows."""
    engine, kept, begun = DuckDB(), Lowerings(room), []
    engine.add_root("t", [{"age": age} for age in range(rows)], {"age": Type.INT64})
    for number, plan in enumerate(plans):
        kept.of(plan, lambda number=number: begun.append(number) or Lowering(SQL, engine._roots))  # type: ignore[misc]
    engine.close()
    return begun


def test_what_was_not_asked_for_longest_makes_room() -> None:
    first, second, third = chain(10), chain(11), chain(12)
    assert keeping(10**6, [first, second, third, first, second, third], 1) == [0, 1, 2]
    assert keeping(160, [first, second, third, second, third, first, third], 1) == [0, 1, 2, 5]


def test_what_is_larger_than_all_room_is_not_kept() -> None:
    assert keeping(5, [chain(10)] * 2, 1) == [0, 1]


def test_a_plan_weighs_what_it_says() -> None:
    rows = tuple((number,) for number in range(1_000))
    literal = Term(LiteralTable(Schema.of({"age": Type.INT64}), rows), ())
    large = Term(Where(Apply("is_in", (AGE, *(Literal.of(n) for n in range(1_000))))), (T,))
    for plan in (literal, large, chain(240)):
        assert keeping(300, [plan] * 2, 1) == [0, 1]


def test_no_record_decides_what_is_kept() -> None:
    plans = [chain(number % 7 + 1) for number in range(20)]
    asked = [plans[number * number % 20] for number in range(60)]
    assert keeping(200, asked, 0) == keeping(200, asked, 1) == keeping(200, asked, 5_000)


def test_what_is_kept_of_a_plan_goes_with_the_plan() -> None:
    engine, kept = DuckDB(), Lowerings()
    engine.add_root("t", [{"age": 1}], {"age": Type.INT64})
    for number in range(100):
        kept.of(chain(number % 5 + 1), lambda: Lowering(SQL, engine._roots))
        assert len(kept) <= 1
    plan = chain(3)
    kept.of(plan, lambda: Lowering(SQL, engine._roots))
    assert len(kept) == 1
    del plan
    gc.collect()
    assert not len(kept)
    engine.close()


def test_a_thousand_plans_of_a_wide_table_take_as_much_as_was_said() -> None:
    engine, room = DuckDB(), 20_000
    kept, rows = Lowerings(room), [{f"x{i}": i for i in range(100)}]
    engine.add_root("wide", rows, dict.fromkeys(rows[0], Type.INT64))
    plans = [
        Term(Where(Apply("less", (Column("x3"), Literal.of(number)))), (RootTable("wide"),))
        for number in range(1_000)
    ]

    def lower_all() -> None:
        for plan in plans:
            kept.of(plan, lambda: Lowering(SQL, engine._roots))

    assert allocated(lower_all) < 200 * room
    assert 0 < len(kept) < 100
    engine.close()


def test_threads_that_are_first_find_the_same(engine: DuckDB) -> None:
    from concurrent.futures import ThreadPoolExecutor

    plans = [chain(number) for number in range(1, 6)]
    numbers = count()

    def ask(_: int) -> Any:
        plan = plans[next(numbers) % 5]
        return engine.measure(plan, None, [Totals((Clamp(AGE, 0, 10),))])

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(40)))
    assert all(answer == [{0: 145}] for answer in found)
