"""Who is here: which process, for what a fork copied is not its to use; and each thread only once."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from fpinq.model.errors import LedgerError

_forks = 0


class Alone:
    """No other thread is in a step meanwhile, and this one is in it only once.

    A finalizer or a signal's handler may run anywhere: what it did in the
    middle of a step, the step would then undo, its charge included.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._stepping = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """No other thread is in here. What a step left that was cut short anywhere is forgotten."""
        outermost = not self._lock._is_owned()  # type: ignore[attr-defined]
        with self._lock:
            if outermost:
                self._stepping = False
            yield

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """One step; LedgerError in the middle of another of the same thread."""
        with self.held():
            if self._stepping:
                raise LedgerError("asked in the middle of a step, as by a finalizer: nothing was charged")
            try:
                self._stepping = True
                yield
            finally:
                self._stepping = False


def this_process() -> tuple[int, int]:
    """Its number, and how often it and those it comes from were forked.

    The number alone does not tell: once a process has ended, a later fork of its
    own may have the same.
    """
    return os.getpid(), _forks


def _forked() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # pragma: no branch - elsewhere nothing forks
    os.register_at_fork(after_in_child=_forked)
