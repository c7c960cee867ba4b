"""fpinq dataset add | list | show | check | remove | freeze | unfreeze: what a server holds."""

import json
import sys
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpinq.cli.constants import constant, number
from fpinq.cli.options import number as whole
from fpinq.cli.output import add_forms, print_facts, print_rows, say, tell
from fpinq.client.spelling import show_delta
from fpinq.engines.registry import KINDS
from fpinq.model.errors import FpinqError, ProgramError, suggest
from fpinq.model.expressions import Type
from fpinq.model.notions import Approximate, Total, amount_of, keys_delta_of

if TYPE_CHECKING:
    from fpinq.ledger import RootState
    from fpinq.server.config import Config, DataSet


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq dataset`."""
    commands = parser.add_subparsers(
        dest="dataset_command", required=True, metavar=" | ".join(("add", "list", *_VERBS))
    )
    add = commands.add_parser("add", help="write a data set into the configuration")
    add.add_argument("name")
    add.add_argument("path", help="a parquet or csv file, a glob, or a table of a database")
    add.add_argument(
        "--budget",
        required=True,
        help="what may be spent on it: an ε such as 1, or 'rho 1/50', or 'epsilon 1 delta 1e-9'; "
        "of δ, 'keys_delta 1e-10' sets a part aside to find keys at",
    )
    add.add_argument("--engine", default="duckdb")
    add.add_argument("--block-of", metavar="NAME", help="the data set that grows by this one")
    add.add_argument("--unit", help="the column that says whose row it is")
    add.add_argument("--rows-per-unit", type=whole, help="how many rows one unit may have")
    add.add_argument("--rows-at-most", type=whole, help="how many rows it can have: a public promise")
    add.add_argument("--bounds", action="append", default=[], metavar="age=0:110", help="public bounds")
    add.add_argument("--keys", action="append", default=[], metavar="gender=0,1", help="public keys")
    add.add_argument(
        "--max-length", action="append", default=[], metavar="name=40", help="how long its texts can be"
    )
    add.add_argument("--schema", action="append", default=[], metavar="age=int64", help="a column's type")
    add.add_argument(
        "--dialect", action="append", default=[], metavar="dates=%d/%m/%Y", help="how csv is written"
    )
    add.add_argument("--cap", action="append", default=[], metavar="alice=0.5", help="an analyst's share")
    add.add_argument(
        "--keys-cap",
        action="append",
        default=[],
        metavar="alice=1e-10",
        help="an analyst's share of δ for keys",
    )
    names = {verb: commands.add_parser(verb, help=text) for verb, text in _VERBS.items()}
    for verb, command in names.items():
        command.add_argument("name", nargs="?" if verb == "check" else None)
    listed = commands.add_parser("list", help="the data sets and what is left of them")
    for command in (add, *names.values(), listed):
        add_forms(command)
        command.add_argument("--config", default="fpinq.toml", help="the owner's configuration")


_VERBS = {
    "show": "what is public of one, and what is left of it",
    "check": "read it as a server would, and say what is wrong; all without a name",
    "remove": "take it out of the configuration; what was charged stays in the ledger",
    "freeze": "refuse all its queries, at once",
    "unfreeze": "let it be asked again",
}


def run(arguments: Namespace) -> int:
    """0 if it was done."""
    match arguments.dataset_command:
        case "add":
            return _add(arguments)
        case "list":
            return _list(arguments)
        case "show":
            return _show(arguments)
        case "check":
            return _check(arguments)
        case "remove":
            return _remove(arguments)
        case verb:
            return _freeze(arguments, verb == "freeze")


def _add(arguments: Namespace) -> int:
    from fpinq.engines.rows import states_types
    from fpinq.server.config import load, parse
    from fpinq.server.house import check_columns
    from fpinq.server.oversight import check_new_data, schemas

    file, name = Path(arguments.config), arguments.name
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    others = load(file).data_sets if before else {}
    if name in others:
        raise ProgramError(f"there is a data set {name!r} already")
    if arguments.rows_at_most is None:
        raise ProgramError(
            "say how many rows it can have, such as --rows-at-most 1000000: a public promise, from what you "
            "know without the data. A number that is read off the data changes with a record, and is public"
        )
    settings = _settings(arguments)
    # What the server would refuse is refused here, where it is written.
    given = parse({"datasets": {name: settings}}, file.parent).data_sets[name]
    found = schemas(given)
    check_new_data(given, others.values())
    stated = given.tables[name].schema is not None
    if found is not None and not stated and not states_types(given.tables[name].source):
        settings["schema"] = {column: type_.value for column, type_ in found[name].columns}
        tell(
            f"schema = {_toml(settings['schema'])} was read off the data, and is a promise of yours now",
            file=sys.stderr if arguments.json or arguments.csv else sys.stdout,
        )
    settings |= _columns(arguments, {} if found is None else dict(found[name].columns))
    data_set = parse({"datasets": {name: settings}}, file.parent).data_sets[name]
    if found is not None:
        check_columns(data_set, found)
    lines = [f"[datasets.{_toml(name)}]", *(f"{key} = {_toml(value)}" for key, value in settings.items())]
    after = before + ("\n" if before else "") + "\n".join(lines) + "\n"
    parse(tomllib.loads(after), file.parent)
    file.write_text(after, encoding="utf-8")
    text = f"{name} is in {file}; a server that is running has it in a moment"
    say(arguments, text, {"name": name, "configuration": str(file)})
    return 0


def _settings(arguments: Namespace) -> dict[str, Any]:
    """The data set as it will be in the configuration, but for what is public of its columns."""
    kind = KINDS.get(arguments.engine)
    settings: dict[str, Any] = {
        "table" if kind is not None and kind.is_database else "path": arguments.path,
        "engine": arguments.engine,
        "budget": arguments.budget,
        "block_of": arguments.block_of,
        "unit": arguments.unit,
        "rows_per_unit": arguments.rows_per_unit,
        "rows_at_most": arguments.rows_at_most,
        "schema": dict(map(_pair, arguments.schema)) or None,
        "dialect": {name: _option(text) for name, text in map(_pair, arguments.dialect)} or None,
        "caps": dict(map(_pair, arguments.cap)) or None,
        "keys_caps": dict(map(_pair, arguments.keys_cap)) or None,
    }
    return {key: value for key, value in settings.items() if value is not None}


def _columns(arguments: Namespace, types: Mapping[str, Type]) -> dict[str, Any]:
    """The public bounds and keys, as values of their columns' types where those are known."""
    columns: dict[str, dict[str, Any]] = {}
    for column, bounds in map(_pair, arguments.bounds):
        low, colon, high = bounds.partition(":")
        if not colon:
            raise ProgramError(f"--bounds {column}={bounds}: write {column}=LOW:HIGH, such as age=0:110")
        columns.setdefault(column, {})["bounds"] = [number(low), number(high)]
    for column, length in map(_pair, arguments.max_length):
        columns.setdefault(column, {})["max_length"] = whole(length)
    for column, keys in map(_pair, arguments.keys):
        columns.setdefault(column, {})["keys"] = [constant(key, types.get(column)) for key in keys.split(",")]
    return {"columns": columns} if columns else {}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ProgramError(f"write name=value, not {text!r}")
    return name, value


def _option(text: str) -> str | bool:
    known: dict[str, str | bool] = {"true": True, "false": False, "\\t": "\t"}
    return known.get(text, text)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):  # JSON writes 😀 as two escapes and leaves DEL as it is; TOML takes neither
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def _list(arguments: Namespace) -> int:
    from fpinq.server.config import load
    from fpinq.server.oversight import states

    config = load(arguments.config)
    served = states(config)
    with_delta = any(keys_delta_of(found.budget) for found in config.data_sets.values())
    rows = []
    for name, found in config.data_sets.items():
        known = served.get(name)
        left = amount_of(found.budget) if known is None else known.remaining
        row = [name, _shown(found.budget), left, _state(known), found.unit or "a row"]
        rows.append([*row, _left_delta(found, known)] if with_delta else row)
    print_rows(
        arguments,
        ["name", "budget", "left", "state", "unit", *(["left of δ"] if with_delta else [])],
        rows,
        "no data sets yet: fpinq dataset add",
        burning=("left", "budget"),
    )
    return 0


def _state(known: "RootState | None") -> str:
    return "frozen" if known is not None and known.frozen else "open"


def _left_delta(data_set: "DataSet", known: "RootState | None") -> Fraction:
    """What is left of its δ for keys."""
    return keys_delta_of(data_set.budget) if known is None else known.remaining_delta


def _shown(budget: Total) -> object:
    """A budget: an ε as it is, others with their notion; with a δ as it is stated."""
    if isinstance(budget, Approximate):
        keys = f" keys_delta {show_delta(budget.keys_delta)}" if budget.keys_delta else ""
        said = f"epsilon {budget.epsilon} delta {show_delta(budget.delta)}{keys}"
        return said if isinstance(budget.amount, Fraction) else f"{said}: {budget.amount}"
    return budget if isinstance(budget, Fraction) else str(budget)


def _show(arguments: Namespace) -> int:
    from fpinq.server.oversight import schemas, states

    config, data_set = _found(arguments)
    name = data_set.name
    known = states(config).get(name)
    facts: dict[str, object] = {
        "name": name,
        "engine": data_set.engine,
        "budget": _shown(data_set.budget),
        "left": amount_of(data_set.budget) if known is None else known.remaining,
        "state": _state(known),
        "unit": data_set.unit or "a row",
    }
    if keys_delta_of(data_set.budget):
        facts["left of δ for keys"] = _left_delta(data_set, known)
    if data_set.block_of is not None:
        facts["block of"] = data_set.block_of
    for analyst, cap in data_set.caps.items():
        facts[f"cap of {'everybody else' if analyst == '*' else analyst}"] = _shown(cap)
    for analyst, cap in data_set.keys_caps.items():
        facts[f"δ cap of {'everybody else' if analyst == '*' else analyst}"] = cap
    types = schemas(data_set) or {}
    for table, given in data_set.tables.items():
        of = "" if len(data_set.tables) == 1 else f"{table}: "
        facts[f"{of}source"] = str(given.source)
        facts[f"{of}rows at most"] = given.rows_at_most
        if given.rows_per_unit is not None:
            facts[f"{of}rows per unit"] = given.rows_per_unit
        for column, type_ in types[table].columns if table in types else ():
            public = ", ".join(f"{what} {value}" for what, value in given.columns.get(column, {}).items())
            facts[f"{of}column {column}"] = f"{type_.value}{', ' if public else ''}{public}"
    print_facts(arguments, facts)
    return 0


def _check(arguments: Namespace) -> int:
    """2 if something is wrong with one of them."""
    from fpinq.server.config import load
    from fpinq.server.house import check_columns
    from fpinq.server.oversight import check_new_data, schemas

    config = load(arguments.config)
    found_wrong: dict[str, str | None] = {}
    programs = arguments.json or arguments.csv
    for data_set in config.data_sets.values() if arguments.name is None else [_found(arguments)[1]]:
        try:
            found = schemas(data_set)
            if found is not None:
                check_columns(data_set, found)
            check_new_data(data_set, config.data_sets.values())
        except FpinqError as error:
            found_wrong[data_set.name] = str(error)
            if not programs:
                tell(f"✗ {data_set.name}: {error}")
        else:
            found_wrong[data_set.name] = None
            if not programs:
                tell(
                    f"✓ {data_set.name}" + ("" if found is not None else ": only its own engine can read it")
                )
    if programs:
        print_rows(arguments, ["name", "wrong"], [[name, wrong] for name, wrong in found_wrong.items()])
    return 2 if any(wrong is not None for wrong in found_wrong.values()) else 0


def _remove(arguments: Namespace) -> int:
    _, data_set = _found(arguments)
    file = Path(arguments.config)
    file.write_text(without(file.read_text(encoding="utf-8"), data_set.name), encoding="utf-8")
    text = (
        f"{data_set.name} is no longer in {file}; a server that is running holds it until a restart, and the "
        "ledger remembers what was charged"
    )
    say(arguments, text, {"name": data_set.name, "configuration": str(file)})
    return 0


def without(written: str, name: str) -> str:
    """A configuration without a data set, every other line as it was; ProgramError where that cannot be."""
    kept, own = [], False
    for line in written.splitlines(keepends=True):
        if line.startswith("["):
            own = _header(line)[:2] == ["datasets", name]
        if not own:
            kept.append(line)
    after = "".join(kept)
    expected = tomllib.loads(written)
    del expected["datasets"][name]
    found = tomllib.loads(after)
    if {**found, "datasets": found.get("datasets", {})} != expected:
        raise ProgramError(f"{name} is not written in a section of its own: take it out by hand")
    return after


def _header(line: str) -> list[str]:
    """The names in a section's first line; none if it is not one alone."""
    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return []
    names = []
    while isinstance(found, Mapping) and len(found) == 1:
        ((name, found),) = found.items()
        names.append(name)
    return names


def _found(arguments: Namespace) -> tuple["Config", "DataSet"]:
    from fpinq.server.config import load

    config = load(arguments.config)
    if arguments.name not in config.data_sets:
        raise ProgramError(
            f"no data set {arguments.name!r} in {arguments.config}{suggest(arguments.name, config.data_sets)}"
        )
    return config, config.data_sets[arguments.name]


def _freeze(arguments: Namespace, frozen: bool) -> int:
    from fpinq.server.oversight import freeze

    config, _ = _found(arguments)
    freeze(config, arguments.name, frozen)
    text = f"{arguments.name} is {'frozen' if frozen else 'open again'}"
    say(arguments, text, {"name": arguments.name, "state": "frozen" if frozen else "open"})
    return 0
