"""Random actions, made from the dataclasses' own types: every class and every field, sensible or not."""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from fpinq.model import domains, environments, expressions, transformations
from fpinq.model.expressions import COLUMN_TYPES, INT64_MAX, INT64_MIN, Schema, Type, Value
from fpinq.model.keys import MAX_PARTS, Key

NAMES = st.sampled_from(["a", "b", "t1", "é", 'q"', "x;--", "\x00", "日"])

_OF_TYPE: dict[Type, st.SearchStrategy[Any]] = {
    Type.BOOL: st.booleans(),
    Type.INT64: st.integers(INT64_MIN, INT64_MAX),
    Type.FLOAT64: st.floats(allow_nan=False),
    Type.STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    Type.DATE: st.dates(),
    Type.TIMESTAMP: st.datetimes(),
}
VALUES = st.none() | st.one_of(*_OF_TYPE.values())


def of(kind: Any, depth: int = 4) -> st.SearchStrategy[Any]:
    """Random values of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind == Value:
        return VALUES
    if kind == Key:
        return VALUES | st.lists(VALUES, max_size=3).map(tuple)
    if kind is expressions.Literal:
        return st.sampled_from(COLUMN_TYPES).flatmap(
            lambda type_: (st.none() | _OF_TYPE[type_]).map(lambda v: expressions.Literal(v, type_))
        )
    if kind is transformations.ConcatAll:
        return st.builds(kind, st.integers(2, transformations.MAX_TABLES))
    if kind is domains.IntegerDomain:
        return _in_order(_OF_TYPE[Type.INT64]).map(lambda ends: domains.IntegerDomain(*ends))
    if kind is domains.DateDomain:
        return _in_order(st.dates()).map(lambda ends: domains.DateDomain(*ends))
    if kind is domains.StringDomain:
        return st.builds(kind, st.integers(0, domains.MAX_BYTES))
    if kind is domains.ProductDomain:
        some = [of(each) for each in (domains.IntegerDomain, domains.DateDomain, domains.TruthDomain)]
        return st.lists(st.one_of(*some), min_size=1, max_size=3).map(lambda each: kind(tuple(each)))
    if kind is environments.Numbered:
        return st.builds(kind, NAMES, st.integers(0, MAX_PARTS))
    if kind is transformations.LiteralTable:
        return st.lists(st.sampled_from(COLUMN_TYPES), max_size=3).flatmap(_literal_table)
    if origin in (Union, types.UnionType):
        shallow = [a for a in arguments if depth > 0 or not _is_nested(a)]
        return st.one_of(*[of(argument, depth - 1) for argument in shallow or arguments])
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        own = [f.name for f in fields(kind) if f.init and f.name != "op"]
        return st.builds(kind, **{name: st.deferred(lambda n=name: of(hints[n], depth - 1)) for name in own})
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(of(arguments[0], depth - 1), max_size=2 if depth > 0 else 0).map(tuple)
    if origin is tuple:
        return st.tuples(*[of(argument, depth - 1) for argument in arguments])
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(NAMES, of(arguments[1], depth - 1), max_size=3)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    return _SCALARS[kind]


def _in_order(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(values, values).map(sorted)


def _literal_table(columns: list[Type]) -> st.SearchStrategy[Any]:
    schema = Schema(tuple((f"c{i}", type_) for i, type_ in enumerate(columns)))
    row = st.tuples(*[st.none() | _OF_TYPE[type_] for type_ in columns])
    return st.lists(row, max_size=3).map(lambda rows: transformations.LiteralTable(schema, tuple(rows)))


def _is_nested(kind: Any) -> bool:
    return is_dataclass(kind) and any(
        f.init and f.name != "op" and get_type_hints(kind)[f.name] not in _SCALARS for f in fields(kind)
    )


_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: NAMES,
    int: st.integers() | st.integers(0, 3),
    bool: st.booleans(),
    type(None): st.none(),
    date: st.dates(),
    datetime: st.datetimes(),
    Fraction: st.fractions(),
    range: st.builds(lambda first, more: range(first, first + more), st.integers(), st.integers(1, 9)),
}
