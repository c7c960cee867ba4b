"""Several queries at once: one action, one charge; what comes from one measurement, and how far it is off."""

import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import fpinq as fp
from client.small_data import PEOPLE, SURE
from fpinq.client.several import Several
from fpinq.client.subjects import Subject
from fpinq.engines import reference
from fpinq.engines.reference import Relation
from fpinq.model import actions
from fpinq.model import queries as primitives
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import Epsilon
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.queries import shares, simple
from fpinq.model.transformations import Partitioning
from fpinq.runtime import ProtectedSystem, ReferenceEngine
from fpinq.runtime.mechanisms import draw, together

AGES, INCOMES = (0, 100), (0, 5_000)
SCHEMA = Schema.of({"age": Type.INT64, "hours": Type.INT64, "rate": Type.FLOAT64})
HALF = Fraction(1, 2)


def asked(query: Several, epsilon: Fraction = Fraction(1)) -> primitives.Several:
    primitive = query.prepare(Subject(SCHEMA), Epsilon(epsilon)).primitive
    assert isinstance(primitive, primitives.Several)
    return primitive


def answers(query: Several, table: Relation, epsilon: Fraction) -> Callable[[], Any]:
    """Ask again and again, of what is measured once."""
    prepared = query.prepare(Subject(SCHEMA), Epsilon(epsilon))
    parts = [
        (one, reference.measure(table, None, [one.statistic])[0], Epsilon(epsilon * share))
        for one, share in zip(simple(prepared.primitive), shares(prepared.primitive), strict=True)
    ]
    return lambda: prepared.read(together(prepared.primitive, [draw(*part) for part in parts]), Fraction(0))


# ── asking ───────────────────────────────────────────────────────────────────────────

EVERY = fp.several(
    n=fp.count(),
    age=fp.average("age", bounds=AGES),
    total=fp.sum("age", bounds=AGES),
    income=fp.average("income", bounds=INCOMES),
    spread=fp.variance("age", bounds=AGES),
    middle=fp.median("age", bounds=AGES),
    three=fp.quantiles([0.2, 0.8], "age", bounds=AGES),
)
FOUND = {"n": 6, "age": 35, "total": 210, "income": 1760.15, "spread": 875 / 3, "middle": 30}


def test_every_query_is_answered_by_its_name(people: fp.Table) -> None:
    found = people.query(SURE, EVERY)
    assert list(found) == [*FOUND, "three"]
    for name, value in FOUND.items():
        assert found[name].value == pytest.approx(value, abs=1e-4) or name == "middle"
    assert 30 <= found["middle"].value <= 40
    assert found.n.value == found["n"].value == 6
    assert found["three"].values_only == {0.2: 20, 0.8: 50}
    with pytest.raises(AttributeError, match="no query is named 'ages'"):
        _ = found.ages


def test_a_count_counts_records_without_a_value_wherever_it_comes_from(people: fp.Table) -> None:
    income = fp.average("income", bounds=INCOMES)
    for query in (
        fp.several(n=fp.count(), income=income),
        fp.several(n=fp.count(), income=income, spread=fp.variance("income", bounds=INCOMES)),
        fp.several(n=fp.count(), income=income, age=fp.average("age", bounds=AGES)),
    ):
        found = people.query(SURE, query)
        assert found["n"].value == 6
        assert found["income"].value == pytest.approx(1760.15, abs=1e-3)


def test_each_part_is_asked_several(people: fp.Table) -> None:
    query = fp.several(n=fp.count(), age=fp.average("age", bounds=AGES))
    found = people.query(SURE, query, by="gender", keys=[0, 1])
    assert {key: found[key]["n"].value for key in found} == {0: 3, 1: 3}
    assert found[0]["age"].value == pytest.approx(30, abs=1e-4)
    both = people.query(SURE, query, by=["city", "gender"], keys=[("Ulm", 0), ("Bonn", 1), (None, 1)])
    assert [one["age"].value for one in both.values()] == pytest.approx([10, 40, 60], abs=1e-4)
    many = people.query(SURE, query, by="age", keys=range(100))
    assert [key for key in many if many[key]["n"].value] == [10, 20, 30, 40, 50, 60]


