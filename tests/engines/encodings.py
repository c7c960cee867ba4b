"""The same rows as parquet files of every kind: what an engine reads must not depend on how it was written.

Every engine is given these files and asked `questions`; the reference is given the rows. The choices of a
file (the pattern of its nulls, encoding, page version, compression, rows per group, statistics) are many, so
`files` takes some such that any two, or any three, of these choices meet in one of them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from engines.generators import canonical
from engines.nasty import VALUES
from fpinq.engines import reference
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type, Value
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Integers, Points, Records, Statistic, Totals
from fpinq.model.transformations import (
    Aggregate,
    Concat,
    Distinct,
    First,
    GroupBy,
    Join,
    LimitPerKey,
    Partitioning,
    PartOf,
    Select,
    SemiJoin,
    Take,
    Union,
    UniqueBy,
    Where,
)

Rows = Sequence[tuple[Value, ...]]

ARROW = {
    Type.BOOL: pa.bool_(),
    Type.INT64: pa.int64(),
    Type.FLOAT64: pa.float64(),
    Type.STRING: pa.string(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us"),
}

# What a column is encoded as, by its type. Booleans have no choice but the page version.
_ENCODINGS: dict[str, dict[Type, str]] = {
    "dictionary": {},
    "plain": {},
    "delta": {
        Type.STRING: "DELTA_BYTE_ARRAY",
        Type.INT64: "DELTA_BINARY_PACKED",
        Type.DATE: "DELTA_BINARY_PACKED",
        Type.TIMESTAMP: "DELTA_BINARY_PACKED",
    },
    "delta length": {Type.STRING: "DELTA_LENGTH_BYTE_ARRAY"},
    "split": dict.fromkeys((Type.INT64, Type.FLOAT64, Type.DATE, Type.TIMESTAMP), "BYTE_STREAM_SPLIT"),
}


@dataclass(frozen=True)
class Writing:
    """How a file is written."""

    encoding: str = "dictionary"
    page: str = "1.0"
    compression: str = "snappy"
    rows_per_group: int = 1 << 20
    statistics: str = "footer"

    def write(self, path: Path, schema: Schema, rows: Rows) -> Path:
        """The rows as a file."""
        arrays = [pa.array([row[i] for row in rows], ARROW[t]) for i, t in enumerate(schema.types())]
        named = _ENCODINGS[self.encoding]
        by_column = {name: named[type_] for name, type_ in schema.columns if type_ in named}
        pq.write_table(
            pa.table(arrays, names=list(schema.names())),
            path,
            use_dictionary=self.encoding == "dictionary",
            column_encoding=by_column or None,
            data_page_version=self.page,
            data_page_size=64 if self.rows_per_group < 100 else None,
            compression=self.compression,
            row_group_size=self.rows_per_group,
            write_statistics=self.statistics != "none",
            write_page_index=self.statistics == "index",
        )
        return path

    def __str__(self) -> str:
        return "-".join(str(getattr(self, f.name)) for f in fields(self))


_CHOICES: tuple[tuple[Any, ...], ...] = (
    tuple(_ENCODINGS),
    ("1.0", "2.0"),
    ("none", "snappy", "gzip", "zstd", "lz4", "brotli"),
    (3, 16, 1 << 20),
    ("footer", "none", "index"),
)
_PATTERNS = (
    "no null",
    "all null",
    "one null",
    "one value",
    "one value and a null",
    "one value and nulls",
    "runs",
    "edges",
)


def files(meeting: int) -> list[tuple[str, Writing]]:
    """Patterns of nulls and ways to write them, such that any so many choices meet in one file."""
    choices = (_PATTERNS, *_CHOICES)
    left = {some for choice in product(*choices) for some in combinations(enumerate(choice), meeting)}
    random, taken = Random(0), []
    while left:
        needed = dict(min(left, key=repr))
        drawn = [[needed.get(i, random.choice(of)) for i, of in enumerate(choices)] for _ in range(50)]
        best = max(drawn, key=lambda choice: len(left.intersection(combinations(enumerate(choice), meeting))))
        left.difference_update(combinations(enumerate(best), meeting))
        taken.append((best[0], Writing(*best[1:])))
    return taken


# Without integers in streams of bytes, which not every engine reads.
_SOME = [writing for _, writing in files(meeting=2) if writing.encoding != "split"]


def writing_of(rows: Rows) -> Writing:
    """Some writing, always the same for the same rows."""
    return _SOME[crc32(repr(rows).encode("utf-8", "surrogatepass")) % len(_SOME)]


# ── tables ───────────────────────────────────────────────────────────────────────────

SCHEMA = Schema.of({type_.value[0] + str(i): type_ for i, type_ in enumerate(VALUES)})
_ROWS = 41


def rows_with(pattern: str) -> list[tuple[Value, ...]]:
    """Rows with nulls in a pattern that readers may treat on its own."""
    return list(zip(*(_column(type_, pattern) for type_ in SCHEMA.types()), strict=True))


def _column(type_: Type, pattern: str) -> list[Value]:
    present = _present(type_)
    one = present[1]
    match pattern:
        case "no null":
            return [present[i % len(present)] for i in range(_ROWS)]
        case "all null":
            return [None] * _ROWS
        case "one null":
            return [None if i == 20 else present[i * i % len(present)] for i in range(_ROWS)]
        case "one value":
            return [one] * _ROWS
        case "one value and a null":
            return [None if i == _ROWS - 1 else one for i in range(_ROWS)]
        case "one value and nulls":
            return [None if i % 4 else one for i in range(_ROWS)]
        case "runs":  # row groups of three that are all null, all one value, or mixed
            return [None if i // 6 % 2 else present[i // 8 % len(present)] for i in range(_ROWS)]
    return [VALUES[type_][i % len(VALUES[type_])] for i in range(_ROWS)]


def _present(type_: Type) -> list[Value]:
    return [value for value in VALUES[type_] if value is not None and value == value]


# ── questions ────────────────────────────────────────────────────────────────────────

Question = tuple[Plan, Partitioning | None, list[Statistic]]


def questions(root: str, rows: Rows) -> list[Question]:
    """What is asked of a table: everything that an engine may answer while it reads, or from a footer."""
    table = RootTable(root)
    asked: list[Question] = [(table, None, [Records()])]
    asked += [(plan, None, [Records()]) for plan in _of_all_columns(table)]
    for position, (name, type_) in enumerate(SCHEMA.columns):
        there = {repr(row[position]) for row in rows}
        some = next((value for value in _present(type_) if repr(value) in there), _present(type_)[1])
        other = next(value for value in _present(type_) if value != some)
        column, keys = Column(name), Partitioning(Column(name), (None, some, other))
        asked += [(Term(Where(t), (table,)), None, [Records()]) for t in _tests(column, type_, some, other)]
        asked += [(table, keys, [Records()] * 3), (Term(PartOf(keys, 0), (table,)), None, [Records()])]
        if type_ in (Type.BOOL, Type.DATE, Type.TIMESTAMP):
            continue  # read as other types are
        asked += [(plan, None, [Records()]) for plan in _groups_and_joins(table, column, type_, some)]
        asked += [(plan, keys, [Records()] * 3) for plan in _first(table, column)]
        if type_ in (Type.INT64, Type.FLOAT64):
            clamp = Clamp(column, -(2**20), 2**20)
            asked += [(table, None, [Totals((clamp,))]), (table, None, [Points(clamp)])]
    return asked


def _of_all_columns(table: Plan) -> list[Plan]:
    twice = Term(Concat(), (table, table))
    return [Term(Distinct(), (table,)), Term(Distinct(), (twice,)), Term(Union(bag=False), (table, table))]


def _tests(column: Column, type_: Type, some: Value, other: Value) -> list[Expression]:
    value, another = Literal(some, type_), Literal(other, type_)
    null, same = Apply("is_null", (column,)), Apply("equal", (column, value))
    ordered = () if type_ is Type.BOOL else ("less", "less_equal", "greater", "greater_equal")
    return [
        null,
        Apply("not", (null,)),
        same,
        Apply("not_equal", (column, value)),
        Apply("is_in", (column, value, another)),
        Apply("equal", (Apply("fill_null", (column, another)), another)),
        Apply("fill_null", (same, Literal.of(True))),
        Apply("or", (null, same)),
        *(Apply(operator, (column, value)) for operator in ordered),
    ]


def _groups_and_joins(table: Plan, column: Column, type_: Type, some: Value) -> Iterator[Plan]:
    same = Apply("equal", (column, Literal(some, type_)))
    only = Term(Where(same), (table,))
    extremes = () if type_ is Type.BOOL else ("min", "max")
    for function in extremes:
        found = Term(GroupBy((), (("m", Aggregate(function, column)),)), (table,))
        yield Term(Where(Apply("is_null", (Column("m"),))), (found,))
        yield Term(Where(Apply("equal", (Column("m"), Literal(some, type_)))), (found,))
    yield Term(GroupBy((("k", column),), (("n", Aggregate("count")),)), (table,))
    yield Term(UniqueBy((column,)), (table,))
    yield Term(SemiJoin((column,), (column,), True), (table, only))
    yield Term(SemiJoin((column,), (column,), False), (table, only))
    yield Term(
        Join((column,), (column,), First(2), First(2), (("x", Column(f"l.{column.name}")),)), (table, only)
    )


def _first(table: Plan, column: Column) -> Iterator[Plan]:
    yield Term(LimitPerKey(2, (column,)), (table,))
    for at_most in (1, 7):
        yield Term(Take(at_most), (table,))
        # With this column first, so that it leads the order.
        leading = tuple(
            (name, Column(name)) for name in sorted(SCHEMA.names(), key=lambda n: n != column.name)
        )
        yield Term(Take(at_most), (Term(Select(leading), (table,)),))


Known = tuple[list[Question], list[list[Integers]]]


def expected(rows: Rows) -> Known:
    """The questions about some rows, and the reference's answers."""
    asked = questions("t", rows)
    database = {"t": reference.Relation(SCHEMA, canonical(SCHEMA, rows))}
    return asked, [reference.measure(reference.compute(plan, database), by, q) for plan, by, q in asked]


def differences(engine: Any, path: Any, rows: Rows, known: Known) -> list[str]:
    """Where the engine's answers about a file differ from the reference's about its rows."""
    assert engine.add_root("t", path) == SCHEMA
    found = [
        str(plan)
        for (plan, by, q), answers in zip(*known, strict=True)
        if engine.measure(plan, by, q) != answers
    ]
    if Counter(map(repr, engine.rows(RootTable("t")).rows)) != Counter(map(repr, canonical(SCHEMA, rows))):
        found.append("rows")
    return found
