"""Trace semantics: what an observer sees of a run, and with what exact probability.

A client is any deterministic thing that issues actions and is told their
results: a function from what it has seen to its next action. The probabilities
come from outside, as the distribution of the answers to a measurement, so the
same definition serves every mechanism.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from fpinq.model.accounts import charged
from fpinq.model.actions import Action
from fpinq.model.frozen import dataclass
from fpinq.model.semantics import Bottom, Configuration, Measure, Tau, Told, step

# One integer per coordinate, or the grid point or candidate that was chosen.
Released = tuple[int, ...] | int


@dataclass(frozen=True)
class Answered:
    """v⃗: what a query released, one for each part; and what it was charged at every root it touched."""

    released: tuple[Released, ...]
    charged: Mapping[str, Fraction]

    op = "answered"


Observation = Tau | Bottom | Told | Answered
Client = Callable[[tuple[Observation, ...]], Action]
Distribution = Callable[[Measure], Mapping[tuple[int, ...], Fraction]]


@dataclass(frozen=True)
class Trace:
    """One way a run can go: what was seen, how probable that was, and where it led."""

    observations: tuple[Observation, ...]
    probability: Fraction
    configuration: Configuration


def traces(client: Client, start: Configuration, distribution: Distribution, length: int) -> Iterator[Trace]:
    """Every trace of a length that a client can make from a configuration.

    Only a measurement branches; every other rule has one observation, with
    probability 1. A trace determines its probability and where it leads.
    """
    open_traces = [Trace((), Fraction(1), start)]
    for _ in range(length):
        open_traces = [longer for trace in open_traces for longer in _extend(client, trace, distribution)]
    yield from open_traces


def _extend(client: Client, trace: Trace, distribution: Distribution) -> Iterator[Trace]:
    transition = step(trace.configuration, client(trace.observations))
    label = transition.label
    if isinstance(label, Measure):
        cost = charged(trace.configuration.accounts, transition.configuration.accounts)
        for answers, probability in distribution(label).items():
            seen = (*trace.observations, Answered(answers, cost))
            yield Trace(seen, trace.probability * probability, transition.configuration)
    else:
        yield Trace((*trace.observations, label), trace.probability, transition.configuration)
