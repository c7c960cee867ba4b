"""Sub-budgets: how a program hands a share of its budget to a part of itself.

PINQ's agents. A `Budget` limits what is charged to each root through the
tables that carry it, on top of the roots' own budgets. It is for parts of one
program that keep their word; between programs that do not, only the root's
budget counts (and, on a server, the analyst's cap).
"""

from collections.abc import Mapping
from fractions import Fraction
from threading import RLock
from types import MappingProxyType
from typing import overload

from fpinq.client.amounts import Amount, plain_amount
from fpinq.client.shown import visibly
from fpinq.model import epsilon as exact
from fpinq.model.errors import BadEpsilon

ZERO = Fraction(0)


@visibly
class Budget:
    """An amount of ε to spend, or to split."""

    def __init__(self, amount: object) -> None:
        self.amount: Fraction = (
            amount.amount if isinstance(amount, Budget) else exact.budget(plain_amount(amount))
        )
        self._spent: dict[str, Fraction] = {}
        self._given_away = ZERO
        self._parent: Budget | None = None
        self.lock = RLock()

    def __repr__(self) -> str:
        return f"Budget({Amount(self.amount)}, {self.remaining} left)"

    @property
    def remaining(self) -> Fraction:
        """What is left: the amount, less what was given away by splitting and what was spent."""
        return Amount(self.amount - self._given_away - max(self._spent.values(), default=ZERO))

    def left_at(self, root: str) -> Fraction:
        """What may still be charged to a root."""
        return self.amount - self._given_away - self._spent.get(root, ZERO)

    def spend(self, charged: Mapping[str, Fraction]) -> None:
        """Debit what a query may be charged; what it was not, less than nothing, is given back."""
        for root, amount in charged.items():
            self._spent[root] = self._spent.get(root, ZERO) + amount

    def descends_from(self, other: "Budget") -> bool:
        """Whether this is a share of the other, or of a share of it."""
        return self._parent is other or (self._parent is not None and self._parent.descends_from(other))

    @overload
    def split(self, shares: int, /) -> "tuple[Budget, ...]": ...
    @overload
    def split(self, *shares: object) -> "tuple[Budget, ...]": ...
    @overload
    def split(self, **shares: object) -> "Mapping[str, Budget]": ...
    def split(self, *shares: object, **named: object) -> "tuple[Budget, ...] | Mapping[str, Budget]":
        """Shares of what is left: split(2) for equal ones, split(0.3, 0.7) or split(a=0.3, b=0.7)."""
        if bool(shares) == bool(named):
            raise BadEpsilon("split(2), split(0.3, 0.7) or split(a=0.3, b=0.7)")
        with self.lock:
            if len(shares) == 1 and type(shares[0]) is int:
                if shares[0] < 1:
                    raise BadEpsilon("a budget splits into one or more shares")
                budgets = [_of(self.remaining / shares[0]) for _ in range(shares[0])]
            else:
                budgets = [Budget(share) for share in (shares or named.values())]
            total = sum((budget.amount for budget in budgets), ZERO)
            if total > self.remaining:
                raise BadEpsilon(f"the shares add up to {total}, and {self.remaining} is left to split")
            self._given_away += total
        for budget in budgets:
            budget._parent = self
        return MappingProxyType(dict(zip(named, budgets, strict=True))) if named else tuple(budgets)


def _of(amount: Fraction) -> Budget:
    """A budget of what was reckoned: what an ε leaves of a ρ has more digits than a program may write."""
    budget = Budget(0)
    budget.amount = amount
    return budget
