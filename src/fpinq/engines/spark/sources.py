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

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpinq.engines.rows import check_present
from fpinq.engines.spark.expressions import SQL_TYPES
from fpinq.model.errors import BadData, BadExpression
from fpinq.model.expressions import (
    COLUMN_TYPES,
    INT64_MAX,
    INT64_MIN,
    Schema,
    Type,
    type_of_value,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
TABLE = "table:"

_FIRST_DAY, _LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
_FIRST_MOMENT = "TIMESTAMP_NTZ '0001-01-01 00:00:00'"
_LAST_MOMENT = "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"


# ── pins ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Pin:
    """A file as it was when it was protected."""

    path: str
    size: int
    modified: int
    inode: int

    @staticmethod
    def of(path: str) -> "Pin":
        """The file as it is now."""
        found = os.stat(path)
        return Pin(path, found.st_size, found.st_mtime_ns, found.st_ino)


@dataclass(frozen=True)
class Pins:
    """The files that patterns stood for when they were protected."""

    patterns: tuple[str, ...]
    files: frozenset[Pin]

    @staticmethod
    def of(patterns: Sequence[str]) -> "Pins":
        """The files as they are now."""
        found = frozenset(Pin.of(path) for pattern in patterns for path in _files(pattern))
        return Pins(tuple(patterns), found)

    def hold(self) -> bool:
        """Whether the same files are there, unchanged, and no others."""
        try:
            return Pins.of(self.patterns) == self
        except OSError:
            return False


def _files(pattern: str) -> Iterator[str]:
    """The files of a path, a directory or a glob that Spark would read."""
    for path in [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern)):
        if not os.path.isdir(path):
            yield os.path.realpath(path)
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = [name for name in folders if not name.startswith(("_", "."))]
            yield from (os.path.join(folder, n) for n in names if not n.startswith(("_", ".")))


# ── files and tables ─────────────────────────────────────────────────────────────────


def is_paths(source: object) -> bool:
    """Whether a source is a path, a glob, a catalog table's name, or a list of paths."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(item, str | Path) for item in source)
    return isinstance(source, str | Path)


def is_elsewhere(source: object) -> bool:
    """Whether a source is not on this machine: a url, a table of the catalog, a Spark DataFrame."""
    many = source if isinstance(source, list | tuple) else [source]
    urls = any(isinstance(one, str) and (_is_remote(one) or one.startswith(TABLE)) for one in many)
    return urls or is_spark_frame(source)


def is_spark_frame(source: object) -> bool:
    """Whether a source is a Spark DataFrame."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame"


def read_paths(
    session: "SparkSession", source: Any, schema: Mapping[str, Type] | None
) -> tuple["DataFrame", Pins | None]:
    """A frame over files or a catalog table, and the files if they are on this machine."""
    if isinstance(source, str) and source.startswith(TABLE):
        return session.table(source.removeprefix(TABLE)), None
    given = [source] if isinstance(source, str | Path) else list(source)
    paths = [_path(path) for path in given]
    pins = None
    if not any(_is_remote(path) for path in paths):
        pins = Pins.of(paths)
        for path in paths:
            if not any(True for _ in _files(path)):
                raise BadData(f"no such file: {path}")
    names = [pin.path for pin in pins.files] if pins is not None else paths
    formats = {_format(name) for name in names}
    if len(formats) > 1:
        raise BadData("the files of one table must have one format: all parquet or all csv")
    urls = [path if _is_remote(path) else _local_url(path) for path in paths]
    if formats == {"parquet"}:
        # Of the same types in every file; a column that some files lack is found now, not at a measurement.
        return session.read.option("mergeSchema", True).parquet(*urls), pins
    return _read_csv(session, urls, schema, tabs=any(".tsv" in name.lower() for name in names)), pins


def _path(path: str | Path) -> str:
    text = os.fspath(path)
    return text if _is_remote(text) else os.path.abspath(os.path.expanduser(text))


def _is_remote(path: str) -> bool:
    return "://" in path


def _local_url(path: str) -> str:
    """A path of this machine as Spark wants it; what is no glob must not be read as one."""
    if os.path.exists(path):
        path = "".join(f"\\{c}" if c in "\\{}[]*?" else c for c in path)
    return f"file:{path}"


def _format(path: str) -> str:
    name = path.lower().rstrip("/")
    if name.endswith(_CSV):
        return "csv"
    if name.endswith(_PARQUET) or _is_remote(path):
        return "parquet"
    raise BadData(f"{path} is neither parquet nor csv, by its name: convert it, or rename it")


