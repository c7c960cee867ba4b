"""The ledger in one SQLite file: WAL, synchronous=FULL."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from fpinq.ledger.errors import LedgerCorrupt
from fpinq.ledger.store import SCHEMA
from fpinq.model.errors import LedgerError

# How long to wait for other processes.
BUSY_SECONDS = 60

_TYPES = {"integer": "INTEGER", "text": "TEXT"}
# SQLite has no permissions: at least nobody edits the chain by accident.
_APPEND_ONLY = tuple(
    f"CREATE TRIGGER entries_no_{verb} BEFORE {verb} ON entries "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    for verb in ("UPDATE", "DELETE")
)
_APPLICATION_ID = 0x66706E71


class SQLite:
    """A store in a file. One connection: its owner lets one thread in at a time."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        in_memory = path == ":memory:"  # for tests and demonstrations: gone with the process
        self.address = ":memory:" if in_memory else os.path.realpath(path)
        if not in_memory and not create and not os.path.isfile(self.address):
            raise LedgerError(f"no such ledger: {path}")
        with _as_ledger_errors(self.address):
            if not in_memory:
                _make_private(self.address)
            self._connection = sqlite3.connect(
                self.address, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._statements = _Statements(self._connection)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        self._durable = True

    def _prepare(self) -> None:
        try:
            (mode,) = self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                raise
            why = "it is not a database, or its beginning is damaged"
            raise LedgerError(f"{self.address} is no ledger: {why}") from None
        if mode != "wal" and self.address != ":memory:":
            raise LedgerError(f"{self.address}: this file system has no shared memory for a WAL; use another")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            (found,) = self._connection.execute("PRAGMA application_id").fetchone()
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if found != _APPLICATION_ID and tables:
                raise LedgerError(f"{self.address} is a database, but no ledger")
            if not tables:
                for statement in SCHEMA:
                    self._connection.execute(statement.format(**_TYPES))
                for statement in _APPEND_ONLY:
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def writing(self, *, durable: bool) -> Iterator["_Statements"]:
        with _as_ledger_errors(self.address):
            if durable != self._durable:
                # NORMAL leaves out the sync at commit; the next FULL commit syncs the whole log.
                self._statements.run(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            with self._transaction("BEGIN IMMEDIATE") as statements:
                yield statements

    @contextmanager
    def reading(self) -> Iterator["_Statements"]:
        with _as_ledger_errors(self.address), self._transaction("BEGIN") as statements:
            yield statements

    @contextmanager
    def _transaction(self, begin: str) -> Iterator["_Statements"]:
        self._statements.run(begin)
        try:
            yield self._statements
            self._statements.run("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        with _as_ledger_errors(self.address):
            self._connection.close()


class _Statements:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        return self._connection.execute(statement, parameters).fetchall()

    def run(self, statement: str, *parameters: Any) -> int:
        return self._connection.execute(statement, parameters).rowcount


def _make_private(path: str) -> None:
    """A new file that only its owner may read; SQLite gives its journals the same permissions."""
    with suppress(OSError):  # there already, or a place where SQLite will say what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@contextmanager
def _as_ledger_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise LedgerCorrupt(-1, f"the file {path} is damaged: {error}") from None
        raise LedgerError(
            f"the ledger {path} cannot be written or read ({error}): nothing was answered"
        ) from None
