"""The PostgreSQL engine: transactions, settings, deadlines, exact sums, tables that change, failures."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

import fpinq as fp
from engines.test_conformance import bag
from fpinq.engines.interface import Asked
from fpinq.engines.postgres import Postgres, database, doubles, trial
from fpinq.engines.postgres.database import MEANING, Statements
from fpinq.engines.postgres.dialect import POSTGRES
from fpinq.model.clamps import Clamp
from fpinq.model.errors import (
    BadData,
    BadExpression,
    BadQuery,
    DataChanged,
    EngineError,
    ProgramError,
    UnfitEngine,
)
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Apply, Column, Literal, Schema, Type
from fpinq.model.plans import MAX_DEPTH, Flatten, PersonTable, Plan, RootTable, Term
from fpinq.model.statistics import Bernstein, Monomials, Points, Records, Statistic, Totals
from fpinq.model.transformations import (
    Aggregate,
    Concat,
    Distinct,
    First,
    GroupBy,
    Join,
    LimitPerKey,
    Partitioning,
    Select,
    Take,
    Union,
    Where,
)
from postgres.tables import READER, OnTables, Owner

_names = count()
X = Schema.of({"x": Type.INT64})
ALL_X = Clamp(Column("x"), INT64_MIN, INT64_MAX)


def fresh() -> str:
    return f"engine{next(_names)}"


@pytest.fixture
def table(postgres: Postgres, owner: Owner) -> tuple[str, Plan]:
    """A table of one row, in the database and in the engine."""
    name, root = owner.table(X, [(1,)]), fresh()
    postgres.add_root(root, name)
    return name, RootTable(root)


# ── transactions and settings ────────────────────────────────────────────────────────


def test_a_measurement_is_one_statement_whatever_the_number_of_parts(
    engine: OnTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = fresh()
    engine.add_root(root, [{"k": i % 50, "x": i} for i in range(500)])
    asked: list[str] = []
    rows = Statements.rows

    def counted(self: Statements, sql: str, parameters: Any = ()) -> Any:
        asked.append(sql)
        return rows(self, sql, parameters)

    monkeypatch.setattr(Statements, "rows", counted)
    clamp = Clamp(Column("x"), 0, 400)
    kinds: list[Statistic] = [Records(), Totals((clamp,)), Bernstein(clamp, 2)]
    kinds += [Monomials((clamp, clamp), ((0, 0), (1, 0), (1, 2)))]
    for parts in (1, 10, 100, 3000):
        asked.clear()
        by = Partitioning(Column("k"), tuple(range(parts)))
        assert engine.measure(RootTable(root), by, [kinds[i % len(kinds)] for i in range(parts)])[0] == {
            0: 10
        }
        assert sum("pg_class" not in sql and "pg_attribute" not in sql for sql in asked) == 1


def test_a_transaction_only_reads_and_each_statement_has_a_snapshot(
    postgres: Postgres, owner: Owner, table: Any
) -> None:
    name, _ = table
    owner.run(f"GRANT INSERT ON public.{name} TO {READER}")
    with postgres._database.reading() as statements:
        assert statements.rows(f"SELECT count(*) FROM public.{name}") == [(1,)]
        owner.run(f"INSERT INTO public.{name} VALUES (2)")
        assert statements.rows(f"SELECT count(*) FROM public.{name}") == [(2,)]
        found = statements.rows(
            "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
        )
        assert found == [("read committed", "on")]
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), postgres._database.reading() as statements:
        statements.rows(f"INSERT INTO public.{name} VALUES (3) RETURNING x")


def test_a_forked_process_has_connections_of_its_own(owner: Owner) -> None:
    ours = database.Database(owner.readers)

    def backend() -> int:
        with ours.reading() as statements:
            return int(statements.rows("SELECT pg_backend_pid()")[0][0])

    parents = backend()
    child = os.fork()
    if not child:
        try:
            others = backend() != parents
            ours.close()
            os._exit(0 if others else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert backend() == parents
    ours.close()


def test_settings_are_ours_in_a_transaction_and_the_owners_afterwards(owner: Owner) -> None:
    ours = database.Database(owner.readers)
    with ours.reading() as statements:
        for name, value in MEANING.items():
            ((found,),) = statements.rows("SELECT current_setting($1)", [name])
            assert found.replace('"', "") == value, name
        ((backend,),) = statements.rows("SELECT pg_backend_pid()")
    (connection,) = ours._idle
    assert connection.execute("SELECT pg_backend_pid()").fetchone() == (backend,)
    assert connection.execute("SHOW timezone").fetchone() == ("Asia/Kolkata",)
    ours.close()


def test_functions_and_operators_of_others_are_not_called(engine: OnTables) -> None:
    root = fresh()
    engine.add_root(root, [{"x": 1, "f": -2.5, "s": "abc"}])
    more = Apply("add", (Column("x"), Column("x")))
    long = Apply("equal", (Apply("length", (Column("s"),)), Literal.of(3)))
    absolute = Apply("equal", (Apply("abs", (Column("f"),)), Literal.of(2.5)))
    assert engine.measure(RootTable(root), None, [Totals((Clamp(more, 0, 100),))]) == [{0: 2}]
    for truth in (long, absolute):
        assert engine.measure(Term(Where(truth), (RootTable(root),)), None, [Records()]) == [{0: 1}]


# ── exact integers ───────────────────────────────────────────────────────────────────


def test_sums_beyond_64_bits_are_exact(engine: OnTables) -> None:
    root = fresh()
    values = [INT64_MAX] * 300 + [INT64_MIN] * 7 + [None, 1, -1]
    engine.add_root(root, [{"x": x} for x in values], schema=dict(X.columns))
    total = sum(x for x in values if x is not None)
    found = engine.measure(RootTable(root), None, [Totals((ALL_X,))])
    assert found == [{0: total}]
    assert type(found[0][0]) is int
    grouped = Term(GroupBy((), (("s", Aggregate("sum", ALL_X)),)), (RootTable(root),))
    assert engine.rows(grouped).rows == ((None,),)


@pytest.mark.parametrize(
    "values", [[INT64_MIN], [INT64_MAX], [INT64_MAX, 1, -1], [INT64_MIN, -1, 1], [], [-1]]
)
def test_a_groups_sum_uses_all_64_bits(engine: OnTables, values: list[int]) -> None:
    root = fresh()
    engine.add_root(root, [{"x": x} for x in [*values, None]], schema=dict(X.columns))
    plan = Term(GroupBy((), (("s", Aggregate("sum", ALL_X)),)), (RootTable(root),))
    assert engine.rows(plan).rows == ((sum(values),),)


MANY = 1_500


@pytest.mark.parametrize(
    "keys",
    [
        (*(i / 4 for i in range(-MANY, MANY)), float("inf"), -float("inf"), 5e-324, None),
        tuple(date.fromordinal(700_000 + i) for i in range(MANY)),
        (*(datetime(2024, 1, 1, 0, 0, 0, i) for i in range(MANY)), datetime.max),
        (*range(0, 3 * MANY, 3), INT64_MIN, None),
        tuple(f"{i}\n'\"\\é{{}},%s$1" for i in range(MANY)),
    ],
    ids=["floats", "dates", "timestamps", "integers", "strings"],
)
def test_many_keys_of_every_type_are_found_again(engine: OnTables, keys: tuple[Any, ...]) -> None:
    root = fresh()
    engine.add_root(root, [{"k": key} for key in keys[::2]])
    found = engine.measure(RootTable(root), Partitioning(Column("k"), keys), [Records()] * len(keys))
    assert found == [{0: 1} if i % 2 == 0 else {} for i in range(len(keys))]


def test_which_rows_of_a_person_stay_does_not_depend_on_where_they_lie(
    postgres: Postgres, owner: Owner
) -> None:
    schema = Schema.of({"p": Type.INT64, "s": Type.STRING, "f": Type.FLOAT64})
    rows = [
        (i % 7, text, f) for i, text in enumerate("bBaAéÉ_z" * 4) for f in (1.5, None, float("nan"), -0.0)
    ]
    found = []
    for given in (rows, rows[::-1], sorted(rows, key=repr)):
        name, root = owner.table(schema, given), fresh()
        owner.run(f"UPDATE public.{name} SET p = p WHERE s = 'a'")  # these move to the end
        postgres.add_persons(root, {"t": name}, "p")
        first = Term(Flatten(PersonTable("t", 3)), (RootTable(root),))
        found.append((bag(postgres.rows(first).rows), bag(postgres.rows(Term(Take(9), (first,))).rows)))
    assert found[0] == found[1] == found[2]


def test_a_histogram_of_many_points_is_read(engine: OnTables) -> None:
    root = fresh()
    engine.add_root(root, [{"x": x} for x in [*range(20_000), None]])
    points = Points(Clamp(Column("x"), 0, 2**40))
    assert engine.measure(RootTable(root), None, [points]) == [dict.fromkeys(range(20_000), 1)]


# ── plans ────────────────────────────────────────────────────────────────────────────

KEY = (Column("a"),)
STEPS: dict[str, Any] = {
    "where": Where(Apply("greater", (Column("a"), Literal.of(-1)))),
    "select": Select((("a", Apply("clip", (Column("a"), Literal.of(0), Literal.of(50)))),)),
    "limit": LimitPerKey(2, KEY),
    "join": Join(KEY, KEY, First(1), First(1), (("a", Column("l.a")),)),
    "union": Union(bag=True),
}


@pytest.mark.parametrize("kind", STEPS)
def test_a_chain_of_steps_as_long_as_allowed_is_measured(engine: OnTables, kind: str) -> None:
    root = RootTable(fresh())
    engine.add_root(root.root, [{"a": n} for n in range(10)])
    plan: Plan = root
    for _ in range(MAX_DEPTH):
        plan = Term(STEPS[kind], (plan, root) if kind in ("join", "union") else (plan,))
    assert engine.measure(plan, None, [Records()]) == [{0: 10}]


def test_a_deep_predicate_does_not_multiply(engine: OnTables) -> None:
    root = RootTable(fresh())
    engine.add_root(root.root, [{"f": n / 2} for n in range(100)])
    value: Any = Column("f")
    for _ in range(90):
        value = Apply("power", (value, Literal.of(1.0)))
    plan = Term(Where(Apply("greater", (value, Literal.of(1.0)))), (root,))
    assert engine.measure(plan, None, [Records()]) == [{0: 97}]


def test_a_table_used_twice_at_every_step_is_computed_once(engine: OnTables) -> None:
    root = RootTable(fresh())
    engine.add_root(root.root, [{"a": 1}])
    plan: Plan = Term(Distinct(), (root,))
    for _ in range(10):
        plan = Term(Concat(), (plan, plan))
    assert engine.measure(plan, None, [Records()]) == [{0: 2**10}]


# ── time ─────────────────────────────────────────────────────────────────────────────


@contextmanager
def locked(owner: Owner, name: str) -> Iterator[None]:
    """Whoever reads the table waits."""
    with psycopg.connect(owner.url) as holder:
        holder.execute(f"LOCK TABLE public.{name} IN ACCESS EXCLUSIVE MODE")  # type: ignore[arg-type]
        yield
        holder.rollback()


def waiting(owner: Owner, name: str) -> int:
    """How many of our statements about a table run."""
    text = f"%{name}%"
    found = owner.run(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND state = 'active' AND query LIKE %s",
        READER, text,
    ).fetchone()  # fmt: skip
    return int(found[0])


def test_what_takes_too_long_is_stopped_and_nothing_is_left_running(
    postgres: Postgres, owner: Owner, table: Any
) -> None:
    name, plan = table
    with locked(owner, name):
        began = time.monotonic()
        with pytest.raises(EngineError):
            postgres.measure(plan, None, [Records()], 0.3)
        assert time.monotonic() - began < 20
        assert waiting(owner, name) == 0
    assert postgres.measure(plan, None, [Records()], 60.0) == [{0: 1}]


def test_an_interrupted_measurement_ends_in_the_database_too(
    postgres: Postgres, owner: Owner, table: Any
) -> None:
    name, plan = table
    failed: list[BaseException] = []

    def measure() -> None:
        try:
            postgres.measure(plan, None, [Records()])
        except EngineError as error:
            failed.append(error)

    with locked(owner, name):
        thread = threading.Thread(target=measure)
        thread.start()
        until = time.monotonic() + 30
        while not waiting(owner, name) and time.monotonic() < until:
            time.sleep(0.02)
        owner.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s AND query LIKE %s",
            READER, f"%{name}%",
        )  # fmt: skip
        thread.join(30)
    assert len(failed) == 1
    assert postgres.measure(plan, None, [Records()]) == [{0: 1}]


def test_a_connection_lost_while_nobody_used_it_is_replaced(
    postgres: Postgres, owner: Owner, table: Any
) -> None:
    _, plan = table
    postgres.measure(plan, None, [Records()])
    owner.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", READER)
    time.sleep(0.2)
    assert postgres.measure(plan, None, [Records()]) == [{0: 1}]


def test_several_threads_measure_at_once(engine: OnTables) -> None:
    root = fresh()
    engine.add_root(root, [{"x": x} for x in range(100)])
    found: list[Any] = []

    def measure() -> None:
        found.append(engine.measure(RootTable(root), None, [Totals((ALL_X,))]))

    threads = [threading.Thread(target=measure) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[{0: 4950}]] * 8


# ── tables that change ───────────────────────────────────────────────────────────────

CHANGES = {
    "dropped": "DROP TABLE {}",
    "replaced": "DROP TABLE {0}; CREATE TABLE {0} (x bigint); GRANT SELECT ON {0} TO reader",
    "a view now": "ALTER TABLE {0} RENAME TO {1}; CREATE VIEW {0} AS SELECT 1::bigint AS x; "
                  "GRANT SELECT ON {0} TO reader",
    "of another type": "ALTER TABLE {} ALTER x TYPE text",
    "renamed in part": "ALTER TABLE {} RENAME x TO y",
    "out of reach": "REVOKE SELECT ON {} FROM reader",
    "secured": "ALTER TABLE {0} ENABLE ROW LEVEL SECURITY",
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_table_that_was_replaced_or_altered_is_noticed_before_it_is_read(
    postgres: Postgres, owner: Owner, table: Any, change: str
) -> None:
    name, plan = table
    postgres.check_unchanged(plan)
    owner.run(change.format(f"public.{name}", f"{name}_before"))
    with pytest.raises(DataChanged):
        postgres.check_unchanged(plan)
    with pytest.raises(DataChanged):
        postgres.measure(plan, None, [Records()])


SWAPS = {
    "another table": "ALTER TABLE {0} RENAME TO {1}_old; ALTER TABLE {1} RENAME TO {0}",
    "another column": "ALTER TABLE {0} RENAME x TO z; ALTER TABLE {0} RENAME y TO x; "
                      "ALTER TABLE {0} RENAME z TO y",
}  # fmt: skip


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS)
def test_a_name_that_is_given_away_while_a_measurement_waits_is_noticed(
    postgres: Postgres, owner: Owner, swap: str
) -> None:
    schema = Schema.of({"x": Type.INT64, "y": Type.INT64})
    name, other = owner.table(schema, [(1, 2)]), owner.table(schema, [(3, 4), (5, 6)])
    root, found = fresh(), list[Any]()
    postgres.add_root(root, name)

    def measure() -> None:
        try:
            found.append(postgres.measure(RootTable(root), None, [Records()]))
        except DataChanged as noticed:
            found.append(noticed)

    with psycopg.connect(owner.url) as swapping:  # commits at the end
        swapping.execute(swap.format(name, other))  # type: ignore[arg-type]
        measuring = threading.Thread(target=measure)
        measuring.start()
        waiting = f"SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '{name}'::regclass"
        until = time.monotonic() + 20
        while not owner.run(waiting).fetchone() and time.monotonic() < until:
            time.sleep(0.02)
    measuring.join()
    assert isinstance(found[0], DataChanged)


def test_what_is_added_is_what_was_hashed(postgres: Postgres, owner: Owner) -> None:
    name, other, root = owner.table(X, [(1,)]), owner.table(X, [(2,)]), fresh()
    postgres.fingerprint(name)
    owner.run(f"ALTER TABLE {name} RENAME TO {name}_old; ALTER TABLE {other} RENAME TO {name}")
    with pytest.raises(BadData, match="another table while it was protected"):
        postgres.add_root(root, name)
    postgres.fingerprint(name)
    postgres.add_root(root, name)


def test_rows_that_come_and_go_are_measured_as_they_are(postgres: Postgres, owner: Owner, table: Any) -> None:
    name, plan = table
    owner.run(
        f"INSERT INTO public.{name} SELECT generate_series(1, 9); VACUUM FULL public.{name}".split(";")[0]
    )
    owner.run(f"VACUUM FULL public.{name}")
    postgres.check_unchanged(plan)
    assert postgres.measure(plan, None, [Records()]) == [{0: 10}]


def test_a_table_is_known_by_its_records_or_by_what_its_owner_says(owner: Owner) -> None:
    schema = Schema.of({"a": Type.STRING, "b": Type.STRING})
    engine = Postgres(owner.readers)

    def of(*rows: tuple[str | None, str | None]) -> Any:
        return engine.fingerprint(owner.table(schema, list(rows)))

    one = of(("x", "y"), ("z", None))
    assert one == of(("z", None), ("x", "y"))
    assert (one.schema, one.records) == (schema, 2)
    others = [
        of(("xy", ""), ("z", None)),
        of(("x", "y"), ("z", "-")),
        of(("x", "y"), ("z", None), ("z", None)),
    ]
    assert len({one, *others}) == 4
    name = owner.table(schema, [])
    declared = Postgres(owner.readers, contents={f"public.{name}": "register of 2024"})
    assert declared.fingerprint(name) == "register of 2024"
    for database_of_ours in (engine, declared):
        database_of_ours.close()


def test_a_table_is_the_same_data_whichever_of_its_columns_a_schema_names(
    owner: Owner, tmp_path: Path
) -> None:
    types = {"day": "interval", "secret": "bigint"}
    schema = Schema.of({"a": Type.INT64, "b": Type.STRING, "day": Type.STRING, "secret": Type.INT64})
    name = owner.table(schema, [(1, "x", "1 day", 7), (2, None, None, 8)], types)
    owner.run(f"REVOKE SELECT ON public.{name} FROM {READER}")
    owner.run(f"GRANT SELECT (a, b, day) ON public.{name} TO {READER}")
    engine, ledger = Postgres(owner.readers), tmp_path / "ledger"

    def protect(as_what: str, **columns: str) -> Any:
        return fp.protect(name, engine=engine, budget=1, ledger=ledger, name=as_what, schema=columns)

    protect("people", a="int64", b="string").noisy_count(1)
    for columns in ({"a": "int64"}, {"b": "string", "a": "int64"}, {"a": "float64", "b": "string"}):
        with pytest.raises(fp.SameData):
            protect("again", **columns)
    assert protect("people", a="int64", b="string").remaining == 0
    engine.close()


@pytest.mark.parametrize("wrong", [{"people": ""}, {"people": 2024}, "register", {"a.b.c": "x"}, {"": "x"}])
def test_contents_are_said_in_words_and_of_tables(wrong: Any) -> None:
    with pytest.raises((ProgramError, BadData)):
        Postgres("postgresql://nowhere", contents=wrong)


def test_a_root_that_is_forgotten_frees_its_name(postgres: Postgres, table: Any) -> None:
    name, _ = table
    root = fresh()
    postgres.add_root(root, name)
    with pytest.raises(BadData, match="already"):
        postgres.add_root(root, name)
    postgres.forget(root)
    assert postgres.add_persons(root, {"t": name}, "x").unit == "x"
    assert postgres.rows_in(root) == {"t": 1}


# ── failing quietly ──────────────────────────────────────────────────────────────────


def test_the_databases_words_go_to_the_owner_only(
    postgres: Postgres,
    owner: Owner,
    table: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, plan = table
    secret = "SELECT 'secret row'::bigint"
    rows = Statements.rows

    def failing(self: Statements, sql: str, parameters: Any = ()) -> Any:
        return rows(self, sql, parameters) if "pg_" in sql else rows(self, secret)

    monkeypatch.setattr(Statements, "rows", failing)
    with caplog.at_level(logging.ERROR, "fpinq.owner"), pytest.raises(EngineError) as raised:
        postgres.measure(plan, None, [Records()])
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None
    assert "secret row" in caplog.text


def test_an_address_where_nobody_is_says_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    engine = Postgres("postgresql://reader:hunter2@127.0.0.1:1/nowhere")
    with pytest.raises(BadData) as raised:
        engine.add_root("t", "people")
    assert "127.0.0.1" not in str(raised.value)
    assert "hunter2" not in str(raised.value) + caplog.text


@pytest.mark.parametrize("wrong", ["", None, 7])
def test_an_engine_without_an_address_is_refused(wrong: Any) -> None:
    with pytest.raises(ProgramError, match="Say its address"):
        Postgres(wrong)


def test_a_nul_character_is_refused(postgres: Postgres, table: Any) -> None:
    _, plan = table
    nul = Apply("equal", (Literal.of("a\0"), Literal.of("a")))
    with pytest.raises(BadExpression, match="NUL"):
        postgres.measure(Term(Where(nul), (plan,)), None, [Records()])
    text = Apply("to_string", (Column("x"),))
    for asked in (
        Asked(Term(Where(nul), (plan,)), None, [Records()]),
        Asked(plan, Partitioning(text, ("a", "\0")), [Records()]),
        Asked(plan, Partitioning((text, Column("x")), (("a", 1), ("b\0", 2))), [Records()]),
        Asked(plan, None, [Totals((Clamp(Apply("to_int64", (nul,)), 0, 1),))]),
    ):
        with pytest.raises(BadExpression, match="NUL"):
            postgres.check_asked([Asked(plan, None, [Records()]), asked])


def in_columns(plan: Plan) -> Plan:
    return Term(Distinct(), (Term(Select(tuple((f"x{i}", Column("x")) for i in range(1_700))), (plan,)),))


def in_aggregates(plan: Plan) -> Plan:
    sums = (Apply("add", (Column("x"), Literal.of(i))) for i in range(1_700))
    largest = tuple((f"m{i}", Aggregate("max", value)) for i, value in enumerate(sums))
    return Term(GroupBy((("k", Column("x")),), largest), (plan,))


def in_texts(plan: Plan) -> Plan:
    for number in range(8):
        texts = (Literal.of(f"{number} {i}") for i in range(9_000))
        among = Apply("is_in", (Apply("to_string", (Column("x"),)), *texts))
        plan = Term(Where(Apply("not", (among,))), (plan,))
    return plan


@pytest.mark.parametrize(
    ("make", "statistic"),
    [
        (lambda plan: plan, Totals(tuple(Clamp(Column("x"), 0, i + 1) for i in range(1_700)))),
        (in_columns, Records()),
        (in_aggregates, Records()),
        (in_texts, Records()),
    ],
    ids=["sums", "columns", "aggregates", "texts"],
)
def test_what_is_too_much_for_one_statement_is_refused(
    postgres: Postgres, table: Any, make: Any, statistic: Statistic
) -> None:
    """It failed after it was charged for."""
    _, plan = table
    with pytest.raises(BadQuery, match="more than PostgreSQL can be asked"):
        postgres.check_asked([Asked(make(plan), None, [statistic])])
    with pytest.raises(EngineError):
        postgres.measure(make(plan), None, [statistic])


# ── which PostgreSQL ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", [9, 13, 14, 19, 20])
def test_a_version_that_was_not_tested_is_refused(version: int) -> None:
    with pytest.raises(UnfitEngine, match=f"this is PostgreSQL {version}.*use 15 to 18"):
        database.check_version(version)


def test_a_database_that_is_not_utf8_is_refused(owner: Owner) -> None:
    owner.run("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    engine = Postgres(owner.readers.replace("/hostile", "/latin"))
    with pytest.raises(UnfitEngine, match="LATIN1"):
        engine.add_root("t", "people")
    engine.close()


SPOILED = {
    "sums": ("wide_sum", lambda self, column, magnitude: [f"CAST(sum({column}) AS double precision)"]),
    "doubles that raise": ("multiply_floats", lambda self, a, b: f"{a} * {b}"),
    "rounding": ("round", lambda self, a: f"CAST(round(CAST({a} AS numeric)) AS double precision)"),
}


@pytest.mark.parametrize("what", ["sums", "doubles that raise", "rounding"])
def test_a_postgresql_that_answers_wrongly_is_refused(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    name, wrong = SPOILED[what]
    monkeypatch.setattr(type(POSTGRES), name, wrong)
    engine = Postgres(owner.readers)
    with pytest.raises((UnfitEngine, BadData)):
        engine.add_root("t", "people")
    engine.close()


def test_the_trial_is_stood_once(postgres: Postgres, monkeypatch: pytest.MonkeyPatch, table: Any) -> None:
    def again(statements: Statements) -> None:
        raise AssertionError("tried again")

    monkeypatch.setattr(trial, "check", again)
    assert postgres.measure(table[1], None, [Records()]) == [{0: 1}]


def test_doubles_are_the_dialects() -> None:
    assert POSTGRES.double(0.1) == doubles.double(0.1)
