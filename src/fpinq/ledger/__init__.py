"""What was charged and released, durably: a chain and a store of `model.events`. Read it in this order.

1. ``forms``         what everything is called where it is written; ``wire``  as canonical JSON, and back
2. ``entries``       events, hash-chained; ``totals``  what is spent, as one number in each
   ``alike``         tables that are one table with other columns
3. ``acted``         what became of an action
   ``ledger``        a decision inside a transaction; ``kept``  the sessions it has ready
   ``together``      several threads' decisions in one; ``writing``  what they append and charge
   ``process``       which process this is: a forked one has a copy
4. ``store``         what it asks of a database; ``sqlite`` and ``postgres`` are two
   ``turnstile``     processes that write in turns
5. ``opening``       what is looked at before it is used; ``anchor``  its head, kept elsewhere
6. ``verify``        the chain recomputed, every event taken again; ``sharing``  by several processes
7. ``upgrade``       from an older format; ``format_1``  what that was
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

from fpinq.ledger.acted import Acted
from fpinq.ledger.errors import NoLedger
from fpinq.ledger.kept import MAX_BYTES
from fpinq.model.events import Registered
from fpinq.model.traces import Answered, Observation, Released

if TYPE_CHECKING:
    from fpinq.ledger.entries import Head
    from fpinq.ledger.ledger import Ledger, RootState
    from fpinq.ledger.store import Store

__all__ = [
    "Acted",
    "Answered",
    "Head",
    "Ledger",
    "Observation",
    "Registered",
    "Released",
    "RootState",
    "Store",
    "open_ledger",
    "open_store",
]


# What a program without a ledger does not need.
_WHERE = {
    "Head": "fpinq.ledger.entries",
    "Ledger": "fpinq.ledger.ledger",
    "RootState": "fpinq.ledger.ledger",
    "Store": "fpinq.ledger.store",
}


def __getattr__(name: str) -> object:
    """What is imported when it is first asked for."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return found


def open_ledger(
    where: str | os.PathLike[str],
    *,
    create: bool = True,
    anchor: object = None,
    in_turns: bool = False,
    kept_bytes: int = MAX_BYTES,
    session_bytes: int | None = None,
) -> "Ledger":
    """The ledger in a file, or in PostgreSQL if where is a postgresql:// address.

    One that is not there is made, unless create is False or the anchor (a
    path, or a command as a list) knows of one. Servers that share a file write
    in_turns. Sessions of about kept_bytes are kept ready, and a session's tables
    take session_bytes at most.
    """
    from fpinq.ledger.anchor import anchor_of, lost
    from fpinq.ledger.ledger import Ledger

    elsewhere = None if anchor is None else anchor_of(anchor)
    held = None if elsewhere is None else elsewhere.hold(None)
    try:
        store = open_store(where, create=create and held is None, in_turns=in_turns)
    except NoLedger:
        if elsewhere is None or held is None:
            raise
        raise lost(held, elsewhere.place) from None
    try:
        return Ledger(
            store, anchor=elsewhere, create=create, kept_bytes=kept_bytes, session_bytes=session_bytes
        )
    except BaseException:
        store.close()
        raise


def open_store(where: str | os.PathLike[str], *, create: bool = True, in_turns: bool = False) -> "Store":
    """The database of a ledger."""
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        from fpinq.ledger.postgres import PostgreSQL

        return PostgreSQL(where, create=create)
    from fpinq.ledger.sqlite import SQLite

    return SQLite(where, create=create, in_turns=in_turns)
