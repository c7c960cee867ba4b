"""Data of all kinds to relations with our six types.

Parquet is read where it is, each time; everything else is copied, so that
what was protected cannot change underneath. Conversions are those that lose
nothing; what has no value in our types becomes null (NaN, an unsigned integer
above 2⁶³ − 1, a date outside the years 1 to 9999).

| found | becomes |
|---|---|
| integers of any size | int64 |
| float, double, decimal | float64 |
| text, categories, UUIDs | string |
| dates; timestamps of any unit | date; timestamp in microseconds |
| timestamps with a time zone | timestamp in UTC |

Anything else (lists, structs, blobs, times, intervals) is refused, with the
advice to leave it out: a schema names the columns to read, the others are not.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from fpinq.engines.duckdb.expressions import SQL_TYPES, canonical_float
from fpinq.engines.rows import check_present
from fpinq.model.errors import BadData, BadExpression
from fpinq.model.expressions import (
    COLUMN_TYPES,
    INT64_MAX,
    INT64_MIN,
    Schema,
    Type,
    type_of_value,
)
from fpinq.model.operators import MAX_STRING

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_WIDE_INTEGERS = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"}


@dataclass(frozen=True)
class Converted:
    """A column of ours: its name and type, the SQL that makes it, and whether it is a float as found."""

    name: str
    type: Type
    sql: str
    raw: bool = False


def quote(text: str) -> str:
    """A string of the owner's (a path, a column of a csv file) as SQL."""
    if "\0" in text:
        raise BadData("a file or column name cannot contain a NUL character")
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A column name of the owner's as SQL."""
    if "\0" in name:
        raise BadData("a file or column name cannot contain a NUL character")
    return '"' + name.replace('"', '""') + '"'


def convert(columns: Iterable[tuple[str, str, str]], schema: Mapping[str, Type] | None) -> list[Converted]:
    """Columns found (name, type, SQL) as ours: those of the schema, in its order, if there is one."""
    found = {name: (type_, sql) for name, type_, sql in columns}
    if schema is None:
        return [_convert(name, type_, sql) for name, (type_, sql) in found.items()]
    if not schema:
        raise BadData("a schema needs one or more columns")
    converted = []
    for name, wanted in schema.items():
        if wanted not in COLUMN_TYPES:
            raise BadData(f"column {name!r}: {wanted!r} is not a type of a column")
        if name not in found:
            raise BadData(f"the data has no column {name!r}; its columns are: {', '.join(found) or 'none'}")
        converted.append(_convert_to(name, *found[name], wanted))
    return converted


def _convert_to(name: str, found: str, sql: str, wanted: Type) -> Converted:
    if found == '"NULL"':
        return Converted(name, wanted, f"NULL::{SQL_TYPES[wanted]}")
    column = _convert(name, found, sql)
    if column.type is wanted:
        return column
    if (column.type, wanted) == (Type.INT64, Type.FLOAT64):
        return Converted(name, wanted, f"CAST({column.sql} AS DOUBLE)")
    raise BadData(
        f"column {name!r} is {column.type.value} in the data, not {wanted.value} as the schema says"
    )


