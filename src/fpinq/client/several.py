"""Several queries at once: what each is asked at, what comes from one measurement, and how that is read.

ε is shared by weight. Where names need the same sums, their shares are put
together and they come from one measurement:

- counts, sums, averages and variances of one expression within the same bounds,
  from a summary of it;
- several averages beside a count, each from its offset and that one count.

It is one action of the kernel: all of it is charged, or nothing is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from math import floor, gcd, inf, lcm
from typing import Any

from fpinq.client.answers import Answer, Charged
from fpinq.client.bounds import clamp
from fpinq.client.facts import Facts
from fpinq.client.named import Named, Split
from fpinq.client.queries import (
    Average,
    Count,
    Inquiry,
    Prepared,
    StandardDeviation,
    Sum,
    Variance,
    finite,
    integers,
    on_grid,
)
from fpinq.client.rows import plain
from fpinq.client.subjects import Subject
from fpinq.client.uncertainty import Expected, LaplaceCombination, Number, Uncertainty
from fpinq.model import queries as primitives
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import Epsilon, rational
from fpinq.model.errors import BadQuery, suggest
from fpinq.model.frozen import dataclass
from fpinq.model.kinds import Chosen
from fpinq.model.notions import Amount, Rho
from fpinq.model.queries import SimpleQuery
from fpinq.runtime import Released

# Of a name: those of a measurement together are what the kernel allows.
MAX_WEIGHT = primitives.MAX_SHARE // primitives.MAX_SEVERAL

# What is read off what was released, measurement by measurement; and how far it will be off.
Read = Callable[[Sequence[Released], Charged], Any]
Expect = Callable[[int | None], Expected]


@dataclass(frozen=True)
class Several(Inquiry[Named]):
    """Several queries of the same records, by name: they share ε, equally or by weight."""

    queries: Mapping[str, Inquiry[Any]]
    weights: Mapping[str, Fraction] = field(default_factory=dict)

    of_columns = True

    def words(self) -> str:
        """What is asked, by its names."""
        return ", ".join(self.queries)

    def column(self) -> str:
        """What is asked, one after the other."""
        return ", ".join(query.column() for query in self.queries.values())

    def traced(self, subject: Subject) -> "Several":
        """The same, with every function called, once."""
        return Several({name: query.traced(subject) for name, query in self.queries.items()}, self.weights)

    def derive(self, table: Facts) -> Facts:
        return of_itself(table, self.queries.items())

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Named]:
        measured = self.measured(subject, epsilon)
        primitive = primitives.Several(
            tuple(each.primitive for each in measured), whole_weights([each.weight for each in measured])
        )
        split = self._split(epsilon, measured)
        reads = {name: read for each in measured for name, read in each.reads.items()}

        def read(released: Released, charged: Charged) -> Named:
            apart = apart_of(primitive, integers(released))
            answers = {name: reads[name](apart, charged) for name in self.queries}
            return Named(answers, epsilon, charged, split)

        return Prepared(primitive, read, lambda size: Expected(None, note=f"by name, {split}"))

    def measured(self, subject: Subject, epsilon: Epsilon) -> "list[Measured]":
        """The measurements, each with the names that it is for, at its share of ε."""
        groups = _groups(subject, self.queries)
        weights = [sum((self.weights[name] for name in group.names), Fraction(0)) for group in groups]
        shares = [Epsilon(epsilon * weight / sum(weights)) for weight in weights]
        counted = next((i for i, group in enumerate(groups) if isinstance(group, Counts)), 0)
        return [
            Measured(group.names, weight, share, *group.asked(subject, i, share, counted, shares[counted]))
            for i, (group, weight, share) in enumerate(zip(groups, weights, shares, strict=True))
        ]

    def split(self, subject: Subject, at: Amount) -> Split:
        """Which ε or ρ each measurement is asked at, and for which names."""
        if isinstance(at, Rho):
            each = self.expected(subject, at).items()
            return Split(at, tuple(((name,), share) for name, (share, _) in each))
        return self._split(at, self.measured(subject, at))

    def _split(self, epsilon: Epsilon, measured: "Sequence[Measured]") -> Split:
        first = list(self.queries).index
        parts = sorted(measured, key=lambda each: min(map(first, each.names)))
        return Split(epsilon, tuple((each.names, each.epsilon) for each in parts))

    def expected(self, subject: Subject, at: Amount) -> Mapping[str, tuple[Amount, Expect]]:
        """At which ε or ρ each name is asked, and how far its answer will be off."""
        if isinstance(at, Rho):
            from fpinq.client.concentrated import each_at_rho  # which reads these queries at ρ

            each = each_at_rho(self, subject, at).items()
            return {name: (share, prepared.expect) for name, (share, prepared) in each}
        measured = self.measured(subject, at)
        found = {name: (each.epsilon, expect) for each in measured for name, expect in each.expects.items()}
        return {name: found[name] for name in self.queries}


def several(
    queries: Mapping[str, Inquiry[Any]] | None = None,
    /,
    *,
    weights: Mapping[str, object] | None = None,
    **named: Inquiry[Any],
) -> Several:
    """Several queries at once, by name: fp.several(n=fp.count(), age=fp.average("age"), weights={"n": 2})."""
    if not isinstance(queries or {}, Mapping) or not (queries or named):
        raise BadQuery('several needs queries by name: fp.several(n=fp.count(), age=fp.average("age"))')
    asked = {**(queries or {}), **named}
    for name, query in asked.items():
        if not isinstance(name, str) or not name or not isinstance(query, Inquiry):
            raise BadQuery(f"{name!r} needs an fp query, such as fp.count() or fp.average(f, bounds=…)")
        if isinstance(query, Several):
            raise BadQuery(f"{name!r} is several queries itself: put all of them side by side")
    if len(asked) > primitives.MAX_SEVERAL:
        raise BadQuery(f"at most {primitives.MAX_SEVERAL} queries at once, not {len(asked)}")
    return Several(asked, _weights(asked, weights))


def _weights(queries: Mapping[str, Any], given: Mapping[str, object] | None) -> dict[str, Fraction]:
    """How much of ε each gets, in proportion: 1 where nothing is said."""
    if given is not None and not isinstance(given, Mapping):
        raise BadQuery('weights are a dict of numbers by name, such as weights={"age": 3}')
    found = dict.fromkeys(queries, Fraction(1))
    for name, number in (given or {}).items():
        if name not in found:
            raise BadQuery(f"no query is named {name!r}{suggest(str(name), list(found))}")
        weight = rational(plain(number))
        if weight is None or weight <= 0:
            raise BadQuery(f"the weight of {name!r} must be a positive number")
        found[name] = weight
    if max(whole_weights(list(found.values()))) > primitives.MAX_SHARE:
        raise BadQuery(
            f"weights too far apart: one may be {primitives.MAX_SHARE:,} times another at the most"
        )
    return found


def whole_weights(weights: Sequence[Fraction]) -> tuple[int, ...]:
    """The same proportions in whole numbers, as small as they can be."""
    common = lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * common) for weight in weights]
    return tuple(number // gcd(*whole) for number in whole)


def of_itself(table: Facts, queries: Iterable[tuple[str, Inquiry[Any]]]) -> Facts:
    """The table, if all of these are asked of itself; BadQuery names one that is not."""
    for name, query in queries:
        if query.derive(table) is not table:
            raise BadQuery(
                f"{name}: this is asked of a table that is made of this one first, so ask it by itself"
            )
    return table


def apart_of(several: primitives.Several, released: tuple[int, ...]) -> list[Released]:
    """What was released, query by query."""
    found, start = list[Released](), 0
    for query in several.of:
        some = released[start : start + query.integers]
        found.append(some[0] if isinstance(query, Chosen) and query.alone else some)
        start += query.integers
    return found


# ── what comes from one measurement ──────────────────────────────────────────────────


@dataclass(frozen=True)
class Measured:
    """A measurement at an ε, the names that it is for, and how each is read."""

    names: tuple[str, ...]
    weight: Fraction
    epsilon: Epsilon
    primitive: SimpleQuery
    reads: Mapping[str, Read]
    expects: Mapping[str, Expect]


Asked = tuple[SimpleQuery, Mapping[str, Read], Mapping[str, Expect]]


@dataclass(frozen=True)
class Alone:
    """A query that shares nothing."""

    names: tuple[str, ...]
    query: Inquiry[Any]

    def asked(self, subject: Subject, i: int, epsilon: Epsilon, counted: int, of_count: Epsilon) -> Asked:
        prepared = self.query.prepare(subject, epsilon)
        assert not isinstance(prepared.primitive, primitives.Several)

        def read(released: Sequence[Released], charged: Charged) -> Any:
            return prepared.read(released[i], charged)

        return prepared.primitive, dict.fromkeys(self.names, read), dict.fromkeys(self.names, prepared.expect)


@dataclass(frozen=True)
class Counts(Alone):
    """The count that averages are divided by, too."""


@dataclass(frozen=True)
class Family:
    """Queries of one expression within the same bounds, by name."""

    names: tuple[str, ...]
    queries: tuple[Inquiry[Any], ...]
    clamp: Clamp

    @property
    def degree(self) -> int:
        """2 if a variance is among them."""
        return 2 if any(isinstance(query, Variance | StandardDeviation) for query in self.queries) else 1

    @property
    def averaged(self) -> bool:
        """Whether an average is among them."""
        return any(isinstance(query, Average) for query in self.queries)

    def asked(self, subject: Subject, i: int, epsilon: Epsilon, counted: int, of_count: Epsilon) -> Asked:
        missing = any(isinstance(query, Count) for query in self.queries)
        kind = primitives.Summary if missing else primitives.Moments
        primitive = kind(self.clamp, self.degree)
        looks = {
            name: _look(query, subject, Sums(self.clamp, self.degree, epsilon, missing))
            for name, query in zip(self.names, self.queries, strict=True)
        }
        reads = {name: _reading(look, i, epsilon) for name, (look, _) in looks.items()}
        return primitive, reads, {name: expect for name, (_, expect) in looks.items()}


@dataclass(frozen=True)
class Beside(Family):
    """Such queries beside a count of all records, which averages are divided by."""

    def asked(self, subject: Subject, i: int, epsilon: Epsilon, counted: int, of_count: Epsilon) -> Asked:
        offset = Offset(self.clamp, epsilon, of_count)
        reads: dict[str, Read] = {}
        expects: dict[str, Expect] = {}
        for name, query in zip(self.names, self.queries, strict=True):
            look = offset.average if isinstance(query, Average) else offset.sum
            reads[name] = _beside(look, i, counted, epsilon)
            expects[name] = offset.expect_average if isinstance(query, Average) else offset.expect_sum
        return primitives.Offset(self.clamp), reads, expects


Group = Alone | Family


def _groups(subject: Subject, queries: Mapping[str, Inquiry[Any]]) -> list[Group]:
    """Which names come from one measurement."""
    families = _families(subject, queries)
    counts = [name for name, query in queries.items() if type(query) is Count]
    if counts and len(families) == 1 and families[0].clamp.width:
        (family,) = families
        names = (*counts, *family.names)
        families = [Family(names, tuple(queries[name] for name in names), family.clamp)]
        counts = []
    groups: list[Group] = [Counts(tuple(counts), Count())] if counts else []
    for family in families:
        groups += _asked_as(family, beside_a_count=bool(counts))
    shared = {name for group in groups for name in group.names}
    return groups + [Alone((name,), query) for name, query in queries.items() if name not in shared]


def _asked_as(family: Family, *, beside_a_count: bool) -> list[Group]:
    if all(isinstance(query, Sum) for query in family.queries):
        return [Alone(family.names, family.queries[0])]
    if beside_a_count and family.averaged and family.degree == 1 and family.clamp.width:
        return [Beside(family.names, family.queries, family.clamp)]
    return [family]


def _families(subject: Subject, queries: Mapping[str, Inquiry[Any]]) -> list[Family]:
    """The queries of sums of one expression, by the expression and its bounds."""
    found: dict[Clamp, list[str]] = {}
    for name, query in queries.items():
        if isinstance(query, Sum | Average | Variance | StandardDeviation):
            found.setdefault(_clamp(subject, query), []).append(name)
    return [Family(tuple(names), tuple(queries[name] for name in names), of) for of, names in found.items()]


def _clamp(subject: Subject, query: Sum | Average | Variance | StandardDeviation) -> Clamp:
    cell = subject.cell(query.of, type(query).__name__.lower())
    squared = isinstance(query, Variance | StandardDeviation)
    return clamp(cell, subject.bounds(cell, query.bounds), squared=squared)


# ── what the integers say ────────────────────────────────────────────────────────────

# A value, and how far it may be off.
Found = tuple[int | float, Uncertainty]


@dataclass(frozen=True)
class WholeNumber:
    """A combination of draws, rounded to a whole number."""

    combination: LaplaceCombination
    approximate = True

    def standard_error(self) -> float:
        """As before it is rounded, which is far below the noise."""
        return self.combination.standard_error()

    def interval(self, value: Number, confidence: Fraction) -> tuple[Number, Number]:
        """Whole numbers, too: rounding moved it by a half at the most."""
        t = floor(self.combination.interval(0, confidence)[1] + 0.5)
        return value - t, value + t


def _rounded(combination: LaplaceCombination, step: Fraction) -> Uncertainty:
    return WholeNumber(combination) if step == 1 else combination


@dataclass(frozen=True)
class Sums:
    """Bernstein sums at an ε, those of what is missing among them or not: what they say of the records."""

    clamp: Clamp
    degree: int
    epsilon: Epsilon
    missing: bool

    @property
    def unit(self) -> int:
        """What one record adds to all of them."""
        unit: int = self.clamp.width**self.degree
        return unit

    @property
    def noise(self) -> float:
        """The scale of the noise in each, in records."""
        return float(1 / self.epsilon)

    def count(self, sums: Sequence[int]) -> Found:
        """How many records, with a value or without."""
        return round(Fraction(sum(sums), self.unit)), self.count_noise

    @property
    def count_noise(self) -> Uncertainty:
        """Each of the sums is off by as much."""
        return WholeNumber(LaplaceCombination((self.noise,) * (self.degree + 1 + self.missing), -inf, inf))

    def sum(self, sums: Sequence[int]) -> Found:
        """The sum of the values."""
        total = sum((x * point for x, point in zip(sums, self._points, strict=False)), Fraction(0))
        return on_grid(round(total / self.unit), self.clamp), self.sum_noise

    @property
    def sum_noise(self) -> Uncertainty:
        """Each of the sums counts as much as its grid point."""
        step = self.clamp.step
        weights = tuple(float(point * step) * self.noise for point in self._points)
        return _rounded(LaplaceCombination(weights, -inf, inf), step)

    def average(self, sums: Sequence[int]) -> Found:
        """The average of the values; the middle of the bounds where there seem to be none."""
        present = sums[: self.degree + 1]
        total = sum(present)
        share = Fraction(1, 2)
        if total > 0:
            share = Fraction(sum(j * x for j, x in enumerate(present)), self.degree * total)
        share = min(max(share, Fraction(0)), Fraction(1))
        value = float((self.clamp.lower + self.clamp.width * share) * self.clamp.step)
        return value, self._within(self._slopes(float(share), max(total / self.unit, 1.0)))

    def _slopes(self, share: float, records: float) -> tuple[float, ...]:
        """What the noise in each of the sums amounts to in an average."""
        width = finite(self.clamp.width * self.clamp.step, "an average")
        each = (width * (j / self.degree - share) * self.noise for j in range(self.degree + 1))
        return tuple(slope / records for slope in each)

    def _within(self, weights: tuple[float, ...]) -> LaplaceCombination:
        lower, upper = (float(bound * self.clamp.step) for bound in (self.clamp.lower, self.clamp.upper))
        return LaplaceCombination(weights, lower, upper)

    @property
    def _points(self) -> list[Fraction]:
        """The grid point that each of the sums stands for."""
        return [
            self.clamp.lower + Fraction(self.clamp.width * j, self.degree) for j in range(self.degree + 1)
        ]

    def expect_average(self, size: int | None) -> Expected:
        """Worst where all values are at one of the bounds."""
        return per_record(self._slopes(1.0, 1.0), size, float(self.clamp.width * self.clamp.step))


@dataclass(frozen=True)
class Offset:
    """An offset at one ε beside a count at another: Σ(2x − lower − upper), W·#missing, and #records."""

    clamp: Clamp
    epsilon: Epsilon
    of_count: Epsilon

    def average(self, offset: int, missing: int, count: int) -> Found:
        """The average of the values; the middle of the bounds where there seem to be none."""
        width, step = self.clamp.width, self.clamp.step
        present = max(count - Fraction(missing, width), Fraction(1))
        away = min(max(Fraction(offset, 2) / present, Fraction(-width, 2)), Fraction(width, 2))
        value = float((Fraction(self.clamp.lower + self.clamp.upper, 2) + away) * step)
        lower, upper = (float(bound * step) for bound in (self.clamp.lower, self.clamp.upper))
        weights = self._slopes(float(away * step), float(present))
        return value, LaplaceCombination(weights, lower, upper)

    def _slopes(self, away: float, records: float) -> tuple[float, ...]:
        """What noise in the offset, in what is missing and in the count amounts to."""
        half = finite(self.clamp.width * self.clamp.step, "an average") / 2
        own, of_count = float(1 / self.epsilon), float(1 / self.of_count)
        return half * own / records, away * own / records, away * of_count / records

    def sum(self, offset: int, missing: int, count: int) -> Found:
        """The sum of the values."""
        present = count - Fraction(missing, self.clamp.width)
        total = Fraction(offset, 2) + self._middle * present
        return on_grid(round(total), self.clamp), self.sum_noise

    @property
    def sum_noise(self) -> Uncertainty:
        """Half the width, and the middle of the bounds for each record too many."""
        half, middle = (float(n * self.clamp.step) for n in (Fraction(self.clamp.width, 2), self._middle))
        own, of_count = float(1 / self.epsilon), float(1 / self.of_count)
        weights = (half * own, middle * own, middle * of_count)
        return _rounded(LaplaceCombination(weights, -inf, inf), self.clamp.step)

    @property
    def _middle(self) -> Fraction:
        return Fraction(self.clamp.lower + self.clamp.upper, 2)

    def expect_average(self, size: int | None) -> Expected:
        """Worst where all values are at one of the bounds."""
        width = float(self.clamp.width * self.clamp.step)
        return per_record(self._slopes(width / 2, 1.0), size, width)

    def expect_sum(self, size: int | None) -> Expected:
        """The same whatever the values are."""
        return Expected(self.sum_noise)


