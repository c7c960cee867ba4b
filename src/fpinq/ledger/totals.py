"""Totals: one number in every entry that stands for all accounts after it.

    totals = Σ SHA-256(root, analyst, spent, total)   mod 2²⁵⁶, over all accounts

So whoever opens a ledger compares what the database says is spent with what the
last entry says, at once; and a charge changes one summand, however many accounts
there are. A sum of hashes is no proof against someone who rewrites the entries
too: that is what `verify` and an anchor are for.
"""

from collections.abc import Mapping
from hashlib import sha256

from fpinq.model.sessions import Account, Amounts

_MODULUS = 2**256


class Totals:
    """The accounts, and their number. What has changed is hashed when the number is asked for."""

    def __init__(self) -> None:
        self._hashes: dict[Account, int] = {}
        self._changed: dict[Account, Amounts] = {}
        self._number = 0
        self._text = _text(0)

    @property
    def text(self) -> str:
        """The number, as entries hold it."""
        if self._changed:
            for account, amounts in self._changed.items():
                hashed = _hash(account, amounts)
                self._number += hashed - self._hashes.get(account, 0)
                self._hashes[account] = hashed
            self._changed.clear()
            self._text = _text(self._number)
        return self._text

    def take(self, accounts: Mapping[Account, Amounts]) -> None:
        """These accounts are so from now on."""
        self._changed.update(accounts)

    def after(self, accounts: Mapping[Account, Amounts]) -> str:
        """What the text will be once these accounts are so."""
        text, number = self.text, self._number
        if not accounts:
            return text
        for account, amounts in accounts.items():
            number += _hash(account, amounts) - self._hashes.get(account, 0)
        return _text(number)


def totals_of(accounts: Mapping[Account, Amounts]) -> Totals:
    """The totals of accounts."""
    totals = Totals()
    totals.take(accounts)
    return totals


def _hash(account: Account, amounts: Amounts) -> int:
    root, analyst = account
    spent, total = amounts
    # With its length before it, no name can run into the next.
    line = f"{len(root)}:{root}{len(analyst)}:{analyst}{spent}/{total}"
    return int.from_bytes(sha256(line.encode("utf-8", "surrogatepass")).digest())


def _text(number: int) -> str:
    return f"{number % _MODULUS:064x}"
