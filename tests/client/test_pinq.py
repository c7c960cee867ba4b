"""Everything PINQ 0.1.1 has, with its price: one test for every row of docs/reference/pinq.md."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest

import fpinq as fp
from client.small_data import PLENTY, SURE
from fpinq import _


def size(table: fp.Table) -> int:
    return int(table.noisy_count(SURE))


def total(table: fp.Table, column: str) -> int:
    return int(table.noisy_sum(SURE, column, bounds=(-(10**6), 10**6)))


# ── transformations ──────────────────────────────────────────────────────────────────


def test_where_keeps_the_true_ones_at_factor_1(people: fp.Table) -> None:
    adults = people.where(lambda x: x.age > 17)
    assert (size(adults), adults.scaling_factor) == (5, 1)
    assert size(people.where(_.income > 0)) == 4  # neither false nor null


def test_select_makes_one_record_of_each_at_factor_1(people: fp.Table) -> None:
    made = people.select(lambda x: {"double": x.age * 2, "one": 1})
    assert dict(made.schema) == {"double": "int64", "one": "int64"}
    assert (total(made, "double"), total(made, "one"), made.scaling_factor) == (420, 6, 1)
    assert dict(people.select(_.age).schema) == {"value": "int64"}


def test_select_many_costs_its_bound(people: fp.Table) -> None:
    many = people.select_many(lambda x: [x.age, x.age + 1, x.age + 2], at_most=2)
    assert (size(many), total(many, "value"), many.scaling_factor) == (12, 426, 2)
    assert many.price(1) == 2


def test_select_many_splits_texts(engine: str) -> None:
    lines = fp.protect([{"line": "a b c"}, {"line": "d"}, {"line": None}], budget=PLENTY, engine=engine)
    words = lines.select_many(lambda x: x.line.split(" "), at_most=2)
    assert (size(words), words.scaling_factor, dict(words.schema)) == (3, 2, {"value": "string"})


def test_take_costs_2(people: fp.Table) -> None:
    assert (size(people.take(4)), people.take(4).scaling_factor) == (4, 2)


def test_skip_is_except_of_take_and_costs_3(people: fp.Table) -> None:
    skipped = people.except_(people.take(2), bag=True)
    assert (size(skipped), total(skipped, "id"), skipped.scaling_factor) == (4, 18, 3)


def test_group_by_costs_2(people: fp.Table) -> None:
    groups, third = people.group_by(lambda x: x.city), Fraction(1, 3)
    table = groups.select(lambda g: {"city": g.key, "n": g.count(), "oldest": g.max(lambda x: x.age)})
    assert (size(table), total(table, "n"), total(table, "oldest")) == (4, 6, 20 + 40 + 50 + 60)
    assert (table.scaling_factor, groups.scaling_factor, table.price("1/3")) == (2, 1, Fraction(2, 3))
    assert (size(groups.keys()), groups.keys().price("1/3"), groups.price("1/3")) == (4, third, third)
    assert groups.where(lambda g: g.count() > 1).scaling_factor == 2


def test_groups_know_sum_min_max_and_average(people: fp.Table) -> None:
    table = people.group_by(_.gender).select(
        lambda g: {
            "gender": g.key,
            "sum": g.sum(lambda x: x.age),
            "min": g.min(_.age),
            "mean": g.average(_.age),
            "income": g.sum(_.income, bounds=(0, 4096)),
        }
    )
    assert (total(table, "sum"), total(table, "min")) == (210, 30)
    assert table.noisy_sum(SURE, _.mean, bounds=(0, 100)).value == pytest.approx(70, abs=0.01)
    assert table.noisy_sum(SURE, _.income, bounds=(0, 10_000)).value == pytest.approx(8800.75, abs=0.01)


def test_groups_can_be_filtered_and_asked(people: fp.Table) -> None:
    large = people.group_by(_.city).where(_.count() > 1)
    assert large.noisy_count(SURE).value == 2
    assert large.noisy_sum(SURE, lambda g: g.sum(_.age), bounds=(0, 200)).value == 100
    assert size(large.select(lambda g: g.key)) == 2


def test_groups_by_several_keys(people: fp.Table) -> None:
    table = people.group_by(lambda x: {"g": x.gender, "c": x.city}).select(
        lambda g: {"city": g.key.c, "n": g.count()}
    )
    assert size(table) == 6
    assert size(people.group_by(["gender", "city"]).select(lambda g: g.key)) == 6


def test_join_on_group_pairs_is_group_join_and_costs_2_and_2(people: fp.Table, visits: fp.Table) -> None:
    joined = people.group_join(visits, on="id").select(
        lambda g: {"id": g.key, "n": g.left.count(), "spent": g.right.sum(lambda x: x.cost)}
    )
    assert (size(joined), total(joined, "n"), total(joined, "spent")) == (6, 6, 72)
    assert joined.price(1) == {"people": 2, "visits": 2}
    with_two = people.group_join(visits, on="id", select=lambda a, b: {"n": a.count() + b.count()})
    with_three = people.group_join(visits, on="id", select=lambda key, a, b: {"key": key, "n": b.count()})
    assert (total(with_two, "n"), total(with_three, "n")) == (12, 6)


def test_a_group_join_can_be_inner_or_left_outer(people: fp.Table, visits: fp.Table) -> None:
    both = people.where(_.id > 1).group_join(visits, on="id")
    inner = both.where(lambda g: (g.left.count() > 0) & (g.right.count() > 0))
    left = both.where(lambda g: g.left.count() > 0)
    for groups, keys, spent in ((both, 6, 72), (inner, 2, 60), (left, 5, 60)):
        table = groups.select(lambda g: {"id": g.key, "spent": g.right.sum(lambda x: x.cost)})
        assert (size(table), total(table, "spent")) == (keys, spent)
    table = inner.select(lambda g: {"n": g.left.count(), "m": g.right.count()})
    assert table.price(1) == {"people": 2, "visits": 2}
    places = fp.public([{"city": "Ulm", "size": 1}, {"city": "Rom", "size": 3}])
    beside = people.group_join(places, on="city", select=lambda a, b: {"n": a.count(), "m": b.count()})
    assert (size(beside), beside.scaling_factor) == (4, 2)


@pytest.mark.parametrize(
    ("left", "right", "rows", "price"),
    [
        (fp.unique(), fp.unique(), 1, (1, 1)),
        (fp.unique(), fp.first(2), 5, (2, 2)),
        (fp.first(1), fp.first(3), 6, (6, 2)),
    ],
)
def test_join_with_bounds_follows_the_join_law(
    people: fp.Table, visits: fp.Table, left: object, right: object, rows: int, price: tuple[int, int]
) -> None:
    joined = people.join(visits, on="id", left=left, right=right)  # type: ignore[arg-type]
    assert size(joined) == rows
    assert joined.price(1) == {"people": price[0], "visits": price[1]}


def test_an_outer_join_with_a_public_table_keeps_every_record_at_factor_1(people: fp.Table) -> None:
    cities = fp.public([{"city": "Ulm", "river": "Donau"}, {"city": "Bonn", "river": "Rhein"}])
    joined = people.join(cities, on="city", right=fp.unique(), outer=True)
    assert (size(joined), joined.scaling_factor) == (6, 1)
    assert size(joined.where(_.river.is_null())) == 2
    assert size(people.join(cities, on="city", right=fp.unique())) == 4
    three = fp.public([{"city": "Ulm", "n": i} for i in range(3)])
    assert people.join(three, on="city", right=fp.first(2), outer=True).scaling_factor == 2
    assert "outer join on city" in str(joined.explain())


def test_a_group_join_with_a_public_table_costs_1_for_each_record(people: fp.Table) -> None:
    trains = fp.public([{"city": "Ulm", "at": 7}, {"city": "Ulm", "at": 9}, {"city": "Rom", "at": 8}])
    each = trains.group_by(_.city).select(lambda g: {"city": g.key, "n": g.count(), "last": g.max(_.at)})
    joined = people.join(
        each,
        on="city",
        right=fp.unique(),
        outer=True,
        select=lambda a, r: {"age": a.age, "n": r.n.fill_null(0), "last": r.last},
    )
    assert (size(joined), total(joined, "n"), joined.scaling_factor) == (6, 4, 1)


def test_an_outer_join_of_protected_tables_charges_the_right_twice(
    people: fp.Table, visits: fp.Table
) -> None:
    joined = people.join(visits, on="id", left=fp.unique(), right=fp.first(2), outer=True)
    assert joined.price(1) == {"people": 2, "visits": 2}
    with pytest.raises(fp.BadTransformation, match="column of the right"):
        people.join(visits, on="id", outer=True, select=lambda a, b: {"age": a.age})


def test_a_join_keeps_all_columns_and_renames_the_right_ones_that_clash(
    people: fp.Table, visits: fp.Table
) -> None:
    joined = people.join(visits, on="id", left=fp.unique(), right=fp.first(3))
    assert list(joined.schema) == ["id", "age", "gender", "city", "income", "id_right", "cost", "day"]


def test_a_join_selects_and_takes_keys_in_every_spelling(people: fp.Table, visits: fp.Table) -> None:
    options = {"left": fp.unique(), "right": fp.first(3)}
    made = people.join(
        visits,
        on=(lambda a: a.id, lambda b: b.id),
        select=lambda a, b: {"x": a.age + b.cost},
        **options,  # type: ignore[arg-type]
    )
    assert total(made, "x") == 10 + 5 + 10 + 7 + 20 * 3 + 41 + 40 + 19
    for on in ("id", ["id"], lambda x: x.id, _.id, ("id", "id")):
        assert size(people.join(visits, on=on, **options)) == 6  # type: ignore[arg-type]


def test_beside_a_public_table_a_join_costs_what_the_public_side_multiplies(people: fp.Table) -> None:
    places = fp.public([{"city": "Ulm", "size": 1}, {"city": "Bonn", "size": 3}, {"city": "Bonn", "size": 4}])
    every = people.join(places, on="city", left=fp.all_(), right=fp.first(2))
    assert (size(every), every.scaling_factor) == (6, 2)
    assert people.join(places, on="city").scaling_factor == 1  # unique on the public side by default
    with pytest.raises(fp.UnboundedStability):
        people.join(people, on="city", left=fp.all_(), right=fp.first(2))


def test_concat_union_intersect_except_add_their_factors(people: fp.Table) -> None:
    young, old = people.where(_.age < 45), people.where(_.age > 15)
    assert (size(young.concat(old)), young.concat(old).scaling_factor) == (9, 2)
    assert (size(young.union(old)), size(young.union(old, bag=True))) == (6, 6)
    assert (size(young.intersect(old)), size(young.except_(old))) == (3, 1)
    for table in (young.union(old), young.intersect(old), young.except_(old)):
        assert table.scaling_factor == 2


def test_except_and_intersect_with_a_public_table_cost_1(people: fp.Table) -> None:
    ids = people.select(lambda x: {"id": x.id})
    listed = fp.public([{"id": 1}, {"id": 2}, {"id": 99}])
    assert (size(ids.except_(listed)), ids.except_(listed).scaling_factor) == (4, 1)
    assert (size(ids.intersect(listed)), ids.intersect(listed).scaling_factor) == (2, 1)
    assert (size(people.semi_join(listed, on="id")), size(people.anti_join(listed, on="id"))) == (2, 4)
    with pytest.raises(fp.UnboundedStability):
        people.semi_join(people, on="id")


def test_distinct_and_its_bounded_kinds(people: fp.Table) -> None:
    genders = people.select(lambda x: {"gender": x.gender})
    assert (size(genders.distinct()), genders.distinct().scaling_factor) == (2, 1)
    assert (size(genders.limit_per_key(2)), genders.limit_per_key(2).scaling_factor) == (4, 1)
    assert genders.limit_per_key(2, lambda x: x.gender).scaling_factor == 1
    limited = people.limit_per_key(1, lambda x: x.city)
    assert (size(limited), limited.scaling_factor) == (4, 2)
    assert (size(people.unique_by(_.city)), people.unique_by(_.city).scaling_factor) == (2, 1)


def test_partition_costs_the_largest_of_its_parts(people: fp.Table) -> None:
    before = people.remaining
    parts = people.partition(lambda x: x.city, keys=["Ulm", "Bonn", "Rom"])
    assert list(parts) == ["Ulm", "Bonn", "Rom"]
    assert [int(part.noisy_count(SURE)) for part in parts.values()] == [2, 2, 0]
    assert before - people.remaining == SURE  # type: ignore[operator]
    assert parts["Rom"].price(SURE) == SURE
    parts["Ulm"].noisy_count(SURE)
    assert parts["Rom"].price(SURE) == 0


def test_nested_and_merged_parts_are_charged_exactly(people: fp.Table) -> None:
    parts = people.partition(_.gender, keys=[0, 1])
    inner = parts[0].partition(_.city, keys=["Ulm", "Bonn"])
    merged = parts[0].concat(parts[1])
    assert (inner["Ulm"].price(1), merged.price(1), merged.scaling_factor) == (1, 1, 1)
    before = people.remaining
    inner["Ulm"].noisy_count(1)
    inner["Bonn"].noisy_count(2)
    parts[1].noisy_count(2)
    assert before - people.remaining == 2  # type: ignore[operator]


def test_a_table_is_a_plan_so_there_is_nothing_to_materialize(people: fp.Table) -> None:
    adults = people.where(_.age > 17)
    assert adults.noisy_count(SURE).value == adults.noisy_count(SURE).value == 5


def test_rename_and_with_columns(people: fp.Table) -> None:
    renamed = people.rename({"age": "years"}).with_columns(lambda x: {"decade": x.years // 10})
    assert "age" not in renamed.schema
    assert total(renamed, "decade") == 21
    assert total(people.with_columns(age=_.age + 1), "age") == 216
    assert people.with_columns(lambda x: {"age": x.age + 1}).scaling_factor == 1


# ── queries ──────────────────────────────────────────────────────────────────────────


def test_noisy_count(people: fp.Table) -> None:
    assert people.noisy_count(SURE).value == 6


def test_noisy_sum(people: fp.Table) -> None:
    assert people.noisy_sum(SURE, lambda x: x.age, bounds=(0, 110)).value == 210
    assert people.noisy_sum(SURE, lambda x: x.age, bounds=(0, 25)).value == 10 + 20 + 4 * 25
    assert people.noisy_sum(SURE, _.income, bounds=(0, 5000)).value == pytest.approx(8800.75, abs=0.01)


def test_noisy_average(people: fp.Table) -> None:
    assert people.noisy_average(SURE, lambda x: x.age, bounds=(0, 110)).value == pytest.approx(35, abs=0.2)
    assert people.noisy_average(SURE, _.income, bounds=(0, 5000)).value == pytest.approx(1760.15, abs=10)


def test_noisy_median(people: fp.Table) -> None:
    assert 30 <= people.noisy_median(SURE, lambda x: x.age, bounds=(0, 110)).value <= 40


def test_noisy_order_statistic(people: fp.Table) -> None:
    assert people.noisy_order_statistic(SURE, 0, lambda x: x.age, bounds=(0, 110)).value <= 10
    assert people.noisy_order_statistic(SURE, 1, lambda x: x.age, bounds=(0, 110)).value >= 60
    assert 20 <= people.noisy_quantile(SURE, 0.25, lambda x: x.age, bounds=(0, 110)).value <= 20


def test_pinq_s_order_statistic_loses_nearly_twice_what_it_charges() -> None:
    def density(values: list[float], fraction: float, at: float) -> float:
        """PINQ's: proportional to exp(−ε·|n·f − rank|), with ε = 1, on [0, 1]."""

        def weight(x: float) -> float:
            return math.exp(-abs(len(values) * fraction - sum(v <= x for v in values)))

        ends = [0.0, *sorted(values), 1.0]
        return weight(at) / sum((b - a) * weight((a + b) / 2) for a, b in pairwise(ends))

    # One record more takes the target away from where nearly all weight is, and towards the point looked at.
    without = [0.0] * 98 + [1 - 1e-9] * 2
    at = 1 - 5e-10
    loss = math.log(density([*without, 1.0], 0.99, at) / density(without, 0.99, at))
    assert 1.9 < loss < 2


