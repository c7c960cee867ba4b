"""fpinq demo | check | serve | query | sql | explain | dataset | token | ledger | completion"""

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence

from fpinq import __version__
from fpinq.cli.output import tell
from fpinq.model.errors import FpinqError
from fpinq.runtime.refusals import failure_of

# What a shell says of a command that the closed pipe ended.
CLOSED_PIPE = 128 + 13
# The same of one that Ctrl-C ended.
STOPPED = 128 + 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. An error's is in the one table of runtime.refusals."""
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough, as in `fpinq ledger show … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE


def _run(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given:
        tell(_WELCOME)
        return 0
    parsed = parser().parse_args(given)
    try:
        return int(parsed.run(parsed))
    except FpinqError as error:
        tell(f"fpinq: {error}", file=sys.stderr)
        return failure_of(error).exit_code
    except KeyboardInterrupt:
        tell("fpinq: stopped", file=sys.stderr)
        return STOPPED


def parser() -> ArgumentParser:
    """Every command with its options."""
    whole = ArgumentParser(
        prog="fpinq",
        description="Featherweight PINQ: private queries, checked rules.",
        epilog=_EXIT_CODES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"fpinq {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="command")

    from fpinq.cli import check, completion, datasets, demo, explain, ledger, query, serve, sql, tokens

    for name, module, text in (
        ("demo", demo, "a tour of the kernel: the paper's figure and Listing 1"),
        ("check", check, "check the theorem exhaustively over small tables"),
        ("serve", serve, "the protected system over HTTP"),
        ("query", query, "one question to a server"),
        ("sql", sql, "statements to a server: one, a file of them, or a prompt"),
        ("explain", explain, "what a table of a server is made of, its scaling factor and price: free"),
        ("dataset", datasets, "the data sets of a server"),
        ("token", tokens, "who may ask, audit or own"),
        ("ledger", ledger, "what was charged and released: show, spending, verify, backup"),
        ("completion", completion, "what bash, zsh or fish needs to complete all of this"),
    ):
        command = commands.add_parser(name, help=text)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return whole


_WELCOME = """\
fpinq: private questions about sensitive tables, with a guarantee that holds whatever the client program does.

  fpinq demo                     what the kernel charges, step by step
  fpinq demo --page              a made-up town, with its page in your browser
  fpinq dataset add …            put a table under a budget
  fpinq token create alice       let somebody ask
  fpinq serve                    serve them over HTTP
  fpinq query people count       ask from the shell (fpinq query --help has examples)
  fpinq sql                      ask in SQL
  fpinq ledger spending LEDGER   who spent what
  fpinq check                    the theorem, over every small program

From Python: import fpinq as fp; data = fp.protect("people.parquet", budget=1)
All commands: fpinq --help"""

_EXIT_CODES = """
exit codes:
  0  done                                    4  no token, or not for its role
  1  what was checked does not hold          5  frozen, or the data has changed
  2  a mistake in what was asked             6  ledger, engine or server cannot be reached
  3  ⊥: the budget does not allow it         7  failed after the charge, which stands
 70  an invariant does not hold: stop and look"""
