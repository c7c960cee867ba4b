"""Entries: the trace, hash-chained.

An entry is one event as a line of canonical JSON that holds the hash of the entry before
it; its own hash is the SHA-256 of that line. So the hash of the last entry, the
*head*, stands for everything that was ever written. It also holds the `totals`
of all accounts after it: what is spent is in the chain, not only beside it.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

from fpinq.ledger.errors import BadWire, LedgerCorrupt
from fpinq.ledger.wire import canonical, from_json, to_json
from fpinq.model.actions import Action
from fpinq.model.events import KINDS, Event, Recorded, Took

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
# How much the entries of a step and of an answer say; under which names, their texts are compared for.
_ACTION = len(EVERY | {"session", "analyst", "request", "action", "rule", "charged"})
_ANSWER = len(EVERY | {"answers", "released"})


def line(head: Head, body: Event, at: str, totals: str, action: str | None = None) -> Line:
    """The next entry after head. The time is for people: nothing is decided by it.

    action is the `action_text` of a step, where it is known already.
    """
    seq = head.seq + 1
    every: dict[str, Any] = {"seq": seq, "previous": head.hash, "at": at, "totals": totals}
    if isinstance(body, Recorded):
        every["answers"] = body.answers
        text = answer_text(every, canonical(to_json(body.released)))
        return Line(seq, hash_of(text), text, answers=body.answers)
    if action is not None and isinstance(body, Took):
        every |= {"session": body.session, "analyst": body.analyst, "request": body.request}
        every |= {"rule": body.rule.value, "charged": to_json(body.charged)}
        text = action[:-1] + after_action(every)
        return Line(seq, hash_of(text), text, body.session, body.request)
    fields = {**to_json(body), "kind": body.kind, **every}
    del fields["op"]
    text = canonical(fields)
    return Line(seq, hash_of(text), text, *_filed(fields))


def action_text(action: Action) -> str:
    """How the entry of an action begins; BadWire if it cannot be written."""
    return canonical(to_json({"action": action}))


def hash_of(text: str) -> str:
    """SHA-256 of an entry's line."""
    return sha256(text.encode() if text.isascii() else text.encode("utf-8", "surrogatepass")).hexdigest()


def check_hash(stored: Line) -> None:
    """LedgerCorrupt unless an entry's text has its hash."""
    if type(stored.text) is not str or hash_of(stored.text) != stored.hash:
        raise LedgerCorrupt(stored.seq, "its text does not have its hash")


def check_next(stored: Line, head: Head) -> None:
    """LedgerCorrupt unless an entry's number is the next one after head."""
    if stored.seq != head.seq + 1:
        raise LedgerCorrupt(head.seq + 1, f"missing: entry {stored.seq} comes next")


def check_line(stored: Line, head: Head) -> dict[str, Any]:
    """The fields of an entry that follows head; LedgerCorrupt if it does not, or is not what was written."""
    check_next(stored, head)
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
        return None, None, fields.get("answers")
    return fields.get("session", OWNER), fields.get("request"), None


def parsed(stored: Line) -> dict[str, Any]:
    """The fields of an entry's text."""
    try:
        fields, end = _SCAN(stored.text, 0)
    except (ValueError, StopIteration, RecursionError):
        raise LedgerCorrupt(stored.seq, "is not JSON") from None
    if end != len(stored.text) or type(fields) is not dict or str(fields.get("kind")) not in KINDS:
        raise LedgerCorrupt(stored.seq, "is no entry")
    return fields


def body_of(stored: Line) -> Event:
    """What an entry says; LedgerCorrupt if its text is not what was written."""
    check_hash(stored)
    return body_from(stored.seq, parsed(stored))


def body_from(seq: int, fields: Mapping[str, Any]) -> Event:
    """What an entry's fields say; LedgerCorrupt if it cannot be read."""
    own = {name: value for name, value in fields.items() if name not in EVERY}
    try:
        event: Event = from_json(own, KINDS[fields["kind"]])
    except (BadWire, TypeError, ValueError, KeyError) as error:
        raise LedgerCorrupt(seq, f"cannot be read: {error}") from None
    return event


# ── how they are written ─────────────────────────────────────────────────────────────

# What comes after the action of a step: no name within an action, and within a text its quotes are escaped.
AFTER_ACTION = ',"analyst":'


def after_action(f: Mapping[str, Any]) -> str:
    """What `canonical` writes of a step behind its action: in the order of the names."""
    charged = ",".join([f"{_text(root)}:{_text(cost)}" for root, cost in sorted(f["charged"].items())])
    return (
        f'{AFTER_ACTION}{_name(f["analyst"])},"at":{_text(f["at"])},"charged":{{{charged}}},"kind":"action",'
        f'"previous":{_text(f["previous"])},"request":{_name(f["request"])},"rule":{_text(f["rule"])},'
        f'"seq":{f["seq"]!r},"session":{_text(f["session"])},"totals":{_text(f["totals"])}}}'
    )


def answer_text(f: Mapping[str, Any], released: str) -> str:
    """What `canonical` writes of an answer, in the order of the names."""
    return (
        f'{{"answers":{f["answers"]!r},"at":{_text(f["at"])},"kind":"answer","previous":{_text(f["previous"])},'
        f'"released":{released},"seq":{f["seq"]!r},"totals":{_text(f["totals"])}}}'
    )


# A text as JSON writes it; TypeError if it is something else.
_text = encode_basestring_ascii


def _name(value: Any) -> str:
    """A text, or none."""
    return "null" if value is None else _text(value)


def check_written(text: str, written: str) -> None:
    """BadWire unless a text is the one that is written."""
    if text != written:
        raise BadWire("it is not as it is written")


def check_took(text: str, f: Mapping[str, Any]) -> str:
    """How the entry of a step begins, its `action_text` but for the last brace; BadWire if not as written."""
    if len(f) != _ACTION:
        raise BadWire("it says more than an action does")
    begins = text[: text.find(AFTER_ACTION)]
    check_written(text, begins + after_action(f))
    return begins


def check_recorded(text: str, f: Mapping[str, Any]) -> None:
    """BadWire unless the entry of an answer is as it is written."""
    if len(f) != _ANSWER:
        raise BadWire("it says more than an answer does")
    # All of them are integers, which Python writes as JSON does, but for spaces.
    check_written(text, answer_text(f, repr(f["released"]).replace(" ", "")))
