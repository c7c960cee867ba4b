"""Queries that choose: a grid point by its rank, or one of several candidates by its score."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import islice

from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.bounds import RANK_WIDTH_BITS, clamp
from fpinq.client.queries import Inquiry, Prepared, integer, integers, on_grid
from fpinq.client.rows import BOOL, FLOAT64, Cell, Symbolic, constant, plain
from fpinq.client.subjects import Subject
from fpinq.client.tracing import Traced, row, trace
from fpinq.client.uncertainty import (
    Bracket,
    ChoiceLoss,
    ChosenCandidate,
    ChosenPoint,
    Expected,
    exact_confidence,
    log_of,
)
from fpinq.model import queries as primitives
from fpinq.model.choices import MAX_BESIDE
from fpinq.model.clamps import Clamp
from fpinq.model.conversion import epsilon_of_range
from fpinq.model.epsilon import Epsilon, rational
from fpinq.model.errors import BadQuery
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho, share_of
from fpinq.runtime import Released

MAX_CANDIDATES = 10_000


# ── by rank ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Quantile(Inquiry[Answer]):
    """The value below which a fraction of the records lies: an order statistic.

    Chosen among the grid points within the bounds, by permute-and-flip at the
    full ε. Off by few ranks, whatever the values; ties are no problem.
    """

    fraction: object
    of: object = None
    bounds: object = None
    interval: object = None

    @property
    def what(self) -> str:
        return "median" if rational(self.fraction) == Fraction(1, 2) else "quantile"

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        primitive = primitives.Rank(self._clamp(subject), exact_fraction(self.fraction))
        clamped = primitive.of
        if self.interval is not None:
            return self.bracketed(subject, epsilon)
        error = ChosenPoint(_loss(primitive, epsilon))

        def read(released: Released, charged: Charged) -> Answer:
            return Answer(on_grid(integer(released), clamped), epsilon, charged, error)

        return Prepared(primitive, read, lambda size: _ranks_off(primitive, epsilon))

    def bracketed(self, subject: Subject, at: Amount) -> Prepared[Answer]:
        """The same with an interval: three choices."""
        rank = primitives.Rank(self._clamp(subject), exact_fraction(self.fraction))
        bracketed = brackets(rank.of, [rank.fraction], at, exact_confidence(self.interval))

        def read(released: Released, charged: Charged) -> Answer:
            return bracketed.answers(integers(released), charged)[rank.fraction]

        return Prepared(bracketed.primitive, read, lambda size: _ranks_off(rank, bracketed.share))

    def _clamp(self, subject: Subject) -> Clamp:
        cell = subject.cell(self.of, "quantile")
        return clamp(cell, subject.bounds(cell, self.bounds), width_bits=RANK_WIDTH_BITS)


class OrderStatistic(Quantile):
    """PINQ's name for a quantile."""


def Median(of: object = None, bounds: object = None, interval: object = None) -> Quantile:  # noqa: N802
    """The value in the middle."""
    return Quantile(Fraction(1, 2), of, bounds, interval)


@dataclass(frozen=True)
class Quantiles(Inquiry[Answers]):
    """Several quantiles at once, a mapping fraction ↦ answer. They share the ε, and rise with the fraction.

    For more than about ten, a cumulative distribution (fp.cdf) is the better question.
    """

    fractions: Sequence[object]
    of: object = None
    bounds: object = None
    interval: object = None

    @property
    def what(self) -> str:
        return "quantile"

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answers]:
        if self.interval is not None:
            return self.bracketed(subject, epsilon)
        clamped, fractions = self._asked(subject)
        rising = sorted(set(fractions.values()))
        primitive = primitives.Ranks(clamped, tuple(rising))
        share = epsilon / len(rising)
        errors = {rank.fraction: ChosenPoint(_loss(rank, share)) for rank in primitive.each()}

        def read(released: Released, charged: Charged) -> Answers:
            # The nearest points that rise: choices made one by one may cross.
            points = dict(zip(rising, sorted(integers(released)), strict=True))
            answers = {
                fraction: Answer(on_grid(points[exact], clamped), share, charged, errors[exact])
                for fraction, exact in fractions.items()
            }
            return Answers(answers, epsilon, charged, ("fraction",))

        def expect(size: int | None) -> Expected:
            return _most_ranks_off(primitive.each(), share)

        return Prepared(primitive, read, expect)

    def _asked(self, subject: Subject) -> tuple[Clamp, dict[object, Fraction]]:
        """Of what, and the fractions as they were given and exactly."""
        if isinstance(self.fractions, str | Symbolic) or not isinstance(self.fractions, Sequence):
            raise BadQuery("quantiles need a list of fractions, such as [0.25, 0.5, 0.75]")
        fractions = {fraction: exact_fraction(fraction) for fraction in self.fractions}
        if not fractions:
            raise BadQuery("no quantiles to ask for: give at least one fraction")
        return Quantile(0, self.of, self.bounds)._clamp(subject), fractions

    def bracketed(self, subject: Subject, at: Amount) -> Prepared[Answers]:
        """The same with intervals: three choices each."""
        clamped, fractions = self._asked(subject)
        rising = sorted(set(fractions.values()))
        bracketed = brackets(clamped, rising, at, exact_confidence(self.interval))

        def read(released: Released, charged: Charged) -> Answers:
            found = bracketed.answers(integers(released), charged)
            asked = {fraction: found[exact] for fraction, exact in fractions.items()}
            return Answers(asked, at, charged, ("fraction",))

        def expect(size: int | None) -> Expected:
            return _most_ranks_off(bracketed.primitive.each(), bracketed.share)

        return Prepared(bracketed.primitive, read, expect)


