"""verify: whatever is done to a ledger behind the kernel's back is found, with the first bad entry."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fpinq.cli.main import main
from fpinq.ledger import open_ledger, open_store
from fpinq.ledger.entries import body_of, hash_of
from fpinq.ledger.errors import LedgerCorrupt
from fpinq.ledger.store import units_text
from fpinq.ledger.verify import Report, verify
from fpinq.ledger.wire import canonical
from fpinq.model.actions import Assign, Partition, Query
from fpinq.model.events import Registered
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.queries import Count
from fpinq.model.transformations import Identity, Partitioning
from fpinq.model.units import units

Damage = Callable[[sqlite3.Connection], object]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """0 ledger, 1 root, 2 assign, 3 query, 4 answer, 5 partition, 6 query, 7 answer, 8 ⊥, 9 query."""
    ledger = open_ledger(tmp_path / "people.ledger")
    ledger.register("people", Schema((("age", Type.INT64),)), 1, contents=["x"], caps={"alice": "1/2"})
    ledger.act("s", Assign("t", Identity(), ("people",)))
    ledger.answer(ledger.act("s", count("t", "1/4"), "r1").seq or 0, ((10,),))
    ledger.act("s", Partition(("a", "b"), "t", Partitioning(Column("age"), (0, 1))))
    ledger.answer(ledger.act("s", count("a", "1/4")).seq or 0, ((5,),))
    ledger.act("s", count("t", "2"))
    ledger.act("other", count("people", "1/8"), analyst="alice")
    ledger.close()
    return tmp_path / "people.ledger"


def count(table: str, epsilon: str) -> Query:
    return Query(table, Fraction(epsilon), (Count(),))


def verified(path: Path, expect_head: str | None = None, jobs: int = 1) -> Report:
    with closing(open_store(path, create=False)) as store:
        return verify(store, expect_head, jobs=jobs)


def damage(path: Path, how: Damage) -> None:
    with sqlite3.connect(path) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        how(connection)
    connection.close()


def rewrite(connection: sqlite3.Connection, seq: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Forge an entry and every hash after it: what someone with the file and this source can do."""
    rows = connection.execute("SELECT seq, text FROM entries WHERE seq >= ? ORDER BY seq", (seq,)).fetchall()
    previous = None
    for number, text in rows:
        fields = json.loads(text)
        if number == seq:
            change(fields)
        if previous is not None:
            fields["previous"] = previous
        text = canonical(fields)
        previous = hash_of(text)
        connection.execute("UPDATE entries SET text = ?, hash = ? WHERE seq = ?", (text, previous, number))
    connection.execute("UPDATE head SET hash = ?", (previous,))


def test_a_whole_ledger_verifies(path: Path) -> None:
    report = verified(path)
    assert (report.entries, report.sessions, report.unanswered) == (10, 2, 1)
    assert report.roots == {"people": (Fraction(1), Fraction(5, 8))}


