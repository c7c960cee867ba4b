"""The work of one record: a filter to one person, and then as much work as a record can cause.

The program asks about one person, of whom it knows everything but whether their
age is 37. If it is, the query is expensive; if not, there is nothing to do. On a
server without bounds on work the clock tells which, for next to no ε. Here each
of these queries is refused before the charge, in the same bytes on both
neighbours; and what is admitted leaves at the same multiple of the quantum.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.ledger import wire
from fpinq.model.actions import Action, Assign, Query
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.plans import Flatten, PersonTable, Plan, RootTable, Term
from fpinq.model.queries import Choice, Count, PrimitiveQuery, Ranks
from fpinq.model.transformations import (
    Aggregate,
    All,
    Concat,
    Explode,
    First,
    GroupBy,
    GroupJoin,
    Intersect,
    Join,
    LimitPerKey,
    LiteralTable,
    Select,
    SelectMany,
    Where,
)
from fpinq.server import DataSet, TableConfig
from server.live import Live, Reply, people, serve

QUANTUM = Fraction(1, 10)
LONGER = Fraction(2, 5)
LEAST = Fraction(1, 10_000)
TINY = Fraction(1, 10**9)
BUDGET = 10**9
ROWS_PER_PERSON = 6

# A server that asks for everything that a query asks, and for nothing that it could cost.
WEAKENED = {
    "work_per_record": 10**30,
    "work_per_query": 10**30,
    "rows_per_record": 10**18,
    "epsilon_at_least": "1e-9",
}

SCHEMA = {"id": Type.INT64, "age": Type.INT64, "text": Type.STRING}


def rows(age: int) -> list[dict[str, Any]]:
    """Fifty persons; the one with id 7 has several rows of long text."""
    others = [{"id": i, "age": 20 + i % 50, "text": "ä"} for i in range(50) if i != 7]
    return others + [{"id": 7, "age": age, "text": "ä" * 60_000} for _ in range(ROWS_PER_PERSON)]


def data_set(age: int, columns: dict[str, Any]) -> dict[str, DataSet]:
    table = TableConfig(rows(age), SCHEMA, ROWS_PER_PERSON, columns, rows_at_most=1_000)
    return {"people": DataSet("people", Fraction(BUDGET), {"people": table}, unit="id")}


@dataclass
class Neighbours:
    """Two servers that differ in one person's age."""

    there: Live
    absent: Live

    def ask(self, plan: Plan, query: PrimitiveQuery, epsilon: Fraction) -> tuple["Told", "Told"]:
        return asked(self.there, plan, query, epsilon), asked(self.absent, plan, query, epsilon)


@dataclass(frozen=True)
class Told:
    """What an analyst sees of a query."""

    reply: Reply
    seconds: float
    left: Fraction


def asked(live: Live, plan: Plan, query: PrimitiveQuery, epsilon: Fraction) -> Told:
    """The query, after the tables it is asked of were assigned."""
    token = live.token()
    session = live.session(token)

    def act(action: Action) -> Reply:
        return live.act(session, token, wire.to_json(action))

    for action in assignments(plan):
        reply = act(action)
        assert reply.status == 200, reply.body
    began = time.monotonic()
    reply = act(Query("result", epsilon, (query,)))
    return Told(reply, time.monotonic() - began, live.left())


def assignments(plan: Plan) -> list[Action]:
    """The actions that bind a plan to `result`; a table that is used twice is bound once."""
    found: list[Action] = []
    names: dict[int, str] = {}

    def bind(node: Plan) -> str:
        if isinstance(node, RootTable):
            return node.root
        assert isinstance(node, Term)
        if id(node) not in names:
            arguments = tuple(bind(argument) for argument in node.arguments)
            names[id(node)] = "result" if node is plan else f"t{len(names)}"
            found.append(Assign(names[id(node)], node.transformation, arguments))
        return names[id(node)]

    bind(plan)
    return found


# ── ten ways to make one record expensive ────────────────────────────────────────────

ID, AGE, TEXT = Column("id"), Column("age"), Column("text")
THE_ONE = Apply("and", (Apply("equal", (ID, Literal.of(7))), Apply("equal", (AGE, Literal.of(37)))))
MINE = Term(Where(THE_ONE), (PersonTable("people", ROWS_PER_PERSON),))
ONE = Literal.of(1)
COUNTED = (("n", Aggregate("count")),)


def everybody(body: Plan) -> Plan:
    return Term(Flatten(body), (RootTable("people"),))


FILTERED = everybody(MINE)


def public(number: int) -> Plan:
    return Term(LiteralTable(Schema.of({"k": Type.INT64}), tuple((i,) for i in range(number))), ())


def crossed(left: Plan, right: Plan, name: str, first: Any = None) -> Plan:
    """Every record with every public one."""
    record = (
        ("k", Apply("add", (Apply("multiply", (Column(f"l.{name}"), Literal.of(10_007))), Column("r.k")))),
    )
    return Term(Join((ONE,), (ONE,), All(), first or All(), record), (left, right))


