"""Engines read text as the definition does, whatever is in the file, and no line changes another."""

import gzip
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engines.texts import CELLS, DELIMITERS, ODD_LINES, as_file, odd_lines, tables, written
from fpinq.engines import text
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.in_memory import within_lengths
from fpinq.engines.text import Dialect
from fpinq.model.errors import BadData
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import RootTable
from fpinq.runtime import ReferenceEngine

_numbers = count()
a_file = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ALL = {f"c{i}": type_ for i, type_ in enumerate(text.TYPES)}
TWO = ["c0", "c1"]


class Readers:
    """The engines that read text, each with a door for its rows."""

    def __init__(self) -> None:
        self.duckdb, self.reference = DuckDB(), ReferenceEngine()

    def read(
        self, name: str, files: dict[str, bytes], folder: Path, schema: Any, dialect: Dialect | None = None
    ) -> list[Any]:
        """What each engine makes of files: its schema and its sorted rows, or what it refuses them with."""
        paths = []
        where = folder / f"{next(_numbers)}"
        where.mkdir()
        for file, data in files.items():
            (where / file).write_bytes(data)
            paths.append(str(where / file))
        return [
            outcome(lambda: _read(self.duckdb, name, paths, schema, dialect)),
            outcome(lambda: _read(self.reference, name, paths, schema, dialect)),
        ]


def _read(engine: Any, name: str, paths: list[str], schema: Any, dialect: Dialect | None) -> Any:
    shape = engine.add_root(name, paths, schema, dialect=dialect)
    return shape, rows_of(engine.rows(RootTable(name)))


def rows_of(table: Any) -> list[str]:
    return sorted(map(repr, table.rows))


def outcome(act: Any) -> Any:
    try:
        return act()
    except BadData as error:
        return str(error).rpartition("/")[2]


def defined(files: dict[str, bytes], schema: Any, dialect: Dialect | None = None) -> Any:
    """The same, by the definition."""

    def act() -> Any:
        types, rows = text.read(files, schema, dialect)
        from fpinq.engines.reference import Relation

        table = within_lengths(Relation(Schema.of(types), tuple(rows)), {})
        return table.schema, rows_of(table)

    return outcome(act)


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    made = Readers()
    yield made
    made.duckdb.close()


@a_file
@given(tables(), st.booleans(), st.sampled_from([b"\n", b"\r\n"]))
def test_engines_read_what_the_definition_reads(
    readers: Readers, tmp_path: Path, table: Any, stated: bool, end: bytes
) -> None:
    schema, dialect, files = table
    written = {f"{i}.csv": as_file(*file, dialect, end) for i, file in enumerate(files)}
    asked = schema if stated else None
    expected = defined(written, asked, dialect)
    for found in readers.read(f"t{next(_numbers)}", written, tmp_path, asked, dialect):
        assert found == expected


@pytest.mark.parametrize("quote", ['"', "'", ""])
@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_every_cell_has_the_defined_value_in_every_column(
    readers: Readers, tmp_path: Path, delimiter: str, quote: str
) -> None:
    dialect = Dialect(delimiter, quote)
    lines = [written([c] * len(ALL), dialect, [q] * len(ALL)) for c in CELLS for q in (False, True)]
    lines += ODD_LINES
    files = {"x.csv": as_file(list(ALL), lines, dialect)}
    for found in readers.read(f"t{next(_numbers)}", files, tmp_path, ALL, dialect):
        assert found == defined(files, ALL, dialect)


