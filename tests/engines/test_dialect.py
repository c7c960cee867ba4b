"""A dialect says everything for itself: what makes an operator total is neither inherited nor forgotten."""

import inspect
from typing import Any

import pytest

from fpinq.engines.duckdb.dialect import DuckDBDialect
from fpinq.engines.postgres.dialect import PostgresDialect
from fpinq.engines.spark.dialect import SparkDialect
from fpinq.engines.sql.dialect import Dialect
from fpinq.engines.sql.expressions import Bindings, Code, Parameters
from fpinq.model.expressions import Schema, Type

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
    assert (once.sql, once.level, once.weight, bindings.layers) == ("(f((c0 + c0)))", 0, 2, [])
    twice = bindings.apply(lambda a, b: f"g({a}, {b}, {a})", Type.FLOAT64, heavy, column)
    assert (twice.sql, twice.level, twice.weight) == ("(g(b0_0, c0, b0_0))", 1, 5)
    assert bindings.layers == [{"(c0 + c0)": "b0_0"}]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_part_of_a_text_is_given_its_own_parameters_only(dialect: type[Dialect]) -> None:
    parameters = Parameters(dialect())
    texts = [f"text {i}" for i in range(12)]
    places = [parameters.bind(text) for text in texts]
    assert places == [parameters.bind(text) for text in texts]
    assert parameters.of(f"SELECT {places[11]} || {places[3]}") == {"p3": texts[3], "p11": texts[11]}
    assert parameters.of(f'SELECT "p1", {places[10]}') == {"p10": texts[10]}
