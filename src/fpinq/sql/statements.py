"""Statements: the outermost SELECT as what is asked of a table, by which keys, and what is made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import chain, compress, product
from typing import Any

from sqlglot import exp

from fpinq.client.protect import public
from fpinq.client.rows import BOOL, Call, Cell, Row
from fpinq.client.table import Table
from fpinq.model.errors import BadSQL
from fpinq.model.expressions import Apply, Column, Expression, Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.sql.aggregates import Asked, NoBounds, asked, has_aggregate, is_aggregate
from fpinq.sql.expressions import cell, condition
from fpinq.sql.finding import Finding, finding_of
from fpinq.sql.groups import aliased, group_node, kinds_of
from fpinq.sql.keys import keys_of
from fpinq.sql.parsing import Hints, Text
from fpinq.sql.public import computed
from fpinq.sql.relations import (
    Constants,
    Reader,
    constant,
    distinct_names,
    items,
    placed,
    selected_from,
    with_ctes,
)
from fpinq.sql.scalars import Scalar
from fpinq.sql.scopes import Relation, Rows, alike, folded

MAX_LEVELS = 32


@dataclass(frozen=True)
class Output:
    """A column of the SELECT list: its name, and how it is computed of keys and aggregates."""

    name: str
    tree: Expression
    type: Type
    # The aggregate that it is, if it is nothing else; and whether it is made of keys alone.
    aggregate: str | None
    of_keys: bool


@dataclass(frozen=True)
class Sorting:
    """By what rows are sorted."""

    tree: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Plan:
    """What a statement asks: aggregates of a table by public keys, and the rows that are made of them."""

    text: Text
    query: exp.Select
    source: Relation
    by: Mapping[str, Expression]
    types: Mapping[str, Type]
    keys: list[tuple[Any, ...]]
    levels: tuple[tuple[int, ...], ...]
    aggregates: Mapping[str, Asked]
    weights: Mapping[str, Fraction]
    outputs: tuple[Output, ...]
    having: Expression | None = None
    sortings: tuple[Sorting, ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    # Metadata that is missing: each would be raised if it were asked.
    missing: tuple[BadSQL, ...] = field(default=())
    # How its keys are found, where nobody listed them: then `keys` are none.
    found: Finding | None = None

    @property
    def table(self) -> Table:
        """What the aggregates are asked of."""
        return self.source.table

    @property
    def one_row(self) -> bool:
        """Whether there is a single row, whatever is asked."""
        return not self.by and self.having is None and self.limit is None and not self.offset

    @property
    def weight(self) -> Fraction:
        """Its part of ε, beside other SELECTs of the statement."""
        return sum(self.weights.values(), Fraction(0))


@dataclass(frozen=True)
class Released:
    """What was released under the names of a statement: keys, aggregates, names of the SELECT list."""

    reader: Reader
    source: Relation
    known: Row
    keys: Mapping[str, Expression]
    aggregates: "Aggregates"
    row: Row
    kinds: frozenset[type[exp.Expr]]
    listed: Sequence[tuple[str, exp.Expr]] = ()

    def special(self, node: exp.Expr) -> Cell | None:
        """An aggregate, or a key."""
        if is_aggregate(node):
            name, type_ = self.aggregates.named(node)
            return Cell(Column(name), type_, self.row["any"].call)
        if isinstance(node, exp.Grouping):
            return self._grouping(node)
        if type(node) not in self.kinds or has_aggregate(node):
            return None  # no key is written so
        try:
            tree = cell(node, Rows(self.reader, self.source, self.known)).tree
        except BadSQL:
            return None
        found = next((key for key, of in self.keys.items() if of == tree), None)
        return None if found is None else self.row[found]

    def column(self, node: exp.Column) -> Cell:
        """A name of the SELECT list; a column of the table is private."""
        if not node.table and folded(node.name) not in self.source.by_name:
            for name, of in self.listed:
                if alike(name, node.name) and of is not node:
                    return cell(of, self)
        Rows(self.reader, self.source, self.known).column(node)
        raise self.error(
            f"the column {node.name!r} is private: put it into an aggregate, AVG({node.name}), or into "
            "GROUP BY with public keys",
            node,
        )

    def scalar(self, node: exp.Subquery) -> Cell | None:
        """The value of a sub-query: an answer beside the others."""
        found = self.reader.scalars.of(node, self)
        if not isinstance(found, Scalar):
            return found
        return Cell(Column(found.name), found.type, self.row["any"].call)

    def error(self, message: str, node: exp.Expr | None = None) -> BadSQL:
        """BadSQL at a node."""
        return self.reader.error(message, node)

    def _grouping(self, node: exp.Grouping) -> Cell:
        if len(node.expressions) != 1:
            raise self.error("GROUPING takes one key", node)
        key = self.special(node.expressions[0])
        if key is None:
            raise self.error("GROUPING takes a key of GROUP BY", node)
        of = next(name for name in self.keys if self.row[name].tree == key.tree)
        return self.row[f"grouping {of}"]


class Aggregates:
    """The aggregates of a statement: each once, in the order in which they come."""

    def __init__(self, reader: Reader, source: Relation, known: Row) -> None:
        self._reader, self._source, self._known = reader, source, known
        self._names: dict[exp.Expr, tuple[str, Type]] = {}
        self.found: dict[str, Asked] = {}
        self.weights: dict[str, Fraction] = {}
        self.missing: list[BadSQL] = []

    def named(self, node: exp.Expr) -> tuple[str, Type]:
        """The name of an aggregate and the type of its value."""
        if node not in self._names:
            self._names[node] = self._add(node)
        return self._names[node]

    def _add(self, node: exp.Expr) -> tuple[str, Type]:
        name = f"aggregate {len(self._names) + 1}"
        scope = Rows(self._reader, self._source, self._known)
        try:
            with placed(self._reader.text, node):
                found = asked(node, scope, self._source.table.facts.columns)
        except NoBounds as without:
            self.missing.append(self._reader.error(
                f"nothing says between what {without.what} lies, so one record may count for anything. Write "
                "CLAMP(…, lower, upper) around it, from what you know without the data; or declare it once, "
                "protect(columns={…: fp.Column(bounds=…)})", without.node))  # fmt: skip
            return name, Type.FLOAT64
        same = next((other for other, one in self.found.items() if _alike(one, found)), None)
        if same is None:
            self.found[name] = found
            self.weights[name] = Fraction(1)
        return same or name, found.type


def _alike(a: Asked, b: Asked) -> bool:
    """Whether two aggregates are the same question: they differ in their spelling only."""
    return type(a.query) is type(b.query) and a.part == b.part and _trees(a.query) == _trees(b.query)


def _trees(query: Any) -> list[Any]:
    return [value.tree if isinstance(value, Cell) else repr(value) for value in vars(query).values()]


# ── planning ─────────────────────────────────────────────────────────────────────────


def select(reader: Reader, query: exp.Select) -> Plan:
    """What an outermost SELECT asks, of which table: all that is public, and nothing is charged."""
    reader = with_ctes(reader, query)
    return _selected(reader, query, _source(reader, query))


def scalar(reader: Reader, node: exp.Subquery) -> Plan | Cell | None:
    """What a scalar sub-query asks; of public tables, its value, and None is NULL."""
    query: exp.Expr = node
    while isinstance(query, exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select):
        raise reader.error("a sub-query that is a value is one SELECT", node)
    if len(query.expressions) != 1:
        raise reader.error("a sub-query that is a value has one column", node)
    reader = with_ctes(reader, query)
    if query.args.get("from_") is None and query.find(exp.Subquery) is None:
        return constant_of(reader, query)
    source = _source(reader, query)
    if source.public and query.args.get("from_") is not None:
        return computed(reader, query, source)
    plan = _selected(reader, query, source)
    if not plan.one_row and plan.by and plan.limit != 1:
        raise reader.error(
            "a sub-query that is a value has one row, and this has one for each key: ORDER BY … LIMIT 1", node
        )
    return plan


def constant_of(reader: Reader, query: exp.Select) -> Cell | None:
    """The value of SELECT 3."""
    if any(value for name, value in query.args.items() if name not in ("expressions", "with_")):
        raise reader.error("a SELECT needs FROM: a statistic is of a table", query)
    of = query.expressions[0]
    return constant(of.this if isinstance(of, exp.Alias) else of, Constants(reader))


def _source(reader: Reader, query: exp.Select) -> Relation:
    """FROM and WHERE; without a FROM, a row of nothing: what is selected are sub-queries."""
    if query.args.get("from_") is not None:
        return selected_from(reader, query)
    if any(query.args.get(each) for each in ("where", "group", "joins")) or not any(
        each.find(exp.Subquery) for each in query.expressions
    ):
        raise reader.error("a SELECT needs FROM: a statistic is of a table", query)
    return Relation(public([{"row": 1}]), ())


def _selected(reader: Reader, query: exp.Select, source: Relation) -> Plan:
    listed = items(reader, query, source)
    known = source.row()
    keys, levels = _grouping(reader, query, source, listed, known)
    aggregates = Aggregates(reader, source, known)
    row = Row(Schema.of(_schema(keys)), Call())
    trees = {name: key.tree for name, key in keys.items()}
    kinds = kinds_of(group_expressions(reader, query, listed, source))
    scope = Released(reader, source, known, trees, aggregates, row, kinds, listed)
    outputs = _outputs(listed, scope, aggregates)
    having = query.args.get("having")
    test = None if having is None else condition(having.this, scope).tree
    sortings = _sortings(query, listed, scope)
    _weigh(reader.hints, listed, outputs, aggregates)
    with placed(reader.text, query.args.get("group")):
        rows, without = keys_of(list(trees.values()), source.domains, source.table.facts.columns)
    found = _finding(reader, query, source, listed, keys, levels, aggregates) if without else None
    missing = [
        *(_no_keys(reader, query, list(trees)[i], listed, scope) for i in without if found is None),
        *aggregates.missing,
    ]
    if not aggregates.found and not aggregates.missing and query.args.get("from_") is not None:
        raise reader.error(
            "this SELECT has no aggregate: records are private, statistics of them are not. Write COUNT(*), "
            "AVG(x) and the like",
            query,
        )
    return Plan(
        reader.text,
        query,
        source,
        trees,
        {name: key.type for name, key in keys.items()},
        rows,
        levels,
        aggregates.found,
        aggregates.weights,
        outputs,
        test,
        sortings,
        whole_number(reader, query.args.get("limit")),
        whole_number(reader, query.args.get("offset")) or 0,
        bool(query.args.get("distinct")),
        tuple(missing),
        found,
    )


def _finding(
    reader: Reader,
    query: exp.Select,
    source: Relation,
    listed: Sequence[tuple[str, exp.Expr]],
    keys: Mapping[str, Cell],
    levels: Sequence[tuple[int, ...]],
    aggregates: "Aggregates",
) -> Finding | None:
    """How keys are found that are not public, if that is said."""
    nodes = group_expressions(reader, query, listed, source)
    names = [[node.name for node in [each] if isinstance(node, exp.Column)]
             + [name for name, of in listed if of == each] for each in nodes]  # fmt: skip
    typed = {name: (key.tree, key.type) for name, key in keys.items()}
    columns = source.table.facts.columns
    found = finding_of(
        reader, nodes, names, typed, source.domains, columns, aggregates.found, aggregates.weights
    )
    if found is not None and len(levels) > 1:
        raise reader.error("levels of grouping sets add up over public keys: these are to be found", nodes[0])
    return found


def _schema(keys: Mapping[str, Cell]) -> dict[str, Type]:
    types = {name: key.type for name, key in keys.items()}
    return types | {f"grouping {name}": Type.INT64 for name in keys} | {"any": BOOL}


def _outputs(
    listed: Sequence[tuple[str, exp.Expr]], scope: Released, aggregates: Aggregates
) -> tuple[Output, ...]:
    names = distinct_names([name for name, _ in listed])
    found = []
    for name, (_, node) in zip(names, listed, strict=True):
        while isinstance(node, exp.Paren):
            node = node.this
        made = cell(node, scope)
        alone = aggregates.named(node)[0] if is_aggregate(node) else None
        found.append(
            Output(name, made.tree, made.type, alone, not (has_aggregate(node) or _answers(made.tree)))
        )
    return tuple(found)


def _answers(tree: Expression) -> bool:
    """Whether an expression has a sub-query's answer in it."""
    if isinstance(tree, Apply):
        return any(map(_answers, tree.arguments))
    return isinstance(tree, Column) and tree.name.startswith("scalar ")


