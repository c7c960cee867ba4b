"""Every engine but the reference itself: one suite for all of them."""

from collections.abc import Iterator
from typing import Any

import pytest

from fpinq.engines.duckdb import DuckDB

ENGINES = {"duckdb": DuckDB}


@pytest.fixture(scope="module", params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = ENGINES[request.param]()
    yield made
    made.close()
