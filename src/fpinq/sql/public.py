"""Scalar sub-queries of public tables: computed, as SQL has it, since nobody's records are in them."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

from sqlglot import exp

from fpinq.client.keys import public_rows
from fpinq.client.rows import BOOL, FLOAT64, INT64, Call, Cell, Row
from fpinq.model.epsilon import rational
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.model.operators import evaluate
from fpinq.sql.aggregates import apart, has_aggregate, is_aggregate
from fpinq.sql.expressions import cell, condition
from fpinq.sql.relations import Reader
from fpinq.sql.scalars import typed
from fpinq.sql.scopes import Relation, Rows

Values = list[Any]


def computed(reader: Reader, query: exp.Select, source: Relation) -> Cell | None:
    """The one value of a SELECT from public tables; none is NULL."""
    unread = [each for each in ("group", "having", "order", "limit", "offset") if query.args.get(each)]
    if unread or query.args.get("distinct"):
        raise reader.error(
            "a sub-query of public tables that is a value is an aggregate, or one row: leave out "
            f"{(unread or ['DISTINCT'])[0].upper()}", query)  # fmt: skip
    node = query.expressions[0]
    node = node.this if isinstance(node, exp.Alias) else node
    known = source.row()
    names = source.table.facts.schema.names()
    rows = [dict(zip(names, row, strict=True)) for row in public_rows(source.table.facts)]
    if has_aggregate(node):
        scope = _Whole(reader, source, rows, known, {}, Row(Schema.of({"any": BOOL}), Call()))
        made = cell(node, scope)
        return Cell(typed(evaluate(made.tree, scope.values), made.type), made.type, None)
    made = cell(node, Rows(reader, source, known))
    if len(rows) > 1:
        raise reader.error(f"a sub-query that is a value has one row, and this has {len(rows):,}", query)
    value = evaluate(made.tree, rows[0]) if rows else None
    return Cell(typed(value, made.type), made.type, None)


@dataclass(frozen=True)
class _Whole:
    """All rows of a public table: aggregates of them, which are columns of what is computed."""

    reader: Reader
    source: Relation
    rows: Sequence[dict[str, Any]]
    known: Row
    values: dict[str, Any]
    row: Row

    def special(self, node: exp.Expr) -> Cell | None:
        """An aggregate."""
        if not is_aggregate(node):
            return None
        value, type_ = self._aggregate(node)
        name = f"aggregate {len(self.values) + 1}"
        self.values[name] = typed(value, type_).value
        return Cell(Column(name), type_, self.row["any"].call)

    def column(self, node: exp.Column) -> Cell:
        """No column is of all rows."""
        raise self.error(f"{node.name!r} is neither in GROUP BY nor in an aggregate", node)

    def scalar(self, node: exp.Subquery) -> Cell | None:
        """The value of a sub-query of a public table."""
        return self.reader.scalars.in_a_row(node, self, None, public=True)

    def error(self, message: str, node: exp.Expr | None = None) -> Any:
        """BadSQL at a node."""
        return self.reader.error(message, node)

    def _aggregate(self, node: exp.Expr) -> tuple[Any, Type]:
        found = apart(node, self)
        scope = Rows(self.reader, self.source, self.known)
        kind, of = type(found.node), found.node.this
        tests = [condition(each, scope).tree for each in found.only]
        if kind is exp.CountIf:
            tests.append(condition(of, scope).tree)
        rows = [row for row in self.rows if all(evaluate(test, row) is True for test in tests)]
        if kind is exp.CountIf or (kind is exp.Count and (of is None or isinstance(of, exp.Star))):
            return len(rows), INT64
        distinct = isinstance(of, exp.Distinct)
        if distinct and len(of.expressions) != 1:
            raise self.error("DISTINCT takes one expression here", node)
        made = cell(of.expressions[0] if distinct else of, scope)
        present = [value for row in rows if (value := evaluate(made.tree, row)) is not None]
        values = list(dict.fromkeys(present)) if distinct else present
        if kind is exp.Count:
            return len(values), INT64
        if kind in (exp.Min, exp.Max):
            return (min if kind is exp.Min else max)(values, default=None), made.type
        rule = _RULES.get(kind)
        if rule is None or made.type not in (INT64, FLOAT64, BOOL):
            raise self.error(
                "of public tables COUNT, SUM, AVG, MIN, MAX, MEDIAN, VAR_POP and STDDEV_POP are computed, of "
                "numbers", node)  # fmt: skip
        type_ = INT64 if kind is exp.Sum and made.type is not FLOAT64 else FLOAT64
        numbers = [Fraction(value) for value in values if rational(value) is not None]
        return (rule(numbers) if numbers else None), type_


def _sum(values: Values) -> Any:
    return sum(values, Fraction(0))


def _average(values: Values) -> Any:
    return _sum(values) / len(values)


def _variance(values: Values) -> Any:
    return _average([value * value for value in values]) - _average(values) ** 2


def _median(values: Values) -> Any:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


_RULES: dict[type[exp.Expr], Callable[[Values], Any]] = {
    exp.Sum: _sum, exp.Avg: _average, exp.VariancePop: _variance, exp.Median: _median,
    exp.StddevPop: lambda values: sqrt(_variance(values)),
}  # fmt: skip
