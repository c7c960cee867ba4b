"""Asking: queries of a table. Each is one action; a refusal is BudgetExceeded, and nothing is charged."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import chain
from math import isqrt
from time import time
from typing import Any, TypeVar

from fpinq.client import history
from fpinq.client.answers import Answer, Answers, Charged, Made
from fpinq.client.budgets import Budget
from fpinq.client.concentrated import prepare_at_rho
from fpinq.client.facts import Bound, Facts
from fpinq.client.keys import keyed
from fpinq.client.looks import Composed, Seconds
from fpinq.client.parts import partition
from fpinq.client.planning import (
    ExpectedError,
    ExpectedErrors,
    Expecting,
    expected_error,
    expected_errors,
    least_epsilon,
    least_epsilon_for_each,
    least_rho,
    least_rho_for_each,
)
from fpinq.client.queries import Inquiry, Prepared
from fpinq.client.several import Several
from fpinq.client.spelling import show_at, show_down, show_up
from fpinq.client.systems import system_for
from fpinq.client.tracing import refuse_inside_a_lambda
from fpinq.model import actions
from fpinq.model.conversion import rounded
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import (
    BadEpsilon,
    BadQuery,
    BudgetExceeded,
    DataChanged,
    KernelViolation,
    ProgramError,
)
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount as Asked
from fpinq.model.notions import Rho
from fpinq.model.queries import PrimitiveQuery
from fpinq.model.semantics import Bottom
from fpinq.model.transformations import Partitioning, parts_of
from fpinq.runtime import Answered, Released
from fpinq.runtime.refusals import TooManyRequests

ZERO = Fraction(0)
# Of more parts than this, each is asked once: a second look is another query of each part.
MOST_LOOKS = 500
# What a system raises of a query that it did not charge. After anything else it may have.
NOTHING_CHARGED = (ProgramError, DataChanged, TooManyRequests)

_NOTHING_HELD = nullcontext()

A = TypeVar("A", bound=Answer | Answers)
AnyInquiry = Inquiry[Answer | Answers]
# What each query released, and what was charged to each root, by its name in the system.
Reply = tuple[tuple[Released, ...], Mapping[str, Fraction]]


def ask(table: Facts, epsilon: Asked, query: Inquiry[A]) -> A:
    """One query of a table; or two for one answer, the second after the first."""
    traced = query.traced(table.subject)
    what, asked = traced.words(), traced.derive(table)
    if (twice := _asked_twice(asked, epsilon, [traced], None, what)) is not None:
        return twice.read(0)  # type: ignore[return-value]  # what the query composes
    prepared = _prepare(traced, asked, epsilon)
    (released,), charged = _noted(
        table, epsilon, what, lambda: _reply(asked, epsilon, (prepared.primitive,), None)
    )
    return prepared.read(released, asked.by_root(charged)).called(traced.column())  # type: ignore[return-value]


def ask_parts(
    table: Facts,
    epsilon: Asked,
    query: AnyInquiry | Mapping[Any, AnyInquiry],
    by: object,
    keys: object,
) -> Answers:
    """A query of each part of a table: the same of all, or each its own. All for the price of one."""
    if isinstance(query, Mapping):
        if keys is not None:
            raise BadQuery("the keys of the dict say which parts there are: leave keys=… out")
        keys = list(query)
    parts = keyed(table.subject, by, keys)
    questions = [query] if isinstance(query, Inquiry) else list(query.values())
    if not all(isinstance(question, Inquiry) for question in questions):
        raise BadQuery("each part needs an fp query, such as fp.count() or fp.average(f, bounds=…)")
    questions = [question.traced(table.subject) for question in questions]
    what = questions[0].words() if len(questions) == 1 else f"{len(questions)} queries"
    what = f"{what} by {', '.join(parts.columns)}"
    if (twice := _asked_twice(table, epsilon, questions, parts.by, what)) is not None:
        return Answers(Made(parts.labels, twice.read), epsilon, twice.charged, parts.columns)
    each = [prepared_of(table, epsilon, question) for question in questions]

    def reply() -> Reply:
        if all(asked is table for asked, _ in each):
            return _reply(table, epsilon, tuple(prepared.primitive for _, prepared in each), parts.by)
        of_part = questions * len(parts.labels) if isinstance(query, Inquiry) else questions
        return _replies(table, epsilon, by, dict(zip(parts.labels, of_part, strict=True)))

    released, amounts = _noted(table, epsilon, what, reply)
    charged: Charged = table.by_root(amounts)
    reads = [prepared.read for _, prepared in each]
    same = isinstance(query, Inquiry)
    made = Made(parts.labels, lambda number: reads[0 if same else number](released[number], charged))
    return Answers(made, epsilon, charged, parts.columns)


def _prepare(query: Inquiry[A], asked: Facts, epsilon: Asked) -> Prepared[A]:
    """What is asked of the table that a query, its function called, is asked of."""
    if isinstance(epsilon, Rho):
        return prepare_at_rho(query, asked.subject, epsilon)
    return query.prepare(asked.subject, epsilon)


def prepared_of(table: Facts, epsilon: Asked, query: Inquiry[A]) -> tuple[Facts, Prepared[A]]:
    """The table that a query, its function called, is asked of, and what is asked of it."""
    asked = query.derive(table)
    prepared = _prepare(query, asked, epsilon)

    def read(released: Released, charged: Charged) -> A:
        return prepared.read(released, charged).called(query.column())  # type: ignore[return-value]

    return asked, replace(prepared, read=read)


# ── two queries for one answer ───────────────────────────────────────────────────────


@dataclass(frozen=True)
class Twice:
    """What two queries released of a table or of its parts, and how to read it."""

    seconds: Sequence[Seconds[Answer | Answers]]
    released: Sequence[Released]
    charged: Charged
    split: tuple[tuple[str, Fraction], ...]
    columns: Sequence[str]

    def read(self, number: int) -> Answer | Answers:
        """The answer of a part, by its number."""
        which, of_it = (0, number) if len(self.seconds) == 1 else (number, 0)
        answer = self.seconds[which].read(of_it, self.released[number], self.charged)
        asked = answer.asked_in(self.split) if isinstance(answer, Answer) else answer
        return asked.called(self.columns[number])


def _asked_twice(
    table: Facts, epsilon: Asked, questions: Sequence[AnyInquiry], by: Partitioning | None, what: str
) -> Twice | None:
    """A table or all its parts, twice; None unless all are to be asked so, and they are not too many."""
    parts = parts_of(by)
    if isinstance(epsilon, Rho):
        return None
    if parts > MOST_LOOKS or (by and any(question.derive(table) is not table for question in questions)):
        return None
    composed = [question.composed(table.subject, epsilon) for question in questions]
    found = [each for each in composed if each is not None]
    if len(found) < len(composed) or len({each.epsilons for each in found}) > 1:
        return None
    columns = [question.column() for question in questions] * (parts // len(questions))
    return _twice(table, epsilon, found, by, columns, what)


def _twice(
    table: Facts,
    epsilon: Asked,
    composed: Sequence[Composed[Answer | Answers]],
    by: Partitioning | None,
    columns: Sequence[str],
    what: str,
) -> Twice | None:
    """A first look, then what it shows to be best; None if there can be none of so small an ε.

    Both or none: the whole ε fits before the first is asked, and budgets that
    were handed on are held until the second was. What others take of the data's
    own budget in between cannot be helped: then the first is spent.
    """
    look, rest = composed[0].epsilons
    seconds: list[Seconds[Answer | Answers]] = []

    def both() -> Reply:
        seen, first = _reply(table, look, tuple(each.first for each in composed), by)
        shown = [seen] if len(composed) == 1 else [(of_part,) for of_part in seen]
        seconds.extend(one.then(parts) for one, parts in zip(composed, shown, strict=True))
        try:
            released, second = _reply(table, rest, tuple(chain(*(one.primitives for one in seconds))), by)
        except BudgetExceeded as error:
            _noted(table, look, what, lambda: (seen, first))
            raise overtaken(error, look) from None
        return released, {root: first.get(root, ZERO) + second.get(root, ZERO) for root in {*first, *second}}

    with _held(table.budgets):
        refuse_unless_it_fits(table, epsilon)
        try:
            released, charged = _noted(table, epsilon, what, both)
        except BadEpsilon:
            return None  # of the first: nothing was charged
    return Twice(seconds, released, table.by_root(charged), composed[0].split, columns)


class Overtaken(BudgetExceeded):
    """⊥ of the second of two queries: the first was charged."""


def overtaken(error: BudgetExceeded, look: Asked) -> Overtaken:
    """What is said of the second of two queries that no longer fits."""
    return Overtaken(
        f"the first of two queries was charged, at {show_at(look)}; meanwhile what the second needs "
        f"was spent by others, so it was not asked",
        price=error.price,
        remaining=error.remaining,
    )


def _held(budgets: Collection[Budget]) -> AbstractContextManager[object]:
    """No other thread spends of these budgets meanwhile."""
    return _locked(budgets) if budgets else _NOTHING_HELD


@contextmanager
def _locked(budgets: Collection[Budget]) -> Iterator[None]:
    with ExitStack() as locks:
        for budget in sorted(budgets, key=id):
            locks.enter_context(budget.lock)
        yield


# ── planning: all of it is free ──────────────────────────────────────────────────────


def expect(
    table: Facts, epsilon: Asked, query: AnyInquiry, size: int | None
) -> ExpectedError | ExpectedErrors:
    """How far the answer of a query at ε will be off; of several, each by its name."""
    subject = _checked(query).derive(table).subject
    if isinstance(query, Several):
        return expected_errors(query, subject, epsilon, size)
    return expected_error(Expecting(partial(query.expect, subject, epsilon)), epsilon, size)


def epsilon_for(
    table: Facts, query: AnyInquiry, error: object, confidence: object, size: int | None
) -> Fraction:
    """The least ε for which the query's error is at most this."""
    subject = _checked(query).derive(table).subject
    if isinstance(query, Several):
        return least_epsilon_for_each(query, subject, error, confidence, size)
    return least_epsilon(
        lambda epsilon: Expecting(partial(query.expect, subject, epsilon)), error, confidence, size
    )


