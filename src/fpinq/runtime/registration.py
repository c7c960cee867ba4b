"""Registering data: the one way in, for a program and for a server alike.

Its files are found and pinned, and what is in it is known, if there is a ledger
to know it again. The ledger may have a reason to refuse it before an engine
reads it; its owner's promises are checked after; it must be what it was still;
then it has a budget. An engine forgets what was refused in the end.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from fractions import Fraction
from typing import Any

from fpinq.engines.files import Progress, is_files, resolve, silent
from fpinq.engines.interface import Engine
from fpinq.engines.rows import states_types
from fpinq.engines.text import Dialect
from fpinq.model.errors import BadData, ProgramError
from fpinq.model.expressions import Type
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Total
from fpinq.model.plans import Shape
from fpinq.runtime.contents import Contents, contents_of
from fpinq.runtime.system import Lengths, ProtectedSystem

# Raises what is wrong with data of this shape, of which these tables' types were read off.
Check = Callable[[Shape, list[str]], object]


@dataclass(frozen=True)
class Given:
    """A table as its owner gives it."""

    source: Any
    schema: Mapping[str, Type] | None = None
    dialect: Dialect | None = None
    lengths: Mapping[str, int] = field(default_factory=dict)
    rows_at_most: int | None = None


@dataclass(frozen=True)
class Offer:
    """A root to be: one table of rows under any name, or with a unit the tables about the same persons."""

    name: str
    budget: Total
    tables: Mapping[str, Given]
    unit: str | None = None
    block_of: str | None = None
    caps: Mapping[str, Total] = field(default_factory=dict)
    cap: Total | None = None
    keys_caps: Mapping[str, Fraction] = field(default_factory=dict)
    keys_cap: Fraction | None = None

    def lengths(self) -> Lengths:
        """The public maximal lengths of texts."""
        return {name: table.lengths for name, table in self.tables.items()}


@dataclass(frozen=True)
class Taken:
    """What is public about data that was registered: its shape, and whose types nobody stated."""

    shape: Shape
    read_off: list[str]


def register(
    system: ProtectedSystem,
    engine: Engine,
    offer: Offer,
    check: Check,
    *,
    recorded: bool = True,
    progress: Progress = silent,
) -> Taken:
    """Give data to an engine and to the system, if its shape passes the check.

    Recorded data is known again: the same under the same name goes on with what
    is left, whether the ledger or this process knows it.
    """
    offer = _found(offer, engine)
    untold = [name for name, table in offer.tables.items() if _is_read_off(table, engine)]
    contents = _contents(offer, engine, progress) if recorded else Contents()
    facts = _facts(offer, contents, bool(untold))
    if recorded:
        # Before the engine reads it: the ledger may have a reason to refuse it.
        system.record.check(offer.name, offer.budget, **facts)
        known = system.root(offer.name)
        if known is not None:
            check_rows(engine, offer)
            check_lengths(offer.name, system.lengths[offer.name], offer.lengths())
            return Taken(known.shape, untold)
    shape = _added(engine, offer)
    with _forgotten_if_refused(system, engine, offer.name):
        check_rows(engine, offer)
        check(shape, untold)
        contents.check_unchanged(offer.name)
        system.protect(offer.name, shape, offer.budget, engine, lengths=offer.lengths(), **facts)
    return Taken(shape, untold)


def _found(offer: Offer, engine: Engine) -> Offer:
    """The files that sources stand for, found once: what is hashed is what is read."""

    def of(table: Given) -> Given:
        if engine.owns(table.source) or not is_files(table.source):
            return table
        return replace(table, source=resolve(table.source))

    return replace(offer, tables={name: of(table) for name, table in offer.tables.items()})


def _is_read_off(table: Given, engine: Engine) -> bool:
    """Whether nobody states a table's types, neither its owner nor the data itself."""
    return table.schema is None and not states_types(table.source, elsewhere=engine.owns(table.source))


def _contents(offer: Offer, engine: Engine, progress: Progress) -> Contents:
    sources = [(table.source, table.schema) for table in offer.tables.values()]
    return contents_of(sources, offer.name, engine, progress)


def _facts(offer: Offer, contents: Contents, read_off: bool) -> dict[str, Any]:
    """What a ledger keeps of a root, beside its name, shape and budget."""
    return {
        "contents": contents.hashes,
        "columns": contents.columns,
        "unit": offer.unit,
        "caps": offer.caps,
        "cap": offer.cap,
        "keys_caps": offer.keys_caps,
        "keys_cap": offer.keys_cap,
        "block_of": offer.block_of,
        "read_off": read_off,
    }


def _added(engine: Engine, offer: Offer) -> Shape:
    """Give a root's tables to its engine; their public shape."""
    if offer.unit is None:
        (one,) = offer.tables.values()
        return engine.add_root(offer.name, one.source, one.schema, dialect=one.dialect, lengths=one.lengths)
    tables = offer.tables.items()
    return engine.add_persons(
        offer.name,
        {name: table.source for name, table in tables},
        offer.unit,
        {name: table.schema for name, table in tables if table.schema is not None} or None,
        dialects={name: table.dialect for name, table in tables if table.dialect is not None},
        lengths=offer.lengths(),
    )


@contextmanager
def _forgotten_if_refused(system: ProtectedSystem, engine: Engine, name: str) -> Iterator[None]:
    """The engine gives up what is not registered in the end, so that it can be said again, and right."""
    try:
        yield
    except BaseException:
        if system.root(name) is None:
            engine.forget(name)
        raise


def check_rows(engine: Engine, offer: Offer) -> None:
    """BadData if a table has more rows than its owner promised. How many it has is not said."""
    promised = {name: table.rows_at_most for name, table in offer.tables.items()}
    if not any(most is not None for most in promised.values()):
        return
    found = engine.rows_in(offer.name)
    for table, most in promised.items():
        if most is not None and found[offer.name if offer.unit is None else table] > most:
            raise BadData(
                f"{table} has more rows than rows_at_most = {most}: "
                "promise a number that you know without the data"
            )


def check_lengths(root: str, known: Lengths, stated: Lengths) -> None:
    """ProgramError unless texts are as long as those that a root of this process was read with."""
    for table, column in sorted({(t, c) for lengths in (known, stated) for t in lengths for c in lengths[t]}):
        before, now = (lengths.get(table, {}).get(column) for lengths in (known, stated))
        if before != now:
            said = "no max_length" if before is None else f"max_length={before}"
            raise ProgramError(
                f"{root!r} is protected in this process already, with {said} for {column!r}: say the same, "
                "or protect it with another in a new process"
            )
