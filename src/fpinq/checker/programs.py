"""Every program of a scope against the theorem.

Adaptivity costs nothing in the search: a trace's probability is a product along
one path and the accounting is a function of that path, so all adaptive programs
reduce to all action sequences with all answers. Of a base-2 answer, 0 against
the first run's own table is the worst: its ratio is exactly 2^(ε·|T ⊖ T′|), and
answer 1 favours the second run. So the largest ratio over a program's traces is
2 to the sum of its queries' ε·|T ⊖ T′|, and comparing exponents is comparing
exact probabilities. With discrete Laplace the exponents are those of e.

At ρ, an answer with Gaussian noise loses ρ·|T ⊖ T′|² at the most, exactly that for a
count, and these add up along a path: so the sum is compared with what the roots
paid, (Σ_x d_x·√C_x)² where root x differs in d_x records. On a pure root there is no
bound at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import product
from math import isqrt
from operator import mul
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpinq.checker.mechanisms import laplace_loss, parts_of
from fpinq.checker.scope import PURE, Budgets, Question, Scope, constructions, questions, start
from fpinq.checker.worlds import ROOTS, WORLDS, Neighbours
from fpinq.engines.reference import Database, Relation, compute, distance, measure, transform
from fpinq.model.accounts import Root, paid
from fpinq.model.actions import Action, Partition, Query
from fpinq.model.errors import ProgramError
from fpinq.model.kinds import Noisy
from fpinq.model.notions import Rho, pure
from fpinq.model.plans import Flatten, Plan, Term
from fpinq.model.semantics import Bottom, Configuration, Measure, step
from fpinq.model.transformations import Partitioning

if TYPE_CHECKING:
    from fpinq.checker.interleavings import Breach

# Losses are whole numbers of a sixth of ε = 1, so that adding them is exact and fast.
UNITS = 6
# More than any budget of a scope.
WITHOUT_END = 10**6
Losses = NDArray[np.int64]
Program = tuple[Action, ...]


@dataclass(frozen=True)
class Violation:
    """A program and two neighbouring databases on which the theorem fails."""

    program: Program
    neighbours: Neighbours
    budgets: Budgets
    loss: Fraction
    allowed: Fraction
    world: str = "tiny"
    concentrated: tuple[bool, bool] = PURE


@dataclass
class Report:
    """What a check covered.

    A program is an action sequence under one pair of budgets; distinct counts
    the sequences alone. traces are those whose probabilities the check bounds:
    all answers of all queries.
    """

    programs: int = 0
    distinct: int = 0
    checks: int = 0
    traces: int = 0
    refusals: int = 0
    rejected: int = 0
    tightest: Fraction = Fraction(0)
    violations: "list[Violation | Breach]" = field(default_factory=list)

    def add(self, other: "Report") -> None:
        """Take another report into this one."""
        self.programs += other.programs
        self.distinct += other.distinct
        self.checks += other.checks
        self.traces += other.traces
        self.refusals += other.refusals
        self.rejected += other.rejected
        self.tightest = max(self.tightest, other.tightest)
        self.violations += other.violations


class Pairs:
    """The neighbours of a scope, with every plan computed once on every database."""

    def __init__(self, pairs: list[Neighbours]) -> None:
        # Sorted by how far the roots are apart: pairs of one kind share a bound.
        self.pairs = sorted(pairs, key=lambda pair: pair.apart)
        self.kinds = sorted({pair.apart for pair in pairs})
        self.starts = [next(i for i, p in enumerate(self.pairs) if p.apart == kind) for kind in self.kinds]
        numbers: dict[str, int] = {}
        self._databases: list[Database] = []
        self._sides = [
            tuple(self._number(numbers, side) for side in (pair.left, pair.right)) for pair in self.pairs
        ]
        self._tables: dict[Plan, list[Relation]] = {}
        self._losses: dict[tuple[Plan, Partitioning | None, Noisy | str | None], Losses] = {}

    def _number(self, numbers: dict[str, int], database: Database) -> int:
        number = numbers.setdefault(repr(database), len(numbers))
        if number == len(self._databases):
            self._databases.append(database)
        return number

    def tables(self, plan: Plan) -> list[Relation]:
        """The plan's table on every database."""
        if plan not in self._tables:
            if isinstance(plan, Term) and plan.arguments and not isinstance(plan.transformation, Flatten):
                arguments = zip(*(self.tables(argument) for argument in plan.arguments), strict=True)
                self._tables[plan] = [transform(plan.transformation, *tables) for tables in arguments]
            else:
                self._tables[plan] = [compute(plan, database) for database in self._databases]
        return self._tables[plan]

    def loss(self, plan: Plan, by: Partitioning | None, laplace: Noisy | None) -> Losses:
        """The largest log-ratio that a query's answers can have at ε = 1, for every pair."""
        key = (plan, by, laplace)
        if key not in self._losses:
            if by is None:
                tables = self.tables(plan)
                self._losses[key] = np.array([_loss(tables[i], tables[j], laplace) for i, j in self._sides])
            else:
                parts = [Term(part, (plan,)) for part in parts_of(by)]
                self._losses[key] = np.sum([self.loss(part, None, laplace) for part in parts], axis=0)
        return self._losses[key]

    def squares(self, plan: Plan, by: Partitioning | None, concentrated: tuple[bool, bool]) -> Losses:
        """What a query loses at ρ = 1, for every pair: with Gaussian noise, of a pure root, without end."""
        key = (plan, by, f"squares {concentrated}")
        if key not in self._losses:
            parts = [plan] if by is None else [Term(part, (plan,)) for part in parts_of(by)]
            each: list[Losses] = [self.loss(part, None, None) ** 2 for part in parts]
            only_pure = [not any(map(mul, pair.apart, concentrated)) for pair in self.pairs]
            self._losses[key] = np.sum(each, axis=0) * np.where(only_pure, WITHOUT_END, 1)
        return self._losses[key]


