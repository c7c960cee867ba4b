"""Flat: a step costs what it touches, whatever was asked, bound or registered before; and is what it was."""

import sys
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from fpinq.checker.scope import SCHEMA, UNARY
from fpinq.model import accounts, maps
from fpinq.model.accounts import Accounts, Part, Root, Source, certify, charge, fits, partition
from fpinq.model.actions import Action, Assign, Partition, Query
from fpinq.model.books import price
from fpinq.model.events import Began, Registered, Took
from fpinq.model.expressions import Column
from fpinq.model.queries import Count
from fpinq.model.sessions import (
    NOTHING,
    Budgets,
    Session,
    State,
    configuration,
    decide,
    entered,
    followed,
    forgotten,
    left_to,
    opened,
    take,
)
from fpinq.model.transformations import Partitioning
from fpinq.model.units import less

FILTER = next(iter(UNARY.values()))
ZERO = Fraction(0)


def begun(roots: int = 1) -> State:
    state = take(NOTHING, Began("id"))
    for number in range(roots):
        state = take(state, Registered(f"r{number}", SCHEMA, Fraction(10**6), (f"r{number}",)))
    return state


def act(state: State, action: Action) -> State:
    return entered(state, "s", decide(state.budgets, state.sessions.get("s") or opened(None), action))


def count(table: str, epsilon: object = "1/100") -> Query:
    return Query(table, Fraction(str(epsilon)), (Count(),))


def parts_of(number: int, parts: int) -> Partition:
    """r0 in parts, called p0, p1, …"""
    targets = tuple(f"p{number}.{i}" for i in range(parts))
    return Partition(targets, "r0", Partitioning(Column("k"), tuple(range(parts))))