def mapped(times: int) -> Expression:
    text: Expression = TEXT
    for number in range(times):
        text = Apply("upper" if number % 2 else "lower", (text,))
    return text


def numbered(number: int) -> Expression:
    """A text that is made afresh for every number."""
    return Apply("upper", (Apply("concat", (TEXT, Literal.of(str(number)))),))


def long_text() -> tuple[Plan, PrimitiveQuery]:
    text = Apply("strip", (Apply("concat", (mapped(90), Literal.of(" "))),))
    return Term(Where(Apply("equal", (text, Literal.of("x")))), (FILTERED,)), Count()


def many_records() -> tuple[Plan, PrimitiveQuery]:
    plan = FILTERED
    for _ in range(3):
        records = tuple((("age", Apply("add", (AGE, Literal.of(i)))),) for i in range(180))
        plan = Term(SelectMany(records, 180), (plan,))
    return Term(GroupBy((("age", AGE),), COUNTED), (plan,)), Count()


def many_pieces() -> tuple[Plan, PrimitiveQuery]:
    pieces = Term(Explode(Apply("split", (TEXT, Literal.of("ä"))), "text", 60_000), (FILTERED,))
    made = Apply("upper", (Apply("concat", (TEXT, Literal.of("ä" * 20))),))
    return Term(Where(Apply("equal", (made, Literal.of("x")))), (pieces,)), Count()


def cross_joins_inside() -> tuple[Plan, PrimitiveQuery]:
    pairs = crossed(crossed(MINE, public(4_000), "age"), public(4_000), "k")
    return everybody(Term(GroupBy((), COUNTED), (pairs,))), Count()


def group_joins_inside() -> tuple[Plan, PrimitiveQuery]:
    k = Column("k")
    base: Plan = Term(Select((("k", AGE),)), (MINE,))
    for _ in range(3):
        shifted = Apply("multiply", (k, Literal.of(60)))
        records = tuple((("k", Apply("add", (shifted, Literal.of(i)))),) for i in range(60))
        base = Term(SelectMany(records, 60), (base,))
    again = GroupJoin(("k",), (k,), (k,), COUNTED, (("m", Aggregate("max", k)),))
    body = base
    for _ in range(9):
        body = Term(Select((("k", Apply("add", (k, ONE))),)), (Term(again, (body, base)),))
    return everybody(Term(GroupBy((), COUNTED), (body,))), Count()


def many_candidates() -> tuple[Plan, PrimitiveQuery]:
    return FILTERED, Choice(tuple(Clamp(Apply("length", (numbered(i),)), 0, 1) for i in range(120)))


def many_quantiles() -> tuple[Plan, PrimitiveQuery]:
    plan = FILTERED
    for number in (600, 60):
        shifted = Apply("multiply", (AGE, Literal.of(number)))
        records = tuple((("age", Apply("add", (shifted, Literal.of(i)))),) for i in range(number))
        plan = Term(SelectMany(records, number), (plan,))
    return plan, Ranks(Clamp(AGE, 0, 10**7), tuple(Fraction(i, 151) for i in range(1, 151)))


def deep_choices_of_text() -> tuple[Plan, PrimitiveQuery]:
    text: Expression = TEXT
    for number in range(90):
        text = Apply("if_else", (Apply("contains", (numbered(number), Literal.of("zz"))), TEXT, text))
    return Term(Where(Apply("equal", (text, Literal.of("x")))), (FILTERED,)), Count()


def keys_of_text() -> tuple[Plan, PrimitiveQuery]:
    return Term(LimitPerKey(1, tuple(numbered(i) for i in range(100))), (FILTERED,)), Count()


def a_large_public_table() -> tuple[Plan, PrimitiveQuery]:
    each = crossed(FILTERED, public(2_000), "age", First(2_000))
    return Term(
        GroupBy((("k", Column("k")),), COUNTED), (crossed(each, public(1_000), "k", First(1_000)),)
    ), Count()


VARIANTS: list[Callable[[], tuple[Plan, PrimitiveQuery]]] = [
    long_text,
    many_records,
    many_pieces,
    cross_joins_inside,
    group_joins_inside,
    many_candidates,
    many_quantiles,
    deep_choices_of_text,
    keys_of_text,
    a_large_public_table,
]


@pytest.fixture(scope="module")
def weakened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbours]:
    yield from neighbours(tmp_path_factory.mktemp("weakened"), limits=WEAKENED)


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbours]:
    yield from neighbours(tmp_path_factory.mktemp("bounded"))


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbours]:
    """Servers whose owner said how long texts are."""
    yield from neighbours(
        tmp_path_factory.mktemp("stated"), columns={"text": {"max_length": 60}}, quantum=LONGER
    )


