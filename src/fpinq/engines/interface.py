"""What the protected system asks of an engine."""

from collections.abc import Sequence
from typing import Protocol

from fpinq.model.plans import Plan
from fpinq.model.statistics import Integers, Statistic
from fpinq.model.transformations import Partitioning


class Engine(Protocol):
    """Turns a plan, and a partition of it, into exact integer statistics."""

    def measure(self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]) -> list[Integers]:
        """Each statistic, exactly: of the table, or of the part with the same number.

        Coordinates whose total is 0 are left out. Raises EngineError, without
        the engine's own words, if the engine fails.
        """
        ...
