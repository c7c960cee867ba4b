"""Refusals of a server, and the one table from error classes to codes, HTTP statuses and exit codes.

The server and the command line read the table forwards, the remote client
backwards: an error is the same class on both sides of the wire.

A message is made of what the program itself wrote and of public facts. What an
engine said is in the owner's log, under the reference that an EngineError has.
"""

from fractions import Fraction
from typing import Any, NamedTuple

from fpinq.ledger import errors as recorded
from fpinq.model import errors
from fpinq.model.errors import FpinqError, KernelViolation, ProgramError


class TooLarge(ProgramError):
    """A request above a public limit. See the server's /limits."""


class NotAuthenticated(ProgramError):
    """No token, or one that is wrong, expired or revoked."""


class NotAllowed(ProgramError):
    """The token's role may not do this."""


class UnknownDataSet(ProgramError):
    """The server holds no data set of this name."""


class OtherVersion(ProgramError):
    """A client and a server of which one speaks a newer wire than the other reads. Nothing was charged."""

    def __init__(self, message: str, client: int, server: int) -> None:
        self.client, self.server = client, server
        super().__init__(message)

    @staticmethod
    def of_client(client: int, server: int) -> "OtherVersion":
        """A server's refusal of a client that is newer."""
        return OtherVersion(
            f"this client speaks version {client} of the wire, and this server reads up to {server}: "
            "ask its owner to upgrade fpinq there, or connect with an older fpinq",
            client,
            server,
        )

    @staticmethod
    def of_server(client: int, server: int) -> "OtherVersion":
        """A client's refusal of a server that is newer."""
        return OtherVersion(
            f"the server speaks version {server} of the wire, and this fpinq reads up to {client}: "
            "install a newer one",
            client,
            server,
        )


class TooManyRequests(FpinqError):
    """More at a time than the public limits allow. Nothing was charged; try again later."""


class Unavailable(FpinqError):
    """No reply from the server. If the action was charged, sending it again under its request id is free."""


class Failure(NamedTuple):
    """How an error looks from outside. fields: what it carries besides its message, by name."""

    code: str
    status: int
    exit_code: int
    fields: tuple[str, ...] = ()


# An error has the row of its own class or of the nearest class above it.
FAILURES: dict[type[Exception], Failure] = {
    ProgramError: Failure("program_error", 400, 2),
    errors.UnknownTable: Failure("unknown_table", 404, 2, ("table",)),
    errors.UnknownColumn: Failure("unknown_column", 400, 2, ("column", "known")),
    errors.BadEpsilon: Failure("bad_epsilon", 400, 2),
    errors.NotConcentrated: Failure("not_concentrated", 400, 2, ("name",)),
    errors.NoDelta: Failure("no_delta", 400, 2, ("name",)),
    errors.BadExpression: Failure("bad_expression", 400, 2),
    errors.BadTransformation: Failure("bad_transformation", 400, 2),
    errors.WrongArity: Failure("wrong_arity", 400, 2, ("takes", "given")),
    errors.UnboundedStability: Failure("unbounded_stability", 400, 2, ("argument",)),
    errors.BadPartition: Failure("bad_partition", 400, 2),
    errors.BadQuery: Failure("bad_query", 400, 2),
    errors.BadSQL: Failure("bad_sql", 400, 2, ("line", "column")),
    errors.BadData: Failure("bad_data", 400, 2),
    recorded.BadWire: Failure("bad_wire", 400, 2),
    OtherVersion: Failure("other_version", 400, 2, ("client", "server")),
    TooLarge: Failure("too_large", 413, 2),
    NotAuthenticated: Failure("not_authenticated", 401, 4),
    NotAllowed: Failure("not_allowed", 403, 4),
    recorded.SessionTooLarge: Failure("session_too_large", 413, 2, ("at_most",)),
    recorded.TooManyQueries: Failure("too_many_queries", 403, 2, ("at_most",)),
    recorded.OthersSession: Failure("unknown_session", 404, 2, ("session",)),
    UnknownDataSet: Failure("unknown_data_set", 404, 2),
    recorded.RequestReused: Failure("request_reused", 409, 2, ("request_id",)),
    recorded.SameData: Failure("same_data", 409, 2, ("name", "known_as")),
    recorded.RegisteredDifferently: Failure("registered_differently", 409, 2, ("name", "what")),
    errors.BudgetExceeded: Failure(
        "budget_exceeded", 402, 3, ("dataset", "price", "remaining", "refused_by")
    ),
    recorded.Frozen: Failure("frozen", 423, 5, ("name",)),
    errors.DataChanged: Failure("data_changed", 409, 5, ("root",)),
    TooManyRequests: Failure("too_many_requests", 429, 6),
    errors.LedgerError: Failure("ledger_error", 503, 6),
    recorded.LedgerCorrupt: Failure("ledger_corrupt", 500, 70, ("seq", "what")),
    recorded.LedgerRolledBack: Failure("ledger_rolled_back", 500, 70, ("seq", "what")),
    recorded.NoLedger: Failure("no_ledger", 503, 6),
    recorded.OtherFormat: Failure("other_format", 503, 6, ("found", "reads")),
    errors.UnfitEngine: Failure("unfit_engine", 500, 6),
    Unavailable: Failure("unavailable", 503, 6),
    errors.EngineError: Failure("engine_error", 500, 7, ("reference",)),
    FpinqError: Failure("error", 500, 1),
    KernelViolation: Failure("kernel_violation", 500, 70),
}


def failure_of(error: BaseException) -> Failure:
    """The row of an error; that of a kernel violation for what is outside the tree."""
    for above in type(error).__mro__:
        if above in FAILURES:
            return FAILURES[above]
    return FAILURES[KernelViolation]


def fields_of(error: FpinqError) -> dict[str, Any]:
    """What an error carries besides its message: what its row names, and it has. Amounts are texts."""
    carried = vars(error)
    found = {name: carried[name] for name in failure_of(error).fields if name in carried}
    return {name: str(given) if isinstance(given, Fraction) else given for name, given in found.items()}


def error_of(code: str, message: str, fields: dict[str, Any]) -> Exception:
    """The error that a code stands for, as it was raised on the other side."""
    found = next((type_ for type_, failure in FAILURES.items() if failure.code == code), FpinqError)
    error = found.__new__(found)
    Exception.__init__(error, message)
    for name, value in fields.items():
        setattr(error, name, tuple(value) if isinstance(value, list) else value)
    return error
