"""Leaves: single answers under their keys, which become the rows of frames and files."""

from collections.abc import Container, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from fpinq.client.columns import Columns, Confidence
from fpinq.client.uncertainty import exact_confidence

if TYPE_CHECKING:
    from fpinq.client.answers import Answer


class Leaf(NamedTuple):
    """Single answers, by name, under the same keys."""

    keys: Mapping[str, Any]
    answers: "Mapping[str, Answer]"


def beside(keys: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Keys and more keys; two of the same name are told apart."""
    both = dict(keys)
    for name, key in more.items():
        both[free(name, both)] = key
    return both


def free(name: str, taken: Container[str]) -> str:
    """A name that is not taken: this one, or this and a number."""
    others = (f"{name}_{i}" for i in count(2))
    return name if name not in taken else next(other for other in others if other not in taken)


def as_columns(leaves: Sequence[Leaf], confidence: Confidence) -> Columns:
    """Keys, then of each name the value, low, high and standard_error; a value that is a pair in two columns.

    If there are several names, low, high and standard_error are called by them. Answers to
    different questions of which each leaf has one are all called `value`.
    """
    exact = None if confidence is None else exact_confidence(confidence)
    names = list(dict.fromkeys(name for leaf in leaves for name in leaf.answers))
    if len(names) > 1 and all(len(leaf.answers) == 1 for leaf in leaves):
        leaves = [Leaf(leaf.keys, {"value": one}) for leaf in leaves for one in leaf.answers.values()]
        names = ["value"]
    keys = dict.fromkeys(name for leaf in leaves for name in leaf.keys)
    columns = {name: [leaf.keys.get(name) for leaf in leaves] for name in keys}
    numbers: set[str] = set()
    for name in names:
        answers = [leaf.answers.get(name) for leaf in leaves]
        prefix = f"{name}_" if len(names) > 1 else ""
        for column, values, is_number in _of_answers(name, prefix, answers, exact):
            named = free(column, columns)
            columns[named] = values
            numbers |= {named} if is_number else set()
    return Columns(columns, frozenset(numbers))


def _of_answers(
    name: str, prefix: str, answers: "Sequence[Answer | None]", confidence: Confidence
) -> Iterator[tuple[str, list[Any], bool]]:
    """The columns of answers: their names, what is in them, and whether these are numbers."""
    values: list[Any] = [None if answer is None else answer.value for answer in answers]
    if values and all(isinstance(value, tuple) and len(value) == 2 for value in values):
        yield f"{name}_lower", [value[0] for value in values], True
        yield f"{name}_upper", [value[1] for value in values], True
    else:
        yield name, values, all(is_number(value) for value in values)
    ends = [_ends(answer, confidence) for answer in answers]
    yield f"{prefix}low", [low for low, _ in ends], True
    yield f"{prefix}high", [high for _, high in ends], True
    yield f"{prefix}standard_error", [a if a is None else a.standard_error for a in answers], True


def _ends(answer: "Answer | None", confidence: Confidence) -> tuple[Any, Any]:
    found = None if answer is None else answer.interval(confidence)
    return (None, None) if found is None else found


def is_number(value: object) -> bool:
    """Whether a value is a number: not a condition, a text or a list."""
    return isinstance(value, int | float | Fraction) and not isinstance(value, bool)
