"""What can go wrong at the ledger, in the tree of `model.errors`."""

from fpinq.model.errors import (
    Frozen,
    LedgerError,
    OthersSession,
    ProgramError,
    RegisteredDifferently,
    SameData,
    TooManyQueries,
)

__all__ = [
    "BadWire",
    "Frozen",
    "LedgerCorrupt",
    "LedgerRolledBack",
    "NoLedger",
    "OthersSession",
    "RegisteredDifferently",
    "RequestReused",
    "SameData",
    "SessionTooLarge",
    "TooManyQueries",
]


class BadWire(ProgramError):
    """JSON that is no action, or not strictly so. Nothing was charged."""


class RequestReused(ProgramError):
    """A request id that stands for another request already. Nothing was charged."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        super().__init__(f"request id {request_id!r} was used for another action: send a new id with it")


class SessionTooLarge(ProgramError):
    """A session whose tables would take more memory than one session's may. Nothing was charged."""

    def __init__(self, at_most: int) -> None:
        self.at_most = at_most
        super().__init__(
            f"the tables of a session take about {at_most} bytes at most, and would take more: "
            "use their names again, or begin another session"
        )


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
            else "a newer fpinq has written it. Install that one, or a newer one"
        )
        super().__init__(
            f"this ledger is of format {found}, and this version of fpinq reads format {reads}: {todo} "
            "(docs/reference/formats.md)"
        )


class NoLedger(LedgerError):
    """There is no ledger where one was expected. None was made."""
