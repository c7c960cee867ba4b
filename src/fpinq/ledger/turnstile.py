"""A turnstile: processes that want the same database write in turns.

SQLite lets whoever asks at the right moment write, and whoever waits asks ever
more rarely: of two busy processes one may wait for a second. So a writer goes
through two gates. The first lets in one at a time, who stays in it until the
second is free, which is that of the one who writes. So whoever has just written
comes after the one who waits at the second gate.

    wait ──▸ next ──▸ turn ──▸ write

This is for fairness only: what keeps writers apart is the database's own lock,
and where there are no such gates, or one of them is stuck, that has to do.
"""

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

# How often somebody who waits looks, and for how long.
LOOK_SECONDS = 0.0003
PATIENCE_SECONDS = 5.0


class Turnstile:
    """The gates are files beside the database. Used by one thread at a time."""

    def __init__(self, path: str | None) -> None:
        self._gates = None if path is None else _gates(path)

    @property
    def is_there(self) -> bool:
        """Whether there are gates."""
        return self._gates is not None

    def turn(self) -> AbstractContextManager[None]:
        """The turn of this process."""
        return nullcontext() if self._gates is None else _turn(*self._gates)

    def close(self) -> None:
        """Give the gates back; the files stay, for others may have them open."""
        for gate in self._gates or ():
            os.close(gate)
        self._gates = None


@contextmanager
def _turn(following: int, writing: int) -> Iterator[None]:
    try:
        _enter(following)
        _enter(writing)
        _leave(following)
        yield
    finally:
        _leave(following)
        _leave(writing)


def _gates(path: str) -> tuple[int, int] | None:
    """The two gates; None where there can be none: then whoever comes first is first."""
    try:
        import fcntl  # noqa: F401  # not on Windows
    except ImportError:  # pragma: no cover
        return None
    opened: list[int] = []
    try:
        for name in ("next", "turn"):
            opened.append(os.open(f"{path}-{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        for gate in opened:
            os.close(gate)
        return None
    return opened[0], opened[1]


def _enter(gate: int) -> None:
    """Wait until nobody is in a gate, or for as long as it can be that nobody is stuck there."""
    import fcntl

    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        with suppress(OSError):
            fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(LOOK_SECONDS)


def _leave(gate: int) -> None:
    import fcntl

    with suppress(OSError):
        fcntl.flock(gate, fcntl.LOCK_UN)
