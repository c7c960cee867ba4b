"""Every engine but the reference itself: one suite for all of them."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from engines.encodings import writing_of
from fpinq.engines.duckdb import DuckDB
from fpinq.model.expressions import Schema, Type

ENGINES = {"duckdb": DuckDB}

_files = count()


def write_parquet(path: Path, schema: Schema, rows: list[Any]) -> Path:
    """Rows as a file, written in some way; always the same for the same rows."""
    return writing_of(rows).write(path, schema, rows)


class OnFiles:
    """An engine that is given files where a test gives rows."""

    def __init__(self, engine: Any, folder: Path) -> None:
        self._engine, self._folder = engine, folder

    def add_root(self, name: str, source: list[dict[str, Any]], schema: dict[str, Type]) -> Schema:
        rows = [tuple(row[column] for column in schema) for row in source]
        path = write_parquet(self._folder / f"{next(_files)}.parquet", Schema.of(schema), rows)
        return self._engine.add_root(name, path)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@pytest.fixture(scope="module", params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = ENGINES[request.param]()
    yield made
    made.close()


@pytest.fixture(params=["rows", "files"])
def loaded(request: pytest.FixtureRequest, engine: Any, tmp_path: Path) -> Iterator[Any]:
    """An engine that is given rows, or a fresh one that is given files."""
    if request.param == "rows":
        yield engine
        return
    made = type(engine)()
    yield OnFiles(made, tmp_path)
    made.close()
