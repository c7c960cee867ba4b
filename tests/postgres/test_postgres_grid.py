"""Every operator on every nasty value, in a database that is set up to be misunderstood."""

from typing import Any

from engines.nasty import VALUES
from engines.test_grid import *  # noqa: F403
from fpinq.model.expressions import Apply, Column, Literal, Type
from fpinq.model.plans import RootTable, Term
from fpinq.model.transformations import Explode


def test_pieces_of_a_string_are_the_reference_pieces(loaded: Any) -> None:
    strings = [*VALUES[Type.STRING], "a,b,", "||", "\\,\\"]
    loaded.add_root("pieces", [{"s": s} for s in strings], schema={"s": Type.STRING})
    for separator in ["a", ",", ",,", "é", " ", "\U0010ffff", "'", "\\", "|", "%", "."]:
        for at_most in (1, 2, 2**40):
            value = Apply("split", (Column("s"), Literal.of(separator)))
            found = loaded.rows(Term(Explode(value, "piece", at_most), (RootTable("pieces"),)))
            expected = [(p,) for s in strings if s is not None for p in str(s).split(separator)[:at_most]]
            assert sorted(found.rows) == sorted(expected), separator
