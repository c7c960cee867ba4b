"""Siblings and cells: measured together, each has its own integers; how many scans there are, by counting."""

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.engines import reference
from fpinq.engines.duckdb import DuckDB
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.keys import Product
from fpinq.model.operators import type_of
from fpinq.model.plans import Plan, RootTable, Term, apply
from fpinq.model.statistics import Bernstein, Integers, Points, Records, Statistic, Totals
from fpinq.model.transformations import Partitioning, PartOf, Select, Where
from fpinq.runtime import statistics as cache
from fpinq.runtime.siblings import MAX_SEARCHED, levels_of, siblings_of
from fpinq.runtime.statistics import Statistics

A, F, S, B, D = (Column(name) for name in "afsbd")
SCHEMA = Schema.of({"a": Type.INT64, "f": Type.FLOAT64, "s": Type.STRING, "b": Type.BOOL, "d": Type.DATE})
DAYS = (None, date(2020, 2, 29), date(1, 1, 1))
VALUES = (
    (None, -1, 0, 2, 2**63 - 1),
    (None, -1.5, 0.0, float("inf")),
    (None, "", "é", "z"),
    (None, True, False),
    DAYS,
)
ROWS = list(product(*VALUES))[::11]
TABLE = reference.Relation(SCHEMA, tuple(ROWS))
KEYS: list[tuple[Any, Any]] = [
    (A, range(-1, 3)),
    (A, (2, None, 2**63 - 1, -5)),
    (F, (float("inf"), -1.5, 0.0)),
    (S, ("z", "", None, "é", "nobody")),
    (B, (True, None, False)),
    (B, (False,)),
    (D, (date(2020, 2, 29), None)),
    (D, (None,)),
    (Apply("modulo", (A, Literal.of(2))), (0, 1)),
    (Apply("is_null", (S,)), (True, False)),
    ((A, S), Product((range(-1, 3), ("z", None)))),
    ((B, D), Product(((None, True), DAYS))),
    ((S, A), (("é", 0), (None, None), ("z", 2), ("nobody", 1))),
]
SCHEMA_OF_TEXTS = Select((("s", S), ("a", Apply("add", (A, Literal.of(1)))), ("f", F), ("b", B), ("d", D)))
STEPS = [Where(Apply("greater", (F, Literal.of(-2.0)))), Where(Apply("is_null", (D,))), SCHEMA_OF_TEXTS]
ASKED: list[Statistic] = [
    Records(), Totals((Clamp(A, -3, 3),)), Bernstein(Clamp(A, -3, 3), 2), Points(Clamp(A, -3, 3))
]  # fmt: skip


ROOT = RootTable("t")


class Scans:
    """An engine, and how often it was asked."""

    def __init__(self, engine: Any = None) -> None:
        self.engine, self.asked = engine, list[tuple[Plan, Partitioning | None]]()

    def measure(
        self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]
    ) -> Sequence[Integers]:
        self.asked.append((plan, by))
        if self.engine is not None:
            found: Sequence[Integers] = self.engine.measure(plan, by, statistics)
            return found
        return reference.measure(reference.compute(plan, {"t": TABLE}), by, statistics)


@pytest.fixture(scope="module")
def db() -> Iterator[DuckDB]:
    engine = DuckDB()
    rows = [dict(zip(SCHEMA.names(), row, strict=True)) for row in ROWS]
    engine.add_root("t", rows, dict(SCHEMA.columns))
    yield engine
    engine.close()


def cell(levels: Sequence[tuple[Partitioning, Sequence[Any]]], numbers: Sequence[int]) -> tuple[Plan, Schema]:
    plan: Plan = RootTable("t")
    schema = SCHEMA
    for (by, steps), number in zip(levels, numbers, strict=True):
        for step in (PartOf(by, number), *steps):
            plan, schema = Term(step, (plan,)), apply(step, [schema])
    return plan, schema


def directly(plan: Plan, statistic: Statistic) -> list[Integers]:
    return list(reference.measure(reference.compute(plan, {"t": TABLE}), None, [statistic]))


_LEVEL = st.tuples(st.sampled_from(KEYS), st.lists(st.sampled_from(STEPS), max_size=2))


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
@given(data=st.data())
def test_a_cell_measured_with_the_others_has_the_integers_it_has_alone(
    db: DuckDB, engine: str, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(_LEVEL, min_size=1, max_size=3))
    levels = [(Partitioning(key, keys), steps) for (key, keys), steps in drawn]
    statistic = data.draw(st.sampled_from(ASKED))
    scans = Scans(db if engine == "duckdb" else None)
    statistics = Statistics(scans.measure)
    every = list(product(*(range(len(by.keys)) for by, _ in levels)))
    for numbers in data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=4)):
        plan, schema = cell(levels, numbers)
        found = statistics.measure(_over(plan, ROOT), schema, None, [statistic])
        assert list(found) == directly(plan, statistic), (levels, numbers)
    # Keys of several columns that are listed have no number to count by: their parts are measured
    # together, and cells of them part by part.
    counted = not any(type(by.keys) is tuple and isinstance(by.key, tuple) for by, _ in levels)
    assert len(scans.asked) == 1 or (len(levels) > 1 and not counted)


