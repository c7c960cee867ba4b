"""What can be asked of a table: queries, what they would cost in noise, and the same by PINQ's names."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar, overload

from fpinq.client import asking, groups
from fpinq.client.advice import misplaced
from fpinq.client.amounts import plain_amount
from fpinq.client.answers import Answer, Answers
from fpinq.client.asking import AnyInquiry, ask, ask_parts
from fpinq.client.choices import ExponentialMechanism, Median, Mode, OrderStatistic, Quantile, Quantiles
from fpinq.client.edge import edges
from fpinq.client.facts import Facts
from fpinq.client.histograms import BinAnswers, Cdf, FindBounds, Histogram, Ranges
from fpinq.client.keys import are_found, cells_of_key, keyed
from fpinq.client.planning import ExpectedError, ExpectedErrors
from fpinq.client.queries import (
    Average,
    Count,
    DistinctCount,
    Inquiry,
    StandardDeviation,
    Sum,
    Variance,
)
from fpinq.client.rows import Symbolic
from fpinq.client.several import Several
from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.model.notions import Amount as Asked
from fpinq.model.notions import Rho, asked_at

if TYPE_CHECKING:
    from fpinq.client.counting import TopAnswer
    from fpinq.client.regressions import RegressionAnswers
    from fpinq.client.thresholds import ExpectedKeys

A = TypeVar("A", Answer, Answers, BinAnswers, "RegressionAnswers", "TopAnswer")
# A number that can be taken exactly.
Exact = float | Fraction | Decimal


@edges
class Askable:
    """What a table answers. Every method is one query, or says what one would be."""

    facts: Facts

    @overload
    def query(self, epsilon: object, query: Inquiry[A], *, by: None = None, keys: None = None) -> A: ...
    @overload
    def query(
        self,
        epsilon: object,
        query: AnyInquiry | Mapping[Any, AnyInquiry],
        *,
        by: object,
        keys: Iterable[object] | None = None,
    ) -> Answers: ...
    def query(
        self,
        epsilon: object,
        query: AnyInquiry | Mapping[Any, AnyInquiry],
        *,
        by: object = None,
        keys: Iterable[object] | None = None,
    ) -> Answer | Answers:
        """One query of the table; or, with by, one of each part, all for the price of one.

        query(ε, {key: fp.average(f, bounds=…), …}, by=f) asks each part its own
        query, query(ε, fp.count(), by=f, keys=[…]) the same of all. Gives an
        answer, or a mapping key ↦ answer.
        """
        amount = exactly(epsilon)
        if by is not None and are_found(keys):
            from fpinq.client.discovery import ask_found  # most programs know their keys

            return ask_found(self.facts, amount, query, by, keys)
        if by is not None:
            return ask_parts(self.facts, amount, query, by, keys)
        if not isinstance(query, Inquiry):
            raise BadQuery(
                "query needs an fp query, such as fp.count(); several are fp.several(n=fp.count(), …), "
                "and a dict of them is one for each part: say by what, too (by=f)"
            )
        if keys is not None:
            raise _keys_of_what()
        return ask(self.facts, amount, query)

    @overload
    def expected_error(  # type: ignore[overload-overlap]
        self, query: Several, epsilon: object, *, size: int | None = None
    ) -> ExpectedErrors: ...
    @overload
    def expected_error(
        self, query: AnyInquiry, epsilon: object, *, size: int | None = None
    ) -> ExpectedError: ...
    @overload
    def expected_error(
        self, query: AnyInquiry, epsilon: object, *, by: object, keys: object = None, size: int | None = None
    ) -> "ExpectedError | ExpectedErrors | ExpectedKeys": ...
    def expected_error(
        self,
        query: AnyInquiry,
        epsilon: object,
        *,
        by: object = None,
        keys: object = None,
        size: int | None = None,
    ) -> "ExpectedError | ExpectedErrors | ExpectedKeys":
        """How far the answer of a query at ε will be off, before asking it; of several, each by its name.

        For averages and the like that depends on the number of records, which is
        private: give an assumed size, or read the dependence off what is printed.
        With by, it is that of each part.
        With keys=fp.discover(…) or a domain, also which keys will be shown, and what all of it costs.
        """
        if by is not None and are_found(keys):
            from fpinq.client.thresholds import expect_found

            return expect_found(self.facts, exactly(epsilon), query, by, keys, size)
        if by is not None:
            keyed(self.facts.subject, by, keys)  # what would be refused is refused here, too
        elif keys is not None:
            raise _keys_of_what()
        return asking.expect(self.facts, exactly(epsilon), query, size)

    def expected_keys(self, f: object, keys: object) -> "ExpectedKeys":
        """Which keys of f would be found, and for what: as noisy_histogram and partition find them.

        keys=fp.discover(ε, delta=…) says at what, or fp.discover(ε, within=fp.domain.…). Asking is free.
        """
        from fpinq.client.thresholds import expect_found

        return expect_found(self.facts, None, None, f, keys, None)

    def epsilon_for_keys(
        self, f: object, keys: object, *, count: int, confidence: object = Fraction(95, 100)
    ) -> Fraction:
        """The least ε (to four digits) at which a key with so many records is shown with this probability."""
        from fpinq.client.thresholds import epsilon_for_keys

        return epsilon_for_keys(self.facts, f, keys, count, confidence)

    def rho_for_keys(
        self, f: object, keys: object, *, count: int, confidence: object = Fraction(95, 100)
    ) -> Rho:
        """The least ρ, likewise."""
        from fpinq.client.thresholds import rho_for_keys

        return rho_for_keys(self.facts, f, keys, count, confidence)

    def epsilon_for(
        self, query: AnyInquiry, *, error: object, confidence: object = None, size: int | None = None
    ) -> Fraction:
        """The least ε (to four digits) for which the query's error is at most this, with this confidence.

        Without a confidence, error is the standard error.
        """
        return asking.epsilon_for(self.facts, query, error, confidence, size)

    def rho_for(
        self, query: AnyInquiry, *, error: object, confidence: object = None, size: int | None = None
    ) -> Rho:
        """The least ρ (to four digits) for which a query's error is at most this, with this confidence."""
        return asking.rho_for(self.facts, query, error, confidence, size)

    # ── noisy_…: the same queries by PINQ's names ────────────────────────────────────

    def noisy_count(self, epsilon: object) -> Answer:
        """How many records."""
        return self.query(epsilon, Count())

    def noisy_distinct_count(self, epsilon: object, f: object = None) -> Answer:
        """How many different values f has; missing ones are not counted."""
        return self.query(epsilon, DistinctCount(f))

    def noisy_sum(self, epsilon: object, f: object = None, bounds: object = None) -> Answer:
        """The sum of f, clamped to bounds."""
        return self.query(epsilon, Sum(f, bounds))

    def noisy_average(self, epsilon: object, f: object = None, bounds: object = None) -> Answer:
        """The average of f, clamped to bounds."""
        return self.query(epsilon, Average(f, bounds))

    def noisy_variance(self, epsilon: object, f: object = None, bounds: object = None) -> Answer:
        """The variance of f, clamped to bounds."""
        return self.query(epsilon, Variance(f, bounds))

    def noisy_standard_deviation(self, epsilon: object, f: object = None, bounds: object = None) -> Answer:
        """The standard deviation of f, clamped to bounds."""
        return self.query(epsilon, StandardDeviation(f, bounds))

    def noisy_median(
        self, epsilon: object, f: object = None, bounds: object = None, interval: object = None
    ) -> Answer:
        """The median of f, between bounds. With interval=0.95, also where it is: for a part of the same ε."""
        return self.query(epsilon, Median(f, bounds, interval))

    @overload
    def noisy_quantile(
        self,
        epsilon: object,
        q: Sequence[object],
        f: object = None,
        bounds: object = None,
        interval: object = None,
    ) -> Answers: ...
    @overload
    def noisy_quantile(
        self, epsilon: object, q: Exact, f: object = None, bounds: object = None, interval: object = None
    ) -> Answer: ...
    def noisy_quantile(
        self,
        epsilon: object,
        q: Sequence[object] | Exact,
        f: object = None,
        bounds: object = None,
        interval: object = None,
    ) -> Answer | Answers:
        """The value of f below which a fraction q of the records lies; for a list of fractions, a mapping.

        With interval=0.95, also where it is with this confidence: for a part of the same ε.
        """
        if isinstance(q, list | tuple):
            return self.query(epsilon, Quantiles(q, f, bounds, interval))
        return self.query(epsilon, Quantile(q, f, bounds, interval))

    def noisy_order_statistic(
        self,
        epsilon: object,
        fraction: object,
        f: object = None,
        bounds: object = None,
        interval: object = None,
    ) -> Answer:
        """The value of f below which a fraction of the records lies."""
        return self.query(epsilon, OrderStatistic(fraction, f, bounds, interval))

    def exponential_mechanism(
        self,
        epsilon: object,
        candidates: Sequence[object],
        score: Callable[..., object],
        bounds: object = None,
    ) -> Answer:
        """The candidate with the largest total score; score(x, candidate) is what a record adds to it."""
        return self.query(epsilon, ExponentialMechanism(candidates, score, bounds))

    def noisy_mode(
        self, epsilon: object, f: object = None, candidates: Sequence[object] | None = None
    ) -> Answer:
        """The most common value of f among public candidates."""
        return self.query(epsilon, Mode(f, candidates))

    # What these are made of is imported where it is asked for: a count needs none of it.

    def noisy_top(
        self,
        epsilon: object,
        k: int,
        f: object = None,
        candidates: Sequence[object] | None = None,
        bounds: object = None,
    ) -> "TopAnswer":
        """The k most common values of f among public candidates, a list, best first.

        With score(x, candidate) for f, the k candidates with the largest total
        scores; bounds are those of one record's score, as for exponential_mechanism.
        """
        from fpinq.client.counting import Top, top_by_score

        if not isinstance(f, Symbolic) and groups.arity(f) == 2:
            return top_by_score(self.facts, exactly(epsilon), k, f, candidates, bounds)
        if bounds is not None:
            raise BadQuery(
                "bounds are those of a score, lambda x, candidate: …; values are counted without any"
            )
        return self.query(epsilon, Top(k, f, candidates))

    def noisy_proportion(self, epsilon: object, f: object = None) -> Answer:
        """The share of the records of which f is true, from 0 to 1."""
        from fpinq.client.counting import Proportion

        return self.query(epsilon, Proportion(f))

    def noisy_min(
        self, epsilon: object, f: object = None, bounds: object = None, beyond: int | None = None
    ) -> Answer:
        """An outer quantile of f: as near to its minimum as is private. Says how many records from below."""
        from fpinq.client.extremes import Minimum

        return self.query(epsilon, Minimum(f, bounds, beyond))

    def noisy_max(
        self, epsilon: object, f: object = None, bounds: object = None, beyond: int | None = None
    ) -> Answer:
        """An outer quantile of f: as near to its maximum as is private. Says how many records from above."""
        from fpinq.client.extremes import Maximum

        return self.query(epsilon, Maximum(f, bounds, beyond))

    def noisy_covariance(self, epsilon: object, f: object, g: object, bounds: object = None) -> Answer:
        """The covariance of f and g, each clamped to its bounds: bounds=((lower, upper), (lower, upper))."""
        from fpinq.client.regressions import Covariance

        return self.query(epsilon, Covariance(f, g, bounds))

    def noisy_correlation(self, epsilon: object, f: object, g: object, bounds: object = None) -> Answer:
        """The correlation of f and g, each clamped to its bounds: bounds=((lower, upper), (lower, upper))."""
        from fpinq.client.regressions import Correlation

        return self.query(epsilon, Correlation(f, g, bounds))

    def noisy_regression(
        self, epsilon: object, y: object, x: object, bounds: Mapping[Any, object] | None = None
    ) -> "RegressionAnswers":
        """The linear regression of y on predictors [x, …], each clamped to its bounds: bounds={"age": …}.

        Gives .intercept and .coefficients["age"], each with its interval.
        """
        from fpinq.client.regressions import Regression

        return self.query(epsilon, Regression(y, x, bounds))

    def noisy_histogram(
        self,
        epsilon: object,
        f: object = None,
        bounds: object = None,
        bins: int | Sequence[object] | None = None,
        keys: Iterable[object] | None = None,
    ) -> Answers:
        """How many records are in each bin between bounds, or have each key of a column, or of several.

        keys are listed, or found: keys=fp.discover(delta=…), keys=fp.domain.strings(max_bytes=32).
        """
        epsilon, subject = exactly(epsilon), self.facts.subject
        cells = cells_of_key(subject, f, "histogram")
        if len(cells) > 1:
            if bins is not None or bounds is not None:
                raise BadQuery("a histogram of several columns counts keys: leave out bounds and bins")
            return self.query(epsilon, Count(), by=cells, keys=keys)
        (cell,) = cells.values()
        known = subject.known(cell)
        if bins is None and bounds is None and known.bounds is None and keys is None:
            keys = known.keys
        if keys is not None:
            return self.query(epsilon, Count(), by=cells, keys=keys)
        return self.query(epsilon, Histogram(cell, bounds, bins))

    def noisy_ranges(
        self,
        epsilon: object,
        f: object = None,
        bounds: object = None,
        bins: int | Sequence[object] | None = None,
    ) -> BinAnswers:
        """How many records are in any range of bins: noisy_ranges(…).range(lower, upper)."""
        return self.query(epsilon, Ranges(f, bounds, bins))

    def noisy_cdf(
        self,
        epsilon: object,
        f: object = None,
        bounds: object = None,
        bins: int | Sequence[object] | None = None,
        counts: bool = False,
    ) -> Answers:
        """The fraction (or number) of records at most each point between bounds; it never falls."""
        return self.query(epsilon, Cdf(f, bounds, bins, counts))

    def noisy_bounds(self, epsilon: object, f: object = None) -> Answer:
        """Bounds for f, each 0 or ± a power of two, that leave few records out."""
        return self.query(epsilon, FindBounds(f))


def _keys_of_what() -> BadQuery:
    return BadQuery("keys say which parts there are: say by what, too (by=lambda x: x.city)")


def exactly(epsilon: object) -> Asked:
    """An exact ε or ρ; BadEpsilon says that it comes first, if this was meant to be something else."""
    try:
        return asked_at(plain_amount(epsilon))
    except BadEpsilon as error:
        raise BadEpsilon(f"{misplaced(epsilon)}{error}") from None
