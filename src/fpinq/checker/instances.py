"""Every transformation, with parameters of every kind on which its constant depends.

Where a constant depends on a parameter, all kinds of it are here, and one
beyond the last special one: no key, one, several, one that is computed, the
whole record; no aggregates, one of each function, on one side, on the other,
on both; a first 1, 2 and 3; every truncation with every other; records that
see both sides, one, the keys only, nothing. The bags of the search are large
enough for each to show.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from fpinq.checker.scope import BINARY, LITERAL, UNARY
from fpinq.checker.worlds import RECORDS, SCHEMA
from fpinq.engines.reference import Record
from fpinq.model.clamps import MAX_GRID, Clamp
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.plans import Persons, PersonTable, Plan, Term, Transformation
from fpinq.model.transformations import (
    Aggregate,
    Aggregates,
    All,
    ConcatAll,
    Distinct,
    Except,
    Explode,
    First,
    GroupBy,
    GroupJoin,
    Identity,
    Join,
    LimitPerKey,
    LiteralTable,
    Partitioning,
    PartOf,
    SelectMany,
    SemiJoin,
    Take,
    Truncation,
    Union,
    Unique,
    UniqueBy,
    Where,
)

K, V = Column("k"), Column("v")
# A null key among them: it is a group of its own and joins nothing.
KEYED: tuple[Record, ...] = (*RECORDS, (None, 0))
WORDS = Schema.of({"words": Type.STRING})
LINES: tuple[Record, ...] = (("a b",), ("a",), ("b a b",), ("a b a b",), (None,))
TWO = LiteralTable(SCHEMA, ((0, 0), (0, 1)))
VISITS = Persons("id", (("people", SCHEMA), ("visits", SCHEMA)))


def _halved(value: Expression) -> Expression:
    return Apply("floor_divide", (value, Literal.of(2)))


def _next(value: Expression) -> Expression:
    return Apply("add", (value, Literal.of(1)))


KEYS: dict[str, tuple[Expression, ...]] = {
    "one": (K,),
    "computed": (_halved(K),),
    "the whole record": (V, K),
    "more than the record": (K, _halved(K), V),
}
_LEFT, _RIGHT = (tuple(Column(f"{side}.{name}") for name in ("k", "v")) for side in "lr")
SEEN: dict[str, tuple[tuple[str, Expression], ...]] = {
    "both sides": (("a", _LEFT[1]), ("b", _RIGHT[1])),
    "the left": (("a", _LEFT[1]), ("b", _RIGHT[0])),
    "the right": (("b", Apply("add", (_LEFT[0], _RIGHT[1]))),),
    "the keys": (("a", _LEFT[0]), ("b", _next(_RIGHT[0]))),
    "the computed keys": (("a", _halved(_LEFT[0])), ("b", _next(_halved(_RIGHT[0])))),
    "nothing": (("a", Literal.of(0)),),
}
_HUGE = Apply("multiply", (V, Literal.of(MAX_GRID)))
TRUNCATIONS: tuple[Truncation, ...] = (First(1), First(2), Unique(), All())
COUNT: Aggregates = (("n", Aggregate("count")),)
AGGREGATES: tuple[Aggregates, ...] = (
    (),
    COUNT,
    (("n", Aggregate("sum", Clamp(V, 0, 1))),),
    # The average of one is told by its key, and that of two is not: their sum is too large to be exact.
    (("n", Aggregate("average", Clamp(_HUGE, 0, MAX_GRID))),),
    (("n", Aggregate("min", V)),),
    (("n", Aggregate("max", V)), ("m", Aggregate("min", K))),
    (("n", Aggregate("max", K)), ("m", Aggregate("min", _next(K)))),
    (("n", Aggregate("max", _halved(K))),),
)

Instance = tuple[Transformation, Sequence[Schema]]


def instances() -> Iterator[Instance]:
    """Every transformation of the registry but flatten, with its parameters and its arguments' schemas."""
    yield LITERAL, ()
    for transformation in (*UNARY.values(), *_of_one()):
        yield transformation, (SCHEMA,)
    for at_most in (1, 2, 3):
        yield Explode(Apply("split", (Column("words"), Literal.of(" "))), "word", at_most), (WORDS,)
    for transformation in (*BINARY.values(), *_group_joins(), *_joins()):
        yield transformation, (SCHEMA, SCHEMA)
    for keys, keep in product(KEYS.values(), (True, False)):
        yield SemiJoin(keys, keys, keep), (SCHEMA, SCHEMA)
    yield ConcatAll(3), (SCHEMA,) * 3


