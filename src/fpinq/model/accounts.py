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
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple

from fpinq.model.errors import BadEpsilon, BadTransformation, KernelViolation
from fpinq.model.frozen import dataclass
from fpinq.model.maps import FEW, Each, Folded, put, updated

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


UNKNOWN: Mapping[Source, Fraction] = {}


@dataclass(frozen=True)
class Accounts:
    """What every source has been charged. Counters not listed are 0.

    direct is what queries charged, without what partitions forwarded; received
    is what they forwarded, Σ_π c_π(s)·M_π. partitions are by number, 0 the oldest.
    raised are the roots that the last charge raised; what it did not touch is shared
    with the accounts before it. books are those of roots that are not pure, or have a δ;
    None if there are no such roots, as most programs have none.
    """

    budgets: Mapping[Root, Fraction]
    counters: Mapping[Source, Fraction] = field(default_factory=dict)
    direct: Mapping[Source, Fraction] = field(default_factory=dict)
    partitions: Mapping[int, PartitionAccount] = field(default_factory=dict)
    maxima: Mapping[int, Fraction] = field(default_factory=dict)
    received: Mapping[Source, Fraction] = field(default_factory=lambda: UNKNOWN, repr=False, compare=False)
    raised: tuple[Root, ...] = field(default=(), repr=False, compare=False)
    books: "Books | None" = None

    def __post_init__(self) -> None:
        if self.received is UNKNOWN:
            nothing = Accounts(self.budgets, partitions=self.partitions, received={})
            object.__setattr__(self, "received", forwards(nothing, self.maxima))


class Books(NamedTuple):
    """Accounts beside those of the pure roots, one for each root that needs its own (`books`).

    losses are in ρ, of every concentrated root; deltas in δ, of every root that has
    a δ for keys, and keys is how much that is.
    """

    losses: Mapping[Root, Accounts]
    deltas: Mapping[Root, Accounts]
    keys: Mapping[Root, Fraction]


def combine(stability: Sequence[int], sensitivities: Sequence[Sensitivity]) -> Sensitivity:
    """Σ cᵢ·vᵢ: the sensitivity of F(t₁…tₙ) from F's stability and the arguments' sensitivities."""
    pairs = [(c, v) for c, v in zip(stability, sensitivities, strict=True) if c and v]
    if len(pairs) == 1 and pairs[0][0] == 1 and largest(pairs[0][1]) <= MAX_SENSITIVITY:
        return pairs[0][1]
    combined = Sum(pairs)
    if combined.at_most <= MAX_SENSITIVITY and combined.is_long:
        return combined
    found = combined.found()
    if found and max(found.values()) > MAX_SENSITIVITY:
        raise BadTransformation(f"one record could change more than {MAX_SENSITIVITY} records of this table")
    return found


class Sum(Folded[Source, int]):
    """Σ cᵢ·vᵢ, added up when it is looked at: a table of n blocks is made of few, with n entries together."""

    __slots__ = ("at_most", "is_long")

    def __init__(self, pairs: Sequence[tuple[int, Sensitivity]]) -> None:
        vectors = [v for _, v in pairs]
        super().__init__(vectors, partial(add_up, [c for c, _ in pairs]))
        # No entry is larger; and whether they are too many to be added up before they are needed.
        self.at_most: int = sum([c * largest(v) for c, v in pairs])
        self.is_long = any(type(v) is Sum for v in vectors) or sum(map(len, vectors)) > FEW


def largest(v: Sensitivity) -> int:
    """What no entry is larger than."""
    return v.at_most if isinstance(v, Sum) else max(v.values())


def add_up(factors: Sequence[int], vectors: Sequence[Sensitivity]) -> Sensitivity:
    """Σ cᵢ·vᵢ."""
    combined: dict[Source, int] = {}
    for c, v in zip(factors, vectors, strict=True):
        for source, s in v.items():
            combined[source] = combined.get(source, 0) + c * s
    return combined


def partition(accounts: Accounts, sensitivity: Sensitivity, parts: int) -> tuple[Accounts, Sequence[Part]]:
    """The accounts with a new partition of a table of this sensitivity, and its fresh sources."""
    fresh = fresh_parts(accounts, parts)
    added = put(accounts.partitions, len(accounts.partitions), PartitionAccount(parts, sensitivity))
    return replace(accounts, partitions=added), fresh


