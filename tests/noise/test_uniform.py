"""Uniform reals known bit by bit, and where their bytes come from."""

import os
import threading
from collections import Counter

import pytest

from fpinq.noise import sample, sample_many
from fpinq.noise.uniform import SYSTEM, Uniform, below, less, refine, uniform
from noise.sources import Exhausted, recording, scripted, seeded


def no_bytes(size: int) -> bytes:
    raise Exhausted


def test_refining_keeps_the_known_bits():
    u = uniform(64, seeded(1))
    assert refine(u, seeded(2)).prefix >> 64 == u.prefix
    assert refine(u, seeded(2)).bits == u.bits + 64


def test_less_is_decided_by_the_known_bits_unless_they_tie():
    """All 2^8 prefixes against p = 1/3 enclosed: 85 below, 170 above, one open."""

    def third(bits: int) -> tuple[int, int]:
        return (1 << bits) // 3, (1 << bits) // 3 + 1

    outcomes: Counter[object] = Counter()
    for prefix in range(256):
        try:
            outcomes[less(Uniform(prefix, 8), third, no_bytes)[0]] += 1
        except Exhausted:
            outcomes["open"] += 1
            assert prefix == 85
    assert outcomes == {True: 85, False: 170, "open": 1}


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000, 10**9 + 7, 10**30])
def test_below_changes_only_where_n_cuts_the_unit_interval(n):
    """An integer j is given exactly on [j/n, (j + 1)/n): checked at both ends of it."""
    bits = uniform(n.bit_length() + 64, seeded(0)).bits
    for j in {0, 1 % n, n // 2, n - 1}:
        first, last = -(-(j << bits) // n), (((j + 1) << bits) // n) - 1
        for prefix in (first, last):
            assert below(n, n, scripted(prefix.to_bytes(bits // 8, "little"))) == j


def test_below_refines_a_prefix_that_straddles_a_cut():
    bits = uniform((3).bit_length() + 64, seeded(0)).bits
    straddling = ((1 << bits) // 3).to_bytes(bits // 8, "little")
    with pytest.raises(Exhausted):
        below(3, 3, scripted(straddling))
    assert below(3, 3, scripted(straddling, bytes(8))) == 0
    assert below(3, 3, scripted(straddling, b"\xff" * 8)) == 1


def test_below_asks_for_the_same_bytes_whatever_n():
    sizes: list[int] = []
    for n in (1, 5, 10**9):
        below(n, 10**9, recording(seeded(n), sizes))
    assert len(set(sizes)) == 1


def test_bytes_come_from_the_operating_system():
    assert SYSTEM is os.urandom


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_children_of_a_fork_draw_their_own_noise():
    sample_many(10**6, 10)  # anything the sampler might keep exists before the fork

    def in_a_child() -> bytes:
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            drawn = [*sample_many(10**9, 5).tolist(), *(sample(10**9) for _ in range(5))]
            os.write(write, repr(drawn).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            drawn_bytes = pipe.read()
        assert os.waitpid(child, 0)[1] == 0
        return drawn_bytes

    drawn = [in_a_child() for _ in range(4)]
    assert all(drawn)
    assert len(set(drawn)) == 4


def test_threads_draw_their_own_noise():
    drawn: list[tuple[int, ...]] = []

    def draw() -> None:
        drawn.append(tuple(sample_many(10**12, 1000).tolist()))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 8
    assert len({value for values in drawn for value in values}) > 7990  # 10¹² apart: repeats are chance
