"""Workloads: many queries of the same records asked at once, each at an equal share; marginals that agree.

At ρ the noise of each of k queries is √k times that of one, at ε k times. Which of
the two is better for a workload, `compare` says before anything is paid.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from fpinq.client.answers import Answer, Answers, Charged, Made
from fpinq.client.concentrated import gaussian_noise, prepare_at_rho, prepares_at_rho
from fpinq.client.facts import Facts
from fpinq.client.histograms import total_of
from fpinq.client.planning import Anything, ExpectedError, checked_size, expected_errors
from fpinq.client.queries import Count, Inquiry, Prepared, integers, laplace_noise
from fpinq.client.rows import Cell, constant, plain
from fpinq.client.several import Several, apart_of, of_itself
from fpinq.client.shorthand import if_else
from fpinq.client.shown import visibly
from fpinq.client.subjects import Subject
from fpinq.client.uncertainty import Expected, Uncertainty
from fpinq.model import queries as primitives
from fpinq.model.clamps import Clamp
from fpinq.model.conversion import rho_of
from fpinq.model.epsilon import Epsilon
from fpinq.model.epsilon import delta as exact_delta
from fpinq.model.epsilon import epsilon as exact
from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho, share_of
from fpinq.runtime import Released

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fpinq.client.thresholds import KeysComparison

    Floats = NDArray[np.float64]

# Cells of one marginal.
MOST_CELLS = 100_000


@dataclass(frozen=True)
class Marginal(Inquiry[Answers]):
    """How many records have each combination of values of some columns, whose values are listed or known."""

    of: tuple[str, ...]
    keys: tuple[tuple[object, ...], ...] | None = None

    def words(self) -> str:
        return f"marginal of {', '.join(self.of)}"

    def column(self) -> str:
        return "n"

    def traced(self, subject: Subject) -> "Marginal":
        """The same, with the values of each column."""
        return Marginal(self.of, self.values(subject))

    def values(self, subject: Subject) -> tuple[tuple[object, ...], ...]:
        """The values that are counted, column by column: given, or known of the column."""
        if self.keys is not None:
            return self.keys
        found = [subject.known(subject.cell(name, "marginal")).keys for name in self.of]
        if unknown := [name for name, keys in zip(self.of, found, strict=True) if keys is None]:
            raise BadQuery(
                f"which values has {unknown[0]!r}? Say keys=… of each column, or columns= in protect"
            )
        return tuple(tuple(plain(key) for key in keys or ()) for keys in found)

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answers]:
        return self.prepare_at(subject, epsilon)

    def prepare_at(self, subject: Subject, at: Amount) -> Prepared[Answers]:
        """One record is in one cell: noise as of one count."""
        values = self.values(subject)
        cells = math.prod(map(len, values))
        if not 1 <= cells <= MOST_CELLS:
            raise BadQuery(f"a marginal has 1 to {MOST_CELLS} cells, and this one would have {cells}")
        index = subject.cell(lambda x: _index([x[name] for name in self.of], values), "marginal")
        primitive = primitives.Frequencies(Clamp(index.tree, 0, cells - 1))
        noise = noise_at(primitive, at)
        labels = [key if len(key) > 1 else key[0] for key in product(*values)]

        def read(released: Released, charged: Charged) -> Answers:
            counts = integers(released)
            made = Made(labels, lambda i: Answer(counts[i], at, charged, noise))
            return Answers(made, at, charged, self.of)

        return Prepared(primitive, read, lambda size: Expected(noise, note="for each cell"))


def noise_at(primitive: primitives.Frequencies, at: Amount) -> Uncertainty:
    """The noise of each integer."""
    return gaussian_noise(primitive, at) if isinstance(at, Rho) else laplace_noise(primitive, at)


def _index(cells: Sequence[Cell], values: Sequence[Sequence[object]]) -> object:
    """The number of a record's cell; null if it is in none."""
    number, inside = constant(0), constant(True)
    for cell, listed in zip(cells, values, strict=True):
        if len(set(listed)) < len(listed) or not listed or None in listed:
            raise BadQuery("the values of a marginal are different from one another, and none is missing")
        position = total_of([(cell == value).cast("int64") * i for i, value in enumerate(listed)])
        number, inside = number * len(listed) + position, inside & cell.is_in(listed)
    return if_else(inside, number, None)


