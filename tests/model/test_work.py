"""The bound on work: what a step, an operator, a query costs, and that nothing is left out."""

from fractions import Fraction
from typing import Any, get_args

import pytest

from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadTransformation
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.operators import MAX_STRING, OPERATORS
from fpinq.model.plans import (
    MAX_LEVELS,
    OPERATOR_LEVELS,
    STEP_LEVELS,
    Flatten,
    PersonTable,
    Plan,
    RootTable,
    Term,
    Transformation,
)
from fpinq.model.queries import Choice, Count, Frequencies, PrimitiveQuery, Rank, Ranks, Sum, Tree
from fpinq.model.transformations import (
    Aggregate,
    All,
    Concat,
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
)
from fpinq.model.work import CLAMPED, ORDERED, POINT, Bounds, TableSize, Work, cost_of, work_of

SCHEMA = Schema.of({"n": Type.INT64, "s": Type.STRING})
N, S = Column("n"), Column("s")
ROOT, OTHER = RootTable("r"), RootTable("o")
PUBLIC = Term(LiteralTable(SCHEMA, ((1, "abc"), (2, None), (3, "a"))), ())
AGGREGATES = (
    ("count", Aggregate("count")),
    ("sum", Aggregate("sum", Clamp(N, 0, 9))),
    ("min", Aggregate("min", S)),
)
RECORD = (("n", N), ("s", Apply("upper", (S,))))
PAIR = (("a", Column("l.s")), ("b", Column("r.s")))
SPLIT = Apply("split", (S, Literal.of(" ")))
EQUAL = Apply("equal", (S, Literal.of("x")))


def sizes(rows: int = 100, length: int = 50) -> dict[str, Any]:
    table = TableSize.of(SCHEMA, rows, {"s": length})
    return {"r": {"": table}, "o": {"": table}, "people": {"p": table, "q": table}}


def work(plan: Plan, *queries: PrimitiveQuery, by: Partitioning | None = None, **size: int) -> Work:
    return work_of(plan, by, queries or (Count(),), sizes(**size))


def inside(body: Plan) -> Plan:
    return Term(Flatten(body), (RootTable("people"),))


PLANS: dict[str, Plan] = {
    "literal_table": Term(Concat(), (ROOT, PUBLIC)),
    "an empty literal_table": Term(Concat(), (ROOT, Term(LiteralTable(SCHEMA, ()), ()))),
    "identity": Term(Identity(), (ROOT,)),
    "select": Term(Select(RECORD), (ROOT,)),
    "where": Term(Where(EQUAL), (ROOT,)),
    "distinct": Term(Distinct(), (ROOT,)),
    "select_many": Term(SelectMany((RECORD, RECORD, RECORD), 2), (ROOT,)),
    "explode": Term(Explode(SPLIT, "word", 10), (ROOT,)),
    "take": Term(Take(3), (ROOT,)),
    "group_by": Term(GroupBy((("s", S),), AGGREGATES), (ROOT,)),
    "limit_per_key": Term(LimitPerKey(2, (S,)), (ROOT,)),
    "unique_by": Term(UniqueBy((S,)), (ROOT,)),
    "concat": Term(Concat(), (ROOT, OTHER)),
    "union": Term(Union(), (ROOT, OTHER)),
    "intersect": Term(Intersect(), (ROOT, OTHER)),
    "except": Term(Except(), (ROOT, OTHER)),
    "semi_join": Term(SemiJoin((S,), (S,)), (ROOT, PUBLIC)),
    "group_join": Term(GroupJoin(("k",), (S,), (S,), AGGREGATES[:2], AGGREGATES[2:]), (ROOT, OTHER)),
    "join": Term(Join((S,), (S,), First(2), Unique(), PAIR), (ROOT, OTHER)),
    "a public join": Term(Join((N,), (N,), All(), First(3), PAIR), (ROOT, PUBLIC)),
    "part": Term(PartOf(Partitioning(S, ("a", "b")), 0), (ROOT,)),
    "flatten": inside(Term(Where(EQUAL), (PersonTable("p", 5),))),
}  # fmt: skip


def test_every_transformation_has_a_cost() -> None:
    named = {transformation.op for transformation in get_args(Transformation)}
    assert named <= PLANS.keys()


@pytest.mark.parametrize("name", PLANS)
def test_a_step_costs_at_least_its_rows_times_its_columns(name: str) -> None:
    plan = PLANS[name]
    assert isinstance(plan, Term)
    before = work(plan)
    after = work(Term(Identity(), (plan,)))
    assert after.record > before.record
    assert after.query > before.query
    assert before.query > before.record > 0


