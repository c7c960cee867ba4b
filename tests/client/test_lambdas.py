"""Lambdas are called once, on a symbolic row, and say how to spell what they cannot say."""

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

import fpinq as fp
from client.small_data import PLENTY, SURE
from fpinq import _

ROW = {
    "i": 7,
    "f": 2.25,
    "s": " Abc ",
    "b": True,
    "day": date(2024, 2, 29),
    "at": datetime(2024, 2, 29, 13, 30),
    "gone": None,
    "first name": "Ada",
}
SCHEMA = {
    "i": "int64",
    "f": "float64",
    "s": "string",
    "b": "bool",
    "day": "date",
    "at": "timestamp",
    "gone": "int64",
    "first name": "string",
}


@pytest.fixture
def one(engine: str) -> fp.Table:
    table: fp.Table = fp.protect([ROW], budget=PLENTY, engine=engine, schema=SCHEMA)
    return table


TRUE: list[Callable[[Any], Any]] = [
    lambda x: abs(-x.i) == 7,
    lambda x: x.i // 2 == 3,
    lambda x: x.i % 4 == 3,
    lambda x: x.i / 2 == 3.5,
    lambda x: x.i + x.f == 9.25,
    lambda x: 1 - x.f == -1.25,
    lambda x: 2 * x.i == 14,
    lambda x: x.i**2 == 49,
    lambda x: x.f.sqrt() == 1.5,
    lambda x: (x.f * 0).exp() == 1,
    lambda x: (x.f - 1.25).log() == 0,
    lambda x: x.f.power(2) == 5.0625,
    lambda x: x.f.round() == 2,
    lambda x: x.f.floor() == 2,
    lambda x: x.f.ceil() == 3,
    lambda x: x.i.round() == 7,
    lambda x: x.f.sign() == 1,
    lambda x: x.i.clip(0, 5) == 5,
    lambda x: x.i.clip(0, 5.5) == 5.5,
    lambda x: x.f.cast("int64") == 2,
    lambda x: x.i.cast("string") == "7",
    lambda x: x.s.strip().lower() == "abc",
    lambda x: x.s.upper() == " ABC ",
    lambda x: x.s.length() == 5,
    lambda x: x.s.substring(1, 2) == "Ab",
    lambda x: x.s.contains("bc") & x.s.starts_with(" ") & x.s.ends_with("c "),
    lambda x: x.s + "!" == " Abc !",
    lambda x: "!" + x.s == "! Abc ",
    lambda x: x.i.is_in([1, 7]),
    lambda x: x.i.is_in({7.0, 8.5}),
    lambda x: x.gone.is_null(),
    lambda x: x.gone.fill_null(3) == 3,
    lambda x: fp.if_else(x.i > 3, x.i, 0.5) == 7.0,
    lambda x: fp.if_else(x.gone > 3, None, x.i) == 7,
    lambda x: (x.i > 3) & ~(x.f > 3) | x.b,
    lambda x: x.b ^ (x.i > 9),
    lambda x: x.b == True,  # noqa: E712  a column, not a truth value
    lambda x: x.day.year() + x.day.month() + x.day.day() == 2024 + 2 + 29,
    lambda x: x.day.weekday() == 3,
    lambda x: x.at.hour() == 13,
    lambda x: x.day > date(2024, 1, 1),
    lambda x: x.at > date(2024, 1, 1),
    lambda x: x.day < datetime(2024, 2, 29, 12),
    lambda x: x.at - x.day == 13.5 * 3600,
    lambda x: (x.day - date(2024, 2, 1)) == 28,
    lambda x: x["first name"] == "Ada",
    lambda x: np.int64(3) < x.i,
    lambda x: x.i == np.int64(7),
    _.i > 6,
    (_.s.strip() + "!") == "Abc!",
    ~(_.i > 9) & (_["first name"] == "Ada"),
    fp.if_else(_.i > 3, _.i, 0) == 7,
    _.i > 3,
    abs(_.i) == 7,
    "b",
]


