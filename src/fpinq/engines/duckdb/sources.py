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

Of nanoseconds the whole microseconds before them stay, before 1970 too, on every engine.

Anything else (lists, structs, blobs, times, intervals, dates in milliseconds, types
of somebody's own) is refused, with the advice to leave it out: a schema names the
columns to read, the others are not.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from fpinq.engines import frames, rows
from fpinq.engines.duckdb.dialect import SQL, SQL_TYPES
from fpinq.engines.sql import sources as common
from fpinq.engines.sql.sources import Converted
from fpinq.model.errors import BadData
from fpinq.model.expressions import (
    INT64_MAX,
    INT64_MIN,
    Type,
)

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_WIDE_INTEGERS = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_NANOSECONDS = {"TIMESTAMP_NS", "TIMESTAMPTZ_NS"}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP WITH TIME ZONE"} | _NANOSECONDS


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


def convert(
    columns: Iterable[tuple[str, str, str]],
    schema: Mapping[str, Type] | None,
    ours: Mapping[str, Converted] | None = None,
) -> list[Converted]:
    """Columns found (name, type, SQL) as ours: those of the schema, in its order, if there is one.

    Some may be ours already.
    """
    found = {name: (type_, sql) for name, type_, sql in columns}
    ready = ours or {}
    return common.convert(found, schema, lambda name: ready.get(name) or _convert(name, *found[name]), SQL)


def _convert(name: str, found: str, sql: str) -> Converted | None:
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
        # Of whole numbers of 128 bits DuckDB may make the double beside the nearest; of their text, not.
        digits = f"CAST({sql} AS VARCHAR)" if re.fullmatch(r"DECIMAL\((19|[23]\d),\s*0\)", found) else sql
        return Converted(name, Type.FLOAT64, f"CAST({digits} AS DOUBLE)")
    if kind in ("VARCHAR", "ENUM", "UUID", "JSON"):
        return Converted(name, Type.STRING, f"CAST({sql} AS VARCHAR)")
    if kind == "DATE":
        return Converted(name, Type.DATE, _in_our_years(sql, kind))
    if kind in _TIMESTAMPS:
        return Converted(name, Type.TIMESTAMP, _timestamp(sql, kind))
    if kind == '"NULL"':
        return None
    raise common.unreadable(name, kind.lower())


def _in_our_years(sql: str, kind: str) -> str:
    last = "9999-12-31" if kind == "DATE" else "9999-12-31 23:59:59"
    if kind == "TIMESTAMP_NS":  # 1677 to 2262: always ours, but for ±infinity
        return f"CASE WHEN isfinite({sql}) THEN {sql} END"
    if kind == "TIMESTAMPTZ_NS":
        return f"CASE WHEN {sql} > '-infinity'::{kind} AND {sql} < 'infinity'::{kind} THEN {sql} END"
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
    if kind in _NANOSECONDS:  # versions of DuckDB cast differently, and none down
        nanos = f"epoch_ns({_in_our_years(sql, kind)})"
        down = f"CASE WHEN {nanos} % 1000 < 0 THEN 1 ELSE 0 END"
        return f"make_timestamp(({nanos} - {nanos} % 1000) // 1000 - {down})"
    if kind != "TIMESTAMP WITH TIME ZONE":
        return f"CAST({_in_our_years(sql, kind)} AS TIMESTAMP)"
    # In UTC, without the time zone database: through microseconds since 1970.
    micros = f"epoch_us(CASE WHEN isfinite({sql}) THEN {sql} END)"
    low, high = -62_135_596_800_000_000, 253_402_300_799_999_999
    return f"make_timestamp(CASE WHEN {micros} BETWEEN {low} AND {high} THEN {micros} END)"


# ── in memory ────────────────────────────────────────────────────────────────────────


def in_memory(
    source: Any, schema: Mapping[str, Type] | None, describe: Callable[[object], Mapping[str, str]]
) -> tuple[object, list[Converted]]:
    """Something that DuckDB reads without a look at its values, and its columns; BadData if it is none.

    It has columns x0, x1, …, and v0, v1, … that say which values of objects are there.
    """
    if rows.is_rows(source):
        arrays, ours = _arrays(rows.of_rows(source, schema), {})
        return arrays, list(ours.values())
    frame, names = _frame(source)
    places = {name: i for i, name in enumerate(names)}
    arrays, ours = _arrays(rows.of_objects(source, schema), places)
    objects = [f"x{places[name]}" for name in rows.object_columns(source)]
    frame = _replaced(frame, objects, arrays)
    if not names:
        raise BadData("the data has no columns")
    found = describe(frame) if len(names) > len(objects) else {}
    found = {**found, **frames.undefined(frame)}
    triples = [(n, found.get(f"x{i}", '"NULL"'), f"x{i}") for n, i in places.items()]
    return frame, convert([(n, t, x) for n, t, x in triples if n in ours or x not in objects], schema, ours)


def _replaced(frame: Any, objects: Sequence[str], arrays: Mapping[str, Any]) -> Any:
    """A frame with arrays in place of its columns of objects."""
    if not objects:
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas":
        return frame.drop(columns=objects).assign(**arrays)
    import polars

    series = [
        polars.Series(name, array.tolist() if array.dtype == object else array)
        for name, array in arrays.items()
    ]
    return frame.drop(objects).with_columns(series)


def _frame(source: object) -> tuple[Any, list[str]]:
    """A data frame with columns named x0, x1, …, and their names; BadData if it is none."""
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
        # A copy lies in memory in the order of its rows: DuckDB reads no array backwards, as of frame[::-1].
        return _in_utc(frame.set_axis([f"x{i}" for i in range(len(names))], axis=1).copy()), names
    if package == "pyarrow" and kind.__name__ == "Table":
        names = _names(frame.column_names)
        return frame.rename_columns([f"x{i}" for i in range(len(names))]), names
    raise BadData(
        f"cannot read {kind.__name__}: use a path or glob of parquet or csv, a pandas or polars DataFrame, "
        "a pyarrow Table or a list of dicts"
    )


def _in_utc(frame: Any) -> Any:
    """A frame of pandas with its times in UTC, without a zone: DuckDB cuts nanoseconds where there is one."""
    zoned = [name for name, dtype in frame.dtypes.items() if getattr(dtype, "tz", None) is not None]
    return frame.assign(**{name: frame[name].dt.tz_convert("UTC").dt.tz_localize(None) for name in zoned})


def _names(columns: Sequence[object]) -> list[str]:
    names = [name for name in columns if type(name) is str and name]
    if len(names) != len(columns) or len(set(names)) != len(names):
        raise BadData("columns need different names that are strings")
    return names


_DTYPES = {
    Type.BOOL: "bool",
    Type.INT64: "int64",
    Type.FLOAT64: "float64",
    Type.STRING: "object",
    Type.DATE: "datetime64[us]",
    Type.TIMESTAMP: "datetime64[us]",
}
_FILLERS: dict[Type, Any] = {
    Type.STRING: "",
    Type.DATE: datetime(1970, 1, 1),
    Type.TIMESTAMP: datetime(1970, 1, 1),
}


def _arrays(columns: rows.Columns, places: Mapping[str, int]) -> tuple[dict[str, Any], dict[str, Converted]]:
    """Arrays x0, x1, … of values and v0, v1, … that say which are there, and the columns they make."""
    import numpy as np  # slow to import, and parquet does without

    arrays: dict[str, Any] = {}
    ours: dict[str, Converted] = {}
    for number, (name, (type_, values)) in enumerate(columns.items()):
        i = places.get(name, number)
        there = np.array([value is not None for value in values], dtype=bool)
        present = [_FILLERS.get(type_, 0) if value is None else value for value in values]
        text = type_ is Type.STRING
        arrays[f"x{i}"] = (
            np.array([None, *present], object)[1:] if text else np.array(present, _DTYPES[type_])
        )
        arrays[f"v{i}"] = there
        # A mask would say the same, but DuckDB has read masked values as 0.
        sql = f"CASE WHEN v{i} THEN CAST(x{i} AS {SQL_TYPES[type_]}) END"
        ours[name] = Converted(name, type_, sql, type_ is Type.FLOAT64)
    return arrays, ours
