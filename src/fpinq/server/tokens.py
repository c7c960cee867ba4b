"""Bearer tokens: who may ask, audit or own. Shown once, kept as a hash, good until they end.

A token is `fpq_<id>_<secret>`: the id finds the row, the secret is 256 random
bits whose SHA-256 the row holds. A guess cannot be recognised as nearly right:
hashes are compared in constant time, and every refusal is the same.

The clock is read to expire a token, never for a decision about privacy: set
back, it lets a stranger in no further than the budget.
"""

import hmac
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import local

from fpinq.model.errors import ProgramError
from fpinq.runtime.refusals import NotAuthenticated

ROLES = ("owner", "analyst", "auditor")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, key BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ledgers (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'analyst', 'auditor')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Bearer:
    """Whom a token stands for."""

    name: str
    role: str
    expires_at: int | None = None
    token: str = ""


@dataclass(frozen=True)
class TokenFacts:
    """What is known of a token; the secret is not."""

    id: str
    name: str
    role: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None


class Tokens:
    """The tokens in a file. Commands and servers may use the same file at the same time."""

    def __init__(self, path: str | Path, clock: Callable[[], float] = time.time) -> None:
        self._path = str(path)
        self._clock = clock
        self._local = local()
        keep_private(self._path, "the tokens")
        try:
            self._connection().executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise ProgramError(f"the tokens cannot be kept at {self._path!r}: {error}") from None

    def create(self, name: str, role: str, seconds: int | None = None) -> str:
        """A new token for a person: the only time it is shown."""
        if role not in ROLES:
            raise ProgramError(f"a role is one of {', '.join(ROLES)}")
        if not name or len(name) > 100 or not name.isprintable():
            raise ProgramError("a token needs the name of whom it is for, of at most 100 characters")
        if seconds is not None and seconds <= 0:
            raise ProgramError("a token lasts a positive time")
        identity, secret = secrets.token_hex(6), secrets.token_hex(32)
        now = int(self._clock())
        expires = None if seconds is None else now + seconds
        with self._connection() as connection:
            connection.execute(
                "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, NULL)",
                (identity, _hash(secret), name, role, now, expires),
            )
        return f"fpq_{identity}_{secret}"

    def revoke(self, whose: str) -> int:
        """End a token, by its id, or all of a person, at once, in every server on this file; how many."""
        with self._connection() as connection:
            for column in ("id", "name"):
                changed = connection.execute(
                    f"UPDATE tokens SET revoked_at = coalesce(revoked_at, ?) WHERE {column} = ?",
                    (int(self._clock()), whose),
                )
                if changed.rowcount:
                    return changed.rowcount
        raise ProgramError(f"no token has the id {whose!r}, and nobody that name: see fpinq token list")

    def rotate(self, whose: str, seconds: int | None = None) -> str:
        """A new token for a person, in their role; all that they had end at once."""
        held = [token for token in self.listed() if token.name == whose]
        if not held:
            raise ProgramError(f"nobody of the name {whose!r} has a token: see fpinq token list")
        good = {token.role for token in held if self._is_good(token.expires_at, token.revoked_at)}
        roles = good or {token.role for token in held if token.created_at == held[-1].created_at}
        if len(roles) > 1:
            listed = " and ".join(sorted(roles))
            raise ProgramError(f"{whose!r} has tokens as {listed}: revoke those that are to end by their ids")
        self.revoke(whose)
        return self.create(whose, roles.pop(), seconds)

    def listed(self) -> list[TokenFacts]:
        """All tokens, oldest first."""
        rows = self._connection().execute(
            "SELECT id, name, role, created_at, expires_at, revoked_at FROM tokens ORDER BY created_at, id"
        )
        return [TokenFacts(*row) for row in rows]

    def bearer(self, header: str | None) -> Bearer:
        """Whom an Authorization header stands for; NotAuthenticated, always in the same words."""
        kind, _, token = (header or "").partition(" ")
        tag, _, rest = token.strip().partition("_")
        identity, _, secret = rest.partition("_")
        row = None
        if kind.lower() == "bearer" and tag == "fpq" and len(secret) == 64 and identity.isascii():
            row = (
                self._connection()
                .execute(
                    "SELECT hash, name, role, expires_at, revoked_at FROM tokens WHERE id = ?", (identity,)
                )
                .fetchone()
            )
        stored = row[0] if row is not None else bytes(32)
        matches = hmac.compare_digest(stored, _hash(secret))
        if row is None or not matches or not self._is_good(row[3], row[4]):
            raise NotAuthenticated(_REFUSAL)
        return Bearer(row[1], row[2], row[3], identity)

    def check(self, bearer: Bearer) -> None:
        """NotAuthenticated if a bearer's token has ended meanwhile: while the body arrived, say."""
        row = (
            self._connection()
            .execute("SELECT expires_at, revoked_at FROM tokens WHERE id = ?", (bearer.token,))
            .fetchone()
        )
        if row is None or not self._is_good(*row):
            raise NotAuthenticated(_REFUSAL)

    def _is_good(self, expires_at: int | None, revoked_at: int | None) -> bool:
        return revoked_at is None and (expires_at is None or expires_at > self._clock())

    def key(self, name: str) -> bytes:
        """A secret key of the servers on this file, made when first asked for."""
        connection = self._connection()
        connection.execute("INSERT OR IGNORE INTO keys VALUES (?, ?)", (name, secrets.token_bytes(32)))
        found: bytes = connection.execute("SELECT key FROM keys WHERE name = ?", (name,)).fetchone()[0]
        return found

    def ledgers(self) -> set[str]:
        """The ledgers that were served with these tokens."""
        return {found for (found,) in self._connection().execute("SELECT id FROM ledgers")}

    def serve(self, ledger: str) -> None:
        """Remember a ledger that is served with these tokens."""
        self._connection().execute("INSERT OR IGNORE INTO ledgers VALUES (?)", (ledger,))

    def _connection(self) -> sqlite3.Connection:
        found = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = sqlite3.connect(self._path, timeout=10, isolation_level=None)
            found.execute("PRAGMA journal_mode = WAL")
        return found


def keep_private(path: str, what: str) -> None:
    """Make the file, if there is none, for its owner only. SQLite gives its -wal and -shm the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        for beside in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                if os.stat(path + beside).st_mode & 0o077:
                    os.chmod(path + beside, 0o600)
    except OSError as error:
        raise ProgramError(f"{what} cannot be kept at {path!r}: {error.strerror}") from None


_REFUSAL = "a valid token is needed: ask the data's owner for one (fpinq token create)"


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
