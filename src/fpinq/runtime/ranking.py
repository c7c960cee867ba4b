"""Ranks among very many grid points, as arrays: the runs of `Rank.scores`, but only those that can win.

The points are put in order and added up once, whatever the number of ranks. A
rank then looks at the runs whose scores are near the best one, and of the
others, ring by ring, at those few whose first random bits are all 0.
"""

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from fpinq.engines.columns import ROOM, Counts
from fpinq.model.clamps import Clamp
from fpinq.model.queries import Brackets, Rank, Ranks

if TYPE_CHECKING:
    from fpinq.engines.columns import Column
    from fpinq.noise.permute_and_flip import PermuteAndFlip, Stretch

# Of so few grid points, one after the other is faster than waking up NumPy.
FEW = 1_000
# More records than anybody has; their scores are still exact.
MANY = 2**41


def are_many(query: Rank | Ranks | Brackets, counts: Counts) -> bool:
    """Whether there are many grid points, and their scores are integers that arrays hold.

    That goes by what was asked, so that no record tips it.
    """
    largest = max(rank.fraction.denominator for rank in query.each())
    if query.of.width <= FEW or max(query.of.magnitude, largest * MANY) >= ROOM:
        return False
    return int(counts.numbers.sum()) < MANY


# Fewer runs are all drawn for.
FEW_RUNS = 2_048
# Runs so many doublings behind the best lose unless so many first bits of theirs are 0. Up to 8, a byte of
# each is read; beyond, hardly a word for all of them.
RINGS = (2, 4, 8, 16, 32, 64)


class Runs(NamedTuple):
    """Runs of grid points of equal scores: how many points each has, and the score. Some have none."""

    sizes: "Column"
    score: "Column"


class Ranked:
    """Grid points that occur, in order. Slot i is the free points before the i-th and itself, the last slot
    those after the last. Its runs have the numbers 2i and 2i + 1, also where there are no free points.
    """

    def __init__(self, of: Clamp, counts: Counts) -> None:
        import numpy as np

        points = len(counts)
        self.runs = 2 * points + 1
        self._slots = points + 1
        self._free = np.append(of.lower, counts.points + 1)
        self._points = np.append(counts.points, of.upper + 1)
        self._sizes = self._points - self._free
        # How many records are below the i-th point; below the one after the last are all, and so on.
        self._below = np.concatenate([[0], np.cumsum(counts.numbers), [counts.numbers.sum()]])
        self._records = int(self._below[-1])
        # At most a quarter of the free points' runs are four times as large as they are on average.
        self._largest = 4 * (of.width // self._slots + 1)
        self._larger = 2 * np.flatnonzero(self._sizes > self._largest)

    def choose(self, rank: Rank, epsilon: Fraction) -> int:
        """The grid point that a rank chooses, by permute-and-flip."""
        from fpinq.noise import PermuteAndFlip

        mechanism = PermuteAndFlip(epsilon, max(rank.sensitivity, 1), monotone=rank.monotone)

        def look(numbers: "range | Column") -> "tuple[Column, Column]":
            runs = self.scored(rank, numbers)
            return runs.score, runs.sizes

        if self.runs <= FEW_RUNS:
            choice = mechanism.choose_of(*look(range(self.runs)))
        else:
            choice = mechanism.choose_among(self.stretches(rank, mechanism), look)
        return self.first(choice.run) + choice.member

    def first(self, run: int) -> int:
        """The first grid point of a run."""
        return int((self._points if run & 1 else self._free)[run >> 1])

    def stretches(self, rank: Rank, mechanism: "PermuteAndFlip") -> "list[Stretch]":
        """All runs, in rings around the best: those of each lie as far behind as its bits ask for."""
        from fpinq.noise.permute_and_flip import Stretch

        near = [self.near(rank, mechanism.reach(self._largest, bits)) for bits in RINGS]
        rings = [(*near[0], 0)]
        for bits, inner, outer in zip(RINGS, near, [*near[1:], (0, self._slots)], strict=True):
            rings += [(outer[0], inner[0], bits), (inner[1], outer[1], bits)]
        found = [(self._numbers(start, end), bits) for start, end, bits in rings if start < end]
        return [Stretch(self._larger), *(Stretch(*each, self._largest) for each in found)]

    def _numbers(self, start: int, end: int) -> range:
        """The runs of some slots."""
        return range(2 * start, min(2 * end, self.runs))

    def near(self, rank: Rank, reach: int) -> tuple[int, int]:
        """Slots, from one to before another, outside of which all runs score `reach` or more below the best.

        The score is −max((b − a)·#below, a·#above). One term falls and one rises from
        slot to slot, and the best is no worse than any point where they meet.
        """
        import numpy as np

        a, b = rank.fraction.numerator, rank.fraction.denominator
        points, all_of_them = self._slots - 1, self._records
        if not points:
            return 0, self._slots
        middle = int(np.searchsorted(self._below[:-1], a * all_of_them // b))
        meeting = range(max(middle - 2, 0), min(middle + 2, points)) or range(points - 1, points)
        most = reach + min(
            max((b - a) * int(self._below[i]), a * (all_of_them - int(self._below[i + 1]))) for i in meeting
        )
        # (b − a)·below < most, and a·(all − below of the next) < most.
        end = (
            points if a == b else np.searchsorted(self._below[:-2], _within(-(-most // (b - a)), all_of_them))
        )
        least = all_of_them + 1 - -(-most // a) if a else 0
        start = np.searchsorted(self._below[1:-1], _within(least, all_of_them))
        return int(start), self._slots if end == points else int(end)

    def scored(self, rank: Rank, numbers: "range | Column") -> Runs:
        """The runs of some numbers; of a range, which begins with a slot, faster."""
        import numpy as np

        a, b = rank.fraction.numerator, rank.fraction.denominator
        if not isinstance(numbers, range):
            slots, of_points = numbers >> 1, numbers & 1
            below, not_above = self._below[slots], self._below[slots + of_points]
            sizes = np.where(of_points, 1, self._sizes[slots])
            return Runs(sizes, -np.maximum((b - a) * below, a * (self._records - not_above)))
        of = slice(numbers.start >> 1, (numbers.stop + 1) >> 1)
        below = self._below[of.start : of.stop + 1]
        falling, rising = (a - b) * below[:-1], a * below - a * self._records
        scores = np.minimum(falling, rising[:-1]), np.minimum(falling, rising[1:])
        return Runs(_woven(self._sizes[of], 1)[: len(numbers)], _woven(*scores)[: len(numbers)])


def _woven(free: "Column", points: "Column | int") -> "Column":
    """What is so of the free points and of the point of each slot, in turn."""
    import numpy as np

    found: Column = np.empty(2 * len(free), dtype=np.int64)
    found[0::2], found[1::2] = free, points
    return found


def _within(number: int, most: int) -> int:
    """A number of records, or what is beyond all of them, as an array may be searched for it."""
    return min(max(number, 0), most + 1)
