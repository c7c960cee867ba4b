"""Permute-and-flip and the exponential mechanism: their distributions, and choices that have them."""

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from random import Random

import numpy as np
import pytest

from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.noise import ExponentialMechanism, PermuteAndFlip, Run, singles
from fpinq.noise.permute_and_flip import (
    NEGATIVE_INFINITY,
    Stretch,
    contenders,
    first_bytes,
    key,
    lengths,
    possible,
    zero_words,
)
from fpinq.noise.selection import Lag, lags
from fpinq.noise.uniform import Uniform
from noise.goodness import fits
from noise.sources import Exhausted, recording, scripted, seeded, words

MECHANISMS = [ExponentialMechanism, PermuteAndFlip]
EPSILON = Fraction(4, 3)


def middles(mass: list[tuple[Fraction, Fraction]]) -> list[float]:
    return [float((low + high) / 2) for low, high in mass]


# The distributions


def flipped(scores: list[int], rate: float) -> list[float]:
    """Permute-and-flip as it is defined: over all orders, the first head."""
    coins = [math.exp(-rate * (max(scores) - score)) for score in scores]
    chosen = [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        reached = 1 / len(orders)
        for r in order:
            chosen[r] += reached * coins[r]
            reached *= 1 - coins[r]
    return chosen


@pytest.mark.parametrize("scores", [[3], [0, 0], [5, 3, 3, 1], [0, -1, -2, -7, 0], [-100, 4, 3]])
def test_permute_and_flip_is_the_first_head_in_random_order(scores):
    mechanism = PermuteAndFlip(EPSILON)
    assert middles(mechanism.mass(singles(scores))) == pytest.approx(flipped(scores, 2 / 3), abs=1e-6)


def test_the_exponential_mechanism_is_proportional_to_its_weights():
    scores = [5, 3, 3, 1]
    weights = [math.exp(2 / 3 * score) for score in scores]
    expected = [weight / sum(weights) for weight in weights]
    assert middles(ExponentialMechanism(EPSILON).mass(singles(scores))) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("mechanism", [mechanism(EPSILON) for mechanism in MECHANISMS])
def test_a_run_has_the_mass_of_its_members_written_out(mechanism):
    runs = [Run(0, 2), Run(-3, 4), Run(-1, 1)]
    written = mechanism.mass(singles([0, 0, -3, -3, -3, -3, -1]), bits=16)
    spread = [sum(middles(written)[a:b]) for a, b in ((0, 2), (2, 6), (6, 7))]
    assert middles(mechanism.mass(runs, bits=16)) == pytest.approx(spread, abs=1e-4)


@pytest.mark.parametrize("m", [1, 50, 10**9, 10**15])
def test_one_best_against_a_long_run_in_closed_form(m):
    """∫ (1 − pt)^m dt = (1 − (1 − p)^(m+1)) / (p·(m + 1))."""
    p = math.exp(-20)
    expected = -math.expm1((m + 1) * math.log1p(-p)) / (p * (m + 1))
    best, run = PermuteAndFlip(Fraction(2)).mass([Run(0, 1), Run(-20, m)])
    assert best[0] - Fraction(1, 10**9) <= expected <= best[1] + Fraction(1, 10**9)
    assert run[0] - Fraction(1, 10**9) <= 1 - expected <= run[1] + Fraction(1, 10**9)


def neighbours(monotone: bool) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All scores of three candidates near each other, and all that differ from them by one or none."""
    ways = [(0, 1), (0, -1)] if monotone else [(-1, 0, 1)]
    return [
        (scores, tuple(map(sum, zip(scores, moves, strict=True))))
        for scores in product((0, 1, 3), repeat=3)
        for way in ways
        for moves in product(way, repeat=3)
    ]


def log_ratios(mechanism, scores, others) -> tuple[list[float], list[float], list[float]]:
    """By how much the logarithms of the masses differ, and both masses."""
    before, after = (mechanism.mass(singles(some), bits=90) for some in (scores, others))
    ratios = [math.log(a[0] / b[0]) for a, b in zip(before, after, strict=True)]
    return ratios, middles(before), middles(after)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("rho", [Fraction(1, 50), Fraction(1, 2), Fraction(4)])
def test_the_exponential_mechanism_has_a_range_of_epsilon_and_is_rho_close(rho, monotone):
    """On all small neighbours: the range of the log-ratio, and the divergence at every order."""
    mechanism = ExponentialMechanism.calibrated(rho, monotone=monotone)
    assert mechanism.rho <= rho < mechanism.rho * (1 + Fraction(1, 10**15))
    widest = closest = 0.0
    for scores, others in neighbours(monotone):
        ratios, before, after = log_ratios(mechanism, scores, others)
        widest = max(widest, max(ratios) - min(ratios))
        for order in (1.0001, 1.5, 2, 3, 8):
            moment = math.fsum(p**order * q ** (1 - order) for p, q in zip(before, after, strict=True))
            closest = max(closest, math.log(moment) / (order * (order - 1)))
    assert widest == pytest.approx(float(mechanism.epsilon))
    assert closest <= rho * (1 + 1e-9)
    assert closest > rho / 3


def test_permute_and_flip_has_a_larger_range_and_is_not_as_close():
    """So a ρ is spent on the exponential mechanism."""
    epsilon = Fraction(1, 2)
    ratios, before, after = log_ratios(PermuteAndFlip(epsilon), (0, 0), (1, -1))
    assert max(ratios) - min(ratios) > 1.5 * epsilon
    moment = math.fsum(p**2 / q for p, q in zip(before, after, strict=True))
    assert math.log(moment) / 2 > epsilon**2 / 8


@pytest.mark.parametrize("scores", [[2, 1, 0], [0, -1, -1, -1, -5], [1, 0, 0, 0, 0]])
def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism(scores):
    expected = {
        mechanism: sum(
            score * p
            for score, p in zip(scores, middles(mechanism(EPSILON).mass(singles(scores))), strict=True)
        )
        for mechanism in MECHANISMS
    }
    assert expected[PermuteAndFlip] >= expected[ExponentialMechanism]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("monotone", [False, True])
def test_neighbours_differ_by_at_most_epsilon(mechanism, monotone):
    """All scores in 0 … 2 of three candidates, and all neighbours within the sensitivity of 1."""
    chooser = mechanism(EPSILON, monotone=monotone)

    @cache
    def mass(gaps: tuple[int, ...]) -> list[tuple[Fraction, Fraction]]:
        return chooser.mass(singles(gaps), bits=16)

    worst = 0.0
    for scores in product(range(3), repeat=3):
        for moves in product((-1, 0, 1), repeat=3):
            if monotone and {-1, 1} <= set(moves):
                continue
            moved = [score + move for score, move in zip(scores, moves, strict=True)]
            here = mass(tuple(score - max(scores) for score in scores))
            there = mass(tuple(score - max(moved) for score in moved))
            for (low, _), (_, high) in zip(here, there, strict=True):
                worst = max(worst, math.log(low / high))
    assert worst <= EPSILON
    assert worst > EPSILON * Fraction(1, 2)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scores_wrongly_called_monotone_break_the_claim(mechanism):
    """One candidate falls while a hundred rise: at the full ε that loses more than ε, at half of it not."""
    for monotone in (True, False):
        chooser = mechanism(Fraction(3), monotone=monotone)
        (before, _), _ = chooser.mass([Run(1, 1), Run(0, 100)])
        (_, after), _ = chooser.mass([Run(0, 1), Run(1, 100)])
        assert (math.log(before / after) > 3) is monotone


# The samplers

RUNS = [Run(0, 2), Run(-1, 7), Run(-6, 300), Run(-2, 2), Run(0, 1), Run(-3, 12)]
CHOICES = 5_000


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_choices_have_the_stated_probabilities(mechanism):
    chosen = Counter(mechanism(EPSILON).choose(RUNS).run for _ in range(CHOICES))
    found = [chosen[i] for i in range(len(RUNS))]
    assert fits(found, middles(mechanism(EPSILON).mass(RUNS)))
    for percent in (70, 130):
        assert not fits(found, middles(mechanism(EPSILON * percent / 100).mass(RUNS)))


def test_the_two_mechanisms_are_told_apart():
    scores = singles([0, -2, -2, -2])
    chosen = Counter(PermuteAndFlip(EPSILON).choose(scores).run for _ in range(8_000))
    found = [chosen[i] for i in range(4)]
    assert fits(found, middles(PermuteAndFlip(EPSILON).mass(scores)))
    assert not fits(found, middles(ExponentialMechanism(EPSILON).mass(scores)))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_members_of_a_run_are_equally_likely(mechanism):
    members = Counter(mechanism(EPSILON).choose([Run(0, 5), Run(-1, 5)]) for _ in range(3_000))
    for run in (0, 1):
        assert fits([members[(run, i)] for i in range(5)], [0.2] * 5)


@pytest.mark.parametrize("m", [10**9, 10**30])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_long_runs_are_drawn_exactly(mechanism, m):
    """A run of m candidates, as far behind as makes it compete with a few good ones."""
    runs = [Run(0, 3), Run(-int(math.log(m)), m), Run(-1, 2)]
    chooser = mechanism(Fraction(1), monotone=True)
    choices = [chooser.choose(runs) for _ in range(3_000)]
    found = Counter(choice.run for choice in choices)
    assert fits([found[i] for i in range(3)], middles(chooser.mass(runs)))
    inside = [choice.member for choice in choices if choice.run == 1]
    quarters = Counter(4 * member // m for member in inside)
    assert fits([quarters[i] for i in range(4)], [0.25] * 4)


def test_every_short_prefix_locates_its_run_or_asks_for_more():
    """The exponential mechanism over all 2^10 prefixes of U: the decided ones enclose each probability."""
    mechanism = ExponentialMechanism(EPSILON)
    located = Counter(mechanism._locate(lags(RUNS), prefix, 10) for prefix in range(1 << 10))
    assert located[None] <= len(RUNS)
    for i, (low, high) in enumerate(mechanism.mass(RUNS)):
        assert located[i] <= high * 1024
        assert low * 1024 <= located[i] + located[None]


@pytest.mark.parametrize(
    ("gap", "m", "rivals"), [(0, 1, 1), (1, 1, 1), (2, 7, 1), (3, 50, 4), (20, 10**9, 2)]
)
def test_every_pair_of_short_prefixes_decides_the_race_or_leaves_it_open(gap, m, rivals):
    """Permute-and-flip over two runs, all 2^6 × 2^6 prefixes: the decided ones enclose the probability."""
    rate = Fraction(1)
    best = [key(Lag(0, rivals), Uniform(prefix, 6), rate, 6) for prefix in range(64)]
    other = [key(Lag(gap, m), Uniform(prefix, 6), rate, 6) for prefix in range(64)]
    wins = sum(high < low for _, high in other for low, _ in best)
    losses = sum(high < low for _, high in best for low, _ in other)
    _, (low, high) = PermuteAndFlip(Fraction(1), monotone=True).mass([(0, rivals), (-gap, m)])
    assert wins <= high * 64**2
    assert low * 64**2 <= 64**2 - losses
    assert wins + losses > 64**2 * 0.9


def test_the_first_look_never_drops_a_winner():
    """All pairs of words and multiplicities next to powers of two, where bit lengths are tight."""
    rate = Fraction(1, 3)
    drawn = [1, 3, *(n for i in (40, 61, 62, 63) for n in (2**i - 1, 2**i)), 3 << 61, 2**64 - 1]
    multiplicities = [1, 2, 3, 4, 7, 1023, 1024]
    lag_words = [(Lag(gap, m), word) for gap in (0, 1) for m in multiplicities for word in drawn]
    highs = [key(lag, Uniform(word, 64), rate, 64)[1] for lag, word in lag_words]
    for i, (lag, word) in enumerate(lag_words):
        for j, (other, other_word) in enumerate(lag_words[:i]):
            kept = contenders([lag, other], [word, other_word], rate)
            assert (0 if highs[i] <= highs[j] else 1) in kept


def test_a_race_that_the_first_words_leave_open_is_decided_by_more():
    """Two equal candidates with the same word: the next one decides, for the smaller."""
    tie = words([1 << 60, 1 << 60])
    member = bytes(16)
    mechanism = PermuteAndFlip(EPSILON)
    with pytest.raises(Exhausted):
        mechanism.choose(singles([0, 0]), scripted(tie))
    for first, second, winner in ((5, 9, 0), (9, 5, 1)):
        assert mechanism.choose(singles([0, 0]), scripted(tie, words([first, second]), member)).run == winner


def test_a_word_of_zero_is_no_number_to_take_the_logarithm_of():
    mechanism = PermuteAndFlip(EPSILON)
    script = scripted(words([0, 1 << 63, 0]), words([1 << 20, 1]), bytes(16))
    assert mechanism.choose(singles([0, 0, 0]), script).run == 2


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_hundred_thousand_scores_and_huge_gaps_are_handled(mechanism):
    scores = singles([-abs(i - 40_000) * 10**12 for i in range(100_000)])
    assert mechanism(Fraction(1)).choose(scores).run == 40_000


def test_the_bytes_of_an_exponential_choice_do_not_depend_on_it():
    requests: set[tuple[int, ...]] = set()
    runs = set()
    for seed in range(300):
        sizes: list[int] = []
        runs.add(ExponentialMechanism(EPSILON).choose(RUNS, recording(seeded(seed), sizes)).run)
        requests.add(tuple(sizes))
    assert len(runs) > 4
    assert len(requests) == 1


# Bad input


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_bad_input_is_refused_without_quoting_scores(mechanism):
    for epsilon in (0, -1, 0.5, True, "1"):
        with pytest.raises(BadEpsilon):
            mechanism(epsilon)
    for sensitivity in (0, -1, 1.5, True):
        with pytest.raises(BadQuery):
            mechanism(EPSILON, sensitivity)
    for runs in ([], [(77, 0)], [(77, -1)], [(77.0, 1)], [(77, True)]):
        with pytest.raises(BadQuery) as refusal:
            mechanism(EPSILON).choose(runs)
        assert "77" not in str(refusal.value)


# Runs that are far behind


def test_which_words_are_zero_is_as_if_all_were_drawn():
    draws, number = 30_000, 100
    random = Random(1)
    found: Counter[int] = Counter()
    where: Counter[int] = Counter()
    for _ in range(draws):
        zeros = zero_words(number, 8, random.randbytes)
        assert zeros == sorted(set(zeros))
        found[min(len(zeros), 3)] += 1
        where.update(i // 10 for i in zeros)
    zero = [math.comb(number, k) * 255.0 ** (number - k) / 256.0**number for k in range(3)]
    assert fits([found[k] for k in range(4)], [*zero, 1 - sum(zero)])
    assert fits([where[i] for i in range(10)], [0.1] * 10)


def test_more_words_than_there_are_values_are_looked_at_in_parts():
    random, draws, number = Random(2), 2_000, 300
    found = Counter(i // 100 for _ in range(draws) for i in zero_words(number, 8, random.randbytes))
    assert sum(found.values()) == pytest.approx(draws * number / 256, rel=0.1)
    assert fits([found[i] for i in range(3)], [1 / 3] * 3)


NEAR = [Run(5, 1), Run(4, 2)]


def looking(runs):
    """Runs by their numbers, in arrays."""
    scores, sizes = arrays(runs)
    return lambda numbers: (scores[np.asarray(numbers)], sizes[np.asarray(numbers)])


def chosen_among(runs, stretches, chooser, random, bits):
    """How often the first two runs are chosen, and all others together."""
    chosen: Counter[int] = Counter()
    for _ in range(CHOICES):
        choice = chooser.choose_among(stretches, looking(runs), random.randbytes, bits=bits)
        assert 0 <= choice.member < runs[choice.run].multiplicity
        chosen[min(choice.run, 2)] += 1
    return [chosen[i] for i in range(3)]


@pytest.mark.parametrize(("behind", "bits"), [(1, 8), (2, 16), (5, 16), (8, 8), (8, 64), (16, 16), (16, 24)])
def test_choices_of_near_and_far_runs_have_the_probabilities_of_all_of_them(behind, bits):
    random, chooser = Random(behind), PermuteAndFlip(EPSILON)
    far = 3 * 2**behind // 2 if behind < 16 else 2_000
    runs = [*NEAR, *[Run(5 - chooser.reach(3, bits=behind), 3)] * far]
    stretches = [Stretch(range(2)), Stretch(range(2, 2 + far), behind)]
    found = chosen_among(runs, stretches, chooser, random, bits)
    masses = middles(chooser.mass([*NEAR, Run(runs[2].score, 3 * far)]))
    assert masses[2] > 0.05 or behind == 16, "far runs win often enough to be seen"
    assert fits(found, masses) if masses[2] * CHOICES > 101 else found[2] < 101


@pytest.mark.parametrize(("behind", "said"), [(1, 4), (2, 8), (2, 16)])
def test_runs_that_are_nearer_than_is_said_are_chosen_too_seldom(behind, said):
    random, chooser = Random(behind), PermuteAndFlip(EPSILON)
    runs = [*NEAR, *[Run(5 - chooser.reach(3, bits=behind), 3)] * 8]
    found = chosen_among(runs, [Stretch(range(2)), Stretch(range(2, 10), said)], chooser, random, 16)
    assert not fits(found, middles(chooser.mass([*NEAR, Run(runs[2].score, 24)])))


def test_a_run_is_drawn_for_in_one_stretch_and_where_it_has_no_members_in_none():
    random, chooser = Random(5), PermuteAndFlip(EPSILON)
    runs = [Run(5, 1), Run(4, 2), Run(9, 0), Run(4, 7), Run(4, 1), Run(9, 0)]
    stretches = [Stretch(range(5), 0, largest=2), Stretch(np.array([3, 5]), 0)]
    look, found = looking(runs), Counter()
    for _ in range(CHOICES):
        found[chooser.choose_among(stretches, look, random.randbytes).run] += 1
    assert not found[2]
    assert not found[5]
    masses = middles(chooser.mass([runs[i] for i in (0, 1, 3, 4)]))
    assert fits([found[i] for i in (0, 1, 3, 4)], masses)
    scores, sizes = arrays(runs)
    again = Counter(chooser.choose_of(scores, sizes, random.randbytes).run for _ in range(CHOICES))
    # Of no members, but the best of all: as if it were not there, it would not be the one to lie behind.
    assert set(again) <= {0, 1, 3, 4}
    assert fits([again[i] for i in (0, 1, 3, 4)], masses)


@pytest.mark.parametrize("bits", [1, 8, 24, 64])
def test_a_rough_key_encloses_what_a_finer_one_does(bits):
    random = Random(bits)
    for _ in range(200):
        known = random.choice([8, 64, 128])
        u = Uniform(random.choice([0, 1, random.getrandbits(5), random.getrandbits(known)]), known)
        lag = Lag(random.randint(0, 50), random.choice([1, 2, 3, 10**6, 2**61]))
        rough, fine = (
            [bound if bound == NEGATIVE_INFINITY else Fraction(bound, 7 << to) for bound in found]
            for to in (bits, bits + 40)
            for found in [key(lag, u, Fraction(1, 7), to)]
        )
        assert rough[0] <= fine[1]
        assert fine[0] <= rough[1]
        assert rough[0] <= fine[0] + Fraction(1, 2 ** (bits - 1))
        assert fine[1] - Fraction(1, 2 ** (bits - 1)) <= rough[1]


@pytest.mark.parametrize("largest", [1, 2, 3, 10**6])
@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 3), Fraction(50)])
def test_what_is_in_reach_is_no_farther_than_it_must_be(largest, rate):
    """e^(λ·gap) ≥ 2^bits·largest, and less than four times that (of whole gaps, one more)."""
    chooser = PermuteAndFlip(rate, monotone=True)
    gap = chooser.reach(largest)
    assert gap * rate >= (64 + math.log2(largest)) * math.log(2)
    assert (gap - 1) * rate <= (64 + math.log2(largest) + 2) * math.log(2)


def test_far_runs_are_not_looked_at_where_no_word_is_zero():
    def look(numbers):
        assert len(numbers) <= 1, "far runs were looked at"
        return np.zeros(len(numbers), dtype=np.int64), np.ones(len(numbers), dtype=np.int64)

    stretches = [Stretch(range(1)), Stretch(range(1, 10**6), 64)]
    for _ in range(100):
        assert PermuteAndFlip(EPSILON).choose_among(stretches, look) == (0, 0)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_of_runs_that_are_farther_behind_fewer_are_looked_at(bits):
    looked = []

    def look(numbers):
        looked.append(len(numbers))
        return np.zeros(len(numbers), dtype=np.int64), np.ones(len(numbers), dtype=np.int64)

    stretches = [Stretch(range(2**16), bits), Stretch(range(1))]
    PermuteAndFlip(EPSILON).choose_among(stretches, look, Random(bits).randbytes)
    assert looked[0] == pytest.approx(2**16 / 2**bits, rel=0.3)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 7), Fraction(3)])
def test_no_contender_is_left_out_for_its_first_byte(epsilon):
    random, mechanism, cut = Random(5), PermuteAndFlip(epsilon), 0
    for _ in range(200):
        number = random.choice([1, 5, 600, 3_000])
        gaps = np.array(
            [random.choice([0, random.randint(0, 9), random.randint(0, 9_000)]) for _ in range(number)]
        )
        sizes = np.array([random.choice([0, 1, 1, 3, 200, 2**40]) for _ in gaps])
        drawn = first_bytes(Stretch(range(number)), lambda _, found=(-gaps, sizes): found, random.randbytes)
        there = np.flatnonzero(sizes)
        if not len(there):
            continue
        lagging = [Lag(int(gaps[i]), int(sizes[i])) for i in there]
        won = contenders(lagging, drawn.heads[there].tolist(), mechanism.rate, 8)
        kept = set(drawn.short(mechanism._most_bits([drawn]))[0].tolist())
        assert {int(there[i]) for i in won} <= kept
        cut += len(there) - len(kept)
    assert cut > 1_000


def arrays(runs):
    return np.array([run.score for run in runs]), np.array([run.multiplicity for run in runs])


@pytest.mark.parametrize("rate", [Fraction(1, 10**12), Fraction(1, 7), Fraction(3), Fraction(10**9)])
def test_no_contender_is_left_out_in_arrays(rate):
    random = Random(3)
    for _ in range(300):
        number, first = (
            random.choice([1, 2, 30, 300]),
            random.randint(0, 3),
        )  # the least words, or none of them
        gaps = [0, *(random.choice([random.randint(0, 9), random.randint(0, 2**50)]) for _ in range(number))]
        sizes = [random.choice([1, 2, 3, random.randint(1, 2**61)]) for _ in gaps]
        words = [
            random.choice([0, 1, 2**63, 2**64 - 1, random.getrandbits(64), random.getrandbits(9)][first:])
            for _ in gaps
        ]
        exactly = contenders([Lag(*lag) for lag in zip(gaps, sizes, strict=True)], words, rate)
        given = np.array(gaps), np.array(sizes), np.array(words, dtype=np.uint64)
        assert set(exactly) <= set(possible(*given, rate, 64).tolist())


def test_few_of_many_runs_are_possible():
    random = Random(4)
    words = np.frombuffer(random.randbytes(800_000), dtype=np.uint64)
    gaps, sizes = np.arange(100_000), np.ones(100_000, dtype=np.int64)
    assert len(possible(gaps, sizes, words, Fraction(1, 10**4), 64)) < 1_000


def test_lengths_are_those_of_the_integers():
    numbers = [
        0,
        1,
        2,
        3,
        2**31,
        2**32 - 1,
        2**32,
        2**53 + 1,
        2**62,
        2**63 - 1,
        2**63,
        2**64 - 2**10,
        2**64 - 1,
    ]
    assert lengths(np.array(numbers, dtype=np.uint64)).tolist() == [n.bit_length() for n in numbers]
    assert lengths(np.array(numbers[:10])).tolist() == [n.bit_length() for n in numbers[:10]]
