"""Queries at ρ: the same primitives as at ε, read with Gaussian noise; choices with an ε of their own.

What a query is at ρ follows from what it is at ε: which integers are measured, and
what they say. Here is what differs, and the table of all that can be asked at ρ. Queries
that are imported where they are asked for (`counting`, `extremes`, `regressions`, `workloads`)
put themselves into it. A query that is not in it says so before anything is charged.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, cast

from fpinq.client import moments
from fpinq.client.answers import Answer, Answers, Charged, Made
from fpinq.client.bounds import clamp
from fpinq.client.choices import ExponentialMechanism, Mode, OrderStatistic, Quantile, Quantiles
from fpinq.client.histograms import (
    BinAnswers,
    Cdf,
    Distribution,
    FindBounds,
    Histogram,
    Ranges,
    binned,
    rising,
)
from fpinq.client.named import Named, Split
from fpinq.client.queries import (
    Average,
    Count,
    DistinctCount,
    Inquiry,
    Prepared,
    StandardDeviation,
    Sum,
    Variance,
    column_of,
    finite,
    integers,
    on_grid,
    root_expected,
    root_of,
)
from fpinq.client.several import Several, apart_of, whole_weights
from fpinq.client.subjects import Subject
from fpinq.client.trees import CountTree, mean_variance, trees_over
from fpinq.client.uncertainty import Expected, GaussianNoise, Normal, NormalWithin, RangeNoise
from fpinq.model import queries as primitives
from fpinq.model.conversion import epsilon_of_range
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import BadQuery
from fpinq.model.kinds import Chosen, Noisy
from fpinq.model.notions import Rho
from fpinq.runtime import Released

ONE = Fraction(1)


def prepare_at_rho(query: Inquiry[Any], subject: Subject, at: Rho) -> Prepared[Any]:
    """The primitive query that a query is at ρ, and how to read it."""
    found = prepares_at_rho.get(type(query))
    if found is None:
        raise BadQuery(
            f"{query.what} cannot be asked at ρ: ask it at an ε; what that costs, table.price says"
        )
    return found(query, subject, at)


def gaussian_noise(primitive: Noisy, at: Rho, step: Fraction = ONE) -> GaussianNoise:
    """The noise in every coordinate."""
    return GaussianNoise(primitive.squared / (2 * at.amount) if primitive.squared else None, step)


# ── counts and sums ──────────────────────────────────────────────────────────────────


def _count(query: Inquiry[Answer], subject: Subject, at: Rho) -> Prepared[Answer]:
    primitive = primitives.Count()
    noise = gaussian_noise(primitive, at)

    def read(released: Released, charged: Charged) -> Answer:
        return Answer(integers(released)[0], at, charged, noise)

    return Prepared(primitive, read, lambda size: Expected(noise))


def _sum(query: Sum, subject: Subject, at: Rho) -> Prepared[Answer]:
    cell = subject.cell(query.of, "sum")
    clamped = clamp(cell, subject.bounds(cell, query.bounds))
    primitive = primitives.Sum(clamped)
    noise = gaussian_noise(primitive, at, clamped.step)
    if math.isinf(noise.standard_error()):
        raise BadQuery("the noise would exceed what a float can hold: use a larger ρ or narrower bounds")

    def read(released: Released, charged: Charged) -> Answer:
        return Answer(on_grid(integers(released)[0], clamped), at, charged, noise)

    return Prepared(primitive, read, lambda size: Expected(noise))


# ── averages and variances ───────────────────────────────────────────────────────────


def _average(query: Average, subject: Subject, at: Rho) -> Prepared[Answer]:
    """One query, of Σ(x − lower) and Σ(upper − x)."""
    clamped = query.clamped(subject)
    primitive = primitives.Moments(clamped, 1)
    width, deviation = finite(clamped.width * clamped.step, "an average"), _deviation(primitive, at)

    def read(released: Released, charged: Charged) -> Answer:
        found = moments.average(moments.measured(integers(released), deviation), clamped)
        return Answer(found.value, at, charged, NormalWithin.of(found.error.weights, found.error))

    return Prepared(primitive, read, partial(over_size, width / math.sqrt(2 * at.amount), width))


def _variance(query: Variance, subject: Subject, at: Rho) -> Prepared[Answer]:
    """In the Lagrange basis: as private at ρ as the Bernstein basis, with less noise in the variance."""
    clamped = query.clamped(subject)
    primitive = primitives.Lagrange(clamped)
    square = finite((clamped.width * clamped.step) ** 2, "a variance")
    deviation = _deviation(primitive, at)

    def read(released: Released, charged: Charged) -> Answer:
        low, middle, high = integers(released)
        quarter = Fraction(middle, 4)
        found = moments.variance(
            moments.Sums((low + quarter, 2 * quarter, high + quarter), (float(deviation),)), clamped
        )
        weights = found.error.weights
        if len(weights) == 3:  # of the Bernstein sums; of what they were made of:
            weights = (weights[0], weights[0] / 4 + weights[1] / 2 + weights[2] / 4, weights[2])
        return Answer(found.value, at, charged, NormalWithin.of(weights, found.error))

    # Where all values are at one bound the slopes are 1, ¼ and 0.
    worst = square * math.sqrt(17 / 16) / math.sqrt(2 * at.amount)
    return Prepared(primitive, read, partial(over_size, worst, square / 4))


def _standard_deviation(query: StandardDeviation, subject: Subject, at: Rho) -> Prepared[Answer]:
    prepared = _variance(Variance(query.of, query.bounds), subject, at)
    return Prepared(prepared.primitive, root_of(prepared.read), root_expected(prepared.expect, at))


def _deviation(primitive: Noisy, at: Rho) -> Fraction:
    """σ, as near as floats are: for intervals that say that they are approximate."""
    return Fraction(math.sqrt(primitive.squared / (2 * at.amount)))


def over_size(weight: float, most: float, size: int | None) -> Expected:
    """An error of weight/size times a normal draw at worst, and never above most."""
    if size is None:
        return Expected(None, note=f"at most {weight:,.4g} divided by the number of records")
    note = f"at most, if {size:,} records have a value"
    return Expected(NormalWithin(weight / size, -most, most), note=note)


# ── histograms ───────────────────────────────────────────────────────────────────────


def _histogram(query: Histogram, subject: Subject, at: Rho) -> Prepared[Answers]:
    bins = binned(subject, query, "histogram")
    primitive = primitives.Frequencies(bins.index)
    noise = gaussian_noise(primitive, at)
    flat = CountTree(len(bins.labels), max(len(bins.labels), 2), 1)

    def read(released: Released, charged: Charged) -> Answers:
        counts = integers(released)
        made = Made(bins.labels, lambda i: Answer(counts[i], at, charged, noise))
        return BinAnswers(made, at, charged, flat, noise, column_of(query.of))

    return Prepared(primitive, read, lambda size: Expected(noise, note="for each bin"))


def _ranges(query: Ranges, subject: Subject, at: Rho) -> Prepared[BinAnswers]:
    bins = binned(subject, query, "ranges")
    tree = best_tree_at_rho(len(bins.labels))
    primitive = primitives.Tree(bins.index, tree.branching, tree.height)
    noise = gaussian_noise(primitive, at)

    def read(released: Released, charged: Charged) -> BinAnswers:
        nodes = integers(released)
        counts = nodes if tree.height == 1 else tree.estimates(nodes).tolist()

        def make(i: int) -> Answer:
            return Answer(counts[i], at, charged, RangeNoise(tree, i, i + 1, noise))

        return BinAnswers(Made(bins.labels, make), at, charged, tree, noise, column_of(query.of))

    def expect(size: int | None) -> Expected:
        error = noise.standard_error() * math.sqrt(mean_variance(tree))
        return Expected(Normal(error), note="on average over all ranges")

    return Prepared(primitive, read, expect)


def _cdf(query: Cdf, subject: Subject, at: Rho) -> Prepared[Answers]:
    bins = binned(subject, query, "cdf")
    points = [label[1] if isinstance(label, tuple) else label for label in bins.labels]
    tree = best_tree_at_rho(len(points), points=True)
    primitive = primitives.Tree(bins.index, tree.branching, tree.height)
    noise = gaussian_noise(primitive, at)

    def read(released: Released, charged: Charged) -> Answers:
        below = rising(list(accumulate(tree.estimates(integers(released)).tolist())))
        total = max(below[-1], 0.0)

        def make(i: int) -> Answer:
            if query.counts:
                return Answer(max(below[i], 0.0), at, charged, RangeNoise(tree, 0, i + 1, noise, 1.0, 0.0))
            fraction = min(max(below[i] / total, 0.0), 1.0) if total else (i + 1) / len(points)
            error = RangeNoise(tree, 0, i + 1, noise, 1 / max(total, 1.0), 0.0, 1.0)
            return Answer(fraction, at, charged, error)

        return Distribution(Made(points, make), at, charged, (column_of(query.of) or "point",))

    def expect(size: int | None) -> Expected:
        error = noise.standard_error() * math.sqrt(mean_variance(tree, points=True))
        if query.counts:
            return Expected(Normal(error), note="on average over the points")
        if size is None:
            return Expected(None, note=f"about {error:,.4g} divided by the number of records")
        note = f"on average over the points, if {size:,} records have a value"
        return Expected(Normal(error / size), note=note)

    return Prepared(primitive, read, expect)


def _bounds(query: FindBounds, subject: Subject, at: Rho) -> Prepared[Answer]:
    primitive = query.primitive(subject)
    return query.seen(primitive, gaussian_noise(primitive, at), at)


@lru_cache(maxsize=1024)
def best_tree_at_rho(bins: int, *, points: bool = False) -> CountTree:
    """The best tree of counts: h levels have h times the variance, where at ε they have h² times."""
    return min(trees_over(bins), key=lambda tree: tree.height * mean_variance(tree, points=points))


# ── choices ──────────────────────────────────────────────────────────────────────────


def chosen_at_rho(query: Inquiry[Any], subject: Subject, at: Rho) -> Prepared[Any]:
    """As at the ε that each choice is made at: a candidate g behind has at most e^(−ε·g/Δ) there, too."""
    if isinstance(query, Quantile | Quantiles) and query.interval is not None:
        return query.bracketed(subject, at)
    passes = cast(Chosen, query.prepare(subject, Epsilon(ONE)).primitive).passes
    own = Epsilon(passes * epsilon_of_range(at.amount / passes))
    prepared = query.prepare(subject, own)

    def read(released: Released, charged: Charged) -> Any:
        found = prepared.read(released, charged)
        each = found.values() if isinstance(found, Answers) else ()
        for answer in (found, *each):
            answer.epsilon = at if answer is found else at.times(Fraction(1, passes))
        return found

    return replace(prepared, read=read)


def each_at_rho(query: Several, subject: Subject, at: Rho) -> dict[str, tuple[Rho, Prepared[Any]]]:
    """The ρ that each name is asked at, its weight among all, and how."""
    whole = sum(query.weights.values(), Fraction(0))
    shares = {name: at.times(query.weights[name] / whole) for name in query.queries}
    return {
        name: (shares[name], prepare_at_rho(one, subject, shares[name]))
        for name, one in query.queries.items()
    }


def _several(query: Several, subject: Subject, at: Rho) -> Prepared[Named]:
    """Each at its share of ρ."""
    each = each_at_rho(query, subject, at)
    primitive = primitives.Several(
        tuple(one.primitive for _, one in each.values()),  # type: ignore[misc]  # none of them is several
        whole_weights([query.weights[name] for name in each]),
    )
    split = Split(at, tuple(((name,), share) for name, (share, _) in each.items()))

    def read(released: Released, charged: Charged) -> Named:
        apart = apart_of(primitive, integers(released))
        answers = {
            name: one.read(part, charged).called(query.queries[name].column())
            for (name, (_, one)), part in zip(each.items(), apart, strict=True)
        }
        return Named(answers, at, charged, split)

    return Prepared(primitive, read, lambda size: Expected(None, note=f"by name, {split}"))


prepares_at_rho: dict[type, Callable[[Any, Subject, Rho], Prepared[Any]]] = {
    Count: _count,
    DistinctCount: _count,
    Sum: _sum,
    Average: _average,
    Variance: _variance,
    StandardDeviation: _standard_deviation,
    Histogram: _histogram,
    Ranges: _ranges,
    Cdf: _cdf,
    FindBounds: _bounds,
    Quantile: chosen_at_rho,
    OrderStatistic: chosen_at_rho,
    Quantiles: chosen_at_rho,
    ExponentialMechanism: chosen_at_rho,
    Mode: chosen_at_rho,
    Several: _several,
}
