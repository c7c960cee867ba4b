"""Row expressions to SQL that has a value, or null, for every row.

Total by construction: an operator that could raise gets null in place of the
argument that would make it raise, so nothing depends on which rows the engine
chooses to evaluate. Never TRY or TRY_CAST: a failing row costs them a hundred
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
from typing import Any

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

SQL_TYPES = {
    Type.BOOL: "BOOLEAN",
    Type.INT64: "BIGINT",
    Type.FLOAT64: "DOUBLE",
    Type.STRING: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}

# DuckDB refuses a substring beyond 32 bits; no string is that long.
_LONGEST = 2**31 - 1

# The optimiser copies an expression into every filter above it. Beyond this many
# leaves after such copying, a barrier keeps it where it is.
MAX_WEIGHT = 256
# An operator that reads every character of a text weighs as much as this many leaves, so that
# no more than three copies of it are made (docs/decisions/0073).
TEXT_WEIGHT = 65

_ZERO = "'0'::DOUBLE"


class Parameters:
    """The values bound to one SQL text, each once."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def bind(self, text: str) -> str:
        """The placeholder of a string."""
        if text not in self.values:
            self.values[text] = f"$p{len(self.values)}"
        return self.values[text]

    def given(self) -> dict[str, str]:
        """What to execute the text with."""
        return {placeholder[1:]: text for text, placeholder in self.values.items()}

    def of(self, sql: str) -> dict[str, str]:
        """What to execute a part of the text with."""
        used = set(re.findall(r"\$(p\d+)", sql))
        return {name: text for name, text in self.given().items() if name in used}


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
class Scope:
    """The columns that expressions over one relation can read, and the bindings they made."""

    columns: Mapping[str, Code]
    schema: Schema
    parameters: Parameters
    layers: list[dict[str, str]] = field(default_factory=list)
    barriers: set[int] = field(default_factory=set)

    def lower(self, expression: Expression) -> Code:
        """The SQL of a well-typed expression. Its floats are canonical."""
        if isinstance(expression, Column):
            return self._canonical(self.columns[expression.name])
        if isinstance(expression, Literal):
            return self.literal(expression.value, expression.type)
        arguments = [self.lower(argument) for argument in expression.arguments]
        if expression.operator == "is_in":
            return _is_in(self, *arguments)
        gives = _RESULTS[expression.operator, tuple(code.type for code in arguments)]
        code = _OPERATORS[expression.operator](self, gives, *arguments)
        reads = OPERATORS[expression.operator].per_character > 1 and arguments[0].type is Type.STRING
        return replace(code, weight=max(code.weight, TEXT_WEIGHT)) if reads else code

    def output(self, expression: Expression) -> Code:
        """The SQL of an expression that becomes a column or a predicate: no heavier than MAX_WEIGHT."""
        code = self.lower(expression)
        return self.bind(code) if code.weight > MAX_WEIGHT else code

    def literal(self, value: Value, type_: Type) -> Code:
        """A constant."""
        code = Code(render(value, type_, self.parameters), type_, atom=True)
        if type_ is Type.INT64 and isinstance(value, int):
            return replace(code, low=value, high=value)
        return replace(code, finite=isinstance(value, float) and abs(value) != float("inf"))

    def quantise(self, clamp: Clamp) -> Code:
        """The clamped grid point of a row, a BIGINT between the bounds, or null."""
        value = clamp.value
        code = self.columns[value.name] if isinstance(value, Column) else self.lower(value)
        if code.type is Type.INT64:
            return _clip(self, Type.INT64, code, self._integer(clamp.lower), self._integer(clamp.upper))
        # Powers of two: each of these products is exact. Where bounds in units of 1 would be
        # beyond the doubles, the value is scaled first.
        scale, unit = f" * {_double(1 / clamp.step)}" if clamp.step != 1 else "", clamp.step
        if unit > 2**900:
            code, scale, unit = (
                self.code(f"{code.sql}{scale}", code.type, code, raw=code.raw),
                "",
                Fraction(1),
            )
        point = self.bind(code)
        low, high = _double(clamp.lower * unit), _double(clamp.upper * unit)
        # Of a raw float, NaN is in no branch; not by comparison, see canonical_float.
        end = f"CASE WHEN {point.sql} > 0 THEN {high} ELSE {low} END"
        raw = f"WHEN NOT isfinite({point.sql}) THEN CASE WHEN isinf({point.sql}) THEN {end} END "
        ends = f"WHEN {point.sql} <= {low} THEN {low} WHEN {point.sql} >= {high} THEN {high}"
        clamped = f"CASE {raw if point.raw else ''}{ends} ELSE {point.sql} END"
        # The cast rounds half to even.
        sql = f"CAST({clamped}{scale} AS BIGINT)"
        return self.code(sql, Type.INT64, point, times=6, low=clamp.lower, high=clamp.upper)

    def _integer(self, bound: int) -> Code:
        return self.literal(max(INT64_MIN, min(INT64_MAX, bound)), Type.INT64)

    def _canonical(self, code: Code) -> Code:
        if not code.raw:
            return code
        return self.code(canonical_float(code.sql), code.type, code, times=3)

    def bind(self, code: Code) -> Code:
        """The same value as something that costs nothing to repeat."""
        if code.atom:
            return code
        while len(self.layers) <= code.level:
            self.layers.append({})
        layer = self.layers[code.level]
        if code.sql not in layer:
            layer[code.sql] = f"b{code.level}_{len(layer)}"
        if code.weight > MAX_WEIGHT:
            self.barriers.add(code.level)
        weight = 1 if code.level in self.barriers else code.weight
        return replace(code, sql=layer[code.sql], level=code.level + 1, weight=weight, atom=True)

    def select(self, source: str, outputs: Sequence[tuple[str, Code]], where: Code | None = None) -> str:
        """SELECT outputs FROM source, with the bindings they need in between."""
        for level, layer in enumerate(self.layers):
            bound = ", ".join(f"{sql} AS {name}" for sql, name in layer.items())
            # OFFSET keeps the optimiser from copying what is below into what is above.
            end = " OFFSET 0" if level in self.barriers else ""
            source = f"(SELECT *, {bound} FROM {source}{end})"
        listed = ", ".join(f"{code.sql} AS {name}" for name, code in outputs)
        return f"SELECT {listed} FROM {source}" + (f" WHERE {where.sql}" if where else "")

    def code(self, sql: str, type_: Type, *parts: Code, times: int = 1, **known: Any) -> Code:
        """SQL made of parts, each mentioned `times` times."""
        level = max((part.level for part in parts), default=0)
        weight = min(times * sum(part.weight for part in parts), 10**9)
        return Code(f"({sql})", type_, level, max(weight, 1), **known)


