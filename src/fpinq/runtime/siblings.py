"""Siblings: the tables that the same steps make of each part of a partition, or of each cell of nested ones.

A part's part is a cell: the records with one key at each level. All cells are the parts of one
partition, by the number of the cell, so one scan measures them all. Which tables are siblings, and
how many are measured together, follows from the plan and the statistic alone.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.keys import Domain, Product
from fpinq.model.plans import Plan, Term
from fpinq.model.transformations import Fields, Partitioning, PartOf, Select, Where

# Levels that are measured together, and expressions of their keys; and keys of each that are told apart by
# comparing (a range's are counted): an expression of all of them is no larger than an expression may be.
MAX_TOGETHER, MAX_SEARCHED = 8, 512
_NOWHERE = Literal(None, Type.INT64)
_STEPS = (Where, Select)


class Level(NamedTuple):
    """A part of each partition, and the steps above it."""

    by: Partitioning
    steps: tuple[Where | Select, ...]


class Siblings(NamedTuple):
    """The tables that are measured together: the parts from `first` on, or all cells of several levels."""

    parent: Plan
    levels: tuple[Level, ...]
    first: int = 0
    number: int = 0

    def together(self, schema: Schema) -> tuple[Plan, Partitioning]:
        """One plan, and the partitioning whose parts are the siblings, in their order.

        The parts of the steps' result are the steps' results of the parts, as
        long as a select keeps the keys that the records were partitioned by.
        """
        plan, keys = self.parent, list[Expression]()
        for level in self.levels:
            keys += level.by.expressions
            for step in level.steps:
                if isinstance(step, Select):
                    step, keys = _carrying(step, keys)
                plan = Term(step, (plan,))
        if len(self.levels) == 1:
            return plan, self._some(keys)
        # What is looked up is a column: computed once, however often it is compared.
        same, keys = _carrying(Select(tuple((name, Column(name)) for name in schema.names())), keys)
        return Term(same, (plan,)), Partitioning(self._cell(keys), range(self.number))

    def _some(self, key: Sequence[Expression]) -> Partitioning:
        (level,) = self.levels
        keys = level.by.keys
        some = keys if self.number == len(keys) else keys[self.first : self.first + self.number]
        return Partitioning(tuple(key) if isinstance(level.by.key, tuple) else key[0], some)

    def _cell(self, keys: Sequence[Expression]) -> Expression:
        """The number of a record's cell, null if it is in none."""
        domains = [domain for level in self.levels for domain in _domains(level.by)]
        cell = _position(keys[0], domains[0])
        for key, domain in zip(keys[1:], domains[1:], strict=True):
            size = Literal.of(len(domain))
            cell = _apply("add", _apply("multiply", cell, size), _position(key, domain))
        return cell


# A level of a cell, its part's number, and what it is a part of.
Above = tuple[Level, int, Plan]


def siblings_of(plan: Plan, levels: Sequence[Above], most: int) -> tuple[Siblings, int] | None:
    """The siblings of a part or a cell, at most so many, and its number among them; None if it has none.

    Of levels whose cells are too many, the inner ones.
    """
    taken, index, cells, parent = list[Level](), 0, 1, plan
    for level, number, below in levels:
        more = cells * len(level.by.keys)
        if taken and (more > most or not _are_found(*(each.by for each in taken), level.by)):
            break
        index, cells, parent = index + number * cells, more, below
        taken.append(level)
    if not taken or most < 2:
        return None
    first = index - index % most  # 0, of several levels
    return Siblings(parent, tuple(reversed(taken)), first, min(cells - first, most)), index - first


def levels_of(plan: Plan) -> Sequence[Above]:
    """The levels of a cell, the innermost first, as many as are measured together; none if it is no part."""
    found = list[Above]()
    steps = list[Where | Select]()
    while type(plan) is Term and len(found) < MAX_TOGETHER:
        step = plan.transformation
        if isinstance(step, PartOf):
            found.append((Level(step.by, tuple(reversed(steps))), step.index, plan.arguments[0]))
            steps = []
        elif isinstance(step, _STEPS):
            steps.append(step)
        else:
            break
        plan = plan.arguments[0]
    return found


def _carrying(step: Select, keys: Sequence[Expression]) -> tuple[Select, list[Expression]]:
    """A select that takes the keys along, under names that the program did not choose, and these."""
    longest = "key" + "'" * max((len(name) for name, _ in step.record), default=0)
    carried: Fields = tuple((f"{longest}{i}", key) for i, key in enumerate(keys))
    return replace(step, record=(*step.record, *carried)), [Column(name) for name, _ in carried]


# ── positions ────────────────────────────────────────────────────────────────────────


def _are_found(*levels: Partitioning) -> bool:
    domains = [domain for by in levels for domain in _domains(by)]
    if not all(map(_domains, levels)) or len(domains) > MAX_TOGETHER:
        return False
    return all(type(domain) is range or len(domain) <= MAX_SEARCHED for domain in domains)


def _domains(by: Partitioning) -> tuple[Domain, ...]:
    """The keys of every expression, where each goes with each; none where keys of several are listed."""
    if type(by.keys) is Product:
        return by.keys.of
    return () if isinstance(by.key, tuple) else (by.keys,)  # type: ignore[return-value]


def _position(key: Expression, keys: Domain) -> Expression:
    """The number of a key among several, null if it is none of them."""
    if type(keys) is range:
        first, last = Literal.of(keys[0]), Literal.of(keys[-1])
        inside = _apply("and", _apply("greater_equal", key, first), _apply("less_equal", key, last))
        place = _apply("subtract", _apply("clip", key, first, last), first)
        return _apply("if_else", inside, place, _NOWHERE)
    present: list[tuple[Any, int]] = [(value, i) for i, value in enumerate(keys) if value is not None]
    if any(type(value) is not bool for value, _ in present):
        present.sort()
    found = _among(key, present)
    if None not in keys:
        return found
    return _apply("if_else", _apply("is_null", key), Literal.of(keys.index(None)), found)


def _among(key: Expression, present: Sequence[tuple[Any, int]]) -> Expression:
    """By comparisons, each of which leaves half of them; of truths, one by one."""
    if not present:
        return _NOWHERE
    middle = len(present) // 2
    value, position = present[middle]
    if len(present) > 1 and type(value) is not bool:
        left, right = _among(key, present[:middle]), _among(key, present[middle:])
        return _apply("if_else", _apply("less", key, Literal.of(value)), left, right)
    others = _among(key, present[:middle])
    return _apply("if_else", _apply("equal", key, Literal.of(value)), Literal.of(position), others)


def _apply(operator: str, *arguments: Expression) -> Apply:
    return Apply(operator, arguments)
