"""Growth laws, by counting at two or three sizes: a law that changes is found here, whatever the machine.

The figures in time are bench/growth.py's.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from itertools import count, islice
from json import dumps
from pathlib import Path
from typing import Any

import duckdb
import pytest

import fpinq as fp
from fpinq.client import systems
from fpinq.engines.duckdb import DuckDB
from fpinq.ledger import open_ledger, open_store
from fpinq.ledger import opening as opening_
from fpinq.ledger.verify import verify
from fpinq.ledger.wire import to_json
from fpinq.model.actions import Action, AskBudget, Assign, Query
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.queries import Count
from fpinq.model.statistics import Records
from fpinq.model.transformations import LiteralTable, Partitioning, Select, SemiJoin, Where
from growth.counting import allocated, calls

pytestmark = pytest.mark.usefixtures("little_garbage")

_AGE = Column("age")
_NUMBERS = count(1_000)


@pytest.fixture(autouse=True)
def a_fresh_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests asked is no part of what is counted, nor what they called their data."""
    for kept in ("_systems", "_limits", "_roots"):
        monkeypatch.setattr(systems, kept, {})


def people(rows: int = 100, **said: Any) -> Any:
    listed = [{"k": i % 10, "age": i % 100} for i in range(rows)]
    return fp.protect(listed, budget=10**9, schema={"k": "int64", "age": "int64"}, **said)


def older() -> Where:
    """A test that nobody asked before."""
    return Where(Apply("greater", (_AGE, Literal.of(-next(_NUMBERS)))))


def twice(work: Callable[[], object]) -> Callable[[], object]:
    """Work that was done before: what is remembered of its kind is."""
    work()
    return work


# ── rows ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("counted", [calls, allocated])
def test_python_does_the_same_whatever_the_number_of_rows(
    counted: Callable[..., int], tmp_path: Path
) -> None:
    def of(rows: int) -> int:
        path = tmp_path / f"{rows}.parquet"
        duckdb.sql(f"COPY (SELECT range % 100 AS age, range % 10 AS k FROM range({rows})) TO '{path}'")
        data = fp.protect(path, budget=10**9)

        def ask() -> None:
            limit = next(_NUMBERS)
            # Of few records an average is asked for in another way, as a first look tells.
            data.where(lambda x: x.age < limit).query(
                1, fp.sum("age", bounds=(0, 100)), by="k", keys=range(10)
            )

        return min(counted(twice(ask)) for _ in range(3))

    assert of(100_000) <= 1.1 * of(1_000)


# ── parts ────────────────────────────────────────────────────────────────────────────

WIDE = {"count": fp.count(), "average": fp.average("age", bounds=(0, 100))}


def asking(data: Any, keys: int, query: Any) -> Callable[[], Any]:
    """A query of so many parts that nobody asked before."""
    limit = next(_NUMBERS)
    return lambda: data.where(lambda x: x.age < limit).query(1, query, by="k", keys=range(keys))


@pytest.mark.parametrize("what", WIDE)
def test_a_query_of_all_parts_calls_the_same_functions_however_many_there_are(what: str) -> None:
    data = people()
    asking(data, 4_000, WIDE[what])()
    few, many = (min(calls(asking(data, n, WIDE[what])) for _ in range(3)) for n in (500, 4_000))
    assert many <= 1.05 * few


@pytest.mark.parametrize("what", WIDE)
def test_a_part_takes_two_hundred_bytes_at_the_most(what: str) -> None:
    data = people()
    asking(data, 8_000, WIDE[what])()
    few, many = (min(allocated(asking(data, n, WIDE[what])) for _ in range(3)) for n in (4_000, 8_000))
    assert many - few <= 200 * 4_000


def test_answers_of_many_parts_are_shown_at_the_cost_of_some() -> None:
    data = people()
    few, many = (calls(twice(asking(data, n, WIDE["average"])().__repr__)) for n in (1_000, 4_000))
    assert many <= 1.5 * few  # how noise is written differs by some


def test_keys_that_are_a_range_are_written_as_one() -> None:
    def written(keys: range) -> int:
        by = Partitioning(_AGE, keys)
        return len(dumps(to_json(Query("t", Fraction(1), (Count(),), by))))

    assert written(range(10**6)) <= written(range(10)) + 10


# ── loops ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("counted", [calls, allocated])
def test_a_table_is_partitioned_at_the_same_cost_however_many_parts_there_are(
    counted: Callable[..., int],
) -> None:
    data = people()

    def partitioned(keys: int) -> int:
        return min(counted(twice(lambda: data.partition("k", keys=range(keys)))) for _ in range(3))

    assert partitioned(100_000) <= 1.1 * partitioned(100)


