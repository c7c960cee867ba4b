"""Tables of a database to relations with our six types.

Only rows that are stored can be protected: of tables, with all their partitions, and of
materialised views. A view or a foreign table is computed while it is read, by expressions
that may raise on a row, or say something else each time; so are columns that are generated
when read. Row security is such an expression too. All of these are refused, with what to
write instead.

Conversions are those that lose nothing; what has no value in our types becomes null
(NaN, a date outside the years 1 to 9999, ±infinity of dates).

| found | becomes |
|---|---|
| boolean | bool |
| smallint, integer, bigint | int64 |
| real, double precision; numeric, as the nearest double | float64 |
| text, varchar, char(n) without its padding, uuid | string, compared by code point |
| date; timestamp | date; timestamp |
| timestamp with time zone | timestamp in UTC |

Anything else (enums, domains, citext, arrays, json, bytea, intervals …) is refused.
"""

import re
from collections.abc import Mapping, Sequence

from fpinq.engines.postgres import doubles
from fpinq.engines.postgres.database import Statements
from fpinq.engines.postgres.dialect import POSTGRES
from fpinq.engines.postgres.quoting import by_code_point, identifier
from fpinq.engines.sql import sources as columns_of
from fpinq.engines.sql.relations import Stored
from fpinq.engines.sql.sources import Converted
from fpinq.model.errors import BadData, suggest
from fpinq.model.expressions import Type
from fpinq.model.frozen import dataclass

_NAME = re.compile(r'(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<plain>[^".]+))')
_DEFAULT_SCHEMA = "public"

# What is not stored, by PostgreSQL's letter.
_COMPUTED = {"v": "a view", "f": "a foreign table"}
_INSTEAD = "keep its rows, CREATE MATERIALIZED VIEW … AS SELECT …, and protect that"


@dataclass(frozen=True)
class Place:
    """Where a table is: its schema and its name, as PostgreSQL's catalog spells them."""

    schema: str
    table: str

    @staticmethod
    def of(source: object) -> "Place":
        """The place that an owner writes as table, schema.table or "quoted"."Table"."""
        words = _words(source) if isinstance(source, str) else []
        if not 1 <= len(words) <= 2:
            raise BadData(
                "PostgreSQL measures tables where they are: name one, such as 'people' or "
                "'census.people' (or '\"a.b\".\"c\"' where a name has a dot)"
            )
        return Place(*words) if len(words) == 2 else Place(_DEFAULT_SCHEMA, words[0])

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def sql(self) -> str:
        """It as SQL."""
        return f"{identifier(self.schema)}.{identifier(self.table)}"


def _words(source: str) -> list[str]:
    """The identifiers of a dotted name; none if it is no such name, or has a NUL in it."""
    words, rest = [], source
    while (match := _NAME.match(rest)) and "\0" not in source:
        words.append(match["plain"] or match["quoted"].replace('""', '"'))
        rest = rest[match.end() :]
        if not rest:
            return words
        if not rest.startswith("."):
            return []
        rest = rest[1:]
    return []


# ── what is there ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Found:
    """A stored table as the catalog has it: which one it is, and its columns with PostgreSQL's types.

    Those that the role may not read are hidden.
    """

    place: Place
    oid: int
    columns: tuple[tuple[str, str], ...]
    hidden: frozenset[str]


# One row per column, with what holds of the table beside it. Read with it are its partitions, and tables
# that inherit from it.
_TABLE = """
WITH RECURSIVE found AS (
    SELECT c.oid, c.relkind, n.oid AS schema, c.relrowsecurity FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p', 'm', 'v', 'f')),
below AS (
    SELECT inhrelid AS oid FROM pg_inherits JOIN found ON inhparent = found.oid
    UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN below AS b ON i.inhparent = b.oid)
SELECT f.oid::bigint, f.relkind::text, has_schema_privilege(f.schema, 'USAGE'),
    f.relrowsecurity AND row_security_active(f.oid),
    EXISTS (SELECT FROM below JOIN pg_class AS c USING (oid) WHERE c.relkind NOT IN ('r', 'p')),
    a.attname::text, a.attgenerated = 'v', has_column_privilege(a.attrelid, a.attnum, 'SELECT'),
    CASE WHEN n.nspname = 'pg_catalog' AND t.typtype = 'b' THEN t.typname::text
         ELSE format_type(a.atttypid, a.atttypmod) || ', of your own' END
FROM found AS f LEFT JOIN (pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
     JOIN pg_namespace AS n ON n.oid = t.typnamespace)
     ON a.attrelid = f.oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_NAMES = """
