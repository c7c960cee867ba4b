"""Text: how csv is read. The definition, in plain Python; every engine reads the same.

Nothing about it is found out from the data. A *dialect* is stated, or follows
from the file's name; one line is one record; what does not fit is left out,
and no line can change how another one is read.

file    UTF-8; a byte order mark at its start is skipped. The first line names the columns.
line    ends at a newline, or a carriage return and a newline. Longer than MAX_LINE bytes, not
        UTF-8, blank, of another number of fields, or with a quote out of place: dropped. Where
        that is every line of all files they are written in another way, and refused; every line
        of one file is dropped like any other, and the owner's log is told.
field   the text between two delimiters; or in quotes, with each quote in it doubled.
cell    a field as a value of its column's type, by the row language's own conversions. What does
        not fit the type is null, and so is an empty field without quotes.

Columns are found by their names, in every file, not by their places.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from io import BytesIO
from itertools import chain, islice
from math import inf
from typing import BinaryIO

from fpinq.engines import owner
from fpinq.engines.rows import check_some_fit
from fpinq.model.errors import BadData, ProgramError, suggest
from fpinq.model.expressions import Apply, Column, Expression, Literal, Type, Value
from fpinq.model.frozen import dataclass
from fpinq.model.operators import MAX_STRING, evaluate

# In bytes: a longer line is no record.
MAX_LINE = 2**20

# The types that can be read off text, the narrowest first.
TYPES = (Type.BOOL, Type.INT64, Type.FLOAT64, Type.DATE, Type.TIMESTAMP, Type.STRING)

# Floats that are no numbers, as programs write them.
NAN = ("nan", "NaN")
BEYOND = ("inf", "Inf", "Infinity")
BELOW = tuple(f"-{word}" for word in BEYOND)

ISO = "%Y-%m-%d"
_DATES = tuple(f"%{a}{sep}%{b}{sep}%{c}" for a, b, c in ("Ymd", "dmY", "mdY") for sep in "-/.")
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Dialect:
    """How text is written: stated by the owner, never detected.

    delimiter  between fields; a comma, or a tab in files that are named .tsv
    quote      around fields that hold a delimiter; "" if quotes mean nothing
    header     whether the first line names the columns; if not, the schema does, in order
    dates      how days are written, such as "%d/%m/%Y", with two digits, two and four
    """

    delimiter: str | None = None
    quote: str = '"'
    header: bool = True
    dates: str = ISO

    def __post_init__(self) -> None:
        if self.delimiter is not None and not re.fullmatch(r"[\t -~]", self.delimiter):
            raise ProgramError("delimiter is one ASCII character, such as ',' or ';' or '\\t'")
        if self.delimiter is not None and (self.delimiter.isalnum() or self.delimiter in "\"'+-."):
            raise ProgramError(f"delimiter cannot be {self.delimiter!r}, which is a part of values")
        if self.quote not in ('"', "'", ""):
            raise ProgramError("quote is '\"' or \"'\", or '' if quotes mean nothing")
        if type(self.header) is not bool:
            raise ProgramError("header is True or False")
        if self.dates not in _DATES:
            raise ProgramError(f"dates cannot be {self.dates!r}; write one of {', '.join(_DATES)}")

    def of(self, path: str) -> "Dialect":
        """The dialect of a file: its name says the delimiter if nobody does."""
        if self.delimiter is not None:
            return self
        return replace(self, delimiter="\t" if path.lower().endswith((".tsv", ".tsv.gz")) else ",")


# ── bytes to lines ───────────────────────────────────────────────────────────────────


def lines(data: bytes, longest: int = MAX_LINE) -> list[str]:
    """The lines of a file; blank in place of those that are too long or not UTF-8."""
    found = data.removeprefix(_MARK).split(b"\n")
    return [_line(line.removesuffix(b"\r"), longest) for line in found[: None if found[-1] else -1]]


def _line(line: bytes, longest: int) -> str:
    try:
        return line.decode() if len(line) <= longest else ""
    except UnicodeDecodeError:
        return ""


def blocks(file: BinaryIO, longest: int = MAX_LINE) -> Iterator[str]:
    """The same lines, each with a newline, some at a time: what an engine reads of a large file."""
    rest = b""
    start = file.read(len(_MARK)).removeprefix(_MARK)
    for read in chain([start], iter(lambda: file.read(longest), b"")):
        whole, newline, rest = (rest + read).rpartition(b"\n")
        if newline:
            yield _block(whole, longest)
        rest = rest[: longest + 2]  # too long, whatever follows: even without its last byte
    if rest:
        yield _block(rest, longest)


def _block(whole: bytes, longest: int) -> str:
    first = whole.find(b"\n") if b"\n" in whole else len(whole)
    # Only the first line can be too long: all others are within one read.
    if first <= longest:
        try:
            return f"{whole.decode()}\n".replace("\r\n", "\n")
        except UnicodeDecodeError:
            pass
    found = whole.split(b"\n")
    return "".join(_line(line.removesuffix(b"\r"), longest) + "\n" for line in found)


def opened(path: str) -> BinaryIO:
    """A file of text, to be read once from its start; BadData if it is compressed in a way we cannot read."""
    if path.lower().endswith(".zst"):
        raise BadData(f"{path}: zst is not read: decompress it, or compress it with gzip")
    if path.lower().endswith(".gz"):
        import gzip  # slow to import, and seldom needed

        return gzip.open(path)  # type: ignore[return-value]
    return open(path, "rb")


def first_line(path: str) -> list[str]:
    """The first line of a file, if it has one."""
    with opened(path) as file:
        return [block.partition("\n")[0] for block in islice(blocks(file), 1)]


def has_lines(file: BinaryIO, header: bool) -> bool:
    """Whether a file has a line that is not blank, after its header; also one that cannot be a record."""
    if header:
        file.readline()
    return any(part.removeprefix(_MARK).strip(b"\r\n") for part in iter(lambda: file.read(MAX_LINE), b""))


def has_record(file: BinaryIO, width: int, dialect: Dialect) -> bool:
    """Whether a line of a file is a record, which has so many fields; as a rule the first one is."""
    found = chain.from_iterable(block[:-1].split("\n") for block in blocks(file))
    return any(_is_record(line, width, dialect) for line in islice(found, int(dialect.header), None))


def _is_record(line: str, width: int, dialect: Dialect) -> bool:
    found = fields(line, dialect) if line else None
    return found is not None and len(found) == width


# ── lines to fields ──────────────────────────────────────────────────────────────────


def pattern(dialect: Dialect) -> str:
    """A field, as a regular expression: quoted, or without any quote."""
    q, d = re.escape(dialect.quote), re.escape(dialect.delimiter or ",")
    return f"{q}(?:[^{q}]|{q}{q})*{q}|[^{q}{d}]*" if q else f"[^{d}]*"


@lru_cache(maxsize=64)
def _patterns(dialect: Dialect) -> tuple[re.Pattern[str], re.Pattern[str]]:
    field = pattern(dialect).replace(")*", ")*+")  # possessive: no line can make it try again and again
    delimiter = re.escape(dialect.delimiter or ",")
    return re.compile(f"(?:{field})(?:{delimiter}(?:{field}))*+"), re.compile(f"({field})(?:{delimiter}|$)")


def fields(line: str, dialect: Dialect) -> list[str | None] | None:
    """The fields of a line, null where there is nothing; None if a quote is out of place."""
    delimiter, quote = dialect.delimiter or ",", dialect.quote
    if not quote or quote not in line:
        return [field or None for field in line.split(delimiter)]
    whole, each = _patterns(dialect)
    if not whole.fullmatch(line):
        return None
    found, start = [], 0
    while start <= len(line):
        match = each.match(line, start)
        assert match is not None
        found.append(match[1])
        start = match.end() + (match.end() == match.end(1))
    return [_unquoted(field, quote) for field in found]


def _unquoted(field: str, quote: str) -> str | None:
    return field[1:-1].replace(quote * 2, quote) if field.startswith(quote) else field or None


def header(line: str, dialect: Dialect, path: str = "the file") -> tuple[str, ...]:
    """The names of a file's columns, "" for one without a name; BadData if the line has none."""
    found = fields(line, dialect)
    if found is None or not any(found):
        raise BadData(f"{path}: its first line does not name columns; without such a line, say header=False")
    return tuple(name or "" for name in found)


