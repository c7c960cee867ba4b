"""Queries that choose: a grid point by its rank, or one of several candidates by its score."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.bounds import RANK_WIDTH_BITS, clamp
from fpinq.client.queries import Prepared, Query, integer, integers, on_grid
from fpinq.client.rows import BOOL, FLOAT64, Cell, Symbolic, constant, plain
from fpinq.client.subjects import Subject
from fpinq.client.tracing import Traced, row, trace
from fpinq.client.uncertainty import ChoiceLoss, ChosenCandidate, ChosenPoint, Expected
from fpinq.model import queries as primitives
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import Epsilon, rational
from fpinq.model.errors import BadQuery
from fpinq.runtime import Released

MAX_CANDIDATES = 10_000


# ── by rank ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Quantile(Query[Answer]):
    """The value below which a fraction of the records lies: an order statistic.

    Chosen among the grid points within the bounds, by permute-and-flip at the
    full ε. Off by few ranks, whatever the values; ties are no problem.
    """

    fraction: object
    of: object = None
    bounds: object = None

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        primitive = primitives.Rank(self._clamp(subject), exact_fraction(self.fraction))
        clamped = primitive.of

        def read(released: Released, charged: Charged) -> Answer:
            return Answer(on_grid(integer(released), clamped), epsilon, charged, _within(clamped))

        return Prepared(primitive, read, lambda size: _ranks_off(primitive, epsilon))

    def _clamp(self, subject: Subject) -> Clamp:
        cell = subject.cell(self.of, "quantile")
        return clamp(cell, subject.bounds(cell, self.bounds), width_bits=RANK_WIDTH_BITS)


class OrderStatistic(Quantile):
    """PINQ's name for a quantile."""


def Median(of: object = None, bounds: object = None) -> Quantile:  # noqa: N802  a query like the others
    """The value in the middle."""
    return Quantile(Fraction(1, 2), of, bounds)


@dataclass(frozen=True)
class Quantiles(Query[Answers]):
    """Several quantiles at once, a mapping fraction ↦ answer. They share the ε, and rise with the fraction.

    For more than about ten, a cumulative distribution (fp.cdf) is the better question.
    """

    fractions: Sequence[object]
    of: object = None
    bounds: object = None

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answers]:
        if isinstance(self.fractions, str | Symbolic) or not isinstance(self.fractions, Sequence):
            raise BadQuery("quantiles need a list of fractions, such as [0.25, 0.5, 0.75]")
        fractions = {fraction: exact_fraction(fraction) for fraction in self.fractions}
        if not fractions:
            raise BadQuery("no quantiles to ask for: give at least one fraction")
        clamped = Quantile(0, self.of, self.bounds)._clamp(subject)
        rising = sorted(set(fractions.values()))
        primitive = primitives.Ranks(clamped, tuple(rising))
        share = epsilon / len(rising)

        def read(released: Released, charged: Charged) -> Answers:
            # The nearest points that rise: choices made one by one may cross.
            points = dict(zip(rising, sorted(integers(released)), strict=True))
            answers = {
                fraction: Answer(on_grid(points[exact], clamped), share, charged, _within(clamped))
                for fraction, exact in fractions.items()
            }
            return Answers(answers, epsilon, charged)

        def expect(size: int | None) -> Expected:
            each = [_ranks_off(rank, share) for rank in primitive.each()]
            return min(each, key=lambda expected: expected.uncertainty.rate)  # type: ignore[union-attr]

        return Prepared(primitive, read, expect)


def _within(clamped: Clamp) -> ChosenPoint:
    return ChosenPoint(on_grid(clamped.lower, clamped), on_grid(clamped.upper, clamped))


def _ranks_off(rank: primitives.Rank, epsilon: Fraction) -> Expected:
    """How many ranks a choice may be off: a rank on the lighter side costs the least score."""
    a, b = rank.fraction.numerator, rank.fraction.denominator
    lighter = min(a, b - a) or max(a, b - a)
    rate = epsilon * lighter / rank.sensitivity
    note = "how far that is in value depends on the data"
    return Expected(ChoiceLoss(rank.of.width + 1, rate), "ranks", note)


def exact_fraction(fraction: object) -> Fraction:
    """A fraction of the records, between 0 and 1; a float through its shortest repr."""
    exact = rational(plain(fraction))
    if exact is None or not 0 <= exact <= 1:
        raise BadQuery("a quantile is a fraction of the records: a number between 0 and 1, such as 0.5")
    return exact


# ── by score ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ExponentialMechanism(Query[Answer]):
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
class Mode(Query[Answer]):
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
