"""Any plan on any data: reference and PostgreSQL agree, row bag by row bag and integer by integer.

FPINQ_POSTGRES_EXAMPLES=5000 makes it thorough.
"""

import os
from typing import Any

from hypothesis import assume, given

from engines import test_conformance
from engines.generators import Example, expression_examples, plan_examples
from engines.test_conformance import compare, load, thorough

EXAMPLES = int(os.environ.get("FPINQ_POSTGRES_EXAMPLES", "400"))


def without_nul(case: object) -> bool:
    """Whether a case has no NUL in any text; PostgreSQL has no such texts."""
    return "\\x00" not in repr(case)


@thorough(EXAMPLES)
@given(case=expression_examples())
def test_an_expression_has_the_reference_value(engine: Any, case: Any) -> None:
    assume(without_nul(case))
    on_every_row = test_conformance.test_an_expression_has_the_reference_value_on_every_row
    on_every_row.hypothesis.inner_test(engine, case)  # type: ignore[attr-defined]


@thorough(EXAMPLES)
@given(example=plan_examples())
def test_a_plan_has_the_reference_rows_and_statistics(engine: Any, example: Example) -> None:
    assume(without_nul(example))
    compare(engine, example, load(engine, example))
