"""History: what this program has asked, when, for how much, and what that left.

Notes of the program's own, in its own words, kept for each system as long as it
runs; the same embedded and over HTTP. What everybody ever asked is in the ledger.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from threading import RLock
from typing import Any, NamedTuple, overload
from weakref import WeakKeyDictionary

from fpinq.client.amounts import Amount
from fpinq.client.columns import Columns, Confidence, Tabular
from fpinq.client.shown import html_table, text_table, visibly
from fpinq.client.systems import System
from fpinq.model.notions import Rho

ZERO = Fraction(0)
# So many amounts are remembered: of many queries, or of few that were charged to many roots.
MOST_AMOUNTS = 20_000


class Asked(NamedTuple):
    """A query that was charged: when, of which table, what, at which ε, and what it cost each root.

    Of one that failed after its charge it is not known what it cost: charged is None.
    """

    at: float  # in seconds since 1970
    table: str
    what: str
    epsilon: Fraction | Rho
    roots: Collection[str]
    charged: Mapping[str, Fraction] | None

    def cost(self, root: str) -> Fraction:
        """What it cost a root, as far as that is known."""
        return ZERO if self.charged is None else self.charged.get(root, ZERO)


class Notes:
    """What was asked of a system, oldest first; of very much the oldest is forgotten."""

    def __init__(self) -> None:
        self._asked: deque[Asked] = deque()
        self._amounts = 0
        self._lock = RLock()  # a handler of a signal may ask while a query is noted

    def add(self, asked: Asked) -> None:
        """One more."""
        with self._lock:
            self._asked.append(asked)
            self._amounts += len(asked.roots) + 1
            while self._amounts > MOST_AMOUNTS and len(self._asked) > 1:
                self._amounts -= len(self._asked.popleft().roots) + 1

    def of(self, roots: Mapping[str, str]) -> list[Asked]:
        """What was asked of some roots."""
        with self._lock:
            return [asked for asked in self._asked if not roots.keys().isdisjoint(asked.roots)]


_notes: WeakKeyDictionary[System, Notes] = WeakKeyDictionary()
_making = RLock()


def notes_of(system: System) -> Notes:
    """The notes of a system."""
    found = _notes.get(system)
    if found is None:
        with _making:
            found = _notes.setdefault(system, Notes())
    return found


@visibly
class History(Tabular, Sequence[Mapping[str, Any]]):
    """What was asked of a table's roots, oldest first: a row for each query.

    `left` is what is left now and what was charged since: exact as long as
    nobody else spends of the same budget.
    """

    def __init__(
        self, asked: Sequence[Asked], labels: Mapping[str, str], left: Mapping[str, Fraction]
    ) -> None:
        self._rows = list(_rows(asked, labels, left))[::-1]
        amounts = [""] if len(labels) == 1 else [f"_{label}" for label in labels.values()]
        each = [f"{what}{of}" for of in amounts for what in ("charged", "left")]
        self._names = ["at", "table", "asked", "epsilon", *each]

    @overload
    def __getitem__(self, number: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, number: int | slice) -> Any:
        return self._rows[number]

    def __len__(self) -> int:
        return len(self._rows)

    def columns(self, confidence: Confidence = None) -> Columns:
        """The rows, column by column; there is nothing uncertain in them."""
        numbers = frozenset(self._names[3:])
        return Columns({name: [row[name] for row in self] for name in self._names}, numbers)

    def _lines(self) -> list[list[str]]:
        return [[_shown(row[name]) for name in self._names] for row in self]

    def __repr__(self) -> str:
        return text_table([self._names, *self._lines()]) if self._rows else "nothing was asked yet"

    def _repr_html_(self) -> str:
        return html_table(self._names, self._lines())


def _rows(
    asked: Sequence[Asked], labels: Mapping[str, str], left: Mapping[str, Fraction]
) -> Iterator[dict[str, Any]]:
    """A row for each query, the last one first: going back, what it cost was still there."""
    left = dict(left)
    for one in reversed(asked):
        spent = one.epsilon if isinstance(one.epsilon, Rho) else Amount(one.epsilon)
        at = datetime.fromtimestamp(one.at, UTC)
        row: dict[str, Any] = {"at": at, "table": one.table, "asked": one.what, "epsilon": spent}
        for root, label in labels.items():
            of = "" if len(labels) == 1 else f"_{label}"
            row[f"charged{of}"] = None if one.charged is None else Amount(one.cost(root))
            row[f"left{of}"] = Amount(left[root])
            left[root] += one.cost(root)
        yield row


def _shown(fact: object) -> str:
    if isinstance(fact, datetime):
        return f"{fact:%Y-%m-%d %H:%M:%S}"
    return "unknown: it failed" if fact is None else str(fact)
