"""Row expressions to SQL that has a value, or null, for every row.

Total by construction: an operator that could raise gets null in place of the
argument that would make it raise, so nothing depends on which rows the engine
chooses to evaluate. Never a TRY that catches: a failing row costs it a hundred
times more than a good one, which tells about the row.

An argument that an operator mentions more than once is computed once, in a
subquery below (a *binding*), so the text grows linearly with the expression.
Integers carry an interval and floats whether they can be infinite: a guard
that cannot fire is left out.

Nothing that a program wrote appears in the text: columns have our names,
numbers and dates are rendered from their values, strings are bound parameters.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from typing import Any

from fpinq.engines.sql.dialect import Dialect
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import (
    INT64_MAX,
    INT64_MIN,
    Column,
    Expression,
    Literal,
    Schema,
    Type,
    Value,
)
from fpinq.model.operators import FALSE, LOWER, MAX_STRING, OPERATORS, SPACE, TRUE, UPPER

# Databases take a substring of 31 bits; no string is that long.
_LONGEST = 2**31 - 1

# Stand for the arguments of a dialect's SQL while their mentions are counted; no SQL has them.
_MARKS = ("\ue000", "\ue001")


class Parameters:
    """The values bound to one SQL text, each once."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.values: dict[str, str] = {}
        self.others: dict[str, Any] = {}

    def bind(self, text: str) -> str:
        """The placeholder of a string."""
        return self.dialect.placeholder(self.values.setdefault(text, f"p{len(self.values)}"))

    def give(self, name: str, value: Any) -> str:
        """The placeholder of a value of another type, under a name of its own."""
        self.others[name] = value
        return self.dialect.placeholder(name)

    def given(self) -> dict[str, Any]:
        """What to execute the text with."""
        return {name: text for text, name in self.values.items()} | self.others

    def of(self, sql: str) -> dict[str, Any]:
        """What to execute a part of the text with."""
        return {name: text for name, text in self.given().items() if self._is_in(name, sql)}

    def _is_in(self, name: str, sql: str) -> bool:
        return re.search(rf"{re.escape(self.dialect.placeholder(name))}(?!\d)", sql) is not None


@dataclass(frozen=True, slots=True)
class Code:
    """SQL for an expression, with what is known about its values.

    `level` is how many layers of bindings it needs below it; `weight` how many
    leaves it has when all of them are written out. An atom costs nothing to
    repeat. A raw float may still be NaN or −0.
    """

    sql: str
    type: Type
    level: int = 0
    weight: int = 1
    atom: bool = False
    low: int = INT64_MIN
    high: int = INT64_MAX
    finite: bool = False
    raw: bool = False

    @property
    def constant(self) -> int | None:
        """The integer it is, if it is always the same."""
        return self.low if self.low == self.high and self.atom else None

    def or_(self, other: "Code") -> "Code":
        """This code, knowing only what holds for the other one too."""
        return replace(
            self,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            finite=self.finite and other.finite,
            weight=max(self.weight, other.weight),
        )


