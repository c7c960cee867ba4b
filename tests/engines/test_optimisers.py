"""What DuckDB's optimisers may go by: sizes and values where nobody has to be steady, footers never."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from engines.test_steady import Steady
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.duckdb.database import BY_SIZE, BY_VALUES, INTO_READING
from fpinq.model.expressions import Type
from fpinq.model.plans import RootTable
from fpinq.model.statistics import Records

ROWS = [{"x": 1}, {"x": 2}]


@pytest.fixture
def path(tmp_path: Path) -> str:
    found = str(tmp_path / "x.parquet")
    duckdb.execute(f"COPY (SELECT 1 AS x) TO '{found}'")
    return found


@pytest.fixture(params=[DuckDB, Steady])
def engine(request: pytest.FixtureRequest) -> Iterator[DuckDB]:
    engine = request.param()
    yield engine
    engine.close()


def disabled(engine: DuckDB) -> set[str]:
    ((found,),) = engine._database.connection.execute(
        "SELECT current_setting('disabled_optimizers')"
    ).fetchall()
    return set(found.split(","))


def known() -> set[str]:
    return {name for (name,) in duckdb.execute("SELECT name FROM duckdb_optimizers()").fetchall()}


def test_values_of_tables_of_our_own_are_gone_by_where_nobody_has_to_be_steady(engine: DuckDB) -> None:
    engine.add_root("t", ROWS)
    assert disabled(engine).isdisjoint(BY_VALUES) is not engine.steady
    assert disabled(engine).isdisjoint(BY_SIZE) is not engine.steady
    assert disabled(engine) >= known().intersection(INTO_READING).difference(BY_VALUES)


@pytest.mark.parametrize("file_first", [True, False])
def test_once_there_is_a_file_nothing_is_gone_by_that_a_footer_could_say(
    engine: DuckDB, path: str, file_first: bool
) -> None:
    for name, source in sorted({"f": path, "t": ROWS}.items(), reverse=not file_first):
        engine.add_root(name, source)
    assert disabled(engine) >= known().intersection(INTO_READING)
    assert [engine.measure(RootTable(name), None, [Records()]) for name in "ft"] == [[{0: 1}], [{0: 2}]]


def test_it_is_decided_before_the_data_is_looked_at() -> None:
    found = []
    for rows in ([], ROWS, ROWS * 500, [{"x": None}]):
        engine = DuckDB()
        engine.add_root("t", rows, {"x": Type.INT64})
        found.append(disabled(engine))
        engine.close()
    assert found == found[:1] * 4
