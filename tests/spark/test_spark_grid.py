"""Every operator on every nasty value, as in engines/test_grid, in a handful of Spark jobs.

The grid's own tests say what to compute: they run on an engine that only takes
notes. Then Spark computes all of it, many expressions to a job.
"""

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from engines import test_grid
from engines.test_grid import same
from fpinq.engines import reference
from fpinq.engines.spark import Spark
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type, Value, checked_value
from fpinq.model.operators import OPERATORS, evaluate
from fpinq.model.plans import Plan, RootTable, Term, apply
from fpinq.model.transformations import Explode, Select
from spark.gaps import LAST_BIT, uses_last_bit

Rows = tuple[tuple[Value, ...], ...]


class Notes:
    """An engine that computes nothing and remembers what it was asked."""

    def __init__(self) -> None:
        self.tables: dict[str, tuple[Schema, Rows]] = {}
        self.asked: list[tuple[str, Plan]] = []

    def add_root(self, name: str, source: list[dict[str, Value]], schema: dict[str, Type]) -> Schema:
        self.tables[name] = (Schema.of(schema), tuple(tuple(row[n] for n in schema) for row in source))
        return self.tables[name][0]

    def rows(self, plan: Plan) -> reference.Relation:
        assert isinstance(plan, Term)
        (root,) = plan.arguments
        assert isinstance(root, RootTable)
        self.asked.append((root.root, plan))
        return reference.Relation(apply(plan.transformation, [self.tables[root.root][0]]), ())


def grid() -> Notes:
    notes = Notes()
    for case in test_grid.signatures():
        for test in (
            test_grid.test_an_operator_has_the_reference_value_on_all_nasty_values,
            test_grid.test_an_operator_has_the_reference_value_when_one_side_is_a_constant,
        ):
            if len(case.values[1]) == 2 or "constant" not in test.__name__:
                try:
                    test(notes, *case.values)
                except pytest.skip.Exception:
                    continue
    for name in ["add", "subtract", "multiply", "floor_divide", "modulo", "negate", "abs"]:
        test_grid.test_guards_left_out_for_small_intervals_were_not_needed(notes, name)
    return notes


def deep() -> Notes:
    notes = Notes()
    for name in OPERATORS:
        if name not in ("split", "is_in"):
            test_grid.test_an_operator_nested_as_deep_as_allowed_is_computed(notes, name)
    return notes


def by_table(notes: Notes) -> dict[tuple[Schema, Rows], list[Expression]]:
    """The expressions asked for, together where the table is the same."""
    wanted: dict[tuple[Schema, Rows], list[Expression]] = {}
    for name, plan in notes.asked:
        assert isinstance(plan, Term)
        assert isinstance(plan.transformation, Select)
        record = plan.transformation.record[1:]
        found = wanted.setdefault(notes.tables[name], [])
        found += [expression for _, expression in record]
    return wanted


def chunks(expressions: list[Expression], size: int) -> Iterator[list[Expression]]:
    remaining = iter(expressions)
    while chunk := list(islice(remaining, size)):
        yield chunk


def check(spark: Any, notes: Notes, size: int, label: str) -> int:
    compared = 0
    wrong: list[tuple[Any, ...]] = []
    for number, ((schema, rows), expressions) in enumerate(by_table(notes).items()):
        name = f"{label}{number}"
        given = [dict(zip(schema.names(), row, strict=True)) for row in rows]
        spark.add_root(name, given, schema=dict(schema.columns))
        for chunk in chunks(expressions, size):
            named = (("id", Column("id")), *((f"e{i}", e) for i, e in enumerate(chunk)))
            found = spark.rows(Term(Select(named), (RootTable(name),)))
            assert len(found.rows) == len(rows)
            for record in found.rows:
                values = zip(rows[record[0]], schema.types(), strict=True)
                row = dict(zip(schema.names(), (checked_value(v, t) for v, t in values), strict=True))
                for expression, value in zip(chunk, record[1:], strict=True):
                    expected = evaluate(expression, row)
                    compared += 1
                    if not equal(expression, value, expected):
                        wrong.append((expression, row, value, expected))
    assert not wrong, (len(wrong), wrong[:3], {str(e)[:40] for e, *_ in wrong})
    return compared


def equal(expression: Expression, value: Value, expected: Value) -> bool:
    """The same bits; for the operators of the gap, as near as it says."""
    if not uses_last_bit(expression):
        return same(value, expected)
    if not isinstance(value, float) or not isinstance(expected, float) or math.isinf(expected):
        return same(value, expected)
    return abs(value - expected) <= LAST_BIT * math.ulp(expected)


def test_every_operator_has_the_reference_value_on_all_nasty_values(spark: Any) -> None:
    assert check(spark, grid(), 120, "grid") > 300_000


@pytest.mark.slow
def test_every_operator_nested_as_deep_as_allowed_is_computed(spark: Any) -> None:
    notes = deep()
    notes.asked = [(name, plan) for name, plan in notes.asked if not _iterates_last_bit(plan)]
    assert check(spark, notes, 1, "deep") > 1000


def _iterates_last_bit(plan: Plan) -> bool:
    """A hundred exponentials of exponentials are not near anything."""
    assert isinstance(plan, Term)
    assert isinstance(plan.transformation, Select)
    return any(uses_last_bit(expression) for _, expression in plan.transformation.record)


def test_pieces_of_a_string_are_the_reference_pieces(spark: Any) -> None:
    strings = test_grid.VALUES[Type.STRING] + ["a\\Eb", "\\Q.\\E", "a.b|c"]
    spark.add_root("pieces", [{"s": s} for s in strings], schema={"s": Type.STRING})
    for separator in ["a", ",", ",,", "é", "\0", " ", "\U0010ffff", "'", "\\", "\\E", "\\Q", ".", "|", "e"]:
        value = Apply("split", (Column("s"), Literal.of(separator)))
        found = spark.rows(Term(Explode(value, "piece", 2), (RootTable("pieces"),)))
        expected = [(p,) for s in strings if s is not None for p in str(s).split(separator)[:2]]
        assert sorted(found.rows) == sorted(expected), separator


@pytest.mark.parametrize("exponent", [-1000, -900, -10, 0, 10, 900, 901, 1000])
def test_grid_points_are_the_reference_points(spark: Any, exponent: int) -> None:
    engine = Spark(session=spark._sessions[0])  # tests of this file have used the names that come now
    test_grid.test_grid_points_are_the_reference_points(engine, exponent)
    engine.close()