def _loss(here: Relation, there: Relation, laplace: Noisy | None) -> int:
    if laplace is None:
        return distance(here, there)
    assert laplace.sensitivity == 1, "the losses are whole only then"
    left, right = (laplace.exact(measure(t, None, [laplace.statistic])[0]) for t in (here, there))
    return laplace_loss(left, right)


@cache
def shared_pairs(world: str = "tiny") -> Pairs:
    """The pairs of every scope of a world; a process computes its plans once."""
    return Pairs(WORLDS[world].neighbours())


def check(scope: Scope, laplace: Noisy | None, shard: int = 0, shards: int = 1) -> Report:
    """One shard of a scope, with the base-2 mechanism or with discrete Laplace on a query."""
    report = Report()
    for found in reports(scope, laplace, shard, shards):
        report.add(found)
    return report


def reports(scope: Scope, laplace: Noisy | None = None, shard: int = 0, shards: int = 1) -> Iterator[Report]:
    """Many small reports, those of the shortest programs first."""
    sizes = product(range(scope.constructions + 1), range(1, scope.queries + 1), scope.budgets)
    for constructed, queries, budgets in sorted(sizes, key=lambda size: (size[0] + size[1], size)):
        length = constructed + queries
        pairs = shared_pairs(scope.world)
        nothing = np.zeros(len(pairs.pairs), dtype=np.int64)
        root = _Node(
            start(budgets, scope.world, scope.concentrated), (), nothing, 1, constructed, queries, ()
        )
        scout = _Search(scope, laplace, budgets, pairs, Report(), length)
        for number, node in enumerate(scout.prefixes(root)):
            if number % shards == shard:
                search = _Search(scope, laplace, budgets, pairs, Report(), length)
                search.extend(node)
                yield search.report
        # Every shard walks through all the beginnings; one of them reports what it met there.
        if shard == 0:
            yield scout.report


@dataclass(frozen=True)
class _Node:
    """A program so far: where it is, what it may have lost, and what is still to come."""

    configuration: Configuration
    program: Program
    losses: Losses
    traces: int
    constructions: int
    queries: int
    unused: tuple[str, ...]


