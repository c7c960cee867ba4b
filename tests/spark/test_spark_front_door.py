"""fp.protect on Spark: every way to say which Spark and which data, jobs, charges, ledgers."""

import subprocess
import sys
import threading
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
from fpinq.ledger.errors import SameData
from fpinq.model.errors import BadData, DataChanged, ProgramError
from spark.test_spark_engine import jobs


def counted(table: Any) -> tuple[int, ...]:
    """A few exact numbers about the people."""
    adults = table.where(lambda x: x.age > 18)
    parts = adults.query(SURE, fp.sum(_.age, bounds=(0, 100)), by=_.gender, keys=[0, 1])
    return (table.noisy_count(SURE).value, *(answer.value for answer in parts.values()))


EXPECTED = (6, 80, 120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of parquet, as Spark writes it."""
    made = tmp_path / "people.parquet"
    made.mkdir()
    rows = pa.Table.from_pylist(PEOPLE)
    pq.write_table(rows.slice(0, 2), made / "part-0.parquet")
    pq.write_table(rows.slice(2), made / "part-1.parquet")
    (made / "_SUCCESS").touch()
    return made


@pytest.fixture
def saved(spark: Any, folder: Path) -> Any:
    """The people as a table of the catalog, and a way to change it."""
    session = spark._sessions[0]
    people = session.read.parquet(f"file:{folder}")
    people.write.option("path", f"file:{folder.parent}/saved").saveAsTable("saved_people")
    yield session
    session.sql("DROP TABLE saved_people")


# ── which Spark, which data ──────────────────────────────────────────────────────────


def test_spark_by_its_name(spark: Any, folder: Path) -> None:
    assert counted(fp.protect(folder, budget=PLENTY, engine="spark")) == EXPECTED
    assert counted(fp.protect(str(folder / "*.parquet"), budget=PLENTY, engine="spark")) == EXPECTED


def test_spark_by_its_settings(spark: Any, folder: Path) -> None:
    with pytest.raises(ProgramError, match="has a Spark already"):
        fp.protect(folder, budget=1, engine=fp.Spark(master="spark://elsewhere:7077"))
    engine = fp.Spark(master="local[2]", conf={"spark.sql.shuffle.partitions": "3"})
    assert counted(fp.protect(folder, budget=PLENTY, engine=engine)) == EXPECTED
    assert engine._sessions[1].conf.get("spark.sql.shuffle.partitions") == "3"
    engine.close()
    assert counted(fp.protect(folder, budget=PLENTY, engine="spark")) == EXPECTED


def test_spark_by_a_session_that_is_there(spark: Any, folder: Path) -> None:
    theirs = spark._sessions[0].newSession()
    engine = fp.Spark(session=theirs)
    frame = theirs.read.parquet(f"file:{folder}").where("age < 100")
    assert counted(fp.protect(frame, budget=PLENTY, engine=engine)) == EXPECTED
    engine.close()


def test_a_table_of_the_catalog(spark: Any, saved: Any) -> None:
    engine = fp.Spark(session=saved)
    assert counted(fp.protect("table:saved_people", budget=PLENTY, engine=engine)) == EXPECTED
    engine.close()


def test_a_driver_without_memory_fails_instead_of_waiting_for_ever(folder: Path) -> None:
    program = """
import os, sys
import fpinq as fp

engine = fp.Spark(master="local[1]", conf={"spark.driver.memory": "500m"})
data = fp.protect(sys.argv[1], budget=10**10, engine=engine)
print("COUNT", data.noisy_count(10**9).value, data.remaining, flush=True)
gateway = engine._sessions[0].sparkContext._gateway
full = []
try:
    while True:
        full.append(gateway.new_array(gateway.jvm.long, 2_000_000))
except Exception:
    pass
try:
    data.where(lambda row: row.age > 0).noisy_count(10**9)
except fp.EngineError:
    print("ENGINE ERROR", data.remaining, flush=True)
os._exit(0)
"""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(folder)],
        capture_output=True,
        text=True,
        timeout=400,
        check=True,
    )
    said = found.stdout.splitlines()
    assert said[0] == f"COUNT 6 {9 * 10**9}"
    assert said[-1] == f"ENGINE ERROR {8 * 10**9}"


def test_an_owners_thread_keeps_its_job_group(spark: Any, folder: Path) -> None:
    context = spark._sessions[0].sparkContext
    context.setJobGroup("theirs", "what the owner does")
    try:
        fp.protect(folder, budget=PLENTY, engine="spark").noisy_count(1)
        assert context.getLocalProperty("spark.jobGroup.id") == "theirs"
        assert context.getLocalProperty("spark.job.description") == "what the owner does"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)


# ── jobs ─────────────────────────────────────────────────────────────────────────────


def test_a_parallel_query_costs_as_many_jobs_for_a_thousand_parts_as_for_one(spark: Any) -> None:
    rows = [{"k": i % 50, "x": i} for i in range(500)]
    table = fp.protect(rows, budget=PLENTY, engine=spark, name="jobs")
    shapes = {
        "rows": table.where(_.x >= 0),
        "groups": table.group_by(_.k).select(lambda g: {"k": g.key, "n": g.count()}),
        "pairs": table.join(table, "k", fp.first(1), fp.first(1), lambda x, y: {"k": x.k, "y": y.x}),
    }
    seen: dict[str, set[int]] = {}
    for name, shape in shapes.items():
        for parts in (1, 100, 1000):
            before = jobs(spark)
            answers = shape.query(1, fp.count(), by=_.k, keys=list(range(parts)))
            assert len(answers) == parts
            seen.setdefault(name, set()).add(jobs(spark) - before)
    assert seen["rows"] == {1}
    assert all(len(numbers) == 1 for numbers in seen.values()), seen


# ── charges ──────────────────────────────────────────────────────────────────────────


def test_a_charge_stands_when_spark_fails(spark: Any, unread: None) -> None:
    session = spark._sessions[0]
    failing = session.sql("SELECT id AS x, CAST(raise_error('secret row') AS BIGINT) AS y FROM range(3)")
    table = fp.protect(failing, budget=1, engine=spark, name="failing")
    assert table.noisy_count("1/4").charged == Fraction(1, 4)
    with pytest.raises(fp.EngineError) as raised:
        table.noisy_sum("1/2", _.y, bounds=(0, 9))
    assert "secret" not in str(raised.value)
    assert table.remaining == Fraction(1, 4)
    with pytest.raises(fp.BudgetExceeded):
        table.noisy_sum("1/2", _.y, bounds=(0, 9))


def test_a_file_elsewhere_that_is_gone_is_noticed_before_the_charge(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    def people() -> Any:
        engine = fp.Spark(session=spark._sessions[0])
        return fp.protect(f"file://{folder}/part-0.parquet", budget=1, engine=engine, ledger=tmp_path / "l")

    table = people()
    table.noisy_count("1/4")
    gone = (folder / "part-0.parquet").rename(tmp_path / "gone")
    with pytest.raises(DataChanged):
        table.noisy_sum("1/2", _.age, bounds=(0, 9))
    assert table.remaining == Fraction(3, 4)
    gone.rename(folder / "part-0.parquet")
    assert people().remaining == Fraction(3, 4)


def test_a_measurement_can_be_cancelled_and_its_charge_stands(spark: Any, unread: None) -> None:
    slow = spark._sessions[0].range(10**12).withColumnRenamed("id", "x")
    table = fp.protect(slow, budget=1, engine=spark, name="slow")
    thread = threading.get_ident()

    def cancel() -> None:
        while thread not in spark._running:
            time.sleep(0.01)
        spark.cancel(thread)  # now, or before its first job has begun

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(fp.EngineError):
        table.noisy_sum("1/2", _.x % 7, bounds=(0, 9))
    canceller.join()
    assert table.remaining == Fraction(1, 2)
    assert fp.protect([{"x": 1}], budget=PLENTY, engine=spark).noisy_count(SURE).value == 1


# ── ledgers ──────────────────────────────────────────────────────────────────────────


def test_two_folders_that_spark_wrote_are_two_data_sets(spark: Any, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "others.parquet"
    other.mkdir()
    pq.write_table(pa.table({"age": [1, 2]}), other / "part-0.parquet")
    (other / "_SUCCESS").touch()
    ledger = str(tmp_path / "ledger")
    fp.protect(folder, budget=1, engine=spark, ledger=ledger).noisy_count("1/2")
    assert fp.protect(other, budget=1, engine=spark, ledger=ledger).remaining == 1
    with pytest.raises(SameData):
        fp.protect(folder, budget=1, engine=spark, ledger=ledger, name="again")


def test_a_table_of_the_catalog_is_known_again_by_its_records(spark: Any, saved: Any, tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger")

    def people(source: Any = "table:saved_people", name: str = "people", **given: Any) -> Any:
        return fp.protect(source, budget=1, engine=fp.Spark(session=saved), ledger=ledger, name=name, **given)

    assert people().noisy_count("1/2").charged == Fraction(1, 2)
    assert people().remaining == Fraction(1, 2)
    turned_round = saved.table("saved_people").orderBy("age", ascending=False).repartition(3)
    assert people(turned_round).remaining == Fraction(1, 2)
    with pytest.raises(SameData):
        people(name="others")
    with pytest.raises(SameData):
        people(name="others", schema={"age": "int64"})
    saved.sql("INSERT INTO saved_people SELECT * FROM saved_people LIMIT 1")
    with pytest.raises(DataChanged):
        people()


def test_records_that_run_into_each_other_are_told_apart(spark: Any) -> None:
    session = spark._sessions[0]

    def print_of(rows: str) -> Any:
        return spark.fingerprint(session.sql(f"SELECT * FROM VALUES {rows} AS t(a, b)"))

    assert print_of("('x', 'y'), ('z', NULL)") == print_of("('z', NULL), ('x', 'y')")
    others = ["('xy', ''), ('z', NULL)", "('x', 'y'), ('z', '-')", "('x', 'y'), ('z', NULL), ('z', NULL)"]
    prints = [print_of(rows) for rows in ("('x', 'y'), ('z', NULL)", *others)]
    assert len(set(prints)) == 4
    assert prints[3][1] == 3
    with pytest.raises(BadData):
        spark.fingerprint("table:nowhere")
