"""Contents: what data is, by what is in it. A copy, a link or another name is the same data.

A file is the SHA-256 of its bytes; a large one is read by several threads, and
is the SHA-256 of the SHA-256s of its blocks. Data in memory is a bag of records:
the SHA-256 of the sorted SHA-256s of its records, as fpinq reads them, so that
neither the order of rows and columns nor the kind of data frame matters. What only an engine can
reach (a url, a table of a catalog) is a bag of records too, hashed where it is.

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
from fpinq.engines.owner import in_our_words, unreadable
from fpinq.engines.spark.sources import is_elsewhere
from fpinq.ledger.wire import encode
from fpinq.model.errors import DataChanged
from fpinq.model.expressions import Type

# A block of a large file, and how much of it is read at a time.
BLOCK = 64 * 2**20
READ = 2**20

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Contents:
    """The hashes of data, and its files as they were when they were read."""

    hashes: tuple[str, ...]
    pins: tuple[Pin, ...] = ()

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
    for source, schema in sources:
        if hasattr(engine, "fingerprint") and is_elsewhere(source):
            shape, records, total = engine.fingerprint(source, schema)
            hashes.append(f"sum:{sha256(f'{encode(shape)}{records}:{total:x}'.encode()).hexdigest()}")
        elif is_files(source):
            pins += resolve(source).pins
        else:
            hashes.append(hash_of_records(source, schema))
    before = tuple(dict.fromkeys(pins))
    done, total = 0, sum(pin.size for pin in before)
    for pin in before:
        hashes.append(hash_of_file(pin.path, lambda part, done=done: progress(done + part, total)))  # type: ignore[misc]
        done += pin.size
    contents = Contents(tuple(sorted(set(hashes))), before)
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


@in_our_words(unreadable)
def hash_of_records(source: Any, schema: Mapping[str, Type] | None = None) -> str:
    """The contents of a data frame or a list of dicts: a bag of records."""
    import duckdb

    from fpinq.engines.duckdb import sources

    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:

        def describe(frame: object) -> dict[str, str]:
            connection.register("incoming", frame)
            return {
                row[0]: row[1] for row in connection.execute("DESCRIBE SELECT * FROM incoming").fetchall()
            }

        frame, columns = sources.in_memory(source, schema, describe)
        connection.register("incoming", frame)
        columns = sorted(columns, key=lambda column: column.name)
        select, shape, _ = sources.as_relation(columns, "incoming", lazy=False)
        # With its length before it, no value can run into the next.
        texts = [f"CAST(c{i} AS VARCHAR)" for i in range(len(columns))]
        record = " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)
        found = connection.execute(
            f"SELECT count(*), coalesce(sha256(string_agg(h, '' ORDER BY h)), '') "
            f"FROM (SELECT sha256({record}) AS h FROM ({select}))"
        ).fetchall()
    ((rows, records),) = found
    return f"records:{sha256(f'{encode(shape)}{rows}:{records}'.encode()).hexdigest()}"


def _block(path: str, start: int) -> bytes:
    digest, buffer = sha256(), memoryview(bytearray(READ))
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        left = BLOCK
        while left and (n := file.readinto(buffer[: min(READ, left)])):
            digest.update(buffer[:n])
            left -= n
    return digest.digest()
