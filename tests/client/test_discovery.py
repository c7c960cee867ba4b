"""Keys that nobody listed, as a program asks for them."""

import datetime
import math
from contextlib import closing
from fractions import Fraction
from typing import Any

import pytest

import fpinq as fp
from fpinq.noise import DiscreteLaplace, StabilityHistogram

ENGINES = ["duckdb", "reference"]
CITIES = ["Oslo"] * 400 + ["Łódź"] * 300 + ["Rome"] * 2 + [None] * 50
ROWS = [
    {
        "id": i // 4,
        "city": city,
        "n": i % 3,
        "day": datetime.date(2024, 1, 1 + i % 2),
        "rich": i % 2 == 0,
        "cost": i / 2,
    }
    for i, city in enumerate(CITIES)
]
KEYS = {"epsilon": 10, "delta": "1e-6", "keys_delta": "1e-6"}


def pure(engine: str, budget: object = 100) -> Any:
    return fp.protect(ROWS, budget=budget, engine=engine)


def with_delta(engine: str, **unit: Any) -> Any:
    return fp.protect(ROWS, budget=fp.approximate(**KEYS), engine=engine, **unit)


def near(answers: Any, counts: dict[Any, int], by: int = 60) -> None:
    assert list(answers) == sorted(counts)
    for key, count in counts.items():
        assert abs(answers[key].value - count) < by


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# By default one release in a thousand shows a key that nobody has, and a test of all that are shown fails.
RARELY = "1e-9"


# ── without δ: a domain ──────────────────────────────────────────────────────────────


def test_a_histogram_over_all_texts_of_32_bytes_shows_those_that_enough_records_have(engine: str) -> None:
    table = pure(engine)
    found = table.noisy_histogram(1, "city", keys=fp.discover(within=fp.domain.strings(32), expected=RARELY))
    near(found, {"Oslo": 400, "Łódź": 300})
    assert found.expected_false == Fraction(1, 10**9)
    assert found.threshold == 180
    assert found.delta == found.charged_delta == 0
    assert (found.charged, table.remaining) == (1, 99)
    assert found["Oslo"].approximate
    low, high = found["Oslo"].interval()
    assert low < found["Oslo"].value < high
    assert found["Oslo"].standard_error == pytest.approx(1.357, abs=0.01)
    assert not found.is_cut


def test_every_kind_of_key_can_be_found(engine: str) -> None:
    table, domain = pure(engine), fp.domain
    near(table.noisy_histogram(1, "n", keys=domain.integers(-(10**9), 10**9)), {0: 251, 1: 251, 2: 250})
    days = {datetime.date(2024, 1, 1): 376, datetime.date(2024, 1, 2): 376}
    near(table.noisy_histogram(1, "day", keys=domain.dates("1900-01-01", datetime.date(2100, 1, 1))), days)
    near(table.noisy_histogram(1, "rich", keys=domain.booleans()), {False: 376, True: 376})
    both = domain.product(domain.strings(8), domain.booleans())
    found = table.noisy_histogram(1, ["city", "rich"], keys=both)
    near(found, {("Oslo", False): 200, ("Oslo", True): 200, ("Łódź", False): 150, ("Łódź", True): 150})
    assert found.key_columns == ("city", "rich")
    near(
        table.query(1, fp.count(), by=lambda x: x.n * 2, keys=domain.integers(0, 99)),
        {0: 251, 2: 251, 4: 250},
    )


def test_how_many_keys_nobody_has_are_expected_can_be_said(engine: str) -> None:
    domain = fp.domain.integers(10**6, 10**12)
    found = pure(engine).noisy_histogram(1, "n", keys=fp.discover(within=domain, expected=200))
    assert 30 < len(found) < 200  # at most so many: thresholds are whole numbers
    assert found.expected_false == 200
    assert all(answer.value >= found.threshold for answer in found.values())


