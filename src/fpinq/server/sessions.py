"""Sessions: one client program each. Their names say whose they are, and nobody can make one up.

A name is a random number and its HMAC with the analyst's name under the
server's key, so any server process can tell, without asking anybody, that a
session was opened by this analyst. Somebody else's is refused like one that
never was.
"""

import hmac
import secrets
from hashlib import sha256

from fpinq.ledger.errors import OthersSession

_DIGITS = 32


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
        if not hmac.compare_digest(session[_DIGITS:].encode(), sealed.encode()):
            raise OthersSession(session[: 2 * _DIGITS])

    def _seal(self, number: str, analyst: str) -> str:
        signed = f"{number}/{analyst}".encode(errors="replace")
        return hmac.new(self._key, signed, sha256).hexdigest()[:_DIGITS]
