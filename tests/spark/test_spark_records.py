"""A record more leaves all others as they were, however the data comes in to Spark."""

from datetime import date, datetime
from itertools import count
from typing import Any

import pandas as pd
import pytest

from engines import encodings
from engines.generators import canonical
from engines.test_conformance import bag
from engines.test_records import as_arrow, as_dicts, as_polars, in_a_file, in_a_folder, tables
from fpinq.model.errors import BadData
from fpinq.model.expressions import COLUMN_TYPES, Schema
from fpinq.model.plans import RootTable
from fpinq.runtime import ReferenceEngine
from spark.test_spark_text import drawn

_number = count()


@pytest.fixture(autouse=True)
def no_brotli(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark does not read it."""
    readable = [writing for writing in encodings._SOME if writing.compression != "brotli"]
    monkeypatch.setattr(encodings, "_SOME", readable)


def read(spark: Any, source: Any, schema: Schema) -> Any:
    name = f"record{next(_number)}"
    assert spark.add_root(name, source, schema=dict(schema.columns)) == schema
    return bag(spark.rows(RootTable(name)).rows)


@pytest.mark.parametrize("way", [in_a_file, in_a_folder, as_dicts, as_arrow, as_polars])
def test_one_more_record_leaves_all_others_as_they_were(spark: Any, tmp_path_factory: Any, way: Any) -> None:
    for schema, rows in drawn(tables(), 6):
        before = read(spark, way(tmp_path_factory.mktemp("before"), schema, rows[:-1]), schema)
        after = read(spark, way(tmp_path_factory.mktemp("after"), schema, rows), schema)
        assert after == before + bag(canonical(schema, rows[-1:]))


MIXED = [1, 2.5, True, "x", "1", None, float("nan"), 2**63, date(2024, 2, 29), datetime(2024, 2, 29, 1), b"x"]


def test_a_value_of_another_type_than_stated_is_null_and_changes_no_other(spark: Any) -> None:
    schema = Schema.of({f"c{i}": type_ for i, type_ in enumerate(COLUMN_TYPES)})
    rows = [dict.fromkeys(schema.names(), value) for value in MIXED]
    reference = ReferenceEngine()
    reference.add_root("t", rows, dict(schema.columns))
    expected = bag(reference.rows(RootTable("t")).rows)
    assert read(spark, rows, schema) == expected
    objects = pd.DataFrame({name: pd.Series(MIXED, dtype=object) for name in schema.names()})
    assert read(spark, objects, schema) == expected
    with pytest.raises(BadData, match="not a value of a row"):
        spark.add_root("mixed", objects)
