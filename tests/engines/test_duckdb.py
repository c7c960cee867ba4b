"""What is DuckDB's own: sources, locks, errors, the text of queries."""

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from engines.conftest import write_parquet
from engines.generators import Example, person_bag, plan_examples
from engines.nasty import VALUES
from engines.test_conformance import EXAMPLES, bag, compare, thorough
from fpinq.engines import reference
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.files import Pin
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadData, DataChanged, EngineError
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.plans import MAX_DEPTH, Flatten, Persons, PersonTable, Plan, RootTable, Term
from fpinq.model.statistics import Bernstein, Points, Records, Totals
from fpinq.model.transformations import (
    All,
    Concat,
    First,
    GroupBy,
    Join,
    LimitPerKey,
    LiteralTable,
    Partitioning,
    PartOf,
    Select,
    Union,
    Unique,
    Where,
)

HOSTILE = [
    'a"b', "a'b", "a;DROP TABLE r0;--", "$1", "$p0", "\\", "a b", "ünï", "𝒳", "select", "/*", "--",
    "?", "{x}", "%s", "\u00a0", "'; COPY (SELECT 1) TO '/tmp/x'; --", "$$", "E'\\n'", "\n", "c0",
    "u", "k", "incoming",
]  # fmt: skip


@pytest.fixture
def db() -> Iterator[DuckDB]:
    engine = DuckDB()
    yield engine
    engine.close()


@pytest.fixture
def people(tmp_path: Path) -> str:
    path = tmp_path / "people.parquet"
    duckdb.sql(f"COPY (SELECT range AS id, range % 7 AS age, range / 3 AS cost FROM range(1000)) TO '{path}'")
    return str(path)


def number_of(engine: DuckDB, plan: Plan) -> int:
    return engine.measure(plan, None, [Records()])[0].get(0, 0)


# ── sources ──────────────────────────────────────────────────────────────────────────

FOUR = {
    "i": [1, None, -(2**63), 2**63 - 1],
    "f": [1.5, None, float("inf"), -0.5],
    "s": ["a", None, "é", "𝒳"],
    "b": [True, None, False, True],
    "d": [date(1, 1, 1), None, date(9999, 12, 31), date(2024, 2, 29)],
    "t": [
        datetime(1, 1, 1),
        None,
        datetime(9999, 12, 31, 23, 59, 59, 999_999),
        datetime(2024, 2, 29, 1, 2, 3, 4),
    ],
}
TYPES = {
    "i": Type.INT64,
    "f": Type.FLOAT64,
    "s": Type.STRING,
    "b": Type.BOOL,
    "d": Type.DATE,
    "t": Type.TIMESTAMP,
}
ROWS = list(zip(*FOUR.values(), strict=True))


def every_source(folder: Path) -> dict[str, Any]:
    table = pa.table(FOUR)
    duckdb.from_arrow(table).to_parquet(str(folder / "x.parquet"))
    duckdb.from_arrow(table).to_csv(str(folder / "x.csv"))
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in FOUR.items()})
    frame["i"] = frame["i"].astype("Int64")
    frame["t"] = pd.Series(FOUR["t"], dtype="datetime64[us]")
    frame["f"] = pd.Series(FOUR["f"], dtype="float64")
    return {
        "parquet": folder / "x.parquet",
        "csv": str(folder / "x.csv"),
        "glob": str(folder / "*.parquet"),
        "paths": [folder / "x.parquet"],
        "pandas": frame,
        "polars": pl.DataFrame(FOUR),
        "lazy polars": pl.LazyFrame(FOUR),
        "pyarrow": table,
        "dicts": [dict(zip(FOUR, row, strict=True)) for row in ROWS],
    }


@pytest.mark.parametrize(
    "kind", ["parquet", "csv", "glob", "paths", "pandas", "polars", "lazy polars", "pyarrow", "dicts"]
)
@pytest.mark.parametrize("stated", [False, True])
def test_a_source_of_any_kind_gives_the_same_rows(
    db: DuckDB, tmp_path: Path, kind: str, stated: bool
) -> None:
    source = every_source(tmp_path)[kind]
    schema = db.add_root("t", source, schema=TYPES if stated else None)
    assert schema == Schema.of(TYPES)
    assert bag(db.rows(RootTable("t")).rows) == bag(ROWS)


