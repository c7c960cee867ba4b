"""The public length of a column's texts: a longer one is null, whoever wrote it."""

import pytest

import fpinq as fp
from fpinq.engines.in_memory import relation, within_lengths
from fpinq.model.operators import MAX_STRING
from fpinq.runtime import ReferenceEngine

ROWS = [{"id": 1, "s": "abc"}, {"id": 2, "s": "abcd"}, {"id": 3, "s": "αβγδ"}, {"id": 4, "s": None}]


def test_a_text_longer_than_its_column_is_null() -> None:
    cut = within_lengths(relation(ROWS), {"s": 3})
    assert [s for _, s in cut.rows] == ["abc", None, None, None]


def test_without_a_stated_length_no_text_is_longer_than_the_longest_that_operators_make() -> None:
    rows = [{"s": "x" * MAX_STRING}, {"s": "x" * (MAX_STRING + 1)}]
    assert [s is None for (s,) in within_lengths(relation(rows), {}).rows] == [False, True]


def test_the_reference_engine_takes_the_lengths_of_persons_table_by_table() -> None:
    engine = ReferenceEngine()
    engine.add_persons("p", {"a": ROWS, "b": ROWS}, "id", lengths={"a": {"s": 3}})
    (_, second, *_) = engine._database["p"].persons  # type: ignore[union-attr]
    assert second["a"].rows == ((2, None),)
    assert second["b"].rows == ((2, "abcd"),)


def test_protect_gives_the_lengths_to_the_engine() -> None:
    data = fp.protect(
        ROWS, budget=10**6, engine="reference", columns={"s": fp.Column(max_length=3)}, name="lengths"
    )
    assert round(data.where(lambda x: x.s.is_null()).noisy_count(10**5).value) == 3


@pytest.mark.parametrize("length", [0, -1, MAX_STRING + 1, 1.0, True, "3"])
def test_a_length_is_a_whole_number_of_characters(length: object) -> None:
    with pytest.raises(fp.ProgramError, match="max_length is a whole number"):
        fp.Column(max_length=length)  # type: ignore[arg-type]


def test_only_text_has_a_length() -> None:
    with pytest.raises(fp.ProgramError, match="only text has a max_length"):
        fp.protect(ROWS, budget=1, engine="reference", columns={"id": fp.Column(max_length=3)})


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_data_with_more_rows_than_promised_is_refused(engine: str) -> None:
    fp.protect(ROWS, budget=1, engine=engine, rows_at_most=4)
    with pytest.raises(fp.BadData, match="the data has more rows than rows_at_most = 3"):
        fp.protect(ROWS, budget=1, engine=engine, rows_at_most=3)
    people = {"a": ROWS, "b": ROWS[:2]}
    most = {"a": 1, "b": 1}
    fp.protect(people, unit="id", rows_per_unit=most, budget=1, engine=engine, rows_at_most={"a": 4, "b": 2})
    with pytest.raises(fp.BadData, match="b has more rows than rows_at_most = 1"):
        fp.protect(people, unit="id", rows_per_unit=most, budget=1, engine=engine, rows_at_most={"b": 1})


@pytest.mark.parametrize("promised", [0, -1, 1.5, True, {"c": 1}])
def test_a_promise_is_a_whole_number_for_a_table_that_is_there(promised: object) -> None:
    with pytest.raises(fp.ProgramError, match="rows_at_most"):
        fp.protect(ROWS, budget=1, engine="reference", rows_at_most=promised)
