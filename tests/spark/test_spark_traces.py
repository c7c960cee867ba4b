"""The golden traces on Spark: the same rules, charges and refusals as the kernel's."""

from typing import Any

import pytest

from fpinq.engines.spark import Spark
from runtime.test_embedded_traces import replay
from traces.programs import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_spark_replays_the_golden_trace(spark: Any, name: str) -> None:
    engine = Spark(session=spark._sessions[0])  # without data, on the Spark that is there
    replay(name, engine)
    engine.close()
