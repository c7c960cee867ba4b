"""Temporary folders are a process's: those of killed processes are removed, everybody else's stay."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fpinq.engines import folders
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.folders import LOCK, Folder

# A process that has a folder with something in it, says which, and waits to be ended.
HAVING = """
import sys
from fpinq.engines.folders import Folder
folder = Folder()
open(folder.path + "/spilled", "w").close()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of its own, which nobody has cleaned yet."""
    there = tmp_path / "temporary"
    there.mkdir()
    monkeypatch.setenv("TMPDIR", str(there))
    monkeypatch.setattr("tempfile.tempdir", str(there))
    monkeypatch.setattr(folders, "_cleaned", set())
    return there


@pytest.fixture
def having() -> Iterator["subprocess.Popen[str]"]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", HAVING], text=True, **pipes)  # type: ignore[call-overload]
    yield process
    process.kill()
    process.communicate()


def path_of(process: "subprocess.Popen[str]") -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def start() -> None:
    """What a process does first."""
    Folder().remove()


def test_the_folder_of_a_killed_process_is_removed_at_the_next_start(
    having: "subprocess.Popen[str]",
) -> None:
    path = path_of(having)
    having.send_signal(signal.SIGKILL)
    having.wait()
    assert (path / "spilled").exists()
    start()
    assert not path.exists()


def test_the_folder_of_a_living_process_stays(having: "subprocess.Popen[str]") -> None:
    path = path_of(having)
    start()
    assert (path / "spilled").exists()


def test_a_folder_of_this_process_stays_when_others_are_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder()
    monkeypatch.setattr(folders, "_cleaned", set())
    start()
    assert os.path.isdir(folder.path)
    folder.remove()
    folder.remove()
    assert not os.path.exists(folder.path)


def test_a_link_is_not_followed(tmp_path: Path, place: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir(mode=0o700)
    (treasure / LOCK).touch()
    (treasure / "gold").touch()
    (place / "fpinq_trap").symlink_to(treasure)
    inside = abandoned(place / "fpinq_inside")
    (inside / "f0.parquet").symlink_to(treasure / "gold")
    (inside / "down").symlink_to(treasure)
    start()
    assert sorted(os.listdir(treasure)) == [LOCK, "gold"]
    assert (place / "fpinq_trap").is_symlink()
    assert not inside.exists()


def test_a_lock_that_is_a_link_is_none(tmp_path: Path, place: Path) -> None:
    (tmp_path / "free").touch()
    folder = abandoned(place / "fpinq_trap", lock=False)
    (folder / LOCK).symlink_to(tmp_path / "free")
    start()
    assert folder.exists()


def abandoned(path: Path, mode: int = 0o700, lock: bool = True) -> Path:
    """What a killed process left, or what looks like it."""
    path.mkdir()
    if lock:
        (path / LOCK).touch()
    path.chmod(mode)
    return path


def test_what_is_not_certainly_ours_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [
        abandoned(place / "fpinq_without-a-lock", lock=False),
        abandoned(place / "fpinq_open-to-others", mode=0o755),
        abandoned(place / "other-prefix"),
    ]
    (place / "fpinq_file").touch()
    start()
    assert all(path.exists() for path in [*others, place / "fpinq_file"])
    foreign = abandoned(place / "fpinq_of-somebody")
    monkeypatch.setattr(folders, "_cleaned", set())
    monkeypatch.setattr(os, "geteuid", lambda: foreign.stat().st_uid + 1)
    start()
    assert foreign.exists()


def test_a_process_cleans_once(place: Path) -> None:
    start()
    path = abandoned(place / "fpinq_left")
    start()
    assert path.exists()


def test_a_folder_is_closed_to_others_and_locked() -> None:
    folder = Folder("java_")
    assert os.path.basename(folder.path).startswith("fpinq_java_")
    assert os.stat(folder.path).st_mode & 0o777 == 0o700
    with folders._abandoned(folder.path) as is_abandoned:
        assert not is_abandoned
    folder.remove()


def test_a_fork_leaves_its_parents_folder_alone() -> None:
    folder = Folder()
    child = os.fork()
    if not child:
        folder.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.path.isdir(folder.path)
    folder.remove()


def test_nobody_loses_a_folder_to_somebody_who_cleans(monkeypatch: pytest.MonkeyPatch) -> None:
    """One who cleans between a folder's making and its locking gets it; its maker makes another."""
    stop, made = threading.Event(), []

    def cleaning() -> None:
        while not stop.is_set():
            folders._cleaned.clear()
            folders.clean()

    cleaner = threading.Thread(target=cleaning)
    cleaner.start()
    try:
        for _ in range(200):
            made.append(Folder())
            assert os.path.exists(os.path.join(made[-1].path, LOCK))
    finally:
        stop.set()
        cleaner.join()
    assert all(os.path.exists(os.path.join(folder.path, LOCK)) for folder in made)
    for folder in made:
        folder.remove()


def test_an_engine_has_one_folder_and_removes_it(place: Path) -> None:
    engine = DuckDB()
    engine.add_root("t", [{"x": 1}])
    (name,) = os.listdir(place)
    assert name.startswith("fpinq_")
    engine.close()
    assert os.listdir(place) == []


def test_the_folder_of_an_engine_that_was_killed_is_removed_by_the_next(place: Path) -> None:
    program = "import os; from fpinq.engines.duckdb import DuckDB; engine = DuckDB(); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    (left,) = os.listdir(place)
    DuckDB().close()
    assert left not in os.listdir(place)
