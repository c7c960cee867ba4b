"""Blocks without end: a table grows by one at a time, and what that costs does not grow with it."""

import warnings
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fpinq as fp
from fpinq.client import protect
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.duckdb.database import Database
from fpinq.model.actions import Assign
from fpinq.model.plans import Term
from fpinq.runtime import ProtectedSystem

SCHEMA = {"a": "int64"}


def grown(blocks: int) -> Any:
    table = fp.protect([{"a": 0}], budget=1, schema=SCHEMA, name="blocks")
    for i in range(1, blocks):
        table = table.append([{"a": i}], budget=1)
    return table


def plan_of(table: Any) -> Any:
    facts = table.facts
    return facts.system.describe(facts.binding.variable).plan


def test_a_table_of_more_blocks_than_steps_may_nest_is_one_table() -> None:
    table = grown(300)
    assert abs(float(table.noisy_count(0.9)) - 300) < 60
    assert set(table.facts.sensitivity().values()) == {1}
    assert len(table.facts.sensitivity()) == 300


def test_a_query_charges_every_block_once() -> None:
    table = grown(40)
    table.noisy_count(0.25)
    assert set(table.facts.left().values()) == {Fraction(3, 4)}


@pytest.mark.parametrize("few", [2, 3, 32])
def test_few_blocks_at_a_time_are_put_together_few_times_on_top_of_each_other(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protect, "FEW_BLOCKS", few)
    table = grown(120)
    plan = plan_of(table)
    digits = len(_digits(120, few))
    assert plan.depth <= digits + 2
    assert _widest(plan) <= few * (digits + 1)
    assert _roots(plan) == list(table.facts.roots)


def test_an_append_acts_no_more_often_on_a_large_table_than_on_a_small_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named: list[int] = []
    act = ProtectedSystem.act

    def noting(self: Any, action: Any, **others: Any) -> Any:
        if isinstance(action, Assign):
            named.append(len(action.arguments))
        return act(self, action, **others)

    monkeypatch.setattr(ProtectedSystem, "act", noting)
    monkeypatch.setattr(protect, "FEW_BLOCKS", 4)
    costs = []
    for blocks in (16, 64):
        table = grown(blocks)
        named.clear()
        for i in range(16):
            table = table.append([{"a": i}], budget=1)
        costs.append(sum(named))
    assert costs[1] < 1.5 * costs[0]


def test_many_tables_are_put_together_at_once() -> None:
    tables = [fp.protect([{"a": i}] * 3, budget=1, schema=SCHEMA, name=f"t{i}") for i in range(4)]
    together = tables[0].concat(*tables[1:])
    assert abs(float(together.noisy_count(1)) - 12) < 60
    assert together.scaling_factor == 1
    assert tables[0].concat(tables[0], tables[0]).scaling_factor == 3
    with pytest.raises(fp.ProgramError, match="same columns"):
        tables[0].concat(tables[1], fp.protect([{"b": 1}], budget=1, schema={"b": "int64"}, name="other"))


def test_only_what_protect_or_append_gave_grows() -> None:
    table = grown(3)
    with pytest.raises(fp.BadTransformation, match="append first"):
        table.where(lambda row: row.a > 1).append([{"a": 1}], budget=1)
    with pytest.raises(fp.BadTransformation, match="append first"):
        table.concat(table.where(lambda row: row.a > 1)).append([{"a": 1}], budget=1)
    whole = table.concat(grown(2)).append([{"a": 1}], budget=1)
    assert len(whole.facts.roots) == 6


def _digits(number: int, base: int) -> list[int]:
    return [number] if number < base else [*_digits(number // base, base), number % base]


def _widest(plan: Any) -> int:
    if not isinstance(plan, Term):
        return 0
    return max(len(plan.arguments), *(_widest(argument) for argument in plan.arguments))


def _roots(plan: Any) -> list[str]:
    if not isinstance(plan, Term):
        return [plan.root]
    return [root for argument in plan.arguments for root in _roots(argument)]


@pytest.fixture(autouse=True)
def _silent() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_a_file_is_appended_without_opening_all_others_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    taken: list[str] = []
    init, take_over = Database.__init__, Database.take_over

    def counting(self: Database, files: Iterable[str] = (), *given: Any, **named: Any) -> None:
        opened.append(len(set(files)))
        init(self, files, *given, **named)

    def counting_tables(self: Database, other: Database, relation: str) -> None:
        taken.append(relation)
        take_over(self, other, relation)

    monkeypatch.setattr(Database, "__init__", counting)
    monkeypatch.setattr(Database, "take_over", counting_tables)
    frame = pl.DataFrame({"age": [1, 2]})
    table = fp.protect(frame, budget=10**9, engine=DuckDB(), name="blocks", schema={"age": "int64"})
    for number in range(60):
        path = tmp_path / f"{number}.parquet"
        pl.DataFrame({"age": [number]}).write_parquet(path)
        table = table.append(path if number % 2 else frame, budget=10**9, name=f"b{number}")
    assert sum(opened[-10:]) <= 2 * 10  # the trial's and its own
    assert len(taken) < 16 * 16
    before = len(opened)
    assert table.noisy_count(10**6).value == 30 + 2 * 31
    assert table.where(lambda x: x.age >= 30).noisy_count(10**6).value == 15
    assert opened[before:] == [31]
    assert table.append(frame, budget=10**9).noisy_count(10**6).value == 30 + 2 * 32
    assert len(opened) == before + 1