@dataclass
class _Search:
    scope: Scope
    laplace: Noisy | None
    budgets: Budgets
    pairs: Pairs
    report: Report
    length: int

    def prefixes(self, node: _Node) -> Iterator[_Node]:
        """The programs' beginnings: pieces of work small enough to share out and to stop between."""
        if len(node.program) == min(2, self.length - 1):
            yield node
        else:
            for longer in self.successors(node):
                yield from self.prefixes(longer)

    def extend(self, node: _Node) -> None:
        """Every program that begins like this."""
        for longer in self.successors(node):
            if longer.constructions or longer.queries:
                self.extend(longer)
            else:
                self.conclude(longer)

    def successors(self, node: _Node) -> Iterator[_Node]:
        c, last = node.configuration, node.constructions + node.queries == 1
        asked = any(isinstance(action, Query) for action in node.program)
        if node.constructions and not last and (self.scope.interleaved or not asked):
            for action in constructions(self.scope, c, len(node.program)):
                try:
                    built = step(c, action).configuration
                except ProgramError:
                    self.report.rejected += 1
                    continue
                made = tuple(action.targets) if isinstance(action, Partition) else (action.target,)
                yield _Node(
                    built,
                    (*node.program, action),
                    node.losses,
                    node.traces,
                    node.constructions - 1,
                    node.queries,
                    made,
                )
        if node.queries and (self.scope.interleaved or not node.constructions):
            for question in questions(self.scope, c):
                # A program that never asks its newest table is a shorter one.
                used = isinstance(question, Query) and question.table in node.unused
                unused = () if used else node.unused
                if last and unused:
                    continue
                try:
                    yield self.asked(node, question, unused)
                except ProgramError:
                    self.report.rejected += 1

    def asked(self, node: _Node, question: Question, unused: tuple[str, ...]) -> _Node:
        transition = step(node.configuration, question)
        label, losses, traces = transition.label, node.losses, node.traces
        if isinstance(label, Measure):
            losses = losses + self.lost(label)
            # A discrete Laplace answer is one of infinitely many, covered by its window.
            traces *= 2**label.parts if self.laplace is None else 1
        self.report.refusals += isinstance(label, Bottom)
        program = (*node.program, question)
        queries = node.queries - 1
        return _Node(transition.configuration, program, losses, traces, node.constructions, queries, unused)

    def lost(self, label: Measure) -> Losses:
        """What a query's answers can tell, in units, for every pair."""
        if isinstance(label.epsilon, Rho):
            squares = self.pairs.squares(label.plan, label.by, self.scope.concentrated)
            return squares * _in_units(label.epsilon.amount)
        return self.pairs.loss(label.plan, label.by, self.laplace) * _in_units(pure(label.epsilon))

    def conclude(self, node: _Node) -> None:
        """The theorem for one program: 0 ≤ B′ ≤ B and p ≤ q·2^(Σ (B − B′)·d), on every pair."""
        report, pairs, losses = self.report, self.pairs, node.losses
        report.programs += 1
        report.distinct += self.budgets == self.scope.budgets[0] and self.laplace is None
        report.checks += len(pairs.pairs)
        report.traces += node.traces
        charged = [paid(node.configuration.accounts, Root(root)) for root in ROOTS]
        worst = np.maximum.reduceat(losses, pairs.starts).tolist()
        for kind, first, units in zip(pairs.kinds, pairs.starts, worst, strict=True):
            loss = Fraction(units, UNITS)
            allowed = self.allowed(charged, kind)
            if loss and allowed > 0:
                report.tightest = max(report.tightest, loss / allowed)
            if loss > allowed:
                at = first + next(i for i, one in enumerate(losses[first:]) if one > allowed * UNITS)
                lost = Fraction(int(losses[at]), UNITS)
                report.violations.append(self.violation(node, at, lost, allowed))
        if not all(0 <= spent <= total for spent, total in zip(charged, self.budgets, strict=True)):
            report.violations.append(self.violation(node, 0, Fraction(0), Fraction(0)))

    def allowed(self, charged: Sequence[Fraction], kind: Sequence[int]) -> Fraction:
        """What is charged for: Σ d·C; of budgets of ρ (Σ d·√C)², rounded down as losses are in units.

        Of roots of two notions together there is no theorem.
        """
        if not any(self.scope.concentrated) or not all(kind):
            return sum((spent * d for spent, d in zip(charged, kind, strict=True)), Fraction(0))
        if not all(self.scope.concentrated):
            return Fraction(WITHOUT_END)
        a, b = (spent * d * d for spent, d in zip(charged, kind, strict=True))
        return a + b + Fraction(isqrt(int(4 * a * b * UNITS**2)), UNITS)

    def violation(self, node: _Node, pair: int, loss: Fraction, allowed: Fraction) -> Violation:
        """A program that loses more than is allowed on a pair, or charges what there is not."""
        neighbours, scope = self.pairs.pairs[pair], self.scope
        budgets = self.budgets
        return Violation(node.program, neighbours, budgets, loss, allowed, scope.world, scope.concentrated)


def _in_units(epsilon: Fraction) -> int:
    units = epsilon * UNITS
    assert units.denominator == 1, "losses are counted in whole units"
    return int(units)
