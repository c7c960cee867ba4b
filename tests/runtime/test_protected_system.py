"""The protected system: charge, measure, draw, record, release; never a refund."""

import os
from collections.abc import Sequence
from fractions import Fraction
from math import inf
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import fpinq as fp
from fpinq.ledger import Acted, open_ledger
from fpinq.model.actions import Action, AskBudget, Assign, Partition, Query
from fpinq.model.errors import DataChanged, EngineError, LedgerError, ProgramError
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import Plan
from fpinq.model.queries import Count, PrimitiveQuery
from fpinq.model.semantics import BOTTOM, TAU, Told
from fpinq.model.statistics import Integers, Records, Statistic
from fpinq.model.transformations import Partitioning, Select, Where
from fpinq.runtime import Answered, InMemory, Observation, ProtectedSystem, ReferenceEngine, Released

ROWS = [{"a": i % 3, "b": i} for i in range(9)]
SCHEMA = Schema.of({"a": Type.INT64, "b": Type.INT64})


class Watched(ReferenceEngine):
    """The reference engine, with a diary."""

    def __init__(self, diary: list[str]) -> None:
        super().__init__()
        self.diary = diary
        self.failure: Exception | None = None

    def measure(
        self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic], seconds: float = inf
    ) -> list[Integers]:
        self.diary.append("measure")
        if self.failure is not None:
            raise self.failure
        return super().measure(plan, by, statistics, seconds)


class Ledger(InMemory):
    """A record with a diary, which may fail."""

    def __init__(self, diary: list[str]) -> None:
        super().__init__()
        self.diary = diary
        self.failing = False

    def act(self, session: str, action: Action, *rest: Any) -> Acted:
        if self.failing:
            raise LedgerError("disk full")
        acted = super().act(session, action, *rest)
        self.diary.append(f"charge {acted.rule}")
        return acted

    def answer(self, seq: int, released: tuple[Released, ...]) -> tuple[Released, ...]:
        self.diary.append("record")
        return super().answer(seq, released)


class World:
    """A protected system with one root, and everything that happens in it."""

    def __init__(self, budget: object = 1) -> None:
        self.diary: list[str] = []
        self.engine = Watched(self.diary)
        self.ledger = Ledger(self.diary)
        self.system = ProtectedSystem(self.engine, record=self.ledger, mechanism=self.draw)
        schema = self.engine.add_root("data", ROWS)
        self.system.protect("data", schema, Fraction(budget))  # type: ignore[arg-type]

    def draw(self, query: PrimitiveQuery, measured: Integers, epsilon: Fraction) -> tuple[int, ...]:
        self.diary.append("draw")
        return (measured.get(0, 0),)

    def count(self, epsilon: object, table: str = "data") -> Any:
        return self.system.act(Query(table, Fraction(epsilon), (Count(),)))  # type: ignore[arg-type]

    def left(self) -> Fraction:
        told = self.system.act(AskBudget())
        assert isinstance(told, Told)
        assert isinstance(told.fact, dict)
        return told.fact["data"]  # type: ignore[no-any-return]


def test_a_query_is_charged_then_measured_drawn_recorded_and_released() -> None:
    world = World()
    observation = world.count("1/4")
    assert world.diary == ["charge Query", "measure", "draw", "record"]
    assert observation == Answered(((9,),), {"data": Fraction(1, 4)})
    assert world.left() == Fraction(3, 4)


def test_a_refusal_is_bottom_and_measures_nothing() -> None:
    world = World()
    assert world.count(2) is BOTTOM
    assert "measure" not in world.diary
    assert world.left() == 1


def test_an_engine_s_failure_is_not_refunded() -> None:
    world = World()
    world.engine.failure = EngineError("4711")
    with pytest.raises(EngineError):
        world.count("1/4")
    assert world.left() == Fraction(3, 4)
    assert "draw" not in world.diary


def test_any_failure_after_the_charge_is_not_refunded() -> None:
    world = World()
    world.engine.failure = ZeroDivisionError("a bug")
    with pytest.raises(EngineError):  # whatever it was: its words may quote a row
        world.count("1/4")
    assert world.left() == Fraction(3, 4)


def test_what_cannot_be_recorded_does_not_happen() -> None:
    world = World()
    world.ledger.failing = True
    with pytest.raises(LedgerError):
        world.count("1/4")
    world.ledger.failing = False
    assert "measure" not in world.diary
    assert world.left() == 1


def test_changed_data_is_found_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def changed(plan: Plan) -> None:
        raise DataChanged("data")

    monkeypatch.setattr(world.engine, "check_unchanged", changed, raising=False)
    with pytest.raises(DataChanged):
        world.count("1/4")
    assert world.diary == []
    assert world.left() == 1


