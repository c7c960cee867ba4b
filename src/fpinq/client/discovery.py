"""Keys that nobody listed: fp.discover(…) and fp.domain.… wherever keys=[…] is given.

With a δ, the keys that there are and that enough records have (`model.discovery.Stable`). Without one, those
of a domain of any size, all of which get noise (`Sparse`): what is shown may be a key that nobody has, and
how often that is to be expected is said. Either way it is one query, and its answers are counts by key.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any, ClassVar

from fpinq.client.amounts import plain_amount
from fpinq.client.answers import Answer, Answers, Charged, Made
from fpinq.client.asking import AnyInquiry, ask_parts, ask_primitive, overtaken, prepared_of
from fpinq.client.edge import edge, edges
from fpinq.client.facts import Bound, Facts
from fpinq.client.keys import Cells, Keyed, cells_of_key, keyed
from fpinq.client.paper import Paper, Papers, Quoted, on_paper, spent
from fpinq.client.parts import partition as parts_by_keys
from fpinq.client.queries import Count
from fpinq.client.rows import plain
from fpinq.client.spelling import show_at, show_delta, show_down, show_up, spell
from fpinq.client.uncertainty import GaussianNoise, LaplaceNoise, Number
from fpinq.model.books import FOR_KEYS
from fpinq.model.discovery import MAX_FOUND, MOST_EXPECTED
from fpinq.model.domains import (
    MAX_BITS,
    DateDomain,
    IntegerDomain,
    KeyDomain,
    ProductDomain,
    SimpleDomain,
    StringDomain,
    TruthDomain,
)
from fpinq.model.epsilon import delta as exact_delta
from fpinq.model.epsilon import per, rational
from fpinq.model.errors import BadPartition, BadQuery, BudgetExceeded
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Type
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho, asked_at
from fpinq.model.queries import Discovery, Sparse, Spread, Stable
from fpinq.model.transformations import Partitioning
from fpinq.runtime.finding import mechanism_of

ZERO = Fraction(0)
# How many keys are shown at the most, unless it is said; and of how many something else is asked, so that a
# server's usual limits refuse nothing after the keys were paid for.
AT_MOST = 100_000
MOST_PARTS = 10_000
# With so many keys a query is tried on paper where there are no limits of them.
FEW_PARTS = 2
# How long texts are, unless it is said: a key is sent as its number, of two digits and more for every byte.
NATURAL_BYTES = 128
DOMAINS = (IntegerDomain, DateDomain, StringDomain, TruthDomain, ProductDomain)


class domain:  # noqa: N801 - a namespace: fp.domain.strings(max_bytes=32)
    """Domains: keys that are known without being listed."""

    @staticmethod
    @edge
    def strings(max_bytes: object) -> StringDomain:
        """Every text whose UTF-8 has at most so many bytes."""
        return StringDomain(plain(max_bytes))  # type: ignore[arg-type]

    @staticmethod
    @edge
    def integers(low: object, high: object) -> IntegerDomain:
        """Every integer from low to high, both included."""
        return IntegerDomain(plain(low), plain(high))  # type: ignore[arg-type]

    @staticmethod
    @edge
    def dates(first: object, last: object) -> DateDomain:
        """Every date from first to last, both included: datetime.date, or "2024-02-29"."""
        return DateDomain(_date(first), _date(last))

    @staticmethod
    @edge
    def booleans() -> TruthDomain:
        """False and true."""
        return TruthDomain()

    @staticmethod
    @edge
    def product(*of: SimpleDomain) -> ProductDomain:
        """Every combination of a key of each: for keys of several columns, in their order."""
        return ProductDomain(of)


def _date(day: object) -> date:
    if type(day) is str:
        try:
            return date.fromisoformat(day)
        except ValueError:
            raise BadPartition("a date is written like 2024-02-29") from None
    return plain(day)  # type: ignore[return-value]


@dataclass(frozen=True)
class Discover:
    """How keys are found: at which ε or ρ, at which δ, or within which domain; see `discover`."""

    epsilon: Amount | None
    delta: Fraction | None
    within: KeyDomain | None
    per_person: int | None
    at_most: int | None
    expected: Fraction

    op: ClassVar[str] = "discover"


@edge
def discover(
    epsilon: object = None,
    delta: object = None,
    *,
    within: object = None,
    per_person: int | None = None,
    at_most: int | None = None,
    expected: object = Fraction(1, 1000),
) -> Discover:
    """Keys that nobody listed, as keys=…: those that enough records have, found at ε (or ρ) and δ.

    The root pays ε and δ times the scaling factor; it needs a δ for keys, such as
    budget=fp.approximate(epsilon=1, delta="1e-9", keys_delta="1e-10"). Without a δ, say within=fp.domain.…:
    all keys of the domain get noise, and so many of those that nobody has are expected to be shown.
    ε is left out where the query has one, as noisy_histogram has.

    per_person=k, on a table about persons: each counts in at most k different keys, the first in order,
    once each. At most at_most keys are shown, those with the largest noisy counts: 100,000, or 10,000 where
    they are parts of which something else is asked.
    """
    if within is not None and type(within) not in DOMAINS:
        raise BadPartition("within is a domain of keys, such as fp.domain.strings(max_bytes=32)")
    if delta is None and within is None:
        raise BadPartition(
            "keys that nobody listed need a δ, fp.discover(0.1, delta='1e-10'), "
            "or a domain, fp.discover(0.1, within=fp.domain.strings(max_bytes=32))"
        )
    found = rational(_read(expected))
    if found is None or not 0 < found <= MOST_EXPECTED:
        raise BadQuery(f"expected is how many keys nobody has are expected: above 0, up to {MOST_EXPECTED:,}")
    if at_most is not None and (type(at_most) is not int or not 1 <= at_most <= MAX_FOUND):
        raise BadQuery(f"at_most is how many keys are shown, 1 to {MAX_FOUND:,}")
    if per_person is not None and (type(per_person) is not int or per_person < 1):
        raise BadQuery("per_person is in how many keys a person counts at the most: 1 or more")
    return Discover(
        None if epsilon is None else asked_at(plain_amount(epsilon)),
        None if delta is None else exact_delta(plain_amount(delta)),
        within,  # type: ignore[arg-type]
        per_person,
        at_most,
        found,
    )


def _read(number: object) -> object:
    """A number, of which a text may be one."""
    try:
        return Fraction(number) if type(number) is str else plain(number)
    except (ValueError, ZeroDivisionError):
        return None


@dataclass(frozen=True)
class Selected:
    """The noise of a count that is shown because it is large enough: an interval is a little high."""

    noise: LaplaceNoise | GaussianNoise
    approximate = True

    def standard_error(self) -> float:
        """That of the noise."""
        return self.noise.standard_error()

    def interval(self, value: Number, confidence: Fraction) -> tuple[Number, Number]:
        """As if it were shown in any case."""
        return self.noise.interval(value, confidence)


@edges
class FoundAnswers(Answers):
    """How many records have each key that was found, in the order of the keys.

    Keys whose noisy count is below `threshold` are not shown. `expected_false` is how many keys
    that no record has are expected among those shown: 0 with a δ. `delta` is what was asked at, and
    `charged_delta` what the root was charged of its δ for keys.
    """

    def __init__(
        self, answers: Made, query: Discovery, at: Amount, charged: Charged, columns: tuple[str, ...]
    ) -> None:
        super().__init__(answers, at, charged, columns)
        self._query, self._at = query, at
        self.delta: Fraction = query.delta
        self.expected_false = query.expected if isinstance(query, Sparse) else ZERO
        self.charged_delta: Charged = ZERO

    @property
    def threshold(self) -> int:
        """What a noisy count must reach to be shown: a public number."""
        return mechanism_of(self._query, self._at).threshold

    @property
    def is_cut(self) -> bool:
        """Whether as many keys are shown as may be: there may be more, with smaller noisy counts."""
        return len(self) >= self._query.at_most

    def _footer(self) -> str:
        """Which keys are shown: where there are none, that is all that is said."""
        false = (
            f"; keys that nobody has: at most {show_delta(self.expected_false)} expected"
            if self.expected_false
            else ""
        )
        return f"keys whose noisy counts reach {self.threshold:,}{false}"


# ── asking ───────────────────────────────────────────────────────────────────────────


def how_found(keys: object) -> Discover:
    """How keys are found, of what was given as keys=…."""
    how = discover(within=keys) if type(keys) in DOMAINS else keys
    if not isinstance(how, Discover):
        raise BadPartition(
            "keys are found by fp.discover(…), or in a domain, such as fp.domain.integers(0, 9)"
        )
    return how


def ask_found(
    table: Facts, at: Amount, query: AnyInquiry | Mapping[Any, AnyInquiry], by: object, keys: object
) -> Answers:
    """A query of each part whose key is found; a count is what finds it."""
    how = how_found(keys)
    if isinstance(query, Mapping):
        raise BadQuery("the keys of the dict say which parts there are: leave keys=… out")
    if isinstance(query, Count) and how.epsilon in (None, at):
        return find(table, at, by, how)
    if how.epsilon is None:
        raise needs_epsilon()
    refuse_unless_both(table, at, query, by, how)
    found = find(table, how.epsilon, by, how, counts=False)
    answers = Answers({}, at, ZERO, tuple(cells_of_key(table.subject, by, "partition")))
    if found:
        try:
            answers = ask_parts(table, at, query, by, list(found))
        except BudgetExceeded as error:
            raise overtaken(error, how.epsilon) from None
    answers.found = found
    return answers


def refuse_unless_both(table: Facts, at: Amount, query: AnyInquiry, by: object, how: Discover) -> None:
    """Both queries or none: what is wrong with the second is found before the first is charged.

    Nobody knows the keys yet, so it is tried with others of the domain, on paper. Of a system that is
    elsewhere, its budget is asked, and what is wrong with the query itself is found here.
    """
    assert how.epsilon is not None
    cells = cells_of_key(table.subject, by, "partition")
    asked, found = query_of(table, cells, how, counts=False)
    _refuse_unless_left(table, price_of_both(table, asked, how.epsilon, at))
    paper = Papers().of(table.system)
    keys = stand_ins(found, found.at_most if isinstance(table.system, Paper) else FEW_PARTS)
    if paper is None:
        keyed(table.subject, cells, keys)
        prepared_of(table, at, query.traced(table.subject))
        return
    with suppress(Quoted):
        ask_parts(on_paper(table, paper), at, query, cells, keys)


def price_of_both(table: Facts, asked: Facts, first: Amount, second: Amount) -> dict[str, Fraction]:
    """What it costs to find keys, and then to ask something of them."""
    papers = Papers()
    each = [spent(asked, first, papers), spent(table, second, papers)]
    return {root: sum((one.get(root, ZERO) for one in each), ZERO) for root in table.roots}


def stand_ins(query: Discovery, most: int) -> list[Any]:
    """Keys of a query's domain in place of those that it will find: the last, than which none is longer."""
    size = query.domain.size
    return [query.domain.unrank(size - 1 - i) for i in range(min(most, query.at_most, size))]


