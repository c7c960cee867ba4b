"""Several statements in one round trip to a PostgreSQL, each of them prepared once.

What the ledger says is the same few statements again and again, so the database
reads and plans each of them once; and it is told all that does not wait for an
answer before it is asked for any (libpq's pipeline). Both are libpq's own, which
psycopg hands out as `pq`: a cursor would take longer than the database does.
"""

import select
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from fpinq.ledger.store import Found, Statement

# How many statements are prepared: some for each number of entries that are written together.
PREPARED = 256

# Numbers of the types whose values are integers; all others are read as the texts they are sent as.
_INTEGERS = (20, 21, 23)


class Pipeline:
    """A connection of psycopg's, from now on in pipeline mode: nothing else may be asked of it.

    One that is cut short anywhere, or fails, is closed: nobody reads another's answers, and what was not
    committed is not there.
    """

    def __init__(self, connection: Any) -> None:
        from psycopg import DataError, OperationalError, errors, pq

        self._connection, self._libpq = connection, connection.pgconn
        self._pq, self._errors = pq, errors
        self._no_text, self._lost = DataError, OperationalError
        self._names: dict[str, bytes] = {}
        self._libpq.enter_pipeline_mode()

    @property
    def closed(self) -> bool:
        """Whether it is of no more use."""
        return bool(self._connection.closed)

    @property
    def in_transaction(self) -> bool:
        """Whether one has begun that has not ended, or failed; not of a lost connection."""
        status = self._pq.TransactionStatus
        return not self.closed and self._libpq.transaction_status in (status.INTRANS, status.INERROR)

    def end(self, how: str) -> None:
        """COMMIT or ROLLBACK; an error where nothing is under way, which to a database is none."""
        if not self.closed and not self.in_transaction:
            self.close()
            raise self._lost("its transaction was over before")
        self.each([(how,)])

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def each(self, statements: Sequence[Statement]) -> list[Found]:
        """What comes of statements, in order: all of them, or the error of the first that fails."""
        try:
            prepared = [self._send(*statement) for statement in statements]
            self._libpq.pipeline_sync()
            while self._libpq.flush():
                self._take_what_is_there(writing=True)
            found = [self._answer(is_new) for is_new in prepared]
            if self._received().status != self._pq.ExecStatus.PIPELINE_SYNC:
                raise self._lost("it answers what was not asked")
            return found
        except BaseException:
            self._connection.close()
            raise

    # ── asking ───────────────────────────────────────────────────────────────────────

    def _send(self, statement: str, *parameters: Any) -> bool:
        """Ask for one statement; whether it is prepared first, which has an answer of its own."""
        values = [self._value(given) for given in parameters] or None
        name = self._names.get(statement)
        is_new = name is None and len(self._names) < PREPARED
        if is_new:
            name = self._names[statement] = b"fpinq_%d" % len(self._names)
            self._libpq.send_prepare(name, _numbered(statement).encode())
        if name is not None:
            self._libpq.send_query_prepared(name, values)
        else:
            self._libpq.send_query_params(_numbered(statement).encode(), values)
        return is_new

    def _value(self, given: Any) -> bytes | None:
        if given is None:
            return None
        value = str(given).encode()
        if b"\0" in value:  # where libpq would take it to end
            raise self._no_text("a text holds no NUL")
        return value

    # ── being answered ───────────────────────────────────────────────────────────────

    def _answer(self, is_new: bool) -> Found:
        """What came of a statement; if it was prepared first, after that."""
        if is_new:
            self._result()
        return _found(self._result())

    def _result(self) -> Any:
        """The next answer, if it is no error."""
        result, status = self._received(), self._pq.ExecStatus
        if result.status not in (status.COMMAND_OK, status.TUPLES_OK):
            raise self._error(result)
        if self._next() is not None:
            raise self._lost("it answers twice")
        return result

    def _received(self) -> Any:
        result = self._next()
        if result is None:
            raise self._lost("it does not answer")
        return result

    def _next(self) -> Any:
        while self._libpq.is_busy():
            self._take_what_is_there()
        return self._libpq.get_result()

    def _take_what_is_there(self, *, writing: bool = False) -> None:
        _wait(self._libpq.socket, writing)
        self._libpq.consume_input()

    def _error(self, result: Any) -> Exception:
        """What the database says is wrong, as psycopg would raise it."""
        field = self._pq.DiagnosticField
        state, said = result.error_field(field.SQLSTATE), result.error_field(field.MESSAGE_PRIMARY)
        if state is None:  # the connection's own
            return self._lost((result.error_message or b"it is lost").decode("utf-8", "replace"))
        try:
            kind = self._errors.lookup(state.decode())
        except KeyError:
            kind = self._lost
        return kind((said or b"").decode("utf-8", "replace"))


if hasattr(select, "poll"):

    def _wait(socket: int, writing: bool) -> None:
        """Wait until something is there to be read, or can be written; other threads run meanwhile."""
        poll = select.poll()
        poll.register(socket, select.POLLIN | select.POLLOUT if writing else select.POLLIN)
        poll.poll()

else:  # pragma: no cover - Windows

    def _wait(socket: int, writing: bool) -> None:
        """Wait until something is there to be read, or can be written; other threads run meanwhile."""
        select.select([socket], [socket] if writing else [], [])


def _numbered(statement: str) -> str:
    """A statement with its parameters as PostgreSQL writes them."""
    first, *others = statement.split("?")
    return first + "".join([f"${number}{other}" for number, other in zip(count(1), others, strict=False)])


def _found(result: Any) -> Found:
    """The rows of an answer, and how many it found or changed."""
    rows, fields = result.ntuples, range(result.nfields)
    loads: list[Callable[[bytes], Any]] = [
        int if result.ftype(field) in _INTEGERS else bytes.decode for field in fields
    ]
    get = result.get_value
    found = [
        tuple([None if (v := get(row, field)) is None else loads[field](v) for field in fields])
        for row in range(rows)
    ]
    return found, rows if loads else result.command_tuples or 0
