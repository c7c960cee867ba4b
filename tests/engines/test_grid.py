"""Every operator on every pair of nasty values: the engine equals the definition, bit by bit."""

from fractions import Fraction
from itertools import count, product
from typing import Any

import pytest

from engines.nasty import VALUES
from fpinq.engines import reference
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadExpression
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type, Value, checked_value
from fpinq.model.operators import OPERATORS, evaluate, type_of
from fpinq.model.plans import RootTable, Term
from fpinq.model.statistics import Points
from fpinq.model.transformations import Explode, Select

_names = count()

INTEGER_LITERALS = [0, 1, -1, 2, 3, -3, 10, 2**53, 2**62, 2**63 - 1, -(2**63)]
FLOAT_LITERALS = [0.0, 1.0, -0.5, 2.0, float("inf"), -float("inf"), 1e300]


def signatures() -> list[Any]:
    cases = []
    for name, operator in OPERATORS.items():
        for takes, _ in operator.signatures:
            cases.append(pytest.param(name, takes, id=f"{name}-{'-'.join(t.value for t in takes)}"))
    return cases


def same(left: Value, right: Value) -> bool:
    """Equal, of the same type, and the same zero."""
    return type(left) is type(right) and repr(left) == repr(right)


def check(
    engine: Any, columns: dict[str, Type], rows: list[tuple[Value, ...]], records: list[Expression]
) -> None:
    """The expressions have the reference's values on every row."""
    name = f"t{next(_names)}"
    schema = engine.add_root(
        name,
        [{"id": i, **dict(zip(columns, row, strict=True))} for i, row in enumerate(rows)],
        schema={"id": Type.INT64, **columns},
    )
    for start in range(0, len(records), 200):
        chunk = records[start : start + 200]
        named = (("id", Column("id")), *((f"e{i}", e) for i, e in enumerate(chunk)))
        found = engine.rows(Term(Select(named), (RootTable(name),)))
        assert found.schema.types()[1:] == tuple(type_of(e, schema) for e in chunk)
        for record in found.rows:
            canonical = map(checked_value, rows[record[0]], columns.values())
            row = dict(zip(columns, canonical, strict=True))
            for expression, value in zip(chunk, record[1:], strict=True):
                expected = evaluate(expression, row)
                assert same(value, expected), (expression, row, value, expected)


@pytest.mark.parametrize(("name", "takes"), signatures())
def test_an_operator_has_the_reference_value_on_all_nasty_values(
    loaded: Any, name: str, takes: tuple[Type, ...]
) -> None:
    operator = OPERATORS[name]
    free = [i for i in range(len(takes)) if i not in operator.literal and not (operator.variadic and i)]
    rows = list(product(*(VALUES[takes[i]] for i in free)))
    names = {i: f"x{i}" for i in free}
    used = {f"x{i}": takes[i] for i in free}
    if name == "split":
        pytest.skip("arrays are compared through explode")
    if name == "is_in":
        values = [v for v in (Literal(v, takes[1]) for v in VALUES[takes[1]]) if v.value is not None]
        expressions: list[Expression] = [
            Apply("is_in", (Column("x0"), *chosen)) for chosen in (values[:1], values[::2], values)
        ]
    elif operator.literal:
        literals: dict[int, list[Value]] = {i: _literals(takes[i]) for i in operator.literal}
        expressions = []
        for chosen in product(*literals.values()):
            arguments = [Column(names[i]) if i in names else None for i in range(len(takes))]
            for i, value in zip(literals, chosen, strict=True):
                arguments[i] = Literal(value, takes[i])
            expressions.append(Apply(name, tuple(arguments)))
        expressions = [e for e in expressions if _well_typed(e, used)]
    else:
        expressions = [Apply(name, tuple(Column(names[i]) for i in free))]
    check(loaded, used, rows, expressions)


@pytest.mark.parametrize(("name", "takes"), [c for c in signatures() if len(c.values[1]) == 2])
def test_an_operator_has_the_reference_value_when_one_side_is_a_constant(
    loaded: Any, name: str, takes: tuple[Type, ...]
) -> None:
    if OPERATORS[name].literal or OPERATORS[name].variadic:
        pytest.skip("constants are all it takes")
    for side in (0, 1):
        rows = [(value,) for value in VALUES[takes[side]]]
        expressions = []
        for value in VALUES[takes[1 - side]]:
            arguments: list[Expression] = [Column("x"), Literal(value, takes[1 - side])]
            expressions.append(Apply(name, tuple(arguments if side == 0 else arguments[::-1])))
        check(loaded, {"x": takes[side]}, rows, expressions)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "floor_divide", "modulo", "negate", "abs"])
