"""Nothing is slower than before: the same works by this tree and by another one, in turns, in one run.

    git worktree add ../before COMMIT
    python bench/before.py ../before [--turns 7] [--postgres] [work …]

Each tree has a process of its own, which imports that tree's fpinq and bench/ledger.py; both do one work
after the other, in turns. A figure is the best processor time of a work, with that of the processes it
started, and the ratio of the two. --postgres starts a PostgreSQL for the purpose, in memory and without
fsync, with a database for each tree: of these works it is the time that they take, which is mostly its own.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from fractions import Fraction
from itertools import count, islice
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
BAR = 1.05
POSTGRES = "ledger in PostgreSQL"
# A work: what is done, and of how much of it is the figure.
Works = dict[str, tuple[Callable[[], object], int]]


# ── the works, in the process of a tree ──────────────────────────────────────────────


def embedded() -> Works:
    """A client in the same process, on one row: what is not the engine's."""
    import fpinq as fp

    one = fp.protect([{"a": 1}], budget=10**9, name="one", schema={"a": "int64"})
    limits, keys = count(10), list(range(100))
    few = one.where(lambda x: x.a < 5)

    def cached() -> None:
        for _ in range(1000):
            few.noisy_count(1)

    def fresh() -> None:
        for limit in islice(limits, 100):
            one.where(lambda x, limit=limit: x.a < limit).noisy_count(1)

    def in_parts() -> None:
        for part in one.partition(lambda x: x.a, keys=keys).values():
            part.noisy_count(1)

    def bound() -> None:
        for limit in islice(limits, 300):
            one.where(lambda x, limit=limit: x.a < limit)

    return {
        "embedded: a count that was measured before": (cached, 1000),
        "embedded: where": (bound, 300),
        "embedded: where, and a count of it": (fresh, 100),
        "embedded: 100 parts, and a count of each": (in_parts, 100),
        "embedded: counts by 100 keys": (lambda: one.query(1, fp.count(), by=lambda x: x.a, keys=keys), 1),
        "embedded: what is left": (lambda: [one.remaining for _ in range(1000)], 1000),
    }


def ledgers(folder: Path) -> Works:
    """A ledger in SQLite; its commits are not waited for in processor time."""
    import ledger as own
    from fpinq.ledger import open_ledger, open_store
    from fpinq.ledger.verify import verify
    from fpinq.model.actions import AskBudget, Assign, Query
    from fpinq.model.expressions import Apply, Column, Literal
    from fpinq.model.queries import Count
    from fpinq.model.transformations import Where

    short, long = folder / "short.ledger", folder / "long.ledger"
    own.build(short, 10_000)
    own.build(long, 60_000)
    acting = open_ledger(folder / "acting.ledger")
    acting.register("people", own.SHAPE, own.BUDGET, contents=["people"])
    numbers = count()
    where = Where(Apply("greater", (Column("age"), Literal.of(5))))
    query = Query("people", Fraction(1, 100), (Count(),))

    def assign() -> None:
        session = f"s{next(numbers)}"
        for number in range(200):
            acting.act(session, Assign(f"t{number % 20}", where, ("people",)), f"r{number}")

    def charged() -> None:
        session = f"s{next(numbers)}"
        for number in range(200):
            acting.answer(acting.act(session, query, f"r{number}").seq or 0, ((1,),))

    def verified(path: Path, jobs: int) -> Callable[[], None]:
        def work() -> None:
            with closing(open_store(path)) as store:
                verify(store, jobs=jobs)

        return work

    def came_back() -> None:
        with closing(open_ledger(short)) as ledger:
            ledger.act("session-0", AskBudget())

    def opened() -> None:
        with closing(open_ledger(short)) as ledger:
            ledger.act("fresh", AskBudget())

    return {
        "ledger: assign": (assign, 200),
        "ledger: a charged count and its answer": (charged, 200),
        "ledger: ask the budget": (lambda: [acting.act("s0", AskBudget()) for _ in range(300)], 300),
        "ledger: open, and ask the budget": (opened, 1),
        "ledger: come back to a session of 1,000 entries": (came_back, 1000),
        "ledger: verify 10,000 entries": (verified(short, 1), 10_000),
        "ledger: verify 60,000 entries, one process": (verified(long, 1), 60_000),
        "ledger: verify 60,000 entries, two processes": (verified(long, 2), 60_000),
    }


