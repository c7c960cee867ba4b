"""Actions: all that a client program can do. Closed data, the same embedded and over the wire."""

from dataclasses import field
from fractions import Fraction
from typing import Literal as Tag

from fpinq.model.environments import Names, TableVariable
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Rho
from fpinq.model.plans import Transformation
from fpinq.model.queries import PrimitiveQuery
from fpinq.model.transformations import Partitioning, parts_of


@dataclass(frozen=True)
class Silent:
    """The program computes."""

    op: Tag["silent"] = field(default="silent", repr=False)


@dataclass(frozen=True)
class Assign:
    """target := F(arguments)."""

    target: TableVariable
    transformation: Transformation
    arguments: tuple[TableVariable, ...] = ()
    op: Tag["assign"] = field(default="assign", repr=False)


@dataclass(frozen=True)
class Partition:
    """Bind targets to the parts of table, one per key."""

    targets: Names
    table: TableVariable
    by: Partitioning
    op: Tag["partition"] = field(default="partition", repr=False)


@dataclass(frozen=True)
class Query:
    """Ask one primitive query of each part, at ε or ρ; without a partitioning, of the whole table.

    A single query is asked of every part.
    """

    table: TableVariable
    epsilon: Fraction | Rho
    queries: tuple[PrimitiveQuery, ...]
    by: Partitioning | None = None
    op: Tag["query"] = field(default="query", repr=False)

    @property
    def parts(self) -> int:
        """How many parts are asked, and answer."""
        return parts_of(self.by)


@dataclass(frozen=True)
class AskScale:
    """table ? s"""

    table: TableVariable
    op: Tag["ask_scale"] = field(default="ask_scale", repr=False)


@dataclass(frozen=True)
class AskBudget:
    """budget ? B"""

    op: Tag["ask_budget"] = field(default="ask_budget", repr=False)


@dataclass(frozen=True)
class AskPrice:
    """What would a query of table at ε or ρ cost now, and so much δ for each unit of distance?"""

    table: TableVariable
    epsilon: Fraction | Rho
    delta: Fraction | None = None
    op: Tag["ask_price"] = field(default="ask_price", repr=False)


# What asks for public facts: it changes nothing, and is not written down.
Asking = AskScale | AskBudget | AskPrice
Action = Silent | Assign | Partition | Query | Asking
