"""What reading csv costs: ours, by the definition, beside DuckDB's own reader. `python bench/text.py [rows]`.

Side by side in one process, each the best of three: DuckDB's read_csv into a
table, with everything detected and with everything stated; ours with a schema
and without one; and one count over each, which is what every query costs again
where a file is read each time.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from fpinq.engines.duckdb import DuckDB
from fpinq.model.expressions import Type
from fpinq.model.plans import RootTable
from fpinq.model.statistics import Records

SCHEMA = {"id": Type.INT64, "age": Type.INT64, "x": Type.FLOAT64, "name": Type.STRING, "day": Type.DATE}
STATED = "columns = {'id': 'BIGINT', 'age': 'BIGINT', 'x': 'DOUBLE', 'name': 'VARCHAR', 'day': 'DATE'}"


def write(path: Path, rows: int, quoted: bool) -> None:
    """A file of five columns."""
    q = '"' if quoted else ""
    with path.open("w") as file:
        file.write("id,age,x,name,day\n")
        for i in range(rows):
            file.write(f"{i},{i % 97},{i * 0.5},{q}name{i % 1000}{q},2024-01-{1 + i % 28:02d}\n")


def best(act: Callable[[], object]) -> float:
    """The shortest of three runs, in seconds."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)


def theirs(path: Path, options: str) -> None:
    """DuckDB's own reader into a table."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM read_csv('{path}'{options})")


def ours(path: Path, stated: bool) -> None:
    """The definition's reading into a table."""
    engine = DuckDB()
    engine.add_root("t", path, SCHEMA if stated else None)
    engine.close()


def counted(path: Path) -> tuple[float, float]:
    """One count of a table of ours, and of the file read again."""
    engine = DuckDB()
    engine.add_root("t", path, SCHEMA)
    table = best(lambda: engine.measure(RootTable("t"), None, [Records()]))
    engine.close()
    with duckdb.connect() as connection:
        scan = f"SELECT count(id) FROM read_csv('{path}')"
        return table, best(lambda: connection.execute(scan).fetchall())


def report(path: Path, rows: int, quoted: bool) -> None:
    """All of it, of one file."""
    write(path, rows, quoted)
    kind = "a quoted column" if quoted else "no quotes"
    print(f"{rows:,} rows, {path.stat().st_size / 1e6:.0f} MB, {kind}")
    print(f"  read_csv, detected      {best(lambda: theirs(path, '')):7.2f} s")
    print(f"  read_csv, stated        {best(lambda: theirs(path, f', header = true, {STATED}')):7.2f} s")
    print(f"  ours, schema stated     {best(lambda: ours(path, True)):7.2f} s")
    print(f"  ours, schema read off   {best(lambda: ours(path, False)):7.2f} s")
    table, file = counted(path)
    print(f"  a count: table {table * 1000:.1f} ms, file read again {file * 1000:.1f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for quoted in (False, True):
            report(Path(folder) / "x.csv", int(sys.argv[1]) if len(sys.argv) > 1 else 10**6, quoted)
