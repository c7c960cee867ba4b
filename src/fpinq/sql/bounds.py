"""Bounds of an expression, from those of its columns and the constants in it: CLAMP is one of them."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor

from fpinq.client.bounds import Known, exact_bounds
from fpinq.model.epsilon import rational
from fpinq.model.expressions import Column, Expression, Literal
from fpinq.sql.scalars import is_opaque

Interval = tuple[Fraction, Fraction]
_ZERO = Fraction(0)

# What these give lies between, whatever they are given.
_ALWAYS: dict[str, tuple[int, int]] = {
    "sign": (-1, 1), "month": (1, 12), "day": (1, 31), "weekday": (0, 6), "hour": (0, 23), "year": (1, 9999),
    "equal": (0, 1), "not_equal": (0, 1), "less": (0, 1), "less_equal": (0, 1), "greater": (0, 1),
    "greater_equal": (0, 1), "and": (0, 1), "or": (0, 1), "not": (0, 1), "is_in": (0, 1), "is_null": (0, 1),
    "contains": (0, 1), "starts_with": (0, 1), "ends_with": (0, 1),
}  # fmt: skip


def bounds_of(tree: Expression, known: Mapping[str, Known]) -> Interval | None:
    """Between what an expression lies, where it is not null; None if nothing says so."""
    if isinstance(tree, Column):
        column = known.get(tree.name)
        return None if column is None or column.bounds is None else exact_bounds(column.bounds)
    if isinstance(tree, Literal):
        exact = rational(tree.value)
        return None if exact is None else (exact, exact)
    if tree.operator in _ALWAYS:
        low, high = _ALWAYS[tree.operator]
        return Fraction(low), Fraction(high)
    if tree.operator == "clip":
        return _clipped(tree.arguments[1], tree.arguments[2])
    if is_opaque(tree):
        return None
    if tree.operator in ("if_else", "fill_null"):
        branches = tree.arguments[1:] if tree.operator == "if_else" else tree.arguments
        return _around([bounds_of(each, known) for each in branches if not _is_null(each)])
    rule = _RULES.get(tree.operator)
    given = [bounds_of(each, known) for each in tree.arguments]
    inside = [each for each in given if each is not None]
    return None if rule is None or len(inside) < len(given) else rule(*inside)


def _is_null(tree: Expression) -> bool:
    return isinstance(tree, Literal) and tree.value is None


def _clipped(low: Expression, high: Expression) -> Interval | None:
    bounds = [rational(each.value) if isinstance(each, Literal) else None for each in (low, high)]
    return None if bounds[0] is None or bounds[1] is None else (bounds[0], bounds[1])


def _around(some: list[Interval | None]) -> Interval | None:
    inside = [each for each in some if each is not None]
    if not inside or len(inside) < len(some):
        return None
    return min(low for low, _ in inside), max(high for _, high in inside)


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _absolute(a: Interval) -> Interval:
    ends = sorted(abs(end) for end in a)
    return (_ZERO if a[0] <= 0 <= a[1] else ends[0]), ends[1]


def _quotient(a: Interval, b: Interval) -> Interval | None:
    return None if b[0] <= 0 <= b[1] else _product(a, (1 / b[1], 1 / b[0]))


def _whole_quotient(a: Interval, b: Interval) -> Interval | None:
    found = _quotient(a, b)
    return None if found is None else (Fraction(floor(found[0])), Fraction(floor(found[1])))


def _remainder(a: Interval, b: Interval) -> Interval:
    """Of the sign of the divisor, and nearer to zero."""
    return min(b[0], _ZERO), max(b[1], _ZERO)


_RULES: dict[str, Callable[..., Interval | None]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": _product,
    "divide": _quotient,
    "floor_divide": _whole_quotient,
    "modulo": _remainder,
    "negate": lambda a: (-a[1], -a[0]),
    "abs": _absolute,
    "to_float64": lambda a: a,
    "to_int64": lambda a: (Fraction(floor(a[0])), Fraction(ceil(a[1]))),
    "floor": lambda a: (Fraction(floor(a[0])), Fraction(floor(a[1]))),
    "ceil": lambda a: (Fraction(ceil(a[0])), Fraction(ceil(a[1]))),
    "round": lambda a: (Fraction(floor(a[0])), Fraction(ceil(a[1]))),
}
