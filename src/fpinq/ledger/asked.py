"""What is asked of a ledger: an action of a session, checked before it is taken."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from fpinq.ledger.acted import Check
from fpinq.ledger.kept import Program
from fpinq.ledger.memory import Past
from fpinq.ledger.together import Large, alone
from fpinq.model.actions import Action, AskPrice, Query
from fpinq.model.errors import ProgramError
from fpinq.model.notions import asked_at
from fpinq.model.queries import Several
from fpinq.model.semantics import Label

MAX_NAME = 200
# A query of more characters, with those of its tables, as often as it looks at them, is computed while others
# act, before it is taken.
LARGE = 100_000


class Asked(NamedTuple):
    """What `act` was asked; text is the action's."""

    session: str
    analyst: str | None
    request: str | None
    action: Action
    text: str
    check: Check
    queries_at_most: int | None


def exactly(action: Action) -> Action:
    """The action with its ε or ρ as the kernel takes it: an exact rational."""
    if isinstance(action, Query | AskPrice):
        exact = asked_at(action.epsilon)
        if exact is not action.epsilon:  # what is equal may be of another class: ρ = 0.5 has no form
            return replace(action, epsilon=exact)
    return action


def check_name(name: object, what: str) -> None:
    """ProgramError unless it can be a name."""
    if type(name) is not str or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise ProgramError(f"{what} has a name of 1 to {MAX_NAME} printable characters")


def rehearse(program: Program, past: Past | None, label: Callable[[], Label], asked: Asked) -> None:
    """Large, unless a session's tables and what is asked of them are small, or it was rehearsed.

    Of several queries, each is looked at by itself, and the tables with it.
    """

    if past is not None and past.rehearsed is not None:
        return
    queries = asked.action.queries if isinstance(asked.action, Query) else ()
    times = max([len(query.of) for query in queries if isinstance(query, Several)], default=1)
    if (program.length + len(asked.text)) * times <= LARGE:
        return

    def rehearsed() -> Label:
        with alone():
            found = label()
            asked.check(found)
        return found

    raise Large(rehearsed)


def check_label(label: Label, past: Past | None, check: Check) -> None:
    """Check a label, unless it is the one that was rehearsed."""
    if past is None or past.rehearsed is None or label != past.rehearsed:
        check(label)
