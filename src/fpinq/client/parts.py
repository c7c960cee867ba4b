"""Parts: the mapping that `partition` gives."""

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from fpinq.client.algebra import derive
from fpinq.client.answers import Made as MadeByKey
from fpinq.client.facts import Bound, Facts, Made, Together
from fpinq.client.keys import Keyed, is_known, keyed, known_key
from fpinq.client.shown import even, html_table, visibly
from fpinq.client.systems import fresh_variable
from fpinq.model import actions
from fpinq.model.environments import Numbered
from fpinq.model.transformations import Partitioning, PartOf

if TYPE_CHECKING:
    from fpinq.client.table import Table

# Of more parts than this, so many are shown in a notebook.
MOST_SHOWN = 16

# A part, of its number and what it is called.
Part = Callable[[int, str], Facts]


@visibly
class Parts(Mapping[Any, "Table"]):
    """The parts of a table by key, in the order of the keys. Records with other keys are in no part.

    A part is made when it is looked at, and is the same as long as somebody has it.
    """

    def __init__(self, keyed: Keyed, part: "Callable[[int], Table]") -> None:
        self._keyed = keyed
        self._tables = MadeByKey(keyed.labels, _once(part))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """What the keys are of: one name, or several, and then a key is a tuple in that order."""
        return self._keyed.columns

    def __getitem__(self, key: Any) -> "Table":
        part: Table = self._tables[known_key(key, self.key_columns, self._tables, "part")]
        return part

    def __contains__(self, key: object) -> bool:
        return is_known(key, self.key_columns, self._tables)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def values(self) -> ValuesView["Table"]:
        """The parts, in order."""
        return self._tables.values()

    def items(self) -> ItemsView[Any, "Table"]:
        """The keys and their parts, in order."""
        return self._tables.items()

    def __repr__(self) -> str:
        parts = "1 part" if len(self) == 1 else f"{len(self):,} parts"
        first = [repr(key) for key in islice(self, MOST_SHOWN)]
        more = ["…"] if len(self) > MOST_SHOWN else []
        return f"<{parts} by {self._keyed.shown}: {', '.join([*first, *more])}>"

    def _repr_html_(self) -> str:
        several = len(self.key_columns) > 1
        lines = [
            [*map(repr, key if several else (key,)), f"parts[{key!r}]"] for key in islice(self, MOST_SHOWN)
        ]
        more = [["…", f"({len(self) - MOST_SHOWN:,} more)"]] if len(self) > MOST_SHOWN else []
        return html_table([*self.key_columns, "part"], even([*lines, *more]))


def _once(part: "Callable[[int], Table]") -> "Callable[[int], Table]":
    """The same part for the same number, as long as somebody has it."""
    held: WeakValueDictionary[int, Table] = WeakValueDictionary()

    def found(number: int) -> "Table":
        known: Table | None = held.get(number)
        return held.setdefault(number, part(number)) if known is None else known

    return found


def partition(table: Facts, by: object, keys: object, note: str = "") -> tuple[Keyed, Callable[[int], Facts]]:
    """What a table is partitioned by, and the part of each key, by the key's number; note is said of each."""
    found = replace(keyed(table.subject, by, keys), note=note)
    part = (_unbound if table.system is None else _bound)(table, found.by)
    return found, lambda number: part(number, found.part(found.labels[number]))


def _unbound(table: Facts, by: Partitioning) -> Part:
    """The parts of a public table that is in no system yet: each is a transformation of its own."""
    return lambda number, label: derive(PartOf(by, number), table, label=label, columns=table.columns)


def _bound(table: Facts, by: Partitioning) -> Part:
    """The parts of a table in a system: siblings, of which the most asked is charged."""
    assert isinstance(table.binding, Bound)
    system, variables = table.binding.system, Numbered(fresh_variable(), len(by.keys))
    table.act(actions.Partition(variables, table.binding.variable, by))
    bound, t = Together(system, variables), table

    def part(number: int, label: str) -> Facts:
        return Facts(t.schema, Made(label, (t,), (1,)), bound[number], t.roots, t.columns, t.budgets)

    return part
