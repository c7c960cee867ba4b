"""What one record can cause in PostgreSQL: bounded by what PostgreSQL takes, not by what DuckDB does."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from engines.nasty import VALUES
from fpinq.engines.postgres import Postgres
from fpinq.engines.postgres.costs import COSTS
from fpinq.ledger.wire import to_json
from fpinq.model.actions import Assign, Query
from fpinq.model.clamps import Clamp
from fpinq.model.costs import UNITS, Costs
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.operators import MAX_STRING, OPERATORS
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.queries import Count, PrimitiveQuery, Sum
from fpinq.model.transformations import Explode, SelectMany, Where
from fpinq.model.work import Bounds, TableSize
from fpinq.server import DataSet, TableConfig
from fpinq.server.limits import Limits
from postgres.tables import Owner
from server.live import Live, serve

SCHEMA = Schema.of({"id": Type.INT64, "name": Type.STRING, "sick": Type.BOOL})
LEAST = Fraction(1, 10_000)
NAME = Column("name")


# ── the clock over HTTP ──────────────────────────────────────────────────────────────


@contextmanager
def neighbours(owner: Owner, folder: Path, columns: dict[str, Any]) -> Iterator[list[Live]]:
    """Two servers whose data differs in whether the person 7 is sick."""
    with ExitStack() as stack:
        found = []
        for sick in (True, False):
            rows = [(i, f"n{i}", sick if i == 7 else i % 3 == 0) for i in range(50)]
            table = TableConfig(
                owner.table(SCHEMA, rows), dict(SCHEMA.columns), columns=columns, rows_at_most=50
            )
            data_set = DataSet("people", Fraction(1), {"people": table}, engine="postgres")
            (folder / str(sick)).mkdir()
            served = serve(folder / str(sick), {"people": data_set}, postgres={"address": owner.readers})
            found.append(stack.enter_context(served))
        yield found


def nested(operator: str, value: Expression, times: int, *others: Expression) -> Expression:
    for _ in range(times):
        value = Apply(operator, (value, *others))
    return value


LONG = Apply("concat", (Literal.of("é" * 65_000), NAME))
# Each within 10⁷ units, if a unit were the same everywhere.
EXPENSIVE = {
    "lower": nested("lower", LONG, 7),
    "upper": nested("upper", LONG, 7),
    "substring": nested("substring", LONG, 60, Literal.of(1), Literal.of(MAX_STRING)),
}


def asked(live: Live, value: Expression) -> Any:
    """What is seen of a sum over one person, if they are sick; and what it cost."""
    token = live.token()
    session = live.session(token)
    chosen = Apply("and", (Apply("equal", (Column("id"), Literal.of(7))), Column("sick")))
    assert live.act(session, token, to_json(Assign("t", Where(chosen), ("people",)))).status == 200
    query = Query("t", LEAST, (Sum(Clamp(Apply("length", (value,)), 0, 1)),))
    reply = live.act(session, token, to_json(query))
    return reply.status, reply.body, live.left()


@pytest.mark.parametrize("name", EXPENSIVE)
def test_what_postgresql_takes_long_for_is_refused_in_the_same_bytes_and_for_nothing(
    name: str, owner: Owner, tmp_path: Path
) -> None:
    with neighbours(owner, tmp_path, {"name": {"max_length": 100}}) as (there, absent):
        told = asked(there, EXPENSIVE[name])
        assert told == asked(absent, EXPENSIVE[name])
        status, body, left = told
        assert (status, left) == (413, 1), body
        assert b"one record could be" in body
        if name != "substring":
            assert f"PostgreSQL takes more for some of it: {name} 110 times".encode() in body
        assert asked(there, NAME)[0] == 200


def test_without_postgresqls_own_costs_it_is_admitted(
    owner: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Postgres, "costs", lambda self: UNITS)
    with neighbours(owner, tmp_path, {"name": {"max_length": 100}}) as lives:
        assert [asked(live, EXPENSIVE["lower"])[0] for live in lives] == [200, 200]


def test_names_of_a_stated_length_are_still_asked_about(owner: Owner, tmp_path: Path) -> None:
    ordinary = Apply("substring", (Apply("lower", (Apply("strip", (NAME,)),)), Literal.of(0), Literal.of(9)))
    with neighbours(owner, tmp_path, {"name": {"max_length": 100}}) as lives:
        assert [asked(live, nested("upper", ordinary, 20))[0] for live in lives] == [200, 200]


# ── every operator at the limit ──────────────────────────────────────────────────────

LIMIT = Limits().work_per_record
# How much longer than its units a nanosecond each the work of one record may take: ten milliseconds are a
# twenty-fifth of the usual quantum. Where it was measured it was half or less, and with other units ten or
# more: another machine may be several times slower or faster.
SLOWER = 3
TEXTS = {"é": "é" * MAX_STRING, "я": "я" * MAX_STRING, "漢": "漢" * MAX_STRING, "1": "1" * MAX_STRING}
READ = {"string": "length", "bool": "to_int64", "date": "day", "timestamp": "hour"}


def on_text(name: str) -> tuple[Plan, PrimitiveQuery] | None:
    """An operator on a text, asked; None if it takes none."""
    operator = OPERATORS[name]
    found = [(takes, gives) for takes, gives in operator.signatures if Type.STRING in takes]
    if not found:
        return None
    takes, gives = found[0]
    constants = iter([Literal.of(1), Literal.of(MAX_STRING)])
    arguments: list[Expression] = [
        Column("s") if t is Type.STRING else Literal.of(True) if t is Type.BOOL else next(constants)
        for t in takes
    ]
    if name in ("split", "contains", "is_in"):
        arguments[1] = Literal.of("x")
    value = Apply(name, tuple(arguments))
    if gives is Type.STRINGS:
        return Term(Explode(value, "v", 1), (RootTable("t"),)), Count()
    reader = READ.get(gives.value)
    return RootTable("t"), Sum(Clamp(Apply(reader, (value,)) if reader else value, 0, 1))


class Measured:
    """PostgreSQL with one long text, and a clock of what it computes."""

    def __init__(self, owner: Owner, engine: Postgres) -> None:
        self.engine = engine
        schema = Schema.of({"s": Type.STRING})
        for kind, text in {**TEXTS, "": ""}.items():
            engine.add_root(f"t{kind}", owner.table(schema, [(text,)]), {"s": Type.STRING})
        with engine._database.reading() as statements:
            ((self.pid,),) = statements.rows("SELECT pg_backend_pid()")

    def computed(self) -> int:
        return int(Path(f"/proc/{self.pid}/schedstat").read_text(encoding="ascii").split()[0])

    def nanoseconds(self, plan: Plan, query: PrimitiveQuery, kind: str) -> float:
        best = float("inf")
        for _ in range(3):
            began = self.computed()
            self.engine.measure(_of(plan, kind), None, [query.statistic])
            best = min(best, self.computed() - began)
        return best


def _of(plan: Plan, kind: str) -> Plan:
    if isinstance(plan, Term):
        return Term(plan.transformation, tuple(_of(a, kind) for a in plan.arguments))
    return RootTable(f"t{kind}")


@pytest.fixture(scope="module")
def measured(owner: Owner) -> Iterator[Measured]:
    if not os.path.exists("/proc/self/schedstat"):
        pytest.skip("no clock of another process's computing")
    engine = Postgres(f"{owner.readers}&options=-c%20max_parallel_workers_per_gather%3D0")
    yield Measured(owner, engine)
    engine.close()


def slowness(measured: Measured, costs: Costs, name: str) -> float:
    """Nanoseconds for each unit of the longest text there is, beyond those of an empty one."""
    asked = on_text(name)
    assert asked is not None
    plan, query = asked
    sizes = {"t": {"": TableSize(1, {"s": MAX_STRING})}}
    units = Bounds(sizes, costs).work(plan, None, (query,)).record
    empty = measured.nanoseconds(plan, query, "")
    return max(measured.nanoseconds(plan, query, kind) - empty for kind in TEXTS) / units


ON_TEXT = [name for name in OPERATORS if on_text(name) is not None]


@pytest.mark.parametrize("name", ON_TEXT)
def test_the_work_of_one_record_at_the_limit_is_less_than_a_quantum(name: str, measured: Measured) -> None:
    assert slowness(measured, COSTS, name) < SLOWER


@pytest.mark.parametrize("name", ["lower", "to_date", "to_timestamp", "to_float64"])
def test_with_the_units_of_another_engine_it_is_not(name: str, measured: Measured) -> None:
    assert slowness(measured, UNITS, name) > SLOWER


# ── and what it does once ────────────────────────────────────────────────────────────

ROWS = 5_000


@pytest.fixture(scope="module")
def many(measured: Measured, owner: Owner) -> Measured:
    """A table of the values at the edges of every type, in pairs."""
    columns = {f"{type_.value}{i}": type_ for type_ in VALUES for i in (0, 1)}
    pools = {t: [v for v in VALUES[t] if v is not None] for t in VALUES}
    rows = [
        tuple(pools[t][(row // (len(pools[t]) ** i)) % len(pools[t])] for t in pools for i in (0, 1))
        for row in range(ROWS)
    ]
    measured.engine.add_root("many", owner.table(Schema.of(columns), rows), columns)
    return measured


def on_numbers(name: str, takes: tuple[Type, ...], gives: Type) -> PrimitiveQuery:
    seen: dict[Type, int] = {}
    arguments = []
    for type_ in takes:
        arguments.append(Column(f"{type_.value}{min(seen.get(type_, 0), 1)}"))
        seen[type_] = seen.get(type_, 0) + 1
    reader = READ.get(gives.value)
    value = Apply(name, tuple(arguments))
    return Sum(Clamp(Apply(reader, (value,)) if reader else value, 0, 1))


def slowness_once(many: Measured, costs: Costs, name: str) -> float:
    """Nanoseconds for each unit of a row, at the worst of an operator's types."""
    operator, worst = OPERATORS[name], 0.0
    root = RootTable("many")
    sizes = {"many": {"": TableSize(1, {f"{t.value}{i}": 0 for t in VALUES for i in (0, 1)})}}
    base = min(_timed(many, "many", Count()) for _ in range(3))
    for takes, gives in operator.signatures:
        if Type.STRING not in takes:
            query = on_numbers(name, takes, gives)
            units = Bounds(sizes, costs).work(root, None, (query,)).record
            took = min(_timed(many, "many", query) for _ in range(3)) - base
            worst = max(worst, took / ROWS / units)
    return worst


