"""What someone who can write to a ledger's database may do to it, in SQL that both databases understand."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fpinq.ledger.entries import hash_of
from fpinq.ledger.store import Statements
from fpinq.ledger.wire import canonical


@contextmanager
def behind_the_back(place: str) -> Iterator[Statements]:
    """The database of a ledger, with nothing that stops a careless hand."""
    from fpinq.ledger import open_store

    store = open_store(place, create=False)
    try:
        with store.writing(durable=True) as statements:
            if place.startswith("postgres"):
                statements.run("DROP TRIGGER IF EXISTS entries_append_only ON entries")
            else:
                for verb in ("UPDATE", "DELETE"):
                    statements.run(f"DROP TRIGGER IF EXISTS entries_no_{verb}")
            yield statements
    finally:
        store.close()


def rewrite(
    statements: Statements, seq: int, change: Callable[[dict[str, Any]], object], *, rest: bool = False
) -> None:
    """Change what an entry says, with its hash; with rest, every hash after it too, and the head's."""
    previous = None
    until = "" if rest else f" AND seq <= {seq}"
    rows = statements.rows(f"SELECT seq, text FROM entries WHERE seq >= ?{until} ORDER BY seq", seq)
    for number, text in rows:
        fields = json.loads(text)
        if number == seq:
            change(fields)
        if previous is not None:
            fields["previous"] = previous
        text = canonical(fields)
        previous = hash_of(text)
        statements.run("UPDATE entries SET text = ?, hash = ? WHERE seq = ?", text, previous, number)
    if rest:
        statements.run("UPDATE head SET hash = ?", previous)
