"""Mechanisms: from an exact statistic to what is released.

``laplace``  every integer, the zeros that a sparse statistic leaves out
             included, gets discrete Laplace noise of scale Δ/ε; at ρ, discrete
             Gaussian noise of σ² = Δ₂²/(2ρ).
``choice``   permute-and-flip over integer scores, at rate ε/Δ if they are
             monotone (one more record moves all of them in one direction) and
             ε/(2Δ) otherwise. A query that chooses several times does each at
             its share of ε. At ρ it is the exponential mechanism, at the ε whose
             square is 8ρ.
``quotient`` a noisy difference of two parts, divided by the exact larger one.
``keys``     noisy counts of keys that nobody listed, where they reach a threshold
             (`finding`).

Which of them, Δ and the rest is what the query says of itself. Δ = 0 only if no
record can change the statistic; then it is what it is without records, and what
was measured is not looked at.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from fpinq.engines.columns import ROOM, Columns, Counts, add, are_narrow, column, joined, largest, wide
from fpinq.ledger import Released
from fpinq.model.clamps import Clamp
from fpinq.model.closed import each_once
from fpinq.model.conversion import epsilon_of_range
from fpinq.model.epsilon import Epsilon, per
from fpinq.model.errors import KernelViolation
from fpinq.model.kinds import Choices, Chosen, Noisy, Primitive, all_of_it
from fpinq.model.notions import Amount, Rho, pure
from fpinq.model.queries import (
    Balance,
    Brackets,
    Discovery,
    PrimitiveQuery,
    Rank,
    Ranks,
    Several,
    SimpleQuery,
)
from fpinq.model.statistics import Integers, Points, Records
from fpinq.noise import sample, sample_many
from fpinq.runtime import deadline, ranking

if TYPE_CHECKING:
    from fpinq.engines.columns import Column
    from fpinq.noise import ExponentialMechanism, PermuteAndFlip, Quotient

# Below this many draws, one at a time is faster than waking up NumPy.
FEW = 16
# So many draws between two looks at the clock.
AT_ONCE = 2**18


def draw(query: SimpleQuery, measured: Integers, at: Amount) -> Released:
    """What a query releases at ε or ρ of what was measured, drawn afresh; TimeoutError if out of time."""
    deadline.check()
    if isinstance(query, Noisy):
        drawn = _add(query, measured, at)
        _check_released(query, drawn)
        return drawn
    if isinstance(query, Balance):
        return _divide(query, measured, pure(at))
    if isinstance(query, Discovery):
        from fpinq.runtime.finding import find  # most programs never ask for it

        return find(query, measured, at)
    drawn = _choose(query, measured, at)
    _check_released(query, drawn)
    return drawn[0] if query.alone else drawn


def draw_each(
    queries: Sequence[SimpleQuery], measured: Sequence[Integers], at: Amount
) -> tuple[Released, ...]:
    """What a query of each part, or one of all, releases at ε or ρ: as by `draw`, but drawn at once.

    Of queries that differ that is so for balances of totals, all of which are drawn for together, and for
    parts that are asked the same one, the same object.
    """
    if len(queries) == 1:
        return draw_alike(queries[0], measured, at)
    if not isinstance(measured, Columns) or len(measured) <= FEW:
        return tuple([draw(query, of_part, at) for query, of_part in zip(queries, measured, strict=True)])
    asked = each_once(queries)
    balances = [query for query in asked if isinstance(query, Balance) and query.about is None]
    number_of = {id(query): number for number, query in enumerate(balances)}
    numbers = [number_of.get(of_part, -1) for of_part in map(id, queries)]
    parts = [part for part, number in enumerate(numbers) if number >= 0]
    released: list[Released] = [()] * len(queries)
    if parts:
        of_parts = [numbers[part] for part in parts]
        _put(released, parts, _divide_each(balances, of_parts, measured.of(parts), pure(at)))
    others: dict[int, list[int]] = {}
    for part, number in enumerate(numbers):
        if number < 0:
            others.setdefault(id(queries[part]), []).append(part)
    for parts in others.values():
        _put(released, parts, draw_alike(queries[parts[0]], measured.of(parts), at))
    return tuple(released)


def _put(released: list[Released], parts: Sequence[int], drawn: Sequence[Released]) -> None:
    for part, of_part in zip(parts, drawn, strict=True):
        released[part] = of_part


def draw_alike(query: SimpleQuery, measured: Sequence[Integers], at: Amount) -> tuple[Released, ...]:
    """What a query releases at ε or ρ of every part, as by `draw`; but noise is drawn for all at once."""
    parts = len(measured)
    if isinstance(query, Balance) and query.about is None and isinstance(measured, Columns) and parts > FEW:
        return tuple(_divide_each([query], [0] * parts, measured, pure(at)))
    if not isinstance(query, Noisy) or not query.sensitivity or parts * query.integers <= FEW:
        return tuple([draw(query, of_part, at) for of_part in measured])
    noise = noise_for(query, at)
    if isinstance(measured, Columns) and type(query).exact is all_of_it:
        _check_released(query, measured.columns)
        drawn = _with_noise(joined(measured.columns), noise)
        return tuple(zip(*(drawn[i : i + parts] for i in range(0, len(drawn), parts)), strict=True))
    exact = [query.exact(of_part) for of_part in deadline.watched(measured)]
    for each in exact:
        _check_released(query, each)
    drawn = _with_noise(
        column(list(chain.from_iterable(exact)), narrow=isinstance(query.statistic, Records | Points)), noise
    )
    return tuple(zip(*[iter(drawn)] * query.integers, strict=True))


def together(query: PrimitiveQuery, drawn: Sequence[Released]) -> Released:
    """What a query releases of what was drawn: where it is several, the integers of one after the other."""
    if not isinstance(query, Several):
        return drawn[0]
    each = ((one,) if isinstance(one, int) else one for one in drawn[: len(query.of)])
    return tuple(chain.from_iterable(each))


class Noise(NamedTuple):
    """What is added: how to draw one, and many."""

    one: Callable[[], int]
    many: "Callable[[int], Column]"


def noise_for(query: Noisy, at: Amount) -> Noise:
    """The noise of each of a query's integers."""
    if isinstance(at, Rho):
        from fpinq.noise import gaussian  # most programs never ask for it

        variance = query.squared / (2 * at.amount)
        return Noise(partial(gaussian.sample, variance), partial(gaussian.sample_many, variance))
    scale = per(query.sensitivity, at)
    return Noise(partial(sample, scale), partial(sample_many, scale))


