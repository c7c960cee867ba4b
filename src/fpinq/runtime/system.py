"""The protected system: charge, measure, draw, record, release. In that order, always.

It joins the kernel's rules, which the record runs, with an engine and the
mechanisms; a client holds nothing but names of tables. What a client program
learns, it learns from `act`.
"""

import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import repeat
from typing import Any

from fpinq.engines.interface import Asked, Engine
from fpinq.engines.owner import in_our_words, noted
from fpinq.ledger import Answered, Observation, Registered, Released
from fpinq.model.actions import Action
from fpinq.model.closed import each_once
from fpinq.model.environments import Numbered, TableVariable
from fpinq.model.errors import (
    BadData,
    BadTransformation,
    DataChanged,
    EngineError,
    KernelViolation,
    ProgramError,
)
from fpinq.model.notions import Amount, Total, share_of
from fpinq.model.plans import Plan, Shape, roots_of
from fpinq.model.queries import Count, Several, SimpleQuery, shares, simple
from fpinq.model.semantics import Configuration, Label, Measure, Table
from fpinq.model.statistics import Integers, Statistic
from fpinq.model.transformations import Partitioning
from fpinq.runtime import deadline
from fpinq.runtime.mechanisms import draw, draw_each, together
from fpinq.runtime.record import InMemory, Recorder
from fpinq.runtime.statistics import Statistics

# The public maximal lengths of texts, by table and column.
Lengths = Mapping[str, Mapping[str, int]]
Mechanism = Callable[[SimpleQuery, Integers, Amount], Released]
# The same of every part, of a query of each or of one of all.
Alike = Callable[[Sequence[SimpleQuery], Sequence[Integers], Amount], tuple[Released, ...]]
# Raises what refuses a measurement, from public numbers alone, before it is charged for.
Admit = Callable[[Measure], None]
# What is asked of a part that is asked no more, and at which share of ε or ρ: it is not drawn for.
NOTHING = (Count(), Fraction(0))


def one_by_one(mechanism: Mechanism) -> Alike:
    """A mechanism of one part, of every part."""

    def each(
        queries: Sequence[SimpleQuery], measured: Sequence[Integers], at: Amount
    ) -> tuple[Released, ...]:
        of_each = queries if len(queries) > 1 else repeat(queries[0])
        return tuple(map(mechanism, of_each, measured, repeat(at)))

    return each