def _over(plan: Plan, root: Plan) -> Plan:
    """The same plan over the very table that others are over."""
    if not isinstance(plan, Term):
        return root
    return Term(plan.transformation, (_over(plan.arguments[0], root),))


def test_a_loop_over_nested_parts_is_one_scan() -> None:
    scans = Scans()
    statistics = Statistics(scans.measure)
    outer, inner = Partitioning(A, (-1, 0, 2, None)), Partitioning(S, ("", "é", "z", None))
    for numbers in product(range(4), range(4)):
        plan, schema = cell([(outer, ()), (Partitioning(S, inner.keys), ())], numbers)
        statistics.measure(_over(plan, ROOT), schema, None, [Records()])
    assert len(scans.asked) == 1


@pytest.mark.parametrize(("keys", "scans"), [(10, 1), (11, 2), (95, 10)])
def test_siblings_beyond_what_is_measured_together_are_measured_in_chunks(
    keys: int, scans: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_SIBLINGS", 10)
    counted = Scans()
    statistics = Statistics(counted.measure)
    by = Partitioning(A, range(-5, keys - 5))
    for number in range(keys):
        plan = Term(PartOf(by, number), (ROOT,))
        assert list(statistics.measure(plan, SCHEMA, None, [Records()])) == directly(plan, Records())
    assert len(counted.asked) == scans


def test_of_too_many_cells_the_inner_ones_are_measured_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_SIBLINGS", 8)
    counted = Scans()
    statistics = Statistics(counted.measure)
    levels = [
        (Partitioning(A, range(3)), ()),
        (Partitioning(B, (True, False)), ()),
        (Partitioning(D, DAYS), ()),
    ]
    roots = [Term(PartOf(levels[0][0], number), (ROOT,)) for number in range(3)]
    for numbers in product(range(3), range(2), range(3)):
        plan, schema = cell(levels, numbers)
        assert isinstance(plan, Term)
        plan = Term(plan.transformation, (Term(PartOf(levels[1][0], numbers[1]), (roots[numbers[0]],)),))
        assert list(statistics.measure(plan, schema, None, [Records()])) == directly(plan, Records())
    assert len(counted.asked) == 3


def test_what_is_measured_ahead_can_be_kept() -> None:
    wide = Points(Clamp(A, 0, 10**6))
    statistics = Statistics(Scans().measure)
    assert statistics._most(wide) < 10
    assert statistics._most(Points(Clamp(A, 0, 10**9))) == 0
    part = Term(PartOf(Partitioning(A, (1, 2)), 0), (ROOT,))
    assert siblings_of(part, levels_of(part), 0) is None
    assert statistics._most(Records()) >= 10**5


@pytest.mark.parametrize("outer", [2, MAX_SEARCHED])
def test_the_largest_cells_are_still_an_expression(outer: int) -> None:
    keys = [tuple(f"{n:05}" for n in range(size)) for size in (outer, cache.MAX_SIBLINGS // outer)]
    levels = [(Partitioning(S, some[:MAX_SEARCHED]), ()) for some in keys]
    levels += [(Partitioning(B, (True,)), ()) for _ in range(10)]
    plan, schema = cell(levels, [0] * len(levels))
    found = siblings_of(plan, levels_of(plan), cache.MAX_SIBLINGS)
    assert found is not None
    together, by = found[0].together(schema)
    assert len(found[0].levels) > 1
    assert type_of(by.key, apply(together.transformation, [schema])) is Type.INT64  # type: ignore[union-attr]


def test_a_million_counts_weigh_what_they_take() -> None:
    alike = cache._weight([Records()], 10**6)
    assert 8 * 10**6 <= alike < 9 * 10**6
    statistics = Statistics(lambda *_: [{0: 1}], max_bytes=2**20)
    tables = [RootTable(f"{number}") for number in range(2_000)]
    for table in tables:
        statistics.measure(table, SCHEMA, None, [Records()])
    assert len(statistics._measured) < 2**20 / cache.ENTRY_BYTES
    assert statistics._bytes <= 2**20


def test_what_was_measured_of_a_table_goes_with_the_table() -> None:
    """Its plan was kept, however large, for as long as there was room for its integers."""
    statistics = Statistics(lambda *_: [{0: 1}])
    kept = RootTable("kept")
    for plan in (kept, Term(Where(Apply("equal", (A, Literal.of(1)))), (RootTable("gone"),))):
        statistics.measure(plan, SCHEMA, None, [Records()])
    weight = statistics._bytes
    del plan
    statistics.measure(kept, SCHEMA, None, [Records()])
    assert len(statistics._measured) == 1
    assert statistics._bytes == weight / 2


def test_a_table_with_the_number_of_one_that_is_gone_is_measured_itself() -> None:
    integers = iter(range(10))
    statistics = Statistics(lambda *_: [{0: next(integers)}])
    plan, other = RootTable("one"), RootTable("other")
    assert statistics.measure(plan, SCHEMA, None, [Records()]) == [{0: 0}]
    key = next(iter(statistics._measured))
    statistics._measured[id(other), *key[1:]] = statistics._measured[key]  # type: ignore[index]
    assert statistics.measure(other, SCHEMA, None, [Records()]) == [{0: 1}]
    assert statistics.measure(other, SCHEMA, None, [Records()]) == [{0: 1}]
