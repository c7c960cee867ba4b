"""The ledger in a PostgreSQL database: several servers share it. Needs fpinq[postgres]."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from fpinq.ledger.errors import NoLedger
from fpinq.ledger.store import ENTRIES, SCHEMA, SECRET, Statements, set_aside
from fpinq.model.errors import LedgerError, ProgramError

_TYPES = {"integer": "BIGINT", "text": 'TEXT COLLATE "C"'}
_APPEND_ONLY = (
    """CREATE FUNCTION entries_append_only() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$""",
    """CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
       EXECUTE FUNCTION entries_append_only()""",
)
# Any number that only we use: two servers that start at once make the tables once.
_LOCK = 0x66706E71


class PostgreSQL:
    """A store in a database, through one connection; a lost one is opened again for the next transaction."""

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.address = url
        self._connection: Any = None
        try:
            self._prepare(create)
        except BaseException:
            self.close()
            raise

    def _prepare(self, create: bool) -> None:
        with self._transaction("") as statements:
            statements.run(f"SELECT pg_advisory_xact_lock({_LOCK})")
            if not statements.rows("SELECT 1 WHERE to_regclass('head') IS NOT NULL"):
                if not create:
                    raise NoLedger("this database holds no ledger")
                for statement in SCHEMA:
                    statements.run(statement.format(**_TYPES))
                for statement in _APPEND_ONLY:
                    statements.run(statement)

    @contextmanager
    def writing(self, *, durable: bool) -> Iterator["_Statements"]:
        with self._transaction("") as statements:
            if not durable:
                statements.run("SET LOCAL synchronous_commit = off")
            # The one row that every writer locks first.
            statements.rows("SELECT seq FROM head FOR UPDATE")
            yield statements

    @contextmanager
    def reading(self) -> Iterator["_Statements"]:
        with self._transaction("ISOLATION LEVEL REPEATABLE READ READ ONLY") as statements:
            yield statements

    @contextmanager
    def _transaction(self, how: str) -> Iterator["_Statements"]:
        psycopg = _psycopg()
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(self.address, autocommit=True, client_encoding="utf8")
            statements = _Statements(self._connection)
            statements.run(f"BEGIN {how}")
            try:
                yield statements
                statements.run("COMMIT")
            except BaseException:
                with suppress(psycopg.Error):
                    self._connection.execute("ROLLBACK")
                raise
        except psycopg.Error as error:
            if self._connection is not None:
                self._connection.close()
            reason = str(error).strip().partition("\n")[0]
            raise LedgerError(
                f"the ledger cannot be written or read ({reason}): nothing was answered"
            ) from None

    def set_aside(self, statements: Statements, number: int) -> None:
        kept = set_aside(number)
        for statement in (  # its trigger goes with the table
            f"ALTER TABLE entries RENAME TO {kept}",
            f"ALTER INDEX entries_of_session RENAME TO {kept}_of_session",
            *ENTRIES,
            SECRET,
            _APPEND_ONLY[-1],
        ):
            statements.run(statement.format(**_TYPES))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class _Statements:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, statement: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        found: Sequence[tuple[Any, ...]] = self._execute(statement, parameters).fetchall()
        return found

    def run(self, statement: str, *parameters: Any) -> int:
        return int(self._execute(statement, parameters).rowcount)

    def _execute(self, statement: str, parameters: tuple[Any, ...]) -> Any:
        return self._connection.execute(statement.replace("?", "%s"), parameters or None)


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise ProgramError("a ledger in PostgreSQL needs psycopg: pip install 'fpinq[postgres]'") from None
    return psycopg
