"""Spark reads text as it is defined, whatever is in the file, and no line changes another.

A record is a line and nothing else, so one file with all the lines there are
says as much as a file for each of them: one registration for a dialect.
"""

import gzip
import random
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engines.texts import CELLS, DATES, DELIMITERS, ODD_LINES, as_file, cells, odd_lines, tables, written
from fpinq.engines import text
from fpinq.engines.in_memory import within_lengths
from fpinq.engines.reference import Relation
from fpinq.engines.spark import Spark
from fpinq.engines.text import Dialect
from fpinq.model.errors import BadData, DataChanged
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import RootTable

ALL = {f"c{i}": type_ for i, type_ in enumerate(text.TYPES)}
DIALECTS = [*product(DELIMITERS, '"'), *product(DELIMITERS[::4], ["'", ""])]
_numbers = count()


def drawn(strategy: Any, number: int) -> list[Any]:
    """That many values."""
    found: list[Any] = []

    @settings(
        max_examples=number, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def stored(files: dict[str, bytes], folder: Path) -> list[Path]:
    where = folder / f"{next(_numbers)}"
    where.mkdir()
    for name, data in files.items():
        (where / name).write_bytes(data)
    return [where / name for name in files]


def outcome(act: Any) -> Any:
    try:
        schema, rows = act()
    except BadData as error:
        return str(error).rpartition("/")[2]
    return schema, sorted(map(repr, rows))


def read(spark: Any, source: Any, schema: Any, dialect: Dialect | None = None) -> Any:
    """The schema and the rows that Spark finds, or what it refuses them with."""

    def act() -> Any:
        name = f"text{next(_numbers)}"
        shape = spark.add_root(name, source, schema, dialect=dialect)
        return shape, spark.rows(RootTable(name)).rows

    return outcome(act)


def defined(files: dict[str, bytes], schema: Any, dialect: Dialect | None = None) -> Any:
    """The same, by the definition."""

    def act() -> Any:
        types, rows = text.read(files, schema, dialect)
        return Schema.of(types), within_lengths(Relation(Schema.of(types), tuple(rows)), {}).rows

    return outcome(act)


@pytest.fixture(scope="session")
def small(spark: Any) -> Any:
    """A Spark that cuts files into pieces of a few bytes."""
    conf = {"spark.sql.files.maxPartitionBytes": "997", "spark.sql.files.openCostInBytes": "1"}
    engine = Spark(session=spark._sessions[0], conf=conf)
    yield engine
    engine.close()


def test_every_cell_and_every_odd_line_is_read_as_defined_in_every_dialect(
    spark: Any, tmp_path: Path
) -> None:
    random_lines = drawn(st.lists(cells, min_size=6, max_size=6) | odd_lines, 300)
    compared = 0
    for number, (delimiter, quote) in enumerate(DIALECTS):
        dialect = Dialect(delimiter, quote, dates=DATES[number % len(DATES)])
        lines = [written([c] * 6, dialect, [q] * 6) for c in CELLS for q in (False, True)]
        for line in random_lines:
            record = isinstance(line, list)
            lines.append(written(line, dialect, random.choices([True, False], k=6)) if record else line)
        lines += ODD_LINES
        random.shuffle(lines)
        files = {"x.csv": as_file(list(ALL), lines, dialect, [b"\n", b"\r\n"][number % 2])}
        assert read(spark, stored(files, tmp_path), ALL, dialect) == defined(files, ALL, dialect), dialect
        compared += len(lines)
    print(f"\ntext on Spark: {compared} lines in {len(DIALECTS)} dialects read as defined")


def test_random_files_are_read_as_defined(spark: Any, tmp_path: Path) -> None:
    for number, (schema, dialect, bodies) in enumerate(drawn(tables(), 30)):
        files = {f"{i}.{['csv', 'tsv'][i % 2]}": as_file(*body, dialect) for i, body in enumerate(bodies)}
        stated = schema if number % 2 or not dialect.header else None
        assert read(spark, stored(files, tmp_path), stated, dialect) == defined(files, stated, dialect)


def test_a_line_more_leaves_all_other_records_as_they_were(spark: Any, tmp_path: Path) -> None:
    schema = {"a": Type.INT64, "s": Type.STRING, "d": Type.DATE}
    body = [b"%d,x%d,2020-01-%02d" % (i, i, i) for i in range(1, 29)]
    was = read(spark, stored({"x.csv": as_file(list(schema), body, Dialect())}, tmp_path), schema)
    lines = [b"12/25/2020,1,12/25/2020", b'100,"x"y",', b'1,"un', b"a,s,d", b"one,two,three", b"x" * 2**20]
    lines += [b"x" * (2**20 + 1), b"1," + b"x" * 70_000 + b",2020-01-01", b'"' * 3, b"\xff,\xff,\xff"]
    for line in [*lines, *drawn(odd_lines, 8)]:
        place = random.randrange(len(body))
        files = {"x.csv": as_file(list(schema), [*body[:place], line, *body[place:]], Dialect())}
        now = read(spark, stored(files, tmp_path), schema)
        assert now == defined(files, schema)
        left = list(now[1])
        for record in was[1]:
            left.remove(record)
        assert len(left) <= 1


def test_records_like_the_header_are_counted(spark: Any, tmp_path: Path) -> None:
    files = {
        "1.csv": b"a,b\r\n1,2\na,b\na,b\n",
        "2.csv": b"\xef\xbb\xbfb,a\n2,1\nb,a\na,b",
        "3.csv": b"a,b",
        "4.csv": b'"a",b\n"a",b\n',
        "5.tsv": b"a\tb\na\tb\na,b\n",
    }
    schema = {"a": Type.STRING, "b": Type.STRING}
    assert read(spark, stored(files, tmp_path), schema) == defined(files, schema)


def test_lines_of_which_none_is_a_record_are_no_empty_table(spark: Any, tmp_path: Path) -> None:
    schema = {"a": Type.STRING, "b": Type.STRING}
    lines = {b"a,b\n1,2,\n": True, b"a,b\n1,\xe9\n": True, b"a,b\n\r\n\n": False, b"a,b\n": False}
    for data, refused in lines.items():
        (path,) = stored({"x.csv": data}, tmp_path)
        expected = defined({"x.csv": data}, schema)
        assert isinstance(expected, str) is refused
        for source in (path, f"file://{path}"):
            assert read(spark, source, schema) == expected


def test_a_file_cut_into_pieces_has_the_same_lines(small: Any, tmp_path: Path) -> None:
    lines = [b'%d,"x, ""%s"""' % (i, b"y" * (i % 70)) for i in range(300)] + [b"", b"\r", b"\xff"] * 20
    random.shuffle(lines)
    for end in (b"\n", b"\r\n"):
        files = {"x.csv": as_file(["a", "b"], lines, Dialect(), end)}
        assert read(small, stored(files, tmp_path), None) == defined(files, None)


def test_compressed_text_is_read_or_refused(spark: Any, tmp_path: Path) -> None:
    plain = b"\xef\xbb\xbfa\tb\n1\t2\n\xff\n3\t4"
    whole = gzip.compress(plain[:9]) + gzip.compress(plain[9:])
    for name in ("x.tsv.gz", "X.TSV.GZ"):
        assert read(spark, stored({name: whole}, tmp_path), None) == defined({"x.tsv": plain}, None)
    for name, data in {"cut.csv.gz": whole[:-9], "none.csv.gz": b"a\n1\n", "x.csv.zst": b"a\n1\n"}.items():
        with pytest.raises(BadData):
            spark.add_root(f"text{next(_numbers)}", stored({name: data}, tmp_path))


def test_text_of_a_url_is_read_as_defined_and_pinned(spark: Any, tmp_path: Path) -> None:
    files = {"1.csv": b"\xef\xbb\xbfa,b\r\n1,2\na,b\n", "[2].csv": b"b,a\n2,1\n\xff,\n"}
    paths = stored(files, tmp_path)
    for schema in (None, {"b": Type.INT64}):
        assert read(spark, [f"file://{path}" for path in paths], schema) == defined(files, schema)
    url = f"file://{paths[0].parent}"
    before = spark.fingerprint(url)
    assert before.records == 6  # lines
    name = f"text{next(_numbers)}"
    spark.add_root(name, url)
    paths[0].write_bytes(b"a,b\n1,2\n3,4\n")
    with pytest.raises(DataChanged):
        spark.check_unchanged(RootTable(name))
    assert spark.fingerprint(url) != before
    for wrong in (b"\n1,2\n", b"\xff\n", b"x" * (2**20 + 9) + b"\na,b\n"):
        (path,) = stored({"x.csv": wrong}, tmp_path)
        with pytest.raises(BadData, match="does not name columns"):
            spark.add_root(f"text{next(_numbers)}", f"file://{path}")


def test_a_line_that_spark_does_not_find_is_noticed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = stored({"x.csv": b"a\n1\n2\n"}, tmp_path)
    monkeypatch.setattr("fpinq.engines.spark.lines._not_blank", lambda block: 4)
    with pytest.raises(BadData, match="as many lines"):
        spark.add_root("t", path)