def postgres(where: str) -> Works:
    """A ledger in PostgreSQL, of one thread."""
    import ledger as own
    from fpinq.ledger import open_ledger
    from fpinq.model.actions import Assign, Query
    from fpinq.model.expressions import Apply, Column, Literal
    from fpinq.model.queries import Count
    from fpinq.model.transformations import Where

    acting = open_ledger(where)
    acting.register("people", own.SHAPE, own.BUDGET, contents=["people"])
    numbers = count()
    where_ = Where(Apply("greater", (Column("age"), Literal.of(5))))
    query = Query("people", Fraction(1, 100), (Count(),))

    def assign() -> None:
        session = f"s{next(numbers)}"
        for number in range(200):
            acting.act(session, Assign(f"t{number % 20}", where_, ("people",)), f"r{number}")

    def charged() -> None:
        session = f"s{next(numbers)}"
        for number in range(200):
            acting.answer(acting.act(session, query, f"r{number}").seq or 0, ((1,),))

    return {
        f"{POSTGRES}: assign": (assign, 200),
        f"{POSTGRES}: a charged count and its answer": (charged, 200),
    }


def used() -> float:
    """Processor time so far, of this process and of those that it started."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


def serve() -> None:
    """Do the works that are asked for on stdin; print the microseconds of each."""
    with tempfile.TemporaryDirectory() as folder:
        works = embedded() | ledgers(Path(folder))
        if where := os.environ.get("FPINQ_BEFORE_POSTGRES"):
            works |= postgres(where)
        print("\t".join(works), flush=True)
        for asked in sys.stdin:
            work, many = works[asked.strip()]
            clock = time.perf_counter if asked.startswith(POSTGRES) else used
            began = clock()
            work()
            print((clock() - began) / many * 1e6, flush=True)


# ── in turns ─────────────────────────────────────────────────────────────────────────


class Tree:
    """A tree's process."""

    def __init__(self, path: Path, postgres: str = "") -> None:
        environment = {**os.environ, "PYTHONPATH": f"{path / 'src'}{os.pathsep}{path / 'bench'}"}
        environment["FPINQ_BEFORE_POSTGRES"] = postgres
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).resolve()), "--serve", str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self.works = self._read().split("\t")

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def time(self, work: str) -> float:
        """The microseconds of a work."""
        assert self._process.stdin is not None
        print(work, file=self._process.stdin, flush=True)
        return float(self._read())

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()


def compared(trees: list[Tree], names: list[str], turns: int) -> Iterator[tuple[str, list[float]]]:
    """Each work, and the best time of each tree."""
    for work in trees[0].works:
        if not names or any(name in work for name in names):
            taken = [[tree.time(work) for tree in trees] for _ in range(turns)]
            yield work, [min(each) for each in zip(*taken, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", type=Path)
    parser.add_argument("work", nargs="*", help="part of the name of a work; all without one")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--postgres", action="store_true", help="a ledger in PostgreSQL, too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_intermixed_args()
    if given.serve:
        serve()
        return 0
    with ExitStack() as stack:
        places = ["", ""]
        if given.postgres:
            sys.path.insert(0, str(HERE / "tests" / "ledger"))
            from throwaway_postgres import throwaway_postgres

            started = stack.enter_context(throwaway_postgres())
            places = [started.fresh(), started.fresh()]
        trees, met = list(map(Tree, [given.tree.resolve(), HERE], places)), True
        print(f"{'microseconds each':<52}{'before':>10}{'now':>10}{'ratio':>8}")
        for work, (before, now) in compared(trees, given.work, given.turns):
            met &= now <= BAR * before
            mark = "" if now <= BAR * before else "   NOT MET"
            print(f"{work:<52}{before:>10.1f}{now:>10.1f}{now / before:>8.2f}{mark}", flush=True)
        for tree in trees:
            tree.close()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
