"""What grows with what: one table of all growth laws, each with its bar.

    python bench/growth.py [--quick | --big] [law …]        (all laws unless named)

Every figure is a ratio in processor time, of works taken in turns in one run: to the same work by hand,
or to the same work at a smaller size; where a bar is in seconds or bytes, that is said. --quick takes small
sizes and a minute or two, and its bars are those of larger ones; --big adds rows to 10⁸ and a ledger of 10⁶
entries. The exit code says whether every bar is met.
"""

import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import count, islice, repeat
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import depth as deep
import duckdb
import wide
from engine import generate

import fpinq as fp
import ledger as ledgers
from fpinq.ledger import open_ledger, open_store
from fpinq.ledger.verify import verify
from fpinq.model.actions import AskBudget, Assign
from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.transformations import Where

QUICK, BIG = "--quick" in sys.argv, "--big" in sys.argv
RUNS = 3 if QUICK else 5


class Law(NamedTuple):
    """How something grows: at which sizes, what was found, what is wanted."""

    name: str
    sizes: str
    figures: str
    bar: str
    met: bool


def in_turns(*works: Callable[[], object], runs: int = RUNS) -> list[float]:
    """The best processor time of each work, in seconds, taken in turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(runs):
        for work, taken in zip(works, times, strict=True):
            gc.collect()
            began = time.process_time()
            work()
            taken.append(time.process_time() - began)
    return [min(taken) for taken in times]


def sizes(quick: list[int], usual: list[int], big: list[int] | None = None) -> list[int]:
    """The sizes that were asked for."""
    return quick if QUICK else [*usual, *(big or [])] if BIG else usual


def ratios(name: str, found: dict[int, float], bars: dict[int, float], unit: str = "×") -> Law:
    """A law of ratios, each with the bar of the largest size that is not above its own, if there is one."""
    bar_of = {
        size: bars[max(known for known in bars if known <= size)] for size in found if size >= min(bars)
    }
    return Law(
        name,
        " ".join(map(power, found)),
        " ".join(f"{ratio:,.2f}" for ratio in found.values()),
        " ".join(f"≤{bar_of[size]:g}" if size in bar_of else "·" for size in found) + unit,
        all(found[size] <= bar for size, bar in bar_of.items()),
    )


def power(size: int) -> str:
    """10⁷ for 10000000."""
    digits = str(size)
    if size < 1000 or set(digits[1:]) != {"0"}:
        return f"{size:,}"
    ten = "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(len(digits) - 1))
    return ten if digits[0] == "1" else f"{digits[0]}·{ten}"


def people(rows: int = 1, name: str = "people", keys: int = 1) -> Any:
    """Records with a key of so many and an age, protected."""
    listed = [{"k": i % keys, "age": i % 100} for i in range(rows)]
    return fp.protect(listed, budget=10**9, name=name, schema={"k": "int64", "age": "int64"})


# ── rows, parts, depth ───────────────────────────────────────────────────────────────


def rows() -> Iterator[Law]:
    """A filtered count, and an average by 100 keys in one query and in two, beside the same integers."""
    fresh = count(1_000)
    counts, averages, twice = {}, {}, {}
    for size in sizes([10**5, 10**6], [10**5, 10**6, 10**7], [10**8]):
        path = str(generate(size) / "visits.parquet")
        data, by_hand = fp.protect(path, budget=10**9, name=f"visits{size}"), duckdb.connect()
        scan = f"FROM read_parquet('{path}') WHERE"
        clamped = "CASE WHEN age < 0 THEN 0 WHEN age > 110 THEN 110 ELSE age END"
        grouped = f"SELECT clinic, count(age), sum({clamped}) {scan}"

        def counted(data: Any = data) -> None:
            n = next(fresh)
            data.where(lambda x: x.age + n > 17 + n).noisy_count(1)

        def averaged(data: Any = data, once: bool = True) -> None:
            n = next(fresh)
            older = data.where(lambda x: x.age + n > 17 + n)
            average = fp.average("age", bounds=(0, 110), once=once)
            older.query(1, average, by="clinic", keys=range(100))

        def counted_by_hand(by_hand: Any = by_hand, scan: str = scan) -> None:
            n = next(fresh)
            by_hand.execute(f"SELECT count(*) {scan} age + {n} > {17 + n}").fetchall()

        def averaged_by_hand(by_hand: Any = by_hand, grouped: str = grouped) -> None:
            n = next(fresh)
            by_hand.execute(f"{grouped} age + {n} > {17 + n} GROUP BY clinic").fetchall()

        ours, theirs = in_turns(counted, counted_by_hand)
        counts[size] = ours / theirs
        ours, ours_twice, theirs = in_turns(averaged, partial(averaged, once=False), averaged_by_hand)
        averages[size], twice[size] = ours / theirs, ours_twice / theirs
    yield ratios("rows: filtered count, to SQL", counts, {10**7: 1.3})
    yield ratios("rows: average by 100 keys, to SQL", averages, {10**5: 1.8, 10**7: 1.3})
    yield ratios("rows: the same in two queries, as it is asked, to SQL", twice, {10**5: 1.8, 10**7: 1.3})


def parts() -> Iterator[Law]:
    """Counts and averages by many keys, beside DuckDB's GROUP BY (bench/wide.py)."""
    size = 5 * 10**6
    found: dict[str, dict[int, float]] = {"count": {}, "average": {}}
    for keys in sizes([10**3, 10**4], [10**3, 10**4, 10**5, 10**6]):
        for ratio in wide.measured(size, keys):
            found[ratio.what][keys] = ratio.times
    for what, times in found.items():
        yield ratios(f"parts: {what} by keys, {power(size)} rows, to GROUP BY", times, dict(wide.BARS))
    keys = 10**4 if QUICK else 10**6
    held = wide.bytes_per_part(10**5, keys)
    yield ratios("parts: held for each, bytes", {keys: held}, {1: wide.BYTES_PER_PART}, "")


