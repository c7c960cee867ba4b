"""Frozen data: `dataclass(frozen=True)`, as the standard library means it, made when it is needed.

The library compiles six functions for each class, one after the other: half of what it cost to import
fpinq. Here the three whose speed is felt are compiled together when one of them is first called, and the
others are closures.
"""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, **others):
        """The library's decorator. A frozen class that extends no other dataclass is made here."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, repr=repr, **others)
        if not frozen or others or any(map(dataclasses.is_dataclass, cls.__mro__[1:])):
            return dataclasses.dataclass(cls, frozen=frozen, eq=eq, repr=repr, **others)
        return _frozen(cls, eq, repr)


def _frozen(cls: Any, eq: bool, repr: bool) -> Any:
    hashes_itself = cls.__dict__.get("__hash__") is not None  # None is Python's, beside an __eq__
    dataclasses.dataclass(cls, init=False, repr=False, eq=False)  # which compiles nothing
    params, fields = cls.__dataclass_params__, dataclasses.fields(cls)
    params.init, params.repr, params.eq, params.frozen = True, repr, eq, True
    cls.__setattr__, cls.__delattr__ = _refusing(cls, {f.name for f in fields})
    if repr and "__repr__" not in cls.__dict__:
        cls.__repr__ = _showing([f.name for f in fields if f.repr])
    if "__init__" not in cls.__dict__:
        cls.__init__ = _Uncompiled(cls, "__init__")
    if eq and "__eq__" not in cls.__dict__:
        cls.__eq__ = _Uncompiled(cls, "__eq__")
    if eq and not hashes_itself:
        cls.__hash__ = _Uncompiled(cls, "__hash__")
    return cls


class _Uncompiled:
    """A method of a class until it is first looked up. That may be twice at once: both find the same."""

    def __init__(self, cls: type, name: str) -> None:
        self._cls = cls
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        methods = _compiled(self._cls)
        for name, found in list(self._cls.__dict__.items()):
            if isinstance(found, _Uncompiled):
                setattr(self._cls, name, methods[name])
        return methods[self._name].__get__(instance, owner)


class _Made:
    """Stands, as a default, for one that is made anew for each."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Made()
_TEXT = """
def __init__({parameters}):
    {body}
def __eq__(self, other):
    if other.__class__ is not self.__class__:
        return NotImplemented
    return ({ours}) == ({theirs})
def __hash__(self):
    return hash(({ours}))
"""


def _compiled(cls: Any) -> dict[str, Any]:
    """__init__, __eq__ and __hash__."""
    fields = dataclasses.fields(cls)
    given = [f for f in fields if f.init]
    named = [_parameter(f) for f in given if f.kw_only]
    parameters = ["self", *(_parameter(f) for f in given if not f.kw_only), *(["*", *named] if named else [])]
    body = [f"_set(self, {f.name!r}, {_value(f)})" for f in fields if f.init or _is_made(f)]
    compared = [f.name for f in fields if f.compare]
    text = _TEXT.format(
        parameters=", ".join(parameters),
        body="\n    ".join([*body, "self.__post_init__()" if hasattr(cls, "__post_init__") else "pass"]),
        ours="".join(f"self.{name}, " for name in compared),
        theirs="".join(f"other.{name}, " for name in compared),
    )
    names = {f"_default_{f.name}": f.default_factory if _is_made(f) else f.default for f in fields}
    methods: dict[str, Any] = {}
    exec(text, {**names, "_set": object.__setattr__, "_made": _MADE}, methods)
    for name, method in methods.items():
        method.__qualname__, method.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
    methods["__init__"].__annotations__ = {f.name: f.type for f in given} | {"return": None}
    return methods


def _is_made(f: Field[Any]) -> bool:
    """Whether the default is made anew for each."""
    return f.default_factory is not MISSING


def _parameter(f: Field[Any]) -> str:
    if _is_made(f):
        return f"{f.name}=_made"
    return f.name if f.default is MISSING else f"{f.name}=_default_{f.name}"


def _value(f: Field[Any]) -> str:
    made = f"_default_{f.name}()"
    if not f.init:
        return made
    return f"{made} if {f.name} is _made else {f.name}" if _is_made(f) else f.name


def _refusing(cls: Any, names: Collection[str]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def set_(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return set_, delete


def _showing(names: Sequence[str]) -> Callable[..., Any]:
    @recursive_repr()
    def show(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return show
