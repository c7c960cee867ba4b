"""fpinq sql: a statement, a file of them, a prompt."""

import csv
import io
import json
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.cli.main import main
from fpinq.cli.prompt import Prompt
from fpinq.model.notions import Rho
from server.live import Live, people, serve

BOUNDS = {"age": {"bounds": [0, 110]}, "gender": {"keys": [0, 1]}}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, people(10**9, columns=BOUNDS)) as found:
        yield found


def ask(live: Live, *arguments: str) -> int:
    return main(["sql", *arguments, "--url", live.url, "--token", live.token()])


def test_a_statement_from_the_shell(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT gender, COUNT(*) AS n FROM people GROUP BY gender"
    assert ask(live, text, "--epsilon", "1000000") == 0
    assert "50 ± 0" in capsys.readouterr().out
    assert ask(live, text, "--epsilon", "1000000", "--csv") == 0
    assert capsys.readouterr().out.splitlines()[1] == "0,50,50,50,0.0"
    assert ask(live, text, "--epsilon", "1000000", "--json") == 0
    assert [row["n"] for row in json.loads(capsys.readouterr().out)] == [50, 50]


def test_an_explanation_is_free(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(live, "EXPLAIN SELECT AVG(age) AS a FROM people", "--epsilon", "0.5") == 0
    out = capsys.readouterr().out
    assert "ε = 0.5 costs 0.5" in out
    assert "a: average of age" in out
    assert live.left() == 10**9


def test_an_explanation_was_words_for_programs_too_and_is_json_or_csv_now(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(live, "EXPLAIN SELECT COUNT(*) AS n FROM people", "--json") == 0
    assert "n: count" in json.loads(capsys.readouterr().out)["explanation"]
    assert ask(live, "EXPLAIN SELECT COUNT(*) AS n FROM people", "--csv") == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert "n: count" in row["explanation"]


def test_rows_in_the_middle_of_many_were_left_out_though_they_were_paid_for(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "SELECT age, COUNT(*) AS n FROM people WHERE age BETWEEN 0 AND 299 GROUP BY age"
    assert ask(live, text, "--epsilon", "1000000") == 0
    header, *lines, _ = capsys.readouterr().out.splitlines()
    assert header.split() == ["age", "n"]
    assert [int(line.split()[0]) for line in lines] == list(range(300))


def test_a_mistake_has_the_exit_code_of_one(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(live, "SELECT age FROM people") == 2
    assert "the column 'age' is private" in capsys.readouterr().err
    assert ask(live, "SELECT COUNT(*) FROM people", "--epsilon", "10000000000") == 3
    assert live.left() == 10**9


def test_a_file_has_several_statements(
    live: Live, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.sql"
    file.write_text(
        "-- a report\nSELECT COUNT(*) AS n FROM people;\nSELECT COUNT(*) AS m FROM people -- ;\n;\n"
    )
    assert ask(live, "--file", str(file), "--epsilon", "1000", "--csv") == 0
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == ["n", "100", "m", "100"]
    assert ask(live, "--file", str(tmp_path / "nothing.sql")) == 2
    assert ask(live, "SELECT 1", "--file", str(file)) == 2


class Lines:
    """What somebody types, and the prompts that they saw."""

    def __init__(self, *lines: str) -> None:
        self._lines, self.seen = list(lines), list[str]()

    def __call__(self, prompt: str) -> str:
        self.seen.append(prompt)
        if not self._lines:
            raise EOFError
        return self._lines.pop(0)


def prompted(live: Live, *lines: str) -> tuple[Prompt, Lines]:
    typed = Lines(*lines)
    arguments = Namespace(epsilon="1/2", delta=None, json=False, csv=False)
    return Prompt(live.connect(), arguments, typed), typed


def test_a_prompt_shows_what_is_left_and_goes_on_after_a_mistake(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    prompt, typed = prompted(
        live, "SELECT COUNT(*)", "FROM people;", "SELECT nobody FROM people;", "", "\\epsilon 2",
        "\\epsilon no", "\\tables", "\\help", "SELECT COUNT(*) FROM people;", "\\quit", "never read",
    )  # fmt: skip
    assert prompt.run() == 0
    said = capsys.readouterr()
    assert typed.seen[0] == "people 1000000000 │ ε = 1/2 > "
    assert typed.seen[1] == "… "
    assert typed.seen[2] == "people 999999999.5 │ ε = 1/2 > "
    assert typed.seen[-1].startswith("people 999999997.5 │ ε = 2 > ")
    assert "unknown column 'nobody'" in said.err
    assert "  age int64" in said.out


def test_tables_columns_and_functions_are_completed(live: Live) -> None:
    prompt, _ = prompted(live)
    assert prompt.completions("peo") == ["people"]
    assert prompt.completions("ag") == ["age"]
    assert "AVG" in prompt.completions("av")
    assert "CLAMP" in prompt.completions("cl")
    assert "GROUP BY" in prompt.completions("gro")


def test_the_end_of_input_ends_it(live: Live, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    prompt, _ = prompted(live, "SELECT COUNT(*)")
    assert prompt.run() == 0
    assert live.left() == 10**9


def test_statements_come_from_a_pipe(
    live: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from io import StringIO

    monkeypatch.setattr("sys.stdin", StringIO("SELECT COUNT(*) AS n FROM people;"))
    found: Any = ask(live, "--epsilon", "1000", "--csv")
    assert found == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("100,")


def test_a_statement_from_the_shell_at_rho(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(tmp_path, people(Rho(Fraction(10)), columns=BOUNDS)) as live:
        assert ask(live, "SELECT COUNT(*) AS n FROM people", "--rho", "4") == 0
        assert "100" in capsys.readouterr().out
        assert live.left() == 6
        assert ask(live, "SELECT COUNT(*) AS n FROM people", "--epsilon", "rho 2") == 0
        assert live.left() == 4
        assert ask(live, "SELECT COUNT(*) AS n FROM people", "--rho", "0") == 2
        assert live.left() == 4


def test_the_prompt_is_told_a_rho_and_shows_it(tmp_path: Path) -> None:
    with serve(tmp_path, people(Rho(Fraction(10)), columns=BOUNDS)) as live:
        arguments = Namespace(epsilon="0.1", delta=None, json=False, csv=False)
        prompt = Prompt(fp.connect(live.url, live.token()), arguments)
        prompt.act("\\rho 3")
        assert prompt.prompt() == "people 10 │ ρ = 3 > "
        prompt.act("SELECT COUNT(*) AS n FROM people")
        assert live.left() == 7
        with pytest.raises(fp.BadEpsilon):
            prompt.act("\\rho 0")
        assert prompt.prompt() == "people 7 │ ρ = 3 > "
        prompt.act("\\epsilon 0.5")
        assert prompt.prompt() == "people 7 │ ε = 0.5 > "


def test_the_prompt_is_told_a_delta_and_finds_keys_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_age = "SELECT age // 50 AS young, COUNT(*) AS n FROM people GROUP BY young"
    sets = people(10, columns=BOUNDS)
    sets["people"] = replace(sets["people"], budget=fp.approximate(10, "1e-3", "1e-3"))
    with serve(tmp_path, sets) as live:
        arguments = Namespace(epsilon="1", delta=None, json=False, csv=False)
        prompt = Prompt(fp.connect(live.url, live.token()), arguments)
        with pytest.raises(fp.BadSQL, match="find them"):
            prompt.act(by_age)
        prompt.act("\\delta 1e-4")
        assert prompt.prompt() == "people 10 │ ε = 1, δ = 0.0001 > "
        prompt.act(by_age)
        assert "young" in capsys.readouterr().out
        for wrong in ("1", "many", "-1"):
            with pytest.raises(fp.BadEpsilon):
                prompt.act(f"\\delta {wrong}")
        prompt.act("\\delta")
        assert prompt.prompt() == "people 9 │ ε = 1 > "
