"""Covariances, correlations and regressions: exact without noise, off by what they say with it."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import fpinq as fp
from client.small_data import PLENTY, SURE
from fpinq.client.crossing import PRODUCT_BITS, crossed
from fpinq.client.queries import Inquiry
from fpinq.client.subjects import Subject
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Schema, Type, columns_of
from fpinq.model.queries import CrossMoments

Data = Mapping[str, Any]
TYPES = {"x": Type.INT64, "y": Type.FLOAT64, "b": Type.BOOL, "z": Type.FLOAT64, "w": Type.FLOAT64}
BOUNDS = {"x": (0, 110), "y": (0.0, 150.0), "z": (0.0, 1.0), "w": (-2.0, 2.0)}
BOTH = (BOUNDS["x"], BOUNDS["y"])


def people(n: int, seed: int = 1) -> Data:
    """Ages about 45, a condition, a share; and what depends on all of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(45, 15, n).clip(0, 110).round()
    b, z, w = (rng.uniform(size=n) < 0.3) * 1.0, rng.uniform(size=n), rng.normal(0, 0.7, n).clip(-2, 2)
    y = (20 + x / 2 + 10 * b - 5 * z + 3 * w + rng.normal(0, 10, n)).clip(0, 150)
    return {"x": x, "y": y, "b": b, "z": z, "w": w}


def least_squares(data: Data, predictors: Sequence[str]) -> list[float]:
    columns = np.column_stack([np.ones(len(data["y"])), *(data[name] for name in predictors)])
    return [float(value) for value in np.linalg.lstsq(columns, data["y"], rcond=None)[0]]


def bounds_of(predictors: Sequence[str]) -> dict[str, tuple[float, float]]:
    return {name: BOUNDS[name] for name in (*predictors, "y") if name in BOUNDS}


# ── without noise ────────────────────────────────────────────────────────────────────


def table(data: Data, engine: str = "duckdb") -> fp.Table:
    read = {"x": int, "b": bool}
    rows = [
        {name: read.get(name, float)(value) for name, value in zip(data, row, strict=True)}
        for row in zip(*data.values(), strict=True)
    ]
    rows += [{**rows[0], name: None} for name in data]  # these lack one of the values
    schema = {name: type_.value for name, type_ in TYPES.items()}
    columns = {name: fp.Column(bounds=bounds) for name, bounds in BOUNDS.items()}
    found: fp.Table = fp.protect(rows, budget=PLENTY, schema=schema, columns=columns, engine=engine)
    return found


@pytest.mark.parametrize("predictors", [["x"], ["b"], ["b", "x"], ["x", "z", "b"], ["w", "x", "z", "b"]])
def test_without_noise_coefficients_are_those_of_least_squares(engine: str, predictors: list[str]) -> None:
    data = people(60)
    complete = table(data, engine).where(lambda r: ~(r.x + r.y + r.z + r.w).is_null() & ~r.b.is_null())
    found = complete.noisy_regression(SURE, "y", predictors)
    expected = least_squares(data, predictors)
    assert [found.intercept.value, *found.coefficients.values_only.values()] == pytest.approx(
        expected, rel=1e-2
    )
    assert list(found.coefficients) == predictors
    assert found.charged == SURE
    low, high = found.coefficients[predictors[0]].interval(0.95)  # type: ignore[misc]
    assert low <= found.coefficients[predictors[0]].value <= high


def test_without_noise_covariance_and_correlation_are_exact(engine: str) -> None:
    data = people(50)
    complete = table(data, engine).where(lambda r: ~(r.x + r.y).is_null())
    x, y = (np.append(data[name], [data[name][0]] * 3) for name in ("x", "y"))  # three lack something else
    assert complete.noisy_covariance(SURE, "x", "y").value == pytest.approx(np.cov(x, y, bias=True)[0, 1])
    assert complete.noisy_correlation(SURE, "x", "y").value == pytest.approx(
        np.corrcoef(x, y)[0, 1], rel=1e-3
    )
    assert complete.noisy_correlation(SURE, "x", lambda r: r.x > 45, bounds=(None, (0, 1))).value == (
        pytest.approx(np.corrcoef(x, x > 45)[0, 1])
    )


def test_a_record_without_one_of_the_values_counts_for_nothing(engine: str) -> None:
    data = people(30)
    expected = least_squares(
        {name: np.append(v, v[:1]) for name, v in data.items()}, ["x"]
    )  # z, w or b is null
    twice = {name: np.append(v, [v[0]] * 3) for name, v in data.items()}
    found = table(data, engine).noisy_regression(SURE, "y", ["x"])
    assert [a.value for a in found.values()] == pytest.approx(least_squares(twice, ["x"]), rel=1e-3)
    assert [a.value for a in found.values()] != pytest.approx(expected, rel=1e-6)


