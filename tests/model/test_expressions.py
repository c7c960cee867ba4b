"""The row language: syntax, types, values."""

import math
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model.errors import BadExpression, UnknownColumn
from fpinq.model.expressions import (
    COLUMN_TYPES,
    INT64_MAX,
    INT64_MIN,
    MAX_DEPTH,
    Apply,
    Column,
    Expression,
    Literal,
    Schema,
    Type,
    columns_of,
    depth_of,
    nodes_of,
)
from fpinq.model.operators import MAX_STRING, OPERATORS, evaluate, type_of

SCHEMA = Schema.of({"age": Type.INT64, "name": Type.STRING, "height": Type.FLOAT64})
NULL_OF = {type_: Literal(None, type_) for type_ in COLUMN_TYPES}


def apply(operator: str, *values: Any) -> Any:
    return evaluate(Apply(operator, tuple(map(literal, values))), {})


def literal(value: Any) -> Expression:
    return value if isinstance(value, Literal) else Literal.of(value)


# ── syntax ───────────────────────────────────────────────────────────────────────────


def test_one_true_and_one_point_zero_are_different_constants() -> None:
    assert len({Literal.of(1), Literal.of(True), Literal.of(1.0), Literal.of("1")}) == 4


def test_nan_is_null_and_minus_zero_is_zero() -> None:
    assert Literal.of(float("nan")).value is None
    assert math.copysign(1, Literal.of(-0.0).value) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [[], {}, None, b"", 1j, type("S", (str,), {})("x")])
def test_what_is_not_a_value_is_refused(value: Any) -> None:
    with pytest.raises(BadExpression, match="not a value"):
        Literal.of(value)


@pytest.mark.parametrize(
    ("value", "type_", "why"),
    [
        (2**63, Type.INT64, "64 bits"),
        (-(2**63) - 1, Type.INT64, "64 bits"),
        (1, Type.FLOAT64, "expected float64"),
        (datetime.fromisoformat("2024-01-01T00:00:00+00:00"), Type.TIMESTAMP, "time zone"),
        ("\ud800", Type.STRING, "surrogate"),
        (None, Type.STRINGS, "no constant arrays"),
    ],
)
def test_a_constant_must_be_of_its_type(value: Any, type_: Type, why: str) -> None:
    with pytest.raises(BadExpression, match=why):
        Literal(value, type_)


def grown(operator: str, arity: int, levels: int) -> Expression:
    expression: Expression = Column("name")
    for _ in range(levels):
        expression = Apply(operator, (expression,) * arity)
    return expression


def test_a_deep_expression_is_refused_when_it_is_built() -> None:
    assert depth_of(grown("strip", 1, MAX_DEPTH)) == MAX_DEPTH
    with pytest.raises(BadExpression, match="too large"):
        grown("strip", 1, MAX_DEPTH + 1)


def test_a_shared_subexpression_counts_as_often_as_it_is_used() -> None:
    with pytest.raises(BadExpression, match="too large"):
        grown("concat", 2, 20)
    assert nodes_of(Column("a")) == 1
    assert depth_of(Literal.of(1)) == 0


def test_columns_of_an_expression() -> None:
    both = Apply("add", (Column("a"), Apply("add", (Column("b"), Literal.of(1)))))
    assert list(columns_of(both)) == ["a", "b"]


# ── types ────────────────────────────────────────────────────────────────────────────


def test_an_unknown_column_suggests_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match="did you mean 'height'") as caught:
        type_of(Column("hight"), SCHEMA)
    assert caught.value.column == "hight"


def test_an_unknown_column_far_from_all_lists_the_columns() -> None:
    with pytest.raises(UnknownColumn, match=r"the columns are: age, name, height$"):
        type_of(Column("zzz"), SCHEMA)


def test_an_unknown_operator_suggests_the_nearest() -> None:
    with pytest.raises(BadExpression, match="did you mean 'lower'"):
        type_of(Apply("lowr", (Column("name"),)), SCHEMA)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (Apply("add", (Column("age"), Column("height"))), "add takes"),
        (Apply("add", (Column("age"),)), "add takes"),
        (Apply("not", (Column("age"),)), "not takes"),
        (Apply("clip", (Column("age"), Column("age"), Literal.of(1))), "must be a constant"),
        (Apply("clip", (Column("age"), Literal.of(3), Literal.of(1))), "lower bound"),
        (Apply("clip", (Column("age"), NULL_OF[Type.INT64], Literal.of(1))), "must be a constant"),
        (Apply("substring", (Column("name"), Literal.of(-1), Literal.of(1))), "start ≥ 0"),
        (Apply("split", (Column("name"), Literal.of(""))), "separator"),
        (Apply("is_in", (Column("age"),)), "is_in takes"),
        (Apply("is_in", (Column("age"), Literal.of(1), Literal.of("a"))), "is_in takes"),
        (Apply("is_in", (Column("age"), Literal.of(1), Column("age"))), "must be a constant"),
        (Apply("hour", (Literal.of(date(2024, 1, 1)),)), "hour takes"),
    ],
)
def test_an_ill_typed_expression_is_refused(expression: Expression, why: str) -> None:
    with pytest.raises(BadExpression, match=why):
        type_of(expression, SCHEMA)


