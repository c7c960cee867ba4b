"""Keys of two integers that all have one hash: how Python hashes a tuple is known to everybody."""

from time import process_time
from typing import Any

_FIRST, _SECOND, _START = 11400714785074694791, 14029467366897019727, 2870177450012600261
_WORD = 2**64


def colliding(number: int) -> tuple[tuple[int, int], ...]:
    """So many keys; where tuples are hashed in another way, they only look odd."""
    keys: list[tuple[int, int]] = []
    undo, first = pow(_SECOND, -1, _WORD), 0
    while len(keys) < number:
        first += 1
        mixed = (_START + first * _SECOND) % _WORD
        mixed = ((mixed << 31) | (mixed >> 33)) * _FIRST % _WORD
        second = -mixed * undo % _WORD
        second -= _WORD if second >= _WORD // 2 else 0
        if abs(second) < 2**61 - 1 and second != -1:  # an integer beyond is hashed as another
            keys.append((first, second))
    return tuple(keys)


def plain(number: int) -> tuple[tuple[int, int], ...]:
    """As many keys, of different hashes."""
    return tuple((first, 7 * first + 2**59) for first in range(number))


def times_slower(work: Any, number: int = 4_000) -> float:
    """How many times as long something takes with keys that collide as with others: the least of three."""

    def taken(keys: Any) -> float:
        began = process_time()
        work(keys)
        return process_time() - began

    work(plain(number))
    return min(taken(colliding(number)) / taken(plain(number)) for _ in range(3))