def fresh_parts(accounts: Accounts, parts: int) -> Sequence[Part]:
    """The sources of the next partition: no earlier partition has them."""
    return Each(parts, partial(Part, len(accounts.partitions)))


def charge(accounts: Accounts, sensitivity: Sensitivity, epsilon: Fraction) -> Accounts:
    """The accounts after a query at ε on a table of this sensitivity; whether it fits is asked of the result.

    (1) C_x += v(x)·ε for every source x.
    (2) For the partitions from newest to oldest: M′ = max(M_π, its parts' C);
        every source y gets C_y += c_π(y)·(M′ − M_π); M_π := M′.
    """
    raised: dict[Source, Fraction] = {}
    direct: dict[Source, Fraction] = {}
    for source, s in sensitivity.items():
        raised[source] = charged_directly(accounts.counters.get(source, ZERO), s, epsilon)
        direct[source] = plus(accounts.direct.get(source, ZERO), times(s, epsilon))
    maxima = settle(accounts, raised)
    for counter in raised.values():
        if counter.denominator.bit_length() > MAX_BITS:
            raise BadEpsilon(
                "too many different denominators: the exact sum has too many digits; use round ε"
            )
    charged = Accounts(
        accounts.budgets,
        updated(accounts.counters, raised),
        updated(accounts.direct, direct),
        accounts.partitions,
        updated(accounts.maxima, maxima) if maxima else accounts.maxima,
        updated(accounts.received, forwards(accounts, maxima)) if maxima else accounts.received,
        tuple([source for source in raised if isinstance(source, Root)]),
        accounts.books,
    )
    certify(charged, raised)
    return charged


def settle(accounts: Accounts, raised: dict[Source, Fraction]) -> dict[int, Fraction]:
    """(2) of the charge: forward what the raised parts added to their partitions' maxima.

    Adds to the raised counters; the new maxima. Only a partition with a raised
    part can have a new maximum, and it forwards to older sources only: visiting
    the raised ones, newest first, visits all.
    """
    maxima: dict[int, Fraction] = {}
    parts: dict[int, list[Part]] = {}
    pending: list[int] = []
    fresh: Iterable[Source] = raised
    while True:
        for source in fresh:
            if isinstance(source, Part):
                if source.partition not in parts:
                    heappush(pending, -source.partition)
                parts.setdefault(source.partition, []).append(source)
        if not pending:
            return maxima
        number = -heappop(pending)
        before = accounts.maxima.get(number, ZERO)
        after = new_maximum(before, [raised[part] for part in parts[number]])
        fresh = []
        if after is not before and after != before:
            maxima[number] = after
            fresh = forward(accounts, raised, accounts.partitions[number].sensitivity, minus(after, before))


def forward(
    accounts: Accounts, raised: dict[Source, Fraction], sensitivity: Sensitivity, growth: Fraction
) -> list[Source]:
    """Raise what a partition depends on by its maximum's growth; those that were not raised before."""
    fresh = [source for source in sensitivity if source not in raised]
    for source, c in sensitivity.items():
        counter = raised[source] if source in raised else accounts.counters.get(source, ZERO)
        raised[source] = plus(counter, forwarded(c, growth))
    return fresh


def charged_directly(counter: Fraction, s: int, epsilon: Fraction) -> Fraction:
    """C_x + v(x)·ε."""
    return plus(counter, times(s, epsilon))


def new_maximum(maximum: Fraction, raised: Iterable[Fraction]) -> Fraction:
    """M′: the largest counter that any part has had; those not raised are below M already."""
    for counter in raised:
        if not at_most(counter, maximum):
            maximum = counter
    return maximum


def forwarded(c: int, growth: Fraction) -> Fraction:
    """c_π(y)·(M′ − M_π): what a source gets when a partition's maximum grows."""
    return times(c, growth)


def times(c: int, amount: Fraction) -> Fraction:
    """c·amount; most factors are 1, and a product of fractions is slow."""
    return amount if c == 1 else amount * c


def plus(a: Fraction, b: Fraction) -> Fraction:
    """a + b; Python's own sum asks first of which classes they are."""
    above, below = a.as_integer_ratio()
    if not above:
        return b
    above_b, below_b = b.as_integer_ratio()
    if below == below_b:
        return Fraction(above + above_b, below)
    return Fraction(above * below_b + above_b * below, below * below_b)