def test_where_no_key_is_found_it_is_said_what_a_count_must_reach(engine: str) -> None:
    table = fp.protect([{"k": "a"}], schema={"k": "string"}, budget=1, engine=engine)
    keys = fp.discover(within=fp.domain.strings(max_bytes=32), expected="1e-12")
    found = table.noisy_histogram(1, "k", keys=keys)
    assert not found
    assert f"reach {found.threshold}; keys that nobody has: at most 1e-12 expected" in str(found)


def test_of_too_many_keys_those_with_the_largest_counts_are_shown(engine: str) -> None:
    how = fp.discover(within=fp.domain.strings(32), at_most=1)
    found = pure(engine).noisy_histogram(5, "city", keys=how)
    assert list(found) == ["Oslo"]
    assert found.is_cut


def test_at_rho_the_noise_is_gaussian(engine: str) -> None:
    table = fp.protect(ROWS, budget=fp.rho(1), engine=engine)
    found = table.noisy_histogram(
        fp.rho("1/2"), "city", keys=fp.discover(within=fp.domain.strings(32), expected=RARELY)
    )
    near(found, {"Oslo": 400, "Łódź": 300})
    assert found["Oslo"].standard_error == pytest.approx(1, abs=0.01)
    assert table.remaining == Fraction(1, 2)


def test_parts_of_keys_that_were_found_are_tables(engine: str) -> None:
    table = pure(engine)
    parts = table.partition("city", keys=fp.discover(1, within=fp.domain.strings(32), expected=RARELY))
    assert list(parts) == ["Oslo", "Łódź"]
    assert table.remaining == 99
    assert abs(parts["Oslo"].noisy_count(1).value - 400) < 60
    assert abs(parts["Łódź"].noisy_count(1).value - 300) < 60
    assert table.remaining == 98
    none = table.where(lambda x: x.n > 99).partition(
        "city", keys=fp.discover(1, within=fp.domain.strings(8), expected=RARELY)
    )
    assert list(none) == []
    assert len(none) == 0


def test_another_query_is_asked_of_the_keys_that_were_found(engine: str) -> None:
    table = pure(engine)
    how = fp.discover(1, within=fp.domain.strings(32), expected=RARELY)
    averages = table.query(2, fp.average("n", bounds=(0, 2)), by="city", keys=how)
    assert list(averages) == ["Oslo", "Łódź"]
    assert table.remaining == 97
    nothing = table.where(lambda x: x.n > 99)
    assert dict(nothing.query(1, fp.average("n", bounds=(0, 2)), by="city", keys=how)) == {}


# ── with δ ───────────────────────────────────────────────────────────────────────────


def test_keys_that_there_are_are_found_with_a_delta_that_is_charged(engine: str) -> None:
    table = with_delta(engine)
    found = table.noisy_histogram(1, "city", keys=fp.discover(delta="1e-9"))
    near(found, {"Oslo": 400, "Łódź": 300})
    assert found.threshold == 22
    assert found.expected_false == 0
    assert (found.delta, found.charged_delta) == (Fraction(1, 10**9), Fraction(1, 10**9))
    assert (table.remaining, table.remaining_delta) == (9, Fraction(999, 10**9))
    parts = table.partition("city", keys=fp.discover(1, "1e-9"))
    assert list(parts) == ["Oslo", "Łódź"]
    assert (table.remaining, table.remaining_delta) == (8, Fraction(998, 10**9))
    near(table.noisy_histogram(1, "city", keys=fp.discover(1, "1e-9")), {"Oslo": 400, "Łódź": 300})
    found = table.noisy_histogram(1, ["city", "n"], keys=fp.discover(delta="1e-9"))
    assert {city for city, _ in found} == {"Oslo", "Łódź"}


