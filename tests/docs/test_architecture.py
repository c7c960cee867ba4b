"""ARCHITECTURE.md is true: what folders import, and the walks from a lambda to its answer."""

import ast
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

import fpinq as fp
from server.live import people, serve

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SOURCES = Path(fp.__file__).parent
FOLDERS = sorted(path.name for path in SOURCES.iterdir() if (path / "__init__.py").exists())


# ── imports ──────────────────────────────────────────────────────────────────────────


def modules_imported(path: Path) -> Iterator[str]:
    """The modules of this package that a file names in its imports, wherever in it they are."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            whole = (SOURCES.parent / node.module.replace(".", "/")).is_dir()
            yield from (f"{node.module}.{name.name}" if whole else node.module for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def imported(folder: str) -> set[str]:
    found = {name for path in (SOURCES / folder).rglob("*.py") for name in modules_imported(path)}
    return {name.removeprefix("fpinq.") for name in found if name.startswith("fpinq.")}


def allowed() -> dict[str, set[str]]:
    """The last column of the table of folders."""
    rows = re.findall(r"^\| `(\w+)/` \|.*\| (.*?) \|$", PAGE, re.MULTILINE)
    return {folder: set(re.findall(r"`([\w.]+)`", names)) for folder, names in rows if folder != "proof"}


def test_every_folder_has_a_line_in_the_table() -> None:
    assert sorted(allowed()) == FOLDERS


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "cli"])
def test_a_folder_imports_what_the_table_says_and_all_of_it(folder: str) -> None:
    others = {name for name in imported(folder) if name.split(".")[0] not in (folder, "")}
    written = allowed()[folder]
    strangers = {name for name in others if not any(f"{name}.".startswith(f"{may}.") for may in written)}
    unused = {may for may in written if not any(f"{name}.".startswith(f"{may}.") for name in others)}
    assert not strangers
    assert not unused


# ── sizes ────────────────────────────────────────────────────────────────────────────


def test_the_model_is_as_large_as_is_said() -> None:
    parts = re.findall(r"^\| [^|]+ \| ((?:`\w+` ?)+)\| ([\d,]+) \|$", PAGE, re.MULTILINE)
    assert len(parts) == 3
    for modules, written in parts:
        lines = sum(_lines(SOURCES / "model" / f"{name}.py") for name in re.findall(r"`(\w+)`", modules))
        assert 0.9 * lines <= int(written.replace(",", "")) <= 1.1 * lines, (modules, lines)


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


# ── walks ────────────────────────────────────────────────────────────────────────────


class Calls:
    """The functions of this package in the order in which they are first called, in any thread."""

    def __init__(self) -> None:
        self.first: dict[str, None] = {}
        self._watching = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if self._watching and event == "call" and frame.f_code.co_filename.startswith(str(SOURCES)):
            file = Path(frame.f_code.co_filename).relative_to(SOURCES).as_posix()
            self.first.setdefault(f"{file}: {frame.f_code.co_name}")

    def of(self, do: Callable[[], object]) -> list[str]:
        self._watching = True
        sys.setprofile(self)
        try:
            do()
        finally:
            sys.setprofile(None)
            self._watching = False
        return list(self.first)


@pytest.fixture
def calls() -> Iterator[Calls]:
    calls = Calls()
    threading.setprofile(calls)
    yield calls
    threading.setprofile(None)


def walk(title: str) -> list[str]:
    """The steps of a walk as it is written."""
    written = PAGE.split(f"### {title}\n", 1)[1].split("\n#", 1)[0]
    return re.findall(r"^\d+\. `([\w/]+\.py: \w+)`", written, re.MULTILINE)


def files(steps: list[str]) -> set[str]:
    return {step.partition(":")[0] for step in steps}


def looked_up() -> set[str]:
    """The files that walks look something up in, as they are written."""
    written = PAGE.split("### Looked up on the way\n", 1)[1].split("\n#", 1)[0]
    return {
        f"{folder}/{name}.py"
        for folder, names in re.findall(r"`([\w/]+)/\{([\w, ]+)\}`", written)
        for name in names.split(", ")
    }


def is_in_order(steps: list[str], called: list[str]) -> bool:
    numbers = [called.index(step) for step in steps]
    return numbers == sorted(numbers)


def check_walk(steps: list[str], called: list[str], most: int) -> None:
    assert [step for step in steps if step not in called] == []
    assert is_in_order(steps, called)
    assert len(files(steps)) <= most
    assert files(called) - files(steps) - looked_up() == set()


def test_an_average_takes_the_embedded_walk(calls: Calls) -> None:
    data = fp.protect([{"age": age} for age in (20, 30, 40)], budget=1)
    called = calls.of(lambda: data.noisy_average("1/10", lambda row: row.age, bounds=(0, 100)))
    check_walk(walk("Embedded"), called, 20)


def test_an_average_takes_the_walk_over_http(calls: Calls, tmp_path: Path) -> None:
    with serve(tmp_path, people()) as live:
        data = live.connect()["people"]
        data.noisy_count("1/10")  # begins the session
        called = calls.of(lambda: data.noisy_average("1/10", lambda row: row.age, bounds=(0, 100)))
    check_walk(walk("Over HTTP"), called, 30)


def test_what_is_looked_up_is_there() -> None:
    assert {file for file in looked_up() if not (SOURCES / file).exists()} == set()
