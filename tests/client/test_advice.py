"""Whoever comes from another library is told what to write instead."""

import math
import sys
import traceback
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pytest

import fpinq as fp
from client.small_data import PEOPLE, SURE
from fpinq import _
from fpinq.client import edge
from fpinq.client.advice import instead


def words(call: Callable[[], object]) -> str:
    with pytest.raises((fp.ProgramError, AttributeError)) as wrong:
        call()
    return str(wrong.value)


@pytest.mark.parametrize(
    ("tried", "meant"),
    [
        ("noisy_mean", "noisy_average"),
        ("noisy_std", "noisy_standard_deviation"),
        ("noisy_var", "noisy_variance"),
        ("std", "noisy_standard_deviation"),
        ("mean", "noisy_average"),
        ("max", "noisy_"),
        ("min", "noisy_"),
        ("nunique", "noisy_distinct_count"),
        ("value_counts", "noisy_histogram"),
        ("groupby", "group_by"),
        ("noisy_stdev", "noisy_standard_deviation"),
        ("noisy_total", "noisy_sum"),
        ("crosstab", "pivot()"),
        ("aggregate", "query"),
        ("dropna", "is_null"),
        ("fillna", "fill_null"),
        ("drop", "select"),
        ("apply", "select"),
        ("noisy_cuont", "noisy_count"),
    ],
)
def test_a_statistic_by_another_name_is_found(people: fp.Table, tried: str, meant: str) -> None:
    said = words(lambda: getattr(people, tried))
    assert meant in said
    assert "median" not in said  # close in letters, another statistic


def test_what_is_advised_exists() -> None:
    from fpinq.client import advice

    for said in (*advice._TRANSFORMATIONS.values(), *advice._STATISTICS.values()):
        assert hasattr(fp.Table, said.split()[0].strip(",")), said


@pytest.mark.parametrize("tried", ["head", "tail", "show", "sample", "collect", "to_pandas", "iloc"])
def test_records_cannot_be_had_by_taking_a_few(people: fp.Table, tried: str) -> None:
    said = words(lambda: getattr(people, tried))
    assert "private" in said
    assert "take" not in said


def test_every_public_method_is_its_own_advice() -> None:
    public = [name for name in dir(fp.Table) if not name.startswith("_")]
    for name in public:
        assert instead(name, public) in ("", f"; did you mean {name!r}?") or name in instead(name, public)


@pytest.mark.parametrize(
    "f", [lambda x: math.log(x.age), lambda x: math.sqrt(x.age), lambda x: np.log(x.age)]
)
def test_functions_of_math_are_methods_of_the_column(people: fp.Table, f: Any) -> None:
    assert "x.a.log()" in words(lambda: people.noisy_average(1, f, bounds=(0, 9)))


@pytest.mark.parametrize("first", ["age", _.age, lambda x: x.age, fp.count(), ["age"], {"a": 1}])
def test_epsilon_comes_first_and_whoever_puts_it_last_is_told(people: fp.Table, first: Any) -> None:
    before = people.remaining
    for ask in (people.noisy_average, people.noisy_median, people.query):
        assert "ε comes first" in words(lambda ask=ask: ask(first, 0.1))  # type: ignore[misc]
    assert people.remaining == before


def test_every_question_says_so(people: fp.Table) -> None:
    for name in (name for name in dir(people) if name.startswith("noisy_")):
        method = getattr(people, name)
        needed = [p for p in signature(method).parameters.values() if p.default is p.empty]
        others: list[object] = [0.1, *["city"] * 3][: max(len(needed) - 1, 0 if name == "noisy_count" else 1)]
        assert "ε comes first" in words(lambda m=method, o=others: m("age", *o)), name  # type: ignore[misc]


@pytest.mark.parametrize("first", ["1e999", -1, float("nan"), None, True])
def test_a_bad_epsilon_in_its_place_is_not_told_to_come_first(people: fp.Table, first: Any) -> None:
    assert "comes first" not in words(lambda: people.noisy_count(first))


def test_several_names_select_these_columns(people: fp.Table) -> None:
    assert dict(people.select("age", "city").schema) == {"age": "int64", "city": "string"}
    assert dict(people.select(["city", "age"]).schema) == {"city": "string", "age": "int64"}
    assert people.select("age").noisy_sum(SURE, "age", bounds=(0, 110)).value == 210


