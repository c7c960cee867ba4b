"""Groups: what `group_by` and `group_join` give, before it is said what to know of each group.

A group is one record: its key and aggregates of its members. Which aggregates
a program uses is found by tracing its lambda, `lambda g: {"city": g.key,
"visits": g.count()}`; they become one GroupBy with a column for each, then a
Where and a Select over them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fpinq.client.bounds import Column, clamp
from fpinq.client.rows import FLOAT64, INT64, Cell, Row, Scope
from fpinq.client.spelling import spell
from fpinq.client.tracing import called, checked_cell, checked_predicate, record_of, trace
from fpinq.model import expressions
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadExpression
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Apply, Expression, Schema, Type
from fpinq.model.transformations import Aggregate, Aggregates

if TYPE_CHECKING:
    from fpinq.client.table import Table


class Members:
    """The members of a group, symbolically: what can be known of them is an aggregate."""

    takes_functions = True  # in _.sum(_.cost) the inner _ is a member's row

    def __init__(self, side: "Side", scope: Scope) -> None:
        self._side = side
        self._scope = scope

    def count(self) -> Cell:
        """How many members."""
        return self._aggregate(Aggregate("count"))

    def sum(self, f: Any = None, bounds: object = None) -> Cell:
        """The sum over the members. Of floats it needs bounds: only exact integers are added."""
        return self._aggregate(Aggregate("sum", self._clamped(f, bounds, "sum")))

    def average(self, f: Any = None, bounds: object = None) -> Cell:
        """The average over the members that have a value. Of floats it needs bounds."""
        return self._aggregate(Aggregate("average", self._clamped(f, bounds, "average")))

    def min(self, f: Any = None) -> Cell:
        """The smallest value of the members."""
        return self._aggregate(Aggregate("min", self._cell(f, "min")._tree))

    def max(self, f: Any = None) -> Cell:
        """The largest value of the members."""
        return self._aggregate(Aggregate("max", self._cell(f, "max")._tree))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise BadExpression(
            f"a group has no {name!r}: it has key, count(), sum(f), min(f), max(f) and average(f), "
            "as in g.sum(lambda x: x.cost)"
        )

    def _cell(self, f: Any, what: str) -> Cell:
        schema = self._side.schema
        if f is None:
            if len(schema.columns) != 1:
                raise BadExpression(f"{what} of what? Write g.{what}(lambda x: x.cost)")
            f = schema.names()[0]
        scope = Scope()
        return checked_cell(trace(f, Row(schema, scope)), scope, what)

    def _clamped(self, f: Any, bounds: object, what: str) -> Clamp:
        cell = self._cell(f, what)
        if bounds is None and isinstance(cell._tree, expressions.Column):
            bounds = self._side.columns.get(cell._tree.name, Column()).bounds
        if bounds is None and cell._type is INT64:
            return Clamp(cell._tree, INT64_MIN, INT64_MAX)
        if bounds is None and cell._type is FLOAT64:
            raise BadExpression(
                f"a float {what} needs bounds, so that exact integers are added: "
                f"g.{what}(lambda x: …, bounds=(lower, upper))"
            )
        return clamp(cell, bounds)

    def _aggregate(self, aggregate: Aggregate) -> Cell:
        name = self._side.name(aggregate)
        return Cell(expressions.Column(name), aggregate.type_in(self._side.schema), self._scope)


class Group(Members):
    """One group, symbolically: its key and its members."""

    def __init__(self, key: Any, side: "Side", scope: Scope) -> None:
        super().__init__(side, scope)
        self.key = key


class JoinedGroup:
    """One key of a group join, symbolically: its members on the left and on the right."""

    def __init__(self, key: Any, left: Group, right: Group) -> None:
        self.key, self.left, self.right = key, left, right

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise BadExpression(
            f"a joined group has no {name!r}: it has key, left and right, as in g.left.count()"
        )


@dataclass
class Side:
    """The members of the groups of one table, and the aggregates that have been asked of them."""

    schema: Schema
    columns: Mapping[str, Column]
    prefix: str
    taken: frozenset[str]
    names: dict[Aggregate, str] = field(default_factory=dict)

    def name(self, aggregate: Aggregate) -> str:
        """The column of an aggregate; a new one if it was not asked before."""
        if aggregate not in self.names:
            value = aggregate.value.value if isinstance(aggregate.value, Clamp) else aggregate.value
            name = f"{self.prefix}{aggregate.function}({spell(value) if value is not None else ''})"
            while name in self.taken or name in self.names.values():
                name += "'"  # the same with other bounds, or a key of this name
            self.names[aggregate] = name
        return self.names[aggregate]

    def aggregates(self) -> Aggregates:
        """The aggregates, each with its column."""
        return tuple((name, aggregate) for aggregate, name in self.names.items())


@dataclass(frozen=True)
class Keys:
    """What groups are made by: names, types, and whether the program named them itself."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    single: bool

    def symbol(self, scope: Scope) -> Any:
        """g.key: an expression, or a row of them if the program gave several."""
        row = Row(Schema(tuple(zip(self.names, self.types, strict=True))), scope)
        return row[self.names[0]] if self.single else row


