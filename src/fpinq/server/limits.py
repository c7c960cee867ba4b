"""Public limits. Each is applied before anything is charged: to an action before the kernel sees it,
to what a query says of itself once the kernel has checked it.

They are numbers that the owner chose, the same whatever the data is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from threading import Lock
from time import monotonic

from fpinq.model.actions import Action, Assign, Partition, Query
from fpinq.model.environments import Names
from fpinq.model.epsilon import epsilon
from fpinq.model.errors import BadEpsilon, ProgramError
from fpinq.model.queries import PrimitiveQuery, SimpleQuery, simple
from fpinq.model.statistics import Monomials, Points, Totals, size
from fpinq.model.transformations import LiteralTable, parts_of
from fpinq.runtime.refusals import TooLarge, TooManyRequests


@dataclass(frozen=True)
class Limits:
    """What one request may be, and how many there may be."""

    body_bytes: int = 1_000_000
    depth: int = 300
    plan_depth: int = 200
    plan_nodes: int = 2_000
    plan_levels: int = 2_400
    rows_per_record: int = 100_000
    work_per_record: int = 10_000_000  # about 10 ms: see docs/decisions/0073
    work_per_query: int = 300_000_000_000  # about query_seconds
    epsilon_at_least: Fraction = Fraction(1, 10_000)
    queries_per_session: int = 100_000
    nodes: int = 100_000
    parts: int = 10_000
    released_integers: int = 1_000_000
    candidates: int = 10_000
    sums: int = 2_500  # DuckDB plans them in their square, about 2 s, and cannot be stopped then
    fractions: int = 1_000
    literal_rows: int = 10_000
    name_characters: int = 200
    tables_per_session: int = 10_000
    requests_per_second: int = 2_000
    concurrent_requests: int = 64
    concurrent_requests_in_all: int = 1_024
    query_seconds: int = 300
    integers_per_question: int = 100_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon_at_least", _least(self.epsilon_at_least))
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "epsilon_at_least" and (type(value) is not int or value < 1):
                raise ProgramError(f"the limit {field.name} is a whole number ≥ 1")
        if self.concurrent_requests >= self.concurrent_requests_in_all:
            raise ProgramError(
                "the limit concurrent_requests, which is each analyst's, must be below "
                "concurrent_requests_in_all: one analyst could shut out all others"
            )

    def shown(self) -> dict[str, int | str]:
        """The limits in the wire's values."""
        return {name: str(v) if isinstance(v, Fraction) else v for name, v in vars(self).items()}

    def check_action(self, action: Action) -> None:
        """TooLarge if an action asks for more than a reply or a scan should hold."""
        match action:
            case Assign(target=target, transformation=transformation):
                self._check_names((target,))
                if isinstance(transformation, LiteralTable) and len(transformation.rows) > self.literal_rows:
                    raise TooLarge(f"a literal table has at most {self.literal_rows} rows")
            case Partition(targets=targets, by=by):
                self._check_parts(len(by.keys))
                self._check_parts(len(targets))
                self._check_names(targets)
            case Query(queries=queries, by=by):
                self._check_parts(parts_of(by))
                self._check_parts(len(queries))

    def check_queries(self, queries: Sequence[PrimitiveQuery], parts_each: int) -> None:
        """TooLarge if queries that passed their check release or choose more than a reply should wait for.

        Each fraction, and each candidate, is drawn for by itself: of all parts together.
        """
        self._check_simple([one for query in queries for one in simple(query)], parts_each)

    def _check_simple(self, queries: Sequence[SimpleQuery], parts_each: int) -> None:
        if parts_each * sum(query.integers for query in queries) > self.released_integers:
            raise TooLarge(f"one query releases at most {self.released_integers} integers")
        choices = [query for query in queries if query.mechanism == "choice"]
        scored = [query.statistic for query in choices if not isinstance(query.statistic, Points)]
        if parts_each * sum(map(size, scored)) > self.candidates:
            raise TooLarge(f"one query chooses among at most {self.candidates} candidates")
        several = (q.statistic for q in queries if isinstance(q.statistic, Totals | Monomials))
        if sum(n for n in map(size, dict.fromkeys(several)) if n > 1) > self.sums:
            raise TooLarge(f"one query adds up at most {self.sums} numbers of every record")
        if parts_each * sum(query.passes for query in choices if query.passes > 1) > self.fractions:
            raise TooLarge(f"one query has at most {self.fractions} fractions")

    def _check_parts(self, parts: int) -> None:
        if parts > self.parts:
            raise TooLarge(f"at most {self.parts:,} parts, and this has {parts:,}")

    def _check_names(self, names: Names) -> None:
        if any(len(name) > self.name_characters for name in names):
            raise TooLarge(f"a table variable has at most {self.name_characters} characters")


def _least(given: object) -> Fraction:
    try:
        return epsilon(given)
    except BadEpsilon as error:
        raise BadEpsilon(f"the limit epsilon_at_least: {error}") from None


# How many analysts' buckets are kept before those that are full are thrown away.
BUCKETS = 10_000


class Rate:
    """A bucket of requests for each analyst, filled at a steady rate."""

    def __init__(self, per_second: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_second = float(per_second)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._lock = Lock()

    def take(self, analyst: str) -> None:
        """TooManyRequests if the analyst's bucket is empty."""
        now = self._clock()
        with self._lock:
            left = self._left(analyst, now)
            allowed = left >= 1
            self._buckets[analyst] = (left - 1 if allowed else left, now)
        if not allowed:
            raise TooManyRequests(f"at most {self._per_second:.0f} requests a second: send fewer")

    def _left(self, analyst: str, now: float) -> float:
        """What is in a bucket. One that is full again is as good as none, so those are not kept for ever."""
        if analyst not in self._buckets and len(self._buckets) >= BUCKETS:
            full = self._per_second
            self._buckets = {who: (left, at) for who, (left, at) in self._buckets.items()
                             if left + (now - at) * full < full}  # fmt: skip
        left, at = self._buckets.get(analyst, (self._per_second, now))
        return min(self._per_second, left + (now - at) * self._per_second)
