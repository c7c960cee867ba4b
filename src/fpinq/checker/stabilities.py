"""The tight stability of every transformation, found by exhaustive search over small bags.

One record at a time is enough: bags under symmetric difference are a path
metric, so a bound for one step is a bound for all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from fpinq.checker.scope import BINARY, LITERAL, RECORDS, SCHEMA, UNARY
from fpinq.engines.reference import Person, PersonBag, Record, Relation, compute, distance, transform
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.notation import show_transformation
from fpinq.model.plans import Flatten, Persons, PersonTable, Plan, RootTable, Term, Transformation
from fpinq.model.sources import Stability
from fpinq.model.transformations import (
    Aggregate,
    Except,
    Explode,
    First,
    GroupBy,
    GroupJoin,
    Identity,
    Join,
    LimitPerKey,
    Partitioning,
    PartOf,
    SelectMany,
    SemiJoin,
    Take,
    Union,
    Unique,
    Where,
)

K, V = Column("k"), Column("v")
# A null key among them: it is a group of its own and joins nothing.
KEYED: tuple[Record, ...] = (*RECORDS, (None, 0))
WORDS = Schema.of({"words": Type.STRING})
VISITS = Persons("id", (("people", SCHEMA), ("visits", SCHEMA)))


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


def instances() -> Iterator[tuple[Transformation, Sequence[Schema]]]:
    """Every transformation of the registry, with parameters small enough to search."""
    yield LITERAL, ()
    for transformation in UNARY.values():
        yield transformation, (SCHEMA,)
    yield Take(3), (SCHEMA,)
    yield LimitPerKey(2, (K,)), (SCHEMA,)
    yield SelectMany(((("k", K),), (("k", V),), (("k", K),)), 2), (SCHEMA,)
    yield GroupBy((("k", K),), (("total", Aggregate("sum", Clamp(V, 0, 1))),)), (SCHEMA,)
    yield GroupBy((), (("largest", Aggregate("max", V)),)), (SCHEMA,)
    yield PartOf(Partitioning(K, (0, 1)), 0), (SCHEMA,)
    yield Explode(Apply("split", (Column("words"), Literal.of(" "))), "word", 2), (WORDS,)
    for transformation in BINARY.values():
        if not isinstance(transformation, GroupJoin):
            yield transformation, (SCHEMA, SCHEMA)
    count = Aggregate("count")
    yield GroupJoin(("k",), (K,), (K,), (("left", count),), (("right", count),)), (SCHEMA, SCHEMA)


def findings(largest: int = 4) -> Iterator[Finding]:
    """What the search finds for every instance and argument.

    In bags of at most `largest` records; of one less where there are two, for pairs of bags are many.
    """
    for transformation, schemas in instances():
        most = largest if len(schemas) == 1 else largest - 1
        for argument, declared in enumerate(transformation.stability):
            by_size = [_worst(transformation, schemas, argument, size) for size in (most - 1, most)]
            yield Finding(transformation, argument, declared, by_size[-1], by_size[-1] > by_size[0])
    for body in _bodies():
        flatten = Flatten(body)
        yield Finding(flatten, 0, flatten.stability[0], _worst_person(flatten), grows=False)


def _records(schema: Schema) -> tuple[Record, ...]:
    return KEYED if schema == SCHEMA else (("a b",), ("a",), ("b a b",))


def _bags(schema: Schema, largest: int) -> list[Relation]:
    return [
        Relation(schema, bag)
        for size in range(largest + 1)
        for bag in combinations_with_replacement(_records(schema), size)
    ]


def _worst(transformation: Transformation, schemas: Sequence[Schema], argument: int, largest: int) -> int:
    worst = 0
    others = [[None] if i == argument else _bags(schema, largest) for i, schema in enumerate(schemas)]
    for bag in _bags(schemas[argument], largest - 1):
        for record in _records(schemas[argument]):
            larger = Relation(bag.schema, (*bag.rows, record))
            for rest in _product(others):
                before = transform(transformation, *_placed(rest, argument, bag))
                after = transform(transformation, *_placed(rest, argument, larger))
                worst = max(worst, distance(before, after))
    return worst


def _product(choices: Sequence[Sequence[Relation | None]]) -> Iterator[tuple[Relation | None, ...]]:
    if not choices:
        yield ()
        return
    for first in choices[0]:
        for rest in _product(choices[1:]):
            yield (first, *rest)


def _placed(rest: Sequence[Relation | None], argument: int, bag: Relation) -> Iterator[Relation]:
    for i, table in enumerate(rest):
        yield bag if i == argument or table is None else table


# ── persons ──────────────────────────────────────────────────────────────────────────


def _bodies() -> Iterator[Plan]:
    people, visits = PersonTable("people", 1), PersonTable("visits", 3)
    same = Apply("equal", (V, Literal.of(0)))
    yield Term(Identity(), (visits,))
    yield Term(Where(same), (visits,))
    yield Term(GroupBy((), (("visits", Aggregate("count")),)), (visits,))
    yield Term(Take(2), (visits,))
    record = (("k", Column("l.k")), ("v", Column("r.v")))
    yield Term(Join((K,), (K,), First(9), First(9), record), (people, visits))
    yield Term(Union(bag=True), (people, visits))
    yield Term(Except(), (visits, people))
    yield Term(SemiJoin((K,), (K,)), (visits, people))
    yield Term(Join((K,), (K,), Unique(), First(2), record), (people, visits))
    yield Term(SelectMany(((("k", K),), (("k", V),)), 2), (visits,))
    yield Term(LimitPerKey(1, (K,)), (visits,))
    yield Term(LimitPerKey(2, ()), (visits,))
    yield Term(GroupBy((("v", V),), (("n", Aggregate("count")),)), (PersonTable("visits", 2),))
    count = (("n", Aggregate("count")),)
    yield Term(GroupJoin(("v",), (V,), (V,), count, ()), (people, PersonTable("visits", 1)))


def _worst_person(flatten: Flatten) -> int:
    """Adding a person adds what the body gives for that person; nobody else is touched."""
    plan = Term(flatten, (RootTable("P"),))
    somebody = _person(RECORDS[:1], RECORDS)
    worst = 0
    for people in _bags(SCHEMA, 2):
        for visits in _bags(SCHEMA, 4):
            joined = PersonBag(VISITS, (somebody, _person(people.rows, visits.rows)))
            before = compute(plan, {"P": PersonBag(VISITS, (somebody,))})
            worst = max(worst, distance(before, compute(plan, {"P": joined})))
    return worst


def _person(people: Sequence[Record], visits: Sequence[Record]) -> Person:
    return {"people": Relation(SCHEMA, tuple(people)), "visits": Relation(SCHEMA, tuple(visits))}
