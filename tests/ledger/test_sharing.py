"""Sharing out finds what verify finds: the same report, or the same first bad entry in the same words.

Random ledgers of several sessions, analysts and data sets; then whatever a hand
that knows the source can do to one: any value of any entry changed, with its
hash, with all hashes after it or with none; entries and columns moved, copied
and deleted; accounts and the head rewritten.
"""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fpinq.ledger import open_ledger, open_store
from fpinq.ledger.entries import hash_of
from fpinq.ledger.errors import LedgerCorrupt
from fpinq.ledger.sharing import share_of, together
from fpinq.ledger.store import units_text
from fpinq.ledger.verify import Report, concluded, read_beside, verify, with_older
from fpinq.ledger.wire import canonical
from fpinq.model.actions import Assign, Partition, Query
from fpinq.model.errors import LedgerError, ProgramError
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.keys import Product
from fpinq.model.queries import Count
from fpinq.model.transformations import Identity, Partitioning

AGES = Schema((("age", Type.INT64), ("adult", Type.BOOL)))
CELLS = Partitioning((Column("age"), Column("adult")), Product((range(3), (True, None))))
LISTED = Partitioning(CELLS.key, ((1, True), (2, None)))
BY = Partitioning(Column("age"), (0, 1))
ANALYSTS: dict[str, str | None] = {"s": None, "t": None, "u": "ann", "v": "ann", "w": "bob"}
LEDGERS = 3
# More with FPINQ_DAMAGES=1000.
DAMAGES = int(os.environ.get("FPINQ_DAMAGES", "40"))


def random_ledger(path: Path, seed: int) -> None:
    random, ledger = Random(seed), open_ledger(path)
    ledger.register("A", AGES, 3, contents=["a"], caps={"ann": "1/2"}, cap=1)
    tables: dict[str, list[str]] = {session: ["A"] for session in ANALYSTS}
    asked: list[tuple[int, int]] = []
    for number in range(40):
        session = random.choice(list(ANALYSTS))
        if number == 15:
            ledger.register("B", AGES, "5/7", contents=["b"])
            for known in tables.values():
                known.append("B")
        if random.random() < 0.05:
            random.choice([ledger.freeze, ledger.unfreeze])("A")
        if asked and random.random() < 0.4:
            seq, answers = asked.pop(random.randrange(len(asked)))
            ledger.answer(seq, tuple((random.randint(-5, 5),) for _ in range(answers)))
        table, name = random.choice(tables[session]), f"t{number}"
        by = random.choice([None, None, BY])
        epsilon = Fraction(random.randint(1, 4), random.choice([8, 10, 43]))
        action: Any = random.choice(
            [
                Assign(name, Identity(), (table,)),
                Partition((name, f"{name}'"), table, BY),
                *[Query(table, epsilon, (Count(),) * random.choice([1, 1 if by is None else 2]), by)] * 3,
                Query(table, epsilon, (Count(),), Partitioning(BY.key, range(-1, random.randint(0, 3)))),
                Query(table, epsilon, (Count(),), random.choice([CELLS, LISTED])),
            ]
        )
        try:
            acted = ledger.act(session, action, f"r{number}", ANALYSTS[session])
        except ProgramError:  # frozen
            continue
        if isinstance(action, Query):
            asked += [(acted.seq or 0, action.parts)] if acted.rule == "Query" else []
        else:
            tables[session].append(name)
    ledger.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


# ── what may be done to it ───────────────────────────────────────────────────────────


def some_place(random: Random, data: Any) -> tuple[Any, Any]:
    """A random object or array within parsed JSON, and a key or an index of it."""
    at: Any = random.choice(list(data))
    inner = data[at]
    if isinstance(inner, dict) and inner and random.random() < 0.7:
        return some_place(random, inner)
    if isinstance(inner, list) and inner and random.random() < 0.7:
        index = random.randrange(len(inner))
        if isinstance(inner[index], dict) and inner[index]:
            return some_place(random, inner[index])
        return inner, index
    return data, at


OTHERS: list[Any] = [
    None, True, 0, 1, -1, 7, 1.5, "", "s", "t", "A", "B", "C", "Query", "Query⊥", "Assign", "1/8", "2/16",
    "0.5", "action", "answer", "root", "ledger", "freeze", [], {}, [[3]], [1], {"A": "1/8"}, {"B": "1/43"},
    {"op": "count"},
]  # fmt: skip


def change_value(random: Random, fields: dict[str, Any]) -> str:
    parent, at = some_place(random, fields)
    parent[at] = random.choice(OTHERS)
    return canonical(fields)


