"""Bounds, and the grid a bounded expression is measured on.

An integer expression is measured in steps of 1. A float is measured in steps
of a power of two, chosen so that the bounds are between 2^29 and 2^30 steps
apart: rounding to the grid moves a value by at most 2^-30 of the width, far
below the noise of any ε one would use, and squares of it still add up exactly.
Quantiles choose among all grid points, so theirs are 2^19 to 2^20 steps apart.
Where the bounds lie far from zero the steps are wider, so that a grid point
stays below 2^52 in magnitude. Bounds are rounded outward to the grid.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

from fpinq.client.rows import BOOL, FLOAT64, INT64, Cell, plain
from fpinq.client.spelling import spell
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import rational
from fpinq.model.errors import BadQuery, ProgramError
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Value
from fpinq.model.frozen import dataclass
from fpinq.model.operators import MAX_STRING
from fpinq.model.queries import MAX_SQUARED_WIDTH

WIDTH_BITS = 30
RANK_WIDTH_BITS = 20
MAGNITUDE_BITS = 52
# Steps outside this range could not be divided by in doubles.
SMALLEST_STEP_BITS, LARGEST_STEP_BITS = -900, 971


@dataclass(frozen=True)
class Column:
    """Public metadata of a column: bounds and keys that queries then need not repeat.

    max_length is how many characters its texts have at the most: a longer one
    is null. All are the owner's choice and must not be read off the data.
    """

    bounds: tuple[object, object] | None = None
    keys: Sequence[Value] | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None:
            exact_bounds(self.bounds)
        if self.keys is not None:
            object.__setattr__(self, "keys", self.keys if type(self.keys) is range else tuple(self.keys))
        if self.max_length is not None:
            check_length(self.max_length)


# What a program calls fp.Column: here a column is an expression, and this is what is known of one.
Known = Column


def check_length(length: object) -> None:
    """ProgramError unless it is a length that texts can have."""
    if type(length) is not int or not 1 <= length <= MAX_STRING:
        raise ProgramError(f"max_length is a whole number of characters, 1 to {MAX_STRING}")


def exact_bounds(bounds: object) -> tuple[Fraction, Fraction]:
    """(lower, upper) exactly; BadQuery if they are no bounds."""
    bounds = plain(bounds)
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise BadQuery("bounds must be a pair: bounds=(lower, upper)")
    lower, upper = (_exact(bound) for bound in bounds)
    if lower > upper:
        raise BadQuery(f"bounds are reversed: {_show(lower)} is above {_show(upper)}")
    return lower, upper


def _exact(bound: object) -> Fraction:
    exact = rational(plain(bound))
    if exact is None:
        raise BadQuery("bounds must be finite numbers, such as bounds=(0, 110)")
    return exact


def clamp(cell: Cell, bounds: object, *, squared: bool = False, width_bits: int = WIDTH_BITS) -> Clamp:
    """The expression within its bounds, on its grid."""
    if cell.type is BOOL:
        cell, bounds = cell.cast("int64"), (0, 1) if bounds is None else bounds
    if cell.type not in (INT64, FLOAT64):
        raise BadQuery(f"bounds need a number, and {spell(cell.tree)} is {cell.type.value}")
    if bounds is None:
        raise BadQuery(
            f"say the bounds of {spell(cell.tree)}: bounds=(lower, upper), in a shell --bounds 0 110; "
            "they may not depend on the data. "
            "Or once for all with protect(columns={…: fp.Column(bounds=…)})"
        )
    lower, upper = exact_bounds(bounds)
    too_wide_to_square = squared and ceil(upper) - floor(lower) > MAX_SQUARED_WIDTH
    if cell.type is INT64 and not too_wide_to_square:
        if floor(lower) < INT64_MIN or ceil(upper) > INT64_MAX:
            raise BadQuery("bounds too wide: integers have 64 bits")
        return Clamp(cell.tree, floor(lower), ceil(upper))
    step = grid_step(lower, upper, width_bits)
    return Clamp(cell.cast("float64").tree, floor(lower / step), ceil(upper / step), step)


def grid_step(lower: Fraction, upper: Fraction, width_bits: int = WIDTH_BITS) -> Fraction:
    """The power of two that floats within these bounds are measured in."""
    magnitude = max(abs(lower), abs(upper))
    if magnitude == 0:
        return Fraction(1)
    bits = _log2(magnitude) - MAGNITUDE_BITS
    if lower < upper:
        bits = max(bits, _log2(upper - lower) - width_bits)
    if bits > LARGEST_STEP_BITS:
        raise BadQuery("bounds too wide for floats")
    return Fraction(2) ** max(bits, SMALLEST_STEP_BITS)


def _log2(number: Fraction) -> int:
    """The least e with number ≤ 2^e."""
    e = number.numerator.bit_length() - number.denominator.bit_length() - 1
    while number > Fraction(2) ** e:
        e += 1
    return e


def _show(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else repr(float(number))
