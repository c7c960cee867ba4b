"""Budget regained by losing, exchanging or rolling back what a server has written."""

import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fpinq.cli.main import main
from fpinq.ledger import open_ledger
from fpinq.ledger.anchor import AnchorFile
from fpinq.ledger.errors import LedgerRolledBack, NoLedger
from fpinq.model.actions import Query
from fpinq.model.errors import LedgerError, ProgramError
from fpinq.model.queries import Count
from fpinq.runtime import Answered
from fpinq.server import load
from fpinq.server.config import parse
from fpinq.server.house import House

HALF = Query("people", Fraction(1, 2), (Count(),))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "people.csv").write_text("age\n" + "".join(f"{20 + i % 50}\n" for i in range(100)))
    written = "[datasets.people]\npath = 'people.csv'\nbudget = 1\nrows_at_most = 1000\n"
    written += "schema = { age = 'int64' }\n"
    (tmp_path / "fpinq.toml").write_text(written)
    (tmp_path / "anchored.toml").write_text(f'anchor = "elsewhere/people.anchor"\n{written}')
    assert main(["token", "create", "alice", "--config", str(tmp_path / "fpinq.toml")]) == 0
    return tmp_path / "fpinq.toml"


def spend(config: Path, **changes: Any) -> Fraction:
    """A server that starts, answers one query and stops; what is left then."""
    from dataclasses import replace

    house = House(replace(load(config), **changes))
    try:
        assert isinstance(house.system.act(HALF, session="s", analyst="alice"), Answered)
        return house.ledger.roots()["people"].remaining
    finally:
        house.close()


LOSSES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda ledger: ledger.unlink(),
    "emptied": lambda ledger: ledger.write_bytes(b""),
    "a folder": lambda ledger: [ledger.unlink(), ledger.mkdir()],
    "another ledger": lambda ledger: [ledger.unlink(), open_ledger(ledger).close()],
    "half a ledger": lambda ledger: ledger.write_bytes(ledger.read_bytes()[:5000]),
    "an older copy": lambda ledger: shutil.copy(ledger.parent / "older", ledger),
}


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "an older copy"])
def test_a_lost_ledger_beside_its_tokens_is_not_served(loss: str, config: Path) -> None:
    assert spend(config) == Fraction(1, 2)
    LOSSES[loss](config.parent / "fpinq.ledger")
    for _ in range(2):  # refusing makes no ledger that the next start would take
        with pytest.raises(LedgerError):
            House(load(config))


@pytest.mark.parametrize("loss", LOSSES)
def test_an_anchor_outlives_ledger_and_tokens(loss: str, config: Path) -> None:
    anchored, ledger = config.parent / "anchored.toml", config.parent / "fpinq.ledger"
    House(load(anchored)).close()
    shutil.copy(ledger, config.parent / "older")
    assert spend(anchored) == Fraction(1, 2)
    LOSSES[loss](ledger)
    for file in config.parent.glob("fpinq.tokens*"):
        file.unlink()
    for new in (False, True):  # --new-ledger is about the tokens: it takes nothing back from the anchor
        with pytest.raises(LedgerError):
            spend(anchored, new_ledger=new)


def test_an_older_copy_without_an_anchor_is_what_the_warning_says(config: Path) -> None:
    House(load(config)).close()
    shutil.copy(config.parent / "fpinq.ledger", config.parent / "older")
    assert spend(config) == Fraction(1, 2)
    LOSSES["an older copy"](config.parent / "fpinq.ledger")
    assert spend(config) == Fraction(1, 2)


def test_a_new_ledger_is_served_to_who_says_so_and_then_known(config: Path) -> None:
    assert spend(config) == Fraction(1, 2)
    (config.parent / "fpinq.ledger").unlink()
    with pytest.raises(NoLedger, match="fpinq serve --new-ledger"):
        spend(config)
    assert not (config.parent / "fpinq.ledger").exists()
    assert spend(config, new_ledger=True) == Fraction(1, 2)
    assert spend(config) == 0


def test_tokens_alone_are_no_sign_of_a_ledger_and_may_be_lost(config: Path) -> None:
    assert spend(config) == Fraction(1, 2)  # tokens came first, as they do
    for file in config.parent.glob("fpinq.tokens*"):
        file.unlink()
    assert spend(config) == 0  # the ledger remembers


def test_a_ledger_that_moves_with_its_tokens_goes_on(config: Path) -> None:
    assert spend(config) == Fraction(1, 2)
    os.rename(config.parent / "fpinq.ledger", config.parent / "moved.ledger")
    assert spend(config, ledger=str(config.parent / "moved.ledger")) == 0


def test_a_ledger_in_postgresql_that_goes_back_is_not_served(config: Path, postgres: Any) -> None:
    url, anchor = postgres.fresh(), str(config.parent / "elsewhere" / "people.anchor")
    house = House(_on(config, url, anchor))
    dump = _tables(url)
    assert isinstance(house.system.act(HALF, session="s", analyst="alice"), Answered)
    house.close()
    _restore(url, dump)
    with pytest.raises(LedgerRolledBack):
        House(_on(config, url, anchor))
    _restore(url, {table: [] for table in dump})
    with pytest.raises(LedgerError):
        House(_on(config, url, anchor))
    with pytest.raises(LedgerError):
        House(_on(config, postgres.fresh(), None))


def _on(config: Path, ledger: str, anchor: str | None) -> Any:
    from dataclasses import replace

    return replace(load(config), ledger=ledger, anchor=anchor)


TABLES = ("entries", "head", "accounts", "secret")


def _tables(url: str) -> dict[str, list[Any]]:
    import psycopg

    with psycopg.connect(url) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}  # type: ignore[arg-type]


def _restore(url: str, dump: dict[str, list[Any]]) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("DROP TRIGGER IF EXISTS entries_append_only ON entries")
        for table, rows in dump.items():
            connection.execute(f"DELETE FROM {table}")  # type: ignore[arg-type]
            for row in rows:
                places = ", ".join(["%s"] * len(row))
                connection.execute(f"INSERT INTO {table} VALUES ({places})", row)  # type: ignore[arg-type]


def test_workers_and_commands_share_one_anchor(config: Path) -> None:
    anchored = load(config.parent / "anchored.toml")
    houses = [House(anchored), House(anchored)]
    for number in range(4):
        house = houses[number % 2]
        house.system.act(Query("people", Fraction(1, 8), (Count(),)), session="s", analyst="alice")
    command = ["--config", str(config.parent / "anchored.toml")]
    assert main(["dataset", "freeze", "people", *command]) == 0
    held = AnchorFile(str(anchored.anchor)).hold(None)
    assert held is not None
    assert (held.seq, held.hash) == houses[0].ledger.head()
    for house in houses:
        house.close()


def test_the_anchor_in_the_configuration(tmp_path: Path) -> None:
    assert parse({}, tmp_path).anchor is None
    assert parse({"anchor": "x/y"}, tmp_path).anchor == str(tmp_path / "x/y")
    assert parse({"anchor_command": ["keep", "it"]}, tmp_path).anchor == ("keep", "it")
    for wrong in (
        {"anchor": 7},
        {"anchor": ""},
        {"anchor_command": "keep"},
        {"anchor_command": []},
        {"anchor_command": [7]},
        {"anchor": "x", "anchor_command": ["keep"]},
    ):
        with pytest.raises(ProgramError, match="anchor"):
            parse(wrong, tmp_path)