def remove_value(random: Random, fields: dict[str, Any]) -> str:
    parent, at = some_place(random, fields)
    del parent[at]
    return canonical(fields)


def add_value(random: Random, fields: dict[str, Any]) -> str:
    fields[random.choice(["note", "released", "charged", "answers", "session"])] = random.choice(OTHERS)
    return canonical(fields)


def say_twice(random: Random, fields: dict[str, Any]) -> str:
    name = random.choice(list(fields))
    return canonical(fields)[:-1] + f",{canonical(name)}:{canonical(random.choice(OTHERS))}}}"


def with_spaces(random: Random, fields: dict[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ": ") if random.random() < 0.5 else None, sort_keys=True)


def unsorted(random: Random, fields: dict[str, Any]) -> str:
    names = random.sample(list(fields), len(fields))
    return json.dumps({name: fields[name] for name in names}, separators=(",", ":"))


def another_charge(random: Random, fields: dict[str, Any]) -> str:
    fields["charged"] = random.choice([{}, {"A": "1/8"}, {"A": "1/43", "B": "1/10"}, {"B": "5/7"}])
    return canonical(fields)


def torn(random: Random, fields: dict[str, Any]) -> str:
    text = canonical(fields)
    return text[: random.randrange(len(text))]


FORGERIES: list[Callable[[Random, dict[str, Any]], str]] = [
    change_value, change_value, change_value, remove_value, add_value, say_twice, with_spaces, unsorted,
    another_charge, torn,
]  # fmt: skip


def forge(connection: sqlite3.Connection, random: Random) -> None:
    """One entry says something else; what follows may know it or not, and be filed as it says or not."""
    rows = connection.execute("SELECT seq, text FROM entries ORDER BY seq").fetchall()
    at = random.randrange(len(rows))
    forged = random.choice(FORGERIES)(random, json.loads(rows[at][1]))
    rest, filed = random.random() < 0.8, random.random() < 0.7
    previous = None
    for seq, text in rows[at:] if rest else rows[at : at + 1]:
        said = forged if previous is None else canonical({**json.loads(text), "previous": previous})
        previous = hash_of(said)
        connection.execute("UPDATE entries SET text = ?, hash = ? WHERE seq = ?", (said, previous, seq))
    if rest:
        connection.execute("UPDATE head SET hash = ?", (previous,))
    if filed:
        refile(connection, rows[at][0], forged)


def refile(connection: sqlite3.Connection, seq: int, text: str) -> None:
    """The columns of an entry as its text says, if they can be."""
    try:
        said = json.loads(text)
        answer = said.get("kind") == "answer"
        filed = (
            None if answer else said.get("session", ""),
            None if answer else said.get("request"),
            said.get("answers") if answer else None,
        )
        connection.execute(
            "UPDATE entries SET session = ?, request = ?, answers = ? WHERE seq = ?", (*filed, seq)
        )
    except (ValueError, AttributeError, sqlite3.Error):
        pass


def move(connection: sqlite3.Connection, random: Random) -> None:
    """Entries, columns, accounts and the head, without a thought of hashes."""
    seqs = [seq for (seq,) in connection.execute("SELECT seq FROM entries")]
    here, there = random.sample(seqs, 2)
    copied = "(SELECT {0} FROM entries WHERE seq = ?) WHERE seq = ?"
    session = random.choice([*ANALYSTS, "", None, "x"])
    statement, parameters = random.choice(
        [
            ("DELETE FROM entries WHERE seq = ?", (here,)),
            ("DELETE FROM entries WHERE seq >= ?", (here,)),
            ("UPDATE entries SET seq = 1000 + seq WHERE seq >= ?", (here,)),
            ("UPDATE entries SET text = " + copied.format("text"), (here, there)),
            ("UPDATE entries SET hash = " + copied.format("hash"), (here, there)),
            ("UPDATE entries SET text = CAST(text AS BLOB) WHERE seq = ?", (here,)),
            ("UPDATE entries SET session = ? WHERE seq = ?", (session, here)),
            ("UPDATE entries SET request = 'other' WHERE seq = ?", (here,)),
            ("UPDATE entries SET answers = ? WHERE seq = ?", (random.choice([None, 10_000, -1]), here)),
            ("UPDATE head SET seq = ?", (random.choice([*seqs, -1, 1000]),)),
            ("UPDATE head SET hash = (SELECT hash FROM entries WHERE seq = ?)", (here,)),
            ("DELETE FROM accounts WHERE root = 'A'", ()),
            ("UPDATE accounts SET spent = ? WHERE root = 'A'", (units_text(random.choice([0, 1])),)),
            ("UPDATE accounts SET total = ?", (units_text(10**50),)),
        ]
    )  # fmt: skip
    connection.execute(statement, parameters)


