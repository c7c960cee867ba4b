"""A small town, protected and in DuckDB as it is: what statements are compared on."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from random import Random
from typing import Any

import duckdb
import numpy as np
import pytest

import fpinq as fp
from fpinq.runtime import mechanisms

# With noise switched off this leaves no doubt to what is chosen by its score.
CERTAIN = 10**7

CITIES = ["Aal", "Bern", "Cork", "Dax"]
KINDS = ["x-ray", "blood test", "visit"]
SCHEMAS = {
    "people": {
        "pid": "int64", "age": "int64", "gender": "int64", "city": "string", "income": "float64",
        "born": "date", "smokes": "bool",
    },
    "visits": {"pid": "int64", "cost": "float64", "kind": "string", "day": "date", "units": "int64"},
}  # fmt: skip
PUBLIC = [
    {"town": "Aal", "region": "north", "size": 3},
    {"town": "Bern", "region": "south", "size": 5},
    {"town": "Cork", "region": "north", "size": 8},
    {"town": "Dax", "region": "south", "size": 2},
]
COLUMNS = {
    "people": {
        "age": fp.Column(bounds=(0, 120)),
        "gender": fp.Column(keys=[0, 1], bounds=(0, 1)),
        "city": fp.Column(keys=CITIES),
        "income": fp.Column(bounds=(-1000, 100_000)),
    },
    "visits": {
        "cost": fp.Column(bounds=(0, 1000)),
        "kind": fp.Column(keys=KINDS),
        "units": fp.Column(bounds=(-20, 20)),
    },
}
TYPES = {"int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR", "date": "DATE", "bool": "BOOLEAN"}


def rows(seed: int = 7) -> dict[str, list[dict[str, Any]]]:
    """People and their visits; some values are missing."""
    chance = Random(seed)

    def maybe(value: Any, share: float = 0.08) -> Any:
        return None if chance.random() < share else value

    people = [
        {
            "pid": pid,
            "age": maybe(chance.randint(0, 99)),
            "gender": chance.randint(0, 1),
            "city": maybe(chance.choice(CITIES)),
            "income": maybe(chance.randint(-500, 90_000) / 4),
            "born": maybe(date(1930, 1, 1) + timedelta(days=chance.randint(0, 30_000))),
            "smokes": maybe(chance.random() < 0.3),
        }
        for pid in range(1, 61)
    ]
    visits = [
        {
            "pid": person["pid"],
            "cost": maybe(chance.randint(0, 4000) / 4),
            "kind": maybe(chance.choice(KINDS)),
            "day": maybe(date(2020, 1, 1) + timedelta(days=chance.randint(0, 1400))),
            "units": maybe(chance.randint(-9, 9)),
        }
        for person in people
        for _ in range(chance.randint(0, 4))
    ]
    return {"people": people, "visits": visits}


def protected(budget: object = 10**14, engine: str = "duckdb") -> dict[str, Any]:
    """The tables of the town, and what is public of it."""
    tables = fp.protect(
        rows(), unit="pid", rows_per_unit={"people": 1, "visits": 4}, budget=budget, schema=SCHEMAS,
        columns=COLUMNS, engine=engine, name="town",
    )  # fmt: skip
    return {**tables, "regions": fp.public(PUBLIC)}


def in_duckdb() -> duckdb.DuckDBPyConnection:
    """The same tables, unprotected."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute(
        "CREATE MACRO clamp(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END"
    )
    listed = {**rows(), "regions": PUBLIC}
    schemas = {**SCHEMAS, "regions": {"town": "string", "region": "string", "size": "int64"}}
    for name, some in listed.items():
        columns = ", ".join(f"{column} {TYPES[type_]}" for column, type_ in schemas[name].items())
        connection.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join("?" for _ in schemas[name])
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", [list(row.values()) for row in some])
    return connection


@contextmanager
def without_noise() -> Iterator[None]:
    """Answers are what was measured. Nothing in the package can do this: it is patched from here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "sample", lambda scale: 0)
        patch.setattr(mechanisms, "sample_many", lambda scale, n: np.zeros(n, dtype=np.int64))
        yield


# ── comparing ────────────────────────────────────────────────────────────────────────


def plain(line: Any) -> dict[str, Any]:
    """A row of a result as plain values by name."""
    return {name: cell.value if isinstance(cell, fp.Answer) else cell for name, cell in line.cells.items()}


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are one, but for what a grid rounds off."""
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(theirs, bool) or isinstance(ours, str | date):
        return bool(ours == theirs)
    return math.isclose(float(ours), float(theirs), rel_tol=1e-5, abs_tol=2e-3)


def differences(
    ours: Any, theirs: Sequence[Mapping[str, Any]], keys: Sequence[str], empty: Sequence[str] = ()
) -> list[str]:
    """How our rows differ from DuckDB's, which has no rows for keys without records.

    `empty` names columns that are 0 where DuckDB says null: sums of nothing.
    """
    found = [
        plain(line) for line in (ours.values() if isinstance(ours, fp.Answers) and ours.is_level else [ours])
    ]
    by_key = {tuple(row[key] for key in keys): row for row in found}
    wrong = []
    for row in theirs:
        key = tuple(row[each] for each in keys)
        if key not in by_key:
            if None not in key:
                wrong.append(f"no row {key}")
            continue
        mine = by_key[key]
        for name, value in row.items():
            expected = 0 if value is None and name in empty else value
            if expected is None and name not in keys and mine[name] is not None:
                continue  # an average of nothing is the middle of the bounds here
            if not same(mine[name], expected):
                wrong.append(f"{key} {name}: {mine[name]!r}, and DuckDB {value!r}")
    return wrong
