"""Entries: the trace, hash-chained.

An entry is one event as a line of canonical JSON that holds the hash of the entry before
it; its own hash is the SHA-256 of that line. So the hash of the last entry, the
*head*, stands for everything that was ever written. It also holds the `totals`
of all accounts after it: what is spent is in the chain, not only beside it.
"""

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from types import NoneType
from typing import Any, NamedTuple

from fpinq.ledger.errors import BadWire, LedgerCorrupt
from fpinq.ledger.wire import FEW, are_numbers, canonical, from_json, to_json
from fpinq.model.actions import Action
from fpinq.model.closed import check_closed
from fpinq.model.errors import BadAction
from fpinq.model.events import KINDS, Event, Recorded, Took
from fpinq.model.semantics import Rule
from fpinq.model.traces import Released

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


def line(head: Head, body: Event, at: str, totals: str, action: str | None = None) -> Line:
    """The next entry after head. The time is for people: nothing is decided by it.

    action is the `action_text` of a step, where it is known already.
    """
    every = {"kind": body.kind, "seq": head.seq + 1, "previous": head.hash, "at": at, "totals": totals}
    if action is not None and isinstance(body, Took):
        own = {"session": body.session, "analyst": body.analyst, "request": body.request}
        fields = {**own, "rule": body.rule.value, "charged": to_json(body.charged), **every}
        text = action[:-1] + _after_action(fields)
    else:
        fields = {**to_json(body), **every}
        del fields["op"]
        text = canonical(fields)
    return Line(head.seq + 1, hash_of(text), text, *_filed(fields))


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


# ── many of them ─────────────────────────────────────────────────────────────────────

# Programs ask the same things again: this many are read once.
MAX_DECODED = 20_000
# How much the entries of a step and of an answer say; under which names, their texts are compared for.
_ACTION = len(EVERY | {"session", "analyst", "request", "action", "rule", "charged"})
_ANSWER = len(EVERY | {"answers", "released"})
_NAMES = (str, NoneType)
# What comes after the action of a step: no name within an action, and within a text its quotes are escaped.
_AFTER_ACTION = ',"analyst":'
# How a rule stands in an entry: whoever looks only for what is charged looks for this.
WRITTEN: Mapping[Rule, str] = {rule: f'"rule":{canonical(rule.value)}' for rule in Rule}
_RULES: Mapping[str, Rule] = {rule.value: rule for rule in Rule}


class Reader:
    """Reads what entries say, as `body_from` does; but each action and each charge once."""

    def __init__(self) -> None:
        self._actions: dict[str, Action] = {}

    def event(self, stored: Line, fields: Mapping[str, Any]) -> Event:
        """What an entry's fields say; LedgerCorrupt if it cannot be read, or is not as it is written.

        An entry has the one text that its fields have: nobody can read something else in it.
        """
        try:
            match fields["kind"]:
                case Took.kind:
                    return self._took(stored.text, fields)
                case Recorded.kind:
                    return _recorded(stored.text, fields)
            _check_written(stored.text, canonical(fields))
        except (BadWire, BadAction, TypeError, AttributeError, KeyError) as error:
            raise LedgerCorrupt(stored.seq, f"cannot be read: {error}") from None
        return body_from(stored.seq, fields)

    def _took(self, text: str, fields: Mapping[str, Any]) -> Took:
        if len(fields) != _ACTION:
            raise BadWire("it says more than an action does")
        begins = text[: text.find(_AFTER_ACTION)]
        action = self._action(begins, fields["action"])
        rule = _RULES[fields["rule"]]
        _check_written(text, begins + _after_action(fields))
        session, analyst = fields["session"], fields["analyst"]
        if type(session) is not str or session == OWNER or type(analyst) not in _NAMES:
            raise BadWire("its session or its analyst is no name")
        charged = {root: _charge(cost) for root, cost in fields["charged"].items()}
        return Took(session, analyst, fields["request"], action, rule, charged)

    def _action(self, begins: str, data: Any) -> Action:
        found = self._actions.get(begins)
        if found is None:
            if len(self._actions) >= MAX_DECODED:
                self._actions.clear()
            _check_written(begins + "}", canonical({"action": data}))
            found = from_json(data, Action)
            check_closed(found, Action)
            self._actions[begins] = found
        return found


def _check_written(text: str, written: str) -> None:
    """BadWire unless a text is the one that is written."""
    if text != written:
        raise BadWire("it is not as it is written")


def _after_action(f: Mapping[str, Any]) -> str:
    """What `canonical` writes of a step behind its action: in the order of the names."""
    charged = ",".join([f"{_text(root)}:{_text(cost)}" for root, cost in sorted(f["charged"].items())])
    return (
        f'{_AFTER_ACTION}{_name(f["analyst"])},"at":{_text(f["at"])},"charged":{{{charged}}},"kind":"action",'
        f'"previous":{_text(f["previous"])},"request":{_name(f["request"])},"rule":{_text(f["rule"])},'
        f'"seq":{f["seq"]!r},"session":{_text(f["session"])},"totals":{_text(f["totals"])}}}'
    )


# A text as JSON writes it; TypeError if it is something else.
_text = encode_basestring_ascii


def _name(value: Any) -> str:
    """A text, or none."""
    return "null" if value is None else _text(value)


def _recorded(text: str, f: Mapping[str, Any]) -> Recorded:
    if len(f) != _ANSWER:
        raise BadWire("it says more than an answer does")
    released: tuple[Released, ...]
    if len(f["released"]) > FEW and type(f["released"]) is list and are_numbers(f["released"]):
        released = tuple(map(tuple, f["released"]))
    else:
        released = tuple([_released(each) for each in f["released"]])
    # All of them are integers, which Python writes as JSON does, but for spaces.
    numbers = repr(f["released"]).replace(" ", "")
    written = (
        f'{{"answers":{f["answers"]!r},"at":{_text(f["at"])},"kind":"answer","previous":{_text(f["previous"])},'
        f'"released":{numbers},"seq":{f["seq"]!r},"totals":{_text(f["totals"])}}}'
    )
    _check_written(text, written)
    return Recorded(f["answers"], released)


def _released(each: Any) -> Released:
    """As `from_json` reads it; there are as many as there are queries."""
    if type(each) is int:
        return each
    if type(each) is list and all(type(number) is int for number in each):
        return tuple(each)
    raise BadWire("no numbers")


@lru_cache(MAX_DECODED)
def _charge(text: str) -> Fraction:
    exact: Fraction = from_json(text, Fraction)
    if str(exact) != text:
        raise BadWire("a charge is not as it is written")
    return exact
