"""Amounts of ε, ρ and δ as a program sees them: exact, and printed as decimals."""

from fractions import Fraction

from fpinq.client.shown import visibly
from fpinq.model.epsilon import decimal_down

# A decimal that is longer is shown by its first digits.
LONGEST, FIRST = 12, 6
# What is smaller, as a δ is, would be zeros: it is shown with its power of ten.
SMALL = Fraction(1, 10**FIRST)


@visibly
class Amount(Fraction):
    """A Fraction in all it does; it prints as 7.6648, 1e-10, and 0.333333… where a decimal does not end."""

    __slots__ = ()

    def __str__(self) -> str:
        size, sign = abs(self), "-" if self < 0 else ""
        if 0 < size < SMALL:
            return sign + _with_its_power(size)
        text = decimal_down(size, LONGEST)
        return sign + (text if Fraction(text) == size else f"{decimal_down(size, FIRST)}…")

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __fpinq_value__(self) -> Fraction:
        return Fraction(self.numerator, self.denominator)


def _with_its_power(size: Fraction) -> str:
    """1e-10; 3.33333…e-11, rounded down, where that does not end."""
    power = len(str(size.denominator // size.numerator))
    if size * 10**power >= 10:
        power -= 1
    digits = size * 10**power
    text = decimal_down(digits, LONGEST)
    mantissa = text if Fraction(text) == digits else f"{decimal_down(digits, FIRST - 1)}…"
    return f"{mantissa}e-{power:02}"


def plain_amount(number: object) -> object:
    """An amount as the Fraction it is; anything else is what it is."""
    return number.__fpinq_value__() if isinstance(number, Amount) else number
