"""Tables: PINQ's algebra. Every transformation binds a new variable and gives a new handle."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fpinq.client.asking import Asking
from fpinq.client.bounds import Column as Known
from fpinq.client.derivation import Made
from fpinq.client.groups import Groups, Keys, Side
from fpinq.client.handle import Within
from fpinq.client.joins import every_pair, join_keys, key_cells, trees, truncation
from fpinq.client.parts import Parts, partitioning
from fpinq.client.queries import Subject
from fpinq.client.rows import Cell, Row, Scope
from fpinq.client.spelling import spell
from fpinq.client.systems import fresh_variable
from fpinq.client.tracing import checked_cell, checked_predicate, record_of, records_of, trace
from fpinq.model import actions
from fpinq.model.errors import BadTransformation, suggest
from fpinq.model.expressions import Column, Expression, Schema, Type
from fpinq.model.plans import Transformation
from fpinq.model.transformations import (
    Aggregate,
    Aggregates,
    All,
    Concat,
    Distinct,
    Except,
    Explode,
    GroupBy,
    GroupJoin,
    Intersect,
    Join,
    LimitPerKey,
    PartOf,
    Record,
    Select,
    SelectMany,
    SemiJoin,
    Take,
    Truncation,
    Union,
    Unique,
    UniqueBy,
    Where,
)

# What users of other libraries try first.
_ELSEWHERE = {
    "filter": "where",
    "map": "select",
    "mutate": "with_columns",
    "assign": "with_columns",
    "flat_map": "select_many",
    "explode": "select_many",
    "groupby": "group_by",
    "head": "take",
    "limit": "take",
    "skip": "except_ (table.except_(table.take(k), bag=True))",
    "merge": "join",
    "subtract": "except_",
    "difference": "except_",
    "count": "noisy_count",
    "sum": "noisy_sum",
    "mean": "noisy_average",
    "average": "noisy_average",
    "median": "noisy_median",
    "drop_duplicates": "distinct",
    "columns": "schema",
}


class Table(Asking):
    """A protected table, or a public one. Immutable: every transformation gives a new one."""

    # ── row by row ───────────────────────────────────────────────────────────────────

    def where(self, f: Any) -> "Table":
        """The records of which f is true."""
        scope = Scope()
        return self._where(checked_predicate(trace(f, Row(self._schema, scope)), scope))

    def select(self, f: Any) -> "Table":
        """One record made of each: f gives a dict of expressions, or one (the column `value`)."""
        scope = Scope()
        return self._select(record_of(trace(f, Row(self._schema, scope)), scope, "select"))

    def with_columns(self, f: Any = None, /, **named: Any) -> "Table":
        """The records with more columns, or other values in them: f gives a dict of expressions."""
        scope = Scope()
        row = Row(self._schema, scope)
        given = trace(f, row) if f is not None else {}
        if not isinstance(given, Mapping) or not (given or named):
            raise BadTransformation('with_columns needs named columns: lambda x: {"b": x.a + 1}')
        added = dict(record_of({**given, **trace(named, row)}, scope, "with_columns"))
        record: dict[str, Expression] = {name: Column(name) for name in self._schema.names()}
        return self._select(tuple((record | added).items()), f"with_columns {', '.join(added)}")

    def rename(self, names: Mapping[str, str] | None = None, /, **named: str) -> "Table":
        """The same records under other column names: {"old": "new"} or old="new"."""
        new = {**(names or {}), **named}
        for old in new:
            self._schema.type_of(old)
        record = tuple((new.get(name, name), Column(name)) for name in self._schema.names())
        return self._select(record, f"rename {', '.join(f'{a} to {b}' for a, b in new.items())}")

    def select_many(self, f: Any, *, at_most: int) -> "Table":
        """The first at_most records made of each: f gives a list of them, or an array: x.line.split(" ")."""
        scope = Scope()
        result = trace(f, Row(self._schema, scope))
        transformation: SelectMany | Explode
        if isinstance(result, Cell):
            array = checked_cell(result, scope, "select_many")
            if array._type is not Type.STRINGS:
                raise BadTransformation(
                    'select_many needs a list of records or expressions, or an array: x.line.split(" ")'
                )
            transformation = Explode(array._tree, "value", at_most)
        elif isinstance(result, list | tuple) and result:
            transformation = SelectMany(records_of(result, scope, "select_many"), at_most)
        else:
            raise BadTransformation("select_many needs a list of one or more records or expressions")
        return self._rowwise(transformation, f"select_many, at most {at_most}", {}, ())

    def _where(self, predicate: Expression) -> "Table":
        units = self._within.units if self._within else ()
        return self._rowwise(Where(predicate), f"where {spell(predicate)}", self._columns, units)

    def _select(self, record: Record, label: str | None = None) -> "Table":
        kept = {name: value.name for name, value in record if isinstance(value, Column)}
        columns = {name: self._columns[old] for name, old in kept.items() if old in self._columns}
        units = [name for name, value in record if self._within and self._within.is_unit(value)]
        shown = ", ".join(n if Column(n) == v else f"{n} = {spell(v)}" for n, v in record)
        return self._rowwise(Select(record), label or f"select {shown}", columns, units)

    def _rowwise(
        self, transformation: Transformation, label: str, columns: Mapping[str, Known], units: Iterable[str]
    ) -> "Table":
        within = self._within.then(transformation, units=units) if self._within else None
        return self._derive(transformation, label=label, columns=columns, within=within)

    # ── the table as a whole ─────────────────────────────────────────────────────────

    def distinct(self) -> "Table":
        """Each record once."""
        within = None
        if self._within and self._within.units:  # equal records are the same person's
            within = self._within.then(Distinct(), units=self._within.units)
        return self._derive(Distinct(), label="distinct", columns=self._columns, within=within)

    def take(self, k: int) -> "Table":
        """The first k records in the canonical order."""
        return self._derive(Take(k), label=f"take {k}", columns=self._columns)

    def limit_per_key(self, k: int, key: Any = None) -> "Table":
        """The first k records of each key, in the canonical order; without a key, of equal records."""
        keys = self._keys(key, "limit_per_key")
        return self._derive(
            LimitPerKey(k, keys),
            label=f"limit_per_key {k}, by {_spelled(keys)}",
            columns=self._columns,
            within=self._per_person(keys, lambda rest: LimitPerKey(k, rest)),
        )

    def unique_by(self, key: Any = None) -> "Table":
        """The records whose key no other record has."""
        keys = self._keys(key, "unique_by")
        return self._derive(
            UniqueBy(keys),
            label=f"unique_by {_spelled(keys)}",
            columns=self._columns,
            within=self._per_person(keys, UniqueBy),
        )

    def _keys(self, key: Any, what: str) -> tuple[Expression, ...]:
        if key is None:
            return tuple(Column(name) for name in self._schema.names())
        return trees(key_cells(key, self._schema, what)[0])

    def _per_person(
        self, keys: tuple[Expression, ...], step: Callable[[tuple[Expression, ...]], Transformation]
    ) -> Within | None:
        """The step inside each person, if the unit is among the keys; there it says nothing more."""
        within = self._within
        if within is None or not any(within.is_unit(key) for key in keys):
            return None
        rest = tuple(key for key in keys if not within.is_unit(key))
        return within.then(step(rest), units=within.units)

    # ── two tables of the same columns ───────────────────────────────────────────────

    def concat(self, other: "Table") -> "Table":
        """The records of both."""
        return self._of_two(Concat(), other)

    def append(self, data: Any, *, budget: Any, name: str | None = None, dialect: Any = None) -> "Table":
        """This table, grown by a block of data with a budget of its own: queries of both charge both."""
        from fpinq.client.protect import append

        return append(self, data, budget=budget, name=name, dialect=dialect)

    def union(self, other: "Table", bag: bool = False) -> "Table":
        """The records of either, each once; with bag=True as often as in the table that has more of it."""
        return self._of_two(Union(bag), other)

    def intersect(self, other: "Table", bag: bool = False) -> "Table":
        """The records of both, each once; with bag=True as often as in the table that has fewer of it."""
        return self._of_two(Intersect(bag), other)

    def except_(self, other: "Table", bag: bool = False) -> "Table":
        """The records that other has not, each once; with bag=True, less as often as other has it."""
        return self._of_two(Except(bag), other)

    def _of_two(self, transformation: Transformation, other: object) -> "Table":
        right = _table(other, transformation.op)._in_order_of(self._schema)
        columns = {name: known for name, known in self._columns.items() if right._columns.get(name) == known}
        within = None
        if isinstance(transformation, Concat) and (inside := self._same_persons(right)):
            left, beside = inside
            within = left.then(transformation, beside, units=left.units & beside.units)
        return self._derive(transformation, right, label=transformation.op, columns=columns, within=within)

    def _in_order_of(self, schema: Schema) -> "Table":
        """This table with its columns in the order of a schema that has the same ones."""
        if self._schema != schema and dict(self._schema.columns) == dict(schema.columns):
            return self._select(tuple((name, Column(name)) for name in schema.names()))
        return self

    def _same_persons(self, other: "Table") -> tuple[Within, Within] | None:
        """How both are made inside each person of one root, if they are."""
        left, right = self._within, other._within
        if left is None or right is None or self._system is not other._system or left.root != right.root:
            return None
        return left, right

    # ── joins ────────────────────────────────────────────────────────────────────────

    def join(
        self,
        other: "Table",
        on: Any,
        left: Truncation | None = None,
        right: Truncation | None = None,
        select: Any = None,
        outer: bool = False,
    ) -> "Table":
        """Pairs of records with equal keys, after each side is truncated per key. Null keys join nothing.

        outer=True keeps the records of this table that have no pair, beside nulls.

        on is "id", ["a", "b"], a function of either side's row, or a pair of
        functions. left and right are fp.first(n), fp.unique() or fp.all_().
        Without them a key must be unique on each side, except that beside a
        public table, and on the unit of the same persons, all records are kept.
        """
        other = _table(other, "join")
        lefts, rights, _ = join_keys(on, self._schema, other._schema)
        inside = self._joined_inside(other, lefts, rights)
        every = inside is not None
        left = truncation(left, All() if every or not other._roots else Unique())
        right = truncation(right, All() if every or not self._roots else Unique())
        record = every_pair(self._schema, other._schema)
        if select is not None:
            scope = Scope()
            rows = Row(self._schema, scope, "l."), Row(other._schema, scope, "r.")
            record = record_of(trace(select, *rows), scope, "join")
        transformation = Join(trees(lefts), trees(rights), left, right, record, outer)
        columns = _joined_columns(record, self._columns, other._columns)
        within = None
        if inside is not None:
            of_left, of_right = inside
            held = {f"l.{name}" for name in of_left.units}
            if not outer:  # the unit on the right may be null then, and null is nobody
                held |= {f"r.{name}" for name in of_right.units}
            units = [name for name, value in record if isinstance(value, Column) and value.name in held]
            within = of_left.then(transformation, of_right, units=units)
        keys = _spelled(trees(lefts))
        label = f"{'outer ' if outer else ''}join on {keys}" + (
            "" if within else f", {_truncated(left)} with {_truncated(right)}"
        )
        return self._derive(transformation, other, label=label, columns=columns, within=within)

    def semi_join(self, other: "Table", on: Any) -> "Table":
        """The records whose key occurs in other, which must be public."""
        return self._semi_join(other, on, keep=True)

    def anti_join(self, other: "Table", on: Any) -> "Table":
        """The records whose key does not occur in other, which must be public."""
        return self._semi_join(other, on, keep=False)

    def _semi_join(self, other: "Table", on: Any, *, keep: bool) -> "Table":
        lefts, rights, _ = join_keys(on, self._schema, _table(other, "semi_join")._schema)
        transformation = SemiJoin(trees(lefts), trees(rights), keep)
        label = f"{'semi' if keep else 'anti'}_join on {_spelled(trees(lefts))}"
        return self._derive(transformation, other, label=label, columns=self._columns)

    def _joined_inside(
        self, other: "Table", lefts: Mapping[str, Cell], rights: Mapping[str, Cell]
    ) -> tuple[Within, Within] | None:
        """How both are made inside each person, if equal keys mean the same person."""
        inside = self._same_persons(other)
        if inside is None:
            return None
        pairs = zip(trees(lefts), trees(rights), strict=True)
        return inside if any(inside[0].is_unit(a) and inside[1].is_unit(b) for a, b in pairs) else None

    # ── groups ───────────────────────────────────────────────────────────────────────

    def group_by(self, f: Any) -> Groups:
        """Groups of records with equal keys: f gives an expression or a dict of them.

        Say what to know of each group with .select(lambda g: {…}) over g.key,
        g.count(), g.sum(f), g.min(f), g.max(f), g.average(f).
        """
        cells, single = key_cells(f, self._schema, "group_by")
        keys = Keys(tuple(cells), tuple(cell._type for cell in cells.values()), single)
        record = tuple((name, cell._tree) for name, cell in cells.items())

        def grouping(sides: Sequence[Aggregates]) -> Table:
            return self._grouped(record, sides[0])

        return Groups(keys, (_side(self, keys),), grouping)

    def _grouped(self, keys: Record, aggregates: Aggregates) -> "Table":
        columns = {
            n: self._columns[v.name] for n, v in keys if isinstance(v, Column) and v.name in self._columns
        }
        within = self._within
        if within is not None:
            own = [name for name, value in keys if within.is_unit(value)]
            if not own:
                within = None
            elif len(own) < len(keys):
                within = within.then(GroupBy(keys, aggregates), units=own)
            else:
                # One person is one group, so no key is needed, and at most one record comes out.
                unit = tuple((name, Aggregate("min", value)) for name, value in keys)
                within = within.then(GroupBy((), (*unit, *aggregates)), units=own)
        label = f"group_by {_spelled([value for _, value in keys])}"
        return self._derive(GroupBy(keys, aggregates), label=label, columns=columns, within=within)

    def group_join(self, other: "Table", on: Any, select: Any = None) -> Any:
        """Groups of the records of both tables by key: g.key, g.left.count(), g.right.sum(f) and so on.

        With select=lambda l, r: {…} (or lambda key, l, r) a table, without it groups.
        """
        other = _table(other, "group_join")
        lefts, rights, single = join_keys(on, self._schema, other._schema)
        keys = Keys(tuple(lefts), tuple(cell._type for cell in lefts.values()), single)

        def grouping(sides: Sequence[Aggregates]) -> Table:
            of_left, of_right = sides
            join = GroupJoin(keys.names, trees(lefts), trees(rights), of_left, of_right)
            inside = self._joined_inside(other, lefts, rights)
            within = None
            if inside is not None:
                pairs = zip(lefts.items(), rights.values(), strict=True)
                own = [n for (n, a), b in pairs if inside[0].is_unit(a._tree) and inside[1].is_unit(b._tree)]
                within = inside[0].then(join, inside[1], units=own)
            label = f"group_join on {_spelled(trees(lefts))}"
            return self._derive(join, other, label=label, within=within)

        groups = Groups(keys, (_side(self, keys, "left."), _side(other, keys, "right.")), grouping)
        return groups if select is None else groups.select(select)

    # ── partition ────────────────────────────────────────────────────────────────────

    def partition(self, f: Any, keys: Iterable[Any] | None = None) -> Parts:
        """The parts of the table with each of the keys: a mapping key ↦ table, in the order given.

        Asking all parts costs what asking the most asked of them does.
        """
        by, labels = partitioning(Subject(self._schema, self._columns), f, keys)
        shown = spell(by.key)
        if self._system is None:
            parts = [
                self._derive(PartOf(by, i), label=f"part {shown} = {label!r}", columns=self._columns)
                for i, label in enumerate(labels)
            ]
            return Parts(shown, dict(zip(labels, parts, strict=True)))
        targets = tuple(fresh_variable() for _ in labels)
        self._act(actions.Partition(targets, self._variable, by))
        tables = {
            label: self._handle(
                self._schema,
                Made(f"part {shown} = {label!r}", (self,), (1,)),
                system=self._system,
                variable=target,
                roots=self._roots,
                columns=self._columns,
                budgets=self._budgets,
            )
            for label, target in zip(labels, targets, strict=True)
        }
        return Parts(shown, tables)

    def _distinct_values(self, cell: Cell) -> "Table":
        """The different values of an expression; missing ones are left out."""
        values = self._where((~cell.is_null())._tree)._select((("value", cell._tree),))
        return values.distinct()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._schema.names():
            raise AttributeError(_inside_a_function(name))
        public = [known for known in dir(type(self)) if not known.startswith("_")]
        hint = f"; use {_ELSEWHERE[name]}" if name in _ELSEWHERE else suggest(name, public)
        raise AttributeError(f"a table has no {name!r}{hint}")

    def __getitem__(self, name: object) -> Any:
        raise BadTransformation(_inside_a_function(str(name)))


def _inside_a_function(column: str) -> str:
    return (
        f"the column {column!r} is used inside a function, on a row: "
        f"table.where(lambda x: x.{column} …), table.select(lambda x: x.{column})"
    )


def _table(other: object, what: str) -> Table:
    if isinstance(other, Table):
        return other
    raise BadTransformation(
        f"{what} needs a table, not {type(other).__name__}; make one of public rows with fp.public(rows)"
    )


def _side(table: Table, keys: Keys, prefix: str = "") -> Side:
    return Side(table._schema, table._columns, prefix, frozenset(keys.names))


def _spelled(keys: Iterable[Expression]) -> str:
    return ", ".join(spell(key) for key in keys)


def _truncated(side: Truncation) -> str:
    return f"first {side.at_most}" if side.op == "first" else side.op


def _joined_columns(
    record: Record, left: Mapping[str, Known], right: Mapping[str, Known]
) -> dict[str, Known]:
    known = {f"l.{name}": c for name, c in left.items()} | {f"r.{name}": c for name, c in right.items()}
    return {n: known[v.name] for n, v in record if isinstance(v, Column) and v.name in known}
