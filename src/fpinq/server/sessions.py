"""Sessions: one client program each. Their names say whose they are, and nobody can make one up.

A name is a random number and its HMAC with the analyst's name under the
server's key, so any server process can tell, without asking anybody, that a
session was opened by this analyst. Somebody else's is refused like one that
never was.
"""

import hmac
import secrets
from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple

from fpinq.ledger.errors import OthersSession
from fpinq.model.actions import Action, Assign, Partition
from fpinq.model.environments import Names, TableVariable
from fpinq.runtime.refusals import TooLarge

_DIGITS = 32
# Sessions whose tables are counted.
_COUNTED = 10_000


class Sessions:
    """The names of sessions, under a key that the server processes share."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def open(self, analyst: str) -> str:
        """A new session's name."""
        return self.named(secrets.token_hex(_DIGITS // 2), analyst)

    def named(self, number: str, analyst: str) -> str:
        """The name of a session of a number; only its first digits count."""
        return number[:_DIGITS] + self._seal(number[:_DIGITS], analyst)

    def check(self, session: str, analyst: str) -> None:
        """OthersSession unless the analyst opened it."""
        sealed = self._seal(session[:_DIGITS], analyst)
        if not hmac.compare_digest(session[_DIGITS:].encode(errors="replace"), sealed.encode()):
            raise OthersSession(session[: 2 * _DIGITS])

    def _seal(self, number: str, analyst: str) -> str:
        signed = f"{number}/{analyst}".encode(errors="replace")
        return hmac.digest(self._key, signed, "sha256").hex()[:_DIGITS]


# The tables that a session would hold with these bound, according to the ledger.
TablesWith = Callable[[str, Sequence[TableVariable], str], int]


class Held(NamedTuple):
    """About how many tables a session holds, and how many were bound since that was looked up."""

    tables: int
    since: int


class Room:
    """How many tables a session may hold, in all server processes together.

    How many it does is looked up in the ledger when the session is not known
    here, when it may be too many, and after every hundredth part of the limit:
    what other processes bind in between is not seen here.
    """

    def __init__(self, most: int, tables_with: TablesWith) -> None:
        self._most = most
        self._tables_with = tables_with
        self._held: dict[str, Held] = {}
        self._lock = Lock()

    def check(self, session: str, action: Action, analyst: str) -> None:
        """TooLarge if an action would bind one table too many."""
        match action:
            case Assign(target=target):
                targets: Names = (target,)
            case Partition(targets=targets):
                pass
            case _:
                return
        held = self._add(session, len(targets))
        if held is None or held.tables > self._most or held.since > self._most // 100:
            # Not under the lock: a session may have to be replayed from its entries.
            held = Held(self._tables_with(session, targets, analyst), 0)
            self._keep(session, Held(min(held.tables, self._most), 0))
        if held.tables > self._most:
            raise TooLarge(f"a session holds at most {self._most} tables: use their names again")

    def _add(self, session: str, more: int) -> Held | None:
        with self._lock:
            known = self._held.pop(session, None)
            if known is not None:
                known = self._held[session] = Held(known.tables + more, known.since + more)
            return known

    def _keep(self, session: str, held: Held) -> None:
        with self._lock:
            self._held.pop(session, None)
            self._held[session] = held
            if len(self._held) > _COUNTED:
                self._held.pop(next(iter(self._held)))
