"""Wrong rules that the check must refute, as patches of the rules themselves.

A check that has never failed proves little. Each mutant replaces one function
or constant of the kernel and leaves the rest as it is; the run-time certificate
is switched off, so that it is the theorem that refutes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any
from unittest.mock import patch

from fpinq.checker.interleavings import (
    CAPPED,
    FROZEN,
    MEETINGS,
    ROUNDED,
    SHARED,
    Breach,
    Meeting,
    shortest_first,
)
from fpinq.checker.programs import Report, Violation, reports
from fpinq.checker.scope import (
    ASKING,
    BESIDE,
    BEYOND,
    NULLED,
    PARALLEL,
    PEOPLED,
    SCOPES,
    SEVERAL,
    SQUARED,
    SQUARED_TWICE,
    Scope,
)
from fpinq.model import accounts, books, partitions, plans, semantics, sessions, transformations
from fpinq.model.accounts import Accounts, Books, Part, Root, Sensitivity, Source
from fpinq.model.actions import Action, AskPrice, AskScale, Assign, Partition, Query
from fpinq.model.events import Event, Unfroze
from fpinq.model.expressions import Schema, Value
from fpinq.model.keys import Keys, Product, has_duplicates
from fpinq.model.notions import Amount
from fpinq.model.plans import Shape, Transformation, roots_of
from fpinq.model.semantics import Configuration, Measure, Rule, Table, Transition
from fpinq.model.sessions import Account, Budgets, Decision, Session
from fpinq.model.units import GRAIN


@dataclass(frozen=True)
class Mutant:
    """A wrong rule: which attribute of what is replaced, by what, and which scope or meeting is for it."""

    name: str
    target: Any
    attribute: str
    wrong: Any
    spot: Scope | Meeting | None = None


@dataclass(frozen=True)
class Verdict:
    """After how many programs a mutant was refuted, and by which; None if it survived."""

    mutant: str
    programs: int
    violation: Violation | Breach | None
    shown: str = ""


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The kernel with the mutant's wrong rule, and without the certificate."""
    with (
        patch.object(mutant.target, mutant.attribute, mutant.wrong),
        patch.object(accounts, "certify", lambda *_: None),
    ):
        yield


def refute(mutant: Mutant, show: Callable[[Violation | Breach], str]) -> Verdict:
    """The smallest program of the default scope, or meeting, on which the mutant breaks the theorem."""
    programs = 0
    with applied(mutant):
        for report in _searched(mutant.spot):
            programs += report.programs
            if report.violations:
                smallest = min(report.violations, key=_size)
                return Verdict(mutant.name, programs, smallest, show(smallest))
    return Verdict(mutant.name, programs, None)


def _searched(spot: Scope | Meeting | None) -> Iterator[Report]:
    """Where a mutant is looked for: in the place that is for it, and then everywhere of its kind."""
    if isinstance(spot, Meeting):
        for meeting in (spot, *MEETINGS):
            yield from shortest_first(meeting)
    else:
        for scope in (*([spot] if spot else []), *SCOPES["default"]):
            yield from reports(scope)


def _size(violation: Violation | Breach) -> tuple[int, int]:
    return len(violation.program), violation.neighbours.size


# ── the mutants ──────────────────────────────────────────────────────────────────────


def _last(maximum: Fraction, raised: Sequence[Fraction]) -> Fraction:
    return list(raised)[-1]


def _largest_epsilon(counter: Fraction, s: int, epsilon: Fraction) -> Fraction:
    return max(counter, s * epsilon)


def _combined_by_max(stability: Sequence[int], vectors: Sequence[Sensitivity]) -> Sensitivity:
    combined: dict[Source, int] = {}
    for c, v in zip(stability, vectors, strict=True):
        for source, s in v.items():
            combined[source] = max(combined.get(source, 0), c * s)
    return combined


def _raised_by_bottom(c: Configuration, charged: Accounts) -> Transition:
    restored: dict[Source, Fraction] = {
        root: c.accounts.counters.get(root, Fraction(0)) for root in charged.budgets
    }
    left_raised = replace(charged, counters={**charged.counters, **restored})
    return Transition(Rule.QUERY_BOTTOM, semantics.BOTTOM, replace(c, accounts=left_raised))


