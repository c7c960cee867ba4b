"""Constants from the shell: 0, 1.5, true, 2024-02-29 or text, as the column's type says."""

from collections.abc import Callable
from datetime import date, datetime
from math import isfinite
from typing import TypeVar

from fpinq.model.errors import ProgramError
from fpinq.model.expressions import Type, Value, checked_value

T = TypeVar("T")


def constant(text: str, type_: Type | None) -> Value:
    """The value of a type that a text stands for; where the type is not known, the first that fits."""
    if type_ is None:
        return next(value for read in _READERS.values() if (value := read(text)) is not None)
    value = _READERS[type_](text)
    if value is None:
        raise ProgramError(f"{text!r} is no {type_.value}, such as {_EXAMPLES[type_]}")
    return checked_value(value, type_)


def number(text: str) -> int | float:
    """A whole number, or a finite one."""
    for read in (_whole, _finite):
        if (value := read(text)) is not None:
            return value
    raise ProgramError(f"{text!r} is no number, such as 0 or 1.5")


def _truth(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _whole(text: str) -> int | None:
    return _or_none(int, text) if len(text) < 40 else None


def _finite(text: str) -> float | None:
    value = _or_none(float, text)
    return value if value is not None and isfinite(value) else None


def _day(text: str) -> date | None:
    return _or_none(date.fromisoformat, text) if "-" in text else None


def _time(text: str) -> datetime | None:
    return _or_none(datetime.fromisoformat, text) if "-" in text else None


def _or_none(read: Callable[[str], T], text: str) -> T | None:
    try:
        return read(text)
    except ValueError:
        return None


# In the order in which they are tried.
_READERS: dict[Type, Callable[[str], Value]] = {
    Type.BOOL: _truth,
    Type.INT64: _whole,
    Type.FLOAT64: _finite,
    Type.DATE: _day,
    Type.TIMESTAMP: _time,
    Type.STRING: str,
}
_EXAMPLES = {
    Type.BOOL: "true",
    Type.INT64: "0",
    Type.FLOAT64: "1.5",
    Type.DATE: "2024-02-29",
    Type.TIMESTAMP: "2024-02-29T12:00:00",
}