def rho_for(table: Facts, query: AnyInquiry, error: object, confidence: object, size: int | None) -> Rho:
    """The least ρ for which the query's error is at most this."""
    subject = _checked(query).derive(table).subject
    if isinstance(query, Several):
        return least_rho_for_each(query, subject, error, confidence, size)
    return least_rho(lambda at: Expecting(partial(query.expect, subject, at)), error, confidence, size)


def _checked(query: AnyInquiry) -> AnyInquiry:
    if not isinstance(query, Inquiry):
        raise BadQuery("planning needs an fp query, such as fp.count() or fp.average(f, bounds=…)")
    return query


def ask_primitive(table: Facts, asked: Facts, at: Asked, query: PrimitiveQuery, what: str) -> Reply:
    """One primitive query of what a table is made of, noted as one of the table."""
    return _noted(table, at, what, lambda: _reply(asked, at, (query,), None))


# ── noting what was asked ────────────────────────────────────────────────────────────


def _noted(table: Facts, epsilon: Asked, what: str, reply: Callable[[], Reply]) -> Reply:
    """A reply, noted with what it was charged; or that it failed, if it may have been charged then."""
    system = table.system
    if system is None:
        return reply()
    began = time()
    try:
        released, charged = reply()
    except (*NOTHING_CHARGED, BudgetExceeded):
        raise
    except BaseException:
        history.notes_of(system).add(history.Asked(began, table.made.label, what, epsilon, table.roots, None))
        raise
    history.notes_of(system).add(history.Asked(began, table.made.label, what, epsilon, table.roots, charged))
    return released, charged