def _with_noise(exact: "Column", noise: Noise) -> list[int]:
    sizes = [min(AT_ONCE, len(exact) - start) for start in range(0, len(exact), AT_ONCE)]
    drawn: list[int] = add(exact, joined([noise.many(n) for n in deadline.each(sizes)])).tolist()
    return drawn


def _check_released(query: Primitive, drawn: Sequence[Any]) -> None:
    """KernelViolation unless a query releases what it says, which is what limits go by."""
    if len(drawn) != query.integers:
        raise KernelViolation(f"{type(query).__name__} releases {query.integers} integers, not {len(drawn)}")


def _add(query: Noisy, measured: Integers, at: Amount) -> tuple[int, ...]:
    if query.sensitivity == 0:
        return tuple(query.exact({}))
    exact = query.exact(measured)
    noise = noise_for(query, at)
    if len(exact) <= FEW:
        return tuple([q + noise.one() for q in exact])
    return tuple(q + v for q, v in zip(exact, noise.many(len(exact)).tolist(), strict=True))


def _divide(query: Balance, measured: Integers, epsilon: Epsilon) -> int:
    return _quotient_of(query, epsilon).choose(*query.parts(measured))


def _divide_each(
    queries: Sequence[Balance], numbers: Sequence[int], measured: Columns, epsilon: Epsilon
) -> Sequence[int]:
    """What balances of totals release: of each part, the one that has its number."""
    from fpinq.noise import choose_each

    deadline.check()
    below, above = measured.columns
    quotients = [_quotient_of(query, epsilon) for query in queries]
    finest, reach = (max(query.fineness for query in queries), max(query.sensitivity for query in queries))
    # What a part is taken to be may be far more than it is.
    floor = max(max(each.floors) for each in quotients)
    if not are_narrow(reach) or finest * max(largest(above, below), floor) >= ROOM:
        above, below = wide(above, below)
    chosen: list[int] = choose_each(quotients, numbers, above, below).tolist()
    return chosen


def _quotient_of(query: Balance, epsilon: Epsilon) -> "Quotient":
    of = query.largest, query.fineness, query.least_above, query.least_below
    return _quotient(*epsilon.as_integer_ratio(), *of)


@lru_cache(maxsize=1_024)
def _quotient(at: int, over: int, *of: int) -> "Quotient":
    """Parts of about the same size have the same; two integers are found sooner than a fraction."""
    from fpinq.noise import Quotient

    return Quotient(Fraction(at, over), *of)


def _choose(query: Chosen, measured: Integers, at: Amount) -> tuple[int, ...]:
    if isinstance(at, Rho):
        share = epsilon_of_range(at.amount / query.passes)
        return tuple(_weighed(choices, query.monotone, share) for choices in query.choices(measured))
    share = at / query.passes
    if isinstance(query, Rank | Ranks) and isinstance(measured, Counts) and ranking.are_many(query, measured):
        ranked = ranking.Ranked(query.of, measured)
        return tuple([ranked.choose(rank, share) for rank in deadline.each(query.each())])
    if isinstance(query, Brackets) and isinstance(measured, Counts) and ranking.are_many(query, measured):
        return tuple(
            [_bracket(query.of, measured, beside, share) for beside in deadline.each([*query.beside()])]
        )
    return tuple(_choice(choices, query.monotone, share) for choices in query.choices(measured))


def _bracket(of: Clamp, measured: Counts, beside: tuple[Rank, int, int], share: Fraction) -> int:
    rank, point, number = beside
    return ranking.Ranked(of, measured.with_more(point, number)).choose(rank, share)


def _choice(choices: Choices, monotone: bool, epsilon: Fraction) -> int:
    from fpinq.noise import PermuteAndFlip

    return _chosen(PermuteAndFlip(epsilon, max(choices.sensitivity, 1), monotone=monotone), choices.runs)


def _weighed(choices: Choices, monotone: bool, epsilon: Fraction) -> int:
    """By the exponential mechanism, whose range is ε: that of permute-and-flip is twice as large."""
    from fpinq.noise import ExponentialMechanism

    mechanism = ExponentialMechanism(epsilon, max(choices.sensitivity, 1), monotone=monotone)
    return _chosen(mechanism, choices.runs)


def _chosen(mechanism: "PermuteAndFlip | ExponentialMechanism", runs: list[tuple[int, int, int]]) -> int:
    from fpinq.noise import Run

    deadline.check()
    choice = mechanism.choose(Run(score, last - first + 1) for first, last, score in deadline.watched(runs))
    return runs[choice.run][0] + choice.member
