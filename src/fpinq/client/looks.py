"""Two queries for one answer: a first look at a small share of ε, then the question that it shows to be best.

A first look says about where the average is and how many records there are.
With that, the rest of ε goes into one noisy number instead of two or three: the
balance of what is above and below (`model/queries.py`). An average is then off
by what it would be if the number of records were known.

Both are ordinary queries of the same table, each charged its part of ε; what
the second is depends on what the first released and on nothing else.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from fpinq.client import moments
from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.moments import Estimate
from fpinq.client.uncertainty import Expected, LaplaceCombination
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import LIMIT, Epsilon
from fpinq.model.frozen import dataclass
from fpinq.model.queries import Balance, Moments, PrimitiveQuery
from fpinq.noise import Quotient
from fpinq.runtime import Released

A = TypeVar("A", bound=Answer | Answers, covariant=True)

# Shares of ε of a first look. An average's needs to know the number of records roughly, and no more; a
# variance is also off by the square of how far the average is.
AVERAGE_LOOK = Fraction(1, 32)
VARIANCE_LOOK = Fraction(1, 10)

# From here on there is nothing private, and hardly any noise: one query, which is exact without it.
NOT_PRIVATE = 100

# A part that is divided by is this many times what one record adds over ε; it is taken to be at least a
# fraction of what the first look says, since that is noisy. One of two that look about as large may be noise
# alone: each is taken to be no more than what this many times the noise's scale leaves, or a few records add.
LARGE_ENOUGH = 192
CAUTION = 4
SURE = 11
A_FEW = 10
# Floors have so many digits in base two, rounded down: parts of about the same size then have noise of the
# same scale, for which the thresholds of a draw are computed once.
FLOOR_BITS = 4
# So what is left for the second query, after what it costs that a part is exact, is this share of ε or more.
_EXACT = Fraction(CAUTION, LARGE_ENOUGH) * (1 + Fraction(2, 2**FLOOR_BITS))
AVERAGE_REST = (1 - AVERAGE_LOOK) * (1 - _EXACT)
VARIANCE_REST = (1 - VARIANCE_LOOK) * (1 - _EXACT)
# One side is enough where the other part is this many times smaller.
ONE_SIDED = Fraction(5, 2)
# A quotient is released in steps that are this much finer than its noise, about.
FINER = 64
FINEST, COARSEST = 2**40, 2**10
# A grid is divided, for the centre of squares, until the bounds are this many steps apart.
CENTRE_STEPS = 2**12


@dataclass(frozen=True)
class Second(Generic[A]):
    """The second of two queries, and how to read it."""

    primitive: PrimitiveQuery
    read: Callable[[Released, Charged], A]


@dataclass(frozen=True)
class Composed(Generic[A]):
    """Two queries, the second of which depends on what the first released. What they cost adds up to ε."""

    first: PrimitiveQuery
    epsilons: tuple[Epsilon, Epsilon]
    then: Callable[[Released], Second[A]]
    expect: Callable[[int | None], Expected]

    @property
    def split(self) -> tuple[tuple[str, Fraction], ...]:
        """What each is asked with."""
        return ("first look", self.epsilons[0]), ("the rest", self.epsilons[1])


def split(whole: Epsilon, share: Fraction) -> tuple[Epsilon, Epsilon] | None:
    """ε in two parts, exactly; None if one would have too many digits, or if there is nothing to gain."""
    parts = whole * share, whole * (1 - share)
    if whole >= NOT_PRIVATE or any(max(part.numerator + 1, part.denominator) > LIMIT for part in parts):
        return None
    return Epsilon(parts[0]), Epsilon(parts[1])


# ── which part is divided by ─────────────────────────────────────────────────────────


class Floors(NamedTuple):
    """What the parts of a balance are taken to be at the least; 0 of a side that need not be told apart."""

    above: int
    below: int


def floors(above: int | Fraction, below: int | Fraction, unit: Fraction, noise: Fraction) -> Floors | None:
    """The floors for parts of about so much, off by noise of this scale; None if they are too small.

    The unit is what one record adds over ε.
    """
    larger, smaller = max(above, below), min(above, below)
    one_sided = larger >= ONE_SIDED * smaller
    if (larger if one_sided else smaller) < LARGE_ENOUGH * unit:
        return None
    if one_sided:
        least = max(rounded_down(int(larger // CAUTION)), 1)
        return Floors(least, 0) if above > below else Floors(0, least)
    few, unsure = int(A_FEW * unit), SURE * noise
    sure = [max(min(part // CAUTION, math.floor(part - unsure)), few) for part in (above, below)]
    return Floors(*map(rounded_down, sure))


def rounded_down(number: int) -> int:
    """A number's first binary digits, and zeros."""
    rest = max(number.bit_length() - FLOOR_BITS, 0)
    return number >> rest << rest


