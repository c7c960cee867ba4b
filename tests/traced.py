"""Something done at a line of something else: what a signal's handler or a finalizer may do anywhere."""

import sys
from collections.abc import Callable
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

import fpinq

SOURCES = str(Path(fpinq.__file__).parent)


class Interrupted(BaseException):
    """What a signal's handler raises."""


def at_line(
    number: int,
    do: Callable[[], object],
    then: Callable[[], object],
    *,
    where: str = SOURCES,
    returning: bool = True,
    but: tuple[str, ...] = (),
) -> bool:
    """Do something, and something else at a line of it, of files that begin so; False if it has not so many.

    returning: where a function ends is a line, too. but: lines that begin so are none.
    """
    left = number

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(where):
            return None
        if event == "line" and getline(frame.f_code.co_filename, frame.f_lineno).strip().startswith(but):
            return trace
        if event == "line" or (event == "return" and returning):
            left -= 1
            if left == 0:
                then()
        return trace

    sys.settrace(trace)
    try:
        do()
    finally:
        sys.settrace(None)
    return left <= 0


def interrupt() -> None:
    raise Interrupted
