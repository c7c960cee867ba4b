"""Whatever is sent as a statement: a typed error, nothing charged, nothing quoted from data."""

import time
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fpinq as fp
from fpinq.sql import parsing
from sql.small_town import protected
from sql.statements import Generator

BIG = {
    "parentheses": "SELECT COUNT(*) FROM people WHERE " + "(" * 1_000_000,
    "parentheses that are short enough": "SELECT COUNT(*) FROM people WHERE " + "(" * 20_000 + "1",
    "closed parentheses": f"SELECT COUNT(*) FROM people WHERE {'(' * 60}age > 3{')' * 60}",
    "cases": "SELECT COUNT(*) FROM people WHERE " + "CASE WHEN " * 5_000,
    "nots": "SELECT COUNT(*) FROM people WHERE " + "NOT " * 9_000 + "smokes",
    "signs": "SELECT SUM(CLAMP(" + "- " * 9_000 + "age, 0, 1)) FROM people",
    "sums": "SELECT SUM(CLAMP(" + "+".join(["age"] * 4_000) + ", 0, 1)) FROM people",
    "words": "SELECT " + "a " * 30_000,
    "sub-queries": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 2_000,
    "casts": "SELECT COUNT(*) FROM people WHERE age" + "::BIGINT" * 4_000 + " > 3",
    "aliases": "SELECT COUNT(*) FROM people " + "JOIN people " * 4_000,
    "unions": "SELECT COUNT(*) FROM (" + " UNION ALL ".join(["SELECT age FROM people"] * 2_000) + ") t",
    "commas": "SELECT " + "," * 9_000 + " FROM people",
    "literal": f"SELECT COUNT(*) FROM people WHERE city = '{'x' * 66_000}'",
    "digits": f"SELECT COUNT(*) FROM people WHERE age = {'9' * 20_000}",
    "digits beside an answer": f"SELECT COUNT(*) + {'9' * 5_000} FROM people",
    "an exponent without digits": "SELECT COUNT(*) FROM people WHERE age = 0E",
    "an exponent with a fraction": "SELECT COUNT(*) + 1e5.2 FROM people",
    "a number of two points": "SELECT COUNT(*) FROM people WHERE age > .5.2",
    "a limit without digits": "SELECT COUNT(*) FROM people LIMIT 0E",
    "a group without digits": "SELECT COUNT(*) FROM people GROUP BY 1E",
    "a bound without digits": "SELECT SUM(CLAMP(age, 0, 1E)) FROM people",
    "digits of a limit": f"SELECT COUNT(*) FROM people LIMIT {'9' * 5_000}",
    "keys that are computed": "SELECT COUNT(*) FROM people JOIN (VALUES (1)) v(x) ON age = x GROUP BY "
    + ", ".join(f"MONTH(born) * DAY(born) * 0 {'+ MONTH(born) ' * 40} + {i}" for i in range(100)),
    "sub-queries that are values": "SELECT COUNT(*) FROM people WHERE age > "
    + "(SELECT COUNT(*) FROM people WHERE age > " * 39
    + "3"
    + ")" * 39,
    "many sub-queries that are values": "SELECT "
    + " + ".join(f"(SELECT COUNT(*) FROM people WHERE age > {i})" for i in range(100))
    + " AS n",
    "selects that are put together": " UNION ALL ".join(["SELECT COUNT(*) FROM people"] * 1_200),
    "blanks in a hint": f"SELECT /*+ at_most({' ' * 60_000} x */ COUNT(*) FROM people",
    "words in a hint": f"SELECT /*+ {'at_most ' * 8_000} x */ COUNT(*) FROM people",
}