def fineness(records: int | Fraction, rest: Fraction) -> int:
    """A power of two, finer than the noise in the share of so many records."""
    wanted = int(FINER * records * rest)
    return int(min(max(1 << wanted.bit_length(), COARSEST), FINEST))


_quotient = lru_cache(maxsize=1_024)(Quotient)  # parts of about the same size have the same


def share_above(outcome: int, query: Balance) -> Fraction:
    """Which share of the total is above: the middle of what rounds to the outcome."""
    z = min(max((outcome + Fraction(1, 2)) / query.fineness, Fraction(-1)), Fraction(1))
    return 1 / (2 - z) if outcome >= 0 else (1 + z) / (2 + z)


def share_error(share: Fraction, query: Balance, rest: Fraction, records: Fraction) -> float:
    """What a Laplace draw of scale 1 amounts to in the share, if there are so many records."""
    quotient = _quotient(rest, query.largest, query.fineness, query.least_above, query.least_below)
    whole = float(quotient.noise.scale / (query.fineness * query.largest))  # 1/ε′
    return float(max(share, 1 - share)) * whole / float(max(records, Fraction(1)))


# ── averages ─────────────────────────────────────────────────────────────────────────


def average(
    clamped: Clamp, whole: Epsilon, expect: Callable[[int | None], Expected]
) -> Composed[Answer] | None:
    """An average: its halves at a small share, then their balance at the rest, or else the halves again."""
    first = Moments(clamped, 1)
    epsilons = split(whole, AVERAGE_LOOK)
    if not clamped.width or epsilons is None:
        return None
    look, rest = epsilons
    unit, noise, each = clamped.width / rest, clamped.width / look, rest / clamped.width

    def then(seen: Released) -> Second[Answer]:
        assert isinstance(seen, tuple)
        below, above = seen
        found = floors(above, below, unit, noise)
        if found is not None:
            query = Balance(clamped, fineness(above + below, each), found.above, found.below)
            if is_worth_it(Fraction(above, above + below), query, rest, whole):
                return Second(
                    query, lambda released, charged: balanced(seen, released, query).answer(whole, charged)
                )
        return Second(first, lambda released, charged: again(seen, released).answer(whole, charged))

    def again(seen: Released, released: Released) -> Estimate:
        assert isinstance(seen, tuple)
        assert isinstance(released, tuple)
        return moments.average(
            moments.combined(seen, released, AVERAGE_LOOK, first.sensitivity / whole), clamped
        )

    def balanced(seen: Released, released: Released, query: Balance) -> Estimate:
        assert isinstance(seen, tuple)
        assert isinstance(released, int)
        share = share_above(released, query)
        records = records_of(seen, share) / clamped.width
        width = float(clamped.width * clamped.step)
        weight = width * share_error(share, query, rest, records)
        lower, upper = (float(bound * clamped.step) for bound in (clamped.lower, clamped.upper))
        value = float((clamped.lower + clamped.width * share) * clamped.step)
        return Estimate(value, LaplaceCombination((weight,), lower, upper))

    return Composed(first, epsilons, then, expect)


def is_worth_it(share: Fraction, query: Balance, rest: Fraction, whole: Fraction) -> bool:
    """Whether a balance is better than the halves again: not where the average is near one of the bounds."""
    halves = math.hypot(share, 1 - share) / (float(whole) * AGAIN)
    return share_error(share, query, rest, Fraction(1)) < halves


def records_of(halves: tuple[int, ...], share: Fraction) -> Fraction:
    """The total that noisy halves and a known share of it say: each half by how much it weighs."""
    below, above = halves
    return (share * above + (1 - share) * below) / (share**2 + (1 - share) ** 2)


# ── variances ────────────────────────────────────────────────────────────────────────


class Look(NamedTuple):
    """What a first look says: the records, the average in grid steps, the variance."""

    records: Fraction
    centre: Fraction
    off: float  # the expected square of how far the average is from the centre, in grid steps
    variance: Estimate


