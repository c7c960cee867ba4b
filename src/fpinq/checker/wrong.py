"""Wrong rules, each in the place of one of the kernel's: what the mutants put there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any
from unittest.mock import patch

from fpinq.model import accounts, books, partitions, semantics, sessions, transformations
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


def last(maximum: Fraction, raised: Sequence[Fraction]) -> Fraction:
    return list(raised)[-1]


def largest_epsilon(counter: Fraction, s: int, epsilon: Fraction) -> Fraction:
    return max(counter, s * epsilon)


def combined_by_max(stability: Sequence[int], vectors: Sequence[Sensitivity]) -> Sensitivity:
    combined: dict[Source, int] = {}
    for c, v in zip(stability, vectors, strict=True):
        for source, s in v.items():
            combined[source] = max(combined.get(source, 0), c * s)
    return combined


def raised_by_bottom(c: Configuration, charged: Accounts) -> Transition:
    restored: dict[Source, Fraction] = {
        root: c.accounts.counters.get(root, Fraction(0)) for root in charged.budgets
    }
    left_raised = replace(charged, counters={**charged.counters, **restored})
    return Transition(Rule.QUERY_BOTTOM, semantics.BOTTOM, replace(c, accounts=left_raised))


_charge = accounts.charge


def one_entry(accounts: Accounts, sensitivity: Sensitivity, epsilon: Fraction) -> Accounts:
    return _charge(accounts, dict(list(sensitivity.items())[:1]), epsilon)


def shared_parts(accounts: Accounts, count: int) -> tuple[Part, ...]:
    return tuple(Part(0, number) for number in range(count))


def fits_before(before: Accounts, charged: Accounts) -> bool:
    return all(before.counters.get(root, Fraction(0)) <= total for root, total in before.budgets.items())


def only_first_root(before: Accounts, charged: Accounts) -> bool:
    root = next(iter(charged.budgets))
    return charged.counters.get(root, Fraction(0)) <= charged.budgets[root]


def halved(self: transformations.Join) -> tuple[accounts.Stability, ...]:
    return (self.right.at_most, self.left.at_most)


def unbounded_for_free(
    transformation: Transformation, private: Sequence[bool], shapes: Sequence[Shape]
) -> tuple[int, ...]:
    return tuple(c if isinstance(c, int) else 0 for c in transformation.stability)


_assign, _partition = semantics.assign, semantics.partition


def old_sensitivity(c: Configuration, action: Assign) -> Transition:
    after = _assign(c, action)
    if action.target not in c.environment:
        return after
    table = replace(
        after.configuration.environment[action.target],
        sensitivity=c.environment[action.target].sensitivity,
    )
    bound = {**after.configuration.environment, action.target: table}
    return replace(after, configuration=replace(after.configuration, environment=bound))


def reset_counters(c: Configuration, action: Partition) -> Transition:
    if not all(target in c.environment for target in action.targets):
        return _partition(c, action)
    old = {source for target in action.targets for source in c.environment[target].sensitivity}
    kept: dict[Source, Fraction] = {s: n for s, n in c.accounts.counters.items() if s not in old}
    direct: dict[Source, Fraction] = {s: n for s, n in c.accounts.direct.items() if s not in old}
    roots: dict[Source, Fraction] = {root: Fraction(0) for root in c.accounts.budgets}
    emptied = replace(c.accounts, counters={**kept, **roots}, direct=direct, maxima={})
    return _partition(replace(c, accounts=emptied), action)


def refunded(c: Configuration) -> Transition:
    empty = replace(c.accounts, counters={}, direct={}, maxima={})
    return Transition(Rule.ASK_BUDGET, semantics.TAU, replace(c, accounts=empty))


def against_the_largest(before: Accounts, charged: Accounts) -> bool:
    largest = max(charged.budgets.values())
    return all(charged.counters.get(root, Fraction(0)) <= largest for root in charged.budgets)


def half_more(before: Accounts, charged: Accounts) -> bool:
    half = Fraction(1, 2)
    return all(charged.counters.get(root, half) <= total + half for root, total in charged.budgets.items())


def two_private_parts(c: Configuration, action: Partition) -> Transition:
    after = _partition(c, action)
    tables = after.configuration.environment
    public = {target: replace(tables[target], sensitivity={}) for target in action.targets[2:]}
    return replace(after, configuration=replace(after.configuration, environment={**tables, **public}))


def as_if_left_kept_one(self: transformations.Join) -> tuple[accounts.Stability, ...]:
    right = (
        self.left.stability * self.right.at_most
        if isinstance(self.right.at_most, int)
        else self.right.at_most
    )
    return (right, self.right.stability)


def only_in_partitions(c: Table, action: Query) -> Measure:
    with patch.object(partitions, "has_duplicates", lambda keys: False):
        return _measure(c, action)


_measure = semantics.measure


# Those of the blind spots: each passed the check before the scope could see it.


def neighbouring(keys: Sequence[Value]) -> bool:
    return any(a == b for a, b in pairwise(keys))


def nulls_left_out(keys: Sequence[Value]) -> bool:
    present = [key for key in keys if key is not None]
    return len(set(present)) != len(present)


def not_in_products(keys: Keys) -> bool:
    return type(keys) is not Product and _has_duplicates(keys)


def not_of_several(keys: Keys) -> bool:
    return not (type(keys) is tuple and type(keys[0]) is tuple) and _has_duplicates(keys)


_has_duplicates = has_duplicates


def neighbouring_in_queries(c: Table, action: Query) -> Measure:
    with patch.object(partitions, "has_duplicates", neighbouring):
        return _measure(c, action)


_ask_scale, _ask_price, _query = semantics.ask_scale, semantics.ask_price, semantics.query


def _derived(c: Configuration, table: str) -> bool:
    return any(isinstance(source, Part) or s > 1 for source, s in c.table(table).sensitivity.items())


def price_refunds(c: Configuration, action: AskPrice) -> Transition:
    if not _derived(c, action.table):
        return _ask_price(c, action)
    empty = replace(c.accounts, counters={}, direct={}, maxima={})
    return replace(_ask_price(c, action), configuration=replace(c, accounts=empty))


def scale_raises_budgets(c: Configuration, action: AskScale) -> Transition:
    if not _derived(c, action.table):
        return _ask_scale(c, action)
    doubled = replace(c.accounts, budgets={root: 2 * total for root, total in c.accounts.budgets.items()})
    return replace(_ask_scale(c, action), configuration=replace(c, accounts=doubled))


def price_makes_public(c: Configuration, action: AskPrice) -> Transition:
    if not _derived(c, action.table):
        return _ask_price(c, action)
    public = replace(c.table(action.table), sensitivity={})
    bound = {**c.environment, action.table: public}
    return replace(_ask_price(c, action), configuration=replace(c, environment=bound))


def three_parts_for_free(c: Configuration, measured: Measure, charged: Accounts) -> Transition:
    if measured.by is not None and len(measured.by.keys) > 2:
        return Transition(Rule.QUERY, measured, c)
    return _query(c, measured, charged)


def in_halves(counter: Fraction, s: int, epsilon: Fraction) -> Fraction:
    return counter + s * Fraction(floor(2 * epsilon), 2)


def up_to_two(
    self: transformations.Take | transformations.LimitPerKey,
) -> tuple[accounts.Stability, ...]:
    return (2,) if self.at_most <= 2 else (1,)


def up_to_three(self: transformations.SelectMany) -> tuple[accounts.Stability, ...]:
    return (min(self.at_most, 3),)


_JOIN: Any = transformations.Join.stability


_scales = accounts.scales


def scaled(scale: Callable[[Sensitivity], int]) -> Callable[..., dict[Root, int]]:
    return lambda kept, v: dict.fromkeys(_scales(kept, v), scale(v) if v else 0)


def least_scale(kept: Accounts, v: Sensitivity) -> dict[Root, int]:
    found = _scales(kept, v)
    return dict.fromkeys(found, min(found.values(), default=0))


def other_scale(kept: Accounts, v: Sensitivity) -> dict[Root, int]:
    found = _scales(kept, v)
    return dict(zip(found, reversed(found.values()), strict=True))


def parts_of_scale_1(kept: Accounts, v: Sensitivity) -> dict[Root, int]:
    only_parts = all(isinstance(source, Part) for source in v)
    return {root: 1 if only_parts else s for root, s in _scales(kept, v).items()}


def own_entry(kept: Accounts, v: Sensitivity) -> dict[Root, int]:
    return {root: v.get(root, 1) for root in _scales(kept, v)}


_in_book = books.charged_in_book


def squares(kept: Accounts, book: Accounts, root: Root, v: Sensitivity, per_unit: Fraction) -> Accounts:
    scale = _scales(kept, v)[root]
    return _in_book(kept, book, root, {source: s * s for source, s in v.items()}, per_unit / scale)


def paid_in_epsilon(kept: Accounts, root: Root) -> Fraction:
    return kept.counters.get(root, Fraction(0))


def without_any(v: Sensitivity, root: Root) -> Sensitivity:
    return {source: s for source, s in v.items() if not isinstance(source, Root)} or v


def any_notion(kept: Books, reached: Mapping[Root, int], at: Amount, delta: Fraction) -> list[Root]:
    return []


def _stability_of_join(join: transformations.Join) -> tuple[accounts.Stability, ...]:
    found: tuple[accounts.Stability, ...] = _JOIN.fget(join)  # the rule's own, also while it is replaced
    return found


def _two_kept(side: transformations.Truncation) -> transformations.Truncation:
    return transformations.First(min(side.at_most, 2)) if isinstance(side, transformations.First) else side


def first_two_only(self: transformations.Join) -> tuple[accounts.Stability, ...]:
    cut = replace(self, left=_two_kept(self.left), right=_two_kept(self.right))
    return _stability_of_join(cut)


def inner(self: transformations.Join) -> tuple[accounts.Stability, ...]:
    return _stability_of_join(replace(self, outer=False))


def sides_swapped(self: transformations.GroupJoin) -> tuple[accounts.Stability, ...]:
    return (2 if self.right_aggregates else 1, 2 if self.left_aggregates else 1)


def some_column(self: transformations.LimitPerKey, table: Schema) -> tuple[accounts.Stability, ...]:
    return (1,) if set(transformations.every_column(table)) & set(self.keys) else (2,)


# Of sessions that share budgets.

_by_others, _decide, _owned = sessions.by_others, sessions.decide_closed, sessions.owned
_seeing, _left_to = sessions.seeing, sessions.left_to


def all_against_the_cap(budgets: Budgets, account: Account, taken: Mapping[str, int]) -> int:
    return _by_others(budgets, (account[0], ""), taken)


def cap_of_each_session(budgets: Budgets, account: Account, taken: Mapping[str, int]) -> int:
    return 0 if account[1] else _by_others(budgets, account, taken)


def rounded_down(amount: Fraction) -> int:
    return floor(amount * GRAIN)


def charged_then_frozen(
    budgets: Budgets, session: Session, action: Action, before: int | None = None
) -> Decision:
    thawed = _decide(replace(budgets, frozen=frozenset()), session, action, before)
    decision = thawed._replace(budgets=replace(thawed.budgets, frozen=budgets.frozen))
    label = decision.transition.label
    if not isinstance(label, Measure) or roots_of(label.plan).isdisjoint(budgets.frozen):
        return decision
    refused = replace(decision.transition, rule=Rule.QUERY_BOTTOM, label=semantics.BOTTOM)
    return decision._replace(transition=refused)


def refunded_by_unfreezing(budgets: Budgets, event: Event, number: int) -> Budgets:
    after = _owned(budgets, event, number)
    return replace(after, spent=dict.fromkeys(after.spent, 0)) if isinstance(event, Unfroze) else after


def late_roots_public(budgets: Budgets, session: Session, before: int | None = None) -> Session:
    known, after = session.configuration.environment, _seeing(budgets, session, before)
    late = {name: t for name, t in after.configuration.environment.items() if known and name not in known}
    public = {name: replace(table, sensitivity={}) for name, table in late.items()}
    c = after.configuration
    return after._replace(configuration=replace(c, environment={**c.environment, **public}))


def late_roots_endless(budgets: Budgets, session: Session) -> dict[accounts.Root, Fraction]:
    left = dict(_left_to(budgets, session))
    return {root: left[root] if root.name == budgets.names[0] else Fraction(10**9) for root in left}
