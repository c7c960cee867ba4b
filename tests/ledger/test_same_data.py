"""The same records with other columns or types get no second budget; other records get theirs."""

from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fpinq as fp
from fpinq.ledger.alike import ENOUGH, ColumnHash, is_alike, sealed
from fpinq.model.events import Registered
from fpinq.model.expressions import Schema, Type
from fpinq.runtime.records import records_of

drawn = Random(7)
ROWS: list[dict[str, Any]] = [
    {
        "id": number,
        "age": drawn.randrange(18, 90),
        "well": drawn.random() < 0.3,
        "income": drawn.randrange(10**6) / 8,
        "name": f"n{drawn.randrange(10**6)}",
        "day": date(2024, 1 + drawn.randrange(12), 1 + drawn.randrange(28)),
        "one": 1,
    }
    for number in range(100)
]
FRAME = pd.DataFrame(ROWS)

SAME: dict[str, Callable[[], Any]] = {
    "fewer columns": lambda: FRAME[["age", "income"]],
    "one column": lambda: FRAME[["age"]],
    "a column and row numbers": lambda: FRAME[["id", "age", "one"]],
    "more columns": lambda: FRAME.assign(more=range(7, 107)),
    "renamed": lambda: FRAME.rename(columns={name: name * 2 for name in FRAME}),
    "in another order": lambda: FRAME[list(reversed(FRAME.columns))].sample(frac=1, random_state=1),
    "as polars": lambda: pl.DataFrame(ROWS).drop("name"),
    "as arrow": lambda: pa.Table.from_pylist(ROWS).drop_columns(["day"]),
    "a column twice": lambda: FRAME.assign(again=FRAME["age"]),
    "whole numbers as floats": lambda: FRAME.assign(age=FRAME["age"].astype(float)),
    "whole numbers as text": lambda: FRAME.assign(age=FRAME["age"].astype(str)),
    "floats as text": lambda: FRAME.assign(income=FRAME["income"].astype(str)),
    "all as text": lambda: FRAME.astype(str),
    "truth as numbers": lambda: FRAME.assign(well=FRAME["well"].astype(int)),
    "dates as timestamps": lambda: FRAME.assign(day=pd.to_datetime(FRAME["day"])),
    "dates as text": lambda: FRAME.assign(day=FRAME["day"].map(str)),
    "text in capitals": lambda: FRAME.assign(name=FRAME["name"].str.upper()),
    "some of each": lambda: FRAME.astype(str)[["name", "day"]].rename(columns={"name": "x"}),
}


@pytest.mark.parametrize("change", SAME)
@pytest.mark.parametrize("first", [True, False])
def test_the_same_records_otherwise_get_no_second_budget(change: str, first: bool, tmp_path: Path) -> None:
    tables = (FRAME, SAME[change]()) if first else (SAME[change](), FRAME)
    where = tmp_path / "x.ledger"
    data = fp.protect(tables[0], name="people", budget=1, ledger=where)
    with pytest.raises(fp.SameData, match="'people'"):
        fp.protect(tables[1], name="other", budget=1, ledger=where)
    data.noisy_count("1/2")
    assert fp.protect(tables[0], name="people", budget=1, ledger=where).remaining == Fraction(1, 2)
    data.facts.system.record.close()


def test_a_schema_that_selects_columns_gets_no_second_budget(tmp_path: Path) -> None:
    where = tmp_path / "x.ledger"
    data = fp.protect(ROWS, name="people", budget=1, ledger=where)
    with pytest.raises(fp.SameData, match="select from it"):
        fp.protect(ROWS, name="ages", schema={"age": "int64"}, budget=1, ledger=where)
    with pytest.raises(fp.SameData):
        fp.protect(ROWS, name="ages", schema={"age": "float64", "one": "int64"}, budget=1, ledger=where)
    data.facts.system.record.close()


def test_a_table_of_persons_gets_no_second_budget(tmp_path: Path) -> None:
    where = tmp_path / "x.ledger"
    tables = {"people": ROWS, "visits": [{"id": i % 40, "cost": (i * i) % 97} for i in range(90)]}
    most = {"people": 1, "visits": 5}
    fp.protect(tables, name="clinic", unit="id", rows_per_unit=most, budget=1, ledger=where)
    for other in (FRAME[["age", "name"]], pd.DataFrame(tables["visits"])[["cost"]]):
        with pytest.raises(fp.SameData, match="'clinic'"):
            fp.protect(other, name="other", budget=1, ledger=where)


OTHER: dict[str, Callable[[], Any]] = {
    "one row less": lambda: FRAME[:-1],
    "one row twice": lambda: pd.concat([FRAME, FRAME[:1]]),
    "one value": lambda: FRAME.assign(**{name: [*FRAME[name][:-1], None] for name in FRAME}),
    "a column of it and one of its own": lambda: FRAME[["age"]].assign(x=[i * i for i in range(100)]),
    "row numbers": lambda: pd.DataFrame({"x": range(100)}),
    "row numbers from one, as text": lambda: pd.DataFrame({"x": [str(i + 1) for i in range(100)]}),
    "a constant": lambda: FRAME[["one"]],
    "row numbers and a constant": lambda: FRAME[["id", "one"]],
    "a few of yes and no": lambda: FRAME[["well"]],
}


