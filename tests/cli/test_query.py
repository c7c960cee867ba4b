"""fpinq query: a mistake costs nothing, and what is written means what it says."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fpinq.cli.constants import constant
from fpinq.cli.main import main
from fpinq.model.errors import ProgramError
from fpinq.model.expressions import Type
from server.live import Live, people, serve

ROWS = [
    {"age": 20 + i % 50, "well": i % 2 == 0, "seen": date(2024, 2, 29 if i % 4 else 28), "code": str(i % 2)}
    for i in range(100)
]
EXACTLY = ("--epsilon", "1000000")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, people(10**9, rows=ROWS)) as found:
        yield found


def ask(live: Live, *arguments: str) -> int:
    return main(["query", *arguments, "--url", live.url, "--token", live.token()])


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["people.foo", "count"], "people is one table: say people, not people.foo"),
        (["people", "count", "x.age"], "count is of rows, not of 'x.age'"),
        (["people", "budget", "x.age"], "budget is of rows"),
        (["people", "count", "--bounds", "0", "1"], "count has no bounds"),
        (["people", "count", "--keys", "0,1"], '--by "x.gender"'),
        (["people", "count", "--by", "x.well", "--by", "x.code", "--keys", "0,1"], "--keys of its own"),
        (["people", "sum", "x.age", "--bounds", "low", "high"], "'low' is no number"),
        (["people", "count", "--by", "x.well", "--keys", "yes,no"], "'yes' is no bool, such as true"),
    ],
)
def test_what_the_question_does_not_use_is_refused_and_not_charged(
    live: Live, asked: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(live, *asked) == 2
    assert says in capsys.readouterr().err
    assert live.left() == 10**9


@pytest.mark.parametrize(
    ("by", "keys", "answer"),
    [
        ("x.well", "true,false", "True\t50 ± 0\nFalse\t50 ± 0"),
        ("x.seen", "2024-02-29,2024-02-28", "2024-02-29\t75 ± 0\n2024-02-28\t25 ± 0"),
        ("x.code", "0,1", "0\t50 ± 0\n1\t50 ± 0"),
        ("x.age % 2", "0,1", "0\t50 ± 0\n1\t50 ± 0"),
        ("x.age / 2", "10,10.5", "10.0\t2 ± 0\n10.5\t2 ± 0"),
    ],
)
def test_keys_have_the_type_of_what_is_partitioned_by(
    live: Live, by: str, keys: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(live, "people", "count", "--by", by, "--keys", keys, *EXACTLY) == 0
    assert capsys.readouterr().out.strip() == answer


def test_keys_of_several_columns_are_said_one_after_the_other(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["--by", "x.well", "--by", "x.age % 2"]
    assert ask(live, "people", "count", *both, "--keys", "true", "--keys", "0,1", *EXACTLY) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [["True", "0"], ["True", "1"]]
    assert sum(int(line[2].split()[0]) for line in lines) == 50


def test_a_budget_is_shown_in_decimals_that_never_show_more_than_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(tmp_path, people(Fraction(2, 3))) as live:
        assert ask(live, "people", "budget") == 0
    assert capsys.readouterr().out == "0.666666\n"


def test_the_address_is_fpinq_url_s_if_none_is_given(
    live: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FPINQ_URL", live.url)
    monkeypatch.setenv("FPINQ_TOKEN", live.token())
    assert main(["query", "people", "budget"]) == 0
    assert capsys.readouterr().out == "1000000000\n"


def test_the_help_says_what_a_question_costs_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["query", "--help"])
    assert "by default 0.1" in " ".join(capsys.readouterr().out.split())


def test_a_reader_that_has_seen_enough_is_no_traceback() -> None:
    asked = [sys.executable, "-m", "fpinq", "demo"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 141


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("true", Type.BOOL, True),
        ("1", Type.INT64, 1),
        ("1", Type.FLOAT64, 1.0),
        ("1", Type.STRING, "1"),
        ("true", Type.STRING, "true"),
        ("2024-02-29", Type.DATE, date(2024, 2, 29)),
        ("2024-02-29T12:00:00", Type.TIMESTAMP, datetime(2024, 2, 29, 12)),
        ("true", None, True),
        ("1", None, 1),
        ("1.5", None, 1.5),
        ("2024-02-29", None, date(2024, 2, 29)),
        ("2024-02-29 12:00", None, datetime(2024, 2, 29, 12)),
        ("1\nx = 2", None, "1\nx = 2"),
        ("[1]", None, "[1]"),
        ("", None, ""),
        ("nan", None, "nan"),
    ],
)
def test_constants(text: str, type_: Type | None, value: Any) -> None:
    found = constant(text, type_)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1", Type.BOOL),
        ("1.5", Type.INT64),
        ("9" * 30, Type.INT64),
        ("inf", Type.FLOAT64),
        ("2023-02-29", Type.DATE),
        ("20240229", Type.DATE),
        ("2024-02-29T12:00:00+01:00", Type.TIMESTAMP),
    ],
)
def test_what_is_no_constant_of_a_type(text: str, type_: Type) -> None:
    with pytest.raises(ProgramError):
        constant(text, type_)


@pytest.mark.parametrize(
    "asked",
    [
        ["distinct_count", "x.code"],
        ["proportion", "x.well"],
        ["sum", "x.age", "--bounds", "0", "110"],
        ["average", "x.age", "--bounds", "0", "110"],
        ["variance", "x.age", "--bounds", "0", "110"],
        ["standard_deviation", "x.age", "--bounds", "0", "110"],
        ["median", "x.age", "--bounds", "0", "110", "--interval", "0.9"],
        ["quantile", "x.age", "--bounds", "0", "110", "--fraction", "0.25"],
        ["quantile", "x.age", "--bounds", "0", "110", "--fraction", "0.25", "0.75"],
        ["minimum", "x.age", "--bounds", "0", "110"],
        ["maximum", "x.age", "--bounds", "0", "110"],
        ["mode", "x.code", "--candidates", "0,1"],
        ["top", "x.code", "--candidates", "0,1,2", "--first", "2"],
        ["histogram", "x.age", "--bounds", "0", "110", "--bins", "11"],
        ["cdf", "x.age", "--bounds", "0", "110", "--bins", "11"],
        ["covariance", "x.age", "x.age % 7", "--bounds", "0", "110", "--bounds", "0", "6"],
        ["correlation", "x.age", "x.age % 7", "--bounds", "0", "110", "--bounds", "0", "6"],
        ["count"],
    ],
    ids=" ".join,
)
def test_every_question_is_answered_for_people_and_for_programs(
    live: Live, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ([], ["--json"], ["--csv"]):
        assert ask(live, "people", *asked, *EXACTLY, *form) == 0
        out = capsys.readouterr().out
        assert out.strip()
        if form == ["--json"]:
            json.loads(out)
        if form == ["--csv"]:
            header, *rows = csv.reader(out.splitlines())
            assert rows
            assert all(len(row) == len(header) for row in rows)


def test_a_regression_is_asked_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"y": 2 * (i % 50) + 1, "z": i % 50} for i in range(1000)]
    with serve(tmp_path, people(10**9, rows=rows)) as live:
        bounds = ["--bounds", "0", "100", "--bounds", "0", "50"]
        assert ask(live, "people", "regression", "x.y", "x.z", *bounds, *EXACTLY, "--json") == 0
    found = {row["term"]: row["coefficient"] for row in json.loads(capsys.readouterr().out)}
    assert found == pytest.approx({"intercept": 1, "z": 2}, abs=1e-4)


def test_a_dry_run_says_the_price_and_the_error_and_asks_nothing(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    dry = ["sum", "x.age", "--bounds", "0", "110", "--epsilon", "0.5", "--dry-run"]
    assert ask(live, "people", *dry, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["price"], facts["then left"]) == ("1/2", str(10**9 - Fraction(1, 2)))
    assert "±" in facts["expected error"]
    assert ask(live, "people", "count", "--epsilon", str(10**10), "--dry-run") == 0
    assert "⊥" in capsys.readouterr().out
    assert live.left() == 10**9


def test_a_dry_run_by_a_column_that_is_not_there_is_refused(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(live, "people", "count", "--by", "x.nosuch", "--dry-run") == 2
    assert "unknown column 'nosuch'" in capsys.readouterr().err
    assert ask(live, "people", "count", "--by", "x.age", "--dry-run") == 2
    assert "--keys" in capsys.readouterr().err


def test_a_price_that_is_no_decimal_is_exact_for_programs(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--url", live.url, "--token", live.token()]
    assert main(["explain", "people", "--epsilon", "1/3", "--json", *server]) == 0
    assert json.loads(capsys.readouterr().out)["price"] == "1/3"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["quantile", "x.age", "--bounds", "0", "1"], "--fraction 0.25"),
        (["top", "x.code", "--candidates", "0,1"], "--first 3"),
        (["covariance", "x.age"], '"x.age" "x.hours"'),
        (["sum", "x.age", "x.age"], "sum is of 1, not of 2"),
        (["sum", "x.age", "--bins", "3"], "sum has no bins"),
        (["sum", "x.age", "--bounds", "0", "1", "--bounds", "0", "1"], "more --bounds"),
        (["regression", "x.age + 1", "x.age"], "a regression is of columns"),
    ],
)
def test_what_a_question_needs_is_said(
    live: Live, asked: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(live, "people", *asked) == 2
    assert says in capsys.readouterr().err
    assert live.left() == 10**9


def test_explain_is_free_and_says_what_a_table_is_made_of(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--url", live.url, "--token", live.token()]
    assert main(["explain", "people", "--where", "x.age > 30", *server]) == 0
    out = capsys.readouterr().out
    assert "scaling factor" in out
    assert "where" in out
    assert main(["explain", *server, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"data set": "people"}]
    assert live.left() == 10**9


def test_fpinq_alone_says_what_it_is_and_what_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "fpinq demo" in capsys.readouterr().out
