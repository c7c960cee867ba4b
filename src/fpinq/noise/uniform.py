"""Uniform random reals, known bit by bit: the only place where randomness enters.

Every byte comes from the operating system at the moment it is used. Nothing
is buffered or kept, so there is no state for a fork to copy, for threads to
share or for a core dump to keep. There is no seed; a test passes its own
`RandomBytes`.

An exact sampler compares a uniform real U with an irrational probability p.
It needs only the first bits of U; where those leave the comparison open, it
asks for more of them and for more of p.
"""

import os
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

RandomBytes: TypeAlias = Callable[[int], bytes]
"""Gives as many independent uniform bytes as it is asked for."""

SYSTEM: RandomBytes = os.urandom

REFINEMENT_BYTES = 8


class Uniform(NamedTuple):
    """A real in [0, 1) of which the first bits are known: it lies in [prefix, prefix + 1)·2^−bits."""

    prefix: int
    bits: int


def uniform(bits: int, source: RandomBytes = SYSTEM) -> Uniform:
    """A fresh uniform real with at least the first bits known, in whole bytes."""
    size = -(-bits // 8)
    return Uniform(int.from_bytes(source(size), "little"), 8 * size)


def refine(u: Uniform, source: RandomBytes = SYSTEM, size: int = REFINEMENT_BYTES) -> Uniform:
    """The same real with 64 more bits known, or as many bytes as it says."""
    more = int.from_bytes(source(size), "little")
    return Uniform((u.prefix << 8 * size) | more, u.bits + 8 * size)


def less(
    u: Uniform, probability: Callable[[int], tuple[int, int]], source: RandomBytes
) -> tuple[bool, Uniform]:
    """Whether the real u lies below an irrational probability, and what is then known of u.

    probability(bits) encloses it: low ≤ p·2^bits ≤ high. A comparison that
    stays open after n more refinements has probability about 2^−64n.
    """
    while True:
        low, high = probability(u.bits)
        if u.prefix + 1 <= low:
            return True, u
        if u.prefix >= high:
            return False, u
        u = refine(u, source)


def below(n: int, largest: int, source: RandomBytes = SYSTEM) -> int:
    """An integer uniform over 0 … n − 1, exactly, for n ≤ largest.

    ⌊U·n⌋ for a uniform real U. The bytes drawn depend on largest alone,
    except where the known bits of U leave the integer open (probability
    below 2^−64).
    """
    u = uniform(largest.bit_length() + 64, source)
    while True:
        first = u.prefix * n >> u.bits
        last = ((u.prefix + 1) * n - 1) >> u.bits
        if first == last:
            return first
        u = refine(u, source)
