"""What can go wrong, by whose fault it is and what it cost.

FpinqError
├── ProgramError      the analyst's mistake; nothing charged
├── BudgetExceeded    ⊥; nothing charged
├── LedgerError       not durable; nothing answered
├── UnfitEngine       an engine that answers wrongly where the answer is known; nothing protected
├── DataChanged       a file is not the one that was protected; nothing measured
└── EngineError       failed after the charge; the charge stands
KernelViolation       our bug, outside the tree; stop

No message quotes data: messages are made of what the program itself wrote
and of the public schema.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from fractions import Fraction


class FpinqError(Exception):
    """Anything fpinq refuses or fails to do."""


class ProgramError(FpinqError):
    """The program's mistake. Found before any state changes; nothing is charged."""


class BadAction(ProgramError):
    """What was sent is not an action, or not made of the language's own parts."""


class UnknownTable(ProgramError):
    """A table variable that the environment does not bind."""

    def __init__(self, table: str, known: Iterable[str]) -> None:
        self.table = table
        super().__init__(f"unknown table {table!r}{suggest(table, known)}")


class UnknownColumn(ProgramError):
    """A column that the schema does not have."""

    def __init__(self, column: str, known: Iterable[str]) -> None:
        self.column = column
        self.known = tuple(known)
        listed = ", ".join(self.known) or "none"
        super().__init__(f"unknown column {column!r}{suggest(column, self.known)}; the columns are: {listed}")


class BadEpsilon(ProgramError):
    """An ε or a budget that is not an exact, finite, positive number of bounded size."""


class BadExpression(ProgramError):
    """A row expression that has no type, or that the closed language does not contain."""


class BadTransformation(ProgramError):
    """A transformation whose parameters or arguments make no sense."""


class WrongArity(BadTransformation):
    """A transformation applied to the wrong number of tables."""

    def __init__(self, transformation: str, takes: int, given: int) -> None:
        self.takes, self.given = takes, given
        super().__init__(f"{transformation} takes {takes} table(s), {given} given")


class UnboundedStability(BadTransformation):
    """A transformation of unbounded stability applied to private data."""

    def __init__(self, transformation: str, argument: int) -> None:
        self.argument = argument
        super().__init__(
            f"{transformation} has no bounded stability in argument {argument + 1}, which is private: "
            "one record there may change any number of records of the result. "
            "Bound it (join with first(k) or unique()), or use a public table there."
        )


class BadPartition(ProgramError):
    """Partition keys that are missing, repeated or of another type than the key expression."""


class BadQuery(ProgramError):
    """A primitive query whose parameters make no sense, or the wrong number of them."""


class BadData(ProgramError):
    """Data that cannot be protected as it is: no such file, no columns, types that rows do not have."""


class BudgetExceeded(FpinqError):
    """⊥: the query would cost more than is left. Nothing was charged, nothing was asked of the data."""

    def __init__(
        self, message: str, price: Fraction | None = None, remaining: Fraction | None = None
    ) -> None:
        self.price, self.remaining = price, remaining
        super().__init__(message)


class LedgerError(FpinqError):
    """The charge could not be made durable, so nothing was answered."""


class DataChanged(FpinqError):
    """A file is not the one that was protected. Found before anything is measured."""

    def __init__(self, root: str) -> None:
        self.root = root
        super().__init__(f"the data of {root!r} changed since it was protected: protect the new data instead")


class UnfitEngine(FpinqError):
    """An engine of a version that answers wrongly where the answer is known. It gets no data."""


class EngineError(FpinqError):
    """The engine failed after the charge. The charge stands: a refund could tell about the data."""

    def __init__(self, reference: str) -> None:
        self.reference = reference
        super().__init__(
            "the engine failed; the charge stands. "
            f"The data's owner finds the reason under reference {reference}"
        )


class KernelViolation(Exception):
    """An invariant of the kernel does not hold. A bug in fpinq: stop and report it."""


def suggest(name: str, known: Iterable[str]) -> str:
    """“; did you mean …?” where a known name is close to name, else nothing."""
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
