"""The scope of the exhaustive check: small, and without blind spots.

It contains what FORMAL asks for because real mutants survive without it:
literals, two roots, bags larger than the truncation bounds, queries on merged
parts, refusals under small budgets.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

from fpinq.engines.reference import Record, Relation
from fpinq.model.actions import AskBudget, AskPrice, AskScale, Assign, Partition, Query, Silent
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.plans import Transformation
from fpinq.model.queries import Count, Moments, PrimitiveQuery, Sum
from fpinq.model.semantics import Configuration, initial, step
from fpinq.model.transformations import (
    Aggregate,
    All,
    Concat,
    Distinct,
    Except,
    First,
    GroupBy,
    GroupJoin,
    Identity,
    Intersect,
    Join,
    LimitPerKey,
    LiteralTable,
    Partitioning,
    Select,
    SelectMany,
    SemiJoin,
    Take,
    Union,
    Unique,
    UniqueBy,
    Where,
)

K, V = Column("k"), Column("v")
SCHEMA = Schema.of({"k": Type.INT64, "v": Type.INT64})
RECORDS: tuple[Record, ...] = ((0, 0), (0, 1), (1, 0))
ROOTS = ("A", "B")


def _equal(left: Expression, right: int) -> Expression:
    return Apply("equal", (left, Literal.of(right)))


def _side(side: str, name: str) -> Expression:
    return Column(f"{side}.{name}")


_SAME = (("k", K), ("v", V))
_SWAPPED = (("k", V), ("v", K))
_PAIRED = (("k", _side("l", "v")), ("v", _side("r", "v")))
_COUNTED = (("v", Aggregate("count")),)

# Every transformation keeps the columns k and v, so that any of them can follow any other.
UNARY: dict[str, Transformation] = {
    "identity": Identity(),
    "where v=0": Where(_equal(V, 0)),
    "swap": Select(_SWAPPED),
    "k only": Select((("k", K), ("v", Literal.of(0)))),
    "distinct": Distinct(),
    "both ways": SelectMany((_SAME, _SWAPPED), 2),
    "thrice": SelectMany((_SAME, _SAME, _SWAPPED, _SAME), 3),
    "take 1": Take(1),
    "take 2": Take(2),
    "group_by k": GroupBy((("k", K),), _COUNTED),
    "limit_per_key 1": LimitPerKey(1, (K,)),
    "unique_by k": UniqueBy((K,)),
}


def _join(left: First | Unique | All, right: First | Unique | All) -> Transformation:
    return Join((K,), (K,), left, right, _PAIRED)


BINARY: dict[str, Transformation] = {
    "concat": Concat(),
    "union": Union(),
    "bag union": Union(bag=True),
    "intersect": Intersect(),
    "bag intersect": Intersect(bag=True),
    "except": Except(),
    "bag except": Except(bag=True),
    "join first 1 / first 1": _join(First(1), First(1)),
    "join first 1 / first 2": _join(First(1), First(2)),
    "join first 2 / first 1": _join(First(2), First(1)),
    "join unique / first 2": _join(Unique(), First(2)),
    "join unique / unique": _join(Unique(), Unique()),
    "join all / first 1": _join(All(), First(1)),
    "group_join": GroupJoin(("k",), (K,), (K,), _COUNTED, ()),
    "semi_join": SemiJoin((K,), (K,)),
    "anti_join": SemiJoin((K, V), (K, V), keep=False),
}
LITERAL = LiteralTable(SCHEMA, ((0, 0), (1, 0), (1, 0)))
PARTITIONINGS: dict[str, Partitioning] = {
    "by k": Partitioning(K, (0, 1)),
    "by v": Partitioning(V, (0, 1)),
    "by k, twice the same key": Partitioning(K, (0, 0)),
    "by k, three keys": Partitioning(K, (2, 1, 0)),
}

Question = Query | AskBudget | AskScale | AskPrice | Silent

# What a base-2 mechanism asks does not matter to the kernel; a count stands for it.
ASKED: PrimitiveQuery = Count()
LAPLACE: dict[str, PrimitiveQuery] = {
    "count": Count(),
    "sum": Sum(Clamp(V, -1, 1)),
    "average": Moments(Clamp(V, 0, 1), 1),
    "variance": Moments(Clamp(V, 0, 1), 2),
}


Budgets = tuple[int, int]


@dataclass(frozen=True)
class Scope:
    """Which programs: how many constructions, of which kinds, how many queries, at which ε and budgets.

    parallel: queries may partition on the way. interleaved: constructions and
    questions in any order, the free questions among them. rebinding: variables
    may be bound again.
    """

    name: str
    unary: tuple[str, ...]
    binary: tuple[str, ...]
    partitionings: tuple[str, ...]
    constructions: int
    queries: int
    budgets: tuple[Budgets, ...] = ((3, 2), (60, 50))
    epsilons: tuple[Fraction, ...] = (Fraction(1), Fraction(2))
    parallel: bool = False
    interleaved: bool = False
    rebinding: bool = False


ALL = (tuple(UNARY), tuple(BINARY), tuple(PARTITIONINGS))
HALF = Fraction(1, 2)

BROAD = Scope(
    "one of everything, then queries",
    *ALL,
    constructions=1,
    queries=2,
    budgets=((1, 2), (3, 2), (60, 50)),
    parallel=True,
)
DEEP = Scope(
    "two constructions, then queries",
    ("where v=0", "both ways", "take 1", "group_by k"),
    ("concat", "bag except", "join first 1 / first 1", "semi_join"),
    ("by k", "by v"),
    constructions=2,
    queries=2,
    budgets=((5, 4),),
)
NESTED = Scope(
    "three constructions, parts in parts and merged parts",
    ("both ways",),
    ("concat",),
    ("by k", "by v"),
    constructions=3,
    queries=1,
    budgets=((60, 50),),
    epsilons=(HALF, Fraction(2)),
)
INTERLEAVED = Scope(
    "anything between queries, names bound again",
    ("both ways",),
    (),
    ("by k", "by k, three keys"),
    constructions=2,
    queries=2,
    budgets=((4, 3),),
    epsilons=(Fraction(1), Fraction(3, 2)),
    interleaved=True,
    rebinding=True,
)
WIDE = Scope("two of everything, then queries", *ALL, constructions=2, queries=2, budgets=((12, 9),))

# With discrete Laplace the losses are at most the distances: a smaller scope shows that they are.
NOISY = replace(BROAD, name="one of everything, real noise", budgets=((3, 2),))

SCOPES = {
    "default": (BROAD, INTERLEAVED, NESTED, DEEP),
    "large": (
        BROAD,
        WIDE,
        replace(NESTED, queries=2, epsilons=(HALF,)),
        replace(INTERLEAVED, constructions=3, epsilons=(Fraction(1),)),
    ),
}


def start(budgets: Budgets) -> Configuration:
    """Init, with a literal table at hand."""
    totals = zip(ROOTS, budgets, strict=True)
    roots = initial({root: (SCHEMA, Fraction(total)) for root, total in totals})
    return step(roots, Assign("L", LITERAL)).configuration


def constructions(scope: Scope, c: Configuration, number: int) -> Iterator[Assign | Partition]:
    """Every assignment and partition that a program of the scope may do next, the number-th it does."""
    private = [name for name in c.environment if name != "L"]
    targets = [f"t{number}"]
    if scope.rebinding:
        targets += [name for name in private if name.startswith("t") and "." not in name]
        if "t0.0" in private:
            targets.append("t0")
    for target in targets:
        for name in scope.unary:
            for table in private:
                yield Assign(target, UNARY[name], (table,))
        for name in scope.binary:
            for left, right in product((*private, "L"), repeat=2):
                if (left, right) != ("L", "L"):
                    yield Assign(target, BINARY[name], (left, right))
        for name in scope.partitionings:
            by = PARTITIONINGS[name]
            for table in private:
                yield Partition(tuple(f"{target}.{i}" for i in range(len(by.keys))), table, by)


def questions(scope: Scope, c: Configuration) -> Iterator[Question]:
    """Every question that a program of the scope may ask next; only queries cost."""
    for epsilon in scope.epsilons:
        for table in c.environment:
            if table != "L" or scope.parallel:
                yield Query(table, epsilon, (ASKED,))
            if scope.parallel:
                yield Query(table, epsilon, (ASKED, ASKED), PARTITIONINGS["by k"])
                yield Query(table, epsilon, (ASKED, ASKED), PARTITIONINGS["by k, twice the same key"])
    if scope.interleaved:
        yield from (AskBudget(), AskScale("A"), AskPrice("A", scope.epsilons[0]), Silent())


# ── neighbours ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Neighbours:
    """Two databases, and how far apart each root is."""

    left: dict[str, Relation]
    right: dict[str, Relation]
    apart: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many records there are on the left."""
        return sum(len(table.rows) for table in self.left.values())


