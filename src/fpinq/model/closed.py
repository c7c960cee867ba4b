"""Closed data: an action is made of the declared classes, and of exactly these.

A subclass could answer differently each time it is asked, a list could change
after it was checked, an object of any class could carry a stability of its own
choosing. So the kernel first looks at what it was given: every value has the
type that its field declares, to the letter. Only then do the rules read it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from itertools import repeat
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fpinq.model.epsilon import is_fraction
from fpinq.model.errors import BadAction

Check = Callable[[object], str]
V = TypeVar("V")

# Of these every value is closed data.
_PLAIN = (str, int, bool, float)

# No program has it.
_NO_VALUE = object()

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


def each_once(values: Sequence[V]) -> Iterable[V]:
    """The values, the same one no more than once: what is true of it the first time, is so the second."""
    return dict(zip(map(id, values), values, strict=True)).values() if len(values) > 1 else values


def _tuple_of(arguments: tuple[Any, ...]) -> Check:
    same = len(arguments) == 2 and arguments[1] is Ellipsis

    @cache
    def checks() -> Iterable[tuple[Any, Check]]:
        """For each member the class whose every value will do, and what is wrong with others."""
        found = [(_plain(member), _check_of(member)) for member in arguments if member is not Ellipsis]
        return repeat(found[0]) if same else found

    def check(value: object) -> str:
        if type(value) is not tuple or (not same and len(value) != len(arguments)):
            return _expected("a tuple", value)
        members = each_once(value) if same else value
        for (plain, of_member), each in zip(checks(), members, strict=False):
            if type(each) is not plain and (wrong := of_member(each)):
                return wrong
        return ""

    return check


def _record_of(declared: type) -> Check:
    @cache
    def checks() -> list[tuple[str, Any, Any, Check]]:
        return list(_checks_of(declared))

    def check(value: object) -> str:
        if type(value) is not declared:
            return _expected(declared, value)
        for name, plain, usual, of_field in checks():
            given = getattr(value, name)
            if type(given) is not plain and given is not usual and (wrong := of_field(given)):
                return f"{declared.__name__}.{name}: {wrong}"
        return ""

    return check


def _checks_of(declared: type) -> Iterator[tuple[str, Any, Any, Check]]:
    """The fields of a record: the name, the class whose every value will do, one value that will do, a check.

    The check says what is wrong with the others.
    """
    hints = get_type_hints(declared)
    for name in [f.name for f in fields(declared) if f.init]:
        if (declared.__name__, name) not in _CHECKED_ELSEWHERE:
            hint = hints[name]
            yield name, _plain(hint), _usual(hint), _check_of(hint)


def _plain(declared: Any) -> Any:
    """A class of which every value is closed data, if that is what is declared."""
    return declared if declared in _PLAIN else None


def _usual(declared: Any) -> object:
    """A value of a type that is told by which one it is: an op, or none at all."""
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is Literal:
        return arguments[0]
    return None if origin in (Union, UnionType) and NoneType in arguments else _NO_VALUE


def _name(declared: Any) -> str:
    return declared if isinstance(declared, str) else str(getattr(declared, "__name__", declared))


def _expected(declared: Any, value: object) -> str:
    return f"expected {_name(declared)}, not {type(value).__name__}"
