"""No record decides how much work is done on the others: Spark as a server runs it.

What Spark did is read off its own counters, rows of operators, not off a clock.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from engines.generators import Example, plan_examples
from engines.test_conformance import compare, load, thorough
from engines.test_steady import PLANS, rows
from fpinq.engines.sql.plans import Lowering
from fpinq.model.expressions import Type
from fpinq.model.plans import Plan
from spark.conftest import CONF


@pytest.fixture(scope="module")
def steady(spark: Any) -> Iterator[Any]:
    """Beside the other one: this process can have one Spark."""
    from fpinq.engines.spark import Spark

    engine = Spark(conf=CONF, steady=True)
    yield engine
    engine.close()


@thorough(15)
@given(example=plan_examples())
def test_a_plan_has_the_reference_rows_and_statistics_here_too(steady: Any, example: Example) -> None:
    compare(steady, example, load(steady, example))


def worked(engine: Any, plan: Plan) -> Counter[tuple[str, int]]:
    """The operators that put out many rows, each with how many; of how a plan was carried out."""
    from fpinq.engines.spark.dialect import SQL
    from fpinq.engines.spark.keeping import Keeping

    kept = Keeping(plan, engine._token, steady=engine._steady)
    lowering = Lowering(SQL, engine._roots, kept)
    table = lowering.plan(plan)
    with engine._frame(plan, kept, lowering.rows(table), lowering.parameters.given()) as frame:
        frame.collect()
        found = list(operators(frame._jdf.queryExecution().executedPlan()))
    # Near enough: the record itself is in one of them or not.
    return Counter((name, round(number, -2)) for name, number in found if number > 100)


def operators(node: Any) -> Iterator[tuple[str, int]]:
    if node.nodeName() == "AdaptiveSparkPlan":
        node = node.executedPlan()
    metric = node.metrics().get("numOutputRows")
    if metric.isDefined():
        yield node.nodeName(), metric.get().value()
    if node.nodeName().endswith("QueryStage"):
        yield from operators(node.plan())
    below = node.children()
    for i in range(below.size()):
        yield from operators(below.apply(i))


def on_neighbours(engine: Any, plan: Plan) -> list[Counter[tuple[str, int]]]:
    found = []
    for present in (True, False):
        engine.add_root("t", rows(present=present), {"id": Type.INT64, "name": Type.STRING})
        found.append(worked(engine, plan))
        engine.forget("t")
    return found


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_record_that_is_not_there_saves_no_work_on_the_others(steady: Any, plan: Plan) -> None:
    present, absent = on_neighbours(steady, plan)
    assert present
    assert present == absent


def test_otherwise_it_saves_work(spark: Any) -> None:
    differ = [name for name, plan in PLANS.items() if len(set(map(str, on_neighbours(spark, plan)))) > 1]
    assert differ
