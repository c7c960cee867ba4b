"""Rigorous bounds on e^−r and ln x for rationals, in integer arithmetic.

A real x is enclosed to some number of bits by integers low and high with
low ≤ x·2^bits ≤ high. Every step rounds low down and high up, so the bounds
hold whatever the precision; a few spare bits keep them a few units apart. No
float takes part.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

Enclosure: TypeAlias = tuple[int, int]


def ceil_div(a: int, b: int) -> int:
    """⌈a / b⌉ for b > 0."""
    return -(-a // b)


def ceil_shift(a: int, bits: int) -> int:
    """⌈a / 2^bits⌉."""
    return -(-a >> bits)


def exp_negative(r: Fraction, bits: int) -> Enclosure:
    """e^−r for a rational r ≥ 0, to bits.

    With t = r/2^h < 2^−8: the series of e^t has positive terms only, so
    rounding each down and cutting the series bounds it from below; rounding
    up and adding one unit for the rest, which is under t/(1 − t) of the last
    term, from above. Then e^−r = (1/e^t)^(2^h), by h squarings.
    """
    if r >= bits:
        return 0, 1  # e^−r < 2^−r ≤ 2^−bits
    halvings = int(r).bit_length() + 8
    work = bits + halvings + 16
    one = 1 << work
    denominator = r.denominator << halvings
    t_low = (r.numerator << work) // denominator
    t_high = ceil_div(r.numerator << work, denominator)
    low = high = term_low = term_high = one
    k = 0
    while term_high > 1:
        k += 1
        term_low = (term_low * t_low >> work) // k
        term_high = ceil_div(ceil_shift(term_high * t_high, work), k)
        low += term_low
        high += term_high
    low, high = (one * one) // (high + 1), ceil_div(one * one, low)
    for _ in range(halvings):
        low, high = low * low >> work, ceil_shift(high * high, work)
    return low >> (work - bits), ceil_shift(high, work - bits)


def exp_multiples(rate: Fraction, largest: int, bits: int) -> Callable[[int], Enclosure]:
    """The function k ↦ e^(−rate·k) to bits, for integers 0 ≤ k ≤ largest.

    A product of e^(−rate·2^i) over the binary digits of k: a few
    multiplications each where `exp_negative` would need a series.
    """
    work = bits + largest.bit_length().bit_length() + 4
    squares = [exp_negative(rate * (1 << i), work) for i in range(largest.bit_length())]

    def multiple(k: int) -> Enclosure:
        low = high = 1 << work
        for i, (square_low, square_high) in enumerate(squares):
            if k >> i & 1:
                low, high = low * square_low >> work, ceil_shift(high * square_high, work)
        return low >> (work - bits), ceil_shift(high, work - bits)

    return multiple


def ln(x: Fraction, bits: int) -> Enclosure:
    """ln x for a rational x > 0, to bits."""
    return ln_of(x.numerator, x.denominator, bits)


def ln_of(n: int, d: int, bits: int) -> Enclosure:
    """ln(n/d) for positive integers, to bits: they need not be in lowest terms.

    With n/d = 2^e·z and z in (1/2, 2): ln(n/d) = e·ln 2 + 2·artanh((z − 1)/(z + 1)).
    """
    e = n.bit_length() - d.bit_length()
    n, d = n << max(-e, 0), d << max(e, 0)
    work = bits + abs(e).bit_length() + 8
    low, high = artanh(abs(n - d), n + d, work)
    if n < d:
        low, high = -high, -low
    two_low, two_high = ln_two(work)
    low = 2 * low + e * (two_low if e >= 0 else two_high)
    high = 2 * high + e * (two_high if e >= 0 else two_low)
    return low >> (work - bits), ceil_shift(high, work - bits)


@lru_cache(maxsize=64)
def ln_two(bits: int) -> Enclosure:
    """ln 2 = 2·artanh(1/3)."""
    low, high = artanh(1, 3, bits)
    return 2 * low, 2 * high


def artanh(n: int, d: int, bits: int) -> Enclosure:
    """artanh(n/d) for 0 ≤ n/d ≤ 1/3: the sum of t^k/k over odd k.

    All terms are positive, as in `exp_negative`; what follows a term is
    under an eighth of it.
    """
    work = bits + bits.bit_length() + 4
    low = high = 0
    power_low, power_high = (n << work) // d, ceil_div(n << work, d)
    square_low, square_high = power_low * power_low >> work, ceil_shift(power_high * power_high, work)
    k = 1
    while True:
        low += power_low // k
        high += ceil_div(power_high, k)
        if power_high <= 1:
            return low >> (work - bits), ceil_shift(high + 1, work - bits)
        power_low, power_high = power_low * square_low >> work, ceil_shift(power_high * square_high, work)
        k += 2


def power(x: Enclosure, n: int, bits: int) -> Enclosure:
    """x^n for 0 ≤ x ≤ 1 and n ≥ 0, by squaring."""
    low = high = 1 << bits
    square_low, square_high = x
    while n:
        if n & 1:
            low, high = low * square_low >> bits, ceil_shift(high * square_high, bits)
        square_low, square_high = square_low * square_low >> bits, ceil_shift(square_high * square_high, bits)
        n >>= 1
    return low, high


def quotient(numerator: Enclosure, denominator: Enclosure, bits: int) -> Enclosure:
    """numerator / denominator to bits, both enclosed to the same number of bits and denominator > 0."""
    return (numerator[0] << bits) // denominator[1], ceil_div(numerator[1] << bits, denominator[0])


def fractions(enclosure: Enclosure, bits: int) -> tuple[Fraction, Fraction]:
    """An enclosure to bits as rational bounds."""
    return Fraction(enclosure[0], 1 << bits), Fraction(enclosure[1], 1 << bits)
