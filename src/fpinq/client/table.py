"""Tables: what a program can make of one, and in `askable` what it can ask. Methods over facts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NoReturn, overload

from fpinq.client import algebra, groups, joins, parts
from fpinq.client.advice import instead
from fpinq.client.algebra import derive
from fpinq.client.amounts import plain_amount
from fpinq.client.answers import Answers
from fpinq.client.askable import Askable, exactly
from fpinq.client.budgets import Budget
from fpinq.client.derivation import Derivation, summary
from fpinq.client.edge import edges
from fpinq.client.facts import Facts
from fpinq.client.groups import Groups, Keys, Side
from fpinq.client.history import History, notes_of
from fpinq.client.joins import join_keys, key_cells, trees
from fpinq.client.keys import are_found
from fpinq.client.parts import Parts
from fpinq.client.rows import Cell
from fpinq.client.shown import html_facts, visibly
from fpinq.client.tracing import called, called_or_constant, named, row, trace
from fpinq.engines.text import Dialect
from fpinq.model.epsilon import delta as exact_delta
from fpinq.model.errors import BadTransformation, ProgramError
from fpinq.model.expressions import Column, Expression, Type
from fpinq.model.frozen import dataclass
from fpinq.model.transformations import (
    Aggregates,
    Except,
    Explode,
    Fields,
    Intersect,
    SelectMany,
    Take,
    Truncation,
    Union,
)


@visibly
@edges
@dataclass(frozen=True, eq=False, repr=False)
class Table(Askable):
    """A protected table, or a public one. Immutable: every transformation gives a new one."""

    facts: Facts

    # ── public facts ─────────────────────────────────────────────────────────────────

    @property
    def schema(self) -> Mapping[str, str]:
        """The columns and their types."""
        return MappingProxyType({name: type_.value for name, type_ in self.facts.schema.columns})

    @property
    def scaling_factor(self) -> int:
        """How many records of this table one record of a root may change: what ε = 1 costs at first."""
        return self.facts.scaling_factor()

    @property
    def sensitivity(self) -> Mapping[str, int]:
        """How many records of this table one record of each source may change: of a root, or of a part."""
        return MappingProxyType(self.facts.sensitivity())

    @property
    def remaining(self) -> Fraction | Mapping[str, Fraction]:
        """What is left of the budget; for a table over several roots, of each."""
        return self.facts.by_root(self.facts.left()) if self.facts.roots else MappingProxyType({})

    @property
    def remaining_delta(self) -> Fraction | Mapping[str, Fraction]:
        """What is left of the δ for keys that nobody listed; for a table over several roots, of each."""
        return self.facts.by_root(self.facts.left_for_keys()) if self.facts.roots else MappingProxyType({})

    def price(self, epsilon: object) -> Fraction | Mapping[str, Fraction]:
        """What a query at ε would cost now; for a table over several roots, of each. Asking is free."""
        return self.facts.by_root(self.facts.prices(exactly(epsilon)))

    def price_delta(self, delta: object, epsilon: object = 1) -> Fraction | Mapping[str, Fraction]:
        """What a query that finds keys at this δ would cost now of the δ for keys. Asking is free."""
        return self.facts.by_root(self.facts.delta_prices(exactly(epsilon), exact_delta(plain_amount(delta))))

    @property
    def history(self) -> History:
        """What this program has asked of the table's roots: when, for how much, and what that left."""
        facts = replace(self.facts, budgets=frozenset())
        asked = [] if facts.system is None else notes_of(facts.system).of(facts.roots)
        return History(asked, facts.root_labels(), facts.left())

    def explain(self) -> Derivation:
        """How the table was made, with every stability and scaling factor: to print, or for a notebook."""
        return Derivation(self.facts)

    def with_budget(self, budget: Budget) -> "Table":
        """The same table, of which queries are also charged to this budget and may not exceed it."""
        if not isinstance(budget, Budget):
            raise ProgramError("with_budget needs an fp.Budget, such as fp.Budget(1).split(2)[0]")
        kept = {other for other in self.facts.budgets if not budget.descends_from(other)}
        return Table(replace(self.facts, budgets=frozenset({*kept, budget})))

    def __str__(self) -> str:
        return "\n".join(f"{name:<15} {value}" for name, value in summary(self.facts))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = html_facts(dict(summary(self.facts)))
        return f"{facts}<details><summary>derivation</summary>{self.explain().svg()}</details>"

    def __len__(self) -> NoReturn:
        raise ProgramError("how many records there are is private: ask table.noisy_count(ε)")

    def __iter__(self) -> NoReturn:
        raise ProgramError("records are private: ask for a statistic, such as table.noisy_average(ε, f)")

    def __bool__(self) -> bool:
        return True

    # ── row by row ───────────────────────────────────────────────────────────────────

    def where(self, f: object) -> "Table":
        """The records of which f is true."""
        return Table(algebra.where(self.facts, trace(f, "where", row(self.facts.schema)).condition()))

    def select(self, f: object, *more: str) -> "Table":
        """One record made of each: f gives a dict of expressions, or one (the column `value`).

        select("age", "edu") keeps these columns.
        """
        kept = named(f, more)
        return Table(algebra.select(self.facts, trace(kept, "select", row(self.facts.schema)).record()))

    def with_columns(self, f: object = None, /, **named: object) -> "Table":
        """The records with more columns, or other values in them: f gives a dict of expressions."""

        def more(x: object) -> dict[object, object]:
            given = called(f, x) if f is not None else {}
            if not isinstance(given, Mapping) or not (given or named):
                raise BadTransformation('with_columns needs named columns: lambda x: {"b": x.a + 1}')
            return {**given, **{name: called_or_constant(value, x) for name, value in named.items()}}

        added = dict(trace(more, "with_columns", row(self.facts.schema)).record())
        record: dict[str, Expression] = {name: Column(name) for name in self.facts.schema.names()}
        label = f"with_columns {', '.join(added)}"
        return Table(algebra.select(self.facts, tuple((record | added).items()), label))

    def rename(self, names: Mapping[str, str] | None = None, /, **named: str) -> "Table":
        """The same records under other column names: {"old": "new"} or old="new"."""
        new = {**(names or {}), **named}
        for old in new:
            self.facts.schema.type_of(old)
        record = tuple((new.get(name, name), Column(name)) for name in self.facts.schema.names())
        label = f"rename {', '.join(f'{a} to {b}' for a, b in new.items())}"
        return Table(algebra.select(self.facts, record, label))

    def select_many(self, f: object, *, at_most: int) -> "Table":
        """The first at_most records made of each: f gives a list of them, or an array: x.line.split(" ")."""
        traced = trace(f, "select_many", row(self.facts.schema))
        transformation: SelectMany | Explode
        if isinstance(traced.result, Cell):
            array = traced.cell()
            if array.type is not Type.STRINGS:
                raise BadTransformation(
                    'select_many needs a list of records or expressions, or an array: x.line.split(" ")'
                )
            transformation = Explode(array.tree, "value", at_most)
        elif isinstance(traced.result, list | tuple) and traced.result:
            transformation = SelectMany(traced.records(), at_most)
        else:
            raise BadTransformation("select_many needs a list of one or more records or expressions")
        label = f"select_many, at most {at_most}"
        return Table(algebra.rowwise(self.facts, transformation, label, {}, ()))

    # ── the table as a whole ─────────────────────────────────────────────────────────

    def distinct(self) -> "Table":
        """Each record once."""
        return Table(algebra.distinct(self.facts))

    def take(self, k: int) -> "Table":
        """The first k records in the canonical order."""
        return Table(derive(Take(k), self.facts, label=f"take {k}", columns=self.facts.columns))

    def limit_per_key(self, k: int, key: object = None) -> "Table":
        """The first k records of each key, in the canonical order; without a key, of equal records."""
        return Table(algebra.limit_per_key(self.facts, k, self._keys(key, "limit_per_key")))

    def unique_by(self, key: object = None) -> "Table":
        """The records whose key no other record has."""
        return Table(algebra.unique_by(self.facts, self._keys(key, "unique_by")))

    def _keys(self, key: object, what: str) -> tuple[Expression, ...]:
        if key is None:
            return tuple(Column(name) for name in self.facts.schema.names())
        return trees(key_cells(key, self.facts.schema, what)[0])

    # ── tables of the same columns ───────────────────────────────────────────────────

    def concat(self, *others: "Table") -> "Table":
        """The records of both, or of all."""
        return Table(algebra.concat(self.facts, *(_facts(other, "concat") for other in others)))

    def append(
        self, data: object, *, budget: object, name: str | None = None, dialect: Dialect | None = None
    ) -> "Table":
        """This table, grown by a block of data with a budget of its own: queries of both charge both."""
        from fpinq.client.protect import append

        return append(self, data, budget=budget, name=name, dialect=dialect)

    def union(self, other: "Table", bag: bool = False) -> "Table":
        """The records of either, each once; with bag=True as often as in the table that has more of it."""
        return Table(algebra.of_two(Union(bag), self.facts, _facts(other, "union")))

    def intersect(self, other: "Table", bag: bool = False) -> "Table":
        """The records of both, each once; with bag=True as often as in the table that has fewer of it."""
        return Table(algebra.of_two(Intersect(bag), self.facts, _facts(other, "intersect")))

    def except_(self, other: "Table", bag: bool = False) -> "Table":
        """The records that other has not, each once; with bag=True, less as often as other has it."""
        return Table(algebra.of_two(Except(bag), self.facts, _facts(other, "except")))

    # ── joins ────────────────────────────────────────────────────────────────────────

    def join(
        self,
        other: "Table",
        on: object,
        left: Truncation | None = None,
        right: Truncation | None = None,
        select: object = None,
        outer: bool = False,
    ) -> "Table":
        """Pairs of records with equal keys, after each side is truncated per key. Null keys join nothing.

        outer=True keeps the records of this table that have no pair, beside nulls.

        on is "id", ["a", "b"], a function of either side's row, or a pair of
        functions. left and right are fp.first(n), fp.unique() or fp.all_().
        Without them a key must be unique on each side, except that beside a
        public table, and on the unit of the same persons, all records are kept.
        """
        return Table(joins.join(self.facts, _facts(other, "join"), on, left, right, select, outer))

    def semi_join(self, other: "Table", on: object) -> "Table":
        """The records whose key occurs in other, which must be public."""
        return Table(joins.semi_join(self.facts, _facts(other, "semi_join"), on, keep=True))

    def anti_join(self, other: "Table", on: object) -> "Table":
        """The records whose key does not occur in other, which must be public."""
        return Table(joins.semi_join(self.facts, _facts(other, "semi_join"), on, keep=False))

    # ── groups ───────────────────────────────────────────────────────────────────────

    def group_by(self, f: object) -> Groups:
        """Groups of records with equal keys: f gives an expression or a dict of them.

        Say what to know of each group with .select(lambda g: {…}) over g.key,
        g.count(), g.sum(f), g.min(f), g.max(f), g.average(f).
        """
        cells, single = key_cells(f, self.facts.schema, "group_by")
        sides = (Side(self.facts.subject, "", frozenset(cells)),)
        grouped = _grouping(lambda aggregates: groups.group_by(self.facts, cells, aggregates[0]))
        return Groups(Keys.of(cells, single), sides, grouped)

    @overload
    def group_join(self, other: "Table", on: object, select: None = None) -> Groups: ...
    @overload
    def group_join(self, other: "Table", on: object, select: object) -> "Table": ...
    def group_join(self, other: "Table", on: object, select: object = None) -> "Groups | Table":
        """Groups of the records of both tables by key: g.key, g.left.count(), g.right.sum(f) and so on.

        With select=lambda l, r: {…} (or lambda key, l, r) a table, without it groups.
        """
        right = _facts(other, "group_join")
        lefts, rights, single = join_keys(on, self.facts.schema, right.schema)
        taken = frozenset(lefts)
        sides = Side(self.facts.subject, "left.", taken), Side(right.subject, "right.", taken)
        grouped = _grouping(lambda each: groups.group_join(self.facts, right, lefts, rights, each))
        joined = Groups(Keys.of(lefts, single), sides, grouped)
        return joined if select is None else joined.select(select)

    # ── partition ────────────────────────────────────────────────────────────────────

    def partition(self, f: object, keys: Iterable[object] | None = None) -> Parts:
        """The parts of the table with each of the keys: a mapping key ↦ table, in the order given.

        Asking all parts costs what asking the most asked of them does. keys=fp.discover(ε, δ)
        finds the keys first, which is a query.
        """
        if are_found(keys):
            from fpinq.client import discovery  # most programs know their keys

            keyed, part = discovery.partition(self.facts, f, keys)
        else:
            keyed, part = parts.partition(self.facts, f, keys)
        return Parts(keyed, lambda number: Table(part(number)))

    # ── SQL ──────────────────────────────────────────────────────────────────────────

    def sql(self, text: str, /, epsilon: object = None, delta: object = None, **tables: Any) -> Answers:
        """The answers of a SELECT about this table, whatever FROM calls it: by the names of its columns.

        EXPLAIN SELECT … is free. Other tables are given by name. Needs the sql extra.
        """
        from fpinq.client.sql import asked  # only who writes SQL needs it

        return asked(text, epsilon, tables, self, delta)

    # ── what a table is not ──────────────────────────────────────────────────────────

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self.facts.schema.names():
            raise AttributeError(_inside_a_function(name))
        public = [known for known in dir(type(self)) if not known.startswith("_")]
        raise AttributeError(f"a table has no {name!r}{instead(name, public)}")

    def __getitem__(self, name: object) -> NoReturn:
        raise BadTransformation(_inside_a_function(str(name)))


def _inside_a_function(column: str) -> str:
    return (
        f"the column {column!r} is used inside a function, on a row: "
        f"table.where(lambda x: x.{column} …), table.select(lambda x: x.{column})"
    )


def _facts(other: object, what: str) -> Facts:
    if isinstance(other, Table):
        return other.facts
    raise BadTransformation(
        f"{what} needs a table, not {type(other).__name__}; make one of public rows with fp.public(rows)"
    )


def _grouping(grouped: Callable[[Sequence[Aggregates]], Facts]) -> groups.Grouping:
    """A table of groups: those that satisfy a condition, and what to know of each."""

    def table(aggregates: Sequence[Aggregates], predicate: Expression | None, record: Fields) -> Table:
        every = grouped(aggregates)
        some = every if predicate is None else algebra.where(every, predicate)
        return Table(algebra.select(some, record))

    return table
