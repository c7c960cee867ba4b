"""Rows as Python has them: lists of dicts, the same for every engine."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fpinq.model.errors import BadData, suggest
from fpinq.model.expressions import Type


def check_present(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> None:
    """BadData if no row has a column that the schema says there is: a misspelling, not a lot of nulls."""
    missing = [name for name in names if rows and not any(name in row for row in rows)]
    if missing:
        there = sorted({str(name) for row in rows for name in row})
        raise BadData(f"no row has a column {missing[0]!r}{suggest(missing[0], there)}")


def check_some_fit(name: str, type_: Type, some: bool, fit: bool) -> None:
    """BadData if a column has values, but none of its type: a type that was misspelt, not a lot of nulls."""
    if some and not fit:
        raise BadData(f"column {name!r} is not {type_.value}, as the schema says: none of its values is")
