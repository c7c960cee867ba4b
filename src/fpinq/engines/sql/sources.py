"""Columns as they are found to columns of ours: what holds whatever the database.

A schema says which columns are read, in which order and as which types. No conversion changes a
value but the one from integers to floats; a text longer than its column's public length is null.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from fpinq.engines.sql.dialect import Dialect
from fpinq.engines.sql.expressions import Bindings, Code, Layers, Parameters
from fpinq.engines.sql.scans import Scan
from fpinq.model.errors import BadData
from fpinq.model.expressions import COLUMN_TYPES, Schema, Type
from fpinq.model.frozen import dataclass
from fpinq.model.operators import MAX_STRING


@dataclass(frozen=True)
class Converted:
    """A column of ours: its name and type, the SQL that makes it, and whether it is a float as found."""

    name: str
    type: Type
    sql: str
    raw: bool = False


def convert(
    found: Collection[str],
    schema: Mapping[str, Type] | None,
    column: Callable[[str], Converted | None],
    dialect: Dialect,
) -> list[Converted]:
    """The columns found, as ours; those of the schema, in its order, if there is one.

    `column` says what each is, and None of one whose type nothing tells.
    """
    if schema is None:
        return [column(name) or _untold(name) for name in found]
    if not schema:
        raise BadData("a schema needs one or more columns")
    return [_as_stated(name, type_, found, column, dialect) for name, type_ in schema.items()]


def readable(found: Iterable[str], column: Callable[[str], Converted | None]) -> list[Converted]:
    """The columns whose types rows have, as ours: what data is known by, whatever a schema says of it."""
    columns = []
    for name in found:
        with suppress(BadData):
            columns.append(column(name))
    return [column for column in columns if column is not None]


def _untold(name: str) -> Converted:
    raise BadData(f"column {name!r} has no values to tell its type by: state it, schema={{{name!r}: …}}")


def _as_stated(
    name: str,
    wanted: Type,
    found: Collection[str],
    column: Callable[[str], Converted | None],
    dialect: Dialect,
) -> Converted:
    if wanted not in COLUMN_TYPES:
        raise BadData(f"column {name!r}: {wanted!r} is not a type of a column")
    if name not in found:
        raise BadData(f"the data has no column {name!r}; its columns are: {', '.join(found) or 'none'}")
    there = column(name)
    if there is None:
        return Converted(name, wanted, dialect.null(wanted))
    if there.type is wanted:
        return there
    if (there.type, wanted) == (Type.INT64, Type.FLOAT64):
        return Converted(name, wanted, f"CAST({there.sql} AS {dialect.type_name(wanted)})")
    raise BadData(f"column {name!r} is {there.type.value} in the data, not {wanted.value} as the schema says")


def unreadable(name: str, kind: str) -> BadData:
    """What to say of a column of a type that is none of ours."""
    return BadData(
        f"column {name!r} has a type that rows do not have ({kind}): convert it, "
        "or leave it out by naming the others in schema={…}"
    )


def within_lengths(
    columns: Iterable[Converted], lengths: Mapping[str, int], dialect: Dialect
) -> list[Converted]:
    """The columns with null in place of every text that is longer than its column's public length."""
    return [
        replace(column, sql=within(column.sql, lengths.get(column.name, MAX_STRING), dialect))
        if column.type is Type.STRING
        else column
        for column in columns
    ]


def within(text: str, most: int, dialect: Dialect) -> str:
    """A text, or null if it has more characters than that."""
    # Bytes are counted at once, characters only where bytes do not tell: of a text that is far too long
    # nothing is read. No character has more than four. A CASE that all rows are in passes a column on as it
    # is, with the dictionary that a file has of it.
    octets, characters = dialect.octets(text), dialect.characters(text)
    counted = f"CASE WHEN {octets} <= {4 * most} THEN {characters} <= {most} ELSE FALSE END"
    return f"CASE WHEN {octets} <= {most} THEN {text} WHEN {counted} THEN {text} END"


def as_relation(
    columns: Sequence[Converted], source: str, dialect: Dialect, *, lazy: bool, row: str | None = None
) -> tuple[Scan, Schema, frozenset[int]]:
    """Converted columns as c0, c1, … (and its row's number i), and which may hold NaN or −0.

    These stay only where the data is read again each time: not every use of a
    column needs them removed.
    """
    if not columns:
        raise BadData("the data has no columns")
    listed = [
        (f"c{i}", dialect.canonical(column.sql) if column.raw and not lazy else column.sql)
        for i, column in enumerate(columns)
    ]
    if row is not None:
        listed.append(("i", row))
    raw = frozenset(i for i, column in enumerate(columns) if column.raw and lazy)
    return Scan(tuple(listed), source), Schema(tuple((c.name, c.type) for c in columns)), raw


def of_fields(width: int, parameters: Parameters) -> Bindings:
    """What an expression over the fields f0, f1, … of a line of text can read."""
    columns = {f"f{i}": Code(f"f{i}", Type.STRING, atom=True) for i in range(width)}
    schema = Schema.of(dict.fromkeys(columns, Type.STRING))
    return Bindings(columns, schema, parameters, Layers(frozenset(columns)))
