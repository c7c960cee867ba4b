"""What the owner's commands read and change in a server's ledger, whether a server runs or not."""

from collections.abc import Mapping
from fractions import Fraction

from fpinq.ledger import open_ledger
from fpinq.server.config import Config


def state(config: Config) -> tuple[Mapping[str, Fraction], set[str]]:
    """What is left of every data set that was served, and which are frozen."""
    ledger = open_ledger(config.ledger)
    try:
        roots = ledger.roots()
    finally:
        ledger.close()
    return {name: root.remaining for name, root in roots.items()}, {n for n, r in roots.items() if r.frozen}


def freeze(config: Config, name: str, frozen: bool) -> None:
    """Freeze a data set, or let it be asked again, in every server on this ledger."""
    ledger = open_ledger(config.ledger)
    try:
        (ledger.freeze if frozen else ledger.unfreeze)(name)
    finally:
        ledger.close()
