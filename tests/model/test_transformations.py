"""Transformations and plans: shapes, stabilities, and what is refused."""

from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import pytest

from fpinq.model.accounts import UNBOUNDED
from fpinq.model.clamps import Clamp
from fpinq.model.errors import (
    BadExpression,
    BadPartition,
    BadQuery,
    BadTransformation,
    ProgramError,
    UnboundedStability,
    UnknownColumn,
    WrongArity,
)
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.plans import (
    MAX_DEPTH,
    OPERATOR_LEVELS,
    STEP_LEVELS,
    Flatten,
    Persons,
    PersonTable,
    Plan,
    RootTable,
    Shape,
    Term,
    Transformation,
    apply,
    bounded_stability,
    roots_of,
    rows_at_most,
    stability_on,
)
from fpinq.model.transformations import (
    MAX_TABLES,
    Aggregate,
    All,
    Concat,
    ConcatAll,
    Distinct,
    Except,
    Explode,
    First,
    GroupBy,
    GroupJoin,
    Identity,
    Intersect,
    Join,
    LimitPerKey,
    LiteralTable,
    Partitioning,
    PartOf,
    Select,
    SelectMany,
    SemiJoin,
    Take,
    Union,
    Unique,
    UniqueBy,
    Where,
    every_column,
)

S = Schema.of({"k": Type.INT64, "v": Type.FLOAT64, "s": Type.STRING})
K, V, TEXT = Column("k"), Column("v"), Column("s")
WORDS = Apply("split", (TEXT, Literal.of(" ")))
PEOPLE = Persons("id", (("people", S), ("visits", S)))
COUNT = (("n", Aggregate("count")),)
KEY = (("k", K),)
VISITS = PersonTable("visits", 5)


def join(left: Any, right: Any, outer: bool = False) -> Join:
    return Join((K,), (K,), left, right, (("a", Column("l.v")), ("b", Column("r.s"))), outer)


@pytest.mark.parametrize(
    ("transformation", "stability"),
    [
        (LiteralTable(S, ()), ()),
        (Identity(), (1,)),
        (Select(KEY), (1,)),
        (Where(Literal.of(True)), (1,)),
        (Distinct(), (1,)),
        (SelectMany((KEY,), 7), (7,)),
        (Explode(WORDS, "w", 3), (3,)),
        (Take(9), (2,)),
        (GroupBy(KEY, COUNT), (2,)),
        (LimitPerKey(9, (K,)), (2,)),
        (UniqueBy((K,)), (1,)),
        (Concat(), (1, 1)),
        (ConcatAll(3), (1, 1, 1)),
        (Union(), (1, 1)),
        (Intersect(bag=True), (1, 1)),
        (Except(), (1, 1)),
        (SemiJoin((K,), (K,)), (1, UNBOUNDED)),
        (GroupJoin(("k",), (K,), (K,), COUNT, (("m", Aggregate("count")),)), (2, 2)),
        (join(First(3), First(5)), (10, 6)),
        (join(Unique(), First(5)), (5, 2)),
        (join(Unique(), Unique()), (1, 1)),
        (join(All(), First(5)), (5, UNBOUNDED)),
        (join(First(3), First(5), outer=True), (10, 6)),
        (join(First(3), Unique(), outer=True), (2, 6)),
        (join(All(), Unique(), outer=True), (1, UNBOUNDED)),
        (PartOf(Partitioning(K, (1,)), 0), (1,)),
        (Flatten(VISITS), (5,)),
    ],
)
def test_a_transformation_has_its_stability(
    transformation: Transformation, stability: tuple[Any, ...]
) -> None:
    assert transformation.stability == stability
    arguments = [PEOPLE] if isinstance(transformation, Flatten) else [S] * len(stability)
    assert isinstance(apply(transformation, arguments), Schema)
    with pytest.raises(WrongArity):
        apply(transformation, [*arguments, S])


def test_every_transformation_is_in_the_table_above() -> None:
    marks = test_a_transformation_has_its_stability.pytestmark  # type: ignore[attr-defined]
    assert {type(case[0]) for case in marks[0].args[1]} == set(get_args(Transformation))


