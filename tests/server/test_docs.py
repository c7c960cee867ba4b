"""What the pages about the server say."""

import re
from pathlib import Path

import pytest

import fpinq as fp
from fpinq.cli.main import main
from fpinq.runtime.refusals import FAILURES
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


def test_the_commands_of_the_pages_parse() -> None:
    pages = [DOCS / "how-to/server.md", DOCS / "operating/server.md"]
    commands = [
        line.split("#")[0].split()
        for page in pages
        for line in re.findall(r"^\$ fpinq (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert {command[0] for command in commands} == {"query", "dataset", "token", "serve"}
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main([command[0], "--help"])
        assert ended.value.code == 0


def test_the_table_of_errors_is_the_code_s() -> None:
    page = (DOCS / "reference/server.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `fp\.(\w+)` \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert {(code, name, int(status), int(exit_)) for code, name, status, exit_ in rows} == {
        (failure.code, type_.__name__, failure.status, failure.exit_code)
        for type_, failure in FAILURES.items()
    }
    for _, name, _, _ in rows:
        assert hasattr(fp, name), name
