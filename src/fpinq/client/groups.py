"""Groups: what `group_by` and `group_join` give, before it is said what to know of each group.

A group is one record: its key and aggregates of its members. Which aggregates
a program uses is found by tracing its lambda, `lambda g: {"city": g.key,
"visits": g.count()}`; they become one GroupBy with a column for each, then a
Where and a Select over them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from fpinq.client.algebra import derive, spelled
from fpinq.client.answers import Answer, Answers
from fpinq.client.bounds import clamp
from fpinq.client.derivation import Derivation
from fpinq.client.edge import edges
from fpinq.client.facts import Facts, Within
from fpinq.client.joins import joined_inside, trees
from fpinq.client.rows import FLOAT64, INT64, Call, Cell, Row
from fpinq.client.shown import visibly
from fpinq.client.spelling import spell
from fpinq.client.subjects import Subject
from fpinq.client.tracing import Traced, called, row, trace
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadExpression
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Apply, Column, Expression, Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.model.transformations import Aggregate, Aggregates, Fields, GroupBy, GroupJoin

if TYPE_CHECKING:
    from fpinq.client.table import Table


class Members:
    """The members of a group, symbolically: what can be known of them is an aggregate."""

    takes_functions = True  # in _.sum(_.cost) the inner _ is a member's row

    def __init__(self, side: "Side", call: Call) -> None:
        self._side = side
        self._scope = call

    def count(self) -> Cell:
        """How many members."""
        return self._aggregate(Aggregate("count"))

    def sum(self, f: object = None, bounds: object = None) -> Cell:
        """The sum over the members. Of floats it needs bounds: only exact integers are added."""
        return self._aggregate(Aggregate("sum", self._clamped(f, bounds, "sum")))

    def average(self, f: object = None, bounds: object = None) -> Cell:
        """The average over the members that have a value. Of floats it needs bounds."""
        return self._aggregate(Aggregate("average", self._clamped(f, bounds, "average")))

    def min(self, f: object = None) -> Cell:
        """The smallest value of the members."""
        return self._aggregate(Aggregate("min", self._cell(f, "min").tree))

    def max(self, f: object = None) -> Cell:
        """The largest value of the members."""
        return self._aggregate(Aggregate("max", self._cell(f, "max").tree))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise BadExpression(
            f"a group has no {name!r}: it has key, count(), sum(f), min(f), max(f) and average(f), "
            "as in g.sum(lambda x: x.cost)"
        )

    def _cell(self, f: object, what: str) -> Cell:
        schema = self._side.subject.schema
        if f is None:
            if len(schema.columns) != 1:
                raise BadExpression(f"{what} of what? Write g.{what}(lambda x: x.cost)")
            f = schema.names()[0]
        return trace(f, what, row(schema)).cell()

    def _clamped(self, f: object, bounds: object, what: str) -> Clamp:
        cell = self._cell(f, what)
        bounds = self._side.subject.bounds(cell, bounds)
        if bounds is None and cell.type is INT64:
            return Clamp(cell.tree, INT64_MIN, INT64_MAX)
        if bounds is None and cell.type is FLOAT64:
            raise BadExpression(
                f"a float {what} needs bounds, so that exact integers are added: "
                f"g.{what}(lambda x: …, bounds=(lower, upper))"
            )
        return clamp(cell, bounds)

    def _aggregate(self, aggregate: Aggregate) -> Cell:
        name = self._side.name(aggregate)
        return Cell(Column(name), aggregate.type_in(self._side.subject.schema), self._scope)


class Group(Members):
    """One group, symbolically: its key and its members."""

    def __init__(self, keys: "Keys", side: "Side", call: Call) -> None:
        super().__init__(side, call)
        self.key = keys.symbol(call)


class JoinedGroup:
    """One key of a group join, symbolically: its members on the left and on the right."""

    def __init__(self, keys: "Keys", sides: "Sequence[Side]", call: Call) -> None:
        self.key = keys.symbol(call)
        self.left, self.right = (Group(keys, side, call) for side in sides)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise BadExpression(
            f"a joined group has no {name!r}: it has key, left and right, as in g.left.count()"
        )


@dataclass
class Side:
    """The members of the groups of one table, and the aggregates that have been asked of them."""

    subject: Subject
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
    """What groups are made by: names, types, whether the program named them itself, and how to show them."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    single: bool
    shown: str

    @classmethod
    def of(cls, cells: Mapping[str, Cell], single: bool) -> "Keys":
        """The keys that expressions are."""
        shown = ", ".join(spell(cell.tree) for cell in cells.values()) if single else ", ".join(cells)
        return cls(tuple(cells), tuple(cell.type for cell in cells.values()), single, shown)

    def symbol(self, call: Call) -> Cell | Row:
        """g.key: an expression, or a row of them if the program gave several."""
        row = Row(Schema(tuple(zip(self.names, self.types, strict=True))), call)
        return row[self.names[0]] if self.single else row


