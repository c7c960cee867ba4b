"""Clamp to declared bounds, quantise to an integer grid: how a column becomes exact integers.

Floats are never added: their sum depends on the order, so on other records.
"""

from fractions import Fraction
from typing import Any

from fpinq.model.errors import BadQuery
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Expression, Row, Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.model.operators import evaluate, type_of

# The largest integer up to which every integer is a double: grid points of floats stay below it.
MAX_GRID = 2**53

# Every grid point is a number that engines have: where a bound is none, what they clamp to is something else.
_GRIDS = {Type.INT64: (INT64_MIN, INT64_MAX), Type.FLOAT64: (-MAX_GRID, MAX_GRID)}

# A step and its inverse are doubles.
MAX_STEP = 2**1000


@dataclass(frozen=True)
class Clamp:
    """A numeric expression as an integer in [lower, upper], in units of step.

    step is a power of two, so that dividing a double by it is exact; it is 1
    for integers. A value becomes the nearest grid point, ties to even; a null
    contributes nothing.
    """

    value: Expression
    lower: int
    upper: int
    step: Fraction = Fraction(1)

    op = "clamp"

    @property
    def width(self) -> int:
        """W = upper − lower."""
        return self.upper - self.lower

    @property
    def magnitude(self) -> int:
        """max(|lower|, |upper|): how much one record can add to a sum."""
        return max(abs(self.lower), abs(self.upper))


def check_clamp(clamp: Clamp, schema: Schema) -> None:
    """BadQuery if the bounds make no sense for the expression."""
    found = type_of(clamp.value, schema)
    if found not in _GRIDS:
        raise BadQuery(f"bounds need a number, not {found.value}")
    if type(clamp.lower) is not int or type(clamp.upper) is not int or clamp.lower > clamp.upper:
        raise BadQuery("bounds must be (lower, upper) with lower ≤ upper")
    first, last = _GRIDS[found]
    if clamp.lower < first or clamp.upper > last:
        raise BadQuery(f"bounds too wide: between {first} and {last} steps of {clamp.step}")
    if not _is_power_of_two(clamp.step) or (found is Type.INT64 and clamp.step != 1):
        raise BadQuery("the step must be a power of two (between 2^-1000 and 2^1000), and 1 for integers")


def quantise(clamp: Clamp, row: Row) -> int | None:
    """The clamped grid point of a row, or null."""
    number: Any = evaluate(clamp.value, row)
    if number is None:
        return None
    if number in (float("inf"), float("-inf")):
        return clamp.upper if number > 0 else clamp.lower
    return min(max(round(Fraction(number) / clamp.step), clamp.lower), clamp.upper)


def _is_power_of_two(step: Fraction) -> bool:
    larger, smaller = max(step.numerator, step.denominator), min(step.numerator, step.denominator)
    return type(step) is Fraction and smaller == 1 and 0 < larger <= MAX_STEP and larger & (larger - 1) == 0