def _convert(name: str, found: str, sql: str) -> Converted:
    kind = re.sub(r"\(.*", "", found, flags=re.DOTALL)
    if found.endswith("]") or kind in ("STRUCT", "MAP", "UNION"):
        kind = "a nested type"
    if kind == "BOOLEAN":
        return Converted(name, Type.BOOL, sql)
    if kind in _INTEGERS:
        return Converted(name, Type.INT64, f"CAST({sql} AS BIGINT)")
    if kind in _WIDE_INTEGERS:
        low = "" if kind.startswith("U") else f"{sql} >= '{INT64_MIN}'::HUGEINT AND "
        safe = f"CASE WHEN {low}{sql} <= '{INT64_MAX}'::{kind} THEN {sql} END"
        return Converted(name, Type.INT64, f"CAST({safe} AS BIGINT)")
    if kind in ("DOUBLE", "FLOAT"):
        return Converted(name, Type.FLOAT64, f"CAST({sql} AS DOUBLE)", raw=True)
    if kind == "DECIMAL":
        return Converted(name, Type.FLOAT64, f"CAST({sql} AS DOUBLE)")
    if kind in ("VARCHAR", "ENUM", "UUID", "JSON"):
        return Converted(name, Type.STRING, f"CAST({sql} AS VARCHAR)")
    if kind == "DATE":
        return Converted(name, Type.DATE, _in_our_years(sql, kind))
    if kind in _TIMESTAMPS:
        return Converted(name, Type.TIMESTAMP, _timestamp(sql, kind))
    if kind == '"NULL"':
        raise BadData(f"column {name!r} has no values to tell its type by: state it, schema={{{name!r}: …}}")
    raise BadData(
        f"column {name!r} has a type that rows do not have ({kind.lower()}): convert it, "
        "or leave it out by naming the others in schema={…}"
    )


def _in_our_years(sql: str, kind: str) -> str:
    last = "9999-12-31" if kind == "DATE" else "9999-12-31 23:59:59"
    if kind == "TIMESTAMP_NS":  # 1677 to 2262: always ours, but for ±infinity
        return f"CASE WHEN isfinite({sql}) THEN {sql} END"
    after = (
        ""
        if kind == "DATE"
        else ".999999"
        if kind == "TIMESTAMP"
        else ".999"
        if kind == "TIMESTAMP_MS"
        else ""
    )
    return f"CASE WHEN {sql} >= '0001-01-01'::{kind} AND {sql} <= '{last}{after}'::{kind} THEN {sql} END"


def _timestamp(sql: str, kind: str) -> str:
    if kind != "TIMESTAMP WITH TIME ZONE":
        return f"CAST({_in_our_years(sql, kind)} AS TIMESTAMP)"
    # In UTC, without the time zone database: through microseconds since 1970.
    micros = f"epoch_us(CASE WHEN isfinite({sql}) THEN {sql} END)"
    low, high = -62_135_596_800_000_000, 253_402_300_799_999_999
    return f"make_timestamp(CASE WHEN {micros} BETWEEN {low} AND {high} THEN {micros} END)"


def within_lengths(columns: Iterable[Converted], lengths: Mapping[str, int]) -> list[Converted]:
    """The columns with null in place of every text that is longer than its column's public length."""
    return [_within(c, lengths.get(c.name, MAX_STRING)) if c.type is Type.STRING else c for c in columns]


def _within(column: Converted, most: int) -> Converted:
    # Bytes are counted at once, characters only where there are more bytes than that.
    short = f"strlen({column.sql}) <= {most} OR length({column.sql}) <= {most}"
    return replace(column, sql=f"CASE WHEN {short} THEN {column.sql} END")


def as_relation(
    columns: Sequence[Converted], source: str, *, lazy: bool, row: str | None = None
) -> tuple[str, Schema, frozenset[int]]:
    """The SELECT of converted columns as c0, c1, … (and its row's number i), and which may hold NaN or −0.

    These stay only where the data is read again each time: not every use of a
    column needs them removed.
    """
    if not columns:
        raise BadData("the data has no columns")
    listed = ", ".join(
        f"{canonical_float(column.sql) if column.raw and not lazy else column.sql} AS c{i}"
        for i, column in enumerate(columns)
    )
    if row is not None:
        listed += f", {row} AS i"
    raw = frozenset(i for i, column in enumerate(columns) if column.raw and lazy)
    return f"SELECT {listed} FROM {source}", Schema(tuple((c.name, c.type) for c in columns)), raw


# ── in memory ────────────────────────────────────────────────────────────────────────


