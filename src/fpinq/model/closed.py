"""Closed data: an action is made of the declared classes, and of exactly these.

A subclass could answer differently each time it is asked, a list could change
after it was checked, an object of any class could carry a stability of its own
choosing. So the kernel first looks at what it was given: every value has the
type that its field declares, to the letter. Only then do the rules read it.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from itertools import repeat
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from fpinq.model.epsilon import is_fraction
from fpinq.model.errors import BadAction

Check = Callable[[object], str]

# Checked where it is made (the rows of a literal table, partition keys) or read (ε).
_CHECKED_ELSEWHERE = {
    ("LiteralTable", "rows"),
    ("Partitioning", "keys"),
    ("Query", "epsilon"),
    ("AskPrice", "epsilon"),
}


def check_closed(value: object, declared: object) -> None:
    """BadAction unless value is closed data of the declared type."""
    wrong = _check_of(declared)(value)
    if wrong:
        raise BadAction(f"not an action of the language: {wrong}")


@cache
def _check_of(declared: Any) -> Check:
    """What is wrong with a value of this type, or nothing."""
    origin, arguments = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        return _one_of(arguments)
    if origin is Literal:
        return lambda value: "" if type(value) is str and value in arguments else _expected(declared, value)
    if origin is tuple:
        return _tuple_of(arguments)
    if isinstance(declared, type) and is_dataclass(declared):
        return _record_of(declared)
    if declared is Fraction:
        return lambda value: "" if is_fraction(value) else _expected("a Fraction of two ints", value)
    return lambda value: "" if type(value) is declared else _expected(declared, value)


def _one_of(arguments: Iterable[Any]) -> Check:
    # Every member is told by its class; tuples are the one kind that is not a class of its own.
    # By which class it is, not by one that equals it: what a class equals is up to its metaclass.
    by_class = {id(get_origin(member) or member): member for member in arguments}
    names = " or ".join(_name(get_origin(member) or member) for member in arguments)

    def check(value: object) -> str:
        member = by_class.get(id(type(value)))
        if member is None:
            return _expected(names, value)
        return "" if member is NoneType else _check_of(member)(value)

    return check


def _tuple_of(arguments: tuple[Any, ...]) -> Check:
    same = arguments[0] if len(arguments) == 2 and arguments[1] is Ellipsis else None

    def check(value: object) -> str:
        if type(value) is not tuple or (same is None and len(value) != len(arguments)):
            return _expected("a tuple", value)
        members = repeat(same, len(value)) if same is not None else arguments
        for member, each in zip(members, value, strict=True):
            if wrong := _check_of(member)(each):
                return wrong
        return ""

    return check


def _record_of(declared: type) -> Check:
    @cache
    def checks() -> list[tuple[str, Check]]:
        hints = get_type_hints(declared)
        wanted = [f.name for f in fields(declared) if f.init]
        return [
            (name, _check_of(hints[name]))
            for name in wanted
            if (declared.__name__, name) not in _CHECKED_ELSEWHERE
        ]

    def check(value: object) -> str:
        if type(value) is not declared:
            return _expected(declared, value)
        for name, of_field in checks():
            if wrong := of_field(getattr(value, name)):
                return f"{declared.__name__}.{name}: {wrong}"
        return ""

    return check


def _name(declared: Any) -> str:
    return declared if isinstance(declared, str) else str(getattr(declared, "__name__", declared))


def _expected(declared: Any, value: object) -> str:
    return f"expected {_name(declared)}, not {type(value).__name__}"