def cost(work: Callable[[], Any]) -> tuple[int, int]:
    """The functions that a work calls, and the most bytes that it has beside what there was."""
    calls = 0

    def called(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    work()
    sys.setprofile(called)
    work()
    sys.setprofile(None)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        work()
        return calls, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


# ── what a step costs ────────────────────────────────────────────────────────────────


def after_queries(number: int) -> tuple[State, Action]:
    """One table, asked again and again."""
    state = begun()
    for _ in range(number):
        state = act(state, count("r0"))
    return state, count("r0")


def after_parts_asked(number: int) -> tuple[State, Action]:
    """Each part asked once."""
    state = act(begun(), parts_of(0, number + 2))
    for i in range(number):
        state = act(state, count(f"p0.{i}"))
    return state, count(f"p0.{number}")


def after_partitions(number: int) -> tuple[State, Action]:
    """One table partitioned again and again, and a part of each asked."""
    state = begun()
    for i in range(number):
        state = act(act(state, parts_of(i, 2)), count(f"p{i}.0"))
    return act(state, parts_of(number, 2)), count(f"p{number}.0")


def after_tables(number: int) -> tuple[State, Action]:
    """Tables bound."""
    state = begun()
    for i in range(number):
        state = act(state, Assign(f"t{i}", FILTER, ("r0",)))
    return state, Assign("one more", FILTER, ("r0",))


def after_partitioning(number: int) -> tuple[State, Action]:
    """One table partitioned again and again, and once more."""
    return after_partitions(number)[0], parts_of(number + 1, 2)


def after_roots(number: int) -> tuple[State, Action]:
    """Data sets registered, of which one is asked."""
    return act(begun(number), count("r0")), count("r0")


GROWN = [after_queries, after_parts_asked, after_partitions, after_tables, after_partitioning, after_roots]


@pytest.mark.parametrize("grown", GROWN, ids=lambda grown: grown.__name__)
def test_a_step_costs_as_much_however_many_came_before(
    grown: Callable[[int], tuple[State, Action]],
) -> None:
    (few_calls, few_bytes), (many_calls, many_bytes) = (
        cost(lambda state=state, action=action: act(state, action))  # type: ignore[misc]
        for state, action in map(grown, (100, 3_000))
    )
    assert many_calls <= 1.3 * few_calls
    assert many_bytes <= 1.5 * few_bytes + 2_000


def test_dropping_a_table_costs_as_much_however_many_are_held() -> None:
    (few_calls, few_bytes), (many_calls, many_bytes) = (
        cost(lambda state=state: forgotten(state, "s", ["t50"]))  # type: ignore[misc]
        for state in (after_tables(number)[0] for number in (100, 3_000))
    )
    assert many_calls <= 1.5 * few_calls
    assert many_bytes <= 1.5 * few_bytes + 2_000


def test_a_step_taken_again_costs_as_much_however_many_data_sets_came_later() -> None:
    def again(roots: int) -> tuple[int, int]:
        state = act(begun(1), count("r0"))
        rule = decide(state.budgets, opened(None), count("r0")).transition.rule
        took = Took("s", None, None, count("r0"), rule, {"r0": Fraction(1, 100)})
        later = state.budgets
        for number in range(1, roots):
            later = take(
                State(later, {}, {}, number + 5),
                Registered(f"r{number}", SCHEMA, Fraction(1), (str(number),)),
            ).budgets
        return cost(lambda: followed(later, opened(None), took, 2))

    (few_calls, few_bytes), (many_calls, many_bytes) = again(2), again(500)
    assert many_calls <= 1.3 * few_calls
    assert many_bytes <= 1.5 * few_bytes + 2_000


def test_registering_costs_as_much_however_many_data_sets_there_are() -> None:
    one_more = Registered("more", SCHEMA, Fraction(1), ("more",))
    (few_calls, few_bytes), (many_calls, many_bytes) = (
        cost(lambda state=state: take(state, one_more))  # type: ignore[misc]
        for state in (begun(100), begun(3_000))
    )
    assert many_calls <= 1.3 * few_calls
    assert many_bytes <= 1.5 * few_bytes + 2_000


def test_roots_are_listed_in_the_order_in_which_they_arrived() -> None:
    budgets = begun(200).budgets
    assert list(budgets.listed) == [f"r{number}" for number in range(200)]
    assert budgets.listed == budgets.roots


# ── that it is what it was ───────────────────────────────────────────────────────────


class Plain:
    """The accounts as dicts that are copied, and every partition looked at: the definition."""

    def __init__(
        self, counters: dict[Source, Fraction], partitions: list[Any], maxima: list[Fraction]
    ) -> None:
        self.counters, self.partitions, self.maxima = counters, partitions, maxima

    def partition(self, sensitivity: Any, parts: int) -> "Plain":
        return Plain(self.counters, [*self.partitions, (parts, sensitivity)], [*self.maxima, ZERO])

    def charge(self, sensitivity: Any, epsilon: Fraction) -> "Plain":
        counters, maxima = dict(self.counters), list(self.maxima)
        for source, s in sensitivity.items():
            counters[source] = counters.get(source, ZERO) + s * epsilon
        for number in reversed(range(len(maxima))):
            parts, c = self.partitions[number]
            largest = max([maxima[number], *(counters.get(Part(number, i), ZERO) for i in range(parts))])
            for source, s in c.items():
                counters[source] = counters.get(source, ZERO) + s * (largest - maxima[number])
            maxima[number] = largest
        return Plain(counters, self.partitions, maxima)


def random_accounts(seed: int) -> list[tuple[Accounts, Plain]]:
    """Accounts made one of the other, or of an older one, and what they should be."""
    random = Random(seed)
    budgets = {Root(name): Fraction(random.randint(1, 40)) for name in "ABCDE"[: random.randint(1, 5)]}
    versions = [(Accounts(budgets), Plain({}, [], []))]
    known: list[Source] = list(budgets)
    for _ in range(random.randint(5, 60)):
        of, plain = versions[-1]
        table = {
            source: random.randint(1, 3)
            for source in random.sample(known, min(len(known), random.randint(0, 4)))
        }
        table = {s: n for s, n in table.items() if isinstance(s, Root) or s.partition < len(plain.partitions)}
        if random.random() < 0.3:
            made, fresh = partition(of, table, random.randint(1, 5))
            known += fresh
            versions.append((made, plain.partition(table, len(fresh))))
        else:
            epsilon = Fraction(random.randint(1, 5), random.randint(1, 4))
            versions.append((charge(of, table, epsilon), plain.charge(table, epsilon)))
            # and one that is not gone on with
            charge(versions[0][0], {s: n for s, n in table.items() if isinstance(s, Root)}, epsilon)
    return versions


@pytest.mark.parametrize("few", [maps.FEW, 1])
def test_accounts_are_those_of_the_plain_definition_and_stay_so(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "FEW", few)
    for seed in range(20):
        versions = random_accounts(seed)
        for made, plain in versions:
            assert made.counters == {source: c for source, c in plain.counters.items() if c}
            assert {n: m for n, m in enumerate(plain.maxima) if m} == made.maxima
            certify(made)


@pytest.mark.parametrize("few", [maps.FEW, 1])
def test_a_charge_fits_if_all_counters_are_within_their_budgets(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "FEW", few)
    seen = set()
    for seed in range(30):
        for (before, _), (after, _) in zip(versions := random_accounts(seed), versions[1:], strict=False):
            within = [
                c.counters.get(root, ZERO) <= c.budgets[root] for c in (before, after) for root in c.budgets
            ]
            if all(within[: len(before.budgets)]):
                seen.add(fits(before, after))
                assert fits(before, after) == all(within)
            raised = {
                root: after.counters.get(root, ZERO) - before.counters.get(root, ZERO)
                for root in after.budgets
            }
            assert accounts.charged(before, after) == {
                root.name: more for root, more in raised.items() if more
            }
            assert {root for root, more in raised.items() if more} <= set(after.raised)
    assert seen == {True, False}


@pytest.mark.parametrize("few", [maps.FEW, 1])
def test_a_price_is_what_is_charged(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "FEW", few)
    for seed in range(20):
        for made, plain in random_accounts(seed):
            table = dict.fromkeys(list(made.counters)[:3], 1)
            after = plain.charge(table, Fraction(1, 3))
            assert price(made, table, Fraction(1, 3)) == {
                root: after.counters.get(root, ZERO) - plain.counters.get(root, ZERO) for root in made.budgets
            }


def plainly_left(budgets: Budgets, session: Session, seen: list[str]) -> dict[Root, Fraction]:
    """The definition: of every root, what the others leave of the budget and of the analyst's cap."""
    left = {}
    for name in seen:
        root, own = budgets.roots[name], session.taken.get(name, 0)
        limits = [less(root.budget, budgets.spent.get((name, ""), 0) - own)]
        cap = root.cap_of(session.analyst)
        if cap is not None:
            limits.append(less(cap, budgets.spent.get((name, session.analyst or ""), 0) - own))
        left[Root(name)] = min(limits)
    return left


def test_what_is_left_to_a_session_is_what_the_others_leave_it_of_the_roots_it_sees() -> None:
    for seed in range(12):
        random = Random(seed)
        state, who = take(NOTHING, Began("id")), {"x": "ann", "y": "bob", "z": None}
        for number in range(60):
            if number == 0 or random.random() < 0.1:
                caps = {"ann": Fraction(random.randint(1, 3))} if random.random() < 0.5 else None
                root = Registered(
                    f"r{number}", SCHEMA, Fraction(random.randint(1, 9), 7), (str(number),), caps=caps
                )
                state = take(state, root)
                continue
            name = random.choice(list(who))
            action = count(random.choice(list(state.budgets.roots)), Fraction(1, random.randint(1, 50)))
            session = state.sessions.get(name) or opened(who[name])
            state = entered(state, name, decide(state.budgets, session, action))
            for each in who:
                session = state.sessions.get(each) or opened(who[each])
                seen = list(state.budgets.listed)[: len(session.configuration.accounts.budgets)]
                left = left_to(state.budgets, session)
                assert dict(left) == left == plainly_left(state.budgets, session, seen)
                assert repr(left) == repr(dict(left))
                assert [Root(root) in left for root in state.budgets.roots] == [
                    root in seen for root in state.budgets.roots
                ]
                assert "r0" not in left
                for root in set(state.budgets.roots) - set(seen) | {"none"}:
                    with pytest.raises(KeyError):
                        left[Root(root)]
                now = configuration(state.budgets, session).accounts.budgets
                assert dict(now) == plainly_left(state.budgets, session, list(state.budgets.listed))


def test_a_session_holds_no_budgets_of_sessions_before_it() -> None:
    state, _ = after_queries(50)
    few = reached(state.sessions["s"])
    for _ in range(500):
        state = act(state, count("r0"))
    assert reached(state.sessions["s"]) <= few + 5


def reached(value: object) -> int:
    """How many objects a value keeps."""
    import gc

    seen: set[int] = set()
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type) or callable(each):
            continue
        seen.add(id(each))
        waiting += gc.get_referents(each)
    return len(seen)


@pytest.mark.parametrize("few", [maps.FEW, 1])
def test_a_root_that_is_overdrawn_by_rounding_stops_no_query_of_another(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1/41 is no whole number of units: what is rounded up is more than there is, and nobody's fault."""
    monkeypatch.setattr(maps, "FEW", few)
    state = take(NOTHING, Began("id"))
    for name, budget in (("r0", Fraction(1, 41)), ("r1", Fraction(1))):
        state = take(state, Registered(name, SCHEMA, budget, (name,)))
    state = act(state, count("r0", Fraction(1, 41)))
    assert decide(state.budgets, opened(None), count("r1")).charged == {"r1": Fraction(1, 100)}
    assert decide(state.budgets, opened(None), count("r0", Fraction(1, 10**9))).charged == {}
