"""What depth costs: a measurement of a table that many steps made, beside the same SQL written by hand.

    python bench/depth.py [steps …]        (1, 10 and 100 unless given)

By hand there are two ways: a subquery for every step, as the program is written, and the one statement
that somebody would write who has understood it. Processor time of the fastest of several runs, taken in
turns; the ratios are ours to theirs. The bar is 2 times the first, at 100 steps.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from fpinq.engines.duckdb import DuckDB
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.plans import Plan, RootTable, Term, Transformation
from fpinq.model.statistics import Totals
from fpinq.model.transformations import Select, Where

RUNS = 15
BAR = 2.0
COLUMNS = ("a", "b", "c", "d", "e", "f")
_A = Column("a")
_CLAMPED = "sum(CASE WHEN a < 0 THEN 0 WHEN a > 10 THEN 10 ELSE a END)"


@dataclass(frozen=True)
class Chain:
    """A step to be taken many times, and how each is written by hand: after FROM, and in one statement."""

    name: str
    step: Callable[[int], Transformation]
    nested: Callable[[int, str], str]
    flat: Callable[[int], str]


def _test(i: int) -> Where:
    return Where(Apply("greater", (_A, Literal.of(float(i - 1000)))))


def _sum(i: int) -> Select:
    added = Apply("add", (_A, Literal.of(1.0)))
    return Select(tuple((name, added if name == "a" else Column(name)) for name in COLUMNS))


def _nested_test(i: int, source: str) -> str:
    return f"(SELECT * FROM {source} WHERE a > {i - 1000})"


def _nested_sum(i: int, source: str) -> str:
    return f"(SELECT a + 1 AS a, b, c, d, e, f FROM {source})"


def _flat_both(steps: int) -> str:
    tests = " AND ".join(f"a + {(i + 1) // 2} > {i - 1000}" for i in range(1, steps, 2)) or "TRUE"
    return f"SELECT {_CLAMPED.replace('a ', f'(a + {(steps + 1) // 2}) ')} FROM t WHERE {tests}"


CHAINS = [
    Chain(
        "filters",
        _test,
        _nested_test,
        lambda steps: (
            f"SELECT {_CLAMPED} FROM t WHERE " + " AND ".join(f"a > {i - 1000}" for i in range(steps))
        ),
    ),
    Chain(
        "selects",
        _sum,
        _nested_sum,
        lambda steps: f"SELECT {_CLAMPED.replace('a ', f'(a + {steps}) ')} FROM t",
    ),
    Chain(
        "filters and selects",
        lambda i: _test(i) if i % 2 else _sum(i),
        lambda i, source: _nested_test(i, source) if i % 2 else _nested_sum(i, source),
        _flat_both,
    ),
]


def best(*runs: Callable[[], Any]) -> list[float]:
    """The least processor time of each, in milliseconds; a first round is not counted."""
    taken = [float("inf")] * len(runs)
    for turn in range(RUNS + 1):
        for i, run in enumerate(runs):
            start = time.process_time()
            run()
            if turn:
                taken[i] = min(taken[i], (time.process_time() - start) * 1000)
    return taken


@contextmanager
def _engines() -> Iterator[tuple[DuckDB, duckdb.DuckDBPyConnection]]:
    engine, plain = DuckDB(), duckdb.connect(":memory:")
    plain.execute("SET max_expression_depth = 4000")
    rows = [dict.fromkeys(COLUMNS, float(i)) for i in range(1000)]
    engine.add_root("t", rows)
    listed = ", ".join(f"range::DOUBLE AS {name}" for name in COLUMNS)
    plain.execute(f"CREATE TABLE t AS SELECT {listed} FROM range(1000)")
    yield engine, plain
    engine.close()
    plain.close()


def measured(chain: Chain, steps: int) -> tuple[float, float, float]:
    """The milliseconds of ours, of a subquery for every step, and of one statement."""
    plan: Plan = RootTable("t")
    source = "t"
    for i in range(steps):
        plan, source = Term(chain.step(i), (plan,)), chain.nested(i, source)
    wanted = [Totals((Clamp(_A, 0, 10),))]
    with _engines() as (engine, plain):
        ours, nested, flat = best(
            lambda: engine.measure(plan, None, wanted),
            lambda: plain.execute(f"SELECT {_CLAMPED} FROM {source}").fetchall(),
            lambda: plain.execute(chain.flat(steps)).fetchall(),
        )
    return ours, nested, flat


def ratio(steps: int) -> float:
    """Ours to a subquery for every step, the worst of all chains: bench/growth.py asks for it."""
    return max(ours / nested for ours, nested, _ in (measured(chain, steps) for chain in CHAINS))


def main() -> int:
    sizes = [int(size) for size in sys.argv[1:]] or [1, 10, 100]
    print(f"{'':30}{'ours':>8} ms{'nested':>9} ms{'flat':>9} ms{'/nested':>9}{'/flat':>9}")
    holds = True
    for chain in CHAINS:
        for steps in sizes:
            ours, nested, flat = measured(chain, steps)
            holds &= ours <= BAR * nested
            mark = "" if ours <= BAR * nested else "   above the bar"
            ratios = f"{ours / nested:9.2f}{ours / flat:9.2f}{mark}"
            print(f"{steps:>5} {chain.name:24}{ours:8.2f}   {nested:9.2f}   {flat:9.2f}   {ratios}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
