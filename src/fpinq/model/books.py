"""Books: the one charge, for roots of every notion.

The pure roots share one set of accounts, in ε. A concentrated root has accounts
of its own, its *book*, in ρ; and a root with a δ for keys one more, in δ. A book
is charged by the same rule, at κ per unit of distance instead of ε, and of what is
in it only its own root is held against a budget.

A query at ρ of a table t loses ρ·D² at distance D. One record of the root x moves
t by S_x(t) at the most, its scaling factor, so that ρ·D² ≤ (ρ·S)·D: it is charged
like a pure query at κ = ρ·S, and the root pays ρ·S². `notions.kappa` says what κ is of
the others. Noise that is right for ρ has no finite ε, so at ρ no pure root is
asked: that is a mistake, found before anything changes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from fpinq.model import accounts as of_one
from fpinq.model.accounts import (
    ZERO,
    Accounts,
    Books,
    PartitionAccount,
    Root,
    Sensitivity,
    charged,
    scales,
)
from fpinq.model.errors import NoDelta, NotConcentrated
from fpinq.model.maps import updated
from fpinq.model.notions import Amount, Rho, Total, is_concentrated, kappa, keys_delta_of
from fpinq.model.units import amount, units

NONE = Books({}, {}, {})
# What the δ of a root is called beside its name, where amounts are told by name.
FOR_KEYS = " δ"


def charge(accounts: Accounts, sensitivity: Sensitivity, at: Amount, delta: Fraction = ZERO) -> Accounts:
    """The accounts after a query at ε or ρ, and so much δ for each unit of distance: `accounts.charge`."""
    if accounts.books is None and not isinstance(at, Rho) and not delta:
        return of_one.charge(accounts, sensitivity, at)
    books, reached = accounts.books or NONE, scales(accounts, sensitivity)
    pure = check_notions(books, reached, at, delta)
    after = of_one.charge(accounts, sensitivity, at) if pure else accounts  # type: ignore[arg-type]
    losses: dict[Root, Accounts] = {}
    deltas: dict[Root, Accounts] = {}
    for root, scale in reached.items():
        if root in books.losses:
            losses[root] = charged_in_book(
                accounts, books.losses[root], root, sensitivity, per_unit(at, scale)
            )
        if delta:
            deltas[root] = charged_in_book(accounts, books.deltas[root], root, sensitivity, delta)
    all_of_them = Books(updated(books.losses, losses), updated(books.deltas, deltas), books.keys)
    return replace(after, raised=tuple(reached), books=None if accounts.books is None else all_of_them)


def per_unit(at: Amount, scale: int) -> Fraction:
    """κ; of what is asked at ε in whole units, rounded up: the exact numbers would grow with every query."""
    exact = kappa(at, scale)
    return exact if isinstance(at, Rho) else amount(units(exact))


def check_notions(books: Books, reached: Mapping[Root, int], at: Amount, delta: Fraction) -> list[Root]:
    """The pure roots among those that a query reaches; a ProgramError if one of them cannot be asked so."""
    pure = [root for root in reached if root not in books.losses]
    if isinstance(at, Rho) and pure:
        raise NotConcentrated(pure[0].name)
    if delta:
        for root in reached:
            if root not in books.deltas:
                raise NoDelta(root.name)
    return pure


def charged_in_book(
    accounts: Accounts, book: Accounts, root: Root, sensitivity: Sensitivity, per_unit: Fraction
) -> Accounts:
    """A root's book after a charge. It knows the partitions that all books know, and no other root."""
    seen = replace(book, partitions=Seen(accounts.partitions, root))
    return of_one.charge(seen, without_others(sensitivity, root), per_unit)


def fits(before: Accounts, charged: Accounts) -> bool:
    """C_x ≤ B_x after the charge, in the book of every root that it raised; and so of every δ."""
    fit = of_one.fits(before, charged)
    return fit if charged.books is None else fit and keys_fit(charged, charged.books)


