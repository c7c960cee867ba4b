"""Statistics: vectors of exact integers that add up over records. All that an engine is asked for.

Record r adds φ(r) to the total; a null adds nothing. There are few kinds of
them, so that an engine is small: what a query makes of the integers, what it
costs and what is released is nobody's business there.
"""

from collections.abc import Mapping, Sequence
from math import comb, prod

from fpinq.model.clamps import Clamp, quantise
from fpinq.model.domains import KeyDomain, ranks
from fpinq.model.expressions import Expression, Row
from fpinq.model.frozen import dataclass
from fpinq.model.operators import evaluate

# The exact statistic of a bag: coordinate ↦ total. Coordinates that are not there are 0.
Integers = Mapping[int, int]


@dataclass(frozen=True)
class Records:
    """How many records: φ(r) = 1."""

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """What is evaluated on every record."""
        return ()

    @property
    def coordinates(self) -> range:
        """The coordinates, those that no record adds to included."""
        return range(1)

    def contribution(self, row: Row) -> Integers:
        """φ(r)."""
        return {0: 1}


@dataclass(frozen=True)
class Totals:
    """φ(r)ⱼ = xⱼ, the grid point of clamp j."""

    of: tuple[Clamp, ...]

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """What is evaluated on every record."""
        return self.of

    @property
    def coordinates(self) -> range:
        """The coordinates, those that no record adds to included."""
        return range(len(self.of))

    def contribution(self, row: Row) -> Integers:
        """φ(r)."""
        return {j: quantise(clamp, row) or 0 for j, clamp in enumerate(self.of)}


@dataclass(frozen=True)
class Bernstein:
    """The Bernstein basis of a degree, 1 or 2: φ(r)ⱼ = C(d, j)·tʲ·(W − t)ᵈ⁻ʲ with t = x − lower.

    With `missing`, a null adds as much as any value does, Wᵈ, to a coordinate of its own, the last.
    """

    of: Clamp
    degree: int
    missing: bool = False

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """What is evaluated on every record."""
        return (self.of,)

    @property
    def coordinates(self) -> range:
        """The coordinates, those that no record adds to included."""
        return range(self.degree + 1 + self.missing)

    def contribution(self, row: Row) -> Integers:
        """φ(r)."""
        x = quantise(self.of, row)
        if x is None:
            return {self.degree + 1: self.of.width**self.degree} if self.missing else {}
        t, w, d = x - self.of.lower, self.of.width, self.degree
        return {j: comb(d, j) * t**j * (w - t) ** (d - j) for j in range(d + 1)}


@dataclass(frozen=True)
class Points:
    """How many records are at each grid point: φ(r) is 1 at x and 0 elsewhere. Sparse: zeros are left out."""

    of: Clamp

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """What is evaluated on every record."""
        return (self.of,)

    @property
    def coordinates(self) -> range:
        """The coordinates, those that no record adds to included."""
        return range(self.of.lower, self.of.upper + 1)

    def contribution(self, row: Row) -> Integers:
        """φ(r)."""
        x = quantise(self.of, row)
        return {} if x is None else {x: 1}


@dataclass(frozen=True)
class Support:
    """How many records have each key of a domain: φ(r) is 1 at the number of r's key, if the domain has it.

    Sparse: of a domain of any size, there is what the records have.
    """

    of: tuple[Expression, ...]
    domain: KeyDomain

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """What is evaluated on every record, and clamped."""
        return ()

    @property
    def coordinates(self) -> range:
        """The coordinates, those that no record adds to included."""
        return range(self.domain.size)

    def contribution(self, row: Row) -> Integers:
        """φ(r)."""
        (number,) = ranks(self.domain, [[evaluate(expression, row)] for expression in self.of])
        return {} if number is None else {number: 1}


@dataclass(frozen=True)
class Monomials:
    """Products of several clamps: φ(r)ₖ = Π tᵢ^eₖᵢ, tᵢ = xᵢ − lowerᵢ; nothing where any of them is null."""

    of: tuple[Clamp, ...]
    exponents: tuple[tuple[int, ...], ...]

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        """What is evaluated on every record."""
        return self.of

    @property
    def coordinates(self) -> range:
        """The coordinates, those that no record adds to included."""
        return range(len(self.exponents))

    def contribution(self, row: Row) -> Integers:
        """φ(r)."""
        points = [quantise(clamp, row) for clamp in self.of]
        t = [x - clamp.lower for x, clamp in zip(points, self.of, strict=True) if x is not None]
        if len(t) < len(points):
            return {}
        return {k: prod(map(pow, t, powers)) for k, powers in enumerate(self.exponents)}

    def reach(self, powers: tuple[int, ...]) -> int:
        """The most that one record adds to the coordinate of these powers: Π Wᵢ^eᵢ."""
        return prod(clamp.width**e for clamp, e in zip(self.of, powers, strict=True))


Statistic = Records | Totals | Bernstein | Points | Support | Monomials


def alike(statistics: Sequence[Statistic], parts: int) -> Sequence[Statistic]:
    """The statistic of each part: a single one is the same for all of them."""
    return [statistics[0]] * parts if len(statistics) == 1 else statistics


def size(statistic: Statistic) -> int:
    """How many coordinates there are; more than `len` may count."""
    coordinates = statistic.coordinates
    return coordinates.stop - coordinates.start


def dense(statistic: Statistic, integers: Integers) -> list[int]:
    """Every coordinate's total, the zeros included."""
    return [integers.get(coordinate, 0) for coordinate in statistic.coordinates]
