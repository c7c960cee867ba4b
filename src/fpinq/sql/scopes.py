"""Scopes: which column a name in a statement is."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

from sqlglot import exp

from fpinq.client.rows import Call, Cell, Row, cells
from fpinq.client.table import Table
from fpinq.model.errors import BadSQL, suggest
from fpinq.model.expressions import Apply, Column, Expression, Literal
from fpinq.model.frozen import dataclass
from fpinq.model.maps import Each
from fpinq.sql.parsing import Text
from fpinq.sql.scalars import Scalars


class Name(NamedTuple):
    """A column as statements call it: of a table (by its alias), and what it is called in the record."""

    table: str
    name: str
    column: str
    # USING made it one with another's: it is meant only under its table's name, v.id, and may be null.
    merged: bool = False


@dataclass(frozen=True)
class Domain:
    """Public values of expressions: those of one public table's rows, or listed in the statement."""

    of: tuple[Expression, ...]
    # Rows as they were written or joined, and the places of `of` in them: taken out when keys are asked for,
    # as most rows of a public table never are.
    table: Sequence[tuple[Any, ...]]
    places: tuple[int, ...]
    nullable: bool = False

    def rows(self, some: Sequence[int]) -> list[tuple[Any, ...]]:
        """The values of some of the expressions, by their numbers, each combination once."""
        places = [self.places[i] for i in some]
        found = dict.fromkeys(tuple([row[place] for place in places]) for row in self.table)
        return list(found | {(None,) * len(places): None} if self.nullable else found)

    def kept(self, kept: Mapping[Expression, Expression]) -> "Domain | None":
        """The same of expressions that are kept, under their new names."""
        found = [(i, made) for i, tree in enumerate(self.of) if (made := _renamed(tree, kept)) is not None]
        if not found:
            return None
        places = tuple(self.places[i] for i, _ in found)
        return replace(self, of=tuple(made for _, made in found), places=places)


def selected(domains: Sequence[Domain], record: Mapping[str, Expression]) -> list[Domain]:
    """What is public after a SELECT: of what it keeps."""
    kept = {tree: Column(name) for name, tree in reversed(list(record.items()))} if domains else {}
    found = [domain.kept(kept) for domain in domains]
    return [domain for domain in found if domain is not None]


def listed(of: Expression, values: Sequence[Any]) -> Domain:
    """The public values of one expression."""
    return Domain((of,), Each(len(values), lambda number: (values[number],)), (0,))


def _renamed(tree: Expression, kept: Mapping[Expression, Expression]) -> Expression | None:
    """An expression over the columns that are kept, under their new names; None if one is missing."""
    if tree in kept:
        return kept[tree]
    if not isinstance(tree, Apply):
        return tree if isinstance(tree, Literal) else None
    of = [_renamed(each, kept) for each in tree.arguments]
    arguments = tuple(each for each in of if each is not None)
    return Apply(tree.operator, arguments) if len(arguments) == len(of) else None


@dataclass(frozen=True)
class Relation:
    """A table of the client, what its columns are called, and what the statement makes public of them."""

    table: Table
    names: tuple[Name, ...]
    domains: tuple[Domain, ...] = ()
    # Columns that no two of its records agree in.
    unique: frozenset[str] | None = None

    @property
    def public(self) -> bool:
        """Whether it is made of public tables alone."""
        return not self.table.facts.roots

    def tables(self) -> tuple[str, ...]:
        """The names of the tables that columns are of."""
        return tuple(dict.fromkeys(name.table for name in self.names))

    def called(self, alias: str, columns: Sequence[str] = ()) -> "Relation":
        """The same under another name, perhaps with other names of columns."""
        renamed = [*columns, *(name.name for name in self.names[len(columns) :])]
        names = [Name(alias, new, each.column) for each, new in zip(self.names, renamed, strict=True)]
        return replace(self, names=tuple(names))

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[Name]]:
        """Its columns by name, as names are compared."""
        found: dict[str, list[Name]] = {}
        for each in self.names:
            found.setdefault(folded(each.name), []).append(each)
        return found

    def row(self) -> Row:
        """A symbolic row of it."""
        return Row(self.table.facts.schema, Call())


def relation_of(table: Table, alias: str) -> Relation:
    """A table of the client under a name."""
    return Relation(table, tuple(Name(alias, column, column) for column in table.facts.schema.names()))


@lru_cache(4096)
def folded(name: str) -> str:
    """A name as names are compared."""
    return name.lower() if name.isascii() else name


def alike(a: str, b: str) -> bool:
    """Whether two names are one: DuckDB takes no notice of the case of ASCII letters, quoted or not."""
    return folded(a) == folded(b)


def find(text: Text, relation: Relation, node: exp.Column) -> Name:
    """The column that a name is; BadSQL if there is none, or more than one."""
    name, table = node.name, node.table
    found = [
        each
        for each in relation.by_name.get(folded(name), ())
        if (alike(each.table, table) if table else not each.merged)
    ]
    if len({each.column for each in found}) > 1:
        tables = ", ".join(f"{each.table}.{each.name}" for each in found)
        raise text.error(f"{name!r} is ambiguous: write {' or '.join(tables.split(', '))}", node)
    if found:
        return found[0]
    if table and not any(alike(each, table) for each in relation.tables()):
        known = relation.tables()
        raise text.error(f"no table is called {table!r} here{suggest(table, known)}", node)
    known = tuple(each.name for each in relation.names)
    raise text.error(
        f"unknown column {name!r}{suggest(name, known)}; the columns are: {', '.join(known)}", node
    )


class Reading(Protocol):
    """What a scope needs of the statement: its text, and its scalar sub-queries."""

    @property
    def text(self) -> Text:
        """As it was written."""

    @property
    def scalars(self) -> Scalars:
        """Those that were read."""


@dataclass(frozen=True)
class Rows:
    """A symbolic row under the names of a relation: what an expression of a row is translated over."""

    reader: Reading
    relation: Relation
    row: Any  # a symbolic row, of the relation's table

    def column(self, node: exp.Column) -> Cell:
        """The cell of a column."""
        cell = self.row[find(self.reader.text, self.relation, node).column]
        assert isinstance(cell, Cell)
        return cell

    def special(self, node: exp.Expr) -> Cell | None:
        """What a node is here before it is looked at: nothing, of a row."""
        return None

    def scalar(self, node: exp.Subquery) -> Cell | None:
        """The value of a sub-query."""
        call = next(iter(cells(self.row).values())).call
        return self.reader.scalars.in_a_row(node, self, call, self.relation.public)

    def error(self, message: str, node: exp.Expr | None = None) -> BadSQL:
        """BadSQL at a node."""
        return self.reader.text.error(message, node)


@dataclass(frozen=True)
class Catalog:
    """The tables that a statement may name, and those that WITH has named."""

    tables: Mapping[str, Relation] = field(default_factory=dict)
    own: Relation | None = None  # what any other name stands for

    def find(self, text: Text, node: exp.Table) -> Relation:
        """The table of this name."""
        name = f"{node.db}.{node.name}" if node.db else node.name
        for known, relation in self.tables.items():
            if alike(known, name):
                return relation.called(node.name)
        if self.own is not None and not node.db:
            return self.own.called(node.name)
        listed = ", ".join(self.tables) or "none"
        raise text.error(f"unknown table {name!r}{suggest(name, self.tables)}; there are: {listed}", node)

    def having(self, name: str, relation: Relation) -> "Catalog":
        """One table more, which hides another of its name."""
        others = {known: table for known, table in self.tables.items() if not alike(known, name)}
        return Catalog({**others, name: relation}, self.own)
