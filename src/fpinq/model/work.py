"""Work: a static bound on what one record can cause in a measurement, and on a measurement as a whole.

Whoever filters down to one person and then makes that person's rows expensive
reads the person off a clock. So what a measurement costs is bounded from public
numbers alone, before it is charged for: the plan, the lengths that texts can
have, the rows that tables can have.

One *unit* is one elementary operation on a value, or one character touched;
where an engine is slower than that, more units. It is about a nanosecond of one
core in the slowest case that was measured (docs/decisions/0073). What operators
cost is with them (`operators`), what the steps of a plan cost is here.

A record (a row, or a person with all rows that are read of them) changes a
bounded number of rows of every table in a plan, its stability; a step costs so
much for each. A step that is used twice counts twice: an engine may compute it
again. Everything is linear in rows; sorting n rows costs n·ORDERED, for no
table is so large that its logarithm matters more.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.operators import MAX_STRING, OPERATORS
from fpinq.model.plans import (
    Flatten,
    PersonTable,
    Plan,
    RootTable,
    Term,
    Transformation,
    bounded_stability,
)
from fpinq.model.queries import PrimitiveQuery
from fpinq.model.statistics import Points, size
from fpinq.model.transformations import (
    Aggregate,
    Aggregates,
    Concat,
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
)

# Units for a row, and for each of its values, that is passed on; hashed and kept; put in order.
PASSED, PASSED_VALUE = 10, 2
KEYED, KEYED_VALUE, KEYED_CHARACTER = 250, 20, 1
ORDERED, ORDERED_VALUE, ORDERED_CHARACTER = 500, 50, 4
# Units for a value that becomes a grid point, and for a grid point that a mechanism looks at.
CLAMPED = 50
POINT = 2_000

# How many tables are kept with their bounds.
MAX_KEPT = 10_000

# How long a column's texts can be, by its name; 0 if it has none.
Lengths = Mapping[str, int]


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
    """Bounds of measurements of roots of these sizes. A table that was bounded is not looked at again."""

    def __init__(self, sizes: Mapping[str, RootSize]) -> None:
        self._record, self._whole = _Record(sizes), _Whole(sizes)

    def work(self, plan: Plan, by: Partitioning | None, queries: Sequence[PrimitiveQuery]) -> Work:
        """The work of a measurement."""
        record, whole = (bound.table(plan) for bound in (self._record, self._whole))
        return Work(
            record.units + _asked(record, by, queries),
            whole.units + _asked(whole, by, queries),
        )


def work_of(
    plan: Plan, by: Partitioning | None, queries: Sequence[PrimitiveQuery], sizes: Mapping[str, RootSize]
) -> Work:
    """The work of a measurement of roots of these sizes."""
    return Bounds(sizes).work(plan, by, queries)


def cost_of(expression: Expression, lengths: Lengths) -> tuple[int, int]:
    """The units of an expression on one row, and how long the text it gives can be."""
    if isinstance(expression, Column):
        return 1, lengths[expression.name]
    if isinstance(expression, Literal):
        return 1, len(expression.value) if isinstance(expression.value, str) else 0
    operator = OPERATORS[expression.operator]
    units, longest = _each(expression.arguments, lengths)
    return units + operator.cost(longest), _length(expression, operator.length(*longest))


def _each(expressions: Iterable[Expression], lengths: Lengths) -> tuple[int, list[int]]:
    found = [cost_of(expression, lengths) for expression in expressions]
    return sum(units for units, _ in found), [length for _, length in found]


def _length(expression: Apply, length: int) -> int:
    match expression:
        case Apply(operator="substring", arguments=(_, _, Literal(value=int(most)))):
            return min(length, most)
    return length


def _units(lengths: Lengths, *expressions: Expression) -> int:
    return _each(expressions, lengths)[0]


def _clamped(clamp: Clamp, lengths: Lengths) -> int:
    return CLAMPED + _units(lengths, clamp.value)


# ── tables ───────────────────────────────────────────────────────────────────────────


class Bounded(NamedTuple):
    """A table in a plan: its rows at the most, how long its texts can be, and the units to make it."""

    rows: int
    lengths: Lengths
    units: int


class _Bound(ABC):
    """The tables of a plan, each bounded once. What is a row here is said by those below."""

    def __init__(self, sizes: Mapping[str, RootSize]) -> None:
        self._sizes = sizes
        # By the id of a plan, which is kept, so that no other gets that id.
        self._found: dict[int, tuple[Plan, Bounded]] = {}

    def table(self, plan: Plan) -> Bounded:
        """The bound of a table."""
        known = self._found.get(id(plan))
        if known is not None:
            return known[1]
        bounded = self._bound(plan)
        if len(self._found) >= MAX_KEPT:
            self._found.clear()
        self._found[id(plan)] = (plan, bounded)
        return bounded

    def _bound(self, plan: Plan) -> Bounded:
        if not isinstance(plan, Term):
            return self.leaf(plan)
        if isinstance(plan.transformation, Flatten):
            return self._flattened(plan.transformation, plan.arguments[0])
        arguments = [self.table(argument) for argument in plan.arguments]
        return _applied(plan.transformation, arguments, self.rows)

    def _flattened(self, flatten: Flatten, root: Plan) -> Bounded:
        """One person after the other."""
        assert isinstance(root, RootTable)
        size = self._sizes[root.root]
        one = _Person(size).table(flatten.body)
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
        return _read(1, table.lengths)

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
        return _read(table.rows, table.lengths)

    def persons(self, size: RootSize) -> tuple[int, int]:
        tables = size.values()
        return sum(t.rows for t in tables), sum(t.rows * _ordered(t.lengths) for t in tables)


class _Person(_AtMost):
    """Rows are all that there can be of one person."""

    def __init__(self, size: RootSize) -> None:
        super().__init__({})
        self._size = size

    def leaf(self, plan: RootTable | PersonTable) -> Bounded:
        assert isinstance(plan, PersonTable)
        table = self._size[plan.table]
        rows = min(plan.at_most, table.rows)
        return Bounded(rows, table.lengths, rows * _ordered(table.lengths))


def _read(rows: int, lengths: Lengths) -> Bounded:
    return Bounded(rows, lengths, rows * _passed(lengths))


def _passed(lengths: Lengths) -> int:
    return PASSED + PASSED_VALUE * len(lengths)


def _keyed(lengths: Iterable[int]) -> int:
    """Units to find a row by values of these lengths."""
    listed = list(lengths)
    return KEYED + KEYED_VALUE * len(listed) + KEYED_CHARACTER * sum(listed)


def _ordered(lengths: Lengths) -> int:
    """Units to put a row into the canonical order."""
    return ORDERED + ORDERED_VALUE * len(lengths) + ORDERED_CHARACTER * sum(lengths.values())


# ── transformations ──────────────────────────────────────────────────────────────────


def _applied(
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
    return Bounded(rows, lengths, below + _own(transformation, arguments, rows, lengths))


def _own(transformation: Transformation, arguments: Sequence[Bounded], rows: int, made: Lengths) -> int:
    """The units of a step itself: for every row of its arguments, and for every row that it makes."""
    units = rows * _passed(made)
    for table, per_row in zip(arguments, _per_row(transformation, arguments), strict=True):
        units += table.rows * (PASSED + per_row)
    if isinstance(transformation, Join):
        units += rows * _units(_joined(*arguments), *(value for _, value in transformation.record))
    return units


def _per_row(transformation: Transformation, arguments: Sequence[Bounded]) -> tuple[int, ...]:
    """The units for a row of each argument."""
    lengths = [argument.lengths for argument in arguments]
    match transformation, lengths:
        case (LiteralTable(), _) | (Identity() | Concat(), _):
            return (0,) * len(lengths)
        case Select(record=record), (table,):
            return (_record(record, table),)
        case SelectMany(records=records, at_most=at_most), (table,):
            return (sum(_record(record, table) for record in records[:at_most]),)
        case ((Explode(value=value) | Where(predicate=value)), (table,)):
            return (_units(table, value),)
        case PartOf(by=by), (table,):
            units, length = cost_of(by.key, table)
            return (units + length,)
        case ((Distinct() | Union() | Intersect() | Except()), _):
            return tuple(_keyed(table.values()) for table in lengths)
        case Take(), (table,):
            return (_ordered(table),)
        case LimitPerKey(keys=keys), (table,):
            return (_by(keys, table) + _ordered(table),)
        case UniqueBy(keys=keys), (table,):
            return (_by(keys, table) + _keyed(table.values()),)
        case GroupBy(keys=keys, aggregates=aggregates), (table,):
            return (_by([value for _, value in keys], table) + _aggregated(aggregates, table),)
        case SemiJoin(left_keys=left_keys, right_keys=right_keys), (left, right):
            return _by(left_keys, left), _by(right_keys, right)
        case GroupJoin(), (left, right):
            return (
                _by(transformation.left_keys, left) + _aggregated(transformation.left_aggregates, left),
                _by(transformation.right_keys, right) + _aggregated(transformation.right_aggregates, right),
            )
    assert isinstance(transformation, Join)
    left, right = lengths
    return (
        _by(transformation.left_keys, left) + _truncated(transformation.left, left),
        _by(transformation.right_keys, right) + _truncated(transformation.right, right),
    )


def _record(record: Fields, lengths: Lengths) -> int:
    return _units(lengths, *(value for _, value in record))


def _by(keys: Iterable[Expression], lengths: Lengths) -> int:
    """The units to find a row's group."""
    units, longest = _each(keys, lengths)
    return units + _keyed(longest)