@pytest.mark.parametrize("name", PLANS)
def test_nothing_costs_less_with_more_rows_or_longer_texts(name: str) -> None:
    plan = PLANS[name]
    assert work(plan, rows=200).query > work(plan).query
    assert work(plan, rows=200).record == work(plan).record
    touches = name not in ("identity", "concat", "literal_table", "an empty literal_table", "a public join")
    longer = work(plan, length=5_000)
    assert longer.record > work(plan).record if touches else longer.record >= work(plan).record
    assert longer.query >= work(plan).query


def test_an_unstated_length_is_the_longest_there_is() -> None:
    assert TableSize.of(SCHEMA, 1, {}).lengths == {"n": 0, "s": MAX_STRING}


LENGTHS: list[tuple[Expression, int]] = [
    (S, 40),
    (Literal.of("abc"), 3),
    (Literal.of(7), 0),
    (Apply("concat", (S, Literal.of("abc"))), 43),
    (Apply("concat", (Literal.of("x" * MAX_STRING), S)), MAX_STRING),
    (Apply("substring", (S, Literal.of(0), Literal.of(7))), 7),
    (Apply("substring", (S, Literal.of(0), Literal.of(700))), 40),
    (Apply("to_string", (N,)), 20),
    (Apply("fill_null", (S, Literal.of("x" * 90))), 90),
    (Apply("if_else", (EQUAL, S, Literal.of("x"))), 40),
    (Apply("upper", (S,)), 40),
    (SPLIT, 40),
    (Apply("length", (S,)), 0),
    (EQUAL, 0),
]


@pytest.mark.parametrize(("expression", "length"), LENGTHS)
def test_the_length_of_a_text_is_followed_through_expressions(expression: Expression, length: int) -> None:
    assert cost_of(expression, {"n": 0, "s": 40})[1] == length


def test_no_operator_makes_a_longer_text_than_it_says() -> None:
    for name, operator in OPERATORS.items():
        for takes, gives in operator.signatures:
            if gives is Type.STRING and not operator.literal and name not in ("to_string",):
                texts = [b for b in takes if b is Type.STRING]
                values = ["x" * 30 if t is Type.STRING else True for t in takes]
                assert len(operator.value(*values)) <= operator.length(
                    *[30 if t in texts else 0 for t in takes]
                )
    assert max(len(str(n)) for n in (-(2**63), 2**63 - 1)) <= OPERATORS["to_string"].length(0)


def test_an_operator_costs_its_characters_and_a_search_what_it_searches_for() -> None:
    def cost(name: str, *lengths: int) -> int:
        return OPERATORS[name].cost(lengths)

    assert cost("upper", 1_000) - cost("upper", 0) == 20_000
    assert cost("add", 0, 0) < 30
    assert cost("contains", 1_000, 320) > 20 * cost("contains", 1_000, 1)
    many = [0] * 1_000
    assert cost("is_in", *many) > 1_000


def test_a_step_that_is_used_twice_counts_twice() -> None:
    heavy = Term(Select(RECORD), (ROOT,))
    once, twice = work(heavy), work(Term(Concat(), (heavy, heavy)))
    assert twice.record > 2 * once.record - 100


def test_rows_inside_a_person_count_where_they_are_and_not_only_at_the_end() -> None:
    cross = Join(
        (Literal.of(1),), (Literal.of(1),), All(), All(), (("n", Column("l.n")), ("s", Column("l.s")))
    )
    public = Term(LiteralTable(SCHEMA, tuple((i, "") for i in range(100))), ())
    body: Plan = Term(GroupBy((), (("n", Aggregate("count")),)), (Term(cross, (public, public)),))
    assert work(inside(body)).record > 100 * 100
    deeper: Plan = Term(
        GroupBy((), (("n", Aggregate("count")),)), (Term(cross, (Term(cross, (public, public)), public)),)
    )
    assert work(inside(deeper)).record > 100**3


def test_a_person_has_no_more_rows_than_the_table() -> None:
    few, many = inside(PersonTable("p", 100)), inside(PersonTable("p", 10**9))
    assert work(few) == work(many)
    assert work(inside(PersonTable("p", 10))).record < work(few).record


