"""Shares with intervals that hold at any size, and the most common of several values."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fpinq as fp
from client.small_data import PLENTY, SURE
from fpinq import _
from fpinq.client.counting import ShareNoise

SAID = "to be or not to be that is the question whether it is nobler to suffer or not to"
WORDS = SAID.split(" ")


def words(engine: str, budget: object = PLENTY) -> fp.Table:
    rows: list[dict[str, Any]] = [{"word": word, "n": len(word)} for word in WORDS]
    schema = {"word": "string", "n": "int64"}
    rows += [{"word": None, "n": 0}]
    table: fp.Table = fp.protect(rows, schema=schema, budget=budget, engine=engine)
    return table


# ── shares ───────────────────────────────────────────────────────────────────────────


def test_a_share_is_of_all_records_those_without_a_value_too(engine: str) -> None:
    rows = [{"a": 1}, {"a": 5}, {"a": None}, {"a": None}]
    data = fp.protect(rows, schema={"a": "int64"}, budget=PLENTY, engine=engine)
    assert data.noisy_proportion(SURE, _.a > 2).value == 0.25
    assert data.noisy_proportion(SURE, _.a.is_null()).value == 0.5
    assert data.where(_.a > 9).noisy_proportion(SURE, _.a > 2).value == 0.5


@pytest.mark.parametrize("records", [0, 1, 10, 100, 10_000])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 1.0])
@pytest.mark.parametrize("scale", [1, 10])
def test_the_interval_of_a_share_holds_at_any_size(records: int, share: float, scale: int) -> None:
    having = round(records * share)
    true = having / records if records else 0.5
    rng, times = np.random.default_rng(2), 200
    p = 1 - np.exp(-1 / scale)
    noise = rng.geometric(p, (times, 4)) @ np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    holds = 0
    for a, b in noise:
        counted = ShareNoise(having + int(a), records - having + int(b), scale)
        low, high = counted.interval(counted.share, Fraction(9, 10))
        assert 0 <= low <= counted.share <= high <= 1
        holds += low <= true <= high
    assert holds >= 0.82 * times  # four deviations below 90 %
    if records * share * (1 - share) > 30 * scale:
        assert holds <= 0.97 * times
        spread = np.std(
            [ShareNoise(having + int(a), records - having + int(b), scale).share for a, b in noise]
        )
        assert ShareNoise(having, records - having, scale).standard_error() == pytest.approx(spread, rel=0.2)


def test_what_a_share_will_be_off_by_is_known_before() -> None:
    data = words("reference")
    worst = data.expected_error(fp.proportion(_.n > 2), 0.1, size=1_000)
    assert worst.standard_error == pytest.approx(2**0.5 * 10 / 1_000)


# ── the most common ──────────────────────────────────────────────────────────────────


def test_the_top_is_the_most_common_best_first_with_their_counts(engine: str) -> None:
    data = words(engine)
    candidates = [*sorted(set(WORDS)), "absent"]
    for k in (1, 3, len(candidates)):
        top = data.noisy_top(SURE, k, "word", candidates)
        expected = sorted(candidates, key=lambda word: -Counter(WORDS)[word])[:k]
        assert top.value == expected
        counts = top.counts
        assert counts.values_only == {word: Counter(WORDS)[word] for word in expected}
        assert top.charged == SURE == counts.charged
        assert list(counts.rows()[0])[:2] == ["word", "n"]
        assert top.interval() is None


def test_the_top_of_each_part_is_one_query(engine: str) -> None:
    found = words(engine).query(SURE, fp.top(1, "word", ["to", "be", "not", "is"]), by="n", keys=[2, 3, 4])
    assert {n: answer.value for n, answer in found.items()} == {2: ["to"], 3: ["not"], 4: ["to"]}


def test_known_keys_are_candidates() -> None:
    columns = {"a": fp.Column(keys=[1, 2, 3])}
    data = fp.protect([{"a": 3}], schema={"a": "int64"}, columns=columns, budget=PLENTY)
    assert data.noisy_top(SURE, 1, "a").value == [3]


def test_floats_dates_and_conditions_have_a_top_too(engine: str) -> None:
    from datetime import date

    day = date(2024, 2, 29)
    rows: list[dict[str, Any]] = [{"f": 1.0, "d": day, "b": True}]
    data = fp.protect(rows, schema={"f": "float64", "d": "date", "b": "bool"}, budget=PLENTY, engine=engine)
    assert data.noisy_top(SURE, 1, "f", [0.5, 1]).value == [1]
    assert data.noisy_top(SURE, 1, "d", [date(2024, 1, 1), day]).value == [day]
    assert data.noisy_top(SURE, 1, "b", [False, True]).value == [True]


def test_the_top_by_score_is_chosen_one_after_the_other_and_costs_epsilon(engine: str) -> None:
    data = words(engine, budget=10**9)
    top = data.noisy_top(3 * 10**8, 3, lambda x, c: -abs(x.n - c), [1, 2, 3, 9], bounds=(-9, 0))
    assert top.value == [2, 3, 1]
    assert top.charged == 3 * 10**8 == 10**9 - data.remaining  # type: ignore[operator]
    assert "one after the other" in repr(top)
    with pytest.raises(fp.BudgetExceeded):  # none of the three is asked
        data.noisy_top(9 * 10**8, 3, lambda x, c: x.n == c, [1, 2, 3])
    assert data.remaining == 7 * 10**8


def test_a_count_at_the_top_is_as_noisy_as_one_count() -> None:
    data = words("reference")
    (count,) = data.noisy_top(0.5, 1, "word", WORDS[:1]).counts.values()
    assert count.standard_error == data.noisy_count(0.5).standard_error
    assert "left out" in str(data.expected_error(fp.top(1, "word", ["to", "be"]), 1))
