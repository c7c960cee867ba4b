"""The client's own tests again, over HTTP: fp.protect puts the data on a server and connects to it.

Each module here is one of tests/client. What is left out says something about the
embedded system only; the reason is beside it.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY, VISITS
from fpinq.client.remote import Catalog
from fpinq.model import epsilon as exact
from fpinq.model.errors import ProgramError
from fpinq.server import DataSet, TableConfig
from server.live import Live, serve


class Remote:
    """fp.protect, on a server."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._catalog = live.connect()

    def protect(
        self,
        data: Any,
        *,
        budget: Any,
        name: str | None = None,
        unit: str | None = None,
        rows_per_unit: Any = None,
        columns: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
        engine: Any = "duckdb",
    ) -> Any:
        if engine == "server":
            engine = "duckdb"
        shared = budget if isinstance(budget, fp.Budget) else None
        name = name or f"data{len(self._live.house.data_sets)}"
        sources = data if isinstance(data, Mapping) else {name: data}
        many = isinstance(data, Mapping)
        if (unit is None) != (rows_per_unit is None) or (many and unit is None):
            raise ProgramError("a unit and its rows go together")
        most = rows_per_unit if isinstance(rows_per_unit, Mapping) else dict.fromkeys(sources, rows_per_unit)
        if unit is not None and (
            most.keys() != sources.keys() or not all(_is_bound(m) for m in most.values())
        ):
            raise ProgramError("rows_per_unit, a whole number ≥ 1")
        tables = {
            table: TableConfig(
                source if not isinstance(source, Path) else str(source),
                _types(schema if not many else (schema or {}).get(table)),
                most[table],
                {
                    c: _known(k)
                    for c, k in (columns if not many else (columns or {}).get(table, {}) or {}).items()
                }
                if columns
                else {},
            )
            for table, source in sources.items()
        }
        amount = shared.remaining if shared else exact.budget(budget)
        self._live.house.add(DataSet(name, Fraction(amount), tables, unit, engine))
        system = self._catalog._system
        found = Catalog(system)[name]
        if shared is not None:
            assert not isinstance(found, dict)
            return found.with_budget(shared)
        return found


def _is_bound(most: Any) -> bool:
    return type(most) is int and most >= 1


def _types(schema: Mapping[str, Any] | None) -> Any:
    from fpinq.client.protect import _types as types

    return types(schema)


def _known(column: Any) -> dict[str, Any]:
    given = {"bounds": column.bounds, "keys": column.keys}
    return {what: value for what, value in given.items() if value is not None}


@pytest.fixture(autouse=True)
def over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with serve(tmp_path, {}, limits={"epsilon_at_least": "1e-18"}) as live:
        monkeypatch.setattr(fp, "protect", Remote(live).protect)
        yield


@pytest.fixture
def engine() -> str:
    return "server"


@pytest.fixture
def people(over_http: None) -> Any:
    return fp.protect(PEOPLE, budget=PLENTY, name="people")


@pytest.fixture
def visits(over_http: None, people: Any) -> Any:
    return fp.protect(VISITS, budget=PLENTY, name="visits")
