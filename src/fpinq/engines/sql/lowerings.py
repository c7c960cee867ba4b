"""Plans that were lowered lately: another statistic of the same table does not lower it again.

What is kept, and for how long, follows from the plans that were asked for: they are weighed by what was
written of them, and go with their tables. No record decides it, and no answer.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from threading import RLock
from typing import NamedTuple
from weakref import ref

from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.relations import Lowered
from fpinq.model.plans import Plan

# So many operators, constants and steps are kept as text: about a hundred bytes each.
MAX_WRITTEN = 200_000
# What a plan takes beside, and each of its columns.
OF_A_PLAN, OF_A_COLUMN = 20, 3


class Kept(NamedTuple):
    """A lowered plan, as long as that is there, and what it weighs."""

    plan: "ref[Plan]"
    lowering: Lowering
    table: Lowered
    weight: int


class Lowerings:
    """Lowered plans, and room for so much of them. Safe to use from several threads."""

    def __init__(self, max_written: int = MAX_WRITTEN) -> None:
        self._max_written = max_written
        # A key is a plan's id, as long as that is there: another may get the id.
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self._gone: deque[int] = deque()
        self._written = 0
        self._lock = RLock()  # a finalizer may ask anywhere

    def __len__(self) -> int:
        """How many are kept."""
        with self._lock:
            self._forget_the_gone()
            return len(self._kept)

    def of(self, plan: Plan, begin: Callable[[], Lowering]) -> tuple[Lowering, Lowered]:
        """The relation of a plan, and a lowering for one statement to go on with."""
        with self._lock:
            self._forget_the_gone()
            known = self._kept.get(id(plan))
            if known is not None and known.plan() is plan:
                self._kept.move_to_end(id(plan))
                return known.lowering.again(known.table)
        lowering = begin()
        table = lowering.plan(plan)
        if lowering.lasts:
            self._keep(plan, *lowering.again(table))
        return lowering, table

    def forget(self) -> None:
        """Keep nothing: the tables are not what they were."""
        with self._lock:
            self._kept.clear()
            self._written = 0

    def _keep(self, plan: Plan, lowering: Lowering, table: Lowered) -> None:
        weight = OF_A_PLAN + OF_A_COLUMN * len(table.columns) + lowering.parameters.written
        key, gone = id(plan), self._gone
        with self._lock:
            self._drop(key)
            self._kept[key] = Kept(ref(plan, lambda _: gone.append(key)), lowering, table, weight)
            self._written += weight
            while self._written > self._max_written:
                self._drop(next(iter(self._kept)))

    def _forget_the_gone(self) -> None:
        """Nobody can ask for a plan that is not there any more."""
        while self._gone:
            key = self._gone.popleft()
            if key in self._kept and self._kept[key].plan() is None:
                self._drop(key)

    def _drop(self, key: int) -> None:
        if key in self._kept:
            self._written -= self._kept.pop(key).weight
