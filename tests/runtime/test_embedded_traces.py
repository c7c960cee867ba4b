"""The golden traces through the protected system: the same rules, charges and refusals as the kernel's."""

from fractions import Fraction
from typing import Any

import pytest

from fpinq.engines.duckdb import DuckDB
from fpinq.model import errors
from fpinq.model.actions import AskBudget, AskScale
from fpinq.model.semantics import BOTTOM, Told
from fpinq.runtime import Answered, ProtectedSystem, ReferenceEngine
from traces.programs import NAMES, action, load, schema


def fractions(written: dict[str, str]) -> dict[str, Fraction]:
    return {name: Fraction(amount) for name, amount in written.items()}


@pytest.mark.parametrize("engine", [ReferenceEngine, DuckDB])
@pytest.mark.parametrize("name", NAMES)
def test_the_protected_system_replays_the_golden_trace(name: str, engine: Any) -> None:
    replay(name, engine())


def replay(name: str, engine: Any) -> None:
    """The trace's program on an engine that has no data yet, each step as the trace says."""
    program = load(name)
    system = ProtectedSystem(engine)
    for root, written in program["roots"].items():
        shape = schema(written["schema"])
        rows = [dict(zip(shape.names(), row, strict=True)) for row in written["rows"]]
        engine.add_root(root, rows, dict(shape.columns))
        system.protect(root, shape, Fraction(written["budget"]))
    for number, expected in enumerate(program["steps"]):
        where = f"step {number + 1}: {expected['op']}"
        environment = system.configuration().environment
        asked = action(expected, {variable: table.shape for variable, table in environment.items()})
        if "error" in expected:
            with pytest.raises(getattr(errors, expected["error"])):
                system.act(asked)
        else:
            observation = system.act(asked)
            assert (observation is BOTTOM) == (expected["rule"] == "Query⊥"), where
            if isinstance(observation, Answered) and "price" in expected:
                price = {root: amount for root, amount in fractions(expected["price"]).items() if amount}
                assert observation.charged == price, where
        left = system.act(AskBudget())
        assert isinstance(left, Told)
        if "left" in expected:
            assert left.fact == fractions(expected["left"]), where
        for table, factor in expected.get("scale", {}).items():
            assert system.act(AskScale(table)) == Told(factor), where
