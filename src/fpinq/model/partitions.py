"""Partitions: which part a record is in, by keys that do not depend on the data."""

from collections.abc import Sequence
from dataclasses import field

from fpinq.model.errors import BadPartition
from fpinq.model.expressions import COLUMN_TYPES, Expression, Schema, Value, check_values
from fpinq.model.frozen import dataclass
from fpinq.model.keys import MAX_COLUMNS, Keys, Product, canonical, check_number, domains, has_duplicates
from fpinq.model.operators import type_of


@dataclass(frozen=True)
class Partitioning:
    """f : record → part. Part i holds the records whose key is keys[i]; other keys are in no part.

    The key is a value, or the values of several expressions; null is a value like others.
    """

    key: Expression | tuple[Expression, ...]
    keys: Keys
    _hash: int = field(init=False, repr=False, compare=False)

    op = "partitioning"

    def __post_init__(self) -> None:
        keys = self.keys if type(self.keys) in (range, Product) else tuple(self.keys)
        keys = canonical(keys)
        check_number(keys)
        object.__setattr__(self, "keys", keys)
        # Many parts share one partitioning: it is hashed once, not once for each.
        object.__setattr__(self, "_hash", hash((self.key, len(keys), repr(keys[:8]))))

    def __hash__(self) -> int:
        return self._hash

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What a key is made of: one expression, or several."""
        return self.key if isinstance(self.key, tuple) else (self.key,)


def parts_of(by: Partitioning | None) -> int:
    """How many parts a table is asked in: one, if it is not partitioned."""
    return 1 if by is None else len(by.keys)


def check_partitioning(by: Partitioning, schema: Schema) -> None:
    """BadPartition unless there are keys, all different and of the key expressions' types."""
    types = [type_of(key, schema) for key in by.expressions]
    for found in types:
        if found not in COLUMN_TYPES:
            raise BadPartition(f"cannot partition by {found.value}")
    check_number(by.keys)
    if not len(by.keys):
        raise BadPartition("partition needs keys=[…]: which parts exist must not depend on the data")
    for values, found in zip(_values(by), types, strict=True):
        # Of a range, the first and the last are the least and the greatest.
        check_values((values[0], values[-1]) if type(values) is range else values, found)
    if has_duplicates(by.keys):
        raise BadPartition("partition keys must be different: a record may be in one part only")


def _values(by: Partitioning) -> Sequence[Sequence[Value]]:
    """What each expression is in the keys."""
    if not isinstance(by.key, tuple):
        if type(by.keys) is Product:
            raise BadPartition("a key of one expression is a value, not one of a product")
        return (by.keys,)  # type: ignore[return-value]
    if len(by.key) < 2:
        raise BadPartition("a key of one expression is that expression, and not a tuple")
    if len(by.key) > MAX_COLUMNS:
        raise BadPartition(f"a key has at most {MAX_COLUMNS} columns")
    return domains(by.keys, len(by.key))