def marginal(*columns: str, keys: Sequence[Sequence[object]] | None = None) -> Marginal:
    """How many records have each combination of values: fp.marginal("sex", "age"), or keys=[[…], […]]."""
    if not columns or any(type(name) is not str for name in columns) or len(set(columns)) < len(columns):
        raise BadQuery("a marginal is of one or more columns, by name")
    if keys is not None and len(keys) != len(columns):
        raise BadQuery("a marginal has keys for each of its columns, or for none")
    return Marginal(
        columns, None if keys is None else tuple(tuple(plain(key) for key in each) for each in keys)
    )


def marginals(columns: Mapping[str, Sequence[object]] | Sequence[str], ways: int = 2) -> list[Marginal]:
    """All marginals of so many of the columns: of names, or of a dict column ↦ values."""
    names = list(columns)
    if type(ways) is not int or not 1 <= ways <= len(names):
        raise BadQuery("ways is how many columns a marginal has: 1 or more, and no more than there are")
    of = columns if isinstance(columns, Mapping) else None
    return [
        marginal(*some, keys=None if of is None else [of[name] for name in some])
        for some in combinations(names, ways)
    ]


# ── many at once ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Workload(Inquiry["WorkloadAnswers"]):
    """Many queries of the same records, each at an equal share of ε or ρ: one action, one charge."""

    queries: tuple[Inquiry[Any], ...]

    of_columns = True

    def words(self) -> str:
        return f"workload of {len(self.queries)}"

    def traced(self, subject: Subject) -> "Workload":
        """The same, with every function called, once."""
        return Workload(tuple(query.traced(subject) for query in self.queries))

    def derive(self, table: Facts) -> Facts:
        return of_itself(table, [(query.words(), query) for query in self.queries])

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared["WorkloadAnswers"]:
        return self.prepare_at(subject, epsilon)

    def each(self, subject: Subject, at: Amount) -> list[Prepared[Any]]:
        """Its queries, at their shares."""
        share = share_of(at, Fraction(1, len(self.queries)))
        return [_prepared(query, subject, share) for query in self.queries]

    def prepare_at(self, subject: Subject, at: Amount) -> Prepared["WorkloadAnswers"]:
        """Each at its share."""
        each = self.each(subject, at)
        primitive = primitives.Several(
            tuple(one.primitive for one in each),  # type: ignore[misc]  # none of them is several
            (1,) * len(each),
        )

        def read(released: Released, charged: Charged) -> WorkloadAnswers:
            apart = apart_of(primitive, integers(released))
            answers = [one.read(part, charged) for one, part in zip(each, apart, strict=True)]
            named = [one.called(q.column()) for one, q in zip(answers, self.queries, strict=True)]
            return WorkloadAnswers(self.queries, named, at, charged)

        def expect(size: int | None) -> Expected:
            found = [one.expect(size) for one in each]
            errors = [one.uncertainty.standard_error() for one in found if one.uncertainty is not None]
            if len(errors) < len(found) or None in errors:
                return Expected(None, note="different for each of its queries: expect them at their shares")
            worst = max(found, key=lambda one: one.uncertainty.standard_error())  # type: ignore[union-attr,return-value,arg-type]
            return Expected(worst.uncertainty, note=f"at most, for each number of {len(each)} queries")

        return Prepared(primitive, read, expect)


def _prepared(query: Inquiry[Any], subject: Subject, at: Amount) -> Prepared[Any]:
    if isinstance(query, Marginal | Workload):
        return query.prepare_at(subject, at)
    return prepare_at_rho(query, subject, at) if isinstance(at, Rho) else query.prepare(subject, at)