SELECT c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'm')
"""


def find(database: Statements, place: Place) -> Found:
    """The table at a place; BadData if there is none, or one that is not stored rows that we may read."""
    found = database.rows(_TABLE, [place.schema, place.table])
    if not found:
        names = [name for (name,) in database.rows(_NAMES, [place.schema])]
        raise BadData(f"the database has no table {str(place)!r}{suggest(place.table, names)}")
    oid, kind, usable, secured, elsewhere, *_ = found[0]
    if kind in _COMPUTED:
        raise BadData(f"{str(place)!r} is {_COMPUTED[kind]}, computed as it is read: {_INSTEAD}")
    if elsewhere:
        raise BadData(f"a part of {str(place)!r} is not stored in this database: {_INSTEAD}")
    if not usable:
        raise BadData(
            f"the role may not use the schema: GRANT USAGE ON SCHEMA {identifier(place.schema)} TO it"
        )
    if secured:
        raise BadData(
            f"row security decides which rows of {str(place)!r} the role sees: give it BYPASSRLS, "
            f"or {_INSTEAD}"
        )
    columns = [row[5:] for row in found if row[5] is not None]
    if computed := [name for name, computed, _, _ in columns if computed]:
        raise BadData(f"column {computed[0]!r} of {str(place)!r} is computed as it is read: make it STORED")
    hidden = frozenset(name for name, _, readable, _ in columns if not readable)
    return Found(place, oid, tuple((name, type_) for name, _, _, type_ in columns), hidden)


def holds(database: Statements, found: Found) -> bool:
    """Whether the table at a place is still the one that was found there, with the same columns."""
    try:
        return find(database, found.place) == found
    except BadData:
        return False


# ── types ────────────────────────────────────────────────────────────────────────────


def convert(
    found: Found, schema: Mapping[str, Type] | None, lengths: Mapping[str, int] | None = None
) -> list[Converted]:
    """The columns found, as ours; only those of the schema, in its order, if there is one.

    A text longer than its column's public length is null.
    """
    types = dict(found.columns)
    columns = columns_of.convert(types, schema, lambda name: _convert(name, types[name]), POSTGRES)
    if hidden := [column.name for column in columns if column.name in found.hidden]:
        raise BadData(
            f"the role may not read column {hidden[0]!r}: GRANT SELECT ON {found.place.sql} TO it, "
            "or name the other columns in schema={…}"
        )
    return columns_of.within_lengths(columns, lengths or {}, POSTGRES)


def readable(found: Found) -> list[Converted]:
    """The columns that the role may read and rows can have: what a table is known by."""
    types = {name: type_ for name, type_ in found.columns if name not in found.hidden}
    columns = columns_of.readable(types, lambda name: _convert(name, types[name]))
    return columns_of.within_lengths(columns, {}, POSTGRES)


def _convert(name: str, found: str) -> Converted:
    sql = identifier(name)
    match found:
        case "bool":
            return Converted(name, Type.BOOL, sql)
        case "int2" | "int4" | "int8":
            return Converted(name, Type.INT64, f"CAST({sql} AS bigint)")
        case "float4" | "float8":
            return Converted(name, Type.FLOAT64, f"CAST({sql} AS double precision)", raw=True)
        case "numeric":
            return Converted(name, Type.FLOAT64, doubles.of_decimal(sql), raw=True)
        case "text" | "varchar" | "bpchar" | "uuid":
            return Converted(name, Type.STRING, by_code_point(f"CAST({sql} AS text)"))
        case "date":
            inside = f"{sql} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
            return Converted(name, Type.DATE, f"CASE WHEN {inside} THEN {sql} END")
        case "timestamp" | "timestamptz":
            local = sql if found == "timestamp" else f"({sql} AT TIME ZONE 'UTC')"
            first, last = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
            inside = f"{local} BETWEEN TIMESTAMP '{first}' AND TIMESTAMP '{last}'"
            return Converted(name, Type.TIMESTAMP, f"CASE WHEN {inside} THEN {local} END")
    raise BadData(
        f"column {name!r} has a type that rows do not have ({found}): leave it out by naming the others "
        "in schema={…}, or keep it as another, CREATE MATERIALIZED VIEW … AS SELECT …, "
        f"CAST({identifier(name)} AS text)"
    )


def as_source(columns: Sequence[Converted], place: Place) -> Stored:
    """The converted columns of a table as c0, c1, …"""
    return Stored(*columns_of.as_relation(columns, place.sql, POSTGRES, lazy=True))


def fingerprint(relation: str, columns: int) -> str:
    """The SQL of how many records a relation has, and of the sums of the 32-bit limbs of their SHA-256s."""
    # With its length before it, no value can run into the next.
    texts = [f"CAST(c{i} AS text)" for i in range(columns)]
    record = " || ".join(f"coalesce(octet_length({text}) || ':' || {text}, '-')" for text in texts)
    hashed = f"SELECT encode(sha256(convert_to({record}, 'UTF8')), 'hex') AS h FROM {relation} AS d OFFSET 0"
    limbs = [f"CAST(CAST('x' || substr(h, {8 * i + 1}, 8) AS bit(32)) AS bigint)" for i in range(8)]
    return f"SELECT count(*), {', '.join(f'sum({limb})' for limb in limbs)} FROM ({hashed}) AS d"
