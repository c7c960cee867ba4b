"""What a unit of work takes in each engine, by operator and by step: where the numbers of `costs` come from.

    python bench/work.py --engines duckdb,postgres,spark [--only lower]

Prints a Markdown table: nanoseconds of one core per unit of `model/operators.py` and `model/work.py`, for the
fixed part of an operator (short values, the nasty ones of the tests among them; their characters count to
it) and for its characters (long texts, the worst of several kinds), beside one another from one run.
Processor time of whatever computes (this process, PostgreSQL, Java), the fastest of several; what the same
query takes without the operator is taken off. An engine's `costs` are these numbers, doubled and rounded up:
docs/decisions/0118.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fpinq.model.clamps import Clamp
from fpinq.model.costs import CLAMPED, KEYED, KEYED_VALUE, ORDERED, ORDERED_VALUE, PASSED, PASSED_VALUE
from fpinq.model.expressions import Apply, Column, Expression, Literal, Type
from fpinq.model.operators import MAX_STRING, OPERATORS, SEARCHED
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Records, Statistic, Totals
from fpinq.model.transformations import (
    Aggregate,
    Concat,
    Distinct,
    Explode,
    First,
    GroupBy,
    Join,
    Partitioning,
    Select,
    SelectMany,
    SemiJoin,
    Take,
    UniqueBy,
)

# By how many rows the long texts of an engine are asked: what is small is lost in what a query takes anyway.
LONG_ROWS = {"reference": 5, "duckdb": 20, "postgres": 6, "spark": 20}
# Texts that are as long as any that can be parsed, and some that cannot.
PARSED = [
    "1" * 30 + "." + "7" * 30 + "e+300", "-" + "9" * 30 + "." + "9" * 30 + "E-300", "9" * 66 + "x", "." * 67,
    "5" * 30 + "e999", "5" * 30 + "e-999", "-9223372036854775808", "9" * 19, "2024-02-29T23:59:59.999999",
    "2024-02-30 23:59:59.999999", "0" * 67, "é" * 33, "Я" * 60,
]  # fmt: skip
KINDS = ["é", "Я", "я", "漢", "a", "A", "1", "🤦", " ", "aЯ"]
# What is searched for: the last character but one of nothing, or a text that is nearly everywhere.
PARTS = ["{0}", "x" + "{0}" * 15, "x" + "{0}" * 100]

Clock = Callable[[], float]


@dataclass
class Bench:
    """An engine, and a clock of what it computes."""

    name: str
    engine: Any
    clock: Clock
    times: int

    def nanoseconds(self, plan: Plan, *statistics: Statistic, by: Partitioning | None = None) -> float:
        """What a measurement takes, the fastest of several."""
        best = float("inf")
        for _ in range(self.times):
            began = self.clock()
            self.engine.measure(plan, by, statistics)
            best = min(best, self.clock() - began)
        return best * 1e9


def nasty() -> dict[Type, list[Any]]:
    """The values at the edges of every type."""
    from engines.nasty import VALUES

    return VALUES


# ── engines ──────────────────────────────────────────────────────────────────────────


@contextmanager
def duckdb(times: int) -> Iterator[Bench]:
    from fpinq.engines.duckdb import DuckDB

    yield Bench("duckdb", DuckDB(steady=True, threads=1), time.process_time, times)


@contextmanager
def python(times: int) -> Iterator[Bench]:
    from fpinq.engines.in_memory import ReferenceEngine

    yield Bench("reference", ReferenceEngine(), time.process_time, times)


@contextmanager
def postgres(times: int) -> Iterator[Bench]:
    import psycopg

    from fpinq.engines.postgres import Postgres
    from ledger.throwaway_postgres import throwaway_postgres
    from postgres.tables import READER, OnTables, Owner

    with throwaway_postgres() as server:
        url = server.fresh()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {READER} LOGIN")
        owner = Owner(url)
        engine = Postgres(f"{owner.readers}&options=-c%20max_parallel_workers_per_gather%3D0")
        with engine._database.reading() as statements:
            ((pid,),) = statements.rows("SELECT pg_backend_pid()")
        yield Bench("postgres", OnTables(engine, owner), lambda: _computed(pid), times)
        engine.close()
        owner.connection.close()


@contextmanager
def spark(times: int) -> Iterator[Bench]:
    from fpinq.engines.spark import Spark

    settings = {
        "spark.driver.memory": "1500m",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    engine = Spark("local[1]", settings, steady=True)
    engine.add_root("start", [{"i": 1}], {"i": Type.INT64})
    (pid,) = [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/stat") if _is_ours(p)]
    yield Bench("spark", engine, lambda: _computed(pid, threads="Executor task"), times)
    engine.close()


def _is_ours(stat: Path) -> bool:
    """Whether a process is the Java that this one started."""
    import os

    try:
        name, rest = stat.read_text(encoding="utf-8").split(")")[:2]
        parents = {os.getpid()}
        return name.endswith("(java") and int(rest.split()[1]) in parents
    except (OSError, ValueError):
        return False


def _computed(pid: int, threads: str | None = None) -> float:
    """The seconds that a process has computed, or its threads of a name."""
    tasks = [Path(f"/proc/{pid}")]
    if threads is not None:
        tasks = [t for t in Path(f"/proc/{pid}/task").iterdir() if _is_named(t, threads)]
    return sum(_nanoseconds(task) for task in tasks) / 1e9


def _nanoseconds(task: Path) -> int:
    """What a task has computed; of one that has just ended, nothing."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return 0


