"""Lock step on PostgreSQL: what one record changes in exact statistics is within what was charged."""

import os
from typing import Any

from hypothesis import assume, given

from engines.test_conformance import thorough
from lockstep.harness import Program
from lockstep.test_lockstep import (
    in_lock_step,
    in_lock_step_at_rho,
    programs,
    programs_at_rho,
    test_a_charge_that_forgets_the_factor_at_rho_is_noticed,
    test_a_grouping_in_lock_step_is_exactly_as_lossy_as_it_is_charged,
    test_a_pure_root_beside_a_concentrated_one_is_asked_at_epsilon_only_and_each_pays_its_own,
    test_a_record_twice_at_rho_is_exactly_as_lossy_as_it_is_charged,
    test_a_squared_sensitivity_that_is_too_small_is_noticed,
    test_a_wrong_stability_is_noticed,
    test_an_error_that_depends_on_data_is_noticed,
)
from postgres.test_postgres_conformance import without_nul

__all__ = [
    "test_a_charge_that_forgets_the_factor_at_rho_is_noticed",
    "test_a_grouping_in_lock_step_is_exactly_as_lossy_as_it_is_charged",
    "test_a_pure_root_beside_a_concentrated_one_is_asked_at_epsilon_only_and_each_pays_its_own",
    "test_a_record_twice_at_rho_is_exactly_as_lossy_as_it_is_charged",
    "test_a_squared_sensitivity_that_is_too_small_is_noticed",
    "test_a_wrong_stability_is_noticed",
    "test_an_error_that_depends_on_data_is_noticed",
]

PROGRAMS = int(os.environ.get("FPINQ_POSTGRES_PROGRAMS", "150"))


@thorough(PROGRAMS)
@given(program=programs())
def test_neighbours_look_the_same_and_lose_no_more_than_was_charged(engine: Any, program: Program) -> None:
    assume(without_nul(program))
    assert in_lock_step(engine, program) == (True, True)


@thorough(PROGRAMS)
@given(program=programs_at_rho())
def test_neighbours_at_rho_look_the_same_and_lose_no_more_than_was_charged(
    engine: Any, program: Program
) -> None:
    assume(without_nul(program))
    assert in_lock_step_at_rho(engine, program) == (True, True)