def _loss(rank: primitives.Rank, epsilon: Fraction) -> ChoiceLoss:
    """How many ranks a choice may be off: a rank on the lighter side costs the least score."""
    a, b = rank.fraction.numerator, rank.fraction.denominator
    lighter = min(a, b - a) or max(a, b - a)
    return ChoiceLoss(rank.of.width + 1, epsilon * lighter / rank.sensitivity)


def _most_ranks_off(ranks: Sequence[primitives.Rank], epsilon: Fraction) -> Expected:
    return _ranks_off(min(ranks, key=lambda rank: _loss(rank, epsilon).rate), epsilon)


def _ranks_off(rank: primitives.Rank, epsilon: Fraction) -> Expected:
    return Expected(_loss(rank, epsilon), "ranks", "how far that is in value depends on the data")


# ── with an interval ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Bracketed:
    """Quantiles with a point on either side of each, and the confidence that they enclose it."""

    primitive: primitives.Brackets
    at: Amount
    share: Fraction  # the ε that each point is chosen with
    confidence: Fraction

    def answers(self, released: Sequence[int], charged: Charged) -> dict[Fraction, Answer]:
        """Fraction ↦ answer: the points that were chosen for them, in rising order, with their intervals."""
        query, points = self.primitive, sorted(released[1::3])
        lows = _ends(released[0::3], query.below, query.of.lower)
        highs = _ends(released[2::3], query.above, query.of.upper)
        each = zip(query.each(), points, lows, highs, strict=True)
        return {
            rank.fraction: self._answer(rank, point, low, high, charged) for rank, point, low, high in each
        }

    def _answer(self, rank: primitives.Rank, point: int, low: int, high: int, charged: Charged) -> Answer:
        of, each = self.primitive.of, share_of(self.at, Fraction(1, self.primitive.passes))
        bracket = Bracket(on_grid(low, of), on_grid(high, of), self.confidence)
        error = ChosenPoint(_loss(rank, self.share), bracket)
        answer = Answer(on_grid(point, of), share_of(each, Fraction(3)), charged, error)
        amount = each.amount if isinstance(each, Rho) else each
        return answer.asked_in((("the value", amount), ("its interval", 2 * amount)))


def _ends(points: Sequence[int], beside: Sequence[int], bound: int) -> list[int]:
    """The ends of intervals: points that were chosen, or the bound where nothing could be put beside."""
    each = zip(points, beside, strict=True)
    return [point if 0 < more < MAX_BESIDE else bound for point, more in each]


def brackets(of: Clamp, rising: Sequence[Fraction], at: Amount, confidence: Fraction) -> Bracketed:
    """The query for quantiles with their intervals, at ε or ρ."""
    passes = 3 * len(rising)
    share = epsilon_of_range(at.amount / passes) if isinstance(at, Rho) else at / passes
    # Permute-and-flip chooses a point before a best one with half of its chance; at ρ there is no such order.
    points = of.width * (2 if isinstance(at, Rho) else 1)
    below = tuple(_beside(points, 1 - fraction, fraction, share, confidence) for fraction in rising)
    above = tuple(_beside(points, fraction, 1 - fraction, share, confidence) for fraction in rising)
    return Bracketed(primitives.Brackets(of, tuple(rising), below, above), at, share, confidence)


