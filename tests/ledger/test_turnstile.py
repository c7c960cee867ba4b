"""Processes write in turns: whoever has just written comes after the one who waits."""

import contextlib
import gc
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fpinq.ledger import Ledger, open_ledger, sqlite, turnstile
from fpinq.ledger.sqlite import SQLite
from fpinq.ledger.turnstile import Turnstile
from fpinq.model.actions import Query
from fpinq.model.expressions import Schema, Type
from fpinq.model.queries import Count
from fpinq.model.semantics import Rule
from traced import Interrupted, at_line, interrupt


def wait_until(condition: Callable[[], bool]) -> None:
    ends = threading.Event()
    for _ in range(30_000):
        if condition():
            return
        ends.wait(0.001)
    raise AssertionError("it does not become so")


def is_taken(gate: str) -> bool:
    """Whether somebody is in a gate."""
    import fcntl

    opened = os.open(gate, os.O_RDWR)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(opened)


def test_who_has_just_written_comes_after_the_one_who_waits(tmp_path: Path) -> None:
    """Without the first gate, whoever writes takes the second again before the other has looked."""
    path = str(tmp_path / "x")
    greedy, other = Turnstile(path), Turnstile(path)
    turns: list[str] = []

    def one_turn() -> None:
        with other.turn():
            turns.append("other")

    with ThreadPoolExecutor(1) as pool:
        for _ in range(20):
            with greedy.turn():
                turns.append("greedy")
                waiting = pool.submit(one_turn)
                wait_until(lambda: is_taken(f"{path}-next"))
            with greedy.turn():
                turns.append("greedy")
            waiting.result()
    assert turns == ["greedy", "other", "greedy"] * 20
    greedy.close(), other.close()


def test_two_writers_of_one_file_take_turns(tmp_path: Path) -> None:
    """Counted, with as many turns wanted by each: SQLite alone lets the one that writes go on."""
    path, turns, most = tmp_path / "x.ledger", list[int](), 60
    SQLite(path).close()
    stores = [SQLite(path, in_turns=True), SQLite(path, in_turns=True)]
    both = threading.Barrier(2)

    def writer(number: int) -> None:
        both.wait()
        for turn in range(most):
            with stores[number].writing(durable=False):
                turns.append(number)
                if turn + 1 < most and turns.count(1 - number) < most:  # until the other one wants it too
                    wait_until(lambda: is_taken(f"{path}-next") or turns.count(1 - number) == most)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(writer, range(2)))
    changes = sum(before != after for before, after in pairwise(turns))
    assert changes >= 2 * most - 6
    for store in stores:
        store.close()


def test_a_gate_that_is_stuck_or_cannot_be_made_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps writers apart is the database's own lock."""
    monkeypatch.setattr(turnstile, "PATIENCE_SECONDS", 0.05)
    path = tmp_path / "x.ledger"
    ledger = open_ledger(path, in_turns=True)
    ledger.register("people", Schema((("a", Type.INT64),)), 1)
    stuck = Turnstile(str(path))
    with stuck.turn():
        assert ledger.act("s", Query("people", Fraction(1, 2), (Count(),))).rule is Rule.QUERY
    ledger.close()
    for gate in ("next", "turn"):
        os.remove(f"{path}-{gate}")
        os.mkdir(f"{path}-{gate}")
    ledger = open_ledger(path, in_turns=True)
    assert ledger.act("s", Query("people", Fraction(1, 2), (Count(),))).rule is Rule.QUERY
    ledger.close()


def test_only_its_owner_may_open_the_gates(tmp_path: Path) -> None:
    open_ledger(tmp_path / "x.ledger", in_turns=True).close()
    assert {os.stat(tmp_path / f"x.ledger-{gate}").st_mode & 0o777 for gate in ("next", "turn")} == {0o600}


@pytest.mark.usefixtures("little_garbage")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_turn_that_was_cut_short_does_not_undo_a_later_one_when_it_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was cut short as it ended was rolled back with its traceback: in the middle of a later step."""
    path, run = tmp_path / "x.ledger", sqlite._Statements.run
    ledger = Ledger(SQLite(path, in_turns=True))
    ledger.register("people", Schema((("age", Type.INT64),)), 10**6, contents=["people"])
    cut: list[BaseException] = []
    told: list[int] = []

    def forgetting(self: Any, statement: str, *parameters: Any) -> int:
        if statement == "COMMIT":
            cut.clear()
            gc.collect()
        return run(self, statement, *parameters)

    def ask(number: int) -> None:
        seq = ledger.act("s", Query("people", Fraction(1, 100), (Count(),)), f"{number}").seq or 0
        ledger.answer(seq, ((number,),))
        told.append(number)

    line, is_cut = 0, True
    while is_cut:
        line += 1
        try:
            is_cut = at_line(line, partial(ask, 2 * line), interrupt, where=contextlib.__file__)
        except Interrupted as error:
            cut.append(error)
        with monkeypatch.context() as patched:
            patched.setattr(sqlite._Statements, "run", forgetting)
            ask(2 * line + 1)
    ledger.close()
    assert line > 10
    again = Ledger(SQLite(path))
    asked = [again.act("s", Query("people", Fraction(1, 100), (Count(),)), f"{n}").released for n in told]
    assert asked == [((n,),) for n in told]
    again.close()