def test_a_name_selects_the_column_of_that_name_and_a_function_the_column_value(people: fp.Table) -> None:
    assert list(people.select("age").schema) == ["age"]
    assert list(people.select(_.age).schema) == ["value"]


@pytest.mark.parametrize("wrong", [("age", _.city), ("age", "age"), ("agee",), ([_.age, "city"],), ([],)])
def test_names_that_are_none_are_refused(people: fp.Table, wrong: Any) -> None:
    with pytest.raises(fp.ProgramError):
        people.select(*wrong)


def test_one_expression_and_a_dict_are_not_asked_for_in_the_same_breath(people: fp.Table) -> None:
    said = words(lambda: people.noisy_sum(1, lambda x: {"a": x.age, "b": x.age}, bounds=(0, 1)))
    assert "one expression" in said
    assert "or a dict" not in said
    assert '{"a": x.a, "b": x.b}' in words(lambda: people.select(lambda x: (x.age, x.city)))
    assert "one expression" in words(lambda: people.select(lambda x: {"a": [x.age]}))


def test_a_count_of_groups_says_that_it_counts_groups(people: fp.Table) -> None:
    counted = people.group_by("city").noisy_count(SURE)
    assert counted == 4
    assert str(counted) == "4 ± 0 groups by city"
    assert "query(ε, fp.count(), by=f, keys=[…])" in repr(counted)
    assert "by age // 20" in str(people.group_by(_.age // 20).noisy_count(SURE))
    assert "by a, b" in str(people.group_by({"a": "age", "b": "city"}).noisy_count(SURE))
    assert "by=" in words(lambda: people.group_by("city").mean)


def test_a_statistic_of_a_column_over_groups_is_told_where_to_ask(people: fp.Table) -> None:
    said = words(lambda: people.group_by("city").noisy_average(1, "age", bounds=(0, 110)))
    assert "table.query(ε, fp.average('age'), by=f, keys=[…])" in said
    assert "lambda g: g.average(lambda x: x.age)" in said


# ── where a mistake is shown ─────────────────────────────────────────────────────────


def shown(call: Callable[[], object]) -> list[str]:
    """The files that Python shows for an error, outermost first."""
    try:
        call()
    except Exception as error:
        return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    raise AssertionError("nothing was wrong")


MISTAKES: dict[str, Callable[[fp.Table], object]] = {
    "an unknown column": lambda t: t.where(lambda x: x.agee > 1),
    "no bounds": lambda t: t.noisy_average(0.1, "age"),
    "too expensive": lambda t: t.noisy_count(10**17),
    "a key of another type": lambda t: t.partition("age", keys=["a"]),
    "groups": lambda t: t.group_by("age").noisy_sum(1, lambda g: g.sum(_.agee)),
    "no data": lambda t: fp.protect("nowhere.parquet", budget=1),
    "no server": lambda t: fp.connect("ftp://a", token="fpq_a"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_shown_with_one_line_of_fpinq(name: str) -> None:
    people = fp.protect(PEOPLE, budget=1, engine="reference")
    files = shown(lambda: MISTAKES[name](people))
    assert [file for file in files if file != __file__] == [edge.__file__]


def test_what_a_lambda_raised_is_shown_where_it_was_raised(people: fp.Table) -> None:
    with pytest.raises(fp.BadExpression) as wrong:
        people.where(lambda x: 1 / 0)
    (frame,) = traceback.extract_tb(wrong.value.__cause__.__traceback__)  # type: ignore[union-attr]
    assert (frame.filename, frame.name) == (__file__, "<lambda>")


def test_what_is_no_mistake_of_the_program_keeps_its_traceback(
    people: fp.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise fp.KernelViolation("a bug")

    monkeypatch.setattr("fpinq.client.askable.ask", broken)
    assert any(file.endswith("askable.py") for file in shown(lambda: people.noisy_count(1)))


def test_dev_mode_shows_everything(people: fp.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = type("Flags", (), {"dev_mode": True})()
    monkeypatch.setattr("fpinq.client.edge.sys", type("Sys", (), {"flags": flags})())
    assert any(file.endswith("askable.py") for file in shown(lambda: people.noisy_count(0)))
    assert not sys.flags.dev_mode
