"""fpinq ledger: what it shows, copies that are put back, and what is no ledger."""

import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest

import fpinq as fp
from fpinq.cli.main import main
from fpinq.ledger import open_ledger

VERBS = pytest.mark.parametrize("verb", ["show", "verify", "head"])


@VERBS
def test_a_file_that_is_no_ledger_is_said_to_be_none(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.csv"
    path.write_text("age,gender\n" + "20,1\n" * 200)
    assert main(["ledger", verb, str(path)]) == 6
    assert capsys.readouterr().err.startswith(f"fpinq: {path} is no ledger: ")
    assert path.read_text().startswith("age,gender\n")


@VERBS
def test_no_file_is_no_ledger_and_makes_none(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", verb, str(tmp_path / "nope")]) == 6
    assert capsys.readouterr().err.startswith("fpinq: no such ledger: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["ledger", "verify", "x"], ["check"]])
def test_no_jobs_at_all_are_refused_as_an_option(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--jobs", "0"])
    assert ended.value.code == 2
    assert "'0' is not a whole number ≥ 1" in capsys.readouterr().err


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """Three queries of people, the last one refused."""
    where = tmp_path / "people.ledger"
    data = fp.protect([{"age": 30}], budget=1, name="people", ledger=where, schema={"age": "int64"})
    data.noisy_count(Fraction(1, 3))
    data.noisy_sum(Fraction(1, 3), "age", bounds=(0, 110))
    with pytest.raises(fp.BudgetExceeded):
        data.noisy_count(1)
    return str(where)


def test_an_unreachable_postgresql_exits_with_the_code_of_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It was 2, a mistake of the user's; the table of exit codes says 6."""
    assert main(["ledger", "head", "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1"]) == 6
    assert capsys.readouterr().err.startswith("fpinq: ")


def test_a_question_is_shown_with_its_column_and_bounds(
    ledger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "show", ledger]) == 0
    assert "query(people, sum[age in 0…110], 1/3)" in capsys.readouterr().out


def test_one_session_is_one_session(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "verify", ledger]) == 0
    assert " of 1 session follow" in capsys.readouterr().out


def test_spending_adds_up_and_lists_refusals(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "spending", ledger, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["data set"], row["questions"], row["charged"]) == ("people", 2, "2/3")
    assert main(["ledger", "spending", ledger, "--each", "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["charged"] for row in rows] == ["people 1/3", "people 1/3", "⊥"]
    assert main(["ledger", "spending", ledger]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == [
        "analyst", "data", "set", "questions", "charged", "left", "of", "cap", "last",
    ]  # fmt: skip


def test_a_copy_that_is_put_back_answers_nothing_until_it_is_unfrozen(
    ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, back = str(tmp_path / "copy"), str(tmp_path / "back")
    assert main(["ledger", "backup", ledger, copy]) == 0
    assert main(["ledger", "restore", copy, back]) == 0
    assert "frozen" in capsys.readouterr().out
    found = open_ledger(back, create=False)
    assert found.roots()["people"].frozen
    assert found.roots()["people"].remaining == Fraction(1, 3)
    found.close()


def test_a_copy_with_the_head_that_was_kept_is_not_frozen_and_another_not_put_back(
    ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, back = str(tmp_path / "copy"), str(tmp_path / "back")
    assert main(["ledger", "backup", ledger, copy]) == 0
    assert main(["ledger", "head", ledger]) == 0
    head = capsys.readouterr().out.splitlines()[-1]
    assert main(["ledger", "restore", copy, back, "--expect-head", "0" * 64]) == 1
    assert not (tmp_path / "back").exists()
    assert main(["ledger", "restore", copy, back, "--expect-head", head]) == 0
    found = open_ledger(back, create=False)
    assert not found.roots()["people"].frozen
    found.close()


@pytest.mark.parametrize("gone", ["", " ", "\n", "x", "0" * 63, "3f9c 41"])
def test_a_head_that_says_nothing_is_not_taken_for_one_that_was_not_said(
    ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], gone: str
) -> None:
    """As "$(cat people.anchor)" of an anchor that is gone: an older copy was put back with its budget."""
    copy, back = str(tmp_path / "copy"), str(tmp_path / "back")
    assert main(["ledger", "backup", ledger, copy]) == 0
    assert main(["ledger", "restore", copy, back, "--expect-head", gone]) == 2
    assert not (tmp_path / "back").exists()
    assert main(["ledger", "verify", ledger, "--expect-head", gone]) == 2
    assert "ends with a hash" in capsys.readouterr().err


def test_nothing_is_written_over(ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    assert main(["ledger", "backup", ledger, ledger]) == 2
    assert "move it away first" in capsys.readouterr().err
    assert main(["ledger", "backup", "postgresql://x", str(tmp_path / "c")]) == 2
    assert "pg_dump" in capsys.readouterr().err
    assert main(["ledger", "restore", str(tmp_path / "none"), str(tmp_path / "c")]) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == before
