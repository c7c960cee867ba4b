"""Sources, sensitivity vectors and the general charge."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model import accounts as module
from fpinq.model.accounts import (
    MAX_SENSITIVITY,
    Accounts,
    Part,
    Root,
    Sensitivity,
    Source,
    at_most,
    certify,
    charge,
    combine,
    fits,
    minus,
    partition,
    plus,
    remaining,
    scaling_factor,
)
from fpinq.model.books import price
from fpinq.model.errors import BadEpsilon, BadTransformation, KernelViolation

A, B = Root("A"), Root("B")


def opened(**budgets: int) -> Accounts:
    return Accounts({Root(name): Fraction(total) for name, total in budgets.items()})


def test_combine_adds_the_same_source_twice() -> None:
    assert combine((2, 3), ({A: 1}, {A: 1, B: 4})) == {A: 5, B: 12}


def test_combine_leaves_out_what_does_not_matter() -> None:
    assert combine((0, 1), ({A: 1}, {B: 1})) == {B: 1}


def test_parts_cost_their_maximum() -> None:
    accounts, (p, q) = partition(opened(A=10), {A: 1}, 2)
    accounts = charge(accounts, {p: 1}, Fraction(2))
    assert price(accounts, {q: 1}, Fraction(2)) == {A: 0}
    assert price(accounts, {q: 1}, Fraction(3)) == {A: 1}
    assert price(accounts, {p: 1}, Fraction(1)) == {A: 1}


def test_merging_two_sibling_parts_costs_their_maximum() -> None:
    accounts, (p, q) = partition(opened(A=10), {A: 3}, 2)
    assert price(accounts, {p: 1, q: 2}, Fraction(1)) == {A: 6}


def test_a_charge_reaches_every_root_the_table_depends_on() -> None:
    accounts, (p, _) = partition(opened(A=10, B=10), {A: 1, B: 2}, 2)
    assert price(accounts, {p: 1, B: 1}, Fraction(1)) == {A: 1, B: 3}


def test_it_fits_exactly_up_to_the_budget() -> None:
    accounts = opened(A=1)
    assert fits(accounts, charge(accounts, {A: 1}, Fraction(1)))
    assert not fits(accounts, charge(accounts, {A: 1}, Fraction(10**18 + 1, 10**18)))


def test_the_scaling_factor_ignores_what_was_spent() -> None:
    accounts, (p, _) = partition(opened(A=10), {A: 3}, 2)
    spent = charge(accounts, {p: 1}, Fraction(2))
    assert scaling_factor(spent, {p: 4, A: 10}) == 22


def test_a_public_table_has_scaling_factor_zero_and_costs_nothing() -> None:
    accounts = opened(A=1)
    assert scaling_factor(accounts, {}) == 0
    assert charge(accounts, {}, Fraction(100)) == accounts
    assert scaling_factor(Accounts({}), {}) == 0


def test_a_sensitivity_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(BadTransformation, match="records of this table"):
        combine((2,), ({A: MAX_SENSITIVITY},))
    # As large as an ε may be: every price is a number that can be written down.
    assert combine((1,), ({A: 10**18},)) == {A: 10**18}
    with pytest.raises(BadTransformation, match="records of this table"):
        combine((1,), ({A: 10**18 + 1},))


def test_denominators_do_not_grow_without_end() -> None:
    accounts = opened(A=1)
    with pytest.raises(BadEpsilon, match="denominators"):
        many_denominators(accounts)


def many_denominators(accounts: Accounts) -> None:
    for i in range(300):
        accounts = charge(accounts, {A: 1}, Fraction(1, 10**18 - 1 - 2 * i))


def test_unbounded_shows_as_infinity() -> None:
    assert repr(module.UNBOUNDED) == "∞"


# ── against FORMAL §3, word for word ─────────────────────────────────────────────────


class Spec:
    """The charge as the specification says it: every source, every partition, newest to oldest."""

    def __init__(self, roots: list[Root]) -> None:
        self.c: dict[Source, Fraction] = dict.fromkeys(roots, Fraction(0))
        self.partitions: list[tuple[list[Source], Sensitivity]] = []
        self.m: list[Fraction] = []

    def partition(self, v: Sensitivity, parts: int) -> None:
        new: list[Source] = [Part(len(self.partitions), i) for i in range(parts)]
        self.c.update(dict.fromkeys(new, Fraction(0)))
        self.partitions.append((new, v))
        self.m.append(Fraction(0))

    def charge(self, v: Sensitivity, epsilon: Fraction) -> None:
        for x in list(self.c):
            self.c[x] += v.get(x, 0) * epsilon
        for i in reversed(range(len(self.partitions))):
            parts, c_pi = self.partitions[i]
            larger = max(self.m[i], *(self.c[p] for p in parts))
            for y in list(self.c):
                self.c[y] += c_pi.get(y, 0) * (larger - self.m[i])
            self.m[i] = larger


STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(1, 3), st.lists(st.integers(0, 3), min_size=12, max_size=12)),
    max_size=8,
)


def vector(known: list[Source], weights: list[int]) -> Sensitivity:
    return {source: w for source, w in zip(known, weights, strict=False) if w}


@given(STEPS)
def test_the_charge_is_the_specification_s(steps: list[tuple[bool, int, list[int]]]) -> None:
    accounts, spec = opened(A=10**9, B=10**9), Spec([A, B])
    known: list[Source] = [A, B]
    for is_partition, number, weights in steps:
        v = vector(known[-12:], weights)
        if is_partition:
            accounts, parts = partition(accounts, v, number)
            spec.partition(v, number)
            known += parts
        else:
            before = remaining(accounts)
            asked = price(accounts, v, Fraction(number, 3))
            accounts = charge(accounts, v, Fraction(number, 3))
            spec.charge(v, Fraction(number, 3))
            assert {root: before[root] - left for root, left in remaining(accounts).items()} == asked
        certify(accounts)
        assert {s: c for s, c in spec.c.items() if c} == {s: c for s, c in accounts.counters.items() if c}


@given(STEPS, st.integers(1, 4))
def test_a_parallel_query_costs_what_a_fresh_partition_asked_once_each_costs(
    steps: list[tuple[bool, int, list[int]]], parts: int
) -> None:
    accounts = opened(A=10**9, B=10**9)
    known: list[Source] = [A, B]
    for is_partition, number, weights in steps:
        v = vector(known[-12:], weights)
        if is_partition:
            accounts, fresh = partition(accounts, v, number)
            known += fresh
        else:
            accounts = charge(accounts, v, Fraction(number))
    v = {source: 1 + i for i, source in enumerate(known[-4:])}
    at_once = charge(accounts, v, Fraction(2))
    one_by_one, fresh = partition(accounts, v, parts)
    for part in fresh:
        one_by_one = charge(one_by_one, {part: 1}, Fraction(2))
    assert remaining(one_by_one) == remaining(at_once)
    assert all(one_by_one.counters[s] == at_once.counters[s] for s in at_once.counters)


# ── the certificate ──────────────────────────────────────────────────────────────────


def charged_part() -> Accounts:
    accounts, (p, _) = partition(opened(A=10), {A: 2}, 2)
    return charge(accounts, {p: 1}, Fraction(1))


def test_the_certificate_holds_after_a_charge() -> None:
    certify(charged_part())


def test_accounts_put_together_from_their_parts_know_what_was_forwarded() -> None:
    charged = charged_part()
    again = Accounts(charged.budgets, charged.counters, charged.direct, charged.partitions, charged.maxima)
    assert again.received == charged.received == {A: Fraction(2)}
    certify(again)


@pytest.mark.parametrize(
    "broken",
    [
        replace(charged_part(), counters={Part(0, 0): Fraction(1), A: Fraction(1)}),
        replace(charged_part(), direct={}),
        replace(
            charged_part(), maxima={0: Fraction(5)}, counters={**charged_part().counters, A: Fraction(10)}
        ),
        replace(
            charged_part(),
            maxima={0: Fraction(5)},
            counters={**charged_part().counters, A: Fraction(10)},
            received={A: Fraction(10)},
        ),
        replace(charged_part(), maxima={}, counters={**charged_part().counters, A: Fraction(0)}),
        replace(charged_part(), received={A: Fraction(2), B: Fraction(1)}),
    ],
    ids=[
        "root undercharged",
        "direct charge lost",
        "maximum above what was forwarded",
        "maximum above every part",
        "maximum forgotten",
        "something forwarded to nobody",
    ],
)
def test_the_certificate_refuses(broken: Accounts) -> None:
    with pytest.raises(KernelViolation):
        certify(broken)


@pytest.mark.parametrize(
    ("attribute", "wrong"),
    [
        ("forwarded", lambda c, growth: Fraction(0)),
        ("forwarded", lambda c, growth: growth),
        ("charged_directly", lambda counter, s, epsilon: counter + epsilon / 2),
        ("new_maximum", lambda maximum, raised: min(raised) / 2),
    ],
)
def test_the_certificate_stops_a_wrong_charge(
    attribute: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts, (p, _) = partition(opened(A=10), {A: 2}, 2)
    monkeypatch.setattr(module, attribute, wrong)
    with pytest.raises(KernelViolation):
        charge(accounts, {p: 1}, Fraction(1))


# ── sums that are added up when they are looked at ───────────────────────────────────


def plain_sum(stability: Sequence[int], vectors: Sequence[Sensitivity]) -> dict[Source, int]:
    """The definition."""
    added: dict[Source, int] = {}
    for c, v in zip(stability, vectors, strict=True):
        for source in v:
            added[source] = added.get(source, 0) + c * v[source]
    return {source: s for source, s in added.items() if s}


@pytest.mark.parametrize("seed", range(100))
def test_a_sum_of_vectors_is_what_it_is_by_definition_however_long_and_nested(seed: int) -> None:
    random = Random(seed)
    lazy: list[Sensitivity] = [{}, *({Root(f"r{i}"): random.choice([1, 2, 10**8])} for i in range(60))]
    plain: list[dict[Source, int]] = [dict(v) for v in lazy]
    for _ in range(30):
        chosen = random.choices(range(len(lazy)), k=random.choice([1, 2, 3, 40]))
        stability = [random.choice([0, 1, 1, 1, 2, 1000]) for _ in chosen]
        expected = plain_sum(stability, [plain[i] for i in chosen])
        if max(expected.values(), default=0) > MAX_SENSITIVITY:
            with pytest.raises(BadTransformation, match="could change more"):
                combine(stability, [lazy[i] for i in chosen])
            continue
        found = combine(stability, [lazy[i] for i in chosen])
        assert bool(found) == bool(expected)
        if random.random() < 0.5:  # looked at now, or when another is
            assert found == expected
        lazy.append(found)
        plain.append(expected)
    assert lazy == plain
    assert [(len(v), list(v), dict(v.items()), repr(v)) for v in lazy] == [
        (len(v), list(v), v, repr(v)) for v in (dict(each) for each in lazy)
    ]


def test_a_sum_is_refused_exactly_where_an_entry_is_too_large() -> None:
    many: list[Sensitivity] = [{Root(f"r{i}"): MAX_SENSITIVITY // 2} for i in range(50)]
    whole = combine([1] * 50, many)
    assert max(combine([1, 1], [whole, whole]).values()) == MAX_SENSITIVITY
    assert combine([1] * 51, [whole, *({Root(f"s{i}"): MAX_SENSITIVITY} for i in range(50))])
    for last in ({Root("r7"): 1}, whole):
        with pytest.raises(BadTransformation, match="could change more"):
            combine([1, 1, 1], [whole, whole, last])


def test_a_long_sum_costs_what_it_is_made_of_until_it_is_looked_at() -> None:
    eights: list[Sensitivity] = [{Root(f"r{i}.{j}"): 1 for j in range(100)} for i in range(8)]
    whole = combine([1] * 8, eights)
    for _ in range(900):  # more than Python would nest calls, and far more ways than can be gone
        whole = combine([1, 1], [combine([1, 0], [whole, {}]), {Root("x"): 1}])
    assert whole.get(Root("x")) == 900
    assert len(whole) == 801


@given(st.fractions(), st.fractions())
def test_sums_and_comparisons_are_python_s_own(a: Fraction, b: Fraction) -> None:
    assert (plus(a, b), minus(a, b), at_most(a, b)) == (a + b, a - b, a <= b)
    assert type(plus(a, b)) is Fraction
    assert (plus(Fraction(0), b), at_most(a, a)) == (b, True)
