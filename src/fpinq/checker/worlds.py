"""The databases of the check: two roots, and every pair of neighbours in a small world.

- tiny: two tables of the same three records, bags of up to three of them;
- nulls: the same, with a null in the key and in the value;
- many: bags of up to five records of one key, one beyond every truncation of the scope;
- people: a root whose records are persons, and one of lines of text.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from fpinq.engines.reference import Person, PersonBag, Record, Relation, order
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import Persons, Shape

ROOTS = ("A", "B")
SCHEMA = Schema.of({"k": Type.INT64, "v": Type.INT64})
RECORDS: tuple[Record, ...] = ((0, 0), (0, 1), (1, 0))
NULLS: tuple[Record, ...] = ((None, 0), (0, None), (0, 0))
ONE_KEY: tuple[Record, ...] = ((0, 0), (0, 1))
PEOPLE = Persons("k", (("visits", SCHEMA),))
WORDS = Schema.of({"words": Type.STRING})
LINES: tuple[Record, ...] = (("a b",), ("b",), (None,))

Bag = tuple[Record, ...]
Table = Relation | PersonBag


@dataclass(frozen=True)
class Neighbours:
    """Two databases, and how far apart each root is."""

    left: dict[str, Table]
    right: dict[str, Table]
    apart: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many records there are on the left."""
        return sum(len(records_of(table)) for table in self.left.values())


@dataclass(frozen=True)
class World:
    """The public shapes of the two roots, and the pairs of neighbours."""

    shapes: tuple[Shape, Shape]
    neighbours: Callable[[], list[Neighbours]]


def records_of(table: Table) -> Sequence[Record | Person]:
    """The records of a root: rows, or persons."""
    return table.persons if isinstance(table, PersonBag) else table.rows


def bags(largest: int, records: Sequence[Record] = RECORDS) -> list[Bag]:
    """Every bag of some records, small ones first."""
    return [bag for n in range(largest + 1) for bag in combinations_with_replacement(records, n)]


def neighbours(largest: int = 3, records: tuple[Record, ...] = RECORDS) -> list[Neighbours]:
    """Pairs that differ in one record of a root, or in one record of each, small ones first."""
    edges = [
        (_rows(bag), _rows(tuple(sorted((*bag, r), key=order))))
        for bag in bags(largest - 1, records)
        for r in records
    ]
    beside = records * (largest // 2)
    return _pairs(edges, edges, [_rows(()), _rows(records[:1]), _rows(beside)])


def _people() -> list[Neighbours]:
    """A person more, with up to three visits, and a line more: each beside up to one other."""
    some = [_person(bag) for bag in bags(3)]
    crowds: list[tuple[Person, ...]] = [(), (some[1],), (some[-1],)]
    of_people = [(_persons(crowd), _persons((*crowd, one))) for crowd in crowds for one in some]
    of_lines = [(_lines(bag), _lines((*bag, line))) for bag in bags(1, LINES) for line in LINES]
    return _pairs(of_people, of_lines, [_persons(()), _persons(some[1:3])], [_lines(()), _lines(LINES)])


def _pairs(
    of_left: Sequence[tuple[Table, Table]],
    of_right: Sequence[tuple[Table, Table]],
    left_still: Iterable[Table],
    right_still: Iterable[Table] | None = None,
) -> list[Neighbours]:
    still = list(left_still), list(left_still if right_still is None else right_still)
    pairs = [Neighbours(_database(a, b), _database(a2, b), (1, 0)) for a, a2 in of_left for b in still[1]]
    pairs += [Neighbours(_database(b, a), _database(b, a2), (0, 1)) for a, a2 in of_right for b in still[0]]
    both = [(left, right) for left in of_left for right in of_right[:4]]
    pairs += [Neighbours(_database(a, b), _database(a2, b2), (1, 1)) for (a, a2), (b, b2) in both]
    return sorted(pairs, key=lambda pair: pair.size)


def _rows(bag: Bag) -> Relation:
    return Relation(SCHEMA, bag)


def _lines(bag: Bag) -> Relation:
    return Relation(WORDS, bag)


def _person(visits: Bag) -> Person:
    return {"visits": _rows(visits)}


def _persons(persons: Sequence[Person]) -> PersonBag:
    return PersonBag(PEOPLE, tuple(persons))


def _database(*tables: Table) -> dict[str, Table]:
    return dict(zip(ROOTS, tables, strict=True))


WORLDS = {
    "tiny": World((SCHEMA, SCHEMA), neighbours),
    "nulls": World((SCHEMA, SCHEMA), lambda: neighbours(3, NULLS)),
    "many": World((SCHEMA, SCHEMA), lambda: neighbours(5, ONE_KEY)),
    "people": World((PEOPLE, WORDS), _people),
}
