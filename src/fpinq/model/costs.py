"""Costs: what an engine takes for one row, in units.

One *unit* is one elementary operation on a value, or one character touched. How
many an operator is, is with it (`operators`), and how many a row that is passed
on, hashed or put in order, is here. It is about a nanosecond of one core of
DuckDB in the slowest case that was measured (docs/decisions/0073).

Another engine takes so many *times* that: for what it does once, and for every
character. Each says how many for every operator and step; none is assumed
(docs/decisions/0118).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fpinq.model.clamps import Clamp
from fpinq.model.errors import KernelViolation
from fpinq.model.expressions import Apply, Column, Expression, Literal
from fpinq.model.frozen import dataclass
from fpinq.model.operators import OPERATORS

# Units for a row, and for each of its values, that is passed on; hashed and kept; put in order.
PASSED, PASSED_VALUE = 10, 2
KEYED, KEYED_VALUE, KEYED_CHARACTER = 250, 20, 1
ORDERED, ORDERED_VALUE, ORDERED_CHARACTER = 500, 50, 4
# Units for a value that becomes a grid point.
CLAMPED = 50

# From how many times on an operator is named in a refusal.
_DEAR = 100

# How long a column's texts can be, by its name; 0 if it has none.
Lengths = Mapping[str, int]


class Times(NamedTuple):
    """How many times the units an engine takes: for what is done once, and for every character."""

    once: int
    character: int


@dataclass(frozen=True)
class Costs:
    """What an engine takes: so many times the units, at the worst, for every operator and step."""

    engine: str
    operators: Mapping[str, Times]
    column: Times
    passed: int
    compared: Times
    keyed: Times
    ordered: Times
    clamped: int

    def __post_init__(self) -> None:
        if self.operators.keys() != OPERATORS.keys():
            unsaid = ", ".join(sorted(self.operators.keys() ^ OPERATORS.keys()))
            raise KernelViolation(f"{self.engine} says what every operator costs, and no other: {unsaid}")

    # ── expressions ──────────────────────────────────────────────────────────────────

    def of(self, expression: Expression, lengths: Lengths) -> tuple[int, int]:
        """The units of an expression on one row, and how long the text it gives can be."""
        if isinstance(expression, Column):
            length = lengths[expression.name]
            return self.column.once + self.column.character * length, length
        if isinstance(expression, Literal):
            return 1, len(expression.value) if isinstance(expression.value, str) else 0
        operator = OPERATORS[expression.operator]
        units, longest = self.each(expression.arguments, lengths)
        units += operator.cost(longest, *self.operators[expression.operator])
        return units, _length(expression, operator.length(*longest))

    def each(self, expressions: Iterable[Expression], lengths: Lengths) -> tuple[int, list[int]]:
        """The units of expressions together, and how long the text of each can be."""
        found = [self.of(expression, lengths) for expression in expressions]
        return sum(units for units, _ in found), [length for _, length in found]

    def units(self, lengths: Lengths, *expressions: Expression) -> int:
        """The units of expressions together."""
        return self.each(expressions, lengths)[0]

    def clamp(self, clamp: Clamp, lengths: Lengths) -> int:
        """The units of a value that becomes a grid point."""
        return CLAMPED * self.clamped + self.units(lengths, clamp.value)

    # ── rows ─────────────────────────────────────────────────────────────────────────

    def passing(self, lengths: Lengths) -> int:
        """Units to pass a row on."""
        return self.passed * (PASSED + PASSED_VALUE * len(lengths))

    def comparing(self, longest: Iterable[int]) -> int:
        """Units to compare a row's key with others of these lengths."""
        once, character = self.compared
        return sum(once + character * length for length in longest)

    def keying(self, lengths: Iterable[int]) -> int:
        """Units to find a row by values of these lengths."""
        listed = list(lengths)
        once, character = self.keyed
        return once * (KEYED + KEYED_VALUE * len(listed)) + character * KEYED_CHARACTER * sum(listed)

    def keeping(self, length: int) -> int:
        """Units to keep one more value of a row that is found."""
        once, character = self.keyed
        return once * KEYED_VALUE + character * KEYED_CHARACTER * length

    def ordering(self, lengths: Lengths) -> int:
        """Units to put a row into the canonical order."""
        once, character = self.ordered
        fixed = once * (ORDERED + ORDERED_VALUE * len(lengths))
        return fixed + character * ORDERED_CHARACTER * sum(lengths.values())

    # ── words ────────────────────────────────────────────────────────────────────────

    def dear(self, names: Iterable[str]) -> str:
        """Which of these operators take many times the units here, in words; nothing if none does."""
        times = {name: max(self.operators[name]) for name in sorted(names)}
        dear = [f"{name} {most} times" for name, most in times.items() if most >= _DEAR]
        return f"; {self.engine} takes more for some of it: {', '.join(dear)}" if dear else ""


def _length(expression: Apply, length: int) -> int:
    match expression:
        case Apply(operator="substring", arguments=(_, _, Literal(value=int(most)))):
            return min(length, most)
    return length


_ONCE = Times(1, 1)
# The units themselves: what DuckDB takes, where they were measured. A text that is there is not read again.
UNITS = Costs(
    "DuckDB",
    dict.fromkeys(OPERATORS, _ONCE),
    column=Times(1, 0),
    passed=1,
    compared=_ONCE,
    keyed=_ONCE,
    ordered=_ONCE,
    clamped=1,
)


def length_of(expression: Expression, lengths: Lengths) -> int:
    """How long the text that an expression gives can be, whatever it costs."""
    return UNITS.of(expression, lengths)[1]
