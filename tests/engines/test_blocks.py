"""Tables of many blocks: asked some at a time, the integers are those of all of them, and it is linear."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.engines import reference
from fpinq.engines.duckdb import DuckDB, database, engine
from fpinq.engines.sql.blocks import in_chunks
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Bernstein, Monomials, Points, Records, Statistic, Totals
from fpinq.model.transformations import (
    Aggregate,
    Concat,
    ConcatAll,
    Distinct,
    GroupBy,
    Partitioning,
    Select,
    SelectMany,
    Where,
)

A, B = Column("a"), Column("b")
SCHEMA = Schema.of({"a": Type.INT64, "b": Type.FLOAT64})
BLOCKS = {
    f"block {i}": tuple((n % 4 if n % 5 else None, n / 2 - 1) for n in range(i, i + i % 4)) for i in range(23)
}
ROOTS: list[Plan] = [RootTable(name) for name in BLOCKS]
POSITIVE = Where(Apply("greater", (B, Literal.of(0.0))))


@pytest.fixture(scope="module")
def db() -> Iterator[DuckDB]:
    engine = DuckDB()
    for name, rows in BLOCKS.items():
        engine.add_root(name, [{"a": a, "b": b} for a, b in rows], dict(SCHEMA.columns))
    yield engine
    engine.close()


@pytest.fixture(params=[1, 4, 500])
def at_a_time(request: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    for module in (database, engine):
        monkeypatch.setattr(module, "MOST_TABLES", request.param)
    return request.param


def known(plan: Plan) -> reference.Relation:
    return reference.compute(plan, {name: reference.Relation(SCHEMA, rows) for name, rows in BLOCKS.items()})


ALL = Term(ConcatAll(len(ROOTS)), tuple(ROOTS))
NESTED = Term(ConcatAll(3), (Term(ConcatAll(20), tuple(ROOTS[:20])), ROOTS[20], Term(Concat(), (ALL, ALL))))
CLAMP, SAME = Clamp(A, -1, 3), (("a", A), ("b", B))
PLANS: dict[str, Plan] = {
    "all": ALL,
    "nested, some twice": NESTED,
    "filtered": Term(POSITIVE, (NESTED,)),
    "row by row": Term(Select(SAME), (Term(SelectMany((SAME, SAME), 2), (Term(POSITIVE, (ALL,)),)),)),
    "grouped": Term(
        Select((("a", A), ("b", B))),
        (Term(GroupBy((("a", A),), (("b", Aggregate("max", B)),)), (NESTED,)),),
    ),
    "distinct": Term(Distinct(), (NESTED,)),
    "with itself": Term(Concat(), (Term(Distinct(), (ALL,)), Term(POSITIVE, (ALL,)))),
}  # fmt: skip
STATISTICS: list[Statistic] = [Records(), Totals((CLAMP, CLAMP)), Bernstein(CLAMP, 2), Points(CLAMP)]
STATISTICS += [Monomials((CLAMP, CLAMP), ((0, 0), (1, 2)))]


@pytest.mark.parametrize("name", PLANS)
def test_the_rows_are_those_of_all_blocks_however_many_at_a_time(
    db: DuckDB, name: str, at_a_time: int
) -> None:
    assert Counter(map(repr, db.rows(PLANS[name]).rows)) == Counter(map(repr, known(PLANS[name]).rows))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("by", [None, Partitioning(A, (0, None, 1, 7))], ids=["whole", "parts"])
def test_the_integers_are_those_of_all_blocks_however_many_at_a_time(
    db: DuckDB, name: str, by: Partitioning | None, at_a_time: int
) -> None:
    for statistic in STATISTICS:
        asked = [statistic] * (4 if by else 1)
        assert db.measure(PLANS[name], by, asked) == reference.measure(known(PLANS[name]), by, asked)


def test_a_sum_of_chunks_that_is_nothing_is_left_out(db: DuckDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_TABLES", 1)
    signed = Clamp(Apply("subtract", (B, B)), -1, 1)
    assert db.measure(ALL, None, [Totals((signed,))]) == [{}]


@given(st.integers(1, 60), st.integers(1, 7), st.booleans())
def test_chunks_are_the_tables_in_order_and_none_has_more_than_it_may(
    tables: int, at_most: int, filtered: bool
) -> None:
    roots: list[Plan] = [RootTable(str(i)) for i in range(tables)]
    plan = roots[0] if tables == 1 else Term(ConcatAll(tables), tuple(roots))
    plan = Term(POSITIVE, (plan,)) if filtered else plan
    chunks = list(in_chunks(plan, at_most))
    found = [leaf for chunk in chunks for leaf in _leaves(chunk)]
    assert found == roots
    assert all(len(_leaves(chunk)) <= max(at_most, 1) for chunk in chunks)
    assert all(isinstance(c, Term) and c.transformation == POSITIVE for c in chunks) or not filtered


def _leaves(plan: Plan) -> list[Plan]:
    if not isinstance(plan, Term):
        return [plan]
    return [leaf for argument in plan.arguments for leaf in _leaves(argument)]


def test_a_count_reads_each_block_once_in_as_many_statements_as_chunks(
    db: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    lower = engine.lower

    def noting(*arguments: Any) -> Any:
        measurement = lower(*arguments)
        texts.append(measurement.sql)
        return measurement

    monkeypatch.setattr(engine, "lower", noting)
    monkeypatch.setattr(engine, "MOST_TABLES", 5)
    db.measure(Term(POSITIVE, (ALL,)), None, [Records()])
    assert len(texts) == 5
    assert sum(text.count("FROM r") for text in texts) == len(ROOTS)


def test_a_concat_of_concats_is_one(db: DuckDB) -> None:
    deep: Plan = ROOTS[0]
    for root in ROOTS[1:]:
        deep = Term(Concat(), (deep, root))
    assert db.explain(deep, None, [Records()])[0] == db.explain(ALL, None, [Records()])[0]
