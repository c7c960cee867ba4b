"""A person as the unit: factors are rows per person as long as operations stay inside one."""

import random
from collections.abc import Callable
from typing import Any

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY, SURE, VISITS
from fpinq import _
from fpinq.engines.reference import Database, Relation, compute, distance
from fpinq.model.expressions import Type
from fpinq.runtime import ReferenceEngine


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


def test_after_an_outer_join_only_the_left_unit_is_the_unit(tables: dict[str, fp.Table]) -> None:
    people, visits = tables["people"], tables["visits"]
    joined = people.join(visits.rename(id="who"), on=("id", "who"), outer=True)
    assert joined.scaling_factor == 2
    own = joined.group_by(_.id).select(lambda g: {"n": g.count()})
    # A person without visits has no unit on the right: all of them would be one group of nobody.
    others = joined.group_by(_.who).select(lambda g: {"n": g.count()})
    assert (own.scaling_factor, others.scaling_factor) == (1, 4)


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


# ── inside a person is the same, and costs what it says ──────────────────────────────

PROGRAMS: dict[str, Callable[[fp.Table, fp.Table], fp.Table]] = {
    "where": lambda p, v: v.where(_.cost > 6),
    "select": lambda p, v: v.select(lambda x: {"id": x.id, "c": x.cost * 2}),
    "select_many": lambda p, v: v.select_many(lambda x: [x.cost, x.day], at_most=2),
    "concat": lambda p, v: v.concat(v.where(_.day > 1)),
    "distinct": lambda p, v: v.select(lambda x: {"id": x.id, "day": x.day}).distinct(),
    "distinct across": lambda p, v: v.select(lambda x: {"day": x.day}).distinct(),
    "limit": lambda p, v: v.limit_per_key(1, lambda x: {"id": x.id, "day": x.day}),
    "limit per person": lambda p, v: v.limit_per_key(2, _.id),
    "unique": lambda p, v: v.unique_by(lambda x: {"id": x.id, "day": x.day}),
    "unique per person": lambda p, v: v.unique_by(_.id),
    "group": lambda p, v: v.group_by(_.id).select(
        lambda g: {"id": g.key, "n": g.count(), "c": g.sum(_.cost)}
    ),
    "group and day": lambda p, v: v.group_by(["id", "day"]).select(lambda g: {"n": g.count()}),
    "group across": lambda p, v: v.group_by(_.day).select(lambda g: {"d": g.key, "n": g.count()}),
    "groups of groups": lambda p, v: (
        v.group_by(["id", "day"])
        .select(lambda g: {"id": g.key.id, "n": g.count()})
        .group_by(_.id)
        .select(lambda g: {"id": g.key, "most": g.max(_.n)})
    ),
    "join": lambda p, v: p.join(v, on="id", left=fp.first(9), right=fp.first(9)),
    "join, few": lambda p, v: p.join(v, on="id", left=fp.unique(), right=fp.first(2)),
    "join with itself": lambda p, v: v.join(v, on="id", left=fp.first(2), right=fp.first(2)),
    "join on two": lambda p, v: p.with_columns(day=_.age // 10).join(
        v, on=["id", "day"], left=fp.first(9), right=fp.first(9)
    ),
    "join, then group": lambda p, v: (
        p.join(v, on="id", left=fp.first(9), right=fp.first(9))
        .group_by(_.id_right)
        .select(lambda g: {"id": g.key, "n": g.count()})
    ),
    "group join": lambda p, v: p.group_join(v, on="id").select(lambda g: {"id": g.key, "n": g.right.count()}),
    "take": lambda p, v: v.take(3),
    "union": lambda p, v: v.where(_.day > 1).union(v.where(_.cost > 6)),
}


def rows_of(table: fp.Table, database: Database) -> Relation:
    system = table.facts.system
    assert system is not None
    return compute(system.describe(table.facts.binding.variable).plan, database)


SCHEMAS = {
    "people": {"id": Type.INT64, "age": Type.INT64, "gender": Type.INT64},
    "visits": {"id": Type.INT64, "cost": Type.INT64, "day": Type.INT64},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_inside_a_person_gives_the_same_records_and_one_person_changes_no_more_than_the_factor(
    name: str,
) -> None:
    draw = random.Random(name)
    for round_ in range(25):
        ids = range(draw.randint(1, 4))
        people = [{"id": i, "age": draw.randint(0, 40), "gender": i % 2} for i in ids]
        visits = [
            {"id": draw.choice(ids), "cost": draw.randint(1, 9), "day": draw.randint(1, 3)} for _i in range(9)
        ]
        bounds = {"people": 1, "visits": 9 if round_ % 2 else 3}
        options: dict[str, Any] = {"budget": 1, "engine": "reference"}
        schemas = {t: {c: type_.value for c, type_ in columns.items()} for t, columns in SCHEMAS.items()}
        town = fp.protect(
            {"people": people, "visits": visits}, unit="id", rows_per_unit=bounds, schema=schemas, **options
        )
        plain_people = fp.protect(people, name="people", **options)
        plain_visits = fp.protect(visits, name="visits", **options)
        inside = PROGRAMS[name](town["people"], town["visits"])
        plain = PROGRAMS[name](plain_people, plain_visits)
        (root,), (p,), (v,) = town["people"].facts.roots, plain_people.facts.roots, plain_visits.facts.roots
        engine = ReferenceEngine()
        engine.add_persons(root, {"people": people, "visits": visits}, "id", SCHEMAS)
        engine.add_root(p, people)
        engine.add_root(v, visits)
        found = rows_of(inside, engine._database)
        if bounds["visits"] == 9:
            assert distance(found, rows_of(plain, engine._database)) == 0
        gone = draw.choice(ids)
        fewer = ReferenceEngine()
        kept = {
            "people": [row for row in people if row["id"] != gone],
            "visits": [row for row in visits if row["id"] != gone],
        }
        fewer.add_persons(root, kept, "id", SCHEMAS)
        assert distance(found, rows_of(inside, fewer._database)) <= inside.scaling_factor