def test_by_parts_each_has_its_own_for_the_price_of_one() -> None:
    records = people(200)
    data = table(records)
    before: Any = data.remaining
    found = data.query(10**6, fp.regression("y", ["x", "z"]), by="b", keys=[False, True])
    assert before - data.remaining == 10**6 == found.charged
    of_part = {name: values[records["b"] == 1] for name, values in records.items()}
    assert [a.value for a in found[True].values()] == pytest.approx(
        least_squares(of_part, ["x", "z"]), rel=1e-2
    )
    assert [(row["b"], row["term"]) for row in found.rows()] == [
        (part, term) for part in (False, True) for term in ("intercept", "x", "z")
    ]


def test_coefficients_have_the_names_they_were_given_or_are_spelled_out() -> None:
    data = table(people(50))

    def younger(r: Any) -> Any:
        return 110 - r.x

    found = data.noisy_regression(SURE, "y", [younger, "b"], bounds={younger: (0, 110)})
    assert list(found) == ["intercept", "110 - x", "b"]
    assert found.coefficients[younger].value == found.coefficients["110 - x"].value == found[younger].value
    with pytest.raises(KeyError):
        found.coefficients["x"]
    named = data.noisy_regression(SURE, "y", {"intercept": younger}, bounds={"intercept": (0, 110)})
    assert list(named) == ["(intercept)", "intercept"]
    assert named.predict(intercept=110) == pytest.approx(
        float(named.intercept) + 110 * named["intercept"].value
    )
    with pytest.raises(fp.BadQuery, match="each predictor: intercept"):
        named.predict(x=1)
    assert data.noisy_regression(SURE, "y", "x").coefficients["x"].value == pytest.approx(0.5, abs=0.3)


def test_results_are_called_what_they_are() -> None:
    data = table(people(50))
    for query, names in (
        (fp.regression("y", ["x"]), ["term", "coefficient"]),
        (fp.covariance("x", fp._.y), ["covariance_x_y"]),
        (fp.correlation("x", lambda r: r.y / 2, (None, (0, 75))), ["correlation_x"]),
    ):
        assert list(data.query(1, query).rows()[0])[: len(names)] == names


# ── with noise ───────────────────────────────────────────────────────────────────────


def exactly(query: CrossMoments, data: Data) -> list[int]:
    """What the query releases of data, without noise."""
    names = [next(columns_of(clamp.value)) for clamp in query.of]
    points = [
        np.rint(data[name] / float(clamp.step)).clip(clamp.lower, clamp.upper).astype(object) - clamp.lower
        for name, clamp in zip(names, query.of, strict=True)
    ]
    powers = query.statistic.exponents
    ones = np.ones(len(points[0]), dtype=object)
    sums = [sum(math.prod((p**e for p, e in zip(points, each, strict=True)), start=ones)) for each in powers]
    return query.exact(dict(enumerate(map(int, sums))))


def asked(query: Inquiry[Any], data: Data, epsilon: Fraction, times: int) -> list[list[fp.Answer]]:
    """The answers of a query, asked again and again."""
    prepared = query.prepare(Subject(Schema.of(TYPES)), epsilon)
    assert isinstance(prepared.primitive, CrossMoments)
    exact, rng = exactly(prepared.primitive, data), np.random.default_rng(7)
    scale = float(prepared.primitive.sensitivity / epsilon)
    found = []
    for _ in range(times):
        noise = np.rint(rng.laplace(size=len(exact)) * scale)
        answer = prepared.read(tuple(q + int(v) for q, v in zip(exact, noise, strict=True)), Fraction(0))
        found.append(list(answer.values()) if isinstance(answer, fp.Answers) else [answer])
    return found


