"""Random programs on neighbouring tables, in lock step, on every engine."""

import math
import os
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.conftest import OnFiles
from engines.generators import Generator
from fpinq.model import books
from fpinq.model.actions import Assign, Query
from fpinq.model.clamps import Clamp
from fpinq.model.domains import IntegerDomain
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import EngineError
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.notions import Rho, is_concentrated, kappa
from fpinq.model.queries import Count, Frequencies, Rank, Sparse, Tree
from fpinq.model.transformations import Aggregate, Concat, GroupBy
from lockstep.harness import Program, at_rho, loss, random_program, rho_loss, run

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


@st.composite
def programs_at_rho(draw: Any) -> Program:
    generator = Generator(draw)
    return at_rho(random_program(generator), generator)


@settings(
    max_examples=max(PROGRAMS // 4, 10),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(program=programs_at_rho())
def test_neighbours_at_rho_look_the_same_and_lose_no_more_than_was_charged(
    engine: Any, program: Program
) -> None:
    assert in_lock_step_at_rho(engine, program) == (True, True)


def in_lock_step_at_rho(engine: Any, program: Program) -> tuple[bool, bool]:
    """The same of roots in ρ: what is lost by one record each of several is (Σ √C)² at the most.

    A pure root that differs loses an ε; what that is in ρ is no more than ε, and ε·ε/2.
    """
    forced: list[Any] = []
    number = next(_numbers)
    left = run(engine, program, program.left, f"rho-l{number}-", forced)
    right = run(engine, program, program.right, f"rho-r{number}-", forced)
    same = left.visible == right.visible and left.charged == right.charged
    charged = [
        left.charged[root] if is_concentrated(program.budgets[root]) else _in_rho(left.charged[root])
        for root, d in program.apart.items()
        if d
    ]
    allowed = sum(math.sqrt(each) for each in charged) ** 2
    return same, same and rho_loss(left, right) <= allowed * (1 + 1e-9)


def _in_rho(epsilon: Fraction) -> Fraction:
    return min(epsilon, epsilon**2 / 2)


def doubled(budget: Any, at: Any) -> Program:
    """Every record twice: at ρ that is lost four times."""
    schema = Schema.of({"k": Type.INT64})
    clamp = Clamp(Column("k"), 0, 3)
    actions = [
        Assign("g", Concat(), ("A", "A")),
        Query("g", at, (Tree(clamp, 2, 2),)),
        Query("A", at, (Rank(clamp, Fraction(1, 2)),)),
    ]
    return Program({"A": schema}, {"A": []}, {"A": [(1,)]}, {"A": 1}, {"A": budget}, actions)


def test_a_record_twice_at_rho_is_exactly_as_lossy_as_it_is_charged(engine: Any) -> None:
    program = doubled(Rho(Fraction(10)), Rho(Fraction(1)))
    assert in_lock_step_at_rho(engine, program) == (True, True)
    forced: list[Any] = []
    left = run(engine, program, program.left, "rho-exactly-l", forced)
    right = run(engine, program, program.right, "rho-exactly-r", forced)
    assert (left.charged, rho_loss(left, right)) == ({"A": 5}, 5)


@pytest.mark.parametrize("wrong", [lambda at, scale: at.amount, lambda at, scale: at.amount * scale / 2])
def test_a_charge_that_forgets_the_factor_at_rho_is_noticed(
    engine: Any, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "per_unit", wrong)
    program = doubled(Rho(Fraction(10)), Rho(Fraction(1)))
    assert in_lock_step_at_rho(engine, program) == (True, False)


def test_a_squared_sensitivity_that_is_too_small_is_noticed(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tree, "squared", 1)
    program = doubled(Rho(Fraction(10)), Rho(Fraction(1)))
    assert in_lock_step_at_rho(engine, program) == (True, False)


def test_a_pure_root_beside_a_concentrated_one_is_asked_at_epsilon_only_and_each_pays_its_own(
    engine: Any,
) -> None:
    """Two roots of different notions in one query: at ρ a mistake, at ε an ε of one and a ρ of the other."""
    schema = Schema.of({"k": Type.INT64})
    both = Assign("both", Concat(), ("A", "B"))
    rows: list[tuple[Any, ...]] = [(1,)]
    budgets = {"A": Rho(Fraction(10)), "B": Fraction(10)}
    for at, paid in (
        (Rho(Fraction(1)), {"A": 0, "B": 0}),
        (Fraction(1), {"A": kappa(Epsilon(Fraction(1)), 1), "B": 1}),
    ):
        program = Program(
            dict.fromkeys("AB", schema),
            {"A": rows, "B": rows},
            {"A": rows * 2, "B": rows},
            {"A": 1, "B": 0},
            budgets,
            [both, Query("both", at, (Count(),))],
        )
        found = run(engine, program, program.left, f"notions-{type(at).__name__}-", [])
        assert found.charged == pytest.approx(paid)
        assert ("NotConcentrated" in found.visible[-1]) == isinstance(at, Rho)
        assert in_lock_step_at_rho(engine, program) == (True, True)


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


def found() -> Program:
    """The same, of keys that nobody listed."""
    program = grouped()
    keys = Sparse(Column("n"), IntegerDomain(0, 9), Fraction(1), 10)
    return replace(program, actions=[program.actions[0], Query("g", Fraction(1), (keys,))])


def test_keys_that_are_found_are_in_lock_step(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_lock_step(engine, found()) == (True, True)
    monkeypatch.setattr(GroupBy, "stability", (1,))
    assert in_lock_step(engine, found()) == (True, False)


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
