"""What a client program is told, as it is recorded and released."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from fpinq.model.semantics import Bottom, Tau, Told

# One integer per coordinate, or the grid point or candidate that was chosen.
Released = tuple[int, ...] | int


@dataclass(frozen=True)
class Answered:
    """What a query released, one for each part, and what it was charged at every root it touched."""

    released: tuple[Released, ...]
    charged: Mapping[str, Fraction]

    op = "answered"


Observation = Tau | Bottom | Told | Answered
