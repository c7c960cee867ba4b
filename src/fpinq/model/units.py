"""Units: what the others see of a session's spending.

A session's own charge C is an exact rational, kept by the kernel. What the
others see of it is the number of *units* it takes, rounded up: a unit is
1/GRAIN, and GRAIN is divisible by 10¹⁸ and by every number up to 40, so that all
decimals of 18 digits and all usual fractions are whole numbers of units.
Rounding can only refuse, and only what is within 10⁻³³ of the budget; the
numbers stay bounded whatever ε a program sends. Nothing else rounds.
"""

from fractions import Fraction
from math import lcm

GRAIN = 10**18 * lcm(*range(1, 41))


def units(amount: Fraction) -> int:
    """An amount in units, rounded up."""
    above, below = amount.as_integer_ratio()
    return -(-above * GRAIN // below)


def amount(number: int) -> Fraction:
    """The amount of a number of units."""
    return Fraction(number, GRAIN)


def less(total: Fraction, number: int) -> Fraction:
    """total less a number of units, exactly."""
    if not number:
        return total
    whole, rest = divmod(GRAIN, total.denominator)
    return total - amount(number) if rest else Fraction(total.numerator * whole - number, GRAIN)
