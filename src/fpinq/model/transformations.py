"""Transformations F with their stability.

F has stability (c₁…cₙ) if changing one record of argument i changes at most cᵢ
records of the result, as bags under symmetric difference. Each constant here
is tight: `fpinq check --stability` finds it again by exhaustive search.

Where F keeps one record of a key and leaves another out, one record more may
change two of the result: it pushes one out and comes in itself. Where all that
is seen of a record is its key, it does not matter which of them stay, only how
many, and one more changes one.

The records of a literal table are in the program; everything else is made of
its arguments, row by row or key by key.
"""

from dataclasses import field
from functools import reduce
from typing import Literal as Tag

from fpinq.model.accounts import UNBOUNDED, Stability, Unbounded
from fpinq.model.aggregates import Aggregate as Aggregate
from fpinq.model.aggregates import Aggregates as Aggregates
from fpinq.model.aggregates import aggregate_columns
from fpinq.model.errors import BadPartition, BadTransformation
from fpinq.model.expressions import (
    COLUMN_TYPES,
    Apply,
    Column,
    Expression,
    Schema,
    Type,
    Value,
    checked_value,
    classes_of,
    is_text,
)
from fpinq.model.frozen import dataclass
from fpinq.model.keys import MAX_PARTS as MAX_PARTS
from fpinq.model.operators import type_of
from fpinq.model.partitions import Partitioning as Partitioning
from fpinq.model.partitions import check_partitioning as check_partitioning
from fpinq.model.partitions import parts_of as parts_of
from fpinq.model.told import Told

Fields = tuple[tuple[str, Expression], ...]

# How many tables one concat takes.
MAX_TABLES = 10_000


# ── truncations of one side of a join ────────────────────────────────────────────────


@dataclass(frozen=True)
class First:
    """Keep the first at_most records per key, in the canonical order."""

    at_most: int
    op: Tag["first"] = field(default="first", repr=False)

    stability: int = field(default=2, init=False, repr=False, compare=False)


@dataclass(frozen=True)
class Unique:
    """Keep a key's record only if it is the key's one record."""

    op: Tag["unique"] = field(default="unique", repr=False)

    stability: int = field(default=1, init=False, repr=False, compare=False)
    at_most: int = field(default=1, init=False, repr=False, compare=False)


@dataclass(frozen=True)
class All:
    """Keep every record: bounded only if the other side is public."""

    op: Tag["all"] = field(default="all", repr=False)

    stability: int = field(default=1, init=False, repr=False, compare=False)
    at_most: Unbounded = field(default=UNBOUNDED, init=False, repr=False, compare=False)


Truncation = First | Unique | All


# ── transformations ──────────────────────────────────────────────────────────────────
#
# Each says its stability, the shape of its result (a typed error if there is none) and,
# for plans inside one person, how many rows it gives at the most.


class _OfOne:
    """One table to a table of the same shape and no more rows, unless said otherwise."""

    def shape(self, table: Schema) -> Schema:
        return table

    def rows_at_most(self, table: int) -> int:
        return table


class _OfTwo:
    """Two tables of the same shape to one with the rows of both, unless said otherwise."""

    def shape(self, left: Schema, right: Schema) -> Schema:
        return _same(left, right)

    def rows_at_most(self, left: int, right: int) -> int:
        return left + right


def _same(left: Schema, right: Schema) -> Schema:
    if left != right:
        raise BadTransformation(
            "both tables need the same columns and types: "
            f"{left.columns} and {right.columns} do not; use select"
        )
    return left


