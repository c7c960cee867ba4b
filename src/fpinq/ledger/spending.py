"""Spending: what all sessions together were charged at a root, in exact units.

Partitions belong to a session, so what the sessions charged a root adds up. A
session's own charge C is an exact rational, kept by the kernel. What the others
see of it is the number of *units* it takes, rounded up: a unit is 1/GRAIN, and
GRAIN is divisible by 10¹⁸ and by every number up to 40, so that all decimals of
18 digits and all usual fractions are whole numbers of units. Rounding can only
refuse, and only what is within 10⁻³³ of the budget; the numbers stay bounded
whatever ε a program sends.

In the database a number of units is a text of fixed width: compared as text it
is compared as a number, in every database, without a limit of 64 bits.
"""

from fractions import Fraction
from math import lcm

GRAIN = 10**18 * lcm(*range(1, 41))
WIDTH = 56


def units(amount: Fraction) -> int:
    """An amount in units, rounded up."""
    return -(-amount.numerator * GRAIN // amount.denominator)


def amount(number: int) -> Fraction:
    """The amount of a number of units."""
    return Fraction(number, GRAIN)


def less(total: Fraction, number: int) -> Fraction:
    """total less a number of units, exactly."""
    whole, rest = divmod(GRAIN, total.denominator)
    return total - amount(number) if rest else Fraction(total.numerator * whole - number, GRAIN)


def units_text(number: int) -> str:
    """A number of units as the database holds it."""
    return str(number).rjust(WIDTH, "0")
