"""Text of all kinds: files, dialects, and lines that fit nothing."""

from collections.abc import Sequence

from hypothesis import strategies as st

from fpinq.engines.text import Dialect
from fpinq.model.expressions import Type

DELIMITERS = [",", ";", "\t", "|", ":", " ", "^", "]", "\\", "*", "$", "~"]
DATES = ["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d"]

# Cells as files have them: of every type, nearly of it, and of none.
CELLS = [
    "", "0", "1", "-7", "+7", "007", "9223372036854775807", "9223372036854775808", "1.5", "-.5", "1e400",
    "nan", "NaN", "NAN", "inf", "-inf", "Infinity", "-Inf",
    "true", "True", "FALSE", "tRUE", "x", "é", "🤦🏼‍♂️", " ", " 1", "1 ", "a,b", "a;b",
    "a\tb",
    'say "hi"', '"', '""', "'", "it's", "\\", "\\N", "NULL", "null", "None", "2020-12-25",
    "2021-02-29", "12/25/2020", "25/12/2020", "25.12.2020", "2020/12/25", "2020-12-25 10:30",
    "2020-12-25T10:30:00.5",
    "25/12/2020 10:30:00",
    "2020-12-25 24:00:00", "12/25/2020 10:30", "\0", "a\0b", "\u2028", "\x85", "\x0b", "\r", "a\rb",
    "\ufeff", "#",
    "# comment", "=1+1", "-", "--", "%", "x" * 300,
]  # fmt: skip

# Lines that fit no table, or a table that nobody stated.
ODD_LINES = [
    b"", b"\r", b",", b",,,,,,,", b'"', b'""', b'"""', b"'", b'100,"x"y"', b'100,"x', b'x",1', b'a"b,c',
    b"12/25/2020",
    b"\xff\xfe", b"1,\xff", b"\xed\xa0\x80,1", b"\xc3", b"\0", b"\xef\xbb\xbf", b"#", b"# comment,1",
    b"\\", b"a\\,b",
    b'"a\\"b",1', b"a;b;c", b"a\tb\tc", b"a|b|c", b"1\r2", b"x" * 5_000, b"," * 5_000, b'"' * 5_001,
    b'"' * 5_000,
    "２０２０".encode(), b"nan,inf", b"true,false", b"2020-12-25 10:30:00,2020-12-25", b"9" * 400,
]  # fmt: skip

types = st.sampled_from([Type.BOOL, Type.INT64, Type.FLOAT64, Type.STRING, Type.DATE, Type.TIMESTAMP])


@st.composite
def dialects(draw: st.DrawFn) -> Dialect:
    """Any dialect; its delimiter may be left to the file's name."""
    return Dialect(
        draw(st.none() | st.sampled_from(DELIMITERS)),
        draw(st.sampled_from(['"', "'", ""])),
        draw(st.booleans()),
        draw(st.sampled_from(DATES)),
    )


def written(cells: Sequence[str], dialect: Dialect, quoted: Sequence[bool]) -> bytes:
    """A line of these cells, some of them in quotes. Not all cells can be written: then the line is odd."""
    delimiter, q = dialect.delimiter or ",", dialect.quote
    fields = [
        q + cell.replace(q, q + q) + q if q and (asked or delimiter in cell or q in cell) else cell
        for cell, asked in zip(cells, quoted, strict=True)
    ]
    return delimiter.join(fields).encode()


cells = st.sampled_from(CELLS) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=8
)
odd_lines = (
    st.sampled_from(ODD_LINES)
    | st.binary(max_size=20).map(lambda line: line.replace(b"\n", b""))
    | st.text("\"',;\t 0a\\\r-/", max_size=12).map(str.encode)
)


@st.composite
def bodies(draw: st.DrawFn, width: int, dialect: Dialect) -> list[bytes]:
    """The lines of a file after its header: records, and lines that fit nothing."""
    record = st.lists(cells, min_size=width, max_size=width)
    quoted = st.lists(st.booleans(), min_size=width, max_size=width)
    line = st.builds(lambda c, q: written(c, dialect, q), record, quoted) | odd_lines
    return draw(st.lists(line, max_size=8))


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Type], Dialect, list[tuple[list[str], list[bytes]]]]:
    """A schema, a dialect, and files: each with its own order of the columns, and its lines."""
    dialect = draw(dialects())
    schema = {f"c{i}": type_ for i, type_ in enumerate(draw(st.lists(types, min_size=1, max_size=4)))}
    more = [] if not dialect.header else draw(st.sampled_from([[], ["more"]]))
    files = []
    for _ in range(draw(st.integers(1, 2))):
        names = draw(st.permutations([*schema, *more])) if dialect.header else list(schema)
        files.append((list(names), draw(bodies(len(names), dialect))))
    return schema, dialect, files


def as_file(names: Sequence[str], lines: Sequence[bytes], dialect: Dialect, end: bytes = b"\n") -> bytes:
    """A file: its header, if it has one, and its lines. One without a byte is no file: a blank line."""
    head = [written(names, dialect, [False] * len(names))] if dialect.header else []
    return b"".join(line + end for line in (*head, *lines)) or end