@dataclass(frozen=True)
class LiteralTable:
    """A public table, written out."""

    schema: Schema
    rows: tuple[tuple[Value, ...], ...]
    op: Tag["literal_table"] = field(default="literal_table", repr=False)

    stability = ()

    def __post_init__(self) -> None:
        types = self.schema.types()
        if any(len(row) != len(types) for row in self.rows):
            raise BadTransformation("every row of a literal table must have a value for every column")
        rows = (tuple(checked_value(v, t) for v, t in zip(row, types, strict=True)) for row in self.rows)
        object.__setattr__(self, "rows", tuple(rows))

    def shape(self) -> Schema:
        return checked_schema(self.schema.columns)

    def rows_at_most(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Identity(_OfOne):
    """The table itself."""

    op: Tag["identity"] = field(default="identity", repr=False)

    stability = (1,)


@dataclass(frozen=True)
class Select(_OfOne):
    """One record made of each record."""

    record: Fields
    op: Tag["select"] = field(default="select", repr=False)

    stability = (1,)

    def shape(self, table: Schema) -> Schema:
        return _record_schema(self.record, table)


@dataclass(frozen=True)
class Where(_OfOne):
    """The records of which the predicate is true (not false, not null)."""

    predicate: Expression
    op: Tag["where"] = field(default="where", repr=False)

    stability = (1,)

    def shape(self, table: Schema) -> Schema:
        found = type_of(self.predicate, table)
        if found is not Type.BOOL:
            raise BadTransformation(f"where needs a predicate (bool), not {found.value}")
        return table


@dataclass(frozen=True)
class Distinct(_OfOne):
    """Each record once."""

    op: Tag["distinct"] = field(default="distinct", repr=False)

    stability = (1,)


@dataclass(frozen=True)
class SelectMany:
    """The first at_most of several records made of each record."""

    records: tuple[Fields, ...]
    at_most: int
    op: Tag["select_many"] = field(default="select_many", repr=False)

    @property
    def stability(self) -> tuple[Stability, ...]:
        return (self.at_most,)

    def shape(self, table: Schema) -> Schema:
        check_count(self.at_most, "at_most")
        schemas = {_record_schema(record, table) for record in self.records}
        if len(schemas) != 1:
            raise BadTransformation(
                "select_many needs one or more records, all with the same columns and types"
            )
        return schemas.pop()

    def rows_at_most(self, table: int) -> int:
        return self.at_most * table


@dataclass(frozen=True)
class Explode:
    """One record for each of the first at_most elements of an array expression."""

    value: Expression
    name: str
    at_most: int
    op: Tag["explode"] = field(default="explode", repr=False)

    @property
    def stability(self) -> tuple[Stability, ...]:
        return (self.at_most,)

    def shape(self, table: Schema) -> Schema:
        check_count(self.at_most, "at_most")
        if type_of(self.value, table) is not Type.STRINGS:
            raise BadTransformation("explode needs an array expression, such as split")
        return checked_schema(((self.name, Type.STRING),))

    def rows_at_most(self, table: int) -> int:
        return self.at_most * table


@dataclass(frozen=True)
class Take(_OfOne):
    """The first at_most records in the canonical order."""

    at_most: int
    op: Tag["take"] = field(default="take", repr=False)

    stability = (2,)

    def shape(self, table: Schema) -> Schema:
        check_count(self.at_most, "take")
        return table

    def rows_at_most(self, table: int) -> int:
        return min(self.at_most, table)


@dataclass(frozen=True)
class GroupBy(_OfOne):
    """One record per key: the key, and aggregates of the bag of its members.

    If they tell no more than the key does, or there are none, a member more
    adds the key's record or changes nothing.
    """

    keys: Fields
    aggregates: Aggregates
    op: Tag["group_by"] = field(default="group_by", repr=False)

    @property
    def stability(self) -> tuple[Stability, ...]:
        keys = Told([value for _, value in self.keys])
        return (1 if all(aggregate.is_told(keys) for _, aggregate in self.aggregates) else 2,)

    def shape(self, table: Schema) -> Schema:
        keys = _record_schema(self.keys, table, empty=True).columns
        return checked_schema((*keys, *aggregate_columns(self.aggregates, table)))

    def rows_at_most(self, table: int) -> int:
        return table if self.keys else min(table, 1)


@dataclass(frozen=True)
class LimitPerKey(_OfOne):
    """The first at_most records per key, in the canonical order.

    Of a key that is the whole record these are copies: PINQ's Distinct(k), of
    stability 1. Without a key it is take.
    """

    at_most: int
    keys: tuple[Expression, ...]
    op: Tag["limit_per_key"] = field(default="limit_per_key", repr=False)

    stability = (2,)

    def stability_on(self, table: Schema) -> tuple[Stability, ...]:
        """The stability on tables of this schema, which says what the whole record is."""
        return (1,) if set(every_column(table)) <= set(self.keys) else self.stability

    def shape(self, table: Schema) -> Schema:
        check_count(self.at_most, "limit_per_key")
        _key_types(self.keys, table)
        return table

    def rows_at_most(self, table: int) -> int:
        return table if self.keys else min(self.at_most, table)


@dataclass(frozen=True)
class UniqueBy(_OfOne):
    """The records whose key no other record has."""

    keys: tuple[Expression, ...]
    op: Tag["unique_by"] = field(default="unique_by", repr=False)

    stability = (1,)

    def shape(self, table: Schema) -> Schema:
        _key_types(self.keys, table)
        return table


@dataclass(frozen=True)
class Concat(_OfTwo):
    """The bag sum."""

    op: Tag["concat"] = field(default="concat", repr=False)

    stability = (1, 1)


@dataclass(frozen=True)
class ConcatAll:
    """The bag sum of several tables: concat, one after the other."""

    tables: int
    op: Tag["concat_all"] = field(default="concat_all", repr=False)

    def __post_init__(self) -> None:
        if type(self.tables) is not int or not 2 <= self.tables <= MAX_TABLES:
            raise BadTransformation(f"concat takes 2 to {MAX_TABLES} tables at once")

    @property
    def stability(self) -> tuple[Stability, ...]:
        return (1,) * self.tables

    def shape(self, *tables: Schema) -> Schema:
        return reduce(_same, tables)

    def rows_at_most(self, *tables: int) -> int:
        return sum(tables)


@dataclass(frozen=True)
class Union(_OfTwo):
    """The set union; with bag=True the larger multiplicity of each record."""

    bag: bool = False
    op: Tag["union"] = field(default="union", repr=False)

    stability = (1, 1)


@dataclass(frozen=True)
class Intersect(_OfTwo):
    """The set intersection; with bag=True the smaller multiplicity of each record."""

    bag: bool = False
    op: Tag["intersect"] = field(default="intersect", repr=False)

    stability = (1, 1)

    def rows_at_most(self, left: int, right: int) -> int:
        return min(left, right)


@dataclass(frozen=True)
class Except(_OfTwo):
    """The set difference; with bag=True the difference of multiplicities."""

    bag: bool = False
    op: Tag["except"] = field(default="except", repr=False)

    stability = (1, 1)

    def rows_at_most(self, left: int, right: int) -> int:
        return left


@dataclass(frozen=True)
class SemiJoin:
    """The left records whose key occurs on the right (keep) or does not; a null key occurs nowhere."""

    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    keep: bool = True
    op: Tag["semi_join"] = field(default="semi_join", repr=False)

    stability = (1, UNBOUNDED)

    def shape(self, left: Schema, right: Schema) -> Schema:
        _matching_keys(self.left_keys, left, self.right_keys, right)
        return left

    def rows_at_most(self, left: int, right: int) -> int:
        return left


@dataclass(frozen=True)
class GroupJoin:
    """One record per key of either side: the key, aggregates of its left and of its right members.

    A null key joins nothing. In the keys and aggregates each side sees its own columns.
    A side without aggregates is looked at for its keys only.
    """

    names: tuple[str, ...]
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    left_aggregates: Aggregates
    right_aggregates: Aggregates
    op: Tag["group_join"] = field(default="group_join", repr=False)

    @property
    def stability(self) -> tuple[Stability, ...]:
        return (2 if self.left_aggregates else 1, 2 if self.right_aggregates else 1)

    def shape(self, left: Schema, right: Schema) -> Schema:
        types = _matching_keys(self.left_keys, left, self.right_keys, right)
        if len(self.names) != len(types):
            raise BadTransformation("group_join needs a name for every key")
        keys = zip(self.names, types, strict=True)
        lefts = aggregate_columns(self.left_aggregates, left)
        rights = aggregate_columns(self.right_aggregates, right)
        return checked_schema((*keys, *lefts, *rights))

    def rows_at_most(self, left: int, right: int) -> int:
        return left + right


@dataclass(frozen=True)
class Join:
    """Pairs of records with equal keys, after each side is truncated per key; a null key joins nothing.

    The join law: a left truncation of stability a that keeps at most L records
    per key, and a right one of b and R, give (a·R, b·L). The record sees the
    left columns as l.name, the right ones as r.name. A side of which it sees
    the keys only, as of a whole record that is the key, has a truncation of
    stability 1.

    outer: a left record without a pair is kept, beside nulls. It has one record
    in the result until it has pairs, so one on the right can change two for
    each of L: (a·R, 2·L).
    """

    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    left: Truncation
    right: Truncation
    record: Fields
    outer: bool = False
    op: Tag["join"] = field(default="join", repr=False)

    @property
    def stability(self) -> tuple[Stability, ...]:
        a = 1 if self._is_told("l.", self.left_keys) else self.left.stability
        b = 1 if self._is_told("r.", self.right_keys) else self.right.stability
        b = 2 if self.outer else b
        return (_times(a, self.right.at_most), _times(b, self.left.at_most))

    def _is_told(self, side: str, keys: tuple[Expression, ...]) -> bool:
        known = Told([_beside(side, key) for key in keys], side)
        # What is of the right usually comes last, and the first that is not told decides.
        record = self.record if side == "l." else reversed(self.record)
        return all(known.tell(value) for _, value in record)

    def shape(self, left: Schema, right: Schema) -> Schema:
        for side in (self.left, self.right):
            if isinstance(side, First):
                check_count(side.at_most, "first")
        _matching_keys(self.left_keys, left, self.right_keys, right)
        if self.outer and self._is_told("r.", ()):
            raise BadTransformation("an outer join needs a column of the right, which is null beside nothing")
        return _record_schema(self.record, joined_schema(left, right))

    def rows_at_most(self, left: int, right: int) -> int:
        of_left, of_right = _least(left, self.left.at_most), _least(right, self.right.at_most)
        if self.outer:
            return min(left * max(of_right, 1), left + right * of_left)
        return min(left * of_right, right * of_left)


@dataclass(frozen=True)
class PartOf(_OfOne):
    """The records of one part of a partition."""

    by: "Partitioning"
    index: int
    op: Tag["part"] = field(default="part", repr=False)

    stability = (1,)

    def shape(self, table: Schema) -> Schema:
        check_partitioning(self.by, table)
        if not 0 <= self.index < len(self.by.keys):
            raise BadPartition(f"there is no part number {self.index}")
        return table


def joined_schema(left: Schema, right: Schema) -> Schema:
    """The schema that a join's record sees."""
    lefts = [(f"l.{name}", type_) for name, type_ in left.columns]
    return Schema((*lefts, *[(f"r.{name}", type_) for name, type_ in right.columns]))


def every_column(schema: Schema) -> tuple[Expression, ...]:
    """The whole record as a key."""
    return tuple(Column(name) for name in schema.names())


def _beside(side: str, key: Expression) -> Expression:
    """A side's key as the record of a join would write it."""
    match key:
        case Column(name=name):
            return Column(side + name)
        case Apply(operator=operator, arguments=arguments):
            return Apply(operator, tuple(_beside(side, argument) for argument in arguments))
        case _:
            return key


def _times(stability: int, at_most: Stability) -> Stability:
    return at_most if isinstance(at_most, Unbounded) else stability * at_most


def _least(rows: int, at_most: Stability) -> int:
    return rows if isinstance(at_most, Unbounded) else min(rows, at_most)


def check_count(count: object, what: str) -> None:
    if type(count) is not int or count < 1:
        raise BadTransformation(f"{what} needs a whole number ≥ 1")


def checked_schema(columns: tuple[tuple[str, Type], ...]) -> Schema:
    names = [name for name, _ in columns]
    if not names or classes_of(names) != {id(str)} or len(set(names)) != len(names) or "" in names:
        raise BadTransformation("a table needs one or more columns with different names")
    if not is_text("".join(names)):
        raise BadTransformation("the name of a column is Unicode text: one has a lone surrogate")
    if not {type_ for _, type_ in columns}.issubset(COLUMN_TYPES):
        raise BadTransformation("an array is not a column: make records of it with select_many")
    return Schema(columns)


def _record_schema(record: Fields, table: Schema, *, empty: bool = False) -> Schema:
    columns = tuple([(name, type_of(value, table)) for name, value in record])
    return Schema(()) if empty and not columns else checked_schema(columns)


def _key_types(keys: tuple[Expression, ...], table: Schema) -> tuple[Type, ...]:
    types = tuple(type_of(key, table) for key in keys)
    if any(type_ not in COLUMN_TYPES for type_ in types):
        raise BadTransformation("an array cannot be a key")
    return types


def _matching_keys(
    left_keys: tuple[Expression, ...], left: Schema, right_keys: tuple[Expression, ...], right: Schema
) -> tuple[Type, ...]:
    lefts, rights = _key_types(left_keys, left), _key_types(right_keys, right)
    if not lefts or lefts != rights:
        raise BadTransformation(f"join keys must have the same types: {lefts} and {rights} do not")
    return lefts