def _weigh(
    hints: Hints,
    listed: Sequence[tuple[str, exp.Expr]],
    outputs: Sequence[Output],
    aggregates: Aggregates,
) -> None:
    """The weights that hints give to columns of the SELECT list, as those of their aggregates."""
    for name, weight in hints.weights.items():
        places = [i for i, output in enumerate(outputs) if alike(output.name, name)]
        if not places:  # a column of another SELECT
            continue
        for node in listed[places[0]][1].walk():
            if is_aggregate(node) and not is_aggregate(node.parent or node):
                aggregate, _ = aggregates.named(node)
                if aggregate in aggregates.weights:
                    aggregates.weights[aggregate] = weight
        alone = outputs[places[0]].aggregate
        if alone in aggregates.weights:
            aggregates.weights[alone] = weight


def _no_keys(
    reader: Reader, query: exp.Select, name: str, listed: Sequence[tuple[str, exp.Expr]], scope: Released
) -> BadSQL:
    nodes = group_expressions(reader, query, listed, scope.source)
    node = nodes[list(scope.keys).index(name)]
    column = node.name if isinstance(node, exp.Column) else "it"
    return reader.error(
        f"which groups there are must not depend on the data, and no public keys of {column} are known. "
        f"Write WHERE {column} IN (…), or join with a public table; or declare them once, "
        "protect(columns={…: fp.Column(keys=[…])}). Or find them: at a δ, which is said beside ε, or within "
        f"a domain, /*+ domain({column if column != 'it' else 'key'}, …) */",
        node,
    )


