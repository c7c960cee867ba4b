"""The reference engine: plain Python bags. Obviously right, slow, and the oracle for the others."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from fpinq.model import transformations
from fpinq.model.clamps import MAX_GRID, Clamp, quantise
from fpinq.model.expressions import (
    INT64_MAX,
    INT64_MIN,
    Apply,
    Column,
    Expression,
    Literal,
    Row,
    Schema,
    Type,
    Value,
    canonical_float,
)
from fpinq.model.frozen import dataclass
from fpinq.model.operators import evaluate
from fpinq.model.plans import (
    Flatten,
    Persons,
    PersonTable,
    Plan,
    RootTable,
    Term,
    Transformation,
    apply,
    shape_of,
)
from fpinq.model.statistics import Integers, Statistic, alike
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
    Truncation,
    Union,
    Unique,
    UniqueBy,
    Where,
    joined_schema,
    parts_of,
)

Record = tuple[Value, ...]
Key = tuple[Value, ...]


@dataclass(frozen=True)
class Relation:
    """A bag of records of a schema: the order of rows means nothing."""

    schema: Schema
    rows: tuple[Record, ...]

    def read(self) -> list[Row]:
        """The records as rows that expressions can read."""
        names = self.schema.names()
        return [dict(zip(names, record, strict=True)) for record in self.rows]


Person = Mapping[str, Relation]


@dataclass(frozen=True)
class PersonBag:
    """A bag of persons, each with a bag of rows per table."""

    shape: Persons
    persons: tuple[Person, ...]


Database = Mapping[str, Relation | PersonBag]


def compute(plan: Plan, database: Database, person: Person | None = None) -> Relation:
    """⟦plan⟧ on a database, or on one person's rows."""
    match plan:
        case RootTable(root=root):
            table = database[root]
            assert isinstance(table, Relation)
            return table
        case PersonTable(table=name, at_most=at_most):
            assert person is not None
            return _first(person[name], at_most)
        case Term(transformation=Flatten(body=body), arguments=(RootTable(root=root),)):
            bag = database[root]
            assert isinstance(bag, PersonBag)
            each = [compute(body, {}, person).rows for person in bag.persons]
            return Relation(shape_of(body, bag.shape), tuple(r for rows in each for r in rows))
        case Term(transformation=transformation, arguments=arguments):
            return transform(transformation, *(compute(a, database, person) for a in arguments))


def measure(table: Relation, by: Partitioning | None, statistics: Sequence[Statistic]) -> list[Integers]:
    """Each statistic of the table, or of the part of its number, exactly; a single one of all."""
    return [
        _total(statistic, table if by is None else transform(PartOf(by, index), table))
        for index, statistic in enumerate(alike(statistics, parts_of(by)))
    ]


def distance(left: Relation, right: Relation) -> int:
    """|left ⊖ right|: the symmetric difference of bags."""
    a, b = Counter(left.rows), Counter(right.rows)
    return sum(((a - b) + (b - a)).values())


def transform(transformation: Transformation, *tables: Relation) -> Relation:
    """⟦F⟧(T₁…Tₙ)."""
    schema = _schema(transformation, tuple(table.schema for table in tables))
    return Relation(schema, tuple(_rows(transformation, *tables)))


@lru_cache(maxsize=4096)
def _schema(transformation: Transformation, schemas: tuple[Schema, ...]) -> Schema:
    return apply(transformation, schemas)


def _rows(transformation: Transformation, *tables: Relation) -> Iterable[Record]:
    match transformation, tables:
        case LiteralTable(rows=rows), ():
            return rows
        case Identity(), (table,):
            return table.rows
        case Select(record=record), (table,):
            return _records([record], table.read())
        case SelectMany(records=records, at_most=at_most), (table,):
            return _records(records[:at_most], table.read())
        case Explode(value=value, at_most=at_most), (table,):
            return ((piece,) for row in table.read() for piece in (evaluate(value, row) or [])[:at_most])
        case Where(predicate=predicate), (table,):
            return (r for r, row in _each(table) if evaluate(predicate, row) is True)
        case PartOf(by=by, index=index), (table,):
            key = by.keys[index] if isinstance(by.key, tuple) else (by.keys[index],)
            return (r for r, row in _each(table) if _key(by.expressions, row) == key)
        case Distinct(), (table,):
            return dict.fromkeys(table.rows)
        case Take(at_most=at_most), (table,):
            return _first(table, at_most).rows
        case LimitPerKey(at_most=at_most, keys=keys), (table,):
            return (r for group in _group(table, keys).values() for r in _first(group, at_most).rows)
        case UniqueBy(keys=keys), (table,):
            return (r for group in _group(table, keys).values() if len(group.rows) == 1 for r in group.rows)
        case GroupBy(keys=keys, aggregates=aggregates), (table,):
            groups = _group(table, [value for _, value in keys])
            return ((*key, *_aggregates(aggregates, group)) for key, group in groups.items())
        case Concat(), (left, right):
            return left.rows + right.rows
        case ConcatAll(), _:
            return (row for table in tables for row in table.rows)
        case Union(bag=bag), (left, right):
            return _by_multiplicity(left, right, bag, max)
        case Intersect(bag=bag), (left, right):
            return _by_multiplicity(left, right, bag, min)
        case Except(bag=bag), (left, right):
            return _by_multiplicity(left, right, bag, lambda a, b: max(a - b, 0))
        case SemiJoin(left_keys=left_keys, right_keys=right_keys, keep=keep), (left, right):
            present = _without_null_keys(_group(right, right_keys))
            return (r for r, row in _each(left) if (_key(left_keys, row) in present) is keep)
        case GroupJoin(), (left, right):
            return _group_join(transformation, left, right)
        case Join(), (left, right):
            return _join(transformation, left, right)
    raise AssertionError(f"{transformation.op} of {len(tables)} tables")


