"""Random databases, expressions, plans and queries, for any engine to be compared on.

An example draws a few values of each type (from the nasty ones, mostly), so
that keys meet, rows repeat and set operations have something to do. Every
plan is well-typed; nothing else is assumed about it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any

from hypothesis import strategies as st

from engines.nasty import VALUES
from fpinq.engines import reference
from fpinq.model.clamps import MAX_GRID, Clamp
from fpinq.model.expressions import (
    COLUMN_TYPES,
    INT64_MAX,
    INT64_MIN,
    Apply,
    Column,
    Expression,
    Literal,
    Schema,
    Type,
    Value,
    checked_value,
    columns_of,
)
from fpinq.model.keys import Domain, Product
from fpinq.model.operators import OPERATORS
from fpinq.model.plans import Flatten, Persons, PersonTable, Plan, RootTable, Term, apply, shape_of
from fpinq.model.queries import (
    Choice,
    Count,
    CrossMoments,
    Depth,
    Frequencies,
    Moments,
    Offset,
    Rank,
    SimpleQuery,
    Sum,
    Summary,
    Tally,
)
from fpinq.model.statistics import Statistic
from fpinq.model.transformations import (
    Aggregate,
    All,
    Concat,
    ConcatAll,
    Distinct,
    Except,
    Explode,
    Fields,
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
    Truncation,
    Union,
    Unique,
    UniqueBy,
    Where,
    joined_schema,
)

Draw = Callable[[Any], Any]
Rows = list[tuple[Value, ...]]

NAMES = ["a", "b", "c", 'q"', "x;--", "é$1", "select", "A", "c0", "u", "k0"]
UNIT = "person"

_BY_RESULT: dict[Type, list[tuple[str, tuple[Type, ...]]]] = {}
for _name, _operator in OPERATORS.items():
    for _takes, _gives in _operator.signatures:
        _BY_RESULT.setdefault(_gives, []).append((_name, _takes))


@dataclass
class Example:
    """One random case: tables as an engine takes them, and the reference's view of them."""

    tables: dict[str, tuple[Schema, Rows]] = field(default_factory=dict)
    persons: dict[str, tuple[Persons, dict[str, Rows]]] = field(default_factory=dict)
    plan: Plan = field(default_factory=lambda: RootTable("none"))
    whole: SimpleQuery = field(default_factory=Count)
    by: Partitioning | None = None
    queries: tuple[SimpleQuery, ...] = ()

    @property
    def statistics(self) -> list[Statistic]:
        """What an engine is asked for."""
        return [query.statistic for query in self.queries]

    def database(self) -> reference.Database:
        """The same data, for the reference."""
        found: dict[str, reference.Relation | reference.PersonBag] = {}
        for name, (schema, rows) in self.tables.items():
            found[name] = reference.Relation(schema, canonical(schema, rows))
        for name, (shape, tables) in self.persons.items():
            found[name] = person_bag(shape, tables)
        return found


def canonical(schema: Schema, rows: Rows) -> tuple[tuple[Value, ...], ...]:
    """Rows as the model has them: NaN null, −0 zero."""
    types = schema.types()
    return tuple(tuple(checked_value(v, t) for v, t in zip(row, types, strict=True)) for row in rows)


def person_bag(shape: Persons, tables: dict[str, Rows]) -> reference.PersonBag:
    """Rows of the same person together; rows of nobody left out."""
    persons: dict[Value, dict[str, Rows]] = {}
    for table, schema in shape.tables:
        unit = schema.names().index(shape.unit)
        for row in canonical(schema, tables[table]):
            if row[unit] is not None:
                persons.setdefault(row[unit], {}).setdefault(table, []).append(row)
    return reference.PersonBag(
        shape,
        tuple(
            {table: reference.Relation(schema, tuple(rows.get(table, []))) for table, schema in shape.tables}
            for rows in persons.values()
        ),
    )


