"""Any plan on any data: the engine equals the reference, row bag by row bag and statistic by statistic."""

import os
from collections import Counter
from itertools import count
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings

from engines.generators import (
    _BY_RESULT,
    Example,
    canonical,
    expression_examples,
    plan_examples,
)
from fpinq.engines import reference
from fpinq.engines.sql import statistics
from fpinq.model.expressions import Expression, Schema
from fpinq.model.operators import OPERATORS, evaluate
from fpinq.model.plans import PersonTable, Plan, RootTable, Term
from fpinq.model.transformations import Select

EXAMPLES = int(os.environ.get("FPINQ_EXAMPLES", "1000"))

_names = count()


def thorough(examples: int) -> Any:
    return settings(
        max_examples=max(examples, 10),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def bag(rows: Any) -> Counter[str]:
    """Rows as a bag that tells 0.0 from −0.0 and 1 from true."""
    return Counter(repr(tuple(row)) for row in rows)


def renamed(plan: Plan, names: dict[str, str], done: dict[int, Plan] | None = None) -> Plan:
    """The plan over roots of other names, sharing what it shared."""
    done = {} if done is None else done
    if id(plan) not in done:
        match plan:
            case RootTable(root=root):
                done[id(plan)] = RootTable(names[root])
            case PersonTable():
                done[id(plan)] = plan
            case Term(transformation=transformation, arguments=arguments):
                done[id(plan)] = Term(transformation, tuple(renamed(a, names, done) for a in arguments))
    return done[id(plan)]


def roots_of(plan: Plan) -> set[str]:
    if isinstance(plan, RootTable):
        return {plan.root}
    return set().union(*(roots_of(a) for a in plan.arguments)) if isinstance(plan, Term) else set()


def load(engine: Any, example: Example) -> dict[str, str]:
    """The example's data in the engine, under fresh names."""
    names: dict[str, str] = {}
    used = roots_of(example.plan)
    for name, (schema, rows) in example.tables.items():
        if name not in used:
            continue
        names[name] = f"{name}{next(_names)}"
        given = [dict(zip(schema.names(), row, strict=True)) for row in rows]
        assert engine.add_root(names[name], given, schema=dict(schema.columns)) == schema
    for name, (shape, tables) in example.persons.items():
        if name not in used:
            continue
        names[name] = f"{name}{next(_names)}"
        sources = {
            table: [dict(zip(schema.names(), row, strict=True)) for row in tables[table]]
            for table, schema in shape.tables
        }
        schemas = {table: dict(schema.columns) for table, schema in shape.tables}
        assert engine.add_persons(names[name], sources, unit=shape.unit, schemas=schemas) == shape
    return names


def compare(engine: Any, example: Example, names: dict[str, str]) -> None:
    plan = renamed(example.plan, names)
    expected = reference.compute(example.plan, example.database())
    found = engine.rows(plan)
    assert found.schema == expected.schema
    assert bag(found.rows) == bag(expected.rows)
    whole = [example.whole.statistic]
    assert engine.measure(plan, None, whole) == reference.measure(expected, None, whole)
    assert engine.measure(plan, example.by, example.statistics) == reference.measure(
        expected, example.by, example.statistics
    )
    with patch.object(statistics, "FEW", 0):  # as very many parts are read
        assert engine.measure(plan, example.by, whole) == reference.measure(expected, example.by, whole)


@thorough(EXAMPLES // 4)
@given(case=expression_examples())
def test_an_expression_has_the_reference_value_on_every_row(
    engine: Any, case: tuple[Schema, Any, tuple[Expression, ...]]
) -> None:
    schema, rows, expressions = case
    name = f"e{next(_names)}"
    engine.add_root(
        name, [dict(zip(schema.names(), row, strict=True)) for row in rows], schema=dict(schema.columns)
    )
    record = tuple((f"e{i}", expression) for i, expression in enumerate(expressions))
    found = engine.rows(Term(Select(record), (RootTable(name),)))
    table = reference.Relation(schema, canonical(schema, rows))
    expected = [tuple(evaluate(e, row) for e in expressions) for row in table.read()]
    assert bag(found.rows) == bag(expected)


@thorough(EXAMPLES)
@given(example=plan_examples())
def test_a_plan_has_the_reference_rows_and_statistics(engine: Any, example: Example) -> None:
    compare(engine, example, load(engine, example))


def test_every_operator_can_be_drawn() -> None:
    """Which ones are drawn is up to chance; test_grid takes each of them on all nasty values."""
    drawn = {name for options in _BY_RESULT.values() for name, _ in options}
    assert drawn == set(OPERATORS)
