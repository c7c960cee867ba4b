"""Fixtures: where a ledger can be. Every test that takes `place` runs on each database."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.throwaway_postgres import NoPostgreSQL, Server, throwaway_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    try:
        with throwaway_postgres() as server:
            yield server
    except NoPostgreSQL as reason:
        pytest.skip(f"no PostgreSQL: {reason}")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "people.ledger")
    server: Server = request.getfixturevalue("postgres")
    return server.fresh()


@pytest.fixture
def opened() -> Iterator[Callable[[str], Any]]:
    """Opens ledgers, and closes them in the end."""
    from fpinq.ledger import open_ledger

    ledgers: list[Any] = []

    def open_one(where: str) -> Any:
        ledgers.append(open_ledger(where))
        return ledgers[-1]

    yield open_one
    for ledger in ledgers:
        ledger.close()
