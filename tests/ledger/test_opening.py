"""Opening notices what was edited: what is spent is in the chain, not only beside it."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from fpinq.ledger import open_ledger, opening
from fpinq.ledger.entries import START, parsed
from fpinq.ledger.errors import LedgerCorrupt
from fpinq.ledger.store import Statements, units_text
from fpinq.ledger.totals import totals_of
from fpinq.model.actions import Assign, Partition, Query
from fpinq.model.errors import LedgerError
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.queries import Count
from fpinq.model.transformations import Identity, Partitioning
from fpinq.model.units import units
from ledger.damage import behind_the_back, rewrite

AGES = Schema((("age", Type.INT64),))
Damage = Callable[[Statements], object]


def count(table: str, epsilon: str) -> Query:
    return Query(table, Fraction(epsilon), (Count(),))


STEPS: list[Callable[[Any], Any]] = [
    lambda ledger: ledger.register("people", AGES, 1, contents=["x"], caps={"alice": "1/2"}, cap="1/4"),
    lambda ledger: ledger.act("s", Assign("t", Identity(), ("people",))),
    lambda ledger: ledger.act("s", count("t", "1/4"), "r1"),
    lambda ledger: ledger.answer(3, ((10,),)),
    lambda ledger: ledger.act("s", Partition(("a", "b"), "t", Partitioning(Column("age"), (0, 1)))),
    lambda ledger: ledger.act("s", count("a", "1/8")),
    lambda ledger: ledger.answer(6, ((5,),)),
    lambda ledger: ledger.act("s", count("t", "2")),
    lambda ledger: ledger.register("visits", AGES, 2, contents=["y"]),
    lambda ledger: ledger.act("other", count("people", "1/8"), analyst="alice"),
    lambda ledger: ledger.act("third", count("people", "1/7"), analyst="bob"),
    lambda ledger: ledger.freeze("people"),
    lambda ledger: ledger.act("s", Assign("u", Identity(), ("t",))),
]
LAST = len(STEPS)


@pytest.fixture
def written(place: str) -> str:
    """0 ledger, 1 people, 2 assign, 3 query, 4 answer, 5 partition, 6 query, 7 answer, 8 ⊥, 9 visits,
    10 alice's query, 11 bob's query, 12 freeze, 13 assign."""
    ledger = open_ledger(place)
    for step in STEPS:
        step(ledger)
    ledger.close()
    return place


def text(amount: str) -> str:
    return units_text(units(Fraction(amount)))


def forge(seq: int, rest: bool = False, **fields: Any) -> Damage:
    """An entry that says otherwise, with its hash, or with every hash after it."""
    return lambda sql: rewrite(sql, seq, lambda found: found.update(fields), rest=rest)


def with_more(root: str, budget: str) -> Damage:
    """A larger budget, in its entry and in its account."""

    def how(sql: Statements) -> None:
        rewrite(sql, 1, lambda fields: fields.update(budget=budget))
        sql.run("UPDATE accounts SET total = ? WHERE root = ? AND analyst = ''", text(budget), root)

    return how


def cut(seq: int) -> Damage:
    """The entries after one deleted, and the head set to it: the accounts still know."""

    def how(sql: Statements) -> None:
        sql.run("DELETE FROM entries WHERE seq > ?", seq)
        ((hashed,),) = sql.rows("SELECT hash FROM entries WHERE seq = ?", seq)
        sql.run("UPDATE head SET seq = ?, hash = ?", seq, hashed)

    return how


DAMAGES: dict[str, Damage] = {
    "less is spent": lambda sql: sql.run(
        "UPDATE accounts SET spent = ? WHERE root = 'people' AND analyst = ''", text("1/8")
    ),
    "more is spent": lambda sql: sql.run(
        "UPDATE accounts SET spent = ? WHERE root = 'visits'", text("1/8")
    ),
    "nothing is spent": lambda sql: sql.run("UPDATE accounts SET spent = ?", text("0")),
    "an analyst has spent less": lambda sql: sql.run(
        "UPDATE accounts SET spent = ? WHERE analyst = 'alice'", text("1/16")
    ),
    "a larger total": lambda sql: sql.run(
        "UPDATE accounts SET total = ? WHERE root = 'people' AND analyst = ''", text("2")
    ),
    "a smaller total": lambda sql: sql.run("UPDATE accounts SET total = ? WHERE root = 'visits'", text("1")),
    "a larger cap": lambda sql: sql.run("UPDATE accounts SET total = ? WHERE analyst = 'bob'", text("1")),
    "no account": lambda sql: sql.run("DELETE FROM accounts WHERE root = 'visits'"),
    "no account of an analyst": lambda sql: sql.run("DELETE FROM accounts WHERE analyst = 'bob'"),
    "no accounts": lambda sql: sql.run("DELETE FROM accounts"),
    "one account more": lambda sql: sql.run(
        "INSERT INTO accounts (root, analyst, total, spent) VALUES ('more', '', ?, ?)", text("1"), text("0")
    ),
    "what is spent exchanged": lambda sql: [
        sql.run("UPDATE accounts SET spent = ? WHERE root = 'people' AND analyst = ''", text("0")),
        sql.run("UPDATE accounts SET spent = ? WHERE root = 'visits'", text("1/2")),
    ],
    "an account that is no number": lambda sql: sql.run(
        "UPDATE accounts SET spent = ? WHERE root = 'visits'", "-" * 56
    ),
    "a larger budget": with_more("people", "2"),
    "a root's contents": forge(9, contents=["z"]),
    "a cap taken away": forge(1, caps=None, cap=None, rest=True),
    "the last entry edited": lambda sql: sql.run(
        "UPDATE entries SET text = replace(text, '\"u\"', '\"v\"') WHERE seq = ?", LAST
    ),
    "an entry edited": lambda sql: sql.run(
        "UPDATE entries SET text = replace(text, '1/4', '1/8') WHERE seq = 3"
    ),
    "an entry edited, with its hash": forge(3, charged={"people": "1/8"}),
    "the last entry edited, with its hash": forge(LAST, totals="0" * 64),
    "the last entry's totals, with every hash": forge(LAST, totals="0" * 64, rest=True),
    "totals that move without a charge": forge(4, totals="0" * 64, rest=True),
    "an entry deleted": lambda sql: sql.run("DELETE FROM entries WHERE seq = 5"),
    "the last entry deleted": lambda sql: sql.run("DELETE FROM entries WHERE seq = ?", LAST),
    "the first entry deleted": lambda sql: sql.run("DELETE FROM entries WHERE seq = 0"),
    "no entries": lambda sql: sql.run("DELETE FROM entries"),
    "back before bob's query": cut(10),
    "back before any query": cut(2),
    "back to the beginning": cut(0),
    "the head set back": lambda sql: sql.run("UPDATE head SET seq = 10"),
    "a head set back whole": lambda sql: sql.run(
        "UPDATE head SET seq = 10, hash = (SELECT hash FROM entries WHERE seq = 10)"
    ),
    "no head": lambda sql: sql.run("DELETE FROM head"),
    "a head before the first": lambda sql: sql.run(
        f"UPDATE head SET seq = {START.seq}, hash = '{START.hash}'"
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_ledger_does_not_open(damage: str, written: str) -> None:
    with behind_the_back(written) as statements:
        DAMAGES[damage](statements)
    with pytest.raises(LedgerCorrupt, match="fpinq ledger verify"):
        open_ledger(written)


FOUND_IN_LONG_ONES = [
    damage for damage in DAMAGES
    if damage not in ("a cap taken away", "totals that move without a charge", "an entry deleted")
    and not damage.startswith(("an entry edited", "the first"))
]  # fmt: skip


@pytest.mark.parametrize("damage", FOUND_IN_LONG_ONES)
def test_a_damaged_ledger_does_not_open_however_long_it_is(
    damage: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "RECENT", 2)
    place = str(tmp_path / "x.ledger")
    ledger = open_ledger(place)
    for step in STEPS:
        step(ledger)
    ledger.close()
    with behind_the_back(place) as statements:
        DAMAGES[damage](statements)
    with pytest.raises(LedgerCorrupt):
        open_ledger(place)


@pytest.mark.parametrize("steps", range(LAST + 1))
def test_a_whole_ledger_opens_after_every_step_however_much_is_looked_at(
    steps: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "x.ledger")
    ledger = open_ledger(place)
    for step in STEPS[:steps]:
        step(ledger)
    for recent in range(LAST + 2):
        monkeypatch.setattr(opening, "RECENT", recent)
        other = open_ledger(place)
        assert other.head() == ledger.head()
        assert other._memory.budgets == ledger._memory.budgets
        other.close()
    ledger.close()


def test_entries_are_read_at_most_so_many_to_open(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "RECENT", 4)
    seen: list[int] = []
    real = opening.check_line
    monkeypatch.setattr(
        opening, "check_line", lambda stored, head: seen.append(stored.seq) or real(stored, head)
    )
    open_ledger(written).close()
    assert seen == list(range(LAST - 4, LAST + 1))


def test_an_edited_entry_that_opening_did_not_look_at_is_found_by_who_reads_it(
    written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "RECENT", 2)
    with behind_the_back(written) as statements:
        statements.run("UPDATE entries SET text = replace(text, '1/4', '1/8') WHERE seq = 3")
    ledger = open_ledger(written)
    ledger.unfreeze("people")
    with pytest.raises(LedgerCorrupt):
        ledger.act("s", count("t", "1/8"))
    with pytest.raises(LedgerCorrupt):
        ledger.act("s", count("t", "1/4"), "r1")
    ledger.close()


def test_an_account_that_is_edited_while_others_write_is_noticed(written: str) -> None:
    here, there = open_ledger(written), open_ledger(written)
    there.unfreeze("people")
    with behind_the_back(written) as statements:
        DAMAGES["an analyst has spent less"](statements)
    with pytest.raises(LedgerCorrupt):
        here.act("new", count("people", "1/100"))
    here.close()
    there.close()


def test_totals_are_of_all_accounts_in_any_order_and_of_nothing_else() -> None:
    accounts = {("a", ""): (1, 9), ("a", "b"): (0, 9), ("ab", ""): (1, 9), ("", "ab"): (1, 9)}
    whole = totals_of(accounts)
    assert totals_of(dict(reversed(accounts.items()))).text == whole.text
    seen = {whole.text}
    for account, (spent, total) in accounts.items():
        for other in ((spent + 1, total), (spent, total + 1), (total, spent)):
            changed = totals_of({**accounts, account: other})
            assert whole.after({account: other}) == changed
            assert changed.after({account: (spent, total)}) == whole
            seen.add(changed.text)
        seen.add(totals_of({key: found for key, found in accounts.items() if key != account}).text)
    assert len(seen) == 1 + 4 * 4


def test_every_entry_holds_the_totals_after_it(written: str) -> None:
    ledger = open_ledger(written)
    found = [parsed(stored)["totals"] for stored in ledger.entries()]
    ledger.close()
    assert found[0] == totals_of({}).text
    changes = [seq for seq in range(1, LAST + 1) if found[seq] != found[seq - 1]]
    assert changes == [1, 3, 6, 9, 10, 11]


def test_a_ledger_of_another_format_is_not_opened(written: str) -> None:
    with behind_the_back(written) as statements:
        rewrite(statements, 0, lambda fields: fields.update(format=1), rest=True)
    with pytest.raises(LedgerError, match="format 1"):
        open_ledger(written)
