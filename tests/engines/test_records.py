"""A record more or less leaves all others as they were, however the data comes in."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.encodings import ARROW, writing_of
from engines.generators import Draw, Generator, Rows, canonical
from engines.test_conformance import EXAMPLES, bag, thorough
from fpinq.engines import reference
from fpinq.engines.duckdb import DuckDB
from fpinq.model.expressions import Schema
from fpinq.model.plans import RootTable
from fpinq.runtime import ReferenceEngine


def in_a_file(folder: Path, schema: Schema, rows: Rows) -> Any:
    return writing_of(rows).write(folder / "x.parquet", schema, rows)


def in_a_folder(folder: Path, schema: Schema, rows: Rows) -> Any:
    """The last record in a file of its own, the others in two."""
    for number, part in enumerate((rows[:-1:2], rows[1:-1:2], rows[-1:])):
        writing_of(part).write(folder / f"{number}.parquet", schema, part)
    return folder


def as_dicts(folder: Path, schema: Schema, rows: Rows) -> Any:
    return [dict(zip(schema.names(), row, strict=True)) for row in rows]


def as_arrow(folder: Path, schema: Schema, rows: Rows) -> Any:
    arrays = [pa.array([row[i] for row in rows], ARROW[type_]) for i, type_ in enumerate(schema.types())]
    return pa.table(arrays, names=list(schema.names()))


def as_polars(folder: Path, schema: Schema, rows: Rows) -> Any:
    return pl.from_arrow(as_arrow(folder, schema, rows))


def as_pandas(folder: Path, schema: Schema, rows: Rows) -> Any:
    return as_arrow(folder, schema, rows).to_pandas(types_mapper=pd.ArrowDtype)


def by_duckdb(source: Any, schema: Schema) -> Counter[str]:
    engine = DuckDB()
    assert engine.add_root("t", source, schema=dict(schema.columns)) == schema
    found = bag(engine.rows(RootTable("t")).rows)
    engine.close()
    return found


def by_reference(source: Any, schema: Schema) -> Counter[str]:
    engine = ReferenceEngine()
    assert engine.add_root("t", source, schema=dict(schema.columns)) == schema
    table = engine._database["t"]
    assert isinstance(table, reference.Relation)
    return bag(table.rows)


WAYS = [(by_duckdb, way) for way in (in_a_file, in_a_folder, as_dicts, as_arrow, as_polars)]
WAYS += [(by_reference, way) for way in (as_dicts, as_arrow, as_polars, as_pandas)] + [(by_duckdb, as_pandas)]


@st.composite
def tables(draw: Draw) -> tuple[Schema, Rows]:
    g = Generator(draw)
    schema = g.schema()
    rows = list(g.rows(schema))
    return schema, rows or [tuple(None for _ in schema.types())]


@pytest.mark.parametrize(("read", "way"), WAYS, ids=lambda f: f.__name__)
@thorough(EXAMPLES // 200)
@given(table=tables())
def test_one_more_record_leaves_all_others_as_they_were(
    tmp_path_factory: Any,
    read: Callable[[Any, Schema], Counter[str]],
    way: Callable[[Path, Schema, Rows], Any],
    table: tuple[Schema, Rows],
) -> None:
    schema, rows = table
    before = read(way(tmp_path_factory.mktemp("before"), schema, rows[:-1]), schema)
    after = read(way(tmp_path_factory.mktemp("after"), schema, rows), schema)
    assert after == before + bag(canonical(schema, rows[-1:]))
