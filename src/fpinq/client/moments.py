"""Moments: what noisy Bernstein sums say of an average or a variance, and how far noise in each moves it."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from fpinq.client.answers import Answer, Charged
from fpinq.client.uncertainty import LaplaceCombination
from fpinq.model.clamps import Clamp

HALF = Fraction(1, 2)


class Estimate(NamedTuple):
    """A value, and how far off it is."""

    value: float
    error: LaplaceCombination

    def answer(self, epsilon: Fraction, charged: Charged) -> Answer:
        """The answer that this is."""
        return Answer(self.value, epsilon, charged, self.error)


class Sums(NamedTuple):
    """Noisy sums, and the scales of the Laplace draws in each of them; several where two were combined."""

    totals: tuple[Fraction, ...]
    scales: tuple[float, ...]


def measured(totals: Sequence[int], scale: Fraction) -> Sums:
    """Sums as they were released."""
    return Sums(tuple(map(Fraction, totals)), (float(scale),))


def combined(first: Sequence[int], second: Sequence[int], share: Fraction, scale: Fraction) -> Sums:
    """The same sums, asked twice at shares of ε: weighted by their variances. scale is the whole ε's."""
    rest = 1 - share
    weight = share**2 / (share**2 + rest**2)
    totals = tuple(weight * one + (1 - weight) * other for one, other in zip(first, second, strict=True))
    return Sums(totals, (float(weight * scale / share), float((1 - weight) * scale / rest)))


def average(sums: Sums, clamped: Clamp) -> Estimate:
    """The average from Σ(upper − x) and Σ(x − lower); the middle if they say that there are no records."""
    below, above = sums.totals
    total = above + below
    share = min(max(above, Fraction(0)), total) / total if total > 0 else HALF
    value = float((clamped.lower + clamped.width * share) * clamped.step)
    # d share = ((1 − share)·d above − share·d below) / total
    width, least = float(clamped.width * clamped.step), float(max(total, Fraction(1)))
    weights = (width * (scale / least * float(w)) for w in (1 - share, share) for scale in sums.scales)
    lower, upper = (float(bound * clamped.step) for bound in (clamped.lower, clamped.upper))
    return Estimate(value, LaplaceCombination(tuple(weights), lower, upper))


def variance(sums: Sums, clamped: Clamp) -> Estimate:
    """The variance from the Bernstein sums of degree 2; W²/8 if they say that there are no records."""
    square = (clamped.width * clamped.step) ** 2
    total = sum(sums.totals)
    if total <= 0 or not square:
        return Estimate(float(square / 8), _within((math.inf if square else 0.0,), square))
    mean, mean_square = (sums.totals[1] + 2 * sums.totals[2]) / (2 * total), sums.totals[2] / total
    share = min(max(mean_square - mean * mean, Fraction(0)), Fraction(1, 4))
    # Noise may put the moments where no data can be; slopes are taken at the nearest that can.
    u = min(max(float(mean), 0.0), 1.0)
    v = min(max(float(mean_square), u * u), u)
    slopes = ((-v + 2 * u * u), (-v - 2 * u * (0.5 - u)), (1 - v - 2 * u * (1 - u)))
    weights = (float(square) * (slope * (scale / float(total))) for slope in slopes for scale in sums.scales)
    return Estimate(float(square * share), _within(tuple(weights), square))


def _within(weights: tuple[float, ...], square: Fraction) -> LaplaceCombination:
    return LaplaceCombination(weights, 0.0, float(square / 4))