def per_record(weights: tuple[float, ...], size: int | None, most: float) -> Expected:
    """An error of Laplace draws of these weights divided by the size at worst, and never above most."""
    if size is None:
        worst = LaplaceCombination(weights, -inf, inf).standard_error()
        return Expected(None, note=f"at most {worst:,.4g} divided by the number of records")
    note = f"at most, if {size:,} records have a value"
    return Expected(LaplaceCombination(tuple(w / size for w in weights), -most, most), note=note)


Look = Callable[[Sequence[int]], Found] | Prepared[Answer]


def _look(query: Inquiry[Any], subject: Subject, sums: Sums) -> tuple[Look, Expect]:
    """How a query is read off Bernstein sums, and how far that will be off."""
    match query:
        case Count():
            return sums.count, lambda size: Expected(sums.count_noise)
        case Sum():
            return sums.sum, lambda size: Expected(sums.sum_noise)
        case Average():
            return sums.average, sums.expect_average
    prepared = query.prepare(subject, sums.epsilon)  # a variance, which reads the same sums
    return prepared, prepared.expect


def _reading(look: Look, i: int, epsilon: Epsilon) -> Read:
    def read(released: Sequence[Released], charged: Charged) -> Answer:
        sums = integers(released[i])
        if isinstance(look, Prepared):
            return look.read(sums[:3], charged)
        value, noise = look(sums)
        return Answer(value, epsilon, charged, noise)

    return read


def _beside(look: Callable[[int, int, int], Found], i: int, counted: int, epsilon: Epsilon) -> Read:
    def read(released: Sequence[Released], charged: Charged) -> Answer:
        offset, missing = integers(released[i])
        (count,) = integers(released[counted])
        value, noise = look(offset, missing, count)
        return Answer(value, epsilon, charged, noise)

    return read
