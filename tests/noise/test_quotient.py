"""A noisy number over an exact one: its claim in a small scope, its masses, choices that have them."""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from fpinq.model.enclosure import exp_negative
from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.noise import Quotient, quotient
from noise.goodness import fits
from noise.sources import seeded

BITS = 80
Pair = tuple[int, int]

SCOPE = [
    Quotient(epsilon, largest, fineness, *least)
    for epsilon in (Fraction(1, 2), Fraction(4), Fraction(30))
    for largest, fineness in ((1, 1), (1, 4), (3, 2))
    for least in ((1, 1), (2, 0), (0, 5))
]
PARTS = list(product(range(0, 25, 3), repeat=2))


def neighbours(mechanism: Quotient, above: int, below: int) -> list[tuple[int, int]]:
    """The parts with one record more, whatever it is."""
    return [(above + q, below + mechanism.largest - q) for q in range(mechanism.largest + 1)]


@cache
def masses(mechanism: Quotient, parts: Pair) -> list[tuple[Fraction, Fraction]]:
    return [mechanism.mass(j, *parts, BITS) for j in mechanism.outcomes]


@cache
def decay(epsilon: Fraction) -> Fraction:
    return Fraction(exp_negative(epsilon, BITS)[0], 1 << BITS)


def never_more_likely(mechanism: Quotient, epsilon: Fraction, here: Pair, there: Pair) -> bool:
    """Whether no outcome is more than e^ε times as likely here, as far as 80 bits tell."""
    both = zip(masses(mechanism, here), masses(mechanism, there), strict=True)
    return all(one[0] * decay(epsilon) <= other[1] for one, other in both)


@pytest.mark.parametrize("mechanism", SCOPE, ids=repr)
def test_no_outcome_is_more_than_e_to_the_epsilon_times_as_likely_with_one_record_more_or_less(
    mechanism: Quotient,
) -> None:
    for here in PARTS:
        for there in neighbours(mechanism, *here):
            assert never_more_likely(mechanism, mechanism.epsilon, here, there)
            assert never_more_likely(mechanism, mechanism.epsilon, there, here)


def test_that_the_divisor_is_exact_costs_something() -> None:
    mechanism = Quotient(Fraction(4), 1, 4, 1, 1)
    spent = mechanism.fineness * mechanism.largest / mechanism.noise.scale
    assert spent < mechanism.epsilon
    pairs = [(here, there) for here in PARTS for there in neighbours(mechanism, *here)]
    both = [*pairs, *(pair[::-1] for pair in pairs)]
    assert not all(never_more_likely(mechanism, spent, here, there) for here, there in both)


@pytest.mark.parametrize("mechanism", SCOPE, ids=repr)
def test_the_masses_add_up_to_one(mechanism: Quotient) -> None:
    for above, below in PARTS[::7]:
        found = masses(mechanism, (above, below))
        assert sum(low for low, _ in found) <= 1 <= sum(high for _, high in found)


@pytest.mark.parametrize("mechanism", SCOPE, ids=repr)
def test_what_is_chosen_is_the_last_boundary_that_the_noise_does_not_exceed(
    mechanism: Quotient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for noise, (above, below) in product((-400, -31, -1, 0, 1, 2, 40, 400), PARTS[::5]):
        monkeypatch.setattr(quotient, "sample", lambda scale, source, noise=noise: noise)
        outcomes = mechanism.outcomes
        met = [j for j in outcomes[1:] if noise <= mechanism.boundary(j, above, below)]
        assert mechanism.choose(above, below) == max(met, default=outcomes[0])


@pytest.mark.parametrize("kind", [np.int64, object])
def test_many_choices_are_single_ones(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same noise, with quotients of their own, in machine integers and in Python's."""
    asked = [
        (i % len(SCOPE), noise, *parts)
        for i, (noise, parts) in enumerate(product((-400, -31, -1, 0, 1, 2, 40, 400), PARTS[::3]))
    ]
    numbers, noises, above, below = map(list, zip(*asked, strict=True))
    monkeypatch.setattr(quotient, "sample_each", lambda scales, numbers, source: np.array(noises))
    found = quotient.choose_each(SCOPE, numbers, np.array(above, dtype=kind), np.array(below, dtype=kind))
    for chosen, (number, noise, *parts) in zip(found.tolist(), asked, strict=True):
        monkeypatch.setattr(quotient, "sample", lambda scale, source, noise=noise: noise)
        assert chosen == SCOPE[number].choose(*parts)


def test_choices_have_these_masses() -> None:
    mechanism, draws = Quotient(Fraction(1), 2, 3, 5, 5), 8_000
    drawn = Counter(mechanism.choose(40, 33, seeded(i)) for i in range(draws))
    found = zip(mechanism.outcomes, masses(mechanism, (40, 33)), strict=True)
    likely = {j: float(low) for j, (low, _) in found if low > Fraction(1, 50)}
    counts, shares = [drawn[j] for j in likely], list(likely.values())
    # The unlikely ones count as the last.
    assert fits([*counts[:-1], draws - sum(counts[:-1])], [*shares[:-1], 1 - sum(shares[:-1])])


def test_a_part_is_taken_to_be_no_less_than_what_epsilon_can_pay_for() -> None:
    mechanism = Quotient(Fraction(1, 10), 7, 4, 3, 0)
    assert mechanism.floors == (560, 0)
    assert mechanism.noise.scale == 28 / (Fraction(1, 10) * Fraction(7, 8))
    assert list(mechanism.outcomes) == [0, 1, 2, 3, 4]
    assert Quotient(Fraction(1, 10), 7, 4, 3_000, 0).floors == (3_000, 0)


@pytest.mark.parametrize("numbers", [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 0)])
def test_a_quotient_without_sense_is_refused(numbers: tuple[int, int, int, int]) -> None:
    with pytest.raises(BadQuery):
        Quotient(Fraction(1), *numbers)
    with pytest.raises(BadEpsilon):
        Quotient(0.5, 1, 1, 1, 1)  # type: ignore[arg-type]
