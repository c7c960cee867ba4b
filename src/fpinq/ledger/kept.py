"""The sessions that are kept ready. Others are replayed from their entries when they act again."""

from collections import OrderedDict

from fpinq.model.sessions import Session

MAX_SESSIONS = 10_000
# A table variable costs about a kilobyte.
MAX_TABLES = 1_000_000


class Kept:
    """Sessions by name; those that acted last, as many as there is room for."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._tables = 0

    def __contains__(self, name: object) -> bool:
        return name in self._sessions

    def get(self, name: str) -> Session | None:
        """A session that is ready."""
        found = self._sessions.get(name)
        if found is not None:
            self._sessions.move_to_end(name)
        return found

    def keep(self, name: str, session: Session) -> None:
        """A session as it is now."""
        self.forget(name)
        self._sessions[name] = session
        self._tables += _tables_of(session)
        while len(self._sessions) > MAX_SESSIONS or (self._tables > MAX_TABLES and len(self._sessions) > 1):
            self.forget(next(iter(self._sessions)))

    def forget(self, name: str) -> None:
        """No longer ready."""
        gone = self._sessions.pop(name, None)
        if gone is not None:
            self._tables -= _tables_of(gone)

    def clear(self) -> None:
        """None is ready."""
        self._sessions.clear()
        self._tables = 0


def _tables_of(session: Session) -> int:
    return len(session.configuration.environment)
