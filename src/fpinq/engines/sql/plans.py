"""Plans to nested subqueries; steps that look at one row at a time are one (docs/decisions/0109).

Every closed relation has the columns c0, c1, … in the order of its schema: names that
a program chose stay outside. Inside a flatten, where every operator works on
one person's rows at a time, a relation has the hidden column u as well, the
person, and operators treat it as one more key; a relation without it is the
same for everybody.

A subplan that is used more than once is a common table expression. Where an
order decides which rows stay, it is the canonical one, over all columns, so
that the result depends on the bag alone.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from fpinq.engines.sql import truncation
from fpinq.engines.sql.aggregates import aggregate_inputs, grouped
from fpinq.engines.sql.blocks import is_concat
from fpinq.engines.sql.dialect import Dialect
from fpinq.engines.sql.expressions import Bindings, Code, Layers, Parameters, render
from fpinq.engines.sql.looks import Looks, NoLooks
from fpinq.engines.sql.relations import (
    UNIT,
    Lowered,
    Stored,
    StoredPersons,
    as_columns,
    canonical,
    columns_of,
    rows_of_persons,
    table_of,
)
from fpinq.engines.sql.steps import (
    combined,
    either,
    filtered,
    keys_of,
    mentioned_once,
    never_empty,
    present,
    projected,
    unit_of,
)
from fpinq.model.expressions import Expression, Schema, Type, Value
from fpinq.model.plans import Flatten, PersonTable, Plan, RootTable, Term, apply
from fpinq.model.transformations import (
    Aggregates,
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


class Lowering:
    """The SQL of one plan: what it binds, and the subplans it uses more than once."""

    def __init__(
        self, dialect: Dialect, roots: Mapping[str, Stored | StoredPersons], looks: Looks | None = None
    ) -> None:
        self.dialect = dialect
        self.roots = roots
        self.looks = looks or NoLooks()
        self.parameters = Parameters(dialect)
        self.shared: list[str] = []
        self.lasts = True  # what is written means the same in another statement
        self._uses: dict[tuple[int, str], int] = {}
        self._done: dict[tuple[int, str], Lowered] = {}

    def plan(self, plan: Plan) -> Lowered:
        """The relation of a plan."""
        self._count(plan, "")
        return self._plan(plan, "")

    def again(self, table: Lowered) -> tuple["Lowering", Lowered]:
        """The same relation for another statement: what is bound from here on, is bound there alone."""
        other = Lowering(self.dialect, self.roots, NoLooks(self.looks.steady))
        other.parameters, other.shared = self.parameters.copied(), [*self.shared]
        return other, replace(table, layers=table.layers.copied() if table.layers else None)

    def statement(self, select: str) -> str:
        """A SELECT together with the subplans it uses."""
        return f"WITH {', '.join(self.shared)} {select}" if self.shared else select

    def rows(self, table: Lowered) -> str:
        """A SELECT of the rows of a relation, together with the subplans it uses."""
        return self.statement(self._select(table))

    def bindings(self, relation: Lowered, once: Container[str] = ()) -> Bindings:
        """What an expression over the relation can read; the columns in `once` it reads once."""
        schema, layers = relation.schema, relation.layers or Layers(frozenset(relation.names))
        columns = dict(zip(schema.names(), relation.columns, strict=True))
        return Bindings(columns, schema, self.parameters, layers, relation.tests, once)

    def closed(self, table: Lowered) -> Lowered:
        """The relation whose columns are c0, c1, … of its source, without raw floats."""
        table = canonical(table, self.dialect)
        if table.layers is None:
            return table
        columns = as_columns(table.columns)
        return replace(table, source=f"({self._select(table)})", columns=columns, layers=None, tests=())

    def _select(self, table: Lowered) -> str:
        """A SELECT of the rows of a relation."""
        table = canonical(table, self.dialect)
        if table.layers is None:
            return f"SELECT {table.listed} FROM {table.source} AS d"
        return self.bindings(table).select(table.source, table.outputs)

    # ── terms ────────────────────────────────────────────────────────────────────────

    def _count(self, plan: Plan, persons: str) -> None:
        key = (id(plan), persons)
        self._uses[key] = self._uses.get(key, 0) + 1
        self.parameters.written += self._uses[key] == 1
        if self._uses[key] == 1 and isinstance(plan, Term):
            if isinstance(plan.transformation, Flatten):
                self._count(plan.transformation.body, _root(plan))
            else:
                for argument in plan.arguments:
                    self._count(argument, persons)

    def _plan(self, plan: Plan, persons: str) -> Lowered:
        key = (id(plan), persons)
        if key not in self._done:
            relation, streams = self._lower(plan, persons), self._streams(plan, persons)
            if relation.streams != streams:
                relation = replace(relation, streams=streams)
            if self._uses[key] > 1:
                relation = self._used_again(relation)
            self._done[key] = relation
        return self._done[key]

    def _streams(self, plan: Plan, persons: str) -> bool:
        """Whether a plan is a stored table, row by row: cheaper to scan again than to keep."""
        if isinstance(plan, Term) and isinstance(plan.transformation, Identity | Where | Select | PartOf):
            return self._done[id(plan.arguments[0]), persons].streams
        return isinstance(plan, RootTable)

    def _used_again(self, relation: Lowered) -> Lowered:
        """A relation that is used more than once: nothing is said of one use that the others see."""
        if relation.streams:
            return relation if relation.layers is None else self.closed(relation)
        relation = self.closed(relation)
        return replace(relation, source=self._share(relation))

    def _share(self, relation: Lowered) -> str:
        """The name of a relation that is used more than once."""
        select = f"SELECT {relation.listed} FROM {relation.source} AS d"
        kept = self.looks.keep(select)
        if kept is not None:
            return kept
        name = f"s{len(self.shared)}"
        self.shared.append(self.dialect.shared(name, select))
        return name

    def _lower(self, plan: Plan, persons: str) -> Lowered:
        match plan:
            case RootTable(root=root):
                source = self.roots[root]
                assert isinstance(source, Stored)
                return table_of(source)
            case PersonTable(table=table, at_most=at_most):
                return self._person_table(persons, table, at_most)
            case Term(transformation=Flatten(body=body)):
                root = _root(plan)
                flat = self._for_everybody(self._plan(body, root), root)
                return replace(flat, per_person=False)
            case Term(transformation=Concat() | ConcatAll()):
                return self._concat(plan, persons)
            case Term(transformation=transformation, arguments=arguments):
                lowered: list[Lowered] = []
                for argument in arguments:  # a comprehension would be one more frame per step
                    lowered.append(self._plan(argument, persons))
                schema = apply(transformation, [relation.schema for relation in lowered])
                match lowered:
                    case []:
                        assert isinstance(transformation, LiteralTable)
                        return self._literal(transformation, schema)
                    case [only]:
                        return self._of_one(transformation, only, schema)
                    case _:
                        left, right = map(self.closed, lowered)
                        return self._of_two(transformation, left, right, schema, persons)

    def _of_one(self, transformation: object, table: Lowered, schema: Schema) -> Lowered:
        match transformation:
            case Identity():
                return table
            case Where(predicate=predicate):
                bindings = self.bindings(table)
                return filtered(table, bindings, bindings.output(predicate))
            case PartOf(by=by, index=index):
                bindings = self.bindings(table)
                key = by.keys[index]
                codes = [bindings.output(expression) for expression in by.expressions]
                same = bindings.are(codes, key if isinstance(key, tuple) else (key,))
                return filtered(table, bindings, bindings.code(same, Type.BOOL, *codes))
            case Select(record=record):
                bindings = self.bindings(table, mentioned_once(table, record))
                columns = tuple([bindings.output(value) for _, value in record])
                return replace(table, schema=schema, columns=columns, layers=bindings.layers)
        table = canonical(table, self.dialect)
        match transformation:
            case SelectMany(records=records, at_most=at_most):
                return self._select_many(table, schema, [[v for _, v in r] for r in records[:at_most]])
            case Explode(value=value, at_most=at_most):
                bindings = self.bindings(table)
                code = bindings.lower(value)
                pieces = self.dialect.pieces(code.sql, at_most)
                return projected(bindings, table, schema, [Code(pieces, Type.STRING, code.level)])
            case GroupBy(keys=named, aggregates=aggregates):
                return self._group_by(table, schema, [value for _, value in named], aggregates)
        table = self.closed(table)
        match transformation:
            case Distinct():
                return replace(table, source=f"(SELECT DISTINCT {table.listed} FROM {table.source} AS d)")
            case Take(at_most=at_most):
                return self._first(table, (), at_most)
            case LimitPerKey(at_most=at_most, keys=keys):
                return self._first(table, keys, at_most)
            case UniqueBy(keys=keys):
                return self._unique(table, keys)
        raise AssertionError("not a transformation of one table")

    def _of_two(
        self, transformation: object, left: Lowered, right: Lowered, schema: Schema, persons: str
    ) -> Lowered:
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
            case Union(bag=bag):
                return self._union_of_bags(left, right) if bag else combined(left, "UNION", right)
            case Intersect(bag=bag):
                return self._compared(left, "INTERSECT ALL" if bag else "INTERSECT", right)
            case Except(bag=bag):
                return self._compared(left, "EXCEPT ALL" if bag else "EXCEPT", right)
        raise AssertionError("not a transformation of two tables")

    def _concat(self, plan: Term, persons: str) -> Lowered:
        """All rows of all tables, one after the other: a concat of concats is one."""
        tables = [self._plan(table, persons) for table in self._together(plan, persons)]
        if any(table.per_person for table in tables):
            tables = [self._for_everybody(table, persons) for table in tables]
        tables = [canonical(table, self.dialect) for table in tables]
        selects = [self._select(table) for table in tables]
        # What is shared has its name in one statement only.
        gathered = None if self.shared else self.looks.gather(selects, self.parameters)
        self.lasts &= gathered is None
        known = (reduce(Code.or_, codes) for codes in zip(*(table.columns for table in tables), strict=True))
        source = gathered or f"({' UNION ALL '.join(selects)})"
        return Lowered(source, tables[0].schema, as_columns(known), tables[0].per_person)

    def _together(self, plan: Term, persons: str) -> Iterator[Plan]:
        """The tables that a concat puts together, those of its own concats among them."""
        waiting: list[Plan] = list(reversed(plan.arguments))
        while waiting:
            table = waiting.pop()
            if is_concat(table) and self._uses[id(table), persons] == 1:
                waiting += reversed(table.arguments)
            else:
                yield table

    def _compared(self, left: Lowered, how: str, right: Lowered) -> Lowered:
        """The left's rows that are, or are not, among the right's; as `_paired` where it has to be steady."""
        if not self.looks.steady:
            return combined(left, how, right)
        marked = f"SELECT {left.listed}, FALSE AS z FROM {left.source} AS d"
        source = f"({marked} {how} ({never_empty(left.names, right.source)}))"
        return either(left, right, f"(SELECT {left.listed} FROM {source} AS d)")

    def _union_of_bags(self, left: Lowered, right: Lowered) -> Lowered:
        """The larger multiplicity: number the copies of a record on each side, then union."""
        number = f"{self.dialect.row_number(left.names, ())} AS n"
        sides = (f"SELECT {table.listed}, {number} FROM {table.source} AS d" for table in (left, right))
        return either(left, right, f"(SELECT {left.listed} FROM ({' UNION '.join(sides)}) AS d)")

    # ── rows ─────────────────────────────────────────────────────────────────────────

    def _literal(self, table: LiteralTable, schema: Schema) -> Lowered:
        columns = columns_of(schema)
        types = schema.types()
        rows = table.rows or (tuple(None for _ in types),)
        self.parameters.written += len(rows) * len(types)
        self.parameters.selects(len(types))
        if table.rows and not self.dialect.writes_rows:
            return Lowered(self._listed(rows, types), schema, columns)
        values = ", ".join(
            "(" + ", ".join(render(v, t, self.parameters) for v, t in zip(row, types, strict=True)) + ")"
            for row in rows
        )
        typed = ", ".join(f"CAST(c{i} AS {self.dialect.type_name(t)}) AS c{i}" for i, t in enumerate(types))
        names = ", ".join(column.sql for column in columns)
        empty = "" if table.rows else " WHERE FALSE"
        return Lowered(f"(SELECT {typed} FROM (VALUES {values}) AS v({names}){empty})", schema, columns)

    def _listed(self, rows: Sequence[Sequence[Value]], types: Sequence[Type]) -> str:
        """Rows that are bound, column by column, as keys are: as a text they would take longest to read."""
        number = len(self.parameters.others)
        keyed = {
            f"t{number}_{i}": (values, type_)
            for i, (values, type_) in enumerate(zip(zip(*rows, strict=True), types, strict=True))
        }
        listing = self.dialect.keys(keyed, self.parameters)
        names = ", ".join(f"{name} AS c{i}" for i, name in enumerate(listing.columns.values()))
        return f"(SELECT {names} FROM {listing.source} AS v)"

    def _select_many(
        self, table: Lowered, schema: Schema, records: Sequence[Sequence[Expression]]
    ) -> Lowered:
        bindings = self.bindings(table)
        lowered = [[bindings.output(value) for value in record] for record in records]
        columns = as_columns(reduce(Code.or_, codes) for codes in zip(*lowered, strict=True))
        listed = self.dialect.records([[code.sql for code in codes] for codes in lowered])
        outputs = [(name, Code(sql, Type.STRINGS)) for name, sql in listed]
        source = f"({bindings.select(table.source, [*outputs, *unit_of(table.per_person)])})"
        return Lowered(source, schema, columns, table.per_person)

    # ── per key ──────────────────────────────────────────────────────────────────────

    def _keyed(
        self, table: Lowered, keys: Iterable[Expression], *, null: bool = True
    ) -> tuple[str, list[str]]:
        """The table with its keys as columns k0, k1, …, and their names; without null keys if not null."""
        bindings = self.bindings(table)
        codes = [bindings.output(key) for key in keys]
        names = [f"k{i}" for i in range(len(codes))]
        outputs = [*table.outputs, *zip(names, codes, strict=True)]
        sql = bindings.select(table.source, outputs)
        if not null:
            sql = f"SELECT * FROM ({sql}) AS d WHERE {present(names)}"
        return f"({sql})", names

    def _first(self, table: Lowered, keys: Sequence[Expression], at_most: int) -> Lowered:
        if not keys and not table.per_person:
            by = truncation.order(table, self.dialect)
            select = f"SELECT {table.listed} FROM {table.source} AS d"
            return replace(table, source=f"({self.dialect.first(select, by, at_most)})")
        source, names = self._keyed(table, keys)
        kept = self._first_per_key(table, source, names, at_most, keys)
        return replace(table, source=f"(SELECT {table.listed} FROM {kept} AS d)")

    def _first_per_key(
        self, table: Lowered, source: str, names: Sequence[str], at_most: int, keys: Sequence[Expression]
    ) -> str:
        groups, by = keys_of(table, names), truncation.order(table, self.dialect, keys)
        asked = (source, groups, by, at_most)
        faster = self.looks.first_per_key(*asked, self.parameters) if table.streams else None
        return faster or self.dialect.first_per_key(*asked)

    def _unique_per_key(self, table: Lowered, source: str, names: Sequence[str]) -> str:
        return truncation.unique_per_key(table, source, keys_of(table, names), self.dialect)

    def _unique(self, table: Lowered, keys: Sequence[Expression]) -> Lowered:
        unique = self._unique_per_key(table, *self._keyed(table, keys))
        return replace(table, source=f"(SELECT {table.listed} FROM {unique} AS d)")

    def _person_table(self, root: str, name: str, at_most: int) -> Lowered:
        persons = self.roots[root]
        assert isinstance(persons, StoredPersons)
        stored = persons.tables[name]
        unit = stored.schema.names().index(persons.shape.unit)
        cut = self.looks.cut(stored, unit, at_most)
        if cut is None:
            return self._first(rows_of_persons(stored, unit, self.dialect), (), at_most)
        rows = rows_of_persons(stored, unit, self.dialect, numbered=True)
        kept = self.dialect.semi_join(str(rows.source), cut, "l.i = r.i", keep=False)
        return replace(rows, source=f"(SELECT {rows.listed} FROM {kept})")

    def _for_everybody(self, table: Lowered, root: str) -> Lowered:
        """A table that is the same for everybody as one copy per person."""
        if table.per_person:
            return table
        table, persons = self.closed(table), self.roots[root]
        assert isinstance(persons, StoredPersons)
        ids = []
        for stored in persons.tables.values():
            rows = rows_of_persons(stored, stored.schema.names().index(persons.shape.unit), self.dialect)
            ids.append(f"SELECT {UNIT} FROM {rows.source} AS d")
        everybody = f"(SELECT DISTINCT {UNIT} FROM ({' UNION ALL '.join(ids)}) AS d)"
        pairs = f"{table.source} AS l CROSS JOIN {everybody} AS r"
        if self.looks.steady:
            # What follows a cross product is computed once for a row of its larger side, whichever that is.
            left = f"(SELECT {table.listed}, FALSE AS z FROM {table.source} AS d)"
            right = f"(SELECT {UNIT}, {UNIT} IS NULL AS z FROM {everybody} AS d)"
            pairs = f"{left} AS l JOIN {right} AS r ON l.z = r.z"
        return replace(table, source=f"(SELECT {table.listed}, {UNIT} FROM {pairs})", per_person=True)

    # ── groups ───────────────────────────────────────────────────────────────────────

    def _group_by(
        self, table: Lowered, schema: Schema, keys: Sequence[Expression], aggregates: Aggregates
    ) -> Lowered:
        bindings = self.bindings(table)
        codes = [bindings.output(key) for key in keys]
        inputs, sums = aggregate_inputs(bindings, aggregates, "a")
        names = [f"c{i}" for i in range(len(keys))]
        outputs = [*zip(names, codes, strict=True), *inputs, *unit_of(table.per_person)]
        inner = bindings.select(table.source, outputs or [("one", Code("1", Type.INT64))])
        self.parameters.selects(len(names) + sum(len(each.computed) for each in sums))
        return grouped(table, schema, f"({inner})", names, as_columns(codes), [*sums])

    def _group_join(self, join: GroupJoin, left: Lowered, right: Lowered, schema: Schema) -> Lowered:
        """One grouping of both sides' rows: a row leaves the other side's inputs null."""
        sides = []
        for prefix, table, keys, aggregates in (
            ("a", left, join.left_keys, join.left_aggregates),
            ("b", right, join.right_keys, join.right_aggregates),
        ):
            bindings = self.bindings(table)
            codes = [bindings.output(key) for key in keys]
            inputs, sums = aggregate_inputs(bindings, aggregates, prefix, members=f"{prefix}m")
            sides.append((table, bindings, codes, inputs, sums))
        names = [f"c{i}" for i in range(len(join.names))]
        selects = []
        for side, (table, bindings, codes, inputs, _) in enumerate(sides):
            other = [
                (name, Code(self.dialect.null(code.type), code.type)) for name, code in sides[1 - side][3]
            ]
            both = [*inputs, *other] if side == 0 else [*other, *inputs]
            outputs = [*zip(names, codes, strict=True), *both, *unit_of(table.per_person)]
            selects.append(
                f"SELECT * FROM ({bindings.select(table.source, outputs)}) AS d WHERE {present(names)}"
            )
        known = [a.or_(b) for a, b in zip(as_columns(sides[0][2]), as_columns(sides[1][2]), strict=True)]
        sums = [*sides[0][4], *sides[1][4]]
        self.parameters.selects(len(names) + sum(len(each.computed) for each in sums))
        return grouped(left, schema, f"({' UNION ALL '.join(selects)})", names, known, sums)

    # ── joins ────────────────────────────────────────────────────────────────────────

    def _join(self, join: Join, left: Lowered, right: Lowered, schema: Schema) -> Lowered:
        lefts = self._truncated(left, join.left_keys, join.left, null=join.outer)
        rights = self._truncated(right, join.right_keys, join.right)
        names = [f"k{i}" for i in range(len(join.left_keys))]
        names += [UNIT] * (left.per_person and right.per_person)
        n = len(left.columns)
        shifted = [replace(code, sql=f"c{n + i}") for i, code in enumerate(right.columns)]
        listed = [f"l.{code.sql} AS {code.sql}" for code in left.columns]
        listed += [f"r.{a.sql} AS {b.sql}" for a, b in zip(right.columns, shifted, strict=True)]
        if left.per_person or right.per_person:
            listed.append(f"{'l' if left.per_person else 'r'}.{UNIT} AS {UNIT}")
        self.parameters.selects(len(listed))
        how = "LEFT" if join.outer else "INNER"
        lefts, rights, on = self._paired(lefts, right, rights, names)
        source = f"(SELECT {', '.join(listed)} FROM {lefts} AS l {how} JOIN {rights} AS r ON {on})"
        both = joined_schema(left.schema, right.schema)
        pairs = Lowered(source, both, (*left.columns, *shifted), left.per_person or right.per_person)
        bindings = self.bindings(pairs)
        return projected(bindings, pairs, schema, [bindings.output(value) for _, value in join.record])

    def _truncated(
        self, table: Lowered, keys: Sequence[Expression], truncation: Truncation, *, null: bool = False
    ) -> str:
        source, names = self._keyed(table, keys, null=null)
        match truncation:
            case First(at_most=at_most):
                return self._first_per_key(table, source, names, at_most, keys)
            case _ if not isinstance(truncation, All):
                return self._unique_per_key(table, source, names)
        return source

    def _semi_join(self, join: SemiJoin, left: Lowered, right: Lowered) -> Lowered:
        lefts, names = self._keyed(left, join.left_keys)
        rights, _ = self._keyed(right, join.right_keys, null=False)
        pair = self._paired(lefts, right, rights, keys_of(right, names))
        return replace(
            left, source=f"(SELECT {left.listed} FROM {self.dialect.semi_join(*pair, keep=join.keep)})"
        )

    def _paired(self, lefts: str, right: Lowered, rights: str, names: Sequence[str]) -> tuple[str, str, str]:
        """Two sides, l and r, and when rows of them pair: on equal names. The right has none that are null.

        Where the right of a join is empty a database does not look at the left, so one
        record could save all of its work. Steady, the right has a row that is equal
        to none: the mark z tells it from the others.
        """
        if not self.looks.steady:
            return lefts, rights, " AND ".join(f"l.{name} = r.{name}" for name in names)
        listed = [*right.names, *(name for name in names if name != UNIT)]
        on = " AND ".join(self.dialect.same(f"l.{name}", f"r.{name}") for name in [*names, "z"])
        return f"(SELECT *, FALSE AS z FROM {lefts} AS d)", f"({never_empty(listed, rights)})", on


def _root(flatten: Term) -> str:
    (root,) = flatten.arguments
    assert isinstance(root, RootTable)
    return root.root
