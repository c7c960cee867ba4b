"""Contents: what data is, by what is in it. A copy, a link or another name is the same data.

A file is known by its bytes (`engines.files`). Data in memory is a bag of
records, known by its columns too (`records`). What only an engine can reach (a
url, a table of a catalog) is known by what the engine finds there: a bag of
records, hashed where it is, or what its owner says that it is.

The same records in another file format are other contents: whoever converts
data on purpose is not stopped, only whoever does it by accident.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from fpinq.engines.files import Files, Pin, Progress, hashes_of, silent
from fpinq.engines.interface import Engine, Fingerprint
from fpinq.ledger.alike import ColumnHashes
from fpinq.ledger.wire import encode
from fpinq.model.errors import DataChanged
from fpinq.model.expressions import Type
from fpinq.model.frozen import dataclass
from fpinq.runtime.records import records_of


@dataclass(frozen=True)
class Contents:
    """The hashes of data, its files as they were when they were read, the columns of what is in memory."""

    hashes: tuple[str, ...] = ()
    pins: tuple[Pin, ...] = ()
    columns: tuple[ColumnHashes, ...] = ()

    def check_unchanged(self, root: str) -> None:
        """DataChanged if a file is not the one that was read."""
        if not all(pin.holds() for pin in self.pins):
            raise DataChanged(root)


def contents_of(
    sources: Iterable[tuple[Any, Mapping[str, Type] | None]],
    root: str,
    engine: Engine,
    progress: Progress = silent,
) -> Contents:
    """The contents of tables, each given as it was found, with the schema that was stated."""
    hashes: list[str] = []
    pins: list[Pin] = []
    columns: list[ColumnHashes] = []
    for source, schema in sources:
        if engine.owns(source):
            hashes.append(_hash_of(engine.fingerprint(source)))
        elif isinstance(source, Files):
            pins += source.pins
        else:
            records = records_of(source, schema)
            hashes.append(records.hash)
            columns.append(records.columns)
    found = tuple(dict.fromkeys(pins))
    hashes += hashes_of(found, progress)
    contents = Contents(tuple(sorted(set(hashes))), found, tuple(columns))
    contents.check_unchanged(root)
    return contents


def hash_of_records(source: Any, schema: Mapping[str, Type] | None = None) -> str:
    """The contents of a data frame or a list of dicts: a bag of records."""
    return records_of(source, schema).hash


def _hash_of(found: Fingerprint | str) -> str:
    if isinstance(found, str):
        return f"said:{sha256(found.encode()).hexdigest()}"
    shape, number, total = found
    return f"sum:{sha256(f'{encode(shape)}{number}:{total:x}'.encode()).hexdigest()}"
