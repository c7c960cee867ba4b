"""One query of very many parts, beside DuckDB's own GROUP BY with the same keys.

    python bench/wide.py [--memory] [--text] [rows] [keys …]       (5·10⁶ rows, 10³ … 10⁶ keys unless given)

Processor time, the best of several, taken in turns in one run. Both read a parquet
file, or with --memory a table of their own; keys are integers, or with --text texts.
What is asked is asked for the first time in every run: nothing comes from a cache.
"""

import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import duckdb
import numpy as np

import fpinq as fp

RUNS = 4
BARS = {10**3: 1.3, 10**4: 1.5, 10**5: 2.0, 10**6: 4.0}
BYTES_PER_PART = 200


class Ratio(NamedTuple):
    """A query of all parts beside the same GROUP BY: seconds of processor time."""

    what: str
    keys: int
    ours: float
    theirs: float

    @property
    def times(self) -> float:
        """How many times as long."""
        return self.ours / self.theirs


def in_turns(*works: Callable[[], object], runs: int = RUNS) -> list[float]:
    """The best processor time of each work, taken in turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(runs):
        for work, taken in zip(works, times, strict=True):
            began = time.process_time()
            work()
            taken.append(time.process_time() - began)
    return [min(taken) for taken in times]


def rows_of(rows: int, keys: int) -> dict[str, Any]:
    """Records with a key of so many, and an age."""
    random = np.random.default_rng(1)
    return {"k": random.integers(0, keys, rows), "age": random.integers(0, 111, rows)}


def measured(
    rows: int, keys: int, *, memory: bool = False, text: bool = False, runs: int = RUNS
) -> Iterator[Ratio]:
    """Counts and averages by so many keys."""
    columns, listed = rows_of(rows, keys), range(keys)
    if text:
        listed = np.array([f"city number {key}" for key in listed], dtype=object)
        columns["k"] = listed[columns["k"]]
    with tempfile.TemporaryDirectory() as folder:
        yield from _measured(columns, listed, "" if memory else f"{folder}/wide.parquet", runs)


def _measured(columns: dict[str, Any], listed: Any, path: str, runs: int) -> Iterator[Ratio]:
    by_hand, source, keys, rows = duckdb.connect(), _frame(columns), len(listed), len(columns["k"])
    listed = listed if isinstance(listed, range) else listed.tolist()
    if path:
        by_hand.execute(f"COPY source TO '{path}'")
    data = fp.protect(path or source, budget=10**9, name=f"wide_{rows}_{keys}_{bool(path)}")
    by_hand.execute(f"CREATE VIEW t AS SELECT * FROM '{path}'" if path else "CREATE TABLE t AS FROM source")
    fresh = count(1)
    asked = {
        "count": (fp.count(), "count(*)"),
        "average": (fp.average("age", bounds=(0, 110)), "avg(age)"),
    }
    for what, (query, sql) in asked.items():

        def ours(query: Any = query) -> object:
            older = next(fresh)
            return data.where(lambda x: x.age >= older).query(1, query, by="k", keys=listed)

        def theirs(sql: str = sql) -> object:
            text = f"SELECT k, {sql} FROM t WHERE age >= {next(fresh)} GROUP BY k"
            return by_hand.execute(text).fetchnumpy()

        yield Ratio(what, keys, *in_turns(ours, theirs, runs=runs))


def bytes_per_part(rows: int, keys: int) -> float:
    """What an answer of so many parts holds, and what is kept beside it, for each part."""
    data = fp.protect(_frame(rows_of(rows, keys)), budget=10**9, name=f"held_{rows}_{keys}")
    data.query(1, fp.count(), by="k", keys=[0])
    tracemalloc.start()
    answers = data.query(1, fp.count(), by="k", keys=range(keys))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / len(answers)


def _frame(columns: dict[str, Any]) -> Any:
    import pandas as pd

    return pd.DataFrame(columns)


def main() -> None:
    memory, text = "--memory" in sys.argv, "--text" in sys.argv
    rows, *sizes = [int(float(given)) for given in sys.argv[1:] if given[:2] != "--"] or [5 * 10**6]
    for keys in sizes or BARS:
        for found in measured(rows, keys, memory=memory, text=text):
            bar = BARS.get(keys, 0.0)
            shown = f"{found.ours * 1000:,.0f} ms, by hand {found.theirs * 1000:,.0f} ms: {found.times:.2f}×"
            print(f"{found.what} by {keys:,} keys, {rows:,} rows".ljust(48), shown.ljust(48), f"≤ {bar}×")
        print(f"held for each of {keys:,} parts".ljust(48), f"{bytes_per_part(10**5, keys):,.0f} bytes")


if __name__ == "__main__":
    main()
