"""Sessions that share budgets: every interleaving of a few of them, against the theorem and one program.

Of every interleaving of a meeting, after every move:

- the theorem of all sessions together, p ≤ q·2^(Σ C·d) where C is what they were charged, and C ≤ B;
  and of each analyst with a cap alone, with C of their own sessions, and C ≤ cap;
- sessions are one program: they are charged what a single program would be that had done all of it, and
  a query is refused only if that would be beyond a budget, or the analyst's part of it beyond a cap;
- what is spent of an account is what was charged, rounded up by less than a unit for each session;
- without a measurement nothing is charged, and of what is frozen nothing is measured;
- the fold takes what was decided, and a session that is replayed alone is the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fpinq.checker.programs import Losses, Pairs, Report, shared_pairs
from fpinq.checker.scope import ASKED, PARTITIONINGS, UNARY
from fpinq.checker.worlds import ROOTS, SCHEMA, Neighbours
from fpinq.model import sessions
from fpinq.model.accounts import Accounts, Root
from fpinq.model.actions import Action, Assign, Partition, Query
from fpinq.model.errors import Frozen, NotAsRecorded, ProgramError
from fpinq.model.events import Began, Froze, Registered, Took, Unfroze
from fpinq.model.notions import pure
from fpinq.model.plans import roots_of
from fpinq.model.semantics import Configuration, Label, Measure, Rule, step, with_root
from fpinq.model.sessions import NOTHING, Decision, State
from fpinq.model.units import GRAIN, amount

OWNER = "owner"
# Losses are whole numbers of this part of ε = 1.
UNITS = 6 * 41
ZERO = Fraction(0)
# More than all programs of a meeting together can be charged.
ENDLESS = 10**6


@dataclass(frozen=True)
class Meeting:
    """Which sessions meet: whose they are, under which budgets and caps, and how long they go on.

    made: what a session may make of the first root, once. asked: which tables
    it may ask. late: the second root arrives at any time. freezing: the owner
    freezes the first and unfreezes it. rounded: the amounts are no whole numbers
    of units, and what fits to within one for each session may be refused.
    """

    name: str
    analysts: tuple[str, ...]
    budgets: tuple[Fraction, Fraction]
    moves: int
    epsilons: tuple[Fraction, ...]
    made: tuple[str, ...] = ()
    asked: tuple[str, ...] = ("A", "B", "t", "p", "q")
    caps: tuple[tuple[str, Fraction], ...] = ()
    cap: Fraction | None = None
    late: bool = False
    freezing: bool = False
    rounded: bool = False

    def root(self, number: int) -> Registered:
        """A root as the owner registers it."""
        caps = dict(self.caps) or None
        name = ROOTS[number]
        return Registered(name, SCHEMA, self.budgets[number], (name,), caps=caps, cap=self.cap)

    def names(self) -> dict[str, str]:
        """The sessions: name ↦ analyst."""
        return {f"{analyst}/{number}": analyst for number, analyst in enumerate(self.analysts, 1)}


ONE, TWO, THREE = Fraction(1), Fraction(2), Fraction(3)
THIRD = Fraction(1, 3)
# No whole number of units: rounding shows. A unit more, and two of them fit.
ODD = Fraction(1, 41)
JUST_TOO_LITTLE = 2 * ODD - Fraction(1, 41 * GRAIN)

SHARED = Meeting(
    "two sessions, a root that arrives",
    ("ann", "bob"),
    (THREE, Fraction(5, 2)),
    moves=4,
    epsilons=(ONE, Fraction(3, 2)),
    made=("both ways", "by k"),
    late=True,
)
CAPPED = Meeting(
    "three sessions of two analysts, with caps",
    ("ann", "ann", "bob"),
    (THREE, TWO),
    moves=4,
    epsilons=(ONE, THIRD),
    made=("by k",),
    asked=("A", "B", "p"),
    caps=(("ann", Fraction(4, 3)),),
    cap=Fraction(5, 3),
    late=True,
)
FROZEN = Meeting(
    "two sessions, and an owner who freezes",
    ("ann", "bob"),
    (THREE, TWO),
    moves=4,
    epsilons=(ONE,),
    made=("both ways",),
    cap=TWO,
    freezing=True,
)
ROUNDED = Meeting(
    "three sessions, amounts that are no whole units",
    ("ann", "bob", "bob"),
    (JUST_TOO_LITTLE, 3 * ODD),
    moves=3,
    epsilons=(ODD,),
    made=("by k",),
    cap=2 * ODD,
    rounded=True,
)
MEETINGS = (SHARED, CAPPED, FROZEN, ROUNDED)


# What the owner does on the way.
Owned = Registered | Froze | Unfroze


class Move(NamedTuple):
    """Who does what: a session an action, or the owner an event."""

    who: str
    what: Action | Owned


@dataclass(frozen=True)
class Breach:
    """An interleaving after which something does not hold, and on which neighbours if on two."""

    program: tuple[Move, ...]
    meeting: Meeting
    what: str
    neighbours: Neighbours


@dataclass(frozen=True)
class _Node:
    """A meeting so far; the same as one program, and as one for each analyst; what may be lost by each."""

    state: State
    one: Configuration
    alone: Mapping[str, Configuration]
    losses: Mapping[str, Losses]
    program: tuple[Move, ...] = ()
    events: tuple[tuple[int, Took], ...] = ()
    traces: int = 1


class Broken(Exception):
    """Something does not hold; on a pair of neighbours, if it has a number."""

    def __init__(self, what: str, pair: int = 0) -> None:
        self.what, self.pair = what, pair
        super().__init__(what)


def check_meeting(meeting: Meeting, shard: int = 0, shards: int = 1) -> Report:
    """One shard of a meeting's interleavings."""
    report = Report()
    for found in meetings(meeting, shard, shards):
        report.add(found)
    return report


