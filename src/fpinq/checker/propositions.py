"""The paper's propositions as executable checks, on explicit traces of adaptive clients.

Of every client, on neighbouring databases, with the base-2 mechanism:

- traces are deterministic: no two ways of a run look the same;
- the probabilities of the traces of one length sum to 1;
- similarity is an invariant: every table is within its sensitivity of its twin,
  and the parts of a partition together within that of what was partitioned;
- the theorem: p ≤ q·2^(Σ (B − B′)·d) for every trace, both ways round.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from fpinq.checker.mechanisms import base2_answers
from fpinq.checker.scope import ASKED, PARTITIONINGS, UNARY, start
from fpinq.checker.worlds import ROOTS, Neighbours, neighbours
from fpinq.engines.reference import Database, compute, distance
from fpinq.model import accounts
from fpinq.model.accounts import Part, Root, Sensitivity, Source
from fpinq.model.actions import Action, AskBudget, AskPrice, AskScale, Assign, Partition, Query, Silent
from fpinq.model.plans import Term
from fpinq.model.semantics import Configuration
from fpinq.model.traces import Answered, Client, Observation, Trace, traces
from fpinq.model.transformations import Concat, PartOf

LENGTH = 4
BUDGETS = (4, 4)


@dataclass
class Findings:
    """How much was checked, and what failed."""

    clients: int = 0
    pairs: int = 0
    traces: int = 0
    failures: int = 0


@dataclass(frozen=True)
class Adaptive:
    """A client that starts with some actions and goes on depending on the last answer it saw."""

    opening: tuple[Action, ...]
    after_zero: Action
    otherwise: Action

    def __call__(self, seen: tuple[Observation, ...]) -> Action:
        if len(seen) < len(self.opening):
            return self.opening[len(seen)]
        answers = [observation.released for observation in seen if isinstance(observation, Answered)]
        return self.after_zero if answers and answers[-1][0] == 0 else self.otherwise


def clients() -> Iterator[Client]:
    """Clients over a partition, a merged part and a grouping, adaptive in their last two actions."""
    by = PARTITIONINGS["by k"]
    openings: list[tuple[Action, ...]] = [
        (Partition(("p", "q"), "A", by),),
        (Assign("p", UNARY["group_by k"], ("A",)), Partition(("q", "r"), "p", by)),
        (Partition(("q", "r"), "A", by), Assign("p", Concat(), ("q", "B"))),
    ]
    then: list[Action] = [
        Silent(),
        AskScale("p"),
        AskBudget(),
        AskPrice("q", Fraction(2)),
        _query("p", 1),
        _query("q", 2),
        _query("A", 2),
        Query("A", Fraction(1), (ASKED, ASKED), PARTITIONINGS["by v"]),
    ]
    asked: list[Action] = [_query("p", 1), _query("q", 2)]
    for opening, first, after_zero, otherwise in product(openings, asked, then, then):
        yield Adaptive((*opening, first), after_zero, otherwise)


def check_propositions(pairs: list[Neighbours] | None = None) -> Findings:
    """Every client against every proposition."""
    found = Findings()
    chosen = pairs or neighbours(2)[::25]
    found.pairs = len(chosen)
    for client in clients():
        found.clients += 1
        for pair in chosen:
            found.failures += not holds(client, pair, found)
    return found


def holds(client: Client, pair: Neighbours, found: Findings) -> bool:
    """Whether every proposition holds of a client on two neighbours."""
    worst = base2_answers(pair.left, pair.left), base2_answers(pair.right, pair.left)
    left, right = (list(traces(client, start(BUDGETS), answers, LENGTH)) for answers in worst)
    found.traces += len(left) + len(right)
    return (
        are_deterministic(left)
        and are_deterministic(right)
        and sum_to_one(left)
        and sum_to_one(right)
        and all(is_similar(trace.configuration, pair) for trace in left)
        and is_private(left, right, pair.apart)
        and is_private(right, left, pair.apart)
    )


def are_deterministic(run: list[Trace]) -> bool:
    """The same trace never has two probabilities or two ends."""
    return len({repr(trace.observations) for trace in run}) == len(run)


def sum_to_one(run: list[Trace]) -> bool:
    """The traces of one length are all there is."""
    return sum(trace.probability for trace in run) == 1


def is_private(run: list[Trace], twin: list[Trace], apart: tuple[int, ...]) -> bool:
    """p ≤ q·2^(Σ (B − B′)·d), 0 ≤ B′ ≤ B, and the same public state at the end."""
    for here, there in zip(run, twin, strict=True):
        spent = [here.configuration.accounts.counters.get(Root(root), Fraction(0)) for root in ROOTS]
        exponent = sum((c * d for c, d in zip(spent, apart, strict=True)), Fraction(0))
        same = here.observations == there.observations and here.configuration == there.configuration
        within = all(0 <= c <= total for c, total in zip(spent, BUDGETS, strict=True))
        if not (same and within and here.probability <= there.probability * 2 ** int(exponent)):
            return False
    return True


def is_similar(c: Configuration, pair: Neighbours) -> bool:
    """(T) |t ⊖ t′| ≤ v·d for every table, (G) Σ d_p ≤ c_π·d for every partition, (M) the certificate."""
    accounts.certify(c.accounts)
    d: dict[Source, int] = dict(zip(map(Root, ROOTS), pair.apart, strict=True))
    away = {name: _away(c, name, pair.left, pair.right) for name in c.environment}
    for name, table in c.environment.items():
        if isinstance(table.plan, Term) and isinstance(table.plan.transformation, PartOf):
            d[next(iter(table.sensitivity))] = away[name]
    tables = all(away[name] <= _times(table.sensitivity, d) for name, table in c.environment.items())
    partitions = all(
        sum(d[Part(number, index)] for index in range(account.parts)) <= _times(account.sensitivity, d)
        for number, account in c.accounts.partitions.items()
    )
    return tables and partitions


def _query(table: str, epsilon: int) -> Query:
    return Query(table, Fraction(epsilon), (ASKED,))


def _away(c: Configuration, name: str, left: Database, right: Database) -> int:
    plan = c.environment[name].plan
    return distance(compute(plan, left), compute(plan, right))


def _times(sensitivity: Sensitivity, d: dict[Source, int]) -> int:
    return sum(s * d[source] for source, s in sensitivity.items())
