"""Upgrade: a ledger of an older format becomes one of this, in one transaction, with all that was charged.

    read      every entry by the rules of then; the head and the accounts are what they say
    set aside the entries as they are, in a table of their own: charges, answers and hashes stay
    begin     a new chain of the same id: the same roots and freezes, and what was spent
              with the hash of the last older entry
    replay    the new chain, as `verify` does, before anything of it is there for others

The accounts stay as they are. Programs begin anew: what they were charged is spent
as others' is, and the tables that they had bound are gone. A process that still has
the older ledger open finds another head, and stops.
"""

import hmac
import secrets
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from fpinq.ledger.entries import START, parsed
from fpinq.ledger.errors import LedgerCorrupt, NoLedger, OtherFormat
from fpinq.ledger.format_1 import FORMAT as OLDER
from fpinq.ledger.format_1 import Older, read
from fpinq.ledger.store import Pages, Store
from fpinq.ledger.totals import NONE
from fpinq.ledger.verify import check_accounts, replay
from fpinq.ledger.writing import Writing
from fpinq.model.events import FORMAT, Began, Event, Froze, Registered
from fpinq.model.sessions import NOTHING, amounts, changed, take


def upgrade(store: Store) -> Older | None:
    """Upgrade a ledger; what it was, or None if it is of this format already.

    LedgerCorrupt, and nothing is changed, if it is not what was written;
    OtherFormat if it is newer.
    """
    with store.writing(durable=True) as statements:
        pages = Pages(statements)
        if _format_of(pages) == FORMAT:
            return None
        older = read(pages.after(START.seq))
        if pages.head() != older.head:
            raise LedgerCorrupt(older.head.seq, "the head is not the last entry")
        check_accounts(amounts(older.budgets, older.budgets.spent), pages.accounts(), older.head)
        store.set_aside(statements, OLDER)
        pages.begin_again()
        _write(pages, _events(older, _key(pages)))
        replayed = replay(pages.after(START.seq)).state.budgets
        check_accounts(amounts(replayed, replayed.spent), pages.accounts(), pages.head())
    return older


def _format_of(pages: Pages) -> int:
    first = pages.line(0)
    if first is None:
        raise NoLedger("there is a place for a ledger, but none has begun")
    found = parsed(first).get("format")
    if found not in (OLDER, FORMAT):
        raise OtherFormat(found, FORMAT) if type(found) is int else LedgerCorrupt(0, "says no format")
    return int(found)


def _key(pages: Pages) -> bytes | None:
    """None if contents are sealed already; the first ledgers of format 1 had no key."""
    if pages.has_secret():
        return None
    key = secrets.token_bytes(32)
    pages.keep_secret(key)
    return key


def _events(older: Older, key: bytes | None) -> Iterator[Event]:
    """The new chain."""
    yield Began(older.id)
    for root in older.budgets.listed.values():
        yield root if key is None else _sealed(root, key)
    for name in sorted(older.budgets.frozen):
        yield Froze(name)
    yield older.upgraded()


def _sealed(root: Registered, key: bytes) -> Registered:
    seals = [hmac.new(key, found.encode(), "sha256").hexdigest() for found in root.contents]
    return replace(root, contents=tuple(sorted(seals)))


def _write(pages: Pages, events: Iterator[Event]) -> None:
    now, state, totals = datetime.now(UTC).isoformat(timespec="milliseconds"), NOTHING, NONE
    writing = Writing(pages, START)
    for event in events:
        state = take(state, event)
        totals = totals.after(changed(state.budgets, event))
        writing.append(event, now, totals.text)
    writing.write()
