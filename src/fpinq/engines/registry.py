"""The engines there are, by name. A new one is a line here and a folder beside this."""

from dataclasses import dataclass
from importlib import import_module

from fpinq.engines.interface import Engine
from fpinq.model.errors import ProgramError


@dataclass(frozen=True)
class Kind:
    """Where an engine's class is: imported when it is needed, for some are heavy."""

    module: str
    name: str
    # Whether its data is files of this machine and what is in memory, which others can read as well.
    reads_here: bool
    # Whether its data is tables of a database, known by their names.
    is_database: bool = False


KINDS = {
    "duckdb": Kind("fpinq.engines.duckdb", "DuckDB", reads_here=True),
    "spark": Kind("fpinq.engines.spark", "Spark", reads_here=False),
    "postgres": Kind("fpinq.engines.postgres", "Postgres", reads_here=False, is_database=True),
    "reference": Kind("fpinq.engines.in_memory", "ReferenceEngine", reads_here=True),
}


def engine_of(given: object) -> Engine:
    """The engine that is meant: one of that name, or given itself."""
    if isinstance(given, str) and given in KINDS:
        return made(given)
    if isinstance(given, Engine) and not isinstance(given, type):
        return given
    *names, last = map(repr, KINDS)
    raise ProgramError(f"unknown engine {given!r}: use {', '.join(names)} or {last}")


def made(name: str, **options: object) -> Engine:
    """A new engine of a kind."""
    kind = KINDS[name]
    engine: Engine = getattr(import_module(kind.module), kind.name)(**options)
    return engine