def minus(a: Fraction, b: Fraction) -> Fraction:
    """a − b, likewise."""
    above, below = a.as_integer_ratio()
    above_b, below_b = b.as_integer_ratio()
    if below == below_b:
        return Fraction(above - above_b, below)
    return Fraction(above * below_b - above_b * below, below * below_b)


def at_most(a: Fraction, b: Fraction) -> bool:
    """a ≤ b, likewise."""
    above, below = a.as_integer_ratio()
    above_b, below_b = b.as_integer_ratio()
    return above * below_b <= above_b * below


def fits(before: Accounts, charged: Accounts) -> bool:
    """C_x ≤ B_x after the charge, at every root that it raised: at the others nothing has changed.

    `before` is a seam: the rule does not look at it, a mutant does.
    """
    return all([at_most(paid(charged, root), charged.budgets[root]) for root in charged.raised])  # noqa: C419


def paid(accounts: Accounts, root: Root) -> Fraction:
    """C_x, in the book that is the root's."""
    books = accounts.books
    if books is not None and root in books.losses:
        accounts = books.losses[root]
    return accounts.counters.get(root, ZERO)


def charged(before: Accounts, after: Accounts) -> dict[str, Fraction]:
    """What a charge added at each root, where that is anything."""
    added: dict[str, Fraction] = {}
    for root in after.raised:
        more = minus(paid(after, root), paid(before, root))
        if more:
            added[root.name] = more
    return added


def scaling_factor(accounts: Accounts, sensitivity: Sensitivity) -> int:
    """How many records of the table one record of a root may change."""
    return max(scales(accounts, sensitivity).values(), default=0)


def scales(accounts: Accounts, sensitivity: Sensitivity) -> dict[Root, int]:
    """S_x: how many records of the table one record of each root may change, where that is any.

    It is the price of ε = 1 on fresh counters.
    """
    fresh = Accounts(accounts.budgets, partitions=accounts.partitions, received={})
    return {Root(name): int(s) for name, s in charged(fresh, charge(fresh, sensitivity, ONE)).items()}


def remaining(accounts: Accounts) -> dict[Root, Fraction]:
    """B_x − C_x for every root."""
    return {root: total - paid(accounts, root) for root, total in accounts.budgets.items()}


def forwards(accounts: Accounts, maxima: Mapping[int, Fraction]) -> dict[Source, Fraction]:
    """Σ_π c_π(s)·M_π of the sources that receive more once these are maxima."""
    received: dict[Source, Fraction] = {}
    for number, maximum in maxima.items():
        growth = minus(maximum, accounts.maxima.get(number, ZERO))
        for source, c in accounts.partitions[number].sensitivity.items():
            known = received.get(source, accounts.received.get(source, ZERO))
            received[source] = plus(known, times(c, growth))
    return received


def certify(accounts: Accounts, sources: Iterable[Source] | None = None) -> None:
    """The certificate: C_s = direct(s) + Σ_π c_π(s)·M_π, and C_p ≤ M_π with equality for some part.

    Of all sources; or, as after a charge, of those it raised: the others kept
    their counters and their partitions' maxima, and the equality is `settle`'s.
    """
    for source in accounts.counters if sources is None else sources:
        counter = accounts.counters.get(source, ZERO)
        owed = accounts.direct.get(source, ZERO)
        received = accounts.received.get(source)
        if received is not None:
            owed = plus(owed, received)
        if counter.numerator != owed.numerator or counter.denominator != owed.denominator:
            raise KernelViolation(f"the counter of {source} is {counter}, its charges add up to {owed}")
        if isinstance(source, Part) and not at_most(counter, accounts.maxima.get(source.partition, ZERO)):
            raise KernelViolation(f"{source} was charged {counter}, more than its partition's maximum")
    if sources is None:
        certify_maxima(accounts)


def certify_maxima(accounts: Accounts) -> None:
    """M_π is the largest counter of π's parts, and what is received is what the maxima forward."""
    largest: dict[int, Fraction] = {}
    for source, counter in accounts.counters.items():
        if isinstance(source, Part):
            largest[source.partition] = max(largest.get(source.partition, ZERO), counter)
    for number in accounts.partitions:
        if largest.get(number, ZERO) != accounts.maxima.get(number, ZERO):
            raise KernelViolation(f"the maximum of partition {number} is not its parts' largest counter")
    if accounts.received != replace(accounts, received=UNKNOWN).received:
        raise KernelViolation("what partitions forwarded is not what their maxima are")
