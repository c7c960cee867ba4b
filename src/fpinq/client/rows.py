"""Symbolic rows: what a program's lambda is called on, once.

`lambda x: x.age > 17` gets a `Row`; `x.age` is a `Cell`, and operators and
methods on cells make new cells. No row of data is ever near: the lambda yields
a tree of the closed row language, and the tree is what is sent. The obvious
conversions are inserted here (an integer beside a float becomes a float); what
the tree means is `model.operators`' business.
"""

from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from typing import NoReturn

from fpinq.client.shown import visibly
from fpinq.client.spelling import spell
from fpinq.model.errors import BadExpression, ProgramError, suggest
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.operators import OPERATORS, type_applied
from fpinq.model.visible import visible

BOOL, INT64, FLOAT64, STRING = Type.BOOL, Type.INT64, Type.FLOAT64, Type.STRING
DATE, TIMESTAMP = Type.DATE, Type.TIMESTAMP

_NO_TRUTH = (
    "a symbolic row has no values yet, so Python's {what} cannot look at them. Write "
    "(x.a > 1) & (x.b < 2) for and, (x.a > 1) | (x.b < 2) for or, ~(x.a > 1) for not, "
    "fp.if_else(x.a > 1, x.b, x.c) for if, max and min, x.a.is_in([1, 2]) for in, "
    "(1 < x.a) & (x.a < 5) for 1 < x.a < 5"
)


class Call:
    """One call of a lambda: the rows it was given belong together."""


