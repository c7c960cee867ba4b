"""What the documentation says exists."""

import ast
import re
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest

import fpinq as fp
from docs import operators_page
from fpinq.model import errors, semantics
from fpinq.model.actions import Action
from fpinq.model.plans import Transformation

ROOT = Path(__file__).parents[2]
MODEL = (ROOT / "docs/model/README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def functions(folder: str) -> set[str]:
    names: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    return names


@pytest.mark.parametrize("page", ["docs/model/README.md", "docs/reference/pinq.md"])
def test_every_test_that_a_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / page).read_text(encoding="utf-8")))
    assert named
    assert named <= functions("tests")


def test_every_rule_is_in_the_model_page() -> None:
    rows = re.findall(r"^\| [^|]+ \| `(\w+)` \| [^|]+ \| `test\w+` \| `(\w+)` \|", MODEL, re.MULTILINE)
    assert len(rows) == len(get_args(Action)) + 1, "one rule per action, and ⊥"
    assert all(callable(getattr(semantics, rule)) for rule, _ in rows)
    coq = (ROOT / "proof/General.v").read_text(encoding="utf-8")
    assert all(re.search(rf"^\s*Definition {name}\b", coq, re.MULTILINE) for _, name in rows)


@pytest.mark.parametrize("transformation", get_args(Transformation), ids=lambda t: t.__name__)
def test_every_transformation_is_in_the_model_page(transformation: type) -> None:
    assert f"`{transformation.__name__}`" in MODEL


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target


def test_every_error_says_what_it_is_for() -> None:
    for name in dir(errors):
        found = getattr(errors, name)
        if isinstance(found, type) and issubclass(found, Exception):
            assert found.__doc__


def test_the_readme_s_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert program is not None
    people = [{"age": 10 + i % 80, "gender": i % 2} for i in range(1000)]
    pd.DataFrame(people).to_parquet(tmp_path / "people.parquet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fp.BudgetExceeded):
        exec(program[1], {})


def test_the_page_of_operators_is_the_table_of_operators() -> None:
    assert operators_page.PAGE.read_text(encoding="utf-8") == operators_page.page()


def test_every_page_is_in_the_site_s_navigation() -> None:
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not page.startswith("decisions/")} == named
