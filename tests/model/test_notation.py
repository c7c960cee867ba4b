"""How programs are written: the paper's notation."""

from fractions import Fraction

import pytest

from fpinq.model.actions import Action, AskBudget, AskPrice, AskScale, Assign, Partition, Query, Silent
from fpinq.model.clamps import Clamp
from fpinq.model.environments import Numbered
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.notation import show_action, show_expression, show_plan
from fpinq.model.plans import Flatten, PersonTable, RootTable, Term
from fpinq.model.queries import Count
from fpinq.model.transformations import (
    Aggregate,
    All,
    Distinct,
    First,
    GroupBy,
    Join,
    LiteralTable,
    Partitioning,
    PartOf,
    SelectMany,
    SemiJoin,
    Take,
    Union,
    Unique,
    Where,
)

K = Column("k")
ADULT = Apply("greater", (Column("age"), Literal.of(17)))


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (Silent(), "τ"),
        (Assign("t", Where(ADULT), ("people",)), "t := where[age > 17](people)"),
        (Assign("t", Take(2), ("A",)), "t := take[2](A)"),
        (Assign("t", Distinct(), ("A",)), "t := distinct(A)"),
        (Assign("t", Union(bag=True), ("A", "B")), "t := union[bag](A, B)"),
        (Assign("t", Union(), ("A", "B")), "t := union(A, B)"),
        (Assign("t", SemiJoin((K,), (K,)), ("A", "B")), "t := semi_join[k, k, keep](A, B)"),
        (Assign("t", LiteralTable(Schema.of({"k": Type.INT64}), ((1,), (None,)))), "t := {⟨1⟩, ⟨null⟩}"),
        (Assign("t", SelectMany(((("k", K),),) * 3, 3), ("A",)), "t := select_many[3×(k), 3](A)"),
        (
            Assign("t", SelectMany(((("k", K),), (("k", Column("v")),)), 2), ("A",)),
            "t := select_many[(k), (k = v), 2](A)",
        ),
        (
            Assign(
                "t",
                GroupBy((("k", K),), (("n", Aggregate("count")), ("s", Aggregate("sum", Clamp(K, 0, 3))))),
                ("A",),
            ),
            "t := group_by[k, n = count(), s = sum(k in 0…3)](A)",
        ),
        (
            Assign("t", Join((K,), (K,), First(1), Unique(), (("k", K),)), ("A", "B")),
            "t := join[k, k, first 1, unique, k](A, B)",
        ),
        (
            Assign("t", Join((K,), (K,), All(), Unique(), (("k", K),)), ("A", "B")),
            "t := join[k, k, all, unique, k](A, B)",
        ),
        (
            Assign("t", Join((K,), (K,), All(), Unique(), (("k", K),), outer=True), ("A", "B")),
            "t := join[k, k, all, unique, k, outer](A, B)",
        ),
        (Assign("t", Flatten(PersonTable("visits", 5)), ("P",)), "t := flatten[first 5 of visits](P)"),
        (Partition(("p", "q"), "A", Partitioning(K, (0, None))), "p, q := partition[k: 0, null](A)"),
        (Partition(Numbered("p", 9), "A", Partitioning(K, range(9))), "p.0…p.8 := partition[k: 0…8](A)"),
        (Query("A", Fraction(1, 2), (Count(),)), "query(A, count, 1/2)"),
        (
            Query("A", Fraction(1), (Count(), Count()), Partitioning(K, (0, 1))),
            "query(A, k: 0, 1, count, count, 1)",
        ),
        (AskScale("A"), "A ? s"),
        (AskBudget(), "budget ? B"),
        (AskPrice("A", Fraction(1, 3)), "price(A, 1/3) ? C"),
        (AskPrice("A", Fraction(1, 3), Fraction(1, 9)), "price(A, 1/3, 1/9) ? C"),
    ],
)
def test_an_action_is_written_as_in_the_paper(action: Action, text: str) -> None:
    assert show_action(action) == text


def test_nested_operators_are_in_parentheses() -> None:
    both = Apply("and", (ADULT, Apply("not", (Apply("equal", (K, Literal.of(True))),))))
    assert show_expression(both) == "(age > 17) ∧ not(k = true)"


def test_a_plan_is_written_inside_out() -> None:
    plan = Term(Take(1), (Term(PartOf(Partitioning(K, (0, 1)), 1), (RootTable("A"),)),))
    assert show_plan(plan) == "take[1](part[k: 0, 1, 1](A))"
