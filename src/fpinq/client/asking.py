"""Asking: queries on a table. Each is one action; a refusal is BudgetExceeded, and nothing is charged."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.handle import Handle
from fpinq.client.parts import partitioning
from fpinq.client.queries import (
    Average,
    Cdf,
    Count,
    ExponentialMechanism,
    FindBounds,
    Histogram,
    Median,
    Mode,
    OrderStatistic,
    Quantile,
    Query,
    StandardDeviation,
    Subject,
    Sum,
    Variance,
)
from fpinq.client.spelling import show_down, show_up
from fpinq.model import actions
from fpinq.model import epsilon as exact
from fpinq.model.errors import BadQuery, BudgetExceeded, KernelViolation
from fpinq.model.queries import PrimitiveQuery
from fpinq.model.semantics import Bottom
from fpinq.model.transformations import Partitioning
from fpinq.runtime import Answered, Released


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
        subject = Subject(self._schema, self._columns)
        if by is None:
            if not isinstance(query, Query):
                raise BadQuery("query needs an fp query, such as fp.count(); or a dict of them and by=f")
            if keys is not None:
                raise BadQuery("keys say which parts there are: say by what, too (by=lambda x: x.city)")
            prepared = query.prepare(subject)
            (of_all,), charged = self._ask(exactly, (prepared.primitive,), None)
            return prepared.read(of_all, exactly, charged)
        if isinstance(query, Mapping):
            if keys is not None:
                raise BadQuery("the keys of the dict say which parts there are: leave keys=… out")
            keys = list(query)
        partition, labels = partitioning(subject, by, keys)
        questions = [query] * len(labels) if isinstance(query, Query) else list(query.values())
        if not all(isinstance(question, Query) for question in questions):
            raise BadQuery("each part needs an fp query, such as fp.count() or fp.average(f, bounds=…)")
        each = [question.prepare(subject) for question in questions]
        released, charged = self._ask(exactly, tuple(p.primitive for p in each), partition)
        answers = [p.read(r, exactly, charged) for p, r in zip(each, released, strict=True)]
        return Answers(dict(zip(labels, answers, strict=True)), exactly, charged)

    # ── noisy_…: the same queries by PINQ's names ────────────────────────────────────

    def noisy_count(self, epsilon: object) -> Answer:
        """How many records."""
        return self._answer(epsilon, Count())

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
            return self._several(epsilon, [(fraction, Quantile(fraction, f, bounds)) for fraction in q])
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

    def _several(self, epsilon: object, queries: list[tuple[Any, Query]]) -> Answers:
        """Several queries of the whole table, for one ε that they share equally."""
        exactly = exact.epsilon(epsilon)
        subject = Subject(self._schema, self._columns)
        if not queries:
            raise BadQuery("no queries to ask")
        for _, query in queries:
            query.prepare(subject)
        self._refuse_unless_it_fits(exactly)
        share = exactly / len(queries)
        before = self._left()
        answers = {key: self.query(share, query) for key, query in queries}
        charged = self._shaped({root: left - self._left()[root] for root, left in before.items()})
        return Answers(answers, exactly, charged)

    # ── one action ───────────────────────────────────────────────────────────────────

    def _ask(
        self, epsilon: Fraction, queries: tuple[PrimitiveQuery, ...], by: Partitioning | None
    ) -> tuple[tuple[Released, ...], Charged]:
        """Send a query; what it released and what it was charged."""
        table = self._bound_somewhere()
        with ExitStack() as locks:
            for budget in sorted(self._budgets, key=id):
                locks.enter_context(budget.lock)
            if self._budgets:
                table._refuse_unless_it_fits(epsilon)
            observation = table._act(actions.Query(table._variable, epsilon, queries, by))
            if isinstance(observation, Bottom):
                raise table._too_expensive(epsilon)
            if not isinstance(observation, Answered):
                raise KernelViolation("a query was not answered")
            for budget in self._budgets:
                budget.spend(observation.charged)
        return observation.released, self._shaped(observation.charged)

    def _refuse_unless_it_fits(self, epsilon: Fraction) -> None:
        left = self._left()
        if any(price > left[root] for root, price in self._price(epsilon).items()):
            raise self._too_expensive(epsilon)

    def _too_expensive(self, epsilon: Fraction) -> BudgetExceeded:
        """⊥, with what it would have cost and what to do."""
        left, prices = self._left(), self._price(epsilon)
        root = max(prices, key=lambda root: prices[root] - left[root])
        factor = self.scaling_factor
        affordable = max(min(left.values()), Fraction(0)) / factor
        advice = f"ε ≤ {show_down(affordable)} would fit." if affordable else "Nothing is left to spend."
        return BudgetExceeded(
            f"ε = {show_up(epsilon)} on a table with scaling factor {factor} "
            f"would cost {show_up(prices[root])} of {self._root_labels()[root]!r}, "
            f"which has {show_down(left[root])} left. Nothing was charged. {advice}",
            price=prices[root],
            remaining=left[root],
        )