def test_parts_may_be_asked_different_numbers_of_queries(people: fp.Table) -> None:
    two = fp.several(n=fp.count(), middle=fp.median("age", bounds=AGES))
    three = fp.several(a=fp.count(), b=fp.sum("id", bounds=(0, 9)), c=fp.average("age", bounds=AGES))
    found = people.query(SURE, {0: two, 1: fp.count(), 2: three}, by="gender")
    assert (found[0]["n"].value, found[0]["middle"].value) == (3, 30)
    assert found[1].value == 3
    assert (found[2]["a"].value, found[2]["b"].value) == (0, 0)
    assert "middle" in str(found)


def test_the_answers_are_a_table_with_a_column_for_each_name(people: fp.Table) -> None:
    query = fp.several(n=fp.count(), age=fp.average("age", bounds=AGES))
    found = people.query(SURE, query, by=["city", "gender"], keys=[("Ulm", 0), ("Bonn", 1)])
    header, *rows, split = str(found).splitlines()
    assert header.split() == ["city", "gender", "n", "age"]
    assert [row.split()[:3] for row in rows] == [["Ulm", "0", "1"], ["Bonn", "1", "1"]]
    assert split == "ε = 1000000000: 1000000000 for n and age together"
    assert list(found.to_dict()) == [
        "city", "gender",
        "n", "n_low", "n_high", "n_standard_error",
        "age", "age_low", "age_high", "age_standard_error",
    ]  # fmt: skip
    alone = people.query(SURE, query)
    assert str(alone).splitlines()[0].split() == ["n", "6", "±", "0"]
    assert alone.to_dict()["n"] == [6]
    assert "<th>age</th>" in found._repr_html_()


def test_a_function_is_called_once_however_many_use_what_it_gives(people: fp.Table) -> None:
    called: list[object] = []

    def age(x: Any) -> Any:
        called.append(x)
        return x.age

    people.query(SURE, fp.several(n=fp.count(), age=fp.average(age, bounds=AGES)))
    assert len(called) == 1
    assert people.history[-1]["asked"] == "n, age"


def test_a_dict_of_queries_without_parts_is_told_what_several_are(people: fp.Table) -> None:
    with pytest.raises(fp.BadQuery, match=r"fp\.several\(n=fp\.count\(\)"):
        people.query(SURE, {"n": fp.count()})  # type: ignore[call-overload]


# ── one charge ───────────────────────────────────────────────────────────────────────


