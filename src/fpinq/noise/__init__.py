"""Discrete mechanisms, exactly. Read them in this order.

1. ``uniform``      randomness: uniform reals from the operating system, bit by bit
2. ``enclosure``    rigorous bounds on e^−r and ln x in integer arithmetic
3. ``digits``       the discrete Laplace as a sum of independent digits
4. ``laplace``      its claim, its distribution, its samplers
5. ``selection``    private choice: candidates, runs of them, and the rate of ε
6. ``exponential`` and ``permute_and_flip``    the two mechanisms for it, each with its claim
"""

from fpinq.noise.exponential import ExponentialMechanism
from fpinq.noise.laplace import DiscreteLaplace, sample, sample_many
from fpinq.noise.permute_and_flip import PermuteAndFlip
from fpinq.noise.selection import Choice, Run, singles

__all__ = [
    "Choice",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "PermuteAndFlip",
    "Run",
    "sample",
    "sample_many",
    "singles",
]
