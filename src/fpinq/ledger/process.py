"""Which process this is: what a fork copied is not its to use."""

import os

_forks = 0


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
