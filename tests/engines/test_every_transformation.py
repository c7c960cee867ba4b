"""Every transformation, whole and inside persons, where rows repeat, keys are null and persons agree."""

from itertools import product
from typing import Any

import pytest

from engines.generators import person_bag
from engines.nasty import VALUES
from engines.test_conformance import bag
from fpinq.engines import reference
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type, checked_value
from fpinq.model.plans import Flatten, Persons, PersonTable, Plan, RootTable, Term, Transformation
from fpinq.model.transformations import (
    Aggregate,
    All,
    Concat,
    ConcatAll,
    Distinct,
    Except,
    Explode,
    First,
    GroupBy,
    GroupJoin,
    Identity,
    Intersect,
    Join,
    LimitPerKey,
    LiteralTable,
    Partitioning,
    PartOf,
    Select,
    SelectMany,
    SemiJoin,
    Take,
    Union,
    Unique,
    UniqueBy,
    Where,
)

SCHEMA = Schema.of({"id": Type.INT64, "k": Type.INT64, "s": Type.STRING})
# The same keys and whole records (but for the id) with several persons; repeated rows; nulls.
VISITS: list[Any] = [
    (person, k, s)
    for person, (k, s) in product([1, 2, 3, None], [(1, "a,b"), (1, "a,b"), (2, "c"), (None, "d"), (2, None)])
] + [(2, 7, "only"), (3, 1, "z"), (3, None, None)]
NOTES: list[Any] = [
    (1, 1, "x"),
    (1, 2, "y"),
    (2, 1, "x"),
    (2, 1, "x"),
    (4, 2, "a,b"),
    (4, None, "n"),
    (1, 1, "a,b"),
]
K, S, ID = Column("k"), Column("s"), Column("id")
ROW = (("k", K), ("s", S))
COUNTS = (("n", Aggregate("count")), ("t", Aggregate("sum", Clamp(K, 0, 5))))
EXTREMES = (("least", Aggregate("min", S)), ("mean", Aggregate("average", Clamp(K, 0, 5))))

OF_ONE: list[Transformation] = [
    Identity(),
    Where(Apply("equal", (K, Literal.of(1)))),
    Select(ROW),
    Distinct(),
    SelectMany((ROW, (("k", Literal.of(9)), ("s", S))), 2),
    Explode(Apply("split", (S, Literal.of(","))), "piece", 2),
    Take(2),
    GroupBy((("k", K),), COUNTS),
    GroupBy((), (*COUNTS, *EXTREMES)),
    GroupBy((("k", K), ("s", S)), ()),
    LimitPerKey(1, (K,)),
    LimitPerKey(2, (K, S)),
    LimitPerKey(2, ()),
    UniqueBy((K,)),
    UniqueBy(()),
    PartOf(Partitioning(K, (1, None)), 1),
]
TRUNCATIONS = [First(1), First(2), Unique(), All()]
BOTH = (("a", Column("l.s")), ("b", Column("r.s")))
OF_TWO: list[Transformation] = [
    Concat(),
    ConcatAll(2),
    *(how(bag) for how in (Union, Intersect, Except) for bag in (False, True)),
    *(SemiJoin((K,), (K,), keep) for keep in (False, True)),
    GroupJoin(("key",), (K,), (K,), COUNTS, (("m", Aggregate("count")), *EXTREMES)),
    GroupJoin(("key", "text"), (K, S), (K, S), (), ()),
    *(
        Join((K,), (K,), left, right, BOTH, outer)
        for left, right in product(TRUNCATIONS, repeat=2)
        for outer in (False, True)
    ),
    Join((K, S), (K, S), First(3), First(3), BOTH),
]
PUBLIC = Term(
    LiteralTable(Schema.of({"k": Type.INT64, "s": Type.STRING}), ((1, "a,b"), (1, "a,b"), (2, "p"))), ()
)
NOBODY = Term(LiteralTable(Schema.of({"k": Type.INT64, "s": Type.STRING}), ()), ())


