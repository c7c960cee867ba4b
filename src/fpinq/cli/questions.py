"""The questions of `fpinq query`: of how many expressions each is, and which options it takes."""

import re
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fpinq.cli.constants import number
from fpinq.model.errors import ProgramError

# Options that only some questions take; the others refuse them, for they may have meant another question.
OPTIONS = ("bounds", "bins", "fraction", "interval", "candidates", "first")


class Question(NamedTuple):
    """What may be asked: of so many expressions, at most (None: without end), with these options."""

    help: str
    least: int
    most: int | None
    takes: tuple[str, ...]
    made: Callable[[Any, list[Any], Namespace], Any]


def check(name: str, arguments: Namespace) -> None:
    """ProgramError if something was said that the question does not use, or not said that it needs."""
    question, given = QUESTIONS[name], arguments.expression
    if question.most == 0 and given:
        raise ProgramError(
            f"{name} is of rows, not of {given[0]!r}: leave it out; "
            'which rows is said by --where "x.age > 17"'
        )
    if len(given) < question.least:
        example = " ".join(['"x.age"', '"x.hours"'][: max(1, question.least)])
        raise ProgramError(f"{name} of what? Say fpinq query … {name} {example}")
    if question.most is not None and len(given) > question.most:
        raise ProgramError(f"{name} is of {question.most}, not of {len(given)}")
    for option in OPTIONS:
        if getattr(arguments, option) is not None and option not in question.takes:
            raise ProgramError(f"{name} has no {option}: leave out --{option}")
    if "bounds" in question.takes and len(arguments.bounds or ()) > max(1, len(given)):
        raise ProgramError("there are more --bounds than expressions")
    for option in ("fraction", "first"):
        if option in question.takes and getattr(arguments, option) is None:
            raise ProgramError(f"{name} needs --{option}, such as --{option} {_EXAMPLES[option]}")


_EXAMPLES = {"fraction": "0.25", "first": "3"}


def _bounds(arguments: Namespace) -> tuple[Any, Any] | None:
    """The bounds of one expression."""
    return _pairs(arguments)[0] if arguments.bounds else None


def _pairs(arguments: Namespace) -> list[tuple[Any, Any]]:
    return [(number(low), number(high)) for low, high in arguments.bounds or ()]


def _bounded(name: str) -> Callable[[Any, list[Any], Namespace], Any]:
    return lambda fp, of, a: getattr(fp, name)(of[0], bounds=_bounds(a))


def _binned(name: str) -> Callable[[Any, list[Any], Namespace], Any]:
    return lambda fp, of, a: getattr(fp, name)(of[0], bounds=_bounds(a), bins=a.bins)


def _of_two(name: str) -> Callable[[Any, list[Any], Namespace], Any]:
    return lambda fp, of, a: getattr(fp, name)(*of, bounds=tuple(_pairs(a)) or None)


def _median(fp: Any, of: list[Any], a: Namespace) -> Any:
    return fp.median(of[0], bounds=_bounds(a), interval=a.interval)


def _quantile(fp: Any, of: list[Any], a: Namespace) -> Any:
    if len(a.fraction) == 1:
        return fp.quantile(a.fraction[0], of[0], bounds=_bounds(a), interval=a.interval)
    return fp.quantiles(a.fraction, of[0], bounds=_bounds(a), interval=a.interval)


def _regression(fp: Any, _: list[Any], a: Namespace) -> Any:
    columns = [_column(expression) for expression in a.expression]
    bounds = dict(zip(columns, _pairs(a), strict=len(a.bounds or ()) == len(columns)))
    return fp.regression(columns[0], columns[1:], bounds=bounds or None)


def _column(expression: str) -> str:
    found = re.fullmatch(r"x\.(\w+)", expression)
    if found is None:
        raise ProgramError(f"a regression is of columns, such as x.age, not of {expression!r}")
    return found[1]


def _listed(texts: Sequence[str] | None) -> list[Any] | None:
    return None if texts is None else list(texts)


QUESTIONS: dict[str, Question] = {
    "count": Question("how many rows", 0, 0, (), lambda fp, of, a: fp.count()),
    "distinct_count": Question(
        "how many different values", 1, 1, (), lambda fp, of, a: fp.distinct_count(of[0])
    ),
    "proportion": Question("which share of the rows", 1, 1, (), lambda fp, of, a: fp.proportion(of[0])),
    "sum": Question("their sum", 1, 1, ("bounds",), _bounded("sum")),
    "average": Question("their mean", 1, 1, ("bounds",), _bounded("average")),
    "variance": Question("their variance", 1, 1, ("bounds",), _bounded("variance")),
    "standard_deviation": Question("its square root", 1, 1, ("bounds",), _bounded("standard_deviation")),
    "median": Question("the value in the middle", 1, 1, ("bounds", "interval"), _median),
    "quantile": Question(
        "the value so far up, --fraction 0.25; several for one ε",
        1,
        1,
        ("bounds", "interval", "fraction"),
        _quantile,
    ),
    "minimum": Question("nearly the least: an outer quantile", 1, 1, ("bounds",), _bounded("minimum")),
    "maximum": Question("nearly the greatest: an outer quantile", 1, 1, ("bounds",), _bounded("maximum")),
    "mode": Question(
        "the most frequent",
        1,
        1,
        ("candidates",),
        lambda fp, of, a: fp.mode(of[0], candidates=_listed(a.candidates)),
    ),
    "top": Question(
        "the most frequent --first K",
        1,
        1,
        ("candidates", "first"),
        lambda fp, of, a: fp.top(a.first, of[0], candidates=_listed(a.candidates)),
    ),
    "histogram": Question("how many in each bin", 1, 1, ("bounds", "bins"), _binned("histogram")),
    "cdf": Question("which share is at most so large", 1, 1, ("bounds", "bins"), _binned("cdf")),
    "covariance": Question("of two", 2, 2, ("bounds",), _of_two("covariance")),
    "correlation": Question("of two", 2, 2, ("bounds",), _of_two("correlation")),
    "regression": Question("the first by the others", 2, None, ("bounds",), _regression),
}
