"""What a lowering may ask about the data, and what it is told where nobody looks."""

from collections.abc import Sequence
from typing import Protocol

from fpinq.engines.sql.expressions import Parameters
from fpinq.engines.sql.relations import Stored
from fpinq.model.frozen import dataclass


class Looks(Protocol):
    """What a lowering may ask about the data: which way is the faster one. All ways find the same rows.

    Steady: no record decides how the others are worked on.
    """

    @property
    def steady(self) -> bool:
        """Whether the same steps are taken whatever the data is."""

    def cut(self, source: Stored, unit: int, at_most: int) -> str | None:
        """The relation of the row numbers i beyond the first rows of each person, if there is one."""

    def first_per_key(
        self, source: str, keys: Sequence[str], by: Sequence[str], at_most: int, parameters: Parameters
    ) -> str | None:
        """The same rows as the dialect's, of a stored table, if there is a faster way to them."""

    def keep(self, select: str) -> str | None:
        """The name of a relation that holds what a SELECT gives that is used several times, if it is kept."""

    def gather(self, selects: Sequence[str], parameters: Parameters) -> str | None:
        """The name of a relation that holds what many SELECTs give together, if one statement has no room."""


@dataclass(frozen=True)
class NoLooks:
    """Nothing is asked about the data."""

    steady: bool = False

    def cut(self, source: Stored, unit: int, at_most: int) -> str | None:
        """None."""
        return None

    def first_per_key(
        self, source: str, keys: Sequence[str], by: Sequence[str], at_most: int, parameters: Parameters
    ) -> str | None:
        """None."""
        return None

    def keep(self, select: str) -> str | None:
        """None."""
        return None

    def gather(self, selects: Sequence[str], parameters: Parameters) -> str | None:
        """None."""
        return None