def test_texts_are_found_up_to_128_bytes_unless_it_is_said(engine: str) -> None:
    rows = [{"text": "é" * n} for n in (64, 65) for _ in range(300)]
    table = fp.protect(rows, budget=fp.approximate(**KEYS), engine=engine)
    near(table.noisy_histogram(1, "text", keys=fp.discover(delta="1e-9")), {"é" * 64: 300})
    longer = fp.discover(delta="1e-9", within=fp.domain.strings(max_bytes=1024))
    near(table.noisy_histogram(1, "text", keys=longer), {"é" * 64: 300, "é" * 65: 300})


def test_the_root_pays_delta_as_often_as_it_pays_epsilon(engine: str) -> None:
    table = with_delta(engine)
    doubled = table.concat(table)
    found = doubled.noisy_histogram(1, "city", keys=fp.discover(delta="1e-9"))
    assert (found.charged, found.charged_delta) == (2, Fraction(2, 10**9))
    assert found.threshold == 22
    for distance, asked in ((1, table), (2, doubled), (6, doubled.concat(doubled, doubled))):
        found = asked.noisy_histogram("1/10", "city", keys=fp.discover(delta="1e-9"))
        noise = DiscreteLaplace(Fraction(10))
        assert found.threshold == StabilityHistogram(noise, Fraction(1, 10**9), distance).threshold


def test_what_is_left_of_delta_is_not_exceeded(engine: str) -> None:
    table = with_delta(engine)
    with pytest.raises(fp.BudgetExceeded, match="δ for keys") as caught:
        table.noisy_histogram(1, "city", keys=fp.discover(delta="2e-6"))
    assert caught.value.remaining == Fraction(1, 10**6)
    with pytest.raises(fp.BudgetExceeded, match="would cost"):
        table.noisy_histogram(11, "city", keys=fp.discover(delta="1e-9"))
    assert (table.remaining, table.remaining_delta) == (10, Fraction(1, 10**6))


# ── per person ───────────────────────────────────────────────────────────────────────


def test_a_person_counts_in_at_most_so_many_keys_once_each(engine: str) -> None:
    table = with_delta(engine, unit="id", rows_per_unit=4)
    found = table.noisy_histogram(1, "n", keys=fp.discover(delta="1e-9", per_person=1))
    near(found, {0: 188})  # everybody has a 0, and it is the first
    assert (found.charged, found.charged_delta) == (1, Fraction(1, 10**9))
    found = table.where(lambda x: x.n > 0).noisy_histogram(
        1, "n", keys=fp.discover(within=fp.domain.integers(0, 9), per_person=2)
    )
    near(found, {1: 188, 2: 188})
    assert found[1].standard_error == pytest.approx(2.8, abs=0.1)
    assert found.charged == 1


def test_noise_of_k_keys_per_person_grows_with_the_root_of_k_at_rho(engine: str) -> None:
    table = fp.protect(ROWS, budget=fp.rho(1), engine=engine, unit="id", rows_per_unit=4)
    for k in (1, 4):
        how = fp.discover(within=fp.domain.integers(0, 9), per_person=k)
        found = table.noisy_histogram(fp.rho("1/10"), "n", keys=how)
        assert found[0].standard_error == pytest.approx((5 * k) ** 0.5, rel=0.01)
    assert table.remaining == Fraction(8, 10)