def neighbours(
    folder: Path, columns: Any = None, quantum: Fraction = QUANTUM, **settings: Any
) -> Iterator[Neighbours]:
    with ExitStack() as stack:
        servers = []
        for age in (37, 38):
            place = folder / str(age)
            place.mkdir()
            data = data_set(age, columns or {})
            servers.append(stack.enter_context(serve(place, data, quantum_seconds=quantum, **settings)))
        yield Neighbours(*servers)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
def test_without_bounds_on_work_the_clock_tells_the_age_for_next_to_nothing(
    variant: Callable[[], tuple[Plan, PrimitiveQuery]], weakened: Neighbours
) -> None:
    plan, query = variant()
    there, absent = float("inf"), float("inf")
    for times in range(6):  # what else the machine does only adds: the fastest of each tells
        told = weakened.ask(plan, query, TINY)
        assert told[1].reply.status == 200, told[1].reply.body
        there, absent = min(there, told[0].seconds), min(absent, told[1].seconds)
        if times >= 2 and there > absent + float(QUANTUM) / 2:  # a quantum more, or several
            return
    pytest.fail(f"{there} s and {absent} s")


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
def test_work_beyond_the_bound_is_refused_in_the_same_bytes_and_for_nothing(
    variant: Callable[[], tuple[Plan, PrimitiveQuery]], bounded: Neighbours
) -> None:
    plan, query = variant()
    there, absent = bounded.ask(plan, query, LEAST)
    assert (there.reply.status, there.reply.code) == (413, "too_large")
    assert (
        "units of work" in there.reply.json["error"]["message"]
        or "at most" in there.reply.json["error"]["message"]
    )
    assert there.reply == absent.reply
    assert there.left == absent.left == BUDGET


@pytest.mark.parametrize("beside", [False, True])
def test_the_rows_of_nobody_are_not_read_for_nothing(beside: bool, bounded: Neighbours) -> None:
    """One person's work, looked at on the clock, of which no row is left: ε times 0 is charged."""
    pairs = crossed(MINE, public(300), "age")
    none = everybody(Term(Intersect(), (pairs, public(0))))
    plan = Term(Concat(), (none, public(5))) if beside else none
    there, absent = bounded.ask(plan, Count(), Fraction(1))
    assert (there.reply.status, there.reply.code) == (400, "bad_query")
    assert "no question is free" in there.reply.json["error"]["message"]
    assert there.reply == absent.reply


def modest_text() -> tuple[Plan, PrimitiveQuery]:
    return Term(Where(Apply("equal", (mapped(80), Literal.of("x")))), (FILTERED,)), Count()


def modest_records() -> tuple[Plan, PrimitiveQuery]:
    records = tuple((("age", Apply("add", (AGE, Literal.of(i)))),) for i in range(200))
    return Term(GroupBy((("age", AGE),), COUNTED), (Term(SelectMany(records, 200), (FILTERED,)),)), Count()


def modest_joins() -> tuple[Plan, PrimitiveQuery]:
    return everybody(Term(GroupBy((), COUNTED), (crossed(MINE, public(300), "age"),))), Count()


def modest_choice() -> tuple[Plan, PrimitiveQuery]:
    return FILTERED, Choice(tuple(Clamp(Apply("length", (numbered(i),)), 0, 1) for i in range(50)))


@pytest.mark.parametrize("variant", [modest_text, modest_records, modest_joins, modest_choice])
def test_what_is_admitted_leaves_at_the_same_multiple_of_the_quantum(
    variant: Callable[[], tuple[Plan, PrimitiveQuery]], stated: Neighbours
) -> None:
    plan, query = variant()
    quanta: list[set[int]] = [set(), set()]
    for _ in range(5):  # a busy machine is late now and then, on one neighbour as on the other
        told = stated.ask(plan, query, LEAST)
        assert [each.reply.status for each in told] == [200, 200]
        for seen, each in zip(quanta, told, strict=True):
            seen.add(int(each.seconds / float(LONGER)))
        if quanta[0] & quanta[1]:
            return
    pytest.fail(f"{quanta}")


def test_a_part_that_costs_nothing_more_is_asked_only_as_often_as_was_paid_for(tmp_path: Path) -> None:
    """Free probing of a part: its sibling was paid for, and the least ε says how many questions that is."""
    least, paid = Fraction(1, 100), Fraction(1, 10)
    with serve(tmp_path, people(1), limits={"epsilon_at_least": str(least)}) as live:
        parts = live.connect()["people"].partition(lambda x: x.gender, keys=[0, 1])
        parts[0].noisy_count(paid)
        charged = [Fraction(parts[1].noisy_count(least).charged) for _ in range(12)]
        assert charged == [0] * (paid / least).numerator + [least] * 2
        with pytest.raises(fp.FpinqError, match="at least"):
            parts[1].noisy_count(least / 2)
