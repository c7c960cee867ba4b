"""Answers: a released value that knows its ε, what it was charged and how far it may be off."""

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from copy import copy
from fractions import Fraction
from functools import cached_property
from html import escape
from itertools import islice
from json import dumps
from math import floor, log10
from os import PathLike
from typing import Any

from fpinq.client.amounts import Amount
from fpinq.client.arithmetic import AsNumber
from fpinq.client.columns import Columns, Confidence, Tabular, in_json, pivoted, written
from fpinq.client.keys import is_known, known_key
from fpinq.client.leaves import Leaf, as_columns, beside
from fpinq.client.shown import even, html_facts, html_table, text_table, visibly
from fpinq.client.spelling import show_at, show_up
from fpinq.client.uncertainty import ChosenPoint, Uncertainty, exact_confidence
from fpinq.model.notions import Rho
from fpinq.model.visible import visible

# With this confidence answers are printed, unless an interval of another was asked for.
PRINTED = Fraction(95, 100)

Charged = Fraction | Mapping[str, Fraction]

# Of more answers than this, so many of the first and of the last are shown.
MOST_SHOWN, FIRST_SHOWN, LAST_SHOWN = 100, 20, 5


@visibly
class Answer(Tabular, AsNumber):
    """A private answer. Prints as `1,234 ± 30`, the half-width of its 95 % interval.

    Where a number is expected, an answer is its value: float(), comparison and
    arithmetic give plain numbers. int() is for answers that are integers.
    """

    __slots__ = ("_uncertainty", "charged", "epsilon", "name", "note", "split", "unit")

    def __init__(
        self, value: Any, epsilon: Fraction | Rho, charged: Charged, uncertainty: Uncertainty
    ) -> None:
        self.value = value
        self.epsilon = epsilon
        self.charged = charged
        self.name, self.unit, self.note = "value", "", ""
        self.split: tuple[tuple[str, Fraction], ...] = ()
        self._uncertainty = uncertainty

    def called(self, name: str) -> "Answer":
        """This answer, whose column has this name."""
        self.name = name
        return self

    def of_what(self, unit: str, note: str) -> "Answer":
        """The same answer, which says what it counts, and what else might have been meant."""
        said = copy(self)
        said.unit, said.note = unit, note
        return said

    def asked_in(self, split: tuple[tuple[str, Fraction], ...]) -> "Answer":
        """The same answer, which says for what its ε was spent, if that was more than one query."""
        said = copy(self)
        said.split = tuple((what, Amount(amount)) for what, amount in split)
        return said

    @property
    def standard_error(self) -> float | None:
        """The standard deviation of the noise in the value; None for a value chosen among candidates."""
        return self._uncertainty.standard_error()

    @property
    def approximate(self) -> bool:
        """Whether the interval is an approximation. Those of counts and sums are exact."""
        return self._uncertainty.approximate

    @property
    def confidence(self) -> Fraction:
        """That of its interval, unless another is wanted: what was asked for with it, or 95 %."""
        bracket = self._uncertainty.bracket if isinstance(self._uncertainty, ChosenPoint) else None
        return PRINTED if bracket is None else bracket.confidence

    def interval(self, confidence: Confidence = None) -> tuple[Any, Any] | None:
        """Where the exact statistic is, with this confidence. It is free: only the mechanism is looked at.

        A quantile has none unless it was asked for (interval=0.95), since how far a
        rank is off in value depends on the data; a choice among candidates has none.
        """
        exact = self.confidence if confidence is None else exact_confidence(confidence)
        return self._uncertainty.interval(self.value, exact)

    def __str__(self) -> str:
        return f"{self._number()} {self.unit}".rstrip()

    def _number(self) -> str:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float | Fraction):
            return visible(str(self.value))
        if isinstance(self._uncertainty, ChosenPoint):
            return f"{show_number(self.value, None)}, {self._enclosed(self._uncertainty)}"
        if self.standard_error is None:
            return show_number(self.value, None)
        low, high = self.interval()  # type: ignore[misc]
        half = max(high - self.value, self.value - low)
        return f"{show_number(self.value, half)} ± {show_number(half, half)}"

    def _enclosed(self, chosen: ChosenPoint) -> str:
        """How far off a quantile is, in words: in value if that was asked for, else in ranks."""
        if (ends := self.interval()) is None:
            return f"± {chosen.ranks(PRINTED):,} ranks at {_percent(PRINTED)}"
        low, high = (show_number(end, None) for end in ends)
        return f"{low} to {high} at {_percent(self.confidence)}"

    def ranks(self, confidence: float | Fraction = 0.95) -> int | None:
        """By how many ranks a quantile is off at the most, with this confidence; None of other answers."""
        chosen = self._uncertainty
        return chosen.ranks(exact_confidence(confidence)) if isinstance(chosen, ChosenPoint) else None

    def __repr__(self) -> str:
        said = [f"{self}, {show_at(self.epsilon)}", *filter(None, (self._split_in_words(), self.note))]
        return f"<{'; '.join(said)}>"

    def _split_in_words(self) -> str:
        return " + ".join(f"{show_up(amount)} for {what}" for what, amount in self.split)

    def __format__(self, spec: str) -> str:
        value = visible(self.value) if isinstance(self.value, str) else self.value
        return format(value, spec) if spec else str(self)

    # ── elsewhere ────────────────────────────────────────────────────────────────────

    def leaves(self) -> Iterator[Leaf]:
        """The answer itself, under no key."""
        yield Leaf({}, {self.name: self})

    def columns(self, confidence: Confidence = None) -> Columns:
        """One row: the value, low, high and standard_error."""
        return as_columns(list(self.leaves()), confidence)

    def to_dict(self, confidence: Confidence = None) -> dict[str, Any]:
        """The value by its name, low, high, standard_error, ε and what was charged."""
        (row,) = self.rows(confidence)
        return row | _asked_at(self.epsilon) | {"charged": self.charged}

    def to_json(self, path: str | PathLike[str] | None = None, confidence: Confidence = None) -> str | None:
        """The same as a JSON object; ε and what was charged are exact, as texts."""
        exactly = {
            **{notion: _exactly(at) for notion, at in _asked_at(self.epsilon).items()},
            "charged": _exactly(self.charged),
        }
        return written(dumps(in_json(self.to_dict(confidence) | exactly), ensure_ascii=False), path)

    def pivot(self, values: str | None = None, confidence: Confidence = None) -> Any:
        """BadQuery: a single answer has no keys."""
        return pivoted(self.columns(confidence), (), (), values)

    def plot(self, ax: Any = None, confidence: Confidence = None, **style: Any) -> Any:
        """A bar with its interval, on a matplotlib axis. Needs the plot extra."""
        from fpinq.client.charts import draw  # needs matplotlib, which is slow to import

        return draw(self, ax, confidence, style)

    def _repr_html_(self) -> str:
        found = None if self.standard_error is None else self.interval()
        interval = (
            "" if found is None else " to ".join(show_number(end, found[1] - found[0]) for end in found)
        )
        facts = {
            self.name: str(self),
            "95 % interval": interval,
            **dict([show_at(self.epsilon).split(" = ")]),
            "charged": ", ".join(f"{show_up(v)} of {k}" for k, v in self.charged.items())
            if isinstance(self.charged, Mapping)
            else show_up(self.charged),
            "split": self._split_in_words(),
            "note": self.note,
        }
        return html_facts({name: fact for name, fact in facts.items() if fact})


