"""What the owner writes: data sets with their budgets and public metadata, limits, the quantum.

A TOML file; see docs/operating/server.md. `fpinq dataset add` writes into it.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any

from fpinq.engines.registry import KINDS
from fpinq.engines.resources import UNSAID, Resources, parsed, resources
from fpinq.engines.text import Dialect
from fpinq.ledger.kept import MAX_BYTES
from fpinq.model.epsilon import budget as exact_budget
from fpinq.model.errors import BadEpsilon, ProgramError, suggest
from fpinq.model.events import Registered
from fpinq.model.expressions import COLUMN_TYPES, INT64_MAX, INT64_MIN, Schema, Type
from fpinq.model.notions import Total, keys_delta_of, stated, total
from fpinq.model.operators import MAX_STRING
from fpinq.server.limits import Limits

# The cap of analysts that have none of their own.
EVERYBODY = "*"

SETTINGS = {
    "ledger",
    "anchor",
    "anchor_command",
    "tokens",
    "questions",
    "page",
    "quantum",
    "limits",
    "postgres",
    "spark",
    "datasets",
    "memory_limit",
    "threads",
    "sessions_memory",
}
# What is said of a table: where there are several, of each.
OF_A_TABLE = ("path", "table", "rows_per_unit", "rows_at_most", "schema", "dialect", "columns", "description")
# What a table that Python made may have, unless it says otherwise; a file always says.
ROWS_AT_MOST = 100_000
DESCRIPTION_CHARACTERS = 2_000
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)


@dataclass(frozen=True)
class TableConfig:
    """One table of a data set: where it is, and what is public about it."""

    source: Any  # a path, a glob, a list of them; from Python also a data frame or a list of dicts
    schema: Mapping[str, Any] | None = None  # types, or their names, which become types
    rows_per_unit: int | None = None
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rows_at_most: int = ROWS_AT_MOST
    dialect: Dialect | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if self.schema is not None:
            object.__setattr__(self, "schema", _schema(_mapping(self.schema, "schema"), "schema"))

    def lengths(self) -> dict[str, int]:
        """The public maximal lengths of texts."""
        return {name: known["max_length"] for name, known in self.columns.items() if "max_length" in known}


@dataclass(frozen=True)
class DataSet:
    """A root: one table of rows, or the tables about the same persons."""

    name: str
    budget: Total
    tables: Mapping[str, TableConfig]
    unit: str | None = None
    engine: str = "duckdb"
    caps: Mapping[str, Total] = field(default_factory=dict)  # an analyst's name, or * for everybody else
    block_of: str | None = None  # the data set that grew by this one
    description: str = ""  # what the data is, for people
    keys_caps: Mapping[str, Fraction] = field(default_factory=dict)  # the same of its δ for keys


@dataclass(frozen=True)
class Config:
    """All that a server needs to know."""

    data_sets: Mapping[str, DataSet]
    tokens: Path
    ledger: str
    quantum_seconds: Fraction = Fraction(0)
    anchor: str | tuple[str, ...] | None = None  # where the ledger's head is kept too: a file or a command
    new_ledger: bool = False  # the ledger may be another one than was served with the tokens
    limits: Limits = field(default_factory=Limits)
    spark: Mapping[str, Any] = field(default_factory=dict)  # what fp.Spark is made with
    postgres: Mapping[str, Any] = field(default_factory=dict)  # what fp.Postgres is made with
    resources: Resources = UNSAID  # what DuckDB may use, in all worker processes together
    sessions_memory: int = (
        MAX_BYTES  # what sessions that are kept ready take, in all worker processes together
    )
    workers: int = 1  # how many share both out
    questions: Path | None = None  # where analysts' questions are kept; by default beside the tokens
    page: bool = True  # whether there is a page at /

    @property
    def questions_path(self) -> Path:
        """Where questions and their answers are kept, for those who asked."""
        return (
            self.tokens.with_name(f"{self.tokens.name}.questions")
            if self.questions is None
            else self.questions
        )


def load(path: str | Path) -> Config:
    """The configuration in a TOML file; paths in it are relative to the file."""
    file = Path(path)
    try:
        written = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError:
        raise ProgramError(
            f"no configuration at {str(path)!r}: make one with fpinq dataset add NAME FILE --budget 1 "
            "--rows-at-most 1000000, or say where it is with --config"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProgramError(f"{str(path)!r} is not TOML: {error}") from None
    return parse(written, file.parent)


def parse(written: Mapping[str, Any], folder: Path) -> Config:
    """The configuration of a TOML document."""
    _check_keys(written, SETTINGS, "the configuration")
    ledger = _text(written.get("ledger", "fpinq.ledger"), "ledger")
    limits = _mapping(written.get("limits", {}), "limits")
    _check_keys(limits, set(Limits.__dataclass_fields__), "limits")
    return Config(
        data_sets=_data_sets(_mapping(written.get("datasets", {}), "datasets"), folder),
        tokens=folder / _text(written.get("tokens", "fpinq.tokens"), "tokens"),
        questions=None if "questions" not in written else folder / _text(written["questions"], "questions"),
        page=_switch(written.get("page", True), "page"),
        ledger=ledger if is_url(ledger) else str(folder / ledger),
        anchor=_anchor(written, folder),
        quantum_seconds=seconds(written.get("quantum", 0), "quantum: "),
        limits=Limits(**limits),
        spark=_spark(_mapping(written.get("spark", {}), "spark")),
        resources=resources(written.get("memory_limit"), written.get("threads")),
        sessions_memory=_amount(written.get("sessions_memory", MAX_BYTES), "sessions_memory"),
        postgres=_postgres(_mapping(written.get("postgres", {}), "postgres")),
    )


def _amount(given: Any, where: str) -> int:
    found = parsed(given) if isinstance(given, str) else given
    if type(found) is not int or found < 1:
        raise ProgramError(f"{where} is an amount such as '256MiB', not {given!r}")
    return found


def _switch(given: Any, where: str) -> bool:
    if type(given) is not bool:
        raise ProgramError(f"{where} is true or false, not {given!r}")
    return given


def _anchor(written: Mapping[str, Any], folder: Path) -> str | tuple[str, ...] | None:
    if "anchor" in written and "anchor_command" in written:
        raise ProgramError("either anchor, a file, or anchor_command")
    if "anchor" in written:
        return str(folder / _text(written["anchor"], "anchor"))
    if "anchor_command" not in written:
        return None
    command = written["anchor_command"]
    if not isinstance(command, list) or not command:
        raise ProgramError('anchor_command is a list of words, such as ["/usr/local/bin/keep", "people"]')
    return tuple(_text(word, "anchor_command") for word in command)


def is_url(ledger: str) -> bool:
    """Whether a ledger is in a PostgreSQL rather than in a file."""
    return ledger.startswith(("postgresql://", "postgres://"))


def seconds(text: object, where: str = "") -> Fraction:
    """A time such as 250ms, 2s, 1.5s, 30d or 0."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s|m|h|d|)", str(text), re.ASCII)
    if match is None or (not match[2] and Fraction(match[1])):
        raise ProgramError(f"{where}{text!r} is not a time: write 250ms, 2s, 10m, 12h or 30d")
    in_milliseconds = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    return Fraction(match[1]) * in_milliseconds[match[2]] / 1000