def places(names: Sequence[str], wanted: Iterable[str], path: str = "the file") -> tuple[int, ...]:
    """Where the wanted columns are among a file's; BadData if one is not there, or there twice."""
    for name in wanted:
        if names.count(name) != 1:
            what = "has no column" if name not in names else "has more than one column"
            raise BadData(f"{path} {what} {name!r}{suggest(name, names) if name not in names else ''}")
    return tuple(names.index(name) for name in wanted)


# ── fields to cells ──────────────────────────────────────────────────────────────────


def cell(text: Expression, type_: Type, dates: str = ISO) -> Expression:
    """A field as a value of a type, in the row language: every engine has it already."""
    match type_:
        case Type.STRING:
            return text
        case Type.FLOAT64:
            return Apply("fill_null", (Apply("to_float64", (text,)), _infinity(text)))
        case Type.DATE | Type.TIMESTAMP:
            return Apply(f"to_{type_.value}", (_iso(text, dates),))
    return Apply(f"to_{type_.value}", (text,))


def fits(text: Expression, type_: Type, dates: str = ISO) -> Expression:
    """Whether a field that is not empty is of a type. NaN is a float, though its value is null."""
    there = Apply("not", (Apply("is_null", (cell(text, type_, dates),)),))
    return Apply("or", (there, _is_one_of(text, NAN))) if type_ is Type.FLOAT64 else there


