"""Amounts of ε as a program sees them: exact, and printed as decimals."""

from fractions import Fraction

from fpinq.model.epsilon import decimal_down

# A decimal that is longer is shown by its first digits.
LONGEST, FIRST = 12, 6


class Amount(Fraction):
    """A Fraction in all it does; it prints as 7.6648, and as 0.333333… where a decimal does not end."""

    __slots__ = ()

    def __str__(self) -> str:
        size, sign = abs(self), "-" if self < 0 else ""
        text = decimal_down(size, LONGEST)
        return sign + (text if Fraction(text) == size else f"{decimal_down(size, FIRST)}…")

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __fpinq_value__(self) -> Fraction:
        return Fraction(self.numerator, self.denominator)


def plain_amount(number: object) -> object:
    """An amount as the Fraction it is; anything else is what it is."""
    return number.__fpinq_value__() if isinstance(number, Amount) else number