def test_other_types_are_converted_where_nothing_is_lost(db: DuckDB) -> None:
    table = duckdb.sql(
        """
        SELECT 1::TINYINT AS a, 2::UINTEGER AS b, 18446744073709551615::UBIGINT AS c, 7::UBIGINT AS d,
               1.5::FLOAT AS e, 2.25::DECIMAL(9, 2) AS f, 'x'::ENUM('x', 'y') AS g, -5::HUGEINT AS h,
               TIMESTAMP_S '2024-01-01 00:00:01' AS j, TIMESTAMP_NS '2024-01-01 00:00:00.123456789' AS k,
               TIMESTAMPTZ '2024-01-01 12:00:00+02' AS l, 'NaN'::DOUBLE AS m, '-0.0'::DOUBLE AS n,
               DATE '10000-01-01' AS o, 'infinity'::DATE AS p, 'infinity'::TIMESTAMP AS q,
               TIMESTAMP '0001-01-01 (BC) 00:00:00' AS r, TIMESTAMP_S '290000-01-01 00:00:00' AS s,
               '-infinity'::TIMESTAMPTZ AS v, uuid '00000000-0000-0000-0000-000000000001' AS w
        """
    )
    frame = table.to_arrow_table()
    names = frame.column_names
    db.add_root("t", frame)
    (row,) = db.rows(RootTable("t")).rows
    found = dict(zip(names, row, strict=True))
    assert found == {
        "a": 1, "b": 2, "c": None, "d": 7, "e": 1.5, "f": 2.25, "g": "x", "h": -5,
        "j": datetime(2024, 1, 1, 0, 0, 1), "k": datetime(2024, 1, 1, 0, 0, 0, 123_456),
        "l": datetime(2024, 1, 1, 10), "m": None, "n": 0.0, "o": None, "p": None, "q": None, "r": None,
        "s": None,
        "v": None, "w": "00000000-0000-0000-0000-000000000001",
    }  # fmt: skip
    assert repr(found["n"]) == "0.0"


def test_categories_become_strings(db: DuckDB) -> None:
    db.add_root("t", pd.DataFrame({"c": pd.Categorical(["x", "y", None])}))
    assert bag(db.rows(RootTable("t")).rows) == bag([("x",), ("y",), (None,)])


def test_a_nested_column_is_refused_and_can_be_left_out(db: DuckDB) -> None:
    data = pl.DataFrame({"a": [1], "b": [[1, 2]]})
    with pytest.raises(BadData, match=r"'b'.*schema"):
        db.add_root("t", data)
    assert db.add_root("t", data, schema={"a": Type.INT64}) == Schema.of({"a": Type.INT64})


@pytest.mark.parametrize(
    ("source", "schema", "says"),
    [
        ([], None, "schema"),
        ([{"a": None}], None, "schema"),
        ([{"a": 1}, {"a": "x"}], None, "several types"),
        ([{"a": 1}], {"a": Type.STRING}, "not string"),
        ([{"a": b"x"}], None, "bytes"),
        ([{1: 1}], None, "strings"),
        ([{"a": "\ud800"}], None, "surrogate"),
        (pd.DataFrame({"a": [1]}), {"b": Type.INT64}, "no column 'b'"),
        (pd.DataFrame({"a": [1]}), {"a": Type.DATE}, "not date"),
        (pd.DataFrame({"a": [None]}), None, "schema"),
        (pd.DataFrame({0: [1]}), None, "strings"),
        (pd.DataFrame(), None, "no columns"),
        (pd.DataFrame({"a": [1]}), {}, "one or more"),
        ("nowhere.parquet", None, "no such file"),
        ("nowhere/*.csv", None, "no such file"),
        (object(), None, "cannot read"),
        (5, None, "cannot read"),
    ],
)
def test_bad_data_is_refused_with_advice(db: DuckDB, source: Any, schema: Any, says: str) -> None:
    with pytest.raises(BadData, match=says):
        db.add_root("t", source, schema=schema)
    assert db.add_root("t", [{"a": 1}]) == Schema.of({"a": Type.INT64})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.parquet", b""),
        ("x.parquet", b"PAR1 but secret"),
        ("x.csv", b""),
        ("x.csv", b'secret,"b\n1,secret\n2,\xff\xfe\x00\n'),
        ("x.xlsx", b"secret"),
    ],
)
def test_an_unreadable_file_is_refused_without_quoting_it(
    db: DuckDB, tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadData) as refusal:
        db.add_root("t", tmp_path / name)
    assert "secret" not in str(refusal.value)


