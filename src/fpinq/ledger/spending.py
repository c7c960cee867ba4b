"""Who has spent what of which data set, when, and what is left of their caps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from fpinq.ledger.entries import Line, body_of, parsed
from fpinq.model.books import FOR_KEYS
from fpinq.model.events import Registered, Took, Upgraded
from fpinq.model.notation import show_action
from fpinq.model.semantics import Rule

ZERO = Fraction(0)


@dataclass
class Spending:
    """What one analyst has spent of one data set; analyst None is a program of the owner's."""

    analyst: str | None
    root: str
    questions: int = 0
    charged: Fraction = ZERO
    last: str = ""
    cap: Fraction | None = None

    @property
    def left(self) -> Fraction | None:
        """What is left of their cap."""
        return None if self.cap is None else self.cap - self.charged


@dataclass
class Spendings:
    """The fold over entries: spending by analyst and data set."""

    roots: dict[str, Registered] = field(default_factory=dict)
    each: dict[tuple[str | None, str], Spending] = field(default_factory=dict)

    def take(self, stored: Line) -> None:
        """One more entry."""
        match body_of(stored):
            case Registered() as registered:
                self.roots[registered.name] = registered
            case Took(analyst=analyst, charged=charged):
                for root in charged:
                    found = self._of(analyst, root)
                    found.questions += 1
                    found.charged += charged[root]
                    found.last = at(stored)
            case Upgraded(spent=spent):
                for root, by in spent.items():
                    for analyst, amount in by.items():
                        if analyst:
                            self._of(analyst, root).charged += amount

    def _of(self, analyst: str | None, root: str) -> Spending:
        found = self.each.get((analyst, root))
        if found is None:
            cap = self._cap(analyst, root)
            found = self.each[analyst, root] = Spending(analyst, root, cap=cap)
        return found

    def _cap(self, analyst: str | None, root: str) -> Fraction | None:
        """Of a data set, or of its δ for keys, which is charged under a name of its own."""
        if root in self.roots:
            return self.roots[root].cap_of(analyst)
        owner = self.roots.get(root.removesuffix(FOR_KEYS))
        return None if owner is None else owner.keys_cap_of(analyst)


def spendings(entries: Iterable[Line]) -> list[Spending]:
    """Spending by analyst and data set, in the order in which they first asked."""
    found = Spendings()
    for stored in entries:
        found.take(stored)
    return list(found.each.values())


def charges(entries: Iterable[Line]) -> Iterator[tuple[int, str, str | None, str, dict[str, Fraction]]]:
    """Every charged or refused query: its number, when, who, what, and what it cost each data set."""
    for stored in entries:
        body = body_of(stored)
        if isinstance(body, Took) and (body.charged or body.rule == Rule.QUERY_BOTTOM):
            yield stored.seq, at(stored), body.analyst, show_action(body.action), dict(body.charged)


def at(stored: Line) -> str:
    """When an entry was written."""
    return str(parsed(stored).get("at", ""))[:19]
