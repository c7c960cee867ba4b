"""Maps that never change: the dict that the same changes make, whatever was changed since."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model.maps import Map

CHANGES = st.lists(st.tuples(st.integers(0, 40), st.none() | st.integers()), max_size=80)


@given(CHANGES)
def test_a_map_is_the_dict_that_the_same_changes_make_and_stays_it(changes: list[tuple[int, Any]]) -> None:
    empty: Map[int, int] = Map()
    versions: list[tuple[Map[int, int], dict[int, int]]] = [(empty, {})]
    for key, value in changes:
        now, model = versions[-1][0], dict(versions[-1][1])
        if value is None:
            model.pop(key, None)
            versions.append((now.without(key), model) if key in now else (now, model))
        else:
            versions.append((now.put(key, value), {**model, key: value}))
    for found, model in versions[::7] + versions[-1:]:
        assert (dict(found), sorted(found), len(found)) == (model, sorted(model), len(model))
        assert found == Map(model) == model
        for key in range(41):
            assert (key in found) == (key in model)
            assert found.get(key) == model.get(key)
            assert found.get(key, -1) == model.get(key, -1)
    assert repr(Map({1: 2}).put(3, 4)) == "Map({1: 2, 3: 4})"


def test_what_is_not_there_is_a_key_error_and_what_is_none_is_there() -> None:
    found: Map[str, int | None] = Map({"a": 1}).put("b", None).without("a")
    assert found["b"] is None
    assert "b" in found
    for absent in ("a", "c"):
        with pytest.raises(KeyError, match=absent):
            found[absent]


def test_what_is_copied_is_no_more_than_the_square_root_of_what_is_there() -> None:
    found: Map[int, int] = Map()
    copied = 0
    for number in range(10_000):
        before, found = found, found.put(number, number)
        copied += len(found._late) if found._rest is before._rest else len(found._rest)
    assert len(found) == 10_000
    assert copied < 10_000 * 3 * 10_000**0.5
    assert copied < 10_000**2 / 20
