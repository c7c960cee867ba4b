"""A line that shows how far long work has come; silent where nobody is looking."""

import sys
import time
from types import TracebackType


class Progress:
    """`with Progress("checking", total) as progress: progress.advance("12,345 programs")`."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._done, self._began = 0, time.monotonic()

    def __enter__(self) -> "Progress":
        self._draw("")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def advance(self, note: str) -> None:
        """One more piece of the work is done."""
        self._done += 1
        self._draw(note)

    def _draw(self, note: str) -> None:
        if not sys.stderr.isatty():
            return
        full = 24 * self._done // max(self._total, 1)
        bar = "█" * full + "░" * (24 - full)
        seconds = time.monotonic() - self._began
        line = f"\r\033[K{self._what} {bar} {self._done}/{self._total}  {note}  {seconds:.0f} s"
        print(line, end="", file=sys.stderr, flush=True)