def meetings(meeting: Meeting, shard: int = 0, shards: int = 1) -> Iterator[Report]:
    """Many small reports, one for each first move."""
    pairs = shared_pairs()
    begun = _begun(meeting, pairs)
    for number, move in enumerate(moves(meeting, begun)):
        if number % shards == shard:
            search = _Search(meeting, pairs, Report())
            search.extend(begun, move)
            yield search.report


def shortest_first(meeting: Meeting) -> Iterator[Report]:
    """The same, all interleavings of one move before those of two."""
    for length in range(1, meeting.moves + 1):
        yield from meetings(replace(meeting, moves=length))


def _begun(meeting: Meeting, pairs: Pairs) -> _Node:
    """Before the first move: the roots that there are."""
    analysts = sorted(set(meeting.analysts))
    empty = Configuration({}, Accounts({}))
    nothing = np.zeros(len(pairs.pairs), dtype=np.int64)
    began = sessions.take(NOTHING, Began("0" * 32))
    node = _Node(began, empty, dict.fromkeys(analysts, empty), dict.fromkeys(analysts, nothing))
    for number in range(1 if meeting.late else 2):
        node = _registered(node, meeting.root(number))
    return node


def _registered(node: _Node, root: Registered) -> _Node:
    alone = {analyst: _with_root(c, root) for analyst, c in node.alone.items()}
    return replace(node, state=sessions.take(node.state, root), one=_with_root(node.one, root), alone=alone)


def _with_root(c: Configuration, root: Registered) -> Configuration:
    """One more root, and of money no end: whether a program is answered is for the meeting to say."""
    return with_root(c, root.name, root.shape, Fraction(ENDLESS))


# ── the moves ────────────────────────────────────────────────────────────────────────


def moves(meeting: Meeting, node: _Node) -> Iterator[Move]:
    """Every move that may come next."""
    state, budgets = node.state, node.state.budgets
    if len(budgets.roots) < len(ROOTS):
        yield Move(OWNER, meeting.root(1))
    if meeting.freezing:
        yield Move(OWNER, Unfroze(ROOTS[0]) if ROOTS[0] in budgets.frozen else Froze(ROOTS[0]))
    for who, analyst in _sessions_to_move(meeting, state).items():
        session = state.sessions.get(who) or sessions.opened(analyst)
        bound = sessions.seeing(budgets, session).configuration.environment
        for action in actions(meeting, list(bound)):
            yield Move(who, action)


def _sessions_to_move(meeting: Meeting, state: State) -> dict[str, str]:
    """The sessions that may move: of those of one analyst that have not, the first stands for all."""
    fresh: set[str] = set()
    found = {}
    for who, analyst in meeting.names().items():
        if who in state.sessions or analyst not in fresh:
            found[who] = analyst
        if who not in state.sessions:
            fresh.add(analyst)
    return found


def actions(meeting: Meeting, bound: list[str]) -> Iterator[Action]:
    """Every action of a session that has bound these."""
    made = any(table not in ROOTS for table in bound)
    for name in () if made else meeting.made:
        if name in UNARY:
            yield Assign("t", UNARY[name], ("A",))
        else:
            yield Partition(("p", "q"), "A", PARTITIONINGS[name])
    for table in [name for name in bound if name in meeting.asked]:
        for epsilon in meeting.epsilons:
            yield Query(table, epsilon, (ASKED,))


