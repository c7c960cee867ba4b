"""What the owner's commands read and change, whether a server runs or not: columns, and a server's ledger."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from fpinq.engines.files import Pin, hashes_of, is_files, resolve
from fpinq.engines.registry import KINDS, made
from fpinq.ledger import Ledger, RootState, open_ledger
from fpinq.model.errors import BadData, ProgramError
from fpinq.model.expressions import Schema
from fpinq.server.config import Config, DataSet, is_url


def schemas(data_set: DataSet) -> dict[str, Schema] | None:
    """The columns of a data set's tables, read off the files; None where only another engine can tell."""
    if not KINDS[data_set.engine].reads_here:
        return None
    engine = made("duckdb")
    try:
        found = {
            name: engine.add_root(name, table.source, table.schema, dialect=table.dialect)
            for name, table in data_set.tables.items()
        }
    except BadData as error:
        raise BadData(f"datasets.{data_set.name}: {error}") from None
    finally:
        engine.close()
    for name, schema in found.items():
        if data_set.unit is not None and data_set.unit not in schema.names():
            raise BadData(f"datasets.{data_set.name}: {name} has no column {data_set.unit!r}")
    return found


def check_new_data(data_set: DataSet, others: Iterable[DataSet]) -> None:
    """ProgramError if files of a data set have the bytes of another's: they would have two budgets."""
    own = set(_hashes(data_set))
    for other in others:
        if other.name != data_set.name and not own.isdisjoint(_hashes(other)):
            raise ProgramError(
                f"{data_set.name!r} has the data of {other.name!r}, and data has one budget, whatever it is "
                f"called: ask {other.name!r}"
            )


def _hashes(data_set: DataSet) -> list[str]:
    """What the files of a data set hold; nothing of what is not in files here."""
    pins: list[Pin] = []
    for table in data_set.tables.values():
        if KINDS[data_set.engine].reads_here and is_files(table.source):
            with suppress(BadData):  # files that are not there are the concern of whoever reads them
                pins += resolve(table.source).pins
    return list(hashes_of(tuple(pins)))


def states(config: Config) -> Mapping[str, RootState]:
    """Every data set that was served, with what is left of it."""
    with _ledger(config) as ledger:
        return {} if ledger is None else ledger.roots()


def freeze(config: Config, name: str, frozen: bool) -> None:
    """Freeze a data set, or let it be asked again, in every server on this ledger."""
    with _ledger(config) as ledger:
        if ledger is None or name not in ledger.roots():
            raise ProgramError(f"{name!r} is not in the ledger yet: start the server once, fpinq serve")
        (ledger.freeze if frozen else ledger.unfreeze)(name)


@contextmanager
def _ledger(config: Config) -> Iterator[Ledger | None]:
    """The ledger of a configuration; None if nothing was served yet. Looking makes none."""
    if not is_url(config.ledger) and not os.path.exists(config.ledger):
        yield None
        return
    ledger = open_ledger(config.ledger, create=False, anchor=config.anchor)
    try:
        yield ledger
    finally:
        ledger.close()