def test_a_cell_of_another_type_than_the_schema_says_is_null(db: DuckDB, tmp_path: Path) -> None:
    lines = "\n".join(["a", *map(str, range(50_000)), "secret"])
    (tmp_path / "x.csv").write_text(lines)
    db.add_root("t", tmp_path / "x.csv", schema={"a": Type.INT64})
    assert number_of(db, RootTable("t")) == 50_001
    assert number_of(db, Term(Where(Apply("is_null", (Column("a"),))), (RootTable("t"),))) == 1
    assert db.add_root("s", tmp_path / "x.csv") == Schema.of({"a": Type.STRING})


def test_a_schema_decides_how_a_csv_is_read(db: DuckDB, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("zip,n\n01234,1\n00001,2\n")
    db.add_root("t", tmp_path / "x.csv", schema={"zip": Type.STRING, "n": Type.FLOAT64})
    assert bag(db.rows(RootTable("t")).rows) == bag([("01234", 1.0), ("00001", 2.0)])


def test_files_with_different_columns_are_refused(db: DuckDB, tmp_path: Path) -> None:
    duckdb.sql(f"COPY (SELECT 1 AS a) TO '{tmp_path / '1.parquet'}'")
    duckdb.sql(f"COPY (SELECT 'x' AS a) TO '{tmp_path / '2.parquet'}'")
    with pytest.raises(BadData, match="same columns"):
        db.add_root("t", str(tmp_path / "*.parquet"))


def test_names_that_differ_in_case_stay_apart(db: DuckDB) -> None:
    for number, data in enumerate(
        [pd.DataFrame({"a": [1], "A": [2]}), pl.DataFrame({"a": [1], "A": [2]}), [{"a": 1, "A": 2}]]
    ):
        name = f"t{number}"
        assert db.add_root(name, data).names() == ("a", "A")
        assert db.rows(Term(Select((("x", Column("A")),)), (RootTable(name),))).rows == ((2,),)


def test_what_happens_to_a_frame_afterwards_does_not_matter(db: DuckDB) -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    db.add_root("t", frame)
    frame.loc[0, "a"] = 100
    assert db.measure(RootTable("t"), None, [Totals((Clamp(Column("a"), 0, 1000),))]) == [{0: 3}]


def test_a_root_in_memory_survives_the_arrival_of_files(db: DuckDB, people: str) -> None:
    db.add_root("t", [dict(zip(FOUR, row, strict=True)) for row in ROWS])
    db.add_root("people", people)
    assert bag(db.rows(RootTable("t")).rows) == bag(ROWS)
    assert number_of(db, RootTable("people")) == 1000


def test_a_name_is_given_once(db: DuckDB) -> None:
    db.add_root("t", [{"a": 1}])
    with pytest.raises(BadData, match="already"):
        db.add_root("t", [{"a": 1}])


# ── persons ──────────────────────────────────────────────────────────────────────────


def test_rows_of_nobody_are_left_out(db: DuckDB) -> None:
    rows = [{"id": 1, "x": 1}, {"id": None, "x": 2}, {"id": None, "x": 3}, {"id": 2, "x": 4}]
    db.add_persons("people", {"visits": rows}, unit="id")
    everybody = Term(Flatten(PersonTable("visits", 5)), (RootTable("people"),))
    assert number_of(db, everybody) == 2
    greeting = Term(LiteralTable(Schema.of({"a": Type.INT64}), ((1,),)), ())
    assert number_of(db, Term(Flatten(greeting), (RootTable("people"),))) == 2


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({}, "one or more"),
        ({"p": [{"x": 1}]}, "no column 'id'"),
        ({"p": [{"id": 1}], "q": [{"id": "1"}]}, "same type"),
    ],
)
def test_persons_need_one_unit_column(db: DuckDB, tables: Any, says: str) -> None:
    with pytest.raises(BadData, match=says):
        db.add_persons("people", tables, unit="id")


