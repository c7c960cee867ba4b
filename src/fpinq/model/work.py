"""Work: a static bound on what one record can cause in a measurement, and on a measurement as a whole.

Whoever filters down to one person and then makes that person's rows expensive
reads the person off a clock. So what a measurement costs is bounded from public
numbers alone, before it is charged for: the plan, the lengths that texts can
have, the rows that tables can have.

What a row costs an engine, in units, is what its `costs` say, of every operator
and of passing, finding and ordering a row; here it is said how often that is.

A record (a row, or a person with all rows that are read of them) changes a
bounded number of rows of every table in a plan, its stability; a step costs so
much for each. A step that is used twice counts twice: an engine may compute it
again. Everything is linear in rows; sorting n rows costs n·ORDERED, for no
table is so large that its logarithm matters more.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from math import ceil
from typing import NamedTuple
from weakref import ref

from fpinq.model.clamps import Clamp
from fpinq.model.costs import CLAMPED, PASSED_VALUE, UNITS, Costs, Lengths, length_of
from fpinq.model.expressions import Expression, Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.model.keys import Keys, values_of
from fpinq.model.operators import MAX_STRING
from fpinq.model.plans import (
    Flatten,
    PersonTable,
    Plan,
    RootTable,
    Term,
    Transformation,
    bounded_stability,
)
from fpinq.model.queries import PrimitiveQuery, Several, SimpleQuery, Sparse, simple
from fpinq.model.statistics import Monomials, Points, Statistic, Support, size
from fpinq.model.transformations import (
    Aggregate,
    Aggregates,
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
    UniqueBy,
    Where,
    parts_of,
)

# Units for a grid point that a mechanism looks at: it is Python's work, whichever the engine.
POINT = 2_000
# How many bits of a key's number are reckoned with in that time: of a text of 1,024 bytes there are 8,192.
BITS_OF_KEY = 64
# How many times that it is to choose at ρ, where all weights are reckoned, for fractions of 18 digits.
WEIGHED = 12
# So many points is a key that nobody has and that is shown: a logarithm of as many digits as its number has,
# which is the third power of them; and as often as that at ρ, where a tail is a long sum.
NOBODYS, NOBODYS_AT_RHO = 100, 300


@dataclass(frozen=True)
class TableSize:
    """What is public about how large a table is: how many rows, and how long the texts of each column."""

    rows: int
    lengths: Lengths

    @staticmethod
    def of(schema: Schema, rows: int, lengths: Lengths) -> "TableSize":
        """The size of a table with at most so many rows, and texts of at most these lengths where stated."""
        texts = {
            name: lengths.get(name, MAX_STRING) for name, type_ in schema.columns if type_ is Type.STRING
        }
        return TableSize(rows, {name: texts.get(name, 0) for name in schema.names()})


# By the names of a root's tables; the one table of a root of rows may have any name.
RootSize = Mapping[str, TableSize]


@dataclass(frozen=True)
class Work:
    """Units: what one record of every root can cause at the most, and what there can be in all."""

    record: int
    query: int


class Bounds:
    """Bounds of measurements of roots of these sizes, on an engine that takes so much.

    A table that was bounded is not looked at again.
    """

    def __init__(self, sizes: Mapping[str, RootSize], costs: Costs) -> None:
        self._record, self._whole = _Record(sizes, costs), _Whole(sizes, costs)
        self._costs = costs

    def work(
        self,
        plan: Plan,
        by: Partitioning | None,
        queries: Sequence[PrimitiveQuery],
        *,
        weighed: bool = False,
    ) -> Work:
        """The work of a measurement; weighed if it is at ρ."""
        record, whole = (bound.table(plan) for bound in (self._record, self._whole))
        scans = _scans(queries)
        return Work(
            scans * record.units + _asked(self._costs, record, by, queries, weighed),
            scans * whole.units
            + _asked(self._costs, whole, by, queries, weighed)
            + POINT * _nobodys(queries, parts_of(by) // len(queries), NOBODYS_AT_RHO if weighed else 1),
        )


def work_of(
    plan: Plan,
    by: Partitioning | None,
    queries: Sequence[PrimitiveQuery],
    sizes: Mapping[str, RootSize],
    costs: Costs = UNITS,
) -> Work:
    """The work of a measurement of roots of these sizes, in an engine that takes so much."""
    return Bounds(sizes, costs).work(plan, by, queries)


# ── tables ───────────────────────────────────────────────────────────────────────────


class Bounded(NamedTuple):
    """A table in a plan: its rows at the most, how long its texts can be, and the units to make it."""

    rows: int
    lengths: Lengths
    units: int


class _Bound(ABC):
    """The tables of a plan, each bounded once. What is a row here is said by those below."""

    def __init__(self, sizes: Mapping[str, RootSize], costs: Costs) -> None:
        self._sizes = sizes
        self._costs = costs
        # By the id of a plan, as long as that is there: another may get the id.
        self._found: dict[int, tuple[ref[Plan], Bounded]] = {}

    def table(self, plan: Plan) -> Bounded:
        """The bound of a table."""
        number, found = id(plan), self._found
        known = found.get(number)
        if known is not None and known[0]() is plan:
            return known[1]
        bounded = self._bound(plan)
        # Whatever takes its place takes the reference away, too, and what that would do.
        found[number] = (ref(plan, lambda _: found.pop(number, None)), bounded)
        return bounded

    def _bound(self, plan: Plan) -> Bounded:
        if not isinstance(plan, Term):
            return self.leaf(plan)
        if isinstance(plan.transformation, Flatten):
            return self._flattened(plan.transformation, plan.arguments[0])
        arguments = [self.table(argument) for argument in plan.arguments]
        return _applied(self._costs, plan.transformation, arguments, self.rows)

    def _flattened(self, flatten: Flatten, root: Plan) -> Bounded:
        """One person after the other."""
        assert isinstance(root, RootTable)
        size = self._sizes[root.root]
        one = _Person(size, self._costs).table(flatten.body)
        persons, read = self.persons(size)
        return Bounded(persons * one.rows, one.lengths, persons * one.units + read)

    @abstractmethod
    def leaf(self, plan: RootTable | PersonTable) -> Bounded:
        """A table of a root."""

    @abstractmethod
    def rows(self, transformation: Transformation, arguments: Sequence[int]) -> int:
        """How many rows a transformation gives at the most."""

    def persons(self, size: RootSize) -> tuple[int, int]:
        """How many persons there are, and the units to tell which of their rows are read."""
        return 1, 0


class _Record(_Bound):
    """Rows are those that one record of a root can change."""

    def leaf(self, plan: RootTable | PersonTable) -> Bounded:
        assert isinstance(plan, RootTable)
        (table,) = self._sizes[plan.root].values()
        return _read(self._costs, 1, table.lengths)

    def rows(self, transformation: Transformation, arguments: Sequence[int]) -> int:
        stability = bounded_stability(transformation, [rows > 0 for rows in arguments])
        return sum(c * rows for c, rows in zip(stability, arguments, strict=True))


class _AtMost(_Bound):
    """Rows are all that there can be."""

    def rows(self, transformation: Transformation, arguments: Sequence[int]) -> int:
        return transformation.rows_at_most(*arguments)  # type: ignore[call-arg,arg-type,unused-ignore]


class _Whole(_AtMost):
    """Rows are all that there can be, from the sizes of the roots."""

    def leaf(self, plan: RootTable | PersonTable) -> Bounded:
        assert isinstance(plan, RootTable)
        (table,) = self._sizes[plan.root].values()
        return _read(self._costs, table.rows, table.lengths)

    def persons(self, size: RootSize) -> tuple[int, int]:
        tables = size.values()
        return sum(t.rows for t in tables), sum(t.rows * self._costs.ordering(t.lengths) for t in tables)


class _Person(_AtMost):
    """Rows are all that there can be of one person."""

    def __init__(self, size: RootSize, costs: Costs) -> None:
        super().__init__({}, costs)
        self._size = size

    def leaf(self, plan: RootTable | PersonTable) -> Bounded:
        assert isinstance(plan, PersonTable)
        table = self._size[plan.table]
        rows = min(plan.at_most, table.rows)
        return Bounded(rows, table.lengths, rows * self._costs.ordering(table.lengths))


def _read(costs: Costs, rows: int, lengths: Lengths) -> Bounded:
    return Bounded(rows, lengths, rows * costs.passing(lengths))


# ── transformations ──────────────────────────────────────────────────────────────────


def _applied(
    costs: Costs,
    transformation: Transformation,
    arguments: Sequence[Bounded],
    rows_of: Callable[[Transformation, Sequence[int]], int],
) -> Bounded:
    """The bound of F(t₁…tₙ), with the units of its arguments."""
    rows = rows_of(transformation, [argument.rows for argument in arguments])
    below = sum(argument.units for argument in arguments)
    match transformation, arguments:
        case SelectMany(), (table,):
            rows = min(rows, len(transformation.records[: transformation.at_most]) * table.rows)
        case Explode(value=value), (table,):
            rows = min(rows, _pieces(value, table.lengths) * table.rows)
    lengths = _lengths(transformation, arguments)
    return Bounded(rows, lengths, below + _own(costs, transformation, arguments, rows, lengths))


def _own(
    costs: Costs, transformation: Transformation, arguments: Sequence[Bounded], rows: int, made: Lengths
) -> int:
    """The units of a step itself: for every row of its arguments, and for every row that it makes."""
    units = rows * costs.passing(made)
    for table, per_row in zip(arguments, _per_row(costs, transformation, arguments), strict=True):
        units += table.rows * (costs.passing({}) + per_row)
    if isinstance(transformation, Join):
        units += rows * costs.units(_joined(*arguments), *(value for _, value in transformation.record))
    return units


def _per_row(costs: Costs, transformation: Transformation, arguments: Sequence[Bounded]) -> tuple[int, ...]:
    """The units for a row of each argument."""
    lengths = [argument.lengths for argument in arguments]
    match transformation, lengths:
        case (LiteralTable(), _) | (Identity() | Concat() | ConcatAll(), _):
            return (0,) * len(lengths)
        case Select(record=record), (table,):
            return (_record(costs, record, table),)
        case SelectMany(records=records, at_most=at_most), (table,):
            return (sum(_record(costs, record, table) for record in records[:at_most]),)
        case ((Explode(value=value) | Where(predicate=value)), (table,)):
            return (costs.units(table, value),)
        case PartOf(by=by), (table,):
            return (sum(sum(costs.of(key, table)) for key in by.expressions),)
        case ((Distinct() | Union() | Intersect() | Except()), _):
            return tuple(costs.keying(table.values()) for table in lengths)
        case Take(), (table,):
            return (costs.ordering(table),)
        case LimitPerKey(keys=keys), (table,):
            return (_by(costs, keys, table) + costs.ordering(table),)
        case UniqueBy(keys=keys), (table,):
            return (_by(costs, keys, table) + costs.keying(table.values()),)
        case GroupBy(keys=keys, aggregates=aggregates), (table,):
            return (_by(costs, [value for _, value in keys], table) + _aggregated(costs, aggregates, table),)
        case SemiJoin(left_keys=left_keys, right_keys=right_keys), (left, right):
            return _by(costs, left_keys, left), _by(costs, right_keys, right)
        case GroupJoin(), (left, right):
            return (
                _by(costs, transformation.left_keys, left)
                + _aggregated(costs, transformation.left_aggregates, left),
                _by(costs, transformation.right_keys, right)
                + _aggregated(costs, transformation.right_aggregates, right),
            )
    assert isinstance(transformation, Join)
    left, right = lengths
    return (
        _by(costs, transformation.left_keys, left) + _truncated(costs, transformation.left, left),
        _by(costs, transformation.right_keys, right) + _truncated(costs, transformation.right, right),
    )


def _record(costs: Costs, record: Fields, lengths: Lengths) -> int:
    return costs.units(lengths, *(value for _, value in record))


def _by(costs: Costs, keys: Iterable[Expression], lengths: Lengths) -> int:
    """The units to find a row's group."""
    units, longest = costs.each(keys, lengths)
    return units + costs.keying(longest)


