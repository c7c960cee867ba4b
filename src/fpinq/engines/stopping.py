"""A time limit for what an engine does: it is stopped, or left to itself where it cannot be."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from math import inf
from threading import Event, Lock, Thread
from typing import TypeVar

T = TypeVar("T")

# How often something that ran out of time is interrupted.
AGAIN_SECONDS = 0.05


@contextmanager
def stopped_after(seconds: float, stop: Callable[[], object]) -> Iterator[None]:
    """Call stop, from another thread, if what is done in here takes longer.

    An interrupt between two statements is lost, so it is repeated until this is left.
    """
    if seconds == inf:
        yield
        return
    left, one_at_a_time = Event(), Lock()

    def watch() -> None:
        wait = seconds
        while not left.wait(wait):
            wait = AGAIN_SECONDS
            with one_at_a_time:
                if not left.is_set():
                    stop()

    Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        with one_at_a_time:
            left.set()


def abandoned_after(
    seconds: float, work: Callable[[], T], cancel: Callable[[int], object] = lambda thread: None
) -> T:
    """What work gives, or a TimeoutError; then cancel is told its thread, and that is left to itself."""
    if seconds == inf:
        return work()
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        return result.result(timeout=seconds)
    except TimeoutError:
        if not result.done() and thread.ident is not None:
            cancel(thread.ident)
        raise