# ── mistakes: nothing is charged ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda t: t.noisy_histogram(1, "city", keys=fp.discover(delta="1e-9")), fp.NoDelta),
        (lambda t: t.partition("city", keys=fp.discover(1, "1e-9")), fp.NoDelta),
        (lambda t: t.partition("city", keys=fp.discover(delta="1e-9")), fp.BadPartition),
        (lambda t: t.partition("city", keys=fp.domain.strings(8)), fp.BadPartition),
        (lambda t: t.query(1, fp.average("n"), by="city", keys=fp.domain.strings(8)), fp.BadPartition),
        (lambda t: t.query(1, {"Oslo": fp.count()}, by="city", keys=fp.domain.strings(8)), fp.BadQuery),
        (lambda t: t.noisy_histogram(1, "city", keys=fp.domain.integers(0, 9)), fp.BadQuery),
        (lambda t: t.noisy_histogram(1, "cost", keys=fp.discover(delta="1e-9")), fp.BadPartition),
        (lambda t: t.noisy_histogram(fp.rho("1/9"), "city", keys=fp.domain.strings(8)), fp.NotConcentrated),
        (
            lambda t: t.noisy_histogram(
                1, "city", keys=fp.discover(within=fp.domain.strings(8), per_person=2)
            ),
            fp.BadQuery,
        ),
        (lambda t: fp.discover(1, 0), fp.BadEpsilon),
        (lambda t: fp.discover(1, 1), fp.BadEpsilon),
        (lambda t: fp.discover(1, "-1e-9"), fp.BadEpsilon),
        (lambda t: fp.discover(0, "1e-9"), fp.BadEpsilon),
        (lambda t: fp.discover(1), fp.BadPartition),
        (lambda t: fp.discover(1, within=["a"]), fp.BadPartition),
        (lambda t: fp.discover(1, "1e-9", at_most=0), fp.BadQuery),
        (lambda t: fp.discover(1, "1e-9", per_person=0), fp.BadQuery),
        (lambda t: fp.discover(within=fp.domain.strings(8), expected=0), fp.BadQuery),
        (lambda t: fp.discover(within=fp.domain.strings(8), expected="many"), fp.BadQuery),
        (lambda t: fp.domain.strings(float("inf")), fp.BadPartition),
        (lambda t: fp.domain.strings(10**9), fp.BadPartition),
        (lambda t: fp.domain.integers(0, float("inf")), fp.BadPartition),
        (lambda t: fp.domain.integers(9, 0), fp.BadPartition),
        (lambda t: fp.domain.dates("soon", "later"), fp.BadPartition),
        (lambda t: fp.domain.product(), fp.BadPartition),
        (lambda t: fp.domain.product(fp.domain.strings(1024), fp.domain.strings(1024)), fp.BadPartition),
        (lambda t: fp.approximate(epsilon=fp.rho(1), delta="1e-9", keys_delta="1e-10"), fp.BadEpsilon),
        (lambda t: fp.approximate(fp.approximate(1, "1e-9"), "1e-9", "1e-10"), fp.BadEpsilon),
        (lambda t: fp.approximate(1, "1e-9", "1e-8"), fp.BadEpsilon),
    ],
)
def test_a_mistake_is_a_typed_error_and_nothing_is_charged(ask: Any, error: type[Exception]) -> None:
    table = pure("duckdb", 5)
    with pytest.raises(error):
        ask(table)
    assert table.remaining == 5


def test_a_budget_that_was_handed_on_has_no_delta() -> None:
    table = with_delta("duckdb")
    with pytest.raises(fp.BadQuery, match="handed on"):
        table.with_budget(fp.Budget(1)).noisy_histogram(1, "city", keys=fp.discover(delta="1e-9"))
    assert table.remaining == 10


def test_what_is_visible_of_a_refusal_does_not_depend_on_the_keys() -> None:
    def seen(rows: list[dict[str, Any]]) -> list[str]:
        table = fp.protect(
            rows, budget=fp.approximate(1, "1e-9", "1e-10"), name="data", schema={"city": "string"}
        )
        said = []
        for at, delta in ((fp.rho(1), "1e-12"), (fp.rho("1e-4"), "1e-9"), (fp.rho("1e-4"), "1e-12")):
            try:
                said.append(str(table.noisy_histogram(at, "city", keys=fp.discover(delta=delta)).threshold))
            except fp.BudgetExceeded as error:
                said.append(str(error))
        return [*said, str(table.remaining), str(table.remaining_delta), str(table.history[-1]["charged"])]

    assert seen([{"city": "a"}]) == seen([{"city": f"{i}"} for i in range(500)])


# ── the ledger ───────────────────────────────────────────────────────────────────────


