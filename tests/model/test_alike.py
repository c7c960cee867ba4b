"""The same query of all parts is one query: checked once, charged once, awaited from every part."""

from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model.actions import Query
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadExpression, BadPartition, NotAsRecorded, ProgramError
from fpinq.model.events import Began, Recorded, Registered
from fpinq.model.expressions import COLUMN_TYPES, Column, Schema, Type, check_values, checked_value
from fpinq.model.notation import show_action
from fpinq.model.queries import Count, Rank, Ranks
from fpinq.model.semantics import Measure, initial, step
from fpinq.model.sessions import NOTHING, decide, entered, opened, take
from fpinq.model.transformations import MAX_PARTS, Partitioning, check_partitioning, parts_of

K = Column("k")
S = Schema.of({"k": Type.INT64, "s": Type.STRING, "f": Type.FLOAT64})
ONE = Fraction(1)


class Small(int):
    """An integer that equals what it likes."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class _SaysItIsInt(type):
    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(int)


class Impostor(metaclass=_SaysItIsInt):
    """Of a class that equals int."""


# ── many values are checked as one by one ────────────────────────────────────────────

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -(2**63), 2**63 - 1, 2**63, -(2**63) - 1, Small(3), Impostor(), b"", ()]),
    st.sampled_from([0.0, -0.0, float("nan"), float("inf"), 1.5]),
    st.sampled_from(["", "a", "é", "\ud800", "\udc00", "日\ud800", "😀"]),
    st.sampled_from([date(2024, 2, 29), datetime(2024, 2, 29, 12), datetime(2024, 2, 29, tzinfo=UTC)]),
)


def _refused(check: Any) -> str | None:
    try:
        check()
    except BadExpression as error:
        return str(error)
    return None


@given(st.lists(VALUES, max_size=4), st.sampled_from(COLUMN_TYPES))
def test_many_values_are_checked_as_they_are_one_by_one(values: list[Any], type_: Type) -> None:
    one_by_one = _refused(lambda: [checked_value(value, type_) for value in values])
    assert _refused(lambda: check_values(values, type_)) == one_by_one


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (Type.BOOL, [True, False]),
        (Type.INT64, [-(2**63), 2**63 - 1]),
        (Type.FLOAT64, [0.5, float("inf")]),
        (Type.STRING, ["", "日本"]),
        (Type.DATE, [date.min, date.max]),
        (Type.TIMESTAMP, [datetime.min, datetime.max]),
    ],
    ids=lambda each: getattr(each, "value", ""),
)
def test_many_values_of_a_type_pass_and_so_does_null(type_: Type, values: list[Any]) -> None:
    for listed in ([], [None], values, [*values, None] * 3):
        check_values(listed, type_)
    with pytest.raises(BadExpression):
        check_values([*values, b""], type_)  # type: ignore[list-item]


def test_a_lone_surrogate_is_found_however_the_strings_are_put_together() -> None:
    for halves in (("\ud83d", "\ude00"), ("é\ud83d", "\ude00é")):
        with pytest.raises(BadExpression, match="surrogate"):
            check_values(halves, Type.STRING)


# ── ranges ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", [range(0, 10, 2), range(9, -1, -1), range(0, 1, 5)], ids=repr)
def test_a_range_of_keys_is_whole_numbers_one_after_the_other(keys: range) -> None:
    with pytest.raises(BadPartition, match="every integer"):
        Partitioning(K, keys)


@pytest.mark.parametrize("keys", [range(True, 5), range(Small(1), Small(5), Small(1))], ids=["bool", "int"])
def test_the_ends_of_a_range_are_plain_integers(keys: range) -> None:
    found = Partitioning(K, keys).keys
    assert type(found) is range
    assert {type(end) for end in (found.start, found.stop, found.step)} == {int}


@pytest.mark.parametrize("keys", [range(MAX_PARTS + 1), range(10**30), range(-(10**30), 0)], ids=repr)
def test_there_are_only_so_many_parts(keys: range) -> None:
    with pytest.raises(BadPartition, match="at most"):
        Partitioning(K, keys)


@pytest.mark.parametrize("keys", [[0, 1], range(0, 4, 2), "01", range(2**70)], ids=repr)
def test_keys_that_were_put_there_behind_its_back_are_refused(keys: Any) -> None:
    by = Partitioning(K, (0, 1))
    object.__setattr__(by, "keys", keys)
    with pytest.raises(BadPartition):
        check_partitioning(by, S)


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("k", range(2**63 - 1, 2**63 + 1)),
        ("k", range(-(2**63) - 1, 0 - 2**63)),
        ("s", range(3)),
        ("f", range(3)),
    ],
    ids=repr,
)
def test_every_key_of_a_range_is_of_the_type_that_is_partitioned_by(key: str, keys: range) -> None:
    with pytest.raises(BadExpression):
        check_partitioning(Partitioning(Column(key), keys), S)


def test_a_range_without_a_key_is_no_partition() -> None:
    for empty in (range(0), range(5, 1)):
        with pytest.raises(BadPartition, match="keys"):
            check_partitioning(Partitioning(K, empty), S)


@given(st.integers(-(2**63), 2**63 - 8), st.integers(1, 8))
def test_a_range_of_keys_passes_as_the_keys_one_by_one_do(first: int, number: int) -> None:
    keys = range(first, first + number)
    listed = Partitioning(K, tuple(keys))
    check_partitioning(Partitioning(K, keys), S)
    check_partitioning(listed, S)
    assert parts_of(Partitioning(K, keys)) == parts_of(listed) == number
    assert hash(Partitioning(K, keys)) == hash(Partitioning(K, range(first, first + number)))


def test_a_range_is_shown_by_its_ends() -> None:
    action = Query("A", ONE, (Count(),), Partitioning(K, range(10**6)))
    assert show_action(action) == "query(A, k: 0…999999, count, 1)"


def test_a_rank_is_one_choice_and_ranks_are_several() -> None:
    clamp, fractions = Clamp(K, 0, 9), (Fraction(1, 4), Fraction(1, 2))
    ranks = tuple(Rank(clamp, fraction) for fraction in fractions)
    assert Ranks(clamp, fractions).each() == ranks
    assert [rank.each() for rank in ranks] == [(rank,) for rank in ranks]


# ── one query ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", [range(3), (7, None, -1)], ids=repr)
def test_the_same_query_of_all_parts_is_charged_and_measured_as_one_for_each(keys: Any) -> None:
    c, by = initial({"A": (S, Fraction(2))}), Partitioning(K, keys)
    once, each = (step(c, Query("A", ONE, (Count(),) * number, by)) for number in (1, 3))
    assert once.rule is each.rule
    assert once.configuration.accounts == each.configuration.accounts
    assert isinstance(once.label, Measure)
    assert isinstance(each.label, Measure)
    assert (once.label.parts, each.label.parts) == (3, 3)
    assert (once.label.parts_each, each.label.parts_each) == (3, 1)


@pytest.mark.parametrize("number", [0, 2, 4])
def test_other_numbers_of_queries_than_one_or_all_make_no_sense(number: int) -> None:
    c, by = initial({"A": (S, Fraction(2))}), Partitioning(K, range(3))
    with pytest.raises(ProgramError, match="3 part"):
        step(c, Query("A", ONE, (Count(),) * number, by))


@pytest.mark.parametrize("answers", [1, 2, 4])
def test_the_same_query_of_all_parts_awaits_an_answer_from_every_part(answers: int) -> None:
    state = take(take(NOTHING, Began("a")), Registered.of("A", S, 1, contents=["a"]))
    action = Query("A", ONE, (Count(),), Partitioning(K, range(3)))
    state = entered(state, "s", decide(state.budgets, opened(None), action))
    with pytest.raises(NotAsRecorded):
        take(state, Recorded(2, ((0,),) * answers))
    take(state, Recorded(2, ((0,),) * 3))
