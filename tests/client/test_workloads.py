"""Many queries at once, marginals that agree, and which notion is better for what."""

import math
from itertools import product
from random import Random
from typing import Any

import pytest

import fpinq as fp

RANDOM = Random(3)
ROWS = [
    {"a": RANDOM.randrange(3), "b": RANDOM.choice("xy"), "c": RANDOM.randrange(4), "n": RANDOM.random()}
    for _ in range(2_000)
]
ROWS += [{"a": 9, "b": "x", "c": 0, "n": 0.5}, {"a": None, "b": "y", "c": 1, "n": 0.5}]  # of no cell with a
SCHEMA = {"a": "int64", "b": "string", "c": "int64", "n": "float64"}
KEYS: dict[str, list[object]] = {"a": [0, 1, 2], "b": ["x", "y"], "c": [0, 1, 2, 3]}
LARGE = fp.rho(10**6)  # hardly any noise


def protected(budget: object = fp.rho(10**9)) -> fp.Table:
    columns = {name: fp.Column(keys=keys) for name, keys in KEYS.items()}
    return fp.protect(ROWS, budget=budget, schema=SCHEMA, columns=columns)


def exact(*columns: str) -> dict[Any, int]:
    cells = product(*(KEYS[name] for name in columns))
    rows = [tuple(row[name] for name in columns) for row in ROWS]
    return {cell if len(cell) > 1 else cell[0]: rows.count(cell) for cell in cells}


@pytest.mark.parametrize("columns", [("b",), ("a", "b"), ("c", "a"), ("a", "b", "c")])
def test_a_marginal_counts_each_combination_and_nothing_else(columns: tuple[str, ...]) -> None:
    for keys in (None, [KEYS[name] for name in columns]):
        found = protected().query(LARGE, fp.marginal(*columns, keys=keys))
        assert {key: answer.value for key, answer in found.items()} == exact(*columns)
        assert found.key_columns == columns


@pytest.mark.parametrize("at", [fp.rho("1/100"), 0.5])
def test_a_workload_is_one_charge_and_each_query_has_its_share(at: Any) -> None:
    table = protected(fp.rho(1) if isinstance(at, type(LARGE)) else 1)
    queries = [*fp.marginals(["a", "b", "c"]), fp.count(), fp.median("c", bounds=(0, 3))]
    before, price = table.remaining, table.price(at)
    answers = table.query(at, fp.workload(queries))
    assert before - table.remaining == price == answers.charged  # type: ignore[operator]
    share = fp.rho("1/500") if isinstance(at, type(LARGE)) else 0.1
    alone = table.expected_error(fp.count(), share).standard_error
    assert {one.standard_error for one in answers[0].values()} == {alone}
    assert answers[3].standard_error == alone
    assert answers[4].value in range(4)
    assert len(answers) == 5
    assert "marginal of a, b" in repr(answers)


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_consistent_marginals_agree_on_what_they_share(ways: int) -> None:
    answers = protected().query(
        fp.rho("1/10"), fp.workload([*fp.marginals(KEYS, ways), fp.marginal("c", "b")])
    )
    tables = answers.consistent()
    for (of, one), (others, other) in product(tables.items(), repeat=2):
        shared = sorted(set(of) & set(others))
        assert summed(of, one, shared) == pytest.approx(summed(others, other, shared), abs=1e-6)


def summed(of: tuple[str, ...], table: dict[Any, float], shared: list[str]) -> dict[Any, float]:
    found: dict[Any, float] = {}
    for key, value in table.items():
        cell = key if len(of) > 1 else (key,)
        kept = tuple(cell[of.index(name)] for name in shared)
        found[kept] = found.get(kept, 0.0) + value
    return found


def test_to_agree_lowers_the_error() -> None:
    table, query = protected(), fp.workload(fp.marginals(["a", "b", "c"]))
    before = after = 0.0
    for _ in range(60):
        answers = table.query(fp.rho("1/10"), query)
        tables = answers.consistent()
        for i, of in enumerate(tables):
            for key, count in exact(*of).items():
                if "a" not in of:  # two records have no value of a: those with it say less
                    continue
                before += (answers[i][key].value - count) ** 2
                after += (tables[of][key] - count) ** 2
    assert after < 0.9 * before


