"""How far long work has come: a line that is drawn again in a terminal, a new one now and then in a pipe."""

import sys
import time
from types import TracebackType

# How often somebody who reads a pipe or a log is told.
EVERY_SECONDS = 10.0


class Progress:
    """`with Progress("checking", total) as progress: progress.advance("12,345 programs")`."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._done, self._began = 0, time.monotonic()
        self._told = self._began

    def __enter__(self) -> "Progress":
        if sys.stderr.isatty():
            self._draw("")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def advance(self, note: str) -> None:
        """One more piece of the work is done."""
        self._done += 1
        if sys.stderr.isatty():
            self._draw(note)
        elif time.monotonic() - self._told >= EVERY_SECONDS:
            self._told = time.monotonic()
            print(
                f"{self._what} {self._done}/{self._total}  {self._after(note)}", file=sys.stderr, flush=True
            )

    def _draw(self, note: str) -> None:
        full = 24 * self._done // max(self._total, 1)
        bar = "█" * full + "░" * (24 - full)
        line = f"\r\033[K{self._what} {bar} {self._done}/{self._total}  {self._after(note)}"
        print(line, end="", file=sys.stderr, flush=True)

    def _after(self, note: str) -> str:
        return f"{note}  {time.monotonic() - self._began:.0f} s"
