"""What only the data's owner may read: an engine's own words may quote a row.

They go to the log `fpinq.owner`, which is silent until the owner says where it
goes: with FPINQ_OWNER_LOG=path, or by giving the logger of that name a handler
or a level. (A server's process is the owner's, and so is its logging.) An error
that leaves an engine is made anew: neither its message nor its context, its
traceback or the frames in that hold a word of the engine's.
"""

import logging
import os
import secrets
import sys
from collections.abc import Callable
from functools import wraps
from typing import IO, ParamSpec, TypeVar

from fpinq.model.errors import BadData, FpinqError, KernelViolation
from fpinq.model.visible import visible_lines

# Where the owner's log is kept, if the environment says so.
OWNER_LOG = "FPINQ_OWNER_LOG"

P = ParamSpec("P")
T = TypeVar("T")

_owner = logging.getLogger("fpinq.owner")


class Legible(logging.Formatter):
    """A record for a terminal, or for a file that is looked at in one: it may quote a row."""

    def format(self, record: logging.LogRecord) -> str:
        """The record, with what a terminal would obey written out."""
        return visible_lines(super().format(record))


def noted(error: BaseException) -> str:
    """Write an error to the owner's log; a short reference to it, which anybody may know."""
    reference = secrets.token_hex(4)
    _owner.error("engine failure %s: %s: %s", reference, type(error).__name__, error, exc_info=error)
    return reference


def note(words: str) -> None:
    """Tell the owner, and nobody else, something about the data."""
    _owner.error("%s", words)


def in_our_words(failure: Callable[[str], FpinqError]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function that fails in our own words: with an error of ours, or as failure(reference) says."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def speaking(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except FpinqError as ours:
                error: BaseException = ours
            except KernelViolation as ours:
                noted(ours)  # where it came from is in its traceback
                error = ours
            except Exception as theirs:
                error = failure(noted(theirs))
            except BaseException as interruption:  # Ctrl-C, say: what it interrupted may hold exact integers
                error = interruption
            # Not in an except block: the engine's error would be its context.
            try:
                raise made_anew(error) from None
            finally:
                del error  # its traceback holds this frame

        return speaking

    return decorate


def made_anew(error: BaseException) -> BaseException:
    """An error without what was being handled when it was raised, and without the frames."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def unreadable(reference: str) -> BadData:
    """An engine could not take the data."""
    if goes_somewhere():
        return BadData(f"the data cannot be read; the reason is in the owner's log under {reference}")
    return BadData(
        "the data cannot be read; the reason may quote it, so it goes to the owner's log only: "
        f"set {OWNER_LOG} to a file of yours, and try again"
    )


# ── where the log goes ───────────────────────────────────────────────────────────────


class OwnersFile(logging.FileHandler):
    """A file that nobody else may read, made when there is something to say."""

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace", delay=True)
        self.setFormatter(Legible("%(asctime)s %(levelname)s %(message)s"))

    def _open(self) -> IO[str]:  # type: ignore[override]
        def private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=private)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a file that cannot be opened is an error like one that cannot be written."""
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Logging's own way would print the record."""
        print(f"fpinq: the owner's log {self.baseFilename} cannot be written", file=sys.stderr)


def write_to(handler: logging.Handler) -> None:
    """Send the owner's log there, and to no handler of the program's."""
    if handler.formatter is None:
        handler.setFormatter(Legible())
    _owner.addHandler(handler)
    _owner.propagate = False


def this_process_is_the_owners() -> None:
    """Let the log go where the process's logging goes, unless it goes somewhere already."""
    if not goes_somewhere():
        _owner.setLevel(logging.ERROR)


def goes_somewhere() -> bool:
    """Whether the owner has said where the log goes."""
    handlers = [handler for handler in _owner.handlers if not isinstance(handler, logging.NullHandler)]
    return bool(handlers) or _owner.level != logging.NOTSET


# Without these, standard error would get it, which is logging's last resort, or a handler of the root's.
_owner.addHandler(logging.NullHandler())
_owner.addFilter(lambda record: goes_somewhere())
if os.environ.get(OWNER_LOG):
    write_to(OwnersFile(os.environ[OWNER_LOG]))