def without_id(plan: Plan) -> Plan:
    return Term(Select(ROW), (plan,))


@pytest.fixture(scope="module")
def world(engine: Any) -> tuple[Any, reference.Database]:
    tables = {"visits": VISITS, "notes": NOTES}
    for name, rows in tables.items():
        dicts = [dict(zip(SCHEMA.names(), row, strict=True)) for row in rows]
        engine.add_root(name, dicts, schema=dict(SCHEMA.columns))
    sources = {n: [dict(zip(SCHEMA.names(), r, strict=True)) for r in rows] for n, rows in tables.items()}
    shape = engine.add_persons("people", sources, unit="id")
    assert shape == Persons("id", (("visits", SCHEMA), ("notes", SCHEMA)))
    database: dict[str, Any] = {
        name: reference.Relation(SCHEMA, tuple(rows)) for name, rows in tables.items()
    }
    database["people"] = person_bag(shape, tables)
    return engine, database


def check(world: tuple[Any, reference.Database], plan: Plan) -> None:
    engine, database = world
    assert bag(engine.rows(plan).rows) == bag(reference.compute(plan, database).rows)


def inside(body: Plan) -> Plan:
    return Term(Flatten(body), (RootTable("people"),))


@pytest.mark.parametrize("transformation", OF_ONE, ids=lambda t: t.op)
def test_a_transformation_of_one_table(world: Any, transformation: Transformation) -> None:
    check(world, Term(transformation, (RootTable("visits"),)))
    check(world, Term(transformation, (without_id(RootTable("visits")),)))
    for at_most in (1, 3, 100):
        rows = PersonTable("visits", at_most)
        check(world, inside(Term(transformation, (rows,))))
        check(world, inside(Term(transformation, (without_id(rows),))))
        check(world, Term(transformation, (without_id(inside(rows)),)))
    check(world, Term(transformation, (PUBLIC,)))
    check(world, inside(Term(transformation, (PUBLIC,))))
    check(world, inside(Term(transformation, (NOBODY,))))


@pytest.mark.parametrize("transformation", OF_TWO, ids=lambda t: t.op)
def test_a_transformation_of_two_tables(world: Any, transformation: Transformation) -> None:
    visits, notes = without_id(RootTable("visits")), without_id(RootTable("notes"))
    mine, also_mine = without_id(PersonTable("visits", 4)), without_id(PersonTable("notes", 3))
    whole: list[Plan] = [visits, notes, PUBLIC, NOBODY]
    for pair in product(whole, repeat=2):
        check(world, Term(transformation, pair))
    personal: list[Plan] = [mine, also_mine, PUBLIC, NOBODY]
    for pair in product(personal, repeat=2):
        check(world, inside(Term(transformation, pair)))


@pytest.mark.parametrize("type_", [t for t in Type if t is not Type.STRINGS], ids=lambda t: t.value)
def test_a_public_table_has_every_value_as_it_is(world: Any, type_: Type) -> None:
    values = [checked_value(value, type_) for value in VALUES[type_]]
    rows = [(i, a, b) for i, (a, b) in enumerate(zip(values, reversed(values), strict=True))]
    public = LiteralTable(Schema.of({"i": Type.INT64, "a": type_, "b": type_}), (*rows, (None, None, None)))
    check(world, Term(public, ()))
    alone = LiteralTable(Schema.of({"a": type_}), ((None,), (None,)))
    check(world, Term(alone, ()))
    check(world, Term(Concat(), (Term(alone, ()), Term(alone, ()))))


def test_a_unit_in_the_record_is_a_column_like_others(world: Any) -> None:
    mine = PersonTable("visits", 2)
    per_person = Term(GroupBy((("id", ID),), COUNTS), (mine,))
    check(world, inside(per_person))
    check(world, Term(GroupBy((("id", ID),), COUNTS), (inside(mine),)))
