"""The ledger in one SQLite file: WAL, synchronous=FULL."""

import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any

from fpinq.ledger.errors import LedgerCorrupt, NoLedger
from fpinq.ledger.store import ENTRIES, SCHEMA, SECRET, Found, Statement, Statements, set_aside
from fpinq.ledger.turnstile import Turnstile
from fpinq.model.errors import LedgerError

# How long to wait for other processes.
BUSY_SECONDS = 60

# How many are prepared once: some for each number of entries that are written together.
STATEMENTS = 256

_TYPES = {"integer": "INTEGER", "text": "TEXT"}
# SQLite has no permissions: at least nobody edits the chain by accident.
_VERBS = ("UPDATE", "DELETE")


def _append_only(table: str) -> tuple[str, ...]:
    return tuple(
        f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in _VERBS
    )


_APPLICATION_ID = 0x66706E71


class SQLite:
    """A store in a file. One connection: its owner lets one thread in at a time.

    Processes that are often there at the same time say `in_turns`: then they wait for each other in order.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True, in_turns: bool = False) -> None:
        in_memory = path == ":memory:"  # for tests and demonstrations: gone with the process
        self.address = ":memory:" if in_memory else os.path.realpath(path)
        with _as_ledger_errors(self.address):
            if not in_memory:
                _find(self.address, create)
            self._file = None if in_memory else _identity(self.address)
            self._connection = sqlite3.connect(
                self.address,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=STATEMENTS,
            )
            self._statements = _Statements(self._connection)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        self._current: _Transaction | None = None  # the last that began
        self._durable: bool | None = True  # what the connection was told; None if that is not known
        self._turnstile = Turnstile(self.address if in_turns and not in_memory else None)

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
            if self.address == ":memory:":
                _make_tables(self._connection)
            elif found != _APPLICATION_ID:
                raise LedgerError(f"{self.address} is a database, but no ledger")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def writing(self, *, durable: bool) -> AbstractContextManager["_Statements"]:
        return self._in_turn(durable) if self._turnstile.is_there else self._writing(durable)

    @contextmanager
    def _in_turn(self, durable: bool) -> Iterator["_Statements"]:
        with self._turnstile.turn(), self._writing(durable) as statements:
            yield statements

    def _writing(self, durable: bool) -> AbstractContextManager["_Statements"]:
        if durable == self._durable:
            return self._transaction("BEGIN IMMEDIATE")
        # NORMAL leaves out the sync at commit; the next FULL commit syncs the whole log.
        synchronous = f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}"
        return self._transaction(synchronous, "BEGIN IMMEDIATE", durable=durable)

    def reading(self) -> AbstractContextManager["_Statements"]:
        return self._transaction("BEGIN")

    def rows(self, statement: str) -> Sequence[tuple[Any, ...]]:
        with _as_ledger_errors(self.address):
            self._check_file()
            return self._statements.rows(statement)

    def _check_file(self) -> None:
        if self._file is not None and _identity(self.address) != self._file:
            raise LedgerError(f"{self.address} was moved, deleted or replaced: put it back, or start again")

    def _transaction(self, *first: str, durable: bool | None = None) -> "_Transaction":
        return _Transaction(self, first, durable)

    def set_aside(self, statements: Statements, number: int) -> None:
        kept = set_aside(number)
        for statement in (
            *(f"DROP TRIGGER IF EXISTS entries_no_{verb}" for verb in _VERBS),
            "DROP INDEX entries_of_session",
            f"ALTER TABLE entries RENAME TO {kept}",
            *ENTRIES,
            SECRET,
            *_append_only("entries"),
            *_append_only(kept),
        ):
            statements.run(statement.format(**_TYPES))

    def close(self) -> None:
        with _as_ledger_errors(self.address):
            self._connection.close()
        self._turnstile.close()


class _Transaction:
    """A transaction that begins with some statements; durable: what they say of that, if they do.

    A class of its own, and no generator: every step enters and leaves one.
    """

    def __init__(self, store: SQLite, first: tuple[str, ...], durable: bool | None) -> None:
        self._store, self._first, self._durable = store, first, durable

    def __enter__(self) -> "_Statements":
        store, durable = self._store, self._durable
        store._check_file()
        store._current = self
        if durable is not None:
            store._durable = None  # until it is said: an interruption in between must not be forgotten
        try:
            if store._connection.in_transaction:  # one that was cut short where nothing could end it
                store._connection.execute("ROLLBACK")
            for statement in self._first:
                store._statements.run(statement)
            if durable is not None:
                store._durable = durable
        except BaseException as error:
            self._undo()
            if isinstance(error, sqlite3.Error):
                raise _ledger_error(store.address, error) from None
            raise
        return store._statements

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if error is None:
                self._store._statements.run("COMMIT")
        except BaseException as failed:
            self._undo()
            if isinstance(failed, sqlite3.Error):
                raise _ledger_error(self._store.address, failed) from None
            raise
        if error is not None:
            self._undo()
            if isinstance(error, sqlite3.Error):
                raise _ledger_error(self._store.address, error) from None

    def _undo(self) -> None:
        """Roll back, unless a later one has begun: who was cut short may be forgotten in the middle of it."""
        with suppress(sqlite3.Error):
            if self._store._current is self and self._store._connection.in_transaction:
                self._store._connection.execute("ROLLBACK")


class _Statements:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        return self._connection.execute(statement, parameters).fetchall()

    def run(self, statement: str, *parameters: Any) -> int:
        return self._connection.execute(statement, parameters).rowcount

    def each(self, statements: Sequence[Statement]) -> list[Found]:
        found: list[Found] = []
        for statement, *parameters in statements:
            done = self._connection.execute(statement, parameters)
            found.append((done.fetchall(), done.rowcount))
        return found


def _find(path: str, create: bool) -> None:
    """The file of a ledger, made if there is none; LedgerError if it is not as it was left."""
    if os.path.isdir(path):
        raise LedgerError(f"{path} is a folder: a ledger is a file")
    if not os.path.exists(path):
        if not create:
            raise NoLedger(f"no such ledger: {path}")
        if os.path.exists(f"{path}-wal"):
            raise NoLedger(f"the ledger {path} is gone, and only its log {path}-wal is left: restore it")
        try:
            _make(path)
        except OSError as error:
            raise LedgerError(f"the ledger {path} cannot be made: {error.strerror}") from None
    elif not os.path.getsize(path):
        raise LedgerError(f"{path} is empty, which a ledger never is: restore it, or delete it to begin anew")
    elif _lost_log(path):
        raise LedgerCorrupt(-1, f"the log {path}-wal is gone, with what was written last: put it back")


def _lost_log(path: str) -> bool:
    """Whether the log was deleted: SQLite makes it before the -shm beside it, and deletes it after that."""
    return (
        os.path.exists(f"{path}-shm") and not os.path.exists(f"{path}-wal") and os.path.exists(f"{path}-shm")
    )


def _make(path: str) -> None:
    """A new ledger's file, whole or not at all, that only its owner may read.

    SQLite gives its journals the same permissions. If another process was
    faster, its file is the ledger.
    """
    new = f"{path}.{secrets.token_hex(4)}"
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            _make_tables(connection)
            connection.execute("COMMIT")
        _name(new, path)
    finally:
        with suppress(FileNotFoundError):
            os.remove(new)
    _sync_folder(os.path.dirname(path))


def _name(new: str, path: str) -> None:
    """Give a file its name, if that is free."""
    try:
        os.link(new, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links: whoever was faster finds its file replaced, and stops
        os.rename(new, path)


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in (*SCHEMA, *_append_only("entries"), f"PRAGMA application_id = {_APPLICATION_ID}"):
        connection.execute(statement.format(**_TYPES))


def _sync_folder(folder: str) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _identity(path: str) -> tuple[int, int] | None:
    """Which file is there; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _as_ledger_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _ledger_error(path, error) from None


def _ledger_error(path: str, error: sqlite3.Error) -> LedgerError:
    if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return LedgerCorrupt(-1, f"the file {path} is damaged: {error}")
    return LedgerError(f"the ledger {path} cannot be written or read ({error}): nothing was answered")
