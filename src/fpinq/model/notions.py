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

from fpinq.model.conversion import rho_of
from fpinq.model.epsilon import Epsilon, budget, epsilon, rho
from fpinq.model.epsilon import delta as exact_delta
from fpinq.model.epsilon import epsilon as positive
from fpinq.model.errors import BadEpsilon, KernelViolation
from fpinq.model.frozen import dataclass

ZERO = Fraction(0)
ONE = Fraction(1)


@dataclass(frozen=True)
class Rho:
    """ρ: what a query is asked at, or the budget of a root, in concentrated differential privacy."""

    amount: Fraction
    op: Tag["rho"] = field(default="rho", repr=False)

    def __str__(self) -> str:
        return f"ρ = {self.amount}"

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

    def __str__(self) -> str:
        keys = f", of which {self.keys_delta} for keys" if self.keys_delta else ""
        return f"(ε, δ) = ({self.epsilon}, {self.delta}{keys}): {self.amount}"


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


def approximate(epsilon: object, delta: object, keys_delta: object = 0) -> Approximate:
    """An (ε, δ) as a budget: so much of δ is for keys, and what the rest gives is a ρ, rounded down.

    Where all of δ is for keys, ε stays what it is: pure.
    """
    of, whole, keys = positive(epsilon), exact_delta(delta), budget(keys_delta)
    if keys > whole:
        raise BadEpsilon("what is set aside for keys is a part of δ, 0 or more")
    return Approximate(converted(of, whole - keys), keys, of, whole)


def converted(epsilon: Fraction, delta: Fraction) -> Fraction | Rho:
    """The ρ that implies (ε, δ); ε itself where δ is 0."""
    if not delta:
        return epsilon
    found = rho_of(epsilon, delta)
    if not found:
        raise BadEpsilon("so small an ε and δ leave no ρ that could be told from 0")
    return Rho(found)


def total(number: object) -> Total:
    """What a root is promised; BadEpsilon if it is no budget of a notion."""
    if type(number) is Rho:
        return Rho(budget(number.amount))
    if type(number) is not Approximate:
        return budget(number)
    stated = approximate(number.epsilon, number.delta, number.keys_delta)
    if number != stated:
        raise BadEpsilon("an (ε, δ) is converted once, by fp.approximate(epsilon, delta, keys_delta)")
    return stated


def holds(promised: Total) -> bool:
    """Whether a budget that was written down is one, and implies the (ε, δ) that it says it was stated as."""
    if not isinstance(promised, Approximate):
        return amount_of(promised) >= 0
    try:
        again = approximate(promised.epsilon, promised.delta, promised.keys_delta)
    except BadEpsilon:
        return False
    same = is_concentrated(promised) == is_concentrated(again)
    return same and 0 <= amount_of(promised) <= amount_of(again)


def stated(given: object) -> object:
    """What a text says, where it names a notion: "rho 1/50", "epsilon 1 delta 1e-9 keys_delta 1e-10"."""
    words = given.split() if type(given) is str else []
    said = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) == 2 and "rho" in said:
        return Rho(rho(said["rho"]))
    if len(words) == 2 * len(said) and {"epsilon", "delta"} <= said.keys() <= {
        "epsilon",
        "delta",
        "keys_delta",
    }:
        return approximate(**said)
    return given


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
