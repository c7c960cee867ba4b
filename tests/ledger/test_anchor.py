"""An anchor elsewhere holds the head: what was put back, lost or exchanged does not open, a crash does."""

import os
import shutil
import stat
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.cli.main import main
from fpinq.ledger import open_ledger, open_store
from fpinq.ledger.anchor import AnchorCommand, AnchorFile, Mark, anchor_of
from fpinq.ledger.errors import LedgerCorrupt, LedgerRolledBack, NoLedger
from fpinq.ledger.store import Pages
from fpinq.model.actions import Assign, Query
from fpinq.model.errors import LedgerError, ProgramError
from fpinq.model.expressions import Schema, Type
from fpinq.model.queries import Count
from fpinq.model.transformations import Identity
from ledger.damage import behind_the_back

AGES = Schema((("age", Type.INT64),))
A, B = "a" * 32, "b" * 32
KEEPER = """#!/bin/sh
# Prints the line that it held, and keeps the later one.
new=$(cat); old=$(cat "$1" 2>/dev/null)
[ -n "$old" ] && echo "$old"
[ -z "$new" ] && exit 0
number() { echo "$1" | cut -d' ' -f2; }
if [ -z "$old" ] || [ "$(number "$new")" -gt "$(number "$old")" ]; then echo "$new" > "$1"; fi
"""


def ask(ledger: Any, epsilon: str = "1/8", session: str = "s", request: str | None = None) -> Any:
    """A query that is answered."""
    acted = ledger.act(session, Query("people", Fraction(epsilon), (Count(),)), request)
    return ledger.answer(acted.seq, ((7,),))


def people(ledger: Any) -> Any:
    ledger.register("people", AGES, 1, contents=["people"])
    return ledger


