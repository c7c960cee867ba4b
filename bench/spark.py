"""The Spark engine beside hand-written Spark SQL for the same work, in one warm session.

    python bench/spark.py --rows 10_000_000 --master 'local[2]'

Prints a Markdown table: seconds of the statement that a careful person would
write by hand (clamped, nulls left out), seconds of ours, their ratio, and the
Spark jobs that ours took. Runs alternate, and the fastest of each counts.
"""

import argparse
import itertools
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from fpinq.engines.spark import Spark
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Bernstein, Points, Records, Statistic, Totals
from fpinq.model.transformations import Aggregate, First, GroupBy, Join, Partitioning, Where

AGE = Clamp(Column("age"), 0, 110)
INCOME = Clamp(Column("income"), 0, 200_000 * 16, Fraction(1, 16))
ADULTS = Term(Where(Apply("greater", (Column("age"), Literal.of(17)))), (RootTable("people"),))
PER_PERSON = Term(GroupBy((("id", Column("person")),), (("n", Aggregate("count")),)), (RootTable("people"),))
SELF_JOIN = Term(
    Join(
        (Column("person"),), (Column("person"),), First(1), First(1),
        (("age", Column("l.age")), ("income", Column("r.income"))),
    ),
    (RootTable("people"), RootTable("people")),
)  # fmt: skip


def by(column: str, count: int) -> Partitioning:
    return Partitioning(Column(column), tuple(range(count)))


_FIRST = (
    "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY person ORDER BY age NULLS FIRST, "
    "income NULLS FIRST, region NULLS FIRST, town NULLS FIRST) AS rn FROM people WHERE person IS NOT NULL) "
    "WHERE rn <= 1"
)
_INCOME = (
    "CAST(rint(CASE WHEN isnan(income) THEN NULL WHEN income < 0 THEN 0 WHEN income > 200000 THEN 200000 "
    "ELSE income END * 16) AS BIGINT)"
)
_AGE = "CASE WHEN age < 0 THEN 0 WHEN age > 110 THEN 110 ELSE age END"

Work = tuple[str, str, Plan, Partitioning | None, list[Statistic]]
WORK: list[Work] = [
    ("count of adults", "SELECT count(*) FROM people WHERE age > 17", ADULTS, None, [Records()]),
    (
        "average age",
        f"SELECT sum({_AGE}), count(age) FROM people",
        RootTable("people"), None, [Bernstein(AGE, 1)],
    ),
    ("sum of incomes", f"SELECT sum({_INCOME}) FROM people", RootTable("people"), None, [Totals((INCOME,))]),
    (
        "variance of age",
        f"SELECT sum(x), sum(x * x), count(x) FROM (SELECT {_AGE} AS x FROM people)",
        RootTable("people"), None, [Bernstein(AGE, 2)],
    ),
    (
        "count in 100 parts",
        "SELECT region, count(*) FROM people WHERE region BETWEEN 0 AND 99 GROUP BY region",
        RootTable("people"), by("region", 100), [Records()] * 100,
    ),
    (
        "average income in 100 parts",
        f"SELECT region, sum({_INCOME}), count(income) FROM people "
        "WHERE region BETWEEN 0 AND 99 GROUP BY region",
        RootTable("people"), by("region", 100), [Bernstein(INCOME, 1)] * 100,
    ),
    (
        "count in 10,000 parts",
        "SELECT town, count(*) FROM people WHERE town BETWEEN 0 AND 9999 GROUP BY town",
        RootTable("people"), by("town", 10_000), [Records()] * 10_000,
    ),
    (
        "frequencies of age",
        f"SELECT {_AGE} AS g, count(*) FROM people GROUP BY 1",
        RootTable("people"), None, [Points(AGE)],
    ),
    (
        "persons with rows, by number",
        "SELECT n, count(*) FROM (SELECT person, count(*) AS n FROM people GROUP BY person) "
        "WHERE n BETWEEN 0 AND 9 GROUP BY n",
        PER_PERSON, by("n", 10), [Records()] * 10,
    ),
    (
        "join, one row per person and side",
        f"SELECT sum({_AGE}) FROM (SELECT l.age FROM ({_FIRST}) AS l JOIN ({_FIRST}) AS r "
        "ON l.person = r.person)",
        SELF_JOIN, None, [Totals((AGE,))],
    ),
]  # fmt: skip


