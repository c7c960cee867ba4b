"""The bound on work: what a step, an operator, a query costs, and that nothing is left out."""

from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import pytest

from fpinq.model import nesting
from fpinq.model.clamps import Clamp
from fpinq.model.costs import CLAMPED, ORDERED, UNITS, Costs, Times, length_of
from fpinq.model.domains import StringDomain
from fpinq.model.errors import BadTransformation, KernelViolation
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.nesting import operators_in
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
from fpinq.model.queries import (
    Choice,
    Count,
    CrossMoments,
    Frequencies,
    Moments,
    PrimitiveQuery,
    Rank,
    Ranks,
    Several,
    Sparse,
    Sum,
    Summary,
    Tree,
)
from fpinq.model.transformations import (
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
)
from fpinq.model.work import POINT, Bounds, TableSize, Work, work_of

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
    "concat_all": Term(ConcatAll(3), (ROOT, OTHER, ROOT)),
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
    touches = name not in (
        "identity", "concat", "concat_all", "literal_table", "an empty literal_table", "a public join"
    )  # fmt: skip
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
    assert length_of(expression, {"n": 0, "s": 40}) == length


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


def test_every_product_of_clamps_is_added_up_over_every_row() -> None:
    clamps = Clamp(N, 0, 9), Clamp(N, 0, 8)
    few, many = (work(ROOT, CrossMoments(clamps, d, 1, (0, 0))) for d in ((1, 1), (2, 2)))
    assert many.record - few.record == (9 - 4) * CLAMPED
    assert few.record - work(ROOT, Choice(clamps)).record == 4 * CLAMPED


def test_a_mechanism_looks_at_a_records_grid_point_once_for_each_fraction() -> None:
    clamp = Clamp(N, 0, 10**6)
    halves = tuple(Fraction(1, 2 + i) for i in range(9))
    one, nine = work(ROOT, Rank(clamp, halves[0])), work(ROOT, Ranks(clamp, halves))
    assert nine.record - one.record == 8 * POINT
    assert work(ROOT, Tree(clamp, 16, 5)).record - work(ROOT, Frequencies(clamp)).record == 4 * POINT
    # A grid has only so many points, however many rows there are.
    narrow = Clamp(N, 0, 1)
    assert work(ROOT, Frequencies(narrow)).query < work(ROOT, Frequencies(clamp)).query


def test_keys_that_nobody_has_are_work_of_the_query_and_nobodys() -> None:
    """As many of every part as are expected, and the longer their numbers the more each is."""

    def of(expected: int, size: int = 8, parts: int = 1, *, weighed: bool = False) -> Work:
        query = Sparse(Column("s"), StringDomain(size), Fraction(expected), 1)
        by = Partitioning(Column("n"), range(parts))
        return Bounds(sizes(), UNITS).work(ROOT, by, [query], weighed=weighed)

    few, many = of(1), of(10_000)
    assert many.record == few.record
    assert many.query - few.query == 9_999 * (of(2).query - few.query) > 0
    assert of(10_000, parts=10).query - of(1, parts=10).query == 10 * (many.query - few.query)
    assert of(10_000, size=16).query > many.query
    assert of(10_000, size=1_024).query > 10**13  # an hour and more
    assert of(10_000, weighed=True).query - of(1, weighed=True).query > 50 * (many.query - few.query)


def test_each_of_several_queries_evaluates_its_clamps_itself() -> None:
    """What they have in common was counted once, and 100 of them told one record on a clock."""
    clamp = Clamp(Apply("length", (Apply("upper", (S,)),)), 0, 9)
    each = [Sum(clamp), Moments(clamp, 1), Frequencies(clamp), Summary(clamp, 2)]
    one = max(work(ROOT, query).record for query in each)
    for several in (tuple(each), (Sum(clamp),) * 4):
        assert work(ROOT, Several(several, (1,) * 4)).record >= 4 * min(work(ROOT, q).record for q in several)
    beside = work(ROOT, Several(tuple(each), (1,) * 4), Count(), by=Partitioning(S, ("a", "b")))
    assert beside.record > 3 * one


def test_a_clamp_that_a_statistic_has_twice_is_evaluated_twice() -> None:
    clamp = Clamp(Apply("length", (Apply("upper", (S,)),)), 0, 9)
    once, twice = (work(ROOT, Choice((clamp,) * number)).record for number in (1, 2))
    assert twice - once == UNITS.clamp(clamp, sizes()["r"][""].lengths)


def test_a_row_is_compared_with_the_keys_only_if_the_parts_ask_different_things() -> None:
    keys = tuple(f"key {i}" for i in range(50))
    by = Partitioning(S, keys)
    same = work(ROOT, *[Sum(Clamp(N, 0, 9))] * 50, by=by)
    different = work(ROOT, *[Sum(Clamp(N, 0, i)) for i in range(50)], by=by)
    assert different.record > same.record + 49 * CLAMPED + sum(map(len, keys))