def _refuse_unless_left(table: Facts, prices: Mapping[str, Fraction]) -> None:
    left, labels = table.left(), table.root_labels()
    root = max(prices, key=lambda root: prices[root] - left[root], default=None)
    if root is not None and prices[root] > left[root]:
        raise BudgetExceeded(
            f"to find the keys and to ask something of them costs {show_up(prices[root])} of "
            f"{labels[root]!r} in all, which has {show_down(left[root])} left. Nothing was charged.",
            price=prices[root],
            remaining=left[root],
        )


def partition(table: Facts, by: object, keys: object) -> tuple[Keyed, Any]:
    """The parts of the keys that are found."""
    if not isinstance(keys, Discover) or keys.epsilon is None:
        raise needs_epsilon()
    cells = cells_of_key(table.subject, by, "partition")
    found = find(table, keys.epsilon, cells, keys, counts=False)
    if found:
        delta = f", δ = {show_delta(found.delta)}" if found.delta else ""
        note = f", found at {show_at(keys.epsilon)}{delta}"
        return parts_by_keys(table, cells, list(found), note)
    return Keyed(Partitioning(_key(cells), ()), tuple(cells), []), None


def needs_epsilon() -> BadPartition:
    """To find keys is a query, which is asked at something."""
    return BadPartition(
        "to find the keys is a query of its own: say at which ε or ρ, keys=fp.discover(0.1, delta='1e-10'), "
        "or keys=fp.discover(0.1, within=fp.domain.strings(max_bytes=32)); in a shell, --keys-epsilon 0.1"
    )


