"""Separate executor processes: the same integers, and none at all when a worker dies for good.

An executor that we found as a child of our own Spark is killed in the middle of
a query. Spark computes what it lost again, from the same rows, or fails.
"""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
import logging, os, signal, sys, threading, time
from fractions import Fraction
from fpinq.engines.spark import Spark
from fpinq.model.clamps import Clamp
from fpinq.model.errors import EngineError
from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.plans import RootTable, Term
from fpinq.model.queries import Count, Moments, Rank, Sum
from fpinq.model.transformations import Aggregate, First, GroupBy, Join, Partitioning

def descendants():
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry))
            except OSError:
                pass
    found, waiting = [], [os.getpid()]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found

def executors():
    found = []
    for pid in descendants():
        try:
            if b"CoarseGrainedExecutorBackend" in open(f"/proc/{pid}/cmdline", "rb").read():
                found.append(pid)
        except OSError:
            pass
    return found

conf = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "4",
    # Do not wait long for what a dead executor had.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
    "spark.network.timeout": "60s",
    "spark.executor.heartbeatInterval": "5s",
    **(dict(item.split("=", 1) for item in sys.argv[2:])),
}
engine = Spark("local-cluster[2,1,1024]", conf)
session = engine._sessions[0]
rows = 500_000
session.sql(
    f"SELECT id AS i, id % 7 AS k, CAST(hash(id) AS BIGINT) AS x FROM range({rows})"
).repartition(8).write.parquet(sys.argv[1] + "/t.parquet")
engine.add_root("t", sys.argv[1] + "/t.parquet")
table = RootTable("t")
groups = Term(GroupBy((("k", Column("x")),), (("n", Aggregate("count")),)), (table,))
joined = Term(
    Join((Column("i"),), (Column("i"),), First(1), First(1), (("k", Column("l.k")), ("x", Column("r.x")))),
    (table, table),
)
by = Partitioning(Column("k"), tuple(range(7)))
x = Clamp(Column("x"), -(2**31), 2**31)
work = [
    (table, by, [Count()] * 3 + [Sum(x)] * 2 + [Moments(x, 1)] * 2),
    (joined, by, [Moments(Clamp(Column("x"), 0, 2**31), 2)] * 7),
    (groups, None, [Count()]),
]
right = [engine.measure(*each) for each in work]
assert sum(q[0] for q in right[0][:3]) == sum(len(range(k, rows, 7)) for k in range(3))
print("EXECUTORS", len(executors()), flush=True)
outcomes = []
for delay, each, expected in [(0.5, work[1], right[1]), (0.2, work[0], right[0])]:
    def kill(delay=delay):
        time.sleep(delay)
        for pid in executors()[:1]:
            os.kill(pid, signal.SIGKILL)
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = engine.measure(*each)
        outcomes.append("RIGHT" if found == expected else "WRONG")
    except EngineError as error:
        assert "Exception" not in str(error), str(error)
        outcomes.append("ERROR")
    killer.join()
    print("OUTCOME", outcomes[-1], flush=True)
print("OUTCOMES", *outcomes, flush=True)
engine.close()
"""


def run(folder: Path, *conf: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROGRAM), str(folder), *conf],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    try:
        out, error = program.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        raise
    assert program.returncode == 0, error[-3000:]
    return out


@pytest.mark.slow
def test_a_killed_executor_changes_no_integer(tmp_path: Path) -> None:
    out = run(tmp_path)
    assert "EXECUTORS 2" in out
    outcomes = next(line for line in out.splitlines() if line.startswith("OUTCOMES")).split()[1:]
    assert len(outcomes) == 2
    assert set(outcomes) <= {"RIGHT", "ERROR"}
