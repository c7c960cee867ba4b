"""Asking: queries of a table. Each is one action; a refusal is BudgetExceeded, and nothing is charged."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from fractions import Fraction
from typing import Any, TypeVar

from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.budgets import Budget
from fpinq.client.facts import Bound, Facts
from fpinq.client.parts import partition, partitioning
from fpinq.client.planning import ExpectedError, expected_error, least_epsilon
from fpinq.client.queries import Prepared, Query
from fpinq.client.spelling import show_down, show_up
from fpinq.client.systems import system_for
from fpinq.client.tracing import refuse_inside_a_lambda
from fpinq.model import actions
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import BadQuery, BudgetExceeded, DataChanged, KernelViolation, ProgramError
from fpinq.model.queries import PrimitiveQuery
from fpinq.model.semantics import Bottom
from fpinq.model.transformations import Partitioning
from fpinq.runtime import Answered, Released
from fpinq.runtime.refusals import TooManyRequests

ZERO = Fraction(0)
# What a system raises of a query that it did not charge. After anything else it may have.
NOTHING_CHARGED = (ProgramError, DataChanged, TooManyRequests)

A = TypeVar("A", bound=Answer | Answers)
Question = Query[Answer | Answers]
# What each query released, and what was charged to each root, by its name in the system.
Reply = tuple[tuple[Released, ...], Mapping[str, Fraction]]


def ask(table: Facts, epsilon: Epsilon, query: Query[A]) -> A:
    """One query of a table."""
    asked, prepared = _prepared(table, epsilon, query)
    (released,), charged = _reply(asked, epsilon, (prepared.primitive,), None)
    return prepared.read(released, asked.by_root(charged))


def ask_parts(
    table: Facts,
    epsilon: Epsilon,
    query: Question | Mapping[Any, Question],
    by: object,
    keys: Iterable[object] | None,
) -> Answers:
    """A query of each part of a table: the same of all, or each its own. All for the price of one."""
    if isinstance(query, Mapping):
        if keys is not None:
            raise BadQuery("the keys of the dict say which parts there are: leave keys=… out")
        keys = list(query)
    parts, labels = partitioning(table.subject, by, keys)
    questions = [query] * len(labels) if isinstance(query, Query) else list(query.values())
    if not all(isinstance(question, Query) for question in questions):
        raise BadQuery("each part needs an fp query, such as fp.count() or fp.average(f, bounds=…)")
    each = [_prepared(table, epsilon, question) for question in questions]
    if all(asked is table for asked, _ in each):
        released, amounts = _reply(table, epsilon, tuple(prepared.primitive for _, prepared in each), parts)
    else:
        released, amounts = _replies(table, epsilon, by, dict(zip(labels, questions, strict=True)))
    charged: Charged = table.by_root(amounts)
    answers = [prepared.read(r, charged) for (_, prepared), r in zip(each, released, strict=True)]
    return Answers(dict(zip(labels, answers, strict=True)), epsilon, charged)


def _prepared(table: Facts, epsilon: Epsilon, query: Query[A]) -> tuple[Facts, Prepared[A]]:
    """The table that a query is asked of, and what is asked of it."""
    asked = query.derive(table)
    return asked, query.prepare(asked.subject, epsilon)


# ── planning: all of it is free ──────────────────────────────────────────────────────


def expect(table: Facts, epsilon: Epsilon, query: Question, size: int | None) -> ExpectedError:
    """How far the answer of a query at ε will be off."""
    _, prepared = _prepared(table, epsilon, _checked(query))
    return expected_error(prepared, epsilon, size)


def epsilon_for(
    table: Facts, query: Question, error: object, confidence: object, size: int | None
) -> Fraction:
    """The least ε for which the query's error is at most this."""
    subject = _checked(query).derive(table).subject
    return least_epsilon(lambda epsilon: query.prepare(subject, epsilon), error, confidence, size)


def _checked(query: Question) -> Question:
    if not isinstance(query, Query):
        raise BadQuery("planning needs an fp query, such as fp.count() or fp.average(f, bounds=…)")
    return query


# ── one action ───────────────────────────────────────────────────────────────────────


def _reply(
    table: Facts, epsilon: Epsilon, queries: tuple[PrimitiveQuery, ...], by: Partitioning | None
) -> Reply:
    """Send queries of a table or of its parts."""
    refuse_inside_a_lambda()
    bound = _bound(table)
    with ExitStack() as locks:
        for budget in sorted(table.budgets, key=id):
            locks.enter_context(budget.lock)
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
        _debit(table.budgets, _difference(observation.charged, price))
    return observation.released, observation.charged


def _replies(table: Facts, epsilon: Epsilon, by: object, questions: Mapping[Any, Question]) -> Reply:
    """Ask every part its query, one by one: for queries of a table made of the part.

    Costs what the parallel query costs, since siblings are charged their maximum.
    """
    _, parts = partition(table, by, list(questions))
    each = [_prepared(parts[key], epsilon, question) for key, question in questions.items()]
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


def refuse_unless_it_fits(table: Facts, epsilon: Epsilon) -> None:
    """BudgetExceeded unless a query at ε fits the budgets, those handed on among them."""
    left = table.left()
    if any(price > left[root] for root, price in table.prices(epsilon).items()):
        raise _too_expensive(table, epsilon)


def _too_expensive(table: Facts, epsilon: Epsilon) -> BudgetExceeded:
    """⊥, with what it would have cost and what to do."""
    left, prices = table.left(), table.prices(epsilon)
    root = max(prices, key=lambda root: prices[root] - left[root])
    factor = table.scaling_factor()
    affordable = _affordable(table, epsilon, prices, left)
    advice = f"ε ≤ {show_down(affordable)} would fit." if affordable else "Nothing is left to spend."
    return BudgetExceeded(
        f"ε = {show_up(epsilon)} on a table with scaling factor {factor} "
        f"would cost {show_up(prices[root])} of {table.root_labels()[root]!r}, "
        f"which has {show_down(left[root])} left. Nothing was charged. {advice}",
        price=prices[root],
        remaining=left[root],
    )


def _affordable(
    table: Facts, epsilon: Epsilon, prices: Mapping[str, Fraction], left: Mapping[str, Fraction]
) -> Fraction:
    """An ε that would fit: the largest, as a rule; 0 if none was found.

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