# ── values ───────────────────────────────────────────────────────────────────────────

INF = math.inf

VALUES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("add", (INT64_MAX, 1), None),
    ("add", (1.5, 2.0), 3.5),
    ("add", (INF, -INF), None),
    ("subtract", (INT64_MIN, 1), None),
    ("subtract", (date(2024, 3, 1), date(2024, 2, 28)), 2),
    ("subtract", (datetime(2024, 1, 1, 0, 0, 1), datetime(2024, 1, 1)), 1.0),
    ("subtract", (datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 500_000)), -0.5),
    ("multiply", (INT64_MIN, -1), None),
    ("multiply", (1e308, 10.0), INF),
    ("multiply", (0.0, -1.0), 0.0),
    ("divide", (1.0, 0.0), None),
    ("divide", (1.0, 4.0), 0.25),
    ("floor_divide", (-7, 2), -4),
    ("floor_divide", (7, 0), None),
    ("floor_divide", (INT64_MIN, -1), None),
    ("floor_divide", (-7.5, 2.0), -4.0),
    ("floor_divide", (1.0, 0.0), None),
    ("floor_divide", (INF, 2.0), INF),
    ("floor_divide", (INF, INF), None),
    ("modulo", (-7, 3), 2),
    ("modulo", (7, -3), -2),
    ("modulo", (7, 0), None),
    ("modulo", (-7.5, 2.0), 0.5),
    ("modulo", (INF, 2.0), None),
    ("modulo", (1.0, 0.0), None),
    ("negate", (INT64_MIN,), None),
    ("negate", (INF,), -INF),
    ("negate", (0.0,), 0.0),
    ("abs", (INT64_MIN,), None),
    ("abs", (-3,), 3),
    ("abs", (-3.5,), 3.5),
    ("sign", (-3.5,), -1),
    ("sign", (0,), 0),
    ("floor", (-1.5,), -2.0),
    ("floor", (INF,), INF),
    ("ceil", (-0.5,), 0.0),
    ("ceil", (INF,), INF),
    ("round", (2.5,), 2.0),
    ("round", (3.5,), 4.0),
    ("round", (-INF,), -INF),
    ("sqrt", (-1.0,), None),
    ("sqrt", (4.0,), 2.0),
    ("exp", (1000.0,), INF),
    ("exp", (0.0,), 1.0),
    ("log", (0.0,), None),
    ("log", (1.0,), 0.0),
    ("power", (2.0, 10.0), 1024.0),
    ("power", (-1.0, 0.5), None),
    ("power", (0.0, -1.0), None),
    ("power", (-10.0, 309.0), -INF),
    ("power", (10.0, 309.0), INF),
    ("clip", (200, 0, 110), 110),
    ("clip", (-1.5, 0.0, 1.0), 0.0),
    ("equal", ("a", "a"), True),
    ("not_equal", (1, 1), False),
    ("less", ("Z", "a"), True),
    ("less_equal", (1, 1), True),
    ("greater", (date(2024, 1, 2), date(2024, 1, 1)), True),
    ("greater_equal", (0.5, 1.0), False),
    ("and", (True, NULL_OF[Type.BOOL]), None),
    ("and", (False, NULL_OF[Type.BOOL]), False),
    ("and", (True, True), True),
    ("or", (True, NULL_OF[Type.BOOL]), True),
    ("or", (False, NULL_OF[Type.BOOL]), None),
    ("or", (False, False), False),
    ("not", (True,), False),
    ("if_else", (True, 1, 2), 1),
    ("if_else", (NULL_OF[Type.BOOL], 1, 2), 2),
    ("is_in", (2, 1, 2), True),
    ("is_in", (NULL_OF[Type.INT64], 1), None),
    ("is_null", (NULL_OF[Type.STRING],), True),
    ("fill_null", (NULL_OF[Type.INT64], 7), 7),
    ("fill_null", (3, 7), 3),
    ("to_bool", ("true",), True),
    ("to_bool", ("FALSE",), False),
    ("to_bool", ("tRue",), None),
    ("to_bool", ("1",), None),
    ("to_int64", ("12",), 12),
    ("to_int64", (" 12",), None),
    ("to_int64", ("9223372036854775808",), None),
    ("to_int64", (2.9,), 2),
    ("to_int64", (-2.9,), -2),
    ("to_int64", (INF,), None),
    ("to_int64", (1e19,), None),
    ("to_int64", (True,), 1),
    ("to_float64", ("1e3",), 1000.0),
    ("to_float64", ("nan",), None),
    ("to_float64", ("1_0",), None),
    ("to_float64", (3,), 3.0),
    ("to_string", (-5,), "-5"),
    ("to_string", (date(2024, 2, 29),), "2024-02-29"),
    ("to_date", ("2024-02-29",), date(2024, 2, 29)),
    ("to_date", ("2023-02-29",), None),
    ("to_date", ("20240229",), None),
    ("to_date", (datetime(2024, 2, 29, 23, 59),), date(2024, 2, 29)),
    ("to_timestamp", (date(2024, 2, 29),), datetime(2024, 2, 29)),
    ("to_timestamp", ("2024-02-29",), datetime(2024, 2, 29)),
    ("to_timestamp", ("2024-02-29T17:05",), datetime(2024, 2, 29, 17, 5)),
    ("to_timestamp", ("2024-02-29 17:05:01.25",), datetime(2024, 2, 29, 17, 5, 1, 250_000)),
    ("to_timestamp", ("2023-02-29 17:05:01",), None),
    ("to_timestamp", ("2024-02-29 24:00:00",), None),
    ("to_timestamp", ("2024-02-29 17:05:01Z",), None),
    ("lower", ("ÀBß İ",), "àbß İ"),
    ("upper", ("straße й",), "STRAßE Й"),
    ("strip", ("\t a \u00a0",), "a \u00a0"),
    ("length", ("a🦆é",), 3),
    ("substring", ("hello", 1, 3), "ell"),
    ("substring", ("hello", 9, 3), ""),
    ("concat", ("a", "b"), "ab"),
    ("concat", ("a" * MAX_STRING, "b"), None),
    ("contains", ("abc", "bc"), True),
    ("starts_with", ("abc", "bc"), False),
    ("ends_with", ("abc", "bc"), True),
    ("split", ("a b", " "), ["a", "b"]),
    ("year", (date(2024, 2, 29),), 2024),
    ("month", (date(2024, 2, 29),), 2),
    ("day", (datetime(2024, 2, 29),), 29),
    ("weekday", (date(2024, 2, 29),), 3),
    ("hour", (datetime(2024, 2, 29, 17, 5),), 17),
]


