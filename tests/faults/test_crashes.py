"""A crash may waste budget, never reuse it: kill −9 at every write of the charge–release path."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]


def deaths(kind: str, where: str, amount: int) -> int:
    """How often the program was killed; every time, what must hold held."""
    source = str(TESTS.parent / "src")
    paths = [str(TESTS), source, *filter(None, [os.environ.get("PYTHONPATH")])]
    finished = subprocess.run(
        [sys.executable, str(TESTS / "faults" / "crashing.py"), kind, where, str(amount)],
        capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr[-2000:]
    return int(finished.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """In memory if possible: a killed process loses nothing that it gave to the system, disk or not."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else str(tmp_path)


def test_killed_before_and_after_every_statement(folder: str) -> None:
    assert deaths("statements", folder, 1) >= 200


def test_killed_at_every_point_between_the_ledger_and_its_anchor(folder: str) -> None:
    """An honest restart is never refused, and nothing that was released is missing in the anchor."""
    assert deaths("anchor", folder, 3) >= 80


def test_killed_while_the_steps_of_several_threads_are_written_together(folder: str) -> None:
    """What the others in the transaction did is there too, or nothing of it is."""
    assert deaths("together", folder, 13) >= 6


def test_killed_while_several_are_written_together_on_postgresql(postgres: Any) -> None:
    assert deaths("together", postgres.url("postgres"), 31) >= 2


def test_killed_in_the_middle_of_writes(folder: str) -> None:
    assert deaths("writes", folder, 3500) >= 30


def test_killed_at_statements_on_postgresql(postgres: Any) -> None:
    assert deaths("statements", postgres.url("postgres"), 7) >= 20