@a_file
@given(tables(), odd_lines, st.data())
@example(({"c0": Type.DATE}, Dialect(), [(["c0"], [b"2020-01-02"] * 9)]), b"12/25/2020", None)
@example(
    ({"c0": Type.INT64, "c1": Type.STRING}, Dialect(), [(["c0", "c1"], [b"1,x"] * 9)]), b'100,"x"y"', None
)
@example(({"c0": Type.INT64}, Dialect(), [(["c0"], [b"1"] * 9)]), b"one", None)
@example(({"c0": Type.INT64}, Dialect(), [(["c0"], [b"1"] * 9)]), b"x" * (text.MAX_LINE + 1), None)
def test_a_line_more_leaves_all_other_records_as_they_were(
    readers: Readers, tmp_path: Path, table: Any, line: bytes, data: Any
) -> None:
    schema, dialect, files = table
    before = {f"{i}.csv": as_file(*file, dialect) for i, file in enumerate(files)}
    which = data.draw(st.integers(0, len(files) - 1)) if data else 0
    lines = files[which][1]
    place = data.draw(st.integers(0, len(lines))) if data else 1
    names = files[which][0]
    more = [*lines[:place], line, *lines[place:]]
    after = {**before, f"{which}.csv": as_file(names, more, dialect)}
    name = next(_numbers)
    for was, now in zip(
        readers.read(f"a{name}", before, tmp_path, schema, dialect),
        readers.read(f"b{name}", after, tmp_path, schema, dialect),
        strict=True,
    ):
        if isinstance(was, str) or isinstance(now, str):
            # Refused, for all values of a column at once, or for all lines: see docs/decisions/0066.
            refused = was if isinstance(was, str) else now
            assert "none of its values is" in refused or "no line is a record" in refused
            continue
        left = list(now[1])
        for record in was[1]:
            left.remove(record)
        assert now[0] == was[0]
        assert len(left) <= 1


def test_files_with_their_columns_in_another_order_are_read_by_name(readers: Readers, tmp_path: Path) -> None:
    files = {"1.csv": b"a,b\n1,2\n1,2\n", "2.csv": b"b,a\n2,1\n"}
    for schema in ({"a": Type.INT64, "b": Type.INT64}, None):
        for found in readers.read(f"t{next(_numbers)}", files, tmp_path, schema):
            assert found == (Schema.of({"a": Type.INT64, "b": Type.INT64}), ["(1, 2)"] * 3)


def test_many_lines_in_many_blocks_are_all_there(readers: Readers, tmp_path: Path) -> None:
    rows = [f'{i},"n{i % 7}"' if i % 3 else f"{i},n{i % 7}" for i in range(200_000)]
    path = tmp_path / "x.csv"
    path.write_text("id,name\r\n" + "\r\n".join(rows))
    shape = readers.duckdb.add_root(f"t{next(_numbers)}", path)
    assert shape == Schema.of({"id": Type.INT64, "name": Type.STRING})
    found = readers.duckdb.rows(RootTable(f"t{next(_numbers) - 1}")).rows
    assert sorted(found) == [(i, f"n{i % 7}") for i in range(200_000)]


def test_a_late_cell_decides_the_type_as_an_early_one_does(readers: Readers, tmp_path: Path) -> None:
    for cell, type_ in (("1.5", Type.FLOAT64), ("x", Type.STRING), ("", Type.INT64), ("true", Type.STRING)):
        lines = ["7"] * 5_000
        for place in (0, 5_000):
            path = tmp_path / f"{next(_numbers)}.csv"
            path.write_text("\n".join(["a", *lines[:place], cell, *lines[place:]]))
            shape = readers.duckdb.add_root(f"t{next(_numbers)}", path)
            assert shape.types() == (type_,)


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_gzip_is_read_and_what_is_cut_off_is_refused(readers: Readers, tmp_path: Path, engine: str) -> None:
    whole = gzip.compress(b"a\tb\n1\t2\n")
    (tmp_path / "x.tsv.gz").write_bytes(whole)
    (tmp_path / "cut.tsv.gz").write_bytes(whole[:-9])
    made = getattr(readers, engine)
    name = f"t{next(_numbers)}"
    assert made.add_root(name, tmp_path / "x.tsv.gz").types() == (Type.INT64, Type.INT64)
    assert made.rows(RootTable(name)).rows == ((1, 2),)
    with pytest.raises(BadData, match="cannot be read"):
        made.add_root(f"t{next(_numbers)}", tmp_path / "cut.tsv.gz")


