"""Integers and floats to SQL: every operator of the row language that computes a number.

Integers carry an interval and floats whether they can be infinite: a guard
that cannot fire is left out.
"""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from fpinq.model.expressions import INT64_MAX, INT64_MIN, Type

if TYPE_CHECKING:
    from fpinq.engines.sql.expressions import Bindings, Code


# ── integers ─────────────────────────────────────────────────────────────────────────


def _fits(low: int, high: int) -> bool:
    return low >= INT64_MIN and high <= INT64_MAX


def _within(low: int, high: int) -> dict[str, int]:
    return {"low": max(low, INT64_MIN), "high": min(high, INT64_MAX)}


def _only_if(bindings: "Bindings", sql: str, low: int, high: int) -> str:
    """sql where it is in the interval, else null."""
    tests = [f"{sql} >= {bindings.integer(low)}"] if low > INT64_MIN else []
    tests += [f"{sql} <= {bindings.integer(high)}"] if high < INT64_MAX else []
    return f"CASE WHEN {' AND '.join(tests)} THEN {sql} END" if tests else sql


def _add(bindings: "Bindings", type_: Type, a: "Code", b: "Code") -> "Code":
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


def _subtract(bindings: "Bindings", type_: Type, a: "Code", b: "Code") -> "Code":
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


def _multiply(bindings: "Bindings", type_: Type, a: "Code", b: "Code") -> "Code":
    if type_ is Type.FLOAT64:
        product = plus_zero(bindings, bindings.apply(bindings.dialect.multiply_floats, type_, a, b))
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


def _floor_divide(bindings: "Bindings", type_: Type, a: "Code", b: "Code") -> "Code":
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


def _modulo(bindings: "Bindings", type_: Type, a: "Code", b: "Code") -> "Code":
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


