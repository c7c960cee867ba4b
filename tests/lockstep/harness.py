"""Lock step: a program on D, and again on D′ with the same answers forced.

Everything visible must be equal, and what the exact statistics differ by, in
units of their sensitivity, must not exceed what was charged. It is exact and
finds stability and value-semantics bugs that sampling misses; it does not test
the sampler.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import tanh
from typing import Any

from engines.generators import Generator, Rows
from fpinq.model.actions import Action, AskBudget, AskPrice, AskScale, Assign, Partition, Query
from fpinq.model.errors import FpinqError, ProgramError
from fpinq.model.expressions import Schema
from fpinq.model.kinds import Chosen, Noisy
from fpinq.model.notions import Rho, Total, amount_of
from fpinq.model.queries import (
    Choice,
    CrossMoments,
    Depth,
    Frequencies,
    PrimitiveQuery,
    Rank,
    Ranks,
    Tree,
)
from fpinq.model.semantics import Configuration, initial, step
from fpinq.model.statistics import Integers
from fpinq.model.transformations import Concat, Except, Intersect, Union
from fpinq.runtime.system import ProtectedSystem

EPSILONS = [Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2)]
BUDGETS = [Fraction(1), Fraction(10), Fraction(1000)]


@dataclass
class Run:
    """One side: what was visible, and what was measured (which is not)."""

    visible: list[str] = field(default_factory=list)
    measured: list[tuple[PrimitiveQuery, Integers, Fraction]] = field(default_factory=list)
    charged: dict[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """Roots with their data in two versions, and the actions of a client."""

    schemas: Mapping[str, Schema]
    left: Mapping[str, Rows]
    right: Mapping[str, Rows]
    apart: Mapping[str, int]
    budgets: Mapping[str, Total]
    actions: Sequence[Action]


def run(engine: Any, program: Program, data: Mapping[str, Rows], prefix: str, forced: list[Any]) -> Run:
    """The program on one version of the data; answers are taken from forced, and made up beyond it."""
    seen = Run()

    def mechanism(query: PrimitiveQuery, statistic: Integers, epsilon: Fraction) -> Any:
        seen.measured.append((query, dict(statistic), epsilon))
        if len(forced) < len(seen.measured):
            forced.append(len(seen.measured) % 3)
        return forced[len(seen.measured) - 1]

    system = ProtectedSystem(engine, mechanism=mechanism)
    names = {root: f"{prefix}{root}" for root in program.schemas}
    for root, schema in program.schemas.items():
        given = [dict(zip(schema.names(), row, strict=True)) for row in data[root]]
        engine.add_root(names[root], given, schema=dict(schema.columns))
        system.protect(names[root], schema, program.budgets[root])
    for action in program.actions:
        try:
            observed = repr(system.act(_renamed(action, names)))
        except FpinqError as error:
            observed = repr(error)
        # The two sides use different root names in one engine; nothing else may differ.
        seen.visible.append(observed.replace(prefix, ""))
    left = system.act(AskBudget()).fact  # type: ignore[union-attr]
    seen.charged = {
        root: amount_of(program.budgets[root]) - left[name]  # type: ignore[index]
        for root, name in names.items()
    }
    return seen


def _renamed(action: Action, names: Mapping[str, str]) -> Action:
    match action:
        case Assign(target=target, transformation=transformation, arguments=arguments):
            return Assign(target, transformation, tuple(names.get(a, a) for a in arguments))
        case Partition(targets=targets, table=table, by=by):
            return Partition(targets, names.get(table, table), by)
        case Query(table=table, epsilon=epsilon, queries=queries, by=by):
            return Query(names.get(table, table), epsilon, queries, by)
        case AskScale(table=table):
            return AskScale(names.get(table, table))
        case AskPrice(table=table, epsilon=epsilon):
            return AskPrice(names.get(table, table), epsilon)
        case _:
            return action


def loss(left: Run, right: Run) -> Fraction:
    """Σ εᵢ·|qᵢ(D) − qᵢ(D′)| / Δᵢ over the queries that were answered."""
    return sum(
        (
            _loss(query, here, there, epsilon)
            for (query, here, epsilon), (_, there, _) in zip(left.measured, right.measured, strict=True)
        ),
        Fraction(0),
    )


def _loss(query: PrimitiveQuery, here: Integers, there: Integers, epsilon: Fraction) -> Fraction:
    if isinstance(query, Ranks):
        share = epsilon / len(query.fractions)
        return sum((_loss(rank, here, there, share) for rank in query.each()), Fraction(0))
    away = _away(query, here, there)
    assert query.sensitivity or not away, f"{query} has sensitivity 0 and differs"
    return epsilon * away / query.sensitivity if away else Fraction(0)


def _away(query: PrimitiveQuery, here: Integers, there: Integers) -> int:
    match query:
        case Rank():
            left, right = query.scores(here), query.scores(there)
            points = {first for first, _, _ in (*left, *right)}
            return max(abs(_score(left, x) - _score(right, x)) for x in points)
        case Depth():
            left, right = (next(query.choices(measured)).runs for measured in (here, there))
            points = {first for first, _, _ in (*left, *right)}
            return max(abs(_score(left, x) - _score(right, x)) for x in points)
        case Tree() | CrossMoments():
            nodes = zip(query.exact(here), query.exact(there), strict=True)
            return sum(abs(a - b) for a, b in nodes)
        case Choice():
            return max(abs(here.get(j, 0) - there.get(j, 0)) for j in range(len(query.of)))
        case _:
            return sum(abs(here.get(j, 0) - there.get(j, 0)) for j in here.keys() | there.keys())


def _score(runs: list[tuple[int, int, int]], point: int) -> int:
    return next(score for first, last, score in runs if first <= point <= last)


# ── at ρ ─────────────────────────────────────────────────────────────────────────────


def rho_loss(left: Run, right: Run) -> float:
    """What the answers lose in ρ: by squared L2 distances, by ranges of scores, by x·tanh(x/2) at ε."""
    return sum(
        _rho_loss(query, here, there, at)
        for (query, here, at), (_, there, _) in zip(left.measured, right.measured, strict=True)
    )


def _rho_loss(query: PrimitiveQuery, here: Integers, there: Integers, at: Any) -> float:
    if not isinstance(at, Rho):
        lost = float(_loss(query, here, there, at))
        return lost * tanh(lost / 2)
    if isinstance(query, Noisy):
        squares = sum((a - b) ** 2 for a, b in zip(query.exact(here), query.exact(there), strict=True))
        assert query.squared or not squares, f"{query} has sensitivity 0 and differs"
        return float(at.amount * squares / query.squared) if squares else 0.0
    assert isinstance(query, Chosen)
    each = zip(query.choices(here), query.choices(there), strict=True)
    return sum(
        float(at.amount / query.passes) * (_range(mine.runs, yours.runs) / (mine.sensitivity * halves)) ** 2
        for mine, yours in each
        if (halves := 1 if query.monotone else 2) and mine.sensitivity
    )


def _range(left: list[tuple[int, int, int]], right: list[tuple[int, int, int]]) -> int:
    """How far apart the changes of scores are: what all of them change by is lost on nobody."""
    points = {first for first, _, _ in (*left, *right)}
    changes = [_score(left, x) - _score(right, x) for x in points]
    return max(changes) - min(changes)


def at_rho(program: Program, generator: Generator) -> Program:
    """The same with a concentrated root, beside it another or a pure one; queries at ρ, and some at ε."""
    pure = generator.chance(40)
    budgets: dict[str, Total] = {
        root: amount_of(budget) if root == "B" and pure else Rho(amount_of(budget))
        for root, budget in program.budgets.items()
    }
    actions = [_at_rho(action, generator) for action in program.actions]
    return replace(program, budgets=budgets, actions=actions)


def _at_rho(action: Action, generator: Generator) -> Action:
    if isinstance(action, Query | AskPrice) and generator.chance(75):
        return replace(action, epsilon=Rho(Fraction(action.epsilon)))  # type: ignore[arg-type]
    return action


# ── random programs ──────────────────────────────────────────────────────────────────


def random_program(generator: Generator) -> Program:
    """A random client on random data, with one record more in one root, or in each."""
    schemas = {root: generator.schema() for root in ("A", "B")}
    left = {root: generator.rows(schema) for root, schema in schemas.items()}
    right = {root: list(rows) for root, rows in left.items()}
    apart = {"A": 1, "B": 0} if generator.chance(60) else {"A": 1, "B": 1}
    for root, extra in apart.items():
        if extra:
            row = tuple(generator.one(generator.pools[type_]) for type_ in schemas[root].types())
            right[root].insert(generator.number(0, len(right[root])), row)
    if generator.chance(50):
        left, right = right, left
    budgets = {root: generator.one(BUDGETS) for root in schemas}
    c = initial({root: (schema, budgets[root]) for root, schema in schemas.items()})
    actions: list[Action] = []
    for number in range(generator.number(2, 8)):
        action = _action(generator, c, number)
        with suppress(ProgramError):
            c = step(c, action).configuration
        actions.append(action)
    newest = list(c.environment)[-1]
    actions.append(_query(generator, c, newest))
    return Program(schemas, left, right, apart, budgets, actions)


def _action(generator: Generator, c: Configuration, number: int) -> Action:
    # The newest tables are the interesting ones.
    names = list(c.environment)
    table = names[-1] if generator.chance(50) else generator.one(names)
    schema = _schema(c, table)
    match generator.number(0, 9):
        case 0 | 1 | 2:
            return Assign(f"t{number}", generator._of_one(schema), (table,))
        case 3 | 4:
            return _of_two(generator, c, table, f"t{number}")
        case 5 | 6:
            by = generator.partitioning(schema)
            return Partition(tuple(f"t{number}.{i}" for i in range(len(by.keys))), table, by)
        case 7:
            return generator.one([AskScale(table), AskBudget(), AskPrice(table, Fraction(1))])  # type: ignore[no-any-return]
        case _:
            return _query(generator, c, table)


def _of_two(generator: Generator, c: Configuration, left: str, target: str) -> Action:
    same = [name for name in c.environment if _schema(c, name) == _schema(c, left)]
    if generator.chance(50):
        bag = generator.chance(50)
        transformation = generator.one([Concat(), Union(bag), Intersect(bag), Except(bag)])
        return Assign(target, transformation, (left, generator.one(same)))
    right = generator.one(list(c.environment))
    transformation = generator.join_of(_schema(c, left), _schema(c, right))
    return Assign(target, transformation, (left, right))


def _query(generator: Generator, c: Configuration, table: str) -> Query:
    schema = _schema(c, table)
    epsilon = generator.one(EPSILONS)
    if generator.chance(30):
        by = generator.partitioning(schema)
        return Query(table, epsilon, tuple(_primitive(generator, schema) for _ in by.keys), by)
    return Query(table, epsilon, (_primitive(generator, schema),))


def _primitive(generator: Generator, schema: Schema) -> PrimitiveQuery:
    """A query of an engine's, or one that the mechanisms make of its statistic."""
    query = generator.query(schema)
    if isinstance(query, Frequencies) and query.of.width < 2**12 and generator.chance(50):
        return Tree(query.of, generator.number(2, 4), generator.number(1, 4))
    if isinstance(query, Rank) and generator.chance(50):
        return Ranks(query.of, (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)))
    return query


def _schema(c: Configuration, table: str) -> Schema:
    shape = c.environment[table].shape
    assert isinstance(shape, Schema)
    return shape
