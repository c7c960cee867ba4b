"""Opening: what is looked at before a ledger is used. As much of a long one as of a short one.

    the last RECENT entries    each follows from the one before, and has its hash
    the owner's entries        each has its hash, and the next one knows it
    the accounts               each has the total that was promised; together they
                               are what the last entry says

What is edited elsewhere is found when it is read (a session's own entries, an
answer), and by `verify`, which reads everything and takes every step again.
"""

from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from fpinq.ledger.entries import START, Head, Line, body_of, check_hash, check_line, parsed
from fpinq.ledger.errors import LedgerCorrupt, OtherFormat
from fpinq.ledger.store import Pages
from fpinq.ledger.totals import NONE, Totals, totals_of
from fpinq.model.errors import NotAsRecorded
from fpinq.model.events import FORMAT, Began, Registered, Took, Upgraded
from fpinq.model.sessions import Budgets, owned
from fpinq.model.units import units

RECENT = 1000


class Opened(NamedTuple):
    """A ledger as it is now, but for its sessions: they are replayed when they act."""

    id: str
    head: Head
    # The last entry that is surely on disk: what is only noted may be lost with the power.
    durable: Head
    budgets: Budgets
    totals: Totals


def look(pages: Pages) -> Opened:
    """A ledger that has begun; LedgerCorrupt if it is not what was written, as far as this looks."""
    check_format(pages)
    head = pages.head()
    last, synced = _recent(pages, head)
    began, budgets, owners = _owners(pages, head)
    budgets, totals = read_accounts(pages, budgets, head, last.get("totals"))
    return Opened(began.id, head, max(synced, owners), budgets, totals)


def check_format(pages: Pages) -> None:
    """OtherFormat if the first entry says another format than this one: nothing else of it is looked at.

    Whatever a format is, its first entry says which.
    """
    first = pages.line(0)
    found = None if first is None else parsed(first).get("format")
    if type(found) is int and found != FORMAT:
        raise OtherFormat(found, FORMAT)


def take_owners(budgets: Budgets, stored: Line) -> Budgets:
    """The budgets after one more of the owner's entries."""
    try:
        return owned(budgets, body_of(stored), stored.seq)
    except NotAsRecorded as error:
        raise LedgerCorrupt(stored.seq, str(error)) from None


def read_accounts(pages: Pages, budgets: Budgets, head: Head, written: object) -> tuple[Budgets, Totals]:
    """The budgets with what is spent of them; LedgerCorrupt unless it is what the last entry says."""
    accounts = pages.accounts()
    totals = totals_of(accounts)
    if totals.text != written:
        raise LedgerCorrupt(head.seq, "what is spent (the accounts) is not what this entry says")
    for account, (_, total) in accounts.items():
        promised = budgets.promised(account)
        if promised is None or units(promised) != total:
            raise LedgerCorrupt(head.seq, f"the account of {account[0]!r} is not what was promised")
    if missing := [name for name in budgets.listed if (name, "") not in accounts]:
        raise LedgerCorrupt(head.seq, f"{missing[0]!r} has no account")
    spent = {account: spent for account, (spent, _) in accounts.items()}
    return replace(budgets, spent=spent), totals


def _recent(pages: Pages, head: Head) -> tuple[dict[str, Any], Head]:
    """The fields of the last entry, with the links to it checked; and the last one that was synced."""
    first = max(head.seq - RECENT, 0)
    lines = list(islice(pages.after(first - 1), head.seq - first + 2))
    if not lines or lines[-1].seq != head.seq or lines[-1].hash != head.hash:
        raise LedgerCorrupt(head.seq, "the head is not the last entry")
    before, fields, synced = START, {"totals": NONE.text}, START
    if first:  # what it follows is not looked at
        before, fields = Head(first - 1, str(parsed(lines[0]).get("previous"))), parsed(lines[0])
    for stored in lines:
        totals, fields = fields.get("totals"), check_line(stored, before)
        if fields.get("totals") != totals and not _moves_totals(fields):
            raise LedgerCorrupt(stored.seq, "it charges nothing, but its totals are others")
        before = Head(stored.seq, stored.hash)
        synced = before if _is_synced(fields) else synced
    return fields, synced


def _moves_totals(fields: dict[str, Any]) -> bool:
    return bool(fields.get("charged")) or fields["kind"] in (Registered.kind, Upgraded.kind)


def _is_synced(fields: dict[str, Any]) -> bool:
    return fields["kind"] != Took.kind or str(fields.get("rule")).startswith("Query")


def _owners(pages: Pages, head: Head) -> tuple[Began, Budgets, Head]:
    """The first entry, what was promised since, and the last of these entries."""
    budgets = Budgets()
    owners = list(pages.of_owner())
    began = body_of(owners[0]) if owners else None
    if not isinstance(began, Began) or owners[0].seq != 0:
        raise LedgerCorrupt(0, "is not there, or does not say which ledger this is")
    for stored in owners:
        _check_known(pages, stored, head)
        budgets = take_owners(budgets, stored)
    return began, budgets, Head(owners[-1].seq, owners[-1].hash)


def _check_known(pages: Pages, stored: Line, head: Head) -> None:
    """LedgerCorrupt unless an entry has its hash, and the next one knows it."""
    check_hash(stored)
    if stored.seq < head.seq:
        after = pages.line(stored.seq + 1)
        if after is None or parsed(after).get("previous") != stored.hash:
            raise LedgerCorrupt(stored.seq, "the entry after it does not follow from it")
