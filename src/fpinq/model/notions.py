"""Notions of privacy: what a budget promises, and what a query is asked at.

A plain number is an ε, of pure differential privacy. A `Rho` is a ρ, of
concentrated differential privacy: neighbours are ρ-close if the Rényi divergence
of every order α > 1 is at most α·ρ, either way. A root has one notion. ρ's of
one root add up, and a change of k records may cost k²·ρ: group privacy is
quadratic.

An *approximate* budget has a δ: what it was converted from, once and rounded
down, or what is set aside for keys that nobody knew.
"""

from dataclasses import field
from fractions import Fraction
from typing import Literal as Tag

from fpinq.model.epsilon import Epsilon, budget, delta, epsilon, is_fraction, rho
from fpinq.model.errors import BadEpsilon, KernelViolation
from fpinq.model.frozen import dataclass

ZERO = Fraction(0)
ONE = Fraction(1)


@dataclass(frozen=True)
class Rho:
    """ρ: what a query is asked at, or the budget of a root, in concentrated differential privacy."""

    amount: Fraction
    op: Tag["rho"] = field(default="rho", repr=False)

    def __bool__(self) -> bool:
        return bool(self.amount)

    def times(self, share: Fraction) -> "Rho":
        """A share of it."""
        return Rho(self.amount * share)


# What a query is asked at.
Amount = Epsilon | Rho


@dataclass(frozen=True)
class Approximate:
    """A budget with a δ: an ε or a ρ, and what is set aside for keys; (ε, δ) is what it was stated as."""

    amount: Fraction | Rho
    keys_delta: Fraction
    epsilon: Fraction
    delta: Fraction
    op: Tag["approximate"] = field(default="approximate", repr=False)


# What a root is promised: an ε by itself is pure.
Total = Fraction | Rho | Approximate


def asked_at(number: object) -> Amount:
    """What a query is asked at, as the kernel takes it; BadEpsilon if it is neither an ε nor a ρ."""
    if type(number) is Rho:
        return Rho(rho(number.amount))
    return epsilon(number)


def share_of(amount: Amount, share: Fraction) -> Amount:
    """A share of what is asked at."""
    return amount.times(share) if isinstance(amount, Rho) else Epsilon(amount * share)


def pure(amount: Amount) -> Epsilon:
    """What is asked at, where that can only be an ε."""
    if isinstance(amount, Rho):
        raise KernelViolation("a ρ where there can be none")
    return amount


def total(number: object) -> Total:
    """What a root is promised; BadEpsilon if it is no budget of a notion."""
    if type(number) is Rho:
        return Rho(budget(number.amount))
    if type(number) is not Approximate:
        return budget(number)
    for each in (number.epsilon, number.delta, number.keys_delta):
        if not is_fraction(each):
            raise BadEpsilon("the ε and the δ of a budget are Fractions")
    if not isinstance(number.amount, Fraction | Rho):
        raise BadEpsilon("a budget is converted once, from an ε and a δ to an ε or a ρ")
    if not 0 <= number.keys_delta <= delta(number.delta):
        raise BadEpsilon("what is set aside for keys is a part of δ, 0 or more")
    return Approximate(total(number.amount), number.keys_delta, budget(number.epsilon), number.delta)  # type: ignore[arg-type]


def is_concentrated(promised: Total) -> bool:
    """Whether it is a ρ that is promised, not an ε."""
    return isinstance(promised, Rho) or (
        isinstance(promised, Approximate) and isinstance(promised.amount, Rho)
    )


def amount_of(promised: Total) -> Fraction:
    """How much is promised, in the unit of its notion."""
    if isinstance(promised, Approximate):
        return amount_of(promised.amount)
    return promised.amount if isinstance(promised, Rho) else promised


def keys_delta_of(promised: Total) -> Fraction:
    """Which δ is set aside for keys that nobody knew."""
    return promised.keys_delta if isinstance(promised, Approximate) else ZERO


# ── what a query costs a root, per unit of distance ──────────────────────────────────


def kappa(amount: Amount, scale: int) -> Fraction:
    """κ = h(S)/S in a concentrated root's book: the largest loss per unit of distance, over distances 1 … S.

    What is asked at ρ loses h(D) = ρ·D². What is private at ε loses ε·D·tanh(ε·D/2),
    randomised response that and no less: κ = ε·tanh(ε·S/2).
    """
    if isinstance(amount, Rho):
        return amount.amount * scale
    return amount * tanh_above(amount * scale / 2)


def tanh_above(y: Fraction) -> Fraction:
    """A rational bound of tanh y, y ≥ 0, at most 2 % above: of its continued fraction a convergent, and 1."""
    return min(ONE, y * (15 + y * y) / (15 + 6 * y * y))
