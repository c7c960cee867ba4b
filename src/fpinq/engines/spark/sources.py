"""Data of all kinds to relations with our six types.

Files and tables are read where they are, each time, by the workers; what is in
memory is copied to Spark now. Conversions are those that lose nothing; what has
no value in our types becomes null (NaN, an unsigned integer above 2⁶³ − 1, a
date outside the years 1 to 9999).

| found | becomes |
|---|---|
| integers of any size | int64 |
| float, double, decimal | float64 |
| string, char, varchar of any collation | string, compared by code point |
| date; timestamp_ntz | date; timestamp |
| timestamp (an instant) | timestamp in UTC |

Anything else (arrays, structs, binary, intervals) is refused, with the advice
to leave it out: a schema names the columns to read, the others are not.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from fpinq.engines.files import Files, is_files, resolve
from fpinq.engines.spark import files, lines, memory
from fpinq.engines.spark.dialect import SQL
from fpinq.engines.sql import sources as common
from fpinq.engines.sql.sources import Converted
from fpinq.engines.text import Dialect
from fpinq.model.errors import BadData
from fpinq.model.expressions import (
    INT64_MAX,
    INT64_MIN,
    Schema,
    Type,
)
from fpinq.model.frozen import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

TABLE = "table:"

_FIRST_DAY, _LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
_FIRST_MOMENT = "TIMESTAMP_NTZ '0001-01-01 00:00:00'"
_LAST_MOMENT = "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"


# ── where data is ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Incoming:
    """Data on its way in: how many records it has, if its files say so, and whether they still hold."""

    frame: "DataFrame"
    records: int | None = None
    hold: Callable[[], bool] | None = None
    checked: bool = False


def is_elsewhere(source: object) -> bool:
    """Whether a source is not on this machine: a url, a table of the catalog, a Spark DataFrame."""
    many = source if isinstance(source, list | tuple) else [source]
    urls = any(files.is_url(one) or (isinstance(one, str) and one.startswith(TABLE)) for one in many)
    return urls or is_spark_frame(source)


def is_spark_frame(source: object) -> bool:
    """Whether a source is a Spark DataFrame."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame"


def incoming(
    session: "SparkSession",
    view: lines.View,
    source: Any,
    schema: Mapping[str, Type] | None,
    dialect: Dialect | None,
) -> Incoming:
    """A source as a frame."""
    if is_spark_frame(source):
        return Incoming(source)
    if isinstance(source, str) and source.startswith(TABLE):
        return Incoming(session.table(source.removeprefix(TABLE)))
    if not is_files(source):
        return Incoming(memory.read(session, source, schema), checked=True)
    if is_elsewhere(source):
        return _elsewhere(session, view, files.resolve(session, source), schema, dialect)
    return _here(session, view, resolve(source), schema, dialect)


def urls_of(source: Any) -> tuple[str, ...]:
    """The words of a source that has urls; none of anything else."""
    many = source if isinstance(source, list | tuple) else [source]
    return tuple(map(str, many)) if any(files.is_url(one) for one in many) else ()


def hold_of(session: "SparkSession", source: Any) -> Callable[[], bool]:
    """Tells whether files that only the cluster can see still are what they are now."""
    return partial(files.resolve(session, source).hold, session)


def lines_elsewhere(session: "SparkSession", source: Any) -> "DataFrame | None":
    """The lines of files of text that only the cluster can see; None of anything else."""
    if not urls_of(source):
        return None
    found = files.resolve(session, source)
    return lines.raw(session, found.urls) if found.format == "csv" else None


def _elsewhere(
    session: "SparkSession",
    view: lines.View,
    found: files.Elsewhere,
    schema: Mapping[str, Type] | None,
    dialect: Dialect | None,
) -> Incoming:
    hold = partial(found.hold, session)
    if found.format == "parquet":
        files.check_columns(session, found.urls)
        frame = files.read(session, found.urls, "parquet")
        return Incoming(frame, frame.count(), hold)  # without any column: from the footers
    text = lines.elsewhere(session, found)
    return Incoming(lines.read(session, view, text, schema, dialect), hold=hold, checked=True)


def _here(
    session: "SparkSession",
    view: lines.View,
    found: Files,
    schema: Mapping[str, Type] | None,
    dialect: Dialect | None,
) -> Incoming:
    if found.format == "parquet":
        records = files.check_footers(found)
        urls = [files.url_of(path) for path in found.paths]
        return Incoming(files.read(session, urls, "parquet"), records, found.hold)
    text = lines.here(found)
    return Incoming(lines.read(session, view, text, schema, dialect), hold=found.hold, checked=True)