def _negate(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    if type_ is Type.FLOAT64:
        return plus_zero(bindings, bindings.code(f"-{a.sql}", type_, a), finite=a.finite)
    a = bindings.bind(a) if a.low == INT64_MIN else a
    safe = _only_if(bindings, a.sql, max(a.low, -INT64_MAX), INT64_MAX) if a.low == INT64_MIN else a.sql
    return bindings.code(f"-({safe})", type_, a, times=2, low=-a.high, high=min(-a.low, INT64_MAX))


def _abs(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    if type_ is Type.FLOAT64:
        return bindings.code(f"abs({a.sql})", type_, a, finite=a.finite)
    a = bindings.bind(a) if a.low == INT64_MIN else a
    safe = _only_if(bindings, a.sql, -INT64_MAX, INT64_MAX) if a.low == INT64_MIN else a.sql
    low = 0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return bindings.code(f"abs({safe})", type_, a, times=2, **_within(low, max(abs(a.low), abs(a.high))))


def _sign(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    a = bindings.bind(a)
    branches = ((">", 1), ("<", -1), ("=", 0))
    cases = (f"WHEN {a.sql} {sign} 0 THEN {bindings.integer(one)}" for sign, one in branches)
    return bindings.code(f"CASE {' '.join(cases)} END", type_, a, times=3, low=-1, high=1)


def clip(bindings: "Bindings", type_: Type, a: "Code", lower: "Code", upper: "Code") -> "Code":
    """A number, or the nearer of two bounds where it is beyond them."""
    a = bindings.bind(a)
    inside = f"WHEN {a.sql} < {lower.sql} THEN {lower.sql} WHEN {a.sql} > {upper.sql} THEN {upper.sql}"
    sql = f"CASE {inside} ELSE {a.sql} END"
    if type_ is Type.FLOAT64:
        return bindings.code(sql, type_, a, times=3, finite=lower.finite and upper.finite)
    low, high = max(lower.low, min(a.low, upper.low)), min(upper.low, max(a.high, lower.low))
    if lower.low <= upper.low:
        sql = bindings.dialect.clamp_integer(a.sql, lower.sql, upper.sql)
    return bindings.code(
        sql if (a.low, a.high) != (low, high) else a.sql, type_, a, times=3, low=low, high=high
    )


# ── floats ───────────────────────────────────────────────────────────────────────────


def _not_nan(bindings: "Bindings", a: "Code") -> "Code":
    a = bindings.bind(a)
    return bindings.code(
        f"CASE WHEN {bindings.dialect.is_nan(a.sql)} THEN NULL ELSE {a.sql} END", a.type, a, times=2
    )


def plus_zero(bindings: "Bindings", a: "Code", **known: Any) -> "Code":
    """The same, with 0 in place of −0."""
    return bindings.code(f"{a.sql} + {bindings.double(0.0)}", Type.FLOAT64, a, **known)


def _sum(bindings: "Bindings", template: Callable[[str, str], str], a: "Code", b: "Code") -> "Code":
    total = bindings.apply(template, Type.FLOAT64, a, b)
    # Only ∞ − ∞ is NaN; a sum of canonical floats is never −0.
    return total if a.finite or b.finite else _not_nan(bindings, total)


def _divide(bindings: "Bindings", type_: Type, a: "Code", b: "Code") -> "Code":
    b = bindings.bind(b)
    by = bindings.code(f"CASE WHEN {b.sql} = 0 THEN NULL ELSE {b.sql} END", type_, b, times=2)
    quotient = plus_zero(bindings, bindings.apply(bindings.dialect.divide_floats, type_, a, by))
    return quotient if a.finite or b.finite else _not_nan(bindings, quotient)


def _float_modulo(bindings: "Bindings", a: "Code", b: "Code") -> "Code":
    a, b = bindings.bind(a), bindings.bind(b)
    finite = f"CASE WHEN abs({a.sql}) < {bindings.double(inf)} THEN {a.sql} END"
    divided = bindings.code(finite, Type.FLOAT64, a, times=2)
    by = bindings.code(f"CASE WHEN {b.sql} <> 0 THEN {b.sql} END", Type.FLOAT64, b, times=2)
    rest = bindings.bind(bindings.apply(bindings.dialect.float_remainder, Type.FLOAT64, divided, by))
    sql = f"{rest.sql} + CASE WHEN {_uneven(rest.sql, b.sql)} THEN {b.sql} ELSE {bindings.double(0.0)} END"
    return bindings.code(sql, Type.FLOAT64, rest, b, times=3)


def _floor(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    return plus_zero(bindings, bindings.apply(bindings.dialect.floor, type_, a), finite=a.finite)


def _ceil(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    return plus_zero(bindings, bindings.apply(bindings.dialect.ceil, type_, a), finite=a.finite)


def _round(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    return plus_zero(bindings, bindings.apply(bindings.dialect.round, type_, a), finite=a.finite)


def _sqrt(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    a = bindings.bind(a)
    root = bindings.code(f"CASE WHEN {a.sql} >= 0 THEN {a.sql} END", type_, a, times=2)
    return bindings.apply(bindings.dialect.sqrt, type_, root, finite=a.finite)


def _exp(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    return bindings.apply(bindings.dialect.exp, type_, a)


def _log(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    a = bindings.bind(a)
    positive = bindings.code(f"CASE WHEN {a.sql} > 0 THEN {a.sql} END", type_, a, times=2)
    return bindings.apply(bindings.dialect.log, type_, positive, finite=a.finite)


def _power(bindings: "Bindings", type_: Type, a: "Code", b: "Code") -> "Code":
    a, b = bindings.bind(a), bindings.bind(b)
    base = bindings.code(f"CASE WHEN {a.sql} = 0 AND {b.sql} < 0 THEN NULL ELSE {a.sql} END", type_, a, b)
    return _not_nan(bindings, plus_zero(bindings, bindings.apply(bindings.dialect.power, type_, base, b)))


def _seconds(bindings: "Bindings", a: "Code", b: "Code") -> "Code":
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


NUMBERS: "dict[str, Callable[..., Code]]" = {
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
    "clip": clip,
}
"""The operators of numbers, by name."""
