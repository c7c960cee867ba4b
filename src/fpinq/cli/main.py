"""fpinq demo | check | serve | query | dataset | token | ledger"""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from fpinq import __version__
from fpinq.model.errors import FpinqError
from fpinq.runtime.refusals import failure_of

# What a shell says of a command that the closed pipe ended.
CLOSED_PIPE = 128 + 13


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
    parser = ArgumentParser(prog="fpinq", description="Featherweight PINQ: private queries, checked rules.")
    parser.add_argument("--version", action="version", version=f"fpinq {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    from fpinq.cli import check, datasets, demo, ledger, query, serve, tokens

    demo_parser = commands.add_parser("demo", help="a tour of the kernel: the paper's figure and Listing 1")
    demo_parser.set_defaults(run=demo.run)
    check_parser = commands.add_parser("check", help="check the theorem exhaustively over small tables")
    check.add_arguments(check_parser)
    check_parser.set_defaults(run=check.run)
    serve_parser = commands.add_parser("serve", help="the protected system over HTTP")
    serve.add_arguments(serve_parser)
    serve_parser.set_defaults(run=serve.run)
    query_parser = commands.add_parser("query", help="one question to a server")
    query.add_arguments(query_parser)
    query_parser.set_defaults(run=query.run)
    dataset_parser = commands.add_parser("dataset", help="the data sets of a server")
    datasets.add_arguments(dataset_parser)
    dataset_parser.set_defaults(run=datasets.run)
    token_parser = commands.add_parser("token", help="who may ask, audit or own")
    tokens.add_arguments(token_parser)
    token_parser.set_defaults(run=tokens.run)
    ledger_parser = commands.add_parser("ledger", help="what was charged and released: show, verify, head")
    ledger.add_arguments(ledger_parser)
    ledger_parser.set_defaults(run=ledger.run)

    parsed = parser.parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except FpinqError as error:
        print(f"fpinq: {error}", file=sys.stderr)
        return failure_of(error).exit_code
