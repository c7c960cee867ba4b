"""fpinq dataset add | list | freeze | unfreeze: what a server holds."""

import json
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fpinq.model.errors import ProgramError


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq dataset`."""
    commands = parser.add_subparsers(
        dest="dataset_command", required=True, metavar="add | list | freeze | unfreeze"
    )
    add = commands.add_parser("add", help="write a data set into the configuration")
    add.add_argument("name")
    add.add_argument("path", help="a parquet or csv file, or a glob")
    add.add_argument("--budget", required=True, help="what may be spent on it in all, such as 1 or 0.5")
    add.add_argument("--engine", default="duckdb")
    add.add_argument("--unit", help="the column that says whose row it is")
    add.add_argument("--rows-per-unit", type=int, help="how many rows one unit may have")
    add.add_argument("--bounds", action="append", default=[], metavar="age=0:110", help="public bounds")
    add.add_argument("--keys", action="append", default=[], metavar="gender=0,1", help="public keys")
    add.add_argument("--schema", action="append", default=[], metavar="age=int64", help="a column's type")
    add.add_argument("--cap", action="append", default=[], metavar="alice=0.5", help="an analyst's share")
    names = [commands.add_parser(verb, help=text) for verb, text in _VERBS.items()]
    for command in names:
        command.add_argument("name")
    for command in (add, *names, commands.add_parser("list", help="the data sets and what is left of them")):
        command.add_argument("--config", default="fpinq.toml", help="the owner's configuration")


_VERBS = {"freeze": "refuse all its queries, at once", "unfreeze": "let it be asked again"}


def run(arguments: Namespace) -> int:
    """0 if it was done."""
    match arguments.dataset_command:
        case "add":
            return _add(arguments)
        case "list":
            return _list(arguments)
        case verb:
            return _freeze(arguments, verb == "freeze")


def _add(arguments: Namespace) -> int:
    from fpinq.server.config import load, parse

    file = Path(arguments.config)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    if before and arguments.name in load(file).data_sets:
        raise ProgramError(f"there is a data set {arguments.name!r} already")
    after = before + ("\n" if before else "") + _written(arguments)
    parse(tomllib.loads(after), file.parent)  # refuses what the server would
    file.write_text(after, encoding="utf-8")
    print(f"{arguments.name} is in {file}; a server that is running has it after a restart")
    return 0


def _written(arguments: Namespace) -> str:
    """The data set as TOML."""
    settings: dict[str, Any] = {
        "path": arguments.path,
        "engine": arguments.engine,
        "budget": arguments.budget,
        "unit": arguments.unit,
        "rows_per_unit": arguments.rows_per_unit,
    }
    lines = [f"[datasets.{_toml(arguments.name)}]"]
    lines += [f"{key} = {_toml(value)}" for key, value in settings.items() if value is not None]
    columns: dict[str, dict[str, Any]] = {}
    for column, bounds in map(_pair, arguments.bounds):
        columns.setdefault(column, {})["bounds"] = [_constant(bound) for bound in bounds.split(":")]
    for column, keys in map(_pair, arguments.keys):
        columns.setdefault(column, {})["keys"] = [_constant(key) for key in keys.split(",")]
    for what, given in (("schema", arguments.schema), ("caps", arguments.cap)):
        if given:
            lines.append(f"{what} = {_toml(dict(map(_pair, given)))}")
    if columns:
        lines.append(f"columns = {_toml(columns)}")
    return "\n".join(lines) + "\n"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ProgramError(f"write name=value, not {text!r}")
    return name, value


def _constant(text: str) -> Any:
    """A number or a truth value where it looks like one, else text."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value)
    return str(value)


def _list(arguments: Namespace) -> int:
    from fpinq.server.config import load
    from fpinq.server.oversight import state

    config = load(arguments.config)
    left, frozen = state(config)
    print(f"{'name':<24}{'budget':>10}{'left':>14}  {'':<8}unit")
    for name, data_set in config.data_sets.items():
        shown = left.get(name, data_set.budget)
        mark = "frozen" if name in frozen else ""
        print(f"{name:<24}{data_set.budget!s:>10}{shown!s:>14}  {mark:<8}{data_set.unit or 'a row'}")
    return 0


def _freeze(arguments: Namespace, frozen: bool) -> int:
    from fpinq.server.config import load
    from fpinq.server.oversight import freeze

    config = load(arguments.config)
    if arguments.name not in config.data_sets:
        raise ProgramError(f"no data set {arguments.name!r} in {arguments.config}")
    freeze(config, arguments.name, frozen)
    print(f"{arguments.name} is {'frozen' if frozen else 'open again'}")
    return 0