QUESTIONS: dict[str, tuple[Inquiry[Any], Any]] = {
    "covariance": (fp.covariance("x", "y", BOTH), lambda d: [np.cov(d["x"], d["y"], bias=True)[0, 1]]),
    "correlation": (fp.correlation("x", "y", BOTH), lambda d: [np.corrcoef(d["x"], d["y"])[0, 1]]),
    "correlation with a condition": (
        fp.correlation("x", "b", (BOUNDS["x"], (0, 1))),
        lambda d: [np.corrcoef(d["x"], d["b"])[0, 1]],
    ),
    **{
        f"regression on {', '.join(names)}": (
            fp.regression("y", names, bounds_of(names)),
            lambda d, names=names: least_squares(d, names),
        )
        for names in (["x"], ["b", "x"], ["x", "z", "w"])
    },
}
TIMES = 120


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize(("n", "epsilon"), [(100, "1"), (1_000, "1/10"), (1_000, "1"), (10_000, "1")])
def test_intervals_hold_the_truth_as_often_as_they_say(name: str, n: int, epsilon: str) -> None:
    query, truth = QUESTIONS[name]
    data = people(n)
    true = truth(data)
    found = asked(query, data, Fraction(epsilon), TIMES)
    for i, value in enumerate(true):
        intervals = [answers[i].interval(0.95) for answers in found]
        holds = sum(low <= value <= high for low, high in intervals)  # type: ignore[misc]
        assert holds >= 0.88 * TIMES, (name, i, holds)  # four deviations below 95 %
        if n * Fraction(epsilon) >= 10_000:
            narrow = sum(low <= value <= high for low, high in (a[i].interval(0.5) for a in found))  # type: ignore[misc]
            assert 0.33 * TIMES <= narrow <= 0.67 * TIMES, (name, i, narrow)


def test_a_covariance_has_half_the_error_of_four_sums_at_a_quarter_each() -> None:
    data, epsilon = people(10_000), Fraction(1)
    found = asked(fp.covariance("x", "y", BOTH), data, epsilon, 300)
    true = np.cov(data["x"], data["y"], bias=True)[0, 1]
    ours = math.sqrt(np.mean([(answer.value - true) ** 2 for (answer,) in found]))
    # Σ1, Σu, Σv and Σuv, centred at the middles, each with noise of scale 4/ε.
    rng, u, v = np.random.default_rng(3), data["x"] / 55 - 1, data["y"] / 75 - 1
    n, su, sv, suv = (np.sum(s) + 4 * rng.laplace(size=2_000) for s in (u * 0 + 1, u, v, u * v))
    usual = 55 * 75 * math.sqrt(np.mean((suv / n - su / n * sv / n - true / 55 / 75) ** 2))
    assert ours <= 0.56 * usual
    assert found[0][0].standard_error == pytest.approx(ours, rel=0.15)


def test_a_correlation_and_a_slope_have_at_most_half_the_error_of_sums_at_equal_shares() -> None:
    data, epsilon = people(10_000), Fraction(1)
    rng, u, v = np.random.default_rng(3), data["x"] / 55 - 1, data["y"] / 75 - 1
    six = (u * 0 + 1, u, v, u * v, u * u - 0.5, v * v - 0.5)
    n, su, sv, suv, suu, svv = (np.sum(s) + 6 * max(abs(s).max(), 0.5) * rng.laplace(size=2_000) for s in six)
    cov, var_u, var_v = suv / n - su * sv / n**2, suu / n + 0.5 - (su / n) ** 2, svv / n + 0.5 - (sv / n) ** 2
    usual = cov / np.sqrt(var_u * var_v)
    true = np.corrcoef(data["x"], data["y"])[0, 1]
    ours = [answer.value for (answer,) in asked(fp.correlation("x", "y", BOTH), data, epsilon, 300)]
    assert _rmse(ours, true) <= 0.55 * _rmse(usual, true)
    slopes = [a[1].value for a in asked(fp.regression("y", ["x"], bounds_of(["x"])), data, epsilon, 300)]
    slope = least_squares(data, ["x"])[1]
    assert _rmse(slopes, slope) <= 0.55 * _rmse(cov / var_u * 75 / 55, slope)


def _rmse(values: Any, true: float) -> float:
    return math.sqrt(np.mean((np.asarray(values) - true) ** 2))


def test_where_noise_hides_everything_the_intervals_say_so() -> None:
    data = people(10)
    for (answer,) in asked(fp.correlation("x", "y", BOTH), data, Fraction(1, 1000), 20):
        assert answer.interval(0.95) == (-1, 1)
        assert -1 <= answer.value <= 1
    for answers in asked(QUESTIONS["regression on b, x"][0], data, Fraction(1, 1000), 20):
        for answer in answers:
            assert math.isfinite(answer.value)
            assert answer.interval(0.95) == (-math.inf, math.inf)
            assert "noise hides" in repr(answer)


def test_predictors_that_are_the_same_have_coefficients_without_end() -> None:
    data = {**people(10_000), "z": people(10_000)["x"] / 110}
    for answers in asked(fp.regression("y", ["x", "z"], bounds_of(["x", "z"])), data, Fraction(1), 5):
        assert answers[1].interval(0.95) == answers[2].interval(0.95) == (-math.inf, math.inf)


