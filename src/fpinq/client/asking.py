"""Asking: queries on a table. Each is one action; a refusal is BudgetExceeded, and nothing is charged."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.choices import ExponentialMechanism, Median, Mode, OrderStatistic, Quantile, Quantiles
from fpinq.client.handle import Handle
from fpinq.client.histograms import BinAnswers, Cdf, FindBounds, Histogram, Ranges
from fpinq.client.parts import partitioning
from fpinq.client.planning import ExpectedError, expected_error, least_epsilon
from fpinq.client.queries import (
    Average,
    Count,
    DistinctCount,
    Prepared,
    Query,
    StandardDeviation,
    Subject,
    Sum,
    Variance,
)
from fpinq.client.spelling import show_down, show_up
from fpinq.model import actions
from fpinq.model import epsilon as exact
from fpinq.model.errors import BadQuery, BudgetExceeded, DataChanged, KernelViolation, ProgramError
from fpinq.model.queries import PrimitiveQuery
from fpinq.model.semantics import Bottom
from fpinq.model.transformations import Partitioning
from fpinq.runtime import Answered, Released
from fpinq.runtime.refusals import TooManyRequests

# What a system raises of a query that it did not charge. After anything else it may have.
NOTHING_CHARGED = (ProgramError, DataChanged, TooManyRequests)


class Asking(Handle):
    """A table that can be asked."""

    def query(
        self,
        epsilon: object,
        query: Query | Mapping[Any, Query],
        *,
        by: Any = None,
        keys: Iterable[Any] | None = None,
    ) -> Any:
        """One query of the table; or, with by, one of each part, all for the price of one.

        query(ε, {key: fp.average(f, bounds=…), …}, by=f) asks each part its own
        query, query(ε, fp.count(), by=f, keys=[…]) the same of all. Gives an
        answer, or a mapping key ↦ answer.
        """
        exactly = exact.epsilon(epsilon)
        if by is None:
            if not isinstance(query, Query):
                raise BadQuery("query needs an fp query, such as fp.count(); or a dict of them and by=f")
            if keys is not None:
                raise BadQuery("keys say which parts there are: say by what, too (by=lambda x: x.city)")
            table, prepared = self._prepare(query, exactly)
            (of_all,), charged = table._ask(exactly, (prepared.primitive,), None)
            return prepared.read(of_all, charged)
        if isinstance(query, Mapping):
            if keys is not None:
                raise BadQuery("the keys of the dict say which parts there are: leave keys=… out")
            keys = list(query)
        partition, labels = partitioning(Subject(self._schema, self._columns), by, keys)
        questions = [query] * len(labels) if isinstance(query, Query) else list(query.values())
        if not all(isinstance(question, Query) for question in questions):
            raise BadQuery("each part needs an fp query, such as fp.count() or fp.average(f, bounds=…)")
        each = [self._prepare(question, exactly) for question in questions]
        if all(table is self for table, _ in each):
            primitives = tuple(prepared.primitive for _, prepared in each)
            released, charged = self._ask(exactly, primitives, partition)
        else:
            released, charged = self._ask_parts(exactly, by, dict(zip(labels, questions, strict=True)))
        answers = [prepared.read(r, charged) for (_, prepared), r in zip(each, released, strict=True)]
        return Answers(dict(zip(labels, answers, strict=True)), exactly, charged)

    def _prepare(self, query: Query, epsilon: Fraction) -> tuple[Any, Prepared]:
        """The table that a query is asked of, and what is asked of it."""
        table = query.derive(self)
        return table, query.prepare(Subject(table._schema, table._columns), epsilon)

    def _ask_parts(
        self, epsilon: Fraction, by: Any, questions: Mapping[Any, Query]
    ) -> tuple[tuple[Released, ...], Charged]:
        """Ask every part its query, one by one: for queries of a table made of the part.

        Costs what the parallel query costs, since siblings are charged their maximum.
        """
        parts: Any = self.partition(by, keys=list(questions))  # type: ignore[attr-defined]
        each = [parts[key]._prepare(question, epsilon) for key, question in questions.items()]
        self._refuse_unless_it_fits(epsilon)
        released: list[Released] = []
        charged: dict[str, Fraction] = {}
        for table, prepared in each:
            (of_part,), amounts = table._charge(epsilon, (prepared.primitive,), None)
            released.append(of_part)
            for root, amount in amounts.items():
                charged[root] = charged.get(root, Fraction(0)) + amount
        return tuple(released), self._shaped(charged)

    # ── planning: all of it is free ──────────────────────────────────────────────────

    def expected_error(self, query: Query, epsilon: object, *, size: int | None = None) -> ExpectedError:
        """How far the answer of a query at ε will be off, before asking it.

        For averages and the like that depends on the number of records, which is
        private: give an assumed size, or read the dependence off what is printed.
        """
        exactly = exact.epsilon(epsilon)
        _, prepared = self._prepare(_checked(query), exactly)
        return expected_error(prepared, exactly, size)

    def epsilon_for(
        self, query: Query, *, error: object, confidence: object = None, size: int | None = None
    ) -> Fraction:
        """The least ε (to four digits) for which the query's error is at most this, with this confidence.

        Without a confidence, error is the standard error.
        """
        table = _checked(query).derive(self)
        subject = Subject(table._schema, table._columns)
        return least_epsilon(lambda epsilon: query.prepare(subject, epsilon), error, confidence, size)

    # ── noisy_…: the same queries by PINQ's names ────────────────────────────────────

    def noisy_count(self, epsilon: object) -> Answer:
        """How many records."""
        return self._answer(epsilon, Count())

    def noisy_distinct_count(self, epsilon: object, f: Any = None) -> Answer:
        """How many different values f has; missing ones are not counted."""
        return self._answer(epsilon, DistinctCount(f))

    def noisy_sum(self, epsilon: object, f: Any = None, bounds: object = None) -> Answer:
        """The sum of f, clamped to bounds."""
        return self._answer(epsilon, Sum(f, bounds))

    def noisy_average(self, epsilon: object, f: Any = None, bounds: object = None) -> Answer:
        """The average of f, clamped to bounds."""
        return self._answer(epsilon, Average(f, bounds))

    def noisy_variance(self, epsilon: object, f: Any = None, bounds: object = None) -> Answer:
        """The variance of f, clamped to bounds."""
        return self._answer(epsilon, Variance(f, bounds))

    def noisy_standard_deviation(self, epsilon: object, f: Any = None, bounds: object = None) -> Answer:
        """The standard deviation of f, clamped to bounds."""
        return self._answer(epsilon, StandardDeviation(f, bounds))

    def noisy_median(self, epsilon: object, f: Any = None, bounds: object = None) -> Answer:
        """The median of f, between bounds."""
        return self._answer(epsilon, Median(f, bounds))

    def noisy_quantile(self, epsilon: object, q: Any, f: Any = None, bounds: object = None) -> Any:
        """The value of f below which a fraction q of the records lies; for a list of fractions, a mapping."""
        if isinstance(q, list | tuple):
            return self._answers(epsilon, Quantiles(q, f, bounds))
        return self._answer(epsilon, Quantile(q, f, bounds))

    def noisy_order_statistic(
        self, epsilon: object, fraction: object, f: Any = None, bounds: object = None
    ) -> Answer:
        """The value of f below which a fraction of the records lies."""
        return self._answer(epsilon, OrderStatistic(fraction, f, bounds))

    def exponential_mechanism(
        self, epsilon: object, candidates: Any, score: Any, bounds: object = None
    ) -> Answer:
        """The candidate with the largest total score; score(x, candidate) is what a record adds to it."""
        return self._answer(epsilon, ExponentialMechanism(candidates, score, bounds))

    def noisy_mode(self, epsilon: object, f: Any = None, candidates: Any = None) -> Answer:
        """The most common value of f among public candidates."""
        return self._answer(epsilon, Mode(f, candidates))

    def noisy_histogram(
        self,
        epsilon: object,
        f: Any = None,
        bounds: object = None,
        bins: Any = None,
        keys: Iterable[Any] | None = None,
    ) -> Answers:
        """How many records are in each bin between bounds, or have each of the keys."""
        subject = Subject(self._schema, self._columns)
        cell = subject.cell(f, "histogram")
        known = subject.known(cell)
        if bins is None and bounds is None and known.bounds is None and keys is None:
            keys = known.keys
        if keys is not None:
            return self._answers(epsilon, Count(), cell, keys)
        return self._answers(epsilon, Histogram(cell, bounds, bins))

    def noisy_ranges(
        self, epsilon: object, f: Any = None, bounds: object = None, bins: Any = None
    ) -> BinAnswers:
        """How many records are in any range of bins: noisy_ranges(…).range(lower, upper)."""
        answers = self._answers(epsilon, Ranges(f, bounds, bins))
        assert isinstance(answers, BinAnswers)
        return answers

    def noisy_cdf(
        self, epsilon: object, f: Any = None, bounds: object = None, bins: Any = None, counts: bool = False
    ) -> Answers:
        """The fraction (or number) of records at most each point between bounds; it never falls."""
        return self._answers(epsilon, Cdf(f, bounds, bins, counts))

    def noisy_bounds(self, epsilon: object, f: Any = None) -> Answer:
        """Bounds for f, each 0 or ± a power of two, that leave few records out."""
        return self._answer(epsilon, FindBounds(f))

    def _answer(self, epsilon: object, query: Query) -> Answer:
        answer = self.query(epsilon, query)
        assert isinstance(answer, Answer)
        return answer

    def _answers(self, epsilon: object, query: Query, by: Any = None, keys: Any = None) -> Answers:
        answers = self.query(epsilon, query, by=by, keys=keys)
        assert isinstance(answers, Answers)
        return answers

    # ── one action ───────────────────────────────────────────────────────────────────

    def _ask(
        self, epsilon: Fraction, queries: tuple[PrimitiveQuery, ...], by: Partitioning | None
    ) -> tuple[tuple[Released, ...], Charged]:
        """Send a query; what it released and what it was charged."""
        released, charged = self._charge(epsilon, queries, by)
        return released, self._shaped(charged)

    def _charge(
        self, epsilon: Fraction, queries: tuple[PrimitiveQuery, ...], by: Partitioning | None
    ) -> tuple[tuple[Released, ...], Mapping[str, Fraction]]:
        """The same, charged by the roots' names in the system."""
        table = self._bound_somewhere()
        with ExitStack() as locks:
            for budget in sorted(self._budgets, key=id):
                locks.enter_context(budget.lock)
            if self._budgets:
                table._refuse_unless_it_fits(epsilon)
            price = table._price(epsilon) if self._budgets else {}
            # Before anything is charged: whatever cuts short what follows, and wherever, it is debited.
            self._debit(price)
            try:
                observation = table._act(actions.Query(table._variable, epsilon, queries, by))
            except NOTHING_CHARGED as error:
                # Unless an attempt that got no reply came before the one that was refused.
                if not getattr(error, "may_be_charged", False):
                    self._debit(_difference({}, price))
                raise
            if isinstance(observation, Bottom):
                self._debit(_difference({}, price))
                raise table._too_expensive(epsilon)
            if not isinstance(observation, Answered):
                raise KernelViolation("a query was not answered")
            self._debit(_difference(observation.charged, price))
        return observation.released, observation.charged

    def _debit(self, amounts: Mapping[str, Fraction]) -> None:
        for budget in self._budgets:
            budget.spend(amounts)

    def _refuse_unless_it_fits(self, epsilon: Fraction) -> None:
        left = self._left()
        if any(price > left[root] for root, price in self._price(epsilon).items()):
            raise self._too_expensive(epsilon)

    def _affordable(
        self, epsilon: Fraction, prices: Mapping[str, Fraction], left: Mapping[str, Fraction]
    ) -> Fraction:
        """An ε that would fit: the largest, as a rule; 0 if none was found.

        A price grows by at most the scaling factor times ε, and once a part
        leads its siblings by exactly that: so much less, and it is what is left.
        """
        for _ in range(4):
            excess = max(prices[root] - left[root] for root in prices)
            if excess <= 0:
                return epsilon
            epsilon -= excess / self.scaling_factor
            if epsilon <= 0:
                break
            prices = self._price(epsilon)
        return max(min(left.values()), Fraction(0)) / self.scaling_factor

    def _too_expensive(self, epsilon: Fraction) -> BudgetExceeded:
        """⊥, with what it would have cost and what to do."""
        left, prices = self._left(), self._price(epsilon)
        root = max(prices, key=lambda root: prices[root] - left[root])
        factor = self.scaling_factor
        affordable = self._affordable(epsilon, prices, left)
        advice = f"ε ≤ {show_down(affordable)} would fit." if affordable else "Nothing is left to spend."
        return BudgetExceeded(
            f"ε = {show_up(epsilon)} on a table with scaling factor {factor} "
            f"would cost {show_up(prices[root])} of {self._root_labels()[root]!r}, "
            f"which has {show_down(left[root])} left. Nothing was charged. {advice}",
            price=prices[root],
            remaining=left[root],
        )


def _difference(charged: Mapping[str, Fraction], debited: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """What is still to be debited of a charge, by root: less than nothing where it was too much."""
    zero = Fraction(0)
    return {root: charged.get(root, zero) - debited.get(root, zero) for root in {*charged, *debited}}


def _checked(query: object) -> Query:
    if not isinstance(query, Query):
        raise BadQuery("planning needs an fp query, such as fp.count() or fp.average(f, bounds=…)")
    return query