class Generator:
    """Draws the parts of one example."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.pairs = 35  # how often, in percent, a plan is made of two
        self.pools = {type_: self._pool(type_) for type_ in COLUMN_TYPES}

    def chance(self, percent: int) -> bool:
        return bool(self.number(0, 99) < percent)

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def one(self, options: Sequence[Any]) -> Any:
        return options[self.number(0, len(options) - 1)]

    # ── data ─────────────────────────────────────────────────────────────────────────

    def _pool(self, type_: Type) -> list[Value]:
        nasty = VALUES[type_]
        chosen = [self.one(nasty) for _ in range(3)]
        if type_ is Type.INT64:
            chosen.append(self.draw(st.integers(INT64_MIN, INT64_MAX)))
            chosen += [1, 2]
        elif type_ is Type.FLOAT64:
            chosen.append(self.draw(st.floats(allow_nan=False)))
            chosen += [1.0, float("nan"), -0.0]
        elif type_ is Type.STRING:
            chosen.append(self.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=3)))
        elif type_ is Type.DATE:
            chosen.append(self.draw(st.dates()))
        elif type_ is Type.TIMESTAMP:
            chosen.append(self.draw(st.datetimes()).replace(fold=0))
        return [None, *chosen]

    def schema(self, first: tuple[tuple[str, Type], ...] = ()) -> Schema:
        start = self.number(0, len(NAMES) - 1)
        names = [NAMES[(start + i) % len(NAMES)] for i in range(self.number(0 if first else 1, 3))]
        return Schema((*first, *((name, self.one(COLUMN_TYPES)) for name in names)))

    def rows(self, schema: Schema, at_most: int = 8) -> Rows:
        rows: Rows = []
        for _ in range(self.number(0, at_most)):
            if rows and self.chance(25):
                rows.append(self.one(rows))
            else:
                rows.append(tuple(self.one(self.pools[type_]) for type_ in schema.types()))
        return rows

    # ── expressions ──────────────────────────────────────────────────────────────────

    def literal(self, type_: Type, *, null: bool = True) -> Literal:
        if type_ is Type.STRINGS:
            raise AssertionError("there are no constant arrays")
        value = self.one(self.pools[type_])
        literal = Literal(value, type_)
        if literal.value is None and not null:
            return Literal(_SOME[type_], type_)
        return literal

    def expression(self, schema: Schema, type_: Type, depth: int = 3) -> Expression:
        columns = [name for name, t in schema.columns if t is type_]
        if columns and self.chance(60 if depth else 80):
            return Column(self.one(columns))
        if not depth or self.chance(15):
            return self.literal(type_)
        return self.application(*self.one(_BY_RESULT[type_]), schema, depth)

    def application(self, name: str, takes: tuple[Type, ...], schema: Schema, depth: int) -> Expression:
        """An operator on random arguments."""
        operator = OPERATORS[name]
        if operator.variadic:
            values = [self.literal(takes[1], null=False) for _ in range(self.number(1, 4))]
            return Apply(name, (self.expression(schema, takes[0], depth - 1), *values))
        if name in ("clip", "substring"):
            return Apply(
                name, (self.expression(schema, takes[0], depth - 1), *self.constants(name, takes[1]))
            )
        arguments = tuple(self.expression(schema, t, depth - 1) for t in takes)
        return Apply(name, arguments)

    def constants(self, name: str, type_: Type) -> list[Literal]:
        if name == "substring":
            return [Literal.of(self.one([0, 1, 2, 5, 2**33, INT64_MAX])) for _ in range(2)]
        pair: list[Any] = [self.literal(type_, null=False) for _ in range(2)]
        return sorted(pair, key=lambda literal: literal.value)

    def split(self, schema: Schema) -> Expression:
        separator = self.one(["a", ",", " ", "é"])
        return Apply("split", (self.expression(schema, Type.STRING, 1), Literal.of(separator)))

    def record(self, schema: Schema, wanted: Schema | None = None) -> Fields:
        wanted = wanted or self.schema()
        return tuple((name, self.expression(schema, type_)) for name, type_ in wanted.columns)

    def keys(self, schema: Schema, types: Sequence[Type]) -> tuple[Expression, ...]:
        return tuple(self.expression(schema, type_, 1) for type_ in types)

    def types(self, low: int = 1) -> list[Type]:
        return [self.one(COLUMN_TYPES) for _ in range(self.number(low, 2))]

    def types_in(self, schema: Schema, low: int = 1) -> list[Type]:
        return [self.one(schema.types()) for _ in range(self.number(low, 2))]

    def clamp(self, schema: Schema, *, widest: int | None = None) -> Clamp:
        type_ = self.one([Type.INT64, Type.FLOAT64])
        value = self.expression(schema, type_, 2)
        if type_ is Type.INT64:
            bounds = [
                (0, 10),
                (-5, 5),
                (0, 0),
                (3, 2**31),
                (INT64_MIN, INT64_MAX),
                (INT64_MAX, INT64_MAX),
                (INT64_MIN, INT64_MIN),
                (-7, -2),
            ]
            step = Fraction(1)
        else:
            bounds = [(0, 1000), (-100, 100), (5, 5), (-MAX_GRID, MAX_GRID), (-3, 2**31)]
            step = Fraction(2) ** self.one([0, 0, -1, -10, 3, -900, 900])
        fitting = [(a, b) for a, b in bounds if widest is None or b - a <= widest]
        lower, upper = self.one(fitting)
        return Clamp(value, lower, upper, step)

    def aggregates(self, schema: Schema, prefix: str, low: int) -> tuple[tuple[str, Aggregate], ...]:
        found = []
        for i in range(self.number(low, 3)):
            function = self.one(["count", "sum", "average", "min", "max"])
            value: Expression | Clamp | None = None
            if function in ("sum", "average"):
                value = self.clamp(schema)
            elif function in ("min", "max"):
                value = self.expression(schema, self.one(COLUMN_TYPES), 1)
            found.append((f"{prefix}{i}", Aggregate(function, value)))
        return tuple(found)

    # ── plans ────────────────────────────────────────────────────────────────────────

    def plan(self, leaves: Sequence[tuple[Plan, Schema]], depth: int) -> tuple[Plan, Schema]:
        if depth <= 0 or self.chance(10):
            if self.chance(10):
                schema = self.schema()
                rows = tuple(
                    tuple(self.literal(t).value for t in schema.types()) for _ in range(self.number(0, 3))
                )
                return Term(LiteralTable(schema, rows), ()), schema
            return self.one(leaves)  # type: ignore[no-any-return]
        if self.chance(self.pairs):
            return self._of_two(leaves, depth)
        argument, schema = self.plan(leaves, depth - 1)
        transformation = self._of_one(schema)
        return Term(transformation, (argument,)), apply(transformation, [schema])

    def _of_one(self, schema: Schema) -> Any:
        match self.number(0, 11):
            case 0:
                return Identity()
            case 1:
                return Where(self.expression(schema, Type.BOOL))
            case 2 | 3:
                return Select(self.record(schema))
            case 4:
                return Distinct()
            case 5:
                wanted = self.schema()
                records = tuple(self.record(schema, wanted) for _ in range(self.number(1, 3)))
                return SelectMany(records, self.one([1, 2, 5]))
            case 6:
                return Explode(self.split(schema), self.one(NAMES), self.one([1, 2, 9, 2**70]))
            case 7:
                return Take(self.one([1, 2, 3, 2**70]))
            case 8:
                return LimitPerKey(self.one([1, 2, 3, 2**70]), self.keys(schema, self.types_in(schema, 0)))
            case 9:
                return UniqueBy(self.keys(schema, self.types_in(schema, 0)))
            case 10:
                keys = self.keys(schema, self.types_in(schema, 0))
                named = tuple((f"k{i}", key) for i, key in enumerate(keys))
                return GroupBy(named, self.aggregates(schema, "n", 0 if keys else 1))
            case _:
                by = self.partitioning(schema)
                return PartOf(by, self.number(0, len(by.keys) - 1))

    def _of_two(self, leaves: Sequence[tuple[Plan, Schema]], depth: int) -> tuple[Plan, Schema]:
        left, left_schema = self.plan(leaves, depth - 1)
        right, right_schema = (left, left_schema) if self.chance(20) else self.plan(leaves, depth - 2)
        transformation: Any
        match self.number(0, 9):
            case 0 | 1 | 2 | 3:
                if right_schema != left_schema:
                    right = Term(Select(self.record(right_schema, left_schema)), (right,))
                elif self.chance(50):
                    right = Term(Where(self.expression(right_schema, Type.BOOL)), (right,))
                if self.chance(30):
                    several = Term(ConcatAll(3), (right, left, right))
                    right = self.one([Term(Concat(), (right, left)), several])
                bag = self.chance(60)
                transformation = self.one([Concat(), ConcatAll(2), Union(bag), Intersect(bag), Except(bag)])
            case _:
                transformation = self.join_of(left_schema, right_schema)
        return Term(transformation, (left, right)), apply(
            transformation, [left_schema, _schema_of(right, right_schema, left_schema, transformation)]
        )

    def join_of(self, left: Schema, right: Schema) -> Any:
        types = self.types_in(left)
        keys = self.keys(left, types), self.keys(right, types)
        match self.number(0, 2):
            case 0:
                return SemiJoin(*keys, keep=self.chance(50))
            case 1:
                names = tuple(f"k{i}" for i in range(len(types)))
                aggregates = self.aggregates(left, "l", 0), self.aggregates(right, "r", 0)
                return GroupJoin(names, *keys, *aggregates)
            case _:
                record = self.record(joined_schema(left, right))
                sees_right = any(name.startswith("r.") for _, v in record for name in columns_of(v))
                outer = sees_right and self.chance(40)
                return Join(*keys, self.truncation(), self.truncation(), record, outer)

    def truncation(self) -> Truncation:
        return self.one([First(1), First(2), First(2**70), Unique(), All()])  # type: ignore[no-any-return]

    def partitioning(self, schema: Schema) -> Partitioning:
        if self.chance(60):
            return Partitioning(*self.domain(schema, 7))
        keys, domains = zip(*(self.domain(schema, 3) for _ in range(self.number(2, 3))), strict=True)
        product = Product(domains)
        if self.chance(50):
            return Partitioning(keys, product)
        some = [self.one(product) for _ in range(self.number(1, 7))]
        return Partitioning(keys, tuple(dict.fromkeys(some)))

    def domain(self, schema: Schema, at_most: int) -> tuple[Expression, Domain]:
        """An expression, and what it may be."""
        type_ = self.one(schema.types())
        key = self.expression(schema, type_, 2)
        if type_ is Type.INT64 and self.chance(40):
            first = self.number(-2, 2)
            keys = range(first, first + self.number(1, at_most + 1))
            return key, keys if self.chance(50) else tuple(keys)
        values = [self.literal(type_).value for _ in range(self.number(1, at_most))]
        return key, tuple(dict.fromkeys(values))

    # ── queries ──────────────────────────────────────────────────────────────────────

    def query(self, schema: Schema) -> SimpleQuery:
        match self.number(0, 11):
            case 0:
                return Count()
            case 1:
                return Sum(self.clamp(schema))
            case 2:
                return Moments(self.clamp(schema), 1)
            case 3:
                return Moments(self.clamp(schema, widest=2**31), 2)
            case 4:
                return Frequencies(self.clamp(schema, widest=2**20))
            case 5:
                return Rank(self.clamp(schema), Fraction(1, 2))
            case 6:
                return Depth(self.clamp(schema), self.number(0, 3))
            case 7:
                return self.cross_moments(schema)
            case 8:
                return self.tally(schema)
            case 9:
                return Summary(self.clamp(schema, widest=2**31), self.number(1, 2))
            case 10:
                return Offset(self.clamp(schema))
            case _:
                return Choice(tuple(self.clamp(schema) for _ in range(self.number(1, 3))))

    def cross_moments(self, schema: Schema) -> CrossMoments:
        clamps = tuple(self.clamp(schema, widest=2**31) for _ in range(self.number(1, 3)))
        degrees = [self.number(1, 2) for _ in clamps]
        for i, _ in enumerate(clamps):
            if prod(max(c.width, 1) ** d for c, d in zip(clamps, degrees, strict=True)) > 2**62:
                degrees[i] = 1
        if prod(max(c.width, 1) ** d for c, d in zip(clamps, degrees, strict=True)) > 2**62:
            clamps, degrees = clamps[:1], degrees[:1]
        squares = tuple(self.one([0, 0, 1, 5]) for _ in clamps)
        return CrossMoments(clamps, tuple(degrees), self.number(1, 3), squares)

    def tally(self, schema: Schema) -> Tally:
        type_ = self.one(list(self.pools))
        values = tuple(dict.fromkeys(self.literal(type_, null=False) for _ in range(self.number(1, 4))))
        return Tally(self.expression(schema, type_, 2), values)


_SOME: dict[Type, Value] = {
    Type.BOOL: True,
    Type.INT64: 1,
    Type.FLOAT64: 1.0,
    Type.STRING: "a",
    Type.DATE: VALUES[Type.DATE][1],
    Type.TIMESTAMP: VALUES[Type.TIMESTAMP][1],
}


def _schema_of(right: Plan, right_schema: Schema, left_schema: Schema, transformation: Any) -> Schema:
    same = isinstance(transformation, Concat | ConcatAll | Union | Intersect | Except)
    return left_schema if same else right_schema


@st.composite
def expression_examples(draw: Draw) -> tuple[Schema, Rows, tuple[Expression, ...]]:
    """A table, and expressions over it."""
    g = Generator(draw)
    schema = g.schema()
    chosen = [g.one(_BY_RESULT[type_]) for type_ in COLUMN_TYPES]
    return schema, g.rows(schema), tuple(g.application(*operator, schema, 5) for operator in chosen)


@st.composite
def plan_examples(draw: Draw, depth: int = 4) -> Example:
    """Two tables, persons with two tables, a plan over them, and queries of it."""
    g = Generator(draw)
    example = Example()
    leaves: list[tuple[Plan, Schema]] = []
    for name in ("t", "s"):
        schema = g.schema()
        example.tables[name] = (schema, g.rows(schema))
        leaves.append((RootTable(name), schema))
    if g.chance(35):
        leaves = [_persons(g, example)]
    plan, schema = g.plan(leaves, g.number(1, depth))
    return _asked(g, example, plan, schema)


def _persons(g: Generator, example: Example) -> tuple[Plan, Schema]:
    unit = ((UNIT, g.one([Type.INT64, Type.INT64, Type.STRING, Type.FLOAT64, Type.DATE])),)
    schemas = {name: g.schema(unit) for name in ("p", "q")[: g.number(1, 2)]}
    shape = Persons(UNIT, tuple(schemas.items()))
    # Few persons, so that most have several rows.
    known = [g.one(g.pools[unit[0][1]][1:]) for _ in range(3)]
    data = {
        name: [(g.one([None, *known]), *row[1:]) for row in g.rows(schema)]
        for name, schema in schemas.items()
    }
    example.persons["people"] = (shape, data)
    rows: list[tuple[Plan, Schema]] = [
        (PersonTable(name, g.one([1, 2, 3, 100])), schema) for name, schema in schemas.items()
    ]
    g.pairs = 60
    body, _ = g.plan(rows, g.number(0, 3))
    g.pairs = 35
    flatten = Flatten(body)
    return Term(flatten, (RootTable("people"),)), shape_of(body, shape)


def _asked(g: Generator, example: Example, plan: Plan, schema: Schema) -> Example:
    example.plan = plan
    example.whole = g.query(schema)
    example.by = g.partitioning(schema)
    if g.chance(50):
        example.queries = (g.query(schema),) * g.one([1, len(example.by.keys)])
    else:
        example.queries = tuple(g.query(schema) for _ in example.by.keys)
    return example
