"""Public keys: which values an expression can have, as far as metadata or the statement say so."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import product
from math import prod
from typing import Any

from sqlglot import exp

from fpinq.client.bounds import Known
from fpinq.client.rows import BOOL, DATE, INT64, Cell
from fpinq.model.errors import BadPartition
from fpinq.model.expressions import Apply, Column, Expression, Literal
from fpinq.model.maps import Each
from fpinq.model.operators import evaluate
from fpinq.sql.expressions import Scope, cell, together
from fpinq.sql.scalars import is_opaque
from fpinq.sql.scopes import Domain, listed

# A range of numbers in WHERE makes so many keys at the most.
MAX_RANGE = 10_000
# All combinations of several keys are written out: so many at the most.
MAX_PRODUCT = 100_000
# So many values of expressions are computed for the keys of a statement, about two seconds.
MAX_WORK = 200_000

_ALWAYS: dict[str, Sequence[Any]] = {
    "month": range(1, 13), "day": range(1, 32), "weekday": range(7), "hour": range(24), "sign": (-1, 0, 1),
}  # fmt: skip
_CONDITIONS = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not", "is_in",
    "is_null", "contains", "starts_with", "ends_with",
}  # fmt: skip


class Work:
    """How much may be computed to find keys: what takes longer has none that are known."""

    def __init__(self) -> None:
        self._left = MAX_WORK

    def take(self, number: int) -> bool:
        """Whether so many values more may be computed."""
        self._left -= number
        return self._left >= 0


def finite(tree: Expression, known: Mapping[str, Known], work: Work | None = None) -> Sequence[Any] | None:
    """The values that an expression can have, if they are few and public: declared, or written in it."""
    work = Work() if work is None else work
    if isinstance(tree, Literal):
        return (tree.value,)
    if isinstance(tree, Column):
        column = known.get(tree.name)
        return None if column is None else column.keys
    if tree.operator in _CONDITIONS:
        return (False, True)
    if tree.operator in _ALWAYS:
        return _ALWAYS[tree.operator]
    if is_opaque(tree):
        return None
    if tree.operator in ("if_else", "fill_null"):
        branches = tree.arguments[1:] if tree.operator == "if_else" else tree.arguments
        return _either(finite(each, known, work) for each in branches)
    return _computed(tree, known, work)


def _either(some: Iterable[Sequence[Any] | None]) -> Sequence[Any] | None:
    found: dict[tuple[type, Any], Any] = {}
    for each in some:
        if each is None:
            return None
        found |= {(type(value), value): value for value in each}
    return tuple(found.values())


def _computed(tree: Apply, known: Mapping[str, Known], work: Work) -> Sequence[Any] | None:
    """Of an operator on values that are few themselves: what it makes of them."""
    each = [finite(argument, known, work) for argument in tree.arguments]
    known_of = [values for values in each if values is not None]
    number = prod(map(len, known_of))
    if len(known_of) < len(each) or number > MAX_RANGE or not work.take(number):
        return None
    rows = product(*known_of)
    literals = [_literals(tree.arguments, row) for row in rows]
    return _either([(evaluate(Apply(tree.operator, some), {}),) for some in literals if some is not None])


def _literals(arguments: Sequence[Expression], row: Sequence[Any]) -> tuple[Literal, ...] | None:
    found = []
    for argument, value in zip(arguments, row, strict=True):
        if isinstance(argument, Literal):
            found.append(argument)
        elif value is None:
            return None
        else:
            found.append(Literal.of(value))
    return tuple(found)


# ── what WHERE says ──────────────────────────────────────────────────────────────────


def domains_of(node: exp.Expr, scope: Scope) -> tuple[Domain, ...]:
    """The public values that a condition leaves to an expression: k IN (…), k = …, k BETWEEN … AND …."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.In) and node.expressions:
        of, *values = together(node.this, *node.expressions, scope=scope)
        return _listed(of, values)
    if isinstance(node, exp.EQ):
        pair = together(node.this, node.expression, scope=scope)
        return _listed(pair[0], pair[1:]) or _listed(pair[1], pair[:1])
    if isinstance(node, exp.Between):
        of, low, high = together(node.this, node.args["low"], node.args["high"], scope=scope)
        return _range(of, low, high)
    if isinstance(node, exp.Predicate | exp.Connector | exp.Not):
        return ()
    found = cell(node, scope, BOOL)
    if isinstance(found.tree, Column) and found.type is BOOL:  # WHERE flag
        return (listed(found.tree, [True]),)
    return ()


