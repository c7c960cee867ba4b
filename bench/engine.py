"""What a measurement costs, beside SQL written by hand on the same files.

    python bench/engine.py [--cpu] [rows …]        (10⁵, 10⁶ and 10⁷ unless given)

*exact* is hand-written SQL that computes the same integers, *plain* what an
analyst without privacy would write. */moved* is ours to ours with DuckDB's optimisers that move work into the
reading of files, which are off because some are wrong (docs/decisions/0060): what that costs. *protecting* is
the reading of everything once, when data is protected. Times are the best of several runs, taken
in turns; the ratios are ours to theirs. --cpu takes processor time (of all
threads) instead of elapsed time: for a machine that others use too.
"""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from fpinq.engines.duckdb import DuckDB, database
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Expression, Literal
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Bernstein, Points, Records, Statistic, Totals
from fpinq.model.transformations import Aggregate, First, GroupBy, Join, Partitioning, Unique, Where

DATA = Path(__file__).parent / "data"
RUNS = 7
CLOCK = time.process_time if "--cpu" in sys.argv else time.perf_counter


@dataclass(frozen=True)
class Case:
    """A measurement and the same by hand."""

    name: str
    plan: Plan
    by: Partitioning | None
    statistics: list[Statistic]
    exact: str
    plain: str
    bar_plain: float = 1.3


