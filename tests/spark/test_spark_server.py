"""A data set on Spark behind the server: the same answers and charges over HTTP, parts in one job."""

import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY, SURE
from fpinq import _
from fpinq.model.errors import BadTransformation, ProgramError
from fpinq.server import DataSet, TableConfig
from fpinq.server.config import parse
from server.live import serve
from spark.test_spark_engine import jobs


@pytest.fixture
def configuration(tmp_path: Path) -> Any:
    """What an owner writes: one data set on Spark, one in DuckDB."""
    (tmp_path / "people.parquet").mkdir()
    pq.write_table(pa.Table.from_pylist(PEOPLE), tmp_path / "people.parquet" / "part-0.parquet")
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "small.parquet")
    return {
        "spark": {"master": "local[2]", "conf": {"spark.sql.shuffle.partitions": "2"}},
        "datasets": {
            "people": {"path": "people.parquet", "budget": PLENTY, "engine": "spark", "rows_at_most": 100},
            "small": {"path": "small.parquet", "budget": 1, "rows_at_most": 100},
        },
    }


def test_a_data_set_on_spark_is_asked_over_http_with_its_parts_in_one_job(
    spark: Any, configuration: Any, tmp_path: Path
) -> None:
    config = parse(configuration, tmp_path)
    with serve(tmp_path, config.data_sets, spark=config.spark) as live:
        catalog = live.connect()
        people, small = catalog["people"], catalog["small"]
        before = jobs(spark)
        answers = people.query(SURE, fp.average(_.age, bounds=(0, 100)), by=_.gender, keys=[0, 1, 2])
        assert jobs(spark) - before == 1
        assert [round(answers[gender].value) for gender in (0, 1)] == [30, 40]
        assert live.left("people") == PLENTY - SURE
        assert people.join(people, "id").noisy_count(SURE).value == 6
        with pytest.raises(BadTransformation, match="different engines"):
            people.join(small, "id").noisy_count("1/10")
        assert small.noisy_count("1/10").charged == Fraction(1, 10)


def test_a_query_of_spark_that_takes_too_long_is_cancelled_and_its_charge_stands(
    spark: Any, unread: None, tmp_path: Path
) -> None:
    slow = spark._sessions[0].range(10**12).withColumnRenamed("id", "x")
    with serve(tmp_path, {}, limits={"query_seconds": 2}) as live:
        # A frame that is never read in full: its contents are not asked for.
        engine = live.house._engine("spark")
        engine.fingerprint = lambda source: (None, 0, 0)
        engine.rows_in = lambda root: {root: 1}
        table = TableConfig(slow)
        live.house.add(DataSet("slow", Fraction(1), {"slow": table}, engine="spark"))
        data = live.connect()["slow"]
        with pytest.raises(fp.EngineError):
            data.noisy_sum("1/2", _.x % 7, bounds=(0, 9))
        assert live.left("slow") == Fraction(1, 2)
        tracker = spark._sessions[0].sparkContext.statusTracker()
        until = time.monotonic() + 30
        while tracker.getActiveJobsIds() and time.monotonic() < until:
            time.sleep(0.1)
        assert not tracker.getActiveJobsIds()


def test_urls_and_tables_of_a_catalog_are_not_paths_below_the_configuration(tmp_path: Path) -> None:
    written = {
        "budget": 1,
        "rows_at_most": 10**9,
        "engine": "spark",
        "path": ["s3a://bucket/x.parquet", "table:lake.people", "x.csv"],
    }
    table = parse({"datasets": {"people": written}}, tmp_path).data_sets["people"].tables["people"]
    assert table.source == ["s3a://bucket/x.parquet", "table:lake.people", str(tmp_path / "x.csv")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"master": "local", "remote": "sc://x"},
        {"workers": 3},
        {"master": ""},
        {"conf": {"spark.executor.memory": 8}},
        {"conf": "x"},
        "local",
    ],
)
def test_a_mistake_in_the_sparks_settings_is_found_at_the_start(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(ProgramError, match="spark"):
        parse({"spark": wrong}, tmp_path)
