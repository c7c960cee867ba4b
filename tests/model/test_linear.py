"""A step takes time in proportion to what was written of its action: it is taken while others wait.

Lines that are run are counted, which is the same whatever else a machine does.
"""

import sys
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model.actions import Action, AskScale, Assign, Partition, Query
from fpinq.model.clamps import Clamp
from fpinq.model.environments import Numbered
from fpinq.model.errors import ProgramError
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.keys import Keys
from fpinq.model.queries import Choice, Count, Ranks, Several, Sum, Tally
from fpinq.model.semantics import Configuration, initial, step
from fpinq.model.told import Told
from fpinq.model.transformations import (
    Aggregate,
    ConcatAll,
    First,
    GroupBy,
    GroupJoin,
    Join,
    LimitPerKey,
    LiteralTable,
    Partitioning,
    Select,
    SelectMany,
    UniqueBy,
    Where,
)
from model.collisions import colliding, times_slower

A = Column("a")
SCHEMA = Schema.of({"a": Type.INT64, "b": Type.INT64})
BEGIN = initial({"t": (SCHEMA, Fraction(1)), "u": (SCHEMA, Fraction(1))})


def negated(times: int, value: Expression) -> Expression:
    for _ in range(times):
        value = Apply("negate", (value,))
    return value


def wide(n: int) -> Configuration:
    """A table of so many columns."""
    columns = tuple((f"x{i}", A) for i in range(n))
    return step(BEGIN, Assign("w", Select(columns), ("t",))).configuration


def literals(n: int) -> tuple[Literal, ...]:
    return tuple(Literal.of(i) for i in range(n))


def among(n: int) -> Expression:
    return Apply("to_int64", (Apply("is_in", (A, *literals(n))),))


def evens(n: int) -> tuple[int, ...]:
    return tuple(range(0, 2 * n, 2))


def told(n: int) -> tuple[tuple[str, Aggregate], ...]:
    return tuple((f"m{i}", Aggregate("min", negated(9, Literal.of(-5)))) for i in range(n))


def last(n: int) -> Expression:
    return Column(f"x{n - 1}")