def _truncated(truncation: Truncation, lengths: Lengths) -> int:
    """The units to keep a row for a join, and to tell whether it stays."""
    return _ordered(lengths) if isinstance(truncation, First) else _keyed(lengths.values())


def _aggregated(aggregates: Aggregates, lengths: Lengths) -> int:
    return sum(_of_aggregate(aggregate, lengths) for _, aggregate in aggregates)


def _of_aggregate(aggregate: Aggregate, lengths: Lengths) -> int:
    match aggregate.value:
        case None:
            return PASSED_VALUE
        case Clamp() as clamp:
            return _clamped(clamp, lengths)
        case value:
            units, length = cost_of(value, lengths)
            return units + KEYED_VALUE + KEYED_CHARACTER * length


def _pieces(value: Expression, lengths: Lengths) -> int:
    """How many pieces a split can give: one more than it finds separators, which have a character each."""
    return cost_of(value, lengths)[1] + 1


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
            return {name: cost_of(value, table)[1]}
        case GroupBy(keys=keys, aggregates=aggregates), (table,):
            return {**_of_record(keys, table), **_of_aggregates(aggregates, table)}
        case GroupJoin(names=names), (left, right):
            longest = map(
                max, _each(transformation.left_keys, left)[1], _each(transformation.right_keys, right)[1]
            )
            return {
                **dict(zip(names, longest, strict=True)),
                **_of_aggregates(transformation.left_aggregates, left),
                **_of_aggregates(transformation.right_aggregates, right),
            }
        case Join(record=record), _:
            return _of_record(record, _joined(*arguments))
        case ((Concat() | Union()), (left, right)):
            return _either(left, right)
        case _:
            return lengths[0]