def test_several_queries_are_one_action_and_cost_their_ε_once(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = fp.protect(PEOPLE, budget=1, engine=engine)
    acted: list[actions.Action] = []
    act = ProtectedSystem.act

    def noting(self: ProtectedSystem, action: actions.Action, **others: Any) -> Any:
        acted.append(action)
        return act(self, action, **others)

    monkeypatch.setattr(ProtectedSystem, "act", noting)
    found = table.query(HALF, EVERY)
    assert [type(action) for action in acted] == [actions.Query]
    assert (found.charged, found.epsilon, table.remaining) == (HALF, HALF, HALF)
    parts = table.query(HALF, EVERY, by="gender", keys=[0, 1])
    assert (parts.charged, table.remaining) == (HALF, 0)


def test_all_of_it_is_refused_if_the_whole_does_not_fit(engine: Any) -> None:
    table = fp.protect(PEOPLE, budget=1, engine=engine)
    for by in ({}, {"by": "gender", "keys": [0, 1]}):
        with pytest.raises(fp.BudgetExceeded):
            table.query("1.001", EVERY, **by)
    assert table.remaining == 1
    share = fp.Budget(HALF)
    with pytest.raises(fp.BudgetExceeded):
        table.with_budget(share).query("0.6", EVERY)
    assert (table.remaining, share.remaining) == (1, HALF)


# ── what is shared ───────────────────────────────────────────────────────────────────

AGE, HOURS = fp.average("age", bounds=AGES), fp.average("hours", bounds=(0, 80))
SHARED: list[tuple[Several, list[tuple[type, set[str], Fraction]]]] = [
    (fp.several(n=fp.count(), age=AGE), [(primitives.Summary, {"n", "age"}, Fraction(1))]),
    (
        fp.several(n=fp.count(), age=AGE, total=fp.sum("age", bounds=AGES), weights={"n": 3}),
        [(primitives.Summary, {"n", "age", "total"}, Fraction(1))],
    ),
    (
        fp.several(age=AGE, total=fp.sum("age", bounds=AGES)),
        [(primitives.Moments, {"age", "total"}, Fraction(1))],
    ),
    (
        fp.several(age=AGE, total=fp.sum("age", bounds=(0, 99))),
        [(primitives.Moments, {"age"}, HALF), (primitives.Sum, {"total"}, HALF)],
    ),
    (
        fp.several(n=fp.count(), age=AGE, hours=HOURS, weights={"hours": 2}),
        [
            (primitives.Count, {"n"}, Fraction(1, 4)),
            (primitives.Offset, {"age"}, Fraction(1, 4)),
            (primitives.Offset, {"hours"}, HALF),
        ],
    ),
    (
        fp.several(n=fp.count(), age=AGE, sd=fp.standard_deviation("age", bounds=AGES)),
        [(primitives.Summary, {"n", "age", "sd"}, Fraction(1))],
    ),
    (
        fp.several(n=fp.count(), m=fp.count(), middle=fp.median("age", bounds=AGES)),
        [(primitives.Count, {"n", "m"}, Fraction(2, 3)), (primitives.Rank, {"middle"}, Fraction(1, 3))],
    ),
    (
        fp.several(n=fp.count(), nothing=fp.average("age", bounds=(3, 3))),
        [(primitives.Count, {"n"}, HALF), (primitives.Moments, {"nothing"}, HALF)],
    ),
]


@pytest.mark.parametrize("number", range(len(SHARED)))
def test_what_can_come_from_one_measurement_does_at_the_shares_of_all(number: int) -> None:
    query, expected = SHARED[number]
    primitive = asked(query)
    split = query.split(Subject(SCHEMA), Epsilon(Fraction(1)))
    found = [
        (type(one), set(names), share) for one, (names, share) in zip(primitive.of, split.parts, strict=True)
    ]
    assert found == expected
    assert primitive.shares == tuple(share for _, _, share in expected)


def test_the_split_is_shown() -> None:
    query = fp.several(n=fp.count(), age=AGE, hours=HOURS, weights={"hours": 2})
    split = query.split(Subject(SCHEMA), Epsilon(HALF))
    assert str(split) == "ε = 0.5: 0.125 for n, 0.125 for age, 0.25 for hours"
    assert split.of("hours") == Fraction(1, 4)


@pytest.mark.parametrize(
    "weights", [{"b": 3}, {"a": 1, "b": 3}, {"a": "1/3"}, {"b": 3.0}, {"a": Fraction(1, 3)}]
)
def test_weights_are_proportions(weights: dict[str, Any]) -> None:
    weights = {name: Fraction(w) if isinstance(w, str) else w for name, w in weights.items()}
    query = fp.several(a=fp.median("age", bounds=AGES), b=fp.median("hours", bounds=AGES), weights=weights)
    assert asked(query).weights == (1, 3)


# ── how far it is off ────────────────────────────────────────────────────────────────


def bag(n: int, missing: int) -> Relation:
    rows = [(20 + i % 50, i % 60, (i % 97) / 3) for i in range(n)]
    return Relation(SCHEMA, (*rows, *[(None, 1, None)] * missing))


RATE = fp.average("rate", bounds=(0, 100))
NOISY: dict[str, tuple[Several, list[str]]] = {
    "a summary": (fp.several(n=fp.count(), age=AGE, total=fp.sum("age", bounds=AGES)), ["n", "age", "total"]),
    "of floats": (
        fp.several(n=fp.count(), rate=RATE, total=fp.sum("rate", bounds=(0, 100))),
        ["rate", "total"],
    ),
    "of degree 2": (fp.several(n=fp.count(), age=AGE, v=fp.variance("age", bounds=AGES)), ["n", "age", "v"]),
    "beside a count": (
        fp.several(n=fp.count(), age=AGE, total=fp.sum("age", bounds=AGES), rate=RATE),
        ["n", "age", "total", "rate"],
    ),
    "without a count": (fp.several(age=AGE, total=fp.sum("age", bounds=AGES), hours=HOURS), ["age", "total"]),
}


@pytest.mark.parametrize("name", NOISY)
def test_errors_and_intervals_are_those_of_the_noise(name: str) -> None:
    query, names = NOISY[name]
    table = bag(900, 100)
    ask, sure = answers(query, table, Fraction(1, 2)), answers(query, table, Fraction(10**6))()
    drawn = [ask() for _ in range(2000)]  # of the RMSE of Laplace noise that is ± 2.5 %
    for one in names:
        truth = sure[one].value
        errors = [answer[one].value - truth for answer in drawn]
        said = statistics.mean(answer[one].standard_error for answer in drawn)
        rmse = math.sqrt(statistics.fmean(error * error for error in errors))
        assert 0.85 * said < rmse < 1.15 * said, one
        assert abs(statistics.fmean(errors)) < 4 * said / math.sqrt(len(errors)), one
        covered = sum(low <= truth <= high for low, high in (a[one].interval(0.9) for a in drawn))
        assert 0.86 < covered / len(drawn) < 0.95, one


def errors_of(query: fp.Query, epsilon: Fraction, table: Relation, name: str | None = None) -> float:
    asking = answers(query if isinstance(query, Several) else fp.several(it=query), table, epsilon)
    return statistics.fmean(asking()[name or "it"].standard_error for _ in range(30))


def test_what_is_shared_is_better_than_each_at_its_own_share() -> None:
    table, third = bag(1_000, 0), Fraction(1, 3)
    all_three = fp.several(n=fp.count(), age=AGE, total=fp.sum("age", bounds=AGES))
    for name, alone in {"n": fp.count(), "age": AGE, "total": fp.sum("age", bounds=AGES)}.items():
        assert errors_of(all_three, Fraction(1), table, name) < 0.6 * errors_of(alone, third, table)
    one_count = fp.several(n=fp.count(), age=AGE, hours=HOURS)
    for name, alone in {"age": AGE, "hours": HOURS}.items():
        assert errors_of(one_count, Fraction(1), table, name) < 0.8 * errors_of(alone, third, table)
    assert errors_of(one_count, Fraction(1), table, "n") == pytest.approx(errors_of(fp.count(), third, table))


@pytest.mark.parametrize("name", NOISY)
def test_the_error_is_known_before(people: fp.Table, name: str) -> None:
    query, names = NOISY[name]
    table = bag(900, 0)
    expected = query.expected(Subject(SCHEMA), Epsilon(HALF))
    assert list(expected) == list(query.queries)
    for one in names:
        share, expect = expected[one]
        said = expect(900).uncertainty
        assert said is not None
        found = answers(query, table, HALF)()[one]
        assert found.epsilon == share
        if one in ("n", "total"):
            assert said.standard_error() == pytest.approx(found.standard_error)
        else:
            assert said.standard_error() >= 0.99 * found.standard_error


def test_planning_is_by_name_and_free(engine: Any) -> None:
    table = fp.protect(PEOPLE, budget=1, engine=engine)
    query = fp.several(n=fp.count(), age=fp.average("age", bounds=AGES), weights={"age": 3})
    expected = table.expected_error(query, 0.1, size=1_000)
    assert list(expected) == ["n", "age"]
    assert expected["n"].standard_error == pytest.approx(math.sqrt(6) * 10)
    assert expected.split.of("age") == Fraction(1, 10)
    assert str(expected).splitlines()[-1] == "ε = 0.1: 0.1 for n and age together"
    epsilon = table.epsilon_for(query, error={"n": 10, "age": 1}, confidence=0.95, size=1_000)
    planned = table.expected_error(query, epsilon, size=1_000)
    assert planned["n"].half_width(0.95) <= 10
    assert planned["age"].half_width(0.95) <= 1
    for wrong in (10, {}, {"ages": 1}):
        with pytest.raises(fp.BadQuery, match="say the error by name"):
            table.epsilon_for(query, error=wrong)
    with pytest.raises(fp.BadQuery, match=r"ask table\.epsilon_for"):
        fp.epsilon_for(query, error=1)
    assert table.remaining == 1


# ── bad input ────────────────────────────────────────────────────────────────────────

BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: fp.several(), "needs queries by name"),
    (lambda: fp.several(n=1), "'n' needs an fp query"),
    (lambda: fp.several({1: fp.count()}), "1 needs an fp query"),
    (lambda: fp.several(n=fp.count(), weights={"m": 1}), "no query is named 'm'"),
    (lambda: fp.several(age=fp.count(), weights={"agee": 1}), "did you mean 'age'?"),
    (lambda: fp.several(n=fp.count(), weights={"n": 0}), "must be a positive number"),
    (lambda: fp.several(n=fp.count(), weights={"n": -1}), "must be a positive number"),
    (lambda: fp.several(n=fp.count(), weights={"n": float("nan")}), "must be a positive number"),
    (lambda: fp.several(n=fp.count(), weights={"n": math.inf}), "must be a positive number"),
    (lambda: fp.several(n=fp.count(), weights={"n": "many"}), "must be a positive number"),
    (lambda: fp.several(n=fp.count(), weights={"n": True}), "must be a positive number"),
    (lambda: fp.several(n=fp.count(), weights=[1]), "weights are a dict"),
    (lambda: fp.several(a=fp.count(), b=fp.count(), weights={"a": 10**30}), "too far apart"),
    (lambda: fp.several(n=fp.several(m=fp.count())), "side by side"),
    (lambda: fp.several({f"q{i}": fp.count() for i in range(101)}), "at most 100 queries at once, not 101"),
    (lambda: fp.several(n=fp.count(), d=fp.distinct_count("age")), "d: this is asked of a table"),
    (lambda: fp.several(n=fp.count(), age=fp.average("age")), "say the bounds of age"),
    (lambda: fp.several(n=fp.count(), age=fp.average("aeg", bounds=AGES)), "did you mean 'age'?"),
    (lambda: fp.several(n=fp.count(), city=fp.average("city", bounds=AGES)), "city"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_makes_no_sense_says_why_and_costs_nothing(number: int) -> None:
    make, says = BAD[number]
    table = fp.protect(PEOPLE, budget=1, engine="reference")
    for by in ({}, {"by": "gender", "keys": [0, 1]}):
        with pytest.raises(fp.ProgramError) as error:
            table.query(1, make(), **by)
        assert says in str(error.value)
    assert table.remaining == 1


def test_a_part_with_fewer_queries_is_not_drawn_for_again() -> None:
    """It was drawn for as often as the part with the most, for one ε."""
    drawn: list[object] = []

    def seven(query: object, *given: object) -> tuple[int, ...]:
        drawn.append(query)
        return (7,)

    system = ProtectedSystem(ReferenceEngine(), mechanism=seven)
    system.protect("r", system.engine.add_root("r", [{"a": 1}, {"a": 2}, {"a": 2}]), Fraction(10))
    five = primitives.Several((primitives.Count(),) * 5, (1,) * 5)
    by = Partitioning(Column("a"), (1, 2))
    told = system.act(actions.Query("r", Fraction(1), (five, primitives.Sum(Clamp(Column("a"), 0, 9))), by))
    assert told.released == ((7,) * 5, (7,))  # type: ignore[union-attr]
    assert len(drawn) == 6


def test_answers_by_part_know_how_epsilon_was_split(people: fp.Table) -> None:
    asked = fp.several(h=fp.histogram("age", AGES, 2), n=fp.count(), age=fp.median("age", AGES))
    by_gender = people.query(1, asked, by="gender", keys=[0, 1])
    assert by_gender.split is by_gender[0].split
    assert str(by_gender.split) == "ε = 1: 0.333333… for h, 0.333333… for n, 0.333333… for age"  # as asked
    assert str(by_gender.split) in by_gender._repr_html_()
    averages = people.query(1, fp.average("age", AGES), by="gender", keys=[0, 1])
    assert [what for what, _ in averages.split] == ["first look", "the rest"]
    assert people.query(1, fp.count(), by="gender", keys=[0, 1]).split == ()


def test_queries_without_names_are_told_to_have_them() -> None:
    for nameless in (fp.count(), [fp.count()], "n"):
        with pytest.raises(fp.BadQuery, match="by name"):
            fp.several(nameless)  # type: ignore[arg-type]