def named(action: Action, who: str) -> Action:
    """The action with the names that a session's variables have in one program."""

    def of(variable: str) -> str:
        return variable if variable in ROOTS else f"{who} {variable}"

    match action:
        case Assign(target=target, arguments=arguments):
            return replace(action, target=of(target), arguments=tuple(map(of, arguments)))
        case Partition(targets=targets, table=table):
            return replace(action, targets=tuple(map(of, targets)), table=of(table))
        case Query(table=table):
            return replace(action, table=of(table))
    raise AssertionError(action)


# ── one move, and what must hold after it ────────────────────────────────────────────


@dataclass
class _Search:
    meeting: Meeting
    pairs: Pairs
    report: Report

    def extend(self, node: _Node, move: Move) -> None:
        """Every interleaving that goes on with a move. What changes nothing ends there."""
        program, report = (*node.program, move), self.report
        report.programs += 1
        report.distinct += 1
        try:
            then = replace(self.moved(node, move), program=program)
            if then.state is node.state:
                return
            self.conclude(then)
        except Broken as broken:
            pair = self.pairs.pairs[broken.pair]
            report.violations.append(Breach(program, self.meeting, broken.what, pair))
            return
        report.checks += len(self.pairs.pairs)
        report.traces += then.traces
        if len(program) < self.meeting.moves:
            for following in moves(self.meeting, then):
                self.extend(then, following)

    def moved(self, node: _Node, move: Move) -> _Node:
        """The meeting after a move; Broken if it is not what one program would do."""
        if isinstance(move.what, Registered):
            return _registered(node, move.what)
        if isinstance(move.what, Froze | Unfroze):
            return replace(node, state=sessions.take(node.state, move.what))
        return self.acted(node, move.who, move.what)

    def acted(self, node: _Node, who: str, action: Action) -> _Node:
        analyst, same = self.meeting.names()[who], named(action, who)
        one, alone = step(node.one, same), step(node.alone[analyst], same)
        decision = _decided(node.state, who, analyst, action, _is_cold(node.state, one.label))
        if decision is None:
            return node
        if decision.transition.rule is Rule.QUERY_BOTTOM:
            self.report.refusals += 1
            self.check_refused(node.state, analyst, one.configuration, alone.configuration)
            return node
        label, rule = decision.transition.label, decision.transition.rule
        took = Took(who, analyst, None, action, rule, decision.charged)
        return replace(
            node,
            state=_entered(node.state, took, decision),
            one=one.configuration,
            alone={**node.alone, analyst: alone.configuration},
            losses=self.lost(node.losses, analyst, label),
            events=(*node.events, (node.state.events, took)),
            traces=node.traces * (2 if isinstance(label, Measure) else 1),
        )

    def check_refused(self, state: State, analyst: str, one: Configuration, alone: Configuration) -> None:
        """A query was refused: one program that had asked it would be beyond a budget, or beyond a cap.

        Where amounts are no whole numbers of units, or within a unit for each session of it.
        """
        left = _room(state, analyst, one, alone)
        if left >= (amount(len(self.meeting.analysts)) if self.meeting.rounded else ZERO):
            raise Broken(f"refused, though it fits: {left} would be left")

    def lost(self, losses: Mapping[str, Losses], analyst: str, label: Label) -> Mapping[str, Losses]:
        if not isinstance(label, Measure):
            return losses
        more = self.pairs.loss(label.plan, label.by, None) * int(pure(label.epsilon) * UNITS)
        return {**losses, analyst: losses[analyst] + more}

    def conclude(self, node: _Node) -> None:
        """What must hold of an interleaving."""
        budgets = node.state.budgets
        charged = _charged(node, set(self.meeting.analysts))
        _check_within(charged, {name: root.amount for name, root in budgets.roots.items()}, "B′ ≤ B")
        self.check_theorem(charged, np.sum(list(node.losses.values()), axis=0))
        _check_one_program(charged, node.one)
        for analyst, losses in node.losses.items():
            own = _charged(node, {analyst})
            caps = {name: root.cap_of(analyst) for name, root in budgets.roots.items()}
            _check_within(own, caps, f"{analyst}'s cap")
            self.check_theorem(own, losses)
            _check_one_program(own, node.alone[analyst])
        _check_spent(node)
        _check_replayed(node)

    def check_theorem(self, charged: Mapping[str, Fraction], losses: Losses) -> None:
        pairs = self.pairs
        worst = np.maximum.reduceat(losses, pairs.starts).tolist()
        for kind, first, units in zip(pairs.kinds, pairs.starts, worst, strict=True):
            loss = Fraction(units, UNITS)
            allowed = sum((charged.get(root, ZERO) * d for root, d in zip(ROOTS, kind, strict=True)), ZERO)
            if loss and allowed:
                self.report.tightest = max(self.report.tightest, loss / allowed)
            if loss > allowed:
                at = first + next(i for i, one in enumerate(losses[first:]) if one > allowed * UNITS)
                raise Broken(f"p / q = 2^{Fraction(int(losses[at]), UNITS)} > 2^{allowed} = 2^(B − B′)", at)