def _is_named(task: Path, name: str) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return (task / "comm").read_text(encoding="utf-8").startswith(name[:15])
    return False


ENGINES = {"reference": python, "duckdb": duckdb, "postgres": postgres, "spark": spark}


# ── operators ────────────────────────────────────────────────────────────────────────


def number_of(value: Expression, type_: Type) -> Expression:
    """Something to add up that needs all of a value."""
    operator = {Type.BOOL: "to_int64", Type.STRING: "length", Type.DATE: "day", Type.TIMESTAMP: "hour"}
    return Apply(operator[type_], (value,)) if type_ in operator else value


def asked(value: Expression, gives: Type) -> tuple[Plan, Statistic]:
    """The plan and the statistic that compute an expression on every row of a table."""
    if gives is Type.STRINGS:
        return Term(Explode(value, "word", 1), (RootTable("{}"),)), Records()
    return RootTable("{}"), Totals((Clamp(number_of(value, gives), 0, 9),))


def of_root(plan: Plan, root: str) -> Plan:
    if isinstance(plan, Term):
        return Term(plan.transformation, tuple(of_root(a, root) for a in plan.arguments))
    return RootTable(root)


def columns_of(takes: Sequence[Type]) -> list[str]:
    """The names of columns for arguments of these types: the second of a type is another column."""
    seen: dict[Type, int] = {}
    names = []
    for type_ in takes:
        seen[type_] = min(seen.get(type_, 0) + 1, 2)
        names.append(f"{type_.value}{seen[type_]}")
    return names


CONSTANTS: dict[str, list[Any]] = {"clip": [1, 7], "substring": [1, MAX_STRING], "split": ["a"]}
FLOATS = {"clip": [0.5, 7.5]}


def applied(name: str, takes: Sequence[Type]) -> Expression:
    """An operator on columns, and on constants where it takes only these."""
    operator = OPERATORS[name]
    arguments: list[Expression] = [Column(c) for c in columns_of(takes)]
    constants = FLOATS.get(name, []) if takes[0] is Type.FLOAT64 else []
    given = iter(constants or CONSTANTS.get(name, []))
    for position in sorted(operator.literal):
        arguments[position] = Literal.of(next(given))
    if operator.variadic:
        arguments[1:] = [_constant(takes[0])]
    return Apply(name, tuple(arguments))


def _constant(type_: Type) -> Literal:
    return Literal.of(next(v for v in reversed(nasty()[type_]) if v is not None and v == v))


COLUMN_TYPES = [Type.BOOL, Type.INT64, Type.FLOAT64, Type.STRING, Type.DATE, Type.TIMESTAMP]
SCHEMA = {f"{t.value}{i}": t for t in COLUMN_TYPES for i in (1, 2)}


