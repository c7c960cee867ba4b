"""fpinq token create | list | revoke | rotate: who may ask, audit or own."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import Any

from fpinq.cli.output import add_forms, print_rows, say
from fpinq.cli.words import counted


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq token`."""
    commands = parser.add_subparsers(
        dest="token_command", required=True, metavar="create | list | revoke | rotate"
    )
    create = commands.add_parser("create", help="a new token, shown once")
    create.add_argument("name", help="whom it is for: caps and the trace know them by this name")
    create.add_argument("--role", choices=("analyst", "auditor", "owner"), default="analyst")
    revoke = commands.add_parser("revoke", help="end a token at once, or all of a person")
    revoke.add_argument("whose", metavar="id|name", help="as in fpinq token list")
    rotate = commands.add_parser("rotate", help="a new token for a person; those they had end at once")
    rotate.add_argument("name")
    for command in (create, rotate):
        command.add_argument(
            "--expires", default="90d", help="how long it lasts, such as 12h or 90d; or never"
        )
    listed = commands.add_parser("list", help="all tokens, without their secrets")
    for command in (create, revoke, rotate, listed):
        add_forms(command)
        command.add_argument("--config", default="fpinq.toml", help="the owner's configuration")


def run(arguments: Namespace) -> int:
    """0 if it was done."""
    from fpinq.server.config import load
    from fpinq.server.tokens import Tokens

    tokens = Tokens(load(arguments.config).tokens)
    match arguments.token_command:
        case "create":
            token = tokens.create(arguments.name, arguments.role, _lasts(arguments))
            say(arguments, token, {"name": arguments.name, "token": token})
        case "rotate":
            token = tokens.rotate(arguments.name, _lasts(arguments))
            say(arguments, token, {"name": arguments.name, "token": token})
        case "revoke":
            ended = tokens.revoke(arguments.whose)
            say(arguments, f"{counted(ended, 'token')} ended", {"ended": ended})
        case _:
            rows = [
                [each.id, each.name, each.role, _day(each.created_at), _ends(each)]
                for each in tokens.listed()
            ]
            print_rows(arguments, ["id", "name", "role", "created", "good until"], rows, "no tokens yet")
    return 0


def _lasts(arguments: Namespace) -> int | None:
    from fpinq.server.config import seconds

    return None if arguments.expires == "never" else int(seconds(arguments.expires))


def _ends(token: Any) -> str:
    return "revoked" if token.revoked_at is not None else _day(token.expires_at)


def _day(seconds: Any) -> str:
    if seconds is None:
        return "never ends"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