EDITS: dict[str, tuple[int, Damage]] = {
    "an edited text": (3, lambda c: c.execute("UPDATE entries SET text = replace(text, '1/4', '1/8')")),
    "an edited hash": (4, lambda c: c.execute("UPDATE entries SET hash = ? WHERE seq = 4", ("0" * 64,))),
    "a torn text": (7, lambda c: c.execute("UPDATE entries SET text = substr(text, 1, 40) WHERE seq = 7")),
    "a deleted entry": (5, lambda c: c.execute("DELETE FROM entries WHERE seq = 5")),
    "a deleted last entry": (9, lambda c: c.execute("DELETE FROM entries WHERE seq = 9")),
    "the first entries deleted": (0, lambda c: c.execute("DELETE FROM entries WHERE seq < 3")),
    "two entries exchanged": (
        3,
        lambda c: c.executescript(
            "UPDATE entries SET seq = 99 WHERE seq = 3; UPDATE entries SET seq = 3 WHERE seq = 6;"
            "UPDATE entries SET seq = 6 WHERE seq = 99"
        ),
    ),
    "an answer filed elsewhere": (4, lambda c: c.execute("UPDATE entries SET answers = 9 WHERE seq = 4")),
    "a request filed elsewhere": (3, lambda c: c.execute("UPDATE entries SET request = 'x' WHERE seq = 3")),
    "a session filed elsewhere": (9, lambda c: c.execute("UPDATE entries SET session = 's' WHERE seq = 9")),
    "an account set back": (
        9,
        lambda c: c.execute("UPDATE accounts SET spent = ?", (units_text(units(Fraction(1, 8))),)),
    ),
    "a larger total": (
        9,
        lambda c: c.execute("UPDATE accounts SET total = '9' || substr(total, 2) WHERE analyst = ''"),
    ),
    "an account removed": (9, lambda c: c.execute("DELETE FROM accounts WHERE analyst = 'alice'")),
    "a head set back": (8, lambda c: c.execute("UPDATE head SET seq = 7")),
    "no head": (0, lambda c: c.execute("DELETE FROM head")),
    "bytes for text": (3, lambda c: c.execute("UPDATE entries SET text = CAST(text AS BLOB) WHERE seq = 3")),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_what_was_edited_is_found(edit: str, path: Path) -> None:
    seq, how = EDITS[edit]
    damage(path, how)
    with pytest.raises(LedgerCorrupt) as found:
        verified(path)
    assert found.value.seq == seq
    assert main(["ledger", "verify", str(path)]) == 1


SHARED_OUT = [
    "an edited text",
    "a deleted entry",
    "an answer filed elsewhere",
    "an account set back",
    "a head set back",
]


@pytest.mark.parametrize("edit", [None, *SHARED_OUT])
def test_sharing_out_finds_the_same(edit: str | None, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpinq.ledger.verify.WORTH_SHARING", 0)
    for jobs in (2, 3):
        if edit is None:
            assert verified(path, jobs=jobs) == verified(path, jobs=1)
            continue
        seq, how = EDITS[edit]
        damage(path, how)
        with pytest.raises(LedgerCorrupt) as found:
            verified(path, jobs=jobs)
        assert found.value.seq == seq
        break


@pytest.mark.parametrize("forgery", ["a smaller charge", "no charge", "a query for a refusal"])
def test_no_share_believes_a_forged_charge(forgery: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpinq.ledger.verify.WORTH_SHARING", 0)
    seq, change = FORGED[forgery]
    damage(path, lambda c: rewrite(c, seq, change))
    with pytest.raises(LedgerCorrupt) as found:
        verified(path, jobs=2)
    assert found.value.seq == seq


FORGED: dict[str, tuple[int, Callable[[dict[str, Any]], object]]] = {
    "a smaller charge": (3, lambda f: f.update(charged={"people": "1/8"})),
    "no charge": (3, lambda f: f.update(charged={})),
    "a smaller ε": (3, lambda f: f["action"].update(epsilon="1/8")),
    "a refusal for an answer": (3, lambda f: f.update(rule="Query⊥", charged={})),
    "a query for a refusal": (8, lambda f: f.update(rule="Query")),
    "another analyst": (6, lambda f: f.update(analyst="bob")),
    "an unknown table": (6, lambda f: f["action"].update(table="nowhere")),
    "an unknown operation": (6, lambda f: f["action"].update(op="refund")),
    "an answer to no question": (4, lambda f: f.update(answers=2)),
    "a negative ε": (6, lambda f: f["action"].update(epsilon="-1/4")),
    "an answer that is none": (4, lambda f: f.update(released=["garbage", None])),
    "an answer too few": (4, lambda f: f.update(released=[])),
    "an answer that says more": (4, lambda f: f.update(note="refund")),
    "an action that says more": (6, lambda f: f.update(note="refund")),
    "a kind that is no word": (6, lambda f: f.update(kind=[])),
    "a session of nobody": (9, lambda f: f.update(session="")),
    "a budget that is no text": (1, lambda f: f.update(budget=2)),
    "a larger budget": (1, lambda f: f.update(budget="2")),
    "a second beginning": (2, lambda f: [f.clear(), f.update(kind="ledger", id="x", format=1)]),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_chain_does_not_survive_the_kernel(forgery: str, path: Path) -> None:
    seq, change = FORGED[forgery]

    def with_place(fields: dict[str, Any]) -> None:
        place = {"seq": fields["seq"], "previous": fields["previous"]}
        change(fields)
        fields.update(place)

    damage(path, lambda c: rewrite(c, seq, with_place))
    if forgery == "a second beginning":
        damage(path, lambda c: c.execute("UPDATE entries SET session = '', request = NULL WHERE seq = 2"))
    if forgery == "a session of nobody":
        damage(path, lambda c: c.execute("UPDATE entries SET session = '' WHERE seq = 9"))
    if forgery == "an answer to no question":
        damage(path, lambda c: c.execute("UPDATE entries SET answers = 2 WHERE seq = 4"))
    with pytest.raises(LedgerCorrupt) as found:
        verified(path)
    assert found.value.seq == seq


def test_a_kept_head_tells_an_older_copy(path: Path, tmp_path: Path, capsys: Any) -> None:
    copy = tmp_path / "copy.ledger"
    shutil.copy(path, copy)
    ledger = open_ledger(path)
    ledger.act("late", count("people", "1/8"))
    ledger.close()
    assert main(["ledger", "head", str(path)]) == 0
    head = capsys.readouterr().out.strip()
    assert main(["ledger", "verify", str(path), "--expect-head", head]) == 0
    assert main(["ledger", "verify", str(copy)]) == 0  # whole, as far as it can tell
    assert main(["ledger", "verify", str(copy), "--expect-head", head]) == 1
    assert "an older copy" in capsys.readouterr().err
    # Later entries are no reason to complain.
    ledger = open_ledger(path)
    ledger.act("later", count("people", "1/8"))
    ledger.close()
    assert main(["ledger", "verify", str(path), "--expect-head", head.split()[1]]) == 0


def test_damaged_bytes_are_found_wherever_they_are(path: Path, tmp_path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    whole = path.read_bytes()
    entries = [stored.text.encode() for stored in _entries(path)]
    broken = tmp_path / "broken.ledger"
    for text in entries:
        at = whole.index(text) + len(text) // 2
        broken.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(LedgerCorrupt):
            verified(broken)
    for size in range(len(whole) // 2, len(whole), 4096):
        broken.write_bytes(whole[:size])
        with pytest.raises(LedgerCorrupt):
            verified(broken)


def _entries(path: Path) -> list[Any]:
    ledger = open_ledger(path)
    try:
        return list(ledger.entries())
    finally:
        ledger.close()


def test_show_is_the_trace_in_the_paper_s_notation(path: Path, capsys: Any) -> None:
    assert main(["ledger", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "root people, B = 1, alice ≤ 1/2" in shown
    assert "t := identity(people)  Assign" in shown
    assert "query(t, count, 1/4)  Query, people − 1/4" in shown
    assert "answer to 3: 10" in shown
    assert "query(t, count, 2)  Query⊥" in shown
    assert main(["ledger", "show", str(path), "--after", "7"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_ledger_that_is_not_there_is_not_made(tmp_path: Path, capsys: Any) -> None:
    for what in ("show", "verify", "head"):
        assert main(["ledger", what, str(tmp_path / "none.ledger")]) == 6
    assert not os.listdir(tmp_path)


def test_an_entry_with_two_actions_does_not_survive(path: Path) -> None:
    """JSON keeps the last of two: what was charged for the first would be read as the second."""

    def twice(connection: sqlite3.Connection) -> None:
        (text,) = connection.execute("SELECT text FROM entries WHERE seq = 6").fetchone()
        other = text[text.index('"action":') : text.index(',"analyst":')].replace('"1/4"', '"1/2"')
        assert '"1/2"' in other
        text = text[:-1] + "," + other + "}"
        connection.execute("UPDATE entries SET text = ?, hash = ? WHERE seq = 6", (text, hash_of(text)))

    damage(path, twice)
    with pytest.raises(LedgerCorrupt, match="not as it is written") as found:
        verified(path)
    assert found.value.seq == 6


RESPELLED: dict[str, Callable[[str], str]] = {
    "another action under an escaped name": lambda text: (
        text[:-1]
        + ","
        + _action_of(text).replace('"1/4"', '"1/2"').replace("action", "\\u0061ction", 1)
        + "}"
    ),
    "a name again": lambda text: text[:-1] + ',"seq":6}',
    "an escaped letter": lambda text: text.replace('"kind":"action"', '"kind":"\\u0061ction"'),
    "a space": lambda text: text.replace('"seq":6', '"seq": 6'),
    "another order": lambda text: json.dumps(dict(reversed(json.loads(text).items())), separators=(",", ":")),
    "a space within the action": lambda text: text.replace('"op":"query"', '"op": "query"'),
    "a name again within the action": lambda text: text.replace('"op":"query"', '"op":"query","op":"query"'),
}


def _action_of(text: str) -> str:
    return text[text.index('"action":') : text.index(',"analyst":')]


@pytest.mark.parametrize("how", RESPELLED)
def test_an_entry_that_can_be_read_in_two_ways_does_not_survive(path: Path, how: str) -> None:
    """Whoever looks at a text and whoever looks at its fields must find the same in it."""

    def respell(connection: sqlite3.Connection) -> None:
        (text,) = connection.execute("SELECT text FROM entries WHERE seq = 6").fetchone()
        said = RESPELLED[how](text)
        assert said != text
        connection.execute("UPDATE entries SET text = ?, hash = ? WHERE seq = 6", (said, hash_of(said)))

    damage(path, respell)
    with pytest.raises(LedgerCorrupt, match="not as it is written") as found:
        verified(path)
    assert found.value.seq == 6


def test_a_second_budget_for_the_same_contents_does_not_survive(path: Path) -> None:
    ledger = open_ledger(path)
    ledger.register("copy", Schema((("age", Type.INT64),)), 1, contents=["y"])
    ledger.close()
    (first,) = [body.contents for s in _entries(path) if isinstance(body := body_of(s), Registered)][:1]
    damage(path, lambda c: rewrite(c, 10, lambda f: f.update(contents=list(first))))
    with pytest.raises(LedgerCorrupt, match="people") as found:
        verified(path)
    assert found.value.seq == 10
