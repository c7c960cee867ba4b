"""A PostgreSQL is asked for several things at once, and each answer is that of its statement, or none is."""

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fpinq.ledger import Ledger, open_store
from fpinq.ledger import pipeline as pipeline_module
from fpinq.ledger import postgres as postgres_module
from fpinq.ledger.pipeline import Pipeline
from fpinq.ledger.verify import verify
from fpinq.model.actions import Query
from fpinq.model.errors import LedgerError
from fpinq.model.expressions import Schema, Type
from fpinq.model.queries import Count
from traced import Interrupted, at_line, interrupt

COUNT = Query("people", Fraction(1, 100), (Count(),))


@pytest.fixture
def piped(postgres: Any) -> Iterator[Callable[[], Pipeline]]:
    """Connections to the same fresh database, in which there is a table t of a number and a text."""
    import psycopg

    url, made = postgres.fresh(), []

    def connected() -> Pipeline:
        made.append(Pipeline(psycopg.connect(url, autocommit=True, client_encoding="utf8")))
        return made[-1]

    connected().each([("CREATE TABLE t (a BIGINT PRIMARY KEY, b TEXT)",)])
    yield connected
    for each in made:
        each.close()


def test_answers_are_those_of_their_statements_in_order(piped: Any) -> None:
    pipeline = piped()
    found = pipeline.each(
        [
            ("INSERT INTO t VALUES (?, ?), (?, ?)", 1, "one", 2, None),
            ("SELECT a, b FROM t ORDER BY a",),
            ("UPDATE t SET b = ? WHERE a >= ?", "?", 1),
            ("SELECT b, a FROM t WHERE a = ?", 3),
            ("SELECT b FROM t WHERE a = ?", 2),
        ]
    )
    assert found == [([], 2), ([(1, "one"), (2, None)], 2), ([], 2), ([], 0), ([("?",)], 1)]


def test_a_statement_is_prepared_once(piped: Any) -> None:
    pipeline = piped()
    for number in range(5):
        pipeline.each([("SELECT a FROM t WHERE a = ?", number)] * 2)
    (((prepared,),), _), *_ = pipeline.each([("SELECT count(*) FROM pg_prepared_statements",)])
    assert prepared == 2  # and that itself


def test_so_many_statements_are_prepared_and_no_more(piped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "PREPARED", 3)
    pipeline = piped()
    for number in range(9):
        assert pipeline.each([(f"SELECT {number} + ?::INT", 1)]) == [([(number + 1,)], 1)]
    (((prepared,),), _), *_ = pipeline.each([("SELECT count(*) FROM pg_prepared_statements",)])
    assert prepared == 3


def test_nothing_after_an_error_is_done_and_nothing_before_it_is_kept(piped: Any) -> None:
    import psycopg

    pipeline, again = piped(), ("INSERT INTO t VALUES (?, ?)", 1, "one")
    with pytest.raises(psycopg.errors.UniqueViolation, match="duplicate key"):
        pipeline.each([again, again, ("INSERT INTO t VALUES (?, ?)", 2, "two"), ("COMMIT",)])
    assert pipeline.closed
    assert piped().each([("SELECT count(*) FROM t",)]) == [([(0,)], 1)]


