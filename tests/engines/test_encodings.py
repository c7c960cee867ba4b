"""Files of the same rows in every encoding: DuckDB's answers are the reference's.

Any two choices of how a file is written meet here; `make files` lets any three meet, and prints the counts.
"""

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from engines.encodings import SCHEMA, Question, Writing, differences, expected, files, questions, rows_with
from engines.generators import Example, plan_examples
from engines.test_conformance import EXAMPLES, thorough
from engines.test_duckdb import in_files
from fpinq.engines.duckdb import DuckDB, database, engine, lines, parquet, sources
from fpinq.engines.duckdb.database import Database
from fpinq.engines.duckdb.dialect import DuckDBDialect
from fpinq.engines.spark.dialect import SparkDialect
from fpinq.model.errors import UnfitEngine
from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Records
from fpinq.model.transformations import Aggregate, GroupBy, Partitioning, Where

# How many choices meet in one file.
FILES = files(meeting=int(os.environ.get("FPINQ_FILES", "2")))


@pytest.fixture
def db() -> Iterator[DuckDB]:
    engine = DuckDB()
    yield engine
    engine.close()


@pytest.mark.parametrize("pattern", sorted({pattern for pattern, _ in FILES}))
def test_answers_do_not_depend_on_how_a_file_is_written(
    pattern: str, tmp_path: Path, record_property: Any
) -> None:
    rows = rows_with(pattern)
    known = expected(rows)
    writings = [writing for of, writing in FILES if of == pattern and not _is_refused(writing)]
    wrong: dict[str, list[str]] = {}
    for number, writing in enumerate(writings):
        engine = DuckDB()
        path = writing.write(tmp_path / f"{number}.parquet", SCHEMA, rows)
        if found := differences(engine, path, rows, known):
            wrong[str(writing)] = found
        engine.close()
    record_property("engine", f"DuckDB {duckdb.__version__}")
    record_property("files", len(writings))
    record_property("answers", len(writings) * (len(known[0]) + 1))
    assert not wrong


def _is_refused(writing: Writing) -> bool:
    """DuckDB before 2.0 does not read integers that are split into streams of bytes, and says so."""
    return writing.encoding == "split" and int(duckdb.__version__.partition(".")[0]) < 2


@pytest.mark.skipif(duckdb.__version__ != "2.0.0", reason="the fault is this version's")
def test_these_files_find_the_fault_of_filters_in_the_reading(
    db: DuckDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "INTO_READING", ())
    monkeypatch.setattr(engine, "within_lengths", lambda columns, lengths, dialect: list(columns))  # hides it
    rows = rows_with("one value and a null")
    path = Writing("plain").write(tmp_path / "x.parquet", SCHEMA, rows)
    assert len(differences(db, path, rows, expected(rows))) >= 3


def trial(monkeypatch: pytest.MonkeyPatch, source: object = None) -> None:
    """The trial of a new process, to which data comes."""
    monkeypatch.setattr(engine, "_tried", set())
    take(source if source is not None else [{"x": 1}])


def take(source: object) -> None:
    db = DuckDB()
    try:
        db.add_root("t", source)
    finally:
        db.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    pq.write_table(pa.table({"c": ["yes", None]}), tmp_path / "x.parquet")
    return str(tmp_path / "x.parquet")


def test_a_duckdb_that_is_right_passes_each_trial_once(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    trial(monkeypatch)
    take(path)
    assert {kind for _, kind in engine._tried} == {"file", "rows"}
    monkeypatch.setattr(engine.trial, "check_file", lambda *given: pytest.fail("tried again"))
    monkeypatch.setattr(engine.trial, "check_rows", lambda *given: pytest.fail("tried again"))
    take(path)
    take([{"x": 1}])


@pytest.mark.parametrize("how", ["parquet", "csv", "frame", "dicts"])
def test_a_duckdb_is_tried_as_data_comes_in_before_that_is_read(
    how: str, monkeypatch: pytest.MonkeyPatch, path: str, tmp_path: Path
) -> None:
    text = tmp_path / "x.csv"
    text.write_text("c\nyes\n")
    source = {"parquet": path, "csv": text, "frame": pa.table({"c": [1]}), "dicts": [{"c": 1}]}[how]
    seen: list[str] = []
    for check in ("check_file", "check_rows"):
        monkeypatch.setattr(engine.trial, check, lambda *given, check=check: seen.append(check))
    for module, name in ((parquet, "columns_of"), (lines, "store"), (sources, "in_memory")):
        read = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, read=read: seen.append("read") or read(*given))
    trial(monkeypatch, source)
    assert seen == ["check_file" if how == "parquet" else "check_rows", "read"]


