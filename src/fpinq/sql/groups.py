"""GROUP BY in a sub-query: the transformation, one record for each group. Its stability is 2."""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from fpinq.client.rows import BOOL, FLOAT64, INT64, Cell, Row, apply, constant
from fpinq.model.errors import BadSQL
from fpinq.model.expressions import Expression
from fpinq.model.frozen import dataclass
from fpinq.sql.aggregates import apart, is_aggregate
from fpinq.sql.bounds import bounds_of
from fpinq.sql.expressions import cell, chained, condition, if_else
from fpinq.sql.relations import Reader, distinct_names, items, names_in, of_row, placed
from fpinq.sql.scopes import Name, Relation, Rows, alike, folded, selected


def group_nodes(reader: Reader, query: exp.Select, listed: list[tuple[str, exp.Expr]]) -> list[exp.Expr]:
    """The expressions of GROUP BY: columns, expressions, numbers or names of the SELECT list."""
    group = query.args.get("group")
    return [] if group is None else [group_node(reader, each, listed) for each in group.expressions]


def group_node(reader: Reader, node: exp.Expr, listed: list[tuple[str, exp.Expr]]) -> exp.Expr:
    """One of them."""
    if isinstance(node, exp.Literal) and not node.is_string:
        number = int(node.this) if node.this.isdecimal() else 0
        if not 1 <= number <= len(listed):
            raise reader.error(f"the SELECT list has {len(listed)} columns", node)
        return listed[number - 1][1]
    return node


def aliased(node: exp.Expr, source: Relation, listed: list[tuple[str, exp.Expr]]) -> exp.Expr:
    """A name of the SELECT list as what it names, unless a column has this name."""
    if isinstance(node, exp.Column) and not node.table:
        if folded(node.name) in source.by_name:
            return node
        return next((of for name, of in listed if alike(name, node.name)), node)
    return node


def kinds_of(nodes: Sequence[exp.Expr]) -> frozenset[type[exp.Expr]]:
    """The kinds of nodes that keys are written as: only such a node can be one of them."""
    found = set()
    for node in nodes:
        while isinstance(node, exp.Paren):
            node = node.this
        found.add(type(node))
    return frozenset(found)


@dataclass(frozen=True)
class Members:
    """A group under the names of a relation: its keys, and aggregates of its members."""

    reader: Reader
    source: Relation
    keys: dict[str, Expression]
    group: Any  # a symbolic group
    known: Row
    kinds: frozenset[type[exp.Expr]]

    def special(self, node: exp.Expr) -> Cell | None:
        """A key, or an aggregate of the members."""
        if is_aggregate(node):
            return self._aggregate(node)
        if type(node) not in self.kinds:
            return None  # no key is written so
        try:
            tree = cell(node, Rows(self.reader, self.source, self.known)).tree
        except BadSQL:
            return None
        name = next((name for name, key in self.keys.items() if key == tree), None)
        return None if name is None else self.group.key[name]

    def column(self, node: exp.Column) -> Cell:
        """No column but a key is one of the group's."""
        Rows(self.reader, self.source, self.known).column(node)
        raise self.error(f"{node.name!r} is neither in GROUP BY nor in an aggregate", node)

    def scalar(self, node: exp.Subquery) -> Cell | None:
        """The value of a sub-query, the same for every group."""
        call = self.group.count().call
        return self.reader.scalars.in_a_row(node, self, call, self.source.public)

    def error(self, message: str, node: exp.Expr | None = None) -> BadSQL:
        """BadSQL at a node."""
        return self.reader.error(message, node)

    def _aggregate(self, node: exp.Expr) -> Cell:
        found = apart(node, self)
        kind, of = type(found.node), found.node.this
        if isinstance(of, exp.Distinct):
            raise self.error("in a sub-query, count what SELECT DISTINCT gives: GROUP BY of that", node)

        def rows(row: Row) -> Rows:
            return Rows(self.reader, self.source, row)

        def test(row: Row) -> Cell | None:
            tests = [condition(each, rows(row)) for each in found.only]
            if kind is exp.CountIf:
                tests.append(condition(of, rows(row)))
            return chained("and", tests) if tests else None

        def value(row: Row) -> Cell:
            only, made = test(row), cell(of, rows(row))
            made = made.cast("int64") if made.type is BOOL and kind in (exp.Sum, exp.Avg) else made
            return of_row(made if only is None else if_else(only, made, None), row)

        def present(row: Row) -> Cell:
            """1 for a member that counts."""
            whole = test(row) if kind is exp.CountIf or _is_star(of) else apply("not", value(row).is_null())
            one = constant(1)
            return of_row(one if whole is None else if_else(whole, one, constant(0)), row)

        made: Cell
        if kind in (exp.Count, exp.CountIf):
            plain = kind is exp.Count and _is_star(of) and not found.only
            made = self.group.count() if plain else self.group.sum(present, bounds=(0, 1))
            return made
        bounds = self._bounds(found.node, value)
        number = self.group.sum(present, bounds=(0, 1))
        match kind:
            case exp.Sum:  # of no values it is null
                made = self.group.sum(value, bounds=bounds)
                return apply("if_else", number > 0, made, constant(None, made.type))
            case exp.Avg:
                made = self.group.average(value, bounds=bounds)
            case exp.Min:
                made = self.group.min(value)
            case exp.Max:
                made = self.group.max(value)
            case _:
                raise self.error("a group in a sub-query has COUNT, SUM, AVG, MIN and MAX", node)
        return made

    def _bounds(self, node: exp.Expr, value: Any) -> Any:
        found = value(self.known)
        if not isinstance(node, exp.Sum | exp.Avg):
            return None
        if found.type not in (INT64, FLOAT64):
            raise self.error(f"this is {found.type.value}: SUM and AVG are of numbers", node)
        bounds = bounds_of(found.tree, self.source.table.facts.columns)
        if bounds is None and found.type is FLOAT64:
            raise self.error(
                "a sum of floats is exact within bounds: SUM(CLAMP(x, 0, 100)), or declare them, "
                "columns={…: fp.Column(bounds=…)}",
                node,
            )
        return bounds