# Makes a table of groups: from the aggregates of each side, which groups, and what to know of each.
Grouping = Callable[[Sequence[Aggregates], Expression | None, Fields], "Table"]


@visibly
@edges
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

    def where(self, f: object) -> "Groups":
        """The groups of which f is true."""
        sides = self._copied_sides()
        predicate = self._trace(f, "where", sides).condition()
        if self._predicate is not None:
            predicate = Apply("and", (self._predicate, predicate))
        return Groups(self._keys, sides, self._grouping, predicate)

    def select(self, f: object) -> "Table":
        """A table with one record per group: a dict of expressions, or one expression."""
        sides = self._copied_sides()
        return self._table(sides, self._trace(f, "select", sides).record())

    def keys(self) -> "Table":
        """A table of the groups' keys."""
        return self._table(self._sides, tuple((name, Column(name)) for name in self._keys.names))

    def _table(self, sides: tuple[Side, ...], record: Fields) -> "Table":
        return self._grouping([side.aggregates() for side in sides], self._predicate, record)

    def _copied_sides(self) -> tuple[Side, ...]:
        return tuple(replace(side, names=dict(side.names)) for side in self._sides)

    def _trace(self, f: object, what: str, sides: tuple[Side, ...]) -> Traced:
        groups = [partial(Group, self._keys, side) for side in sides]
        if len(groups) == 1:
            return trace(f, what, groups[0])
        match arity(f):
            case 2:
                return trace(f, what, *groups)
            case 3:
                return trace(f, what, self._keys.symbol, *groups)
            case _:
                return trace(f, what, partial(JoinedGroup, self._keys, sides))

    # ── as a table of groups ─────────────────────────────────────────────────────────

    def _values(self, f: object) -> "Table":
        if isinstance(f, str):
            raise BadExpression(
                f"this is a statistic of groups, of which {f!r} has no one value: say which, as in "
                f"lambda g: g.average(lambda x: x.{f}). For a statistic of {f!r} in each group ask "
                f"table.query(ε, fp.average({f!r}), by=f, keys=[…])"
            )
        return self.select(lambda g: {"value": called(f, g)})

    def noisy_count(self, epsilon: object) -> Answer:
        """How many groups. How many records each has is table.query(ε, fp.count(), by=f, keys=[…])."""
        note = "for the records of each group ask table.query(ε, fp.count(), by=f, keys=[…])"
        return self.keys().noisy_count(epsilon).of_what(f"groups by {self._keys.shown}", note)

    def noisy_sum(self, epsilon: object, f: object, bounds: object = None) -> Answer:
        """The sum of an expression over groups."""
        return self._values(f).noisy_sum(epsilon, bounds=bounds)

    def noisy_average(self, epsilon: object, f: object, bounds: object = None) -> Answer:
        """The average of an expression over groups."""
        return self._values(f).noisy_average(epsilon, bounds=bounds)

    def noisy_variance(self, epsilon: object, f: object, bounds: object = None) -> Answer:
        """The variance of an expression over groups."""
        return self._values(f).noisy_variance(epsilon, bounds=bounds)

    def noisy_median(self, epsilon: object, f: object, bounds: object = None) -> Answer:
        """The median of an expression over groups."""
        return self._values(f).noisy_median(epsilon, bounds=bounds)

    def noisy_quantile(self, epsilon: object, q: Any, f: object, bounds: object = None) -> Any:
        """A quantile of an expression over groups."""
        return self._values(f).noisy_quantile(epsilon, q, bounds=bounds)

    def noisy_histogram(
        self,
        epsilon: object,
        f: object,
        bounds: object = None,
        bins: int | Sequence[object] | None = None,
        keys: Iterable[object] | None = None,
    ) -> Answers:
        """A histogram of an expression over groups."""
        return self._values(f).noisy_histogram(epsilon, bounds=bounds, bins=bins, keys=keys)

    @property
    def scaling_factor(self) -> int:
        """How many groups one record of a root may change."""
        return self.keys().scaling_factor

    @property
    def remaining(self) -> Fraction | Mapping[str, Fraction]:
        """What is left of the budget."""
        return self.keys().remaining

    def price(self, epsilon: object) -> Fraction | Mapping[str, Fraction]:
        """What a query of the groups at ε would cost now."""
        return self.keys().price(epsilon)

    def explain(self) -> Derivation:
        """The derivation of the groups."""
        return self.keys().explain()

    def __repr__(self) -> str:
        return f"<groups by {self._keys.shown}: use .select(lambda g: {{…}}) for a table of them>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"groups have no {name!r}: for a statistic of each group ask table.query(ε, fp.average(f), by=f, "
            "keys=[…]); for a table with one record per group say what to know of each, "
            "as in groups.select(lambda g: {'key': g.key, 'n': g.count()})"
        )