def test_rows_that_are_left_out_of_a_person_are_read_all_the_same() -> None:
    """Every row is put in order to tell which are the first; then each may be a person's one row."""
    one, rows = inside(PersonTable("p", 1)), 100
    whole, record = work(one, rows=rows).query, work(one, rows=rows).record
    assert whole > rows * record + rows * ORDERED


def test_public_rows_are_nobodys_work_but_work_of_the_query() -> None:
    large = Term(LiteralTable(SCHEMA, tuple((i, "") for i in range(500))), ())
    small, joined = work(ROOT), work(Term(SemiJoin((N,), (N,)), (ROOT, large)))
    assert joined.record < small.record + 500
    assert joined.query > small.query + 500


def test_every_candidate_of_a_choice_is_evaluated_on_every_row() -> None:
    few, many = (work(ROOT, Choice(tuple(Clamp(N, 0, i) for i in range(k)))) for k in (10, 110))
    assert many.record - few.record == 100 * (CLAMPED + 1)


def test_a_mechanism_looks_at_a_records_grid_point_once_for_each_fraction() -> None:
    clamp = Clamp(N, 0, 10**6)
    halves = tuple(Fraction(1, 2 + i) for i in range(9))
    one, nine = work(ROOT, Rank(clamp, halves[0])), work(ROOT, Ranks(clamp, halves))
    assert nine.record - one.record == 8 * POINT
    assert work(ROOT, Tree(clamp, 16, 5)).record - work(ROOT, Frequencies(clamp)).record == 4 * POINT
    # A grid has only so many points, however many rows there are.
    narrow = Clamp(N, 0, 1)
    assert work(ROOT, Frequencies(narrow)).query < work(ROOT, Frequencies(clamp)).query


def test_a_row_is_compared_with_the_keys_only_if_the_parts_ask_different_things() -> None:
    keys = tuple(f"key {i}" for i in range(50))
    by = Partitioning(S, keys)
    same = work(ROOT, *[Sum(Clamp(N, 0, 9))] * 50, by=by)
    different = work(ROOT, *[Sum(Clamp(N, 0, i)) for i in range(50)], by=by)
    assert different.record > same.record + 49 * CLAMPED + sum(map(len, keys))


def test_a_table_that_was_bounded_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of many large expressions is asked about at every query, while others wait."""
    monkeypatch.setattr("fpinq.model.work.MAX_KEPT", 3)
    bounds, plan = Bounds(sizes()), Term(Select(RECORD), (ROOT,))
    first = bounds.work(plan, None, (Count(),))
    with monkeypatch.context() as patch:
        patch.setattr("fpinq.model.work._applied", None)
        assert bounds.work(plan, None, (Count(),)) == first
    # Not for ever: what is kept has an end, and what was forgotten is found again.
    for step in range(4):
        bounds.work(Term(Where(Apply("equal", (N, Literal.of(step)))), (ROOT,)), None, (Count(),))
    assert bounds.work(plan, None, (Count(),)) == first


# ── levels ───────────────────────────────────────────────────────────────────────────


def deep(operators: int) -> Expression:
    found: Expression = N
    for _ in range(operators):
        found = Apply("modulo", (N, found))
    return found


def stacked(steps: int, operators: int) -> Plan:
    plan: Plan = ROOT
    for _ in range(steps):
        plan = Term(Select((("n", deep(operators)), ("s", S))), (plan,))
    return plan


def test_deep_expressions_on_many_steps_are_refused_when_the_plan_is_made() -> None:
    most = MAX_LEVELS // (STEP_LEVELS + OPERATOR_LEVELS * 90)
    stacked(most, 90)
    with pytest.raises(BadTransformation, match="too deep"):
        stacked(most + 1, 90)


@pytest.mark.parametrize(
    ("transformation", "levels"),
    [
        (Identity(), 0),
        (LiteralTable(SCHEMA, ((1, "a"),)), 0),
        (Where(Apply("equal", (deep(5), N))), 6),
        (SelectMany(((("n", N),), (("n", deep(7)),)), 2), 7),
        (GroupBy((), (("sum", Aggregate("sum", Clamp(deep(4), 0, 1))),)), 4),
        (PartOf(Partitioning(deep(3), (1,)), 0), 3),
        (Join((N,), (deep(2),), First(1), Unique(), PAIR), 2),
    ],
)
def test_the_levels_of_a_step_are_those_of_its_deepest_expression(transformation: Any, levels: int) -> None:
    assert Term(transformation, ()).levels == STEP_LEVELS + OPERATOR_LEVELS * levels
