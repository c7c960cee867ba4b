"""Parquet on DuckDB: names mean nothing, and what cannot be read is found when it is protected."""

import os
import struct
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.test_conformance import bag
from engines.test_files import STRANGE
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.in_memory import relation
from fpinq.engines.spark.memory import _micros
from fpinq.engines.sql.statistics import lower
from fpinq.model.errors import BadData, DataChanged
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.plans import Flatten, PersonTable, Plan, RootTable, Term
from fpinq.model.statistics import Records
from fpinq.model.transformations import Select


@pytest.fixture
def db() -> Iterator[DuckDB]:
    engine = DuckDB()
    yield engine
    engine.close()


def number_of(engine: DuckDB, plan: Plan) -> int:
    return engine.measure(plan, None, [Records()])[0].get(0, 0)


def write(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


# ── file names ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [name.replace(".csv", ".parquet") for name in STRANGE])
def test_a_file_name_means_nothing_to_the_engine(db: DuckDB, tmp_path: Path, name: str) -> None:
    for number, other in enumerate(("x1.parquet", "xy.parquet", "b.parquet")):
        db.add_root(str(number), write(tmp_path / other, a=[1] * 10))  # files it may read already
    folder = tmp_path / "a=1[b]*"
    folder.mkdir()
    for number, path in enumerate((tmp_path / name, folder / name)):
        assert db.add_root(f"t{number}", write(path, a=[7, 8])).names() == ("a",)
        assert bag(db.rows(RootTable(f"t{number}")).rows) == bag([(7,), (8,)])


def test_overlapping_paths_count_a_record_once(db: DuckDB, tmp_path: Path) -> None:
    one = write(tmp_path / "1.parquet", a=[1, 2])
    write(tmp_path / "2.parquet", a=[3])
    (tmp_path / "link.parquet").symlink_to(one)
    db.add_root("t", [tmp_path, f"{tmp_path}/*.parquet", one, tmp_path / "link.parquet"])
    assert bag(db.rows(RootTable("t")).rows) == bag([(1,), (2,), (3,)])


def test_files_whose_columns_are_swapped_are_not_read_by_position(db: DuckDB, tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", a=[1], b=[2])
    write(tmp_path / "2.parquet", b=[2], a=[1])
    with pytest.raises(BadData, match="same columns"):
        db.add_root("t", tmp_path)


# ── column names ─────────────────────────────────────────────────────────────────────

OWNED = [
    "file_row_number",
    "file_index",
    "FILE_ROW_NUMBER",
    "File_Index",
    "filename",
    "rowid",
    "i",
    "u",
    "c0",
]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("owned", OWNED)
def test_a_column_may_have_any_name_and_bounds_still_hold(
    db: DuckDB, tmp_path: Path, owned: str, several: bool
) -> None:
    for number in range(1 + several):
        columns = {"id": [1] * 50 + [2] * 50, owned: [number] * 100}
        write(tmp_path / f"{number}.parquet", **columns)
    db.add_persons("people", {"t": tmp_path}, unit="id")
    for most in (1, 3):
        kept = Term(Flatten(PersonTable("t", most)), (RootTable("people"),))
        assert number_of(db, kept) == 2 * most
    db.add_root("rows", tmp_path)
    values = Term(Select((("x", Column(owned)),)), (RootTable("rows"),))
    assert bag(db.rows(values).rows) == bag([(n,) for n in range(1 + several)] * 100)


@pytest.mark.parametrize("names", [["a", "A"], ["a", "a"], ["b", "a", "B"]])
def test_columns_that_differ_in_case_only_are_refused(db: DuckDB, tmp_path: Path, names: list[str]) -> None:
    table = pa.Table.from_arrays([pa.array([number]) for number in range(len(names))], names=names)
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(BadData, match="case"):
        db.add_root("t", tmp_path / "x.parquet")


def test_nested_columns_do_not_confuse_the_names(db: DuckDB, tmp_path: Path) -> None:
    nested = [{"a": {"b": 1, "a_1": [1, 2]}, "c": 1}]
    path = write(tmp_path / "x.parquet", s=nested, a=[5], z=[[1]])
    assert db.add_root("t", path, schema={"a": Type.INT64}) == Schema.of({"a": Type.INT64})
    assert db.rows(RootTable("t")).rows == ((5,),)


# ── what cannot be read ──────────────────────────────────────────────────────────────


def not_text(path: Path) -> None:
    table = pa.table({"a": ["fine"] * 5000 + ["XX secret"]})
    pq.write_table(table, path, use_dictionary=False, compression="none", write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"XX secret", b"\xff\xfe secret"))


def too_late(path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([0, 2**62], pa.timestamp("ms"))}), path)


