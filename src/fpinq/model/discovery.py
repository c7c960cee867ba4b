"""Queries that find keys: how many records have each key that enough records have.

Nobody lists the keys. There is a domain of them, of any size (`domains`), in
which every key has a number. Every key's count gets noise, and those that reach
a threshold are released: number, noisy count, number, noisy count, in the order
of the numbers; of too many, those with the largest noisy counts. How many
records, or keys, there are is nowhere else to be seen.

`Sparse` gives noise to all keys of the domain, those that no record has
included: it costs no δ, and a key that is shown may be one that nobody has.
`Stable` gives noise to those that records have and costs a δ: a key that is shown
is there. The mechanisms, and why they are private, are `noise.sparse` and
`noise.stability`.

A record is in one key. A person can be in several: in at most so many, once in
each (`Spread`), which is one statistic of the person, of that L1 norm and of that
L2 norm squared. Rows that are flattened first would cost the square of it.
"""

from abc import abstractmethod
from dataclasses import field
from fractions import Fraction
from typing import Literal as Tag

from fpinq.model.accounts import MAX_SENSITIVITY
from fpinq.model.domains import KeyDomain, ProductDomain, check_domain
from fpinq.model.epsilon import LIMIT
from fpinq.model.epsilon import delta as exact_delta
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Apply, Column, Expression, Schema
from fpinq.model.frozen import dataclass
from fpinq.model.kinds import Primitive
from fpinq.model.operators import type_of
from fpinq.model.plans import Plan, Term
from fpinq.model.statistics import Support
from fpinq.model.transformations import Distinct, Select, Take, Where, check_count

# How many keys are released at the most, and how many that no record has may be expected.
MAX_FOUND = 2**20
MOST_EXPECTED = 10_000
# The tail of a Gaussian is a long sum where it is so small.
MAX_BITS_AT_RHO = 320

ZERO = Fraction(0)


@dataclass(frozen=True)
class Spread:
    """Of each person, what a plan over their rows gives; its different keys count, so many at the most.

    They are the first in the canonical order, each once, whichever rows have them.
    """

    body: Plan
    keys: int
    op: Tag["spread"] = field(default="spread", repr=False)


class Discovery(Primitive):
    """What queries that find keys have in common."""

    key: Expression | tuple[Expression, ...]
    domain: KeyDomain
    at_most: int
    spread: Spread | None
    # δ₀: what is charged beside, for each unit of distance.
    delta: Fraction

    mechanism = "keys"
    monotone = True
    passes = 1

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What a key is made of: one expression, or several."""
        return self.key if isinstance(self.key, tuple) else (self.key,)

    @property
    def statistic(self) -> Support:
        of = self.expressions if self.spread is None else tuple(Column(name) for name in self._names)
        return Support(of, self.domain)

    @property
    def sensitivity(self) -> int:
        return 1 if self.spread is None else self.spread.keys

    @property
    def squared(self) -> int:
        """Δ₂²: keys that differ add up to their number, in L2 and squared as in L1."""
        return self.sensitivity

    @property
    def integers(self) -> int:
        return 2 * self.at_most

    @property
    def body(self) -> Plan:
        """The plan that gives a person's keys: those that are there, each once, the first so many."""
        assert self.spread is not None
        record = tuple(zip(self._names, self.expressions, strict=True))
        keys: Plan = Term(Select(record), (self.spread.body,))
        for name in self._names:
            present = Apply("not", (Apply("is_null", (Column(name),)),))
            keys = Term(Where(present), (keys,))
        return Term(Take(self.spread.keys), (Term(Distinct(), (keys,)),))

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(f"key{i}" for i in range(len(self.expressions)))

    @abstractmethod
    def check(self, schema: Schema) -> None:
        check_domain(self.domain)
        several = isinstance(self.domain, ProductDomain)
        if isinstance(self.key, tuple) != several or (several and len(self.expressions) < 2):
            raise BadQuery("a key of several columns, 2 or more, has a product of domains; of one, a domain")
        types = tuple(type_of(expression, schema) for expression in self.expressions)
        if types != self.domain.types:
            shown = [" and ".join(type_.value for type_ in each) for each in (self.domain.types, types)]
            raise BadQuery(f"the keys of this domain are {shown[0]}, and what is counted is {shown[1]}")
        if not 1 <= self.at_most <= MAX_FOUND:
            raise BadQuery(f"1 to {MAX_FOUND:,} keys are released in one query")
        if self.spread is not None:
            check_count(self.spread.keys, "keys per person")
            if self.spread.keys > MAX_SENSITIVITY:
                raise BadQuery(f"a person counts in at most {MAX_SENSITIVITY} keys")


@dataclass(frozen=True)
class Sparse(Discovery):
    """The keys of a domain whose noisy counts reach a threshold, whether a record has them or not.

    The threshold follows from how many keys that no record has are `expected`
    to be shown: a matter of accuracy, not of privacy.
    """

    key: Expression | tuple[Expression, ...]
    domain: KeyDomain
    expected: Fraction
    at_most: int
    spread: Spread | None = None
    op: Tag["sparse"] = field(default="sparse", repr=False)

    delta = ZERO

    def check(self, schema: Schema) -> None:
        super().check(schema)
        if not 0 < self.expected <= MOST_EXPECTED or self.expected.denominator > LIMIT:
            raise BadQuery(
                "how many keys without records are expected is an exact number above 0, "
                f"{MOST_EXPECTED:,} at the most: Fraction(1, 1000), for example"
            )


@dataclass(frozen=True)
class Stable(Discovery):
    """The keys that records have, whose noisy counts reach a threshold; at δ for each unit of distance.

    The threshold is right for tables that one record of a root changes by up to
    `distance` records: at least the scaling factor of the table that is asked.
    """

    key: Expression | tuple[Expression, ...]
    domain: KeyDomain
    delta: Fraction
    distance: int
    at_most: int
    spread: Spread | None = None
    op: Tag["stable"] = field(default="stable", repr=False)

    def check(self, schema: Schema) -> None:
        super().check(schema)
        exact_delta(self.delta)
        if not 1 <= self.distance <= MAX_SENSITIVITY:
            raise BadQuery("the distance of neighbours is a whole number, 1 or more")
