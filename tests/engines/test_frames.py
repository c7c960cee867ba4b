"""A data frame states the types of its columns, and every engine reads it by them."""

from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from engines.test_conformance import bag
from fpinq.engines.duckdb import DuckDB
from fpinq.model.errors import BadData
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import RootTable
from fpinq.runtime import ReferenceEngine

FAR = [0, None, 570_000_000_000, -(10**11)]  # seconds: 1970, nothing, the years 20032 and −1199
ARROW: dict[str, Any] = {
    "bool": pa.array([True, None]),
    "int8": pa.array([1, None], pa.int8()),
    "uint64": pa.array([1, 2**63, None], pa.uint64()),
    "float32": pa.array([1.5, None], pa.float32()),
    "no float": pa.array([float("nan"), None], pa.float64()),
    "decimal": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
    "string": pa.array(["a", None]),
    "large string": pa.array(["a", None], pa.large_string()),
    "no string": pa.array([None], pa.string()),
    "dictionary": pa.array(["a", None]).dictionary_encode(),
    "integers in a dictionary": pa.array([1, None]).dictionary_encode(),
    "date": pa.array([0, None, 10**7, -(10**6)], pa.date32()),
    "seconds": pa.array(FAR, pa.timestamp("s")),
    "seconds in a zone": pa.array(FAR, pa.timestamp("s", "Asia/Tokyo")),
    "milliseconds": pa.array([0, None, 570_000_000_000_000], pa.timestamp("ms")),
    "nanoseconds in a zone": pa.array([5, None], pa.timestamp("ns", "America/New_York")),
    "null": pa.nulls(2),
    "list": pa.array([[1], None]),
    "struct": pa.array([{"a": 1}, None]),
    "duration": pa.array([1, None], pa.duration("us")),
    "time": pa.array([1, None], pa.time64("us")),
    "empty": pa.array([], pa.int32()),
}
CODES = pa.array(["b", "a", None]).dictionary_encode()
RUNS: dict[str, Any] = {
    "runs": pa.RunEndEncodedArray.from_arrays([1, 3], pa.array(["a", None])),
    "runs of codes": pa.RunEndEncodedArray.from_arrays([1, 2, 3], CODES),
    "truths of 8 bits": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())),
    "texts of JSON": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None])),
    "codes of codes": pa.DictionaryArray.from_arrays(pa.array([0, None]), CODES),
}
PANDAS: dict[str, Any] = {
    "bool": pd.Series([True, False]),
    "boolean": pd.Series([True, None], dtype="boolean"),
    "int": pd.Series([1, 2], dtype="uint8"),
    "Int": pd.Series([1, None], dtype="Int64"),
    "float": pd.Series([1.5, None], dtype="float32"),
    "no float": pd.Series([np.nan, np.nan]),
    "string": pd.Series(["a", None], dtype="string"),
    "categories": pd.Series(["a", None], dtype=pd.CategoricalDtype(pd.Index(["a"], dtype="string"))),
    "integers as categories": pd.Series([1, 2]).astype("category"),
    "times as categories": pd.Series(np.array([5, 10**18], "datetime64[ns]")).astype("category"),
    "seconds": pd.Series(np.array(["1970", "NaT", "20000", "-0500"], "datetime64[s]")),
    "in a zone": pd.Series(np.array([5, 10**18], "datetime64[ns]")).dt.tz_localize("Asia/Tokyo"),
    "in a zone that turns back": pd.Series(pd.date_range("2024-11-03", periods=9, freq="h", tz="US/Eastern")),
    "interval": pd.Series(pd.interval_range(0, 2)),
    "period": pd.Series(pd.period_range("2020", periods=2, freq="M")),
    "timedelta": pd.Series([pd.Timedelta(1)]),
    "objects": pd.Series([1, None], dtype=object),
}
FRAMES: dict[str, Any] = {
    **{f"arrow {name}": pa.table({"x": column}) for name, column in (ARROW | RUNS).items()},
    **{f"polars {name}": pl.DataFrame({"x": pl.Series(column)}) for name, column in ARROW.items()},
    "polars lazy": pl.LazyFrame({"x": [1, None]}),
    "polars category": pl.DataFrame({"x": pl.Series(["a", None], dtype=pl.Categorical)}),
    "polars enum": pl.DataFrame({"x": pl.Series(["a", None], dtype=pl.Enum(["a"]))}),
    **{f"pandas {name}": pd.DataFrame({"x": column}) for name, column in PANDAS.items()},
    **{
        f"pandas of arrow {name}": pa.table({"x": column}).to_pandas(types_mapper=pd.ArrowDtype)
        for name, column in ARROW.items()
    },
}


@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_codes_that_are_encoded_once_more_are_not_taken_for_values(kind: str) -> None:
    """DuckDB reads the codes of such a column, and one record more changes those of all others."""
    table = pa.table({"x": RUNS["runs of codes"], "y": [1, 2, 3]})
    frame = table if kind == "arrow" else table.to_pandas(types_mapper=pd.ArrowDtype)
    engine = DuckDB()
    with pytest.raises(BadData, match="'x' has a type that rows do not have"):
        engine.add_root("t", frame)
    assert engine.add_root("t", frame, {"y": Type.INT64}).names() == ("y",)
    engine.close()


def read(engine: Any, name: str, frame: Any, type_: Type | None) -> tuple[Schema, Any] | type[BadData]:
    """The schema and the rows, or that it was refused."""
    try:
        schema = engine.add_root(name, frame, {"x": type_} if type_ else None)
        return schema, bag(engine.rows(RootTable(name)).rows)
    except BadData:
        return BadData


@pytest.mark.parametrize("kind", sorted(FRAMES))
def test_the_reference_reads_a_frame_as_duckdb_does(kind: str) -> None:
    if kind.endswith(" null") and duckdb.__version__ < "2":
        pytest.skip("DuckDB 1 says that a column of Arrow's type null is one of integers")
    plain, engine = ReferenceEngine(), DuckDB()
    for stated in (None, *Type):
        found = [read(one, f"as {stated}", FRAMES[kind], stated) for one in (plain, engine)]
        assert found[0] == found[1], stated
    engine.close()