@pytest.mark.parametrize("f", TRUE)
def test_an_expression_means_what_python_means(one: fp.Table, f: Any) -> None:
    assert one.where(f).noisy_count(SURE).value == 1


WRONG: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: x.i > 1 and x.f < 2, "&"),
    (lambda x: x.i > 1 or x.f < 2, "|"),
    (lambda x: not x.b, "~"),
    (lambda x: x.i if x.b else x.f, "if_else"),
    (lambda x: 1 < x.i < 3, "1 < x.a"),
    (lambda x: bool(x.b), "if_else"),
    (lambda x: x.i in [1, 2], "is_in"),
    (lambda x: "a" in x.s, "contains"),
    (lambda x: [c for c in x.s], "split"),  # noqa: C416  iteration is the point
    (lambda x: len(x.s) > 1, "length"),
    (lambda x: int(x.f) > 1, "cast"),
    (lambda x: float(x.i) > 1, "cast"),
    (lambda x: x.s[0] == "a", "substring"),
    (lambda x: round(x.f, 2) == 1, "round"),
    (lambda x: x.i == None, "is_null"),  # noqa: E711
    (lambda x: x.i + None > 1, "fill_null"),
    (lambda x: x.i & (x.f > 2), "brackets"),
    (lambda x: x.i, "condition"),
    (lambda x: True, "constant"),
    (lambda x: None, "None"),
    (lambda x: (x.b, x.b), "dict"),
    (lambda x: x, "column"),
    (lambda x: x.s > 3, "string"),
    (lambda x: x.s.sqrt() > 3, "string"),
    (lambda x: x.i.lowr() == "a", "lower"),
    (lambda x: x.i.is_in([]), "one or more"),
    (lambda x: x.i.is_in(["a"]), "is_in"),
    (lambda x: x.i.cast("int32") > 1, "int64"),
    (lambda x: x.i > 2**64, "64 bits"),
    (lambda x: x.i == object(), "object"),
    (lambda x: 1 / 0, "ZeroDivisionError"),
    (lambda: 1, "TypeError"),
    (17, "lambda"),
]


@pytest.mark.parametrize(("f", "hint"), WRONG)
def test_what_a_row_cannot_do_is_refused_with_the_right_spelling(one: fp.Table, f: Any, hint: str) -> None:
    before = one.remaining
    with pytest.raises(fp.ProgramError, match=hint.replace("|", r"\|")):
        one.where(f)
    assert one.remaining == before


def test_a_column_without_its_row_is_said_to_be_one(one: fp.Table) -> None:
    with pytest.raises(fp.BadExpression, match=r"i is a column of a row: write x\.i$"):
        one.where(eval("lambda x: i > 1", {}))
    with pytest.raises(fp.BadExpression, match="NameError"):
        one.where(eval("lambda x: nothing > x.i", {}))


def test_an_unknown_column_is_found_with_the_nearest_name(one: fp.Table) -> None:
    with pytest.raises(fp.UnknownColumn, match="did you mean 'first name'") as wrong:
        one.where(lambda x: x["frst name"] == "Ada")
    assert wrong.value.column == "frst name"


def test_a_lambda_is_called_once(one: fp.Table) -> None:
    calls: list[Any] = []
    table = one.where(lambda x: calls.append(x) or x.b)  # type: ignore[func-returns-value]
    table.noisy_count(SURE)
    table.noisy_sum(SURE, lambda x: calls.append(x) or x.i, bounds=(0, 10))  # type: ignore[func-returns-value]
    assert len(calls) == 2
    groups = one.group_by(lambda x: calls.append(x) or x.i)  # type: ignore[func-returns-value]
    groups.where(lambda g: calls.append(g) or g.count() > 0).noisy_count(SURE)  # type: ignore[func-returns-value]
    assert len(calls) == 4