_charge = accounts.charge


def _one_entry(accounts: Accounts, sensitivity: Sensitivity, epsilon: Fraction) -> Accounts:
    return _charge(accounts, dict(list(sensitivity.items())[:1]), epsilon)


def _shared_parts(accounts: Accounts, count: int) -> tuple[Part, ...]:
    return tuple(Part(0, number) for number in range(count))


def _fits_before(before: Accounts, charged: Accounts) -> bool:
    return all(before.counters.get(root, Fraction(0)) <= total for root, total in before.budgets.items())


def _only_first_root(before: Accounts, charged: Accounts) -> bool:
    root = next(iter(charged.budgets))
    return charged.counters.get(root, Fraction(0)) <= charged.budgets[root]


def _halved(self: transformations.Join) -> tuple[accounts.Stability, ...]:
    return (self.right.at_most, self.left.at_most)


def _unbounded_for_free(
    transformation: Transformation, private: Sequence[bool], shapes: Sequence[Shape]
) -> tuple[int, ...]:
    return tuple(c if isinstance(c, int) else 0 for c in transformation.stability)


_assign, _partition = semantics.assign, semantics.partition


def _old_sensitivity(c: Configuration, action: Assign) -> Transition:
    after = _assign(c, action)
    if action.target not in c.environment:
        return after
    table = replace(
        after.configuration.environment[action.target],
        sensitivity=c.environment[action.target].sensitivity,
    )
    bound = {**after.configuration.environment, action.target: table}
    return replace(after, configuration=replace(after.configuration, environment=bound))


def _reset_counters(c: Configuration, action: Partition) -> Transition:
    if not all(target in c.environment for target in action.targets):
        return _partition(c, action)
    old = {source for target in action.targets for source in c.environment[target].sensitivity}
    kept: dict[Source, Fraction] = {s: n for s, n in c.accounts.counters.items() if s not in old}
    direct: dict[Source, Fraction] = {s: n for s, n in c.accounts.direct.items() if s not in old}
    roots: dict[Source, Fraction] = {root: Fraction(0) for root in c.accounts.budgets}
    emptied = replace(c.accounts, counters={**kept, **roots}, direct=direct, maxima={})
    return _partition(replace(c, accounts=emptied), action)


def _refunded(c: Configuration) -> Transition:
    empty = replace(c.accounts, counters={}, direct={}, maxima={})
    return Transition(Rule.ASK_BUDGET, semantics.TAU, replace(c, accounts=empty))


def _against_the_largest(before: Accounts, charged: Accounts) -> bool:
    largest = max(charged.budgets.values())
    return all(charged.counters.get(root, Fraction(0)) <= largest for root in charged.budgets)


def _half_more(before: Accounts, charged: Accounts) -> bool:
    half = Fraction(1, 2)
    return all(charged.counters.get(root, half) <= total + half for root, total in charged.budgets.items())


def _two_private_parts(c: Configuration, action: Partition) -> Transition:
    after = _partition(c, action)
    tables = after.configuration.environment
    public = {target: replace(tables[target], sensitivity={}) for target in action.targets[2:]}
    return replace(after, configuration=replace(after.configuration, environment={**tables, **public}))


def _as_if_left_kept_one(self: transformations.Join) -> tuple[accounts.Stability, ...]:
    right = (
        self.left.stability * self.right.at_most
        if isinstance(self.right.at_most, int)
        else self.right.at_most
    )
    return (right, self.right.stability)


def _only_in_partitions(c: Table, action: Query) -> Measure:
    with patch.object(partitions, "has_duplicates", lambda keys: False):
        return _measure(c, action)


_measure = semantics.measure


# Those of the blind spots: each passed the check before the scope could see it.


def _neighbouring(keys: Sequence[Value]) -> bool:
    return any(a == b for a, b in pairwise(keys))


def _nulls_left_out(keys: Sequence[Value]) -> bool:
    present = [key for key in keys if key is not None]
    return len(set(present)) != len(present)


def _not_in_products(keys: Keys) -> bool:
    return type(keys) is not Product and _has_duplicates(keys)


def _not_of_several(keys: Keys) -> bool:
    return not (type(keys) is tuple and type(keys[0]) is tuple) and _has_duplicates(keys)


_has_duplicates = has_duplicates