def test_an_interval_is_the_same_each_time_and_wider_with_more_confidence() -> None:
    ((answer,),) = asked(fp.correlation("x", "y", BOTH), people(1_000), Fraction(1), 1)
    assert answer.interval(0.95) == answer.interval(0.95)
    intervals: list[Any] = [answer.interval(c) for c in (0.5, 0.9, 0.99, 0.999, Fraction(10**9 - 1, 10**9))]
    assert all(a[0] >= b[0] and a[1] <= b[1] for a, b in pairwise(intervals))
    assert intervals[-1] == (-1, 1)
    assert answer.approximate


# ── what is measured ─────────────────────────────────────────────────────────────────


def test_the_grids_of_columns_share_the_bits_of_a_product() -> None:
    cell = Subject(Schema.of(TYPES)).cell
    columns = {name: (cell(name, "test"), tuple(map(Fraction, BOUNDS.get(name, (0, 1))))) for name in TYPES}
    for names in (["x", "y"], ["b", "y"], ["x", "b", "y"], ["x", "z", "w", "y"], ["b", "x", "z", "w", "y"]):
        of = [columns[name] for name in names]
        query = crossed(of, [True] * (len(names) - 1) + [False], Fraction(1)).query  # type: ignore[arg-type]
        query.check(Schema.of(TYPES))
        assert query.of[names.index("x")].step == 1 if "x" in names else True  # integers are not rounded
        if "b" in names:
            assert (query.of[names.index("b")].width, query.degrees[names.index("b")]) == (1, 1)
        if len([name for name in names if name not in "by"]) > 2:
            share = Fraction(sum(s * c.width**2 for s, c in zip(query.squares, query.of, strict=True)))
            assert share / query.sensitivity == pytest.approx(2 / 7, rel=0.05)
        assert query.reach <= 2 ** (PRODUCT_BITS + 2)


def test_wide_integers_are_rounded_and_narrow_ones_are_not() -> None:
    schema = Schema.of({"a": Type.INT64, "b": Type.INT64})
    cell = Subject(schema).cell
    of = [(cell(name, "test"), (Fraction(0), Fraction(top))) for name, top in (("a", 100), ("b", 2**40))]
    query = crossed(of, [True, True], Fraction(1)).query
    assert isinstance(query.of[0], Clamp)
    assert query.of[0].step == 1
    assert query.of[1].step > 1
    assert query.degrees == (2, 2)


# ── before asking ────────────────────────────────────────────────────────────────────


def test_the_error_is_known_before_asking() -> None:
    data = table(people(20))
    expected = data.expected_error(fp.covariance("x", "y"), 1, size=1_000)
    assert expected.standard_error == pytest.approx(math.sqrt(2) * 110 * 150 / 1_000)
    assert "divided by the number of records" in str(data.expected_error(fp.correlation("x", "y"), 1))
    # Deviations of an eighth of the widths: 2·√2·16/n of a correlation.
    near = data.expected_error(fp.correlation("x", "y"), 1, size=1_000).standard_error
    assert near == pytest.approx(2 * math.sqrt(2) * 16 / 1_000)
    epsilon = data.epsilon_for(fp.correlation("x", "y"), error=0.01, size=1_000)
    assert epsilon == pytest.approx(2 * math.sqrt(2) * 16 / 1_000 / 0.01, rel=1e-3)
    assert "widths of y" in str(data.expected_error(fp.regression("y", ["x", "b"]), 1, size=1_000))
    for query in (fp.covariance("x", "y", BOTH), fp.regression("y", ["x"]), fp.top(1, "x", [1])):
        with pytest.raises(fp.BadQuery, match="columns"):
            fp.epsilon_for(query, error=1)


def test_one_predictor_need_not_be_a_list_and_is_found_as_it_was_given() -> None:
    table = fp.protect([{"x": i, "y": 2 * i + 1} for i in range(9)], budget=PLENTY, engine="reference")

    def twice(x: Any) -> Any:
        return x.x * 2

    found = table.noisy_regression(SURE, "y", twice, bounds={twice: (0, 16), "y": (0, 17)})
    assert found.coefficients[twice].value == pytest.approx(1)
    assert found.coefficients["x * 2"] is found.coefficients[twice]
    by_name = table.noisy_regression(SURE, "y", {"double": twice}, bounds={twice: (0, 16), "y": (0, 17)})
    assert by_name.coefficients["double"].value == by_name.coefficients[twice].value
    with pytest.raises(fp.BadPartition, match="the keys are 'x \\* 2'"):
        found.coefficients["x"]
