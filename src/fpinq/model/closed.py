"""Closed data: an action is made of the declared classes, and of exactly these.

A subclass could answer differently each time it is asked, a list could change
after it was checked, an object of any class could carry a stability of its own
choosing. So the kernel first looks at what it was given: every value has the
type that its field declares, to the letter. Only then do the rules read it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from itertools import repeat
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from fpinq.model.epsilon import is_fraction
from fpinq.model.errors import BadAction

Check = Callable[[object], str]

# Of these every value is closed data.
_PLAIN = (str, int, bool, float)

# Checked where it is made (the rows of a literal table, partition keys) or read (ε).
_CHECKED_ELSEWHERE = {
    ("LiteralTable", "rows"),
    ("Partitioning", "keys"),
    ("Query", "epsilon"),
    ("AskPrice", "epsilon"),
}


def check_closed(value: object, declared: object) -> None:
    """BadAction unless value is closed data of the declared type."""
    known = _known.get(id(declared))
    if known is None:
        known = _known[id(declared)] = declared, _check_of(declared)
    wrong = known[1](value)
    if wrong:
        raise BadAction(f"not an action of the language: {wrong}")


# By which type it is, which stays: to hash a union takes longer than most checks.
_known: dict[int, tuple[object, Check]] = {}


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
    checks: dict[int, Check] = {}  # filled when first used: types are recursive

    def check(value: object) -> str:
        of_class = id(type(value))
        if of_class not in checks:
            if of_class not in by_class:
                return _expected(names, value)
            checks[of_class] = _check_of(by_class[of_class])
        return checks[of_class](value)

    return check


def _tuple_of(arguments: tuple[Any, ...]) -> Check:
    same = len(arguments) == 2 and arguments[1] is Ellipsis

    @cache
    def checks() -> Iterable[Check]:
        return repeat(_check_of(arguments[0])) if same else [_check_of(member) for member in arguments]

    def check(value: object) -> str:
        if type(value) is not tuple or (not same and len(value) != len(arguments)):
            return _expected("a tuple", value)
        for of_member, each in zip(checks(), value, strict=False):
            if wrong := of_member(each):
                return wrong
        return ""

    return check


def _record_of(declared: type) -> Check:
    @cache
    def checks() -> list[tuple[str, Any, Check]]:
        return list(_checks_of(declared))

    def check(value: object) -> str:
        if type(value) is not declared:
            return _expected(declared, value)
        for name, plain, of_field in checks():
            given = getattr(value, name)
            if type(given) is not plain and (wrong := of_field(given)):
                return f"{declared.__name__}.{name}: {wrong}"
        return ""

    return check


def _checks_of(declared: type) -> Iterator[tuple[str, Any, Check]]:
    """The fields of a record: the name, the class whose every value will do, what is wrong with others."""
    hints = get_type_hints(declared)
    for name in [f.name for f in fields(declared) if f.init]:
        if (declared.__name__, name) not in _CHECKED_ELSEWHERE:
            yield name, hints[name] if hints[name] in _PLAIN else None, _check_of(hints[name])


def _name(declared: Any) -> str:
    return declared if isinstance(declared, str) else str(getattr(declared, "__name__", declared))


def _expected(declared: Any, value: object) -> str:
    return f"expected {_name(declared)}, not {type(value).__name__}"