def _truncated(costs: Costs, truncation: Truncation, lengths: Lengths) -> int:
    """The units to keep a row for a join, and to tell whether it stays."""
    if isinstance(truncation, First):
        return costs.ordering(lengths)
    return costs.keying(lengths.values())


def _aggregated(costs: Costs, aggregates: Aggregates, lengths: Lengths) -> int:
    return sum(_of_aggregate(costs, aggregate, lengths) for _, aggregate in aggregates)


def _of_aggregate(costs: Costs, aggregate: Aggregate, lengths: Lengths) -> int:
    match aggregate.value:
        case None:
            return costs.passed * PASSED_VALUE
        case Clamp() as clamp:
            return costs.clamp(clamp, lengths)
        case value:
            units, length = costs.of(value, lengths)
            return units + costs.keeping(length)


def _pieces(value: Expression, lengths: Lengths) -> int:
    """How many pieces a split can give: one more than it finds separators, which have a character each."""
    return length_of(value, lengths) + 1


# ── lengths ──────────────────────────────────────────────────────────────────────────


def _lengths(transformation: Transformation, arguments: Sequence[Bounded]) -> Lengths:
    """How long the texts of F(t₁…tₙ) can be."""
    lengths = [argument.lengths for argument in arguments]
    match transformation, lengths:
        case LiteralTable(schema=schema, rows=rows), ():
            columns = zip(*rows, strict=True) if rows else [()] * len(schema.columns)
            return dict(zip(schema.names(), map(_longest, columns), strict=True))
        case Select(record=record), (table,):
            return _of_record(record, table)
        case SelectMany(records=records), (table,):
            return _either(*(_of_record(record, table) for record in records))
        case Explode(value=value, name=name), (table,):
            return {name: length_of(value, table)}
        case GroupBy(keys=keys, aggregates=aggregates), (table,):
            return {**_of_record(keys, table), **_of_aggregates(aggregates, table)}
        case GroupJoin(names=names), (left, right):
            lefts = [length_of(key, left) for key in transformation.left_keys]
            rights = [length_of(key, right) for key in transformation.right_keys]
            longest = map(max, lefts, rights)
            return {
                **dict(zip(names, longest, strict=True)),
                **_of_aggregates(transformation.left_aggregates, left),
                **_of_aggregates(transformation.right_aggregates, right),
            }
        case Join(record=record), _:
            return _of_record(record, _joined(*arguments))
        case ((Concat() | ConcatAll() | Union()), _):
            return _either(*lengths)
        case _:
            return lengths[0]


