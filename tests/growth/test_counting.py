"""What is counted is what was done: a loop is seen in calls, a copy in bytes."""

import sys
import tracemalloc

import pytest

from growth.counting import allocated, calls

pytestmark = pytest.mark.usefixtures("little_garbage")


def test_a_loop_over_all_is_seen_in_calls() -> None:
    def loop(size: int) -> int:
        return calls(lambda: [abs(i) for i in range(size)])

    assert loop(2_000) - loop(1_000) == 1_000


def test_a_copy_of_all_is_seen_in_bytes() -> None:
    held = {size: dict.fromkeys(range(size)) for size in (1_000, 4_000)}
    assert allocated(held[4_000].copy) >= 3 * allocated(held[1_000].copy)


def test_the_same_work_is_the_same_count() -> None:
    work = [str(i) for i in range(100)].copy
    assert len({calls(work) for _ in range(5)}) == 1
    # Bytes are those of all threads, and the test runner has one: the least of a few is the work's own, but
    # for a small object that was freed in between and is taken again.
    least = [min(allocated(work) for _ in range(10)) for _ in range(5)]
    assert max(least) - min(least) < 200 < 100 * 8 <= min(least)


def test_nothing_is_counted_after_an_error() -> None:
    for counted in (calls, allocated):
        with pytest.raises(ZeroDivisionError):
            counted(lambda: 1 // 0)
    assert sys.getprofile() is None
    assert not tracemalloc.is_tracing()
