"""Who is here: which process, for what a fork copied is not its to use; and each thread only once."""

import os
from contextlib import AbstractContextManager
from threading import RLock

from fpinq.model.errors import LedgerError

_forks = 0

IN_THE_MIDDLE = "asked in the middle of a step, as by a finalizer: nothing was charged"


class Alone:
    """No other thread is in a step meanwhile, and this one is in it only once.

    A finalizer or a signal's handler may run anywhere: what it did in the
    middle of a step, the step would then undo, its charge included. Who is in a step
    is who has the lock, so one that is cut short anywhere leaves nothing behind.
    """

    def __init__(self) -> None:
        self._lock = RLock()

    @property
    def is_here(self) -> bool:
        """Whether this thread is the one."""
        here: bool = self._lock._is_owned()  # type: ignore[attr-defined]
        return here

    def held(self) -> AbstractContextManager[object]:
        """No other thread is in here."""
        return self._lock

    def stepping(self) -> AbstractContextManager[object]:
        """The same, of one step; LedgerError in the middle of another of the same thread."""
        if self.is_here:
            raise LedgerError(IN_THE_MIDDLE)
        return self._lock


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