def _neighbouring_in_queries(c: Table, action: Query) -> Measure:
    with patch.object(partitions, "has_duplicates", _neighbouring):
        return _measure(c, action)


_ask_scale, _ask_price, _query = semantics.ask_scale, semantics.ask_price, semantics.query


def _derived(c: Configuration, table: str) -> bool:
    return any(isinstance(source, Part) or s > 1 for source, s in c.table(table).sensitivity.items())


def _price_refunds(c: Configuration, action: AskPrice) -> Transition:
    if not _derived(c, action.table):
        return _ask_price(c, action)
    empty = replace(c.accounts, counters={}, direct={}, maxima={})
    return replace(_ask_price(c, action), configuration=replace(c, accounts=empty))


def _scale_raises_budgets(c: Configuration, action: AskScale) -> Transition:
    if not _derived(c, action.table):
        return _ask_scale(c, action)
    doubled = replace(c.accounts, budgets={root: 2 * total for root, total in c.accounts.budgets.items()})
    return replace(_ask_scale(c, action), configuration=replace(c, accounts=doubled))


def _price_makes_public(c: Configuration, action: AskPrice) -> Transition:
    if not _derived(c, action.table):
        return _ask_price(c, action)
    public = replace(c.table(action.table), sensitivity={})
    bound = {**c.environment, action.table: public}
    return replace(_ask_price(c, action), configuration=replace(c, environment=bound))


def _three_parts_for_free(c: Configuration, measured: Measure, charged: Accounts) -> Transition:
    if measured.by is not None and len(measured.by.keys) > 2:
        return Transition(Rule.QUERY, measured, c)
    return _query(c, measured, charged)


def _in_halves(counter: Fraction, s: int, epsilon: Fraction) -> Fraction:
    return counter + s * Fraction(floor(2 * epsilon), 2)


def _up_to_two(
    self: transformations.Take | transformations.LimitPerKey,
) -> tuple[accounts.Stability, ...]:
    return (2,) if self.at_most <= 2 else (1,)


def _up_to_three(self: transformations.SelectMany) -> tuple[accounts.Stability, ...]:
    return (min(self.at_most, 3),)


_JOIN: Any = transformations.Join.stability


_scales = accounts.scales


def _scaled(scale: Callable[[Sensitivity], int]) -> Callable[..., dict[Root, int]]:
    return lambda kept, v: dict.fromkeys(_scales(kept, v), scale(v) if v else 0)


def _least_scale(kept: Accounts, v: Sensitivity) -> dict[Root, int]:
    found = _scales(kept, v)
    return dict.fromkeys(found, min(found.values(), default=0))


def _other_scale(kept: Accounts, v: Sensitivity) -> dict[Root, int]:
    found = _scales(kept, v)
    return dict(zip(found, reversed(found.values()), strict=True))


def _parts_of_scale_1(kept: Accounts, v: Sensitivity) -> dict[Root, int]:
    only_parts = all(isinstance(source, Part) for source in v)
    return {root: 1 if only_parts else s for root, s in _scales(kept, v).items()}


def _own_entry(kept: Accounts, v: Sensitivity) -> dict[Root, int]:
    return {root: v.get(root, 1) for root in _scales(kept, v)}


_in_book = books.charged_in_book


def _squares(kept: Accounts, book: Accounts, root: Root, v: Sensitivity, per_unit: Fraction) -> Accounts:
    scale = _scales(kept, v)[root]
    return _in_book(kept, book, root, {source: s * s for source, s in v.items()}, per_unit / scale)


def _paid_in_epsilon(kept: Accounts, root: Root) -> Fraction:
    return kept.counters.get(root, Fraction(0))


def _without_any(v: Sensitivity, root: Root) -> Sensitivity:
    return {source: s for source, s in v.items() if not isinstance(source, Root)} or v


def _any_notion(kept: Books, reached: Mapping[Root, int], at: Amount, delta: Fraction) -> list[Root]:
    return []


def _stability_of_join(join: transformations.Join) -> tuple[accounts.Stability, ...]:
    found: tuple[accounts.Stability, ...] = _JOIN.fget(join)  # the rule's own, also while it is replaced
    return found


