"""What is kept of sessions is weighed by what it holds, and what it weighs is bounded."""

import gc
import tracemalloc
from collections.abc import Callable
from fractions import Fraction

import pytest

from fpinq.ledger import Ledger, open_ledger, wire
from fpinq.ledger.errors import SessionTooLarge
from fpinq.ledger.kept import Kept, Program
from fpinq.model.actions import Assign, Partition, Query
from fpinq.model.environments import Numbered
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.queries import Count
from fpinq.model.semantics import Rule
from fpinq.model.sessions import opened
from fpinq.model.transformations import Concat, LiteralTable, Partitioning, Where

SHAPE = Schema((("age", Type.INT64), ("name", Type.STRING)))


def people(ledger: Ledger) -> Ledger:
    ledger.register("people", SHAPE, 10, contents=["people"])
    return ledger


def deep(depth: int) -> Expression:
    found: Expression = Column("age")
    for number in range(depth):
        found = Apply("add", (found, Literal.of(10**6 + number)))
    return Apply("greater", (found, Literal.of(3)))


def rows(type_: Type, *values: object) -> LiteralTable:
    return LiteralTable(Schema((("c", type_),)), tuple((value,) for value in values))


TABLES: dict[str, tuple[int, Callable[[int], Where | LiteralTable]]] = {
    "a filter": (200, lambda i: Where(Apply("greater", (Column("age"), Literal.of(i))))),
    "a deep one": (30, lambda i: Where(deep(50))),
    "integers": (8, lambda i: rows(Type.INT64, *range(10**6, 10**6 + 1000))),
    "short texts": (8, lambda i: rows(Type.STRING, *(f"{n:04}" for n in range(1000)))),
    "long texts": (8, lambda i: rows(Type.STRING, *(f"{n:0100}" for n in range(1000)))),
    "nulls": (8, lambda i: rows(Type.STRING, *[None] * 1000)),
}


WIDE = Where(Apply("is_in", (Column("age"), *(Literal.of(10**6 + i) for i in range(40)))))


def bind(ledger: Ledger, session: str, variable: str, made: Where | LiteralTable) -> None:
    """As a server does: what is held was read from a text."""
    arguments = () if isinstance(made, LiteralTable) else ("people",)
    ledger.act(session, wire.decode_action(wire.encode(Assign(variable, made, arguments))))


@pytest.mark.parametrize("kind", TABLES)
def test_a_session_weighs_at_least_what_it_takes_and_not_ten_times_as_much(kind: str) -> None:
    number, make = TABLES[kind]
    ledger = people(open_ledger(":memory:"))
    bind(ledger, "s", "first", make(0))
    before = ledger._memory.sessions._bytes
    gc.collect()
    tracemalloc.start()
    try:
        for i in range(number):
            bind(ledger, "s", f"t{i}", make(i))
        gc.collect()
        took = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert took <= ledger._memory.sessions._bytes - before <= 10 * took
    ledger.close()


def test_a_table_weighs_what_it_is_made_of_though_its_name_was_used_again() -> None:
    """Only the last action was weighed: a megabyte beneath it was not."""
    ledger = people(open_ledger(":memory:"))
    bind(ledger, "s", "t", Where(deep(10)))
    before = ledger._memory.sessions._bytes
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(60):
            ledger.act("s", wire.decode_action(wire.encode(Assign("t", WIDE, ("t",)))))
        gc.collect()
        took = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert took <= ledger._memory.sessions._bytes - before <= 10 * took
    ledger.act("s", Assign("t", Where(deep(3)), ("people",)))
    assert ledger._memory.sessions._bytes < before + 1_000
    ledger.close()


def test_what_is_made_of_a_part_weighs_what_all_parts_do() -> None:
    ledger = people(open_ledger(":memory:"))
    keys = Partitioning(Column("age"), tuple(range(500)))
    ledger.act("s", Partition(Numbered("p", 500), "people", keys))
    ((before, *_),) = ledger._memory.sessions._programs.values()
    ledger.act("s", Assign("t", Where(deep(1)), ("p.7",)))
    ((after, *_),) = ledger._memory.sessions._programs.values()
    assert after.lengths["t"] > before.held > 500
    assert before.without([Numbered("p", 500)]).held == 0
    ledger.close()


def test_numbered_names_that_stay_are_weighed_though_fewer_were_bound_again() -> None:
    """A session was as large as its memory is, and weighed nothing."""
    ledger = people(Ledger(open_ledger(":memory:")._store, session_bytes=100_000))
    one, two = (Partitioning(Column("age"), tuple(range(number))) for number in (1, 2))

    def fill() -> None:
        for number in range(100):
            ledger.act("s", Assign("t", Where(deep(30)), ("people",)))
            ledger.act("s", Partition(Numbered(f"p{number}", 2), "t", two))
            ledger.act("s", Partition(Numbered(f"p{number}", 1), "people", one))

    with pytest.raises(SessionTooLarge):
        fill()
    ledger.close()


