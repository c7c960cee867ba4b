"""Results: the rows of a SELECT list, as answers by key."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.columns import Columns, Confidence
from fpinq.client.leaves import Leaf, as_columns, free
from fpinq.client.named import Named, Split
from fpinq.client.uncertainty import Number
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Rho


@dataclass(frozen=True)
class Unknown:
    """What is computed of noisy numbers, and not by sums: how far it is off is not said."""

    approximate = True

    def standard_error(self) -> None:
        """None."""
        return

    def interval(self, value: Number, confidence: Fraction) -> None:
        """None."""
        return


class Line(Named):
    """A row of a result: answers and plain values by the names of the SELECT list.

    With a single answer in it, the row is this answer too: `.value`, `.interval(0.95)`.
    """

    # What finding keys that nobody listed cost of the δ for them, in a sub-query.
    charged_delta: Charged = Fraction(0)

    def __init__(
        self,
        cells: Mapping[str, Any],
        epsilon: Fraction | Rho,
        charged: Charged,
        split: Split,
    ) -> None:
        self.cells = cells
        answers = {name: cell for name, cell in cells.items() if isinstance(cell, Answer)}
        super().__init__(answers, epsilon, charged, split)

    def __getitem__(self, key: Any) -> Any:
        return self.cells[key] if key in self.cells else super().__getitem__(key)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            if name in self.cells:
                return self.cells[name]
            if len(self._answers) == 1 and name in ("value", "interval", "standard_error", "ranks", "note"):
                return getattr(next(iter(self._answers.values())), name)
        raise AttributeError(f"no column is named {name!r}")

    def __float__(self) -> float:
        return float(self.value)

    def __fpinq_value__(self) -> Any:
        values = {name: answer.value for name, answer in self.items()}
        return values if len(values) != 1 else next(iter(values.values()))

    def columns(self, confidence: Confidence = 0.95) -> Columns:
        """One row: the columns of the SELECT list, with low, high and standard_error of answers."""
        return _columns([self], confidence)


class Result(Answers):
    """The rows of a grouped SELECT, by key, in its order: `result["BA"]["age"]`."""

    def __init__(
        self,
        lines: Mapping[Any, Line],
        epsilon: Fraction | Rho,
        charged: Charged,
        key_columns: tuple[str, ...],
    ) -> None:
        super().__init__(lines, epsilon, charged, key_columns)
        # What finding keys that nobody listed cost of the δ for them.
        self.charged_delta: Charged = Fraction(0)

    def columns(self, confidence: Confidence = 0.95) -> Columns:
        """The columns of the SELECT list, with low, high and standard_error of answers."""
        return _columns(list(self.values()), confidence)

    def leaves(self) -> Iterator[Leaf]:
        """The answers of each row, under its key."""
        for key, line in self.items():
            yield Leaf(self.keyed(key), dict(line))


def _columns(lines: Sequence[Line], confidence: Confidence) -> Columns:
    """The rows as columns, in the order of the SELECT list."""
    names = list(lines[0].cells) if lines else []
    answered = [name for name in names if any(isinstance(line.cells[name], Answer) for line in lines)]
    values: dict[str, Sequence[Any]] = {}
    numbers: set[str] = set()
    for name in names:
        if name not in answered:
            values[free(name, values)] = [line.cells[name] for line in lines]
            continue
        one = as_columns([Leaf({}, {name: line.cells[name]}) for line in lines], confidence)
        prefix = f"{name}_" if len(answered) > 1 else ""
        for column, listed in one.values.items():
            called = free(column if column == name else f"{prefix}{column}", values)
            values[called] = listed
            numbers |= {called} if column in one.numbers else set()
    return Columns(values, frozenset(numbers))
