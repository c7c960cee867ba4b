"""Two queries for one answer: a first look at a small share of ε, then the question that it shows to be best.

A first look says about where the average is and how many records there are.
With that, the rest of ε goes into one noisy number instead of two or three: the
balance of what is above and below (`model/queries.py`). An average is then off
by what it would be if the number of records were known.

Both are ordinary queries of the same table, each charged its part of ε; what
the second is depends on what the first released and on nothing else.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache
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
# Floors are one of these times what one record adds over ε: the parts of a table then have noise of few
# scales, and are asked few queries. A floor costs one over its rung of ε; the lowest is a few records.
RUNGS = (12, 24, 48, 96, 192, 768)
# So what is left for the second query, after what it costs that a part is exact, is this share of ε or more.
_EXACT = Fraction(CAUTION, LARGE_ENOUGH)
AVERAGE_REST = (1 - AVERAGE_LOOK) * (1 - _EXACT)
VARIANCE_REST = (1 - VARIANCE_LOOK) * (1 - _EXACT)
# One side is enough where twice it is no less than this many times the other.
ONE_SIDED = 5
# A quotient is released in steps that are 2 to this finer than its noise, or up to sixteen times as much: a
# power of sixteen, so that parts which are not of the same size have the same.
FINER_BITS, FINENESS_BITS = 6, 4
FINEST, COARSEST = 2**40, 2**12
# A grid is divided, for the centre of squares, until the bounds are this many steps apart.
CENTRE_STEPS = 2**12


@dataclass(frozen=True)
class Seconds(Generic[A]):
    """The second queries, of each part or one of all, and how to read what one releases: by its number."""

    primitives: tuple[PrimitiveQuery, ...]
    read: Callable[[int, Released, Charged], A]


@dataclass(frozen=True)
class Composed(Generic[A]):
    """Two queries of each part, the second of which depends on what the first released.

    What they cost adds up to ε.
    """

    first: PrimitiveQuery
    epsilons: tuple[Epsilon, Epsilon]
    then: Callable[[Sequence[Released]], Seconds[A]]
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


def one_of_all(queries: tuple[PrimitiveQuery, ...]) -> tuple[PrimitiveQuery, ...]:
    """The queries; one, if all are the same."""
    return queries[:1] if len(set(map(id, queries))) == 1 else queries


# ── which part is divided by ─────────────────────────────────────────────────────────


class Floors(NamedTuple):
    """What the parts of a balance are taken to be at the least; 0 of a side that need not be told apart.

    And how much of the larger part the smaller must be for it to be better than to ask for the halves again.
    """

    above: int
    below: int
    ratio: float = 0.0


@dataclass(frozen=True)
class Ladder:
    """The floors there are for the parts of a table: from the first rung on, of either side and of both.

    And how large a part must look to have any, and by how much that may be noise.
    """

    rungs: tuple[int, ...]
    of_above: tuple[Floors, ...]
    of_below: tuple[Floors, ...]
    of_both: tuple[Floors, ...]
    enough: int
    unsure: int

    def floors(self, above: int, below: int) -> Floors | None:
        """The floors for parts of about so much: the highest that are not above, or the lowest.

        None if the parts are too small.
        """
        larger, smaller, of_one = (
            (above, below, self.of_above) if above > below else (below, above, self.of_below)
        )
        if 2 * larger >= ONE_SIDED * smaller:
            found, of_it, least = of_one, larger, larger // CAUTION
        else:
            found, of_it, least = self.of_both, smaller, min(smaller // CAUTION, smaller - self.unsure)
        return found[bisect_right(self.rungs, least, 1) - 1] if of_it >= self.enough else None


@lru_cache(maxsize=1_024)
def ladder(largest: int, look: Fraction, rest: Fraction) -> Ladder:
    """The floors of parts to which a record adds at most so much, by what a look and the rest have of ε."""
    unit = largest / rest
    rungs = tuple(math.ceil(rung * unit) for rung in RUNGS)
    ratios = [worth_it(noise_over_all(largest, rest, rung, 0), float(look + rest)) for rung in rungs]
    return Ladder(
        rungs,
        tuple(Floors(rung, 0, ratio) for rung, ratio in zip(rungs, ratios, strict=True)),
        tuple(Floors(0, rung, ratio) for rung, ratio in zip(rungs, ratios, strict=True)),
        tuple(Floors(rung, rung, ratio) for rung, ratio in zip(rungs, ratios, strict=True)),
        math.ceil(LARGE_ENOUGH * unit),
        math.ceil(SURE * largest / look),
    )


def worth_it(error: float, whole: float) -> float:
    """From which ratio of its parts on a balance is better than the halves again, if it is off by so much.

    It is off by larger/total of that, the halves by √(above² + below²)/total over what they amount to of
    ε: it is not better where the average is near one of the bounds.
    """
    return math.sqrt(max((error * whole * AGAIN) ** 2 - 1, 0))


def fineness(bits: int) -> int:
    """A power of sixteen: finer than noise that is one of a number of so many bits."""
    finer = -(-(FINER_BITS + bits) // FINENESS_BITS) * FINENESS_BITS
    return min(max(1 << finer, COARSEST), FINEST)


def share_above(outcome: int, query: Balance) -> Fraction:
    """Which share of the total is above: the middle of what rounds to the outcome."""
    z = min(max((outcome + Fraction(1, 2)) / query.fineness, Fraction(-1)), Fraction(1))
    return 1 / (2 - z) if outcome >= 0 else (1 + z) / (2 + z)


def share_error(share: Fraction, query: Balance, rest: Fraction, records: Fraction) -> float:
    """What a Laplace draw of scale 1 amounts to in the share, if there are so many records."""
    of_all = noise_over_all(query.largest, rest, query.least_above, query.least_below)
    return float(max(share, 1 - share)) * of_all / float(max(records, Fraction(1)))


@lru_cache(maxsize=1_024)
def noise_over_all(largest: int, rest: Fraction, least_above: int, least_below: int) -> float:
    """1/ε′: what a Laplace draw of scale 1 amounts to in all of a record, of any fineness."""
    return float(Quotient(rest, largest, 1, least_above, least_below).noise.scale / largest)


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
    floors = ladder(clamped.width, look, rest).floors
    records, of = (rest / clamped.width).as_integer_ratio()  # a total, in units

    @cache
    def balance(bits: int, found: Floors) -> Balance:
        """The query of parts of about so much: the same one."""
        return Balance(clamped, fineness(bits), found.above, found.below)

    def second(seen: Released) -> Moments | Balance:
        below, above = seen  # type: ignore[misc]  # halves
        found, total = floors(above, below), above + below
        if found is None or total <= 0:
            return first
        if abs(above / below if below > above else below / above) <= found.ratio:
            return first
        return balance((total * records // of).bit_length(), found)

    def then(seen: Sequence[Released]) -> Seconds[Answer]:
        queries = tuple(map(second, seen))

        def read(number: int, released: Released, charged: Charged) -> Answer:
            query = queries[number]
            if isinstance(query, Balance):
                return balanced(seen[number], released, query).answer(whole, charged)
            return again(seen[number], released).answer(whole, charged)

        return Seconds(one_of_all(queries), read)

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

    def then(seen: Sequence[Released]) -> Seconds[Answer]:
        queries = tuple([squares(of_part) or first for of_part in seen])  # type: ignore[arg-type]  # sums

        def read(number: int, released: Released, charged: Charged) -> Answer:
            query = queries[number]
            if isinstance(query, Balance):
                return balanced(seen[number], released, query).answer(whole, charged)
            return again(seen[number], released).answer(whole, charged)

        return Seconds(one_of_all(queries), read)

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
        steps = fineness(math.floor(seen_at.records * rest).bit_length())
        probe = Balance(clamped, steps, 1, 1, seen_at.centre)
        spread = Fraction(seen_at.variance.value) / clamped.step**2 + Fraction(seen_at.off)
        above = seen_at.records * min(spread * seen_at.centre.denominator**2, Fraction(probe.largest))
        below = seen_at.records * probe.largest - above
        found = ladder(probe.largest, look, rest).floors(math.floor(above), math.floor(below))
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

    def balanced(seen: Released, released: Released, query: Balance) -> Estimate:
        assert isinstance(seen, tuple)
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
