"""Text, as `engines.text` defines it, by Spark: lines as its plainest source gives them, the rest is SQL.

Nothing that reads csv is used. Lines end at newlines and nowhere else; what a
line's fields are is decided by that line alone, without regular expressions:
cut at its quotes, every second piece is outside of them; the delimiters there
become newlines, which no line has in it, and there the fields are cut. Cells are
the lowered conversions. All of it has a value for every line.

The first line of a file is its header. Spark does not say which line came
first, and to a bag it is all the same which one of equal lines is left out: all
lines like the header are, and those beyond one of each file are put back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fpinq.engines import text
from fpinq.engines.files import Files
from fpinq.engines.rows import check_some_fit
from fpinq.engines.spark import files
from fpinq.engines.spark.dialect import SQL
from fpinq.engines.sql.expressions import Parameters
from fpinq.engines.sql.sources import of_fields
from fpinq.engines.text import MAX_LINE, Dialect
from fpinq.model.errors import BadData
from fpinq.model.expressions import Column, Type
from fpinq.model.frozen import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

View = Callable[["DataFrame"], str]

_LINES = {"lineSep": "\n"}
# With its end a line may have two bytes more. Longer ones are no records: Hadoop does not hand them over.
_NOT_TOO_LONG = {"mapreduce.input.linerecordreader.line.maxlength": str(MAX_LINE + 4)}
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Found:
    """Files of text: the first line of each, and how many lines that may be records all have, if known."""

    first: Mapping[str, Sequence[str]]
    lines: int | None = None


@dataclass(frozen=True)
class Alike:
    """Files with the same first line and the same delimiter."""

    paths: tuple[str, ...]
    header: str | None
    names: tuple[str, ...]
    dialect: Dialect


# ── files ────────────────────────────────────────────────────────────────────────────


def here(found: Files) -> Found:
    """What Python finds in files of this machine."""
    first = {path: text.first_line(path) for path in found.paths}
    return Found(first, sum(map(_lines_of, found.paths)))


def _lines_of(path: str) -> int:
    """How many lines may be records, the header included: those that are not blank."""
    with text.opened(path) as file:
        return sum(_not_blank(block) for block in text.blocks(file))


def _not_blank(block: str) -> int:
    if block.startswith("\n") or "\n\n" in block:
        return sum(map(bool, block.split("\n")))
    return block.count("\n")


def elsewhere(session: "SparkSession", found: files.Elsewhere) -> Found:
    """What Spark finds in files that only the cluster can see."""
    for url in found.urls:
        if url.lower().endswith(".zst"):
            raise BadData(f"{url}: zst is not read: decompress it, or compress it with gzip")
    return Found({url: _first_of(session, url) for url in found.urls})


def raw(session: "SparkSession", urls: Sequence[str], **options: str) -> "DataFrame":
    """The lines of files as they are."""
    return files.read(session, urls, "text", **_LINES, **options)


def _first_of(session: "SparkSession", url: str) -> list[str]:
    rows = raw(session, [url]).selectExpr("CAST(value AS BINARY)").take(1)
    # Hadoop has skipped a byte order mark already.
    return [line for (value,) in rows for line in text.lines(_MARK + bytes(value))]


# ── records ──────────────────────────────────────────────────────────────────────────


def read(
    session: "SparkSession",
    view: View,
    found: Found,
    schema: Mapping[str, Type] | None,
    dialect: Dialect | None,
) -> "DataFrame":
    """A frame of the records of files of text; its types are read off the fields if no schema is stated."""
    stated = dialect or Dialect()
    names = text.columns_of(found.first, schema, stated)
    wanted = list(schema) if schema is not None else text.named(names)
    bound = Parameters(SQL)
    lines, selects = 0, []
    for alike in _alike(found.first, names, stated):
        at = text.places(alike.names, wanted, alike.paths[0])
        source, kept = _records(session, view, alike, bound)
        lines += kept
        selects.append(_fields(source, len(alike.names), at, alike.dialect, bound))
    if found.lines not in (None, lines):
        raise BadData("Spark does not find as many lines as the files have")
    fields = f"({' UNION ALL '.join(selects)})"
    some = bool(session.sql(f"SELECT 1 FROM {fields} LIMIT 1", args=bound.given()).collect())
    text.check_lacking(_lacking(session, view, found, names, stated), some, names, stated)
    types = _types(session, fields, wanted, schema, stated.dates, bound)
    bindings = of_fields(len(wanted), bound)
    cells = [text.cell(Column(f"f{i}"), type_, stated.dates) for i, type_ in enumerate(types)]
    sql = bindings.select(fields, [(f"c{i}", bindings.output(cell)) for i, cell in enumerate(cells)])
    return session.sql(sql, args=bound.given()).toDF(*wanted)


def _lacking(
    session: "SparkSession",
    view: View,
    found: Found,
    names: Mapping[str, tuple[str, ...]],
    dialect: Dialect,
) -> list[str]:
    """The files that have lines besides their headers, and no record."""
    if found.lines is not None:
        return [
            path
            for path in found.first
            if text.lacks_records(path, len(names[path]), dialect, partial(text.opened, path))
        ]
    lacking = [
        path
        for alike in _alike(found.first, names, dialect)
        for path in alike.paths
        if _lacks_records(session, view, replace(alike, paths=(path,)))
    ]
    return sorted(lacking, key=list(found.first).index)


def _lacks_records(session: "SparkSession", view: View, one: Alike) -> bool:
    """Whether a file that only the cluster can see has lines, and none is a record."""
    bound = Parameters(SQL)

    def some(lines: str) -> bool:
        fields = _fields(lines, len(one.names), [0], one.dialect, bound)
        return bool(session.sql(f"{fields} LIMIT 1", args=bound.given()).collect())

    all_lines = raw(session, [files.url_of(one.paths[0])], **_NOT_TOO_LONG)
    lines = _lines(view(all_lines), bound)
    if one.header is not None:
        lines = f"(SELECT line FROM {lines} WHERE line <> {bound.bind(one.header)})"
    if some(lines):  # as a rule: no more than its beginning is read
        return False
    lines, _ = _records(session, view, one, bound)
    if some(lines):
        return False
    # Whatever is in them: a line that is no UTF-8 is a line, too.
    there = all_lines.where("value <> '' AND value <> char(13)").limit(2).count()
    return there > (one.header is not None)


def _alike(
    first: Mapping[str, Sequence[str]], names: Mapping[str, tuple[str, ...]], stated: Dialect
) -> Iterator[Alike]:
    def same(path: str) -> tuple[str, str]:
        return "".join(first[path]) if stated.header else "", stated.of(path).delimiter or ""

    for (header, _), paths in groupby(sorted(first, key=same), same):
        together = tuple(paths)
        one = together[0]
        yield Alike(together, header if stated.header else None, names[one], stated.of(one))


def _records(session: "SparkSession", view: View, alike: Alike, bound: Parameters) -> tuple[str, int]:
    """The lines that may be records, without the headers, to select FROM; how many there are with them."""
    urls = [files.url_of(path) for path in alike.paths]
    lines = _lines(view(raw(session, urls, **_NOT_TOO_LONG)), bound)
    if alike.header is None:
        (row,) = session.sql(f"SELECT count(*) FROM {lines}", args=bound.given()).collect()
        return lines, row[0]
    header = bound.bind(alike.header)
    counts = f"SELECT count(*), count_if(line = {header}) FROM {lines}"
    (row,) = session.sql(counts, args=bound.given()).collect()
    others = f"SELECT line FROM {lines} WHERE line <> {header}"
    again = row[1] - len(urls)
    if again < 0:
        raise BadData("Spark does not find the first line of every file")
    if again:
        others += f" UNION ALL SELECT {header} AS line FROM range({again})"
    return f"({others})", row[0]


def _lines(source: str, bound: Parameters) -> str:
    """The lines of a source that are not blank, not too long and UTF-8."""
    end = f"endswith(value, {bound.bind(chr(13))})"
    line = f"CASE WHEN {end} THEN substring(value, 1, char_length(value) - 1) ELSE value END"
    valid = f"SELECT {line} AS line FROM {source} WHERE is_valid_utf8(value)"
    return f"(SELECT line FROM ({valid}) WHERE line <> '' AND octet_length(line) <= {MAX_LINE})"


def _fields(source: str, width: int, at: Sequence[int], dialect: Dialect, bound: Parameters) -> str:
    """SELECT of the fields f0, f1, … at some places, of the lines that have `width` of them."""
    delimiter, newline = bound.bind(dialect.delimiter or ","), bound.bind("\n")
    apart, fits, field = f"replace(line, {delimiter}, {newline})", "TRUE", "nullif({0}, '')"
    if dialect.quote:
        q, qq = bound.bind(dialect.quote), bound.bind(dialect.quote * 2)
        outside = f"(s, i) -> IF(i % 2 = 0, replace(s, {delimiter}, {newline}), s)"
        pieces = f"array_join(transform(split(line, {q}, -1), {outside}), {q})"
        quoted = f"contains(line, {q})"
        apart = f"IF({quoted}, {pieces}, {apart})"
        inside = "substring({0}, 2, char_length({0}) - 2)"
        paired = f"NOT contains(replace({inside.format('f')}, {qq}, ''), {q})"
        whole = f"startswith(f, {q}) AND endswith(f, {q}) AND char_length(f) > 1 AND {paired}"
        fits = f"IF({quoted}, forall(found, f -> NOT contains(f, {q}) OR ({whole})), TRUE)"
        field = f"IF(startswith({{0}}, {q}), replace({inside}, {qq}, {q}), {field})"
    listed = ", ".join(f"{field.format(f'get(found, {place})')} AS f{i}" for i, place in enumerate(at))
    found = f"SELECT line, split({apart}, {newline}, -1) AS found FROM {source}"
    return f"SELECT {listed} FROM ({found}) WHERE size(found) = {width} AND {fits}"


# ── types ────────────────────────────────────────────────────────────────────────────


def _types(
    session: "SparkSession",
    fields: str,
    wanted: Sequence[str],
    schema: Mapping[str, Type] | None,
    dates: str,
    bound: Parameters,
) -> list[Type]:
    """The types of the columns, as stated or the narrowest; every field is looked at either way."""
    tried = [text.TYPES] * len(wanted) if schema is None else [(schema[name],) for name in wanted]
    bindings = of_fields(len(wanted), bound)
    outputs, counts = [], []
    for i, types in enumerate(tried):
        outputs.append((f"f{i}", bindings.columns[f"f{i}"]))
        counts.append(f"count_if(f{i} <> '')")
        for type_ in types:
            name = f"{type_.value}_{i}"
            outputs.append((name, bindings.output(text.fits(Column(f"f{i}"), type_, dates))))
            counts.append(f"count_if(f{i} <> '' AND {name})")
    sql = f"SELECT {', '.join(counts)} FROM ({bindings.select(fields, outputs)})"
    found = iter(session.sql(sql, args=bound.given()).collect()[0])
    return [_type_of(name, types, found, schema is None) for name, types in zip(wanted, tried, strict=True)]


def _type_of(name: str, types: Sequence[Type], found: Iterator[Any], narrowest: bool) -> Type:
    present = next(found)
    fitting = {type_: next(found) for type_ in types}
    if narrowest:
        return next((t for t in types if present and fitting[t] == present), Type.STRING)
    (type_,) = types
    check_some_fit(name, type_, present > 0, fitting[type_] > 0)
    return type_