def test_persons_in_files_have_raw_ids_made_canonical(db: DuckDB, tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    values = "('NaN'::DOUBLE), ('-0'::DOUBLE), ('0'::DOUBLE), (1), (NULL)"
    duckdb.sql(f"COPY (SELECT * FROM (VALUES {values}) t(id)) TO '{path}'")
    db.add_persons("people", {"p": path}, unit="id")
    one = Term(LiteralTable(Schema.of({"a": Type.INT64}), ((1,),)), ())
    assert number_of(db, Term(Flatten(one), (RootTable("people"),))) == 2
    assert number_of(db, Term(Flatten(PersonTable("p", 1)), (RootTable("people"),))) == 2


def test_the_first_rows_of_a_person_are_the_same_however_they_are_found(db: DuckDB, tmp_path: Path) -> None:
    """Bounds that are kept ready, and those beyond the room for them."""
    schema = Schema.of({"id": Type.INT64, "x": Type.FLOAT64})
    rows = [(n % 7, float(n * 37 % 50)) for n in range(100)] + [(None, 1.0), (1, None), (1, float("nan"))]
    paths = [write_parquet(tmp_path / f"{i}.parquet", schema, rows[i::2]) for i in range(2)]
    csv = tmp_path / "x.csv"
    csv.write_text("id,x\n" + "".join(f"{a},{b}\n" for a, b in rows[:100]))
    dicts = [dict(zip(schema.names(), row, strict=True)) for row in rows]
    db.add_persons("memory", {"p": dicts}, unit="id")
    db.add_persons("files", {"p": paths}, unit="id")
    db.add_persons("lines", {"p": csv}, unit="id")
    bag_of = {"memory": rows, "files": rows, "lines": rows[:100]}
    for root, given_rows in bag_of.items():
        shape = Persons("id", (("p", schema),))
        data = {root: person_bag(shape, {"p": given_rows})}
        for at_most in range(1, 15):
            plan = Term(Flatten(PersonTable("p", at_most)), (RootTable(root),))
            assert bag(db.rows(plan).rows) == bag(reference.compute(plan, data).rows)


# ── raw floats in files ──────────────────────────────────────────────────────────────


def test_nan_in_a_file_whose_statistics_leave_it_out_is_null(db: DuckDB, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, float("nan"), 2.0, -0.0]}), tmp_path / "x.parquet")
    db.add_root("t", tmp_path / "x.parquet")
    root = RootTable("t")
    assert db.measure(root, None, [Totals((Clamp(Column("x"), -100, 100),))]) == [{0: 3}]
    assert db.measure(root, None, [Bernstein(Clamp(Column("x"), 0, 10), 1)]) == [{0: 27, 1: 3}]
    small = Term(Where(Apply("less", (Column("x"), Literal.of(100.0)))), (root,))
    large = Term(Where(Apply("greater", (Column("x"), Literal.of(100.0)))), (root,))
    assert (number_of(db, small), number_of(db, large)) == (3, 0)
    missing = Term(Where(Apply("is_null", (Column("x"),))), (root,))
    assert number_of(db, missing) == 1


def in_files(engine: DuckDB, example: Example, folder: Path) -> dict[str, str]:
    """The example's data as parquet files."""
    for name, (schema, rows) in example.tables.items():
        engine.add_root(name, write_parquet(folder / f"{name}.parquet", schema, rows))
    for name, (shape, tables) in example.persons.items():
        paths = {
            table: write_parquet(folder / f"{name}-{table}.parquet", schema, tables[table])
            for table, schema in shape.tables
        }
        engine.add_persons(name, paths, unit=shape.unit)
    return {name: name for name in (*example.tables, *example.persons)}


