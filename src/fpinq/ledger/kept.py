"""The sessions that are kept ready, weighed by what they hold. Others are replayed when they act again."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from fpinq.model.actions import Action, Assign, Partition
from fpinq.model.books import written
from fpinq.model.environments import Numbered, TableVariable, place, things
from fpinq.model.maps import Map
from fpinq.model.sessions import Session

MAX_SESSIONS = 10_000
MAX_TABLES = 1_000_000
MAX_BYTES = 256 * 2**20

# About what things take in memory, and rather more: a session, a table, a counter of a source, and what was
# written of a table's action for each of its characters.
OF_A_SESSION = 3_000
OF_A_TABLE = 500
OF_A_COUNTER = 500
OF_A_CHARACTER = 14


class Program(NamedTuple):
    """A session, and how long what was written is that its tables come from.

    A table comes from its own action and from those of the tables it is made of,
    whose names may have been used again. What two have in common counts for both,
    so `length` is the least of that and of all that was ever written.
    """

    session: Session
    lengths: Map[TableVariable | Numbered, int] = Map()
    held: int = 0
    written: int = 0

    @property
    def length(self) -> int:
        """At least as many characters as its tables were written in."""
        return min(self.held, self.written)

    def after(self, session: Session, action: Action, length: int) -> "Program":
        """The program after an action of its own that was written in so many characters."""
        targets = _targets(action)
        if not targets:
            return Program(session, self.lengths, self.held, self.written)
        lengths, held, written = self.lengths, self.held, self.written + length
        below = sum([self._length_of(name) for name in set(_arguments(action))])
        for target in map(_key, targets):
            share, was = min(length // len(targets) + 1 + below, written), lengths.get(target, 0)
            if isinstance(target, Numbered):  # of those before, some may stay
                share += was
            held += share - was
            lengths = lengths.put(target, share)
        return Program(session, lengths, held, written)

    def _length_of(self, name: TableVariable) -> int:
        """Of a table; of parts that are numbered, all have the one of all of them."""
        length: int | None = self.lengths.get(name)
        if length is None:
            stem, number = place(name)
            length = self.lengths.get(Numbered(stem, 0), 0) if number >= 0 else 0
        return length

    def without(self, variables: Iterable[TableVariable | Numbered]) -> "Program":
        """The program, with these variables forgotten."""
        gone = set(variables)
        keys = {_key(each) for each in gone}
        lengths, held = self.lengths, self.held
        for key in keys & lengths.keys():
            held -= lengths[key]
            lengths = lengths.without(key)
        return Program(self.session.without(gone), lengths, held, self.written)

    @property
    def tables(self) -> int:
        """How many it holds; those of names that are numbered are one."""
        return things(self.session.configuration.environment)

    @property
    def bytes(self) -> int:
        """About as many as it takes in memory. It follows from what was asked, never from an answer."""
        counters = written(self.session.configuration.accounts)
        held = OF_A_TABLE * self.tables + OF_A_COUNTER * counters + OF_A_CHARACTER * self.length
        return OF_A_SESSION + held


class Kept:
    """Programs by the names of their sessions; those that acted last, as many as there is room for.

    Of a session that has not acted it is known that it has not, whosever it will be.
    """

    def __init__(self, bytes_at_most: int = MAX_BYTES) -> None:
        # With how many tables each has, and about how many bytes.
        self._programs: OrderedDict[str, tuple[Program, int, int]] = OrderedDict()
        self._bytes_at_most = bytes_at_most
        self._tables = self._bytes = 0
        self._fresh: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, name: object) -> bool:
        return name in self._programs

    def is_fresh(self, name: str) -> bool:
        """Whether a session has surely not acted."""
        return name in self._fresh

    def keep_fresh(self, name: str) -> None:
        """A session that has not acted."""
        self._fresh[name] = None
        if len(self._fresh) > MAX_SESSIONS:
            self._fresh.popitem(last=False)

    def get(self, name: str) -> Program | None:
        """A session that is ready."""
        found = self._programs.get(name)
        if found is None:
            return None
        self._programs.move_to_end(name)
        return found[0]

    def keep(self, name: str, program: Program) -> None:
        """A session as it is now."""
        self.forget(name)
        tables, weight = program.tables, program.bytes
        self._programs[name] = program, tables, weight
        self._tables += tables
        self._bytes += weight
        while self._are_too_many() and len(self._programs) > 1:
            self.forget(next(iter(self._programs)))

    def _are_too_many(self) -> bool:
        too_large = self._tables > MAX_TABLES or self._bytes > self._bytes_at_most
        return too_large or len(self._programs) > MAX_SESSIONS

    def forget(self, name: str) -> None:
        """No longer ready."""
        self._fresh.pop(name, None)
        gone = self._programs.pop(name, None)
        if gone is not None:
            _, tables, weight = gone
            self._tables -= tables
            self._bytes -= weight

    def clear(self) -> None:
        """None is ready."""
        self._programs.clear()
        self._fresh.clear()
        self._tables = self._bytes = 0


def _arguments(action: Action) -> tuple[TableVariable, ...]:
    match action:
        case Assign(arguments=arguments):
            return arguments
        case Partition(table=table):
            return (table,)
        case _:
            return ()


def _key(names: TableVariable | Numbered) -> TableVariable | Numbered:
    """What stands for names that are numbered, however many they are."""
    return Numbered(names.stem, 0) if isinstance(names, Numbered) else names


def _targets(action: Action) -> tuple[TableVariable | Numbered, ...]:
    match action:
        case Assign(target=target):
            return (target,)
        case Partition(targets=targets):
            return (targets,) if isinstance(targets, Numbered) else targets
        case _:
            return ()
