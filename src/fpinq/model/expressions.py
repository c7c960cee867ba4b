"""The closed row-expression language: syntax and types.

An expression sees one row and nothing else: no other row, no rank, no clock,
no random number. It is *total*: where it has no value it is null, and it never
raises. Its operators, with their types and values, are in `operators`; this
module knows only how they are put together.

Types are explicit: an operator takes exactly the types it says, and a
conversion is an operator too. (The fluent client inserts the obvious ones.)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime
from enum import Enum
from math import isnan
from types import NoneType
from typing import Any, ClassVar
from typing import Literal as Tag

from fpinq.model.errors import BadExpression, UnknownColumn
from fpinq.model.frozen import dataclass

Value = bool | int | float | str | date | datetime | None
Row = Mapping[str, Value]

# An expression is a tree: a shared subexpression counts as often as it is used.
MAX_DEPTH = 100
MAX_NODES = 10_000

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Type(Enum):
    """The type of a column or an expression. Every type contains null."""

    BOOL = "bool"
    INT64 = "int64"
    FLOAT64 = "float64"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    STRINGS = "strings"  # an array: select_many makes records of it, nothing else takes it

    __hash__ = object.__hash__  # as it is compared: by which it is

    def __repr__(self) -> str:
        return self.value


COLUMN_TYPES = (Type.BOOL, Type.INT64, Type.FLOAT64, Type.STRING, Type.DATE, Type.TIMESTAMP)


@dataclass(frozen=True)
class Schema:
    """The public shape of a table: its columns and their types, in order."""

    columns: tuple[tuple[str, Type], ...]

    op = "schema"

    # By their names, once one is asked for.
    _types: ClassVar[Mapping[str, Type] | None] = None

    @staticmethod
    def of(columns: Mapping[str, Type]) -> "Schema":
        """The schema of a mapping from names to types."""
        return Schema(tuple(columns.items()))

    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple([name for name, _ in self.columns])

    def types(self) -> tuple[Type, ...]:
        """The column types, in order."""
        return tuple([type_ for _, type_ in self.columns])

    def type_of(self, name: str) -> Type:
        """The type of a column; UnknownColumn, with the nearest name, if there is none."""
        if self._types is None:
            object.__setattr__(self, "_types", dict(reversed(self.columns)))
        found: Type | None = self._types.get(name)  # type: ignore[union-attr]
        if found is None:
            raise UnknownColumn(name, self.names())
        return found


@dataclass(frozen=True, slots=True)
class Column:
    """The row's value in a column."""

    name: str
    op: Tag["column"] = field(default="column", repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. It carries its type: 1, 1.0 and true are three different constants."""

    value: Value
    type: Type
    op: Tag["literal"] = field(default="literal", repr=False)

    def __post_init__(self) -> None:
        if self.type is Type.STRINGS:
            raise BadExpression("there are no constant arrays: use split")
        object.__setattr__(self, "value", checked_value(self.value, self.type))

    @staticmethod
    def of(value: Value) -> "Literal":
        """The constant of a Python value, whose type says which."""
        return Literal(value, type_of_value(value))


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator applied to expressions."""

    operator: str
    arguments: tuple["Expression", ...]
    op: Tag["apply"] = field(default="apply", repr=False)
    depth: int = field(init=False, repr=False, compare=False)
    nodes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth = 1 + max([depth_of(a) for a in self.arguments], default=0)
        nodes = 1 + sum([nodes_of(a) for a in self.arguments])
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise BadExpression(
                f"expression too large: at most {MAX_DEPTH} levels and {MAX_NODES} nodes; "
                "compute parts of it in a with_columns step first"
            )
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "nodes", nodes)


Expression = Column | Literal | Apply


def depth_of(expression: Expression) -> int:
    """How deeply operators are nested."""
    return expression.depth if isinstance(expression, Apply) else 0


def nodes_of(expression: Expression) -> int:
    """How many nodes the expression has, as a tree."""
    return expression.nodes if isinstance(expression, Apply) else 1


def columns_of(expression: Expression) -> Iterator[str]:
    """The columns an expression reads, with repetitions."""
    if isinstance(expression, Column):
        yield expression.name
    elif isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from columns_of(argument)


# Exact types again: a subclass of int or str may answer == as it likes. So may a class, through its
# metaclass: it is asked which it is, not what it equals.
_TYPE_OF: dict[int, Type] = {
    id(bool): Type.BOOL,
    id(int): Type.INT64,
    id(float): Type.FLOAT64,
    id(str): Type.STRING,
    id(date): Type.DATE,
    id(datetime): Type.TIMESTAMP,
}


# The class that the values of a type are of, by id.
CLASS_OF: dict[Type, int] = {type_: class_ for class_, type_ in _TYPE_OF.items()}


def type_of_value(value: object) -> Type:
    """The type of a Python value; BadExpression if the language has no such values."""
    found = _TYPE_OF.get(id(type(value)))
    if found is None:
        raise BadExpression(
            f"{type(value).__name__} is not a value of a row: use bool, int, float, str, date or datetime"
        )
    return found


def checked_value(value: Value, type_: Type) -> Value:
    """value as the canonical value of its type: NaN is null, −0 is 0. BadExpression if it is none of it."""
    if value is None:
        return None
    if type_of_value(value) is not type_:
        raise BadExpression(f"expected {type_.value}, not {type_of_value(value).value}")
    if type_ is Type.INT64 and not INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]
        raise BadExpression("integers have 64 bits: this one is too large")
    if type_ is Type.FLOAT64:
        return canonical_float(value)  # type: ignore[arg-type]
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise BadExpression("timestamps have no time zone: convert to UTC and drop it")
    if isinstance(value, str) and not is_text(value):
        raise BadExpression("strings are Unicode text: this one has a lone surrogate")
    return value


def check_values(values: Sequence[Value], type_: Type) -> None:
    """BadExpression unless all values are of a type, as `checked_value` says one by one; of many at once."""
    if not classes_of(values) <= {id(NoneType), CLASS_OF[type_]} or not _are_within(values, type_):
        _ = [checked_value(value, type_) for value in values]  # the first that is not raises


def classes_of(values: Iterable[object]) -> set[int]:
    """Which classes values are of, by id: what a class equals is up to its metaclass."""
    return set(map(id, map(type, values)))


def _are_within(values: Sequence[Any], type_: Type) -> bool:
    """Whether values of the class of a type, or null, are all values of the type."""
    present = [value for value in values if value is not None] if None in values else values
    if not present or type_ in (Type.BOOL, Type.FLOAT64, Type.DATE):
        return True
    if type_ is Type.INT64:
        return bool(min(present) >= INT64_MIN and max(present) <= INT64_MAX)
    if type_ is Type.STRING:
        return is_text("".join(present))
    return all(value.tzinfo is None for value in present)


def is_text(value: str) -> bool:
    """Whether a string is Unicode text: one with a lone surrogate cannot be written down."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def canonical_float(number: float) -> float | None:
    """The one float that stands for number: NaN is null, −0 is 0."""
    return None if isnan(number) else number + 0.0
