"""The engine seam: all that anybody asks of an engine, whichever it is.

An engine holds data under the names of roots and turns plans over them into
exact integers. It is found by its name in `registry`, and by nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple, Protocol, runtime_checkable

from fpinq.engines.text import Dialect
from fpinq.model.costs import Costs
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import Persons, Plan
from fpinq.model.statistics import Integers, Statistic
from fpinq.model.transformations import Partitioning


class Fingerprint(NamedTuple):
    """A bag of records: its schema, how many there are, the sum of their SHA-256s modulo 2²⁵⁶."""

    schema: Schema
    records: int
    total: int


class Asked(NamedTuple):
    """What `measure` is going to be asked."""

    plan: Plan
    by: Partitioning | None
    statistics: Sequence[Statistic]


@runtime_checkable
class Engine(Protocol):
    """Takes data, and turns a plan, and a partition of it, into exact integers."""

    def add_root(
        self,
        name: str,
        source: object,
        schema: Mapping[str, Type] | None = None,
        *,
        dialect: Dialect | None = None,
        lengths: Mapping[str, int] | None = None,
    ) -> Schema:
        """Make source the table of a root; its public schema. BadData if it is not as the schema says.

        dialect: how text is written. lengths: of texts, at the most; a longer one is null.
        """
        ...

    def add_persons(
        self,
        name: str,
        tables: Mapping[str, object],
        unit: str,
        schemas: Mapping[str, Mapping[str, Type]] | None = None,
        *,
        dialects: Mapping[str, Dialect] | None = None,
        lengths: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Persons:
        """Make them the tables of a root of persons; its shape.

        A person is all rows of all tables with the same value in the unit
        column. Rows where it is null belong to nobody and are left out.
        """
        ...

    def forget(self, name: str) -> None:
        """Give up a root that was refused after all: its name is free again."""
        ...

    def rows_in(self, root: str) -> Mapping[str, int]:
        """How many rows each table of a root has: for its owner, who promised a number."""
        ...

    def costs(self) -> Costs:
        """What operators and steps take here, in units, at the worst: public, whatever the data."""
        ...

    def owns(self, source: object) -> bool:
        """Whether only this engine can reach a source: not a file of this machine, not in memory."""
        ...

    def fingerprint(self, source: object) -> Fingerprint | str:
        """What is in a source of its own, or what the data's owner says that it is.

        Of all columns that can be read: the same data is the same, whichever of them a schema names.
        """
        ...

    def check_unchanged(self, plan: Plan) -> None:
        """DataChanged if what the plan reads is known not to be what was protected. Reads no records."""
        ...

    def check_asked(self, asked: Iterable[Asked]) -> None:
        """A ProgramError if the engine cannot be asked one of these, whatever its records are. Reads none."""
        ...

    def measure(
        self,
        plan: Plan,
        by: Partitioning | None,
        statistics: Sequence[Statistic],
        seconds: float = inf,
    ) -> Sequence[Integers]:
        """Each statistic, exactly: of the table, or of the part of its number; a single one of all.

        Coordinates whose total is 0 are left out. DataChanged if what was read is
        not what was protected: it is looked at afterwards, too. EngineError, with a reference
        into the owner's log and nothing else, if the engine fails or takes longer
        than seconds; whatever it was doing is stopped, or left to itself if it
        cannot be.
        """
        ...

    def close(self) -> None:
        """Forget all data."""
        ...
