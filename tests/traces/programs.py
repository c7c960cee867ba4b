"""Golden traces as programs: how a step becomes a kernel action."""

import ast
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

from fpinq.model.actions import Action, AskBudget, AskPrice, AskScale, Assign, Partition, Query, Silent
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.queries import Count, Moments, PrimitiveQuery, Sum
from fpinq.model.transformations import (
    Aggregate,
    Concat,
    First,
    GroupBy,
    Join,
    LiteralTable,
    Partitioning,
    SelectMany,
    Where,
)

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> dict[str, Any]:
    """A golden trace by name."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def schema(columns: dict[str, str]) -> Schema:
    """A schema as the traces write it."""
    return Schema.of({name: Type(type_) for name, type_ in columns.items()})


_COMPARISONS = {ast.Gt: "greater", ast.Lt: "less", ast.Eq: "equal", ast.GtE: "greater_equal"}


def expression(text: str) -> Expression:
    """A row expression over x, as the traces write it."""

    def lower(node: ast.expr) -> Expression:
        match node:
            case ast.Attribute(value=ast.Name(id="x"), attr=name):
                return Column(name)
            case ast.Constant(value=value):
                return Literal.of(value)
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return Apply(_COMPARISONS[type(operator)], (lower(left), lower(right)))
        raise AssertionError(f"not an expression of a golden trace: {text}")

    return lower(ast.parse(text, mode="eval").body)


def action(step: dict[str, Any], schemas: dict[str, Schema]) -> Action:
    """The kernel action of a step; schemas are those of the tables bound so far."""
    target = step.get("target", "")
    match step["op"]:
        case "silent":
            return Silent()
        case "literal":
            rows = tuple(tuple(row) for row in step["rows"])
            return Assign(target, LiteralTable(schema(step["schema"]), rows))
        case "where":
            return Assign(target, Where(expression(step["predicate"])), (step["table"],))
        case "select_many":
            record = tuple((name, Column(name)) for name in schemas[step["table"]].names())
            copies = step["copies"]
            return Assign(target, SelectMany((record,) * copies, copies), (step["table"],))
        case "group_by":
            keys = tuple((name, expression(text)) for name, text in step["keys"].items())
            return Assign(target, GroupBy(keys, (("count", Aggregate("count")),)), (step["table"],))
        case "concat":
            return Assign(target, Concat(), (step["left_table"], step["right_table"]))
        case "join":
            left, right = step["first"]
            on = (expression(step["on"]),)
            columns = schemas[step["left_table"]].names()
            record = tuple((name, Column(f"l.{name}")) for name in columns)
            join = Join(on, on, First(left), First(right), record)
            return Assign(target, join, (step["left_table"], step["right_table"]))
        case "partition":
            return Partition(tuple(step["targets"]), step["table"], partitioning(step))
        case "query":
            by = partitioning(step) if "keys" in step else None
            asked = (query(step),) * (len(by.keys) if by else 1)
            return Query(step["table"], epsilon_of(step), asked, by)
        case "ask_scale":
            return AskScale(step["table"])
        case "ask_budget":
            return AskBudget()
        case "ask_price":
            return AskPrice(step["table"], epsilon_of(step))
    raise AssertionError(f"no such step: {step['op']}")


def epsilon_of(step: dict[str, Any]) -> Fraction:
    """ε as written: the kernel itself decides whether it is one."""
    return step["epsilon"]  # type: ignore[no-any-return]


def partitioning(step: dict[str, Any]) -> Partitioning:
    """The partitioning of a step."""
    return Partitioning(expression(step["key"]), tuple(step["keys"]))


def query(step: dict[str, Any]) -> PrimitiveQuery:
    """The primitive query of a step."""
    match step["query"]:
        case "count":
            return Count()
        case "sum":
            return Sum(Clamp(expression(step["of"]), *step["bounds"]))
        case "average":
            return Moments(Clamp(expression(step["of"]), *step["bounds"]), 1)
    raise AssertionError(f"no such query: {step['query']}")
