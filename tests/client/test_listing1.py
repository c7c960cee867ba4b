"""DESIGN's program, word for word."""

from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import fpinq as fp


@pytest.fixture
def people_file(tmp_path: Path) -> str:
    path = tmp_path / "people.parquet"
    duckdb.sql("SELECT (range * 37) % 90 AS age, range % 2 AS gender FROM range(1000)").write_parquet(
        str(path)
    )
    return str(path)


def test_listing_1_runs_and_spends_exactly_the_budget(people_file: str) -> None:
    data = fp.protect(people_file, budget=1)
    adults = data.where(lambda x: x.age > 17)
    parts = adults.partition(lambda x: x.gender, keys=[0, 1])
    for part in parts.values():
        answer = part.noisy_average(0.5, lambda x: x.age, bounds=(0, 110))
        assert 0 <= answer.value <= 110
    assert data.remaining == Fraction(1, 2)
    data.noisy_average(0.5, lambda x: x.age, bounds=(0, 110))
    assert data.remaining == 0
    with pytest.raises(fp.BudgetExceeded) as refused:
        data.noisy_count(0.1)
    assert refused.value.price == Fraction(1, 10)
    assert refused.value.remaining == 0
    assert data.remaining == 0


def test_the_answers_of_listing_1_are_about_right(people_file: str) -> None:
    data = fp.protect(people_file, budget=10_000)
    ages = [i * 37 % 90 for i in range(1000)]
    answer = data.noisy_average(1000, lambda x: x.age, bounds=(0, 110))
    assert answer.value == pytest.approx(sum(ages) / 1000, abs=0.01)


def test_ten_queries_at_a_tenth_fit_a_budget_of_one(people_file: str) -> None:
    data = fp.protect(people_file, budget=1)
    for _ in range(10):
        data.noisy_count(0.1)
    assert data.remaining == 0


def test_a_glob_is_one_table(tmp_path: Path) -> None:
    for i in range(3):
        duckdb.sql("SELECT range AS a FROM range(10)").write_parquet(str(tmp_path / f"part{i}.parquet"))
    data = fp.protect(str(tmp_path / "part*.parquet"), budget=10_000)
    assert data.noisy_count(1000).value == 30


def test_a_csv_file_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,name\n1,a\n2,b\n")
    data = fp.protect(tmp_path / "people.csv", budget=10_000)
    assert dict(data.schema) == {"age": "int64", "name": "string"}
    assert data.noisy_sum(1000, lambda x: x.age, bounds=(0, 10)).value == 3


def test_frames_of_every_kind_are_tables() -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    columns = {"age": [1, 2, None], "name": ["a", None, "c"], "height": [1.5, 2.5, 3.5]}
    frames = [
        pandas.DataFrame({**columns, "age": pandas.array(columns["age"], dtype="Int64")}),
        polars.DataFrame(columns),
        pyarrow.table(columns),
        [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    ]
    for frame in frames:
        data = fp.protect(frame, budget=10**9)
        assert dict(data.schema) == {"age": "int64", "name": "string", "height": "float64"}
        assert data.noisy_sum(10**6, lambda x: x.age, bounds=(0, 9)).value == 3
        assert data.where(lambda x: x.name.is_null()).noisy_count(10**6).value == 1
