"""The definition of reading text: against Python's csv module, and for what a line can do to others."""

import csv
import io
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.texts import CELLS, DATES, DELIMITERS, as_file, cells, dialects, odd_lines, tables, written
from fpinq.engines import text
from fpinq.engines.text import ISO, Dialect, read
from fpinq.model.errors import BadData, ProgramError
from fpinq.model.expressions import Schema, Type
from fpinq.model.operators import type_of

LINES = st.lists(odd_lines | cells.map(str.encode), max_size=6)


@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r\r\n"]), st.booleans(), st.booleans(), st.integers(1, 40))
def test_a_file_read_in_blocks_has_the_lines_of_the_file(
    lines: list[bytes], end: bytes, ended: bool, mark: bool, longest: int
) -> None:
    data = b"\xef\xbb\xbf" * mark + end.join(lines) + (end if ended else b"")
    whole = "".join(text.blocks(io.BytesIO(data), longest))
    assert whole == "".join(f"{line}\n" for line in text.lines(data, longest))


def test_a_line_is_too_long_when_it_has_more_bytes_than_allowed() -> None:
    assert text.lines(b"123\r\n1234\n12345\r\n\xc3\xa9\xc3\xa9x", 4) == ["123", "1234", "", ""]
    assert text.lines(b"", 4) == []
    assert text.lines(b"\n", 4) == [""]


@given(
    st.lists(cells, min_size=1, max_size=5), st.sampled_from(DELIMITERS), st.sampled_from("\"'"), st.data()
)
def test_fields_are_those_of_pythons_csv(values: list[str], delimiter: str, quote: str, data: Any) -> None:
    quoted = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    dialect = Dialect(delimiter, quote)
    line = written(values, dialect, quoted).decode()
    found = text.fields(line, dialect)
    if line and "\r" not in line:  # which is the end of a line to Python
        expected = next(csv.reader([f"{line}\n"], delimiter=delimiter, quotechar=quote, strict=True))
        assert [field or "" for field in found or []] == expected
    assert found == [
        value if value or (q and quote) else None for value, q in zip(values, quoted, strict=True)
    ]


@given(st.text("a,;\"'", max_size=9), dialects())
def test_a_line_has_fields_if_its_quotes_are_in_place(line: str, dialect: Dialect) -> None:
    """Written down once more: a machine that reads one character after the other."""
    delimiter, quote = dialect.delimiter or ",", dialect.quote
    state, found, field = "start", [], ""
    for c in [*line, delimiter]:
        if state == "quoted":
            state, field = ("closed", field) if c == quote else ("quoted", field + c)
        elif c == quote:
            if state == "plain":
                break
            state, field = ("quoted", field + quote if state == "closed" else field)
        elif c == delimiter:
            found.append(field if state == "closed" else field or None)
            state, field = "start", ""
        elif state == "closed":
            break
        else:
            state, field = "plain", field + c
    else:
        if state == "start":
            assert text.fields(line, dialect) == found
            return
    assert text.fields(line, dialect) is None


@given(tables(), odd_lines, st.data())
def test_a_line_more_leaves_all_other_records_as_they_were(table: Any, line: bytes, data: Any) -> None:
    schema, dialect, files = table
    before = _records(schema, dialect, files)
    which = data.draw(st.integers(0, len(files) - 1))
    lines = files[which][1]
    lines.insert(data.draw(st.integers(0, len(lines))), line)
    after = _records(schema, dialect, files)
    if before is not None and after is not None:
        assert len(after) - len(before) in (0, 1)
        assert _without(after, before) is not None


def _records(schema: Any, dialect: Dialect, files: Any) -> list[Any] | None:
    """The records; None where the owner is told that no value fits a column, or that no line is a record."""
    try:
        return read({f"{i}.csv": as_file(*f, dialect) for i, f in enumerate(files)}, schema, dialect)[1]
    except BadData as error:
        if "none of its values is" not in str(error) and "no line is a record" not in str(error):
            raise
        return None


def _without(after: list[Any], before: list[Any]) -> list[Any] | None:
    """after without the records of before, in their order; None if they are not all there."""
    left = list(after)
    start = 0
    for record in before:
        if repr(record) not in map(repr, left[start:]):
            return None
        start += [repr(r) for r in left[start:]].index(repr(record))
        del left[start]
    return left


def test_a_line_with_a_quote_out_of_place_is_dropped_and_no_other() -> None:
    data = b'a,b\n1,x\n100,"x"y"\n2,"y\n3,z\n'
    assert read({"x.csv": data}, {"a": Type.INT64})[1] == [(1,), (3,)]


def test_one_date_of_another_format_is_null_and_all_others_are_read_as_before() -> None:
    data = b"d\n2020-12-25\n12/25/2020\n2020-12-26\n"
    assert read({"x.csv": data}, {"d": Type.DATE})[1] == [
        (date(2020, 12, 25),),
        (None,),
        (date(2020, 12, 26),),
    ]


