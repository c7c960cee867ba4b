"""δ of small programs: what two runs can differ by, exactly, is within what the books were charged.

Every program of up to two constructions and two queries, over the real kernel: the largest probability that a
key is seen that one of two runs cannot have, over every way in which one record can spread, is at most what
the root paid of its δ. Wrong rules are refuted in the same scope.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from fpinq.model import books, semantics
from fpinq.model.accounts import Accounts, Part, Root, Source
from fpinq.model.actions import Assign, Partition, Query
from fpinq.model.domains import IntegerDomain
from fpinq.model.errors import ProgramError
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.notions import approximate
from fpinq.model.queries import Stable
from fpinq.model.semantics import BOTTOM, initial, step
from fpinq.model.transformations import Concat, Partitioning
from fpinq.runtime.finding import mechanism_of

S = Schema.of({"k": Type.INT64})
K, DELTA = Column("k"), Fraction(1, 50)
# Of much noise and of little: a wrong threshold shows where tails fall fast, a wrong charge where not.
EPSILONS = (Fraction(1, 2), Fraction(2))
CONSTRUCTIONS = [
    Assign("t", Concat(), ("A", "A")),
    Assign("u", Concat(), ("A", "t")),
    Assign("t", Concat(), ("p0", "A")),
    Partition(("p0", "p1"), "A", Partitioning(K, (0, 1))),
    Partition(("p0", "p1"), "t", Partitioning(K, (0, 1))),
]
TABLES = ["A", "t", "u", "p0", "p1"]


def query(table: str, distance: int, epsilon: Fraction) -> Query:
    return Query(table, epsilon, (Stable(K, IntegerDomain(0, 9), DELTA, distance, 10),))


def programs() -> Iterator[tuple[Any, ...]]:
    for n in range(3):
        for made in product(CONSTRUCTIONS, repeat=n):
            for (one, a), (two, b) in product(product(TABLES, [1, 3]), repeat=2):
                for epsilon in EPSILONS:
                    yield (*made, query(one, a, epsilon), query(two, b, epsilon))


def seen(threshold: int, noise: Any, distance: int) -> Fraction:
    """The most likely way to see a key that only one run has: one of all records, or one for each."""
    one = noise.tail(threshold - 1, 96)[0]
    return max(noise.tail(threshold - distance, 96)[0], 1 - (1 - one) ** distance)


def distances(accounts: Accounts) -> Iterator[dict[Source, int]]:
    """How far every source can be apart if one record of A is: of each partition, all of it in one part."""
    numbers = sorted(accounts.partitions)
    for chosen in product(*(range(accounts.partitions[number].parts) for number in numbers)):
        d: dict[Source, int] = {Root("A"): 1}
        for number, part in zip(numbers, chosen, strict=True):
            of = accounts.partitions[number].sensitivity
            d[Part(number, part)] = sum(s * d.get(source, 0) for source, s in of.items())
        yield d


def violations() -> int:
    found = 0
    for program in programs():
        c = initial({"A": (S, approximate(100, "0.9", "0.9"))})
        asked: list[tuple[Any, Any]] = []
        try:
            for action in program:
                before, taken = c, step(c, action)
                c = taken.configuration
                if isinstance(action, Query) and taken.label is not BOTTOM:
                    mechanism = mechanism_of(action.queries[0], action.epsilon)
                    asked.append((mechanism, before.table(action.table).sensitivity))
        except ProgramError:
            continue
        for d in distances(c.accounts):
            apart = [sum(s * d.get(source, 0) for source, s in v.items()) for _, v in asked]
            lost = sum(
                (seen(of.threshold, of.noise, n) for (of, _), n in zip(asked, apart, strict=True) if n),
                Fraction(0),
            )
            found += lost > books.paid_for_keys(c.accounts, Root("A"))
    return found


def test_what_can_be_seen_is_within_what_was_charged_for_every_small_program() -> None:
    assert violations() == 0


def test_a_kernel_that_ignores_the_distance_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantics, "check_distance", lambda *_: None)
    assert violations() > 0


def test_a_kernel_that_does_not_charge_delta_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    charge = books.charge
    monkeypatch.setattr(books, "charge", lambda accounts, v, at, delta=0: charge(accounts, v, at))
    assert violations() > 0


def test_a_kernel_that_charges_delta_once_whatever_the_scale_is_refuted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = books.charged_in_book

    def unscaled(accounts: Any, book: Any, root: Root, v: Any, per_unit: Fraction) -> Any:
        return real(accounts, book, root, {root: 1}, per_unit)

    monkeypatch.setattr(books, "charged_in_book", unscaled)
    assert violations() > 0


def test_a_threshold_of_one_less_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    from fpinq.noise.stability import StabilityHistogram

    right = StabilityHistogram.threshold.fget
    monkeypatch.setattr(StabilityHistogram, "threshold", property(lambda self: right(self) - 1))
    assert violations() > 0
