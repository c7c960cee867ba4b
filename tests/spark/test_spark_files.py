"""What is pinned is what is read: files of every name, folders, links, urls, columns by name."""

import os
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fpinq.engines import owner
from fpinq.engines.spark import files
from fpinq.engines.sql.statistics import lower
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadData, DataChanged, EngineError
from fpinq.model.expressions import Column, Type
from fpinq.model.plans import RootTable
from fpinq.model.statistics import Records, Totals

_number = count()


def fresh() -> str:
    return f"files{next(_number)}"


NAMES = [
    "[ab].parquet", "{a,b}.parquet", "?.parquet", "*.parquet", "a,b.parquet", "a\\b.parquet", "\\[a].parquet",
    "a=b.parquet", "a:b.parquet", ":.parquet", "a b.parquet", "a%20b.parquet", "%.parquet", "a#b.parquet",
    "a?b#c.parquet", "a+b.parquet", "é.parquet", "a\nb.parquet", "'\".parquet", "${a}.parquet", "~.parquet",
]  # fmt: skip


def write(path: Path, values: list[Any], **columns: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": values, **columns}), path)
    return path


def read(spark: Any, source: Any, schema: dict[str, Type] | None = None) -> list[Any]:
    name = fresh()
    spark.add_root(name, source, schema)
    return sorted(spark.rows(RootTable(name)).rows)


# ── names ────────────────────────────────────────────────────────────────────────────


def test_a_file_of_any_name_is_that_file_and_no_other(spark: Any, tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        write(tmp_path / name, [number])
    for other in ("a.parquet", "b.parquet", "x.parquet", "[a].parquet"):
        write(tmp_path / other, [-1])
    for name in NAMES[:4]:
        assert read(spark, tmp_path / name) == [(NAMES.index(name),)], name
    assert read(spark, [tmp_path / name for name in NAMES]) == [(n,) for n in range(len(NAMES))]


def test_a_file_that_spark_would_leave_out_is_refused(spark: Any, tmp_path: Path) -> None:
    for name in ("_a.parquet", ".a.parquet"):
        with pytest.raises(BadData, match=r"begin with \. or _|cannot be read"):
            spark.add_root(fresh(), write(tmp_path / name, [1]))
    with pytest.raises(BadData, match=r"begin with \. or _"):
        spark.add_root(fresh(), [write(tmp_path / "_b.parquet", [1]), write(tmp_path / "b.parquet", [1])])


def test_overlapping_paths_and_links_count_a_record_once(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "real" / "t"
    path = write(folder / "a.parquet", [1])
    os.symlink(folder, tmp_path / "link")
    os.symlink(path, tmp_path / "file.parquet")
    overlapping = [folder, path, str(folder / "*"), tmp_path / "link", tmp_path / "file.parquet"]
    for source in (overlapping, tmp_path / "link", tmp_path / "file.parquet", tmp_path, f"{tmp_path}/*"):
        assert read(spark, source) == [(1,)], source


def test_folders_make_no_columns_and_one_more_changes_no_other(spark: Any, tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path / f"c={number}" / "x.parquet", [number])
    before = read(spark, tmp_path)
    assert before == [(1,), (2,)]
    for number, folder in enumerate(("c=z", "d=1", "c=3/e=4", "f", "a=9")):
        write(tmp_path / folder / "x.parquet", [3 + number])
        assert read(spark, tmp_path) == [(n,) for n in range(1, 4 + number)], folder


def test_a_checksum_file_that_nobody_pinned_is_not_read(spark: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [1])
    name = fresh()
    spark.add_root(name, path)
    (tmp_path / ".a.parquet.crc").write_bytes(b"crc\0" + b"junk" * 9)
    assert spark.rows(RootTable(name)).rows == ((1,),)
    assert read(spark, path) == [(1,)]


def test_a_file_that_is_replaced_while_it_is_measured_is_noticed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = write(tmp_path / "a.parquet", [1, 2]), write(tmp_path / "b.parquet", [1, 2])
    name = fresh()
    spark.add_root(name, path)

    def replacing(*given: Any) -> Any:
        os.replace(other, path)
        return lower(*given)

    monkeypatch.setattr("fpinq.engines.spark.engine.lower", replacing)
    with pytest.raises((DataChanged, EngineError)):
        spark.measure(RootTable(name), None, [Records()])


def test_what_is_added_is_what_was_hashed(spark: Any, tmp_path: Path) -> None:
    url, name = f"file://{write(tmp_path / 'a.parquet', [1])}", fresh()
    spark.fingerprint(url)
    write(tmp_path / "a.parquet", [2])
    with pytest.raises(BadData, match="changed while it was protected"):
        spark.add_root(name, url)
    spark.fingerprint(url)
    spark.add_root(name, url)


def test_a_file_added_later_is_no_part_of_what_was_protected(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1])
    name = fresh()
    spark.add_root(name, tmp_path)
    write(tmp_path / "b.parquet", [2])
    assert spark.measure(RootTable(name), None, [Records()]) == [{0: 1}]
    times = os.stat(tmp_path / "a.parquet")
    write(tmp_path / "a.parquet", [2])
    os.utime(tmp_path / "a.parquet", ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(DataChanged):
        spark.measure(RootTable(name), None, [Records()])


# ── columns ──────────────────────────────────────────────────────────────────────────


def test_columns_are_found_by_their_names_in_each_file(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1], A=[10], b=["x"])
    pq.write_table(pa.table({"b": ["y"], "A": [20], "a": [2]}), tmp_path / "b.parquet")
    assert sorted(read(spark, tmp_path, {"A": Type.INT64, "a": Type.INT64})) == [(10, 1), (20, 2)]


@pytest.mark.parametrize(
    "other",
    [
        {"a": [2], "b": ["y"], "c": [1]},
        {"a": [2]},
        {"a": [2], "B": ["y"]},
        {"a": [2.0], "b": ["y"]},
        {"a": pa.array([2], pa.int32()), "b": ["y"]},
        {"a": [2], "b": [None]},
        {"a": [2], "b": [b"y"]},
        {"a": pa.array([2], pa.uint64()), "b": ["y"]},
    ],
)
def test_files_with_other_columns_or_types_are_refused(spark: Any, tmp_path: Path, other: Any) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table(other), tmp_path / "b.parquet")
    for source in (tmp_path, f"file://{tmp_path}"):
        for schema in (None, {"a": Type.INT64}):
            with pytest.raises(BadData, match="same columns and types"):
                spark.add_root(fresh(), source, schema)


def test_names_that_spark_gives_a_meaning_are_the_datas(spark: Any, tmp_path: Path) -> None:
    names = [
        "_metadata", "_corrupt_record", "a.b", "a`b", "`", "${x}", "a", "A", "c0", "c1", "u", "value", "x0",
        " ", "\n", "'", '"', "\\", "file_path", "_metadata.file_path", "*", "é", "i", "file_row_number",
    ]  # fmt: skip
    row = tuple(range(len(names)))
    pq.write_table(pa.table({name: [i] for i, name in enumerate(names)}), tmp_path / "a.parquet")
    name = fresh()
    assert spark.add_root(name, tmp_path).names() == tuple(names)
    assert spark.rows(RootTable(name)).rows == (row,)
    query = Totals((Clamp(Column("_metadata.file_path"), 0, 100),))
    assert spark.measure(RootTable(name), None, [query]) == [{0: names.index("_metadata.file_path")}]
    assert read(spark, [dict(zip(names, row, strict=True))]) == [row]


# ── what is found is compared ────────────────────────────────────────────────────────


def test_other_files_or_another_number_of_records_than_found_are_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.parquet", [1])
    with pytest.raises(BadData, match="exactly the files"):
        files.check_files([f"file:{path}"] * 2, [f"file:{path}"])
    files.check_files(["file:///a%20b%2520", "hdfs://h:1/%5Ba%5D"], ["hdfs://h:1/[a]", "file:/a b%20"])
    monkeypatch.setattr(files, "check_footers", lambda found: 2)
    with pytest.raises(BadData, match="as many records"):
        spark.add_root(fresh(), path)


def test_a_column_of_values_that_cannot_be_read_is_refused_at_once(spark: Any, tmp_path: Path) -> None:
    wrong = pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.py_buffer(np.array([0, 1, 9], np.int32).tobytes()), pa.py_buffer(b"\xffsecret 7")],
    )
    pq.write_table(pa.table({"s": wrong, "a": [1, 2]}), tmp_path / "text.parquet")
    far = pa.array([0, 2**62], pa.timestamp("ms"))
    pq.write_table(pa.table({"t": far, "a": [1, 2]}), tmp_path / "far.parquet")
    session = spark._sessions[0]
    for source in (
        tmp_path / "text.parquet",
        pq.read_table(tmp_path / "text.parquet"),
        session.read.parquet(f"file:{tmp_path}/text.parquet"),
        tmp_path / "far.parquet",
        session.read.parquet(f"file:{tmp_path}/far.parquet"),
        session.sql("SELECT CAST(raise_error('secret row') AS BIGINT) AS x FROM range(3)"),
    ):
        with pytest.raises(BadData) as raised:
            spark.add_root(fresh(), source)
        assert "secret" not in str(raised.value)
    for name in ("text", "far"):
        assert read(spark, tmp_path / f"{name}.parquet", {"a": Type.INT64}) == [(1,), (2,)]