def test_columns_are_found_by_their_names_in_every_file() -> None:
    files = {"1.csv": b"a,b\n1,2\n", "2.csv": b"b,a\n3,4\n", "3.tsv": b"b\ta\n5\t6\n"}
    schema = {"a": Type.INT64, "b": Type.INT64}
    assert read(files, schema)[1] == [(1, 2), (4, 3), (6, 5)]
    assert read(files)[0] == schema


def test_an_empty_field_is_null_and_an_empty_text_is_written_in_quotes() -> None:
    data = b'a,b\n,\n"",""\n'
    assert read({"x.csv": data}, {"a": Type.STRING, "b": Type.INT64})[1] == [(None, None), ("", None)]


@pytest.mark.parametrize("dates", DATES)
def test_a_day_is_read_in_the_format_that_was_stated_and_no_other(dates: str) -> None:
    days = [date(2020, 12, 25), date(1999, 2, 3), date(1, 1, 1)]
    for day in days:
        iso = f"{day:%Y}".zfill(4) + f"-{day:%m-%d}"
        shown = dates.replace("%Y", iso[:4]).replace("%m", iso[5:7]).replace("%d", iso[8:])
        assert text.value(shown, Type.DATE, dates) == day
        at = datetime(day.year, day.month, day.day, 17, 5)
        assert text.value(f"{shown} 17:05", Type.TIMESTAMP, dates) == at
        for other in DATES:
            if other != dates:
                assert text.value(shown, Type.DATE, other) in (
                    None,
                    day.replace(month=day.day, day=day.month) if day.day <= 12 else None,
                )
    for odd in CELLS:
        text.value(odd, Type.DATE, dates)


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        (["true", "FALSE", None, ""], Type.BOOL),
        (["1", "0"], Type.INT64),
        (["1", "0.5"], Type.FLOAT64),
        (["1", "9223372036854775808"], Type.FLOAT64),
        (["1", "nan", "-inf"], Type.FLOAT64),
        (["nan", "NaN"], Type.FLOAT64),
        (["1", "NAN"], Type.STRING),
        (["2020-12-25", ""], Type.DATE),
        (["2020-12-25", "2020-12-25 10:30"], Type.TIMESTAMP),
        (["2020-12-25", "12/25/2020"], Type.STRING),
        (["true", "1"], Type.STRING),
        ([None, ""], Type.STRING),
        ([], Type.STRING),
    ],
)
def test_the_type_of_a_column_is_the_narrowest_that_all_its_fields_have(
    column: list[str | None], type_: Type
) -> None:
    assert text.narrowest(column) is type_


@pytest.mark.parametrize("dates", DATES)
@pytest.mark.parametrize("type_", text.TYPES)
def test_a_cell_is_an_expression_of_the_row_language(type_: Type, dates: str) -> None:
    assert type_of(text.cell(text.Column("x"), type_, dates), Schema.of({"x": Type.STRING})) is type_


@pytest.mark.parametrize(
    ("files", "schema", "dialect", "message"),
    [
        ({"x.csv": b"\n1\n"}, None, None, "does not name columns"),
        ({"x.csv": b"\xff,a\n1,2\n"}, None, None, "does not name columns"),
        ({"x.csv": b'a,"b\n1,2\n'}, None, None, "does not name columns"),
        ({"x.csv": b"age\n1\n"}, {"agee": Type.INT64}, None, "no column 'agee'; did you mean 'age'"),
        ({"x.csv": b"a,a\n1,2\n"}, None, None, "more than one column 'a'"),
        ({"1.csv": b"a\n1\n", "2.csv": b"b\n1\n"}, None, None, "must have the same columns"),
        ({"1.csv": b"a\n1\n", "2.csv": b"a,b\n1,2\n"}, {"a": Type.INT64}, None, "must have the same columns"),
        ({"x.csv": b"1,2\n"}, None, Dialect(header=False), "without a header"),
    ],
)
def test_what_cannot_be_read_is_refused(files: Any, schema: Any, dialect: Any, message: str) -> None:
    with pytest.raises(BadData, match=message):
        read(files, schema, dialect)


def test_a_column_without_a_name_is_left_out() -> None:
    assert read({"x.csv": b",a\n0,5\n1,6\n"}) == ({"a": Type.INT64}, [(5,), (6,)])


def test_without_a_header_the_schema_names_the_columns_in_order() -> None:
    schema = {"a": Type.INT64, "b": Type.STRING}
    assert read({"x.csv": b"1,x\n2\n"}, schema, Dialect(header=False))[1] == [(1, "x")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"delimiter": ""}, {"delimiter": ",,"}, {"delimiter": "\n"}, {"delimiter": "é"}, {"delimiter": "1"},
        {"delimiter": '"'}, {"delimiter": "-"}, {"quote": "`"}, {"quote": '""'}, {"header": 1},
        {"dates": "%d%m%Y"}, {"dates": "guess"},
    ],
)  # fmt: skip
def test_a_dialect_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ProgramError):
        Dialect(**wrong)


def test_a_file_compressed_in_an_unknown_way_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="gzip"):
        text.opened(str(tmp_path / "x.csv.zst"))


def test_dates_are_iso_unless_stated() -> None:
    assert Dialect().dates == ISO