@dataclass
class Bindings:
    """The columns that expressions over one relation can read, and the bindings they made."""

    columns: Mapping[str, Code]
    schema: Schema
    parameters: Parameters
    layers: list[dict[str, str]] = field(default_factory=list)
    barriers: set[int] = field(default_factory=set)

    @property
    def dialect(self) -> Dialect:
        """Whose SQL it is."""
        return self.parameters.dialect

    def lower(self, expression: Expression) -> Code:
        """The SQL of a well-typed expression. Its floats are canonical."""
        if isinstance(expression, Column):
            return self._canonical(self.columns[expression.name])
        if isinstance(expression, Literal):
            return self.literal(expression.value, expression.type)
        if expression.operator == "split":
            code = _split(self, self.lower(expression.arguments[0]), expression.arguments[1])
        elif expression.operator == "is_in":
            return _is_in(self, *map(self.lower, expression.arguments))
        else:
            arguments = [self.lower(argument) for argument in expression.arguments]
            takes = tuple([argument.type for argument in arguments])
            code = _OPERATORS[expression.operator](self, _RESULTS[expression.operator, takes], *arguments)
            if takes[0] is not Type.STRING:
                return code
        reads = OPERATORS[expression.operator].per_character > 1
        return replace(code, weight=max(code.weight, self.dialect.text_weight)) if reads else code

    def output(self, expression: Expression) -> Code:
        """The SQL of an expression that becomes a column or a predicate: no heavier than is allowed."""
        code = self.lower(expression)
        return self.bind(code) if code.weight > self.dialect.max_weight else code

    def literal(self, value: Value, type_: Type) -> Code:
        """A constant."""
        code = Code(render(value, type_, self.parameters), type_, atom=True)
        if type_ is Type.INT64 and isinstance(value, int):
            return replace(code, low=value, high=value)
        return replace(code, finite=isinstance(value, float) and abs(value) != inf)

    def quantise(self, clamp: Clamp) -> Code:
        """The clamped grid point of a row, a BIGINT between the bounds, or null."""
        value = clamp.value
        code = self.columns[value.name] if isinstance(value, Column) else self.lower(value)
        if code.type is Type.INT64:
            return _clip(self, Type.INT64, code, self._bound(clamp.lower), self._bound(clamp.upper))
        # Powers of two: each of these products is exact. Where bounds in units of 1 would be
        # beyond the doubles, the value is scaled first.
        unit = clamp.step
        if unit > 2**900:
            code, unit = replace(_scaled(self, code, 1 / unit), raw=code.raw), Fraction(1)
        point = self.bind(code)
        low, high = (self.double(bound * unit) for bound in (clamp.lower, clamp.upper))
        ends = f"WHEN {point.sql} <= {low} THEN {low} WHEN {point.sql} >= {high} THEN {high}"
        sql = f"CASE {ends} ELSE {point.sql} END"
        if point.raw:
            sql = self.dialect.clamp_as_found(point.sql, low, high)
        clamped = _scaled(self, self.code(sql, Type.FLOAT64, point, times=6), 1 / unit)
        return self.apply(
            self.dialect.nearest_integer, Type.INT64, clamped, low=clamp.lower, high=clamp.upper
        )

    def _bound(self, bound: int) -> Code:
        return self.literal(max(INT64_MIN, min(INT64_MAX, bound)), Type.INT64)

    def _canonical(self, code: Code) -> Code:
        if not code.raw:
            return code
        return self.apply(self.dialect.canonical, code.type, code)

    def integer(self, number: int) -> str:
        """A BIGINT."""
        return self.dialect.integer(number)

    def double(self, number: float | Fraction) -> str:
        """A double."""
        return self.dialect.double(float(number))

    def bind(self, code: Code) -> Code:
        """The same value as something that costs nothing to repeat."""
        if code.atom:
            return code
        while len(self.layers) <= code.level:
            self.layers.append({})
        layer = self.layers[code.level]
        if code.sql not in layer:
            layer[code.sql] = f"b{code.level}_{len(layer)}"
        if code.weight > self.dialect.max_weight:
            self.barriers.add(code.level)
        weight = 1 if code.level in self.barriers else code.weight
        return replace(code, sql=layer[code.sql], level=code.level + 1, weight=weight, atom=True)

    def select(self, source: str, outputs: Sequence[tuple[str, Code]], where: Code | None = None) -> str:
        """SELECT outputs FROM source, with the bindings they need in between."""
        for level, layer in enumerate(self.layers):
            bound = ", ".join(f"{sql} AS {name}" for sql, name in layer.items())
            below = f"SELECT *, {bound} FROM {source} AS d"
            source = f"({self.dialect.barrier(below) if level in self.barriers else below})"
        listed = ", ".join(f"{code.sql} AS {name}" for name, code in outputs)
        end = f" WHERE {self.dialect.where(where.sql)}" if where else ""
        return f"SELECT {listed} FROM {source} AS d{end}"

    def code(self, sql: str, type_: Type, *parts: Code, times: int = 1, **known: Any) -> Code:
        """SQL made of parts, each mentioned `times` times."""
        level = max((part.level for part in parts), default=0)
        weight = min(times * sum(part.weight for part in parts), 10**9)
        return Code(f"({sql})", type_, level, max(weight, 1), **known)

    def apply(self, template: Callable[..., str], type_: Type, *arguments: Code, **known: Any) -> Code:
        """A dialect's SQL over arguments; those that it mentions more than once are bound."""
        sql, weight, level = template(*_MARKS[: len(arguments)]), 0, 0
        for mark, argument in zip(_MARKS, arguments, strict=False):
            times = sql.count(mark)
            code = self.bind(argument) if times > 1 else argument
            sql = sql.replace(mark, code.sql)
            weight, level = weight + times * code.weight, max(level, code.level)
        return Code(f"({sql})", type_, level, max(min(weight, 10**9), 1), **known)


