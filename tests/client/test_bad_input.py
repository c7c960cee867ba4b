"""Bad input: a clear typed error, nothing charged, no data in the message."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq import _

SECRET = "Rumpelstiltskin"


@pytest.fixture
def data(engine: str) -> fp.Table:
    rows = [{"id": i, "age": 4711, "height": 1.5, "name": SECRET} for i in range(3)]
    table: fp.Table = fp.protect(rows, budget=1, engine=engine, name="people")
    return table


WRONG: dict[str, Callable[[fp.Table], Any]] = {
    "unknown column": lambda t: t.where(_.agee > 1),
    "wrong types": lambda t: t.where(_.name > 1),
    "unhashable key": lambda t: t.partition(_.id, keys=[[1], [2]]),
    "mixed keys": lambda t: t.partition(_.id, keys=[1, "a"]),
    "keys of another type": lambda t: t.partition(_.id, keys=["1", "2"]),
    "bool keys of an integer": lambda t: t.partition(_.id, keys=[True, False]),
    "duplicate keys": lambda t: t.partition(_.id, keys=[1, 1]),
    "duplicate float keys": lambda t: t.partition(_.height, keys=[1, 1.0]),
    "no keys": lambda t: t.partition(_.id, keys=[]),
    "keys left out": lambda t: t.partition(_.id),
    "too many keys": lambda t: t.partition(_.id, keys=range(10**9)),
    "too many candidates": lambda t: t.exponential_mechanism(0.1, range(10**9), lambda x, c: x.id == c),
    "no such cast": lambda t: t.where(lambda x: x.id.cast("bool")),
    "keys as text": lambda t: t.partition(_.name, keys="abc"),
    "partition by two": lambda t: t.partition(lambda x: (x.id, x.age), keys=[1]),
    "no bounds": lambda t: t.noisy_sum(0.1, _.age),
    "reversed bounds": lambda t: t.noisy_sum(0.1, _.age, bounds=(10, 0)),
    "NaN bounds": lambda t: t.noisy_average(0.1, _.age, bounds=(0, float("nan"))),
    "infinite bounds": lambda t: t.noisy_average(0.1, _.height, bounds=(0, float("inf"))),
    "bounds too wide": lambda t: t.noisy_sum(0.1, _.age, bounds=(0, 2**70)),
    "one bound": lambda t: t.noisy_sum(0.1, _.age, bounds=10),
    "text bounds": lambda t: t.noisy_sum(0.1, _.age, bounds=("0", "1")),
    "bool bounds": lambda t: t.noisy_sum(0.1, _.age, bounds=(False, True)),
    "bounds on text": lambda t: t.noisy_sum(0.1, _.name, bounds=(0, 1)),
    "quantile above 1": lambda t: t.noisy_quantile(0.1, 1.5, _.age, bounds=(0, 1)),
    "quantile NaN": lambda t: t.noisy_quantile(0.1, float("nan"), _.age, bounds=(0, 1)),
    "quantile below 0": lambda t: t.noisy_quantile(0.1, -0.1, _.age, bounds=(0, 1)),
    "quantile as text": lambda t: t.noisy_quantile(0.1, "0.5", _.age, bounds=(0, 1)),
    "one of several quantiles above 1": lambda t: t.noisy_quantile(0.1, [0.5, 2], _.age, bounds=(0, 1)),
    "a quantile in a list in a list": lambda t: t.noisy_quantile(0.1, [[0.5]], _.age, bounds=(0, 1)),
    "no quantiles": lambda t: t.noisy_quantile(0.1, [], _.age, bounds=(0, 1)),
    "quantiles as text": lambda t: t.query(0.1, fp.quantiles("12", _.age, bounds=(0, 1))),
    "too many quantiles": lambda t: t.noisy_quantile(
        0.1, [Fraction(i, 2000) for i in range(1001)], _.age, bounds=(0, 1)
    ),
    "order statistic above 1": lambda t: t.noisy_order_statistic(0.1, 1.1, _.age, bounds=(0, 1)),
    "median without bounds": lambda t: t.noisy_median(0.1, _.age),
    "average with reversed bounds": lambda t: t.noisy_average(0.1, _.age, bounds=(1, 0)),
    "variance without bounds": lambda t: t.noisy_variance(0.1, _.age),
    "variance of text": lambda t: t.noisy_variance(0.1, _.name, bounds=(0, 1)),
    "median of text": lambda t: t.noisy_median(0.1, _.name, bounds=(0, 1)),
    "bounds of text": lambda t: t.noisy_bounds(0.1, _.name),
    "ranges of text": lambda t: t.noisy_ranges(0.1, _.name, bounds=(0, 1)),
    "ranges without bounds": lambda t: t.noisy_ranges(0.1, _.age),
    "cdf without bounds": lambda t: t.noisy_cdf(0.1, _.age),
    "too many integers for bins": lambda t: t.noisy_histogram(0.1, _.age, bounds=(0, 2**40)),
    "too many bins": lambda t: t.noisy_histogram(0.1, _.age, bounds=(0, 1), bins=10**12),
    "half a bin": lambda t: t.noisy_cdf(0.1, _.age, bounds=(0, 1), bins=0.5),
    "bins between equal bounds": lambda t: t.noisy_cdf(0.1, _.age, bounds=(1, 1), bins=3),
    "one edge": lambda t: t.noisy_ranges(0.1, _.age, bins=[1]),
    "a NaN edge": lambda t: t.noisy_ranges(0.1, _.age, bins=[1, float("nan")]),
    "scores with reversed bounds": lambda t: t.exponential_mechanism(
        0.1, [1], lambda x, c: x.age, bounds=(1, 0)
    ),
    "mode without candidates": lambda t: t.noisy_mode(0.1, _.name),
    "mode of nothing": lambda t: t.noisy_mode(0.1, _.name, []),
    "mode of twins": lambda t: t.noisy_mode(0.1, _.name, ["a", "a"]),
    "top without candidates": lambda t: t.noisy_top(0.1, 1, _.name),
    "top of nothing": lambda t: t.noisy_top(0.1, 1, _.name, []),
    "top of twins": lambda t: t.noisy_top(0.1, 1, _.name, ["a", "a"]),
    "top of numbers that are the same": lambda t: t.noisy_top(0.1, 1, _.height, [1, 1.0]),
    "top of other types": lambda t: t.noisy_top(0.1, 1, _.name, ["a", 1]),
    "top of null": lambda t: t.noisy_top(0.1, 1, _.name, ["a", None]),
    "top of too few": lambda t: t.noisy_top(0.1, 3, _.name, ["a", "b"]),
    "top 0": lambda t: t.noisy_top(0.1, 0, _.name, ["a", "b"]),
    "top half": lambda t: t.noisy_top(0.1, 0.5, _.name, ["a", "b"]),  # type: ignore[arg-type]
    "top with bounds": lambda t: t.noisy_top(0.1, 1, _.name, ["a"], bounds=(0, 1)),
    "top scores of too few": lambda t: t.noisy_top(0.1, 3, lambda x, c: x.age == c, [1, 2]),
    "top scores of twins": lambda t: t.noisy_top(0.1, 1, lambda x, c: x.age == c, [1, 1]),
    "top scores in a query": lambda t: t.query(0.1, fp.top(1, lambda x, c: x.age == c, [1, 2])),
    "top scores by part": lambda t: t.query(
        0.1, fp.top(1, lambda x, c: x.age == c, [1, 2]), by=_.age > 1, keys=[True]
    ),
    "top scores of text": lambda t: t.noisy_top(0.1, 1, lambda x, c: x.name, [1, 2]),
    "proportion of a number": lambda t: t.noisy_proportion(0.1, _.age),
    "proportion of what": lambda t: t.noisy_proportion(0.1),
    "minimum without bounds": lambda t: t.noisy_min(0.1, _.age),
    "minimum of text": lambda t: t.noisy_min(0.1, _.name, bounds=(0, 1)),
    "maximum beyond nobody": lambda t: t.noisy_max(0.1, _.age, bounds=(0, 1), beyond=0),
    "maximum at the end of integers": lambda t: t.noisy_max(0.1, _.age, bounds=(-(2**63), 0)),
    "covariance without bounds": lambda t: t.noisy_covariance(0.1, _.age, _.height),
    "covariance with one pair of bounds": lambda t: t.noisy_covariance(0.1, _.age, _.height, bounds=(0, 1)),
    "covariance with bounds of one": lambda t: t.noisy_covariance(0.1, _.age, _.height, ((0, 1), None)),
    "covariance with text": lambda t: t.noisy_covariance(0.1, _.age, _.name, ((0, 1), (0, 1))),
    "covariance with what": lambda t: t.noisy_covariance(0.1, _.age, None, ((0, 1), (0, 1))),
    "correlation within a point": lambda t: t.noisy_correlation(0.1, _.age, _.height, ((0, 1), (2, 2))),
    "correlation within reversed bounds": lambda t: t.noisy_correlation(
        0.1, _.age, _.height, ((0, 1), (2, 1))
    ),
    "correlation too wide": lambda t: t.noisy_correlation(0.1, _.age, _.height, ((0, 1), (-1e308, 1e308))),
    "regression on nothing": lambda t: t.noisy_regression(0.1, _.age, [], bounds={"age": (0, 1)}),
    "regression on None": lambda t: t.noisy_regression(0.1, _.age, None, bounds={"age": (0, 1)}),
    "regression on itself": lambda t: t.noisy_regression(0.1, _.age, [_.age], bounds={"age": (0, 1)}),
    "regression on twins": lambda t: t.noisy_regression(
        0.1, _.age, [_.height, _.height], bounds={"age": (0, 1), "height": (0, 2)}
    ),
    "regression without bounds": lambda t: t.noisy_regression(0.1, _.age, [_.height]),
    "regression without bounds of a predictor": lambda t: t.noisy_regression(
        0.1, _.age, [_.height], bounds={"age": (0, 1)}
    ),
    "regression without bounds of y": lambda t: t.noisy_regression(
        0.1, _.age, [_.height], bounds={"height": (0, 1)}
    ),
    "regression with bounds of others": lambda t: t.noisy_regression(
        0.1, _.age, [_.height], bounds={"age": (0, 1), "height": (0, 1), "id": (0, 1)}
    ),
    "regression with bounds in a row": lambda t: t.noisy_regression(
        0.1,
        _.age,
        [_.height],
        bounds=((0, 1), (0, 1)),  # type: ignore[arg-type]
    ),
    "regression within a point": lambda t: t.noisy_regression(
        0.1, _.age, [_.height], bounds={"age": (0, 1), "height": (1, 1)}
    ),
    "regression on text": lambda t: t.noisy_regression(0.1, _.age, [_.name], bounds={"age": (0, 1)}),
    "regression on too many": lambda t: t.noisy_regression(
        0.1,
        _.age,
        {f"x{i}": _.height * i for i in range(1, 30)},
        bounds={"age": (0, 1)} | {f"x{i}": (0, 1) for i in range(1, 30)},
    ),
    "distinct count of what": lambda t: t.noisy_distinct_count(0.1),
    "noise beyond floats": lambda t: t.noisy_sum("1e-18", _.height, bounds=(0, 1e299)),
    "no candidates": lambda t: t.exponential_mechanism(0.1, [], lambda x, c: x.id == c),
    "duplicate candidates": lambda t: t.exponential_mechanism(0.1, [1, 1], lambda x, c: x.id == c),
    "text candidates": lambda t: t.exponential_mechanism(0.1, "ab", lambda x, c: x.name == c),
    "a score that is text": lambda t: t.exponential_mechanism(0.1, [1], lambda x, c: x.name),
    "ε of 0": lambda t: t.noisy_count(0),
    "negative ε": lambda t: t.noisy_count(-1),
    "NaN ε": lambda t: t.noisy_count(float("nan")),
    "bool ε": lambda t: t.noisy_count(True),
    "no ε": lambda t: t.noisy_count(None),
    "huge ε text": lambda t: t.noisy_count("1e999999999"),
    "a query that is none": lambda t: t.query(0.1, "count"),
    "a dict without by": lambda t: t.query(0.1, {1: fp.count()}),
    "keys without by": lambda t: t.query(0.1, fp.count(), keys=[1]),
    "keys twice": lambda t: t.query(0.1, {1: fp.count()}, by=_.id, keys=[1]),
    "a part without a query": lambda t: t.query(0.1, {1: None}, by=_.id),  # type: ignore[dict-item]
    "of what": lambda t: t.noisy_sum(0.1, bounds=(0, 1)),
    "take 0": lambda t: t.take(0),
    "take half": lambda t: t.take(1.5),  # type: ignore[arg-type]
    "at most 0": lambda t: t.select_many(lambda x: [x.id], at_most=0),
    "no such truncation": lambda t: t.join(t, on="id", left=3),  # type: ignore[arg-type]
    "first 0": lambda t: t.join(t, on="id", left=fp.first(0)),
    "no such key": lambda t: t.join(t, on="ids"),
    "keys of different types": lambda t: t.join(t, on=("id", "name")),
    "keys of different numbers": lambda t: t.join(t, on=(["id"], ["id", "age"])),
    "concat with rows": lambda t: t.concat([{"id": 1}]),  # type: ignore[arg-type]
    "other columns": lambda t: t.concat(t.select(_.age)),
    "a float sum of groups": lambda t: t.group_by(_.id).select(lambda g: g.sum(lambda x: x.height)),
    "no such aggregate": lambda t: t.group_by(_.id).select(lambda g: g.median(lambda x: x.height)),
    "a group is no record": lambda t: t.group_by(_.id).select(lambda g: g),
    "no bins": lambda t: t.noisy_histogram(0.1, _.height, bounds=(0, 1)),
    "falling edges": lambda t: t.noisy_histogram(0.1, _.age, bins=[3, 2, 1]),
    "bins of text": lambda t: t.noisy_histogram(0.1, _.name, bounds=(0, 1)),
    "rename nothing": lambda t: t.rename(agee="years"),
    "rename onto another": lambda t: t.rename(age="id"),
    "no columns": lambda t: t.with_columns(),
    "not a budget": lambda t: t.with_budget(0.5),  # type: ignore[arg-type]
    "len": len,
    "iteration": list,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_program_s_mistake_costs_nothing_and_tells_nothing(data: fp.Table, name: str) -> None:
    with pytest.raises(fp.ProgramError) as wrong:
        WRONG[name](data)
    message = str(wrong.value)
    assert message
    assert SECRET not in message
    assert "4711" not in message
    assert data.remaining == 1
    assert data.noisy_count(1).charged == 1


def test_a_query_that_fails_midway_leaves_nothing_charged(data: fp.Table) -> None:
    with pytest.raises(fp.ProgramError):
        data.query(0.1, {0: fp.count(), 1: fp.sum(_.name, bounds=(0, 1))}, by=_.id)
    assert data.remaining == 1


def test_tables_of_different_engines_cannot_be_mixed() -> None:
    a = fp.protect([{"id": 1}], budget=1, engine="reference")
    b = fp.protect([{"id": 1}], budget=1, engine="duckdb")
    for mix in (a.concat, a.union, lambda t: a.join(t, on="id"), lambda t: a.group_join(t, on="id").keys()):
        with pytest.raises(fp.ProgramError, match="different systems"):
            mix(b)
    public = fp.public([{"id": 1}])
    assert a.concat(public).scaling_factor == b.concat(public).scaling_factor == 1


def test_a_csv_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b"\xff\xfe,b\n1,2\n")
    with pytest.raises(fp.ProgramError):
        fp.protect(str(path), budget=1)


def test_a_parquet_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"not parquet")
    with pytest.raises(fp.ProgramError):
        fp.protect(str(path), budget=1)


@pytest.mark.parametrize("source", ["nowhere.parquet", "nowhere/*.csv", "people.xlsx", 17, [1, 2]])
def test_data_that_cannot_be_read_is_refused(source: object) -> None:
    with pytest.raises(fp.ProgramError):
        fp.protect(source, budget=1)


def test_a_refused_root_leaves_its_name_free(engine: str) -> None:
    with pytest.raises(fp.ProgramError):
        fp.protect([{"a": 1}], budget=1, name="again", columns={"b": fp.Column(bounds=(0, 1))}, engine=engine)
    data = fp.protect([{"a": 1}], budget=1, name="again", engine=engine)
    assert data.remaining == 1


@pytest.mark.parametrize(
    "options",
    [
        {"schema": {"age": "int32"}},
        {"schema": {}},
        {"schema": "age"},
        {"schema": {"age": "string"}},
        {"columns": {"agee": fp.Column(bounds=(0, 1))}},
        {"columns": {"age": (0, 1)}},
        {"columns": {"age": fp.Column(keys=["a"])}},
        {"engine": "oracle"},
        {"ledger": "people.ledger"},
        {"name": 17},
    ],
)
def test_protect_refuses_options_that_make_no_sense(engine: str, options: dict[str, Any]) -> None:
    with pytest.raises(fp.ProgramError):
        fp.protect([{"age": 1}], budget=1, **{"engine": engine, **options})


def test_metadata_must_make_sense() -> None:
    with pytest.raises(fp.BadQuery):
        fp.Column(bounds=(1, 0))


def test_an_empty_table_needs_a_schema(engine: str) -> None:
    with pytest.raises(fp.ProgramError):
        fp.protect([], budget=1, engine=engine)
    empty = fp.protect([], budget=10**6, schema={"age": "int64"}, engine=engine)
    assert empty.noisy_count(1000).value == 0
    assert 0 <= empty.noisy_average(1000, _.age, bounds=(0, 110)).value <= 110


def test_attributes_of_other_libraries_are_pointed_to_ours(data: fp.Table) -> None:
    with pytest.raises(AttributeError, match="where"):
        data.filter(_.age > 1)
    with pytest.raises(AttributeError, match="noisy_count"):
        data.noisy_cont(1)


def test_the_price_of_a_bad_epsilon_is_refused(data: fp.Table) -> None:
    with pytest.raises(fp.BadEpsilon):
        data.price(0)
    assert data.price("1/3") == Fraction(1, 3)


def test_a_column_of_a_table_is_pointed_to_a_function(data: fp.Table) -> None:
    for spelled in (lambda: data.age, lambda: data["age"]):
        with pytest.raises((AttributeError, fp.FpinqError), match=r"lambda x: x\.age"):
            spelled()
    with pytest.raises(AttributeError) as unknown:
        data.charge  # noqa: B018
    assert "'_" not in str(unknown.value)


def test_a_column_that_no_row_has_is_a_misspelling_not_a_lot_of_nulls(engine: str) -> None:
    with pytest.raises(fp.BadData, match="did you mean 'agee'"):
        fp.protect([{"agee": 1}], schema={"age": "int64"}, budget=1, engine=engine)
    data = fp.protect([{"age": 1, "city": "x"}], budget=1, engine=engine)
    with pytest.raises(fp.BadData, match="no row has a column 'city'"):
        data.append([{"age": 2}], budget=1, name="more")
    fp.protect([{"age": 1}, {}], schema={"age": "int64"}, budget=1, engine=engine)