def test_guards_left_out_for_small_intervals_were_not_needed(loaded: Any, name: str) -> None:
    bounds = [(0, 1), (-3, 3), (-(2**62), 2**62), (2**62, 2**63 - 1), (-(2**63), -(2**62)), (5, 5)]
    rows = list(product(VALUES[Type.INT64], repeat=2))
    clipped = [
        [Apply("clip", (Column(x), Literal.of(low), Literal.of(high))) for low, high in bounds] for x in "xy"
    ]
    arity = len(OPERATORS[name].signatures[0][0])
    expressions: list[Expression] = [Apply(name, chosen) for chosen in product(*clipped[:arity])]
    check(loaded, {"x": Type.INT64, "y": Type.INT64}, rows, expressions)


def test_pieces_of_a_string_are_the_reference_pieces(loaded: Any) -> None:
    strings = VALUES[Type.STRING]
    schema = {"s": Type.STRING}
    for separator in ["a", ",", ",,", "é", "\0", " ", "\U0010ffff", "'"]:
        for at_most in (1, 2, 100):
            name = f"t{next(_names)}"
            loaded.add_root(name, [{"s": s} for s in strings], schema=schema)
            value = Apply("split", (Column("s"), Literal.of(separator)))
            found = loaded.rows(Term(Explode(value, "piece", at_most), (RootTable(name),)))
            expected = [(p,) for s in strings if s is not None for p in s.split(separator)[:at_most]]
            assert sorted(found.rows) == sorted(expected)


@pytest.mark.parametrize("name", sorted(n for n, o in OPERATORS.items() if n not in ("split", "is_in")))
def test_an_operator_nested_as_deep_as_allowed_is_computed(loaded: Any, name: str) -> None:
    operator = OPERATORS[name]
    for takes, gives in operator.signatures:
        if gives not in takes or (takes[0] != gives and name != "if_else"):
            continue
        position = takes.index(gives)
        expression: Expression = Column("x")
        for level in range(99):
            arguments: list[Expression] = [_some_literal(t, level) for t in takes]
            if name == "clip":
                arguments[1:] = sorted(arguments[1:], key=lambda a: a.value)
            if name == "substring":
                arguments[1:] = [Literal.of(level % 2), Literal.of(200 - level)]
            arguments[position] = expression
            expression = Apply(name, tuple(arguments))
        rows = [(value,) for value in VALUES[gives]]
        check(loaded, {"x": gives}, rows, [expression])


def _some_literal(type_: Type, level: int) -> Literal:
    values = [Literal(v, type_) for v in VALUES[type_] if v not in (None, 0, 0.0, "x" * 300)]
    present = [v for v in values if v.value is not None]
    return present[level % 5 % len(present)]


def _literals(type_: Type) -> list[Value]:
    if type_ is Type.STRING:
        return ["a", "é", ","]
    return list(INTEGER_LITERALS if type_ is Type.INT64 else FLOAT_LITERALS)


def _well_typed(expression: Expression, columns: dict[str, Type]) -> bool:
    try:
        type_of(expression, Schema.of(columns))
    except BadExpression:
        return False
    return True


@pytest.mark.parametrize("exponent", [-1000, -900, -10, -1, 0, 1, 10, 900, 901, 1000])
def test_grid_points_are_the_reference_points(loaded: Any, exponent: int) -> None:
    step = Fraction(2) ** exponent
    near = [float(step) * n for n in (0.5, 1.0, 1.5, 2.5, -0.5, -1.5, 2.0**52 + 1, 2.0**53)]
    floats = [*VALUES[Type.FLOAT64], *near]
    name = f"t{next(_names)}"
    loaded.add_root(name, [{"x": x} for x in floats], schema={"x": Type.FLOAT64})
    schema = Schema.of({"x": Type.FLOAT64})
    table = reference.Relation(schema, tuple((checked_value(x, Type.FLOAT64),) for x in floats))
    bounds = [(0, 0), (0, 10), (-3, 3), (5, 7), (-(2**53), 2**53), (-(2**53), -(2**52))]
    for value in (Column("x"), Apply("negate", (Column("x"),))):
        for lower, upper in bounds:
            points = Points(Clamp(value, lower, upper, step))
            assert loaded.measure(RootTable(name), None, [points]) == reference.measure(table, None, [points])