def damage(path: Path, random: Random) -> None:
    with sqlite3.connect(path) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        random.choice([forge, forge, forge, move])(connection, random)
    connection.close()


# ── found the same ───────────────────────────────────────────────────────────────────


Outcome = Report | tuple[type, int | None, str]


def outcome(work: Callable[[], Report]) -> Outcome:
    try:
        return work()
    except LedgerCorrupt as error:
        return LedgerCorrupt, error.seq, error.what
    except LedgerError as error:
        return type(error), None, str(error)


def alone(path: Path) -> Outcome:
    with closing(open_store(path, create=False)) as store:
        return outcome(lambda: verify(store))


def shared(path: Path, shares: int) -> Outcome:
    def work() -> Report:
        beside = read_beside(store)
        found = [share_of(store, beside.last, None, lambda *_: None, n, shares) for n in range(shares)]
        return with_older(concluded(together(found), beside), store)

    with closing(open_store(path, create=False)) as store:
        return outcome(work)


@pytest.mark.parametrize("seed", range(LEDGERS))
def test_sharing_out_finds_what_verify_finds(seed: int, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole.ledger", tmp_path / "broken.ledger"
    random_ledger(whole, seed)
    report = alone(whole)
    assert isinstance(report, Report)
    assert report.sessions > 3
    assert [shared(whole, shares) for shares in (1, 2, 3)] == [report] * 3
    found = []
    for number in range(DAMAGES):
        broken.write_bytes(whole.read_bytes())
        damage(broken, Random(1000 * seed + number))
        expected = alone(broken)
        assert [shared(broken, shares) for shares in (2, 3)] == [expected] * 2, number
        found.append(expected)
    corrupt = {each[2].split(":")[0] for each in found if isinstance(each, tuple)}
    assert len(corrupt) > 5  # many kinds of damage were found
    assert sum(isinstance(each, tuple) for each in found) > DAMAGES * 0.8


def test_processes_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpinq.ledger.verify.WORTH_SHARING", 0)
    whole = tmp_path / "whole.ledger"
    random_ledger(whole, 7)
    with closing(open_store(whole, create=False)) as store:
        assert verify(store, jobs=2) == verify(store)
        head = verify(store).head.hash
        assert verify(store, head, jobs=2) == verify(store, head)
        for jobs in (1, 2):
            with pytest.raises(LedgerCorrupt, match="an older copy"):
                verify(store, "0" * 64, jobs=jobs)
    damage(whole, Random(3))
    with closing(open_store(whole, create=False)) as store:
        assert outcome(lambda: verify(store, jobs=2)) == alone(whole)


def test_queries_by_cells_are_not_taken_for_damage(tmp_path: Path) -> None:
    """The keys of several columns, each with each: one such query, and a sound ledger was called corrupt."""
    path = tmp_path / "whole.ledger"
    with closing(open_ledger(path)) as ledger:
        ledger.register("A", AGES, 3)
        for session in ANALYSTS:
            for by in (CELLS, LISTED):
                asked = ledger.act(session, Query("A", Fraction(1, 10), (Count(),), by))
                ledger.answer(asked.seq or 0, ((1,),) * len(by.keys))
    report = alone(path)
    assert isinstance(report, Report)
    assert report.unanswered == 0
    assert [shared(path, shares) for shares in (1, 2, 3)] == [report] * 3


@pytest.mark.parametrize("analyst", [1.5, 7, True, [], {}])
def test_an_analyst_that_is_no_name_is_found_by_all_shares(tmp_path: Path, analyst: Any) -> None:
    """With its hash and those of all entries after it; the share that it is not of raised a TypeError."""
    path = tmp_path / "broken.ledger"
    random_ledger(path, 0)
    with closing(sqlite3.connect(path)) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        previous = ""
        for seq, text in connection.execute("SELECT seq, text FROM entries ORDER BY seq").fetchall():
            fields = {**json.loads(text), **({"previous": previous} if seq else {})}
            said = canonical({**fields, "analyst": analyst} if fields.get("charged") else fields)
            previous = hash_of(said)
            connection.execute("UPDATE entries SET text = ?, hash = ? WHERE seq = ?", (said, previous, seq))
    expected = alone(path)
    assert isinstance(expected, tuple)
    assert [shared(path, shares) for shares in (2, 3)] == [expected] * 2
