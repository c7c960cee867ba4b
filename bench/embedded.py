"""What an analyst feels: import, first answer, overhead per query, a loop over parts, memory.

What a fresh Python takes to its first answer is processor time, with bytecode cached, whatever the rest is
measured in: so it has a meaning on a machine that others use.

    python bench/embedded.py [--cpu] [rows]        (10⁷ unless given)

Every figure is a ratio or a difference to the same work done by hand with
DuckDB, taken in turns in one run. Data is generated once by bench/engine.py's
generator. --cpu takes processor time instead of elapsed time: for a machine that
others use too.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count, islice

import duckdb
from engine import generate

import fpinq as fp

RUNS = 7
PARTS = 100
CPU = "--cpu" in sys.argv


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


CLOCK = time.process_time if CPU else time.perf_counter
CHILDREN = _children if CPU else time.perf_counter


def best(*works: Callable[[], object]) -> list[float]:
    """The best time of each of several works, in seconds, taken in turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(RUNS):
        for work, taken in zip(works, times, strict=True):
            began = CLOCK()
            work()
            taken.append(CLOCK() - began)
    return [min(taken) for taken in times]


def child(program: str, *arguments: str) -> tuple[float, float]:
    """How long a fresh Python takes for a program, and the most memory it had, in MB; the best of several."""
    measured = []
    report = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    for _ in range(RUNS):
        began = CHILDREN()
        done = subprocess.run(
            [sys.executable, "-c", program + report, *arguments], capture_output=True, text=True, check=True
        )
        measured.append((CHILDREN() - began, float(done.stdout.splitlines()[-1])))
    return min(m[0] for m in measured), statistics.median(m[1] for m in measured)


def first_answers(*programs: str, runs: int = 15) -> list[float]:
    """The processor time that a fresh Python takes to the end of each program, taken in turns; the best.

    How it takes itself apart afterwards is not counted.
    """
    report = "\nimport time; print(time.process_time())"
    environment = {name: of for name, of in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: list[list[float]] = [[] for _ in programs]
    for _ in range(runs):
        for program, taken in zip(programs, times, strict=True):
            done = subprocess.run(
                [sys.executable, "-c", program + report],
                capture_output=True,
                text=True,
                check=True,
                env=environment,
            )
            taken.append(float(done.stdout.splitlines()[-1]))
    return [min(taken) for taken in times]


OURS = """
import sys, fpinq as fp
data = fp.protect(sys.argv[1], budget=10**6)
print(data.where(lambda x: x.age > 17).noisy_average(1, lambda x: x.age, bounds=(0, 110)))
"""
THEIRS = """
import sys, duckdb
print(duckdb.execute("SELECT avg(age) FROM read_parquet($1) WHERE age > 17", [sys.argv[1]]).fetchall())
"""


def show(what: str, figure: str, bar: str, met: bool) -> None:
    print(f"{what:<58} {figure:<40} {bar:<12} {'met' if met else 'NOT MET'}")


def main() -> None:
    given = [argument for argument in sys.argv[1:] if argument != "--cpu"]
    rows = int(given[0]) if given else 10**7
    visits = str(generate(rows) / "visits.parquet")
    small = str(generate(10**5) / "visits.parquet")

    said = f"import sys; sys.argv[1:] = [{small!r}]"
    bare, imported, cold, raw = first_answers("pass", "import fpinq", said + OURS, said + THEIRS)
    taken = (imported - bare) * 1000
    show("import fpinq", f"{taken:.0f} ms", "≤ 80 ms", taken <= 80)
    figure = f"{cold * 1000:.0f} ms, DuckDB {raw * 1000:.0f} ms: {cold / raw:.2f}×"
    show("process start to first answer, 10⁵ rows", figure, "≤ 1.8×", cold <= 1.8 * raw)

    one = fp.protect([{"a": 1}], budget=10**9, name="one", schema={"a": "int64"})
    by_hand = duckdb.connect()
    by_hand.execute("CREATE TABLE one AS SELECT 1 AS a")
    limits = count(10**6)  # another predicate each time: nothing comes from a cache

    def fifty_queries() -> None:
        for limit in islice(limits, 50):
            one.where(lambda x, limit=limit: x.a < limit).noisy_count(1)

    def fifty_by_hand() -> None:
        for limit in islice(limits, 50):
            by_hand.execute("SELECT count(*) FROM one WHERE a < $1", [limit]).fetchall()

    ours, theirs = best(fifty_queries, fifty_by_hand)
    overhead = (ours - theirs) / 50 * 1000
    show("overhead per query, one row", f"{overhead:.2f} ms", "≤ 3 ms", overhead <= 3)

    data = fp.protect(visits, budget=10**9, name="visits")
    keys = list(range(PARTS))

    def in_a_loop() -> None:
        limit = next(limits)
        fresh = data.where(lambda x: x.age < limit)
        for part in fresh.partition(lambda x: x.clinic, keys=keys).values():
            part.noisy_count(1)

    def at_once() -> None:
        limit = next(limits)
        data.where(lambda x: x.age < limit).query(1, fp.count(), by=lambda x: x.clinic, keys=keys)

    loop, once = best(in_a_loop, at_once)
    figure = f"{loop * 1000:.0f} ms, one grouped query {once * 1000:.0f} ms: {loop / once:.2f}×"
    show(f"a loop over {PARTS} parts, {rows:,} rows", figure, "≤ 1.5×", loop <= 1.5 * once)

    _, ours_mb = child(OURS, visits)
    _, theirs_mb = child(THEIRS, visits)
    figure = f"{ours_mb:.0f} MB, by hand {theirs_mb:.0f} MB: {ours_mb / theirs_mb:.2f}×"
    show(f"peak memory, average over {rows:,} rows", figure, "≤ 1.3×", ours_mb <= 1.3 * theirs_mb)


if __name__ == "__main__":
    main()