def generate(session: Any, rows: int, where: str) -> None:
    """People with ages, incomes, one of 100 regions, one of 10,000 towns; one row in 50 with nulls."""
    session.sql(f"""
        SELECT CASE WHEN id % 50 <> 0 THEN pmod(hash(id, 1), 100) END AS age,
               CASE WHEN id % 50 <> 1 THEN pmod(hash(id, 2), 25000000) / 100.0D END AS income,
               CAST(pmod(hash(id, 3), 100) AS BIGINT) AS region,
               CAST(pmod(hash(id, 4), 10000) AS BIGINT) AS town,
               CAST(pmod(hash(id, 5), {max(rows // 4, 1)}) AS BIGINT) AS person
        FROM range({rows})""").write.parquet(where)


def fastest(*runs: Callable[[], Any], times: int) -> list[float]:
    """The fastest of each, run in turns."""
    best = [float("inf")] * len(runs)
    for _ in range(times):
        for number, run in enumerate(runs):
            began = time.perf_counter()
            run()
            best[number] = min(best[number], time.perf_counter() - began)
    return best


def jobs_of(context: Any, run: Callable[[], Any]) -> int:
    """How many Spark jobs something takes."""
    scheduler = context._jsc.sc().dagScheduler()
    before = scheduler.nextJobId()
    run()
    return int(scheduler.nextJobId()) - int(before)


def protecting(engine: Spark, session: Any, source: Any, times: int) -> tuple[float, float]:
    """Seconds to read every column once by hand, and to protect the same files."""
    names = (f"again{number}" for number in itertools.count())
    by_hand = lambda: session.sql("SELECT bit_xor(xxhash64(*)) FROM people").collect()  # noqa: E731
    ours = lambda: engine.add_root(next(names), source)  # noqa: E731
    fastest(by_hand, ours, times=1)
    hand, us = fastest(by_hand, ours, times=times)
    return hand, us


def _heap_in_use(session: Any, runtime: Any) -> float:
    """Megabytes after a collection, which goes on for a moment after it was asked for."""
    session.sparkContext._jvm.java.lang.System.gc()
    time.sleep(1)
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--only", default="", help="substring of the names to run")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fpinq-bench-"))
    engine = Spark(given.master, {"spark.driver.memory": given.memory})
    session = engine._sessions[1]
    try:
        generate(session, given.rows, str(folder / "people.parquet"))
        engine.add_root("people", str(folder / "people.parquet"))
        session.read.parquet(str(folder / "people.parquet")).createOrReplaceTempView("people")
        engine._sessions[0].read.parquet(str(folder / "people.parquet")).createOrReplaceTempView("people")
        print(f"| {given.rows:,} rows, {given.master} | by hand, s | fpinq, s | ratio | jobs |")
        print("|---|---|---|---|---|", flush=True)
        by_hand, by_us = protecting(engine, session, str(folder / "people.parquet"), max(given.times // 5, 1))
        print(f"| protecting | {by_hand:.2f} | {by_us:.2f} | {by_us / by_hand:.2f} | |", flush=True)
        for name, hand, plan, parts, statistics in WORK:
            if given.only not in name:
                continue
            beside = engine._sessions[0 if plan in (PER_PERSON, SELF_JOIN) else 1]
            ours = lambda: engine.measure(plan, parts, statistics)  # noqa: B023, E731
            theirs = lambda: beside.sql(hand).collect()  # noqa: B023, E731
            fastest(theirs, ours, times=1)
            times = given.times if plan not in (PER_PERSON, SELF_JOIN) else max(given.times // 5, 1)
            by_hand, by_us = fastest(theirs, ours, times=times)
            jobs = jobs_of(session.sparkContext, ours)
            print(f"| {name} | {by_hand:.2f} | {by_us:.2f} | {by_us / by_hand:.2f} | {jobs} |", flush=True)
        runtime = session.sparkContext._jvm.java.lang.Runtime.getRuntime()
        used = min(_heap_in_use(session, runtime) for _ in range(3))
        python = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        print(
            f"\nDriver after all of it: {used:.0f} MB of heap in use, {python:.0f} MB in Python at the peak."
        )
    finally:
        engine.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
