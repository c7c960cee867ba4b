"""Byte sources for tests: scripted, seeded and recording ones. The product has none of them."""

import random
from collections.abc import Iterable

from fpinq.noise.uniform import RandomBytes


def seeded(seed: int) -> RandomBytes:
    """Reproducible bytes."""
    return random.Random(seed).randbytes


def scripted(*blocks: bytes, then: RandomBytes | None = None) -> RandomBytes:
    """Gives the bytes of the blocks in order, then those of then; without then, asking for more fails."""
    rest = bytearray(b"".join(blocks))

    def source(size: int) -> bytes:
        taken = bytes(rest[:size])
        del rest[:size]
        if len(taken) < size:
            if then is None:
                raise Exhausted
            taken += then(size - len(taken))
        return taken

    return source


def recording(source: RandomBytes, sizes: list[int]) -> RandomBytes:
    """The same bytes as source, noting how many were asked for each time."""

    def noted(size: int) -> bytes:
        sizes.append(size)
        return source(size)

    return noted


def words(numbers: Iterable[int]) -> bytes:
    """64-bit words, as the samplers read them."""
    return b"".join(number.to_bytes(8, "little") for number in numbers)


class Exhausted(Exception):
    """A scripted source was asked for more than its script."""
