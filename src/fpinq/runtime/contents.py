"""Contents: what data is, by what is in it. A copy, a link or another name is the same data.

A file is the SHA-256 of its bytes; a large one is read by several threads, and
is the SHA-256 of the SHA-256s of its blocks. Data in memory is a bag of records,
known by its columns too (`records`). What only an engine can reach (a url, a
table of a catalog) is a bag of records too, hashed where it is.

The same records in another file format are other contents: whoever converts
data on purpose is not stopped, only whoever does it by accident.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from fpinq.engines.files import Pin, is_files, resolve
from fpinq.engines.spark.sources import is_elsewhere
from fpinq.ledger.alike import Columns
from fpinq.ledger.wire import encode
from fpinq.model.errors import DataChanged
from fpinq.model.expressions import Type
from fpinq.runtime.records import records_of

# A block of a large file, and how much of it is read at a time.
BLOCK = 64 * 2**20
READ = 2**20

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Contents:
    """The hashes of data, its files as they were when they were read, the columns of what is in memory."""

    hashes: tuple[str, ...]
    pins: tuple[Pin, ...] = ()
    columns: tuple[Columns, ...] = ()

    def check_unchanged(self, root: str) -> None:
        """DataChanged if a file is not the one that was read."""
        if not all(pin.holds() for pin in self.pins):
            raise DataChanged(root)


def found_once(source: Any, engine: object = None) -> Any:
    """The files that a source stands for, so that what is hashed is what is read; else the source itself."""
    if is_files(source) and not (hasattr(engine, "fingerprint") and is_elsewhere(source)):
        return resolve(source)
    return source


def contents_of(
    sources: Iterable[tuple[Any, Mapping[str, Type] | None]],
    root: str,
    progress: Progress = lambda done, total: None,
    engine: object = None,
) -> Contents:
    """The contents of tables, each given as files or in memory, with the schema that was stated."""
    hashes: list[str] = []
    pins: list[Pin] = []
    columns: list[Columns] = []
    for source, schema in sources:
        if hasattr(engine, "fingerprint") and is_elsewhere(source):
            shape, number, total = engine.fingerprint(source, schema)
            hashes.append(f"sum:{sha256(f'{encode(shape)}{number}:{total:x}'.encode()).hexdigest()}")
        elif is_files(source):
            pins += resolve(source).pins
        else:
            records = records_of(source, schema)
            hashes.append(records.hash)
            columns.append(records.columns)
    before = tuple(dict.fromkeys(pins))
    done, total = 0, sum(pin.size for pin in before)
    for pin in before:
        hashes.append(hash_of_file(pin.path, lambda part, done=done: progress(done + part, total)))  # type: ignore[misc]
        done += pin.size
    contents = Contents(tuple(sorted(set(hashes))), before, tuple(columns))
    contents.check_unchanged(root)
    return contents


def hash_of_file(path: str, progress: Callable[[int], None] = lambda done: None) -> str:
    """The contents of a file."""
    size = os.path.getsize(path)
    if size <= BLOCK:
        return f"file:{_block(path, 0).hex()}"
    done, digest = 0, sha256()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        starts = range(0, size, BLOCK)
        for start, block in zip(starts, pool.map(lambda start: _block(path, start), starts), strict=True):
            digest.update(block)
            done = min(start + BLOCK, size)
            progress(done)
    return f"blocks:{digest.hexdigest()}"


def hash_of_records(source: Any, schema: Mapping[str, Type] | None = None) -> str:
    """The contents of a data frame or a list of dicts: a bag of records."""
    return records_of(source, schema).hash


def _block(path: str, start: int) -> bytes:
    digest, buffer = sha256(), memoryview(bytearray(READ))
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        left = BLOCK
        while left and (n := file.readinto(buffer[: min(READ, left)])):
            digest.update(buffer[:n])
            left -= n
    return digest.digest()
