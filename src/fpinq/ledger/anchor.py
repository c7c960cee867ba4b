"""Anchors: the head of a ledger, kept elsewhere, so that an older copy put back is noticed.

An anchor holds a *mark*, one line: the ledger's id, and the number and hash of an
entry that was on disk.

    3f9c… 41 8be2…

A ledger must hold the entry of its mark. It moves the mark forward after every
durable commit, before anybody is told of it. So the mark may be behind the
ledger, after a crash; a ledger that is behind its mark is an older copy.

A file is one kind of anchor, a command another: the command is given a mark on
its standard input, or nothing; it prints the mark that it held until then, or
nothing; and it keeps, durably, whichever of the two has the greater number.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from fpinq.ledger.entries import hash_of
from fpinq.ledger.errors import LedgerRolledBack
from fpinq.ledger.store import Pages
from fpinq.model.errors import LedgerError, ProgramError

# How long a command may take.
COMMAND_SECONDS = 60

_MARK = re.compile(r"([0-9a-f]{32}) ([0-9]{1,18}) ([0-9a-f]{64})\s*", re.ASCII)


class Mark(NamedTuple):
    """An entry of a ledger."""

    ledger: str
    seq: int
    hash: str

    @property
    def line(self) -> str:
        """The mark, as an anchor holds it."""
        return f"{self.ledger} {self.seq} {self.hash}\n"


class Anchor(Protocol):
    """A place that holds a mark. Any number of processes may use it."""

    @property
    def place(self) -> str:
        """Where it is, for people."""

    def hold(self, mark: Mark | None) -> Mark | None:
        """What was held until now. A mark with a greater number takes its place, durably."""


class AnchorFile:
    """A mark in a file, replaced whole, by one process at a time."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.place = os.path.realpath(path)

    def hold(self, mark: Mark | None) -> Mark | None:
        """What was held until now; a later mark of the same ledger takes its place."""
        try:
            if mark is None:
                return self._read()
            with _alone_with(f"{self.place}.lock"):
                held = self._read()
                if held is None or (held.ledger == mark.ledger and held.seq < mark.seq):
                    self._write(mark)
                return held
        except OSError as error:
            raise LedgerError(
                f"the anchor {self.place} cannot be written or read ({error.strerror}): nothing was answered"
            ) from None

    def _read(self) -> Mark | None:
        try:
            with open(self.place, "rb") as file:
                return _parsed(file.read(1000), self.place)
        except FileNotFoundError:
            return None

    def _write(self, mark: Mark) -> None:
        new = f"{self.place}.new"
        with open(new, "w", encoding="ascii") as file:
            file.write(mark.line)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.place)
        _sync(os.path.dirname(self.place))


class AnchorCommand:
    """A mark that a command keeps: on another machine, in a log, in a safe."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self.place = " ".join(self._command)

    def hold(self, mark: Mark | None) -> Mark | None:
        """What the command prints."""
        import subprocess  # slow to import, and seldom needed

        try:
            ran = subprocess.run(
                self._command,
                input=b"" if mark is None else mark.line.encode(),
                capture_output=True,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _failed(self.place, str(error)) from None
        if ran.returncode:
            raise _failed(self.place, f"exit code {ran.returncode}")
        return _parsed(ran.stdout, self.place) if ran.stdout.strip() else None


def anchor_of(given: object) -> Anchor:
    """The anchor that a path or a command is."""
    if isinstance(given, str | os.PathLike) and os.fspath(given):
        return AnchorFile(given)
    if isinstance(given, list | tuple) and given and all(isinstance(word, str) for word in given):
        return AnchorCommand(given)
    raise ProgramError(
        "anchor is a path on another disk or machine, such as '/elsewhere/people.anchor', "
        "or a command as a list of words"
    )


def check_held(pages: Pages, ledger: str, mark: Mark, place: str) -> None:
    """LedgerRolledBack unless a ledger holds the entry of a mark."""
    if mark.ledger != ledger:
        raise LedgerRolledBack(
            mark.seq, f"{place} is the anchor of ledger {mark.ledger}, and this is {ledger}"
        )
    stored, last = pages.line(mark.seq), pages.head()
    if stored is None:
        raise LedgerRolledBack(mark.seq, f"the anchor {place} knows it, but the ledger ends at {last.seq}")
    if stored.hash != mark.hash or hash_of(stored.text) != mark.hash:
        raise LedgerRolledBack(mark.seq, f"the anchor {place} knows another entry of this number")


def lost(mark: Mark, place: str) -> LedgerRolledBack:
    """The error for a ledger of which only the anchor is left."""
    return LedgerRolledBack(mark.seq, f"the anchor {place} knows it, but there is no ledger")


@contextmanager
def _alone_with(lock: str) -> Iterator[None]:
    """No other process is here meanwhile; a file open for writing is locked on NFS too, a folder is not."""
    import fcntl  # not on Windows, where anchors are commands

    opened = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _sync(folder: str) -> None:
    """Make a replaced name durable."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _parsed(text: bytes, place: str) -> Mark | None:
    found = _MARK.fullmatch(text.decode("ascii", "replace"))
    if found is None:
        raise LedgerError(
            f"the anchor {place} does not hold a ledger's id, a number and a hash: "
            "restore it, or take it away to begin a new one"
        )
    return Mark(found[1], int(found[2]), found[3])


def _failed(place: str, why: str) -> LedgerError:
    return LedgerError(f"the anchor's command failed ({place}: {why}): nothing was answered")
