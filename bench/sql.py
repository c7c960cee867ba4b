"""What SQL costs beside the same question by lambda: the plan of a statement, and a measurement in turns.

    python bench/sql.py [--rows 1000000] [--times 15]

Processor time of this process, medians of runs in turns. *asked* is a statement that was planned, from its
plan to its answers, and *SQL* all of it, from its text; the lambda is from the lambda to its answers. The
bars are 5 ms for a plan, and 1.1 for what is asked to the lambda.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import fpinq as fp
from fpinq.sql.asking import ask
from fpinq.sql.front import planned
from fpinq.sql.parsing import parse

STATEMENTS = {
    "count": "SELECT COUNT(*) AS n FROM t WHERE a > 17",
    "averages": "SELECT k, COUNT(*) AS n, AVG(a) AS m FROM t WHERE a > 17 AND b < 0.9 GROUP BY k",
    "pricing": "SELECT k, SUM(a) AS s, SUM(a * (1 - b)) AS d, SUM(a * (1 - b) * (1 + b)) AS e, AVG(a) AS m, "
    "AVG(b) AS w, COUNT(*) AS n FROM t WHERE a <= 90 AND b BETWEEN 0.05 AND 0.95 GROUP BY k ORDER BY k",
}


def by_lambda(t: Any) -> dict[str, Callable[[], Any]]:
    """The same questions."""
    return {
        "count": lambda: t.where(lambda x: x.a > 17).noisy_count("1/10"),
        "averages": lambda: t.where(lambda x: (x.a > 17) & (x.b < 0.9)).query(
            "1/10", fp.several(n=fp.count(), m=fp.average("a")), by="k"
        ),
        "pricing": lambda: t.where(lambda x: (x.a <= 90) & (x.b >= 0.05) & (x.b <= 0.95)).query(
            "1/10",
            fp.several(
                s=fp.sum("a"),
                d=fp.sum(lambda x: x.a * (1 - x.b), bounds=(0, 100)),
                e=fp.sum(lambda x: x.a * (1 - x.b) * (1 + x.b), bounds=(0, 200)),
                m=fp.average("a"),
                w=fp.average("b"),
                n=fp.count(),
            ),
            by="k",
        ),
    }


def median(do: Callable[[], Any], times: int) -> float:
    """Milliseconds of processor time."""
    found = []
    for _ in range(times):
        start = time.process_time()
        do()
        found.append(1000 * (time.process_time() - start))
    return statistics.median(found)


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.parquet"
        made = f"SELECT i % 100 AS a, random() AS b, i % 8 AS k FROM range({arguments.rows}) AS r(i)"
        duckdb.execute(f"COPY ({made}) TO '{file}' (FORMAT parquet)")
        columns = {
            "a": fp.Column(bounds=(0, 100)),
            "b": fp.Column(bounds=(0, 1)),
            "k": fp.Column(keys=range(8)),
        }
        table = fp.protect(str(file), budget=10**9, columns=columns)
        lambdas = by_lambda(table)
        print(
            "".join(
                f"{head:>10}" for head in ("", "parse", "plan", "asked", "SQL", "lambda", "asked", "SQL")
            ),
            "  ms, ratios",
        )
        for name, text in STATEMENTS.items():
            parsed = median(lambda text=text: parse(text), arguments.times)  # type: ignore[misc]
            plan = median(lambda text=text: planned(text, {"t": table}), arguments.times)  # type: ignore[misc]
            asked, ours, theirs = [], [], []
            for _ in range(arguments.times):  # in turns: what else runs here is shared
                theirs.append(median(lambdas[name], 1))
                fresh = planned(text, {"t": table})
                asked.append(median(lambda fresh=fresh: ask(fresh, "1/10"), 1))  # type: ignore[misc]
                ours.append(median(lambda text=text: table.sql(text, epsilon="1/10"), 1))  # type: ignore[misc]
            whole, base = statistics.median(ours), statistics.median(theirs)
            row = "".join(f"{ms:>10.2f}" for ms in (parsed, plan, statistics.median(asked), whole, base))
            print(f"{name:<10}{row}{statistics.median(asked) / base:>10.2f}{whole / base:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
