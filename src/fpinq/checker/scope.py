"""The scope of the exhaustive check: small, and without blind spots.

It contains what real mutants survive without: literals, two roots, bags larger
than the truncation bounds, queries on merged parts, refusals under small
budgets; partition keys that come again later, three parts, questions about
every table and queries after them, parameters one beyond each special case,
persons and texts, nulls, ε that are no halves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from fpinq.checker.worlds import ROOTS, SCHEMA, WORLDS
from fpinq.model.actions import AskBudget, AskPrice, AskScale, Assign, Partition, Query, Silent
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Expression, Literal
from fpinq.model.keys import Product
from fpinq.model.kinds import Noisy
from fpinq.model.notions import Rho
from fpinq.model.plans import Flatten, PersonTable, Term, Transformation
from fpinq.model.queries import Count, CrossMoments, Moments, PrimitiveQuery, Sum, Tally
from fpinq.model.semantics import Configuration, initial, step
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
# One beyond every special case, and every kind of parameter on which a constant depends.
_HALVED = Apply("floor_divide", (K, Literal.of(2)))
BEYOND_UNARY: dict[str, Transformation] = {
    "four times": SelectMany((_SAME, _SAME, _SAME, _SAME), 4),
    "take 3": Take(3),
    "take 4": Take(4),
    "limit_per_key 2": LimitPerKey(2, (K,)),
    "limit_per_key 3": LimitPerKey(3, (K,)),
    "limit_per_key 1, by v": LimitPerKey(1, (V,)),
    "limit_per_key 2, copies": LimitPerKey(2, (V, K)),
    "limit_per_key 1, without a key": LimitPerKey(1, ()),
    "group_by k, keys only": GroupBy((("k", K), ("v", _HALVED)), ()),
    "group_by k, largest v": GroupBy((("k", K),), (("v", Aggregate("max", V)),)),
    "group_by k, largest k": GroupBy((("k", K),), (("v", Aggregate("max", K)),)),
}
_KEYS_SEEN = (("k", _side("l", "k")), ("v", _side("r", "k")))
BEYOND_BINARY: dict[str, Transformation] = {
    "concat of all": ConcatAll(2),
    "join first 1 / first 3": _join(First(1), First(3)),
    "join first 3 / first 1": _join(First(3), First(1)),
    "join unique / first 3": _join(Unique(), First(3)),
    "join first 3 / first 3, keys only": Join((K,), (K,), First(3), First(3), _KEYS_SEEN),
    "join first 1 / first 2, left only": Join(
        (K,), (K,), First(1), First(2), (("k", _side("l", "v")), ("v", _side("r", "k")))
    ),
    "join first 2 / first 2, whole record": Join((K, V), (K, V), First(2), First(2), _PAIRED),
    "outer join first 2 / unique": Join((K,), (K,), First(2), Unique(), _PAIRED, outer=True),
    "outer join first 1 / first 3": Join((K,), (K,), First(1), First(3), _PAIRED, outer=True),
    "outer join all / first 2": Join((K,), (K,), All(), First(2), _PAIRED, outer=True),
    "group_join, left": GroupJoin(("k",), (K,), (K,), _COUNTED, ()),
    "group_join, right": GroupJoin(("k",), (K,), (K,), (), _COUNTED),
    "group_join, both": GroupJoin(("k",), (K,), (K,), _COUNTED, (("w", Aggregate("count")),)),
}
_VISITS = PersonTable("visits", 2)
PEOPLE_UNARY: dict[str, Transformation] = {
    "visits": Flatten(_VISITS),
    "visits both ways": Flatten(Term(SelectMany((_SAME, _SWAPPED), 2), (_VISITS,))),
    "visits by v": Flatten(Term(GroupBy((("k", V),), _COUNTED), (_VISITS,))),
    "visits counted": Flatten(Term(GroupBy((), (("k", Aggregate("count")), *_COUNTED)), (_VISITS,))),
    "visits joined": Flatten(Term(_join(All(), All()), (_VISITS, _VISITS))),
    "visits and visits": Flatten(Term(Concat(), (_VISITS, PersonTable("visits", 1)))),
    "one word": Explode(Apply("split", (Column("words"), Literal.of(" "))), "k", 1),
    "two words": Explode(Apply("split", (Column("words"), Literal.of(" "))), "k", 2),
}
LITERAL = LiteralTable(SCHEMA, ((0, 0), (1, 0), (1, 0)))
PARTITIONINGS: dict[str, Partitioning] = {
    "by k": Partitioning(K, (0, 1)),
    "by v": Partitioning(V, (0, 1)),
    "by k, twice the same key": Partitioning(K, (0, 0)),
    "by k, three keys": Partitioning(K, (2, 1, 0)),
    "by k, the same key again": Partitioning(K, (0, 1, 0)),
    "by k, with null": Partitioning(K, (None, 0)),
    "by k, null again": Partitioning(K, (None, 0, None)),
    "by k and v": Partitioning((K, V), Product(((0, 1), range(2)))),
    "by k and v, twice the same k": Partitioning((K, V), Product(((0, 0), range(2)))),
    "by k and v, the same pair again": Partitioning((K, V), ((0, 0), (0, 1), (0, 0))),
}

Question = Query | AskBudget | AskScale | AskPrice | Silent

# What a base-2 mechanism asks does not matter to the kernel; a count stands for it.
ASKED: PrimitiveQuery = Count()
LAPLACE: dict[str, Noisy] = {
    "count": Count(),
    "sum": Sum(Clamp(V, -1, 1)),
    "average": Moments(Clamp(V, 0, 1), 1),
    "variance": Moments(Clamp(V, 0, 1), 2),
    "cross moments": CrossMoments((Clamp(V, 0, 1), Clamp(K, 0, 1)), (2, 1), 1, (0, 0)),
    "tally": Tally(K, (Literal.of(0), Literal.of(2))),
}


Budgets = tuple[int, int]


PURE, CONCENTRATED = (False, False), (True, True)


@dataclass(frozen=True)
class Scope:
    """Which programs: how many constructions, of which kinds, how many queries, at which ε and budgets.

    parallel: how queries may partition on the way. interleaved: constructions
    and questions in any order, the free questions among them. asking: the free
    questions about every table. rebinding: variables may be bound again.
    concentrated: which roots' budgets are ρ's; where any is, all is asked at ρ.
    """

    name: str
    unary: tuple[str, ...]
    binary: tuple[str, ...]
    partitionings: tuple[str, ...]
    constructions: int
    queries: int
    budgets: tuple[Budgets, ...] = ((3, 2), (60, 50))
    epsilons: tuple[Fraction, ...] = (Fraction(1), Fraction(2))
    parallel: tuple[str, ...] = ()
    interleaved: bool = False
    asking: bool = False
    rebinding: bool = False
    world: str = "tiny"
    concentrated: tuple[bool, bool] = PURE

    def at(self, amount: Fraction) -> Fraction | Rho:
        """What is asked at."""
        return Rho(amount) if any(self.concentrated) else amount


ALL = (tuple(UNARY), tuple(BINARY), tuple(PARTITIONINGS)[:5])
THIRD = Fraction(1, 3)

BROAD = Scope(
    "one of everything, then queries",
    *ALL,
    constructions=1,
    queries=2,
    budgets=((1, 2), (3, 2), (60, 50)),
    parallel=("by k", "by k, twice the same key"),
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
    epsilons=(THIRD, Fraction(2)),
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
ASKING = Scope(
    "questions about every table, and queries after them",
    ("both ways",),
    (),
    ("by k",),
    constructions=1,
    queries=3,
    budgets=((2, 3),),
    epsilons=(Fraction(1), THIRD),
    asking=True,
)
PARALLEL = Scope(
    "parallel queries of three parts",
    ("both ways", "group_by k"),
    ("concat",),
    ("by v",),
    constructions=1,
    queries=2,
    budgets=((3, 2),),
    epsilons=(Fraction(1), THIRD),
    parallel=("by k", "by k, three keys", "by k, the same key again"),
)
BEYOND = Scope(
    "parameters one beyond each special case",
    tuple(BEYOND_UNARY),
    tuple(BEYOND_BINARY),
    (),
    constructions=1,
    queries=1,
    budgets=((60, 50),),
    epsilons=(THIRD,),
    world="many",
)
NULLED = Scope(
    "nulls in data and keys",
    (*UNARY, *BEYOND_UNARY),
    (*BINARY, *BEYOND_BINARY),
    ("by k, with null", "by k, null again", "by v"),
    constructions=1,
    queries=1,
    budgets=((60, 50),),
    parallel=("by k, with null", "by k, null again"),
    world="nulls",
)
PEOPLED = Scope(
    "persons and texts",
    (*PEOPLE_UNARY, "both ways", "take 1", "distinct"),
    ("concat", "bag except"),
    ("by k",),
    constructions=2,
    queries=1,
    budgets=((5, 4),),
    parallel=("by k",),
    world="people",
)
SEVERAL = Scope(
    "keys of several columns",
    ("both ways",),
    (),
    ("by k and v", "by k and v, twice the same k", "by k and v, the same pair again"),
    constructions=1,
    queries=2,
    budgets=((3, 2),),
    epsilons=(Fraction(1),),
    parallel=("by k and v", "by k and v, twice the same k", "by k and v, the same pair again"),
)
WIDE = Scope("two of everything, then queries", *ALL, constructions=2, queries=2, budgets=((12, 9),))

# With discrete Laplace the losses are at most the distances: a smaller scope shows that they are.
NOISY = replace(BROAD, name="one of everything, real noise", budgets=((3, 2),))

# The same rules in books of ρ, where what is lost are squares of distances. A part of what changes by two
# records, a root merged with its own parts, and two roots: each is where some wrong rule would be right.
SQUARED = Scope(
    "budgets of ρ",
    ("both ways",),
    ("concat",),
    ("by k",),
    constructions=2,
    queries=1,
    budgets=((1000, 900),),
    epsilons=(Fraction(1),),
    concentrated=CONCENTRATED,
)
SQUARED_TWICE = replace(
    SQUARED,
    name="budgets of ρ: two queries, refusals",
    queries=2,
    budgets=((9, 8),),
    parallel=("by k",),
)
SQUARED_BETWEEN = replace(
    INTERLEAVED, name="budgets of ρ: anything between queries", budgets=((10, 8),), concentrated=CONCENTRATED
)
BESIDE = replace(
    SQUARED,
    name="a budget of ε beside one of ρ",
    budgets=((60, 50),),
    concentrated=(False, True),
)
SQUARED_DEEP = replace(SQUARED, name="budgets of ρ: three constructions", constructions=3)
IN_RHO = (BESIDE, SQUARED, SQUARED_TWICE, SQUARED_BETWEEN, SQUARED_DEEP)

SPOTS = (ASKING, PARALLEL, BEYOND, NULLED, PEOPLED, SEVERAL)
SCOPES = {
    "default": (BROAD, *SPOTS, INTERLEAVED, NESTED, DEEP, *IN_RHO),
    "large": (
        BROAD,
        *SPOTS,
        WIDE,
        replace(NESTED, queries=2, epsilons=(THIRD,)),
        replace(INTERLEAVED, constructions=3, epsilons=(Fraction(1),)),
        *IN_RHO,
        replace(SQUARED_DEEP, queries=2),
    ),
}
_UNARY = UNARY | BEYOND_UNARY | PEOPLE_UNARY
_BINARY = BINARY | BEYOND_BINARY


def start(budgets: Budgets, world: str = "tiny", concentrated: tuple[bool, bool] = PURE) -> Configuration:
    """Init, with a literal table at hand."""
    totals = [
        Rho(Fraction(b)) if of_rho else Fraction(b) for b, of_rho in zip(budgets, concentrated, strict=True)
    ]
    c = initial(dict(zip(ROOTS, zip(WORLDS[world].shapes, totals, strict=True), strict=True)))
    return step(c, Assign("L", LITERAL)).configuration


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
                yield Assign(target, _UNARY[name], (table,))
        for name in scope.binary:
            for left, right in product((*private, "L"), repeat=2):
                if (left, right) != ("L", "L"):
                    yield Assign(target, _BINARY[name], (left, right))
        for name in scope.partitionings:
            by = PARTITIONINGS[name]
            for table in private:
                yield Partition(tuple(f"{target}.{i}" for i in range(len(by.keys))), table, by)


def questions(scope: Scope, c: Configuration) -> Iterator[Question]:
    """Every question that a program of the scope may ask next; only queries cost."""
    for at in map(scope.at, scope.epsilons):
        for table in c.environment:
            if table != "L" or scope.parallel:
                yield Query(table, at, (ASKED,))
            for name in scope.parallel:
                by = PARTITIONINGS[name]
                yield Query(table, at, (ASKED,) * len(by.keys), by)
    if scope.interleaved or scope.asking:
        asked = c.environment if scope.asking else ("A",)
        yield from (AskBudget(), Silent())
        for table in asked:
            yield from (AskScale(table), AskPrice(table, scope.at(scope.epsilons[0])))
