"""Results elsewhere: frames, files, JSON and notebooks, with columns that say what they are."""

import csv
import io
import json
import sys
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fpinq as fp
from client.small_data import SURE
from fpinq import _

CITIES = ["Ulm", "Bonn", "Kiel"]
EVERY: dict[str, tuple[Callable[[fp.Table], Any], list[str]]] = {
    "a count": (lambda t: t.noisy_count(1), ["n"]),
    "an average": (lambda t: t.noisy_average(1, "age", (0, 110)), ["average_age"]),
    "by a lambda": (lambda t: t.noisy_sum(1, lambda x: x.age, (0, 110)), ["sum_age"]),
    "by _": (lambda t: t.noisy_variance(1, _.age, (0, 110)), ["variance_age"]),
    "of an expression": (lambda t: t.noisy_sum(1, _.age + 1, (0, 110)), ["sum"]),
    "of the only column": (lambda t: t.select("age").noisy_sum(1, bounds=(0, 110)), ["sum_age"]),
    "a deviation": (lambda t: t.noisy_standard_deviation(1, "age", (0, 110)), ["standard_deviation_age"]),
    "a median": (lambda t: t.noisy_median(1, "age", (0, 110)), ["median_age"]),
    "a quantile": (lambda t: t.noisy_quantile(1, 0.9, "age", (0, 110)), ["quantile_age"]),
    "an order statistic": (lambda t: t.noisy_order_statistic(1, 0.9, "age", (0, 110)), ["quantile_age"]),
    "a distinct count": (lambda t: t.noisy_distinct_count(1, "city"), ["distinct_count_city"]),
    "a mode": (lambda t: t.noisy_mode(1, "city", CITIES), ["mode_city"]),
    "bounds": (lambda t: t.noisy_bounds(1, "age"), ["bounds_age_lower", "bounds_age_upper"]),
    "counts by key": (lambda t: t.query(1, fp.count(), by="city", keys=CITIES), ["city", "n"]),
    "by an expression": (lambda t: t.query(1, fp.count(), by=_.age // 20, keys=[0, 1]), ["key", "n"]),
    "averages by key": (
        lambda t: t.query(1, fp.average("age", (0, 110)), by="city", keys=CITIES), ["city", "average_age"]
    ),
    "by two keys": (
        lambda t: t.query(1, fp.average("age", (0, 110)), by=["city", "gender"], keys=[("Ulm", 0)]),
        ["city", "gender", "average_age"],
    ),
    "histograms by two keys": (
        lambda t: t.query(1, fp.histogram("age", (0, 60), 2), by=["city", "gender"], keys=[("Ulm", 0)]),
        ["city", "gender", "bin_lower", "bin_upper", "n"],
    ),
    "a top": (lambda t: t.noisy_top(1, 2, "city", CITIES), ["rank", "city", "n"]),
    "tops by key": (
        lambda t: t.query(1, fp.top(2, "city", CITIES), by="gender", keys=[0, 1]),
        ["gender", "rank", "city", "n"],
    ),
    "a top by score": (lambda t: t.noisy_top(1, 2, lambda x, c: x.city == c, CITIES), ["rank", "top"]),
    "quantiles with intervals": (
        lambda t: t.noisy_quantile(1, [0.2, 0.8], "age", (0, 60), interval=0.9), ["fraction", "quantile_age"]
    ),
    "coefficients": (
        lambda t: t.noisy_regression(1, "age", ["gender"], {"age": (0, 60), "gender": (0, 1)}).coefficients,
        ["term", "coefficient"],
    ),
    "several with bins": (
        lambda t: t.query(1, fp.several(h=fp.histogram("age", (0, 60), 3), n=fp.count())),
        ["query", "bin_lower", "bin_upper", "value"],
    ),
    "a histogram": (lambda t: t.noisy_histogram(1, "age", (0, 60), 3), ["bin_lower", "bin_upper", "n"]),
    "of integers": (lambda t: t.noisy_histogram(1, "age", (0, 60)), ["bin_lower", "bin_upper", "n"]),
    "of keys": (lambda t: t.noisy_histogram(1, "city", keys=CITIES), ["city", "n"]),
    "ranges": (lambda t: t.noisy_ranges(1, "age", (0, 60), 3), ["bin_lower", "bin_upper", "n"]),
    "a distribution": (lambda t: t.noisy_cdf(1, "age", (0, 60)), ["age", "fraction"]),
    "a distribution of counts": (lambda t: t.noisy_cdf(1, "age", (0, 60), counts=True), ["age", "n"]),
    "quantiles": (lambda t: t.noisy_quantile(1, [0.2, 0.8], "age", (0, 110)), ["fraction", "quantile_age"]),
    "histograms by key": (
        lambda t: t.query(1, fp.histogram("age", (0, 60), 3), by="city", keys=CITIES),
        ["city", "bin_lower", "bin_upper", "n"],
    ),
    "quantiles by the same column": (
        lambda t: t.query(1, fp.cdf("age", (0, 60)), by="age", keys=[10, 20]), ["age", "age_2", "fraction"]
    ),
    "a column called n": (
        lambda t: t.rename(gender="n").query(1, fp.count(), by="n", keys=[0, 1]), ["n", "n_2"]
    ),
    "bounds by key": (
        lambda t: t.query(1, fp.bounds("age"), by="city", keys=CITIES),
        ["city", "bounds_age_lower", "bounds_age_upper"],
    ),
    "different questions": (
        lambda t: t.query(
            1, {"Ulm": fp.count(), "Bonn": fp.quantiles([0.2, 0.8], "age", (0, 60))}, by="city"
        ),
        ["city", "fraction", "value"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", EVERY)
def test_columns_say_what_they_are_in_every_frame(people: fp.Table, kind: str) -> None:
    ask, names = EVERY[kind]
    answers = ask(people)
    expected = [*names, "low", "high", "standard_error"]
    assert list(answers.to_pandas().columns) == expected
    assert answers.to_polars().columns == expected
    assert answers.to_arrow().column_names == expected
    assert list(answers.to_dict())[: len(expected)] == expected
    assert next(csv.reader(io.StringIO(answers.to_csv()))) == expected
    rows = json.loads(answers.to_json())
    assert list(rows[0] if isinstance(rows, list) else rows)[: len(expected)] == expected
    assert isinstance(rows, dict) == (isinstance(answers, fp.Answer) and "top" not in kind)


@pytest.mark.parametrize("kind", EVERY)
def test_every_frame_holds_the_same(people: fp.Table, kind: str) -> None:
    answers = EVERY[kind][0](people)
    rows = answers.rows(0.9)
    assert answers.to_polars(0.9).to_dicts() == rows
    assert answers.to_arrow(0.9).to_pylist() == rows
    pandas = answers.to_pandas(0.9)
    assert [
        {name: None if value is None or value != value else value for name, value in row.items()}
        for row in pandas.to_dict("records")
    ] == rows
    assert pd.read_csv(io.StringIO(answers.to_csv(confidence=0.9))).shape == pandas.shape


@pytest.mark.parametrize("kind", EVERY)
def test_errors_are_numbers_in_frames_whatever_the_answers_are(people: fp.Table, kind: str) -> None:
    frame = EVERY[kind][0](people).to_pandas()
    assert frame["standard_error"].dtype == "float64"
    assert {frame[end].dtype.kind for end in ("low", "high")} <= {"i", "f"}


def test_rows_are_the_answers_and_their_intervals(people: fp.Table) -> None:
    answers = people.query("1/3", fp.histogram("age", (0, 60), 3), by="gender", keys=[0, 1])
    for row in answers.rows(0.8):
        answer = answers[row["gender"]][row["bin_lower"], row["bin_upper"]]
        assert row["n"] == answer.value
        assert (row["low"], row["high"]) == answer.interval(0.8)
        assert row["standard_error"] == answer.standard_error
    assert len(answers.rows()) == 6


def test_an_integer_bin_is_from_itself_to_itself(people: fp.Table) -> None:
    found = people.noisy_histogram(1, "age", bounds=(3, 5)).to_dict()
    assert found["bin_lower"] == found["bin_upper"] == [3, 4, 5]


def test_files_hold_what_the_texts_say(people: fp.Table, tmp_path: Path) -> None:
    answers = people.query(1, fp.count(), by="city", keys=CITIES)
    assert answers.to_csv(tmp_path / "a.csv") is None
    assert (tmp_path / "a.csv").read_text("utf-8") == answers.to_csv()
    assert answers.to_json(str(tmp_path / "a.json")) is None
    assert (tmp_path / "a.json").read_text("utf-8") == answers.to_json()


def test_json_has_no_infinities_and_exact_amounts(people: fp.Table) -> None:
    said = json.loads(people.noisy_count("1/3").to_json())
    assert (said["epsilon"], said["charged"]) == ("1/3", "1/3")
    empty = people.where(_.age > 100).noisy_variance(1, "age", (0, 10))
    json.loads(empty.to_json(), parse_constant=lambda name: pytest.fail(name))
    days = fp.public([{"day": date(2024, 2, 29)}]).query(1, fp.count(), by="day", keys=[date(2024, 2, 29)])
    assert json.loads(days.to_json())[0]["day"] == "2024-02-29"


def test_numbers_too_large_for_a_frame_are_floats_there(people: fp.Table) -> None:
    big = people.noisy_sum(SURE, lambda x: x.age * 10**17, bounds=(0, 2**62))
    assert big.value > 2**62
    assert big.to_pandas()["high"].dtype.kind in "if"
    wide = people.noisy_sum("1e-9", lambda x: x.age * 10**17, bounds=(0, 2**62))
    assert wide.to_pandas()["high"].dtype == "float64"


def test_a_pivot_has_the_last_key_across_in_the_order_of_the_keys(people: fp.Table) -> None:
    answers = people.query(SURE, fp.histogram("age", bins=[0, 30, 61]), by="city", keys=CITIES)
    pivot = answers.pivot()
    assert list(pivot.index) == CITIES
    assert pivot.index.name == "city"
    assert list(pivot.columns) == [(0, 30), (30, 61)]
    assert pivot.to_numpy().tolist() == [[2, 0], [0, 2], [0, 1]]
    assert answers.pivot("high", confidence=0.5).to_numpy().tolist() == [[2, 0], [0, 2], [0, 1]]
    with pytest.raises(fp.BadQuery, match="did you mean 'high'"):
        answers.pivot("hight")
    keys = [(city, gender) for city in CITIES for gender in (1, 0)]
    crossed = people.query(SURE, fp.count(), by=["city", "gender"], keys=keys).pivot()
    assert (list(crossed.index), list(crossed.columns)) == (CITIES, [1, 0])
    assert (crossed.index.name, crossed.columns.name) == ("city", "gender")
    assert crossed.to_numpy().tolist() == [[1, 1], [1, 1], [0, 1]]
    with pytest.raises(fp.BadQuery, match="two keys"):
        people.query(1, fp.count(), by="city", keys=CITIES).pivot()


def test_several_names_have_their_own_ends_and_are_pivoted_by_name(people: fp.Table) -> None:
    asked = fp.several(n=fp.count(), age=fp.average("age", (0, 110)))
    answers = people.query(SURE, asked, by=["city", "gender"], keys=[("Ulm", 0), ("Ulm", 1), ("Bonn", 0)])
    of_each = ["{}", "{}_low", "{}_high", "{}_standard_error"]
    names = [end.format(name) for name in ("n", "age") for end in of_each]
    assert list(answers.to_pandas().columns) == ["city", "gender", *names]
    assert answers.to_polars().columns == ["city", "gender", *names]
    assert answers.pivot()[0].tolist() == [1, 1]
    assert answers.pivot("age")[1].isna().tolist() == [False, True]


def test_nested_answers_print_as_lines_under_a_header(people: fp.Table) -> None:
    answers = people.query(SURE, fp.histogram("age", (0, 60), 2), by="gender", keys=[0, 1])
    assert repr(answers).splitlines() == [
        "gender  age       n",
        "0       0 to 30   1 ± 0",
        "0       30 to 60  2 ± 0",
        "1       0 to 30   1 ± 0",
        "1       30 to 60  2 ± 0",
    ]
    html = answers._repr_html_()
    assert html.count("<tr>") == 5
    assert "<th>gender</th><th>age</th><th>n</th>" in html


def test_of_very_many_nested_answers_the_first_and_the_last_are_printed(people: fp.Table) -> None:
    answers = people.query(SURE, fp.histogram("age", (0, 99)), by="age", keys=range(50))
    lines = repr(answers).splitlines()
    assert len(lines) == 1 + 20 + 1 + 5
    assert "(4,975 more)" in lines[21]
    assert lines[1].split() == ["0", "0", "0", "±", "0"]
    assert lines[-1].split() == ["49", "99", "0", "±", "0"]


def test_answers_to_different_questions_print_below_each_other(people: fp.Table) -> None:
    answers = people.query(
        SURE, {"Ulm": fp.count(), "Bonn": fp.quantiles([0.2, 0.8], "age", (0, 60))}, by="city"
    )
    lines = repr(answers).splitlines()
    assert len(lines) >= 3
    assert len({line.index(value) for line, value in zip(lines[-2:], ("30", "40"), strict=True)}) == 1


def test_a_single_answer_shows_itself_in_a_notebook(people: fp.Table) -> None:
    html = people.noisy_average("1/10", "age", bounds=(0, 110))._repr_html_()
    for shown in ("average_age", "±", "95 % interval", "ε", "0.1", "0.003125 for first look"):
        assert shown in html
    assert "query(ε" in people.group_by("city").noisy_count(1)._repr_html_()
    assert "interval" not in people.noisy_mode(1, "city", ["<b>"])._repr_html_()
    assert "&lt;b&gt;" in people.noisy_mode(1, "city", ["<b>"])._repr_html_()


def test_tables_about_the_same_people_show_themselves_in_a_notebook() -> None:
    tables = fp.protect(
        {"people": [{"id": 1}], "visits": [{"id": 1, "<b>": 2}]},
        unit="id",
        rows_per_unit={"people": 1, "visits": 5},
        budget=1,
        schema={"people": {"id": "int64"}, "visits": {"id": "int64", "<b>": "int64"}},
    )
    html = tables._repr_html_()  # type: ignore[attr-defined]
    assert "&lt;b&gt; int64" in html
    assert ">5<" in html


def test_parts_show_themselves_in_a_notebook(people: fp.Table) -> None:
    shown = people.partition("city", keys=["Ulm", "<b>"])._repr_html_()
    assert "<th>city</th>" in shown
    assert "&lt;b&gt;" in shown
    pairs = people.partition(["city", "gender"], keys=[("Ulm", 0), ("Ulm", 1)])._repr_html_()
    assert "<th>city</th><th>gender</th>" in pairs
    many = people.partition("age", keys=range(1000))._repr_html_()
    assert "984 more" in many
    assert many.count("<tr>") == 1 + 16 + 1


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_missing_package_is_an_error_that_says_what_to_install(
    people: fp.Table, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = people.query(1, fp.count(), by="city", keys=CITIES)
    monkeypatch.setitem(sys.modules, package, None)
    to = {"pandas": "to_pandas", "polars": "to_polars", "pyarrow": "to_arrow"}[package]
    with pytest.raises(fp.ProgramError, match=rf"{to}\(\) needs {package}.*pip install {package}"):
        getattr(answers, to)()
    if package == "pandas":
        with pytest.raises(fp.ProgramError, match="pip install pandas"):
            people.query(1, fp.histogram("age", (0, 60), 2), by="city", keys=CITIES).pivot()


def test_the_lambda_of_a_query_is_called_once(people: fp.Table) -> None:
    called: list[object] = []
    ask = people.query(1, fp.average(lambda x: called.append(x) or x.age, (0, 9)), by="city", keys=CITIES)  # type: ignore[func-returns-value]
    assert len(called) == 1
    assert list(ask.to_dict()) == ["city", "average_age", "low", "high", "standard_error"]


def test_fractions_are_numbers_in_frames(people: fp.Table) -> None:
    found = people.noisy_quantile(1, [Fraction(1, 4), Fraction(1, 2)], "age", (0, 60))
    assert found.to_pandas()["fraction"].tolist() == [0.25, 0.5]
    assert found.to_polars()["fraction"].to_list() == [0.25, 0.5]


def test_several_of_which_one_has_bins_say_in_each_row_which_it_is(people: fp.Table) -> None:
    asked = fp.several(h=fp.histogram("age", (0, 60), 2), n=fp.count(), q=fp.quantiles([0.5], "age", (0, 60)))
    alone = people.query(SURE, asked)
    assert alone.to_dict()["query"] == ["h", "h", "n", "q"]
    assert alone.to_dict()["value"] == [
        alone["h"][0, 30].value,
        alone["h"][30, 60].value,
        6,
        alone["q"][0.5].value,
    ]
    by_gender = people.query(SURE, asked, by="gender", keys=[0, 1])
    rows = by_gender.rows()
    assert [(row["gender"], row["query"]) for row in rows] == [(g, q) for g in (0, 1) for q in "hhnq"]
    assert "0 to 30: " in str(alone)
    assert "(0, 30)" not in str(by_gender)


def test_a_frame_has_the_interval_that_was_asked_for_whatever_its_confidence(people: fp.Table) -> None:
    answers = people.query(SURE, fp.median("age", (0, 60), interval=0.5), by="gender", keys=[0, 1])
    assert answers[0].interval() == answers[0].interval(0.5) is not None
    assert answers[0].interval(0.9) is None
    for row in answers.rows():
        assert (row["low"], row["high"]) == answers[row["gender"]].interval(0.5)
    assert answers.to_pandas(confidence=0.9)["low"].isna().all()


def test_a_histogram_alone_has_nothing_to_pivot(people: fp.Table) -> None:
    with pytest.raises(fp.BadQuery, match="two keys"):
        people.noisy_histogram(1, "age", (0, 60), 3).pivot()
    with pytest.raises(fp.BadQuery, match="two keys"):
        people.noisy_count(1).pivot()
    by_gender = people.query(SURE, fp.histogram("age", (0, 60), 3), by="gender", keys=[0, 1]).pivot()
    assert by_gender.shape == (2, 3)


def test_a_pivot_of_several_answers_in_one_place_is_refused(people: fp.Table) -> None:
    asked = fp.several(h=fp.histogram("age", (0, 60), 2), n=fp.count())
    answers = people.query(1, asked, by=["city", "gender"], keys=[("Ulm", 0), ("Bonn", 1)])
    with pytest.raises(fp.BadQuery, match="several answers of the same keys"):
        answers.pivot()


def test_a_top_is_a_row_for_each_best_first(people: fp.Table) -> None:
    top = people.noisy_top(SURE, 2, "gender", [0, 1])
    assert top.to_dict() == {
        "rank": [1, 2], "gender": top.value, "n": [3, 3], "low": [3, 3], "high": [3, 3],
        "standard_error": [0.0, 0.0],
    }  # fmt: skip
    assert json.loads(top.to_json())[0]["rank"] == 1
    assert str(people.noisy_top(SURE, 1, "city", CITIES[:1])) == "Ulm (2 ± 0)"
    both = fp.several(n=fp.count(), top=fp.top(1, "gender", [0]))
    assert people.query(SURE, both).rows()[0]["top"] == [0]


def test_a_key_that_no_answer_has_says_which_there_are(people: fp.Table) -> None:
    answers = people.query(1, fp.count(), by="city", keys=CITIES)
    for key in ("Rom", ["Ulm"], {"city": "Rom"}):
        with pytest.raises(fp.BadPartition, match="the keys are 'Ulm', 'Bonn', 'Kiel'"):
            answers[key]
        assert key not in answers
    assert answers.get("Rom") is None
    with pytest.raises(KeyError):
        answers["Rom"]


def test_amounts_in_a_dict_print_as_decimals_and_are_exact(people: fp.Table) -> None:
    found = people.noisy_average("1/8", "age", (0, 60)).to_dict()
    assert (str(found["epsilon"]), found["epsilon"]) == ("0.125", Fraction(1, 8))
