"""Queries made of counts: the share of records with a property, and the most common of several values."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import exp, hypot, sqrt
from os import PathLike
from typing import Any

from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.asking import ask, refuse_unless_it_fits
from fpinq.client.choices import ExponentialMechanism, checked_candidates
from fpinq.client.columns import Confidence, Tabular
from fpinq.client.concentrated import gaussian_noise, over_size, prepares_at_rho
from fpinq.client.facts import Facts
from fpinq.client.groups import arity
from fpinq.client.leaves import Leaf, beside
from fpinq.client.queries import Inquiry, Prepared, column_of, divided_by_size, integers, laplace_noise
from fpinq.client.rows import BOOL, FLOAT64, Cell, Symbolic, constant, plain
from fpinq.client.shown import visibly
from fpinq.client.subjects import Subject
from fpinq.client.uncertainty import (
    ChoiceLoss,
    ChosenCandidate,
    Expected,
    Number,
    Uncertainty,
    normal_quantile,
)
from fpinq.model import queries as primitives
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Literal
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho, share_of
from fpinq.model.visible import visible
from fpinq.runtime import Released

# ── shares ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Proportion(Inquiry[Answer]):
    """The share of the records of which a condition is true, from 0 to 1; 1/2 if there are none.

    Those with and those without are counted, each with noise of the whole ε.
    Where the condition is missing it is not true.
    """

    of: object = None

    of_columns = True

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        return self.prepare_at(subject, epsilon)

    def prepare_at(self, subject: Subject, at: Amount) -> Prepared[Answer]:
        """At ε or ρ: noise as of one count, in both of them."""
        cell = subject.cell(self.of, "proportion")
        if cell.type is not BOOL:
            raise BadQuery(
                f"a proportion is of a condition, such as lambda x: x.age > 17, not of {cell.type.value}"
            )
        holds = cell.fill_null(False).cast("int64")
        primitive = primitives.Moments(Clamp(holds.tree, 0, 1), 1)
        kind = NormalShareNoise if isinstance(at, Rho) else ShareNoise
        scale = sqrt(primitive.squared / (2 * at.amount)) if isinstance(at, Rho) else float(1 / at)

        def read(released: Released, charged: Charged) -> Answer:
            without, having = integers(released)
            noise = kind(having, without, scale)
            return Answer(noise.share, at, charged, noise)

        def expect(size: int | None) -> Expected:
            if isinstance(at, Rho):
                return over_size(scale, 1.0, size)
            return divided_by_size(scale, size, 1.0)

        return Prepared(primitive, read, expect)


@dataclass(frozen=True)
class ShareNoise:
    """Two noisy counts, and the share of one of them in both.

    If p is the share, (1 − p)·having − p·without is noise and nothing else: p is
    where that is not too large. So the interval holds at any size, to half a record.
    """

    having: int
    without: int
    scale: float
    approximate = False

    @property
    def share(self) -> float:
        """The share, as far as is known."""
        total = self.having + self.without
        return float(Fraction(min(max(self.having, 0), total), total)) if total > 0 else 0.5

    def standard_error(self) -> float:
        """About √2·√((1 − p)² + p²)/ε of a record, of so many."""
        p = self.share
        total = max(self.having + self.without, 1)
        return min(self.scale * sqrt(2 * ((1 - p) ** 2 + p * p)) / total, 0.5)

    def interval(self, value: Number, confidence: Fraction) -> tuple[float, float]:
        """The first and the last share that the counts may have come from."""
        return self._end(0.0, confidence), self._end(1.0, confidence)

    def _end(self, end: float, confidence: Fraction) -> float:
        """From an end towards the share, the first that may be: found on a grid, and then between."""
        steps = 64
        inside = next(
            (i for i in range(steps + 1) if self._may_be(end + (self.share - end) * i / steps, confidence)),
            None,
        )
        if inside == 0 or inside is None:
            return end
        out, into = (end + (self.share - end) * i / steps for i in (inside - 1, inside))
        for _ in range(50):
            middle = (out + into) / 2
            out, into = (out, middle) if self._may_be(middle, confidence) else (middle, into)
        return into

    def _may_be(self, p: float, confidence: Fraction) -> bool:
        off = abs((1 - p) * self.having - p * self.without) - 0.5
        return off <= 0 or _beyond(off / self.scale, 1 - p, p) >= 1 - float(confidence)


@dataclass(frozen=True)
class NormalShareNoise(ShareNoise):
    """The same of two counts with Gaussian noise, of a deviation: what they differ by is about normal."""

    approximate = True

    def standard_error(self) -> float:
        """About √((1 − p)² + p²)·σ of a record, of so many."""
        return min(self._deviation(self.share) / max(self.having + self.without, 1), 0.5)

    def _deviation(self, p: float) -> float:
        return self.scale * hypot(1 - p, p)

    def _may_be(self, p: float, confidence: Fraction) -> bool:
        off = abs((1 - p) * self.having - p * self.without) - 0.5
        return off <= self._deviation(p) * normal_quantile(confidence)


def _beyond(t: float, w: float, v: float) -> float:
    """P[|w·L + v·M| > t] for two Laplace draws of scale 1: by partial fractions of their transform."""
    if abs(w - v) < 1e-3:
        w = v = max(w, v)
        return (1 + t / (2 * w)) * exp(-t / w)
    terms = (w * w * exp(-t / w) if w else 0.0) - (v * v * exp(-t / v) if v else 0.0)
    return terms / (w * w - v * v)


# ── the most common ──────────────────────────────────────────────────────────────────


CHOSEN = ChosenCandidate()


@visibly
class TopAnswer(Answer):
    """The first k of several candidates, best first.

    `counts` has their noisy counts; nothing where they were chosen by a score.
    """

    __slots__ = ("counts",)

    def __init__(self, value: list[Any], counts: Answers, epsilon: Fraction | Rho, charged: Charged) -> None:
        super().__init__(value, epsilon, charged, CHOSEN)
        self.counts = counts

    def __str__(self) -> str:
        if not self.counts:
            return super().__str__()
        return ", ".join(f"{visible(str(each))} ({count})" for each, count in self.counts.items())

    def leaves(self) -> Iterator[Leaf]:
        """A row for each: its rank, which one it is, and its count if there is one."""
        column = self.counts.key_columns[0]
        for rank, each in enumerate(self.value, 1):
            if self.counts:
                yield Leaf(beside({"rank": rank}, {column: each}), {"n": self.counts[each]})
            else:
                yield Leaf({"rank": rank}, {self.name: Answer(each, self.epsilon, self.charged, CHOSEN)})

    def to_dict(self, confidence: Confidence = None) -> dict[str, Any]:
        """The same columns as a frame has, each a list."""
        return Tabular.to_dict(self, confidence)

    def to_json(self, path: str | PathLike[str] | None = None, confidence: Confidence = None) -> str | None:
        """An array with an object for each, best first."""
        return Tabular.to_json(self, path, confidence)


@dataclass(frozen=True)
class Top(Inquiry[TopAnswer]):
    """The k most common of public candidates, best first; of a column with known keys, of those.

    A record has one value, so all candidates are counted with noise of the whole
    ε, and the counts are released with the answer: choosing k times would share it.
    """

    k: object
    of: object = None
    candidates: Sequence[object] | None = None

    of_columns = True

    @property
    def what(self) -> str:
        return f"top {plain(self.k)}"

    def traced(self, subject: Subject) -> Inquiry[TopAnswer]:
        if not isinstance(self.of, Symbolic) and callable(self.of) and arity(self.of) == 2:
            raise BadQuery(
                "the top by a score is chosen one after the other, in queries of their own: ask the table, "
                "or each part, part.noisy_top(ε, k, score, candidates)"
            )
        return super().traced(subject)

    def column(self) -> str:
        return "_".join(filter(None, ("top", column_of(self.of))))

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[TopAnswer]:
        return self.prepare_at(subject, epsilon)

    def prepare_at(self, subject: Subject, at: Amount) -> Prepared[TopAnswer]:
        """At ε or ρ: each candidate is counted with the noise of one count."""
        cell = subject.cell(self.of, "top")
        given = self.candidates if self.candidates is not None else subject.known(cell).keys
        if given is None:
            raise BadQuery("top needs candidates=[…]: what may be in it must not depend on the data")
        candidates = checked_candidates(given)
        k = checked_k(self.k, len(candidates))
        primitive = primitives.Tally(cell.tree, tuple(_literal(cell, each) for each in candidates))
        noise = gaussian_noise(primitive, at) if isinstance(at, Rho) else laplace_noise(primitive, at)

        def read(released: Released, charged: Charged) -> TopAnswer:
            counts = dict(zip(candidates, integers(released), strict=True))
            best = sorted(candidates, key=lambda each: -counts[each])[:k]
            answers = {each: Answer(counts[each], at, charged, noise) for each in best}
            listed = Answers(answers, at, charged, (column_of(cell) or "value",)).called("n")
            return TopAnswer(best, listed, at, charged)

        def expect(size: int | None) -> Expected:
            # All counts are within t at once, so one that was left out is at most 2t above one that was not.
            number = len(candidates)
            loss = CountsLoss(number, noise) if isinstance(at, Rho) else ChoiceLoss(number, at / 2)
            return Expected(loss, "records fewer than one that was left out")

        return Prepared(primitive, read, expect)


@dataclass(frozen=True)
class CountsLoss:
    """How many records fewer than the best the best of noisy counts may have: twice what all are within."""

    candidates: int
    noise: Uncertainty
    approximate = False

    def standard_error(self) -> None:
        """There is none."""
        return

    def interval(self, value: Number, confidence: Fraction) -> tuple[Number, Number]:
        """The loss that is not exceeded with this confidence, on either side."""
        if self.candidates == 1:
            return value, value
        _, t = self.noise.interval(0, 1 - (1 - confidence) / self.candidates)  # type: ignore[misc]
        return value - 2 * t, value + 2 * t


def checked_k(k: object, candidates: int) -> int:
    """How many of the candidates: 1 or more, and no more than there are."""
    k = plain(k)
    if type(k) is not int or k < 1:
        raise BadQuery("k is how many are wanted: a whole number, 1 or more")
    if k > candidates:
        raise BadQuery(f"the top {k} of {candidates} candidates: there are not so many")
    return k


def _literal(cell: Cell, candidate: object) -> Literal:
    """A candidate as a value of the expression."""
    found = constant(float(candidate) if cell.type is FLOAT64 and type(candidate) is int else candidate)
    if not isinstance(found.tree, Literal) or found.type is not cell.type or found.tree.value is None:
        raise BadQuery(f"the candidate {candidate!r} is no {cell.type.value}, and what is counted is one")
    return found.tree


def top_by_score(
    table: Facts, at: Amount, k: object, score: object, candidates: object, bounds: object
) -> TopAnswer:
    """The k candidates with the largest total scores, best first.

    Chosen one after the other, each of those that are left and at an equal share
    of ε or ρ. Scores of many candidates move together with one record, so that to
    release them all would cost ε for each.
    """
    left = checked_candidates(candidates)
    k = checked_k(k, len(left))
    share = share_of(at, Fraction(1, k))
    refuse_unless_it_fits(table, at)
    chosen: list[object] = []
    charges: list[Charged] = []
    for _ in range(k):
        answer = ask(table, share, ExponentialMechanism(left, score, bounds))  # type: ignore[arg-type]
        chosen.append(answer.value)
        charges.append(answer.charged)
        left = [each for each in left if each is not answer.value]
    charged = _together(charges)
    found = TopAnswer(chosen, Answers({}, at, charged), at, charged)
    found.name = "top"
    found.note = (
        f"chosen one after the other, each at {'ρ' if isinstance(at, Rho) else 'ε'}/{k}" if k > 1 else ""
    )
    return found


def _together(charges: Sequence[Charged]) -> Charged:
    """What several queries of the same table were charged."""
    first = charges[0]
    if isinstance(first, Fraction):
        return sum((each for each in charges if isinstance(each, Fraction)), Fraction(0))
    return {
        root: sum((c[root] for c in charges if not isinstance(c, Fraction)), Fraction(0)) for root in first
    }


prepares_at_rho[Proportion], prepares_at_rho[Top] = Proportion.prepare_at, Top.prepare_at