class ProtectedSystem:
    """Runs programs over an engine. Any number of them may act at the same time.

    Each session is a program with table variables of its own; without one, the
    program is the system's own.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        record: Recorder | None = None,
        mechanism: Mechanism = draw,
        alike: Alike | None = None,
        admit: Admit = lambda label: None,
        queries_at_most: int | None = None,
    ) -> None:
        self.engine = engine
        self._admit = admit
        self._queries_at_most = queries_at_most
        self.record: Recorder = InMemory() if record is None else record
        self._mechanism = mechanism
        self._alike = alike or (draw_each if mechanism is draw else one_by_one(mechanism))
        self._statistics = Statistics(self._scan)
        self._session = secrets.token_hex(8)
        self._roots: dict[str, Registered] = {}
        self._engine_of: dict[str, Engine] = {}
        self.lengths: dict[str, Lengths] = {}  # that the texts of each root were read with
        self._dropped: deque[TableVariable | Numbered] = deque()

    def act(
        self,
        action: Action,
        *,
        session: str | None = None,
        request_id: str | None = None,
        analyst: str | None = None,
    ) -> Observation:
        """What the client is told of its action; BOTTOM if the budget does not allow it.

        A ProgramError or DataChanged is raised before anything is charged. An
        EngineError comes after the charge, and the charge stands: a refund would tell
        about the data. After a LedgerError nothing is answered, and what reached the
        ledger stays there. A request id that was acted on is told the same again.
        """
        self._drop()
        acted = self.record.act(
            session or self._session, action, request_id, analyst, self.check, self._queries_at_most
        )
        if acted.released is not None:
            return Answered(acted.released, acted.charged)
        if not isinstance(acted.label, Measure):
            return acted.label
        if acted.seq is None:
            raise KernelViolation("a measurement without an entry")
        return Answered(self.record.answer(acted.seq, self._measure(acted.label)), acted.charged)

    @in_our_words(EngineError)
    def _measure(self, label: Measure) -> tuple[Released, ...]:
        try:
            return self._drawn(label)
        except (ProgramError, DataChanged) as error:
            # What the kernel let pass and an engine does not is the engine's failure: it was charged.
            raise EngineError(noted(error)) from None

    def _drawn(self, label: Measure) -> tuple[Released, ...]:
        """What is released of each part; where several are asked at once, one after the other."""
        if Several not in map(type, label.queries):
            return self._drawn_at(label, label.queries, (label.epsilon,))  # type: ignore[arg-type]  # none is
        rounds = [self._drawn_at(label, *each) for each in _rounds(label)]
        return tuple(map(together, label.queries * label.parts_each, zip(*rounds, strict=True)))

    def _drawn_at(
        self, label: Measure, queries: Sequence[SimpleQuery], at: Sequence[Amount]
    ) -> tuple[Released, ...]:
        """What is drawn by a query of each part, or by one of all; at an ε of each, or at one of all."""
        statistics = _statistics(queries)
        measured = self._statistics.measure(label.plan, label.schema, label.by, statistics)
        if len(at) == 1 and len(measured) > 1:
            return self._alike(queries, measured, at[0])
        return tuple(map(self._draw, queries, measured, at))

    def _draw(self, query: SimpleQuery, measured: Integers, at: Amount) -> Released:
        return self._mechanism(query, measured, at) if at else ()

    def check(self, label: Label) -> None:
        """Raise what prevents a measurement, from public facts, before it is charged for."""
        # Whether data is here and a file is the same says nothing about its records: before the charge.
        if not isinstance(label, Measure):
            return
        roots = roots_of(label.plan)
        if missing := roots - self._roots.keys():
            raise BadData(f"the data of {min(missing)!r} is not here: protect it in this process too")
        self._admit(label)
        engine = self._engine(roots)
        engine.check_unchanged(label.plan)
        engine.check_asked(self._unmeasured(label))

    def _unmeasured(self, label: Measure) -> Iterator[Asked]:
        """What an engine is going to be asked; found out when somebody looks."""
        for queries, _ in _rounds(label):
            statistics = _statistics(queries)
            asked = self._statistics.unmeasured(label.plan, label.schema, label.by, statistics)
            if asked is not None:
                yield asked

    def _engine(self, roots: Iterable[str]) -> Engine:
        """The engine that holds these roots; the system's own if there are none."""
        engine, *others = {self._engine_of[root] for root in roots} or {self.engine}
        if others:
            raise BadTransformation("these tables are in different engines: they cannot be used together")
        return engine

    def _scan(
        self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]
    ) -> Sequence[Integers]:
        return self._engine(roots_of(plan)).measure(plan, by, statistics, deadline.left())

    # ── the owner's side ─────────────────────────────────────────────────────────────

    def protect(
        self,
        name: str,
        shape: Shape,
        budget: Total,
        engine: Engine | None = None,
        lengths: Lengths | None = None,
        **facts: Any,
    ) -> Registered:
        """Add a root: a data set that an engine knows by this name, with a budget of its own.

        Without an engine, the system's own. facts are those of `Recorder.register`:
        contents, unit, caps, cap, block_of.
        """
        if name in self._roots:
            raise BadTransformation(f"{name!r} is protected already: choose another name")
        registered = self.record.register(name, shape, budget, **facts)
        self._engine_of[name] = engine or self.engine
        self.lengths[name] = lengths or {}
        self._roots[name] = registered
        return registered

    # ── public state ─────────────────────────────────────────────────────────────────

    def configuration(self, session: str | None = None, analyst: str | None = None) -> Configuration:
        """⟨E, C⟩ of a program. None of it is data."""
        self._drop()
        return self.record.configuration(session or self._session, analyst)

    def describe(
        self, variable: TableVariable, *, session: str | None = None, analyst: str | None = None
    ) -> Table:
        """E(t): a table's plan, shape and sensitivity. None of it is data."""
        return self.configuration(session, analyst).table(variable)

    def roots(self) -> Mapping[str, Registered]:
        """The data sets that are here."""
        return dict(self._roots)

    def root(self, name: str) -> Registered | None:
        """The data set of this name, if it is here."""
        return self._roots.get(name)

    def budgets(self) -> dict[str, Fraction]:
        """What every root that is here started with."""
        return {name: root.amount for name, root in self._roots.items()}

    def drop(self, variable: TableVariable | Numbered) -> None:
        """The client will not use a variable again, or several. No lock: a finalizer may call it any time."""
        self._dropped.append(variable)

    def _drop(self) -> None:
        if self._dropped:
            gone = [self._dropped.popleft() for _ in range(len(self._dropped))]
            self.record.drop(self._session, gone)


def _rounds(label: Measure) -> Iterator[tuple[Sequence[SimpleQuery], Sequence[Amount]]]:
    """What is measured at a time: a query of each part, or one of all, and at which ε.

    Where several are asked at once, it is one number of each after the other; nothing where there are fewer.
    """
    if Several not in map(type, label.queries):
        yield label.queries, (label.epsilon,)  # type: ignore[misc]  # none is
        return
    asked = [list(zip(simple(query), shares(query), strict=True)) for query in label.queries]
    for number in range(max(map(len, asked))):
        of_each = [several[number] if number < len(several) else NOTHING for several in asked]
        yield [query for query, _ in of_each], [share_of(label.epsilon, share) for _, share in of_each]


def _statistics(queries: Sequence[SimpleQuery]) -> list[Statistic]:
    """The statistic of every part; one for all, if they are the same."""
    first = queries[0].statistic
    if len(queries) == 1:
        return [first]
    of = {id(query): query.statistic for query in each_once(queries)}
    if all(other == first for other in of.values()):
        return [first]
    return [of[id(query)] for query in queries]