def test_a_ledger_keeps_what_was_found_and_what_it_cost(tmp_path: Any) -> None:
    from fpinq.ledger import open_store
    from fpinq.ledger.verify import verify

    path = tmp_path / "people.ledger"

    def opened() -> Any:
        return fp.protect(ROWS, budget=fp.approximate(**KEYS), ledger=path, name="people")

    table = opened()
    table.noisy_histogram(1, "city", keys=fp.discover(delta="1e-9"))
    table.noisy_histogram(1, ["day", "rich"], keys=fp.discover(delta="1e-9"))
    table.noisy_histogram(1, "city", keys=fp.domain.strings(32))
    table.noisy_histogram(1, "day", keys=fp.domain.dates("2020-01-01", "2030-01-01"))
    again = opened()
    assert (again.remaining, again.remaining_delta) == (6, Fraction(998, 10**9))
    with pytest.raises(fp.BudgetExceeded):
        again.noisy_histogram(1, "city", keys=fp.discover(delta="999e-9"))
    with closing(open_store(path, create=False)) as store:
        report = verify(store)
    assert {name: spent for name, (_, spent) in report.roots.items()} == {"people": 4}


# ── before paying ────────────────────────────────────────────────────────────────────


def test_what_finding_keys_shows_and_costs_is_known_before_and_is_what_happens(engine: str) -> None:
    table = with_delta(engine)
    expected = table.expected_keys("city", fp.discover(1, "1e-9"))
    assert (expected.price, expected.price_delta) == (1, Fraction(1, 10**9))
    assert table.remaining == 10
    found = table.noisy_histogram(1, "city", keys=fp.discover(delta="1e-9"))
    assert (expected.threshold, expected.expected_false) == (found.threshold, 0)
    assert (found.charged, found.charged_delta) == (expected.price, expected.price_delta)
    assert expected.standard_error == found["Oslo"].standard_error
    assert expected.half_width(0.9) == found["Oslo"].interval(0.9)[1] - found["Oslo"].value
    assert "reach 22" in str(expected)
    assert "δ = 1e-09" in str(expected)


def test_how_likely_a_count_is_shown_is_the_tail_of_the_noise() -> None:
    expected = with_delta("reference").expected_keys("city", fp.discover(1, "1e-9"))
    tau = expected.threshold
    assert expected.probability(tau) == pytest.approx(1 / (1 + math.exp(-1)), abs=1e-12)  # P[V ≥ 0]
    assert expected.probability(tau - 1) == pytest.approx(math.exp(-1) / (1 + math.exp(-1)), abs=1e-12)
    assert 0 < expected.probability(1) < 1e-9
    least = expected.sure(0.95)
    assert expected.probability(least) >= 0.95 > expected.probability(least - 1)
    assert expected.probability(least + 1000) == 1
    with pytest.raises(fp.BadQuery):
        expected.probability(0)
    with pytest.raises(fp.BadQuery):
        expected.sure(1)


def test_of_a_domain_it_is_known_how_many_keys_nobody_has_are_expected() -> None:
    table = pure("reference")
    expected = table.expected_keys("city", fp.discover(1, within=fp.domain.strings(32)))
    assert (expected.threshold, expected.expected_false, expected.delta) == (166, Fraction(1, 1000), 0)
    assert (expected.price, expected.price_delta) == (1, 0)
    assert "keys that nobody has: at most 0.001 expected" in str(expected)
    assert table.expected_error(fp.count(), 1, by="city", keys=fp.domain.strings(32)).threshold == 166


def test_a_query_of_keys_that_are_found_is_priced_as_both() -> None:
    table, how = with_delta("reference"), fp.discover(1, "1e-9")
    query = fp.average("n", bounds=(0, 2))
    expected = table.expected_error(query, 2, by="city", keys=how, size=100)
    assert (expected.price, expected.price_delta) == (3, Fraction(1, 10**9))
    assert expected.then.standard_error == table.expected_error(query, 2, size=100).standard_error
    answers = table.query(2, query, by="city", keys=how)
    assert table.remaining == 7
    assert answers.found.threshold == expected.threshold
    assert answers.found.charged_delta == Fraction(1, 10**9)


