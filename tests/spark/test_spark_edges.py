"""Queries at the edges of their bounds, on Spark: one of each kind of edge, since every one is a job."""

from typing import Any

import pytest

from engines.test_edges import check, queries
from fpinq.model.expressions import Type


@pytest.mark.parametrize("type_", [Type.INT64, Type.FLOAT64])
def test_one_record_changes_no_more_than_is_charged_for_at_any_bounds(spark: Any, type_: Type) -> None:
    check(spark, type_, queries(type_)[:: 13 if type_ is Type.INT64 else 17])
