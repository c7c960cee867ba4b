"""Sessions: one fold of events; what was decided is what is taken again, and nothing else is."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any, get_args

import pytest

from fpinq.checker.scope import BINARY, SCHEMA, UNARY
from fpinq.model import errors
from fpinq.model.accounts import Root, certify
from fpinq.model.actions import Action, AskBudget, Assign, Partition, Query
from fpinq.model.domains import IntegerDomain
from fpinq.model.environments import Numbered
from fpinq.model.errors import NotAsRecorded, ProgramError
from fpinq.model.events import KINDS, Began, Event, Froze, Recorded, Registered, Took, Unfroze, Upgraded
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.notions import approximate
from fpinq.model.queries import Count, Stable
from fpinq.model.semantics import Measure, Rule, Told
from fpinq.model.sessions import (
    NOTHING,
    Budgets,
    Session,
    State,
    amounts,
    changed,
    check_owner,
    check_queries,
    configuration,
    decide,
    entered,
    followed,
    forgotten,
    known,
    opened,
    take,
)
from fpinq.model.transformations import Concat, Identity, Partitioning
from fpinq.model.units import amount

ANALYSTS = {"x": "ann", "y": "ann", "z": "bob", "w": None}
BY = Partitioning(Column("k"), (0, 1))


def count(epsilon: Any, table: str = "A") -> Query:
    return Query(table, Fraction(epsilon), (Count(),))


def root(name: str, budget: Any = 1, **facts: Any) -> Registered:
    return Registered.of(name, SCHEMA, budget, **{"contents": [name], **facts})


def begun(*events: Event) -> State:
    state = take(NOTHING, Began("id"))
    for event in events:
        state = take(state, event)
    return state


def act(state: State, name: str, action: Action, analyst: str | None = None) -> tuple[State, Took]:
    """What a record does: decide, write it down, go on."""
    decision = decide(state.budgets, state.sessions.get(name) or opened(analyst), action)
    event = Took(name, analyst, None, action, decision.transition.rule, decision.charged)
    return entered(state, name, decision), event


def rule_of(state: State, name: str, action: Action, analyst: str | None = None) -> Rule:
    return act(state, name, action, analyst)[1].rule


def left(state: State, name: str, analyst: str | None = None) -> Fraction:
    told = decide(state.budgets, state.sessions.get(name) or opened(analyst), AskBudget()).transition.label
    assert isinstance(told, Told)
    assert isinstance(told.fact, dict)
    return told.fact["A"]  # type: ignore[no-any-return]


# ── random interleavings ─────────────────────────────────────────────────────────────


def random_action(random: Random, session: Session, number: int) -> Action:
    tables = ["A", "B", *session.configuration.environment]
    table, target = random.choice(tables), f"t{random.randint(0, number)}"
    match random.randint(0, 6):
        case 0:
            return Assign(target, random.choice(list(UNARY.values())), (table,))
        case 1:
            return Assign(target, random.choice(list(BINARY.values())), (table, random.choice(tables)))
        case 2:
            keys = tuple(range(random.randint(1, 3)))
            names = Numbered(target, len(keys))
            targets = names if random.random() < 0.5 else tuple(names)
            return Partition(targets, table, Partitioning(Column("k"), keys))
        case _:
            epsilon = Fraction(random.randint(1, 4), random.choice([1, 2, 3, 41, 43]))
            return Query(table, epsilon, (Count(),))


def random_events(seed: int) -> tuple[list[Event], list[State]]:
    """Events of four sessions and of the owner, each with the state that its decision left."""
    random = Random(seed)
    events: list[Event] = [Began("id"), root("A", 9, caps={"ann": 4}), root("B", Fraction(7, 3), cap=2)]
    state, states = NOTHING, [NOTHING]
    for event in events:
        state = take(state, event)
        states.append(state)
    for number in range(random.randint(5, 20)):
        name = random.choice(list(ANALYSTS))
        if number == 6:
            events.append(root("C", 3))
        elif random.random() < 0.1:
            events.append(random.choice([Froze, Unfroze])("B"))
        elif state.awaited and random.random() < 0.3:
            asked = random.choice(list(state.awaited))
            events.append(Recorded(asked, ((1,),) * state.awaited[asked]))
        else:
            session = state.sessions.get(name) or opened(ANALYSTS[name])
            try:
                state, took = act(state, name, random_action(random, session, number), ANALYSTS[name])
            except ProgramError:
                continue
            events.append(took)
            states.append(state)
            continue
        state = take(state, events[-1])
        states.append(state)
    return events, states


RUNS = [random_events(seed) for seed in range(60)]


def test_what_was_decided_is_what_is_taken() -> None:
    """The state that a record goes on with is the fold of what it wrote down, after every event."""
    for events, states in RUNS:
        state = NOTHING
        for event, then in zip(events, states[1:], strict=True):
            state = take(state, event)
            assert state == then


def test_a_session_s_own_events_make_it_whatever_the_others_did() -> None:
    resumed = 0
    for events, states in RUNS:
        final = states[-1]
        for name, live in final.sessions.items():
            again = opened(ANALYSTS[name])
            for number, event in enumerate(events):
                if isinstance(event, Took) and event.session == name:
                    again = followed(final.budgets, again, event, number)
                    resumed += 1
            assert configuration(final.budgets, again) == configuration(final.budgets, live)
            assert (again.analyst, again.taken, again.queries) == (live.analyst, live.taken, live.queries)
            certify(again.configuration.accounts)
    assert resumed > 200


def test_a_session_that_spent_all_there_is_comes_back() -> None:
    state, took = act(begun(root("A"), root("B")), "s", count(1))
    again = followed(state.budgets, opened(None), took, 3)
    assert (again.queries, again.taken) == (1, state.sessions["s"].taken)


def test_no_interleaving_spends_more_than_a_budget_or_a_cap() -> None:
    refused = 0
    for events, states in RUNS:
        refused += sum(isinstance(event, Took) and event.rule is Rule.QUERY_BOTTOM for event in events)
        state = states[-1]
        for name, promised in state.budgets.roots.items():
            spent = {who: session.spent(name) for who, session in state.sessions.items()}
            assert sum(spent.values()) <= amount(state.budgets.spent[name, ""]) <= promised.budget
            for analyst in ("ann", "bob"):
                own = sum((spent[who] for who in spent if ANALYSTS[who] == analyst), Fraction(0))
                cap = promised.cap_of(analyst)
                if cap is not None:
                    assert own <= amount(state.budgets.spent.get((name, analyst), 0)) <= cap
    assert refused > 20


def test_an_event_changes_the_accounts_that_it_says() -> None:
    for events, states in RUNS:
        before: dict[Any, Any] = {}
        for event, state in zip(events, states[1:], strict=True):
            now = amounts(state.budgets, state.budgets.spent)
            assert changed(state.budgets, event).items() >= now.items() - before.items()
            assert {**before, **changed(state.budgets, event)} == now
            before = now


def test_what_was_charged_is_what_the_units_took() -> None:
    for events, states in RUNS:
        for name, session in states[-1].sessions.items():
            own = [e for e in events if isinstance(e, Took) and e.session == name]
            for where in states[-1].budgets.roots:
                assert session.spent(where) == sum(e.charged.get(where, 0) for e in own)
            assert session.queries == sum(e.rule is Rule.QUERY for e in own)


# ── what cannot have happened ────────────────────────────────────────────────────────


def recorded_run() -> list[Event]:
    """0 began, 1 root, 2 assign, 3 partition, 4 query, 5 answer, 6 ⊥, 7 query of two parts."""
    state, events = begun(root("A")), [Began("id"), root("A")]
    parts = Query("A", Fraction(1, 4), (Count(), Count()), BY)
    for action in (
        Assign("t", Identity(), ("A",)),
        Partition(("p", "q"), "t", BY),
        count("1/4", "p"),
        None,
        count(2),
        parts,
    ):
        if action is None:
            events.append(Recorded(4, ((1,),)))
            state = take(state, events[-1])
            continue
        state, took = act(state, "s", action, "ann")
        events.append(took)
    return events


RUN = recorded_run()
IMPOSSIBLE: dict[str, tuple[int, Callable[[Any], Event], str]] = {
    "another rule": (4, lambda e: replace(e, rule=Rule.QUERY_BOTTOM), "the rule is Query, not Query⊥"),
    "an answer for a refusal": (6, lambda e: replace(e, rule=Rule.QUERY), "the rule is Query⊥"),
    "a smaller charge": (4, lambda e: replace(e, charged={"A": Fraction(1, 8)}), "the charge is not"),
    "a charge of a refusal": (6, lambda e: replace(e, charged={"A": Fraction(1, 8)}), "the charge is not"),
    "another analyst": (4, lambda e: replace(e, analyst="bob"), "another analyst's session"),
    "an unknown table": (4, lambda e: replace(e, action=count(1, "z")), "the kernel refuses"),
    "no action": (4, lambda e: replace(e, action=replace(e.action, queries=[Count()])), "kernel refuses"),
    "an answer to no question": (5, lambda e: replace(e, answers=2), "was not asked"),
    "an answer to a refusal": (7, lambda e: Recorded(6, ((1,),)), "was not asked"),
    "an answer again": (6, lambda e: Recorded(4, ((1,),)), "answered before"),
    "an answer too many": (5, lambda e: replace(e, released=((1,), (2,))), "what was asked for"),
    "no answer": (5, lambda e: replace(e, released=()), "what was asked for"),
    "a second beginning": (2, lambda e: Began("id"), "begins once"),
    "no beginning": (0, lambda e: root("A"), "begins once"),
    "a second budget": (2, lambda e: root("A"), "a second budget"),
    "the same data again": (2, lambda e: root("B", contents=["A", "b"]), "already, as 'A'"),
    "a block of nothing": (2, lambda e: root("B", block_of="Z"), "unknown table"),
}  # fmt: skip


def test_the_run_itself_is_possible() -> None:
    state = NOTHING
    for event in RUN:
        state = take(state, event)
    assert state.events == len(RUN)
    assert dict(state.awaited) == {7: 2}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_cannot_have_happened_is_not_taken(what: str) -> None:
    number, change, words = IMPOSSIBLE[what]
    state = NOTHING
    for event in RUN[:number]:
        state = take(state, event)
    with pytest.raises(NotAsRecorded, match=words):
        take(state, change(RUN[number]))


@pytest.mark.parametrize("what", ["another rule", "a smaller charge", "another analyst", "an unknown table"])
def test_a_session_does_not_follow_what_cannot_have_happened(what: str) -> None:
    number, change, words = IMPOSSIBLE[what]
    state, session = begun(root("A")), opened("ann")
    for at in (2, 3):
        took = RUN[at]
        assert isinstance(took, Took)
        session = followed(state.budgets, session, took, at)
    wrong = change(RUN[number])
    assert isinstance(wrong, Took)
    if wrong.rule is Rule.QUERY_BOTTOM:  # whether the others left enough cannot be told from here
        assert followed(state.budgets, session, wrong, number) == session
        wrong = replace(wrong, analyst="bob")
        words = "another analyst"
    with pytest.raises(NotAsRecorded, match=words):
        followed(state.budgets, session, wrong, number)


# ── what sessions share ──────────────────────────────────────────────────────────────


def test_a_session_steps_with_what_the_others_leave_it() -> None:
    state, _ = act(begun(root("A")), "s", count("2/3"))
    assert rule_of(state, "t", count("1/2")) is Rule.QUERY_BOTTOM
    assert rule_of(state, "t", count("1/3")) is Rule.QUERY
    assert left(state, "t") == left(state, "s") == Fraction(1, 3)


def test_what_others_spend_is_rounded_up_and_one_s_own_is_not() -> None:
    state, _ = act(begun(root("A", Fraction(1, 43), contents=["a"])), "s", count(Fraction(1, 86)))
    assert left(state, "s") == Fraction(1, 86)
    assert left(state, "t") < Fraction(1, 86)
    assert rule_of(state, "s", count(Fraction(1, 86))) is Rule.QUERY
    assert rule_of(state, "t", count(Fraction(1, 86))) is Rule.QUERY_BOTTOM


def test_a_cap_counts_the_analyst_s_own_sessions_and_no_others() -> None:
    state = begun(root("A", caps={"ann": "1/2"}, cap="3/4"))
    state, _ = act(state, "a", count("1/4"), "ann")
    state, _ = act(state, "b", count("1/4"), "bob")
    assert left(state, "a", "ann") == left(state, "other", "ann") == Fraction(1, 4)
    assert left(state, "other", "bob") == Fraction(1, 2)
    assert left(state, "nobody") == Fraction(1, 2)
    assert rule_of(state, "other", count("1/3"), "ann") is Rule.QUERY_BOTTOM
    assert rule_of(state, "other", count("1/3"), None) is Rule.QUERY


def found(delta: Any, epsilon: Any = "1/100") -> Query:
    """A query that finds keys."""
    key = next(name for name, type_ in SCHEMA.columns if type_ is Type.INT64)
    stable = Stable(Column(key), IntegerDomain(0, 9), Fraction(delta), 1, 10)
    return Query("A", Fraction(epsilon), (stable,))


def delta_left(state: State, name: str, analyst: str | None = None) -> Fraction:
    told = decide(state.budgets, state.sessions.get(name) or opened(analyst), AskBudget()).transition.label
    return told.fact["A δ"]  # type: ignore[no-any-return,union-attr,index,call-overload]


def test_a_cap_of_delta_counts_the_analyst_s_own_sessions_and_no_others() -> None:
    budget = approximate(1, "1/2", "1/2")
    state = begun(root("A", budget, keys_caps={"ann": "1/10", "eve": 0}, keys_cap="1/4"))
    events: list[Event] = []
    for name, analyst in (("a", "ann"), ("b", "bob"), ("c", None)):
        state, event = act(state, name, found("1/20"), analyst)
        events.append(event)
        assert event.rule is Rule.QUERY
    assert delta_left(state, "a", "ann") == delta_left(state, "other", "ann") == Fraction(1, 20)
    assert delta_left(state, "other", "bob") == Fraction(1, 5)
    assert delta_left(state, "nobody") == Fraction(7, 20)
    assert delta_left(state, "new", "eve") == 0
    for analyst, delta, rule in (
        ("ann", "1/20", Rule.QUERY), ("ann", "1/19", Rule.QUERY_BOTTOM), ("eve", "1/1000", Rule.QUERY_BOTTOM),
        ("bob", "1/5", Rule.QUERY), ("bob", "1/4", Rule.QUERY_BOTTOM), (None, "1/4", Rule.QUERY),
    ):  # fmt: skip
        before = state.budgets.spent
        after, event = act(state, "fresh", found(delta), analyst)
        assert event.rule is rule
        assert (after.budgets.spent == before) == (rule is Rule.QUERY_BOTTOM)
    again = begun(root("A", budget, keys_caps={"ann": "1/10", "eve": 0}, keys_cap="1/4"))
    for event in events:
        again = take(again, event)
    assert again.budgets.spent == state.budgets.spent


def test_a_cap_of_delta_needs_a_delta_and_is_part_of_what_was_promised() -> None:
    for budget, cap in ((1, "1/10"), (approximate(1, "1/2"), "1/10")):
        with pytest.raises(errors.BadEpsilon, match="δ for keys"):
            root("A", budget, keys_cap=cap)
    for wrong in (1, "-1/2", "many"):
        with pytest.raises(errors.BadEpsilon):
            root("A", approximate(1, "1/2", "1/2"), keys_caps={"ann": wrong})
    promised = root("A", approximate(1, "1/2", "1/2"), keys_caps={"ann": "1/10"})
    budgets = begun(promised).budgets
    assert budgets.promised(("A δ", "ann")) == Fraction(1, 10)
    assert budgets.promised(("A δ", "bob")) is None
    with pytest.raises(errors.RegisteredDifferently, match="caps"):
        known(budgets, replace(promised, keys_caps=None))
    with pytest.raises(errors.RegisteredDifferently, match="caps"):
        known(budgets, replace(promised, keys_cap=Fraction(1, 3)))
    assert promised.keys_cap_of(None) is None


def test_a_cap_may_be_spent_at_once_and_to_the_last() -> None:
    state = begun(root("A", 1, cap="1/2"))
    assert rule_of(state, "s", count("1/2"), "ann") is Rule.QUERY
    assert left(state, "s", "ann") == Fraction(1, 2)


def test_a_root_that_arrives_later_is_a_table_of_every_session() -> None:
    state, _ = act(begun(root("A")), "s", Partition(("p", "q"), "A", BY))
    state, _ = act(state, "s", count("1/4", "p"))
    with pytest.raises(errors.UnknownTable):
        act(state, "s", count("1/4", "B"))
    state = take(state, root("B"))
    state, took = act(state, "s", count("1/4", "B"))
    assert took.charged == {"B": Fraction(1, 4)}
    state, took = act(state, "s", count("1/4", "q"))
    assert took.charged == {}  # the parts' maximum does not grow
    assert set(configuration(state.budgets, opened(None)).environment) == {"A", "B"}


def test_a_frozen_root_is_not_measured_and_not_charged() -> None:
    state = begun(root("A"), root("B"), Froze("A"))
    state, _ = act(state, "s", Assign("t", Identity(), ("A",)))
    for table in ("A", "t"):
        with pytest.raises(errors.Frozen) as refused:
            act(state, "s", count("1/4", table))
        assert refused.value.name == "A"
    assert rule_of(state, "s", count(2, "t")) is Rule.QUERY_BOTTOM
    assert rule_of(state, "s", count("1/4", "B")) is Rule.QUERY
    state = take(state, Unfroze("A"))
    assert rule_of(state, "s", count("1/4", "t")) is Rule.QUERY


def test_of_several_frozen_roots_the_first_by_name_is_said() -> None:
    state = begun(root("B"), root("A"), Froze("B"), Froze("A"))
    state, _ = act(state, "s", Assign("t", Concat(), ("B", "A")))
    with pytest.raises(errors.Frozen) as refused:
        act(state, "s", count("1/4", "t"))
    assert refused.value.name == "A"


@pytest.mark.parametrize("kind", [Budgets, *get_args(Event)], ids=lambda kind: kind.__name__)
def test_what_is_written_down_and_what_is_shared_cannot_change(kind: Any) -> None:
    assert kind.__dataclass_params__.frozen


def test_a_decision_leaves_what_it_was_made_on_as_it_was() -> None:
    state = begun(root("A"))
    before = amounts(state.budgets, state.budgets.spent)
    after, _ = act(state, "s", count("1/2"))
    assert isinstance(decide(state.budgets, opened(None), count("1/2")).transition.label, Measure)
    assert amounts(state.budgets, state.budgets.spent) == before
    assert "s" not in state.sessions
    assert after.sessions["s"].queries == 1


def test_sessions_are_whose_they_are_and_ask_as_many_queries_as_they_may() -> None:
    state, _ = act(begun(root("A")), "s", count("1/4"), "ann")
    session = state.sessions["s"]
    check_owner(session, "s", "ann")
    with pytest.raises(errors.OthersSession) as others:
        check_owner(session, "s", "bob")
    assert others.value.session == "s"
    for enough in (None, 1):
        check_queries(session, enough)
    with pytest.raises(errors.TooManyQueries) as many:
        check_queries(session, 0)
    assert many.value.at_most == 0


def test_forgetting_a_variable_is_no_event_and_refunds_nothing() -> None:
    state, _ = act(begun(root("A")), "s", Assign("t", Identity(), ("A",)))
    state, _ = act(state, "s", count("1/4", "t"))
    gone = forgotten(state, "s", ["t", "never"])
    assert (gone.events, gone.budgets, gone.awaited) == (state.events, state.budgets, state.awaited)
    assert left(gone, "s") == Fraction(3, 4)
    with pytest.raises(errors.UnknownTable):
        act(gone, "s", count("1/4", "t"))
    assert forgotten(state, "other", ["t"]) == state


# ── what was promised ────────────────────────────────────────────────────────────────


def test_what_was_promised_stays() -> None:
    promised = root("A", 1, unit="person", caps={"ann": "1/2"}, cap="3/4")
    budgets = begun(promised).budgets
    assert known(budgets, promised) == promised
    assert known(budgets, root("B")) is None
    assert known(budgets, root("B", block_of="A")) is None
    other = Schema((("x", Type.BOOL),))
    for what, differing in {
        "budget": replace(promised, budget=Fraction(2)),
        "unit": replace(promised, unit=None),
        "columns": replace(promised, shape=other),
        "caps": replace(promised, caps=None),
    }.items():
        with pytest.raises(errors.RegisteredDifferently, match=what) as refused:
            known(budgets, differing)
        assert refused.value.what == what
    assert known(budgets, replace(promised, shape=other), but_shape=True) == promised
    with pytest.raises(errors.DataChanged):
        known(budgets, replace(promised, contents=("other",)))
    with pytest.raises(errors.SameData, match="name='A'") as same:
        known(budgets, root("B", contents=["x", "A"]))
    assert (same.value.name, same.value.known_as) == ("B", "A")
    assert "other columns" in str(errors.SameData("B", "A", alike=True))
    with pytest.raises(errors.UnknownTable):
        known(budgets, root("B", block_of="Z"))


def test_an_account_is_promised_its_budget_or_its_cap() -> None:
    budgets = begun(root("A", 1, caps={"ann": "1/2"}), root("B", 2, cap="1/3")).budgets
    assert budgets.promised(("A", "")) == 1
    assert budgets.promised(("A", "ann")) == Fraction(1, 2)
    assert budgets.promised(("A", "bob")) is None
    assert budgets.promised(("B", "bob")) == Fraction(1, 3)
    assert budgets.promised(("Z", "")) is None
    assert root("A").cap_of(None) is None


def upgrade(**spent: dict[str, Any]) -> Upgraded:
    exact = {name: {who: Fraction(cost) for who, cost in each.items()} for name, each in spent.items()}
    return Upgraded(1, 7, "ab" * 32, exact)


def test_what_an_older_ledger_spent_is_spent_by_others() -> None:
    before = begun(root("A", 1, caps={"ann": "1/2"}), root("B"), root("C"))
    event = upgrade(A={"": "3/4", "ann": "3/8"}, B={"": 0}, C={"": 1})
    state = take(before, event)
    of_each = [("A", ""), ("A", "ann"), ("B", ""), ("C", "")]
    assert changed(state.budgets, event) == amounts(state.budgets, of_each)
    assert rule_of(state, "s", count("1/1000", "C")) is Rule.QUERY_BOTTOM
    assert amounts(state.budgets, state.budgets.spent) == changed(state.budgets, event)
    assert left(state, "s") == Fraction(1, 4)
    assert left(state, "t", "ann") == Fraction(1, 8)
    assert rule_of(state, "s", count("1/4")) is Rule.QUERY
    assert rule_of(state, "s", count("3/8")) is Rule.QUERY_BOTTOM


@pytest.mark.parametrize(
    "spent",
    [
        {"A": {"": "5/4"}},
        {"A": {"": "-1/4"}},
        {"A": {"": Fraction(1, 41)}},
        {"A": {"ann": "1/4"}},
        {"Z": {"": "1/4"}},
    ],
    ids=["more than there is", "less than nothing", "no whole units", "of no cap", "of no root"],
)
def test_an_older_ledger_brings_along_only_what_was_promised(spent: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(NotAsRecorded, match=f"{next(iter(spent))!r} was not promised"):
        take(begun(root("A")), upgrade(**spent))


def test_a_ledger_is_upgraded_before_anything_is_spent() -> None:
    state, _ = act(begun(root("A"), root("B")), "s", count("1/4"))
    with pytest.raises(NotAsRecorded, match="after something was spent"):
        take(state, upgrade(A={"": "1/4"}))


def test_what_is_written_down_has_a_kind_of_its_own_that_stays() -> None:
    assert {kind: event.__name__ for kind, event in KINDS.items()} == {
        "ledger": "Began",
        "root": "Registered",
        "action": "Took",
        "answer": "Recorded",
        "freeze": "Froze",
        "unfreeze": "Unfroze",
        "upgrade": "Upgraded",
    }
    assert [rule.value for rule in Rule] == [
        "Silent", "Assign", "Partition", "Query", "Query⊥", "AskScale", "AskBudget", "AskPrice",
    ]  # fmt: skip


def test_a_session_counts_what_it_spent_at_each_root() -> None:
    state, _ = act(begun(root("A"), root("B")), "s", count("1/4"))
    assert state.sessions["s"].spent("A") == Fraction(1, 4)
    assert state.sessions["s"].spent("B") == 0
    assert state.sessions["s"].configuration.accounts.counters == {Root("A"): Fraction(1, 4)}
