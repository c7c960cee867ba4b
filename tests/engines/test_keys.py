"""Keys of several columns, few and very many: every engine gives each part the reference's integers."""

from collections.abc import Sequence
from datetime import date, datetime
from itertools import product
from typing import Any

import pytest

from fpinq.engines import reference
from fpinq.engines.columns import positions
from fpinq.engines.duckdb.dialect import SQL
from fpinq.engines.sql.statistics import Measurement
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.keys import Keys, Product
from fpinq.model.plans import RootTable, Term
from fpinq.model.statistics import Bernstein, Points, Records, Statistic, Totals
from fpinq.model.transformations import Partitioning, PartOf
from model.collisions import times_slower

N, F, S, B, D, T = (Column(name) for name in "nfsbdt")
SCHEMA = Schema.of(
    {
        "n": Type.INT64,
        "f": Type.FLOAT64,
        "s": Type.STRING,
        "b": Type.BOOL,
        "d": Type.DATE,
        "t": Type.TIMESTAMP,
    }
)
DAYS = (None, date(1, 1, 1), date(2024, 2, 29))
TIMES = (None, datetime(2024, 2, 29, 12, 0, 0, 1))
ROWS = list(
    product(
        (None, -1, 0, 1, 7, 2**63 - 1),
        (None, 0.0, -1.5, 0.1, float("inf")),
        (None, "", "a", "A", "é", "''", "nobody's"),
        (None, True, False),
        DAYS,
        TIMES,
    )
)[::7]
TABLE = reference.Relation(SCHEMA, tuple(ROWS))
# More than any dialect compares one by one.
MANY = tuple(f"city {i}" for i in range(1_500))
HALF = Apply("floor_divide", (N, Literal.of(2)))

KEYS: dict[str, tuple[tuple[Expression, ...], Keys]] = {
    "a product": ((S, B), Product((("a", None, "é"), (True, False)))),
    "a product with null": ((B, N), Product(((None, False), (None, 1, 7)))),
    "a product of ranges": ((N, HALF), Product((range(-3, 9), range(-1, 4)))),
    "floats and times": ((F, T), Product(((0.1, None, float("inf"), 0.0), TIMES))),
    "days and texts": ((D, S, B), Product((DAYS, ("a", "''"), (True, None)))),
    "many texts": ((S, B), Product(((*MANY, "a", "", None), (None, True)))),
    "many texts and a range": ((S, N), Product(((*MANY, "é"), range(5)))),
    "many of both": ((S, N), Product(((*MANY[:40], "A", "a"), (*range(5, 300, 2), None, 1)))),
    "tuples": ((S, N), (("a", 0), ("é", None), (None, 1), (None, None), ("a", 7))),
    "tuples of one part": ((S, N), (("a", 0),)),
    "many tuples": ((S, N), (*zip(MANY, range(1_500), strict=True), ("a", 0), ("é", 7))),
    "many tuples with null": (
        (S, N, F),
        (*zip(MANY, range(1_500), [0.1] * 1_500, strict=True), ("a", None, 0.1), (None, None, None)),
    ),
    "many floats": (
        (F, S),
        (*((i / 7, "a") for i in range(1_500)), (0.1, "a"), (None, "a"), (float("inf"), None)),
    ),
    "many times": (
        (T, D, B),
        (*((datetime(1 + i, 1, 1), None, True) for i in range(1_500)), (TIMES[1], DAYS[1], None)),
    ),
}
ASKED: list[Statistic] = [
    Records(),
    Totals((Clamp(N, -3, 3), Clamp(N, 0, 9))),
    Bernstein(Clamp(N, -3, 3), 2),
    Points(Clamp(N, -3, 3)),
]


@pytest.fixture(scope="module")
def told(engine: Any) -> Any:
    rows = [dict(zip(SCHEMA.names(), row, strict=True)) for row in ROWS]
    engine.add_root("keyed", rows, dict(SCHEMA.columns))
    return engine


def expected(by: Partitioning, statistics: Sequence[Statistic]) -> list[Any]:
    """By the definition; of many parts those that are not empty, which are few."""
    occurring = {key if len(key) > 1 else key[0] for key in _found(by)}
    each = statistics * len(by.keys) if len(statistics) == 1 else statistics
    return [
        reference.measure(reference.transform(PartOf(by, i), TABLE), None, [statistic])[0]
        if key in occurring
        else {}
        for i, (key, statistic) in enumerate(zip(by.keys, each, strict=True))
    ]


def _found(by: Partitioning) -> set[Any]:
    columns = [reference.evaluate(e, row) for row in TABLE.read() for e in by.expressions]
    width = len(by.expressions)
    return {tuple(columns[i : i + width]) for i in range(0, len(columns), width)}


@pytest.mark.parametrize("name", KEYS)
def test_every_part_of_several_keys_has_the_integers_of_its_records(told: Any, name: str) -> None:
    by = Partitioning(*KEYS[name])
    for statistic in ASKED if len(by.keys) < 100 else ASKED[:1] + ASKED[2:3]:
        assert list(told.measure(RootTable("keyed"), by, [statistic])) == expected(by, [statistic])


@pytest.mark.parametrize("name", ["a product with null", "days and texts", "tuples"])
def test_parts_of_several_keys_may_ask_different_things(told: Any, name: str) -> None:
    by = Partitioning(*KEYS[name])
    statistics = [Totals((Clamp(N, -i, i + 1),)) for i in range(len(by.keys))]
    assert list(told.measure(RootTable("keyed"), by, statistics)) == expected(by, statistics)


@pytest.mark.parametrize("name", ["a product", "floats and times", "tuples", "many tuples with null"])
def test_a_part_of_several_keys_is_a_table(told: Any, name: str) -> None:
    by = Partitioning(*KEYS[name])
    for index in (*range(3), len(by.keys) - 1):
        index %= len(by.keys)
        plan = Term(PartOf(by, index), (RootTable("keyed"),))
        assert list(told.measure(plan, None, [Records()])) == [expected(by, [Records()])[index]]


def columns_of(keys: Keys) -> list[Any]:
    return [list(column) for column in zip(*keys, strict=True)]


def read(keys: Any) -> None:
    """Each key in turn, with a grid point."""
    by, statistic = Partitioning((N, Column("m")), keys), Points(Clamp(N, 0, 1))
    rows = [(*key, 0, 1) for key in keys]
    measurement = Measurement("", {}, by, [statistic], ("k0", "k1"), ("k0", "k1", "g", "n"), {}, SQL)
    assert measurement.read(rows) == [{0: 1}] * len(keys)


def place(keys: Any) -> None:
    assert positions(keys, *columns_of(keys)).tolist() == list(range(len(keys)))


@pytest.mark.parametrize("find", [read, place])
def test_keys_of_one_hash_are_found_as_fast_as_others(find: Any) -> None:
    """Each that was found was compared with all that have its hash."""
    assert times_slower(find) < 8