def test_a_row_kept_from_another_lambda_is_refused(one: fp.Table) -> None:
    kept: list[Any] = []
    one.where(lambda x: kept.append(x) or x.b)  # type: ignore[func-returns-value]
    for f in (lambda x: kept[0].b, lambda x: kept[0].b & x.b):
        with pytest.raises(fp.BadExpression):
            one.where(f)


def test_a_query_inside_a_lambda_is_refused_and_costs_nothing(one: fp.Table) -> None:
    before = one.remaining
    for f in (
        lambda x: x.i > one.noisy_count(1).value,
        lambda x: x.i > len(one.partition(_.b, keys=[True])),
        lambda x: x.i > one.remaining,
        lambda x: one.where(_.b) and x.b,
    ):
        with pytest.raises(fp.BadExpression, match="cannot use a table"):
            one.where(f)
    assert one.remaining == before


def test_an_answer_can_be_used_in_a_lambda(one: fp.Table) -> None:
    answer = one.noisy_count(SURE)
    assert one.where(lambda x: x.i > answer).noisy_count(SURE).value == 1
    assert one.where(lambda x: answer < x.f).noisy_count(SURE).value == 1
    assert one.where(lambda x: x.i - answer == 6).noisy_count(SURE).value == 1


def test_an_expression_too_deep_or_too_large_is_refused(one: fp.Table) -> None:
    def deep(x: Any) -> Any:
        value = x.i
        for _i in range(200):
            value = value + 1
        return value > 0

    def large(x: Any) -> Any:
        value = x.i
        for _i in range(20):
            value = value + value
        return value > 0

    for f in (deep, large):
        with pytest.raises(fp.BadExpression, match="too large"):
            one.where(f)


def test_columns_may_have_any_name(engine: str) -> None:
    names = ["keys", "count", "_hidden", "where", "a.b", "class", 'quo"te', "é", "value"]
    table = fp.protect([dict.fromkeys(names, 1)], budget=PLENTY, engine=engine)
    for name in names:
        assert table.where(lambda x, name=name: x[name] == 1).noisy_count(SURE).value == 1
    assert (
        table.where(lambda x: (x.keys == 1) & (x.count == 1) & (x._hidden == 1)).noisy_count(SURE).value == 1
    )


def test_expressions_are_shown_as_they_are_written(one: fp.Table) -> None:
    def shown(f: Any) -> str:
        table = one.where(f)
        return table.facts.made.label.removeprefix("where ")

    assert shown(lambda x: (x.i > 1) & (x.f < 2)) == "(i > 1) & (f < 2.0)"
    assert shown(lambda x: (x.i + 1) * 2 > x.i - (x.i - 1)) == "(i + 1) * 2 > i - (i - 1)"
    assert shown(lambda x: ~x.s.contains("a")) == "~s.contains('a')"
    assert shown(lambda x: x.i.is_in([1, 2])) == "i.is_in([1, 2])"


def test_records_take_every_shape(one: fp.Table) -> None:
    assert dict(one.select(lambda x: x).schema) == dict(one.schema)
    assert dict(one.select({"a": _.i, "b": _.f * 2}).schema) == {"a": "int64", "b": "float64"}
    assert dict(one.select({"a": "i"}).schema) == {"a": "int64"}
    many = one.select_many(lambda x: [{"v": x.i}, {"v": x.f}], at_most=2)
    assert dict(many.schema) == {"v": "float64"}
    for f in (
        lambda x: {},
        lambda x: {"a": None},
        lambda x: {1: x.i},
        lambda x: {"a": [x.i]},
        lambda x: [x.i],
    ):
        with pytest.raises(fp.ProgramError):
            one.select(f)
    for f in (lambda x: [], lambda x: x.i, lambda x: [x.i, {"a": x.i}], lambda x: None):
        with pytest.raises(fp.ProgramError):
            one.select_many(f, at_most=2)