def test_a_table_that_was_bounded_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of many large expressions is asked about at every query, while others wait."""
    bounds, plan = Bounds(sizes(), UNITS), Term(Select(RECORD), (ROOT,))
    first = bounds.work(plan, None, (Count(),))
    with monkeypatch.context() as patch:
        patch.setattr("fpinq.model.work._applied", None)
        assert bounds.work(plan, None, (Count(),)) == first


def test_the_bound_of_a_table_goes_with_the_table() -> None:
    """Ten thousand plans were kept, however large, also of what was refused."""
    bounds, other = Bounds(sizes(), UNITS), RootTable("other")
    plan = Term(Select(RECORD), (ROOT,))
    first = bounds.work(plan, None, (Count(),))
    for step in range(50):
        bounds.work(Term(Where(Apply("equal", (N, Literal.of(step)))), (ROOT,)), None, (Count(),))
    for bound in (bounds._record, bounds._whole):
        assert len(bound._found) == 2
        bound._found[id(other)] = bound._found[id(plan)]  # one that is gone, and had this number
    assert bounds.work(plan, None, (Count(),)) == first
    with pytest.raises(KeyError, match="other"):
        bounds.work(other, None, (Count(),))
    del plan
    assert len(bounds._record._found) == 2  # the root, and what stands at a number that is not its own


# ── engines ──────────────────────────────────────────────────────────────────────────

# Every number another one, so that none can stand for another.
SLOW = Costs(
    "Slow",
    {name: Times(100 + i, 1_000 + i) for i, name in enumerate(OPERATORS)},
    column=Times(2, 3),
    passed=5,
    compared=Times(7, 11),
    keyed=Times(13, 17),
    ordered=Times(19, 23),
    clamped=29,
)


@pytest.mark.parametrize("name", PLANS)
def test_no_step_is_cheaper_on_an_engine_that_takes_more_for_everything(name: str) -> None:
    here, there = (work_of(PLANS[name], None, (Count(),), sizes(), costs) for costs in (UNITS, SLOW))
    least = min(SLOW.column.once, SLOW.passed)
    assert there.record >= least * here.record
    assert there.query >= least * here.query


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_costs_as_many_times_as_its_engine_says(name: str) -> None:
    lengths = [40] * len(OPERATORS[name].signatures[0][0])
    expression = Apply(name, tuple(Column("s") for _ in lengths))
    units, _ = SLOW.of(expression, {"s": 40})
    columns = len(lengths) * (SLOW.column.once + SLOW.column.character * 40)
    assert units - columns == OPERATORS[name].cost(lengths, *SLOW.operators[name])
    plain = OPERATORS[name].cost(lengths)
    once = OPERATORS[name].cost([0] * len(lengths))
    times = SLOW.operators[name]
    assert units - columns == times.once * once + times.character * (plain - once)


@pytest.mark.parametrize("missing", ["lower", "subtract"])
def test_an_engine_says_what_every_operator_costs_and_no_other(missing: str) -> None:
    fewer = {name: times for name, times in SLOW.operators.items() if name != missing}
    for wrong in (fewer, {**SLOW.operators, "rot13": Times(1, 1)}):
        with pytest.raises(KernelViolation, match=f"Slow says .*: ({missing}|rot13)"):
            replace(SLOW, operators=wrong)


def test_a_row_is_passed_on_found_and_ordered_at_its_engines_price() -> None:
    lengths = {"n": 0, "s": 40}
    for step, price in ((UNITS.passing, 5), (UNITS.keeping, 13), (UNITS.keying, 13), (UNITS.ordering, 19)):
        given: Any = {"keeping": 0, "keying": [0]}.get(step.__name__, {"n": 0})
        assert getattr(SLOW, step.__name__)(given) == price * step(given), step
    assert SLOW.keying([40]) - SLOW.keying([0]) == 17 * 40
    assert SLOW.keeping(40) - SLOW.keeping(0) == 17 * 40
    assert SLOW.ordering(lengths) - SLOW.ordering({"n": 0, "s": 0}) == 23 * 4 * 40
    assert SLOW.comparing([0, 3]) == 7 + 7 + 11 * 3
    assert SLOW.clamp(Clamp(N, 0, 9), lengths) == 29 * CLAMPED + SLOW.column.once


def test_operators_are_found_wherever_they_are_and_named_where_they_are_dear() -> None:
    body: Plan = Term(Where(Apply("less", (N, Literal.of(3)))), (PersonTable("p", 5),))
    key = Partitioning(Apply("strip", (S,)), ("a",))
    query = Sum(Clamp(Apply("negate", (N,)), 0, 9))
    made = Term(Concat(), (inside(body), Term(Select(RECORD), (PUBLIC,))))
    found = operators_in((made, key, (query,)))
    assert found == {"less", "upper", "strip", "negate"}
    assert operators_in(None) == set()
    assert UNITS.dear(found) == ""
    dear = replace(UNITS, operators={**UNITS.operators, "upper": Times(1, 150), "lower": Times(200, 1)})
    assert dear.dear(found) == "; DuckDB takes more for some of it: upper 150 times"


def test_a_table_that_is_used_again_and_again_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was looked at as often as it is used, while others waited."""
    plan: Plan = Term(Select((("n", Apply("negate", (N,))),)), (PUBLIC,))
    for _ in range(12):
        plan = Term(Concat(), (plan, plan))
    looked: list[type] = []
    parts_of = nesting._parts_of
    monkeypatch.setattr(nesting, "_parts_of", lambda kind: looked.append(kind) or parts_of(kind))
    assert operators_in(plan) == {"negate"}
    assert looked.count(Term) == 12 + 2


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
