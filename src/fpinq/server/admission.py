"""Admission: what is asked of a measurement before it is charged for.

Everything here is decided by public numbers: the plan, ε, the limits, and what
the owner said of the size of the data. So a refusal is the same on neighbouring
data, and what is admitted is done in time on a machine that is large enough: a
failure after the charge is a defect of the machine, not an answer.
"""

from fractions import Fraction

from fpinq.model.costs import Costs
from fpinq.model.errors import BadEpsilon, BadQuery
from fpinq.model.nesting import operators_in
from fpinq.model.notions import Amount, Rho
from fpinq.model.plans import Flatten, Plan, Term, bounded_stability, roots_of, rows_at_most
from fpinq.model.semantics import Measure
from fpinq.model.work import Bounds, RootSize
from fpinq.runtime.refusals import TooLarge
from fpinq.server.limits import Limits

# Beyond so many units nobody minds how many exactly.
MANY = 10**30


class Admission:
    """The public limits, the sizes of the data sets that they are asked of, and what their engines take.

    `rootless`: what the engine takes that holds none of them.
    """

    def __init__(self, limits: Limits, rootless: Costs) -> None:
        self._limits = limits
        self._sizes: dict[str, RootSize] = {}
        self._rootless = rootless
        self._costs: dict[str, Costs] = {}
        self._bounds: dict[str, Bounds] = {}

    def add(self, root: str, size: RootSize, costs: Costs) -> None:
        """One more data set, of a size that its owner promised, in an engine that takes so much."""
        self._sizes[root], self._costs[root] = size, costs

    def check(self, label: Measure) -> None:
        """BadEpsilon, BadQuery or TooLarge, before the charge, unless a measurement is within the limits."""
        self._check_epsilon(label)
        self._limits.check_queries(label.queries, label.parts_each)
        self._check_plan(label.plan)
        self._check_work(label)

    def _check_epsilon(self, label: Measure) -> None:
        least = self._limits.epsilon_at_least
        if roots_of(label.plan):
            _check_at_least(label.epsilon, least)
        if has_no_rows(label.plan):
            raise BadQuery("no person has a row of this table: no question is free, and this one would be")

    def _check_plan(self, plan: Plan) -> None:
        limits = self._limits
        if isinstance(plan, Term) and plan.depth > limits.plan_depth:
            raise TooLarge(f"a table is made in at most {limits.plan_depth} steps")
        if isinstance(plan, Term) and plan.nodes > limits.plan_nodes:
            most = limits.plan_nodes
            raise TooLarge(f"a table is made of at most {most} tables, each counted as often as used")
        if isinstance(plan, Term) and plan.levels > limits.plan_levels:
            raise TooLarge(
                f"a table nests at most {limits.plan_levels} levels: "
                "fewer steps with deep expressions on top of each other"
            )
        if rows_per_record(plan) > limits.rows_per_record:
            most = limits.rows_per_record
            raise TooLarge(f"one record may change at most {most} rows of a table (its scaling factor)")

    def _check_work(self, label: Measure) -> None:
        limits, costs = self._limits, self._costs_of(label.plan)
        weighed = isinstance(label.epsilon, Rho)
        work = self._bounds_of(costs).work(label.plan, label.by, label.queries, weighed=weighed)
        if work.record > limits.work_per_record:
            raise TooLarge(
                f"one record could be {_shown(work.record)} units of work here, "
                f"and may be {limits.work_per_record}: "
                "ask for shorter texts (substring), fewer rows or candidates; "
                f"the owner can say how long texts are (max_length){_dear(costs, label)}"
            )
        if work.query > limits.work_per_query:
            raise TooLarge(
                f"this could be {_shown(work.query)} units of work, and may be {limits.work_per_query}: "
                "ask less of each row; the owner can say how long texts are (max_length) "
                f"and how many rows there are (rows_at_most){_dear(costs, label)}"
            )

    def _costs_of(self, plan: Plan) -> Costs:
        """What the engine takes that holds the roots of a plan; one with roots in several is refused next."""
        roots = roots_of(plan)
        return self._costs[min(roots)] if roots else self._rootless

    def _bounds_of(self, costs: Costs) -> Bounds:
        return self._bounds.setdefault(costs.engine, Bounds(self._sizes, costs))


def _check_at_least(at: Amount, least: Fraction) -> None:
    """BadEpsilon unless so much is asked for; of ρ, what a query at the least ε costs at the most."""
    if isinstance(at, Rho):
        if at.amount < least**2 / 2:
            raise BadEpsilon(f"ρ is at least {least**2 / 2} here: no question is free; see /limits")
    elif at < least:
        raise BadEpsilon(f"ε is at least {least} here: no question is free; see /limits")


def _shown(units: int) -> str:
    """A number of units; Python does not write down one with thousands of digits."""
    return str(units) if units < MANY else f"more than {MANY}"


def _dear(costs: Costs, label: Measure) -> str:
    """What makes it expensive, where that is the engine."""
    return costs.dear(operators_in((label.plan, label.by, label.queries)))


def rows_per_record(plan: Plan) -> int:
    """How many rows of a table one record may change."""
    found: dict[int, int] = {}

    def of(node: Plan) -> int:
        if id(node) not in found:
            if isinstance(node, Term):
                below = [of(argument) for argument in node.arguments]
                if isinstance(node.transformation, Flatten):
                    stability: tuple[int, ...] = (rows_at_most(node.transformation.body),)
                else:
                    stability = bounded_stability(node.transformation, [rows > 0 for rows in below])
                found[id(node)] = sum(c * rows for c, rows in zip(stability, below, strict=True))
            else:
                found[id(node)] = 1
        return found[id(node)]

    return of(plan)


def has_no_rows(plan: Plan) -> bool:
    """Whether a plan reads persons of whom it can have no row: its root is read, and charged nothing."""
    seen: dict[int, Plan] = {}
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, Term):
            continue
        if isinstance(node.transformation, Flatten) and not rows_at_most(node.transformation.body):
            return True
        seen[id(node)] = node
        waiting += node.arguments
    return False
