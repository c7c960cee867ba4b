"""Entries: the trace, hash-chained.

An entry is one line of canonical JSON that holds the hash of the entry before
it; its own hash is the SHA-256 of that line. So the hash of the last entry, the
*head*, stands for everything that was ever written. It also holds the `totals`
of all accounts after it: what is spent is in the chain, not only beside it.

    ledger    the first entry: which ledger this is
    root      a data set: name, shape, budget, content hashes, unit, caps
    action    one step of a program: the action, the rule that applied, what it charged
    answer    what was released for a query
    freeze    a data set may not be asked until it is unfrozen
    unfreeze
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, NamedTuple

from fpinq.ledger.errors import LedgerCorrupt
from fpinq.ledger.observations import Released
from fpinq.ledger.wire import canonical, from_json, to_json
from fpinq.model.actions import Action
from fpinq.model.epsilon import budget as exact_budget
from fpinq.model.plans import Shape

FORMAT = 2
# What the first entry follows: nothing.
NOTHING = "0" * 64


# json.loads, without looking for spaces: a million entries are read at a time.
_SCAN = json.JSONDecoder().scan_once  # type: ignore[attr-defined]

# Where the owner's entries are filed. No program has this session.
OWNER = ""


class Head(NamedTuple):
    """The last entry's number and hash."""

    seq: int
    hash: str


# The head of a ledger in which nothing is written yet.
START = Head(-1, NOTHING)


@dataclass(frozen=True)
class Began:
    """The first entry. The id is random: no two ledgers have the same hashes."""

    id: str
    format: int = FORMAT

    kind = "ledger"


@dataclass(frozen=True)
class Registered:
    """A root: a data set with a budget of its own.

    `contents` are hashes of its data. An analyst may spend at most
    `caps[analyst]` of the budget, or `cap` if not listed; None is no limit but
    the budget. A block is a root that was appended to another, `block_of`.
    `read_off` says that the types of its columns were not stated but read off
    the data.
    """

    name: str
    shape: Shape
    budget: Fraction
    contents: tuple[str, ...] = ()
    unit: str | None = None
    caps: Mapping[str, Fraction] | None = None
    cap: Fraction | None = None
    block_of: str | None = None
    read_off: bool = False
    # Of tables in memory, a seal of each column (`alike`).
    columns: tuple[tuple[str, ...], ...] = ()

    kind = "root"

    @staticmethod
    def of(
        name: str,
        shape: Shape,
        budget: object,
        *,
        contents: Iterable[str] = (),
        unit: str | None = None,
        caps: Mapping[str, object] | None = None,
        cap: object = None,
        block_of: str | None = None,
        read_off: bool = False,
        columns: tuple[tuple[str, ...], ...] = (),
    ) -> "Registered":
        """A root, from whatever numbers the owner wrote; BadEpsilon if they are none."""
        own = {who: exact_budget(limit) for who, limit in sorted(caps.items())} if caps else None
        limit = None if cap is None else exact_budget(cap)
        hashes = tuple(sorted(set(contents)))
        return Registered(
            name, shape, exact_budget(budget), hashes, unit, own, limit, block_of, read_off, columns
        )

    def cap_of(self, analyst: str | None) -> Fraction | None:
        """How much of the budget an analyst may spend; None if there is no limit of their own."""
        if analyst is None:
            return None
        return (self.caps or {}).get(analyst, self.cap)


@dataclass(frozen=True)
class Took:
    """A program took a step: its action, the rule that applied and what it charged at each root."""

    session: str
    analyst: str | None
    request: str | None
    action: Action
    rule: str
    charged: Mapping[str, Fraction]

    kind = "action"


@dataclass(frozen=True)
class Recorded:
    """What was released for the query in entry `answers`."""

    answers: int
    released: tuple[Released, ...]

    kind = "answer"


@dataclass(frozen=True)
class Froze:
    """The owner froze a data set."""

    name: str

    kind = "freeze"


@dataclass(frozen=True)
class Unfroze:
    """The owner unfroze a data set."""

    name: str

    kind = "unfreeze"


Body = Began | Registered | Took | Recorded | Froze | Unfroze
_KINDS: dict[str, type] = {body.kind: body for body in (Began, Registered, Took, Recorded, Froze, Unfroze)}


class Line(NamedTuple):
    """An entry as it is stored. The columns beside the text repeat what the text says, to be found by."""

    seq: int
    hash: str
    text: str
    session: str | None = None
    request: str | None = None
    answers: int | None = None


# What every entry says, whatever its kind.
EVERY = frozenset({"kind", "seq", "previous", "at", "totals"})


def line(head: Head, body: Body, at: str, totals: str) -> Line:
    """The next entry after head. The time is for people: nothing is decided by it."""
    fields = to_json(body)
    del fields["op"]
    fields |= {"kind": body.kind, "seq": head.seq + 1, "previous": head.hash, "at": at, "totals": totals}
    text = canonical(fields)
    return Line(head.seq + 1, hash_of(text), text, *_filed(fields))


def hash_of(text: str) -> str:
    """SHA-256 of an entry's line."""
    return sha256(text.encode() if text.isascii() else text.encode("utf-8", "surrogatepass")).hexdigest()


def check_hash(stored: Line) -> None:
    """LedgerCorrupt unless an entry's text has its hash."""
    if hash_of(stored.text) != stored.hash:
        raise LedgerCorrupt(stored.seq, "its text does not have its hash")


def check_line(stored: Line, head: Head) -> dict[str, Any]:
    """The fields of an entry that follows head; LedgerCorrupt if it does not, or is not what was written."""
    if stored.seq != head.seq + 1:
        raise LedgerCorrupt(head.seq + 1, f"missing: entry {stored.seq} comes next")
    check_hash(stored)
    fields = parsed(stored)
    if fields.get("previous") != head.hash or fields.get("seq") != stored.seq:
        raise LedgerCorrupt(stored.seq, "does not follow from the entry before")
    if (stored.session, stored.request, stored.answers) != _filed(fields):
        raise LedgerCorrupt(stored.seq, "is filed under what it does not say")
    return fields


def _filed(fields: Mapping[str, Any]) -> tuple[str | None, str | None, int | None]:
    """Session, request and answered entry. What is no program's is filed under the session ""."""
    if fields["kind"] == Recorded.kind:
        return None, None, fields["answers"]
    return fields.get("session", OWNER), fields.get("request"), None


def parsed(stored: Line) -> dict[str, Any]:
    """The fields of an entry's text."""
    try:
        fields, end = _SCAN(stored.text, 0)
    except (ValueError, StopIteration, RecursionError):
        raise LedgerCorrupt(stored.seq, "is not JSON") from None
    if end != len(stored.text) or type(fields) is not dict or fields.get("kind") not in _KINDS:
        raise LedgerCorrupt(stored.seq, "is no entry")
    return fields


def body_of(stored: Line) -> Body:
    """What an entry says; LedgerCorrupt if its text is not what was written."""
    check_hash(stored)
    return body_from(stored.seq, parsed(stored))


def body_from(seq: int, fields: Mapping[str, Any]) -> Body:
    """What an entry's fields say; LedgerCorrupt if it cannot be read."""
    own = {name: value for name, value in fields.items() if name not in EVERY}
    try:
        body: Body = from_json(own, _KINDS[fields["kind"]])
    except (ValueError, TypeError, KeyError) as error:
        raise LedgerCorrupt(seq, f"cannot be read: {error}") from None
    return body
