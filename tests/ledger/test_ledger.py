"""The ledger: one budget for all sessions and processes; charged once, answered once."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fpinq.engines.reference import Relation
from fpinq.ledger import kept, open_ledger, sqlite
from fpinq.ledger.entries import Line, body_of, parsed
from fpinq.ledger.errors import (
    Frozen,
    LedgerCorrupt,
    OthersSession,
    RegisteredDifferently,
    RequestReused,
    SameData,
)
from fpinq.ledger.store import WIDTH, units_text
from fpinq.ledger.verify import replay
from fpinq.model import errors
from fpinq.model.accounts import certify, remaining
from fpinq.model.actions import AskBudget, AskPrice, AskScale, Assign, Partition, Query, Silent
from fpinq.model.errors import BadData, DataChanged, LedgerError, ProgramError, UnknownTable
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.notions import Rho
from fpinq.model.queries import Count
from fpinq.model.semantics import BOTTOM, TAU, Measure, Told
from fpinq.model.sessions import configuration as configuration_of
from fpinq.model.transformations import Partitioning, Where
from fpinq.model.units import GRAIN, units
from fpinq.runtime import Answered, ProtectedSystem, ReferenceEngine
from traced import Interrupted, at_line, interrupt
from traces.programs import NAMES, action, load, schema

AGES = Schema((("age", Type.INT64),))
BY = Partitioning(Column("age"), (0, 1))
ADULTS = Where(Apply("greater", (Column("age"), Literal.of(17))))


def count(epsilon: Any, table: str = "people") -> Query:
    return Query(table, Fraction(epsilon), (Count(),))


def left(ledger: Any, session: str = "someone", analyst: str | None = None) -> Fraction:
    told = ledger.act(session, AskBudget(), analyst=analyst).label
    assert isinstance(told, Told)
    assert isinstance(told.fact, dict)
    return told.fact["people"]  # type: ignore[no-any-return]


def people(ledger: Any, budget: Any = 1, **facts: Any) -> Any:
    ledger.register("people", AGES, budget, contents=["hash of people"], **facts)
    return ledger


# ── the trace is the log ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_trace_replays_to_the_live_accounts_after_every_step(
    name: str, place: str, opened: Any
) -> None:
    program = load(name)
    engine, ledger = ReferenceEngine(), opened(place)
    system = ProtectedSystem(engine, record=ledger)
    for root, written in program["roots"].items():
        shape = schema(written["schema"])
        engine._database[root] = Relation(shape, tuple(tuple(row) for row in written["rows"]))
        system.protect(root, shape, Fraction(written["budget"]), contents=[root])
    other = opened(place)
    for number, expected in enumerate(program["steps"]):
        where = f"step {number + 1}: {expected['op']}"
        environment = system.configuration().environment
        asked = action(expected, {variable: table.shape for variable, table in environment.items()})
        if "error" in expected:
            with pytest.raises(getattr(errors, expected["error"])):
                system.act(asked)
        else:
            observation = system.act(asked)
            assert (observation is BOTTOM) == (expected["rule"] == "Query⊥"), where
            if isinstance(observation, Answered) and "price" in expected:
                price = {root: Fraction(a) for root, a in expected["price"].items() if Fraction(a)}
                assert observation.charged == price, where
        live = system.configuration()
        replayed = replay(ledger.entries())
        for session in replayed.state.sessions.values():
            configuration = configuration_of(replayed.state.budgets, session)
            assert configuration.accounts == live.accounts, where
            assert configuration.environment == live.environment, where
            certify(configuration.accounts)
        # Another process, which has seen nothing of the program, reads the same.
        assert other.configuration(system._session) == live, where
        if "left" in expected:
            found = {root.name: amount for root, amount in remaining(live.accounts).items()}
            assert found == {root: Fraction(a) for root, a in expected["left"].items()}, where


def test_an_action_is_an_entry_and_asking_is_none(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    start = ledger.head().seq
    assert ledger.act("s", Assign("adults", ADULTS, ("people",))).label is TAU
    assert ledger.act("s", count(2, "adults")).label is BOTTOM
    acted = ledger.act("s", count("1/2", "adults"))
    ledger.answer(acted.seq, ((3,),))
    for free in (Silent(), AskScale("adults"), AskBudget(), AskPrice("adults", Fraction(1))):
        assert ledger.act("s", free).seq is None
    kinds = [body_of(stored).kind for stored in ledger.entries(start)]
    assert kinds == ["action", "action", "action", "answer"]


# ── one budget ───────────────────────────────────────────────────────────────────────


def test_a_second_process_goes_on_with_what_is_left(place: str, opened: Any) -> None:
    first = people(opened(place))
    first.act("monday", count("2/3"))
    second = people(opened(place))
    assert left(second) == Fraction(1, 3)
    assert second.act("tuesday", count("1/2")).label is BOTTOM
    assert second.act("tuesday", count("1/3")).rule == "Query"
    assert left(first) == 0
    assert first.act("monday", count("1/1000000")).label is BOTTOM


def test_two_processes_may_run_one_session_in_turn(place: str, opened: Any) -> None:
    here, there = people(opened(place)), opened(place)
    here.act("s", Partition(("a", "b"), "people", BY))
    assert there.act("s", count("1/2", "a")).charged == {"people": Fraction(1, 2)}
    assert here.act("s", count("1/2", "b")).charged == {}  # the parts' maximum does not grow
    assert there.act("s", count("1/4", "b")).charged == {"people": Fraction(1, 4)}
    assert left(here) == left(there) == Fraction(1, 4)


def test_partitions_of_different_sessions_add_up(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    for session in ("s", "t"):
        ledger.act(session, Partition(("a", "b"), "people", BY))
        ledger.act(session, count("1/4", "a"))
        ledger.act(session, count("1/4", "b"))
    assert left(ledger) == Fraction(1, 2)


def test_a_session_sees_only_its_own_variables(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    ledger.act("s", Assign("adults", ADULTS, ("people",)))
    with pytest.raises(UnknownTable):
        ledger.act("t", count("1/2", "adults"))


def test_a_session_belongs_to_who_opened_it(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    ledger.act("s", Assign("adults", ADULTS, ("people",)), "r", "alice")
    for process in (ledger, opened(place)):
        for request in ("r", "other", None):
            with pytest.raises(OthersSession):
                process.act("s", Assign("adults", ADULTS, ("people",)), request, "bob")
        with pytest.raises(OthersSession):
            process.act("s", AskBudget(), None, "bob")


def test_asking_does_not_claim_a_session(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    left(ledger, "s", "bob")
    assert ledger.act("s", Assign("adults", ADULTS, ("people",)), None, "alice").label is TAU


def test_an_analyst_has_a_cap_under_the_data_set_s(place: str, opened: Any) -> None:
    ledger = people(opened(place), caps={"alice": "1/2"}, cap="3/4")
    assert left(ledger, "a", "alice") == Fraction(1, 2)
    ledger.act("a1", count("1/4"), analyst="alice")
    ledger.act("a2", count("1/4"), analyst="alice")
    assert left(ledger) == Fraction(1, 2)
    other = opened(place)
    assert other.act("a3", count("1/100"), analyst="alice").label is BOTTOM
    assert left(other, "b", "bob") == Fraction(1, 2)  # not 3/4: alice has spent of the same data
    assert other.act("b", count("1/2"), analyst="bob").rule == "Query"
    assert other.act("b", count("1/100"), analyst="bob").label is BOTTOM
    assert ledger.spent_by("alice") == {"people": Fraction(1, 2)}
    replay(ledger.entries())


def test_thirds_and_tenths_are_exact_across_sessions(place: str, opened: Any) -> None:
    ledger = people(opened(place), 2)
    for number in range(3):
        ledger.act(f"s{number}", count("1/3"))
    for number in range(10):
        ledger.act(f"t{number}", count("0.1"))
    assert left(ledger) == 0


def test_odd_fractions_never_add_up_to_more_than_the_budget_and_stay_small(opened: Any) -> None:
    ledger = people(opened(":memory:"))
    odd = [Fraction(1, 10**17 + k) for k in (3, 9, 19, 33, 61, 99)] + [Fraction(1, 97), Fraction(1, 89)]
    for number, epsilon in enumerate(odd):
        ledger.act(f"s{number}", Query("people", epsilon, (Count(),)))
    shown = left(ledger)
    assert shown <= 1 - sum(odd)
    assert (1 - sum(odd)) - shown < Fraction(1, 10**30)
    assert shown.denominator <= GRAIN
    # In one session it is exact to the end, whatever the fraction.
    other = opened(":memory:")
    other.register("people", AGES, "1/97")
    assert other.act("s", count("1/97")).rule == "Query"
    assert left(other, "s") == 0


@pytest.mark.parametrize("number", [0.5, Decimal("0.5"), 2, "1/2"])
def test_a_rho_that_equalled_its_exact_number_made_a_ledger_nobody_could_read(
    number: Any, place: str, opened: Any
) -> None:
    ledger = people(opened(place), Rho(Fraction(3)))
    acted = ledger.act("s", Query("people", Rho(number), (Count(),)))
    assert acted.charged == {"people": Fraction(number)}
    replay(ledger.entries())
    assert left(opened(place)) == 3 - Fraction(number)


def test_a_budget_of_any_size_fits_the_column() -> None:
    largest = units(Fraction(10**18 - 1))
    assert len(units_text(largest)) == WIDTH
    assert units_text(units(Fraction(1, 3))) < units_text(units(Fraction(1, 2))) < units_text(largest)
    assert units(Fraction(1, 3)) * 3 == GRAIN


# ── requests ─────────────────────────────────────────────────────────────────────────


def test_a_repeated_request_gets_the_recorded_answer_and_is_charged_once(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    acted = ledger.act("s", count("1/2"), "r1")
    assert ledger.answer(acted.seq, ((41,),)) == ((41,),)
    for process in (ledger, opened(place)):
        again = process.act("s", count("1/2"), "r1")
        assert (again.seq, again.released, again.charged) == (acted.seq, ((41,),), acted.charged)
        assert left(process) == Fraction(1, 2)


def test_the_same_id_for_another_action_is_refused(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    ledger.act("s", count("1/2"), "r1")
    for other in (count("1/4"), Assign("t", ADULTS, ("people",))):
        with pytest.raises(RequestReused):
            ledger.act("s", other, "r1")
    by = Partitioning(Column("age"), (1,))
    ledger.act("s", Partition(("a",), "people", by), "r2")
    with pytest.raises(RequestReused):  # 1 and true are equal in Python, but not the same key
        ledger.act("s", Partition(("a",), "people", Partitioning(Column("age"), (True,))), "r2")
    assert left(ledger) == Fraction(1, 2)
    # Another session's ids are its own.
    assert ledger.act("t", count("1/4"), "r1").rule == "Query"


def test_a_charge_without_an_answer_is_measured_when_the_request_comes_again(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    ledger.act("s", Assign("t", ADULTS, ("people",)))
    lost = ledger.act("s", count("1/2", "t"), "r1")
    # The variable has another table by now; the request does not.
    ledger.act("s", Assign("t", Where(Apply("less", (Column("age"), Literal.of(3)))), ("people",)))
    other = opened(place)
    again = other.act("s", count("1/2", "t"), "r1")
    assert again.released is None
    assert again.seq == lost.seq
    assert isinstance(again.label, Measure)
    assert isinstance(lost.label, Measure)
    assert again.label == lost.label
    assert left(other) == Fraction(1, 2)
    assert other.answer(again.seq, ((7,),)) == ((7,),)


def test_the_answer_recorded_first_is_the_only_one(place: str, opened: Any) -> None:
    ledger, other = people(opened(place)), opened(place)
    acted = ledger.act("s", count("1/2"), "r1")
    assert other.answer(acted.seq, ((1,),)) == ((1,),)
    assert ledger.answer(acted.seq, ((2,),)) == ((1,),)
    assert ledger.act("s", count("1/2"), "r1").released == ((1,),)


def test_refusals_and_assignments_are_repeated_too(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    before = ledger.act("s", count(2), "r1")
    assert before.label is BOTTOM
    assert ledger.act("s", count(2), "r1") == before
    ledger.act("s", Assign("t", ADULTS, ("people",)), "r2")
    end = ledger.head()
    assert ledger.act("s", Assign("t", ADULTS, ("people",)), "r2").label is TAU
    assert ledger.head() == end


@pytest.mark.parametrize("name", ["", "x" * 201, "\n", "a\x00b", 7, None])
def test_sessions_and_requests_have_printable_names(name: Any, opened: Any) -> None:
    ledger = people(opened(":memory:"))
    with pytest.raises(ProgramError):
        ledger.act(name, count(1))
    if name is not None:
        with pytest.raises(ProgramError):
            ledger.act("s", count(1), name)
    assert left(ledger) == 1


# ── the owner ────────────────────────────────────────────────────────────────────────


def test_registering_again_changes_nothing_and_promises_stay(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    end = ledger.head()
    people(ledger)
    assert ledger.head() == end
    with pytest.raises(RegisteredDifferently, match="budget"):
        people(ledger, 2)
    with pytest.raises(RegisteredDifferently, match="unit"):
        people(ledger, unit="person")
    with pytest.raises(RegisteredDifferently, match="caps"):
        people(ledger, cap=1)
    with pytest.raises(RegisteredDifferently, match="columns"):
        ledger.register("people", Schema((("x", Type.BOOL),)), 1, contents=["hash of people"])
    with pytest.raises(DataChanged):
        ledger.register("people", AGES, 1, contents=["another hash"])
    with pytest.raises(SameData, match="'people'"):
        ledger.register("copy", AGES, 1, contents=["one more", "hash of people"])
    with pytest.raises(UnknownTable):
        ledger.register("block", AGES, 1, block_of="nothing")
    assert ledger.head() == end


def test_no_entry_tells_what_the_data_is(place: str, opened: Any) -> None:
    """A hash of the data tells neighbours apart: whoever reads the trace could try them all."""
    ledger = people(opened(place))
    written = [stored.text for stored in ledger.entries()]
    for hashed in ("hash of people", sha256(b"hash of people").hexdigest()):
        assert not any(hashed in text for text in written)
    (elsewhere,) = people(open_ledger(":memory:")).roots().values()
    (here,) = ledger.roots().values()
    assert len(here.registered.contents) == len(elsewhere.registered.contents) == 1
    assert here.registered.contents != elsewhere.registered.contents
    again = opened(place)
    people(again)  # and yet it is found again
    with pytest.raises(SameData):
        again.register("copy", AGES, 1, contents=["hash of people"])


def test_only_its_owner_may_read_a_ledger_file(tmp_path: Path) -> None:
    ledger = people(open_ledger(tmp_path / "people.ledger"))
    try:
        found = sorted(tmp_path.iterdir())
        assert len(found) == 3
        assert {path.stat().st_mode & 0o777 for path in found} == {0o600}
    finally:
        ledger.close()


def test_frozen_data_is_not_asked_and_nothing_is_charged(place: str, opened: Any) -> None:
    ledger, other = people(opened(place)), opened(place)
    ledger.act("s", Partition(("a", "b"), "people", BY))
    ledger.act("s", count("1/2", "a"), "r1")
    other.freeze("people")
    for free_of_charge in (count("1/2", "b"), count("1/4")):
        with pytest.raises(Frozen):
            ledger.act("s", free_of_charge)
    with pytest.raises(Frozen):  # charged, not answered: not now
        ledger.act("s", count("1/2", "a"), "r1")
    assert ledger.roots()["people"].frozen
    other.unfreeze("people")
    assert ledger.act("s", count("1/2", "b")).charged == {}
    assert ledger.act("s", count("1/2", "a"), "r1").released is None
    with pytest.raises(UnknownTable):
        ledger.freeze("nothing")
    replay(ledger.entries())


def test_a_later_root_does_not_disturb_earlier_sessions(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    ledger.act("s", Assign("more", ADULTS, ("people",)))
    ledger.register("more", AGES, 3, contents=["more"])
    ledger.act("s", count(1, "more"))
    for process in (ledger, opened(place)):
        assert left(process, "s") == 1
        assert process.roots()["more"].remaining == 2
    replay(ledger.entries())


def test_what_check_refuses_is_not_charged(place: str, opened: Any) -> None:
    ledger = people(opened(place))
    end = ledger.head()

    def refuse(label: object) -> None:
        raise BadData("no")

    with pytest.raises(BadData):
        ledger.act("s", count("1/2"), check=refuse)
    assert ledger.head() == end
    assert left(ledger) == 1


# ── the database ─────────────────────────────────────────────────────────────────────


def test_the_chain_is_append_only(tmp_path: Any, opened: Any) -> None:
    path = str(tmp_path / "x.ledger")
    people(opened(path))
    with sqlite3.connect(path) as connection:
        for statement in ("DELETE FROM entries", "UPDATE entries SET text = ''"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(statement)
        with pytest.raises(sqlite3.IntegrityError):  # the CHECK stands behind the conditional update
            connection.execute("UPDATE accounts SET spent = '9' || substr(spent, 2)")
    connection.close()


def test_a_charge_that_does_not_start_from_what_was_read_does_not_happen(place: str, opened: Any) -> None:
    from fpinq.ledger import open_store
    from fpinq.ledger.store import Charge, Pages

    people(opened(place)).act("s", count("1/2"))
    store = open_store(place)
    for before, after in ((0, units(Fraction(3, 4))), (units(Fraction(1, 2)), units(Fraction(2)))):
        charge = {("people", ""): Charge(before, after, units(Fraction(1)))}
        with store.reading() as statements:
            head = Pages(statements).head()
        written = Line(head.seq + 1, "hash", "text")
        with pytest.raises(LedgerCorrupt, match="account"), store.writing(durable=True) as statements:
            Pages(statements).write([written], head, charge)
    store.close()
    assert left(opened(place)) == Fraction(1, 2)


def test_an_older_copy_put_back_under_a_running_process_is_noticed(tmp_path: Any, opened: Any) -> None:
    path, copy = tmp_path / "x.ledger", tmp_path / "copy"
    ledger = people(opened(str(path)))
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    ledger.act("s", count("1/2"))
    with sqlite3.connect(copy) as source, sqlite3.connect(path) as target:
        source.backup(target)
    with pytest.raises(LedgerCorrupt):
        ledger.act("s", count("1/2"))
    for connection in (source, target):
        connection.close()


def test_another_database_is_not_taken_for_a_ledger(tmp_path: Any, opened: Any) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(LedgerError):
        opened(str(path))
    (tmp_path / "text").write_text("not a database, but long enough to look like something" * 50)
    with pytest.raises(LedgerError):
        opened(str(tmp_path / "text"))
    with pytest.raises(LedgerError):
        opened(str(tmp_path / "no" / "such" / "folder"))


def test_a_forked_child_is_told_to_open_the_ledger_itself(
    tmp_path: Any, opened: Any, monkeypatch: Any
) -> None:
    ledger = people(opened(str(tmp_path / "x.ledger")))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(LedgerError, match="forked"):
        ledger.act("s", count(1))


def test_only_charges_and_answers_wait_for_the_disk(tmp_path: Any, opened: Any) -> None:
    ledger = people(opened(str(tmp_path / "x.ledger")))
    modes: list[int] = []

    def after(action: Any) -> int:
        ledger.act("s", action)
        return ledger._store._connection.execute("PRAGMA synchronous").fetchone()[0]  # type: ignore[no-any-return]

    modes = [after(Assign("t", ADULTS, ("people",))), after(count("1/2", "t"))]
    assert modes == [1, 2]  # NORMAL, FULL
    acted = ledger.act("s", count("1/4", "t"))
    ledger.act("s", Assign("u", ADULTS, ("people",)))
    ledger.answer(acted.seq, ((1,),))
    assert ledger._store._connection.execute("PRAGMA synchronous").fetchone()[0] == 2


def interrupted_at(line: int, do: Callable[[], object]) -> bool:
    """Do something, and raise at a line of its database; False if it has not so many.

    Not where a `with` ends or a `try` begins: a signal's handler runs before or after, a tracer in between.
    """
    database = str(Path(sqlite.__file__))
    try:
        return at_line(line, do, interrupt, where=database, returning=False, but=("with ", "try:"))
    except (Interrupted, LedgerError):  # or that the transaction was not written
        return True


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_charge_waits_for_the_disk_wherever_a_step_before_it_was_interrupted(
    tmp_path: Any, opened: Any
) -> None:
    """Between what the database was told and the note of it: then all later charges were without a sync."""
    ledger = people(opened(str(tmp_path / "x.ledger")), budget=1_000)
    line = 1
    while interrupted_at(line, lambda: ledger.act("s", Assign("t", ADULTS, ("people",)))):
        acted = ledger.act("s", count("1/100"))
        assert ledger._store._connection.execute("PRAGMA synchronous").fetchone()[0] == 2, line
        ledger.answer(acted.seq, ((1,),))
        ledger.act("s", Assign("u", ADULTS, ("people",)))
        line += 1
    assert line > 15


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_look_that_was_cut_short_does_not_keep_others_waiting(place: str, opened: Any) -> None:
    """As long as its traceback was remembered it held the lock: other threads waited, and it was refused."""
    ledger = people(opened(place), budget=1_000)
    line, is_cut, acted = 0, True, 0
    while is_cut:
        line += 1
        remembered: list[BaseException] = []
        try:
            is_cut = at_line(line, ledger.roots, interrupt, where=contextlib.__file__)
        except Interrupted as error:
            remembered.append(error)
        with ThreadPoolExecutor(1) as pool:
            acting = pool.submit(ledger.act, "s", count("1/100"), f"{line}")
            try:
                acted += acting.result(10).seq is not None
            finally:
                remembered.clear()
    assert line == acted > 5


def test_a_charged_count_is_two_durable_commits(opened: Any, tmp_path: Any) -> None:
    ledger = people(opened(str(tmp_path / "x.ledger")))
    commits: list[str] = []
    ledger._store._connection.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    ledger.answer(ledger.act("s", count("1/2"), "r").seq, ((1,),))
    assert len(commits) == 2


def test_a_request_told_again_replays_nothing(
    place: str, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole session was replayed, under the lock that every writer waits for."""
    ledger = people(opened(place))
    where = Assign("t", Where(Apply("greater", (Column("age"), Literal.of(1)))), ("people",))
    ledger.act("s", where, "r0")
    asked = ledger.act("s", count("1/2"), "r1")
    ledger.answer(asked.seq or 0, ((5,),))
    ledger.act("s", count("2"), "r2")
    monkeypatch.setattr(type(ledger._memory), "session", lambda *_: pytest.fail("replayed"))
    assert ledger.act("s", where, "r0").rule == "Assign"
    assert ledger.act("s", count("1/2"), "r1").released == ((5,),)
    assert ledger.act("s", count("2"), "r2").label == BOTTOM


def test_an_answer_has_the_time_of_its_question(place: str, opened: Any) -> None:
    """How long it took depends on the data, and auditors read the trace."""
    ledger = people(opened(place))
    asked = ledger.act("s", count("1/2"), "r1")
    time.sleep(0.01)
    ledger.answer(asked.seq or 0, ((5,),))
    *_, question, answer = [parsed(stored) for stored in ledger.entries()]
    assert answer["kind"] == "answer"
    assert answer["at"] == question["at"]


def test_sessions_with_many_tables_are_not_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_TABLES", 20)
    ledger = people(open_ledger(":memory:"))
    for session in ("a", "b", "c"):
        targets = tuple(f"t{i}" for i in range(9))
        ledger.act(session, Partition(targets, "people", Partitioning(Column("age"), tuple(range(9)))))
    assert [name in ledger._memory.sessions for name in ("a", "b", "c")] == [False, True, True]
    assert ledger.act("a", count("1/2", "t3")).rule == "Query"  # replayed