def _description(given: Mapping[str, Any], where: str) -> str:
    """What is said of something for people; nothing, if nothing is."""
    text = given.get("description", "")
    if not isinstance(text, str) or len(text) > DESCRIPTION_CHARACTERS:
        raise ProgramError(f"{where}.description is a text of at most {DESCRIPTION_CHARACTERS} characters")
    return text


def check_column(known: Any, where: str) -> None:
    """ProgramError unless what is public of a column has the right form, whatever the column's type is."""
    _check_keys(_mapping(known, where), {"bounds", "keys", "max_length", "description"}, where)
    _description(known, where)
    bounds, keys = known.get("bounds"), known.get("keys")
    if bounds is not None:
        pair = isinstance(bounds, list | tuple) and len(bounds) == 2
        if not pair or not all(type(bound) in (int, float, Fraction) for bound in bounds):
            raise ProgramError(f"{where}: bounds are a pair of numbers, such as bounds = [0, 110]")
        if not all(isfinite(bound) for bound in bounds if type(bound) is float):
            raise ProgramError(f"{where}: bounds are finite numbers")
        if not all(INT64_MIN <= bound <= INT64_MAX for bound in bounds if type(bound) is int):
            raise ProgramError(f"{where}: whole bounds have 64 bits; of a column of floats write 1e23")
        if bounds[0] > bounds[1]:
            raise ProgramError(f"{where}: bounds are reversed")
    if keys is not None:
        plain = isinstance(keys, list | tuple) and all(
            isinstance(key, bool | int | float | str | date) for key in keys
        )
        if not plain or not keys:
            raise ProgramError(f"{where}: keys are a list of values, such as keys = [0, 1]")
    most = known.get("max_length", 1)
    if type(most) is not int or not 1 <= most <= MAX_STRING:
        raise ProgramError(f"{where}: max_length is a whole number of characters, 1 to {MAX_STRING}")