def test_a_program_error_changes_nothing() -> None:
    world = World()
    for action in (Query("nowhere", Fraction(1), (Count(),)), Query("data", Fraction(1), ())):
        with pytest.raises(ProgramError):
            world.system.act(action)
    assert world.left() == 1


def test_roots_can_be_added_while_others_are_in_use() -> None:
    world = World()
    world.count("1/2")
    schema = world.engine.add_root("more", [{"x": 1}])
    world.system.protect("more", schema, Fraction(3))
    assert world.system.budgets() == {"data": 1, "more": 3}
    assert world.left() == Fraction(1, 2)
    with pytest.raises(ProgramError):
        world.system.protect("more", schema, Fraction(3))


def test_threads_together_never_overspend() -> None:
    world = World(budget=1)
    seen: list[Observation] = []
    threads = [Thread(target=lambda: seen.extend(world.count("1/10") for _i in range(5))) for _j in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(observation, Answered) for observation in seen) == 10
    assert world.left() == 0


def test_a_dropped_variable_is_forgotten_and_costs_nothing() -> None:
    world = World()
    where = Where(Apply("greater", (Column("b"), Literal.of(3))))
    assert world.system.act(Assign("t", where, ("data",))) is TAU
    assert world.system.describe("t").sensitivity
    world.system.drop("t")
    world.left()
    with pytest.raises(ProgramError):
        world.system.describe("t")


# ── statistics ───────────────────────────────────────────────────────────────────────


BY = Partitioning(Column("a"), (0, 1, 2))


def parts_of(world: World, *, steps: int = 0) -> list[str]:
    world.system.act(Partition(("p0", "p1", "p2"), "data", BY))
    names = ["p0", "p1", "p2"]
    for _step in range(steps):
        where = Where(Apply("greater", (Column("b"), Literal.of(3))))
        names = [name for name in names if world.system.act(Assign(f"{name}x", where, (name,))) is TAU]
        names = [f"{name}x" for name in names]
    return names


@pytest.mark.parametrize(("steps", "expected"), [(0, [3, 3, 3]), (1, [1, 2, 2]), (2, [1, 2, 2])])
def test_a_loop_over_parts_is_one_scan(steps: int, expected: list[int]) -> None:
    world = World(budget=10)
    answers = [world.count(1, part).released[0][0] for part in parts_of(world, steps=steps)]
    assert answers == expected
    assert world.diary.count("measure") == 1


def test_the_same_question_again_is_drawn_afresh_but_not_measured() -> None:
    world = World(budget=10)
    world.count(1)
    world.count(2)
    assert (world.diary.count("measure"), world.diary.count("draw")) == (1, 2)
    assert world.left() == 7


def test_a_select_above_a_part_keeps_its_siblings_together() -> None:
    from fpinq.model.transformations import Select

    world = World(budget=10)
    select = Select((("a", Apply("multiply", (Column("a"), Literal.of(0)))), ("b", Column("b"))))
    where = Where(Apply("greater", (Column("b"), Literal.of(4))))
    answers = []
    for part in parts_of(world):
        world.system.act(Assign(f"{part}s", select, (part,)))
        world.system.act(Assign(f"{part}sw", where, (f"{part}s",)))
        answers.append(world.count(1, f"{part}sw").released[0][0])
    assert answers == [1, 1, 2]
    assert world.diary.count("measure") == 1


def test_the_cache_is_bounded() -> None:
    from fpinq.model.plans import RootTable
    from fpinq.runtime.statistics import Statistics

    engine = Watched([])
    engine.add_root("data", ROWS)
    statistics = Statistics(engine.measure, max_bytes=2_000)
    plans = [RootTable("data") for _i in range(5)]
    for plan in plans:
        statistics.measure(plan, SCHEMA, None, [Records()])
    assert len(statistics._measured) == 1
    statistics.measure(plans[-1], SCHEMA, None, [Records()])
    assert engine.diary.count("measure") == 5


def test_what_the_cache_forgets_does_not_depend_on_an_answer() -> None:
    from fpinq.model.plans import RootTable, Term
    from fpinq.runtime.statistics import Statistics

    kept = []
    for rows in (ROWS, ROWS[1:]):
        engine = Watched([])
        engine.add_root("data", rows)
        statistics = Statistics(engine.measure, max_bytes=3_000)
        everybody, one = RootTable("data"), Apply("equal", (Column("b"), Literal.of(0)))
        for plan in (everybody, Term(Where(one), (everybody,)), RootTable("data"), everybody):
            statistics.measure(plan, SCHEMA, None, [Records()])
        kept.append(engine.diary.count("measure"))
    assert kept[0] == kept[1]


