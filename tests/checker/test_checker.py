"""The checker: it passes on the kernel's rules, and fails on wrong ones."""

from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any, get_args

import pytest

from fpinq.checker.instances import instances
from fpinq.checker.interleavings import CAPPED, MEETINGS, ODD, ROUNDED, Meeting, check_meeting
from fpinq.checker.mechanisms import base2, base2_answers, laplace_loss
from fpinq.checker.mutants import MUTANTS, Mutant, applied, refute
from fpinq.checker.notation import show_violation
from fpinq.checker.programs import Report, check, reports
from fpinq.checker.propositions import Findings, check_propositions, clients, holds, is_private, sum_to_one
from fpinq.checker.scope import (
    BEYOND_BINARY,
    BEYOND_UNARY,
    BINARY,
    BROAD,
    INTERLEAVED,
    LAPLACE,
    NOISY,
    PARTITIONINGS,
    PEOPLE_UNARY,
    SCOPES,
    UNARY,
    Scope,
    start,
)
from fpinq.checker.stabilities import Finding, findings, pieces, searched
from fpinq.checker.worlds import WORLDS, neighbours
from fpinq.model.actions import Partition, Query
from fpinq.model.events import Began
from fpinq.model.keys import Product
from fpinq.model.plans import Flatten, Transformation
from fpinq.model.sessions import NOTHING, decide, entered, opened, take
from fpinq.model.traces import Trace, traces
from fpinq.model.transformations import Concat, Distinct, GroupBy, GroupJoin, Join, LimitPerKey, Take
from fpinq.model.units import GRAIN, units

SMALL = replace(BROAD, queries=1)


def test_the_theorem_holds_of_every_small_program() -> None:
    report = check(SMALL, None)
    assert report.programs > 1_000
    assert report.violations == []
    assert report.tightest == 1


def test_the_theorem_holds_with_partitions_between_queries() -> None:
    report = check(replace(INTERLEAVED, constructions=1), None)
    assert report.violations == []
    assert report.refusals > 0


@pytest.mark.parametrize("name", sorted(LAPLACE))
def test_the_theorem_holds_with_discrete_laplace_noise(name: str) -> None:
    report = check(replace(NOISY, queries=1), LAPLACE[name])
    assert report.programs > 500
    assert report.violations == []


def test_shards_cover_a_scope_exactly_once() -> None:
    whole = check(SMALL, None)
    parts = Report()
    for shard in range(3):
        parts.add(check(SMALL, None, shard, 3))
    assert parts == whole


def test_short_programs_come_first() -> None:
    with applied(next(m for m in MUTANTS if m.name == "parent not charged")):
        found = [len(v.program) for report in reports(BROAD) for v in report.violations]
    assert found == sorted(found)
    assert found[0] == 2


def test_the_default_scope_has_no_blind_spot() -> None:
    every = SCOPES["default"]
    assert any(scope.binary and scope.constructions >= 2 for scope in every), "merged parts"
    assert any(min(scope.budgets[0]) <= 2 * max(scope.epsilons) for scope in every), "refusals"
    assert any(scope.interleaved for scope in every), "partitions and questions between queries"
    assert any(scope.rebinding for scope in every), "names bound again"
    assert all(a != b for scope in every for a, b in scope.budgets), "roots with different budgets"
    assert any(e.denominator == 2 for scope in every for e in scope.epsilons), "ε that is not whole"
    assert any(e.denominator == 3 for scope in every for e in scope.epsilons), "ε that is no half"
    assert any(scope.asking and scope.queries >= 3 for scope in every), "questions about every table"
    assert {scope.world for scope in every} == set(WORLDS), "nulls, persons, texts, bags of many"
    parallel = [PARTITIONINGS[name].keys for scope in every for name in scope.parallel]
    assert {(0, 1, 0), (2, 1, 0), (None, 0, None)} <= set(parallel), "keys that come again, three parts, null"
    several = [
        by for scope in every for name in scope.parallel if (by := PARTITIONINGS[name]).expressions[1:]
    ]
    assert {type(by.keys) for by in several} == {Product, tuple}, "keys of several columns, both ways"
    used = {name for scope in every for name in (*scope.unary, *scope.binary)}
    assert used >= {*UNARY, *BINARY, *BEYOND_UNARY, *BEYOND_BINARY, *PEOPLE_UNARY}, "every transformation"
    in_rho = [scope for scope in every if any(scope.concentrated)]
    assert {scope.concentrated for scope in in_rho} == {(True, True), (False, True)}, "both notions, together"
    assert any("both ways" in scope.unary and scope.partitionings for scope in in_rho), "parts of scale 2"
    assert any("concat" in scope.binary and scope.constructions > 1 for scope in in_rho), (
        "a root with its parts"
    )
    assert any("by k, three keys" in scope.partitionings for scope in every), "more than two parts"
    assert "L" in start((1, 1)).environment, "literals"
    assert max(len(pair.left["A"].rows) for pair in neighbours()) >= 2, "bags beyond the truncation bounds"
    assert {pair.apart for pair in neighbours()} == {(1, 0), (0, 1), (1, 1)}, "two roots"


