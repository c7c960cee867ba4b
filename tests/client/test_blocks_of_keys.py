"""Blocks with a δ for keys: every block pays of its own, and one that has none left refuses for all."""

from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.ledger import open_store
from fpinq.ledger.verify import verify
from fpinq.server import DataSet, TableConfig
from server.live import Live, serve

SCHEMA = {"city": "string", "age": "int64"}
KNOWN: dict[str, Any] = {"age": {"bounds": [0, 110]}}
DELTA = Fraction(1, 10**9)


def rows(number: int) -> list[dict[str, Any]]:
    """Two cities that every block has, and one that only this one has."""
    cities = ["Oslo"] * 200 + ["Bern"] * 100 + [f"only {number}"] * 80
    return [{"city": city, "age": 20 + (i + number) % 50} for i, city in enumerate(cities)]


def budget(keys: Fraction, epsilon: Any = 10) -> Any:
    return fp.approximate(epsilon, keys, keys) if keys else Fraction(epsilon)


def grown(*keys: Fraction, **how: Any) -> Any:
    first, *rest = keys
    table = fp.protect(rows(0), budget=budget(first), schema=SCHEMA, name="block 0", **how)
    for number, each in enumerate(rest, 1):
        table = table.append(rows(number), budget=budget(each), name=f"block {number}")
    return table


def test_a_query_of_all_blocks_finds_keys_of_each_and_charges_every_delta() -> None:
    table = grown(10 * DELTA, 5 * DELTA, 3 * DELTA)
    expected = table.expected_keys("city", fp.discover(1, DELTA))
    found = table.noisy_histogram(1, "city", keys=fp.discover(delta=DELTA))
    assert list(found) == ["Bern", "Oslo", "only 0", "only 1", "only 2"]
    assert found.charged_delta == expected.price_delta == dict.fromkeys(table.remaining, DELTA)
    assert list(table.remaining_delta.values()) == [9 * DELTA, 4 * DELTA, 2 * DELTA]
    assert set(table.remaining.values()) == {9}


@pytest.mark.parametrize("spent", [0, 1, 2])
def test_one_block_without_enough_delta_refuses_and_nothing_is_charged_anywhere(spent: int) -> None:
    keys = [4 * DELTA] * 3
    keys[spent] = DELTA / 2
    table = grown(*keys)
    before = dict(table.remaining), dict(table.remaining_delta)
    for ask in (
        lambda: table.noisy_histogram(1, "city", keys=fp.discover(delta=DELTA)),
        lambda: table.partition("city", keys=fp.discover(1, DELTA)),
        lambda: table.query(1, fp.average("age", bounds=(0, 99)), by="city", keys=fp.discover(1, DELTA)),
        lambda: table.sql("SELECT city, COUNT(*) FROM t GROUP BY city", epsilon=1, delta=DELTA),
    ):
        with pytest.raises(fp.BudgetExceeded, match="δ"):
            ask()
        assert (dict(table.remaining), dict(table.remaining_delta)) == before
    found = table.noisy_histogram(1, "city", keys=fp.discover(delta=DELTA / 2))
    assert "Oslo" in found
    assert list(table.remaining_delta.values())[spent] == 0


def test_a_block_that_has_no_delta_is_asked_for_none() -> None:
    table = grown(4 * DELTA, Fraction(0))
    before = dict(table.remaining), dict(table.remaining_delta)
    with pytest.raises(fp.NoDelta):
        table.noisy_histogram(1, "city", keys=fp.discover(delta=DELTA))
    with pytest.raises(fp.NoDelta):
        table.price_delta(DELTA)
    assert (dict(table.remaining), dict(table.remaining_delta)) == before
    assert "Oslo" in table.noisy_histogram(1, "city", keys=fp.domain.strings(16))
    assert set(table.remaining.values()) == {9}


def test_a_block_that_is_asked_by_itself_pays_alone() -> None:
    first = fp.protect(rows(0), budget=budget(4 * DELTA), schema=SCHEMA, name="first")
    both = first.append(rows(1), budget=budget(4 * DELTA), name="second")
    first.noisy_histogram(1, "city", keys=fp.discover(delta=3 * DELTA))
    assert list(both.remaining_delta.values()) == [DELTA, 4 * DELTA]
    with pytest.raises(fp.BudgetExceeded):
        both.noisy_histogram(1, "city", keys=fp.discover(delta=2 * DELTA))
    assert list(both.remaining_delta.values()) == [DELTA, 4 * DELTA]