def render(value: Value, type_: Type, parameters: Parameters) -> str:
    """A constant as SQL. Only strings can say anything, and they are bound, not written."""
    dialect = parameters.dialect
    if value is None:
        return dialect.null(type_)
    if type_ is Type.STRING:
        return parameters.bind(str(value))
    if type_ is Type.BOOL:
        return "TRUE" if value else "FALSE"
    if type_ is Type.INT64:
        return dialect.integer(int(value))  # type: ignore[arg-type]
    if type_ is Type.FLOAT64:
        return dialect.double(float(value))  # type: ignore[arg-type]
    return dialect.moment(value, type_)  # type: ignore[arg-type]


def _scaled(bindings: Bindings, code: Code, factor: Fraction) -> Code:
    """A double times a power of two."""
    if factor == 1:
        return code
    by = bindings.double(factor)
    if factor > 1:  # from within the bounds to the grid: neither beyond the doubles nor below them
        return bindings.code(f"{code.sql} * {by}", Type.FLOAT64, code)
    return bindings.apply(lambda a: bindings.dialect.multiply_floats(a, by), Type.FLOAT64, code)


# ── integers ─────────────────────────────────────────────────────────────────────────


def _fits(low: int, high: int) -> bool:
    return low >= INT64_MIN and high <= INT64_MAX


def _within(low: int, high: int) -> dict[str, int]:
    return {"low": max(low, INT64_MIN), "high": min(high, INT64_MAX)}


def _only_if(bindings: Bindings, sql: str, low: int, high: int) -> str:
    """sql where it is in the interval, else null."""
    tests = [f"{sql} >= {bindings.integer(low)}"] if low > INT64_MIN else []
    tests += [f"{sql} <= {bindings.integer(high)}"] if high < INT64_MAX else []
    return f"CASE WHEN {' AND '.join(tests)} THEN {sql} END" if tests else sql


def _add(bindings: Bindings, type_: Type, a: Code, b: Code) -> Code:
    if type_ is Type.FLOAT64:
        return _sum(bindings, bindings.dialect.add_floats, a, b)
    if a.constant is not None:
        a, b = b, a
    low, high = a.low + b.low, a.high + b.high
    if _fits(low, high):
        return bindings.code(f"{a.sql} + {b.sql}", type_, a, b, low=low, high=high)
    a = bindings.bind(a)
    if (c := b.constant) is not None:
        safe = _only_if(bindings, a.sql, INT64_MIN - c, INT64_MAX - c)
        return bindings.code(f"{safe} + {b.sql}", type_, a, b, times=2, **_within(low, high))
    b = bindings.bind(b)
    safe = (
        f"CASE WHEN {a.sql} <= {bindings.integer(INT64_MAX)} - greatest({b.sql}, 0) "
        f"AND {a.sql} >= {bindings.integer(INT64_MIN)} - least({b.sql}, 0) THEN {a.sql} END"
    )
    return bindings.code(f"{safe} + {b.sql}", type_, a, b, times=3, **_within(low, high))


def _subtract(bindings: Bindings, type_: Type, a: Code, b: Code) -> Code:
    if a.type is Type.DATE:
        return bindings.apply(bindings.dialect.days_between, type_, a, b, low=-3_652_058, high=3_652_058)
    if a.type is Type.TIMESTAMP:
        return _seconds(bindings, a, b)
    if type_ is Type.FLOAT64:
        return _sum(bindings, bindings.dialect.subtract_floats, a, b)
    low, high = a.low - b.high, a.high - b.low
    if _fits(low, high):
        return bindings.code(f"{a.sql} - {b.sql}", type_, a, b, low=low, high=high)
    a, b = bindings.bind(a), bindings.bind(b)
    if (c := b.constant) is not None:
        safe = f"{_only_if(bindings, a.sql, INT64_MIN + c, INT64_MAX + c)} - {b.sql}"
    elif (c := a.constant) is not None:
        safe = f"{a.sql} - {_only_if(bindings, b.sql, c - INT64_MAX, c - INT64_MIN)}"
    else:
        safe = (
            f"CASE WHEN {a.sql} <= {bindings.integer(INT64_MAX)} + least({b.sql}, 0) "
            f"AND {a.sql} >= {bindings.integer(INT64_MIN)} + greatest({b.sql}, 0) THEN {a.sql} END - {b.sql}"
        )
    return bindings.code(safe, type_, a, b, times=3, **_within(low, high))


