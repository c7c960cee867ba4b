"""fpinq sql: statements to a server, from the shell: one, a file of them, or a prompt."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from fpinq.cli.output import add_forms, print_answers, print_facts, tell
from fpinq.cli.query import add_amount, add_server, amount, connected
from fpinq.model.epsilon import delta as exact_delta
from fpinq.model.errors import ProgramError

_EXAMPLES = """
examples:
  fpinq sql "SELECT gender, AVG(age) FROM people GROUP BY gender" --epsilon 0.5
  fpinq sql "EXPLAIN SELECT COUNT(*) FROM people"
  fpinq sql "SELECT COUNT(*) FROM people" --rho 1/1000
  fpinq sql "SELECT city, COUNT(*) FROM people GROUP BY city" --delta 1e-10
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
    add_amount(parser, "how much of the budget each statement uses")
    parser.add_argument("--delta", help="find keys of GROUP BY that are not public, at this δ: 1e-10")
    add_forms(parser)


def run(arguments: Namespace) -> int:
    """Ask, and print the rows."""
    from fpinq.client.columns import needed

    needed("sqlglot", "fpinq sql")
    arguments.epsilon = amount(arguments)
    arguments.delta = None if arguments.delta is None else exact_delta(arguments.delta)
    if arguments.file is not None and arguments.statement is not None:
        raise ProgramError("say a statement or --file, not both")
    if arguments.file is not None:
        return _each(arguments, _read(arguments.file))
    if arguments.statement is not None:
        asked = connected(arguments).sql(
            arguments.statement, epsilon=arguments.epsilon, delta=arguments.delta
        )
        show(arguments, asked)
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
        show(arguments, catalog.sql(statement, epsilon=arguments.epsilon, delta=arguments.delta))
    return 0


def show(arguments: Namespace, result: Any) -> None:
    """Rows as a table, as JSON or as CSV; an explanation in words."""
    if hasattr(result, "to_csv"):
        print_answers(arguments, result)
    elif arguments.json or arguments.csv:
        print_facts(arguments, {"explanation": str(result)})
    else:
        tell(result)
