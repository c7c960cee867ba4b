"""Domains: keys that are known without being listed, however many there are.

Every integer from a lowest to a highest one, every date, every text of so many bytes, both truths, and
every combination of such. A domain is finite and public, and numbers its keys 0 … size − 1 in their order:
`rank` says which number a key has, or None if it is not in the domain, whatever it is; `unrank` which key a
number has.

A text is in the domain of texts if its UTF-8 has at most so many bytes. There are byte strings that are no
text, and they are not numbered: every number is a key that a column can have. A text is empty, or a first
character and a shorter text, so with 128, 1920, 61440 and 1048576 characters of 1 to 4 bytes (no surrogates)
there are

    c(n) = 1 + 128·c(n − 1) + 1920·c(n − 2) + 61440·c(n − 3) + 1048576·c(n − 4)

of them. In the order of their characters, which is that of their bytes, all texts that begin with a
character of l bytes come one after the other, c(n − l) of them for each: so ranks are sums and unranking is
division.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from math import prod
from operator import mul
from typing import TypeAlias

from fpinq.model.errors import BadPartition
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Type, Value
from fpinq.model.frozen import dataclass
from fpinq.model.keys import MAX_COLUMNS

MAX_BYTES = 1024
# Probabilities of one key among so many are computed with.
MAX_BITS = 8192
# How many characters have so many bytes in UTF-8, and from which on.
CHARACTERS = {1: 128, 2: 1920, 3: 61440, 4: 1048576}
FIRST = {1: 0, 2: 0x80, 3: 0x800, 4: 0x10000}
SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True)
class IntegerDomain:
    """Every integer from low to high, both included."""

    low: int
    high: int

    op = "integers"

    def __post_init__(self) -> None:
        if type(self.low) is not int or type(self.high) is not int or self.low > self.high:
            raise BadPartition("a domain of integers goes from a lowest to a highest one: integers(0, 999)")
        if self.low < INT64_MIN or self.high > INT64_MAX:
            raise BadPartition("a domain of integers has those of 64 bits")

    @property
    def size(self) -> int:
        """The number of keys."""
        return self.high - self.low + 1

    @property
    def types(self) -> tuple[Type, ...]:
        """What a key is made of."""
        return (Type.INT64,)

    def rank(self, key: object) -> int | None:
        """The number of a key; None if it is not in the domain."""
        return key - self.low if type(key) is int and self.low <= key <= self.high else None

    def unrank(self, number: int) -> int:
        """The key of a number."""
        return self.low + _number(number, self.size)


@dataclass(frozen=True)
class DateDomain:
    """Every date from first to last, both included."""

    first: date
    last: date

    op = "dates"

    def __post_init__(self) -> None:
        if type(self.first) is not date or type(self.last) is not date or self.first > self.last:
            raise BadPartition("a domain of dates goes from a first to a last one, each a datetime.date")

    @property
    def size(self) -> int:
        """The number of keys."""
        return self.last.toordinal() - self.first.toordinal() + 1

    @property
    def types(self) -> tuple[Type, ...]:
        """What a key is made of."""
        return (Type.DATE,)

    def rank(self, key: object) -> int | None:
        """The number of a key; None if it is not in the domain."""
        if type(key) is not date or not self.first <= key <= self.last:
            return None
        return key.toordinal() - self.first.toordinal()

    def unrank(self, number: int) -> date:
        """The key of a number."""
        return date.fromordinal(self.first.toordinal() + _number(number, self.size))


@dataclass(frozen=True)
class TruthDomain:
    """False and true."""

    op = "truths"

    @property
    def size(self) -> int:
        """The number of keys."""
        return 2

    @property
    def types(self) -> tuple[Type, ...]:
        """What a key is made of."""
        return (Type.BOOL,)

    def rank(self, key: object) -> int | None:
        """The number of a key; None if it is not in the domain."""
        return int(key) if type(key) is bool else None

    def unrank(self, number: int) -> bool:
        """The key of a number."""
        return bool(_number(number, self.size))


@dataclass(frozen=True)
class StringDomain:
    """Every text whose UTF-8 has at most max_bytes bytes."""

    max_bytes: int

    op = "strings"

    def __post_init__(self) -> None:
        if type(self.max_bytes) is not int or not 0 <= self.max_bytes <= MAX_BYTES:
            raise BadPartition(f"texts have at most {MAX_BYTES} bytes in a domain: strings(max_bytes=32)")

    @property
    def size(self) -> int:
        """The number of keys."""
        return texts(self.max_bytes)

    @property
    def types(self) -> tuple[Type, ...]:
        """What a key is made of."""
        return (Type.STRING,)

    def rank(self, key: object) -> int | None:
        """The number of a key; None if it is not in the domain."""
        if type(key) is not str:
            return None
        if key.isascii():
            if len(key) > self.max_bytes:
                return None
            following: int = sum(map(mul, key.encode(), _after(self.max_bytes)))
            return len(key) + following
        number, left, before = 0, self.max_bytes, _before()
        for character in key:
            code = ord(character)
            length = 1 + (code >= FIRST[2]) + (code >= FIRST[3]) + (code >= FIRST[4])
            if code in SURROGATES or length > left:
                return None
            index = code - FIRST[length] - (len(SURROGATES) if SURROGATES[-1] < code < FIRST[4] else 0)
            number += before[length][left] + index * _texts()[left - length]
            left -= length
        return number

    def unrank(self, number: int) -> str:
        """The key of a number."""
        rest, left, found = _number(number, self.size), self.max_bytes, list[str]()
        while rest:
            rest -= 1
            for length, characters in CHARACTERS.items():  # pragma: no branch - one of them has it
                each = texts(left - length)
                if rest < characters * each:
                    index, rest = divmod(rest, each)
                    code = FIRST[length] + index
                    found.append(chr(code + len(SURROGATES) if SURROGATES[0] <= code < FIRST[4] else code))
                    left -= length
                    break
                rest -= characters * each
        return "".join(found)


SimpleDomain: TypeAlias = IntegerDomain | DateDomain | StringDomain | TruthDomain


@dataclass(frozen=True)
class ProductDomain:
    """Every combination of a key of each domain; the last of them changes first."""

    of: tuple[SimpleDomain, ...]

    op = "domains"

    def __post_init__(self) -> None:
        kinds = (IntegerDomain, DateDomain, StringDomain, TruthDomain)
        if type(self.of) is not tuple or any(type(domain) not in kinds for domain in self.of):
            raise BadPartition("a product is one of domains: product(integers(0, 9), strings(max_bytes=8))")
        if not 1 <= len(self.of) <= MAX_COLUMNS:
            raise BadPartition(f"a key has at least 1 and at most {MAX_COLUMNS} columns")
        for domain in self.of:
            check_domain(domain)
        if self.size.bit_length() > MAX_BITS:
            raise BadPartition(f"a domain has fewer than 2^{MAX_BITS} keys: shorter texts, or fewer columns")

    @property
    def size(self) -> int:
        """The number of keys."""
        return prod(domain.size for domain in self.of)

    @property
    def types(self) -> tuple[Type, ...]:
        """What a key is made of."""
        return tuple(domain.types[0] for domain in self.of)

    def rank(self, key: object) -> int | None:
        """The number of a key; None if it is not in the domain."""
        if type(key) is not tuple or len(key) != len(self.of):
            return None
        number = 0
        for domain, value in zip(self.of, key, strict=True):
            place = domain.rank(value)
            if place is None:
                return None
            number = number * domain.size + place
        return number

    def unrank(self, number: int) -> tuple[Value, ...]:
        """The key of a number."""
        rest, key = _number(number, self.size), list[Value]()
        for domain in reversed(self.of):
            rest, place = divmod(rest, domain.size)
            key.append(domain.unrank(place))
        return tuple(reversed(key))


KeyDomain: TypeAlias = SimpleDomain | ProductDomain


def check_domain(domain: KeyDomain) -> None:
    """BadPartition unless it is a domain: what is frozen can be changed by who means to."""
    if not isinstance(domain, TruthDomain):  # there is one of them, and nothing in it
        domain.__post_init__()


def ranks(domain: KeyDomain, columns: Sequence[Iterable[object]]) -> Iterable[int | None]:
    """The numbers of many keys, from the columns that they are made of; None of one that is not in it."""
    return map(domain.rank, columns[0] if type(domain) is not ProductDomain else zip(*columns, strict=True))


def contains(domain: KeyDomain, key: object) -> bool:
    """Whether the key is in the domain."""
    return domain.rank(key) is not None


def texts(max_bytes: int) -> int:
    """How many texts have at most so many bytes; none has fewer than 0."""
    return _texts()[max_bytes] if max_bytes >= 0 else 0


@cache
def _texts() -> Sequence[int]:
    counts: list[int] = []
    for n in range(MAX_BYTES + 1):
        counts.append(
            1 + sum(many * counts[n - length] for length, many in CHARACTERS.items() if length <= n)
        )
    return counts


@cache
def _after(max_bytes: int) -> Sequence[int]:
    """How many texts can follow the first character of one byte, the second, and so on."""
    return tuple(texts(left) for left in range(max_bytes - 1, -1, -1))


@cache
def _before() -> dict[int, Sequence[int]]:
    """By a character's length and what is left: itself, and the texts that begin with a shorter one."""
    return {
        length: [
            1 + sum(CHARACTERS[shorter] * texts(left - shorter) for shorter in range(1, length))
            for left in range(MAX_BYTES + 1)
        ]
        for length in CHARACTERS
    }


def _number(number: int, size: int) -> int:
    if type(number) is not int or not 0 <= number < size:
        raise BadPartition("a domain numbers its keys from 0, one for each")
    return number
