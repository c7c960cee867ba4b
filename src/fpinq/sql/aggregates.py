"""Aggregates: what SQL's are called here, which queries of the client they are, and of what."""

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from fpinq.client.bounds import Known
from fpinq.client.choices import Mode, Quantile
from fpinq.client.extremes import Maximum, Minimum
from fpinq.client.queries import Average, Count, DistinctCount, Inquiry, StandardDeviation, Sum, Variance
from fpinq.client.regressions import INTERCEPT, Correlation, Covariance, Regression
from fpinq.client.rows import BOOL, FLOAT64, INT64, Cell, apply, constant
from fpinq.client.spelling import spell
from fpinq.model.expressions import Type
from fpinq.model.frozen import dataclass
from fpinq.sql.bounds import Interval, bounds_of
from fpinq.sql.expressions import Scope, cell, chained, condition, if_else, literal
from fpinq.sql.keys import finite

AGGREGATES = (
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Mode, exp.Variance,
    exp.VariancePop, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Quantile, exp.ApproxQuantile,
    exp.PercentileCont, exp.PercentileDisc, exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrSlope,
    exp.RegrIntercept,
)  # fmt: skip
# What stands around an aggregate and belongs to it.
AROUND = (exp.Filter, exp.WithinGroup)
_WHOLE = frozenset(AGGREGATES + AROUND)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, as a whole."""
    return type(node) in _WHOLE


def has_aggregate(node: exp.Expr) -> bool:
    """Whether there is an aggregate in a node, outside of its sub-queries."""
    found = node.walk(prune=lambda each: isinstance(each, exp.Query))
    return any(isinstance(each, AGGREGATES) for each in found)


@dataclass(frozen=True)
class Apart:
    """An aggregate, with what FILTER and WITHIN GROUP say of it."""

    node: Any
    only: tuple[exp.Expr, ...] = ()
    within: exp.Expr | None = None


def apart(node: exp.Expr, scope: Scope) -> Apart:
    """An aggregate without what stands around it."""
    only: list[exp.Expr] = []
    within: exp.Expr | None = None
    while isinstance(node, AROUND):
        if isinstance(node, exp.Filter):
            only.append(node.expression.this)
        else:
            ordered = node.expression.expressions
            if len(ordered) != 1 or ordered[0].args.get("desc"):
                raise scope.error("WITHIN GROUP (ORDER BY x) takes one rising expression", node)
            within = ordered[0].this
        node = node.this
    if not isinstance(node, AGGREGATES):
        raise scope.error("FILTER and WITHIN GROUP belong to an aggregate", node)
    return Apart(node, tuple(only), within)


@dataclass(frozen=True)
class Asked:
    """A query of the client, the type of its value, and which of its answers it is."""

    query: Inquiry[Any]
    type: Type
    part: str | None = None
    # Whether it adds up over parts: then levels of GROUPING SETS can be made consistent.
    additive: bool = False


class NoBounds(Exception):
    """What is added up has no bounds: the expression and its place."""

    def __init__(self, what: str, node: exp.Expr) -> None:
        self.what, self.node = what, node


def asked(node: exp.Expr, scope: Scope, known: Mapping[str, Known]) -> Asked:
    """The query that an aggregate is, over a row; NoBounds if it needs some and none are known."""
    found = apart(node, scope)
    kind, only = type(found.node), found.only
    tests = [condition(each, scope) for each in only]
    test = chained("and", tests) if tests else None
    if kind in (exp.Count, exp.CountIf):
        return _count(found.node, test, scope)
    if isinstance(found.node.this, exp.Distinct):
        raise scope.error(
            "only COUNT takes DISTINCT: aggregate a sub-query, (SELECT DISTINCT x FROM …)", found.node
        )
    of = _Of(scope, known, test)
    if kind in (exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc, exp.Median):
        return _quantile(found, of)
    if kind is exp.Mode:
        value = of.value(found.within or found.node.this)
        candidates = finite(value.tree, known)
        if candidates is None:
            raise scope.error(
                "MODE chooses among public keys: declare them, columns={…: fp.Column(keys=[…])}", found.node
            )
        return Asked(Mode(value, [each for each in candidates if each is not None]), value.type)
    if kind in _OF_TWO or kind in (exp.RegrSlope, exp.RegrIntercept):
        return _of_two(found.node, of)
    value, bounds = of.bounded(found.node.this)
    whole = value.type in (INT64, BOOL)
    match kind:
        case exp.Sum:
            return Asked(Sum(value, bounds), INT64 if whole else FLOAT64, additive=True)
        case exp.Avg:
            return Asked(Average(value, bounds), FLOAT64)
        case exp.Min | exp.Max:
            query = Minimum if kind is exp.Min else Maximum
            return Asked(query(value, bounds), INT64 if whole else FLOAT64)
        case exp.Variance | exp.VariancePop:
            return Asked(Variance(value, bounds), FLOAT64)
    return Asked(StandardDeviation(value, bounds), FLOAT64)


_SLOPE = "(slope)"  # no column is called so
_OF_TWO: dict[type[exp.Expr], Any] = {
    exp.Corr: Correlation, exp.CovarPop: Covariance, exp.CovarSamp: Covariance,
}  # fmt: skip


@dataclass(frozen=True)
class _Of:
    """What an aggregate is of: values of the row, null where the filter is not true."""

    scope: Scope
    known: Mapping[str, Known]
    test: Cell | None

    def value(self, node: exp.Expr) -> Cell:
        value = cell(node, self.scope)
        return value if self.test is None else if_else(self.test, value, None)

    def bounded(self, node: exp.Expr) -> tuple[Cell, Interval | None]:
        """A number and its bounds; a condition needs none."""
        value = self.value(node)
        if value.type is BOOL:
            return value, None
        if value.type not in (INT64, FLOAT64):
            raise self.scope.error(
                f"this is {value.type.value}: aggregates other than COUNT are of numbers", node
            )
        bounds = bounds_of(value.tree, self.known)
        if bounds is None:
            raise NoBounds(spell(cell(node, self.scope).tree), node)
        return value, bounds


def _count(node: Any, test: Cell | None, scope: Scope) -> Asked:
    counted = node.this
    if isinstance(counted, exp.Distinct):
        if len(counted.expressions) != 1:
            raise scope.error("COUNT(DISTINCT x) takes one expression", node)
        value = cell(counted.expressions[0], scope)
        return Asked(DistinctCount(value if test is None else if_else(test, value, None)), INT64)
    if isinstance(node, exp.CountIf):
        also = condition(counted, scope)
        test = also if test is None else apply("and", test, also)
    elif counted is not None and not isinstance(counted, exp.Star):
        present = apply("not", cell(counted, scope, BOOL).is_null())
        test = present if test is None else apply("and", test, present)
    if test is None:
        return Asked(Count(), INT64, additive=True)
    one = if_else(test, constant(1), constant(0))
    return Asked(Sum(one, (0, 1)), INT64, additive=True)


def _quantile(found: Apart, of: _Of) -> Asked:
    node, fraction = found.node, 0.5
    value_of = node.this
    if not isinstance(node, exp.Median):
        given = node.args.get("quantile") or node.args.get("expression")
        if found.within is not None:
            given, value_of = node.this, found.within
        if given is None:
            raise of.scope.error("say which quantile: QUANTILE_CONT(x, 0.9)", node)
        fraction = literal(given, of.scope, "the fraction")
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        raise of.scope.error("the fraction of a quantile is a number between 0 and 1", node)
    value, bounds = of.bounded(value_of)
    return Asked(Quantile(fraction, value, bounds), INT64 if value.type is INT64 else FLOAT64)


def _of_two(node: Any, of: _Of) -> Asked:
    pair = [of.bounded(each) for each in (node.this, node.expression)]
    a, b = (each.cast("int64") if each.type is BOOL else each for each, _ in pair)
    of_a, of_b = (bounds or (0, 1) for _, bounds in pair)
    if type(node) in _OF_TWO:
        return Asked(_OF_TWO[type(node)](a, b, (of_a, of_b)), FLOAT64)
    query = Regression(a, {_SLOPE: b}, {_SLOPE: of_b, spell(a.tree): of_a})
    return Asked(query, FLOAT64, _SLOPE if isinstance(node, exp.RegrSlope) else INTERCEPT)
