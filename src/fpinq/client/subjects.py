"""Subjects: what a query is asked of, as far as it is public."""

from collections.abc import Mapping
from dataclasses import field

from fpinq.client.bounds import Known
from fpinq.client.rows import Cell
from fpinq.client.tracing import row, trace
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Column, Schema
from fpinq.model.frozen import dataclass

NOTHING = Known()


@dataclass(frozen=True)
class Subject:
    """What a query is asked of, as far as it is public: the columns and what is known of them."""

    schema: Schema
    columns: Mapping[str, Known] = field(default_factory=dict)

    def cell(self, f: object, what: str) -> Cell:
        """The expression f gives; without f, the table's only column."""
        if f is None:
            if len(self.schema.columns) != 1:
                raise BadQuery(f"{what} needs a function that says of what, such as lambda x: x.age")
            f = self.schema.names()[0]
        if isinstance(f, Cell):
            return f  # traced already
        return trace(f, what, row(self.schema)).cell()

    def bounds(self, cell: Cell, bounds: object) -> object:
        """The bounds given, or those that are known of a plain column."""
        return self.known(cell).bounds if bounds is None else bounds

    def known(self, cell: Cell) -> Known:
        """What is known of an expression: nothing, unless it is a plain column."""
        tree = cell.tree
        return self.columns.get(tree.name, NOTHING) if isinstance(tree, Column) else NOTHING
