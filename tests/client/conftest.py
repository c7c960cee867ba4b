"""The same programs on every engine."""

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY, VISITS


@pytest.fixture(params=["reference", "duckdb"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def people(engine: str) -> fp.Table:
    table: fp.Table = fp.protect(PEOPLE, budget=PLENTY, engine=engine, name="people")
    return table


@pytest.fixture
def visits(engine: str) -> fp.Table:
    table: fp.Table = fp.protect(VISITS, budget=PLENTY, engine=engine, name="visits")
    return table