# ── one action ───────────────────────────────────────────────────────────────────────


def _reply(
    table: Facts, epsilon: Asked, queries: tuple[PrimitiveQuery, ...], by: Partitioning | None
) -> Reply:
    """Send queries of a table or of its parts."""
    refuse_inside_a_lambda()
    bound = _bound(table)
    with _held(table.budgets):
        if table.budgets:
            refuse_unless_it_fits(table, epsilon)
        price = table.prices(epsilon) if table.budgets else {}
        # Before anything is charged: whatever cuts short what follows, and wherever, it is debited.
        _debit(table.budgets, price)
        try:
            observation = bound.system.act(actions.Query(bound.variable, epsilon, queries, by))
        except NOTHING_CHARGED as error:
            # Unless an attempt that got no reply came before the one that was refused.
            if not getattr(error, "may_be_charged", False):
                _debit(table.budgets, _difference({}, price))
            raise
        if isinstance(observation, Bottom):
            _debit(table.budgets, _difference({}, price))
            raise _too_expensive(table, epsilon)
        if not isinstance(observation, Answered):
            raise KernelViolation("a query was not answered")
        if table.budgets:
            _debit(table.budgets, _difference(observation.charged, price))
    return observation.released, observation.charged


def _replies(table: Facts, epsilon: Asked, by: object, questions: Mapping[Any, AnyInquiry]) -> Reply:
    """Ask every part its query, one by one: for queries of a table made of the part.

    Costs what the parallel query costs, since siblings are charged their maximum.
    """
    _, part = partition(table, by, list(questions))
    each = [
        prepared_of(part(number), epsilon, question) for number, question in enumerate(questions.values())
    ]
    refuse_unless_it_fits(table, epsilon)
    released: list[Released] = []
    charged: dict[str, Fraction] = {}
    for asked, prepared in each:
        (of_part,), amounts = _reply(asked, epsilon, (prepared.primitive,), None)
        released.append(of_part)
        charged |= {root: charged.get(root, ZERO) + amount for root, amount in amounts.items()}
    return tuple(released), charged


