"""Maps that never change: the dict that the same changes make, whatever was changed since."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model import maps
from fpinq.model.maps import FEW, Map, put, updated, without

# Few hashes for many keys: whole ones that are the same, and such as differ in their last bits looked at.
HASHES = (0, 1, 32, -1, 2**59, 2**60, 2**61 - 2)


class Key:
    """A key with a hash of its choosing."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.number == other.number

    def __hash__(self) -> int:
        return HASHES[self.number % len(HASHES)]


KEYS = st.integers(0, 150) | st.integers(0, 150).map(Key)
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.integers()), max_size=120)
MANY = st.lists(st.integers(0, 400), max_size=120)


def versions(
    start: Mapping[Any, Any], changes: list[tuple[Any, Any]]
) -> Iterator[tuple[Mapping[Any, Any], Any]]:
    """The maps that changes make, one of the other, and the dicts that they should be."""
    now, model = start, dict(start)
    for key, value in changes:
        model = dict(model)
        if value is None:
            model.pop(key, None)
            now = without(now, key)
        else:
            model[key] = value
            now = put(now, key, value)
        yield now, model


@pytest.mark.parametrize("few", [FEW, 1])
@pytest.mark.parametrize("start", [dict, Map], ids=["a dict", "a map"])
@given(MANY, CHANGES, MANY)
def test_a_map_is_the_dict_that_the_same_changes_make_and_stays_it(
    start: Callable[[dict[Any, Any]], Mapping[Any, Any]],
    few: int,
    held: list[int],
    changes: list[tuple[Any, Any]],
    more: list[int],
) -> None:
    before = dict.fromkeys(held, -1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maps, "FEW", few)
        made = list(versions(start(before), changes))
        last, model = made[-1] if made else (start(before), before)
        many = dict.fromkeys(more, 7)
        made.append((updated(last, many), {**model, **many}))
        for found, model in made[::9] + made[-2:]:
            assert len(found) == len(model)
            assert (dict(found), set(found)) == (model, set(model))
            assert found == model
            for key in [*range(150), *map(Key, range(150))]:
                assert (key in found) == (key in model)
                assert (found.get(key), found.get(key, -1)) == (model.get(key), model.get(key, -1))


def test_what_is_not_there_is_a_key_error_and_what_is_none_is_there() -> None:
    found: Map[str, int | None] = Map({"a": 1}).put("b", None).without("a")
    assert found["b"] is None
    assert "b" in found
    assert found.without("a") is found
    for absent in ("a", "c"):
        with pytest.raises(KeyError, match=absent):
            found[absent]
    assert repr(Map({1: 2}).put(3, 4)) == "Map({1: 2, 3: 4})"


def test_a_small_map_is_a_dict_and_a_larger_one_is_not() -> None:
    small: Mapping[int, int] = {}
    for number in range(FEW):
        small = put(small, number, number)
    assert type(small) is dict
    assert type(put(small, FEW, 0)) is type(updated(small, {FEW: 0})) is Map
    assert type(without(put(small, FEW, 0), 0)) is Map


@pytest.mark.parametrize("change", [lambda m, key: put(m, key, 0), without], ids=["put", "without"])
def test_what_is_made_for_a_change_is_as_much_whatever_is_there(change: Callable[[Any, Any], Any]) -> None:
    fresh = []
    for size in (1_000, 100_000):
        whole = updated({}, dict.fromkeys(range(size), 0))
        assert isinstance(whole, Map)
        old = {id(node) for node in nodes_of(whole.node)}
        made = [node for node in nodes_of(change(whole, size // 2).node) if id(node) not in old]
        fresh.append(sum(map(len, made)))
    assert fresh[1] <= fresh[0] + 2 * FEW


def test_what_is_large_is_a_map_whatever_becomes_of_it_and_what_is_small_is_copied() -> None:
    """A copy of something large would be as right, and slow."""
    few, many = ({i: i for i in range(n)} for n in (FEW - 1, 10 * FEW))
    small = Map({1: 1})
    for changed_one in (lambda m: put(m, 0, 1), lambda m: updated(m, {0: 1}), lambda m: without(m, 0)):
        assert type(changed_one(few)) is dict
        assert type(changed_one(many)) is Map
        assert type(changed_one(small)) is Map


def nodes_of(node: Any) -> Iterator[Any]:
    yield node
    if isinstance(node, list):
        for each in node:
            yield from nodes_of(each)


def test_looking_at_a_large_map_is_as_many_calls_as_at_a_small_one() -> None:
    large = updated({}, dict.fromkeys(range(100_000), 0))
    assert calls(lambda: large.get(5)) <= 2
    assert calls(lambda: put(large, 5, 5)) <= 12


def calls(work: Callable[[], object]) -> int:
    """How many functions of Python a work calls."""
    count = 0

    def called(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_things_made_of_their_numbers_are_a_sequence() -> None:
    squares = maps.Each(5, lambda number: number**2)
    assert list(squares) == list(squares[:]) == [0, 1, 4, 9, 16]
    assert (squares[-1], squares[1:3], len(squares), 9 in squares) == (16, [1, 4], 5, True)
    for index in (5, -6):
        with pytest.raises(IndexError):
            squares[index]


def test_what_is_folded_is_found_once_and_the_inner_first() -> None:
    found: list[int] = []

    def fold(of: Sequence[Mapping[str, int]]) -> dict[str, int]:
        found.append(len(of))
        return {key: value for each in of for key, value in each.items()}

    inner = maps.Folded([{"a": 1}, {"b": 2}], fold)
    outer: maps.Folded[str, int] = maps.Folded([inner, inner, {"c": 3}], fold)
    assert (bool(outer), bool(maps.Folded([{}, {}], fold)), found) == (True, False, [])
    assert outer == {"a": 1, "b": 2, "c": 3}
    assert (outer["a"], outer.get("d", 4), len(inner), list(outer), repr(inner)) == (
        *(1, 4, 2, ["a", "b", "c"]),
        "{'a': 1, 'b': 2}",
    )
    assert found == [2, 3]
