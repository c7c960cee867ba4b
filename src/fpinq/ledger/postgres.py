"""The ledger in a PostgreSQL database: several servers share it. Needs fpinq[postgres]."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from fpinq.ledger.errors import NoLedger
from fpinq.ledger.pipeline import Pipeline
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
        self._pipeline: Pipeline | None = None
        try:
            self._prepare(create)
        except BaseException:
            self.close()
            raise

    def _prepare(self, create: bool) -> None:
        with _Transaction(self, (_WRITING, f"SELECT pg_advisory_xact_lock({_LOCK})")) as statements:
            if not statements.rows("SELECT 1 WHERE to_regclass('head') IS NOT NULL"):
                if not create:
                    raise NoLedger("this database holds no ledger")
                for statement in SCHEMA:
                    statements.run(statement.format(**_TYPES))
                for statement in _APPEND_ONLY:
                    statements.run(statement)

    def writing(self, *, durable: bool) -> "_Transaction":
        waiting = () if durable else ("SET LOCAL synchronous_commit = off",)
        # The one row that every writer locks first.
        return _Transaction(self, (_WRITING, *waiting, "SELECT seq FROM head FOR UPDATE"))

    def reading(self) -> "_Transaction":
        return _Transaction(self, ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",))

    def rows(self, statement: str) -> Sequence[tuple[Any, ...]]:
        with self._as_ledger_errors():
            return self._connected().each([(statement,)])[0][0]

    def _connected(self) -> Pipeline:
        if self._pipeline is not None and self._pipeline.in_transaction:
            self._pipeline.close()  # one that was cut short where nothing could end it: it is not there
        if self._pipeline is None or self._pipeline.closed:
            connection = _psycopg().connect(self.address, autocommit=True, client_encoding="utf8")
            connection.execute(_DURABLE)
            self._pipeline = Pipeline(connection)
        return self._pipeline

    @contextmanager
    def _as_ledger_errors(self) -> Iterator[None]:
        try:
            yield
        except _psycopg().Error as error:
            raise self._ledger_error(error) from None

    def _ledger_error(self, error: Exception) -> LedgerError:
        self.close()
        reason = str(error).strip().partition("\n")[0]
        return LedgerError(f"the ledger cannot be written or read ({reason}): nothing was answered")

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
        if self._pipeline is not None:
            self._pipeline.close()


class _Transaction:
    """A transaction that begins with some statements, on the connection that there is then.

    A class of its own, and no generator: what was cut short where it ends would end in a later one, when
    its traceback is forgotten, and undo that.
    """

    def __init__(self, store: PostgreSQL, first: Sequence[str]) -> None:
        self._store, self._first = store, first

    def __enter__(self) -> "_Statements":
        with self._store._as_ledger_errors():
            self._statements = _Statements(self._store._connected(), self._first)
        return self._statements

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if error is None:
                self._statements.end("COMMIT")
        except BaseException as failed:
            self._undo()
            if isinstance(failed, _psycopg().Error):
                raise self._store._ledger_error(failed) from None
            raise
        if error is not None:
            self._undo()
            if isinstance(error, _psycopg().Error):
                raise self._store._ledger_error(error) from None

    def _undo(self) -> None:
        with suppress(_psycopg().Error):
            self._statements.end("ROLLBACK")


class _Statements:
    """A transaction that begins with the first that is asked of it: all in one round trip."""

    def __init__(self, pipeline: Pipeline, first: Sequence[str] = ()) -> None:
        self._pipeline = pipeline
        self._first = [(statement,) for statement in first]
        self.have_begun = False

    def rows(self, statement: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        return self.each([(statement, *parameters)])[0][0]

    def run(self, statement: str, *parameters: Any) -> int:
        return self.each([(statement, *parameters)])[0][1]

    def end(self, how: str) -> None:
        """Commit or roll back, if it has begun; OperationalError if it is over already."""
        if self.have_begun:
            self._pipeline.end(how)

    def each(self, statements: Sequence[Statement]) -> list[Found]:
        if self.have_begun:
            return self._pipeline.each(statements)
        self.have_begun = True
        return self._pipeline.each([*self._first, *statements])[len(self._first) :]


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise ProgramError("a ledger in PostgreSQL needs psycopg: pip install 'psycopg[binary]'") from None
    return psycopg
