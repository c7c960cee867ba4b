"""Mechanisms: from an exact statistic to what is released.

``laplace``  every coordinate, the zeros that a sparse statistic leaves out
             included, gets discrete Laplace noise of scale Δ/ε. A tree's
             coordinates are its nodes.
``choice``   permute-and-flip over integer scores. A rank's scores are monotone
             (one more record lowers all of them or none), so the rate is ε/Δ.
             Scores that a program wrote are monotone if no record can add a
             negative one, or none a positive one; otherwise the rate is ε/(2Δ).
             Several ranks are that many choices, each at its share of ε.

Δ = 0 only if no record can change the statistic; then it is released as it is.
"""

from collections.abc import Sequence
from fractions import Fraction

from fpinq.ledger import Released
from fpinq.model.queries import (
    Choice,
    Count,
    Frequencies,
    Moments,
    PrimitiveQuery,
    Rank,
    Ranks,
    Statistic,
    Sum,
    Tree,
)
from fpinq.noise import PermuteAndFlip, Run, sample, sample_many
from fpinq.runtime import deadline

# Below this many draws, one at a time is faster than waking up NumPy.
FEW = 16


def draw(query: PrimitiveQuery, statistic: Statistic, epsilon: Fraction) -> Released:
    """What a query releases of a statistic at ε. Drawn afresh on every call; TimeoutError if out of time."""
    deadline.check()
    match query:
        case Rank():
            return _draw_rank(query, statistic, epsilon)
        case Ranks():
            share = epsilon / len(query.fractions)
            return tuple(_draw_rank(rank, statistic, share) for rank in query.each())
        case Choice():
            return _draw_choice(query, statistic, epsilon)
        case _:
            exact = (
                query.nodes(statistic)
                if isinstance(query, Tree)
                else [statistic.get(coordinate, 0) for coordinate in coordinates(query)]
            )
            noise = _noise(query.sensitivity, epsilon, len(exact))
            return tuple(q + v for q, v in zip(exact, noise, strict=True))


def coordinates(query: Count | Sum | Moments | Frequencies) -> range:
    """The coordinates of a statistic, those that no record adds to included."""
    match query:
        case Moments(degree=degree):
            return range(degree + 1)
        case Frequencies(of=clamp):
            return range(clamp.lower, clamp.upper + 1)
        case _:
            return range(1)


def is_monotone(query: Choice) -> bool:
    """Whether one more record moves all scores in one direction."""
    return all(clamp.lower >= 0 for clamp in query.of) or all(clamp.upper <= 0 for clamp in query.of)


def _noise(sensitivity: int, epsilon: Fraction, n: int) -> Sequence[int]:
    if sensitivity == 0:
        return [0] * n
    scale = sensitivity / epsilon
    if n <= FEW:
        return [sample(scale) for _ in range(n)]
    drawn: list[int] = sample_many(scale, n).tolist()
    return drawn


def _draw_rank(query: Rank, statistic: Statistic, epsilon: Fraction) -> int:
    deadline.check()
    runs = query.scores(statistic)
    mechanism = PermuteAndFlip(epsilon, query.sensitivity, monotone=True)
    choice = mechanism.choose(Run(score, last - first + 1) for first, last, score in deadline.watched(runs))
    return runs[choice.run][0] + choice.member


def _draw_choice(query: Choice, statistic: Statistic, epsilon: Fraction) -> int:
    scores = [Run(statistic.get(candidate, 0), 1) for candidate in range(len(query.of))]
    mechanism = PermuteAndFlip(epsilon, max(query.sensitivity, 1), monotone=is_monotone(query))
    return mechanism.choose(scores).run
