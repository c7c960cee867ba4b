"""Keys of several columns: tests/engines/test_keys.py, of each kind one."""

from typing import Any

import pytest

from engines import test_keys


@pytest.fixture(scope="module")
def told(spark: Any) -> Any:
    rows = [dict(zip(test_keys.SCHEMA.names(), row, strict=True)) for row in test_keys.ROWS]
    spark.add_root("keyed", rows, dict(test_keys.SCHEMA.columns))
    return spark


@pytest.mark.parametrize("name", ["many texts and a range", "many tuples with null", "many times"])
def test_parts_have_the_integers_of_their_records(told: Any, name: str) -> None:
    test_keys.test_every_part_of_several_keys_has_the_integers_of_its_records(told, name)


def test_parts_may_ask_different_things(told: Any) -> None:
    test_keys.test_parts_of_several_keys_may_ask_different_things(told, "days and texts")


def test_a_part_is_a_table(told: Any) -> None:
    test_keys.test_a_part_of_several_keys_is_a_table(told, "tuples")
