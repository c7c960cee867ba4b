"""What is in a plan, a transformation or a query: how deep it is nested, and which operators it has."""

from dataclasses import fields, is_dataclass
from functools import cache

from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.partitions import Partitioning
from fpinq.model.transformations import LiteralTable, PartOf

# What no operator is in, and most of a record is made of.
_WITHOUT = {str, int, bool, Column, Literal}


def deepest(part: object) -> int:
    """How deeply the operators in a transformation, or in a part of one, are nested."""
    found, waiting = 0, [part]
    for each in waiting:  # to which it adds
        kind: type = type(each)
        if kind in _WITHOUT:
            continue
        if isinstance(each, tuple):
            waiting += each
        elif isinstance(each, Apply):
            found = max(found, each.depth)
        else:
            waiting += [getattr(each, name) for name in _nesting_parts_of(kind)]
    return found


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
