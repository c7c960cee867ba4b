"""The wire: canonical one way, strict the other."""

import json
from contextlib import suppress
from fractions import Fraction
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpinq.ledger import wire
from fpinq.ledger.errors import BadWire
from fpinq.model.actions import Action, Assign, Query
from fpinq.model.expressions import MAX_DEPTH, Apply, Column
from fpinq.model.plans import Plan, Shape, Transformation
from fpinq.model.queries import Count, PrimitiveQuery
from fpinq.model.traces import Observation
from fpinq.model.transformations import Partitioning, Where
from ledger.random_actions import of

KINDS = [*get_args(Action), *get_args(Observation), *get_args(Transformation), *get_args(PrimitiveQuery)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_is_encoded_decodes_to_itself(kind: Any, data: st.DataObject) -> None:
    value = data.draw(of(kind))
    text = wire.encode(value)
    again = wire.decode(text, kind)
    assert again == value
    # == does not tell 1 from 1.0 or true; the text does.
    assert wire.encode(again) == text
    assert text.isascii()


@settings(max_examples=200, deadline=None)
@given(plan=of(Plan), shape=of(Shape))
def test_plans_and_shapes_too(plan: Any, shape: Any) -> None:
    assert wire.decode(wire.encode(plan), Plan) == plan
    assert wire.decode(wire.encode(shape), Shape) == shape


def test_equal_keys_of_different_types_have_different_bytes() -> None:
    texts = {wire.encode(Partitioning(Column("a"), (key,))) for key in (1, 1.0, True, "1")}
    assert len(texts) == 4


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["query"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["op", "table", "value", "epsilon", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(data=JSON)
def test_garbage_is_bad_wire_and_nothing_else(data: Any) -> None:
    with pytest.raises(BadWire):
        wire.decode_action(json.dumps(data))


@settings(max_examples=300, deadline=None)
@given(given_action=of(Action), replacement=JSON, draw=st.data())
def test_a_damaged_action_is_bad_wire_or_another_action(
    given_action: Any, replacement: Any, draw: st.DataObject
) -> None:
    damaged = wire.to_json(given_action)
    holders = [damaged]
    for holder in holders:
        holders += [
            v for v in (holder.values() if isinstance(holder, dict) else holder) if isinstance(v, dict | list)
        ]
    holder = draw.draw(st.sampled_from([h for h in holders if h]))
    where = draw.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
    holder[where] = replacement
    with suppress(BadWire):
        wire.decode_action(json.dumps(damaged))


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=30) | st.binary(max_size=30))
def test_random_bytes_are_bad_wire(text: Any) -> None:
    with pytest.raises(BadWire):
        wire.decode_action(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"op":"silent","op":"silent"}',
        '{"op":"silent","x":1}',
        '{"op":"ask_scale"}',
        '{"op":"ask_scale","table":1}',
        '{"op":"ask_price","table":"t","epsilon":0.1}',
        '{"op":"ask_price","table":"t","epsilon":NaN}',
        '{"op":"ask_price","table":"t","epsilon":"nan"}',
        '{"op":"ask_price","table":"t","epsilon":"1/0"}',
        '{"op":"ask_price","table":"t","epsilon":"1e999999999"}',
        '{"op":"ask_price","table":"t","epsilon":"' + "9" * 5000 + '"}',
        '{"op":"ask_price","table":"t","epsilon":' + "9" * 5000 + "}",
        '{"op":"query","table":"t","epsilon":"1","queries":[{"op":"drop_table"}]}',
        '{"op":"query","table":"t","epsilon":"1","queries":"count"}',
        '{"op":["query"]}',
        '{"op":"assign","target":"t","transformation":{"op":"where","predicate":'
        '{"op":"literal","value":1,"type":"bool"}},"arguments":["t"]}',
        '{"op":"query","table":"t","epsilon":"1","queries":[],"by":{"key":{"op":"column","name":"a"},'
        '"keys":[1e999]}}',
        '{"op":"query","table":"t","epsilon":"1","queries":[],"by":{"key":{"op":"column","name":"a"},'
        '"keys":[{"date":"2023-02-29"}]}}',
        *[
            '{"op":"query","table":"t","epsilon":"1","queries":[],"by":{"key":{"op":"column","name":"a"},'
            '"keys":' + keys + "}}"
            for keys in (
                '{"range":[0]}',
                '{"range":[0,1,2]}',
                '{"range":[0,"1"]}',
                '{"range":[false,1]}',
                '{"range":[0,1.0]}',
                '{"range":{"0":1}}',
                '{"range":[0,1],"step":2}',
                '{"range":[0,' + "9" * 30 + "]}",
                '{"span":[0,1]}',
                "{}",
            )
        ],
        "[" * 100_000,
        '{"a":' * 100_000,
        b"\xff",
        "",
    ],
    ids=lambda text: str(text[:60]),
)
def test_bad_input_is_refused(text: Any) -> None:
    with pytest.raises(BadWire):
        wire.decode_action(text)