# Makes the table of groups from the aggregates of each side.
Grouping = Callable[[Sequence[Aggregates]], "Table"]


class Groups:
    """Groups of records. `.select(lambda g: {…})` makes a table with one record per group.

    What can be asked of a table can be asked of groups directly:
    `groups.noisy_count(ε)`, `groups.noisy_sum(ε, lambda g: g.count(), bounds=(0, 10))`.
    """

    def __init__(
        self, keys: Keys, sides: tuple[Side, ...], grouping: Grouping, predicate: Expression | None = None
    ) -> None:
        self._keys = keys
        self._sides = sides
        self._grouping = grouping
        self._predicate = predicate

    def where(self, f: Any) -> "Groups":
        """The groups of which f is true."""
        sides, scope = self._copied_sides(), Scope()
        predicate = checked_predicate(self._trace(f, sides, scope), scope)
        if self._predicate is not None:
            predicate = Apply("and", (self._predicate, predicate))
        return Groups(self._keys, sides, self._grouping, predicate)

    def select(self, f: Any) -> "Table":
        """A table with one record per group: a dict of expressions, or one expression."""
        sides, scope = self._copied_sides(), Scope()
        record = record_of(self._trace(f, sides, scope), scope, "select")
        return self._table(sides)._select(record)

    def keys(self) -> "Table":
        """A table of the groups' keys."""
        record = tuple((name, expressions.Column(name)) for name in self._keys.names)
        return self._table(self._sides)._select(record)

    def _table(self, sides: tuple[Side, ...]) -> "Table":
        table = self._grouping([side.aggregates() for side in sides])
        return table if self._predicate is None else table._where(self._predicate)

    def _copied_sides(self) -> tuple[Side, ...]:
        return tuple(replace(side, names=dict(side.names)) for side in self._sides)

    def _trace(self, f: Any, sides: tuple[Side, ...], scope: Scope) -> Any:
        key = self._keys.symbol(scope)
        groups = [Group(key, side, scope) for side in sides]
        if len(groups) == 1:
            return trace(f, groups[0])
        match _arity(f):
            case 2:
                return trace(f, *groups)
            case 3:
                return trace(f, key, *groups)
            case _:
                return trace(f, JoinedGroup(key, *groups))

    # ── as a table of groups ─────────────────────────────────────────────────────────

    def _values(self, f: Any) -> "Table":
        return self.select(lambda g: {"value": called(f, g)})

    def noisy_count(self, epsilon: Any) -> Any:
        """How many groups."""
        return self.keys().noisy_count(epsilon)

    def noisy_sum(self, epsilon: Any, f: Any, bounds: object = None) -> Any:
        """The sum of an expression over groups."""
        return self._values(f).noisy_sum(epsilon, bounds=bounds)

    def noisy_average(self, epsilon: Any, f: Any, bounds: object = None) -> Any:
        """The average of an expression over groups."""
        return self._values(f).noisy_average(epsilon, bounds=bounds)

    def noisy_variance(self, epsilon: Any, f: Any, bounds: object = None) -> Any:
        """The variance of an expression over groups."""
        return self._values(f).noisy_variance(epsilon, bounds=bounds)

    def noisy_median(self, epsilon: Any, f: Any, bounds: object = None) -> Any:
        """The median of an expression over groups."""
        return self._values(f).noisy_median(epsilon, bounds=bounds)

    def noisy_quantile(self, epsilon: Any, q: Any, f: Any, bounds: object = None) -> Any:
        """A quantile of an expression over groups."""
        return self._values(f).noisy_quantile(epsilon, q, bounds=bounds)

    def noisy_histogram(self, epsilon: Any, f: Any, **options: Any) -> Any:
        """A histogram of an expression over groups."""
        return self._values(f).noisy_histogram(epsilon, **options)

    @property
    def scaling_factor(self) -> int:
        """How many groups one record of a root may change."""
        return self.keys().scaling_factor

    @property
    def remaining(self) -> Any:
        """What is left of the budget."""
        return self.keys().remaining

    def price(self, epsilon: Any) -> Any:
        """What a query of the groups at ε would cost now."""
        return self.keys().price(epsilon)

    def explain(self) -> Any:
        """The derivation of the groups."""
        return self.keys().explain()

    def __repr__(self) -> str:
        return f"<groups by {', '.join(self._keys.names)}: use .select(lambda g: {{…}}) for a table of them>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"groups have no {name!r}: say what to know of each group first, "
            "as in groups.select(lambda g: {'key': g.key, 'n': g.count()})"
        )


def _arity(f: Any) -> int:
    """How many rows a function takes, as far as its signature says; 1 if it does not."""
    from inspect import Parameter, signature  # slow to import, and seldom needed

    try:
        parameters = signature(f).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(p.default is Parameter.empty and p.kind <= Parameter.POSITIONAL_OR_KEYWORD for p in parameters)
