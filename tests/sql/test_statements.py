"""What statements give: rows, intervals, shares of ε, levels that add up, prices; on tables of any kind."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fpinq as fp
from fpinq.client.several import Several
from fpinq.model.epsilon import Epsilon
from fpinq.sql.explaining import Explanation
from fpinq.sql.levels import least_squares
from sql.small_town import CERTAIN, CITIES, in_duckdb, protected, rows, without_noise

ONE = Epsilon(1)


@pytest.fixture(scope="module")
def town() -> dict[str, Any]:
    return protected(engine="reference")


def explained(statement: str, town: dict[str, Any], epsilon: object = 1) -> Explanation:
    found: Any = fp.sql(f"EXPLAIN {statement}", epsilon=epsilon, **town)
    assert isinstance(found, Explanation)
    return found


# ── results ──────────────────────────────────────────────────────────────────────────


def test_rows_have_the_names_of_the_select_list(town: dict[str, Any]) -> None:
    found = fp.sql(
        "SELECT UPPER(city) AS town, city, COUNT(*) AS n, AVG(age) AS a, COUNT(*) * 2 AS twice "
        "FROM people GROUP BY city ORDER BY city DESC LIMIT 3", epsilon=CERTAIN, **town)  # fmt: skip
    assert list(found) == ["Dax", "Cork", "Bern"]
    assert found["Dax"]["town"] == "DAX"
    assert found["Dax"]["n"].interval(0.95) is not None
    assert found["Dax"]["twice"].value == 2 * found["Dax"]["n"].value
    low, high = found["Dax"]["n"].interval(0.95)
    assert found["Dax"]["twice"].interval(0.95) == (2 * low, 2 * high)
    assert list(found.rows()[0])[:4] == ["town", "city", "n", "n_low"]
    assert list(found.to_pandas().columns) == list(found.rows()[0])
    assert found.to_polars().shape[0] == found.to_arrow().num_rows == 3
    assert (found.to_csv() or "").splitlines()[0].startswith("town,city,n,")
    assert "Dax" in repr(found)
    assert found._repr_html_()


def test_sums_of_answers_have_intervals_that_hold(town: dict[str, Any]) -> None:
    statement = (
        "SELECT 3 - COUNT(*) / 2 AS half, SUM(age) - 2 * COUNT(*) AS two, AVG(age) / COUNT(*) AS none, "
        "CASE WHEN COUNT(*) > 3 THEN 1 ELSE 0 END AS one, COUNT(*) AS n, SUM(age) AS s FROM people"
    )
    with without_noise():
        exact = fp.sql(statement, epsilon=CERTAIN, **town)
    held = {"half": 0, "two": 0}
    for _ in range(300):
        found = fp.sql(statement, epsilon=1, **town)
        assert found["half"].standard_error == pytest.approx(found["n"].standard_error / 2)
        assert found["two"].standard_error is None
        assert found["none"].interval(0.9) is found["one"].interval(0.9) is None
        for name in held:
            low, high = found[name].interval(0.9)
            held[name] += low <= exact[name].value <= high
    assert all(number >= 250 for number in held.values())  # of 300, 270 are promised


def test_a_row_of_one_answer_is_the_answer(town: dict[str, Any]) -> None:
    one = fp.sql("SELECT COUNT(*) AS n FROM people", epsilon=CERTAIN, **town)
    assert one.value == one["n"].value == one.n.value == float(one) == 60
    assert one.interval(0.95) == (60, 60)
    with pytest.raises(AttributeError):
        one.nobody  # noqa: B018


def test_answers_are_drawn(town: dict[str, Any]) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    fp.sql("SELECT city, COUNT(*) AS n FROM people GROUP BY city", epsilon=1, **town).plot()


def test_a_table_is_called_anything_in_its_own_statement(town: dict[str, Any]) -> None:
    adults = town["people"].where(lambda x: x.age > 17)
    assert adults.sql("SELECT COUNT(*) AS n FROM grown_ups", epsilon=1).value is not None
    both = adults.sql("SELECT COUNT(*) AS n FROM a JOIN visits USING (pid)", epsilon=1, visits=town["visits"])
    assert both.value is not None


def test_tables_about_the_same_people_are_asked_together() -> None:
    tables = fp.protect(rows(), unit="pid", rows_per_unit=4, budget=10, engine="reference", name="town")
    assert (
        tables.sql("SELECT COUNT(*) AS n FROM people JOIN visits USING (pid)", epsilon="1/10").value
        is not None
    )
    named = fp.sql("SELECT COUNT(*) AS n FROM town.people", epsilon="1/10", town=tables)
    assert named.value is not None


def test_a_statement_needs_tables() -> None:
    with pytest.raises(fp.ProgramError, match="say which tables"):
        fp.sql("SELECT COUNT(*) FROM people", epsilon=1)
    with pytest.raises(fp.ProgramError, match="is no table but list"):
        fp.sql("SELECT COUNT(*) FROM people", epsilon=1, people=[{"a": 1}])


# ── ε ────────────────────────────────────────────────────────────────────────────────


def test_what_is_charged_is_the_price_that_was_explained() -> None:
    town = protected(budget=10, engine="reference")
    for statement in (
        "SELECT COUNT(*) AS n, AVG(age) AS a, COUNT(DISTINCT city) AS c, MEDIAN(age) AS m FROM people",
        "SELECT city, COUNT(*) AS n, COUNT(DISTINCT age) AS d FROM people GROUP BY CUBE (city)",
        "SELECT COUNT(*) AS n FROM people JOIN visits USING (pid)",
    ):
        before, price = town["people"].remaining, explained(statement, town, "1/4").price
        found = fp.sql(statement, epsilon="1/4", **town)
        assert before - town["people"].remaining == price == found.charged


def test_aggregates_of_one_expression_are_one_measurement(town: dict[str, Any]) -> None:
    found = fp.sql("SELECT COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a, VAR_POP(age) AS v FROM people",
                   epsilon=1, **town)  # fmt: skip
    assert {answer.epsilon for answer in found.values()} == {1}


def test_weights_share_epsilon(town: dict[str, Any]) -> None:
    statement = "SELECT /*+ weight(m, 3) */ COUNT(*) AS n, MEDIAN(age) AS m FROM people"
    found = fp.sql(statement, epsilon=1, **town)
    assert (found["n"].epsilon, found["m"].epsilon) == (Fraction(1, 4), Fraction(3, 4))
    alone = fp.sql("SELECT /*+ weight(d, 3) */ COUNT(*) AS n, COUNT(DISTINCT city) AS d FROM people",
                   epsilon=1, **town)  # fmt: skip
    assert (alone["n"].epsilon, alone["d"].epsilon) == (Fraction(1, 4), Fraction(3, 4))


def test_the_same_aggregate_is_asked_once(town: dict[str, Any]) -> None:
    plan = explained(
        "SELECT COUNT(*) AS a, count( * ) AS b, SUM(people.age) + SUM(AGE) AS c FROM people", town
    ).plan
    assert len(plan.aggregates) == 2


def test_a_statement_is_the_same_query_as_its_lambda(town: dict[str, Any]) -> None:
    plan = explained("SELECT COUNT(*) AS n, AVG(age) AS a FROM people WHERE age > 17", town).plan
    queries = Several({name: asked.query for name, asked in plan.aggregates.items()}, plan.weights)
    people = town["people"]
    lambdas = fp.several(n=fp.count(), a=fp.average(lambda x: x.age, bounds=(0, 120)))
    ours = queries.traced(plan.table.facts.subject).prepare(plan.table.facts.subject, ONE)
    theirs = lambdas.traced(people.facts.subject).prepare(people.facts.subject, ONE)
    assert ours.primitive == theirs.primitive


def test_a_statement_is_asked_at_rho() -> None:
    data = fp.protect([{"a": i % 10, "k": i % 2} for i in range(100)], budget=fp.rho(100),
                      columns={"a": fp.Column(bounds=(0, 9)), "k": fp.Column(keys=[0, 1])})  # fmt: skip
    found = data.sql("SELECT k, COUNT(*) AS n, SUM(a) AS s FROM t GROUP BY k", epsilon=fp.rho(2))
    assert data.remaining == 98
    assert found[0]["n"].epsilon == fp.rho(1)
    assert "ρ = 2" in repr(found)
    assert "ρ = 2 costs 2" in str(data.sql("EXPLAIN SELECT COUNT(*) AS n FROM t", epsilon=fp.rho(2)))


def test_an_explanation_says_how_far_off_each_column_will_be(town: dict[str, Any]) -> None:
    said = str(explained("SELECT COUNT(*) AS n, COUNT(*) * 2 AS twice, AVG(age) AS a FROM people", town))
    assert "n: count, ±" in said
    assert "a: average of age, at most" in said
    assert "twice: computed of what is released" in said
    assert "ε = 1 costs 1" in said
    assert "scaling factor 1" in said


# ── levels ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("levels", ["ROLLUP (city, gender)", "CUBE (city, gender)"])
def test_levels_add_up(town: dict[str, Any], levels: str) -> None:
    found = fp.sql(f"SELECT city, gender, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY {levels}",
                   epsilon="1/2", **town)  # fmt: skip
    for name in ("n", "s"):
        total = found[None, None][name].value
        cities = [found[city, None][name].value for city in CITIES]
        assert sum(cities) == pytest.approx(total)
        for city in CITIES:
            cells = [found[city, gender][name].value for gender in (0, 1)]
            assert sum(cells) == pytest.approx(found[city, None][name].value)


def test_least_squares_are_those_of_the_equations() -> None:
    chance = np.random.default_rng(3)
    shape, summed = (3, 4), [(), (1,), (0,), (0, 1)]
    seen = [
        chance.normal(size=(3, 4)),
        chance.normal(size=3),
        chance.normal(size=4),
        np.array(chance.normal()),
    ]
    equations = [
        np.eye(12).reshape(12, 3, 4).sum(axis=tuple(a + 1 for a in over)).reshape(12, -1).T for over in summed
    ]
    whole = np.concatenate(equations)
    expected = np.linalg.lstsq(whole, np.concatenate([each.ravel() for each in seen]), rcond=None)[0]
    assert np.allclose(least_squares(seen, summed, shape).ravel(), expected)


def test_consistency_makes_no_level_worse() -> None:
    """Both ways: the finest level by itself has more error in the total than all levels together."""
    chance = np.random.default_rng(5)
    summed, shape = [(), (1,), (0, 1)], (4, 25)
    before, after = [], []
    for _ in range(200):
        seen = [chance.laplace(size=shape), chance.laplace(size=4), np.array(chance.laplace())]
        cells = least_squares(seen, summed, shape)
        before.append([float(np.mean(sight**2)) for sight in seen])
        after.append([float(np.mean(np.asarray(cells.sum(axis=over)) ** 2)) for over in summed])
    assert all(a < b * 1.02 for a, b in zip(np.mean(after, axis=0), np.mean(before, axis=0), strict=True))
    assert np.mean(after, axis=0)[2] < 2 < 100  # a draw has variance 2: the cells' sum has 200


# ── joins ────────────────────────────────────────────────────────────────────────────


def test_a_public_table_keeps_all_its_rows_of_a_key(town: dict[str, Any]) -> None:
    """Not only those whose key is unique: that lost rows in silence."""
    tags = [{"town": city, "tag": tag} for city in CITIES for tag in ("a", "b")] + [
        {"town": "Aal", "tag": "c"}
    ]
    statement = "SELECT tag, COUNT(*) AS n FROM people JOIN tags ON city = town GROUP BY tag ORDER BY tag"
    with without_noise():
        found = fp.sql(statement, epsilon=CERTAIN, tags=fp.public(tags), **town)
    plain = in_duckdb()
    plain.execute("CREATE TABLE tags (town VARCHAR, tag VARCHAR)")
    plain.executemany("INSERT INTO tags VALUES (?, ?)", [list(tag.values()) for tag in tags])
    assert {key: line["n"].value for key, line in found.items()} == dict(plain.execute(statement).fetchall())
    assert explained(statement, {**town, "tags": fp.public(tags)}).plan.table.scaling_factor == 3


def test_hints_bound_a_join_and_its_factor(town: dict[str, Any]) -> None:
    joined = "SELECT /*+ {} */ COUNT(*) AS n FROM people a JOIN visits b ON a.age = b.units"
    few = explained(joined.format("at_most(a, 1), at_most(b, 1)"), town).plan.table.scaling_factor
    more = explained(joined.format("at_most(a, 2), at_most(b, 3)"), town).plan.table.scaling_factor
    assert few < more
    inside = "SELECT {} COUNT(*) AS n FROM people a JOIN visits b ON a.pid = b.pid"
    assert explained(inside.format(""), town).plan.table.scaling_factor == 4
    assert explained(inside.format("/*+ at_most(b.pid, 1) */"), town).plan.table.scaling_factor == 1


def test_a_groups_key_is_unique_without_a_hint(town: dict[str, Any]) -> None:
    statement = ("SELECT /*+ at_most(p, 1) */ COUNT(*) AS n FROM people p JOIN "
                 "(SELECT units, COUNT(*) AS c FROM visits GROUP BY units) AS g ON age = units")  # fmt: skip
    assert explained(statement, town).missing == ()


def test_keys_pass_through_sub_queries(town: dict[str, Any]) -> None:
    statement = ("SELECT y, COUNT(*) AS n FROM (SELECT YEAR(day) AS y FROM visits "
                 "WHERE day BETWEEN DATE '2020-05-01' AND DATE '2022-01-31') AS t GROUP BY y")  # fmt: skip
    assert [key for (key,) in explained(statement, town).plan.keys] == [2020, 2021, 2022]


def test_decimals_are_exact_where_floats_are_not(town: dict[str, Any]) -> None:
    """0.06 + 0.01 is 0.07, as in SQL; in floats it is less."""
    statement = "SELECT COUNT(*) AS n FROM (VALUES (0.07)) AS t(x) WHERE x <= 0.06 + 0.01"
    with without_noise():
        assert fp.sql(statement, epsilon=1, **town).value == 1


@pytest.mark.parametrize(
    "statement",
    [
        # v.pid was taken for p.pid, which is never null.
        "SELECT COUNT(v.pid) AS n FROM people p LEFT JOIN visits v USING (pid)",
        "SELECT COUNT(*) AS n FROM people p LEFT JOIN visits v USING (pid) WHERE v.pid IS NULL",
        "SELECT COUNT(pid) AS n FROM people p LEFT JOIN visits v USING (pid)",
        "SELECT COUNT(v.pid) AS n FROM people p JOIN visits v USING (pid) JOIN people q ON q.pid = v.pid",
        "SELECT COUNT(pid) AS n FROM (SELECT * FROM people p JOIN visits v USING (pid)) t",
        # A null in the list, and no list at all, were taken for a list without.
        "SELECT COUNT(*) AS n FROM people WHERE city NOT IN (SELECT IF(size > 2, town, NULL) FROM regions)",
        "SELECT COUNT(*) AS n FROM people WHERE city NOT IN (SELECT town FROM regions WHERE size > 100)",
    ],
)
def test_nulls_of_left_joins_and_of_not_in_are_what_duckdb_says(statement: str) -> None:
    with without_noise():
        found = fp.sql(statement, epsilon=10**6, **protected())
    assert found["n"].value == in_duckdb().execute(statement).fetchall()[0][0]
