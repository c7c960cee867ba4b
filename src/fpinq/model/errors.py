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
from fractions import Fraction

from fpinq.model.visible import visible_lines

# A name that is not there is compared with so many others, unless it is longer than a name is: to compare two
# takes the square of their lengths, and others may wait while that is done.
COMPARED, LONGEST = 100, 50


class FpinqError(Exception):
    """Anything fpinq refuses or fails to do."""

    def __str__(self) -> str:
        # Names in it are anybody's. Not super(): a KeyError would show its message in quotes.
        return visible_lines(Exception.__str__(self))


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


class NotConcentrated(ProgramError):
    """A query at ρ of a data set whose budget is an ε, which no Gaussian noise has. Nothing was charged."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the budget of {name!r} is an ε, and nothing at ρ can be paid with it: ask at an ε, "
            "or protect the data with budget=fp.rho(…) or fp.approximate(…)"
        )


class NoDelta(ProgramError):
    """Keys that nobody knew, of a data set without a δ for them. Nothing was charged."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} has no δ for keys: list the keys, say their domain (fp.domain), or protect the data "
            "with budget=fp.approximate(…, keys_delta=…)"
        )


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


class BadSQL(ProgramError):
    """A statement that is no SQL, or that cannot be private or is not supported as it is written.

    Says where: `line` and `column` count from 1, and the message shows the place.
    """

    def __init__(self, message: str, line: int = 1, column: int = 1, excerpt: str = "") -> None:
        self.line, self.column = line, column
        shown = f"\n{excerpt}" if excerpt else ""
        super().__init__(f"line {line}, column {column}: {message}{shown}")


class BadData(ProgramError):
    """Data that cannot be protected as it is: no such file, no columns, types that rows do not have."""


class SameData(ProgramError):
    """Data that is known under another name: it has one budget, whatever it is called."""

    def __init__(self, name: str, known_as: str, *, alike: bool = False) -> None:
        self.name, self.known_as = name, known_as
        super().__init__(
            f"{name!r} holds the records of {known_as!r} with other columns or types (all columns of the one "
            f"are found in the other), and data has one budget: protect {known_as!r} as it was and select "
            "from it. Other data that only looks the same needs a ledger of its own"
            if alike
            else f"the data of {name!r} is in this ledger already, as {known_as!r}: "
            f"protect it with name={known_as!r} to go on with the budget that is left"
        )


class RegisteredDifferently(ProgramError):
    """A data set whose budget, unit, columns or caps are not those that were promised."""

    def __init__(self, name: str, what: str, recorded: str) -> None:
        self.name, self.what = name, what
        super().__init__(
            f"{name!r} is in this ledger with another {what} ({recorded}): what was promised stays; "
            f"protect it with the recorded {what}"
        )


class Frozen(ProgramError):
    """A data set that its owner has frozen. Nothing was charged."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"the owner has frozen {name!r}: it cannot be asked until it is unfrozen")


class TooManyQueries(ProgramError):
    """A session that has asked as many queries as one may. Nothing was charged."""

    def __init__(self, at_most: int) -> None:
        self.at_most = at_most
        super().__init__(f"a session asks at most {at_most} queries, and this one has")


class OthersSession(ProgramError):
    """A session that another analyst opened."""

    def __init__(self, session: str) -> None:
        self.session = session
        super().__init__("no such session of yours: open one")


class BudgetExceeded(FpinqError):
    """⊥: the query would cost more than is left. Nothing was charged, nothing was asked of the data."""

    def __init__(
        self, message: str, price: Fraction | None = None, remaining: Fraction | None = None
    ) -> None:
        self.price, self.remaining = price, remaining
        super().__init__(message)


class LedgerError(FpinqError):
    """The charge could not be made durable, so nothing was answered."""


class NotAsRecorded(LedgerError):
    """An event that was written down is not what the rules give where it stands."""


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
    from difflib import get_close_matches  # slow to import, and seldom needed
    from heapq import nsmallest

    if len(name) > LONGEST:
        return ""
    nearest = nsmallest(COMPARED, known, key=lambda each: abs(len(each) - len(name)))
    close = get_close_matches(name, nearest, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
