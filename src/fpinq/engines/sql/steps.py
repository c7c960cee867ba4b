"""What several steps of a plan write alike: keys, tests, columns, two sides as one."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from fpinq.engines.sql.expressions import Bindings, Code
from fpinq.engines.sql.relations import UNIT, Lowered, as_columns
from fpinq.engines.sql.scans import Scan
from fpinq.model.expressions import Apply, Column, Expression, Schema, Type
from fpinq.model.transformations import Fields


def keys_of(table: Lowered, names: Sequence[str]) -> list[str]:
    """The keys that rows are told by: the names, and the person."""
    return [*names, *[UNIT] * table.per_person]


def present(names: Iterable[str]) -> str:
    """Whether none of some columns is null."""
    return " AND ".join(f"{name} IS NOT NULL" for name in names)


def unit_of(per_person: bool) -> list[tuple[str, Code]]:
    """The person, where a relation has one."""
    return [(UNIT, Code(UNIT, Type.STRING))] if per_person else []


def filtered(table: Lowered, bindings: Bindings, test: Code) -> Lowered:
    """The rows that pass a test. What is bound of them later is bound above it: for them only."""
    level = test.level
    columns = tuple([c if c.level >= level else replace(c, level=level) for c in bindings.columns.values()])
    return replace(table, columns=columns, layers=bindings.layers, tests=(*table.tests, test))


def mentioned_once(table: Lowered, record: Fields) -> Container[str]:
    """The columns that are computed and that a record mentions once."""
    if all(column.atom for column in table.columns):
        return ()
    mentioned = Counter(name for _, value in record for name in _mentions(value))
    return {name for name, times in mentioned.items() if times == 1}


def _mentions(expression: Expression) -> Iterator[str]:
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Apply):
            waiting += found.arguments
        elif isinstance(found, Column):
            yield found.name


def projected(bindings: Bindings, table: Lowered, schema: Schema, codes: Sequence[Code]) -> Lowered:
    """One column for each code."""
    columns = as_columns(codes)
    named = [(column.sql, code) for column, code in zip(columns, codes, strict=True)]
    source = f"({bindings.select(table.source, [*named, *unit_of(table.per_person)])})"
    return Lowered(source, schema, columns, table.per_person)


def never_empty(listed: Sequence[str], source: str | Scan) -> str:
    """The rows of a source, marked as such, and one more that is marked otherwise."""
    nothing = ", ".join(["NULL"] * len(listed))
    return f"SELECT {', '.join(listed)}, FALSE AS z FROM {source} AS d UNION ALL SELECT {nothing}, TRUE"


def combined(left: Lowered, how: str, right: Lowered) -> Lowered:
    """Two relations by a word between their SELECTs."""
    sides = (f"SELECT {table.listed} FROM {table.source} AS d" for table in (left, right))
    return either(left, right, f"({f' {how} '.join(sides)})")


def either(left: Lowered, right: Lowered, source: str) -> Lowered:
    """A source of rows of two sides."""
    columns = tuple(a.or_(b) for a, b in zip(left.columns, right.columns, strict=True))
    return replace(left, source=source, columns=columns)
