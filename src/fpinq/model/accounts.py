"""Sources, sensitivity vectors and accounts: the general charge.

A *source* is a root data set, with its own budget, or one part of one
partition. Every table carries a *sensitivity* vector v over sources: with d_s
the distance between source s in two runs, the table's distance is at most
v·d = Σ v(s)·d_s. The featherweight model's scaling factor is the case of one
root.

The accounts are public state: a counter C_s per source, and per partition π
its parts, the sensitivity c_π of the table that was partitioned and
M_π = the largest counter its parts have had. Over two runs with the same trace

    p ≤ q·exp(Ψ),   Ψ = Σ_s C_s·d_s − Σ_π M_π·(c_π·d)  ≤  Σ_roots C_x·d_x.

A query multiplies p/q by at most exp(ε·v·d) and raises Ψ by exactly ε·v·d:
what a partition forwards enters both sums and cancels.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from heapq import heappop, heappush
from typing import NamedTuple

from fpinq.model.errors import BadEpsilon, BadTransformation, KernelViolation

# Exact numbers may grow, but not without end.
MAX_SENSITIVITY = 10**18
MAX_BITS = 2048

ZERO = Fraction(0)
ONE = Fraction(1)


class Root(NamedTuple):
    """A data set with a budget of its own."""

    name: str


class Part(NamedTuple):
    """Part number `number` of a partition (0 is the oldest)."""

    partition: int
    number: int


Source = Root | Part
Sensitivity = Mapping[Source, int]


class Unbounded:
    """∞ as a stability: a change of one record may change any number of records."""

    def __repr__(self) -> str:
        return "∞"


UNBOUNDED = Unbounded()
Stability = int | Unbounded


@dataclass(frozen=True)
class PartitionAccount:
    """A partition π as the accounts know it: how many parts, and c_π."""

    parts: int
    sensitivity: Sensitivity


@dataclass(frozen=True)
class Accounts:
    """What every source has been charged. Counters not listed are 0.

    direct is what queries charged, without what partitions forwarded; mentions
    lists, for a source, the partitions of tables that depend on it.
    """

    budgets: Mapping[Root, Fraction]
    counters: Mapping[Source, Fraction] = field(default_factory=dict)
    direct: Mapping[Source, Fraction] = field(default_factory=dict)
    partitions: tuple[PartitionAccount, ...] = ()
    maxima: Mapping[int, Fraction] = field(default_factory=dict)
    mentions: Mapping[Source, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.partitions and not self.mentions:
            object.__setattr__(self, "mentions", _mentions(self.partitions))


def _mentions(partitions: Iterable[PartitionAccount]) -> dict[Source, tuple[int, ...]]:
    found: dict[Source, tuple[int, ...]] = {}
    for number, account in enumerate(partitions):
        for source in account.sensitivity:
            found[source] = (*found.get(source, ()), number)
    return found


def combine(stability: Sequence[int], sensitivities: Sequence[Sensitivity]) -> Sensitivity:
    """Σ cᵢ·vᵢ: the sensitivity of F(t₁…tₙ) from F's stability and the arguments' sensitivities."""
    combined: dict[Source, int] = {}
    for c, v in zip(stability, sensitivities, strict=True):
        for source, s in v.items():
            if c * s:
                combined[source] = combined.get(source, 0) + c * s
    if combined and max(combined.values()) > MAX_SENSITIVITY:
        raise BadTransformation(f"one record could change more than {MAX_SENSITIVITY} records of this table")
    return combined


def partition(accounts: Accounts, sensitivity: Sensitivity, parts: int) -> tuple[Accounts, tuple[Part, ...]]:
    """The accounts with a new partition of a table of this sensitivity, and its fresh sources."""
    fresh = fresh_parts(accounts, parts)
    number = len(accounts.partitions)
    mentions = {source: (*accounts.mentions.get(source, ()), number) for source in sensitivity}
    added = (*accounts.partitions, PartitionAccount(parts, sensitivity))
    return replace(accounts, partitions=added, mentions={**accounts.mentions, **mentions}), fresh


def fresh_parts(accounts: Accounts, parts: int) -> tuple[Part, ...]:
    """The sources of the next partition: no earlier partition has them."""
    return tuple(Part(len(accounts.partitions), index) for index in range(parts))


def charge(accounts: Accounts, sensitivity: Sensitivity, epsilon: Fraction) -> Accounts:
    """The accounts after a query at ε on a table of this sensitivity; whether it fits is asked of the result.

    (1) C_x += v(x)·ε for every source x.
    (2) For the partitions from newest to oldest: M′ = max(M_π, its parts' C);
        every source y gets C_y += c_π(y)·(M′ − M_π); M_π := M′.
    """
    counters, direct = dict(accounts.counters), dict(accounts.direct)
    for source, s in sensitivity.items():
        counters[source] = charged_directly(counters.get(source, ZERO), s, epsilon)
        direct[source] = direct.get(source, ZERO) + times(s, epsilon)
    maxima, raised = settle(accounts, counters, sensitivity)
    if max([counters[source].denominator for source in raised], default=1).bit_length() > MAX_BITS:
        raise BadEpsilon("too many different denominators: the exact sum has too many digits; use round ε")
    charged = Accounts(accounts.budgets, counters, direct, accounts.partitions, maxima, accounts.mentions)
    certify(charged, raised)
    return charged


def settle(
    accounts: Accounts, counters: dict[Source, Fraction], raised: Iterable[Source]
) -> tuple[dict[int, Fraction], set[Source]]:
    """(2) of the charge: forward what the raised parts added to their partitions' maxima.

    Raises counters in place; the new maxima, and every source that was raised.
    Only a partition with a raised part can have a new maximum, and it forwards
    to older sources only: visiting the raised ones, newest first, visits all.
    """
    maxima = dict(accounts.maxima)
    touched: set[Source] = set()
    parts: dict[int, list[Part]] = {}
    pending: list[int] = []

    def touch(source: Source) -> None:
        if source in touched:
            return
        touched.add(source)
        if isinstance(source, Part):
            if source.partition not in parts:
                heappush(pending, -source.partition)
            parts.setdefault(source.partition, []).append(source)

    for source in raised:
        touch(source)
    while pending:
        number = -heappop(pending)
        before = maxima.get(number, ZERO)
        after = new_maximum(before, [counters[part] for part in parts[number]])
        if after == before:
            continue
        maxima[number] = after
        for source, c in accounts.partitions[number].sensitivity.items():
            counters[source] = counters.get(source, ZERO) + forwarded(c, after - before)
            touch(source)
    return maxima, touched


def charged_directly(counter: Fraction, s: int, epsilon: Fraction) -> Fraction:
    """C_x + v(x)·ε."""
    return counter + times(s, epsilon)


def new_maximum(maximum: Fraction, raised: Iterable[Fraction]) -> Fraction:
    """M′: the largest counter that any part has had; those not raised are below M already."""
    return max(maximum, *raised)


def forwarded(c: int, growth: Fraction) -> Fraction:
    """c_π(y)·(M′ − M_π): what a source gets when a partition's maximum grows."""
    return times(c, growth)


def times(c: int, amount: Fraction) -> Fraction:
    """c·amount; most factors are 1, and a product of fractions is slow."""
    return amount if c == 1 else amount * c


def fits(before: Accounts, charged: Accounts) -> bool:
    """C_x ≤ B_x at every root, after the charge.

    `before` is a seam: the rule does not look at it, mutants do.
    """
    return all(charged.counters.get(root, ZERO) <= total for root, total in charged.budgets.items())


def price(accounts: Accounts, sensitivity: Sensitivity, epsilon: Fraction) -> dict[Root, Fraction]:
    """What a query at ε would add to each root now: a function of the public state."""
    charged = charge(accounts, sensitivity, epsilon)
    return {
        root: charged.counters.get(root, ZERO) - accounts.counters.get(root, ZERO)
        for root in accounts.budgets
    }


def charged(before: Accounts, after: Accounts) -> dict[str, Fraction]:
    """What was charged at each root between two states of the accounts, where that is anything."""
    found = {}
    for root in after.budgets:
        was, now = before.counters.get(root, ZERO), after.counters.get(root, ZERO)
        if was is not now and was != now:
            found[root.name] = now - was
    return found


def scaling_factor(accounts: Accounts, sensitivity: Sensitivity) -> int:
    """How many records of the table one record of a root may change: the price of ε = 1 on fresh counters."""
    fresh = Accounts(accounts.budgets, partitions=accounts.partitions, mentions=accounts.mentions)
    return max((int(added) for added in price(fresh, sensitivity, ONE).values()), default=0)


def remaining(accounts: Accounts) -> dict[Root, Fraction]:
    """B_x − C_x for every root."""
    return {root: total - accounts.counters.get(root, ZERO) for root, total in accounts.budgets.items()}


def certify(accounts: Accounts, sources: Iterable[Source] | None = None) -> None:
    """The certificate: C_s = direct(s) + Σ_π c_π(s)·M_π, and C_p ≤ M_π with equality for some part.

    Of all sources; or, as after a charge, of those it raised: the others kept
    their counters and their partitions' maxima, and the equality is `settle`'s.
    """
    for source in accounts.counters if sources is None else sources:
        counter = accounts.counters.get(source, ZERO)
        owed = accounts.direct.get(source, ZERO)
        for number in accounts.mentions.get(source, ()):
            if number in accounts.maxima:
                owed += times(accounts.partitions[number].sensitivity[source], accounts.maxima[number])
        if counter != owed:
            raise KernelViolation(f"the counter of {source} is {counter}, its charges add up to {owed}")
        if isinstance(source, Part) and counter > accounts.maxima.get(source.partition, ZERO):
            raise KernelViolation(f"{source} was charged {counter}, more than its partition's maximum")
    if sources is None:
        for number, account in enumerate(accounts.partitions):
            parts = (Part(number, index) for index in range(account.parts))
            largest = max(accounts.counters.get(part, ZERO) for part in parts)
            if largest != accounts.maxima.get(number, ZERO):
                raise KernelViolation(f"the maximum of partition {number} is not its parts' largest counter")