@pytest.mark.parametrize("change", OTHER)
def test_other_records_get_a_budget_of_their_own(change: str, tmp_path: Path) -> None:
    where = tmp_path / "x.ledger"
    data = fp.protect(FRAME, name="people", budget=1, ledger=where)
    other = OTHER[change]()
    schema = {"well": "bool"} if change == "a few of yes and no" else None
    assert fp.protect(other, name="other", budget=1, schema=schema, ledger=where).remaining == 1
    data.facts.system.record.close()


def test_small_tables_may_look_the_same(tmp_path: Path) -> None:
    where = tmp_path / "x.ledger"
    for name, rows in {
        "a": [{"x": 3, "y": "red"}, {"x": 9, "y": "blue"}],
        "b": [{"x": 3}, {"x": 9}],
        "c": [{"z": 9, "w": 1, "y": "red"}, {"z": 3, "w": 7, "y": "blue"}],
    }.items():
        assert fp.protect(rows, name=name, budget=1, ledger=where).remaining == 1


def test_bits_are_how_unlikely_the_same_values_are() -> None:
    columns = {
        "constant": [5] * 1000,
        "numbers": list(range(50, 1050)),
        "half": [i % 2 for i in range(1000)],
        "ages": [i % 70 for i in range(1000)],
        "all": [i * i for i in range(1000)],
        "null": [None] * 999 + [1],
    }
    frame = pl.DataFrame(columns)
    found = dict(zip(sorted(columns), (column.bits for column in records_of(frame).columns), strict=True))
    assert found["constant"] == found["numbers"] == 0
    assert found["null"] == pytest.approx(1.33, abs=0.1)
    assert 5 < found["half"] < 6  # 1,000 throws of a coin give 500 heads once in 40 times
    assert found["half"] < ENOUGH < 100 < found["ages"] < found["all"]


TYPES: list[list[Any]] = [[1, 0, 7], [1.0, 0.0, 7.0], ["1", "0", "7"], ["1.0", " 0.00", "7e0"]]
TIMES: list[list[Any]] = [
    [date(2024, 2, 29), None],
    [datetime(2024, 2, 29), None],
    ["2024-02-29", None],
    ["2024-02-29T00:00:00", "NaT"],
    ["2024-02-29 00:00:00", ""],
]
TRUTHS: list[list[Any]] = [
    [True, False, None],
    [1, 0, None],
    ["True", "FALSE", "None"],
    [1.0, 0.0, float("nan")],
]


@pytest.mark.parametrize("alike", [TYPES, TIMES, TRUTHS])
def test_a_value_is_one_text_whatever_its_type(alike: list[list[Any]]) -> None:
    found = {records_of([{"x": value} for value in values]).columns[0].hash for values in alike}
    assert len(found) == 1
    assert len({records_of([{"x": value} for value in values]).hash for values in alike}) > 1


def test_entries_do_not_tell_which_columns_are_equal() -> None:
    """Two seals that are equal would tell, with certainty, a fact about both data sets."""
    table = (ColumnHash("x", 30), ColumnHash("x", 30), ColumnHash("y", 30))
    key, seals = bytes(32), []
    for root in ("a", "b"):
        seals += [seal for each in sealed(key, root, (table, table)) for seal in each]
    assert len(set(seals)) == len(seals) == 12
    assert all(len(seal) == 64 for seal in seals)
    assert sealed(b"k" * 32, "a", (table,)) != sealed(key, "a", (table,))


def test_alike_is_all_columns_of_the_one_in_the_other_and_enough_of_them() -> None:
    key, shape = bytes(32), Schema((("a", Type.INT64),))

    def found(here: list[tuple[str, float]], there: list[tuple[str, float]]) -> bool:
        known = tuple(ColumnHash(*column) for column in there)
        root = Registered("r", shape, Fraction(1), columns=sealed(key, "r", (known,)))
        return is_alike(key, root, (tuple(ColumnHash(*column) for column in here),))

    x, y, z, weak = ("x", 25.0), ("y", 25.0), ("z", 25.0), ("w", ENOUGH / 2)
    assert found([x], [x])
    assert found([x], [x, y])
    assert found([x, y], [y])
    assert found([x, weak], [weak, x, y])
    assert not found([x, z], [x, y])
    assert not found([weak], [weak, x])
    assert found([weak, ("v", ENOUGH / 2)], [weak, x, ("v", ENOUGH / 2)])
    assert not found([weak, weak], [weak, weak, x])  # the same again says nothing more
    assert not found([x, x], [x, y])
    assert not found([], [x])
    assert not found([x], [])
