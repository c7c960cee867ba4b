"""Keys, of one column and of several: what the parts of a table and its answers are called."""

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY, SURE
from fpinq import _
from fpinq.client.keys import MAX_KEYS
from fpinq.model.keys import Product

CITIES = ["Ulm", "Bonn", "Kiel", None]
EVERY = list(product(CITIES, [0, 1]))
# A server's configuration has no null.
NAMED = CITIES[:3]
BOTH = Counter((row["city"], row["gender"]) for row in PEOPLE)


@pytest.fixture
def known(engine: Any) -> fp.Table:
    columns = {"city": fp.Column(keys=NAMED), "gender": fp.Column(keys=[0, 1])}
    table: fp.Table = fp.protect(PEOPLE, budget=PLENTY, engine=engine, name="people", columns=columns)
    return table


def counts(answers: fp.Answers) -> dict[Any, int]:
    return {key: answer.value for key, answer in answers.items()}


def test_answers_know_what_their_keys_are_of(people: fp.Table) -> None:
    assert people.query(SURE, fp.count(), by="gender", keys=[0, 1]).key_columns == ("gender",)
    assert people.query(SURE, fp.count(), by=_.age // 10, keys=range(10)).key_columns == ("key",)
    assert people.noisy_histogram(SURE, "gender", keys=[0, 1]).key_columns == ("gender",)


@pytest.mark.parametrize(
    ("by", "columns"),
    [
        (["city", "gender"], ("city", "gender")),
        (("city", "gender"), ("city", "gender")),
        (lambda x: {"city": x.city, "gender": x.gender}, ("city", "gender")),
        (lambda x: {"where": x.city, "who": x.gender}, ("where", "who")),
        (lambda x: [x.city, x.gender], ("city", "gender")),
        (lambda x: (x.city, x.gender), ("city", "gender")),
        ({"city": _.city, "who": lambda x: x.gender}, ("city", "who")),
        ([_.city, _.gender + 0], ("city", "key2")),
    ],
    ids=lambda by: type(by).__name__,
)
def test_a_key_of_several_columns_is_a_list_of_names_or_a_dict_of_expressions(
    people: fp.Table, by: Any, columns: tuple[str, ...]
) -> None:
    found = people.query(SURE, fp.count(), by=by, keys=EVERY)
    assert found.key_columns == columns
    assert counts(found) == {key: BOTH[key] for key in EVERY}


def test_keys_that_are_known_of_every_column_are_combined(known: fp.Table) -> None:
    found = known.query(SURE, fp.count(), by=["city", "gender"])
    assert list(found) == EVERY[:6]
    assert counts(found) == {key: BOTH[key] for key in EVERY[:6]}
    # A condition is true or false, whatever the data is.
    old = known.query(SURE, fp.count(), by=lambda x: {"city": x.city, "old": x.age > 25})
    assert list(old) == list(product(NAMED, [False, True]))
    assert counts(known.query(SURE, fp.count(), by=_.age > 25)) == {False: 2, True: 4}


KEYS: dict[str, Any] = {
    "tuples": [("Ulm", 1), (None, 1), ("nowhere", 0)],
    "lists": [["Ulm", 1], [None, 1], ["nowhere", 0]],
    "dicts": [
        {"gender": 1, "city": "Ulm"},
        {"city": None, "gender": 1},
        {"city": "nowhere", "gender": 0},
    ],
    "a generator": (key for key in [("Ulm", 1), (None, 1), ("nowhere", 0)]),
    "a public table": fp.public(
        [
            {"gender": 1, "n": 1, "city": "Ulm"},
            {"gender": 1, "n": 2, "city": None},
            {"gender": 1, "n": 3, "city": "Ulm"},
            {"gender": 0, "n": 4, "city": "nowhere"},
        ]
    ),
    "a public table that was made of another": fp.public(
        [{"city": "Ulm", "gender": 0}, {"city": None, "gender": 0}, {"city": "nowhere", "gender": -1}]
    ).with_columns(lambda x: {"gender": x.gender + 1}),
}


@pytest.mark.parametrize("given", KEYS)
def test_keys_may_be_listed_in_several_ways(engine: Any, given: str) -> None:
    people = fp.protect(PEOPLE, budget=PLENTY, engine=engine)
    keys = [*KEYS[given]] if given == "a generator" else KEYS[given]
    if given == "a generator":
        KEYS[given], keys = keys, iter(keys)
    found = people.query(SURE, fp.count(), by=["city", "gender"], keys=keys)
    assert counts(found) == {("Ulm", 1): 1, (None, 1): 1, ("nowhere", 0): 0}


def test_keys_of_one_column_may_be_a_public_table_or_dicts(people: fp.Table) -> None:
    table = fp.public([{"city": "Ulm", "zip": 1}, {"city": "Bonn", "zip": 2}, {"city": "Ulm", "zip": 3}])
    expected = {"Ulm": 2, "Bonn": 2}
    assert counts(people.query(SURE, fp.count(), by="city", keys=table)) == expected
    assert (
        counts(people.query(SURE, fp.count(), by=["city"], keys=[{"city": c} for c in expected])) == expected
    )
    assert people.query(SURE, fp.count(), by=["city"], keys=["Ulm"]).key_columns == ("city",)


def test_some_columns_may_be_given_keys_where_others_have_them(known: fp.Table) -> None:
    found = known.query(SURE, fp.count(), by=["city", "gender"], keys={"gender": [1]})
    assert counts(found) == {(city, 1): BOTH[city, 1] for city in NAMED}
    ages = known.query(SURE, fp.count(), by=["gender", "age"], keys={"age": range(10, 61)})
    assert len(ages) == 2 * 51
    assert ages[1, 40].value == 1


def test_parts_are_reached_by_a_tuple_or_a_dict(known: fp.Table) -> None:
    parts = known.partition(["city", "gender"])
    assert parts.key_columns == ("city", "gender")
    assert list(parts) == EVERY[:6]
    assert parts["Ulm", 1].noisy_count(SURE).value == 1
    assert parts[{"gender": 0, "city": "Kiel"}].noisy_count(SURE).value == 1
    assert ("Ulm", 1) in parts
    assert {"city": "Ulm", "gender": 1} in parts
    assert {"city": "Ulm"} not in parts
    assert ("Ulm", 2) not in parts
    answers = known.query(SURE, fp.count(), by=["city", "gender"])
    assert answers[{"gender": 1, "city": "Bonn"}].value == answers["Bonn", 1].value == 1
    assert {"city": "Ulm", "gender": 1} in answers
    assert {"city": "Ulm", "sex": 1} not in answers
    for unknown in (("Ulm", 2), {"city": "Ulm", "gender": 2}, "Ulm"):
        with pytest.raises(KeyError, match="no part has this key"):
            _ = parts[unknown]
    with pytest.raises(KeyError, match="not a column of the key"):
        _ = parts[{"city": "Ulm", "gnder": 1}]
    assert "part city = 'Ulm', gender = 1" in str(parts["Ulm", 1].explain())
    named = known.partition(lambda x: {"old": x.age > 25, "city": x.city})
    assert "part old = True, city = 'Ulm'" in str(named[True, "Ulm"].explain())
    assert str(known.partition(lambda x: [x.city, x.age > 25])).startswith("<6 parts by city, age > 25: ")


def test_parts_of_several_keys_cost_what_the_most_asked_of_them_does(engine: Any) -> None:
    table = fp.protect(PEOPLE, budget=1, engine=engine)
    parts = table.partition(["city", "gender"], keys=EVERY)
    for part in parts.values():
        part.noisy_count(Fraction(1, 4))
    assert table.remaining == Fraction(3, 4)
    answers = table.query(Fraction(1, 4), fp.count(), by=["city", "gender"], keys=EVERY)
    assert (answers.charged, table.remaining) == (Fraction(1, 4), Fraction(1, 2))


def test_each_part_of_several_keys_may_be_asked_its_own(people: fp.Table) -> None:
    asked = {("Ulm", 0): fp.count(), ("Bonn", 1): fp.average("age", bounds=(0, 99))}
    found = people.query(SURE, asked, by=["city", "gender"])
    assert found["Ulm", 0].value == 1
    assert found["Bonn", 1].value == pytest.approx(40, abs=1e-6)
    distinct = people.query(SURE, fp.distinct_count("age"), by=["city", "gender"], keys=EVERY)
    assert counts(distinct) == {key: BOTH[key] for key in EVERY}


def test_a_histogram_of_several_columns_counts_their_keys(known: fp.Table) -> None:
    assert counts(known.noisy_histogram(SURE, ["city", "gender"])) == {key: BOTH[key] for key in EVERY[:6]}
    some = known.noisy_histogram(SURE, ["city", "gender"], keys=[("Ulm", 0)])
    assert counts(some) == {("Ulm", 0): 1}
    with pytest.raises(fp.BadQuery, match="several columns counts keys"):
        known.noisy_histogram(SURE, ["city", "gender"], bins=3)


def test_a_product_of_keys_is_not_written_out(known: fp.Table) -> None:
    answers = known.query(SURE, fp.count(), by=["gender", "age"], keys={"age": range(100)})
    assert type(answers._answers._keys) is Product  # type: ignore[union-attr]


BAD: list[tuple[Any, Any, str]] = [
    (["city", "age"], None, "needs keys=[…] of age"),
    (["id", "age"], None, "needs keys=[…] of id, age"),
    (["city", "gender"], [], "needs keys=[…] of city, gender"),
    (["city", "gender"], [("Ulm",)], "has 2 values, and one of the keys has 1"),
    (["city", "gender"], [("Ulm", 0), ("Ulm", 0, 0)], "has 2 values, and one of the keys has 3"),
    (["city", "gender"], ["Ulm"], "is a tuple or a dict, not str"),
    (["city", "gender"], "Ulm", "must be a list, such as keys=[('a', 0), ('b', 1)]"),
    (["city", "gender"], [("Ulm", "0")], "gender is int64: all keys must be too, not str"),
    (["city", "gender"], {"gender": ["0"]}, "gender is int64: all keys must be too, not str"),
    (["city", "gender"], [("Ulm", 0), ("Ulm", 0)], "must be different"),
    (["city", "gender"], {"gender": [0, 0]}, "must be different"),
    (["city", "gender"], {"gender": 0}, "must be a list"),
    (["city", "gender"], {"sex": [0]}, "'sex' is not a column of the key, which has city, gender"),
    (["city", "gender"], [{"city": "Ulm", "Gender": 0}], "did you mean 'gender'?"),
    (["city", "gender"], [{"city": "Ulm"}], "this one has no gender"),
    (["city", "gender"], fp.public([{"city": "Ulm"}]), "the table of keys has no column 'gender'"),
    (["city", "city"], None, "columns that differ"),
    ([], None, "one or more columns"),
    (lambda x: {}, None, "columns with names"),
    (lambda x: {1: x.city, "b": x.gender}, None, "columns with names"),
    (lambda x: x, None, "say which column"),
    (["city", "nowhere"], None, "nowhere"),
    (["city", "id"], {"id": range(MAX_KEYS)}, "city × id has 3 × 1,000,000 = 3,000,000 keys"),
    (["gender", "id"], {"id": range(10**30)}, f"2 × {10**30:,} = {2 * 10**30:,} keys"),
    (["gender", "id"], {"id": [*range(MAX_KEYS // 2 + 1)]}, "2 × 500,001 = 1,000,002 keys"),
]


@pytest.mark.parametrize(("by", "keys", "says"), BAD, ids=map(str, range(len(BAD))))
def test_keys_that_make_no_sense_say_why_and_cost_nothing(by: Any, keys: Any, says: str) -> None:
    columns = {"city": fp.Column(keys=NAMED), "gender": fp.Column(keys=[0, 1])}
    table = fp.protect(PEOPLE, budget=1, columns=columns, engine="reference")
    for ask in (
        lambda: table.query(1, fp.count(), by=by, keys=keys),
        lambda: table.partition(by, keys=keys),
    ):
        with pytest.raises(fp.ProgramError) as error:
            ask()
        assert says in str(error.value)
    assert table.remaining == 1


def test_keys_may_not_be_those_of_a_protected_table(people: fp.Table) -> None:
    for private in (people, people.partition("gender", keys=[0, 1])[0]):
        with pytest.raises(fp.BadPartition, match="may not depend on data"):
            people.query(SURE, fp.count(), by=["city", "gender"], keys=private)


def test_keys_of_one_column_may_be_given_by_column_too(people: fp.Table) -> None:
    assert list(people.partition("gender", keys={"gender": [0, 1]})) == [0, 1]
    assert list(people.query(1, fp.count(), by="gender", keys={"gender": range(2)})) == [0, 1]
    assert repr(people.partition("gender", keys=[1])) == "<1 part by gender: 1>"