def _spark(given: Mapping[str, Any]) -> dict[str, Any]:
    _check_keys(given, {"master", "remote", "conf"}, "spark")
    if "master" in given and "remote" in given:
        raise ProgramError("spark: either master or remote")
    conf = _mapping(given.get("conf", {}), "spark.conf")
    addresses = {key: _text(given[key], f"spark.{key}") for key in ("master", "remote") if key in given}
    return {**addresses, "conf": {key: _text(value, f"spark.conf.{key}") for key, value in conf.items()}}


def _postgres(given: Mapping[str, Any]) -> dict[str, Any]:
    _check_keys(given, {"address", "contents"}, "postgres")
    contents = _mapping(given.get("contents", {}), "postgres.contents")
    address = {"address": _text(given["address"], "postgres.address")} if "address" in given else {}
    return {
        **address,
        "contents": {table: _text(text, f"postgres.contents.{table}") for table, text in contents.items()},
    }


def _data_sets(written: Mapping[str, Any], folder: Path) -> dict[str, DataSet]:
    """All of them; a block has the caps of what it is a block of, unless it says others."""
    found: dict[str, DataSet] = {}
    for name, given in written.items():
        data_set = _data_set(name, _mapping(given, f"datasets.{name}"), folder)
        base = found.get(data_set.block_of or "")
        if base is not None:
            caps = data_set.caps if "caps" in given else base.caps
            keys_caps = base.keys_caps if keys_delta_of(data_set.budget) else {}
            keys_caps = data_set.keys_caps if "keys_caps" in given else keys_caps
            data_set = replace(data_set, caps=caps, keys_caps=keys_caps)
        _check_caps(data_set)
        found[name] = data_set
    return found


def _check_caps(data_set: DataSet) -> None:
    """BadEpsilon if its caps are not of its budget: in another unit, or of a δ that it does not have."""
    try:
        Registered.of(
            data_set.name, Schema(()), data_set.budget, caps=data_set.caps, keys_caps=data_set.keys_caps
        )
    except BadEpsilon as error:
        raise BadEpsilon(f"datasets.{data_set.name}: {error}") from None


def _data_set(name: str, given: Mapping[str, Any], folder: Path) -> DataSet:
    where = f"datasets.{name}"
    _check_keys(
        given, {*OF_A_TABLE, "engine", "budget", "unit", "tables", "caps", "keys_caps", "block_of"}, where
    )
    if not NAME.fullmatch(name):
        raise ProgramError(f"{name!r} is no name for a data set: letters, digits, _ and -, at most 64")
    if "budget" not in given:
        raise ProgramError(f"{where} needs a budget, such as budget = 1")
    engine = given.get("engine", "duckdb")
    if engine not in KINDS:
        raise ProgramError(f"{where}: unknown engine {engine!r}; use one of {', '.join(sorted(KINDS))}")
    unit = given.get("unit")
    if "tables" in given:
        if unit is None:
            raise ProgramError(f'{where}: several tables must be about the same people: say unit = "…"')
        for key in OF_A_TABLE:
            if key in given and key != "description":
                raise ProgramError(
                    f"{where}: with tables, say {key} under {where}.tables.TABLE, of each table"
                )
        entries = _mapping(given["tables"], f"{where}.tables")
        if not entries:
            raise ProgramError(f"{where}.tables has no table")
        tables = {
            table: _table(
                _mapping(entry, f"{where}.tables.{table}"), f"{where}.tables.{table}", folder, engine, True
            )
            for table, entry in entries.items()
        }
    else:
        own = {key: given[key] for key in OF_A_TABLE if key in given}
        tables = {name: _table(own, where, folder, engine, unit is not None)}
    caps = _mapping(given.get("caps", {}), f"{where}.caps")
    keys_caps = _mapping(given.get("keys_caps", {}), f"{where}.keys_caps")
    found = DataSet(
        name=name,
        budget=_budget(given["budget"], f"{where}.budget"),
        tables=tables,
        unit=None if unit is None else _text(unit, f"{where}.unit"),
        engine=engine,
        caps={analyst: _budget(cap, f"{where}.caps.{analyst}") for analyst, cap in caps.items()},
        block_of=None if "block_of" not in given else _text(given["block_of"], f"{where}.block_of"),
        description=_description(given, where),
        keys_caps={who: _delta(cap, f"{where}.keys_caps.{who}") for who, cap in keys_caps.items()},
    )
    for table, known in tables.items():
        _check_promise(known.rows_at_most, f"{where}.tables.{table}" if "tables" in given else where)
    return found


