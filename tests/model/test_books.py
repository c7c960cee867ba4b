"""Books: every root in its own notion, against a naive reckoning, and against every distance there can be."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model import accounts as of_one
from fpinq.model import books
from fpinq.model.accounts import Accounts, Part, Root, Sensitivity, Source, combine, paid, remaining, scales
from fpinq.model.conversion import rho_of
from fpinq.model.epsilon import Epsilon, epsilon
from fpinq.model.errors import BadEpsilon, KernelViolation, NoDelta, NotConcentrated
from fpinq.model.notions import (
    Amount,
    Approximate,
    Rho,
    Total,
    amount_of,
    approximate,
    asked_at,
    is_concentrated,
    kappa,
    keys_delta_of,
    pure,
    share_of,
    stated,
    tanh_above,
    total,
)
from fpinq.model.units import amount, units

ROOTS = A, B, C = Root("A"), Root("B"), Root("C")
ONE, MANY = Fraction(1), Fraction(10**6)
SMALL = Fraction(1, 10**9)


def opened(budgets: Mapping[Root, Total]) -> Accounts:
    amounts = {root: amount_of(each) for root, each in budgets.items()}
    return Accounts(amounts, books=books.opened(None, budgets))


def with_delta(of: Fraction | Rho, delta: Fraction) -> Approximate:
    """Whatever it was stated as."""
    return Approximate(of, delta, ONE, delta)


class Naive:
    """For every root the counters of all sources, charged from the newest partition on."""

    def __init__(self, budgets: Mapping[Root, Total]) -> None:
        self.budgets = budgets
        self.partitions: list[tuple[int, Sensitivity]] = []
        self.losses: dict[Root, dict[Source, Fraction]] = {root: {} for root in budgets}
        self.deltas: dict[Root, dict[Source, Fraction]] = {root: {} for root in budgets}

    def charged(
        self, book: Mapping[Source, Fraction], v: Sensitivity, at: Fraction
    ) -> dict[Source, Fraction]:
        after = dict(book)
        for source, s in v.items():
            after[source] = after.get(source, Fraction(0)) + s * at
        for number in reversed(range(len(self.partitions))):
            parts, c = self.partitions[number]
            each = [Part(number, i) for i in range(parts)]
            growth = max(after.get(part, Fraction(0)) for part in each) - max(
                book.get(part, Fraction(0)) for part in each
            )
            for source, s in c.items():
                after[source] = after.get(source, Fraction(0)) + s * growth
        return after

    def scale(self, v: Sensitivity, root: Root) -> int:
        return int(self.charged({}, v, ONE).get(root, 0))

    def query(self, v: Sensitivity, at: Amount, delta: Fraction) -> bool | type[Exception]:
        losses, deltas = dict(self.losses), dict(self.deltas)
        reached = [root for root in self.budgets if self.scale(v, root)]
        if isinstance(at, Rho) and not all(is_concentrated(self.budgets[root]) for root in reached):
            return NotConcentrated
        if delta and not all(keys_delta_of(self.budgets[root]) for root in reached):
            return NoDelta
        for root in reached:
            s = self.scale(v, root)
            if not is_concentrated(self.budgets[root]):
                assert not isinstance(at, Rho)
                per_unit: Fraction = at
            elif isinstance(at, Rho):
                per_unit = at.amount * s
            else:
                y = at * s / 2
                exact = at * min(ONE, y * (15 + y * y) / (15 + 6 * y * y))
                per_unit = amount(units(exact))
            losses[root] = self.charged(losses[root], v, per_unit)
            deltas[root] = self.charged(deltas[root], v, delta)
        for root in reached:
            if losses[root][root] > amount_of(self.budgets[root]):
                return False
            if delta and deltas[root][root] > keys_delta_of(self.budgets[root]):
                return False
        self.losses, self.deltas = losses, deltas
        return True


def random_total(random: Random) -> Total:
    each = Fraction(random.randint(1, 60), random.choice([1, 2, 7]))
    of: Fraction | Rho = random.choice([each, Rho(each)])
    return random.choice([of, of, with_delta(of, Fraction(random.randint(1, 30), 1000))])


@pytest.mark.parametrize("seed", range(60))
def test_books_are_what_the_note_says_charge_by_charge(seed: int) -> None:
    random = Random(seed)
    budgets = {root: random_total(random) for root in ROOTS[: random.randint(1, 3)]}
    naive, kept = Naive(budgets), opened(budgets)
    vectors: list[Sensitivity] = [{root: 1} for root in budgets]
    outcomes = set()
    for _ in range(40):
        action = random.random()
        if action < 0.2:
            some = random.sample(vectors, min(len(vectors), random.randint(1, 3)))
            vectors.append(combine([random.randint(0, 3) for _ in some], some))
        elif action < 0.4:
            v, parts = random.choice(vectors), random.randint(1, 3)
            kept, fresh = of_one.partition(kept, v, parts)
            naive.partitions.append((parts, v))
            vectors += [{part: 1} for part in fresh]
        else:
            v, number = random.choice(vectors), Fraction(random.randint(1, 20), random.choice([10, 30]))
            at: Amount = random.choice([Epsilon(number), Rho(number / 20)])
            delta = random.choice([Fraction(0), Fraction(0), Fraction(1, 1000)])
            expected = naive.query(v, at, delta)
            if not isinstance(expected, bool):
                with pytest.raises(expected):
                    books.charge(kept, v, at, delta)
                outcomes.add(expected.__name__)
                continue
            after = books.charge(kept, v, at, delta)
            assert books.fits(kept, after) == expected
            outcomes.add(str(expected))
            if expected:
                added, for_keys = of_one.charged(kept, after), books.charged_for_keys(kept, after)
                for root in budgets:
                    assert paid(after, root) - paid(kept, root) == added.get(root.name, 0)
                    if keys_delta_of(budgets[root]):
                        more = books.paid_for_keys(after, root) - books.paid_for_keys(kept, root)
                        assert more == for_keys.get(root.name, 0)
                if not delta:
                    assert {r: p for r, p in books.price(kept, v, at).items() if p} == {
                        Root(name): cost for name, cost in added.items()
                    }
                kept = after
        for root in budgets:
            assert paid(kept, root) == naive.losses[root].get(root, 0)
            assert remaining(kept)[root] == amount_of(budgets[root]) - paid(kept, root)
            if keys_delta_of(budgets[root]):
                assert books.paid_for_keys(kept, root) == naive.deltas[root].get(root, 0)
        books.certify(kept)
    assert outcomes


# ── every distance there can be ──────────────────────────────────────────────────────


def vertices(partitions: list[tuple[int, Sensitivity]], root: Root) -> Iterator[dict[Source, int]]:
    """Distances of sources, one record of a root apart, where each partition has it in one of its parts."""
    for chosen in product(*(range(parts) for parts, _ in partitions)):
        d: dict[Source, int] = {root: 1}
        for number, (_, c) in enumerate(partitions):
            d[Part(number, chosen[number])] = sum(s * d.get(source, 0) for source, s in c.items())
        yield d


def loss(at: Amount, distance: int) -> float:
    if isinstance(at, Rho):
        return float(at.amount) * distance**2
    return float(at) * distance * math.tanh(float(at) * distance / 2)


@pytest.mark.parametrize("seed", range(80))
def test_what_a_root_pays_is_no_less_than_what_any_record_of_it_loses(seed: int) -> None:
    """Convex in the distances, so largest where a record is in one part of each partition."""
    random = Random(seed)
    kept = opened({A: Rho(MANY), B: Rho(MANY)})
    partitions: list[tuple[int, Sensitivity]] = []
    vectors: list[Sensitivity] = [{A: 1}, {B: 1}, {A: 2}, {A: 1, B: 1}]
    asked: list[tuple[Sensitivity, Amount]] = []
    for _ in range(10):
        if random.random() < 0.3 and len(partitions) < 4:
            v, parts = random.choice(vectors), random.randint(1, 3)
            kept, fresh = of_one.partition(kept, v, parts)
            partitions.append((parts, v))
            vectors += [{part: 1} for part in fresh]
        elif random.random() < 0.3:
            vectors.append(combine([1, random.randint(1, 2)], random.sample(vectors, 2)))
        else:
            v, number = random.choice(vectors), Fraction(random.randint(1, 30), 10)
            at: Amount = random.choice([Rho(number), Epsilon(number)])
            asked.append((v, at))
            kept = books.charge(kept, v, at)
    for root in (A, B):
        for d in vertices(partitions, root):
            lost = sum(loss(at, sum(s * d.get(source, 0) for source, s in v.items())) for v, at in asked)
            assert lost <= float(paid(kept, root)) * (1 + 1e-12)


def test_a_part_of_a_table_with_a_scale_of_3_costs_the_root_9_rho() -> None:
    """The note's worked example: κ = 3ρ at the part, and the root pays ρS²."""
    kept, (part, _) = of_one.partition(opened({A: Rho(MANY)}), {A: 3}, 2)
    assert scales(kept, {part: 1}) == {A: 3}
    assert paid(books.charge(kept, {part: 1}, Rho(ONE)), A) == 9


