"""Values as Python has them, whose types nobody has stated: lists of dicts, and columns of objects.

The same for every engine. With a schema, a value of another type than it says
is null: no record has a say in how the others are read. Without one, the type
is the one that all values have.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from fpinq.engines.files import TEXT, is_files, resolve
from fpinq.model.errors import BadData, BadExpression, suggest
from fpinq.model.expressions import Schema, Type, Value, checked_value, type_of_value

Columns = dict[str, tuple[Type, list[Value]]]

# Known by what they are: a class may say that it equals another.
_OWN = frozenset(map(id, (bool, int, float, str, date, datetime, type(None))))
_FINER = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}


def is_rows(source: object) -> bool:
    """Whether a source is a list of dicts."""
    return isinstance(source, list | tuple) and all(isinstance(row, Mapping) for row in source)


def object_columns(source: Any) -> list[str]:
    """The columns of a data frame that hold any objects, not values of one type."""
    kind = type(source)
    package = kind.__module__.partition(".")[0]
    if package == "pandas" and kind.__name__ == "DataFrame":
        return [name for name, dtype in source.dtypes.items() if _is_of_objects(dtype)]
    if package == "polars" and kind.__name__ in ("DataFrame", "LazyFrame"):
        return [name for name, dtype in source.collect_schema().items() if str(dtype) == "Object"]
    return []


def _is_of_objects(dtype: Any) -> bool:
    categories = getattr(dtype, "categories", None)
    if (
        categories is not None
    ):  # of pandas: texts are texts, but other types change where one value is missing
        return str(categories.dtype) not in ("str", "string")
    return str(dtype) == "object"


def states_types(source: Any, *, elsewhere: bool = False) -> bool:
    """Whether a source says itself of which types its columns are: parquet, typed frames and tables do.

    elsewhere: an engine's own source. There all but a name of text does.
    """
    if elsewhere:
        return not any(one.lower().endswith(TEXT) for one in _names(source))
    if is_rows(source):
        return not source
    if is_files(source):
        return resolve(source).format != "csv"
    return not object_columns(source)


def written(schema: Schema) -> str:
    """A schema in the words that state it."""
    return "{" + ", ".join(f'"{name}": "{type_.value}"' for name, type_ in schema.columns) + "}"


def _names(source: Any) -> list[str]:
    given = source if isinstance(source, list | tuple) else [source]
    return [one for one in given if isinstance(one, str)]


def of_rows(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Type] | None) -> Columns:
    """The columns of a list of dicts: those of the schema, or all there are; a missing value is null."""
    names = list(schema) if schema is not None else list(dict.fromkeys(name for row in rows for name in row))
    if not all(type(name) is str and name for name in names):
        raise BadData("columns need different names that are strings")
    if not names:
        raise BadData("the data has no rows and no schema: state it, schema={'age': 'int64', …}")
    check_present(rows, names)
    return {name: column(name, [row.get(name) for row in rows], (schema or {}).get(name)) for name in names}


def of_objects(source: Any, schema: Mapping[str, Type] | None) -> Columns:
    """The columns of objects of a data frame, those of the schema if there is one."""
    wanted = [name for name in object_columns(source) if schema is None or name in schema]
    if not wanted:
        return {}
    frame = source.lazy().collect() if hasattr(source, "lazy") else source
    return {name: column(name, frame[name].to_list(), (schema or {}).get(name)) for name in wanted}


def column(name: str, values: Iterable[Any], stated: Type | None) -> tuple[Type, list[Value]]:
    """A column's type, and its values as values of it; BadData if they tell no type, or none is of it."""
    given = [plain(value) for value in values]
    type_ = stated or _read_off(name, given)
    found = [of_type(value, type_) for value in given]
    if stated is not None:
        some, fit = (any(value is not None for value in these) for these in (given, found))
        check_some_fit(name, type_, some, fit)
    return type_, found


def of_type(value: Any, type_: Type) -> Value:
    """A value as one of a type; null if it is none."""
    if id(type(value)) not in _OWN:
        return None
    try:
        return checked_value(float(value) if type(value) is int and type_ is Type.FLOAT64 else value, type_)
    except (BadExpression, OverflowError):
        return None


def plain(value: Any) -> Any:
    """A value as Python's own: scalars of NumPy and pandas, decimals and UUIDs are converted.

    What says nothing is null, and so is what cannot be converted, whatever it raises.
    """
    try:
        found = _python(value)
    except Exception:  # an object's own code, or a value that Python's type does not have
        return None
    return None if type(found) is float and found != found else found


def _python(value: Any) -> Any:
    kind = type(value)  # what it is: __class__ is what it says
    if id(kind) in _OWN:
        return value
    import numpy as np  # seldom needed

    if issubclass(kind, np.datetime64):
        return _moment(value)
    scalars = np.bool_ | np.integer | np.floating | np.str_
    if issubclass(kind, scalars) and not issubclass(kind, np.timedelta64):
        return value.item()
    if kind.__module__.partition(".")[0] == "pandas":
        return value.to_pydatetime(warn=False) if kind.__name__ == "Timestamp" else None
    if kind is Decimal:
        return float(value)
    return str(value) if kind is UUID else value


def _moment(value: Any) -> datetime | None:
    """A time of NumPy's in whole microseconds, those before it; null outside the years 1 to 9999."""
    import numpy as np

    unit, step = np.datetime_data(value.dtype)
    if np.isnat(value):
        return None
    if unit in _FINER:  # in Python's integers: NumPy's division wraps around at both ends
        value = np.datetime64(int(value.astype(np.int64)) * step // _FINER[unit], "us")
    year = int(value.astype("datetime64[Y]").astype(np.int64)) + 1970  # fits 64 bits; microseconds may not
    return value.astype("datetime64[us]").item() if 1 <= year <= 9999 else None


def _read_off(name: str, values: Sequence[Any]) -> Type:
    """The type that all values have. Integers among floats are floats."""
    try:
        found = {type_of_value(value) for value in values if value is not None}
        for value in values:
            if type(value) is not int:  # one that is too large is null
                checked_value(value, type_of_value(value) if value is not None else Type.STRING)
    except BadExpression as error:
        raise BadData(f"column {name!r}: {error}") from None
    if found == {Type.INT64, Type.FLOAT64}:
        return Type.FLOAT64
    if not found:
        raise BadData(f"column {name!r} has no values to tell its type by: state it, schema={{{name!r}: …}}")
    if len(found) > 1:
        raise BadData(
            f"column {name!r}: its values have several types; state one, schema={{{name!r}: …}}: "
            "values of another are null then"
        )
    return found.pop()


def check_present(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> None:
    """BadData if no row has a column that the schema says there is: a misspelling, not a lot of nulls."""
    missing = [name for name in names if rows and not any(name in row for row in rows)]
    if missing:
        there = sorted({str(name) for row in rows for name in row})
        raise BadData(f"no row has a column {missing[0]!r}{suggest(missing[0], there)}")


def check_some_fit(name: str, type_: Type, some: bool, fit: bool) -> None:
    """BadData if a column has values, but none of its type: a type that was misspelt, not a lot of nulls."""
    if some and not fit:
        raise BadData(f"column {name!r} is not {type_.value}, as the schema says: none of its values is")
