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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, Protocol

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

# How many entries are read at a time, each as long as a request may be; and a number that no entry passes.
PAGE = 100
MAX_SEQ = 2**63 - 1

_KEY = re.compile("[0-9a-f]{64}")
_LINE = "seq, hash, text, session, request, answers"
HEAD = "SELECT seq, hash FROM head"
_HEAD_LINE = "SELECT seq, hash, NULL, NULL, NULL, NULL FROM head"
_REQUEST = f"SELECT {_LINE} FROM entries WHERE session = ? AND request = ?"
_ANSWERS = f"SELECT {_LINE} FROM entries WHERE answers = ?"


# A statement and its parameters; and what came of one: the rows that it found, or how many it changed.
Statement = tuple[Any, ...]
Found = tuple[Sequence[tuple[Any, ...]], int]


class Sought(NamedTuple):
    """An entry to look for: that of a request, or the answer to an entry."""

    session: str | None = None
    request: str | None = None
    answers: int | None = None


class Charge(NamedTuple):
    """What is spent of an account, in units: before (None if it is to be opened), and after."""

    before: int | None
    after: int
    total: int


class Statements(Protocol):
    """A transaction, as a database gives it."""

    def rows(self, statement: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        """What a SELECT finds."""

    def run(self, statement: str, *parameters: Any) -> int:
        """How many rows a statement changed."""

    def each(self, statements: Sequence[Statement]) -> Sequence[Found]:
        """What comes of several statements, in order: one round trip, where the database is elsewhere."""


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

    def rows(self, statement: str) -> Sequence[tuple[Any, ...]]:
        """What a SELECT finds, in a transaction of its own."""

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
        return head_of(self._sql.rows(HEAD))

    def look_up(self, sought: Sequence[Sought]) -> tuple[Head, dict[Sought, Line]]:
        """The last entry, and those of the sought ones that are there: one statement for all of it."""
        rows = self._sql.rows(*_lookup(sought))
        if len(rows) == 1 and rows[0][2] is None:
            return Head(*rows[0][:2]), {}
        lines = [Line(*row) for row in rows if row[2] is not None]
        head = head_of([row[:2] for row in rows if row[2] is None])
        return head, {Sought(line.session, line.request, line.answers): line for line in lines}

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

    def of_session(self, session: str, after: int, before: int, at_most: int) -> list[Line]:
        """A session's own entries between two, oldest first; no more than that."""
        rows = self._sql.rows(
            f"SELECT {_LINE} FROM entries WHERE session = ? AND seq > ? AND seq < ? ORDER BY seq LIMIT ?",
            session, after, before, at_most,
        )  # fmt: skip
        return [Line(*row) for row in rows]

    def of_owner(self) -> Iterator[Line]:
        """The entries that are no program's: roots, freezes and the first."""
        rows = self._sql.rows(f"SELECT {_LINE} FROM entries WHERE session = ? ORDER BY seq", OWNER)
        return (Line(*row) for row in rows)

    def answer_to(self, seq: int) -> Line | None:
        """The recorded answer to the query in an entry."""
        found = self._sql.rows(_ANSWERS, seq)
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

    def write(self, lines: Sequence[Line], before: Head, charges: Mapping[Account, Charge]) -> None:
        """The entries after a head, and what they charge: only from what the steps saw, within the totals."""
        last, opening, charging = lines[-1], [], []
        for account, charge in charges.items():
            if charge.before is None:
                opening.append((_OPEN, *account, units_text(charge.total), units_text(0)))
            charging.append((_CHARGE, *_charged(account, charge)))
        moving = (_MOVE, last.seq, last.hash, *before)
        found = self._sql.each([_insert(lines), moving, *opening, *charging])
        if found[1][1] != 1:
            raise LedgerCorrupt(last.seq, "another writer was here: the head is not locked")
        for (root, _), (_, changed) in zip(charges, found[2 + len(opening) :], strict=True):
            if changed != 1:
                raise LedgerCorrupt(0, f"the account of {root!r} is not what the entries say")

    def begin_again(self) -> None:
        """The next entry is the first."""
        self._sql.run("UPDATE head SET seq = ?, hash = ?", *START)


_MOVE = "UPDATE head SET seq = ?, hash = ? WHERE seq = ? AND hash = ?"
_OPEN = "INSERT INTO accounts (root, analyst, total, spent) VALUES (?, ?, ?, ?)"
_CHARGE = "UPDATE accounts SET spent = ? WHERE root = ? AND analyst = ? AND spent = ? AND ? <= total"


def _charged(account: Account, charge: Charge) -> tuple[str, ...]:
    after = units_text(charge.after)
    return after, *account, units_text(charge.before or 0), after


def _lookup(sought: Sequence[Sought]) -> Statement:
    if len(sought) == 1:  # nobody else waits
        session, request, answers = sought[0]
        return (_ONE_REQUEST, session, request) if answers is None else (_ONE_ANSWER, answers)
    requests = _padded([(each.session, each.request) for each in sought if each.answers is None])
    answers_to = _padded([(each.answers,) for each in sought if each.answers is not None])
    return _lookup_text(len(requests), len(answers_to)), *chain(*requests, *answers_to)


@cache
def _lookup_text(requests: int, answers: int) -> str:
    return " UNION ALL ".join([_HEAD_LINE, *[_REQUEST] * requests, *[_ANSWERS] * answers])


_ONE_REQUEST, _ONE_ANSWER = _lookup_text(1, 0), _lookup_text(0, 1)


def _padded(given: list[Any]) -> list[Any]:
    """As many as a power of two, the first one again and again: so few different statements are prepared."""
    return [*given, *given[:1] * ((1 << (len(given) - 1).bit_length()) - len(given))] if given else []


def _insert(lines: Sequence[Line]) -> Statement:
    """One statement for several entries."""
    return (_INSERT_ONE, *lines[0]) if len(lines) == 1 else (_insert_text(len(lines)), *chain(*lines))


@cache
def _insert_text(lines: int) -> str:
    rows = ", ".join(["(?, ?, ?, ?, ?, ?)"] * lines)
    return f"INSERT INTO entries ({_LINE}) VALUES {rows}"


_INSERT_ONE = _insert_text(1)


def head_of(found: Sequence[tuple[Any, ...]]) -> Head:
    """The head, in the rows of its table."""
    if len(found) != 1:
        raise LedgerCorrupt(0, "there is no head")
    return Head(*found[0])


def units_text(number: int) -> str:
    """A number of units as the database holds it."""
    return str(number).rjust(WIDTH, "0")


def set_aside(number: int) -> str:
    """The table of entries of an older format."""
    return f"entries_of_format_{number}"