def _two_kept(side: transformations.Truncation) -> transformations.Truncation:
    return transformations.First(min(side.at_most, 2)) if isinstance(side, transformations.First) else side


def _first_two_only(self: transformations.Join) -> tuple[accounts.Stability, ...]:
    cut = replace(self, left=_two_kept(self.left), right=_two_kept(self.right))
    return _stability_of_join(cut)


def _inner(self: transformations.Join) -> tuple[accounts.Stability, ...]:
    return _stability_of_join(replace(self, outer=False))


def _sides_swapped(self: transformations.GroupJoin) -> tuple[accounts.Stability, ...]:
    return (2 if self.right_aggregates else 1, 2 if self.left_aggregates else 1)


def _some_column(self: transformations.LimitPerKey, table: Schema) -> tuple[accounts.Stability, ...]:
    return (1,) if set(transformations.every_column(table)) & set(self.keys) else (2,)


# Of sessions that share budgets.

_by_others, _decide, _owned = sessions.by_others, sessions.decide_closed, sessions.owned
_seeing, _left_to = sessions.seeing, sessions.left_to


def _all_against_the_cap(budgets: Budgets, account: Account, taken: Mapping[str, int]) -> int:
    return _by_others(budgets, (account[0], ""), taken)


def _cap_of_each_session(budgets: Budgets, account: Account, taken: Mapping[str, int]) -> int:
    return 0 if account[1] else _by_others(budgets, account, taken)


def _rounded_down(amount: Fraction) -> int:
    return floor(amount * GRAIN)


def _charged_then_frozen(
    budgets: Budgets, session: Session, action: Action, before: int | None = None
) -> Decision:
    thawed = _decide(replace(budgets, frozen=frozenset()), session, action, before)
    decision = thawed._replace(budgets=replace(thawed.budgets, frozen=budgets.frozen))
    label = decision.transition.label
    if not isinstance(label, Measure) or roots_of(label.plan).isdisjoint(budgets.frozen):
        return decision
    refused = replace(decision.transition, rule=Rule.QUERY_BOTTOM, label=semantics.BOTTOM)
    return decision._replace(transition=refused)


def _refunded_by_unfreezing(budgets: Budgets, event: Event, number: int) -> Budgets:
    after = _owned(budgets, event, number)
    return replace(after, spent=dict.fromkeys(after.spent, 0)) if isinstance(event, Unfroze) else after


def _late_roots_public(budgets: Budgets, session: Session, before: int | None = None) -> Session:
    known, after = session.configuration.environment, _seeing(budgets, session, before)
    late = {name: t for name, t in after.configuration.environment.items() if known and name not in known}
    public = {name: replace(table, sensitivity={}) for name, table in late.items()}
    c = after.configuration
    return after._replace(configuration=replace(c, environment={**c.environment, **public}))


def _late_roots_endless(budgets: Budgets, session: Session) -> dict[accounts.Root, Fraction]:
    left = dict(_left_to(budgets, session))
    return {root: left[root] if root.name == budgets.names[0] else Fraction(10**9) for root in left}


def _stability(transformation: type, wrong: tuple[int, ...]) -> tuple[type, str, tuple[int, ...]]:
    return transformation, "stability", wrong


