"""The ledger's bars: opening and verifying a long ledger, commits of a charged count, hashing a file.

    python bench/ledger.py [--entries 1000000] [--folder FOLDER] [--postgres URL]

Prints what was measured beside the bar. The long ledger has 1,000 entries per
session: a partition, and then again and again a fresh where, a count of it and
its answer, every tenth of a part. A charged count is measured in turns with raw
SQLite that writes the same rows in the same two commits, and as a ratio to that.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

from fpinq.engines.files import hash_of_file
from fpinq.ledger import Ledger, open_ledger, open_store
from fpinq.ledger.entries import Head, Line, line
from fpinq.ledger.sqlite import SQLite
from fpinq.ledger.store import Pages, units_text
from fpinq.ledger.totals import totals_of
from fpinq.ledger.verify import verify
from fpinq.model.actions import Action, AskBudget, Assign, Partition, Query
from fpinq.model.events import Recorded, Took
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.queries import Count
from fpinq.model.sessions import Budgets, amounts, decide, opened
from fpinq.model.transformations import Partitioning, Where

SHAPE = Schema((("age", Type.INT64), ("city", Type.STRING)))
BUDGET = 10**9
PER_SESSION = 1000
AT = "2026-01-01T00:00:00.000+00:00"


def program() -> Iterator[Action]:
    """What one session does."""
    parts = ("north", "south", "east")
    yield Partition(parts, "people", Partitioning(Column("city"), parts))
    number = 0
    while True:
        number += 1
        older = Where(Apply("greater", (Column("age"), Literal.of(number % 90))))
        yield Assign(f"t{number}", older, ("people",))
        table = parts[number % 3] if number % 10 == 0 else f"t{number}"
        yield Query(table, Fraction(1 + number % 5, 100), (Count(),))


def lines(budgets: Budgets, head: Head, count: int) -> Iterator[tuple[Line, Budgets]]:
    """That many entries after head, and the budgets after each."""
    number, totals = 0, totals_of(amounts(budgets, budgets.spent))
    while True:
        name, session = f"session-{number}", opened(None)
        number += 1
        written, actions = 0, program()
        while written < PER_SESSION:
            if not count:
                return
            action = next(actions)
            decision = decide(budgets, session, action)
            session, budgets = decision.session, decision.budgets
            totals = totals.after(amounts(budgets, [(root, "") for root in decision.charged]))
            took = Took(name, None, f"r{written}", action, decision.transition.rule, decision.charged)
            bodies: list[Took | Recorded] = [took]
            if isinstance(action, Query):
                bodies.append(Recorded(head.seq + 1, ((12345 + written,),)))
            for body in bodies:
                if not count:
                    return
                made = line(head, body, AT, totals.text)
                head = Head(made.seq, made.hash)
                written, count = written + 1, count - 1
                yield made, budgets


def build(path: Path, count: int) -> None:
    """A ledger of count entries, written at once."""
    ledger = open_ledger(path)
    ledger.register("people", SHAPE, BUDGET, contents=["people"])
    budgets, head = ledger._memory.budgets, ledger.head()
    with ledger._store.writing(durable=True) as statements:
        insert = "INSERT INTO entries (seq, hash, text, session, request, answers) VALUES (?, ?, ?, ?, ?, ?)"
        for made, after in lines(budgets, head, count - head.seq - 1):
            spent = after.spent["people", ""]
            statements.run(insert, made.seq, made.hash, made.text, made.session, made.request, made.answers)
        statements.run("UPDATE head SET seq = ?, hash = ?", made.seq, made.hash)
        statements.run("UPDATE accounts SET spent = ?", units_text(spent))
    ledger.close()


def timed(what: str, unit: str, measured: float, bar: str, ok: bool) -> None:
    print(f"{what:<52}{measured:>14,.2f} {unit:<12} {bar:<18} {'ok' if ok else 'BELOW'}")


def rate_of(
    ledger: Ledger, action: Action, seconds: float = 3, answered: bool = False, session: str = "bench"
) -> float:
    """How many of an action a second."""
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        acted = ledger.act(session, action, f"{action.op}{done}")
        if answered:
            ledger.answer(acted.seq or 0, ((1,),))
        done += 1
    return done / (time.perf_counter() - start)


class Raw:
    """The rows of a charged count and its answer, written by nobody who thinks: two commits, both synced."""

    def __init__(self, path: Path, like: Path) -> None:
        """A ledger of its own at path; like holds a charge and its answer, the last two entries."""
        SQLite(path).close()
        self._sql = sqlite3.connect(path, isolation_level=None)
        self._sql.execute("PRAGMA synchronous = FULL")
        self._sql.execute(
            "INSERT INTO accounts VALUES ('people', '', ?, ?)", (units_text(BUDGET), units_text(0))
        )
        with closing(open_store(like)) as store, store.reading() as statements:
            pages = Pages(statements)
            self._charge, self._answer = pages.after(pages.last() - 2)
        self._done = 0

    def charged_count(self) -> None:
        """A charge, then its answer."""
        seq, spent = 2 * self._done, units_text(self._done)
        self._done += 1
        self._sql.execute("BEGIN IMMEDIATE")
        self._append(self._charge._replace(seq=seq, session="raw", request=str(seq)))
        self._sql.execute(
            "UPDATE accounts SET spent = ? WHERE root = 'people' AND analyst = '' AND spent = ?",
            (units_text(self._done), spent),
        )
        self._sql.execute("COMMIT")
        self._sql.execute("BEGIN IMMEDIATE")
        self._append(self._answer._replace(seq=seq + 1, answers=seq))
        self._sql.execute("COMMIT")

    def _append(self, entry: Line) -> None:
        self._sql.execute(
            "INSERT INTO entries (seq, hash, text, session, request, answers) VALUES (?, ?, ?, ?, ?, ?)",
            entry,
        )
        self._sql.execute("UPDATE head SET seq = ?, hash = ?", (entry.seq, entry.hash))


def beside_raw(folder: Path, seconds: float = 0.5, turns: int = 6) -> tuple[float, float]:
    """Charged counts a second, of the ledger and of raw SQLite: in turns, and the best of each."""
    path = folder / "ours.ledger"
    ledger = open_ledger(path)
    ledger.register("people", SHAPE, BUDGET, contents=["people"])
    query, ours, raws = Query("people", Fraction(1, 100), (Count(),)), [0.0], [0.0]
    ledger.answer(ledger.act("bench", query, "first").seq or 0, ((12345,),))
    raw = Raw(folder / "raw.ledger", path)
    for turn in range(turns):
        ours.append(rate_of(ledger, query, seconds, answered=True, session=f"bench{turn}"))
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            raw.charged_count()
            done += 1
        raws.append(done / (time.perf_counter() - start))
    ledger.close()
    return max(ours), max(raws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--postgres", metavar="URL", help="an empty database, for the rates there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "long.ledger"
        start = time.perf_counter()
        build(path, arguments.entries)
        print(f"{arguments.entries:,} entries, {path.stat().st_size / 1e6:,.0f} MB, "
              f"built in {time.perf_counter() - start:.0f} s; load {os.getloadavg()[0]:.1f} "
              f"on {os.cpu_count()} cores")  # fmt: skip

        start = time.perf_counter()
        ledger = open_ledger(path)
        ledger.act("fresh", AskBudget())
        took = time.perf_counter() - start
        timed("open, and ask the budget", "s", took, "≤ 2", took <= 2)
        start = time.perf_counter()
        ledger.act("session-0", AskBudget())
        print(f"{'come back to a session of 1,000 entries':<52}{time.perf_counter() - start:>14,.2f} s")
        ledger.close()

        with closing(open_store(path)) as store:
            jobs = os.cpu_count() or 1
            start, cpu = time.perf_counter(), time.process_time()
            report = verify(store, jobs=jobs)
            rate = report.entries / (time.perf_counter() - start)
            alone = report.entries / (time.process_time() - cpu)
        timed(f"verify, {jobs} processes", "entries/s", rate, "≥ 50,000", rate >= 50_000)
        print(f"{'  by the CPU time of one of them':<52}{alone:>14,.2f} entries/s")

        for where in [str(Path(folder) / "rates.ledger"), *filter(None, [arguments.postgres])]:
            kind = "PostgreSQL" if where.startswith("postgres") else "SQLite"
            ledger = open_ledger(where)
            ledger.register("people", SHAPE, BUDGET, contents=["people"])
            assign = Assign("t", Where(Apply("greater", (Column("age"), Literal.of(17)))), ("people",))
            rate = rate_of(ledger, assign)
            timed(f"{kind}: assign, recorded", "a second", rate, "≥ 1,000", rate >= 1000)
            rate = rate_of(ledger, AskBudget())
            timed(f"{kind}: ask budget", "a second", rate, "≥ 1,000", rate >= 1000)
            rate = rate_of(ledger, Query("people", Fraction(1, 100), (Count(),)), answered=True)
            timed(f"{kind}: charged count, 2 durable commits", "a second", rate, "", True)
            ledger.close()

        ours, raw = beside_raw(Path(folder))
        print(f"{'raw SQLite with the same rows and two commits':<52}{raw:>14,.2f} a second")
        timed("  of it, a charged count of the ledger", "times raw", ours / raw, "≥ 0.6", ours >= 0.6 * raw)

        big = Path(folder) / "big.parquet"
        with big.open("wb") as file:
            for _ in range(32):
                file.write(os.urandom(2**25))
        hash_of_file(str(big))  # warm, so that the disk is not what is measured
        start = time.perf_counter()
        hash_of_file(str(big))
        rate = 2**30 / 1e9 / (time.perf_counter() - start)
        timed(f"hash a file, {os.cpu_count()} cores", "GB/s", rate, "≥ 1", rate >= 1)


if __name__ == "__main__":
    main()
