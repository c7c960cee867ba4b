"""Exact numbers: rationals, so that ten queries at 0.1 fit a budget of 1.

An int, Fraction, Decimal, or a decimal or fraction string is taken exactly, a
float through its shortest repr. Everything that could be inexact, endless or
deceitful is refused. An `Epsilon` is made here and nowhere else: once where a
program says it, and once where the kernel reads it off an action.
"""

import re
from decimal import Decimal
from fractions import Fraction
from math import gcd, isfinite
from typing import NewType, TypeGuard

from fpinq.model.errors import BadEpsilon

DIGITS = 18
LIMIT = 10**DIGITS
SMALLEST = Fraction(1, LIMIT)
# A longer decimal is written to be long.
LONGEST_EXPONENT = 10_000

# An exact ε > 0 that was checked.
Epsilon = NewType("Epsilon", Fraction)

# Bounded repetition throughout: the size of a text is known before its value is computed.
_DECIMAL = re.compile(r"[+-]?(\d{1,40})(?:\.(\d{0,40}))?(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_FRACTION = re.compile(r"([+-]?\d{1,40})/(\d{1,40})", re.ASCII)


def epsilon(number: object) -> Epsilon:
    """number as an exact ε > 0; BadEpsilon if it is not one."""
    return Epsilon(_exact(number, "ε", zero=False))


def budget(number: object) -> Fraction:
    """number as an exact budget ≥ 0; BadEpsilon if it is not one."""
    return _exact(number, "a budget", zero=True)


def rho(number: object) -> Fraction:
    """number as an exact ρ > 0, of which what is true of ε is true; BadEpsilon if it is not one."""
    return _exact(number, "ρ", zero=False)


def delta(number: object) -> Fraction:
    """number as an exact δ, more than 0 and less than 1; BadEpsilon if it is not one."""
    exact = _exact(number, "δ", zero=False)
    if exact >= 1:
        raise BadEpsilon("δ must be less than 1")
    return exact


def is_fraction(number: object) -> TypeGuard[Fraction]:
    """Whether it is a Fraction, and one of two ints in lowest terms.

    Fraction(x) takes over the numerator and the denominator of any x that says that it is rational, as they
    are: an int that adds up to something else each time, or −1 below a 5.
    """
    if type(number) is not Fraction:
        return False
    above, below = number.as_integer_ratio()
    return type(above) is int and type(below) is int and below > 0 and gcd(above, below) == 1


def per(number: int, epsilon: Epsilon) -> Fraction:
    """number/ε; Python's own quotient asks first of which classes they are."""
    above, below = epsilon.as_integer_ratio()
    return Fraction(number * below, above)


def rational(number: object) -> Fraction | None:
    """number exactly, of any size: a bound, a fraction of the records, a confidence; None if it is none."""
    if type(number) is int or is_fraction(number):
        return Fraction(number)
    if type(number) is float and isfinite(number):
        return Fraction(float.__repr__(number))
    if type(number) is Decimal and number.is_finite() and abs(number.adjusted()) <= LONGEST_EXPONENT:
        return Fraction(number)
    return None


def decimal_down(number: Fraction, places: int = 6) -> str:
    """number ≥ 0 in decimals, rounded down: never shows more than there is."""
    whole = number.numerator * 10**places // number.denominator
    digits = str(whole).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")


def _exact(number: object, what: str, *, zero: bool) -> Fraction:
    # Exact types only: a subclass may redefine comparison and lie about its size.
    if type(number) is int:
        value = _of_bounded(number, 1, what)
    elif type(number) is Fraction:
        if not is_fraction(number):
            raise BadEpsilon(f"{what} must be a Fraction of two ints in lowest terms")
        value = number
        if abs(value.numerator) >= LIMIT or value.denominator > LIMIT:
            raise _too_long(what)
    elif type(number) is float:
        value = _from_text(float.__repr__(number), what)
    elif type(number) is Decimal:
        value = _from_text(str(number).lower(), what)
    elif type(number) is str:
        value = _from_text(number.strip(), what)
    else:
        raise BadEpsilon(
            f"{what} must be an int, float, Fraction, Decimal or a string such as '0.1' or '1/3', "
            f"not {type(number).__name__}; convert it first"
        )
    if value.numerator < 0 or (value.numerator == 0 and not zero):
        raise BadEpsilon(f"{what} must be {'≥' if zero else '>'} 0")
    return value


def _from_text(text: str, what: str) -> Fraction:
    if match := _FRACTION.fullmatch(text):
        return _of_bounded(int(match[1]), int(match[2]), what)
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise BadEpsilon(f"{what} must be a finite number such as 0.1 or '1/3', of at most {DIGITS} digits")
    whole, fraction, exponent = match[1], match[2] or "", int(match[3] or 0)
    digits = (whole + fraction).strip("0")
    if len(digits) > DIGITS or abs(exponent) > 99:
        raise _too_long(what)
    value = Fraction(text)
    if value and not SMALLEST <= abs(value) < LIMIT:
        raise _too_long(what)
    return value


def _of_bounded(numerator: int, denominator: int, what: str) -> Fraction:
    if denominator == 0:
        raise BadEpsilon(f"{what} must not have a zero denominator")
    if abs(numerator) >= LIMIT or denominator > LIMIT:
        raise _too_long(what)
    return Fraction(numerator, denominator)


def _too_long(what: str) -> BadEpsilon:
    return BadEpsilon(f"{what} must have at most {DIGITS} digits and lie between 1e-{DIGITS} and 1e{DIGITS}")
