"""Discrete mechanisms, exactly. Read them in this order.

1. ``uniform``      randomness: uniform reals from the operating system, bit by bit
   (compared with probabilities that `model.enclosure` bounds, as narrowly as needed)
2. ``symmetric``    what integer noise has in common: it is known by its tail
   ``digits``       the discrete Laplace as a sum of independent digits
   ``laplace``      its claim, its distribution, its samplers
3. ``theta``        Σ e^(−x²/(2σ²)) over x ≥ t, bounded for any σ
   ``gaussian``     the discrete Gaussian: its claim, its distribution, its samplers
4. ``selection``    private choice: candidates, runs of them, and the rate of ε
5. ``exponential`` and ``permute_and_flip``    the two mechanisms for it, each with its claim
6. ``quotient``     a noisy number over an exact one, with its claim
7. ``stability``    keys nobody knew, with δ: its claim and its threshold
   ``sparse``       the same without δ: all keys of a domain of any size
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fpinq.noise.exponential import ExponentialMechanism
    from fpinq.noise.gaussian import DiscreteGaussian
    from fpinq.noise.laplace import DiscreteLaplace, sample, sample_each, sample_many
    from fpinq.noise.permute_and_flip import PermuteAndFlip
    from fpinq.noise.quotient import Quotient, choose_each
    from fpinq.noise.selection import Choice, Run, singles
    from fpinq.noise.sparse import SparseHistogram
    from fpinq.noise.stability import StabilityHistogram

__all__ = [
    "Choice",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "PermuteAndFlip",
    "Quotient",
    "Run",
    "SparseHistogram",
    "StabilityHistogram",
    "choose_each",
    "sample",
    "sample_each",
    "sample_many",
    "singles",
]

_PLACES = {
    "exponential": ("ExponentialMechanism",),
    "gaussian": ("DiscreteGaussian",),
    "laplace": ("DiscreteLaplace", "sample", "sample_each", "sample_many"),
    "permute_and_flip": ("PermuteAndFlip",),
    "quotient": ("Quotient", "choose_each"),
    "selection": ("Choice", "Run", "singles"),
    "sparse": ("SparseHistogram",),
    "stability": ("StabilityHistogram",),
}
_PLACE_OF = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    """A mechanism, from where it is: a count needs no choice (docs/decisions/0115)."""
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_PLACE_OF[name]}"), name)
    return found
