"""Data sets that are written into the configuration while a server runs."""

import logging
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fpinq.cli.main import main
from fpinq.model.actions import Query
from fpinq.model.errors import BadData
from fpinq.model.queries import Count
from fpinq.server import load
from fpinq.server.house import House
from fpinq.server.reloading import take_new

ROWS = "age\n" + "".join(f"{i}\n" for i in range(10))
TYPES = ("--schema", "age=int64")


def add(config: Path, name: str, text: str, *more: str) -> None:
    (config.parent / f"{name}.csv").write_text(text)
    path = f"{name}.csv"
    given = ["--budget", "1", "--rows-at-most", "100", "--config", str(config), *TYPES, *more]
    assert main(["dataset", "add", name, path, *given]) == 0


@pytest.fixture
def config(tmp_path: Path) -> Path:
    found = tmp_path / "fpinq.toml"
    add(found, "people", ROWS)
    return found


@pytest.fixture
def house(config: Path) -> Iterator[House]:
    found = House(load(config))
    yield found
    found.close()


def test_a_new_data_set_and_a_new_block_are_served_without_a_restart(house: House, config: Path) -> None:
    add(config, "pets", ROWS + "77\n")
    add(config, "tuesday", ROWS + "88\n", "--block-of", "people")
    assert take_new(house, str(config)) == ["pets", "tuesday"]
    assert [found["name"] for found in house.catalog()] == ["people", "pets", "tuesday"]
    assert take_new(house, str(config)) == []


def test_what_cannot_be_served_is_told_to_the_owner_and_the_rest_is_served(
    house: House, config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add(config, "pets", ROWS + "77\n")
    (config.parent / "pets.csv").unlink()
    add(config, "cars", ROWS + "99\n")
    with caplog.at_level(logging.WARNING, "fpinq.owner"):
        assert take_new(house, str(config)) == ["cars"]
    assert "pets is not served" in caplog.text
    config.write_text("no toml")
    assert take_new(house, str(config)) == []


def test_a_data_set_that_only_the_ledger_knows_is_refused_before_the_charge(
    house: House, config: Path
) -> None:
    add(config, "pets", ROWS + "77\n")
    take_new(house, str(config))
    house.close()
    assert main(["dataset", "remove", "pets", "--config", str(config)]) == 0
    later = House(load(config))
    with pytest.raises(BadData, match="'pets' is not here"):
        later.system.act(Query("pets", Fraction(1), (Count(),)), session="s", analyst="ada")
    assert later.ledger.roots()["pets"].remaining == 1
    later.close()


def test_a_data_set_that_arrives_while_the_catalog_is_told_is_in_the_next_one(
    house: House, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changed the size of what was gone through, or was not in the ledger's state of a moment before."""
    add(config, "pets", ROWS + "77\n")
    roots = house.ledger.roots

    def arriving() -> Any:
        before = roots()
        monkeypatch.undo()
        assert take_new(house, str(config)) == ["pets"]
        return before

    monkeypatch.setattr(house.ledger, "roots", arriving)
    assert [found["name"] for found in house.catalog()] == ["people"]
    assert [found["name"] for found in house.catalog()] == ["people", "pets"]
