"""The edge between a program and fpinq: a program's mistake is shown where the program made it.

Python shows every call between the program's line and the error. Of a mistake
that the message explains, fpinq's own calls explain nothing: they are left out.
What is not the program's mistake keeps all of them, and under `python -X dev`
everything does.
"""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import PurePath
from types import FunctionType, TracebackType
from typing import ParamSpec, TypeVar

from fpinq.model.errors import BudgetExceeded, ProgramError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

_OURS = str(PurePath(__file__).parents[1])


def edge(function: Callable[P, R]) -> Callable[P, R]:
    """The function, but mistakes come out of it without the calls inside."""

    @wraps(function)
    def called(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except (ProgramError, BudgetExceeded) as error:
            if sys.flags.dev_mode:
                raise
            cause = error.__cause__  # what a lambda raised
            if cause is not None:
                cause.__traceback__ = _of_the_program(cause.__traceback__)
            raise error.with_traceback(_of_the_program(error.__traceback__)) from cause

    return called


def edges(of: type[C]) -> type[C]:
    """A class, all of whose public methods are at the edge."""
    for name, value in list(vars(of).items()):
        if isinstance(value, FunctionType) and not name.startswith("_"):
            setattr(of, name, edge(value))
    return of


def _of_the_program(traceback: TracebackType | None) -> TracebackType | None:
    """The calls that are not fpinq's own: a lambda's, say."""
    if traceback is None:
        return None
    inner = _of_the_program(traceback.tb_next)
    if traceback.tb_frame.f_code.co_filename.startswith(_OURS):
        return inner
    return TracebackType(inner, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