@thorough(EXAMPLES // 20)
@given(example=plan_examples(depth=3))
def test_a_plan_over_files_has_the_reference_rows_and_statistics(
    tmp_path_factory: Any, example: Example
) -> None:
    engine = DuckDB()
    folder = tmp_path_factory.mktemp("files")
    try:
        compare(engine, example, in_files(engine, example, folder))
    finally:
        engine.close()


# ── locks ────────────────────────────────────────────────────────────────────────────

SECRET = pd.DataFrame({"secret": [1]})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM SECRET",
        "COPY (SELECT 1) TO 'x.csv'",
        "ATTACH 'x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET allowed_paths = ['/etc/passwd']",
        "RESET allowed_paths",
        "SET python_enable_replacements = true",
    ],
)
def test_the_locked_engine_reaches_nothing_else(db: DuckDB, people: str, sql: str) -> None:
    db.add_root("people", people)
    with db._database.cursor() as cursor, pytest.raises(duckdb.Error):
        cursor.execute(sql).fetchall()


def test_only_the_files_of_roots_can_be_read(db: DuckDB, people: str, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    other.write_bytes(Path(people).read_bytes())
    (tmp_path / "link.parquet").symlink_to(other)
    db.add_root("people", people)
    with db._database.cursor() as cursor:
        for path in (other, tmp_path / "link.parquet"):
            with pytest.raises(duckdb.Error):
                cursor.execute(f"SELECT * FROM read_parquet('{path}')").fetchall()


# ── nothing a program writes is SQL ──────────────────────────────────────────────────


@pytest.mark.parametrize("text", [*HOSTILE, "a\0b", *(s for s in VALUES[Type.STRING] if s)])
def test_hostile_names_and_strings_are_inert(db: DuckDB, text: str) -> None:
    name = text.replace("\0", "") or "x"
    rows = [{name: text, "n": 1}, {name: "other", "n": 2}]
    schema = db.add_root(text, rows)
    assert schema.names() == (name, "n")
    root = RootTable(text)
    same = Term(Where(Apply("equal", (Column(name), Literal.of(text)))), (root,))
    listed = Term(LiteralTable(Schema.of({text: Type.STRING}), ((text,),)), ())
    joined = Join((Column(name),), (Column(text),), First(2), First(2), ((text, Column(f"r.{text}")),))
    assert db.rows(Term(joined, (same, listed))).rows == ((text,),)
    by = Partitioning(Column(name), (text, "another"))
    assert db.measure(root, by, [Records(), Records()]) == [{0: 1}, {}]
    grouped = Term(GroupBy(((text, Column(name)),), ()), (root,))
    many = Partitioning(Column(text), (text, *(f"{text}{i}" for i in range(8))))
    assert db.measure(grouped, many, [Records()] * 9) == [{0: 1}, *[{}] * 8]


def test_the_text_of_a_query_contains_nothing_of_the_program(db: DuckDB) -> None:
    text = "'; DROP TABLE r0; --"
    db.add_root(text, [{text: text}])
    test = Apply("contains", (Apply("lower", (Column(text),)), Literal.of(text)))
    sql, _ = db.explain(Term(Where(test), (RootTable(text),)), None, [Records()])
    assert "DROP" not in sql
    assert sql.isascii()


# ── errors ───────────────────────────────────────────────────────────────────────────


def test_an_engine_failure_says_nothing_but_a_reference(
    db: DuckDB, people: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.add_root("people", people)
    damaged = bytearray(Path(people).read_bytes())
    damaged[4:-2000] = bytes(len(damaged) - 2004)
    Path(people).write_bytes(damaged)
    monkeypatch.setattr(Pin, "holds", lambda pin: True)  # as if the disk failed between look and read
    with caplog.at_level(logging.ERROR, "fpinq.owner"), pytest.raises(EngineError) as failure:
        db.measure(RootTable("people"), None, [Totals((Clamp(Column("age"), 0, 10),))])
    assert failure.value.reference in str(failure.value)
    assert len(str(failure.value)) < 100
    assert "parquet" not in str(failure.value).lower()
    assert failure.value.__cause__ is None
    assert failure.value.__suppress_context__
    assert failure.value.reference in caplog.text


@pytest.mark.parametrize("how", ["replaced", "rewritten", "touched", "removed", "grown"])
def test_a_changed_file_is_noticed_before_it_is_measured(db: DuckDB, people: str, how: str) -> None:
    db.add_root("people", people)
    db.add_root("other", [{"a": 1}])
    plan = Term(Where(Literal.of(True)), (RootTable("people"),))
    assert number_of(db, plan) == 1000
    content = Path(people).read_bytes()
    match how:
        case "rewritten":  # in place, with other records and the old time
            found = os.stat(people)
            Path(people).write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
            os.utime(people, ns=(found.st_atime_ns, found.st_mtime_ns))
        case "replaced":
            found = os.stat(people)
            Path(f"{people}2").write_bytes(content)
            os.replace(f"{people}2", people)
            os.utime(people, ns=(found.st_atime_ns, found.st_mtime_ns))
        case "touched":
            os.utime(people, ns=(1, 1))
        case "removed":
            os.remove(people)
        case "grown":
            Path(people).write_bytes(content + b"x")
    with pytest.raises(DataChanged) as refusal:
        db.measure(plan, None, [Records()])
    assert refusal.value.root == "people"
    with pytest.raises(DataChanged):
        db.rows(plan)
    assert number_of(db, RootTable("other")) == 1


# ── size ─────────────────────────────────────────────────────────────────────────────


def test_many_small_steps_do_not_multiply(db: DuckDB) -> None:
    """The optimiser copies expressions into filters: thirty clips would be 3³⁰ of them."""
    db.add_root("t", [{"a": n, "f": n / 2} for n in range(100)])
    plan: Plan = RootTable("t")
    for i in range(30):
        clipped = Apply("clip", (Column("a"), Literal.of(5), Literal.of(1000 + i)))
        divided = Apply("divide", (Column("f"), Literal.of(1.0 + i)))
        plan = Term(Select((("a", clipped), ("f", divided))), (plan,))
    plan = Term(Where(Apply("greater", (Column("a"), Literal.of(50)))), (plan,))
    plan = Term(Where(Apply("less", (Column("f"), Literal.of(1.0)))), (plan,))
    assert number_of(db, plan) == 49


def test_a_deep_predicate_does_not_multiply(db: DuckDB) -> None:
    db.add_root("t", [{"f": n / 2} for n in range(100)])
    value: Expression = Column("f")
    for _ in range(90):
        value = Apply("power", (value, Literal.of(1.0)))
    plan: Plan = Term(Where(Apply("greater", (value, Literal.of(1.0)))), (RootTable("t"),))
    assert number_of(db, plan) == 97


def test_a_table_used_twice_at_every_step_is_computed_once(db: DuckDB) -> None:
    db.add_root("t", [{"a": 1}])
    plan: Plan = RootTable("t")
    for _ in range(11):
        plan = Term(Concat(), (plan, plan))
    assert number_of(db, plan) == 2**11


@pytest.mark.parametrize("kind", ["where", "select", "limit", "join", "union"])
def test_a_chain_of_steps_as_long_as_allowed_is_measured(db: DuckDB, kind: str) -> None:
    db.add_root("t", [{"a": n} for n in range(10)])
    root = RootTable("t")
    key = (Column("a"),)
    steps: dict[str, Any] = {
        "where": Where(Apply("greater", (Column("a"), Literal.of(-1)))),
        "select": Select((("a", Apply("clip", (Column("a"), Literal.of(0), Literal.of(50)))),)),
        "limit": LimitPerKey(2, key),
        "join": Join(key, key, First(1), First(1), (("a", Column("l.a")),)),
        "union": Union(bag=True),
    }
    plan: Plan = root
    for _ in range(MAX_DEPTH):
        plan = Term(steps[kind], (plan, root) if kind in ("join", "union") else (plan,))
    assert number_of(db, plan) == 10


def test_ten_thousand_parts_are_one_query(db: DuckDB) -> None:
    db.add_root("t", [{"a": n % 10_000, "s": str(n)} for n in range(20_000)])
    by = Partitioning(Column("a"), tuple(range(10_000)))
    assert db.measure(RootTable("t"), by, [Records()] * 10_000) == [{0: 2}] * 10_000
    by = Partitioning(Column("s"), tuple(map(str, range(15_000, 25_000))))
    found = db.measure(RootTable("t"), by, [Records()] * 10_000)
    assert found == [{0: 1}] * 5_000 + [{}] * 5_000


def test_sums_beyond_64_bits_are_exact(db: DuckDB) -> None:
    db.add_root("t", [{"a": 2**63 - 1}] * 5 + [{"a": -(2**63)}])
    clamp = Clamp(Column("a"), -(2**63), 2**63 - 1)
    total = 5 * (2**63 - 1) - 2**63
    assert db.measure(RootTable("t"), None, [Totals((clamp,))]) == [{0: total}]
    halves = {0: 6 * (2**63 - 1) - total, 1: total + 6 * 2**63}
    assert db.measure(RootTable("t"), None, [Bernstein(clamp, 1)]) == [halves]


def test_queries_of_different_kinds_share_one_scan(db: DuckDB) -> None:
    rows = [{"k": n % 6, "x": float(n)} for n in range(60)]
    db.add_root("t", rows)
    by = Partitioning(Column("k"), (0, 1, 2, 3, 4, 9))
    clamp = Clamp(Column("x"), 0, 100, Fraction(1, 2))
    asked = [
        Records(),
        Totals((clamp,)),
        Bernstein(Clamp(Column("x"), 10, 20), 2),
        Points(clamp),
        Points(Clamp(Column("x"), 0, 7)),
        Totals((clamp,)),
    ]
    table = reference.Relation(
        Schema.of({"k": Type.INT64, "x": Type.FLOAT64}), tuple((r["k"], r["x"]) for r in rows)
    )
    assert db.measure(RootTable("t"), by, asked) == reference.measure(table, by, asked)


def test_columns_that_are_not_needed_are_not_read_and_rows_are_all_read(db: DuckDB, people: str) -> None:
    db.add_root("people", people)
    old = Term(Where(Apply("greater", (Column("age"), Literal.of(5)))), (RootTable("people"),))
    _, plan = db.explain(old, None, [Records()])
    assert "Projections: age " in plan
    assert "Filters" not in plan
    assert "cost" not in plan


# ── threads ──────────────────────────────────────────────────────────────────────────


def test_several_threads_measure_while_roots_arrive(db: DuckDB, tmp_path: Path) -> None:
    db.add_root("t", [{"a": n} for n in range(100)])
    wrong: list[object] = []

    def ask() -> None:
        for _ in range(50):
            try:
                if number_of(db, RootTable("t")) != 100:
                    wrong.append("count")
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(5):
        path = tmp_path / f"{i}.parquet"
        pq.write_table(pa.table({"a": [i]}), path)
        db.add_root(f"f{i}", path)
    for thread in threads:
        thread.join()
    assert not wrong
    part = PartOf(Partitioning(Column("a"), (3,)), 0)
    assert number_of(db, Term(part, (RootTable("f3"),))) == 1


def test_a_process_leaves_no_folder_behind(tmp_path: Path) -> None:
    program = "import fpinq as fp; fp.protect([{'a': 1}], budget=1).noisy_count(1)"
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


def test_a_frame_turned_around_is_the_same_data() -> None:
    frame = pd.DataFrame(
        {"n": [1, 2, 3], "f": [1.5, 2.5, None], "s": ["a", "b", None], "b": [True, False, True]}
    )
    forward, backward = DuckDB(), DuckDB()
    for engine, data in ((forward, frame), (backward, frame[::-1])):
        engine.add_root("t", data)
    rows = [sorted(engine.rows(RootTable("t")).rows, key=repr) for engine in (forward, backward)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "bounds", [(First(3), First(3)), (Unique(), First(3)), (Unique(), Unique()), (All(), Unique())]
)
@pytest.mark.parametrize("outer", [False, True])
def test_a_join_pairs_by_its_keys_and_multiplies_nothing(db: DuckDB, bounds: Any, outer: bool) -> None:
    left, right = bounds
    public = Term(LiteralTable(Schema.of({"k": Type.INT64, "x": Type.INT64}), ((1, 1), (2, 2))), ())
    db.add_root("t", [{"k": i % 50, "x": i} for i in range(1_000)], {"k": Type.INT64, "x": Type.INT64})
    k, pair = Column("k"), (("k", Column("l.k")), ("x", Column("r.x")))
    sides = (RootTable("t"), public if isinstance(left, All) else RootTable("t"))
    plan = Term(Join((k,), (k,), left, right, pair, outer), sides)
    _, explained = db.explain(plan, None, [Records()])
    joins = set(re.findall(r"\w+ Join|Cross Product", explained))
    assert joins == {"Hash Join"}