class Aside:
    """Processor time that is no action's: the engine's scans, and Python's collections.

    A collection is of all that is alive and falls into whichever loop runs just then; at 10⁵ parts one
    takes as long as several scans.
    """

    def __init__(self, engine: Any) -> None:
        self.scans, self.scanning, self.collecting = 0, 0.0, 0.0
        self._measure, engine.measure = engine.measure, self._scan
        self._began = 0.0
        gc.callbacks.append(self._collected)

    def _scan(self, *asked: Any) -> Any:
        began, self.scans = time.process_time(), self.scans + 1
        found = self._measure(*asked)
        self.scanning += time.process_time() - began
        return found

    def _collected(self, phase: str, _: object) -> None:
        if phase == "start":
            self._began = time.process_time()
        else:
            self.collecting += time.process_time() - self._began

    def so_far(self) -> float:
        """What of the time is no action's."""
        return self.scanning + self.collecting

    def close(self, engine: Any) -> None:
        """Look no more."""
        engine.measure = self._measure
        gc.callbacks.remove(self._collected)


def loops() -> Iterator[Law]:
    """A loop over parts beside one grouped query, and an action of a fresh part beside one of a whole table.

    What a loop takes beyond its actions is the engine's scans, and what its actions take longer than those of
    the same loop over a table of one row: of blocks of 500 in turns, the medians' difference.
    """
    rows = 10**5 if QUICK else 5 * 10**6
    of_data, of_action, scans = {}, {}, {}
    for keys in sizes([500, 3_000], [1_000, 10_000, 100_000]):
        data = fp.protect(wide._frame(wide.rows_of(rows, keys)), budget=10**9, name=f"loop{keys}")
        none, fresh = people(1, f"none{keys}"), count(1_000)
        (once,) = in_turns(
            lambda d=data, k=keys, f=fresh: _filtered(d, f).query(1, fp.count(), by="k", keys=range(k))
        )
        parts = [_filtered(table, fresh).partition("k", keys=range(keys)).values() for table in (data, none)]
        asked, scanning = (*map(iter, parts), repeat(none)), [0.0, 0.0, 0.0]
        whole, actions, engine = [0.0, 0.0, 0.0], [list[float](), [], []], data.facts.system.engine
        aside = Aside(engine)
        for block in range(0, keys, 500):  # in turns, this way and that: what one leaves behind, others meet
            for number in range(3) if block % 1_000 else (2, 1, 0):
                began, apart, scanned = time.process_time(), aside.so_far(), aside.scanning
                of = aside.scans
                for table in islice(asked[number], 500):
                    table.noisy_count(1)
                taken = time.process_time() - began
                whole[number] += taken
                actions[number].append(taken - (aside.so_far() - apart))
                scanning[number] += aside.scanning - scanned
                scans[keys] = scans.get(keys, 0) + (aside.scans - of if number == 0 else 0)
        aside.close(engine)
        longer = median(actions[0]) - median(actions[1])
        of_data[keys] = (scanning[0] + longer * len(actions[0])) / once
        of_action[keys] = whole[1] / whole[2]
    yield ratios("loops: over parts, scans", scans, {1: 1}, "")
    yield ratios("loops: over parts, beyond its actions, to a grouped query", of_data, {1: 3})
    yield ratios("loops: an action of a fresh part, to one of a whole table", of_action, {1: 2})
    yield ratios("loops: 32 nested cells, beyond the actions, to one flat query", {32: _nested()}, {1: 2})