def _bound(table: Facts) -> Bound:
    """Where a table is bound: a public one that is in no system goes to the reference engine's."""
    if isinstance(table.binding, Bound):
        return table.binding
    system = system_for("reference")
    return Bound(system, table.binding.variable_in(system))


def _debit(budgets: Iterable[Budget], amounts: Mapping[str, Fraction]) -> None:
    for budget in budgets:
        budget.spend(amounts)


def _difference(charged: Mapping[str, Fraction], debited: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """What is still to be debited of a charge, by root: less than nothing where it was too much."""
    return {root: charged.get(root, ZERO) - debited.get(root, ZERO) for root in {*charged, *debited}}


# ── refusing ─────────────────────────────────────────────────────────────────────────


def refuse_unless_it_fits(table: Facts, epsilon: Asked) -> None:
    """BudgetExceeded unless a query at ε fits the budgets, those handed on among them."""
    left = table.left()
    if any(price > left[root] for root, price in table.prices(epsilon).items()):
        raise _too_expensive(table, epsilon)


def _too_expensive(table: Facts, epsilon: Asked) -> BudgetExceeded:
    """⊥, with what it would have cost and what to do."""
    left, prices = table.left(), table.prices(epsilon)
    root = max(prices, key=lambda root: prices[root] - left[root])
    factor = table.scaling_factor()
    affordable = _affordable(table, epsilon, prices, left)
    letter = "ρ" if isinstance(epsilon, Rho) else "ε"
    advice = f"{letter} ≤ {show_down(affordable)} would fit." if affordable else "Nothing is left to spend."
    return BudgetExceeded(
        f"{show_at(epsilon)} on a table with scaling factor {factor} "
        f"would cost {show_up(prices[root])} of {table.root_labels()[root]!r}, "
        f"which has {show_down(left[root])} left. Nothing was charged. {advice}",
        price=prices[root],
        remaining=left[root],
    )


def _affordable(
    table: Facts, at: Asked, prices: Mapping[str, Fraction], left: Mapping[str, Fraction]
) -> Fraction:
    """An ε or a ρ that would fit: the largest, as a rule; 0 if none was found."""
    if isinstance(at, Rho):
        return _in_proportion(table, at, prices, left)
    try:
        return _less_the_excess(table, at, prices, left)
    except BadEpsilon:  # too many digits: what is left is no ε
        return _in_proportion(table, at, prices, left)


def _less_the_excess(
    table: Facts, epsilon: Epsilon, prices: Mapping[str, Fraction], left: Mapping[str, Fraction]
) -> Fraction:
    """An ε that a pure budget has left.

    A price grows by at most the scaling factor times ε, and once a part
    leads its siblings by exactly that: so much less, and it is what is left.
    """
    factor = table.scaling_factor()
    for _ in range(4):
        excess = max(prices[root] - left[root] for root in prices)
        if excess <= 0:
            return epsilon
        epsilon = Epsilon(epsilon - excess / factor)
        if epsilon <= 0:
            break
        prices = table.prices(epsilon)
    return max(min(left.values()), ZERO) / factor


def _in_proportion(
    table: Facts, at: Asked, prices: Mapping[str, Fraction], left: Mapping[str, Fraction]
) -> Fraction:
    """An ε or a ρ that a concentrated budget has left: prices grow as ρ does, nearly as ε² does."""
    for _ in range(8):
        share = min([left[root] / price for root, price in prices.items() if price], default=ZERO)
        root = share if isinstance(at, Rho) else Fraction(isqrt(int(share * 10**24)), 10**12)
        found = rounded((at.amount if isinstance(at, Rho) else at) * root, up=False)
        if not found:
            break
        at = Rho(found) if isinstance(at, Rho) else Epsilon(found)
        prices = table.prices(at)
        if all(price <= left[root] for root, price in prices.items()):
            return found
    return ZERO
