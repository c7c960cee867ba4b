"""The protected systems of this process: one for each kind of engine, made when first needed.

Roots of one system can be concatenated, joined and asked about together, so
`protect` puts all roots with the same engine into the same system.
"""

import atexit
import re
from itertools import count
from os import PathLike, fspath
from os.path import realpath
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol, cast

from fpinq.engines.registry import engine_of
from fpinq.engines.resources import UNSAID, Resources
from fpinq.ledger import open_ledger
from fpinq.ledger.process import this_process
from fpinq.model.actions import Action
from fpinq.model.environments import Numbered, TableVariable
from fpinq.model.errors import ProgramError
from fpinq.model.semantics import Table
from fpinq.runtime import Observation, ProtectedSystem

if TYPE_CHECKING:
    from fpinq.ledger import Ledger


class System(Protocol):
    """What a table handle needs of a protected system, here or elsewhere."""

    def act(self, action: Action) -> Observation:
        """What the client is told of its action."""

    def describe(self, variable: TableVariable) -> Table:
        """The public facts of a table."""

    def drop(self, variable: TableVariable | Numbered) -> None:
        """The client will not use this variable again, or these."""


_systems: dict[object, ProtectedSystem] = {}
# Before the interpreter takes its modules apart: DuckDB complains of what outlives it.
atexit.register(_systems.clear)
_limits: dict[object, Resources] = {}  # what each was made with
# By the id of a system, which lasts as long as the process: the names that were given, each with the last
# number that was put behind it.
_roots: dict[int, dict[str, int]] = {}
_VARIABLE = re.compile(r"t\$[0-9]+")  # what tables are called that a program makes
_lock = RLock()  # a handler of a signal may protect data, too
_numbers = count(1)


def system_for(
    engine: object, ledger: object = None, anchor: object = None, limits: Resources = UNSAID
) -> ProtectedSystem:
    """The system of an engine, by its name or itself, with these limits; and of a ledger."""
    if anchor is not None and ledger is None:
        raise ProgramError("anchor=… keeps the head of a ledger: say ledger=… too")
    key = engine if ledger is None else (engine, _place(ledger), this_process())
    with _lock:
        if key not in _systems:
            found = engine_of(engine, limits)
            made = ProtectedSystem(found, record=None if ledger is None else _open(ledger, anchor))
            _systems.setdefault(key, made)
            _limits.setdefault(key, limits)
        elif limits not in (UNSAID, _limits[key]):
            raise ProgramError(
                "memory_limit and threads are the engine's, and it runs already: say them where data is "
                "first protected, and the same or nothing afterwards"
            )
        elif anchor is not None:
            _keep_at(cast("Ledger", _systems[key].record), anchor)
        return _systems[key]


def _keep_at(ledger: "Ledger", anchor: object) -> None:
    from fpinq.ledger.anchor import anchor_of  # only who has a ledger needs it

    ledger.keep_at(anchor_of(anchor))


def _open(ledger: Any, anchor: object) -> "Ledger":
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
        if id(system) not in _roots:
            _roots[id(system)] = dict.fromkeys(system.budgets(), 1)
        taken = _roots[id(system)]
        number, name = taken.get(label, 0), label
        while name in taken or _VARIABLE.fullmatch(name):
            number += 1
            name = f"{label}#{number}"
        taken[name] = 1
        taken[label] = max(number, 1)
        return name


def fresh_variable() -> TableVariable:
    """A table variable that no other table of this process has, nor any data set."""
    return f"t${next(_numbers)}"
