"""Relations: what FROM, WHERE and sub-queries make, as tables of the client."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlglot import exp

from fpinq.client.protect import public
from fpinq.client.rows import Cell, Row, cells
from fpinq.client.table import Table
from fpinq.model.errors import BadExpression, BadPartition, BadQuery, BadSQL, BadTransformation
from fpinq.model.expressions import Column, Expression, Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.model.operators import evaluate, type_of
from fpinq.sql import functions as functions  # registers what functions translate to
from fpinq.sql.aggregates import has_aggregate
from fpinq.sql.expressions import casted, cell, chained, condition
from fpinq.sql.keys import domains_of
from fpinq.sql.parsing import Hints, Text, start_of
from fpinq.sql.scalars import Scalars
from fpinq.sql.scopes import Catalog, Name, Relation, Rows, alike, folded, relation_of, selected


@contextmanager
def placed(text: Text, node: exp.Expr | None) -> Iterator[None]:
    """Mistakes of the program are shown at a node of the statement."""
    try:
        yield
    except BadSQL:
        raise
    except (BadExpression, BadTransformation, BadPartition, BadQuery) as error:
        raise text.error(str(error), node) from None


@dataclass(frozen=True)
class Reader:
    """What a statement is read with: its text, its hints and the tables it may name."""

    text: Text
    hints: Hints
    catalog: Catalog
    scalars: Scalars

    def having(self, name: str, relation: Relation) -> "Reader":
        """The same with one table more."""
        return replace(self, catalog=self.catalog.having(name, relation))

    def error(self, message: str, node: exp.Expr | None = None) -> BadSQL:
        """BadSQL at a node."""
        return self.text.error(message, node)


def with_ctes(reader: Reader, query: exp.Query) -> Reader:
    """The reader with what WITH names; the query's scalar sub-queries are read."""
    for each in query.ctes:
        name = each.alias
        made = subquery(reader, each.this)
        reader = reader.having(name, made.called(name, _columns(reader, each.args["alias"], made)))
    reader.scalars.read(reader, query)
    return reader


def _columns(reader: Reader, alias: exp.Expr | None, made: Relation) -> list[str]:
    """The names of columns that an alias gives."""
    names = [] if alias is None else [each.name for each in alias.args.get("columns") or ()]
    if len(names) > len(made.names):
        raise reader.error(f"there are {len(made.names)} columns to name, and {len(names)} names", alias)
    return names


# ── sub-queries ──────────────────────────────────────────────────────────────────────


def subquery(reader: Reader, query: exp.Expr) -> Relation:
    """A query as a table: records, or groups as records."""
    from fpinq.sql.groups import grouped  # which is a sub-query itself

    if isinstance(query, exp.Subquery):
        return subquery(reader, query.this)
    if isinstance(query, exp.Values):
        return _values(reader, query)
    if not isinstance(query, exp.Query):
        raise reader.error("a sub-query is a SELECT", query)
    reader = with_ctes(reader, query)
    if isinstance(query, exp.SetOperation):
        return _refuse_order(reader, query, _combined(reader, query))
    assert isinstance(query, exp.Select)
    source = selected_from(reader, query)
    if query.args.get("group") or query.args.get("having") or any(map(has_aggregate, query.expressions)):
        made = grouped(reader, query, source)
    else:
        made = _projected(reader, query, source)
    if query.args.get("distinct"):
        made = _distinct(reader, query, made)
    return _refuse_order(reader, query, made)


def _refuse_order(reader: Reader, query: exp.Query, made: Relation) -> Relation:
    if query.args.get("limit") or query.args.get("offset"):
        raise reader.error(
            "LIMIT in a sub-query keeps records that depend on all others: use it on the outermost SELECT",
            query.args.get("limit") or query,
        )
    return made  # an order of records says nothing of a bag of them


def _distinct(reader: Reader, query: exp.Select, made: Relation) -> Relation:
    if query.args["distinct"].args.get("expressions") or query.args["distinct"].args.get("on"):
        raise reader.error("DISTINCT ON keeps records that depend on the order of others", query)
    unique = made.unique or frozenset(name.column for name in made.names)
    return replace(made, table=made.table.distinct(), unique=unique)


def items(reader: Reader, query: exp.Select, source: Relation) -> list[tuple[str, exp.Expr]]:
    """The SELECT list: names and expressions, with * written out."""
    found: list[tuple[str, exp.Expr]] = []
    for number, each in enumerate(query.expressions, 1):
        if isinstance(each, exp.Star):
            found += [_column_of(name, each) for name in source.names if not name.merged]
        elif isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
            of = [name for name in source.names if alike(name.table, each.table)]
            if not of:
                raise reader.error(f"no table is called {each.table!r} here", each)
            found += [_column_of(name, each) for name in of]
        elif isinstance(each, exp.Alias):
            found.append((each.alias, each.this))
        elif isinstance(each, exp.Column):
            found.append((each.name, each))
        else:
            found.append((unnamed(each, number), each))
    return found


