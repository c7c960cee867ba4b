"""Trees of counts: how many levels pay, and the estimates that agree with all of them.

A range of many bins is the sum of as many noisy counts. A tree also counts
groups of b, b², … bins: it needs noise of scale h/ε for its h levels, but a
range is then a few nodes. The noisy nodes contradict each other; of all counts
that do not, those nearest in squares have the least variance (Hay, Rastogi,
Miklau and Suciu, 2010). Which tree is best depends on the number of bins and on
ε alone, and both are public.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from fpinq.model.frozen import dataclass
from fpinq.noise import DiscreteLaplace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MAX_HEIGHT = 24
# A weight that is smaller than this is one of no draw at all.
NEGLIGIBLE = 1e-12
# Of more bins than this, spreads are found one by one.
MOST_AT_ONCE = 2**17
# What is added up of weights: how many there are, how large they are, their squares, their fourth powers.
EXPONENTS = (0, 1, 2, 4)


class Spread(NamedTuple):
    """What the error of a sum of draws depends on: how many weights there are, and sums of their powers."""

    number: float
    absolute: float
    squares: float
    fourths: float

    @staticmethod
    def of(weights: Iterable[float]) -> "Spread":
        """The spread of weights; those of no draw left out."""
        sizes = [abs(w) for w in weights if abs(w) > NEGLIGIBLE]
        return Spread(len(sizes), *(math.fsum(w**k for w in sizes) for k in EXPONENTS[1:]))


@dataclass(frozen=True)
class CountTree:
    """A tree over bins: groups of `branching` nodes, `height` levels, no root. Height 1 is the bins alone."""

    bins: int
    branching: int
    height: int

    @cached_property
    def levels(self) -> "list[NDArray[np.int64]]":
        """Where the children of every node begin, level by level: of the bins, of the groups above them, …"""
        import numpy as np

        sizes = [-(-self.bins // self.branching**level) for level in range(self.height)]
        return [np.arange(0, size, self.branching) for size in sizes]

    @cached_property
    def variances(self) -> "list[Floats]":
        """The variance of every node's estimate from its own subtree, in units of one draw's.

        A count of variance 1 and the sum of its children's estimates, of
        variance S, weigh 1 : 1/S, and have 1/(1 + 1/S) together.
        """
        import numpy as np

        found = [np.ones(self.bins)]
        for starts in self.levels[:-1]:
            total = np.add.reduceat(found[-1], starts)
            found.append(total / (1 + total))
        return found

    def estimates(self, nodes: Sequence[int]) -> "Floats":
        """The counts of the bins that agree with all nodes as nearly as possible."""
        import numpy as np

        noisy, taken = [], 0
        for variance in self.variances:
            noisy.append(np.array([float(n) for n in nodes[taken : taken + len(variance)]]))
            taken += len(variance)
        from_below = [noisy[0]]
        sums = []
        for level in range(1, self.height):
            starts, share = self.levels[level - 1], self.variances[level]
            sums.append(np.add.reduceat(from_below[-1], starts))
            from_below.append(share * sums[-1] / self._total(level - 1) + share * noisy[level])
        found = from_below[-1]
        for level in reversed(range(self.height - 1)):
            surplus = (found - sums[level]) / self._total(level)
            found = from_below[level] + self.variances[level] * self._to_children(surplus, level)
        return found

    def weights(self, first: int, last: int) -> "Floats":
        """How much each node's noise adds to the estimate of the bins first … last − 1 together.

        `estimates` is linear; this is its transpose, applied to the range.
        """
        import numpy as np

        wanted = np.zeros(self.bins)
        wanted[first:last] = 1
        from_below = []
        for level in range(self.height - 1):
            above = np.add.reduceat(self.variances[level] * wanted, self.levels[level]) / self._total(level)
            from_below.append(wanted - self._to_children(above, level))
            wanted = above
        carried = wanted
        weights: list[Floats] = []
        for level in reversed(range(self.height)):
            if level < self.height - 1:
                share = self.variances[level + 1] / self._total(level)
                carried = from_below[level] + self._to_children(share * carried, level)
            weights.append(self.variances[level] * carried)
        return np.concatenate(weights[::-1])

    def spread(self, first: int, last: int) -> "Spread":
        """The spread of the weights of a range; of one bin, and of the first, found for all bins at once."""
        if self.bins <= MOST_AT_ONCE and last == first + 1:
            return self._of_bins[first]
        if self.bins <= MOST_AT_ONCE and first == 0:
            return self._of_firsts[last - 1]
        return Spread.of(self.weights(first, last).tolist())

    @cached_property
    def _of_bins(self) -> "list[Spread]":
        return self._spreads(0.0)

    @cached_property
    def _of_firsts(self) -> "list[Spread]":
        return self._spreads(1.0)

    def _spreads(self, before: float) -> "list[Spread]":
        """For every bin, the spread of the weights of a range that ends there, with or without those before.

        A range that ends with bin i wants the same of all nodes on one side of i's
        ancestors. So below a sibling of an ancestor all weights are one number
        times those of the whole node, whose powers are added up once.
        """
        import numpy as np

        path = [np.arange(self.bins) // self.branching**level for level in range(self.height)]
        wanted = [np.ones(self.bins)]
        for level in range(self.height - 1):
            siblings, parent = np.append(0.0, np.cumsum(self.variances[level])), path[level + 1]
            left = siblings[path[level]] - siblings[parent * self.branching]
            own = self.variances[level][path[level]] * wanted[level]
            wanted.append((before * left + own) / self._total(level)[parent])
        powers = self._powers
        sums = np.zeros((4, self.bins))

        def add(
            level: int, start: "NDArray[np.int64]", end: "NDArray[np.int64]", carried: "Floats | float"
        ) -> None:
            nodes = powers[level][:, end] - powers[level][:, start]
            sums[0] += np.where(np.abs(carried) > NEGLIGIBLE, nodes[0], 0)
            for k in (1, 2, 3):
                sums[k] += np.abs(carried) ** EXPONENTS[k] * nodes[k]

        def add_own(level: int, carried: "Floats") -> None:
            weight = np.abs(self.variances[level][path[level]] * carried)
            sums[0] += weight > NEGLIGIBLE
            for k in (1, 2, 3):
                sums[k] += weight ** EXPONENTS[k]

        top = self.height - 1
        carried = wanted[top]
        add(top, np.zeros_like(path[top]), path[top], before)
        add_own(top, carried)
        for level in reversed(range(top)):
            parent = path[level + 1]
            share = self.variances[level + 1] / self._total(level)
            base = share[parent] * carried - wanted[level + 1]
            start, size = parent * self.branching, len(self.variances[level])
            add(level, start, path[level], base + before)
            add(level, path[level] + 1, np.minimum(start + self.branching, size), base)
            carried = base + wanted[level]
            add_own(level, carried)
        return list(map(Spread, *sums.tolist()))

    @cached_property
    def _powers(self) -> "list[Floats]":
        """By level, added up from the first node: how many nodes a subtree has, and powers of its weights."""
        import numpy as np

        each: list[Floats] = []
        for level, variance in enumerate(self.variances):
            own = np.array([variance**k for k in EXPONENTS])
            if level:
                share = variance / self._total(level - 1)
                below = np.add.reduceat(each[-1], self.levels[level - 1], axis=1)
                own += np.array([share**k for k in EXPONENTS]) * below
            each.append(own)
        return [np.pad(np.cumsum(own, axis=1), ((0, 0), (1, 0))) for own in each]

    def _total(self, level: int) -> "Floats":
        import numpy as np

        return np.add.reduceat(self.variances[level], self.levels[level])

    def _to_children(self, values: "Floats", level: int) -> "Floats":
        import numpy as np

        return np.repeat(values, self.branching)[: len(self.variances[level])]


@lru_cache(maxsize=1024)
def best_tree(bins: int, epsilon: Fraction, *, points: bool = False) -> CountTree:
    """The tree whose ranges (or with points, whose cumulative counts) have the least mean squared error."""

    def error(tree: CountTree) -> float:
        return mean_variance(tree, points=points) * DiscreteLaplace(tree.height / epsilon).variance

    return min(
        trees_over(bins), key=error
    )  # the first of equals: none at all where noise is too small for floats


def trees_over(bins: int) -> list[CountTree]:
    """A tree of each height over so many bins, that of the bins alone first."""
    trees = [CountTree(bins, max(bins, 2), 1)]
    for height in range(2, min(MAX_HEIGHT, bins.bit_length()) + 1):
        branching = max(2, math.ceil(round(bins ** (1 / height), 9)))
        trees.append(CountTree(bins, branching, height))
    return trees


def mean_variance(tree: CountTree, *, points: bool = False) -> float:
    """The variance of a range's estimate, averaged over all ranges (or over those from the first bin).

    In units of one draw's variance, as if the last groups were full. With P_i
    the estimate of the first i of n bins, the sum over all ranges is
    (n + 1)·Σ Var P_i − Var Σ P_i. A node's estimates are a share of its total and
    a rest that is uncorrelated with it, so both follow level by level.
    """
    b: int = tree.branching if tree.height > 1 else tree.bins
    n: int = b**tree.height
    variance, size = 1.0, 1
    rest = 0.0  # of a cumulative count within a node, on average over where it ends
    slope_rest = 0.0  # of Σ P_i within a node
    for level in range(tree.height):
        # Ending in child d, uniform over b, a share a of the way through it, uniform over its bins.
        a, a2 = (size - 1) / (2 * size), (size - 1) * (2 * size - 1) / (6 * size * size)
        d, d2 = (b - 1) / 2, (b - 1) * (2 * b - 1) / 6
        if level == tree.height - 1:
            break
        rest += variance * (d + a2 - (d2 + 2 * d * a + a2) / b)
        slope_rest = b * slope_rest + variance * size * size * b * (b * b - 1) / 12
        variance = b * variance / (1 + b * variance)
        size *= b
    each = rest + variance * (d + a2)
    cumulative = n * each + b * variance
    if points:
        return cumulative / (n + 1)
    # The children of the top weigh (n + 1)/2 on average and `size` more from one to the next.
    middle, spread = (n + 1) / 2, size * size * (b * b - 1) / 12
    together = b * slope_rest + variance * b * (middle * middle + spread)
    return 2 * ((n + 1) * cumulative - together) / (n * (n + 1))
