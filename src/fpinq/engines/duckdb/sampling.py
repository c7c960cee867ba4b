"""Faster truncations, by a look at the data first.

Sorting by all columns is what a truncation costs. If the first few columns of
the order nearly always decide, sorting by these and looking again at the keys
they leave undecided is faster; a sample says whether they do. Both ways find the
same rows (docs/decisions/0050). Which rows of a person are beyond the first ones
is found out once and kept.
"""

from collections.abc import Sequence

from fpinq.engines.duckdb.dialect import SQL, limit, window
from fpinq.engines.sql.relations import UNIT, Stored, rows_of_persons
from fpinq.engines.sql.truncation import order

# How many columns of the order are tried first.
LEADING = 2
# One key in so many is in the sample.
SAMPLED = 64
# A sample of fewer keys says little, and of few keys there is little to save.
FEWEST_SAMPLED = 1_000
# Looking again at more than one key in so many would cost what was saved.
RARE = 20


def beyond_the_first(source: Stored, unit: int, at_most: int) -> str:
    """The numbers i of the rows that are not among their person's first."""
    rows = rows_of_persons(source, unit, SQL, numbered=True)
    number = SQL.row_number([UNIT], order(rows, SQL))
    return f"SELECT i FROM {rows.source} QUALIFY {number} > {limit(at_most)}"


def in_two(source: str, keys: Sequence[str], by: Sequence[str], at_most: int) -> str:
    """The first rows of each key: sort by the leading columns, and by all where these do not decide.

    A row is a candidate if fewer than at_most rows of its key come before it by
    the leading columns. The first rows are candidates; so if a key has no more
    than at_most candidates they are its first rows.
    """
    candidates = _candidates(source, keys, by, at_most)
    undecided = (
        f"SELECT {', '.join(keys)} FROM candidates GROUP BY {', '.join(keys)} HAVING {_too_many(at_most)}"
    )
    same = " AND ".join(f"r.{key} IS NOT DISTINCT FROM o.{key}" for key in keys)
    again = f"(SELECT r.* FROM {source} AS r SEMI JOIN undecided AS o ON {same})"
    return (
        f"(WITH candidates AS MATERIALIZED ({candidates}), undecided AS MATERIALIZED ({undecided}) "
        f"SELECT r.* FROM candidates AS r ANTI JOIN undecided AS o ON {same} "
        f"UNION ALL SELECT * FROM {SQL.first_per_key(again, keys, by, at_most)})"
    )


def sample(source: str, keys: Sequence[str], by: Sequence[str], at_most: int) -> str:
    """How many keys a sample has, and how many of them the leading columns do not decide."""
    listed = ", ".join(keys)
    some = f"(SELECT * FROM {source} WHERE hash({listed}) % {SAMPLED} = 0)"
    candidates = _candidates(some, keys, by, at_most)
    counted = f"SELECT {_too_many(at_most)} AS undecided FROM ({candidates}) GROUP BY {listed}"
    return f"SELECT count(*), count(*) FILTER (undecided) FROM ({counted})"


def are_rare(sampled: int, undecided: int) -> bool:
    """Whether so few keys are undecided that looking at them again is worth it."""
    return sampled >= FEWEST_SAMPLED and undecided * RARE <= sampled


def _candidates(source: str, keys: Sequence[str], by: Sequence[str], at_most: int) -> str:
    return f"SELECT * FROM {source} QUALIFY rank() OVER ({window(keys, by[:LEADING])}) <= {limit(at_most)}"


def _too_many(at_most: int) -> str:
    return f"count(*) > {limit(at_most)}"
