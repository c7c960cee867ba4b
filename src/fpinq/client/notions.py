"""Notions as a program says them: fp.rho(…) wherever an ε is given, fp.approximate(…) for a budget."""

from fpinq.client.amounts import plain_amount
from fpinq.client.edge import edge
from fpinq.model import epsilon as exact
from fpinq.model import notions
from fpinq.model.errors import BadEpsilon
from fpinq.model.notions import Approximate, Rho


@edge
def rho(number: object) -> Rho:
    """A ρ, exact as an ε is: to ask a query at, or as a budget; group privacy is quadratic."""
    if isinstance(number, Rho):
        return number
    return Rho(exact.rho(plain_amount(number)))


@edge
def approximate(epsilon: object, delta: object, keys_delta: object = 0) -> Approximate:
    """A budget stated as (ε, δ), converted once: to the ρ that implies it, rounded down.

    keys_delta is the part of δ that is set aside for keys that nobody listed: fp.discover(…).
    """
    if isinstance(epsilon, Rho | Approximate):
        raise BadEpsilon("an (ε, δ) is converted once: say ε and δ")
    return notions.approximate(*map(plain_amount, (epsilon, delta, keys_delta)))
