"""Alike: tables that are one table's records with other columns, names or types.

A table in memory is known by its columns, each by its values. Two tables are the
same data if all columns of the one are found in the other, and those that are
found say enough: that other data has the same values in them by chance must be
less likely than 2^−ENOUGH. A constant, row numbers, or ten rows of yes and no do
not say enough.

Entries hold a column's hash sealed, by the ledger's key and for its data set alone:
whoever reads them sees how many columns there are, not which are equal.
"""

import hmac
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from fpinq.ledger.wire import canonical
from fpinq.model.events import Registered

ENOUGH = 20


class ColumnHash(NamedTuple):
    """A column by its values, and how unlikely it is that other data has them too."""

    hash: str
    bits: float


ColumnHashes = tuple[ColumnHash, ...]


def sealed(key: bytes, root: str, tables: Iterable[ColumnHashes]) -> tuple[tuple[str, ...], ...]:
    """The columns of a data set's tables, as its entry holds them."""
    return tuple(tuple(sorted(_seals(key, root, i, table))) for i, table in enumerate(tables))


def is_alike(key: bytes, known: Registered, tables: Iterable[ColumnHashes]) -> bool:
    """Whether one of the tables is the same data as one of a known data set."""
    return any(_is_found(_seals(key, known.name, i, table), set(there))
               for table in tables for i, there in enumerate(known.columns))  # fmt: skip


def _is_found(here: dict[str, float], there: set[str]) -> bool:
    both = here.keys() & there
    return len(both) in (len(here), len(there)) and sum(here[seal] for seal in both) >= ENOUGH


def _seals(key: bytes, root: str, table: int, columns: ColumnHashes) -> dict[str, float]:
    """Seal ↦ bits. The same column a second time has another seal, and says nothing more."""
    found: dict[str, float] = {}
    times: Counter[str] = Counter()
    for hashed, bits in columns:
        text = canonical([root, table, times[hashed], hashed])
        found[hmac.new(key, text.encode(), "sha256").hexdigest()] = 0 if times[hashed] else bits
        times[hashed] += 1
    return found
