"""What was measured of all parts alike, as arrays.

Where every part is asked for the same statistic, what comes back is one column of
integers for each coordinate, and no object for each part. Arrays hold 64-bit
integers or Python's: none is ever wrapped, and none is ever a float. Which of the
two is public, as it takes longer with Python's: it goes by what one record can add,
and not by what was found.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from fpinq.model.keys import Keys, Listed, Product
from fpinq.model.statistics import Integers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column: TypeAlias = NDArray[Any]
    """64-bit integers, or Python's (dtype object)."""

# Two integers below this may be added, and are still 64-bit integers.
ROOM = 2**62
# More than a part has. Integers of one with more are exact all the same, and only slower.
MOST_ROWS = 2**36


def are_narrow(reach: int) -> bool:
    """Whether totals, to which a record adds at most so much, are kept as 64-bit integers."""
    return reach * MOST_ROWS < ROOM


class Columns(Sequence[Integers]):
    """The integers of each part: part i has columns[j][i] at coordinate j, where that is not 0."""

    __slots__ = ("columns",)

    def __init__(self, columns: "Sequence[Column]") -> None:
        self.columns = tuple(columns)

    def __len__(self) -> int:
        return len(self.columns[0])

    @overload
    def __getitem__(self, part: int) -> Integers: ...
    @overload
    def __getitem__(self, part: slice) -> "Columns": ...
    def __getitem__(self, part: int | slice) -> "Integers | Columns":
        if isinstance(part, slice):
            return Columns([column[part] for column in self.columns])
        return _without_zeros(int(column[part]) for column in self.columns)

    def of(self, parts: Sequence[int]) -> "Columns":
        """The integers of some of the parts."""
        return Columns([column[parts] for column in self.columns])

    def __iter__(self) -> Iterator[Integers]:
        return map(_without_zeros, zip(*(column.tolist() for column in self.columns), strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Columns({list(self)!r})"


class Counts(Mapping[int, int]):
    """How many records are at each grid point that occurs: two arrays, the points in rising order."""

    def __init__(self, points: "Column", numbers: "Column") -> None:
        order = points.argsort()
        self.points, self.numbers = points[order], numbers[order]

    def with_more(self, point: int, number: int) -> "Counts":
        """The same, if there were more records at a point."""
        import numpy as np

        if not number:
            return self
        there = self.points == point
        if there.any():
            return Counts(self.points, self.numbers + there * number)
        return Counts(np.append(self.points, point), np.append(self.numbers, number))

    @cached_property
    def _mapping(self) -> dict[int, int]:
        return dict(zip(self.points.tolist(), self.numbers.tolist(), strict=True))

    def __getitem__(self, point: int) -> int:
        return self._mapping[point]

    def get(self, point: int, default: Any = None) -> Any:
        """As a dict does it, which is faster than by an error."""
        return self._mapping.get(point, default)

    def __iter__(self) -> Iterator[int]:
        return iter(self._mapping)

    def __len__(self) -> int:
        return len(self.points)


def _without_zeros(integers: Iterable[int]) -> Integers:
    return {coordinate: total for coordinate, total in enumerate(integers) if total}


def column(integers: Sequence[int], *, narrow: bool) -> "Column":
    """Python's integers as an array."""
    import numpy as np

    if narrow and (not integers or (min(integers) > -ROOM and max(integers) < ROOM)):
        return np.array(integers, dtype=np.int64)
    found: Column = np.empty(len(integers), dtype=object)
    found[:] = integers
    return found


def joined(columns: "Sequence[Column]") -> "Column":
    """Columns one after the other."""
    import numpy as np

    return np.concatenate(columns)


def largest(*columns: "Column") -> int:
    """The largest magnitude in columns."""
    found = [0, *(abs(int(end)) for c in columns if len(c) for end in (c.min(), c.max()))]
    return max(found)


def wide(*columns: "Column") -> "list[Column]":
    """The columns, of Python's integers."""
    return [c.astype(object) for c in columns]


def add(left: "Column", right: "Column") -> "Column":
    """The sum of two columns."""
    if max(largest(left), largest(right)) >= ROOM:
        left, right = wide(left, right)
    return left + right


def placed(values: "Column", where: "Column", parts: int) -> "Column":
    """A column with values where they belong, and 0 elsewhere."""
    import numpy as np

    found: Column = np.zeros(parts, dtype=values.dtype)
    found[where] = values
    return found


def positions(keys: Keys, *found: "Sequence[Any] | Column") -> "Column":
    """Where each of the values that were found, or of rows of them, is among the keys; −1 if nowhere."""
    import numpy as np

    if type(keys) is Product:
        places = [positions(domain, column) for domain, column in zip(keys.of, found, strict=True)]
        sizes = [len(domain) for domain in keys.of]
        known = np.logical_and.reduce([place >= 0 for place in places])
        return np.where(known, np.ravel_multi_index(places, sizes, mode="clip"), -1)
    if type(keys) is range:
        values: Column = np.asarray(found[0], dtype=np.int64)
        return np.where((values >= keys.start) & (values < keys.stop), values - keys.start, -1)
    columns = [each.tolist() if isinstance(each, np.ndarray) else each for each in found]
    if len(columns) > 1:
        where: Iterable[int] = Listed(keys).numbers(columns)  # type: ignore[arg-type]
    else:
        index: Mapping[Any, int] = dict(zip(keys, range(len(keys)), strict=True))
        where = map(index.get, columns[0], repeat(-1))
    return np.fromiter(where, dtype=np.int64, count=len(columns[0]))
