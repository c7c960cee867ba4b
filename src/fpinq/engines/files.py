"""Files: what paths, folders and globs stand for, found once, pinned, and hashed.

A source is resolved here, in Python, into a sorted list of distinct real files.
That list is what is hashed, pinned, allowed and read by every engine: none of
them sees a glob or a folder, so none can understand one differently.

A name that is a file's is that file, whatever its characters mean elsewhere. A
folder stands for the files below it, a glob for the files and folders that
match. Among what these find, names that begin with `.` or `_` are left out, as
everywhere where tables are folders (_SUCCESS, .part.crc), and files without a
byte, which hold no record.

A file's contents are the SHA-256 of its bytes; a large one is read by several
threads, and is the SHA-256 of the SHA-256s of its blocks.
"""

import glob
import os
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from fpinq.model.errors import BadData
from fpinq.model.frozen import dataclass

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".csv.zst")
_HIDDEN = (".", "_")

# A block of a large file, and how much of it is read at a time.
BLOCK = 64 * 2**20
READ = 2**20

# Told how many bytes were read, of how many.
Progress = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    """Nobody waits."""


@dataclass(frozen=True)
class Pin:
    """A file as it was when it was protected.

    A program can give a file back its size and its time of modification, but
    not its time of change.
    """

    path: str
    size: int
    modified: int
    changed: int
    inode: int
    device: int

    @staticmethod
    def of(path: str) -> "Pin":
        """The file as it is now."""
        found = os.stat(path)
        return Pin(path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)

    def holds(self) -> bool:
        """Whether the file still is what it was."""
        try:
            return Pin.of(self.path) == self
        except OSError:
            return False


@dataclass(frozen=True)
class Files:
    """Distinct real files of one format, parquet or csv, that are read together; sorted by path."""

    pins: tuple[Pin, ...]
    format: str

    @property
    def paths(self) -> tuple[str, ...]:
        """Where they are."""
        return tuple(pin.path for pin in self.pins)

    def hold(self) -> bool:
        """Whether all of them still are what they were."""
        return all(pin.holds() for pin in self.pins)


def is_files(source: object) -> bool:
    """Whether a source is a path, a folder, a glob, a list of them, or files that were found already."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(item, str | Path) for item in source)
    return isinstance(source, str | Path | Files)


def resolve(source: Any) -> Files:
    """The files that a source stands for, now; BadData if there are none, or of several formats."""
    if isinstance(source, Files):
        return source
    given = [source] if isinstance(source, str | Path) else source
    pins = _distinct(pin for one in given for pin in _found(os.path.expanduser(os.fspath(one))))
    for pin in pins:
        _check_unicode(pin.path)
    formats = {_format(pin.path) for pin in pins}
    if len(formats) > 1:
        raise BadData("the files of one table must have one format: all parquet or all csv")
    return Files(pins, formats.pop())


def _distinct(pins: Iterator[Pin]) -> tuple[Pin, ...]:
    """Each file once, whatever links lead to it."""
    by_path = sorted(set(pins), key=lambda pin: pin.path)
    return tuple({(pin.device, pin.inode): pin for pin in reversed(by_path)}.values())[::-1]


def _found(name: str) -> list[Pin]:
    """The files of one path, folder or glob."""
    if "\0" in name:
        raise BadData("a file name cannot contain a NUL character")
    if os.path.isfile(name):
        pins = [Pin.of(os.path.realpath(name))]
        if not pins[0].size:
            raise BadData(f"{name} is empty")
        return pins
    pins = [Pin.of(os.path.realpath(path)) for path in _listed(name)]
    if not pins:
        raise BadData(f"no such file: {name}")
    if not any(pin.size for pin in pins):
        raise BadData(f"all files of {name} are empty")
    return [pin for pin in pins if pin.size]


def _listed(name: str) -> Iterator[str]:
    if os.path.isdir(name):
        yield from _below(name)
        return
    for path in glob.glob(name, recursive=True):
        if _is_hidden(path, name):
            continue
        if os.path.isdir(path):
            yield from _below(path)
        elif os.path.isfile(path):
            yield path


def _is_hidden(path: str, pattern: str) -> bool:
    """Whether a glob found a hidden file or folder without asking for hidden ones (_part*.csv)."""
    asked = [part for part in pattern.split(os.sep) if part.startswith(_HIDDEN)]
    return any(
        part.startswith(_HIDDEN) and not any(fnmatchcase(part, one) for one in asked)
        for part in path.split(os.sep)
    )


def _below(folder: str) -> Iterator[str]:
    """The files below a folder, wherever links lead."""
    seen: set[str] = set()
    waiting = [folder]
    while waiting:
        where = os.path.realpath(waiting.pop())
        if where in seen:
            continue
        seen.add(where)
        for entry in os.scandir(where):
            if entry.name.startswith(_HIDDEN):
                continue
            if entry.is_dir():
                waiting.append(entry.path)
            elif entry.is_file():
                yield entry.path


def _check_unicode(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise BadData(f"{path!a} is not Unicode text: rename the file or its folder") from None


def _format(path: str) -> str:
    if path.lower().endswith(PARQUET):
        return "parquet"
    if path.lower().endswith(TEXT):
        return "csv"
    raise BadData(f"{path} is neither parquet nor csv, by its name: convert it, or rename it")


# ── what is in them ──────────────────────────────────────────────────────────────────


def hashes_of(pins: Collection[Pin], progress: Progress = silent) -> list[str]:
    """The contents of each of these files, as they are now."""
    hashes: list[str] = []
    done, total = 0, sum(pin.size for pin in pins)
    for pin in pins:
        hashes.append(hash_of_file(pin.path, lambda part, done=done: progress(done + part, total)))  # type: ignore[misc]
        done += pin.size
    return hashes


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


def _block(path: str, start: int) -> bytes:
    digest, buffer = sha256(), memoryview(bytearray(READ))
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        left = BLOCK
        while left and (n := file.readinto(buffer[: min(READ, left)])):
            digest.update(buffer[:n])
            left -= n
    return digest.digest()
