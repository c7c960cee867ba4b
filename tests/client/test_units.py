"""A person as the unit: factors are rows per person as long as operations stay inside one."""

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY, SURE, VISITS
from fpinq import _


@pytest.fixture
def tables(engine: str) -> dict[str, fp.Table]:
    found: dict[str, fp.Table] = fp.protect(
        {"people": PEOPLE, "visits": VISITS},
        unit="id",
        rows_per_unit={"people": 1, "visits": 2},
        budget=PLENTY,
        engine=engine,
        name="clinic",
    )
    return found


def test_rows_beyond_the_bound_and_of_nobody_are_left_out(tables: dict[str, fp.Table]) -> None:
    visits = tables["visits"]
    assert visits.scaling_factor == 2
    assert visits.noisy_count(SURE).value == 5
    assert visits.noisy_sum(SURE, _.cost, bounds=(0, 100)).value == 5 + 7 + 11 + 13 + 19


def test_one_table_with_a_unit(engine: str) -> None:
    visits = fp.protect(VISITS, unit="id", rows_per_unit=5, budget=PLENTY, engine=engine)
    assert (visits.scaling_factor, visits.price("0.1")) == (5, fp.Budget("0.5").amount)
    assert visits.noisy_count(SURE).value == 6


def test_tables_of_the_same_people_share_the_budget(tables: dict[str, fp.Table]) -> None:
    tables["visits"].noisy_count(3)
    assert tables["people"].remaining == PLENTY - 6


def test_a_join_on_the_unit_stays_inside_a_person(tables: dict[str, fp.Table]) -> None:
    people, visits = tables["people"], tables["visits"]
    joined = people.where(_.age > 5).join(visits.rename(id="who"), on=("id", "who"))
    assert (joined.scaling_factor, joined.noisy_count(SURE).value) == (2, 5)
    # Further steps inside a person keep the bound, too.
    spent = joined.group_by(lambda x: x.who).select(lambda g: {"who": g.key, "spent": g.sum(_.cost)})
    assert (spent.scaling_factor, spent.noisy_sum(SURE, _.spent, bounds=(0, 99)).value) == (1, 55)
    pairs = people.join(visits, on="id", left=fp.unique(), right=fp.first(2))
    assert (pairs.scaling_factor, pairs.noisy_count(SURE).value) == (2, 5)


def test_a_join_on_something_else_follows_the_general_law(tables: dict[str, fp.Table]) -> None:
    people, visits = tables["people"], tables["visits"]
    joined = people.join(visits, on=("age", "cost"), left=fp.unique(), right=fp.first(3))
    assert joined.scaling_factor == 3 * 1 + 2 * 2


def test_a_unit_that_was_overwritten_is_not_the_unit(tables: dict[str, fp.Table]) -> None:
    people, visits = tables["people"], tables["visits"]
    forged = visits.with_columns(lambda x: {"id": x.id * 0})
    joined = people.join(forged, on="id", left=fp.unique(), right=fp.first(3))
    assert joined.scaling_factor == 3 * 1 + 2 * 2
    assert forged.group_by(_.id).select(_.count()).scaling_factor == 4


def test_groups_by_the_unit_are_made_inside_a_person(tables: dict[str, fp.Table]) -> None:
    visits = tables["visits"]
    each = visits.group_by(_.id).select(lambda g: {"id": g.key, "n": g.count()})
    assert (each.scaling_factor, each.noisy_count(SURE).value) == (1, 3)
    assert each.noisy_sum(SURE, _.n, bounds=(0, 5)).value == 5
    daily = visits.group_by(lambda x: {"id": x.id, "day": x.day}).select(lambda g: {"n": g.count()})
    assert (daily.scaling_factor, daily.noisy_count(SURE).value) == (2, 4)
    assert visits.group_by(_.day).select(_.count()).scaling_factor == 4


def test_limits_by_the_unit_are_made_inside_a_person(tables: dict[str, fp.Table]) -> None:
    visits = tables["visits"]
    assert (visits.limit_per_key(1, _.id).scaling_factor, visits.unique_by(_.id).scaling_factor) == (1, 2)
    assert visits.limit_per_key(1, _.id).noisy_count(SURE).value == 3
    assert visits.unique_by(_.id).noisy_count(SURE).value == 1
    assert (visits.distinct().scaling_factor, visits.take(3).scaling_factor) == (2, 4)


def test_group_join_and_concat_inside_a_person(tables: dict[str, fp.Table]) -> None:
    people, visits = tables["people"], tables["visits"]
    both = people.group_join(visits, on="id").select(lambda g: {"n": g.right.count()})
    assert (both.scaling_factor, both.noisy_sum(SURE, _.n, bounds=(0, 5)).value) == (3, 5)
    ids = people.select(lambda x: {"id": x.id}).concat(visits.select(lambda x: {"id": x.id}))
    assert (ids.scaling_factor, ids.noisy_count(SURE).value) == (3, 11)
    assert ids.group_by(_.id).select(_.key).scaling_factor == 1


def test_parts_of_a_unit_table_cost_their_maximum(tables: dict[str, fp.Table]) -> None:
    parts = tables["visits"].partition(_.day, keys=[1, 2, 3])
    assert [int(part.noisy_count(SURE)) for part in parts.values()] == [3, 2, 0]
    assert tables["visits"].remaining == PLENTY - 2 * SURE


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": "id"},
        {"unit": "id", "rows_per_unit": 0},
        {"unit": "id", "rows_per_unit": True},
        {"unit": "id", "rows_per_unit": {"people": 1}},
        {"unit": "id", "rows_per_unit": {"people": 1, "visits": 2, "vists": 3}},
        {"rows_per_unit": 5},
        {},
        {"unit": "nobody", "rows_per_unit": 1},
    ],
)
def test_a_unit_needs_its_column_and_its_bounds(engine: str, wrong: dict[str, object]) -> None:
    with pytest.raises(fp.ProgramError):
        fp.protect({"people": PEOPLE, "visits": VISITS}, budget=1, engine=engine, **wrong)  # type: ignore[arg-type]