TRICKS = [
    "SELECT COUNT(*) FROM pe\u043eple",  # a Cyrillic о
    "SELECT COUNT(*) FROM people WHERE a\u200bge > 3",  # a space without width
    "SELECT COUNT(*) FROM people WHERE \u202eega > 3",  # from right to left
    "SELECT COUNT(*) FROM people WHERE \uff41ge > 3",  # a wide a
    "SELECT COUNT(*) FROM people WHERE age\u0301 > 3",  # an accent on its own
    'SELECT COUNT(*) FROM "people; DROP TABLE people"',
    'SELECT COUNT(*) FROM people WHERE "age""" > 3',
    "SELECT COUNT(*) FROM people WHERE age > 3 \x00",
    "SELECT COUNT(*) FROM people WHERE \ud800 > 3",
    "SELECT COUNT(*) FROM people WHERE city = '\ud800'",
    "SELECT COUNT(*) FROM [people]",
    "SELECT COUNT(*) FROM `people` WHERE `a`ge > 3",
    "SELECT COUNT(*) FROM people --\nWHERE nobody > 3",
    "SELECT COUNT(*) FROM people /* open",
    "SELECT COUNT(*) FROM people /* one /* in */ another */ WHERE nobody > 3",
    "SELECT COUNT(*) FROM people WHERE city = $$Bern$$",
    "SELECT COUNT(*) FROM people WHERE city = E'Bern'",
    "SELECT COUNT(*) FROM people WHERE age > 1e999",
    "SELECT COUNT(*) FROM people WHERE age = .",
    "",
    " ",
    ";",
    ";;",
    "-- nothing",
    "/*+ at_most(a, 1) */",
    "EXPLAIN",
    "EXPLAIN EXPLAIN SELECT COUNT(*) FROM people",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM people",
    "EXPLAIN DROP TABLE people",
    "(SELECT COUNT(*) FROM people)",
    "SELECT",
    "SELECT FROM people",
    "SELECT COUNT(*) INTO t FROM people",
    "SELECT COUNT(*) FROM people FOR UPDATE",
    "SELECT COUNT(*) FROM people WINDOW w AS (ORDER BY age)",
    "SELECT COUNT(*) FROM people AT (VERSION => 3)",
    "SELECT COUNT(*) FROM people LIMIT 10%",
    "SELECT COUNT(*) FROM people LIMIT -1",
    "SELECT COUNT(*) FROM people ORDER BY age",
    "SELECT COUNT(*) FROM people GROUP BY ()",
    "SELECT COUNT(*) FROM people p JOIN people q USING (nobody)",
    "SELECT COLUMNS('a') FROM people",
    "SELECT COUNT(*) FROM people WHERE (age, gender) = (1, 2)",
    "SELECT COUNT(*) FROM people WHERE (age, gender) IN ((1, 2))",
    "SELECT COUNT(*) FILTER (WHERE age) FROM people",
    "SELECT COUNT(*) FILTER (WHERE COUNT(*) > 3) FROM people",
    "SELECT SUM(SUM(age)) FROM people",
    "SELECT AVG(MEDIAN(age)) FROM people",
    # There is always a row of an aggregate, and none of LIMIT 0: both were taken for a plain EXISTS.
    "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT COUNT(*) FROM visits v WHERE v.pid = p.pid)",
    "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid LIMIT 0)",
    "SELECT COUNT(*) FROM people UNION",
    "SELECT COUNT(*) FROM people UNION ALL BY NAME SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM people UNION ALL DROP TABLE people",
    "SELECT COUNT(*) FROM people; DROP TABLE people; --",
    "SELECT COUNT(*) FROM people WHERE age > ()",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT)",
    "SELECT COUNT(*) FROM people WHERE age > (DELETE FROM people)",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT * FROM people)",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM people p, visits v WHERE pid = 3)",
    "SELECT (SELECT age FROM people LIMIT 1) AS a, COUNT(*) AS n FROM people",
    "SELECT (SELECT city FROM people GROUP BY city) AS a, COUNT(*) AS n FROM people",
]


@pytest.fixture(scope="module")
def town() -> dict[str, Any]:
    return protected(budget=1000, engine="reference")


@pytest.mark.parametrize("what", BIG)
def test_what_is_too_large_is_refused_soon(what: str, town: dict[str, Any]) -> None:
    before, start = town["people"].remaining, time.process_time()
    with pytest.raises(fp.ProgramError):
        fp.sql(BIG[what], epsilon=1, **town)
    assert time.process_time() - start < 5
    assert town["people"].remaining == before


@pytest.mark.parametrize("statement", TRICKS)
def test_tricks_are_refused(statement: str, town: dict[str, Any]) -> None:
    before = town["people"].remaining
    with pytest.raises(fp.BadSQL) as caught:
        fp.sql(statement, epsilon=1, **town)
    assert town["people"].remaining == before
    assert all(character.isprintable() or character == "\n" for character in str(caught.value))


@pytest.mark.parametrize("statement", [None, 3, b"SELECT 1", ["SELECT"]])
def test_what_is_no_text_is_refused(statement: Any, town: dict[str, Any]) -> None:
    with pytest.raises(fp.BadSQL, match="a statement is a text"):
        fp.sql(statement, epsilon=1, **town)