HALF = Apply("floor_divide", (K, Literal.of(2)))
LEFT_HALF = Apply("floor_divide", (Column("l.k"), Literal.of(2)))
RIGHT_HALF = Apply("floor_divide", (Column("r.k"), Literal.of(2)))


def keyed(keys: tuple[Expression, ...], *record: Expression) -> Join:
    return Join(keys, keys, First(3), First(5), tuple((f"c{i}", value) for i, value in enumerate(record)))


@pytest.mark.parametrize(
    ("transformation", "stability"),
    [
        (GroupBy(KEY, ()), (1,)),
        (GroupBy(KEY, (("m", Aggregate("max", K)), ("n", Aggregate("min", HALF)))), (1,)),
        (GroupBy(KEY, (("m", Aggregate("max", K)), *COUNT)), (2,)),
        (GroupBy((("h", HALF),), (("m", Aggregate("max", K)),)), (2,)),
        (GroupBy((("h", HALF),), (("m", Aggregate("max", HALF)),)), (1,)),
        (GroupBy(KEY, (("m", Aggregate("average", Clamp(K, 0, 9))),)), (2,)),
        (GroupBy((), (("m", Aggregate("max", Literal.of(1))),)), (1,)),
        (GroupJoin(("k",), (K,), (K,), COUNT, ()), (2, 1)),
        (GroupJoin(("k",), (K,), (K,), (), COUNT), (1, 2)),
        (GroupJoin(("k",), (K,), (K,), (), ()), (1, 1)),
        (keyed((K,), Column("l.v"), Column("r.v")), (10, 6)),
        (keyed((K,), Column("l.k"), Column("r.v")), (5, 6)),
        (keyed((K,), Column("l.v"), Column("r.k")), (10, 3)),
        (keyed((K,), Literal.of(0)), (5, 3)),
        (replace(keyed((K,), Column("l.k"), Column("r.k")), outer=True), (5, 6)),
        (keyed((K, V, TEXT), Column("l.s"), Column("r.v"), Column("l.k")), (5, 3)),
        (keyed((K, V), Column("l.s"), Column("r.v"), Column("l.k")), (10, 3)),
        (keyed((HALF,), LEFT_HALF, Apply("add", (RIGHT_HALF, Literal.of(1)))), (5, 3)),
        (keyed((HALF,), Column("l.k"), RIGHT_HALF), (10, 3)),
        (keyed((K,), LEFT_HALF, Apply("add", (Column("r.k"), Column("l.k")))), (5, 3)),
    ],
)
def test_where_only_the_key_is_seen_of_a_record_one_more_changes_one(
    transformation: Transformation, stability: tuple[int, ...]
) -> None:
    assert transformation.stability == stability
    assert isinstance(apply(transformation, [S] * len(stability)), Schema)


@pytest.mark.parametrize(
    ("keys", "stability"),
    [((), 2), ((K,), 2), ((K, V), 2), ((K, V, HALF), 2), ((TEXT, K, V), 1), ((K, V, TEXT, HALF), 1)],
)
def test_the_copies_of_a_record_are_all_the_same(keys: tuple[Expression, ...], stability: int) -> None:
    limit = LimitPerKey(2, keys)
    assert stability_on(limit, [S]) == bounded_stability(limit, [True], [S]) == (stability,)
    assert bounded_stability(limit, [True]) == limit.stability == (2,)


@pytest.mark.parametrize(
    ("transformation", "columns"),
    [
        (Select((("a", Apply("negate", (K,))),)), {"a": Type.INT64}),
        (
            GroupBy(KEY, (("m", Aggregate("max", V)), *COUNT)),
            {"k": Type.INT64, "m": Type.FLOAT64, "n": Type.INT64},
        ),
        (GroupBy((), (("t", Aggregate("sum", Clamp(K, 0, 9))),)), {"t": Type.INT64}),
        (GroupBy((), (("t", Aggregate("average", Clamp(K, 0, 9))),)), {"t": Type.FLOAT64}),
        (GroupBy((), (("t", Aggregate("sum", Clamp(V, 0, 9))),)), {"t": Type.FLOAT64}),
        (Explode(WORDS, "w", 3), {"w": Type.STRING}),
        (SelectMany((KEY, KEY), 1), {"k": Type.INT64}),
    ],
)
def test_a_result_has_its_shape(transformation: Transformation, columns: dict[str, Type]) -> None:
    assert apply(transformation, [S]) == Schema.of(columns)


