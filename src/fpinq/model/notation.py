"""Expressions, transformations and actions as the paper writes them: t := F(t₁…tₙ), query(t, f, Q⃗, ε)."""

from collections.abc import Iterable
from dataclasses import fields
from itertools import groupby

from fpinq.model.actions import Action, AskBudget, AskPrice, AskScale, Assign, Partition, Query, Silent
from fpinq.model.clamps import Clamp
from fpinq.model.environments import Names, Numbered
from fpinq.model.expressions import Apply, Column, Expression, Literal, Value
from fpinq.model.keys import Keys, Product
from fpinq.model.plans import Flatten, PersonTable, Plan, RootTable, Term, Transformation
from fpinq.model.queries import PrimitiveQuery, Several, SimpleQuery
from fpinq.model.transformations import Aggregate, All, First, LiteralTable, Partitioning, Unique

_INFIX = {
    "add": "+",
    "subtract": "−",
    "multiply": "×",
    "divide": "/",
    "floor_divide": "//",
    "modulo": "%",
    "equal": "=",
    "not_equal": "≠",
    "less": "<",
    "less_equal": "≤",
    "greater": ">",
    "greater_equal": "≥",
    "and": "∧",
    "or": "∨",
}


# A parameter that is a list may be long; a line of a trace does not need all of it.
SHOWN = 20


def show_value(value: Value) -> str:
    """A value of a row."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)


def show_expression(expression: Expression) -> str:
    """A row expression, infix where that is usual."""
    match expression:
        case Column(name=name):
            return name
        case Literal(value=value):
            return show_value(value)
        case Apply(operator=operator, arguments=(left, right)) if operator in _INFIX:
            return f"{_nested(left)} {_INFIX[operator]} {_nested(right)}"
        case Apply(operator=operator, arguments=arguments):  # pragma: no branch - exhaustive
            return f"{operator}({', '.join(show_expression(a) for a in arguments)})"


def show_transformation(transformation: Transformation) -> str:
    """F with its parameters: take[2], where[age > 17]."""
    match transformation:
        case LiteralTable(rows=rows):
            return "{" + ", ".join(show_record(row) for row in rows) + "}"
        case Flatten(body=body):
            return f"flatten[{show_plan(body)}]"
    return _with_parameters(transformation)


def show_plan(plan: Plan) -> str:
    """A term, applied inside out."""
    match plan:
        case RootTable(root=root):
            return root
        case PersonTable(table=table, at_most=at_most):
            return f"first {at_most} of {table}"
        case Term(transformation=transformation, arguments=arguments):  # pragma: no branch - exhaustive
            return f"{show_transformation(transformation)}({', '.join(show_plan(a) for a in arguments)})"


def show_action(action: Action) -> str:
    """An action of a client program."""
    match action:
        case Silent():
            return "τ"
        case Assign(target=target, transformation=LiteralTable() as literal):
            return f"{target} := {show_transformation(literal)}"
        case Assign(target=target, transformation=transformation, arguments=arguments):
            return f"{target} := {show_transformation(transformation)}({', '.join(arguments)})"
        case Partition(targets=targets, table=table, by=by):
            return f"{_names(targets)} := partition[{_partitioning(by)}]({table})"
        case Query(table=table, epsilon=epsilon, queries=queries, by=by):
            asked = ", ".join(map(_asked, queries))
            parts = f", {_partitioning(by)}" if by is not None else ""
            return f"query({table}{parts}, {asked}, {epsilon})"
        case AskScale(table=table):
            return f"{table} ? s"
        case AskBudget():
            return "budget ? B"
        case AskPrice(table=table, epsilon=epsilon, delta=delta):  # pragma: no branch - exhaustive
            return f"price({table}, {epsilon}{'' if delta is None else f', {delta}'}) ? C"


def _asked(query: PrimitiveQuery) -> str:
    """A query with its column and bounds, moments[age in 0…110, 1]; several with their weights."""
    if not isinstance(query, Several):
        return _with_parameters(query)
    each = zip(query.of, query.weights, strict=True)
    return " and ".join(f"{weight}×{_with_parameters(one)}" for one, weight in each)


def _with_parameters(named: Transformation | SimpleQuery) -> str:
    given = [(f.name, getattr(named, f.name)) for f in fields(named) if f.name != "op"]
    shown = ", ".join(text for text in (_parameter(value, name) for name, value in given) if text)
    return f"{named.op}[{shown}]" if shown else named.op


def show_record(record: Iterable[Value]) -> str:
    """A record of a bag."""
    return f"⟨{', '.join(show_value(value) for value in record)}⟩"


def _nested(expression: Expression) -> str:
    infix = isinstance(expression, Apply) and expression.operator in _INFIX
    return f"({show_expression(expression)})" if infix else show_expression(expression)


def _names(targets: Names) -> str:
    return f"{targets[0]}…{targets[-1]}" if type(targets) is Numbered else ", ".join(targets)


def _partitioning(by: Partitioning) -> str:
    return f"{', '.join(map(show_expression, by.expressions))}: {_keys(by.keys)}"


def _keys(keys: Keys) -> str:
    if type(keys) is range:
        return f"{keys[0]}…{keys[-1]}"
    if type(keys) is Product:
        return " × ".join(f"{{{_keys(domain)}}}" for domain in keys.of)
    return ", ".join(show_record(key) if isinstance(key, tuple) else show_value(key) for key in keys)


def _parameter(parameter: object, name: str = "") -> str:
    match parameter:
        case bool():
            return name if parameter else ""
        case Column() | Literal() | Apply():
            return show_expression(parameter)
        case Clamp(value=value, lower=lower, upper=upper, step=step):
            return f"{show_expression(value)} in {lower * step}…{upper * step}"
        case Aggregate(function=function, value=value):
            return f"{function}({_parameter(value)})"
        case Partitioning():
            return _partitioning(parameter)
        case First(at_most=at_most):
            return f"first {at_most}"
        case Unique() | All():
            return parameter.op
        case (str() as column, (Column() | Literal() | Apply() | Aggregate()) as value):
            return column if value == Column(column) else f"{column} = {_parameter(value)}"
        case tuple() if name == "records":
            shown = [f"({_parameter(record)})" for record in parameter]
            runs = [(text, len(list(run))) for text, run in groupby(shown)]
            return ", ".join(text if length == 1 else f"{length}×{text}" for text, length in runs)
        case tuple():
            shown = [text for text in map(_parameter, parameter[:SHOWN]) if text]
            return ", ".join(shown) + (f", … {len(parameter)} in all" if len(parameter) > SHOWN else "")
        case _:
            return "" if parameter is None else str(parameter)
