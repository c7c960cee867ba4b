"""What was refused leaves nothing behind: the corrected call works, under the same name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.client.systems import system_for
from fpinq.model.errors import BadData
from fpinq.runtime.contents import Contents

ROWS = [{"id": i, "s": f"n{i}"} for i in range(7)]
PEOPLE = {"a": ROWS, "b": ROWS[:3]}
OF_PEOPLE: dict[str, Any] = {"unit": "id", "rows_per_unit": 1}

WRONG: dict[str, dict[str, Any]] = {
    "rows": {"rows_at_most": 1},
    "length": {"columns": {"id": fp.Column(max_length=3)}},
    "bounds": {"columns": {"s": fp.Column(bounds=(0, 1))}},
    "column": {"columns": {"no": fp.Column(bounds=(0, 1))}},
}


def held(engine: Any) -> set[str]:
    """What an engine has: roots, and tables of its own."""
    roots = set(getattr(engine, "_roots", None) or getattr(engine, "_database", {}))
    return roots | set(getattr(engine, "_tables", ())) | set(getattr(engine, "_files", ()))


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("data", [ROWS, PEOPLE], ids=["rows", "persons"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_refused_call_does_not_burn_its_name(
    engine: str, wrong: str, data: Any, recorded: bool, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"budget": 10**6, "name": "p", "engine": engine}
    given |= {"ledger": tmp_path / "x.ledger"} if recorded else {}
    given |= OF_PEOPLE if data is PEOPLE else {}
    with pytest.raises(fp.FpinqError):
        fp.protect(data, **given, **WRONG[wrong])
    found = fp.protect(data, **given, rows_at_most=7)
    table = found["a"] if data is PEOPLE else found
    assert round(table.noisy_count(10**5).value) == 7
    assert table.remaining == 9 * 10**5


@pytest.mark.parametrize("data", [ROWS, PEOPLE], ids=["rows", "persons"])
@pytest.mark.parametrize("wrong", WRONG)
def test_refused_data_does_not_stay_in_the_engine(engine: str, wrong: str, data: Any) -> None:
    fp.protect(ROWS[:1], budget=1, engine=engine)
    there = system_for(engine).engine
    before = held(there)
    with pytest.raises(fp.FpinqError):
        fp.protect(data, budget=1, engine=engine, **(OF_PEOPLE if data is PEOPLE else {}), **WRONG[wrong])
    assert held(there) == before


@pytest.mark.parametrize(
    "second",
    [
        [{"s": "no id"}],
        [{"id": "of another type"}],
        [{"id": 1}, {"id": "x"}],
        [{"id": object()}],
        "no file.csv",
    ],
)
def test_no_table_of_persons_stays_where_another_is_refused(engine: str, second: Any) -> None:
    fp.protect(ROWS[:1], budget=1, engine=engine)
    there = system_for(engine).engine
    before = held(there)
    with pytest.raises(fp.FpinqError):
        fp.protect({"a": ROWS, "b": second}, budget=1, engine=engine, **OF_PEOPLE)
    assert held(there) == before


def test_a_file_that_changed_while_it_was_protected_can_be_protected_again(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.csv"
    file.write_text("id\n1\n2\n")
    again: list[Callable[[], None]] = [lambda: None, lambda: fail()]

    def fail() -> None:
        raise fp.DataChanged("p")

    given: dict[str, Any] = {"budget": 1, "schema": {"id": "int64"}, "ledger": tmp_path / "x.ledger"}
    with monkeypatch.context() as patched:
        patched.setattr(Contents, "check_unchanged", lambda *_: again.pop(0)())
        with pytest.raises(fp.DataChanged):
            fp.protect(file, **given, engine=engine)
    assert fp.protect(file, **given, engine=engine).remaining == 1


@pytest.mark.parametrize("data", [ROWS, PEOPLE], ids=["rows", "persons"])
def test_known_data_is_checked_against_the_promise_of_every_call(
    engine: str, data: Any, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"budget": 1, "name": "p", "engine": engine, "ledger": tmp_path / "x.ledger"}
    given |= OF_PEOPLE if data is PEOPLE else {}
    fp.protect(data, **given)
    with pytest.raises(BadData, match="more rows than rows_at_most = 1"):
        fp.protect(data, **given, rows_at_most=1)
    fp.protect(data, **given, rows_at_most=7)


@pytest.mark.parametrize("data", [ROWS, PEOPLE], ids=["rows", "persons"])
def test_known_data_is_not_read_again_with_other_lengths(engine: str, data: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {"budget": 1, "name": "p", "engine": engine, "ledger": tmp_path / "x.ledger"}
    given |= OF_PEOPLE if data is PEOPLE else {}
    fp.protect(data, **given, columns={"s": fp.Column(max_length=40)})
    for other in ({"columns": {"s": fp.Column(max_length=4)}}, {}):
        with pytest.raises(fp.ProgramError, match="with max_length=40 for 's': say the same"):
            fp.protect(data, **given, **other)
    fp.protect(data, **given, columns={"s": fp.Column(max_length=40, keys=["n1"])})


def test_what_is_forgotten_leaves_the_others_as_they_are(engine: str) -> None:
    """Numbers of tables are not used again while others are there."""
    first = fp.protect(ROWS, budget=10**6, engine=engine)
    with pytest.raises(BadData):
        fp.protect(ROWS, budget=1, engine=engine, rows_at_most=1)
    second = fp.protect(ROWS[:4], budget=10**6, engine=engine)
    third = fp.protect(ROWS[:2], budget=10**6, engine=engine)
    assert [round(table.noisy_count(10**5).value) for table in (first, second, third)] == [7, 4, 2]
