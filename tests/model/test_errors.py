"""The error tree."""

import inspect
from fractions import Fraction

import pytest

from fpinq.model import errors


def test_only_a_kernel_violation_is_outside_the_tree() -> None:
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)]
    assert [c for c in classes if not issubclass(c, errors.FpinqError)] == [errors.KernelViolation]


def test_errors_carry_fields() -> None:
    exceeded = errors.BudgetExceeded("⊥", Fraction(1), Fraction(0))
    assert (exceeded.price, exceeded.remaining) == (1, 0)
    assert errors.WrongArity("concat", 2, 1).takes == 2
    assert errors.DataChanged("people").root == "people"
    assert errors.EngineError("1f").reference == "1f"
    assert errors.UnknownTable("peple", ["people"]).table == "peple"
    wrong = errors.BadSQL("no such table", 2, 7, "FROM peple\n     ^")
    assert (wrong.line, wrong.column) == (2, 7)
    assert str(wrong) == "line 2, column 7: no such table\nFROM peple\n     ^"
    assert str(errors.BadSQL("nothing was asked")) == "line 1, column 1: nothing was asked"
    with pytest.raises(errors.ProgramError):
        raise errors.UnknownColumn("a", [])
