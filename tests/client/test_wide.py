"""Very many parts: keys, answers and what is printed of them grow in nothing but numbers."""

import sys
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fpinq as fp
from fpinq.client import keys as keys_module
from fpinq.client.answers import FIRST_SHOWN, LAST_SHOWN, MOST_SHOWN, Made
from fpinq.client.keys import keyed
from fpinq.client.subjects import Subject
from fpinq.model.expressions import Schema, Type

SUBJECT = Subject(Schema.of({"k": Type.INT64, "f": Type.FLOAT64, "s": Type.STRING}))
SURE = 10**9


@pytest.fixture(scope="module")
def data() -> fp.Table:
    rows = [{"k": i % 5_000, "age": i % 90} for i in range(20_000)]
    return fp.protect(rows, budget=10**12, name="wide", schema={"k": "int64", "age": "int64"})


def calls(work: Callable[[], object]) -> int:
    """How many Python functions, and functions of C, are called by a work."""
    seen = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


QUERIES = {"count": fp.count(), "average": fp.average("age", bounds=(0, 90))}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_of_ten_times_as_many_parts_calls_no_more_functions(data: fp.Table, name: str) -> None:
    def asked(keys: int) -> Callable[[], object]:
        limit = keys + 100  # another table each time: nothing comes from a cache
        return lambda: data.where(lambda x: x.age < limit).query(1, QUERIES[name], by="k", keys=range(keys))

    asked(50)()
    few, many = calls(asked(500)), calls(asked(5_000))
    assert many < 1.3 * few


@pytest.mark.parametrize("name", QUERIES)
def test_a_part_more_is_at_most_two_hundred_bytes_more(data: fp.Table, name: str) -> None:
    def held(keys: int) -> int:
        tracemalloc.start()
        answers = data.query(1, QUERIES[name], by="k", keys=range(keys))
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(answers) == keys
        return size

    held(100)
    few, many = held(1_000), held(5_000)
    assert many - few < 200 * 4_000


def test_the_answers_are_those_of_every_part_by_itself(data: fp.Table) -> None:
    counts = data.query(SURE, fp.count(), by="k", keys=range(4_990, 5_020))
    assert counts.values_only == {k: 4 if k < 5_000 else 0 for k in range(4_990, 5_020)}
    averages = data.query(SURE, fp.average("age", bounds=(0, 90)), by="k", keys=[0, 7, 6_000])
    # 0, 5000, 10000 and 15000 are 0, 50, 10 and 60 more than a multiple of 90; of nobody it is the middle.
    assert averages.values_only == pytest.approx({0: 30, 7: 37, 6_000: 45})


# ── keys ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("keys", "written"),
    [
        (range(3), range(3)),
        (range(5, 1_000), range(5, 1_000)),
        (list(range(100)), range(100)),
        (np.arange(-7, 100), range(-7, 100)),
        (list(range(16)), tuple(range(16))),
        (list(range(0, 100, 2)), tuple(range(0, 100, 2))),
        (range(0, 100, 2), tuple(range(0, 100, 2))),
        (range(20, 0, -1), tuple(range(20, 0, -1))),
        ([*range(50), None], (*range(50), None)),
        ([*range(50), np.int64(50)], range(51)),
    ],
    ids=lambda keys: repr(keys)[:30],
)
def test_many_integers_in_a_row_are_written_as_a_range(keys: Any, written: Any) -> None:
    asked = keyed(SUBJECT, "k", keys)
    found, labels = asked.by, asked.labels
    assert found.keys == written
    assert type(found.keys) is type(written)
    assert list(labels) == [None if key is None else int(key) for key in keys]


@pytest.mark.parametrize("keys", [range(3), list(range(20)), np.arange(20)], ids=["range", "list", "array"])
def test_integers_are_keys_of_a_column_of_floats_as_the_floats_they_are(keys: Any) -> None:
    asked = keyed(SUBJECT, "f", keys)
    found, labels = asked.by, asked.labels
    assert found.keys == tuple(float(key) for key in keys)
    assert {type(key) for key in found.keys} == {float}
    assert list(labels) == list(keys)


@pytest.mark.parametrize(
    "keys", [[*range(50), True], [*range(50), "a"], [*range(50), 1.0], [True, False] * 20]
)
def test_one_key_of_another_type_among_many_is_refused(keys: Any) -> None:
    with pytest.raises(fp.BadPartition):
        keyed(SUBJECT, "k", keys)


@pytest.mark.parametrize("keys", [[*range(50), 0], [*map(str, range(50)), "7"]], ids=["k", "s"])
def test_a_key_that_is_there_twice_among_many_is_refused(keys: Any) -> None:
    with pytest.raises(fp.BadPartition, match="different"):
        keyed(SUBJECT, "k" if keys[0] == 0 else "s", keys)


def test_too_many_keys_are_refused_before_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "MAX_KEYS", 100)
    for keys in (range(101), list(range(101)), iter(range(10**12)), range(10**30)):
        with pytest.raises(fp.BadPartition, match="at most 100 parts"):
            keyed(SUBJECT, "k", keys)


def test_an_owner_may_say_a_range() -> None:
    rows = [{"k": i % 40} for i in range(80)]
    data = fp.protect(rows, budget=10**12, columns={"k": fp.Column(keys=range(30))}, name="owned")
    assert data.query(SURE, fp.count(), by="k").values_only == dict.fromkeys(range(30), 2)


# ── answers ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", [range(-3, 4), ["a", None, 2.5], [(0, 1), (1, 2)]], ids=repr)
def test_answers_that_are_made_when_looked_at_are_a_mapping_like_any(keys: Any) -> None:
    made, plain = Made(keys, lambda number: number * 10), {key: i * 10 for i, key in enumerate(keys)}
    assert dict(made) == plain
    assert dict(made.listed()) == plain
    assert list(made) == list(plain)
    assert list(reversed(made)) == list(reversed(plain))
    assert len(made) == len(plain)
    for key in (*keys, 0, 0.0, True, 10**30, "b", np.int64(2), None):
        assert (key in made) == (key in plain)
        assert made.get(key, "none") == plain.get(key, "none")


def test_nothing_is_made_of_answers_that_nobody_looks_at() -> None:
    looked: list[int] = []
    made = Made(
        range(10**6),
        lambda number: looked.append(number) or fp.Answer(number, Fraction(1), Fraction(1), None),
    )  # type: ignore[func-returns-value,arg-type]
    answers = fp.Answers(made, Fraction(1), Fraction(1))
    assert answers[7].value == 7
    assert len(answers) == 10**6
    assert 10**6 not in answers
    assert looked == [7]


def test_of_very_many_answers_the_first_and_the_last_are_printed(data: fp.Table) -> None:
    few = data.query(SURE, fp.count(), by="k", keys=range(MOST_SHOWN))
    assert len(repr(few).splitlines()) == MOST_SHOWN
    many = data.query(SURE, fp.count(), by="k", keys=range(5_000))
    lines = repr(many).splitlines()
    assert len(lines) == FIRST_SHOWN + 1 + LAST_SHOWN
    assert lines[0].split() == ["0", "4", "±", "0"]
    assert "4,975 more" in lines[FIRST_SHOWN]
    assert lines[-1].split()[0] == "4999"
    assert many._repr_html_().count("<tr>") == 1 + len(lines)
