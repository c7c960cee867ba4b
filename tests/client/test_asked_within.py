"""A signal's handler or a finalizer may ask at any line of a step: then, too, answers are charged once."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import fpinq as fp
from fpinq.client import history
from fpinq.ledger import open_store
from fpinq.ledger.verify import verify
from traced import at_line

ROWS = [{"x": i % 2} for i in range(6)]
PLENTY = 10**6
OUTER, INNER = Fraction(1, 1000), Fraction(1)


def lines(first: int, ever_further: int) -> Iterator[int]:
    """Numbers without end: all of them first, then further and further apart."""
    number = first
    while True:
        yield number
        number += 1 + number // ever_further


@pytest.mark.parametrize("kept", ["memory", "ledger"])
def test_whatever_line_a_query_is_asked_at_within_another_both_are_charged_once(
    kept: str, tmp_path: Path
) -> None:
    """One within an answer that was put away was taken twice: siblings were then answered for nothing."""
    where = tmp_path / "people.ledger"
    data = fp.protect(
        ROWS,
        budget=PLENTY,
        name="people",
        ledger=where if kept == "ledger" else None,
        engine="reference",
        schema={"x": "int64"},
    )
    a, b = data.partition("x", keys=[0, 1]).values()
    spent = {0: Fraction(0), 1: Fraction(0)}
    refused = within = 0

    def ask(part: int, epsilon: Fraction) -> None:
        (a, b)[part].noisy_count(epsilon)
        spent[part] += epsilon

    def nested() -> None:
        nonlocal refused, within
        try:
            ask(1, INNER)
            within += 1
        except fp.LedgerError:  # in the middle of a step: nothing was charged
            refused += 1

    for number in lines(1, 120):
        if not at_line(number, lambda: ask(1, OUTER), nested):
            break
        assert data.remaining == PLENTY - spent[1], number
        assert a.price(spent[1] + 5) == 5, number
    assert within > 50
    assert refused > 50
    if kept == "ledger":
        store = open_store(str(where), create=False)
        assert verify(store).roots["people"][1] == spent[1]
        store.close()


def test_a_query_within_the_noting_of_another_does_not_wait_for_itself() -> None:
    """A query noted in the history held its lock: a handler's own query waited for it, for ever."""
    data = fp.protect(ROWS, budget=PLENTY, name="people", engine="reference", schema={"x": "int64"})
    where = str(Path(history.__file__))
    asked = 0

    def ask() -> None:
        nonlocal asked
        data.noisy_count(OUTER)
        asked += 1

    number = 1
    while at_line(number, ask, ask, where=where):
        assert len(data.history) == asked, number
        number += 1
    assert number > 10
