"""The PostgreSQL engine beside hand-written SQL for the same integers, in the same database.

    python bench/postgres.py --rows 1_000_000 [--url postgresql://…]

Prints a Markdown table: milliseconds of the statement that a careful person would
write by hand (clamped, nulls left out), of ours, and their ratio. Runs alternate, and
the fastest of each counts. --cpu takes the processor time of PostgreSQL's process and
of this one, without parallel workers: for a machine that others use too, with a server
on it. Without an address a PostgreSQL is started for the purpose;
with one, the role must be allowed to create the table fpinq_bench in schema public.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg

from fpinq.engines.postgres import Postgres
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Bernstein, Points, Records, Statistic, Totals
from fpinq.model.transformations import First, Join, Partitioning, Where

TABLE = "fpinq_bench"
AGE = Clamp(Column("age"), 0, 110)
INCOME = Clamp(Column("income"), 0, 200_000 * 16, Fraction(1, 16))
PEOPLE = RootTable("people")
ADULTS = Term(Where(Apply("greater", (Column("age"), Literal.of(17)))), (PEOPLE,))
SELF_JOIN = Term(
    Join(
        (Column("person"),), (Column("person"),), First(1), First(1),
        (("age", Column("l.age")), ("income", Column("r.income"))),
    ),
    (PEOPLE, PEOPLE),
)  # fmt: skip

_FIRST = (
    "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY person ORDER BY age NULLS FIRST, "
    f"income NULLS FIRST, region NULLS FIRST) AS rn FROM {TABLE} WHERE person IS NOT NULL) AS d WHERE rn <= 1"
)
_AGE = "CASE WHEN age < 0 THEN 0 WHEN age > 110 THEN 110 ELSE age END"
_INCOME = (
    "CAST(CASE WHEN income = 'NaN' THEN NULL WHEN income < 0 THEN 0 WHEN income > 200000 THEN 200000 "
    "ELSE income END * 16 AS bigint)"
)

Work = tuple[str, str, Plan, Partitioning | None, list[Statistic]]
REGIONS = Partitioning(Column("region"), tuple(range(100)))
WORK: list[Work] = [
    ("count of adults", f"SELECT count(*) FROM {TABLE} WHERE age > 17", ADULTS, None, [Records()]),
    (
        "count in 100 parts",
        f"SELECT region, count(*) FROM {TABLE} WHERE region BETWEEN 0 AND 99 GROUP BY region",
        PEOPLE, REGIONS, [Records()] * 100,
    ),
    (
        "average age in 100 parts",
        f"SELECT region, sum({_AGE}), count(age) FROM {TABLE} WHERE region BETWEEN 0 AND 99 GROUP BY region",
        PEOPLE, REGIONS, [Bernstein(AGE, 1)] * 100,
    ),
    (
        "average income in 100 parts",
        f"SELECT region, sum({_INCOME}), count(income) FROM {TABLE} "
        "WHERE region BETWEEN 0 AND 99 GROUP BY region",
        PEOPLE, REGIONS, [Bernstein(INCOME, 1)] * 100,
    ),
    ("sum of ages", f"SELECT sum({_AGE}) FROM {TABLE}", PEOPLE, None, [Totals((AGE,))]),
    ("sum of incomes", f"SELECT sum({_INCOME}) FROM {TABLE}", PEOPLE, None, [Totals((INCOME,))]),
    (
        "median of age",
        f"SELECT {_AGE} AS g, count(*) FROM {TABLE} GROUP BY 1",
        PEOPLE, None, [Points(AGE)],
    ),
    (
        "join, one row per person and side",
        f"SELECT sum({_AGE}) FROM (SELECT l.age FROM ({_FIRST}) AS l JOIN ({_FIRST}) AS r "
        "ON l.person = r.person) AS d",
        SELF_JOIN, None, [Totals((AGE,))],
    ),
]  # fmt: skip


def generate(url: str, rows: int) -> None:
    """People with ages, incomes and one of 100 regions; one row in 50 has no age, another no income."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS public.{TABLE}")
        connection.execute(f"""
            CREATE TABLE public.{TABLE} AS
            SELECT CASE WHEN i % 50 <> 0 THEN hashint4(i) & 63 END AS age,
                   CASE WHEN i % 50 <> 1 THEN (hashint4(i + 1) & 16777215) / 100.0::float8 END AS income,
                   (hashint4(i + 2) & 1048575) % 100 AS region,
                   (hashint4(i + 3) & 2147483647) % {max(rows // 4, 1)} AS person
            FROM generate_series(1, {rows}) AS i""")
        connection.execute(f"VACUUM ANALYZE public.{TABLE}")


@contextmanager
def database(url: str | None) -> Iterator[str]:
    """The address of a database."""
    if url is not None:
        yield url
        return
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "ledger"))
    from throwaway_postgres import throwaway_postgres

    with throwaway_postgres() as server:
        yield server.fresh()


def fastest(clock: Callable[[], float], *runs: Callable[[], Any], times: int) -> list[float]:
    """The fastest of each, run in turns."""
    best = [float("inf")] * len(runs)
    for _ in range(times):
        for number, run in enumerate(runs):
            began = clock()
            run()
            best[number] = min(best[number], clock() - began)
    return best


def processor_time(engine: Postgres) -> Callable[[], float]:
    """A clock of the time that the one process of the engine's connection has computed, and this one."""
    with engine._database.reading() as statements:
        ((pid,),) = statements.rows("SELECT pg_backend_pid()")

    def clock() -> float:
        nanoseconds = int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0])
        return nanoseconds / 1e9 + time.process_time()

    return clock


def by_hand(engine: Postgres, sql: str) -> None:
    """A statement of our own in a transaction like the engine's."""
    with engine._database.reading() as statements:
        statements.rows(sql.replace(TABLE, f"public.{TABLE}"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--only", default="", help="substring of the names to run")
    parser.add_argument("--url", default=None)
    parser.add_argument("--cpu", action="store_true")
    given = parser.parse_args()
    with database(given.url) as url:
        generate(url, given.rows)
        alone = "&options=-c%20max_parallel_workers_per_gather%3D0" if given.cpu else ""
        engine = Postgres(url + alone)
        engine.add_root("people", TABLE)
        clock = processor_time(engine) if given.cpu else time.perf_counter
        print(f"| {given.rows:,} rows | by hand, ms | fpinq, ms | ratio |\n|---|---|---|---|", flush=True)
        for name, hand, plan, parts, statistics in WORK:
            if given.only not in name:
                continue
            ours = lambda: engine.measure(plan, parts, statistics)  # noqa: B023, E731
            theirs = lambda: by_hand(engine, hand)  # noqa: B023, E731
            theirs_took, ours_took = fastest(clock, theirs, ours, times=given.times)
            ratio = ours_took / theirs_took
            print(f"| {name} | {theirs_took * 1e3:.0f} | {ours_took * 1e3:.0f} | {ratio:.2f} |", flush=True)
        engine.close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP TABLE public.{TABLE}")


if __name__ == "__main__":
    main()
