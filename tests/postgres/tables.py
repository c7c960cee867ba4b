"""Tables of a database, made by its owner."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import psycopg
from psycopg import sql

from fpinq.model.expressions import Schema, Type

TYPES = {
    Type.BOOL: "boolean",
    Type.INT64: "bigint",
    Type.FLOAT64: "double precision",
    Type.STRING: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}
READER = "reader"

_numbers = count()


class Owner:
    """Who makes tables, and lets the engine's role read them and nothing else."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)

    @property
    def readers(self) -> str:
        """The address as the engine's role sees it."""
        return self.url.replace("owner@", f"{READER}@")

    def run(self, statement: str, *parameters: Any) -> Any:
        """Run a statement."""
        return self.connection.execute(statement, parameters or None)  # type: ignore[call-overload]

    def table(
        self, schema: Schema, given: list[tuple[Any, ...]], types: Mapping[str, str] | None = None
    ) -> str:
        """A new table with these rows; its name."""
        name = f"t{next(_numbers)}"
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL((types or {}).get(column, TYPES[type_])))
            for column, type_ in schema.columns
        )
        self.connection.execute(sql.SQL("CREATE TABLE public.{} ({})").format(sql.Identifier(name), columns))
        with self.connection.cursor().copy(f"COPY public.{name} FROM STDIN") as copy:  # type: ignore[arg-type]
            for row in given:
                copy.write_row(row)
        self.run(f"GRANT SELECT ON public.{name} TO {READER}")
        return name