def test_a_trial_opens_no_database_of_its_own(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    opened: list[Database] = []

    class Counted(Database):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            opened.append(self)

    monkeypatch.setattr(engine, "Database", Counted)
    trial(monkeypatch, path)
    assert len(opened) == 1


def test_nothing_of_a_trial_stays(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(engine, "_tried", set())
    db = DuckDB()
    db.add_root("file", path)
    db.add_root("rows", [{"x": 1}])
    assert set(db._roots) == set(db._pins) == {"file", "rows"}
    with db._database.cursor() as cursor:
        assert len(cursor.execute("SHOW TABLES").fetchall()) == len(db._tables) == 1
    db.close()


@pytest.mark.skipif(duckdb.__version__ != "2.0.0", reason="the fault is this version's")
def test_a_duckdb_that_moves_filters_into_the_reading_fails_its_trial(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(database, "INTO_READING", ())
    monkeypatch.setattr(engine, "within_lengths", lambda columns, lengths, dialect: list(columns))  # hides it
    for _ in range(2):  # and again: what failed is not remembered as tried
        with pytest.raises(UnfitEngine, match=r"2\.0\.0 answers wrongly .*: file"):
            trial(monkeypatch, path)


def test_a_duckdb_that_reads_a_null_as_zero_fails_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    read = sources._arrays

    def without_nulls(*given: Any) -> Any:
        arrays, ours = read(*given)
        return {name: a | True if name.startswith("v") else a for name, a in arrays.items()}, ours

    monkeypatch.setattr(sources, "_arrays", without_nulls)
    with pytest.raises(UnfitEngine, match="rows"):
        trial(monkeypatch)


def number_of(engine: DuckDB, plan: Plan) -> int:
    return engine.measure(plan, None, [Records()])[0].get(0, 0)


def test_a_null_among_equal_texts_is_one_null(db: DuckDB, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": ["yes"] * 10_000 + [None]}), path, use_dictionary=False)
    db.add_root("t", path)
    c, root = Column("c"), RootTable("t")
    filled = Apply("equal", (Apply("fill_null", (c, Literal.of("no"))), Literal.of("no")))
    assert number_of(db, Term(Where(Apply("is_null", (c,))), (root,))) == 1
    assert number_of(db, Term(Where(filled), (root,))) == 1
    by = Partitioning(c, ("yes", None))
    assert db.measure(root, by, [Records()] * 2) == [{0: 10_000}, {0: 1}]


# ── whatever is asked, a file is asked for columns ───────────────────────────────────


def asked_beside_columns(engine: DuckDB, plan: Plan, by: Any, statistics: Any) -> list[str]:
    """The lines of DuckDB's plan that say what is asked of a file, beside its columns."""
    _, shown = engine.explain(plan, by, statistics)
    return [line for line in shown.splitlines() if "Filters" in line or "Dynamic" in line]


@pytest.fixture
def asked_of_a_file(db: DuckDB, tmp_path: Path) -> Callable[[], list[Question]]:
    """The questions for which a file is asked for more than columns, or is not read at all."""
    rows = rows_with("edges")
    path = Writing("plain", rows_per_group=16).write(tmp_path / "x.parquet", SCHEMA, rows)

    def is_read(question: Question) -> bool:
        return "PARQUET" in db.explain(*question)[1].upper()

    def found() -> list[Question]:
        db.add_root("t", path)
        return [q for q in questions("t", rows) if asked_beside_columns(db, *q) or not is_read(q)]

    return found


def test_whatever_the_question_nothing_but_columns_is_asked_of_a_file(asked_of_a_file: Any) -> None:
    assert asked_of_a_file() == []


@pytest.mark.parametrize("missing", ["filter_pushdown", "statistics_propagation", "the order of take"])
def test_what_is_asked_of_a_file_is_noticed(
    asked_of_a_file: Any, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "the order of take":
        monkeypatch.setattr(DuckDBDialect, "first", SparkDialect.first)
    else:
        left = tuple(name for name in database.INTO_READING if name != missing)
        monkeypatch.setattr(database, "INTO_READING", left)
    assert asked_of_a_file()


@thorough(EXAMPLES // 100)
@given(example=plan_examples(depth=3))
def test_nothing_but_columns_is_asked_of_a_file(tmp_path_factory: Any, example: Example) -> None:
    engine = DuckDB()
    in_files(engine, example, tmp_path_factory.mktemp("files"))
    assert not asked_beside_columns(engine, example.plan, None, [example.whole.statistic])
    assert not asked_beside_columns(engine, example.plan, example.by, example.statistics)
    engine.close()


# ── footers ──────────────────────────────────────────────────────────────────────────


def lying(path: Path) -> Path:
    """A file whose footer says that its largest values are its smallest."""
    table = pa.table({"c": ["aaaa", "zqzq"] * 50, "n": pa.array([1111111111111, 8222222222222] * 50)})
    pq.write_table(table, path, use_dictionary=False, compression="none")
    content = path.read_bytes()
    start = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    small, large = (struct.pack("<q", n) for n in (1111111111111, 8222222222222))
    footer = content[start:].replace(b"zqzq", b"aaaa").replace(large, small)
    assert footer != content[start:]
    path.write_bytes(content[:start] + footer)
    return path


def test_what_a_footer_says_about_values_is_not_believed(db: DuckDB, tmp_path: Path) -> None:
    db.add_root("t", lying(tmp_path / "x.parquet"))
    root = RootTable("t")
    for name, value in (("c", "zqzq"), ("n", 8222222222222)):
        large = Apply("equal", (Column("m"), Literal.of(value)))
        most = Term(GroupBy((), (("m", Aggregate("max", Column(name))),)), (root,))
        assert number_of(db, Term(Where(large), (most,))) == 1
        same = Apply("equal", (Column(name), Literal.of(value)))
        assert number_of(db, Term(Where(same), (root,))) == 50
        assert number_of(db, Term(GroupBy((("k", Column(name)),), ()), (root,))) == 2