def _multiply(bindings: Bindings, type_: Type, a: Code, b: Code) -> Code:
    if type_ is Type.FLOAT64:
        product = _plus_zero(bindings, bindings.apply(bindings.dialect.multiply_floats, type_, a, b))
        return product if a.finite and b.finite else _not_nan(bindings, product)
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    low, high = min(ends), max(ends)
    if _fits(low, high):
        return bindings.code(f"{a.sql} * {b.sql}", type_, a, b, low=low, high=high)
    if a.constant is not None:
        a, b = b, a
    if (c := b.constant) is not None:
        a = bindings.bind(a)
        first, last = sorted((INT64_MIN // c, INT64_MAX // c))
        # Rounded inwards: c·x is in the type for exactly the x in between.
        first += first * c < INT64_MIN or first * c > INT64_MAX
        last -= last * c < INT64_MIN or last * c > INT64_MAX
        safe = _only_if(bindings, a.sql, first, last)
        return bindings.code(f"{safe} * {b.sql}", type_, a, b, times=2, **_within(low, high))
    known = _within(low, high)
    return replace(bindings.dialect.multiply(bindings, a, b), low=known["low"], high=known["high"])


def _floor_divide(bindings: Bindings, type_: Type, a: Code, b: Code) -> Code:
    if type_ is Type.FLOAT64:
        return _floor(bindings, type_, _divide(bindings, type_, a, b))
    largest = max(abs(a.low), abs(a.high))
    known = _within(-largest, largest)
    quotient, one = bindings.dialect.quotient, bindings.integer(1)
    a = bindings.bind(a)
    if (c := b.constant) is not None and c > 0:
        # The quotient is rounded towards zero.
        below = quotient(f"(CASE WHEN {a.sql} < 0 THEN {a.sql} END + {one})", b.sql)
        above = quotient(a.sql, b.sql)
        sql = f"CASE WHEN {a.sql} < 0 THEN ({below}) - {one} ELSE {above} END" if a.low < 0 else above
        return bindings.code(sql, type_, a, b, times=4, low=a.low // c, high=a.high // c)
    b = bindings.bind(b)
    overflows = f"{b.sql} = -1 AND {a.sql} = {bindings.integer(INT64_MIN)}"
    by = bindings.bind(
        bindings.code(
            f"CASE WHEN {b.sql} = 0 OR {overflows} THEN NULL ELSE {b.sql} END", type_, a, b, times=3
        )
    )
    uneven = _uneven(f"{a.sql} % {by.sql}", by.sql)
    sql = f"({quotient(a.sql, by.sql)}) - CASE WHEN {uneven} THEN {one} ELSE {bindings.integer(0)} END"
    return bindings.code(sql, type_, a, by, times=4, **known)


def _modulo(bindings: Bindings, type_: Type, a: Code, b: Code) -> Code:
    if type_ is Type.FLOAT64:
        return _float_modulo(bindings, a, b)
    if (c := b.constant) is not None and c > 0:
        rest = bindings.bind(bindings.code(f"{a.sql} % {b.sql}", type_, a, b))
        sql = (
            f"CASE WHEN {rest.sql} < 0 THEN {rest.sql} + {b.sql} ELSE {rest.sql} END"
            if a.low < 0
            else rest.sql
        )
        return bindings.code(sql, type_, rest, b, times=3, low=0, high=c - 1)
    b = bindings.bind(b)
    # x % −1 is 0, but a database may divide first, and −2⁶³ / −1 overflows.
    divisor = f"CASE WHEN {b.sql} = 0 THEN NULL WHEN {b.sql} = -1 THEN {bindings.integer(1)} ELSE {b.sql} END"
    by = bindings.bind(bindings.code(divisor, type_, b, times=3))
    rest = bindings.bind(bindings.code(f"{a.sql} % {by.sql}", type_, a, by))
    bound = max(abs(b.low), abs(b.high))
    sql = f"{rest.sql} + CASE WHEN {_uneven(rest.sql, by.sql)} THEN {by.sql} ELSE {bindings.integer(0)} END"
    return bindings.code(sql, type_, rest, by, times=3, **_within(-bound, bound))


def _uneven(rest: str, by: str) -> str:
    """Whether what remains, which has the sign of what was divided, has another one than the divisor."""
    return f"{rest} <> 0 AND ({rest} < 0) <> ({by} < 0)"


def _negate(bindings: Bindings, type_: Type, a: Code) -> Code:
    if type_ is Type.FLOAT64:
        return _plus_zero(bindings, bindings.code(f"-{a.sql}", type_, a), finite=a.finite)
    a = bindings.bind(a) if a.low == INT64_MIN else a
    safe = _only_if(bindings, a.sql, max(a.low, -INT64_MAX), INT64_MAX) if a.low == INT64_MIN else a.sql
    return bindings.code(f"-({safe})", type_, a, times=2, low=-a.high, high=min(-a.low, INT64_MAX))


def _abs(bindings: Bindings, type_: Type, a: Code) -> Code:
    if type_ is Type.FLOAT64:
        return bindings.code(f"abs({a.sql})", type_, a, finite=a.finite)
    a = bindings.bind(a) if a.low == INT64_MIN else a
    safe = _only_if(bindings, a.sql, -INT64_MAX, INT64_MAX) if a.low == INT64_MIN else a.sql
    low = 0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return bindings.code(f"abs({safe})", type_, a, times=2, **_within(low, max(abs(a.low), abs(a.high))))


def _sign(bindings: Bindings, type_: Type, a: Code) -> Code:
    a = bindings.bind(a)
    branches = ((">", 1), ("<", -1), ("=", 0))
    cases = (f"WHEN {a.sql} {sign} 0 THEN {bindings.integer(one)}" for sign, one in branches)
    return bindings.code(f"CASE {' '.join(cases)} END", type_, a, times=3, low=-1, high=1)


def _clip(bindings: Bindings, type_: Type, a: Code, lower: Code, upper: Code) -> Code:
    a = bindings.bind(a)
    inside = f"WHEN {a.sql} < {lower.sql} THEN {lower.sql} WHEN {a.sql} > {upper.sql} THEN {upper.sql}"
    sql = f"CASE {inside} ELSE {a.sql} END"
    if type_ is Type.FLOAT64:
        return bindings.code(sql, type_, a, times=3, finite=lower.finite and upper.finite)
    low, high = max(lower.low, min(a.low, upper.low)), min(upper.low, max(a.high, lower.low))
    return bindings.code(
        sql if (a.low, a.high) != (low, high) else a.sql, type_, a, times=3, low=low, high=high
    )


# ── floats ───────────────────────────────────────────────────────────────────────────


def _not_nan(bindings: Bindings, a: Code) -> Code:
    a = bindings.bind(a)
    return bindings.code(
        f"CASE WHEN {bindings.dialect.is_nan(a.sql)} THEN NULL ELSE {a.sql} END", a.type, a, times=2
    )


def _plus_zero(bindings: Bindings, a: Code, **known: Any) -> Code:
    """The same, with 0 in place of −0."""
    return bindings.code(f"{a.sql} + {bindings.double(0.0)}", Type.FLOAT64, a, **known)


def _sum(bindings: Bindings, template: Callable[[str, str], str], a: Code, b: Code) -> Code:
    total = bindings.apply(template, Type.FLOAT64, a, b)
    # Only ∞ − ∞ is NaN; a sum of canonical floats is never −0.
    return total if a.finite or b.finite else _not_nan(bindings, total)


def _divide(bindings: Bindings, type_: Type, a: Code, b: Code) -> Code:
    b = bindings.bind(b)
    by = bindings.code(f"CASE WHEN {b.sql} = 0 THEN NULL ELSE {b.sql} END", type_, b, times=2)
    quotient = _plus_zero(bindings, bindings.apply(bindings.dialect.divide_floats, type_, a, by))
    return quotient if a.finite or b.finite else _not_nan(bindings, quotient)


def _float_modulo(bindings: Bindings, a: Code, b: Code) -> Code:
    a, b = bindings.bind(a), bindings.bind(b)
    finite = f"CASE WHEN abs({a.sql}) < {bindings.double(inf)} THEN {a.sql} END"
    divided = bindings.code(finite, Type.FLOAT64, a, times=2)
    by = bindings.code(f"CASE WHEN {b.sql} <> 0 THEN {b.sql} END", Type.FLOAT64, b, times=2)
    rest = bindings.bind(bindings.apply(bindings.dialect.float_remainder, Type.FLOAT64, divided, by))
    sql = f"{rest.sql} + CASE WHEN {_uneven(rest.sql, b.sql)} THEN {b.sql} ELSE {bindings.double(0.0)} END"
    return bindings.code(sql, Type.FLOAT64, rest, b, times=3)


def _floor(bindings: Bindings, type_: Type, a: Code) -> Code:
    return _plus_zero(bindings, bindings.apply(bindings.dialect.floor, type_, a), finite=a.finite)


def _ceil(bindings: Bindings, type_: Type, a: Code) -> Code:
    return _plus_zero(bindings, bindings.apply(bindings.dialect.ceil, type_, a), finite=a.finite)


def _round(bindings: Bindings, type_: Type, a: Code) -> Code:
    return _plus_zero(bindings, bindings.apply(bindings.dialect.round, type_, a), finite=a.finite)


def _sqrt(bindings: Bindings, type_: Type, a: Code) -> Code:
    a = bindings.bind(a)
    root = bindings.code(f"CASE WHEN {a.sql} >= 0 THEN {a.sql} END", type_, a, times=2)
    return bindings.apply(bindings.dialect.sqrt, type_, root, finite=a.finite)


def _exp(bindings: Bindings, type_: Type, a: Code) -> Code:
    return bindings.apply(bindings.dialect.exp, type_, a)


def _log(bindings: Bindings, type_: Type, a: Code) -> Code:
    a = bindings.bind(a)
    positive = bindings.code(f"CASE WHEN {a.sql} > 0 THEN {a.sql} END", type_, a, times=2)
    return bindings.apply(bindings.dialect.log, type_, positive, finite=a.finite)


def _power(bindings: Bindings, type_: Type, a: Code, b: Code) -> Code:
    a, b = bindings.bind(a), bindings.bind(b)
    base = bindings.code(f"CASE WHEN {a.sql} = 0 AND {b.sql} < 0 THEN NULL ELSE {a.sql} END", type_, a, b)
    return _not_nan(bindings, _plus_zero(bindings, bindings.apply(bindings.dialect.power, type_, base, b)))


def _seconds(bindings: Bindings, a: Code, b: Code) -> Code:
    """The seconds between two timestamps, rounded once.

    A difference above 2⁵³ microseconds is not a double. Then whole seconds and
    the rest are added: the rest is never so near the middle of two doubles that
    its own rounding could change the sum.
    """
    micros = bindings.bind(bindings.apply(bindings.dialect.microseconds_between, Type.INT64, a, b))
    double, million = bindings.dialect.type_name(Type.FLOAT64), bindings.integer(10**6)
    small = f"{micros.sql} BETWEEN {bindings.integer(-(2**53))} AND {bindings.integer(2**53)}"
    whole = f"CAST({bindings.dialect.quotient(micros.sql, million)} AS {double})"
    rest = f"CAST({micros.sql} % {million} AS {double}) / {bindings.double(1e6)}"
    at_once = f"CAST({micros.sql} AS {double}) / {bindings.double(1e6)}"
    sql = f"CASE WHEN {small} THEN {at_once} ELSE {whole} + {rest} END"
    return bindings.code(sql, Type.FLOAT64, micros, times=4, finite=True)


# ── truth and nulls ──────────────────────────────────────────────────────────────────


def _infix(sign: str) -> Callable[..., Code]:
    def lower(bindings: Bindings, type_: Type, a: Code, b: Code) -> Code:
        return bindings.code(f"{a.sql} {sign} {b.sql}", type_, a, b)

    return lower


def _not(bindings: Bindings, type_: Type, a: Code) -> Code:
    return bindings.code(f"NOT {a.sql}", type_, a)


def _hull(a: Code, b: Code) -> dict[str, Any]:
    return {"low": min(a.low, b.low), "high": max(a.high, b.high), "finite": a.finite and b.finite}


def _if_else(bindings: Bindings, type_: Type, c: Code, a: Code, b: Code) -> Code:
    return bindings.code(f"CASE WHEN {c.sql} THEN {a.sql} ELSE {b.sql} END", type_, c, a, b, **_hull(a, b))


def _is_in(bindings: Bindings, a: Code, *values: Code) -> Code:
    return bindings.code(f"{a.sql} IN ({', '.join(v.sql for v in values)})", Type.BOOL, a)


def _is_null(bindings: Bindings, type_: Type, a: Code) -> Code:
    return bindings.code(f"{a.sql} IS NULL", type_, a)


def _fill_null(bindings: Bindings, type_: Type, a: Code, b: Code) -> Code:
    return bindings.code(f"coalesce({a.sql}, {b.sql})", type_, a, b, **_hull(a, b))


# ── conversions ──────────────────────────────────────────────────────────────────────

_INTEGER = "[+-]?[0-9]{1,19}"
_FLOAT = "[+-]?(?:[0-9]{1,30}(?:[.][0-9]{0,30})?|[.][0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?"
_DATE = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIMESTAMP = rf"{_DATE}(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{{1,6}})?)?)?"


def _matching(bindings: Bindings, a: Code, pattern: str) -> Code:
    """A text, null where it is not of a pattern."""
    a = bindings.bind(a)
    matches = bindings.dialect.matches(a.sql, pattern)
    return bindings.code(f"CASE WHEN {matches} THEN {a.sql} END", Type.STRING, a, times=2)


def _cast(bindings: Bindings, type_: Type, a: Code, **known: Any) -> Code:
    return bindings.code(f"CAST({a.sql} AS {bindings.dialect.type_name(type_)})", type_, a, **known)


def _of_truth(bindings: Bindings, type_: Type, a: Code, **known: Any) -> Code:
    return bindings.apply(lambda truth: bindings.dialect.number_of_truth(truth, type_), type_, a, **known)


def _to_int64(bindings: Bindings, type_: Type, a: Code) -> Code:
    if a.type is Type.BOOL:
        return _of_truth(bindings, type_, a, low=0, high=1)
    if a.type is Type.STRING:
        return bindings.dialect.parse_integer(bindings, _matching(bindings, a, _INTEGER))
    a = bindings.bind(a)
    inside = f"{a.sql} >= {bindings.double(-(2.0**63))} AND {a.sql} < {bindings.double(2.0**63)}"
    safe = bindings.code(f"CASE WHEN {inside} THEN {a.sql} END", Type.FLOAT64, a, times=3)
    return bindings.apply(bindings.dialect.whole_part, type_, safe)


def _to_float64(bindings: Bindings, type_: Type, a: Code) -> Code:
    if a.type is Type.BOOL:
        return _of_truth(bindings, type_, a, finite=True)
    if a.type is Type.INT64:
        return _cast(bindings, type_, a, finite=True)
    return _plus_zero(
        bindings, bindings.apply(bindings.dialect.parse_float, type_, _matching(bindings, a, _FLOAT))
    )


def _to_string(bindings: Bindings, type_: Type, a: Code) -> Code:
    return bindings.apply(lambda value: bindings.dialect.written(value, a.type), type_, a)


def _to_date(bindings: Bindings, type_: Type, a: Code) -> Code:
    if a.type is Type.TIMESTAMP:
        return _cast(bindings, type_, a)
    return bindings.apply(bindings.dialect.parse_date, type_, _of_a_day(bindings, a, _DATE))


def _of_a_day(bindings: Bindings, a: Code, pattern: str) -> Code:
    """A text of the pattern that begins with a day that exists, else null."""
    text = bindings.bind(_matching(bindings, a, pattern))
    year = f"CAST(substring({text.sql}, 1, 4) AS BIGINT)"
    leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
    month, day = f"substring({text.sql}, 6, 2)", f"substring({text.sql}, 9, 2)"
    last = (
        f"CASE WHEN {month} IN ('04', '06', '09', '11') THEN '30' WHEN {month} <> '02' THEN '31' "
        f"WHEN {leap} THEN '29' ELSE '28' END"
    )
    exists = f"substring({text.sql}, 1, 4) <> '0000' AND {day} <= {last}"
    return bindings.code(f"CASE WHEN {exists} THEN {text.sql} END", Type.STRING, text, times=8)


def _to_timestamp(bindings: Bindings, type_: Type, a: Code) -> Code:
    if a.type is Type.DATE:
        return _cast(bindings, type_, a)
    text = bindings.bind(_of_a_day(bindings, a, _TIMESTAMP))
    # With the rest of midnight behind it, so that there is one form to parse.
    rest = f"substring(' 00:00:00.000000', {bindings.dialect.characters(text.sql)} - 9)"
    whole = bindings.code(f"{text.sql} || {rest}", Type.STRING, text, times=2)
    return bindings.apply(bindings.dialect.parse_timestamp, type_, whole)


def _to_bool(bindings: Bindings, type_: Type, a: Code) -> Code:
    a = bindings.bind(a)
    true, false = (", ".join(f"'{word}'" for word in words) for words in (TRUE, FALSE))
    sql = f"CASE WHEN {a.sql} IN ({true}) THEN TRUE WHEN {a.sql} IN ({false}) THEN FALSE END"
    return bindings.code(sql, type_, a, times=2)


# ── strings ──────────────────────────────────────────────────────────────────────────


def _lower(bindings: Bindings, type_: Type, a: Code) -> Code:
    return _mapped(bindings, a, bindings.dialect.lower_ascii, UPPER, LOWER)


def _upper(bindings: Bindings, type_: Type, a: Code) -> Code:
    return _mapped(bindings, a, bindings.dialect.upper_ascii, LOWER, UPPER)


def _mapped(bindings: Bindings, a: Code, of_ascii: Callable[[str], str], source: str, target: str) -> Code:
    """A case mapping; on ASCII, where bytes are code points, a database's own, which is far faster."""
    a, dialect = bindings.bind(a), bindings.dialect
    is_ascii = f"{dialect.octets(a.sql)} = {dialect.characters(a.sql)}"
    table = f"translate({a.sql}, {bindings.parameters.bind(source)}, {bindings.parameters.bind(target)})"
    sql = f"CASE WHEN {is_ascii} THEN {of_ascii(a.sql)} ELSE {table} END"
    return bindings.code(sql, Type.STRING, a, times=4)


def _strip(bindings: Bindings, type_: Type, a: Code) -> Code:
    space = bindings.parameters.bind(SPACE)
    return bindings.apply(lambda text: bindings.dialect.strip(text, space), type_, a)


def _length(bindings: Bindings, type_: Type, a: Code) -> Code:
    return _cast(bindings, type_, bindings.apply(bindings.dialect.characters, type_, a), low=0, high=2**32)


def _substring(bindings: Bindings, type_: Type, a: Code, start: Code, length: Code) -> Code:
    first, count = min(start.low, _LONGEST - 1) + 1, min(length.low, _LONGEST)
    return bindings.code(f"substring({a.sql}, {first}, {count})", type_, a)


def _concat(bindings: Bindings, type_: Type, a: Code, b: Code) -> Code:
    a, b = bindings.bind(a), bindings.bind(b)
    short = f"{bindings.dialect.characters(a.sql)} + {bindings.dialect.characters(b.sql)} <= {MAX_STRING}"
    return bindings.code(f"CASE WHEN {short} THEN {a.sql} || {b.sql} END", type_, a, b, times=2)


def _split(bindings: Bindings, a: Code, separator: Expression) -> Code:
    assert isinstance(separator, Literal)
    between = str(separator.value)
    return bindings.apply(
        lambda text: bindings.dialect.split(text, between, bindings.parameters), Type.STRINGS, a
    )


def _asked(template: Callable[[Dialect], Callable[..., str]]) -> Callable[..., Code]:
    """An operator that a dialect has a word for."""

    def lower(bindings: Bindings, type_: Type, *arguments: Code) -> Code:
        return bindings.apply(template(bindings.dialect), type_, *arguments)

    return lower


def _part(name: str, low: int, high: int) -> Callable[..., Code]:
    def lower(bindings: Bindings, type_: Type, a: Code) -> Code:
        return bindings.apply(lambda time: bindings.dialect.part(name, time), type_, a, low=low, high=high)

    return lower


_OPERATORS: dict[str, Callable[..., Code]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "floor_divide": _floor_divide,
    "modulo": _modulo,
    "negate": _negate,
    "abs": _abs,
    "sign": _sign,
    "floor": _floor,
    "ceil": _ceil,
    "round": _round,
    "sqrt": _sqrt,
    "exp": _exp,
    "log": _log,
    "power": _power,
    "clip": _clip,
    "equal": _infix("="),
    "not_equal": _infix("<>"),
    "less": _infix("<"),
    "less_equal": _infix("<="),
    "greater": _infix(">"),
    "greater_equal": _infix(">="),
    "and": _infix("AND"),
    "or": _infix("OR"),
    "not": _not,
    "if_else": _if_else,
    "is_null": _is_null,
    "fill_null": _fill_null,
    "to_bool": _to_bool,
    "to_int64": _to_int64,
    "to_float64": _to_float64,
    "to_string": _to_string,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
    "lower": _lower,
    "upper": _upper,
    "strip": _strip,
    "length": _length,
    "substring": _substring,
    "concat": _concat,
    "contains": _asked(lambda dialect: dialect.contains),
    "starts_with": _asked(lambda dialect: dialect.starts_with),
    "ends_with": _asked(lambda dialect: dialect.ends_with),
    "year": _part("year", 1, 9999),
    "month": _part("month", 1, 12),
    "day": _part("day", 1, 31),
    "weekday": _part("weekday", 0, 6),
    "hour": _part("hour", 0, 23),
}

_RESULTS = {
    (name, takes): gives for name, operator in OPERATORS.items() for takes, gives in operator.signatures
}
