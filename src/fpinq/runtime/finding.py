"""Finding keys that nobody listed: the mechanism of a query, and what it releases.

What is released are integers: the number of a key in its domain, its noisy count, and so on, in the
order of the keys. Of more keys than the query says, those with the largest noisy counts: what is left
out is chosen from what was released, and by that alone.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain

from fpinq.model.epsilon import per
from fpinq.model.errors import KernelViolation
from fpinq.model.notions import Amount, Rho
from fpinq.model.queries import Discovery, Sparse, Stable
from fpinq.model.statistics import Integers
from fpinq.noise import DiscreteGaussian, DiscreteLaplace, SparseHistogram, StabilityHistogram
from fpinq.noise.symmetric import Symmetric
from fpinq.runtime import deadline


def find(query: Discovery, measured: Integers, at: Amount) -> tuple[int, ...]:
    """The keys that a query finds, and their noisy counts, drawn afresh."""
    mechanism = mechanism_of(query, at)
    deadline.check()
    if isinstance(mechanism, SparseHistogram):
        shown = mechanism.release_numbers(measured, each=deadline.each)
    else:
        shown = mechanism.release(measured)
    deadline.check()
    found = sorted(largest(shown, query.at_most).items())
    if found and not 0 <= found[0][0] <= found[-1][0] < query.domain.size:
        raise KernelViolation("a key that is not in its domain")
    return tuple(chain.from_iterable(found))


def largest(shown: Mapping[int, int], at_most: int) -> Mapping[int, int]:
    """Those with the largest counts, at most so many; of equal ones the first."""
    if len(shown) <= at_most:
        return shown
    return dict(sorted(shown.items(), key=lambda item: (-item[1], item[0]))[:at_most])


@lru_cache(maxsize=64)
def mechanism_of(query: Discovery, at: Amount) -> SparseHistogram | StabilityHistogram:
    """The mechanism of a query at ε or ρ: its noise, and which threshold a count must reach.

    A person who counts in k keys, in each once, changes k counts by 1: noise is that of k, and
    every key has its share of δ.
    """
    if isinstance(query, Sparse):
        return SparseHistogram(noise_of(query, at), query.domain, query.expected)
    assert isinstance(query, Stable)
    return StabilityHistogram(noise_of(query, at), query.delta / query.sensitivity, query.distance)


def noise_of(query: Discovery, at: Amount) -> Symmetric:
    """The noise of each key's count."""
    if isinstance(at, Rho):
        return DiscreteGaussian(query.squared / (2 * at.amount))
    return DiscreteLaplace(per(query.sensitivity, at))
