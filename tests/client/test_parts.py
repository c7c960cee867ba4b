"""Parts: a mapping whose tables are made when they are looked at, and forgotten together."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

import fpinq as fp
from fpinq.client.remote import Names
from fpinq.model.actions import AskScale, Partition
from fpinq.model.environments import Numbered, things
from fpinq.model.expressions import Column
from fpinq.model.transformations import Partitioning

KEYS: dict[str, Any] = {
    "a range": range(40),
    "integers in a row": list(range(40)),
    "integers": [3, 1, 2],
    "with null": [None, 1],
    "one": [0],
}


@pytest.fixture
def data() -> fp.Table:
    rows = [{"k": i % 4, "age": i} for i in range(100)]
    return fp.protect(rows, budget=10**9, engine="reference", schema={"k": "int64", "age": "int64"})


def public() -> fp.Table:
    return fp.public([{"k": i % 4} for i in range(8)])


def held(data: fp.Table) -> int:
    """How many tables the program holds."""
    gc.collect()
    return len(data.facts.system.configuration().environment)  # type: ignore[union-attr]


@pytest.mark.parametrize("given", KEYS)
@pytest.mark.parametrize("of", ["protected", "public"])
def test_parts_are_a_mapping_of_the_keys_in_the_order_given(data: fp.Table, given: str, of: str) -> None:
    keys = KEYS[given]
    parts = (data if of == "protected" else public()).partition("k", keys=keys)
    assert list(parts) == list(parts.keys()) == [key for key, _ in parts.items()] == list(keys)
    assert len(parts) == len(parts.values()) == len(keys)
    assert [str(part.explain()).splitlines()[0] for part in parts.values()] == [
        str(parts[key].explain()).splitlines()[0] for key in keys
    ]
    assert repr(keys[0]) in repr(parts)
    assert parts == parts
    for unknown in (99, "a", [], 0.5):
        assert unknown not in parts
        assert parts.get(unknown) is None
        with pytest.raises(KeyError, match="no part has this key"):
            parts[unknown]


def test_a_part_is_the_same_as_long_as_somebody_has_it(data: fp.Table) -> None:
    for table in (data, public()):
        parts = table.partition("k", keys=range(4))
        first = parts[0]
        assert parts[0] is first is next(iter(parts.values()))
        assert parts[1] is parts[1] is not first
        assert {parts[0], parts[1], *parts.values()} == set(parts.values())


def test_parts_are_of_the_records_with_their_keys(data: fp.Table) -> None:
    parts = data.where(lambda x: x.age < 98).partition("k", keys=[3, 0, 7])
    assert [part.noisy_count(10**6).value for part in parts.values()] == [24, 25, 0]
    assert parts[0].where(lambda x: x.age > 50).noisy_count(10**6).value == 12
    assert data.remaining == 10**9 - 2 * 10**6


def test_parts_are_forgotten_together_with_the_last_of_them(data: fp.Table) -> None:
    before = held(data)
    parts = data.partition("k", keys=range(50))
    assert held(data) == before + 50
    assert things(data.facts.system.configuration().environment) <= before + 1  # type: ignore[union-attr]
    kept = parts[7]
    del parts
    assert held(data) == before + 50
    assert kept.noisy_count(10**6).value == 0
    older = kept.where(lambda x: x.age > 1)
    del kept
    assert held(data) == before + 51  # a table keeps what it was made of
    del older
    assert held(data) == before


def test_a_loop_holds_no_part_but_the_one_it_is_at(data: fp.Table) -> None:
    def tables() -> int:
        return sum(isinstance(each, fp.Table) for each in gc.get_objects())

    parts, before = data.partition("k", keys=range(200)), tables()
    for part in parts.values():
        part.noisy_count(1)
    assert tables() <= before + 1


def test_on_a_server_numbered_names_are_names_that_are_used_again() -> None:
    names, by = Names(), Partitioning(Column("k"), range(3))
    sent, fresh = names.translate(Partition(Numbered("t7", 3), "people", by))
    assert sent == Partition(("$1", "$2", "$3"), "people", by)
    names.bind(fresh)
    assert names.translate(AskScale("t7.2"))[0] == AskScale("$3")
    names.drop(Numbered("t7", 3))
    again, _ = names.translate(Partition(Numbered("t8", 4), "people", by))
    assert isinstance(again, Partition)
    assert sorted(again.targets) == ["$1", "$2", "$3", "$4"]


@pytest.mark.parametrize("asked", [lambda p: p.noisy_count(1), lambda p: p.where(lambda x: x.k > 0)])
def test_parts_of_a_ledger_s_table_go_on_where_they_were(
    tmp_path: Any, asked: Callable[[fp.Table], object]
) -> None:
    from fpinq.ledger import open_store
    from fpinq.ledger.verify import verify

    path = tmp_path / "x.ledger"
    data = fp.protect([{"k": 1}], budget=10, engine="reference", ledger=str(path), name="data")
    for part in data.partition("k", keys=range(20)).values():
        asked(part)
    del part
    gc.collect()
    data.noisy_count(1)
    record = data.facts.system.record  # type: ignore[union-attr]
    ((program, *_),) = record._memory.sessions._programs.values()  # type: ignore[attr-defined]
    assert not program.lengths
    assert program.length == 0
    store = open_store(path)
    assert verify(store, jobs=1).entries > 1
    store.close()
