"""Σ e^(−x²/(2σ²)) over the integers x ≥ t, bounded as narrowly as needed, for any σ.

Where σ < 32 the terms are added up: each is the one before times e^(−(2x−1)/(2σ²)), so two multiplications
give the next. What follows the last term is less than that term times 1/(e^y − 1) ≤ 1/y, y = (2x + 1)/(2σ²).

Beyond, with f(x) = e^(−x²/(2σ²)), by Euler and Maclaurin, for any even n,

    Σ_{x ≥ t} f(x) = ∫_t^∞ f + f(t)·(1/2 + Σ_{j ≤ n/2} B₂ⱼ/(2j)!·g₂ⱼ₋₁) + R,

where gᵢ = (−1)^i·f^(i)(t)/f(t): g₀ = 1, g₁ = t/σ², gᵢ₊₁ = (t·gᵢ − i·gᵢ₋₁)/σ². As |B_n|/n! = 2ζ(n)/(2π)^n,
and |f^(n)(x)| ≤ 1.09·√(n!)·σ^(−n)·e^(−x²/(4σ²)) (Cramér),

    |R| ≤ |B_n|/n!·∫|f^(n)| ≤ 3.3/6^n · 1.09·√(n!)/σ^n · σ√π ≤ 8·√(n!)/(6σ)^n · σ,

which at σ ≥ 32 falls by 2^−15 with the first term, and below 2^(−16σ²) before it rises again. The integral
from 0 has positive terms only,

    ∫_0^t f = t·f(t)·Σ_k y^k/(1·3·5⋯(2k + 1)),  y = t²/σ²,

and beyond t it is less than f(t)·σ²/t.
"""

from fractions import Fraction
from functools import lru_cache
from math import comb, factorial, isqrt

from fpinq.model.enclosure import Enclosure, ceil_div, ceil_shift, exp_negative, quotient

FEW = 1 << 10
"""The σ² from which terms are too many to be added up, unless more than 16σ² bits are asked for."""


def tail(variance: Fraction, t: int, bits: int) -> Enclosure:
    """P[V ≥ t] for t ≥ 1 and P[V = x] proportional to e^(−x²/(2σ²)) over all integers x, to bits."""
    if t * t >= 2 * bits * variance:
        return 0, 1  # less than e^(−t²/(2σ²)), as V is subgaussian
    work = bits + 8
    (low, high), (above_low, above_high) = sums(variance, 0, work), sums(variance, t, work)
    one = 1 << work
    return quotient((above_low, above_high), (2 * low - one, 2 * high - one), bits)


def sums(variance: Fraction, t: int, bits: int) -> Enclosure:
    """Σ e^(−x²/(2σ²)) over x ≥ t, for t ≥ 0: within about 2^−bits·σ."""
    if variance < FEW or bits > 16 * variance - 64:
        listed = suffix_sums(1 / (2 * variance), bits)
        return listed[t] if t < len(listed) else (0, listed[-1][1])
    return summed(variance, t, bits)


@lru_cache(maxsize=32)
def suffix_sums(rate: Fraction, bits: int) -> tuple[Enclosure, ...]:
    """Σ e^(−rate·x²) over x ≥ k, to bits, for k = 0, 1, … up to where a term does not show."""
    work = bits + 32
    low = high = 1 << work
    step_low, step_high = exp_negative(rate, work)  # e^(−rate·(2x + 1))
    square_low, square_high = exp_negative(2 * rate, work)
    terms = [(low, high)]
    while high > 1:
        low, high = low * step_low >> work, ceil_shift(high * step_high, work)
        step_low, step_high = step_low * square_low >> work, ceil_shift(step_high * square_high, work)
        terms.append((low, high))
    sum_low, sum_high = 0, ceil_div(rate.denominator, rate.numerator * (2 * len(terms) - 1))
    found = []
    for low, high in reversed(terms):
        sum_low, sum_high = sum_low + low, sum_high + high
        found.append((sum_low >> 32, ceil_shift(sum_high, 32)))
    return tuple(reversed(found))


@lru_cache(maxsize=4096)
def summed(variance: Fraction, t: int, bits: int) -> Enclosure:
    """The same by Euler and Maclaurin."""
    work = bits + 16
    factor_low, factor_high = exp_negative(t * t / (2 * variance), work)
    share_low, share_high = correction(variance, t, orders(variance, work), work)
    within_low, within_high = integral(variance, t, work)
    whole_low, whole_high = whole(variance, work)
    rest = isqrt(int(variance)) + 1  # σ·2^−work
    low = whole_low - within_high + (min(share_low * factor_low, share_low * factor_high) >> work) - rest
    high = whole_high - within_low + ceil_shift(max(share_high * factor_low, share_high * factor_high), work)
    return max(low >> 16, 0), ceil_shift(high + rest, 16)


@lru_cache(maxsize=32)
def whole(variance: Fraction, bits: int) -> Enclosure:
    """∫_0^∞ f, within about 2^−bits·σ."""
    end = isqrt(int(2 * bits * variance)) + 1  # f(end) < 2^−bits and σ²/end < σ
    low, high = integral(variance, end, bits)
    return low, high + isqrt(int(variance)) + 1


def integral(variance: Fraction, t: int, bits: int) -> Enclosure:
    """∫_0^t f, to bits."""
    y = t * t / variance
    work = bits + int(y) + t.bit_length() + 16  # the sum is less than e^(y/2)
    y_low, y_high = (y.numerator << work) // y.denominator, ceil_div(y.numerator << work, y.denominator)
    low = high = term_low = term_high = 1 << work
    odd = 1
    while term_high > 1 or odd < 2 * y:
        odd += 2
        term_low = (term_low * y_low >> work) // odd
        term_high = ceil_div(ceil_shift(term_high * y_high, work), odd)
        low, high = low + term_low, high + term_high
    factor_low, factor_high = exp_negative(y / 2, work)
    spare = 2 * work - bits
    return t * low * factor_low >> spare, ceil_shift(t * (high + 1) * factor_high, spare)


@lru_cache(maxsize=32)
def orders(variance: Fraction, bits: int) -> int:
    """The least even n with |R| ≤ 2^−bits·σ: 64·n!·4^bits ≤ (36σ²)^n."""
    n = 2
    while 64 * factorial(n) << 2 * bits > (36 * int(variance)) ** n:
        n += 2
    return n


def correction(variance: Fraction, t: int, n: int, bits: int) -> Enclosure:
    """1/2 + Σ B₂ⱼ/(2j)!·g₂ⱼ₋₁ over 2j ≤ n, to bits: with σ² = p/q and integers Gᵢ = gᵢ·p^i."""
    p, q = variance.as_integer_ratio()
    before, now, power = 1, t * q, p  # G₀, G₁, p
    low = high = 1 << (bits - 1)
    for i in range(1, n, 2):
        share = bernoulli(i + 1) / factorial(i + 1)
        numerator, denominator = share.numerator * now << bits, share.denominator * power
        low, high = low + numerator // denominator, high + ceil_div(numerator, denominator)
        for j in (i, i + 1):
            before, now, power = now, q * (t * now - j * p * before), power * p
    return low, high


@lru_cache(maxsize=1024)
def bernoulli(n: int) -> Fraction:
    """B_n for n = 0, 2, 4, …, from Σ_{k ≤ n} C(n + 1, k)·B_k = 0; of the odd ones only B₁ = −1/2 counts."""
    if n == 0:
        return Fraction(1)
    known = sum((comb(n + 1, k) * bernoulli(k) for k in range(0, n, 2)), Fraction(-(n + 1), 2))
    return -known / (n + 1)