# ── mutants ──────────────────────────────────────────────────────────────────────────


# `fpinq check --mutants` and `--stability`, in `make check`, look at all of them: here are some of each.
@pytest.mark.parametrize("mutant", MUTANTS[::3], ids=lambda mutant: mutant.name)
def test_a_mutant_is_refuted(mutant: Mutant) -> None:
    verdict = refute(mutant, show_violation)
    assert verdict.violation is not None, "survived"
    assert "query(" in verdict.shown
    assert any(
        why in verdict.shown
        for why in ("2^(B − B′)", "B′ ≤ B fails", "√(B − B′)", MEETING_WHY.get(mutant.name, "?"))
    )


@pytest.mark.parametrize(
    "mutant", [m for m in MUTANTS if isinstance(m.spot, Scope)], ids=lambda mutant: mutant.name
)
def test_a_blind_spot_is_seen_in_the_scope_that_was_added_for_it(mutant: Mutant) -> None:
    assert isinstance(mutant.spot, Scope)
    assert mutant.spot in SCOPES["default"]
    with applied(mutant):
        assert check(mutant.spot, None).violations


@pytest.mark.parametrize("scope", [s for s in SCOPES["default"] if s.world != "tiny"], ids=lambda s: s.name)
def test_the_theorem_holds_in_every_world(scope: Scope) -> None:
    report = check(scope, None)
    assert report.programs > 100
    assert (report.violations, report.tightest) == ([], 1)


def test_a_mutant_leaves_no_trace() -> None:
    for mutant in MUTANTS:
        before = getattr(mutant.target, mutant.attribute)
        with applied(mutant):
            pass
        assert getattr(mutant.target, mutant.attribute) is before


def test_the_mutants_of_the_specification_are_all_there() -> None:
    assert len(MUTANTS) >= 15
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


# ── sessions ─────────────────────────────────────────────────────────────────────────

MEETING_WHY = {
    "a cap that counts another analyst's spending": "refused, though it fits",
    "a cap that is each session's own": "ann's cap fails",
    "an analyst's charges that go to the root alone": "ann's cap fails",
    "rounding in the analyst's favour": "1/41 was charged",
    "a freeze that comes after the charge": "charged without a measurement",
    "a freeze that stops nobody": "measured, though it is frozen",
    "unfreezing gives back what was spent": "and 0 is spent",
    "a root that arrives later has no end": "and 0 is spent",
}


@pytest.mark.parametrize("meeting", MEETINGS, ids=lambda meeting: meeting.name)
def test_the_theorem_holds_of_every_interleaving(meeting: Meeting) -> None:
    report = check_meeting(replace(meeting, moves=3))
    assert report.programs > 300
    assert (report.violations, report.tightest) == ([], 1)
    assert report.refusals > 0


def test_meetings_are_of_two_and_three_sessions_with_caps_late_roots_freezes_and_rounding() -> None:
    assert {len(meeting.analysts) for meeting in MEETINGS} == {2, 3}
    assert any(len(set(meeting.analysts)) < len(meeting.analysts) for meeting in MEETINGS), "of one analyst"
    assert any(meeting.caps and meeting.cap for meeting in MEETINGS), "caps of some and of everyone"
    assert any(meeting.late and len(meeting.analysts) == 3 for meeting in MEETINGS), "roots that arrive"
    assert any(meeting.freezing for meeting in MEETINGS), "freezes"
    amounts = {epsilon for meeting in MEETINGS for epsilon in meeting.epsilons}
    assert any(units(epsilon) != epsilon * GRAIN for epsilon in amounts), "no whole units"


def test_shards_cover_a_meeting_exactly_once() -> None:
    small = replace(CAPPED, moves=2)
    parts = Report()
    for shard in range(3):
        parts.add(check_meeting(small, shard, 3))
    assert parts == check_meeting(small)


def test_rounding_down_lets_two_sessions_overspend() -> None:
    """Not only that less is spent than was charged: two sessions together are beyond the budget."""
    with applied(next(m for m in MUTANTS if m.name == "rounding in the analyst's favour")):
        state = take(take(NOTHING, Began("0" * 32)), ROUNDED.root(0))
        spent = Fraction(0)
        for who in ("ann", "bob"):
            decision = decide(state.budgets, opened(who), Query("A", ODD, (_count(),)))  # type: ignore[arg-type]
            state = entered(state, who, decision)
            spent += sum(decision.charged.values())
    assert spent > ROUNDED.budgets[0]