MUTANTS: tuple[Mutant, ...] = (
    Mutant("max replaced by last", accounts, "new_maximum", _last),
    Mutant("parent not charged", accounts, "forwarded", lambda c, growth: Fraction(0)),
    Mutant("group_by at 1", *_stability(transformations.GroupBy, (1,))),
    Mutant("union charging one side", *_stability(transformations.Union, (1, 0))),
    Mutant("except at (1, 0)", *_stability(transformations.Except, (1, 0))),
    Mutant("join at (R, L)", transformations.Join, "stability", property(_halved)),
    Mutant("a part's counter as its largest ε", accounts, "charged_directly", _largest_epsilon),
    Mutant("forwarding unscaled", accounts, "forwarded", lambda c, growth: growth),
    Mutant("⊥ leaving counters raised", semantics, "query_bottom", _raised_by_bottom),
    Mutant("two partitions sharing counters", accounts, "fresh_parts", _shared_parts),
    Mutant("vectors combined by max", accounts, "combine", _combined_by_max),
    Mutant("the budget tested before charging", accounts, "fits", _fits_before),
    Mutant("only one vector entry charged", accounts, "charge", _one_entry),
    Mutant("duplicate partition keys", partitions, "has_duplicates", lambda keys: False),
    Mutant("take at 1", *_stability(transformations.Take, (1,))),
    # and more of our own
    Mutant("limit_per_key at 1", *_stability(transformations.LimitPerKey, (1,))),
    Mutant("select_many at 1", *_stability(transformations.SelectMany, (1,))),
    Mutant("group_join at (1, 1)", *_stability(transformations.GroupJoin, (1, 1))),
    Mutant("concat charging the larger side", *_stability(transformations.Concat, (1, 0))),
    Mutant("intersect charging one side", *_stability(transformations.Intersect, (1, 0))),
    Mutant("semi-join bounded at (1, 1)", *_stability(transformations.SemiJoin, (1, 1))),
    Mutant("∞ taken for 0 on private data", semantics, "bounded_stability", _unbounded_for_free),
    Mutant("only the first root's budget tested", accounts, "fits", _only_first_root),
    Mutant("every root tested against the largest budget", accounts, "fits", _against_the_largest),
    Mutant("a budget exceeded by a half", accounts, "fits", _half_more),
    Mutant("a variable bound again keeps its sensitivity", semantics, "assign", _old_sensitivity),
    Mutant("parts bound again start from nothing", semantics, "partition", _reset_counters),
    Mutant("asking for the budget refunds it", semantics, "ask_budget", _refunded),
    Mutant("the third part has no source", semantics, "partition", _two_private_parts),
    Mutant("a parallel query with the same key twice", semantics, "measure", _only_in_partitions),
    Mutant(
        "join charging the right as if L were 1",
        transformations.Join,
        "stability",
        property(_as_if_left_kept_one),
    ),
    # and of the blind spots there were
    Mutant(
        "partition keys compared with their neighbours only",
        partitions,
        "has_duplicates",
        _neighbouring,
        spot=PARALLEL,
    ),
    Mutant(
        "a parallel query that compares neighbouring keys only",
        semantics,
        "measure",
        _neighbouring_in_queries,
        spot=PARALLEL,
    ),
    Mutant("null among partition keys again", partitions, "has_duplicates", _nulls_left_out, spot=NULLED),
    Mutant(
        "a key twice in a product of keys",
        partitions,
        "has_duplicates",
        _not_in_products,
        spot=SEVERAL,
    ),
    Mutant(
        "the same key of several columns again",
        partitions,
        "has_duplicates",
        _not_of_several,
        spot=SEVERAL,
    ),
    Mutant("asking a derived table's price refunds it", semantics, "ask_price", _price_refunds, spot=ASKING),
    Mutant(
        "asking a derived table's price makes it public",
        semantics,
        "ask_price",
        _price_makes_public,
        spot=ASKING,
    ),
    Mutant(
        "asking a derived table's scale doubles the budgets",
        semantics,
        "ask_scale",
        _scale_raises_budgets,
        spot=ASKING,
    ),
    Mutant(
        "a parallel query of three parts for free", semantics, "query", _three_parts_for_free, spot=PARALLEL
    ),
    Mutant("ε rounded down to halves", accounts, "charged_directly", _in_halves, spot=ASKING),
    Mutant("concat of all charging the first", *_stability(transformations.ConcatAll, (1, 0)), spot=BEYOND),
    Mutant("take beyond 2 at 1", transformations.Take, "stability", property(_up_to_two), spot=BEYOND),
    Mutant(
        "limit_per_key beyond 2 at 1",
        transformations.LimitPerKey,
        "stability",
        property(_up_to_two),
        spot=BEYOND,
    ),
    Mutant(
        "select_many beyond 3 at 3",
        transformations.SelectMany,
        "stability",
        property(_up_to_three),
        spot=BEYOND,
    ),
    Mutant(
        "join's first beyond 2 as first 2",
        transformations.Join,
        "stability",
        property(_first_two_only),
        spot=BEYOND,
    ),
    Mutant("explode at 1", *_stability(transformations.Explode, (1,)), spot=PEOPLED),
    Mutant("flatten at 1", *_stability(plans.Flatten, (1,)), spot=PEOPLED),
    Mutant(
        "flatten by its table's rows",
        transformations.SelectMany,
        "rows_at_most",
        lambda _, table: table,
        spot=PEOPLED,
    ),
    Mutant(
        "flatten of a join by its left",
        transformations.Join,
        "rows_at_most",
        lambda _, left, right: left,
        spot=PEOPLED,
    ),
    Mutant(
        "flatten of a concat by its left",
        transformations.Concat,
        "rows_at_most",
        lambda _, left, right: left,
        spot=PEOPLED,
    ),
    # and of the constants that depend on what is seen
    Mutant(
        "an outer join at the inner one's constants",
        transformations.Join,
        "stability",
        property(_inner),
        spot=BEYOND,
    ),
    Mutant(
        "a join told by the keys whatever it sees",
        transformations.Join,
        "_is_told",
        lambda *_: True,
        spot=BEYOND,
    ),
    Mutant(
        "a group join's sides swapped",
        transformations.GroupJoin,
        "stability",
        property(_sides_swapped),
        spot=BEYOND,
    ),
    Mutant(
        "limit_per_key told by some of the columns",
        transformations.LimitPerKey,
        "stability_on",
        _some_column,
        spot=BEYOND,
    ),
    Mutant(
        "aggregates all told by the keys", transformations.Aggregate, "is_told", lambda *_: True, spot=BEYOND
    ),
    # of budgets of ρ
    Mutant("ρ charged as ε is", books, "per_unit", lambda at, scale: at.amount, spot=SQUARED),
    Mutant(
        "the scale of the largest entry", books, "scales", _scaled(lambda v: max(v.values())), spot=SQUARED
    ),
    Mutant(
        "the scale of the sum of entries", books, "scales", _scaled(lambda v: sum(v.values())), spot=SQUARED
    ),
    Mutant("the least scale of all roots", books, "scales", _least_scale, spot=SQUARED),
    Mutant("the scale of another root", books, "scales", _other_scale, spot=SQUARED),
    Mutant("parts of scale 1", books, "scales", _parts_of_scale_1, spot=SQUARED),
    Mutant("the root's own entry for the scale", books, "scales", _own_entry, spot=SQUARED),
    Mutant(
        "squares of entries without what is between them", books, "charged_in_book", _squares, spot=SQUARED
    ),
    Mutant("a book without what parts forward", accounts, "forwarded", lambda c, growth: 0, spot=SQUARED),
    Mutant("a book with forwarding unscaled", accounts, "forwarded", lambda c, growth: growth, spot=SQUARED),
    Mutant("a book with the last part for the largest", accounts, "new_maximum", _last, spot=SQUARED_TWICE),
    Mutant("books that are not held against budgets", accounts, "paid", _paid_in_epsilon, spot=SQUARED_TWICE),
    Mutant(
        "a root's book that leaves its own entry out", books, "without_others", _without_any, spot=SQUARED
    ),
    Mutant("ρ asked of a pure root", books, "check_notions", _any_notion, spot=BESIDE),
    # and of sessions that share budgets
    Mutant("a session that sees budget the others used", sessions, "by_others", lambda *_: 0, spot=SHARED),
    Mutant(
        "a cap that counts another analyst's spending",
        sessions,
        "by_others",
        _all_against_the_cap,
        spot=CAPPED,
    ),
    Mutant("a cap that is each session's own", sessions, "by_others", _cap_of_each_session, spot=CAPPED),
    Mutant(
        "an analyst's charges that go to the root alone",
        sessions,
        "accounts_of",
        lambda budgets, analyst, names: [(name, "") for name in names],
        spot=CAPPED,
    ),
    Mutant("rounding in the analyst's favour", sessions, "units", _rounded_down, spot=ROUNDED),
    Mutant(
        "a freeze that comes after the charge", sessions, "decide_closed", _charged_then_frozen, spot=FROZEN
    ),
    Mutant("a freeze that stops nobody", sessions, "check_thawed", lambda *_: None, spot=FROZEN),
    Mutant("unfreezing gives back what was spent", sessions, "owned", _refunded_by_unfreezing, spot=FROZEN),
    Mutant("a root that arrives later is public", sessions, "seeing", _late_roots_public, spot=SHARED),
    Mutant("a root that arrives later has no end", sessions, "left_to", _late_roots_endless, spot=SHARED),
)
