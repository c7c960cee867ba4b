"""What is read without making fields of it is what is read with them, and nothing else is read so."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.ledger.entries import Head, Line, check_hash, check_next, hash_of, line
from fpinq.ledger.errors import LedgerCorrupt
from fpinq.ledger.reading import Read, Reader
from fpinq.model.actions import Assign, Query
from fpinq.model.events import Event, Froze, Recorded, Took
from fpinq.model.expressions import Apply, Column, Literal
from fpinq.model.queries import Count
from fpinq.model.semantics import Rule
from fpinq.model.transformations import Where

HEAD = Head(41, "5" * 64)
TOTALS = "7" * 64
AT = "2026-01-01T00:00:00.000+00:00"
ADULTS = Assign("t", Where(Apply("greater", (Column("age"), Literal.of(17)))), ("people",))
COUNT = Query("t", Fraction(1, 3), (Count(),))
CHARGED = Took("s", None, "r1", COUNT, Rule.QUERY, {"people": Fraction(1, 3)})
STEPS = [
    CHARGED,
    Took("s", "ann", "r0", ADULTS, Rule.ASSIGN, {}),
    Took("s", "ann", None, COUNT, Rule.QUERY, {"a": Fraction(2), "b": Fraction(1, 7)}),
    Took("s", None, "r2", COUNT, Rule.QUERY_BOTTOM, {}),
]
ANSWERS = [Recorded(40, ((number,),)) for number in (0, 5, -12, 10**30)]
OTHERS = [Recorded(40, ((1, 2),)), Recorded(40, (3,)), Recorded(40, ((1,), (2,))), Froze("people")]


def written(event: Event, totals: str = TOTALS) -> Line:
    return line(HEAD, event, AT, totals)


def knowing() -> Reader:
    """A reader that has read all actions before."""
    reader = Reader()
    for step in STEPS:
        reader.event(written(step), HEAD)
    return reader


def outcome(reader: Reader, stored: Line, *, by_fields: bool) -> Read | str:
    """What an entry says, or what is wrong with it."""
    try:
        if not by_fields:
            return reader.event(stored, HEAD)
        check_next(stored, HEAD)
        check_hash(stored)
        return reader._any(stored, HEAD)
    except LedgerCorrupt as error:
        return str(error)


def check_same(reader: Reader, stored: Line) -> Read | str:
    found = outcome(reader, stored, by_fields=False)
    assert found == outcome(reader, stored, by_fields=True)
    return found


@pytest.mark.parametrize("event", [*STEPS, *ANSWERS, *OTHERS])
def test_an_entry_says_what_was_written(event: Event) -> None:
    assert check_same(knowing(), written(event)) == (event, TOTALS)


@pytest.mark.parametrize("event", [*STEPS, *ANSWERS])
def test_usual_entries_are_read_without_fields(event: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = knowing()
    monkeypatch.setattr(Reader, "_any", lambda *_: pytest.fail("made fields of it"))
    assert reader.event(written(event), HEAD) == (event, TOTALS)


def edited(text: str) -> Iterator[str]:
    """A text with one place changed: left out, twice, or another character."""
    for place, char in enumerate(text):
        yield text[:place] + text[place + 1 :]
        yield text[:place] + char + text[place:]
        for other in '0-1a "\\,:{}[]é\n':
            yield text[:place] + other + text[place + 1 :]


@pytest.mark.parametrize("event", [CHARGED, STEPS[2], ANSWERS[2]])
def test_one_character_more_less_or_other_is_found_as_it_is_by_its_fields(event: Event) -> None:
    reader, stored = knowing(), written(event)
    for text in edited(stored.text):
        found = check_same(reader, stored._replace(text=text, hash=hash_of(text)))
        # Whoever reads another text in it reads another thing.
        assert isinstance(found, str) or text == stored.text or _differs(text, stored.text, found, event)


def _differs(text: str, original: str, found: Read, event: Event) -> bool:
    """Whether another event or totals were read; or another time, which says nothing."""
    return found != (event, TOTALS) or text.partition('"at"')[0] == original.partition('"at"')[0]


@pytest.mark.parametrize("event", [CHARGED, ANSWERS[0]])
@pytest.mark.parametrize(
    "beside",
    [
        {"session": "other"}, {"session": None}, {"session": ""}, {"request": "other"}, {"request": None},
        {"answers": 40}, {"answers": 39}, {"answers": None}, {"seq": 43}, {"seq": 41}, {"hash": "0" * 64},
    ],
)  # fmt: skip
def test_what_stands_beside_the_text_is_compared_with_it(event: Event, beside: dict[str, Any]) -> None:
    stored = written(event)._replace(**beside)
    found = check_same(knowing(), stored)
    assert isinstance(found, str) == (stored != written(event))


def test_an_entry_that_follows_another_one_is_refused() -> None:
    for event in (CHARGED, ANSWERS[0]):
        stored = line(Head(HEAD.seq, "6" * 64), event, AT, TOTALS)
        assert "does not follow" in str(check_same(knowing(), stored))


@given(
    st.text(min_size=1), st.none() | st.text(), st.none() | st.text(),
    st.dictionaries(st.text(), st.fractions(min_value=0), max_size=3), st.sampled_from(list(Rule)), st.text(),
)  # fmt: skip
def test_names_of_any_characters_are_read_as_they_were_written(
    session: str,
    analyst: str | None,
    request: str | None,
    charged: dict[str, Fraction],
    rule: Rule,
    totals: str,
) -> None:
    took = Took(session, analyst, request, COUNT, rule, charged)
    assert check_same(knowing(), written(took, totals)) == (took, totals)