def keys_fit(charged: Accounts, books: Books) -> bool:
    """What every root paid for keys is within its δ."""
    raised = [root for root in charged.raised if root in books.deltas]
    return all(paid_for_keys(charged, root) <= books.keys[root] for root in raised)


def paid_for_keys(accounts: Accounts, root: Root) -> Fraction:
    """How much δ a root has paid."""
    return ZERO if accounts.books is None else accounts.books.deltas[root].counters.get(root, ZERO)


def left_for_keys(accounts: Accounts) -> dict[str, Fraction]:
    """What is left of every δ for keys, by the name that it is told by."""
    books = accounts.books or NONE
    return {root.name + FOR_KEYS: books.keys[root] - paid_for_keys(accounts, root) for root in books.deltas}


def charged_for_keys(before: Accounts, after: Accounts) -> dict[str, Fraction]:
    """How much δ a charge added at each root, where that is any."""
    raised = [] if after.books is None else [root for root in after.raised if root in after.books.deltas]
    added = {root.name: paid_for_keys(after, root) - paid_for_keys(before, root) for root in raised}
    return {name: more for name, more in added.items() if more}


def price(accounts: Accounts, sensitivity: Sensitivity, at: Amount) -> dict[Root, Fraction]:
    """What a query at ε or ρ would add to each root now, in its own unit: a function of the public state."""
    added = charged(accounts, charge(accounts, sensitivity, at))
    return {root: added.get(root.name, ZERO) for root in accounts.budgets}


def price_for_keys(
    accounts: Accounts, sensitivity: Sensitivity, at: Amount, delta: Fraction
) -> dict[str, Fraction]:
    """What a query at ε or ρ would add now of each root's δ, by the name that it is told by."""
    added = charged_for_keys(accounts, charge(accounts, sensitivity, at, delta))
    return {root + FOR_KEYS: more for root, more in added.items()}


def certify(accounts: Accounts) -> None:
    """The certificate of every book."""
    of_one.certify(accounts)
    for book in (NONE if accounts.books is None else accounts.books)[:2]:
        for root in book:
            of_one.certify(replace(book[root], partitions=Seen(accounts.partitions, root)))


def written(accounts: Accounts) -> int:
    """How many counters there are, in all books."""
    books = accounts.books
    if books is None:
        return len(accounts.counters)
    each = (book[root] for book in books[:2] for root in book)
    return len(accounts.counters) + sum(1 + len(one.counters) for one in each)


def opened(books: Books | None, fresh: Mapping[Root, Total]) -> Books | None:
    """The books with those of more roots, that arrived with these budgets: pure ones have none."""
    losses = {root: EMPTY for root, total in fresh.items() if is_concentrated(total)}
    deltas = {root: delta for root, total in fresh.items() if (delta := keys_delta_of(total))}
    if not losses and not deltas:
        return books
    before = books or NONE
    return Books(
        updated(before.losses, losses),
        updated(before.deltas, dict.fromkeys(deltas, EMPTY)),
        updated(before.keys, deltas),
    )


# A book in which nothing is written.
EMPTY = Accounts({})


class Seen(Mapping[int, PartitionAccount]):
    """The partitions as a root's book knows them: of each c_π, the root itself and parts."""

    __slots__ = ("_all", "_root")

    def __init__(self, partitions: Mapping[int, PartitionAccount], root: Root) -> None:
        self._all, self._root = partitions, root

    def __getitem__(self, number: int) -> PartitionAccount:
        found = self._all[number]
        own = without_others(found.sensitivity, self._root)
        return found if own is found.sensitivity else PartitionAccount(found.parts, own)

    def __iter__(self) -> Iterator[int]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def without_others(sensitivity: Sensitivity, root: Root) -> Sensitivity:
    """A vector without the other roots: what they get is written in books of their own."""
    if all(source == root or not isinstance(source, Root) for source in sensitivity):
        return sensitivity
    return {source: s for source, s in sensitivity.items() if source == root or not isinstance(source, Root)}
