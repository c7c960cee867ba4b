"""Columns by name: what frames, files and charts of results are made of."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from fractions import Fraction
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fpinq.client.edge import edges
from fpinq.model.errors import BadQuery, ProgramError, suggest
from fpinq.model.frozen import dataclass

# That of intervals; None is what an answer was asked with, or 95 %.
Confidence = float | Fraction | None

# What is to be installed, where that is more than a package's name: as in pyproject.toml.
_INSTALL = {"sqlglot": "'sqlglot>=30,<31'"}
# An integer beyond it is a float in a frame.
_LARGEST = 2**63


def needed(module: str, what: str) -> Any:
    """A module of a package that fpinq can do without; ProgramError says what to install."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError:
        install = _INSTALL.get(package, package)
        raise ProgramError(f"{what} needs {package}, which is not installed: pip install {install}") from None


@dataclass(frozen=True)
class Columns:
    """Columns of the same length, in order; None is what is missing.

    `numbers` are numbers even where all are missing.
    """

    values: Mapping[str, Sequence[Any]]
    numbers: frozenset[str] = frozenset()

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each row."""
        return [dict(zip(self.values, row, strict=True)) for row in zip(*self.values.values(), strict=True)]

    def of_frame(self, name: str) -> list[Any]:
        """A column as a frame takes it: of numbers all ints, or all floats."""
        values = [_in_frame(value) for value in self.values[name]]
        if name not in self.numbers or all(type(value) is int and abs(value) < _LARGEST for value in values):
            return values
        return [None if value is None else float(value) for value in values]

    def are_floats(self, name: str) -> bool:
        """Whether a column of numbers holds floats in a frame."""
        return name in self.numbers and not all(type(value) is int for value in self.of_frame(name))

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        pandas = needed("pandas", "to_pandas()")
        types = {name: "float64" if self.are_floats(name) else None for name in self.values}
        return pandas.DataFrame(
            {name: pandas.Series(self.of_frame(name), dtype=dtype) for name, dtype in types.items()}
        )

    def to_polars(self) -> Any:
        """A polars DataFrame."""
        polars = needed("polars", "to_polars()")
        types = {name: polars.Float64 if self.are_floats(name) else None for name in self.values}
        return polars.DataFrame(
            [polars.Series(name, self.of_frame(name), type_, strict=False) for name, type_ in types.items()]
        )

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        arrow = needed("pyarrow", "to_arrow()")
        types = {name: arrow.float64() if self.are_floats(name) else None for name in self.values}
        return arrow.table({name: arrow.array(self.of_frame(name), type_) for name, type_ in types.items()})

    def to_dict(self) -> dict[str, list[Any]]:
        """Column ↦ values."""
        return {name: list(values) for name, values in self.values.items()}

    def to_csv(self) -> str:
        """A line of names and one for each row."""
        rows = zip(*(self.of_frame(name) for name in self.values), strict=True)
        return csv_text([list(self.values), *rows])

    def to_json(self) -> str:
        """An array with an object for each row."""
        return json.dumps([in_json(row) for row in self.rows()], ensure_ascii=False)


# What spreadsheets begin a formula with, in either width.
_FORMULA = frozenset("=+-@＝＋－＠")


def csv_text(lines: Iterable[Sequence[Any]], end: str = "\n") -> str:
    """Lines of cells as CSV, for programs and for spreadsheets: the one place that writes it.

    A text that a spreadsheet would take for a formula has a ' before it, and stays a text.
    """
    import csv  # seldom needed

    written: list[str] = []  # by a writer of \r\n: one of \n would leave a \r in a text without quotes
    out = csv.writer(SimpleNamespace(write=written.append), lineterminator="\r\n")
    out.writerows(map(_cell, line) for line in lines)
    return "".join(line.removesuffix("\r\n") + end for line in written)


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def _is_formula(text: str) -> bool:
    first = next((c for c in text if c.isprintable() and not c.isspace()), "")
    if first == "-" and (text[1:].isdecimal() or text == "-inf"):
        return False  # integers that doubles would round are texts
    return first in _FORMULA or text[:1] in ("\t", "\r", "\n")


def _in_frame(value: Any) -> Any:
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value


def in_json(value: Any) -> Any:
    """A value as JSON has it: there are no infinities, and dates are texts."""
    if isinstance(value, Mapping):
        return {name: in_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [in_json(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else _in_frame(value)


@edges
class Tabular(ABC):
    """A result that can be taken elsewhere: as a frame, a file, a chart."""

    __slots__ = ()

    @abstractmethod
    def columns(self, confidence: Confidence = None) -> Columns:
        """The result, column by column: keys, values, and between what they are with this confidence."""

    def rows(self, confidence: Confidence = None) -> list[dict[str, Any]]:
        """A dict for each row."""
        return self.columns(confidence).rows()

    def to_pandas(self, confidence: Confidence = None) -> Any:
        """A pandas DataFrame: a column for each key, the value, low, high and standard_error."""
        return self.columns(confidence).to_pandas()

    def to_polars(self, confidence: Confidence = None) -> Any:
        """A polars DataFrame, of the same columns."""
        return self.columns(confidence).to_polars()

    def to_arrow(self, confidence: Confidence = None) -> Any:
        """A pyarrow Table, of the same columns."""
        return self.columns(confidence).to_arrow()

    def to_dict(self, confidence: Confidence = None) -> dict[str, Any]:
        """The same columns, each a list."""
        return self.columns(confidence).to_dict()

    def to_csv(self, path: str | PathLike[str] | None = None, confidence: Confidence = None) -> str | None:
        """The same columns as csv: in a file, or as text if no path is given."""
        return written(self.columns(confidence).to_csv(), path)

    def to_json(self, path: str | PathLike[str] | None = None, confidence: Confidence = None) -> str | None:
        """The same columns as JSON, an array with an object for each row: in a file, or as text."""
        return written(self.columns(confidence).to_json(), path)


def written(text: str, path: str | PathLike[str] | None) -> str | None:
    """A text in a file; or itself, if no path is given."""
    if path is None:
        return text
    Path(path).write_text(text, encoding="utf-8")
    return None


def pivoted(columns: Columns, down: Sequence[str], across: Sequence[str], of: str | None) -> Any:
    """A pandas DataFrame of one column, by keys down and across, in the order in which they come."""
    if not down:
        raise BadQuery("pivot needs two keys, one down and one across: by=[…, …]")
    pandas = needed("pandas", "pivot()")
    known = [name for name in columns.values if name not in (*down, *across)]
    name = known[0] if of is None else of
    if name not in known:
        raise BadQuery(f"no column {name!r} to pivot{suggest(name, known)}; there are: {', '.join(known)}")
    rows, places = (list(zip(*(columns.values[key] for key in keys), strict=True)) for keys in (down, across))
    cells = dict(zip(zip(rows, places, strict=True), columns.of_frame(name), strict=True))
    if len(cells) < len(rows):
        raise BadQuery("there are several answers of the same keys: ask what you pivot by itself")
    lines, heads = list(dict.fromkeys(rows)), list(dict.fromkeys(places))
    return pandas.DataFrame(
        [[cells.get((line, head)) for head in heads] for line in lines],
        index=_index(pandas, lines, down),
        columns=_index(pandas, heads, across),
    )


def _index(pandas: Any, keys: Sequence[tuple[Any, ...]], names: Sequence[str]) -> Any:
    if len(names) == 1:
        return pandas.Index([key for (key,) in keys], name=names[0])
    return pandas.MultiIndex.from_tuples(keys, names=names)