def frame_of(source: object) -> tuple[object, list[str]]:
    """Something DuckDB can read, with columns named x0, x1, …, and their names; BadData if it is none."""
    kind = type(source)
    package = kind.__module__.partition(".")[0]
    frame: Any = source
    if package == "polars" and kind.__name__ in ("DataFrame", "LazyFrame"):
        frame = frame.lazy().collect()
        names = _names(frame.columns)
        frame.columns = [f"x{i}" for i in range(len(names))]
        return frame, names
    if package == "pandas" and kind.__name__ == "DataFrame":
        names = _names(list(frame.columns))
        return frame.set_axis([f"x{i}" for i in range(len(names))], axis=1), names
    if package == "pyarrow" and kind.__name__ == "Table":
        names = _names(frame.column_names)
        return frame.rename_columns([f"x{i}" for i in range(len(names))]), names
    raise BadData(
        f"cannot read {kind.__name__}: use a path or glob of parquet or csv, a pandas or polars DataFrame, "
        "a pyarrow Table or a list of dicts"
    )


def _names(columns: Sequence[object]) -> list[str]:
    names = [name for name in columns if type(name) is str and name]
    if len(names) != len(columns) or len(set(names)) != len(names):
        raise BadData("columns need different names that are strings")
    return names


def is_rows(source: object) -> bool:
    """Whether a source is a list of dicts."""
    return isinstance(source, list | tuple) and all(isinstance(row, Mapping) for row in source)


def rows_of(
    rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Type] | None
) -> tuple[dict[str, Any], list[Converted]]:
    """Arrays x0, x1, … of the values under each name, v0, v1, … that say which are there, and the columns."""
    names = list(schema) if schema is not None else list(dict.fromkeys(name for row in rows for name in row))
    _names(names)
    check_present(rows, names)
    if not names:
        raise BadData("the data has no rows and no schema: state it, schema={…}")
    arrays: dict[str, Any] = {}
    columns: list[Converted] = []
    for i, name in enumerate(names):
        values = [row.get(name) for row in rows]
        type_ = _type_of_values(name, values, schema[name] if schema is not None else None)
        arrays[f"x{i}"], arrays[f"v{i}"] = _arrays(values, type_)
        # A mask would say the same, but DuckDB has read masked values as 0.
        sql = f"CASE WHEN v{i} THEN CAST(x{i} AS {SQL_TYPES[type_]}) END"
        columns.append(Converted(name, type_, sql, type_ is Type.FLOAT64))
    return arrays, columns


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


_DTYPES = {
    Type.BOOL: "bool",
    Type.INT64: "int64",
    Type.FLOAT64: "float64",
    Type.DATE: "datetime64[us]",
    Type.TIMESTAMP: "datetime64[us]",
}
_FILLERS: dict[Type, Any] = {
    Type.STRING: "",
    Type.DATE: datetime(1970, 1, 1),
    Type.TIMESTAMP: datetime(1970, 1, 1),
}


def _arrays(values: Sequence[Any], type_: Type) -> tuple[Any, Any]:
    """The values, and which of them are there."""
    there = np.array([value is not None and _ours(value) for value in values], dtype=bool)
    filler = _FILLERS.get(type_, 0)
    present = [value if is_there else filler for value, is_there in zip(values, there, strict=True)]
    if type_ is Type.STRING:
        return np.array([None, *present], dtype=object)[1:], there
    return np.array(present, dtype=_DTYPES[type_]), there


def _ours(value: object) -> bool:
    return not (type(value) is int and not INT64_MIN <= value <= INT64_MAX)


def check_text(rows: Sequence[Mapping[str, Any]]) -> None:
    """BadData if a string is not Unicode text, or a timestamp has a time zone."""
    for row in rows:
        for name, value in row.items():
            if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
                raise BadData(f"column {name!r} has a string with a lone surrogate")
            if isinstance(value, datetime) and value.tzinfo is not None:
                raise BadData(f"column {name!r} has time zones: convert to UTC and drop them")
