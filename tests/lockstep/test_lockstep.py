"""Random programs on neighbouring tables, in lock step, on every engine."""

import os
from fractions import Fraction
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.conftest import OnFiles
from engines.generators import Generator
from fpinq.model.actions import Assign, Query
from fpinq.model.clamps import Clamp
from fpinq.model.errors import EngineError
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.queries import Frequencies
from fpinq.model.transformations import Aggregate, GroupBy
from lockstep.harness import Program, loss, random_program, run

PROGRAMS = int(os.environ.get("FPINQ_LOCKSTEP", "1000"))

_numbers = count()


@st.composite
def programs(draw: Any) -> Program:
    return random_program(Generator(draw))


@settings(
    max_examples=PROGRAMS,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(program=programs())
def test_neighbours_look_the_same_and_lose_no_more_than_was_charged(engine: Any, program: Program) -> None:
    assert in_lock_step(engine, program) == (True, True)


@settings(
    max_examples=max(PROGRAMS // 20, 10),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(program=programs())
def test_neighbours_in_files_look_the_same_and_lose_no_more_than_was_charged(
    engine: Any, tmp_path_factory: Any, program: Program
) -> None:
    fresh = type(engine)()
    assert in_lock_step(OnFiles(fresh, tmp_path_factory.mktemp("files")), program) == (True, True)
    fresh.close()


def in_lock_step(engine: Any, program: Program) -> tuple[bool, bool]:
    """Whether everything visible is equal, and whether the loss is within the charge."""
    forced: list[Any] = []
    number = next(_numbers)
    left = run(engine, program, program.left, f"lockstep-l{number}-", forced)
    right = run(engine, program, program.right, f"lockstep-r{number}-", forced)
    same = left.visible == right.visible and left.charged == right.charged
    allowed = sum(left.charged[root] * d for root, d in program.apart.items())
    return same, same and loss(left, right) <= allowed


def grouped() -> Program:
    """One more member moves a group from one record to another: two records change."""
    schema = Schema.of({"k": Type.INT64})
    count_members = GroupBy((("k", Column("k")),), (("n", Aggregate("count")),))
    actions = [
        Assign("g", count_members, ("A",)),
        Query("g", Fraction(1), (Frequencies(Clamp(Column("n"), 0, 9)),)),
    ]
    budgets = {"A": Fraction(10)}
    return Program({"A": schema}, {"A": [(1,)]}, {"A": [(1,), (1,)]}, {"A": 1}, budgets, actions)


def test_a_grouping_in_lock_step_is_exactly_as_lossy_as_it_is_charged(engine: Any) -> None:
    assert in_lock_step(engine, grouped()) == (True, True)


def test_a_wrong_stability_is_noticed(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupBy, "stability", (1,))
    assert in_lock_step(engine, grouped()) == (True, False)


def test_an_error_that_depends_on_data_is_noticed(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = type(engine).measure

    def failing(self: Any, *arguments: Any) -> Any:
        found = measure(self, *arguments)
        if found[0].get(2):
            raise EngineError("0")
        return found

    monkeypatch.setattr(type(engine), "measure", failing)
    assert in_lock_step(engine, grouped())[0] is False
