"""fpinq token create | list | revoke: who may ask, audit or own."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import Any


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq token`."""
    commands = parser.add_subparsers(dest="token_command", required=True, metavar="create | list | revoke")
    create = commands.add_parser("create", help="a new token, shown once")
    create.add_argument("name", help="whom it is for: caps and the trace know them by this name")
    create.add_argument("--role", choices=("analyst", "auditor", "owner"), default="analyst")
    create.add_argument("--expires", default="90d", help="how long it lasts, such as 12h or 90d; or never")
    revoke = commands.add_parser("revoke", help="end a token at once")
    revoke.add_argument("id", help="as in fpinq token list")
    for command in (create, revoke, commands.add_parser("list", help="all tokens, without their secrets")):
        command.add_argument("--config", default="fpinq.toml", help="the owner's configuration")


def run(arguments: Namespace) -> int:
    """0 if it was done."""
    from fpinq.server.config import load, seconds
    from fpinq.server.tokens import Tokens

    tokens = Tokens(load(arguments.config).tokens)
    match arguments.token_command:
        case "create":
            lasts = None if arguments.expires == "never" else int(seconds(arguments.expires))
            print(tokens.create(arguments.name, arguments.role, lasts))
        case "revoke":
            tokens.revoke(arguments.id)
        case _:
            print(f"{'id':<14}{'name':<20}{'role':<10}{'created':<18}{'good until':<18}")
            for token in tokens.listed():
                ends = "revoked" if token.revoked_at is not None else _day(token.expires_at)
                row = f"{token.id:<14}{token.name:<20}{token.role:<10}{_day(token.created_at):<18}{ends}"
                print(row)
    return 0


def _day(seconds: Any) -> str:
    if seconds is None:
        return "never ends"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
