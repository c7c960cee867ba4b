"""UNION, INTERSECT and EXCEPT of what SELECTs release: made of their rows, for free."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from typing import Any

from sqlglot import exp

from fpinq.client.rows import Call, Cell, Row
from fpinq.model.errors import BadSQL
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.sql.expressions import cell
from fpinq.sql.groups import group_node
from fpinq.sql.relations import Reader, common_type, with_ctes
from fpinq.sql.scopes import alike
from fpinq.sql.statements import Output, Plan, Sorting, select, whole_number


@dataclass(frozen=True)
class Both:
    """What two SELECTs, or such of them, release, put together."""

    operation: str
    bag: bool
    left: "Plan | Both"
    right: "Plan | Both"
    outputs: tuple[Output, ...]
    sortings: tuple[Sorting, ...]
    limit: int | None
    offset: int


Whole = Plan | Both


def whole(reader: Reader, query: exp.Expr) -> Whole:
    """A SELECT, or several that are put together."""
    while isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.Select):
        return select(reader, query)
    if not isinstance(query, exp.SetOperation):
        raise reader.error("UNION, INTERSECT and EXCEPT are of SELECTs", query)
    reader = with_ctes(reader, query)
    left, right = (whole(reader, each) for each in (query.left, query.right))
    if len(left.outputs) != len(right.outputs):
        raise reader.error(
            f"both sides need the same columns: {len(left.outputs)} here and {len(right.outputs)} there",
            query,
        )
    pairs = zip(left.outputs, right.outputs, strict=True)
    outputs = tuple(
        Output(
            a.name, Column(a.name), common_type(reader, query, a.type, b.type), None, a.of_keys and b.of_keys
        )
        for a, b in pairs
    )
    return Both(
        type(query).__name__.lower(),
        not query.args.get("distinct"),
        left,
        right,
        outputs,
        _sortings(reader, query, outputs),
        whole_number(reader, query.args.get("limit")),
        whole_number(reader, query.args.get("offset")) or 0,
    )


def selects(found: Whole) -> list[Plan]:
    """The SELECTs, in the order in which they are written."""
    return [found] if isinstance(found, Plan) else [*selects(found.left), *selects(found.right)]


@dataclass(frozen=True)
class _Columns:
    """The columns of the rows that are put together, by the names of the first SELECT."""

    reader: Reader
    outputs: Sequence[Output]
    row: Row

    def special(self, node: exp.Expr) -> Cell | None:
        """Nothing is special."""
        return None

    def column(self, node: exp.Column) -> Cell:
        """A column of the result."""
        name = next((each.name for each in self.outputs if alike(each.name, node.name)), None)
        if name is None or node.table:
            listed = ", ".join(each.name for each in self.outputs)
            raise self.error(f"ORDER BY names a column of the result: {listed}", node)
        found = self.row[name]
        assert isinstance(found, Cell)
        return found

    def scalar(self, node: exp.Subquery) -> Cell | None:
        """None here."""
        raise self.error("ORDER BY of what is put together takes its columns", node)

    def error(self, message: str, node: exp.Expr | None = None) -> BadSQL:
        """BadSQL at a node."""
        return self.reader.error(message, node)


def _sortings(reader: Reader, query: exp.SetOperation, outputs: Sequence[Output]) -> tuple[Sorting, ...]:
    order = query.args.get("order")
    if order is None:
        return ()
    row = Row(Schema.of({each.name: each.type for each in outputs}), Call())
    scope = _Columns(reader, outputs, row)
    listed: list[tuple[str, exp.Expr]] = [(each.name, exp.column(each.name, quoted=True)) for each in outputs]
    found = []
    for each in order.expressions:
        tree = cell(group_node(reader, each.this, listed), scope).tree
        found.append(Sorting(tree, bool(each.args.get("desc")), bool(each.args.get("nulls_first"))))
    return tuple(found)


# ── rows ─────────────────────────────────────────────────────────────────────────────

Key = tuple[Any, ...]


def put_together(
    both: Both, left: Sequence[Any], right: Sequence[Any], key: Callable[[Any], Key]
) -> list[Any]:
    """The rows of both, as a bag or each once; two rows are one if their values are equal."""
    if both.operation == "union":
        rows = [*left, *right]
    else:
        there = Counter(map(key, right))
        rows = []
        for row in left if both.bag else _once(left, key):
            found = there[key(row)] > 0
            if found and both.bag:
                there[key(row)] -= 1
            if found is (both.operation == "intersect"):
                rows.append(row)
    return rows if both.bag else _once(rows, key)


def _once(rows: Sequence[Any], key: Callable[[Any], Key]) -> list[Any]:
    return list({key(row): row for row in reversed(rows)}.values())[::-1]


def as_type(value: Any, type_: Type) -> Any:
    """A value as one of the type that both sides have."""
    if type_ is Type.FLOAT64 and type(value) is int:
        return float(value)
    if type_ is Type.TIMESTAMP and type(value) is date:
        return datetime.combine(value, time())
    return value