@pytest.mark.parametrize("where", ["header", "first", "middle", "last", "footer", "end"])
def test_a_damaged_file_is_refused_at_once_or_read_whole(spark: Any, tmp_path: Path, where: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"a": list(range(5000)), "s": [str(i) for i in range(5000)]}),
        path, row_group_size=1000, compression="none", write_page_checksum=True,
    )  # fmt: skip
    content = bytearray(path.read_bytes())
    size = len(content)
    at = {
        "header": 1,
        "first": 40,
        "middle": size // 2,
        "last": size - 2000,
        "footer": size - 60,
        "end": size,
    }
    if where == "end":
        content = content[: size // 2] + content[-2500:]
    else:
        content[at[where]] ^= 0xFF
    path.write_bytes(content)
    name = fresh()
    try:
        spark.add_root(name, path)
    except BadData:
        return
    assert len(spark.rows(RootTable(name)).rows) == 5000


def test_moments_and_days_beyond_the_years_are_null(spark: Any, tmp_path: Path) -> None:
    ends = [2**63 - 1, -(2**63), None, 0, 253_402_300_799_999_999, 253_402_300_800_000_000]
    columns = {
        "us": pa.array(ends, pa.timestamp("us")),
        "utc": pa.array(ends, pa.timestamp("us", "UTC")),
        "d": pa.array([2**31 - 1, -(2**31), None, 0, 2_932_896, 2_932_897], pa.int32()).cast(pa.date32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999)
    expected = [(None, None, None)] * 4 + [(datetime(1970, 1, 1),) * 2 + (datetime(1970, 1, 1).date(),)]
    expected += [(last, last, last.date())]
    for source in (tmp_path, pa.table(columns)):
        name = fresh()
        spark.add_root(name, source)
        assert sorted(map(str, spark.rows(RootTable(name)).rows)) == sorted(map(str, expected))
    name = fresh()
    spark.add_root(name, pa.table({"s": pa.array([2**62, 0, None], pa.timestamp("s"))}))
    assert sorted(map(str, spark.rows(RootTable(name)).rows)) == sorted(
        map(str, [(None,), (None,), (datetime(1970, 1, 1),)])
    )


# ── lengths ──────────────────────────────────────────────────────────────────────────


def test_a_text_longer_than_its_columns_public_length_is_null(spark: Any, tmp_path: Path) -> None:
    texts = ["", "é" * 3, "\U0001f600" * 4, "abcd", "x" * 65_536, "é" * 65_536, "x" * 65_537, None]
    table = pa.table({"s": texts, "t": texts, "p": [1] * len(texts)})
    pq.write_table(table, tmp_path / "a.parquet")
    session = spark._sessions[0]
    kept = {(s, t) for s, t in zip(
        [s if s is not None and len(s) <= 3 else None for s in texts],
        [t if t is not None and len(t) <= 65_536 else None for t in texts], strict=True)}  # fmt: skip
    for source in (tmp_path, table, table.to_pylist(), session.read.parquet(f"file:{tmp_path}")):
        name = fresh()
        spark.add_root(name, source, {"s": Type.STRING, "t": Type.STRING}, lengths={"s": 3})
        assert set(spark.rows(RootTable(name)).rows) == kept
    name = fresh()
    spark.add_persons(name, {"x": table}, "p", lengths={"x": {"t": 3}})
    (source,) = spark._roots[name].tables.values()
    found = {tuple(row) for row in session.sql(f"SELECT c1, c0 FROM {source.relation}").collect()}
    assert found == kept


# ── urls ─────────────────────────────────────────────────────────────────────────────


def test_files_of_a_url_are_found_once_and_pinned(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "t=1"
    path = write(folder / "a[1].parquet", [1])
    write(folder / "sub" / "b.parquet", [2])
    (folder / "_SUCCESS").touch()
    url = f"file://{folder}"
    both = [(1,), (2,)]
    for source in (url, f"{url}/*", [url, f"{url}/*", f"{url}/a[1].parquet", folder], f"file://{tmp_path}/*"):
        assert read(spark, source) == both, source
    assert read(spark, f"{url}/a[1].parquet") == [(1,)]
    name = fresh()
    spark.add_root(name, url)
    write(folder / "c.parquet", [3])
    assert spark.measure(RootTable(name), None, [Records()]) == [{0: 2}]
    write(path, [5, 6])
    with pytest.raises(DataChanged):
        spark.measure(RootTable(name), None, [Records()])
    for missing in (f"{url}/none.parquet", f"{url}/none*", "nowhere://x/y.parquet"):
        with pytest.raises(BadData):
            spark.add_root(fresh(), missing)


def test_a_csv_file_elsewhere_without_a_record_is_named_to_the_owner(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of this machine is: among others it is left out, and only the owner is told."""
    told: list[str] = []
    monkeypatch.setattr(owner, "note", told.append)
    texts = {"good": "a,b\n1,2\n", "ragged": "a,b\n1\n2,3,4\n", "empty": "a,b\n", "header": "a,b\na,b\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    schema = {"a": Type.STRING, "b": Type.STRING}
    here, there = fresh(), fresh()
    spark.add_root(here, tmp_path / "*.csv", schema)
    of_this_machine = [words.replace(str(tmp_path), "") for words in told]
    told.clear()
    spark.add_root(there, f"file://{tmp_path}/*.csv", schema)
    assert len(told) == 1
    assert "ragged.csv" in told[0]
    assert [words.replace(f"file:{tmp_path}", "") for words in told] == of_this_machine
    assert spark.measure(RootTable(there), None, [Records()]) == [{0: 2}]
    for name in ("good", "header"):
        (tmp_path / f"{name}.csv").unlink()
    with pytest.raises(BadData, match="ragged"):
        spark.add_root(fresh(), f"file://{tmp_path}/*.csv", schema)
