"""Data frames as Python's values: their columns have the types that the frame states.

For the reference engine; the other engines read frames by the same rule where
they are. Columns of objects state none: theirs is the rule for objects.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fpinq.engines import rows
from fpinq.model.errors import BadData
from fpinq.model.expressions import COLUMN_TYPES, Type, Value

_FRAMES = {("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame"), ("pyarrow", "Table")}
_PACKAGES = {"numpy", "pandas", "polars", "pyarrow"}
# What pandas, polars and pyarrow call their types, in small letters.
_TYPES = {
    r"bool": Type.BOOL,
    r"u?int\d": Type.INT64,
    r"float|double|halffloat|decimal": Type.FLOAT64,
    r"str$|(large_)?string|categorical|enum|extension<arrow\.uuid>": Type.STRING,
    r"datetime|timestamp": Type.TIMESTAMP,
    r"date(?!64)": Type.DATE,  # in milliseconds a date may have hours: engines cut them differently
}


def is_frame(source: object) -> bool:
    """Whether a source is a data frame of pandas or polars, or a table of pyarrow."""
    return (_package(source), type(source).__name__) in _FRAMES


def of_frame(source: Any, schema: Mapping[str, Type] | None) -> rows.Columns:
    """The columns of a data frame: those of the schema, or all there are."""
    frame = source.lazy().collect() if _package(source) == "polars" else source
    found = _columns(frame)
    wanted = list(found if schema is None else schema)
    if not wanted:
        raise BadData("the data has no columns" if schema is None else "a schema needs one or more columns")
    missing = [name for name in wanted if name not in found]
    if missing:
        raise BadData(f"the data has no column {missing[0]!r}; its columns are: {', '.join(found) or 'none'}")
    objects = rows.of_objects(frame, schema)
    return {n: objects.get(n) or _column(n, _of_values(found[n]), (schema or {}).get(n)) for n in wanted}


def undefined(frame: Any) -> dict[str, str]:
    """Columns whose types are none of those above, and what they are called; columns of objects state none.

    No engine reads these, whatever it makes of them: codes that are encoded once more have been taken
    for values, and what a type of somebody's own stores for what it means.
    """
    if _package(frame) == "polars":
        types = dict(frame.collect_schema())
    elif _package(frame) == "pyarrow":
        types = dict(zip(frame.column_names, frame.schema.types, strict=True))
    else:
        types = dict(frame.dtypes)
    objects = rows.object_columns(frame)
    words = {name: _words(type_) for name, type_ in types.items() if name not in objects}
    return {name: said for name, said in words.items() if said != "null" and _defined(said) is None}


def _words(type_: Any) -> str:
    """What a type is called, in small letters: of pandas' categories and Arrow columns, what they hold."""
    if hasattr(type_, "pyarrow_dtype"):
        type_ = type_.pyarrow_dtype
    if _package(type_) not in _PACKAGES:  # it may call itself anything
        return "a type of somebody's own"
    if _package(type_) == "pandas" and hasattr(type_, "categories"):
        return str(type_.categories.dtype).lower()
    return str(type_).lower()


def _package(source: object) -> str:
    return type(source).__module__.partition(".")[0]


def _columns(frame: Any) -> dict[str, Any]:
    names = list(frame.column_names if _package(frame) == "pyarrow" else frame.columns)
    if not all(type(name) is str and name for name in names) or len(set(names)) != len(names):
        raise BadData("columns need different names that are strings")
    return {name: frame[name] for name in names}


def _of_values(column: Any) -> Any:
    """A column as it is, but pandas' categories as what they stand for, and its Arrow columns as Arrow's."""
    dtype = getattr(column, "dtype", None)
    if hasattr(dtype, "pyarrow_dtype"):
        import pyarrow

        return pyarrow.table({"x": column})["x"]
    categories = getattr(dtype, "categories", None) if _package(column) == "pandas" else None
    return column if categories is None else column.astype(categories.dtype)


def _column(name: str, column: Any, stated: Type | None) -> tuple[Type, list[Value]]:
    words = _words(column.type if hasattr(column, "type") else column.dtype)
    found = stated if words == "null" else _type(name, words)
    if found is None:
        raise BadData(f"column {name!r} has no values to tell its type by: state it, schema={{{name!r}: …}}")
    type_ = stated or found
    if type_ not in COLUMN_TYPES:
        raise BadData(f"column {name!r}: {type_!r} is not a type of a column")
    if type_ is not found and (found, type_) != (Type.INT64, Type.FLOAT64):
        raise BadData(f"column {name!r} is {found.value} in the data, not {type_.value} as the schema says")
    return type_, [rows.of_type(rows.of_type(value, found), type_) for value in _values(column, found)]


def _defined(words: str) -> Type | None:
    plain = words.removeprefix("dictionary<values=")
    return next((type_ for pattern, type_ in _TYPES.items() if re.match(pattern, plain)), None)


def _type(name: str, words: str) -> Type:
    found = _defined(words)
    if found is not None:
        return found
    raise BadData(
        f"column {name!r} has a type that rows do not have: convert it, "
        "or leave it out by naming the others in schema={…}"
    )


def _values(column: Any, type_: Type) -> list[Any]:
    if type_ not in (Type.DATE, Type.TIMESTAMP):
        return [rows.plain(v) for v in (column.to_pylist() if hasattr(column, "type") else column.to_list())]
    moments = [rows.plain(value) for value in _times(column)]
    return [m.date() if type_ is Type.DATE and isinstance(m, datetime) else m for m in moments]


def _times(column: Any) -> Sequence[Any]:
    """Dates and times as NumPy's, in UTC: Python's have fewer years, so that one would raise for all."""
    if hasattr(column, "type") and str(column.type).startswith("dictionary<"):
        column = column.cast(column.type.value_type)
    if _package(column) == "pandas":
        return list(column.to_numpy(f"datetime64[{column.dt.unit}]"))
    return list(column.to_numpy())
