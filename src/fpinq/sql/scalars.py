"""Scalar sub-queries: (SELECT AVG(x) FROM t) inside an expression. Of a private table it is an answer.

It is asked before the rest, and its value is then a constant there. Which statements are accepted, and
what they cost, must not depend on the value, since it is found out after the first charge. So a value
in an expression of a row is *opaque*: it bounds nothing, names no keys, and no constant may be made of
it. Until it is known something of its type stands in for it, and every mistake is found with that.
Of public tables a sub-query is computed when it is read, and is a constant like any other.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from fpinq.client.choices import Mode
from fpinq.client.rows import Call, Cell, constant
from fpinq.model.errors import BadSQL
from fpinq.model.expressions import Apply, Column, Expression, Literal, Type
from fpinq.model.frozen import dataclass

if TYPE_CHECKING:
    from fpinq.sql.relations import Reader
    from fpinq.sql.statements import Plan

MAX_SCALARS = 32
_WHOLE = 2**63


class Refusing(Protocol):
    """What says where a mistake is."""

    def error(self, message: str, node: exp.Expr | None = None) -> BadSQL:
        """BadSQL at a node."""


@dataclass(frozen=True)
class Scalar:
    """A sub-query that is an answer: its name among the answers, what it asks, and its type."""

    name: str
    plan: "Plan"
    type: Type
    stand_in: Any

    def in_a_row(self, values: Mapping[str, Any], call: Call | None) -> Cell:
        """Its value in an expression of a row; before it is known, what stands in for it."""
        return Cell(opaque(values.get(self.name, self.stand_in), self.type), self.type, call)


class Scalars:
    """The scalar sub-queries of a statement, each once, those that others need before them."""

    def __init__(self, values: Mapping[str, Any], any_: bool = True) -> None:
        self.values = values
        self._any = any_  # whether there may be one: else nobody looks
        self.found: list[Scalar] = []
        # Those whose values are in expressions of rows: what was planned without them is planned again.
        self.in_rows: set[str] = set()
        self._of: dict[int, Scalar | Cell | None] = {}
        self._same: dict[tuple[int, exp.Expr], Scalar | Cell | None] = {}
        self._catalogs: list[object] = []  # whose ids are known by: none of them is given to another

    def read(self, reader: "Reader", query: exp.Query) -> None:
        """Those of a query itself: not of its tables, nor of sub-queries that are tables or lists."""
        if not self._any:
            return
        for node in query.walk(prune=lambda each: each is not query and isinstance(each, exp.Query)):
            if isinstance(node, exp.Subquery) and _is_scalar(node, query):
                key = id(reader.catalog), node
                if key not in self._same:
                    self._catalogs.append(reader.catalog)
                    self._same[key] = self._planned(reader, query, node)
                self._of[id(node)] = self._same[key]

    def _planned(self, reader: "Reader", query: exp.Query, node: exp.Subquery) -> "Scalar | Cell | None":
        from fpinq.sql.statements import scalar  # which reads sub-queries

        try:
            found = scalar(reader, node)
        except BadSQL:
            if _is_correlated(query, node):
                raise reader.error(_CORRELATED, node) from None
            raise
        if found is None or isinstance(found, Cell):
            return found
        if len(self.found) == MAX_SCALARS:
            raise reader.error(f"a statement has at most {MAX_SCALARS} sub-queries that are answers", node)
        name = f"scalar {len(self.found) + 1}"
        output = found.outputs[0]
        stand_in = _stand_in(reader, node, found, len(self.found) + 1)
        made = Scalar(name, found, output.type, stand_in)
        self.found.append(made)
        return made

    def of(self, node: exp.Subquery, scope: Refusing) -> "Scalar | Cell | None":
        """What a sub-query is: an answer, or a constant that was computed; None is NULL."""
        if id(node) not in self._of:
            raise scope.error("a sub-query is a table in FROM, a list in IN, or one value", node)
        return self._of[id(node)]

    def in_a_row(self, node: exp.Subquery, scope: Refusing, call: Call | None, public: bool) -> Cell | None:
        """What it is in an expression of a row."""
        found = self.of(node, scope)
        if not isinstance(found, Scalar):
            return found
        if public:
            raise scope.error(
                "which rows a public table has must be known before anything is asked, and this is an "
                "answer: join first, and compare it there", node)  # fmt: skip
        self.in_rows.add(found.name)
        return found.in_a_row(self.values, call)


_CORRELATED = (
    "this sub-query names a column of the query around it, so it would be asked anew for every record: "
    "join with a sub-query instead, JOIN (SELECT k, AVG(x) AS m FROM … GROUP BY k) AS s ON s.k = t.k"
)


def _is_scalar(node: exp.Subquery, query: exp.Query) -> bool:
    """Whether a sub-query is a value, by where it stands."""
    around = exp.From | exp.Join | exp.SetOperation | exp.Subquery | exp.CTE | exp.Exists
    return node is not query and not isinstance(node.parent, around) and node.arg_key != "query"


def _is_correlated(query: exp.Query, node: exp.Subquery) -> bool:
    """Whether a sub-query names a column of a table that only the query around it has."""
    inner = {each.alias_or_name.lower() for each in node.this.find_all(exp.Table, exp.Subquery)}
    sources = [each.this for each in (query.args.get("from_"), *(query.args.get("joins") or ())) if each]
    outer = {each.alias_or_name.lower() for each in sources} - inner
    return any(column.table.lower() in outer for column in node.find_all(exp.Column) if column.table)


def _stand_in(reader: "Reader", node: exp.Expr, plan: "Plan", number: int) -> Any:
    """Something of the type: of texts the longest that there may be, as their length is part of the work."""
    output = plan.outputs[0]
    match output.type:
        case Type.STRING:
            return max(_texts(reader, node, plan), key=len, default="")
        case Type.BOOL:
            return False
        case Type.DATE:
            return date(2000, 1, 1)
        case Type.TIMESTAMP:
            return datetime(2000, 1, 1)
        case Type.FLOAT64:
            return number + 0.5
    return number


def _texts(reader: "Reader", node: exp.Expr, plan: "Plan") -> Sequence[str]:
    """The texts that a sub-query may give: candidates of a MODE, or a key."""
    output = plan.outputs[0]
    asked = plan.aggregates.get(output.aggregate or "")
    if asked is not None and isinstance(asked.query, Mode):
        return [each for each in asked.query.candidates or () if isinstance(each, str)]
    names = [name for name in plan.by if output.tree == Column(name)]
    if names:
        place = list(plan.by).index(names[0])
        return [key[place] for key in plan.keys if isinstance(key[place], str)]
    raise reader.error("a text that is computed of answers is no constant: select the key or MODE(x)", node)


# ── in a row ─────────────────────────────────────────────────────────────────────────


def opaque(value: Any, type_: Type) -> Expression:
    """A value that nothing is concluded from: COALESCE(value, NULL), which is the value."""
    return Apply("fill_null", (typed(value, type_), Literal(None, type_)))


def is_opaque(tree: Expression) -> bool:
    """Whether an expression is a value that nothing is concluded from."""
    return (
        isinstance(tree, Apply)
        and tree.operator == "fill_null"
        and all(isinstance(each, Literal) for each in tree.arguments)
        and tree.arguments[1] == Literal(None, tree.arguments[1].type)  # type: ignore[union-attr]
    )


def typed(value: Any, type_: Type) -> Literal:
    """A value that was released as a constant of a type; null where it is none, as in a row."""
    try:
        if type_ is Type.INT64 and value is not None:
            value = round(value)
            value = value if -_WHOLE <= value < _WHOLE else None
        if type_ is Type.FLOAT64 and value is not None:
            value = float(value)
            value = value if isfinite(value) else None
    except (OverflowError, ValueError):
        value = None
    tree = constant(value, type_).tree
    assert isinstance(tree, Literal)
    return tree
