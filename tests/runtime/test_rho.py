"""Mechanisms at ρ: Gaussian noise by the L2 sensitivity, choices by the exponential mechanism."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from fpinq.engines.columns import Columns
from fpinq.model.clamps import Clamp
from fpinq.model.conversion import epsilon_of_range
from fpinq.model.expressions import Column
from fpinq.model.kinds import Chosen, Noisy
from fpinq.model.notions import Rho
from fpinq.model.queries import Choice, Count, Frequencies, Lagrange, Moments, Rank, Ranks, Sum, Tree
from fpinq.noise import ExponentialMechanism, Run, gaussian
from fpinq.runtime import mechanisms
from fpinq.runtime.mechanisms import draw, draw_alike

X = Clamp(Column("x"), 0, 4)
AT = Rho(Fraction(1, 50))
NOISY: list[Noisy] = [Count(), Sum(X), Moments(X, 1), Lagrange(X), Frequencies(X), Tree(X, 2, 3)]


@pytest.mark.parametrize("query", NOISY, ids=repr)
def test_every_coordinate_gets_gaussian_noise_of_the_squared_sensitivity_over_twice_rho(
    query: Noisy, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Fraction] = []

    def one(variance: Fraction) -> int:
        asked.append(variance)
        return 0

    def many(variance: Fraction, n: int) -> Any:
        asked.extend([variance] * n)
        return _zeros(n)

    monkeypatch.setattr(gaussian, "sample", one)
    monkeypatch.setattr(
        gaussian, "sample_many", lambda variance, n: asked.extend([variance] * n) or _zeros(n)
    )
    measured = dict.fromkeys(query.statistic.coordinates, 2)
    assert list(draw(query, measured, AT)) == query.exact(measured)  # type: ignore[call-overload]
    assert asked == [query.squared * 25] * query.integers
    asked.clear()
    alike = draw_alike(query, [measured] * 20, AT)
    assert [list(each) for each in alike] == [query.exact(measured)] * 20  # type: ignore[call-overload]
    assert asked == [query.squared * 25] * (20 * query.integers)


def _zeros(n: int) -> Any:
    import numpy as np

    return np.zeros(n, dtype=np.int64)


def test_what_no_record_can_change_is_released_as_it_is_at_rho_too() -> None:
    assert draw(Sum(Clamp(Column("x"), 0, 0)), {0: 7}, AT) == (0,)


def test_the_noise_has_the_deviation_that_it_should() -> None:
    drawn = [value for (value,) in draw_alike(Count(), [{0: 1000}] * 20_000, AT)]  # type: ignore[misc]
    deviation = math.sqrt(sum((value - 1000) ** 2 for value in drawn) / len(drawn))
    assert 4.85 < deviation < 5.15  # σ = 5; six deviations either way
    assert abs(sum(drawn) / len(drawn) - 1000) < 0.22
    columns = Columns([mechanisms.column([3] * 20, narrow=True)])
    assert len(draw_alike(Count(), columns, AT)) == 20


@pytest.mark.parametrize(
    ("query", "measured"),
    [
        (Rank(X, Fraction(1, 2)), {0: 2, 3: 2, 4: 1}),
        (
            Choice((Clamp(Column("x"), 0, 1), Clamp(Column("x"), -1, 1), Clamp(Column("x"), 0, 1))),
            {0: 4, 1: 3, 2: 1},
        ),
    ],
)
def test_a_choice_is_made_by_the_exponential_mechanism_at_the_root_of_eight_rho(
    query: Chosen, measured: dict[int, int]
) -> None:
    rho, drawn = Fraction(1, 8), 4_000
    found = Counter(draw(query, measured, Rho(rho)) for _ in range(drawn))
    assert epsilon_of_range(rho) == 1
    (choices,) = query.choices(measured)
    mechanism = ExponentialMechanism(Fraction(1), choices.sensitivity, monotone=query.monotone)
    mass = mechanism.mass(Run(score, last - first + 1) for first, last, score in choices.runs)
    for (first, last, _), (low, _) in zip(choices.runs, mass, strict=True):
        expected = float(low) * drawn
        seen = sum(found[point] for point in range(first, last + 1))
        assert abs(seen - expected) < 6 * math.sqrt(expected + 1)


def test_several_choices_share_rho(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Fraction] = []

    def weighed(choices: object, monotone: bool, epsilon: Fraction) -> int:
        asked.append(epsilon)
        return 0

    monkeypatch.setattr(mechanisms, "_weighed", weighed)
    draw(Ranks(X, (Fraction(1, 4), Fraction(1, 2))), {0: 3}, Rho(Fraction(1, 4)))
    assert asked == [1, 1]
