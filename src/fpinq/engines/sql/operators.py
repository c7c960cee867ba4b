"""Every operator of the row language as SQL: those of truth, nulls and time, and one table of all."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fpinq.engines.sql.numbers import NUMBERS
from fpinq.engines.sql.texts import TEXTS
from fpinq.model.expressions import Type
from fpinq.model.operators import OPERATORS as MODEL

if TYPE_CHECKING:
    from fpinq.engines.sql.expressions import Bindings, Code


# ── truth and nulls ──────────────────────────────────────────────────────────────────


def _infix(sign: str) -> "Callable[..., Code]":
    def lower(bindings: "Bindings", type_: Type, a: "Code", b: "Code") -> "Code":
        return bindings.code(f"{a.sql} {sign} {b.sql}", type_, a, b)

    return lower


def _not(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    return bindings.code(f"NOT {a.sql}", type_, a)


def _hull(a: "Code", b: "Code") -> dict[str, Any]:
    return {"low": min(a.low, b.low), "high": max(a.high, b.high), "finite": a.finite and b.finite}


def _if_else(bindings: "Bindings", type_: Type, c: "Code", a: "Code", b: "Code") -> "Code":
    # A null is none of the values that are known of the other.
    known = _hull(a, a if b.sql == bindings.dialect.null(b.type) else b)
    return bindings.code(f"CASE WHEN {c.sql} THEN {a.sql} ELSE {b.sql} END", type_, c, a, b, **known)


def is_in(bindings: "Bindings", a: "Code", *values: "Code") -> "Code":
    """Whether a value is one of some."""
    return bindings.code(f"{a.sql} IN ({', '.join(v.sql for v in values)})", Type.BOOL, a)


def _is_null(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
    return bindings.code(f"{a.sql} IS NULL", type_, a)


def _fill_null(bindings: "Bindings", type_: Type, a: "Code", b: "Code") -> "Code":
    return bindings.code(f"coalesce({a.sql}, {b.sql})", type_, a, b, **_hull(a, b))


# ── time ─────────────────────────────────────────────────────────────────────────────


def _part(name: str, low: int, high: int) -> "Callable[..., Code]":
    def lower(bindings: "Bindings", type_: Type, a: "Code") -> "Code":
        return bindings.apply(lambda time: bindings.dialect.part(name, time), type_, a, low=low, high=high)

    return lower


OPERATORS: "dict[str, Callable[..., Code]]" = {
    **NUMBERS,
    **TEXTS,
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
    "year": _part("year", 1, 9999),
    "month": _part("month", 1, 12),
    "day": _part("day", 1, 31),
    "weekday": _part("weekday", 0, 6),
    "hour": _part("hour", 0, 23),
}
"""All operators, by name; two that need more than the SQL of their arguments are `is_in` and `split`."""

RESULTS = {(name, takes): gives for name, operator in MODEL.items() for takes, gives in operator.signatures}
"""The type of what each operator gives for arguments of some types."""
