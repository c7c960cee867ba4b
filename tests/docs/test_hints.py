"""What an error says to install can be installed, and is what the project is tested with."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def requirements() -> dict[str, str]:
    """Package ↦ the requirement of it, of every extra."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    return {name(each): each for some in extras.values() for each in some}


def name(requirement: str) -> str:
    return re.split(r"[\[<>=]", requirement)[0]


def hinted() -> list[str]:
    """The requirements in every `pip install …` of the sources."""
    found: list[str] = []
    for path in (ROOT / "src/fpinq").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for command in re.findall(r"pip install ((?:[\w'\"\[\]<>=.,]+ ?)+)", text):
            if "{" not in command:
                found += re.findall(r"[A-Za-z][\w\[\].<>=,]*[\w\]]", command)
        if path.name == "columns.py":
            found += re.findall(r"\"'([^']+)'\"", text)
    return found


def test_a_hint_names_no_package_that_is_not_to_be_had_and_no_version_that_is_refused() -> None:
    known = requirements()
    hints = hinted()
    assert {"sqlglot>=30,<31", "fastapi"} <= set(hints)
    for hint in hints:
        assert name(hint) != "fpinq", "it is in a clone or a wheel, not in an index"
        bounded = "<" in known.get(name(hint), "")
        assert not bounded or hint == known[name(hint)] or hint == "pyspark[connect]", hint