def _of_one() -> Iterator[Transformation]:
    yield Take(3)
    yield SelectMany(((("k", K),), (("k", V),), (("k", K),)), 2)
    yield SelectMany(((("k", K),), (("k", K),), (("k", K),)), 3)
    yield PartOf(Partitioning(K, (0, 1)), 0)
    for keys in ((), *KEYS.values()):
        yield UniqueBy(keys)
        yield from (LimitPerKey(at_most, keys) for at_most in (1, 2, 3))
        named = tuple((f"k{i}", key) for i, key in enumerate(keys))
        yield from (GroupBy(named, aggregates) for aggregates in AGGREGATES if named or aggregates)


def _group_joins() -> Iterator[Transformation]:
    for keys in KEYS.values():
        names = tuple(f"k{i}" for i in range(len(keys)))
        for left, right in product(AGGREGATES[:2], repeat=2):
            renamed = tuple((f"right {name}", aggregate) for name, aggregate in right)
            yield GroupJoin(names, keys, keys, left, renamed)


def _joins() -> Iterator[Transformation]:
    for keys, left, right, record in product(
        list(KEYS.values())[:3], TRUNCATIONS, TRUNCATIONS, SEEN.values()
    ):
        yield Join(keys, keys, left, right, record)
    for record in SEEN.values():
        yield Join((K, V), (V, K), First(1), First(2), record)


def outer_joins() -> Iterator[Instance]:
    """Outer joins, which keep a left record without a pair."""
    seen = [SEEN[name] for name in ("both sides", "the right", "the keys", "the computed keys")]
    keyed = (KEYS["one"], KEYS["the whole record"])
    for keys, left, right, record in product(keyed, TRUNCATIONS, TRUNCATIONS, seen):
        yield Join(keys, keys, left, right, record, outer=True), (SCHEMA, SCHEMA)


# ── inside persons ───────────────────────────────────────────────────────────────────


def bodies() -> Iterator[Plan]:
    """Plans over one person's rows: the transformations, each with the row bounds that it has."""
    people, visits = PersonTable("people", 1), PersonTable("visits", 3)
    same = Apply("equal", (V, Literal.of(0)))
    record = (("k", Column("l.k")), ("v", Column("r.v")))
    yield visits
    for transformation in (Identity(), Where(same), Distinct(), UniqueBy((K,)), Take(2), Take(4)):
        yield Term(transformation, (visits,))
    yield Term(GroupBy((), COUNT), (visits,))
    yield Term(GroupBy((("v", V),), COUNT), (PersonTable("visits", 2),))
    yield Term(SelectMany(((("k", K),), (("k", V),)), 2), (visits,))
    yield Term(LimitPerKey(1, (K,)), (visits,))
    yield Term(LimitPerKey(2, ()), (visits,))
    yield Term(LimitPerKey(4, ()), (visits,))
    yield Term(PartOf(Partitioning(K, (0, 1)), 0), (visits,))
    yield Term(Union(bag=True), (people, visits))
    yield Term(Except(), (visits, people))
    yield Term(SemiJoin((K,), (K,)), (visits, people))
    yield Term(SemiJoin((K,), (K,)), (visits, Term(LITERAL, ())))
    yield Term(GroupJoin(("v",), (V,), (V,), COUNT, ()), (people, PersonTable("visits", 1)))
    for left, right in ((First(9), First(9)), (Unique(), First(2)), (All(), All()), (All(), Unique())):
        yield Term(Join((K,), (K,), left, right, record), (people, visits))
    yield Term(Join((K,), (K,), All(), All(), record), (visits, Term(TWO, ())))


def outer_bodies() -> Iterator[Plan]:
    """Plans over one person's rows with outer joins."""
    people, visits = PersonTable("people", 1), PersonTable("visits", 3)
    record = (("k", Column("l.k")), ("v", Column("r.v")))
    nothing = Term(LiteralTable(SCHEMA, ()), ())
    for left, right in ((First(1), First(2)), (All(), All())):
        outer = Join((K,), (K,), left, right, record, outer=True)
        yield from (Term(outer, tables) for tables in ((people, visits), (visits, people), (visits, nothing)))
