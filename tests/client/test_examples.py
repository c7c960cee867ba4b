"""The examples run, and the pages' programs too."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fpinq as fp

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for folder in (".", "concepts", "reference", "tutorial", "how-to")
    for path in (ROOT / "docs" / folder).glob("*.md")
    if "```python" in path.read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town")
    subprocess.run([sys.executable, str(ROOT / "examples/data.py"), str(folder)], check=True)
    return folder


@pytest.mark.parametrize(
    ("example", "shown"),
    [
        ("listing1", ["gender 0, average age of adults", "left: 0.5", "⊥", "1 = 1·1"]),
        ("adult", ["about record", "intercept", "15. So what is", "left: 0.05"]),
        ("epsilon", ["ε = 0.01", "the ε for ± 10", "⊥", "left, as before"]),
        ("partitions", ["charged 0.1", "charged 0\n", "0.2 more costs 0"]),
        ("persons", ["factors: 1 5", "factor of visits by month, as a table: 10", "it is 5 again"]),
        ("remote", ["left of ada's share of the budget: 0.2", "⊥", "left of cap"]),
        ("analysis", ["95 %:", "charged 0.1", "6  (rows per person)", "six answers", "⊥"]),
    ],
)
def test_an_example_runs(town: Path, example: str, shown: list[str]) -> None:
    command = [sys.executable, str(ROOT / f"examples/{example}.py"), str(town)]
    utf8 = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    found = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, env=utf8)
    for text in shown:
        assert text in found.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_programs_of_a_page_run_in_order(page: Path, town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(town)
    names: dict[str, object] = {}
    for program in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(program, str(page), "exec"), names)


def test_every_public_name_is_in_the_reference() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference").glob("*.md"))
    missing = [name for name in fp.__all__ if not re.search(rf"`(fp\.)?{re.escape(name)}\b", pages)]
    assert missing == []
    methods = [name for name in dir(fp.Table) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}" not in pages] == []


def test_every_row_of_the_pinq_table_names_its_test() -> None:
    text = (ROOT / "docs/reference/pinq.md").read_text(encoding="utf-8")
    tests = (ROOT / "tests/client/test_pinq.py").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) >= 30
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert all(f"def {name}(" in tests for name in named), row