def _filtered(data: Any, fresh: Iterator[int]) -> Any:
    """A table that nobody asked about before."""
    limit = next(fresh)
    return data.where(lambda x: x.age < limit)


def _nested() -> float:
    """Four parts of eight parts each, in two loops, beside the 32 as parts of one query."""
    rows = 10**5 if QUICK else 10**6
    data = fp.protect(str(generate(rows) / "visits.parquet"), budget=10**9, name="cells")
    data.noisy_count(1)
    fresh = count(1_000)

    def nested() -> None:
        n = next(fresh)
        for outer in data.where(lambda x: x.age + n > 17 + n).partition("clinic", keys=range(4)).values():
            for cell in outer.partition(lambda x: x.age % 8, keys=range(8)).values():
                cell.noisy_count(1)

    def flat() -> None:
        n = next(fresh)
        older = data.where(lambda x: x.age + n > 17 + n)
        older.query(1, fp.count(), by=lambda x: x.clinic * 8 + x.age % 8, keys=range(32))

    taken, once, actions = in_turns(nested, flat, lambda: _counts(data, 36))
    return max(0.0, taken - actions) / once


def public() -> Iterator[Law]:
    """A count of 10⁵ records beside a public table of so many rows, to SQL beside a table of DuckDB's own."""
    data, by_hand, fresh = people(10**5, "beside", keys=10**5), duckdb.connect(), count(1_000)
    by_hand.execute("CREATE TABLE t AS SELECT i AS k FROM range(100_000) AS r(i)")
    found = {}
    for size in sizes([1_000, 20_000], [1_000, 20_000, 100_000]):
        rows = [{"k": i, "name": f"part {i}", "rate": i / 7} for i in range(size)]
        beside = fp.public(rows)
        by_hand.execute(
            f"CREATE OR REPLACE TABLE p AS SELECT i AS k, 'part ' || i AS name, i / 7 AS rate "
            f"FROM range({size}) AS r(i)"
        )

        def joined(beside: Any = beside) -> None:
            n = next(fresh)
            data.join(beside, on="k").where(lambda x: x.rate + n > n).noisy_count(1)

        def joined_by_hand() -> None:
            n = next(fresh)
            by_hand.execute(f"SELECT count(*) FROM t JOIN p USING (k) WHERE rate + {n} > {n}").fetchall()

        ours, theirs = in_turns(joined, joined_by_hand)
        found[size] = ours / theirs
    yield ratios(
        "public: a count beside so many public rows, to SQL", found, {1_000: 5, 20_000: 10, 100_000: 40}
    )


def depth() -> Iterator[Law]:
    """Chained steps beside the same SQL by hand (bench/depth.py)."""
    found = {steps: deep.ratio(steps) for steps in (10, 100)}
    yield ratios("depth: chained steps, to the same SQL", found, {1: deep.BAR})


# ── what is held and was asked ───────────────────────────────────────────────────────


def queries() -> Iterator[Law]:
    """A count after many were asked, of as many parts, beside one after a hundred."""
    found = {}
    for size in sizes([2_000], [10_000, 100_000]):
        data = people(100, f"asked{size}")
        asked = data.partition("k", keys=range(size)).values()
        for part in islice(asked, 100):
            part.noisy_count(1)
        few = in_turns(lambda data=data: _counts(data), runs=9)
        for part in islice(asked, 100, None):
            part.noisy_count(1)
        many = in_turns(lambda data=data: _counts(data), runs=9)
        found[size] = many[0] / few[0]
    yield ratios("queries: the n-th, to the 100th", found, {1: 1.2})


def _counts(data: Any, number: int = 100) -> None:
    for _ in range(number):
        data.noisy_count(1)


