"""A disk that is full or fails: LedgerError, nothing answered, and nothing lost when it works again."""

import resource
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from faults.program import BUDGET, PROGRAM, SPENT, run, system_over
from fpinq.ledger import Ledger, open_ledger, open_store
from fpinq.ledger.sqlite import SQLite
from fpinq.ledger.verify import verify
from fpinq.model.actions import Query
from fpinq.model.errors import LedgerError
from fpinq.model.queries import Count
from fpinq.runtime import Answered


@contextmanager
def no_file_longer_than(limit: int) -> Iterator[None]:
    """A full disk, as far as SQLite can tell: a write beyond the limit fails half way."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_answers_nothing_and_the_ledger_goes_on_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    ledger = open_ledger(path)
    ledger.register("data", *_data())
    ask = Query("data", Fraction(1, 1000), (Count(),))
    wal = Path(f"{path}-wal")
    refused = 0
    for room in range(0, 12_000, 400):
        spent, size = ledger.roots()["data"].spent, wal.stat().st_size
        with no_file_longer_than(size + room):
            answered = _asked(ledger, ask, f"r{room}")
        if answered is None:
            refused += 1
            # Not answered: charged at most once, and asked again it is answered.
            assert ledger.roots()["data"].spent - spent in (0, Fraction(1, 1000))
            assert _asked(ledger, ask, f"r{room}") is not None
        assert ledger.roots()["data"].spent - spent == Fraction(1, 1000)
    assert refused >= 10
    assert verify(ledger._store).unanswered == 0
    ledger.close()


def _data() -> tuple[Any, Any]:
    from faults.program import SHAPE

    return SHAPE, BUDGET


def _asked(ledger: Ledger, ask: Query, request: str) -> object:
    try:
        acted = ledger.act("s", ask, request)
        return ledger.answer(acted.seq or 0, ((7,),))
    except LedgerError:
        return None


class Failing:
    """Statements, one of which fails."""

    def __init__(self, statements: Any) -> None:
        self._statements = statements
        self.left = -1

    def rows(self, *statement: Any) -> Any:
        self._count(statement)
        return self._statements.rows(*statement)

    def run(self, *statement: Any) -> Any:
        self._count(statement)
        return self._statements.run(*statement)

    def each(self, statements: Any) -> Any:
        return [self._one(statement) for statement in statements]

    def _one(self, statement: Any) -> Any:
        self._count(statement)
        return self._statements.each([statement])[0]

    def _count(self, statement: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise sqlite3.OperationalError("disk I/O error")


def test_an_error_at_any_statement_is_a_ledger_error_and_the_program_can_go_on(tmp_path: Path) -> None:
    failures = 0
    for n in range(1, 10_000, 3):
        store = SQLite(":memory:")
        failing = Failing(store._statements)
        store._statements = failing  # type: ignore[assignment]
        ledger = Ledger(store)
        system = system_over(ledger)
        failing.left = n
        seen: dict[str, object] = {}
        try:
            run(system, lambda request, told, seen=seen: seen.update({request: told}))
        except LedgerError:
            failures += 1
        finished, failing.left = failing.left > 0, -1
        again: dict[str, object] = {}
        run(system, lambda request, told, again=again: again.update({request: told}))
        assert seen.items() <= again.items()
        assert len(again) == len(PROGRAM)
        report = verify(store)
        assert (report.roots["data"][1], report.unanswered) == (SPENT, 0)
        store.close()
        if finished:
            break
    assert failures >= 20


def test_a_lost_connection_to_postgresql_is_a_ledger_error_and_is_opened_again(postgres: Any) -> None:
    store = open_store(postgres.fresh())
    system = system_over(Ledger(store))
    with store.reading() as statements:
        ((pid,),) = statements.rows("SELECT pg_backend_pid()")
    _kill(postgres, pid)
    with pytest.raises(LedgerError), store.reading() as statements:
        statements.rows("SELECT 1")
    assert sum(isinstance(told, Answered) for told in _told(system)) == 6
    store.close()


@pytest.mark.parametrize(
    ("setting", "given", "found"),
    [
        ("synchronous_commit", "off", "on"),  # a charge that was answered by was gone after a crash
        ("synchronous_commit", "local", "local"),
        ("synchronous_commit", "remote_apply", "remote_apply"),
        ("default_transaction_isolation", "serializable", "read committed"),
        ("default_transaction_read_only", "on", "off"),
    ],
)
def test_what_a_commit_is_worth_is_not_a_default_of_the_database(
    postgres: Any, setting: str, given: str, found: str
) -> None:
    import psycopg

    url = postgres.fresh()
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.execute("SELECT current_database()").fetchone()[0]  # type: ignore[index]
        connection.execute(f"ALTER DATABASE {name} SET {setting} = '{given}'")  # type: ignore[arg-type]
    store = open_store(url)
    assert sum(isinstance(told, Answered) for told in _told(system_over(Ledger(store)))) == 6
    with store.writing(durable=True) as statements:
        assert statements.rows(f"SHOW {setting.replace('default_', '')}") == [(found,)]
    store.close()


def _told(system: Any) -> list[object]:
    seen: list[object] = []
    run(system, lambda request, told: seen.append(told))
    return seen


def _kill(postgres: Any, pid: int) -> None:
    import psycopg

    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
