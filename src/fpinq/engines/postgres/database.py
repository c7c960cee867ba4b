"""A PostgreSQL, through connections of our own: what a statement means does not depend on who set it up.

Every statement runs in a transaction that can only read, in a snapshot. Its settings are made with it
and end with it, so a pool of connections between us and the database changes nothing: whatever the server,
the database or the role is set to, the same SQL means the same.
"""

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

from fpinq.model.errors import ProgramError, UnfitEngine

# The suites run on the first of these and on the newest (make postgres, make postgres-newest).
FIRST, BEYOND = 15, 19

MEANING = {
    "array_nulls": "on",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "escape_string_warning": "on",
    "extra_float_digits": "1",
    "intervalstyle": "postgres",
    # Compiling takes longer than most measurements, and whether it is done is guessed from the data.
    "jit": "off",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    # A policy that would leave rows out is an error, not a smaller table.
    "row_security": "off",
    # Functions and operators are PostgreSQL's own, whatever the database has under the same names.
    "search_path": "pg_catalog, pg_temp",
    "standard_conforming_strings": "on",
    "timezone": "UTC",
    "transform_null_equals": "off",
}
# Of connections, in seconds, unless the address says otherwise.
_PATIENCE = {"connect_timeout": 15, "keepalives_idle": 60, "keepalives_interval": 15}
# A statement has one snapshot, and each its own: what is looked up after another is as that left it.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"


_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()
_inherited: list[Any] = []


class Database:
    """Connections to one address, each used by one thread at a time."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        weakref.finalize(self, _close, self._idle)
        _databases.add(self)

    @contextlib.contextmanager
    def reading(self, seconds: float = inf) -> Iterator["Statements"]:
        """A transaction to read in; nothing in it may take longer than so many seconds."""
        connection = self._begun(_settings(seconds))
        try:
            yield Statements(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()  # ends whatever still runs
            raise
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        """Give up all connections."""
        with self._lock:
            _close(self._idle)

    def forked(self) -> None:
        """In a forked process: leave the parent's connections alone, or each reads the other's answers."""
        self._lock = threading.Lock()
        _inherited.extend(self._idle)  # not to be closed either
        self._idle.clear()

    def _begun(self, settings: str) -> Any:
        """A connection in a new transaction. One that was lost while nobody used it is replaced."""
        psycopg = _psycopg()
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                connection.execute(settings)
                return connection
            except psycopg.OperationalError:
                connection.close()
        connection = psycopg.connect(
            self._address,
            autocommit=True,
            client_encoding="utf8",
            cursor_factory=psycopg.RawCursor,
            prepare_threshold=None,
            **{key: value for key, value in _PATIENCE.items() if key not in self._address},
        )
        # A text is one to PostgreSQL too, also where the statement does not mention it.
        connection.adapters.register_dumper(str, psycopg.types.string.StrDumper)
        try:
            connection.execute(settings)
        except BaseException:
            connection.close()
            raise
        return connection


class Statements:
    """What can be asked within a transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def version(self) -> int:
        """The server's major version."""
        return int(self._connection.info.server_version) // 10_000

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement; parameters are $1, $2, …"""
        cursor = self._connection.cursor(binary=True)
        found: list[tuple[Any, ...]] = cursor.execute(sql, parameters or None).fetchall()
        return found


def check_version(version: int) -> None:
    """UnfitEngine unless it is a version that the suites have run on."""
    if not FIRST <= version < BEYOND:
        raise UnfitEngine(
            f"this is PostgreSQL {version}, which fpinq was not tested on: use {FIRST} to {BEYOND - 1}"
        )


def _settings(seconds: float) -> str:
    """What begins a transaction of ours."""
    # In milliseconds, of which 0 is without end.
    milliseconds = 0 if seconds >= 2_000_000 else max(1, int(seconds * 1000))
    settings = {**MEANING, "statement_timeout": str(milliseconds)}
    return "; ".join([_BEGIN, *(f"SET LOCAL {name} = {_value(value)}" for name, value in settings.items())])


def _value(value: str) -> str:
    """A list stays a list; everything else is a text."""
    return ", ".join(f"'{part.strip()}'" for part in value.split(","))


def _close(connections: list[Any]) -> None:
    while connections:
        connections.pop().close()


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise ProgramError("PostgreSQL needs psycopg: pip install 'psycopg[binary]'") from None
    return psycopg


def _forked() -> None:
    for database in _databases:
        database.forked()


if hasattr(os, "register_at_fork"):  # pragma: no branch - elsewhere nothing forks
    os.register_at_fork(after_in_child=_forked)
