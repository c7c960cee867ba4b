"""Truncation: which rows of a key stay. Where an order decides, it is the canonical one, over all columns.

So the result depends on the bag alone.
"""

from collections.abc import Iterable, Sequence

from fpinq.engines.sql.dialect import Dialect
from fpinq.engines.sql.relations import Lowered
from fpinq.model.expressions import Column, Expression


def order(table: Lowered, dialect: Dialect, fixed: Iterable[Expression] = ()) -> list[str]:
    """The canonical order, without the columns that do not vary."""
    constant = {key.name for key in fixed if isinstance(key, Column)}
    return [
        dialect.ordered(column.sql, column.type)
        for name, column in zip(table.schema.names(), table.columns, strict=True)
        if name not in constant
    ]


def unique_per_key(table: Lowered, source: str, keys: Sequence[str], dialect: Dialect) -> str:
    """Groups of one: what they have only is the record."""
    only = [f"{dialect.only(column.sql, column.type)} AS {column.sql}" for column in table.columns]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    # Not by WHERE, above: a filter there is one that DuckDB moves, together with a join's condition.
    return f"(SELECT {', '.join([*keys, *only])} FROM {source} AS d{by} HAVING count(*) = 1)"
