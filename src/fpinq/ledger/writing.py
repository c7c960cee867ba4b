"""Writing: what the steps of one transaction append and charge, and then all of it at once."""

from collections.abc import Mapping

from fpinq.ledger.entries import Head, Line, line
from fpinq.ledger.store import Charge, Pages
from fpinq.model.events import Event
from fpinq.model.sessions import Account, Amounts


class Writing:
    """A transaction of the writer. `head` is the last entry, appended ones included."""

    def __init__(self, pages: Pages, head: Head) -> None:
        self.pages = pages
        self.head = head
        self._before = head
        self._lines: list[Line] = []
        self._charges: dict[Account, Charge] = {}

    @property
    def appended(self) -> int:
        """How many entries."""
        return len(self._lines)

    def append(self, event: Event, at: str, totals: str, action: str | None = None) -> int:
        """The next entry; its number."""
        written = line(self.head, event, at, totals, action)
        self._lines.append(written)
        self.head = Head(written.seq, written.hash)
        return written.seq

    def charge(self, before: Mapping[Account, int], after: Mapping[Account, Amounts]) -> None:
        """Accounts that are others after the last entry; one that was not there before is opened."""
        for account, (spent, total) in after.items():
            first = self._charges.get(account)
            found = before.get(account) if first is None else first.before
            self._charges[account] = Charge(found, spent, total)

    def write(self) -> None:
        """All that was appended: the entries, the head, the accounts; LedgerCorrupt if it does not fit."""
        if self._lines:
            self.pages.write(self._lines, self._before, self._charges)
