"""Rows as tables of a database, so that suites that give rows to an engine can give them to PostgreSQL."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import psycopg
from psycopg import sql

from fpinq.engines import frames, rows
from fpinq.engines.postgres import Postgres
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


class OnTables:
    """PostgreSQL as an engine that is given rows: they become tables, and it is given their names."""

    def __init__(self, engine: Postgres, owner: Owner) -> None:
        self._engine, self._owner = engine, owner

    def add_root(
        self, name: str, source: Any, schema: Mapping[str, Type] | None = None, **options: Any
    ) -> Schema:
        table, stated = self._table(source, schema)
        return self._engine.add_root(name, table, stated, **options)

    def add_persons(
        self,
        name: str,
        tables: Mapping[str, Any],
        unit: str,
        schemas: Mapping[str, Mapping[str, Type]] | None = None,
        **options: Any,
    ) -> Any:
        made = {table: self._table(source, (schemas or {}).get(table)) for table, source in tables.items()}
        places, stated = ({table: one[i] for table, one in made.items()} for i in (0, 1))
        return self._engine.add_persons(name, places, unit, stated, **options)

    def _table(self, source: Any, schema: Mapping[str, Type] | None) -> tuple[Any, Any]:
        if not (rows.is_rows(source) or frames.is_frame(source)):
            return source, schema
        found = rows.of_rows(source, schema) if rows.is_rows(source) else frames.of_frame(source, schema)
        stated = {name: type_ for name, (type_, _) in found.items()}
        values = [values for _, values in found.values()]
        if rows.is_rows(source):  # NaN and −0 as they are
            floats = [n for n, t in stated.items() if t is Type.FLOAT64]
            for name in floats:
                place = list(stated).index(name)
                values[place] = [
                    row.get(name) if type(row.get(name)) is float else value
                    for row, value in zip(source, values[place], strict=True)
                ]
        return self._owner.table(Schema.of(stated), list(zip(*values, strict=True))), stated

    def measure(self, *arguments: Any, **options: Any) -> Any:
        return self._engine.measure(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
