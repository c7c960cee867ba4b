"""What only the data's owner may read: an engine's own words may quote a row."""

import logging
import secrets

_owner = logging.getLogger("fpinq.owner")


def noted(error: Exception) -> str:
    """Write an error to the owner's log; a short reference to it, which anybody may know."""
    reference = secrets.token_hex(4)
    _owner.error("engine failure %s: %s: %s", reference, type(error).__name__, error)
    return reference
