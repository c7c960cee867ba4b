"""Answers by name: those of several queries that were asked at once, and how ε was split among them."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from fpinq.client.amounts import Amount
from fpinq.client.answers import Answers, Charged
from fpinq.client.leaves import Leaf
from fpinq.client.shown import even, text_table, visibly
from fpinq.client.spelling import show_at
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Rho
from fpinq.model.visible import visible


@visibly
@dataclass(frozen=True)
class Split:
    """Which ε each measurement was asked at, and for which names."""

    epsilon: Fraction | Rho
    parts: tuple[tuple[tuple[str, ...], Fraction | Rho], ...]

    def of(self, name: str) -> Fraction | Rho:
        """The ε that a name was asked at, perhaps together with others."""
        return next(epsilon for names, epsilon in self.parts if name in names)

    def __str__(self) -> str:
        each = ", ".join(f"{_amount(at)} for {_listed(names)}" for names, at in self.parts)
        return f"{show_at(self.epsilon)}: {each}"


def _amount(at: Fraction | Rho) -> Amount:
    return Amount(at.amount if isinstance(at, Rho) else at)


def _listed(names: tuple[str, ...]) -> str:
    *others, last = map(visible, names)
    return f"{', '.join(others)} and {last} together" if others else last


@visibly
class Named(Answers):
    """The answers of several queries by name: `answers["age"]`, or `answers.age`."""

    is_level = False

    def __init__(
        self, answers: Mapping[str, Any], epsilon: Fraction | Rho, charged: Charged, split: Split
    ) -> None:
        super().__init__(answers, epsilon, charged, ("query",))
        self._split = split

    @property
    def split(self) -> Split:
        """How ε was shared."""
        return self._split

    def lines(self, *, last: bool = False) -> Iterator[tuple[str, ...]]:
        """All of them in words, in one line."""
        yield tuple(_in_one_line(answer) for answer in self.values())

    def leaves(self) -> Iterator[Leaf]:
        """All of them together; each after its name, if one has keys of its own."""
        if not any(isinstance(answer, Answers) for answer in self.values()):
            yield Leaf({}, dict(self))
            return
        for name, answer in self.items():
            for leaf in answer.leaves():
                yield from (Leaf({"query": name, **leaf.keys}, {name: one}) for one in leaf.answers.values())

    def _size(self) -> int:
        return 1

    def _header(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        lines = [(name, _in_one_line(answer)) for name, answer in self.items()]
        return f"{text_table(even(lines))}\n{self.split}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self:
            raise AttributeError(f"no query is named {name!r}")
        return self[name]


def _in_one_line(answer: Any) -> str:
    if not isinstance(answer, Answers):
        return str(answer)
    return "; ".join(f"{', '.join(answer.shown_key(key))}: {one}" for key, one in answer.items())
