"""The golden traces through the kernel."""

from fractions import Fraction

import pytest

from fpinq.engines.reference import Relation, compute, measure
from fpinq.model import errors
from fpinq.model.accounts import certify, remaining, scaling_factor
from fpinq.model.semantics import Measure, Told, initial, step
from traces.programs import NAMES, action, load, schema


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_replays_the_golden_trace(name: str) -> None:
    program = load(name)
    roots = program["roots"]
    c = initial({root: (schema(r["schema"]), Fraction(r["budget"])) for root, r in roots.items()})
    database = {
        root: Relation(schema(r["schema"]), tuple(tuple(row) for row in r["rows"]))
        for root, r in roots.items()
    }
    for number, expected in enumerate(program["steps"]):
        where = f"step {number + 1}: {expected['op']}"
        before = {root.name: left for root, left in remaining(c.accounts).items()}
        asked = action(expected, {name: table.shape for name, table in c.environment.items()})
        if "error" in expected:
            with pytest.raises(getattr(errors, expected["error"])):
                step(c, asked)
        else:
            transition = step(c, asked)
            assert transition.rule == expected["rule"], where
            c, label = transition.configuration, transition.label
            if isinstance(label, Measure):
                measure(compute(label.plan, database), label.by, [query.statistic for query in label.queries])
            if isinstance(label, Told) and expected["op"] == "ask_price":
                assert label.fact == fractions(expected["price"]), where
        certify(c.accounts)
        after = {root.name: left for root, left in remaining(c.accounts).items()}
        if "left" in expected:
            assert after == fractions(expected["left"]), where
        if "price" in expected and expected["op"] == "query":
            assert {root: before[root] - after[root] for root in before} == fractions(expected["price"]), (
                where
            )
        for table, factor in expected.get("scale", {}).items():
            assert scaling_factor(c.accounts, c.environment[table].sensitivity) == factor, where


def fractions(written: dict[str, str]) -> dict[str, Fraction]:
    return {name: Fraction(amount) for name, amount in written.items()}


def test_the_golden_traces_cover_what_they_promise() -> None:
    assert {"figure", "listing1", "interleaved", "nested", "merged", "two_roots", "refusals"} <= set(NAMES)