# ── propositions ─────────────────────────────────────────────────────────────────────


def test_the_propositions_hold_of_adaptive_clients() -> None:
    found = check_propositions(neighbours(2)[::40])
    assert found.clients > 300
    assert found.failures == 0


def test_the_propositions_fail_of_a_wrong_rule() -> None:
    pair = next(p for p in neighbours(2) if p.apart == (1, 0))
    with applied(next(m for m in MUTANTS if m.name == "parent not charged")):
        assert not all(holds(client, pair, Findings()) for client in clients())


def test_probabilities_that_do_not_sum_to_one_are_noticed() -> None:
    assert not sum_to_one([Trace((), Fraction(1, 2), start((1, 1)))])


def test_a_run_that_is_too_probable_is_noticed() -> None:
    likely, unlikely = Trace((), Fraction(1), start((1, 1))), Trace((), Fraction(1, 2), start((1, 1)))
    assert is_private([unlikely], [likely], (1, 0))
    assert not is_private([likely], [unlikely], (1, 0))


# ── mechanisms ───────────────────────────────────────────────────────────────────────


def test_the_base_2_mechanism_reaches_its_ratio_exactly() -> None:
    near, far = base2(0, Fraction(2)), base2(3, Fraction(2))
    assert sum(near) == sum(far) == 1
    assert near[0] / far[0] == 2 ** (2 * 3)
    assert near[1] <= far[1]


def test_base_2_answers_of_a_parallel_query_are_independent() -> None:
    pair = neighbours(1)[0]
    by = next(a.by for a in _partitions(BROAD))
    asked = Query("A", Fraction(1), (_count(), _count()), by)
    found = list(traces(lambda _: asked, start((9, 9)), base2_answers(pair.left, pair.right), 1))
    assert len(found) == 4
    assert sum_to_one(found)


def _count() -> object:
    from fpinq.model.queries import Count

    return Count()


def _partitions(scope: Scope) -> list[Partition]:
    from fpinq.checker.scope import constructions

    return [a for a in constructions(scope, start((1, 1)), 0) if isinstance(a, Partition)]


@pytest.mark.parametrize(("left", "right", "loss"), [([3], [5], 2), ([0, 0], [1, -2], 3), ([], [], 0)])
def test_the_laplace_loss_is_the_l1_distance(left: list[int], right: list[int], loss: int) -> None:
    assert laplace_loss(left, right) == loss


# ── stability ────────────────────────────────────────────────────────────────────────


def test_declared_stabilities_are_tight() -> None:
    found = list(islice(findings(), 250))
    assert len(found) == 250 < pieces()
    assert [f.shown for f in found if f.verdict != "tight"] == []


def test_the_search_knows_every_transformation() -> None:
    searched = {type(transformation) for transformation, _ in instances()} | {Flatten}
    assert searched == set(get_args(Transformation))


def test_a_stability_that_is_too_small_is_unsound_and_one_too_large_is_loose() -> None:
    assert Finding(Take(1), 0, 1, 2, grows=False).verdict == "UNSOUND"
    assert Finding(Concat(), 0, 3, 1, grows=False).verdict == "loose"
    assert Finding(Distinct(), 0, 1, 1, grows=False).verdict == "tight"


WRONG: list[tuple[type, Any]] = [
    (Take, (1,)),
    (GroupBy, (1,)),
    (GroupJoin, (1, 1)),
    (LimitPerKey, (1,)),
    (Join, property(lambda join: (join.right.at_most, join.left.at_most))),
]


@pytest.mark.parametrize(("transformation", "wrong"), WRONG)
def test_a_constant_that_forgets_what_it_depends_on_is_unsound(
    transformation: type, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformation, "stability", wrong)
    of_it = ((t, schemas) for t, schemas in instances() if isinstance(t, transformation))
    assert any(f.verdict == "UNSOUND" for t, schemas in of_it for f in searched(t, schemas, 3))


OLD: list[tuple[type, str, Any]] = [
    (GroupBy, "stability", (2,)),
    (GroupJoin, "stability", (2, 2)),
    (LimitPerKey, "stability_on", lambda *_: (2,)),
    (Join, "_is_told", lambda *_: False),
]


@pytest.mark.parametrize(
    ("transformation", "name", "old"), OLD, ids=lambda each: getattr(each, "__name__", "")
)
def test_one_constant_for_all_parameters_is_loose(
    transformation: type, name: str, old: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformation, name, old)
    of_it = ((t, schemas) for t, schemas in instances() if isinstance(t, transformation))
    assert any(f.verdict == "loose" for t, schemas in of_it for f in searched(t, schemas, 3))
