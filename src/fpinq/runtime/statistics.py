"""Statistics, measured once: a bounded cache of exact integers, on the protected side only.

A program that asks its parts one by one,

    for part in parts.values():
        part.where(…).noisy_count(0.1)

sends as many actions as there are parts, each measuring the same thing of a
sibling. The first measures all siblings in one scan, or many of them; the others
find theirs here. Noise is drawn for every query and never kept.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from threading import RLock
from typing import NamedTuple
from weakref import ref

from fpinq.engines.interface import Asked
from fpinq.model.expressions import Schema
from fpinq.model.plans import Plan
from fpinq.model.statistics import Integers, Points, Statistic, size
from fpinq.model.transformations import Partitioning, parts_of
from fpinq.runtime.siblings import Siblings, levels_of, siblings_of

# What an engine gives: each statistic of a plan, or of the part with the same number.
Scan = Callable[[Plan, Partitioning | None, Sequence[Statistic]], Sequence[Integers]]

MAX_BYTES = 256 * 2**20
# So many are measured together: more would take longer than is saved if one of them is all that is asked.
MAX_SIBLINGS = 2**17
# Of grid points there are as many integers as the data has values.
MAX_COUNTED_SIBLINGS = 1_000

# What is kept takes so many bytes, about: an entry, its key and what they hold; of each table, and of each of
# its integers, as Python's objects or in a column of all tables alike.
ENTRY_BYTES, TABLE_BYTES, OBJECT_BYTES, COLUMN_BYTES = 1_024, 256, 64, 8


class Statistics:
    """A way to measure, and what was measured lately."""

    def __init__(self, scan: Scan, max_bytes: int = MAX_BYTES) -> None:
        self._scan = scan
        self._max_bytes = max_bytes
        # A key names a plan by its id, as long as that is there: another may get the id.
        self._measured: OrderedDict[Hashable, tuple[ref[Plan], int, Sequence[Integers]]] = OrderedDict()
        self._gone: deque[Hashable] = deque()
        self._bytes = 0
        self._lock = RLock()  # a finalizer may ask anywhere

    def measure(
        self, plan: Plan, schema: Schema, by: Partitioning | None, statistics: Sequence[Statistic]
    ) -> Sequence[Integers]:
        """Each statistic, exactly: of the table, or of the part of its number; a single one of all."""
        place = self._place(plan, by, statistics)
        found = self._known(place)
        if found is None:
            found = self._measured_now(place, _asked(place, schema, by, statistics))
        return found if place.siblings is None else [found[place.number]]

    def unmeasured(
        self, plan: Plan, schema: Schema, by: Partitioning | None, statistics: Sequence[Statistic]
    ) -> Asked | None:
        """What an engine is going to be asked for it; None if that is here."""
        place = self._place(plan, by, statistics)
        with self._lock:
            known = self._measured.get(place.key)
        if known is not None and known[0]() is place.plan:
            return None
        return _asked(place, schema, by, statistics)

    def _place(self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]) -> "_Place":
        """Where it is kept: by itself, or with what is measured together with it."""
        levels = levels_of(plan) if by is None else ()
        if levels and (found := siblings_of(plan, levels, self._most(statistics[0]))) is not None:
            siblings, number = found
            # The parent by its id: plans that are alike are not the same table.
            of, first, several = siblings.parent, siblings.first, siblings.number
            return _Place((siblings.levels, id(of), first, several, statistics[0]), of, siblings, number)
        key = (id(plan), by, tuple(statistics))
        return _Place(key if by is None else _Key(key), plan)

    def _most(self, statistic: Statistic) -> int:
        """How many siblings are measured together: no more than can be kept."""
        most = MAX_COUNTED_SIBLINGS if isinstance(statistic, Points) else MAX_SIBLINGS
        return min(most, self._max_bytes // (2 * _of_each(statistic)))

    def _known(self, place: "_Place") -> Sequence[Integers] | None:
        """What was measured before; None if it was not, or is here no more."""
        with self._lock:
            if self._gone:
                self._forget_the_gone()
            known = self._measured.get(place.key)
            if known is None or known[0]() is not place.plan:
                return None
            self._measured.move_to_end(place.key)
            return known[2]

    def _measured_now(self, place: "_Place", asked: Asked) -> Sequence[Integers]:
        measured = self._scan(*asked)  # without the lock: others may measure at the same time
        key, weight, gone = place.key, _weight(asked.statistics, parts_of(asked.by)), self._gone
        if weight > self._max_bytes:  # it could be more than all that is kept: of keys nobody listed, say
            return measured
        with self._lock:
            self._forget(key)
            self._measured[key] = (ref(place.plan, lambda _: gone.append(key)), weight, measured)
            self._bytes += weight
            while self._measured and self._bytes > self._max_bytes:
                self._forget(next(iter(self._measured)))
        return measured

    def _forget_the_gone(self) -> None:
        """What was measured of a table goes with the table: nobody can ask for it any more."""
        while self._gone:
            key = self._gone.popleft()
            if key in self._measured and self._measured[key][0]() is None:
                self._forget(key)

    def _forget(self, key: Hashable) -> None:
        if key in self._measured:
            self._bytes -= self._measured.pop(key)[1]


class _Key:
    """What statistics of parts are kept by: hashed once, which takes longer than to look it up."""

    __slots__ = ("_hash", "_of")

    def __init__(self, of: Hashable) -> None:
        self._of, self._hash = of, hash(of)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return type(other) is _Key and self._of == other._of


class _Place(NamedTuple):
    """Where statistics are kept: their key, and the table they go with; of siblings, which of them it is."""

    key: Hashable
    plan: Plan
    siblings: Siblings | None = None
    number: int = 0


def _asked(place: _Place, schema: Schema, by: Partitioning | None, statistics: Sequence[Statistic]) -> Asked:
    """What an engine is asked: of siblings, the one statistic of all of them."""
    if place.siblings is None:
        return Asked(place.plan, by, statistics)
    return Asked(*place.siblings.together(schema), statistics[:1])


def _weight(statistics: Sequence[Statistic], parts: int) -> int:
    """How many bytes statistics can take: what is kept depends on what was asked, never on an answer."""
    if len(statistics) < parts:
        return ENTRY_BYTES + _of_each(statistics[0]) * parts
    return ENTRY_BYTES + sum(TABLE_BYTES + OBJECT_BYTES * size(statistic) for statistic in statistics)


def _of_each(statistic: Statistic) -> int:
    """How many bytes a statistic takes for each of many tables."""
    if isinstance(statistic, Points):
        return TABLE_BYTES + OBJECT_BYTES * size(statistic)
    return COLUMN_BYTES * size(statistic)
