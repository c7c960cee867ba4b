"""Upgrades: a ledger of format 1, as the code of then wrote it, goes on with all that was charged.

The golden files are of two commits: `format-1` charged group_by's keys twice, which the kernel no longer
does; `format-1-unsealed` had no key yet.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.cli.main import main
from fpinq.ledger import open_ledger, open_store
from fpinq.ledger.entries import START, Head, body_of
from fpinq.ledger.errors import LedgerCorrupt, OtherFormat
from fpinq.ledger.store import Pages, Statements, units_text
from fpinq.ledger.totals import totals_of
from fpinq.ledger.upgrade import upgrade
from fpinq.ledger.verify import verify
from fpinq.model.actions import Query
from fpinq.model.events import Recorded, Took, Upgraded
from fpinq.model.queries import Count
from fpinq.model.semantics import BOTTOM
from fpinq.model.units import units
from ledger.damage import behind_the_back, rewrite

GOLDEN = Path(__file__).parent / "golden"
OLDER = ["format-1.ledger", "format-1-unsealed.ledger"]
CSV = "age,name\n41,ada\n36,alan\n85,grace\n"
SPENT = {"people": "3/8", "visits": "21/64", "users": "27/70", "visits/tuesday": "67/192"}
HEAD = "5084310e9d225635c55c45c7aeab8385b7037715164115e808947b8a42beaef2"


def rows_of(path: Path, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()


def placed(place: str, name: str = "format-1.ledger") -> str:
    """A golden ledger in a database: the file, or its rows."""
    golden = GOLDEN / name
    if not place.startswith("postgres"):
        Path(place).write_bytes(golden.read_bytes())
        return place
    with closing(open_store(place)) as store, store.writing(durable=True) as sql:
        sql.run("DELETE FROM head")
        for table in ("entries", "head", "accounts", "secret"):
            for row in rows_of(golden, table):
                sql.run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
    return place


def upgraded(place: str) -> None:
    with closing(open_store(place, create=False)) as store:
        assert upgrade(store) is not None


def all_of(place: str, read: Callable[[Pages], Any]) -> Any:
    with closing(open_store(place, create=False)) as store, store.reading() as statements:
        found = read(Pages(statements))
        return found if isinstance(found, dict) else list(found)


def test_every_charge_and_every_answer_is_kept(place: str) -> None:
    placed(place)
    entries, accounts = all_of(place, lambda p: p.after(START.seq)), all_of(place, lambda p: p.accounts())
    upgraded(place)
    assert all_of(place, lambda pages: pages.of_format(1)) == entries
    assert all_of(place, lambda pages: pages.accounts()) == accounts
    bodies = [body_of(stored) for stored in entries]
    assert sum(isinstance(body, Recorded) for body in bodies) == 10
    assert sum(isinstance(body, Took) and bool(body.charged) for body in bodies) == 9


def test_the_new_chain_knows_the_old_head_and_what_was_spent(place: str) -> None:
    upgraded(placed(place))
    ledger = open_ledger(place, create=False)
    roots = ledger.roots()
    assert {name: str(state.spent) for name, state in roots.items()} == SPENT
    assert [name for name, state in roots.items() if state.frozen] == ["visits/tuesday"]
    assert ledger.spent_by("alice") == {"visits": Fraction(13, 64), "visits/tuesday": Fraction(1, 64)}
    assert ledger.spent_by("bob") == {"visits": Fraction(1, 8)}
    *_, last = map(body_of, ledger.entries())
    assert isinstance(last, Upgraded)
    assert (last.format, last.entries, last.head) == (1, 36, HEAD)
    assert {root: str(spent[""]) for root, spent in last.spent.items()} == SPENT
    ledger.close()
    with closing(open_store(place, create=False)) as store:
        report = verify(store)
    assert {name: str(spent) for name, (_, spent) in report.roots.items()} == SPENT


@pytest.mark.parametrize("name", OLDER)
def test_the_same_data_goes_on_with_what_is_left(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(CSV)
    upgraded(placed(str(tmp_path / "people.ledger"), name))
    data = fp.protect("people.csv", budget=2, ledger="people.ledger")
    assert data.remaining == Fraction(13, 8)
    assert data.noisy_count("13/8").charged == Fraction(13, 8)
    with pytest.raises(fp.BudgetExceeded):
        data.noisy_count("1/100")
    Path("people.csv").write_text(CSV + "1,eve\n")
    with pytest.raises(fp.DataChanged):
        fp.protect("people.csv", name="people", budget=2, ledger="people.ledger")


def test_programs_begin_anew_and_caps_count_what_was_spent(place: str, opened: Any) -> None:
    upgraded(placed(place))
    ledger = opened(place)
    with pytest.raises(fp.UnknownTable):
        ledger.act("s1", count("t", "1/100"), analyst="alice")
    assert ledger.act("s1", count("visits", "19/64"), analyst="alice").charged == {"visits": Fraction(19, 64)}
    assert ledger.act("s1", count("visits", "1/64"), analyst="alice").label == BOTTOM
    assert ledger.act("new", count("visits", "1/4"), analyst="bob").label == BOTTOM
    with pytest.raises(fp.Frozen):
        ledger.act("third", count("visits/tuesday", "1/100"))


def count(table: str, epsilon: str) -> Query:
    return Query(table, Fraction(epsilon), (Count(),))


def text(amount: str) -> str:
    return units_text(units(Fraction(amount)))


def _charged_less(sql: Statements) -> None:
    """With every hash after it, and the account: what only the kernel knows."""
    rewrite(sql, 21, lambda fields: fields.update(charged={"visits": "1/32"}), rest=True)
    for analyst, spent in (("", "15/64"), ("bob", "1/32")):
        sql.run("UPDATE accounts SET spent = ? WHERE root = 'visits' AND analyst = ?", text(spent), analyst)


DAMAGES: dict[str, Callable[[Statements], object]] = {
    "less is spent": lambda sql: sql.run("UPDATE accounts SET spent = ? WHERE analyst = ''", text("0")),
    "an account is gone": lambda sql: sql.run("DELETE FROM accounts WHERE analyst = 'bob'"),
    "the last entry is gone": lambda sql: sql.run("DELETE FROM entries WHERE seq = 35"),
    "an entry is gone": lambda sql: sql.run("DELETE FROM entries WHERE seq = 20"),
    "a text was edited": lambda sql: sql.run("UPDATE entries SET text = text || ' ' WHERE seq = 7"),
    "a charge is edited": lambda sql: rewrite(sql, 21, lambda f: f.update(charged={}), rest=True),
    "less was charged than the kernel charges": _charged_less,
    "a charge of what there is not": lambda sql: rewrite(
        sql, 21, lambda f: f.update(charged={"visits": "1/8", "more": "1"}), rest=True
    ),
    "more was charged than was promised": lambda sql: rewrite(
        sql, 21, lambda f: f.update(charged={"visits": "2"}), rest=True
    ),
    "a refusal that charges": lambda sql: rewrite(
        sql, 23, lambda f: f.update(charged={"visits": "1/8"}), rest=True
    ),
    "another rule": lambda sql: rewrite(sql, 20, lambda f: f.update(rule="Partition"), rest=True),
    "another analyst's session": lambda sql: rewrite(sql, 21, lambda f: f.update(analyst="eve"), rest=True),
    "an answer to nothing": lambda sql: rewrite(sql, 22, lambda f: f.update(released=[]), rest=True),
    "totals in it": lambda sql: rewrite(sql, 3, lambda f: f.update(totals="0"), rest=True),
    "a second beginning": lambda sql: rewrite(sql, 0, lambda f: f.update(kind="freeze", name="x"), rest=True),
    "a root twice": lambda sql: rewrite(sql, 10, lambda f: f.update(name="people"), rest=True),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_ledger_that_is_not_what_was_written_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    place = placed(str(tmp_path / "people.ledger"))
    with behind_the_back(place) as sql:
        DAMAGES[name](sql)
    before = rows_of(Path(place), "entries"), rows_of(Path(place), "accounts"), rows_of(Path(place), "head")
    with closing(open_store(place)) as store, pytest.raises(LedgerCorrupt):
        upgrade(store)
    assert before == (
        rows_of(Path(place), "entries"),
        rows_of(Path(place), "accounts"),
        rows_of(Path(place), "head"),
    )


def test_an_upgrade_that_is_cut_short_changes_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    placed(place)
    entries = all_of(place, lambda pages: pages.after(START.seq))

    def cut_short(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, closing(open_store(place)) as store:
        patched.setattr("fpinq.ledger.upgrade.replay", cut_short)
        with pytest.raises(KeyboardInterrupt):
            upgrade(store)
    assert all_of(place, lambda pages: pages.after(START.seq)) == entries
    upgraded(place)


def _brings_less(sql: Statements) -> None:
    """A chain, totals and accounts that fit together, and say that less was spent."""
    sql.run("UPDATE accounts SET spent = ? WHERE root = 'people'", text("1/8"))
    rows = sql.rows("SELECT root, analyst, spent, total FROM accounts")
    totals = totals_of({(root, who): (int(spent), int(total)) for root, who, spent, total in rows}).text

    def less(fields: dict[str, Any]) -> None:
        fields["spent"]["people"][""] = "1/8"
        fields["totals"] = totals

    rewrite(sql, 6, less, rest=True)


AFTERWARDS: dict[str, Callable[[Statements], object]] = {
    "less is brought along": _brings_less,
    "an older entry is edited": lambda sql: sql.run(
        "UPDATE entries_of_format_1 SET text = replace(text, '1/4', '1/8') WHERE seq = 2"
    ),
    "an older entry is gone": lambda sql: sql.run("DELETE FROM entries_of_format_1 WHERE seq = 35"),
    "all older entries are gone": lambda sql: sql.run("DELETE FROM entries_of_format_1"),
}


@pytest.mark.parametrize("name", AFTERWARDS)
def test_verify_compares_what_was_brought_along_with_what_is_kept(place: str, name: str) -> None:
    upgraded(placed(place))
    with behind_the_back(place) as sql:
        for verb in ("UPDATE", "DELETE"):
            if not place.startswith("postgres"):
                sql.run(f"DROP TRIGGER entries_of_format_1_no_{verb}")
        if place.startswith("postgres"):
            sql.run("DROP TRIGGER entries_append_only ON entries_of_format_1")
        AFTERWARDS[name](sql)
    open_ledger(place, create=False).close()  # as far as opening looks, all is well
    with closing(open_store(place)) as store, pytest.raises(LedgerCorrupt):
        verify(store)


def test_what_is_kept_cannot_be_changed_by_accident(place: str) -> None:
    upgraded(placed(place))
    for statement in ("UPDATE entries_of_format_1 SET seq = seq", "DELETE FROM entries_of_format_1"):
        with (
            closing(open_store(place)) as store,
            pytest.raises(fp.LedgerError, match="append-only"),
            store.writing(durable=True) as sql,
        ):
            sql.run(statement)


def test_the_command_upgrades_once_and_says_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = placed(str(tmp_path / "people.ledger"))
    assert main(["ledger", "verify", place]) == 6
    assert "fpinq ledger upgrade" in capsys.readouterr().err
    assert main(["ledger", "upgrade", place]) == 0
    printed = capsys.readouterr().out
    assert "people: 1.625 of 2 left" in printed
    assert HEAD in printed
    assert main(["ledger", "upgrade", place]) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert main(["ledger", "verify", place]) == 0
    assert "people: 1.625 of 2 left" in capsys.readouterr().out
    assert main(["ledger", "show", place]) == 0
    assert "upgraded from format 1, 36 entries, people − 3/8" in capsys.readouterr().out
    assert main(["ledger", "show", "--format", "1", place]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 36


def test_what_is_no_older_ledger_is_not_upgraded(tmp_path: Path) -> None:
    place = placed(str(tmp_path / "people.ledger"))
    with behind_the_back(place) as sql:
        rewrite(sql, 0, lambda fields: fields.update(format=3), rest=True)
    with closing(open_store(place)) as store, pytest.raises(OtherFormat, match="newer fpinq"):
        upgrade(store)
    with behind_the_back(place) as sql:
        rewrite(sql, 0, lambda fields: fields.update(format="x"), rest=True)
    with closing(open_store(place)) as store, pytest.raises(LedgerCorrupt):
        upgrade(store)
    with closing(open_store(tmp_path / "blank.ledger")) as store, pytest.raises(fp.NoLedger):
        upgrade(store)


def test_the_head_of_a_golden_ledger_is_what_the_code_of_then_printed() -> None:
    assert rows_of(GOLDEN / "format-1.ledger", "head") == [(1, *Head(35, HEAD))]
