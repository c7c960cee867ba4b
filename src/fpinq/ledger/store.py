"""What the ledger asks of a database, and the few statements it makes.

A *store* gives transactions; SQLite and PostgreSQL are two. Everything else is
here, in SQL that both understand.

    entries    the chain; nothing is ever changed or deleted
    head       one row: the last entry. Whoever has locked it is the only writer
    accounts   what is spent of each budget, in units; CHECK (spent <= total)
    secret     one row: the key that seals what entries say about the data

A charge is one conditional update: it finds the row only if what was spent is
what the kernel's step saw, and what it will be is within the total.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from fpinq.ledger.entries import NOTHING, OWNER, START, Head, Line
from fpinq.ledger.errors import LedgerCorrupt
from fpinq.model.sessions import Account, Amounts

# How many digits a number of units has: one length, so that compared as text it is compared as a number,
# in every database, without a limit of 64 bits.
WIDTH = 56

# {integer} is the type of a number that may pass 2³¹, {text} of a text that compares byte by byte.
ENTRIES = (
    """CREATE TABLE entries (
        seq {integer} PRIMARY KEY, hash {text} NOT NULL, text {text} NOT NULL,
        session {text}, request {text}, answers {integer} UNIQUE,
        UNIQUE (session, request))""",
    "CREATE INDEX entries_of_session ON entries (session, seq)",
)
# The first ledgers had none.
SECRET = """CREATE TABLE IF NOT EXISTS secret (
        only_row {integer} PRIMARY KEY CHECK (only_row = 1), key {text} NOT NULL)"""
SCHEMA = (
    *ENTRIES,
    """CREATE TABLE head (
        only_row {integer} PRIMARY KEY CHECK (only_row = 1), seq {integer} NOT NULL, hash {text} NOT NULL)""",
    f"""CREATE TABLE accounts (
        root {{text}} NOT NULL, analyst {{text}} NOT NULL, total {{text}} NOT NULL, spent {{text}} NOT NULL,
        PRIMARY KEY (root, analyst),
        CHECK (spent <= total AND length(spent) = {WIDTH} AND length(total) = {WIDTH}))""",
    f"INSERT INTO head VALUES (1, -1, '{NOTHING}')",
    SECRET,
)

# How many entries are read at a time; and a number that no entry passes.
PAGE = 10_000
MAX_SEQ = 2**63 - 1

_KEY = re.compile("[0-9a-f]{64}")
_LINE = "seq, hash, text, session, request, answers"


class Statements(Protocol):
    """A transaction, as a database gives it."""

    def rows(self, statement: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        """What a SELECT finds."""

    def run(self, statement: str, *parameters: Any) -> int:
        """How many rows a statement changed."""


class Store(Protocol):
    """A database that holds one ledger. Errors of the database are LedgerErrors."""

    @property
    def address(self) -> str:
        """Where another process opens it."""

    def writing(self, *, durable: bool) -> AbstractContextManager[Statements]:
        """A transaction of the one writer: commits at the end, rolls back if an error is raised.

        A durable one is on disk when it ends, with everything before it. One
        that is not survives the process, but perhaps not a loss of power.
        """

    def reading(self) -> AbstractContextManager[Statements]:
        """A transaction that sees one state of the database and changes nothing."""

    def set_aside(self, statements: Statements, number: int) -> None:
        """Keep the entries as those of an older format; an empty table takes their place.

        Within a transaction of the writer.
        """

    def close(self) -> None:
        """Give the database back."""


class Pages:
    """The ledger's own statements, in a transaction."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    # ── reading ──────────────────────────────────────────────────────────────────────

    def head(self) -> Head:
        """The last entry."""
        found = self._sql.rows("SELECT seq, hash FROM head")
        if len(found) != 1:
            raise LedgerCorrupt(0, "there is no head")
        return Head(*found[0])

    def is_blank(self) -> bool:
        """Whether nothing was ever written; LedgerCorrupt if only the head says so."""
        if self.head() != START:
            return False
        for table in ("entries", "accounts", "secret"):
            if self._sql.rows(f"SELECT 1 FROM {table} LIMIT 1"):
                raise LedgerCorrupt(0, "the head does not know of it, nor of what comes after")
        return True

    def line(self, seq: int) -> Line | None:
        """One entry."""
        found = self._sql.rows(f"SELECT {_LINE} FROM entries WHERE seq = ?", seq)
        return Line(*found[0]) if found else None

    def last(self) -> int:
        """The number of the last entry that there is, whatever the head says."""
        found = self._sql.rows("SELECT max(seq) FROM entries")[0][0]
        return START.seq if found is None else int(found)

    def after(self, seq: int, until: int = MAX_SEQ) -> Iterator[Line]:
        """The entries after one, oldest first, until another."""
        return self._paged("entries", seq, until)

    def of_format(self, number: int) -> Iterator[Line]:
        """The entries of an older format that were set aside, oldest first."""
        return self._paged(set_aside(number), START.seq, MAX_SEQ)

    def _paged(self, table: str, seq: int, until: int) -> Iterator[Line]:
        while page := self._sql.rows(
            f"SELECT {_LINE} FROM {table} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT {PAGE}", seq, until
        ):
            yield from map(Line._make, page)
            if len(page) < PAGE:
                return
            seq = page[-1][0]

    def of_session(self, session: str, before: int) -> Iterator[Line]:
        """A session's own entries before one, oldest first."""
        rows = self._sql.rows(
            f"SELECT {_LINE} FROM entries WHERE session = ? AND seq < ? ORDER BY seq", session, before
        )
        return (Line(*row) for row in rows)

    def of_owner(self) -> Iterator[Line]:
        """The entries that are no program's: roots, freezes and the first."""
        rows = self._sql.rows(f"SELECT {_LINE} FROM entries WHERE session = ? ORDER BY seq", OWNER)
        return (Line(*row) for row in rows)

    def request(self, session: str, request: str) -> Line | None:
        """The entry of a request."""
        found = self._sql.rows(
            f"SELECT {_LINE} FROM entries WHERE session = ? AND request = ?", session, request
        )
        return Line(*found[0]) if found else None

    def answer_to(self, seq: int) -> Line | None:
        """The recorded answer to the query in an entry."""
        found = self._sql.rows(f"SELECT {_LINE} FROM entries WHERE answers = ?", seq)
        return Line(*found[0]) if found else None

    def accounts(self) -> dict[Account, Amounts]:
        """(root, analyst) ↦ what is spent and the total, in units; the root's own under ""."""
        rows = self._sql.rows("SELECT root, analyst, spent, total FROM accounts")
        try:
            return {(root, analyst): (int(spent), int(total)) for root, analyst, spent, total in rows}
        except ValueError:
            raise LedgerCorrupt(self.head().seq, "an account beside it is no number") from None

    def secret(self) -> bytes:
        """The key that seals contents."""
        found = self._sql.rows("SELECT key FROM secret")
        if len(found) != 1 or not _KEY.fullmatch(str(found[0][0])):
            raise LedgerCorrupt(0, "its secret is not there")
        return bytes.fromhex(found[0][0])

    def has_secret(self) -> bool:
        """Whether there is a key."""
        return bool(self._sql.rows("SELECT 1 FROM secret"))

    # ── writing ──────────────────────────────────────────────────────────────────────

    def keep_secret(self, key: bytes) -> None:
        """The key, once."""
        self._sql.run("INSERT INTO secret VALUES (1, ?)", key.hex())

    def append(self, line: Line, head: Head) -> None:
        """Write the entry after head."""
        self._sql.run(
            f"INSERT INTO entries ({_LINE}) VALUES (?, ?, ?, ?, ?, ?)",
            line.seq, line.hash, line.text, line.session, line.request, line.answers,
        )  # fmt: skip
        moved = self._sql.run(
            "UPDATE head SET seq = ?, hash = ? WHERE seq = ? AND hash = ?",
            line.seq, line.hash, head.seq, head.hash,
        )  # fmt: skip
        if moved != 1:
            raise LedgerCorrupt(line.seq, "another writer was here: the head is not locked")

    def begin_again(self) -> None:
        """The next entry is the first."""
        self._sql.run("UPDATE head SET seq = ?, hash = ?", *START)

    def open_account(self, root: str, analyst: str, total: int) -> None:
        """A total of which nothing is spent."""
        self._sql.run(
            "INSERT INTO accounts (root, analyst, total, spent) VALUES (?, ?, ?, ?)",
            root, analyst, units_text(total), units_text(0),
        )  # fmt: skip

    def charge(self, root: str, analyst: str, before: int, after: int) -> None:
        """Spend: only from what the step saw, and only within the total."""
        charged = self._sql.run(
            "UPDATE accounts SET spent = ? WHERE root = ? AND analyst = ? AND spent = ? AND ? <= total",
            units_text(after), root, analyst, units_text(before), units_text(after),
        )  # fmt: skip
        if charged != 1:
            raise LedgerCorrupt(0, f"the account of {root!r} is not what the entries say")


def units_text(number: int) -> str:
    """A number of units as the database holds it."""
    return str(number).rjust(WIDTH, "0")


def set_aside(number: int) -> str:
    """The table of entries of an older format."""
    return f"entries_of_format_{number}"