@pytest.mark.parametrize("epsilon", [None, 0, -1, "x", float("nan")])
def test_an_epsilon_that_is_none_is_refused(epsilon: Any, town: dict[str, Any]) -> None:
    with pytest.raises(fp.BadEpsilon):
        fp.sql("SELECT COUNT(*) FROM people", epsilon=epsilon, **town)


def test_a_place_is_a_line_and_a_column(town: dict[str, Any]) -> None:
    with pytest.raises(fp.BadSQL) as caught:
        fp.sql("SELECT COUNT(*)\nFROM people\nWHERE age > 3\n  AND aeg < 5", epsilon=1, **town)
    assert (caught.value.line, caught.value.column) == (4, 7)
    assert str(caught.value).endswith("    AND aeg < 5\n        ^")


def test_quoted_names_are_names(town: dict[str, Any]) -> None:
    assert fp.sql('SELECT COUNT("age") AS "how many?" FROM "people"', epsilon=1, **town)["how many?"].value


def test_a_statement_that_costs_too_much_is_refused_as_a_whole() -> None:
    town = protected(budget=1, engine="reference")
    both = "SELECT COUNT(*) AS n, COUNT(DISTINCT city) AS c FROM people GROUP BY ROLLUP (gender)"
    with pytest.raises(fp.BudgetExceeded):
        fp.sql(both, epsilon=2, **town)
    assert town["people"].remaining == 1
    fp.sql(both, epsilon=1, **town)
    assert town["people"].remaining == 0


def test_division_by_zero_of_answers_is_null(town: dict[str, Any]) -> None:
    row = fp.sql("SELECT COUNT(*) / 0 AS a, 1 / (COUNT(*) - COUNT(*)) AS b, COUNT(*) AS n FROM people",
                 epsilon=1, **town)  # fmt: skip
    assert row["a"].value is None
    assert row["b"].value is None
    none = fp.sql("SELECT COUNT(*) / (SELECT COUNT(*) * 0 FROM people) AS a FROM people WHERE age > "
                  "(SELECT COUNT(*) / (COUNT(*) - COUNT(*)) FROM people)", epsilon=1, **town)  # fmt: skip
    assert none.value is None


def test_no_error_depends_on_data() -> None:
    """The same statements on other data of the same schema: the same errors, to the letter."""
    from sql import small_town

    chance = Random(5)
    words = [
        "age",
        "city",
        "(",
        ")",
        "'Bern'",
        "3",
        "AND",
        "SUM(",
        "CLAMP(",
        ",",
        "IN",
        "LIKE",
        "GROUP BY",
        "*",
    ]
    broken = [
        f"SELECT COUNT(*) FROM people WHERE {' '.join(chance.choices(words, k=chance.randint(1, 9)))}"
        for _ in range(200)
    ]

    def said(seed: int) -> list[str]:
        rows = small_town.rows(seed)
        tables = fp.protect(rows, unit="pid", rows_per_unit=4, budget=10**6, schema=small_town.SCHEMAS,
                            columns=small_town.COLUMNS, engine="reference")  # fmt: skip
        found = []
        for statement in broken:
            try:
                tables.sql(statement, epsilon=1)
            except fp.ProgramError as error:
                found.append(str(error))
        return found

    assert said(1) == said(2)
    assert len(said(1)) > 150


WORDS = """SELECT COUNT(*) FROM people WHERE age > 3 AND city = 'Bern' GROUP BY gender , . ; -- /* */ " ` [ ]
{ } CASE WHEN THEN END NULL NOT IN BETWEEN LIKE CAST AS OVER JOIN ON USING UNION SUM( ) :: || 1e5 ? $1 @x #"""


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS.split()), max_size=25).map(" ".join))
def test_any_words_are_a_statement_or_a_typed_error(statement: str) -> None:
    with suppress(fp.BadSQL):
        parsing.parse(statement)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), place=st.integers(0, 500), put=st.text(max_size=3))
def test_a_statement_with_something_in_it_is_answered_or_refused(
    town: dict[str, Any], seed: int, place: int, put: str
) -> None:
    text = Generator(seed).statement().text
    with suppress(fp.ProgramError):
        fp.sql(f"EXPLAIN {text[:place]}{put}{text[place:]}", epsilon=1, **town)
