"""Numbers in the body of a question: a number of JSON, or a text, which may be 1/3 too; taken exactly."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from fpinq.ledger.errors import BadWire
from fpinq.model import epsilon as exact
from fpinq.model.errors import BadQuery, ProgramError

Number = int | float | str

NUMBER_CHARACTERS = 100
LONGEST_EXPONENT = 400


def number_of(given: Any, name: str) -> Number:
    """What a field has, if it can be a number."""
    if type(given) in (int, float) or (type(given) is str and 0 < len(given) <= NUMBER_CHARACTERS):
        number: Number = given
        return number
    raise BadWire(f'{name!r} is a number, or a text such as "1/3"')


def exactly(number: Number, error: type[ProgramError] = BadQuery) -> Any:
    """A number of a body: a text may be 1/3, too."""
    if not isinstance(number, str):
        if isinstance(number, float) and not math.isfinite(number):
            raise error("numbers are finite")
        return number
    try:
        found = Fraction(number) if "/" in number else _of_decimal(Decimal(number))
    except (ValueError, ArithmeticError):
        found = None
    if found is None:
        raise error(f'{number[:40]!r} is not a number, such as 0.1 or "1/3"')
    return found


def _of_decimal(number: Decimal) -> Fraction | None:
    """A decimal exactly, if it is not far larger or smaller than doubles are: 1e999999999 is a short text."""
    return exact.rational(number) if abs(number.adjusted()) <= LONGEST_EXPONENT else None