def test_exponential_mechanism(people: fp.Table) -> None:
    best = people.exponential_mechanism(SURE, ["Kiel", "Ulm"], lambda x, c: x.city == c)
    assert best.value == "Ulm"
    weighed = people.exponential_mechanism(
        SURE, [0, 1], lambda x, c: fp.if_else(x.gender == c, x.age, 0), bounds=(0, 110)
    )
    assert weighed.value == 1


# ── agents, and what PINQ lacked ─────────────────────────────────────────────────────


def test_a_budget_agent_is_the_root_s_budget_or_a_share_of_one(people: fp.Table) -> None:
    share = fp.Budget(1)
    limited = people.with_budget(share)
    limited.noisy_count(0.75)
    with pytest.raises(fp.BudgetExceeded):
        limited.noisy_count(0.5)
    assert (share.remaining, limited.remaining) == (Fraction(1, 4), Fraction(1, 4))


def test_a_unary_agent_is_the_stability(people: fp.Table) -> None:
    assert people.group_by(_.city).select(_.count()).price(1) == 2


def test_a_binary_agent_adds_the_sides(people: fp.Table, visits: fp.Table) -> None:
    a, b = people.select(lambda x: {"id": x.id}), visits.select(lambda x: {"id": x.id})
    assert a.concat(b).price(1) == {"people": 1, "visits": 1}
    assert a.concat(a).price(1) == 2


