"""Parquet: read where it is, whole columns at a time, under names of ours.

DuckDB sees links in a folder of ours, f0.parquet and so on, so that no character
of the owner's file names means anything to it. What it reads is checked once, to
the end, when it is protected: the files are those that were found, they have the
same columns, and every value of every row can be had. What a footer says about
values is never believed (docs/decisions/0060).
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import duckdb

from fpinq.engines.duckdb.sources import quote
from fpinq.engines.files import Files, Pin
from fpinq.model.errors import BadData

# What DuckDB calls a row's number. If a column of the data is called so, the name is the data's.
_NUMBERS = ("file_index", "file_row_number")


class Links:
    """A folder with names of ours for the owner's files.

    A file that is not what it was has another name: nothing that is remembered of the old one is
    found under it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._names: dict[Pin, str] = {}
        os.makedirs(folder)

    def to(self, files: Files) -> Files:
        """The same files under our names."""
        return replace(files, pins=tuple(replace(pin, path=self._name(pin)) for pin in files.pins))

    def _name(self, pin: Pin) -> str:
        if pin not in self._names:
            name = os.path.join(self._folder, f"f{len(self._names)}.parquet")
            os.symlink(pin.path, name)
            self._names[pin] = name
        return self._names[pin]


def scan(linked: Files) -> str:
    """The table function that reads files."""
    return f"read_parquet({_listed(linked.paths)}, hive_partitioning = false)"


def row_number(linked: Files, columns: Iterable[str]) -> str | None:
    """The SQL of a row's number; None if the data has a column of that name."""
    if not {name.casefold() for name in columns}.isdisjoint(_NUMBERS):
        return None
    several = f"CAST(file_index AS BIGINT) * {2**40} + " if len(linked.pins) > 1 else ""
    return f"{several}CAST(file_row_number AS BIGINT)"


def columns_of(connection: duckdb.DuckDBPyConnection, linked: Files) -> list[tuple[str, str]]:
    """The columns of the files and their types; BadData if they are not the same in all of them."""
    found = [_columns(connection, path) for path in linked.paths]
    if any(columns != found[0] for columns in found):
        raise BadData("the files of one table must have the same columns and types, in the same order")
    return found[0]


def _columns(connection: duckdb.DuckDBPyConnection, path: str) -> list[tuple[str, str]]:
    described = connection.execute(f"DESCRIBE SELECT * FROM read_parquet({_listed([path])})").fetchall()
    nodes = connection.execute(f"SELECT name, num_children FROM parquet_schema({_listed([path])})").fetchall()
    # DuckDB renames what it cannot tell apart.
    if [name for name, *_ in described] != _children(nodes):
        raise BadData("columns need different names, in more than upper and lower case: rename them")
    return [(name, type_) for name, type_, *_ in described]


def _children(nodes: Sequence[tuple[str, int | None]]) -> list[str]:
    """The names below the root of a tree that is given in depth-first order."""
    names, below = [], 0
    for name, children in nodes[1:]:
        if not below:
            names.append(name)
        below += (children or 0) - (1 if below else 0)
    return names


def check(connection: duckdb.DuckDBPyConnection, linked: Files, select: str, columns: int) -> None:
    """Read everything to the end once; BadData unless it is all rows of these files and no others."""
    footers: Any = connection.execute(
        f"SELECT file_name, num_rows FROM parquet_file_metadata({_listed(linked.paths)})"
    ).fetchall()
    values = "".join(f", bit_xor(hash(c{i}))" for i in range(columns))
    (read, *_) = connection.execute(f"SELECT count(*){values} FROM ({select})").fetchall()[0]
    if sorted(name for name, _ in footers) != sorted(linked.paths) or sum(n for _, n in footers) != read:
        raise BadData("the engine reads other rows than the files say they have")


def _listed(paths: Iterable[str]) -> str:
    return "[" + ", ".join(quote(path) for path in paths) + "]"
