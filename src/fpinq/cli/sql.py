"""fpinq sql: statements to a server, from the shell: one, a file of them, or a prompt."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from fpinq.cli.output import add_forms
from fpinq.cli.query import add_server, connected
from fpinq.model.errors import ProgramError

_EXAMPLES = """
examples:
  fpinq sql "SELECT gender, AVG(age) FROM people GROUP BY gender" --epsilon 0.5
  fpinq sql "EXPLAIN SELECT COUNT(*) FROM people"
  fpinq sql --file report.sql --csv
  fpinq sql
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq sql`."""
    add_server(parser)
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.add_argument("statement", nargs="?", help="SELECT … or EXPLAIN SELECT …; without one, a prompt")
    parser.add_argument("--file", help="statements, each ended by ;")
    parser.add_argument(
        "--epsilon",
        default="0.1",
        help="how much of the budget each statement uses, such as 1/3; by default %(default)s",
    )
    add_forms(parser)


def run(arguments: Namespace) -> int:
    """Ask, and print the rows."""
    from fpinq.client.columns import needed

    needed("sqlglot", "fpinq sql")
    if arguments.file is not None and arguments.statement is not None:
        raise ProgramError("say a statement or --file, not both")
    if arguments.file is not None:
        return _each(arguments, _read(arguments.file))
    if arguments.statement is not None:
        show(arguments, connected(arguments).sql(arguments.statement, epsilon=arguments.epsilon))
        return 0
    if not sys.stdin.isatty():
        return _each(arguments, sys.stdin.read())
    from fpinq.cli.prompt import Prompt

    return Prompt(connected(arguments), arguments).run()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ProgramError(f"{path} cannot be read as text") from None


def _each(arguments: Namespace, text: str) -> int:
    """Every statement, one after the other; a mistake ends it, and what was asked before is charged."""
    from fpinq.sql.parsing import apart

    statements = apart(text)
    if not statements:
        raise ProgramError("there is no statement")
    catalog = connected(arguments)
    for statement in statements:
        show(arguments, catalog.sql(statement, epsilon=arguments.epsilon))
    return 0


def show(arguments: Namespace, result: Any) -> None:
    """Rows as a table, as JSON or as CSV; an explanation in words."""
    if not hasattr(result, "to_csv"):
        print(result)
    elif arguments.json:
        print(result.to_json())
    elif arguments.csv:
        print(result.to_csv(), end="")
    else:
        print(result)