def test_a_partition_agent_charges_the_maximum(people: fp.Table) -> None:
    parts = people.partition(_.gender, keys=[0, 1])
    parts[0].noisy_count(1)
    assert (parts[0].price(1), parts[1].price(1)) == (1, 0)


def test_a_logger_agent_is_the_answer_s_charge(people: fp.Table) -> None:
    assert people.take(3).noisy_count("0.25").charged == Fraction(1, 2)


def test_nothing_but_a_query_changes_what_is_left(people: fp.Table) -> None:
    before = people.remaining
    groups = people.group_by(_.city).select(lambda g: {"city": g.key, "n": g.count()})
    parts = people.partition(_.gender, keys=[0, 1])
    people.price(1), groups.scaling_factor, parts[0].sensitivity, people.explain()
    with pytest.raises(fp.BudgetExceeded):
        people.noisy_count(PLENTY * 2)
    for epsilon in (-1, 0, float("nan")):
        with pytest.raises(fp.BadEpsilon):
            people.noisy_count(epsilon)
    with pytest.raises(fp.BadExpression):
        people.where(lambda x: people.noisy_count(1) > 0)
    assert people.remaining == before


def test_what_is_left_the_factor_and_the_price_can_be_asked(people: fp.Table) -> None:
    assert (people.remaining, people.scaling_factor, people.price(0.1)) == (PLENTY, 1, Fraction(1, 10))