def test_only_marginals_agree() -> None:
    with pytest.raises(fp.BadQuery, match="only marginals"):
        protected().query(LARGE, fp.workload([fp.count()])).consistent()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: fp.marginal(),
        lambda: fp.marginal("a", "a"),
        lambda: fp.marginal("a", keys=[[1], [2]]),
        lambda: fp.marginals(["a", "b"], 3),
        lambda: fp.marginals(["a", "b"], True),
        lambda: fp.workload([]),
        lambda: fp.workload("count"),
        lambda: fp.workload([1]),  # type: ignore[list-item]
        lambda: fp.workload([fp.count()] * 101),
        lambda: fp.workload([fp.workload([fp.count()])]),
        lambda: fp.workload([fp.several(n=fp.count())]),
        lambda: protected().query(1, fp.marginal("n")),
        lambda: protected().query(1, fp.marginal("a", keys=[[1, 1]])),
        lambda: protected().query(1, fp.marginal("a", keys=[[None]])),
        lambda: protected().query(1, fp.marginal("a", keys=[range(200_000)])),
        lambda: fp.compare("count"),  # type: ignore[arg-type]
        lambda: fp.compare(fp.count(), times=0),
        lambda: fp.compare(fp.average("a", bounds=(0, 1))).better,
    ],
)
def test_what_is_no_workload_is_refused(wrong: Any) -> None:
    with pytest.raises(fp.BadQuery):
        wrong()


@pytest.mark.parametrize("at", [fp.rho("1/100"), 0.5])
def test_a_distinct_count_in_a_workload_counted_all_records(at: Any) -> None:
    table = protected(fp.rho(1) if isinstance(at, type(LARGE)) else 1)
    with pytest.raises(fp.BadQuery, match=r"distinct count of a: .* ask it by itself"):
        table.query(at, fp.workload([fp.count(), fp.distinct_count("a")]))
    with pytest.raises(fp.BadQuery, match="ask it by itself"):
        table.query(at, fp.workload([fp.distinct_count("c")]), by="b")
    assert table.remaining == 1


def test_the_error_of_a_workload_is_known_before_paying() -> None:
    table = protected()
    marginals = fp.workload(fp.marginals(["a", "b", "c"]))
    error = table.expected_error(marginals, fp.rho("3/200"))
    assert error.standard_error == pytest.approx(10)
    assert "3 queries" in error.note
    mixed = fp.workload([fp.count(), fp.median("c", bounds=(0, 3))])
    assert table.expected_error(mixed, fp.rho("3/200")).standard_error is None


def test_which_notion_is_better_depends_on_how_often_a_record_is_counted() -> None:
    """About 17 times at (1, 10⁻⁹)."""
    assert fp.compare(fp.count(), times=10).better == "ε"
    assert fp.compare(fp.count(), times=17).ratio == pytest.approx(1, abs=0.03)
    many = fp.compare(fp.count(), times=100)
    assert many.better == "ρ"
    assert 2.4 < many.ratio < 2.5
    assert "ρ is better, 2.4" in repr(many)
    assert fp.compare(fp.workload(fp.marginals(["a", "b", "c"])), table=protected()).better == "ε"
    assert fp.compare(fp.average("a", bounds=(0, 9)), times=100, size=10**6).better == "ρ"


def test_several_at_rho_are_by_name_at_their_shares() -> None:
    asked = fp.several(
        n=fp.count(),
        age=fp.average("n", bounds=(0, 1)),
        middle=fp.median("c", bounds=(0, 3)),
        weights={"n": 2},
    )
    answers = protected().query(fp.rho("1/10"), asked)
    assert answers.n.epsilon == fp.rho("1/20")
    assert answers.age.epsilon == fp.rho("1/40")
    assert answers.middle.value in range(4)
    assert str(answers.split) == "ρ = 0.1: 0.05 for n, 0.025 for age, 0.025 for middle"
    assert math.isclose(answers.n.standard_error, math.sqrt(10), rel_tol=1e-6)