# Each of about n parts, of a table that was there or that is n wide.
ACTIONS: dict[str, tuple[Callable[[int], Action], bool]] = {
    "select": (lambda n: Assign("r", Select(tuple((f"y{i}", A) for i in range(n))), ("t",)), False),
    "select_many": (lambda n: Assign("r", SelectMany(((("y", A),),) * n, n), ("t",)), False),
    "where": (lambda n: Assign("r", Where(Apply("is_in", (A, *literals(n)))), ("t",)), False),
    "literal_table": (lambda n: Assign("r", LiteralTable(SCHEMA, ((1, 2),) * n), ()), False),
    "group_by": (
        lambda n: Assign(
            "r", GroupBy(tuple((f"k{i}", key) for i, key in enumerate(literals(n))), told(n)), ("t",)
        ),
        False,
    ),
    "join": (
        lambda n: Assign(
            "r",
            Join(
                literals(n), literals(n), First(1), First(1),
                tuple((f"y{i}", negated(9, Column("l.a"))) for i in range(n)),
            ),
            ("t", "u"),
        ),
        False,
    ),
    "group_join": (
        lambda n: Assign(
            "r",
            GroupJoin(tuple(f"k{i}" for i in range(n)), literals(n), literals(n), told(n), told(0)),
            ("t", "u"),
        ),
        False,
    ),
    "limit_per_key": (lambda n: Assign("r", LimitPerKey(2, (negated(3, A),) * n), ("t",)), False),
    "partition": (
        lambda n: Partition(tuple(f"p{i}" for i in range(n)), "t", Partitioning(A, evens(n))),
        False,
    ),
    "queries of parts": (
        lambda n: Query(
            "t", Fraction(1), tuple(Sum(Clamp(A, 0, i + 1)) for i in range(n)), Partitioning(A, range(n))
        ),
        False,
    ),
    "choice": (
        lambda n: Query("t", Fraction(1), (Choice(tuple(Clamp(A, 0, i + 1) for i in range(n))),)),
        False,
    ),
    "ranks": (
        lambda n: Query(
            "t", Fraction(1), (Ranks(Clamp(among(n), 0, 9), (Fraction(1, 2),) * n),)
        ),
        False,
    ),
    "several": (
        lambda n: Query("t", Fraction(1), (Several((Sum(Clamp(A, 0, 9)),) * (n // 3), (1,) * (n // 3)),)),
        False,
    ),
    "select of wide": (
        lambda n: Assign("r", Select(tuple((f"y{i}", last(n)) for i in range(n))), ("w",)), True
    ),
    "select_many of wide": (lambda n: Assign("r", SelectMany(((("y", last(n)),),) * n, n), ("w",)), True),
    "limit_per_key of wide": (
        lambda n: Assign("r", LimitPerKey(2, tuple(Column(f"x{i}") for i in range(n))), ("w",)), True
    ),
    "unique_by of wide": (
        lambda n: Assign("r", UniqueBy(tuple(Column(f"x{i}") for i in range(n))), ("w",)), True
    ),
    "concat_all of wide": (lambda n: Assign("r", ConcatAll(n), ("w",) * n), True),
    "count of wide": (lambda n: Query("w", Fraction(1), (Count(),)), True),
}  # fmt: skip


def looked_for(n: int, seed: int) -> str:
    """A long name: any two are alike all over, in no order."""
    return "".join(Random(seed).choices([chr(0x100 + i) for i in range(110)], k=10 * n))


def named(n: int) -> Configuration:
    """A table of one column with a long name."""
    return step(BEGIN, Assign("w", Select(((looked_for(n, 1), A),)), ("t",))).configuration


def held(n: int) -> Configuration:
    """So many tables."""
    return step(BEGIN, Partition(Numbered("w" * 40, n), "t", Partitioning(A, range(n)))).configuration


def differing(n: int) -> tuple[Literal, ...]:
    return (*literals(n), Literal.of("x"))


# What is refused, for what is at its end if it has one; and where.
REFUSED: dict[str, tuple[Callable[[int], Action], Callable[[int], Configuration]]] = {
    "a long column": (lambda n: Assign("r", Where(Column(looked_for(n, 2))), ("w",)), named),
    "a column beside many": (lambda n: Assign("r", Where(Column("x")), ("w",)), wide),
    "a column behind many": (
        lambda n: Assign("r", Select((*((f"y{i}", A) for i in range(n)), ("y", Column("x")))), ("w",)), wide
    ),
    "a long table": (lambda n: AskScale(looked_for(n, 2)), held),
    "a table beside many": (lambda n: AskScale("w" * 40 + ".x"), held),
    "a long operator": (
        lambda n: Assign("r", Where(Apply(looked_for(n, 2), (A,))), ("t",)), lambda n: BEGIN
    ),
    "a constant of another type": (
        lambda n: Assign("r", Where(Apply("is_in", (A, *differing(n)))), ("t",)), lambda n: BEGIN
    ),
    "columns that differ": (lambda n: Assign("r", ConcatAll(n), (*["w"] * (n - 1), "t")), wide),
    "the same column twice": (lambda n: Assign("r", Select((("y", A),) * n), ("t",)), lambda n: BEGIN),
    "the same key twice": (
        lambda n: Query("t", Fraction(1), (Count(),), Partitioning(A, (*evens(n), 0))), lambda n: BEGIN
    ),
    "the same name twice": (lambda n: Partition(("p",) * n, "t", Partitioning(A, evens(n))), lambda n: BEGIN),
    "the same value twice": (
        lambda n: Query("t", Fraction(1), (Tally(A, (*literals(n), Literal.of(0))),)), lambda n: BEGIN
    ),
    "too many queries": (
        lambda n: Query("t", Fraction(1), (Count(),) * n, Partitioning(A, evens(n - 1))), lambda n: BEGIN
    ),
    "a bound too wide": (
        lambda n: Query(
            "t",
            Fraction(1),
            (*[Sum(Clamp(A, 0, 9))] * n, Sum(Clamp(A, 0, 2**63))),
            Partitioning(A, range(n + 1)),
        ),
        lambda n: BEGIN,
    ),
}  # fmt: skip


def lines(work: Callable[[], object]) -> int:
    """How many lines are run."""
    counted = 0

    def count(_frame: Any, event: str, _arg: object) -> Any:
        nonlocal counted
        counted += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return counted


@pytest.mark.parametrize("name", ACTIONS)
def test_twice_the_action_is_twice_the_work(name: str) -> None:
    """A group by compared every part of its aggregates with every key; a column was looked for among all."""
    make, is_wide = ACTIONS[name]

    def taken(n: int) -> int:
        begin = wide(n) if is_wide else BEGIN
        action = make(n)
        step(begin, action)  # what is remembered of tables and classes is
        return lines(lambda: step(begin, make(n)))

    few, many = taken(60), taken(240)
    assert many <= 4.4 * few + 200


@pytest.mark.parametrize("name", REFUSED)
def test_twice_what_is_refused_is_twice_the_work(name: str) -> None:
    """A name that is not there was compared with all that are, letter by letter: 1 MB kept all others waiting
    for half an hour, for nothing.
    """
    make, begin_with = REFUSED[name]

    def refused(n: int) -> int:
        begin, action = begin_with(n), make(n)

        def refuse() -> None:
            with pytest.raises(ProgramError):
                step(begin, action)

        refuse()
        return lines(refuse)

    few, many = refused(60), refused(240)
    assert many <= 4.4 * few + 200


def test_keys_of_one_hash_are_told_apart_as_fast_as_others() -> None:
    """Each was compared with all before it: 10,000 of them kept a whole server still for three seconds."""
    keys = colliding(100)
    assert len({hash(key) for key in keys}) == 1

    def partition(keys: Keys) -> None:
        step(BEGIN, Partition(Numbered("p", len(keys)), "t", Partitioning((A, Column("b")), keys)))

    assert times_slower(partition) < 8


# ── what keys tell ───────────────────────────────────────────────────────────────────

LEAVES = st.sampled_from(
    [Column("l.a"), Column("r.a"), Column("l.b"), Literal.of(1), Literal.of(1.0), Literal.of(True)]
)


def applied(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        inner.map(lambda a: Apply("negate", (a,))),
        st.tuples(inner, inner).map(lambda each: Apply("add", each)),
    )


EXPRESSIONS = st.recursive(LEAVES, applied, max_leaves=6)


def plainly(value: Expression, keys: list[Expression], side: str) -> bool:
    """The definition: a key, or made of what is told, or nothing of the side."""
    if value in keys:
        return True
    if isinstance(value, Apply):
        return all(plainly(argument, keys, side) for argument in value.arguments)
    return not (isinstance(value, Column) and value.name.startswith(side))


@given(
    st.lists(EXPRESSIONS, max_size=4), st.lists(EXPRESSIONS, max_size=4), st.sampled_from(["", "l.", "r."])
)
def test_what_keys_tell_is_what_the_definition_says(
    keys: list[Expression], values: list[Expression], side: str
) -> None:
    told_by = Told(keys, side)
    for value in [*values, *keys]:
        assert told_by.tell(value) == plainly(value, keys, side)
