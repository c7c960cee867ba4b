"""What is in a plan, a transformation or a query: how deep it is nested, and which operators it has."""

from dataclasses import fields, is_dataclass
from functools import cache

from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.partitions import Partitioning
from fpinq.model.transformations import LiteralTable, PartOf


def deepest(part: object) -> int:
    """How deeply the operators in a transformation, or in a part of one, are nested."""
    if isinstance(part, Apply):
        return part.depth
    if isinstance(part, tuple):
        return max(map(deepest, part), default=0)
    kind: type = type(part)
    names = _nesting_parts_of(kind)
    return max([deepest(getattr(part, name)) for name in names]) if names else 0


def operators_in(part: object) -> set[str]:
    """The names of the operators in a plan, a query, or any part of one; what is used twice is seen once."""
    found: set[str] = set()
    seen: dict[int, object] = {}  # kept, so that no other gets its id
    waiting = [part]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, LiteralTable):
            continue
        seen[id(each)] = each
        if isinstance(each, Apply):
            found.add(each.operator)
        kind: type = type(each)
        waiting += each if isinstance(each, tuple) else [getattr(each, name) for name in _parts_of(kind)]
    return found


@cache
def _nesting_parts_of(kind: type) -> tuple[str, ...]:
    """The fields in which operators can be: not the rows of a table, nor the keys of parts."""
    few = {Partitioning: ("key",), PartOf: ("by",), LiteralTable: (), Literal: (), Column: ()}
    return few[kind] if kind in few else _parts_of(kind)


@cache
def _parts_of(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name != "op") if is_dataclass(kind) else ()