def test_siblings_cost_their_maximum_and_what_is_merged_again_is_one_table() -> None:
    kept, (p, q) = of_one.partition(opened({A: Rho(MANY)}), {A: 1}, 2)
    after = books.charge(books.charge(kept, {p: 1}, Rho(ONE)), {q: 1}, Rho(ONE))
    assert paid(after, A) == 1
    assert paid(books.charge(kept, {p: 1, q: 1}, Rho(ONE)), A) == 1


def test_roots_of_different_notions_are_charged_each_in_its_own() -> None:
    kept = opened({A: MANY, B: Rho(MANY)})
    after = books.charge(kept, {A: 1, B: 2}, epsilon(1))
    assert paid(after, A) == 1
    assert paid(after, B) == 2 * amount(units(tanh_above(ONE)))
    alone = books.charge(kept, {A: 1}, epsilon(1))
    assert (paid(alone, A), paid(alone, B)) == (1, 0)
    assert alone.books == kept.books
    only = books.charge(kept, {B: 1}, Rho(ONE))
    assert (paid(only, A), paid(only, B), only.counters) == (0, 1, {})


def test_a_pure_root_is_never_asked_at_rho_not_even_beside_others() -> None:
    for budgets in ({A: MANY}, {A: MANY, B: Rho(MANY)}):
        kept = opened(budgets)
        with pytest.raises(NotConcentrated, match="'A' is an ε") as refused:
            books.charge(kept, {A: 1, **dict.fromkeys(budgets, 1)}, Rho(SMALL))
        assert refused.value.name == "A"


