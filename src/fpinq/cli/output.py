"""What a command prints: a table for people, --json or --csv for programs.

In a terminal, and where rich is installed, tables are drawn by it; else they are plain text. Nothing else of
the command line prints: names in what it says are anybody's, and a terminal obeys some characters.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import IO, Any

from fpinq.client.amounts import SMALL, Amount
from fpinq.client.columns import csv_text
from fpinq.model.epsilon import decimal_down
from fpinq.model.visible import visible, visible_lines

# How long a bar of what is left is.
BAR = 20


def tell(*words: object, sep: str = " ", file: IO[str] | None = None, flush: bool = False) -> None:
    """Print: the one way from the command line to a terminal."""
    print(visible_lines(sep.join(map(str, words))), file=file, flush=flush)


def tell_json(text: str) -> None:
    """Print JSON, in which what cannot be printed can be escaped: it stays the same value."""
    print("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text))


def tell_csv(text: str) -> None:
    """Print CSV: as it is for programs, and visible in a terminal."""
    print(visible_lines(text) if sys.stdout.isatty() else text, end="")


def add_forms(parser: ArgumentParser) -> None:
    """--json and --csv."""
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="for programs: JSON")
    forms.add_argument("--csv", action="store_true", help="for programs: CSV, with a header")


def print_rows(
    arguments: Namespace,
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    empty: str = "nothing yet",
    burning: tuple[str, str] | None = None,
) -> None:
    """Rows under their names. Amounts are decimals, rounded down, for people, and exact for programs.

    burning are the names of what is left and of what there was: in a terminal, a bar.
    """
    listed = [list(row) for row in rows]
    if arguments.json:
        facts = [dict(zip(names, map(_exact, row), strict=True)) for row in listed]
        tell_json(json.dumps(facts, ensure_ascii=False))
    elif arguments.csv:
        tell_csv(csv_text([names, *listed]))
    elif not listed:
        tell(empty)
    elif is_rich():
        bars = (
            None if burning is None else [_bar(dict(zip(names, row, strict=True)), burning) for row in listed]
        )
        draw(names, [[_shown(cell) for cell in row] for row in listed], bars)
    else:
        tell(aligned([list(names), *([_shown(cell) for cell in row] for row in listed)]))


def print_facts(arguments: Namespace, facts: Mapping[str, object]) -> None:
    """Facts by their names, one under the other; for programs, one object or one row."""
    if arguments.json:
        tell_json(json.dumps({name: _exact(fact) for name, fact in facts.items()}, ensure_ascii=False))
    elif arguments.csv:
        print_rows(arguments, list(facts), [list(facts.values())])
    elif is_rich():
        draw(None, [[name, _shown(fact)] for name, fact in facts.items()])
    else:
        tell(aligned([[name, _shown(fact)] for name, fact in facts.items()]))


def print_answers(arguments: Namespace, answer: Any) -> None:
    """An answer, or several under their keys: in words for people, with all their columns for programs.

    Every one of them is printed: they were paid for.
    """
    if arguments.json:
        tell_json(answer.to_json())
    elif arguments.csv:
        tell_csv(answer.to_csv())
    elif hasattr(answer, "shown"):
        names, lines, footer = answer.shown()
        if is_rich():
            draw(names, lines)
        else:
            tell(aligned([names, *lines]))
        if footer:
            tell(footer)
    else:
        tell(answer)


def say(arguments: Namespace, text: str, facts: Mapping[str, object]) -> None:
    """What was done: in a sentence for people, as facts for programs."""
    if arguments.json or arguments.csv:
        print_facts(arguments, facts)
    else:
        tell(text)


def is_rich() -> bool:
    """Whether whoever reads is at a terminal, and rich is there to draw for them."""
    return sys.stdout.isatty() and find_spec("rich") is not None


def draw(
    names: Sequence[str] | None, rows: Sequence[Sequence[str]], bars: Sequence[str] | None = None
) -> None:
    """A table with rules, in a terminal."""
    rows = [list(map(visible, row)) for row in rows]
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text  # what is printed is text: [brackets] in it mean nothing

    table = Table(box=SIMPLE_HEAD, show_header=names is not None, pad_edge=False)
    for number in range(len(rows[0])):
        right = all(_is_number(row[number]) for row in rows) if names is not None else False
        first = "cyan" if number == 0 else None
        title = "" if names is None else Text(visible(names[number]))
        table.add_column(title, justify="right" if right else "left", style=first, overflow="fold")
    if bars is not None:
        table.add_column("")
    for number, row in enumerate(rows):
        table.add_row(*map(Text, row), *([] if bars is None else [Text(bars[number], style="green")]))
    Console().print(table)


def _bar(row: Mapping[str, object], burning: tuple[str, str]) -> str:
    """What is left of what there was, as a bar; nothing where there is no such number."""
    left, whole = (row[name] for name in burning)
    if not (isinstance(left, Fraction) and isinstance(whole, Fraction) and whole > 0):
        return ""
    full = min(BAR, max(0, int(BAR * left / whole)))
    return "█" * full + "░" * (BAR - full)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns: numbers to the right, the rest to the left."""
    rows = [list(map(visible, row)) for row in rows]
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
    if isinstance(cell, Fraction):
        return str(Amount(cell)) if 0 < cell < SMALL else decimal_down(cell)
    return f"{cell:,}" if type(cell) is int else str(cell)


def _exact(cell: object) -> Any:
    return str(cell) if isinstance(cell, Fraction) else cell
