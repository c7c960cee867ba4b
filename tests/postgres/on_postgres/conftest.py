"""The client's own tests again, on PostgreSQL. Each module is one of tests/client."""

from collections.abc import Iterator
from typing import Any

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY, VISITS
from postgres.tables import OnTables, Owner


@pytest.fixture(scope="session")
def client_engine(owner: Owner) -> Iterator[OnTables]:
    engine = fp.Postgres(owner.readers)
    yield OnTables(engine, owner)
    engine.close()


@pytest.fixture
def engine(client_engine: OnTables) -> OnTables:
    return client_engine


@pytest.fixture
def people(engine: OnTables) -> Any:
    return fp.protect(PEOPLE, budget=PLENTY, engine=engine, name="people")


@pytest.fixture
def visits(engine: OnTables) -> Any:
    return fp.protect(VISITS, budget=PLENTY, engine=engine, name="visits")
