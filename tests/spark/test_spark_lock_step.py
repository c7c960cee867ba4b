"""Lock step on Spark: what one record changes in exact statistics is within what was charged.

A random program runs on D and on a neighbour D′. With equal answers forced, its
loss is Σ ε·|q(D) − q(D′)|/Δ over the parts, and it is charged ε times the
scaling factor of the table it asks. Exact integers on both sides.
"""

import os
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from engines.generators import Example
from fpinq.model.errors import UnboundedStability
from fpinq.model.plans import Flatten, Plan, RootTable, Term, bounded_stability
from fpinq.model.queries import Choice, PrimitiveQuery, Statistic
from spark.batches import Batch, statistics_of
from spark.test_spark_conformance import examples, settings_of

PROGRAMS = int(os.environ.get("FPINQ_SPARK_PROGRAMS", "120"))
BATCH = 20


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


def neighbours(example: Example, random: Random) -> list[tuple[str, Example]]:
    """For each root, the example without one of its records; a person is one record."""
    found = []
    for name, (schema, rows) in example.tables.items():
        if rows:
            gone = random.randrange(len(rows))
            tables = {**example.tables, name: (schema, rows[:gone] + rows[gone + 1 :])}
            found.append((name, replace(example, tables=tables)))
    for name, (shape, tables) in example.persons.items():
        units = {t: schema.names().index(shape.unit) for t, schema in shape.tables}
        everybody = [row[units[t]] for t, rows in tables.items() for row in rows]
        present = [unit for unit in everybody if unit is not None and unit == unit]
        if present:
            gone = random.choice(present)
            left = {t: [row for row in rows if row[units[t]] != gone] for t, rows in tables.items()}
            found.append((name, replace(example, persons={name: (shape, left)})))
    return found


def loss(query: PrimitiveQuery, one: Statistic, other: Statistic) -> Fraction:
    """What an observer learns at ε = 1, in units of ε: the distance over the sensitivity.

    A rank's scores move by at most its sensitivity per record that its frequencies move.
    """
    apart = [abs(one.get(i, 0) - other.get(i, 0)) for i in {*one, *other}]
    if query.op == "rank":
        return Fraction(sum(apart))
    distance = max(apart, default=0) if isinstance(query, Choice) else sum(apart)
    return Fraction(distance, query.sensitivity) if query.sensitivity else Fraction(0)


def test_no_record_changes_more_than_was_charged(spark: Any) -> None:
    random = Random()
    programs = []
    for example in examples(2 * PROGRAMS):
        for root, neighbour in neighbours(example, random):
            try:
                programs.append((example, neighbour, scaling_factor(example.plan, root)))
            except UnboundedStability:
                continue  # the kernel refuses it before it reaches an engine
    programs = programs[:PROGRAMS]
    assert len(programs) >= min(PROGRAMS, 100)
    # Without compiling: that Spark's compiled code agrees is the conformance suite's part.
    session = settings_of(spark)[2]
    seen: list[Fraction] = []
    for start in range(0, len(programs), BATCH):
        batch = Batch()
        asked = [
            (program, [batch.measurement(batch.roots(e), e.plan, e.by, e.queries) for e in program[:2]])
            for program in programs[start : start + BATCH]
        ]
        batch.run(session)
        for (example, neighbour, factor), (here, there) in asked:
            pairs = zip(example.queries, statistics_of(*here), statistics_of(*there), strict=True)
            total = sum((loss(query, one, other) for query, one, other in pairs), Fraction(0))
            assert total <= factor, (total, factor, example, neighbour)
            seen.append(total)
    assert sum(total > 0 for total in seen) >= len(seen) // 20
