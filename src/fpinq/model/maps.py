"""Maps that never change: one that holds something more is another map, and shares nearly all with it.

A state is a value, and may hold a million sessions, tables or charged parts: to
copy all of them for every event is too slow. So a small map is a dict, which is
copied, and a larger one is a `Map`: 32 smaller ones, by five bits of the keys'
hashes, of which only those are made anew that hold what changes. And what can be
told from its number alone is in a sequence that holds none of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")

# A dict, or a list of as many nodes as there are ways; neither is ever changed.
Node = Any

_BITS = 5
_WAYS = 2**_BITS
# As many are a dict; and so are all whose hashes are the same up to here.
FEW = 32
_DEEPEST = 60

_ABSENT: Any = object()
_NONE: dict[Any, Any] = {}


def put(mapping: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    """The same, but for one thing."""
    if type(mapping) is dict and len(mapping) < FEW:
        return {**mapping, key: value}
    return as_map(mapping).put(key, value)


def updated(mapping: Mapping[K, V], more: Mapping[K, V]) -> Mapping[K, V]:
    """The same, but for these."""
    if type(mapping) is dict and len(mapping) + len(more) <= FEW:
        return {**mapping, **more}
    return as_map(mapping).updated(more)


def without(mapping: Mapping[K, V], key: K) -> Mapping[K, V]:
    """The same, but for one thing that is gone."""
    if type(mapping) is dict and len(mapping) <= FEW:
        return {each: mapping[each] for each in mapping if each != key}
    return as_map(mapping).without(key)


class Map(Mapping[K, V]):
    """A large mapping, in no order. A dict that it is made of is its own from then on."""

    __slots__ = ("_size", "node")

    def __init__(self, node: Node = _NONE, size: int | None = None) -> None:
        self.node = node
        self._size: int = len(node) if size is None else size

    def put(self, key: K, value: V) -> "Map[K, V]":
        """The same, but for one thing."""
        node, is_new = _put(self.node, key, value)
        return Map(node, self._size + is_new)

    def updated(self, more: Mapping[K, V]) -> "Map[K, V]":
        """The same, but for these."""
        node, size = self.node, self._size
        if len(more) > FEW:
            return Map(_merged(node, more, 0), size + sum([key not in self for key in more]))
        for key, value in more.items():
            node, is_new = _put(node, key, value)
            size += is_new
        return Map(node, size)

    def without(self, key: K) -> "Map[K, V]":
        """The same, but for one thing that is gone."""
        return Map(_without(self.node, key, hash(key)), self._size - 1) if key in self else self

    def get(self, key: object, default: Any = None) -> Any:
        """What is there, or the default."""
        node, code = self.node, hash(key)
        while type(node) is list:
            node, code = node[code % _WAYS], code >> _BITS
        return node.get(key, default)

    def __getitem__(self, key: K) -> V:
        found: V = self.get(key, _ABSENT)
        if found is _ABSENT:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return self.get(key, _ABSENT) is not _ABSENT

    def __iter__(self) -> Iterator[K]:
        return _keys(self.node)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Map({dict(self)!r})"


def as_map(mapping: Mapping[K, V]) -> Map[K, V]:
    """A mapping as a `Map`."""
    return mapping if type(mapping) is Map else Map(_merged({}, mapping, 0), len(mapping))


class Folded(Mapping[K, V]):
    """What others are together, found when it is looked at, and once: until then it is these others."""

    __slots__ = ("_fold", "_found", "_holds", "_of")

    def __init__(
        self, of: Sequence[Mapping[K, V]], fold: Callable[[Sequence[Mapping[K, V]]], Mapping[K, V]]
    ) -> None:
        self._of, self._fold = of, fold
        self._holds = any(of)
        self._found: Mapping[K, V] | None = None

    def found(self) -> Mapping[K, V]:
        """The whole mapping. Those that are folded are made of such, perhaps deeply: the inner ones first."""
        waiting = [self]
        while self._found is None:
            last = waiting.pop()
            inner = [each for each in last._of if isinstance(each, Folded) and each._found is None]
            if inner:
                waiting += [last, *inner]
            elif last._found is None:
                last._found = last._fold(last._of)
        return self._found

    def __getitem__(self, key: K) -> V:
        return self.found()[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self.found())

    def __len__(self) -> int:
        return len(self.found())

    def __bool__(self) -> bool:
        return self._holds

    def get(self, key: Any, default: Any = None) -> Any:
        """What is there, or the default."""
        return self.found().get(key, default)

    def items(self) -> Any:
        """All that is there."""
        return self.found().items()

    def __repr__(self) -> str:
        return repr(self.found())


class Each(Sequence[V]):
    """So many things, each made of its number when it is looked at."""

    __slots__ = ("_make", "_number")

    def __init__(self, number: int, make: Callable[[int], V]) -> None:
        self._number, self._make = number, make

    @overload
    def __getitem__(self, index: int) -> V: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[V]: ...
    def __getitem__(self, index: int | slice) -> V | Sequence[V]:
        if type(index) is int and 0 <= index < self._number:
            return self._make(index)
        numbers = range(self._number)[index]
        return self._make(numbers) if isinstance(numbers, int) else [self._make(number) for number in numbers]

    def __len__(self) -> int:
        return self._number


def _put(node: Node, key: Any, value: Any) -> tuple[Node, bool]:
    """A node with one thing more, and whether it is new."""
    top = nodes = [node]
    way, code, depth = 0, hash(key), 0
    while type(nodes[way]) is list:
        nodes[way] = nodes = nodes[way][:]
        way, code, depth = code % _WAYS, code >> _BITS, depth + _BITS
    leaf = nodes[way]
    whole = leaf.copy()
    whole[key] = value
    nodes[way] = whole if len(whole) <= FEW else _merged({}, whole, depth)
    return top[0], len(whole) > len(leaf)


def _merged(node: Node, more: Mapping[Any, Any], depth: int) -> Node:
    """A node with these too; each goes its way, by the bits of its hash from this depth on."""
    if type(node) is dict:
        whole = {**node, **more}
        if len(whole) <= FEW or depth >= _DEEPEST:
            return whole
        node, more = [_NONE] * _WAYS, whole
    ways: list[dict[Any, Any]] = [{} for _ in node]
    for key, value in more.items():
        ways[(hash(key) >> depth) % _WAYS][key] = value
    return [_merged(old, new, depth + _BITS) if new else old for old, new in zip(node, ways, strict=True)]


def _without(node: Node, key: Any, code: int) -> Node:
    if type(node) is dict:
        return {each: value for each, value in node.items() if each != key}
    nodes, way = node[:], code % _WAYS
    nodes[way] = _without(node[way], key, code >> _BITS)
    return nodes


def _keys(node: Node) -> Iterator[Any]:
    if type(node) is dict:
        yield from node
    else:
        for each in node:
            yield from _keys(each)
