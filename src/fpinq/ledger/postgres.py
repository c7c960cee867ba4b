"""The ledger in a PostgreSQL database: several servers share it. Needs fpinq[postgres]."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from fpinq.ledger.errors import NoLedger
from fpinq.ledger.store import ENTRIES, SCHEMA, SECRET, Found, Statement, Statements, set_aside
from fpinq.model.errors import LedgerError, ProgramError

_TYPES = {"integer": "BIGINT", "text": 'TEXT COLLATE "C"'}
_APPEND_ONLY = (
    """CREATE FUNCTION entries_append_only() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$""",
    """CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
       EXECUTE FUNCTION entries_append_only()""",
)
# What a database, a role or an address says by default is not asked: a commit that is answered by survives a
# crash, and a writer sees what was committed before it. One that waits for more than its disk goes on so.
_DURABLE = """SELECT set_config('synchronous_commit', 'on', false)
              WHERE current_setting('synchronous_commit') = 'off'"""
_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
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
        with self._transaction(_WRITING, f"SELECT pg_advisory_xact_lock({_LOCK})") as statements:
            if not statements.rows("SELECT 1 WHERE to_regclass('head') IS NOT NULL"):
                if not create:
                    raise NoLedger("this database holds no ledger")
                for statement in SCHEMA:
                    statements.run(statement.format(**_TYPES))
                for statement in _APPEND_ONLY:
                    statements.run(statement)

    @contextmanager
    def writing(self, *, durable: bool) -> Iterator["_Statements"]:
        waiting = () if durable else ("SET LOCAL synchronous_commit = off",)
        # The one row that every writer locks first.
        with self._transaction(_WRITING, *waiting, "SELECT seq FROM head FOR UPDATE") as statements:
            yield statements

    @contextmanager
    def reading(self) -> Iterator["_Statements"]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as statements:
            yield statements

    def rows(self, statement: str) -> Sequence[tuple[Any, ...]]:
        with self._as_ledger_errors():
            return _Statements(self._connected()).rows(statement)

    @contextmanager
    def _transaction(self, *first: str) -> Iterator["_Statements"]:
        with self._as_ledger_errors() as psycopg:
            statements = _Statements(self._connected(), first)
            try:
                yield statements
                if statements.have_begun:
                    statements.run("COMMIT")
            except BaseException:
                with suppress(psycopg.Error):
                    if statements.have_begun:
                        self._connection.execute("ROLLBACK")
                raise

    def _connected(self) -> Any:
        if self._connection is None or self._connection.closed:
            psycopg = _psycopg()
            self._connection = psycopg.connect(
                self.address, autocommit=True, client_encoding="utf8", cursor_factory=psycopg.ClientCursor
            )
            self._connection.execute(_DURABLE)
        return self._connection

    @contextmanager
    def _as_ledger_errors(self) -> Iterator[Any]:
        psycopg = _psycopg()
        try:
            yield psycopg
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
    """A transaction that begins with the first that is asked of it: all in one round trip."""

    def __init__(self, connection: Any, first: Sequence[str] = ()) -> None:
        self._connection = connection
        self._first = first
        self.have_begun = False

    def rows(self, statement: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        return self.each([(statement, *parameters)])[0][0]

    def run(self, statement: str, *parameters: Any) -> int:
        return self.each([(statement, *parameters)])[0][1]

    def each(self, statements: Sequence[Statement]) -> list[Found]:
        first = () if self.have_begun else self._first
        self.have_begun = True
        text = "; ".join([*first, *(statement[0].replace("?", "%s") for statement in statements)])
        parameters = [each for _, *given in statements for each in given]
        cursor = self._connection.execute(text, parameters or None)
        for _ in first:
            cursor.nextset()
        return list(_results(cursor))


def _results(cursor: Any) -> Iterator[Found]:
    yield _result(cursor)
    while cursor.nextset():
        yield _result(cursor)


def _result(cursor: Any) -> Found:
    return cursor.fetchall() if cursor.description else [], int(cursor.rowcount)


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise ProgramError("a ledger in PostgreSQL needs psycopg: pip install 'psycopg[binary]'") from None
    return psycopg
