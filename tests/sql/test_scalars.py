"""Sub-queries that are values, and rows put together: what they cost, when they are asked."""

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fpinq as fp
from fpinq.model.actions import Query
from fpinq.model.expressions import Literal, Type
from fpinq.model.operators import evaluate
from fpinq.runtime.system import ProtectedSystem
from fpinq.sql.bounds import bounds_of
from fpinq.sql.combining import Both, put_together
from fpinq.sql.keys import finite
from fpinq.sql.scalars import is_opaque, opaque, typed
from sql.small_town import CERTAIN, CITIES, protected, without_noise

ABOVE = "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) AS m FROM people)"


@pytest.fixture(scope="module")
def town() -> dict[str, Any]:
    return protected(engine="reference")


def explained(statement: str, town: dict[str, Any], epsilon: object = 1) -> Any:
    return fp.sql(f"EXPLAIN {statement}", epsilon=epsilon, **town)


# ── what is charged ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "statement",
    [
        ABOVE,
        "SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM visits) AS d",
        "SELECT city, COUNT(*) / (SELECT COUNT(*) FROM visits) AS s, COUNT(DISTINCT age) AS d FROM people "
        "GROUP BY city",
        "SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM visits",
        "SELECT city, COUNT(*) AS n FROM people GROUP BY ROLLUP (city) "
        "UNION SELECT 'all', COUNT(*) FROM visits",
    ],
)
def test_a_statement_costs_what_was_explained_and_no_more_than_its_parts(statement: str) -> None:
    town = protected(budget=100, engine="reference")
    price = explained(statement, town, "1/4").price
    before = town["people"].remaining
    found = fp.sql(statement, epsilon="1/4", **town)
    assert before - town["people"].remaining == price == found.charged
    assert price <= Fraction(1, 4) * 4  # visits are four to a person


def test_epsilon_is_shared_by_weight(town: dict[str, Any]) -> None:
    weighted = ABOVE.replace("SELECT COUNT", "SELECT /*+ weight(m, 3) */ COUNT")
    assert fp.sql(weighted, epsilon=1, **town).split.of("m") == Fraction(3, 4)
    assert fp.sql(weighted, epsilon=1, **town).split.of("n") == Fraction(1, 4)
    assert fp.sql(ABOVE, epsilon=1, **town).split.of("m") == Fraction(1, 2)


def test_the_same_sub_query_is_asked_once(town: dict[str, Any]) -> None:
    twice = (
        "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people) "
        "AND income > 100 * (SELECT AVG(age) FROM people)"
    )
    assert len(explained(twice, town).program.scalars) == 1
    # Not where the same words mean another table.
    other = (
        "SELECT (SELECT COUNT(*) FROM visits) AS a UNION ALL "
        "(WITH visits AS (SELECT * FROM people) SELECT (SELECT COUNT(*) FROM visits)) ORDER BY a"
    )
    assert len(explained(other, town).program.scalars) == 2
    with without_noise():
        found = fp.sql(other, epsilon=CERTAIN, **town)
    assert [line["a"].value for line in found.values()] == [60, 104]


def test_at_rho_sub_queries_are_asked_at_shares_of_rho() -> None:
    tables = fp.protect([{"a": i} for i in range(50)], budget=fp.rho("1/2"), engine="reference",
                        columns={"a": fp.Column(bounds=(0, 50))}, name="rows")  # fmt: skip
    found = tables.sql("SELECT COUNT(*) AS n FROM t WHERE a > (SELECT AVG(a) FROM t)", epsilon=fp.rho("1/10"))
    assert Fraction(1, 2) - tables.remaining == found.charged == Fraction(1, 10)


def test_a_statement_over_two_roots_says_what_each_is_charged() -> None:
    a, b = (
        fp.protect([{"x": i} for i in range(9)], budget=1, engine="reference", name=name) for name in "ab"
    )
    statement = "SELECT COUNT(*) AS n FROM a UNION ALL SELECT COUNT(*) FROM b"
    found = fp.sql(statement, epsilon="1/2", a=a, b=b)
    assert sorted(found.charged.values()) == [Fraction(1, 4)] * 2
    assert a.remaining == b.remaining == Fraction(3, 4)


def test_parts_of_one_partition_cost_what_the_dearest_costs() -> None:
    table = fp.protect([{"x": i % 2} for i in range(9)], budget=1, engine="reference")
    parts = table.partition(lambda row: row.x, keys=[0, 1])
    both = "SELECT COUNT(*) AS n FROM a UNION ALL SELECT COUNT(*) FROM b"
    assert fp.sql(f"EXPLAIN {both}", epsilon=2, a=parts[0], b=parts[1]).price == 1
    fp.sql(both, epsilon=2, a=parts[0], b=parts[1])
    assert table.remaining == 0


