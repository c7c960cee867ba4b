"""Formulas: row expressions as text."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

import fpinq as fp
from fpinq.client.formulas import FUNCTIONS, MAX_DEPTH, MAX_TOKENS, formula
from fpinq.client.rows import Call, Cell, Row
from fpinq.model.expressions import Schema, Type

SCHEMA = Schema.of(
    {
        "age": Type.INT64,
        "income": Type.FLOAT64,
        "city": Type.STRING,
        "born": Type.DATE,
        "seen": Type.TIMESTAMP,
        "first name": Type.STRING,
        "rich": Type.BOOL,
        "<b>x</b>": Type.INT64,
    }
)


def row() -> Row:
    return Row(SCHEMA, Call())


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("age > 17", lambda x: x.age > 17),
        ("age = 17", lambda x: x.age == 17),
        ("age == 17", lambda x: x.age == 17),
        ("age <> 17", lambda x: x.age != 17),
        ("age != 17", lambda x: x.age != 17),
        ("age > 17 and city = 'Bergen'", lambda x: (x.age > 17) & (x.city == "Bergen")),
        ("age > 1 or age < 0 and rich", lambda x: (x.age > 1) | ((x.age < 0) & x.rich)),
        ("not rich and rich", lambda x: ~x.rich & x.rich),
        ("NOT (rich OR rich)", lambda x: ~(x.rich | x.rich)),
        ("age in (1, -2)", lambda x: x.age.is_in([1, -2])),
        ("city not in ('a', 'it''s')", lambda x: ~x.city.is_in(["a", "it's"])),
        ("age between 3 and 5 and rich", lambda x: (x.age >= 3) & (x.age <= 5) & x.rich),
        ("city is null", lambda x: x.city.is_null()),
        ("city is not null", lambda x: ~x.city.is_null()),
        ("\"first name\" = 'Ann'", lambda x: x["first name"] == "Ann"),
        ('"<b>x</b>" < 3', lambda x: x["<b>x</b>"] < 3),
        ("age + 2 * 3 - 1", lambda x: x.age + fp_constant(2) * 3 - 1),
        ("(age + 2) * -3", lambda x: (x.age + 2) * -fp_constant(3)),
        ("income / 12 // 2 % 3", lambda x: x.income / 12 // 2 % 3),
        ("born >= date '2024-02-29'", lambda x: x.born >= date(2024, 2, 29)),
        ("abs(age) > year(born)", lambda x: abs(x.age) > x.born.year()),
        ("contains(lower(city), 'b')", lambda x: x.city.lower().contains("b")),
        ("if(rich, 1, age)", lambda x: fp.if_else(x.rich, 1, x.age)),
        ("rich = true", lambda x: x.rich == True),  # noqa: E712
    ],
)
def test_a_formula_is_the_expression_that_a_lambda_gives(text: str, same: Callable[[Row], Cell]) -> None:
    assert formula(text)(row()).tree == same(row()).tree


def fp_constant(value: int) -> Cell:
    from fpinq.client.rows import constant

    return constant(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "ends too early"),
        ("age >", "ends too early"),
        ("age > 17)", "')' is not expected"),
        ("1 < age < 5", "write a > 1 and a < 5"),
        ("agee > 1", "did you mean 'age'"),
        ('city = "Bergen"', "single quotes: 'Bergen'"),
        ("city = 'Bergen", "a text ends where it began"),
        ("x.age > 1", "cannot be read at '.age"),
        ("foo(age)", "no function 'foo'"),
        ("abs(age, age)", "abs takes 1"),
        ("age in (age)", "a constant"),
        ("age not 3", "'in' is missing"),
        ("age = 'a'", "equal takes"),
        ("born = date '2024-02-30'", "is no day"),
        ("9" * 41 + " > age", "at most 40 digits"),
        ("__import__('os')", "no function"),
        ("(lambda: 1)()", "cannot be read at"),
        ("age.__class__", "cannot be read at"),
    ],
)
def test_what_is_no_formula_is_said(text: str, says: str) -> None:
    with pytest.raises(fp.ProgramError, match=re.escape(says)):
        formula(text, "the filter")(row())


def test_a_formula_is_as_deep_and_as_long_as_may_be_and_no_more() -> None:
    for text in ("(" * 10_000, "not " * 3_000 + "rich", "-" * 9_000 + "age", " and ".join(["rich"] * 2_000)):
        with pytest.raises(fp.BadExpression):
            formula(text)(row())
    deep = MAX_DEPTH - 1
    assert formula("(" * deep + "rich" + ")" * deep)(row()).type is Type.BOOL
    assert formula(" or ".join(["rich"] * 100))(row()).type is Type.BOOL
    assert MAX_TOKENS < 10_000


_WORDS = [
    *("age", "income", "city", '"first name"', "rich", "1", "2.5", "1e3", "'a'", "''", "date '2024-01-01'"),
    *(
        "and",
        "or",
        "not",
        "in",
        "between",
        "is",
        "null",
        "true",
        "(",
        ")",
        ",",
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
    ),
    *("=", "<", ">=", "<>", *FUNCTIONS, "é", "\x00", "`", ";", "--", "\n"),
]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(_WORDS), max_size=15).map(" ".join) | st.text(max_size=60))
@example("'")
@example("9e999 < income")
def test_any_text_is_an_expression_or_a_mistake(text: str) -> None:
    with suppress(fp.ProgramError):
        assert isinstance(formula(text)(row()), Cell)
