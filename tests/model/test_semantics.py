"""One test per rule, then properties over random programs."""

from fractions import Fraction
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.checker.scope import BROAD, ROOTS, constructions, questions, start
from fpinq.model.accounts import Accounts, Part, PartitionAccount, Root, certify, remaining
from fpinq.model.actions import Action, AskBudget, AskPrice, AskScale, Assign, Partition, Query, Silent
from fpinq.model.clamps import Clamp
from fpinq.model.errors import (
    BadEpsilon,
    BadPartition,
    BadQuery,
    BadTransformation,
    ProgramError,
    UnboundedStability,
    UnknownColumn,
    UnknownTable,
    WrongArity,
)
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import Flatten, Persons, PersonTable, RootTable, Term
from fpinq.model.queries import Count, Sum
from fpinq.model.semantics import (
    BOTTOM,
    TAU,
    Configuration,
    Label,
    Measure,
    Table,
    Told,
    Transition,
    initial,
    step,
)
from fpinq.model.traces import Answered, Client, Observation, traces
from fpinq.model.transformations import (
    Aggregate,
    Concat,
    Distinct,
    GroupBy,
    Partitioning,
    PartOf,
    Select,
    SemiJoin,
    Where,
)

S = Schema.of({"k": Type.INT64, "v": Type.INT64})
K = Column("k")
BY = Partitioning(K, (0, 1))


def opened(budget: int = 10) -> Configuration:
    return initial({"A": (S, Fraction(budget)), "B": (S, Fraction(budget))})


def after(c: Configuration, *actions: Action) -> Configuration:
    for action in actions:
        c = step(c, action).configuration
    return c


def test_initially_a_root_is_its_own_table_with_sensitivity_one() -> None:
    assert opened().table("A").sensitivity == {Root("A"): 1}
    assert remaining(opened().accounts) == {Root("A"): 10, Root("B"): 10}


def test_silent_changes_nothing() -> None:
    transition = step(opened(), Silent())
    assert (transition.rule, transition.label, transition.configuration) == ("Silent", TAU, opened())


def test_assign_combines_sensitivities_by_the_stability() -> None:
    grouped = GroupBy((("k", K),), (("n", Aggregate("count")),))
    c = after(opened(), Assign("g", grouped, ("A",)), Assign("t", Concat(), ("A", "B")))
    assert c.table("g").sensitivity == {Root("A"): 2}
    assert c.table("g").plan == Term(grouped, (RootTable("A"),))
    assert c.table("g").shape == Schema.of({"k": Type.INT64, "n": Type.INT64})
    assert c.table("t").sensitivity == {Root("A"): 1, Root("B"): 1}
    assert c.accounts == opened().accounts


def test_partition_makes_every_part_a_fresh_source() -> None:
    c = after(opened(), Partition(("p", "q"), "A", BY), Partition(("r", "s"), "A", BY))
    assert [c.table(t).sensitivity for t in "pqrs"] == [{Part(i, j): 1} for i in (0, 1) for j in (0, 1)]
    assert c.table("q").plan == Term(PartOf(BY, 1), (RootTable("A"),))


def test_query_says_what_to_measure_and_charges() -> None:
    transition = step(opened(), Query("A", Fraction(3), (Count(), Count()), BY))
    assert transition.rule == "Query"
    assert transition.label == Measure(RootTable("A"), S, BY, (Count(), Count()), Fraction(3))
    assert remaining(transition.configuration.accounts)[Root("A")] == 7


def test_query_bottom_changes_nothing() -> None:
    transition = step(opened(), Query("A", Fraction(11), (Count(),)))
    assert (transition.rule, transition.label, transition.configuration) == ("Query⊥", BOTTOM, opened())


def test_ask_scale_tells_the_scaling_factor() -> None:
    c = after(
        opened(),
        Assign("g", GroupBy((("k", K),), (("n", Aggregate("count")),)), ("A",)),
        Partition(("p", "q"), "g", Partitioning(K, (0, 1))),
    )
    assert step(c, AskScale("p")).label == Told(2)
    assert step(c, AskScale("p")).configuration == c


def test_ask_budget_tells_what_is_left() -> None:
    c = after(opened(), Query("A", Fraction(3), (Count(),)))
    assert step(c, AskBudget()).label == Told({"A": Fraction(7), "B": Fraction(10)})


def test_ask_price_tells_what_a_query_would_cost_now() -> None:
    c = after(opened(), Partition(("p", "q"), "A", BY), Query("p", Fraction(3), (Count(),)))
    assert step(c, AskPrice("q", Fraction(5))).label == Told({"A": Fraction(2), "B": Fraction(0)})
    assert step(c, AskPrice("q", Fraction(5))).configuration == c


def test_persons_are_flattened_into_rows() -> None:
    persons = Persons("id", (("visits", S),))
    c = initial({"P": (persons, Fraction(1))})
    c = after(c, Assign("visits", Flatten(PersonTable("visits", 5)), ("P",)))
    assert c.table("visits").sensitivity == {Root("P"): 5}
    for action in (Query("P", Fraction(1), (Count(),)), Partition(("p",), "P", Partitioning(K, (0,)))):
        with pytest.raises(BadTransformation, match="flatten"):
            step(c, action)


