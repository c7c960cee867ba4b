"""Exact sums of integers in BIGINT arithmetic alone.

A sum of 64-bit integers may need more than 64 bits. Spark's DECIMAL(38, 0) has
them, and rules of its own for precision (docs/decisions/0030). Here a wide
integer is added up in limbs of 22 bits, each with 41 bits to spare: beyond
2⁴¹ rows, two million million, ANSI rules make it an error, never a wrong sum.
"""

from collections.abc import Sequence

from fpinq.model.clamps import Clamp
from fpinq.model.frozen import dataclass

BITS = 22
_MASK = f"{2**BITS - 1}L"


@dataclass(frozen=True)
class Limbs:
    """How many limbs the integers of a column take."""

    count: int

    @staticmethod
    def of(clamp: Clamp) -> "Limbs":
        """The limbs of a clamp's grid points."""
        return Limbs.up_to(clamp.magnitude)

    @staticmethod
    def up_to(magnitude: int) -> "Limbs":
        """The limbs of integers no farther than this from zero."""
        return Limbs(1 if magnitude <= 2**BITS else 2 if magnitude <= 2 ** (2 * BITS) else 3)

    def parts(self, column: str) -> list[str]:
        """The limbs of a BIGINT column, least first; the last one carries the sign."""
        limbs = [f"(shiftright({column}, {BITS * i}) & {_MASK})" for i in range(1, self.count - 1)]
        if self.count == 1:
            return [column]
        return [f"({column} & {_MASK})", *limbs, f"shiftright({column}, {BITS * (self.count - 1)})"]

    def sums(self, column: str) -> list[str]:
        """The sum of each limb, least first."""
        return [f"sum({part})" for part in self.parts(column)]

    def total(self, sums: Sequence[str]) -> str:
        """The sum as a BIGINT, 0 for no values, null where it does not fit."""
        limbs = [f"coalesce({column}, 0L)" for column in sums]
        carried = limbs[0]
        low: list[str] = []
        for limb in limbs[1:]:
            low.append(f"({carried} & {_MASK})")
            carried = f"({limb} + shiftright({carried}, {BITS}))"
        # What is carried into the last limb must leave room for the others.
        room = 2 ** (63 - BITS * (self.count - 1))
        if self.count == 1:
            return carried
        top = f"CASE WHEN {carried} >= (-{room}L) AND {carried} < {room}L THEN {carried} END"
        shifted = f"{top} * {2 ** (BITS * (self.count - 1))}L"
        rest = " + ".join(f"{part} * {2 ** (BITS * i)}L" for i, part in enumerate(low))
        return f"({shifted} + ({rest}))"


def exact(sums: Sequence[int | None]) -> int:
    """The sum from the sums of its limbs, which are null for no values."""
    return sum((limb or 0) << (BITS * i) for i, limb in enumerate(sums))
