"""fpinq demo | check"""

from argparse import ArgumentParser
from collections.abc import Sequence

from fpinq import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    parser = ArgumentParser(prog="fpinq", description="Featherweight PINQ: private queries, checked rules.")
    parser.add_argument("--version", action="version", version=f"fpinq {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    from fpinq.cli import check, demo

    demo_parser = commands.add_parser("demo", help="a tour of the kernel: the paper's figure and Listing 1")
    demo_parser.set_defaults(run=demo.run)
    check_parser = commands.add_parser("check", help="check the theorem exhaustively over small tables")
    check.add_arguments(check_parser)
    check_parser.set_defaults(run=check.run)

    parsed = parser.parse_args(arguments)
    return int(parsed.run(parsed))