def _longest(values: Iterable[object]) -> int:
    return max((len(value) for value in values if isinstance(value, str)), default=0)


def _of_record(record: Fields, lengths: Lengths) -> Lengths:
    return {name: length_of(value, lengths) for name, value in record}


def _of_aggregates(aggregates: Aggregates, lengths: Lengths) -> Lengths:
    return {
        name: 0 if a.value is None or isinstance(a.value, Clamp) else length_of(a.value, lengths)
        for name, a in aggregates
    }


def _either(*tables: Lengths) -> Lengths:
    return {name: max(table[name] for table in tables) for name in tables[0]}


def _joined(left: Bounded, right: Bounded) -> Lengths:
    lefts = {f"l.{name}": length for name, length in left.lengths.items()}
    return {**lefts, **{f"r.{name}": length for name, length in right.lengths.items()}}


# ── queries ──────────────────────────────────────────────────────────────────────────


def _asked(
    costs: Costs,
    table: Bounded,
    by: Partitioning | None,
    queries: Sequence[PrimitiveQuery],
    weighed: bool,
) -> int:
    """The units to ask queries of a table: every clamp is evaluated on every row, a row is in one part.

    Where several are asked at once, the rows are passed, and clamps are evaluated, once for each.
    """
    scans = _scans(queries)
    alone = [query for query in queries if not isinstance(query, Several)]
    several = [query.of for query in queries if isinstance(query, Several)]
    per_row = scans * costs.passing({}) + _evaluated(costs, table.lengths, alone)
    for number in range(scans):
        of_scan = [of[number] for of in several if number < len(of)]
        per_row += _evaluated(costs, table.lengths, of_scan)
    if by is not None:
        per_row += scans * _by(costs, by.expressions, table.lengths)
        if _differ(queries):
            per_row += scans * costs.comparing(_lengths_of(by.keys))
    parts_each = parts_of(by) // len(queries)
    return table.rows * per_row + POINT * _points(table.rows, queries, parts_each, WEIGHED if weighed else 1)


