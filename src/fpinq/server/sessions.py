"""Sessions: one client program each. Their names say whose they are, and nobody can make one up.

A name is a random number and its HMAC with the analyst's name under the
server's key, so any server process can tell, without asking anybody, that a
session was opened by this analyst. Somebody else's is refused like one that
never was.
"""

import hmac
import secrets
from collections.abc import Callable, Collection
from hashlib import sha256
from threading import Lock

from fpinq.ledger.errors import OthersSession
from fpinq.model.actions import Action, Assign, Partition, TableVariable
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
        number = secrets.token_hex(_DIGITS // 2)
        return number + self._seal(number, analyst)

    def check(self, session: str, analyst: str) -> None:
        """OthersSession unless the analyst opened it."""
        sealed = self._seal(session[:_DIGITS], analyst)
        if not hmac.compare_digest(session[_DIGITS:].encode(errors="replace"), sealed.encode()):
            raise OthersSession(session[: 2 * _DIGITS])

    def _seal(self, number: str, analyst: str) -> str:
        signed = f"{number}/{analyst}".encode(errors="replace")
        return hmac.new(self._key, signed, sha256).hexdigest()[:_DIGITS]


class Room:
    """How many tables a session may hold. How many it does is looked up only when it may be too many."""

    def __init__(self, most: int, tables_of: Callable[[str, str], Collection[TableVariable]]) -> None:
        self._most = most
        self._tables_of = tables_of
        self._bound: dict[str, int] = {}  # a session ↦ at least as many as it holds, as far as we know
        self._lock = Lock()

    def check(self, session: str, action: Action, analyst: str) -> None:
        """TooLarge if an action would bind one table too many."""
        match action:
            case Assign(target=target):
                targets: tuple[TableVariable, ...] = (target,)
            case Partition(targets=targets):
                pass
            case _:
                return
        with self._lock:
            bound = self._bound.pop(session, 0) + len(targets)
            if bound > self._most:
                held = self._tables_of(session, analyst)
                bound = len(held) + sum(target not in held for target in targets)
            self._bound[session] = min(bound, self._most)
            if len(self._bound) > _COUNTED:
                self._bound.pop(next(iter(self._bound)))
        if bound > self._most:
            raise TooLarge(f"a session holds at most {self._most} tables: use their names again")
