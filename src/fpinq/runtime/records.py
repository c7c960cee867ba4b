"""Records in memory: what they are as a bag, and column by column.

As a bag: the SHA-256 of the sorted SHA-256s of the records, as fpinq reads them,
so that neither the order of rows and columns nor the kind of data frame matters.

Column by column: the multiset of a column's values, each in one text whatever its
type, so that 1, 1.0, "1" and true are alike, and a date and its ISO text. Names
do not matter. By its columns, data is known again with fewer columns, more
columns, other names and other types; `ledger.alike` says when that is enough.
"""

from collections.abc import Mapping
from hashlib import sha256
from math import log2, pi
from typing import Any

from fpinq.engines.owner import in_our_words, unreadable
from fpinq.ledger.alike import ColumnHash
from fpinq.ledger.wire import encode
from fpinq.model.expressions import Type
from fpinq.model.frozen import dataclass

# What frames write for a null when they become text.
_NULLS = "('', 'nan', 'none', 'null', '<na>', 'nat')"


@dataclass(frozen=True)
class Hashes:
    """What a table in memory is: a hash of its records, and one of each column."""

    hash: str
    columns: tuple[ColumnHash, ...]


@in_our_words(unreadable)
def records_of(source: Any, schema: Mapping[str, Type] | None = None) -> Hashes:
    """A data frame or a list of dicts, by what is in it."""
    import duckdb

    from fpinq.engines.duckdb import sources
    from fpinq.engines.duckdb.dialect import SQL
    from fpinq.engines.sql.sources import as_relation

    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:

        def describe(frame: object) -> dict[str, str]:
            connection.register("incoming", frame)
            return {
                row[0]: row[1] for row in connection.execute("DESCRIBE SELECT * FROM incoming").fetchall()
            }

        frame, columns = sources.in_memory(source, schema, describe)
        connection.register("incoming", frame)
        columns = sorted(columns, key=lambda column: column.name)
        scan, shape, _ = as_relation(columns, "incoming", SQL, lazy=False)
        ((rows, records),) = connection.execute(_bag(len(columns), scan.select)).fetchall()
        each = [
            _column(*connection.execute(_values(f"c{i}", column.type, scan.select)).fetchall()[0])
            for i, column in enumerate(columns)
        ]
    hashed = sha256(f"{encode(shape)}{rows}:{records}".encode()).hexdigest()
    return Hashes(f"records:{hashed}", tuple(each))


def _bag(columns: int, select: str) -> str:
    """The SQL of the number of records, and of a hash of their bag."""
    # With its length before it, no value can run into the next.
    texts = [f"CAST(c{i} AS VARCHAR)" for i in range(columns)]
    record = " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)
    return (
        f"SELECT count(*), coalesce(sha256(string_agg(h, '' ORDER BY h)), '') "
        f"FROM (SELECT sha256({record}) AS h FROM ({select}))"
    )


def _values(column: str, type_: Type, select: str) -> str:
    """The SQL of a column's values: how many there are, and two sums of hashes that stand for all of them."""
    text = _text(column, type_)
    counted = f"SELECT {text} AS v, count(*) AS n FROM ({select}) GROUP BY v"
    hashed = "coalesce('=' || v, '-')"
    return (
        f"SELECT sum(n), count(*), sum(md5_number_lower({hashed})::HUGEINT * n), "
        f"sum(md5_number_upper({hashed})::HUGEINT * n), sum(log2({2 * pi} * n)), "
        f"count(TRY_CAST(v AS DOUBLE)), max(TRY_CAST(v AS DOUBLE)) - min(TRY_CAST(v AS DOUBLE)) "
        f"FROM ({counted})"
    )


def _text(column: str, type_: Type) -> str:
    """The SQL of a value's one text, whatever type it has; null for a null."""
    if type_ in (Type.INT64, Type.FLOAT64):
        return f"CAST(CAST({column} AS DOUBLE) AS VARCHAR)"
    if type_ is Type.BOOL:
        return f"CASE {column} WHEN true THEN '1.0' WHEN false THEN '0.0' END"
    if type_ in (Type.DATE, Type.TIMESTAMP):
        return f"CAST(CAST({column} AS TIMESTAMP) AS VARCHAR)"
    low = f"lower(trim({column}))"
    return (
        f"CASE WHEN {low} IN {_NULLS} THEN NULL "
        f"WHEN {low} = 'true' THEN '1.0' WHEN {low} = 'false' THEN '0.0' ELSE "
        f"coalesce(CAST(TRY_CAST({low} AS DOUBLE) AS VARCHAR), "
        f"CAST(TRY_CAST(trim({column}) AS TIMESTAMP) AS VARCHAR), {low}) END"
    )


def _column(rows: Any, values: int, low: Any, high: Any, logs: Any, numbers: int, width: Any) -> ColumnHash:
    """A column by its values.

    bits: other data, drawn from the same distribution, has exactly these values
    with probability 2^−bits. A constant has 0; so do row numbers, which anybody has.
    """
    hashed = sha256(f"{rows}:{values}:{low}:{high}".encode()).hexdigest()
    if not rows or (numbers == values == rows and width == rows - 1):
        return ColumnHash(hashed, 0)
    return ColumnHash(hashed, max(0, (logs - log2(2 * pi * int(rows))) / 2))
