"""Chi-square tests against exact distributions, with limits that do not depend on luck."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpinq.noise.symmetric import Symmetric

FALSE_ALARM = 1e-9
FEWEST = 100


def limit(degrees: int) -> float:
    """What a chi-square of so many degrees exceeds with probability below FALSE_ALARM.

    Laurent and Massart: P[χ² ≥ d + 2√(d·x) + 2x] ≤ e^−x.
    """
    x = -math.log(FALSE_ALARM)
    return degrees + 2 * math.sqrt(degrees * x) + 2 * x


def fits(counts: Sequence[int], probabilities: Sequence[float]) -> bool:
    """Whether the counts are plausible under the probabilities."""
    n = sum(counts)
    assert min(probabilities) * n > FEWEST, "bins too small for a chi-square"
    statistic = sum((c - n * p) ** 2 / (n * p) for c, p in zip(counts, probabilities, strict=True))
    return statistic < limit(len(counts) - 1)


def same(left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether two lists of counts over the same bins are plausibly of one distribution."""
    n, m = sum(left), sum(right)
    statistic = sum(
        (a * math.sqrt(m / n) - b * math.sqrt(n / m)) ** 2 / (a + b) for a, b in zip(left, right, strict=True)
    )
    return statistic < limit(len(left) - 1)


def edges(noise: Symmetric, draws: int) -> list[int]:
    """Right ends of bins: twentieths and tails of a thousandth, as far as draws fill them."""
    quantiles = [Fraction(1, 1000), *(Fraction(i, 20) for i in range(1, 20)), Fraction(999, 1000)]
    ends: list[int] = []
    below = Fraction(0)
    for end in sorted({noise.quantile(p) for p in quantiles}):
        upto = noise.cdf(end)[0]
        if min(upto - below, 1 - upto) * draws > FEWEST + 1:
            ends.append(end)
            below = upto
    return ends


def probabilities(noise: Symmetric, ends: Sequence[int]) -> list[float]:
    """P[noise in bin] for the bins that end at ends and the one after the last."""
    cumulated = [Fraction(0), *(noise.cdf(end)[0] for end in ends), Fraction(1)]
    return [float(b - a) for a, b in pairwise(cumulated)]


def counts(values: NDArray[Any], ends: Sequence[int]) -> list[int]:
    """How many values fall in each bin."""
    bins = np.searchsorted(np.array(ends, dtype=values.dtype), values)
    return np.bincount(bins, minlength=len(ends) + 1).tolist()


def are_of(values: NDArray[Any], noise: Symmetric) -> bool:
    """Whether the values are plausibly draws of noise."""
    ends = edges(noise, len(values))
    return fits(counts(values, ends), probabilities(noise, ends))