def test_a_range_of_keys_is_written_by_its_ends_and_read_back_as_one() -> None:
    by = Partitioning(Column("a"), range(-5, 10**6 - 5))
    text = wire.encode(Query("t", Fraction(1), (Count(),), by))
    assert '"keys":{"range":[-5,999994]}' in text
    assert len(text) < 200
    assert wire.decode_action(text).by == by  # type: ignore[union-attr]
    # Keys that were written one by one stay that: equal actions have equal bytes.
    listed = Partitioning(Column("a"), (0, 1, 2))
    assert '"keys":[0,1,2]' in wire.encode(listed)
    assert listed != Partitioning(Column("a"), range(3))


class Sly(int):
    """An integer that is written as another."""

    def __repr__(self) -> str:
        return "0"


ITEMS: list[Any] = [(7,), (-(10**40),), (), 3, (True,), (None,), ("é",), (1.5,), (1, 2, 3), ((1,),)]


@pytest.mark.parametrize("item", [*ITEMS, Fraction(1, 3), Count(), [1], (Sly(1),), Sly(1)], ids=repr)
def test_very_many_items_are_encoded_as_few_are(item: Any) -> None:
    for others in ((7,), 5, "a"):
        for number in (3, wire.FEW, wire.FEW + 1, 40):
            items = (others,) * number
            try:
                one_by_one = [*(wire.to_json(each) for each in items), wire.to_json(item)]
            except BadWire:
                with pytest.raises(BadWire):
                    wire.to_json((*items, item))
                continue
            together = wire.to_json((*items, item))
            assert json.dumps(together) == json.dumps(one_by_one)
            assert type(together) is list


GOOD: list[Any] = [[7], [], 3, [1, 2]]
BAD: list[Any] = [[True], [1.0], ["1"], [[1]], None, "1", {}, True]


@pytest.mark.parametrize("last", [*GOOD, *BAD], ids=repr)
def test_what_was_released_is_integers_however_many_there_are(last: Any) -> None:
    for number in (0, 40):
        text = json.dumps({"op": "answered", "released": [[5]] * number + [last], "charged": {}})
        if any(last is bad for bad in BAD):
            with pytest.raises(BadWire):
                wire.decode_observation(text)
        else:
            found: Any = wire.decode_observation(text)
            assert found.released == ((5,),) * number + (tuple(last) if isinstance(last, list) else last,)
            assert type(found.released) is tuple


def test_nesting_beyond_an_expression_is_refused() -> None:
    text = '{"op":"column","name":"a"}'
    for _ in range(wire.MAX_DEPTH):
        text = '{"op":"apply","operator":"abs","arguments":[' + text + "]}"
    with pytest.raises(BadWire):
        wire.decode_action(
            '{"op":"assign","target":"t","transformation":{"op":"where","predicate":' + text + "}}"
        )


def test_the_deepest_expression_passes() -> None:
    expression: Any = Column("a")
    for _ in range(MAX_DEPTH):
        expression = Apply("abs", (expression,))
    deep = Assign("t", Where(expression), ("people",))
    assert wire.decode_action(wire.encode(deep)) == deep


def test_what_has_a_default_may_be_left_out() -> None:
    text = '{"op":"query","table":"t","epsilon":"0.1","queries":[{"op":"count"}]}'
    assert wire.decode_action(text) == Query("t", Fraction(1, 10), (Count(),))