def cut_off(path: Path) -> None:
    pq.write_table(pa.table({"a": list(range(10_000))}), path, use_dictionary=False, compression="none")
    content = path.read_bytes()
    footer = struct.unpack("<I", content[-8:-4])[0] + 8
    path.write_bytes(content[:4] + bytes(2000) + content[2004:-footer] + content[-footer:])


def torn(path: Path) -> None:
    pq.write_table(pa.table({"a": list(range(10_000))}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[30:400] = bytes(370)
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [not_text, too_late, cut_off, torn])
def test_what_cannot_be_read_is_refused_when_it_is_protected(db: DuckDB, tmp_path: Path, damage: Any) -> None:
    damage(tmp_path / "x.parquet")
    with pytest.raises(BadData, match="owner's log") as refusal:
        db.add_root("t", tmp_path / "x.parquet")
    assert "secret" not in str(refusal.value)
    assert db.add_root("t", write(tmp_path / "y.parquet", a=["é"])).names() == ("a",)


def test_a_column_that_is_left_out_is_not_read(db: DuckDB, tmp_path: Path) -> None:
    times = pa.array([0, 2**62], pa.timestamp("ms"))
    path = write(tmp_path / "x.parquet", a=[1, 2], b=times)
    db.add_root("t", path, schema={"a": Type.INT64})
    assert number_of(db, RootTable("t")) == 2


def test_what_is_remembered_of_a_file_is_not_believed_of_its_successor(db: DuckDB, tmp_path: Path) -> None:
    """Which rows are beyond a person's first was found once for a path: of other data, all rows stayed."""
    first = Term(Flatten(PersonTable("visits", 1)), (RootTable("p"),))
    path = tmp_path / "visits.parquet"
    for name, persons in (("p", [1, 2, 3]), ("q", [1, 1, 1])):
        db.add_persons(name, {"visits": write(tmp_path / "new", person=persons).rename(path)}, unit="person")
        plan = Term(first.transformation, (RootTable(name),))
        assert number_of(db, plan) == len(set(persons))
    with pytest.raises(DataChanged):
        number_of(db, first)


def test_a_file_that_is_replaced_while_it_is_measured_is_noticed(
    db: DuckDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, other = write(tmp_path / "a.parquet", a=[1, 2]), write(tmp_path / "b.parquet", a=[1, 2, 3])
    db.add_root("p", file)

    def replacing(*given: Any) -> Any:
        other.rename(file)
        return lower(*given)

    monkeypatch.setattr("fpinq.engines.duckdb.engine.lower", replacing)
    with pytest.raises(DataChanged):
        number_of(db, RootTable("p"))


def test_a_replaced_file_troubles_no_other_data(db: DuckDB, tmp_path: Path) -> None:
    first = write(tmp_path / "first.parquet", a=[1, 2])
    db.add_root("first", first)
    db.add_root("memory", [{"a": 1}])
    write(tmp_path / "first.parquet", other=["x"])
    db.add_root("second", write(tmp_path / "second.parquet", a=[1, 2, 3]))
    first.unlink()
    db.add_root("third", write(tmp_path / "third.parquet", a=[1]))
    assert [number_of(db, RootTable(name)) for name in ("second", "third", "memory")] == [3, 1, 1]
    with pytest.raises(DataChanged):
        number_of(db, RootTable("first"))


def test_the_new_contents_of_a_path_are_read_at_once(db: DuckDB, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    for number in range(5):  # of the same size, within a second
        db.add_root(str(number), write(path, a=[number] * 3))
        assert bag(db.rows(RootTable(str(number))).rows) == bag([(number,)] * 3)


def test_an_engine_leaves_the_owners_files_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", a=[1])
    before = (path.read_bytes(), sorted(os.listdir(tmp_path)))
    engine = DuckDB()
    engine.add_root("t", path)
    engine.close()
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == before


# ── lengths ──────────────────────────────────────────────────────────────────────────

TEXTS = ["", "a", "abc", "abcd", "äöü", "äöüß", "𝒳𝒳𝒳", "𝒳𝒳𝒳𝒳", None]


@pytest.mark.parametrize("kind", ["parquet", "rows", "arrow", "category"])
def test_a_text_longer_than_its_column_allows_is_null(db: DuckDB, tmp_path: Path, kind: str) -> None:
    table = pa.table({"s": TEXTS, "t": TEXTS})
    pq.write_table(table, tmp_path / "x.parquet")
    source: Any = {
        "parquet": tmp_path / "x.parquet",
        "rows": table.to_pylist(),
        "arrow": table,
        "category": table.to_pandas().astype("category"),
    }[kind]
    db.add_root("t", source, lengths={"s": 3})
    expected = [(s if s is None or len(s) <= 3 else None, s) for s in TEXTS]
    assert bag(db.rows(RootTable("t")).rows) == bag(expected)
    db.add_persons("people", {"p": source}, unit="t", lengths={"p": {"s": 3}})
    kept = Term(Flatten(PersonTable("p", 1)), (RootTable("people"),))
    assert bag(db.rows(kept).rows) == bag(row for row in expected if row[1] is not None)


def test_a_text_has_at_most_65536_characters(db: DuckDB, tmp_path: Path) -> None:
    texts = ["ä" * 65_536, "ä" * 65_537, "x" * 65_537]
    db.add_root("t", write(tmp_path / "x.parquet", s=texts))
    assert bag(db.rows(RootTable("t")).rows) == bag([(texts[0],), (None,), (None,)])


# ── rows ─────────────────────────────────────────────────────────────────────────────


def test_a_null_in_a_row_is_a_null_and_not_a_zero(db: DuckDB) -> None:
    values = {"i": 5, "f": 1.5, "s": "x", "b": True, "t": datetime(2024, 1, 1)}
    rows = [{name: (value if n % 3 else None) for name, value in values.items()} for n in range(9)]
    db.add_root("t", rows)
    assert bag(db.rows(RootTable("t")).rows) == bag(tuple(row.values()) for row in rows)


NANOS = [0, 499, 500, 999, -1, -499, -500, -1000, -1500, 10**18 + 1501, 2**63 - 2, -(2**63) + 2, None]
MICROS = [None if n is None else datetime(1970, 1, 1) + timedelta(microseconds=n // 1000) for n in NANOS]


def in_nanoseconds(zone: str | None) -> Any:
    return pa.table({"t": pa.array(NANOS, pa.timestamp("ns", zone))})


def file_of(table: Any, folder: Path) -> Path:
    pq.write_table(table, folder / "x.parquet")
    return folder / "x.parquet"


def objects_of(table: Any) -> Any:
    return pd.DataFrame({"t": pd.Series(list(table["t"].to_numpy()), dtype=object)})


IN_MEMORY: dict[str, Callable[[Any], Any]] = {
    "arrow": lambda table: table,
    "polars": pl.from_arrow,
    "pandas": lambda table: table.to_pandas(),
    "pandas of arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "objects": objects_of,
    "dicts": lambda table: [{"t": value} for value in table["t"].to_numpy()],
}


CUT = {"arrow", "polars", "pandas of arrow", "file"}


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("kind", [*IN_MEMORY, "file"])
def test_nanoseconds_are_the_whole_microseconds_before_them(
    db: DuckDB, tmp_path: Path, kind: str, zone: str | None
) -> None:
    if zone and kind in CUT and duckdb.__version__ < "2":
        pytest.skip("DuckDB 1 cuts them towards 1970 while it reads: docs/decisions/0066")
    table = in_nanoseconds(zone)
    db.add_root("t", file_of(table, tmp_path) if kind == "file" else IN_MEMORY[kind](table))
    assert bag(db.rows(RootTable("t")).rows) == bag((micros,) for micros in MICROS)


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
@pytest.mark.parametrize("kind", sorted(IN_MEMORY))
def test_nanoseconds_are_the_same_to_the_reference(kind: str, zone: str | None) -> None:
    table = relation(IN_MEMORY[kind](in_nanoseconds(zone)))
    assert bag(table.rows) == bag((micros,) for micros in MICROS)


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_nanoseconds_are_the_same_to_spark(zone: str | None) -> None:
    found = _micros(in_nanoseconds(zone)["t"]).to_pylist()
    assert found == [None if n is None else n // 1000 for n in NANOS]