def identifier(name: str) -> str:
    """A column name of the owner's as SQL."""
    return "`" + name.replace("`", "``") + "`"


# ── types ────────────────────────────────────────────────────────────────────────────


def convert(found: "StructType", schema: Mapping[str, Type] | None) -> list[Converted]:
    """The columns found, as ours; only those of the schema, in its order, if there is one."""
    types = _types(found)
    return common.convert(types, schema, lambda name: _convert(name, types[name]), SQL)


def readable(found: "StructType") -> list[Converted]:
    """The columns found that rows can have: what a table is known by."""
    types = _types(found)
    return common.readable(types, lambda name: _convert(name, types[name]))


def _types(found: "StructType") -> dict[str, str]:
    names = [field.name for field in found.fields]
    if len(set(names)) != len(names):
        raise BadData("columns need different names")
    return {field.name: field.dataType.simpleString() for field in found.fields}


def _convert(name: str, found: str) -> Converted | None:
    sql = identifier(name)
    kind = found.partition("(")[0].partition(" ")[0]
    match kind:
        case "boolean":
            return Converted(name, Type.BOOL, sql)
        case "tinyint" | "smallint" | "int" | "bigint":
            return Converted(name, Type.INT64, f"CAST({sql} AS BIGINT)")
        case "float" | "double":
            return Converted(name, Type.FLOAT64, f"CAST({sql} AS DOUBLE)", raw=True)
        case "decimal" if found == "decimal(20,0)":  # how Spark reads unsigned 64-bit integers
            inside = (
                f"{sql} BETWEEN CAST('{INT64_MIN}' AS DECIMAL(20,0)) AND CAST('{INT64_MAX}' AS DECIMAL(20,0))"
            )
            return Converted(name, Type.INT64, f"CAST(CASE WHEN {inside} THEN {sql} END AS BIGINT)")
        case "decimal":
            return Converted(name, Type.FLOAT64, f"CAST({sql} AS DOUBLE)")
        case "string" | "char" | "varchar":
            return Converted(name, Type.STRING, f"CAST({sql} AS STRING) COLLATE UTF8_BINARY")
        case "date":
            inside = f"{sql} BETWEEN {_FIRST_DAY} AND {_LAST_DAY}"
            return Converted(name, Type.DATE, f"CASE WHEN {inside} THEN {sql} END")
        case "timestamp" | "timestamp_ntz":
            local = sql if kind == "timestamp_ntz" else f"CAST({sql} AS TIMESTAMP_NTZ)"
            inside = f"{local} BETWEEN {_FIRST_MOMENT} AND {_LAST_MOMENT}"
            return Converted(name, Type.TIMESTAMP, f"CASE WHEN {inside} THEN {local} END")
        case "void":
            return None
    raise common.unreadable(name, kind.partition("<")[0])


def check_values(session: "SparkSession", relation: str, shape: Schema, records: int | None) -> None:
    """Read everything once, as it is going to be read: BadData if a value cannot be, or is not UTF-8,
    or if there are not as many records as the files say.
    """
    texts = [(i, name) for i, (name, type_) in enumerate(shape.columns) if type_ is Type.STRING]
    wrong = [f"count_if(NOT is_valid_utf8(c{i}))" for i, _ in texts]
    # A hash looks at every value; counting would not decode them.
    looked = f"bit_xor(xxhash64({', '.join(f'c{i}' for i in range(len(shape.columns)))}))"
    listed = ", ".join(["count(*)", looked, *wrong])
    found = session.sql(f"SELECT {listed} FROM {relation}").collect()[0]
    for (_, name), count in zip(texts, found[2:], strict=True):
        if count:
            raise BadData(f"column {name!r} has text that is not UTF-8: convert it, or leave it out")
    if records is not None and found[0] != records:
        raise BadData("Spark does not find as many records as the files say that they have")


def fingerprint(relation: str, columns: int) -> str:
    """The SQL of how many records a relation has, and of the sums of the 32-bit limbs of their SHA-256s."""
    # With its length before it, no value can run into the next.
    texts = [f"CAST(c{i} AS STRING)" for i in range(columns)]
    record = ", ".join(f"coalesce(concat(length({text}), ':', {text}), '-')" for text in texts)
    limbs = [f"conv(substring(h, {8 * i + 1}, 8), 16, 10)" for i in range(8)]
    sums = ", ".join(f"sum(CAST({limb} AS DECIMAL(10, 0)))" for limb in limbs)
    return f"SELECT count(*), {sums} FROM (SELECT sha2(concat({record}), 256) AS h FROM {relation})"