def test_a_refused_file_leaves_nothing_behind(tmp_path: Path) -> None:
    engine = DuckDB()
    (tmp_path / "x.csv").write_text("a\nx\n")
    for _ in range(2):
        with pytest.raises(BadData, match="is not int64, as the schema says"):
            engine.add_root("t", tmp_path / "x.csv", {"a": Type.INT64})
    assert engine.add_root("t", tmp_path / "x.csv", {"a": Type.STRING}) == Schema.of({"a": Type.STRING})
    assert engine._database.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [
        ("r0",)
    ]
    engine.close()


SCHEMA = {"a": Type.STRING, "b": Type.STRING}
NO_RECORDS: list[tuple[bytes, Dialect]] = [
    (b"a,b\nsecret7,secret7,\nsecret7,secret7,\n", Dialect()),
    (b"a;b\nsecret7,secret7\n", Dialect(";")),
    (b"secret7,secret7,secret7\n", Dialect(header=False)),
    (b"\xef\xbb\xbfsecret7\r\n", Dialect(header=False)),
    ("a,b\nsecret7,é\n\nsecret7,ü\n".encode("latin-1"), Dialect()),
    (b"a,b\n\n" + b"x" * (text.MAX_LINE + 1), Dialect()),
    (b'a,b\nsecret7,"x"y"\n', Dialect()),
]


@pytest.mark.parametrize(("data", "dialect"), NO_RECORDS)
@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_lines_of_which_none_is_a_record_are_no_empty_table(
    readers: Readers, tmp_path: Path, data: bytes, dialect: Dialect, schema: Any
) -> None:
    if schema is None and not dialect.header:
        return
    for found in readers.read(f"t{next(_numbers)}", {"x.csv": data}, tmp_path, schema, dialect):
        assert f"with {dialect.delimiter or ','!r} between its fields, 2 of them" in found
        assert "secret7" not in found


@pytest.mark.parametrize("data", [b"a,b", b"a,b\n", b"\xef\xbb\xbfa,b\r\n\r\n\n"])
def test_no_lines_are_an_empty_table(readers: Readers, tmp_path: Path, data: bytes) -> None:
    for found in readers.read(f"t{next(_numbers)}", {"x.csv": data}, tmp_path, SCHEMA):
        assert found == (Schema.of(SCHEMA), [])


def test_one_record_is_enough_in_all_files_and_the_owner_is_told_of_those_without(
    readers: Readers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("fpinq.engines.owner.note", told.append)
    files = {"1.csv": b"a,b\nsecret7,2,\n", "2.csv": b"a,b\n1,2\n", "3.csv": b"a,b\n\n"}
    for found in readers.read(f"t{next(_numbers)}", files, tmp_path, SCHEMA):
        assert found[1] == ["('1', '2')"]
    assert ["1.csv: no line is a record" in words for words in told] == [True, True]  # by each engine
    assert "secret7" not in "".join(told)


def test_files_without_lines_do_not_make_up_for_one_without_records(readers: Readers, tmp_path: Path) -> None:
    files = {"1.csv": b"a,b\n", "2.csv": b"a,b\n1,2,\n"}
    for found in readers.read(f"t{next(_numbers)}", files, tmp_path, SCHEMA):
        assert "2.csv: no line is a record" in found


def test_no_message_quotes_a_line(readers: Readers, tmp_path: Path) -> None:
    lines = [b"secret7,\xff", b'secret7,"x"y"', b"secret7", b"secret7," + b"x" * 70_000]
    files = {"x.csv": b"\n".join([b"a,b", *lines, b"secret7,secret7"])}
    for found in readers.read(f"t{next(_numbers)}", files, tmp_path, {"a": Type.INT64}):
        assert found == "column 'a' is not int64, as the schema says: none of its values is"


def test_a_blank_line_is_no_record_even_of_one_column(readers: Readers, tmp_path: Path) -> None:
    files = {"x.csv": b'a\n\n1\n\r\n""\n\n'}
    for found in readers.read(f"t{next(_numbers)}", files, tmp_path, {"a": Type.STRING}):
        assert found[1] == ["('',)", "('1',)"]