def _listed(of: Cell, values: Sequence[Cell]) -> tuple[Domain, ...]:
    constants = [value.tree for value in values if value.call is None]
    if of.call is None or len(constants) < len(values):
        return ()
    plain = dict.fromkeys(evaluate(tree, {}) for tree in constants)
    return (listed(of.tree, [value for value in plain if value is not None]),)


def _range(of: Cell, low: Cell, high: Cell) -> tuple[Domain, ...]:
    if of.call is None or low.call is not None or high.call is not None:
        return ()
    first, last = evaluate(low.tree, {}), evaluate(high.tree, {})
    if first is None or last is None:
        return ()
    if of.type is INT64 and last - first < MAX_RANGE:
        return (listed(of.tree, range(first, last + 1)),)
    if of.type is DATE:
        years = [listed(Apply("year", (of.tree,)), range(first.year, last.year + 1))]
        if (last - first).days < MAX_RANGE:
            days = range(first.toordinal(), last.toordinal() + 1)
            years.append(listed(of.tree, Each(len(days), lambda i: date.fromordinal(days[i]))))
        return tuple(years)
    return ()


# ── of several expressions ───────────────────────────────────────────────────────────


def keys_of(
    trees: Sequence[Expression], domains: Sequence[Domain], known: Mapping[str, Known]
) -> tuple[list[tuple[Any, ...]], list[int]]:
    """The public keys of several expressions together, and the places of those that have none.

    What one public table says of several of them is taken row by row, the rest each with each.
    """
    parts: list[tuple[list[int], list[tuple[Any, ...]]]] = []
    left = list(range(len(trees)))
    work = Work()
    values = [finite(tree, known, work) for tree in trees]
    while left:
        best = _best(trees, left, domains, values)
        if best is None:
            return [], [place for place in left if _best(trees, [place], domains, values) is None]
        parts.append(best)
        left = [place for place in left if place not in best[0]]
    parts.sort(key=lambda part: part[0])
    number = prod(len(rows) for _, rows in parts)
    if number > MAX_PRODUCT:
        raise BadPartition(
            f"there would be {number:,} groups, and {MAX_PRODUCT:,} are the most: name those that you need, "
            "WHERE k IN (…)"
        )
    places = [place for some, _ in parts for place in some]
    order = [places.index(place) for place in range(len(trees))]
    joined = (sum(rows, ()) for rows in product(*(rows for _, rows in parts)))
    return [tuple(row[i] for i in order) for row in joined], []


def public_values(
    trees: Sequence[Expression], domains: Sequence[Domain], known: Mapping[str, Known]
) -> list[Sequence[Any] | None]:
    """Of each of several expressions by itself its public values, if there are any."""
    work = Work()
    values = [finite(tree, known, work) for tree in trees]
    found = [_best(trees, [place], domains, values) for place in range(len(trees))]
    return [None if one is None else [value for (value,) in one[1]] for one in found]


def _best(
    trees: Sequence[Expression],
    left: list[int],
    domains: Sequence[Domain],
    values: Sequence[Sequence[Any] | None],
) -> tuple[list[int], list[tuple[Any, ...]]] | None:
    """Of those that are left: the most that one domain covers, with the fewest rows."""
    options: list[tuple[list[int], list[tuple[Any, ...]]]] = []
    for domain in domains:
        places = [place for place in left if trees[place] in domain.of]
        if places:
            options.append((places, domain.rows([domain.of.index(trees[place]) for place in places])))
    for place in left:
        of_place = values[place]
        if of_place is not None:
            options.append(([place], [(value,) for value in of_place[: MAX_PRODUCT + 1]]))
    return min(options, key=lambda option: (-len(option[0]), len(option[1])), default=None)