def order(record: Record) -> tuple[Any, ...]:
    """The canonical order of records: by every column in turn, null first."""
    return tuple((value is not None, value) for value in record)


def _each(table: Relation) -> Iterable[tuple[Record, Row]]:
    return zip(table.rows, table.read(), strict=True)


def _first(table: Relation, at_most: int) -> Relation:
    return Relation(table.schema, tuple(sorted(table.rows, key=order)[:at_most]))


def _records(records: Sequence[transformations.Fields], rows: Iterable[Row]) -> Iterable[Record]:
    return (tuple(evaluate(value, row) for _, value in record) for row in rows for record in records)


def _key(keys: Sequence[Expression], row: Row) -> Key:
    return tuple(evaluate(key, row) for key in keys)


def _group(table: Relation, keys: Sequence[Expression]) -> dict[Key, Relation]:
    members: dict[Key, list[Record]] = {}
    for record, row in _each(table):
        members.setdefault(_key(keys, row), []).append(record)
    return {key: Relation(table.schema, tuple(records)) for key, records in members.items()}


def _without_null_keys(groups: dict[Key, Relation]) -> dict[Key, Relation]:
    return {key: group for key, group in groups.items() if None not in key}


def _by_multiplicity(
    left: Relation, right: Relation, bag: bool, f: Callable[[int, int], int]
) -> Iterable[Record]:
    a, b = Counter(left.rows), Counter(right.rows)
    if not bag:
        a, b = Counter(a.keys()), Counter(b.keys())
    return (r for r in a | b for _ in range(f(a[r], b[r])))


def _aggregates(aggregates: transformations.Aggregates, group: Relation) -> Record:
    return tuple(_aggregate(aggregate, group) for _, aggregate in aggregates)


def _aggregate(aggregate: Aggregate, group: Relation) -> Value:
    rows = group.read()
    match aggregate.function, aggregate.value:
        case "sum", Clamp() as clamp:
            total = sum(x for x in (quantise(clamp, row) for row in rows) if x is not None)
            if aggregate.type_in(group.schema) is Type.INT64:
                return total if INT64_MIN <= total <= INT64_MAX else None
            return total * float(clamp.step) if abs(total) <= MAX_GRID else None
        case "average", Clamp() as clamp:
            points = [x for x in (quantise(clamp, row) for row in rows) if x is not None]
            if not points or abs(sum(points)) > MAX_GRID:
                return None
            return canonical_float(sum(points) * float(clamp.step) / len(points))
        case ("min" | "max") as function, (Column() | Literal() | Apply()) as value:
            present = [v for v in (evaluate(value, row) for row in rows) if v is not None]
            return (min if function == "min" else max)(present, default=None)
        case _:
            return len(rows)


def _truncate(truncation: Truncation, group: Relation) -> tuple[Record, ...]:
    match truncation:
        case First(at_most=at_most):
            return _first(group, at_most).rows
        case Unique():
            return group.rows if len(group.rows) == 1 else ()
        case All():
            return group.rows


def _join(join: Join, left: Relation, right: Relation) -> Iterable[Record]:
    lefts = _group(left, join.left_keys)
    rights = _without_null_keys(_group(right, join.right_keys))
    no_right, nulls = Relation(right.schema, ()), (None,) * len(right.schema.columns)
    beside_nothing = (nulls,) if join.outer else ()
    pairs = tuple(
        (*a, *b)
        for key, group in lefts.items()
        for a in _truncate(join.left, group)
        for b in _truncate(join.right, rights.get(key, no_right)) or beside_nothing
    )
    return _records([join.record], Relation(joined_schema(left.schema, right.schema), pairs).read())


def _group_join(join: GroupJoin, left: Relation, right: Relation) -> Iterable[Record]:
    lefts = _without_null_keys(_group(left, join.left_keys))
    rights = _without_null_keys(_group(right, join.right_keys))
    no_left, no_right = Relation(left.schema, ()), Relation(right.schema, ())
    for key in lefts.keys() | rights.keys():
        of_left = _aggregates(join.left_aggregates, lefts.get(key, no_left))
        of_right = _aggregates(join.right_aggregates, rights.get(key, no_right))
        yield (*key, *of_left, *of_right)


def _total(statistic: Statistic, table: Relation) -> Integers:
    totals: dict[int, int] = {}
    for row in table.read():
        for coordinate, added in statistic.contribution(row).items():
            totals[coordinate] = totals.get(coordinate, 0) + added
    return {coordinate: total for coordinate, total in totals.items() if total}
