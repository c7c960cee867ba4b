"""Tables: all that a program can do with one. Methods over facts; each gives a new table, or an answer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from fpinq.client import algebra, asking, groups, joins, parts
from fpinq.client.advice import instead, misplaced
from fpinq.client.algebra import derive
from fpinq.client.amounts import plain_amount
from fpinq.client.answers import Answer, Answers
from fpinq.client.asking import AnyInquiry, ask, ask_parts
from fpinq.client.budgets import Budget
from fpinq.client.choices import ExponentialMechanism, Median, Mode, OrderStatistic, Quantile, Quantiles
from fpinq.client.derivation import Derivation, summary
from fpinq.client.edge import edges
from fpinq.client.facts import Facts
from fpinq.client.groups import Groups, Keys, Side
from fpinq.client.histograms import BinAnswers, Cdf, FindBounds, Histogram, Ranges
from fpinq.client.history import History, notes_of
from fpinq.client.joins import join_keys, key_cells, trees
from fpinq.client.keys import cells_of_key
from fpinq.client.parts import Parts
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
from fpinq.client.rows import Cell, Symbolic
from fpinq.client.several import Several
from fpinq.client.shown import html_facts
from fpinq.client.tracing import called, called_or_constant, named, row, trace
from fpinq.engines.text import Dialect
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import BadEpsilon, BadQuery, BadTransformation, ProgramError
from fpinq.model.expressions import Column, Expression, Type
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount as Asked
from fpinq.model.notions import Rho, asked_at
from fpinq.model.transformations import (
    Aggregates,
    Except,
    Explode,
    Fields,
    Intersect,
    SelectMany,
    Take,
    Truncation,
    Union,
)

if TYPE_CHECKING:
    from fpinq.client.counting import TopAnswer
    from fpinq.client.regressions import RegressionAnswers

A = TypeVar("A", Answer, Answers, BinAnswers, "RegressionAnswers", "TopAnswer")
# A number that can be taken exactly.
Exact = float | Fraction | Decimal


@edges
@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A protected table, or a public one. Immutable: every transformation gives a new one."""

    facts: Facts

    # ── public facts ─────────────────────────────────────────────────────────────────

    @property
    def schema(self) -> Mapping[str, str]:
        """The columns and their types."""
        return MappingProxyType({name: type_.value for name, type_ in self.facts.schema.columns})

    @property
    def scaling_factor(self) -> int:
        """How many records of this table one record of a root may change: what ε = 1 costs at first."""
        return self.facts.scaling_factor()

    @property
    def sensitivity(self) -> Mapping[str, int]:
        """How many records of this table one record of each source may change: of a root, or of a part."""
        return MappingProxyType(self.facts.sensitivity())

    @property
    def remaining(self) -> Fraction | Mapping[str, Fraction]:
        """What is left of the budget; for a table over several roots, of each."""
        return self.facts.by_root(self.facts.left()) if self.facts.roots else MappingProxyType({})

    def price(self, epsilon: object) -> Fraction | Mapping[str, Fraction]:
        """What a query at ε would cost now; for a table over several roots, of each. Asking is free."""
        return self.facts.by_root(self.facts.prices(_exactly(epsilon)))

    @property
    def history(self) -> History:
        """What this program has asked of the table's roots: when, for how much, and what that left."""
        facts = replace(self.facts, budgets=frozenset())
        asked = [] if facts.system is None else notes_of(facts.system).of(facts.roots)
        return History(asked, facts.root_labels(), facts.left())

    def explain(self) -> Derivation:
        """How the table was made, with every stability and scaling factor: to print, or for a notebook."""
        return Derivation(self.facts)

    def with_budget(self, budget: Budget) -> "Table":
        """The same table, of which queries are also charged to this budget and may not exceed it."""
        if not isinstance(budget, Budget):
            raise ProgramError("with_budget needs an fp.Budget, such as fp.Budget(1).split(2)[0]")
        kept = {other for other in self.facts.budgets if not budget.descends_from(other)}
        return Table(replace(self.facts, budgets=frozenset({*kept, budget})))

    def __str__(self) -> str:
        return "\n".join(f"{name:<15} {value}" for name, value in summary(self.facts))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = html_facts(dict(summary(self.facts)))
        return f"{facts}<details><summary>derivation</summary>{self.explain().svg()}</details>"

    def __len__(self) -> NoReturn:
        raise ProgramError("how many records there are is private: ask table.noisy_count(ε)")

    def __iter__(self) -> NoReturn:
        raise ProgramError("records are private: ask for a statistic, such as table.noisy_average(ε, f)")

    def __bool__(self) -> bool:
        return True

    # ── row by row ───────────────────────────────────────────────────────────────────

    def where(self, f: object) -> "Table":
        """The records of which f is true."""
        return Table(algebra.where(self.facts, trace(f, "where", row(self.facts.schema)).condition()))

    def select(self, f: object, *more: str) -> "Table":
        """One record made of each: f gives a dict of expressions, or one (the column `value`).

        select("age", "edu") keeps these columns.
        """
        kept = named(f, more)
        return Table(algebra.select(self.facts, trace(kept, "select", row(self.facts.schema)).record()))

    def with_columns(self, f: object = None, /, **named: object) -> "Table":
        """The records with more columns, or other values in them: f gives a dict of expressions."""

        def more(x: object) -> dict[object, object]:
            given = called(f, x) if f is not None else {}
            if not isinstance(given, Mapping) or not (given or named):
                raise BadTransformation('with_columns needs named columns: lambda x: {"b": x.a + 1}')
            return {**given, **{name: called_or_constant(value, x) for name, value in named.items()}}

        added = dict(trace(more, "with_columns", row(self.facts.schema)).record())
        record: dict[str, Expression] = {name: Column(name) for name in self.facts.schema.names()}
        label = f"with_columns {', '.join(added)}"
        return Table(algebra.select(self.facts, tuple((record | added).items()), label))

    def rename(self, names: Mapping[str, str] | None = None, /, **named: str) -> "Table":
        """The same records under other column names: {"old": "new"} or old="new"."""
        new = {**(names or {}), **named}
        for old in new:
            self.facts.schema.type_of(old)
        record = tuple((new.get(name, name), Column(name)) for name in self.facts.schema.names())
        label = f"rename {', '.join(f'{a} to {b}' for a, b in new.items())}"
        return Table(algebra.select(self.facts, record, label))

    def select_many(self, f: object, *, at_most: int) -> "Table":
        """The first at_most records made of each: f gives a list of them, or an array: x.line.split(" ")."""
        traced = trace(f, "select_many", row(self.facts.schema))
        transformation: SelectMany | Explode
        if isinstance(traced.result, Cell):
            array = traced.cell()
            if array.type is not Type.STRINGS:
                raise BadTransformation(
                    'select_many needs a list of records or expressions, or an array: x.line.split(" ")'
                )
            transformation = Explode(array.tree, "value", at_most)
        elif isinstance(traced.result, list | tuple) and traced.result:
            transformation = SelectMany(traced.records(), at_most)
        else:
            raise BadTransformation("select_many needs a list of one or more records or expressions")
        label = f"select_many, at most {at_most}"
        return Table(algebra.rowwise(self.facts, transformation, label, {}, ()))

    # ── the table as a whole ─────────────────────────────────────────────────────────

    def distinct(self) -> "Table":
        """Each record once."""
        return Table(algebra.distinct(self.facts))

    def take(self, k: int) -> "Table":
        """The first k records in the canonical order."""
        return Table(derive(Take(k), self.facts, label=f"take {k}", columns=self.facts.columns))

    def limit_per_key(self, k: int, key: object = None) -> "Table":
        """The first k records of each key, in the canonical order; without a key, of equal records."""
        return Table(algebra.limit_per_key(self.facts, k, self._keys(key, "limit_per_key")))

    def unique_by(self, key: object = None) -> "Table":
        """The records whose key no other record has."""
        return Table(algebra.unique_by(self.facts, self._keys(key, "unique_by")))

    def _keys(self, key: object, what: str) -> tuple[Expression, ...]:
        if key is None:
            return tuple(Column(name) for name in self.facts.schema.names())
        return trees(key_cells(key, self.facts.schema, what)[0])

    # ── tables of the same columns ───────────────────────────────────────────────────

    def concat(self, *others: "Table") -> "Table":
        """The records of both, or of all."""
        return Table(algebra.concat(self.facts, *(_facts(other, "concat") for other in others)))

    def append(
        self, data: object, *, budget: object, name: str | None = None, dialect: Dialect | None = None
    ) -> "Table":
        """This table, grown by a block of data with a budget of its own: queries of both charge both."""
        from fpinq.client.protect import append

        return append(self, data, budget=budget, name=name, dialect=dialect)

    def union(self, other: "Table", bag: bool = False) -> "Table":
        """The records of either, each once; with bag=True as often as in the table that has more of it."""
        return Table(algebra.of_two(Union(bag), self.facts, _facts(other, "union")))

    def intersect(self, other: "Table", bag: bool = False) -> "Table":
        """The records of both, each once; with bag=True as often as in the table that has fewer of it."""
        return Table(algebra.of_two(Intersect(bag), self.facts, _facts(other, "intersect")))

    def except_(self, other: "Table", bag: bool = False) -> "Table":
        """The records that other has not, each once; with bag=True, less as often as other has it."""
        return Table(algebra.of_two(Except(bag), self.facts, _facts(other, "except")))

    # ── joins ────────────────────────────────────────────────────────────────────────

    def join(
        self,
        other: "Table",
        on: object,
        left: Truncation | None = None,
        right: Truncation | None = None,
        select: object = None,
        outer: bool = False,
    ) -> "Table":
        """Pairs of records with equal keys, after each side is truncated per key. Null keys join nothing.

        outer=True keeps the records of this table that have no pair, beside nulls.

        on is "id", ["a", "b"], a function of either side's row, or a pair of
        functions. left and right are fp.first(n), fp.unique() or fp.all_().
        Without them a key must be unique on each side, except that beside a
        public table, and on the unit of the same persons, all records are kept.
        """
        return Table(joins.join(self.facts, _facts(other, "join"), on, left, right, select, outer))

    def semi_join(self, other: "Table", on: object) -> "Table":
        """The records whose key occurs in other, which must be public."""
        return Table(joins.semi_join(self.facts, _facts(other, "semi_join"), on, keep=True))

    def anti_join(self, other: "Table", on: object) -> "Table":
        """The records whose key does not occur in other, which must be public."""
        return Table(joins.semi_join(self.facts, _facts(other, "semi_join"), on, keep=False))

    # ── groups ───────────────────────────────────────────────────────────────────────

    def group_by(self, f: object) -> Groups:
        """Groups of records with equal keys: f gives an expression or a dict of them.

        Say what to know of each group with .select(lambda g: {…}) over g.key,
        g.count(), g.sum(f), g.min(f), g.max(f), g.average(f).
        """
        cells, single = key_cells(f, self.facts.schema, "group_by")
        sides = (Side(self.facts.subject, "", frozenset(cells)),)
        grouped = _grouping(lambda aggregates: groups.group_by(self.facts, cells, aggregates[0]))
        return Groups(Keys.of(cells, single), sides, grouped)

    @overload
    def group_join(self, other: "Table", on: object, select: None = None) -> Groups: ...
    @overload
    def group_join(self, other: "Table", on: object, select: object) -> "Table": ...
    def group_join(self, other: "Table", on: object, select: object = None) -> "Groups | Table":
        """Groups of the records of both tables by key: g.key, g.left.count(), g.right.sum(f) and so on.

        With select=lambda l, r: {…} (or lambda key, l, r) a table, without it groups.
        """
        right = _facts(other, "group_join")
        lefts, rights, single = join_keys(on, self.facts.schema, right.schema)
        taken = frozenset(lefts)
        sides = Side(self.facts.subject, "left.", taken), Side(right.subject, "right.", taken)
        grouped = _grouping(lambda each: groups.group_join(self.facts, right, lefts, rights, each))
        joined = Groups(Keys.of(lefts, single), sides, grouped)
        return joined if select is None else joined.select(select)

    # ── partition ────────────────────────────────────────────────────────────────────

    def partition(self, f: object, keys: Iterable[object] | None = None) -> Parts:
        """The parts of the table with each of the keys: a mapping key ↦ table, in the order given.

        Asking all parts costs what asking the most asked of them does.
        """
        keyed, part = parts.partition(self.facts, f, keys)
        return Parts(keyed, lambda number: Table(part(number)))

    # ── asking ───────────────────────────────────────────────────────────────────────

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
        exactly = _exactly(epsilon)
        if by is not None:
            return ask_parts(self.facts, exactly, query, by, keys)
        if not isinstance(query, Inquiry):
            raise BadQuery(
                "query needs an fp query, such as fp.count(); several are fp.several(n=fp.count(), …), "
                "and a dict of them is one for each part: say by what, too (by=f)"
            )
        if keys is not None:
            raise BadQuery("keys say which parts there are: say by what, too (by=lambda x: x.city)")
        return ask(self.facts, exactly, query)

    @overload
    def expected_error(  # type: ignore[overload-overlap]
        self, query: Several, epsilon: object, *, size: int | None = None
    ) -> ExpectedErrors: ...
    @overload
    def expected_error(
        self, query: AnyInquiry, epsilon: object, *, size: int | None = None
    ) -> ExpectedError: ...
    def expected_error(
        self, query: AnyInquiry, epsilon: object, *, size: int | None = None
    ) -> ExpectedError | ExpectedErrors:
        """How far the answer of a query at ε will be off, before asking it; of several, each by its name.

        For averages and the like that depends on the number of records, which is
        private: give an assumed size, or read the dependence off what is printed.
        """
        return asking.expect(self.facts, _exactly(epsilon), query, size)

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

    def sql(self, text: str, /, epsilon: object = None, **tables: Any) -> Answers:
        """The answers of a SELECT about this table, whatever FROM calls it: by the names of its columns.

        EXPLAIN SELECT … is free. Other tables are given by name. Needs the sql extra.
        """
        from fpinq.client.sql import asked  # only who writes SQL needs it

        return asked(text, epsilon, tables, self)

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
            return top_by_score(self.facts, _only_epsilon(epsilon), k, f, candidates, bounds)
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
        """How many records are in each bin between bounds, or have each key of a column, or of several."""
        epsilon, subject = _exactly(epsilon), self.facts.subject
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

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self.facts.schema.names():
            raise AttributeError(_inside_a_function(name))
        public = [known for known in dir(type(self)) if not known.startswith("_")]
        raise AttributeError(f"a table has no {name!r}{instead(name, public)}")

    def __getitem__(self, name: object) -> NoReturn:
        raise BadTransformation(_inside_a_function(str(name)))