@pytest.mark.parametrize("tables", [0, 1, MAX_TABLES + 1, True, 2.0])
def test_a_concat_of_several_is_of_two_or_more_and_not_of_too_many(tables: Any) -> None:
    with pytest.raises(BadTransformation, match="tables at once"):
        ConcatAll(tables)


def test_a_join_sees_both_sides_columns() -> None:
    assert apply(join(Unique(), Unique()), [S, S]) == Schema.of({"a": Type.FLOAT64, "b": Type.STRING})
    group_join = GroupJoin(("key",), (K,), (K,), COUNT, (("m", Aggregate("min", TEXT)),))
    assert apply(group_join, [S, S]).names() == ("key", "n", "m")


@pytest.mark.parametrize(
    ("transformation", "error", "why"),
    [
        (Where(K), BadTransformation, "predicate"),
        (Where(Column("x")), UnknownColumn, "unknown column"),
        (Select(()), BadTransformation, "one or more columns"),
        (Select((("a", K), ("a", V))), BadTransformation, "different names"),
        (Select((("", K),)), BadTransformation, "different names"),
        (Select((("a", WORDS),)), BadTransformation, "select_many"),
        (SelectMany((), 1), BadTransformation, "records"),
        (SelectMany((KEY, (("k", V),)), 2), BadTransformation, "same columns"),
        (SelectMany((KEY,), 0), BadTransformation, "whole number"),
        (Explode(TEXT, "w", 2), BadTransformation, "array"),
        (Explode(WORDS, "w", -1), BadTransformation, "whole number"),
        (Take(0), BadTransformation, "whole number"),
        (Take(True), BadTransformation, "whole number"),
        (LimitPerKey(1, (WORDS,)), BadTransformation, "key"),
        (UniqueBy((WORDS,)), BadTransformation, "key"),
        (UniqueBy((Column("x"),)), UnknownColumn, "unknown column"),
        (GroupBy(KEY, (("k", Aggregate("count")),)), BadTransformation, "different names"),
        (GroupBy(KEY, (("n", Aggregate("count", K)),)), BadTransformation, "count takes nothing"),
        (GroupBy(KEY, (("n", Aggregate("sum", K)),)), BadTransformation, "clamp"),
        (GroupBy(KEY, (("n", Aggregate("max", Clamp(K, 0, 1))),)), BadTransformation, "expression"),
        (GroupBy(KEY, (("n", Aggregate("max")),)), BadTransformation, "expression"),
        (GroupBy(KEY, (("n", Aggregate("sum", Clamp(TEXT, 0, 1))),)), BadQuery, "number"),
        (PartOf(Partitioning(K, ()), 0), BadPartition, "needs keys"),
        (PartOf(Partitioning(K, (1, 1)), 0), BadPartition, "different"),
        (PartOf(Partitioning(V, (0.0, -0.0)), 0), BadPartition, "different"),
        (PartOf(Partitioning(K, ("a",)), 0), BadExpression, "expected int64"),
        (PartOf(Partitioning(K, (True,)), 0), BadExpression, "expected int64"),
        (PartOf(Partitioning(WORDS, ("a",)), 0), BadPartition, "cannot partition"),
        (PartOf(Partitioning(K, (0, 1)), 2), BadPartition, "no part number"),
        (PartOf(Partitioning(K, (0, 1)), -1), BadPartition, "no part number"),
        (Flatten(VISITS), BadTransformation, "persons"),
    ],
)
def test_a_senseless_transformation_is_refused(
    transformation: Transformation, error: type[ProgramError], why: str
) -> None:
    with pytest.raises(error, match=why):
        apply(transformation, [S])


OTHER = Schema.of({"k": Type.STRING})


