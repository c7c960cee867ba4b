"""Relations: what a plan is lowered to, and the stored tables at its leaves."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from fpinq.engines.sql.dialect import Dialect
from fpinq.engines.sql.expressions import Code, Layers
from fpinq.engines.sql.scans import Scan
from fpinq.model.expressions import Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.model.plans import Persons

UNIT = "u"


@dataclass(frozen=True)
class Stored:
    """A stored relation: its name, its schema, the float columns that may hold NaN or −0.

    `row` is the SQL of a row's number, None if rows have none.
    """

    relation: str | Scan
    schema: Schema
    raw: frozenset[int] = frozenset()
    row: str | None = None


@dataclass(frozen=True)
class StoredPersons:
    """The stored relations about the same persons."""

    shape: Persons
    tables: Mapping[str, Stored]


@dataclass(frozen=True)
class Lowered:
    """A plan as something to select FROM, with what is known about its columns.

    *Closed*, the columns are c0, c1, … of the source. *Open*, they are codes over its layers, of
    the rows that pass the tests: what steps that look at one row at a time have said so far.
    """

    source: str | Scan
    schema: Schema
    columns: tuple[Code, ...]
    per_person: bool = False
    # A stored table, row by row: cheap to read twice.
    streams: bool = False
    layers: Layers | None = None
    tests: tuple[Code, ...] = ()

    @property
    def names(self) -> list[str]:
        """All columns of a closed one, also the person."""
        return [column.sql for column in self.columns] + [UNIT] * self.per_person

    @property
    def listed(self) -> str:
        """All columns of a closed one, as SELECT lists them."""
        return ", ".join(self.names)

    @property
    def outputs(self) -> list[tuple[str, Code]]:
        """All columns, under the names that they have once it is closed."""
        named = [(f"c{i}", column) for i, column in enumerate(self.columns)]
        return named + [(UNIT, Code(UNIT, Type.STRING))] * self.per_person


def columns_of(schema: Schema, raw: Container[int] = ()) -> tuple[Code, ...]:
    """The columns c0, c1, … of a schema; those with these numbers are raw."""
    return tuple([Code(f"c{i}", type_, atom=True, raw=i in raw) for i, type_ in enumerate(schema.types())])


def as_columns(codes: Iterable[Code]) -> tuple[Code, ...]:
    """The columns c0, c1, … that hold these values: what is known about them stays known."""
    return tuple(replace(code, sql=f"c{i}", level=0, atom=True, raw=False) for i, code in enumerate(codes))


def table_of(source: Stored) -> Lowered:
    """A stored table."""
    return Lowered(source.relation, source.schema, columns_of(source.schema, source.raw))


def rows_of_persons(source: Stored, unit: int, dialect: Dialect, *, numbered: bool = False) -> Lowered:
    """A stored table with the person as u, and the row's number as i if asked for."""
    table = table_of(source)
    listed = [f"{_canonical_sql(column, dialect)} AS {column.sql}" for column in table.columns]
    listed.append(f"{_canonical_sql(table.columns[unit], dialect)} AS {UNIT}")
    listed += [f"{source.row} AS i"] if numbered else []
    everybody = f"(SELECT {', '.join(listed)} FROM {table.source} AS d)"
    somebody = f"(SELECT * FROM {everybody} AS d WHERE {UNIT} IS NOT NULL)"
    return Lowered(somebody, source.schema, as_columns(canonical(table, dialect).columns), True)


def canonical(table: Lowered, dialect: Dialect) -> Lowered:
    """The table without raw floats."""
    if not any(column.raw for column in table.columns):
        return table
    columns = tuple(_canonical(column, dialect) if column.raw else column for column in table.columns)
    layers = table.layers or Layers(frozenset(table.names))
    return replace(table, columns=columns, layers=layers)


def _canonical(column: Code, dialect: Dialect) -> Code:
    sql = f"({dialect.canonical(column.sql)})"
    return replace(column, sql=sql, raw=False, atom=False, weight=3 * column.weight)


def _canonical_sql(column: Code, dialect: Dialect) -> str:
    return dialect.canonical(column.sql) if column.raw else column.sql
