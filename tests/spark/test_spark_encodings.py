"""Files of the same rows in every encoding: Spark's answers are the reference's.

What is asked of a file goes into one job, and each file is asked a share of the questions: any two of the
choices of how files are written meet in many of them. FPINQ_SPARK_FILES=1 asks every file everything.
Spark reads no brotli, and some versions no integers in streams of bytes: such files are refused.
"""

import os
from itertools import count
from pathlib import Path
from typing import Any

from engines.encodings import SCHEMA, Rows, canonical, expected, files, rows_with
from engines.test_conformance import bag
from engines.test_encodings import lying
from fpinq.model.errors import BadData
from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.plans import RootTable, Term
from fpinq.model.statistics import Records
from fpinq.model.transformations import Aggregate, GroupBy, Where
from spark.batches import Batch, statistics_of

# Of so many questions a file is asked one.
SHARE = int(os.environ.get("FPINQ_SPARK_FILES", "13"))
_number = count()


def differences(spark: Any, path: Path, rows: Rows, known: Any, first: int) -> tuple[int, list[str]]:
    """How many answers about a file were compared, and which of them differ from the reference's."""
    name = f"encoded{next(_number)}"
    assert spark.add_root(name, path) == SCHEMA
    roots = {"t": spark._roots[name]}
    batch = Batch()
    asked = list(zip(*known, strict=True))[first % SHARE :: SHARE]
    cases = [(plan, batch.measurement(roots, plan, by, q), answers) for (plan, by, q), answers in asked]
    everything = batch.rows(roots, RootTable("t"))
    batch.run(spark._sessions[first % 2])
    found = [str(plan) for plan, case, answers in cases if statistics_of(*case) != answers]
    if bag(everything.found) != bag(canonical(SCHEMA, rows)):
        found.append("rows")
    return len(cases) + 1, found


def test_answers_do_not_depend_on_how_a_file_is_written(spark: Any, tmp_path: Path) -> None:
    written = files(meeting=2)
    known = {pattern: expected(rows_with(pattern)) for pattern, _ in written}
    compared, refused, wrong = 0, [], {}
    for number, (pattern, writing) in enumerate(written):
        rows = rows_with(pattern)
        path = writing.write(tmp_path / f"{number}.parquet", SCHEMA, rows)
        try:
            answers, differing = differences(spark, path, rows, known[pattern], number)
        except BadData:
            refused.append(writing)
            continue
        compared += answers
        if differing:
            wrong[f"{pattern}-{writing}"] = differing
    print(
        f"\nfiles on Spark: {len(written) - len(refused)} files, {compared} answers; {len(refused)} refused"
    )
    assert not wrong
    assert all(writing.encoding == "split" or writing.compression == "brotli" for writing in refused)


def test_what_a_footer_says_about_values_is_not_believed(spark: Any, tmp_path: Path) -> None:
    spark.add_root("lying", lying(tmp_path / "x.parquet"))
    root = RootTable("lying")
    for name, value in (("c", "zqzq"), ("n", 8222222222222)):
        large = Apply("equal", (Column("m"), Literal.of(value)))
        most = Term(GroupBy((), (("m", Aggregate("max", Column(name))),)), (root,))
        assert spark.measure(Term(Where(large), (most,)), None, [Records()]) == [{0: 1}]
        same = Apply("equal", (Column(name), Literal.of(value)))
        assert spark.measure(Term(Where(same), (root,)), None, [Records()]) == [{0: 50}]


def test_these_files_find_a_reader_that_believes_the_footer(spark: Any, tmp_path: Path) -> None:
    believing = spark._sessions[0].newSession()
    believing.conf.set("spark.sql.parquet.filterPushdown", "true")
    found = believing.read.parquet(f"file:{lying(tmp_path / 'x.parquet')}").where("n = 8222222222222")
    assert found.count() != 50