def test_a_budget_that_was_handed_on_is_debited_once_and_not_by_what_was_tried() -> None:
    table = fp.protect([{"x": i} for i in range(9)], budget=10, engine="reference")
    share = fp.Budget(1)
    own = table.with_budget(share)
    fp.sql("SELECT (SELECT COUNT(*) FROM t) AS a, (SELECT COUNT(*) FROM t WHERE x > 3) AS b",
           epsilon="1/2", t=own)  # fmt: skip
    assert own.remaining == Fraction(1, 2)
    with pytest.raises(fp.BudgetExceeded):
        fp.sql("SELECT (SELECT COUNT(*) FROM t) AS a, (SELECT COUNT(*) FROM t WHERE x > 3) AS b",
               epsilon="3/4", t=own)  # fmt: skip
    assert own.remaining == Fraction(1, 2)
    assert table.remaining == 10 - Fraction(1, 2)


# ── before the first charge ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT /*+ weight(d, 1/1000000000000000000000000000000000000000000) */ COUNT(*) AS n, "
        "COUNT(DISTINCT city) AS d FROM people",
        "SELECT /*+ weight(m, 1/1000000000000000000000000000000000000000000) */ COUNT(*) AS n FROM people "
        "UNION ALL SELECT COUNT(DISTINCT city) AS m FROM people",
        "SELECT SUM(income - (SELECT AVG(age) FROM people)) FROM people",
        "SELECT COUNT(*) FROM people WHERE age = (SELECT COUNT(*) FROM people) GROUP BY age",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM people) "
        "UNION ALL SELECT SUM(pid) FROM people",
    ],
)
def test_what_is_refused_in_a_later_query_is_refused_before_the_first(statement: str) -> None:
    """Embedded, the first query was charged, and then the second was refused."""
    town = protected(budget=10, engine="reference")
    with pytest.raises(fp.ProgramError):
        fp.sql(statement, epsilon=1, **town)
    assert town["people"].remaining == 10


def test_a_budget_too_small_for_all_of_it_refuses_all_of_it() -> None:
    town = protected(budget=1, engine="reference")
    for statement in (
        ABOVE,
        "SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM visits",
        "SELECT (SELECT COUNT(*) FROM people) + (SELECT COUNT(*) FROM visits) AS n",
    ):
        with pytest.raises(fp.BudgetExceeded):
            fp.sql(statement, epsilon="3/2", **town)
        assert town["people"].remaining == 1


