"""Two queries for one answer: what is asked, what it costs, how far it is off, and where it stays at one."""

import math
from fractions import Fraction
from statistics import fmean, pvariance
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpinq as fp
from client.small_data import PLENTY
from fpinq import _
from fpinq.client import asking, looks
from fpinq.client.subjects import Subject
from fpinq.engines import reference
from fpinq.engines.reference import Relation
from fpinq.model import actions
from fpinq.model.epsilon import epsilon
from fpinq.model.errors import BadEpsilon
from fpinq.model.expressions import Schema, Type
from fpinq.model.queries import Balance, Moments
from fpinq.noise import Quotient
from fpinq.runtime import ProtectedSystem
from fpinq.runtime.mechanisms import draw

SCHEMA = Schema.of({"v": Type.INT64})
BOUNDS = (0, 110)
TENTH = epsilon("1/10")


def values(centre: int, spread: int, n: int = 10_000) -> list[int]:
    """About normal, between 0 and 110, without luck: the sum of four digits each."""
    each = [(i % 7) + (i // 7 % 7) + (i // 49 % 7) + (i // 343 % 7) - 12 for i in range(n)]
    return [min(max(centre + round(e * spread / 4), 0), 110) for e in each]


def answers(query: Any, numbers: list[int], at: Any, times: int) -> list[fp.Answer]:
    """What two queries give, times over: one exact statistic, new noise, read as the client reads it."""
    composed = query.composed(Subject(SCHEMA), at)
    table = Relation(SCHEMA, tuple((number,) for number in numbers))
    (exact,) = reference.measure(table, None, [composed.first.statistic])
    look, rest = composed.epsilons
    found = []
    for _i in range(times):
        seconds = composed.then([draw(composed.first, exact, look)])
        (primitive,) = seconds.primitives
        assert primitive.statistic == composed.first.statistic  # measured once
        found.append(seconds.read(0, draw(primitive, exact, rest), Fraction(0)))
    return found


def off(found: list[fp.Answer], truth: float) -> float:
    return math.sqrt(fmean((answer.value - truth) ** 2 for answer in found))


@pytest.mark.parametrize(("centre", "spread"), [(55, 8), (35, 18), (72, 12), (96, 6), (104, 3)])
def test_an_average_is_off_by_little_more_than_if_the_number_of_records_were_known(
    centre: int, spread: int
) -> None:
    numbers, times = values(centre, spread), 800
    mean = fmean(numbers)
    m = abs(mean - 55) / 55
    found = answers(fp.average("v", BOUNDS), numbers, TENTH, times)
    one = math.sqrt(2) * 55 / (0.1 * len(numbers))
    bar = min(1.12 * (1 + m), 1.05 * math.sqrt(2 * (1 + m * m)))
    # Without the largest hundredth, by which a Laplace loses 8 % of its deviation and most of its luck.
    nearest = sorted(found, key=lambda answer: abs(answer.value - mean))[: times * 99 // 100]
    assert off(nearest, mean) < bar * one * 0.92 * 1.1
    assert abs(fmean(answer.value for answer in found) - mean) < 4.5 * bar * one / math.sqrt(times)


@pytest.mark.parametrize(("centre", "spread"), [(45, 18), (55, 8), (20, 12)])
def test_a_variance_is_off_by_three_quarters_of_the_usual_way_or_less(centre: int, spread: int) -> None:
    """The usual way: count, sum centred at the middle, squares centred at half their range, ε/3 each."""
    numbers, times = values(centre, spread), 600
    mean, truth = fmean(numbers) - 55, pvariance(numbers)
    found = answers(fp.variance("v", BOUNDS), numbers, TENTH, times)
    # v = (Σ(x−55)² − 55²/2·n)/n + 55²/2 − ((Σx−55)/n)², to first order in each.
    square = 55**2 / 2
    slopes = (square, 2 * abs(mean) * 55, abs(truth + mean**2 - square - 2 * mean**2))
    usual = math.sqrt(2) * 3 * math.hypot(*slopes) / (0.1 * len(numbers))
    nearest = sorted(found, key=lambda answer: abs(answer.value - truth))[: times * 99 // 100]
    assert off(nearest, truth) < 0.75 * usual * 0.92 * 1.15
    assert abs(fmean(answer.value for answer in found) - truth) < 4.5 * usual / math.sqrt(times)


@pytest.mark.parametrize("n", [40, 1_500, 4_500, 10_000])
@pytest.mark.parametrize("query", [fp.average("v", BOUNDS), fp.variance("v", BOUNDS)], ids=repr)
def test_intervals_cover_as_often_as_they_say_whichever_second_query_is_asked(query: Any, n: int) -> None:
    numbers, times = values(40, 15, n), 500
    truth = fmean(numbers) if isinstance(query, fp.average) else pvariance(numbers)
    found = answers(query, numbers, TENTH, times)
    for confidence in (0.5, 0.95):
        intervals = [answer.interval(confidence) for answer in found]
        hits = sum(low <= truth <= high for low, high in intervals if low is not None)  # type: ignore[misc]
        spread = 4.5 * math.sqrt(times * confidence * (1 - confidence))
        few = n * 0.1 < 100  # then the bounds are the interval, nearly always
        assert hits > times * confidence - spread - 0.02 * times
        assert few or hits < times * confidence + spread + 0.05 * times


# A record adds 10 over the rest of ε, and 20 times as much over that of the look.
OF_TEN = looks.ladder(310, Fraction(31, 20), Fraction(31))


def test_the_second_query_divides_only_by_what_is_large() -> None:
    def floors(above: int, below: int) -> tuple[int, int] | None:
        found = OF_TEN.floors(above, below)
        return None if found is None else found[:2]

    assert (OF_TEN.enough, OF_TEN.unsure) == (1_920, 2_200)
    assert floors(4_000, 3_000) == (480, 480)  # a quarter of the smaller is 750
    assert floors(2_500, 2_400) == (120, 120)  # less what may be noise, 200 are left
    assert floors(2_500, 2_000) == (120, 120)  # nothing is left: a few records
    assert floors(40_000, 3_000) == (7_680, 0)
    assert floors(300, 40_000) == (0, 7_680)
    assert floors(300, 9_000) == (0, 1_920)
    assert floors(2_500, 1_900) is None
    assert floors(1_900, -50) is None


@given(
    st.integers(1, 10**9), st.fractions("1/1000", 10), st.integers(-(10**12), 10**12), st.integers(0, 10**12)
)
def test_a_floor_is_under_a_quarter_of_its_part_or_of_a_few_records(
    largest: int, whole: Fraction, one: int, other: int
) -> None:
    """It costs one over its rung of ε: no more than a twelfth, nor, for one side alone, than a 48th."""
    look, rest = whole / 32, whole * 31 / 32
    for above, below in ((one, other), (other, one)):
        found = looks.ladder(largest, look, rest).floors(above, below)
        if found is None:
            continue
        least = max(found[:2])
        assert largest / rest <= Fraction(least, 48 if 0 in found[:2] else 12)
        parts = [part for part, floor in zip((above, below), found, strict=False) if floor]
        few = math.ceil(12 * largest / rest)
        assert all(least <= max(part // looks.CAUTION, few) for part in parts)
        if len(parts) == 2:
            assert least <= max(min(parts) - looks.SURE * largest / look, few)


def test_floors_are_few_and_cost_little_more_than_their_own_would() -> None:
    """Each part of a size of its own had noise of a scale of its own, which took longer than all the rest."""
    ladder = looks.ladder(1_000, Fraction(1, 32), Fraction(31, 32))
    unit = 1_000 / Fraction(31, 32)
    costs = {}
    for records in range(200, 100_000, 7):
        found = ladder.floors(int(records * unit), 0)
        assert found is not None
        costs[records] = float(1_000 / (found.above * Fraction(31, 32)))
    assert len(set(costs.values())) <= 4
    assert max(cost - looks.CAUTION / records for records, cost in costs.items()) < 0.016


def lost_to_floors(above: int, below: int) -> float:
    """What floors above the smaller part add to the expected square of the error, in its own variance.

    In units of what one record adds over the rest of ε, over all that a first look may say of that part.
    """
    ladder = looks.ladder.__wrapped__(31, Fraction(1), Fraction(31))  # whose SURE may be another
    share, lost = above / (above + below), 0.0
    deviation = math.sqrt(2) * share / (above + below)
    for off in range(2_000):
        found = ladder.floors(above, below + off)
        if found is not None and found.below > below:
            density = math.exp(-off / 31) / 62
            lost += density * ((share - above / (above + found.below)) / deviation) ** 2
    return lost


@pytest.mark.parametrize("above", [200, 300, 400, 480, 560, 700, 1_000, 2_000])
def test_a_part_that_noise_makes_look_large_hardly_counts(
    above: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Near a bound a part may be nearly nothing: one answer in a thousand was off by 80 deviations."""
    assert max(lost_to_floors(above, below) for below in (0, 2, 10, 40, 60)) < 0.15
    monkeypatch.setattr(looks, "SURE", 0)
    assert above not in range(400, 500) or max(lost_to_floors(above, below) for below in (0, 10)) > 0.5


@pytest.mark.parametrize("least", [(1, 1), (0, 1), (1, 0)])
def test_a_share_is_read_from_every_outcome(least: tuple[int, int]) -> None:
    from fpinq.model.clamps import Clamp
    from fpinq.model.expressions import Column

    query = Balance(Clamp(Column("v"), 0, 10), 8, *least)
    shares = [looks.share_above(j, query) for j in range(-8, 9)]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < Fraction(1, 10)
    assert shares[-1] == 1


# ── what is asked ────────────────────────────────────────────────────────────────────


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[actions.Query]:
    """The queries that systems are asked, in order."""
    seen: list[actions.Query] = []
    act = ProtectedSystem.act

    def noting(self: ProtectedSystem, action: Any, **others: Any) -> Any:
        if isinstance(action, actions.Query):
            seen.append(action)
        return act(self, action, **others)

    monkeypatch.setattr(ProtectedSystem, "act", noting)
    return seen


@pytest.fixture
def data() -> fp.Table:
    rows = [{"v": v, "k": i % 3} for i, v in enumerate(values(55, 10, 3_000))]
    return fp.protect(rows, budget=PLENTY)


def test_an_average_is_two_queries_that_cost_epsilon_together(
    data: fp.Table, asked: list[actions.Query]
) -> None:
    before = data.remaining
    answer = data.noisy_average(1, _.v, bounds=BOUNDS)
    assert [action.epsilon for action in asked] == [Fraction(1, 32), Fraction(31, 32)]
    assert [type(action.queries[0]) for action in asked] == [Moments, Balance]
    assert before - data.remaining == answer.charged == answer.epsilon == 1  # type: ignore[operator]
    assert answer.split == (("first look", Fraction(1, 32)), ("the rest", Fraction(31, 32)))
    assert "0.03125 for first look + 0.96875 for the rest" in repr(answer)
    assert abs(answer - 55) < 2


def test_a_deviation_is_two_queries_as_its_variance_is(data: fp.Table, asked: list[actions.Query]) -> None:
    for ask in (data.noisy_variance, data.noisy_standard_deviation):
        answer = ask(1, _.v, bounds=BOUNDS)
        assert [action.epsilon for action in asked] == [Fraction(1, 10), Fraction(9, 10)]
        assert answer.charged == 1
        asked.clear()


def test_once_is_one_query(data: fp.Table, asked: list[actions.Query]) -> None:
    for query in (fp.average, fp.variance, fp.standard_deviation):
        data.query(1, query(_.v, bounds=BOUNDS, once=True))
        assert [action.epsilon for action in asked] == [1]
        assert isinstance(asked.pop().queries[0], Moments)


def test_parts_are_asked_together_each_its_own_second_query(
    data: fp.Table, asked: list[actions.Query]
) -> None:
    before = data.remaining
    found = data.query(1, fp.average(_.v, bounds=BOUNDS), by=_.k, keys=[0, 1, 2, 9])
    assert [len(action.queries) for action in asked] == [1, 4]
    assert [action.epsilon for action in asked] == [Fraction(1, 32), Fraction(31, 32)]
    assert [type(query) for query in asked[1].queries] == [Balance, Balance, Balance, Moments]
    assert before - data.remaining == found.charged == 1  # type: ignore[operator]
    assert all(abs(found[key] - 55) < 5 for key in (0, 1, 2))
    assert found[0].split == found[9].split != ()


def test_a_part_may_be_asked_so_too_and_costs_what_the_most_asked_does(data: fp.Table) -> None:
    before = data.remaining
    parts = data.partition(_.k, keys=[0, 1, 2])
    for part in parts.values():
        assert part.noisy_average(1, _.v, bounds=BOUNDS).split
    assert before - data.remaining == 1  # type: ignore[operator]


def test_a_dict_of_averages_is_asked_together_and_one_of_other_queries_once(
    data: fp.Table, asked: list[actions.Query]
) -> None:
    average, variance = fp.average(_.v, bounds=BOUNDS), fp.variance(_.v, bounds=BOUNDS)
    data.query(1, {0: average, 1: fp.average(_.v, bounds=(0, 60))}, by=_.k)
    assert [len(action.queries) for action in asked] == [2, 2]
    asked.clear()
    data.query(1, {0: average, 1: variance, 2: fp.count()}, by=_.k)
    assert [action.epsilon for action in asked] == [1]


def test_of_very_many_parts_each_is_asked_once(data: fp.Table, asked: list[actions.Query]) -> None:
    data.query(1, fp.average(_.v, bounds=BOUNDS), by=_.k, keys=range(asking.MOST_LOOKS + 1))
    assert [action.epsilon for action in asked] == [1]


@pytest.mark.parametrize("at", ["0.123456789012345678", 100, 10**9])
def test_one_query_where_epsilon_cannot_be_split_or_nothing_is_gained(
    data: fp.Table, asked: list[actions.Query], at: object
) -> None:
    data.noisy_average(at, _.v, bounds=BOUNDS)
    data.noisy_average(1, _.v, bounds=(7, 7))
    assert len(asked) == 2


def test_one_query_where_a_system_takes_no_epsilon_as_small_as_a_first_look(
    data: fp.Table, asked: list[actions.Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    act = ProtectedSystem.act

    def limited(self: ProtectedSystem, action: Any, **others: Any) -> Any:
        if isinstance(action, actions.Query) and action.epsilon < Fraction(1, 20):
            raise BadEpsilon("ε is at least 1/20 here")
        return act(self, action, **others)

    monkeypatch.setattr(ProtectedSystem, "act", limited)
    answer = data.noisy_average(1, _.v, bounds=BOUNDS)
    assert answer.charged == 1
    assert answer.split == ()
    assert [action.epsilon for action in asked] == [1]


# ── what does not fit ────────────────────────────────────────────────────────────────


def test_nothing_is_asked_if_both_do_not_fit(asked: list[actions.Query]) -> None:
    data = fp.protect([{"v": 1}], budget=1)
    with pytest.raises(fp.BudgetExceeded, match="Nothing was charged"):
        data.noisy_average("33/32", _.v, bounds=BOUNDS)
    assert not asked
    assert data.remaining == 1
    data.noisy_average(1, _.v, bounds=BOUNDS)
    assert data.remaining == 0


def test_nothing_is_asked_if_both_do_not_fit_a_share_of_the_budget(
    data: fp.Table, asked: list[actions.Query]
) -> None:
    share = fp.Budget("1/2")
    with pytest.raises(fp.BudgetExceeded, match="Nothing was charged"):
        data.with_budget(share).noisy_average(1, _.v, bounds=BOUNDS)
    assert (asked, share.remaining) == ([], Fraction(1, 2))
    data.with_budget(share).noisy_average("1/2", _.v, bounds=BOUNDS)
    assert share.remaining == 0


def test_what_others_spend_in_between_wastes_the_first_look_and_says_so(
    asked: list[actions.Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = fp.protect([{"v": 1}], budget=1)
    decide = looks.one_of_all

    def meanwhile(queries: Any) -> Any:
        data.noisy_count("1/2")
        return decide(queries)

    monkeypatch.setattr(looks, "one_of_all", meanwhile)
    with pytest.raises(fp.BudgetExceeded, match="the first of two queries was charged"):
        data.noisy_average(1, _.v, bounds=BOUNDS)
    assert data.remaining == 1 - Fraction(1, 32) - Fraction(1, 2)


def test_halves_that_add_up_to_nothing_are_asked_again() -> None:
    """Noise may make of a part that is nothing the other's negative: the share of above was divided by 0."""
    composed = fp.average("v", bounds=BOUNDS).composed(Subject(SCHEMA), TENTH)
    assert composed is not None
    for above, below in [(10**6, -(10**6)), (-(10**6), 10**6), (10**6, -(10**6) - 1)]:
        assert composed.then([(below, above)]).primitives == (composed.first,)
    assert isinstance(composed.then([(10**6, 2 * 10**6)]).primitives[0], Balance)


def test_parts_of_about_the_same_size_are_asked_one_query() -> None:
    """As one of all, so that it is checked, written and drawn for once, not once for each part."""
    composed = fp.average("v", bounds=BOUNDS).composed(Subject(SCHEMA), TENTH)
    assert composed is not None
    about_the_same = [(10**6 + i, 10**6 - i) for i in range(100)]
    (one,) = composed.then(about_the_same).primitives
    assert isinstance(one, Balance)
    several = composed.then([*about_the_same, (10**6, 10**7), (0, 0)]).primitives
    assert several[:100] == (one,) * 100
    assert len({id(query) for query in several}) == 3
    assert several[-1] == composed.first


def test_an_error_is_that_of_the_query_that_was_asked() -> None:
    """Parts share floors, which are lower than their own: the noise of the shared ones is what is told."""
    composed = fp.average("v", bounds=BOUNDS).composed(Subject(SCHEMA), TENTH)
    assert composed is not None
    seen = [(10**6 + i, 10**6 - i) for i in range(20)]
    seconds = composed.then(seen)
    (query,) = seconds.primitives
    assert isinstance(query, Balance)
    quotient = Quotient(
        composed.epsilons[1], query.largest, query.fineness, query.least_above, query.least_below
    )
    # Half of 10⁶ above and as much below: j is V over F·10⁶, and the share a half and a quarter of that.
    one = float(quotient.noise.scale) / (query.fineness * 10**6) / 4
    told = seconds.read(3, 0, Fraction(0)).standard_error
    assert told == pytest.approx(math.sqrt(2) * one * 110, rel=1e-3)
