"""Private choice among candidates with integer scores: the higher the score, the likelier.

Two mechanisms, `exponential` and `permute_and_flip`, both over the gaps to the
best score and both with the rate

    λ = ε/(2Δ),  or  λ = ε/Δ for monotone scores,

where Δ bounds how much any candidate's score differs between neighbouring
data, and scores are *monotone* if between any two neighbours all of them move
in the same direction (each by 0 … Δ up, or each by 0 … Δ down). The caller
states both; nothing here can check them.

Candidates come as runs (score, multiplicity): over 10⁹ integers a median has
only about as many distinct scores as the data has values. A run stands for
that many candidates of equal score, and the probabilities are exactly those
of the list written out. Candidates of equal score are equally likely, so the
member of a run is uniform.

*Time.* The number of runs depends on the data, and the work grows with it and
with the size of the integers. So, unlike the Laplace, a choice takes a time
that depends on the data whatever the sampler does. Where timing matters,
answers are to be released at multiples of a public time quantum.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.model.frozen import dataclass


class Run(NamedTuple):
    """Candidates of equal score, as many as multiplicity."""

    score: int
    multiplicity: int


class Choice(NamedTuple):
    """The chosen candidate: which run, and which member of it, both counted from 0."""

    run: int
    member: int


class Lag(NamedTuple):
    """A run by how far it lies behind the best score; what a mechanism sees of it."""

    gap: int
    multiplicity: int


@dataclass(frozen=True)
class Selection:
    """ε, the scores' sensitivity Δ, and whether the scores are monotone."""

    epsilon: Fraction
    sensitivity: int = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        if type(self.epsilon) not in (int, Fraction) or self.epsilon <= 0:
            raise BadEpsilon("ε must be an exact positive number: an int or a Fraction")
        if type(self.sensitivity) is not int or self.sensitivity < 1:
            raise BadQuery("the sensitivity of integer scores must be an integer, 1 or more")

    @cached_property
    def rate(self) -> Fraction:
        """λ, per point of score."""
        return Fraction(self.epsilon) / (self.sensitivity * (1 if self.monotone else 2))


def singles(scores: Iterable[int]) -> list[Run]:
    """Single candidates with these scores, as runs of one."""
    return [Run(score, 1) for score in scores]


def lags(runs: Iterable[tuple[int, int]]) -> list[Lag]:
    """The runs as gaps to the best score.

    Errors name no score: scores are private.
    """
    listed = list(runs)
    if not listed:
        raise BadQuery("there are no candidates to choose from: give at least one")
    for score, multiplicity in listed:
        if type(score) is not int or type(multiplicity) is not int or multiplicity < 1:
            raise BadQuery("a run is an integer score and a multiplicity of 1 or more")
    best = max(score for score, _ in listed)
    return [Lag(best - score, multiplicity) for score, multiplicity in listed]
