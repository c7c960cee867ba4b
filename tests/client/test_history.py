"""A table's history: what was asked of its roots, in order, for how much, and what that left."""

import random
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from time import time
from typing import Any

import pytest

import fpinq as fp
from client.small_data import PEOPLE
from fpinq import _
from fpinq.client import history
from fpinq.client.history import MOST_AMOUNTS, Asked, Notes


@pytest.fixture
def data(engine: str) -> fp.Table:
    table: fp.Table = fp.protect(PEOPLE, budget=10, engine=engine, name="people")
    return table


def test_what_was_asked_is_told_in_order_with_what_it_left(data: fp.Table) -> None:
    before = datetime.now(UTC)
    data.noisy_count("1/4")
    data.where(_.age > 17).noisy_average("1/2", lambda x: x.age, bounds=(0, 110))
    data.query(1, fp.count(), by="city", keys=["Ulm", "Bonn"])
    found = data.history
    assert [row["asked"] for row in found] == ["count", "average of age", "count by city"]
    assert [row["table"] for row in found] == ["people", "where age > 17", "people"]
    assert [row["epsilon"] for row in found] == [Fraction(1, 4), Fraction(1, 2), 1]
    assert [row["charged"] for row in found] == [Fraction(1, 4), Fraction(1, 2), 1]
    assert [row["left"] for row in found] == [Fraction(39, 4), Fraction(37, 4), Fraction(33, 4)]
    assert found[-1]["left"] == data.remaining
    assert all(before <= row["at"] <= before + timedelta(minutes=5) for row in found)


def test_a_history_prints_and_becomes_a_frame(data: fp.Table) -> None:
    assert repr(data.history) == "nothing was asked yet"
    assert data.history.to_pandas().shape == (0, 6)
    data.noisy_count("1/3")
    header, line = repr(data.history).splitlines()
    assert header.split() == ["at", "table", "asked", "epsilon", "charged", "left"]
    assert line.split()[2:] == ["people", "count", "0.333333…", "0.333333…", "9.666666…"]
    assert "<th>left</th>" in data.history._repr_html_()
    frame = data.history.to_pandas()
    assert list(frame.columns) == ["at", "table", "asked", "epsilon", "charged", "left"]
    assert frame["left"].tolist() == [pytest.approx(29 / 3)]
    assert data.history.to_json() is not None


def test_every_table_of_the_same_root_has_the_same_history_and_others_have_none(data: fp.Table) -> None:
    other = fp.protect(PEOPLE[1:], budget=10, engine="reference", name="others")
    parts = data.partition("gender", keys=[0, 1])
    for part in parts.values():
        part.noisy_count(1)
    assert list(parts[0].history) == list(data.history)
    assert [row["charged"] for row in data.history] == [1, 0]
    assert len(other.history) == 0
    assert len(fp.public([{"a": 1}]).history) == 0


def test_a_table_over_several_roots_shows_what_each_was_charged(engine: str) -> None:
    a = fp.protect(PEOPLE, budget=10, engine=engine, name="a")
    b = fp.protect(PEOPLE[1:], budget=10, engine=engine, name="b")
    a.noisy_count(1)
    a.concat(b).noisy_count(2)
    found = a.concat(b).history
    assert [(row["charged_a"], row["charged_b"]) for row in found] == [(1, 0), (2, 2)]
    assert [(row["left_a"], row["left_b"]) for row in found] == [(9, 10), (7, 8)]
    assert [row["charged"] for row in b.history] == [2]


def test_what_was_refused_is_not_in_it_and_what_failed_after_its_charge_is(
    data: fp.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(fp.BudgetExceeded):
        data.noisy_count(11)
    with pytest.raises(fp.ProgramError):
        data.noisy_sum(1, "age")
    assert len(data.history) == 0

    def fail(*given: object, **named: object) -> None:
        raise fp.EngineError("x")

    monkeypatch.setattr("fpinq.client.asking._reply", fail)
    with pytest.raises(fp.EngineError):
        data.noisy_count(1)
    (row,) = data.history
    assert row["charged"] is None
    assert "failed" in repr(data.history)


def test_a_distinct_count_of_each_part_is_one_query(data: fp.Table) -> None:
    data.query(1, fp.distinct_count("age"), by="gender", keys=[0, 1])
    (row,) = data.history
    assert row["asked"] == "distinct count of age by gender"
    assert row["charged"] == 10 - data.remaining


def test_a_question_is_told_in_words(data: fp.Table) -> None:
    data.noisy_histogram("1/9", _.age, (0, 60), 3)
    data.noisy_median("1/9", "age", (0, 60))
    data.query("1/9", fp.several(n=fp.count(), old=fp.average("age", (0, 60))), by="gender", keys=[0, 1])
    assert [row["asked"] for row in data.history] == ["histogram of age", "median of age", "n, old by gender"]


def test_what_was_asked_of_expressions_and_of_several_columns_is_told_too(data: fp.Table) -> None:
    data.noisy_sum("1/9", _.age * 2, (0, 60))
    data.noisy_proportion("1/9", lambda x: x.age > 17)
    data.noisy_covariance("1/9", "age", _.gender, ((0, 60), (0, 1)))
    data.noisy_regression("1/9", "age", ["gender"], {"age": (0, 60), "gender": (0, 1)})
    data.noisy_top("1/9", 1, "gender", [0, 1])
    assert [row["asked"] for row in data.history] == [
        "sum of age * 2",
        "proportion of age > 17",
        "covariance of age and gender",
        "regression of age on gender",
        "top 1 of gender",
    ]


def test_left_agrees_with_the_system_after_every_query(data: fp.Table) -> None:
    draw, left = random.Random(3), []
    for _i in range(20):
        data.noisy_count(Fraction(1, draw.randint(3, 50)))
        left.append(data.remaining)
    assert [row["left"] for row in data.history] == left


def test_of_very_much_the_oldest_is_forgotten() -> None:
    notes, now = Notes(), time()
    for number in range(3 * MOST_AMOUNTS):
        notes.add(Asked(now, "t", str(number), Fraction(1), ("a",), {"a": Fraction(1)}))
    kept = notes.of({"a": "a"})
    assert len(kept) == MOST_AMOUNTS // 2
    assert kept[-1].what == str(3 * MOST_AMOUNTS - 1)
    wide = tuple(map(str, range(10 * MOST_AMOUNTS)))
    notes.add(Asked(now, "t", "wide", Fraction(1), wide, dict.fromkeys(wide, Fraction(1))))
    assert [asked.what for asked in notes.of({"0": "0"})] == ["wide"]
    assert notes.of({"a": "a"}) == []


def test_a_system_that_is_gone_takes_its_notes_along() -> None:
    class Gone:
        pass

    system: Any = Gone()
    history.notes_of(system)
    assert system in history._notes
    known = len(history._notes)
    del system
    assert len(history._notes) == known - 1
