"""What can go wrong at the ledger, in the tree of `model.errors`."""

from fpinq.model.errors import LedgerError, ProgramError


class BadWire(ProgramError):
    """JSON that is no action, or not strictly so. Nothing was charged."""


class RequestReused(ProgramError):
    """A request id that stands for another request already. Nothing was charged."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        super().__init__(f"request id {request_id!r} was used for another action: send a new id with it")


class SameData(ProgramError):
    """Data that the ledger knows under another name: it has one budget, whatever it is called."""

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
    """A data set whose budget, unit, columns or caps are not those in the ledger."""

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


class LedgerCorrupt(LedgerError):
    """A ledger that is not what was written: torn, edited, reordered, or an older copy put back."""

    def __init__(self, seq: int, what: str) -> None:
        self.seq, self.what = seq, what
        super().__init__(
            f"the ledger is not what was written: entry {seq}: {what}. Nothing is answered from it: "
            "keep it as it is, see what fpinq ledger verify finds, and restore (docs/operating/ledger.md)"
        )

    def __reduce__(self) -> tuple[type, tuple[int, str]]:
        return type(self), (self.seq, self.what)  # it comes from another process


class LedgerRolledBack(LedgerCorrupt):
    """An older copy of a ledger, or another one, or none: its anchor knows an entry that is not there."""

    def __init__(self, seq: int, what: str) -> None:
        super().__init__(seq, what)
        self.args = (
            f"the ledger was rolled back: entry {seq}: {what}. Nothing is answered from it: put the newer "
            "ledger back. If that is lost, so is what was spent since: see docs/operating/ledger.md",
        )


class OtherFormat(LedgerError):
    """A ledger of another format than this version reads. It is left as it is."""

    def __init__(self, found: int, reads: int) -> None:
        self.found, self.reads = found, reads
        todo = (
            "upgrade it, with all that was charged: fpinq ledger upgrade"
            if found < reads
            else "a newer fpinq has written it. Use that one, or a newer one (pip install --upgrade fpinq)"
        )
        super().__init__(
            f"this ledger is of format {found}, and this version of fpinq reads format {reads}: {todo} "
            "(docs/reference/formats.md)"
        )


class NoLedger(LedgerError):
    """There is no ledger where one was expected. None was made."""