@visibly
class WorkloadAnswers(Answers):
    """The answers of a workload, by their numbers from 0 on, in the order of its queries."""

    is_level = False

    def __init__(
        self, queries: Sequence[Inquiry[Any]], answers: Sequence[Any], at: Amount, charged: Charged
    ) -> None:
        super().__init__(dict(enumerate(answers)), at, charged, ("query",))
        self._queries = queries

    def __repr__(self) -> str:
        return "\n".join(f"{q.words()}: {a!r}" for q, a in zip(self._queries, self.values(), strict=True))

    def consistent(self) -> dict[tuple[str, ...], dict[Any, float]]:
        """The marginals among them, changed as little as makes all of them agree on what they share.

        Post-processing: it costs nothing. Each is a dict of cells, by its columns. What two
        of them say of the same columns is averaged by variance, from the total up to
        the columns that they have in common, and spread evenly over their cells.
        """
        found = {
            query.of: (query, answers)
            for query, answers in zip(self._queries, self.values(), strict=True)
            if isinstance(query, Marginal)
        }
        if not found:
            raise BadQuery("only marginals can agree: there is none in this workload")
        tables = {of: _array(query, answers) for of, (query, answers) in found.items()}
        for shared in _shared(list(tables)):
            _agree(tables, shared)
        return {
            of: dict(zip(found[of][1], table.ravel().tolist(), strict=True)) for of, table in tables.items()
        }


def _array(query: Marginal, answers: Answers) -> "Floats":
    import numpy as np

    assert query.keys is not None
    values = [float(answer.value) for answer in answers.values()]
    return np.array(values).reshape([len(keys) for keys in query.keys])


def _shared(marginals: Sequence[tuple[str, ...]]) -> Iterator[frozenset[str]]:
    """The sets of columns that two or more marginals have, small ones first."""
    sets = {
        frozenset(some) for of in marginals for size in range(len(of) + 1) for some in combinations(of, size)
    }
    yield from sorted(
        (some for some in sets if sum(some <= set(of) for of in marginals) > 1),
        key=lambda some: (len(some), sorted(some)),
    )


def _agree(tables: dict[tuple[str, ...], "Floats"], shared: frozenset[str]) -> None:
    """Make the marginals that have some columns say the same of them."""
    import numpy as np

    of_each: list[tuple[tuple[str, ...], tuple[int, ...], Floats, float]] = []
    for of, table in tables.items():
        if shared <= set(of):
            others = tuple(i for i, name in enumerate(of) if name not in shared)
            each = math.prod(table.shape[i] for i in others)  # cells are added up: so many times the variance
            own = [name for name in of if name in shared]
            summed = table.sum(axis=others).transpose([own.index(name) for name in sorted(shared)])
            of_each.append((of, others, summed, 1 / each))
    weights = sum(weight for *_, weight in of_each)
    wanted = sum(weight * summed for _, _, summed, weight in of_each) / weights
    for of, others, summed, weight in of_each:
        in_order = [name for name in of if name in shared]
        change = np.transpose((wanted - summed) * weight, [sorted(shared).index(name) for name in in_order])
        tables[of] = tables[of] + np.expand_dims(change, others)


def workload(queries: Iterable[Inquiry[Any]]) -> Workload:
    """Many queries at once: fp.workload(fp.marginals(["sex", "race", "edu"])), or any list of fp queries."""
    asked = tuple(queries) if isinstance(queries, Iterable) and not isinstance(queries, str) else ()
    if not asked or not all(isinstance(query, Inquiry) for query in asked):
        raise BadQuery("a workload is a list of fp queries, such as fp.marginals([…], ways=2)")
    if len(asked) > primitives.MAX_SEVERAL:
        raise BadQuery(
            f"at most {primitives.MAX_SEVERAL} queries are asked at once, and these are {len(asked)}"
        )
    if any(isinstance(query, Workload) or hasattr(query, "queries") for query in asked):
        raise BadQuery("a workload is of single queries: put them all in one list")
    return Workload(asked)


# ── which notion is better ───────────────────────────────────────────────────────────


