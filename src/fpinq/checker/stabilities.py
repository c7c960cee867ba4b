"""The tight stability of every transformation, found by exhaustive search over small bags.

One record at a time is enough: bags under symmetric difference are a path
metric, so a bound for one step is a bound for all.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations_with_replacement, product

from fpinq.checker.instances import KEYED, LINES, VISITS, bodies, instances, outer_bodies, outer_joins
from fpinq.checker.worlds import RECORDS, SCHEMA
from fpinq.engines.reference import Person, PersonBag, Record, Relation, compute, distance, transform
from fpinq.model.accounts import Stability
from fpinq.model.expressions import Schema
from fpinq.model.notation import show_transformation
from fpinq.model.plans import Flatten, RootTable, Term, Transformation, stability_on

Bag = tuple[Record, ...]


@dataclass(frozen=True)
class Finding:
    """A transformation, the stability it declares and the one the search found."""

    transformation: Transformation
    argument: int
    declared: Stability
    found: int
    grows: bool

    @property
    def verdict(self) -> str:
        """ "tight", "loose" (declared more than needed) or "UNSOUND" (declared less)."""
        if not isinstance(self.declared, int):
            return "tight" if self.grows else "loose"
        return (
            "tight" if self.found == self.declared else "loose" if self.found < self.declared else "UNSOUND"
        )

    @property
    def shown(self) -> str:
        """The transformation as the paper writes it."""
        return show_transformation(self.transformation)


def findings(largest: int = 4) -> Iterator[Finding]:
    """What the search finds for every instance and argument.

    In bags of at most `largest` records; of one less where there are two, for pairs of bags are many.
    """
    for transformation, schemas in chain(instances(), outer_joins()):
        yield from searched(transformation, schemas, largest + 1 - len(schemas))
    for body in chain(bodies(), outer_bodies()):
        flatten = Flatten(body)
        yield Finding(flatten, 0, flatten.stability[0], _worst_person(flatten), grows=False)


def pieces() -> int:
    """How many findings there will be."""
    of_tables = sum(len(transformation.stability) for transformation, _ in chain(instances(), outer_joins()))
    return of_tables + sum(1 for _ in chain(bodies(), outer_bodies()))


def searched(transformation: Transformation, schemas: Sequence[Schema], largest: int) -> Iterator[Finding]:
    """What the search finds for every argument of a transformation."""
    declared = stability_on(transformation, schemas)
    for argument, worst in enumerate(_worst(transformation, schemas, largest)):
        grows = worst[-1] > max(worst[:-1])
        yield Finding(transformation, argument, declared[argument], max(worst), grows)


def _records(schema: Schema) -> tuple[Record, ...]:
    return KEYED if schema == SCHEMA else LINES


@lru_cache
def _bags(schema: Schema, largest: int) -> list[Bag]:
    sizes = range(largest + 1)
    return [bag for size in sizes for bag in combinations_with_replacement(_records(schema), size)]


@lru_cache
def _steps(schema: Schema, largest: int) -> list[tuple[int, int]]:
    """Every bag and that bag with one record more, by their numbers."""
    bags = _bags(schema, largest)
    number = {tuple(sorted(bag, key=repr)): i for i, bag in enumerate(bags)}
    smaller = [(i, bag) for i, bag in enumerate(bags) if len(bag) < largest]
    return [(i, number[tuple(sorted((*bag, r), key=repr))]) for i, bag in smaller for r in _records(schema)]


def _worst(transformation: Transformation, schemas: Sequence[Schema], largest: int) -> list[list[int]]:
    """For every argument, how far one record more leads at the most, by the size of the largest bag."""
    bags = [_bags(schema, largest) for schema in schemas]
    numbers = list(product(*(range(len(each)) for each in bags)))
    results = {chosen: Counter(_on(transformation, schemas, bags, chosen).rows) for chosen in numbers}
    worst = [[0] * (largest + 1) for _ in schemas]
    for argument, schema in enumerate(schemas):
        others = [chosen for chosen in numbers if chosen[argument] == 0]
        for (before, after), rest in product(_steps(schema, largest), others):
            one, two = (_placed(rest, argument, number) for number in (before, after))
            size = max(len(each[number]) for each, number in zip(bags, two, strict=True))
            if results[one] != results[two]:
                worst[argument][size] = max(worst[argument][size], _apart(results[one], results[two]))
    return worst


def _on(
    transformation: Transformation,
    schemas: Sequence[Schema],
    bags: Sequence[list[Bag]],
    chosen: tuple[int, ...],
) -> Relation:
    tables = zip(schemas, bags, chosen, strict=True)
    return transform(transformation, *(Relation(schema, each[number]) for schema, each, number in tables))


def _placed(rest: tuple[int, ...], argument: int, number: int) -> tuple[int, ...]:
    return (*rest[:argument], number, *rest[argument + 1 :])


def _apart(left: Counter[Record], right: Counter[Record]) -> int:
    return sum(abs(left[record] - right[record]) for record in left.keys() | right.keys())


# ── persons ──────────────────────────────────────────────────────────────────────────


def _worst_person(flatten: Flatten) -> int:
    """Adding a person adds what the body gives for that person; nobody else is touched."""
    plan = Term(flatten, (RootTable("P"),))
    somebody = _person(RECORDS[:1], RECORDS)
    before = compute(plan, {"P": PersonBag(VISITS, (somebody,))})
    worst = 0
    for people, visits in product(_bags(SCHEMA, 2), _bags(SCHEMA, 4)):
        joined = PersonBag(VISITS, (somebody, _person(people, visits)))
        worst = max(worst, distance(before, compute(plan, {"P": joined})))
    return worst


def _person(people: Sequence[Record], visits: Sequence[Record]) -> Person:
    return {"people": Relation(SCHEMA, tuple(people)), "visits": Relation(SCHEMA, tuple(visits))}
