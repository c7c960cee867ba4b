"""The exponential mechanism over integer scores, exactly.

*Claim.* Releasing the chosen candidate is ε-differentially private, for
scores of sensitivity Δ, and for λ as `selection` says.

*Proof.* P[r] = e^(λq_r) / Z with Z = Σ e^(λq_s). From D to a neighbour D′ the
numerator falls by at most e^(−λΔ) and Z grows by at most e^(λΔ): a factor
e^(2λΔ) = e^ε. If all scores move up, the numerator does not fall; if all move
down, Z does not grow: a factor e^(λΔ) = e^ε. ∎

*Claim.* It is ε²/8-zCDP: under ρ, take ε = √(8ρ).

*Proof.* X(r) = ln P[r] − ln P′[r] = λ(q_r − q′_r) − ln(Z/Z′), where only the first
part depends on r, and lies between −λΔ and λΔ, or on one side of 0 for monotone
scores: X has a range of ε in both cases. Let K(α) = ln Σ P′·e^(αX), so that
K(0) = K(1) = 0, and K″(α) is the variance of X under weights proportional to
P′·e^(αX), which is at most ε²/4. So K(α) ≤ α·(α − 1)·ε²/8, and D_α = K(α)/(α − 1) ≤ α·ε²/8. ∎
(Cesar and Rogers 2021.) Permute-and-flip has a range of up to 2ε, and no such
claim: from scores (0, 0) to (Δ, −Δ) its masses go from (½, ½) to (1 − e^(−ε)/2, e^(−ε)/2).
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Self

from fpinq.model.conversion import epsilon_of_range
from fpinq.model.enclosure import Enclosure, exp_multiples, quotient
from fpinq.model.frozen import dataclass
from fpinq.noise.selection import Choice, Lag, Selection, lags
from fpinq.noise.uniform import SYSTEM, RandomBytes, below, refine, uniform


@dataclass(frozen=True)
class ExponentialMechanism(Selection):
    """Chooses a candidate with probability proportional to e^(λ·score)."""

    @classmethod
    def calibrated(cls, rho: Fraction, sensitivity: int = 1, monotone: bool = False) -> Self:
        """The mechanism that is ρ-zCDP: its ε is √(8ρ), rounded down."""
        return cls(epsilon_of_range(rho), sensitivity, monotone)

    @property
    def rho(self) -> Fraction:
        """ε²/8."""
        return Fraction(self.epsilon) ** 2 / 8

    def choose(self, runs: Iterable[tuple[int, int]], source: RandomBytes = SYSTEM) -> Choice:
        """A candidate, with exactly its probability.

        The number of runs r whose cumulated weight C_r is at most U·Z, for a
        uniform U. Every run is compared; only if the bounds leave one open
        (probability about 2^−120 for each) are both sides refined.
        """
        lagging = lags(runs)
        u = uniform(128, source)
        while (run := self._locate(lagging, u.prefix, u.bits)) is None:
            u = refine(u, source)
        largest = max(lag.multiplicity for lag in lagging)
        return Choice(run, below(lagging[run].multiplicity, largest, source))

    def mass(self, runs: Iterable[tuple[int, int]], bits: int = 64) -> list[tuple[Fraction, Fraction]]:
        """Bounds on the probability of each run (all its members together), at most 2^−bits apart."""
        weights = self._weights(lags(runs), bits + 4)
        total = sum(low for low, _ in weights), sum(high for _, high in weights)
        shares = [quotient(weight, total, bits + 4) for weight in weights]
        return [(Fraction(low, 1 << (bits + 4)), Fraction(high, 1 << (bits + 4))) for low, high in shares]

    def _weights(self, lagging: list[Lag], bits: int) -> list[Enclosure]:
        """e^(−λ·gap)·multiplicity for each run, to bits or better. The largest is 1 or more."""
        bits += sum(lag.multiplicity for lag in lagging).bit_length()
        weight = exp_multiples(self.rate, max(lag.gap for lag in lagging), bits)
        bounds = [weight(lag.gap) for lag in lagging]
        return [
            (low * lag.multiplicity, high * lag.multiplicity)
            for (low, high), lag in zip(bounds, lagging, strict=True)
        ]

    def _locate(self, lagging: list[Lag], prefix: int, bits: int) -> int | None:
        """The run in which U·Z falls, for all U in [prefix, prefix + 1)·2^−bits; None if they differ."""
        weights = self._weights(lagging, bits)
        total_low, total_high = sum(low for low, _ in weights), sum(high for _, high in weights)
        first, last = prefix * total_low, (prefix + 1) * total_high
        passed = maybe_passed = cumulated_low = cumulated_high = 0
        for low, high in weights[:-1]:  # U·Z < Z: the last run is never passed
            cumulated_low += low
            cumulated_high += high
            passed += first >= cumulated_high << bits
            maybe_passed += last > cumulated_low << bits
        return passed if passed == maybe_passed else None