def _infinity(text: Expression) -> Expression:
    below = Apply("if_else", (_is_one_of(text, BELOW), Literal.of(-inf), Literal(None, Type.FLOAT64)))
    return Apply("if_else", (_is_one_of(text, BEYOND), Literal.of(inf), below))


def _is_one_of(text: Expression, words: Sequence[str]) -> Expression:
    return Apply("is_in", (text, *map(Literal.of, words)))


def _iso(text: Expression, dates: str) -> Expression:
    """A text that begins with a day, as ISO 8601 has it."""
    if dates == ISO:
        return text
    place = dates.replace("%Y", "YYYY").replace("%m", "mm").replace("%d", "dd")
    separator = Literal.of(dates[2])
    first, last = place.index(dates[2]), place.rindex(dates[2])
    separated = Apply("and", tuple(Apply("equal", (_part(text, at, 1), separator)) for at in (first, last)))
    iso = _part(text, place.index("Y"), 4)
    for part in (_part(text, place.index("m"), 2), _part(text, place.index("d"), 2)):
        iso = Apply("concat", (Apply("concat", (iso, Literal.of("-"))), part))
    iso = Apply("concat", (iso, _part(text, len(place), MAX_STRING)))
    return Apply("if_else", (separated, iso, Literal(None, Type.STRING)))


def _part(text: Expression, start: int, length: int) -> Expression:
    return Apply("substring", (text, Literal.of(start), Literal.of(length)))


def value(field: str | None, type_: Type, dates: str = ISO) -> Value:
    """The value of a field."""
    found: Value = evaluate(_expression(cell, type_, dates), {"text": field})
    return found


def narrowest(column: Iterable[str | None], dates: str = ISO) -> Type:
    """The narrowest type that all fields of a column are of; empty ones say nothing."""
    present = [field for field in column if field]
    return next((t for t in TYPES if present and all(is_of(f, t, dates) for f in present)), Type.STRING)


def is_of(field: str | None, type_: Type, dates: str = ISO) -> bool:
    """Whether a field that is not empty is of a type."""
    return evaluate(_expression(fits, type_, dates), {"text": field}) is True