def arity(f: Any) -> int:
    """How many rows a function takes, as far as its signature says; 1 if it does not."""
    from inspect import Parameter, signature  # slow to import, and seldom needed

    try:
        parameters = signature(f).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(p.default is Parameter.empty and p.kind <= Parameter.POSITIONAL_OR_KEYWORD for p in parameters)


# ── grouping ─────────────────────────────────────────────────────────────────────────


def group_by(table: Facts, keys: Mapping[str, Cell], aggregates: Aggregates) -> Facts:
    """One record for each key: the key and aggregates of its members."""
    record = tuple((name, cell.tree) for name, cell in keys.items())
    columns = {
        name: table.columns[value.name]
        for name, value in record
        if isinstance(value, Column) and value.name in table.columns
    }
    within = None if table.within is None else _groups_inside(table.within, record, aggregates)
    label = f"group_by {spelled(trees(keys))}"
    return derive(GroupBy(record, aggregates), table, label=label, columns=columns, within=within)


def _groups_inside(within: Within, keys: Fields, aggregates: Aggregates) -> Within | None:
    """The groups inside each person, if the unit is among the keys."""
    own = [name for name, value in keys if within.is_unit(value)]
    if not own:
        return None
    if len(own) < len(keys):
        return within.then(GroupBy(keys, aggregates), units=own)
    # One person is one group, so no key is needed, and at most one record comes out.
    unit = tuple((name, Aggregate("min", value)) for name, value in keys)
    return within.then(GroupBy((), (*unit, *aggregates)), units=own)


def group_join(
    left: Facts,
    right: Facts,
    lefts: Mapping[str, Cell],
    rights: Mapping[str, Cell],
    sides: Sequence[Aggregates],
) -> Facts:
    """One record for each key: the key and aggregates of its members on the left and on the right."""
    of_left, of_right = sides
    join = GroupJoin(tuple(lefts), trees(lefts), trees(rights), of_left, of_right)
    inside = joined_inside(left, right, lefts, rights)
    within = None
    if inside is not None:
        pairs = zip(lefts.items(), rights.values(), strict=True)
        own = [n for (n, a), b in pairs if inside[0].is_unit(a.tree) and inside[1].is_unit(b.tree)]
        within = inside[0].then(join, inside[1], units=own)
    return derive(join, left, right, label=f"group_join on {spelled(trees(lefts))}", within=within)