class Made(Mapping[Any, Any]):
    """Answers by key, each made of its number when it is looked at."""

    def __init__(self, keys: Sequence[Any], make: Callable[[int], Any]) -> None:
        self._keys = keys
        self._make = make

    def __getitem__(self, key: Any) -> Any:
        if type(self._keys) is range and type(key) is int and key in self._keys:
            return self._make(self._keys.index(key))
        return self._make(self._numbers[key])

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return dict(zip(self._keys, range(len(self._keys)), strict=True))

    def __contains__(self, key: object) -> bool:
        return (type(self._keys) is range and type(key) is int and key in self._keys) or key in self._numbers

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __reversed__(self) -> Iterator[Any]:
        return iter(self._keys[::-1])

    def listed(self) -> Iterator[tuple[Any, Any]]:
        """Every key with its answer, in order."""
        return zip(self._keys, self.made(), strict=True)

    def made(self) -> Iterator[Any]:
        """Every answer, in order."""
        return map(self._make, range(len(self._keys)))

    def values(self) -> ValuesView[Any]:
        """Every answer: by its number, not looked up by its key."""
        return _Values(self)

    def items(self) -> ItemsView[Any, Any]:
        """Every key with its answer, likewise."""
        return _Items(self)


class _Values(ValuesView[Any]):
    def __init__(self, of: Made) -> None:
        super().__init__(of)
        self._of = of

    def __iter__(self) -> Iterator[Any]:
        return self._of.made()


