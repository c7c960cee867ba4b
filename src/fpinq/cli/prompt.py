"""The prompt of fpinq sql: history, completion of tables, columns and functions, and what is left."""

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fpinq.cli.output import tell
from fpinq.cli.sql import show
from fpinq.client.spelling import show_delta
from fpinq.model.epsilon import decimal_down
from fpinq.model.epsilon import delta as exact_delta
from fpinq.model.errors import FpinqError
from fpinq.model.notions import Rho, asked_at, stated
from fpinq.model.visible import visible

HISTORY = ".fpinq_history"
LONGEST_HISTORY = 1000

_HELP = """\
SELECT …;             ask: each statement costs ε times the scaling factor
EXPLAIN SELECT …;     what it would cost and how far off it would be: free
\\epsilon 0.5          use this ε from now on
\\rho 1/1000           use this ρ from now on, of budgets in ρ
\\delta 1e-10          find keys of GROUP BY that are not public at this δ; \\delta alone: no more
\\tables               the tables and their columns
\\help  \\quit"""

KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "JOIN", "LEFT JOIN", "USING", "ON",
    "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "AS",
    "DISTINCT", "EXPLAIN", "WITH", "UNION ALL", "ROLLUP", "CUBE", "FILTER",
)  # fmt: skip


class Prompt:
    """Statements line by line, until the end of input."""

    def __init__(
        self, catalog: Mapping[str, Any], arguments: Namespace, read: Callable[[str], str] = input
    ) -> None:
        self._catalog, self._arguments, self._read = catalog, arguments, read
        self._words: list[str] | None = None

    def run(self) -> int:
        """Read, ask, print; a mistake is printed and costs nothing."""
        with _history(self.completions):
            tell("statements end with ;   \\help says the rest")
            while (statement := self._statement()) is not None:
                if statement:
                    try:
                        self.act(statement)
                    except EOFError:
                        break
                    except FpinqError as error:
                        tell(error, file=sys.stderr)
        return 0

    def act(self, statement: str) -> None:
        """A statement, or a command of the prompt. EOFError ends it."""
        if not statement.startswith("\\"):
            at, delta = self._arguments.epsilon, self._arguments.delta
            show(self._arguments, self._catalog.sql(statement, epsilon=at, delta=delta))  # type: ignore[attr-defined]
            return
        command, _, given = statement[1:].partition(" ")
        match command:
            case "epsilon" | "rho" if given:
                at = stated(given.strip() if command == "epsilon" else f"rho {given.strip()}")
                asked_at(at)  # refused here, if it is none
                self._arguments.epsilon = at
            case "delta":
                self._arguments.delta = None if not given.strip() else exact_delta(given.strip())
            case "tables":
                for name, table in self._tables().items():
                    tell(
                        visible(name),
                        *(f"{visible(column)} {type_}" for column, type_ in table.schema.items()),
                        sep="\n  ",
                    )
            case "quit" | "q":
                raise EOFError
            case _:
                tell(_HELP)

    def prompt(self) -> str:
        """What is left of each data set, and the ε or ρ of the next statement."""
        left = []
        for name, found in self._catalog.items():
            table = next(iter(found.values())) if isinstance(found, Mapping) else found
            left.append(f"{visible(name)} {decimal_down(table.remaining)}")
        at = self._arguments.epsilon
        delta = "" if self._arguments.delta is None else f", δ = {show_delta(self._arguments.delta)}"
        return f"{', '.join(left)} │ {at if isinstance(at, Rho) else f'ε = {at}'}{delta} > "

    def _statement(self) -> str | None:
        """The lines up to a semicolon; a line that begins with \\ is one by itself. None at the end."""
        lines: list[str] = []
        try:
            while True:
                line = self._read("… " if lines else self.prompt())
                lines.append(line)
                text = "\n".join(lines).strip()
                if text.startswith("\\") or text.endswith(";") or not text:
                    return text.removesuffix(";").strip()
        except EOFError:
            tell()
            return None
        except KeyboardInterrupt:
            tell()
            return ""

    def _tables(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, table in self._catalog.items():
            found |= dict(table) if isinstance(table, Mapping) else {name: table}
        return found

    def completions(self, begun: str) -> list[str]:
        """Tables, columns, functions and words of SQL that begin so."""
        if self._words is None:
            from fpinq.sql.grammar import function_names

            tables = self._tables()
            columns = {column for table in tables.values() for column in table.schema}
            self._words = sorted({*tables, *columns}) + sorted({*KEYWORDS, *function_names()})
        return [word for word in self._words if word.lower().startswith(begun.lower())]


class _history:  # noqa: N801 — used as a verb: with _history(…)
    """Lines of earlier sessions, and Tab, where there is a terminal library."""

    def __init__(self, completions: Callable[[str], list[str]]) -> None:
        self._completions = completions
        self._file = Path.home() / HISTORY

    def __enter__(self) -> None:
        with suppress(ImportError):
            import readline

            with suppress(OSError):
                readline.read_history_file(self._file)
            readline.set_history_length(LONGEST_HISTORY)
            readline.set_completer(self._complete)
            readline.set_completer_delims(" \t\n(),;=<>+-*/'\".")
            readline.parse_and_bind("tab: complete")

    def _complete(self, begun: str, number: int) -> str | None:
        return dict(enumerate(self._completions(begun))).get(number)

    def __exit__(self, *_: object) -> None:
        with suppress(ImportError, OSError):
            import readline

            readline.write_history_file(self._file)
