"""The client's own tests again, on Spark. Each module is one of tests/client."""

from collections.abc import Iterator
from typing import Any

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY, VISITS
from fpinq.engines.spark import Spark


@pytest.fixture(scope="session")
def client_engine(spark: Any) -> Iterator[Spark]:
    engine = Spark(session=spark._sessions[0])
    yield engine
    engine.close()


@pytest.fixture
def engine(client_engine: Spark) -> Spark:
    return client_engine


@pytest.fixture
def people(engine: Spark) -> Any:
    return fp.protect(PEOPLE, budget=PLENTY, engine=engine, name="people")


@pytest.fixture
def visits(engine: Spark) -> Any:
    return fp.protect(VISITS, budget=PLENTY, engine=engine, name="visits")