def query_of(table: Facts, by: object, how: Discover, *, counts: bool) -> tuple[Facts, Sparse | Stable]:
    """What is asked to find keys, and of which table: itself, or the persons that it is made of.

    Where something else than counts is asked of the keys, each is a part, and there are not so many.
    """
    cells = cells_of_key(table.subject, by, "histogram")
    if how.delta is not None and table.budgets:
        raise BadQuery("a budget that was handed on has no δ: find the keys on the table itself")
    asked, spread = (table, None) if how.per_person is None else _persons(table, how.per_person)
    at_most = how.at_most or (AT_MOST if counts else MOST_PARTS)
    within = how.within or _natural(cells)
    query: Sparse | Stable
    if how.delta is None:
        query = Sparse(_key(cells), within, how.expected, at_most, spread)
    else:
        distance = max(asked.scaling_factor(), 1) if spread is None else 1
        query = Stable(_key(cells), within, how.delta, distance, at_most, spread)
    query.check(table.schema)
    return asked, query


def noise_in(query: Discovery, at: Amount) -> "Selected":
    """The noise of a count that is shown."""
    return Selected(
        GaussianNoise(query.squared / (2 * at.amount))
        if isinstance(at, Rho)
        else LaplaceNoise(per(query.sensitivity, at))
    )