@pytest.mark.parametrize(("operator", "arguments", "value"), VALUES)
def test_an_operator_has_the_value_written_down(
    operator: str, arguments: tuple[Any, ...], value: Any
) -> None:
    found = apply(operator, *arguments)
    assert found == value
    assert type(found) is type(value)


def test_every_operator_is_written_down() -> None:
    assert {operator for operator, _, _ in VALUES} == set(OPERATORS)


NASTY = {
    Type.BOOL: st.booleans(),
    Type.INT64: st.sampled_from([0, 1, -1, 2, INT64_MAX, INT64_MIN, 10**12])
    | st.integers(INT64_MIN, INT64_MAX),
    Type.FLOAT64: st.floats(),
    Type.STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["1", "-1e5", "2024-02-30", "9" * 19, "nan"]),
    Type.DATE: st.dates(),
    Type.TIMESTAMP: st.datetimes(),
}


@given(st.data())
def test_no_operator_raises_and_each_gives_its_type(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(OPERATORS)))
    takes, gives = data.draw(st.sampled_from(OPERATORS[name].signatures))
    arguments = []
    for position, type_ in enumerate(takes):
        constant = position in OPERATORS[name].literal or (OPERATORS[name].variadic and position)
        values = NASTY[type_] if constant else NASTY[type_] | st.none()
        arguments.append(Literal(data.draw(values), type_))
    expression = Apply(name, tuple(arguments))
    try:
        assert type_of(expression, SCHEMA) is gives
    except BadExpression:
        assert name in {"clip", "substring", "split", "is_in"}
        return
    value = evaluate(expression, {})
    if gives is Type.STRINGS:
        assert value is None or isinstance(value, list)
    else:
        canonical = Literal(value, gives).value
        assert (canonical is None) == (value is None)
        assert value is None or canonical == value


def test_a_column_is_read_from_the_row() -> None:
    assert evaluate(Apply("negate", (Column("age"),)), {"age": 3}) == -3
    assert evaluate(Apply("negate", (Column("age"),)), {"age": None}) is None


def test_types_show_as_their_names() -> None:
    assert repr(SCHEMA.types()) == "(int64, string, float64)"