def test_whoever_is_cut_short_while_waiting_leaves_no_answer_to_the_next(
    postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every wait of a charged count: the next one reads its own answers, and the chain holds."""
    store = open_store(postgres.fresh())
    ledger = Ledger(store)
    ledger.register("people", Schema((("age", Type.INT64),)), 10**6, contents=["people"])
    wait = pipeline_module._wait
    for number in range(40):
        left = [number]

        def cut(socket: int, writing: bool, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                monkeypatch.setattr(pipeline_module, "_wait", wait)
                raise KeyboardInterrupt
            wait(socket, writing)

        monkeypatch.setattr(pipeline_module, "_wait", cut)
        try:
            ledger.answer(ledger.act("s", COUNT, f"{number}").seq or 0, ((number,),))
        except KeyboardInterrupt:
            acted = ledger.act("s", COUNT, f"{number}")  # charged before, or now: once
            if acted.released is None:
                assert ledger.answer(acted.seq or 0, ((number,),)) == ((number,),)
            else:
                assert acted.released == ((number,),)
        monkeypatch.setattr(pipeline_module, "_wait", wait)
        assert ledger.roots()["people"].spent == (number + 1) * COUNT.epsilon
        if left[0] >= 0:
            break
    else:
        raise AssertionError("it never got through")
    report = verify(store)
    assert (report.unanswered, number > 3) == (0, True)
    ledger.close()


@pytest.mark.usefixtures("little_garbage")
@pytest.mark.parametrize("where", [contextlib.__file__, postgres_module.__file__])
def test_a_step_that_was_cut_short_does_not_undo_a_later_one_when_it_is_forgotten(
    postgres: Any, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A transaction that was cut short as it ended was rolled back when its traceback was forgotten: in the
    middle of a later one, whose charge or answer was then said to be on disk, and was not.
    """
    url = postgres.fresh()
    ledger = Ledger(open_store(url))
    ledger.register("people", Schema((("age", Type.INT64),)), 10**6, contents=["people"])
    each = Pipeline.each
    cut: list[BaseException] = []
    told: list[int] = []

    def forgetting(self: Pipeline, statements: Any) -> Any:
        if [*statements] == [("COMMIT",)]:
            cut.clear()
            gc.collect()
        return each(self, statements)

    def ask(number: int) -> None:
        seq = ledger.act("s", COUNT, f"{number}").seq or 0
        ledger.answer(seq, ((number,),))
        told.append(number)

    line, is_cut = 0, True
    while is_cut:
        line += 1
        try:
            is_cut = at_line(line, partial(ask, 2 * line), interrupt, where=where)
        except Interrupted as error:
            cut.append(error)
        with monkeypatch.context() as patched:
            patched.setattr(Pipeline, "each", forgetting)
            ask(2 * line + 1)
    ledger.close()
    store = open_store(url)
    again = Ledger(store)
    assert [again.act("s", COUNT, f"{number}").released for number in told] == [((n,),) for n in told]
    assert line > 10
    verify(store)
    again.close()


def test_a_commit_of_what_is_over_is_an_error(piped: Any) -> None:
    """To a database it is a warning: what was to be committed is not there."""
    import psycopg

    pipeline = piped()
    pipeline.each([("BEGIN",), ("INSERT INTO t VALUES (1, 'one')",)])
    assert pipeline.in_transaction
    pipeline.each([("ROLLBACK",)])
    with pytest.raises(psycopg.OperationalError, match="over before"):
        pipeline.end("COMMIT")
    assert pipeline.closed


def test_other_threads_run_while_one_waits_for_a_lock(piped: Any) -> None:
    first, second = piped(), piped()
    first.each([("INSERT INTO t VALUES (1, 'one')",)])
    locked = "SELECT a FROM t FOR UPDATE"
    first.each([("BEGIN",), (locked,)])
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second.each, [("BEGIN",), (locked,), ("COMMIT",)])
        assert not threading.Event().wait(0.1)
        assert not waiting.done()
        first.each([("COMMIT",)])
        assert waiting.result(30)[1] == ([(1,)], 1)


def test_a_lost_connection_is_an_error_and_not_an_answer(piped: Any) -> None:
    import psycopg

    pipeline = piped()
    (((pid,),), _), *_ = pipeline.each([("SELECT pg_backend_pid()",)])
    piped().each([("SELECT pg_terminate_backend(?)", pid)])
    with pytest.raises(psycopg.Error):
        pipeline.each([("SELECT 1",)])
    assert pipeline.closed
    with pytest.raises(psycopg.Error):
        pipeline.each([("SELECT 1",)])


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.none())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_a_text_comes_back_as_it_was_or_is_refused(piped: Any, text: str | None) -> None:
    import psycopg

    pipeline = piped()
    try:
        found = pipeline.each([("SELECT ?::TEXT, 7", text)])
    except psycopg.DataError:
        assert "\0" in (text or "")
    else:
        assert found == [([(text, 7)], 1)]
    finally:
        pipeline.close()


def test_a_large_entry_is_sent_while_the_database_reads_it(piped: Any) -> None:
    """More than fits into a socket's buffers, both ways."""
    pipeline, text = piped(), "x" * 20_000_000
    found = pipeline.each([("INSERT INTO t VALUES (?, ?)", 1, text), ("SELECT b FROM t WHERE a = ?", 1)])
    assert found[1][0] == [(text,)]


def test_an_error_of_the_database_is_a_ledger_error_in_its_own_words(postgres: Any) -> None:
    store = open_store(postgres.fresh())
    with (
        pytest.raises(LedgerError, match="division by zero"),
        store.writing(durable=True) as statements,
    ):
        statements.rows("SELECT 1 / ?::INT", 0)
    with store.reading() as statements:
        assert statements.rows("SELECT 1") == [(1,)]
    store.close()
