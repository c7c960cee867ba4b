"""Maps that never change: one that holds one thing more is another map, and shares nearly all with it.

A state is a value, and a ledger's holds a million sessions: a copy for every
event is too slow. So a map is a large part that many share and a small one of
what came since, no larger than the square root; only the small one is copied.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# What no map holds: beside a key, what was there is gone; and what is not there.
_GONE: Any = object()
_ABSENT: Any = object()
_EMPTY: dict[Any, Any] = {}
# As little as this is always copied.
_FEW = 16


class Map(Mapping[K, V], Generic[K, V]):
    """A mapping, with `put` and `without` that make others."""

    __slots__ = ("_late", "_rest")

    def __init__(self, rest: Mapping[K, V] = _EMPTY, late: Mapping[K, V] = _EMPTY) -> None:
        self._rest, self._late = rest, late

    def put(self, key: K, value: V) -> "Map[K, V]":
        """The same, but for one thing."""
        late = {**self._late, key: value}
        if len(late) > _FEW and len(late) ** 2 > len(self._rest):
            return Map(_merged(self._rest, late))
        return Map(self._rest, late)

    def without(self, key: K) -> "Map[K, V]":
        """The same, but for one thing that is gone."""
        return self.put(key, _GONE)

    def get(self, key: object, default: Any = None) -> Any:
        """What is there, or the default."""
        found = self._late.get(key, _ABSENT)  # type: ignore[arg-type]
        if found is _ABSENT:
            return self._rest.get(key, default)  # type: ignore[arg-type]
        return default if found is _GONE else found

    def __getitem__(self, key: K) -> V:
        found: V = self.get(key, _GONE)
        if found is _GONE:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[K]:
        return iter(_merged(self._rest, self._late))

    def __len__(self) -> int:
        return len(_merged(self._rest, self._late))

    def __repr__(self) -> str:
        return f"Map({_merged(self._rest, self._late)!r})"


def _merged(rest: Mapping[K, V], late: Mapping[K, V]) -> dict[K, V]:
    merged = {**rest, **late}
    for key in [key for key, value in late.items() if value is _GONE]:
        del merged[key]
    return merged
