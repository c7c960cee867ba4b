"""What a command prints: a table for people, --json or --csv for programs."""

import csv
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from fpinq.model.epsilon import decimal_down


def add_forms(parser: ArgumentParser) -> None:
    """--json and --csv."""
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="for programs: JSON")
    forms.add_argument("--csv", action="store_true", help="for programs: CSV, with a header")


def print_rows(
    arguments: Namespace, names: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "nothing yet"
) -> None:
    """Rows under their names. Amounts are decimals, rounded down, for people, and exact for programs."""
    listed = [list(row) for row in rows]
    if arguments.json:
        print(
            json.dumps(
                [dict(zip(names, map(_exact, row), strict=True)) for row in listed], ensure_ascii=False
            )
        )
    elif arguments.csv:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(names)
        out.writerows(["" if cell is None else _exact(cell) for cell in row] for row in listed)
    elif not listed:
        print(empty)
    else:
        print(aligned([list(names), *([_shown(cell) for cell in row] for row in listed)]))


def print_facts(arguments: Namespace, facts: Mapping[str, object]) -> None:
    """Facts by their names, one under the other; for programs, one object or one row."""
    if arguments.json:
        print(json.dumps({name: _exact(fact) for name, fact in facts.items()}, ensure_ascii=False))
    elif arguments.csv:
        print_rows(arguments, list(facts), [list(facts.values())])
    else:
        print(aligned([[name, _shown(fact)] for name, fact in facts.items()]))


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns: numbers to the right, the rest to the left."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(_is_number(cell) for cell in column[1:]) for column in columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_the_right else cell.ljust(width)
            for cell, width, to_the_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    )


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").replace("-", "").replace("…", "").isdigit() or not cell


def _shown(cell: object) -> str:
    if cell is None:
        return ""
    text = (
        decimal_down(cell) if isinstance(cell, Fraction) else f"{cell:,}" if type(cell) is int else str(cell)
    )
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _exact(cell: object) -> Any:
    return str(cell) if isinstance(cell, Fraction) else cell