def _beside(points: int, own: Fraction, other: Fraction, share: Fraction, confidence: Fraction) -> int:
    """How many records beside the others keep an end on its side of the quantile, with half of what may fail.

    Let own = (b − a)/b. With P records at the lower bound, a point beyond the quantile of
    the others scores (b − a)²·P/b or more below the best, whatever n is and the ties:
    it has a·n/b of them below, and some point is a quantile of all together. Each of at
    most W such points is chosen with e^(−ε·gap/Δ)/2 at the most, before a best one; by
    the exponential mechanism, with twice that, as if they were 2W.
    """
    if not own or not points:
        return 0
    surprise = math.log(points) - log_of(1 - confidence)  # ln((W/2) / ((1 − c)/2))
    needed = Fraction(surprise * (1 + 1e-12)) * max(own, other) / (share * own**2)  # may be beyond any float
    return min(math.ceil(needed), MAX_BESIDE)


def exact_fraction(fraction: object) -> Fraction:
    """A fraction of the records, between 0 and 1; a float through its shortest repr."""
    exact = rational(plain(fraction))
    if exact is None or not 0 <= exact <= 1:
        raise BadQuery("a quantile is a fraction of the records: a number between 0 and 1, such as 0.5")
    return exact


# ── by score ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ExponentialMechanism(Inquiry[Answer]):
    """The candidate with the largest total score, chosen privately.

    score(x, candidate) is what a record adds to the candidate's score, clamped
    to bounds; PINQ's −1 to 1 if none are given, 0 to 1 for a condition. Chosen
    by permute-and-flip, which is never worse than the exponential mechanism. If no
    record can lower a score (bounds ≥ 0), or none can raise one (bounds ≤ 0), the
    whole ε counts, else half of it.
    """

    candidates: Sequence[object]
    score: Callable[..., object]
    bounds: object = None

    of_columns = True

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        candidates = checked_candidates(self.candidates)
        scores = trace(lambda x: [self.score(x, c) for c in candidates], "score", row(subject.schema))
        assert isinstance(scores.result, list)
        cells = [_score(scores, score) for score in scores.result]
        is_float = any(cell.type is FLOAT64 for cell in cells)
        bounds = self.bounds
        if bounds is None:
            bounds = (0, 1) if all(cell.type is BOOL for cell in cells) else (-1, 1)
        numbers = [cell.cast("int64") if cell.type is BOOL else cell for cell in cells]
        clamps = [clamp(cell.cast("float64") if is_float else cell, bounds) for cell in numbers]
        return _choice(candidates, clamps, epsilon)


def _score(scores: Traced, score: object) -> Cell:
    score = plain(score)
    # A score may be the same for every record of some candidates.
    return constant(score) if type(score) in (int, float) else scores.cell_of(score)


@dataclass(frozen=True)
class Mode(Inquiry[Answer]):
    """The most common of public candidates; of a column with known keys, of those."""

    of: object = None
    candidates: Sequence[object] | None = None

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        cell = subject.cell(self.of, "mode")
        candidates = self.candidates if self.candidates is not None else subject.known(cell).keys
        if candidates is None:
            raise BadQuery("mode needs candidates=[…]: what it may be must not depend on the data")
        listed = checked_candidates(candidates)
        clamps = [Clamp((cell == c).cast("int64").tree, 0, 1) for c in listed]
        return _choice(listed, clamps, epsilon)


def _choice(candidates: Sequence[object], clamps: Sequence[Clamp], epsilon: Epsilon) -> Prepared[Answer]:
    """One of the candidates; a clamp says what a record adds to each one's score."""
    primitive = primitives.Choice(tuple(clamps))

    def read(released: Released, charged: Charged) -> Answer:
        return Answer(candidates[integer(released)], epsilon, charged, ChosenCandidate())

    def expect(size: int | None) -> Expected:
        halves = 1 if primitive.monotone else 2
        rate = epsilon / (max(primitive.sensitivity, 1) * halves * max(clamp.step for clamp in clamps))
        return Expected(ChoiceLoss(len(candidates), rate), "below the best total score")

    return Prepared(primitive, read, expect)


def checked_candidates(candidates: object) -> list[object]:
    """Candidates as a list, all different."""
    if isinstance(candidates, str | Symbolic) or not isinstance(candidates, Iterable):
        raise BadQuery("candidates must be a list")
    listed = [plain(candidate) for candidate in islice(candidates, MAX_CANDIDATES + 1)]
    if not listed:
        raise BadQuery("there are no candidates to choose from: give at least one")
    if len(listed) > MAX_CANDIDATES:
        raise BadQuery(f"at most {MAX_CANDIDATES} candidates in one choice")
    if len({(type(c), repr(c)) for c in listed}) != len(listed):
        raise BadQuery("the candidates must be different from one another")
    return listed
