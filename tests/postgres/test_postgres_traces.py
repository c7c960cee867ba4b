"""The golden traces on PostgreSQL: the same rules, charges and refusals as the kernel's."""

import pytest

from fpinq.engines.postgres import Postgres
from postgres.tables import OnTables, Owner
from runtime.test_embedded_traces import replay
from traces.programs import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_postgres_replays_the_golden_trace(owner: Owner, name: str) -> None:
    engine = Postgres(owner.readers)
    replay(name, OnTables(engine, owner))
    engine.close()