def test_too_many_siblings_are_measured_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpinq.runtime.statistics.MAX_SIBLINGS", 2)
    world = World(budget=10)
    assert [world.count(1, part).released[0][0] for part in parts_of(world)] == [3, 3, 3]
    assert world.diary.count("measure") == 2


def test_the_reference_engine_checks_its_rows() -> None:
    engine = ReferenceEngine()
    for wrong in ([1], "file.csv", [{"a": object()}], [{"a": 1}, {"a": "x"}], [], [{"a": None}]):
        with pytest.raises(ProgramError):
            engine.add_root("data", wrong)
    assert engine.add_root("ok", [{"a": 1}, {"a": 2.5}]) == Schema((("a", Type.FLOAT64),))
    assert engine.add_root("typed", [], {"a": Type.INT64}) == Schema((("a", Type.INT64),))
    engine.close()


@pytest.mark.parametrize("number", ["its own", "its parent's, used again"])
def test_a_forked_process_spends_no_copy_of_the_budget(number: str) -> None:
    """Each child of a pool had the whole budget again; and a later one that had the number of the first."""
    parent = os.getpid()
    system = ProtectedSystem(ReferenceEngine())
    shape = system.engine.add_root("d", ROWS)
    system.protect("d", shape, Fraction(1))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover - another process
        try:
            if number != "its own":
                pytest.MonkeyPatch().setattr(os, "getpid", lambda: parent)
            system.act(Query("d", Fraction(1), (Count(),)))
            os.write(writing, b"answered")
        except LedgerError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        assert b"forked" in told.read()
    assert isinstance(system.act(Query("d", Fraction(1), (Count(),))), Answered)


def test_what_an_engine_refuses_after_the_charge_is_no_mistake_of_the_program() -> None:
    """A ProgramError promises that nothing was charged."""

    class Refusing(ReferenceEngine):
        def measure(self, plan: Any, by: Any, statistics: Any, seconds: float = inf) -> Any:
            raise ProgramError("no such thing here")

    system = ProtectedSystem(Refusing())
    system.protect("d", system.engine.add_root("d", ROWS), Fraction(1))
    with pytest.raises(EngineError, match="charge stands"):
        system.act(Query("d", Fraction(1, 4), (Count(),)))
    assert system.act(AskBudget()) == Told({"d": Fraction(3, 4)})


@pytest.mark.parametrize("name", ["key", "key'", "\0key", "key'" * 3])
def test_no_column_is_taken_for_the_key_that_siblings_are_told_by(name: str) -> None:
    system = ProtectedSystem(ReferenceEngine(), mechanism=lambda query, found, epsilon: (found[0],))
    system.protect("d", system.engine.add_root("d", ROWS), Fraction(1))
    system.act(Partition(("p", "q"), "d", Partitioning(Column("a"), (0, 1))))
    system.act(Assign("t", Select(((name, Column("b")),)), ("p",)))
    told = system.act(Query("t", Fraction(1, 10), (Count(),)))
    assert isinstance(told, Answered)
    assert told.released == ((3,),)


def test_a_share_pays_for_a_query_that_failed_after_its_charge() -> None:
    """A share of 0.3 drained its root: what failed was charged there and not here."""

    class Failing(ReferenceEngine):
        def measure(self, plan: Any, by: Any, statistics: Any, seconds: float = inf) -> Any:
            raise EngineError("12345678")

    data = fp.protect(ROWS, budget=1, engine=Failing())
    share = fp.Budget("3/10")
    table = data.with_budget(share)
    with pytest.raises(EngineError):
        table.noisy_count("1/5")
    assert (share.remaining, data.remaining) == (Fraction(1, 10), Fraction(4, 5))
    with pytest.raises(fp.BudgetExceeded):
        table.noisy_count("1/5")
    assert data.remaining == Fraction(4, 5)


@pytest.mark.parametrize("durable", [False, True])
def test_what_a_finalizer_asks_in_the_middle_of_a_step_is_refused_not_undone(
    durable: bool, tmp_path: Path
) -> None:
    """A step that was cut into took its own view of the budget back: what was asked within was free."""
    record = open_ledger(tmp_path / "ledger") if durable else InMemory()
    record.register("d", Schema.of({"a": Type.INT64}), Fraction(1))
    query = Query("d", Fraction(1, 10), (Count(),))
    answered: list[Acted] = []

    def finalizer(label: object) -> None:
        for action in (query, AskBudget()):
            with pytest.raises(LedgerError, match="in the middle of a step"):
                answered.append(record.act("s", action))
        with pytest.raises(LedgerError, match="in the middle of a step"):
            record.drop("s", ["t"])

    answered += [record.act("s", query, check=finalizer), record.act("s", query)]
    left = record.act("s", AskBudget()).label
    assert left == Told({"d": 1 - len(answered) * query.epsilon}) == Told({"d": Fraction(4, 5)})