def tables() -> Iterator[Law]:
    """To bind a table, and to drop it, with many held beside a hundred."""
    size = 2_000 if QUICK else 20_000
    data = people(1, "held")
    system, root, numbers = data.facts.system, data.facts.binding.variable_in(data.facts.system), count()

    def bind(number: int) -> list[str]:
        names = [f"held{next(numbers)}" for _ in range(number)]
        for name in names:
            test = Apply("less", (Column("age"), Literal.of(next(numbers))))
            system.act(Assign(name, Where(test), (root,)))
        return names

    def bind_and_drop() -> None:
        for name in bind(100):
            system.drop(name)

    bind(100)
    (few,) = in_turns(bind_and_drop, runs=9)
    bind(size)
    (many,) = in_turns(bind_and_drop, runs=9)
    yield ratios("tables: to bind and drop one with n held, to 100 held", {size: many / few}, {1: 1.2})


def blocks() -> Iterator[Law]:
    """To append a block to many beside a hundred; a count of all, for each block, beside one of a hundred."""
    appending, asking, fresh = {}, {}, count(1_000)
    for size in sizes([200, 400], [1_000, 10_000]):
        table, taken = people(1, f"block{size}"), []
        for number in range(1, size):
            began = time.process_time()
            table = table.append([{"k": 0, "age": number % 100}], budget=10**9)
            taken.append(time.process_time() - began)
            if number == 100:
                hundred = table
        appending[size] = sum(sorted(taken[-40:])[:20]) / sum(sorted(taken[80:120])[:20])
        few, many = ((lambda t=t: _filtered(t, fresh).noisy_count(1)) for t in (hundred, table))
        of_few, of_many = in_turns(few, many)
        asking[size] = of_many / size / (of_few / 100)
    yield ratios("blocks: to append the n-th, to the 100th", appending, {1: 1.5})
    yield ratios("blocks: a count of n, for each block, to 100", asking, {1: 1.5})


# ── answers ──────────────────────────────────────────────────────────────────────────


def answers() -> Iterator[Law]:
    """To print 10,000 bins, nine quantiles beside one, a median of a million candidates."""
    data = people(1_000, "answers")
    bins = 1_000 if QUICK else 10_000
    data.noisy_cdf(1, "age", bounds=(0, 100), bins=10).to_pandas()  # which imports what it needs
    found = data.noisy_cdf(1, "age", bounds=(0, 100), bins=bins)
    for what, look in {
        "print": lambda: (str(found), found._repr_html_()),
        "to_pandas": lambda: found.to_pandas(),
        "intervals": lambda: [answer.interval() for answer in found.values()],
    }.items():
        seconds = _elapsed(look)
        yield Law(f"answers: {what} of a cdf, seconds", power(bins), f"{seconds:.2f}", "≤0.3", seconds <= 0.3)
    fresh = count(1_000)

    def quantiles(number: int, epsilon: float, table: Any = data) -> None:
        limit = next(fresh) + 10**6
        wanted = [(i + 1) / (number + 1) for i in range(number)]
        table.where(lambda x: x.age < limit).noisy_quantile(epsilon, wanted, "age", bounds=(0, 1_000_000))

    # Each of nine has a ninth of ε, and at a smaller ε more points can win.
    one, nine = in_turns(lambda: quantiles(1, 0.111), lambda: quantiles(9, 0.999))
    yield ratios("answers: nine quantiles, to one at a ninth of ε", {9: nine / one}, {1: 1.5})
    ages = wide.rows_of(10**6, 1)["age"] * 9_000 + range(10**6) % wide.np.int64(9_000)
    many = fp.protect(wide._frame({"age": ages}), budget=10, name="candidates")
    one, nine = in_turns(lambda: quantiles(1, 0.000111, many), lambda: quantiles(9, 0.000999, many))
    name = "answers: the same at ε = 0.001 among candidates"
    yield ratios(name, {10**6: nine / one}, {1: 1.5})
    seconds = _elapsed(lambda: many.noisy_median(1, "age", bounds=(0, 1_000_000)))
    yield Law("answers: a median of candidates, seconds", "10⁶", f"{seconds:.2f}", "≤0.5", seconds <= 0.5)


def _elapsed(work: Callable[[], object]) -> float:
    (seconds,) = in_turns(work, runs=1)
    return seconds


# ── the ledger, the server ───────────────────────────────────────────────────────────