def _longest(values: Iterable[object]) -> int:
    return max((len(value) for value in values if isinstance(value, str)), default=0)


def _of_record(record: Fields, lengths: Lengths) -> Lengths:
    return {name: cost_of(value, lengths)[1] for name, value in record}


def _of_aggregates(aggregates: Aggregates, lengths: Lengths) -> Lengths:
    return {
        name: 0 if a.value is None or isinstance(a.value, Clamp) else cost_of(a.value, lengths)[1]
        for name, a in aggregates
    }


def _either(*tables: Lengths) -> Lengths:
    return {name: max(table[name] for table in tables) for name in tables[0]}


def _joined(left: Bounded, right: Bounded) -> Lengths:
    lefts = {f"l.{name}": length for name, length in left.lengths.items()}
    return {**lefts, **{f"r.{name}": length for name, length in right.lengths.items()}}


# ── queries ──────────────────────────────────────────────────────────────────────────


def _asked(table: Bounded, by: Partitioning | None, queries: Sequence[PrimitiveQuery]) -> int:
    """The units to ask queries of a table: every clamp is evaluated on every row, a row is in one part."""
    clamps = dict.fromkeys(clamp for query in queries for clamp in query.statistic.clamps)
    per_row = PASSED + sum(_clamped(clamp, table.lengths) for clamp in clamps)
    if by is not None:
        per_row += _by([by.key], table.lengths)
        per_row += sum(1 + _longest([key]) for key in by.keys) if len(clamps) > 1 else 0
    return table.rows * per_row + POINT * _points(table.rows, queries)


def _points(rows: int, queries: Sequence[PrimitiveQuery]) -> int:
    """How many grid points the mechanisms look at: a row has one, and the grid has only so many."""
    asked = [(query.passes, query.statistic) for query in queries]
    each = [(passes, size(points)) for passes, points in asked if isinstance(points, Points)]
    return min(
        rows * max((passes for passes, _ in each), default=0), sum(passes * points for passes, points in each)
    )
