"""Before keys are found: which will be shown, how far off their counts will be, and for what. It is free."""

from collections.abc import Callable
from fractions import Fraction

from fpinq.client.answers import Charged, show_number
from fpinq.client.asking import AnyInquiry, expect
from fpinq.client.discovery import how_found, needs_epsilon, noise_in, price_of_both, query_of
from fpinq.client.facts import Facts
from fpinq.client.planning import ExpectedError, ExpectedErrors, least_amount
from fpinq.client.queries import Count
from fpinq.client.shown import visibly
from fpinq.client.spelling import show_at, show_delta, show_up
from fpinq.client.uncertainty import Number, exact_confidence
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import BadQuery
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho
from fpinq.model.queries import Discovery, Sparse
from fpinq.noise.symmetric import Symmetric
from fpinq.runtime.finding import mechanism_of, noise_of

ZERO = Fraction(0)
USUAL = Fraction(95, 100)


@visibly
@dataclass(frozen=True)
class Shown:
    """Which keys are shown at an ε or ρ: those whose noisy counts reach a public threshold."""

    query: Discovery
    epsilon: Amount

    @property
    def threshold(self) -> int:
        """τ: what a noisy count must reach to be shown."""
        return mechanism_of(self.query, self.epsilon).threshold

    @property
    def delta(self) -> Fraction:
        """The δ that it is asked at, for each unit of distance; 0 within a domain."""
        return self.query.delta

    @property
    def expected_false(self) -> Fraction:
        """How many keys that no record has are expected to be shown, at the most: with a δ none."""
        return self.query.expected if isinstance(self.query, Sparse) else ZERO

    @property
    def at_most(self) -> int:
        """How many keys are shown at the most."""
        return self.query.at_most

    def probability(self, count: int) -> float:
        """How likely a key that so many records have is shown, if they are not too many."""
        if type(count) is not int or count < 1:
            raise BadQuery("a key is one that records have: so many, 1 or more")
        low, high = self._noise.tail(self.threshold - count)
        return float((low + high) / 2)

    def sure(self, confidence: object = USUAL) -> int:
        """How many records a key needs to be shown with at least this probability."""
        return max(self.threshold + self._noise.quantile(exact_confidence(confidence)), 1)

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise in a count that is shown in any case."""
        return noise_in(self.query, self.epsilon).standard_error()

    def half_width(self, confidence: object = USUAL) -> Number | None:
        """How far off such a count is at most, with this confidence."""
        return noise_in(self.query, self.epsilon).interval(0, exact_confidence(confidence))[1]

    @property
    def _noise(self) -> Symmetric:
        return noise_of(self.query, self.epsilon)

    def __str__(self) -> str:
        half = self.half_width()
        false = (
            f"; keys that nobody has: at most {show_delta(self.expected_false)} expected"
            if self.expected_false
            else ""
        )
        return (
            f"keys whose noisy counts reach {self.threshold:,}: 95 % of those with {self.sure():,} records, "
            f"counts ± {show_number(half, half)}{false}"
        )

    def __repr__(self) -> str:
        delta = f", δ = {show_delta(self.delta)}" if self.delta else ""
        return f"<{self}, {show_at(self.epsilon)}{delta}>"


@visibly
@dataclass(frozen=True)
class ExpectedKeys(Shown):
    """Which keys a query will show, and what it costs; with another query of them, that one's error, too.

    price and price_delta are of all of it: by root, where there are several.
    """

    price: Charged
    price_delta: Charged
    then: ExpectedError | ExpectedErrors | None = None

    def __str__(self) -> str:
        delta = f" and δ = {_shown(self.price_delta, show_delta)}" if self.delta else ""
        then = "" if self.then is None else f"; of each, {self.then}"
        return f"{Shown.__str__(self)}{then}; costs {_shown(self.price, show_up)}{delta}"

    def __repr__(self) -> str:
        return f"<{self}>"


def _shown(amounts: Charged, show: Callable[[Fraction], str]) -> str:
    if isinstance(amounts, Fraction):
        return show(amounts)
    return ", ".join(f"{show(amount)} of {root}" for root, amount in amounts.items())


def expect_found(
    table: Facts, at: Amount | None, query: AnyInquiry | None, by: object, keys: object, size: int | None
) -> ExpectedKeys:
    """What finding keys will show and cost; with another query than a count of each, in all."""
    how = how_found(keys)
    counts = query is None or (isinstance(query, Count) and how.epsilon in (None, at))
    own = at if counts and how.epsilon is None else how.epsilon
    if own is None:
        raise needs_epsilon()
    asked, found = query_of(table, by, how, counts=counts and query is not None)
    price, then = asked.prices(own), None
    deltas = asked.delta_prices(own, found.delta) if found.delta else {}
    if not counts:
        assert query is not None
        if at is None:
            raise needs_epsilon()
        then = expect(table, at, query, size)
        price = price_of_both(table, asked, own, at)
    return ExpectedKeys(found, own, table.by_root(price), table.by_root(deltas), then)


def epsilon_for_keys(table: Facts, by: object, keys: object, count: object, confidence: object) -> Fraction:
    """The least ε at which a key with so many records is shown with this probability."""
    return _least(table, by, keys, count, confidence, Epsilon)


def rho_for_keys(table: Facts, by: object, keys: object, count: object, confidence: object) -> Rho:
    """The least ρ."""
    least = _least(table, by, keys, count, confidence, Rho)
    return Rho(Fraction(least.numerator, least.denominator))


def _least(
    table: Facts,
    by: object,
    keys: object,
    count: object,
    confidence: object,
    at: Callable[[Fraction], Amount],
) -> Fraction:
    if type(count) is not int or count < 1:
        raise BadQuery("count is how many records a key has that is to be shown: 1 or more")
    exactly, how = exact_confidence(confidence), how_found(keys)
    _, found = query_of(table, by, how, counts=True)
    return least_amount(lambda amount: Shown(found, at(amount)).sure(exactly) <= count)


# ── which notion is better ───────────────────────────────────────────────────────────


@visibly
@dataclass(frozen=True)
class KeysComparison:
    """Which keys are shown under a budget of ε, and under one of (ε, δ), asked so many times."""

    pure: Shown
    concentrated: Shown
    times: int

    @property
    def ratio(self) -> float:
        """How many times more records a key needs under ε than under (ε, δ), to be shown with 95 %."""
        return self.pure.sure() / self.concentrated.sure()

    @property
    def better(self) -> str:
        """“ε” or “ρ”. A budget of ε is the stronger promise: where neither is better, that."""
        return "ρ" if self.ratio > 1 else "ε"

    def __repr__(self) -> str:
        both = f"{self.pure!r} or {self.concentrated!r}, {self.times:,} times"
        return f"{both}: {self.better} is better, {self.ratio:.2f} to 1"


def compare_keys(
    table: Facts, by: object, keys: object, ats: tuple[Epsilon, Rho], times: int
) -> KeysComparison:
    """Keys found at an ε, and at a ρ: of a δ for keys, which is the same for both."""
    _, found = query_of(table, by, how_found(keys), counts=True)
    pure, concentrated = (Shown(found, at) for at in ats)
    return KeysComparison(pure, concentrated, times)