def test_a_ledger_keeps_the_delta_of_every_block_and_verifies(tmp_path: Path) -> None:
    path = tmp_path / "blocks.ledger"
    table = grown(4 * DELTA, 2 * DELTA, ledger=path)
    table.noisy_histogram(1, "city", keys=fp.discover(delta=DELTA))
    with pytest.raises(fp.BudgetExceeded):
        table.noisy_histogram(1, "city", keys=fp.discover(delta=3 * DELTA / 2))
    again = grown(4 * DELTA, 2 * DELTA, ledger=path)
    assert list(again.remaining_delta.values()) == [3 * DELTA, DELTA]
    with closing(open_store(path, create=False)) as store:
        report = verify(store)
    assert [spent for _, spent in report.roots.values()] == [1, 1]


# ── on a server ──────────────────────────────────────────────────────────────────────


def served(*keys: Fraction, **of_first: Any) -> dict[str, DataSet]:
    sets = {}
    for number, each in enumerate(keys):
        name = "people" if not number else f"later{number}"
        more: dict[str, Any] = of_first if not number else {"block_of": "people"}
        sets[name] = DataSet(name, budget(each), {name: TableConfig(rows(number), columns=KNOWN)}, **more)
    return sets


def state(live: Live) -> dict[str, tuple[str, str | None]]:
    found = live.send("GET", "/datasets", token=live.token()).json["datasets"]
    return {each["name"]: (each["remaining"], each["remaining_delta"]) for each in found}


def test_a_question_of_blocks_quotes_and_charges_every_delta_and_is_verified(tmp_path: Path) -> None:
    question = {"table": "people", "kind": "count", "by": "city", "epsilon": 1, "discover": {"delta": "1e-9"}}
    with serve(tmp_path, served(4 * DELTA, DELTA)) as live:
        quote = live.send("POST", "/quotes", question, live.token()).json
        assert [Fraction(each["delta"]["price"]) for each in quote["prices"]] == [DELTA, DELTA]
        assert [Fraction(each["delta"]["left_after"]) for each in quote["prices"]] == [3 * DELTA, 0]
        told = live.send("POST", "/questions", question, live.token()).json
        assert [each["key"] for each in told["answers"]] == [["Bern"], ["Oslo"], ["only 0"], ["only 1"]]
        assert set(map(Fraction, told["charged_delta"].values())) == {DELTA}
        before, head = state(live), live.house.ledger.head()
        assert before == {"people": ("9", str(3 * DELTA)), "later1": ("9", "0")}
        select = "SELECT city, COUNT(*) FROM people GROUP BY city"
        statement = {"statement": select, "epsilon": 1, "delta": "1e-9"}
        averages = {
            **question, "kind": "average", "of": "age", "discover": {"delta": "1e-9", "epsilon": 1},
        }  # fmt: skip
        for path, body in (("/questions", question), ("/questions", averages), ("/sql", statement)):
            refused = live.send("POST", path, body, live.token())
            assert (refused.status, refused.json["error"]["code"]) == (402, "budget_exceeded")
        table = fp.connect(live.url, live.token())["people"]
        with pytest.raises(fp.BudgetExceeded):
            table.noisy_histogram(1, "city", keys=fp.discover(delta="1e-9"))
        assert state(live) == before
        assert live.house.ledger.head().seq <= head.seq + 2  # the client's own ⊥ is written, and its table
        live.house.close()
    with closing(open_store(tmp_path / "ledger", create=False)) as store:
        verify(store)


def test_a_block_has_its_own_cap_of_delta(tmp_path: Path) -> None:
    sets = served(4 * DELTA, 4 * DELTA, keys_caps={"bob": 2 * DELTA})
    sets["later1"] = DataSet(
        "later1", budget(4 * DELTA), sets["later1"].tables, block_of="people", keys_caps={"*": DELTA}
    )
    with serve(tmp_path, sets) as live:
        bob = fp.connect(live.url, live.token("bob"))["people"]
        assert bob.remaining_delta == {"people": 2 * DELTA, "later1": DELTA}
        bob.noisy_histogram(1, "city", keys=fp.discover(delta=DELTA))
        with pytest.raises(fp.BudgetExceeded):
            bob.noisy_histogram(1, "city", keys=fp.discover(delta=DELTA))
        ann = fp.connect(live.url, live.token("ann"))["people"]
        ann.noisy_histogram(1, "city", keys=fp.discover(delta=DELTA))
        assert ann.remaining_delta == {"people": 2 * DELTA, "later1": 0}
