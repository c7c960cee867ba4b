"""Which subplans are kept on the workers, and which plans need no second thoughts.

Spark writes a common table expression out wherever it is used. Beyond some many terms
after such writing out, shared subplans are computed once and kept.
"""

import secrets
from collections.abc import Sequence

from fpinq.engines.sql.expressions import Parameters
from fpinq.engines.sql.relations import Stored
from fpinq.model.plans import Flatten, Plan, Term
from fpinq.model.transformations import (
    Concat,
    ConcatAll,
    Explode,
    Identity,
    LiteralTable,
    PartOf,
    Select,
    SelectMany,
    Where,
)

# How many terms are written out at most.
MAX_INLINED = 200


class Keeping:
    """Of one measurement: the SELECTs whose rows are to be kept, by name. Nothing is asked about the data."""

    def __init__(self, plan: Plan, token: str, *, steady: bool) -> None:
        self.steady = steady
        self.kept: list[tuple[str, str]] = []
        self._prefix = f"{token}_{secrets.token_hex(4)}"
        self._keeps = _size(plan) > MAX_INLINED

    def keep(self, select: str) -> str | None:
        """The name under which the rows of a SELECT are kept, if the plan is a large one."""
        if not self._keeps:
            return None
        name = f"{self._prefix}_{len(self.kept)}"
        self.kept.append((name, select))
        return name

    def gather(self, selects: Sequence[str], parameters: Parameters) -> str | None:
        """None: a statement has room for all of them."""
        return None

    def cut(self, source: Stored, unit: int, at_most: int) -> str | None:
        """None: rows of Spark have no numbers."""
        return None

    def first_per_key(
        self, source: str, keys: Sequence[str], by: Sequence[str], at_most: int, parameters: Parameters
    ) -> str | None:
        """None: there is one way."""
        return None


def is_row_by_row(plan: Plan) -> bool:
    """Whether no row of a plan depends on another one: then the statistic's shuffle is the only one."""
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, Term):
            continue
        seen.add(id(node))
        if not isinstance(node.transformation, _ROW_BY_ROW):
            return False
        waiting += node.arguments
    return True


_ROW_BY_ROW = (LiteralTable, Identity, Where, Select, SelectMany, Explode, PartOf, Concat, ConcatAll)


def _size(plan: Plan, sizes: dict[int, int] | None = None) -> int:
    """How many terms a plan has when shared ones are written out each time."""
    sizes = {} if sizes is None else sizes
    if id(plan) not in sizes:
        below = 0
        if isinstance(plan, Term):
            below = sum(_size(argument, sizes) for argument in plan.arguments)
            if isinstance(plan.transformation, Flatten):
                below += _size(plan.transformation.body, sizes)
        sizes[id(plan)] = 1 + below
    return sizes[id(plan)]
