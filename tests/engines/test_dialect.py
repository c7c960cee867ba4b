"""A dialect says everything for itself: what makes an operator total is neither inherited nor forgotten."""

import inspect
import re
from typing import Any

import pytest

from fpinq.engines.duckdb.dialect import DuckDBDialect
from fpinq.engines.postgres.dialect import PostgresDialect
from fpinq.engines.spark.dialect import SparkDialect
from fpinq.engines.sql.dialect import Dialect
from fpinq.engines.sql.expressions import Bindings, Code, Parameters
from fpinq.engines.sql.texts import DATE, FLOAT, INTEGER, TIMESTAMP, Form
from fpinq.model.expressions import Schema, Type
from fpinq.model.operators import OPERATORS

DIALECTS = [DuckDBDialect, SparkDialect, PostgresDialect]
WORDS = sorted(Dialect.__abstractmethods__)
PUBLIC = sorted(name for name in vars(Dialect) if not name.startswith("_"))


def test_nothing_that_a_dialect_is_asked_has_a_default() -> None:
    assert PUBLIC == WORDS
    assert Dialect.__mro__ == (Dialect, *Dialect.__bases__, object)
    assert not [name for name in vars(Dialect.__bases__[0]) if not name.startswith("_")]


@pytest.mark.parametrize("word", WORDS)
def test_every_question_says_what_the_answer_means_and_answers_nothing(word: str) -> None:
    asked = inspect.getattr_static(Dialect, word)
    function = asked.fget if isinstance(asked, property) else asked
    assert inspect.getdoc(function)
    body = inspect.getsource(function).partition('"""')[2].partition('"""')[2]
    assert not body.strip()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("missing", WORDS)
def test_a_dialect_that_leaves_a_word_out_cannot_be_made(dialect: type[Dialect], missing: str) -> None:
    said: dict[str, Any] = {name: vars(dialect)[name] for name in WORDS if name != missing}
    with pytest.raises(TypeError, match=missing):
        type("Forgetful", (Dialect,), said)()
    assert type("Complete", (Dialect,), {**said, missing: vars(dialect)[missing]})()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_is_nobodys_child(dialect: type[Dialect]) -> None:
    assert dialect.__bases__ == (Dialect,)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_dialect_mentions_twice_is_computed_once_below(dialect: type[Dialect]) -> None:
    column = Code("c0", Type.FLOAT64, atom=True)
    bindings = Bindings({"x": column}, Schema.of({"x": Type.FLOAT64}), Parameters(dialect()))
    heavy = bindings.code("c0 + c0", Type.FLOAT64, column, times=2)
    once = bindings.apply(lambda a: f"f({a})", Type.FLOAT64, heavy)
    assert (once.sql, once.level, once.weight, bindings.layers.bound) == ("(f((c0 + c0)))", 0, 2, [])
    twice = bindings.apply(lambda a, b: f"g({a}, {b}, {a})", Type.FLOAT64, heavy, column)
    assert (twice.sql, twice.level, twice.weight) == ("(g(b0_0, c0, b0_0))", 1, 5)
    assert bindings.layers.bound == [{"(c0 + c0)": "b0_0"}]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_part_of_a_text_is_given_its_own_parameters_only(dialect: type[Dialect]) -> None:
    parameters = Parameters(dialect())
    texts = [f"text {i}" for i in range(12)]
    places = [parameters.bind(text) for text in texts]
    assert places == [parameters.bind(text) for text in texts]
    assert parameters.of(f"SELECT {places[11]} || {places[3]}") == {"p3": texts[3], "p11": texts[11]}
    assert parameters.of(f'SELECT "p1", {places[10]}') == {"p10": texts[10]}


# ── what it takes ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_says_what_every_operator_takes_and_none_is_free(dialect: type[Dialect]) -> None:
    costs = dialect().costs
    assert costs.operators.keys() == OPERATORS.keys()
    steps = (costs.compared, costs.keyed, costs.ordered, *costs.operators.values())
    assert all(times.once >= 1 and times.character >= 1 for times in steps)
    assert min(costs.column.once, costs.passed, costs.clamped) >= 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_costs_of_a_dialect_are_its_own(dialect: type[Dialect]) -> None:
    assert [other for other in DIALECTS if other().costs.engine == dialect().costs.engine] == [dialect]


# ── what can be parsed ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", [INTEGER, FLOAT, DATE, TIMESTAMP])
def test_the_longest_text_of_a_form_is_no_longer_than_it_says(form: Form) -> None:
    assert re._parser.parse(form.pattern).getwidth()[1] == form.longest  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("operator", "longest"),
    [("to_int64", INTEGER), ("to_float64", FLOAT), ("to_date", DATE), ("to_timestamp", TIMESTAMP)],
)
def test_no_longer_text_is_parsed_by_the_definition(operator: str, longest: Form) -> None:
    texts = {
        "to_int64": "-9223372036854775808",
        "to_float64": "-" + "1" * 30 + "." + "5" * 30 + "e+100",
        "to_date": "2024-02-29",
        "to_timestamp": "2024-02-29 23:59:59.999999",
    }
    text = texts[operator]
    parse = OPERATORS[operator].value
    assert len(text) == longest.longest
    assert parse(text) is not None
    assert all(parse(more) is None for more in (text + "0", text + " ", "0" + text))
