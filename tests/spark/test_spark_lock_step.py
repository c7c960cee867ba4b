"""Lock step on Spark: what one record changes in exact statistics is within what was charged.

A random program runs on D and on a neighbour D′. With equal answers forced, its
loss is Σ ε·|q(D) − q(D′)|/Δ over the parts, and it is charged ε times the
scaling factor of the table it asks. Exact integers on both sides.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from engines.generators import Example
from fpinq.engines import reference
from fpinq.model.clamps import Clamp
from fpinq.model.errors import UnboundedStability
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import Flatten, Persons, PersonTable, Plan, RootTable, Term, bounded_stability
from fpinq.model.queries import Choice, Count, Frequencies, Moments, PrimitiveQuery, Sum
from fpinq.model.statistics import Integers
from fpinq.model.transformations import (
    Aggregate,
    Concat,
    First,
    GroupBy,
    Join,
    LimitPerKey,
    LiteralTable,
    Partitioning,
    SelectMany,
    Where,
)
from lockstep.test_lockstep import (
    test_a_charge_that_forgets_the_factor_at_rho_is_noticed,
    test_a_grouping_in_lock_step_is_exactly_as_lossy_as_it_is_charged,
    test_a_pure_root_beside_a_concentrated_one_is_asked_at_epsilon_only_and_each_pays_its_own,
    test_a_record_twice_at_rho_is_exactly_as_lossy_as_it_is_charged,
    test_a_squared_sensitivity_that_is_too_small_is_noticed,
    test_a_wrong_stability_is_noticed,
    test_an_error_that_depends_on_data_is_noticed,
)
from spark.batches import Batch, statistics_of
from spark.test_spark_conformance import examples, settings_of

# Through the protected system, one query at a time.
__all__ = [
    "test_a_charge_that_forgets_the_factor_at_rho_is_noticed",
    "test_a_grouping_in_lock_step_is_exactly_as_lossy_as_it_is_charged",
    "test_a_pure_root_beside_a_concentrated_one_is_asked_at_epsilon_only_and_each_pays_its_own",
    "test_a_record_twice_at_rho_is_exactly_as_lossy_as_it_is_charged",
    "test_a_squared_sensitivity_that_is_too_small_is_noticed",
    "test_a_wrong_stability_is_noticed",
    "test_an_error_that_depends_on_data_is_noticed",
]

PROGRAMS = int(os.environ.get("FPINQ_SPARK_PROGRAMS", "120"))
BATCH = 20

# An example, a neighbour of it, and how many records of the plan they may differ by.
Program = tuple[Example, Example, int]


@pytest.fixture
def engine(spark: Any) -> Any:
    return spark


def is_private(plan: Plan) -> bool:
    return isinstance(plan, RootTable) or (isinstance(plan, Term) and any(map(is_private, plan.arguments)))


def scaling_factor(plan: Plan, root: str) -> int:
    """How many records of the plan one record of the root can change."""
    if isinstance(plan, RootTable):
        return int(plan.root == root)
    assert isinstance(plan, Term)
    if isinstance(plan.transformation, Flatten):
        (stability,) = plan.transformation.stability
        assert isinstance(stability, int)
        return stability * scaling_factor(plan.arguments[0], root)
    stabilities = bounded_stability(plan.transformation, [is_private(a) for a in plan.arguments])
    return sum(c * scaling_factor(a, root) for c, a in zip(stabilities, plan.arguments, strict=True))


def neighbours(example: Example) -> Iterator[tuple[str, Example]]:
    """The example without one record of one root, in all ways; a person is one record."""
    for name, (schema, rows) in example.tables.items():
        for gone in range(len(rows)):
            tables = {**example.tables, name: (schema, rows[:gone] + rows[gone + 1 :])}
            yield name, replace(example, tables=tables)
    for name, (shape, tables) in example.persons.items():
        units = {t: schema.names().index(shape.unit) for t, schema in shape.tables}
        everybody = [row[units[t]] for t, rows in tables.items() for row in rows]
        for gone in dict.fromkeys(unit for unit in everybody if unit is not None and unit == unit):
            left = {t: [row for row in rows if row[units[t]] != gone] for t, rows in tables.items()}
            yield name, replace(example, persons={name: (shape, left)})


def loss(query: PrimitiveQuery, one: Integers, other: Integers) -> Fraction:
    """What an observer learns at ε = 1, in units of ε: the distance over the sensitivity.

    A rank's scores move by at most its sensitivity per record that its frequencies move.
    """
    apart = [abs(one.get(i, 0) - other.get(i, 0)) for i in {*one, *other}]
    if query.op == "rank":
        return Fraction(sum(apart))
    distance = max(apart, default=0) if isinstance(query, Choice) else sum(apart)
    return Fraction(distance, query.sensitivity) if query.sensitivity else Fraction(0)


def total(queries: Iterable[PrimitiveQuery], here: Sequence[Integers], there: Sequence[Integers]) -> Fraction:
    """The loss of all parts together."""
    each_part = list(queries) * (len(here) // len(queries))  # or the one that is asked of all
    return sum((loss(*each) for each in zip(each_part, here, there, strict=True)), Fraction(0))


def on_the_reference(example: Example, neighbour: Example) -> Fraction:
    here, there = (
        reference.measure(reference.compute(e.plan, e.database()), e.by, e.statistics)
        for e in (example, neighbour)
    )
    return total(example.queries, here, there)


def on_spark(spark: Any, programs: Sequence[Program]) -> Iterator[Fraction]:
    """The loss of each program."""
    # Without compiling: that Spark's compiled code agrees is the conformance suite's part.
    session = settings_of(spark)[2]
    for start in range(0, len(programs), BATCH):
        batch = Batch()
        asked = [
            (pair[0], [batch.measurement(batch.roots(e), e.plan, e.by, e.statistics) for e in pair])
            for *pair, _ in programs[start : start + BATCH]
        ]
        batch.run(session)
        for example, (here, there) in asked:
            yield total(example.queries, statistics_of(*here), statistics_of(*there))


def worst(example: Example) -> tuple[Fraction, Program] | None:
    """The neighbour that looks most different to the reference."""
    found = []
    for root, neighbour in neighbours(example):
        try:
            factor = scaling_factor(example.plan, root)
        except UnboundedStability:
            continue  # the kernel refuses it before it reaches an engine
        found.append((on_the_reference(example, neighbour), (example, neighbour, factor)))
    return max(found, key=lambda each: each[0], default=None)


def test_no_record_changes_more_than_was_charged(spark: Any) -> None:
    found = [each for each in map(worst, examples(4 * PROGRAMS)) if each is not None]
    # Those that tell most first: a record that changes nothing shows little.
    found = sorted(found, key=lambda each: -each[0])[:PROGRAMS]
    assert len(found) >= min(PROGRAMS, 100)
    programs = [program for _, program in found]
    for seen, (expected, program) in zip(on_spark(spark, programs), found, strict=True):
        assert seen == expected, program
        assert seen <= program[2], program


# ── programs that lose all that they are charged ─────────────────────────────────────

K, X = Column("k"), Column("x")
ROWS = Schema.of({"k": Type.INT64, "x": Type.INT64})
PERSONS = Persons("k", (("visits", ROWS),))
TABLE = RootTable("t")
PUBLIC = Term(LiteralTable(ROWS, ((1, 7),)), ())
PARTS = Partitioning(K, (1, 2))
MEMBERS = GroupBy((("k", K),), (("n", Aggregate("count")),))
TWICE = SelectMany(((("k", K), ("x", X)), (("k", X), ("x", K))), 2)
PAIRS = Join((K,), (K,), First(1), First(1), (("x", Column("l.x")), ("y", Column("r.x"))))
PLENTY = Where(Apply("greater", (X, Literal.of(0))))
UPTO9 = Clamp(X, 0, 9)


def about(plan: Plan, *queries: PrimitiveQuery, by: Partitioning | None = None) -> Example:
    rows = [(1, 5), (1, 9)]
    if isinstance(plan, Term) and isinstance(plan.transformation, Flatten):
        return Example(persons={"t": (PERSONS, {"visits": rows})}, plan=plan, by=by, queries=queries)
    return Example(tables={"t": (ROWS, rows)}, plan=plan, by=by, queries=queries)


LOSING_ALL = {
    "a count": about(Term(PLENTY, (TABLE,)), Count()),
    "a sum in parts": about(TABLE, Sum(UPTO9), Count(), by=PARTS),
    "moments": about(TABLE, Moments(UPTO9, 2)),
    "a table and itself": about(Term(Concat(), (TABLE, TABLE)), Count()),
    "two records of one": about(Term(TWICE, (TABLE,)), Frequencies(UPTO9)),
    "a group of one member less": about(Term(MEMBERS, (TABLE,)), Frequencies(Clamp(Column("n"), 0, 9))),
    "the first of a key": about(Term(LimitPerKey(1, (K,)), (TABLE,)), Frequencies(UPTO9)),
    "pairs": about(Term(PAIRS, (TABLE, PUBLIC)), Frequencies(UPTO9)),
    "a person": about(Term(Flatten(PersonTable("visits", 2)), (TABLE,)), Count()),
}


def test_what_was_charged_is_lost_where_a_program_uses_all_of_it(spark: Any) -> None:
    programs = []
    for name, example in LOSING_ALL.items():
        most = worst(example)
        assert most is not None, name
        programs.append(most[1])
    for name, seen, (*_, factor) in zip(LOSING_ALL, on_spark(spark, programs), programs, strict=True):
        assert (name, seen) == (name, factor)
