"""The digits add up to the discrete Laplace, and a word decides a digit exactly."""

from collections import defaultdict
from fractions import Fraction

import pytest

from fpinq.noise import DiscreteLaplace, sample, sample_many
from fpinq.noise.digits import BASE, MAGNITUDE_BITS, Digit, Tail, magnitude, steps
from fpinq.noise.uniform import Uniform
from noise.sources import Exhausted, scripted, words

BITS = 200
ZERO = (1 << 64) - 2
"""A word that makes any digit 0."""


def single(scale: Fraction, before: list[int], more: list[int], after: list[int]) -> int:
    """A draw of the words before and after; more are those that a tie asks for, once all are read."""
    return sample(scale, scripted(words([*before, *after, *more])))


def first_of_many(scale: Fraction, before: list[int], more: list[int], after: list[int]) -> int:
    """The same draw, by the one that draws many."""
    return int(sample_many(scale, 1, scripted(words([*before, *after, *more])))[0])


def masses(part: Digit | Tail, largest: int) -> dict[int, tuple[Fraction, Fraction]]:
    """Bounds on P[part = d] for |d| ≤ largest, from its survivals."""
    at_least = [(Fraction(1), Fraction(1))]
    for k in range(1, largest + 2):
        low, high = part.survival(k, BITS)
        at_least.append((Fraction(low, 1 << BITS), Fraction(high, 1 << BITS)))
    found = {}
    for d in range(-largest, largest + 1):
        (low, high), (next_low, next_high) = at_least[abs(d)], at_least[abs(d) + 1]
        share = 1 if d == 0 else 2
        found[d] = ((low - next_high) / share, (high - next_low) / share)
    return found


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(
    "scale", [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(22, 7), Fraction(5)]
)
def test_the_digits_add_up_to_the_discrete_laplace(scale, more):
    """The whole convolution, in rational bounds: equal to the mass function to 2^−180 at every value.

    Of as many digits as it needs, or of more.
    """
    plan = steps(scale, len(steps(scale)) - 1 + more)
    total = {0: (Fraction(1), Fraction(1))}
    for step in plan:
        parts = masses(step.part, 2 if isinstance(step.part, Tail) else BASE - 1)
        added: dict[int, tuple[Fraction, Fraction]] = defaultdict(lambda: (Fraction(0), Fraction(0)))
        for value, (low, high) in total.items():
            for d, (part_low, part_high) in parts.items():
                old = added[BASE * value + d]
                added[BASE * value + d] = (old[0] + low * part_low, old[1] + high * part_high)
        total = added
    noise = DiscreteLaplace(scale)
    # Beyond this, values need a tail of 3 or more, which was left out of the sum.
    largest = 2 * BASE ** (len(plan) - 1) - 1
    for v in range(-min(largest, 300), min(largest, 300) + 1):
        low, high = total[v]
        expected_low, expected_high = noise.pmf(v, BITS)
        assert max(low, expected_low) <= min(high, expected_high)
        assert high - low < Fraction(1, 1 << 180)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(22, 7), Fraction(10**6), Fraction(10**30)])
def test_thresholds_are_the_first_bits_of_the_probabilities(scale):
    for step in steps(scale):
        for k, threshold in enumerate(step.thresholds, 1):
            low, high = step.part.survival(k, 700)
            assert threshold <= low >> (700 - MAGNITUDE_BITS)
            assert high >> (700 - MAGNITUDE_BITS) <= threshold
        assert list(step.thresholds) == sorted(step.thresholds, reverse=True)


def test_a_tail_is_possible_only_after_a_tie():
    for scale in (Fraction(1, 1000), Fraction(1, 45), Fraction(1, 44), Fraction(10), Fraction(10**100)):
        assert steps(scale)[0].thresholds == (0,)
        assert steps(scale)[0].part.survival(1, MAGNITUDE_BITS + 64)[1] < 1 << 64


@pytest.mark.parametrize(
    "exponent", [Fraction(1, 10**6), Fraction(1, 10), Fraction(7, 22), Fraction(1), Fraction(9)]
)
def test_every_short_prefix_gives_its_digit_or_asks_for_more(exponent):
    """All 2^12 prefixes: those decided for k, and those plus the open ones, enclose P[|D| = k]."""
    digit = Digit(exponent)
    decided: dict[int, int] = defaultdict(int)
    undecided = 0
    for prefix in range(1 << 12):
        try:
            decided[magnitude(digit, Uniform(prefix, 12), scripted())] += 1
        except Exhausted:
            undecided += 1
    assert undecided <= 2 * BASE
    for d, (low, high) in masses(digit, BASE - 1).items():
        both = 1 if d == 0 else 2
        assert decided[abs(d)] <= both * high * (1 << 12)
        assert both * low * (1 << 12) <= decided[abs(d)] + undecided


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(22, 7), Fraction(10), Fraction(10**6)])
def test_a_tie_is_decided_by_further_bits_of_both_sides(scale):
    """A word equal to a threshold, then 64 bits just below, at and just above what follows it."""
    plan = steps(scale)
    for place, step in enumerate(plan):
        if isinstance(step.part, Tail):
            continue
        for k, threshold in enumerate(step.thresholds, 1):
            if threshold in step.thresholds[: k - 1] or threshold == 0:
                continue
            low, high = step.part.survival(k, MAGNITUDE_BITS + 264)
            following = (low >> 200) & ((1 << 64) - 1)
            assert low >> 200 == high >> 200
            before = [ZERO] * place + [2 * threshold]
            after = [ZERO] * (len(plan) - 1 - place)
            unit = BASE ** len(after)
            for draw in (single, first_of_many):
                if following:
                    assert draw(scale, before, [following - 1], after) == k * unit
                if following + 1 < 1 << 64:
                    assert draw(scale, before, [following + 1], after) == (k - 1) * unit
                assert draw(scale, before, [following, 0], after) == k * unit
                with pytest.raises(Exhausted):
                    draw(scale, before, [following], after if draw is single else [])


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(10), Fraction(10**15), Fraction(10**40)])
def test_a_tail_is_reached_and_not_cut_off(scale):
    """Words so small that U lies below P[|H| ≥ 3]: the draw is as far out as they say, on either side."""
    plan = steps(scale)
    unit = BASE ** (len(plan) - 1)
    small = int(3 * plan[0].part.exponent * Fraction(3, 2)) // 64 + 2
    for draw in (single, first_of_many):
        for sign in (0, 1):
            value = draw(scale, [sign], [*[0] * small, 1 << 63], [ZERO] * (len(plan) - 1))
            assert (1 - 2 * sign) * value >= 3 * unit
            assert value % unit == 0


def test_an_array_with_a_tail_is_one_of_python_integers():
    plan = steps(Fraction(10))
    values = sample_many(
        Fraction(10), 3, scripted(words([ZERO, 0, ZERO, *[ZERO] * 3 * (len(plan) - 1), 1 << 40]))
    )
    assert values.dtype == object
    assert values.tolist() == [0, BASE ** (len(plan) - 1), 0]
