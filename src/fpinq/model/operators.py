"""The operators of the row language: for each, its types and its value, written down once.

An operator is total. A value it does not have (overflow of 64 bits, division by
zero, a logarithm of −1, a date that does not exist) is null; so is the result
on a null argument, unless the operator is about nulls. Engines are tested
against these definitions; none defines its own.

Numbers  int64 with null on overflow; float64 as IEEE doubles, with NaN null and −0 zero.
         // and % round towards −∞, as in Python; round is half to even.
Strings  are sequences of code points, compared by code point.
Time     naive timestamps in microseconds; years 1 to 9999; Monday is weekday 0.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time
from typing import Any

from fpinq.model.errors import BadExpression, suggest
from fpinq.model.expressions import (
    COLUMN_TYPES,
    INT64_MAX,
    INT64_MIN,
    Apply,
    Column,
    Expression,
    Literal,
    Row,
    Schema,
    Type,
    canonical_float,
)
from fpinq.model.frozen import dataclass

BOOL, INT64, FLOAT64 = Type.BOOL, Type.INT64, Type.FLOAT64
STRING, DATE, TIMESTAMP = Type.STRING, Type.DATE, Type.TIMESTAMP

# The longest string an operator makes: a bound on what one row can cost.
MAX_STRING = 65_536

# An engine may compare this many characters at once with what it searches for.
SEARCHED = 16

# Case mapping is this table and nothing else: engines and versions disagree beyond it.
_BLOCKS = [(0x41, 0x5B), (0xC0, 0xD7), (0xD8, 0xDF), (0x391, 0x3A2), (0x3A3, 0x3AA), (0x410, 0x430)]
UPPER = "".join(chr(c) for first, after in _BLOCKS for c in range(first, after))
LOWER = "".join(c.lower() for c in UPPER)
_LOWERED, _RAISED = str.maketrans(UPPER, LOWER), str.maketrans(LOWER, UPPER)
SPACE = " \t\n\r\f\v"


@dataclass(frozen=True)
class Operator:
    """An operator: the types it takes and gives, and its value.

    `literal` says which arguments must be constants, `takes_null` that the
    value is asked for null arguments too.

    What it costs is public: `units` for every application, `per_character` of
    its text arguments; a search costs that for every sixteen characters of what
    it looks for. `length` is how long the text it gives can be, from how long
    its arguments can be; 0 if it gives none. A unit is what `costs` says.
    """

    signatures: tuple[tuple[tuple[Type, ...], Type], ...]
    value: Callable[..., Any]
    literal: frozenset[int] = frozenset()
    takes_null: bool = False
    variadic: bool = False
    units: int = 20
    per_character: int = 1
    search: bool = False
    length: Callable[..., int] = lambda *lengths: 0

    def cost(self, lengths: Sequence[int], once: int = 1, character: int = 1) -> int:
        """The units of one application to arguments of these lengths; what is no text has length 0.

        Where an engine takes more: so many times, for what is done once and for every character.
        """
        repeated = 1 + lengths[1] // SEARCHED if self.search else 1
        characters = self.per_character * sum(lengths) * repeated
        return once * (self.units + len(lengths)) + character * characters


def type_of(expression: Expression, schema: Schema) -> Type:
    """The type of an expression over a schema; a typed error if it has none."""
    if isinstance(expression, Column):
        return schema.type_of(expression.name)
    if isinstance(expression, Literal):
        return expression.type
    if expression.operator not in OPERATORS:
        name = expression.operator
        raise BadExpression(f"unknown operator {name!r}{suggest(name, OPERATORS)}")
    return type_applied(expression, tuple([type_of(argument, schema) for argument in expression.arguments]))


def type_applied(expression: Apply, given: tuple[Type, ...]) -> Type:
    """The type of an operator applied to arguments of these types; a typed error if it takes none such."""
    operator = OPERATORS[expression.operator]
    if operator.literal or operator.variadic:
        _check_literals(expression, operator)
    asked = given[:2] if operator.variadic else given
    for takes, gives in operator.signatures:
        if takes == asked and (not operator.variadic or len(set(given[1:])) <= 1):
            if operator.literal:
                _check_constants(expression)
            return gives
    wanted = " or ".join(sorted({", ".join(t.value for t in takes) for takes, _ in operator.signatures}))
    have = ", ".join(t.value for t in given)
    raise BadExpression(f"{expression.operator} takes ({wanted}), not ({have})")


def _check_literals(expression: Apply, operator: Operator) -> None:
    """BadExpression unless the arguments that must be constants are."""
    for position, argument in enumerate(expression.arguments):
        if (position in operator.literal or (operator.variadic and position)) and not (
            isinstance(argument, Literal) and argument.value is not None
        ):
            raise BadExpression(f"argument {position + 1} of {expression.operator} must be a constant")


def _check_constants(expression: Apply) -> None:
    """BadExpression unless the constants make sense together; their types do."""
    constants: list[Any] = [a.value for a in expression.arguments if isinstance(a, Literal)]
    match expression.operator, constants:
        case "clip", [*_, lower, upper] if lower > upper:
            raise BadExpression("clip needs a lower bound that is at most the upper bound")
        case "substring", [*_, start, length] if min(start, length) < 0:
            raise BadExpression("substring needs start ≥ 0 and length ≥ 0")
        case "split", [*_, ""]:
            raise BadExpression("split needs a separator that is not empty")


def evaluate(expression: Expression, row: Row) -> Any:
    """The value of a well-typed expression on a row."""
    if isinstance(expression, Column):
        return row[expression.name]
    if isinstance(expression, Literal):
        return expression.value
    operator = OPERATORS[expression.operator]
    arguments = [evaluate(argument, row) for argument in expression.arguments]
    if not operator.takes_null and any(argument is None for argument in arguments):
        return None
    return operator.value(*arguments)


def _int(number: int) -> int | None:
    return number if INT64_MIN <= number <= INT64_MAX else None


def _arithmetic(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """f on two integers or two floats, null where the result is not in the type."""

    def apply(a: Any, b: Any) -> Any:
        result = f(a, b)
        return canonical_float(result) if isinstance(result, float) else _int(result)

    return apply


def _divide(a: float, b: float) -> float | None:
    return None if b == 0 else canonical_float(a / b)


def _floor_divide(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    return _int(a // b) if isinstance(a, int) else _floor(canonical_float(a / b))


def _modulo(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, int):
        return a % b
    return canonical_float(a % b) if math.isfinite(a) else None


def _floor(number: float | None) -> float | None:
    if number is None or math.isinf(number):
        return number
    return canonical_float(float(math.floor(number)))


def _ceil(number: float) -> float | None:
    return number if math.isinf(number) else canonical_float(float(math.ceil(number)))


def _round(number: float) -> float | None:
    return number if math.isinf(number) else canonical_float(float(round(number)))


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def _exp(number: float) -> float:
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def _power(base: float, exponent: float) -> float | None:
    if base == 0 and exponent < 0:
        return None
    try:
        return canonical_float(math.pow(base, exponent))
    except ValueError:
        return None
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf


def _log(number: float) -> float | None:
    return math.log(number) + 0.0 if number > 0 else None


def _sqrt(number: float) -> float | None:
    return math.sqrt(number) + 0.0 if number >= 0 else None


def _clip(number: Any, lower: Any, upper: Any) -> Any:
    return min(max(number, lower), upper)


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def _truncate(number: float) -> int | None:
    return _int(math.trunc(number)) if math.isfinite(number) else None


_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?)?"
)

# A truth, spelled as programs write it. 0 and 1 are integers.
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


def _parse_bool(text: str) -> bool | None:
    return text in TRUE if text in TRUE + FALSE else None


def _parse_int(text: str) -> int | None:
    return _int(int(text)) if _INTEGER.fullmatch(text) else None


def _parse_float(text: str) -> float | None:
    return canonical_float(float(text)) if _FLOAT.fullmatch(text) else None


def _parse_date(text: str) -> date | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _parse_timestamp(text: str) -> datetime | None:
    if not _TIMESTAMP.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _concat(a: str, b: str) -> str | None:
    return a + b if len(a) + len(b) <= MAX_STRING else None


def _longest(*lengths: int) -> int:
    return max(lengths)


def _together(a: int, b: int) -> int:
    return min(a + b, MAX_STRING)


# The digits of an integer and its sign, or of a date.
_WRITTEN = 20


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time())


def _seconds(a: datetime, b: datetime) -> float:
    difference = a - b
    microseconds = (difference.days * 86_400 + difference.seconds) * 1_000_000 + difference.microseconds
    return microseconds / 1_000_000


def _difference(a: Any, b: Any) -> Any:
    if isinstance(a, datetime):
        return _seconds(a, b)
    return (a - b).days if isinstance(a, date) else _arithmetic(lambda x, y: x - y)(a, b)


def _each(types: Iterable[Type], gives: Type | None = None, arity: int = 1) -> tuple[Any, ...]:
    """One signature per type: arity arguments of it, giving it or the type named."""
    return tuple(((t,) * arity, gives or t) for t in types)


_NUMBERS = (INT64, FLOAT64)
_ORDERED = (INT64, FLOAT64, STRING, DATE, TIMESTAMP)
_TIMES = (DATE, TIMESTAMP)

OPERATORS: dict[str, Operator] = {
    "add": Operator(_each(_NUMBERS, arity=2), _arithmetic(lambda a, b: a + b)),
    "subtract": Operator(
        (*_each(_NUMBERS, arity=2), ((DATE, DATE), INT64), ((TIMESTAMP, TIMESTAMP), FLOAT64)), _difference
    ),
    "multiply": Operator(_each(_NUMBERS, arity=2), _arithmetic(lambda a, b: a * b)),
    "divide": Operator((((FLOAT64, FLOAT64), FLOAT64),), _divide),
    "floor_divide": Operator(_each(_NUMBERS, arity=2), _floor_divide),
    "modulo": Operator(_each(_NUMBERS, arity=2), _modulo),
    "negate": Operator(_each(_NUMBERS), lambda a: _arithmetic(lambda x, y: x * y)(a, -1)),
    "abs": Operator(_each(_NUMBERS), lambda a: abs(a) if isinstance(a, float) else _int(abs(a))),
    "sign": Operator(_each(_NUMBERS, INT64), _sign),
    "floor": Operator(_each([FLOAT64]), _floor),
    "ceil": Operator(_each([FLOAT64]), _ceil),
    "round": Operator(_each([FLOAT64]), _round),
    "sqrt": Operator(_each([FLOAT64]), _sqrt),
    "exp": Operator(_each([FLOAT64]), _exp),
    "log": Operator(_each([FLOAT64]), _log),
    "power": Operator(_each([FLOAT64], arity=2), _power),
    "clip": Operator(_each(_NUMBERS, arity=3), _clip, literal=frozenset({1, 2})),
    "equal": Operator(_each(COLUMN_TYPES, BOOL, 2), lambda a, b: a == b),
    "not_equal": Operator(_each(COLUMN_TYPES, BOOL, 2), lambda a, b: a != b),
    "less": Operator(_each(_ORDERED, BOOL, 2), lambda a, b: a < b),
    "less_equal": Operator(_each(_ORDERED, BOOL, 2), lambda a, b: a <= b),
    "greater": Operator(_each(_ORDERED, BOOL, 2), lambda a, b: a > b),
    "greater_equal": Operator(_each(_ORDERED, BOOL, 2), lambda a, b: a >= b),
    "and": Operator((((BOOL, BOOL), BOOL),), _and, takes_null=True),
    "or": Operator((((BOOL, BOOL), BOOL),), _or, takes_null=True),
    "not": Operator((((BOOL,), BOOL),), lambda a: not a),
    "if_else": Operator(
        tuple(((BOOL, t, t), t) for t in COLUMN_TYPES),
        lambda c, a, b: a if c else b,
        takes_null=True,
        length=_longest,
    ),
    "is_in": Operator(_each(COLUMN_TYPES, BOOL, 2), lambda a, *values: a in values, variadic=True),
    "is_null": Operator(_each(COLUMN_TYPES, BOOL), lambda a: a is None, takes_null=True),
    "fill_null": Operator(
        _each(COLUMN_TYPES, arity=2), lambda a, b: b if a is None else a, takes_null=True, length=_longest
    ),
    "to_bool": Operator((((STRING,), BOOL),), _parse_bool, units=150),
    "to_int64": Operator(
        (((BOOL,), INT64), ((FLOAT64,), INT64), ((STRING,), INT64)),
        lambda a: _parse_int(a) if isinstance(a, str) else _truncate(a),
        units=150,
    ),
    "to_float64": Operator(
        (((BOOL,), FLOAT64), ((INT64,), FLOAT64), ((STRING,), FLOAT64)),
        lambda a: _parse_float(a) if isinstance(a, str) else float(a),
        units=150,
    ),
    "to_string": Operator((((INT64,), STRING), ((DATE,), STRING)), str, units=50, length=lambda a: _WRITTEN),
    "to_date": Operator(
        (((STRING,), DATE), ((TIMESTAMP,), DATE)),
        lambda a: _parse_date(a) if isinstance(a, str) else a.date(),
        units=300,
    ),
    "to_timestamp": Operator(
        (((STRING,), TIMESTAMP), ((DATE,), TIMESTAMP)),
        lambda a: _parse_timestamp(a) if isinstance(a, str) else _midnight(a),
        units=500,
    ),
    "lower": Operator(
        _each([STRING]), lambda s: s.translate(_LOWERED), units=5_000, per_character=20, length=_longest
    ),
    "upper": Operator(
        _each([STRING]), lambda s: s.translate(_RAISED), units=5_000, per_character=20, length=_longest
    ),
    "strip": Operator(_each([STRING]), lambda s: s.strip(SPACE), per_character=8, length=_longest),
    "length": Operator(_each([STRING], INT64), len),
    "substring": Operator(
        (((STRING, INT64, INT64), STRING),),
        lambda s, start, length: s[start : start + length],
        literal=frozenset({1, 2}),
        per_character=2,
        length=_longest,
    ),
    "concat": Operator(_each([STRING], arity=2), _concat, per_character=2, length=_together),
    "contains": Operator(_each([STRING], BOOL, 2), lambda s, part: part in s, per_character=8, search=True),
    "starts_with": Operator(_each([STRING], BOOL, 2), lambda s, part: s.startswith(part)),
    "ends_with": Operator(_each([STRING], BOOL, 2), lambda s, part: s.endswith(part)),
    "split": Operator(
        (((STRING, STRING), Type.STRINGS),),
        lambda s, separator: s.split(separator),
        literal=frozenset({1}),
        per_character=20,
        search=True,
        length=_longest,
    ),
    "year": Operator(_each(_TIMES, INT64), lambda t: t.year),
    "month": Operator(_each(_TIMES, INT64), lambda t: t.month),
    "day": Operator(_each(_TIMES, INT64), lambda t: t.day),
    "weekday": Operator(_each(_TIMES, INT64), lambda t: t.weekday()),
    "hour": Operator((((TIMESTAMP,), INT64),), lambda t: t.hour),
}
