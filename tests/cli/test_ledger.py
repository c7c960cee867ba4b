"""fpinq ledger, pointed at what is no ledger."""

from pathlib import Path

import pytest

from fpinq.cli.main import main

VERBS = pytest.mark.parametrize("verb", ["show", "verify", "head"])


@VERBS
def test_a_file_that_is_no_ledger_is_said_to_be_none(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.csv"
    path.write_text("age,gender\n" + "20,1\n" * 200)
    assert main(["ledger", verb, str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"fpinq: {path} is no ledger: ")
    assert path.read_text().startswith("age,gender\n")


@VERBS
def test_no_file_is_no_ledger_and_makes_none(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", verb, str(tmp_path / "nope")]) == 2
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
