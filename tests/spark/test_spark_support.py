"""Keys that nobody listed: tests/engines/test_support.py, of each kind one."""

from typing import Any

import pytest

from engines import test_support
from fpinq.model.transformations import Partitioning


@pytest.fixture(scope="module")
def told(spark: Any) -> Any:
    rows = [dict(zip(test_support.SCHEMA.names(), row, strict=True)) for row in test_support.ROWS]
    spark.add_root("supported", rows, dict(test_support.SCHEMA.columns))
    return spark


@pytest.mark.parametrize("name", ["integers", "texts", "dates", "products"])
def test_keys_that_are_found_have_the_counts_of_their_records(told: Any, name: str) -> None:
    test_support.test_keys_that_are_found_have_the_counts_of_their_records(told, name)


def test_keys_are_found_in_every_part(told: Any) -> None:
    test_support.test_keys_are_found_in_every_part(told, Partitioning(test_support.B, (True, False, None)))
