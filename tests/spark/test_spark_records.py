"""A record more leaves all others as they were, however the data comes in to Spark."""

from itertools import count
from typing import Any

import pytest

from engines import encodings
from engines.generators import canonical
from engines.test_conformance import bag
from engines.test_records import as_arrow, as_dicts, as_polars, in_a_file, in_a_folder, tables
from fpinq.model.expressions import Schema
from fpinq.model.plans import RootTable
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
