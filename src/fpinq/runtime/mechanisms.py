"""Mechanisms: from an exact statistic to what is released.

``laplace``  every integer, the zeros that a sparse statistic leaves out
             included, gets discrete Laplace noise of scale Δ/ε.
``choice``   permute-and-flip over integer scores, at rate ε/Δ if they are
             monotone (one more record moves all of them in one direction) and
             ε/(2Δ) otherwise. A query that chooses several times does each at
             its share of ε.

Which of them, Δ and the rest is what the query says of itself. Δ = 0 only if no
record can change the statistic; then it is released as it is.
"""

from collections.abc import Sequence
from fractions import Fraction

from fpinq.ledger import Released
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import KernelViolation
from fpinq.model.queries import Choices, Chosen, Noisy, Primitive, PrimitiveQuery
from fpinq.model.statistics import Integers
from fpinq.noise import PermuteAndFlip, Run, sample, sample_many
from fpinq.runtime import deadline

# Below this many draws, one at a time is faster than waking up NumPy.
FEW = 16


def draw(query: PrimitiveQuery, measured: Integers, epsilon: Epsilon) -> Released:
    """What a query releases at ε of what was measured, drawn afresh; TimeoutError if out of time."""
    deadline.check()
    drawn = _choose(query, measured, epsilon) if isinstance(query, Chosen) else _add(query, measured, epsilon)
    _check_released(query, drawn)
    return drawn[0] if isinstance(query, Chosen) and query.alone else drawn


def _check_released(query: Primitive, drawn: Sequence[int]) -> None:
    """KernelViolation unless a query releases what it says, which is what limits go by."""
    if len(drawn) != query.integers:
        raise KernelViolation(f"{type(query).__name__} releases {query.integers} integers, not {len(drawn)}")


def _add(query: Noisy, measured: Integers, epsilon: Epsilon) -> tuple[int, ...]:
    exact = query.exact(measured)
    noise = _noise(query.sensitivity, epsilon, len(exact))
    return tuple(q + v for q, v in zip(exact, noise, strict=True))


def _noise(sensitivity: int, epsilon: Epsilon, n: int) -> Sequence[int]:
    if sensitivity == 0:
        return [0] * n
    scale = sensitivity / epsilon
    if n <= FEW:
        return [sample(scale) for _ in range(n)]
    drawn: list[int] = sample_many(scale, n).tolist()
    return drawn


def _choose(query: Chosen, measured: Integers, epsilon: Epsilon) -> tuple[int, ...]:
    share = epsilon / query.passes
    return tuple(_choice(choices, query.monotone, share) for choices in query.choices(measured))


def _choice(choices: Choices, monotone: bool, epsilon: Fraction) -> int:
    deadline.check()
    runs = choices.runs
    mechanism = PermuteAndFlip(epsilon, max(choices.sensitivity, 1), monotone=monotone)
    choice = mechanism.choose(Run(score, last - first + 1) for first, last, score in deadline.watched(runs))
    return runs[choice.run][0] + choice.member