def test_delta_is_priced_by_the_scaling_factor_and_a_part_pays_what_leads_its_siblings() -> None:
    table = with_delta("reference")
    assert table.price_delta("1e-9") == Fraction(1, 10**9)
    assert table.concat(table).price_delta("1e-9") == Fraction(2, 10**9)
    parts = table.partition("rich", keys=[False, True])
    parts[False].noisy_histogram(1, "city", keys=fp.discover(delta="3e-9"))
    assert parts[True].price_delta("3e-9") == 0
    assert parts[True].price_delta("5e-9") == Fraction(2, 10**9)
    for table in (pure("reference"), pure("reference", fp.rho(1))):
        with pytest.raises(fp.NoDelta):
            table.price_delta("1e-9")


def test_the_epsilon_and_the_rho_for_which_keys_of_so_many_records_show_are_found() -> None:
    table, how = with_delta("reference"), fp.discover(delta="1e-9")
    for at in (
        table.epsilon_for_keys("city", how, count=40),
        table.rho_for_keys("city", how, count=40, confidence=0.95),
    ):
        again = table.concat(table)  # of another scaling factor another threshold
        assert again.epsilon_for_keys("city", how, count=40) >= table.epsilon_for_keys("city", how, count=40)
        if not isinstance(at, Fraction):
            continue
        assert table.expected_keys("city", fp.discover(at, "1e-9")).sure(0.95) <= 40
        assert table.expected_keys("city", fp.discover(at * Fraction(9, 10), "1e-9")).sure(0.95) > 40
    for count in (0, 1.5, "many"):
        with pytest.raises(fp.BadQuery):
            table.epsilon_for_keys("city", how, count=count)


def test_compare_says_for_which_notion_fewer_records_are_enough() -> None:
    table, how = with_delta("reference"), fp.discover(delta="1e-9")
    few = fp.compare(fp.count(), epsilon=1, times=1, table=table, by="city", keys=how)
    many = fp.compare(fp.count(), epsilon=1, times=100, table=table, by="city", keys=how)
    assert (few.better, many.better) == ("ε", "ρ")
    assert many.ratio == many.pure.sure() / many.concentrated.sure() > 1
    with pytest.raises(fp.BadQuery, match="by counting"):
        fp.compare(fp.average("n", bounds=(0, 2)), table=table, by="city", keys=how)


def test_what_is_wrong_with_the_second_query_is_found_before_the_keys_are_paid_for(engine: str) -> None:
    table, how = with_delta(engine), fp.discover(1, "1e-9")
    for query in (fp.average("n"), fp.sum("city", bounds=(0, 1)), fp.quantile(7, "n", bounds=(0, 2))):
        with pytest.raises(fp.ProgramError):
            table.query(1, query, by="city", keys=how)
    with pytest.raises(fp.BudgetExceeded, match="in all"):
        table.query("9.5", fp.average("n", bounds=(0, 2)), by="city", keys=how)
    handed = table.with_budget(fp.Budget(2))
    with pytest.raises(fp.BudgetExceeded, match="in all"):
        handed.query("3/2", fp.count(), by="city", keys=fp.discover(1, within=fp.domain.strings(8)))
    assert (table.remaining, table.remaining_delta) == (10, Fraction(1, 10**6))


def test_how_the_keys_of_parts_were_found_is_in_their_derivation() -> None:
    table = with_delta("reference")
    parts = table.partition("city", keys=fp.discover(1, "1e-9"))
    assert "part city = 'Oslo', found at ε = 1, δ = 1e-09" in str(parts["Oslo"].explain())
    assert "keys of city at δ = 1e-09" in str(table.history)
    within = table.partition("city", keys=fp.discover(1, within=fp.domain.strings(8)))
    assert "part city = 'Oslo', found at ε = 1\n" in str(within["Oslo"].explain()).replace("  ", "\n")
