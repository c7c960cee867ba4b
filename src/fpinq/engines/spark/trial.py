"""A trial: before Spark is trusted with anybody's data it answers questions whose answers are known.

Its version must be one that the suites have run on. The questions are those that
some Spark has answered wrongly: equal unions side by side, whose rows 4.1 and later
count twice unless told not to (docs/decisions/0033); sums that 64 bits do not hold;
keys that are null, ∞ or not there. They are written out as SQL, so no file has to be
where the workers see it.
"""

import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fpinq.engines import reference
from fpinq.engines.spark.dialect import SQL
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.relations import Stored, StoredPersons
from fpinq.engines.sql.statistics import lower
from fpinq.model.clamps import Clamp
from fpinq.model.errors import UnfitEngine
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Column, Schema, Type
from fpinq.model.plans import Flatten, Persons, PersonTable, Plan, RootTable, Term
from fpinq.model.statistics import Integers, Records, Statistic, Totals
from fpinq.model.transformations import Concat, Distinct, Partitioning, Union

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The suites run on the first of these and on the newest (make spark-oldest, make spark).
FIRST, BEYOND = (4, 0, 5), (4, 4)

_SCHEMA = Schema.of({"k": Type.STRING, "x": Type.INT64})
_SHAPE = Persons("k", (("p", _SCHEMA),))
_ROWS = (("A", INT64_MAX), ("i", INT64_MAX), ("A", None), (None, INT64_MIN), ("i", INT64_MAX), ("A", 1))
_WRITTEN = (
    f"(SELECT * FROM VALUES ('A', {INT64_MAX}L), ('i', {INT64_MAX}L), ('A', CAST(NULL AS BIGINT)), "
    f"(CAST(NULL AS STRING), {INT64_MIN}L), ('i', {INT64_MAX}L), ('A', 1L) AS v(c0, c1))"
)

# Three times the distinct rows of persons: those that 4.1 and later count twice. As it was when it was found,
# for only some ways of saying it are counted wrongly.
_PERSONS = (
    "SELECT c0, c1, u FROM (SELECT c0, c1, u FROM (SELECT * FROM (SELECT *, row_number() OVER "
    "(PARTITION BY u ORDER BY c0 NULLS FIRST, c1 NULLS FIRST) AS rn FROM (SELECT c0 AS c0, c1 AS c1, u AS u "
    f"FROM (SELECT *, c0 AS u FROM {_WRITTEN} WHERE c0 IS NOT NULL))) WHERE rn <= 100))"
)
_TWICE = (
    f"WITH s0 AS ({_PERSONS}), s1 AS ({_PERSONS}), s2 AS ({_PERSONS}) "
    "SELECT count(*) AS n FROM (SELECT 1 AS one FROM ("
    + " UNION ALL ".join(
        "SELECT c0, c1 FROM (SELECT DISTINCT c0, c1, u FROM "
        f"(SELECT c0, c1, u FROM {s} UNION SELECT c0, c1, u FROM {s}))"
        for s in ("s0", "s1", "s2")
    )
    + "))"
)
_THRICE_THE_DISTINCT = 3 * len({row for row in _ROWS if row[0] is not None})

_trying = threading.Lock()
_passed: set[str] = set()


def check(adaptive: "SparkSession", plain: "SparkSession") -> None:
    """UnfitEngine unless Spark's version is a tested one and its answers are the reference's."""
    version = plain.version
    with _trying:
        if version in _passed:
            return
        if not FIRST <= _series(version) < BEYOND:
            tested = f"{'.'.join(map(str, FIRST))} or later, before {'.'.join(map(str, BEYOND))}"
            raise UnfitEngine(f"this is Spark {version}, which fpinq was not tested on: use {tested}")
        for session in (adaptive, plain):
            counted = session.sql(_TWICE).collect()[0][0]
            if counted != _THRICE_THE_DISTINCT or any(
                _measured(session, *question) != _known(*question) for question in _questions()
            ):
                raise UnfitEngine(f"Spark {version} answers wrongly where the answer is known")
        _passed.add(version)


def _series(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


Question = tuple[Plan, Partitioning | None, list[Statistic]]


def _questions() -> list[Question]:
    by = Partitioning(Column("k"), ("A", None, "none", "i"))
    everything = Totals((Clamp(Column("x"), INT64_MIN, INT64_MAX),))
    one, two, three = (_distinct_persons() for _ in range(3))
    return [
        (RootTable("t"), by, [Records(), everything, Records(), everything]),
        (Term(Concat(), (Term(Concat(), (one, two)), three)), None, [Records()]),
    ]


def _distinct_persons() -> Plan:
    table = PersonTable("p", 100)
    return Term(Flatten(Term(Distinct(), (Term(Union(), (table, table)),))), (RootTable("u"),))


def _measured(
    session: "SparkSession", plan: Plan, by: Partitioning | None, asked: list[Statistic]
) -> Sequence[Integers]:
    stored = Stored(_WRITTEN, _SCHEMA)
    lowering = Lowering(SQL, {"t": stored, "u": StoredPersons(_SHAPE, {"p": stored})})
    measurement = lower(lowering, lowering.plan(plan), by, asked)
    found = session.sql(measurement.sql, args=dict(lowering.parameters.given())).toArrow()
    return measurement.read_columns([found.column(name).to_pylist() for name in measurement.names])


def _known(plan: Plan, by: Partitioning | None, asked: list[Statistic]) -> Sequence[Integers]:
    there = sorted({row[0] for row in _ROWS if row[0] is not None})
    rows_of = (tuple(row for row in _ROWS if row[0] == person) for person in there)
    persons = tuple({"p": reference.Relation(_SCHEMA, rows)} for rows in rows_of)
    database: reference.Database = {
        "t": reference.Relation(_SCHEMA, _ROWS),
        "u": reference.PersonBag(_SHAPE, persons),
    }
    return reference.measure(reference.compute(plan, database), by, asked)