def variance(
    clamped: Clamp, whole: Epsilon, expect: Callable[[int | None], Expected]
) -> Composed[Answer] | None:
    """A variance: Bernstein sums at a share, then the balance of squares about the average that they give.

    Σ(x − centre)² is the variance and the square of how far the centre is off,
    which is expected to be what the noise of the look says, and subtracted.
    """
    first = Moments(clamped, 2)
    epsilons = split(whole, VARIANCE_LOOK)
    if not clamped.width or epsilons is None:
        return None
    look, rest = epsilons
    square = float((clamped.width * clamped.step) ** 2)

    def then(seen: Released) -> Second[Answer]:
        assert isinstance(seen, tuple)
        query = squares(seen)
        if query is None:
            return Second(first, lambda released, charged: again(seen, released).answer(whole, charged))
        return Second(query, lambda released, charged: balanced(seen, released, query).answer(whole, charged))

    def again(seen: Released, released: Released) -> Estimate:
        assert isinstance(seen, tuple)
        assert isinstance(released, tuple)
        sums = moments.combined(seen, released, VARIANCE_LOOK, first.sensitivity / whole)
        return moments.variance(sums, clamped)

    def squares(seen: tuple[int, ...]) -> Balance | None:
        """The second query, if it is expected to be better than asking the first again."""
        seen_at = looked(seen, clamped, first.sensitivity / look)
        if seen_at is None:
            return None
        steps = fineness(seen_at.records, rest)
        probe = Balance(clamped, steps, 1, 1, seen_at.centre)
        spread = Fraction(seen_at.variance.value) / clamped.step**2 + Fraction(seen_at.off)
        above = seen_at.records * min(spread * seen_at.centre.denominator**2, Fraction(probe.largest))
        unit, noise = (Fraction(probe.largest) / part for part in (rest, look))
        found = floors(above, seen_at.records * probe.largest - above, unit, noise)
        if found is None:
            return None
        query = Balance(clamped, steps, found.above, found.below, seen_at.centre)
        error = squares_error(above / (seen_at.records * probe.largest), query, seen_at)
        asked_again = seen_at.variance.error.standard_error() * float(
            VARIANCE_LOOK / moments_share(VARIANCE_LOOK)
        )
        return query if error.standard_error() < asked_again else None

    def squares_error(share: Fraction, query: Balance, seen_at: Look) -> LaplaceCombination:
        step = float(clamped.step) ** 2
        assert query.about is not None
        largest = query.largest / query.about.denominator**2 * step
        weight = largest * share_error(share, query, rest, seen_at.records)
        # The square of a difference of Laplace draws varies by about √3.5 of what it is expected to be.
        beside = math.sqrt(3.5 / 2) * seen_at.off * step
        return LaplaceCombination((weight, beside), 0.0, square / 4)

    def balanced(seen: tuple[int, ...], released: Released, query: Balance) -> Estimate:
        assert isinstance(released, int)
        assert query.about is not None
        seen_at = looked(seen, clamped, first.sensitivity / look)
        assert seen_at is not None
        share = share_above(released, query)
        about = share * query.largest / query.about.denominator**2
        value = float((about - Fraction(seen_at.off)) * clamped.step**2)
        return Estimate(min(max(value, 0.0), square / 4), squares_error(share, query, seen_at))

    return Composed(first, epsilons, then, expect)


def moments_share(share: Fraction) -> Fraction:
    """The share of ε that two looks, weighted by their variances, amount to."""
    return Fraction(math.sqrt(share**2 + (1 - share) ** 2))


# Of ε: what two looks at halves amount to.
AGAIN = float(moments_share(AVERAGE_LOOK))


def looked(seen: tuple[int, ...], clamped: Clamp, scale: Fraction) -> Look | None:
    """What Bernstein sums say where they say that there are records."""
    total, width = sum(seen), clamped.width
    if total <= 0:
        return None
    mean = Fraction(seen[1] + 2 * seen[2], 2 * total)
    u = min(max(mean, Fraction(0)), Fraction(1))
    division = 1 << max(CENTRE_STEPS // width, 1).bit_length() - 1
    centre = clamped.lower + Fraction(round(u * width * division), division)
    # d mean = (−u·d₀ + (½ − u)·d₁ + (1 − u)·d₂) / total
    slopes = u**2 + (moments.HALF - u) ** 2 + (1 - u) ** 2
    off = 2 * float(slopes) * (width * float(scale / total)) ** 2
    sums = moments.measured(seen, scale)
    return Look(Fraction(total, width**2), centre, off, moments.variance(sums, clamped))
