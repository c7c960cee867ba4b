"""The protected systems of this process: one for each kind of engine, made when first needed.

Roots of one system can be concatenated, joined and asked about together, so
`protect` puts all roots with the same engine into the same system.
"""

import atexit
from itertools import count
from os import PathLike, fspath
from os.path import realpath
from threading import Lock
from typing import Any, Protocol, cast

from fpinq.engines.registry import engine_of
from fpinq.ledger import Ledger, open_ledger
from fpinq.ledger.anchor import anchor_of
from fpinq.ledger.process import this_process
from fpinq.model.actions import Action, TableVariable
from fpinq.model.errors import ProgramError
from fpinq.model.semantics import Table
from fpinq.runtime import Observation, ProtectedSystem


class System(Protocol):
    """What a table handle needs of a protected system, here or elsewhere."""

    def act(self, action: Action) -> Observation:
        """What the client is told of its action."""

    def describe(self, variable: TableVariable) -> Table:
        """The public facts of a table."""

    def drop(self, variable: TableVariable) -> None:
        """The client will not use this variable again."""


_systems: dict[object, ProtectedSystem] = {}
# Before the interpreter takes its modules apart: DuckDB complains of what outlives it.
atexit.register(_systems.clear)
_roots: dict[int, set[str]] = {}  # by the id of a system; systems last as long as the process
_lock = Lock()
_numbers = count(1)


def system_for(engine: object, ledger: object = None, anchor: object = None) -> ProtectedSystem:
    """The system of an engine, by its name or itself; and of a ledger."""
    if anchor is not None and ledger is None:
        raise ProgramError("anchor=… keeps the head of a ledger: say ledger=… too")
    key = engine if ledger is None else (engine, _place(ledger), this_process())
    with _lock:
        if key not in _systems:
            found = engine_of(engine)
            _systems[key] = ProtectedSystem(found, record=None if ledger is None else _open(ledger, anchor))
        elif anchor is not None:
            cast(Ledger, _systems[key].record).keep_at(anchor_of(anchor))
        return _systems[key]


def _open(ledger: Any, anchor: object) -> Ledger:
    opened = open_ledger(ledger, anchor=anchor)
    atexit.register(opened.close)
    return opened


def _place(ledger: object) -> str:
    """Where a ledger is, spelled in one way."""
    if isinstance(ledger, PathLike):
        ledger = fspath(ledger)
    if type(ledger) is not str or not ledger:
        raise ProgramError("ledger is a path, such as 'people.ledger', or a postgresql:// address")
    return ledger if ledger.startswith(("postgresql://", "postgres://")) else realpath(ledger)


def fresh_root(system: ProtectedSystem, label: str) -> str:
    """A name for a root that the system never heard: the owner's, or that and a number.

    Names are not used again, not even those of data that was refused: the engine may have seen it.
    """
    with _lock:
        taken = _roots.setdefault(id(system), set(system.budgets()))
        name = next(n for i in count(1) if (n := label if i == 1 else f"{label}#{i}") not in taken)
        taken.add(name)
        return name


def fresh_variable() -> TableVariable:
    """A table variable that no other table of this process has."""
    return f"t{next(_numbers)}"
