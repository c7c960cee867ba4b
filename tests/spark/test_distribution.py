"""Separate executor processes: the same integers, and none at all when a worker dies for good.

Executors that we found as children of our own Spark are killed in the middle of
a query. Spark computes what it lost again, from the same rows, or fails; either
way the query was charged.
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
from fpinq.model.actions import AskBudget, AskPrice, Assign, Query
from fpinq.model.clamps import Clamp
from fpinq.model.errors import EngineError
from fpinq.model.expressions import Column
from fpinq.model.plans import RootTable, Term
from fpinq.model.queries import Count, Moments, Sum
from fpinq.model.transformations import First, Identity, Join, Partitioning
from fpinq.runtime import ProtectedSystem

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
    "spark.driver.extraJavaOptions": "-Xss32m -XX:+ExitOnOutOfMemoryError -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "4",
    # One task may die once; do not wait long for what a dead executor had.
    "spark.task.maxFailures": "2",
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
schema = engine.add_root("t", sys.argv[1] + "/t.parquet")
table = RootTable("t")
join = Join((Column("i"),), (Column("i"),), First(1), First(1), (("k", Column("l.k")), ("x", Column("r.x"))))
by = Partitioning(Column("k"), tuple(range(7)))
x = Clamp(Column("x"), -(2**31), 2**31)
SCAN = (Identity(), ("t",), (Count(),) * 3 + (Sum(x),) * 2 + (Moments(x, 1),) * 2)
PAIRS = (join, ("t", "t"), (Moments(Clamp(Column("x"), 0, 2**31), 2),) * 7)

def exact(transformation, arguments, queries):
    asked = [query.statistic for query in queries]
    return engine.measure(Term(transformation, tuple(map(RootTable, arguments))), by, asked)

def tasks_running():
    tracker = session.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)

def kill_one_at_work(over):
    while not over.is_set():
        if tasks_running():
            os.kill(executors()[0], signal.SIGKILL)
            print("KILLED", flush=True)
            return

def kill_all_at_work(over):
    while not over.wait(0.05):
        if tasks_running():
            for pid in executors():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

def asked_while(kill, transformation, arguments, queries, expected):
    # The outcome of a query through the protected system. It is charged whatever happens.
    seen, over = [], threading.Event()
    system = ProtectedSystem(engine, mechanism=lambda query, statistic, epsilon: seen.append(statistic) or 0)
    system.protect("t", schema, Fraction(10))
    system.act(Assign("a", transformation, arguments))
    price = system.act(AskPrice("a", Fraction(1))).fact["t"]
    assert price > 0
    killer = threading.Thread(target=kill, args=(over,))
    killer.start()
    try:
        system.act(Query("a", Fraction(1), queries, by))
        outcome = "RIGHT" if seen == expected else "WRONG"
    except EngineError as error:
        assert "Exception" not in str(error), str(error)
        outcome = "ERROR"
    over.set()
    killer.join()
    assert system.act(AskBudget()).fact["t"] == 10 - price
    return outcome

right_scan, right_pairs = exact(*SCAN), exact(*PAIRS)
assert sum(q[0] for q in right_scan[:3]) == sum(len(range(k, rows, 7)) for k in range(3))
print("EXECUTORS", len(executors()), flush=True)
print("JOIN", asked_while(kill_one_at_work, *PAIRS, right_pairs), flush=True)
print("SCAN", asked_while(kill_one_at_work, *SCAN, right_scan), flush=True)
print("FOR GOOD", asked_while(kill_all_at_work, *PAIRS, right_pairs), flush=True)
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
        out, error = program.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        raise
    assert program.returncode == 0, error[-3000:]
    return out


@pytest.mark.slow
def test_a_killed_executor_changes_no_integer_and_no_charge(tmp_path: Path) -> None:
    said = run(tmp_path).splitlines()
    assert said[0] == "EXECUTORS 2"
    assert said[1] == said[3] == "KILLED"
    assert said[2] in ("JOIN RIGHT", "JOIN ERROR")
    assert said[4] in ("SCAN RIGHT", "SCAN ERROR")
    assert said[5] == "FOR GOOD ERROR"