def _sortings(
    query: exp.Query, listed: Sequence[tuple[str, exp.Expr]], scope: Released
) -> tuple[Sorting, ...]:
    order = query.args.get("order")
    found = []
    for each in order.expressions if order is not None else ():
        node = group_node(scope.reader, each.this, list(listed))
        if isinstance(node, exp.Column) and not node.table:  # a name of the SELECT list, before any column
            node = next((of for name, of in listed if alike(name, node.name)), node)
        found.append(
            Sorting(cell(node, scope).tree, bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
        )
    return tuple(found)


def whole_number(reader: Reader, node: exp.Expr | None) -> int | None:
    if node is None:
        return None
    written = node.expression
    if not isinstance(written, exp.Literal) or written.is_string or not written.this.isdecimal():
        raise reader.error("LIMIT and OFFSET take a whole number", node)
    return int(written.this)


# ── GROUP BY ─────────────────────────────────────────────────────────────────────────


def group_expressions(
    reader: Reader, query: exp.Select, listed: Sequence[tuple[str, exp.Expr]], source: Relation
) -> list[exp.Expr]:
    """Every expression that GROUP BY names, once."""
    group = query.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        return [node for _, node in listed if not has_aggregate(node)]
    found: list[exp.Expr] = []
    for node in (each for level in _sets(reader, group) for each in level):
        node = aliased(group_node(reader, node, list(listed)), source, list(listed))
        if node not in found:
            found.append(node)
    return found


def _sets(reader: Reader, group: exp.Group) -> list[list[exp.Expr]]:
    """The grouping sets: each with each of several."""
    sets: list[list[exp.Expr]] = [[]]
    for each in group.expressions:
        sets = [[*some, *more] for some in sets for more in _sets_of(reader, each)]
        if len(sets) > MAX_LEVELS:
            raise reader.error(f"at most {MAX_LEVELS} grouping sets at once", group)
    return sets


def _sets_of(reader: Reader, node: exp.Expr) -> list[list[exp.Expr]]:
    if isinstance(node, exp.Rollup):
        parts = [_listed(each) for each in node.expressions]
        return [list(chain.from_iterable(parts[:n])) for n in range(len(parts), -1, -1)]
    if isinstance(node, exp.Cube):
        if 2 ** len(node.expressions) > MAX_LEVELS:
            raise reader.error(f"at most {MAX_LEVELS} grouping sets at once", node)
        parts = [_listed(each) for each in node.expressions]
        masks = product((1, 0), repeat=len(parts))
        return [list(chain.from_iterable(compress(parts, mask))) for mask in masks]
    if isinstance(node, exp.GroupingSets):
        return [some for each in node.expressions for some in _sets_in(reader, each)]
    return [[node]]


def _sets_in(reader: Reader, node: exp.Expr) -> list[list[exp.Expr]]:
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
        return _sets_of(reader, node)
    return [_listed(node)]


def _listed(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this] if isinstance(node, exp.Paren) else [node]


def _grouping(
    reader: Reader, query: exp.Select, source: Relation, listed: Sequence[tuple[str, exp.Expr]], known: Row
) -> tuple[dict[str, Cell], tuple[tuple[int, ...], ...]]:
    """The keys by name, and of which of them each level is."""
    nodes = group_expressions(reader, query, listed, source)
    scope = Rows(reader, source, known)
    for node in nodes:
        if has_aggregate(node):
            raise reader.error("a key of GROUP BY is of a row, and this is an aggregate", node)
    keys = {f"key {i}": cell(node, scope) for i, node in enumerate(nodes)}
    group = query.args.get("group")
    if group is None or group.args.get("all"):
        return keys, (tuple(range(len(nodes))),)
    levels = []
    for level in _sets(reader, group):
        named = [aliased(group_node(reader, each, list(listed)), source, list(listed)) for each in level]
        levels.append(tuple(sorted({nodes.index(each) for each in named})))
    if len(set(levels)) < len(levels):
        raise reader.error("a grouping set is there twice", group)
    return keys, tuple(levels)
