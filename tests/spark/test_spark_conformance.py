"""Any plan on any data: reference, DuckDB and Spark agree, row bag by row bag and integer by integer.

FPINQ_SPARK_EXAMPLES=5000 makes it thorough.
"""

import os
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from engines.generators import Example, plan_examples
from engines.test_conformance import bag, compare, load
from fpinq.engines import reference
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.spark.meaning import MEANING
from fpinq.engines.sql.statistics import Measurement
from spark.batches import Batch, Statement, statistics_of
from spark.gaps import mentions_last_bit

EXAMPLES = int(os.environ.get("FPINQ_SPARK_EXAMPLES", "300"))
BATCH = 10
# A batch is thrown away by Spark; the plans of these also go through the front door, one by one.
THROUGH_THE_DOOR = 10


def examples(count: int) -> list[Example]:
    """Random examples that do not go through the operators of the gap."""
    found: list[Example] = []

    @settings(
        max_examples=4 * count, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(example=plan_examples())
    def collect(example: Example) -> None:
        parts = (example.plan, example.whole, example.by, example.queries)
        if len(found) < count and not mentions_last_bit(parts):
            found.append(example)

    collect()
    return found


Case = tuple[Example, Statement, tuple[Measurement, Statement], tuple[Measurement, Statement]]


def computed(sessions: list[Any], chosen: list[Example]) -> Iterator[Case]:
    """The examples with what Spark found for them, batch by batch."""
    for start in range(0, len(chosen), BATCH):
        batch = Batch()
        cases = []
        for example in chosen[start : start + BATCH]:
            roots = batch.roots(example)
            cases.append(
                (
                    example,
                    batch.rows(roots, example.plan),
                    batch.measurement(roots, example.plan, None, [example.whole.statistic]),
                    batch.measurement(roots, example.plan, example.by, example.statistics),
                )
            )
        batch.run(sessions[start // BATCH % len(sessions)])
        yield from cases


def test_random_plans_have_the_reference_rows_and_statistics(spark: Any) -> None:
    duckdb = DuckDB()
    compared = 0
    for example, rows, whole, parts in computed(settings_of(spark), examples(EXAMPLES)):
        expected = reference.compute(example.plan, example.database())
        assert bag(rows.found) == bag(expected.rows), example
        assert statistics_of(*whole) == reference.measure(expected, None, [example.whole.statistic]), example
        assert statistics_of(*parts) == reference.measure(expected, example.by, example.statistics), example
        compare(duckdb, example, load(duckdb, example))
        compared += 1
    duckdb.close()
    assert compared >= EXAMPLES * 9 // 10


def test_random_plans_go_through_the_front_door(spark: Any) -> None:
    for example in examples(THROUGH_THE_DOOR):
        compare(spark, example, load(spark, example))


def settings_of(spark: Any) -> list[Any]:
    """Sessions that mean the same and compute it differently: adaptive, plain, interpreted."""
    adaptive, plain = spark._sessions
    interpreted = plain.newSession()
    for key in (*MEANING, "spark.sql.adaptive.enabled", "spark.sql.optimizer.excludedRules"):
        interpreted.conf.set(key, plain.conf.get(key))
    interpreted.conf.set("spark.sql.codegen.wholeStage", "false")
    interpreted.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return [adaptive, plain, interpreted]