class Symbolic:
    """Refuses what would need the row's values."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's scalars leave operators to us
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        raise BadExpression(_NO_TRUTH.format(what="and, or, not, if, in or a chained comparison"))

    def __iter__(self) -> NoReturn:
        raise BadExpression(
            "a symbolic row cannot be looped over: write the expression out; "
            'for the pieces of a text use select_many(lambda x: x.line.split(" "), at_most=k)'
        )

    def __len__(self) -> NoReturn:
        raise BadExpression("len() needs a value: write x.s.length() for the length of a text")

    def __contains__(self, item: object) -> NoReturn:
        raise BadExpression(
            'in needs a value: write x.s.contains("a") for a part of a text, '
            "x.a.is_in([1, 2]) for one of several"
        )

    def __int__(self) -> NoReturn:
        raise BadExpression('int() needs a value: write x.a.cast("int64")')

    def __float__(self) -> NoReturn:
        # Whatever wants a float ends up here, and cannot be told from float() itself.
        raise BadExpression(
            "functions of the math module and float() need a value: write x.a.log() for math.log(x.a), "
            'and so x.a.sqrt(), x.a.exp(), x.a.power(2); x.a.cast("float64") for float(x.a)'
        )

    def __index__(self) -> NoReturn:
        raise BadExpression("a symbolic value cannot be an index: write the expression out")


@visibly
class Cell(Symbolic):
    """A symbolic value: a column of the row, or something computed from the row.

    Its tree in the row language, its type, and the call of a lambda that it
    belongs to; a constant belongs to none.
    """

    __slots__ = ("call", "tree", "type")

    def __init__(self, tree: Expression, type_: Type, call: Call | None) -> None:
        self.tree = tree
        self.type = type_
        self.call = call

    def __repr__(self) -> str:
        return f"<{spell(self.tree)}: {self.type.value}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        known = [n for n in dir(type(self)) if not n.startswith("_") and n not in self.__slots__]
        raise BadExpression(
            f"{spell(self.tree)} has no {name!r}{suggest(name, known)}; "
            f"a column or expression has: {', '.join(known)}"
        )

    def __getitem__(self, item: object) -> NoReturn:
        raise BadExpression("write x.s.substring(start, length) for a piece of a text")

    # ── arithmetic ───────────────────────────────────────────────────────────────────

    def __add__(self, other: object) -> "Cell":
        return _add(self, other)

    def __radd__(self, other: object) -> "Cell":
        return _add(other, self)

    def __sub__(self, other: object) -> "Cell":
        return _binary("subtract", self, other)

    def __rsub__(self, other: object) -> "Cell":
        return _binary("subtract", other, self)

    def __mul__(self, other: object) -> "Cell":
        return _binary("multiply", self, other)

    def __rmul__(self, other: object) -> "Cell":
        return _binary("multiply", other, self)

    def __truediv__(self, other: object) -> "Cell":
        return _floats("divide", self, other)

    def __rtruediv__(self, other: object) -> "Cell":
        return _floats("divide", other, self)

    def __floordiv__(self, other: object) -> "Cell":
        return _binary("floor_divide", self, other)

    def __rfloordiv__(self, other: object) -> "Cell":
        return _binary("floor_divide", other, self)

    def __mod__(self, other: object) -> "Cell":
        return _binary("modulo", self, other)

    def __rmod__(self, other: object) -> "Cell":
        return _binary("modulo", other, self)

    def __pow__(self, other: object) -> "Cell":
        return _floats("power", self, other)

    def __rpow__(self, other: object) -> "Cell":
        return _floats("power", other, self)

    def __neg__(self) -> "Cell":
        return apply("negate", self)

    def __pos__(self) -> "Cell":
        return self

    def __abs__(self) -> "Cell":
        return apply("abs", self)

    def abs(self) -> "Cell":
        """|x|, as abs(x)."""
        return apply("abs", self)

    def sign(self) -> "Cell":
        """−1, 0 or 1."""
        return apply("sign", self)

    def floor(self) -> "Cell":
        """The largest whole number at most x."""
        return self if self.type is INT64 else apply("floor", self)

    def ceil(self) -> "Cell":
        """The smallest whole number at least x."""
        return self if self.type is INT64 else apply("ceil", self)

    def round(self) -> "Cell":
        """The nearest whole number, ties to even."""
        return self if self.type is INT64 else apply("round", self)

    __floor__, __ceil__ = floor, ceil

    def __round__(self, digits: int | None = None) -> "Cell":
        if digits not in (None, 0):
            raise BadExpression("round to whole numbers only: write (x.a * 100).round() / 100")
        return self.round()

    def sqrt(self) -> "Cell":
        """The square root; null of a negative number."""
        return _floats("sqrt", self)

    def exp(self) -> "Cell":
        """e to the power x."""
        return _floats("exp", self)

    def log(self) -> "Cell":
        """The natural logarithm; null of a number that is not positive."""
        return _floats("log", self)

    def power(self, exponent: object) -> "Cell":
        """x to a power, as x ** exponent; a float."""
        return _floats("power", self, exponent)

    def clip(self, lower: object, upper: object) -> "Cell":
        """x, or the bound that it exceeds. The bounds are constants."""
        if isinstance(lower, Symbolic) or isinstance(upper, Symbolic):
            raise BadExpression("clip needs constant bounds: write fp.if_else(x.a > x.b, x.b, x.a)")
        return apply("clip", *alike(self, lower, upper))

    def cast(self, type_: "str | Type") -> "Cell":
        """x as bool, int64, float64, string, date or timestamp; null where it is none."""
        wanted = column_type(type_)
        if wanted is self.type:
            return self
        if f"to_{wanted.value}" not in OPERATORS:
            raise BadExpression(f"nothing can be cast to {wanted.value}: compare it with something")
        return apply(f"to_{wanted.value}", self)

    # ── comparison and logic ─────────────────────────────────────────────────────────

    def __eq__(self, other: object) -> "Cell":  # type: ignore[override]
        return _compare("equal", self, other)

    def __ne__(self, other: object) -> "Cell":  # type: ignore[override]
        return _compare("not_equal", self, other)

    def __lt__(self, other: object) -> "Cell":
        return _compare("less", self, other)

    def __le__(self, other: object) -> "Cell":
        return _compare("less_equal", self, other)

    def __gt__(self, other: object) -> "Cell":
        return _compare("greater", self, other)

    def __ge__(self, other: object) -> "Cell":
        return _compare("greater_equal", self, other)

    def __and__(self, other: object) -> "Cell":
        return _logical("and", self, other)

    def __rand__(self, other: object) -> "Cell":
        return _logical("and", other, self)

    def __or__(self, other: object) -> "Cell":
        return _logical("or", self, other)

    def __ror__(self, other: object) -> "Cell":
        return _logical("or", other, self)

    def __xor__(self, other: object) -> "Cell":
        return _compare("not_equal", self, other)

    def __invert__(self) -> "Cell":
        if self.type is not BOOL:
            raise BadExpression(f"~ negates a condition, and {spell(self.tree)} is {self.type.value}")
        return apply("not", self)

    def is_in(self, values: Iterable[object]) -> "Cell":
        """Whether x is one of several constants."""
        if isinstance(values, Symbolic | str | Mapping) or not isinstance(values, Iterable):
            raise BadExpression("is_in needs a list of constants: x.a.is_in([1, 2])")
        listed = [plain(value) for value in values]
        if isinstance(values, set | frozenset):
            listed.sort(key=repr)  # the same tree in every process
        if not listed:
            raise BadExpression("is_in needs one or more constants")
        if any(value is None for value in listed):
            raise BadExpression("is_in compares values: write x.a.is_null() | x.a.is_in([…]) for null")
        if any(isinstance(value, Symbolic) for value in listed):
            raise BadExpression("is_in needs constants: write (x.a == x.b) | (x.a == x.c)")
        return apply("is_in", *alike(self, *listed))

    def is_null(self) -> "Cell":
        """Whether there is no value."""
        return apply("is_null", self)

    def fill_null(self, value: object) -> "Cell":
        """x, or the value where there is none."""
        if value is None:
            raise BadExpression("fill_null needs a value other than None")
        return apply("fill_null", *alike(self, value))

    # ── text ─────────────────────────────────────────────────────────────────────────

    def lower(self) -> "Cell":
        """In lower case."""
        return apply("lower", self)

    def upper(self) -> "Cell":
        """In upper case."""
        return apply("upper", self)

    def strip(self) -> "Cell":
        """Without space at both ends."""
        return apply("strip", self)

    def length(self) -> "Cell":
        """How many characters."""
        return apply("length", self)

    def substring(self, start: int, length: int) -> "Cell":
        """length characters from start, counted from 0."""
        return apply("substring", self, constant(start, INT64), constant(length, INT64))

    def contains(self, part: object) -> "Cell":
        """Whether the part occurs in the text."""
        return apply("contains", *alike(self, part))

    def starts_with(self, part: object) -> "Cell":
        """Whether the text begins with the part."""
        return apply("starts_with", *alike(self, part))

    def ends_with(self, part: object) -> "Cell":
        """Whether the text ends with the part."""
        return apply("ends_with", *alike(self, part))

    def concat(self, other: object) -> "Cell":
        """Both texts, one after the other; as x.s + other."""
        return apply("concat", *alike(self, other))

    def split(self, separator: str) -> "Cell":
        """The pieces between separators: an array, for select_many."""
        return apply("split", self, constant(separator, STRING))

    # ── time ─────────────────────────────────────────────────────────────────────────

    def year(self) -> "Cell":
        """The year."""
        return apply("year", self)

    def month(self) -> "Cell":
        """The month, 1 to 12."""
        return apply("month", self)

    def day(self) -> "Cell":
        """The day of the month."""
        return apply("day", self)

    def weekday(self) -> "Cell":
        """The day of the week, Monday is 0."""
        return apply("weekday", self)

    def hour(self) -> "Cell":
        """The hour, 0 to 23."""
        return apply("hour", self)


@visibly
class Row(Symbolic):
    """A symbolic row: `x.age`, or `x["first name"]` for any column at all."""

    __slots__ = ("__call", "__prefix", "__schema")

    def __init__(self, schema: Schema, call: Call, prefix: str = "") -> None:
        self.__schema = schema
        self.__call = call
        self.__prefix = prefix

    def __getattr__(self, name: str) -> Cell:
        if name.startswith("__") or (name.startswith("_") and name not in self.__schema.names()):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Cell:
        if type(name) is not str:
            raise BadExpression(f'columns have names: write x["age"], not x[{name!r}]')
        return Cell(Column(self.__prefix + name), self.__schema.type_of(name), self.__call)

    def __dir__(self) -> list[str]:
        return list(self.__schema.names())

    def __repr__(self) -> str:
        return f"<row: {', '.join(map(visible, self.__schema.names()))}>"


def cells(row: Row) -> dict[str, Cell]:
    """Every column of a row, in order."""
    return {name: row[name] for name in row.__dir__()}


# ── building cells ───────────────────────────────────────────────────────────────────


def apply(operator: str, *arguments: Cell) -> Cell:
    """The operator applied to cells, or a BadExpression that shows where."""
    calls = {cell.call for cell in arguments if cell.call is not None}
    if len(calls) > 1:
        raise BadExpression(
            "an expression sees one row: this one mixes rows of different tables or lambdas. "
            "Join the tables first"
        )
    tree = Apply(operator, tuple([cell.tree for cell in arguments]))
    try:  # typed from the arguments' types, so that building a large tree stays cheap
        type_ = type_applied(tree, tuple([cell.type for cell in arguments]))
    except BadExpression as error:
        raise BadExpression(f"{spell(tree)}: {error}") from None
    return Cell(tree, type_, calls.pop() if calls else None)


def constant(value: object, type_: Type | None = None) -> Cell:
    """A constant as a cell: of the type given where that is an obvious reading, else of its own."""
    value = plain(value)
    if isinstance(value, Symbolic):
        raise BadExpression("this argument must be a constant")
    if type_ is FLOAT64 and type(value) is int:
        try:
            value = float(value)
        except OverflowError:
            raise BadExpression("this number is too large for a float") from None
    if type_ is TIMESTAMP and type(value) is date:
        value = datetime.combine(value, time())
    if value is None:
        if type_ is None:
            raise BadExpression("None has no type here: write x.a.is_null(), or use it beside a column")
        return Cell(Literal(None, type_), type_, None)
    literal = Literal.of(value)  # type: ignore[arg-type]
    return Cell(literal, literal.type, None)


def plain(value: object) -> object:
    """A constant as a plain Python value: answers, NumPy's and pandas' scalars are taken by their value."""
    if isinstance(value, Symbolic) or type(value) in (bool, int, float, str, date, datetime):
        return value
    if hasattr(value, "__fpinq_value__"):
        return value.__fpinq_value__()
    module = type(value).__module__.partition(".")[0]
    if module == "numpy" and hasattr(value, "item"):
        return value.item()
    if module == "pandas" and hasattr(value, "to_pydatetime"):
        return value.to_pydatetime()
    return value


def alike(*values: object) -> tuple[Cell, ...]:
    """Cells of one type where an obvious conversion gives one: int to float, date to timestamp."""
    values = tuple(plain(value) for value in values)
    types = {value.type for value in values if isinstance(value, Cell)}
    types |= {Literal.of(v).type for v in values if not isinstance(v, Symbolic) and v is not None}  # type: ignore[arg-type]
    wanted = next(iter(types)) if len(types) == 1 else None
    if types == {INT64, FLOAT64}:
        wanted = FLOAT64
    if types == {DATE, TIMESTAMP}:
        wanted = TIMESTAMP
    return tuple(_as(value, wanted) for value in values)


def _as(value: object, wanted: Type | None) -> Cell:
    if not isinstance(value, Symbolic):
        return constant(value, wanted)
    if not isinstance(value, Cell):
        raise BadExpression("this is a whole row (or _ beside a lambda's row): say which column, as in x.age")
    if wanted is not None and value.type is not wanted and isinstance(value.tree, Literal):
        return constant(value.tree.value, wanted)
    return value if wanted in (None, value.type) else value.cast(wanted)


def _binary(operator: str, *values: object) -> Cell:
    _refuse_none(*values)
    return apply(operator, *alike(*values))


def _add(left: object, right: object) -> Cell:
    _refuse_none(left, right)
    pair = alike(left, right)
    return apply("concat" if any(cell.type is STRING for cell in pair) else "add", *pair)


def _floats(operator: str, *values: object) -> Cell:
    _refuse_none(*values)
    alike = [_as(plain(value), None) for value in values]
    return apply(operator, *(_as(c, FLOAT64) if c.type in (INT64, FLOAT64) else c for c in alike))


def _compare(operator: str, left: object, right: object) -> Cell:
    if right is None:
        raise BadExpression("a comparison with None is never true: write x.a.is_null() or ~x.a.is_null()")
    return apply(operator, *alike(left, right))


def _logical(operator: str, *values: object) -> Cell:
    pair = alike(*values)
    for cell in pair:
        if cell.type is not BOOL:
            raise BadExpression(
                f"& and | join conditions, and {spell(cell.tree)} is {cell.type.value}: "
                "comparisons need brackets, as in (x.a > 1) & (x.b < 2)"
            )
    return apply(operator, *pair)


def _refuse_none(*values: object) -> None:
    if any(value is None for value in values):
        raise BadExpression("None is no number: use x.a.fill_null(0) for missing values")


def column_type(type_: object) -> Type:
    """A column type by its name."""
    if isinstance(type_, Type) and type_ is not Type.STRINGS:
        return type_
    for known in (BOOL, INT64, FLOAT64, STRING, DATE, TIMESTAMP):
        if type_ == known.value:
            return known
    raise ProgramError(f"unknown type {type_!r}: the types are bool, int64, float64, string, date, timestamp")
