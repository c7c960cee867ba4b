"""Very many parts as arrays: the integers of the reference, whatever they are, and no object for a part."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import product
from random import Random
from typing import Any

import pytest

from fpinq.engines import columns, reference
from fpinq.engines.columns import ROOM, Columns, add, column, positions
from fpinq.engines.duckdb import DuckDB, arrays
from fpinq.engines.sql import statistics
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Column, Schema, Type
from fpinq.model.keys import Keys
from fpinq.model.plans import RootTable
from fpinq.model.statistics import Bernstein, Monomials, Points, Records, Statistic, Totals
from fpinq.model.transformations import Partitioning

HUGE = (INT64_MIN, INT64_MIN + 1, -(2**62) - 1, -(2**62), 2**62 - 1, 2**62, INT64_MAX, 0, 7, None)
X = Column("x")
STATISTICS: list[Statistic] = [
    Records(),
    Totals((Clamp(X, -3, 10),)),
    Totals((Clamp(X, INT64_MIN, INT64_MAX), Clamp(X, 0, 1))),
    Bernstein(Clamp(X, -5, 5), 1),
    Bernstein(Clamp(X, INT64_MIN, INT64_MAX), 1),
    Bernstein(Clamp(X, -(2**30), 2**30), 2),
    Bernstein(Clamp(X, 3, 9), 2),
    Monomials((Clamp(X, 3, 9), Clamp(X, 0, 2)), ((0, 0), (1, 0), (2, 1))),
    Monomials((Clamp(X, -(2**30), 2**30), Clamp(X, 0, 2)), ((0, 1), (1, 1), (2, 0))),
    Points(Clamp(X, -2, 2)),
]


def _keys_of(type_: Type, random: Random) -> list[Any]:
    """Many values of a type, those at its ends among them."""
    values: dict[Type, list[Any]] = {
        Type.BOOL: [False, True],
        Type.INT64: [INT64_MIN, INT64_MAX, *random.sample(range(-500, 500), 40)],
        Type.FLOAT64: [float("inf"), float("-inf"), 0.0, 5e-324, *(i / 3 for i in range(1, 40))],
        Type.STRING: ["", "é", "😀", "a\x00b", "'", *(f"k{i}" for i in range(40))],
        Type.DATE: [date.min, date.max, *(date(2024, 2, 28) + timedelta(i) for i in range(40))],
        Type.TIMESTAMP: [datetime.min, datetime.max, *(datetime(2024, 2, 29, 0, 0, i) for i in range(40))],
    }
    return values[type_]


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDB]:
    engine = DuckDB()
    yield engine
    engine.close()


@pytest.fixture(autouse=True)
def in_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The few parts of these tests are many enough to leave the database as arrays."""
    monkeypatch.setattr(arrays, "FEW", 0)