def bags(largest: int) -> list[tuple[Record, ...]]:
    """Every bag of the scope's records, small ones first."""
    return [bag for n in range(largest + 1) for bag in combinations_with_replacement(RECORDS, n)]


def neighbours(largest: int = 3) -> list[Neighbours]:
    """Pairs that differ in one record of a root, or in one record of each, small ones first."""
    edges = [(bag, _with(bag, r)) for bag in bags(largest - 1) for r in RECORDS]
    still: list[tuple[Record, ...]] = [(), RECORDS[:1], RECORDS]
    pairs = [(_database(a, b), _database(a2, b), (1, 0)) for a, a2 in edges for b in still]
    pairs += [(_database(b, a), _database(b, a2), (0, 1)) for a, a2 in edges for b in still]
    pairs += [(_database(a, b), _database(a2, b2), (1, 1)) for a, a2 in edges for b, b2 in edges[:4]]
    return sorted((Neighbours(*pair) for pair in pairs), key=lambda pair: pair.size)


def _with(bag: tuple[Record, ...], record: Record) -> tuple[Record, ...]:
    return tuple(sorted((*bag, record)))


def _database(*tables: tuple[Record, ...]) -> dict[str, Relation]:
    return {root: Relation(SCHEMA, rows) for root, rows in zip(ROOTS, tables, strict=True)}