@pytest.fixture(params=["file", "command"])
def anchor(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    kept = tmp_path / "elsewhere" / "people.anchor"
    kept.parent.mkdir()
    if request.param == "file":
        return str(kept)
    script = tmp_path / "keep"
    script.write_text(KEEPER)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return [str(script), str(kept)]


def mark_of(place: str, id: str) -> Mark:
    store = open_store(place, create=False)
    with store.reading() as statements:
        head = Pages(statements).head()
    store.close()
    return Mark(id, *head)


# ── where a ledger is put back ───────────────────────────────────────────────────────


def go_back(place: str, seq: int, spent: str) -> None:
    """The database as it was at an entry, whole: what a restored backup is."""
    from fpinq.ledger.store import units_text
    from fpinq.model.units import units

    with behind_the_back(place) as sql:
        sql.run("DELETE FROM entries WHERE seq > ?", seq)
        ((hashed,),) = sql.rows("SELECT hash FROM entries WHERE seq = ?", seq)
        sql.run("UPDATE head SET seq = ?, hash = ?", seq, hashed)
        sql.run("UPDATE accounts SET spent = ?", units_text(units(Fraction(spent))))


def test_an_older_copy_does_not_open(place: str, anchor: Any) -> None:
    ledger = people(open_ledger(place, anchor=anchor))
    ask(ledger, "1/4")
    ask(ledger, "1/4")
    ledger.close()
    go_back(place, 3, "1/4")
    whole = open_ledger(place)  # whole, as far as it can tell
    assert whole.roots()["people"].spent == Fraction(1, 4)
    whole.close()
    with pytest.raises(LedgerRolledBack, match=r"entry 5.*ends at 3.*put the newer ledger back"):
        open_ledger(place, anchor=anchor)


def test_an_older_copy_that_went_on_does_not_open(place: str, anchor: Any) -> None:
    """It has an entry of that number: another one."""
    ledger = people(open_ledger(place, anchor=anchor))
    ask(ledger, "1/4")
    ask(ledger, "1/4")
    ledger.close()
    go_back(place, 3, "1/4")
    without = open_ledger(place)
    for _ in range(3):
        ask(without, "1/100")
    without.close()
    with pytest.raises(LedgerRolledBack, match="another entry of this number"):
        open_ledger(place, anchor=anchor)


def test_a_restored_file_does_not_open(tmp_path: Path, anchor: Any) -> None:
    path, copy = tmp_path / "x.ledger", tmp_path / "copy"
    ledger = people(open_ledger(path, anchor=anchor))
    ledger.close()
    shutil.copy(path, copy)
    ledger = open_ledger(path, anchor=anchor)
    ask(ledger)
    ledger.close()
    newer = path.read_bytes()
    shutil.copy(copy, path)
    with pytest.raises(LedgerRolledBack):
        open_ledger(path, anchor=anchor)
    path.write_bytes(newer)  # what the error says to do
    ledger = open_ledger(path, anchor=anchor)
    assert ledger.roots()["people"].spent == Fraction(1, 8)
    ledger.close()


LOSSES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "a folder": lambda path: [path.unlink(), path.mkdir()],
    "another ledger": lambda path: [path.unlink(), people(open_ledger(path)).close()],
    "a blank ledger": lambda path: [path.unlink(), open_store(path).close()],
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_ledger_is_not_begun_again_beside_its_anchor(loss: str, tmp_path: Path, anchor: Any) -> None:
    path = tmp_path / "x.ledger"
    ledger = people(open_ledger(path, anchor=anchor))
    ask(ledger)
    ledger.close()
    LOSSES[loss](path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerError):
        open_ledger(path, anchor=anchor)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_deleted_log_is_noticed(tmp_path: Path, anchor: Any) -> None:
    path, crashed = tmp_path / "x.ledger", tmp_path / "crashed" / "x.ledger"
    ledger = people(open_ledger(path, anchor=anchor))
    ask(ledger)
    crashed.parent.mkdir()
    for suffix in ("", "-wal", "-shm"):  # as a killed process leaves them
        shutil.copy(f"{path}{suffix}", f"{crashed}{suffix}")
    ledger.close()
    os.remove(f"{crashed}-wal")
    for given in (None, anchor):
        with pytest.raises(LedgerCorrupt, match=r"log .* is gone"):
            open_ledger(crashed, anchor=given)
    os.remove(f"{crashed}-shm")  # and nothing beside it tells
    with pytest.raises(LedgerRolledBack):
        open_ledger(crashed, anchor=anchor)


def test_only_a_log_is_no_ledger(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    ledger = people(open_ledger(path))
    shutil.copy(f"{path}-wal", tmp_path / "kept")
    ledger.close()
    path.unlink()
    shutil.copy(tmp_path / "kept", f"{path}-wal")
    with pytest.raises(NoLedger, match="only its log"):
        open_ledger(path)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_ledger_that_goes_away_under_a_process_is_noticed(how: str, tmp_path: Path) -> None:
    path, copy = tmp_path / "x.ledger", tmp_path / "copy"
    people(open_ledger(path)).close()
    shutil.copy(path, copy)
    ledger = open_ledger(path)
    ask(ledger)
    os.remove(path) if how == "deleted" else os.replace(copy, path)
    with pytest.raises(LedgerError, match="moved, deleted or replaced"):
        ask(ledger)
    ledger.close()


# ── when it moves ────────────────────────────────────────────────────────────────────


def test_the_anchor_holds_what_is_on_disk_before_anybody_is_told(place: str, anchor: Any) -> None:
    held = anchor_of(anchor)
    ledger = open_ledger(place, anchor=anchor)
    for durable in (
        lambda: people(ledger),
        lambda: ledger.act("s", Query("people", Fraction(1, 8), (Count(),)), "r"),
        lambda: ledger.answer(2, ((7,),)),
        lambda: ledger.act("s", Query("people", Fraction(2), (Count(),))),
        lambda: ledger.freeze("people"),
        lambda: ledger.unfreeze("people"),
    ):
        durable()
        assert held.hold(None) == mark_of(place, ledger.id)
    before = held.hold(None)
    ledger.act("s", Assign("t", Identity(), ("people",)))  # may be lost with the power, and nothing with it
    assert held.hold(None) == before
    ledger.close()


def test_what_was_not_anchored_before_a_crash_is_before_it_is_told(place: str, anchor: Any) -> None:
    """Killed between the commit and the anchor: the charge or the answer is told only once it is held."""
    ledger = people(open_ledger(place, anchor=anchor))
    ledger._keeping.anchor = None  # dies here, each time
    asked = ledger.act("s", Query("people", Fraction(1, 8), (Count(),)), "r")
    behind = anchor_of(anchor).hold(None)
    assert behind is not None
    assert behind.seq < asked.seq
    ledger.close()
    again = open_ledger(place, anchor=anchor)
    held = anchor_of(anchor).hold(None)
    assert held == mark_of(place, again.id)
    again._keeping.anchor, kept = None, again._keeping.anchor
    again.answer(asked.seq, ((7,),))
    again._keeping.anchor = kept
    assert again.act("s", Query("people", Fraction(1, 8), (Count(),)), "r").released == ((7,),)
    assert anchor_of(anchor).hold(None) == mark_of(place, again.id)
    again.close()


def test_an_answer_of_another_process_is_held_before_it_is_told(place: str, anchor: Any) -> None:
    here, there = people(open_ledger(place, anchor=anchor)), open_ledger(place)
    asked = there.act("s", Query("people", Fraction(1, 8), (Count(),)), "r")
    there.answer(asked.seq, ((7,),))
    assert here.answer(asked.seq, ((8,),)) == ((7,),)
    assert anchor_of(anchor).hold(None) == mark_of(place, here.id)
    here.close()
    there.close()


def test_nothing_is_answered_while_the_anchor_cannot_be_kept(place: str, tmp_path: Path, anchor: Any) -> None:
    ledger = people(open_ledger(place, anchor=anchor))
    os.rename(tmp_path / "elsewhere", tmp_path / "gone")
    if isinstance(anchor, list):
        os.rename(anchor[0], f"{anchor[0]}-gone")
    query = Query("people", Fraction(1, 8), (Count(),))
    for _ in range(2):
        with pytest.raises(LedgerError, match="anchor"):
            ledger.act("s", query, "r")
    os.rename(tmp_path / "gone", tmp_path / "elsewhere")
    if isinstance(anchor, list):
        os.rename(f"{anchor[0]}-gone", anchor[0])
    acted = ledger.act("s", query, "r")
    assert ledger.answer(acted.seq, ((7,),)) == ((7,),)
    assert ledger.roots()["people"].spent == Fraction(1, 8)  # charged once
    ledger.close()


def test_two_copies_with_one_anchor_do_not_both_go_on(tmp_path: Path, anchor: Any) -> None:
    """A copy of the same moment opens; as soon as one has answered, the other stops."""
    paths = [tmp_path / "x.ledger", tmp_path / "y.ledger"]
    people(open_ledger(paths[0], anchor=anchor)).close()
    shutil.copy(*paths)
    one, two = (open_ledger(path, anchor=anchor) for path in paths)
    for _ in range(3):
        ask(one)
    for _ in range(4):  # fewer entries, as many, more: it is noticed at the first
        with pytest.raises(LedgerRolledBack):
            ask(two)
    one.close()
    two.close()


def test_a_copy_that_has_gone_further_is_noticed_by_both(tmp_path: Path) -> None:
    anchor, paths = str(tmp_path / "anchor"), [tmp_path / "x.ledger", tmp_path / "y.ledger"]
    people(open_ledger(paths[0], anchor=anchor)).close()
    shutil.copy(*paths)
    one, two = (open_ledger(path, anchor=anchor) for path in paths)
    for number in range(6):
        two.act("s", Assign(f"t{number}", Identity(), ("people",)))  # further, and unseen
    ask(one)
    with pytest.raises(LedgerRolledBack):
        ask(two)
    with pytest.raises(LedgerRolledBack):
        ask(one)
    one.close()
    two.close()


def test_an_anchor_never_moves_back_whoever_moves_it(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    marks = [Mark(A, seq, f"{seq:064x}") for seq in range(40)]
    seen: list[int] = []

    def mover(mine: list[Mark]) -> None:
        for mark in mine:
            AnchorFile(path).hold(mark)
            held = AnchorFile(path).hold(None)
            assert held is not None
            assert held.seq >= mark.seq
            seen.append(held.seq)

    threads = [threading.Thread(target=mover, args=(marks[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 40
    assert AnchorFile(path).hold(None) == marks[-1]
    assert AnchorFile(path).hold(marks[3]) == AnchorFile(path).hold(None) == marks[-1]
    assert AnchorFile(path).hold(Mark(B, 99, "f" * 64)) == AnchorFile(path).hold(None) == marks[-1]
    assert sorted(os.listdir(tmp_path)) == ["anchor", "anchor.lock"]


@pytest.mark.parametrize(
    "text", ["", "x", f"{A} 1", f"{A} -1 {'0' * 64}", f"{A} 1 {'0' * 64}\n{A} 2 {'0' * 64}"]
)
def test_an_anchor_that_cannot_be_read_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "anchor").write_text(text)
    with pytest.raises(LedgerError, match="does not hold"):
        open_ledger(tmp_path / "x.ledger", anchor=tmp_path / "anchor")
    assert not (tmp_path / "x.ledger").exists()


@pytest.mark.parametrize("command", [["/no/such"], ["false"], ["echo", "garbage"]])
def test_a_command_that_fails_is_refused(command: list[str], tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="anchor"):
        open_ledger(tmp_path / "x.ledger", anchor=command)


def test_a_command_that_hangs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpinq.ledger.anchor.COMMAND_SECONDS", 0.1)
    with pytest.raises(LedgerError, match="timed out"):
        AnchorCommand(["sleep", "5"]).hold(None)


def test_an_anchor_may_begin_later_and_goes_on_from_there(place: str, anchor: Any) -> None:
    ledger = people(open_ledger(place))
    ask(ledger)
    ledger.act("s", Assign("t", Identity(), ("people",)))
    ledger.close()
    ledger = open_ledger(place, anchor=anchor)
    held = anchor_of(anchor).hold(None)
    assert held is not None
    assert held.seq == ledger.head().seq - 1  # the assignment may be lost with the power
    ledger.close()


# ── embedded ─────────────────────────────────────────────────────────────────────────

ROWS = [{"age": age} for age in range(40)]


def test_protect_keeps_an_anchor_and_checks_it(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "elsewhere").mkdir()
    where, anchor = tmp_path / "x.ledger", tmp_path / "elsewhere" / "x.anchor"
    data = fp.protect(ROWS, name="people", budget=1, ledger=where, anchor=anchor)
    data.noisy_count("1/4")
    ledger = data.facts.system.record
    assert AnchorFile(anchor).hold(None) == Mark(ledger.id, *ledger.head())
    assert main(["ledger", "verify", str(where), "--expect-head", anchor.read_text()]) == 0
    again = fp.protect(ROWS, name="people", budget=1, ledger=where, anchor=os.path.relpath(anchor))
    assert again.remaining == Fraction(3, 4)
    with pytest.raises(ProgramError, match="say the same"):
        fp.protect(ROWS, name="people", budget=1, ledger=where, anchor=tmp_path / "other")
    with pytest.raises(ProgramError, match="ledger="):
        fp.protect(ROWS, name="people", budget=1, anchor=anchor)
    for wrong in (7, "", [], [7], b"x"):
        with pytest.raises(ProgramError, match="anchor"):
            fp.protect(ROWS, name="people", budget=1, ledger=tmp_path / "y.ledger", anchor=wrong)
    ledger.close()


def test_protect_does_not_begin_a_ledger_that_its_anchor_knows(tmp_path: Path) -> None:
    where, anchor = tmp_path / "x.ledger", tmp_path / "x.anchor"
    ledger = open_ledger(where, anchor=anchor)
    ledger.close()
    where.unlink()
    with pytest.raises(fp.LedgerRolledBack, match="no ledger"):
        fp.protect(ROWS, name="people", budget=1, ledger=where, anchor=anchor)
    assert not where.exists()


def test_an_anchor_that_is_named_later_in_a_process_is_checked_then(tmp_path: Path) -> None:
    where, anchor = tmp_path / "x.ledger", tmp_path / "x.anchor"
    data = fp.protect(ROWS, name="people", budget=1, ledger=where)
    anchor.write_text(Mark(data.facts.system.record.id, 99, "0" * 64).line)
    with pytest.raises(fp.LedgerRolledBack):
        fp.protect(ROWS, name="people", budget=1, ledger=where, anchor=anchor)
    data.facts.system.record.close()
