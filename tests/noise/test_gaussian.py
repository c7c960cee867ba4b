"""The discrete Gaussian: its distribution, and draws that have it and no other."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpinq.model.enclosure import exp_negative
from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.noise import DiscreteGaussian
from fpinq.noise.digits import magnitude
from fpinq.noise.gaussian import COIN_BITS, planned, propose, sample, sample_many, squeeze
from fpinq.noise.uniform import Uniform
from noise.goodness import are_of, counts, edges, fits, same
from noise.sources import recording, scripted, seeded, words

# Around where the block is 1, 2 and 4, where the offset has 24, 32 and more bits than a coin leaves it,
# and where machine integers end.
BLOCKS = [32, 64, 1 << 28, (1 << 36), (1 << 37), (1 << 54), (1 << 55)]
VARIANCES = [
    *(Fraction(1, 3), Fraction(1), Fraction(22, 7), Fraction(100), Fraction(10**6), Fraction(10**12)),
    *(Fraction(edge**2 + off) for edge in BLOCKS for off in (-1, 0)),
]
DRAWS = 200_000

variances = st.fractions(min_value="1/20", max_value=10**6, max_denominator=1000).filter(bool)


# The samplers


@pytest.mark.parametrize("variance", VARIANCES)
def test_draws_have_the_stated_variance_and_not_one_that_is_off(variance):
    values = sample_many(variance, DRAWS)
    assert are_of(values, DiscreteGaussian(variance))
    for percent in (70, 90, 110, 130):
        assert not are_of(values, DiscreteGaussian(variance * percent / 100))


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(22, 7), Fraction(10**6), Fraction(10**40)])
def test_single_draws_have_the_stated_variance(variance):
    values = np.array([sample(variance) for _ in range(20_000)])
    assert are_of(values, DiscreteGaussian(variance))
    assert not are_of(values, DiscreteGaussian(variance * 7 / 10))


@pytest.mark.parametrize("variance", [Fraction(1023), Fraction(1024), Fraction(10**4)])
def test_every_value_has_its_mass(variance):
    """Within blocks and at their ends, not in bins of many."""
    noise, reach = DiscreteGaussian(variance), 2 * math.isqrt(int(variance))
    values = sample_many(variance, 4 * DRAWS)
    masses = [float(noise.pmf(v)[0]) for v in range(-reach, reach + 1)]
    outside = 2 * float(noise.tail(reach + 1)[0])
    found = np.bincount(values[np.abs(values) <= reach] + reach, minlength=2 * reach + 1).tolist()
    assert fits([*found, int((np.abs(values) > reach).sum())], [*masses, outside])


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(1, 1000), Fraction(10**40), Fraction(10**90, 7)])
def test_many_draws_are_single_draws_of_the_same_words(variance):
    """The words that single draws read, dealt to many round by round, and in each kind by kind."""
    n, plan, parts = 300, planned(variance), []
    values = []
    for seed in range(n):
        read: list[bytes] = []
        source = seeded(seed)
        values.append(sample(variance, lambda size, read=read, source=source: noted(read, source(size))))
        parts.append(read)
    kinds = [8] if not plan.shift else [8, 8, plan.rest_bytes] if plan.rest else [8, 8]
    plain = [read for read in parts if [len(one) for one in read] == kinds * (len(read) // len(kinds))]
    assert len(plain) > 0.98 * n  # the rest looked at an undecided coin
    dealt = b"".join(
        read[i + kind]
        for i in range(0, max(map(len, plain)), len(kinds))
        for kind in range(len(kinds))
        for read in plain
        if i < len(read)
    )
    kept = [value for value, read in zip(values, parts, strict=True) if read in plain]
    assert sample_many(variance, len(plain), scripted(dealt)).tolist() == kept


def noted(read: list[bytes], some: bytes) -> bytes:
    read.append(some)
    return some


@pytest.mark.parametrize("variance", [Fraction(100), Fraction(10**12)])
def test_neighbouring_draws_are_independent(variance):
    """Over four quadrants, of draws next to each other and half an array apart."""
    values = sample_many(variance, DRAWS)
    for lag in (1, DRAWS // 2):
        a, b = values > 0, np.roll(values, lag) > 0
        far, near = values**2 > variance, np.roll(values**2, lag) > variance
        for left, right in ((a, b), (far, near)):
            expected = left.mean() * right.mean()
            deviation = math.sqrt(expected * (1 - expected) / DRAWS)
            assert abs((left & right).mean() - expected) < 7 * deviation


@pytest.mark.parametrize("variance", [Fraction(10**40), Fraction(10**100), Fraction(10**50, 10**9 + 7)])
def test_huge_variances_are_drawn_exactly(variance):
    """All digits of the integers are used: the low bits are uniform, the size is that of σ."""
    values = sample_many(variance, 20_000)
    assert are_of(values, DiscreteGaussian(variance))
    assert not are_of(values * 13 // 10, DiscreteGaussian(variance))
    low_bits = [sum(v >> bit & 1 for v in values) for bit in (0, 1, 7, 20)]
    assert all(abs(ones - 10_000) < 7 * math.sqrt(5_000) for ones in low_bits)


def test_a_tiny_variance_draws_zero():
    """P[noise ≠ 0] is about 2e^−500."""
    assert not sample_many(Fraction(1, 1000), 10_000).any()
    assert sample(Fraction(1, 10**40)) == 0


def test_machine_integers_where_they_fit():
    assert sample_many(Fraction(2**108), 10).dtype == np.int64
    assert sample_many(Fraction(2**112), 10).dtype == object
    assert type(sample_many(Fraction(2**112), 1)[0]) is int
    assert sample_many(Fraction(10), 0).shape == (0,)


@pytest.mark.parametrize("scale", [Fraction(10), Fraction(50)])
def test_opendp_draws_the_same_distribution(scale):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=float(scale))([0] * 50_000))
    ends = edges(DiscreteGaussian(scale**2), len(theirs))
    assert same(counts(theirs, ends), counts(sample_many(scale**2, DRAWS), ends))
    assert not same(counts(theirs, ends), counts(sample_many(scale**2 * 13 / 10, DRAWS), ends))


# Words that are compared with more than their bits


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(1023), Fraction(1024), Fraction(10**6)])
@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**63 - 1), st.integers(0, 2**32))
def test_a_head_that_the_table_decides_is_what_enclosures_say(variance, word, seed):
    plan = planned(variance)
    for u in (word, word >> 40):
        at = sum(edge <= u for edge in plan.edges)
        if plan.edges[at - 1] != u:
            assert magnitude(plan.head, Uniform(u, 63), seeded(seed)) == plan.heads[at]


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(1023), Fraction(10**4)])
@pytest.mark.parametrize("which", [1, 0.5, -2])
def test_a_word_that_ties_is_decided_by_more_bits(variance, which):
    """A word that is ⌊2^63·P[H ≥ k]⌋ has a head of k with the probability of what is cut off."""
    plan, n = planned(variance), 2000
    k = int(which * len(plan.edges)) if isinstance(which, float) else which % len(plan.edges)
    low, high = plan.head.survival(k, 63 + 200)
    word = low >> 200
    assert low >> 200 == high >> 200
    assert word in plan.edges
    expected = (low - (word << 200)) / 2**200
    reached = [
        abs(int(propose(plan, 1, scripted(words([word << 1]), then=seeded(i)))[0][0])) >= k << plan.shift
        for i in range(n)
    ]
    assert abs(sum(reached) / n - expected) < 6 * math.sqrt(expected * (1 - expected) / n) + 1e-9
    many = propose(plan, n, scripted(words([word << 1] * n), then=seeded(1)))[0]
    share = (np.abs(many) >= k << plan.shift).mean()
    assert abs(share - expected) < 6 * math.sqrt(expected * (1 - expected) / n) + 1e-9


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(100), Fraction(10**6), Fraction(10**40)])
def test_the_tail_is_not_cut(variance):
    """A uniform of 255 zeros lies beyond every threshold; single draws and many find the same value there."""
    plan = planned(variance)
    for seed in range(5):
        zeros = words([seed % 2, 0, 0, 0])
        one = sample(variance, scripted(zeros, then=seeded(seed)))
        many = sample_many(variance, 1, scripted(zeros, then=seeded(seed)))
        assert many.tolist() == [one]
        assert abs(one) >> plan.shift > plan.heads[0] or abs(one) < 9 * math.isqrt(int(variance))
    drawn = abs(propose(plan, 1, scripted(words([0, 0, 0, 0]), then=seeded(3)))[0][0])
    assert 17 * math.isqrt(int(variance)) < drawn < 20 * math.isqrt(int(variance)) + 2


@pytest.mark.parametrize("variance", [Fraction(edge**2 + 1, 1) for edge in BLOCKS] + [Fraction(10**90, 7)])
def test_coins_are_decided_only_where_enclosures_would_decide_the_same(variance):
    """For every head of the table, offsets at the ends and between, and coins at the bounds of e^−r."""
    plan, bits = planned(variance), 64
    known = min(plan.shift, COIN_BITS)
    random = np.random.default_rng(5)
    between = random.integers(0, 1 << known, 2).tolist()
    cases, bounds = [], []
    for head in range(plan.heads[0] + 1):
        for top in {0, 1, (1 << known) // 2, (1 << known) - 2, (1 << known) - 1, *between}:
            if not 0 <= top < 1 << known:
                continue
            first = top << plan.rest
            least = exp_negative(plan.exponent(head, first + (1 << plan.rest) - 1), bits)[0]
            most = exp_negative(plan.exponent(head, first), bits)[1]
            for coin in {(least >> 32) + i for i in range(-2, 3)} | {(most >> 32) + i for i in range(-2, 3)}:
                if 0 <= coin < 1 << COIN_BITS:
                    cases.append((head, top, coin))
                    bounds.append((least, most))
    accepted, undecided = squeeze(plan, *np.array(cases, dtype=np.int64).T)
    assert not (accepted & undecided).any()
    for (_, _, coin), (least, most), yes, is_open in zip(cases, bounds, accepted, undecided, strict=True):
        if yes:
            assert (coin + 1) << 32 <= least
        elif not is_open:
            assert coin << 32 >= most
    everywhere = random.integers(0, 1 << COIN_BITS, len(cases))
    assert squeeze(plan, *np.array(cases, dtype=np.int64).T[:2], everywhere)[1].mean() < 0.05


@pytest.mark.parametrize("variance", [Fraction(1024), Fraction(10**6), Fraction(10**40)])
def test_few_coins_are_undecided(variance):
    """So few that what they take does not show."""
    plan, n = planned(variance), 1 << 14
    sizes: list[int] = []
    propose(plan, n, recording(seeded(2), sizes))
    assert sum(size == 8 for size in sizes) < n / 300


def test_an_undecided_coin_is_decided_by_more_bits():
    plan, n = planned(Fraction(1024)), 4000
    head, offset = 100, 1
    low, high = exp_negative(plan.exponent(head, offset), COIN_BITS + 64)
    coin = low >> 64
    expected = (low - (coin << 64)) / 2**64
    assert low >> 64 == high >> 64
    word = plan.edges[plan.heads.index(head) - 1] + 1
    script = words([word << 1] * n) + words([offset << 63 | coin] * n)
    values, accepted = propose(plan, n, scripted(script, then=seeded(4)))
    assert set(values.tolist()) == {2 * head + offset}
    assert abs(accepted.mean() - expected) < 6 * math.sqrt(expected * (1 - expected) / n)


def test_minus_zero_is_never_accepted():
    plan = planned(Fraction(1024))
    zero = (1 << 63) - 1
    for sign, accepted in ((0, True), (1, False)):
        script = scripted(words([zero << 1 | sign, 0]))
        assert [part.tolist() for part in propose(plan, 1, script)] == [[0], [accepted]]


# Time


def test_the_bytes_of_a_small_draw_do_not_depend_on_its_value():
    requests: set[tuple[int, ...]] = set()
    values = set()
    for seed in range(2000):
        sizes: list[int] = []
        values.add(sample(Fraction(100), recording(seeded(seed), sizes)))
        requests.add(tuple(sizes))
    assert len(values) > 20
    assert requests == {(8,)}


def test_the_bytes_of_many_small_draws_do_not_depend_on_their_values():
    requests: set[tuple[int, ...]] = set()
    for seed in range(50):
        sizes: list[int] = []
        sample_many(Fraction(100), 20_000, recording(seeded(seed), sizes))
        requests.add(tuple(sizes))
    assert len(requests) == 1


def test_how_often_a_draw_was_proposed_does_not_depend_on_its_value():
    variance = Fraction(2**20)
    once, again = [], []
    for seed in range(40_000):
        sizes: list[int] = []
        value = sample(variance, recording(seeded(seed), sizes))
        (again if len(sizes) > 2 else once).append(value)
    assert len(again) > 500
    ends = [-1024, -300, 0, 300, 1024]
    assert same(counts(np.array(once), ends), counts(np.array(again), ends))


# The distribution


@settings(deadline=None)  # a busy machine is no failure
@given(variances, st.integers(-40, 40), st.integers(-40, 40), st.integers(-40, 40))
def test_the_log_ratio_is_that_of_the_masses(variance, v, q, q2):
    noise = DiscreteGaussian(variance)
    ratio = noise.log_ratio(v, q, q2)
    if abs(ratio) < 30 and max((v - q) ** 2, (v - q2) ** 2) < 60 * variance:
        low, high = noise.pmf(v - q, 300)
        low2, high2 = noise.pmf(v - q2, 300)
        assert float(low / high2) <= math.exp(ratio) * (1 + 1e-9)
        assert float(high / low2) >= math.exp(ratio) * (1 - 1e-9)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(1), Fraction(22, 7), Fraction(50)])
@pytest.mark.parametrize("shift", [1, 2, 3])
def test_neighbours_are_as_close_as_is_claimed(variance, shift):
    """Σ P^α·Q^(1−α) = e^(α(α−1)ρ) at integer orders, and no more at others."""
    noise = DiscreteGaussian(variance)
    rho = float(noise.rho(shift**2))
    total = sum(math.exp(-x * x / (2 * variance)) for x in range(-400, 401))
    for order in (1.25, 1.5, 2, 2.5, 3, 4, 7):
        logs = [
            -(order * x * x + (1 - order) * (x - shift) ** 2) / (2 * float(variance))
            for x in range(-400, 401)
        ]
        divergence = math.log(math.fsum(map(math.exp, logs)) / total) / (order - 1)
        assert divergence <= order * rho * (1 + 1e-9)
        if order == int(order):
            assert divergence == pytest.approx(order * rho)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(1), Fraction(22, 7), Fraction(1500)])
def test_masses_sum_to_one_and_to_the_cdf(variance):
    noise = DiscreteGaussian(variance)
    reach = 7 * math.isqrt(int(variance)) + 7
    low = high = Fraction(0)
    for v in range(-reach, reach + 1):
        mass_low, mass_high = noise.pmf(v)
        low, high = low + mass_low, high + mass_high
        cdf_low, cdf_high = noise.cdf(v)
        before = noise.cdf(-reach - 1)
        assert low + before[0] <= cdf_high
        assert cdf_low <= high + before[1]
        assert cdf_high - cdf_low <= Fraction(1, 1 << 64)
    assert low <= 1
    assert high > 1 - Fraction(1, 10**10)


@settings(deadline=None)
@given(variances, st.fractions(min_value="1/1000000", max_value="999999/1000000", max_denominator=10**6))
def test_a_quantile_is_the_first_value_that_reaches_it(variance, p):
    noise = DiscreteGaussian(variance)
    v = noise.quantile(p)
    assert noise.cdf(v, 128)[0] >= p > noise.cdf(v - 1, 128)[1]


@settings(deadline=None)
@given(variances, st.fractions(min_value="1/1000", max_value="999999/1000000", max_denominator=10**6))
def test_an_interval_is_the_narrowest_that_covers(variance, confidence):
    noise = DiscreteGaussian(variance)
    t = noise.interval(confidence)
    assert 1 - 2 * noise.tail(t + 1, 128)[1] >= confidence
    assert t == 0 or 1 - 2 * noise.tail(t, 128)[0] < confidence


@pytest.mark.parametrize("variance", [Fraction(1, 7), Fraction(15), Fraction(10**6), Fraction(10**40)])
@pytest.mark.parametrize("digits", [1, 9, 80, 320])
def test_the_first_tail_at_most_is_the_first(variance, digits):
    q = Fraction(3, 10**digits)
    noise = DiscreteGaussian(variance)
    t, bits = noise.first_tail_at_most(q), 4 * digits + 64
    assert noise.tail(t, bits)[1] <= q
    assert t == 1 or noise.tail(t - 1, bits)[0] > q


def test_intervals_in_numbers():
    assert DiscreteGaussian(Fraction(100)).interval(0.95) == 20
    assert DiscreteGaussian(Fraction(1, 1000)).interval(0.999999) == 0
    assert DiscreteGaussian(Fraction(10**12)).interval(np.float64(0.95)) == 1959964
    assert DiscreteGaussian(Fraction(10**40)).interval(Fraction(19, 20)) // 10**15 == 195996
    assert DiscreteGaussian(Fraction(100)).quantile(0.5) == 0


@settings(deadline=None)
@given(variances)
def test_the_variance_is_that_of_the_masses(variance):
    noise = DiscreteGaussian(variance)
    if variance < 1000:
        masses = [math.exp(-v * v / (2 * variance)) for v in range(-400, 401)]
        second = sum(v * v * mass for v, mass in zip(range(-400, 401), masses, strict=True))
        assert noise.variance == pytest.approx(second / sum(masses), rel=1e-9, abs=1e-300)
    assert noise.variance <= float(variance) * (1 + 1e-12)
    assert noise.standard_deviation == pytest.approx(math.sqrt(noise.variance), rel=1e-12)


def test_the_standard_deviation_at_extremes():
    assert DiscreteGaussian(Fraction(1, 10**400)).standard_deviation == 0
    assert DiscreteGaussian(Fraction(10**600)).standard_deviation == pytest.approx(1e300)
    assert DiscreteGaussian(Fraction(10**600)).variance == math.inf


# Bad input


@pytest.mark.parametrize("variance", [0, -1, Fraction(-1, 2), 1.5, True, "1", None, 2**2049, float("nan")])
def test_a_variance_that_is_none_is_refused(variance):
    for use in (sample, lambda s: sample_many(s, 3), DiscreteGaussian):
        with pytest.raises(BadQuery):
            use(variance)


@pytest.mark.parametrize("n", [-1, 1.0, True])
def test_a_number_of_draws_that_is_none_is_refused(n):
    with pytest.raises(BadQuery):
        sample_many(Fraction(1), n)


def test_calibration():
    assert DiscreteGaussian.calibrated(squared_sensitivity=9, rho=Fraction(1, 50)).sigma_squared == 225
    assert DiscreteGaussian(Fraction(225)).rho(9) == Fraction(1, 50)
    with pytest.raises(BadEpsilon):
        DiscreteGaussian.calibrated(1, 0.1)
    with pytest.raises(BadEpsilon):
        DiscreteGaussian.calibrated(1, 0)
    with pytest.raises(BadQuery):
        DiscreteGaussian.calibrated(0, 1)
