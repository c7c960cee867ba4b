"""Work, counted: functions called and bytes allocated, which are the same whatever else a machine does."""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, Python's own and others, in this thread."""
    counted = 0

    def count(_frame: Any, event: str, _arg: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    gc.collect()
    gc.disable()
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return counted


def allocated(work: Callable[[], object]) -> int:
    """The most bytes that were allocated at once, beyond what there was: by all threads there are."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        # The first answer's own tuple is a new one or one that was freed; the second answer's is the first's.
        tracemalloc.get_traced_memory()
        before, _ = tracemalloc.get_traced_memory()
        work()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    return most - before
