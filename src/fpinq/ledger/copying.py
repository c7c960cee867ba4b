"""Copies of a ledger in a file: made while it is used, verified, and frozen when they are put back.

A copy has forgotten what was charged since it was made, and whatever was answered
since then was learned all the same. So a copy that is put back answers nothing
until its owner unfreezes it; unless its head is the one that was kept elsewhere,
and nothing is missing.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from fpinq.ledger import open_ledger, open_store
from fpinq.ledger.verify import Progress, Report, verify
from fpinq.model.errors import LedgerError, ProgramError


def back_up(source: str, to: str, progress: Progress = lambda done, total: None) -> Report:
    """Copy a ledger, and verify the copy. The ledger may be in use; the copy is of one moment."""
    with closing(open_store(_file(source), create=False)), _new_file(to) as new:
        _copy(source, new)
        return _verified(new, None, progress)


def put_back(
    copy: str, to: str, expected_head: str | None, progress: Progress = lambda done, total: None
) -> Report:
    """Make a verified copy the ledger at `to`: frozen, unless its head is the expected one."""
    with _new_file(to) as new:
        _copy(copy, new)
        report = _verified(new, expected_head, progress)
        if expected_head is None:
            with closing(open_ledger(new, create=False)) as ledger:
                for name in report.roots:
                    ledger.freeze(name)
        return report


def _verified(path: str, expected_head: str | None, progress: Progress) -> Report:
    with closing(open_store(path, create=False)) as store:
        return verify(store, expected_head, progress)


def _copy(source: str, new: str) -> None:
    """All of a database, as it is at one moment, with what is still in its log."""
    try:
        address = f"file:{_quoted(os.path.realpath(source))}?mode=rw"
        with closing(sqlite3.connect(address, uri=True)) as there, closing(sqlite3.connect(new)) as here:
            there.backup(here)
    except sqlite3.Error as error:
        raise LedgerError(f"{source} cannot be copied: {error}") from None


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


def _file(where: str) -> str:
    if where.startswith(("postgresql://", "postgres://")):
        raise ProgramError("a ledger in PostgreSQL is backed up and restored by pg_dump and pg_restore")
    return where


@contextmanager
def _new_file(to: str) -> Iterator[str]:
    """A file for its owner only, that gets its name when it is whole; ProgramError if the name is taken."""
    path = os.path.realpath(_file(to))
    if any(os.path.exists(path + beside) for beside in ("", "-wal")):
        raise ProgramError(
            f"there is something at {to} already: move it away first. It may know of charges that a copy "
            "has forgotten"
        )
    new = f"{path}.{secrets.token_hex(4)}"
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise ProgramError(f"{to} cannot be written: {error.strerror}") from None
    try:
        yield new
        os.link(new, path)  # fails if the name was taken meanwhile
    except FileExistsError:
        raise ProgramError(f"there is something at {to} already: move it away first") from None
    finally:
        for beside in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.remove(new + beside)