def test_nothing_is_asked_by_explain_or_on_paper(
    town: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = ABOVE.replace("AVG(age)", "COUNT(*)")
    asked: list[object] = []
    act = ProtectedSystem.act

    def noted(self: ProtectedSystem, action: Any, **more: Any) -> Any:
        asked.append(action) if isinstance(action, Query) else None
        return act(self, action, **more)

    monkeypatch.setattr(ProtectedSystem, "act", noted)
    explained(counts, town)
    assert asked == []
    fp.sql(counts, epsilon=1, **town)
    assert len(asked) == 2


# ── a value that nothing is concluded from ───────────────────────────────────────────


@given(st.one_of(st.integers(), st.floats(), st.none()), st.sampled_from([Type.INT64, Type.FLOAT64]))
def test_an_opaque_value_is_the_value_and_bounds_nothing(value: Any, type_: Type) -> None:
    tree = opaque(value, type_)
    assert is_opaque(tree)
    assert evaluate(tree, {}) == typed(value, type_).value
    assert bounds_of(tree, {}) is finite(tree, {}) is None
    assert not is_opaque(Literal.of(3))


def test_which_statements_are_accepted_does_not_depend_on_a_value(town: dict[str, Any]) -> None:
    """The plan with any value is the plan that was explained, but for the value."""
    from fpinq.sql.front import planned

    statement = (
        "SELECT city, age > (SELECT COUNT(*) FROM people) AS old, COUNT(*) AS n FROM people "
        "WHERE age <> (SELECT AVG(age) FROM people) GROUP BY city, 2"
    )
    first = planned(statement, town)
    for value in (None, 0, -(10**40), 10**40, float("inf"), float("nan"), 1e-300):
        again = first.knowing({"scalar 1": value, "scalar 2": value})
        assert again is not first
        assert again.whole.keys == first.whole.keys
        assert [plan.table.schema for plan in again.plans] == [plan.table.schema for plan in first.plans]
        assert again.missing == ()


def test_what_is_computed_of_a_noisy_sub_query_has_its_error(town: dict[str, Any]) -> None:
    """It was taken for a constant: the interval of a difference was that of one of two answers."""
    statement = (
        "SELECT COUNT(*) - (SELECT COUNT(*) FROM visits) AS d, "
        "COUNT(*) / (SELECT COUNT(*) FROM visits) AS q FROM people"
    )
    with without_noise():
        exact = fp.sql(statement, epsilon=CERTAIN, **town)
    held = 0
    for _ in range(200):
        found = fp.sql(statement, epsilon=1, **town)
        low, high = found["d"].interval(0.9)
        held += low <= exact["d"].value <= high
        assert found["q"].interval(0.9) is None
    assert held >= 165  # of 200, 180 are promised
    alone = fp.sql("SELECT (SELECT COUNT(*) FROM people) AS n", epsilon=1, **town)
    assert alone["n"].interval(0.95)[1] > alone["n"].interval(0.95)[0]


def test_a_key_of_most_records_is_a_value(town: dict[str, Any]) -> None:
    statement = (
        "SELECT COUNT(*) AS n FROM people "
        "WHERE city = (SELECT city FROM people GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1)"
    )
    with without_noise():
        most = max(fp.sql("SELECT city, COUNT(*) AS n FROM people GROUP BY city", epsilon=CERTAIN,
                          **town)[city]["n"].value for city in CITIES)  # fmt: skip
        assert fp.sql(statement, epsilon=CERTAIN, **town).value == most


def test_no_row_is_null(town: dict[str, Any]) -> None:
    none = "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT COUNT(*) FROM people HAVING COUNT(*) < 0)"
    with without_noise():
        assert fp.sql(none, epsilon=CERTAIN, **town).value == 0


# ── rows put together ────────────────────────────────────────────────────────────────


@settings(max_examples=300)
@given(
    st.sampled_from(["union", "intersect", "except"]), st.booleans(),
    st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), max_size=6),
)  # fmt: skip
def test_rows_are_put_together_as_bags_and_sets_are(
    operation: str, bag: bool, left: list[int], right: list[int]
) -> None:
    both = Both(operation, bag, None, None, (), (), None, 0)  # type: ignore[arg-type]  # of no SELECTs
    found = Counter(put_together(both, left, right, lambda row: (row,)))
    a, b = Counter(left), Counter(right)
    if bag:
        assert found == {"union": a + b, "intersect": a & b, "except": a - b}[operation]
    else:
        sets = {"union": {*a, *b}, "intersect": {*a} & {*b}, "except": {*a} - {*b}}
        assert found == Counter(sets[operation])


def test_rows_put_together_keep_their_intervals(town: dict[str, Any]) -> None:
    found = fp.sql("SELECT 'people' AS what, COUNT(*) AS n FROM people "
                   "UNION ALL SELECT 'three', 3 + AVG(age) FROM visits "
                   "JOIN people USING (pid) ORDER BY what", epsilon=1, **town)  # fmt: skip
    assert [row["what"] for row in found.values()] == ["people", "three"]
    assert found[0]["n"].interval(0.95) is not None
    assert list(found.to_pandas()["what"]) == ["people", "three"]
    mixed = fp.sql("SELECT COUNT(*) AS n FROM people UNION ALL SELECT gender FROM people GROUP BY gender "
                   "HAVING COUNT(*) > -9999", epsilon=1, **town)  # fmt: skip
    assert [line["n"].value for line in mixed.values()][1:] == [0, 1]
    assert mixed[1]["n"].interval(0.95) is None


# ── NOT IN ───────────────────────────────────────────────────────────────────────────


def test_not_in_of_a_private_list_that_may_have_a_null_is_refused(town: dict[str, Any]) -> None:
    """It took no notice of a null, of which SQL says that nothing is not in the list."""
    with pytest.raises(fp.BadSQL, match="IS NOT NULL"):
        fp.sql("SELECT COUNT(*) FROM people WHERE age NOT IN (SELECT units FROM visits)", epsilon=1, **town)
    listed = "SELECT COUNT(*) AS n FROM people WHERE pid NOT IN (SELECT pid FROM visits)"
    said = "SELECT COUNT(*) AS n FROM people WHERE pid NOT IN (SELECT pid FROM visits WHERE pid IS NOT NULL)"
    with without_noise():
        assert fp.sql(listed, epsilon=CERTAIN, **town).value == fp.sql(said, epsilon=CERTAIN, **town).value
