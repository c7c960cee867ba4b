"""Replies: JSON with sorted keys, fixed codes, and nothing in them that an engine said."""

import json
import logging
import secrets
from typing import Any

from fpinq.model.errors import FpinqError, LedgerError
from fpinq.runtime.refusals import failure_of, fields_of

_owner = logging.getLogger("fpinq.owner")

Reply = tuple[int, bytes]

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def reply(status: int, value: object) -> Reply:
    """A value as the body of a reply."""
    return status, _JSON.encode(value).encode()


def headers(status: int) -> dict[str, str]:
    """What a status says in the header, too."""
    return {"www-authenticate": 'Bearer realm="fpinq"'} if status == 401 else {}


def refusal(error: BaseException) -> Reply:
    """What the client is told of an error."""
    failure = failure_of(error)
    if isinstance(error, LedgerError):  # its words are the database's
        number = secrets.token_hex(4)
        _owner.error("ledger failure %s: %s", number, error)
        message = f"the ledger cannot be used now, so nothing is answered; the owner's reference is {number}"
        return reply(failure.status, told(failure.code, message, {"reference": number}))
    if isinstance(error, FpinqError):
        return reply(failure.status, told(failure.code, str(error), fields_of(error)))
    number = secrets.token_hex(4)
    _owner.critical("server failure %s", number, exc_info=error)
    message = (
        "the server made a mistake and refuses to go on; if a query was charged, the charge stands. "
        f"The data's owner finds the reason under reference {number}"
    )
    return reply(failure.status, told(failure.code, message, {"reference": number}))


def told(code: str, message: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The body of every reply that is not a success."""
    return {"error": {"code": code, "message": message, "fields": fields}}
