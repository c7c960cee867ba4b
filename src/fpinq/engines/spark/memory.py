"""What is in memory as a Spark frame, copied there now: pandas, polars, pyarrow, a list of dicts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fpinq.engines.rows import check_present
from fpinq.model.errors import BadData, BadExpression
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Type, type_of_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(session: "SparkSession", source: object, schema: Mapping[str, Type] | None) -> "DataFrame":
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
        table = table.select(list(schema))
    return _valid(table)


def _valid(table: Any) -> Any:
    """The table, if its text is text: Arrow's may be any bytes."""
    import pyarrow as pa

    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        raise BadData("a column has values that its type does not have, or text that is not UTF-8") from None
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
        return Type.TIMESTAMP, _micros(column).cast(pa.timestamp("us"))
    if pa.types.is_null(found):
        raise BadData(f"column {name!r} has no values: state its type, schema={{{name!r}: …}}")
    raise BadData(
        f"column {name!r} has a type that rows do not have: convert it, "
        "or leave it out by naming the others in schema={…}"
    )


def _micros(column: Any) -> Any:
    """Timestamps as microseconds since 1970; null where 64 bits are too few."""
    import pyarrow as pa
    import pyarrow.compute as pc

    times = {"s": 10**6, "ms": 10**3}.get(column.type.unit)
    if times is None:
        return column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    ticks = column.cast(pa.int64())
    fits = pc.and_(pc.less_equal(ticks, INT64_MAX // times), pc.greater_equal(ticks, -INT64_MAX // times))
    return pc.multiply(pc.if_else(fits, ticks, pa.scalar(None, pa.int64())), times)


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