@pytest.mark.parametrize(
    ("action", "error", "why"),
    [
        (Assign("t", Distinct(), ("C",)), UnknownTable, "unknown table 'C'"),
        (Query("AA", Fraction(1), (Count(),)), UnknownTable, "did you mean 'A'"),
        (AskScale("nobody"), UnknownTable, "unknown"),
        (AskPrice("A", Fraction(0)), BadEpsilon, "> 0"),
        (Query("A", Fraction(-1), (Count(),)), BadEpsilon, "> 0"),
        (Query("A", float("nan"), (Count(),)), BadEpsilon, "finite"),  # type: ignore[arg-type]
        (Assign("t", Concat(), ("A",)), WrongArity, "takes 2"),
        (Assign("t", Where(Apply("greater", (K, Literal.of("a")))), ("A",)), ProgramError, "greater takes"),
        (Assign("t", Where(Column("kk")), ("A",)), UnknownColumn, "did you mean 'k'"),
        (Assign("t", SemiJoin((K,), (K,)), ("A", "B")), UnboundedStability, "argument 2"),
        (Assign("A", Distinct(), ("B",)), BadTransformation, "root"),
        (Assign("", Distinct(), ("B",)), BadTransformation, "name"),
        (Assign("x\ud800", Distinct(), ("B",)), BadTransformation, "name"),
        (Assign("t", Select((("x\ud800", K),)), ("B",)), BadTransformation, "lone surrogate"),
        (Partition(("p",), "A", BY), BadPartition, "for every key"),
        (Partition(("p", "p"), "A", BY), BadPartition, "for every key"),
        (Partition(("p", "A"), "A", BY), BadTransformation, "root"),
        (Partition((), "A", Partitioning(K, ())), BadPartition, "keys"),
        (Partition(("p", "q"), "A", Partitioning(K, (1, 1))), BadPartition, "different"),
        (Query("A", Fraction(1), (Count(), Count(), Count()), BY), BadQuery, "2 part"),
        (Query("A", Fraction(1), (), BY), BadQuery, "2 part"),
        (Query("A", Fraction(1), ()), BadQuery, "1 part"),
        (Query("A", Fraction(1), (Count(), Count())), BadQuery, "1 part"),
        (Query("A", Fraction(1), (Count(),), Partitioning(K, ())), BadPartition, "keys"),
        (Query("A", Fraction(1), (Sum(Clamp(K, 1, 0)),)), BadQuery, "lower"),
    ],
)
def test_a_mistake_is_a_typed_error_before_anything_changes(
    action: Action, error: type[ProgramError], why: str
) -> None:
    with pytest.raises(error, match=why):
        step(opened(), action)


def test_a_semi_join_with_a_public_table_is_allowed() -> None:
    c = after(start((5, 5)), Assign("t", SemiJoin((K,), (K,)), ("A", "L")))
    assert c.table("t").sensitivity == {Root("A"): 1}


# ── properties over random programs ──────────────────────────────────────────────────


@given(st.lists(st.integers(0, 10**6), max_size=12))
def test_no_step_overspends_and_the_certificate_holds(choices: list[int]) -> None:
    c = start((6, 5))
    for number, choice in enumerate(choices):
        menu: list[Action] = [*constructions(BROAD, c, number), *questions(BROAD, c)]
        before = remaining(c.accounts)
        try:
            transition = step(c, menu[choice % len(menu)])
        except ProgramError:
            continue
        c = transition.configuration
        certify(c.accounts)
        left = remaining(c.accounts)
        assert all(0 <= left[Root(root)] <= before[Root(root)] for root in ROOTS)
        if transition.rule != "Query":
            assert left == before


def test_a_trace_branches_on_answers_only() -> None:
    def client(seen: tuple[Observation, ...]) -> Action:
        return Query("A", Fraction(8), (Count(),)) if len(seen) != 1 else AskBudget()

    def coin(_: Measure) -> dict[tuple[int, ...], Fraction]:
        return {(0,): Fraction(1, 3), (1,): Fraction(2, 3)}

    asked: Client = client
    found = list(traces(asked, opened(), coin, 3))
    told = Told({"A": Fraction(2), "B": Fraction(10)})
    assert [t.observations for t in found] == [
        (Answered((i,), {"A": Fraction(8)}), told, BOTTOM) for i in (0, 1)
    ]
    assert [t.probability for t in found] == [Fraction(1, 3), Fraction(2, 3)]


@pytest.mark.parametrize(
    "kind",
    [*get_args(Label), Configuration, Table, Transition, Accounts, PartitionAccount],
    ids=lambda k: k.__name__,
)
def test_what_a_rule_reads_and_gives_cannot_change(kind: Any) -> None:
    assert kind.__dataclass_params__.frozen