def generate(rows: int) -> Path:
    """Visits and the people who made them, a tenth as many; once."""
    folder = DATA / str(rows)
    if not (folder / "people.parquet").exists():
        folder.mkdir(parents=True, exist_ok=True)
        people = max(rows // 10, 1)
        duckdb.sql(
            f"""COPY (
                SELECT (hash(range) % {people})::BIGINT AS person, (hash(range + 1) % 100)::BIGINT AS clinic,
                       (hash(range + 2) % 110)::BIGINT AS age,
                       CASE WHEN hash(range + 3) % 100 = 0 THEN NULL
                            ELSE (hash(range + 4) % 60000000) / 1e5 END AS cost,
                       DATE '2015-01-01' + (hash(range + 5) % 3650)::INTEGER AS day,
                       ['red', 'green', 'blue', 'white'][1 + (hash(range + 6) % 4)::INTEGER] AS ward
                FROM range({rows})
            ) TO '{folder / "visits.parquet"}'"""
        )
        duckdb.sql(
            f"""COPY (SELECT range AS person, (hash(range) % 2)::BIGINT AS sex,
                       (hash(range + 7) % 90)::BIGINT AS born
                FROM range({people})) TO '{folder / "people.parquet"}'"""
        )
    return folder


def cases() -> list[Case]:
    """The measurements of the performance bars."""
    visits, people = RootTable("visits"), RootTable("people")
    clinic = Partitioning(Column("clinic"), tuple(range(100)))
    age, cost = Clamp(Column("age"), 0, 100), Clamp(Column("cost"), 0, 500 * 1024, Fraction(1, 1024))
    ages = "CASE WHEN age < 0 THEN 0 WHEN age > 100 THEN 100 ELSE age END"
    points = """CAST(CASE WHEN isnan(cost) THEN NULL WHEN cost < 0 THEN 0 WHEN cost > 500 THEN 500
                     ELSE cost END * 1024 AS BIGINT)"""
    per_person = Term(GroupBy((("person", Column("person")),), (("n", Aggregate("count")),)), (visits,))
    joined = Join(
        (Column("person"),),
        (Column("person"),),
        Unique(),
        First(3),
        (("sex", Column("l.sex")), ("age", Column("r.age"))),
    )
    bounded = """
        FROM (SELECT person, any_value(sex) AS sex FROM people GROUP BY person HAVING count(*) = 1) AS l
        JOIN (SELECT person, age FROM visits QUALIFY row_number() OVER (PARTITION BY person
              ORDER BY clinic NULLS FIRST, age NULLS FIRST, cost NULLS FIRST, day NULLS FIRST,
                       ward NULLS FIRST) <= 3) AS r ON l.person = r.person"""
    by_day = bounded.replace(
        "clinic NULLS FIRST, age NULLS FIRST, cost NULLS FIRST, day NULLS FIRST,\n"
        "                       ward NULLS FIRST",
        "day",
    )
    return [
        Case(
            "filtered count",
            Term(Where(_more("age", 17)), (visits,)),
            None,
            [Records()],
            "SELECT count(*) FROM visits WHERE age > 17",
            "SELECT count(*) FROM visits WHERE age > 17",
        ),
        Case(
            "count by 100 keys",
            visits,
            clinic,
            [Records()] * 100,
            "SELECT clinic, count(*) FROM visits GROUP BY clinic",
            "SELECT clinic, count(*) FROM visits GROUP BY clinic",
        ),
        Case(
            "average by 100 keys",
            visits,
            clinic,
            [Bernstein(age, 1)] * 100,
            f"SELECT clinic, count(x), sum(x) FROM (SELECT clinic, {ages} AS x FROM visits) GROUP BY clinic",
            "SELECT clinic, avg(age) FROM visits GROUP BY clinic",
            4,
        ),
        Case(
            "clamped sum, integers",
            visits,
            None,
            [Totals((age,))],
            f"SELECT sum({ages}) FROM visits",
            "SELECT sum(age) FROM visits",
            4,
        ),
        Case(
            "clamped sum, floats",
            visits,
            None,
            [Totals((cost,))],
            f"SELECT sum({points}) FROM visits",
            "SELECT sum(cost) FROM visits",
            4,
        ),
        Case(
            "median",
            visits,
            None,
            [Points(age)],
            f"SELECT x, count(*) FROM (SELECT {ages} AS x FROM visits) GROUP BY x",
            "SELECT median(age) FROM visits",
        ),
        Case(
            "persons with > 10 visits",
            Term(Where(_more("n", 10)), (per_person,)),
            None,
            [Records()],
            "SELECT count(*) FROM (SELECT person, count(*) AS n FROM visits GROUP BY person) WHERE n > 10",
            "SELECT count(*) FROM (SELECT person, count(*) AS n FROM visits GROUP BY person) WHERE n > 10",
        ),
        Case(
            "bounded join",
            Term(joined, (people, visits)),
            Partitioning(Column("sex"), (0, 1)),
            [Bernstein(age, 1)] * 2,
            f"SELECT sex, count(x), sum(x) FROM (SELECT sex, {ages} AS x {bounded}) GROUP BY sex",
            f"SELECT sex, avg(age) {by_day} GROUP BY sex",
        ),
    ]


def _more(column: str, than: int) -> Expression:
    return Apply("greater", (Column(column), Literal.of(than)))


def in_turns(*runs: Callable[[], Any]) -> list[float]:
    """The best time of each, in milliseconds; a first round is not counted."""
    best = [float("inf")] * len(runs)
    for turn in range(RUNS + 1):
        for i, run in enumerate(runs):
            start = CLOCK()
            run()
            if turn:
                best[i] = min(best[i], (CLOCK() - start) * 1000)
    return best


def protected(folder: Path, into_reading: tuple[str, ...]) -> tuple[DuckDB, float]:
    """An engine with the data, without these optimisers, and the milliseconds that protecting took."""
    engine, disabled = DuckDB(), database.INTO_READING
    start, database.INTO_READING = CLOCK(), into_reading
    for name in ("visits", "people"):
        engine.add_root(name, folder / f"{name}.parquet")
    database.INTO_READING = disabled
    return engine, (CLOCK() - start) * 1000


def compare(rows: int) -> bool:
    """A table of one size; whether all bars hold."""
    folder = generate(rows)
    (engine, took), (moved, _) = protected(folder, database.INTO_READING), protected(folder, ())
    plain = duckdb.connect(":memory:")
    for name in ("visits", "people"):
        plain.execute(f"CREATE VIEW {name} AS FROM '{folder / f'{name}.parquet'}'")
    print(f"\n{rows:,} rows, protecting {took:.0f} ms")
    print(f"{'ours':>35} ms{'exact':>9} ms{'plain':>9} ms{'/exact':>9}{'/plain':>9}{'/moved':>9}")
    all_hold = True
    for case in cases():
        ours, pushed, exact, simple = in_turns(
            lambda case=case: engine.measure(case.plan, case.by, case.statistics),  # type: ignore[misc]
            lambda case=case: moved.measure(case.plan, case.by, case.statistics),  # type: ignore[misc]
            lambda case=case: plain.execute(case.exact).fetchall(),  # type: ignore[misc]
            lambda case=case: plain.execute(case.plain).fetchall(),  # type: ignore[misc]
        )
        holds = ours <= 1.2 * exact and ours <= case.bar_plain * simple
        all_hold &= holds
        mark = "" if holds else "   above the bar" if rows >= 10**7 else "   (a bar at 10⁷)"
        ratios = f"{ours / exact:9.2f}{ours / simple:9.2f}{ours / pushed:9.2f}{mark}"
        print(f"{case.name:26}{ours:12.1f}{exact:12.1f}{simple:12.1f}{ratios}")
    for opened in (engine, moved, plain):
        opened.close()
    return all_hold


def overhead() -> None:
    """What a measurement costs beyond the SQL itself, on a table of one row."""
    engine, plain = DuckDB(), duckdb.connect(":memory:")
    engine.add_root("t", [{"a": 1}])
    plain.execute("CREATE TABLE t AS SELECT 1::BIGINT AS a")
    plan = Term(Where(_more("a", 0)), (RootTable("t"),))
    times: list[list[float]] = [[], []]
    for _ in range(200):
        for taken, run in zip(
            times,
            (
                lambda: engine.measure(plan, None, [Records()]),
                lambda: plain.execute("SELECT count(*) FROM t WHERE a > 0").fetchall(),
            ),
            strict=True,
        ):
            start = time.perf_counter()
            run()
            taken.append((time.perf_counter() - start) * 1000)
    ours, theirs = (statistics.median(taken) for taken in times)
    print(
        f"\none row: {ours:.2f} ms, by hand {theirs:.2f} ms: {ours - theirs:.2f} ms of overhead (bar: 1 ms)"
    )
    engine.close()


def main() -> int:
    sizes = [int(size) for size in sys.argv[1:] if size != "--cpu"] or [10**5, 10**6, 10**7]
    hold = [compare(size) for size in sizes]
    overhead()
    return 0 if hold[-1] else 1


if __name__ == "__main__":
    sys.exit(main())