def _differ(queries: Sequence[PrimitiveQuery]) -> bool:
    """Whether a row is looked at by its part: what is asked of them differs, or is of different clamps."""
    statistics = dict.fromkeys(one.statistic for query in queries for one in simple(query))
    clamps = dict.fromkeys(clamp for statistic in statistics for clamp in statistic.clamps)
    return len(clamps) > 1 or len(dict.fromkeys(queries)) > 1


def _scans(queries: Sequence[PrimitiveQuery]) -> int:
    """How often a table is looked at."""
    return max(len(simple(query)) for query in queries)


def _evaluated(costs: Costs, lengths: Lengths, queries: Sequence[SimpleQuery]) -> int:
    """The units for what a scan evaluates on a row: a clamp as often as a statistic has it, and products."""
    clamps: Counter[Clamp] = Counter()
    statistics = dict.fromkeys(query.statistic for query in queries)
    for statistic in statistics:
        clamps |= Counter(statistic.clamps)
    products = sum(size(statistic) for statistic in statistics if isinstance(statistic, Monomials))
    units = sum(number * costs.clamp(clamp, lengths) for clamp, number in clamps.items())
    keys = sum(_by(costs, each.of, lengths) for each in statistics if isinstance(each, Support))
    return units + keys + CLAMPED * costs.clamped * products


