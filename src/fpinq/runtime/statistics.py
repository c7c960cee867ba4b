"""Statistics, measured once: a bounded cache of exact integers, on the protected side only.

A program that asks its parts one by one,

    for part in parts.values():
        part.where(…).noisy_count(0.1)

sends as many actions as there are parts, each measuring the same thing of a
sibling. The first measures all siblings in one scan; the others find theirs
here. Noise is drawn for every query and never kept.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from fpinq.model.expressions import Column
from fpinq.model.plans import Plan, Term
from fpinq.model.statistics import Integers, Points, Statistic, size
from fpinq.model.transformations import Partitioning, PartOf, Select, Where

# What an engine gives: each statistic of a plan, or of the part with the same number.
Scan = Callable[[Plan, Partitioning | None, Sequence[Statistic]], list[Integers]]

MAX_INTEGERS = 2_000_000
MAX_SIBLINGS = 10_000
# Of grid points there are as many integers as the data has values.
MAX_COUNTED_SIBLINGS = 1_000


@dataclass(frozen=True)
class Siblings:
    """The tables that steps make of each part of a partition."""

    steps: tuple[Where | Select, ...]
    by: Partitioning
    parent: Plan

    def together(self) -> tuple[Plan, Partitioning]:
        """One plan, and the partitioning whose parts are the siblings.

        The parts of the steps' result are the steps' results of the parts, as
        long as a select keeps the key that the records were partitioned by.
        """
        plan, by = self.parent, self.by
        for step in self.steps:
            if isinstance(step, Select):
                # Carries a record's key past the select, under a name that the program did not choose.
                key = "key" + "'" * max((len(name) for name, _ in step.record), default=0)
                step = replace(step, record=(*step.record, (key, by.key)))
                by = replace(by, key=Column(key))
            plan = Term(step, (plan,))
        return plan, by


class Statistics:
    """A way to measure, and what was measured lately."""

    def __init__(self, scan: Scan, max_integers: int = MAX_INTEGERS) -> None:
        self._scan = scan
        self._max_integers = max_integers
        # A key names a plan by its id: the entry keeps the plan, so that no other gets that id.
        self._measured: OrderedDict[Hashable, tuple[Plan, int, list[Integers]]] = OrderedDict()
        self._integers = 0
        self._lock = Lock()

    def measure(self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]) -> list[Integers]:
        """Each statistic, exactly: of the table, or of the part with the same number."""
        if by is None and (part := _part_of(plan, statistics[0])) is not None:
            return [self._of_siblings(*part, statistics[0])]
        key = (id(plan), by, tuple(statistics))
        return self._once(key, plan, _weight(statistics), lambda: self._scan(plan, by, statistics))

    def _of_siblings(self, siblings: Siblings, index: int, statistic: Statistic) -> Integers:
        def scan() -> list[Integers]:
            together, by = siblings.together()
            return self._scan(together, by, [statistic] * len(by.keys))

        key = (siblings.steps, siblings.by, id(siblings.parent), statistic)
        weight = _weight([statistic]) * len(siblings.by.keys)
        return self._once(key, siblings.parent, weight, scan)[index]

    def _once(
        self, key: Hashable, plan: Plan, weight: int, scan: Callable[[], list[Integers]]
    ) -> list[Integers]:
        with self._lock:
            if key in self._measured:
                self._measured.move_to_end(key)
                return self._measured[key][2]
        measured = scan()  # without the lock: others may measure at the same time
        with self._lock:
            if key not in self._measured:
                self._measured[key] = (plan, weight, measured)
                self._integers += weight
            while self._integers > self._max_integers:
                _, (_, forgotten, _) = self._measured.popitem(last=False)
                self._integers -= forgotten
        return measured


def _weight(statistics: Sequence[Statistic]) -> int:
    """How many integers statistics can have: what is kept depends on what was asked, never on an answer."""
    return sum(1 + size(statistic) for statistic in statistics)


def _part_of(plan: Plan, statistic: Statistic) -> tuple[Siblings, int] | None:
    """The siblings of a part, and its number; None if the plan is not a part's, or one of too many."""
    steps: list[Where | Select] = []
    while isinstance(plan, Term):
        match plan.transformation:
            case Where() | Select() as step:
                steps.append(step)
            case PartOf(by=by, index=index):
                many = isinstance(statistic, Points)
                if len(by.keys) > (MAX_COUNTED_SIBLINGS if many else MAX_SIBLINGS):
                    return None
                return Siblings(tuple(reversed(steps)), by, plan.arguments[0]), index
            case _:
                return None
        plan = plan.arguments[0]
    return None