def find(table: Facts, at: Amount, by: object, how: Discover, *, counts: bool = True) -> FoundAnswers:
    """The keys that enough records have, and how many."""
    cells = cells_of_key(table.subject, by, "histogram")
    asked, query = query_of(table, cells, how, counts=counts)
    delta = f" at δ = {show_delta(query.delta)}" if query.delta else ""
    what = f"keys of {', '.join(map(spell, (cell.tree for cell in cells.values())))}{delta}"
    try:
        (released,), charged = ask_primitive(table, asked, at, query, what)
    except BudgetExceeded as error:
        fits = error.price is not None and error.remaining is not None and error.price <= error.remaining
        raise (_beyond_delta(table, query) if fits else error) from None
    assert type(released) is tuple
    paid = table.by_root(charged)
    noise = noise_in(query, at)
    labels = [query.domain.unrank(number) for number in released[::2]]
    noisy = released[1::2]
    made = Made(labels, lambda i: Answer(noisy[i], at, paid, noise).called("n"))
    answers = FoundAnswers(made, query, at, paid, tuple(cells))
    answers.charged_delta = table.by_root({root: charged.get(root + FOR_KEYS, ZERO) for root in table.roots})
    return answers


def _beyond_delta(table: Facts, query: Discovery) -> BudgetExceeded:
    left = min(table.left_for_keys().values(), default=ZERO)
    factor = table.scaling_factor() if query.spread is None else 1
    return BudgetExceeded(
        f"δ = {show_delta(query.delta)} on a table with scaling factor {factor} is more than what is left of "
        f"the δ for keys, {show_delta(left)}. Nothing was charged."
        + (f" δ ≤ {show_delta(left / factor)} would fit." if left else ""),
        price=factor * query.delta,
        remaining=left,
    )


def _persons(table: Facts, keys: int) -> tuple[Facts, Spread]:
    """The persons that a table is made of, one by one."""
    if table.within is None or table.system is None:
        raise BadQuery(
            "per_person needs a table about persons, protect(…, unit=…), made person by person: "
            "use it before the rows of different persons are joined or grouped"
        )
    persons = replace(table, binding=Bound(table.system, table.within.root))
    return persons, Spread(table.within.body, keys)


def _key(cells: Cells) -> Any:
    trees = tuple(cell.tree for cell in cells.values())
    return trees[0] if len(trees) == 1 else trees


_NATURAL: dict[Type, SimpleDomain] = {
    Type.INT64: IntegerDomain(INT64_MIN, INT64_MAX),
    Type.DATE: DateDomain(date.min, date.max),
    Type.BOOL: TruthDomain(),
}


def natural(type_: Type, max_bytes: int = NATURAL_BYTES) -> SimpleDomain:
    """Every value of a type; of texts, those that are not too long."""
    return _NATURAL.get(type_, StringDomain(max_bytes))


def _natural(cells: Cells) -> KeyDomain:
    """Every value that the columns of a key can have; of texts, those that are not too long together."""
    types = [cell.type for cell in cells.values()]
    for cell in cells.values():
        if cell.type not in _NATURAL and cell.type is not Type.STRING:
            raise BadPartition(
                f"{spell(cell.tree)} is {cell.type.value}, of which keys cannot be found: "
                "count it by integers, texts, dates or truths; a number in steps, a timestamp by its day"
            )
    others = sum(_NATURAL[type_].size.bit_length() for type_ in types if type_ in _NATURAL)
    each = min(NATURAL_BYTES, (MAX_BITS - others) // (8 * max(types.count(Type.STRING), 1)))
    domains = tuple(natural(type_, each) for type_ in types)
    return domains[0] if len(domains) == 1 else ProductDomain(domains)
