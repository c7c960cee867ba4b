"""Reading many entries: what each says, as `entries` reads it, but each action and each charge once.

    text ──▸ fields ──▸ event, if the text is the one that is written of these fields

So nobody can read something else in an entry. Nearly all entries say nothing
unusual: a step whose action was read before, an answer of one number, and no
text in which something is escaped. Whatever matches `_STEP` or `_ANSWER` is
the one text that is written of what it says, so these are read without making
fields of them, and found to be the same (tests/ledger/test_reading.py).
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from types import NoneType
from typing import Any

from fpinq.ledger.entries import (
    AFTER_ACTION,
    OWNER,
    Head,
    Line,
    body_from,
    check_hash,
    check_line,
    check_next,
    check_recorded,
    check_took,
    check_written,
)
from fpinq.ledger.errors import BadWire, LedgerCorrupt
from fpinq.ledger.wire import FEW, are_numbers, canonical, from_json, parse
from fpinq.model.actions import Action
from fpinq.model.closed import check_closed
from fpinq.model.errors import BadAction
from fpinq.model.events import Event, Recorded, Took
from fpinq.model.semantics import Rule
from fpinq.model.traces import Released

# Programs ask the same things again: this many are read once.
MAX_DECODED = 20_000
# What an analyst is: a name, or nobody.
NAMES = (str, NoneType)
# How a rule stands in an entry: whoever looks only for what is charged looks for this.
WRITTEN: Mapping[Rule, str] = {rule: f'"rule":{canonical(rule.value)}' for rule in Rule}
_RULES: Mapping[str, Rule] = {rule.value: rule for rule in Rule}
_BY_TEXT: Mapping[str, Rule] = {written: rule for rule, written in WRITTEN.items()}

# An event and the totals that its entry holds.
Read = tuple[Event, object]

# A text in which nothing is escaped; one, or none; a number, of which there is one way to write it.
_TEXT = r'"([ !#-\[\]-~]*)"'
_NAME = f"(?:null|{_TEXT})"
_NUMBER = "(0|-?[1-9][0-9]{0,100})"
_RULE = f"({'|'.join(map(re.escape, _BY_TEXT))})"
_STEP = re.compile(
    f',"analyst":{_NAME},"at":{_TEXT},"charged":([{{][^{{}}]*[}}]),"kind":"action","previous":{_TEXT},'
    f'"request":{_NAME},{_RULE},"seq":{_NUMBER},"session":{_TEXT},"totals":{_TEXT}}}'
)
_ANSWER = re.compile(
    f'{{"answers":{_NUMBER},"at":{_TEXT},"kind":"answer","previous":{_TEXT},'
    rf'"released":\[\[{_NUMBER}\]\],"seq":{_NUMBER},"totals":{_TEXT}}}'
)


class Reader:
    """Reads what entries say."""

    def __init__(self) -> None:
        self._actions: dict[str, Action] = {}

    def event(self, stored: Line, head: Head) -> Read:
        """What an entry says that follows head, and its totals.

        LedgerCorrupt if it does not follow, cannot be read, or is not as it is written.
        """
        check_next(stored, head)
        check_hash(stored)
        usual = self._usual_step(stored, head) if stored.answers is None else _usual_answer(stored, head)
        return usual or self._any(stored, head)

    def _usual_step(self, stored: Line, head: Head) -> Read | None:
        text = stored.text
        end = text.find(AFTER_ACTION)
        action = self._actions.get(text[:end])
        said = _STEP.fullmatch(text, end) if action is not None else None
        if action is None or said is None:
            return None
        analyst, _, charged, previous, request, rule, seq, session, totals = said.groups()
        follows = previous == head.hash and int(seq) == stored.seq
        if not follows or session != stored.session or request != stored.request or session == OWNER:
            return None
        cost = _charges(charged)
        return (
            None if cost is None else (Took(session, analyst, request, action, _BY_TEXT[rule], cost), totals)
        )

    def _any(self, stored: Line, head: Head) -> Read:
        fields = check_line(stored, head)
        try:
            return self._event(stored, fields), fields.get("totals")
        except (BadWire, BadAction, TypeError, AttributeError, KeyError) as error:
            raise LedgerCorrupt(stored.seq, f"cannot be read: {error}") from None

    def _event(self, stored: Line, fields: Mapping[str, Any]) -> Event:
        match fields["kind"]:
            case Took.kind:
                return self._took(stored.text, fields)
            case Recorded.kind:
                check_recorded(stored.text, fields)
                return Recorded(fields["answers"], _all_released(fields["released"]))
        check_written(stored.text, canonical(fields))
        return body_from(stored.seq, fields)

    def _took(self, text: str, fields: Mapping[str, Any]) -> Took:
        action = self._action(check_took(text, fields), fields["action"])
        session, analyst = fields["session"], fields["analyst"]
        if type(session) is not str or session == OWNER or type(analyst) not in NAMES:
            raise BadWire("its session or its analyst is no name")
        charged = {root: _charge(cost) for root, cost in fields["charged"].items()}
        return Took(session, analyst, fields["request"], action, _RULES[fields["rule"]], charged)

    def _action(self, begins: str, data: Any) -> Action:
        found = self._actions.get(begins)
        if found is None:
            if len(self._actions) >= MAX_DECODED:
                self._actions.clear()
            check_written(begins + "}", canonical({"action": data}))
            found = from_json(data, Action)
            check_closed(found, Action)
            self._actions[begins] = found
        return found


def _usual_answer(stored: Line, head: Head) -> Read | None:
    said = _ANSWER.fullmatch(stored.text)
    if said is None:
        return None
    answers, _, previous, number, seq, totals = said.groups()
    follows = previous == head.hash and int(seq) == stored.seq
    if not follows or int(answers) != stored.answers or (stored.session, stored.request) != (None, None):
        return None
    return Recorded(int(answers), ((int(number),),)), totals


def _all_released(given: Any) -> tuple[Released, ...]:
    if len(given) > FEW and type(given) is list and are_numbers(given):
        return tuple(map(tuple, given))
    return tuple([_released(each) for each in given])


def _released(each: Any) -> Released:
    """As `from_json` reads it; there are as many as there are queries."""
    if type(each) is int:
        return each
    if type(each) is list and all(type(number) is int for number in each):
        return tuple(each)
    raise BadWire("no numbers")


@lru_cache(MAX_DECODED)
def _charges(text: str) -> Mapping[str, Fraction] | None:
    """The charges of a step; None unless they are as they are written."""
    try:
        fields = parse(text)
        return {root: _charge(cost) for root, cost in fields.items()} if canonical(fields) == text else None
    except (BadWire, TypeError):
        return None


@lru_cache(MAX_DECODED)
def _charge(text: str) -> Fraction:
    exact: Fraction = from_json(text, Fraction)
    if str(exact) != text:
        raise BadWire("a charge is not as it is written")
    return exact