def _lengths_of(keys: Keys) -> Iterable[int]:
    """How long the values of the keys are."""
    return repeat(0, len(keys)) if type(keys) is range else (_longest([value]) for value in values_of(keys))


def _points(rows: int, queries: Sequence[PrimitiveQuery], parts_each: int, weight: int) -> int:
    """How many grid points the mechanisms look at: a row has one, and the grid has only so many.

    One that is chosen among counts as often as its weight says. A key is a point, too, and counts
    as often as its number is long.
    """
    each = [
        [
            (
                one.passes * (weight if one.mechanism == "choice" else 1) * _long(one.statistic),
                size(one.statistic),
            )
            for one in simple(query)
            if isinstance(one.statistic, Points | Support)
        ]
        for query in queries
    ]
    return min(
        rows * max(sum(passes for passes, _ in of_part) for of_part in each),
        parts_each * sum(passes * points for of_part in each for passes, points in of_part),
    )


def _nobodys(queries: Sequence[PrimitiveQuery], parts_each: int, weight: int) -> int:
    """The points of keys that no record has: of every part as many as are expected to be shown, and one."""
    each = [
        NOBODYS + query.expected * (NOBODYS + _long(query.statistic) ** 3) * weight
        for query in queries
        if isinstance(query, Sparse)
    ]
    return ceil(parts_each * sum(each))


def _long(statistic: Statistic) -> int:
    """How often a point counts: the number of a key can be long."""
    if not isinstance(statistic, Support):
        return 1
    return 1 + statistic.domain.size.bit_length() // BITS_OF_KEY