@lru_cache(maxsize=128)
def _expression(make: Callable[[Expression, Type, str], Expression], type_: Type, dates: str) -> Expression:
    return make(Column("text"), type_, dates)


# ── all of it ────────────────────────────────────────────────────────────────────────


def read(
    files: Mapping[str, bytes], schema: Mapping[str, Type] | None = None, dialect: Dialect | None = None
) -> tuple[dict[str, Type], list[tuple[Value, ...]]]:
    """The columns of files and their records: what reading them means."""
    stated = dialect or Dialect()
    names = columns_of({path: lines(data)[:1] for path, data in files.items()}, schema, stated)
    wanted = list(schema) if schema is not None else named(names)
    table: list[list[str | None]] = []
    for path, data in files.items():
        at = places(names[path], wanted, path)
        for line in lines(data)[stated.header :]:
            found = fields(line, stated.of(path)) if line else None
            if found is not None and len(found) == len(names[path]):
                table.append([found[place] for place in at])
    lacking = [
        path for path in files if lacks_records(path, len(names[path]), stated, partial(BytesIO, files[path]))
    ]
    check_lacking(lacking, bool(table), names, stated)
    if schema is None:
        columns = zip(*table, strict=True) if table else [()] * len(wanted)
        schema = {name: narrowest(column, stated.dates) for name, column in zip(wanted, columns, strict=True)}
    types = list(schema.values())
    records = [
        tuple(value(field, t, stated.dates) for field, t in zip(row, types, strict=True)) for row in table
    ]
    for i, (name, type_) in enumerate(schema.items()):
        present = [row[i] for row in table if row[i]]
        check_some_fit(
            name, type_, bool(present), any(is_of(field, type_, stated.dates) for field in present)
        )
    return dict(schema), records


def lacks_records(path: str, width: int, dialect: Dialect, opening: Callable[[], BinaryIO]) -> bool:
    """Whether a file has lines, and none is a record."""
    with opening() as file:
        if has_record(file, width, dialect.of(path)):
            return False
    with opening() as file:
        return has_lines(file, dialect.header)


def check_lacking(
    lacking: Sequence[str], some: bool, names: Mapping[str, Sequence[str]], dialect: Dialect
) -> None:
    """BadData if files lack records and none has some: they are written in another way, not all wrong.

    Of one file among others the owner's log is told: a file may be one line, and no line has a say in
    whether the others are read.
    """
    for path in lacking:
        error = no_record(path, len(names[path]), dialect)
        if not some:
            raise error
        owner.note(str(error))


def no_record(path: str, width: int, dialect: Dialect) -> BadData:
    """What is said of a file that has lines, but no record."""
    return BadData(
        f"{path}: no line is a record, UTF-8 with {dialect.of(path).delimiter!r} between its fields, "
        f"{width} of them: say another delimiter with dialect=…, or name every column, in the header or, "
        "without one, in the schema. A delimiter at the end of a line begins a field, too"
    )


def named(names: Mapping[str, Sequence[str]]) -> list[str]:
    """The columns that have names."""
    found = [name for name in next(iter(names.values())) if name]
    if not found:
        raise BadData("the data has no columns")
    return found


def columns_of(
    first: Mapping[str, Sequence[str]], schema: Mapping[str, Type] | None, dialect: Dialect
) -> dict[str, tuple[str, ...]]:
    """The names of each file's columns, in its own order; BadData if they are not the same ones."""
    if schema is not None and (not schema or not set(schema.values()) <= set(TYPES)):
        raise BadData("a schema needs one or more columns, each of a type that columns have")
    if not dialect.header:
        if schema is None:
            raise BadData("without a header nothing names the columns: say schema={…}, in their order")
        return dict.fromkeys(first, tuple(schema))
    found = {path: header(line[0] if line else "", dialect.of(path), path) for path, line in first.items()}
    if len({tuple(sorted(names)) for names in found.values()}) > 1:
        raise BadData("the files of one table must have the same columns, in whatever order")
    return found