class _Items(ItemsView[Any, Any]):
    def __init__(self, of: Made) -> None:
        super().__init__(of)
        self._of = of

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self._of.listed()


@visibly
class Answers(Tabular, Mapping[Any, Any]):
    """The answers of a parallel query, by key, in the order of the keys.

    `key_columns` names what the keys are of: one name, or several, and then a
    key is a tuple in that order.
    """

    # Whether each of them has a line of its own, under a key; or all are one line, by name.
    is_level = True
    # Whether the key columns are of one thing, a bin, which is not to be taken apart.
    is_one_key = False
    # The counts that found their keys, where a query did: its threshold, its δ, and what that was charged.
    found: "Answers | None" = None

    def __init__(
        self,
        answers: Mapping[Any, Any],
        epsilon: Fraction | Rho,
        charged: Charged,
        key_columns: tuple[str, ...] = ("key",),
    ) -> None:
        self._answers = answers if isinstance(answers, Made) else dict(answers)
        self.epsilon = epsilon
        self.charged = charged
        self.key_columns = key_columns
        self.name = ""

    def __getitem__(self, key: Any) -> Any:
        return self._answers[known_key(key, self.key_columns, self._answers, "answer")]

    def __contains__(self, key: object) -> bool:
        return is_known(key, self.key_columns, self._answers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __fpinq_value__(self) -> Any:
        return self.values_only

    def _listed(self) -> Iterable[tuple[Any, Any]]:
        return self._answers.listed() if isinstance(self._answers, Made) else self._answers.items()

    @property
    def values_only(self) -> dict[Any, Any]:
        """Key ↦ value, without the rest of the answers."""
        return {key: answer.__fpinq_value__() for key, answer in self._listed()}

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._answers)

    def called(self, name: str) -> "Answers":
        """These answers, whose column has this name."""
        self.name = name
        return self

    # ── shown ────────────────────────────────────────────────────────────────────────

    def shown_columns(self) -> tuple[str, ...]:
        """What stands above the keys, as they are shown."""
        return self.key_columns

    def shown_key(self, key: Any) -> tuple[str, ...]:
        """A key in words, column by column."""
        return tuple(visible(str(part)) for part in (key if len(self.key_columns) > 1 else (key,)))

    def lines(self, *, last: bool = False) -> Iterator[tuple[str, ...]]:
        """Keys and answers in words, line by line: from the first one, or back from the last."""
        for key in reversed(self) if last else self:
            shown, answer = self.shown_key(key), self[key]
            if isinstance(answer, Answers):
                yield from ((*shown, *line) for line in answer.lines(last=last))
            else:
                yield (*shown, str(answer))

    def _size(self) -> int:
        """How many lines that is."""
        nested = isinstance(next(iter(self.values()), None), Answers)
        if not nested:
            return len(self)
        return sum(answer._size() if isinstance(answer, Answers) else 1 for answer in self.values())

    def _header(self) -> list[str]:
        levels = self.levels()
        above = [name for level in levels for name in level.shown_columns()]
        answer = next(iter(levels[-1].values()), None)
        names = list(answer) if isinstance(answer, Answers) else [getattr(answer, "name", "value")]
        return [*above, *([levels[-1].name] if levels[-1].name else names)]

    def _shown(self) -> list[Sequence[str]]:
        """The lines; of very many, the first and the last."""
        size = self._size()
        if size <= MOST_SHOWN:
            return list(self.lines())
        left_out = ("…", f"({size - FIRST_SHOWN - LAST_SHOWN:,} more)")
        last = list(islice(self.lines(last=True), LAST_SHOWN))[::-1]
        return [*islice(self.lines(), FIRST_SHOWN), left_out, *last]

    @property
    def split(self) -> Any:
        """For what ε was spent in each part, where that was more than one query."""
        return getattr(next(iter(self.values()), None), "split", ())

    def _footer(self) -> str:
        """What is said once of all of them: how several queries shared ε."""
        return "" if isinstance(self.split, tuple) else str(self.split)

    def __repr__(self) -> str:
        lines = even(self._shown())
        table = text_table(lines if len(self._header()) <= 2 else even([self._header(), *lines]))
        return "\n".join(filter(None, (table, self._footer())))

    def shown(self) -> tuple[list[str], list[list[str]], str]:
        """What stands above the lines, all lines in words, and what is said once of all of them."""
        return self._header(), even(list(self.lines())), self._footer()

    def _repr_html_(self) -> str:
        below = f"<p>{escape(self._footer())}</p>" if self._footer() else ""
        return html_table(self._header(), even(self._shown())) + below

    # ── elsewhere ────────────────────────────────────────────────────────────────────

    def levels(self) -> "tuple[Answers, ...]":
        """These answers, then those that the first of them is made of, and so on."""
        inner = next(iter(self.values()), None)
        return (self, *inner.levels()) if isinstance(inner, Answers) and inner.is_level else (self,)

    def keyed(self, key: Any) -> dict[str, Any]:
        """A key, column by column."""
        if len(self.key_columns) == 1:
            return {self.key_columns[0]: key}
        return dict(zip(self.key_columns, key, strict=True))

    def leaves(self) -> Iterator[Leaf]:
        """Every single answer, under its keys."""
        for key, answer in self._listed():
            keys = self.keyed(key)
            for leaf in answer.leaves():
                named = leaf.answers if leaf.keys or not self.name else {self.name: answer}
                yield Leaf(beside(keys, leaf.keys), named)

    def columns(self, confidence: Confidence = None) -> Columns:
        """A column for each key, then the value by its name, low, high and standard_error."""
        return as_columns(list(self.leaves()), confidence)

    def pivot(self, values: str | None = None, confidence: Confidence = None) -> Any:
        """A pandas DataFrame with the last key across and the others down; values says of which column."""
        *above, last = self.levels()
        across = len(last.key_columns) if above or last.is_one_key else 1
        keys = [name for level in (*above, last) for name in level.key_columns]
        return pivoted(self.columns(confidence), keys[:-across], keys[-across:], values)

    def plot(self, ax: Any = None, confidence: Confidence = None, **style: Any) -> Any:
        """Draw the answers with their intervals of this confidence, on a matplotlib axis (or a new one).

        Bars for keys, bars at their places for bins, steps for distributions, a
        heat map for two keys. kind="bars" draws two keys as groups of bars, with
        a legend. All else is passed on to matplotlib: color=…, alpha=…, cmap=….
        Needs the plot extra.
        """
        from fpinq.client.charts import draw  # needs matplotlib, which is slow to import

        return draw(self, ax, confidence, style)


def _percent(confidence: Fraction) -> str:
    return f"{float(100 * confidence):.6g} %"


def show_number(number: Any, error: Any) -> str:
    """A number with thousands marked, to two digits of its error."""
    if type(number) is int and (error is None or type(error) is int):
        return f"{number:,}"
    number = float(number)
    if error is None:
        return f"{number:,.6g}"
    places = max(0, 1 - floor(log10(error))) if error and error < float("inf") else 2
    return f"{number:,.{min(places, 12)}f}"


def _asked_at(at: Fraction | Rho) -> dict[str, Any]:
    """What was asked at, by its notion."""
    return {"rho": Amount(at.amount)} if isinstance(at, Rho) else {"epsilon": Amount(at)}


def _exactly(charged: Charged) -> object:
    if isinstance(charged, Mapping):
        return {root: _exactly(amount) for root, amount in charged.items()}
    return str(Fraction(charged.numerator, charged.denominator))  # an amount prints as a decimal
