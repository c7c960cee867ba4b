"""Deadlines: an engine is told how long it may take; drawing looks at the clock between its steps, and stops.

Out of time is a TimeoutError here, and an EngineError to whoever asked: the charge stands.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

# How many items pass between two looks at the clock.
BETWEEN = 4096

_until: ContextVar[float] = ContextVar("until", default=inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is done in here has this long."""
    before = _until.set(monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(before)


def left() -> float:
    """How many seconds are left."""
    return max(0.0, _until.get() - monotonic())


def check() -> None:
    """TimeoutError if none are."""
    if not left():
        raise TimeoutError("the time for a query is over")


def each(items: Iterable[T]) -> Iterator[T]:
    """The items, with a look at the clock before every one."""
    for item in items:
        check()
        yield item


def watched(items: Iterable[T]) -> Iterator[T]:
    """The items, with a look at the clock every few thousand."""
    for number, item in enumerate(items):
        if number % BETWEEN == 0:
            check()
        yield item