def _inside_a_function(column: str) -> str:
    return (
        f"the column {column!r} is used inside a function, on a row: "
        f"table.where(lambda x: x.{column} …), table.select(lambda x: x.{column})"
    )


def _exactly(epsilon: object) -> Asked:
    """An exact ε or ρ; BadEpsilon says that it comes first, if this was meant to be something else."""
    try:
        return asked_at(plain_amount(epsilon))
    except BadEpsilon as error:
        raise BadEpsilon(f"{misplaced(epsilon)}{error}") from None


def _only_epsilon(epsilon: object) -> Epsilon:
    exactly = _exactly(epsilon)
    if isinstance(exactly, Rho):
        raise BadQuery("the top by score cannot be asked at ρ: ask it at an ε")
    return exactly


def _facts(other: object, what: str) -> Facts:
    if isinstance(other, Table):
        return other.facts
    raise BadTransformation(
        f"{what} needs a table, not {type(other).__name__}; make one of public rows with fp.public(rows)"
    )


def _grouping(grouped: Callable[[Sequence[Aggregates]], Facts]) -> groups.Grouping:
    """A table of groups: those that satisfy a condition, and what to know of each."""

    def table(aggregates: Sequence[Aggregates], predicate: Expression | None, record: Fields) -> Table:
        every = grouped(aggregates)
        some = every if predicate is None else algebra.where(every, predicate)
        return Table(algebra.select(some, record))

    return table
