"""Totals: one number in every entry that stands for all accounts after it.

    totals = Σ SHA-256(root, analyst, spent, total)   mod 2²⁵⁶, over all accounts

So whoever opens a ledger compares what the database says is spent with what the
last entry says, at once; and a charge changes one summand, however many accounts
there are. A sum of hashes is no proof against someone who rewrites the entries
too: that is what `verify` and an anchor are for.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from fpinq.model.maps import updated
from fpinq.model.sessions import Account, Amounts

_MODULUS = 2**256


class Totals(NamedTuple):
    """The summand of each account, their sum, and that as entries hold it."""

    hashes: Mapping[Account, int]
    number: int
    text: str

    def after(self, accounts: Mapping[Account, Amounts]) -> "Totals":
        """The totals once these accounts are so."""
        if not accounts:
            return self
        hashes = {account: _hash(account, amounts) for account, amounts in accounts.items()}
        more = sum([hashed - self.hashes.get(account, 0) for account, hashed in hashes.items()])
        number = (self.number + more) % _MODULUS
        return Totals(updated(self.hashes, hashes), number, f"{number:064x}")


# There is no account yet.
NONE = Totals({}, 0, "0" * 64)


def totals_of(accounts: Mapping[Account, Amounts]) -> Totals:
    """The totals of accounts."""
    return NONE.after(accounts)


def _hash(account: Account, amounts: Amounts) -> int:
    root, analyst = account
    spent, total = amounts
    # With its length before it, no name can run into the next.
    line = f"{len(root)}:{root}{len(analyst)}:{analyst}{spent}/{total}"
    return int.from_bytes(sha256(line.encode("utf-8", "surrogatepass")).digest())
