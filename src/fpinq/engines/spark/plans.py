"""Plans to nested subqueries.

Every relation has the columns c0, c1, … in the order of its schema: names that
a program chose stay outside. Inside a flatten, where every operator works on
one person's rows at a time, a relation has the hidden column u as well, the
person, and operators treat it as one more key; a relation without it is the
same for everybody.

A subplan that is used more than once is a common table expression; Spark
computes its exchanges once. Where an order decides which rows stay, it is the canonical one, over all
columns, so that the result depends on the bag alone.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from fpinq.engines.spark.expressions import (
    SQL_TYPES,
    Code,
    Parameters,
    Scope,
    big,
    canonical_float,
    double,
    render,
)
from fpinq.engines.spark.limbs import Limbs
from fpinq.model.clamps import MAX_GRID, Clamp
from fpinq.model.expressions import Column, Expression, Schema, Type
from fpinq.model.plans import Flatten, Persons, PersonTable, Plan, RootTable, Term, apply
from fpinq.model.transformations import (
    Aggregate,
    Aggregates,
    All,
    Concat,
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
    PartOf,
    Select,
    SelectMany,
    SemiJoin,
    Take,
    Truncation,
    Union,
    UniqueBy,
    Where,
    joined_schema,
)

UNIT = "u"

# Spark writes a common table expression out wherever it is used. Beyond this many terms
# after such writing out, shared subplans are computed once and kept on the workers.
MAX_INLINED = 200


@dataclass(frozen=True)
class Source:
    """A stored relation: its name, its schema, and the float columns that may hold NaN or −0."""

    relation: str
    schema: Schema
    raw: frozenset[int] = frozenset()


@dataclass(frozen=True)
class PersonSource:
    """The stored relations about the same persons."""

    shape: Persons
    tables: Mapping[str, Source]


@dataclass(frozen=True)
class Relation:
    """A plan as something to select FROM, with what is known about its columns."""

    source: str
    schema: Schema
    columns: tuple[Code, ...]
    per_person: bool = False

    @property
    def listed(self) -> str:
        """All columns."""
        return ", ".join([column.sql for column in self.columns] + [UNIT] * self.per_person)


class Lowering:
    """The SQL of one plan: what it binds, and the subplans it uses more than once."""

    def __init__(self, roots: Mapping[str, Source | PersonSource], token: str = "") -> None:
        self.roots = roots
        self.parameters = Parameters()
        self.shared: list[tuple[str, str]] = []
        self.kept: list[tuple[str, str]] = []
        self._keep_as = f"{token}_{secrets.token_hex(4)}" if token else ""
        self._keeps = False
        self._uses: dict[tuple[int, str], int] = {}
        self._done: dict[tuple[int, str], Relation] = {}

    def plan(self, plan: Plan) -> Relation:
        """The relation of a plan."""
        self._count(plan, "")
        self._keeps = bool(self._keep_as) and _size(plan) > MAX_INLINED
        return self._plan(plan, "")

    def statement(self, select: str) -> str:
        """A SELECT together with the subplans it uses."""
        shared = ", ".join(f"{name} AS ({sql})" for name, sql in self.shared)
        return f"WITH {shared} {select}" if shared else select

    def scope(self, relation: Relation, schema: Schema | None = None) -> Scope:
        """What an expression over the relation can read."""
        schema = schema or relation.schema
        return Scope(dict(zip(schema.names(), relation.columns, strict=True)), schema, self.parameters)

    # ── terms ────────────────────────────────────────────────────────────────────────

    def _count(self, plan: Plan, persons: str) -> None:
        key = (id(plan), persons)
        self._uses[key] = self._uses.get(key, 0) + 1
        if self._uses[key] == 1 and isinstance(plan, Term):
            if isinstance(plan.transformation, Flatten):
                self._count(plan.transformation.body, _root(plan))
            else:
                for argument in plan.arguments:
                    self._count(argument, persons)

    def _plan(self, plan: Plan, persons: str) -> Relation:
        key = (id(plan), persons)
        if key not in self._done:
            relation = self._lower(plan, persons)
            if self._uses[key] > 1 and not _streams(plan):
                select = f"SELECT {relation.listed} FROM {relation.source}"
                if self._keeps:
                    name = f"{self._keep_as}_{len(self.kept)}"
                    self.kept.append((name, select))
                else:
                    name = f"s{len(self.shared)}"
                    self.shared.append((name, select))
                relation = replace(relation, source=name)
            self._done[key] = relation
        return self._done[key]

    def _lower(self, plan: Plan, persons: str) -> Relation:
        match plan:
            case RootTable(root=root):
                source = self.roots[root]
                assert isinstance(source, Source)
                return _stored(source)
            case PersonTable(table=table, at_most=at_most):
                return self._person_table(persons, table, at_most)
            case Term(transformation=Flatten(body=body)):
                root = _root(plan)
                flat = self._for_everybody(self._plan(body, root), root)
                return replace(flat, per_person=False)
            case Term(transformation=transformation, arguments=arguments):
                lowered = [self._plan(argument, persons) for argument in arguments]
                schema = apply(transformation, [relation.schema for relation in lowered])
                match lowered:
                    case []:
                        assert isinstance(transformation, LiteralTable)
                        return self._literal(transformation, schema)
                    case [only]:
                        return self._of_one(transformation, only, schema)
                    case _:
                        left, right = (canonical(relation) for relation in lowered)
                        return self._of_two(transformation, left, right, schema, persons)

    def _of_one(self, transformation: object, table: Relation, schema: Schema) -> Relation:
        match transformation:
            case Identity():
                return table
            case Where(predicate=predicate):
                scope = self.scope(table)
                return self._filter(scope, table, scope.output(predicate))
            case PartOf(by=by, index=index):
                scope = self.scope(table)
                key = scope.output(by.key)
                listed = scope.literal(by.keys[index], key.type)
                same = "IS NULL" if by.keys[index] is None else f"= {listed.sql}"
                return self._filter(scope, table, scope.code(f"{key.sql} {same}", Type.BOOL, key))
            case Select(record=record):
                scope = self.scope(table)
                return _project(scope, table, schema, [scope.output(value) for _, value in record])
        table = canonical(table)
        match transformation:
            case SelectMany(records=records, at_most=at_most):
                return self._select_many(table, schema, [[v for _, v in r] for r in records[:at_most]])
            case Explode(value=value, at_most=at_most):
                scope = self.scope(table)
                code = scope.lower(value)
                pieces = f"explode(slice({code.sql}, 1, {_limit(at_most)}))"
                return _project(scope, table, schema, [Code(pieces, Type.STRING, code.level)])
            case Distinct():
                return replace(table, source=f"(SELECT DISTINCT {table.listed} FROM {table.source})")
            case Take(at_most=at_most):
                return self._first(table, (), at_most)
            case LimitPerKey(at_most=at_most, keys=keys):
                return self._first(table, keys, at_most)
            case UniqueBy(keys=keys):
                return self._unique(table, keys)
            case GroupBy(keys=keys, aggregates=aggregates):
                return self._group_by(table, schema, [value for _, value in keys], aggregates)
        raise AssertionError("not a transformation of one table")

    def _of_two(
        self, transformation: object, left: Relation, right: Relation, schema: Schema, persons: str
    ) -> Relation:
        if isinstance(transformation, SemiJoin):
            # A side that is the same for everybody needs no copy per person on the right.
            if right.per_person:
                left = self._for_everybody(left, persons)
            return self._semi_join(transformation, left, right)
        if isinstance(transformation, Join):
            if transformation.outer and right.per_person:
                left = self._for_everybody(left, persons)
            return self._join(transformation, left, right, schema)
        if left.per_person or right.per_person:
            left, right = self._for_everybody(left, persons), self._for_everybody(right, persons)
        match transformation:
            case GroupJoin():
                return self._group_join(transformation, left, right, schema)
            case Concat():
                return _combined(left, "UNION ALL", right)
            case Union(bag=bag):
                if not bag:
                    return _combined(left, "UNION", right)
                # The larger multiplicity: number the copies of a record on each side, then union.
                return _combined(left, "UNION", right, numbered=True)
            case Intersect(bag=bag):
                return _combined(left, "INTERSECT ALL" if bag else "INTERSECT", right)
            case Except(bag=bag):
                return _combined(left, "EXCEPT ALL" if bag else "EXCEPT", right)
        raise AssertionError("not a transformation of two tables")

    # ── rows ─────────────────────────────────────────────────────────────────────────

    def _literal(self, table: LiteralTable, schema: Schema) -> Relation:
        columns = _columns(schema)
        types = schema.types()
        rows = table.rows or (tuple(None for _ in types),)
        values = ", ".join(
            "(" + ", ".join(render(v, t, self.parameters) for v, t in zip(row, types, strict=True)) + ")"
            for row in rows
        )
        names = ", ".join(column.sql for column in columns)
        empty = "" if table.rows else " WHERE FALSE"
        return Relation(f"(SELECT {names} FROM VALUES {values} AS v({names}){empty})", schema, columns)

    def _filter(self, scope: Scope, table: Relation, predicate: Code) -> Relation:
        outputs = _outputs(table.columns, table.per_person)
        return replace(table, source=f"({scope.select(table.source, outputs, predicate)})")

    def _select_many(
        self, table: Relation, schema: Schema, records: Sequence[Sequence[Expression]]
    ) -> Relation:
        scope = self.scope(table)
        lowered = [[scope.output(value) for value in record] for record in records]
        fields = [", ".join(f"'c{i}', {code.sql}" for i, code in enumerate(codes)) for codes in lowered]
        made = ", ".join(f"named_struct({listed})" for listed in fields)
        columns = _known([reduce(Code.or_, codes) for codes in zip(*lowered, strict=True)])
        source = scope.select(table.source, _unit(table.per_person), also=f"inline(array({made}))")
        return Relation(f"({source})", schema, columns, table.per_person)

    # ── per key ──────────────────────────────────────────────────────────────────────

    def _keyed(
        self, table: Relation, keys: Iterable[Expression], *, null: bool = True
    ) -> tuple[str, list[str]]:
        """The table with its keys as columns k0, k1, …, and their names; without null keys if not null."""
        scope = self.scope(table)
        codes = [scope.output(key) for key in keys]
        names = [f"k{i}" for i in range(len(codes))]
        outputs = [*_outputs(table.columns, table.per_person), *zip(names, codes, strict=True)]
        sql = scope.select(table.source, outputs)
        if not null:
            sql = f"SELECT * FROM ({sql}) WHERE {' AND '.join(f'{name} IS NOT NULL' for name in names)}"
        return f"({sql})", names

    def _first(self, table: Relation, keys: Sequence[Expression], at_most: int) -> Relation:
        if not keys and not table.per_person:
            ordered = f"SELECT {table.listed} FROM {table.source} ORDER BY {_order(table)}"
            return replace(table, source=f"({ordered} LIMIT {_limit(at_most)})")
        source, names = self._keyed(table, keys)
        kept = _first_per_key(table, source, names, at_most, keys)
        return replace(table, source=f"(SELECT {table.listed} FROM {kept})")

    def _unique(self, table: Relation, keys: Sequence[Expression]) -> Relation:
        source, names = self._keyed(table, keys)
        return replace(table, source=f"(SELECT {table.listed} FROM {_unique_per_key(table, source, names)})")

    def _person_table(self, root: str, name: str, at_most: int) -> Relation:
        persons = self.roots[root]
        assert isinstance(persons, PersonSource)
        stored = persons.tables[name]
        table = canonical(_stored(stored))
        unit = table.columns[stored.schema.names().index(persons.shape.unit)].sql
        with_unit = f"(SELECT *, {unit} AS {UNIT} FROM {table.source} WHERE {unit} IS NOT NULL)"
        rows = replace(table, source=with_unit, per_person=True)
        return self._first(rows, (), at_most)

    def _for_everybody(self, table: Relation, root: str) -> Relation:
        """A table that is the same for everybody as one copy per person."""
        if table.per_person:
            return table
        persons = self.roots[root]
        assert isinstance(persons, PersonSource)
        ids = []
        for stored in persons.tables.values():
            rows = canonical(_stored(stored))
            unit = rows.columns[stored.schema.names().index(persons.shape.unit)].sql
            ids.append(f"SELECT {unit} AS {UNIT} FROM {rows.source} WHERE {unit} IS NOT NULL")
        everybody = f"(SELECT DISTINCT {UNIT} FROM ({' UNION ALL '.join(ids)}))"
        source = f"(SELECT {table.listed}, {UNIT} FROM {table.source} CROSS JOIN {everybody})"
        return replace(table, source=source, per_person=True)

    # ── groups ───────────────────────────────────────────────────────────────────────

    def _group_by(
        self, table: Relation, schema: Schema, keys: Sequence[Expression], aggregates: Aggregates
    ) -> Relation:
        scope = self.scope(table)
        codes = [scope.output(key) for key in keys]
        inputs, sums = _aggregate_inputs(scope, aggregates, "a")
        names = [f"c{i}" for i in range(len(keys))]
        outputs = [*zip(names, codes, strict=True), *inputs, *_unit(table.per_person)]
        inner = scope.select(table.source, outputs or [("one", Code("1", Type.INT64))])
        return _grouped(table, schema, f"({inner})", names, _known(codes), [*sums])

    def _group_join(self, join: GroupJoin, left: Relation, right: Relation, schema: Schema) -> Relation:
        """One grouping of both sides' rows: a row leaves the other side's inputs null."""
        sides = []
        for prefix, table, keys, aggregates in (
            ("a", left, join.left_keys, join.left_aggregates),
            ("b", right, join.right_keys, join.right_aggregates),
        ):
            scope = self.scope(table)
            codes = [scope.output(key) for key in keys]
            inputs, sums = _aggregate_inputs(scope, aggregates, prefix, members=f"{prefix}m")
            sides.append((table, scope, codes, inputs, sums))
        names = [f"c{i}" for i in range(len(join.names))]
        selects = []
        for side, (table, scope, codes, inputs, _) in enumerate(sides):
            other = [
                (name, Code(f"CAST(NULL AS {SQL_TYPES[code.type]})", code.type))
                for name, code in sides[1 - side][3]
            ]
            both = [*inputs, *other] if side == 0 else [*other, *inputs]
            outputs = [*zip(names, codes, strict=True), *both, *_unit(table.per_person)]
            present = " AND ".join(f"{name} IS NOT NULL" for name in names)
            selects.append(f"SELECT * FROM ({scope.select(table.source, outputs)}) WHERE {present}")
        known = [a.or_(b) for a, b in zip(_known(sides[0][2]), _known(sides[1][2]), strict=True)]
        sums = [*sides[0][4], *sides[1][4]]
        return _grouped(left, schema, f"({' UNION ALL '.join(selects)})", names, known, sums)

    # ── joins ────────────────────────────────────────────────────────────────────────

    def _join(self, join: Join, left: Relation, right: Relation, schema: Schema) -> Relation:
        lefts = self._truncated(left, join.left_keys, join.left, null=join.outer)
        rights = self._truncated(right, join.right_keys, join.right)
        on = [f"l.k{i} = r.k{i}" for i in range(len(join.left_keys))]
        if left.per_person and right.per_person:
            on.append(f"l.{UNIT} = r.{UNIT}")
        n = len(left.columns)
        shifted = [replace(code, sql=f"c{n + i}") for i, code in enumerate(right.columns)]
        listed = [f"l.{code.sql} AS {code.sql}" for code in left.columns]
        listed += [f"r.{a.sql} AS {b.sql}" for a, b in zip(right.columns, shifted, strict=True)]
        if left.per_person or right.per_person:
            listed.append(f"{'l' if left.per_person else 'r'}.{UNIT} AS {UNIT}")
        pair = f"{lefts} AS l {'LEFT' if join.outer else 'INNER'} JOIN {rights} AS r ON {' AND '.join(on)}"
        source = f"(SELECT {', '.join(listed)} FROM {pair})"
        both = joined_schema(left.schema, right.schema)
        pairs = Relation(source, both, (*left.columns, *shifted), left.per_person or right.per_person)
        scope = self.scope(pairs)
        return _project(scope, pairs, schema, [scope.output(value) for _, value in join.record])

    def _truncated(
        self, table: Relation, keys: Sequence[Expression], truncation: Truncation, *, null: bool = False
    ) -> str:
        source, names = self._keyed(table, keys, null=null)
        match truncation:
            case First(at_most=at_most):
                return _first_per_key(table, source, names, at_most, keys)
            case _ if not isinstance(truncation, All):
                return _unique_per_key(table, source, names)
        return source

    def _semi_join(self, join: SemiJoin, left: Relation, right: Relation) -> Relation:
        lefts, names = self._keyed(left, join.left_keys)
        rights, _ = self._keyed(right, join.right_keys, null=False)
        on = [f"l.{name} = r.{name}" for name in names]
        if right.per_person:
            on.append(f"l.{UNIT} = r.{UNIT}")
        how = "LEFT SEMI JOIN" if join.keep else "LEFT ANTI JOIN"
        source = f"(SELECT {left.listed} FROM {lefts} AS l {how} {rights} AS r ON {' AND '.join(on)})"
        return replace(left, source=source)


# ── columns ──────────────────────────────────────────────────────────────────────────


def _columns(schema: Schema) -> tuple[Code, ...]:
    return tuple(Code(f"c{i}", type_, atom=True) for i, type_ in enumerate(schema.types()))


def _known(codes: Iterable[Code]) -> tuple[Code, ...]:
    """The columns c0, c1, … that hold these values: what is known about them stays known."""
    return tuple(replace(code, sql=f"c{i}", level=0, atom=True, raw=False) for i, code in enumerate(codes))


def _stored(source: Source) -> Relation:
    columns = tuple(replace(c, raw=i in source.raw) for i, c in enumerate(_columns(source.schema)))
    return Relation(source.relation, source.schema, columns)


def canonical(table: Relation) -> Relation:
    """The table without raw floats."""
    if not any(column.raw for column in table.columns):
        return table
    listed = [
        f"{canonical_float(column.sql)} AS {column.sql}" if column.raw else column.sql
        for column in table.columns
    ]
    listed += [UNIT] * table.per_person
    columns = tuple(replace(c, raw=False, weight=2 * c.weight) if c.raw else c for c in table.columns)
    return replace(table, source=f"(SELECT {', '.join(listed)} FROM {table.source})", columns=columns)


def _unit(per_person: bool) -> list[tuple[str, Code]]:
    return [(UNIT, Code(UNIT, Type.STRING))] if per_person else []


def _outputs(columns: Iterable[Code], per_person: bool) -> list[tuple[str, Code]]:
    return [(column.sql, column) for column in columns] + _unit(per_person)


def _project(scope: Scope, table: Relation, schema: Schema, codes: Sequence[Code]) -> Relation:
    """One column for each code."""
    columns = _known(codes)
    named = [(column.sql, code) for column, code in zip(columns, codes, strict=True)]
    source = f"({scope.select(table.source, [*named, *_unit(table.per_person)])})"
    return Relation(source, schema, columns, table.per_person)


def _combined(left: Relation, how: str, right: Relation, *, numbered: bool = False) -> Relation:
    sides = []
    for table in (left, right):
        number = f", row_number() OVER (PARTITION BY {table.listed} ORDER BY 1) AS rn" if numbered else ""
        sides.append(f"SELECT {table.listed}{number} FROM {table.source}")
    columns = tuple(a.or_(b) for a, b in zip(left.columns, right.columns, strict=True))
    source = f"({f' {how} '.join(sides)})"
    if numbered:
        source = f"(SELECT {left.listed} FROM {source})"
    return replace(left, source=source, columns=columns)


# LIMIT and row_number have 31 bits. A smaller truncation is sound, and no group is larger in practice.
_MOST = 2**31 - 1


def _limit(at_most: int) -> int:
    return min(at_most, _MOST)


def _order(table: Relation, fixed: Iterable[Expression] = ()) -> str:
    """The canonical order, without the columns that do not vary."""
    constant = {key.name for key in fixed if isinstance(key, Column)}
    varying = [
        f"{column.sql} NULLS FIRST"
        for name, column in zip(table.schema.names(), table.columns, strict=True)
        if name not in constant
    ]
    return ", ".join(varying)


def _first_per_key(
    table: Relation, source: str, names: Sequence[str], at_most: int, keys: Sequence[Expression]
) -> str:
    partition = ", ".join([*names, *[UNIT] * table.per_person])
    order = _order(table, keys)
    by = f"PARTITION BY {partition} " if partition else ""
    window = f"{by}ORDER BY {order or '1'}"
    numbered = f"(SELECT *, row_number() OVER ({window}) AS rn FROM {source})"
    return f"(SELECT * FROM {numbered} WHERE rn <= {_limit(at_most)})"


def _unique_per_key(table: Relation, source: str, names: Sequence[str]) -> str:
    """Groups of one: their smallest values are the values of the record."""
    groups = [*names, *[UNIT] * table.per_person]
    values = [f"min({column.sql}) AS {column.sql}" for column in table.columns]
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    members = f"SELECT {', '.join([*groups, *values])}, count(*) AS rn FROM {source}{by}"
    return f"(SELECT * FROM ({members}) WHERE rn = 1)"


# ── aggregates ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Sum:
    """An aggregate: what the grouping computes, and the column it becomes."""

    computed: tuple[tuple[str, str], ...]
    result: Code


def _aggregate_inputs(
    scope: Scope, aggregates: Aggregates, prefix: str, members: str | None = None
) -> tuple[list[tuple[str, Code]], list[_Sum]]:
    """The columns to aggregate, and how. `members` is a column that is null where a row is no member."""
    inputs: list[tuple[str, Code]] = []
    sums: list[_Sum] = []
    if members is not None:
        inputs.append((members, Code("1", Type.INT64)))
    for number, (_, aggregate) in enumerate(aggregates):
        name = f"{prefix}{number}"
        sums.append(_aggregate(scope, aggregate, name, members, inputs))
    return inputs, sums


def _aggregate(
    scope: Scope, aggregate: Aggregate, name: str, members: str | None, inputs: list[tuple[str, Code]]
) -> _Sum:
    type_ = aggregate.type_in(scope.schema)
    match aggregate.function, aggregate.value:
        case "count", _:
            count = Code(f"n{name}", type_, atom=True, low=0)
            return _Sum(((count.sql, f"count({members or '*'})"),), count)
        case ("min" | "max") as function, value if value is not None and not isinstance(value, Clamp):
            code = scope.output(value)
            inputs.append((name, code))
            extreme = replace(code, sql=f"m{name}", level=0, weight=1, atom=True)
            return _Sum(((extreme.sql, f"{function}({name})"),), extreme)
        case function, Clamp() as clamp:
            inputs.append((name, scope.quantise(clamp)))
            limbs = Limbs.of(clamp)
            computed = [(f"s{name}_{i}", sql) for i, sql in enumerate(limbs.sums(name))]
            total = limbs.total([column for column, _ in computed])
            step = double(float(clamp.step))
            exact = f"{total} BETWEEN {big(-MAX_GRID)} AND {big(MAX_GRID)}"
            as_float = f"CAST(CASE WHEN {exact} THEN {total} END AS DOUBLE) * {step}"
            if function == "average":
                computed.append((f"n{name}", f"count({name})"))
                members_sql = f"CASE WHEN n{name} > 0 THEN CAST(n{name} AS DOUBLE) END"
                return _Sum(tuple(computed), Code(f"({as_float} / {members_sql} + 0D)", type_))
            result = total if type_ is Type.INT64 else f"({as_float})"
            return _Sum(tuple(computed), Code(result, type_))
    raise AssertionError("not an aggregate")


def _grouped(
    table: Relation,
    schema: Schema,
    source: str,
    names: Sequence[str],
    known: Sequence[Code],
    sums: Sequence[_Sum],
) -> Relation:
    """One row per key, and per person: the keys, then the aggregates."""
    groups = [*names, *[UNIT] * table.per_person]
    computed = [f"{sql} AS {name}" for aggregate in sums for name, sql in aggregate.computed]
    # A group without keys exists only if it has a member.
    end = f"GROUP BY {', '.join(groups)}" if groups else ""
    listed = ", ".join([*groups, *computed, "count(*) AS rn"])
    inner = f"(SELECT {listed} FROM {source} {end})"
    codes = [*known, *(aggregate.result for aggregate in sums)]
    columns = _known(codes)
    outer = [f"{code.sql} AS {column.sql}" for code, column in zip(codes, columns, strict=True)]
    outer += [UNIT] * table.per_person
    nonempty = "" if groups else " WHERE rn > 0"
    return Relation(f"(SELECT {', '.join(outer)} FROM {inner}{nonempty})", schema, columns, table.per_person)


def _root(flatten: Term) -> str:
    (root,) = flatten.arguments
    assert isinstance(root, RootTable)
    return root.root


def _streams(plan: Plan) -> bool:
    """Whether a plan is a stored table, row by row: cheaper to scan again than to keep."""
    while isinstance(plan, Term) and isinstance(plan.transformation, Identity | Where | Select | PartOf):
        (plan,) = plan.arguments
    return isinstance(plan, RootTable)


def is_row_by_row(plan: Plan) -> bool:
    """Whether no row of a plan depends on another one: then the statistic's shuffle is the only one."""
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, Term):
            continue
        seen.add(id(node))
        if not isinstance(node.transformation, _ROW_BY_ROW):
            return False
        waiting += node.arguments
    return True


_ROW_BY_ROW = (LiteralTable, Identity, Where, Select, SelectMany, Explode, PartOf, Concat)


def _size(plan: Plan, sizes: dict[int, int] | None = None) -> int:
    """How many terms a plan has when shared ones are written out each time."""
    sizes = {} if sizes is None else sizes
    if id(plan) not in sizes:
        below = 0
        if isinstance(plan, Term):
            below = sum(_size(argument, sizes) for argument in plan.arguments)
            if isinstance(plan.transformation, Flatten):
                below += _size(plan.transformation.body, sizes)
        sizes[id(plan)] = 1 + below
    return sizes[id(plan)]
