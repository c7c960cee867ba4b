"""`_`: functions of a row without lambda, and `if_else`."""

from collections.abc import Callable
from typing import Any

from fpinq.client.rows import BOOL, Cell, Symbolic, alike, apply
from fpinq.client.shown import visibly
from fpinq.model.errors import BadExpression


@visibly
class Deferred(Symbolic):
    """`_`: a function of the row, written without lambda. `_.age > 17` is `lambda x: x.age > 17`."""

    __slots__ = ("__of",)

    def __init__(self, of: Callable[[object], Any]) -> None:
        self.__of = of

    def __getattr__(self, name: str) -> "Deferred":
        # Notebooks and copy ask any object for such names.
        if name.startswith("_"):
            raise AttributeError(name)
        of = self.__of
        return Deferred(lambda row: getattr(of(row), name))

    def __getitem__(self, name: str) -> "Deferred":
        of = self.__of
        return Deferred(lambda row: of(row)[name])

    def __call__(self, *arguments: object, **named: object) -> "Deferred":
        of = self.__of

        def call(row: object) -> object:
            method = of(row)
            if not callable(method):
                raise BadExpression("_ has no such method: this is a column, and a column is not called")
            owner = getattr(method, "__self__", None)
            if not isinstance(owner, Symbolic) and getattr(owner, "takes_functions", False):
                return method(*arguments, **named)  # g.sum(_.cost): the inner _ is a member's row
            return method(
                *(resolve(a, row) for a in arguments), **{k: resolve(a, row) for k, a in named.items()}
            )

        return Deferred(call)

    def __fpinq_on__(self, row: object) -> Any:
        return self.__of(row)

    def __repr__(self) -> str:
        return "<function of _>"


def _defer(name: str) -> Callable[..., Deferred]:
    def method(self: Deferred, *others: object) -> Deferred:
        def apply(row: object) -> object:
            resolved = resolve(self, row)
            result = getattr(type(resolved), name)(resolved, *(resolve(o, row) for o in others))
            if result is NotImplemented:
                raise BadExpression("this operator does not apply here")
            return result

        return Deferred(apply)

    return method


_OPERATORS = {
    name
    for name, value in vars(Cell).items()
    if name.startswith("__") and name.endswith("__") and callable(value)
} - {"__init__", "__repr__", "__getattr__", "__getitem__"}
for _operator in _OPERATORS:
    setattr(Deferred, _operator, _defer(_operator))

_: Any = Deferred(lambda row: row)


def resolve(value: object, *rows: object) -> Any:
    """value on rows: a function or `_` is called, once; anything else is what it is."""
    if isinstance(value, Deferred):
        if len(rows) != 1:
            raise BadExpression("_ stands for one row: this function takes more, so write a lambda")
        return value.__fpinq_on__(rows[0])
    return value


def if_else(condition: object, then: object, otherwise: object) -> Any:
    """then where the condition is true, otherwise where it is false or null."""
    if any(isinstance(value, Deferred) for value in (condition, then, otherwise)):
        return Deferred(lambda row: if_else(*(resolve(v, row) for v in (condition, then, otherwise))))
    if not isinstance(condition, Cell) or condition.type is not BOOL:
        raise BadExpression("if_else needs a condition on the row: fp.if_else(x.a > 1, x.b, 0)")
    if then is None and otherwise is None:
        raise BadExpression("if_else needs a value in one of its branches")
    return apply("if_else", condition, *alike(then, otherwise))