def big(number: int) -> str:
    """An integer as a BIGINT."""
    return f"'{number}'::BIGINT"


def render(value: Value, type_: Type, parameters: Parameters) -> str:
    """A constant as SQL. Only strings can say anything, and they are bound, not written."""
    if value is None:
        return f"NULL::{SQL_TYPES[type_]}"
    if type_ is Type.STRING:
        return parameters.bind(str(value))
    if type_ is Type.BOOL:
        return "TRUE" if value else "FALSE"
    if type_ is Type.INT64:
        return big(int(value))  # type: ignore[arg-type]
    if type_ is Type.FLOAT64:
        return f"'{float(value)!r}'::DOUBLE"  # type: ignore[arg-type]
    return f"'{value.isoformat()}'::{SQL_TYPES[type_]}"  # type: ignore[union-attr]


def canonical_float(sql: str) -> str:
    """A float as found: NaN is null, −0 is 0.

    Not with isnan: a parquet file's statistics leave NaN out, DuckDB believes
    them and takes isnan, and comparisons with NaN, for always false.
    """
    return f"CASE WHEN isfinite({sql}) OR isinf({sql}) THEN {sql} + {_ZERO} END"


def _double(number: Fraction) -> str:
    return f"'{float(number)!r}'::DOUBLE"


# ── integers ─────────────────────────────────────────────────────────────────────────


def _fits(low: int, high: int) -> bool:
    return low >= INT64_MIN and high <= INT64_MAX


def _within(low: int, high: int) -> dict[str, int]:
    return {"low": max(low, INT64_MIN), "high": min(high, INT64_MAX)}


def _only_if(sql: str, low: int, high: int) -> str:
    """sql where it is in the interval, else null."""
    tests = [f"{sql} >= {big(low)}"] if low > INT64_MIN else []
    tests += [f"{sql} <= {big(high)}"] if high < INT64_MAX else []
    return f"CASE WHEN {' AND '.join(tests)} THEN {sql} END" if tests else sql


