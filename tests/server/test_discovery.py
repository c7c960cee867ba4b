"""Keys that nobody listed, over HTTP: found, charged, capped, limited and verified."""

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.ledger import open_store
from fpinq.ledger.verify import verify
from fpinq.ledger.wire import to_json
from fpinq.server import DataSet, TableConfig
from server.live import PEOPLE, Live, serve

KEYS = Fraction(1, 10**3)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    table = TableConfig(PEOPLE, schema=None, columns={"age": {"bounds": [0, 110]}})
    sets: Any = {
        "people": DataSet("people", fp.approximate(10, "1e-3", "1e-3"), {"people": table}, caps={"bob": 1})
    }
    with serve(tmp_path, sets) as it:
        yield it


def test_a_server_finds_keys_and_its_ledger_verifies(live: Live, tmp_path: Path) -> None:
    table = fp.connect(live.url, live.token()).table("people")
    assert (table.remaining, table.remaining_delta) == (10, KEYS)
    found = table.noisy_histogram(2, "gender", keys=fp.discover(delta="1e-4"))
    assert set(found) <= {0, 1}
    assert found.charged_delta == Fraction(1, 10**4)
    assert (table.remaining, table.remaining_delta) == (8, KEYS - Fraction(1, 10**4))
    assert set(table.noisy_histogram(2, "gender", keys=fp.domain.integers(0, 99))) <= set(range(100))
    parts = table.partition("gender", keys=fp.discover(2, "1e-4"))
    assert all(abs(part.noisy_count(2).value) < 1000 for part in parts.values())
    with pytest.raises(fp.BudgetExceeded, match="δ for keys"):
        table.noisy_histogram("1/10", "gender", keys=fp.discover(delta="9e-4"))
    live.house.close()
    with closing(open_store(tmp_path / "ledger", create=False)) as store:
        verify(store)


def test_an_owner_sees_who_has_spent_which_delta(live: Live) -> None:
    """It was in the trace alone: neither what was spent by whom nor the metrics told it."""
    fp.connect(live.url, live.token()).table("people").noisy_histogram(
        2, "gender", keys=fp.discover(delta="1e-4")
    )
    (found,) = live.send("GET", "/spending", token=live.token("olga", "owner")).json["datasets"]
    assert found["keys_delta"] == "1/1000"
    assert [(each["name"], each["spent_delta"], each["keys_cap"]) for each in found["analysts"]] == [
        ("alice", "1/10000", None),
        ("bob", "0", None),
    ]
    assert 'fpinq_delta_remaining{dataset="people"} 0.0009' in live.send("GET", "/metrics").body.decode()


def test_limits_go_by_how_many_keys_are_shown_before_the_charge(live: Live) -> None:
    table = fp.connect(live.url, live.token()).table("people")
    with pytest.raises(fp.TooLarge, match="releases at most"):
        table.noisy_histogram(1, "gender", keys=fp.discover(delta="1e-4", at_most=500_001))
    with pytest.raises(fp.BadEpsilon):
        table.noisy_histogram("1e-9", "gender", keys=fp.discover(delta="1e-4"))
    assert (table.remaining, table.remaining_delta) == (10, KEYS)


@pytest.mark.parametrize(
    ("within", "parts"), [(fp.domain.strings(1_024), 1), (fp.domain.integers(0, 2**40), 10_000)]
)
def test_keys_that_nobody_has_are_refused_before_the_charge_where_drawing_them_takes_too_long(
    live: Live, within: Any, parts: int
) -> None:
    token = live.token()
    session = live.session(token)
    key = {"op": "column", "name": "name" if parts == 1 else "age"}
    sparse = {"op": "sparse", "key": key, "domain": to_json(within), "expected": "10000", "at_most": 1}
    by = {"op": "partitioning", "key": {"op": "column", "name": "gender"}, "keys": {"range": [1, parts]}}
    asked = {"op": "query", "table": "people", "epsilon": "1", "queries": [sparse], "by": by}
    assert live.act(session, token, asked).code == "too_large"
    assert live.left() == 10


def test_an_analyst_with_a_cap_spends_of_the_common_delta(live: Live) -> None:
    ann, bob = (fp.connect(live.url, live.token(who)).table("people") for who in ("ann", "bob"))
    bob.noisy_histogram(1, "gender", keys=fp.discover(delta="1e-4"))
    with pytest.raises(fp.BudgetExceeded):
        bob.noisy_histogram(1, "gender", keys=fp.discover(delta="1e-4"))
    assert ann.remaining_delta == bob.remaining_delta == KEYS - Fraction(1, 10**4)