def _read_csv(
    session: "SparkSession", urls: Sequence[str], schema: Mapping[str, Type] | None, *, tabs: bool
) -> "DataFrame":
    """csv with a header. A line that does not fit the types is found now, not at a measurement."""
    reader = session.read.options(
        header=True,
        mode="FAILFAST",
        multiLine=True,
        escape='"',
        sep="\t" if tabs else ",",
        enforceSchema=False,
    )
    if schema is None:
        frame = reader.option("inferSchema", True).csv(list(urls))
    else:
        names = reader.csv(list(urls)).columns
        # A column that the schema does not name is not read, so its type is all the same.
        types = [SQL_TYPES[schema[name]] if name in schema else "STRING" for name in names]
        listed = ", ".join(f"{identifier(n)} {t}" for n, t in zip(names, types, strict=True))
        frame = reader.schema(listed).csv(list(urls))
    wanted = [name for name in frame.columns if schema is None or name in schema]
    checked = frame.selectExpr(*(f"count({identifier(name)})" for name in wanted))
    checked.collect()
    return frame


def identifier(name: str) -> str:
    """A column name of the owner's as SQL."""
    return "`" + name.replace("`", "``") + "`"


# ── types ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Converted:
    """A column of ours: its name and type, the SQL that makes it, and whether it is a float as found."""

    name: str
    type: Type
    sql: str
    raw: bool = False


def convert(found: "StructType", schema: Mapping[str, Type] | None) -> list[Converted]:
    """The columns found, as ours; only those of the schema, in its order, if there is one."""
    names = [field.name for field in found.fields]
    if len(set(names)) != len(names):
        raise BadData("columns need different names")
    types = {field.name: field.dataType.simpleString() for field in found.fields}
    if schema is None:
        if not types:
            raise BadData("the data has no columns")
        return [_convert(name, type_) for name, type_ in types.items()]
    if not schema:
        raise BadData("a schema needs one or more columns")
    converted = []
    for name, wanted in schema.items():
        if wanted not in COLUMN_TYPES:
            raise BadData(f"column {name!r}: {wanted!r} is not a type of a column")
        if name not in types:
            raise BadData(f"the data has no column {name!r}; its columns are: {', '.join(types) or 'none'}")
        converted.append(_convert_to(name, types[name], wanted))
    return converted


def _convert_to(name: str, found: str, wanted: Type) -> Converted:
    if found == "void":
        return Converted(name, wanted, f"CAST(NULL AS {SQL_TYPES[wanted]})")
    column = _convert(name, found)
    if column.type is wanted:
        return column
    if (column.type, wanted) == (Type.INT64, Type.FLOAT64):
        return Converted(name, wanted, f"CAST({column.sql} AS DOUBLE)")
    raise BadData(
        f"column {name!r} is {column.type.value} in the data, not {wanted.value} as the schema says"
    )


def _convert(name: str, found: str) -> Converted:
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
            raise BadData(f"column {name!r} has no values: state its type, schema={{{name!r}: …}}")
    raise BadData(
        f"column {name!r} has a type that rows do not have: convert it, "
        "or leave it out by naming the others in schema={…}"
    )


def as_relation(columns: Sequence[Converted], view: str) -> tuple[str, Schema, frozenset[int]]:
    """The converted columns of a view as c0, c1, …, to select FROM; which of them are raw floats."""
    listed = ", ".join(f"{column.sql} AS c{i}" for i, column in enumerate(columns))
    raw = frozenset(i for i, column in enumerate(columns) if column.raw)
    return f"(SELECT {listed} FROM {view})", Schema(tuple((c.name, c.type) for c in columns)), raw


def fingerprint(relation: str, columns: int) -> str:
    """The SQL of how many records a relation has, and of the sums of the 32-bit limbs of their SHA-256s."""
    # With its length before it, no value can run into the next.
    texts = [f"CAST(c{i} AS STRING)" for i in range(columns)]
    record = ", ".join(f"coalesce(concat(length({text}), ':', {text}), '-')" for text in texts)
    limbs = [f"conv(substring(h, {8 * i + 1}, 8), 16, 10)" for i in range(8)]
    sums = ", ".join(f"sum(CAST({limb} AS DECIMAL(10, 0)))" for limb in limbs)
    return f"SELECT count(*), {sums} FROM (SELECT sha2(concat({record}), 256) AS h FROM {relation})"


# ── in memory ────────────────────────────────────────────────────────────────────────


def read_memory(session: "SparkSession", source: object, schema: Mapping[str, Type] | None) -> "DataFrame":
    """A frame of what is in memory: pandas, polars, pyarrow, a list of dicts."""
    from pyspark.sql import types as spark

    table = _arrow(source, schema)
    fields = []
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        type_, plain = _plain(field.name, column)
        fields.append(spark.StructField(field.name, _SPARK_TYPES[type_](spark), True))
        columns.append(plain)
    import pyarrow as pa

    # Our own names: Spark resolves names with dots and quotes its own way.
    renamed = pa.table({f"x{i}": column for i, column in enumerate(columns)})
    shape = spark.StructType(
        [spark.StructField(f"x{i}", field.dataType, True) for i, field in enumerate(fields)]
    )
    return session.createDataFrame(renamed, shape).toDF(*(field.name for field in fields))