def _column_of(name: Name, star: exp.Expr) -> tuple[str, exp.Expr]:
    """A column that * stands for, at its place."""
    column = exp.column(name.name, table=name.table, quoted=True)
    column.meta["start"] = start_of(star)
    return name.name, column


def unnamed(node: exp.Expr, number: int) -> str:
    """What a column is called that the statement does not name: its function, or its number."""
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.Paren):
        node = node.this
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector | exp.Case | exp.Cast):
        return (str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
    return f"column{number}"


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names as they are, told apart by a number where two are alike."""
    found: list[str] = []
    for name in names:
        number, new = 2, name
        while any(alike(new, other) for other in found):
            number, new = number + 1, f"{name}_{number}"
        found.append(new)
    return found


def _projected(reader: Reader, query: exp.Select, source: Relation) -> Relation:
    listed = items(reader, query, source)
    names = distinct_names([name for name, _ in listed])

    def record(row: Row) -> dict[str, Cell]:
        scope = Rows(reader, source, row)
        return {name: of_row(cell(node, scope), row) for name, (_, node) in zip(names, listed, strict=True)}

    return projected(reader, query, source, record)


def projected(reader: Reader, node: exp.Expr, source: Relation, record: Any) -> Relation:
    """A table with one record made of each, by a function that gives a dict of cells."""
    with placed(reader.text, node):
        table = source.table.select(record)
    trees = {name: made.tree for name, made in record(source.row()).items()}
    kept = {tree.name: name for name, tree in trees.items() if isinstance(tree, Column)}
    unique = source.unique
    if unique is not None:
        unique = frozenset(kept[column] for column in unique) if unique <= kept.keys() else None
    return Relation(
        table,
        tuple(Name("", name, name) for name in trees),
        tuple(selected(source.domains, trees)),
        unique,
    )


def of_row(found: Cell, row: Row) -> Cell:
    """A cell as one of the row, constants too: the same for every row."""
    return (
        found
        if found.call is not None
        else Cell(found.tree, found.type, next(iter(cells(row).values())).call)
    )


def cells_of(row: Any, by: Mapping[str, Expression]) -> dict[str, Cell]:
    """Expressions as cells of a row."""
    columns = cells(row)
    schema = Schema.of({name: cell.type for name, cell in columns.items()})
    call = next(iter(columns.values())).call
    return {name: Cell(tree, type_of(tree, schema), call) for name, tree in by.items()}


# ── set operations ───────────────────────────────────────────────────────────────────


def _combined(reader: Reader, query: exp.SetOperation) -> Relation:
    left, right = (subquery(reader, each) for each in (query.left, query.right))
    if len(left.names) != len(right.names):
        raise reader.error(
            f"both sides need the same columns: {len(left.names)} here and {len(right.names)} there", query
        )
    types = [common_type(reader, query, a, b) for a, b in zip(_types(left), _types(right), strict=True)]
    names = tuple(name.name for name in left.names)
    tables = [_as_columns(reader, query, each, names, types) for each in (left, right)]
    bag = not query.args.get("distinct")
    with placed(reader.text, query):
        match query:
            case exp.Union():
                table = tables[0].concat(tables[1]) if bag else tables[0].union(tables[1])
            case exp.Intersect():
                table = tables[0].intersect(tables[1], bag=bag)
            case _:
                table = tables[0].except_(tables[1], bag=bag)
    return relation_of(table, "")


def _types(relation: Relation) -> list[Type]:
    return [relation.table.facts.schema.type_of(name.column) for name in relation.names]


def common_type(reader: Reader, query: exp.Expr, a: Type, b: Type) -> Type:
    """The type of a column that both sides of a set operation have."""
    for pair in ((Type.INT64, Type.FLOAT64), (Type.DATE, Type.TIMESTAMP)):
        if {a, b} == set(pair):
            return pair[1]
    if a is not b:
        raise reader.error(f"columns of both sides must agree: {a.value} here, {b.value} there", query)
    return a


def _as_columns(
    reader: Reader, node: exp.Expr, relation: Relation, names: tuple[str, ...], types: Sequence[Type]
) -> Table:
    """The table under these names, as these types."""
    wanted = list(zip(names, relation.names, types, strict=True))
    with placed(reader.text, node):
        return relation.table.select(
            lambda row: {name: casted(row[of.column], type_) for name, of, type_ in wanted}
        )


def _values(reader: Reader, node: exp.Values) -> Relation:
    """VALUES (…), (…): a public table."""
    alias = node.args.get("alias")
    scope = Constants(reader)
    rows = [
        [constant(each, scope) for each in (row.expressions if isinstance(row, exp.Tuple) else [row])]
        for row in node.expressions
    ]
    if len({len(row) for row in rows}) != 1:
        raise reader.error("every row of VALUES needs the same columns", node)
    names = [f"col{i}" for i in range(len(rows[0]))]
    with placed(reader.text, node):
        types = {name: _type_of([row[i] for row in rows]) for i, name in enumerate(names)}
        plain = [{n: None if c is None else evaluate(casted(c, Type(types[n])).tree, {}) for n, c in
                  zip(names, row, strict=True)} for row in rows]  # fmt: skip
        made = relation_of(public(plain, types), "")
    return made if alias is None else made.called(alias.name, _columns(reader, alias, made))


@dataclass(frozen=True)
class Constants:
    """What is the same for every row: VALUES, and SELECT without FROM."""

    reader: Reader

    def column(self, node: exp.Column) -> Cell:
        """There is no row."""
        raise self.reader.error("VALUES are constants", node)

    def special(self, node: exp.Expr) -> Cell | None:
        """Nothing is special."""
        return None

    def scalar(self, node: exp.Subquery) -> Cell | None:
        """No sub-query is a constant."""
        raise self.reader.error("VALUES are constants", node)

    def error(self, message: str, node: exp.Expr | None = None) -> BadSQL:
        """BadSQL at a node."""
        return self.reader.error(message, node)


def constant(node: exp.Expr, scope: Constants) -> Cell | None:
    """The value of a node in which no row is; None is NULL."""
    return None if isinstance(node, exp.Null) else cell(node, scope)


def _type_of(column: Sequence[Cell | None]) -> str:
    types = {each.type for each in column if each is not None}
    if types == {Type.INT64, Type.FLOAT64}:
        return Type.FLOAT64.value
    if len(types) != 1:
        raise BadExpression("a column of VALUES has values of one type")
    return types.pop().value


# ── FROM and WHERE ───────────────────────────────────────────────────────────────────


def selected_from(reader: Reader, query: exp.Select) -> Relation:
    """What FROM and WHERE say, as one relation."""
    from fpinq.sql.joining import joined  # which reads sub-queries

    if query.args.get("from_") is None:
        raise reader.error("a SELECT needs FROM: a statistic is of a table", query)
    where = query.args.get("where")
    return joined(reader, query, conjuncts(where.this) if where is not None else [])


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, exp.And):
            waiting += [each.expression, each.this]
        elif isinstance(each, exp.Paren) and isinstance(each.this, exp.And):
            waiting.append(each.this)
        else:
            found.append(each)
    return found


def source_of(reader: Reader, node: exp.Expr) -> Relation:
    """One table of FROM."""
    if isinstance(node, exp.Table):
        if not isinstance(node.this, exp.Identifier):
            raise reader.error("FROM names a table, and no function", node)
        found = reader.catalog.find(reader.text, node)
        alias = node.args.get("alias")
        return found if alias is None else found.called(alias.name, _columns(reader, alias, found))
    if isinstance(node, exp.Subquery | exp.Values):
        found = subquery(reader, node)
        alias = node.args.get("alias")
        return found if alias is None else found.called(alias.name, _columns(reader, alias, found))
    raise reader.error("FROM takes tables and sub-queries", node)


def filtered(reader: Reader, relation: Relation, tests: Sequence[exp.Expr]) -> Relation:
    """The records of which all conditions are true; what they make public of columns is kept in mind."""
    if not tests:
        return relation

    def test(row: Row) -> Cell:
        scope = Rows(reader, relation, row)
        return of_row(chained("and", [condition(each, scope) for each in tests]), row)

    with placed(reader.text, tests[0]):
        table = relation.table.where(test)
    scope = Rows(reader, relation, relation.row())
    domains = [domain for each in tests for domain in domains_of(each, scope)]
    return replace(relation, table=table, domains=(*relation.domains, *domains))


def names_in(node: exp.Expr) -> list[exp.Column]:
    """The columns that are named in a node, outside of sub-queries."""
    found = node.walk(prune=lambda each: isinstance(each, exp.Query))
    return [each for each in found if isinstance(each, exp.Column)]


def belongs_to(relation: Relation, node: exp.Column) -> bool:
    """Whether a name may be a column of a relation."""
    found, table = relation.by_name.get(folded(node.name), ()), node.table
    return any(alike(each.table, table) for each in found) if table else bool(found)
