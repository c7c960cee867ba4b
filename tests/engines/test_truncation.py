"""The first rows of each key, two ways: by the whole order, or by its leading columns and a second look."""

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.test_conformance import EXAMPLES, bag, thorough
from fpinq.engines import reference
from fpinq.engines.duckdb import DuckDB, sampling
from fpinq.engines.duckdb.database import Database
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Records, Totals
from fpinq.model.transformations import First, Join, LimitPerKey, Select, Where

SCHEMA = Schema(
    (("k", Type.INT64), ("a", Type.INT64), ("b", Type.STRING), ("x", Type.FLOAT64), ("c", Type.INT64))
)
# Few values, so that leading columns are often equal, and whole rows now and then.
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, "", "p"]),
        st.sampled_from([None, -1.5, 0.0, 2.0]),
        st.sampled_from([None, 7, 8]),
    ),
    max_size=24,
)
BELOW: list[Any] = [
    None,
    Where(Apply("not_equal", (Column("b"), Literal.of("p")))),
    Select(
        (("b", Column("b")), ("k", Column("k")), ("x", Column("x")), ("c", Column("c")), ("a", Column("a")))
    ),
]
KEYS: list[Any] = [(Column("k"),), (Column("b"),), (Column("k"), Column("b"))]
_names = count()


@pytest.fixture
def in_two(monkeypatch: pytest.MonkeyPatch) -> DuckDB:
    """An engine that believes of every table that its leading columns decide."""
    monkeypatch.setattr(Database, "are_rare", lambda self, cursor, sample, parameters: True)
    return DuckDB()


def truncating(table: Plan, keys: Any, at_most: int, joins: bool) -> Plan:
    if not joins:
        return Term(LimitPerKey(at_most, keys), (table,))
    record = (("x", Column("l.x")), ("c", Column("r.c")), ("k", Column("r.k")))
    return Term(Join(keys, keys, First(at_most), First(2), record), (table, table))


@thorough(max(EXAMPLES // 5, 200))
@given(
    rows=ROWS,
    below=st.sampled_from(BELOW),
    keys=st.sampled_from(KEYS),
    at_most=st.sampled_from([1, 2, 3, 5, 2**70]),
    joins=st.booleans(),
)
def test_a_second_look_finds_the_reference_rows(
    in_two: DuckDB, rows: Any, below: Any, keys: Any, at_most: int, joins: bool
) -> None:
    name = f"t{next(_names)}"
    in_two.add_root(name, [dict(zip(SCHEMA.names(), r, strict=True)) for r in rows], dict(SCHEMA.columns))
    table: Plan = RootTable(name) if below is None else Term(below, (RootTable(name),))
    plan = truncating(table, keys, at_most, joins)
    assert "candidates" in in_two.explain(plan, None, [Records()])[0]
    expected = reference.compute(plan, {name: reference.Relation(SCHEMA, tuple(rows))})
    assert bag(in_two.rows(plan).rows) == bag(expected.rows)


@pytest.mark.parametrize(("decides", "expected"), [("i", True), ("k", False), ("k % 7", False)])
def test_a_sample_says_whether_the_leading_columns_decide(decides: str, expected: bool) -> None:
    import duckdb

    frame = duckdb.sql(
        f"""SELECT i % 100000 AS k, ({decides})::BIGINT AS a, 1::BIGINT AS b, (i * 7919) % 1000 AS c
            FROM (SELECT range AS i, range % 100000 AS k FROM range(400000))"""
    ).to_arrow_table()
    engine = DuckDB()
    engine.add_root("t", frame)
    plan = truncating_sum(2)
    assert ("candidates" in engine.explain(plan, None, [Records()])[0]) is expected
    assert engine.measure(plan, None, [Records()]) == [{0: 200_000}]
    (found,) = engine.measure(plan, None, [Totals((Clamp(Column("c"), 0, 1000),))])
    smallest = sorted if not expected else (lambda values: values)
    per_key = ([(k + n * 100_000) * 7919 % 1000 for n in range(4)] for k in range(100_000))
    assert found == {0: sum(sum(list(smallest(values))[:2]) for values in per_key)}
    engine.close()


def truncating_sum(at_most: int) -> Plan:
    return Term(LimitPerKey(at_most, (Column("k"),)), (RootTable("t"),))


def test_few_keys_are_sorted_at_once() -> None:
    assert not sampling.are_rare(sampling.FEWEST_SAMPLED - 1, 0)
    assert sampling.are_rare(sampling.FEWEST_SAMPLED, sampling.FEWEST_SAMPLED // sampling.RARE)
    assert not sampling.are_rare(sampling.FEWEST_SAMPLED, sampling.FEWEST_SAMPLED // sampling.RARE + 1)
