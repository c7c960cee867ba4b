"""Answers: a released value that knows its ε, what it was charged and how far it may be off."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from html import escape
from importlib import import_module
from math import ceil, floor, log10, trunc
from typing import Any

from fpinq.client.rows import Symbolic
from fpinq.client.spelling import show_up
from fpinq.client.uncertainty import Uncertainty, exact_confidence
from fpinq.model.errors import ProgramError

Charged = Fraction | Mapping[str, Fraction]


class Answer:
    """A private answer. Prints as `1,234 ± 30`, the half-width of its 95 % interval.

    Where a number is expected, an answer is its value: float(), comparison and
    arithmetic give plain numbers. int() is for answers that are integers.
    """

    __slots__ = ("_uncertainty", "charged", "epsilon", "value")
    __array_ufunc__ = None

    def __init__(self, value: Any, epsilon: Fraction, charged: Charged, uncertainty: Uncertainty) -> None:
        self.value = value
        self.epsilon = epsilon
        self.charged = charged
        self._uncertainty = uncertainty

    @property
    def standard_error(self) -> float | None:
        """The standard deviation of the noise in the value; None for a value chosen among candidates."""
        return self._uncertainty.standard_error()

    @property
    def approximate(self) -> bool:
        """Whether the interval is an approximation. Those of counts and sums are exact."""
        return self._uncertainty.approximate

    def interval(self, confidence: float | Fraction = 0.95) -> tuple[Any, Any] | None:
        """Where the exact statistic is, with this confidence. It is free: only the mechanism is looked at.

        A median's is its bounds, since how far a rank is off in value depends on
        the data; a choice among candidates has none.
        """
        return self._uncertainty.interval(self.value, exact_confidence(confidence))

    def __str__(self) -> str:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float | Fraction):
            return str(self.value)
        if self.standard_error is None:
            return show_number(self.value, None)
        low, high = self.interval(0.95)  # type: ignore[misc]
        half = max(high - self.value, self.value - low)
        return f"{show_number(self.value, half)} ± {show_number(half, half)}"

    def __repr__(self) -> str:
        return f"<{self}, ε = {show_up(self.epsilon)}>"

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    # ── as a number ──────────────────────────────────────────────────────────────────

    def __fpinq_value__(self) -> Any:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        if type(self.value) is int:
            return self.value
        raise TypeError("this answer is not a whole number: use round(answer)")

    def __index__(self) -> int:
        return int(self)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.value, digits)

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value == _value(other)

    def __lt__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value < _value(other)

    def __le__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value <= _value(other)

    def __gt__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value > _value(other)

    def __ge__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value >= _value(other)

    def __add__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value + _value(other)

    def __radd__(self, other: object) -> Any:
        return _value(other) + self.value

    def __sub__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value - _value(other)

    def __rsub__(self, other: object) -> Any:
        return _value(other) - self.value

    def __mul__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value * _value(other)

    def __rmul__(self, other: object) -> Any:
        return _value(other) * self.value

    def __truediv__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value / _value(other)

    def __rtruediv__(self, other: object) -> Any:
        return _value(other) / self.value

    def __floordiv__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value // _value(other)

    def __rfloordiv__(self, other: object) -> Any:
        return _value(other) // self.value

    def __mod__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value % _value(other)

    def __rmod__(self, other: object) -> Any:
        return _value(other) % self.value

    def __divmod__(self, other: object) -> Any:
        return divmod(self.value, _value(other))

    def __pow__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value ** _value(other)

    def __rpow__(self, other: object) -> Any:
        return _value(other) ** self.value

    def __trunc__(self) -> Any:
        return trunc(self.value)

    def __floor__(self) -> Any:
        return floor(self.value)

    def __ceil__(self) -> Any:
        return ceil(self.value)

    def __neg__(self) -> Any:
        return -self.value

    def __pos__(self) -> Any:
        return +self.value

    def __abs__(self) -> Any:
        return abs(self.value)


class Answers(Mapping[Any, Any]):
    """The answers of a parallel query, by key, in the order of the keys."""

    def __init__(self, answers: Mapping[Any, Any], epsilon: Fraction, charged: Charged) -> None:
        self._answers = dict(answers)
        self.epsilon = epsilon
        self.charged = charged

    def __getitem__(self, key: Any) -> Any:
        return self._answers[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __fpinq_value__(self) -> Any:
        return {key: answer.__fpinq_value__() for key, answer in self.items()}

    @property
    def values_only(self) -> dict[Any, Any]:
        """Key ↦ value, without the rest of the answers."""
        return {key: answer.__fpinq_value__() for key, answer in self.items()}

    def __repr__(self) -> str:
        width = max((len(str(key)) for key in self), default=0)
        return "\n".join(f"{key!s:<{width}}  {answer}" for key, answer in self.items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(str(key))}</td><td style='text-align:right'>{escape(str(answer))}</td></tr>"
            for key, answer in self.items()
        )
        return f"<table><thead><tr><th>key</th><th>answer</th></tr></thead><tbody>{rows}</tbody></table>"

    def rows(self, confidence: float | Fraction = 0.95) -> list[dict[str, Any]]:
        """One dict per key: key, value, standard_error, lower, upper."""
        rows: list[dict[str, Any]] = []
        for key, answer in self.items():
            if isinstance(answer, Answers):
                rows += [{"part": key, **row} for row in answer.rows(confidence)]
                continue
            low, high = answer.interval(confidence) or (None, None)
            rows.append(
                {
                    "key": key,
                    "value": answer.value,
                    "standard_error": answer.standard_error,
                    "lower": low,
                    "upper": high,
                }
            )
        return rows

    def to_pandas(self, confidence: float | Fraction = 0.95) -> Any:
        """A pandas DataFrame: key, value, standard_error, lower, upper."""
        return import_module("pandas").DataFrame(self.rows(confidence))

    def to_polars(self, confidence: float | Fraction = 0.95) -> Any:
        """A polars DataFrame: key, value, standard_error, lower, upper."""
        return import_module("polars").DataFrame(self.rows(confidence), strict=False)

    def plot(self, ax: Any = None, confidence: float | Fraction = 0.95) -> Any:
        """Bars with error bars, on a matplotlib axis. Needs the plot extra."""
        try:
            plt = import_module("matplotlib.pyplot")
        except ImportError:
            raise ProgramError("plot() needs matplotlib: pip install 'fpinq[plot]'") from None
        if ax is None:
            _, ax = plt.subplots()
        rows = self.rows(confidence)
        labels = [str(row["key"]) for row in rows]
        values = [float(row["value"]) for row in rows]
        low = [v - float(row["lower"]) for v, row in zip(values, rows, strict=True)]
        high = [float(row["upper"]) - v for v, row in zip(values, rows, strict=True)]
        ax.bar(labels, values, yerr=[low, high], capsize=3, color="#7a9cc6", ecolor="#33475b")
        ax.set_title(
            f"ε = {show_up(self.epsilon)}, bars: {float(confidence):.0%} intervals", fontsize="medium"
        )
        return ax


def _value(other: object) -> Any:
    return other.value if isinstance(other, Answer) else other


def show_number(number: Any, error: Any) -> str:
    """A number with thousands marked, to two digits of its error."""
    if type(number) is int and (error is None or type(error) is int):
        return f"{number:,}"
    number = float(number)
    if error is None:
        return f"{number:,.6g}"
    places = max(0, 1 - floor(log10(error))) if error and error < float("inf") else 2
    return f"{number:,.{min(places, 12)}f}"
