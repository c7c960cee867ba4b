"""The engines there are, by name. A new one is a line here and a folder beside this."""

from importlib import import_module

from fpinq.engines.interface import Engine
from fpinq.engines.resources import UNSAID, Resources
from fpinq.model.errors import ProgramError
from fpinq.model.frozen import dataclass


@dataclass(frozen=True)
class Kind:
    """Where an engine's class is: imported when it is needed, for some are heavy."""

    module: str
    name: str
    # Whether its data is files of this machine and what is in memory, which others can read as well.
    reads_here: bool
    # Whether its data is tables of a database, known by their names.
    is_database: bool = False
    # Where memory and threads are said, if not with memory_limit and threads.
    resources: str | None = None


_SPARKS = "say engine=fp.Spark(conf={'spark.executor.memory': '8g', 'spark.executor.cores': '4'})"
_POSTGRES = "in PostgreSQL they are its role's: ALTER ROLE reader SET work_mem = '256MB', and so on"
_NOWHERE = "the reference engine is plain Python: leave them out"

KINDS = {
    "duckdb": Kind("fpinq.engines.duckdb", "DuckDB", reads_here=True),
    "spark": Kind("fpinq.engines.spark", "Spark", reads_here=False, resources=_SPARKS),
    "postgres": Kind(
        "fpinq.engines.postgres", "Postgres", reads_here=False, is_database=True, resources=_POSTGRES
    ),
    "reference": Kind("fpinq.engines.in_memory", "ReferenceEngine", reads_here=True, resources=_NOWHERE),
}


def engine_of(given: object, limits: Resources = UNSAID) -> Engine:
    """The engine that is meant: one of that name, with these limits; or given itself, which has its own."""
    if isinstance(given, str) and given in KINDS:
        if limits != UNSAID and (elsewhere := KINDS[given].resources) is not None:
            raise ProgramError(f"memory_limit and threads are DuckDB's; {elsewhere}")
        return made(given, **limits.said())
    if isinstance(given, Engine) and not isinstance(given, type):
        if limits != UNSAID:
            raise ProgramError(
                "memory_limit and threads are said where an engine is made: it is made already"
            )
        return given
    *names, last = map(repr, KINDS)
    raise ProgramError(f"unknown engine {given!r}: use {', '.join(names)} or {last}")


def made(name: str, **options: object) -> Engine:
    """A new engine of a kind."""
    kind = KINDS[name]
    engine: Engine = getattr(import_module(kind.module), kind.name)(**options)
    return engine
