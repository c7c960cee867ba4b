"""A measurement of many parts, out of DuckDB as arrays.

The driver gives a HUGEINT as a double. So a sum leaves the database as two
BIGINTs, high·2⁶² + low, whatever it is: a cast that fails would tell about the data.
"""

from collections.abc import Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import duckdb

from fpinq.engines.columns import Columns, Counts, wide
from fpinq.engines.sql.statistics import Measurement
from fpinq.model.expressions import classes_of
from fpinq.model.keys import Product, values_of
from fpinq.model.statistics import Integers

if TYPE_CHECKING:
    from fpinq.engines.columns import Column

BITS = 62
# Of so few parts, rows are faster than a statement that takes sums apart.
FEW = 250
# The driver's arrays have days and timestamps of kinds of their own.
_NOT_IN_ARRAYS = {id(date), id(datetime)}


def is_in_arrays(measurement: Measurement) -> bool:
    """Whether the driver's arrays have what a measurement gives, to the last value."""
    by = measurement.by
    if not measurement.is_alike or by is None or len(by.keys) <= FEW:
        return False
    domains = by.keys.of if type(by.keys) is Product else [by.keys]
    return all(type(keys) is range or not classes_of(values_of(keys)) & _NOT_IN_ARRAYS for keys in domains)


def fetch(cursor: duckdb.DuckDBPyConnection, measurement: Measurement) -> Columns:
    """Ask for a measurement, and read it."""
    sums = [column for (column,) in measurement.sums.values()]
    plain = [name for name in measurement.names if name not in sums]
    listed = ", ".join([*plain, *(half for column in sums for half in _halves(column))])
    cursor.execute(f"SELECT {listed} FROM ({measurement.sql}) AS d", measurement.parameters or None)
    found = cursor.fetchnumpy()
    totals = {
        name: _whole(found, column, measurement.is_narrow) for name, (column,) in measurement.sums.items()
    }
    keys = [found[name] for name in measurement.keys]
    return measurement.read_arrays(keys, totals | {name: found[name] for name in plain[len(keys) :]})


def counts(cursor: duckdb.DuckDBPyConnection) -> Integers:
    """What a histogram gave."""
    found = cursor.fetchnumpy()
    points, numbers = found["g"], found["n"]
    if hasattr(points, "mask"):  # null is no grid point
        present = ~points.mask
        points, numbers = points.data[present], numbers[present]
    return Counts(points, numbers)


def _halves(column: str) -> Iterator[str]:
    whole = f"coalesce({column}, '0'::HUGEINT)"
    yield f"CAST({whole} >> {BITS} AS BIGINT) AS {column}_high"
    yield f"CAST({whole} & '{2**BITS - 1}'::HUGEINT AS BIGINT) AS {column}_low"


def _whole(found: dict[str, Any], column: str, narrow: bool) -> "Column":
    high, low = found[f"{column}_high"], found[f"{column}_low"]
    if not narrow or (high.size and (high.min() < -1 or high.max() > 0)):
        high, low = wide(high, low)
    whole: Column = high * 2**BITS + low
    return whole
