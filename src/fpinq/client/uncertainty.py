"""How far an answer is or will be off: known from the mechanism alone, so it costs nothing.

A count or a sum is an integer plus discrete Laplace noise: its interval is
exact. A range is the sum of several such draws; its interval corrects the
normal one for their heavier tails. An average or a variance is a quotient of
such integers; its interval is first-order, with the exact tail of the Laplace
combination it amounts to. Those two say that they are approximate. At ρ draws are
discrete Gaussians: alone exact, and added up normal.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from fpinq.client.trees import CountTree, Spread
from fpinq.model.epsilon import rational
from fpinq.model.errors import BadQuery
from fpinq.model.frozen import dataclass
from fpinq.noise import DiscreteLaplace

if TYPE_CHECKING:
    from fpinq.noise.gaussian import DiscreteGaussian

Number = int | float | Fraction


class Uncertainty(Protocol):
    """What an answer knows of its error."""

    @property
    def approximate(self) -> bool:
        """Whether the interval is an approximation."""

    def standard_error(self) -> float | None:
        """The standard deviation of the noise in the answer; None where there is no such thing."""

    def interval(self, value: Number, confidence: Fraction) -> tuple[Number, Number] | None:
        """Where the exact statistic is, with this confidence; None where there is no such thing."""


@dataclass(frozen=True)
class LaplaceNoise:
    """One discrete Laplace draw, in units of a step: exact. Without a scale there is no noise at all."""

    scale: Fraction | None
    step: Fraction = Fraction(1)
    approximate = False

    def standard_error(self) -> float:
        """√(2a)/(1 − a) steps, a = e^(−1/scale)."""
        if self.scale is None:
            return 0.0
        return deviation(self.scale) * float(self.step)

    def interval(self, value: Number, confidence: Fraction) -> tuple[Number, Number]:
        """value ± the least t with P[|noise| ≤ t] ≥ confidence."""
        if self.scale is None:
            return value, value
        t: Number = laplace_interval(self.scale, confidence) * self.step
        if type(value) is int and self.step == 1:
            t = int(t)
        elif isinstance(value, float):
            t = float(t)
        return value - t, value + t


@dataclass(frozen=True)
class GaussianNoise:
    """One discrete Gaussian draw, in units of a step: exact. Without a variance there is no noise at all."""

    variance: Fraction | None
    step: Fraction = Fraction(1)
    approximate = False

    def standard_error(self) -> float:
        """σ steps, but for very little noise."""
        return 0.0 if self.variance is None else gaussian(self.variance).standard_deviation * float(self.step)

    def interval(self, value: Number, confidence: Fraction) -> tuple[Number, Number]:
        """value ± the least t with P[|noise| ≤ t] ≥ confidence."""
        t: Number = 0 if self.variance is None else gaussian_interval(self.variance, confidence) * self.step
        if type(value) is int and self.step == 1:
            t = int(t)
        elif isinstance(value, float):
            t = float(t)
        return value - t, value + t

    def of_sum(self, spread: Spread, confidence: Fraction) -> float:
        """The t with P[|Σ wᵢ·Vᵢ| ≤ t] about confidence, Vᵢ independent draws; exactly, of one draw."""
        assert self.variance is not None
        if spread.number <= 1:
            return spread.absolute * gaussian_interval(self.variance, confidence)
        return self.standard_error() * math.sqrt(spread.squares) * normal_quantile(confidence)


@dataclass(frozen=True)
class NormalWithin:
    """Off by about a normal draw, within bounds."""

    deviation: float
    lower: float
    upper: float
    approximate = True

    @classmethod
    def of(cls, weights: Sequence[float], bounds: "LaplaceCombination") -> "NormalWithin":
        """Off by Σ wᵢ·Zᵢ, normal draws of deviation 1, within the bounds of another error."""
        return cls(math.hypot(*weights), bounds.lower, bounds.upper)

    def standard_error(self) -> float:
        """The deviation, or what the bounds leave of it."""
        return min(self.deviation, (self.upper - self.lower) / 2)

    def interval(self, value: Number, confidence: Fraction) -> tuple[float, float]:
        """value ± the normal quantile, cut at the bounds."""
        t = self.deviation * normal_quantile(confidence)
        return max(self.lower, value - t), min(self.upper, value + t)


@dataclass(frozen=True)
class LaplaceCombination:
    """To first order the answer is off by Σ wᵢ·Lᵢ, Laplace draws of scale 1. It stays within bounds."""

    weights: tuple[float, ...]
    lower: float
    upper: float
    approximate = True

    def standard_error(self) -> float:
        """√(2·Σ wᵢ²), or what the bounds leave of it."""
        spread = math.sqrt(2 * math.fsum(w * w for w in self.weights))
        return min(spread, (self.upper - self.lower) / 2)

    def interval(self, value: Number, confidence: Fraction) -> tuple[float, float]:
        """value ± the t that the combination stays within, cut at the bounds."""
        t = combination_quantile(self.weights, float(confidence))
        return max(self.lower, value - t), min(self.upper, value + t)


@dataclass(frozen=True)
class RangeNoise:
    """Off by a sum of draws with the weights that a range of bins has in a tree. It stays within bounds."""

    tree: CountTree
    first: int
    last: int
    scale: Fraction | GaussianNoise
    unit: float = 1.0
    lower: float = -math.inf
    upper: float = math.inf

    @property
    def approximate(self) -> bool:
        """Only a single draw is not."""
        return self._spread().number > 1 or self.unit != 1

    def standard_error(self) -> float:
        """The root of Σ wᵢ² variances, or what the bounds leave of it."""
        spread = self._deviation() * math.sqrt(self._spread().squares)
        return min(self.unit * spread, (self.upper - self.lower) / 2)

    def interval(self, value: Number, confidence: Fraction) -> tuple[Number, Number]:
        """value ± what the draws stay within, cut at the bounds."""
        t: Number = self.unit * self._quantile(confidence)
        if type(value) is int:
            t = math.ceil(t - 0.5)  # a sum of integers: to the middle between two of them
        return max(self.lower, value - t), min(self.upper, value + t)

    def _deviation(self) -> float:
        return deviation(self.scale) if isinstance(self.scale, Fraction) else self.scale.standard_error()

    def _quantile(self, confidence: Fraction) -> float:
        if isinstance(self.scale, Fraction):
            return spread_quantile(self._spread(), self.scale, confidence)
        return self.scale.of_sum(self._spread(), confidence)

    def _spread(self) -> Spread:
        return self.tree.spread(self.first, self.last)


@dataclass(frozen=True)
class Normal:
    """Off by about a normal draw."""

    deviation: float
    approximate = True

    def standard_error(self) -> float:
        """The standard deviation."""
        return self.deviation

    def interval(self, value: Number, confidence: Fraction) -> tuple[float, float]:
        """value ± the normal quantile."""
        t = self.deviation * normal_quantile(confidence)
        return value - t, value + t


@dataclass(frozen=True)
class Bracket:
    """Where a quantile is, as it was asked for: with this confidence or more."""

    low: float | int
    high: float | int
    confidence: Fraction


@dataclass(frozen=True)
class ChosenPoint:
    """A point chosen by its rank: off by few ranks; how far in value depends on the data."""

    loss: "ChoiceLoss"
    bracket: Bracket | None = None
    approximate = False

    def standard_error(self) -> None:
        """Unknown: it depends on the data."""
        return

    def interval(self, value: Number, confidence: Fraction) -> tuple[Number, Number] | None:
        """What was asked for with it; without that, nothing can be said without asking the data again."""
        if self.bracket is None or confidence > self.bracket.confidence:
            return None
        return min(self.bracket.low, value), max(self.bracket.high, value)

    def ranks(self, confidence: Fraction) -> int:
        """By how many ranks it is off at the most, with this confidence."""
        return math.ceil(self.loss.interval(0, confidence)[1])


@dataclass(frozen=True)
class ChosenCandidate:
    """One of several candidates: there is no interval."""

    approximate = False

    def standard_error(self) -> None:
        """There is none."""
        return

    def interval(self, value: Number, confidence: Fraction) -> None:
        """There is none."""
        return


@dataclass(frozen=True)
class ChoiceLoss:
    """How far below the best a choice may score, in units of 1/rate.

    A candidate that lies g behind is chosen with probability at most
    e^(−rate·g), so one of m candidates does with at most m·e^(−rate·g).
    """

    candidates: int
    rate: Fraction
    approximate = False

    def standard_error(self) -> None:
        """There is none."""
        return

    def interval(self, value: Number, confidence: Fraction) -> tuple[float, float]:
        """The loss that is not exceeded with this confidence, on either side."""
        if self.candidates == 1:
            return float(value), float(value)
        t = (math.log(self.candidates) - log_of(1 - confidence)) / float(self.rate)
        return value - t, value + t


@dataclass(frozen=True)
class Expected:
    """The error a query will have, in what, and what was assumed; None if it cannot be said."""

    uncertainty: Uncertainty | None
    unit: str = ""
    note: str = ""


def exact_confidence(confidence: object) -> Fraction:
    """A confidence strictly between 0 and 1; a float through its shortest repr."""
    exact = rational(confidence)
    if exact is None or not 0 < exact < 1:
        raise BadQuery("a confidence is strictly between 0 and 1, such as 0.95")
    return exact


@lru_cache(maxsize=4096)
def laplace_interval(scale: Fraction, confidence: Fraction) -> int:
    """The least t with P[|noise| ≤ t] ≥ confidence; the same for all bins of a histogram."""
    return DiscreteLaplace(scale).interval(confidence)


@lru_cache(maxsize=4096)
def gaussian(variance: Fraction) -> "DiscreteGaussian":
    """The distribution of one draw; the same for all bins of a histogram."""
    from fpinq.noise.gaussian import DiscreteGaussian  # most programs never ask at ρ

    return DiscreteGaussian(variance)


@lru_cache(maxsize=4096)
def gaussian_interval(variance: Fraction, confidence: Fraction) -> int:
    """The least t with P[|noise| ≤ t] ≥ confidence."""
    return gaussian(variance).interval(confidence)


@lru_cache(maxsize=4096)
def deviation(scale: Fraction) -> float:
    """The standard deviation of one draw; the same for all bins of a histogram."""
    return DiscreteLaplace(scale).standard_deviation


def sum_quantile(weights: Sequence[float], scale: Fraction, confidence: Fraction) -> float:
    """The t with P[|Σ wᵢ·Vᵢ| ≤ t] about confidence, Vᵢ independent discrete Laplace draws."""
    return spread_quantile(Spread.of(weights), scale, confidence)


def spread_quantile(spread: Spread, scale: Fraction, confidence: Fraction) -> float:
    """The same, of weights of which only the spread is known.

    The normal quantile, widened by the first term of Cornish and Fisher's
    expansion for the tails of the draws (never narrowed). Where noise is mostly
    0 that is far too wide: then all draws are within their own limits together.
    """
    number, absolute, squares, fourths = spread
    if not number:
        return 0.0
    together = absolute * _apiece(scale, confidence, int(number))
    a = math.exp(-1 / scale) if scale > Fraction(1, 700) else 0.0
    if number == 1 or a == 0:
        return together
    kurtosis = (1 + 4 * a + a * a) / (2 * a) * fourths / squares**2
    z = normal_quantile(confidence)
    t = deviation(scale) * math.sqrt(squares) * max(z, z + kurtosis * (z**3 - 3 * z) / 24)
    return min(t, together)


@lru_cache(maxsize=4096)
def _apiece(scale: Fraction, confidence: Fraction, number: int) -> int:
    """What all of so many draws stay within together."""
    return laplace_interval(scale, 1 - (1 - confidence) / number)


@lru_cache(maxsize=64)
def normal_quantile(confidence: Fraction) -> float:
    """The z with P[|Z| ≤ z] = confidence for a normal Z."""
    from statistics import NormalDist  # slow to import, and seldom needed

    # From below: near 1 there is a float for every tail, but not for what is left.
    tail = float((1 - confidence) / 2)
    return -NormalDist().inv_cdf(tail) if tail else math.inf


def log_of(number: Fraction) -> float:
    """ln of a rational, of any size."""
    return math.log(number.numerator) - math.log(number.denominator)


def combination_quantile(weights: Sequence[float], confidence: float) -> float:
    """The t with P[|Σ wᵢ·Lᵢ| ≤ t] = confidence, Lᵢ independent Laplace draws of scale 1.

    By partial fractions of the characteristic function Π 1/(1 + wᵢ²u²): the
    tail is Σ Aᵢ·e^(−t/wᵢ), Aᵢ = Π_{j≠i} wᵢ²/(wᵢ² − wⱼ²). Equal weights are
    moved apart by a little, upwards.
    """
    apart = _apart(sorted(abs(w) for w in weights if w))
    if not apart:
        return 0.0
    if not math.isfinite(apart[-1]):
        return math.inf
    shares = [math.prod(w * w / (w * w - v * v) for v in apart if v != w) for w in apart]

    def tail(t: float) -> float:
        return math.fsum(share * math.exp(-t / w) for share, w in zip(shares, apart, strict=True))

    low, high = 0.0, apart[-1]
    while tail(high) > 1 - confidence:
        low, high = high, high * 2
    while low < (middle := (low + high) / 2) < high:  # as far as floats go
        low, high = (middle, high) if tail(middle) > 1 - confidence else (low, middle)
    return high


def _apart(weights: list[float]) -> list[float]:
    apart: list[float] = []
    for w in weights:
        if w < weights[-1] * 1e-6:
            continue  # too small to matter, and to divide by
        apart.append(max(w, apart[-1] * 1.01) if apart else w)
    return apart