def _add(scope: Scope, type_: Type, a: Code, b: Code) -> Code:
    if type_ is Type.FLOAT64:
        return _finite_sum(scope, "+", a, b)
    if a.constant is not None:
        a, b = b, a
    low, high = a.low + b.low, a.high + b.high
    if _fits(low, high):
        return scope.code(f"{a.sql} + {b.sql}", type_, a, b, low=low, high=high)
    a = scope.bind(a)
    if (c := b.constant) is not None:
        safe = _only_if(a.sql, INT64_MIN - c, INT64_MAX - c)
        return scope.code(f"{safe} + {b.sql}", type_, a, b, times=2, **_within(low, high))
    b = scope.bind(b)
    safe = (
        f"CASE WHEN {a.sql} <= {big(INT64_MAX)} - greatest({b.sql}, 0) "
        f"AND {a.sql} >= {big(INT64_MIN)} - least({b.sql}, 0) THEN {a.sql} END"
    )
    return scope.code(f"{safe} + {b.sql}", type_, a, b, times=3, **_within(low, high))


def _subtract(scope: Scope, type_: Type, a: Code, b: Code) -> Code:
    if a.type is Type.DATE:
        return scope.code(f"{a.sql} - {b.sql}", type_, a, b, low=-3_652_058, high=3_652_058)
    if a.type is Type.TIMESTAMP:
        return _seconds(scope, a, b)
    if type_ is Type.FLOAT64:
        return _finite_sum(scope, "-", a, b)
    low, high = a.low - b.high, a.high - b.low
    if _fits(low, high):
        return scope.code(f"{a.sql} - {b.sql}", type_, a, b, low=low, high=high)
    a, b = scope.bind(a), scope.bind(b)
    if (c := b.constant) is not None:
        safe = f"{_only_if(a.sql, INT64_MIN + c, INT64_MAX + c)} - {b.sql}"
    elif (c := a.constant) is not None:
        safe = f"{a.sql} - {_only_if(b.sql, c - INT64_MAX, c - INT64_MIN)}"
    else:
        safe = (
            f"CASE WHEN {a.sql} <= {big(INT64_MAX)} + least({b.sql}, 0) "
            f"AND {a.sql} >= {big(INT64_MIN)} + greatest({b.sql}, 0) THEN {a.sql} END - {b.sql}"
        )
    return scope.code(safe, type_, a, b, times=3, **_within(low, high))