def sessions() -> Iterator[Law]:
    """The first action of a session with many others there, beside ten."""
    size = 1_000 if QUICK else 10_000
    with tempfile.TemporaryDirectory() as folder, closing(open_ledger(Path(folder) / "x.ledger")) as ledger:
        ledger.register("people", ledgers.SHAPE, ledgers.BUDGET, contents=["people"])
        numbers, actions = count(), list(islice(ledgers.program(), 3))

        def begin(sessions: int = 20) -> None:
            for _ in range(sessions):
                session = f"s{next(numbers)}"
                for number, action in enumerate(actions):
                    ledger.act(session, action, f"r{number}")

        begin(10)
        (few,) = in_turns(begin, runs=9)
        begin(size)
        (many,) = in_turns(begin, runs=9)
    yield ratios("sessions: to begin the n-th, to the 10th", {size: many / few}, {1: 1.2})


def entries() -> Iterator[Law]:
    """To open a long ledger, to verify it, and to come back to a session, beside a short one."""
    opening: dict[int, float] = {}
    verifying: dict[int, float] = {}
    few: dict[str, float] = {}
    for size in sizes([2_000, 20_000], [10_000, 100_000, 1_000_000] if BIG else [10_000, 100_000]):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "long.ledger"
            ledgers.build(path, size)
            taken = in_turns(lambda path=path: _open(path))[0]
            opening[size] = taken / few.setdefault("open", taken)
            with closing(open_store(path)) as store:
                taken = in_turns(lambda store=store: verify(store, jobs=1), runs=2)[0] / size
            verifying[size] = taken / few.setdefault("verify", taken)
    yield ratios("entries: to open and ask the budget, to the shortest", opening, {1: 1.5})
    yield ratios("entries: verify, for each, to the shortest", verifying, {1: 1.3})
    coming = {}
    for size in sizes([300, 3_000], [3_000, 30_000]):
        with tempfile.TemporaryDirectory() as folder:
            path, ledgers.PER_SESSION = Path(folder) / "one.ledger", size
            ledgers.build(path, size + 2)
            taken = in_turns(lambda path=path: _open(path, "session-0"))[0] / size
            coming[size] = taken / few.setdefault("come back", taken)
    yield ratios("entries: to come back to a session, for each, to the shortest", coming, {1: 1.3})


def _open(path: Path, session: str = "fresh") -> None:
    with closing(open_ledger(path)) as ledger:
        ledger.act(session, AskBudget())


def clients() -> Iterator[Law]:
    """64 connections on one and two workers, in turns (bench/server.py): how even, and how many more."""
    seconds, turns = ("2", "1") if QUICK else ("6", "3")
    command = [sys.executable, str(Path(__file__).with_name("server.py")), "--connections", "32"]
    command += ["--workers", "1", "2", "--seconds", seconds, "--turns", turns, "--actions", "charged count"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    lines = [line for line in ran.stdout.splitlines() if line.startswith("charged count  ")]
    rates: dict[int, list[float]] = {1: [], 2: []}
    evenness: dict[int, list[float]] = {1: [], 2: []}
    for number, line in enumerate(lines):
        rate, _p50, _p99, even, *_ = line.removeprefix("charged count").split()
        rates[1 + number % 2].append(float(rate.replace(",", "")))
        evenness[1 + number % 2].append(float(even))
    for workers, found in evenness.items():
        name = f"clients: p99 to p50, 64 on {workers} worker{'s' * (workers - 1)}"
        yield ratios(name, {64: median(found)}, {1: 5})
    more = median(rates[2]) / median(rates[1])
    yield Law("clients: charged counts, two workers to one", "64", f"{more:.2f}", "≥1.5×", more >= 1.5)


LAWS = {
    law.__name__: law
    for law in (
        rows,
        parts,
        loops,
        public,
        depth,
        queries,
        tables,
        blocks,
        answers,
        sessions,
        entries,
        clients,
    )
}


def main() -> int:
    names = [argument for argument in sys.argv[1:] if not argument.startswith("--")] or list(LAWS)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    print(f"{'law':<64}{'sizes':<20}{'found':<26}bar")
    met = True
    for name in names:
        for law in _found(name):
            met &= law.met
            mark = "" if law.met else "   NOT MET"
            print(f"{law.name:<64}{law.sizes:<20}{law.figures:<26}{law.bar}{mark}", flush=True)
    return 0 if met else 1


def _found(name: str) -> Iterator[Law]:
    """What a law finds; an error is a law that does not hold."""
    try:
        yield from LAWS[name]()
    except (fp.FpinqError, MemoryError, RecursionError) as error:
        yield Law(name, "", f"{type(error).__name__}: {error}"[:100], "", met=False)


if __name__ == "__main__":
    sys.exit(main())