def test_what_a_loop_takes_for_a_part_is_the_same_however_many_there_are() -> None:
    data = people()

    def looping(keys: int) -> Callable[[], None]:
        limit = next(_NUMBERS)

        def loop() -> None:
            for part in data.where(lambda x: x.age < limit).partition("k", keys=range(keys)).values():
                part.noisy_count(1)

        return loop

    looping(10)()
    few, some, many = (calls(looping(keys)) for keys in (100, 200, 1_000))
    assert (many - some) / 800 <= 1.2 * (some - few) / 100


def test_a_part_that_is_held_takes_two_kilobytes_at_the_most() -> None:
    parts = people().partition("k", keys=range(2_000))
    held: list[Any] = []
    assert allocated(lambda: held.extend(islice(parts.values(), 1_000))) <= 1_000 * 2_000


def statements(data: Any, loop: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the engine is asked in a loop over a table that nobody asked about before."""
    engine, asked = data.facts.system.engine, 0
    measure = type(engine).measure

    def counting(*given: Any) -> Any:
        nonlocal asked
        asked += 1
        return measure(*given)

    limit = next(_NUMBERS)
    with monkeypatch.context() as watched:
        watched.setattr(type(engine), "measure", counting)
        loop(data.where(lambda x: x.age < limit))
    return asked


def test_a_loop_over_parts_is_one_statement_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def over(keys: int) -> Callable[[Any], None]:
        def loop(table: Any) -> None:
            for part in table.partition("k", keys=range(keys)).values():
                part.noisy_count(1)

        return loop

    data = people()
    assert [statements(data, over(keys), monkeypatch) for keys in (50, 500)] == [1, 1]


def test_a_loop_over_cells_is_at_most_two_statements_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def over(outer: int, inner: int) -> Callable[[Any], None]:
        def loop(table: Any) -> None:
            for part in table.partition("k", keys=range(outer)).values():
                for cell in part.partition("age", keys=range(inner)).values():
                    cell.noisy_count(1)

        return loop

    data = people()
    found = [statements(data, over(*cells), monkeypatch) for cells in ((2, 4), (4, 8), (10, 30))]
    assert max(found) <= 2


# ── queries and tables ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("counted", [calls, allocated])
def test_a_query_costs_what_it_touches_whatever_was_asked_before(counted: Callable[..., int]) -> None:
    data = people()
    parts = list(data.partition("k", keys=range(2_000)).values())

    def ask() -> None:
        data.noisy_count(1)

    for part in parts[:100]:
        part.noisy_count(1)
    few = min(counted(twice(ask)) for _ in range(3))
    for part in parts[100:]:
        part.noisy_count(1)
    assert min(counted(twice(ask)) for _ in range(3)) <= 1.2 * few + 2_000


@pytest.mark.parametrize("counted", [calls, allocated])
def test_a_table_is_bound_and_dropped_at_the_same_cost_however_many_are_held(
    counted: Callable[..., int],
) -> None:
    data = people()
    system, root = data.facts.system, data.facts.binding.variable_in(data.facts.system)

    def bind_and_drop() -> None:
        system.act(Assign("t", older(), (root,)))
        system.drop("t")

    def hold(first: int, last: int) -> None:
        for number in range(first, last):
            system.act(Assign(f"held{number}", older(), (root,)))

    hold(0, 100)
    few = min(counted(twice(bind_and_drop)) for _ in range(3))
    hold(100, 2_000)
    assert min(counted(twice(bind_and_drop)) for _ in range(3)) <= 1.2 * few + 2_000


# ── depth ────────────────────────────────────────────────────────────────────────────


def chained(steps: int) -> Plan:
    plan: Plan = RootTable("t")
    added = Select((("age", Apply("add", (_AGE, Literal.of(1)))),))
    for number in range(steps):
        plan = Term(added if number % 2 else older(), (plan,))
    return plan


def test_the_sql_of_a_chain_grows_by_the_same_with_every_step() -> None:
    engine = DuckDB()
    engine.add_root("t", [{"age": 1}])
    short, middle, long = (len(engine.explain(chained(n), None, [Records()])[0]) for n in (25, 50, 100))
    engine.close()
    assert (long - middle) / 50 <= 1.3 * (middle - short) / 25


def test_to_lower_a_chain_costs_the_same_for_every_step() -> None:
    engine = DuckDB()
    engine.add_root("t", [{"age": 1}])

    def lowered(steps: int) -> int:
        plan = chained(steps)
        return calls(twice(lambda: engine.explain(plan, None, [Records()])))

    short, middle, long = lowered(25), lowered(50), lowered(100)
    engine.close()
    assert (long - middle) / 50 <= 1.3 * (middle - short) / 25


def test_a_public_table_is_no_text_that_is_read_again_for_every_query() -> None:
    engine = DuckDB()
    engine.add_root("t", [{"age": 1}])

    def joined(rows: int) -> str:
        schema = Schema.of({"age": Type.INT64, "name": Type.STRING, "rate": Type.FLOAT64})
        public = Term(LiteralTable(schema, tuple((i, str(i), i / 7) for i in range(rows))), ())
        plan = Term(SemiJoin((_AGE,), (_AGE,)), (RootTable("t"), public))
        return engine.explain(plan, None, [Records()])[0]

    assert joined(1) == joined(20_000)
    engine.close()


# ── blocks ───────────────────────────────────────────────────────────────────────────


def grown(blocks: int) -> Any:
    table = people(1, engine="reference")
    for _ in range(blocks):
        table = table.append([{"k": 0, "age": 1}], budget=10**9)
    return table


@pytest.mark.parametrize("counted", [calls, allocated])
def test_a_block_is_appended_at_the_same_cost_however_many_there_are(counted: Callable[..., int]) -> None:
    def appending(blocks: int) -> int:
        """On average: blocks of a size become one at times, as digits carry."""
        table, taken = grown(blocks), 0
        for _ in range(16):
            taken += counted(lambda: table.append([{"k": 0, "age": 1}], budget=10**9))  # noqa: B023 - now
            table = table.append([{"k": 0, "age": 1}], budget=10**9)
        return taken

    assert appending(800) <= 1.5 * appending(100)


def test_a_query_of_blocks_costs_the_same_for_each_of_them() -> None:
    def asking(blocks: int) -> int:
        table = grown(blocks)
        return calls(twice(lambda: table.where(lambda x: x.age < next(_NUMBERS)).noisy_count(1)))

    short, middle, long = asking(25), asking(50), asking(100)
    assert (long - middle) / 50 <= 1.3 * (middle - short) / 25


# ── the ledger ───────────────────────────────────────────────────────────────────────

SHAPE = Schema((("age", Type.INT64),))


def program() -> Iterator[Action]:
    """A fresh table, and a count of it, again and again."""
    for number in count():
        yield Assign(f"t{number}", Where(Apply("greater", (_AGE, Literal.of(number)))), ("people",))
        yield Query(f"t{number}", Fraction(1, 100), (Count(),))


def write(path: Path, sessions: int, actions: int) -> None:
    """A ledger of so many sessions, each with so many actions."""
    with closing(open_ledger(path)) as ledger:
        if not ledger.roots():
            ledger.register("people", SHAPE, 10**9, contents=["people"])
        for session in range(sessions):
            for number, action in enumerate(islice(program(), actions)):
                acted = ledger.act(f"s{session}", action, f"r{number}")
                if isinstance(action, Query):
                    ledger.answer(acted.seq or 0, ((1,),))


@pytest.fixture
def ledgers(tmp_path: Path) -> dict[int, Path]:
    """Ledgers of 20 and of 200 sessions of four actions."""
    paths = {sessions: tmp_path / f"{sessions}.ledger" for sessions in (20, 200)}
    for sessions, path in paths.items():
        write(path, sessions, 4)
    return paths


@pytest.mark.parametrize("counted", [calls, allocated])
def test_a_ledger_is_opened_at_the_same_cost_however_long_it_is(
    counted: Callable[..., int], ledgers: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening_, "RECENT", 50)  # of which it reads the last

    def opening(path: Path) -> int:
        def open_and_ask() -> None:
            with closing(open_ledger(path)) as ledger:
                ledger.act("fresh", AskBudget())

        return min(counted(twice(open_and_ask)) for _ in range(3))

    assert opening(ledgers[200]) <= 1.2 * opening(ledgers[20]) + 2_000


@pytest.mark.parametrize("counted", [calls, allocated])
def test_an_action_costs_the_same_however_many_sessions_and_entries_there_are(
    counted: Callable[..., int], ledgers: dict[int, Path]
) -> None:
    def acting(path: Path) -> int:
        with closing(open_ledger(path)) as ledger:

            def begin() -> None:
                session = f"new{next(_NUMBERS)}"
                for number, action in enumerate(islice(program(), 4)):
                    ledger.act(session, action, f"r{number}")

            return min(counted(twice(begin)) for _ in range(3))

    assert acting(ledgers[200]) <= 1.2 * acting(ledgers[20]) + 2_000


def test_an_entry_is_verified_at_the_same_cost_however_many_there_are(ledgers: dict[int, Path]) -> None:
    def verifying(path: Path) -> float:
        with closing(open_store(path)) as store:
            verify(store, jobs=1)
            return calls(lambda: verify(store, jobs=1)) / verify(store, jobs=1).entries

    assert verifying(ledgers[200]) <= 1.1 * verifying(ledgers[20])


def test_an_entry_is_replayed_at_the_same_cost_however_long_its_session_is(tmp_path: Path) -> None:
    def coming_back(actions: int) -> float:
        path = tmp_path / f"of{actions}.ledger"
        write(path, 1, actions)
        with closing(open_ledger(path)) as ledger:
            return calls(lambda: ledger.act("s0", AskBudget()))

    short, middle, long = coming_back(100), coming_back(200), coming_back(400)
    assert (long - middle) / 200 <= 1.2 * (middle - short) / 100
