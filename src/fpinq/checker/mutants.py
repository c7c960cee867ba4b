"""Wrong rules that the check must refute, as patches of the rules themselves.

A check that has never failed proves little. Each mutant replaces one function
or constant of the kernel and leaves the rest as it is; the run-time certificate
is switched off, so that it is the theorem that refutes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from fpinq.checker import wrong
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


def _stability(transformation: type, wrong: tuple[int, ...]) -> tuple[type, str, tuple[int, ...]]:
    return transformation, "stability", wrong


MUTANTS: tuple[Mutant, ...] = (
    Mutant("max replaced by last", accounts, "new_maximum", wrong.last),
    Mutant("parent not charged", accounts, "forwarded", lambda c, growth: Fraction(0)),
    Mutant("group_by at 1", *_stability(transformations.GroupBy, (1,))),
    Mutant("union charging one side", *_stability(transformations.Union, (1, 0))),
    Mutant("except at (1, 0)", *_stability(transformations.Except, (1, 0))),
    Mutant("join at (R, L)", transformations.Join, "stability", property(wrong.halved)),
    Mutant("a part's counter as its largest ε", accounts, "charged_directly", wrong.largest_epsilon),
    Mutant("forwarding unscaled", accounts, "forwarded", lambda c, growth: growth),
    Mutant("⊥ leaving counters raised", semantics, "query_bottom", wrong.raised_by_bottom),
    Mutant("two partitions sharing counters", accounts, "fresh_parts", wrong.shared_parts),
    Mutant("vectors combined by max", accounts, "combine", wrong.combined_by_max),
    Mutant("the budget tested before charging", accounts, "fits", wrong.fits_before),
    Mutant("only one vector entry charged", accounts, "charge", wrong.one_entry),
    Mutant("duplicate partition keys", partitions, "has_duplicates", lambda keys: False),
    Mutant("take at 1", *_stability(transformations.Take, (1,))),
    # and more of our own
    Mutant("limit_per_key at 1", *_stability(transformations.LimitPerKey, (1,))),
    Mutant("select_many at 1", *_stability(transformations.SelectMany, (1,))),
    Mutant("group_join at (1, 1)", *_stability(transformations.GroupJoin, (1, 1))),
    Mutant("concat charging the larger side", *_stability(transformations.Concat, (1, 0))),
    Mutant("intersect charging one side", *_stability(transformations.Intersect, (1, 0))),
    Mutant("semi-join bounded at (1, 1)", *_stability(transformations.SemiJoin, (1, 1))),
    Mutant("∞ taken for 0 on private data", semantics, "bounded_stability", wrong.unbounded_for_free),
    Mutant("only the first root's budget tested", accounts, "fits", wrong.only_first_root),
    Mutant("every root tested against the largest budget", accounts, "fits", wrong.against_the_largest),
    Mutant("a budget exceeded by a half", accounts, "fits", wrong.half_more),
    Mutant("a variable bound again keeps its sensitivity", semantics, "assign", wrong.old_sensitivity),
    Mutant("parts bound again start from nothing", semantics, "partition", wrong.reset_counters),
    Mutant("asking for the budget refunds it", semantics, "ask_budget", wrong.refunded),
    Mutant("the third part has no source", semantics, "partition", wrong.two_private_parts),
    Mutant("a parallel query with the same key twice", semantics, "measure", wrong.only_in_partitions),
    Mutant(
        "join charging the right as if L were 1",
        transformations.Join,
        "stability",
        property(wrong.as_if_left_kept_one),
    ),
    # and of the blind spots there were
    Mutant(
        "partition keys compared with their neighbours only",
        partitions,
        "has_duplicates",
        wrong.neighbouring,
        spot=PARALLEL,
    ),
    Mutant(
        "a parallel query that compares neighbouring keys only",
        semantics,
        "measure",
        wrong.neighbouring_in_queries,
        spot=PARALLEL,
    ),
    Mutant(
        "null among partition keys again", partitions, "has_duplicates", wrong.nulls_left_out, spot=NULLED
    ),
    Mutant(
        "a key twice in a product of keys",
        partitions,
        "has_duplicates",
        wrong.not_in_products,
        spot=SEVERAL,
    ),
    Mutant(
        "the same key of several columns again",
        partitions,
        "has_duplicates",
        wrong.not_of_several,
        spot=SEVERAL,
    ),
    Mutant(
        "asking a derived table's price refunds it", semantics, "ask_price", wrong.price_refunds, spot=ASKING
    ),
    Mutant(
        "asking a derived table's price makes it public",
        semantics,
        "ask_price",
        wrong.price_makes_public,
        spot=ASKING,
    ),
    Mutant(
        "asking a derived table's scale doubles the budgets",
        semantics,
        "ask_scale",
        wrong.scale_raises_budgets,
        spot=ASKING,
    ),
    Mutant(
        "a parallel query of three parts for free",
        semantics,
        "query",
        wrong.three_parts_for_free,
        spot=PARALLEL,
    ),
    Mutant("ε rounded down to halves", accounts, "charged_directly", wrong.in_halves, spot=ASKING),
    Mutant("concat of all charging the first", *_stability(transformations.ConcatAll, (1, 0)), spot=BEYOND),
    Mutant("take beyond 2 at 1", transformations.Take, "stability", property(wrong.up_to_two), spot=BEYOND),
    Mutant(
        "limit_per_key beyond 2 at 1",
        transformations.LimitPerKey,
        "stability",
        property(wrong.up_to_two),
        spot=BEYOND,
    ),
    Mutant(
        "select_many beyond 3 at 3",
        transformations.SelectMany,
        "stability",
        property(wrong.up_to_three),
        spot=BEYOND,
    ),
    Mutant(
        "join's first beyond 2 as first 2",
        transformations.Join,
        "stability",
        property(wrong.first_two_only),
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
        property(wrong.inner),
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
        property(wrong.sides_swapped),
        spot=BEYOND,
    ),
    Mutant(
        "limit_per_key told by some of the columns",
        transformations.LimitPerKey,
        "stability_on",
        wrong.some_column,
        spot=BEYOND,
    ),
    Mutant(
        "aggregates all told by the keys", transformations.Aggregate, "is_told", lambda *_: True, spot=BEYOND
    ),
    # of budgets of ρ
    Mutant("ρ charged as ε is", books, "per_unit", lambda at, scale: at.amount, spot=SQUARED),
    Mutant(
        "the scale of the largest entry",
        books,
        "scales",
        wrong.scaled(lambda v: max(v.values())),
        spot=SQUARED,
    ),
    Mutant(
        "the scale of the sum of entries",
        books,
        "scales",
        wrong.scaled(lambda v: sum(v.values())),
        spot=SQUARED,
    ),
    Mutant("the least scale of all roots", books, "scales", wrong.least_scale, spot=SQUARED),
    Mutant("the scale of another root", books, "scales", wrong.other_scale, spot=SQUARED),
    Mutant("parts of scale 1", books, "scales", wrong.parts_of_scale_1, spot=SQUARED),
    Mutant("the root's own entry for the scale", books, "scales", wrong.own_entry, spot=SQUARED),
    Mutant(
        "squares of entries without what is between them",
        books,
        "charged_in_book",
        wrong.squares,
        spot=SQUARED,
    ),
    Mutant("a book without what parts forward", accounts, "forwarded", lambda c, growth: 0, spot=SQUARED),
    Mutant("a book with forwarding unscaled", accounts, "forwarded", lambda c, growth: growth, spot=SQUARED),
    Mutant(
        "a book with the last part for the largest", accounts, "new_maximum", wrong.last, spot=SQUARED_TWICE
    ),
    Mutant(
        "books that are not held against budgets", accounts, "paid", wrong.paid_in_epsilon, spot=SQUARED_TWICE
    ),
    Mutant(
        "a root's book that leaves its own entry out",
        books,
        "without_others",
        wrong.without_any,
        spot=SQUARED,
    ),
    Mutant("ρ asked of a pure root", books, "check_notions", wrong.any_notion, spot=BESIDE),
    # and of sessions that share budgets
    Mutant("a session that sees budget the others used", sessions, "by_others", lambda *_: 0, spot=SHARED),
    Mutant(
        "a cap that counts another analyst's spending",
        sessions,
        "by_others",
        wrong.all_against_the_cap,
        spot=CAPPED,
    ),
    Mutant("a cap that is each session's own", sessions, "by_others", wrong.cap_of_each_session, spot=CAPPED),
    Mutant(
        "an analyst's charges that go to the root alone",
        sessions,
        "accounts_of",
        lambda budgets, analyst, names: [(name, "") for name in names],
        spot=CAPPED,
    ),
    Mutant("rounding in the analyst's favour", sessions, "units", wrong.rounded_down, spot=ROUNDED),
    Mutant(
        "a freeze that comes after the charge",
        sessions,
        "decide_closed",
        wrong.charged_then_frozen,
        spot=FROZEN,
    ),
    Mutant("a freeze that stops nobody", sessions, "check_thawed", lambda *_: None, spot=FROZEN),
    Mutant(
        "unfreezing gives back what was spent", sessions, "owned", wrong.refunded_by_unfreezing, spot=FROZEN
    ),
    Mutant("a root that arrives later is public", sessions, "seeing", wrong.late_roots_public, spot=SHARED),
    Mutant(
        "a root that arrives later has no end", sessions, "left_to", wrong.late_roots_endless, spot=SHARED
    ),
)