def _multiply(scope: Scope, type_: Type, a: Code, b: Code) -> Code:
    if type_ is Type.FLOAT64:
        product = scope.code(f"{a.sql} * {b.sql} + {_ZERO}", type_, a, b)
        return product if a.finite and b.finite else _not_nan(scope, product)
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    low, high = min(ends), max(ends)
    if _fits(low, high):
        return scope.code(f"{a.sql} * {b.sql}", type_, a, b, low=low, high=high)
    if a.constant is not None:
        a, b = b, a
    if (c := b.constant) is not None:
        a = scope.bind(a)
        first, last = sorted((INT64_MIN // c, INT64_MAX // c))
        # Rounded inwards: c·x is in the type for exactly the x in between.
        first += first * c < INT64_MIN or first * c > INT64_MAX
        last -= last * c < INT64_MIN or last * c > INT64_MAX
        safe = _only_if(a.sql, first, last)
        return scope.code(f"{safe} * {b.sql}", type_, a, b, times=2, **_within(low, high))
    wide = scope.bind(scope.code(f"CAST({a.sql} AS HUGEINT) * CAST({b.sql} AS HUGEINT)", type_, a, b))
    return scope.code(narrow(wide.sql), type_, wide, times=2, **_within(low, high))


def narrow(wide: str) -> str:
    """A HUGEINT as a BIGINT, null where it does not fit."""
    fits = f"{wide} BETWEEN '{INT64_MIN}'::HUGEINT AND '{INT64_MAX}'::HUGEINT"
    return f"CAST(CASE WHEN {fits} THEN {wide} END AS BIGINT)"


def _floor_divide(scope: Scope, type_: Type, a: Code, b: Code) -> Code:
    if type_ is Type.FLOAT64:
        return _floor(scope, type_, _divide(scope, type_, a, b))
    largest = max(abs(a.low), abs(a.high))
    known = _within(-largest, largest)
    a = scope.bind(a)
    if (c := b.constant) is not None and c > 0:
        # DuckDB's // rounds towards zero.
        below = f"(CASE WHEN {a.sql} < 0 THEN {a.sql} END + 1) // {b.sql} - 1"
        sql = (
            f"CASE WHEN {a.sql} < 0 THEN {below} ELSE {a.sql} // {b.sql} END"
            if a.low < 0
            else f"{a.sql} // {b.sql}"
        )
        return scope.code(sql, type_, a, b, times=4, low=a.low // c, high=a.high // c)
    b = scope.bind(b)
    overflows = f"{b.sql} = -1 AND {a.sql} = {big(INT64_MIN)}"
    by = scope.bind(
        scope.code(f"CASE WHEN {b.sql} = 0 OR {overflows} THEN NULL ELSE {b.sql} END", type_, a, b, times=3)
    )
    remains = f"{a.sql} % {by.sql}"
    uneven = f"{remains} <> 0 AND ({remains} < 0) <> ({by.sql} < 0)"
    sql = f"{a.sql} // {by.sql} - CASE WHEN {uneven} THEN 1 ELSE 0 END"
    return scope.code(sql, type_, a, by, times=4, **known)


def _modulo(scope: Scope, type_: Type, a: Code, b: Code) -> Code:
    if type_ is Type.FLOAT64:
        return _float_modulo(scope, a, b)
    if (c := b.constant) is not None and c > 0:
        rest = scope.bind(scope.code(f"{a.sql} % {b.sql}", type_, a, b))
        sql = (
            f"CASE WHEN {rest.sql} < 0 THEN {rest.sql} + {b.sql} ELSE {rest.sql} END"
            if a.low < 0
            else rest.sql
        )
        return scope.code(sql, type_, rest, b, times=3, low=0, high=c - 1)
    b = scope.bind(b)
    # x % −1 is 0, but DuckDB divides first, and −2⁶³ / −1 overflows.
    divisor = f"CASE WHEN {b.sql} = 0 THEN NULL WHEN {b.sql} = -1 THEN {big(1)} ELSE {b.sql} END"
    by = scope.bind(scope.code(divisor, type_, b, times=3))
    rest = scope.bind(scope.code(f"{a.sql} % {by.sql}", type_, a, by))
    uneven = f"{rest.sql} <> 0 AND ({rest.sql} < 0) <> ({by.sql} < 0)"
    bound = max(abs(b.low), abs(b.high))
    sql = f"{rest.sql} + CASE WHEN {uneven} THEN {by.sql} ELSE {big(0)} END"
    return scope.code(sql, type_, rest, by, times=3, **_within(-bound, bound))


def _negate(scope: Scope, type_: Type, a: Code) -> Code:
    if type_ is Type.FLOAT64:
        return scope.code(f"-{a.sql} + {_ZERO}", type_, a, finite=a.finite)
    a = scope.bind(a) if a.low == INT64_MIN else a
    safe = _only_if(a.sql, max(a.low, -INT64_MAX), INT64_MAX) if a.low == INT64_MIN else a.sql
    return scope.code(f"-({safe})", type_, a, times=2, low=-a.high, high=min(-a.low, INT64_MAX))


def _abs(scope: Scope, type_: Type, a: Code) -> Code:
    if type_ is Type.FLOAT64:
        return scope.code(f"abs({a.sql})", type_, a, finite=a.finite)
    a = scope.bind(a) if a.low == INT64_MIN else a
    safe = _only_if(a.sql, -INT64_MAX, INT64_MAX) if a.low == INT64_MIN else a.sql
    low = 0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return scope.code(f"abs({safe})", type_, a, times=2, **_within(low, max(abs(a.low), abs(a.high))))


def _sign(scope: Scope, type_: Type, a: Code) -> Code:
    a = scope.bind(a)
    branches = ((">", 1), ("<", -1), ("=", 0))
    sql = "CASE " + " ".join(f"WHEN {a.sql} {sign} 0 THEN {big(one)}" for sign, one in branches) + " END"
    return scope.code(sql, type_, a, times=3, low=-1, high=1)


def _clip(scope: Scope, type_: Type, a: Code, lower: Code, upper: Code) -> Code:
    a = scope.bind(a)
    inside = f"WHEN {a.sql} < {lower.sql} THEN {lower.sql} WHEN {a.sql} > {upper.sql} THEN {upper.sql}"
    sql = f"CASE {inside} ELSE {a.sql} END"
    if type_ is Type.FLOAT64:
        return scope.code(sql, type_, a, times=3, finite=lower.finite and upper.finite)
    low, high = max(lower.low, min(a.low, upper.low)), min(upper.low, max(a.high, lower.low))
    return scope.code(sql if (a.low, a.high) != (low, high) else a.sql, type_, a, times=3, low=low, high=high)


# ── floats ───────────────────────────────────────────────────────────────────────────


def _not_nan(scope: Scope, a: Code) -> Code:
    a = scope.bind(a)
    return scope.code(f"CASE WHEN isnan({a.sql}) THEN NULL ELSE {a.sql} END", a.type, a, times=2)


def _finite_sum(scope: Scope, sign: str, a: Code, b: Code) -> Code:
    total = scope.code(f"{a.sql} {sign} {b.sql}", Type.FLOAT64, a, b)
    # Only ∞ − ∞ is NaN; a sum of canonical floats is never −0.
    return total if a.finite or b.finite else _not_nan(scope, total)


def _divide(scope: Scope, type_: Type, a: Code, b: Code) -> Code:
    b = scope.bind(b)
    by = f"CASE WHEN {b.sql} = 0 THEN NULL ELSE {b.sql} END"
    quotient = scope.code(f"{a.sql} / {by} + {_ZERO}", type_, a, b, times=2)
    return quotient if a.finite or b.finite else _not_nan(scope, quotient)


def _float_modulo(scope: Scope, a: Code, b: Code) -> Code:
    a, b = scope.bind(a), scope.bind(b)
    defined = f"{b.sql} <> 0 AND isfinite({a.sql})"
    rest = scope.bind(
        scope.code(f"CASE WHEN {defined} THEN {a.sql} END % {b.sql}", Type.FLOAT64, a, b, times=2)
    )
    uneven = f"{rest.sql} <> 0 AND ({rest.sql} < 0) <> ({b.sql} < 0)"
    sql = f"{rest.sql} + CASE WHEN {uneven} THEN {b.sql} ELSE {_ZERO} END"
    return scope.code(sql, Type.FLOAT64, rest, b, times=3)


def _floor(scope: Scope, type_: Type, a: Code) -> Code:
    return scope.code(f"floor({a.sql}) + {_ZERO}", type_, a, finite=a.finite)


def _ceil(scope: Scope, type_: Type, a: Code) -> Code:
    return scope.code(f"ceil({a.sql}) + {_ZERO}", type_, a, finite=a.finite)


def _round(scope: Scope, type_: Type, a: Code) -> Code:
    return scope.code(f"round_even({a.sql}, 0) + {_ZERO}", type_, a, finite=a.finite)


def _sqrt(scope: Scope, type_: Type, a: Code) -> Code:
    a = scope.bind(a)
    return scope.code(f"sqrt(CASE WHEN {a.sql} >= 0 THEN {a.sql} END)", type_, a, times=2, finite=a.finite)


def _exp(scope: Scope, type_: Type, a: Code) -> Code:
    return scope.code(f"exp({a.sql})", type_, a)


def _log(scope: Scope, type_: Type, a: Code) -> Code:
    a = scope.bind(a)
    return scope.code(f"ln(CASE WHEN {a.sql} > 0 THEN {a.sql} END)", type_, a, times=2, finite=a.finite)


def _power(scope: Scope, type_: Type, a: Code, b: Code) -> Code:
    a, b = scope.bind(a), scope.bind(b)
    base = f"CASE WHEN {a.sql} = 0 AND {b.sql} < 0 THEN NULL ELSE {a.sql} END"
    return _not_nan(scope, scope.code(f"pow({base}, {b.sql}) + {_ZERO}", type_, a, b, times=2))


def _seconds(scope: Scope, a: Code, b: Code) -> Code:
    """The seconds between two timestamps, rounded once.

    A difference above 2⁵³ microseconds is not a double. Then whole seconds and
    the rest are added: the rest is never so near the middle of two doubles that
    its own rounding could change the sum.
    """
    micros = scope.bind(scope.code(f"epoch_us({a.sql}) - epoch_us({b.sql})", Type.INT64, a, b))
    small = f"{micros.sql} BETWEEN {big(-(2**53))} AND {big(2**53)}"
    whole, rest = f"CAST({micros.sql} // 1000000 AS DOUBLE)", f"CAST({micros.sql} % 1000000 AS DOUBLE)"
    million = "'1000000'::DOUBLE"
    at_once, in_parts = f"CAST({micros.sql} AS DOUBLE) / {million}", f"{whole} + {rest} / {million}"
    sql = f"CASE WHEN {small} THEN {at_once} ELSE {in_parts} END"
    return scope.code(sql, Type.FLOAT64, micros, times=4, finite=True)


# ── truth and nulls ──────────────────────────────────────────────────────────────────


def _infix(sign: str) -> Callable[..., Code]:
    def lower(scope: Scope, type_: Type, a: Code, b: Code) -> Code:
        return scope.code(f"{a.sql} {sign} {b.sql}", type_, a, b)

    return lower


def _not(scope: Scope, type_: Type, a: Code) -> Code:
    return scope.code(f"NOT {a.sql}", type_, a)


def _hull(a: Code, b: Code) -> dict[str, Any]:
    return {"low": min(a.low, b.low), "high": max(a.high, b.high), "finite": a.finite and b.finite}


def _if_else(scope: Scope, type_: Type, c: Code, a: Code, b: Code) -> Code:
    return scope.code(f"CASE WHEN {c.sql} THEN {a.sql} ELSE {b.sql} END", type_, c, a, b, **_hull(a, b))


def _is_in(scope: Scope, a: Code, *values: Code) -> Code:
    return scope.code(f"{a.sql} IN ({', '.join(v.sql for v in values)})", Type.BOOL, a)


def _is_null(scope: Scope, type_: Type, a: Code) -> Code:
    return scope.code(f"{a.sql} IS NULL", type_, a)


def _fill_null(scope: Scope, type_: Type, a: Code, b: Code) -> Code:
    return scope.code(f"coalesce({a.sql}, {b.sql})", type_, a, b, **_hull(a, b))


# ── conversions ──────────────────────────────────────────────────────────────────────


def _matching(a: Code, pattern: str) -> str:
    return f"CASE WHEN regexp_full_match({a.sql}, '{pattern}') THEN {a.sql} END"


_INTEGER = "[+-]?[0-9]{1,19}"
_FLOAT = r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?"
_DATE = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIMESTAMP = rf"{_DATE}(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{{1,6}})?)?)?"


def _to_int64(scope: Scope, type_: Type, a: Code) -> Code:
    if a.type is Type.BOOL:
        return scope.code(f"CAST({a.sql} AS BIGINT)", type_, a, low=0, high=1)
    a = scope.bind(a)
    if a.type is Type.FLOAT64:
        inside = f"{a.sql} >= '-{2**63}'::DOUBLE AND {a.sql} < '{2**63}'::DOUBLE"
        safe = f"CASE WHEN {inside} THEN trunc({a.sql}) END"
        return scope.code(f"CAST({safe} AS BIGINT)", type_, a, times=3)
    wide = scope.bind(scope.code(f"CAST({_matching(a, _INTEGER)} AS HUGEINT)", type_, a, times=2))
    return scope.code(narrow(wide.sql), type_, wide, times=2)


def _to_float64(scope: Scope, type_: Type, a: Code) -> Code:
    if a.type is not Type.STRING:
        return scope.code(f"CAST({a.sql} AS DOUBLE)", type_, a, finite=True)
    a = scope.bind(a)
    return scope.code(f"CAST({_matching(a, _FLOAT)} AS DOUBLE) + {_ZERO}", type_, a, times=2)


def _to_string(scope: Scope, type_: Type, a: Code) -> Code:
    return scope.code(f"CAST({a.sql} AS VARCHAR)", type_, a)


def _to_date(scope: Scope, type_: Type, a: Code) -> Code:
    if a.type is Type.TIMESTAMP:
        return scope.code(f"CAST({a.sql} AS DATE)", type_, a)
    text = _of_a_day(scope, a, _DATE)
    return scope.code(f"CAST({text.sql} AS DATE)", type_, text)


def _of_a_day(scope: Scope, a: Code, pattern: str) -> Code:
    """A text of the pattern that begins with a day that exists, else null."""
    a = scope.bind(a)
    text = scope.bind(scope.code(_matching(a, pattern), Type.STRING, a, times=2))
    year = f"CAST(substring({text.sql}, 1, 4) AS BIGINT)"
    leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
    month, day = f"substring({text.sql}, 6, 2)", f"substring({text.sql}, 9, 2)"
    last = (
        f"CASE WHEN {month} IN ('04', '06', '09', '11') THEN '30' WHEN {month} <> '02' THEN '31' "
        f"WHEN {leap} THEN '29' ELSE '28' END"
    )
    exists = f"substring({text.sql}, 1, 4) <> '0000' AND {day} <= {last}"
    return scope.code(f"CASE WHEN {exists} THEN {text.sql} END", Type.STRING, text, times=8)


def _to_timestamp(scope: Scope, type_: Type, a: Code) -> Code:
    if a.type is Type.DATE:
        return scope.code(f"CAST({a.sql} AS TIMESTAMP)", type_, a)
    text = scope.bind(_of_a_day(scope, a, _TIMESTAMP))
    # With the rest of midnight behind it, so that there is one form to parse.
    whole = f"{text.sql} || substring(' 00:00:00.000000', length({text.sql}) - 9)"
    return scope.code(f"CAST({whole} AS TIMESTAMP)", type_, text, times=2)


def _to_bool(scope: Scope, type_: Type, a: Code) -> Code:
    a = scope.bind(a)
    true, false = (", ".join(f"'{word}'" for word in words) for words in (TRUE, FALSE))
    sql = f"CASE WHEN {a.sql} IN ({true}) THEN TRUE WHEN {a.sql} IN ({false}) THEN FALSE END"
    return scope.code(sql, type_, a, times=2)


# ── strings ──────────────────────────────────────────────────────────────────────────


def _case_mapping(function: str, source: str, target: str) -> Callable[..., Code]:
    def lower(scope: Scope, type_: Type, a: Code) -> Code:
        a = scope.bind(a)
        # DuckDB's own mapping is the table's on ASCII, where bytes are code points, and far faster.
        table = f"translate({a.sql}, {scope.parameters.bind(source)}, {scope.parameters.bind(target)})"
        sql = f"CASE WHEN strlen({a.sql}) = length({a.sql}) THEN {function}({a.sql}) ELSE {table} END"
        return scope.code(sql, type_, a, times=4)

    return lower


def _strip(scope: Scope, type_: Type, a: Code) -> Code:
    return scope.code(f"trim({a.sql}, {scope.parameters.bind(SPACE)})", type_, a)


def _length(scope: Scope, type_: Type, a: Code) -> Code:
    return scope.code(f"length({a.sql})", type_, a, low=0, high=2**32)


def _substring(scope: Scope, type_: Type, a: Code, start: Code, length: Code) -> Code:
    first, count = min(start.low, _LONGEST - 1) + 1, min(length.low, _LONGEST)
    return scope.code(f"substring({a.sql}, {first}, {count})", type_, a)


def _concat(scope: Scope, type_: Type, a: Code, b: Code) -> Code:
    a, b = scope.bind(a), scope.bind(b)
    short = f"length({a.sql}) + length({b.sql}) <= {MAX_STRING}"
    return scope.code(f"CASE WHEN {short} THEN {a.sql} || {b.sql} END", type_, a, b, times=2)


def _function(name: str, **known: int) -> Callable[..., Code]:
    def lower(scope: Scope, type_: Type, *arguments: Code) -> Code:
        return scope.code(f"{name}({', '.join(a.sql for a in arguments)})", type_, *arguments, **known)

    return lower


def _weekday(scope: Scope, type_: Type, a: Code) -> Code:
    return scope.code(f"isodow({a.sql}) - 1", type_, a, low=0, high=6)


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
    "lower": _case_mapping("lower", UPPER, LOWER),
    "upper": _case_mapping("upper", LOWER, UPPER),
    "strip": _strip,
    "length": _length,
    "substring": _substring,
    "concat": _concat,
    "contains": _function("contains"),
    "starts_with": _function("starts_with"),
    "ends_with": _function("suffix"),
    "split": _function("string_split"),
    "year": _function("year", low=1, high=9999),
    "month": _function("month", low=1, high=12),
    "day": _function("day", low=1, high=31),
    "weekday": _weekday,
    "hour": _function("hour", low=0, high=23),
}

_RESULTS = {
    (name, takes): gives for name, operator in OPERATORS.items() for takes, gives in operator.signatures
}
