"""What is computed of answers by sums and constant factors is off by the same sums of their errors.

Anything else (a quotient of two answers, a CASE) has no interval: how far it is off depends on more
than was released.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fpinq.client.answers import Answer
from fpinq.client.uncertainty import Number
from fpinq.model.expressions import Apply, Column, Expression
from fpinq.model.frozen import dataclass
from fpinq.model.operators import evaluate

# Aggregate ↦ by how much one more of it moves the value.
Slopes = dict[str, float]


def slopes_of(tree: Expression, values: Mapping[str, Any], answers: Mapping[str, Answer]) -> Slopes | None:
    """The slopes of an expression over answers, on one row; None if it is not linear in them."""
    if isinstance(tree, Column):
        return {tree.name: 1.0} if tree.name in answers else {}
    if not isinstance(tree, Apply):
        return {}
    each = [slopes_of(argument, values, answers) for argument in tree.arguments]
    found = [slopes for slopes in each if slopes is not None]
    if len(found) < len(each) or not any(found):
        return {} if len(found) == len(each) else None
    match tree.operator, found:
        case "to_float64", [of]:
            return of
        case "negate", [of]:
            return _times(of, -1.0)
        case "add", [a, b]:
            return _plus(a, b)
        case "subtract", [a, b]:
            return _plus(a, _times(b, -1.0))
        case "multiply", [a, b] if not (a and b):
            factor = evaluate(tree.arguments[0 if b else 1], values)
            return None if factor is None else _times(a or b, float(factor))
        case "divide", [a, b] if not b:
            divisor = evaluate(tree.arguments[1], values)
            return None if not divisor else _times(a, 1 / float(divisor))
    return None


def _times(slopes: Slopes, factor: float) -> Slopes:
    return {name: slope * factor for name, slope in slopes.items()}


def _plus(a: Slopes, b: Slopes) -> Slopes:
    return {name: a.get(name, 0.0) + b.get(name, 0.0) for name in {**a, **b}}


@dataclass(frozen=True)
class Combined:
    """Off by a sum of the errors of answers, each times its slope; they may depend on one another."""

    answers: tuple[Answer, ...]
    slopes: tuple[float, ...]

    @property
    def approximate(self) -> bool:
        """Of one answer, as it is; of several a bound."""
        return len(self.answers) > 1 or any(answer.approximate for answer in self.answers)

    def standard_error(self) -> float | None:
        """Of one answer, its own times the slope; unknown of several, which may come from one measurement."""
        if len(self.answers) != 1 or self.answers[0].standard_error is None:
            return None
        return abs(self.slopes[0]) * self.answers[0].standard_error

    def interval(self, value: Number | None, confidence: Fraction) -> tuple[Number, Number] | None:
        """Each stays within its interval, all at once with this confidence: what may fail is shared."""
        each = 1 - (1 - confidence) / len(self.answers)
        low = high = 0.0
        for answer, slope in zip(self.answers, self.slopes, strict=True):
            found = answer.interval(each)
            if found is None or value is None:
                return None
            ends = sorted(slope * (float(end) - float(answer.value)) for end in found)
            low, high = low + ends[0], high + ends[1]
        assert value is not None
        return float(value) + low, float(value) + high
