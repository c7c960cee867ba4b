"""The sparse histogram: the law of the dense one, over domains of any size."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpinq.model.domains import DateDomain, IntegerDomain, ProductDomain, StringDomain
from fpinq.model.enclosure import fractions, power
from fpinq.model.errors import BadQuery
from fpinq.noise import DiscreteGaussian, DiscreteLaplace, SparseHistogram
from fpinq.noise.sparse import draw_gap, passing, rate_at_most, rates
from fpinq.noise.symmetric import Symmetric
from noise.goodness import fits, same
from noise.sources import recording, scripted, seeded, words

LAPLACE, GAUSSIAN = DiscreteLaplace(Fraction(1)), DiscreteGaussian(Fraction(3))
NOISES = [LAPLACE, GAUSSIAN]
ENDLESS = 1 << 10_000


def noted(read: list[bytes], seed: int):
    source = seeded(seed)

    def noting(size: int) -> bytes:
        read.append(source(size))
        return read[-1]

    return noting


def uniform_of(read: list[bytes]) -> tuple[Fraction, Fraction]:
    """What is known of U from the bytes that were read of it."""
    prefix, bits = 0, 0
    for some in read:
        prefix, bits = prefix << 8 * len(some) | int.from_bytes(some, "little"), bits + 8 * len(some)
    return Fraction(prefix, 1 << bits), Fraction(prefix + 1, 1 << bits)


# Gaps and excesses


@pytest.mark.parametrize("noise", NOISES)
@settings(deadline=None)  # a busy machine is no failure
@given(st.integers(1, 40), st.integers(0, 2**32))
def test_a_gap_is_the_one_of_its_uniform(noise, threshold, seed):
    """(1 − p)^(g + 1) ≤ U < (1 − p)^g for every U that begins with what was read, by multiplication."""
    read: list[bytes] = []
    gap = draw_gap(noise, threshold, ENDLESS, noted(read, seed))
    low, high = uniform_of(read)
    work = 2000
    tail_low, tail_high = noise.upper(threshold, work)
    stays = ((1 << work) - tail_high, (1 << work) - tail_low)
    assert high <= fractions(power(stays, gap, work), work)[0] + Fraction(1, 1 << 300)
    assert low >= fractions(power(stays, gap + 1, work), work)[1] - Fraction(1, 1 << 300)


@pytest.mark.parametrize("noise", NOISES)
@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32))
def test_an_excess_is_the_one_of_its_uniform(noise, threshold, seed):
    read: list[bytes] = []
    excess = noise.excess(threshold, noted(read, seed))
    low, high = uniform_of(read)
    most = noise.tail(threshold, 2000)
    assert high <= noise.tail(threshold + excess, 2000)[0] / most[1] + Fraction(1, 1 << 300)
    assert low >= noise.tail(threshold + excess + 1, 2000)[1] / most[0] - Fraction(1, 1 << 300)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("gap", [1, 2, 30])
def test_a_uniform_that_ties_is_decided_by_more_bits(noise, gap):
    """U begins like (1 − p)^gap: it is below it with the probability of what is cut off."""
    threshold, n, work = 3, 1000, 264
    low, high = noise.upper(threshold, work)
    stays = power(((1 << work) - high, (1 << work) - low), gap, work)[0]
    word, expected = stays >> 200, stays % (1 << 200) / 2**200
    found = [draw_gap(noise, threshold, ENDLESS, scripted(words([word]), then=seeded(i))) for i in range(n)]
    assert set(found) <= {gap - 1, gap}
    assert abs(found.count(gap) / n - expected) < 6 * math.sqrt(expected * (1 - expected) / n) + 1e-9


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("k", [1, 2, 6])
def test_an_excess_whose_uniform_ties_is_decided_by_more_bits(noise, k):
    threshold, n = 3, 1000
    low = noise.beyond(threshold, k, 264)[0]
    word, expected = low >> 200, low % (1 << 200) / 2**200
    found = [noise.excess(threshold, scripted(words([word]), then=seeded(i))) for i in range(n)]
    assert set(found) <= {k - 1, k}
    assert abs(found.count(k) / n - expected) < 6 * math.sqrt(expected * (1 - expected) / n) + 1e-9


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("threshold", [1, 2, 5])
def test_gaps_and_excesses_have_their_laws_and_no_others(noise, threshold):
    n = 6000
    p = float(noise.tail(threshold)[0])
    ends = [round(math.log(1 - i / 6) / math.log1p(-p)) for i in range(1, 6)]
    ends = sorted({end for end in ends if end > 0})
    gaps = [draw_gap(noise, threshold, ENDLESS, seeded(i)) for i in range(n)]
    found = np.bincount(np.searchsorted(ends, gaps, side="right"), minlength=len(ends) + 1).tolist()

    def masses(p: float) -> list[float]:
        stays = [1.0, *((1 - p) ** end for end in ends), 0.0]
        return [a - b for a, b in itertools.pairwise(stays)]

    assert fits(found, masses(p))
    assert not fits(found, masses(0.7 * p))
    assert not fits(found, masses(1.3 * p))

    excesses = Counter(min(noise.excess(threshold, seeded(i)), 2) for i in range(n))
    tails = [float(noise.tail(threshold + k)[0]) / p for k in range(3)]
    law = [1 - tails[1], tails[1] - tails[2], tails[2]]
    if min(law) * n > 100:
        assert fits([excesses[k] for k in range(3)], law)
        off = [1 - 1.3 * tails[1], 1.3 * (tails[1] - tails[2]), 1.3 * tails[2]]
        assert not fits([excesses[k] for k in range(3)], off)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("threshold", [1, 3, 40, 60])
@pytest.mark.parametrize("bits", [64, 200])
def test_rates_are_narrow_however_small_they_are(noise, threshold, bits):
    low, high = rates(noise, threshold, bits)
    assert 0 < low <= high <= low * (1 + Fraction(1, 1 << bits))
    tail = noise.tail(threshold, 2000)
    assert tail[0] <= high
    assert threshold < 40 or low <= tail[1] * (1 + tail[1])


def test_the_keys_that_pass_are_so_many_and_anywhere():
    """Over twelve keys: how many is binomial, and each is as likely as the others."""
    noise, threshold, size, n = LAPLACE, 2, 12, 6000
    p = float(noise.tail(threshold)[0])
    found = [list(passing(noise, threshold, size, seeded(i))) for i in range(n)]
    many = Counter(min(len(numbers), 4) for numbers in found)
    masses = [math.comb(size, k) * p**k * (1 - p) ** (size - k) for k in range(4)]
    assert fits([many[k] for k in range(5)], [*masses, 1 - sum(masses)])
    each = Counter(number for numbers in found for number in numbers)
    assert set(each) == set(range(size))
    assert all(abs(each[i] - n * p) < 6 * math.sqrt(n * p) for i in range(size))
    assert list(passing(noise, threshold, 0, seeded(1))) == []


# The histogram


def cell(noise: Symmetric, count: int, threshold: int, top: int) -> dict[int, float]:
    """The law of one key of the dense histogram: not shown (0), a value below top, or top and more."""
    values = {v: float(noise.pmf(v - count)[0]) for v in range(threshold, top)}
    return {0: float(noise.cdf(threshold - 1 - count)[0]), **values, top: float(noise.tail(top - count)[0])}


@pytest.mark.parametrize("noise", NOISES)
def test_the_whole_output_has_the_law_of_the_dense_histogram(noise):
    """Over four keys of which two have records, and one of these few: the joint law, and no other."""
    domain, n, source = IntegerDomain(10, 13), 9_000, seeded(8)
    histogram = SparseHistogram(noise, domain, Fraction(1, 2))
    threshold, counts = histogram.threshold, {11: 4, 12: 1}
    top = threshold + 2
    seen = Counter[tuple[int, ...]]()
    for _ in range(n):
        shown = histogram.release(counts, source)
        seen[tuple(min(shown.get(key, 0), top) for key in range(10, 14))] += 1

    def joint(counts: dict[int, int], noise: Symmetric = noise) -> dict[tuple[int, ...], float]:
        laws = [cell(noise, counts.get(key, 0), threshold, top) for key in range(10, 14)]
        return {
            values: math.prod(law[value] for law, value in zip(laws, values, strict=True))
            for values in itertools.product(*laws)
        }

    def agrees(law: dict[tuple[int, ...], float]) -> bool:
        likely = [values for values, mass in law.items() if mass * n > 101]
        rest = n - sum(seen[values] for values in likely)
        masses = [law[values] for values in likely]
        return fits([*(seen[values] for values in likely), rest], [*masses, 1 - sum(masses)])

    assert agrees(joint(counts))
    assert not agrees(joint({11: 4}))
    assert not agrees(joint({11: 4, 12: 1, 13: 1}))
    wider = DiscreteLaplace(Fraction(13, 10)) if noise is LAPLACE else DiscreteGaussian(Fraction(3 * 13, 10))
    assert not agrees(joint(counts, wider))


def test_it_is_drawn_as_the_dense_one_would_be():
    """Beside a histogram that draws noise for every key of the domain and filters."""
    domain, n, source = IntegerDomain(0, 30), 5000, seeded(9)
    histogram = SparseHistogram(DiscreteLaplace(Fraction(3)), domain, Fraction(2))
    counts = {3: 5, 4: 1, 17: 9}
    exact = np.array([counts.get(key, 0) for key in range(31)])
    sparse, dense = Counter[int](), Counter[int]()
    for _ in range(n):
        sparse.update(histogram.release(counts, source).keys())
        dense.update(np.flatnonzero(exact + histogram.noise.draw(31, source) >= histogram.threshold).tolist())
    assert same([sparse[key] for key in range(31)], [dense[key] for key in range(31)])
    assert not same(
        [sparse[key] for key in range(31)], [dense[key] * (13 if key in counts else 10) for key in range(31)]
    )


@pytest.mark.parametrize("noise", [LAPLACE, DiscreteGaussian(Fraction(10**4))])
def test_keys_without_records_are_as_many_as_expected_and_anywhere(noise):
    """Over 10⁶⁹ texts: the number shown, where they lie, and that they are keys."""
    domain = StringDomain(32)
    histogram = SparseHistogram(noise, domain, Fraction(1000))
    expected = float(domain.size * noise.tail(histogram.threshold, 400)[0])
    assert 100 < expected <= 1000
    shown = histogram.release({}, seeded(3))
    assert abs(len(shown) - expected) < 7 * math.sqrt(expected)
    ranks = [domain.rank(key) for key in shown]
    assert ranks == sorted(ranks)
    eighths = Counter(8 * rank // domain.size for rank in ranks)
    assert all(abs(eighths[i] - expected / 8) < 7 * math.sqrt(expected / 8) for i in range(8))
    odd = sum(rank % 2 for rank in ranks)
    assert abs(odd - len(ranks) / 2) < 7 * math.sqrt(len(ranks)) / 2
    assert min(shown.values()) == histogram.threshold


def test_the_work_does_not_grow_with_the_domain():
    for max_bytes in (1, 32, 1024):
        sizes: list[int] = []
        SparseHistogram(LAPLACE, StringDomain(max_bytes)).release({"a": 9}, recording(seeded(1), sizes))
        assert len(sizes) < 20


@pytest.mark.parametrize(
    ("size", "one", "seldom"),
    [
        (10**6, 14, 21),
        (10**18, 42, 49),
        (sum(256**i for i in range(9)), 45, 51),
        (sum(256**i for i in range(33)), 178, 185),
        (sum(256**i for i in range(129)), 710, 717),
    ],
)
def test_thresholds_in_numbers(size, one, seldom):
    """At ε = 1, for one key expected and for one in a thousand releases."""
    assert LAPLACE.first_tail_at_most(Fraction(1, size)) == one
    assert LAPLACE.first_tail_at_most(Fraction(1, 1000 * size)) == seldom


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("expected", [Fraction(1, 1000), Fraction(1), Fraction(50)])
@pytest.mark.parametrize("domain", [IntegerDomain(0, 99), StringDomain(36)])
def test_a_threshold_is_the_least_for_what_is_expected(noise, expected, domain):
    threshold = SparseHistogram(noise, domain, expected).threshold
    assert domain.size * noise.tail(threshold, 600)[1] <= expected
    assert threshold == 1 or domain.size * noise.tail(threshold - 1, 600)[0] > expected


def test_keys_are_in_order_and_those_outside_the_domain_are_left_out():
    domain = ProductDomain((IntegerDomain(0, 99), StringDomain(8)))
    counts = {(5, "b"): 900, (5, "a"): 800, (1, "z"): 700, (100, "a"): 900, (5, "too long a text"): 900}
    counts |= {None: 900, (None, "a"): 900, (5, "\ud800"): 900, (6, "c"): 0}
    shown = SparseHistogram(LAPLACE, domain).release(counts)
    assert list(shown) == [(1, "z"), (5, "a"), (5, "b")]
    assert all(abs(shown[key] - counts[key]) < 100 for key in shown)


def test_dates_are_keys_like_others():
    from datetime import date

    domain = DateDomain(date(2000, 1, 1), date(2030, 12, 31))
    shown = SparseHistogram(GAUSSIAN, domain).release({date(2024, 2, 29): 10**6})
    assert list(shown) == [date(2024, 2, 29)]


@pytest.mark.parametrize("expected", [0, -1, Fraction(-1, 2), 10_001, 0.001, "1", None, True])
def test_an_expectation_that_is_none_is_refused(expected):
    with pytest.raises(BadQuery):
        SparseHistogram(LAPLACE, IntegerDomain(0, 9), expected)


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(1, 10**18)), DiscreteGaussian(Fraction(1, 10**18))]
)
@pytest.mark.parametrize("domain", [IntegerDomain(0, 0), IntegerDomain(0, 2**62), StringDomain(32)])
def test_keys_that_are_as_good_as_impossible_need_no_digits_of_how_much(noise, domain):
    """p = e^(−10¹⁸) to its first digit would be more bits than there is memory."""
    assert SparseHistogram(noise, domain).release_numbers({0: 5}) == {0: 5}


@pytest.mark.parametrize("noise", NOISES)
def test_a_rate_is_no_less_than_it_is(noise):
    for threshold in range(1, 30):
        for bits in (8, 64, 500):
            assert rate_at_most(noise, threshold, bits) >= rates(noise, threshold, 600)[1]


def test_a_release_at_an_epsilon_that_leaves_no_noise_ends():
    noise = DiscreteLaplace(Fraction(1, 10**7))
    shown = SparseHistogram(noise, StringDomain(32)).release({"a": 1, "b": 2})
    assert shown == {"a": 1, "b": 2}
