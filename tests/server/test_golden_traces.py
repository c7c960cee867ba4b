"""The golden traces over HTTP: the same rules, charges and refusals as the kernel's."""

from fractions import Fraction
from pathlib import Path

import pytest

from fpinq.client.remote import Http, RemoteSystem
from fpinq.model import errors
from fpinq.model.actions import AskBudget, AskScale
from fpinq.model.expressions import Schema
from fpinq.model.semantics import BOTTOM, Told
from fpinq.runtime import Answered
from fpinq.server import DataSet, TableConfig
from server.live import serve
from traces.programs import NAMES, action, load, schema


def fractions(written: dict[str, str]) -> dict[str, Fraction]:
    return {name: Fraction(amount) for name, amount in written.items()}


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
@pytest.mark.parametrize("name", NAMES)
def test_the_server_replays_the_golden_trace(tmp_path: Path, name: str, engine: str) -> None:
    program = load(name)
    data_sets, schemas = {}, {}
    for root, written in program["roots"].items():
        shape = schemas[root] = schema(written["schema"])
        rows = [dict(zip(shape.names(), row, strict=True)) for row in written["rows"]]
        table = TableConfig(rows, dict(shape.columns))
        data_sets[root] = DataSet(root, Fraction(written["budget"]), {root: table}, engine=engine)
    with serve(tmp_path, data_sets) as live:
        system = RemoteSystem(Http(live.url, live.token(), 60, 0))
        for number, expected in enumerate(program["steps"]):
            where = f"step {number + 1}: {expected['op']}"
            asked = action(expected, schemas)
            if "error" in expected:
                with pytest.raises(getattr(errors, expected["error"])):
                    system.act(asked)
            else:
                observation = system.act(asked)
                assert (observation == BOTTOM) == (expected["rule"] == "Query⊥"), where
                if isinstance(observation, Answered) and "price" in expected:
                    price = {root: amount for root, amount in fractions(expected["price"]).items() if amount}
                    assert observation.charged == price, where
                for target in [expected.get("target"), *expected.get("targets", [])]:
                    if target is not None:
                        shape = system.describe(target).shape
                        assert isinstance(shape, Schema)
                        schemas[target] = shape
            if "left" in expected:
                assert system.act(AskBudget()) == Told(fractions(expected["left"])), where
            for table_name, factor in expected.get("scale", {}).items():
                assert system.act(AskScale(table_name)) == Told(factor), where