def test_what_reaches_no_root_costs_nothing_at_any_notion() -> None:
    kept, (part,) = of_one.partition(opened({A: MANY}), {}, 1)
    for v in ({}, {part: 1}):
        after = books.charge(kept, v, Rho(ONE), SMALL)
        assert after.raised == ()
        assert books.fits(kept, after)
        assert of_one.charged(kept, after) == {} == books.charged_for_keys(kept, after)


def test_keys_cost_delta_in_proportion_to_the_scale_and_need_one_at_every_root() -> None:
    kept = opened({A: with_delta(MANY, 3 * SMALL), B: MANY})
    after = books.charge(kept, {A: 3}, epsilon(1), SMALL)
    assert books.fits(kept, after)
    assert books.paid_for_keys(after, A) == 3 * SMALL
    assert paid(after, A) == 3
    assert not books.fits(kept, books.charge(after, {A: 1}, epsilon(1), SMALL))
    with pytest.raises(NoDelta, match="'B' has no δ for keys"):
        books.charge(kept, {A: 1, B: 1}, epsilon(1), SMALL)
    with pytest.raises(NoDelta):
        books.charge(opened({A: MANY}), {A: 1}, epsilon(1), SMALL)


def test_programs_of_pure_roots_have_no_books() -> None:
    kept = opened({A: MANY, B: ONE})
    assert kept.books is None
    assert books.opened(None, {C: ONE}) is None
    assert books.charge(kept, {A: 2}, epsilon(1)) == of_one.charge(kept, {A: 2}, ONE)
    assert books.written(of_one.charge(kept, {A: 2}, ONE)) == 1
    assert books.written(books.charge(opened({A: Rho(ONE)}), {A: 2}, Rho(ONE))) == 2


def test_a_book_that_was_tampered_with_is_a_violation() -> None:
    kept, (part, _) = of_one.partition(opened({A: Rho(MANY)}), {A: 3}, 2)
    after = books.charge(kept, {part: 1}, Rho(ONE))
    assert after.books is not None
    wrong = replace(after.books.losses[A], counters={A: ONE, part: ONE})
    with pytest.raises(KernelViolation):
        books.certify(replace(after, books=after.books._replace(losses={A: wrong})))


def test_the_partitions_that_a_book_sees_have_no_other_root() -> None:
    kept, _ = of_one.partition(opened({A: ONE}), {A: 1, B: 2}, 2)
    kept, _ = of_one.partition(kept, {A: 3}, 1)
    seen = books.Seen(kept.partitions, A)
    assert {number: seen[number].sensitivity for number in seen} == {0: {A: 1}, 1: {A: 3}}
    assert len(seen) == 2
    assert seen[1] is kept.partitions[1]


# ── numbers ──────────────────────────────────────────────────────────────────────────


@given(st.fractions(min_value=0, max_value=60))
def test_the_bound_of_tanh_is_above_it_and_close(y: Fraction) -> None:
    exact = math.tanh(float(y))
    assert exact - 1e-12 <= float(tanh_above(y)) <= 1.0196 * exact + 1e-12