@pytest.fixture(params=[(0, 0), (16, 0), (0, 250), (16, 250)], ids=str)
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Up to how many parts are read one by one, and leave the database as rows."""
    read, rows = request.param
    monkeypatch.setattr(statistics, "FEW", read)
    monkeypatch.setattr(arrays, "FEW", rows)
    return int(read) + int(rows)


def _asked(type_: Type, random: Random) -> tuple[list[dict[str, Any]], Keys]:
    """Rows, and keys of parts: some occur, some do not, some that occur are no keys; null may be one."""
    known = _keys_of(type_, random)
    rows = [{"k": random.choice([None, *known]), "x": random.choice(HUGE)} for _ in range(120)]
    keys = random.sample(known, max(2, len(known) * 3 // 4))
    return rows, tuple([*keys, None] if random.random() < 0.5 else keys)


@pytest.mark.parametrize("type_", [*Type][:6], ids=lambda type_: type_.value)
def test_the_integers_of_every_part_are_those_of_the_reference(engine: DuckDB, type_: Type, few: int) -> None:
    random, schema = Random(few), {"k": type_, "x": Type.INT64}
    for number in range(4):
        rows, keys = _asked(type_, random)
        name = f"{type_.value}{few}{number}"
        engine.add_root(name, rows, schema)
        table = reference.Relation(Schema.of(schema), tuple((row["k"], row["x"]) for row in rows))
        by = Partitioning(Column("k"), keys)
        for statistic in STATISTICS:
            expected = reference.measure(table, by, [statistic])
            assert engine.measure(RootTable(name), by, [statistic]) == expected
            assert engine.measure(RootTable(name), by, [statistic] * len(keys)) == expected


def test_a_range_of_keys_has_the_integers_of_the_keys_one_by_one(engine: DuckDB, few: int) -> None:
    random, schema = Random(few), {"k": Type.INT64, "x": Type.INT64}
    for number, first in enumerate((INT64_MIN, -20, 0, INT64_MAX - 39)):
        there = [None, INT64_MIN, INT64_MAX, *range(first, first + 40, 3)]
        rows = [{"k": random.choice(there), "x": random.choice(HUGE)} for _ in range(120)]
        engine.add_root(f"range{few}{number}", rows, schema)
        for keys in (range(first, first + 1), range(first, first + 40)):
            one_by_one, together = (Partitioning(Column("k"), k) for k in (tuple(keys), keys))
            for statistic in STATISTICS:
                plan = RootTable(f"range{few}{number}")
                found = engine.measure(plan, together, [statistic])
                assert found == engine.measure(plan, one_by_one, [statistic] * len(keys))


def test_bounds_beyond_64_bits_apart_are_no_matter_where_nobody_is(engine: DuckDB, few: int) -> None:
    engine.add_root(
        f"nobody{few}", [{"k": -1, "x": 1}, {"k": 3, "x": None}], {"k": Type.INT64, "x": Type.INT64}
    )
    for statistic in STATISTICS:
        for keys in (range(5, 40), range(40)):
            found = engine.measure(RootTable(f"nobody{few}"), Partitioning(Column("k"), keys), [statistic])
            assert list(found) == [{0: 1} if k == 3 and statistic == Records() else {} for k in keys]


def test_a_sum_beyond_64_bits_is_exact_and_not_a_float(engine: DuckDB) -> None:
    rows = [{"k": i % 20, "x": INT64_MAX - i} for i in range(200)]
    engine.add_root("beyond", rows, {"k": Type.INT64, "x": Type.INT64})
    by = Partitioning(Column("k"), range(20))
    found = engine.measure(RootTable("beyond"), by, [Totals((Clamp(X, INT64_MIN, INT64_MAX),))])
    assert isinstance(found, Columns)
    for part, integers in enumerate(found):
        total = sum(row["x"] for row in rows if row["k"] == part)
        assert integers == {0: total}
        assert type(integers[0]) is int
        assert total > 2**64


def test_the_halves_of_a_sum_are_the_sum(engine: DuckDB) -> None:
    for whole in (0, 1, -1, 2**62 - 1, 2**62, -(2**62), -(2**62) - 1, 2**63, -(2**63), 10**30, -(10**30)):
        halves = ", ".join(arrays._halves("x"))
        with engine._database.cursor() as cursor:
            found = cursor.execute(
                f"SELECT {halves} FROM (SELECT '{whole}'::HUGEINT AS x UNION ALL SELECT NULL)"
            ).fetchnumpy()
        for narrow in (True, False):
            assert sorted(arrays._whole(found, "x", narrow).tolist()) == sorted([whole, 0])


def test_which_kind_of_integers_is_computed_with_does_not_depend_on_the_data(engine: DuckDB) -> None:
    """One record more could make all parts slower."""
    schema, by = {"k": Type.INT64, "x": Type.INT64}, Partitioning(Column("k"), range(40))
    kinds: dict[Statistic, set[str]] = {}
    for number, rows in enumerate(
        [
            [],
            [{"k": 1, "x": 1}],
            [{"k": 1, "x": INT64_MAX}],
            [{"k": 2, "x": INT64_MIN}] * 50,
            [{"k": i % 40, "x": 2**30} for i in range(5000)],
        ]
    ):
        engine.add_root(f"kinds{number}", rows, schema)
        for statistic in STATISTICS[:-1]:
            found = engine.measure(RootTable(f"kinds{number}"), by, [statistic])
            assert isinstance(found, Columns)
            kinds.setdefault(statistic, set()).add(" ".join(str(c.dtype) for c in found.columns))
    assert all(len(each) == 1 for each in kinds.values())
    assert {"int64", "object object", "int64 int64 int64"} <= set().union(*kinds.values())


def test_more_rows_than_anybody_has_are_still_exact(engine: DuckDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_ROWS", 1)
    monkeypatch.setattr(statistics, "MOST_ROWS", 1)
    schema = {"k": Type.INT64, "x": Type.INT64}
    rows = [{"k": i % 20, "x": HUGE[i % len(HUGE)]} for i in range(300)]
    engine.add_root("more", rows, schema)
    table = reference.Relation(Schema.of(schema), tuple((row["k"], row["x"]) for row in rows))
    by = Partitioning(Column("k"), range(20))
    for statistic in [*STATISTICS, Totals((Clamp(X, 0, 2**61),)), Bernstein(Clamp(X, 0, 2**58), 1)]:
        expected = reference.measure(table, by, [statistic])
        assert engine.measure(RootTable("more"), by, [statistic]) == expected


def test_of_many_parts_no_row_of_the_database_becomes_an_object(
    engine: DuckDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any, *given: Any) -> Any:
        raise AssertionError("read one by one")

    monkeypatch.undo()
    rows = [{"k": f"k{i}", "x": i} for i in range(400)]
    engine.add_root("objects", rows, {"k": Type.STRING, "x": Type.INT64})
    monkeypatch.setattr(statistics.Measurement, "read", refuse)
    for statistic in (Records(), Totals((Clamp(X, 0, 10),)), Bernstein(Clamp(X, 0, 10), 2)):
        by = Partitioning(Column("k"), tuple(f"k{i}" for i in range(300)))
        assert isinstance(engine.measure(RootTable("objects"), by, [statistic]), Columns)


# ── columns ──────────────────────────────────────────────────────────────────────────

EDGES = [0, 1, -1, ROOM - 1, 1 - ROOM, ROOM, -ROOM, 2**63 - 1, -(2**63), 2**63, 10**30, -(10**30)]


def test_columns_add_up_as_integers_do_beyond_64_bits_too() -> None:
    for a in EDGES:
        for b in EDGES:
            for kinds in product((True, False), repeat=2):
                left, right = (
                    column(c, narrow=kind) for c, kind in zip(([a, 1], [b, 2]), kinds, strict=True)
                )
                assert add(left, right).tolist() == [a + b, 3]


def test_a_part_of_columns_is_what_is_not_zero_of_it() -> None:
    columns = Columns([column([0, 5, 10**30], narrow=False), column([2, 0, -1], narrow=True)])
    assert columns == [{1: 2}, {0: 5}, {0: 10**30, 1: -1}]
    assert [columns[i] for i in range(-3, 3)] == 2 * list(columns)
    assert columns[1:] == [{0: 5}, {0: 10**30, 1: -1}]
    assert columns != [{1: 2}]
    assert len(columns) == 3
    assert "10" in repr(columns)


def test_keys_are_found_where_they_are_and_nowhere_else() -> None:
    assert positions(range(-2, 3), [-3, -2, 0, 2, 3]).tolist() == [-1, 0, 2, 4, -1]
    assert positions(("b", None, "a"), ["a", "c", None]).tolist() == [2, -1, 1]
    assert positions((), []).tolist() == []