def _is_star(node: exp.Expr | None) -> bool:
    return node is None or isinstance(node, exp.Star)


def grouped(reader: Reader, query: exp.Select, source: Relation) -> Relation:
    """One record for each group."""
    listed = items(reader, query, source)
    names = distinct_names([name for name, _ in listed])
    group = query.args.get("group")
    if group is None:
        raise reader.error(
            "a sub-query of one row for the whole table is an answer, and no table: put it where its value "
            "is needed, WHERE x > (SELECT AVG(x) FROM …); or GROUP BY something",
            query,
        )
    if any(isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets) for each in group.expressions):
        raise reader.error("GROUPING SETS are for the outermost SELECT", group)
    nodes = [aliased(each, source, listed) for each in group_nodes(reader, query, listed)]
    known, kinds = source.row(), kinds_of(nodes)
    scope = Rows(reader, source, known)
    trees = {f"key{i}": cell(each, scope).tree for i, each in enumerate(nodes)}

    def key(row: Row) -> dict[str, Cell]:
        of_row = Rows(reader, source, row)
        return {f"key{i}": cell(each, of_row) for i, each in enumerate(nodes)}

    def record(group: Any) -> dict[str, Cell]:
        members = Members(reader, source, trees, group, known, kinds)
        return {name: cell(node, members) for name, (_, node) in zip(names, listed, strict=True)}

    with placed(reader.text, query):
        groups = source.table.group_by(key)
        having = query.args.get("having")
        if having is not None:
            groups = groups.where(
                lambda group: condition(having.this, Members(reader, source, trees, group, known, kinds))
            )
        table = groups.select(record)
    made = Relation(table, tuple(Name("", name, name) for name in names))
    return _known(made, source, trees, dict(zip(names, (node for _, node in listed), strict=True)), scope)


def _known(
    made: Relation,
    source: Relation,
    keys: dict[str, Expression],
    listed: dict[str, exp.Expr],
    scope: Rows,
) -> Relation:
    """What stays public of the keys, and that they are unique."""
    shown: dict[str, Expression] = {}
    for name, node in listed.items():
        if is_aggregate(node) or not names_in(node):
            continue
        try:
            tree = cell(node, scope).tree
        except BadSQL:
            continue
        if tree in keys.values():
            shown[name] = tree
    whole = set(keys.values()) <= set(shown.values())
    return Relation(
        made.table,
        made.names,
        tuple(selected(source.domains, shown)),
        frozenset(shown) if whole else None,
    )
