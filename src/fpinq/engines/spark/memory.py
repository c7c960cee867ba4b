"""What is in memory as a Spark frame, copied there now: pandas, polars, pyarrow, a list of dicts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fpinq.engines import frames, rows
from fpinq.model.errors import BadData
from fpinq.model.expressions import INT64_MAX, Type

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


def _arrow(source: Any, schema: Mapping[str, Type] | None) -> Any:
    """An Arrow table of a source: what has types of its own as it is, objects as the rule for them says."""
    import pyarrow as pa

    if rows.is_rows(source):
        return _of_columns(rows.of_rows(source, schema))
    kind = type(source)
    package = kind.__module__.partition(".")[0]
    left_out = rows.object_columns(source)
    try:
        if package == "pandas" and kind.__name__ == "DataFrame":
            names = _checked_names(list(source.columns))
            table = pa.Table.from_pandas(source.drop(columns=left_out), preserve_index=False)
        elif package == "polars" and kind.__name__ in ("DataFrame", "LazyFrame"):
            names = _checked_names(source.collect_schema().names())
            table = source.lazy().drop(left_out).collect().to_arrow()
        elif isinstance(source, pa.Table):
            names, table = _checked_names(source.column_names), source
        else:
            raise BadData(
                f"cannot read {kind.__name__}: use a path or glob of parquet or csv, 'table:name', a Spark, "
                "pandas or polars DataFrame, a pyarrow Table or a list of dicts"
            )
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise BadData("a column has values of several types") from None
    undefined = frames.undefined(source)
    typed = {name: table.column(name) for name in names if name not in left_out}
    objects = _of_columns(rows.of_objects(source, schema))
    found = {**typed, **dict(zip(objects.column_names, objects.columns, strict=True))}
    wanted = schema if schema is not None and all(name in found for name in schema) else names
    if refused := [name for name in wanted if name in undefined]:
        raise _unreadable(refused[0])
    return _valid(pa.table({name: found[name] for name in wanted if name in found}))


def _of_columns(columns: rows.Columns) -> Any:
    """Values of known types as an Arrow table."""
    import pyarrow as pa

    arrow = {
        Type.BOOL: pa.bool_(),
        Type.INT64: pa.int64(),
        Type.FLOAT64: pa.float64(),
        Type.STRING: pa.string(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }
    return pa.table({name: pa.array(values, arrow[type_]) for name, (type_, values) in columns.items()})


def _valid(table: Any) -> Any:
    """The table, if its text is text: Arrow's may be any bytes."""
    import pyarrow as pa

    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        raise BadData("a column has values that its type does not have, or text that is not UTF-8") from None
    return table


def _checked_names(columns: Sequence[object]) -> list[str]:
    names = [name for name in columns if type(name) is str and name]
    if not columns:
        raise BadData("the data has no columns")
    if len(names) != len(columns) or len(set(names)) != len(names):
        raise BadData("columns need different names that are strings")
    return names


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
    if pa.types.is_decimal(found):  # through its text: Arrow divides, and is a bit off the nearest double
        return Type.FLOAT64, column.cast(pa.string()).cast(pa.float64())
    if pa.types.is_floating(found):
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
    raise _unreadable(name)


def _unreadable(name: str) -> BadData:
    return BadData(
        f"column {name!r} has a type that rows do not have: convert it, "
        "or leave it out by naming the others in schema={…}"
    )


def _micros(column: Any) -> Any:
    """Timestamps as whole microseconds since 1970, those before them; null where 64 bits are too few."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ticks = column.cast(pa.int64())
    if column.type.unit == "ns":
        micros = pc.divide(ticks, 1000)  # towards 1970
        return pc.subtract(micros, pc.less(ticks, pc.multiply(micros, 1000)).cast(pa.int64()))
    times = {"s": 10**6, "ms": 10**3, "us": 1}[column.type.unit]
    fits = pc.and_(pc.less_equal(ticks, INT64_MAX // times), pc.greater_equal(ticks, -INT64_MAX // times))
    return pc.multiply(pc.if_else(fits, ticks, pa.scalar(None, pa.int64())), times)