_SPARK_TYPES: dict[Type, Any] = {
    Type.BOOL: lambda spark: spark.BooleanType(),
    Type.INT64: lambda spark: spark.LongType(),
    Type.FLOAT64: lambda spark: spark.DoubleType(),
    Type.STRING: lambda spark: spark.StringType(),
    Type.DATE: lambda spark: spark.DateType(),
    Type.TIMESTAMP: lambda spark: spark.TimestampNTZType(),
}


def _arrow(source: object, schema: Mapping[str, Type] | None) -> Any:
    import pyarrow as pa

    kind = type(source)
    package = kind.__module__.partition(".")[0]
    frame: Any = source
    try:
        if isinstance(source, list | tuple) and all(isinstance(row, Mapping) for row in source):
            return _arrow_of_rows(source, schema)
        if package == "pandas" and kind.__name__ == "DataFrame":
            _check_names(list(frame.columns))
            table = pa.Table.from_pandas(frame, preserve_index=False)
        elif package == "polars" and kind.__name__ in ("DataFrame", "LazyFrame"):
            table = frame.lazy().collect().to_arrow()
        elif isinstance(source, pa.Table):
            table = source
        else:
            raise BadData(
                f"cannot read {kind.__name__}: use a path or glob of parquet or csv, 'table:name', a Spark, "
                "pandas or polars DataFrame, a pyarrow Table or a list of dicts"
            )
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise BadData("a column has values of several types") from None
    _check_names(table.column_names)
    if schema is not None and all(name in table.column_names for name in schema):
        return table.select(list(schema))
    return table


def _check_names(columns: Sequence[object]) -> None:
    names = [name for name in columns if type(name) is str and name]
    if not columns:
        raise BadData("the data has no columns")
    if len(names) != len(columns) or len(set(names)) != len(names):
        raise BadData("columns need different names that are strings")


def _plain(name: str, column: Any) -> tuple[Type, Any]:
    """An Arrow column as one of our types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    found = column.type
    if pa.types.is_boolean(found):
        return Type.BOOL, column
    if pa.types.is_uint64(found):
        fits = pc.less_equal(column, pa.scalar(INT64_MAX, pa.uint64()))
        return Type.INT64, pc.if_else(fits, column, pa.scalar(None, pa.uint64())).cast(pa.int64())
    if pa.types.is_integer(found):
        return Type.INT64, column.cast(pa.int64())
    if pa.types.is_floating(found) or pa.types.is_decimal(found):
        return Type.FLOAT64, column.cast(pa.float64())
    if pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found):
        return Type.STRING, column.cast(pa.string())
    if pa.types.is_date(found):
        return Type.DATE, column.cast(pa.date32())
    if pa.types.is_timestamp(found):
        # Arrow keeps instants in UTC: dropping the zone is all there is to do.
        micros = column.cast(pa.timestamp("us", found.tz), safe=False)
        return Type.TIMESTAMP, micros.cast(pa.int64()).cast(pa.timestamp("us"))
    if pa.types.is_null(found):
        raise BadData(f"column {name!r} has no values: state its type, schema={{{name!r}: …}}")
    raise BadData(
        f"column {name!r} has a type that rows do not have: convert it, "
        "or leave it out by naming the others in schema={…}"
    )


def _arrow_of_rows(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Type] | None) -> Any:
    """Arrays of the values under each name, missing ones null."""
    import pyarrow as pa

    arrow = {
        Type.BOOL: pa.bool_(),
        Type.INT64: pa.int64(),
        Type.FLOAT64: pa.float64(),
        Type.STRING: pa.string(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }
    names = list(schema) if schema is not None else list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        raise BadData("the data has no rows and no schema: state it, schema={…}")
    _check_names(names)
    check_present(rows, names)
    arrays = []
    for name in names:
        values = [row.get(name) for row in rows]
        type_ = _type_of_values(name, values, schema[name] if schema is not None else None)
        arrays.append(pa.array([_value(name, value) for value in values], arrow[type_]))
    return pa.table(arrays, names)


def _value(name: str, value: Any) -> Any:
    if type(value) is int and not INT64_MIN <= value <= INT64_MAX:
        return None
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        raise BadData(f"column {name!r} has a string with a lone surrogate")
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise BadData(f"column {name!r} has time zones: convert to UTC and drop them")
    return value


def _type_of_values(name: str, values: Sequence[object], wanted: Type | None) -> Type:
    try:
        found = {type_of_value(value) for value in values if value is not None}
    except BadExpression as error:
        raise BadData(f"column {name!r}: {error}") from None
    if found == {Type.INT64, Type.FLOAT64} or (found == {Type.INT64} and wanted is Type.FLOAT64):
        found = {Type.FLOAT64}
    if not found and wanted is not None:
        return wanted
    if len(found) != 1:
        advice = f"state its type, schema={{{name!r}: …}}" if not found else "its values have several types"
        raise BadData(f"column {name!r}: {advice}")
    if wanted is not None and found != {wanted}:
        raise BadData(
            f"column {name!r} is {found.pop().value} in the data, not {wanted.value} as the schema says"
        )
    return found.pop()