@given(st.fractions(min_value=Fraction(1, 100), max_value=5), st.integers(1, 20))
def test_kappa_is_the_largest_loss_per_unit_of_distance(at: Fraction, scale: int) -> None:
    for each in (Rho(at), Epsilon(at)):
        most = max(loss(each, distance) / distance for distance in range(1, scale + 1))
        assert most <= float(kappa(each, scale)) * (1 + 1e-12)
        assert float(kappa(each, scale)) <= 1.02 * most


def test_what_is_asked_at_and_promised_is_exact_and_of_one_notion() -> None:
    assert asked_at("0.1") == Fraction(1, 10)
    assert asked_at(Rho(Fraction(1, 3))) == Rho(Fraction(1, 3))
    assert not Rho(Fraction(0))
    assert str(Rho(Fraction(1, 3))) == "ρ = 1/3"
    assert (
        str(approximate(1, SMALL, SMALL)) == "(ε, δ) = (1, 1/1000000000, of which 1/1000000000 for keys): 1"
    )
    assert str(approximate(1, SMALL)).startswith("(ε, δ) = (1, 1/1000000000): ρ = ")
    assert share_of(Rho(ONE), Fraction(1, 4)) == Rho(Fraction(1, 4))
    assert share_of(epsilon(1), Fraction(1, 4)) == Fraction(1, 4)
    assert pure(epsilon(1)) == 1
    with pytest.raises(KernelViolation):
        pure(Rho(ONE))
    assert total(Rho(Fraction(0))) == Rho(Fraction(0))
    whole = approximate(1, "2e-9", "1e-9")
    assert total(whole) == whole
    assert amount_of(whole) == rho_of(ONE, SMALL)
    assert approximate(1, SMALL, SMALL).amount == ONE  # nothing is converted: all of δ is for keys
    assert is_concentrated(whole)
    assert not is_concentrated(with_delta(ONE, SMALL))
    assert not is_concentrated(ONE)


@pytest.mark.parametrize(
    "wrong", [Fraction(0), Fraction(-1), 0.5, "1", 1, None, Rho(ONE), Fraction(1, 10**19), True]
)
def test_a_rho_of_every_refused_kind(wrong: object) -> None:
    exact = type(wrong) in (int, str, float) and not isinstance(wrong, bool)
    if exact:  # what was meant is clear; the kernel takes it as ε's are taken
        assert asked_at(Rho(wrong)) == Rho(Fraction(wrong))  # type: ignore[arg-type]
        return
    with pytest.raises(BadEpsilon):
        asked_at(Rho(wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        Approximate(Rho(ONE), 2 * SMALL, ONE, SMALL),
        Approximate(Rho(ONE), -SMALL, ONE, SMALL),
        Approximate(Rho(ONE), Fraction(0), ONE, ONE),
        Approximate(Rho(ONE), Fraction(0), ONE, Fraction(0)),
        replace(approximate(1, SMALL), amount=approximate(1, SMALL)),
        replace(approximate(1, SMALL), amount=rho_of(ONE, SMALL)),
        Approximate(Rho(Fraction(-1)), Fraction(0), ONE, SMALL),
    ],
)
def test_an_approximate_budget_of_every_refused_kind(wrong: Approximate) -> None:
    with pytest.raises(BadEpsilon):
        total(wrong)


@pytest.mark.parametrize(
    "stated",
    [(0, SMALL), (1, 0), (1, 1), (1, 2), (1, -1), (1, SMALL, 2 * SMALL), (1, SMALL, -1), ("x", SMALL)],
)
def test_an_epsilon_and_delta_of_every_refused_kind(stated: tuple[object, ...]) -> None:
    with pytest.raises(BadEpsilon):
        approximate(*stated)


def test_an_epsilon_and_delta_that_leave_no_rho_are_refused() -> None:
    with pytest.raises(BadEpsilon, match="told from 0"):
        approximate("1e-17", "1e-17")


def test_a_notion_can_be_said_in_a_text() -> None:
    assert stated("rho 1/50") == Rho(Fraction(1, 50))
    assert stated("epsilon 1 delta 1e-9") == approximate(1, SMALL)
    assert stated("delta 1e-9 epsilon 1") == approximate(1, SMALL)
    for other in (
        "1",
        1,
        "rho",
        "rho 1 2",
        "epsilon 1",
        "delta 1",
        "epsilon 1 delta",
        "epsilon 1 rho 2",
        None,
    ):
        assert stated(other) == other
