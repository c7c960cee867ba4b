"""64 clients over 2 processes race for the last of the budget: overspend exactly 0."""

import os
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from faults.program import SHAPE
from fpinq.ledger import open_ledger, open_store
from fpinq.ledger.verify import verify
from fpinq.model.actions import Partition
from fpinq.model.expressions import Column
from fpinq.model.transformations import Partitioning

TESTS = Path(__file__).parents[1]


def race(place: str, tables: list[str], start: Path) -> tuple[int, int]:
    """How many queries were answered and how many refused, in all."""
    paths = [str(TESTS), str(TESTS.parent / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    racing = str(TESTS / "faults" / "racing.py")
    processes = [
        subprocess.Popen(
            [sys.executable, racing, place, table, str(start)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for table in tables
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1][-2000:]
    start.touch()
    answered = refused = 0
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err[-2000:]
        counts = out.split()
        answered, refused = answered + int(counts[0]), refused + int(counts[1])
    return answered, refused


@pytest.fixture
def fast_place(place: str) -> str:
    """In memory, where it is a file and that is possible: the race is for the lock, not for the disk."""
    if place.startswith("postgresql") or not os.access("/dev/shm", os.W_OK):
        return place
    return f"/dev/shm/fpinq-race-{os.getpid()}-{os.urandom(4).hex()}"


def test_64_clients_of_2_processes_spend_all_of_it_and_no_more(fast_place: str, tmp_path: Path) -> None:
    ledger = open_ledger(fast_place)
    ledger.register("data", SHAPE, 1, contents=["data"])
    ledger.close()
    try:
        answered, refused = race(fast_place, ["data", "data"], tmp_path / "start")
        assert (answered, refused) == (60, 64)
        check(fast_place, answers=60)
    finally:
        remove(fast_place)


def test_64_clients_race_for_two_parts_of_one_partition(fast_place: str, tmp_path: Path) -> None:
    ledger = open_ledger(fast_place)
    ledger.register("data", SHAPE, 1, contents=["data"])
    ledger.act("parts", Partition(("p", "q"), "data", Partitioning(Column("a"), (0, 1))))
    ledger.close()
    try:
        answered, refused = race(fast_place, ["p", "q"], tmp_path / "start")
        # Each part may be asked 60 times; together they cost the maximum.
        assert (answered, refused) == (120, 64)
        check(fast_place, answers=120)
    finally:
        remove(fast_place)


def check(place: str, answers: int) -> None:
    with closing(open_store(place)) as store:
        report = verify(store)
        assert report.roots["data"] == (Fraction(1), Fraction(1))
        assert report.unanswered == 0
        with store.reading() as statements:
            ((recorded,),) = statements.rows("SELECT count(*) FROM entries WHERE answers IS NOT NULL")
    assert recorded == answers


def remove(place: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(place + suffix):
            os.remove(place + suffix)