def test_what_two_tables_have_in_common_does_not_weigh_more_than_was_written() -> None:
    ledger = people(open_ledger(":memory:"))
    bind(ledger, "s", "t", Where(deep(10)))
    for _ in range(13):
        for name in ("a", "b"):
            ledger.act("s", Assign(name, Where(deep(1)), ("t",)))
        ledger.act("s", Assign("t", Concat(), ("a", "b")))
    ((program, *_),) = ledger._memory.sessions._programs.values()
    assert program.length == program.written < sum(len(line.text) for line in ledger.entries())
    ledger.close()


def test_a_session_of_a_server_has_a_largest_size() -> None:
    """It was kept however large it was."""
    ledger = people(Ledger(open_ledger(":memory:")._store, session_bytes=100_000))
    names = iter(range(1_000))

    def fill(*arguments: str) -> None:
        for name in names:
            ledger.act("s", Assign(f"t{name}", Where(deep(20)), arguments))

    with pytest.raises(SessionTooLarge, match="100000 bytes at most"):
        fill("people")
    head = ledger.head()
    with pytest.raises(SessionTooLarge):
        fill("t0")
    assert ledger.head() == head
    assert ledger.act("s", Query("t0", Fraction(1), (Count(),))).rule is Rule.QUERY
    ledger.act("s", Assign("t0", Where(deep(1)), ("people",)))  # smaller than what it replaces
    ledger.act("another", Assign("t", Where(deep(20)), ("people",)))
    ledger.close()


def test_sessions_with_large_tables_are_not_all_kept_and_go_on_all_the_same() -> None:
    """A table was taken for a kilobyte, whatever was in it."""
    large = rows(Type.INT64, *range(1000))
    ledger = people(Ledger(open_ledger(":memory:")._store, kept_bytes=10**6))
    for number in range(20):
        bind(ledger, f"s{number}", "t", large)
    ready = [f"s{number}" in ledger._memory.sessions for number in range(20)]
    assert 1 <= sum(ready) <= 15
    assert ready == sorted(ready)  # those that acted last
    assert ledger._memory.sessions._bytes <= 10**6
    assert ledger.act("s0", Query("t", Fraction(1, 10), (Count(),))).rule is Rule.QUERY
    ledger.close()


def test_names_that_are_used_again_weigh_once_and_dropped_ones_nothing() -> None:
    ledger = people(open_ledger(":memory:"))
    by = Partitioning(Column("age"), (1, 2, 3))
    weights = []
    for _ in range(5):
        bind(ledger, "s", "t", rows(Type.INT64, *range(100)))
        ledger.act("s", Partition(("p", "q", "r"), "people", by))
        weights.append(ledger._memory.sessions._bytes)
    program = ledger._memory.sessions.get("s")
    assert program is not None
    assert set(program.lengths) == {"t", "p", "q", "r"}
    assert program.length == sum(program.lengths.values())
    ledger.drop("s", ["t", "p", "unknown"])
    assert ledger._memory.sessions._bytes < min(weights) - 100 * 12
    program = ledger._memory.sessions.get("s")
    assert program is not None
    assert set(program.lengths) == {"q", "r"}
    assert program.length == sum(program.lengths.values())
    ledger.close()


def test_the_one_that_acts_is_kept_however_large_and_all_is_weighed_away_again() -> None:
    kept = Kept(bytes_at_most=1)
    for name in ("a", "b"):
        kept.keep(name, Program(opened(None), held=10**9, written=10**9))
        assert name in kept
    assert "a" not in kept
    kept.forget("b")
    assert (kept._bytes, kept._tables) == (0, 0)


def test_a_replayed_session_weighs_what_it_did(tmp_path: object) -> None:
    place = f"{tmp_path}/x.ledger"
    ledger = people(open_ledger(place))
    for number in range(120):
        bind(ledger, "s", f"t{number % 7}", Where(deep(number % 5)))
    weight = ledger._memory.sessions.get("s")
    ledger.close()
    other = open_ledger(place)
    other.configuration("s")
    again = other._memory.sessions.get("s")
    assert weight is not None
    assert again is not None
    # A whole entry is longer than its action: who it is of, when, and the chain.
    assert weight.bytes <= again.bytes <= weight.bytes + 7 * 14 * 600
    other.close()