WITHOUT_TEXT = [
    name
    for name, operator in OPERATORS.items()
    if any(Type.STRING not in takes for takes, _ in operator.signatures)
    and not operator.literal
    and not operator.variadic
]


@pytest.mark.parametrize("name", WITHOUT_TEXT)
def test_what_is_done_once_takes_no_longer_than_its_units(name: str, many: Measured) -> None:
    assert slowness_once(many, COSTS, name) < SLOWER


def test_with_the_units_of_another_engine_what_is_done_once_does(many: Measured) -> None:
    assert slowness_once(many, UNITS, "modulo") > SLOWER


def test_many_records_of_a_long_text_cost_what_reading_it_so_often_does(measured: Measured) -> None:
    """Each mention of a stored text is read again: that is in the bound, too."""
    record = (("s", Column("s")),)
    plan = Term(SelectMany((record,) * 100, 100), (RootTable("t"),))
    query = Sum(Clamp(Apply("length", (Column("s"),)), 0, 1))
    sizes = {"t": {"": TableSize(1, {"s": MAX_STRING})}}
    took = measured.nanoseconds(plan, query, "é") - measured.nanoseconds(plan, query, "")
    assert took / Bounds(sizes, COSTS).work(plan, None, (query,)).record < SLOWER
    without = Bounds(sizes, UNITS).work(RootTable("t"), None, (Count(),)).record * 100
    assert took / without > SLOWER


def test_a_text_far_beyond_its_public_length_is_not_read(owner: Owner, measured: Measured) -> None:
    """Its bytes tell: a hundred times as many take no longer."""
    schema, took = Schema.of({"s": Type.STRING}), []
    for number, length in enumerate((2_000, 2_000_000)):
        table = owner.table(schema, [("é" * length,)] * 5)
        measured.engine.add_root(f"beyond{number}", table, {"s": Type.STRING}, lengths={"s": 100})
        query = Sum(Clamp(Apply("to_int64", (Apply("is_null", (Column("s"),)),)), 0, 1))
        assert measured.engine.measure(RootTable(f"beyond{number}"), None, [query.statistic]) == [{0: 5}]
        took.append(min(_timed(measured, f"beyond{number}", query) for _ in range(3)))
    assert took[1] < 5 * took[0]


def _timed(measured: Measured, root: str, query: PrimitiveQuery) -> int:
    began = measured.computed()
    measured.engine.measure(RootTable(root), None, [query.statistic])
    return measured.computed() - began
