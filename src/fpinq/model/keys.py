"""Keys: what the parts of a partition are told by.

A key is a value of an expression, or a tuple of the values of several. Keys are
listed one after the other, or are not written out at all: every integer from the
first to the last (a range), every combination of what each expression may be (a
product).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, product, repeat
from math import prod
from typing import overload

from fpinq.model.errors import BadPartition
from fpinq.model.expressions import Value, canonical_float, classes_of
from fpinq.model.frozen import dataclass

Key = Value | tuple[Value, ...]

# The keys of one expression: one after the other, or all integers from the first to the last.
Domain = tuple[Value, ...] | range

MAX_PARTS = 2**24
# More than anybody counts a table by; arrays have so many dimensions.
MAX_COLUMNS = 30
# Python does not write down a number of thousands of digits.
COUNTABLE = 10**100


@dataclass(frozen=True)
class Product(Sequence[tuple[Value, ...]]):
    """Every combination of a key of each domain; the last of them changes first. Never written out."""

    of: tuple[Domain, ...]

    op = "product"

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", tuple(map(canonical_domain, self.of)))

    def __len__(self) -> int:
        return prod(map(len, self.of))

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return product(*self.of)

    @overload
    def __getitem__(self, number: int) -> tuple[Value, ...]: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[tuple[Value, ...], ...]: ...
    def __getitem__(self, number: int | slice) -> tuple[Value, ...] | tuple[tuple[Value, ...], ...]:
        if isinstance(number, slice):
            return tuple([self[i] for i in range(len(self))[number]])
        left, key = range(len(self))[number], list[Value]()
        for domain in reversed(self.of):
            left, place = divmod(left, len(domain))
            key.append(domain[place])
        return tuple(reversed(key))


Keys = tuple[Key, ...] | range | Product


def canonical(keys: Keys) -> Keys:
    """The keys, with the one float that stands for each."""
    if type(keys) is range or type(keys) is Product:
        return keys
    if id(tuple) not in classes_of(keys):
        return canonical_domain(keys)  # type: ignore[arg-type]
    return tuple([canonical_domain(key) if type(key) is tuple else key for key in keys])  # type: ignore[misc]


def canonical_domain(keys: Domain) -> Domain:
    """The keys of one expression, or one key of several, with the one float that stands for each."""
    if type(keys) is range or id(float) not in classes_of(keys):
        return keys
    return tuple(canonical_float(key) if type(key) is float else key for key in keys)


def domains(keys: Keys, columns: int) -> Sequence[Sequence[Value]]:
    """What each of several expressions is in the keys; with repetitions, where they are listed.

    BadPartition unless every key is of as many.
    """
    if type(keys) is Product:
        found: Sequence[Sequence[Value]] = keys.of
        fitting = len(found) == columns
    else:
        fitting = classes_of(keys) == {id(tuple)} and set(map(len, keys)) == {columns}  # type: ignore[arg-type]
        found = list(zip(*keys, strict=True)) if fitting else ()
    if not fitting:
        raise BadPartition(f"a key of {columns} columns has {columns} values: keys=[(…, …), …]")
    return found


def check_number(keys: Keys) -> None:
    """BadPartition unless keys are a tuple, a range of integers one after the other, or a product of such.

    And not too many.
    """
    if type(keys) is Product and type(keys.of) is not tuple:
        raise BadPartition("a product of keys is one of a tuple")
    domains = keys.of if type(keys) is Product else (keys,)
    if len(domains) > MAX_COLUMNS:
        raise BadPartition(f"a key has at most {MAX_COLUMNS} columns")
    numbers = [_number(domain) for domain in domains]
    if max(numbers, default=0) > MAX_PARTS or prod(numbers) > MAX_PARTS:
        raise BadPartition(
            f"at most {MAX_PARTS:,} parts in one partition, and this one has {counted(numbers)}"
        )


def counted(numbers: Sequence[int]) -> str:
    """How many keys a product has, in words: `16 × 2 = 32`."""
    if prod(numbers) > COUNTABLE:
        return f"more than {COUNTABLE:,}"
    total = f"{prod(numbers):,}"
    return total if len(numbers) == 1 else f"{' × '.join(f'{n:,}' for n in numbers)} = {total}"


def _number(keys: object) -> int:
    if type(keys) is range:
        ends = (keys.start, keys.stop, keys.step)
        if any(type(end) is not int for end in ends) or keys.step != 1:
            raise BadPartition("a range of keys has every integer from the first to the last")
        return max(keys.stop - keys.start, 0)  # more, perhaps, than `len` may count
    if type(keys) is tuple:
        return len(keys)
    raise BadPartition("keys are a tuple, or a range")


def values_of(keys: Keys) -> Iterator[Value]:
    """Every value in the keys, as often as keys have it."""
    return chain.from_iterable(key if type(key) is tuple else (key,) for key in keys)  # type: ignore[misc]


def has_duplicates(keys: Keys | Sequence[Value]) -> bool:
    """Whether two of the keys are the same."""
    if type(keys) is Product:
        return any(map(has_duplicates, keys.of))
    if type(keys) is range:
        return False
    different = Listed(keys) if id(tuple) in classes_of(keys) else set(keys)  # type: ignore[arg-type]
    return len(different) != len(keys)


class Listed:
    """Keys of several columns that are listed: which of them is which.

    Each value is looked up in its column first, and then the few small numbers that
    these have. Anybody can write down any number of pairs of integers whose hashes
    are all the same, and each would be compared with all before it.
    """

    def __init__(self, keys: Sequence[tuple[Value, ...]]) -> None:
        columns = list(zip(*keys, strict=True))
        self._columns = [dict(zip(dict.fromkeys(column), count(), strict=False)) for column in columns]
        self._numbers = dict(zip(self._found(columns), count(), strict=False))

    def __len__(self) -> int:
        """How many different ones there are."""
        return len(self._numbers)

    def numbers(self, columns: Iterable[Sequence[Value]]) -> Iterator[int]:
        """The number of every row, from its columns; −1 of one that is none of the keys."""
        return map(self._numbers.get, self._found(columns), repeat(-1))

    def _found(self, columns: Iterable[Sequence[Value]]) -> Iterator[tuple[int, ...]]:
        places = [
            map(known.get, column, repeat(-1)) for known, column in zip(self._columns, columns, strict=True)
        ]
        return zip(*places, strict=True)
