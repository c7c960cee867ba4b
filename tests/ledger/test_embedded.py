"""fp.protect(…, ledger=…): the budget survives the process, by what is in the data; append grows it."""

import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fpinq as fp
from fpinq.cli.main import main
from fpinq.engines import files
from fpinq.runtime import contents

ROWS = [{"age": age, "name": f"n{age}"} for age in range(40)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(ROWS).write_parquet("people.parquet")
    pl.DataFrame(ROWS[:15]).write_parquet("tuesday.parquet")
    return tmp_path


def test_a_second_process_goes_on_with_the_budget_that_is_left(folder: Path) -> None:
    program = (
        "import fpinq as fp\n"
        "data = fp.protect('people.parquet', budget=1, ledger='people.ledger')\n"
        "data.where(lambda x: x.age > 17).noisy_count('1/4')\n"
        "print(data.remaining)"
    )
    run = [sys.executable, "-c", program]
    seen = [subprocess.run(run, capture_output=True, text=True, check=False) for _ in range(5)]
    assert [s.stdout.strip() for s in seen] == ["0.75", "0.5", "0.25", "0", ""], seen[0].stderr
    assert "BudgetExceeded" in seen[-1].stderr
    assert main(["ledger", "verify", "people.ledger"]) == 0


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_every_kind_of_query_survives_the_ledger(folder: Path, engine: str) -> None:
    data = fp.protect(ROWS, name="people", budget=100, ledger="people.ledger", engine=engine)
    parts = data.partition(lambda x: x.age % 2, keys=[0, 1])
    answers = [part.noisy_count(1) for part in parts.values()]
    data.noisy_median(1, lambda x: x.age, bounds=(0, 100))
    data.noisy_histogram(1, lambda x: x.age, bounds=(0, 40), bins=4)
    data.query(1, fp.average(lambda x: x.age, bounds=(0, 100)), by=lambda x: x.age % 3, keys=[0, 1, 2])
    assert len(answers) == 2
    assert data.remaining == 96
    assert main(["ledger", "verify", "people.ledger"]) == 0


def test_the_same_data_under_another_name_gets_no_second_budget(folder: Path) -> None:
    os.link("people.parquet", "hard.parquet")  # before: one more name is a change of the file
    data = fp.protect("people.parquet", budget=1, ledger="x.ledger")
    shutil.copy("people.parquet", "copy.parquet")
    os.symlink("people.parquet", "link.parquet")
    for other in ("copy.parquet", "link.parquet", "hard.parquet", ["tuesday.parquet", "copy.parquet"]):
        with pytest.raises(fp.SameData, match="'people'"):
            fp.protect(other, name="other", budget=1, ledger="x.ledger")
    tables = {"people": "copy.parquet"}
    with pytest.raises(fp.SameData):
        fp.protect(tables, name="persons", unit="name", rows_per_unit=1, budget=1, ledger="x.ledger")
    data.noisy_count("1/2")
    assert fp.protect("copy.parquet", name="people", budget=1, ledger="x.ledger").remaining == Fraction(1, 2)


def test_what_was_hashed_is_what_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that arrives between the hashing and the reading of a folder is in neither."""
    os.mkdir("days")
    shutil.copy("tuesday.parquet", "days/1.parquet")
    hashed = files.hash_of_file

    def late(*given: Any) -> str:
        shutil.copy("people.parquet", "days/2.parquet")
        return hashed(*given)

    monkeypatch.setattr(files, "hash_of_file", late)
    data = fp.protect("days", name="days", budget=1000, ledger="x.ledger")
    assert abs(data.noisy_count(1000) - 15) < 3


def test_changed_data_under_the_same_name_is_refused(folder: Path) -> None:
    data = fp.protect("people.parquet", budget=1, ledger="x.ledger")
    shutil.copy("tuesday.parquet", "people.parquet")
    with pytest.raises(fp.DataChanged):
        fp.protect("people.parquet", budget=1, ledger="x.ledger")
    with pytest.raises(fp.DataChanged):
        data.noisy_count("1/2")
    assert data.remaining == 1


def test_another_budget_or_unit_is_refused(folder: Path) -> None:
    fp.protect("people.parquet", budget=1, ledger="x.ledger")
    with pytest.raises(fp.RegisteredDifferently, match="budget"):
        fp.protect("people.parquet", budget=2, ledger="x.ledger")
    with pytest.raises(fp.RegisteredDifferently, match="unit"):
        fp.protect("people.parquet", budget=1, unit="name", rows_per_unit=1, ledger="x.ledger")


def test_data_in_memory_needs_a_name(folder: Path) -> None:
    with pytest.raises(fp.ProgramError, match="name"):
        fp.protect(ROWS, budget=1, ledger="x.ledger")
    for wrong in (7, "", b"x"):
        with pytest.raises(fp.ProgramError):
            fp.protect(ROWS, name="a", budget=1, ledger=wrong)


def test_frames_of_the_same_records_are_the_same_data(folder: Path) -> None:
    frames: list[Any] = [ROWS, ROWS[::-1], pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.Table.from_pylist(ROWS)]
    assert len({contents.hash_of_records(frame) for frame in frames}) == 1
    others = [ROWS[:-1], [*ROWS, ROWS[0]], [{**r, "age": r["age"] + 0.5} for r in ROWS]]
    others += [[{"age": r["name"], "name": r["age"]} for r in ROWS], [{**ROWS[0], "age": None}, *ROWS[1:]]]
    assert len({contents.hash_of_records(frame) for frame in [ROWS, *others]}) == 6
    assert contents.hash_of_records([{"a": "1:x", "b": ""}]) != contents.hash_of_records(
        [{"a": "1:", "b": "x"}]
    )


def test_large_files_are_hashed_by_blocks_and_every_byte_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK", 1000)
    monkeypatch.setattr(files, "READ", 300)
    path, seen = tmp_path / "x.parquet", []
    data = bytes(range(256)) * 20
    hashes = set()
    for changed in (None, 0, 999, 1000, 5119):
        copy = bytearray(data)
        if changed is not None:
            copy[changed] ^= 1
        path.write_bytes(copy)
        hashes.add(files.hash_of_file(str(path), seen.append))
    assert len(hashes) == 5
    assert seen[:6] == [1000, 2000, 3000, 4000, 5000, 5120]


# ── append ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ledger", [None, "days.ledger"])
@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_query_over_all_blocks_charges_each(folder: Path, ledger: str | None, engine: str) -> None:
    monday = fp.protect(ROWS, name="days", budget=1, ledger=ledger, engine=engine)
    monday.noisy_count("1/2")
    week = monday.append(ROWS[:15], name="tuesday", budget=2)
    assert week.remaining == {"days": Fraction(1, 2), "tuesday": 2}
    assert abs(week.noisy_count("1/4").value - 55) < 200
    assert week.remaining == {"days": Fraction(1, 4), "tuesday": Fraction(7, 4)}
    week = week.append(ROWS[:5], name="wednesday", budget=3)
    with pytest.raises(fp.BudgetExceeded):
        week.noisy_count("1/2")
    assert week.where(lambda x: x.age > 3).price("1/8") == dict.fromkeys(week.remaining, Fraction(1, 8))
    assert week.remaining == {"days": Fraction(1, 4), "tuesday": Fraction(7, 4), "wednesday": 3}


def test_the_same_program_again_appends_nothing_new(folder: Path) -> None:
    def program() -> Any:
        data = fp.protect("people.parquet", budget=1, ledger="x.ledger")
        return data.append("tuesday.parquet", budget=1)

    program().noisy_count("1/2")
    assert program().remaining == {"people": Fraction(1, 2), "people/tuesday": Fraction(1, 2)}
    with pytest.raises(fp.SameData):
        program().append("people.parquet", budget=1)


def test_blocks_of_persons_keep_their_rows_per_person(folder: Path) -> None:
    rows = [{"who": i % 4, "v": i} for i in range(12)]
    first = fp.protect(rows, name="visits", unit="who", rows_per_unit=3, budget=9, ledger="x.ledger")
    grown = first.append([{"who": 9, "v": 1}], name="more", budget=9)
    assert grown.scaling_factor == 3
    grown.noisy_count(1)
    assert grown.remaining == {"visits": 6, "more": 6}


def test_append_wants_a_whole_table_with_the_same_columns(folder: Path) -> None:
    data = fp.protect(ROWS, budget=1)
    with pytest.raises(fp.BadTransformation):
        data.where(lambda x: x.age > 3).append(ROWS[:3], budget=1)
    with pytest.raises(fp.BadTransformation):
        fp.public(ROWS).append(ROWS[:3], budget=1)
    with pytest.raises(fp.ProgramError):
        data.append(pl.DataFrame({"other": [1]}), budget=1)


def test_tables_of_different_ledgers_do_not_mix(folder: Path) -> None:
    one = fp.protect(ROWS, name="a", budget=1, ledger="one.ledger")
    two = fp.protect(ROWS, name="a", budget=1, ledger="two.ledger")
    with pytest.raises(fp.BadTransformation):
        one.concat(two)
    assert one.concat(fp.public(ROWS)).noisy_count("1/2").value is not None


def test_a_ledger_in_postgresql_serves_too(folder: Path, postgres: Any) -> None:
    url = postgres.fresh()
    data = fp.protect("people.parquet", budget=1, ledger=url)
    data.noisy_count("1/2")
    assert data.remaining == Fraction(1, 2)
    assert main(["ledger", "verify", url]) == 0
    data.facts.system.record.close()