def short_rows(count: int) -> list[dict[str, Any]]:
    """Rows with every pair of values sooner or later; without a NUL, which PostgreSQL has not."""
    pools = {
        t: [v for v in nasty()[t] if not (isinstance(v, str) and ("\0" in v or len(v) > 99))]
        for t in SCHEMA.values()
    }
    pools[Type.STRING] += PARSED * 5
    found = []
    for i in range(count):
        row = {}
        for place, (name, type_) in enumerate(SCHEMA.items()):
            pool = pools[type_]
            row[name] = pool[(i // (len(pool) if place % 2 else 1)) % len(pool)]
        found.append(row)
    return found


def fixed(bench: Bench, name: str, rows: int) -> float:
    """Nanoseconds per unit of what an operator takes of itself, of the worst of its signatures."""
    operator, worst = OPERATORS[name], 0.0
    for takes, gives in operator.signatures:
        value = applied(name, takes)
        plan, statistic = asked(value, gives)
        took = bench.nanoseconds(of_root(plan, "short"), statistic)
        base = bench.nanoseconds(RootTable("short"), Totals((Clamp(Column("int641"), 0, 9),)))
        worst = max(worst, (took - base) / rows / (operator.units + len(takes)))
    return worst


def long_texts(name: str, kind: str) -> list[tuple[Expression, int]]:
    """The operator on long texts of a kind, and how many units the characters are."""
    operator, found = OPERATORS[name], []
    for takes, _ in operator.signatures:
        if Type.STRING not in takes:
            continue
        value = applied(name, takes)
        assert isinstance(value, Apply)
        texts = sum(t is Type.STRING for t in takes) - sum(takes[i] is Type.STRING for i in operator.literal)
        if operator.search:
            for part in PARTS:
                part = part.format(kind)
                units = operator.per_character * MAX_STRING * (1 + len(part) // SEARCHED)
                found.append((Apply(name, (value.arguments[0], Literal.of(part))), units))
        else:
            found.append((value, operator.per_character * MAX_STRING * max(texts, 1)))
    return found


def per_character(bench: Bench, name: str) -> float:
    """Nanoseconds per unit of what an operator takes for characters, of the worst kind of text."""
    rows, worst = LONG_ROWS[bench.name], 0.0
    gives = OPERATORS[name].signatures[-1][1] if name != "if_else" else Type.STRING
    for takes, result in OPERATORS[name].signatures:
        gives = result if Type.STRING in takes else gives
    for number, kind in enumerate(KINDS):
        for value, units in long_texts(name, kind):
            plan, statistic = asked(value, gives)
            took = bench.nanoseconds(of_root(plan, f"long{number}"), statistic)
            base = bench.nanoseconds(of_root(plan, "empty"), statistic)
            worst = max(worst, (took - base) / rows / units)
    return worst


# ── steps ────────────────────────────────────────────────────────────────────────────

S = Column("string1")
COUNTED = (("n", Aggregate("count")),)


def steps(root: str) -> dict[str, tuple[Plan, int, int]]:
    """Plans of one step: with the units of the fixed part for a row, and of a character of it."""
    table = RootTable(root)
    pair = Term(Select((("i", Column("i")), ("s", S))), (table,))
    listed = Term(Select((("i", Column("i")), ("s", S))), (table,))
    keyed, ordered = KEYED + KEYED_VALUE * 2, ORDERED + ORDERED_VALUE * 2
    i, s = Column("i"), Column("s")
    return {
        "passed: concat": (Term(Concat(), (pair, listed)), 2 * (2 * PASSED + 2 * PASSED_VALUE), 2),
        "passed: many records": (
            Term(SelectMany(((("i", i), ("s", s)),) * 10, 10), (pair,)), 10 * (PASSED + 2 * PASSED_VALUE), 10
        ),
        "keyed: distinct": (Term(Distinct(), (pair,)), keyed, 1),
        "keyed: groups": (Term(GroupBy((("i", i), ("s", s)), COUNTED), (pair,)), keyed, 1),
        "keyed: unique": (Term(UniqueBy((i, s)), (pair,)), 2 * keyed, 2),
        "keyed: semi-join": (Term(SemiJoin((i, s), (i, s)), (pair, listed)), 2 * keyed, 2),
        "ordered: take": (Term(Take(10**9), (pair,)), ordered, 4),
        "ordered: join": (
            Term(Join((i, s), (i, s), First(2), First(2), (("i", Column("l.i")),)), (pair, listed)),
            2 * (keyed + ordered), 10,
        ),
    }  # fmt: skip


def of_step(bench: Bench, name: str, rows: int) -> tuple[float, float]:
    short, long = steps("steps")[name], steps("longsteps")[name]
    base = bench.nanoseconds(RootTable("steps"), Records())
    fixed_part = (bench.nanoseconds(short[0], Records()) - base) / rows / short[1]
    if name.startswith("passed"):  # what is passed on is read, or it is left out
        read = Totals((Clamp(Apply("length", (Column("s"),)), 0, 9),))
        of_long = bench.nanoseconds(long[0], read) - bench.nanoseconds(
            steps("empty")["passed: concat"][0], read
        )
        return fixed_part, of_long / LONG_STEPS / MAX_STRING / long[2]
    base = bench.nanoseconds(RootTable("longsteps"), Records())
    of_long = bench.nanoseconds(long[0], Records()) - base
    return fixed_part, of_long / LONG_STEPS / MAX_STRING / long[2]


LONG_STEPS = 100


def compared(bench: Bench, rows: int) -> float:
    """Nanoseconds to compare a row's key with another one: of parts that ask different things."""
    keys = 200
    by = Partitioning(Column("string1"), tuple(f"é{i}" for i in range(keys)))
    totals = [Totals((Clamp(Column("i"), 0, 9 + i % 2),)) for i in range(keys)]
    alike = bench.nanoseconds(RootTable("steps"), *(totals[:1] * keys), by=by)
    return (bench.nanoseconds(RootTable("steps"), *totals, by=by) - alike) / rows / keys


def clamped(bench: Bench, rows: int) -> float:
    base = bench.nanoseconds(RootTable("short"), Records())
    worst = 0.0
    for name in ("int641", "float641"):
        took = bench.nanoseconds(RootTable("short"), Totals((Clamp(Column(name), -1000, 1000),)))
        worst = max(worst, (took - base) / rows / (CLAMPED + 1))
    return worst


def add_tables(bench: Bench, rows: int) -> None:
    engine, count = bench.engine, LONG_ROWS[bench.name]
    engine.add_root("short", short_rows(rows), SCHEMA)
    texts = {f"string{i}": Type.STRING for i in (1, 2)}
    texts = {**texts, "bool1": Type.BOOL}
    for number, kind in enumerate(KINDS):
        long = (kind * MAX_STRING)[:MAX_STRING]
        engine.add_root(f"long{number}", [{"string1": long, "string2": long, "bool1": True}] * count, texts)
    none = {"string1": "", "string2": "", "bool1": True, "i": 1}
    engine.add_root("empty", [none] * count, {**texts, "i": Type.INT64})
    schema = {"i": Type.INT64, "string1": Type.STRING}
    mixed = [{"i": i * 7_919 % rows, "string1": f"é{i * 104_729 % rows}"} for i in range(rows)]
    engine.add_root("steps", mixed, schema)
    alike = [
        {"i": 1, "string1": "é" * (MAX_STRING - 5) + f"{i * 37 % LONG_STEPS:05}"} for i in range(LONG_STEPS)
    ]
    engine.add_root("longsteps", alike, schema)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engines", default="duckdb,postgres")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default="", help="substring of the names to run")
    given = parser.parse_args()
    # In place of this folder: its modules are not those of the tests.
    sys.path[0] = str(Path(__file__).parent.parent / "tests")
    with ExitStack() as stack:
        benches = [stack.enter_context(ENGINES[n](given.times)) for n in given.engines.split(",")]
        for bench in benches:
            add_tables(bench, given.rows)
        heads = " | ".join(f"{b.name}, fixed | a character" for b in benches)
        print(f"| ns per unit | {heads} |\n|---|{'---|' * 2 * len(benches)}", flush=True)

        def line(name: str, cells: Callable[[Bench], tuple[float, float]]) -> None:
            if given.only in name:
                told = [f"{cell:.2f}" for bench in benches for cell in cells(bench)]
                print(f"| {name} | {' | '.join(told)} |", flush=True)

        for name in OPERATORS:
            line(name, lambda b, name=name: (fixed(b, name, given.rows), per_character(b, name)))  # type: ignore[misc]
        line("compared", lambda b: (compared(b, given.rows), 0.0))
        line("clamp", lambda b: (clamped(b, given.rows), 0.0))
        for name in steps("steps"):
            line(name, lambda b, name=name: of_step(b, name, given.rows))  # type: ignore[misc]


if __name__ == "__main__":
    main()
