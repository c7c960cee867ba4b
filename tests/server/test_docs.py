"""What the pages about the server say."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

import fpinq as fp
from fpinq.cli.main import main
from fpinq.runtime.refusals import FAILURES
from fpinq.server import load
from fpinq.server.house import House
from server.live import people, serve

DOCS = Path(__file__).parents[2] / "docs"


def test_the_programs_of_the_how_to_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "how-to/server.md").read_text(encoding="utf-8")
    programs = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    assert len(programs) == 2
    with serve(tmp_path, people(1)) as live:
        token = live.token()
        monkeypatch.setenv("FPINQ_TOKEN", token)
        names: dict[str, object] = {}
        for program in programs:
            program = program.replace("https://data.example.org", live.url).replace("fpq_…", token)
            exec(compile(program, "server.md", "exec"), names)


def commands(page: str) -> list[list[str]]:
    """The commands of a page, as a shell would read them."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [shlex.split(line, comments=True) for line in re.findall(r"^\$ fpinq (.*)$", text, re.MULTILINE)]


def test_the_questions_of_the_how_to_page_are_answered_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = commands("how-to/server.md")
    assert {command[0] for command in asked} == {"query", "explain"}
    with serve(tmp_path, people(1)) as live:
        monkeypatch.setenv("FPINQ_URL", live.url)
        monkeypatch.setenv("FPINQ_TOKEN", live.token())
        for command in asked:
            assert main(command) == 0, command


def test_the_commands_of_the_operating_page_lead_to_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pd.DataFrame({"age": [20, 30], "gender": [0, 1]}).to_parquet(tmp_path / "people.parquet")
    monkeypatch.chdir(tmp_path)
    *prepared, served = commands("operating/server.md")
    assert served == ["serve"]
    for command in prepared:
        assert main(command) == 0, command
    house = House(load("fpinq.toml"))
    assert list(house.data_sets) == ["people"]
    house.close()


def test_the_table_of_errors_is_the_code_s() -> None:
    page = (DOCS / "reference/server.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `fp\.(\w+)` \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert {(code, name, int(status), int(exit_)) for code, name, status, exit_ in rows} == {
        (failure.code, type_.__name__, failure.status, failure.exit_code)
        for type_, failure in FAILURES.items()
    }
    for _, name, _, _ in rows:
        assert hasattr(fp, name), name