@visibly
@dataclass(frozen=True)
class Comparison:
    """The error of a query under a budget of ε, and under one of (ε, δ), asked so many times."""

    pure: ExpectedError
    concentrated: ExpectedError
    times: int

    @property
    def ratio(self) -> float:
        """How many times larger the error is under ε than under (ε, δ): of choices, what 95 % are within."""
        pure, other = self.pure.standard_error, self.concentrated.standard_error
        if pure is None or other is None:
            pure, other = (_within(each) for each in (self.pure, self.concentrated))
        if pure is None or other is None:
            raise BadQuery(f"these errors cannot be compared: {self.pure.note or self.concentrated.note}")
        return pure / other if other else 1.0

    @property
    def better(self) -> str:
        """“ε” or “ρ”. A budget of ε is the stronger promise: where neither is better, that."""
        return "ρ" if self.ratio > 1 else "ε"

    def __repr__(self) -> str:
        both = f"{self.pure!r} or {self.concentrated!r}, {self.times:,} times"
        return f"{both}: {self.better} is better, {self.ratio:.2f} to 1"


def _within(error: ExpectedError) -> float | None:
    half = error.half_width()
    return None if half is None else float(half)


@visibly
class Comparisons(Mapping[Any, Comparison]):
    """The same of each of several queries, by name; of a workload, by their numbers."""

    def __init__(self, each: Mapping[Any, Comparison]) -> None:
        self._each = dict(each)

    def __getitem__(self, name: Any) -> Comparison:
        found: Comparison = self._each[name]
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._each)

    def __len__(self) -> int:
        return len(self._each)

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {each!r}" for name, each in self.items())


def compare(
    query: Inquiry[Any],
    *,
    epsilon: object = 1,
    delta: object = "1e-9",
    times: int = 1,
    table: Any = None,
    size: int | None = None,
    by: object = None,
    keys: object = None,
) -> "Comparison | Comparisons | KeysComparison":
    """Whether a budget of ε or of (ε, δ) is better for a query that is asked so many times. It asks nothing.

    Of fp.several it is said by name, and of a workload whose errors cannot be put into one by number.
    They are not the same promise: under (ε, δ) anything may be lost with probability δ. Of a count by keys
    that are found (table=…, by=…, keys=fp.discover(…)) it is said from how many records on a key is shown.
    """
    if not isinstance(query, Inquiry) or type(times) is not int or times < 1:
        raise BadQuery("compare needs an fp query, and how many times it is asked, 1 or more")
    whole, rho = exact(epsilon), rho_of(exact(epsilon), exact_delta(delta))
    if not rho:
        raise BadEpsilon("so small an ε and δ leave no ρ that could be told from 0")
    if table is None and query.of_columns:
        raise BadQuery("this depends on a table's columns: say table=…, which is asked nothing")
    share = Fraction(1, times)
    ats = Epsilon(whole * share), Rho(rho * share)
    if by is not None or keys is not None:
        from fpinq.client.thresholds import compare_keys

        if table is None or not isinstance(query, Count):
            raise BadQuery(
                "keys are found by counting: compare(fp.count(), table=…, by=…, keys=fp.discover(…))"
            )
        return compare_keys(table.facts, by, keys, ats, times)
    traced = query if table is None else query.traced(table.facts.subject)
    subject = (
        Anything.bounded_by(getattr(query, "bounds", None))
        if table is None
        else traced.derive(table.facts).subject
    )
    pure, concentrated = (_expected(traced, subject, checked_size(size), at) for at in ats)
    if isinstance(pure, Mapping) and isinstance(concentrated, Mapping):
        return Comparisons({name: Comparison(pure[name], concentrated[name], times) for name in pure})
    assert isinstance(pure, ExpectedError)
    assert isinstance(concentrated, ExpectedError)
    return Comparison(pure, concentrated, times)


def _expected(
    query: Inquiry[Any], subject: Subject, size: int | None, at: Amount
) -> ExpectedError | Mapping[Any, ExpectedError]:
    """The error of a query; of several, and of a workload that has not one, of each."""
    if isinstance(query, Several):
        return expected_errors(query, subject, at, size)
    found = query.expect(subject, at, size)
    if isinstance(query, Workload) and found.uncertainty is None:
        share = share_of(at, Fraction(1, len(query.queries)))
        each = enumerate(query.each(subject, at))
        return {number: ExpectedError(share, one.expect(size)) for number, one in each}
    return ExpectedError(at, found)


def _at_rho(query: Marginal | Workload, subject: Subject, at: Rho) -> Prepared[Any]:
    return query.prepare_at(subject, at)


prepares_at_rho[Marginal] = prepares_at_rho[Workload] = _at_rho