def _check_promise(rows: object, where: str) -> None:
    if type(rows) is not int or rows < 1:
        raise ProgramError(
            f"{where} needs rows_at_most, how many rows it can have, such as rows_at_most = 1_000_000: "
            "a public promise, from what you know without the data; what may be asked depends on it"
        )


def _table(given: Mapping[str, Any], where: str, folder: Path, engine: str, of_persons: bool) -> TableConfig:
    _check_keys(given, set(OF_A_TABLE), where)
    source = _source(given, where, folder, engine)
    most = given.get("rows_per_unit")
    if of_persons and (type(most) is not int or most < 1):
        raise ProgramError(f"{where} needs rows_per_unit, a whole number ≥ 1")
    if not of_persons and most is not None:
        raise ProgramError(f"{where}: rows_per_unit needs a unit")
    schema = given.get("schema")
    columns = _mapping(given.get("columns", {}), f"{where}.columns")
    for column, known in columns.items():
        check_column(known, f"{where}.columns.{column}")
    return TableConfig(
        source=source,
        schema=None if schema is None else _schema(_mapping(schema, f"{where}.schema"), f"{where}.schema"),
        rows_per_unit=most,
        rows_at_most=given.get("rows_at_most", 0),
        columns=columns,
        dialect=_dialect(given.get("dialect"), f"{where}.dialect"),
        description=_description(given, where),
    )


def _source(given: Mapping[str, Any], where: str, folder: Path, engine: str) -> str | list[str]:
    """Where a table is: paths, or in a database its name."""
    if KINDS[engine].is_database:
        if "path" in given or "table" not in given:
            raise ProgramError(f'{where} is in a database: say table = "people", and no path')
        return _text(given["table"], f"{where}.table")
    if "path" not in given or "table" in given:
        raise ProgramError(f'{where} needs a path, such as path = "people.parquet", and no table')
    paths = given["path"] if isinstance(given["path"], list) else [given["path"]]
    found = [_place(_text(path, f"{where}.path"), folder) for path in paths]
    if not found:
        raise ProgramError(f"{where}.path has no path")
    return found if isinstance(given["path"], list) else found[0]


def _dialect(given: Any, where: str) -> Dialect | None:
    """How text is written, as the owner states it."""
    if given is None:
        return None
    _check_keys(_mapping(given, where), set(Dialect.__dataclass_fields__), where)
    try:
        return Dialect(**given)
    except (ProgramError, TypeError) as error:
        raise ProgramError(f"{where}: {error}") from None


def _place(path: str, folder: Path) -> str:
    """A path as it is from here; urls and tables of a catalog are the same from everywhere."""
    return path if "://" in path or path.startswith("table:") else str(folder / path)


def _schema(given: Mapping[str, Any], where: str) -> dict[str, Type]:
    known = {type_.value: type_ for type_ in COLUMN_TYPES}
    for column, type_ in given.items():
        if type_ not in COLUMN_TYPES and (not isinstance(type_, str) or type_ not in known):
            raise ProgramError(f"{where}.{column}: unknown type {type_!r}; the types are {', '.join(known)}")
    return {column: known[type_] if isinstance(type_, str) else type_ for column, type_ in given.items()}


def _budget(given: Any, where: str) -> Total:
    try:
        return total(stated(given))
    except BadEpsilon as error:
        raise BadEpsilon(f"{where}: {error}") from None


def _delta(given: Any, where: str) -> Fraction:
    """A share of a δ for keys, which may be 0."""
    try:
        return exact_budget(given)
    except BadEpsilon as error:
        raise BadEpsilon(f"{where}: {error}") from None


def _check_keys(given: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in given:
        if key not in known:
            raise ProgramError(f"{where}: unknown setting {key!r}{suggest(key, known)}")


def _mapping(given: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise ProgramError(f"{where} is a table of settings")
    return given


def _text(given: Any, where: str) -> str:
    if not isinstance(given, str) or not given:
        raise ProgramError(f"{where} is a text")
    return given