def _decided(state: State, who: str, analyst: str, action: Action, is_cold: bool) -> Decision | None:
    """What is decided about an action; None if it is refused since it is frozen."""
    session = state.sessions.get(who) or sessions.opened(analyst)
    try:
        decision = sessions.decide(state.budgets, session, action)
    except Frozen:
        if not is_cold:
            raise Broken("refused as frozen, which it is not") from None
        return None
    except ProgramError as error:
        raise Broken(f"refused: {error}") from None
    if not isinstance(decision.transition.label, Measure):
        _check_nothing_charged(state, session, decision)
    elif is_cold:
        raise Broken("measured, though it is frozen")
    return decision


def _is_cold(state: State, label: Label) -> bool:
    return isinstance(label, Measure) and not roots_of(label.plan).isdisjoint(state.budgets.frozen)


def _room(state: State, analyst: str, one: Configuration, alone: Configuration) -> Fraction:
    """The least that is left anywhere: of a budget by all, of a cap by the analyst."""
    roots = state.budgets.roots.items()
    left = [root.amount - _counter(one, name) for name, root in roots]
    caps = [(name, root.cap_of(analyst)) for name, root in roots]
    return min(left + [cap - _counter(alone, name) for name, cap in caps if cap is not None])


def _counter(c: Configuration, root: str) -> Fraction:
    return c.accounts.counters.get(Root(root), ZERO)


def _charged(node: _Node, analysts: set[str]) -> dict[str, Fraction]:
    """What the sessions of some analysts were charged at each root, exactly."""
    every = node.state.sessions
    own = [every[who] for who in every if every[who].analyst in analysts]
    return {name: sum((each.spent(name) for each in own), ZERO) for name in node.state.budgets.roots}


def _check_nothing_charged(state: State, session: sessions.Session, decision: Decision) -> None:
    after, before = decision.session.configuration.accounts, session.configuration.accounts
    if decision.charged or decision.budgets != state.budgets or after.counters != before.counters:
        raise Broken("charged without a measurement")


def _entered(state: State, took: Took, decision: Decision) -> State:
    """The state after a decision; Broken unless the fold takes it, and makes the same of it."""
    then = sessions.entered(state, took.session, decision)
    try:
        taken = sessions.take(state, took)
    except NotAsRecorded as error:
        raise Broken(f"the fold does not take what was decided: {error}") from None
    if taken.budgets != then.budgets or taken.sessions[took.session] != then.sessions[took.session]:
        raise Broken("the fold makes something else of what was decided")
    return then


def _check_within(charged: Mapping[str, Fraction], totals: Mapping[str, Fraction | None], what: str) -> None:
    for name, cost in charged.items():
        total = totals[name]
        if total is not None and not 0 <= cost <= total:
            raise Broken(f"{what} fails: {cost} was charged at {name}, of {total}")


def _check_one_program(charged: Mapping[str, Fraction], one: Configuration) -> None:
    if any(_counter(one, name) != cost for name, cost in charged.items()):
        raise Broken("one program would be charged something else")


def _check_spent(node: _Node) -> None:
    """Rounded up, and by less than a unit for each session."""
    for (name, analyst), units in node.state.budgets.spent.items():
        exact = _charged(node, {analyst} if analyst else set(node.alone))[name]
        if not exact <= amount(units) < exact + amount(len(node.state.sessions) + 1):
            raise Broken(f"{exact} was charged at {name}, and {amount(units)} is spent")


def _check_replayed(node: _Node) -> None:
    """A session alone, from its own events, is the same, whatever happened in between."""
    replayed: dict[str, sessions.Session] = {}
    for number, took in node.events:
        session = replayed.get(took.session) or sessions.opened(took.analyst)
        replayed[took.session] = sessions.followed(node.state.budgets, session, took, number)
    for who, session in replayed.items():
        kept = node.state.sessions[who]
        if (kept.taken, kept.queries, kept.configuration.accounts.counters) != (
            session.taken,
            session.queries,
            session.configuration.accounts.counters,
        ):
            raise Broken(f"{who}, replayed alone, is another")