@pytest.mark.parametrize(
    ("transformation", "why"),
    [
        (Concat(), "same columns"),
        (ConcatAll(2), "same columns"),
        (Union(), "same columns"),
        (Intersect(), "same columns"),
        (Except(), "same columns"),
        (SemiJoin((K,), (K,)), "same types"),
        (SemiJoin((), ()), "same types"),
        (join(First(0), First(1)), "whole number"),
        (join(First(1), First(0)), "whole number"),
        (GroupJoin(("a",), (K,), (K,), (), ()), "same types"),
        (GroupJoin((), (TEXT,), (K,), COUNT, ()), "name for every key"),
    ],
)
def test_tables_that_do_not_fit_are_refused(transformation: Transformation, why: str) -> None:
    with pytest.raises(BadTransformation, match=why):
        apply(transformation, [S, OTHER])


def test_an_outer_join_looks_at_the_right() -> None:
    with pytest.raises(BadTransformation, match="column of the right"):
        apply(replace(keyed((K,), Column("l.v")), outer=True), [S, S])


def test_a_literal_table_checks_its_rows() -> None:
    assert LiteralTable(Schema.of({"v": Type.FLOAT64}), ((float("nan"),), (-0.0,))).rows == ((None,), (0.0,))
    with pytest.raises(BadTransformation, match="every column"):
        LiteralTable(S, ((1,),))
    with pytest.raises(BadExpression):
        LiteralTable(Schema.of({"k": Type.INT64}), (("a",),))


def test_one_column_without_a_name_is_one_too_many() -> None:
    with pytest.raises(BadTransformation, match="different names"):
        apply(Select((("k", K), ("", K))), [S])


def test_every_column_is_the_record() -> None:
    assert every_column(S) == (K, V, TEXT)


def test_null_is_a_partition_key_and_nan_is_null() -> None:
    assert Partitioning(V, (float("nan"), 1.0)).keys == (None, 1.0)
    assert apply(PartOf(Partitioning(K, (None, 1)), 0), [S]) == S


# ── stability on private data ────────────────────────────────────────────────────────


def test_an_unbounded_stability_needs_a_public_table() -> None:
    semi_join = SemiJoin((K,), (K,))
    assert bounded_stability(semi_join, [True, False]) == (1, 0)
    with pytest.raises(UnboundedStability, match="argument 2") as caught:
        bounded_stability(semi_join, [False, True])
    assert caught.value.argument == 1


# ── persons ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (Term(Identity(), (VISITS,)), 5),
        (Term(SelectMany((KEY, KEY), 2), (VISITS,)), 10),
        (Term(Explode(WORDS, "w", 3), (VISITS,)), 15),
        (Term(Take(2), (VISITS,)), 2),
        (Term(GroupBy((), COUNT), (VISITS,)), 1),
        (Term(GroupBy(KEY, COUNT), (VISITS,)), 5),
        (Term(LimitPerKey(2, ()), (VISITS,)), 2),
        (Term(LimitPerKey(2, (K,)), (VISITS,)), 5),
        (Term(Concat(), (VISITS, PersonTable("people", 1))), 6),
        (Term(Intersect(), (VISITS, PersonTable("people", 1))), 1),
        (Term(Except(), (VISITS, PersonTable("people", 1))), 5),
        (Term(SemiJoin((K,), (K,)), (VISITS, VISITS)), 5),
        (Term(GroupJoin(("k",), (K,), (K,), COUNT, ()), (VISITS, PersonTable("people", 1))), 6),
        (Term(join(All(), All()), (PersonTable("people", 2), VISITS)), 10),
        (Term(join(First(3), First(2)), (PersonTable("people", 1), VISITS)), 2),
        (Term(join(First(3), First(2), outer=True), (PersonTable("people", 1), VISITS)), 2),
        (Term(join(First(1), First(2), outer=True), (VISITS, PersonTable("people", 1))), 5),
        (Term(join(All(), All(), outer=True), (VISITS, Term(LiteralTable(S, ()), ()))), 5),
        (Term(Concat(), (VISITS, Term(LiteralTable(S, ((1, 1.0, "a"),)), ()))), 6),
    ],
)
def test_a_persons_plan_has_a_row_bound_which_is_its_stability(body: Term, rows: int) -> None:
    assert rows_at_most(body) == rows
    assert isinstance(apply(Flatten(body), [PEOPLE]), Schema)
    assert Flatten(body).stability == (rows,)


