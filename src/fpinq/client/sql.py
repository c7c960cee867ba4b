"""The door to SQL: a statement and the tables that it may name. What it means, `fpinq.sql` says.

This is the one place where the client looks outward: a table has a method that is spelled in a
layer above it (docs/decisions/0170).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fpinq.client.columns import needed
from fpinq.client.edge import edge, edges
from fpinq.client.shown import html_table
from fpinq.model.errors import ProgramError

if TYPE_CHECKING:
    from fpinq.client.answers import Answers
    from fpinq.client.table import Table


@edge
def sql(text: str, /, epsilon: object = None, delta: object = None, **tables: Any) -> "Answers":
    """The answers of a SELECT, by the names of its columns; of an EXPLAIN, what it would ask, for free.

    The tables that it may name are given by name: fp.sql("SELECT COUNT(*) FROM people",
    epsilon=0.1, people=people). With a delta, keys of GROUP BY that are not public are found.
    """
    if not tables:
        raise ProgramError(
            'say which tables: fp.sql("SELECT COUNT(*) FROM people", epsilon=…, people=people)'
        )
    return asked(text, epsilon, tables, delta=delta)


def asked(
    text: str, epsilon: object, tables: Mapping[str, Any], own: "Table | None" = None, delta: object = None
) -> "Answers":
    """The answers of a statement; own is the table that any other name stands for."""
    needed("sqlglot", "SQL")
    from fpinq.sql.front import asked

    return asked(text, epsilon, tables, own, delta)  # type: ignore[return-value]  # or an explanation


@edges
class Tables(dict[str, "Table"]):
    """Tables about the same people, by name."""

    def sql(self, text: str, /, epsilon: object = None, delta: object = None) -> "Answers":
        """The answers of a statement about these tables."""
        return asked(text, epsilon, self, delta=delta)

    def _repr_html_(self) -> str:
        lines = [
            (
                name,
                ", ".join(f"{column} {type_}" for column, type_ in table.schema.items()),
                str(table.scaling_factor),
            )
            for name, table in self.items()
        ]
        return html_table(["table", "columns", "scaling factor"], lines)
