"""Temporary folders: each is a process's, and what killed processes left is removed when the next one starts.

A folder holds a file that its process has locked. The system lets go of the lock when the process
ends, however that comes about, so a folder whose lock can be had is nobody's any more. Removed is only what
is a folder, ours, closed to everybody else, and has such a file: no link is ever followed.
"""

import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Not that of earlier versions, whose folders have no lock: nobody can tell whether they are abandoned.
PREFIX = "fpinq_"
LOCK = ".fpinq-lock"

_cleaning = threading.Lock()
_cleaned: set[str] = set()


class Folder:
    """A temporary folder of this process: the processes that it forks leave it there."""

    def __init__(self, kind: str = "") -> None:
        clean()
        self.path, self._lock = _locked(PREFIX + kind)
        self._process = os.getpid()

    def remove(self) -> None:
        """The folder and all that is in it, if it is this process's and still there."""
        if self._lock is not None and self._process == os.getpid():
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = None


def _locked(prefix: str) -> tuple[str, int | None]:
    """A new folder and its lock. Whoever cleans up may come between the two: then it is another folder."""
    while True:
        path = os.path.realpath(tempfile.mkdtemp(prefix=prefix))
        lock = os.open(os.path.join(path, LOCK), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        if _is_had(lock) and os.fstat(lock).st_nlink:
            return path, lock
        os.close(lock)


def clean() -> None:
    """Remove what processes that ended left in the folder for temporary files, once in a process."""
    place = tempfile.gettempdir()
    with _cleaning:
        if place in _cleaned or sys.platform == "win32":
            return
        _cleaned.add(place)
    with suppress(OSError), os.scandir(place) as found:
        for name in [entry.name for entry in found if entry.name.startswith(PREFIX)]:
            with suppress(OSError), _abandoned(os.path.join(place, name)) as is_abandoned:
                if is_abandoned:
                    shutil.rmtree(os.path.join(place, name), ignore_errors=True)


@contextmanager
def _abandoned(path: str) -> Iterator[bool]:
    """Whether a folder is one of ours that no process has. Nobody takes it meanwhile."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            yield False
            return
        lock = os.open(LOCK, os.O_RDWR | os.O_NOFOLLOW, dir_fd=folder)
        try:
            yield _is_had(lock)
        finally:
            os.close(lock)
    finally:
        os.close(folder)


if sys.platform == "win32":

    def _is_had(lock: int) -> bool:
        """Nothing is locked there, and so nothing is cleaned up."""
        return True

else:

    def _is_had(lock: int) -> bool:
        """Whether the lock was free; from now on it is not, until it is closed everywhere."""
        import fcntl

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
