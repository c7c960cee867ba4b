"""Discrete mechanisms, exactly. Read them in this order.

1. ``uniform``      randomness: uniform reals from the operating system, bit by bit
2. ``enclosure``    rigorous bounds on e^−r and ln x in integer arithmetic
3. ``digits``       the discrete Laplace as a sum of independent digits
4. ``laplace``      its claim, its distribution, its samplers
"""

from fpinq.noise.laplace import DiscreteLaplace, sample, sample_many

__all__ = ["DiscreteLaplace", "sample", "sample_many"]
