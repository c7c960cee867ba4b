"""The kinds of queries, and what everybody must know of one.

A query is one place where everybody looks: engines are asked for its
statistic, drawing goes by its sensitivity, its mechanism and whether its scores
are monotone, limits by how many integers it releases and how often it goes over
the statistic. None of these has a default, so a new query cannot be forgotten
anywhere. They are those of a query that passed its check.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal as Tag
from typing import NamedTuple

from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Schema
from fpinq.model.statistics import Integers, Statistic, dense


class Primitive(ABC):
    """What everybody must know of a query, and nobody may assume."""

    @property
    @abstractmethod
    def statistic(self) -> Statistic:
        """What is measured of the data."""

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """Δ: the most that one record can change, in L1 or, of scores, in L∞."""

    @property
    @abstractmethod
    def mechanism(self) -> Tag["laplace", "choice", "quotient", "keys"]:
        """How what is released is drawn."""

    @property
    @abstractmethod
    def monotone(self) -> bool:
        """Whether one more record moves all integers, or scores, in one direction."""

    @property
    @abstractmethod
    def integers(self) -> int:
        """How many integers are released; of keys, at the most."""

    @property
    @abstractmethod
    def passes(self) -> int:
        """How often drawing goes over the statistic."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """BadQuery unless it makes sense for records of this schema."""


class Noisy(Primitive):
    """A query that gets noise on every one of its integers.

    At ε it is discrete Laplace noise of scale Δ/ε. At ρ it is discrete Gaussian
    noise of σ² = Δ₂²/(2ρ): Δ₂ is the most that one record can change in L2.
    """

    mechanism = "laplace"

    @property
    @abstractmethod
    def squared(self) -> int:
        """Δ₂²: the most that one record can change, in L2 and squared."""

    @abstractmethod
    def exact(self, measured: Integers) -> list[int]:
        """The integers that get noise, from the statistic."""


def all_of_it(query: Noisy, measured: Integers) -> list[int]:
    """The statistic itself gets noise, zeros included: many parts can be drawn for as they are measured."""
    return dense(query.statistic, measured)


class Choices(NamedTuple):
    """What one is chosen of: runs (first, last, score) of equal scores, and their sensitivity."""

    runs: list[tuple[int, int, int]]
    sensitivity: int


class Chosen(Primitive):
    """A query that chooses by scores, once in every pass, each at an equal share of ε."""

    mechanism = "choice"

    @property
    @abstractmethod
    def alone(self) -> bool:
        """Whether what is chosen is released by itself, not as a tuple."""

    @abstractmethod
    def choices(self, measured: Integers) -> Iterator[Choices]:
        """What is chosen of, pass by pass, from the statistic."""


def of_one_sign(clamps: tuple[Clamp, ...]) -> bool:
    """Whether no record can add a negative integer, or none a positive one."""
    return all(clamp.lower >= 0 for clamp in clamps) or all(clamp.upper <= 0 for clamp in clamps)