def test_flatten_inside_a_flatten_makes_no_sense() -> None:
    nested = Term(Flatten(VISITS), (VISITS,))
    assert rows_at_most(nested) == 25
    with pytest.raises(BadTransformation, match="persons"):
        apply(Flatten(nested), [PEOPLE])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (PersonTable("visits", 0), "whole number"),
        (PersonTable("doctors", 1), "no table 'doctors'"),
        (RootTable("A"), "whole root"),
        (Term(Where(K), (VISITS,)), "predicate"),
    ],
)
def test_a_persons_plan_that_makes_no_sense_is_refused(body: Any, why: str) -> None:
    with pytest.raises(BadTransformation, match=why):
        apply(Flatten(body), [PEOPLE])


def test_a_whole_root_has_no_row_bound() -> None:
    with pytest.raises(BadTransformation):
        rows_at_most(RootTable("A"))


def test_a_plan_that_is_too_large_is_refused_when_it_is_made() -> None:
    deep: Plan = RootTable("A")
    for _ in range(MAX_DEPTH):
        deep = Term(Identity(), (deep,))
    with pytest.raises(BadTransformation, match="too large"):
        Term(Identity(), (deep,))
    with pytest.raises(BadTransformation, match="too large"):
        doubled(20)
    with pytest.raises(BadTransformation, match="too large"):
        Term(Flatten(Term(Identity(), (doubled(12),))), (deep,))
    assert doubled(4) == doubled(4)
    assert hash(doubled(4)) == hash(doubled(4))


def doubled(times: int) -> Plan:
    plan: Plan = PersonTable("visits", 1)
    for _ in range(times):
        plan = Term(Concat(), (plan, plan))
    return plan


def test_persons_must_be_flattened_first() -> None:
    with pytest.raises(BadTransformation, match="flatten"):
        apply(Distinct(), [PEOPLE])


# ── clamps ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("clamp", "why"),
    [
        (Clamp(K, 2, 1), "lower ≤ upper"),
        (Clamp(K, 0.5, 1), "lower ≤ upper"),  # type: ignore[arg-type]
        (Clamp(V, 0, 2**53 + 1), "too wide"),
        (Clamp(V, -(2**53) - 1, 0), "too wide"),
        (Clamp(K, 0, 2**63), "too wide"),
        (Clamp(K, 2**63, 2**63), "too wide"),
        (Clamp(K, -(2**63) - 1, 0), "too wide"),
        (Clamp(V, 0, 1, Fraction(1, 3)), "power of two"),
        (Clamp(V, 0, 1, Fraction(0)), "power of two"),
        (Clamp(V, 0, 1, Fraction(-1, 2)), "power of two"),
        (Clamp(V, 0, 1, 1), "power of two"),  # type: ignore[arg-type]
        (Clamp(K, 0, 1, Fraction(1, 2)), "1 for integers"),
    ],
)
def test_senseless_bounds_are_refused(clamp: Clamp, why: str) -> None:
    with pytest.raises(BadQuery, match=why):
        apply(GroupBy((), (("t", Aggregate("sum", clamp)),)), [S])


def test_the_roots_of_a_plan_are_found_once_each_however_it_shares() -> None:
    plan: Plan = Term(Concat(), (RootTable("a"), RootTable("b")))
    for _ in range(8):
        plan = Term(Concat(), (plan, plan))
    assert roots_of(plan) == {"a", "b"}
    assert roots_of(PersonTable("visits", 1)) == set()


def test_levels_add_up_over_steps_and_the_operators_of_each() -> None:
    nested = Apply("negate", (Apply("negate", (K,)),))
    selected = Term(Select((("k", nested),)), (RootTable("A"),))
    assert selected.levels == STEP_LEVELS + 2 * OPERATOR_LEVELS
    assert Term(Distinct(), (selected,)).levels == selected.levels + STEP_LEVELS


@pytest.mark.parametrize(
    "kind", [*get_args(Transformation), *get_args(Plan), *get_args(Shape)], ids=lambda kind: kind.__name__
)
def test_what_a_plan_is_made_of_cannot_change_after_it_was_checked(kind: Any) -> None:
    assert kind.__dataclass_params__.frozen
